"""The works of regret: each strategy of a device and ``auto``, on many graphs, numbers of sources and results.

A work is a cell: a graph, an algorithm, a kind of weights, a number of sources and a result. Its strategies search from the
same sources, and their distances are compared. One that takes several times as long as the best so far is left out.
The graphs are all Parquet files of the folder of graphs with columns src and dst, and generated ones, in random order.
``--set scripts.regret.suite.LARGEST=100000`` limits the vertices of a generated graph.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse import (
    bfs_many,
    plan_bfs,
    plan_bfs_many,
    plan_sssp,
    plan_sssp_many,
    sssp_many,
)
from kepler_traverse._arrays import namespace, to_host
from kepler_traverse.auto import survey
from kepler_traverse.auto.calibration import get_machine
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MANY
from kepler_traverse.errors import CapacityError
from kepler_traverse.search.query import Nearest
from kepler_traverse.sssp import REGISTRY as SSSP
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MANY
from scripts.measure import clock
from scripts.measure.environment import free_pool, wait_for_gpu
from scripts.measure.work import Call, Inputs, Prepare, Repeats, Timed, Work
from scripts.regret import graphs
from scripts.regret.graphs import GraphSource

PACKAGES = ("pyarrow", "cupy-cuda13x", "cupy-cuda12x")
# Sources and result, the most informative first; those of the first ones are measured before the others.
PASSES = (
    *((64, "distances"), (512, "distances"), (8, "distances"), (4096, "distances")),
    *((1, "distances"), (512, "summary"), (64, "targets"), (512, "targets"), (64, "summary")),
    *((4096, "targets"), (8, "targets"), (4096, "summary"), (8, "summary"), (64, "within")),
    *((64, "nearest"), (64, "hierarchy")),
)
FIRST = 5
LARGEST = 0
SMALLEST = 1_000  # vertices of a generated graph; 0: what the device permits
LONGEST = math.inf  # seconds of a cell, by its estimate
WORSE = 3.0  # multiple of the best time so far from which on a strategy is left out
LEAST = 0.05  # seconds that each strategy may take in any case
HOPELESS = 50.0  # multiple of the least estimate from which on a strategy is not run
TARGETS = 16
REACHED = 0.01  # share of the vertices that a search within a distance reaches, about
NEAREST = 3
PLACES = 0.002  # the nearest of so many targets, as a share of the vertices
COMPARED = 1 << 22  # distances of a cell
AUTO = "auto"
FROM_TARGETS = "from_targets"
OF_NEAREST = {"result": "nearest_targets", "forms": ("sparse",), "output": "all"}


class Algorithm(NamedTuple):
    """What a sweep calls of an algorithm, with the library's own strategies."""

    registry: Any
    one: Callable
    many: Callable
    frame: Callable
    singles: list
    strategies: list


def own(rows: Any) -> list:
    """Return strategies of no published system, and none with settings of one."""
    return [row for row in rows if row.knobs is None and not row.published and row.sums == "float"]


ALGORITHMS = {
    "bfs": Algorithm(
        BFS, plan_bfs, plan_bfs_many, bfs_many, own(BFS.with_plugins()[0]), own(BFS_MANY)
    ),
    "sssp": Algorithm(
        SSSP, plan_sssp, plan_sssp_many, sssp_many, own(SSSP.with_plugins()[0]), own(SSSP_MANY)
    ),
}


class Cell(NamedTuple):
    """The parameters that all strategies get."""

    source: GraphSource
    weights: str  # "" of hops
    n_sources: int
    result: str

    @property
    def algorithm(self) -> str:
        if self.weights:
            return "sssp"
        return "bfs"

    @property
    def facts(self) -> dict:
        names = {"weights": self.weights, "algorithm": self.algorithm, "result": self.result}
        return names | {"sources": self.n_sources, "family": self.source.family}

    @property
    def name(self) -> str:
        weights = f", {self.weights} weights" if self.weights else ""
        return f"{self.algorithm}{weights}, {self.n_sources} sources, {self.result}"

    def is_informative(self) -> bool:
        """Whether the cell adds to what others say. SSSP holds all distances for a summary."""
        if self.result == "hierarchy" and not self.source.is_network:
            return False
        if not self.weights:
            return True
        if self.result in ("within", "nearest", "hierarchy"):
            return self.weights == "even"  # short searches of wide weights may take minutes
        if self.weights == "wide":
            return self.result != "summary"
        if self.weights == "even":
            return self.n_sources in (8, 64) and self.result == "distances"
        return self.n_sources in (64, 512) and self.result in ("distances", "targets")


def cells(source: GraphSource) -> Iterator[Cell]:
    """Yield the cells of a graph: those of one kind of weights side by side, so that it is built seldom."""
    for passes in (PASSES[:FIRST], PASSES[FIRST:]):
        for weights in ("", "wide", "even", "unit"):
            of_weights = (Cell(source, weights, *each) for each in passes)
            yield from (cell for cell in of_weights if cell.is_informative())


class TooSlowError(NotImplementedError):
    """A strategy takes several times as long as the best; it is left out."""


class DifferentAnswersError(SystemExit):
    """The results of two strategies differ."""


@lru_cache(1)
def graph_of(source: GraphSource, weights: str, has_hierarchy: bool, device: str) -> Any:
    if device == "cuda":
        free_pool()
    graph = graphs.build(source, weights or None, device)
    if not graph.n_edges:
        raise FileNotFoundError(f"{source.name} has no edges")
    if has_hierarchy:
        graph.hierarchy("weights" if weights else "hops")
    return graph


def sources_of(graph: Any, n_sources: int) -> np.ndarray:
    """Random vertices with an edge that leads out; some of them twice where there are fewer."""
    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    is_short = n_sources > candidates.size
    return np.random.default_rng(n_sources).choice(candidates, n_sources, replace=is_short)


def digest(values: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(to_host(values)).data)


def digests_of(group: Any, first: int, every: int, algorithm: str) -> dict[int, int]:
    """Checksums of some rows of a group, by their places among all sources; the same for every width of integers."""
    found = {}
    for i in range(-first % every, len(group), every):
        if group.counts is not None:
            values = np.trim_zeros(to_host(group.counts[i]).astype(np.int64), "b")
        else:
            values = group.distance[i]
            if algorithm == "bfs":
                values = values.astype(np.int32)
        found[first + i] = digest(values)
    return found


class Case:
    """A cell with its graph: what its strategies plan, what ``auto`` expects of them, and the best time so far."""

    def __init__(self, cell: Cell, device: str):
        self.cell = cell
        self.device = device
        self.calls = ALGORITHMS[cell.algorithm]
        self.graph = graph_of(cell.source, cell.weights, cell.result == "hierarchy", device)
        self.numbers = sources_of(self.graph, cell.n_sources)
        self.options = {"n_sources": cell.n_sources} | self._options()
        self.best = math.inf

    def _options(self) -> dict:
        """Return the options of a plan that the result of the cell stands for."""
        result = self.cell.result
        if result == "within":
            name = "max_depth" if self.cell.algorithm == "bfs" else "cutoff"
            return {"result": "distances", name: self._limit()}
        if result == "targets":
            return {"result": result, "targets": self._drawn(TARGETS)}
        if result == "nearest":
            return {"targets": self._drawn(max(NEAREST, int(PLACES * self.graph.n_vertices)))}
        return {"result": "distances" if result == "hierarchy" else result}

    def _drawn(self, count: int) -> list:
        drawn = np.random.default_rng(3).integers(0, self.graph.n_vertices, count)
        return self.ids_of(np.unique(drawn)).tolist()

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        return to_host(self.graph.ids_at(namespace(self.graph.offsets).asarray(numbers)))

    def _limit(self) -> float:
        """Return a distance within which a search from the first source reaches about ``REACHED`` of the vertices."""
        search = self.calls.one(self.graph, predecessors=False)
        distance = to_host(search.run(int(self.numbers[0])).distance)
        finite = np.sort(distance[(distance >= 0) & (distance < np.iinfo(np.int32).max)])
        limit = finite[min(int(REACHED * distance.size), finite.size - 1)]
        if self.cell.algorithm == "bfs":
            return max(int(limit), 1)
        return float(limit)

    def fits(self, row: Any) -> bool:
        return row.device == self.device and row.unsupported_reason(self.graph) is None

    def plan(self, name: str) -> Any:
        if self.cell.result != "nearest":
            return self.calls.many(self.graph, strategy=name, **self.options)
        places = [np.sort(to_host(self.graph.to_numbers(self.options["targets"])))]
        given = self.options | OF_NEAREST | {"nearest": Nearest(NEAREST, places)}
        return self.calls.registry.plan_multi_source(self.graph, strategy=name, **given)

    @cached_property
    def auto(self) -> Any:
        plan = self.plan(AUTO)
        plan.release()
        return plan

    @cached_property
    def estimates(self) -> dict[str, float]:
        return {each.name: each.seconds for each in self.auto.ranked(self.cell.n_sources)}

    @cached_property
    def loop(self) -> str:
        """The strategy that searches from one source after the other."""
        return next(row.name for row in self.calls.singles if self.fits(row) and row.default)

    @cached_property
    def fitting(self) -> dict:
        """The strategies for several sources that can search the graph, by name."""
        return {row.name: row for row in self.calls.strategies if self.fits(row)}

    @cached_property
    def planning(self) -> float:
        """The seconds of planning that the choice of a strategy takes."""
        whole = self.time_of_planning(AUTO)
        return whole - min(whole, self.time_of_planning(self.auto.strategy.name))

    def time_of_planning(self, name: str) -> float:
        """Return the fewest seconds of three plans. Their reverse, if used, exists already; each makes its survey."""

        def plan() -> None:
            survey.forget(self.graph)
            self.plan(name)

        plan()
        return min(self.seconds_of(plan) for _ in range(3))

    @cached_property
    def reverse_built(self) -> float | None:
        """The seconds to build the reverse of a directed graph, which strategies that pull have to."""
        if not self.graph.directed:
            return None

        def build() -> None:
            self.graph.derived.drop_reverse()
            _ = self.graph.reverse

        return min(self.seconds_of(build) for _ in range(3))

    def seconds_of(self, call: Callable) -> float:
        """Return the seconds of a call with all its kernels."""
        self.wait()
        began = clock.now()
        call()
        self.wait()
        return clock.computing(began, clock.now(), self.device)

    def wait(self) -> None:
        if self.device == "cuda":
            wait_for_gpu()

    def search(self, plan: Any, deadline: float = math.inf) -> tuple[float, dict[int, int]]:
        """Search from all sources; return the seconds, those of comparing left out, and checksums of distances."""
        every = max(1, self.numbers.size * self.graph.n_vertices // COMPARED)
        found = {}
        n_done = 0
        seconds = 0.0
        self.wait()
        began = clock.now()
        for group in plan.iter_groups(self.numbers):
            self.wait()
            seconds += clock.computing(began, clock.now(), self.device)
            if self.cell.result != "nearest":  # strategies visit other vertices beside the targets
                found |= digests_of(group, n_done, every, self.cell.algorithm)
            n_done += len(group)
            if n_done < self.numbers.size and seconds > deadline:
                raise TooSlowError(f"over {seconds:.6f}")
            began = clock.now()
        return seconds, found

    def compare_nearest(self) -> None:
        """Raise DifferentAnswersError unless all strategies find the same nearest targets of some sources."""
        asked = {"result": "nearest", "k": NEAREST, "targets": self.options["targets"]}
        ids = self.ids_of(self.numbers[:8])
        found = [
            self.calls.frame(self.graph, ids, strategy=name, **asked) for name in self.estimates
        ]
        if not all(found[0].equals(other) for other in found[1:]):
            raise DifferentAnswersError(f"{self.cell.name}: the nearest targets differ")

    def facts(self) -> dict:
        known = self.cell.facts | {"speeds": asdict(get_machine(self.device))}
        if self.cell.n_sources == 1:
            return known | {"auto": self.calls.one(self.graph, predecessors=False).strategy.name}
        return known | {"auto": self.auto.strategy.name, "planning": self.planning}


@lru_cache(1)
def case_of(inputs: Inputs, cell: Cell) -> Case:
    return Case(cell, inputs.device)


def of_many(case: Case, name: str) -> Call:
    """Prepare a strategy, or ``auto`` as for a user, for several sources; the first run compiles."""
    estimates = case.estimates
    least = min(estimates.values(), default=0.0)
    is_known = name in (AUTO, case.loop, *estimates, *case.fitting)
    if not is_known or least > LONGEST:
        raise NotImplementedError("of another graph, or too long")
    if estimates.get(name, 0.0) > HOPELESS * max(least, LEAST):
        raise TooSlowError("by its estimate")
    if case.cell.result == "nearest" and case.best == math.inf:
        case.compare_nearest()
    try:
        plan = case.plan(name)
    except CapacityError as error:
        raise NotImplementedError(str(error)) from error
    allowed = max(LEAST, WORSE * min(case.best, HOPELESS * max(least, LEAST)))
    seconds, found = case.search(plan, allowed)
    case.best = min(case.best, seconds)
    more = {"estimated": estimates.get(name), "is_loop": name == case.loop}
    strategy = case.auto.strategy.name if name == AUTO else name
    reverses = strategy in case.fitting and case.fitting[strategy].reverses
    more["reverse_built"] = case.reverse_built if reverses else None
    if name != AUTO:
        more |= {"group": plan.group} | amounts_at(case, plan)

    def run() -> Timed:
        # ``auto`` begins anew, and a plan from the targets keeps what it has found
        again = case.plan(name) if name in (AUTO, FROM_TARGETS) else plan
        return Timed(found, case.search(again)[0], more)

    return run


def amounts_at(case: Case, plan: Any) -> dict:
    """Return the shape by which ``auto`` estimates a strategy, and the amounts of its terms if it is in no registry."""
    shape = case.auto._candidates._shapes.of(plan.strategy)
    found = {"shape": shape._asdict()}
    if plan.strategy.name == FROM_TARGETS:
        machine = get_machine(case.device)
        found["terms"] = plan.strategy.terms(shape, case.cell.n_sources, plan.group, machine)
    return found


def of_one(case: Case, name: str, reverse: str) -> Call:
    """Prepare a search from one source: without the reverse, with one that is built in the call, or with one at hand."""
    if not any(row.name == name and case.fits(row) for row in case.calls.singles):
        raise NotImplementedError("of another graph")
    if reverse and not case.graph.directed:
        raise NotImplementedError("the graph is its own reverse")
    number = int(case.numbers[0])
    targets = case.options.get("targets")

    def plan() -> Any:
        searched = case.graph.derived.with_reverse() if reverse else case.graph
        return case.calls.one(searched, strategy=name, predecessors=False, targets=targets)

    ready = plan()
    found = {0: digest(ready.run(number).distance)}

    def run() -> Timed:
        case.graph.derived.drop_reverse()
        search = (lambda: plan().run(number)) if reverse == "built" else partial(ready.run, number)
        seconds = case.seconds_of(search)
        case.graph.derived.drop_reverse()
        return Timed(found, seconds, {"reverse": reverse})

    return run


def peers_of(cell: Cell, device: str) -> dict[str, Prepare]:
    """Return the strategies that may run in a cell; those that cannot are left out when its graph is there."""
    calls = ALGORITHMS[cell.algorithm]
    singles = [row for row in calls.singles if row.device == device]
    if cell.n_sources == 1:
        kinds = ("", "built", "at hand") if cell.algorithm == "bfs" else ("",)
        return {
            f"{row.name}{reverse and f', reverse {reverse}'}": partial(
                of_one, name=row.name, reverse=reverse
            )
            for row in singles
            for reverse in kinds
        }
    names = [row.name for row in calls.strategies if row.device == device and row.default]
    names += [row.name for row in singles if row.default] + [FROM_TARGETS, AUTO]
    return {name: partial(of_many, name=name) for name in names}


def differences(expected: dict[int, int], found: dict[int, int]) -> str:
    """Compare the checksums of the sources that both have."""
    wrong = [place for place in found.keys() & expected.keys() if found[place] != expected[place]]
    if wrong:
        return f"source {wrong[0]} differs from the others"
    return ""


def works(inputs: Inputs) -> Iterator[Work]:
    largest = LARGEST or graphs.LARGEST[inputs.device]
    files = (each for each in graphs.of_folder(inputs.graphs) if each.size <= 8 * largest)
    sources = [*graphs.generated(SMALLEST, largest), *files]
    for place in np.random.default_rng(inputs.seed).permutation(len(sources)):
        for cell in cells(sources[place]):
            yield Work(
                name=cell.name,
                graph=cell.source.name,
                size=cell.n_sources,
                case=partial(case_of, cell=cell),
                peers=peers_of(cell, inputs.device),
                check=differences,
                facts=Case.facts,
                repeats=Repeats(most=3, seconds=3.0),
            )
