"""Certificates of hub labels: proofs over the whole of them, and certificates of what they answer
from some vertices to all others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import InputError
from ..graph import Graph
from ..hub_labels.arrays import HubLabels
from ..hub_labels.proofs import find_fault

_BLOCK = 1 << 24  # distances that are certified at a time
_SAMPLE = 8  # vertices at random, and as many of the busiest hubs
PROVED = (
    "every row is the length of a path, by a row of a vertex above it and shortcuts that are sums of "
    "edges",
    "every row is the distance between its vertex and its hub",
    "the answer for every pair is its distance, by what every edge and shortcut allows",
)


def sampled_sources(graph: Graph, labels: HubLabels) -> np.ndarray:
    """Return the vertices from which answers are certified: the busiest hubs and some at random."""
    n = labels.n_vertices
    rows = np.bincount(labels.inward.hubs, minlength=n)
    busiest = labels.order[np.argsort(-rows, kind="stable")[:_SAMPLE]]
    seed = int(graph.fingerprint[:15], 16)
    drawn = np.random.default_rng(seed).integers(0, n, min(_SAMPLE, n))
    return np.unique(np.concatenate([busiest, drawn])).astype(np.int64)


def describe_sample(sources: np.ndarray) -> str:
    return (
        f"answers from {sources.size} vertices, of them {min(_SAMPLE, sources.size)} the busiest "
        "hubs, to all vertices, by a certificate over the edges of the graph alone; and the columns "
        "of these hubs"
    )


def prove_labels(graph: Graph, labels: HubLabels) -> dict[str, str]:
    """Return what is wrong with labels, by rule; see ``hub_labels.proofs``."""
    if labels.n_vertices != graph.n_vertices:
        raise InputError(
            f"the labels have {labels.n_vertices:,} vertices and the graph {graph.n_vertices:,}: "
            "they are those of another graph"
        )
    fault = find_fault(graph, graph.hierarchy(labels.metric), labels)
    if fault is None:
        return {}
    where = ""
    if fault.vertex >= 0:
        where = f"vertex {graph.ids_at([fault.vertex])[0]}: "
    return {fault.rule: where + fault.reason}


def answers_to_all(
    graph: Graph, labels: HubLabels, sources: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield some sources at a time, and the distances that labels answer from them to all vertices,
    of shape (sources, n).
    """
    n = graph.n_vertices
    everything = np.arange(n)
    block = max(1, _BLOCK // n)
    for begin in range(0, sources.size, block):
        own = sources[begin : begin + block]
        offsets = np.arange(own.size + 1) * n
        sums = labels.to_lists(own, offsets, np.tile(everything, own.size))
        yield own, labels.to_distances(graph, sums).reshape(own.size, n)


def fault_of_columns(graph: Graph, labels: HubLabels, sources: np.ndarray) -> str:
    """Say which row of some hubs is not what labels answer for its pair; ``""`` if all are."""
    inward = labels.inward
    is_wanted = np.zeros(labels.n_vertices, bool)
    is_wanted[labels.rank[sources]] = True
    at = np.flatnonzero(is_wanted[inward.hubs])
    vertices = labels.order[np.searchsorted(inward.offsets, at, side="right") - 1]
    ends = labels.order[inward.hubs[at]]
    wrong = np.flatnonzero(labels.between(ends, vertices) != inward.distances[at])
    if not wrong.size:
        return ""
    first = wrong[0]
    vertex = graph.ids_at([int(vertices[first])])[0]
    hub = graph.ids_at([int(ends[first])])[0]
    return f"the row of vertex {vertex} and hub {hub} is not their distance"
