"""Reading and validating study.toml. docs/live.md explains every field."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from trimtab.context import Context
from trimtab.monitor.baseline import read_baseline
from trimtab.recipes import BaseMethod, between_limits, methods
from trimtab.spec.constraints import Limits
from trimtab.spec.current_settings import KEEP, RUN, TABLES, RunSettings, check, flattened
from trimtab.spec.guard import LONGEST, Guard, spelt
from trimtab.spec.guard import choice as _choice
from trimtab.spec.guard import number as _number
from trimtab.spec.knob_encoding import Knobs
from trimtab.store.tables import Setting
from trimtab.study.changes.rules import capped
from trimtab.study.create import check_name
from trimtab.study.study import Callback, Study
from trimtab.tune.context_source import ContextSource
from trimtab.tuner import SHARE
from trimtab.types import Document, Fields
from trimtab.util.durations import FIELDS as DURATIONS
from trimtab.util.durations import WANTED, seconds
from trimtab.util.files import reason
from trimtab.util.text import word
from trimtab.validation import choose, near, whole

UNFIT = ("two-point", "two-point-forward", "modified-two-point", "still", "primal-dual")
"""Methods that a study does not offer: two queries per round, no learning, or limits only."""
ADAPTIVE = ("auto", "belief")  # methods that adapt the width of their probes, and need no step
PLACEHOLDER = r"(?<!\$)\{([A-Za-z_]\w*)\}"  # of a knob in the command; ${...} is left to the shell


@dataclass(frozen=True, kw_only=True)
class Config:
    """A validated study.toml."""

    name: str
    command: list[str]
    knobs: Knobs
    goal: str = "minimise"
    value: str | None = None
    pause: float = 0.0
    timeout: float = 60.0
    method: str = "auto"
    radius: float | None = None
    narrowest: float | None = None
    widest: float | None = None
    step: float | None = None
    seed: int | None = None
    store: str = "trimtab.db"
    store_patience: float | None = None
    keep: int = KEEP
    on_round: list[str] = field(default_factory=list)
    guard: Guard = field(default_factory=Guard)
    baseline: Document | None = None
    limits: Document = field(default_factory=dict)
    dual_step: float | None = None
    context: ContextSource | None = None
    folder: Path = Path()

    def __post_init__(self) -> None:
        for name in ("name", "store"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} must be text: write it in quotes")
        check_name(self.name)
        for name in DURATIONS:
            object.__setattr__(self, name, seconds(getattr(self, name)))
        if self.seed is not None:
            whole("seed", self.seed, 0, 2**64, why=": leave it out for a random one")
        check(self.settings)
        object.__setattr__(self, "goal", spelt(self.goal))
        _choice("goal", self.goal, "minimise", "maximise")
        if self.limits and self.method == "auto" and (self.step is not None or self.dual_step is not None):
            object.__setattr__(self, "method", "primal-dual")  # which limits with a step are for
        if (self.limits or self.context is not None) and self.method == "auto":
            object.__setattr__(self, "method", "belief")  # the only method that takes limits or a context
        _ = self.limited  # raises if they are invalid
        if self.context is not None and self.method != "belief":
            raise ValueError(f'method = "{self.method}" takes no context: remove [context], or choose "belief"')
        fit = ["belief", "primal-dual"] if self.limits else [name for name in methods if name not in UNFIT]
        _choice("method", self.method, *fit)
        if self.value is not None and not (isinstance(self.value, str) and self.value):
            raise ValueError(f'value={self.value!r} must be a name: write it in quotes, for example "latency.p99"')
        if self.radius is None and self.method in ADAPTIVE:
            object.__setattr__(self, "knobs", self.knobs.with_default_radii())
        elif self.radius is not None:
            _number("radius", self.radius, 0, 0.5, "a share of each range, for example 0.05")
        for name, low, high in (("narrowest", 0, 1), ("widest", 1, math.inf)):
            if getattr(self, name) is not None:
                if self.method not in ADAPTIVE:
                    raise ValueError(
                        f'{name} applies only to method = "auto" or "belief", which adapt their widths: remove it'
                    )
                _number(name, getattr(self, name), low, high, "a multiple of the radius", equal=name == "widest")
        if self.method in ADAPTIVE and self.step is not None:
            raise ValueError(
                f'step does not apply to method = "{self.method}": remove it, or choose method = "residual"'
            )
        if self.dual_step is not None:
            if not self.limits:
                raise ValueError("dual_step applies only to a study with [limits]: remove it")
            if self.method != "primal-dual":
                raise ValueError('dual_step applies only to method = "primal-dual": remove it')
            _number("dual_step", self.dual_step, 0, math.inf, "a step size")
        if self.method not in ADAPTIVE and self.step is None:
            raise ValueError(
                f'method = "{self.method}" needs a step, for example step = 0.003; "auto" and "belief" need none'
            )
        if self.step is not None:
            _number("step", self.step, 0, math.inf, "a step size")
        if self.store_patience is not None:
            _number("store_patience", self.store_patience, 0, LONGEST, WANTED, equal=True)
        if not (isinstance(self.on_round, list) and all(isinstance(word, str) for word in self.on_round)):
            raise ValueError(f'on_round={self.on_round!r} must be a list of strings: write ["./alert", "--study=a"]')
        if self.baseline is not None:
            read_baseline(self.baseline, self.knobs)
        self._check_command()
        self._check_store()

    def _check_command(self) -> None:
        command = self.command
        if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
            raise ValueError(f'command={command!r} must be a list of strings: write ["./measure", "--batch={{batch}}"]')
        names = {knob.name for knob in self.knobs.all}
        for text in command:
            for name in re.findall(PLACEHOLDER, text):
                if name not in names:
                    raise ValueError(f"command uses {{{name}}}, which is not a knob: {choose(name, sorted(names))}")
        for place, words in (("command", command), ("on_round", self.on_round)):
            for n, text in enumerate(words):
                _no_nul(f"{place}[{n}]", text)

    def _check_store(self) -> None:
        _no_nul("store", self.store)
        if "://" not in self.store and Path(self.where).is_dir():
            raise ValueError(f'store={self.store!r} is a folder: give a file, for example "trimtab.db"')

    def check_program(self) -> None:
        """Refuse a program that does not exist or cannot be executed."""
        context = list(self.context.command) if self.context else []
        for name, words in (("command", self.command), ("on_round", self.on_round), ("context.command", context)):
            for program in words[:1]:
                path = program if os.sep not in program else str(self.folder / program)
                if shutil.which(path) is None:
                    remedy = "give the path of a program, or make it executable"
                    split = program.split()
                    if len(split) > 1 and shutil.which(split[0]):
                        remedy = f"make each word a string of its own: {name} = {json.dumps([*split, *words[1:]])}"
                    elif program.endswith(".py") and (self.folder / program).is_file():
                        remedy = f'write {name} = ["python3", {json.dumps(program)}, …], or make it executable'
                    raise ValueError(f"{name}[0]={program!r} cannot be run: {remedy}")

    def build_method(self) -> BaseMethod:
        """Build the method, capped by the largest move per round."""
        radius = SHARE if self.radius is None else self.radius
        options = {"radius": radius, **{name: getattr(self, name) for name in ("narrowest", "widest", "step")}}
        if self.radius is None and self.widest is None and self.method == "auto":
            options["widest"] = between_limits(self.knobs.movable).step.widest
        if self.method == "primal-dual":
            dual_step = self.step if self.dual_step is None else self.dual_step
            options |= {"limits": len(self.limited.all), "dual_step": dual_step}
        method = methods[self.method](**{name: value for name, value in options.items() if value is not None})
        return capped(method, Knobs(self.knobs.all, radius), self.guard.largest_move or ...)

    @property
    def limited(self) -> Limits:
        """The limits: with a risk for the belief, else with a scale."""
        return (Limits.of if self.method == "primal-dual" else Limits.with_risk)(self.limits)

    @property
    def settings(self) -> Document:
        """The run settings that may be changed later, by dotted names."""
        return {**{name: getattr(self, name) for name in RUN}, **flattened({n: getattr(self, n) for n in TABLES})}

    def corrected(self, terms: RunSettings) -> Config:
        """Return the configuration with the present settings of the study."""
        return replace(self, **{name: terms[name] for name in RUN}, **{name: terms.table(name) for name in TABLES})

    @property
    def where(self) -> str:
        """The store: a URL, or a path relative to the folder of the study.toml."""
        return self.store if "://" in self.store else str(self.folder / self.store)

    def open(self, callbacks: Sequence[Callback] = ()) -> Study:
        """Open the study, and create it if it does not exist."""
        return Study.open(
            self.where,
            self.name,
            self.knobs.all,
            self.build_method(),
            maximise=self.goal == "maximise",
            seed=self.seed,
            settings=self.settings,
            source="study.toml",
            callbacks=callbacks,
            baseline=self.baseline,
            limits=self.limits or None,
            context=self.contexts,
        )

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts that are read before each round."""
        return () if self.context is None else self.context.contexts

    def words(self, setting: Setting) -> list[str]:
        """Return the command with the knobs filled in."""
        knobs = {name: word(value) for name, value in setting.items()}
        return [re.sub(PLACEHOLDER, lambda found: knobs.get(found[1], found[0]), text) for text in self.command]


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read the study.toml at a path."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist: {_suggestion(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {reason(error)}") from None
    try:
        return _config(tomllib.loads(text), path.resolve().parent)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _suggestion(path: Path) -> str:
    """Suggest a similar file name, or how to create a file."""
    others = (f.name for f in path.parent.glob("*.toml")) if path.parent.is_dir() else ()
    return near(path.name, others) or "`trimtab init` writes an example"


def _config(given: Fields, folder: Path) -> Config:
    known = {f.name for f in fields(Config)} - {"folder"}
    _known("", given, known)
    for name in ("name", "command", "knobs"):
        if name not in given:
            raise ValueError(f"{name} is missing: a study needs name, command and knobs")
    knobs = given["knobs"]
    if not (isinstance(knobs, dict) and all(isinstance(knob, dict) for knob in knobs.values())):
        raise ValueError("knobs must be tables, one per knob: write [knobs.batch] with low, high and start")
    for name, knob in knobs.items():
        if (other := knob.get("name", name)) != name:
            raise ValueError(f"knobs.{name}.name={other!r} contradicts its table: remove it, or write [knobs.{other}]")
    guard = given.get("guard", {})
    if not isinstance(guard, dict):
        raise ValueError(f"guard={guard!r} must be a table: write [guard] with its fields below it")
    _known("guard.", guard, {f.name for f in fields(Guard)})
    if given.get("limits") and (method := given.get("method")) not in (None, "auto", "belief", "primal-dual"):
        raise ValueError(f"method={method!r} does not support limits: leave `method` out, which chooses belief")
    if given.get("limits") and given.get("method") == "auto" and "step" in given:
        raise ValueError('step does not apply to method = "auto": remove it, or choose method = "primal-dual"')
    context = None if "context" not in given else ContextSource.of(given["context"])
    read = Knobs.of({"name": name, **knob} for name, knob in knobs.items())
    return Config(**{**given, "knobs": read, "guard": Guard(**guard), "context": context, "folder": folder})


def _known(prefix: str, given: Fields, known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"unknown field {prefix}{name}: {choose(name, sorted(known))}")


def _no_nul(name: str, text: str) -> None:
    if "\0" in text:
        raise ValueError(
            f"{name}={text!r} contains a NUL character, which neither a path nor an argument can hold: remove it"
        )
