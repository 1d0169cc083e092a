"""`trimtab init`: write a commented study.toml, and the simulator that it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trimtab.util.files import check_destination, writing

TEXT = """\
# A study: what to tune, how to measure it, and what to guard against. Run it with: trimtab tune {file}
# docs/live.md explains every field. Fields that are commented out show their default, or an example.

name = "demo"                  # to store, show and continue it
goal = "minimise"              # or "maximise"

# Run once per round. Knobs are filled in as {{valve}}, and set in the environment as KNOB_VALVE, KNOB_PUMP.
# TRIMTAB_SEQ is a number that only increases, so that a system can refuse stale settings.
# The value is the only number of its last line of output. This is a simulated pump: put your own program here.
command = [{python}, {simulator}]
# value = "latency.p99"        # the name of the value if it prints several (latency=12.5, or a JSON key)
timeout = 10                   # seconds; a round that takes longer or fails moves nothing
pause = 0                      # seconds between rounds: how long the system needs to settle

# method = "auto"              # needs no step size
# radius = 0.05                # length of a probe, as a share of each range; by default more where positions are few
# narrowest = 0.03             # "auto" adapts the width of its probes: from this multiple of the radius ...
# widest = 4                   # ... to this one (default: 1 with at most ten knobs and no radius, else 4)
# seed = 1                     # of the random probes; by default a random one, stored with the study
# store = "trimtab.db"         # beside this file; or "postgresql://user@host/database"
# store_patience = 600         # seconds to wait for an unavailable store before giving up; by default, for ever
# keep = 100000                # number of latest rounds stored in full; older ones are thinned
# on_round = ["cat"]           # after each round, run this program with the event as JSON on its standard input

[baseline]
every = 20                     # one round in 20 measures the start, to estimate what tuning saves; 0: never
# share = [0.02, 0.125]        # instead: adapt their share, the largest until a saving is proved
# knobs = {{valve = 40}}         # a reference other than the start: the knobs that differ from it

[knobs.valve]
low = 0
high = 100
start = 20                     # the present setting
unit = "%"
# step = 0.5                   # only these values can be set, from low on
# radius = 0.1                 # if the probes of this knob must be longer or shorter than those of the others

[knobs.pump]
type = "integer"               # or "float", or "bool"; or instead of low and high: choices = ["gzip", "zstd"]
scale = "log"                  # or "linear"
low = 100
high = 3000
start = 250
unit = "rpm"

# [limits]                     # keep other numbers within limits, in all rounds but a share risk of them (by default
# temperature={{max=80}}         # 0.01); the command then prints JSON: {{"value": 3.2, "temperature": 71}}

# [context]                    # numbers that explain why the best setting changes, read before each round: the program
# command=["./load"]           # prints load=0.7, or {{"load": 0.7}}; where it fails, the mean load is assumed
# load={{}}                      # any name; for numbers that go round: hour={{period=24}}

[guard]
# largest_move = 0.02          # of the operating point per round, as a share of the ranges
failures = 5                   # after this many consecutive failures, stop probing until a round succeeds ...
on_failures = "hold"           # ... and stay at the operating point, or at the "start"
# revert = false               # by default, return to the baseline when tuning turns out to make it worse ...
# on_revert = "restart"        # ... and learn anew from there with smaller moves; by default, end the run
stop_above = 100               # a higher value ends the run; there is also stop_below
# quiet_hours = ["22:00-06:00"]  # no rounds at these times of day
# approval = true              # propose each setting, and wait for: trimtab approve demo
# dry_run = true               # print the commands without running them
# leave_at = "centre"          # the setting after the run ends: this or "start"; "query" leaves the last one
"""


def write_example(path: Path) -> list[Path]:
    """Write study.toml at a path and simulator.py beside it; overwrite nothing, but use a simulator that is there."""
    simulator = path.with_name("simulator.py")
    code = Path(__file__).with_name("simulator.py").read_bytes()
    if path.exists():
        raise ValueError(f"{path} already exists: move it away, or name another file")
    there = simulator.exists()
    if there and simulator.read_bytes() != code:
        raise ValueError(f"{simulator} already exists: move it away, or name a file in another folder")
    check_destination(path)
    words = {"python": json.dumps(sys.executable), "simulator": json.dumps(simulator.name)}
    texts = {path: TEXT.format(file=path.name, **words).encode()} | ({} if there else {simulator: code})
    for file, text in texts.items():
        with writing(file):
            file.write_bytes(text)
    return list(texts)
