"""The pages of the project, and what is found in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for page in ROOT.glob("docs/**/*.md") if "gallery" not in page.parts),
        *ROOT.glob(".github/**/*.md"),
    ]
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
SERVED = {"docs/http.md", "docs/serve.md"}
"""Pages whose blocks need a running service, provided by test_served_blocks.py."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text(name), flags=re.S | re.M)


def typed(name: str) -> list[str]:
    """Commands for the reader: lines after `$` in console blocks, without comments."""
    lines = [line for block in blocks(name, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+# .*", "", line[2:]) for line in lines]


def without_code(name: str) -> str:
    """The prose: what is in blocks or backticks is no link."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "`code`", text(name), flags=re.S | re.M)


def anchors(name: str) -> set[str]:
    """The anchors that headings make, as on the sites that show Markdown."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text(name), flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).strip().lower()).replace(" ", "-") for title in titles}
