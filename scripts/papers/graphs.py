"""The graphs of the papers, read or generated on the device that traverses them, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scripts import make_graphs
from scripts.papers import generators
from scripts.papers.experiments import GraphSource

MARKED_AT_ONCE = 1 << 25  # edges whose sources are looked up at once, to bound the memory


@dataclass
class Made:
    """A graph for hops and one for distances, and a substitute without negative weights for the latter.

    ``shift`` is h: the distance is that of the substitute plus h[source] - h[vertex].
    """

    source: GraphSource
    hops: Any
    weighted: Any
    peer_weighted: Any
    shift: Any = None

    def expected(self, distance: Any, vertex: int) -> Any:
        """Return distances of ``peer_weighted`` from a vertex, converted to the graph's own weights."""
        if self.shift is None:
            return distance
        return distance + (self.shift[vertex] - self.shift).astype(distance.dtype)


def array_module(device: str) -> Any:
    if device == "cpu":
        return np
    from kepler_traverse import cuda

    cuda.require()
    return cuda.cp


def make(source: GraphSource, folder: Path | None, device: str, seed: int) -> Made:
    """Read or generate the edges and build the graphs on the device."""
    from kepler_traverse import graph_from_edges

    xp = array_module(device)
    columns = read_columns(source, folder, xp, seed)
    if len(columns) == 3 and source.max_potential:
        plain = graph_from_edges(*columns, directed=source.directed)
    else:
        hops = graph_from_edges(*columns[:2], directed=source.directed)
        plain = replace(hops, weights=hashed(hops, xp))
    if source.keeps_loops:
        plain = with_self_loops(plain, xp)
    if not source.max_potential:
        return Made(source, replace(plain, weights=None), plain, plain)
    shift = make_graphs.potential(plain.ids, source.max_potential, seed)
    weighted = replace(plain, weights=with_potentials(plain, shift, xp))
    return Made(source, replace(plain, weights=None), weighted, plain, shift)


def path_of(source: GraphSource, folder: Path | None) -> Path:
    path = (folder or Path()) / f"{source.file}.parquet"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is absent; give its folder with --graphs, or other graphs with --only"
        )
    return path


def read_columns(source: GraphSource, folder: Path | None, xp: Any, seed: int) -> tuple:
    """Return the ends of the edges, and weights if the graph has negative ones and its file has any."""
    if source.generator:
        module = generators if hasattr(generators, source.generator) else make_graphs
        generate = getattr(module, source.generator)
        return generate(*source.arguments, seed, xp=xp, rng=make_graphs.Draws(xp, seed))
    import pyarrow.parquet

    path = path_of(source, folder)
    names = ["src", "dst"]
    if source.max_potential and "weight" in pyarrow.parquet.read_schema(path).names:
        names.append("weight")
    table = pyarrow.parquet.read_table(path, columns=names)
    return tuple(xp.asarray(table[name].to_numpy()) for name in names)


def owners(graph: Any, xp: Any, part: slice) -> Any:
    """Return the sources of a slice of the edges."""
    position = xp.arange(part.start, part.stop, dtype=np.int64)
    return xp.searchsorted(graph.offsets, position, side="right") - 1


def parts_of(graph: Any) -> list[slice]:
    firsts = range(0, graph.n_edges, MARKED_AT_ONCE)
    return [slice(first, min(first + MARKED_AT_ONCE, graph.n_edges)) for first in firsts]


def hashed(graph: Any, xp: Any) -> Any:
    """Return weights 1..255, float32, by a hash of the ids of each edge's ends."""
    from pipelines.comparison import hashed_weights

    weights = xp.empty(graph.n_edges, np.float32)
    for part in parts_of(graph):
        src = owners(graph, xp, part)
        weights[part] = hashed_weights(
            graph.ids[src], graph.ids[graph.targets[part]], graph.directed
        )
    return weights


def with_potentials(graph: Any, shift: Any, xp: Any) -> Any:
    """Return the weights w + h[src] - h[dst]: some are negative, and the length of each cycle stays what it is."""
    weights = xp.empty(graph.n_edges, np.float32)
    for part in parts_of(graph):
        added = shift[owners(graph, xp, part)] - shift[graph.targets[part]]
        weights[part] = graph.weights[part] + added.astype(np.float32)
    return weights


def with_self_loops(graph: Any, xp: Any) -> Any:
    """Return the graph with an edge from each vertex to itself, of weight 1, at its place in the sorted adjacency list."""
    n = graph.n_vertices
    loops = xp.arange(n, dtype=graph.targets.dtype)
    offsets = graph.offsets + xp.arange(n + 1, dtype=graph.offsets.dtype)
    # A loop comes after those targets of its own list that are smaller.
    before = xp.zeros(n, np.int64)
    for part in parts_of(graph):
        src = owners(graph, xp, part)
        before += xp.bincount(src[graph.targets[part] < src], minlength=n)
    place_of_loop = offsets[:-1] + before
    is_loop = xp.zeros(graph.n_edges + n, bool)
    is_loop[place_of_loop] = True
    places = xp.flatnonzero(~is_loop)
    targets = xp.empty(graph.n_edges + n, graph.targets.dtype)
    targets[place_of_loop] = loops
    targets[places] = graph.targets
    weights = None
    if graph.weights is not None:
        weights = xp.ones(graph.n_edges + n, graph.weights.dtype)
        weights[places] = graph.weights
    return replace(graph, offsets=offsets, targets=targets, weights=weights)


def statistics_of(made: Made, xp: Any) -> dict:
    """Return sizes, degrees, and a lower bound of the diameter, by two searches.

    ``degrees``: how many vertices have 0, 1, 2 to 3, 4 to 7, ... edges.
    """
    from kepler_traverse import plan_bfs

    graph = made.hops
    degrees = xp.diff(graph.offsets)
    search = plan_bfs(graph, predecessors=False)
    vertex = int(degrees.argmax())
    depth = 0
    for _ in range(2):
        distance = xp.where((found := search.run(vertex)).reached, found.distance, -1)
        vertex = int(distance.argmax())
        depth = max(depth, int(distance.max()))
    powers = xp.asarray(2 ** np.arange(48, dtype=np.int64))
    classes = xp.searchsorted(powers, degrees.astype(np.int64), side="right")
    n_loops = sum(
        int((graph.targets[part] == owners(graph, xp, part)).sum()) for part in parts_of(graph)
    )
    return {
        "origin": made.source.origin,
        "directed": bool(graph.directed),
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "self_loops": n_loops,
        "mean": round(float(degrees.mean()), 2),
        "deviation": round(float(degrees.std()), 2),
        "median": float(xp.median(degrees)),
        "largest": int(degrees.max()),
        "diameter": depth,
        "degrees": [int(count) for count in xp.bincount(classes)],
    }
