"""The moving picture: two knobs of a drifting system, tracked from one noisy measurement a round, as an animated SVG.

All of it is one run of `tt.Tuner`, round by round. It moves by CSS alone, so that it does wherever pictures are shown;
whoever has asked for less motion sees the whole run at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import trimtab as tt
from trimtab.plotting import BLUE, GREY, SANS, VERMILION

ROUNDS, JUMP, SECONDS = 360, 240, 24
START, SIDE, TOP = np.array([0.12, 0.2]), 300, 34  # where it begins; pixels of the map, and above it
LEFT, WIDTH, HEIGHT = 400, 440, 300  # of the curves
GHOSTS = 10  # probes that are seen at a time
BEST, WORST = 3e-4, 5.0  # the axis of the cost
STEEP = np.array([4.0, 8.0])


def run() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the optimum, the operating point and the probe were in each round."""
    t = np.arange(ROUNDS)
    angle = 2 * np.pi * t / 300
    best = np.stack([0.5 + 0.3 * np.cos(angle + 2.4), 0.55 + 0.25 * np.sin(angle + 2.4)], axis=1)
    best[JUMP:] += [0.25, -0.3]
    tuner = tt.Tuner(START, bounds=[(0, 1), (0, 1)], seed=8)
    noise = np.random.default_rng(1)
    centres, probes = [], []
    for now in best:
        trial = tuner.ask()
        centres.append(tuner.centre)
        probes.append(trial.x)
        tuner.tell(trial, excess(trial.x, now) + 0.01 * noise.standard_normal())
    return best, np.array(centres), np.array(probes)


def excess(x: np.ndarray, best: np.ndarray) -> np.ndarray:
    """The cost above the best, without noise."""
    return np.asarray((STEEP * (x - best) ** 2).sum(axis=-1))


def draw(path: Path) -> None:
    """Write the picture."""
    best, centres, probes = run()
    paid, still = excess(probes, best), excess(START, best)
    print(f"mean excess cost: {paid.mean():.3f}; with fixed knobs: {still.mean():.3f}")
    path.write_text("\n".join([*_head(best, centres, probes), *_map(best, centres), *_curves(paid, still), "</svg>\n"]))


def _place(x: np.ndarray) -> np.ndarray:
    return np.asarray([20, TOP] + SIDE * (x * [1, -1] + [0, 1]))


def _frames(name: str, rows: list[str]) -> str:
    at = np.linspace(0, 96, len(rows))  # and then it stands for a while
    return f"@keyframes {name}{{" + "".join(f"{p:.2f}%{{{row}}}" for p, row in zip(at, rows, strict=True)) + "}"


def _moves(x: np.ndarray) -> list[str]:
    return [f"transform:translate({a:.1f}px,{b:.1f}px)" for a, b in _place(x)]


def _line(points: np.ndarray) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _head(best: np.ndarray, centres: np.ndarray, probes: np.ndarray) -> list[str]:
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(_place(centres), axis=0), axis=1))])
    drawn = [f"stroke-dashoffset:{1 - share:.4f}" for share in lengths / lengths[-1]]
    smooth = f"{SECONDS}s linear infinite"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 370" font-family="{SANS}" font-size="14" '
        'role="img" aria-label="Two knobs of a drifting system, tracked from one noisy measurement a round">',
        "<style>",
        f"text{{fill:{GREY}}}.b{{fill:{BLUE}}}.o{{fill:{VERMILION}}}",
        _frames("o", _moves(best)),
        _frames("c", _moves(centres)),
        _frames("p", _moves(probes)),
        _frames("d", drawn),
        "@keyframes w{0%{transform:scaleX(0)}96%{transform:scaleX(1)}}",
        f"#o{{animation:o {smooth}}}#c{{animation:c {smooth}}}#d{{animation:d {smooth}}}#w{{animation:w {smooth}}}",
        f".p{{animation:p {SECONDS}s step-end infinite}}",
        "@media (prefers-reduced-motion:reduce){*{animation:none!important}.p{display:none}}",
        "</style>",
    ]


def _map(best: np.ndarray, centres: np.ndarray) -> list[str]:
    """The plane of the two knobs."""
    rings = [SIDE * np.sqrt(level / STEEP) for level in (0.02, 0.08, 0.2)]
    last = {
        name: "transform:translate({:.1f}px,{:.1f}px)".format(*_place(x[-1]))
        for name, x in (("o", best), ("c", centres))
    }
    step = 0.96 * SECONDS / (ROUNDS - 1)
    ghosts = [
        f'<circle class="p b" r="3.5" opacity="{0.75 * (1 - k / GHOSTS):.2f}" '
        f'style="animation-delay:{k * step - SECONDS:.3f}s"/>'
        for k in range(GHOSTS)
    ]
    ellipses = "".join(f'<ellipse rx="{a:.1f}" ry="{b:.1f}"/>' for a, b in rings)
    return [
        f'<clipPath id="m"><rect x="20" y="{TOP}" width="{SIDE}" height="{SIDE}"/></clipPath>',
        f'<text x="20" y="{TOP - 13}">two knobs, one noisy measurement per round</text>',
        f'<text x="20" y="{TOP + SIDE + 22}"><tspan class="o">× optimum</tspan>'
        '<tspan class="b" dx="14">○ operating point</tspan><tspan class="b" dx="14">● probes</tspan></text>',
        f'<rect x="20" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{GREY}" stroke-opacity=".6"/>',
        '<g clip-path="url(#m)">',
        f'<g id="o" style="{last["o"]}"><g fill="{VERMILION}" fill-opacity=".14">{ellipses}</g>'
        f'<path d="M-6-6L6 6M-6 6L6-6" stroke="{VERMILION}" stroke-width="2.5"/></g>',
        f'<path id="d" d="{_line(_place(centres))}" fill="none" stroke="{BLUE}" stroke-opacity=".7" stroke-width="1.5" '
        'pathLength="1" stroke-dasharray="1"/>',
        *ghosts,
        f'<g id="c" style="{last["c"]}"><circle r="6" fill="none" stroke="{BLUE}" stroke-width="3"/></g>',
        "</g>",
    ]


def _curves(paid: np.ndarray, still: np.ndarray) -> list[str]:
    """The excess cost of each round, with trimtab and with fixed knobs."""

    def line(values: np.ndarray) -> str:
        share = np.log(np.clip(values, BEST, WORST) / BEST) / np.log(WORST / BEST)
        x = LEFT + WIDTH * np.arange(ROUNDS) / (ROUNDS - 1)
        return _line(np.stack([x, TOP + HEIGHT * (1 - share)], axis=1))

    ticks = []
    for level, label in ((1.0, "1"), (0.1, "0.1"), (0.01, "0.01"), (0.001, "0.001")):
        y = TOP + HEIGHT * (1 - np.log(level / BEST) / np.log(WORST / BEST))
        ticks += [
            f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="{GREY}" stroke-opacity=".25"/>',
            f'<text x="{LEFT - 6}" y="{y + 5:.1f}" text-anchor="end">{label}</text>',
        ]
    jump = LEFT + WIDTH * JUMP / (ROUNDS - 1)
    return [
        f'<text x="{LEFT}" y="{TOP - 13}">excess cost of a round, unknown to the tuner</text>',
        *ticks,
        f'<path d="M{jump:.1f} {TOP}v{HEIGHT}" stroke="{VERMILION}" stroke-dasharray="4 4"/>',
        f'<text class="o" x="{jump + 5:.1f}" y="{TOP + HEIGHT - 8}">the optimum jumps</text>',
        # The curves are there from the beginning; what hides them is scaled away.
        f'<clipPath id="k"><rect id="w" x="{LEFT}" y="0" width="{WIDTH}" height="370" '
        f'style="transform-origin:{LEFT}px 0"/></clipPath>',
        '<g clip-path="url(#k)" fill="none" stroke-width="1.8">',
        f'<path d="{line(still)}" stroke="{GREY}"/>',
        f'<path d="{line(paid)}" stroke="{BLUE}"/>',
        "</g>",
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 22}" text-anchor="end">{ROUNDS} rounds</text>',
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 22}">fixed knobs</text>',
        f'<text class="b" x="{LEFT + 120}" y="{TOP + HEIGHT + 22}">trimtab, probes included</text>',
    ]
