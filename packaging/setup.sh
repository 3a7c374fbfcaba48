#!/bin/sh
# Makes .venv what the lock files say. Usage: setup.sh run|test|package. Does nothing when nothing changed.
set -eu
cd "$(dirname "$0")/.."

what=${1:?run, test or package}
case "$what" in
    run) lock=requirements.lock ;;
    *) lock=requirements-dev.lock ;;
esac
venv=.venv

packaging/system-packages.sh "$what"

if ! [ -x "$venv/bin/python" ] || ! packaging/find_python.sh --suits "$venv/bin/python"; then
    python=$(packaging/find_python.sh)
    echo "Making $venv with $("$python" --version)"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >"${TMPDIR:-/tmp}/desktop-agent-venv.$$" 2>&1; then
        cat "${TMPDIR:-/tmp}/desktop-agent-venv.$$" >&2
        rm -rf "$venv" "${TMPDIR:-/tmp}/desktop-agent-venv.$$"
        echo "$python cannot make a virtual environment. On Debian and Ubuntu: sudo apt-get install python3-venv" >&2
        exit 1
    fi
    rm -f "${TMPDIR:-/tmp}/desktop-agent-venv.$$"
fi

# The folder counts too: the environment points to it.
state=$( (pwd; cat requirements.lock "$lock" pyproject.toml) | cksum)
stamp="$venv/.ready-$what"
[ "$what" = package ] && stamp="$venv/.ready-test"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ]; then
    exit 0
fi

pip="$venv/bin/python -m pip --disable-pip-version-check --no-input"
echo "Installing what $lock lists"
# The lock lists every package, so nothing is left to resolve. pip 23.2 would, and it looks for the newest version of a
# package that another one wants with extras, though its version stands in the lock.
$pip install -qq --no-deps --require-hashes -r "$lock" </dev/null
$pip install -qq --no-deps --no-build-isolation --editable . </dev/null
packaging/step.sh "packages" $pip check </dev/null
# PySide6 compiles a part of itself at each start, unless it lies unpacked beside it.
SBK_EMBED=0 "$venv/bin/python" -c "import PySide6.QtCore" </dev/null
echo "$state" >"$stamp"
