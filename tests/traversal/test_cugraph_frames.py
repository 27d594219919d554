"""``unreached="cugraph"``: programs written for frames of ``cugraph.bfs`` and ``cugraph.sssp`` run on ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import (
    bfs,
    bfs_many,
    certify,
    graph_from_edges,
    paths,
    read_graph,
    sssp,
    sssp_many,
)
from kepler_traverse.errors import InputError, PrecisionError
from kepler_traverse.interop.cugraph_frames import as_cugraph
from pipelines.batch_sources import main
from tests.support import oracle
from tests.support.graphs import NAMED, build, weights_for

ROWS = [(0, 1), (1, 2), (0, 2), (2, 3), (5, 6)]
WEIGHTS = [1.0, 1.0, 4.0, 0.5, 1.0]


def edge_table(ids="int32", weights="float32"):
    src, dst = np.array(ROWS, ids).T
    return pd.DataFrame({"src": src, "dst": dst, "wt": np.array(np.array(WEIGHTS) * 2, weights)})


def made(ids="int32", weights="float32", directed=False):
    return graph_from_edges(
        edge_table(ids, weights), src="src", dst="dst", weight="wt", directed=directed
    )


# What follows is written as in programs that use cuGraph: its filter_unreachable, its notebooks, its path retrieval.


def largest(distance):
    kind = np.iinfo if np.issubdtype(distance.dtype, np.integer) else np.finfo
    return kind(distance.dtype).max


def filter_unreachable(df):
    return df[df.distance != largest(df["distance"])]


def path_to(df, target):
    path = [target]
    predecessor = df[df["vertex"] == target]["predecessor"].iloc[0]
    while predecessor != -1:
        path.append(int(predecessor))
        predecessor = df[df["vertex"] == predecessor]["predecessor"].iloc[0]
    return path[::-1]


def with_names(df, names):
    return df.merge(names, on="vertex", how="left").sort_values("vertex").reset_index(drop=True)


@pytest.mark.parametrize(
    ("ids", "hops"), [("int16", "int32"), ("int32", "int32"), ("int64", "int64")]
)
def test_bfs_columns_types_and_sentinels_are_cugraphs(ids, hops):
    frame = bfs(made(ids), 0, unreached="cugraph")
    assert frame.columns.tolist() == ["vertex", "distance", "predecessor"]
    assert frame.dtypes.tolist() == [np.dtype(ids), np.dtype(hops), np.dtype(ids)]
    none = np.iinfo(hops).max
    assert frame["distance"].tolist() == [0, 1, 1, 2, none, none]
    assert frame["predecessor"].tolist() == [-1, 0, 0, 2, -1, -1]


@pytest.mark.parametrize(
    ("weights", "distances"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("int32", "float32"),
        ("int64", "float64"),
        ("int16", "float32"),
    ],
)
def test_sssp_columns_types_and_sentinels_are_cugraphs(weights, distances):
    frame = sssp(made(weights=weights), 0, unreached="cugraph")
    assert frame.columns.tolist() == ["distance", "vertex", "predecessor"]
    assert frame.dtypes.tolist() == [np.dtype(distances), np.dtype("int32"), np.dtype("int32")]
    none = float(np.finfo(distances).max)
    assert frame["distance"].tolist() == [0, 2, 4, 5, none, none]
    assert frame["predecessor"].tolist() == [-1, 0, 1, 2, -1, -1]


def test_frames_of_many_sources_have_the_columns_of_one_after_the_source():
    graph = made("int64", "int32")
    many = bfs_many(graph, [5, 0], result="predecessors", unreached="cugraph")
    assert many.columns.tolist() == ["source", "vertex", "distance", "predecessor"]
    assert sssp_many(graph, [0], unreached="cugraph").columns.tolist() == [
        "source",
        "distance",
        "vertex",
    ]
    for source, traverse, traverse_many in ((0, bfs, bfs_many), (5, sssp, sssp_many)):
        one = traverse(graph, source, unreached="cugraph")
        frame = traverse_many(graph, [source], result="predecessors", unreached="cugraph")
        pd.testing.assert_frame_equal(frame.drop(columns="source"), one)
        empty = traverse_many(graph, [], result="predecessors", unreached="cugraph")
        assert empty.dtypes.equals(frame.dtypes)
        assert len(empty) == 0


@pytest.mark.parametrize("traverse", [bfs, sssp])
def test_program_for_cugraph_frames_runs_unchanged(traverse):
    df = traverse(made(), 0, unreached="cugraph")
    reachable = filter_unreachable(df)
    assert reachable["vertex"].tolist() == [0, 1, 2, 3]
    assert path_to(df, 3) == ([0, 2, 3] if traverse is bfs else [0, 1, 2, 3])
    assert path_to(df, 0) == [0]
    names = pd.DataFrame({"vertex": np.arange(7, dtype="int32"), "name": list("abcdefg")})
    assert with_names(reachable, names)["name"].tolist() == ["a", "b", "c", "d"]
    assert df.query("distance < 2")["vertex"].tolist() == ([0, 1, 2] if traverse is bfs else [0])
    # The cost matrix of cuGraph's notebook, without its copies of the graph and its ghost vertex.
    costs = sssp_many(made(), [0, 5], unreached="cugraph")
    costs = filter_unreachable(costs).rename(columns={"source": "seed", "vertex": "v2"})
    assert costs.groupby("seed")["distance"].sum().to_dict() == {0: 11.0, 5: 2.0}


@pytest.mark.parametrize("limit", [None, 2])
def test_distances_and_predecessors_form_a_shortest_path_tree(limit):
    rows = [row[:2] for row in NAMED["power law"]]
    weights = weights_for(rows, 5)
    source = rows[0][0]
    edges = oracle.edges_of([(u, v, w) for (u, v), w in zip(rows, weights, strict=True)])
    frame = sssp(build(rows, weights), source, unreached="cugraph", cutoff=limit)
    assert tree_errors(frame, edges, source) == []
    expected = sssp(build(rows, weights), source, cutoff=limit)
    pd.testing.assert_frame_equal(
        filter_unreachable(frame)[["vertex", "distance"]].reset_index(drop=True),
        expected[["vertex", "distance"]].astype({"distance": np.float64}),
    )


def tree_errors(frame, edges, source):
    """Vertices whose predecessor does not lead there by an edge of the difference of their distances."""
    none = largest(frame["distance"])
    distance = dict(zip(frame["vertex"].tolist(), frame["distance"].tolist(), strict=True))
    wrong = []
    for vertex, predecessor in zip(
        frame["vertex"].tolist(), frame["predecessor"].tolist(), strict=True
    ):
        if vertex == source or distance[vertex] == none:
            right = predecessor == -1
        else:
            right = (
                distance[predecessor] + edges[predecessor].get(vertex, np.inf) == distance[vertex]
            )
        if not right:
            wrong.append(vertex)
    return wrong


def test_ids_in_which_minus_one_is_ambiguous_are_refused():
    with pytest.raises(InputError, match="-1, which is a vertex of this graph"):
        bfs(build([(-1, 0)]), 0, unreached="cugraph")
    assert bfs(build([(-2, 0)]), -2, unreached="cugraph")["predecessor"].tolist() == [-1, -2]
    unsigned = graph_from_edges(np.array([0], np.uint32), np.array([1], np.uint32))
    with pytest.raises(InputError, match="signed integer ids"):
        bfs_many(unsigned, [0], unreached="cugraph")


@pytest.mark.parametrize("traverse", [bfs, sssp])
def test_a_certificate_names_the_form_that_it_takes(traverse):
    graph = made()
    with pytest.raises(InputError, match="made with unreached='omit' or 'null'"):
        certify(graph, traverse(graph, 0, unreached="cugraph"))
    for unreached in ("omit", "null"):
        certify(graph, traverse(graph, 0, unreached=unreached)).require()


def test_integer_distances_that_cugraphs_type_would_round_are_refused():
    largest = 2**24 - 1
    src, dst = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    exact = graph_from_edges(src, dst, np.array([largest - 1, 1], np.int32))
    assert sssp(exact, 0, unreached="cugraph")["distance"].tolist() == [0, largest - 1, largest]
    rounded = graph_from_edges(src, dst, np.array([largest, 1], np.int32))
    with pytest.raises(PrecisionError, match=r"16,777,216.*float32.*weights of 64 bits"):
        sssp(rounded, 0, unreached="cugraph")
    assert sssp(rounded, 0, unreached="cugraph", cutoff=largest)["distance"].tolist()[:2] == [
        0,
        largest,
    ]
    wide = graph_from_edges(src, dst, np.array([2**53 - 1, 1], np.int64))
    with pytest.raises(PrecisionError, match="float64"):
        sssp(wide, 0, unreached="cugraph")


def test_paths_refuses_a_frame_with_cugraphs_marks():
    graph = made()
    with pytest.raises(InputError, match="unreached='omit'"):
        paths(bfs(graph, 0, unreached="cugraph"), [3], graph=graph)


@pytest.mark.parametrize("weights", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("result", ["distances", "predecessors"])
@pytest.mark.parametrize("traverse_many", [bfs_many, sssp_many])
def test_as_cugraph_completes_a_frame_of_reached_vertices(traverse_many, result, weights):
    graph = made("int64", weights)
    for options in ({}, {"max_depth" if traverse_many is bfs_many else "cutoff": 2}):
        reached = traverse_many(graph, [5, 0, 3], result=result, **options)
        expected = traverse_many(graph, [5, 0, 3], result=result, unreached="cugraph", **options)
        pd.testing.assert_frame_equal(as_cugraph(reached, graph), expected)
        # rows in any order; sources in the order of their first rows
        shuffled = reached.sample(frac=1, random_state=1)
        found = as_cugraph(shuffled, graph).sort_values(["source", "vertex"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(
            found, expected.sort_values(["source", "vertex"]).reset_index(drop=True)
        )


@pytest.mark.parametrize("traverse", [bfs, sssp])
def test_as_cugraph_completes_a_frame_of_one_source(traverse):
    graph = made()
    pd.testing.assert_frame_equal(
        as_cugraph(traverse(graph, 5), graph), traverse(graph, 5, unreached="cugraph")
    )


def test_as_cugraph_refuses_other_frames():
    graph = made()
    frame = bfs_many(graph, [0, 5], result="predecessors")
    for wrong, message in (
        (frame.to_dict(), "must be a data frame"),
        (frame.drop(columns="vertex"), "no column 'vertex'"),
        (bfs(graph, 0, unreached="null"), "nulls in column 'distance'"),
        (pd.concat([frame, frame.iloc[:1]]), "a vertex twice for one source"),
        (frame.assign(vertex=frame["vertex"] + 50), "column 'vertex'.* not in the graph"),
        (frame.assign(predecessor=-1), "column 'predecessor'.* not in the graph: -1"),
        (frame.assign(distance="0"), "numbers as distances"),
    ):
        with pytest.raises(InputError, match=message):
            as_cugraph(wrong, graph)
    with pytest.raises(InputError, match="graph must be a Graph"):
        as_cugraph(frame, None)
    with pytest.raises(InputError, match="signed integer ids"):
        as_cugraph(frame, graph_from_edges(np.array([0], np.uint8), np.array([5], np.uint8)))


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_results_of_a_job_become_cugraphs_frames(algorithm, tmp_path):
    edge_table(weights="int32").rename(columns={"wt": "weight"}).to_parquet(
        tmp_path / "edges.parquet"
    )
    options = [
        "--undirected",
        "--algorithm",
        algorithm,
        "--sources",
        "0,5",
        "--result",
        "predecessors",
    ]
    assert main([str(tmp_path / "edges.parquet"), *options, "--output", str(tmp_path / "out")]) == 0
    graph = read_graph(tmp_path / "edges.parquet", directed=False, device="cpu")
    written = pd.concat(
        [pd.read_parquet(part) for part in sorted((tmp_path / "out").glob("part-*.parquet"))]
    )
    traverse_many = bfs_many if algorithm == "bfs" else sssp_many
    expected = traverse_many(graph, [0, 5], result="predecessors", unreached="cugraph")
    pd.testing.assert_frame_equal(as_cugraph(written, graph), expected)


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")  # of cuGraph's own
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weights", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("ids", ["int32", "int64"])
def test_frames_equal_cugraphs(ids, weights, directed):
    cugraph, cudf = (
        pytest.importorskip(name, exc_type=ImportError) for name in ("cugraph", "cudf")
    )
    rows = np.array(sorted({row for row in NAMED["power law"] if row[0] != row[1]}), ids)
    if not directed:  # one row per edge: cuGraph would average the weights of two
        rows = np.unique(np.sort(rows, axis=1), axis=0)
    rows = np.concatenate([rows, np.array([[5000, 5001]], ids)])  # which the source does not reach
    table = pd.DataFrame(
        {"src": rows[:, 0], "dst": rows[:, 1], "wt": np.array(weights_for(rows, 7), weights)}
    )
    theirs = cugraph.Graph(directed=directed)
    theirs.from_cudf_edgelist(
        cudf.from_pandas(table), source="src", destination="dst", edge_attr="wt"
    )
    graph = graph_from_edges(table, src="src", dst="dst", weight="wt", directed=directed)
    edges = oracle.edges_of(table.itertuples(index=False), directed)
    hops = oracle.edges_of(rows.tolist(), directed)
    source = int(rows[0, 0])
    for traverse, reference in ((bfs, cugraph.bfs), (sssp, cugraph.sssp)):
        expected = reference(theirs, source)
        for device in ("cpu", "cuda"):
            found = traverse(graph.to(device), source, unreached="cugraph")
            if device == "cuda":
                assert isinstance(found, cudf.DataFrame)
                assert cugraph.filter_unreachable(found)["vertex"].max() < 5000
                assert (
                    as_cugraph(traverse(graph.to("cuda"), source), graph.to("cuda"))
                    .to_pandas()
                    .equals(found.to_pandas())
                )
                farthest = int(
                    found["vertex"].iloc[
                        int(filter_unreachable(found.to_pandas())["distance"].idxmax())
                    ]
                )
                assert cugraph.utils.get_traversed_path_list(found, farthest)[-1] == source
                found = found.to_pandas()
            assert found.columns.tolist() == expected.columns.to_list()
            assert found.dtypes.tolist() == expected.to_pandas().dtypes.tolist()
            ordered = expected.to_pandas().sort_values("vertex").reset_index(drop=True)
            pd.testing.assert_frame_equal(
                found[["vertex", "distance"]], ordered[["vertex", "distance"]]
            )
            steps = hops if traverse is bfs else edges
            assert tree_errors(found, steps, source) == []
            assert tree_errors(ordered, steps, source) == []
