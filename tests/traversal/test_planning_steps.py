"""The steps of a plan for many sources, each without the others."""

import numpy as np
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.errors import CapacityError
from kepler_traverse.multi_source import workload
from kepler_traverse.multi_source.candidates import Capacity, fit
from kepler_traverse.multi_source.group_search import GroupSearch, search_group
from kepler_traverse.multi_source.workload import (
    Shapes,
    Strategies,
    Workload,
    find_usable,
    measure_shapes,
)
from kepler_traverse.search.exact import Sums
from kepler_traverse.search.query import Query
from kepler_traverse.sssp import REGISTRY as SSSP

N = 60


def work_on(registry, n_sources, weight=None):
    """A path of N vertices, on which hops and weights are known, and what is asked of it."""
    ends = np.arange(N - 1), np.arange(1, N)
    weights = None if weight is None else np.full(N - 1, weight)
    graph = graph_from_edges(*ends, weights, directed=False)
    work = Workload(graph, registry.algorithm.name, Query(predecessors=False), n_sources)
    return work, Strategies(registry.multi_source, registry.single_source, registry.searches)


def fitted(registry, name, n_sources, most=None, weight=None):
    work, strategies = work_on(registry, n_sources, weight)
    usable = find_usable(work, strategies, name)
    shapes = measure_shapes(work, strategies, usable, None)
    sums = Sums(work.graph, work.algorithm)
    return work, strategies, fit(work, strategies, usable, shapes, Capacity(most, sums))


def test_find_usable_gives_one_source_the_loop_alone():
    work, strategies = work_on(BFS, 1)
    assert find_usable(work, strategies, "auto").is_loop
    several = find_usable(work._replace(n_sources=2), strategies, "auto")
    assert several.strategies[-1] is several.loop
    assert len(several.strategies) > 1
    named = find_usable(work, strategies, "bit_parallel")
    assert [each.name for each in named.strategies] == ["bit_parallel"]


def test_measure_shapes_searches_only_where_there_is_a_choice(monkeypatch):
    surveys = []
    monkeypatch.setattr(workload, "survey", lambda graph, *_: surveys.append(graph))
    work, strategies = work_on(BFS, 64)
    loop = find_usable(work, strategies, "one_at_a_time")
    shapes = measure_shapes(work, strategies, loop, None)
    assert shapes.at_nearest.depth == 0
    assert not surveys
    usable = find_usable(work, strategies, "auto")
    assert measure_shapes(work, strategies, usable, shapes.at_nearest) == shapes
    assert not surveys, "a known shape takes the place of a survey"
    with pytest.raises(AttributeError):  # of None, which the survey of this test returns
        measure_shapes(work, strategies, usable, None)
    assert surveys == [work.graph]


def test_shapes_belong_to_strategies_by_where_these_end():
    work, strategies = work_on(BFS, 2)
    shape = measure_shapes(
        work, strategies, find_usable(work, strategies, "one_at_a_time"), None
    ).whole
    shapes = Shapes(shape._replace(reach=0.5), shape)
    for each in strategies.many:
        assert shapes.of(each).reach == (0.5 if each.ends_at_nearest else 1.0)


def test_fit_takes_the_largest_group_that_the_memory_holds():
    _, _, plenty = fitted(BFS, "bit_parallel", 1 << 14)
    widest = plenty.fitting["bit_parallel"]
    _, _, tight = fitted(BFS, "bit_parallel", 1 << 14, most=widest.nbytes - 1)
    assert tight.fitting["bit_parallel"].group < widest.group
    assert tight.fitting["bit_parallel"].nbytes < widest.nbytes
    with pytest.raises(CapacityError, match="strategy 'bit_parallel' needs"):
        fitted(BFS, "bit_parallel", 1 << 14, most=1)


def test_fit_says_what_it_leaves_out():
    _, _, every = fitted(BFS, "auto", 1 << 14)
    sizes = {name: each.nbytes for name, each in every.fitting.items()}
    _, _, fewer = fitted(BFS, "auto", 1 << 14, most=min(sizes.values()))
    assert fewer.left_out.keys() | fewer.fitting.keys() == sizes.keys()
    assert fewer.fitting
    assert all("MiB" in reason for reason in fewer.left_out.values())


@pytest.mark.parametrize("weight", [1, 1 << 22])
def test_a_group_search_takes_the_first_sources_in_a_type_that_holds_fewer(weight):
    work, strategies, candidates = fitted(SSSP, "one_at_a_time", 8, weight=weight)
    chosen = next(iter(candidates.fitting.values()))
    planned = work.graph.weights.dtype
    fewer = {kind: size if kind == planned else 3 for kind, size in chosen.group_in.items()}
    search = GroupSearch(work, strategies.many, chosen._replace(group_in=fewer)).plan()
    sources = np.arange(8)
    found = search_group(search, sources, None, "all")
    is_widened = weight * (N - 1) >= 2**24
    assert found.sources.tolist() == sources[: 3 if is_widened else 8].tolist()
    expected = weight * np.abs(np.arange(N) - found.sources[:, None])
    assert np.array_equal(np.asarray(found.outcome.distance), expected)
