"""What `trimtab init` writes: a commented study.toml, and the simulator it runs against."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trimtab.util.files import check_destination, writing

TEXT = """\
# A study: what to tune, how to measure it, and what must not happen. Run it with: trimtab tune {file}
# Every field is explained in docs/live.md; those that are commented out show their defaults, or an example.

name = "demo"                  # under which it is stored, shown and continued
goal = "minimise"              # or "maximise"

# Run once per round. Knobs are filled in as {{valve}}, and are there as KNOB_VALVE, KNOB_PUMP in the environment.
# TRIMTAB_SEQ is a number that only grows, so that a system can refuse stale settings.
# The value is the only number of the last line it prints. This one is a simulated pump: put your own program here.
command = [{python}, {simulator}]
# value = "latency.p99"        # where it prints more than one: take that of this name (latency=12.5, or a key of JSON)
timeout = 10                   # seconds; a round that takes longer, or fails, moves nothing
pause = 0                      # seconds between rounds: how long the system needs to settle

# method = "auto"              # needs no step size
# radius = 0.05                # how far a probe goes, as a share of each range
# narrowest = 0.03             # "auto" changes the width of its probes: from so many times the radius ...
# widest = 4                   # ... to this many (default: 1 with at most ten knobs and no radius, else 4)
# seed = 1                     # of the probes; by default a fresh one, stored with the study
# store = "trimtab.db"         # beside this file; or "postgresql://user@host/database"
# store_patience = 600         # seconds to wait for a store that is away, and then give up; by default, never
# keep = 100000                # rounds whose history is kept in full; older ones are thinned
# on_round = ["cat"]           # after each round, give what happened to this program, as JSON on its standard input

[baseline]
every = 20                     # one round in 20 measures the start instead, to know what tuning saves; 0: never
# knobs = {{valve = 40}}         # another reference than the start: the knobs that differ from it

[knobs.valve]
low = 0
high = 100
start = 20                     # where the system is now
unit = "%"
# step = 0.5                   # only these values can be set, from low on
# radius = 0.1                 # where this knob's probes have to go farther, or less far, than those of the others

[knobs.pump]
type = "integer"               # or "float", or "bool"; or in place of low and high: choices = ["gzip", "zstd"]
scale = "log"                  # or "linear"
low = 100
high = 3000
start = 250
unit = "rpm"

# [limits]                     # other numbers to be kept within limits, in the long run; the command then prints JSON,
# temperature={{max=80}}         # {{"value": 3.2, "temperature": 71}}; do not rely on them yet: see docs/live.md

[guard]
# largest_move = 0.02          # of the operating point per round, as a share of the ranges
failures = 5                   # after so many failed rounds in a row, stop probing until one succeeds ...
on_failures = "hold"           # ... at the operating point, or at the "start"
stop_above = 100               # a value beyond ends the run; there is stop_below, too
# quiet_hours = ["22:00-06:00"]  # no rounds at these times of the day
# approval = true              # propose each setting, and wait for: trimtab approve demo
# dry_run = true               # print the commands and run none
# leave_at = "centre"          # when the run ends, set the system there, or to the "start"; "query" leaves it as it is
"""


def write_example(path: Path) -> list[Path]:
    """study.toml at a path and simulator.py beside it; files that are there already are not touched."""
    simulator = path.with_name("simulator.py")
    for file in (path, simulator):
        if file.exists():
            raise ValueError(f"{file} already exists: move it away, or name another file")
    check_destination(path)
    words = {"python": json.dumps(sys.executable), "simulator": json.dumps(simulator.name)}
    code = Path(__file__).with_name("simulator.py").read_text(encoding="utf-8")
    for file, text in ((simulator, code), (path, TEXT.format(file=path.name, **words))):
        with writing(file):
            file.write_text(text, encoding="utf-8")
    return [path, simulator]
