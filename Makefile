# One command each: `make demo` shows what opwalker does, `make test` checks everything, `make bench` measures.
# VENV names the environment to use; one that is there already is used as it is, and brought up to date.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.opwalker-installed
INSTALLED_DEV := $(VENV)/.opwalker-installed-dev
DEMO_LIBRARY := fixtures/libraries/pagekit
DEMO_LIBRARY_OP := scatter_pages
DEMO_SOURCE := vllm==0.30.0
DEMO_OP := reshape_and_cache

.PHONY: demo test bench clean

demo: $(INSTALLED)
	@echo "> opwalker walk $(DEMO_LIBRARY_OP) --source $(DEMO_LIBRARY)"; echo
	@$(BIN)/opwalker walk $(DEMO_LIBRARY_OP) --source $(DEMO_LIBRARY)
	@echo; echo "> opwalker walk $(DEMO_OP) --source $(DEMO_SOURCE)"; echo
	@$(BIN)/opwalker walk $(DEMO_OP) --source $(DEMO_SOURCE) || \
	  if [ $$? -eq 5 ]; then echo "demo: left out, as the package cannot be fetched from here"; else exit 1; fi

test: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/python -m pytest

bench: $(INSTALLED_DEV)
	$(BIN)/python -m tests.bench

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find opwalker tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("opwalker needs Python 3.11 or newer: make PYTHON=...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(INSTALLED_DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(INSTALLED)
