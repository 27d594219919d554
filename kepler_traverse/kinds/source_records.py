"""Records that belong to one source each: a summary of its distances, or the number of vertices at each hop count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .._arrays import Array, to_host
from ..graph import Graph
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.results import Traversals
from .distance_stats import DistanceStats, exact_totals, levels_of, summary_of_distances, summary_of_levels

# ``observe(counts, edges, farthest)`` receives the level counts of some sources while they are in memory: an array of shape
# (k, levels) on the graph's device, the stored edges of the vertices reached, and the last level of each source.
Observe = Callable[[Array, np.ndarray, np.ndarray], None]


class SourceRecords(NamedTuple):
    """Records of the sources of one group.

    Attributes
    ----------
    values : dict of str to array of shape (n_records,), NumPy
        The records of each source, one source after the other.
    sizes : int64 array of shape (k,), NumPy
        Number of records of each source.
    figures : DistanceStats or None
        Statistics of weighted distances, if they were computed.
    """

    values: dict[str, np.ndarray]
    sizes: np.ndarray
    figures: DistanceStats | None = None


def join_groups(groups: list[SourceRecords], names: Iterable[str]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Concatenate the values and the sizes of any number of groups.

    Returns
    -------
    dict of str to array, and int64 array of shape (n_sources,), NumPy
    """
    if not groups:
        return {name: np.zeros(0) for name in names}, np.zeros(0, np.int64)
    values = {name: np.concatenate([group.values[name] for group in groups]) for name in names}
    return values, np.concatenate([group.sizes for group in groups])


def summaries_of(graph: Graph, traversals: Traversals, limit: float | None, observe: Observe | None = None) -> SourceRecords:
    """Reduce the distances of each source to ``reached, farthest, total, harmonic``.

    Sums of integer distances are exact.

    Raises
    ------
    PrecisionError
        A sum of integer distances exceeds int64.
    """
    sizes = np.ones(len(traversals), np.int64)
    if ALGORITHMS[traversals.algorithm].counts_hops:
        found = []
        for counts, edges in level_counts_of(graph, traversals, limit):
            found.append(summary_of_levels(counts))
            if observe is not None:
                observe(counts, edges, found[-1][:, 1].astype(np.int64))
        reached, farthest, total, harmonic = np.concatenate(found).T
        return SourceRecords({"reached": reached, "farthest": farthest, "total": total, "harmonic": harmonic}, sizes)
    figures = summary_of_distances(traversals.distance, graph.offsets, limit)
    total = exact_totals(traversals.distance, limit, figures) if graph.integer_weights else figures.total
    values = {"reached": figures.reached, "farthest": figures.farthest, "total": total, "harmonic": figures.harmonic}
    return SourceRecords(values, sizes, figures)


def summary_columns(
    graph: Graph,
    algorithm: str,
    reached: np.ndarray,
    farthest: np.ndarray,
    total: np.ndarray,
    harmonic: np.ndarray,
) -> dict[str, Column]:
    """Columns ``reached, eccentricity, sum, mean, closeness, harmonic``, on the host.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    reached, farthest, total, harmonic : arrays of shape (k,), NumPy
        Per source: vertices reached, largest distance, sum of distances, and sum of the reciprocals of positive
        distances.
    """
    others = reached - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(others > 0, total / others, 0.0)
        fraction = others / max(graph.n_vertices - 1, 1)
        closeness = np.where(total > 0, others / total * fraction, 0.0)
    kind = ALGORITHMS[algorithm].result_dtype(graph)
    return {
        "reached": Column(reached.astype(np.int64)),
        "eccentricity": Column(farthest.astype(kind)),
        "sum": Column(total.astype(np.int64) if kind.kind == "i" else total.astype(np.float64, copy=False)),
        "mean": Column(mean),
        "closeness": Column(closeness),
        "harmonic": Column(harmonic),
    }


def levels_of_sources(
    graph: Graph, traversals: Traversals, limit: float | None, observe: Observe | None = None
) -> SourceRecords:
    """Count the vertices at each hop count, up to the last nonempty level of each source."""
    sizes, vertices = [], []
    for counts, edges in level_counts_of(graph, traversals, limit):
        n_levels, of_levels = trimmed(counts)
        sizes.append(n_levels)
        vertices.append(of_levels)
        if observe is not None:
            observe(counts, edges, n_levels - 1)
    return SourceRecords({"vertices": np.concatenate(vertices)}, np.concatenate(sizes))


def level_columns(sizes: np.ndarray, vertices: np.ndarray) -> dict[str, Column]:
    """Return columns ``distance, vertices``, on the host. ``sizes`` holds the number of levels of each source."""
    return {
        "distance": Column(positions_in_groups(sizes).astype(np.int32)),
        "vertices": Column(vertices.astype(np.int64, copy=False)),
    }


def level_counts_of(graph: Graph, traversals: Traversals, limit: float | None) -> Iterable[tuple[Array, np.ndarray]]:
    """Return level counts and the number of stored edges, for some sources at a time.

    Edges are 0 if the plan returned only counts, which do not identify the vertices.
    """
    if traversals.counts is not None:
        return [(traversals.counts, np.zeros(len(traversals), np.int64))]
    return levels_of(traversals.distance, graph.offsets, limit)


def trimmed(counts: Array) -> tuple[np.ndarray, np.ndarray]:
    """Trim trailing empty levels from counts of vertices at 0, 1, 2, ... hops.

    Returns
    -------
    sizes : int64 array of shape (k,), NumPy
        Number of levels of each source; its last level is not empty.
    vertices : int64 array, NumPy
        The counts of the sources, one after the other.
    """
    counts = to_host(counts)
    sizes = counts.shape[1] - np.argmax(counts[:, ::-1] > 0, axis=1)
    return sizes, counts[np.arange(counts.shape[1]) < sizes[:, None]].astype(np.int64, copy=False)


def positions_in_groups(sizes: np.ndarray) -> np.ndarray:
    """Return the concatenation of ``arange(size)`` for each size."""
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def add_source_column(graph: Graph, numbers: np.ndarray, sizes: np.ndarray, columns: dict[str, Column]) -> dict[str, Column]:
    """Insert the column ``source``, on the host, before the others: the id of each source, once per record."""
    return {"source": Column.of_vertices(graph, np.repeat(numbers, sizes)), **columns}
