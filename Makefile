# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test soak lint benchmark gpu-check

demo: .venv/demo
	$(BIN)/python -m reproduce.table2 --scale demo
	$(BIN)/python -m reproduce.check --scale demo

test: .venv/test
	$(BIN)/python -m pytest -m "not soak" -n 2

soak: .venv/test
	$(BIN)/python -m pytest -m soak

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

benchmark: .venv/test
	$(BIN)/python -m reproduce.benchmark

# Needs a CUDA device and no data; writes runs/gpu_check.json.
gpu-check: .venv/test
	$(BIN)/python -m reproduce gpu-check

# The marks remember what was installed; an edited requirements file installs again.
.venv/demo: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/test: .venv/demo requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
