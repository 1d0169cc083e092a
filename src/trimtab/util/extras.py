"""What to type when an extra is missing: a pip command that works for how trimtab was installed here."""

from __future__ import annotations

from pathlib import Path


def pip_install(*extras: str) -> str:
    """The command that adds extras, from the same place: a clone on this disk, a wheel, or an index.

    A clone that is imported in place stays so (`-e`): it is not replaced by a copy.

    >>> pip_install("live").startswith("pip install ")
    True
    """
    return f'pip install {_origin()}[{",".join(extras)}]"'


def _origin() -> str:
    import json  # these take a while, and are needed only when something is missing
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    clone = Path(__file__).parents[3]
    if Path(__file__).parents[2].name == "src" and (clone / "pyproject.toml").exists():
        return f'-e "{clone}'
    try:
        url = json.loads(metadata.distribution("trimtab").read_text("direct_url.json") or "{}").get("url", "")
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return '"trimtab'
    path = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
    return f'"{path}' if path is not None and path.exists() else '"trimtab'
