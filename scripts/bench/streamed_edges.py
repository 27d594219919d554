"""Hops from many sources with the edges of R-MAT 26 on one GPU, and in host memory.

python -m scripts.bench.streamed_edges --seconds 240

The graph is drawn and built on the GPU: 16 edges per vertex, each stored in both directions, 2.1 billion. The levels of all
searches are compared between all ways before a figure is recorded.

device     edges in the memory of the GPU: 4,096 sources in groups of 1,024, with statistics, and the first groups alone
streamed   edges in host memory, as the strategy does it
copied     the same, and each segment with an edge left is copied
in place   the same, and no segment is copied: kernels read over the bus

Prints a line of JSON per step, and writes it to a file at once. ``--scale`` makes a smaller graph.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import to_host
from kepler_traverse.bfs import REGISTRY
from kepler_traverse.bfs.multi_source.bit_parallel_gpu import GroupRun, traverse_by
from kepler_traverse.bfs.multi_source.bit_parallel_streamed import StreamedRun
from kepler_traverse.bfs.tuning import StreamedTuning
from kepler_traverse.cuda import graph_statistics
from kepler_traverse.graph import Graph
from kepler_traverse.search.query import Query
from scripts.bench.large_graphs import (
    SEED,
    Figures,
    SkippedError,
    build,
    draw_rmat,
    free_pool,
    synchronize,
)

ROOT = Path(__file__).resolve().parents[2]
SCALE, EDGE_FACTOR = 26, 16
MANY = 4096
REPEATS = 3
WAYS = {
    "streamed": StreamedTuning(),
    "copied": StreamedTuning(in_place=1 << 40),
    "in place": StreamedTuning(in_place=0),
    "streamed, in place below 1/8": StreamedTuning(in_place=8),
    "streamed, segments of 8 M": StreamedTuning(max_segment=1 << 23),
}
TARGET_MS = {"device": 0.5, "streamed": 1.8}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench.streamed_edges", description=__doc__
    )
    parser.add_argument(
        "--seconds", type=float, default=240.0, help="begin no step after this time"
    )
    parser.add_argument("--scale", type=int, default=SCALE)
    parser.add_argument("--many", type=int, default=MANY, help="sources with statistics")
    parser.add_argument("--groups", type=int, nargs="+", default=[512, 1024])
    parser.add_argument(
        "--output", type=Path, default=ROOT / "out" / "gpu" / "streamed_edges.jsonl"
    )
    return parser.parse_args(arguments)


def make_graph(figures: Figures, scale: int) -> tuple[Graph, np.ndarray]:
    """Return the graph, and vertices with an edge, at random."""
    with figures.step("draw edges"):
        src, dst = draw_rmat(scale, EDGE_FACTOR << scale)
    with figures.step("build") as values:
        graph = build(src, dst, 1 << scale, directed=False)
        values |= {"vertices": graph.n_vertices, "edges": graph.n_edges}
        values["gib"] = round(graph.nbytes / 2**30, 2)
    del src, dst
    free_pool()
    drawn = np.random.default_rng(SEED).choice(1 << scale, min(1 << scale, 1 << 16), replace=False)
    return graph, drawn[graph_statistics.degrees_at(graph.offsets, drawn) > 0]


def measure_many(figures: Figures, graph: Graph, sources: np.ndarray) -> None:
    """Time 4,096 sources with statistics, the second of two runs."""
    with figures.step("device, many") as values:
        plan = REGISTRY.plan_multi_source(
            graph, n_sources=sources.size, strategy="bit_parallel", result="summary"
        )
        for _ in range(2):
            synchronize()
            began = time.perf_counter()
            n_reached = 0
            for group in plan.iter_groups(sources):
                n_reached += int(to_host(group.counts).sum())
            seconds = time.perf_counter() - began
        values |= {"sources": int(sources.size), "group": plan.group, "reached": n_reached}
        values |= judged("device", 1e3 * seconds / sources.size)


def judged(way: str, ms: float) -> dict[str, Any]:
    target = TARGET_MS.get(way)
    if target is None:
        return {"ms_per_source": round(ms, 4)}
    return {"ms_per_source": round(ms, 4), "target": target, "is_met": ms <= target}


def search(
    figures: Figures, name: str, run: GroupRun, sources: np.ndarray, expected: np.ndarray | None
) -> np.ndarray:
    """Record the best of some searches of one group, after its levels are compared; return these."""
    with figures.step(name) as values:
        traverse = traverse_by(run)
        counts = to_host(traverse(sources).counts)
        if expected is not None and not np.array_equal(counts, expected):
            raise RuntimeError("the levels differ from those with the edges on the device")
        counted = getattr(run, "counted", None)
        if counted is not None:
            values["segments"] = len(run.segments)
            values |= counted
        taken = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            traverse(sources)
            synchronize()
            taken.append(time.perf_counter() - began)
        values |= {"sources": int(sources.size), "levels": counts.shape[1]}
        values |= judged(name.split(",")[0], 1e3 * min(taken) / sources.size)
    return counts


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    figures = Figures(options.output, options.seconds)
    figures.put_surroundings()
    expected: dict[int, np.ndarray] = {}
    query = Query(predecessors=False, output="counts")
    try:
        graph, sources = make_graph(figures, options.scale)
    except SkippedError:
        return 1
    with contextlib.suppress(SkippedError):
        measure_many(figures, graph, sources[: options.many])
    free_pool()
    for group in options.groups:
        name = f"device, {group} lanes"
        try:
            run = GroupRun(graph, query, group)
            expected[group] = search(figures, name, run, sources[:group], None)
        except SkippedError:
            continue
        finally:
            run = None
            free_pool()
    try:
        with figures.step("pin", 30.0 if options.scale >= SCALE else 0.0):
            on_host = graph.to("cuda", edges="host")
        del graph
        free_pool()
    except SkippedError:
        return 1
    measure_ways(figures, on_host, sources, options.groups, expected)
    figures.put("end", n_failed=figures.n_failed)
    return 1 if figures.n_failed else 0


def measure_ways(
    figures: Figures,
    graph: Graph,
    sources: np.ndarray,
    groups: list[int],
    expected: dict[int, np.ndarray],
) -> None:
    """Record each way of each size of a group; those that the strategy takes come first."""
    for way, tuning in WAYS.items():
        for group in groups:
            name = f"{way}, {group} lanes"
            run = None
            try:
                with figures.step(f"plan {name}", 10.0):
                    query = Query(predecessors=False, output="counts", tuning=tuning)
                    run = StreamedRun(graph, query, group)
                search(figures, name, run, sources[:group], expected.get(group))
            except SkippedError:
                continue
            finally:
                run = None
                cuda.cp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
