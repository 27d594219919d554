"""Measure hierarchies on a GPU: ``python -m scripts.bench.hierarchy_gpu FOLDER GRAPH ...``.

Graphs are those of ``scripts.bench.hierarchy``. Each is searched from 1,024 sources over its hierarchy and without it, in
one process. All distances are compared before a time is recorded. ``--everything`` also summarizes the distances of all
pairs of vertices. Then a second run adds up the distances to each vertex, which must be the sum of the distances from it,
and certifies a sample. ``scripts.measure`` makes the tables of docs/hierarchies.md of the record. A record may
also have runs of ``scripts.bench.pairs`` and ``scripts.bench.opportunities``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import Graph, certify_many, plan_sssp_many, sssp_many
from kepler_traverse.certificate import batch_gpu
from kepler_traverse.search.distance_stats import summary_of_distances
from kepler_traverse.sssp import REGISTRY
from scripts.bench.hierarchy import built, graph_of
from scripts.measure.environment import ROOT, commit, machine, timed_on_gpu
from scripts.pages import write_record

RECORD = ROOT / "docs" / "benchmarks" / "hierarchy_gpu.json"
SWEEP, SEARCH = "hierarchy_sweep", "source_per_block"
SOURCES, TARGETS, SAMPLE = 1024, 1000, 1000
REPEATS = 5


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds of a call with all its kernels: the median of some calls after one that is not timed."""
    return float(np.median([timed_on_gpu(call)[1] for _ in range(REPEATS + 1)][1:]))


def plan_of(graph: Graph, strategy: str, *, forms: tuple[str, ...] = ()) -> Any:
    """Plan searches to all vertices from groups of ``SOURCES``."""
    return REGISTRY.plan_multi_source(
        graph, n_sources=SOURCES, result="distances", strategy=strategy, forms=forms
    )


def compared(graph: Graph) -> dict[str, Any]:
    """Measure rows of distances, their parts, and a table of targets. Raise AssertionError if distances differ."""
    rng = np.random.default_rng(1)
    sources = rng.choice(graph.n_vertices, SOURCES, replace=False)
    sweep, lines, search = (
        plan_of(graph, SWEEP),
        plan_of(graph, SWEEP, forms=("interleaved",)),
        plan_of(graph, SEARCH),
    )
    assert bool((sweep.run(sources).distance == search.run(sources).distance).all()), (
        "distances differ"
    )
    found = lines.run(sources).distance
    rows = search.run(sources).distance
    pairs = zip(
        *(summary_of_distances(each, graph.offsets, None) for each in (found, rows)), strict=True
    )
    assert all(one.tobytes() == other.tobytes() for one, other in pairs), "statistics differ"
    assert batch_gpu.are_interleaved_valid(graph, sources, found, np.inf), "no certificate"
    microseconds = {
        "rows": seconds_of(lambda: sweep.run(sources)),
        "lines": seconds_of(lambda: lines.run(sources)),
        "search": seconds_of(lambda: search.run(sources)),
        "statistics of lines": seconds_of(lambda: summary_of_distances(found, graph.offsets, None)),
        "certificate of lines": seconds_of(
            lambda: batch_gpu.are_interleaved_valid(graph, sources, found, np.inf)
        ),
        "certificate of rows": seconds_of(lambda: certify_many(graph, sources, rows).require()),
    }
    found = {name: 1e6 * seconds / SOURCES for name, seconds in microseconds.items()}
    for plan in (sweep, lines, search):
        plan.release()
    return {
        "sources": SOURCES,
        "compared": SOURCES * graph.n_vertices,
        "microseconds": found,
        **targets_of(graph, rng),
    }


def targets_of(graph: Graph, rng: np.random.Generator) -> dict[str, Any]:
    """Measure a table of distances from ``TARGETS`` sources to as many targets."""
    sources, targets = (rng.choice(graph.n_vertices, TARGETS, replace=False) for _ in range(2))
    options = {"n_sources": TARGETS, "targets": graph.ids[targets], "result": "targets"}
    sweep, search = (plan_sssp_many(graph, strategy=name, **options) for name in (SWEEP, SEARCH))
    assert bool((sweep.run(sources).distance == search.run(sources).distance).all()), (
        "distances differ"
    )
    return {
        "table_seconds": seconds_of(lambda: sweep.run(sources)),
        "table_search": seconds_of(lambda: search.run(sources)),
    }


def everything(graph: Graph) -> dict[str, Any]:
    """Summarize the distances between all pairs of vertices, and check the sums.

    The distances of an undirected graph are symmetric. So the sum of the distances to a vertex, which a second run adds up,
    is the sum of those from it, which the summary has.
    """
    import cupy as cp

    sssp_many(graph, graph.ids[:2], result="summary", strategy=SEARCH)  # compiles
    graph = graph.derived.without_hierarchy()
    began = time.perf_counter()
    graph.hierarchy()
    built = time.perf_counter() - began
    frame = sssp_many(graph, "all", result="summary", strategy=SWEEP)
    seconds = time.perf_counter() - began
    plan = plan_of(graph, SWEEP, forms=("interleaved",))
    to_vertex = cp.zeros(graph.n_vertices, np.int64)
    sample = set(np.random.default_rng(5).choice(graph.n_vertices, SAMPLE, replace=False).tolist())
    certified, began = 0, time.perf_counter()
    numbers = np.random.default_rng(6).permutation(graph.n_vertices)
    for group in plan.iter_groups(numbers):
        lines = group.distance.lines[:, : len(group)]
        to_vertex += cp.where(lines < group.distance.bound, lines, 0).sum(axis=1, dtype=np.int64)
        chosen = sum(source in sample for source in group.sources.tolist())
        if chosen:  # the certificate of a group, which holds sources of the sample
            certify_many(graph, group.sources, group.distance).require()
            certified += chosen
    assert certified == SAMPLE
    sums = cp.asarray(frame["sum"].to_numpy()).astype(np.int64)
    assert bool((sums == to_vertex).all()), "sums are not symmetric"
    return {
        "build_seconds": built,
        "seconds": seconds,
        "checked_seconds": time.perf_counter() - began,
        "certified_sources": certified,
        "median_eccentricity": float(np.median(frame["eccentricity"].to_numpy())),
    }


def measure(folder: Path, name: str, whole: bool) -> dict[str, Any]:
    """Return the record of one graph."""
    on_host = graph_of(folder / f"{name}.parquet")
    facts = built(on_host)
    graph = on_host.to("cuda")
    found = {
        "graph": name,
        **{key: facts[key] for key in ("vertices", "build_seconds")},
        **compared(graph),
    }
    if whole:
        found["all_pairs"] = everything(graph)
    return found


def rendered(record: dict[str, Any]) -> str:
    """Return the tables of a record as Markdown."""
    host = record["machine"]
    lines = [
        f"Measured on an {host['gpu']} with {host['cores']} cores, at {record['commit']}, with {SOURCES:,} sources side by "
        "side.\nTimes are microseconds per source.\n",
        "| graph | build, s | interleaved | rows | search | ratio | statistics | certificate | certificate of rows |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in record["graphs"]:
        took = each["microseconds"]
        lines.append(
            f"| {each['graph']} | {each['build_seconds']:.1f} | {took['lines']:.1f} | {took['rows']:.1f} "
            f"| {took['search']:.0f} | {took['search'] / took['rows']:.0f} | {took['statistics of lines']:.1f} "
            f"| {took['certificate of lines']:.1f} | {took['certificate of rows']:.0f} |"
        )
    lines.append("")
    for each in record["graphs"]:
        lines.append(
            f"- {each['graph']}, {TARGETS:,} x {TARGETS:,} targets: {1e3 * each['table_seconds']:.1f} ms, by searches "
            f"{1e3 * each['table_search']:.0f} ms."
        )
        if "all_pairs" in each:
            found = each["all_pairs"]
            lines.append(
                f"- {each['graph']}, summaries of all {each['vertices']:,} sources: {found['seconds']:.1f} s, of which the "
                f"hierarchy takes {found['build_seconds']:.1f} s."
            )
    if "builds" in record:
        built = record["builds"]
        took = ", ".join(
            f"{seconds:.1f} s with {threads}"
            for threads, seconds in built["seconds_by_threads"].items()
        )
        lines.append(
            f"- {built['graph']}, building the hierarchy on a host with {built['cores']} cores: {took} threads."
        )
    return "\n".join([*lines, *_rendered_pairs(record), *_rendered_opportunities(record)]) + "\n"


def _rendered_pairs(record: dict[str, Any]) -> list[str]:
    """Return a line per run of ``scripts.bench.pairs`` in a record: the median of its runs after the first."""
    return [
        f"- USA-road-NE-topology, {each['pairs']:,} pairs from {each['origins']:,} origins to a frame, "
        f"{each['algorithm']}{', over the hierarchy' if each['hierarchy_seconds'] else ''}: "
        f"{np.median(each['seconds'][1:]):.1f} s."
        for each in record.get("pairs", ())
    ]


def _rendered_opportunities(record: dict[str, Any]) -> list[str]:
    """Return a line per run of ``scripts.bench.opportunities`` in a record."""
    return [
        f"- USA-road-d.NY, sums of {each['attributes']} attributes within {len(each['cutoffs'])} cutoffs from all "
        f"{each['sources']:,} sources{', over the hierarchy' if each['hierarchy_seconds'] else ''}: "
        f"{each['seconds']['opportunities']:.1f} s."
        for each in record.get("opportunities", ())
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument(
        "--everything", action="store_true", help="summarize the distances of all pairs"
    )
    options = parser.parse_args()
    graphs = []
    for name in options.graphs:
        graphs.append(measure(options.folder, name, options.everything))
        write_record(
            options.out,
            {"machine": machine(), "commit": commit(), "command": sys.argv[1:], "graphs": graphs},
        )
        print(json.dumps(graphs[-1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
