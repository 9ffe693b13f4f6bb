# Everything happens in .venv in this folder; the only things needed beforehand are Python 3.10 or later and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ONLY ?= speed
export HF_HUB_OFFLINE ?= 1

.PHONY: help setup demo test packages pictures lint bench torture adapter docs lowest release-check clean

help:
	@echo "make setup   install everything into .venv"
	@echo "make demo    the main job, end to end, on the embedded encoder"
	@echo "make test    lint, types and tests"
	@echo "make lint    lint and types only"
	@echo "make bench   measure speed beside other libraries (MASKMATCH_DATA=folder of datasets), about two hours;"
	@echo "             with ONLY=few_shot another benchmark, with ONLY=all every one"
	@echo "make torture damaged files, kills, lost power, many at once; writes lab/results/torture.json; about 40 minutes"
	@echo "make adapter make the default encoder's adapter again (MASKMATCH_DATA=folder of datasets)"
	@echo "make pictures  take the pictures of the workbench that the docs show (needs Chromium)"
	@echo "make docs    write the pages of figures again from lab/results"
	@echo "make lowest  tests with the lowest versions of libraries that pyproject.toml promises"
	@echo "make release-check   build distributions, install them into bare environments and try them there"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml lab/pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" || \
		{ echo "maskmatch needs Python 3.10 or later; name one with: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e lab
	@touch $@

demo: setup
	$(BIN)/maskmatch demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Pages are tested in Chromium, load is made with wrk: packages of Debian, which root can install.
packages:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium >/dev/null; then \
		apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet --no-install-recommends chromium \
		>/dev/null || echo "chromium cannot be installed: tests of pages are skipped"; fi

test: lint packages
	$(BIN)/python -m pytest -n auto

bench: setup
	$(BIN)/python -m maskmatch_lab.benchmarks.run --only $(ONLY)

pictures: setup packages
	HF_HUB_OFFLINE=1 $(BIN)/python tools/workbench_pictures.py

torture: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e "lab[torture]" || \
		echo "atheris is not available here: the part that needs it is skipped"
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m maskmatch_lab.torture --keep

adapter: setup
	$(BIN)/python -m maskmatch_lab.benchmarks.adapter

docs: setup
	$(BIN)/python -m maskmatch_lab.benchmarks.write_docs

lowest: setup
	$(BIN)/python tools/lowest.py

release-check: setup
	$(BIN)/python tools/release_check.py --keep dist

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
