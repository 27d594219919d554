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


def sample_sources(graph: Graph, labels: HubLabels) -> np.ndarray:
    """Return the vertices from which distances by labels are certified: the hubs that most labels
    have, and some at random; int64 vertex numbers, ascending and distinct.
    """
    n = labels.n_vertices
    # Rows of labels name a hub by its rank, and ``order`` has the vertex of each rank.
    rows_per_hub = np.bincount(labels.inward.hubs, minlength=n)
    busiest = labels.order[np.argsort(-rows_per_hub, kind="stable")[:_SAMPLE]]
    # From the checksum of the graph, in hexadecimal digits, so that it always has the same sample.
    seed = int(graph.fingerprint[:15], 16)
    random_vertices = np.random.default_rng(seed).integers(0, n, min(_SAMPLE, n))
    return np.unique(np.concatenate([busiest, random_vertices])).astype(np.int64)


def describe_sample(sources: np.ndarray) -> str:
    """Return a sentence that says what is certified from a sample of vertices, ``sources``."""
    return (
        f"answers from {sources.size} vertices, of them {min(_SAMPLE, sources.size)} the busiest "
        "hubs, to all vertices, by a certificate over the edges of the graph alone; and the columns "
        "of these hubs"
    )


def prove_labels(graph: Graph, labels: HubLabels) -> dict[str, str]:
    """Return what is wrong with labels: a description by the broken rule, L1 and so on, of
    ``hub_labels.proofs``; an empty dict if they are right.

    Raises InputError: they are labels of another graph.
    """
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
    """Yield some of the sources at a time, as many as bounded memory allows, and the distances that
    labels give from them to all vertices, of shape (k, n).
    """
    n = graph.n_vertices
    # All vertices are the targets of each source: a list per source, one after the other.
    all_vertices = np.arange(n)
    sources_at_a_time = max(1, _BLOCK // n)
    for begin in range(0, sources.size, sources_at_a_time):
        block_sources = sources[begin : begin + sources_at_a_time]
        offsets = np.arange(block_sources.size + 1) * n
        sums = labels.to_lists(block_sources, offsets, np.tile(all_vertices, block_sources.size))
        yield block_sources, labels.to_distances(graph, sums).reshape(block_sources.size, n)


def find_fault_of_columns(graph: Graph, labels: HubLabels, sources: np.ndarray) -> str:
    """Return a text about a row of a label that has a wrong distance; ``""`` if there is none.

    A row of the label of a vertex has a hub and the distance between both. Checked are all rows
    whose hub is one of ``sources``, against the distance that the labels give for the same two
    vertices.
    """
    # Rows name hubs by rank: ``rank`` has the rank of each vertex, ``order`` the vertex of each
    # rank.
    inward = labels.inward
    is_sampled = np.zeros(labels.n_vertices, bool)
    is_sampled[labels.rank[sources]] = True
    # All rows of these hubs, and per row the vertex whose label has it.
    rows = np.flatnonzero(is_sampled[inward.hubs])
    vertices = labels.order[np.searchsorted(inward.offsets, rows, side="right") - 1]
    hubs = labels.order[inward.hubs[rows]]
    wrong = np.flatnonzero(labels.between(hubs, vertices) != inward.distances[rows])
    if not wrong.size:
        return ""
    first = wrong[0]  # position, in ``rows``, of the first row that is wrong
    vertex = graph.ids_at([int(vertices[first])])[0]
    hub = graph.ids_at([int(hubs[first])])[0]
    return f"the row of vertex {vertex} and hub {hub} is not their distance"
