"""Operations on small matrices: plain loops are faster than BLAS calls."""

from __future__ import annotations

import numpy as np

from trimtab.problems.kernels.compiling import inner, part
from trimtab.types import Array


@inner
def multiply(a: Array, b: Array, out: Array) -> None:
    """out = a b."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(b.shape[0]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@inner
def multiply_left(a: Array, b: Array, out: Array) -> None:
    """out = aᵀ b."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(b.shape[0]):
                total += a[k, i] * b[k, j]
            out[i, j] = total


@inner
def copy(a: Array, out: Array) -> None:
    """out = a; array methods (a.copy(), out[:] = a, a.T.copy()) take Numba much longer to compile."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[i, j]


@inner
def fill(out: Array, value: float) -> None:
    """out = value, entry by entry."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value


@inner
def transpose(a: Array, out: Array) -> None:
    """out = aᵀ."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[j, i]


@inner
def add(out: Array, a: Array, scale: float) -> None:
    """out += scale·a."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += scale * a[i, j]


@inner
def product_trace(a: Array, b: Array) -> float:
    """tr(aᵀ b): the sum over all entries."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@inner
def congruence(x: Array, f: Array, scale: float, work: Array, out: Array) -> None:
    """out += scale·fᵀ x f for a symmetric x; the result is exactly symmetric."""
    multiply(x, f, work)
    for i in range(out.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(f.shape[0]):
                total += f[k, i] * work[k, j]
            out[i, j] += scale * total
            out[j, i] = out[i, j]


@inner
def solve(matrix: Array, right: Array) -> None:
    """Replace right by matrix⁻¹·right, and matrix by its Cholesky factor; NaN where it is not positive definite."""
    size = matrix.shape[0]
    for j in range(size):
        for k in range(j):
            for i in range(j, size):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
        pivot = np.sqrt(matrix[j, j])
        for i in range(j, size):
            matrix[i, j] /= pivot
    for column in range(right.shape[1]):
        for i in range(size):
            for k in range(i):
                right[i, column] -= matrix[i, k] * right[k, column]
            right[i, column] /= matrix[i, i]
        for i in range(size - 1, -1, -1):
            for k in range(i + 1, size):
                right[i, column] -= matrix[k, i] * right[k, column]
            right[i, column] /= matrix[i, i]


@part
def eliminate(matrix: Array, right: Array) -> None:
    """Replace right by matrix⁻¹·right, by Gaussian elimination with pivoting; matrix is overwritten."""
    size, columns = right.shape
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            for j in range(columns):
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k + 1, size):
                matrix[i, j] -= factor * matrix[k, j]
            for j in range(columns):
                right[i, j] -= factor * right[k, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            for j in range(columns):
                right[k, j] -= matrix[k, i] * right[i, j]
        for j in range(columns):
            right[k, j] /= matrix[k, k]
