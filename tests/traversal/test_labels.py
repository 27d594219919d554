"""What values, rows and results belong to: by the labels of an index, and by position without one."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    graph_from_edges,
    load_graph,
    paths,
    save_graph,
    sssp_many,
    sssp_pairs,
    with_weights,
    write_geoparquet,
)
from kepler_traverse.errors import DeviceError, InputError, UnknownVertexError
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.labels import Partner, in_order
from kepler_traverse.pipelines import run_job

EDGES = pd.DataFrame({"src": [30, 10, 20], "dst": [10, 20, 40], "weight": [1, 2, 4]})
GRAPH = graph_from_edges(EDGES, directed=False, edge_ids=True)
TRIPS = pd.DataFrame({"o": [30, 10, 20, 30], "d": [40, 40, 40, 10]})
MINUTES = [7, 6, 4, 1]
BIG = 620_000_000_000_000_001  # beside others that float64 rounds to the same

labels = st.lists(st.integers(-5, 20) | st.sampled_from("abcdef"), min_size=1, max_size=6)


@given(
    labels, st.lists(st.integers(0, 5), min_size=6, max_size=6), st.randoms(use_true_random=False)
)
def test_values_come_in_the_order_of_labels_that_both_have(names, values, random):
    partner = pd.Index(names, dtype=object)
    value = pd.Series(values[: len(names)], partner)
    shuffled = list(range(len(names)))
    random.shuffle(shuffled)
    if partner.is_unique:
        found = in_order("value", value.iloc[shuffled], Partner("partner", partner))
        assert found.tolist() == value.tolist()
    elif not value.iloc[shuffled].index.equals(partner):
        with pytest.raises(InputError, match="give value"):
            in_order("value", value.iloc[shuffled], Partner("partner", partner))


@pytest.mark.parametrize("order", [[3, 0, 1, 2], [0, 2], [2, 1, 3]])
def test_a_column_of_results_goes_into_the_rows_that_asked(order):
    trips = TRIPS.iloc[order].copy()
    trips["minutes"] = sssp_pairs(GRAPH, trips["o"], trips["d"])["distance"]
    assert trips["minutes"].tolist() == [MINUTES[row] for row in order]
    table = trips.rename(columns={"o": "origin", "d": "destination"})
    assert sssp_pairs(GRAPH, table).index.tolist() == order
    named = trips.set_axis(pd.Index([f"trip {row}" for row in order], name="trip"))
    found = bfs_pairs(GRAPH, named["o"], named["d"])
    assert (found.index.tolist(), found.index.name) == (named.index.tolist(), "trip")
    flows = sssp_pairs(
        GRAPH, named["o"], named["d"], result="flows", of="pairs", volumes=named["minutes"]
    )
    assert flows["volume"].tolist() == named.loc[flows.index, "minutes"].tolist()


def test_results_with_a_row_per_source_have_its_index():
    stops = pd.Series([30, 20], ["west", "east"])
    values = pd.Series([1, 10, 100, 1000], [30, 10, 20, 40])
    for options in (
        {"result": "summary"},
        {"result": "opportunities", "values": values, "cutoffs": [2]},
    ):
        assert sssp_many(GRAPH, stops, **options).index.tolist() == ["west", "east"]
    assert sssp_many(GRAPH, stops, result="within", cutoffs=[1, 2]).index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("index", [[7, 3, 5], [2, 0, 1], ["x", "y", "z"]])
def test_values_per_row_need_the_index_of_the_edges(index, tmp_path):
    edges = EDGES.set_axis(index)
    graph = graph_from_edges(edges, directed=False, edge_ids=True)
    weight = pd.Series([5, 6, 7], index)
    save_graph(graph, tmp_path / "stored")
    for known in (graph, with_weights(graph, [1, 1, 1]), load_graph(tmp_path / "stored")):
        assert with_weights(known, weight).fingerprint == with_weights(graph, [5, 6, 7]).fingerprint
        for wrong in (weight.iloc[[1, 0, 2]], weight.iloc[[1, 0, 2]].to_frame("toll")):
            with pytest.raises(InputError, match="not that of the table of edges"):
                with_weights(known, wrong) if wrong.ndim == 1 else paths(
                    known, ([30], [40]), along=wrong
                )
    with pytest.raises(InputError, match="not that of the table of edges"):
        with_weights(GRAPH, weight)
    if index == [2, 0, 1]:  # an index 0 to n-1 could be that of the edges in their first order
        with pytest.raises(InputError, match="not that of the table of edges"):
            with_weights(graph, weight.sort_index())
    else:
        assert with_weights(graph, weight.reset_index(drop=True)).n_edges == 6


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_number_of_pairs_does_not_change_what_they_mean(n):
    rows = list(zip([30, 10, 20, 40], [20, 30, 40, 10], strict=True))[:n]
    expected = paths(GRAPH, ([row[0] for row in rows], [row[1] for row in rows]))
    frame = pd.DataFrame(rows)
    for pairs in (
        rows,
        tuple(rows),
        iter(rows),
        list(frame.itertuples(index=False)),
        pd.MultiIndex.from_tuples(rows),
    ):
        assert paths(GRAPH, pairs).equals(expected)
    through = [(30, 10), (10, 20), (20, 40), (40, 20)][:n]
    ends = [row[0] for row in through], [row[1] for row in through]
    flows = [
        sssp_many(GRAPH, "all", result="flows", through=each)
        for each in (through, tuple(through), ends)
    ]
    assert flows[0].equals(flows[1])
    assert flows[0].equals(flows[2])
    for pairs in (tuple(map(list, rows)), rows[0]):
        if n != 2 or pairs is rows[0]:
            with pytest.raises(InputError):
                paths(GRAPH, pairs)


@pytest.mark.parametrize("kind", ["float64", "str", "int32", "uint64"])
def test_coordinates_are_those_of_equal_ids(kind, tmp_path):
    ids = [BIG, BIG + 1, BIG + 2] if kind != "int32" else [1, 2, 3]
    graph = graph_from_edges(ids[:2], ids[1:], [1, 1])
    frame = sssp_many(graph, ids[:1], result="isochrones", cutoffs=[9])
    places = pd.DataFrame(
        {"vertex": pd.Series(ids).astype(kind), "x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}
    )
    path = tmp_path / "points.parquet"
    if kind in ("float64", "str"):
        with pytest.raises(
            InputError,
            match=r"holds ids of type double|are int64, and those of vertices large_string",
        ):
            write_geoparquet(frame, path, places)
        return
    write_geoparquet(frame, path, places)
    points = [
        np.frombuffer(each[5:], "<f8").tolist()
        for each in pq.read_table(path)["geometry"].to_pylist()
    ]
    assert points == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


def test_ids_that_are_equal_only_after_a_cast_have_no_coordinates(tmp_path):
    graph = graph_from_edges(
        pd.DataFrame({"from": ["0102", "102"], "to": ["102", "7"], "minutes": [5, 7]})
    )
    frame = sssp_many(graph, ["0102"], result="isochrones", cutoffs=[100])
    with pytest.raises(
        InputError, match=r"vertices of frame are .*string, and those of vertices int64"
    ):
        write_geoparquet(
            frame,
            tmp_path / "a.parquet",
            pd.DataFrame({"vertex": [102, 7], "x": [8.5, 8.6], "y": [49.0, 49]}),
        )


@pytest.mark.parametrize("name", RESULT_KINDS["paths"].columns)
def test_no_column_of_the_user_takes_the_place_of_one_of_the_result(name):
    with pytest.raises(
        InputError, match=f"along\\['{name}'\\]: the result has a column of this name"
    ):
        paths(GRAPH, ([30], [20]), along={name: [1, 2, 3]})


@pytest.mark.parametrize("name", ["source", "cutoff"])
def test_no_attribute_takes_the_place_of_a_column_of_the_result(name):
    with pytest.raises(InputError, match=f"'{name}' cannot be the name of an attribute"):
        sssp_many(GRAPH, [30], result="opportunities", values={name: [1, 2, 3, 4]}, cutoffs=[1])


@pytest.mark.parametrize("name", ["osmid", "OSMID", "stop_id", "stopId", "junction", "x"])
@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pa.array, partial(np.array, dtype=float)]
)
def test_a_mapping_with_ids_by_an_unknown_name_is_refused(name, kind):
    values = {name: kind([30, 10, 40, 20]), "jobs": [1, 10, 100, 1000]}
    with pytest.raises(InputError, match=f"no column 'vertex', and its column '{name}' may hold"):
        sssp_many(GRAPH, [30], result="opportunities", values=values, cutoffs=[0])
    values["vertex"] = values.pop(name)
    if values["vertex"].__class__.__name__ != "ndarray" or values["vertex"].dtype.kind != "f":
        found = sssp_many(GRAPH, [30], result="opportunities", values=values, cutoffs=[0])
        assert found["jobs"].tolist() == [1]


@pytest.mark.parametrize("name", ["paid", "grid", "valid", "Solid", "n"])
def test_a_mapping_of_attributes_goes_by_position(name):
    for values in ({name: [1, 2, 3, 4], "jobs": [40, 30, 20, 11]}, {name: [40, 30, 20, 10]}):
        found = sssp_many(GRAPH, [30], result="opportunities", values=values, cutoffs=[0])
        assert found[name].tolist() == [values[name][2]]
        also = {**values, "vertex": GRAPH.ids}
        assert sssp_many(GRAPH, [30], result="opportunities", values=also, cutoffs=[0]).equals(
            found
        )


def test_a_table_with_ids_by_an_unknown_name_is_told_to_rename_that_column():
    table = pd.DataFrame({"osmid": [30, 10, 40, 20], "jobs": [1, 10, 100, 1000]})
    options = {"result": "opportunities", "cutoffs": [0]}
    with pytest.raises(InputError) as refused:
        sssp_many(GRAPH, [30], values=table, **options)
    assert "values.rename(columns={'osmid': 'vertex'})" in str(refused.value)
    assert "rename_axis" not in str(refused.value)
    renamed = table.rename(columns={"osmid": "vertex"})
    assert sssp_many(GRAPH, [30], values=renamed, **options)["jobs"].tolist() == [1]


def test_a_file_of_paths_keeps_every_column(tmp_path):
    found = paths(GRAPH, ([30], [40]), along={"vertices": [1, 2, 3]})
    places = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4]}, [40, 30, 20, 10])
    with pytest.raises(InputError, match="frame has a column 'vertices'"):
        write_geoparquet(found, tmp_path / "a.parquet", places)
    write_geoparquet(found.rename(columns={"vertices": "toll"}), tmp_path / "a.parquet", places)
    assert pq.read_table(tmp_path / "a.parquet")["toll"].to_pylist() == [6]


def test_targets_given_twice_have_one_row_in_library_and_job(tmp_path):
    found = bfs_many(GRAPH, [30, 10], result="targets", targets=[40, 20, 40])
    assert found["target"].tolist() == [40, 20, 40, 20]
    job = run_job(
        GRAPH,
        output=tmp_path / "out",
        sources=[30, 10],
        result="targets",
        targets=[40, 20, 40],
        report=False,
    )
    assert job.to_pandas().to_dict("list") == found.to_dict("list")
    options = {"sources": [30], "result": "flows", "targets": [40, 40], "algorithm": "sssp"}
    for call in (
        lambda: sssp_many(GRAPH, [30], result="flows", targets=[40, 40]),
        lambda: run_job(GRAPH, output="o", **options),
    ):
        with pytest.raises(InputError, match="a target is given twice"):
            call()


@pytest.mark.parametrize("ids", [[1, 2, 3], ["a", "b", "c"]])
def test_equal_graphs_have_equal_pickles(ids, tmp_path):
    made = [graph_from_edges(ids[:2], ids[1:], [1, 2], edge_ids=True) for _ in range(2)]
    _ = made[0].reverse, made[0].fingerprint, made[0].derived.max_sum, sssp_many(made[0], [ids[0]])
    save_graph(made[0], tmp_path / "stored")
    copies = [pickle.loads(pickle.dumps(each)) for each in (*made, load_graph(tmp_path / "stored"))]
    assert len({pickle.dumps(each) for each in copies}) == 1
    assert copies[0].ids_at([0, 2]).tolist() == [ids[0], ids[2]]
    assert copies[0].fingerprint == made[0].fingerprint
    made[0].hierarchy()
    assert pickle.loads(pickle.dumps(made[0])).derived.known_hierarchy("weights") is not None


def test_one_card_of_several_is_chosen_by_the_environment():
    with pytest.raises(DeviceError, match="set CUDA_VISIBLE_DEVICES=1 "):
        GRAPH.to("cuda:1")


def test_ids_of_arrow_scalars_are_those_of_the_graph():
    names = graph_from_edges(["a"], ["b"])
    assert bfs_many(names, list(names.ids)).equals(bfs_many(names, "all"))
    assert bfs_pairs(names, list(names.ids), names.ids)["distance"].tolist() == [0, 0]
    with pytest.raises(UnknownVertexError):
        bfs_many(names, [pa.scalar(0)])
