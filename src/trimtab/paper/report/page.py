"""Write `report.html`, one self-contained page for readers who do not know the paper."""

from __future__ import annotations

import base64
from importlib.resources import files
from pathlib import Path

from trimtab.paper.experiments import LITERAL, MODES
from trimtab.paper.intervals import covered, written
from trimtab.paper.report.mathml import typeset
from trimtab.paper.report.prose import CAPTIONS, OPEN, SLIPS
from trimtab.paper.result_types import MethodResult, Results, Setting, Spread
from trimtab.paper.results import NETWORKS
from trimtab.paper.verdicts.claims import compared, said
from trimtab.plotting import colour_of
from trimtab.util.extras import pip_install
from trimtab.util.files import write_atomically

HEADLINE = (("lqr-r1", "R1, exact values"), ("lqr-r2", "R2, zero-mean drift"), (LITERAL, "R3, noisy rollouts"))
SCORED = (("regret", "own", "centre"), ("played", "own", "played"), ("played", "shared", "played, δ shared"))
RIVALS = ("one-point", "two-point-forward", "two-point", "still")


def write_report(folder: Path, results: Results, figures: dict[str, list[Path]]) -> Path:
    """Write the page with its figures embedded."""
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(f"the report needs jinja2: {pip_install('lab')}") from error
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": written, "brief": _brief}
    environment.filters |= {"set": lambda text: Markup(typeset(text)), "spread": lambda one: Markup(_spread(one))}
    template = environment.from_string((files("trimtab.paper.report") / "report.html").read_text(encoding="utf-8"))
    mode = MODES[results["mode"]]
    verdicts = [claim["verdict"] for claim in results["claims"]]
    page = template.render(
        results=results,
        mode=mode,
        captions=CAPTIONS,
        pictures={name: [_embedded(file) for file in some if file.suffix == ".svg"] for name, some in figures.items()},
        open=OPEN,
        slips=SLIPS,
        colour=colour_of,
        headline=_headline(results),
        together=_together(results),
        rivals=RIVALS,
        literal=LITERAL,
        covered=f"{100 * covered(mode.network_trials):.3g} %",
        counts={verdict: verdicts.count(verdict) for verdict in ("holds", "partly", "fails")},
        command=f"trimtab paper{'' if mode.name == 'default' else f' --{mode.name}'} --seed {results['seed']}",
    )
    target = folder / "report.html"
    write_atomically(target, page.encode())
    return target


def _headline(results: Results) -> list[tuple[str, str, list[str]]]:
    """Ratios of residual feedback to its rivals: centre and queries with own radii, queries with the shared radius."""
    rows = []
    for id, title in (
        *HEADLINE,
        (NETWORKS, f"allocation, {len(results['experiments']['allocation']['networks'])} networks"),
    ):
        for what, convention, words in SCORED:
            ratios = [said(compared(results, id, "residual", rival, what, convention)) for rival in RIVALS]
            rows.append((title, words, ratios))
    return rows


def _together(results: Results) -> list[tuple[str, list[str]]]:
    """The same ratios over all networks, for each other method."""
    return [
        (
            name,
            [said(compared(results, NETWORKS, "residual", name, what, convention)) for what, convention, _ in SCORED],
        )
        for name in results["experiments"]["allocation"]["networks"][0]["methods"]
        if name != "residual"
    ]


def _embedded(file: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(file.read_bytes()).decode()


def _spread(values: Spread) -> str:
    """Format a median with its interval, without a line break."""
    between = f"({written(values['low'])}–{written(values['high'])})"
    return f'<span>{written(values["median"])} <span class="range">{between}</span></span>'


def _brief(found: MethodResult | Setting) -> str:
    """Format δ and η."""
    step = f", η\u00a0{written(found['step'])}" if found["step"] is not None else ""
    return f"δ\u00a0{written(found['radius'])}{step}"
