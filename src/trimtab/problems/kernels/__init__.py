"""Numba kernels of the simulated systems, one file per problem: many lanes at once.

A lane is one point of one trial; lanes run in parallel and share nothing that is written, so the numbers do not depend
on the number of threads or on what else is computed beside them. Whatever overflows comes out as inf.

Compiled code is cached beside its source, and Numba compiles anew when that file changes, not when a file that it calls
into does: whoever edits `matrices` or `compiling` has to remove `__pycache__/*.nb?` here.
"""
