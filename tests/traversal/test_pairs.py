"""Distances of pairs: those of full searches, whichever strategy runs, and each search stops at its own targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    certify_many,
    graph_from_edges,
    plan_bfs,
    plan_sssp,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.bfs import MULTI_SOURCE as BFS
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.errors import CapacityError, InputError, StrategyError, UnknownVertexError
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.sssp import MULTI_SOURCE as SSSP
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from tests.support import tiers
from tests.support.devices import MODES, host, on_a_device, planned_by_outline, running
from tests.support.graphs import (
    NAMED,
    build,
    edge_rows,
    is_refused,
    lattice,
    path,
    rmat,
    weights_for,
)
from tests.support.plans import place_of_edges

SHAPES = ("lattice", "power law", "two components", "star of 33", "path")
LOOPS = {"bfs": ("one_at_a_time", "queue"), "sssp": ("one_at_a_time", "frontier", "dijkstra_int64")}


def names(registry, algorithm, device):
    return [
        *(each.name for each in registry if each.device == device and each.sums == "float"),
        *LOOPS[algorithm],
    ]


def joined(full, origins, destinations):
    """The distances of pairs, by a join with full distances."""
    asked = pd.DataFrame({"source": origins, "vertex": destinations})
    return asked.merge(full, on=["source", "vertex"], how="left")["distance"]


def same(frame, origins, destinations, full):
    assert list(frame.columns) == ["source", "target", "distance"]
    assert frame["source"].tolist() == list(origins)
    assert frame["target"].tolist() == list(destinations)
    expected = joined(full, origins, destinations)
    assert frame["distance"].isna().tolist() == expected.isna().tolist()
    assert frame["distance"].dropna().tolist() == expected.dropna().tolist()


def some_pairs(graph, count, seed=1, n_origins=9):
    """Pairs with duplicates, of few origins so that each has several destinations."""
    ids, rng = np.asarray(graph.ids), np.random.default_rng(seed)
    origins = rng.choice(rng.choice(ids, min(ids.size, n_origins)), count)
    destinations = rng.choice(ids, count)
    origins[-2:], destinations[-2:] = origins[:2], destinations[:2]
    return origins, destinations


@pytest.mark.parametrize(
    ("strategy", "name", "directed"),
    tiers.pairs(["auto", *names(BFS, "bfs", "cpu")], SHAPES, [True, False]),
)
def test_bfs_pairs_equals_a_join_over_full_distances(strategy, name, directed):
    graph = build([row[:2] for row in NAMED[name]], directed=directed)
    origins, destinations = some_pairs(graph, 60)
    if is_refused(graph, BFS, strategy):
        return
    frame = bfs_pairs(graph, origins, destinations, strategy=strategy)
    assert frame["distance"].dtype == "Int32"
    same(frame, origins, destinations, bfs_many(graph, np.unique(origins)))


@pytest.mark.parametrize(
    ("strategy", "name", "kind"),
    tiers.pairs(["auto", *names(SSSP, "sssp", "cpu")], SHAPES, ["integers", "floats"]),
)
def test_sssp_pairs_equals_a_join_over_full_distances(strategy, name, kind):
    rows = [row[:2] for row in NAMED[name]]
    graph = build(rows, weights_for(rows, 3, kind), directed=False)
    # A short search of weights of all magnitudes takes a tenth of a second where it reaches many vertices.
    n_origins = 3 if strategy == "short_search" and kind == "floats" else 9
    origins, destinations = some_pairs(graph, 60, n_origins=n_origins)
    if strategy == "dijkstra_int64" and kind == "floats":
        with pytest.raises(StrategyError, match="integer weights"):
            sssp_pairs(graph, origins, destinations, strategy=strategy)
        return
    if is_refused(graph, SSSP, strategy):
        return
    frame = sssp_pairs(graph, origins, destinations, strategy=strategy)
    assert str(frame["distance"].dtype).lower() == str(graph.distance_dtype)
    same(frame, origins, destinations, sssp_many(graph, np.unique(origins)))


@given(edge_rows(), st.data())
def test_pairs_of_any_graph_equal_full_distances(rows, data):
    graph = build(rows, weights_for(rows, len(rows)))
    ids = np.asarray(graph.ids).tolist()
    asked = data.draw(
        st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), min_size=1, max_size=20)
    )
    origins, destinations = map(list, zip(*asked, strict=True))
    same(
        bfs_pairs(graph, origins, destinations),
        origins,
        destinations,
        bfs_many(graph, sorted(set(origins))),
    )
    same(
        sssp_pairs(graph, origins, destinations),
        origins,
        destinations,
        sssp_many(graph, sorted(set(origins))),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@on_a_device
def test_pairs_on_a_gpu_equal_full_distances_for_every_strategy(algorithm, mode):
    edges = {
        "lattice": lattice(6, 10),
        "power law": rmat(6, 8, seed=3),
        "two components": [*path(20), (50, 51), (51, 52)],
    }
    registry = BFS_REGISTRY if algorithm == "bfs" else SSSP_REGISTRY
    for rows in edges.values():
        graph = build(rows, weights_for(rows, 3), directed=False)
        origins, destinations = (
            graph.to_numbers(some_pairs(graph, 50)[0]),
            graph.to_numbers(some_pairs(graph, 50)[1]),
        )
        table = pair_table(origins, destinations)
        single = plan_bfs(graph) if algorithm == "bfs" else plan_sssp(graph)
        full = {int(source): single.run(int(source)).distance.copy() for source in table.sources}
        expected = np.concatenate(
            [full[s][table.lists.of(i)] for i, s in enumerate(table.sources.tolist())]
        )
        if algorithm == "sssp":
            graph.hierarchy()  # for hierarchy_sweep
        with running(MODES[mode]), planned_by_outline():
            for each in BFS if algorithm == "bfs" else SSSP:
                if each.device != "cuda" or each.sums != "float":
                    continue
                on_gpu = graph.to("cuda", place_of_edges(each))
                options = {"strategy": each.name}
                options |= {"n_sources": table.sources.size, "result": "pairs"}
                groups = list(
                    registry.plan_multi_source(on_gpu, **options).iter_groups(
                        table.sources, table.lists
                    )
                )
                found = np.concatenate([host(group.distance) for group in groups])
                assert found.tolist() == expected.tolist(), each.name
                for group in registry.plan_multi_source(
                    on_gpu, **options, output="all"
                ).iter_groups(table.sources, table.lists):
                    assert group.distance.shape == (len(group), graph.n_vertices)
                    assert (
                        host(table.of(group.sources).lists.take(group.distance)).tolist()
                        == expected.tolist()
                    )
                    for i, limit in enumerate(group.limits):
                        certify_many(
                            on_gpu, group.sources[i : i + 1], group.distance[i : i + 1], limit
                        ).require()


@pytest.mark.gpu
@pytest.mark.parametrize("pairs_of", [bfs_pairs, sssp_pairs])
def test_frames_of_pairs_on_a_gpu_equal_those_on_a_cpu(pairs_of):
    rows = NAMED["power law"]
    graph = build([row[:2] for row in rows], weights_for(rows, 3))
    origins, destinations = some_pairs(graph, 200)
    found = pairs_of(graph.to("cuda"), origins, destinations).to_pandas()
    expected = pairs_of(graph, origins, destinations)
    for name in ("source", "target"):
        assert found[name].tolist() == expected[name].tolist()
    assert found["distance"].isna().tolist() == expected["distance"].isna().tolist()
    assert found["distance"].dropna().tolist() == expected["distance"].dropna().tolist()


@pytest.mark.parametrize("strategy", ["source_per_thread", "bit_parallel"])
def test_a_search_for_pairs_of_hops_stops_at_its_own_targets(strategy):
    graph = build(path(1000), directed=False)
    table = pair_table(np.array([0, 500]), np.array([3, 507]))
    plan = BFS_REGISTRY.plan_multi_source(graph, n_sources=2, result="pairs", strategy=strategy)
    group = plan.run(table.sources, table.lists)
    assert group.distance.tolist() == [3, 7]
    assert max(group.rounds) <= 8
    assert group[1].distance.tolist() == [7]
    assert group[1:2].distance.tolist() == [7]


def test_a_search_for_weighted_pairs_stops_at_its_own_targets():
    graph = build(path(1000), [1] * 1000, directed=False)
    table = pair_table(np.array([0, 500, 0]), np.array([3, 507, 2]))
    plan = SSSP_REGISTRY.plan_multi_source(
        graph, n_sources=2, result="pairs", strategy="near_far_per_thread"
    )
    group = plan.run(table.sources, table.lists)
    assert group.distance.tolist() == [3, 2, 7]
    assert group.limits == [3, 7]


def test_pairs_beyond_a_limit_are_null():
    graph = build(path(20), [2] * 20, directed=False)
    assert sssp_pairs(graph, [0, 0, 5], [3, 4, 5], cutoff=6)["distance"].fillna(-1).tolist() == [
        6,
        -1,
        0,
    ]
    assert bfs_pairs(graph, [0, 0, 5], [3, 4, 5], max_depth=3)["distance"].fillna(-1).tolist() == [
        3,
        -1,
        0,
    ]


@pytest.mark.parametrize("strategy", ["auto", "near_far_per_thread", "one_at_a_time"])
def test_integer_sums_of_pairs_are_exact_in_every_type(strategy):
    for step in (3, 2**23 + 1, 2**52 + 1):  # float32, float64 and int64 hold them
        graph = build(path(6), [step] * 6, directed=False)
        found = sssp_pairs(graph, [0, 1, 0], [6, 4, 1], strategy=strategy)["distance"]
        assert found.tolist() == [6 * step, 3 * step, step]


def test_columns_of_any_library_and_string_ids_are_taken():
    edges = pa.table({"src": ["a", "b", "c"], "dst": ["b", "c", "d"], "weight": [1, 2, 3]})
    graph = graph_from_edges(edges)
    trips = pd.DataFrame({"from": ["a", "d", "a"], "to": ["d", "a", "d"]})
    for origins, destinations in (
        (trips["from"], trips["to"]),
        (pa.array(trips["from"].tolist()), pa.array(trips["to"].tolist())),
        (trips["from"].tolist(), tuple(trips["to"])),
    ):
        frame = sssp_pairs(graph, origins, destinations)
        assert frame["source"].tolist() == ["a", "d", "a"]
        assert frame["distance"].fillna(-1).tolist() == [6, -1, 6]


def test_pairs_without_a_row_give_an_empty_frame():
    graph = build(path(3), [1] * 3)
    frame = sssp_pairs(graph, [], [])
    assert len(frame) == 0
    assert list(frame.columns) == ["source", "target", "distance"]


def test_an_unknown_vertex_is_named_with_its_row():
    graph = build(path(20), [1] * 20)
    with pytest.raises(
        UnknownVertexError, match=r"destinations, row 2: 1 destination is not in the graph: 99"
    ):
        sssp_pairs(graph, [0, 1, 2, 3], [3, 4, 99, 98])
    with pytest.raises(UnknownVertexError, match=r"origins, row 5000"):
        bfs_pairs(graph, np.array([*[1] * 5000, 77]), np.ones(5001, int))
    for missing in (
        pd.Series([1, None], dtype="Int64"),
        pa.array([1, None]),
        pd.Series([1, np.nan]),
    ):
        with pytest.raises(UnknownVertexError, match=r"origins, row 1: it holds no id"):
            sssp_pairs(graph, missing, [1, 2])
    with pytest.raises(InputError, match="2 origins and 1 destinations"):
        sssp_pairs(graph, [0, 1], [3])


def test_the_plan_of_pairs_states_what_does_not_fit():
    graph = build(path(2000), [1] * 2000)
    with pytest.raises(CapacityError, match="needs"):
        sssp_pairs(graph, [0, 1], [3, 4], memory=10)


def test_bfs_many_points_to_the_function_for_pairs():
    graph = build(path(3))
    with pytest.raises(InputError, match="bfs_pairs"):
        bfs_many(graph, [0], result="pairs")
