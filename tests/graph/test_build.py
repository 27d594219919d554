"""From edge arrays to a graph: edges that are stored, dropped and counted, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import _arrays, graph_from_edges
from kepler_traverse.cpu import csr_build
from kepler_traverse.errors import DeviceError, EdgeListError, InputError, UnknownVertexError
from kepler_traverse.graph import build as build_module
from tests.support import oracle
from tests.support.graphs import NAMED, build, edge_rows, weighted_rows, weights_for


def neighbors_of(graph):
    """The graph as a dict of dicts over the user's ids."""
    ids = graph.ids.tolist()
    weights = [1] * graph.n_edges if graph.weights is None else graph.weights.tolist()
    rows = {v: {} for v in ids}
    for u in range(graph.n_vertices):
        for e in range(graph.offsets[u], graph.offsets[u + 1]):
            rows[ids[u]][ids[graph.targets[e]]] = weights[e]
    return rows


def row_is_ascending(graph):
    return all(
        (np.diff(graph.targets[graph.offsets[v] : graph.offsets[v + 1]]) > 0).all()
        for v in range(graph.n_vertices)
    )


@given(weighted_rows(st.integers(0, 9)), st.booleans())
def test_the_csr_holds_what_the_rules_say(drawn, directed):
    rows, weights = drawn
    graph = build(rows, weights, directed=directed)
    weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
    assert neighbors_of(graph) == oracle.edges_of(weighted, directed)
    assert row_is_ascending(graph)
    report = graph.report
    loops = sum(u == v for u, v in rows)
    assert report.rows == len(rows)
    assert report.self_loops == loops
    assert graph.n_edges + report.parallel_edges == (len(rows) - loops) * (1 if directed else 2)
    touched = {v for u, w in rows if u != w for v in (u, w)}
    assert report.isolated_vertices == graph.n_vertices - len(touched)


@given(edge_rows(), st.sampled_from([np.int8, np.int32, np.uint16, np.int64, np.uint64]))
def test_ids_of_any_integer_type_come_back(rows, id_type):
    graph = build(rows, id_type=id_type)
    assert graph.ids.dtype == id_type
    assert neighbors_of(graph) == oracle.edges_of(rows)


@pytest.mark.parametrize("offset", [-(2**40), 2**31, 2**62])
def test_ids_far_apart_and_beyond_32_bits_are_ranked(offset):
    rows = [(offset, offset + 5 * 10**9), (offset + 5 * 10**9, offset + 1), (offset + 1, offset)]
    graph = build(rows)
    assert graph.targets.dtype == np.int32
    assert neighbors_of(graph) == oracle.edges_of(rows)


def test_ids_beyond_the_signed_range_stay_unsigned():
    rows = [(2**64 - 1, 0), (0, 2**63)]
    graph = build(rows, id_type=np.uint64)
    assert graph.ids.tolist() == [0, 2**63, 2**64 - 1]
    assert graph.to_numbers([2**64 - 1]).tolist() == [2]


def test_signed_and_unsigned_columns_are_joined_without_loss():
    graph = graph_from_edges(np.array([-1, 2]), np.array([2, 2**62 + 1], np.uint64))
    assert graph.ids.tolist() == [-1, 2, 2**62 + 1]
    with pytest.raises(EdgeListError, match="no integer type holds both"):
        graph_from_edges(np.array([-1]), np.array([2**63], np.uint64))


def test_empty_edge_list_is_a_graph_without_vertices():
    graph = build([])
    assert (graph.n_vertices, graph.n_edges) == (0, 0)
    assert build([], vertices=[3]).n_vertices == 1


def test_undirected_edges_keep_the_cheaper_direction():
    graph = build([(0, 1), (1, 0)], [5, 3], directed=False)
    assert neighbors_of(graph) == {0: {1: 3}, 1: {0: 3}}
    assert graph.report.parallel_edges == 2
    assert graph.reverse is graph


@pytest.mark.parametrize("name", ["power law", "star of 1024", "in-star"])
def test_reverse_has_every_edge_in_the_other_direction(name):
    rows = [r[:2] for r in NAMED[name]]
    weights = weights_for(rows, 1)
    reverse = build(rows, weights).reverse
    turned = build([(v, u) for u, v in rows], weights)
    for array in ("offsets", "targets", "weights"):
        assert np.array_equal(getattr(reverse, array), getattr(turned, array))


def test_a_reverse_is_kept_and_copies_with_other_edges_build_their_own():
    graph = build([(0, 1), (1, 2), (0, 2)], [1, 2, 5])
    reverse = graph.reverse
    assert graph.reverse is reverse
    copy = replace(graph, weights=graph.weights * 2)
    assert copy.reverse.weights.tolist() == (reverse.weights * 2).tolist()
    wide = graph.derived.sums_in("float64")
    assert wide.reverse is reverse.derived.sums_in("float64")
    assert graph.derived.linked_reverse() is reverse
    assert reverse.reverse is graph
    graph.derived.drop_reverse()
    assert graph.reverse is not reverse
    assert neighbors_of(graph.reverse) == neighbors_of(reverse)


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        (np.array([1, 2**24]), np.float32),
        (np.array([1, -(2**24) - 1]), np.float64),
        (np.array([1, 255], np.uint8), np.float32),
        (np.array([0.5, 1], np.float16), np.float32),
        (np.array([0.1, 1], np.float32), np.float32),
        (np.array([0.1, 1], np.float64), np.float64),
    ],
)
def test_weights_take_the_smallest_float_type_that_is_exact(weights, kind):
    graph = build([(0, 1), (1, 2)], weights)
    assert graph.weights.dtype == kind
    assert graph.weights.tolist() == weights.tolist()
    assert graph.report.weight_source == weights.dtype.name


def test_the_type_of_weights_can_be_asked_for():
    assert build([(0, 1)], np.array([0.1]), weight_type="float32").weights.tolist() == [
        np.float32(0.1)
    ]
    assert build([(0, 1)], np.array([1]), weight_type="float64").weights.dtype == np.float64
    assert build([(0, 1)], np.array([2**24 + 1]), weight_type="float32").weights.dtype == np.float64
    with pytest.raises(InputError, match="'int8' is none of"):
        build([(0, 1)], np.array([1]), weight_type="int8")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_with_their_row(bad):
    with pytest.raises(EdgeListError, match="row 1") as caught:
        build([(0, 1), (1, 2)], np.array([1.0, bad]))
    assert (caught.value.row, caught.value.column) == (1, "weight")


def test_a_weight_too_large_for_the_type_asked_for_is_refused():
    with pytest.raises(
        EdgeListError, match=r"infinite as float32.*, or take weight_type='float64'"
    ):
        build([(0, 1)], np.array([1e39]), weight_type="float32")
    assert build([(0, 1)], np.array([1e39]), weight_type="float64").weights.tolist() == [1e39]
    with pytest.raises(EdgeListError, match="drop or correct the rows"):
        build([(0, 1)], np.array([np.inf]), weight_type="float32")


@pytest.mark.parametrize("weight", [2**63 - 1, -(2**63)])
def test_integer_weights_that_int64_sums_cannot_hold_are_refused(weight):
    with pytest.raises(EdgeListError, match=str(weight)) as caught:
        build([(0, 1), (1, 2)], np.array([1, weight]))
    assert caught.value.row == 1


@pytest.mark.parametrize("weight", [2**53 + 1, -(2**53) - 1])
def test_integer_weights_that_no_float_holds_are_int64_unless_floats_are_asked_for(weight):
    assert build([(0, 1), (1, 2)], np.array([1, weight])).weights.tolist() == [1, weight]
    with pytest.raises(EdgeListError, match=str(weight)) as caught:
        build([(0, 1), (1, 2)], np.array([1, weight]), weight_type="float64")
    assert caught.value.row == 1


def test_negative_self_loops_are_stored_separately():
    graph = build([(0, 1), (7, 7), (7, 7), (1, 1)], [1, -2, -3, 4])
    assert graph.negative_loops == {2: -3}  # vertex number 2 is 7
    assert graph.has_negative_weights


def test_the_fingerprint_is_that_of_the_graph_not_of_the_edge_list():
    rows = [r[:2] for r in NAMED["power law"]]
    weights = weights_for(rows, 1)
    graph = build(rows, weights)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = build([rows[i] for i in order], [weights[i] for i in order])
    assert shuffled.fingerprint == graph.fingerprint
    assert build(rows).fingerprint != graph.fingerprint
    assert build(rows, [*weights[:-1], 99]).fingerprint != graph.fingerprint
    assert build([(u + 1, v + 1) for u, v in rows], weights).fingerprint != graph.fingerprint
    assert build(rows, weights, directed=False).fingerprint != graph.fingerprint
    looped, floats = (
        build([*rows, (0, 0)], [*weights, -5]),
        build(rows, weights, weight_type="float32"),
    )
    assert len({each.fingerprint for each in (graph, looped, floats)}) == 3


def test_unknown_vertices_are_named():
    graph = build([(0, 5), (5, 9)])
    assert graph.to_numbers([9, 0, 9]).tolist() == [2, 0, 2]
    assert graph.to_numbers(np.array([5], np.uint8)).tolist() == [1]
    for unknown in ([-1], [4], [10**30], [0, 7]):
        with pytest.raises(UnknownVertexError, match=str(unknown[-1])):
            graph.to_numbers(unknown)
    for wrong in (["5"], [5.0], [True], [None]):
        with pytest.raises(UnknownVertexError, match="integers"):
            graph.to_numbers(wrong)


def test_a_device_that_does_not_exist_is_refused():
    with pytest.raises(DeviceError, match="'tpu'"):
        build([(0, 1)]).to("tpu")


@given(edge_rows(), st.integers(-(2**40), 2**40))
def test_dense_and_sparse_ids_are_ranked_alike(rows, offset):
    src, dst = (np.array(column, np.int64) + offset for column in zip(*rows, strict=True))
    ids, (a, b) = csr_build.renumber([src, dst], np.dtype(np.int32))
    stretched = [src * 1_000_003, dst * 1_000_003]
    sparse_ids, (c, d) = csr_build.renumber(stretched, np.dtype(np.int32))
    assert np.array_equal(ids * 1_000_003, sparse_ids)
    assert np.array_equal(a, c)
    assert np.array_equal(b, d)
    assert np.array_equal(ids[a], src)
    assert np.array_equal(ids[b], dst)


@pytest.mark.parametrize("gap", [1, 2])
def test_narrow_id_types_do_not_overflow(gap):
    src = np.arange(-20000, 20000, gap, dtype=np.int16)
    ids, (numbers,) = csr_build.renumber([src], np.dtype(np.int32))
    assert np.array_equal(ids, src)
    assert np.array_equal(numbers, np.arange(src.size))


def test_vertex_numbers_of_long_lists_are_as_wide_as_the_range_of_their_ids(monkeypatch):
    monkeypatch.setattr(
        build_module, "index_dtype", lambda n: np.dtype(np.int32 if n <= 10 else np.int64)
    )
    src, dst = np.random.default_rng(1).integers(-4, 5, (2, 40))
    assert graph_from_edges(src, dst).targets.dtype == np.int32
    assert graph_from_edges(src, dst, vertices=np.array([7])).targets.dtype == np.int64


def test_blockwise_checks_give_the_same_graph_and_the_same_errors(monkeypatch):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 9, (2, 40))
    weights = rng.integers(-3, 9, 40).astype(np.float32)
    weights[src == dst] = 1
    weights[[5, 30]] = -0.0
    nan, loop = weights.copy(), weights.copy()
    nan[[17, 33]] = np.nan
    loop[np.flatnonzero(src == dst)[-1]] = -4

    def outcome():
        graph = graph_from_edges(src, dst, weights)
        with pytest.raises(EdgeListError) as first:
            graph_from_edges(src, dst, nan)
        facts = (
            graph.fingerprint,
            graph.report,
            graph.has_negative_weights,
            graph.derived.min_weight,
        )
        return (
            facts,
            str(first.value),
            first.value.row,
            graph_from_edges(src, dst, loop).negative_loops,
        )

    whole = outcome()
    monkeypatch.setattr(_arrays, "MAX_SLICE", 7)
    assert outcome() == whole
    assert whole[2] == 17
    assert list(whole[3].values()) == [-4]
    assert "(2 such rows)" in whole[1]


@given(weighted_rows(st.integers(0, 9)))
def test_edges_in_the_order_of_their_sources_give_the_same_csr(drawn):
    rows, weights = drawn
    src, dst = np.array(rows, np.int64).reshape(-1, 2).T
    weights = np.array(weights, np.float32)
    n = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    order = np.argsort(src, kind="stable")
    expected = csr_build.assemble(src[order[::-1]], dst[order[::-1]], weights[order[::-1]], n)
    found = csr_build.assemble(src[order], dst[order], weights[order], n)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("weighted", [False, True])
def test_long_and_short_lists_in_any_order_are_sorted_and_merged(weighted):
    rng, rows, vertex = np.random.default_rng(3), [], 5000
    for size in (1, 2, 31, 32, 33, 34, 255, 256, 257, 1024, 3000):
        for how in ("ascending", "descending", "shuffled", "one out of order"):
            heads = np.sort(rng.integers(0, 4 * size, size))  # with parallel edges
            if how == "descending":
                heads = heads[::-1]
            elif how == "shuffled":
                heads = rng.permutation(heads)
            elif how == "one out of order":
                heads = np.roll(heads, 1)
            rows += [(vertex, int(head)) for head in heads]
            vertex += 1
    weights = rng.integers(1, 100, len(rows)).tolist() if weighted else [1] * len(rows)
    graph = build(rows, weights if weighted else None, directed=True)
    assert neighbors_of(graph) == oracle.edges_of(
        [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)], True
    )
    assert row_is_ascending(graph)
    loops = sum(u == v for u, v in rows)
    assert graph.report.parallel_edges == len(rows) - loops - graph.n_edges
