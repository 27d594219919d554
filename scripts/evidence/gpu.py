"""Measurements of scripts/evidence on a GPU: parity with cuGraph, equal bits, certificates (and their cost on a CPU).

Each measurement prints its progress. A failure is printed with its traceback and listed under ``errors`` in the figures,
and the others continue.
"""

from __future__ import annotations

import hashlib
import statistics
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import config, set_num_threads

from kepler_traverse import (
    cuda,
    graph_from_edges,
    plan_bfs,
    plan_bfs_many,
    plan_sssp,
    plan_sssp_many,
)
from kepler_traverse._arrays import namespace, to_host
from kepler_traverse.bfs import registry as bfs
from kepler_traverse.certificate import certify, certify_many
from kepler_traverse.errors import HierarchyError
from kepler_traverse.sssp import registry as sssp
from pipelines.comparison import choose_baseline, in_our_encoding
from scripts.evidence import fault_injection
from scripts.measure.environment import free_pool, timed_on_gpu
from scripts.measure.graphs import GraphSource, chosen
from scripts.papers import graphs as papers_graphs

KINDS = ("integers", "floats", "doubles")


class Algorithm(NamedTuple):
    """The plans of an algorithm, and its strategies for one source and for several but those of the papers."""

    one: Callable
    many: Callable
    strategies: Sequence[Any]
    several: Sequence[Any]

    def of(self, device: str) -> list:
        return [row for row in self.strategies if (row.device, row.sums) == (device, "float")]

    def several_of(self, device: str) -> list:
        return [row for row in self.several if (row.device, row.sums) == (device, "float")]


ALGORITHMS = {
    "bfs": Algorithm(plan_bfs, plan_bfs_many, bfs.STRATEGIES, bfs.MULTI_SOURCE),
    "sssp": Algorithm(plan_sssp, plan_sssp_many, sssp.STRATEGIES, sssp.MULTI_SOURCE),
}
COST_GRAPHS = tuple(
    chosen("USA-road-NE", "cnr-2000", "soc-Slashdot0902", "dblp-2010", "R-MAT 20").values()
)
COST_SOURCES = {
    ("cpu", "bfs"): 64,
    ("cpu", "sssp"): 16,
    ("cuda", "bfs"): 1024,
    ("cuda", "sssp"): 64,
}
COST_REPEATS = 7
COST_SECONDS = 2.0  # number of runs of a median; fewer if they take too long
MAX_ERRORS = 5
MAX_BATCH = 21  # sources
# For real graphs: numbers of sources at once, number of different ones among them, and the largest graph, in vertices, on
# which every strategy runs and not only the planned one.
GROUP_SIZES = (1, 31, 32, 33, 64, 1000, 1024)
DIFFERENT = 48
EVERY_ROW = 100_000
COMPARED_AT_ONCE = 64


@contextmanager
def attempt(errors: list[str], what: str):
    """Print and record an exception, and continue."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        errors.append(f"{what}: {type(error).__name__}: {error}")


def held() -> int:
    """Return the bytes of CuPy's pool. It holds freed memory, so this is the peak since it was emptied."""
    return cuda.cp.get_default_memory_pool().total_bytes()


def give_back(device: str) -> None:
    if device == "cuda":
        free_pool()


def digests(result) -> tuple[str, str]:
    """SHA-256 of distances and of predecessors."""
    return tuple(
        hashlib.sha256(to_host(array).tobytes()).hexdigest()
        for array in (result.distance, result.predecessor)
    )


def random_graph(seed: int, weight_type: str = "auto"):
    """Return a graph of 20 to 3,000 vertices and up to 100,000 edges, even or skewed, and its kind of weights."""
    rng = np.random.default_rng([7, seed])
    n = int(np.exp(rng.uniform(np.log(20), np.log(3000))))
    m = min(100_000, int(n * rng.uniform(1, 40)))
    if seed % 25 == 24:
        n = 3000
        m = 100_000
    kind = KINDS[seed % len(KINDS)]
    weights = rng.integers(0, 31, m)
    if kind != "integers":
        weights = rng.exponential(1, m) * 10.0 ** rng.integers(-3, 4, m)
    if kind == "floats":
        weights = weights.astype(np.float32)
    src, dst = (n * rng.random((2, m)) ** (3 if seed % 5 == 0 else 1)).astype(np.int64)
    return graph_from_edges(
        src, dst, weights, directed=bool(seed % 2), weight_type=weight_type
    ), kind


def measure_parity(options) -> dict:
    """Distances of all strategies against cuGraph's, bit for bit, and each result certified."""
    began = time.perf_counter()
    errors = []
    rows = {}
    done = 0
    for seed in range(options.parity_graphs):
        if time.perf_counter() - began > options.parity_seconds or len(errors) >= MAX_ERRORS:
            break
        graph, kind = random_graph(seed)
        sources = np.random.default_rng(seed).integers(0, graph.n_vertices, 3).tolist()
        with attempt(errors, f"graph {seed}"):
            graph = graph.to("cuda")
            for algorithm in ALGORITHMS:
                name = "bfs" if algorithm == "bfs" else f"sssp, {kind}"
                row = rows.setdefault(name, Counter())
                row["graphs"] += 1
                _compare(graph, algorithm, sources, row)
        done += 1
        if done % 100 == 0:
            print(f"{done} graphs, {time.perf_counter() - began:.0f} s: {rows}", flush=True)
    seconds = round(time.perf_counter() - began, 1)
    about = {"graphs": done, "asked": options.parity_graphs, "seconds": seconds}
    return about | {"rows": rows, "errors": errors}


def _compare(graph, algorithm: str, sources, counts: Counter[str]) -> None:
    calls = ALGORITHMS[algorithm]
    _, ways = choose_baseline(graph, algorithm)
    theirs = [
        [in_our_encoding(traverse(s), graph, algorithm) for traverse in ways.values()]
        for s in sources
    ]
    for strategy in calls.of("cuda"):
        plan = calls.one(graph, strategy=strategy.name)
        for source, answers in zip(sources, theirs, strict=True):
            result = plan.run(source)
            counts["results"] += 1
            counts["certified"] += certify(graph, result).valid
            bits = result.distance.view(f"i{result.distance.itemsize}")
            same_type = (answer.astype(result.distance.dtype, copy=False) for answer in answers)
            differing = sum(int((bits != each.view(bits.dtype)).sum()) for each in same_type)
            counts["equal"] += not differing
            counts["distances"] += bits.size * len(answers)
            counts["differing"] += differing


def measure_bits(options, device: str = "cuda") -> dict:
    """Distances and predecessors of all strategies, batches, threads and repetitions against the first one's on a CPU."""
    counts = Counter()
    errors = []
    about = {"threads": config.NUMBA_NUM_THREADS, "errors": errors}
    for seed in range(options.bits_graphs):
        for weight_type in ("auto", "float64"):
            host, _ = random_graph(seed, weight_type)
            n_sources = min(MAX_BATCH, host.n_vertices)
            sources = np.random.default_rng(seed).choice(host.n_vertices, n_sources, replace=False)
            counts["graphs"] += 1
            graph = host.to(device)
            for metric in ("weights", "hops"):
                with suppress(HierarchyError):  # of a graph that has none that pays
                    graph.hierarchy(metric)
            for algorithm, calls in ALGORITHMS.items():
                on_the_cpu = calls.one(host, strategy=calls.of("cpu")[0].name)
                expected = {source: digests(on_the_cpu.run(source)) for source in sources.tolist()}
                for what, results in _ways(graph, algorithm, sources):
                    if len(errors) >= MAX_ERRORS:
                        return counts | about
                    with attempt(errors, f"graph {seed}, {weight_type}, {algorithm}, {what}"):
                        for result in results():
                            right = expected[result.source]
                            found = digests(result)
                            counts["distances"] += 1
                            counts["predecessors"] += 1
                            counts["equal"] += found[0] == right[0]
                            counts["equal_predecessors"] += found[1] == right[1]
        print(f"graph {seed}: {counts}", flush=True)
    return counts | about


def _ways(graph, algorithm: str, sources):
    """Yield the name of a variant and a function that yields its results: each source twice on a GPU, or by some threads."""
    calls = ALGORITHMS[algorithm]

    def one_by_one(name, threads):
        set_num_threads(threads)
        plan = calls.one(graph, strategy=name)
        yield from (plan.run(source) for source in [*sources[:5].tolist(), *sources[:5].tolist()])
        set_num_threads(config.NUMBA_NUM_THREADS)

    def in_batches(its_graph, name, size):
        plan = calls.many(its_graph, n_sources=size, strategy=name, result="predecessors")
        for first in range(0, sources.size, size):
            for group in plan.iter_groups(sources[first : first + size]):
                yield from group

    counts = {config.NUMBA_NUM_THREADS}
    several = calls.several_of("cuda")
    if graph.device == "cpu":
        counts.add(1)
        several = []
    for strategy in calls.of(graph.device):
        for threads in sorted(counts):
            name = f"{strategy.name}, {threads} threads"
            yield name, partial(one_by_one, strategy.name, threads)
    for strategy in several:
        if "hierarchy" in strategy.needs and strategy.unsupported_reason(graph):
            continue
        its_graph = _with_edges_for(graph, strategy)
        for size in (1, 7, sources.size):
            in_these = partial(in_batches, its_graph, strategy.name, size)
            yield f"{strategy.name}, {size} at once", in_these


def measure_many(options) -> dict:
    """Compare many sources at once with each source alone, bit for bit, on all graphs of a folder."""
    errors = []
    graphs = {}
    strategies = set()
    for path in sorted(options.graphs.glob("*.parquet")):
        counts = graphs[path.stem] = {"searches": 0, "equal": 0}
        for directed in (True, False):
            source = GraphSource(path.stem, file=path.stem, directed=directed)
            with attempt(errors, f"{path.stem}, {'directed' if directed else 'undirected'}"):
                made = papers_graphs.make(source, options.graphs, "cuda", 1)
                for algorithm, graph in (("bfs", made.hops), ("sssp", made.weighted)):
                    strategies |= _multi_source_against_single(graph, algorithm, counts)
                    give_back("cuda")
        print(f"{path.stem}: {counts}", flush=True)
    about = {"sizes": GROUP_SIZES, "different": DIFFERENT, "strategies": sorted(strategies)}
    return about | {"graphs": graphs, "errors": errors}


def _with_edges_for(graph, strategy):
    """Return a graph with its edges where a strategy takes them."""
    if strategy.edges == "host":
        return graph.to("cuda", edges="host")
    return graph


def _multi_source_against_single(graph, algorithm: str, counts: dict) -> set[str]:
    """Count searches and equal ones; returns the strategies that ran.

    Sources are of any component. All but the smallest groups have duplicates.
    """
    calls = ALGORITHMS[algorithm]
    rng = np.random.default_rng(1)
    different = rng.choice(graph.n_vertices, min(DIFFERENT, graph.n_vertices), replace=False)
    single = calls.one(graph)
    alone = [single.run(source).distance.copy() for source in different.tolist()]
    xp = namespace(alone[0])
    alone = xp.stack(alone)
    bits = f"i{alone.dtype.itemsize}"
    searched = {"auto": graph}
    if graph.n_vertices <= EVERY_ROW:
        searched = {
            strategy.name: _with_edges_for(graph, strategy) for strategy in calls.several_of("cuda")
        }
    taken = set()
    for name, its_graph in searched.items():
        for size in GROUP_SIZES:
            plan = calls.many(its_graph, n_sources=size, strategy=name)
            taken.add(plan.strategy.name)
            chosen = rng.integers(0, different.size, size)
            found = (group.distance for group in plan.iter_groups(different[chosen]))
            pieces = (
                part[begin : begin + COMPARED_AT_ONCE]
                for part in found
                for begin in range(0, len(part), COMPARED_AT_ONCE)
            )
            for piece in pieces:
                expected = alone[xp.asarray(chosen[: len(piece)])]
                same = piece.astype(alone.dtype, copy=False).view(bits) == expected.view(bits)
                counts["equal"] += int(same.all(axis=1).sum())
                counts["searches"] += len(piece)
                chosen = chosen[len(piece) :]
    return taken


def measure_faults(options) -> dict:
    """Certify seeded faults and results of traversals on a GPU."""
    answers, alarms = fault_injection.count_false_alarms(options.gpu_answers, device="cuda")
    print(f"{answers} correct results, {alarms} false alarms", flush=True)
    return {
        "answers": answers,
        "alarms": alarms,
        "classes": fault_injection.study_faults(options.gpu_cases, "cuda"),
    }


def measure_cost(options, device: str = "cuda") -> dict:
    """Measure traversals and their certificates, which must first accept a correct result and reject a wrong one."""
    rows = []
    errors = []
    for source in COST_GRAPHS:
        with attempt(errors, source.name):
            made = papers_graphs.make(source, options.graphs, device, 1)
            for algorithm, graph in (("bfs", made.hops), ("sssp", made.weighted)):
                with attempt(errors, f"{source.name}, {algorithm}"):
                    rows.append(
                        {"graph": source.name, "algorithm": algorithm} | _cost(graph, algorithm)
                    )
                    print(rows[-1], flush=True)
                give_back(device)
    return {"rows": rows, "errors": errors}


def _cost(graph, algorithm: str) -> dict:
    calls = ALGORITHMS[algorithm]
    seconds = {"cuda": _median, "cpu": _least}[graph.device]
    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    sources = np.random.default_rng(1).choice(
        candidates, COST_SOURCES[graph.device, algorithm], replace=candidates.size < 2000
    )
    one = calls.one(graph)
    many = calls.many(graph, n_sources=sources.size)
    few = sources[:5].tolist()
    results = [one.run(source).copy() for source in few]
    _must_distinguish(
        f"certify, {algorithm}",
        partial(certify, graph),
        results[0],
        results[0].distance[None],
        results[0].source,
    )
    times = {
        "traversal": seconds(lambda: [one.run(source) for source in few]) / len(few),
        "certificate": seconds(lambda: [certify(graph, result) for result in results]) / len(few),
    }
    groups = [sources[begin : begin + many.group] for begin in range(0, sources.size, many.group)]
    times["traversal_of_many"] = (
        seconds(lambda: [many.run(group).distance for group in groups]) / sources.size
    )
    found = [many.run(group).distance.copy() for group in groups]
    graph.reverse  # noqa: B018
    _must_distinguish(
        f"certify_many, {algorithm}",
        lambda rows: certify_many(graph, groups[0], rows),
        found[0],
        found[0],
        int(groups[0][0]),
    )
    proofs = [
        partial(certify_many, graph, group, rows) for group, rows in zip(groups, found, strict=True)
    ]
    times["certificate_of_many"] = seconds(lambda: [proof() for proof in proofs]) / sources.size
    about = {"vertices": graph.n_vertices, "edges": graph.n_edges, "sources": sources.size}
    return about | {"single": one.strategy.name, "strategy": many.strategy.name} | times


def _must_distinguish(what: str, prove, answer, rows, source: int) -> None:
    """Check that a correct result is accepted, and rejected if the farthest vertex is one step farther."""
    prove(answer).require()
    xp = namespace(rows)
    reached = rows[0] >= 0 if rows.dtype.kind == "i" else xp.isfinite(rows[0])
    vertex = int(xp.where(reached, rows[0], -1).argmax())
    if vertex == source:
        raise RuntimeError(
            f"{what}: source {source} reaches nothing, so that no fault can be planted"
        )
    rows[0, vertex] += 1
    is_noticed = not prove(answer).valid
    rows[0, vertex] -= 1
    if not is_noticed:
        raise RuntimeError(
            f"{what}: a distance one step too far was not noticed, source {source}, vertex {vertex}"
        )
    prove(answer).require()


def _median(work) -> float:
    work()
    times = []
    while len(times) < COST_REPEATS and sum(times) < COST_SECONDS:
        times.append(timed_on_gpu(work)[1])
    return statistics.median(times)


def _least(work) -> float:
    """Return the fewest CPU seconds of several calls."""
    work()
    times = []
    for _ in range(COST_REPEATS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


MEASURES = {
    "parity": measure_parity,
    "gpu_bits": measure_bits,
    "gpu_cost": measure_cost,
    "gpu_faults": measure_faults,
    "gpu_many": measure_many,
}
