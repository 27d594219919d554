"""Rows of stored edges, other weights on the same edges, and rows along paths: against plain Python and NetworkX."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import bfs, graph_from_edges, paths, read_graph, sssp, sssp_many, with_weights
from kepler_traverse._arrays import get_device, to_host
from kepler_traverse.errors import DeviceError, EdgeListError, InputError
from kepler_traverse.graph.storage import load_graph, write_graph
from tests.kernels.simt import device, harness
from tests.support.devices import each_namespace

ON_HOST = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)
WAYS = {"yes": [(0, 1)], "no": [(0, 1), (1, 0)], "-1": [(1, 0)]}
WEIGHTS = {
    "integers": lambda rng, m: rng.integers(-3, 6, m),
    "large integers": lambda rng, m: rng.integers(2**53, 2**53 + 4, m),
    "unsigned": lambda rng, m: rng.integers(0, 5, m).astype(np.uint8),
    "float64": lambda rng, m: rng.integers(-9, 9, m) / 7,
    "float32 and zeros of both signs": lambda rng, m: rng.choice(
        np.array([-0.0, 0.0, 1e-40, 2.5], np.float32), m
    ),
}


xp = each_namespace("cpu", "host", "gpu")


def random_rows(seed, m=60, n=9):
    """Edges with many parallel ones and self-loops, on ids with gaps."""
    rng = np.random.default_rng(seed)
    return rng, rng.integers(0, n, m) * 3 - 4, rng.integers(0, n, m) * 3 - 4


def counting_rows(src, dst, weight, directed=True, ways=None):
    """The row and the weight of each stored edge, by the rule as written: smallest weight, then first row."""
    best: dict = {}
    for row, (u, v) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        pairs = WAYS[ways[row] if ways is not None else "yes" if directed else "no"]
        for a, b in pairs:
            edge = ((u, v)[a], (u, v)[b])
            w = 0 if weight is None else weight[row].item()
            if u != v and (edge not in best or w < best[edge][0]):
                best[edge] = (w, row)
    return best


def stored(graph):
    offsets, ids = to_host(graph.offsets), to_host(graph.ids)
    src = ids[np.repeat(np.arange(graph.n_vertices), np.diff(offsets))].tolist()
    dst = ids[to_host(graph.targets)].tolist()
    weights = [0] * graph.n_edges if graph.weights is None else to_host(graph.weights).tolist()
    return {
        (u, v): (w, row)
        for u, v, w, row in zip(src, dst, weights, to_host(graph.edge_rows).tolist(), strict=True)
    }


def same(graph, other):
    assert graph.fingerprint == other.fingerprint
    for name in ("offsets", "targets", "weights", "edge_rows", "edges_of_rows"):
        mine, theirs = getattr(graph, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(to_host(mine), to_host(theirs))
    assert graph.negative_loops == other.negative_loops
    assert graph.report == other.report


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", [None, *WEIGHTS])
def test_edge_rows_are_the_first_rows_of_the_smallest_weight(xp, kind, directed):
    rng, src, dst = random_rows(1)
    weight = None if kind is None else WEIGHTS[kind](rng, src.size)
    columns = [xp.asarray(column) for column in (src, dst, weight) if column is not None]
    graph = graph_from_edges(*columns, directed=directed, edge_ids=True)
    assert stored(graph) == counting_rows(src, dst, weight, directed)
    without = graph_from_edges(*columns, directed=directed)
    assert (without.edge_rows, without.fingerprint) == (None, graph.fingerprint)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    ("kind", "weight_type"),
    [
        (kind, name)
        for kind in WEIGHTS
        for name in ("auto", "float64")
        if (kind, name) != ("large integers", "float64")
    ],
)
def test_with_weights_is_the_graph_that_a_build_with_them_gives(xp, kind, directed, weight_type):
    rng, src, dst = random_rows(2)
    new = xp.asarray(WEIGHTS[kind](rng, src.size))
    src, dst = xp.asarray(src), xp.asarray(dst)
    built = graph_from_edges(
        src, dst, new, directed=directed, edge_ids=True, weight_type=weight_type
    )
    for before in (None, xp.asarray(rng.random(src.size))):
        graph = graph_from_edges(src, dst, before, directed=directed, edge_ids=True)
        made = with_weights(graph, new, weight_type=weight_type)
        same(made, built)
        assert made.targets is graph.targets


def test_with_weights_without_dropped_rows_keeps_no_edges_of_rows(xp):
    src, dst = xp.asarray(np.array([5, 1, 3])), xp.asarray(np.array([1, 3, 5]))
    graph = graph_from_edges(src, dst, directed=False, edge_ids=True)
    assert graph.edges_of_rows is None
    new = xp.asarray(np.array([1.5, 2.5, -1.0]))
    same(with_weights(graph, new), graph_from_edges(src, dst, new, directed=False, edge_ids=True))


def test_with_weights_twice_is_with_weights_once(xp):
    rng, src, dst = random_rows(3)
    graph = graph_from_edges(xp.asarray(src), xp.asarray(dst), edge_ids=True)
    one, two = (xp.asarray(rng.integers(0, 9, src.size)) for _ in range(2))
    same(with_weights(with_weights(graph, one), two), with_weights(graph, two))


def test_with_weights_per_stored_edge(xp):
    _, src, dst = random_rows(4)
    graph = graph_from_edges(xp.asarray(src), xp.asarray(dst))
    weights = xp.asarray(np.arange(graph.n_edges) % 7)
    made = with_weights(graph, weights, per="edge")
    np.testing.assert_array_equal(to_host(made.weights), to_host(weights))
    ends = stored_ends(graph)
    assert (
        made.fingerprint
        == graph_from_edges(*map(xp.asarray, ends), weights, vertices=graph.ids).fingerprint
    )


def stored_ends(graph):
    ids = to_host(graph.ids)
    return ids[np.repeat(np.arange(graph.n_vertices), np.diff(to_host(graph.offsets)))], ids[
        to_host(graph.targets)
    ]


def test_with_weights_per_stored_edge_refuses_two_weights_of_an_undirected_edge(xp):
    graph = graph_from_edges(
        xp.asarray(np.array([1, 2])), xp.asarray(np.array([2, 7])), directed=False
    )
    made = with_weights(graph, xp.asarray(np.array([4, 4, 6, 6])), per="edge")
    assert to_host(made.weights).tolist() == [4, 4, 6, 6]
    with pytest.raises(
        InputError,
        match=r"edge between 2 and 7 has the weight 6.0 in one direction and 5.0 in the other",
    ):
        with_weights(graph, xp.asarray(np.array([4, 4, 6, 5])), per="edge")


def test_with_weights_keeps_its_weights_from_later_changes_of_the_array():
    weights = np.array([1.0, 2.0])
    made = with_weights(graph_from_edges([1, 2], [2, 3]), weights, per="edge")
    weights[:] = 9
    assert made.weights.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ([1, 2], {}, EdgeListError, "2 weights for 3 rows of the edge list; give one per row"),
        (
            [1, 2, 3],
            {"per": "edge"},
            EdgeListError,
            "3 weights for 2 stored edges; give one per edge",
        ),
        (
            [1, 1e300, 3.0],
            {"weight_type": "float32"},
            EdgeListError,
            "weight of row 1 is .*infinite as float32",
        ),
        (
            [1, 2, 3],
            {"reverse_weight": [1, 2, 3]},
            InputError,
            "built with reverse_weight_column",
        ),
        ([1, 2, 2**63], {}, EdgeListError, "beyond int64"),
        (["a", "b", "c"], {}, EdgeListError, "must hold numbers"),
        (None, {}, EdgeListError, "weight must be"),
        ([1, 2, 3], {"per": "column"}, InputError, "per='column' is none of"),
        ([1, 2, 3], {"weight_type": "int64"}, InputError, "weight_type='int64' is none of"),
    ],
)
def test_with_weights_refuses_what_building_refuses(given, options, error, message):
    graph = graph_from_edges([1, 1, 2], [2, 2, 3], [5, 4, 3], edge_ids=True)
    with pytest.raises(error, match=message):
        with_weights(graph, given, **options)


def test_with_weights_needs_to_know_the_rows():
    with pytest.raises(
        InputError, match="build it with edge_ids=True, or give one weight per stored edge"
    ):
        with_weights(graph_from_edges([1], [2]), [1])


def test_with_weights_per_edge_says_nothing_of_negative_self_loops():
    graph = graph_from_edges([1, 1], [1, 2], [-1, 2], edge_ids=True)
    with pytest.raises(InputError, match="self-loop of negative weight"):
        with_weights(graph, [3], per="edge")
    assert with_weights(graph, [1, 2]).negative_loops == {}
    assert with_weights(graph, [-2.5, 2]).negative_loops == {0: -2.5}


@ON_HOST
def test_weights_of_another_device_are_refused():
    with device.present():
        graph = graph_from_edges(
            device.cp.asarray(np.array([1])), device.cp.asarray(np.array([2])), edge_ids=True
        )
        with pytest.raises(DeviceError, match="the graph is on cuda and the weights are on cpu"):
            with_weights(graph, np.array([1]))


def test_a_graph_with_a_reverse_keeps_one_with_other_weights():
    graph = graph_from_edges([1, 2], [2, 3], [1, 2], edge_ids=True).derived.with_reverse()
    made = with_weights(graph, [5, 6])
    assert made.may_pull
    assert made.reverse.weights.tolist() == [5, 6]
    assert made.reverse.edge_rows is None


def test_distances_with_other_weights_are_those_of_networkx():
    rng, src, dst = random_rows(6, 120, 20)
    graph = graph_from_edges(src, dst, edge_ids=True)
    weight = rng.random(src.size)
    multi = nx.MultiDiGraph()
    multi.add_weighted_edges_from(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True))
    found = sssp(with_weights(graph, weight), int(src[0]))
    expected = nx.single_source_dijkstra_path_length(multi, int(src[0]))
    assert dict(zip(found["vertex"], found["distance"], strict=True)) == pytest.approx(expected)


@pytest.mark.parametrize("directed", [True, False])
def test_rows_along_paths_are_those_of_the_cheapest_edges(directed):
    rng, src, dst = random_rows(7, 150, 25)
    weight = rng.integers(1, 100, src.size)
    graph = graph_from_edges(src, dst, weight, directed=directed, edge_ids=True)
    frame = sssp(graph, int(graph.ids[0]))
    steps = paths(frame, graph.ids[1:8], graph=graph, edges=True)
    assert str(steps["edge"].dtype) == "Int64"
    assert steps["edge"].isna().tolist() == (steps["position"] == 0).tolist()
    distance = dict(zip(frame["vertex"], frame["distance"], strict=True))
    for target, path in steps.groupby("target"):
        rows = path["edge"].dropna().astype(int).tolist()
        vertices = path["vertex"].tolist()
        for (u, v), row in zip(pairwise(vertices), rows, strict=True):
            assert (
                {u, v} == {src[row], dst[row]} if not directed else (u, v) == (src[row], dst[row])
            )
        assert weight[rows].sum() == distance[target]


def test_rows_along_paths_from_many_sources_and_of_strings():
    table = pd.DataFrame(
        {"src": ["a", "b", "a", "c"], "dst": ["b", "c", "c", "d"], "weight": [1, 1, 5, 1]}
    )
    graph = graph_from_edges(table, edge_ids=True)
    found = paths(
        sssp_many(graph, ["a", "b"], result="predecessors"), ["d"], graph=graph, edges=True
    )
    assert found["edge"].fillna(-1).tolist() == [-1, 0, 1, 3, -1, 1, 3]
    assert "edge" not in paths(bfs(graph, "a"), ["d"], graph=graph)


def test_rows_along_paths_need_the_graph_of_the_frame():
    graph = graph_from_edges([1, 2], [2, 3], edge_ids=True)
    frame = bfs(graph, 1)
    with pytest.raises(InputError, match="edges=True needs graph="):
        paths(frame, [3], edges=True)
    with pytest.raises(InputError, match="build it with edge_ids=True"):
        paths(frame, [3], graph=graph_from_edges([1, 2], [2, 3]), edges=True)
    other = graph_from_edges([1, 1], [2, 3], edge_ids=True)
    with pytest.raises(InputError, match="step from 2 to 3, which is no edge of the graph"):
        paths(frame, [3], graph=other, edges=True)
    with pytest.raises(InputError, match="edges must be True or False"):
        paths(frame, [3], graph=graph, edges=1)
    assert paths(frame, [], graph=graph, edges=True).empty


def test_rows_count_over_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,weight\n1,2,9\n2,3,1\n")
    (tmp_path / "b.csv").write_text("src,dst,weight\n1,2,4\n3,1,1\n")
    graph = read_graph(tmp_path, device="cpu", edge_ids=True)
    assert stored(graph) == {(1, 2): (4, 2), (2, 3): (1, 1), (3, 1): (1, 3)}


@pytest.mark.parametrize("directed", [True, False])
def test_rows_survive_the_disk_and_a_change_of_the_device(tmp_path, directed):
    rng, src, dst = random_rows(8)
    graph = graph_from_edges(src, dst, rng.random(src.size), directed=directed, edge_ids=True)
    write_graph(graph, tmp_path / "graph")
    loaded = load_graph(tmp_path / "graph", verify=False)
    same(loaded, graph)
    new = rng.random(src.size)
    same(with_weights(loaded, new), with_weights(graph, new))


@pytest.mark.parametrize("name", ["edge_rows", "edges_of_rows"])
@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1])
def test_stored_rows_outside_the_graph_are_refused(tmp_path, name, value):
    write_graph(graph_from_edges([1, 1, 2], [2, 2, 3], edge_ids=True), tmp_path / "graph")
    array = np.load(tmp_path / "graph" / f"{name}.npy")
    array.reshape(-1)[-1] = value
    np.save(tmp_path / "graph" / f"{name}.npy", array)
    with pytest.raises(InputError, match=f"{name} holds numbers outside"):
        load_graph(tmp_path / "graph", verify=False)


def test_edge_ids_is_true_or_false():
    assert graph_from_edges([1], [2], edge_ids=np.True_, directed=np.False_).directed is False
    with pytest.raises(InputError, match="edge_ids must be True or False"):
        graph_from_edges([1], [2], edge_ids="rows")


def test_arrow_tables_and_lists_have_the_same_rows():
    table = pa.table({"src": [1, 2, 1], "dst": [2, 3, 2]})
    for given in (table, [(1, 2), (2, 3), (1, 2)], np.array([[1, 2, 1], [2, 3, 2]])):
        assert graph_from_edges(given, edge_ids=True).edge_rows.tolist() == [0, 1]


@pytest.mark.parametrize("per", ["row", "edge"])
@pytest.mark.parametrize(
    "weight",
    [
        [np.inf, 1],
        np.array([np.nan, 1]),
        pd.Series([None, 1], dtype="Int64"),
        pa.array([None, 1]),
        [None, 1],
    ],
    ids=["infinite", "NaN", "pandas", "Arrow", "list"],
)
def test_a_weight_that_is_null_or_infinite_closes_an_edge(weight, per):
    table = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "weight": [5, 6]})
    graph = graph_from_edges(table, edge_ids=True)
    closed = with_weights(graph, weight, per=per)
    assert stored(closed) == {(2, 3): (1, 1)}
    assert (closed.n_vertices, closed.report.isolated_vertices) == (3, 1)
    assert sssp(closed, 1).vertex.tolist() == [1]
    again = with_weights(closed, [7, 8], per="row")
    assert stored(again) == {(2, 3): (8, 1)}


@pytest.mark.parametrize(
    ("directed", "ways"), [(True, None), (False, None), (True, ["yes", "no", "-1"])]
)
@pytest.mark.parametrize("filtered", [False, True])
def test_closed_rows_are_left_out(xp, directed, ways, filtered):
    """As of a graph that is built without the rows, of which some are parallel."""
    for seed in range(4):
        rng, src, dst = random_rows(seed, m=12 if seed == 3 else 60)
        size = src.size
        weight = rng.integers(-2 if seed == 1 else 0, 9, size).astype(float)
        is_closed = rng.random(size) < 0.4
        table = pd.DataFrame({"src": src, "dst": dst, "w": weight, "i": np.arange(size)})
        options = {"directed": directed, "edge_ids": True, "weight": "w", "vertices": src}
        if ways is not None:
            table["oneway"] = rng.choice(ways, size)
            options["oneway"] = "oneway"
        first = graph_from_edges(table, **options, **({"where": "i > 5"} if filtered else {}))
        is_left = ~is_closed & ((table.i > 5) | (not filtered))
        expected = graph_from_edges(
            table[is_left.to_numpy()].reset_index(drop=True), **options | {"vertices": first.ids}
        )
        given = np.where(is_closed, rng.choice([np.nan, np.inf, -np.inf], size), weight)
        closed = with_weights(first.to(get_device(xp.zeros(1))), xp.asarray(given))
        assert closed.fingerprint == expected.fingerprint
        numbers = np.flatnonzero(is_left)
        assert to_host(closed.edge_rows).tolist() == numbers[expected.edge_rows].tolist()
        assert closed.report.isolated_vertices == expected.report.isolated_vertices
        again = with_weights(closed, xp.asarray(weight[::-1].copy()))
        table["w"] = weight[::-1]
        expected = graph_from_edges(
            table[is_left.to_numpy()].reset_index(drop=True), **options | {"vertices": first.ids}
        )
        assert again.fingerprint == expected.fingerprint
        assert to_host(again.edge_rows).tolist() == numbers[expected.edge_rows].tolist()


def test_closed_edges_of_an_undirected_graph_are_closed_both_ways():
    graph = graph_from_edges([1, 2], [2, 3], [5.0, 6.0], directed=False, edge_ids=True)
    made = with_weights(graph, [np.inf, np.nan, 2, 2], per="edge")
    assert stored(made) == {(2, 3): (2, 1), (3, 2): (2, 1)}
    with pytest.raises(InputError, match="give both one weight"):
        with_weights(graph, [np.inf, 5, 2, 2], per="edge")


def test_closed_rows_of_two_weights():
    for seed in range(3):
        rng, src, dst = random_rows(seed)
        costs = rng.integers(0, 9, (4, src.size))
        options = {"edge_ids": True, "vertices": np.unique(src)}
        graph = graph_from_edges(src, dst, costs[0], reverse_weight=costs[1], **options)
        shut = np.where(rng.random(costs.shape) < 0.3, -1, costs)
        made = with_weights(graph, shut[2], reverse_weight=shut[3])
        built = graph_from_edges(src, dst, shut[2], reverse_weight=shut[3], **options)
        assert made.fingerprint == built.fingerprint
        assert made.edge_rows.tolist() == built.edge_rows.tolist()
        edges = (np.maximum(each.edges_of_rows, -1).tolist() for each in (made, built))
        assert next(edges) == next(edges)
        both = with_weights(graph, shut[2])
        built = graph_from_edges(src, dst, shut[2], reverse_weight=shut[2], **options)
        assert both.fingerprint == built.fingerprint
        assert both.edge_rows.tolist() == built.edge_rows.tolist()
