"""`report.html`: one page with everything in it, for someone who has not read the paper."""

from __future__ import annotations

import base64
from importlib.resources import files
from pathlib import Path

from trimtab.files import write_atomically
from trimtab.lab.drawing import colour_of
from trimtab.paper.document import Number, Results, Spread
from trimtab.paper.experiments import MODES, OPEN, SLIPS

CAPTIONS = {
    "idea": "Left: a cost in two consecutive rounds; it can be measured once in each. One-point feedback builds on the"
    " height of the new value, residual feedback on its difference from the last. Right: both are right on average,"
    " but the second is far less noisy.",
    "figure-1a": "Figure 1(a) of the paper: accumulated regret on the drifting LQR problem (R1). Lines are medians,"
    " bands quartiles; a line ends where more than half of the trials have diverged.",
    "figure-1b": "Figure 1(b): variance of the gradient estimates along the run (R1). Left, as in the paper, where each"
    " method is; right, at the same point for all, which is the fairer comparison.",
    "figure-2a": "Figure 2(a): cost of resource allocation. The common sensitivity ζ_t swings the cost of everybody;"
    " the right panel divides it out, and shows the uniform policy (where all start) and the offline optimum.",
    "figure-2b": "Figure 2(b): variance of the estimates at agent 1, own iterate and common point.",
    "lqr-r2": "R2, which the paper does not have: drift without a mean, so that nothing becomes unstable and runs can"
    " be long.",
    "incurred": "What probing costs: regret at the centre (full) and of what was played (light). The paper reports the"
    " first, a running system pays the second.",
    "sensitivity": "How well step and radius must be chosen: median regret by δ and η (stars: the best; hatched: a"
    " quarter of the trials or more diverge). Chosen in hindsight, on the trials shown.",
    "limits": "Where the claims stop holding: noise in the rollouts; x₀ drawn anew in each, which adds noise that the"
    " difference cannot cancel; and a radius too small for the noise.",
    "toy": "The example of Section 3: the level of the cost is a random walk. The second moment of the one-point"
    " estimate follows it; that of the residual does not.",
}


def write_report(folder: Path, results: Results, figures: dict[str, list[Path]]) -> Path:
    """The page, with its pictures inside it."""
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise ImportError('the report needs jinja2: pip install "trimtab[lab]"') from error
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = _number
    environment.filters["spread"] = _spread
    template = environment.from_string((files("trimtab.paper") / "report.html").read_text(encoding="utf-8"))
    mode = MODES[results["mode"]]
    verdicts = [claim["verdict"] for claim in results["claims"]]
    page = template.render(
        results=results,
        mode=mode,
        captions=CAPTIONS,
        pictures={name: _embedded(files[0]) for name, files in figures.items()},
        open=OPEN,
        slips=SLIPS,
        colour=colour_of,
        counts={verdict: verdicts.count(verdict) for verdict in ("holds", "partly", "fails")},
        command=f"trimtab paper{'' if mode.name == 'default' else f' --{mode.name}'} --seed {results['seed']}",
    )
    target = folder / "report.html"
    write_atomically(target, page.encode())
    return target


def _embedded(file: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(file.read_bytes()).decode()


def _number(value: Number) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.3g}"


def _spread(values: Spread | None) -> str:
    if values is None:
        return "–"
    return f"{_number(values['median'])} ({_number(values['q25'])} – {_number(values['q75'])})"
