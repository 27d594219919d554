"""Network proximity of gene sets: how near a set of drug targets is to the genes of a disease, beside random sets.

    python -m examples.proximity interactome.sif targets.txt disease.txt --random-sets 1000

Two measures of the hops between two sets (Guney, Menche, Vidal, Barabasi, Nature Communications 7, 10331, 2016): ``closest``
is the mean, over the first set, of the hops to the nearest gene of the second; ``mean`` is the mean over all pairs. Each
random set has as many genes as the given one, of equal degrees: each is drawn from a bin of at least ``bin_size`` genes with
the degrees nearest to its own. The z-score says by how many standard deviations the measure is above their mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse import Graph, InputError, KeplerError, bfs, bfs_many, read_graph

BIN_SIZE = 100  # genes of similar degree, at least


class Proximity(NamedTuple):
    """A measure of two sets, and of the random ones in their place."""

    value: float
    mean: float  # of the random sets
    std: float
    z: float  # NaN where all random sets have the same value


def proximity(
    graph: Graph,
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    n_random: int = 1000,
    bin_size: int = BIN_SIZE,
    seed: int = 0,
) -> dict[str, Proximity]:
    """Return ``closest`` and ``mean`` of two sets of genes.

    Parameters
    ----------
    graph : Graph
        Undirected, and connected: see ``largest_component``.
    first, second : sequence of ids
        Each gene once; the sets may share genes.
    n_random : int
        Pairs of random sets, 2 or more.
    bin_size : int
        Genes that a random one is drawn from, at least.
    seed : int
        Of the draws. Equal seeds give equal results.
    """
    if graph.directed:
        raise InputError("graph must be undirected: read it with directed=False")
    numbers = [graph.to_numbers(genes, "gene") for genes in (first, second)]
    for name, genes in zip(("first", "second"), numbers, strict=True):
        if not genes.size or np.unique(genes).size < genes.size:
            raise InputError(f"{name} must hold genes, each once")
    if n_random < 2:
        raise InputError(f"n_random must be 2 or more, not {n_random}")
    rng = np.random.default_rng(seed)
    bins = degree_bins(np.diff(graph.to("cpu").offsets), bin_size)
    drawn = [draw_sets(bins, genes, n_random, rng) for genes in numbers]
    hops = _Hops(graph, *(np.unique(np.append(*each)) for each in zip(numbers, drawn, strict=True)))
    values = hops.measures(*numbers)
    random = [hops.measures(*sets) for sets in zip(*drawn, strict=True)]
    return {name: _scored(values[name], [each[name] for each in random]) for name in values}


def degree_bins(degrees: np.ndarray, bin_size: int = BIN_SIZE) -> list[np.ndarray]:
    """Return the vertex numbers of genes of similar degree, in bins of at least ``bin_size``.

    All genes of one degree are in one bin. What is left over joins the last bin.
    """
    order = np.argsort(degrees, kind="stable")
    ends = np.flatnonzero(np.diff(degrees[order], append=-1)) + 1  # of each degree
    cuts = [0]
    for end in ends.tolist():
        if end - cuts[-1] >= bin_size and order.size - end >= bin_size:
            cuts.append(end)
    return [order[begin:end] for begin, end in zip(cuts, [*cuts[1:], order.size], strict=True)]


def draw_sets(
    bins: list[np.ndarray], genes: np.ndarray, n_sets: int, rng: np.random.Generator
) -> np.ndarray:
    """Return sets of as many genes from each bin as a set has, each gene once: a row per set."""
    parts = []
    for members in bins:
        count = int(np.isin(genes, members).sum())
        if count:
            shuffled = rng.permuted(np.tile(members, (n_sets, 1)), axis=1)
            parts.append(shuffled[:, :count])
    return np.concatenate(parts, axis=1)


class _Hops:
    """Hops between all genes that occur, one search per gene of the first sets."""

    def __init__(self, graph: Graph, rows: np.ndarray, columns: np.ndarray):
        self._rows = rows
        self._columns = columns
        found = bfs_many(graph, graph.ids_at(rows), result="matrix", targets=graph.ids_at(columns))
        self._hops = found.get() if hasattr(found, "get") else found
        if (self._hops < 0).any():
            raise InputError("some genes have no path to others; take the largest component")

    def measures(self, first: np.ndarray, second: np.ndarray) -> dict[str, float]:
        places = np.ix_(np.searchsorted(self._rows, first), np.searchsorted(self._columns, second))
        hops = self._hops[places]
        return {"closest": float(hops.min(axis=1).mean()), "mean": float(hops.mean())}


def _scored(value: float, random: list[float]) -> Proximity:
    mean = float(np.mean(random))
    std = float(np.std(random))
    z = (value - mean) / std if std > 0 else float("nan")
    return Proximity(value, mean, std, z)


def largest_component(path: str | Path, **options: Any) -> Graph:
    """Read an undirected network and return its largest connected component."""
    graph = read_graph(path, directed=False, **options)
    waiting = np.ones(graph.n_vertices, bool)
    largest = np.zeros(0, np.int64)
    while waiting.sum() > largest.size:
        start = graph.ids_at([int(waiting.argmax())])
        reached = bfs(graph, start.to_pylist()[0] if graph.has_string_ids else int(start[0]))
        numbers = graph.to_numbers(reached["vertex"])
        waiting[numbers] = False
        if numbers.size > largest.size:
            largest = numbers
    if largest.size == graph.n_vertices:
        return graph
    return read_graph(path, directed=False, only_vertices=graph.ids_at(largest), **options)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", help="a SIF file, or an edge list in another format")
    parser.add_argument("first", help="a text file with a gene per line")
    parser.add_argument("second", help="the same")
    parser.add_argument("--random-sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    try:
        graph = largest_component(given.network)
        sets = [
            [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]
            for path in (given.first, given.second)
        ]
        if not graph.has_string_ids:
            sets = [list(map(int, genes)) for genes in sets]
        found = proximity(graph, *sets, n_random=given.random_sets, seed=given.seed)
    except (KeplerError, OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for name, measure in found.items():
        sys.stdout.write(
            f"{name}: {measure.value:.4f}; random sets {measure.mean:.4f} "
            f"(standard deviation {measure.std:.4f}); z = {measure.z:.2f}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
