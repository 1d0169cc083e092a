"""The dashboard in a real browser: Debian's Chromium, by Playwright."""

import contextlib
import json
import re
import shutil
import socket
import threading
from urllib.parse import urlsplit

import pytest

from trimtab.serve.http import tokens
from trimtab.store.shared_store import SharedStore

sync_api = pytest.importorskip("playwright.sync_api", reason='no Playwright: pip install "trimtab[dev]"')
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
PATIENCE = 60_000  # ms: for a machine with other things to do
expect = sync_api.expect
expect.set_options(timeout=PATIENCE)
MAPS = "Applying inline style violates"  # plotly.js brings the styles of maps, which the policy keeps out
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[31m${alert(1)}{{7*7}}"
)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        with contextlib.closing(playwright.chromium.launch(executable_path=CHROMIUM, args=options)) as found:
            yield found


@pytest.fixture
def visit(browser):
    """Pages in windows of their own; whatever goes wrong in one is a failure, and so is a request to elsewhere."""
    with contextlib.ExitStack() as stack:
        wrong = []

        def look(url, width=1280, scheme="light", allowed=()):
            size = {"width": width, "height": 900 if width > 800 else 844}
            context = stack.enter_context(contextlib.closing(browser.new_context(viewport=size, color_scheme=scheme)))
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            here = urlsplit(url).netloc

            def check(request):
                if urlsplit(request.url).netloc != here and urlsplit(request.url).scheme not in ("data", "blob"):
                    wrong.append(f"a request to {request.url}")

            def hear(message):
                if message.type == "error" and not any(word in message.text for word in (MAPS, *allowed)):
                    wrong.append(message.text)

            page.on("request", check)
            page.on("console", hear)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
            page.goto(url)
            return page

        yield look
        assert wrong == []


def act(page, name, why="", **fields):
    """Press a button, fill its dialog in, and confirm."""
    page.click(f"#do-{name}")
    expect(page.locator("#dialog")).to_be_visible()
    for field, value in fields.items():
        found = page.locator(f"#dialog-{field}")
        found.select_option(value) if field == "field" else found.fill(str(value))
    page.fill("#dialog-why", why)
    page.click("#dialog-yes")
    expect(page.locator("#dialog")).to_be_hidden()


def is_drawn(page):
    page.wait_for_selector("#chart[data-drawn] .main-svg")


def overflows(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def serious(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason='no axe: pip install "trimtab[dev]"')
    found = axe.Axe().run(page).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_sign_in_and_out(service, visit):
    with SharedStore(service.store) as store:
        token = tokens.create(store, "operate", label="anna")
        reader = tokens.create(store, "read")
    service.http.headers["Authorization"] = f"Bearer {token}"
    service.make()
    page = visit(f"{service.url}/studies/a", allowed=("401",))
    expect(page).to_have_url(re.compile("/login$"))
    page.fill("#token", "tt_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("revoked token")
    page.fill("#token", token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="a", exact=True)).to_be_visible()
    [cookie] = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    page.get_by_role("link", name="a", exact=True).click()
    act(page, "hold", "the belt is off")
    expect(page.locator("#paused")).to_contain_text("anna")
    expect(page.locator("#paused")).to_contain_text("the belt is off")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/login$"))
    page.fill("#token", reader)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="a", exact=True)).to_be_visible()
    page.goto(f"{service.url}/studies/a")
    expect(page.locator("text=scope operate")).to_be_visible()
    assert page.locator("[data-action]").count() == 0


def test_a_study_moves_while_somebody_looks(service, visit, until):
    service.make()
    service.make("b")
    service.run(3)
    page = visit(f"{service.url}/studies/a")
    fleet = visit(service.url)
    is_drawn(page)
    expect(page.locator("#round")).to_have_text("3")
    service.run(4)
    expect(page.locator("#round")).to_have_text("7")
    expect(fleet.locator("#study-a [data-label=rounds]")).to_have_text("7")
    expect(fleet.locator("#study-b [data-label=rounds]")).to_have_text("0")
    expect(fleet.locator("#study-a .spark")).to_be_visible()
    points = "document.querySelector('#chart').data.find((trace) => trace.name === 'measured').x.length"
    until(lambda: page.evaluate(points) == 7)
    service.tell(service.ask().json()["id"], None, note="the sensor was wet")
    expect(page.locator("[data-part=happened]")).to_contain_text("the sensor was wet")


def test_approve_and_reject(service, visit):
    service.make(guard={"approval": True})
    assert service.ask().status_code == 202
    page = visit(f"{service.url}/studies/a")
    expect(page.locator("#waits")).to_contain_text("gain")
    page.click("#do-approve")
    expect(page.locator("#dialog-what")).to_contain_text("Round 0 runs with")
    page.keyboard.press("Escape")
    expect(page.locator("#dialog")).to_be_hidden()
    assert service.ask().status_code == 202
    act(page, "approve", "go on")
    expect(page.locator("#waits")).to_have_count(0)
    trial = service.ask().json()
    service.tell(trial["id"], 1.0)
    assert service.ask().status_code == 202
    expect(page.locator("#waits")).to_contain_text("round 1")
    act(page, "reject")
    expect(page.locator("#waits")).to_have_count(0)
    assert service.ask().status_code == 202
    assert service.get()["rounds"] == 2


def test_hold_resume_undo_and_back_to_start(service, visit):
    service.make()
    service.run(10)
    page = visit(f"{service.url}/studies/a", allowed=("422",))
    act(page, "hold", "maintenance")
    expect(page.locator("#paused")).to_contain_text("maintenance")
    assert service.ask().status_code == 202
    act(page, "resume")
    expect(page.locator("#paused")).to_have_count(0)
    assert service.ask().status_code == 200
    act(page, "undo", "a leak", round=4)
    expect(page.locator("#round")).to_have_text("4")
    expect(page.locator("[data-part=happened]")).to_contain_text("a leak")
    act(page, "reset")
    expect(page.locator("[data-part=happened]")).to_contain_text("to start")
    page.click("#do-undo")
    page.fill("#dialog-round", "99")
    page.click("#dialog-yes")
    expect(page.locator("#dialog-wrong")).to_contain_text("has not been run")


def test_a_page_whose_stream_was_refused_comes_back(service, visit, until):
    """A browser does not ask again after another answer than 200; waits between two tries grow until one succeeds."""
    service.make()
    page = visit(f"{service.url}/studies/a", allowed=("429",))
    refused = []
    page.add_init_script("""
        window.delays = [];
        const later = window.setTimeout;
        window.setTimeout = (act, ms) => {
          if (!String(act).includes("connect")) return later(act, ms);
          window.delays.push(ms);
          return later(act, 1);
        };
    """)

    def answer(route):
        if len(refused) < 8:
            refused.append(route.request.url)
            route.fulfill(status=429, headers={"Retry-After": "5"}, body="")
        else:
            route.continue_()

    page.route("**/v1/events*", answer)
    page.goto(f"{service.url}/studies/a")
    until(lambda: page.evaluate("window.delays.length") == 8)
    delays = page.evaluate("window.delays")
    for n, delay in enumerate(delays):
        assert 500 * 2 ** min(n, 5) * 0.9 <= delay <= min(1500 * 2**n, 45_000)
    service.run(2)
    expect(page.locator("#round")).to_have_text("2")


def test_a_lost_connection_is_said_and_comes_back(service, visit):
    service.make()
    service.run(1)
    with cut_off(service) as (url, cut):
        page = visit(f"{url}/studies/a", allowed=("ERR_", "Failed to load"))
        is_drawn(page)
        expect(page.locator("#banner")).to_be_hidden()
        cut(True)
        expect(page.locator("#banner")).to_contain_text("Connection lost")
        service.run(2)
        expect(page.locator("#round")).to_have_text("1")
        cut(False)
        expect(page.locator("#round")).to_have_text("3")
        expect(page.locator("#banner")).to_be_hidden()


@contextlib.contextmanager
def cut_off(service):
    """The service through a line that can be cut."""
    there = (urlsplit(service.url).hostname, urlsplit(service.url).port)
    state, open_lines = {"cut": False, "end": False}, set()

    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for line in (source, target):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def accept():
        while not state["end"]:
            with contextlib.suppress(OSError):
                line = listening.accept()[0]
                if state["cut"] or state["end"]:
                    line.close()
                    continue
                other = socket.create_connection(there)
                open_lines.update((line, other))
                for pair in ((line, other), (other, line)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    def cut(is_cut):
        state["cut"] = is_cut
        for line in [*open_lines] if is_cut else []:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", cut
        finally:
            state["end"] = True
            cut(True)
            with contextlib.suppress(OSError):
                socket.create_connection(listening.getsockname()).close()
            thread.join(10)
            for line in open_lines:
                line.close()


def test_hostile_words_are_shown_as_text(service, visit):
    long = "<b>" + "x" * 65_536
    knobs = [
        {"name": "codec", "choices": [HOSTILE, long, "plain"], "start": HOSTILE},
        {"name": "gain", "low": 0, "high": 1, "start": 0.5, "unit": "<i>m</i>"},
    ]
    for body in ({"knobs": knobs}, {"knobs": [{**knobs[0], "choices": [HOSTILE, "plain"]}, knobs[1]]}):
        made = service.http.put("/v1/studies/x", json={"seed": 1, "baseline": {"every": 0}, **body})
        if made.status_code == 201:
            break
    assert made.status_code == 201, made.text
    service.tell(service.ask("x").json()["id"], None, "x", note=HOSTILE)
    service.tell(service.ask("x").json()["id"], 1.0, "x", note=HOSTILE[:400])
    most = ("<b>" * 30_000)[: 65_536 - len(HOSTILE)] + HOSTILE  # 64 kB, whose end is kept
    trial = service.ask("x").json()["id"]
    refused = service.tell(trial, 1.0, "x", note=most + "!")
    assert refused.status_code == 422
    assert "65536" in refused.json()["detail"]
    assert [service.tell(trial, 1.0, "x", note=most).json()["again"] for _ in range(2)] == [False, True]
    assert service.act("hold", "x", why=HOSTILE).status_code == 200
    page = visit(f"{service.url}/studies/x")
    is_drawn(page)
    expect(page.locator("#paused")).to_contain_text("<script>")
    expect(page.locator("[data-part=happened]")).to_contain_text("<img src=x onerror")
    expect(page.locator("[data-part=happened]")).to_contain_text("\\x1b[31m")
    expect(page.locator("[data-part=knobs]")).to_contain_text("<i>m</i>")
    expect(page.locator("[data-part=rounds] tbody tr").first).to_contain_text(
        "<b><b><script>document.title='owned'</script>"
    )
    assert page.locator("main b", has_text="script").count() == 0
    assert page.locator("main script, main img, .choices img").count() == 0
    expect(page.locator("#chart")).to_contain_text("<i>m</i>")
    expect(page).to_have_title("x: trimtab")
    assert not overflows(page)
    for query in ("search=<script>alert(1)</script>", 'search="><img src=x>'):
        page.goto(f"{service.url}/?{query}")
        expect(page.get_by_text("No study matches.")).to_be_visible()
        assert page.locator("main img, main script").count() == 0
    assert service.http.get("/studies/<script>").status_code == 422


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "dark"),
        (390, "light"),
        pytest.param(1280, "light", marks=pytest.mark.long),
        pytest.param(390, "dark", marks=pytest.mark.long),
    ],
    ids=["desktop, dark", "phone, light", "desktop, light", "phone, dark"],
)
def test_desktop_and_phone(service, visit, tmp_path, width, scheme):
    service.make("press", baseline={"every": 10})
    service.make("kiln", guard={"approval": True})
    service.run(20, "press")
    service.ask("kiln")
    page = visit(service.url, width, scheme)
    assert [row.get_attribute("data-study") for row in page.locator("#fleet tr").all()] == ["kiln", "press"]
    assert not overflows(page)
    if width > 800:
        assert serious(page) == []
    page.goto(f"{service.url}/studies/press")
    is_drawn(page)
    assert serious(page) == []
    assert not overflows(page)
    picture = page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
    assert picture.startswith(b"\x89PNG")
    page.click("#do-hold")
    assert serious(page) == []


def test_by_keyboard(service, visit):
    service.make()
    page = visit(service.url)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    link = page.get_by_role("link", name="a", exact=True)
    for _ in range(20):
        page.keyboard.press("Tab")
        if link.evaluate("one => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/studies/a$"))
    page.focus("#do-hold")
    service.run(2)
    expect(page.locator("#round")).to_have_text("2")
    expect(page.locator("#do-hold")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("#paused")).to_contain_text("by keyboard")


def test_search_pages_and_ranges(service, visit, monkeypatch):
    for module in ("dashboard.routes", "dashboard.fleet_page"):
        monkeypatch.setattr(f"trimtab.serve.{module}.PAGE_SIZE", 3)
    for n in range(4):
        service.make(f"study-{n}")
    service.make("press")
    service.run(1, "press")
    page = visit(service.url)
    assert page.locator("#fleet tr").count() == 3
    page.get_by_role("link", name="next").click()
    expect(page.locator("#fleet tr")).to_have_count(2)
    page.fill("#search", "PRES")
    page.keyboard.press("Enter")
    expect(page.locator("#fleet tr")).to_have_count(1)
    page.get_by_role("link", name="press").click()
    is_drawn(page)
    page.get_by_role("link", name="1 h").click()
    is_drawn(page)
    expect(page.get_by_role("link", name="1 h")).to_have_attribute("aria-current", "true")
    text = service.http.get("/studies/press/figure?range=day&dark=true").text
    assert {trace["type"] for trace in json.loads(text)["data"]} == {"scatter"}


def test_before_the_first_round_there_is_no_empty_chart(service, visit):
    service.make()
    page = visit(f"{service.url}/studies/a")
    expect(page.locator("#chart")).to_have_text("No rounds in this range yet.")
    expect(page.locator("[data-part=rounds]")).to_contain_text("No round has given a value yet.")
    assert service.http.get("/studies/a/figure").status_code == 204
    service.run(1)
    is_drawn(page)
    expect(page.locator("#chart > p")).to_have_count(0)
    expect(page.locator("[data-part=rounds] tbody tr")).to_have_count(1)


def test_a_long_history_is_thinned(service, monkeypatch):
    monkeypatch.setattr("trimtab.serve.dashboard.routes.MAX_POINTS", 50)
    service.make()
    service.run(60)
    figure = service.http.get("/studies/a/figure").json()
    [told] = [trace for trace in figure["data"] if trace["name"] == "measured"]
    assert len(told["x"]) == 30


def test_what_pages_may_load(service):
    answer = service.http.get("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    script = service.http.get("/static/plotly.min.js")
    assert script.headers["content-encoding"] == "gzip"
    assert "Plotly" in script.text
