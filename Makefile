# Every target sets up what it needs; `make install` alone makes a fresh machine ready.
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
PYTEST_FLAGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Nothing of the machine's own Python packages leaks in.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH
unexport PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(READY) ## a .venv here, with the project and its tools in it

$(READY): setup.py pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bubblerank needs Python 3.11 or later: make install PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m pip check
	touch $@

demo: $(READY) ## simulate, replay and compare on a small example
	$(BIN)/python examples/demo.py

test: lint ## lint, then all tests
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile --durations=15 $(PYTEST_FLAGS)

lint: $(READY) ## ruff, mypy and the import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## nanoseconds per step and sessions per second, as tables
	$(BIN)/python -m benchmarks

clean: ## remove the .venv and everything that the tools left
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
