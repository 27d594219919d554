"""Certify integer distances that reach 2^53 or more on the host: sums in int64, one source at a
time.

An unreached vertex has the distance 2^63 - 1. A sum that overflows int64 is longer than every
distance.
"""

from __future__ import annotations

import numpy as np

from .._arrays import MAX_INTEGER, as_distance, to_host
from ..cpu.compiled import njit
from ..cpu.edges import Edges
from .batch import NOTHING


def check_distances(graph, sources, distances, limits) -> np.ndarray:
    """Check distances from many sources without predecessors, by the rules C1 to C5.

    ``sources`` are int64 vertex numbers. ``distances`` are int64 of shape (n_sources, n_vertices),
    on either device; ``limits`` has one per source, None where there is none. Return an int64 array
    of shape (5, 3): per rule the number of violations, and the position of the source and the
    vertex of an example.
    """
    host = graph.derived.sums_in("int64").to("cpu")  # the same graph with int64 weights
    edges = Edges.of(host)
    has_negative = graph.has_negative_weights
    findings = NOTHING.copy()
    for i, (source, limit) in enumerate(zip(sources.tolist(), limits, strict=True)):
        # the largest int64 within the limit; without one the largest that is not "unreached"
        bound = as_distance(limit, np.dtype(np.int64))
        row_findings = _check(edges, source, to_host(distances[i]), bound, has_negative)
        for rule, (count, vertex) in enumerate(row_findings.tolist()):
            if count and not findings[rule, 0]:
                findings[rule, 1:] = i, vertex
            findings[rule, 0] += count
    return findings


def wrong_predecessors(graph, result) -> np.ndarray:
    """Return the vertices of a ``Traversal`` whose predecessor is missing or has no edge that
    explains their distance: vertex numbers, ascending.
    """
    host = graph.derived.sums_in("int64").to("cpu")  # the same graph with int64 weights
    distance = to_host(result.distance)
    predecessor = to_host(result.predecessor)
    return np.flatnonzero(_unexplained(Edges.of(host), distance, predecessor, result.source))


@njit
def _note(findings, rule, vertex):
    """Count a violation of a rule, 0 to 4 for C1 to C5, with a vertex as an example."""
    findings[rule, 0] += 1
    findings[rule, 1] = vertex


@njit(cache=True)
def _check(edges, source, distance, limit, has_negative):
    """Return the number of violations and an example vertex for each rule, int64 of shape (5, 2).

    ``edges`` are ``Edges`` with int64 weights. ``distance``, from the vertex ``source``, is int64
    of shape (n,), the largest integer where unreached, and complete up to ``limit``. With
    ``has_negative``, a weight is negative. C3 to C5 are checked only if C1 and C2 hold.
    """
    findings = np.zeros((5, 2), np.int64)
    n = distance.size
    # C1, and C2: the smallest distance that there may be, and the limit.
    lowest = np.int64(0)
    if has_negative:  # searches refuse graphs whose weights add up to 2^62 or more
        lowest = np.int64(-(2**62))
    if distance[source] != 0:
        _note(findings, 0, source)
    for v in range(n):
        if distance[v] != MAX_INTEGER and (distance[v] > limit or distance[v] < lowest):
            _note(findings, 1, v)
    if findings[0, 0] or findings[1, 0]:
        return findings

    # True in ``is_tight``: an edge explains the distance. True in ``is_founded``: an edge from a
    # strictly nearer vertex does, or a chain of edges that begins with such a one, or it is the
    # source.
    is_tight = np.zeros(n, np.bool_)
    is_founded = np.zeros(n, np.bool_)
    is_founded[source] = True
    _look_at_edges(edges, distance, limit, has_negative, (is_tight, is_founded), findings)
    _extend_chains(edges, distance, is_founded)
    for v in range(n):
        if v == source or distance[v] == MAX_INTEGER:
            continue
        if not is_tight[v]:
            _note(findings, 3, v)
        elif not is_founded[v]:
            _note(findings, 4, v)
    return findings


@njit
def _look_at_edges(edges, distance, limit, has_negative, marks, findings):
    """Note each edge that allows a shorter distance (C3) in ``findings``, and mark the vertices
    whose distance an edge explains.

    ``marks``: two bool arrays of shape (n,), output. True in the first: an edge explains the
    distance of the vertex. True in the second: an edge from a strictly nearer vertex does. With
    negative weights nearer vertices may form a cycle, so that the second stays as it is. The other
    arguments are those of ``_check``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    is_tight, is_founded = marks
    for u in range(distance.size):
        if distance[u] == MAX_INTEGER:
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            # A sum that overflows int64 shortens nothing and explains nothing.
            if weights[e] > 0 and distance[u] >= MAX_INTEGER - weights[e]:
                continue
            candidate = distance[u] + weights[e]
            if candidate < distance[v] and candidate <= limit:
                _note(findings, 2, v)
            if candidate == distance[v]:
                is_tight[v] = True
                is_founded[v] |= distance[u] < distance[v] and not has_negative


@njit
def _extend_chains(edges, distance, is_founded):
    """Mark in ``is_founded``, bool of shape (n,), all vertices that a chain of edges reaches from
    one that is marked, if each edge explains the distance of its head. It is a breadth-first
    search.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    queue = np.flatnonzero(is_founded)
    size = queue.size
    queue = np.append(queue, np.empty(distance.size - size, np.int64))
    head = 0
    while head < size:
        u = queue[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if is_founded[v] or distance[v] == MAX_INTEGER:
                continue
            if distance[v] - distance[u] == weights[e]:
                is_founded[v] = True
                queue[size] = v
                size += 1


@njit(cache=True)
def _unexplained(edges, distance, predecessor, source):
    """Return which vertices have a wrong predecessor, bool of shape (n,).

    A reached vertex is wrong if it has no predecessor, or no edge from this explains its distance.
    An unreached vertex, with the distance MAX_INTEGER, is wrong if it has a predecessor. The
    predecessor of ``source`` must be ``source`` itself.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    n = distance.size
    # All that have a predecessor are wrong until an edge from it explains their distance.
    wrong = np.zeros(n, np.bool_)
    for v in range(n):
        p = predecessor[v]
        if v == source:
            wrong[v] = p != source
        else:
            wrong[v] = p >= 0 or distance[v] != MAX_INTEGER

    for u in range(n):
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            are_reached = distance[u] != MAX_INTEGER and distance[v] != MAX_INTEGER
            if (
                predecessor[v] == u
                and v != source
                and are_reached
                and distance[v] - distance[u] == weights[e]
            ):
                wrong[v] = False
    return wrong
