"""What goes in and comes out over HTTP, as OpenAPI describes it."""

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


def _once(remedy: str) -> WrapValidator:
    """Of what may be of several types: one message, not one for each of them."""

    def check(value: Any, usual: ValidatorFunctionWrapHandler) -> Any:
        try:
            return usual(value)
        except ValidationError:
            raise PydanticCustomError("kind", remedy) from None

    return WrapValidator(check)


Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
"""Neither true nor "12.5": what was no number where it was measured is none here."""
Text = Annotated[str, Field(max_length=65536)]
Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Level = Annotated[StrictBool | Whole | Number | StrictStr, _once("give a number, text, true or false")]
"""What a knob can be set to."""
Setting = dict[str, Level]
Change = Annotated[
    Level | list[Text] | dict[str, Level] | None,
    _once("give a number, text, true, false, a list of strings, an object of knob settings, or null"),
]
"""What a field of a study can be corrected to."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class RequestBody(BaseModel):
    """A body: what is not known is refused."""

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
    """The rails; docs/live.md explains the fields."""

    largest_move: Number | None = None
    failures: Annotated[int, Field(ge=1, le=10**9)] | None = None
    on_failures: Literal["hold", "start"] = "hold"
    stop_above: Number | None = None
    stop_below: Number | None = None
    quiet_hours: Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=50)] = []
    approval: StrictBool = False


class BaselineIn(RequestBody):
    """Rounds that measure a reference instead of a probe: one in `every`, at the start, or at `knobs`; 0 for none."""

    every: Annotated[int, Field(ge=0, le=10**9)] = 20
    knobs: Setting | None = None


class LimitIn(RequestBody):
    """The bounds of a number told beside the value; excesses are divided by the scale."""

    max: Number | None = None
    min: Number | None = None
    scale: Number | None = None


class StudyIn(RequestBody):
    """A study to be made."""

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
    """Numbers told beside the value that are to stay within, in the long run; the method is then "primal-dual"."""
    dual_step: Number | None = None
    max_pending: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many trials may be open at once, for values that come late or out of order (default: 1)."""


class CorrectionIn(RequestBody):
    """What is to change, by the dotted names of `fields`; null takes a field away. Who and why are recorded."""

    changes: Annotated[
        dict[Annotated[str, Field(max_length=200)], Change],
        Field(min_length=1, max_length=100),
    ]
    why: Annotated[str, Field(max_length=400)] = ""


class CorrectionOut(BaseModel):
    """Field → [old, new] of what changes; `pending` if the process that holds the study was asked for it."""

    seq: int
    changed: dict[str, tuple[Any, Any]]
    pending: bool


class Waits(BaseModel):
    """What waits for a person's word."""

    round: int
    setting: Setting


class Paused(BaseModel):
    """Who holds a study, so that nothing new is set."""

    by: str
    why: str
    time: float


class StudyOut(BaseModel):
    """A study at a glance. `seq` grows by one with every event, and is its ETag."""

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
    """Of the last round, in seconds since 1970."""
    created: float
    waits: Waits | None
    paused: Paused | None
    holder: str | None
    archived: float | None
    attention: list[str]
    saving: dict[str, Any] | None


class FindingOut(BaseModel):
    """A figure of how it goes, with advice where it is wanted."""

    value: float | None
    advice: str | None


class TrialOut(BaseModel):
    """What to set: a probe, the reference ("baseline"), or, because too many rounds failed, nothing new ("rest")."""

    id: int
    round: int
    knobs: Setting
    kind: Literal["probe", "baseline", "rest"]


class StudyWhole(StudyOut):
    """A study, with what it was made of."""

    knobs: list[dict[str, Any]]
    start: Setting
    open: int
    """The number of the open trial, where one may be open at once."""
    max_pending: int
    """How many may be."""
    pending: list[TrialOut]
    """Where several may be: those that were asked for and not told yet."""
    fields: dict[str, Any]
    """What may be corrected, by the dotted names of a study.toml, as it is now."""
    limits: list[dict[str, Any]]
    """Of other numbers: their bounds, and by how much they were exceeded."""
    diagnostics: dict[str, FindingOut]


class DamagedOut(BaseModel):
    """A study whose row is not what was written."""

    name: str
    detail: str


class StudyList(BaseModel):
    """A page of studies; `next` is where the next one begins, if there is one."""

    studies: list[StudyOut]
    damaged: list[DamagedOut]
    next: str | None


class BlockedOut(BaseModel):
    """Why there is nothing to set now."""

    blocked: Literal["pause", "quiet hours", "approval"]
    detail: str
    setting: Setting | None


class ResultIn(RequestBody):
    """The value of a trial; null where there is none. `applied`: the knobs that were really set, where they differ."""

    value: Number | None
    note: Text | None = None
    applied: Setting | None = None
    values: Annotated[dict[str, Number | None], Field(max_length=100)] | None = None
    """Of a study with limits: the numbers beside the value that they are on, by name."""


class ResultOut(BaseModel):
    """Where the study is after a value; `again` if it was there already."""

    seq: int
    again: bool
    open: int
    next: TrialOut | None = None


class TellIn(ResultIn):
    """A result, with whose it is."""

    study: Name
    trial: Annotated[int, Field(ge=0, lt=2**62)]


class TellsIn(RequestBody):
    """Results of many studies at once."""

    results: Annotated[list[TellIn], Field(max_length=1000)]
    next: StrictBool = False
    """Answer with the trials that follow, too."""


class ProblemOut(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class TellOut(BaseModel):
    """What became of one result of many: its status, and the rest as it would have been alone."""

    status: int
    result: ResultOut | None = None
    problem: ProblemOut | None = None


class TellsOut(BaseModel):
    """In the order of the results."""

    results: list[TellOut]


class ActionIn(RequestBody):
    """Why it is done; for the history."""

    why: Annotated[str, Field(max_length=400)] = ""


class DecisionIn(ActionIn):
    """`round`: only if this is the one that waits."""

    round: Annotated[int, Field(ge=0, lt=2**62)] | None = None


class UndoIn(ActionIn):
    """`round`: which shall be the next one again; without, the last correction is taken back."""

    round: Annotated[int, Field(ge=0, lt=2**62)] | None = None


class EventOut(BaseModel):
    """What happened."""

    study: str
    seq: int
    time: float
    round: int
    kind: str
    value: float | None
    query: Setting | None
    centre: Setting
    note: str | None
    limits: dict[str, float] | None = None
    """The numbers told beside the value, where the study has limits on some."""


class EventList(BaseModel):
    """Events, the oldest first; `next` is what `after` has to be for those that follow."""

    events: list[EventOut]
    next: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        400: "malformed JSON or HTTP",
        401: "missing or invalid token",
        403: "not allowed with this token",
        404: "no such study or trial",
        408: "the body took too long",
        409: "in conflict with another study, process or request",
        410: "archived, undone, or too old",
        412: "the sequence number is stale",
        413: "the body is too large",
        422: "not valid",
        429: "too many requests",
        503: "the store is unavailable, or the study too busy",
    }.items()
}
