"""Measure hierarchies against searches on road networks: ``python -m scripts.bench.hierarchy FOLDER GRAPH ...``.

A graph is a Parquet file of edges with columns src, dst and, with weights, a third one; without it weights are hashed, 1 to
255. ``lattice-SIDE`` is a lattice of which a tenth of the edges are missing. Both strategies run in the same process one
after the other, and their results are compared before a time is recorded. A graph replaces its entry in the record.

``--cores 1 2`` measures contraction on as many threads. ``--whole 10000`` measures summaries of so many sources with
the hierarchy that they need. ``--more pairs`` and ``--more hops`` measure paths of pairs, and breadth-first searches, into a
record of their own. ``scripts.measure`` writes the tables of docs/hierarchies.md from the records.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from kepler_traverse import (
    Graph,
    bfs_many,
    graph_from_edges,
    paths,
    plan_bfs_many,
    plan_sssp_many,
    sssp_many,
)
from scripts.measure.environment import ROOT, commit, machine, timed
from scripts.pages import by_columns, read_record, write_record

RECORD = ROOT / "docs" / "benchmarks" / "hierarchy.json"
MORE = ROOT / "docs" / "benchmarks" / "hierarchy_more.json"
SWEEP, SEARCH = "hierarchy_sweep", "near_far_per_thread"
REPEATS = 3
LATTICE = "lattice-"


def graph_of(path: Path) -> Graph:
    """Return a graph of a Parquet file, or a lattice, undirected."""
    import pyarrow.parquet

    from pipelines.comparison import hashed_weights

    if path.stem.startswith(LATTICE):
        side = int(path.stem.removeprefix(LATTICE))
        v = np.arange(side * side).reshape(side, side)
        src, dst = (
            np.concatenate([x.ravel(), y.ravel()])
            for x, y in ((v[:, :-1], v[:-1]), (v[:, 1:], v[1:]))
        )
        kept = np.random.default_rng(1).random(src.size) >= 0.1
        src, dst = src[kept], dst[kept]
        return graph_from_edges(src, dst, hashed_weights(src, dst, False), directed=False)
    table = pyarrow.parquet.read_table(path)
    src, dst = table[0].to_numpy(), table[1].to_numpy()
    weights = table[2].to_numpy() if table.num_columns > 2 else hashed_weights(src, dst, False)
    return graph_from_edges(src, dst, weights, directed=False)


def seconds_of(
    graph: Graph, strategy: str, sources: np.ndarray, **options
) -> tuple[float, np.ndarray]:
    """Return the seconds of a plan's searches, the best of some repeats, and its distances."""
    plan = plan_sssp_many(graph, n_sources=sources.size, strategy=strategy, **options)
    best, found = float("inf"), []
    for repeat in range(REPEATS if strategy == SWEEP else 1):
        began = time.perf_counter()
        for group in plan.iter_groups(sources):
            if not repeat and (options or len(found) < 1):
                found.append(group.distance.copy())
        best = min(best, time.perf_counter() - began)
    return best, np.concatenate(found)


def compared(graph: Graph, swept: int, searched: int, **options) -> dict:
    """Measure both strategies. Raise AssertionError if their distances differ."""
    sources = np.random.default_rng(1).choice(graph.n_vertices, swept, replace=False)
    seconds, found = seconds_of(graph, SWEEP, sources, **options)
    seconds_of(graph, SEARCH, sources[:2], **options)  # compiles
    searching, expected = seconds_of(graph, SEARCH, sources[:searched], **options)
    k = min(len(found), len(expected))
    assert np.array_equal(found[:k], expected[:k]), "distances differ"
    times = {SWEEP: 1e3 * seconds / swept, SEARCH: 1e3 * searching / searched}
    return _work({SWEEP: swept, SEARCH: searched}, times, k)


def _work(counts: dict[str, int], times: dict[str, float], compared_rows: int) -> dict:
    """Return what the record has of a result; the sweep is first."""
    (_, swept), (search, searched) = counts.items()
    return {
        "search": search,
        "swept_sources": swept,
        "searched_sources": searched,
        "compared_rows": compared_rows,
        "sweep_ms_per_source": times[SWEEP],
        "search_ms_per_source": times[search],
    }


def _each(
    counts: dict[str, int], call: Callable[[str, int], Any]
) -> tuple[dict[str, float], list[Any]]:
    """Call each strategy for two sources, which compiles, and for all; return milliseconds per source, and results."""
    times, found = {}, []
    for strategy, count in counts.items():
        call(strategy, 2)
        result, seconds = timed(call, strategy, count)
        times[strategy] = 1e3 * seconds / count
        found.append(result)
    return times, found


def summarized(
    many: Callable[..., Any], graph: Graph, sources: np.ndarray, counts: dict[str, int]
) -> dict:
    """Measure summaries of both strategies."""
    times, (swept, searched) = _each(
        counts,
        lambda strategy, count: many(graph, sources[:count], result="summary", strategy=strategy),
    )
    assert swept.head(len(searched)).equals(searched), "summaries differ"
    return _work(counts, times, len(searched))


def paired(graph: Graph, count: int) -> dict:
    """Measure paths of random pairs, all of them with both strategies."""
    numbers = np.random.default_rng(4).integers(0, graph.n_vertices, (2, count))
    origins, ends = (graph.ids_at(each) for each in numbers)
    counts = {SWEEP: count, SEARCH: count}
    times, (swept, searched) = _each(
        counts, lambda strategy, n: paths(graph, (origins[:n], ends[:n]), strategy=strategy)
    )
    assert swept.equals(searched), "paths differ"
    return _work(counts, times, len(swept))


def contraction(graph: Graph, cores: list[int]) -> dict[str, float]:
    """Return the seconds of contraction by the number of threads."""
    found, before = {}, numba.get_num_threads()
    for count in cores:
        numba.set_num_threads(count)
        found[str(count)] = graph.derived.without_hierarchy().hierarchy().seconds
    numba.set_num_threads(before)
    return found


def whole(graph: Graph, n_sources: int) -> dict:
    """Measure summaries of many sources, and the hierarchy that they need."""
    sources = graph.ids_at(
        np.random.default_rng(4).choice(graph.n_vertices, n_sources, replace=False)
    )
    graph = graph.derived.without_hierarchy()
    began = time.perf_counter()
    graph.hierarchy()
    sssp_many(graph, sources, result="summary")
    return {"sources": n_sources, "seconds": time.perf_counter() - began}


def hops(graph: Graph, summaries: int, searched: int) -> dict[str, dict]:
    """Measure breadth-first searches, with the strategy that ``bfs_many`` takes without a hierarchy as the other one."""
    search = plan_bfs_many(graph.derived.without_hierarchy(), n_sources=summaries).strategy.name
    sources = np.random.default_rng(5).choice(graph.n_vertices, summaries, replace=False)
    counts = {SWEEP: 512, search: searched}
    plans = {
        strategy: plan_bfs_many(graph, n_sources=count, strategy=strategy)
        for strategy, count in counts.items()
    }
    # finds the type, too
    found = [plan.run(sources[: plan.group]).distance[:16].copy() for plan in plans.values()]
    assert np.array_equal(*found), "hops differ"
    times, _ = _each(
        counts,
        lambda strategy, count: deque(plans[strategy].iter_groups(sources[:count]), maxlen=0),
    )
    return {
        "distances, hops": _work(counts, times, 16),
        "summary, hops": summarized(
            bfs_many, graph, graph.ids_at(sources), {SWEEP: summaries, search: searched}
        ),
    }


def measure_more(folder: Path, name: str, what: str, searched: int) -> dict:
    """Return the record of pairs or of hops of one graph."""
    graph, metric = graph_of(folder / f"{name}.parquet"), "hops" if what == "hops" else "weights"
    facts = {"commit": commit(), "graph": name, **built(graph, metric)}
    return facts | {
        "work": hops(graph, 10_000, searched)
        if what == "hops"
        else {"paths of 1,000 pairs": paired(graph, 1000)}
    }


def built(graph: Graph, metric: str = "weights") -> dict:
    """Return what the record has of a graph and of its hierarchy, which is built after that of a small graph."""
    side = np.arange(200)
    # compiles
    graph_from_edges(side, (side + 1) % 200, np.ones(200, np.int64), directed=False).hierarchy(
        metric
    )
    hierarchy = graph.hierarchy(metric)
    return {
        "vertices": graph.n_vertices,
        "edges": graph.n_edges // 2,
        "build_seconds": hierarchy.seconds,
        "levels": hierarchy.levels,
        "shortcuts": hierarchy.shortcuts,
        "bytes": hierarchy.nbytes,
    }


def rendered_more(record: dict) -> str:
    """Return the table of the record of pairs and hops as Markdown."""
    host = record["machine"]
    columns = {
        "graph": lambda row: row["graph"],
        "result": lambda row: row["name"],
        "build, s": lambda row: f"{row['build_seconds']:.1f}",
        "hierarchy, ms per source": lambda row: (
            f"{row['sweep_ms_per_source']:.2f} ({row['swept_sources']:,})"
        ),
        **SEARCHED,
        "pays from": pays_from,
        "commit": lambda row: row["commit"],
    }
    return (
        f"Measured on {host['cores']} cores of an {host['cpu']}. A source of a path is one pair.\n\n"
        + by_columns(columns, works_of(record))
    )


SEARCHED = {
    "search, ms per source": lambda row: (
        f"{row['search_ms_per_source']:.1f} ({row['searched_sources']:,})"
    ),
    "ratio": lambda row: f"{row['search_ms_per_source'] / row['sweep_ms_per_source']:.0f}",
}


def works_of(record: dict) -> list[dict]:
    """Return a row per result, with the facts of its graph."""
    return [
        each | work | {"name": name}
        for each in record["graphs"]
        for name, work in each["work"].items()
    ]


def pays_from(row: dict) -> str:
    """Return the number of sources from which on a hierarchy pays."""
    return f"{1e3 * row['build_seconds'] / (row['search_ms_per_source'] - row['sweep_ms_per_source']):,.0f}"


def measure(
    folder: Path, name: str, swept: int, searched: int, cores: list[int], n_whole: int, n_pairs: int
) -> dict:
    """Return the record of one graph."""
    graph = graph_of(folder / f"{name}.parquet")
    facts = built(graph)
    targets = graph.ids_at(np.random.default_rng(3).choice(graph.n_vertices, 1000, replace=False))
    sources = graph.ids_at(np.random.default_rng(2).choice(graph.n_vertices, swept, replace=False))
    work = {
        "distances": compared(graph, swept, searched),
        "summary": summarized(sssp_many, graph, sources, {SWEEP: swept, SEARCH: searched}),
        "1,000 targets": compared(graph, 1000, searched, targets=targets, result="targets"),
    }
    work |= {f"paths of {n_pairs:,} pairs": paired(graph, n_pairs)} if n_pairs else {}
    facts |= {"graph": name, "build_seconds_by_cores": contraction(graph, cores), "work": work}
    return facts | {"whole": whole(graph, n_whole) if n_whole else None}


def rendered(record: dict) -> str:
    """Return the tables of a record as Markdown."""
    host, commits = record["machine"], sorted({each["commit"] for each in record["graphs"]})
    hierarchies = {
        "graph": lambda row: row["graph"],
        "vertices": lambda row: f"{row['vertices']:,}",
        "build, s": lambda row: f"{row['build_seconds']:.1f}",
        "on one core, s": alone,
        "levels": lambda row: str(row["levels"]),
        "shortcuts": lambda row: f"{row['shortcuts']:,}",
        "MiB": lambda row: f"{row['bytes'] / 2**20:.0f}",
    }
    works = {
        "graph": lambda row: row["graph"],
        "result": lambda row: row["name"],
        "sweep, ms per source": lambda row: (
            f"{row['sweep_ms_per_source']:.2f} ({row['swept_sources']:,} sources)"
        ),
        **SEARCHED,
        "pays from, sources": pays_from,
    }
    lines = [
        f"Measured on {host['cores']} cores of an {host['cpu']}, at {', '.join(commits)}. Searches ran from fewer sources,\n"
        "as stated; their time per source does not depend on the number.\n",
        by_columns(hierarchies, record["graphs"]),
        by_columns(works, works_of(record)),
    ]
    for each in record["graphs"]:
        if each["whole"]:
            lines.append(
                f"Building the hierarchy of {each['graph']} and summaries of {each['whole']['sources']:,} sources took\n"
                f"{each['whole']['seconds']:.0f} s together.\n"
            )
    return "\n".join(lines)


def alone(entry: dict) -> str:
    """Return the seconds of contraction on one thread, if they were measured."""
    found = entry["build_seconds_by_cores"].get("1")
    return "-" if found is None else f"{found:.1f}"


def add_more(measured: dict) -> None:
    """Put the record of one graph into that of pairs and hops, in place of earlier ones of the same results."""
    record = read_record(MORE) if MORE.exists() else {"graphs": []}
    others = [
        each
        for each in record["graphs"]
        if (each["graph"], *each["work"]) != (measured["graph"], *measured["work"])
    ]
    graphs = sorted([*others, measured], key=lambda each: (*each["work"], each["graph"]))
    write_record(MORE, {"machine": machine(), "graphs": graphs})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--sources", type=int, default=512, help="sources of the sweeps")
    parser.add_argument(
        "--searched", type=int, default=16, help="sources of the searches that are compared"
    )
    parser.add_argument(
        "--cores",
        type=int,
        nargs="+",
        default=[],
        help="numbers of threads that contraction is timed on",
    )
    parser.add_argument(
        "--whole",
        type=int,
        default=0,
        help="sources of a call that includes building the hierarchy",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=1000,
        help="pairs of which paths are measured, also by searches",
    )
    parser.add_argument("--more", choices=("pairs", "hops"), help="measure these alone")
    options = parser.parse_args()
    if options.more is not None:
        for name in options.graphs:
            add_more(measure_more(options.folder, name, options.more, options.searched))
    else:
        sizes = options.sources, options.searched, options.cores, options.whole, options.pairs
        graphs = {
            name: measure(options.folder, name, *sizes) | {"commit": commit()}
            for name in options.graphs
        }
        others = read_record(options.out)["graphs"] if options.out.exists() else []
        graphs = {each["graph"]: each for each in others} | graphs
        write_record(options.out, {"machine": machine(), "graphs": list(graphs.values())})
    return 0


if __name__ == "__main__":
    sys.exit(main())
