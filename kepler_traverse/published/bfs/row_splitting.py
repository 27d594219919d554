"""Splits long adjacency lists into edge chunks, so that threads which take one each have nearly
equal work.

Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010, section 4: "when
handling very irregular graphs, we first converted them into near-regular graphs by splitting the
big-degree nodes", once for many searches. The paper does not say how distances stay right. Here the
chunks of a vertex are consecutive, and an edge still leads to the vertex. The thread that reaches
the vertex queues all of its chunks. No edge is added, so no path becomes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Array, namespace
from ...errors import StrategyError


@dataclass(frozen=True, eq=False)
class EdgeChunks:
    """The adjacency lists of a graph in edge chunks. The targets stay as they are."""

    # int64 array of shape (n_vertices + 1,): chunks of vertex v are ``first[v]`` to ``first[v + 1]
    # - 1``, at least one.
    first: Array
    owner: Array  # array of shape (n_chunks,), of the targets' type: the vertex of each chunk
    # int64 array of shape (n_chunks + 1,): edges of chunk c are ``targets[offsets[c]:offsets[c +
    # 1]]``
    offsets: Array


def split(graph, max_edges: int) -> EdgeChunks:
    """Split adjacency lists into chunks of at most ``max_edges`` edges, on the graph's device.

    Parameters
    ----------
    graph : Graph
    max_edges : int
        Edges of a chunk; the last one of a list may have fewer. An empty list is one empty chunk.

    Returns
    -------
    EdgeChunks

    Raises
    ------
    StrategyError
        There are more chunks than the type of the targets can number.
    """
    xp = namespace(graph.offsets)
    n = graph.n_vertices
    index = graph.targets.dtype
    first = xp.zeros(n + 1, np.int64)
    # A list has one chunk at least, so that each vertex can be queued as its chunks.
    first[1:] = xp.cumsum(xp.maximum(-(-graph.derived.degrees // max_edges), 1))
    n_chunks = int(first[n])
    if n_chunks > np.iinfo(index).max:
        raise StrategyError(
            f"adjacency lists in chunks of {max_edges} edges make {n_chunks} chunks, more than type {index} can number; "
            "choose longer chunks"
        )
    chunks = xp.arange(n_chunks, dtype=np.int64)
    # the last vertex whose first chunk is this one or an earlier one
    owner = xp.searchsorted(first, chunks, side="right") - 1
    offsets = xp.empty(chunks.size + 1, np.int64)
    offsets[:-1] = graph.offsets[owner] + (chunks - first[owner]) * max_edges
    offsets[-1:] = graph.offsets[-1:]
    return EdgeChunks(first, owner.astype(index), offsets)
