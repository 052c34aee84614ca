# Two commands on a fresh machine: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What the tests are run with. Tests that need more (the site's tools, the peers) skip with a sentence without it.
EXTRAS ?= test,lint

.PHONY: demo test test-slow lint bench bench-quality bench-speed fuzz attack reproduce reproduce-quick docs dist clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# A stamp per set of extras: installing again only when pyproject.toml has changed.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[cli,report]"
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[$(EXTRAS)]"
	touch $@

$(VENV)/.reproduce: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[cli,plot]"
	touch $@

$(VENV)/.fuzz: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[federated,dev]"
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/coterie demo --out demo --force

test: lint
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow"

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint $$(git ls-files 'src/coterie/*.py')

bench: $(VENV)/.test
	$(BIN)/python benchmarks/speed/exchange.py
	$(BIN)/python benchmarks/speed/fit_table.py
	$(BIN)/python benchmarks/quality/how_many/run.py

# Every comparison under benchmarks/quality; a run adds what its results lack.
bench-quality: $(VENV)/.bench
	for run in benchmarks/quality/*/run.py; do $(BIN)/python $$run || exit 1; done

# Readers of what peers send, and of model files, on bent files: no crash, no hang, no growth (see benchmarks/fuzz).
fuzz: $(VENV)/.fuzz
	$(BIN)/python benchmarks/fuzz/readers.py
	$(BIN)/python benchmarks/fuzz/guided.py
	$(BIN)/python benchmarks/fuzz/model_files.py

# Kills, full disks and hostile inputs (see benchmarks/attack).
attack: $(VENV)/.test
	$(BIN)/python benchmarks/attack/kills.py
	$(BIN)/python benchmarks/attack/inputs.py

# Time and memory alone, with the machine and versions; a GPU is used where torch finds one.
bench-speed: $(VENV)/.test
	$(BIN)/python benchmarks/speed/exchange.py
	$(BIN)/python benchmarks/speed/logistic.py
	$(BIN)/python benchmarks/speed/growth.py
	$(BIN)/python benchmarks/speed/landmarks.py --exact
	$(BIN)/python benchmarks/speed/dask_threads.py
	$(BIN)/python benchmarks/speed/out_of_core.py
	if $(BIN)/python -c "import torch; raise SystemExit(not torch.cuda.is_available())" 2>/dev/null; then \
	  $(BIN)/python benchmarks/speed/million.py --only 100000 && $(BIN)/python benchmarks/speed/million.py --only 1000000; fi
	$(BIN)/python benchmarks/speed/plot.py

# The paper's experiments, beside their code in reproductions/. Interrupted, the same command continues.
reproduce: $(VENV)/.reproduce
	$(BIN)/python -m reproductions all $(ARGS)

# A look in minutes, into reproductions-quick/.
reproduce-quick: $(VENV)/.reproduce
	$(BIN)/python -m reproductions all --quick $(ARGS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist, each installed with its core alone into an environment of its own, and tried there.
dist:
	rm -rf dist build/dist
	$(PYTHON) -m venv build/dist
	build/dist/bin/python -m pip install --quiet build twine
	build/dist/bin/python -m build --outdir dist .
	build/dist/bin/python -m twine check --strict dist/*
	for file in dist/*.whl dist/*.tar.gz; do \
	  rm -rf build/bare && $(PYTHON) -m venv build/bare && build/bare/bin/python -m pip install --quiet $$file && \
	  build/bare/bin/python packaging/smoke.py || exit 1; done

clean:
	rm -rf $(VENV) site demo reproductions-quick dist build
