"""The table of docs/peers.md is that of the results that are stored, from which its picture is drawn."""

import json
import sys

from pages import ROOT, text

sys.path.insert(0, str(ROOT / "benchmarks"))

import peers_shown


def test_the_table_is_of_the_results():
    results = json.loads(text("docs/results/peers.json"))
    assert peers_shown.table(results) in text("docs/peers.md")


def test_lost_trials_and_the_best_are_told():
    rows = {
        "auto": {"lost": 0, "played_each": [1.0], "played": {"median": 1.0}, "centre": {"median": 0.5}},
        "still": {"lost": 0, "played_each": [2.0], "played": {"median": 2.0}, "centre": {"median": 0.25}},
        "gone": {"lost": 1, "played_each": [9.0], "played": {"median": float("inf")}, "centre": {"median": 3.0}},
    }
    lines = peers_shown.table({"arena": rows}).splitlines()
    assert lines == [
        "| | arena |",
        "|---|---|",
        "| auto | **1** / 0.5 |",
        "| still | 2 / **0.25** |",
        "| gone | 1 of 1 lost |",
    ]
