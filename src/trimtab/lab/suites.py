"""Fixed lists of cells, problem × dimension × drift × noise, on which all methods are judged together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Place(NamedTuple):
    """One cell of a suite."""

    group: str
    held_out: bool
    problem: str
    parameters: dict[str, Any]
    rounds: int


def _convex(id: str, dim: int, drift: str, speed: float, noise: float, **more: Any) -> tuple[str, dict[str, Any]]:
    """A landscape about a moving point, a unit away at the start, probed by 0.2 of that."""
    radius = round(0.2 / math.sqrt(dim), 4)
    return id, {"dim": dim, "drift": drift, "speed": speed, "noise": noise, "radius": radius, **more}


def _drift() -> list[Place]:
    places: list[Place] = []

    def add(group: str, rounds: int, *pairs: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]) -> None:
        for pair in pairs:
            places.extend(Place(group, bool(k), *cell, rounds) for k, cell in enumerate(pair))

    def q(dim: int, condition: float, drift: str, speed: float, noise: float, **more: Any) -> tuple[str, dict[str, Any]]:
        more = {"offset": 0.002, "condition": condition, **more}
        return _convex("quadratic-v1", dim, drift, speed, noise, **more)

    def box(dim: int, condition: float, drift: str, speed: float, noise: float) -> tuple[str, dict[str, Any]]:
        return _convex("corner-v1", dim, drift, speed, noise, condition=condition, offset=0.002)

    def kink(id: str, dim: int, drift: str, speed: float, noise: float) -> tuple[str, dict[str, Any]]:
        return _convex(id, dim, drift, speed, noise, offset=0.002)

    literal, zero, noisy = "lqr-v1", "lqr-zero-mean-v1", "lqr-noisy-v1"
    add("LQR", 50, ((literal, {}), (literal, {"radius": 0.1})))
    add("LQR", 80, ((literal, {"drift": 0.006}), (literal, {"drift": 0.006, "gain_std": 0.2})))
    add("LQR 0-mean", 200, ((zero, {}), (zero, {"radius": 0.05})), ((zero, {"drift": 0.02}), (zero, {"gain_std": 0.2})))
    add("LQR noisy", 40, ((noisy, {}), (noisy, {"radius": 0.1})), ((noisy, {"sigma_w": 0.3}), (noisy, {"sigma_w": 0.2})))
    add("allocation", 200, (("allocation-v1", {}), ("allocation-per-agent-v1", {})))
    add(
        *("d = 2", 1000),
        (q(2, 1, "walk", 0.01, 0.0), q(2, 1, "walk", 0.02, 0.003)),
        (q(2, 100, "line", 0.003, 0.003), q(2, 100, "line", 0.005, 0.0)),
        (q(2, 1, "line", 0.03, 0.01), q(2, 10, "line", 0.02, 0.01)),
        (q(2, 100, "walk", 0.003, 0.1), q(2, 1, "walk", 0.005, 0.1)),
    )
    add(
        *("d = 10", 1000),
        (q(10, 1, "walk", 0.01, 0.003), q(10, 1, "walk", 0.02, 0.0)),
        (q(10, 100, "line", 0.003, 0.0), q(10, 100, "line", 0.002, 0.003)),
        (q(10, 1, "line", 0.01, 0.01), q(10, 10, "line", 0.01, 0.01)),
        (q(10, 100, "walk", 0.003, 0.1, rotate=True), q(10, 1, "walk", 0.005, 0.1)),
    )
    add(
        *("d = 100", 1500),
        (q(100, 1, "walk", 0.003, 0.003), q(100, 1, "walk", 0.006, 0.0)),
        (q(100, 100, "line", 0.001, 0.0), q(100, 100, "line", 0.0005, 0.003)),
        (q(100, 1, "line", 0.003, 0.01), q(100, 10, "line", 0.002, 0.01)),
        (q(100, 100, "walk", 0.001, 0.05), q(100, 1, "walk", 0.002, 0.05)),
    )
    add(
        *("d = 1000", 1500),
        (q(1000, 1, "walk", 0.001, 0.003), q(1000, 1, "line", 0.0003, 0.001)),
        (q(1000, 100, "line", 0.0003, 0.0), q(1000, 100, "walk", 0.001, 0.003)),
    )
    add(
        *("nonsmooth", 1000),
        (kink("absolute-v1", 10, "walk", 0.01, 0.003), kink("absolute-v1", 10, "line", 0.003, 0.0)),
        (kink("absolute-v1", 100, "line", 0.001, 0.0), kink("absolute-v1", 50, "walk", 0.003, 0.01)),
        (kink("logcosh-v1", 10, "line", 0.005, 0.01), kink("logcosh-v1", 20, "walk", 0.01, 0.003)),
    )
    add(
        *("jumps", 1000),
        (q(2, 1, "jumps", 0.01, 0.003, every=100), q(2, 10, "jumps", 0.005, 0.0, every=200)),
        (q(10, 10, "jumps", 0.005, 0.003, every=200), q(10, 1, "jumps", 0.01, 0.01, every=200)),
        (q(50, 1, "jumps", 0.004, 0.0, every=500), q(50, 10, "jumps", 0.002, 0.003, every=500)),
    )
    add(
        *("box", 1000),
        (box(2, 1, "walk", 0.01, 0.003), box(2, 10, "line", 0.003, 0.0)),
        (box(10, 10, "line", 0.003, 0.003), box(10, 1, "walk", 0.01, 0.01)),
        (box(100, 1, "walk", 0.003, 0.0), box(100, 10, "walk", 0.003, 0.003)),
    )
    return places


SUITES = {"drift": tuple(_drift())}
