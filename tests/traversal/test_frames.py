"""Results as frames: columns, types, the user's ids, values of unreached vertices, and paths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import (
    bfs,
    bfs_many,
    graph_from_edges,
    paths,
    plan_bfs,
    plan_sssp,
    sssp,
    sssp_many,
)
from kepler_traverse.errors import InputError, UnknownVertexError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.kinds import distances
from kepler_traverse.search.results import _checksum_of_arrays, checksum
from tests.support import oracle, tiers
from tests.support.graphs import NAMED, build, weights_for
from tests.support.plans import table_of


@pytest.fixture
def towns():
    """A graph whose ids are strings: aalen -> bonn -> chur, and dole alone."""
    ids = pa.array(["aalen", "bonn", "chur", "dole"])
    ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    return graph_from_numbers(*ends, np.array([2, 3]), ids=ids)


def test_columns_and_types_are_those_documented():
    graph = build([(5, 6), (6, 7), (9, 5)], [1, 2, 3])
    one = bfs(graph, 5)
    assert one.columns.tolist() == ["vertex", "distance", "predecessor"]
    assert one.dtypes.tolist() == [np.int64, np.int32, np.int64]
    assert one.to_numpy().tolist() == [[5, 0, 5], [6, 1, 5], [7, 2, 6]]
    many = sssp_many(graph, [6, 5])
    assert many.columns.tolist() == ["source", "vertex", "distance"]
    assert many["distance"].dtype == np.int64
    assert many.to_numpy().tolist() == [[6, 6, 0], [6, 7, 2], [5, 5, 0], [5, 6, 1], [5, 7, 3]]
    assert sssp(graph, 5, predecessors=False).columns.tolist() == ["vertex", "distance"]


def test_sources_given_twice_are_returned_twice():
    graph = build([(0, 1)])
    frame = bfs_many(graph, [1, 0, 1])
    assert frame["source"].tolist() == [1, 0, 0, 1]
    assert frame.index.tolist() == [0, 1, 2, 3]


def test_empty_list_of_sources_gives_an_empty_frame_of_the_same_types():
    graph = build([(0, 1)], [1])
    empty, full = (
        sssp_many(graph, [], result="predecessors"),
        sssp_many(graph, [0], result="predecessors"),
    )
    assert empty.dtypes.equals(full.dtypes)
    assert len(empty) == 0


def test_unknown_sources_are_refused_before_any_work():
    graph = build([(0, 1)])
    with pytest.raises(UnknownVertexError, match="8, 9"):
        bfs_many(graph, [0, 8, 9])
    with pytest.raises(UnknownVertexError, match="target"):
        bfs(graph, 0, targets=[3])


def test_unreached_vertices_are_left_out_null_or_marked_as_cugraph_does():
    graph = build([(0, 1), (2, 0)], [4, 1])
    assert bfs(graph, 0)["vertex"].tolist() == [0, 1]
    nulls = bfs(graph, 0, unreached="null")
    assert nulls["distance"].dtype == pd.Int32Dtype()
    assert nulls["distance"].isna().tolist() == [False, False, True]
    assert nulls["predecessor"].isna().tolist() == [False, False, True]
    marked = bfs(graph, 0, unreached="cugraph")
    assert marked["distance"].tolist() == [0, 1, 2**63 - 1]  # the ids are int64
    assert marked["predecessor"].tolist() == [-1, 0, -1]
    assert sssp(graph, 0, unreached="cugraph")["distance"].tolist() == [
        0,
        4,
        np.finfo(np.float64).max,
    ]
    with pytest.raises(InputError, match="'zero'"):
        bfs(graph, 0, unreached="zero")


def test_limits_and_targets_choose_rows():
    graph = build(NAMED["path"])
    assert bfs(graph, 0, max_depth=0)["vertex"].tolist() == [0]
    assert bfs(graph, 5, max_depth=2)["vertex"].tolist() == [5, 6, 7]
    assert bfs(graph, 5, targets=[9, 0, 7, 9])["vertex"].tolist() == [7, 9]
    assert bfs(graph, 5, targets=[9, 0], unreached="null")["distance"].isna().tolist() == [
        True,
        False,
    ]
    for bad in (-1, float("nan")):
        with pytest.raises(InputError, match="max_depth"):
            bfs(graph, 5, max_depth=bad)


def test_cutoff_with_negative_weights_keeps_paths_through_farther_vertices():
    graph = build([(0, 1), (1, 2)], [5, -4])
    assert sssp(graph, 0, cutoff=2)["vertex"].tolist() == [0, 2]
    assert sssp_many(graph, [0, 1], cutoff=2, result="matrix").tolist() == [
        [0, np.inf, 1],
        [np.inf, 0, -4],
    ]
    assert sssp_many(graph, [0], cutoff=0, result="matrix", targets=[2, 0]).tolist() == [
        [np.inf, 0]
    ]


def test_string_ids_come_back_as_strings(towns):
    frame = sssp(towns, "aalen")
    assert frame["vertex"].tolist() == ["aalen", "bonn", "chur"]
    assert frame["predecessor"].tolist() == ["aalen", "aalen", "bonn"]
    nulls = bfs_many(towns, ["bonn"], result="predecessors", unreached="null")
    assert nulls["predecessor"].isna().tolist() == [True, False, False, True]
    assert nulls["source"].tolist() == ["bonn"] * 4
    assert paths(frame, ["chur"])["vertex"].tolist() == ["aalen", "bonn", "chur"]
    with pytest.raises(UnknownVertexError, match="'essen'"):
        bfs(towns, "essen")
    with pytest.raises(UnknownVertexError, match="strings"):
        bfs(towns, 1)
    with pytest.raises(InputError, match="signed integer ids"):
        bfs(towns, "bonn", unreached="cugraph")


def test_paths_are_shortest_and_complete_for_all_targets_at_once():
    rows = [r[:2] for r in NAMED["power law"]]
    weights = weights_for(rows, 3)
    graph = build(rows, weights)
    neighbors = oracle.edges_of([(u, v, w) for (u, v), w in zip(rows, weights, strict=True)])
    frame = sssp(graph, rows[0][0])
    expected = dict(zip(frame["vertex"], frame["distance"], strict=True))
    found = paths(frame, frame["vertex"])
    assert found.columns.tolist() == ["target", "position", "vertex"]
    assert set(found["target"]) == set(expected)
    for target, path in found.groupby("target"):
        walk = path["vertex"].tolist()
        assert path["position"].tolist() == list(range(len(walk)))
        assert (walk[0], walk[-1]) == (rows[0][0], target)
        assert sum(neighbors[u][v] for u, v in pairwise(walk)) == expected[target]


def test_paths_of_many_sources_carry_their_source():
    graph = build(NAMED["lattice"], directed=False)
    frame = bfs_many(graph, [0, 77], result="predecessors")
    found = paths(frame, [5, 1999])
    ends = found.groupby(["source", "target"])["position"].max()
    asked = frame[frame["vertex"].isin([5, 1999])].set_index(["source", "vertex"])["distance"]
    assert ends.to_dict() == asked.to_dict()


def test_paths_refuse_frames_that_cannot_hold_them():
    graph = build(NAMED["path"])
    with pytest.raises(InputError, match="predecessors=True"):
        paths(bfs(graph, 0, predecessors=False), [3])
    with pytest.raises(InputError, match="targets"):
        paths(bfs(graph, 0, targets=[9]), [9])
    with pytest.raises(InputError, match="omit"):
        paths(bfs(graph, 5, unreached="null"), [9])
    circle = pd.DataFrame({"vertex": [1, 2], "distance": [1, 1], "predecessor": [2, 1]})
    with pytest.raises(InputError, match="circle"):
        paths(circle, [1])


def test_tables_for_files_hold_the_same_rows():
    graph = build([(5, 6), (6, 7), (9, 5)], [1, 2, 3])
    plan = plan_bfs(graph)
    table = table_of(graph, plan(5), plan.query)
    assert table.schema.names == ["source", "vertex", "distance", "predecessor"]
    assert table.to_pandas()[["vertex", "distance", "predecessor"]].equals(bfs(graph, 5))


@pytest.mark.parametrize("kind", ["hops", "float32", "float64"])
def test_the_checksum_is_the_same_by_one_pass_and_by_whole_arrays(kind):
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(
        rows, weights_for(rows, 3, "floats"), weight_type="auto" if kind == "hops" else kind
    )
    for source in (0, 7):
        result = (plan_bfs if kind == "hops" else plan_sssp)(graph, predecessors=False).run(source)
        assert checksum(result) == _checksum_of_arrays(result) != 0


def test_the_checksum_sees_a_change_and_not_the_strategy():
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows)
    source = rows[0][0]
    once = checksum(plan_bfs(graph)(source))
    assert once == checksum(plan_bfs(graph, strategy="queue", predecessors=False)(source))
    result = plan_bfs(graph)(source)
    result.distance[np.flatnonzero(result.reached)[-1]] += 1
    assert checksum(result) != once
    assert checksum(plan_bfs(graph)(rows[1][0])) != once


def test_string_ids_are_looked_up_alike_for_many_and_few(towns):
    names = ["chur", "aalen", "bonn"] * 50
    assert towns.to_numbers(names).tolist() == [2, 0, 1] * 50
    with pytest.raises(UnknownVertexError, match="'essen'"):
        towns.to_numbers([*names, "essen"])
    assert towns.to_numbers(pd.Series(["bonn"])).tolist() == [1]
    assert towns.to_numbers(pa.array(["bonn"])).tolist() == [1]


@pytest.mark.parametrize(
    ("threads", "weighted", "result"),
    tiers.pairs([1, 3], [False, True], ["distances", "predecessors"]),
)
def test_rows_of_many_sources_are_those_of_each_source(threads, weighted, result, monkeypatch):
    monkeypatch.setattr(distances, "_ROWS_PER_THREAD", 1)
    monkeypatch.setattr(distances.numba, "get_num_threads", lambda: threads)
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 3))
    sources = [*graph.ids[::28].tolist(), graph.ids[0].item()]
    one, many = (sssp, sssp_many) if weighted else (bfs, bfs_many)
    targets = graph.ids[3::4].tolist()
    for options in ({}, {"cutoff" if weighted else "max_depth": 2}, {"targets": targets}):
        frame = many(graph, sources, result=result, **options)
        each = [
            one(graph, s, predecessors=result == "predecessors", **options).assign(source=s)
            for s in sources
        ]
        expected = pd.concat(each, ignore_index=True)[frame.columns]
        pd.testing.assert_frame_equal(frame, expected, check_exact=True)


def test_a_frame_does_not_share_memory_with_a_plan_or_another_frame():
    graph = build(NAMED["lattice"], directed=False)
    first, second = bfs_many(graph, [0]), bfs_many(graph, [0])
    first.loc[0, "distance"] = 99
    first.loc[0, "vertex"] = 99
    assert second.loc[0].tolist() == bfs_many(graph, [0]).loc[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("result", ["distances", "predecessors", "summary", "nearest"])
def test_frame_shares_no_memory_with_the_graph_or_a_later_search(result):
    numbers = np.arange(50)
    # every vertex is reached
    graph = graph_from_edges(numbers, (numbers + 1) % 50, np.full(50, 3), directed=False)
    frame = sssp_many(graph, [0, 1, 2], result=result)
    columns = [frame[name].to_numpy() for name in frame.columns]
    assert not any(np.shares_memory(column, graph.ids) for column in columns)
    before = frame.copy(deep=True)
    sssp_many(graph, [7, 8, 9], result=result)
    assert frame.equals(before)
