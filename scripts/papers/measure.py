"""Measures the works of the papers: settings interleaved, each checked before it is timed.

Each setting of a work is planned, certified from each source, and compared with the distances of the others. Then all
settings run in turn, again and again, in both orders, so that a change of the machine's speed meets all of them. A line of
JSON holds the median of the repeats, the least, and the spread: the distance of the quartiles, divided by the median.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scripts.measure.harness import summary_of
from scripts.papers import graphs, levels
from scripts.papers.experiments import BY_NAME, GraphSource, Setting, Work
from scripts.papers.jsonl import Lines, key_of
from scripts.papers.relaxations import count_with_queue, count_without_queue

REACH = 0.1  # least share of what the best candidate reaches
CANDIDATES = 3  # for each source
CPU_SOURCES = 4  # of the sources, the first ones, that the CPU searches from
FAST = 0.02  # seconds of a repeat; a setting that takes less is repeated more often
SLOW = 4.0  # seconds of all repeats after which three are enough
GRACE = 30.0  # seconds beyond those of the run for repeats of settings that are checked
# of the distance to the farthest vertex: searches that estimate the whole
PROBES = (1 / 64, 1 / 16, 1 / 4)
MIN_LEVELS = 32  # with fewer levels, no strategy spends most of its time on levels
# of the sources, the first ones, from which relaxations and duplicates are counted
COUNTED_SOURCES = 2
MAX_RELAXED = 6_000_000_000  # edges that a count of figure 9 may relax on the CPU, over all sources
# Strategies whose time does not grow with levels times vertices, or edges. They are not estimated first.
SAFE = (
    "bfs_4k",
    "h_bf",
    "queue",
    "gather",
    "persistent",
    "work_front",
    "frontier",
    "heap",
    "switch",
    "buffers",
)


class DeviceLostError(Exception):
    """The GPU refuses all work after a kernel failed; only a new process can continue."""


class OutOfTimeError(Exception):
    """The time of the run is spent."""


@dataclass
class Options:
    """What the command line says."""

    graphs: Path | None
    seconds: float
    device: str
    commit: str | None = None
    repeats: int = 5
    sources: int = 16
    seed: int = 1
    system_seconds: float = 3.0
    # of a sequential search; it is run once if it exceeds system_seconds
    baseline_seconds: float = 10.0
    stuck_seconds: float = 90.0
    skips_cpu: bool = False  # beside a GPU
    again: tuple[str, ...] = ()  # the command that continues the run


@dataclass
class Ready:
    """A setting that is planned and checked."""

    setting: Setting
    run: Any
    rounds: float
    knobs: dict
    first: float  # seconds of the checked run per source


@contextmanager
def on_threads(wanted: int) -> Iterator[None]:
    """Set the number of threads of the CPU; 0: all."""
    import numba

    before = numba.get_num_threads()
    if wanted:
        numba.set_num_threads(wanted)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def threads_here() -> int:
    import numba

    return numba.config.NUMBA_NUM_THREADS


class Bench:
    """One graph: on the device, on the CPU where a setting asks for it, and the sources of all searches."""

    def __init__(self, source: GraphSource, options: Options, lines: Lines):
        self.source, self.options, self.lines = source, options, lines
        self.made = graphs.make(source, options.graphs, options.device, options.seed)
        self.xp = graphs.array_module(options.device)
        self.sources = self._choose_sources()
        self._graphs: dict[tuple[str, str], Any] = {}
        self._expected: dict[tuple[str, int], np.ndarray] = {}
        self._farthest: dict[str, float] = {}

    def _choose_sources(self) -> list[int]:
        """Return random vertices that reach a tenth of what the best of them reaches, or the middle of a grid."""
        from kepler_traverse import plan_bfs
        from kepler_traverse._arrays import to_host

        graph = self.made.hops
        if self.source.centered:
            rows, columns = self.source.arguments
            return [rows // 2 * columns + columns // 2]
        wanted = self.source.n_sources or self.options.sources
        candidates = np.flatnonzero(to_host(graph.derived.degrees))
        n_drawn = min(CANDIDATES * wanted, candidates.size)
        drawn = np.random.default_rng(self.options.seed).choice(candidates, n_drawn, replace=False)
        plan = plan_bfs(graph, predecessors=False)
        reached = {int(vertex): int(plan.run(int(vertex)).reached.sum()) for vertex in drawn}
        most = max(reached.values())
        return [vertex for vertex, count in reached.items() if count >= REACH * most][:wanted]

    def sources_of(self, setting: Setting) -> list[int]:
        return self.sources[:CPU_SOURCES] if setting.device == "cpu" else self.sources

    def graph(self, algorithm: str, device: str, of_peer: bool = False) -> Any:
        """Return the graph of an algorithm on a device; ``of_peer``: without negative weights."""
        name = "hops" if algorithm == "bfs" else "peer_weighted" if of_peer else "weighted"
        if (name, device) not in self._graphs:
            self._graphs[name, device] = getattr(self.made, name).to(device)
        return self._graphs[name, device]

    def plan(
        self, algorithm: str, setting: Setting, limit: Any = None, of_peer: bool = False
    ) -> Any:
        from kepler_traverse import plan_bfs, plan_sssp

        graph = self.graph(algorithm, setting.device, of_peer)
        knobs = setting.knobs if row_of(algorithm, setting).knobs else None
        if setting.how == "rule" and knobs:
            knobs = by_its_rule(setting.strategy, graph, knobs)
        given = {"strategy": setting.strategy, "knobs": knobs, "predecessors": setting.predecessors}
        if algorithm == "bfs":
            return plan_bfs(graph, max_depth=limit, **given)
        return plan_sssp(graph, cutoff=limit, **given)

    def clock(self, device: str) -> float:
        if device == "cuda":
            self.xp.cuda.get_current_stream().synchronize()
        return time.perf_counter()

    def once(self, run: Any, source: int, device: str) -> tuple[float, Any]:
        began = self.clock(device)
        result = run(source)
        return self.clock(device) - began, result

    def check(self, algorithm: str, device: str, source: int, result: Any) -> None:
        """Refuse a result that is not certified, or differs from the first one of this source."""
        self.certify(algorithm, device, result)
        self.compare(algorithm, source, result)

    def certify(self, algorithm: str, device: str, result: Any) -> None:
        from kepler_traverse import certify

        certify(self.graph(algorithm, device), result).require()

    def compare(self, algorithm: str, source: int, result: Any) -> None:
        from kepler_traverse._arrays import to_host

        distance = to_host(result.distance)
        expected = self._expected.setdefault((algorithm, source), distance.copy())
        n_wrong = int((distance != expected).sum())
        if n_wrong:
            raise AssertionError(
                f"{n_wrong} distances from source {source} differ from those that came first"
            )

    def farthest(self, algorithm: str) -> float:
        """Return the largest distance from the first source, without negative weights."""
        if algorithm not in self._farthest:
            from kepler_traverse import plan_bfs, plan_sssp

            graph = self.graph(algorithm, self.options.device, of_peer=True)
            search = (plan_bfs if algorithm == "bfs" else plan_sssp)(graph, predecessors=False)
            found = search.run(self.sources[0])
            self._farthest[algorithm] = float(found.distance[found.reached].max())
        return self._farthest[algorithm]

    def estimate(self, algorithm: str, setting: Setting) -> float:
        """Return the seconds of a search, by searches up to small limits; 0 without an estimate.

        Work is extrapolated linearly: that is right for equal work per level, and too low for a frontier that grows. With
        potentials the same relaxations succeed as without, so the estimate is that of the graph without them.
        """
        if setting.strategy.startswith(SAFE):
            return 0.0
        farthest = self.farthest(algorithm)
        if farthest <= 0 or (algorithm == "bfs" and farthest < MIN_LEVELS):
            return 0.0
        seconds, before = 0.0, None
        for i, share in enumerate(PROBES):
            limit = int(farthest * share) + 1 if algorithm == "bfs" else farthest * share
            run = self.plan(algorithm, setting, limit, of_peer=True).run
            if i == 0:
                run(self.sources[0])  # compiles and loads
            taken, _ = self.once(run, self.sources[0], setting.device)
            if before is not None:
                slope = max(taken - before[1], 0.0) / (share - before[0])
                seconds = taken + slope * (1.0 - share)
                if seconds > self.options.system_seconds:
                    break
            before = (share, taken)
        return seconds


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


def is_possible(bench: Bench, algorithm: str, setting: Setting) -> bool:
    """Return whether this machine and the strategy can run a setting on the graph."""
    if setting.device == "cuda" and bench.options.device == "cpu":
        return False
    if setting.device == "cpu" and setting.threads > threads_here():
        return False
    return not row_of(algorithm, setting).unsupported_reason(bench.graph(algorithm, setting.device))


def about(work: Work, setting: Setting) -> dict:
    return {
        "graph": work.graph,
        "algorithm": work.algorithm,
        "part": work.part,
        "group": work.group,
        "device": setting.device,
        "strategy": setting.strategy,
        "label": setting.label,
        "threads": setting.threads,
        "how": setting.how,
    }


def left_of(work: Work, lines: Lines, device: str, skips_cpu: bool = False) -> list[Setting]:
    """Return the settings of a work that have no line yet and can run on that device, or on the CPU beside it."""
    devices = ("cuda", "cpu") if device == "cuda" else ("cpu",)
    can_run = [
        setting for setting in work.settings if setting.device in devices[: 1 if skips_cpu else 2]
    ]
    return [setting for setting in can_run if key_of(about(work, setting)) not in lines.known]


def measure(bench: Bench, work: Work, settings: list[Setting]) -> None:
    """Measure the settings of a work, and write their lines."""
    possible = [setting for setting in settings if is_possible(bench, work.algorithm, setting)]
    if work.part == "time":
        time_all(bench, work, possible)
        return
    for setting in possible:
        stop_in_time(bench)
        with guarded(bench, work, setting):
            found = (
                count(bench, work, setting)
                if work.part == "counters"
                else record_levels(bench, setting)
            )
            bench.lines.write(work.part, **about(work, setting), **found)
    # A GPU would wait for it, and the sources are the same without one.
    if work.part == "counters" and work.algorithm == "sssp" and bench.options.device == "cpu":
        count_textbooks(bench, work)


def record_levels(bench: Bench, setting: Setting) -> dict:
    return levels.record(bench.graph("bfs", setting.device), bench.sources[0], setting)


def stop_in_time(bench: Bench) -> None:
    if bench.lines.spent() > bench.options.seconds:
        raise OutOfTimeError


@contextmanager
def guarded(bench: Bench, work: Work, setting: Setting) -> Iterator[None]:
    """Record the failure of a setting, also of one that does not end, and go on with the others."""
    facts = about(work, setting)
    watch = threading.Timer(bench.options.stuck_seconds, leave_stuck, (bench, facts))
    watch.daemon = True
    watch.start()
    try:
        with on_threads(setting.threads):
            yield
    except Exception as error:
        bench.lines.write("error", **facts, message=f"{type(error).__name__}: {error}"[:300])
        refuse_lost_device(bench, error)
    finally:
        watch.cancel()


def leave_stuck(bench: Bench, facts: dict) -> None:
    """Replace the process if a kernel never ends, because nothing else stops it."""
    message = f"did not end within {bench.options.stuck_seconds:g} s"
    bench.lines.write("error", **facts, message=message)
    print(
        f"{facts['graph']}, {facts['strategy']} {facts['label']}: {message}; going on in a new process",
        file=sys.stderr,
    )
    go_on_in_a_new_process(bench.options, bench.lines)


def refuse_lost_device(bench: Bench, error: Exception) -> None:
    """Raise DeviceLostError if the device accepts no more work after this error."""
    if bench.options.device == "cuda":
        try:
            bench.xp.zeros(1).sum().item()
            bench.xp.cuda.get_current_stream().synchronize()
        except Exception:
            raise DeviceLostError(str(error)) from error


def go_on_in_a_new_process(options: Options, lines: Lines) -> None:
    seconds_left = max(options.seconds - lines.spent(), 0.0)
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", *options.again, "--seconds", str(seconds_left)])


def prepare(bench: Bench, work: Work, setting: Setting) -> Ready | None:
    """Plan a setting, check it from each source; or write why not."""
    facts = about(work, setting)
    seconds = bench.estimate(work.algorithm, setting)
    is_baseline = setting.device == "cpu" and setting.threads == 1
    if seconds > (bench.options.baseline_seconds if is_baseline else bench.options.system_seconds):
        bench.lines.write("left", **facts, why=f"about {seconds:.2g} s per search")
        return None
    plan = bench.plan(work.algorithm, setting)
    certified = (
        plan
        if setting.predecessors
        else bench.plan(work.algorithm, replace(setting, predecessors=True))
    )
    is_once = seconds > bench.options.system_seconds
    if not is_once:
        plan.run(bench.sources[0])  # compiles and loads
    taken, rounds = [], []
    for source in bench.sources[:1] if is_once else bench.sources_of(setting):
        once, result = bench.once(plan.run, source, setting.device)
        rounds.append(result.rounds)
        taken.append(once)
        bench.compare(work.algorithm, source, result)
        if not is_once:
            result = result if plan is certified else certified.run(source)
            bench.certify(work.algorithm, setting.device, result)
    ready = Ready(
        setting,
        plan.run,
        statistics.mean(rounds),
        changed_knobs(plan.query.knobs),
        statistics.mean(taken),
    )
    if is_once:  # a sequential baseline that is too slow to repeat
        write_time(bench, work, ready, taken, 1)
        return None
    return ready


def changed_knobs(knobs: Any) -> dict:
    """Return those that are not as published."""
    if knobs is None:
        return {}
    usual = asdict(type(knobs)())
    return {name: value for name, value in asdict(knobs).items() if value != usual[name]}


def wanted_repeats(ready: Ready, bench: Bench) -> int:
    """Return more repeats where they cost little, and three where five would take too long."""
    options = bench.options
    seconds = ready.first * len(bench.sources_of(ready.setting))
    if seconds < FAST:
        return options.repeats + 4
    return options.repeats if seconds * options.repeats < SLOW else min(3, options.repeats)


def time_all(bench: Bench, work: Work, settings: list[Setting]) -> None:
    """Check all settings, then time them in turn. If the time is spent, those that are checked are timed, and no others."""
    ready: list[Ready] = []
    for setting in settings:
        if bench.lines.spent() > bench.options.seconds:
            break
        with guarded(bench, work, setting):
            found = prepare(bench, work, setting)
            if found:
                ready.append(found)
    times: dict[tuple, list[float]] = {each.setting.key: [] for each in ready}
    most = max((wanted_repeats(each, bench) for each in ready), default=0)
    for repeat in range(most):
        if repeat and bench.lines.spent() > bench.options.seconds + GRACE:
            break
        in_turn = ready if repeat % 2 == 0 else ready[::-1]
        for each in in_turn:
            if repeat >= wanted_repeats(each, bench):
                continue
            with on_threads(each.setting.threads):
                sources = bench.sources_of(each.setting)
                seconds = [
                    bench.once(each.run, source, each.setting.device)[0] for source in sources
                ]
            times[each.setting.key].append(statistics.mean(seconds))
    for each in ready:
        write_time(bench, work, each, times[each.setting.key], len(bench.sources_of(each.setting)))
    stop_in_time(bench)


def write_time(
    bench: Bench, work: Work, ready: Ready, seconds: list[float], n_sources: int
) -> None:
    facts = about(work, ready.setting) | {
        "knobs": ready.knobs,
        "rounds": ready.rounds,
        "sources": n_sources,
    }
    bench.lines.write("time", **facts, **summary_of(seconds))


def count(bench: Bench, work: Work, setting: Setting) -> dict:
    """Return the counters, summed over all sources, and what a search without a repeated edge would read."""
    plan = bench.plan(work.algorithm, setting)
    totals: dict[str, int] = {}
    rounds, out_edges, n_reached = 0, 0, 0
    sources = bench.sources[:COUNTED_SOURCES]
    for source in sources:
        result = plan.run(source)
        bench.check(work.algorithm, setting.device, source, result)
        rounds += result.rounds
        n_reached += int(result.reached.sum())
        out_edges += int(
            bench.graph(work.algorithm, setting.device).derived.degrees[result.reached].sum()
        )
        for name, value in result.counters.items():
            totals[name] = totals.get(name, 0) + int(value)
    about_all = {
        "rounds": rounds,
        "out_edges": out_edges,
        "reached": n_reached,
        "sources": len(sources),
    }
    return about_all | {"counters": totals, "knobs": changed_knobs(plan.query.knobs)}


def count_textbooks(bench: Bench, work: Work) -> None:
    """Count the relaxations of Bellman-Ford's algorithm with and without a queue from the same sources (figure 9)."""
    graph = bench.graph("sssp", "cpu")
    for label, function in (
        ("with a queue", count_with_queue),
        ("without a queue", count_without_queue),
    ):
        setting = Setting("bellman_ford", label, "cpu", threads=1)
        if key_of(about(work, setting)) in bench.lines.known:
            continue
        stop_in_time(bench)
        arrays = (graph.offsets, graph.targets, graph.weights)
        # Both sides of the comparison are sums over all sources; one that takes too long ends the count.
        counted: list[int] = []
        for source in bench.sources[:COUNTED_SOURCES]:
            counted.append(function(*arrays, source, MAX_RELAXED // COUNTED_SOURCES))
            if counted[-1] < 0:
                break
        relaxed = -1 if counted[-1] < 0 else sum(counted)
        bench.lines.write(
            "counters",
            **about(work, setting),
            counters={"relaxations": relaxed},
            sources=len(counted),
        )


def run_works(works: list[Work], options: Options, lines: Lines) -> None:
    """Measure what has no line yet, graph by graph within a rank, until the time is spent."""
    bench: Bench | None = None
    absent: set[str] = set()
    for work in works:
        settings = left_of(work, lines, options.device, options.skips_cpu)
        counts_textbooks = (
            options.device == "cpu" and work.part == "counters" and work.algorithm == "sssp"
        )
        if (not settings and not counts_textbooks) or work.graph in absent:
            continue
        if lines.spent() > options.seconds:
            raise OutOfTimeError
        if bench is None or bench.source.name != work.graph:
            bench = None  # frees the graph before
            release_cached_memory(options)
            bench = begin_graph(work.graph, options, lines)
        if bench is None:
            absent.add(work.graph)
            continue
        before = lines.spent()
        measure(bench, work, settings)
        release_cached_memory(options)
        what = f"{work.graph}, {work.algorithm}, {work.group}, {work.part}, rank {work.rank}"
        print(
            f"{lines.spent():6.0f} s: {what}: {lines.spent() - before:.1f} s",
            file=sys.stderr,
            flush=True,
        )


def release_cached_memory(options: Options) -> None:
    if options.device == "cuda":
        import gc

        gc.collect()
        # the host harness has none
        pool = getattr(graphs.array_module("cuda"), "get_default_memory_pool", None)
        if pool:
            pool().free_all_blocks()


def begin_graph(name: str, options: Options, lines: Lines) -> Bench | None:
    """Make a graph and record its statistics; None if its file is absent or it cannot be made here."""
    try:
        began = time.perf_counter()
        bench = Bench(BY_NAME[name], options, lines)
        if not lines.has_graph(name):
            found = graphs.statistics_of(bench.made, bench.xp)
            lines.write(
                "graph",
                graph=name,
                **found,
                sources=bench.sources,
                seconds=round(time.perf_counter() - began, 2),
            )
        return bench
    except FileNotFoundError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
    except Exception as error:  # another graph may work; the summary and the exit code report it
        lines.write("error", graph=name, message=f"{type(error).__name__}: {error}"[:300])
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return None
