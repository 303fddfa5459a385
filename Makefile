# Everything below works on a machine that has only Python, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto
CLIENTS := $(or $(INTERLOCK_CLIENTS),.clients)

.PHONY: demo test clients lock-clients check bench soak coverage format generate requirements clean

# The second install line gives the package itself; its requirements came, hashed, with the first.
$(VENV)/run.stamp: requirements/run.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	touch $@

demo: $(VENV)/run.stamp
	$(BIN)/interlock demo

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak"

# Needs npm and the network, once: `make test` runs against these clients where they are.
clients: $(CLIENTS)/clients.stamp

$(CLIENTS)/clients.stamp: tests/clients/package.json tests/clients/package-lock.json
	mkdir -p $(CLIENTS)
	cp $^ $(CLIENTS)
	npm ci --prefix $(CLIENTS) --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# After a change to tests/clients/package.json: the same versions for everybody, each with its hash and no address.
lock-clients:
	cd tests/clients && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error \
		--omit-lockfile-registry-resolved=true

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/verify.py
	$(BIN)/python -m pytest -q tests/architecture

coverage: $(VENV)/dev.stamp
	$(BIN)/coverage run -m pytest -q -m "not soak"
	$(BIN)/python scripts/coverage_gate.py

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks

soak: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m soak

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/dev.stamp
	$(BIN)/python scripts/generate.py

# The counts of docs/invariants.md, or with IDS="TOK-1 TOK-2" these rules and their tests. Needs Python alone.
requirements:
	@$(PYTHON) scripts/requirements.py $(IDS)

clean:
	rm -rf $(VENV) .clients .pytest_cache .ruff_cache .coverage .hypothesis .import_linter_cache
