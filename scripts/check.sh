#!/usr/bin/env bash
# All checks that a change must pass: linters, import contracts, types, generated pages, all tests.
#
# Needs git, bash and Python 3.11 or newer; no GPU. Creates an environment in .venv. All steps run, even after a failure.
# The last lines list the steps that failed. Arguments go to pytest: `bash scripts/check.sh -k readers`.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$ROOT" || exit 1
command -v git >/dev/null || fail "git is needed, and none is on the path."
git rev-parse --git-dir >/dev/null 2>&1 || fail "$ROOT is no git checkout: clone the repository."
environment test,dev
mkdir -p out

failed=()
step() {
    local name=$1 begin=$SECONDS
    shift
    echo "== $name"
    "$@" || failed+=("$name")
    echo "   $((SECONDS - begin)) s"
}

# Files of these patterns that git tracks or would add. Linters must not read caches and environments.
sources() {
    git ls-files --cached --others --exclude-standard -z -- "$@"
}

spelling() {
    sources . | xargs -0 "$VENV/bin/codespell"
}

cuda_format() {
    sources '*.cu' '*.cuh' | xargs -0 "$VENV/bin/clang-format" --dry-run --Werror
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
tests() {
    rm -f out/tests.xml
    OMP_WAIT_POLICY=passive "$PYTHON" -m pytest -q --numprocesses 2 --dist worksteal --durations=10 \
        -o cache_dir=out/pytest --junitxml=out/tests.xml "$@" && some_test_ran
}

step "ruff check" "$VENV/bin/ruff" check .
step "ruff format" "$VENV/bin/ruff" format --check .
step "import contracts" "$VENV/bin/lint-imports"
step "types" "$VENV/bin/mypy"
step "spelling" spelling
step "words" "$PYTHON" scripts/ci/check_words.py
step "CUDA format" cuda_format
step "pyproject.toml" "$VENV/bin/validate-pyproject" pyproject.toml
step "pages of strategies are current" "$PYTHON" -m scripts.docs.strategies_page --check
step "conf/batch_sources.toml and docs/settings.md are current" "$PYTHON" -m scripts.docs.settings_page --check
step "docs/performance.md, docs/benchmarks and README.md are current" "$PYTHON" -m scripts.bench.performance_page check
step "docs/published is current" "$PYTHON" -m scripts.papers.page check
step "docs/guarantees.md is current" "$PYTHON" -m scripts.evidence check
step "pictures of docs/results.md are current" "$PYTHON" -m scripts.docs.pictures --check
step "docs/from/scipy.md is current" "$PYTHON" -m scripts.docs.scipy_page --check
step "docs/conformance.md is current" "$PYTHON" -m scripts.conformance check
step "tests of other libraries, in part" "$PYTHON" -m scripts.conformance part
step "known vulnerabilities" "$PYTHON" -m scripts.ci.audit
step "tests" tests "$@"

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED after %s s:\n' "$SECONDS"
    printf '  %s\n' "${failed[@]}"
    exit 1
fi
printf '\nAll checks passed in %s s.\n' "$SECONDS"
