import json
import math

import numpy as np
import pytest

from trimtab.lab import Record, quantiles, run
from trimtab.lab.sim.provenance import plain
from trimtab.lab.sim.record import spread
from trimtab.recipes import residual


@pytest.fixture(scope="module")
def record():
    return run(
        "quadratic-v1",
        residual(radius=0.05, step=0.03),
        rounds=30,
        trials=6,
        seed=3,
        gradients=True,
        variance_at=[5, 20],
    )


def test_quantiles_are_numpys_where_all_is_finite():
    values = np.random.default_rng(0).standard_normal((17, 4))
    np.testing.assert_allclose(quantiles(values), np.quantile(values, [0.25, 0.5, 0.75], axis=0))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, math.inf], [1.75, 2.5, math.inf]),
        ([1, math.inf, math.inf], [math.inf, math.inf, math.inf]),
        ([-math.inf, 1, 2, 3, 4], [1, 2, 3]),
        ([1, math.nan, 3], [math.nan] * 3),
        ([5], [5, 5, 5]),
    ],
)
def test_quantiles_with_infinities(values, expected):
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(quantiles(values), expected)


def test_spread_is_json():
    assert spread(np.array([1.0, 2.0, np.inf])) == {"median": 2.0, "q25": 1.5, "q75": "inf"}
    assert plain(math.nan) is None
    assert plain(-math.inf) == "-inf"


def test_regrets_are_sums_of_differences(record):
    np.testing.assert_allclose(record.regret(), np.cumsum(record.cost - record.optimum, axis=1))
    np.testing.assert_allclose(record.regret(of="incurred"), np.cumsum(record.incurred - record.optimum, axis=1))
    np.testing.assert_allclose(record.regret("gradient"), np.cumsum(record.gradient, axis=1))
    np.testing.assert_allclose(record.score(), record.regret()[:, -1])
    assert np.isnan(record.regret("static")).all()  # not asked for
    with pytest.raises(ValueError, match="kind='best' is not a kind of regret: choose from"):
        record.regret("best")


def test_save_and_load(record, tmp_path):
    record.save(tmp_path / "deep" / "r")
    again = Record.load(tmp_path / "deep" / "r")
    for name in ("cost", "incurred", "optimum", "distance", "gradient", "final", "diverged_at", "variance"):
        np.testing.assert_array_equal(getattr(again, name), getattr(record, name))
    assert again.about == record.about
    assert json.loads((tmp_path / "deep" / "r.json").read_text()) == record.summary()
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["r.json", "r.npz"]


def test_a_foreign_file_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved file"):
        Record.load(tmp_path / "x")


def test_the_summary_has_what_a_script_wants(record):
    summary = record.summary()
    assert set(summary["regret"]) == {"median", "q25", "q75"}
    assert summary["diverged"] == 0
    assert summary["step"] == 0.03
    assert summary["variance"]["round"] == [5, 20]
    json.dumps(summary, allow_nan=False)


def test_a_record_is_shown_in_one_line(record):
    assert repr(record).startswith("<Record 'Residual' problem='quadratic-v1' trials=6 rounds=30 cost=")
    assert repr(record).endswith("diverged=0>")
    assert len(repr(record)) < 200
    assert "quadratic-v1" in record._repr_html_()
    assert "trials=0" in repr(record.select(slice(0, 0)))
