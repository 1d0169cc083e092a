"""The moving picture is of a run as README tells it, with the method of now."""

import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from pages import ROOT, text

sys.path.insert(0, str(ROOT / "docs" / "draw"))

import moving


def test_what_is_paid_is_as_told():
    best, _, probes = moving.run()
    told = re.search(r"mean excess cost ([\d.]+), against ([\d.]+) with fixed knobs", text("README.md"))
    assert moving.excess(probes, best).mean() == pytest.approx(float(told[1]), rel=0.25)
    assert moving.excess(moving.START, best).mean() == pytest.approx(float(told[2]), rel=0.01)
    assert ((probes >= 0) & (probes <= 1)).all()


def test_it_is_drawn_anew_as_it_is_stored(tmp_path):
    moving.draw(tmp_path / "moving.svg")
    kept, drawn = (
        path.read_text(encoding="utf-8") for path in (ROOT / "docs/pictures/moving.svg", tmp_path / "moving.svg")
    )
    shape = [re.sub(r"-?\d+(\.\d+)?", "0", svg) for svg in (kept, drawn)]
    assert shape[0] == shape[1]  # numbers may differ in their last digits elsewhere


def test_it_moves_without_scripts_and_stands_still_for_those_who_ask():
    svg = text("docs/pictures/moving.svg")
    tags = {element.tag.partition("}")[2] for element in ET.fromstring(svg).iter()}
    assert "script" not in tags
    assert "prefers-reduced-motion" in svg
    assert len(re.findall(r"\d%\{transform", svg)) > 3 * moving.ROUNDS
    assert np.isfinite([float(number) for number in re.findall(r"translate\((-?[\d.]+)px", svg)]).all()
