# Everything runs from a fresh machine with Python 3.11, make, and either Docker or Java 17 + Maven.

PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help run test test-long chaos bench check format docs ci kafka kafka-down clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

run: $(READY) ## Kafka, topics, scheduler, executor and example jobs, until Ctrl-C
	$(BIN)/duewheel up --examples

test: $(READY) ## every fast and integration test, on a real Kafka
	$(BIN)/python -m devkafka which
	$(BIN)/pytest

test-long: $(READY) ## property tests with far more examples
	$(BIN)/pytest -m long tests/property

chaos: $(READY) ## processes and brokers killed and frozen for minutes; CHAOS="--seed 7 --seconds 600"
	$(BIN)/python -m tests.chaos $(CHAOS)

bench: $(READY) ## dispatch rate, restore rate, lateness: figures; BENCH="--quick dispatch"
	$(BIN)/python -m tests.performance $(BENCH)

check: $(READY) ## lint, format, types, layers, generated documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scheduler.contract.schema --check
	$(BIN)/python -m duewheel.settings_doc --check

docs: $(READY) ## write the generated documents: docs/schema, docs/configuration.md
	$(BIN)/python -m scheduler.contract.schema
	$(BIN)/python -m duewheel.settings_doc

ci: check test ## what CI runs

format: $(READY) ## put the code in form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

kafka: $(READY) ## Kafka alone, left running; prints how to reach it
	$(BIN)/python -m devkafka up

kafka-down: $(READY) ## ends it
	$(BIN)/python -m devkafka down

clean: ## remove everything made here: environment, caches, Kafka's data and jars
	rm -rf .venv .cache .duewheel .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The environment is brought up to date when pyproject.toml or the pinned versions change.
$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is needed; set PYTHON=... for another one of 3.11 or newer"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
