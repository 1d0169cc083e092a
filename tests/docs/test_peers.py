"""The figures in docs/peers.md match the stored results, from which its picture is drawn."""

import json
import sys

import pytest
from matplotlib.figure import Figure
from pages import ROOT, text

sys.path.insert(0, str(ROOT / "benchmarks"))

import peers_shown


def found(played, centre, to=(0.0, 0.0), lost=0):
    """A row: medians; the differences to `auto`, with intervals of ±0.1 about them."""
    some = {"setting": None, "lost": lost, "played_each": [played]}
    for score, median, difference in (("played", played, to[0]), ("centre", centre, to[1])):
        some[score] = {"median": median, "low": median, "high": median}
        some[f"{score}_to_auto"] = {"median": difference, "low": difference - 0.1, "high": difference + 0.1}
    return some


ROWS = {
    "auto": found(1.0, 0.5),
    "still": found(2.0, 0.25, (1.0, -0.25)),
    "residual": found(1.05, 0.5, (0.05, 0.0)),
    "gone": found(float("inf"), float("inf"), (float("inf"), float("inf")), lost=1),
}


def test_the_page_tells_the_results():
    results = json.loads(text("docs/results/peers.json"))
    assert peers_shown.shown(results) in text("docs/peers.md")


def test_lost_trials_and_the_best_are_told():
    assert peers_shown.overview({"lqr": ROWS}).splitlines() == [
        "| | lqr |",
        "|---|---|",
        "| auto | **1** / 0.5 |",
        "| still | 2 / **0.25** |",
        "| residual | 1.05 / 0.5 |",
        "| gone | 1 of 1 lost |",
    ]


def test_nobody_pays_less():
    told = peers_shown.verdict("lqr", ROWS)
    assert told == (
        "residual costs about as much as `auto`. All others cost more. still has a better centre than `auto`."
    )


def test_a_peer_that_pays_less_is_recommended():
    better = {**ROWS, "cmaes CMA": found(0.5, 0.6, (-0.5, 0.1)), "pbgd": found(0.8, 0.6, (-0.2, 0.1))}
    told = peers_shown.verdict("pendulum", better)
    assert told.startswith("cmaes CMA and pbgd cost less than `auto`. residual costs about as much as `auto`.")
    assert told.endswith("measured from random starts, use cmaes CMA.**")


def test_an_interval_without_an_upper_end_is_an_arrow_to_the_edge(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    open_ended = {"median": 1.0, "low": 0.5, "high": float("inf")}
    peers_shown.draw({"lqr": {**ROWS, "reszo": {**ROWS["residual"], "played": open_ended}}}, tmp_path / "peers.png")
    (axis,) = (axis for axis in figures[0].axes if axis.get_title() == "lqr")
    (arrow,) = (text for text in axis.texts if getattr(text, "arrow_patch", None) is not None)
    assert arrow.xy[0] == 1.0  # of the width of the axis
    assert arrow.get_position()[0] == 0.5
    assert axis.get_xlim()[0] < 0.5


def test_a_page_without_marks_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("mine")
    with pytest.raises(SystemExit, match="no place"):
        peers_shown.refresh(page, {"lqr": ROWS})
    assert page.read_text() == "mine"


def test_results_go_between_the_marks(tmp_path):
    page, (first, last) = tmp_path / "page.md", peers_shown.MARKS
    page.write_text(f"before\n{first}\nold\n{last}\nafter\n")
    for _ in range(2):
        peers_shown.refresh(page, {"lqr": ROWS})
    told = page.read_text()
    assert told.startswith("before\n")
    assert told.endswith("after\n")
    assert "old" not in told
    assert told.count(peers_shown.shown({"lqr": ROWS})) == 1
