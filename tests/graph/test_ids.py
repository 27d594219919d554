"""Ids are taken literally: in edge lists, in files of sources, targets and vertices, on a command line, in a fingerprint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph
from kepler_traverse.errors import InputError, UnknownVertexError
from kepler_traverse.formats.ids import read_ids, read_vertex_table
from kepler_traverse.graph.ids import VertexIds
from pipelines.run import question
from tests.support.edge_files import read, refusal, write

NUMBERS = graph_from_edges(np.array([10, 20, 30]), np.array([20, 30, 40]))


def words(*names, tmp_path):
    pq.write_table(pa.table({"src": names[:-1], "dst": names[1:]}), tmp_path / "words.parquet")
    return read(tmp_path / "words.parquet")


# --- files of ids --------------------------------------------------------------------------------------------------------


def ids_in(graph, path, what="sources"):
    return question.read_id_file(graph, str(path), what)


def test_comment_is_a_line_that_begins_with_the_sign(tmp_path):
    graph = words("node", "node#1", "http://x/#frag", "a b", tmp_path=tmp_path)
    path = write(tmp_path / "s.txt", "# all of them\nnode#1\n\n  http://x/#frag\r\na b\n")
    assert ids_in(graph, path) == ["node#1", "http://x/#frag", "a b"]


def test_a_comment_may_follow_an_integer(tmp_path):
    assert ids_in(NUMBERS, write(tmp_path / "s.txt", "\ufeff10 # home\n20\n#30\n7\n")) == [
        10,
        20,
        7,
    ]


@pytest.mark.parametrize("line", ["#tag", " a", "b "])
def test_a_line_that_could_mean_two_things_is_refused(tmp_path, line):
    graph = words("a", "b", "#tag", " a", "b ", tmp_path=tmp_path)
    with pytest.raises(
        InputError,
        match=r"s\.txt, line 2 of the file of sources: .* is a vertex, but could also mean",
    ):
        ids_in(graph, write(tmp_path / "s.txt", f"a\n{line}\n"))


def test_blank_of_a_unique_name_belongs_to_the_id(tmp_path):
    assert ids_in(words(" a", "b", tmp_path=tmp_path), write(tmp_path / "s.txt", " a\n b \n")) == [
        " a",
        "b",
    ]


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\x0b", "\x1c"])
def test_ids_keep_other_trailing_signs(tmp_path, sign):
    graph = words(f"a{sign}b", "a", "b", tmp_path=tmp_path)
    assert ids_in(graph, write(tmp_path / "s.txt", f"a{sign}b\n")) == [f"a{sign}b"]


@pytest.mark.parametrize(
    "text",
    [
        "1_0",
        "١٠",
        "1e1",
        "10.0",
        "0x0a",
        "ten",
        "1 0",
        "१०",
        "²",
        "+",
        "-",
        "−10",
        "007",
        "+20",
        "-0",
    ],
)
def test_non_integer_is_not_an_id_of_a_graph_of_integers(tmp_path, text):
    with pytest.raises(
        InputError, match=r"line 1 of the file of sources: .* the ids of this graph are integers"
    ):
        ids_in(NUMBERS, write(tmp_path / "s.txt", f"{text}\n"))
    pq.write_table(pa.table({"id": [text]}), tmp_path / "s.parquet")
    with pytest.raises(
        InputError, match=r"row 0 of the file of sources: .* the ids of this graph are integers"
    ):
        ids_in(NUMBERS, tmp_path / "s.parquet")
    with pytest.raises(
        InputError, match=r"source .* is not a vertex: the ids of this graph are integers"
    ):
        question.convert_ids(NUMBERS, [text], "source")


def test_a_typed_column_of_the_other_type_holds_no_id(tmp_path):
    names = words("10", "20", "0102", tmp_path=tmp_path)
    for graph, column, kind in (
        (NUMBERS, pa.array(["10", "20"]), "integers"),
        (names, pa.array([10, 20]), "strings"),
    ):
        pq.write_table(pa.table({"id": column}), tmp_path / "s.parquet")
        with pytest.raises(
            InputError, match=f"row 0 of the file of sources: .* the ids of this graph are {kind}"
        ):
            ids_in(graph, tmp_path / "s.parquet")


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([10.0]), "10.0 is no vertex id"),
        (pa.array([True]), "True is no vertex id"),
        (pa.array([b"a"]), "b'a' is no vertex id"),
        (pa.array([10]).cast(pa.decimal128(20)), "is no vertex id"),
        (pa.array([10, None]), "row 1 of the file of sources is null"),
        (pa.array([], pa.int64()), "is empty"),
    ],
)
def test_a_parquet_column_of_another_type_is_refused(tmp_path, column, says):
    pq.write_table(pa.table({"id": column}), tmp_path / "s.parquet")
    for graph in (NUMBERS, words("10", "a", tmp_path=tmp_path)):
        with pytest.raises(InputError, match=r"s\.parquet") as caught:
            ids_in(graph, tmp_path / "s.parquet")
        assert says in str(caught.value)


@pytest.mark.parametrize(
    ("names", "what", "found"),
    [
        (["anything"], "sources", 0),
        (["x", "source"], "sources", 1),
        (["x", "Source_ID"], "sources", 1),
        (["source", "target"], "targets", 1),
        (["x", "id"], "vertices", 1),
        (["x", "y"], "sources", None),
        (["source", "vertex"], "sources", None),
        ([], "sources", None),
    ],
)
def test_the_column_of_the_ids_is_the_only_one_or_known_by_its_name(tmp_path, names, what, found):
    pq.write_table(
        pa.table({name: [10 * (at + 1)] for at, name in enumerate(names)}), tmp_path / "s"
    )
    if found is None:
        with pytest.raises(
            InputError, match=f"not sure which column of the file of {what} holds the ids"
        ):
            read_ids(tmp_path / "s", what)
    else:
        assert ids_in(NUMBERS, tmp_path / "s", what) == [10 * (found + 1)]


@pytest.mark.parametrize(
    "data",
    ["10\n".encode("utf-16"), "10\n".encode("utf-16-le"), b"1\xff0\n", b"PAR1", b"", b"# c\n"],
)
def test_a_file_of_ids_that_holds_none_is_refused_by_name(tmp_path, data):
    with pytest.raises(InputError, match=r"s\.txt: the file of sources (cannot be read|is empty)"):
        ids_in(NUMBERS, write(tmp_path / "s.txt", data))


def test_a_file_of_ids_that_is_not_there_is_refused_by_name(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(
            InputError, match=r"the file of targets cannot be read: (No such file|it is a folder)"
        ):
            ids_in(NUMBERS, path, "targets")


# --- further vertices ----------------------------------------------------------------------------------------------------


def test_further_vertices_come_from_a_file(tmp_path):
    edges = write(tmp_path / "e.csv", "src,dst\n1,2\n")
    more = write(tmp_path / "v.txt", "# alone\n7\n1\n")
    for path in (more, str(more)):
        assert read(edges, vertices=path).ids.tolist() == [1, 2, 7]
    assert read(edges, vertices=more, id_type="string").ids.to_pylist() == ["1", "2", "7"]
    pq.write_table(pa.table({"vertex": [9], "x": [1]}), tmp_path / "v.parquet")
    assert read(edges, vertices=tmp_path / "v.parquet").ids.tolist() == [1, 2, 9]
    with pytest.raises(
        InputError, match=r"v\.txt, line 1 of the file of vertices: 'a' is not a vertex"
    ):
        read(edges, vertices=write(tmp_path / "v.txt", "a\n"))


# --- edge lists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n01 2 5\n2 +1 6\n"),
        ("e.gr", "p sp 2 2\na 01 2 5\na 2 +1 6\n"),
    ],
)
def test_numbered_vertices_are_numbers_however_they_are_written(tmp_path, name, text):
    path = write(tmp_path / name, text)
    assert read(path).ids.tolist() == [1, 2]
    assert read(path, id_type="string").ids.to_pylist() == ["1", "2"]


def test_signed_ids_that_are_not_negative_go_with_any_unsigned_ones(tmp_path):
    huge = 2**63 + 5
    pq.write_table(
        pa.table({"src": pa.array([1, 2], pa.int32()), "dst": pa.array([huge, 1], pa.uint64())}),
        tmp_path / "e.parquet",
    )
    graph = read(tmp_path / "e.parquet")
    assert (graph.ids.dtype, graph.ids.tolist()) == (np.uint64, [1, 2, huge])


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_integer_weights_that_meet_floats_of_another_file_are_not_rounded(tmp_path, kind):
    ends = {"src": [1, 2], "dst": [2, 3]}
    pq.write_table(pa.table(ends | {"weight": [0.5, 1.5]}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table(ends | {"weight": pa.array([2**60, 2**62 + 1], kind)}), tmp_path / "b.parquet"
    )
    message = refusal(tmp_path)
    assert (
        f"{tmp_path / 'b.parquet'}, row 1: weight column 'weight' has the integer 4611686018427387905"
        in message
    )
    top = 2**63 - 1 if kind == pa.int64() else 2**64 - 1
    pq.write_table(
        pa.table(ends | {"weight": pa.array([2**60, top], kind)}), tmp_path / "b.parquet"
    )
    assert f"row 1: weight column 'weight' has the integer {top}" in refusal(tmp_path)
    pq.write_table(
        pa.table(ends | {"weight": pa.array([2**60, 2**62], kind)}), tmp_path / "b.parquet"
    )
    assert read(tmp_path, weight_type="float64").report.weight_source == "float64"


# --- fingerprints --------------------------------------------------------------------------------------------------------

LISTS = [
    ["a\0b", "c"],
    ["a", "b\0c"],
    ["a\0", "bc"],
    ["a", "\0bc"],
    ["ab", "c\0"],
    ["", "abc"],
    ["a", "bc"],
    ["ab", "c"],
    ["", "a\0bc"],
    ["é", "b"],
    ["e\u0301", "b"],
]


def test_graphs_of_other_names_have_other_fingerprints():
    graph = graph_from_edges(np.array([0]), np.array([1]))
    prints = {replace(graph, ids=pa.array(names)).fingerprint for names in LISTS}
    assert len(prints) == len(LISTS)


def test_a_fingerprint_does_not_depend_on_how_names_are_stored():
    graph = graph_from_edges(np.array([0]), np.array([1]))
    names = pa.array(["x", "a", "bc", "y"])
    kinds = [names.slice(1, 2), names.cast(pa.large_string()).slice(1, 2), pa.array(["a", "bc"])]
    assert len({replace(graph, ids=ids).fingerprint for ids in kinds}) == 1


# --- unknown ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (17, "Near 17 are 10 and 20."),
        (5, "Near 5 is 10."),
        (99, "Near 99 is 40."),
        (2**80, f"Near {2**80} is 40."),
        (-(2**80), f"Near -{2**80} is 10."),
    ],
)
def test_an_unknown_integer_comes_with_its_neighbors(wanted, says):
    with pytest.raises(UnknownVertexError) as caught:
        NUMBERS.to_numbers([wanted], "target")
    assert f"1 target is not in the graph: {wanted}. {says} Take ids" in str(caught.value)


def test_an_unknown_id_that_comes_again_is_explained_once():
    with pytest.raises(UnknownVertexError) as caught:
        NUMBERS.to_numbers([17, 17, 5], "target")
    explained = "17, 17, 5. Near 17 are 10 and 20. Near 5 is 10. Take ids"
    assert f"3 targets are not in the graph: {explained}" in str(caught.value)


@pytest.mark.parametrize("n_more", [0, 5000])
@pytest.mark.parametrize(
    ("wanted", "near"), [("home", "Home"), (" Work", "Work"), ("Schol", "School"), ("HOME", "Home")]
)
def test_an_unknown_name_comes_with_one_that_looks_alike(tmp_path, wanted, near, n_more):
    graph = words("Home", "Work", "School", *(f"{i:05d}" for i in range(n_more)), tmp_path=tmp_path)
    with pytest.raises(UnknownVertexError) as caught:
        graph.to_numbers([wanted])
    assert f"Near {wanted!r} is {near!r}." in str(caught.value)


def test_messages_shorten_long_ids(tmp_path):
    graph = words("a" * 5000, "b" * 150, tmp_path=tmp_path)
    with pytest.raises(UnknownVertexError) as caught:
        graph.to_numbers(["c" * 5000, "b" * 149, "d" * 5000])
    assert "Near 'bbb" in str(caught.value)
    assert len(str(caught.value)) < 700


def test_an_unknown_name_that_is_like_no_other_comes_alone(tmp_path):
    with pytest.raises(UnknownVertexError, match=r"not in the graph: 'xyz'\. Take ids that occur"):
        words("Home", "Work", tmp_path=tmp_path).to_numbers(["xyz"])


@pytest.mark.parametrize("count", [1, 100])
def test_a_name_that_no_text_can_hold_is_unknown(tmp_path, count):
    with pytest.raises(
        UnknownVertexError, match=rf"{count} sources? (is|are) not in the graph: '\\udc80'"
    ):
        words("Home", "Work", tmp_path=tmp_path).to_numbers(count * ["\udc80"])


def test_a_csv_of_vertices_with_column_names_is_a_table(tmp_path):
    path = tmp_path / "vertices.csv"
    path.write_text("jobs,vertex\n3,007\n4,8\n")
    assert read_ids(path, "vertices").ids(strings=True) == ["007", "8"]
    with pytest.raises(InputError, match="row 0 of the file of vertices: '007' is not a vertex"):
        read_ids(path, "vertices").ids(strings=False)
    path.write_text("jobs,vertex\n3,7\n4,8\n")
    assert read_ids(path, "vertices").ids(strings=False) == [7, 8]
    ids, columns = read_vertex_table(path, ["jobs"])
    assert ids.ids(strings=False) == [7, 8]
    assert columns["jobs"].to_pylist() == [3, 4]
    graph = graph_from_files(tmp_path, path)
    assert graph.ids.tolist() == [1, 2, 7, 8]


def graph_from_files(folder, vertices):
    (folder / "edges.csv").write_text("src,dst\n1,2\n")
    return read_graph(folder / "edges.csv", vertices=str(vertices), device="cpu")


def test_a_csv_of_ids_alone_is_text(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("7\n8\n")
    assert read_ids(path, "vertices").ids(strings=False) == [7, 8]
    path.write_text("vertex,jobs\n7,1\n")
    with pytest.raises(InputError, match="is not a vertex"):  # only a file of vertices is a table
        read_ids(path, "sources").ids(strings=False)


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("vertex,jobs\n7,1\n", ["shops"], "no column of attributes 'shops'; it has 'jobs'"),
        ("vertex,jobs\n7,1\n", ["vertex"], "no column of attributes 'vertex'"),
        ("vertex,id,jobs\n7,8,1\n", ["jobs"], "it is not sure which column"),
        ("7\n8\n", ["jobs"], "attributes need a table"),
        ("vertex,jobs\n7,1\n8\n", ["jobs"], "cannot be read"),
    ],
)
def test_a_table_of_vertices_that_cannot_be_used_is_refused(tmp_path, text, names, message):
    path = tmp_path / "vertices.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_vertex_table(path, names)


@pytest.mark.parametrize(
    ("kind", "first"), [("int8", -128), ("uint8", 0), ("uint64", 2**63 - 3), ("int64", -(2**63))]
)
def test_ids_without_gaps_are_numbered_at_the_ends_of_their_type(kind, first):
    ids = [first + i for i in range(256 if kind.endswith("t8") else 5)]
    known = VertexIds(np.array(ids, kind))
    for given in (ids, np.array(ids, kind)):
        assert known.to_numbers(given, "target").tolist() == [*range(len(ids))]
    for unknown in (first - 1, ids[-1] + 1, 2**70, -(2**63) - 1):
        assert not known.contains(unknown)
