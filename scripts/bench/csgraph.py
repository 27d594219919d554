"""``kepler_traverse.csgraph`` compared with ``scipy.sparse.csgraph`` on the CPU, in one process.

Both libraries get the same CSR matrix with float64 weights 1 to 255 and make the same call; the matrix is read anew in each.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from scripts.measure.work import OURS, Call, Inputs, Prepare, Work

PACKAGES = ("scipy",)
# name: (file, directed)
GRAPHS = {
    "USA-road-NY": ("USA-road-NY-topology", False),
    "luxembourg_osm": ("luxembourg_osm", False),
    "soc-Slashdot0902": ("soc-Slashdot0902", True),
    "dblp-2010": ("dblp-2010", False),
}
SOURCES = (1, 32, 256)
LIBRARIES = {OURS: "kepler_traverse.csgraph", "SciPy": "scipy.sparse.csgraph"}
# Function and arguments by title; the last two are for one source, and for several.
CALLS: dict[str, tuple[str, dict[str, bool]]] = {
    "dijkstra": ("dijkstra", {}),
    "dijkstra, return_predecessors=True": ("dijkstra", {"return_predecessors": True}),
    "dijkstra, unweighted=True": ("dijkstra", {"unweighted": True}),
    "breadth_first_order": ("breadth_first_order", {}),
    "dijkstra, min_only=True": ("dijkstra", {"min_only": True}),
}


@lru_cache(1)
def matrix_of(inputs: Inputs, graph: str) -> Any:
    """Return the matrix of an edge list, in both directions if undirected, so that both libraries search the same edges."""
    import pandas
    import scipy.sparse

    from pipelines.comparison import hashed_weights

    file, directed = GRAPHS[graph]
    frame = pandas.read_parquet(inputs.file(file), columns=["src", "dst"])
    ends = np.concatenate([frame["src"].to_numpy(), frame["dst"].to_numpy()])
    ids, numbers = np.unique(ends, return_inverse=True)
    src, dst = np.split(numbers, 2)
    weight = hashed_weights(src, dst, directed).astype(np.float64)
    if not directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
        weight = np.tile(weight, 2)
    _, first = np.unique(src * ids.size + dst, return_index=True)
    ends = src[first], dst[first]
    return scipy.sparse.csr_array((weight[first], ends), shape=(ids.size, ids.size))


def prepare(library: str, title: str, count: int) -> Prepare:
    """Return the function that prepares a call of a library from a number of random vertices with edges."""
    name, options = CALLS[title]

    def of(matrix: Any) -> Call:
        candidates = np.flatnonzero(np.diff(matrix.indptr))
        sources = np.random.default_rng(1).permutation(candidates)[:count]
        indices = int(sources[0]) if count == 1 else sources
        call = getattr(import_module(LIBRARIES[library]), name)
        if name == "breadth_first_order":
            return partial(call, matrix, indices, **options)
        return partial(call, matrix, True, indices, **options)

    return of


def differences(title: str, expected: Any, found: Any) -> str:
    """Compare two results; of predecessors of ``dijkstra``, which SciPy leaves open, whether they are there."""
    if not isinstance(expected, tuple):
        is_same = expected.dtype == found.dtype and np.array_equal(expected, found)
    elif title == "breadth_first_order":
        is_same = all(map(np.array_equal, expected, found))
    else:
        is_same = np.array_equal(expected[0], found[0])
        is_same &= np.array_equal(expected[1] == -9999, found[1] == -9999)
    if is_same:
        return ""
    return "the results differ"


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
    for count in SOURCES
    for title in CALLS
    if title != ("dijkstra, min_only=True" if count == 1 else "breadth_first_order")
)
