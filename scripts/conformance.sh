#!/usr/bin/env bash
# Test suites of other libraries that call this one, and tests of this library with the packages that it works with.
#
# Needs git, bash and Python 3.11 or newer, and some GB of disk: it creates an environment in .venv-conformance.
# docs/conformance.md says what runs. Arguments go to `python -m scripts.conformance run`: `--only scipy networkx`.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
VENV=$ROOT/.venv-conformance
PYTHON=$VENV/bin/python
cd "$ROOT" || exit 1
environment test

packages=$ROOT/scripts/conformance/packages.txt
if ! cmp -s "$packages" "$VENV/packages.txt" || [ "$VENV/installed" -nt "$VENV/packages.txt" ]; then
    echo "Installing the packages of scripts/conformance/packages.txt ..." >&2
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$PYTHON" -r "$packages"
    else
        "$PYTHON" -m pip install --quiet --disable-pip-version-check -r "$packages"
    fi || fail "Installing failed (the message is above)."
    cp "$packages" "$VENV/packages.txt"
fi

exec "$PYTHON" -m scripts.conformance run "$@"
