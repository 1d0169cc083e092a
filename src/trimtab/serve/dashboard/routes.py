"""Pages of the dashboard, and the fragments that keep them up to date."""

from __future__ import annotations

import gzip
import time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from trimtab.serve.api.deps import Reads, StudyName, studies_of
from trimtab.serve.api.studies_cache import StudyCache
from trimtab.serve.dashboard.fleet_page import PAGE_SIZE, FleetOverview
from trimtab.serve.dashboard.study_page import study_page
from trimtab.serve.dashboard.templating import page, visitor
from trimtab.serve.http.errors import ApiError
from trimtab.store.event_queries import thinned
from trimtab.store.study_filter import ATTENTION
from trimtab.store.tables import ROUNDS
from trimtab.study.plots.plotly_figures import figure
from trimtab.study.unlocked import UnlockedStudy
from trimtab.types import Document

router = APIRouter(include_in_schema=False)
RANGES = {"hour": ("1 h", 3600.0), "day": ("1 day", 86_400.0), "all": ("all", float("inf"))}
MAX_POINTS = 1000  # rounds in a chart
MAX_KNOBS = 8  # in a chart
Range = Annotated[str, Query(pattern="^(hour|day|all)$")]
Names = Annotated[list[str], Query(max_length=PAGE_SIZE)]


@router.get("/")
async def home(
    request: Request,
    search: Annotated[str, Query(max_length=64)] = "",
    attention: Annotated[str, Query(max_length=20)] = "",
    number: Annotated[int, Query(alias="page", ge=0, le=10**6)] = 0,
) -> Response:
    """Show the list of studies."""
    caller = await visitor(request)
    if caller is None:
        return RedirectResponse("/login", 303)
    wanted = attention if attention in ATTENTION else ""
    found = await run_in_threadpool(_overview(request).page, caller.study, search, wanted, number)
    about: Document = {"search": search, "attention": wanted, "number": number, "pages": -(-found.total // PAGE_SIZE)}
    return page(request, "fleet.html", caller, found=found, words=ATTENTION, **about)


@router.get("/fleet/rows")
async def rows(request: Request, caller: Reads, study: Names = []) -> Response:  # noqa: B006
    """Render rows of the list."""
    names = [name for name in study if caller.may("read", name)]
    found = await run_in_threadpool(_overview(request).rows, names)
    return page(request, "rows.html", caller, rows=found)


@router.get("/studies/{name}")
async def study(name: StudyName, request: Request, range: Range = "all") -> Response:
    """Show a study."""
    caller = await visitor(request)
    if caller is None:
        return RedirectResponse("/login", 303)
    if not caller.may("read", name):
        raise ApiError(403, "forbidden", f"this token is valid only for study {caller.study}")
    about = await run_in_threadpool(_study_page, studies_of(request), name)
    return page(
        request, "study.html", caller, s=about, range=range, ranges=RANGES, plotly=_plotly()[0], drawn=MAX_KNOBS
    )


@router.get("/studies/{name}/live")
async def live(name: StudyName, request: Request, caller: Reads) -> Response:
    """Render the parts of a study's page that change."""
    return page(request, "live.html", caller, s=await run_in_threadpool(_study_page, studies_of(request), name))


@router.get("/studies/{name}/figure")
async def chart(name: StudyName, request: Request, _: Reads, range: Range = "all", dark: bool = False) -> Response:
    """Return the chart of a study as Plotly JSON; 204 if the range has no rounds."""
    text = await run_in_threadpool(_figure, studies_of(request), name, RANGES[range][1], dark)
    headers = {"Cache-Control": "no-store"}
    return Response(text, media_type="application/json", headers=headers) if text else Response(None, 204, headers)


@router.get("/static/plotly.min.js")
async def plotly(request: Request) -> Response:
    """Serve Plotly's script from the package; its address contains the version, so browsers can cache it for good."""
    _, path = _plotly()
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(await run_in_threadpool(path.read_bytes), media_type="text/javascript", headers=headers)
    compressed = await run_in_threadpool(_compressed, path)
    return Response(compressed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})


def _overview(request: Request) -> FleetOverview:
    found: FleetOverview = request.app.state.overview
    return found


def _study_page(studies: StudyCache, name: str) -> Document:
    with studies.pool.store() as store:
        return study_page(store, UnlockedStudy(store, studies.get(store, name)))


def _figure(studies: StudyCache, name: str, seconds: float, dark: bool) -> str | None:
    with studies.pool.store() as store:
        study = UnlockedStudy(store, studies.get(store, name))
        events = thinned(store, study.saved, max(time.time() - seconds, 0.0), MAX_POINTS)
    if not any(event.kind in ROUNDS for event in events):
        return None
    chart = figure(study, [study._in_units(event) for event in events], knobs=MAX_KNOBS, dark=dark, gl=False)
    chart.update_layout(paper_bgcolor="rgba(0, 0, 0, 0)", title=None)
    text: str = chart.to_json()
    return text


@lru_cache
def _plotly() -> tuple[str, Path]:
    """Return the version of Plotly and the path of its script."""
    import plotly

    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return str(plotly.__version__), Path(spec.origin).parent / "package_data" / "plotly.min.js"


@lru_cache
def _compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6)
