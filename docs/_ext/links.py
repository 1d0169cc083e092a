"""Code in the prose that names something of the reference is a link to it; the paper's report goes into the site."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

PUBLIC = re.compile(r"(?:tt|trimtab)\.([A-Za-z_][\w.]*)(?:\(.*\))?|(Tuner|Study|Knob)(?:\(.*\))?")


def setup(app: Sphinx) -> dict[str, Any]:
    """Both happen by themselves."""
    app.connect("doctree-read", _link)
    app.connect("build-finished", _add_report)
    return {"parallel_read_safe": True}


def _link(app: Sphinx, tree: nodes.document) -> None:
    for code in list(tree.findall(nodes.literal)):
        found = PUBLIC.fullmatch(code.astext())
        if not found or isinstance(code.parent, nodes.reference | pending_xref | nodes.title):
            continue
        name = found[1] or found[2]
        target = "trimtab.live.Study" if name == "Study" else f"trimtab.{name}"
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refdoc=app.env.docname, refexplicit=True
        )
        code.replace_self(link)
        link += code


def _add_report(app: Sphinx, error: Exception | None) -> None:
    report = Path(app.srcdir).parent / "out" / "paper" / "report.html"
    if error is None and app.builder.format == "html" and report.exists():
        shutil.copy(report, Path(app.outdir) / "report.html")
