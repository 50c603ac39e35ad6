PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test bench fuzz check lint results surveys validate docs compile-time footprint clean

# The main job: 100 GPUs over RDMA and IPoIB (100 Gbit/s InfiniBand) and over TCP (10 Gbit/s Ethernet).
demo: $(VENV)/.installed
	$(BIN)/simnet run inception_v3_100gpu inception_v3_100gpu_ipoib inception_v3_100gpu_tcp_10g

# A file's tests go to one process, so that what they share is made once.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow"

# All benchmarks, the long ones too. For the comparison with SimGrid see docs/simgrid.md.
bench: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q tests/bench --benchmark-only

# Damaged inputs of every kind for SECONDS; what fails is kept in build/fuzz, with the seed that makes it again.
SECONDS ?= 600
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# All that has to hold before a change lands.
check:
	.ci/run

# The tables and pictures that README and docs show.
results: $(VENV)/.installed
	$(BIN)/python results/make.py

# Predictions beside what others measured.
validate: $(VENV)/.installed
	$(BIN)/simnet validate -j 2

# What two surveys say, simulated: results/surveys/README.md.
surveys: $(VENV)/.installed
	$(BIN)/python results/surveys.py

# What README and docs show of the code, and what the commands on them print.
docs: $(VENV)/.installed
	$(BIN)/python docs/make.py

# In a cache folder of its own, or in the one that CACHE names.
compile-time: $(VENV)/.installed
	SIMNET_CACHE_DIR=$${CACHE:-$$(mktemp -d)} $(BIN)/python -c "from simnet.fabric.warm_up import compile_kernels; print(f'kernels compiled in {compile_kernels(print):.1f} s')"

# What an installation takes of a disk, and how long it takes to start.
footprint: $(VENV)/.installed
	$(BIN)/python benchmarks/footprint.py

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist build
