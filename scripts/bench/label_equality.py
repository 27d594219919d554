"""Compare hub labels with ``sssp_pairs`` over the hierarchy, by integers, on as many random pairs as are asked for.

``python -m scripts.bench.label_equality EDGES [--pairs 1000000] [--weights SEED]`` reads an undirected edge list, or gives
one without weights random ones from 1 to 10,000, builds labels, proves them, and prints a JSON object. Each random origin
has 100 random destinations, and 10,000 further pairs have an origin each. An assertion fails at the first difference.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import numpy as np

from kepler_traverse import certify, read_graph, sssp_pairs, with_weights
from kepler_traverse.graph import Graph

_PER_ORIGIN = 100
_ALONE = 10_000
_HEAVIEST = 10_000


def read(path: str, seed: int | None) -> Graph:
    """Return the graph of an edge list, with random weights if a seed is given."""
    graph = read_graph(path, directed=False, device="cpu", weighted=seed is None)
    if seed is None:
        return graph
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    keys = rng.integers(0, 2**32, graph.n_vertices, dtype=np.uint64)
    mixed = keys[src] ^ keys[graph.targets]  # the same in both directions of an edge
    return with_weights(graph, (mixed % _HEAVIEST + 1).astype(np.int64), per="edge")


def compare(graph: Graph, n_pairs: int) -> dict[str, Any]:
    """Return how many pairs were equal, and what else was found on the way."""
    rng = np.random.default_rng(0)
    n = graph.n_vertices
    origins = np.repeat(rng.integers(0, n, n_pairs // _PER_ORIGIN), _PER_ORIGIN)
    sources = np.concatenate([origins, rng.integers(0, n, _ALONE)])
    targets = rng.integers(0, n, sources.size)
    began = time.perf_counter()
    graph.hierarchy()
    over_hierarchy = [
        sssp_pairs(graph, graph.ids_at(sources[part]), graph.ids_at(targets[part]))
        for part in (slice(0, origins.size), slice(origins.size, None))
    ]
    searched = time.perf_counter()
    labels = graph.labels()
    built = time.perf_counter()
    certificate = certify(graph, labels)
    certificate.require()
    proved = time.perf_counter()
    sums = labels.between(sources, targets)
    columns = [frame["distance"] for frame in over_hierarchy]
    is_missing = np.concatenate([column.isna() for column in columns])
    expected = np.concatenate([column.fillna(0).to_numpy(np.int64) for column in columns])
    assert np.array_equal(sums == labels.unreached, is_missing)
    assert np.array_equal(sums[~is_missing], expected[~is_missing])
    return {
        "vertices": n,
        "hubs per vertex": round(labels.hubs_per_vertex, 1),
        "rows": labels.rows,
        "MiB": round(labels.nbytes / 2**20),
        "equal pairs": int(sums.size),
        "pairs without a path": int(is_missing.sum()),
        "origins": int(np.unique(sources).size),
        "hierarchy and its pairs, s": round(searched - began, 1),
        "labels, s": round(built - searched, 1),
        "certificate, s": round(proved - built, 1),
        "proved": list(certificate.proved),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("edges")
    command.add_argument("--pairs", type=int, default=1_000_000)
    command.add_argument("--weights", type=int, metavar="SEED")
    given = command.parse_args()
    print(json.dumps(compare(read(given.edges, given.weights), given.pairs), indent=1))
