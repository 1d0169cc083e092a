"""`trimtab init --from`: write a study.toml that starts at the present centre of another study."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from trimtab.recipes.method import name_of
from trimtab.spec.current_settings import DEFAULTS, TABLES
from trimtab.spec.knob_encoding import Knob, Knobs
from trimtab.study.changes.rules import FROM_FILE, WIDTHS
from trimtab.study.study import Study
from trimtab.tune.config import Config, read_config
from trimtab.types import Document
from trimtab.util.files import check_destination, writing

HEAD = """\
# Starts where the study {old} was after {rounds} rounds. Written by: trimtab init --from {old}
# Change the fields that could not be changed there (knobs, goal, method, seed), then run: trimtab tune {file}

name = {name}
goal = {goal}
"""
NO_COMMAND = "# Put your own command here: no study.toml of {old} was found beside the store.\n"


def write_successor(path: Path, where: str, name: str) -> Path:
    """Write a new study.toml; the command and similar fields are copied from the study's own file, if it is found."""
    if path.exists():
        raise ValueError(f"{path} already exists: name another file, trimtab init --from {name} new.toml")
    check_destination(path)
    with Study.open_unlocked(where, name) as study:
        text = _text(study, _file_of(name, where, path.parent), where, path)
    with writing(path):
        path.write_text(text, encoding="utf-8")
    return path


def _text(study: Study, file: Config | None, where: str, path: Path) -> str:
    """Return the file with all present settings, and the centre as the start."""
    method, terms = study.setup.method, study.settings
    goal = "maximise" if study.setup.maximise else "minimise"
    about = {"old": study.name, "rounds": study.round, "file": path.name, "name": _toml(_new_name(study.name))}
    lines = [HEAD.format(**about, goal=_toml(goal))]
    given: Document = {"command": ["./measure"]}
    if file is None:
        lines.append(NO_COMMAND.format(**about).rstrip())
    else:
        given = {field: getattr(file, field) for field in FROM_FILE}
        if file.folder.resolve() != path.parent.resolve():
            lines.append(f"# The command ran in {file.folder}; from now on it runs in the folder of this file.")
    given |= {name: terms[name] for name in DEFAULTS if "." not in name}
    given |= {"method": name_of(method), "radius": method.radius}
    if method.finds_width:
        given |= {name: getattr(method, name) for name in WIDTHS}
    elif method.constant is not None:
        given["step"] = method.constant
    if (dual_step := getattr(method.parts.get("estimator"), "dual_step", None)) is not None:
        given["dual_step"] = dual_step
    given["store"] = where if "://" in where else os.path.relpath(where, path.parent)
    lines += [f"{name} = {_toml(value)}" for name, value in given.items() if value not in (None, [])]
    for knob in study.knobs.all:
        lines += ["", f"[knobs.{knob.name}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in _knob(study, knob).items()]
    lines += ["", *_baseline(study)]
    if study.limits.all:
        lines += ["", "[limits]", *_limits(study)]
    if study.contexts:
        lines += ["", "[context]", *_context(study, file)]
    for table in TABLES:
        fields = {name.partition(".")[2]: terms[name] for name in terms.settings if name.startswith(f"{table}.")}
        if fields:
            lines += ["", f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in fields.items())]
    return "\n".join(lines) + "\n"


def _knob(study: Study, knob: Knob) -> Document:
    """Return the fields of a knob, with the centre as its start and the present length of probes."""
    limits = ("low", "high") if knob.type in ("float", "integer") else ()
    found = {name: getattr(knob, name) for name in limits} | {"start": study.centre[knob.name]}
    if knob.choices is not None:
        found["choices"] = list(knob.choices)
    elif knob.type != "float":
        found["type"] = knob.type
    for name, default in (("scale", "linear"), ("step", None), ("unit", "")):
        if getattr(knob, name) != default:
            found[name] = getattr(knob, name)
    if (radius := radius_now(study.knobs, knob)) is not None:
        found["radius"] = radius
    return found


def _baseline(study: Study) -> list[str]:
    """Return the table of the baseline; its reference only if it is not the start."""
    every, reference, share = study.baseline.plan
    found = ["[baseline]", f"every = {every}"]
    found += [] if share is None else [f"share = {_toml(list(share))}"]
    if reference is not None:
        found += ["", "[baseline.knobs]", *(f"{name} = {_toml(value)}" for name, value in reference.items())]
    return found


def _limits(study: Study) -> list[str]:
    """Return the present limits, by name."""
    tables: dict[str, dict[str, float]] = {}
    for limit in study.limits.all:
        more = {"scale": limit.scale} if limit.risk is None else {"risk": limit.risk}
        tables.setdefault(limit.name, more)[limit.side] = limit.bound
    return [
        f"{_toml(name)} = {{{', '.join(f'{k} = {v!r}' for k, v in table.items())}}}" for name, table in tables.items()
    ]


def _context(study: Study, file: Config | None) -> list[str]:
    """Return the source of the context, as in the study's own file if it is found, and its names."""
    source = {"command": ["./context"]} if file is None or file.context is None else file.context.to_table()
    names = [
        f"{_toml(each.name)} = {{{'' if each.period is None else f'period = {each.period!r}'}}}"
        for each in study.contexts
    ]
    return [*(f"{name} = {_toml(value)}" for name, value in source.items()), *names]


def radius_now(knobs: Knobs, knob: Knob) -> float | None:
    """Return the knob's radius as a share of its present range; None if it is the common one."""
    if knob.name not in knobs.ranges:
        return knob.radius
    low, high = knobs.extent(knob)
    return min(knobs.radius / (high - low), 0.49)


def _file_of(name: str, where: str, folder: Path) -> Config | None:
    """Find the study.toml of a study, beside the store or in this folder."""
    folders = [folder] if "://" in where else [Path(where).resolve().parent, folder]
    for file in (file for one in folders for file in sorted(one.glob("*.toml"))):
        try:
            found = read_config(file)
        except ValueError:
            continue
        if found.name == name:
            return found
    return None


def _new_name(name: str) -> str:
    """demo → demo-2 → demo-3."""
    found = re.fullmatch(r"(.*)-(\d+)", name)
    return f"{found[1]}-{int(found[2]) + 1}" if found else f"{name}-2"


def _toml(value: object) -> str:
    """Format text, a number, a switch, or a list of them, as TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
