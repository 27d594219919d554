"""Measure hub labels: building, proving, and pairs with an origin of their own each.

``python -m scripts.bench.labels EDGES [--device cuda] [--pairs 1000000] [--pandana]`` reads an undirected edge list with
weights and prints a JSON object. Every answer is compared with ``sssp_pairs`` over the hierarchy before a time is printed,
for the first 10,000 pairs, and with pandana's where it is asked for. Times are seconds of the best of three runs; beside
them is the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kepler_traverse import certify, cuda, read_graph, sssp_pairs
from kepler_traverse.hub_labels.build import build_labels

_CHECKED = 10_000
_RUNS = 3


def best_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest time of some runs, and what the last one returned."""
    times = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - began)
    return min(times), result


def measure(path: str, device: str, n_pairs: int, with_pandana: bool) -> dict[str, Any]:
    """Return the figures of one edge list."""
    graph = read_graph(path, directed=False, device="cpu")  # which builds labels
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, graph.n_vertices, (2, n_pairs))
    pairs = [graph.ids_at(each) for each in numbers]
    checked = [each[:_CHECKED] for each in pairs]
    graph.hierarchy()
    over_hierarchy, expected = best_of(lambda: sssp_pairs(graph, *checked))
    estimate = graph.derived.estimate_labels()
    build, labels = best_of(
        lambda: build_labels(graph.hierarchy(), "weights", estimate.rows_per_direction)
    )
    graph.derived.keep_labels(labels, "weights")
    proof, certificate = best_of(lambda: certify(graph, labels))
    certificate.require()
    merge, sums = best_of(lambda: labels.between(*numbers))
    frames, found = best_of(lambda: sssp_pairs(graph, *pairs))
    wanted = expected["distance"].to_numpy(np.float64, na_value=np.inf)
    answered = np.where(sums == labels.unreached, np.inf, sums * labels.unit)
    assert np.array_equal(answered[:_CHECKED], wanted)
    assert np.array_equal(found["distance"].to_numpy(np.float64, na_value=np.inf), answered)
    figures = {
        "graph": os.path.basename(path),
        "vertices": graph.n_vertices,
        "hubs per vertex": round(labels.hubs_per_vertex, 1),
        "rows": labels.rows,
        "MiB": round(labels.nbytes / 2**20),
        "build, s": round(build, 2),
        "certify, s": round(proof, 2),
        "merge, us per pair": round(1e6 * merge / n_pairs, 3),
        "sssp_pairs, us per pair": round(1e6 * frames / n_pairs, 3),
        "sssp_pairs over the hierarchy, us per pair": round(1e6 * over_hierarchy / _CHECKED, 1),
    }
    if device == "cuda":
        figures |= _on_gpu(labels, numbers, sums) | _frames_on_gpu(graph, pairs, answered)
    if with_pandana:
        figures |= _pandana(graph, checked, wanted)
    return figures | {"load": os.getloadavg()[0], "cores": os.cpu_count()}


def _on_gpu(labels: Any, numbers: np.ndarray, sums: np.ndarray) -> dict[str, Any]:
    cp = cuda.cp
    arrays = [cp.asarray(each) for each in numbers]

    def run() -> Any:
        found = labels.between(*arrays)
        cp.cuda.get_current_stream().synchronize()
        return found

    run()  # compiles, and copies the labels
    seconds, found = best_of(run)
    assert np.array_equal(found.get(), sums)
    return {"GPU, million pairs per second": round(sums.size / seconds / 1e6, 1)}


def _frames_on_gpu(graph: Any, pairs: list[Any], expected: np.ndarray) -> dict[str, Any]:
    """Time ``sssp_pairs`` of ids in host memory, to a frame of cuDF."""
    on_gpu = graph.to("cuda")

    def run() -> Any:
        found = sssp_pairs(on_gpu, *pairs)
        cuda.cp.cuda.get_current_stream().synchronize()
        return found

    run()
    seconds, frame = best_of(run)
    found = frame["distance"]
    if hasattr(found, "to_pandas"):
        found = found.to_pandas()
    assert np.array_equal(found.to_numpy(np.float64, na_value=np.inf), expected)
    return {"GPU, sssp_pairs, us per pair": round(1e6 * seconds / expected.size, 3)}


def _pandana(graph: Any, pairs: list[Any], expected: np.ndarray) -> dict[str, Any]:
    import pandana
    import pandas as pd

    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    zeros = pd.Series(np.zeros(graph.n_vertices))
    weights = pd.DataFrame({"weight": graph.weights.astype(np.float64)})
    ends = pd.Series(src), pd.Series(graph.targets.astype(np.int64))
    network = pandana.Network(zeros, zeros, *ends, weights, twoway=False)
    given = [graph.to_numbers(each) for each in pairs]
    seconds, found = best_of(lambda: network.shortest_path_lengths(*given))
    found = np.array(found)
    is_reached = np.isfinite(expected)
    assert np.allclose(found[is_reached], expected[is_reached])
    return {"pandana, us per pair": round(1e6 * seconds / expected.size, 1)}


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("edges")
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--pairs", type=int, default=1_000_000)
    command.add_argument("--pandana", action="store_true")
    given = command.parse_args()
    print(json.dumps(measure(given.edges, given.device, given.pairs, given.pandana), indent=1))
