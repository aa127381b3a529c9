# Every target does its own set-up: Python 3.11 or newer and make are all it needs.
PYTHON ?= python3
VENV = .venv
BIN := $(VENV)/bin
SERVE ?= 1
BIND ?= 127.0.0.1:8000
SEED ?= 1
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
# Processes of tests: three more than there are cores, because tests wait for servers and browsers. With 0, a debugger
# can be used.
JOBS ?= $(shell expr $(CORES) + 3)
TEST = $(BIN)/python -m pytest -n $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start servers hundreds of times: their modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE
# Runs a command, and prints a dot for each second that it takes.
DOTS = sh -c '(while sleep 1; do printf .; done) & dots=$$!; "$$@"; status=$$?; kill $$dots; echo; exit $$status' dots
# Most modules are never loaded: those that are get compiled then.
INSTALL = $(BIN)/python -m pip install --quiet --no-compile
# What the extras of these names need: EvalHub itself, which is installed, is not built once more.
NEEDED = $(BIN)/python -c 'import sys, tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(package for name in sys.argv[1:] for package in extras[name]), sep="\n")'

# These are installed first: the kernels are compiled while the other packages arrive.
KERNEL_PACKAGES = $(BIN)/python -c 'import re, tomllib; \
	needed = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
	print(*(package for package in needed if re.match("numba|numpy|scipy", package)), sep="\n")'

.PHONY: demo serve admin test quick test-services test-both chaos objects attack damage fuzz check audit walk bench docs screenshots
.PHONY: calibrate integrations image-test wheel-test client-test versions clean

demo: $(VENV)/.run  ## a lab's leaderboard and two campaigns on a site of their own (SERVE=0: end after the printout; EXAMPLES=1: also what the documentation quotes)
	@EVALHUB_DATA=$(or $(EVALHUB_DATA),.evalhub/demo) $(BIN)/evalhub demo --bind $(BIND) \
		$(if $(filter 0,$(SERVE)),--no-serve) $(if $(filter 1,$(EXAMPLES)),--examples)

serve: $(VENV)/.run  ## the same server on your own data folder
	@$(BIN)/evalhub serve --bind $(BIND)

admin: $(VENV)/.run  ## make an administrator and a token: make admin NAME=alice
	@$(BIN)/evalhub migrate --verbosity 0
	@$(BIN)/evalhub create_admin $(NAME)

test: $(VENV)/.test  ## every test that needs no outside service, or those of T: make test T=tests/engine
	$(TEST) $(T)

# These wait for nothing.
quick: JOBS = $(CORES)
quick: $(VENV)/.test  ## the first case of each fast test, with few examples of each property: about a minute
	$(TEST) -m "not slow" --first-cases --hypothesis-profile=quick $(or $(T),tests/engine tests/metrics tests/runs $(wildcard tests/test_*.py))

# These wait for the database alone. The further cases of a test ask the same of a database; SQLite runs them.
test-services: JOBS = $(shell expr $(CORES) + 1)
test-services: $(VENV)/.test  ## what touches the database, on the PostgreSQL of EVALHUB_TEST_DATABASE_URL
	EVALHUB_TEST_ON=services $(TEST) --first-cases $(or $(T),tests/campaigns tests/metrics tests/runs tests/web)

test-both: test test-services  ## both of these

integrations: $(VENV)/.test  ## the client with the real libraries, each in an environment of its own, or those of ONLY: make integrations ONLY=ranx
	$(BIN)/python -m tests.integrations $(ONLY)

chaos: $(VENV)/.test $(VENV)/.s3  ## the long form of the kill tests, an hour: on SQLite, on a PostgreSQL and a Redis of its own, on two machines with an object store
	$(BIN)/python -m tests.reliability.chaos --on sqlite --seed $(SEED) --submissions 2000 --kills 300 --freezes 50
	$(BIN)/python -m tests.reliability.chaos --on services --seed $(SEED) --submissions 2000 --kills 300 --freezes 50 --redis 30 --postgres 20
	$(BIN)/python -m tests.reliability.chaos --on services --seed $(SEED) --campaigns 10
	$(BIN)/python -m tests.reliability.chaos --on services --files s3 --seed $(SEED) --submissions 500 --kills 60 --objects 10

objects: $(VENV)/.test $(VENV)/.s3  ## the tests of servers with an object store of their own, and with two machines, or those of T
	$(BIN)/python -m tests.reliability.on_objects -n 2 $(or $(T),tests/reliability)

attack: $(VENV)/.test  ## what others notice of slow clients, dear requests and the largest files: on SQLite, then on services of its own
	$(BIN)/python -m tests.attack --on sqlite
	$(BIN)/python -m tests.attack --on services

damage: $(VENV)/.test  ## every kind of damage, and 2,000 flipped bits: what is shown, what fsck finds and repairs
	$(BIN)/python -m tests.damage --flips 2000 --seed $(SEED)

fuzz: $(VENV)/.test  ## made-up files and requests, a quarter of an hour: 54,000 texts to the readers, 10,000 requests from the API's description
	EVALHUB_TEST_READER_EXAMPLES=3000 $(BIN)/python -m pytest -m reader tests/runs tests/engine/test_measures.py
	EVALHUB_TEST_READER_EXAMPLES=3000 $(BIN)/python -m pytest tests/test_expressions.py
	EVALHUB_TEST_API_CASES=10000 EVALHUB_TEST_API_SEED=$(SEED) $(BIN)/python -m pytest -s tests/web/test_fuzz.py tests/web/test_hostile_requests.py

check: $(VENV)/.check  ## format, lint, types, migrations, whether the installed packages fit each other
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	EVALHUB_DATA=.evalhub/check $(BIN)/mypy
	EVALHUB_DATA=.evalhub/check $(BIN)/evalhub makemigrations --check --dry-run
	$(BIN)/python -m pip check

audit: $(VENV)/.audit  ## known weaknesses of the installed packages; asks the advisory service on the network
	$(BIN)/python -m pip check
	@mkdir -p .evalhub && $(BIN)/python -m pip freeze --exclude-editable > .evalhub/installed.txt
	$(BIN)/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement .evalhub/installed.txt

walk: $(VENV)/.test  ## how many own calls and files the first request of each kind goes through
	$(BIN)/python -m tests.walk

bench: $(VENV)/.test  ## measured times
	$(BIN)/python -m tests.benchmarks

docs: $(VENV)/.docs  ## the documentation as a site, into .evalhub/site; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file .mkdocs.yml --strict --quiet

screenshots: $(VENV)/.test  ## every page in light and dark at three widths, into FOLDER
	$(BIN)/python -m tests.browser.screenshots $(or $(FOLDER),.evalhub/screenshots)

calibrate: $(VENV)/.test  ## how often every significance test finds what is not there
	$(BIN)/python -m tests.benchmarks.calibrate

image-test: $(VENV)/.test  ## build the Docker image with buildah and evaluate a run in it: make image-test BASE=image-or-folder
	$(BIN)/python -m tests.reliability.image $(if $(BASE),--base $(BASE))

wheel-test: $(VENV)/.test  ## build the wheel and use it as it installs itself, in an environment and a folder of its own
	$(BIN)/python -m tests.reliability.wheel

client-test: $(VENV)/.test  ## 1,000 runs sent while server and client are killed; the client's wheel beside another one
	$(BIN)/python -m tests.client.many
	$(BIN)/python -m tests.client.environments

VERSIONS ?= 3.12 3.13 3.14
versions:  ## the fast tests on each of VERSIONS that is installed here, every one in an environment of its own
	@for version in $(VERSIONS); do \
		found=; \
		for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			if [ -z "$$found" ] && $$python -c '' 2> /dev/null; then found=$$python; fi; \
		done; \
		if [ -z "$$found" ]; then echo "Python $$version is not installed here: not tried"; continue; fi; \
		echo "Python $$version: $$found"; \
		$(MAKE) --no-print-directory quick PYTHON=$$found VENV=.evalhub/python$$version || exit 1; \
	done

clean:
	rm -rf .venv .evalhub .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@printf "setup: a virtual environment in $(VENV) "
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EvalHub needs Python 3.11 or newer; make PYTHON=...")'
	@$(DOTS) $(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	@printf "setup: fetching and installing about 50 packages, and compiling the kernels into their cache "
	@$(KERNEL_PACKAGES) | $(DOTS) $(INSTALL) --requirement /dev/stdin
	@$(BIN)/python -c 'from runs.formats.scanning.warm_up import warm_up; warm_up()' & compiling=$$!; \
		$(DOTS) $(INSTALL) --editable . && wait $$compiling
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "setup: installing what the tests need"
	@$(NEEDED) test | $(INSTALL) --requirement /dev/stdin
	@touch $@

$(VENV)/.check: $(VENV)/.run
	@echo "setup: installing what the tests and the checks need"
	@$(NEEDED) test check | $(INSTALL) --requirement /dev/stdin
	@touch $(VENV)/.test $@

$(VENV)/.s3: $(VENV)/.test
	@echo "setup: installing the client of object stores, and one to test with"
	@$(NEEDED) s3 s3-server | $(INSTALL) --requirement /dev/stdin
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@echo "setup: installing what the documentation needs"
	@$(NEEDED) docs | $(INSTALL) --requirement /dev/stdin
	@touch $@

$(VENV)/.audit: $(VENV)/.run
	@echo "setup: installing what the audit needs"
	@$(NEEDED) audit | $(INSTALL) --requirement /dev/stdin
	@touch $@
