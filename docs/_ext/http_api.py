"""`{http-api}`: a section for every group of requests, out of openapi.json, which tests compare with the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Schema = dict[str, Any]
TITLES = {
    "studies": "Studies",
    "trials": "Asking and telling",
    "actions": "What a person does",
    "events": "Events",
    "health": "Health",
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("http-api", HttpApi)
    return {"parallel_read_safe": True}


class HttpApi(SphinxDirective):
    """In the order of the file."""

    def run(self) -> list[nodes.Node]:
        """The sections; a group without a title here is an error of the build."""
        file = Path(self.env.srcdir) / "openapi.json"
        self.env.note_dependency(str(file))
        api = json.loads(file.read_text(encoding="utf-8"))
        groups: dict[str, list[str]] = {}
        for path, methods in api["paths"].items():
            for method, request in methods.items():
                groups.setdefault(request["tags"][0], []).extend(_request(method.upper(), path, request))
        found: list[nodes.Node] = []
        for group, lines in groups.items():
            section = nodes.section(ids=[f"http-{group}"], names=[f"http {group}"])
            section += nodes.title(text=TITLES[group])
            section += self.parse_text_to_nodes("\n".join(lines))
            found.append(section)
        bodies = nodes.section(ids=["http-bodies"], names=["http bodies"])
        bodies += nodes.title(text="What is sent and answered")
        lines = [line for name, schema in api["components"]["schemas"].items() for line in _schema(name, schema)]
        bodies += self.parse_text_to_nodes("\n".join(lines))
        return [*found, bodies]


def _request(method: str, path: str, request: Schema) -> list[str]:
    lines = [f"**`{method} {path}`**", "", " ".join(request.get("description", "").split()), ""]
    for given in request.get("parameters", []):
        if given["in"] != "path":
            needed = ", required" if given.get("required") else ""
            lines.append(f"- `{given['name']}` ({given['in']}, {_kind(given['schema'])}{needed})")
    body = request.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        lines.append(f"- body: {_kind(body)}")
    for status, answer in request["responses"].items():
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        if schema and status.startswith("2"):
            lines.append(f"- {status}: {_kind(schema)}")
    return [*lines, ""]


def _schema(name: str, schema: Schema) -> list[str]:
    text = " ".join(schema.get("description", "").split())
    lines = [f"({_anchor(name)})=", f"**{name}**" + (f": {text}" if text else ""), ""]
    if "properties" not in schema:
        return [*lines, f"- {_kind(schema)}", ""]
    for field, what in schema["properties"].items():
        notes = [_kind(what)]
        if field in schema.get("required", ()):
            notes.append("required")
        elif what.get("default") not in (None, "", [], {}):
            notes.append(f"by default {json.dumps(what['default'], ensure_ascii=False)}")
        said = " ".join(what.get("description", "").split())
        lines.append(f"- `{field}`: {', '.join(notes)}" + (f". {said}" if said else ""))
    return [*lines, ""]


def _anchor(name: str) -> str:
    return f"http-{name.lower().replace('_', '-')}"


def _kind(schema: Schema) -> str:
    """The type of a value, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if "anyOf" in schema or "oneOf" in schema:
        kinds = list(dict.fromkeys(_kind(each) for each in schema.get("anyOf") or schema["oneOf"]))
        return " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if schema.get("items") else "list"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"name → {_kind(schema['additionalProperties'])}"
    words = {
        "string": "text",
        "integer": "whole number",
        "boolean": "true or false",
        "null": "null",
        "object": "object",
    }
    return words.get(schema.get("type", ""), schema.get("type", "anything"))
