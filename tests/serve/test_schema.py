"""The API is the one that docs/openapi.json describes, and whatever is sent, it answers with what that says."""

import asyncio
import json
import os
import random
import string
import warnings
from pathlib import Path

import httpx
import pytest

from trimtab.serve.app import create, openapi
from trimtab.serve.settings import Settings

from ..factories import KNOBS

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"
RANDOM = 10_000 if os.environ.get("TRIMTAB_LONG") else 2_000


def test_the_description_is_the_one_that_is_checked_in():
    there = json.loads(FILE.read_text())
    assert there["openapi"].startswith("3.1")
    assert there == json.loads(json.dumps(openapi())), "write it again: python -m trimtab.serve.app > docs/openapi.json"


def test_the_service_answers_as_described(service):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from hypothesis import HealthCheck, Phase, given, settings

        schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text())).exclude(path_regex="^/v1/events$")
        schema.config.base_url = service.url
        checks = [
            schemathesis.checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ]
        for operation in schema.get_all_operations():

            @settings(
                max_examples=4,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            @given(case=operation.ok().as_strategy())
            def agree(case):
                case.validate_response(case.call(), checks=checks)

            agree()


WORDS = (
    "",
    "a",
    "b",
    "-",
    "..",
    "%00",
    "\u2603",
    "a" * 300,
    "'; DROP TABLE trimtab_studies; --",
    "<script>",
    "1",
    "-1",
)
ACTIONS = ("approve", "reject", "hold", "resume", "undo", "reset", "restore", "nothing")
LEAVES = (None, True, 0, 1, -1, 2**70, 1.5, 1e308, -0.0, "", "a", "\x00", "\ud83d\ude00", "x" * 70_000, [], {}, [[]])
KEYS = (
    "value",
    "note",
    "applied",
    "knobs",
    "name",
    "low",
    "high",
    "start",
    "round",
    "why",
    "results",
    "study",
    "trial",
)


def anything(chance, depth=0):
    if depth > 3 or chance.random() < 0.4:
        return chance.choice(LEAVES)
    if chance.random() < 0.3:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(3))]
    return {chance.choice(KEYS): anything(chance, depth + 1) for _ in range(chance.randrange(4))}


def a_body(chance):
    kind = chance.random()
    if kind < 0.1:
        return json.dumps({"why": "fuzz"} if chance.random() < 0.8 else {"round": chance.randrange(4)}).encode()
    if kind < 0.25:
        return json.dumps({"value": chance.choice(LEAVES), "note": chance.choice(WORDS)}).encode()
    if kind < 0.4:
        results = [
            {"study": chance.choice("abz"), "trial": chance.randrange(9), "value": chance.random()} for _ in "ab"
        ]
        return json.dumps({"results": results}).encode()
    if kind < 0.45:
        fields = ("radius", "keep", "seed", "knobs.gain.low", "knobs.gain.high", "guard.failures", "guard.quiet_hours")
        return json.dumps({"changes": {name: chance.choice(LEAVES) for name in chance.sample(fields, 2)}}).encode()
    if kind < 0.5:
        knob = {key: chance.choice(LEAVES) for key in chance.sample(("low", "high", "start", "step", "choices"), 3)}
        return json.dumps({"knobs": [{"name": "x", **knob}]}).encode()
    if kind < 0.85:
        return json.dumps(anything(chance)).encode()
    return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))


def a_request(chance):
    name = chance.choice("abab" + "z") if chance.random() < 0.7 else chance.choice(WORDS)
    place = chance.choice(
        [
            f"/v1/studies/{name}",
            f"/v1/studies/{name}:{chance.choice(ACTIONS)}",
            f"/v1/studies/{name}/trials:ask",
            f"/v1/studies/{name}/trials/{chance.choice([1, 2, 3, 5, -1, 2**65, 'x'])}/result",
            "/v1/tells",
            "/v1/studies",
            "/v1/events",
            f"/{''.join(chance.choices(string.printable, k=5))}",
        ]
    )
    names = ("attention", "after", "limit", "study", "wait", "archived", "search", "why", "next", "another")
    query = {chance.choice(names): str(chance.choice([*WORDS, 0, 7, "true"])) for _ in range(chance.randrange(3))}
    if "wait" in query:
        query["wait"] = "0"
    headers = {"if-match": chance.choice(['"1"', '"99"', "x", "*", "W/"])} if chance.random() < 0.3 else {}
    if chance.random() < 0.9:
        headers["content-type"] = "application/json"
    return chance.choice(["GET", "PUT", "POST", "DELETE", "PATCH"]), place, query, headers


@pytest.mark.parametrize("seed", range(2))
def test_thousands_of_requests_of_anything_are_no_error_of_the_service(tmp_path, seed):
    chance, statuses = random.Random(seed), set()
    app = create(Settings(store=f"sqlite:///{tmp_path}/t.db", connections=1, access_log=False))

    async def run():
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1), raise_app_exceptions=False)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as client:
            with app.state.studies.pool.store() as store:
                store.execute("PRAGMA synchronous=OFF")  # thousands of commits that need not survive
            for name in "ab":
                guard = {"approval": name == "b", "failures": 2}
                url = f"http://127.0.0.1/v1/studies/{name}"
                assert (await client.put(url, json={"knobs": KNOBS, "guard": guard})).status_code == 201
            for _ in range(RANDOM // 2):
                method, path, query, headers = a_request(chance)
                try:
                    request = client.build_request(
                        method, "http://127.0.0.1" + path, params=query, headers=headers, content=a_body(chance)
                    )
                except (httpx.InvalidURL, UnicodeEncodeError):
                    continue
                answer = await client.send(request)
                statuses.add(answer.status_code)
                assert answer.status_code < 500, (method, path, query, headers, request.content[:300], answer.text)
                if answer.status_code >= 400 and not path.startswith("/static"):
                    assert answer.headers["content-type"] == "application/problem+json", (path, answer.text)

    asyncio.run(run())
    assert {200, 404, 409, 412, 422} <= statuses
