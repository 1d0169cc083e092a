"""A drifting system to try `trimtab tune` on: set two knobs, get the cost of this round. `trimtab init` puts it here.

A pump fills a tank: the valve has its best opening, the pump its best speed, and both wander as the weather and the
load change. Nobody knows where they are; one noisy number comes out per call. Any program can stand in its place that
takes the knobs and prints a number.

    KNOB_VALVE=20 KNOB_PUMP=200 TRIMTAB_ROUND=7 python simulator.py
"""

import math
import os
import random


def best(round: int) -> tuple[float, float]:
    """Where the system runs best in this round: valve in %, pump in rpm."""
    turn = 2 * math.pi * round / 1500
    return 60 + 15 * math.sin(turn), 900 * 1.5 ** math.sin(turn / 2 + 1)


def cost(round: int, valve: float, pump: float) -> float:
    """Energy per litre: least at the best setting, drifting itself, and measured with noise."""
    best_valve, best_pump = best(round)
    miss = ((valve - best_valve) / 100) ** 2 + (math.log(pump / best_pump) / math.log(30)) ** 2
    noise = random.Random(f"noise {round}").gauss(0, 0.02)
    return 3 + 0.3 * math.sin(round / 200) + 10 * miss + noise


if __name__ == "__main__":
    now = int(os.environ.get("TRIMTAB_ROUND", "0"))
    print(cost(now, float(os.environ["KNOB_VALVE"]), float(os.environ["KNOB_PUMP"])))
