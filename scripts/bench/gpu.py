"""One source and many on a GPU, compared with cuGraph and Gunrock; results are compared and certified before they are timed.

Lattices, R-MAT and uniform graphs are generated on the device. Weights 1 to 255 come from a hash of an edge's ends. Sources
are random vertices of the component of a vertex of the highest degree, the same ones for all libraries.

one source    the median over 16 sources, the best of three calls each, the clock around the whole call on a ready graph
N sources     one call, distances left on the device
a loop        of cuGraph over up to 32 sources, of Gunrock over up to 16, as many as ``PEER_SECONDS`` permit

Of several ways to search with another library, the fastest counts. Gunrock's times are those that it reports: they leave
out that it makes its buffers and fills the distances (scripts/bench/gunrock.py).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from scripts.bench import gunrock
from scripts.measure.environment import timed_on_gpu
from scripts.measure.graphs import chosen
from scripts.measure.work import OURS, Call, Inputs, Repeats, Timed, Work, planner
from scripts.papers import graphs

PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "pylibcugraph-cu13", "pylibcugraph-cu12")
GRAPHS = chosen(
    *("USA-road-NE", "USA-road-NY", "lattice 1500", "R-MAT 20", "R-MAT 22", "uniform 2M"),
    *("R-MAT 24", "lattice 4000", "cnr-2000", "soc-Slashdot0902"),
)
SINGLE = 16
MANY = (32, 256, 1024, 10_000)
LOOPED = 32
LARGE = 400_000_000  # graphs with more stored edges have 256 sources as the largest number
PEER_SECONDS = 4.0  # of the searches of another library, per graph and algorithm
MANY_SECONDS = 10.0  # a call from many sources that would take longer is left out


class Case:
    """One graph on the device, and its sources."""

    def __init__(self, inputs: Inputs, name: str):
        from kepler_traverse import plan_bfs
        from kepler_traverse._arrays import to_host

        made = graphs.make(GRAPHS[name], inputs.graphs, inputs.device, inputs.seed)
        self.hops = made.hops
        self.weighted = made.weighted
        self.directed = made.source.directed
        hub = int(self.hops.derived.degrees.argmax())
        reached = plan_bfs(self.hops, predecessors=False).run(hub).distance >= 0
        vertices = np.flatnonzero(to_host(reached))
        random = np.random.default_rng(inputs.seed)
        count = max(MANY)
        self.sources = random.choice(vertices, count, replace=count > vertices.size)
        self._of_baseline = {}
        self._of_gunrock = {}

    def graph(self, algorithm: str) -> Any:
        if algorithm == "bfs":
            return self.hops
        return self.weighted

    def baseline(self, algorithm: str) -> tuple[dict[str, dict[int, float]], dict[int, Any]]:
        """Return seconds per source of each variant of cuGraph, and distances, for as many sources as time permits."""
        from pipelines.comparison import choose_baseline, in_our_encoding, refuse_rounded

        if algorithm in self._of_baseline:
            return self._of_baseline[algorithm]
        graph = self.graph(algorithm)
        if graph.n_edges > np.iinfo(np.int32).max:
            raise NotImplementedError("cuGraph takes fewer edges")
        times = {}
        expected = {}
        _, ways = choose_baseline(graph, algorithm)
        for way, traverse in ways.items():
            traverse(int(self.sources[0]))  # loads and fills the caches
            times[way], began = {}, time.perf_counter()
            for source in self.sources[:LOOPED].tolist():
                if times[way] and time.perf_counter() - began > PEER_SECONDS / len(ways):
                    break
                answer, times[way][source] = timed_on_gpu(partial(traverse, source))
                if source in expected or len(expected) >= SINGLE:
                    continue
                distance = in_our_encoding(answer, graph, algorithm)
                if algorithm == "sssp":
                    refuse_rounded(distance, np.dtype(np.float32))
                    distance = distance.astype(np.float32)
                expected[source] = distance
        self._of_baseline[algorithm] = times, expected
        return times, expected

    def gunrock(self, algorithm: str) -> dict[str, tuple[dict[int, float], dict[int, Any]]]:
        """Return seconds per source and distances of each way to search with Gunrock that finds our distances."""
        if algorithm in self._of_gunrock:
            return self._of_gunrock[algorithm]
        graph = self.graph(algorithm)
        plan = planner(algorithm)(graph, predecessors=False)
        expected = {}
        ways = {}
        sources = np.unique(self.sources[:SINGLE])
        found = gunrock.times_and_distances(graph, algorithm, sources, PEER_SECONDS)
        for way, times, distances in found:
            for source in times.keys() - expected.keys():
                expected[source] = plan.run(source).distance.copy()
            wrong = differences(expected, distances)
            if wrong:
                print(f"Gunrock, {algorithm}, {way} does not count: {wrong}", flush=True)
            else:
                ways[way] = times, distances
        self._of_gunrock[algorithm] = ways
        return ways


@lru_cache(1)
def case_of(inputs: Inputs, graph: str) -> Case:
    return Case(inputs, graph)


def differences(expected: dict[int, Any], found: dict[int, Any]) -> str:
    """Compare distances from the sources that both have."""
    for source in expected.keys() & found.keys():
        wrong = int((expected[source] != found[source]).sum())
        if wrong:
            return f"{wrong} distances from source {source} differ"
    return ""


def best_of_three(call: Call) -> tuple[Any, float]:
    found = [timed_on_gpu(call) for _ in range(3)]
    return found[0][0], min(taken for _, taken in found)


def single(case: Case, algorithm: str) -> Call:
    """Prepare searches from one source after the other; each is certified."""
    from kepler_traverse import certify

    graph = case.graph(algorithm)
    plan = planner(algorithm)(graph)
    sources = case.sources[:SINGLE].tolist()
    distances = {}
    for source in sources:
        result = plan.run(source)
        certify(graph, result).require()
        distances[source] = result.distance.copy()

    def run() -> Timed:
        times = [best_of_three(partial(plan.run, source))[1] for source in sources]
        strategy = {"strategy": plan.strategy.name}
        return Timed(distances, statistics.median(times), strategy)

    return run


def many(case: Case, algorithm: str, count: int) -> Call:
    """Prepare a search from many sources; a group is compared with single searches."""
    graph = case.graph(algorithm)
    if count > 256 and graph.n_edges > LARGE:
        raise NotImplementedError("the graph is too large for so many sources")
    sources = case.sources[:count]
    plan = planner(algorithm, many=True)(graph, n_sources=count)
    alone = planner(algorithm)(graph, predecessors=False)
    size = min(count, plan.group)
    group, taken = timed_on_gpu(lambda: plan.run(sources[:size]))
    if taken * count / size > MANY_SECONDS:
        raise NotImplementedError(f"it would take {taken * count / size:.0f} s")
    distances = {}
    for i in range(0, size, max(1, size // 8)):
        source = int(sources[i])
        one = alone.run(int(sources[i])).distance
        if not bool((group[i].distance.view(np.int32) == one.view(np.int32)).all()):
            raise SystemExit(f"{algorithm}: source {source} of {count} differs from the same alone")
        distances[source] = group[i].distance.copy()

    def whole() -> None:
        for _group in plan.iter_groups(sources):
            pass

    def run() -> Timed:
        _, seconds = timed_on_gpu(whole)
        return Timed(distances, seconds, {"strategy": plan.strategy.name})

    return run


def cugraph(case: Case, algorithm: str, middle: Any) -> Call:
    """Prepare the loop over cuGraph; ``middle`` is of the times of its sources, by the best variant."""
    import pylibcugraph  # noqa: F401 (absent: left out)

    times, expected = case.baseline(algorithm)
    of_ways = {way: middle(found.values()) for way, found in times.items()}
    best = min(of_ways, key=of_ways.__getitem__)
    return lambda: Timed(expected, of_ways[best], {"way": best})


def beside_gunrock(case: Case, algorithm: str, middle: Any) -> Call:
    """Prepare the loop over Gunrock, as `cugraph` does."""
    ways = case.gunrock(algorithm)
    if not ways:
        raise NotImplementedError("no way to search with Gunrock finds our distances")
    of_ways = {way: middle(times.values()) for way, (times, _) in ways.items()}
    best = min(of_ways, key=of_ways.__getitem__)
    return lambda: Timed(ways[best][1], of_ways[best], {"way": best})


def facts_of(case: Case, algorithm: str) -> dict:
    graph = case.graph(algorithm)
    return {"vertices": graph.n_vertices, "edges": graph.n_edges}


def works(inputs: Inputs) -> Iterator[Work]:
    for graph in GRAPHS if inputs.device == "cuda" else ():
        for algorithm in ("bfs", "sssp"):
            loops = {
                "cuGraph": partial(cugraph, algorithm=algorithm),
                "Gunrock": partial(beside_gunrock, algorithm=algorithm),
            }
            given = {
                "graph": graph,
                "case": partial(case_of, graph=graph),
                "check": differences,
            }
            yield Work(
                name=f"{algorithm}, one source",
                peers={
                    OURS: partial(single, algorithm=algorithm),
                    **{
                        name: partial(loop, middle=statistics.median)
                        for name, loop in loops.items()
                    },
                },
                facts=partial(facts_of, algorithm=algorithm),
                repeats=Repeats(most=1),
                **given,
            )
            for count in MANY:
                peers = {OURS: partial(many, algorithm=algorithm, count=count)}
                yield Work(name=f"{algorithm}, {count:,} sources", size=count, peers=peers, **given)
            mean = {name: partial(loop, middle=statistics.mean) for name, loop in loops.items()}
            yield Work(name=f"{algorithm}, a loop", peers=mean, repeats=Repeats(most=1), **given)


def traced(case: Case, algorithm: str) -> list[dict]:
    """Return the iterations of a search, with a kernel that records them, from the source with the median BFS time."""
    from kepler_traverse import plan_bfs
    from kepler_traverse.bfs import persistent as bfs_persistent
    from kepler_traverse.bfs import tuning as bfs_params
    from kepler_traverse.search.query import Query
    from kepler_traverse.sssp import near_far_gpu as sssp_persistent
    from kepler_traverse.sssp import tuning as sssp_params

    plan = plan_bfs(case.hops)
    sources = case.sources[:SINGLE].tolist()
    times = {source: best_of_three(partial(plan.run, source))[1] for source in sources}
    middle = statistics.median_low(times.values())
    source = min(times, key=lambda source: abs(times[source] - middle))
    of = {"bfs": (bfs_persistent, bfs_params), "sssp": (sssp_persistent, sssp_params)}
    module, params = of[algorithm]
    tuning = params.Tuning(trace=20_000)
    traverse = module.plan(case.graph(algorithm), Query(tuning=tuning))
    for _ in range(3):
        traverse(source)
    return [iteration._asdict() for iteration in traverse.iterations()]
