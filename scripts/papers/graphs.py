"""The graphs of the suite ``papers``, read or generated on the device that traverses them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scripts import make_graphs
from scripts.papers.experiments import GraphSource

MARKED_AT_ONCE = 1 << 25  # edges whose sources are looked up at once, to bound the memory


@dataclass
class Made:
    """A graph for hops and one for distances, and substitutes if the baseline does not support the latter."""

    source: GraphSource
    hops: object
    weighted: object
    peer_weighted: object  # non-negative weights
    shift: object | None = None  # h: the distance is the baseline's plus h[source] - h[vertex]

    def expected(self, distance, vertex: int):
        """Return the baseline's distances, converted to the graph's own weights."""
        return distance if self.shift is None else distance + (self.shift[vertex] - self.shift).astype(distance.dtype)


def array_module(device: str):
    if device == "cpu":
        return np
    from kepler_traverse import cuda

    cuda.require()
    return cuda.cp


def make(source: GraphSource, folder: Path, device: str, seed: int) -> Made:
    """Read or generate the edges and build the graphs on the device."""
    from kepler_traverse import graph_from_edges

    xp = array_module(device)
    if source.max_potential:
        src, dst, weight = (xp.asarray(column) for column in make_graphs.read_weighted(path_of(source, folder)))
        plain = graph_from_edges(src, dst, weight, directed=source.directed)
        lowered = make_graphs.with_potentials(src, dst, weight, source.max_potential, seed)
        weighted = graph_from_edges(src, dst, lowered, directed=source.directed)
        shift = make_graphs.potential(plain.ids, source.max_potential, seed)
        return Made(source, replace(plain, weights=None), weighted, plain, shift)
    src, dst = edges_of(source, folder, xp, seed)
    hops = graph_from_edges(src, dst, directed=source.directed)
    weighted = replace(hops, weights=hashed(hops, xp))
    return Made(source, hops, weighted, weighted)


def path_of(source: GraphSource, folder: Path) -> Path:
    path = folder / f"{source.file}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"{path} is absent; give its folder with --graphs, or other graphs with --only")
    return path


def edges_of(source: GraphSource, folder: Path, xp, seed: int) -> tuple:
    if source.generator:
        generate = getattr(make_graphs, source.generator)
        return generate(*source.arguments, seed, xp=xp, rng=make_graphs.Draws(xp, seed))
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path_of(source, folder), columns=["src", "dst"])
    return tuple(xp.asarray(table[name].to_numpy()) for name in ("src", "dst"))


def hashed(graph, xp):
    """Weights 1..255, float32, by a hash of the ids of each edge's ends."""
    from pipelines.comparison import hashed_weights

    weights = xp.empty(graph.n_edges, np.float32)
    for first in range(0, graph.n_edges, MARKED_AT_ONCE):
        part = slice(first, min(first + MARKED_AT_ONCE, graph.n_edges))
        position = xp.arange(part.start, part.stop, dtype=np.int64)
        src = xp.searchsorted(graph.offsets, position, side="right") - 1
        weights[part] = hashed_weights(graph.ids[src], graph.ids[graph.targets[part]], graph.directed)
    return weights
