"""Slow, obvious algorithms in plain Python. Nothing here imports the package under test."""

import heapq
import math
from collections import deque

import numpy as np


def edges_of(rows, directed=True):
    """Rows (u, v[, w]) as a dict of dicts: minimum over parallel edges, no self-loops, both ways unless directed."""
    neighbors: dict = {}
    for u, v, *w in rows:
        weight = w[0] if w else 1
        for a, b in ((u, v),) if directed else ((u, v), (v, u)):
            neighbors.setdefault(a, {})
            neighbors.setdefault(b, {})
            if a != b:
                neighbors[a][b] = min(weight, neighbors[a].get(b, weight))
    return neighbors


def bfs(neighbors, source):
    """Hops from the source to every vertex that can be reached."""
    hops = {source: 0}
    queue = deque([source])
    while queue:
        u = queue.popleft()
        for v in neighbors[u]:
            if v not in hops:
                hops[v] = hops[u] + 1
                queue.append(v)
    return hops


def dijkstra(neighbors, source, kind=np.float32):
    """Distances by a heap, every sum rounded once in ``kind``."""
    distance = {source: kind(0)}
    heap = [(kind(0), source)]
    done = set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in done:
            continue
        done.add(u)
        for v, w in neighbors[u].items():
            through = kind(d + kind(w))
            if v not in distance or through < distance[v]:
                distance[v] = through
                heapq.heappush(heap, (through, v))
    return distance


def bellman_ford(neighbors, source, kind=np.float64):
    """Distances with negative weights, or None if a negative cycle can be reached."""
    distance = {source: kind(0)}
    for _ in range(len(neighbors) + 1):
        changed = False
        for u in list(distance):
            for v, w in neighbors[u].items():
                through = kind(distance[u] + kind(w))
                if v not in distance or through < distance[v]:
                    distance[v] = through
                    changed = True
        if not changed:
            return distance
    return None


def canonical_search(edges, source, closed=()):
    """Distances and canonical predecessors by positive weights, one per (u, v); no path leads through a closed vertex."""
    out = {}
    for (u, v), weight in edges.items():
        out.setdefault(u, []).append((v, weight))
    distance = {source: 0}
    heap = [(0, source)]
    done = set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in done or (u in closed and u != source):
            continue
        done.add(u)
        for v, weight in out.get(u, ()):
            if d + weight < distance.get(v, math.inf):
                distance[v] = d + weight
                heapq.heappush(heap, (d + weight, v))
    before = {source: source}
    for (u, v), weight in edges.items():
        may_pass = u == source or u not in closed
        if v != source and may_pass and u in distance and distance[u] + weight == distance[v]:
            before[v] = min(u, before.get(v, u))
    return distance, before


def walk_back(before, target):
    """The path to a target, along predecessors."""
    path = [target]
    while before[path[-1]] != path[-1]:
        path.append(before[path[-1]])
    return path[::-1]
