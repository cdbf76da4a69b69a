# `make quickstart` and `make test` are all that a fresh machine needs: Python 3.11 or newer, git and make.

PYTHON ?= python3
BIN    := .venv/bin

# as a user has it: what was imported once need not be compiled again by each process
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test fast real nightly flaky truth test-pythons lint format docs docs-outputs bench farm faults mutants coverage reliability requirements dist clean

quickstart: .venv/ready
	@tools/prepare build
	@$(BIN)/rocwright build llama-vulkan --gpu auto --verify
	@$(BIN)/rocwright stop quickstart --quiet
	@$(BIN)/rocwright run llama-vulkan --model tiny --name quickstart --try --detach --yes

# all packages at once, after .venv, which needs no root
test fast real: packages := test
test: lint docs fast real

fast: .venv/ready
	@tools/prepare test
	tools/pytest -q -n 2 --dist worksteal -m "not real"

real: .venv/ready
	@tools/prepare test
	tools/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "real and not nightly" --durations=20

# the longest of the real tests: before a release, and every night
nightly: .venv/ready
	@tools/prepare nightly
	tools/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m nightly --durations=20

# what depends on time, signals or ports, ROUNDS times (20) beside eight busy processes; writes .out/flaky.txt
flaky: .venv/ready
	@tools/prepare test
	$(BIN)/python -m tools.flaky --rounds $(or $(ROUNDS),20)

# real wheels and packages as LLVM's tools and a second reader see them, 1.7 GB of downloads; TRUTH="NAME ..." for some of them
truth: .venv/ready
	@tools/prepare test
	tools/pytest -q -rP -n 0 -m "real" tests/real/test_truth.py

# the fast tests with Python 3.11, 3.13 and the newest of Debian, in roots of their own; as root, some 12 GiB
test-pythons:
	for suite in bookworm trixie sid; do tools/in_root $$suite || exit 1; done

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/deptry src
	$(BIN)/deptry packages/rocbase/src --config packages/rocbase/pyproject.toml
	$(BIN)/deptry packages/rocwheel/src --config packages/rocwheel/pyproject.toml
	$(BIN)/lint-imports
	$(BIN)/codespell

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/docs
	@# never --quiet: it counts no warning, and --strict then passes all of them
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir .venv/site

# kills, full disks and flipped bits, some 40 minutes; writes .out/reliability.json
reliability: .venv/ready
	@tools/prepare test
	$(BIN)/python -m tests.reliability

# writes .out/bench; AGAINST=FILE compares with the results.json of an earlier run
bench: .venv/ready
	@tools/prepare test
	$(BIN)/python -m benchmarks $(if $(AGAINST),--against $(AGAINST))

# a store, a coordinator and two workers on this machine, and a build over them of which one worker is killed
farm: .venv/ready
	@tools/prepare test
	$(BIN)/python -m tools.farm $(STACK)

# builds over a farm to which something happens, FAULTS of them, half a minute each
faults: .venv/ready
	@tools/prepare nightly
	$(BIN)/python -m tests.farm.faults $(or $(FAULTS),200)

# up to four hours; writes .out/mutants.md and .json
mutants: .venv/ready
	@tools/prepare test
	$(BIN)/python -m tools.mutants

# the lines that the fast tests run; writes .out/coverage/index.html
coverage: .venv/ready
	@tools/prepare test
	mkdir -p .out && COVERAGE_FILE=$(CURDIR)/.out/coverage.data tools/pytest -q -n 2 -m "not real" --cov=src/rocwright \
	    --cov=packages/rocbase/src/rocbase --cov=packages/rocwheel/src/rocwheel --cov-report=term:skip-covered --cov-report=html:.out/coverage

# hashes of everything that development installs; run it after changing pyproject.toml (needs uv)
requirements: compile = uv pip compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
    --universal --python-version 3.11 --no-emit-package rocbase --no-emit-package rocwheel \
    --all-extras packages/rocbase/pyproject.toml packages/rocwheel/pyproject.toml pyproject.toml
requirements:
	printf '%s @ file://$(CURDIR)/packages/%s\n' rocbase rocbase rocwheel rocwheel > .venv/own.txt
	$(compile) --constraint .venv/own.txt --group dev -o requirements/dev.txt
	$(compile) --constraint .venv/own.txt --constraint requirements/dev.txt --group docs -o requirements/docs.txt

# outputs in pages that a mark names, and pictures of a terminal, made by the commands
docs-outputs: .venv/ready
	$(BIN)/python -m tools.docs_outputs
	ROCWRIGHT_HOME=$$(mktemp -d) $(BIN)/python -m tools.terminal_pictures targets stacks

# what a release publishes, into dist/: the same files for the same commit
dist: .venv/ready
	rm -rf dist
	for project in $(dir $(wildcard pyproject.toml packages/*/pyproject.toml)); do \
	    (cd $$project && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) HATCH_BUILD_NO_HOOKS=true \
	    $(CURDIR)/$(BIN)/python -m hatchling build -d $(CURDIR)/dist) || exit 1; done

# without pip for the Python that is there now, or that you name, .venv is another's
numbers = $(or $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null),none)
python := python$(call numbers,$(BIN)/python)
other  := $(if $(filter file,$(origin PYTHON)),,$(filter-out $(python),python$(call numbers,$(PYTHON))))
renewed := $(if $(other),renewed,$(if $(wildcard .venv/lib/$(python)/site-packages/pip),,renewed))
.PHONY: renewed
.venv/ready: $(renewed) requirements/dev.txt pyproject.toml packages/rocbase/pyproject.toml packages/rocwheel/pyproject.toml
	@test -z "$(renewed)" || $(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("%s is Python %d.%d, and rocwright needs 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" % (sys.executable, v[0], v[1]))'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || tools/prepare $(or $(packages),build)
	@test -z "$(renewed)" || { rm -rf .venv && $(PYTHON) -m venv .venv; }
	@echo "installing rocwright into .venv"
	@$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e packages/rocbase -e packages/rocwheel -e .
	@$(BIN)/python -m pip check
	@touch $@
	@tools/prepare $(or $(packages),build)

.venv/docs: .venv/ready requirements/docs.txt
	@$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements/docs.txt
	@$(BIN)/python -m pip check
	@touch $@

clean:
	rm -rf .venv rocwright-out
