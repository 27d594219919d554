"""Invalid and valid arguments: columns of any kind, lists of ids, limits, frames of a limit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import (
    bfs,
    bfs_many,
    certify,
    graph_from_edges,
    paths,
    plan_bfs,
    plan_sssp,
    sssp,
    sssp_many,
    sssp_pairs,
    with_weights,
)
from kepler_traverse.arguments import as_array, describe, ids
from kepler_traverse.errors import EdgeListError, InputError, UnknownVertexError
from tests.support.graphs import NAMED, build, weights_for

PATH = build(NAMED["path"], [1] * 1200)


@pytest.mark.parametrize("sources", ["home", b"home", "7", bytearray(b"7")])
def test_string_is_not_a_list_of_its_letters(sources):
    for many in (bfs_many, sssp_many):
        with pytest.raises(
            UnknownVertexError, match=r"must be a list of ids, not one string: give \["
        ):
            many(PATH, [0], targets=sources)
        with pytest.raises(
            UnknownVertexError, match=r"the ids of this graph are integers|must be a list of ids"
        ):
            many(PATH, sources)


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "Series": pd.Series,
    "Index": pd.Index,
    "nullable Series": lambda values: pd.Series(values, dtype="Int64"),
    "Arrow Series": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "categories": lambda values: pd.Series(values).astype("category"),
    "objects": lambda values: np.array(values, object),
    "pyarrow": pa.array,
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "memoryview": lambda values: memoryview(np.array(values)),
    "big-endian": lambda values: np.array(values, ">i8"),
    "strided view": lambda values: np.array([values, values]).T[:, 0],
    "reversed view": lambda values: np.array(values[::-1])[::-1],
    "read-only": lambda values: np.frombuffer(np.array(values).tobytes(), np.int64),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_every_kind_build_the_same_graph(kind):
    src, dst, weight = [1, 2**60 + 1, 3], [2**60 + 1, 3, 1], [3, 2, 2**24 - 1]
    expected = graph_from_edges(np.array(src), np.array(dst), np.array(weight))
    make = COLUMNS[kind]
    assert graph_from_edges(make(src), make(dst), make(weight)).fingerprint == expected.fingerprint
    assert graph_from_edges(np.array(src), make(dst), weight).fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2**53 + 1, 0.5], "float64 cannot hold exactly"),
        ([True, 2], "not True"),
        ([1, None], "not None"),
        ([1, "2"], "strings"),
        ([2**64, 1], "neither int64 nor uint64"),
        ([-1, 2**63], "neither int64 nor uint64"),
        ([np.timedelta64(5, "s"), 1], "timedelta64"),
        ([1, pd.NA], "row 1"),
        (pa.array([1, None]), "1 nulls"),
        (pd.Series([1, None], dtype="Int64"), "1 nulls"),
        (pd.DataFrame({"a": [1, 2]}), "DataFrame"),
        ({"a": 1}, "dict"),
        ((i for i in (1, 2)), "generator"),
        (5, "not 5"),
        ("12", "not '12'"),
        (np.array([[1], [2]]), "one-dimensional"),
        (np.array([True, False]), "not bool"),
        (np.array(["2020", "2021"], "M8[D]"), "datetime64"),
        (np.array([1j, 2]), "complex"),
    ],
)
def test_non_numeric_columns_are_refused_by_name(values, message):
    for name in ("src", "weight"):
        columns = {"src": [1, 2], "dst": [2, 3], "weight": [1, 2], name: values}
        with pytest.raises(EdgeListError, match=rf"{name}\b.*{message}") as caught:
            graph_from_edges(**columns)
        assert caught.value.column == name
    with pytest.raises(InputError, match=rf"vertices\b.*{message}"):
        graph_from_edges([1], [2], vertices=values)


def text_of_arrow(ends, text=b"abc"):
    """Three strings whose ends are not checked."""
    return pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, *ends], np.int32)), pa.py_buffer(text)]
    )


class OfC:
    """A column with nothing but the Arrow interface for C."""

    def __init__(self, held):
        self.held = held

    def __arrow_c_array__(self, requested_schema=None):
        return self.held.__arrow_c_array__(requested_schema)


DAMAGED = {
    "ends beyond the buffer": lambda: text_of_arrow([10**8, 2, 3]),
    "ends that fall": lambda: pa.chunked_array([text_of_arrow([3, 1, 3])]),
    "no UTF-8": lambda: OfC(text_of_arrow([1, 2, 3], b"a\xffc")),
    "pandas": lambda: pd.Series(pd.arrays.ArrowExtensionArray(text_of_arrow([1, 2, 3], b"a\xffc"))),
    "codes beyond the dictionary": lambda: pa.DictionaryArray.from_arrays(
        [0, 1, 10**6], ["a", "b"], safe=False
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_column_of_arrow_is_refused_by_every_door(damage):
    graph = graph_from_edges(["a", "b", "c"], ["b", "c", "a"], [1, 2, 3], edge_ids=True)
    column = DAMAGED[damage]()
    for door in (
        lambda: graph_from_edges(column, ["b", "c", "a"]),
        lambda: graph_from_edges([0, 1, 2], [1, 2, 0], column),
        lambda: graph_from_edges({"src": [0, 1, 2], "dst": [1, 2, 0], "f": column}, where="f = 1"),
        lambda: graph_from_edges([0, 1, 2], [1, 2, 0], oneway=column),
        lambda: graph_from_edges(["a"], ["b"], vertices=column),
        lambda: bfs_many(graph, column),
        lambda: sssp_many(graph, ["a"], result="targets", targets=column),
        lambda: sssp_many(graph, ["a", "b", "c"], result="nearest", k=2, groups=column),
        lambda: sssp_pairs(graph, column, ["a", "b", "c"]),
        lambda: paths(graph, (["a"], ["c"]), along={"toll": column}),
        lambda: with_weights(graph, column),
    ):
        with pytest.raises(InputError, match=r"no valid column of Arrow \(.*make it again"):
            door()


@pytest.mark.parametrize("wrong", ["\ud800", "a\udfff", "\udcffb"])
def test_halves_of_characters_are_unknown_vertices(wrong):
    names = graph_from_names()
    for many in ([wrong], ["a"] * 100 + [wrong]):  # a few are looked up one by one, many are hashed
        with pytest.raises(UnknownVertexError, match="not in the graph"):
            names.to_numbers(many)
    with pytest.raises(UnknownVertexError):
        paths(bfs(names, "a"), [wrong])


def graph_from_names():
    from kepler_traverse.graph.build import graph_from_numbers

    return graph_from_numbers(
        np.array([0, 1], np.int32), np.array([1, 2], np.int32), ids=pa.array(["a", "b", "c"])
    )


def test_paths_tell_targets_without_a_path_from_ids_that_are_none():
    graph = build([(0, 1), (1, 2), (5, 6)])
    frame = bfs(graph, 0)
    for unknown in ([9], [2, 9], [5]):
        with pytest.raises(UnknownVertexError, match=f"{unknown[-1]}. No path leads there"):
            paths(frame, unknown)
    assert paths(frame, [2, 5], graph=graph)["target"].unique().tolist() == [2]
    with pytest.raises(UnknownVertexError, match="not in the graph: 9"):
        paths(frame, [2, 9], graph=graph)
    for wrong in ("2", ["2"], 2, [2.0], [True], [10**30], None):
        with pytest.raises(UnknownVertexError, match="target"):
            paths(frame, wrong)
    for wrong in (None, [1], {"vertex": [1]}, pd.Series([1])):
        with pytest.raises(InputError, match="frame must be a data frame"):
            paths(wrong, [2])
    mixed = frame.assign(predecessor=["a", "b", "c"])
    with pytest.raises(InputError, match="ids of one type"):
        paths(mixed, [2])


ROWS = [row[:2] for row in NAMED["power law"]]
WEIGHTED = build(ROWS, weights_for(ROWS, 1, "floats"))


@pytest.mark.parametrize("keeps_attrs", [True, False])
def test_correct_result_with_a_limit_is_certified(keeps_attrs):
    cases = [
        (bfs, bfs_many, {"max_depth": 2}),
        (sssp, sssp_many, {"cutoff": 3.5}),
        (bfs, bfs_many, {"max_depth": 0}),
    ]
    for one, many, limit in cases:
        for frame in (
            one(WEIGHTED, 0, **limit),
            many(WEIGHTED, [0, 5], result="predecessors", **limit),
        ):
            given = {}
            if not keeps_attrs:
                frame.attrs.clear()
                given = limit
            certificate = certify(WEIGHTED, frame, **given)
            assert certificate.valid
            assert certificate.limit == next(iter(limit.values()))
            assert 1 <= len(frame) < 2 * WEIGHTED.n_vertices


def test_the_limit_excuses_nothing_within_it():
    frame = bfs(WEIGHTED, 0, max_depth=2)
    lost = frame[frame["distance"] < 2].copy()
    assert not certify(WEIGHTED, lost).valid
    changed = frame.copy()
    changed.loc[changed["distance"] == 1, "distance"] = 2
    assert not certify(WEIGHTED, changed).valid
    frame.attrs.clear()
    doubted = certify(WEIGHTED, frame)
    assert not doubted.valid
    assert "give certify the same" in doubted.failures["C3"]


def test_incomplete_frames_are_refused_and_not_called_wrong():
    with pytest.raises(InputError, match="targets="):
        certify(WEIGHTED, bfs(WEIGHTED, 0, targets=[5]))
    negative = build([(0, 1), (1, 2)], [5, -4])
    with pytest.raises(InputError, match="cutoff"):
        certify(negative, sssp(negative, 0, cutoff=2))
    with pytest.raises(InputError, match="max_depth is 3, and result was made with 2"):
        certify(WEIGHTED, bfs(WEIGHTED, 0, max_depth=2), max_depth=3)
    with pytest.raises(InputError, match="cutoff is for weighted"):
        certify(WEIGHTED, bfs(WEIGHTED, 0), cutoff=3)
    with pytest.raises(InputError, match="max_depth is for hops"):
        certify(WEIGHTED, sssp(WEIGHTED, 0), max_depth=3)
    with pytest.raises(InputError, match="no weights"):
        certify(build(ROWS), sssp(WEIGHTED, 0))
    with pytest.raises(InputError, match="no weights"):
        certify(build(ROWS), plan_sssp(WEIGHTED)(0))
    with pytest.raises(InputError, match="frames"):
        certify(WEIGHTED, plan_bfs(WEIGHTED)(0), max_depth=3)


def test_a_frame_that_a_file_has_widened_is_certified():
    graph = build(ROWS, weights_for(ROWS, 1, "floats"), weight_type="float32")
    wide = sssp(graph, 0).astype({"distance": np.float64})
    assert certify(graph, wide).valid
    wide.loc[wide["distance"].argmax(), "distance"] *= 1 + 1e-9
    with pytest.raises(InputError, match="float64"):
        certify(graph, wide)


def test_values_are_shown_short_and_on_one_line():
    assert describe("\x1b[31m" + "x" * 500).isprintable()
    for value in (10**5000, "x" * 10**6, list(range(10**5)), object(), "\ud800", np.zeros(10**6)):
        assert len(describe(value)) < 100
    assert ids("sources", []) == []
    assert as_array("src", []).dtype == np.int64


@pytest.mark.parametrize(
    "column",
    [pa.array([3, 1], pa.uint8()), pa.array([0, 3, 1])[1:], pa.chunked_array([[3], [], [1]])],
)
def test_integer_ids_of_arrow_are_no_list_of_python_integers(column):
    found = ids("sources", column)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [3, 1]
