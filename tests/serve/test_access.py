"""Permissions: every route without a token, with too small a scope, with that of another study; signing in."""

import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from trimtab.serve.http import auth, tokens
from trimtab.serve.settings import Settings
from trimtab.store.shared_store import SharedStore

from ..program import run

SCOPES = ("read", "tell", "operate", "admin")
BODIES = {
    "/v1/studies/{name}": {"knobs": [{"name": "x", "low": 0, "high": 1, "start": 0.5}]},
    "/v1/studies/{name}/trials/{id}/result": {"value": 1.0},
    "/v1/tells": {"results": []},
    "/v1/studies/{name}:undo": {"round": 0},
}
NEEDS = {
    ("/v1/studies/{name}", "put"): "operate",
    ("/v1/studies/{name}", "patch"): "operate",
    ("/v1/studies/{name}", "delete"): "admin",
    ("/v1/studies/{name}:restore", "post"): "admin",
    ("/v1/studies/{name}/trials:ask", "post"): "tell",
    ("/v1/studies/{name}/trials/{id}/result", "put"): "tell",
    ("/v1/tells", "post"): "tell",
}
DESCRIBED = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
"""The routes in the service's own description, which test_schema.py checks."""
ROUTES = [
    (path, method)
    for path, methods in DESCRIBED["paths"].items()
    for method in methods
    if path not in ("/livez", "/readyz")
]

NOBODY = [
    {},
    {"Authorization": "Bearer tt_x_y"},
    {"Authorization": "Basic dHQ6dHQ="},
    {"Cookie": "trimtab_session=tt_a_b"},
]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    """Disable the token cache."""
    monkeypatch.setattr(auth, "TOKEN_CACHE_SECONDS", 0.0)


def needed(path, method):
    return NEEDS.get((path, method), "read" if method == "get" else "operate")


def send(service, path, method, headers=None):
    url = path.replace("{name}", "a").replace("{id}", "1")
    body = None if method in ("get", "delete") or path.endswith(":ask") else BODIES.get(path, {})
    return service.http.request(method.upper(), url, headers=headers, **({} if body is None else {"json": body}))


@pytest.fixture
def locked(service):
    service.make()
    service.make("b")
    tokens = {scope: service.token(scope) for scope in SCOPES}
    tokens["other"] = service.token("admin", "b")
    service.http.close()
    service.http = httpx.Client(base_url=service.url, headers=tokens["admin"], timeout=30)
    service.tokens = tokens
    return service


def test_every_route_needs_its_scope(start, tmp_path):
    service = start()
    tokens = {scope: service.token(scope) for scope in SCOPES}
    other = service.token("admin", "b")
    assert len(ROUTES) >= 15
    for path, method in ROUTES:
        for headers in NOBODY:
            answer = send(service, path, method, headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (path, method)
        enough = SCOPES.index(needed(path, method))
        for n, scope in enumerate(SCOPES):
            status = send(service, path, method, tokens[scope]).status_code
            assert (status == 403) == (n < enough), (path, method, scope, status)
        if "{name}" in path:
            assert send(service, path, method, other).status_code == 403, (path, method)


def test_a_token_of_one_study_sees_no_other(locked):
    get, mine = locked.http.get, locked.tokens["other"]
    assert [one["name"] for one in get("/v1/studies", headers=mine).json()["studies"]] == ["b"]
    assert {one["study"] for one in get("/v1/events", headers=mine).json()["events"]} == {"b"}
    assert get("/v1/events?study=a", headers=mine).status_code == 403
    results = [{"study": name, "trial": 1, "value": 1.0} for name in "ab"]
    answer = locked.http.post("/v1/tells", json={"results": results}, headers=mine).json()
    assert [one["status"] for one in answer["results"]] == [403, 200]


def test_a_token_of_one_study_reads_no_other_in_the_figures(start):
    service = start(metrics_studies=10)
    service.make()
    mine, all = service.token("admin", "b"), service.token("read")
    assert service.http.get("/metrics", headers=mine).status_code == 403
    assert 'study="a"' in service.http.get("/metrics", headers=all).text


@pytest.mark.parametrize("signed_in", [False, True])
def test_a_stream_ends_with_its_token(locked, signed_in):
    header = locked.tokens["read"]
    token = header["Authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=locked.url, timeout=300) as listener:
        if signed_in:
            listener.post("/login", data={"token": token})
        else:
            listener.headers.update(header)
        asked = {"Accept": "text/event-stream"}
        with listener.stream("GET", "/v1/events", params={"study": "a"}, headers=asked) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("retry")
            with SharedStore(locked.store) as store:
                tokens.revoke(store, token.split("_")[1])
            list(lines)  # until the end, which comes
        assert listener.get("/v1/studies").status_code == 401


def test_tokens_from_the_shell(start, tmp_path):
    service = start()

    def call(*words):
        return run("token", *words, "--store", service.store)

    assert "No tokens yet" in call("list").stdout
    made = call("create", "--scope", "tell", "--study", "a", "--label", "press 4")
    assert "warning: this is the first token (valid only for tell on study a), so every request" in made.stderr
    token = made.stdout.strip()
    assert call("create", "--scope", "read").stderr == ""  # not the first
    assert re.fullmatch(r"tt_[0-9a-f]{12}_[0-9a-f]{64}", token)
    assert call("create", "--scope", "all").returncode == 2
    listed = call("list").stdout
    assert "press 4" in listed
    # By another process: one that opens and closes a database beside SQLite drops its own locks on it.
    stored = subprocess.run(["cat", service.store], capture_output=True, check=True).stdout
    assert token.split("_")[2].encode() not in stored
    header = {"Authorization": f"Bearer {token}"}
    assert service.http.get("/v1/studies", headers=header).status_code == 200
    assert call("revoke", listed.split()[0]).returncode == 0
    assert service.http.get("/v1/studies", headers=header).status_code == 401
    assert call("revoke", "nobody").returncode == 2


def test_without_tokens_only_this_machine_is_answered(service):
    get = service.http.get
    assert get("/v1/studies").status_code == 200
    assert get("/v1/studies", headers={"Host": "attacker.example"}).status_code == 403
    done = run("serve", "--host", "0.0.0.0", "--port", "0", "--store", service.store)
    assert done.returncode == 2
    assert "create one first: trimtab token create" in done.stderr


def test_no_other_site_changes_anything(service):
    service.make()
    for headers in ({"Origin": "http://attacker.example"}, {"Origin": "null"}, {"Origin": "http://["}, {"Host": "["}):
        assert service.act("hold", headers=headers).status_code == 403, headers
    assert service.act("hold", headers={"Origin": service.url}).status_code == 200


def test_signing_in_and_out(locked):
    token = locked.tokens["operate"]["Authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=locked.url) as browser:
        assert browser.get("/").headers["location"] == "/login"
        assert browser.post("/login", data={"token": "tt_no_no"}).status_code == 401
        signed = browser.post("/login", data={"token": token})
        assert (signed.status_code, signed.headers["location"]) == (303, "/")
        cookie = signed.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert token not in cookie
        page = browser.get("/")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        csrf = re.search(r'name="csrf" content="(\w+)"', page.text)[1]
        assert browser.get("/v1/studies/a").status_code == 200
        assert browser.post("/v1/studies/a:hold", json={}).status_code == 403
        assert browser.post("/v1/studies/a:hold", json={}, headers={"X-CSRF-Token": b"\xe9"}).status_code == 403
        assert browser.post("/v1/studies/a:hold", json={}, headers={"X-CSRF-Token": csrf}).status_code == 200
        stolen = dict(browser.cookies)["trimtab_session"]
        assert locked.http.get("/v1/studies", headers={"Authorization": f"Bearer {stolen}"}).status_code == 401
        assert browser.post("/logout", data={}).status_code == 403
        assert browser.post("/logout", data={"csrf": csrf}).status_code == 303
        assert browser.get("/v1/studies/a", headers={"Cookie": f"trimtab_session={stolen}"}).status_code == 401


def test_settings_go_to_workers(monkeypatch):
    settings = Settings(port=1, rate=2.5)
    for name, value in settings.to_environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.from_environment() == settings


def sign_in(service, token, http=None):
    return (http or service.http).post("/login", data={"token": token["Authorization"].removeprefix("Bearer ")})


def test_a_token_has_so_many_sessions_at_a_time(locked):
    """The oldest ends when another begins; those of other tokens stay."""
    locked.http.headers.clear()

    def begin(scope):
        answer = sign_in(locked, locked.tokens[scope])
        locked.http.cookies.clear()
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

    other, *mine = begin("tell"), *(begin("read") for _ in range(tokens.MAX_SESSIONS + 5))
    statuses = [locked.http.get("/v1/studies", headers=cookie).status_code for cookie in mine]
    assert statuses == [401] * 5 + [200] * tokens.MAX_SESSIONS
    assert locked.http.get("/v1/studies", headers=other).status_code == 200
    with SharedStore(locked.store) as store:
        store.execute("UPDATE trimtab_tokens SET expires = 1 WHERE parent IS NOT NULL")
        begin("read")
        (left,) = store.execute("SELECT count(*) FROM trimtab_tokens WHERE parent IS NOT NULL AND scope = 'read'")[0]
    assert left == 1


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null"])
def test_a_page_of_another_site_signs_nobody_out(locked, origin):
    """A browser sends no cookie along with it, but would take one away by what is answered."""
    locked.http.headers.clear()
    answer = locked.http.post("/logout", headers={"Origin": origin})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (403, None)
    assert "set-cookie" in locked.http.post("/logout", headers={"Origin": locked.url}).headers


def test_the_log_names_who_asked(locked, caplog, until):
    caplog.set_level("INFO", "trimtab.serve")
    with SharedStore(locked.store) as store:
        header = {"Authorization": f"Bearer {tokens.create(store, 'read', label='press 4')}"}
    locked.http.get("/v1/studies", headers=header)
    locked.http.get("/v1/studies/a", headers={"Authorization": "Bearer tt_a_b"})
    sign_in(locked, header)
    locked.http.get("/", headers={"Authorization": ""})

    def said():  # a line is written after the answer was sent
        return {r.trimtab["path"]: r.trimtab["who"] for r in caplog.records if hasattr(r, "trimtab")}

    until(lambda: len(said()) == 4)
    assert said() == {"/v1/studies": "press 4", "/v1/studies/a": "-", "/login": "press 4", "/": "press 4"}


def test_a_first_token_for_everything_locks_nobody_out(tmp_path):
    words = ("token", "create", "--store", tmp_path / "t.db", "--scope")
    assert run(*words, "admin").stderr == ""


def test_a_first_token_to_read_is_warned_of(tmp_path):
    made = run("token", "create", "--store", tmp_path / "t.db", "--scope", "read")
    assert "(valid only for read)" in made.stderr
    assert made.stdout.startswith("tt_")
    assert len(made.stdout.splitlines()) == 1
