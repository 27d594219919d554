#!/usr/bin/env bash
# NetworkX's own test suite with the backend `kepler`: every function that the backend serves is called in place of NetworkX's.
#
#   bash scripts/conformance/networkx.sh          the whole suite: about ten minutes
#   bash scripts/conformance/networkx.sh --part   the tests of shortest paths, traversal and distances: about a minute
#
# $PYTHON is an interpreter where this package is installed with its entry points; scripts/conformance.sh makes one. Calls that
# the backend refuses go to NetworkX. The run fails if a function of the backend is not called at all.
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PYTHON=${PYTHON:-$ROOT/.venv/bin/python}

part=(
    networkx.algorithms.shortest_paths networkx.algorithms.traversal networkx.algorithms.tests.test_distance_measures
    networkx.algorithms.tests.test_voronoi networkx.algorithms.tests.test_wiener networkx.algorithms.tests.test_efficiency
    networkx.algorithms.centrality.tests.test_closeness_centrality
    networkx.algorithms.centrality.tests.test_harmonic_centrality
    networkx.algorithms.centrality.tests.test_betweenness_centrality
    networkx.algorithms.centrality.tests.test_betweenness_centrality_subset
    networkx.algorithms.centrality.tests.test_load_centrality networkx.algorithms.components.tests.test_connected
    networkx.algorithms.tests.test_dag
)
whole=(
    networkx.algorithms networkx.classes networkx.drawing networkx.generators networkx.linalg networkx.readwrite
    networkx.tests networkx.utils
)
case "${1:-}" in
"") tests=("${whole[@]}") ;;
--part) tests=("${part[@]}") ;;
*)
    echo "usage: $0 [--part]" >&2
    exit 2
    ;;
esac

export NETWORKX_TEST_BACKEND=kepler NETWORKX_FALLBACK_TO_NX=True PYTHONPATH=$ROOT
# No options of this project's pyproject.toml: NetworkX's tests raise warnings that ours turn into errors.
exec "$PYTHON" -m pytest -q -c /dev/null --rootdir "$ROOT" -p no:cacheprovider -p scripts.conformance.count_backend_calls \
    -rfE --pyargs "${tests[@]}"
