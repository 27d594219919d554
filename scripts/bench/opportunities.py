"""Measure sums of three vertex attributes within four cutoffs, from all vertices of a weighted graph or from a sample.

python -m scripts.bench.opportunities USA-road-d.NY.parquet --device cuda
python -m scripts.bench.opportunities USA-road-d.NY.parquet --device cpu --sources 200

Sums of a few sources are first compared with those over their full distances, exactly for integers. The cutoffs are
quantiles of the distances from these sources, unless they are given. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from kepler_traverse import cuda, read_graph, sssp_many
from kepler_traverse._arrays import to_host

CHECKED = 8  # sources
QUANTILES = (0.05, 0.1, 0.2, 0.4)


def attributes(n: int) -> dict[str, np.ndarray]:
    """Two attributes of integers and one of floats, which are the same for each run."""
    rng = np.random.default_rng(1)
    return {
        "jobs": rng.integers(0, 1000, n),
        "people": rng.integers(0, 100, n),
        "area": rng.random(n),
    }


def check(graph, sources, values, cutoffs, decay, matrix) -> None:
    """Compare the sums from some sources with those over their full distances."""
    found = sssp_many(
        graph, sources, result="opportunities", values=values, cutoffs=cutoffs, decay=decay
    )
    kinds = {
        "exponential": lambda d, p: np.exp(-p * d),
        "linear": lambda d, p: np.maximum(0, 1 - d / p),
    }
    kinds["gaussian"] = lambda d, p: np.exp(-((d / p) ** 2) / 2)
    for name, value in values.items():
        column = to_host(found[name].values).reshape(len(sources), len(cutoffs))
        for row, distance in zip(column, matrix, strict=True):
            for got, cutoff in zip(row, cutoffs, strict=True):
                near = distance <= cutoff
                terms = value[near]
                if decay is not None:
                    kind, _, parameter = decay.partition(":")
                    terms = terms * kinds[kind](distance[near], float(parameter))
                right = terms.sum()
                if (
                    got != right
                    if terms.dtype.kind == "i"
                    else not np.isclose(got, right, rtol=1e-12)
                ):
                    raise SystemExit(f"{name} within {cutoff} is {got}, not {right}")


def measure(graph, n_sources: int | None, given: list[int] | None, decay: str | None) -> dict:
    """Check and measure; return what is printed."""
    ids = to_host(graph.ids)
    few = ids[:: max(1, ids.size // CHECKED)][:CHECKED]
    matrix = to_host(sssp_many(graph, few, result="matrix")).astype(np.float64)
    reached = matrix[np.isfinite(matrix)]
    cutoffs = given or np.unique(np.quantile(reached, QUANTILES).astype(np.int64)).tolist()
    values = attributes(ids.size)
    check(graph, few, values, cutoffs, decay, matrix)  # compiles, too
    sources = (
        ids
        if n_sources is None
        else np.random.default_rng(2).choice(ids, min(n_sources, ids.size), replace=False)
    )
    taken = {}
    for result in ("opportunities", "within", "summary"):
        more = {"summary": {}, "within": {"cutoffs": cutoffs}}
        options = more.get(result, {"cutoffs": cutoffs, "values": values, "decay": decay})
        began = time.perf_counter()
        sssp_many(graph, sources, result=result, **options)
        if graph.device == "cuda":
            cuda.cp.cuda.get_current_stream().synchronize()
        taken[result] = round(time.perf_counter() - began, 3)
    return {
        "vertices": graph.n_vertices,
        "stored_edges": graph.n_edges,
        "device": graph.device,
        "sources": int(sources.size),
        "attributes": len(values),
        "cutoffs": cutoffs,
        "decay": decay,
        "checked_sources": int(few.size),
        "seconds": taken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("edges")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--directed", action="store_true")
    parser.add_argument(
        "--sources", type=int, help="size of a random sample (default: all vertices)"
    )
    parser.add_argument("--cutoffs", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--decay")
    parser.add_argument(
        "--hierarchy",
        action="store_true",
        help="build the hierarchy of the graph first; it is not timed",
    )
    options = parser.parse_args()
    graph = read_graph(options.edges, device=options.device, directed=options.directed)
    built = graph.hierarchy().seconds if options.hierarchy else None
    print(
        json.dumps(
            {"hierarchy_seconds": built}
            | measure(graph, options.sources, options.cutoffs, options.decay)
        )
    )


if __name__ == "__main__":
    main()
