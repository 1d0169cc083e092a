"""Colours of pictures are visible on light and dark pages."""

import matplotlib
import pytest
from matplotlib.colors import to_rgb

from trimtab import plotting

PAGES = {"white": "#ffffff", "GitHub, dark": "#0d1117", "the site, dark": "#131416"}


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("colour", sorted({*plotting.METHODS.values(), *plotting.OTHERS}))
def test_lines_have_contrast(colour, page):
    assert contrast(colour, page) > 2.2


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_text_has_more_contrast(page):
    assert contrast(plotting.GREY, page) > 4.2


@pytest.mark.parametrize(
    ("ink", "page"), [(plotting.LIGHT, "#ffffff"), (plotting.DARK, "#161b22")], ids=["light", "dark"]
)
def test_inks_have_contrast_on_their_background(ink, page):
    assert contrast(ink.text, page) > 7
    assert min(contrast(colour, page) for colour in (ink.points, ink.line, ink.other)) > 3.5


def test_the_style_ends_with_its_block():
    before = dict(matplotlib.rcParams)
    with plotting.style():
        assert matplotlib.rcParams["text.color"] == plotting.GREY
        assert matplotlib.rcParams["savefig.facecolor"] == "none"
    assert dict(matplotlib.rcParams) == before
