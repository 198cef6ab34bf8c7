# make run        a recorded run of a real engine, then a simulated fleet that breaks, live
# make test       everything a change must pass, at most 20 minutes on 2 cores
# make test-long  the soak, fuzz and kill runs that take longer
# make bench      figures, each beside a baseline measured in the same run
# make bench-truth  known faults, and what detectors make of them (QUICK=1: ten minutes)
# make lint       style and types only
# make format     rewrite the files in the project's style

PYTHON ?= python3.11
BIN := .venv/bin
STAMPS := .make
PYTEST := $(BIN)/python -m pytest -q

.PHONY: run test test-long bench bench-truth lint format clean
.DELETE_ON_ERROR:

run: $(STAMPS)/installed
	@exec $(BIN)/tailburn demo --store var/demo --afresh

test: lint $(STAMPS)/programs/done $(STAMPS)/exporters
	@$(BIN)/python -m tests.compiling
	@$(PYTEST) -m "not long" --numprocesses auto --maxprocesses 4 --dist loadfile

test-long: $(STAMPS)/dev $(STAMPS)/programs/done $(STAMPS)/exporters
	@$(PYTEST) -m long --timeout 3600

bench: $(STAMPS)/dev
	@$(BIN)/python -m bench

# SCENARIOS="S1 S8" RATES="1 10" SEEDS=3 WORKLOAD=FILE OUT=FILE.json narrow or replace parts of it.
bench-truth: $(STAMPS)/dev
	@$(BIN)/python -m bench.truth $(if $(QUICK),--quick) \
	    $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(if $(RATES),--rates $(RATES)) \
	    $(if $(SEEDS),--seeds $(SEEDS)) $(if $(WORKLOAD),--workload $(WORKLOAD)) \
	    $(if $(OUT),--out $(OUT))

lint: $(STAMPS)/dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo 'run: make format'; exit 1; }
	@$(BIN)/mypy --no-error-summary

format: $(STAMPS)/dev
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

clean:
	rm -rf .venv $(STAMPS) tests/live/js/node_modules build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(STAMPS)/venv: constraints.txt
	@.ci/make-venv $(PYTHON) .venv
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/installed: $(STAMPS)/venv pyproject.toml
	@echo 'installing tailburn into .venv'
	@$(BIN)/pip install -qq --constraint constraints.txt --editable .
	@touch $@

$(STAMPS)/dev: $(STAMPS)/installed
	@echo 'installing the tools of the tests into .venv'
	@$(BIN)/pip install -qq --constraint constraints.txt --group dev
	@touch $@

$(STAMPS)/programs/done: .ci/install-programs
	@.ci/install-programs $(STAMPS)/programs
	@touch $@

# The SDK for JavaScript, whose exporters send to the service in the tests.
$(STAMPS)/exporters: tests/live/js/package-lock.json | $(STAMPS)/programs/done
	@if command -v npm >/dev/null; then \
	    npm ci --prefix tests/live/js --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null; \
	fi
	@touch $@
