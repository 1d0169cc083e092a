"""Request and response bodies of the API, as described by OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError


def _single_message(remedy: str) -> WrapValidator:
    """Replace the messages of all members of a union by one."""

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise PydanticCustomError("kind", remedy) from None

    return WrapValidator(check)


Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
"""A finite number; booleans and numeric strings are refused, as they hint at a bug in the caller."""
Text = Annotated[str, Field(max_length=65536)]
Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Level = Annotated[StrictBool | Whole | Number | StrictStr, _single_message("give a number, text, true or false")]
"""Value of a knob."""
Setting = dict[str, Level]
Change = Annotated[
    Level | list[Text] | dict[str, Level] | None,
    _single_message("give a number, text, true, false, a list of strings, an object of knob settings, or null"),
]
"""New value of a setting."""
ContextName = Annotated[str, Field(min_length=1, max_length=100)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class RequestBody(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class KnobIn(RequestBody):
    """A parameter of the system; docs/knobs.md explains the fields."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    low: Level | None = None
    high: Level | None = None
    start: Level | None = None
    type: Literal["float", "real", "integer", "int", "bool", "boolean", "choice", "choices", "categorical"] | None = (
        None
    )
    scale: Literal["linear", "log"] = "linear"
    unit: Annotated[str, Field(max_length=30)] = ""
    step: Number | None = None
    choices: Annotated[list[Level], Field(max_length=100)] | None = None
    radius: Number | None = None


class GuardIn(RequestBody):
    """Limits on what tuning may do; docs/live.md explains the fields."""

    largest_move: Number | None = None
    failures: Annotated[int, Field(ge=1, le=10**9)] | None = None
    on_failures: Literal["hold", "start"] = "hold"
    stop_above: Number | None = None
    stop_below: Number | None = None
    quiet_hours: Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=50)] = []
    approval: StrictBool = False
    revert: StrictBool | None = None
    on_revert: Literal["stop", "restart"] | None = None


class BaselineIn(RequestBody):
    """Baseline rounds, which measure a reference: one in `every` (0: none), at `knobs` or else at the start.

    With `share`, the smallest and the largest share of such rounds, their distance adapts instead.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 20
    share: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    knobs: Setting | None = None


class LimitIn(RequestBody):
    """Bounds of a constrained quantity, and the share of queries that may exceed them.

    With `step`, for the method "primal-dual": violations are divided by the scale instead.
    """

    max: Number | None = None
    min: Number | None = None
    risk: Number | None = None
    scale: Number | None = None


class ContextIn(RequestBody):
    """A number that is known before each trial, such as the hour, and its period if it goes round."""

    name: ContextName
    period: Number | None = None


class StudyIn(RequestBody):
    """Definition of a study."""

    knobs: Annotated[list[KnobIn], Field(min_length=1, max_length=200)]
    goal: Literal["minimise", "maximise"] = "minimise"
    method: Annotated[str, Field(max_length=40)] = "auto"
    radius: Number | None = None
    narrowest: Number | None = None
    widest: Number | None = None
    step: Number | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    keep: Annotated[int, Field(ge=1000, le=10**9)] | None = None
    guard: GuardIn = GuardIn()
    baseline: BaselineIn = BaselineIn()
    limits: Annotated[dict[str, LimitIn], Field(max_length=100)] | None = None
    """Quantities that are to stay within bounds; the method is "belief", or with a `step` "primal-dual"."""
    dual_step: Number | None = None
    max_pending: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Trials that may be open at once, for values that come late or out of order (default: 1)."""
    context: Annotated[list[ContextName | ContextIn], Field(max_length=3)] | None = None
    """Numbers that are known before each trial, and explain why the best setting changes; the method is "belief"."""


class AskIn(RequestBody):
    """The context that a trial is asked for, in a study with contexts; null, or left out, where one is not known."""

    context: Annotated[dict[str, Number | None], Field(max_length=3)] | None = None


class CorrectionIn(RequestBody):
    """Settings to change, by their dotted names in `fields`; null clears one. Author and reason are recorded."""

    changes: Annotated[
        dict[Annotated[str, Field(max_length=200)], Change],
        Field(min_length=1, max_length=100),
    ]
    why: Annotated[str, Field(max_length=400)] = ""


class CorrectionOut(BaseModel):
    """Setting → [old, new]; `pending`: the process that holds the study still has to apply the changes."""

    seq: int
    changed: dict[str, tuple[Any, Any]]
    pending: bool


class ProposalOut(BaseModel):
    """A setting that awaits approval."""

    round: int
    setting: Setting


class PauseOut(BaseModel):
    """A pause: its author, reason and time."""

    by: str
    why: str
    time: float


class StudyOut(BaseModel):
    """Summary of a study. `seq` grows by one with every event, and is the ETag."""

    name: str
    seq: int
    rounds: int
    goal: str
    centre: Setting
    value: float | None
    mean: float | None
    trend: float | None
    skipped: int
    failures: int
    time: float | None
    """Time of the last round, in seconds since 1970."""
    created: float
    waits: ProposalOut | None
    paused: PauseOut | None
    holder: str | None
    archived: float | None
    attention: list[str]
    saving: dict[str, Any] | None


class FindingOut(BaseModel):
    """A diagnostic, with advice if something should be changed."""

    value: float | None
    advice: str | None


class TrialOut(BaseModel):
    """A setting to measure: a probe, the reference ("baseline") or, after too many failures, a known one ("rest")."""

    id: int
    round: int
    knobs: Setting
    kind: Literal["probe", "baseline", "rest"]
    context: dict[str, float | None] | None = None
    """The context that it is for, in a study with contexts."""


class StudyDetails(StudyOut):
    """A study with its definition, settings and diagnostics."""

    knobs: list[dict[str, Any]]
    start: Setting
    open: int
    """Id of the open trial, if only one may be open."""
    max_pending: int
    """Trials that may be open at once."""
    pending: list[TrialOut]
    """Open trials, if several may be open."""
    fields: dict[str, Any]
    """Settings that can be changed, by their dotted names in a study.toml."""
    limits: list[dict[str, Any]]
    """Constrained quantities: bounds, long-run violations, and with a risk the margin and measurements beyond."""
    context: list[ContextIn] | None = None
    """Numbers that are known before each trial, if the study has any."""
    diagnostics: dict[str, FindingOut]


class DamagedOut(BaseModel):
    """A study whose stored row is damaged."""

    name: str
    detail: str


class StudyList(BaseModel):
    """A page of studies; `next` is where the next page starts, if there is one."""

    studies: list[StudyOut]
    damaged: list[DamagedOut]
    next: str | None


class BlockedOut(BaseModel):
    """Reason why no trial can be handed out."""

    blocked: Literal["pause", "quiet hours", "approval"]
    detail: str
    setting: Setting | None


class ResultIn(RequestBody):
    """Value of a trial, or null. `applied`: the knobs that were actually set, if they differ."""

    value: Number | None
    note: Text | None = None
    applied: Setting | None = None
    values: Annotated[dict[str, Number | None], Field(max_length=100)] | None = None
    """Constrained quantities by name, in a study with limits."""


class ResultOut(BaseModel):
    """State of a study after a tell; `again`: the same result was already stored."""

    seq: int
    again: bool
    open: int
    next: TrialOut | None = None


class TellIn(ResultIn):
    """A result, with its study and trial."""

    study: Name
    trial: Annotated[int, Field(ge=0, lt=2**62)]


class TellsIn(RequestBody):
    """Results of many studies."""

    results: Annotated[list[TellIn], Field(max_length=1000)]
    next: StrictBool = False
    """Include the next trials in the response."""


class ProblemOut(BaseModel):
    """An error, as problem details (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class TellOut(BaseModel):
    """Outcome of one result: its status, and the body that a single tell would get."""

    status: int
    result: ResultOut | None = None
    problem: ProblemOut | None = None


class TellsOut(BaseModel):
    """Outcomes in the order of the results."""

    results: list[TellOut]


class ActionIn(RequestBody):
    """Reason, recorded in the history."""

    why: Annotated[str, Field(max_length=400)] = ""


class DecisionIn(ActionIn):
    """Decision on a proposal; with `round`, only if that round awaits approval."""

    round: Annotated[int, Field(ge=0, lt=2**62)] | None = None


class UndoIn(ActionIn):
    """Return to the state before `round`; without it, undo the last change of settings."""

    round: Annotated[int, Field(ge=0, lt=2**62)] | None = None


class EventOut(BaseModel):
    """An event in the history of a study."""

    study: str
    seq: int
    time: float
    round: int
    kind: str
    value: float | None
    query: Setting | None
    centre: Setting
    note: str | None
    limits: dict[str, float | None] | None = None
    """Constrained quantities told with the value; null in place of one not measured."""
    context: dict[str, float | None] | None = None
    """The context of the trial, in a study with contexts."""


class EventList(BaseModel):
    """Events, oldest first; pass `next` as `after` to get those that follow."""

    events: list[EventOut]
    next: str


class ExplanationOut(BaseModel):
    """The explanation of a study from a belief, as printed by `trimtab why --json`."""

    study: str
    method: str
    round: int
    listened: int | None
    """Rounds that the belief listened to; null if the method is the belief."""
    since: int | None
    effects: list[dict[str, Any]]
    """For each knob, largest first: one step, the change of the value with its interval, and the share."""
    move: dict[str, Any] | None
    """The last round, the move that it led to, and the reason."""
    probe: dict[str, Any]
    """The next probe, and its purpose."""
    unsure: list[str]
    belief: dict[str, Any]
    """Optimum, slope and curvature by knob, the noise and the drift."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        400: "malformed JSON or HTTP",
        401: "missing or invalid token",
        403: "not allowed with this token",
        404: "no such study or trial",
        408: "the body took too long",
        409: "conflict with another study, process or request",
        410: "archived, undone or too old",
        412: "the sequence number is outdated",
        413: "the body is too large",
        422: "invalid request",
        429: "too many requests",
        503: "the store is unavailable or the study is too busy",
    }.items()
}
