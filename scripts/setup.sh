# shellcheck shell=bash
# Creates the environment of demo.sh and check.sh: .venv in the checkout, with this package installed as editable.
#
# To be sourced, not run. Call `environment` for the job and its pictures, or `environment test,dev` for those extras. "$PYTHON" is then the interpreter.
# A second call is fast: .venv/installed records the pyproject.toml and the extras of the installation. Where KEPLER_PYTHON names
# an interpreter, it is used as it is.

ROOT=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
VENV=$ROOT/.venv
PYTHON=$VENV/bin/python
if [ -z "${KEPLER_PYTHON:-}" ]; then
    unset PYTHONPATH PYTHONHOME
fi
unset PYTHONDONTWRITEBYTECODE  # images of containers set it, and each process would compile every module again

fail() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Print the first Python on the path that is 3.11 or newer. A command of that name may exist and fail to run.
find_python() {
    local name version seen=""
    for name in python3 python python3.14 python3.13 python3.12 python3.11; do
        command -v "$name" >/dev/null || continue
        if new_enough "$name"; then
            command -v "$name"
            return
        fi
        version=$("$name" --version 2>/dev/null)
        seen="$seen ${version// /-}"
    done
    fail "Python 3.11 or newer is needed, and none is on the path (seen:${seen:- none}). Install one, or install uv, which brings its own."
}

make_venv() {
    local python
    # Only a folder that a venv command made is removed.
    [ ! -e "$VENV" ] || [ -f "$VENV/pyvenv.cfg" ] || fail "$VENV exists and is no virtual environment; move it away."
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python '>=3.11' "$VENV" || fail "uv could not make an environment in $VENV (its message is above)."
    else
        python=$(find_python) || exit 1
        "$python" -c 'import venv, ensurepip' 2>/dev/null ||
            fail "$python lacks the venv module or ensurepip. On Debian and Ubuntu: apt install python3-venv. Or install uv."
        "$python" -m venv --clear "$VENV" || fail "$python could not make an environment in $VENV (its message is above)."
    fi
}

install() {
    local target=$ROOT${1:+[$1]}
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$PYTHON" --editable "$target"
    else
        # Bytecode of modules that nothing imports would take half of the time. An import writes its own, as after uv.
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile --editable "$target"
    fi
}

environment() {
    local extras=${1:-job,plot} key installed_key="" installed_extras=""
    if [ -n "${KEPLER_PYTHON:-}" ]; then
        PYTHON=$(command -v "$KEPLER_PYTHON") || fail "KEPLER_PYTHON names $KEPLER_PYTHON, which does not exist."
        new_enough "$PYTHON" || fail "$PYTHON, which KEPLER_PYTHON names, is older than Python 3.11."
        export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
        return
    fi
    if ! { [ -x "$PYTHON" ] && new_enough "$PYTHON"; }; then
        make_venv
    fi
    # The path is part of the key: an environment does not survive moving the checkout.
    key=$ROOT:$("$PYTHON" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$ROOT/pyproject.toml")
    if [ -f "$VENV/installed" ]; then
        { read -r installed_key && read -r installed_extras; } <"$VENV/installed"
    fi
    # An installation for tests also serves the job, and one for the site also the tests.
    if [ "$installed_key" = "$key" ] && { [ "$extras" = job,plot ] || [[ $installed_extras, = "$extras",* ]]; }; then
        return
    fi
    echo "Installing into $VENV (a minute or two, the first time) ..." >&2
    rm -f "$VENV/installed"
    install "$extras" ||
        fail "Installing failed (the message is above). It needs the network, or a package index that pip or uv is set up for."
    printf '%s\n%s\n' "$key" "$extras" >"$VENV/installed"
}
