PYTHON ?= python3
SANITIZE_CXX ?= g++

VENV := .venv
ASAN_VENV := .venv-asan
BIN := $(VENV)/bin
ASAN_BIN := $(ASAN_VENV)/bin
PIP_QUIET := --quiet --disable-pip-version-check
CPP := $(shell find native -type f \( -name '*.cpp' -o -name '*.hpp' \))
NATIVE := CMakeLists.txt $(CPP)
# An editable installation lists the modules: it is made again when one comes, goes or moves.
MODULES := $(VENV)/.modules-$(shell find src -name '*.py' | LC_ALL=C sort | cksum | cut -d' ' -f1)
WHEEL_TESTS := tests/test_chain.py tests/test_formats.py tests/test_verbs.py
PARALLEL := -n auto --dist worksteal
CI_FLAGS := $(if $(CI),-C cmake.define.SCANSION_WERROR=ON)
# With the tools of development there, sources are compiled one by one: a change compiles little.
UNITY_FLAGS = -C cmake.define.SCANSION_UNITY=$(if $(wildcard $(VENV)/.tools),OFF,ON)

# Make's own default for CXX says nothing about what is installed.
ifeq ($(origin CXX),default)
COMPILERS := c++ g++ clang++
else
COMPILERS := $(firstword $(CXX))
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help build demo test lint bench compat experiments sanitize wheel fuzz mutants clean check-tools check-experiments

help:  ## list the targets
	@echo "scansion: make <target>, with PYTHON=... to choose the interpreter (3.10 or newer)"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

build: $(VENV)/.tools $(VENV)/.built  ## install scansion into .venv, editable; rebuilds after C++ changes

demo: $(VENV)/.built  ## build what it needs (about a minute, once), then a tour of half a minute; ARGS="--quick"
	@$(BIN)/python -m scansion.demo -o build/demo $(ARGS)

test: $(VENV)/.tools $(VENV)/.built  ## run the tests; ARGS="-k chain" is passed to pytest
	@echo "test: running the tests"
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

lint: $(VENV)/.tools $(VENV)/.built  ## check style (ruff), formatting (ruff format) and types (mypy)
	@echo "lint: checking style, formatting and types"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror $(CPP)
	@$(BIN)/mypy

bench: $(VENV)/.built $(VENV)/.bench  ## time the kernels against other libraries
	@echo "bench: timing the kernels (benchmarks/kernels.py)"
	@$(BIN)/python benchmarks/kernels.py $(ARGS)

compat: $(VENV)/.built  ## programs written for CRFsuite, with scansion in its place; packages from PyPI
	@echo "compat: running the same work with both engines (compat/run.py)"
	@$(BIN)/python compat/run.py $(ARGS)

experiments: check-experiments $(VENV)/.built $(VENV)/.bench  ## run the experiments on real data
	@echo "experiments: running python -m experiments"
	@$(BIN)/python -m experiments $(ARGS)

# The runtimes of ASan and UBSan must come before everything else in an interpreter that was not
# built with them, and libstdc++ with them, or ASan cannot intercept C++ exceptions. Their reports
# go straight to stderr, which --capture=sys leaves open.
sanitize: $(ASAN_VENV)/.built  ## run the tests with AddressSanitizer and UBSan (Linux, GCC)
	@echo "sanitize: running the tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@preload=; for lib in libasan.so libubsan.so libstdc++.so; do \
	    preload="$$preload $$($(SANITIZE_CXX) -print-file-name=$$lib)"; done; \
	env LD_PRELOAD="$$preload" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-short} $(ASAN_BIN)/python -m pytest -p no:cacheprovider --capture=sys $(PARALLEL) $(ARGS)

wheel: $(VENV)/.builder  ## build sdist and wheel into dist/, and test both in fresh environments
	@echo "wheel: building sdist and wheel into dist"
	@rm -rf dist build/wheel
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('dist')"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip wheel $(PIP_QUIET) --no-deps --no-build-isolation $(CI_FLAGS) -w dist .
	@for package in dist/*.tar.gz dist/*.whl; do \
	    echo "wheel: testing $$package in a fresh environment"; \
	    rm -rf build/wheel && $(PYTHON) -m venv build/wheel && \
	    build/wheel/bin/python -m pip install $(PIP_QUIET) $$package pytest hypothesis && \
	    build/wheel/bin/scansion demo --quick -o build/wheel/demo >/dev/null && \
	    build/wheel/bin/python -m pytest -q -p no:cacheprovider $(WHEEL_TESTS) || exit 1; done
	@ls -sh dist

fuzz: $(VENV)/.built  ## random problems against oracles, a minute of them; ARGS="--minutes 60" for more
	@$(BIN)/python -m fuzz $(ARGS)

mutants: $(VENV)/.built $(VENV)/.tools  ## put small faults into the code, one at a time: tests must notice; ARGS="--native" for C++ too
	@$(BIN)/python -m fuzz.mutants $(ARGS)

clean:  ## remove environments, builds and caches
	@echo "clean: removing environments, builds and caches"
	@rm -rf $(VENV) $(ASAN_VENV) build dist wheelhouse src/scansion/_core.pyi
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- environments --------------------------------------------------------------------------------

check-experiments:
	@test -d experiments || { echo "experiments: this checkout has no experiments/ directory to run." >&2; exit 1; }

check-tools:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	    echo "scansion needs Python 3.10 or newer and found no '$(PYTHON)': install it, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	    echo "scansion needs Python 3.10 or newer, but '$(PYTHON) -V' says '$$($(PYTHON) -V 2>&1)': name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "scansion needs Python's venv module, which $(PYTHON) lacks: install it (python3-venv on Debian and Ubuntu)." >&2; exit 1; }
	@for compiler in $(COMPILERS); do command -v $$compiler >/dev/null 2>&1 && exit 0; done; \
	    echo "scansion needs a C++17 compiler and found none of: $(COMPILERS). Install g++ or clang++, or name one with CXX=..." >&2; exit 1

# What it takes to build and run; the tools of development come on top where they are needed.
$(VENV)/.builder: pyproject.toml | check-tools
	@echo "build: installing what it takes to build into $(VENV) (pip, CMake, Ninja, nanobind)"
	@begin=$$(date +%s); \
	    { test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && \
	    $(BIN)/python -m pip install $(PIP_QUIET) "pip>=25.1" && \
	    $(BIN)/python -m pip install $(PIP_QUIET) --group build && \
	    echo "build: installed after $$(($$(date +%s) - begin)) s"
	@touch $@

$(VENV)/.tools: $(VENV)/.builder
	@echo "build: installing the tools of development into $(VENV) (pytest, ruff, mypy, ...: some 800 MB, minutes)"
	@begin=$$(date +%s); $(BIN)/python -m pip install $(PIP_QUIET) --group dev && \
	    echo "build: installed after $$(($$(date +%s) - begin)) s"
	@touch $@

# Type checkers look for the stub beside the sources, hence the copy; bytecode makes the command start sooner.
$(MODULES): $(VENV)/.builder
	@rm -f $(VENV)/.modules-*
	@touch $@

$(VENV)/.built: $(VENV)/.builder $(MODULES) $(NATIVE) | check-tools
	@echo "build: compiling scansion and installing it into $(VENV) (editable)"
	@begin=$$(date +%s); PATH="$(CURDIR)/$(BIN):$$PATH" \
	    $(BIN)/python -m pip install $(PIP_QUIET) --no-build-isolation $(CI_FLAGS) $(UNITY_FLAGS) -e . && \
	    echo "build: compiled and installed after $$(($$(date +%s) - begin)) s"
	@cp "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/scansion/_core.pyi" src/scansion/
	@$(BIN)/python -m compileall -q src/scansion
	@touch $@

$(VENV)/.bench: $(VENV)/.tools | $(VENV)/.built
	@echo "build: installing the libraries that the benchmarks compare with"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install $(PIP_QUIET) --no-build-isolation $(CI_FLAGS) -e '.[bench]'
	@touch $@

$(ASAN_VENV)/.tools: pyproject.toml | check-tools
	@test "$$(uname -s)" = Linux || { echo "sanitize needs Linux and GCC." >&2; exit 1; }
	@command -v $(SANITIZE_CXX) >/dev/null 2>&1 || { \
	    echo "sanitize needs GCC and found no '$(SANITIZE_CXX)': install g++, or name one with SANITIZE_CXX=..." >&2; exit 1; }
	@echo "sanitize: installing the build and test tools into $(ASAN_VENV)"
	@test -x $(ASAN_BIN)/python || $(PYTHON) -m venv $(ASAN_VENV)
	@$(ASAN_BIN)/python -m pip install $(PIP_QUIET) "pip>=25.1"
	@$(ASAN_BIN)/python -m pip install $(PIP_QUIET) --group build --group test
	@touch $@

$(ASAN_VENV)/.built: $(ASAN_VENV)/.tools $(NATIVE) | check-tools
	@echo "sanitize: compiling scansion with the sanitizers"
	@PATH="$(CURDIR)/$(ASAN_BIN):$$PATH" CXX=$(SANITIZE_CXX) $(ASAN_BIN)/python -m pip install $(PIP_QUIET) \
	    --no-build-isolation -C build-dir=build/asan -C cmake.build-type=RelWithDebInfo -C install.strip=false \
	    -C cmake.define.SCANSION_SANITIZE=address,undefined,float-cast-overflow -C cmake.define.SCANSION_UNITY=OFF $(CI_FLAGS) -e .
	@touch $@
