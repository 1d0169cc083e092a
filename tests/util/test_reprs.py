"""One-line representations, at the prompt and in notebooks."""

import numpy as np

import trimtab as tt
from trimtab.live import Study
from trimtab.monitor.savings import Saving
from trimtab.util.reprs import line

KNOBS = [
    {"name": "batch", "low": 1, "high": 512, "start": 32, "type": "integer", "scale": "log"},
    {"name": "codec", "choices": ["<b>zip</b>", "zstd"], "start": "<b>zip</b>"},
]


def test_a_tuner_shows_its_knobs():
    tuner = tt.Tuner(knobs=KNOBS, seed=0)
    assert repr(tuner) == "<Tuner round=0 centre=(batch=32, codec='<b>zip</b>') method='auto'>"
    tuner.tell(tuner.ask(), 12.5)
    assert "round=1" in repr(tuner)
    assert "value=12.5" in repr(tuner)


def test_long_values_are_shortened_and_counted():
    assert repr(tt.Tuner(np.zeros(1000), tt.residual(radius=0.1, step=0.1), seed=0)) == (
        "<Tuner round=0 centre=[0, 0, 0, 0, 0, 0, … 1000 in all] method='residual'>"
    )
    lanes = tt.Tuner(np.zeros((64, 10)), tt.residual(radius=0.1, step=0.1), seed=0)
    lanes.tell(lanes.ask(), np.ones(64))
    assert repr(lanes) == "<Tuner lanes=64 dim=10 round=1 method='residual'>"


def test_a_study_shows_its_name_and_knobs():
    with Study.open(":memory:", "press", KNOBS, seed=0) as study:
        assert repr(study) == "<Study 'press' round=0 centre=(batch=32, codec='<b>zip</b>')>"
        study.tell(study.ask(), 12.5)
        assert repr(study).endswith("value=12.5>")
    assert "press" in repr(study)  # also after it was closed


def test_a_saving_shows_its_sentence():
    saving = Saving(100, 5, 3.0, 4.0, 1.0, None, None, None, None, None, None, "saves 25 %")
    assert repr(saving) == "<Saving 'saves 25 %' rounds=100 baseline_rounds=5 paid=3 baseline=4 saved=1>"
    assert "saves 25 %" in saving._repr_html_()


def test_text_is_escaped_in_notebooks():
    with Study.open(":memory:", "press", KNOBS, seed=0) as study:
        for shown in (tt.Tuner(knobs=KNOBS, seed=0)._repr_html_(), study._repr_html_()):
            assert "<b>zip" not in shown
            assert "&lt;b&gt;zip&lt;/b&gt;" in shown
            assert "batch=32" in shown
    saving = Saving(0, 0, None, None, None, None, None, None, None, None, None, "<script>")
    assert "<script>" not in saving._repr_html_()


def test_a_representation_stays_on_one_line():
    told = line("Study", [("", "x" * 500), ("note", "two\nlines"), ("numbers", list(range(9)))])
    assert "\n" not in told
    assert len(told) < 150
