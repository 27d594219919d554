"""One plan used by several threads: every result is right and stays right; invalid vertex numbers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kepler_traverse import plan_bfs, plan_bfs_many, plan_sssp, plan_sssp_many
from kepler_traverse.errors import UnknownVertexError
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.concurrency import SerializedSearch
from kepler_traverse.search.strategy import Outcome
from tests.support import tiers
from tests.support.graphs import NAMED, build, weights_for

THREADS, RUNS = 8, 25
ROWS = [row[:2] for row in NAMED["power law"]]
GRAPH = build(ROWS, weights_for(ROWS, 5))
PLANS = {
    "bfs": lambda: plan_bfs(GRAPH),
    "sssp": lambda: plan_sssp(GRAPH),
    "bit-parallel": lambda: plan_bfs_many(GRAPH, n_sources=4, strategy="bit_parallel"),
    "per thread": lambda: plan_bfs_many(
        GRAPH, n_sources=4, strategy="source_per_thread", result="summary"
    ),
    "weighted": lambda: plan_sssp_many(
        GRAPH, n_sources=4, strategy="near_far_per_thread", result="predecessors"
    ),
    "looped": lambda: plan_sssp_many(GRAPH, n_sources=4, strategy="one_at_a_time"),
}


def asked(plan, number):
    return [number, (number + 7) % 500, 0] if isinstance(plan, MultiSourcePlan) else number


def content(result):
    arrays = (result.distance, result.predecessor, getattr(result, "counts", None))
    return [None if array is None else array.tolist() for array in arrays]


@pytest.mark.parametrize(("kind", "owner_runs"), tiers.by_turns(PLANS, [True, False]))
def test_results_of_eight_threads_are_right_and_stay_so(kind, owner_runs):
    alone, plan = PLANS[kind](), PLANS[kind]()
    numbers = range(THREADS * RUNS)
    expected = [content(alone.run(asked(alone, number))) for number in numbers]
    own = plan.run(asked(plan, 3)) if owner_runs else None
    before = content(own) if owner_runs else None
    start = threading.Barrier(THREADS)

    def runs(thread):
        start.wait()
        return [plan.run(asked(plan, number)) for number in numbers[thread::THREADS]]

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(
            pool.map(runs, range(THREADS))
        )  # all results are held until the end, so that an overwritten one is noticed
    for thread, results in enumerate(found):
        for number, result in zip(numbers[thread::THREADS], results, strict=True):
            assert content(result) == expected[number]
    if owner_runs:
        assert content(own) == before


def test_the_thread_that_made_the_plan_gets_its_arrays_without_a_copy():
    plan = plan_bfs(GRAPH)
    first = plan.run(0).distance
    assert plan.run(1).distance is first or np.shares_memory(plan.run(1).distance, first)


def test_an_adopted_plan_copies_nothing_in_its_new_thread_and_plans_once():
    made = []

    def prepare():
        array = np.zeros(3)
        made.append(array)
        return lambda number: Outcome(array, None, None, number)

    search = SerializedSearch(prepare)
    assert search(1).distance is made[0]

    def adopted():
        search.adopt()
        return search(2).distance

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(adopted).result() is made[0]
    assert len(made) == 1
    other = search(3).distance  # this thread is the owner no more
    assert len(made) == 2
    assert other is not made[0]
    assert other is not made[1]


def test_an_error_in_one_thread_leaves_the_plan_to_the_others():
    plan = plan_bfs(GRAPH)

    def wrong():
        with pytest.raises(UnknownVertexError):
            plan.run(10**6)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            pool.submit(wrong).result()
    assert plan.run(0).distance[0] == 0
