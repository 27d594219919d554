"""Measure the distances of many pairs: ``python -m scripts.bench.pairs EDGES --undirected --pairs 1000000 --origins 10000``.

Prints one JSON object per line. The distances of some origins are compared with those of full searches, which are certified;
the time of these searches is that of the same origins without stopping at targets.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    certify_many,
    plan_bfs_many,
    plan_sssp_many,
    read_graph,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse._arrays import to_host
from kepler_traverse.graph import Graph

_CHECKED = 16  # origins that are compared with full searches


def draw_pairs(
    graph: Graph, n_pairs: int, n_origins: int, seed: int, near: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return vertex numbers of random pairs.

    Parameters
    ----------
    near : int, optional
        Draw each destination among the vertices whose number differs by at most this from that of the origin. In road
        networks these are close, as destinations of trips are.
    """
    rng = np.random.default_rng(seed)
    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    origins = rng.choice(rng.choice(candidates, n_origins, replace=False), n_pairs)
    if near is None:
        return origins, rng.choice(candidates, n_pairs)
    return origins, np.clip(
        origins + rng.integers(-near, near + 1, n_pairs), 0, graph.n_vertices - 1
    )


def measure(
    graph: Graph, algorithm: str, origins: np.ndarray, destinations: np.ndarray, repeats: int
) -> dict[str, Any]:
    """Return the seconds of each run and of full searches of some origins; raise AssertionError if a distance differs."""
    pairs_of, many, plan_of = (
        (bfs_pairs, bfs_many, plan_bfs_many)
        if algorithm == "bfs"
        else (sssp_pairs, sssp_many, plan_sssp_many)
    )
    first, second = ids_at(graph, origins), ids_at(graph, destinations)
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        frame = pairs_of(graph, first, second)
        if graph.device == "cuda":
            frame = frame.to_pandas()
        seconds.append(round(time.perf_counter() - began, 4))
    some = np.unique(origins)[:_CHECKED]
    rows = np.flatnonzero(np.isin(origins, some))
    plan = plan_of(graph, n_sources=some.size)
    for group in plan.iter_groups(some):
        certify_many(graph, group.sources, group.distance).require()
    began = time.perf_counter()
    matrix = to_host(many(graph, ids_at(graph, some), result="matrix"))
    full = time.perf_counter() - began
    expected = matrix[np.searchsorted(some, origins[rows]), destinations[rows]].astype(np.float64)
    expected[(expected < 0) | np.isinf(expected)] = np.nan
    found = frame["distance"].to_numpy(np.float64, na_value=np.nan)[rows]
    if not np.array_equal(found, expected, equal_nan=True):
        raise AssertionError(f"{algorithm}: a distance differs from that of a full search")
    return {
        "algorithm": algorithm,
        "pairs": int(origins.size),
        "origins": int(np.unique(origins).size),
        "seconds": seconds,
        "compared": int(rows.size),
        "full_searches": int(some.size),
        "full_seconds": round(full, 4),
    }


def ids_at(graph: Graph, numbers: np.ndarray) -> Any:
    """Return the ids of vertices in host memory."""
    ids: Any = graph.ids
    return graph.ids_at(numbers) if graph.has_string_ids else to_host(ids)[numbers]


def main() -> None:
    """Read the graph and print the measurements."""
    parser = argparse.ArgumentParser(description="Measure the distances of many pairs.")
    parser.add_argument("edges", nargs="+")
    parser.add_argument("--undirected", action="store_true")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--algorithm", default="sssp", choices=("bfs", "sssp"))
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--origins", type=int, default=10_000)
    parser.add_argument(
        "--near", type=int, help="largest difference of the vertex numbers of a pair"
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--hierarchy",
        action="store_true",
        help="build the hierarchy of the graph first; it is not timed",
    )
    given = parser.parse_args()
    graph = read_graph(given.edges, directed=not given.undirected, device=given.device)
    built = graph.hierarchy().seconds if given.hierarchy else None
    origins, destinations = draw_pairs(graph, given.pairs, given.origins, given.seed, given.near)
    found = measure(graph, given.algorithm, origins, destinations, given.repeats)
    shape = {
        "device": given.device,
        "vertices": graph.n_vertices,
        "stored_edges": graph.n_edges,
        "near": given.near,
        "hierarchy_seconds": built,
    }
    print(json.dumps(shape | found))


if __name__ == "__main__":
    main()
