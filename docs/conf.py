"""The site: `make docs` builds it into out/docs. Nothing in it needs a network to be read."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
os.environ["TERMINAL_WIDTH"] = "92"  # of the help of the commands, as wide as the page; Typer reads it when imported
os.environ["NO_COLOR"] = "1"
sys.path.insert(0, str(HERE / "_ext"))

import hosted  # noqa: E402

import trimtab  # noqa: E402
from trimtab import plotting  # noqa: E402

project = "trimtab"
author = "the trimtab developers"
copyright = "the trimtab developers, Apache-2.0"
version = release = trimtab.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "commands",
    "http_api",
    "links",
    "complete",
]
exclude_patterns = ["pictures", "gallery_scripts", "draw", "results", "_ext", "_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

autodoc_member_order = "bysource"
autodoc_mock_imports = ["bluesky", "jax", "optax", "torch"]  # hosts that are not installed beside Sphinx
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Document", "Fields", "Setting", "Value")}
python_maximum_signature_line_length = 90
python_display_short_literal_types = True


def look_the_same(gallery: object, file: str) -> None:
    """Before each script of the gallery."""
    from matplotlib import rcParams

    rcParams.update(plotting.STYLE)


sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", look_the_same),
    "image_scrapers": ("matplotlib", hosted.pictures),
    "examples_dirs": "gallery_scripts",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "abort_on_example_error": True,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "matplotlib_animations": False,
}

html_theme = "furo"
html_title = f"trimtab {release}"
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a browser does not do for files
html_theme_options = {"top_of_page_buttons": []}

if (HERE.parent / "out" / "paper" / "report.html").exists():
    tags.add("report")  # type: ignore[name-defined]  # noqa: F821
