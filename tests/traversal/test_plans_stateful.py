"""Plans that serve many groups: each result is that of a fresh plan, whatever the plan has searched before.

A machine of rules keeps one plan and asks it for groups of other sizes, with target lists of uneven length, while calls
between them stop early, fail or are interrupted. The oracle is another plan per question, which searches from one source
after another on a CPU.
"""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kepler_traverse._arrays import make_offsets, to_host
from kepler_traverse.auto.choice import Choice
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.bfs.tuning import StreamedTuning
from kepler_traverse.cpu import threads
from kepler_traverse.errors import CapacityError, EdgeListWarning, StrategyError
from kepler_traverse.kinds.pairs import frame_of_pairs, pair_table
from kepler_traverse.kinds.question import Question, Targets, check_options
from kepler_traverse.kinds.result_kinds import PLAIN, RESULT_KINDS
from kepler_traverse.multi_source.outputs import ResultForm, loads_frame
from kepler_traverse.search.exact import convert_distances
from kepler_traverse.search.frames import frames_on
from kepler_traverse.search.query import TargetLists
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import REGISTRY as SSSP
from tests.support import tiers
from tests.support.devices import FIRST, frames_on_pandas, on_a_device, running
from tests.support.failures import failing_allocation
from tests.support.graphs import build, lattice, path, rmat

REGISTRIES = {"bfs": BFS, "sssp": SSSP}

# --- graphs: more than 128 vertices, a multiple of which is the pitch of distances on a GPU -------------------------------

ROWS = {
    "lattice": (lattice(12, 40), False),
    "power law": (rmat(8, 4, seed=3), True),
    # Most vertices reach few others, and have in-neighbors that they do not reach.
    "branches": (np.random.default_rng(1).integers(0, 260, (300, 2)).tolist(), True),
    # Searches from the ends have more levels than int8 holds, and longer sums. Those of the first sources are short.
    "path": ([*path(60), *((v, v + 1) for v in range(100, 290))], False),
    # Without a cycle, and some paths have 150 edges.
    "forward": ([*path(150), *(tuple(sorted(edge)) for edge in rmat(8, 2, seed=5))], True),
}
# Of strategies that few graphs suit.
ROWS_OF = {"topological_sweep": ["forward"]}
WEIGHTS = {
    "integers": lambda rng, n: rng.integers(1, 50, n),
    "floats": lambda rng, n: rng.exponential(1.0, n).astype(np.float32),
    # Sums of 64 or more edges need float64, or int64: so some sources of a path need them.
    "wide": lambda rng, n: 2**18 - rng.integers(0, 2, n),
    "huge": lambda rng, n: 2**47 - rng.integers(0, 2, n),
}


@cache
def graph_of(rows: str, weights: str):
    edges, directed = ROWS[rows]
    named = rows == "power law"  # frames of text ids are made in another way
    drawn = WEIGHTS[weights](np.random.default_rng(7), len(edges))
    id_type = np.dtype("U4") if named else np.int64
    graph = build(edges, drawn, directed=directed, id_type=id_type, edge_ids=True)
    for metric in ("hops", "weights") if weights == "integers" and rows == "lattice" else ():
        graph.hierarchy(metric)
    return graph


# --- questions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A result kind with options, as its calls have them."""

    result: str
    options: dict[str, Any] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ("bfs", "sssp")
    targets: bool = False
    pairs: bool = False
    takes_limit: bool = True


def _values(graph) -> dict[str, np.ndarray]:
    n = graph.n_vertices
    return {"jobs": np.arange(n) % 7, "area": np.arange(n) / 8}


def _along(graph) -> dict[str, np.ndarray]:
    n = graph.report.rows
    return {"metres": np.arange(n) % 7, "toll": np.arange(n) / 8}


KINDS = {
    "distances": Kind("distances"),
    "distances at targets": Kind("distances", targets=True),
    "distances or null": Kind("distances", {"unreached": "null"}),
    "predecessors": Kind("predecessors"),
    "predecessors at targets": Kind("predecessors", targets=True),
    "matrix": Kind("matrix"),
    "matrix of targets": Kind("matrix", targets=True),
    "summary": Kind("summary"),
    "levels": Kind("levels", algorithms=("bfs",)),
    "targets": Kind("targets", targets=True),
    "reachable": Kind("reachable"),
    "nearest targets": Kind("nearest_targets", {"k": 2}, targets=True),
    "opportunities": Kind(
        "opportunities", {"cutoffs": [2, 20], "values": _values}, takes_limit=False
    ),
    "within": Kind("within", {"cutoffs": [3, 30]}, takes_limit=False),
    "streets": Kind("streets", {"cutoffs": [3, 30], "along": _along}, takes_limit=False),
    "isochrones": Kind("isochrones", {"cutoffs": [3, 30]}, takes_limit=False),
    "flows": Kind("flows", targets=True),
    "flows of vertices": Kind("flows", {"of": "vertices"}),
    "betweenness": Kind("betweenness"),
    "betweenness of edges": Kind("betweenness", {"of": "edges"}),
    "betweenness to targets": Kind(
        "betweenness", {"of": "edges", "endpoints": False}, targets=True
    ),
    "pairs": Kind("pairs", pairs=True),
    "flows of pairs": Kind("flows", {"of": "edges"}, pairs=True),
    "paths": Kind("paths", pairs=True, takes_limit=False),
}
LIMITS = {"bfs": [0, 3, 40], "sssp": [0, 12, 2.0**24, 2**50]}
MIXED = "mixed"  # of strategies: the one of each group is chosen at random
STREAMED = "bit_parallel_streamed"  # its graphs have their edges in host memory
# so that these graphs have several
SHORT_SEGMENTS = StreamedTuning(chunk=64, min_segment=64)
STRATEGIES = {
    ("bfs", "cpu"): [
        "short_search",
        "bit_parallel",
        "source_per_thread",
        "hierarchy_sweep",
        "one_at_a_time",
        MIXED,
    ],
    ("bfs", "cuda"): [
        "short_search",
        "bit_parallel",
        STREAMED,
        "source_per_block",
        "one_at_a_time",
        MIXED,
    ],
    ("sssp", "cpu"): [
        "short_search",
        "near_far_per_thread",
        "topological_sweep",
        "hierarchy_sweep",
        "one_at_a_time",
        MIXED,
    ],
    ("sssp", "cuda"): [
        "short_search",
        "source_per_block",
        "source_per_lane",
        "hierarchy_sweep",
        "one_at_a_time",
        MIXED,
    ],
}


def on_device(graph, device: str, strategy: str):
    """The graph on a device, where the strategy takes its edges."""
    return graph.to(device, edges="host" if strategy == STREAMED else "device")


def warned_of_edges(result, graph):
    """Expect a warning where the result leaves out rows of the edge list, and none elsewhere."""
    notes = result.options_class.notes_on_edges(graph.report.facts())
    return pytest.warns(EdgeListWarning) if notes else nullcontext()


class Asker:
    """A plan for one kind of question, which answers for any sources."""

    def __init__(
        self,
        graph,
        algorithm: str,
        kind: Kind,
        strategy: str,
        n_sources: int,
        limit,
        targets,
        memory=None,
    ):
        registry, self.result = REGISTRIES[algorithm], RESULT_KINDS[kind.result]
        self.graph, self.algorithm, self.kind, self.targets = graph, algorithm, kind, targets
        given = {
            name: value(graph) if callable(value) else value for name, value in kind.options.items()
        }
        self._given = given
        known = {} if kind.pairs else {"targets": targets}
        self.options = PLAIN
        if not kind.pairs:
            with warned_of_edges(self.result, graph):
                self.options = check_options(self.result, graph, algorithm, given, **known)
        limit = limit if self.options.limit is None else self.options.limit
        # On the harness no kernel surveys the depth of the graph.
        weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
        shape = Shape(
            graph.n_vertices,
            graph.n_edges,
            graph.directed,
            40,
            graph.targets.dtype.itemsize,
            weight,
        )
        self.plan = registry.plan_multi_source(
            graph,
            n_sources=n_sources,
            result=kind.result,
            strategy="auto" if strategy == MIXED else strategy,
            limit=limit,
            targets=None if targets is None else graph.ids_at(targets),
            forms=self.result.reads if self.options.unreached == "omit" else (),
            shape=shape if graph.device == "cuda" else None,
            has_target_lists=kind.pairs,
            targets_per_source=20.0 if kind.pairs else None,
            memory=memory,
            tuning=SHORT_SEGMENTS if strategy == STREAMED else None,
            **({} if kind.pairs else self.options.of_query(targets)),
        )

    def groups(self, sources: np.ndarray, ends: list[np.ndarray] | None):
        """The groups of some sources, each with ends of its own if the kind is of pairs."""
        return self.plan.iter_groups(sources, None if ends is None else lists_of(ends))

    def answer(self, sources: np.ndarray, ends: list[np.ndarray] | None) -> Any:
        """The result, in host memory."""
        graph, kind = self.graph, self.kind
        if not kind.pairs:
            targets = None if self.targets is None else Targets(None, self.targets)
            question = Question(
                kind=self.result, algorithm=self.algorithm, targets=targets, options=self.options
            )
            form = ResultForm(self.plan, question, frames_on(graph.device))
            return form.make(self.groups(sources, None), sources, np.arange(sources.size))
        table = pair_table(np.repeat(sources, [each.size for each in ends]), np.concatenate(ends))
        if kind.result == "flows":
            options = check_options(self.result, graph, self.algorithm, self._given, pairs=table)
            question = Question(
                kind=self.result, algorithm=self.algorithm, pairs=table, options=options
            )
            loads = self.result.make_loads(question.asked(graph, self.plan.query))
            return loads_frame(
                loads, self.plan.iter_groups(table.sources, table.lists), frames_on(graph.device)
            )
        without, options = {"pairs": ("pair", PLAIN_PAIRS), "paths": ("source", PLAIN_PATHS)}[
            kind.result
        ]
        return frame_of_pairs(kind.result, self.plan, table, without, options)


PLAIN_PAIRS = RESULT_KINDS["pairs"].options_class()
PLAIN_PATHS = RESULT_KINDS["paths"].options_class(edges=False)


def lists_of(ends: list[np.ndarray]) -> TargetLists:
    return TargetLists(
        make_offsets(np.array([each.size for each in ends])), np.concatenate(ends).astype(np.int64)
    )


def require_equal(found: Any, expected: Any) -> None:
    """Raise unless two results are equal in each bit and each type."""
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_exact=True, check_column_type=False)
    else:
        found = to_host(found)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


# --- what comes between ------------------------------------------------------------------------------------------------


@contextmanager
def chosen_at_random(seed: int):
    """Let plans choose the strategy and the size of each group at random."""
    draw = random.Random(seed)

    def choose(self, _current, left):
        name = draw.choice(sorted(self._groups))
        return name, draw.randint(1, min(self._groups[name], left, 30))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Choice, "next", choose)
        yield


@contextmanager
def interrupted(after: int):
    """Interrupt the calling thread after some of the loops that it shares with others."""
    left, run = after, threads.on_each

    def on_each(*args, **options):
        nonlocal left
        run(*args, **options)
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "on_each", on_each)
        yield


def in_another_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns in a thread of its own; its error is raised here."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((call(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = found[0]
    if error is not None:
        raise error
    return result


class Plans(RuleBasedStateMachine):
    """One plan, what is asked of it, and what disturbs it."""

    device = "cpu"
    strategies = STRATEGIES

    @initialize(data=st.data())
    def make_plan(self, data):
        name = data.draw(st.sampled_from(sorted(KINDS)), "kind")
        kind = KINDS[name]
        known = [each for each in kind.algorithms if (each, self.device) in self.strategies]
        algorithm = data.draw(st.sampled_from(known), "algorithm")
        weights = (
            "integers"
            if algorithm == "bfs"
            else data.draw(st.sampled_from(sorted(WEIGHTS)), "weights")
        )
        strategy = data.draw(st.sampled_from(self.strategies[algorithm, self.device]), "strategy")
        rows = data.draw(st.sampled_from(ROWS_OF.get(strategy, sorted(ROWS))), "graph")
        limit = (
            data.draw(st.sampled_from([None, None, *LIMITS[algorithm]]), "limit")
            if kind.takes_limit
            else None
        )
        n = graph_of(rows, weights).n_vertices
        targets = None
        if kind.targets:
            targets = np.unique(
                np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, n, 20)
            )
        n_sources, share = (
            data.draw(st.sampled_from([2, 40])),
            data.draw(st.sampled_from([None, 1.0, 0.5, 0.2])),
        )
        self.start(
            rows,
            weights,
            algorithm,
            kind,
            strategy,
            n_sources,
            limit,
            targets,
            share,
            data.draw(st.integers(0, 99)),
        )

    def start(
        self,
        rows,
        weights,
        algorithm,
        kind,
        strategy,
        n_sources,
        limit=None,
        targets=None,
        share=None,
        seed=0,
    ):
        """Make the plan, and that of the oracle."""
        self.asker, self.kind, self.limit = None, kind, limit
        asked = algorithm, kind
        self.mixing = chosen_at_random(seed)
        self.mixing.__enter__()
        self.oracle = Asker(graph_of(rows, weights), *asked, "one_at_a_time", 16, limit, targets)
        graph = on_device(graph_of(rows, weights), self.device, strategy)

        def plan_for(n_planned, memory=None):
            return Asker(graph, *asked, strategy, n_planned, limit, targets, memory)

        try:
            if share is None:
                self.asker = plan_for(n_sources)
            else:
                # a share of the sources, as some of the memory is the same for any number of them
                few = plan_for(max(1, int(share * n_sources)))
                self.asker = plan_for(n_sources, few.plan.nbytes)
        except (StrategyError, CapacityError):
            if not hypothesis.currently_in_test_context():
                raise
            # it cannot take this graph, or has too little memory
            hypothesis.reject()

    def teardown(self):
        if hasattr(self, "mixing"):
            self.mixing.__exit__(None, None, None)

    def sources_and_ends(
        self, n_sources: int, size: int, seed: int
    ) -> tuple[np.ndarray, list[np.ndarray] | None]:
        """Ascending sources, and lists of ``size`` ends together, of which some may be empty."""
        rng, n = np.random.default_rng(seed), self.oracle.graph.n_vertices
        sources = np.sort(rng.choice(n, min(n_sources, n), replace=False))
        if not self.kind.pairs:
            return sources, None
        bounds = np.sort(rng.integers(0, size + 1, sources.size - 1))
        ends = np.split(rng.choice(n, min(size, n), replace=False), bounds)
        return sources, ends

    def expected(self, sources, ends):
        self.oracle.plan.release()
        return self.oracle.answer(sources, ends)

    @rule(
        n_sources=st.integers(1, 70),
        size=st.sampled_from([1, 10, 100, 127, 128, 129, 300]),
        seed=st.integers(0, 999),
    )
    def answer(self, n_sources, size, seed):
        asked = self.sources_and_ends(n_sources, size, seed)
        require_equal(self.asker.answer(*asked), self.expected(*asked))

    @rule(
        n_sources=st.integers(1, 70),
        size=st.sampled_from([0, 1, 5, 127, 129, 300]),
        seed=st.integers(0, 999),
    )
    def search(self, n_sources, size, seed):
        """Distances at the ends, of which each source of a group may have none."""
        sources, ends = self.sources_and_ends(n_sources, size, seed)
        if self.asker.plan.query.output != "targets" or ends is None:
            return
        found = [to_host(group.distance) for group in self.asker.groups(sources, ends)]
        whole = Asker(
            self.oracle.graph,
            self.oracle.algorithm,
            KINDS["matrix"],
            "one_at_a_time",
            16,
            self.limit,
            None,
        )
        expected = whole.answer(sources, None)[
            np.repeat(np.arange(sources.size), [each.size for each in ends])
        ]
        expected = expected[np.arange(len(expected)), np.concatenate(ends)]
        assert np.array_equal(
            *(convert_distances(each, expected.dtype) for each in (np.concatenate(found), expected))
        )

    @rule(n_sources=st.integers(1, 40), seed=st.integers(0, 999))
    def answer_in_another_thread(self, n_sources, seed):
        asked = self.sources_and_ends(n_sources, 50, seed)
        if self.device == "cpu":
            require_equal(
                in_another_thread(lambda: self.asker.answer(*asked)), self.expected(*asked)
            )

    @rule(n_sources=st.integers(2, 70), n_groups=st.integers(0, 3), seed=st.integers(0, 999))
    def stop_early(self, n_sources, n_groups, seed):
        groups = self.asker.groups(*self.sources_and_ends(n_sources, 80, seed))
        for _ in range(n_groups):
            next(groups, None)
        groups.close()

    @rule(n_sources=st.integers(2, 70), after=st.integers(0, 5), seed=st.integers(0, 999))
    def interrupt(self, n_sources, after, seed):
        asked = self.sources_and_ends(n_sources, 60, seed)
        try:
            with interrupted(after):
                self.asker.answer(*asked)
        except KeyboardInterrupt:
            pass

    @rule(n_sources=st.integers(2, 70), at=st.integers(1, 80), seed=st.integers(0, 999))
    def run_out_of_memory(self, n_sources, at, seed):
        groups = self.asker.groups(*self.sources_and_ends(n_sources, 60, seed))
        try:
            with failing_allocation(self.device, at):
                for _ in groups:
                    pass
        except (MemoryError, CapacityError):
            pass

    @rule()
    def release(self):
        self.asker.plan.release()


# Groups of 40 searches along a path take more steps of the harness than other tests.
PATIENT = None if FIRST is None else FIRST | {"step_limit": 10**9}


class PlansOnDevice(Plans):
    device = "cuda"


class PlansOfStreamedEdges(PlansOnDevice):
    strategies: ClassVar = {("bfs", "cuda"): [STREAMED]}


# Sequences that once were answered wrongly: graph, weights, algorithm, kind, strategy, limit, and the share of
# the sources that there is memory for at once.
CASES = {
    "dense and sparse rows in turn": (
        "lattice",
        "integers",
        "bfs",
        "betweenness of edges",
        MIXED,
        3,
        None,
    ),
    "dense and sparse rows in turn, by weights": (
        "branches",
        "floats",
        "sssp",
        "betweenness of edges",
        MIXED,
        3,
        None,
    ),
    "predecessors of a wider type": (
        "path",
        "wide",
        "sssp",
        "predecessors",
        "short_search",
        2**25,
        0.75,
    ),
    "frames of text ids": ("power law", "integers", "bfs", "predecessors", MIXED, 3, None),
    "frames of text ids, by weights": (
        "power law",
        "floats",
        "sssp",
        "predecessors",
        MIXED,
        12,
        None,
    ),
    "distances of three types without a cycle": (
        "forward",
        "huge",
        "sssp",
        "distances",
        MIXED,
        2**54,
        None,
    ),
    "streets of dense and sparse rows in turn": (
        "lattice",
        "floats",
        "sssp",
        "streets",
        MIXED,
        None,
        None,
    ),
    "distances of three types": ("path", "huge", "sssp", "distances", MIXED, 2**54, None),
    "summaries of three types": ("path", "huge", "sssp", "summary", MIXED, 2**54, None),
    "a matrix of three types": ("path", "huge", "sssp", "matrix", MIXED, None, None),
    "nearest targets of three types": (
        "path",
        "huge",
        "sssp",
        "nearest targets",
        MIXED,
        None,
        None,
    ),
}


def run_case(machine: Plans, name: str) -> None:
    rows, weights, algorithm, kind, strategy, limit, share = CASES[name]
    n = graph_of(rows, weights).n_vertices
    targets = np.arange(0, n, 9) if KINDS[kind].targets else None
    of_oracle, known = machine.expected, {}

    def expected(sources, ends):
        key = sources.tobytes(), None if ends is None else tuple(end.tobytes() for end in ends)
        if key not in known:
            known[key] = of_oracle(sources, ends)
        return known[key]

    machine.expected = expected  # the same questions, however the groups are mixed
    for mixing in range(3):
        machine.start(
            rows, weights, algorithm, KINDS[kind], strategy, 40, limit, targets, share, mixing
        )
        for seed in range(2):
            machine.answer(60, 10, seed)
        machine.teardown()


@pytest.mark.parametrize("name", CASES)
def test_results_of_a_plan_do_not_depend_on_what_it_has_searched(name):
    run_case(Plans(), name)


@on_a_device
@pytest.mark.parametrize("name", tiers.few(CASES, 1))
def test_results_of_a_plan_on_a_gpu_do_not_depend_on_what_it_has_searched(name):
    with running(PATIENT), frames_on_pandas():
        run_case(PlansOnDevice(), name)


@pytest.mark.parametrize(
    "strategy", ["short_search", "bit_parallel", "source_per_thread", "one_at_a_time"]
)
def test_hops_have_the_narrowest_type_whatever_was_searched_before(strategy):
    machine = Plans()
    machine.start("path", "integers", "bfs", KINDS["matrix"], strategy, 2)
    plan = machine.asker.plan
    kinds = [
        plan.run(np.array(sources)).distance.dtype for sources in ([61, 251], [156], [61], [5])
    ]
    machine.teardown()
    assert kinds == [np.int16, np.int8, np.int16, np.int8]


@pytest.mark.parametrize(
    ("result", "forms"), [("predecessors", ()), ("matrix", ()), ("predecessors", ("sparse",))]
)
@pytest.mark.parametrize("strategy", ["short_search", "near_far_per_thread"])
def test_a_plan_keeps_to_its_memory_when_a_type_widens(strategy, result, forms):
    side = 40
    rows = lattice(side, side)
    graph = build(rows, np.random.default_rng(0).integers(1, 9, len(rows)) * 2**21, directed=False)
    asked = {
        "n_sources": side**2,
        "result": result,
        "limit": 2**27,
        "forms": forms,
        "strategy": strategy,
    }
    plan = SSSP.plan_multi_source(graph, **asked)
    # compiles, and makes the weights of the graph wider
    first = next(plan.iter_groups(np.arange(plan.group)))
    assert first.distance.dtype == np.float64
    del first
    plan = SSSP.plan_multi_source(graph, **asked)
    tracemalloc.start()
    done = sum(len(group) for group in plan.iter_groups(np.arange(plan.group)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert done == plan.group
    assert peak < 1.25 * plan.nbytes + 2**18  # with what Python keeps of a first call


@on_a_device
@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block"])
def test_unions_of_targets_may_have_any_size(strategy):
    with running(PATIENT), frames_on_pandas():
        machine = PlansOnDevice()
        machine.start("lattice", "integers", "bfs", KINDS["pairs"], strategy, 32)
        for seed, size in enumerate((100, 300, 10)):
            machine.search(32, size, seed)
        machine.teardown()


ON_GPU = [
    (key[0], name)
    for key, names in STRATEGIES.items()
    if key[1] == "cuda"
    for name in names
    if name != MIXED
]
WAIT_FOR_UNIONS = [("bfs", "bit_parallel"), ("sssp", "source_per_lane")]


@on_a_device
@pytest.mark.parametrize(("algorithm", "strategy"), ON_GPU if tiers.ALL else WAIT_FOR_UNIONS)
def test_groups_may_have_no_target(algorithm, strategy):
    with running(PATIENT), frames_on_pandas():
        machine = PlansOnDevice()
        machine.start("lattice", "integers", algorithm, KINDS["pairs"], strategy, 20)
        for size in (0, 5, 0):
            machine.search(10, size, size)
        machine.teardown()


def run_machine(machine, examples: int) -> None:
    run_state_machine_as_test(machine, settings=hypothesis.settings(max_examples=examples, **RUNS))


# Smaller sequences would be sought for minutes, and say little more: a plan with one rule or two is short already.
RUNS = {
    "stateful_step_count": 8,
    "suppress_health_check": list(hypothesis.HealthCheck),
    "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate],
    "report_multiple_bugs": False,
}


def test_plans_on_a_cpu():
    run_machine(Plans, tiers.examples(120))


@on_a_device
def test_plans_on_a_gpu():
    with running(PATIENT), frames_on_pandas():
        run_machine(PlansOnDevice, tiers.examples(24))


@on_a_device
def test_plans_that_stream_edges():
    with running(PATIENT), frames_on_pandas():
        run_machine(PlansOfStreamedEdges, tiers.examples(6))


# --- memory that runs out at each allocation in turn ---------------------------------------------------------------------


def require_that_each_allocation_may_fail(
    asker: Asker, expected: Callable[..., Any], device: str
) -> None:
    """Let each allocation of a search fail in turn, and require that the next result is right."""
    first, second = np.array([0, 70, 140, 199]), np.array([5, 130])
    ends = [np.arange(i, i + 9) for i in range(first.size)] if asker.kind.pairs else None
    few = None if ends is None else ends[: second.size]
    of_second = expected(second, few)
    require_equal(asker.answer(second, few), of_second)
    n_failed = 0
    # what is allocated at the beginning may fail, or what a search allocates
    for is_new in (True, False):
        at, has_failed = 0, True
        while has_failed:
            at += 1
            if is_new:
                asker.plan.release()
            try:
                with failing_allocation(device, at) as allocations:
                    for _ in asker.groups(first, ends):
                        pass
            except (MemoryError, CapacityError):
                pass
            has_failed = allocations.has_failed
            n_failed += has_failed
            require_equal(asker.answer(second, few), of_second)
    assert n_failed, "no allocation was counted"


FAILING = {
    "hops": ("branches", "integers", "bfs", "predecessors"),
    "hops of pairs": ("branches", "integers", "bfs", "pairs"),
    "integers": ("lattice", "integers", "sssp", "predecessors"),
    "integers of pairs": ("lattice", "integers", "sssp", "pairs"),
    "sums that become wider": ("path", "wide", "sssp", "distances"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_a_device)])
@pytest.mark.parametrize("name", FAILING)
def test_a_plan_answers_after_any_allocation_has_failed(name, device, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 1)  # allocations of other threads are not counted
    rows, weights, algorithm, kind = FAILING[name]
    graph, asked = graph_of(rows, weights), (algorithm, KINDS[kind])
    oracle = Asker(graph, *asked, "one_at_a_time", 16, None, None)
    for strategy in STRATEGIES[algorithm, device]:
        with (
            running(PATIENT if device == "cuda" else None),
            frames_on_pandas(),
            chosen_at_random(1),
        ):
            try:
                asker = Asker(on_device(graph, device, strategy), *asked, strategy, 12, None, None)
            except StrategyError:  # it cannot take this graph
                continue
            require_that_each_allocation_may_fail(asker, oracle.answer, device)
