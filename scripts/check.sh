#!/usr/bin/env bash
# All checks that a change must pass: linters, import contracts, types, generated pages, tests. With --all first also what is
# long: tests marked `exhaustive`, whole products of parameters, more generated examples, test suites of other libraries.
#
#   bash scripts/check.sh                       the checks and the tests
#   bash scripts/check.sh -k readers            arguments go to pytest
#   bash scripts/check.sh --all                 all parts: checks, tests, coverage, bounds, libraries
#   bash scripts/check.sh --all bounds tests    some of them; arguments after them go to the pytest of the tests
#
# Needs git, bash and Python 3.11 or newer; no GPU. Creates an environment in .venv, or uses the Python that KEPLER_PYTHON names,
# and installs nothing then: linters are not looked for there. All parts run, even after a failure, each for KEPLER_LIMIT
# seconds at most (5,400 by default); the last lines and out/parts/summary.txt say what came of them. One more
# test runs at a time than there are cores, since some wait, or as many as KEPLER_WORKERS says.
#
# With --gpu first, the checks of a machine with GPUs in their place (scripts/ci/gpu.py), by the Python that KEPLER_PYTHON names,
# or else by that of the active environment or of .venv, whichever has CuPy. Nothing is installed.
set -uo pipefail
here=${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}.
if [ "${1:-}" = --gpu ]; then
    cd "$here/.." || exit 1
    for python in ${KEPLER_PYTHON:-python3 .venv/bin/python python3}; do
        "$python" -c "import cupy" 2>/dev/null && break
    done
    exec "$python" -m scripts.ci.gpu "${@:2}"
fi
source "$here/setup.sh"
cd "$ROOT" || exit 1
if [ -z "${KEPLER_PYTHON:-}" ]; then
    command -v git >/dev/null || fail "git is needed, and none is on the path."
    git rev-parse --git-dir >/dev/null 2>&1 || fail "$ROOT is no git checkout: clone the repository."
fi

# In this order: what comes of the tests under coverage is looked at after them.
PARTS="checks tests coverage bounds libraries"
extras=test,dev
chosen="checks tests"
all=()
if [ "${1:-}" = --all ]; then
    shift
    all=(--all)
    extras+=,docs,recipes
    chosen=
    while [[ -n "${1:-}" && " $PARTS " = *" $1 "* ]]; do
        chosen+="$1 "
        shift
    done
    chosen=${chosen:-$PARTS}
fi
environment $extras
"$PYTHON" -c 'import os, shutil; shutil.rmtree("out/check", ignore_errors=True); os.makedirs("out/check")'
WORKERS=${KEPLER_WORKERS:-$("$PYTHON" -c 'import os; print(1 + len(os.sched_getaffinity(0)))')}
export OMP_WAIT_POLICY=passive
COLOR=no
[ ! -t 1 ] || COLOR=yes

is_chosen() {
    [[ " $chosen " = *" $1 "* ]]
}

# Tests of compiled code: each strategy and each kind against an oracle, hierarchies, and other ways to ask.
BOUNDED="tests/traversal/test_contract.py tests/relations tests/hierarchy"

failed=()
part() {
    is_chosen "$1" || return 0
    echo "== $1"
    "$PYTHON" -m scripts.ci.parts run "$@" || failed+=("$1")
}

# Two checks run at a time, each with its output in a file that is printed when all have ended.
checks=()
check() {
    local name=$1 log=out/check/${#checks[@]}.log
    shift
    [ ${#checks[@]} -lt 2 ] || wait -n
    checks+=("$name")
    { "$@" >"$log" 2>&1 || : >"$log.failed"; } &
}

report_checks() {
    local index
    wait
    for index in "${!checks[@]}"; do
        echo "== ${checks[index]}"
        printf '%s\n' "$(<"out/check/$index.log")"
        [ ! -e "out/check/$index.log.failed" ] || failed+=("${checks[index]}")
    done
}

# Files of these patterns that git tracks or would add. Linters must not read caches and environments.
sources() {
    mapfile -d '' files < <(git ls-files --cached --others --exclude-standard -z -- "$@")
    [ ${#files[@]} -gt 0 ]
}

spelling() {
    sources . && "$VENV/bin/codespell" "${files[@]}"
}

cuda_format() {
    sources '*.cu' '*.cuh' && "$VENV/bin/clang-format" --dry-run --Werror "${files[@]}"
}

# What one process compiles of the tests here, those that run them need not. Where they are compiled, the tests themselves
# say what cannot be collected.
collect() {
    ! compgen -G "tests/*/__pycache__/*-pytest-*.pyc" >/dev/null || return 0
    "$PYTHON" -m pytest -q --collect-only -p no:cacheprovider >out/check/collected || { tail -n 60 out/check/collected && false; }
}

# Worker processes, because one process leaves cores idle. A worker that is done takes tests from another one. A file that
# cannot be collected is an error, and the others run.
PYTEST=("$PYTHON" -m pytest -q --continue-on-collection-errors --color="$COLOR")
PYTEST+=(--numprocesses "$WORKERS" --dist worksteal -o cache_dir=out/pytest)

if is_chosen checks && [ -z "${KEPLER_PYTHON:-}" ]; then
    # The longest first.
    check "types" "$VENV/bin/mypy"
    check "tests can be collected" collect
    check "words" "$PYTHON" scripts/ci/check_words.py
    check "pages for users" "$PYTHON" scripts/ci/check_pages.py
    check "known vulnerabilities" "$PYTHON" -m scripts.ci.audit
    check "ruff check" "$VENV/bin/ruff" check .
    check "ruff format" "$VENV/bin/ruff" format --check .
    check "import contracts" "$VENV/bin/lint-imports"
    check "spelling" spelling
    check "CUDA format" cuda_format
    check "pyproject.toml" "$VENV/bin/validate-pyproject" pyproject.toml
    check "workflows" "$VENV/bin/zizmor" --offline --quiet --no-progress .github
    check "docs/guarantees.md is current" "$PYTHON" -m scripts.evidence check
    check "docs/testing.md is current" "$PYTHON" -m scripts.ci.surroundings check
    check "the record of storms is current" "$PYTHON" -m scripts.ci.storm check
    report_checks
fi

# All processes write down which lines they reach, if all tests run and that is looked at afterwards.
tests=("${PYTEST[@]}" --durations=10 --junitxml=out/tests.xml)
if is_chosen coverage && is_chosen tests && [ $# -eq 0 ]; then
    "$PYTHON" -c 'import shutil; shutil.rmtree("out/coverage", ignore_errors=True)'
    tests=("$PYTHON" -m coverage run "${tests[@]:1}")
fi
part tests "${tests[@]}" "${all[@]}" "$@"
part coverage "$PYTHON" -m scripts.ci.branches check
# Compiled code that looks at each index, kept in a folder of its own.
NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$ROOT/out/bounds" part bounds "${PYTEST[@]}" --junitxml=out/bounds.xml $BOUNDED
part libraries "$PYTHON" -m scripts.conformance part

# With --all also what came of the parts that an earlier call ran.
summed_up=
[ ${#all[@]} -gt 0 ] || summed_up=$chosen
echo
"$PYTHON" -m scripts.ci.parts summary $summed_up
if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED after %s s:\n' "$SECONDS"
    printf '  %s\n' "${failed[@]}"
    exit 1
fi
printf '\nAll checks passed in %s s.\n' "$SECONDS"
