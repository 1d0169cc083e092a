"""Runs of benchmarks/peers.py continue from stored results, and discard the ones they are told to."""

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from heats import Kept


@dataclass
class Heat:
    """One that counts how often it is played."""

    arena: str
    names: tuple[str, ...]
    seed: int = 0
    plays: list[int] = field(default_factory=list)

    @property
    def key(self):
        return json.dumps([f"{self.arena}, 100 rounds", self.seed, [[name, None, "1.0"] for name in self.names]])

    def play(self):
        self.plays.append(self.seed)
        return [(1.0 + self.seed, float("inf"))] * len(self.names)


@pytest.fixture
def heats():
    return [Heat("lqr", ("auto",)), Heat("lqr", ("cmaes CMA",), 1), Heat("queue-server", ("auto", "cmaes CMA"))]


def counts(heats):
    return [len(heat.plays) for heat in heats]


def test_what_was_played_is_not_played_again(tmp_path, heats):
    file = tmp_path / "plays.jsonl"
    first = Kept(file).of(heats[:2], "some", jobs=1)
    assert first == [[(1.0, float("inf"))], [(2.0, float("inf"))]]
    again = Kept(file).of(heats, "all", jobs=1)  # another run
    assert [[tuple(pair) for pair in scores] for scores in again[:2]] == first
    assert counts(heats) == [1, 1, 1]


def test_another_key_is_played(tmp_path, heats):
    kept = Kept(tmp_path / "plays.jsonl")
    kept.of(heats, "all", jobs=1)
    heats[0].seed = 5
    assert kept.of(heats, "all", jobs=1)[0] == [(6.0, float("inf"))]
    assert counts(heats) == [2, 1, 1]


@pytest.mark.parametrize(
    ("name", "among", "played"),
    [
        ("auto", ["lqr", "queue-server"], [2, 1, 2]),
        ("auto", ["lqr"], [2, 1, 1]),
        ("cmaes CMA", ["lqr", "queue-server"], [1, 2, 2]),
        (None, ["lqr"], [2, 2, 1]),
    ],
)
def test_what_is_forgotten_is_played_again_also_after_an_interruption(tmp_path, heats, name, among, played):
    file = tmp_path / "plays.jsonl"
    Kept(file).of(heats, "all", jobs=1)
    Kept(file).forget(name, among)
    Kept(file).of(heats, "all", jobs=1)
    assert counts(heats) == played


def test_how_far_it_is_is_told(tmp_path, heats, capsys):
    Kept(tmp_path / "plays.jsonl").of(heats, "trials", jobs=1)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "  trials: 3 of 3 heats are to be played"
    assert re.fullmatch("  trials: 3 of 3, .*, 0 s left", last)


def test_nothing_is_told_of_what_was_played_before(tmp_path, heats, capsys):
    kept = Kept(tmp_path / "plays.jsonl")
    kept.of(heats, "trials", jobs=1)
    capsys.readouterr()
    kept.of(heats, "trials", jobs=1)
    assert capsys.readouterr().out == ""
