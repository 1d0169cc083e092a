"""A simulated system to try `trimtab tune` on: it takes two knobs and prints the cost. Written by `trimtab init`.

A pump fills a tank. The best valve opening and the best pump speed are unknown, and drift with weather and load. Each
call prints one noisy number. Replace it by any program that takes the knobs and prints a number.

    KNOB_VALVE=20 KNOB_PUMP=200 TRIMTAB_ROUND=7 python simulator.py
"""

import math
import os
import random


def best(round: int) -> tuple[float, float]:
    """Return the best setting in this round: valve in %, pump in rpm."""
    turn = 2 * math.pi * round / 1500
    return 60 + 15 * math.sin(turn), 900 * 1.5 ** math.sin(turn / 2 + 1)


def cost(round: int, valve: float, pump: float) -> float:
    """Return the energy per litre: lowest at the best setting, with drift and noise."""
    best_valve, best_pump = best(round)
    miss = ((valve - best_valve) / 100) ** 2 + (math.log(pump / best_pump) / math.log(30)) ** 2
    noise = random.Random(f"noise {round}").gauss(0, 0.02)
    return 3 + 0.3 * math.sin(round / 200) + 10 * miss + noise


if __name__ == "__main__":
    now = int(os.environ.get("TRIMTAB_ROUND", "0"))
    print(cost(now, float(os.environ["KNOB_VALVE"]), float(os.environ["KNOB_PUMP"])))
