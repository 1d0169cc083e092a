# Everything happens in .venv, which these rules make and fill by themselves. Needs Python >= 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help run demo test check lint types imports tests coverage docs docs-all pictures package newest hosts long bench few-knobs peers constraints clean python
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE # hundreds of processes start in the tests: what Python compiles is kept

help:
	@echo "make run    reproduce the paper: out/paper/report.html, in 100 s of processor time"
	@echo "make demo   three simulated systems, tuned live, with a dashboard: http://127.0.0.1:8765"
	@echo "make test   lint, types, import layers, tests"
	@echo "make check  the quick loop: lint, types, import layers, unit tests"
	@echo "make docs   the site: out/docs/index.html, readable without a network"
	@echo "make docs-all  the same, with the gallery pages that need PyTorch and EPICS run again (installs 2.7 GB)"
	@echo "make pictures  every picture of README and docs anew (minutes; needs the hosts, and Chromium)"
	@echo "make hosts  the adapters in their hosts: PyTorch, JAX, Xopt, blop, Bluesky with EPICS, ... (minutes to install)"
	@echo "make long   what the tests thin out, in full: a million hostile queries for every kind of domain, ... (minutes)"
	@echo "make bench  the benchmarks, as ratios within one run"
	@echo "make few-knobs  methods on eight drifting systems with two to eight knobs (two minutes)"
	@echo "make peers  other optimisers on drifting systems (installs them, with PyTorch; an hour or two, and goes on where it was)"
	@echo "make coverage, make package, make newest: see CONTRIBUTING.md"

run: .venv/dev
	$(BIN)/trimtab paper --out out/paper

demo: .venv/dev
	$(BIN)/trimtab serve --demo

# Types are checked beside the tests, which leave a core idle now and then: what mypy says comes last.
typed = @$(BIN)/mypy > .venv/types.txt 2>&1 & \
  $(1); tested=$$?; wait $$!; typed=$$?; cat .venv/types.txt; exit $$((tested | typed))

test: lint imports
	$(call typed,$(BIN)/pytest)

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/lint/wording.py

types: .venv/dev
	$(BIN)/mypy

imports: .venv/dev
	$(BIN)/lint-imports

tests: .venv/dev
	$(BIN)/pytest

check: lint imports
	$(call typed,$(BIN)/pytest tests/unit)

# The core: all that moves a tuner. Lines that no test reaches are listed, and are an error.
PARTS := core kernel family setup state protocols xp storage tuner directions domains estimators explanation tracker steps recipes
CORE := $(foreach part,$(PARTS),--cov=trimtab.$(part))
coverage: .venv/dev
	$(BIN)/pytest $(CORE) --cov-report=term-missing:skip-covered --cov-fail-under=100 tests/unit tests/contract

SPHINX = $(BIN)/trimtab paper --out out/paper && $(BIN)/python -m sphinx -E -W --keep-going -q -b html -d out/doctrees docs out/docs

# The site embeds the default report, which is quick to make again from stored cells.
docs: .venv/docs
	$(SPHINX)
	@echo "out/docs/index.html"

# With the two gallery scripts that need PyTorch and EPICS, run where those are installed.
docs-all: .venv/docs .venv-hosts/ready
	TRIMTAB_HOSTS_PYTHON=.venv-hosts/bin/python; export TRIMTAB_HOSTS_PYTHON; $(SPHINX)
	@echo "out/docs/index.html"

# Of README and docs. Some need the hosts; that of the peers is drawn of docs/results/peers.json.
pictures: .venv/dev .venv-hosts/ready
	$(BIN)/python docs/draw

# The wheel, in empty environments, does what the README says, with each of these that is here. Needs a package index.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
package: .venv/dev
	rm -rf dist out/package
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tests/package/wheel.py dist/trimtab-*.whl out/package $(PYTHONS)

# The tests with the newest versions of everything, instead of those in constraints.txt: run it once a week.
newest: | python
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --editable ".[dev]"
	.venv-newest/bin/pytest

# In an environment of their own; a host that is missing there is an error.
HOSTED := $(foreach host,bluesky gest optax torch,src/trimtab/adapters/$(host).py)
hosts: .venv-hosts/ready
	TRIMTAB_HOSTS=1 .venv-hosts/bin/pytest --dist loadfile tests/hosts $(HOSTED)

long: .venv/dev
	TRIMTAB_LONG=1 $(BIN)/pytest tests/contract tests/property tests/statistical tests/theory/test_guarantees.py \
	  tests/lab tests/study/test_advice.py tests/tune/test_kills.py tests/tune/test_signals.py tests/tune/test_command.py \
	  tests/serve/test_schema.py tests/serve/test_histories.py tests/serve/test_soak.py tests/serve/test_browser.py \
	  tests/docs/test_console_blocks.py

bench: .venv/bench
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/lab.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/service.py

# Deterministic: the same figures each time, until a method changes.
few-knobs: .venv/dev .venv/bench
	$(BIN)/python benchmarks/few_knobs.py --seeds reporting --trials 20 --jobs 2 \
	  --out docs/results/few-knobs.json --page docs/few-knobs.md $(FEW_KNOBS)

# What was played is kept, and not played again: `make peers PEERS="--again auto"` after a change of that method.
peers: .venv/dev .venv/peers
	$(BIN)/python benchmarks/peers.py --out docs/results --page docs/peers.md $(PEERS)
	$(BIN)/python docs/draw peers.png

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "trimtab needs Python >= 3.11, and $(PYTHON) is older: make PYTHON=python3.12 ..."; exit 1; }

.venv/dev .venv/docs .venv/bench .venv/peers: .venv/%: pyproject.toml constraints.txt | python
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$*]"
	$(if $(filter dev,$*),$(BIN)/python -m trimtab.problems.compiled)
	@touch $@

.venv-hosts/ready: pyproject.toml constraints-hosts.txt | python
	test -x .venv-hosts/bin/python || $(PYTHON) -m venv .venv-hosts
	.venv-hosts/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints-hosts.txt --editable ".[hosts]"
	@touch $@

# After an upgrade that the tests approve of: names and versions only.
constraints: .venv/dev .venv/docs .venv/bench .venv/peers .venv-hosts/ready
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/ @ .*//; s/+cpu//' > constraints.txt
	.venv-hosts/bin/python -m pip freeze --exclude-editable | sed 's/ @ .*//; s/+cpu//' > constraints-hosts.txt

clean:
	rm -rf .venv .venv-hosts .venv-newest .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage out dist docs/gallery
