"""Results that are reused equal those that would be computed; text is converted to formulas."""

from dataclasses import asdict

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from trimtab.paper import MODES, experiments
from trimtab.paper.cells import compute
from trimtab.paper.experiments import ILLUSTRATION
from trimtab.paper.report.mathml import typeset
from trimtab.paper.report.panels import keep, legend, panel


def test_the_first_rounds_of_the_long_run_are_the_short_run(quick, work):
    short = experiments(MODES["quick"])[f"network-{ILLUSTRATION}"]
    assert short.begins == "allocation"
    assert f"{short.id}/residual" not in work
    alone = compute({**work["allocation/residual"], "experiment": asdict(short)})
    part = quick.cell("allocation/residual").until(short.rounds)
    for convention in ("own", "shared"):
        first, second = getattr(alone, convention), getattr(part, convention)
        assert first.about["step"] == second.about["step"]
        np.testing.assert_array_equal(first.regret(of="incurred"), second.regret(of="incurred"))
        np.testing.assert_array_equal(first.regret(), second.regret())


def test_estimates_are_resampled_in_the_first_trials(quick, work):
    """In few of them it is the same as in all of them, as far as they go."""
    few = compute({**work["lqr-r1/two-point"], "varied": 2}).shared
    all_of_them = quick.cell("lqr-r1/two-point").shared
    assert all_of_them.variance.shape[0] > 2
    assert few.variance.shape == (2, 8)
    assert few.cost.shape == all_of_them.cost.shape == (16, 50)
    np.testing.assert_allclose(few.variance, all_of_them.variance[:2], rtol=1e-9)


def test_a_figure_is_kept_as_svg_and_png_and_nothing_is_cut_off(tmp_path):
    figure, axis = panel()
    axis.semilogy([1, 2], [1e-3, 1e4], label="a method with a long name: 3 of 16 diverged")
    axis.set(xlabel="episode", ylabel="accumulated regret", title="each method with its own δ")
    legend(figure, axis)
    files = keep([figure], tmp_path / "some")
    assert [file.name for file in files] == ["some.svg", "some.png"]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    renderer = FigureCanvasAgg(figure).get_renderer()
    inside = axis.get_tightbbox(renderer)
    below = figure.legends[0].get_window_extent(renderer)
    assert figure.bbox.x0 <= inside.x0
    assert inside.x1 <= figure.bbox.x1
    assert inside.y1 <= figure.bbox.y1
    assert below.y1 <= inside.y0  # the legend covers nothing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R1, δ shared: 0.2", "R1, δ shared: 0.2"),
        ("σ_w = 0.1", "<math><msub><mi>σ</mi><mi>w</mi></msub></math> = 0.1"),
        ("T^1.24,", "<math><msup><mi>T</mi><mn>1.24</mn></msup></math>,"),
        ("a budget W̃_T.", "a budget <math><msub><mi>W̃</mi><mi>T</mi></msub></math>."),
        ("x_{t−1}", "<math><msub><mi>x</mi><mrow><mi>t</mi><mo>−</mo><mn>1</mn></mrow></msub></math>"),
        ("two_point < file_name", "two_point &lt; file_name"),
    ],
)
def test_indices_and_exponents_become_formulas(text, expected):
    assert typeset(text) == expected
