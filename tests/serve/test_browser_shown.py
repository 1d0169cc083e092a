"""Contents of the pages of the dashboard."""
# ruff: noqa: F401, F811

import re

import pytest

from .test_browser import browser, expect, pytestmark, visit

CHOICE = [{"name": "codec", "choices": ["gzip", "zstd", "none"], "start": "gzip"}]
QUICK = "const usual = setInterval; setInterval = (act, ms) => usual(act, ms / 20);"


def numbers(service, name="a"):
    """The text about the first knob."""
    text = service.http.get(f"/studies/{name}").text
    return re.sub(r"<.*?>", "", re.search(r'<p class="numbers">(.*?)</p>', text, re.S)[1])


def said(number):
    return f"{number:.4g}".replace("-", "−")


def test_what_was_measured_and_what_is_open(service):
    service.make()
    first = service.ask().json()
    assert f"last measured –, open trial {said(first['knobs']['gain'])}, start 2" in numbers(service)
    service.tell(first["id"], 1.0)
    second = service.ask().json()["knobs"]["gain"]
    assert f"last measured {said(first['knobs']['gain'])}, open trial {said(second)}," in numbers(service)


def test_all_trials_that_are_open(service):
    service.make(max_pending=3)
    assert "open trial" not in numbers(service)
    trials = [service.ask(another="true").json()["knobs"]["gain"] for _ in range(3)]
    assert f"open trials {', '.join(map(said, trials))}, start" in numbers(service)
    service.make("c", knobs=CHOICE)
    assert "open trial gzip" in numbers(service, "c")


def test_what_nobody_has_approved_is_not_open(service):
    service.make(guard={"approval": True})
    assert "open trial" not in numbers(service)
    assert service.ask().status_code == 202
    assert "open trial" not in numbers(service)
    service.act("approve")
    assert "open trial" in numbers(service)
    assert service.http.delete("/v1/studies/a").status_code == 200
    assert "open trial" not in numbers(service)


def test_a_quiet_study_is_said_to_be_overdue(service, visit, monkeypatch):
    service.make()
    service.run(4)
    page = visit(f"{service.url}/studies/a")
    expect(page.locator("#round")).to_have_text("4")
    expect(page.locator("#late")).to_have_count(0)
    for name in ("LATE_FACTOR", "LATE_SECONDS"):
        monkeypatch.setattr(f"trimtab.serve.dashboard.study_page.{name}", 0.0)
    page.reload()
    expect(page.locator("#late")).to_contain_text("Overdue: no round for")


def test_a_study_that_is_meant_to_be_quiet_is_not_overdue(service, monkeypatch):
    def overdue():
        return 'id="late"' in service.http.get("/studies/a").text

    service.make()
    service.run(4)
    for name in ("LATE_FACTOR", "LATE_SECONDS"):
        monkeypatch.setattr(f"trimtab.serve.dashboard.study_page.{name}", 0.0)
    assert overdue()
    service.act("hold")
    assert not overdue()
    service.act("resume")
    assert overdue()
    hours = {"changes": {"guard.quiet_hours": ["00:00-12:00", "12:00-00:00"]}}
    assert service.http.patch("/v1/studies/a", json=hours).status_code == 200
    assert not overdue()
    changes = {"guard.quiet_hours": [], "guard.approval": True}
    assert service.http.patch("/v1/studies/a", json={"changes": changes}).status_code == 200
    assert overdue()
    assert service.ask().status_code == 202
    assert not overdue()
    service.act("reject")
    assert service.http.delete("/v1/studies/a").status_code == 200
    assert not overdue()


def test_a_gain_is_no_saving(service, visit):
    service.make("up", goal="maximise", baseline={"every": 2})
    service.make("down", baseline={"every": 2})
    for name in ("up", "down"):
        service.run(40, name)
    page = visit(service.url)
    for name, word, goal in (("up", "gains", "maximise"), ("down", "saves", "minimise")):
        expect(page.locator(f"#study-{name} [data-label='against the baseline']")).to_contain_text(word)
        expect(page.locator(f"#study-{name} [data-label=value]")).to_contain_text(goal)
        assert f">{word} " in service.http.get(f"/studies/{name}").text
    expect(page.locator(".fleet thead")).not_to_contain_text("saving")


def test_focus_stays_in_a_list_that_lives(service, visit):
    service.make()
    service.make("b")
    page = visit(service.url)
    link = page.get_by_role("link", name="a", exact=True)
    link.focus()
    for rounds in (1, 2):
        service.run(1)
        expect(page.locator("#study-a [data-label=rounds]")).to_have_text(str(rounds))
        expect(link).to_be_focused()


def test_studies_come_and_go_in_an_open_list(service, visit):
    page = visit(service.url)
    page.add_init_script(QUICK)
    page.reload()
    expect(page.locator("#list")).to_contain_text("No studies yet")
    service.make()
    expect(page.locator("#study-a")).to_be_visible()
    service.run(2)
    expect(page.locator("#study-a [data-label=rounds]")).to_have_text("2")
    service.make("b")
    expect(page.locator("#study-b")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("2")
    page.fill("#search", "half a word")
    page.focus("#to-b")
    assert service.http.delete("/v1/studies/a?forever=true").status_code == 200
    expect(page.locator("#study-a")).to_have_count(0)
    service.run(1, "b")
    expect(page.locator("#study-b [data-label=rounds]")).to_have_text("1")
    expect(page.locator("#to-b")).to_be_focused()
    expect(page.locator("#search")).to_have_value("half a word")
    expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.parametrize(("path", "status"), [("/studies/nope", 404), ("/nope", 404), ("/studies/<b>", 422)])
def test_a_page_that_is_not_there_is_a_page(service, visit, path, status):
    page = visit(service.url + path, allowed=(str(status),))
    expect(page.get_by_role("link", name="Studies")).to_be_visible()
    assert page.locator("main b").count() == 0
    if path == "/studies/nope":
        expect(page.locator("main")).to_contain_text("there is no study 'nope'")
    assert service.http.get(path).headers["content-type"] == "application/problem+json"


def test_the_page_of_a_study_that_is_erased_says_so(service, visit):
    service.make()
    page = visit(f"{service.url}/studies/a", allowed=("404",))
    page.add_init_script(QUICK)
    page.reload()
    expect(page.locator("#round")).to_have_text("0")
    assert service.http.delete("/v1/studies/a?forever=true").status_code == 200
    expect(page.locator("main")).to_contain_text("there is no study 'a'")


def test_points_at_the_ends_of_a_chart_have_room(service):
    service.make(knobs=[*CHOICE, {"name": "size", "low": 1, "high": 100, "start": 10, "scale": "log"}])
    service.tell(service.ask().json()["id"], 1.0)
    layout = service.http.get("/studies/a/figure").json()["layout"]
    for axis, (first, last) in {"yaxis2": (0, 2), "yaxis3": (0, 2)}.items():
        low, high = layout[axis]["range"]
        assert low < first
        assert high > last


def test_the_labels_of_both_pages(service, visit):
    service.make()
    page = visit(service.url)
    expect(page.locator(".fleet thead")).to_have_text(
        "studyattentionvaluehistoryagainst the baseline (95 %)roundslast roundin use by"
    )
    expect(page.locator("#study-a [data-label=attention]")).to_have_text("none")
    page.get_by_role("link", name="a", exact=True).click()
    for name in ("Value", "Cost of probing", "History", "Knobs", "Diagnostics", "Events", "Last rounds"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    for name in ("Pause", "Undo", "Reset to start", "Change settings"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
    page.get_by_role("button", name="Change settings").click()
    expect(page.get_by_label("Clear")).to_be_visible()
    expect(page.get_by_label("Reason (recorded in the history)")).to_be_visible()


def test_a_phone_breaks_no_time_and_no_note(service, visit):
    service.make(baseline={"every": 2})
    service.run(6)
    service.act("hold", why="maintenance")
    page = visit(f"{service.url}/studies/a", 390)
    lines = "all => all.map(one => one.getClientRects().length)"
    assert set(page.locator(".log time").evaluate_all(lines)) == {1}
    assert page.locator(".log .note", has_text="baseline").first.evaluate("one => one.clientHeight") < 30
    assert all(page.locator(".card").evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))
