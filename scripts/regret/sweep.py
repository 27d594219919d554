"""Measure every strategy of a device on many graphs, numbers of sources and results: one line of JSON per measurement.

A cell is a graph, an algorithm, a kind of weights, a number of sources and a result. All its strategies search from the same
sources, and their results are compared before anything is timed. A strategy that takes several times as long as the best so
far is stopped.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse import (
    bfs_many,
    cuda,
    plan_bfs,
    plan_bfs_many,
    plan_sssp,
    plan_sssp_many,
    sssp_many,
)
from kepler_traverse._arrays import namespace, to_host
from kepler_traverse.auto import survey
from kepler_traverse.auto.calibration import get_machine
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.errors import CapacityError
from kepler_traverse.runtime.memory import available_memory
from kepler_traverse.search.query import Nearest
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from scripts.measure import clock, environment
from scripts.regret import graphs as regret_graphs
from scripts.regret.graphs import GraphSource

BFS = BFS_REGISTRY.with_plugins()[0]
SSSP = SSSP_REGISTRY.with_plugins()[0]

# Cells of a graph: sources and result, the most informative first.
PASSES = (
    (64, "distances"),
    (512, "distances"),
    (8, "distances"),
    (4096, "distances"),
    (1, "distances"),
    (512, "summary"),
    (64, "targets"),
    (512, "targets"),
    (64, "summary"),
    (4096, "targets"),
    (8, "targets"),
    (4096, "summary"),
    (8, "summary"),
    (64, "within"),
    (64, "nearest"),
    (64, "hierarchy"),
)
WORSE = 3.0  # multiple of the best time so far at which a strategy is stopped
LEAST = 0.05  # seconds that each strategy may take in any case
ENOUGH = (
    0.05  # seconds that the runs of a strategy take in all, from which on they are not repeated
)
HOPELESS = 50.0  # multiple of the best time so far at which a strategy is not run, by its estimate
TARGETS = 16
REACHED = 0.01  # share of the vertices that a search within a distance reaches, about
NEAREST, PLACES = 3, 0.002  # the nearest of so many targets, as a share of the vertices
COMPARED = 1 << 22  # distances of a cell
SINGLES = {"bfs": BFS, "sssp": SSSP}
REGISTRIES = {"bfs": BFS_REGISTRY, "sssp": SSSP_REGISTRY}
OF_NEAREST = {"result": "nearest_targets", "forms": ("sparse",), "output": "all"}
MULTI_SOURCE = {"bfs": BFS_MULTI_SOURCE, "sssp": SSSP_MULTI_SOURCE}


class Cell(NamedTuple):
    """The parameters that all strategies get."""

    source: GraphSource
    weights: str | None
    algorithm: str
    n_sources: int
    result: str

    def named(self) -> dict:
        return {
            "graph": self.source.name,
            "family": self.source.family,
            "directed": self.source.directed,
            "weights": self.weights or "",
            "algorithm": self.algorithm,
            "sources": self.n_sources,
            "result": self.result,
        }


class DifferentAnswersError(Exception):
    """The results of two strategies differ."""


class Scope(NamedTuple):
    """The cells that a sweep measures, and how often. None means all."""

    algorithms: Collection[str] | None = None
    sources: Collection[int] | None = None
    results: Collection[str] | None = None
    generated: bool = True
    repeats: int = 1
    largest: int | None = None  # vertices of a generated graph
    longest: float = float("inf")  # seconds of a cell, by its estimate
    seed: int = 0  # of the order of the graphs
    smallest: int | None = None  # vertices of a generated graph
    estimates_alone: bool = False  # measure what estimates are fitted to: no planning, no ``auto``

    def has(self, cell: Cell) -> bool:
        asked = (
            (self.algorithms, cell.algorithm),
            (self.sources, cell.n_sources),
            (self.results, cell.result),
        )
        return all(values is None or value in values for values, value in asked)


EVERYTHING = Scope()


def cells(source: GraphSource) -> list[Cell]:
    """All cells of a graph: those of earlier passes first, those of one kind of weights side by side in each half."""
    found = []
    for passes in (PASSES[:5], PASSES[5:]):
        for weights in (None, "wide", "even", "unit"):
            for n_sources, result in passes:
                if weights is None:
                    found.append(Cell(source, None, "bfs", n_sources, result))
                elif is_informative(weights, n_sources, result):
                    found.append(Cell(source, weights, "sssp", n_sources, result))
    return found


def is_informative(weights: str, n_sources: int, result: str) -> bool:
    """Whether SSSP with these weights adds to what other cells say. It holds all distances for a summary."""
    if result in ("within", "nearest", "hierarchy"):
        return weights == "even"  # short searches of wide weights may take minutes
    if weights == "wide":
        return result != "summary"
    if weights == "even":
        return n_sources in (8, 64) and result == "distances"
    return n_sources in (64, 512) and result in ("distances", "targets")


class Graphs:
    """The graphs built last, as many as fit into a share of the memory."""

    def __init__(self, device: str):
        self.device, self._held = device, OrderedDict()
        self._most = available_memory(device) // 4

    def clear(self) -> None:
        self._held.clear()

    def of(self, cell: Cell):
        has_hierarchy = cell.result == "hierarchy"
        key = (cell.source.name, cell.weights, has_hierarchy)
        if key not in self._held:
            self._held[key] = regret_graphs.build(cell.source, cell.weights, self.device)
            if has_hierarchy:
                self._held[key].hierarchy("weights" if cell.weights else "hops")
            while (
                len(self._held) > 1
                and sum(graph.nbytes for graph in self._held.values()) > self._most
            ):
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return self._held[key]


def product(rows) -> list:
    """Return the library's own strategies: none of a published system, and none with settings of one."""
    return [row for row in rows if row.knobs is None and not row.published and row.sums == "float"]


def sources_of(graph, n_sources: int) -> np.ndarray:
    """Random vertices with an edge that leads out; some of them twice where there are fewer."""
    degrees = to_host(namespace(graph.offsets).diff(graph.offsets))
    candidates = np.flatnonzero(degrees)
    return np.random.default_rng(n_sources).choice(
        candidates, n_sources, replace=n_sources > candidates.size
    )


def wait(graph) -> None:
    if graph.device == "cuda":
        cuda.cp.cuda.get_current_stream().synchronize()


def digest(values) -> int:
    return zlib.crc32(np.ascontiguousarray(to_host(values)).data)


def digests_of(group, first: int, every: int, algorithm: str) -> dict[int, int]:
    """Checksums of some rows of a group, by their places among all sources; the same for every width of integers."""
    found = {}
    for i in range(len(group)):
        if (first + i) % every:
            continue
        if group.counts is not None:
            counts = to_host(group.counts[i]).astype(np.int64)
            found[first + i] = digest(np.trim_zeros(counts, "b"))
        else:
            found[first + i] = digest(
                group.distance[i].astype(np.int32) if algorithm == "bfs" else group.distance[i]
            )
    return found


class Ways:
    """The strategies of a cell, each a function that plans, and what it is called."""

    def __init__(self, cell: Cell, graph):
        self.cell, self.graph = cell, graph
        self.numbers = sources_of(graph, cell.n_sources)
        self._many = plan_bfs_many if cell.algorithm == "bfs" else plan_sssp_many
        self._one = plan_bfs if cell.algorithm == "bfs" else plan_sssp
        self.options: dict[str, Any] = {"n_sources": cell.n_sources}
        self.options |= self._options_of(cell.result)
        rows = [row for row in product(SINGLES[cell.algorithm]) if self._fits(row)]
        self.singles = [row.name for row in rows]
        self.loop = next(row.name for row in rows if row.default)
        self.many = [
            row.name
            for row in product(MULTI_SOURCE[cell.algorithm])
            if row.default and self._fits(row)
        ]
        self.reversing = {
            row.name for row in MULTI_SOURCE[cell.algorithm] if row.reverses and self._fits(row)
        }

    def _options_of(self, result: str) -> dict[str, Any]:
        """Return the options of a plan that a result of a cell stands for."""
        if result in ("within", "hierarchy"):
            options: dict[str, Any] = {"result": "distances"}
            if result == "within":
                name = "max_depth" if self.cell.algorithm == "bfs" else "cutoff"
                options[name] = self._limit()
            return options
        if result == "targets":
            return {"result": result, "targets": self._drawn(TARGETS)}
        if result == "nearest":
            return {"targets": self._drawn(max(NEAREST, int(PLACES * self.graph.n_vertices)))}
        return {"result": result}

    def _drawn(self, count: int) -> list:
        drawn = np.random.default_rng(3).integers(0, self.graph.n_vertices, count)
        ids = self.graph.ids_at(namespace(self.graph.offsets).asarray(np.unique(drawn)))
        return to_host(ids).tolist()

    def _limit(self) -> float:
        """Return a distance within which a search from the first source reaches about ``REACHED`` of the vertices."""
        distance = to_host(self.plan_one("auto", self.graph).run(int(self.numbers[0])).distance)
        finite = np.sort(distance[(distance >= 0) & (distance < np.iinfo(np.int32).max)])
        limit = finite[min(int(REACHED * distance.size), finite.size - 1)]
        return max(int(limit), 1) if self.cell.algorithm == "bfs" else float(limit)

    def _fits(self, row) -> bool:
        return row.device == self.graph.device and row.unsupported_reason(self.graph) is None

    def plan(self, name: str):
        if self.cell.result != "nearest":
            return self._many(self.graph, strategy=name, **self.options)
        targets = self.options["targets"]
        places = np.sort(to_host(self.graph.to_numbers(targets)))
        return REGISTRIES[self.cell.algorithm].plan_multi_source(
            self.graph,
            n_sources=self.cell.n_sources,
            strategy=name,
            targets=targets,
            nearest=Nearest(NEAREST, [places]),
            **OF_NEAREST,
        )

    def compare_nearest(self, names: Collection[str]) -> None:
        """Raise DifferentAnswersError unless these strategies find the same nearest targets of some sources."""
        many = bfs_many if self.cell.algorithm == "bfs" else sssp_many
        ids = to_host(self.graph.ids_at(namespace(self.graph.offsets).asarray(self.numbers[:8])))
        asked = {"result": "nearest", "k": NEAREST, "targets": self.options["targets"]}
        found = [many(self.graph, ids, strategy=name, **asked) for name in names]
        if not all(found[0].equals(other) for other in found[1:]):
            raise DifferentAnswersError(f"{self.cell.named()}: the nearest targets differ")

    def plan_one(self, name: str, graph):
        return self._one(
            graph, strategy=name, predecessors=False, targets=self.options.get("targets")
        )


def run_over(
    plan, numbers, deadline: float, found: dict | None, cell: Cell, graph
) -> tuple[float, int]:
    """Search from all sources unless time is up; return the seconds, those of comparing left out, and sources done."""
    every = max(1, numbers.size * graph.n_vertices // COMPARED)
    wait(graph)
    began, done, seconds = clock.now(), 0, 0.0
    for group in plan.iter_groups(numbers):
        wait(graph)
        seconds += clock.computing(began, clock.now(), graph.device)
        if found is not None:
            found |= digests_of(group, done, every, cell.algorithm)
        done += len(group)
        if done < numbers.size and seconds > deadline:
            break
        began = clock.now()
    return seconds, done


def compare(found: dict, expected: dict, name: str, cell: Cell) -> None:
    """Raise DifferentAnswersError if the distances of a source differ from those of another strategy."""
    for place in found.keys() & expected.keys():
        if found[place] != expected[place]:
            raise DifferentAnswersError(
                f"{cell.named()}: {name} differs from the others for source {place}"
            )
    expected |= found


def amounts_at(auto, plan, cell: Cell) -> dict:
    """Return the shape by which ``auto`` estimates a strategy, and the amounts of its terms if it is in no registry."""
    shape = auto._candidates._shapes.of(plan.strategy)
    found = {"shape": shape._asdict()}
    if plan.strategy.name == "from_targets":
        machine = get_machine(plan.graph.device)
        found["terms"] = plan.strategy.terms(shape, cell.n_sources, plan.group, machine)
    return found


def measure_many(ways: Ways, cell: Cell, graph, longest: float) -> Iterator[dict]:
    """Return lines of a cell of several sources; the last one is ``auto``, as for a user. None if it would take too long."""
    planned = time_of_planning(ways, "auto", graph)
    plan = ways.auto = ways.plan("auto")
    shape, taken = plan.shape, plan.strategy.name
    estimates = {each.name: each.seconds for each in plan.ranked(cell.n_sources)}
    plan.release()
    if min(estimates.values(), default=0.0) > longest:
        return
    planning = planned - min(planned, time_of_planning(ways, taken, graph))
    reversing = time_of_reverse(graph)
    best, expected = float("inf"), {}
    if cell.result == "nearest" and len(estimates) > 1:
        ways.compare_nearest(estimates)
    names = {*ways.many, ways.loop, *estimates}
    for name in sorted(names, key=lambda name: estimates.get(name, float("inf"))):
        line = {
            "strategy": name,
            "repeats": name == ways.loop,
            "auto": taken,
            "estimated": estimates.get(name),
        }
        line |= {"shape": shape._asdict(), "planning": planning}
        line |= {"reverse_built": reversing if name in ways.reversing else None}
        allowed = max(LEAST, WORSE * best)
        if best < float("inf") and estimates.get(name, 0.0) > HOPELESS * max(best, LEAST):
            yield line | {"seconds": None, "over": None}
            continue
        try:
            plan, found = ways.plan(name), {}
        except CapacityError:
            yield line | {"seconds": None, "over": None, "refused": "memory"}
            continue
        if cell.result == "nearest":
            found = None  # strategies visit other vertices beside the nearest targets
        seconds, done = run_over(plan, ways.numbers, allowed, found, cell, graph)
        compare(found or {}, expected, name, cell)
        line |= {"group": plan.group} | amounts_at(ways.auto, plan, cell)
        if done < cell.n_sources:
            yield line | {"seconds": None, "over": round(seconds, 6)}
            continue
        times = [seconds]
        for _ in range(3 if seconds <= 1 else 1):
            if name == "from_targets":
                plan = ways.plan(name)  # one that has searched keeps what it found
            times.append(run_over(plan, ways.numbers, float("inf"), None, cell, graph)[0])
        seconds = min(times[1:] if seconds <= 1 else times)
        best = min(best, seconds)
        yield line | {"seconds": seconds}
        del plan
    if best == float("inf"):
        return
    times, choices = [], []
    for _ in range(3 if best <= 1 else 1):
        plan = ways.plan("auto")
        times.append(run_over(plan, ways.numbers, WORSE * WORSE * best, None, cell, graph)[0])
        choices.append([each._asdict() for each in plan.history][:8])
        del plan
    line = {
        "strategy": "auto",
        "repeats": False,
        "auto": taken,
        "shape": shape._asdict(),
        "planning": planning,
        "reverse_built": reversing if taken in ways.reversing else None,
        "group": None,
    }
    yield line | {"seconds": min(times), "history": choices[int(np.argmin(times))]}


def measure_estimated(ways: Ways, cell: Cell, graph, longest: float) -> Iterator[dict]:
    """Return lines of a cell with the times of the strategies that ``auto`` chooses among, and nothing else.

    A strategy whose estimate exceeds ``longest`` is left out, and so are short searches where a sample says that searches
    are not short: these are never chosen, and may take minutes. Results are compared as ``measure_many`` does.
    """
    expected: dict[int, int] = {}
    reversing = time_of_reverse(graph)
    auto = ways.plan("auto")
    auto.release()
    chosen = [
        each
        for each in auto.ranked(cell.n_sources)
        if each.seconds <= longest and (each.name != "short_search" or auto.shape.is_short)
    ]
    if cell.result == "nearest" and len(chosen) > 1:
        ways.compare_nearest([each.name for each in chosen])
    for each in chosen:
        plan = ways.plan(each.name)
        found = {} if cell.result != "nearest" else None
        times = [run_over(plan, ways.numbers, math.inf, found, cell, graph)[0]]
        compare(found or {}, expected, each.name, cell)
        while len(times) < 2 or (sum(times) < ENOUGH and len(times) < 4):
            if each.name == "from_targets":
                plan = ways.plan(each.name)  # one that has searched keeps what it found
            times.append(run_over(plan, ways.numbers, math.inf, None, cell, graph)[0])
        yield {
            "strategy": each.name,
            "repeats": each.name == ways.loop,
            "auto": auto.strategy.name,
            "estimated": each.seconds,
            "reverse_built": reversing if each.name in ways.reversing else None,
            "group": plan.group,
            **amounts_at(auto, plan, cell),
            "seconds": min(times[1:]),
        }


def seconds_of(call: Callable[[], Any], graph) -> float:
    """Return the seconds of a call with all its kernels."""
    wait(graph)
    began = clock.now()
    call()
    wait(graph)
    return clock.computing(began, clock.now(), graph.device)


def time_of_planning(ways: Ways, name: str, graph) -> float:
    """Return the fewest seconds of three plans. Their reverse, if used, exists already; each makes its survey."""
    times = []
    for _ in range(4):
        survey.forget(graph)
        times.append(seconds_of(lambda: ways.plan(name), graph))
        if times[-1] > 1:
            break
    return min(times[1:] or times)


def time_of_reverse(graph) -> float | None:
    """Seconds to build the reverse of a directed graph, which strategies that pull have to."""
    if not graph.directed:
        return None
    times = []
    for _ in range(3):
        graph.derived.drop_reverse()
        times.append(seconds_of(lambda: graph.reverse, graph))
    return min(times)


def measure_one(ways: Ways, cell: Cell, graph, _longest: float) -> Iterator[dict]:
    """Lines of a cell of one source: without the reverse, with one that is built in the call, and with one at hand."""
    number, expected = int(ways.numbers[0]), {}
    auto = ways.plan_one("auto", graph).strategy.name
    kinds = ("", "built", "at hand") if cell.algorithm == "bfs" and graph.directed else ("",)
    for name in ways.singles:
        for reverse in kinds:
            searched = graph.derived.with_reverse() if reverse else graph
            plan = ways.plan_one(name, searched)
            compare({0: digest(plan.run(number).distance)}, expected, name, cell)

            def run(reverse=reverse, name=name, plan=plan):
                (
                    ways.plan_one(name, graph.derived.with_reverse())
                    if reverse == "built"
                    else plan
                ).run(number)

            times = []
            for _ in range(3):
                graph.derived.drop_reverse()
                times.append(seconds_of(run, graph))
                if times[-1] > 1:
                    break
            graph.derived.drop_reverse()
            line = {"strategy": name, "repeats": False, "auto": auto, "reverse": reverse}
            yield line | {"seconds": min(times)}


def about(device: str, at: str | None) -> dict:
    """The machine, the versions and the commit, as every line has them; a copy of the code cannot find out its commit."""
    packages = ("numpy", "numba", "pyarrow", "cupy-cuda13x", "cupy-cuda12x", "cupy")
    return {
        "device": device,
        "speeds": asdict(get_machine(device)),
        **environment.about(packages, at=at),
    }


def key_of(line: dict) -> tuple:
    return tuple(
        line[name] for name in ("device", "graph", "weights", "algorithm", "sources", "result")
    )


def sweep(
    device: str,
    folder: Path | None,
    output: Path,
    seconds: float,
    resume: bool,
    scope: Scope = EVERYTHING,
    commit: str | None = None,
) -> int:
    """Measure cell by cell until the seconds are over; return how many cells were measured.

    The cells of a graph are measured ``scope.repeats`` times in turns. A disturbance then affects few of the lines of a
    cell, of which ``fit`` and ``numbers`` take the fastest.

    Raises
    ------
    DifferentAnswersError
    """
    began = time.perf_counter()
    largest = scope.largest or regret_graphs.LARGEST[device]
    smallest = scope.smallest or regret_graphs.SMALLEST
    made = regret_graphs.generated(smallest, largest) if scope.generated else ()
    sources = [*made, *regret_graphs.of_folder(folder)]
    sources = [
        source for source in sources if source.family != "file" or source.size <= 8 * largest
    ]
    sources = [sources[i] for i in np.random.default_rng(scope.seed).permutation(len(sources))]
    done = set()
    if resume and output.exists():
        done = {key_of(json.loads(line)) for line in output.read_text().splitlines()}
    output.parent.mkdir(parents=True, exist_ok=True)
    facts, graphs, measured = about(device, commit), Graphs(device), 0
    with open(output, "a" if resume else "w") as file:
        for at, source in enumerate(sources):
            left = seconds - (time.perf_counter() - began)
            if left <= 0:
                print(
                    f"time is up after {measured} cells of {at} of {len(sources)} graphs; --resume continues"
                )
                break
            # An equal share of what is left, times two, as small graphs take less than their share.
            ends = time.perf_counter() + 2 * left / (len(sources) - at)
            for cell in scope.repeats * [each for each in cells(source) if scope.has(each)]:
                if time.perf_counter() > ends:
                    break
                if key_of(cell.named() | facts) in done:
                    continue
                if cell.result == "hierarchy" and not source.is_network:
                    continue
                if scope.estimates_alone and cell.weights == "unit":
                    continue
                try:
                    graph = graphs.of(cell)
                except MemoryError:
                    print(f"{source.name} does not fit")
                    break
                if not graph.n_edges:
                    break
                ways = Ways(cell, graph)
                several = measure_estimated if scope.estimates_alone else measure_many
                measure = measure_one if cell.n_sources == 1 else several
                lines = list(measure(ways, cell, graph, scope.longest))
                file.writelines(json.dumps(cell.named() | facts | line) + "\n" for line in lines)
                file.flush()
                measured += bool(lines)
            if device == "cuda":
                graphs.clear()
                cuda.cp.get_default_memory_pool().free_all_blocks()
    return measured
