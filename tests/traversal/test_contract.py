"""One contract for every strategy of the registries, on every available device."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    NegativeCycleError,
    bfs,
    graph_from_edges,
    plan_bfs,
    plan_sssp,
    sssp,
)
from kepler_traverse.certificate import certify
from kepler_traverse.errors import PrecisionError, StrategyError
from tests.support import oracle
from tests.support.devices import distances, host, require_hops
from tests.support.graphs import NAMED, awkward_floats, build, edge_rows, weighted_rows, weights_for
from tests.support.plans import BFS, rows_of
from tests.support.plans import SSSP as ALL_SSSP

SSSP = tuple(row for row in ALL_SSSP if row.sums == "float")  # test_exact_sums has the others


def check_bfs(row, rows, directed, source):
    graph = build(rows, directed=directed).to(row.device)
    result = plan_bfs(graph, strategy=row.name)(source)
    require_hops(result, graph, rows, source, directed)


def check_sssp(row, rows, weights, directed, source, kind=np.float32):
    graph = build(rows, weights, directed, weight_type=np.dtype(kind).name)
    check_distances(row, graph, source, expected_bits(rows, weights, directed, source, kind))


def check_distances(row, graph, source, expected):
    graph = graph.to(row.device)
    kind = graph.weights.dtype.type
    result = plan_sssp(graph, strategy=row.name)(source)
    assert {v: kind(d).tobytes() for v, d in distances(result, graph).items()} == expected
    certify(graph, result).require()


def expected_bits(rows, weights, directed, source, kind):
    weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
    found = oracle.dijkstra(oracle.edges_of(weighted, directed), source, kind)
    return {v: d.tobytes() for v, d in found.items()}


def directions(kind, name):  # noqa: ARG001
    """The directions in which a named graph is searched by hops, integers or floats."""
    return (True, False)


@functools.cache
def named_with_weights(name, kind, directed):
    """Return a named graph, a source, and the bits of the distances: all strategies have the same ones."""
    rows = [r[:2] for r in NAMED[name]]
    weights = weights_for(rows, 3, kind)
    graph = build(rows, weights, directed, weight_type="float32")
    source = rows[0][0]
    return graph, source, expected_bits(rows, weights, directed, source, np.float32)


@pytest.mark.parametrize("name", NAMED)
@rows_of(BFS)
def test_hops_match_the_oracle_on_named_graphs(row, name):
    rows = [r[:2] for r in NAMED[name]]
    for directed in directions("hops", name):
        check_bfs(row, rows, directed, rows[0][0])


@pytest.mark.parametrize("name", NAMED)
@rows_of(SSSP)
def test_distances_match_dijkstra_on_named_graphs(row, name):
    for kind in ("integers", "floats"):
        for directed in directions(kind, name):
            check_distances(row, *named_with_weights(name, kind, directed))


@rows_of(BFS)
def test_hops_match_the_oracle_on_any_graph(row):
    @given(edge_rows(), st.booleans(), st.data())
    def check(rows, directed, data):
        check_bfs(
            row, rows, directed, data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        )

    check()


@rows_of(SSSP)
def test_distances_match_dijkstra_for_awkward_weights(row):
    @given(
        weighted_rows(awkward_floats),
        st.booleans(),
        st.sampled_from([np.float32, np.float64]),
        st.data(),
    )
    def check(drawn, directed, kind, data):
        rows, weights = drawn
        weights = [kind(w) for w in weights]
        source = data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        check_sssp(row, rows, weights, directed, source, kind)

    check()


@rows_of(SSSP, without={"non_negative"})
def test_negative_weights_match_bellman_ford_or_name_a_negative_cycle(row):
    @given(weighted_rows(st.integers(-4, 12), max_vertices=10, max_rows=30), st.data())
    def check(drawn, data):
        rows, weights = drawn
        weights = [abs(w) if u == v else w for (u, v), w in zip(rows, weights, strict=True)]
        source = data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
        neighbors = oracle.edges_of(weighted)
        expected = oracle.bellman_ford(neighbors, source)
        graph = build(rows, weights).to(row.device)
        plan = plan_sssp(graph, strategy=row.name)
        if expected is None:
            with pytest.raises(NegativeCycleError) as caught:
                plan(source)
            cycle = caught.value.cycle
            around = sum(
                neighbors[u][v] for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
            )
            assert around == caught.value.weight < 0
            assert len(set(cycle)) == len(cycle)
        else:
            result = plan(source)
            assert distances(result, graph) == expected
            certify(graph, result).require()

    check()


@rows_of(SSSP, without={"non_negative"})
def test_potentials_make_negative_weights_without_a_negative_cycle(row):
    rows = [r[:2] for r in NAMED["power law"]]
    weights = weights_for(rows, 8)
    height = np.random.default_rng(9).integers(0, 1000, 1024)
    tilted = [w + int(height[u]) - int(height[v]) for (u, v), w in zip(rows, weights, strict=True)]
    plain = build(rows, weights).to(row.device)
    graph = build(rows, tilted).to(row.device)
    assert graph.has_negative_weights
    source = rows[0][0]
    straight = distances(plan_sssp(plain)(source), plain)
    result = plan_sssp(graph, strategy=row.name)(source)
    certify(graph, result).require()
    assert distances(result, graph) == {
        v: d + height[source] - height[v] for v, d in straight.items()
    }


@rows_of(SSSP, without={"non_negative"})
def test_a_negative_cycle_out_of_reach_is_no_error(row):
    graph = build([(0, 1), (2, 3), (3, 2), (2, 0)], [5, 1, -2, 1]).to(row.device)
    plan = plan_sssp(graph, strategy=row.name)
    assert distances(plan(0), graph) == {0: 0, 1: 5}
    with pytest.raises(NegativeCycleError) as caught:
        plan(2)
    assert sorted(caught.value.cycle) == [2, 3]


@pytest.mark.parametrize("closed", [None, [1]])
@pytest.mark.parametrize("wide", [True, False])
def test_a_cycle_that_rounds_below_zero_is_refused_with_less_rounding(wide, closed):
    if closed is None:
        decimals = [44.1, 0.23, 0.62, 0.08, -0.9299999999999999]
        decimals = decimals if wide else [21.1, 0.9, 0.8, 0.9, -2.6]
    else:
        decimals = [40.1, 0.6, 1, 0.4, -2] if wide else [22.1, 0.036, 0.75, 0.206, -0.992]
    weights = np.array(decimals, np.float64 if wide else np.float32)
    cycle = np.array([9, 0, 1, 2, 3]), np.array([0, 1, 2, 3, 0])
    source = 9 if closed is None else 1
    advice = "scale the weights to integers"
    if not wide:
        advice = f"build the graph with weight_type='float64', or {advice}"
    with pytest.raises(PrecisionError, match=f"look negative; {advice}$"):
        sssp(graph_from_edges(*cycle, weights, closed=closed), source)
    scaled = np.rint(np.array(decimals) * 1000).astype(int)
    sssp(graph_from_edges(*cycle, scaled, closed=closed), source)


@rows_of(SSSP, without={"non_negative"})
def test_a_cycle_of_weight_zero_is_no_negative_cycle(row):
    graph = build([(0, 1), (1, 2), (2, 1), (2, 3)], [1, -2, 2, 1]).to(row.device)
    result = plan_sssp(graph, strategy=row.name)(0)
    assert distances(result, graph) == {0: 0, 1: 1, 2: -1, 3: 0}
    certify(graph, result).require()


@rows_of(SSSP, without={"non_negative"})
def test_a_long_path_of_negative_edges_is_no_negative_cycle(row):
    n = 700
    graph = build([(v, v + 1) for v in range(n)], [-1] * n).to(row.device)
    assert distances(plan_sssp(graph, strategy=row.name)(0), graph) == {v: -v for v in range(n + 1)}


@rows_of(SSSP)
def test_a_distance_too_large_for_the_type_is_an_error_not_unreached(row):
    graph = build([(0, 1), (1, 2)], np.array([3e38, 3e38], np.float32)).to(row.device)
    with pytest.raises(PrecisionError, match="float64"):
        plan_sssp(graph, strategy=row.name)(0)


@rows_of(BFS)
@pytest.mark.parametrize("depth", [0, 1, 3, 7, 10**6, 2.5])
def test_max_depth_is_inclusive_and_certified(row, depth):
    rows = NAMED["lattice"]
    graph = build(rows, directed=False).to(row.device)
    result = plan_bfs(graph, strategy=row.name, max_depth=depth)(0)
    expected = oracle.bfs(oracle.edges_of(rows, directed=False), 0)
    assert distances(result, graph) == {v: d for v, d in expected.items() if d <= depth}
    certify(graph, result).require()


@rows_of(SSSP)
@pytest.mark.parametrize("cutoff", [0, 1, 40, 97.5, 1e9])
def test_cutoff_is_inclusive_and_certified(row, cutoff):
    rows = NAMED["lattice"]
    weights = weights_for(rows, 5)
    graph = build(rows, weights, directed=False).to(row.device)
    result = plan_sssp(graph, strategy=row.name, cutoff=cutoff)(0)
    weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
    expected = oracle.dijkstra(oracle.edges_of(weighted, directed=False), 0)
    assert distances(result, graph) == {v: d for v, d in expected.items() if d <= cutoff}
    certify(graph, result).require()


@rows_of(BFS)
def test_a_search_for_targets_settles_them_and_stays_certified(row):
    rows = NAMED["path"]
    graph = build(rows).to(row.device)
    result = plan_bfs(graph, strategy=row.name, targets=[30, 20])(0)
    found = distances(result, graph)
    assert found[20] == 20
    assert found[30] == 30
    assert len(found) < len(rows), "it should have stopped early"
    certify(graph, result).require()


@rows_of(SSSP)
def test_targets_of_a_weighted_search_are_settled_and_certified(row):
    rows = NAMED["lattice"]
    weights = weights_for(rows, 6)
    graph = build(rows, weights, directed=False).to(row.device)
    full = distances(plan_sssp(graph, strategy=row.name)(0), graph)
    near = sorted(full, key=full.get)[3:6]
    result = plan_sssp(graph, strategy=row.name, targets=near)(0)
    found = distances(result, graph)
    assert {v: found[v] for v in near} == {v: full[v] for v in near}
    assert all(full[v] == d for v, d in found.items())
    certify(graph, result).require()


@rows_of((*BFS, *SSSP))
def test_plan_run_again_gives_the_same_result(row):
    rows = [r[:2] for r in NAMED["power law"]]
    plan_of = plan_bfs if row in BFS else plan_sssp
    graph = build(rows, weights_for(rows, 2)).to(row.device)
    plan = plan_of(graph, strategy=row.name)
    sources = sorted({u for u, _ in rows})[:3]
    first = [plan(s).copy() for s in sources]
    for source, before in zip(reversed(sources), reversed(first), strict=True):
        again = plan(source)
        assert np.array_equal(host(again.distance), host(before.distance))
        assert np.array_equal(host(again.predecessor), host(before.predecessor))


@rows_of(SSSP)
def test_unit_weights_give_hops(row):
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows, [1] * len(rows)).to(row.device)
    source = rows[0][0]
    assert distances(plan_sssp(graph, strategy=row.name)(source), graph) == distances(
        plan_bfs(graph)(source), graph
    )


def test_an_unknown_strategy_is_refused_with_the_names_that_fit():
    graph = build([(0, 1)])
    with pytest.raises(StrategyError, match=r"no strategy 'teleport'.*auto, switch, queue"):
        bfs(graph, 0, strategy="teleport")


def test_a_strategy_that_cannot_take_negative_weights_says_so():
    graph = build([(0, 1)], [-1])
    with pytest.raises(StrategyError, match="negative weights; these can: frontier"):
        plan_sssp(graph, strategy="near_far")


def test_weighted_strategies_refuse_a_graph_without_weights():
    with pytest.raises(StrategyError, match="weights"):
        plan_sssp(build([(0, 1)]))


@rows_of(SSSP)
def test_a_cutoff_keeps_predecessors_away_from_vertices_beyond_it(row):
    graph = build([(0, 1), (1, 2)], np.array([1e38, 3e38], np.float32)).to(row.device)
    result = plan_sssp(graph, strategy=row.name, cutoff=2e38)(0)
    assert host(result.predecessor).tolist() == [0, 0, -1]
    certify(graph, result).require()


@rows_of(SSSP, without={"non_negative"})
def test_a_negative_cycle_of_subnormal_weight_is_found(row):
    graph = build([(0, 1), (1, 0)], np.array([1e-40, -2e-40], np.float32)).to(row.device)
    with pytest.raises(NegativeCycleError):
        plan_sssp(graph, strategy=row.name)(0)
