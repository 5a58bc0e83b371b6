# A thin front for tox. From a bare clone each target sets up everything that it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
TOX := .venv/bin/tox

.PHONY: help report test benchmark docs lint types clean

help:
	@echo "make report     run the corpus on the CPU and print what is reinplaced"
	@echo "make test       lint, types and tests"
	@echo "make benchmark  how long our pass and Inductor's take as graphs grow (half an hour)"
	@echo "make docs       build the documentation as a site"
	@echo "make lint       ruff only"
	@echo "make types      mypy only"
	@echo "make clean      remove environments, caches and build results"

report: $(TOX)
	$(TOX) run -e report

test: $(TOX)
	$(TOX) run

benchmark docs lint types: $(TOX)
	$(TOX) run -e $@

$(TOX):
	@test -n "$(PYTHON)" || { echo "make: no python3.11 on PATH; name one with make PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet "tox==4.67.13"

clean:
	rm -rf .venv .tox build dist *.egg-info reports .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
