"""Field names to suggest for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from fastapi import Request
from pydantic import BaseModel


def sibling_fields(request: Request, place: Sequence[int | str]) -> list[str]:
    """Return the fields valid beside an unknown one; place: Pydantic's `loc`, such as ("body", "knobs", 0, "lo")."""
    body = getattr(request.scope.get("route"), "body_field", None)
    if body is None or place[:1] != ("body",):
        return []
    models = list(_models(body.field_info.annotation))
    for part in place[1:-1]:
        found = [m.model_fields[part] for m in models if isinstance(part, str) and part in m.model_fields]
        if found:  # otherwise an index of a list or a key of a dict
            models = [model for field in found for model in _models(field.annotation)]
    return [name for model in models for name in model.model_fields]


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a type annotation contains."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)
