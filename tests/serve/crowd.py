"""Clients that do random things to the same studies, over HTTP and in the store itself, and record what came of it."""

import http.client
import itertools
import json
import math
import random
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

from trimtab.live import Study
from trimtab.store.errors import Taken, Unavailable

from ..factories import KNOBS
from .history import Op

KINDS = ("ask", "look", "tell", "skip", "set", "undo")
CLOSED = (404, 409, 410)  # answers to a value: the trial is closed, and this is not what closed it
PATIENCE = 60  # seconds for an answer


class Crowd:
    """Everything that was done, study by study; `wrong` is what nobody may be answered."""

    def __init__(self, url, where, studies, seed, web=4, direct=2):
        self.url, self.where, self.studies = url, where, studies
        self.ops, self.wrong, self.stop = {name: [] for name in studies}, [], False
        self.numbers = itertools.count(1)
        self.threads = [threading.Thread(target=self._work, args=(Web(self, f"{seed}/{n}"),)) for n in range(web)]
        self.threads += [
            threading.Thread(target=self._work, args=(Direct(self, f"{seed}/d{n}"),)) for n in range(direct)
        ]

    def make(self):
        """The studies, before anybody else is there."""
        web = Web(self, "first")
        for n, name in enumerate(self.studies):
            body = {"knobs": KNOBS, "seed": n, "baseline": {"every": 5}}
            while web.send("PUT", f"/v1/studies/{name}", body, cut=False) is None:
                time.sleep(0.05)
        web.close()

    def _work(self, client):
        try:
            while not self.stop:
                client.step()
        except Exception as error:
            self.wrong.append(error)
        finally:
            client.close()

    def count(self):
        """Acknowledged changes."""
        return sum(op.outcome == "ok" and op.token is not None for ops in self.ops.values() for op in list(ops))

    def did(self):
        """How often what was done, with what outcome."""
        return Counter((op.kind, op.outcome) for ops in self.ops.values() for op in list(ops))

    def did_all(self):
        """Whether everything was done, and lost and refused, at least once."""
        return set(self.did()) >= {(kind, "ok") for kind in KINDS} | {("tell", "refused"), ("tell", "unknown")}

    def token(self):
        return f"#{next(self.numbers)}"


class Web:
    """A client over HTTP, which hangs up now and then before it is answered."""

    def __init__(self, crowd, seed):
        self.crowd, self.chance = crowd, random.Random(seed)
        parts = urlsplit(crowd.url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        self.asked, self.sent = {}, {}
        self.close = self.connection.close

    def send(self, method, path, body=None, cut=None):
        """The status and the answer, or None where nobody knows."""
        cut = self.chance.random() < 0.04 if cut is None else cut
        try:
            self.connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            if cut:
                self.connection.close()
                return None
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            time.sleep(0.02)  # a service that starts is not knocked at all the time
            return None
        if answer.status == 503:
            return None
        if answer.status >= 500:
            self.crowd.wrong.append((method, path, body, answer.status, text))
        return answer.status, json.loads(text)

    def step(self):
        name = self.chance.choice(self.crowd.studies)
        kinds = {
            self.ask: 30,
            self.tell: 45,
            self.again: 5,
            self.many: 8,
            self.correct: 3,
            self.undo: 1.5,
            self.look: 8,
        }
        self.chance.choices(list(kinds), list(kinds.values()))[0](name)

    def record(self, name, *about, **more):
        self.crowd.ops[name].append(Op(*about, **more))

    def ask(self, name):
        begin = time.monotonic()
        found = self.send("POST", f"/v1/studies/{name}/trials:ask", {})
        if found is not None and found[0] == 200:
            self.handed_out(name, begin, found[1])

    def handed_out(self, name, begin, trial):
        given = {"trial": trial["id"], "query": list(trial["knobs"].values()), "round": trial["round"]}
        self.record(name, "ask", begin, time.monotonic(), **given)
        self.asked[name] = trial

    def tell(self, name):
        trial = self.asked.get(name)
        if trial is None:
            return self.ask(name)
        body = {"value": (trial["knobs"]["gain"] - 6) ** 2 + self.chance.random()}
        if self.chance.random() < 0.2:
            body = {"value": None, "note": self.crowd.token()}
        return self.put(name, trial["id"], body)

    def again(self, name):
        """An earlier request, successful or not."""
        return self.put(name, *self.sent[name]) if name in self.sent else self.ask(name)

    def put(self, name, trial, body):
        begin, next = time.monotonic(), self.chance.random() < 0.3
        path = f"/v1/studies/{name}/trials/{trial}/result" + ("?next=true" if next else "")
        self.told(name, begin, trial, body, self.send("PUT", path, body))

    def many(self, _):
        """A batch: one value for each study that a trial is known of."""
        trials = {name: trial["id"] for name, trial in self.asked.items()}
        bodies = {name: {"value": self.chance.random()} for name in trials}
        begin, given = time.monotonic(), [{"study": name, "trial": trials[name], **bodies[name]} for name in trials]
        found = self.send("POST", "/v1/tells", {"results": given, "next": self.chance.random() < 0.5})
        results = [None] * len(trials) if found is None else found[1]["results"]
        for name, result in zip(trials, results, strict=True):
            answer = result and (result["status"], result.get("result") or result["problem"])
            self.told(name, begin, trials[name], bodies[name], None if answer and answer[0] == 503 else answer)

    def told(self, name, begin, trial, body, answer):
        token = body["note"] if body["value"] is None else repr(body["value"])
        about = {"token": token, "trial": trial}
        kind, end, self.sent[name] = "skip" if body["value"] is None else "tell", time.monotonic(), (trial, body)
        if answer is None:
            self.record(name, kind, begin, math.inf, "unknown", **about)
        elif answer[0] == 200:
            self.record(name, kind, begin, end, **about, seq=answer[1]["seq"])
            if "next" in answer[1]:
                self.handed_out(name, begin, answer[1]["next"])
        elif answer[0] in CLOSED and not answer[1]["type"].endswith((":held", ":conflict")):
            self.record(name, kind, begin, end, "refused", **about)

    def correct(self, name):
        """A field of the probes, which closes the open trial, or one of the run alone."""
        probes = self.chance.random() < 0.5
        field = ("radius", self.chance.uniform(0.02, 0.08)) if probes else ("keep", self.chance.randint(10**4, 10**6))
        begin, token = time.monotonic(), self.crowd.token()
        found = self.send("PATCH", f"/v1/studies/{name}", {"changes": dict([field]), "why": token})
        self.changed(name, "set", begin, token, found, closes=probes)

    def undo(self, name):
        if name in self.asked:
            begin, token = time.monotonic(), self.crowd.token()
            round = max(self.asked[name]["round"] - self.chance.randint(0, 3), 0)
            found = self.send("POST", f"/v1/studies/{name}:undo", {"round": round, "why": token})
            self.changed(name, "undo", begin, token, found)

    def changed(self, name, kind, begin, token, found, **more):
        if found is None or found[0] == 202:  # whoever holds it does it, at some time
            self.record(name, kind, begin, math.inf, "unknown", token=token, **more)
        elif found[0] == 200:
            self.record(name, kind, begin, time.monotonic(), token=token, seq=found[1]["seq"], **more)
        else:
            self.record(name, kind, begin, time.monotonic(), "refused", token=token, **more)

    def look(self, name):
        begin = time.monotonic()
        found = self.send("GET", f"/v1/studies/{name}")
        if found is not None:
            self.record(name, "look", begin, time.monotonic(), seq=found[1]["seq"])


class Direct:
    """A program that opens a study in the store for some rounds, or asks for a correction of it."""

    def __init__(self, crowd, seed):
        self.crowd, self.chance = crowd, random.Random(seed)

    def close(self):
        """Nothing is open between two steps."""

    def step(self):
        name = self.chance.choice(self.crowd.studies)
        try:
            if self.chance.random() < 0.2:
                return self.request(name)
            with Study.open(self.crowd.where, name) as study:
                for _ in range(self.chance.randint(1, 4)):
                    self.round(name, study)
                if self.chance.random() < 0.3:
                    self.correct(name, study)
        except (Taken, Unavailable):
            pass
        time.sleep(self.chance.random() * 0.2)  # so that those who come over HTTP are let in, too
        return None

    def round(self, name, study):
        began = time.monotonic()
        trial = study.ask()
        asked, value = time.monotonic(), (trial.knobs["gain"] - 6) ** 2 + self.chance.random()
        given = {"trial": trial.id, "query": list(trial.knobs.values()), "round": trial.round}
        self.write(name, study, "tell", repr(value), lambda: study.tell(trial, value), trial=trial.id)
        self.crowd.ops[name].append(Op("ask", began, asked, **given))  # it was: what nobody may tell is not asked for

    def correct(self, name, study):
        token, radius = self.crowd.token(), self.chance.uniform(0.02, 0.08)
        self.write(name, study, "set", token, lambda: study.set({"radius": radius}, who="direct", why=token))

    def write(self, name, study, kind, token, act, **about):
        """Until it is acknowledged: told again after the store was away, a value is taken once."""
        begin, ops = time.monotonic(), self.crowd.ops[name]
        try:
            while True:
                try:
                    act()
                except Unavailable:
                    ops.append(Op(kind, begin, math.inf, "unknown", token, **about))
                    time.sleep(0.02)
                else:
                    return ops.append(Op(kind, begin, time.monotonic(), "ok", token, seq=study.seq, **about))
        except Taken:
            ops.append(Op(kind, begin, math.inf, "unknown", token, **about))
            raise

    def request(self, name):
        token, keep = self.crowd.token(), self.chance.randint(10**4, 10**6)
        self.crowd.ops[name].append(Op("set", time.monotonic(), math.inf, "unknown", token, closes=False))
        with Study.open_unlocked(self.crowd.where, name, mode="write") as study:
            study.set({"keep": keep}, who="direct", why=token)
