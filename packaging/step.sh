#!/bin/sh
# Runs one check: a line when it passes, all that it said when it fails. Usage: step.sh NAME [--show] COMMAND…
set -u
name=$1
shift
show=
if [ "$1" = --show ]; then
    show=yes
    shift
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
if "$@" >"$out" 2>&1; then
    [ -z "$show" ] || cat "$out"
    echo "$name: ok"
else
    code=$?
    cat "$out" >&2
    echo "$name: FAILED" >&2
    exit "$code"
fi
