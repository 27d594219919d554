"""Measure searches that end early next to pandana, igraph and NetworKit, in the library and as a job.

``python -m scripts.bench --suite short GRAPHS`` measures and writes docs/benchmarks/short_searches.json, of which
``scripts.bench.performance_page`` makes a table. With ``--gpu`` it measures on a GPU instead, and writes that part alone.
With ``--nearest`` it writes nothing: it prints how long each strategy takes to find the nearest targets, and what ``auto``
takes, on a GPU where there is one. GRAPHS is a folder with USA-road-d.NY.parquet (src, dst, weight),
soc-Slashdot0902.parquet and USA-road-NE-topology.parquet (src, dst). The other libraries are used where they are installed.
Results are compared with those of the peer before a time is recorded; a time is the least of several.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kepler_traverse import (
    Graph,
    bfs_many,
    cuda,
    graph_from_edges,
    plan_bfs_many,
    read_graph,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.search.query import Nearest
from kepler_traverse.sssp import REGISTRY
from scripts.measure.environment import ROOT, about, least, timed
from scripts.pages import read_record, write_record

RECORD = ROOT / "docs" / "benchmarks" / "short_searches.json"
NEAR, FAR, STEPS = 5000, 20000, 4
POINTS, NEAREST = 500, 3
PAIRS, PAIRS_WITHIN = 1_000_000, 3000
NEIGHBORS_OF, HOPS = 100_000, 2
SCATTERED, DEPTH = 50_000, 7  # where two graphs are compared: sources, and hops
WALK = 24_000  # in 30 minutes at 80 m per minute: a weight of 1 is 0.1 m
CHECKED, WHOLE = (
    20_000,
    "source_per_block",
)  # sources whose results a CPU checks, and the strategy of searches that are not short
RUNS = 3
HAS = {name: find_spec(name) is not None for name in ("pandana", "igraph", "networkit")}
MOST = 3.0  # estimated seconds of a strategy that is measured next to ``auto``
# sources of NetworKit, which cannot end a search early and returns distances to all vertices
WHOLE_SEARCHES = 200
Answer = Callable[[], Any]


def network_of(graph: Graph, kind: Any) -> Any:
    """Build a network of pandana's class or ours. Vertices lie on a line: the nearest node of a point is its own."""
    place = pd.Series(np.arange(graph.n_vertices, dtype=float))
    tails = pd.Series(np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets)))
    weights = pd.DataFrame({"weight": graph.weights.astype(np.float64)})
    return kind(
        place, place * 0, tails, pd.Series(graph.targets.astype(np.int64)), weights, twoway=False
    )


def works_on_roads(graph: Graph) -> Iterator[tuple[str, int, int, Answer, Answer | None]]:
    """Yield name, sources or pairs, runs, our call, and the peer's call or None; both return comparable arrays."""
    random = np.random.default_rng(1)
    n = graph.n_vertices
    values = {name: random.integers(0, 100, n) for name in ("jobs", "shops", "beds")}
    cutoffs = [FAR * (i + 1) // STEPS for i in range(STEPS)]
    network = None
    if HAS["pandana"]:
        import pandana

        network = network_of(graph, pandana.Network)

    def ours(names: list[str], within: list[int]) -> np.ndarray:
        given = {name: values[name] for name in names}
        found = sssp_many(graph, "all", result="opportunities", values=given, cutoffs=within)
        return found[names].to_numpy().reshape(n, len(within), len(names))

    def peers(names: list[str], within: list[int]) -> np.ndarray:
        if len(within) > 1:  # then it is faster to look up all vertices near each vertex, once
            network.precompute(max(within))
        found = []
        for cutoff in within:
            for name in names:
                network.set(
                    pd.Series(np.arange(n)),
                    variable=pd.Series(values[name].astype(float)),
                    name=name,
                )
                found.append(
                    network.aggregate(cutoff, type="sum", decay="flat", name=name).to_numpy()
                )
        return np.stack(found, axis=1).reshape(n, len(within), len(names))

    def if_there(call: Answer) -> Answer | None:
        return call if network is not None else None

    yield (
        f"distances within {NEAR:,}",
        n,
        RUNS,
        lambda: sssp_many(graph, "all", cutoff=NEAR)["distance"],
        None,
    )
    yield (
        "one vertex: within 0",
        n,
        RUNS,
        lambda: sssp_many(graph, "all", result="within", cutoffs=[0])["vertices"],
        None,
    )
    one = ["jobs"], [NEAR]
    yield f"1 attribute within {NEAR:,}", n, RUNS, lambda: ours(*one), if_there(lambda: peers(*one))
    all_ = list(values), cutoffs
    name = f"{len(values)} attributes within {STEPS} cutoffs up to {FAR:,}"
    yield name, n, 1, lambda: ours(*all_), if_there(lambda: peers(*all_))

    points = np.sort(random.choice(n, POINTS, replace=False))
    diameter = 1e9

    def nearest() -> np.ndarray:
        found = sssp_many(graph.reverse, graph.ids[points], result="nearest", k=NEAREST)
        return found["distance"].to_numpy().reshape(-1, NEAREST)

    def nearest_pois() -> np.ndarray:
        places = pd.Series(points.astype(float))
        network.set_pois("points", diameter, NEAREST, places, places * 0)
        return network.nearest_pois(diameter, "points", num_pois=NEAREST).to_numpy()

    yield f"the {NEAREST} nearest of {POINTS} targets", n, RUNS, nearest, if_there(nearest_pois)

    sources = random.choice(n, min(n, PAIRS // 8), replace=False)
    near = sssp_many(graph, graph.ids[np.sort(sources)], result="distances", cutoff=PAIRS_WITHIN)
    rows = near.iloc[random.permutation(len(near))[:PAIRS]]
    origins, ends = rows["source"].to_numpy(), rows["vertex"].to_numpy()

    def pairs() -> np.ndarray:
        return sssp_pairs(graph, origins, ends)["distance"].to_numpy()

    def path_lengths() -> np.ndarray:
        return np.array(
            network.shortest_path_lengths(
                graph.to_numbers(origins), graph.to_numbers(ends), "weight"
            )
        )

    yield (
        f"pairs within {PAIRS_WITHIN:,} of each other",
        len(rows),
        RUNS,
        pairs,
        if_there(path_lengths),
    )


def work_on_hubs(graph: Graph) -> Iterator[tuple[str, int, int, Answer, Answer | None]]:
    """As ``works_on_roads``."""
    sources = np.random.default_rng(2).integers(0, graph.n_vertices, NEIGHBORS_OF)

    def ours() -> np.ndarray:
        return bfs_many(graph, graph.ids[sources], result="within", cutoffs=[HOPS])[
            "vertices"
        ].to_numpy()

    peer = None
    if HAS["igraph"]:
        import igraph

        tails = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
        other = igraph.Graph(
            n=graph.n_vertices, edges=np.stack([tails, graph.targets], axis=1), directed=True
        )

        def neighborhoods() -> np.ndarray:
            return np.array(other.neighborhood_size(sources.tolist(), order=HOPS, mode="out"))

        peer = neighborhoods
    yield f"vertices within {HOPS} hops", sources.size, RUNS, ours, peer


def work_beside_whole_searches(
    graph: Graph,
) -> Iterator[tuple[str, int, int, Answer, Answer | None]]:
    """As ``works_on_roads``."""
    sources = np.random.default_rng(2).integers(0, graph.n_vertices, WHOLE_SEARCHES)

    def ours() -> np.ndarray:
        return bfs_many(graph, graph.ids[sources], result="within", cutoffs=[HOPS])[
            "vertices"
        ].to_numpy()

    peer = None
    if HAS["networkit"]:
        import networkit

        tails = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
        other = networkit.GraphFromCoo(
            (tails, graph.targets.astype(np.int64)), n=graph.n_vertices, directed=True
        )

        def counts() -> np.ndarray:
            search = networkit.distance.SPSP(other, sources.tolist())
            search.run()
            return (search.getDistances(asarray=True) <= HOPS).sum(axis=1)

        peer = counts
    yield f"vertices within {HOPS} hops, beside whole searches", sources.size, RUNS, ours, peer


def equal(one: Any, other: Any) -> bool:
    """Whether results are equal; pandana rounds distances to float32."""
    return bool(
        np.allclose(
            np.asarray(one, dtype=float), np.asarray(other, dtype=float), rtol=2**-22, atol=0
        )
    )


def measured(
    name: str, graph: str, size: int, runs: int, ours: Answer, peer: Answer | None, library: str
) -> dict:
    ours()  # compiles
    row = {"graph": graph, "work": name, "size": size, "peer": None if peer is None else library}
    times: list[tuple[float, float]] = []
    for _ in range(runs):  # in turn, so that what else the machine does slows both
        seconds, found = least(ours, 1)
        peer_seconds, expected = (0.0, found) if peer is None else least(peer, 1)
        if not equal(found, expected):
            raise SystemExit(f"{name}: results differ from those of {library}")
        times.append((seconds, peer_seconds))
    seconds, peer_seconds = (round(min(each), 4) for each in zip(*times, strict=True))
    row |= {"seconds": seconds, "peer_seconds": None if peer is None else peer_seconds}
    print(json.dumps(row), flush=True)
    return row


def seconds_of_jobs(folder: Path, roads: Graph, hubs: Graph) -> dict[str, float]:
    """Measure each work as a job, from the command to the finished folder, by the name of the work.

    Modules are compiled to bytecode once, as an installation leaves them.
    """
    random = np.random.default_rng(1)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        inputs = Path(name)
        environment = os.environ | {
            "PYTHONPYCACHEPREFIX": f"{inputs}/bytecode",
            "PYTHONDONTWRITEBYTECODE": "",
        }
        values = {
            name: random.integers(0, 100, roads.n_vertices) for name in ("jobs", "shops", "beds")
        }
        points = random.choice(roads.ids, POINTS, replace=False)
        near = sssp_many(
            roads, random.choice(roads.ids, PAIRS // 8, replace=False), cutoff=PAIRS_WITHIN
        )
        near = near.iloc[random.permutation(len(near))[:PAIRS]]
        tables = {
            "all": {"source": roads.ids},
            "points": {"source": points},
            "people": {"source": random.integers(0, hubs.n_vertices, NEIGHBORS_OF)},
            "values": {"vertex": roads.ids} | values,
            "pairs": {"origin": near["source"], "destination": near["vertex"]},
        }
        tables["people"]["source"] = np.unique(hubs.ids[tables["people"]["source"]])
        for each, columns in tables.items():
            pd.DataFrame(columns).to_parquet(inputs / f"{each}.parquet")
        all_, attributes = (
            f"--sources {inputs}/all.parquet",
            f"--vertices {inputs}/values.parquet --result opportunities",
        )
        cutoffs = ",".join(str(FAR * (i + 1) // STEPS) for i in range(STEPS))
        on_roads = f"{folder}/USA-road-d.NY.parquet --directed --algorithm sssp"
        works = {
            f"distances within {NEAR:,}": f"{on_roads} {all_} --cutoff {NEAR}",
            "one vertex: within 0": f"{on_roads} {all_} --result within --cutoffs 0",
            f"1 attribute within {NEAR:,}": f"{on_roads} {all_} {attributes} --values jobs --cutoffs {NEAR}",
            f"3 attributes within {STEPS} cutoffs up to {FAR:,}": (
                f"{on_roads} {all_} {attributes} --values jobs,shops,beds --cutoffs {cutoffs}"
            ),
            f"the {NEAREST} nearest of {POINTS} targets": (
                f"{on_roads} --sources {inputs}/points.parquet --result nearest --nearest-k {NEAREST}"
            ),
            f"pairs within {PAIRS_WITHIN:,} of each other": f"{on_roads} --pairs {inputs}/pairs.parquet",
            f"vertices within {HOPS} hops": (
                f"{folder}/soc-Slashdot0902.parquet --directed --algorithm bfs --sources {inputs}/people.parquet "
                f"--result within --cutoffs {HOPS}"
            ),
        }
        for work, words in works.items():
            runs = iter(range(9))

            def run() -> None:
                command = [sys.executable, "-m", "pipelines.batch_sources", *words.split()]  # noqa: B023
                output = ["--output", f"{inputs}/{work} {next(runs)}"]  # noqa: B023
                subprocess.run(
                    [*command, *output], check=True, capture_output=True, cwd=ROOT, env=environment
                )

            found[work] = round(least(run)[0], 3)
            print(work, "as a job", found[work], flush=True)
    return found


def matched(small: Graph, large: Graph, n_sources: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids of random vertices of two graphs; the i-th of both reach equally many vertices. Some may find no other."""
    of_small, of_large = (
        bfs_many(each, "all", result="within", cutoffs=[DEPTH])["vertices"].to_numpy()
        for each in (small, large)
    )
    random = np.random.default_rng(3)
    chosen, others = (
        random.choice(of_small.size, n_sources, replace=False),
        random.permutation(of_large.size),
    )
    chosen, others = (
        chosen[np.argsort(of_small[chosen])],
        others[np.argsort(of_large[others], kind="stable")],
    )
    wanted, there = of_small[chosen], of_large[others]
    # The i-th vertex of a size takes the i-th one of that size in the other graph.
    places = np.searchsorted(there, wanted) + np.arange(n_sources) - np.searchsorted(wanted, wanted)
    is_there = places < np.searchsorted(there, wanted, "right")
    order = random.permutation(np.count_nonzero(is_there))  # not by their reach
    return small.ids[chosen[is_there][order]], large.ids[others[places[is_there]][order]]


def growth(small: Graph, large: Graph) -> dict:
    """Measure nanoseconds per vertex reached in two graphs, by hops, from scattered vertices and from all.

    The searches from scattered vertices reach equally many vertices in both. The larger graph has fewer searches per vertex
    there, so that each finds less of it in the caches.
    """
    some = matched(small, large, SCATTERED)
    works = {
        (name, part): (graph, asked)
        for name, graph, sources in (("small", small, some[0]), ("large", large, some[1]))
        for part, asked in (("some", sources), ("all", "all"))
    }
    nanoseconds = dict.fromkeys(works, np.inf)
    for _ in range(7):  # in turn, so that what else the machine does slows all
        for key, (graph, asked) in works.items():
            counts, seconds = timed(
                lambda: bfs_many(graph, asked, result="within", cutoffs=[DEPTH])  # noqa: B023
            )
            nanoseconds[key] = min(
                nanoseconds[key], 1e9 * seconds / float(counts["vertices"].sum())
            )
    found: dict[str, Any] = {"sources": some[0].size}
    for name, graph in (("small", small), ("large", large)):
        plan = plan_bfs_many(graph, n_sources=graph.n_vertices, max_depth=DEPTH)
        found[name] = {"vertices": graph.n_vertices, "strategy": plan.strategy.name}
        found[name] |= {
            f"nanoseconds_of_{part}": round(nanoseconds[name, part], 1) for part in ("some", "all")
        }
    return found


def on_a_gpu(folder: Path) -> dict:
    """Measure sums within a cutoff of all vertices on a GPU, to a frame, next to another strategy."""
    roads = read_graph(folder / "USA-road-d.NY.parquet", directed=True).to("cpu")
    edges = pd.read_parquet(folder / "USA-road-NE-topology.parquet")
    # The larger network has no weights: each edge takes that of a random edge of the smaller one.
    weights = np.random.default_rng(3).choice(roads.weights, len(edges))
    large = graph_from_edges(edges["src"], edges["dst"], weights, directed=False).to("cpu")
    works = []
    for name, graph, cutoff in (
        ("USA-road-d.NY", roads, NEAR),
        ("USA-road-d.NY", roads, FAR),
        ("USA-road-NE", large, WALK),
    ):
        values = np.random.default_rng(1).integers(0, 100, graph.n_vertices)
        there = graph.to("cuda")

        def sums(where: Graph, sources: Any, strategy: str = "auto") -> np.ndarray:
            options = {"values": {"jobs": values}, "cutoffs": [cutoff], "strategy": strategy}  # noqa: B023
            found = sssp_many(where, sources, result="opportunities", **options)["jobs"]
            return found.to_numpy()

        sums(there, "all")
        few = graph.ids[:CHECKED]
        sums(there, few, WHOLE)
        seconds, found = least(lambda: sums(there, "all"))  # noqa: B023
        peer_seconds, expected = least(lambda: sums(there, few, WHOLE), 2)  # noqa: B023
        if not np.array_equal(found[:CHECKED], sums(graph, few)) or not np.array_equal(
            found[:CHECKED], expected
        ):
            raise SystemExit(f"{name}: results differ")
        row = {"graph": name, "work": f"1 attribute within {cutoff:,}", "size": graph.n_vertices}
        peer_seconds *= graph.n_vertices / few.size
        works.append(
            row
            | {"seconds": round(seconds, 4), "peer": WHOLE, "peer_seconds": round(peer_seconds, 4)}
        )
        print(json.dumps(works[-1]), flush=True)
    return about((), "python -m scripts.bench --suite short GRAPHS --gpu") | {"works": works}


def nearest_targets(folder: Path) -> None:
    """Print the seconds of each strategy for the nearest targets of few and of many sources, and what ``auto`` takes."""
    here = read_graph(folder / "USA-road-d.NY.parquet", directed=True).to("cpu")
    graph, ids, random = (
        here.to("cuda" if cuda.available() else "cpu"),
        np.asarray(here.ids),
        np.random.default_rng(1),
    )
    points = np.sort(random.choice(graph.n_vertices, POINTS, replace=False))
    for n_sources in (10, 100, 1000, 10_000):
        sources = np.sort(random.choice(ids, n_sources, replace=False))
        plan = REGISTRY.plan_multi_source(
            graph, n_sources=n_sources, result="nearest_targets", strategy="auto", targets=ids[points], forms=("sparse",),
            nearest=Nearest(NEAREST, [points]),
        )  # fmt: skip
        found = {}
        for each in plan.ranked(n_sources):
            if each.seconds > MOST:
                continue

            def run(strategy: str = each.name) -> Any:
                options = {"targets": ids[points], "k": NEAREST, "strategy": strategy}
                return sssp_many(graph, sources, result="nearest", **options)  # noqa: B023

            run()
            found[each.name] = {
                "estimated": float(f"{each.seconds:.3g}"),
                "seconds": round(least(run)[0], 4),
            }
        auto = round(least(lambda: run("auto"))[0], 4)
        line = {
            "sources": n_sources,
            "auto": plan.strategy.name,
            "seconds": auto,
            "strategies": found,
        }
        print(
            json.dumps(line | {"best": min(found, key=lambda name: found[name]["seconds"])}),
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", type=Path)
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--nearest", action="store_true")
    options = parser.parse_args(arguments)
    if options.nearest:
        nearest_targets(options.graphs)
        return 0
    if options.gpu:
        write_record(options.output, read_record(RECORD) | {"gpu": on_a_gpu(options.graphs)})
        return 0
    roads = options.graphs / "USA-road-d.NY.parquet"
    graph = read_graph(roads, directed=True)
    hubs = read_graph(options.graphs / "soc-Slashdot0902.parquet", directed=True, weighted=False)
    rows = [measured(name, roads.stem, *work, "pandana") for name, *work in works_on_roads(graph)]
    rows += [
        measured(name, "soc-Slashdot0902", *work, "igraph") for name, *work in work_on_hubs(hubs)
    ]
    jobs = seconds_of_jobs(options.graphs, graph, hubs)
    rows = [row | {"job_seconds": jobs[row["work"]]} for row in rows]
    rows += [
        measured(name, "soc-Slashdot0902", *work, "NetworKit")
        for name, *work in work_beside_whole_searches(hubs)
    ]
    large = read_graph(
        options.graphs / "USA-road-NE-topology.parquet", directed=False, weighted=False
    )
    small = read_graph(roads, directed=True, weighted=False)
    record = about(("numpy", "numba", *HAS), "python -m scripts.bench --suite short GRAPHS")
    record |= {"works": rows, "growth": growth(small, large)}
    before = read_record(RECORD) if RECORD.exists() else {}
    write_record(options.output, record | ({"gpu": before["gpu"]} if "gpu" in before else {}))
    return 0
