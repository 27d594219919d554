"""``kepler_traverse.csgraph`` compared with ``scipy.sparse.csgraph`` on the CPU, in one process.

Both libraries get the same CSR matrix with float64 weights 1 to 255 and make the same call; the matrix is read anew in each.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from scripts.bench.libraries import graph_of
from scripts.measure.work import OURS, Call, Inputs, Prepare, Work, unless

PACKAGES = ("scipy",)
GRAPHS = ("USA-road-NY", "luxembourg_osm", "soc-Slashdot0902", "dblp-2010")
LIBRARIES = {OURS: "kepler_traverse.csgraph", "SciPy": "scipy.sparse.csgraph"}
# Functions, and what they are called with.
CALLS = ("dijkstra", "dijkstra, return_predecessors=True", "dijkstra, unweighted=True")
OF_ONE = "breadth_first_order"
OF_SEVERAL = "dijkstra, min_only=True"
SOURCES = {1: OF_ONE, 32: OF_SEVERAL, 256: OF_SEVERAL}


def matrix_of(inputs: Inputs, graph: str) -> Any:
    """Return the matrix of a graph, in both directions if undirected, so that both libraries search the same edges."""
    import scipy.sparse

    found = graph_of(inputs, graph)
    offsets = found.offsets.astype(np.int32)
    arrays = found.weights.astype(np.float64), found.targets, offsets
    return scipy.sparse.csr_array(arrays, shape=(found.n_vertices, found.n_vertices))


def prepare(library: str, title: str, count: int) -> Prepare:
    """Return the function that prepares a call of a library from a number of random vertices with edges."""
    name, _, option = title.removesuffix("=True").partition(", ")
    options = dict.fromkeys(option.split(), True)

    def of(matrix: Any) -> Call:
        candidates = np.flatnonzero(np.diff(matrix.indptr))
        sources = np.random.default_rng(1).permutation(candidates)[:count]
        call = getattr(import_module(LIBRARIES[library]), name)
        if title == OF_ONE:
            return partial(call, matrix, int(sources[0]))
        indices = int(sources[0]) if count == 1 else sources
        return partial(call, matrix, True, indices, **options)

    return of


def differences(title: str, expected: Any, found: Any) -> str:
    """Compare two results; of predecessors of ``dijkstra``, which SciPy leaves open, whether they are there."""
    if not isinstance(expected, tuple):
        is_same = expected.dtype == found.dtype and np.array_equal(expected, found)
    elif title == OF_ONE:
        is_same = all(map(np.array_equal, expected, found))
    else:
        is_same = np.array_equal(expected[0], found[0])
        is_same &= np.array_equal(expected[1] == -9999, found[1] == -9999)
    return unless(is_same)


WORKS = tuple(
    Work(
        name=f"{title}, {count} sources",
        graph=graph,
        size=count,
        case=partial(matrix_of, graph=graph),
        peers={library: prepare(library, title, count) for library in LIBRARIES},
        check=partial(differences, title),
        facts=lambda matrix: {"vertices": matrix.shape[0], "edges": int(matrix.nnz)},
    )
    for graph in GRAPHS
    for count, own in SOURCES.items()
    for title in (*CALLS, own)
)
