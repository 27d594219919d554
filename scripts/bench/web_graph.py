"""Harmonic centrality of all vertices of a web graph on one GPU: ``python -m scripts.bench.web_graph --seconds 480``.

A directed graph of the size of Common Crawl's domains, 119 million vertices and about 4.3 billion edges, of which three
quarters of the vertices or more have no outgoing edge, is drawn and built on the GPU. Sources are drawn at random; their
number gives all vertices their centrality within an error at a confidence (Eppstein, Wang 2004; see
kepler_traverse/bfs/multi_source/harmonic_sums.py). If the time is over, fewer sources are searched, and the error that
these give is recorded. Hops from some sources are certified, and the sums compared with those of the certified hops.

Prints a line of JSON per step, and writes it to a file at once. ``--vertices`` and ``--edges`` make a smaller graph.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

from kepler_traverse import cuda
from kepler_traverse.bfs import REGISTRY
from kepler_traverse.bfs.multi_source.harmonic_sums import UNIT_BITS, HarmonicSums, sample_size
from kepler_traverse.certificate import certify_many
from kepler_traverse.cuda import graph_statistics
from kepler_traverse.graph import Graph
from scripts.bench.large_graphs import (
    SEED,
    Figures,
    SkippedError,
    build,
    draw_web,
    free_pool,
    synchronize,
)

ROOT = Path(__file__).resolve().parents[2]
VERTICES = 119_000_000
EDGES = 4_600_000_000  # drawn; about 4.3 billion differ
ERROR, CONFIDENCE = 0.01, 0.95
CERTIFIED = 32  # sources
TOP = 5
BUILD_SECONDS = 60.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.web_graph", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="begin no group after this time"
    )
    parser.add_argument("--vertices", type=int, default=VERTICES)
    parser.add_argument("--edges", type=int, default=EDGES, help="drawn edges")
    parser.add_argument("--error", type=float, default=ERROR)
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    parser.add_argument(
        "--group", type=int, default=1024, help="sources that are searched together"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "out" / "gpu" / "web_graph.jsonl")
    return parser.parse_args(arguments)


def make_graph(figures: Figures, options: argparse.Namespace) -> Graph:
    with figures.step("draw edges", BUILD_SECONDS):
        src, dst = draw_web(options.vertices, options.edges)
    with figures.step("build") as values:
        graph = build(src, dst, options.vertices, directed=True)
        values |= {"vertices": graph.n_vertices, "edges": graph.n_edges}
    del src, dst
    free_pool()
    with figures.step("reverse") as values:
        without = int((graph.offsets[1:] == graph.offsets[:-1]).sum())
        values["without_outgoing"] = round(without / graph.n_vertices, 4)
        values["max_indegree"] = graph.reverse.derived.max_degree
        # degrees are kept with a graph
        graph.reverse.derived.kept.pop("degrees")
    free_pool()
    return graph


def certify_sample(figures: Figures, graph: Graph, sources: np.ndarray) -> None:
    """Certify the hops from some sources, and compare the sums of their reciprocals with ``HarmonicSums``."""
    with figures.step("certify") as values:
        plan = REGISTRY.plan_multi_source(
            graph, n_sources=sources.size, strategy="bit_parallel", result="distances"
        )
        found = plan.run(sources)
        certify_many(graph, sources, found.distance).require()
        expected = cuda.cp.zeros(graph.n_vertices, np.uint64)
        for row in found.distance:
            hops = row.astype(np.uint64)
            unit = np.uint64(1 << UNIT_BITS)
            expected += cuda.cp.where(
                row > 0, unit // cuda.cp.maximum(hops, np.uint64(1)), 0
            ).astype(np.uint64)
        plan.release()
        del found, plan, hops, row
        free_pool()
        sums = HarmonicSums(graph, 32)
        sums.add(sources)
        if not bool((sums.sums == expected).all()):
            raise RuntimeError("the sums differ from those of the certified hops")
        values["sources"] = int(sources.size)
    del sums, expected
    free_pool()


def estimate(figures: Figures, graph: Graph, options: argparse.Namespace) -> None:
    n = graph.n_vertices
    wanted = min(sample_size(n, options.error, options.confidence), n)
    sources = np.random.default_rng(SEED).choice(n, wanted, replace=False)
    with figures.step("plan sums") as values:
        sums = HarmonicSums(graph, options.group)
        values["group"] = sums.group
    # Each block has as many sources with outgoing edges as are searched together.
    is_searched = graph_statistics.degrees_at(graph.offsets, sources) > 0
    ends = np.flatnonzero(is_searched)[sums.group :: sums.group]
    blocks = np.split(sources, ends)
    taken: list[float] = []
    with figures.step("estimate") as values:
        for number, block in enumerate(blocks):
            if figures.left < 2 * max(taken, default=0.0) + 5:
                break
            began = time.perf_counter()
            sums.add(block)
            synchronize()
            taken.append(time.perf_counter() - began)
            if number in (0, 1, 4):
                figures.put("block", number=number, ms=round(1e3 * taken[-1], 2))
        n_searched = int(np.count_nonzero(is_searched[: sums.n_added]))
        values |= {"wanted": wanted, "drawn": sums.n_added, "searched": n_searched}
        values["ms_per_searched_source"] = round(1e3 * sum(taken) / max(n_searched, 1), 4)
        if sums.n_added:
            reached = math.sqrt(math.log(2 * n / (1 - options.confidence)) / (2 * sums.n_added))
            values |= {"error": round(reached, 5), "confidence": options.confidence}
    with figures.step("most central") as values:
        centrality = sums.centrality()
        top = cuda.cp.argsort(centrality)[-TOP:].get()[::-1].tolist()
        values["vertices"] = top
        values["centrality"] = [round(float(centrality[v]), 5) for v in top]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    figures = Figures(options.output, options.seconds)
    figures.put_surroundings()
    try:
        graph = make_graph(figures, options)
        rng = np.random.default_rng(SEED)
        degrees = graph.offsets[1:] - graph.offsets[:-1]
        linking = cuda.cp.flatnonzero(degrees).get()
        del degrees
        free_pool()
        sample = np.sort(rng.choice(linking, min(CERTIFIED, linking.size), replace=False))
    except SkippedError:
        return 1
    for step in (certify_sample, estimate):
        argument = sample if step is certify_sample else options
        try:
            step(figures, graph, argument)
        except SkippedError:
            continue
    figures.put("end", n_failed=figures.n_failed)
    return 1 if figures.n_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
