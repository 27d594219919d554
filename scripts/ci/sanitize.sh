#!/usr/bin/env bash
# Run the kernels on a GPU under NVIDIA's compute-sanitizer: memcheck, initcheck, synccheck and racecheck over the small
# tests of the GPU strategies, of distance statistics, of hierarchies and of the k nearest.
#
# Needs a GPU, CuPy, and compute-sanitizer (part of the CUDA toolkit). The driver makes each allocation: in CuPy's pool, an
# access past an array would hit memory that belongs to the process, and no tool would report it. Tests that run a kernel
# thousands of times are left out. Arguments select other tests: `bash scripts/ci/sanitize.sh -k frontier`. TOOLS selects
# some of the four tools, so that several runs can share a GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

PYTHON=${PYTHON:-.venv/bin/python}
[ -x "$PYTHON" ] || PYTHON=$(command -v python3)
SANITIZER=${SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
if [ ! -x "$SANITIZER" ]; then
    echo "compute-sanitizer is not on the PATH; it comes with the CUDA toolkit, or name it in SANITIZER" >&2
    exit 2
fi
if ! "$PYTHON" -c 'import sys; from kepler_traverse import cuda; sys.exit(not cuda.available())'; then
    echo "no GPU with CuPy answers to $PYTHON" >&2
    exit 2
fi

if [ $# -eq 0 ]; then
    # One line: pytest takes no line break in an expression.
    set -- -k "(cuda and (again or cutoff or depth or targets or negative or complete or power or 33) and not path and not any_graph)\
 or (test_multi_source_gpu and not groups and not memory) or test_distance_stats\
 or (test_hierarchy_on_gpu and not any_graph) or one_search_on_a_gpu"
fi

run_tests='
import sys
import cupy
cupy.cuda.set_allocator(None)
cupy.cuda.set_pinned_memory_allocator(None)
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "tests/traversal/test_contract.py", "tests/traversal/test_multi_source_gpu.py", "tests/traversal/test_distance_stats.py", "tests/hierarchy/test_hierarchy_on_gpu.py", "tests/traversal/test_k_nearest.py",
    *sys.argv[1:]]))
'

failed=()
for tool in ${TOOLS:-memcheck initcheck synccheck racecheck}; do
    echo "== $tool"
    HYPOTHESIS_PROFILE=default "$SANITIZER" --tool "$tool" --error-exitcode 9 --print-limit 20 \
        "$PYTHON" -c "$run_tests" "$@" || failed+=("$tool")
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
echo "${TOOLS:-All four tools} found nothing."
