"""The works of the papers: settings of strategies that are compared on a graph, each certified before it is timed.

A time is the mean over some sources of a search with a ready plan. A setting whose search is estimated to take more than
`SYSTEM_SECONDS`, or of a sequential one `BASELINE_SECONDS`, is left out. Counters and levels are works of their own.
"""

from __future__ import annotations

import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from scripts.measure.environment import free_pool
from scripts.measure.work import (
    ONCE,
    OURS,
    Baseline,
    Call,
    Inputs,
    Repeats,
    Timed,
    Work,
    planner,
    unless,
)
from scripts.papers import experiments, graphs, levels
from scripts.papers.experiments import BY_NAME, Setting
from scripts.papers.relaxations import count_with_queue, count_without_queue

PACKAGES = ("scipy", "pyarrow", "cupy-cuda13x", "pylibcugraph-cu13", "nvidia-cuda-nvrtc")
SOURCES = 16  # of a graph of few levels; others have fewer
REACH = 0.1  # least share of what the best candidate reaches
CANDIDATES = 3  # for each source
CPU_SOURCES = 4  # of the sources, the first ones, that the CPU searches from
SYSTEM_SECONDS = 3.0
BASELINE_SECONDS = 10.0
# of the distance to the farthest vertex: searches that estimate the whole
PROBES = (1 / 64, 1 / 16, 1 / 4)
MIN_LEVELS = 32  # with fewer levels, no strategy spends most of its time on levels
COUNTED_SOURCES = 2  # from which relaxations and duplicates are counted
MAX_RELAXED = 6_000_000_000  # edges that a count of figure 9 may relax on the CPU, over all sources
# Strategies whose time does not grow with levels times vertices, or edges. They are not estimated first.
SAFE = ("bfs_4k", "h_bf", "queue", "gather", "persistent", "work_front", "frontier", "heap")
SAFE += ("switch", "buffers")
TEXTBOOKS = {"with a queue": count_with_queue, "without a queue": count_without_queue}


class Left(NotImplementedError):
    """A setting that takes too long, or that this machine or the strategy cannot run on the graph."""


@contextmanager
def on_threads(wanted: int) -> Iterator[None]:
    """Set the number of threads of the CPU; 0: all."""
    import numba

    before = numba.get_num_threads()
    if wanted > numba.config.NUMBA_NUM_THREADS:
        raise Left(f"this machine has fewer than {wanted} threads")
    numba.set_num_threads(wanted or before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


class Case:
    """One graph: on the device, on the CPU where a setting asks for it, and the sources of all searches."""

    def __init__(self, inputs: Inputs, graph: str):
        self.xp = graphs.array_module(inputs.device)
        if hasattr(self.xp, "get_default_memory_pool"):  # neither NumPy nor the host harness has it
            free_pool()
        self.source = BY_NAME[graph]
        self.device = inputs.device
        self.seed = inputs.seed
        self.made = graphs.make(self.source, inputs.graphs, inputs.device, inputs.seed)
        self.sources = self._choose_sources()
        self._graphs = {}
        self._farthest = {}

    def _choose_sources(self) -> list[int]:
        """Return random vertices that reach a tenth of what the best of them reaches, or the middle of a grid."""
        from kepler_traverse import plan_bfs
        from kepler_traverse._arrays import to_host

        graph = self.made.hops
        if self.source.centered:
            rows, columns = self.source.arguments
            return [rows // 2 * columns + columns // 2]
        wanted = self.source.n_sources or SOURCES
        candidates = np.flatnonzero(to_host(graph.derived.degrees))
        n_drawn = min(CANDIDATES * wanted, candidates.size)
        drawn = np.random.default_rng(self.seed).choice(candidates, n_drawn, replace=False)
        plan = plan_bfs(graph, predecessors=False)
        reached = {int(vertex): int(plan.run(int(vertex)).reached.sum()) for vertex in drawn}
        most = max(reached.values())
        return [vertex for vertex, count in reached.items() if count >= REACH * most][:wanted]

    def sources_of(self, setting: Setting) -> list[int]:
        if setting.device == "cpu":
            return self.sources[:CPU_SOURCES]
        return self.sources

    def graph(self, algorithm: str, device: str, of_peer: bool = False) -> Any:
        """Return the graph of an algorithm on a device; ``of_peer``: without negative weights."""
        name = "hops" if algorithm == "bfs" else "peer_weighted" if of_peer else "weighted"
        if (name, device) not in self._graphs:
            self._graphs[name, device] = getattr(self.made, name).to(device)
        return self._graphs[name, device]

    def plan(self, algorithm: str, setting: Setting, limit: Any = None) -> Any:
        """Plan a search; one up to a limit, which estimates the whole, without negative weights."""
        graph = self.graph(algorithm, setting.device, of_peer=limit is not None)
        knobs = setting.knobs if row_of(algorithm, setting).knobs else None
        if setting.how == "rule" and knobs:
            knobs = by_its_rule(setting.strategy, graph, knobs)
        given = {"strategy": setting.strategy, "knobs": knobs, "predecessors": setting.predecessors}
        given["max_depth" if algorithm == "bfs" else "cutoff"] = limit
        return planner(algorithm)(graph, **given)

    def once(self, run: Callable[[int], Any], source: int, device: str) -> float:
        """Return the seconds of a search."""
        wait = self.xp.cuda.get_current_stream().synchronize if device == "cuda" else bool
        wait()
        began = time.perf_counter()
        run(source)
        wait()
        return time.perf_counter() - began

    def farthest(self, algorithm: str) -> float:
        """Return the largest distance from the first source, without negative weights."""
        if algorithm not in self._farthest:
            graph = self.graph(algorithm, self.device, of_peer=True)
            search = planner(algorithm)(graph, predecessors=False)
            found = search.run(self.sources[0])
            self._farthest[algorithm] = float(found.distance[found.reached].max())
        return self._farthest[algorithm]

    def estimate(self, algorithm: str, setting: Setting, limit: float) -> float:
        """Return the seconds of a search, by searches up to small distances; 0 without an estimate.

        Work is extrapolated linearly: that is right for equal work per level, and too low for a frontier that grows. With
        potentials the same relaxations succeed as without, so the estimate is that of the graph without them.
        """
        farthest = self.farthest(algorithm)
        is_short = farthest <= 0 or (algorithm == "bfs" and farthest < MIN_LEVELS)
        if setting.strategy.startswith(SAFE) or is_short:
            return 0.0
        seconds = 0.0
        before = None
        for share in PROBES:
            up_to = int(farthest * share) + 1 if algorithm == "bfs" else farthest * share
            run = self.plan(algorithm, setting, up_to).run
            if before is None:
                run(self.sources[0])  # compiles and loads
            taken = self.once(run, self.sources[0], setting.device)
            if before is not None:
                slope = max(taken - before[1], 0.0) / (share - before[0])
                seconds = taken + slope * (1.0 - share)
                if seconds > limit:
                    break
            before = (share, taken)
        return seconds

    def refuse_impossible(self, algorithm: str, setting: Setting) -> None:
        graph = self.graph(algorithm, setting.device)
        why = row_of(algorithm, setting).unsupported_reason(graph)
        if why:
            raise Left(why)


def row_of(algorithm: str, setting: Setting) -> Any:
    """Return the strategy of a setting in the registry."""
    from kepler_traverse.bfs import REGISTRY as BFS
    from kepler_traverse.sssp import REGISTRY as SSSP

    rows = (BFS if algorithm == "bfs" else SSSP).with_plugins()[0]
    return next(row for row in rows if (row.name, row.device) == (setting.strategy, setting.device))


def by_its_rule(strategy: str, graph: Any, changed: dict) -> Any:
    """Return the knobs that a rule chooses, with some changed, such as counters that are on."""
    from kepler_traverse.cuda.csr_build import degree_statistics
    from kepler_traverse.published.bfs import bfs_4k
    from kepler_traverse.published.sssp import h_bf

    chosen = (
        h_bf.rule(graph) if strategy == "h_bf" else bfs_4k.rule(*degree_statistics(graph.offsets))
    )
    return replace(chosen, **changed)


def changed_knobs(knobs: Any) -> dict:
    """Return those that are not as published."""
    if knobs is None:
        return {}
    usual = asdict(type(knobs)())
    return {name: value for name, value in asdict(knobs).items() if value != usual[name]}


def certified(
    case: Case, algorithm: str, setting: Setting, run: Callable[[int], Any]
) -> tuple[dict[int, int], dict]:
    """Search from each source; return a checksum of its distances, and the rounds. Each result is certified."""
    from kepler_traverse import certify
    from kepler_traverse._arrays import to_host

    proving = case.plan(algorithm, replace(setting, predecessors=True)).run
    digests = {}
    rounds = []
    for source in case.sources_of(setting):
        result = run(source)
        rounds.append(result.rounds)
        digests[source] = zlib.crc32(np.ascontiguousarray(to_host(result.distance)).data)
        if not setting.predecessors:
            result = proving(source)
        certify(case.graph(algorithm, setting.device), result).require()
    return digests, {"rounds": statistics.mean(rounds), "sources": len(rounds)}


def timing(case: Case, algorithm: str, setting: Setting) -> Call:
    """Prepare searches from each source, after all of them are certified."""
    with on_threads(setting.threads):
        case.refuse_impossible(algorithm, setting)
        is_baseline = setting.device == "cpu" and setting.threads == 1
        limit = BASELINE_SECONDS if is_baseline else SYSTEM_SECONDS
        seconds = case.estimate(algorithm, setting, limit)
        if seconds > limit:
            raise Left(f"about {seconds:.2g} s per search")
        plan = case.plan(algorithm, setting)
        digests, facts = certified(case, algorithm, setting, plan.run)
    facts["knobs"] = changed_knobs(plan.query.knobs)

    def run() -> Timed:
        with on_threads(setting.threads):
            sources = case.sources_of(setting)
            times = [case.once(plan.run, source, setting.device) for source in sources]
        return Timed(digests, statistics.mean(times), facts)

    return run


def differences(expected: dict[int, int], found: dict[int, int]) -> str:
    """Compare distances from the sources that both have."""
    both = expected.keys() & found.keys()
    wrong = [source for source in both if expected[source] != found[source]]
    return unless(not wrong, f"distances from source {wrong[:1]} differ from those that came first")


def counting(case: Case, algorithm: str, setting: Setting) -> Call:
    """Prepare the counters, summed over all sources, and what a search without a repeated edge would read."""
    from kepler_traverse import certify

    case.refuse_impossible(algorithm, setting)
    graph = case.graph(algorithm, setting.device)
    plan = case.plan(algorithm, setting)

    def run() -> Timed:
        counts = {}
        sums = {"rounds": 0, "out_edges": 0, "reached": 0, "sources": 0}
        for source in case.sources[:COUNTED_SOURCES]:
            result = plan.run(source)
            certify(graph, result).require()
            sums["sources"] += 1
            sums["rounds"] += result.rounds
            sums["reached"] += int(result.reached.sum())
            sums["out_edges"] += int(graph.derived.degrees[result.reached].sum())
            for name, value in result.counters.items():
                counts[name] = counts.get(name, 0) + int(value)
        return Timed(None, 0.0, sums | {"counters": counts})

    return run


def textbook(case: Case, label: str) -> Call:
    """Prepare the relaxations of Bellman-Ford's algorithm from the same sources; -1: too many to count (figure 9)."""
    graph = case.graph("sssp", "cpu")
    arrays = graph.offsets, graph.targets, graph.weights

    def run() -> Timed:
        counted = []
        for source in case.sources[:COUNTED_SOURCES]:
            counted.append(TEXTBOOKS[label](*arrays, source, MAX_RELAXED // COUNTED_SOURCES))
            if counted[-1] < 0:
                break
        relaxed = -1 if counted[-1] < 0 else sum(counted)
        return Timed(None, 0.0, {"counters": {"relaxations": relaxed}, "sources": len(counted)})

    return run


def recording(case: Case, algorithm: str, setting: Setting) -> Call:
    """Prepare what BFS-4K does level by level."""
    case.refuse_impossible(algorithm, setting)
    graph = case.graph("bfs", setting.device)
    return lambda: Timed(None, 0.0, levels.record(graph, case.sources[0], setting))


def statistics_of(case: Case) -> Call:
    found = graphs.statistics_of(case.made, case.xp) | {"sources": len(case.sources)}
    return lambda: Timed(None, 0.0, {"statistics": found})


PREPARE: dict[str, Callable[..., Call]] = {
    "time": timing,
    "counters": counting,
    "levels": recording,
}


def baseline_of(work: experiments.Work, setting: Setting, prepare: Callable[..., Call]) -> Baseline:
    names = ("strategy", "label", "threads", "how")
    facts = {name: getattr(setting, name) for name in names}
    facts |= {"on": setting.device, "algorithm": work.algorithm, "group": work.group}
    return Baseline(prepare=prepare, facts=facts, is_compared=work.part == "time")


def peers_of(work: experiments.Work, device: str) -> dict[str, Baseline]:
    """Return the settings of a work that run on a device, or on the CPU beside it."""
    found = {}
    for setting in work.settings:
        if setting.device in ("cpu", device):
            prepare = partial(PREPARE[work.part], algorithm=work.algorithm, setting=setting)
            found[" ".join(map(str, setting.key))] = baseline_of(work, setting, prepare)
    # A GPU would wait for it, and the sources are the same without one.
    if work.part == "counters" and work.algorithm == "sssp" and device == "cpu":
        for label in TEXTBOOKS:
            setting = Setting("bellman_ford", label, "cpu", threads=1)
            found[label] = baseline_of(work, setting, partial(textbook, label=label))
    return found


def works(inputs: Inputs) -> Iterator[Work]:
    """Yield the statistics of each graph, and the works of the papers: what the claims need comes first."""
    described = set()
    for work in experiments.works_of(experiments.PAPERS):
        case = partial(Case, graph=work.graph)
        if work.graph not in described:
            described.add(work.graph)
            peers = {OURS: statistics_of}
            yield Work(name="statistics", graph=work.graph, case=case, peers=peers, repeats=ONCE)
        peers = peers_of(work, inputs.device)
        if peers:
            yield Work(
                name=f"{work.algorithm}, {work.group}, {work.part}, rank {work.rank}",
                graph=work.graph,
                case=case,
                peers=peers,
                check=differences,
                repeats=Repeats(most=5, seconds=60.0) if work.part == "time" else ONCE,
            )
