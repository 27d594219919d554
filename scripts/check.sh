#!/usr/bin/env bash
# All checks that a change must pass: linters, import contracts, types, generated pages, tests. With --all also what is long:
# tests marked `exhaustive`, whole products of parameters, more generated examples, test suites of other libraries.
#
# Needs git, bash and Python 3.11 or newer; no GPU. Creates an environment in .venv. All steps run, even after a failure.
# The last lines list the steps that failed. Arguments go to pytest: `bash scripts/check.sh -k readers`.
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
command -v git >/dev/null || fail "git is needed, and none is on the path."
git rev-parse --git-dir >/dev/null 2>&1 || fail "$ROOT is no git checkout: clone the repository."
extras=test,dev
[[ " $* " != *" --all "* ]] || extras+=,docs,recipes
environment $extras
"$PYTHON" -c 'import os, shutil; shutil.rmtree("out/check", ignore_errors=True); os.makedirs("out/check")'

# Tests of compiled code: each strategy and each kind against an oracle, hierarchies, and other ways to ask.
BOUNDED="tests/traversal/test_contract.py tests/relations tests/hierarchy"

failed=()
step() {
    local name=$1 begin=$SECONDS
    shift
    echo "== $name"
    "$@" || failed+=("$name")
    echo "   $((SECONDS - begin)) s"
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

# What one process compiles of the tests here, the two that run them need not. Where they are compiled, the tests themselves
# say what cannot be collected.
collect() {
    ! compgen -G "tests/*/__pycache__/*-pytest-*.pyc" >/dev/null || return 0
    "$PYTHON" -m pytest -q --collect-only -p no:cacheprovider >out/check/collected || { tail -n 60 out/check/collected && false; }
}

some_test_ran() {
    "$PYTHON" - out/tests.xml <<'END'
import sys
import xml.etree.ElementTree as xml

suite = xml.parse(sys.argv[1]).getroot().find("testsuite")
skipped = int(suite.get("skipped"))
ran = int(suite.get("tests")) - skipped
print(f"{ran} tests ran, {skipped} were skipped")
sys.exit(ran == 0)
END
}

# Two worker processes, because one process leaves a core idle. A worker that is done takes tests from the other one.
# With --all alone, all processes write down which lines they reach.
tests() {
    local program=(-m pytest)
    [ "$*" != --all ] || program=(-m coverage run -m pytest)
    OMP_WAIT_POLICY=passive "$PYTHON" "${program[@]}" -q --numprocesses 2 --dist worksteal --durations=10 \
        -o cache_dir=out/pytest --junitxml=out/tests.xml "$@" && some_test_ran
}

# Compiled code that looks at each index, kept in a folder of its own.
bounds() {
    OMP_WAIT_POLICY=passive NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$ROOT/out/bounds" "$PYTHON" -m pytest -q --numprocesses 2 \
        --dist worksteal -o cache_dir=out/pytest $BOUNDED
}

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
"$PYTHON" -c 'import shutil; shutil.rmtree("out/coverage", ignore_errors=True)'
step "tests" tests "$@"
if [ "$*" = --all ]; then
    step "coverage" "$PYTHON" -m scripts.ci.branches check
    step "compiled code with checked indices" bounds
fi
[[ " $* " != *" --all "* ]] || step "tests of other libraries" "$PYTHON" -m scripts.conformance part

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED after %s s:\n' "$SECONDS"
    printf '  %s\n' "${failed[@]}"
    exit 1
fi
printf '\nAll checks passed in %s s.\n' "$SECONDS"
