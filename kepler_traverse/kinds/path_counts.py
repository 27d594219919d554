"""Certify counts of shortest paths and dependencies of one source (Brandes 2001), by given
distances.

An edge (u, v) of weight w is on a shortest path if d(u) + w == d(v). Weights are above 0, so these
edges have no cycle, and two recurrences have one solution: the paths to v are the sum of those to
its predecessors u, and what u carries is the sum over its successors v of paths(u) / paths(v) * (1
+ what v carries). Both are checked at each vertex, in NumPy and without the kernels: of the ratios
paths(u) / paths(v) into a vertex the sum is 1. With distances that are certified, this proves the
counts and what each vertex carries for this source, but for rounding. It does not prove the sum
over all sources.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ..cpu.betweenness import Exact
from ..errors import CertificateError
from ..graph import Graph
from .records import format_ids

_TOLERANCE = 1e-10  # relative; a list of a million edges rounds by less


class PathCounts(NamedTuple):
    """The shortest paths from one source, per vertex.

    Attributes
    ----------
    paths, exponents : float64 and int64 arrays of shape (n_vertices,)
        There are ``paths * 2**exponents`` shortest paths to a vertex that is reached. Numbers of
        paths may exceed float64.
    carried : float64 array of shape (n_vertices,)
        What the vertex carries: its dependency, without paths that end at it; 0 at the source.
    """

    paths: np.ndarray
    exponents: np.ndarray
    carried: np.ndarray


def require_path_counts(
    graph: Graph,
    source: int,
    distance: np.ndarray,
    limit: Any,
    counts: PathCounts,
    is_target: np.ndarray | None = None,
    exact: Exact | None = None,
) -> None:
    """Check the counts of paths in a graph in host memory, and what each vertex carries;
    CertificateError if they are wrong.

    Parameters
    ----------
    graph : Graph
        In host memory.
    source : int
        Vertex number.
    distance : int32, int64, float32 or float64 array of shape (n_vertices,)
        Hops are int32.
    limit : scalar of that type
        Vertices beyond it are not reached, and those below 0.
    counts : PathCounts
        What is checked.
    is_target : uint8 array of shape (n_vertices,), or empty, optional
        Where not 0, paths that end at the vertex count; by default all do. The source itself never
        does.
    exact : Exact, optional
        Distances without rounding, which are checked, too; paths are then the shortest by these.

    Raises CertificateError.
    """
    paths, exponents, carried = counts
    kind = distance.dtype

    # Find the edges on shortest paths: their lengths make up the distance between their ends, in
    # the type in which the search has added, or without rounding.
    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    distance_of_tail = distance[src]
    distance_of_head = distance[graph.targets]
    if exact is None:
        if kind == np.int32:
            weights = kind.type(1)
        else:
            weights = graph.derived.sums_in(kind.name).weights
        with np.errstate(over="ignore"):
            on_path = distance_of_tail + weights == distance_of_head
        on_path &= (distance_of_tail >= 0) & (distance_of_tail < distance_of_head)
        on_path &= distance_of_head <= limit
    else:
        is_within = (distance_of_tail >= 0) & (distance_of_tail <= limit)
        is_within &= (distance_of_head >= 0) & (distance_of_head <= limit)
        within = np.flatnonzero(is_within)
        on_path = np.zeros(src.size, bool)
        on_path[within] = _are_tight(graph, source, src[within], within, exact)
    src = src[on_path]
    dst = graph.targets[on_path].astype(np.int64)

    # Add up both recurrences: the ratios into each vertex, and what its edges carry.
    ratio = np.ldexp(paths[src] / paths[dst], exponents[src] - exponents[dst])
    reached = np.flatnonzero((distance >= 0) & (distance <= limit))
    ratios_into = np.bincount(dst, ratio, graph.n_vertices)
    # No edge leads to the source on a shortest path. It must have one path, which makes up its 1.
    ratios_into[source] += np.ldexp(paths[source], exponents[source])
    if is_target is None or not is_target.size:
        counts_as_end = np.ones(graph.n_vertices)
    else:
        counts_as_end = is_target.astype(np.float64)
    carried_by_edges = np.bincount(
        src, ratio * (counts_as_end[dst] + carried[dst]), graph.n_vertices
    )
    carried_by_edges[source] = 0.0  # by definition: what leaves the source is no load of it

    for what, actual, expected in (
        ("paths to", ratios_into, np.ones(graph.n_vertices)),
        ("load of", carried_by_edges, carried),
    ):
        error = np.abs(actual[reached] - expected[reached])
        is_right = error <= _TOLERANCE * (1 + np.abs(expected[reached]))
        wrong = reached[~is_right]  # NaN, too
        if wrong.size:
            names = format_ids(graph, wrong[0], source)
            raise CertificateError(
                f"the {what} vertex {names[0]} from source {names[1]} are wrong: "
                f"its edges on shortest paths give {actual[wrong[0]]}, not {expected[wrong[0]]} ({wrong.size} vertices)"
            )


def _are_tight(
    graph: Graph, source: int, src: np.ndarray, edges: np.ndarray, exact: Exact
) -> np.ndarray:
    """Return, for some edges, whether their lengths make up the distances between their ends, by
    sums of Python's integers: a bool array.

    ``edges`` are positions in ``graph.targets``, and ``src`` has the vertex that each leaves. Both
    ends of each are reached. ``exact`` has the distances from ``source`` without rounding.

    Raises CertificateError: an edge shortens an exact distance.
    """
    # the distance of each vertex, put together from words of 64 bits, the lowest first
    words = exact.words.astype(object)
    weights = cast(np.ndarray, graph.weights)
    distances = np.zeros(len(words), object)
    for i in range(words.shape[1]):
        distances += words[:, i] << (64 * i)

    # A weight is an integer of 53 bits in units of 2**(exponent - 53).
    fraction, exponent = np.frexp(weights[edges].astype(np.float64))
    mantissas = np.ldexp(fraction, 53).astype(np.int64).astype(object)
    lengths = mantissas << (exponent - 53 - exact.unit).astype(object)

    sums = distances[src] + lengths
    distances_of_heads = distances[graph.targets[edges]]
    if distances[source] != 0 or (sums < distances_of_heads).any():
        raise CertificateError(
            "an exact distance from source "
            f"{format_ids(graph, source)[0]} is wrong: an edge shortens it"
        )
    return np.asarray(sums == distances_of_heads, bool)
