# make run     set up what the window needs, and open it
# make check   the linters and the quick tests of what was changed, in less than 90 seconds; ARGS=--all: all quick ones
# make test    set up what the tests need, and run what every push is judged by
# make test-all    the same with all that is marked exhaustive and all examples; before a release
# The others: lint format translations docs bench fuzz shell-differential invariants mutants soak llama-server gallery pictures package package-check reproducible installed systems wheels lock clean

# Kept bytecode saves each of the thousands of processes that the tests start from compiling the program anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url --quiet $(UPGRADE)
# What the program is made of; the library alone needs less.
PROGRAM := --extra window --extra mcp --extra web

.PHONY: run test test-all check lint format translations docs bench fuzz shell-differential invariants mutants soak llama-server gallery pictures package package-check reproducible installed systems wheels lock clean setup-run setup-test setup-package
.NOTPARALLEL:

run: setup-run
	@$(BIN)/desktop-agent $(ARGS)

# The linters beside the tests; the last words are pytest's. JOBS=0: all in one process, as for a debugger.
JOBS := 4
test: setup-test
	@$(BIN)/python -m tests.frame.check --whole --numprocesses $(JOBS) $(ARGS)

test-all: setup-test
	@$(BIN)/python -m tests.frame.check --whole --exhaustive --numprocesses $(JOBS) $(ARGS)

# Which tests belong to a change: tests/frame/check.py.
check: setup-test
	@$(BIN)/python -m tests.frame.check $(ARGS)

lint: setup-test
	@packaging/step.sh "ruff check" $(BIN)/ruff check --quiet .
	@packaging/step.sh "ruff format" $(BIN)/ruff format --quiet --check .
	@packaging/step.sh "types" $(BIN)/basedpyright
	@packaging/step.sh "contracts" $(BIN)/lint-imports --no-cache
	@packaging/step.sh "sizes" --show $(BIN)/python -m tests.frame.budgets

format: setup-test
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format .

# The translations with what the sources say now; ARGS=--check only prints what has none: docs/translations.md.
translations: setup-test
	@$(BIN)/python packaging/translations.py $(ARGS)

# The library from its docstrings, as pages.
docs: setup-test
	@$(BIN)/python -m pdoc --docformat markdown --output-directory docs/api desktop_agent

bench: setup-test
	@$(BIN)/python -m tests.bench $(ARGS)

# Broken streams, 200,000 for each dialect: ARGS='--streams N --seed N --dialect NAME'. Finds go to the folder fuzz.
fuzz: setup-test
	@$(BIN)/python -m tests.fuzz $(ARGS)

# Shell lines against the real shells, 70,000: ARGS='--lines N --seed N --shell bash|dash'. Finds go to the folder fuzz.
shell-differential: setup-test
	@$(BIN)/python -m tests.shell_differential $(ARGS)

# Random worlds, 20,000 of them: ARGS='--worlds N --steps N --seed N', or ARGS=--faults: do they find seeded faults?
invariants: setup-test
	@$(BIN)/python -m tests.invariants $(ARGS)

# Random changes of central modules that no test notices; ARGS='--modules NAME... --mutants N --seed N'.
mutants: setup-test
	@$(BIN)/python -m tests.frame.mutation $(ARGS)

# Builds the server of llama.cpp outside of the project, once, so that tests/llama_cpp run: ARGS='--jobs N'.
llama-server: setup-test
	@$(BIN)/python -m tests.llama_cpp.build $(ARGS)

# Minutes of silence in real time; ARGS='owners --pairs N --seed N': pairs of processes on one conversation;
# ARGS='disk-faults --runs N --seed N': kills and faults of the disk; ARGS='kills --kills N --seed N': kills while
# conversations are changed; ARGS=refusals: the same actions at disks that refuse.
soak: setup-test
	@$(BIN)/python -m tests.soak $(ARGS)

gallery: setup-test
	@$(BIN)/python -m tests.gallery $(ARGS)

# Those of the user guide and the README.
pictures: setup-test
	@$(BIN)/python -m tests.gallery.guide_pictures
	@$(BIN)/python -m tests.gallery.film docs/pictures/film.webp

# UPDATE_FEED=https://…: where this build may ask for new versions; UPDATE_FEED=system: it is updated by the system.
package: setup-package
	@$(BIN)/python packaging/build.py

# Tries what `make package` built, from another folder; needs what the tests need.
package-check: setup-test setup-package
	@$(BIN)/python packaging/check.py

# Builds what was last committed twice, in two folders, and compares every byte: ARGS='--first FOLDER'.
reproducible: setup-package
	@$(BIN)/python packaging/reproducible.py $(ARGS)

# Installs the Debian package on a system that has nothing else, uses it and removes it: ARGS='SUITE --pictures FOLDER'.
installed: setup-test setup-package
	@$(BIN)/python packaging/installed.py $(ARGS)

# Whether all that is pinned can be had as a wheel, also for Windows and macOS.
wheels: setup-test
	@$(BIN)/python packaging/wheels.py

# Opens the window and runs the quick tests on other releases of Debian, with their Pythons: ARGS='SUITE... --folder F'.
systems: setup-test setup-package
	@$(BIN)/python packaging/systems.py $(ARGS)

# make lock UPGRADE=--upgrade takes the newest versions that pyproject.toml allows.
lock: setup-test
	@$(LOCK) $(PROGRAM) --group build --output-file requirements.lock
	@$(LOCK) $(PROGRAM) --extra diagrams --group build --group dev --group package --constraint requirements.lock --output-file requirements-dev.lock

setup-run:
	@packaging/setup.sh run
	@$(BIN)/python packaging/compile_translations.py

setup-test:
	@packaging/setup.sh test
	@$(BIN)/python packaging/compile_translations.py

setup-package:
	@packaging/setup.sh package
	@$(BIN)/python packaging/compile_translations.py

clean:
	rm -rf build dist gallery fuzz bench.json docs/api .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
