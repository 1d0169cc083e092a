"""One-line representations of objects, for the Python prompt and, as HTML, for notebooks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape

Facts = Sequence[tuple[str, object]]
"""Labels and values, most important first; None is left out. The label "" marks a name."""

MOST = 6  # elements shown of one value; the rest is counted
LONGEST = 60  # characters shown of text


class Brief:
    """Base class with a short representation built from `_facts`."""

    @abstractmethod
    def _facts(self) -> Facts: ...

    def __repr__(self) -> str:
        return line(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return line_html(type(self).__name__, self._facts())


def line(kind: str, facts: Facts) -> str:
    """Format facts for the prompt.

    >>> line("Study", [("", "queue"), ("round", 3), ("centre", {"workers": 4, "codec": "zstd"}), ("value", None)])
    "<Study 'queue' round=3 centre=(workers=4, codec='zstd')>"
    """
    told = [f"{label}={_said(fact)}" if label else _said(fact) for label, fact in facts if fact is not None]
    return f"<{' '.join([kind, *told])}>"


def line_html(kind: str, facts: Facts) -> str:
    """Format facts for a notebook.

    >>> line_html("Study", [("", "<queue>"), ("round", 3)])
    '<b>Study</b> &#x27;&lt;queue&gt;&#x27; · round <b>3</b>'
    """
    told = [(escape(label), escape(_said(fact))) for label, fact in facts if fact is not None]
    return f"<b>{escape(kind)}</b> " + " · ".join(f"{label} <b>{said}</b>" if label else said for label, said in told)


def _said(fact: object) -> str:
    if isinstance(fact, str):
        return repr(fact if len(fact) <= LONGEST else fact[:LONGEST] + "…")
    if isinstance(fact, float):  # NumPy's, too
        return f"{fact:.6g}"
    if isinstance(fact, Mapping):
        return f"({_listed(f'{name}={_said(value)}' for name, value in fact.items())})"
    if isinstance(fact, list | tuple):
        return f"[{_listed(map(_said, fact))}]"
    return str(fact)


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    more = [f"… {len(every)} in all"] if len(every) > MOST else []
    return ", ".join([*every[:MOST], *more])
