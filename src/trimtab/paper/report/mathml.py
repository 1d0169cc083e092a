"""Convert indices and exponents in plain text to MathML."""

from __future__ import annotations

import html
import re

INDEXED = re.compile(
    r"(?<![^\W\d_])(?P<base>[^\W\d_]\u0303?)(?=[_^])"
    r"(?:_(?P<low>\{[^{}]+\}|\w))?(?:\^(?P<high>\{[^{}]+\}|\d+(?:\.\d+)?))?"
)
PART = re.compile(r"[^\W\d_]\u0303?|\d+(?:\.\d+)?|\S")
SETS = {(True, False): "msub", (False, True): "msup", (True, True): "msubsup"}


def typeset(text: str) -> str:
    """Escaped text whose x_t, T^{3/2} and the like are MathML.

    >>> typeset("a < u_t")
    'a &lt; <math><msub><mi>u</mi><mi>t</mi></msub></math>'
    >>> typeset("ε_f^{3/2}").count("<mn>")
    2
    """
    return INDEXED.sub(_formula, html.escape(text, quote=False))


def _formula(found: re.Match[str]) -> str:
    parts = [_row(found["base"]), *(_row(part.strip("{}")) for part in (found["low"], found["high"]) if part)]
    kind = SETS[bool(found["low"]), bool(found["high"])]
    return f"<math><{kind}>{''.join(parts)}</{kind}></math>"


def _row(text: str) -> str:
    """Mark up letters, numbers and operators; group several in a row."""
    signs = [_sign(part) for part in PART.findall(text)]
    return signs[0] if len(signs) == 1 else f"<mrow>{''.join(signs)}</mrow>"


def _sign(part: str) -> str:
    kind = "mn" if part[0].isdigit() else "mi" if part[0].isalpha() else "mo"
    return f"<{kind}>{part}</{kind}>"
