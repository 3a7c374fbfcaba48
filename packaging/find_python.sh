#!/bin/sh
# Prints the Python to make .venv with. Usage: find_python.sh, or find_python.sh --suits PYTHON, which only checks one.
# The one that PYTHON names; else the first that suits and is compiled with optimisations; else the first that suits.
set -eu

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null
}

# As those of distributions are, and those of pyenv only when told to be: a fifth less of the processor. Where Debian's
# has no ensurepip, it cannot make a virtual environment.
is_fast() {
    "$1" -c 'import ensurepip, sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS")
sys.exit(options is not None and "--enable-optimizations" not in options and sys.base_prefix != "/usr")' 2>/dev/null
}

if [ "${1:-}" = --suits ]; then
    suits "$2"
    exit
fi

if [ -n "${PYTHON:-}" ]; then
    if ! suits "$PYTHON"; then
        echo "PYTHON names $PYTHON, which is no Python 3.11 to 3.14. Name another one, or none." >&2
        exit 1
    fi
    echo "$PYTHON"
    exit
fi

first=
for candidate in python3 python3.14 python3.13 python3.12 python3.11 python /usr/bin/python3; do
    suits "$candidate" || continue
    if is_fast "$candidate"; then
        echo "$candidate"
        exit
    fi
    first=${first:-$candidate}
done
if [ -z "$first" ]; then
    echo "Desktop Agent needs Python 3.11 to 3.14, and none was found. Install one, or say where it is:" >&2
    echo "    make PYTHON=/path/to/python3" >&2
    exit 1
fi
echo "$first"
