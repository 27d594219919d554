"""The suite ``papers`` of scripts/bench: features and knobs of BFS-4K and H-BF, counters, all strategies, the baseline.

    python -m scripts.bench --suite papers --graphs FOLDER --output out/papers.jsonl

Writes one line of JSON per measurement, at once, so that a run that is cut off loses nothing; ``--resume`` continues after
the last line. Every traversal is certified and compared with the baseline's distances before its time is written.
scripts/papers/experiments.py lists the measurements; ``python -m scripts.papers.page add`` reads the lines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from scripts.papers import graphs, measure_systems
from scripts.papers.experiments import GRAPHS, PARTS, PUBLISHED, Setting, rows_for, settings_for
from scripts.papers.jsonl import Lines, head

HOPELESS = 20.0  # multiple of the best time of the first source; a slower setting gets no second source
LONG_RUN = 0.5  # seconds for one source; a slower setting is not repeated
MIN_SOURCES = 2  # if time is short
REACH = 0.1  # minimum fraction of the vertices that the best candidate reaches
CANDIDATES = 3  # for each source


class DeviceLost(Exception):
    """The GPU refuses all work after a kernel failed; only a new process can continue."""


def rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")


class OutOfTime(Exception):
    """The time of the run is spent; ``--resume`` measures the rest."""


class Bench:
    """One graph and one algorithm: the baseline's distances, and the strategies that are compared with them."""

    def __init__(self, made, algorithm: str, sources, options, lines: Lines):
        self.made, self.algorithm, self.sources, self.options, self.lines = made, algorithm, sources, options, lines
        self.graph = made.hops if algorithm == "bfs" else made.weighted
        self.expected = {}
        self.best = np.inf
        self.measured = {}
        self.about = {"graph": made.source.name, "algorithm": algorithm}

    def clock(self) -> float:
        if self.graph.device == "cuda":
            from kepler_traverse import cuda

            cuda.cp.cuda.Device().synchronize()
        return time.perf_counter()

    def once(self, traverse, source: int) -> tuple:
        began = self.clock()
        result = traverse(source)
        return self.clock() - began, result

    def repeated(self, traverse, check, max_seconds: float = np.inf) -> tuple[list[float], bool]:
        """Return median seconds per source, and whether the setting was too slow for more than the first.

        After ``max_seconds`` two sources are enough.
        """
        traverse(self.sources[0])  # compiles, loads, fills the caches
        began, medians = time.perf_counter(), []
        for source in self.sources:
            times = []
            while len(times) < self.options.repeats and sum(times) < LONG_RUN:
                taken, result = self.once(traverse, source)
                if not times:
                    check(source, result)
                times.append(taken)
            medians.append(rounded(statistics.median(times)))
            if medians[0] > HOPELESS * self.best:
                return medians, len(self.sources) > 1
            if len(medians) >= MIN_SOURCES and time.perf_counter() - began > max_seconds:
                break
        return medians, False

    def baselines(self) -> None:
        """Time all variants of the baseline; they must agree with each other."""
        from pipelines.comparison import choose_baseline, in_our_encoding, refuse_rounded

        graph = self.graph if self.algorithm == "bfs" else self.made.peer_weighted
        name, ways = choose_baseline(graph, self.algorithm)
        dtype = np.dtype(np.int32) if self.algorithm == "bfs" else self.graph.weights.dtype

        def check(source: int, answer) -> None:
            distance = in_our_encoding(answer, graph, self.algorithm)
            if self.algorithm == "sssp":
                refuse_rounded(distance, dtype)
                distance = self.made.expected(distance, source).astype(dtype)
            if source not in self.expected:
                self.expected[source] = distance
            elif not bool((self.expected[source] == distance).all()):
                raise AssertionError(f"{name}'s ways to traverse disagree from source {source}")

        # For the other parts each source has the baseline's distances; without one, those of the first strategy.
        max_seconds = self.options.setting_seconds if self.options.part == ["systems"] else np.inf
        for way, traverse in ways.items():
            seconds, _ = self.repeated(traverse, check, max_seconds)
            if not self.lines.has(kind="peer", **self.about, way=way):
                self.lines.write("peer", **self.about, peer=name, way=way, seconds=seconds)

    def check(self, source: int, result) -> None:
        """Refuse a result that is not certified, or differs from the baseline's (or the first certified one)."""
        from kepler_traverse import certify

        certify(self.graph, result).require()
        if source not in self.expected:
            self.expected[source] = result.distance.copy()
            return
        wrong = int((result.distance != self.expected[source]).sum())
        if wrong:
            raise AssertionError(f"{wrong} distances from source {source} differ from those that came first")

    def plan(self, setting: Setting, limit=None):
        from kepler_traverse import plan_bfs, plan_sssp

        if self.algorithm == "bfs":
            return plan_bfs(self.graph, strategy=setting.strategy, knobs=setting.knobs, max_depth=limit)
        return plan_sssp(self.graph, strategy=setting.strategy, knobs=setting.knobs, cutoff=limit)

    def time(self, setting: Setting) -> dict:
        plan = self.plan(setting)
        key = (setting.strategy, repr(plan.query.knobs), setting.threads)
        if key not in self.measured:
            rounds = []

            def check(source: int, result) -> None:
                self.check(source, result)
                rounds.append(result.rounds)

            max_seconds = np.inf if setting.part == "peers" else self.options.setting_seconds
            seconds, cut = self.repeated(plan.run, check, max_seconds)
            self.best = min(self.best, seconds[0])
            self.measured[key] = {"seconds": seconds, "rounds": rounds, "cut": cut, "knobs": repr(plan.query.knobs)}
        return self.measured[key]

    def count(self, setting: Setting) -> dict:
        """Return the counters summed over all sources, and the edges that Dijkstra's algorithm would relax."""
        plan = self.plan(setting)
        totals, rounds, out_edges, reached, done = {}, 0, 0, 0, 0
        began = time.perf_counter()
        for source in self.sources:
            if done >= MIN_SOURCES and time.perf_counter() - began > self.options.setting_seconds:
                break
            result = plan.run(source)
            self.check(source, result)
            if result.counters is None:
                raise AssertionError("the strategy was asked to count and gave no counters")
            done, rounds = done + 1, rounds + result.rounds
            reached += int(result.reached.sum())
            out_edges += int(self.graph.derived.degrees[result.reached].sum())
            totals = {name: totals.get(name, 0) + int(value) for name, value in result.counters.items()}
        return {"counters": totals, "rounds": rounds, "out_edges": out_edges, "reached": reached, "sources": done}

    def fits(self, setting: Setting) -> bool:
        """Return whether strategy and machine support this; an unknown strategy counts, and fails later with a message."""
        here = [row for row in rows_for(self.algorithm, self.graph.device) if row.name == setting.strategy]
        return measure_systems.has_threads(setting.threads) and not (here and here[0].unsupported_reason(self.graph))

    def measure(self, setting: Setting) -> tuple[str, dict]:
        """Return the kind of line for a setting, and its content."""
        if setting.part == "systems":
            return measure_systems.measure(self, setting)
        if setting.part == "counters":
            return "counters", self.count(setting)
        return "time", self.time(setting)

    def run(self, settings: list[Setting]) -> None:
        for setting in settings:
            if not self.fits(setting):
                continue
            about = self.about | {"part": setting.part, "group": setting.group, "label": setting.label}
            if any(self.lines.has(kind=kind, **about) for kind in ("time", "counters", "left", "over", "error")):
                continue
            if self.lines.spent() > self.options.seconds:
                raise OutOfTime
            about["strategy"] = setting.strategy
            about["given"] = repr(setting.knobs)
            watch = threading.Timer(self.options.stuck_seconds, self.leave_stuck, (about,))
            watch.daemon = True
            watch.start()
            try:
                kind, found = self.measure(setting)
                self.lines.write(kind, **about, **found)
            except Exception as error:  # one broken setting must not end the run; the summary and the exit code report it
                self.lines.write("error", **about, message=f"{type(error).__name__}: {error}"[:500])
                refuse_lost_device(self.options.device, error)
            finally:
                watch.cancel()

    def leave_stuck(self, about: dict) -> None:
        """Replace the process if a kernel never ends, because nothing else stops it."""
        message = f"did not end within {self.options.stuck_seconds:g} s"
        self.lines.write("error", **about, message=message)
        print(f"{about['graph']}, {about['label']}: {message}; continuing in a new process", file=sys.stderr)
        in_a_new_process(self.options, self.lines)


def refuse_lost_device(device: str, error: Exception) -> None:
    """Raise DeviceLost if the device accepts no more work after this error."""
    if device == "cuda":
        from kepler_traverse import cuda

        try:
            cuda.cp.zeros(1).sum().item()
            cuda.cp.cuda.Device().synchronize()
        except Exception:
            raise DeviceLost(str(error)) from error


def sources_for(graph, options) -> list[int]:
    """Random vertices with an outgoing edge that reach at least a tenth of what the best candidate reaches."""
    from kepler_traverse import plan_bfs
    from kepler_traverse._arrays import to_host

    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    drawn = np.random.default_rng(options.seed).choice(
        candidates, min(CANDIDATES * options.sources, candidates.size), replace=False
    )
    plan = plan_bfs(graph, predecessors=False)
    reached = {int(vertex): int(plan.run(int(vertex)).reached.sum()) for vertex in drawn}
    most = max(reached.values())
    return [vertex for vertex, count in reached.items() if count >= REACH * most][: options.sources]


def chosen_by_rule(strategy: str, graph) -> dict:
    """Return the knobs that a strategy's rule chooses for a graph, as far as they differ from the published ones."""
    from kepler_traverse.cuda.csr_build import degree_statistics
    from kepler_traverse.published.bfs import bfs_4k
    from kepler_traverse.published.sssp import h_bf

    knobs = bfs_4k.rule(*degree_statistics(graph.offsets)) if strategy == "bfs_4k" else h_bf.rule(graph)
    published = asdict(type(knobs)())
    return {name: value for name, value in asdict(knobs).items() if value != published[name]}


def wanted_on(source, options) -> dict[str, list[Setting]]:
    """For each algorithm what is to be measured on a graph; hops of a graph with negative weights are those of its file."""
    algorithms = ("sssp",) if source.max_potential else ("bfs", "sssp")
    parts = [part for part in options.part or PARTS if part in source.parts]
    found = {
        algorithm: settings_for(algorithm, options.device, source.name, parts)
        for algorithm in algorithms
        if algorithm in (options.algorithm or algorithms)
    }
    return {algorithm: settings for algorithm, settings in found.items() if settings}


def bench_graph(source, options, lines: Lines) -> None:
    began = time.perf_counter()
    made = graphs.make(source, options.graphs, options.device, options.seed)
    graph = made.hops
    sources = sources_for(graph, options)
    if not lines.has(kind="graph", graph=source.name):
        degrees = graph.derived.degrees
        lines.write(
            "graph",
            graph=source.name,
            origin=source.origin,
            vertices=graph.n_vertices,
            edges=graph.n_edges,
            directed=graph.directed,
            degree_mean=round(float(degrees.mean()), 2),
            degree_deviation=round(float(degrees.std()), 2),
            degree_max=graph.derived.max_degree,
            sources=sources,
            seconds_to_make=round(time.perf_counter() - began, 2),
        )
    for algorithm, settings in wanted_on(source, options).items():
        bench = Bench(made, algorithm, sources, options, lines)
        about = bench.about | {"part": "peers", "group": "peers", "label": "peer"}
        if lines.has(kind="error", **about):
            continue  # an earlier process failed here
        if options.peer:
            try:
                bench.baselines()
            except Exception as error:
                lines.write("error", **about, message=f"{type(error).__name__}: {error}"[:500])
                refuse_lost_device(options.device, error)
                continue  # nothing to compare with
        bench.run(settings)
        strategy = PUBLISHED.get((algorithm, options.device))
        others = any(setting.part != "systems" for setting in settings)
        if strategy and others and not lines.has(kind="rule", graph=source.name, strategy=strategy):
            try:
                lines.write("rule", graph=source.name, strategy=strategy, knobs=chosen_by_rule(strategy, bench.graph))
            except Exception as error:  # the times are valid without it; the summary and the exit code report it
                lines.write("error", **bench.about, message=f"rule of {strategy}: {type(error).__name__}: {error}"[:500])
    spent = time.perf_counter() - began
    lines.write("end", graph=source.name, seconds=round(spent, 1))
    print(f"{source.name}: {spent:.1f} s, {lines.errors} errors so far", file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite papers", description="Repeat the papers' tables.", allow_abbrev=False
    )
    names = [source.name for source in GRAPHS]
    parser.add_argument("--graphs", type=Path, required=True, help="folder of the Parquet files")
    parser.add_argument("--output", type=Path, required=True, help="file for the lines of JSON")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--part", nargs="+", choices=PARTS, help="default: all; the baseline is always timed")
    parser.add_argument("--algorithm", nargs="+", choices=("bfs", "sssp"))
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no measurement after this time; see --resume")
    parser.add_argument(
        "--setting-seconds",
        type=float,
        default=0.25,
        help=f"after that time {MIN_SOURCES} sources are enough for a setting",
    )
    parser.add_argument(
        "--system-seconds",
        type=float,
        default=2.0,
        help="part systems: omit strategies with a longer estimated time per traversal",
    )
    parser.add_argument("--stuck-seconds", type=float, default=60.0, help="record a setting as an error after this time")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2, help="runs per source, of which the median counts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--without-peer", dest="peer", action="store_false", help="certificates alone; no ratios")
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--resume", action="store_true", help="keep the existing lines and measure the rest")
    return parser.parse_args(arguments, argparse.Namespace(given=arguments))


def in_a_new_process(options, lines: Lines) -> None:
    """Replace this process by one that measures the rest."""
    seconds_left = max(options.seconds - lines.spent(), 0.0)
    again = [sys.executable, "-m", "scripts.bench", "--suite", "papers", *options.given]
    sys.stderr.flush()
    os.execv(sys.executable, [*again, "--resume", "--seconds", str(seconds_left)])


def bench_graphs(options, lines: Lines) -> None:
    for source in GRAPHS:
        if (options.only and source.name not in options.only) or lines.has(kind="end", graph=source.name):
            continue
        if not wanted_on(source, options):
            continue
        try:
            if lines.spent() > options.seconds:
                raise OutOfTime
            bench_graph_or_say_why(source, options, lines)
        except OutOfTime:
            spent = lines.spent()
            lines.write("skipped", graph=source.name, why=f"{spent:.0f} s were spent")
            print(f"{source.name}: left out or cut short, {spent:.0f} s were spent", file=sys.stderr)
        except DeviceLost as error:
            print(f"{source.name}: the GPU was lost ({error}); continuing in a new process", file=sys.stderr)
            in_a_new_process(options, lines)


def bench_graph_or_say_why(source, options, lines: Lines) -> None:
    try:
        bench_graph(source, options, lines)
    except (DeviceLost, OutOfTime):
        raise
    except Exception as error:  # another graph may work; the summary and the exit code report it
        lines.write("error", graph=source.name, message=f"{type(error).__name__}: {error}"[:500])
        lines.write("end", graph=source.name, seconds=0.0)
        print(f"{source.name}: {type(error).__name__}: {error}", file=sys.stderr)
        refuse_lost_device(options.device, error)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    with Lines(options.output, options.resume) as lines:
        if not lines.has(kind="run"):
            lines.write("run", **head(options, arguments))
        bench_graphs(options, lines)
    print(f"{options.output}: {lines.errors} errors; python -m scripts.papers.page add {options.output}")
    return 1 if lines.errors else 0
