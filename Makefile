# Two commands do everything: `make demo` runs one judged episode, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TESTS ?= tests

.PHONY: image demo test check bench full wheel clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV) || { echo 'no virtual environment: on Debian, apt-get install python3-venv' >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[docker,lean,ray,dev]'
	touch $@

image: $(VENV)/.ready
	$(BIN)/tbmm image build

demo: image ## an agent solves cumcm-2024-a in a sandbox and is judged
	$(BIN)/tbmm run cumcm-2024-a --agent oracle

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: image check ## linters, types, import contracts and all tests
	$(BIN)/python -m pytest $(TESTS)

full: image ## slow: twenty sampled instances on every sandbox
	TBMM_ORACLE_SEEDS=20 $(BIN)/python -m pytest tests --full

bench: image
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/certificates.py
	$(BIN)/python benchmarks/replays.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/rollouts.py

wheel: $(VENV)/.ready
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build
