"""Which fields a body may have at some place, as its model describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from fastapi import Request
from pydantic import BaseModel


def fields_at(request: Request, place: Sequence[int | str]) -> list[str]:
    """The names that are known beside an unknown one; `place` as Pydantic says it: ("body", "knobs", 0, "lo")."""
    body = getattr(request.scope.get("route"), "body_field", None)
    if body is None or place[:1] != ("body",):
        return []
    there = list(_models(body.field_info.annotation))
    for part in place[1:-1]:
        found = [m.model_fields[part] for m in there if isinstance(part, str) and part in m.model_fields]
        if found:  # else it is a number in a list, or a name in a table
            there = [model for field in found for model in _models(field.annotation)]
    return [name for model in there for name in model.model_fields]


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """The models that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)
