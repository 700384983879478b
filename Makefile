# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PACKAGES := eval losses datasets models

.PHONY: demo test soak lint benchmark docs gpu-check

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

# The notebooks as they run and the pages of all public names, below docs_build/. pdoc finds the
# modules of common by itself; those of packages with an __all__ have to be named.
MODULES = common $(foreach p,$(PACKAGES),$(p) $(subst /,.,$(basename $(filter-out $(p)/__%,$(wildcard $(p)/*.py)))))

docs: .venv/test
	mkdir -p docs_build
	$(BIN)/python -m nbconvert --to html --execute --output-dir docs_build/notebooks notebooks/*.ipynb
	sed -i.bak 's/\.ipynb"/.html"/g' docs_build/notebooks/*.html && rm docs_build/notebooks/*.bak
	$(BIN)/python -m pdoc --docformat google --output-directory docs_build/api $(MODULES)
	@echo "open docs_build/api/index.html and docs_build/notebooks/01_threshold_inconsistency.html"

# The marks remember what was installed; an edited requirements file installs again.
.venv/demo: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/test: .venv/demo requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
