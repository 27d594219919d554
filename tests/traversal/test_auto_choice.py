"""The change of the strategy during a run: measured times of groups correct the estimates. The clock is scripted."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import numpy as np
import pytest

from kepler_traverse import graph_from_edges, plan_bfs_many, plan_sssp_many
from kepler_traverse.auto.choice import Choice
from kepler_traverse.auto.costs import Costs, Machine
from kepler_traverse.multi_source import candidates
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.multi_source.workload import Strategies, Workload
from kepler_traverse.search.query import Query
from kepler_traverse.search.strategy import MultiSourceOutcome, MultiSourceStrategy
from tests.support import tiers
from tests.support.graphs import build
from tests.support.plans import BFS as STRATEGIES

N = 8  # vertices of a directed cycle
MACHINE = Machine(cores=1, cache=1 << 20, copy=1.0, load=1.0, step=1.0)


class ScriptedRun:
    """A plan for many sources whose strategies take scripted milliseconds per source, and what that adds up to."""

    def __init__(
        self,
        monkeypatch,
        estimated: dict,
        taken: dict,
        groups: dict,
        n_sources: int,
        per_group: dict | None = None,
    ):
        self.now = 0.0
        self.taken, self.per_group = taken, per_group or dict.fromkeys(taken, 0.0)
        self.prepared: list[str] = []
        constants = {f"bfs {name}": {"edge": 1e6 * each} for name, each in estimated.items()}
        for name, each in self.per_group.items():
            constants[f"bfs {name}"]["start"] = 1e6 * each * estimated[name] / taken[name]
        constants["bfs switch repeated"] = {"start": 1e15}
        costs = Costs(device="cpu", measured_on=MACHINE, nanoseconds=constants)
        monkeypatch.setattr(candidates, "load_costs", lambda _device: costs)
        monkeypatch.setattr(candidates, "get_machine", lambda _device: MACHINE)
        graph = build([(v, (v + 1) % N) for v in range(N)])
        strategies = [self.strategy(name, groups[name]) for name in taken]
        work = Workload(graph, "bfs", Query(predecessors=False), n_sources)
        self.plan = MultiSourcePlan(work, Strategies(strategies, STRATEGIES, STRATEGIES), "auto")
        self.plan._clock = lambda: self.now

    def strategy(self, name: str, most: int) -> MultiSourceStrategy:
        def plan(_graph, _query, _group):
            self.prepared.append(name)

            def traverse(sources):
                self.now += 1e-3 * (self.taken[name] * sources.size + self.per_group[name])
                distance = ((np.arange(N) - sources[:, None]) % N).astype(np.int8)
                return MultiSourceOutcome(distance, None, [None] * sources.size, [N] * sources.size)

            return traverse

        return MultiSourceStrategy(
            name=name,
            device="cpu",
            plan=plan,
            memory=lambda _shape, _query, _group: 1,
            group_size=lambda n_sources: min(n_sources, most),
            terms=lambda _shape, n_sources, group, _machine: {
                "edge": n_sources,
                "start": -(-n_sources // group),
            },
            paper="none",
            rationale="nothing",
            default=True,
        )

    def over(self, n_sources: int) -> float:
        """Return the seconds for a number of sources; checks every result."""
        sources = np.random.default_rng(1).integers(0, N, n_sources)
        found = [row for group in self.plan.iter_groups(sources) for row in group.distance]
        assert np.array_equal(np.stack(found), (np.arange(N) - sources[:, None]) % N)
        return self.now


@pytest.mark.parametrize(
    ("wrong", "slower"),
    tiers.few(
        itertools.product(itertools.product((0.2, 1, 5), repeat=2), [1, 1.2, 2, 4, 10, 24]), 11
    ),
    ids=str,
)
def test_estimates_that_are_five_times_off_cost_less_than_a_third(monkeypatch, wrong, slower):
    n_sources = 8192
    for taken in ({"a": 1.0 * slower, "b": 1.0}, {"a": 1.0, "b": 1.0 * slower}):
        estimated = {
            name: each * off for (name, each), off in zip(taken.items(), wrong, strict=True)
        }
        run = ScriptedRun(monkeypatch, estimated, taken, {"a": 64, "b": 32}, n_sources)
        assert run.over(n_sources) <= 1.3 * 1e-3 * n_sources


def test_a_strategy_that_is_expected_to_be_faster_gets_one_group_and_the_better_one_goes_on(
    monkeypatch,
):
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 2.0}, {"a": 10.0, "b": 2.0}, {"a": 32, "b": 32}, 1024
    )
    assert run.plan.strategy.name == "a"
    run.over(1024)
    assert run.plan.strategy.name == "b"
    assert run.prepared == ["a", "b"]
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 2.0}, {"a": 10.0, "b": 30.0}, {"a": 32, "b": 32}, 1024
    )
    run.over(1024)
    assert run.prepared == ["a", "b", "a"]
    tried = [each for each in run.plan.history if each.strategy == "b"]
    assert len(tried) == 1


def test_trials_are_omitted_if_estimates_hold_and_others_are_far_slower(monkeypatch):
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 30.0}, {"a": 1.0, "b": 30.0}, {"a": 32, "b": 32}, 1024
    )
    run.over(1024)
    assert run.prepared == ["a"]
    assert [each.sources for each in run.plan.history] == [32] * 32


def test_sources_that_are_cheaper_together_are_not_parted_for_a_trial(monkeypatch):
    each = {"a": 0.01, "b": 0.02}
    run = ScriptedRun(
        monkeypatch, each, each, {"a": 512, "b": 32}, 512, per_group={"a": 100.0, "b": 0.0}
    )
    costs = run.plan._choice
    assert costs.next("a", 512) == ("a", 512)


def test_a_first_group_that_warms_up_is_not_held_against_its_strategy():
    choice = Choice({"a": lambda k: 0.001 * k, "b": lambda k: 0.004 * k}, {"a": 32, "b": 32})
    choice.note("a", 32, 3.0)  # a hundred times the estimate: it was compiled
    assert choice.next("a", 10_000)[0] == "a"
    choice.note("a", 32, 0.032)
    assert choice.next("a", 10_000)[0] != "b" or choice.expected("a", 10_000) == pytest.approx(10.0)
    assert choice.factor("a") == pytest.approx(1.0)


def test_a_run_that_is_over_at_once_is_left_alone():
    choice = Choice({"a": lambda k: 1e-6 * k, "b": lambda k: 1e-6 * k}, {"a": 32, "b": 32})
    assert choice.next("a", 1000) == ("a", 32)
    choice.note("a", 32, 64e-6)
    assert choice.next("a", 968) == ("a", 32)


def test_a_plan_says_what_was_estimated_and_what_was_measured(monkeypatch):
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 2.0}, {"a": 10.0, "b": 2.0}, {"a": 32, "b": 32}, 1024
    )
    assert "estimated for 1,024 sources: a 1.02 s, b 2.05 s" in run.plan.why
    assert "measured" not in run.plan.why
    run.over(1024)
    measured_part = run.plan.why.partition("; measured: ")[2]
    assert measured_part.startswith("a ")
    assert ", b " in measured_part
    assert sum(each.sources for each in run.plan.history) == 1024
    assert sum(each.seconds for each in run.plan.history) == pytest.approx(run.now)


def test_a_strategy_that_does_not_fit_into_the_memory_is_no_candidate():
    graph = build([(v, (v + 1) % 500) for v in range(500)], directed=False)
    roomy = plan_bfs_many(graph, n_sources=64)
    tight = plan_bfs_many(
        graph, n_sources=64, memory=min(each.nbytes for each in roomy._candidates.fitting.values())
    )
    assert 0 < len(tight._candidates) <= len(roomy._candidates)
    assert tight.nbytes <= roomy.nbytes


def test_a_strategy_for_which_memory_runs_out_is_given_up_and_the_one_before_goes_on(monkeypatch):
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 2.0}, {"a": 10.0, "b": 2.0}, {"a": 32, "b": 32}, 1024
    )

    def short(*_):
        raise MemoryError

    fitting = run.plan._candidates.fitting
    strategy = dataclasses.replace(fitting["b"].strategy, plan=short)
    fitting["b"] = fitting["b"]._replace(strategy=strategy)
    run.over(1024)
    assert {each.strategy for each in run.plan.history} == {"a"}
    assert run.prepared == ["a", "a"]


def test_concurrent_threads_use_the_present_choice_and_change_nothing(monkeypatch):
    run = ScriptedRun(
        monkeypatch, {"a": 1.0, "b": 2.0}, {"a": 10.0, "b": 2.0}, {"a": 32, "b": 32}, 1024
    )
    other = threading.Thread(target=run.over, args=(1024,))
    other.start()
    other.join()
    assert run.plan.strategy.name == "a"
    assert run.plan.history == []
    run.over(1024)
    assert run.plan.strategy.name == "b"


def test_named_strategy_is_never_changed():
    graph = build([(v, (v + 1) % 50) for v in range(50)])
    plan = plan_bfs_many(graph, n_sources=640, strategy="source_per_thread")
    for _ in plan.iter_groups(np.zeros(640, np.int64)):
        assert plan.strategy.name == "source_per_thread"
    assert plan.history == []


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e307])
def test_the_spread_of_weights_does_not_depend_on_their_unit(unit):
    graph = graph_from_edges(np.arange(3), np.arange(1, 4), np.array([1.0, 2.0, 6.0]) * unit)
    assert plan_sssp_many(graph, n_sources=99).shape.spread == pytest.approx(np.std([1, 2, 6]) / 3)
