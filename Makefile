# Every command stands in README.md too. All work in .venv, which the first one makes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
NEWEST := pyproject.toml constraints.txt
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# set in many containers; without it every process would compile all modules again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo pictures test test-all lint bench serve clean
help:
	@echo "make demo | test | test-all | lint | bench | serve | clean"

$(VENV):
	$(PYTHON) -m venv $@

$(VENV)/installed: $(NEWEST) | $(VENV)
	$(PIP) --editable .
	touch $@

# in one go with what `installed` needs; modules are compiled when they are imported, most never are
$(VENV)/installed-dev: $(NEWEST) | $(VENV)
	$(PIP) --no-compile --editable ".[dev]"
	touch $(VENV)/installed $@

demo: $(VENV)/installed
	$(BIN)/whorl demo

pictures: $(VENV)/installed-dev  # of the README, of the site of the demo; needs chromium
	$(BIN)/python -m tests.report.pictures data/demo/reports deployments/pictures

test: $(VENV)/installed-dev
	$(PYTEST) -m "not slow and not bench" -n auto --dist loadfile

test-all: $(VENV)/installed-dev
	$(PYTEST) -m "not bench" -n auto --dist loadfile --cov --cov-report=term

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto

bench: $(VENV)/installed-dev
	$(PYTEST) -m bench -s tests/benchmarks

serve: $(VENV)/installed
	exec $(BIN)/whorl serve

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* *.egg-info
