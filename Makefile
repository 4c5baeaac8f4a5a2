# The dev loop. `make` alone lists what there is; nothing but make and Python 3.11 or newer is needed.

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check -qq

# Stamps: which of the two sets is installed for this pyproject.toml.
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

# What we measure ourselves beside has an environment of its own.
BENCH := build/bench-venv
PEERS := $(BENCH)/.peers

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test full check format bench chaos docs clean servers

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## ten real servers, a crash, a zombie, 2,000 rows: needs no server
	@$(BIN)/tickoff demo

test: check servers ## all checks, then all tests on real servers of their own
	@echo '== pytest'
	@dev/run-tests $(PY)

full: check servers ## the same with the long forms of the long tests
	@echo '== pytest, long forms'
	@TICKOFF_FULL=1 dev/run-tests $(PY)

check: $(DEV) ## format, lint, types, import contracts
	@echo '== format'
	@$(BIN)/ruff format --check .
	@echo '== lint'
	@$(BIN)/ruff check .
	@echo '== types'
	@$(BIN)/mypy
	@echo '== import contracts'
	@$(BIN)/lint-imports

format: $(DEV) ## format the code and repair what lint can repair
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

PART :=
bench: $(PEERS) servers ## measure beside others, renew docs/performance.md: PART=locks|records|scheduler|startup|growth|upsert
	@$(BENCH)/bin/python -m bench $(PART)

docs: $(DEV) ## renew the pages made from code, and build the site into build/site
	@$(PY) -m dev.pages
	@$(BIN)/zensical build --strict

MINUTES := 10
STORE := redis
SEED := 1
chaos: $(DEV) servers ## faults on real processes: MINUTES=10 SEED=1 STORE=redis|forgetful|failover|sentinel|cluster|postgres|mariadb|sqlite
	@$(PY) -m chaos --store $(STORE) --minutes $(MINUTES) --seed $(SEED)

clean: ## remove the virtual environment, caches and builds
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

servers:
	@echo '== servers'
	@dev/install-servers

# Made anew whenever the project's file changes, so that nothing stays that is no longer asked for.
$(RUNTIME): pyproject.toml
	@python=$$(dev/find-python) && echo "making $(VENV) with $$($$python --version)" && \
	rm -rf $(VENV) && $$python -m venv $(VENV)
	@$(PIP) install --editable .
	@touch $@

$(PEERS): pyproject.toml bench/requirements.txt
	@python=$$(dev/find-python) && echo "making $(BENCH) with $$($$python --version)" && \
	rm -rf $(BENCH) && $$python -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip --disable-pip-version-check --quiet install --requirement bench/requirements.txt --editable '.[all,testing]'
	@touch $@

$(DEV): $(RUNTIME)
	@echo 'installing the development tools'
	@$(PIP) install --upgrade 'pip>=25.1'  # the first that knows --group
	@$(PIP) install --editable '.[all]' --group dev
	@touch $@
