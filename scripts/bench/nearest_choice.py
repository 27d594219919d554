"""The nearest targets on a GPU: what `auto` chooses and estimates, beside each strategy.

python -m scripts.bench.nearest_choice --seconds 90

The 3 nearest of 500 targets of USA-road-d.NY (KEPLER_DATA), from 1 to 100,000 sources. Seconds are those of whole calls,
medians after one that is not timed; all strategies must return the same rows. Prints a line of JSON per number of
sources, and writes it to a file at once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import Graph, read_graph, sssp_many
from kepler_traverse._arrays import to_host
from kepler_traverse.errors import CapacityError, StrategyError
from kepler_traverse.search.query import Nearest
from kepler_traverse.sssp import REGISTRY
from scripts.bench.large_graphs import Figures, SkippedError, synchronize

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))
POINTS, NEAREST = 500, 3
COUNTS = (1, 10, 100, 1_000, 10_000, 100_000)
STRATEGIES = ("auto", "short_search", "source_per_block", "source_per_lane", "from_targets")
REPEATS = 3
MAX_SECONDS = 2.0  # a strategy that takes longer is left out with more sources


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench.nearest_choice", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--graph", type=Path, default=DATA / "USA-road-d.NY.parquet")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument(
        "--output", type=Path, default=ROOT / "out" / "gpu" / "nearest_choice.jsonl"
    )
    return parser.parse_args(arguments)


def estimates(graph: Graph, points: np.ndarray, n_sources: int) -> dict[str, Any]:
    """Return what a plan chooses, and the seconds that it expects of each strategy."""
    numbers = np.sort(graph.to_numbers(points, "target"))
    plan = REGISTRY.plan_multi_source(
        graph,
        n_sources=n_sources,
        result="nearest_targets",
        targets=points,
        nearest=Nearest(NEAREST, [numbers]),
    )
    expected = {each.name: round(each.seconds, 5) for each in plan.ranked(n_sources)}
    return {"chosen": plan.strategy.name, "expected": expected, "reach": plan.shape.reach}


def timed(call: Any) -> tuple[float, Any]:
    """Return the median seconds of a call after the first, which compiles, and its result; the
    seconds of the second call if it is slow.
    """
    taken = []
    for _ in range(REPEATS + 1):
        synchronize()
        began = time.perf_counter()
        result = call()
        synchronize()
        taken.append(time.perf_counter() - began)
        if len(taken) > 1 and taken[-1] > MAX_SECONDS:
            return taken[-1], result
    return statistics.median(taken[1:]), result


def rows_of(frame: Any) -> np.ndarray:
    return np.stack([np.asarray(frame[name].to_numpy()) for name in frame.columns])


def measure(figures: Figures, graph: Graph, points: np.ndarray, count: int, slow: set[str]) -> None:
    drawn = np.random.default_rng(2).choice(graph.n_vertices, count, replace=False)
    sources = to_host(graph.ids)[drawn]
    with figures.step(f"{count} sources") as values:
        values |= estimates(graph, points, count)
        expected = None
        for name in STRATEGIES:
            if name in slow:
                continue
            options = {"result": "nearest", "k": NEAREST, "targets": points, "strategy": name}
            try:
                values[name], frame = timed(lambda o=options: sssp_many(graph, sources, **o))
            except (StrategyError, CapacityError) as error:
                values[name] = f"refused: {error}"
                continue
            if values[name] > MAX_SECONDS:
                slow.add(name)
            values[name] = round(values[name], 5)
            rows = rows_of(frame)
            if expected is None:
                expected = rows
            if not np.array_equal(rows, expected):
                raise RuntimeError(f"{name} returns other rows")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    figures = Figures(options.output, options.seconds)
    figures.put_surroundings()
    try:
        with figures.step("read"):
            on_host = read_graph(options.graph, directed=False, device="cpu")
            graph = on_host.to(options.device)
    except SkippedError:
        return 1
    ids = on_host.ids
    points = np.sort(np.random.default_rng(1).choice(ids, min(POINTS, ids.size), replace=False))
    slow: set[str] = set()
    for count in options.counts:
        if figures.left < 2 * MAX_SECONDS or count > ids.size:
            break
        try:
            measure(figures, graph, points, count, slow)
        except SkippedError:
            continue
    figures.put("end", n_failed=figures.n_failed)
    return 1 if figures.n_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
