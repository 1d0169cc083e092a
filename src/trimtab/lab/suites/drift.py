"""The development cells of the suite `drift`, on which constants may be tuned: problem × dimension × drift × noise.

`trimtab.lab.suites.held_out` generates cells that were never used for tuning.
"""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple

from trimtab.lab.sim.provenance import Plain

# Landscapes start at distance 1 from the optimum, with a probe length of 0.2; "-" keeps the default of a parameter.
TABLE = """
group       rounds  problem                  dim   condition  drift  speed   noise  more
LQR         50      lqr-v1                   -     -          -      -       -
LQR         50      lqr-v1                   -     -          -      -       -      radius=0.1
LQR         80      lqr-v1                   -     -          -      -       -      drift=0.006
LQR         80      lqr-v1                   -     -          -      -       -      drift=0.006 gain_std=0.2
LQR 0-mean  200     lqr-zero-mean-v1         -     -          -      -       -
LQR 0-mean  200     lqr-zero-mean-v1         -     -          -      -       -      radius=0.05
LQR 0-mean  200     lqr-zero-mean-v1         -     -          -      -       -      drift=0.02
LQR 0-mean  200     lqr-zero-mean-v1         -     -          -      -       -      gain_std=0.2
LQR noisy   40      lqr-noisy-v1             -     -          -      -       -
LQR noisy   40      lqr-noisy-v1             -     -          -      -       -      radius=0.1
LQR noisy   40      lqr-noisy-v1             -     -          -      -       -      sigma_w=0.3
LQR noisy   40      lqr-noisy-v1             -     -          -      -       -      sigma_w=0.2
allocation  200     allocation-v1            -     -          -      -       -
allocation  200     allocation-per-agent-v1  -     -          -      -       -
d = 2       1000    quadratic-v1             2     1          walk   0.01    0
d = 2       1000    quadratic-v1             2     1          walk   0.02    0.003
d = 2       1000    quadratic-v1             2     100        line   0.003   0.003
d = 2       1000    quadratic-v1             2     100        line   0.005   0
d = 2       1000    quadratic-v1             2     1          line   0.03    0.01
d = 2       1000    quadratic-v1             2     10         line   0.02    0.01
d = 2       1000    quadratic-v1             2     100        walk   0.003   0.1
d = 2       1000    quadratic-v1             2     1          walk   0.005   0.1
d = 10      1000    quadratic-v1             10    1          walk   0.01    0.003
d = 10      1000    quadratic-v1             10    1          walk   0.02    0
d = 10      1000    quadratic-v1             10    100        line   0.003   0
d = 10      1000    quadratic-v1             10    100        line   0.002   0.003
d = 10      1000    quadratic-v1             10    1          line   0.01    0.01
d = 10      1000    quadratic-v1             10    10         line   0.01    0.01
d = 10      1000    quadratic-v1             10    100        walk   0.003   0.1    rotate=true
d = 10      1000    quadratic-v1             10    1          walk   0.005   0.1
d = 100     1500    quadratic-v1             100   1          walk   0.003   0.003
d = 100     1500    quadratic-v1             100   1          walk   0.006   0
d = 100     1500    quadratic-v1             100   100        line   0.001   0
d = 100     1500    quadratic-v1             100   100        line   0.0005  0.003
d = 100     1500    quadratic-v1             100   1          line   0.003   0.01
d = 100     1500    quadratic-v1             100   10         line   0.002   0.01
d = 100     1500    quadratic-v1             100   100        walk   0.001   0.05
d = 100     1500    quadratic-v1             100   1          walk   0.002   0.05
d = 1000    1500    quadratic-v1             1000  1          walk   0.001   0.003
d = 1000    1500    quadratic-v1             1000  1          line   0.0003  0.001
d = 1000    1500    quadratic-v1             1000  100        line   0.0003  0
d = 1000    1500    quadratic-v1             1000  100        walk   0.001   0.003
nonsmooth   1000    absolute-v1              10    -          walk   0.01    0.003
nonsmooth   1000    absolute-v1              10    -          line   0.003   0
nonsmooth   1000    absolute-v1              100   -          line   0.001   0
nonsmooth   1000    absolute-v1              50    -          walk   0.003   0.01
nonsmooth   1000    logcosh-v1               10    -          line   0.005   0.01
nonsmooth   1000    logcosh-v1               20    -          walk   0.01    0.003
jumps       1000    quadratic-v1             2     1          jumps  0.01    0.003  every=100
jumps       1000    quadratic-v1             2     10         jumps  0.005   0      every=200
jumps       1000    quadratic-v1             10    10         jumps  0.005   0.003  every=200
jumps       1000    quadratic-v1             10    1          jumps  0.01    0.01   every=200
jumps       1000    quadratic-v1             50    1          jumps  0.004   0      every=500
jumps       1000    quadratic-v1             50    10         jumps  0.002   0.003  every=500
box         1000    corner-v1                2     1          walk   0.01    0.003
box         1000    corner-v1                2     10         line   0.003   0
box         1000    corner-v1                10    10         line   0.003   0.003
box         1000    corner-v1                10    1          walk   0.01    0.01
box         1000    corner-v1                100   1          walk   0.003   0
box         1000    corner-v1                100   10         walk   0.003   0.003
wall        1000    corner-v1                2     1          walk   0.01    0.003  walls=1 gap=0.07
wall        1000    corner-v1                10    10         line   0.003   0      walls=3 gap=0.03
allocation  200     allocation-v1            -     -          -      -       -      network=0
allocation  200     allocation-v1            -     -          -      -       -      network=1
allocation  200     allocation-v1            -     -          -      -       -      network=3
allocation  200     allocation-v1            -     -          -      -       -      network=4
"""


class Cell(NamedTuple):
    """One cell of a suite."""

    group: str
    problem: str
    parameters: dict[str, Plain]
    rounds: int
    lag: int | None = None
    """The delay of values in rounds, in the suite `late`."""
    permuted: bool = False


def sensible_radius(dim: int) -> float:
    """The radius per coordinate of probes of length 0.2, relative to the initial distance of landscapes."""
    return round(0.2 / math.sqrt(dim), 4)


def _places(table: str) -> tuple[Cell, ...]:
    head, *rows = ([*re.split(r"\s{2,}", line.strip()), ""] for line in table.strip().splitlines())
    places = []
    for row in rows:
        cell = dict(zip(head, row, strict=False))
        given = {name: cell[name] for name in ("dim", "condition", "drift", "speed", "noise") if cell[name] != "-"}
        given |= dict(pair.split("=") for pair in cell["more"].split())
        parameters = {name: _value(text) for name, text in given.items()}
        if cell["dim"] != "-":
            parameters = {"radius": sensible_radius(int(cell["dim"])), "offset": 0.002, **parameters}
        places.append(Cell(cell["group"], cell["problem"], parameters, int(cell["rounds"])))
    return tuple(places)


def _value(text: str) -> Plain:
    try:
        value: Plain = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value


DRIFT = _places(TABLE)
