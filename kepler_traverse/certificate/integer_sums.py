"""Certify integer distances that reach 2^53 or more on the host: sums in int64, one source at a time.

An unreached vertex has the distance 2^63 - 1. A sum that overflows int64 is longer than every distance.
"""

from __future__ import annotations

import numpy as np

from .._arrays import MAX_INTEGER, as_distance, to_host
from ..cpu.compiled import njit
from .batch import NOTHING


def check_distances(graph, sources, distances, limits) -> np.ndarray:
    """As ``batch.check_distances``; ``distances`` are int64 of shape (n_sources, n_vertices), on either device."""
    host = graph.derived.sums_in("int64").to("cpu")
    edges = (host.offsets, host.targets, host.weights)
    every = NOTHING.copy()
    for i, (source, limit) in enumerate(zip(sources.tolist(), limits, strict=True)):
        bound = as_distance(np.inf if limit is None else limit, np.dtype(np.int64))
        findings = _check(*edges, source, to_host(distances[i]), bound, graph.has_negative_weights)
        for rule, (count, vertex) in enumerate(findings.tolist()):
            if count and not every[rule, 0]:
                every[rule, 1:] = i, vertex
            every[rule, 0] += count
    return every


def wrong_predecessors(graph, result) -> np.ndarray:
    """Return the vertices whose predecessor is missing or has no edge that explains their distance."""
    host = graph.derived.sums_in("int64").to("cpu")
    arrays = (host.offsets, host.targets, host.weights, to_host(result.distance), to_host(result.predecessor))
    return np.flatnonzero(_unexplained(*arrays, result.source))


@njit
def _note(findings, rule, vertex):
    findings[rule, 0] += 1
    findings[rule, 1] = vertex


@njit(cache=True)
def _check(offsets, targets, weights, source, distance, limit, negative):
    """Return the number of violations and an example vertex for each rule."""
    findings = np.zeros((5, 2), np.int64)
    n, lowest = distance.size, np.int64(-(2**62))
    if distance[source] != 0:
        _note(findings, 0, source)
    for v in range(n):
        d = distance[v]
        if d != MAX_INTEGER and (d > limit or d < (lowest if negative else 0)):
            _note(findings, 1, v)
    if findings[0, 0] or findings[1, 0]:
        return findings
    is_tight = np.zeros(n, np.bool_)  # whether an edge explains the distance
    is_founded = np.zeros(n, np.bool_)  # whether one from a strictly nearer vertex does, or a chain of edges from such a one
    is_founded[source] = True
    for u in range(n):
        if distance[u] == MAX_INTEGER:
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v, w = targets[e], weights[e]
            if w > 0 and distance[u] >= MAX_INTEGER - w:
                continue
            through = distance[u] + w
            if through < distance[v] and through <= limit:
                _note(findings, 2, v)
            is_tight[v] |= through == distance[v]
            is_founded[v] |= through == distance[v] and distance[u] < distance[v] and not negative
    queue = np.flatnonzero(is_founded)
    size, at = queue.size, 0
    queue = np.append(queue, np.empty(n - size, np.int64))
    while at < size:
        u = queue[at]
        at += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if distance[v] != MAX_INTEGER and distance[v] - distance[u] == weights[e] and not is_founded[v]:
                is_founded[v] = True
                queue[size] = v
                size += 1
    for v in range(n):
        if v != source and distance[v] != MAX_INTEGER:
            if not is_tight[v]:
                _note(findings, 3, v)
            elif not is_founded[v]:
                _note(findings, 4, v)
    return findings


@njit(cache=True)
def _unexplained(offsets, targets, weights, distance, predecessor, source):
    n = distance.size
    wrong = np.zeros(n, np.bool_)
    for v in range(n):
        p = predecessor[v]
        wrong[v] = v != source and (p >= 0) != (distance[v] != MAX_INTEGER)
        if v == source:
            wrong[v] = p != source
        elif p >= 0:
            wrong[v] = True
    for u in range(n):
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            are_reached = distance[u] != MAX_INTEGER and distance[v] != MAX_INTEGER
            if predecessor[v] == u and v != source and are_reached and distance[v] - distance[u] == weights[e]:
                wrong[v] = False
    return wrong
