"""The k nearest sources of each vertex by one search from all of them on a GPU; the same as
``k_nearest_cpu``.

Rounds merge the labels of in-neighbors into the k labels of each vertex until none changes; see
k_nearest.cu. A label is the sum of weights of a path from its source, so it is never below the
distance. Let s be one of the k nearest sources of v, and u the vertex before v on a shortest path
from s. Were k sources nearer to u than s, or as near with smaller positions, then they would be so
for v, too. So s is one of the k nearest sources of u. By induction the label of s reaches v and
stays: only labels of sources that are nearer, or as near with smaller positions, could take its
place. So the labels at the end depend on the graph alone.

A round reads the flags of all in-neighbors, which is one byte per edge. There are as many rounds as
the longest shortest path of a label has edges, and one more. The host reads the number of changes
once per several rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import MAX_INTEGER, Array
from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.kernel_spec import Entry
from ..cuda.launch import launch

if TYPE_CHECKING:
    from ..graph import Graph

BLOCK = 256  # threads per block
# Rounds between two reads of the number of changes, each of which waits for the GPU. Rounds after
# the last change do nothing.
ROUNDS_AT_ONCE = 8

_FILE = Path(__file__).parent / "kernels" / "k_nearest.cu"
_MERGE = Entry("k_nearest_merge", _FILE, BLOCK)
ENTRIES = (_MERGE,)


def k_nearest(
    graph: Graph, weights: Array | None, sources: np.ndarray, k: int, limit: int
) -> tuple[Any, ...]:
    """Return the distances and the positions of the k nearest sources of each vertex, int64 CuPy
    arrays of shape (n_vertices, k), as ``k_nearest_cpu.k_nearest`` does.

    Where there is no source, the position is -1 as there, but the distance is the largest int64.
    ``sources`` are vertex numbers, ascending; farther distances than ``limit`` are left out.

    ``weights``: int64, of the edges of the reverse graph, which is made if it is not there yet;
    None counts hops.
    """
    n = graph.n_vertices
    reverse = graph.reverse

    # Two sets of labels: k distances and k positions of sources per vertex, where there is no
    # source the largest int64 and -1. Each round reads one set and writes the other. ``changed``,
    # uint8, is not 0 at vertices that got other labels in the last round.
    labels = [
        (cp.full(n * k, MAX_INTEGER, np.int64), cp.full(n * k, -1, np.int32), cp.zeros(n, np.uint8))
        for _ in range(2)
    ]
    distance, source, changed = labels[0]
    distance[cp.asarray(sources * k)] = 0
    source[cp.asarray(sources * k)] = cp.arange(sources.size, dtype=np.int32)
    changed[cp.asarray(sources)] = 1

    merge = kernel(_MERGE, reverse.targets.dtype)
    same_args = {
        "offsets": reverse.offsets,
        "neighbors": reverse.targets,
        "weights": weights,
        "n_vertices": np.int64(n),
        "k": np.int64(k),
        "limit": np.int64(limit),
    }
    while True:
        for _ in range(ROUNDS_AT_ONCE):
            # a counter per round: the host reads the counter of the last round alone
            n_changed = cp.zeros(1, np.int64)
            old = dict(zip(("distance", "source", "changed"), labels[0], strict=True))
            new = dict(zip(("new_distance", "new_source", "new_changed"), labels[1], strict=True))
            launch(merge, n, {**same_args, **old, **new, "n_changed": n_changed})
            labels.reverse()
        if not int(n_changed.get()[0]):
            break

    distance, source, _ = labels[0]
    return distance.reshape(n, k), source.reshape(n, k).astype(np.int64)


def bytes_needed(n_vertices: int, n_edges: int, k: int, weighted: bool) -> int:
    """Return the bytes that ``k_nearest`` takes on a GPU at most, in addition to the graph and its
    reverse. ``n_vertices`` and ``n_edges`` are of the graph, and ``k`` is the number of labels per
    vertex. ``weighted`` says whether weights are read, of which there is an int64 copy.
    """
    # Per label there are two sets of a distance and a source, and the source that is returned. Per
    # vertex there are 2 flags, one per set: whether its labels have changed.
    bytes_per_label = 2 * (8 + 4) + 8
    return n_vertices * (k * bytes_per_label + 2) + 8 * n_edges * weighted
