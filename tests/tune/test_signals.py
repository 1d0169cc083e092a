"""A signal at every stage of `trimtab tune`: nothing acknowledged is lost, and it goes on as if there was none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.live import Runner, Study, read_config
from trimtab.store.shared_store import SharedStore
from trimtab.study.verify import check_study

from ..databases import server, url  # noqa: F401

SIGNALLING = Path(__file__).with_name("signalling.py")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
ENDS = {"SIGKILL": {-9}, "SIGTERM": {0, -15}, "SIGINT": {0, 130}}
"""Exit statuses; after 0 the round was finished. Before the first round and after the last one SIGTERM ends at once."""
STAGES = {
    *("before BEGIN", "after BEGIN", "before UPDATE", "after UPDATE", "before INSERT", "after INSERT", "before COMMIT"),
    *("after COMMIT", "in transaction", "after transaction", "before ask", "after ask", "before measure"),
    *("after measure", "before tell", "after tell", "before show", "after show", "before lock", "after lock"),
    *("before _follow", "after _follow", "before close", "after close"),
}
STUDY = """
name = "signalled"
store = "{store}"
command = ["sh", "-c", "echo $((KNOB_N * KNOB_N / 9 + TRIMTAB_ROUND % 7))"]
seed = 5
[baseline]
every = 3
[knobs.n]
type = "integer"
low = 1
high = 900
start = 400
"""


def rounds(where):
    """Events with values and their centres, without times and "leave" events."""
    with Study.open_unlocked(where, "signalled") as study:
        return [event._replace(time=0.0, seq=0) for event in study.events() if event.kind != "leave"]


def undisturbed(folder, count):
    (folder / "study.toml").write_text(STUDY.format(store="other.db"))
    config = read_config(folder / "study.toml")
    with config.open() as study:
        for _ in Runner(config, study).rounds(count):
            pass
    return rounds(folder / "other.db")


@pytest.mark.parametrize(
    ("place", "every"),
    [
        ("file", 12),
        ("server", 30),
        pytest.param("file", 1, marks=pytest.mark.long),
        pytest.param("server", 1, marks=pytest.mark.long),
    ],
)
def test_a_signal_at_each_stage_leaves_no_trace(tmp_path, request, place, every):
    where = str(tmp_path / "t.db") if place == "file" else request.getfixturevalue("url")
    (tmp_path / "study.toml").write_text(STUDY.format(store=where))
    words = [sys.executable, SIGNALLING, tmp_path, str(every), *SIGNALS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(runs) > 3 * 90 / every
    print(f"{len(runs)} signals at {len({stage for _, stage, *_ in runs})} kinds of stages")
    printed = []
    for sign, stage, status, out, err in runs:
        assert status in (ENDS[sign] if stage else {0}), (sign, stage, status, out, err)
        assert "Traceback" not in err, (sign, stage, err)
        printed += [
            line.split() for line in out.splitlines(keepends=True) if line.endswith("\n") and "note" not in line
        ]
    if every == 1 and place == "file":
        assert STAGES <= {stage for _, stage, *_ in runs}
    found = rounds(where)
    stored = {(event.kind, str(event.round)): f"{event.value:.6g}" for event in found if event.value is not None}
    acknowledged = {(words[3], words[2]): words[4] for words in printed if words[3] != "leave"}
    assert len(acknowledged) > len(runs) / 2
    assert acknowledged.items() <= stored.items()
    assert found == undisturbed(tmp_path, sum(event.kind in ("tell", "baseline") for event in found))
    with SharedStore(where) as store:
        assert check_study(store, store.load("signalled")) == []
