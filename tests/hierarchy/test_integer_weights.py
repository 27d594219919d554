"""Weights counted in a unit: exact for decimals, refused or with a named error elsewhere; advice of plans is followed."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kepler_traverse as kt
from kepler_traverse.errors import InputError
from kepler_traverse.hierarchy import estimate
from kepler_traverse.hierarchy.estimate import Estimate
from kepler_traverse.multi_source.candidates import Candidates


def path_of(weights, dtype=np.float64):
    n = len(weights)
    return kt.graph_from_edges(np.arange(n), np.arange(1, n + 1), np.asarray(weights, dtype))


@given(
    decimals=st.integers(0, 6),
    counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
    narrow=st.booleans(),
)
def test_decimals_are_counted_exactly(decimals, counts, narrow):
    dtype = np.float32 if narrow and decimals + len(str(max(counts))) < 8 else np.float64
    texts = [str(Decimal(count).scaleb(-decimals)) for count in counts]
    graph = path_of([float(text) for text in texts], dtype)
    found = kt.integer_weights(graph)
    assert found.error == 0
    of_unit = Decimal(repr(found.unit))
    again = [Decimal(int(count)) * of_unit for count in found.graph.weights]
    assert again == [Decimal(text) for text in texts]
    exact = sum(Decimal(text) for text in texts)
    distance = kt.sssp_many(found.graph, [0], targets=[len(counts)], result="targets")["distance"]
    assert Decimal(int(distance[0])) * of_unit == exact


@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20),
    unit=st.sampled_from([1e-7, 0.001, 0.25, 0.3]),
)
def test_a_unit_names_the_error_of_its_rounding(weights, unit):
    graph = path_of(weights)
    if min(weights) <= unit / 2:
        with pytest.raises(InputError, match="rounds a weight to 0"):
            kt.integer_weights(graph, unit)
        return
    found = kt.integer_weights(graph, unit)
    off = np.abs(found.graph.weights.astype(np.float64) * unit - graph.weights).max()
    assert found.error <= unit / 2 * (1 + 1e-6)
    assert off <= found.error + 1e-9 * max(weights)
    assert not (found.graph.weights - np.rint(found.graph.weights)).any()


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=20), st.integers(-20, 20))
def test_the_unit_that_a_refusal_names_is_taken(weights, power):
    graph = path_of([weight / 3 * 10.0**power for weight in weights])
    unit = kt.graph.integer_weights.suggest_unit(graph)
    text = kt.graph.integer_weights.describe_rounding(graph)
    assert f"integer_weights(graph, {unit:g})" in text
    found = kt.integer_weights(graph, float(f"{unit:g}"))
    assert found.error <= unit / 2 * (1 + 1e-6)


def test_thirds_are_refused_with_a_unit():
    graph = path_of([1 / 3, 2.0])
    with pytest.raises(InputError, match=r"integer_weights\(graph, 0.001\)"):
        kt.integer_weights(graph)


@pytest.mark.parametrize(
    "weights", [[1e-300, 1e299, 1e300 / 3], [5e-324, 1.0 / 3], [5e-324, 5e-324]]
)
def test_weights_that_no_unit_counts_are_refused_without_one(weights):
    graph = path_of(weights)
    for unit in (None, 1e285):
        with pytest.raises(InputError, match=r"no unit counts both .*; make the smallest ones 0"):
            kt.integer_weights(graph, unit)
    least = min(weights)
    without = path_of([0.0 if weight == least else weight for weight in weights])
    unit = kt.graph.integer_weights.suggest_unit(without)
    assert kt.integer_weights(without, unit).graph.weights[0] == 0


def test_a_unit_is_named_that_leaves_the_largest_count_below_the_limit():
    graph = path_of([2.0**53, 5.5])
    with pytest.raises(InputError, match=r"integer_weights\(graph, 10\)"):
        kt.integer_weights(graph)
    assert kt.integer_weights(graph, 10).graph.weights[0] == 2**53 // 10


def test_a_self_loop_of_negative_weight_is_refused():
    ends = [0, 1, 1], [1, 2, 1]
    graph = kt.graph_from_edges(*ends, [0.5, 0.25, -1.5], edge_ids=True)
    with pytest.raises(
        InputError, match=r"1 vertex with a self-loop .*; build it without such rows"
    ):
        kt.integer_weights(graph)
    kt.integer_weights(kt.graph_from_edges(ends[0][:2], ends[1][:2], [0.5, 0.25]))


@pytest.mark.parametrize("unit", [0, -1, float("inf"), float("nan"), "0.1", True])
def test_what_is_no_unit_is_refused(unit):
    with pytest.raises(InputError, match="unit"):
        kt.integer_weights(path_of([0.5, 0.25]), unit)


def lattice(weights_of, side=40):
    v = np.arange(side * side).reshape(side, side)
    src = np.concatenate([v[:, :-1].ravel(), v[:-1].ravel()])
    dst = np.concatenate([v[:, 1:].ravel(), v[1:].ravel()])
    return kt.graph_from_edges(
        src, dst, weights_of(np.random.default_rng(1), src.size), directed=False
    )


KINDS = {
    "integers": lambda rng, m: rng.integers(1, 100, m),
    "tenths": lambda rng, m: rng.integers(1, 100, m) / 10,
    "thirds": lambda rng, m: rng.integers(1, 100, m) / 3,
    "any": lambda rng, m: rng.random(m) + 1e-3,
    "binary": lambda rng, m: rng.integers(1, 100, m) / 4,
}
CALL = re.compile(r"(integer_weights\(graph(?:, [^)]*)?\)|graph\.hierarchy\([^)]*\))")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_what_a_plan_advises_is_taken(monkeypatch, kind, algorithm):
    graph = lattice(KINDS[kind])
    # without an estimate, as it depends on the machine
    pays = Estimate(1.0, 1e-6, 1.0, "weights" if algorithm == "sssp" else "hops")
    of_integers = Candidates.estimate_hierarchy

    def estimate(self, strategies, rounded):
        found = of_integers(self, strategies, rounded)
        return None if found is None else pays

    monkeypatch.setattr(Candidates, "estimate_hierarchy", estimate)
    make = kt.plan_sssp_many if algorithm == "sssp" else kt.plan_bfs_many
    text = make(graph, n_sources=1000).explain()
    calls = list(dict.fromkeys(CALL.findall(text.partition("hierarchy: ")[2].splitlines()[0])))
    assert calls, text
    for call in calls:
        made = eval(call, {"graph": graph, "integer_weights": kt.integer_weights})
        if call.startswith("integer_weights"):
            graph = made.graph
    assert "hierarchy_sweep" in make(graph, n_sources=1000).explain()


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
@pytest.mark.parametrize("hierarchy", ["auto", "yes", "no"])
def test_hierarchies_of_calls_change_no_result(monkeypatch, algorithm, hierarchy):
    many = kt.sssp_many if algorithm == "sssp" else kt.bfs_many
    metric = "weights" if algorithm == "sssp" else "hops"
    graph = lattice(KINDS["integers"])
    expected = many(graph, [3, 99], result="matrix")
    assert graph.derived.known_hierarchy(metric) is None, "two sources save no second"
    monkeypatch.setattr(
        Candidates, "estimate_hierarchy", lambda *_: Estimate(0.1, 0.0, 10.0, metric)
    )
    found = many(graph, [3, 99], result="matrix", hierarchy=hierarchy)
    np.testing.assert_array_equal(found, expected)
    is_built = graph.derived.known_hierarchy(metric) is not None
    assert is_built == (hierarchy != "no")
    many(graph, [3, 99], strategy="short_search", hierarchy="no")


def test_a_hierarchy_must_save_more_where_it_is_compiled_first(monkeypatch):
    estimated = Estimate(build=2.0, sweep=0.0, search=0.01)
    for must_compile, n_sources, is_worth_it in [
        (False, 250, False),  # 0.5 s saved
        (False, 400, True),
        (True, 650, False),  # 4.5 s
        (True, 750, True),
    ]:
        monkeypatch.setattr(estimate, "must_compile", lambda answer=must_compile: answer)
        assert estimated.is_worth_it(n_sources) == is_worth_it


def test_a_graph_without_a_hierarchy_is_searched_all_the_same(monkeypatch):
    graph = lattice(KINDS["any"])
    expected = kt.sssp_many(graph, [3, 99], result="matrix")
    monkeypatch.setattr(
        Candidates, "estimate_hierarchy", lambda *_: Estimate(0.1, 0.0, 10.0, "weights")
    )
    np.testing.assert_array_equal(kt.sssp_many(graph, [3, 99], result="matrix"), expected)
    with pytest.raises(kt.HierarchyError, match="integer_weights"):
        kt.sssp_many(graph, [3], hierarchy="yes")
    with pytest.raises(InputError, match="hierarchy"):
        kt.sssp_many(graph, [3], hierarchy="maybe")
