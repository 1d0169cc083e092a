import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import trimtab
from trimtab.live import read_config
from trimtab.tune.config import Config, Guard
from trimtab.tune.template import write_example

GOOD = """
name = "a"
command = ["echo", "{x}"]
[knobs.x]
low = 0
high = 10
start = 5
"""


def read(tmp_path, text):
    file = tmp_path / "study.toml"
    file.write_text(text)
    return read_config(file)


def test_the_smallest_study(tmp_path):
    config = read(tmp_path, GOOD)
    assert config.where == str(tmp_path / "trimtab.db")
    assert config.words({"x": 0.25}) == ["echo", "0.25"]
    assert config.build_method().radius == 0.05


def test_the_example_is_valid_and_names_every_field(tmp_path):
    file, simulator = write_example(tmp_path / "study.toml")
    config = read_config(file)
    config.check_program()
    assert simulator.exists()
    text = file.read_text()
    documented = (Path(__file__).parents[2] / "docs" / "live.md").read_text()
    names = {*Config.__dataclass_fields__} - {
        "baseline",
        "limits",
        "context",
        "folder",
        "knobs",
        "guard",
        "step",
        "dual_step",
    } | {*Guard.__dataclass_fields__}
    for name in names:
        assert f"{name} = " in text or name == "stop_below"
        assert f"`{name}`" in documented
    assert "[baseline]\nevery = 20" in text
    assert "# [limits]" in text
    assert "# [context]" in text
    for name in ("`[baseline]`", "`[limits]`", "`dual_step`"):
        assert name in documented
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    assert read(tmp_path, uncommented).guard.approval  # the commented-out fields are valid too
    with pytest.raises(ValueError, match="already exists"):
        write_example(file)


def test_the_largest_move_is_the_cap_of_the_method(tmp_path):
    config = read(tmp_path, GOOD + "[guard]\nlargest_move = 0.01\n")
    method = config.build_method()
    assert method.max_move == pytest.approx(0.2)  # 0.01 of the range, in probes of 0.05
    assert read(tmp_path, GOOD).build_method().max_move is None  # auto has its own cap
    method = read(tmp_path, 'method = "residual"\nstep = 0.01\n' + GOOD + "[guard]\nlargest_move = 1\n").build_method()
    assert method.max_move == pytest.approx(20)


def test_the_width_of_probes_with_auto(tmp_path):
    step = read(tmp_path, "narrowest = 0.5\nwidest = 1\n" + GOOD).build_method().step
    assert (step.narrowest, step.widest) == (0.5, 1)
    assert read(tmp_path, GOOD).build_method() == trimtab.auto(radius=0.05, widest=1)
    assert read(tmp_path, "radius = 0.05\n" + GOOD).build_method() == trimtab.auto(radius=0.05)
    with read(tmp_path, "widest = 1\nnarrowest = 1\nseed = 1\n" + GOOD).open() as study:
        assert study.ask().knobs["x"] == study.centre["x"]  # the first query is the start
        centres = []
        for n in range(60):  # then exactly 5 % of 10 away; some repeat a query of an earlier centre
            trial = study.ask()
            centres.append(study.centre["x"])
            assert (
                n == 0
                or trial.kind == "baseline"
                or any(abs(trial.knobs["x"] - centre) == pytest.approx(0.5) for centre in centres)
            )
            study.tell(trial, float(n % 7))
    with read(tmp_path, "widest = 2\nnarrowest = 1\nseed = 1\n" + GOOD).open() as study:  # a changed setting
        assert study.setup.method.step.widest == 2


def test_every_offered_method_can_be_built(tmp_path):
    with pytest.raises(ValueError, match="choose ") as error:
        read(tmp_path, 'method = "none"\n' + GOOD)
    offered = re.findall("'([a-z-]+)'", str(error.value).partition("choose ")[2])
    assert {"auto", "residual"} <= set(offered)
    for name in offered:
        step = "" if name in ("auto", "belief") else "step = 0.01\n"
        with replace(read(tmp_path, f'method = "{name}"\n{step}' + GOOD), store=f"{name}.db").open() as study:
            study.tell(study.ask(), 1.0)


@pytest.mark.parametrize(
    ("typed", "meant"), [("minimize", "minimise"), ("maximize", "maximise"), ("maximise", "maximise")]
)
def test_alternative_spellings_are_accepted(tmp_path, typed, meant):
    config = read(tmp_path, f'goal = "{typed}"\n' + GOOD + 'type = "int"\n[guard]\nleave_at = "center"\n')
    assert (config.goal, config.guard.leave_at, config.knobs.all[0].type) == (meant, "centre", "integer")
    with config.open() as study:
        assert study.setup.maximise == (meant == "maximise")
        assert study.center == study.centre


@pytest.mark.parametrize(
    ("typed", "meant"), [('"10s"', 10), ('"2m"', 120), ('"1h"', 3600), ('"500ms"', 0.5), ('"1.5 h"', 5400), ("7", 7)]
)
@pytest.mark.parametrize("field", ["timeout", "pause", "store_patience"])
def test_durations_have_a_unit_or_are_in_seconds(tmp_path, field, typed, meant):
    assert getattr(read(tmp_path, f"{field} = {typed}\n" + GOOD), field) == meant


def test_a_file_with_a_similar_name_is_suggested(tmp_path):
    read(tmp_path, GOOD)
    with pytest.raises(ValueError, match=r'study.tml does not exist: did you mean "study.toml"\?'):
        read_config(tmp_path / "study.tml")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("name", "nom"), "unknown field nom: choose from baseline, command, context, dual_step, goal, "),
        (("command", "comand"), 'unknown field comand: did you mean "command"?'),
        (("start = 5", "start = 5\nhgih = 3"), 'did you mean "high"?'),
        (
            ("start = 5", "start = 5\n[guard]\nstop_abov = 3"),
            'guard.stop_abov: did you mean "stop_above"?',
        ),
        (("start = 5", "start = 5\n[baseline]\nevry = 3"), 'unknown field baseline.evry: did you mean "every"?'),
        (("[knobs.x]", 'timeout = "10 sec"\n[knobs.x]'), "timeout='10 sec' is out of range: give seconds, or"),
        (('name = "a"', ""), "name is missing"),
        (('"a"', "3"), "name=3 must be text"),
        (('["echo", "{x}"]', '"echo {x}"'), "must be a list of strings"),
        (("{x}", "{y}"), "command uses {y}, which is not a knob: choose from x"),
        (("[knobs.x]", "pause = -1\n[knobs.x]"), "pause=-1 is out of range: give seconds, or text "),
        (("[knobs.x]", "timeout = 0\n[knobs.x]"), "timeout=0 is out of range"),
        (("[knobs.x]", 'goal = "min"\n[knobs.x]'), "goal='min' is unknown: choose 'minimise' or 'maximise'"),
        (("[knobs.x]", 'method = "two-point"\n[knobs.x]'), "method='two-point' is unknown: choose "),
        (("[knobs.x]", 'method = "two-point-forward"\nstep = 1\n[knobs.x]'), "method='two-point-forward' is unknown"),
        (("[knobs.x]", 'method = "residual"\n[knobs.x]'), "needs a step, for example step = 0.003"),
        (("start = 5", "start = 5\n[limits]\nheat = {max = 1, rsk = 0.1}"), "no field 'rsk': did you mean 'risk'?"),
        (
            ("[knobs.x]", 'method = "belief"\ndual_step = 1\nlimits = {heat = {max = 1}}\n[knobs.x]'),
            'dual_step applies only to method = "primal-dual": remove it',
        ),
        (
            ("[knobs.x]", 'method = "auto"\nstep = 1\nlimits = {heat = {max = 1}}\n[knobs.x]'),
            'step does not apply to method = "auto": remove it, or choose method = "primal-dual"',
        ),
        (
            ("[knobs.x]", 'method = "residual"\nlimits = {heat = {max = 1}}\n[knobs.x]'),
            "method='residual' does not support limits: leave `method` out, which chooses belief",
        ),
        (('"a"', '"a/b"'), "name='a/b' is not a valid study name: use at most 64 letters, digits, ., - and _"),
        (("[knobs.x]", "seed = -1\n[knobs.x]"), "seed=-1 must be a whole number, at least 0"),
        (("[knobs.x]", "keep = 5\n[knobs.x]"), "keep=5 is not a valid number of rounds"),
        (("[knobs.x]", "step = 0.1\n[knobs.x]"), 'step does not apply to method = "auto"'),
        (("[knobs.x]", "radius = 0.7\n[knobs.x]"), "radius=0.7 is out of range"),
        (("[knobs.x]", "widest = 0.5\n[knobs.x]"), "widest=0.5 is out of range: give a multiple of the radius, at"),
        (("[knobs.x]", "widest = inf\n[knobs.x]"), "widest=inf is out of range"),
        (
            ("[knobs.x]", "narrowest = 0\n[knobs.x]"),
            "narrowest=0 is out of range: give a multiple of the radius, 0 to",
        ),
        (
            ("[knobs.x]", 'method = "residual"\nstep = 1\nwidest = 2\n[knobs.x]'),
            'widest applies only to method = "auto"',
        ),
        (("[knobs.x]", 'method = "primal-dual"\nstep = 1\n[knobs.x]'), "method='primal-dual' is unknown"),
        (("[knobs.x]", "value = 3\n[knobs.x]"), "value=3 must be a name"),
        (("[knobs.x]", "[knobs]"), "knobs must be tables, one per knob: write"),
        (("start = 5", "start = 50"), "start=50 is outside 0 to 10"),
        (("start = 5", "start = 5\n[guard]\nfailures = 0"), "guard.failures=0 is not a valid number of rounds"),
        (("start = 5", "start = 5\n[guard]\nlargest_move = 2"), "guard.largest_move=2 is out of range"),
        (("start = 5", 'start = 5\n[guard]\nquiet_hours = ["10-25"]'), "is not a valid time span"),
        (("start = 5", 'start = 5\n[guard]\napproval = "yes"'), "must be true or false"),
        (("start = 5", "start = 5\n[guard]\nlimit = 3"), "unknown field guard.limit"),
        (("start = 5", 'start = 5\n[guard]\non_failures = "stop"'), "choose 'hold' or 'start'"),
        (
            ("start = 5", 'start = 5\n[guard]\nquiet_hours = ["22:00Z-06:00Z"]'),
            "'22:00Z-06:00Z' has a time zone, but these are local times of this machine: write \"22:00-06:00\"",
        ),
        (("start = 5", 'start = 5\n[guard]\nquiet_hours = ["22:00-06:00+02:00"]'), "has a time zone"),
        (("[knobs.x]", "guard = 5\n[knobs.x]"), "guard=5 must be a table: write [guard] with its fields below it"),
        (("[knobs.x]", "guard = []\n[knobs.x]"), "guard=[] must be a table"),
        (("[knobs.x]", "goal = []\n[knobs.x]"), "goal=[] is unknown: choose 'minimise' or 'maximise'"),
        (("start = 5", "start = 5\n[guard]\nleave_at = []"), "guard.leave_at=[] is unknown: choose 'query' or"),
        (("[knobs.x]", 'store = ""\n[knobs.x]'), "store='' is a folder: give a file, for example \"trimtab.db\""),
        (("[knobs.x]", 'store = "."\n[knobs.x]'), "store='.' is a folder"),
        (("[knobs.x]", 'store = "a\\u0000b"\n[knobs.x]'), "store='a\\x00b' contains a NUL character"),
        (("[knobs.x]", 'on_round = ["./a", "\\u0000"]\n[knobs.x]'), "on_round[1]='\\x00' contains a NUL character"),
        (('"{x}"', '"\\u0000"'), "command[1]='\\x00' contains a NUL character"),
        (
            ("start = 5", 'start = 5\nname = "y"'),
            "knobs.x.name='y' contradicts its table: remove it, or write [knobs.y]",
        ),
        (("low = 0", "low = "), "is not valid TOML"),
        *(
            ((place, f"{place}\n{field.format('9' * 401)}" if tables else f"{field.format('9' * 401)}\n{place}"), why)
            for tables, place, field, why in [
                (False, "[knobs.x]", "pause = {}", "is out of range: give seconds"),
                (False, "[knobs.x]", "radius = {}", "is out of range: give a share"),
                (False, "[knobs.x]", "widest = {}", "is out of range: give a multiple of the radius"),
                (False, "[knobs.x]", 'method = "residual"\nstep = {}', "is out of range: give a step"),
                (True, "start = 5", "radius = {}", "must be a finite number > 0 and < 0.5"),
                (True, "start = 5", "[guard]\nstop_above = {}", "is out of range: give a value of the measurement"),
                (True, "start = 5", "[guard]\nlargest_move = {}", "is out of range"),
                (
                    True,
                    "start = 5",
                    "[baseline]\nevery = {}",
                    "must be a whole number, at least 0 and below 1000000000",
                ),
            ]
        ),
        (
            ("[knobs.x]", f"step = 1\nlimits = {{heat = {{max = {'9' * 401}}}}}\n[knobs.x]"),
            "must be a finite number",
        ),
    ],
)
def test_every_error_names_the_problem_and_the_remedy(tmp_path, change, reason):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(tmp_path, GOOD.replace(*change))
    assert reason in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "study.toml"))


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "study.toml").write_text(GOOD, encoding="utf-8-sig")
    assert read_config(tmp_path / "study.toml").name == "a"


def test_shell_variables_are_left_to_the_shell(tmp_path):
    config = read(tmp_path, GOOD.replace("{x}", "${KNOB_X} ${x} {x}"))
    assert config.words({"x": 0.25}) == ["echo", "${KNOB_X} ${x} 0.25"]


def test_missing_files_and_programs(tmp_path):
    with pytest.raises(ValueError, match="`trimtab init` writes an example"):
        read_config(tmp_path / "no.toml")
    with pytest.raises(ValueError, match="cannot be run: give the path"):
        read(tmp_path, GOOD.replace('"echo"', '"./measure"')).check_program()
    (tmp_path / "measure").write_text("#!/bin/sh\necho 1\n")
    (tmp_path / "measure").chmod(0o755)
    read(tmp_path, GOOD.replace('"echo"', '"./measure"')).check_program()
    split = read(tmp_path, GOOD.replace('"echo"', '"echo -n"'))
    with pytest.raises(ValueError, match=r'a string of its own: command = \["echo", "-n", "\{x\}"\]'):
        split.check_program()
    for program in ("m.py", "./m.py"):
        (tmp_path / "m.py").touch(0o644)
        with pytest.raises(ValueError, match=rf'write command = \["python3", "{program}", …\], or make it executable'):
            read(tmp_path, GOOD.replace('"echo"', f'"{program}"')).check_program()


def test_the_simulator_drifts_with_its_optimum_inside_the_limits():
    from trimtab.tune.simulator import best, cost

    for round in range(0, 3000, 50):
        valve, pump = best(round)
        assert 0 < valve < 100
        assert 100 < pump < 3000
        assert cost(round, valve, pump) < min(cost(round, valve + 5, pump), cost(round, valve, pump * 1.2))
    assert math.dist(best(0), best(700)) > 50
