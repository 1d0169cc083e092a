"""The pip command for a missing extra, depending on how trimtab was installed."""

from __future__ import annotations

from pathlib import Path


def pip_install(*extras: str) -> str:
    """Return the command that installs extras from the same source: a local clone, a wheel, or an index.

    An editable clone stays editable (`-e`).

    >>> pip_install("live").startswith("pip install ")
    True
    """
    return f'pip install {_origin()}[{",".join(extras)}]"'


def _origin() -> str:
    import json  # slow to import, and only needed for an error
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
