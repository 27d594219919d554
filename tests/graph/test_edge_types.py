"""Ids and weights keep their types and values in every file format."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import EdgeListError, graph_from_edges
from tests.support import tiers
from tests.support.edge_files import DST, EXPECTED, SRC, TEXTS, WEIGHT, lines, read, table, write

# --- ids ---------------------------------------------------------------------------------------------------------------

ID_COLUMNS = {
    "negative": np.array([-5, -1, 3, -5], np.int64),
    "beyond 32 bits": np.array([2**31, 2**40, -(2**62), 7], np.int64),
    "the ends of int64": np.array([-(2**63), 2**63 - 1, 0, 1], np.int64),
    "above 2^63": np.array([2**63, 2**64 - 1, 0, 5], np.uint64),
    "int8": np.array([-128, 127, 0, 1], np.int8),
    "uint32": np.array([0, 2**32 - 1, 1, 2], np.uint32),
}


@pytest.mark.parametrize("name", ID_COLUMNS)
def test_integer_ids_of_any_type_come_back_as_they_were(tmp_path, name):
    ids = ID_COLUMNS[name]
    expected = graph_from_edges(ids[:-1], ids[1:])
    pq.write_table(table(ids[:-1], ids[1:], None), tmp_path / "edges.parquet")
    text = "".join(f"{u},{v}\n" for u, v in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True))
    for graph in (
        read(tmp_path / "edges.parquet"),
        read(write(tmp_path / "edges.csv", text), id_type=ids.dtype.name),
        read(write(tmp_path / "edges.txt", text.replace(",", " ")), id_type=ids.dtype.name),
    ):
        assert graph.ids.dtype == ids.dtype
        assert graph.ids.tolist() == sorted(set(ids.tolist()))
        assert graph.fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_string_ids_are_ordered_by_their_bytes(tmp_path, kind):
    src, dst = ["b", "ä", "zebra", "A"], ["A", "b", "ä", "\U0001f600"]
    path = tmp_path / "edges.arrow"
    with pa.ipc.new_file(path, pa.schema([("src", kind), ("dst", kind)])) as writer:
        writer.write_table(
            pa.table({"src": pa.array(src).cast(kind), "dst": pa.array(dst).cast(kind)})
        )
    graph = read(path)
    names = sorted({*src, *dst}, key=str.encode)
    assert graph.ids.to_pylist() == names
    assert graph.to_numbers(["ä", "A"]).tolist() == [names.index("ä"), names.index("A")]
    text = "src,dst\n" + "".join(f"{u},{v}\n" for u, v in zip(src, dst, strict=True))
    assert read(write(tmp_path / "edges.csv", text)).fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    ("first", "kind"),
    [("1", "int64"), ("-1", "int64"), ("007", "string"), ("0x7", "string"), ("+7", "string")],
)
def test_id_type_of_a_text_follows_from_its_first_row(tmp_path, first, kind):
    graph = read(write(tmp_path / "edges.csv", f"src,dst\n{first},12\n12,13\n"))
    assert graph._vertex_ids.kind == kind


def test_integers_are_taken_as_strings_on_request(tmp_path):
    pq.write_table(table(), tmp_path / "edges.parquet")
    graph = read(tmp_path / "edges.parquet", id_type="string")
    assert graph.ids.to_pylist() == ["1", "2", "3", "4", "5"]
    for name in ("edges.csv", "edges.gr", "edges.mtx"):
        assert (
            read(write(tmp_path / name, TEXTS[name]), id_type="string").fingerprint
            == graph.fingerprint
        )


def test_strings_are_taken_as_integers_on_request(tmp_path):
    pq.write_table(
        table(pa.array(SRC).cast("string"), pa.array(DST).cast("string")),
        tmp_path / "edges.parquet",
    )
    assert read(tmp_path / "edges.parquet", id_type="int64").fingerprint == EXPECTED.fingerprint
    padded = "src,dst\n007, +8\n -7,9 \n"
    assert read(write(tmp_path / "a.csv", padded), id_type="int64").ids.tolist() == [-7, 7, 8, 9]


@pytest.mark.parametrize("more", [[9, 1], np.array([9, 1], np.int32)])
def test_isolated_vertices_may_be_given(tmp_path, more):
    assert read(write(tmp_path / "e.csv", lines()), vertices=more).ids.tolist() == [
        1,
        2,
        3,
        4,
        5,
        9,
    ]
    pq.write_table(table(SRC.astype(np.int32), DST.astype(np.int32)), tmp_path / "e.parquet")
    graph = read(tmp_path / "e.parquet", vertices=more)
    assert graph.ids.dtype == np.int32
    assert graph.ids.tolist() == [1, 2, 3, 4, 5, 9]


def test_isolated_vertices_may_be_strings(tmp_path):
    graph = read(write(tmp_path / "e.csv", "src,dst\nb,c\n"), vertices=["a", "b"])
    assert graph.ids.to_pylist() == ["a", "b", "c"]
    assert graph.report.isolated_vertices == 1


@pytest.mark.parametrize("name", ["e.gr", "e.mtx"])
def test_formats_that_number_their_vertices_keep_isolated_ones(tmp_path, name):
    text = {
        "e.gr": "p sp 9 1\na 2 7 3\n",
        "e.mtx": "%%MatrixMarket matrix coordinate integer general\n9 9 1\n2 7 3\n",
    }[name]
    path = write(tmp_path / name, text)
    assert read(path).ids.tolist() == list(range(1, 10))
    assert read(path, id_type="int16").ids.dtype == np.int16
    assert read(path, vertices=[20]).ids.tolist() == [*range(1, 10), 20]
    assert len(read(path, id_type="string").ids) == 9
    path.write_text(text.replace("9", "300"))
    with pytest.raises(EdgeListError, match=rf"{name}: ids up to 300 do not fit id_type='int8'"):
        read(path, id_type="int8")


# --- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "source", "kind"),
    [
        (["1", "2"], "int64", "float32"),
        (["1", str(2**24 + 1)], "int64", "float64"),
        (["1", "2.5"], "float64", "float64"),
        (["2.5", "1"], "float64", "float64"),
        (["1e3", "-0.0"], "float64", "float64"),
        ([" 1", "+2 "], "int64", "float32"),
        (["0.1", ".3"], "float64", "float64"),
    ],
)
def test_text_weights_are_integers_if_all_are_else_floats(tmp_path, texts, source, kind):
    graph = read(write(tmp_path / "e.csv", f"src,dst,weight\n1,2,{texts[0]}\n2,3,{texts[1]}\n"))
    assert (graph.report.weight_source, graph.weights.dtype.name) == (source, kind)
    assert graph.weights.tolist() == [float(text) for text in texts]


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64])
def test_stored_weights_keep_their_values(tmp_path, kind):
    pq.write_table(table(weight=WEIGHT.astype(kind)), tmp_path / "e.parquet")
    graph = read(tmp_path / "e.parquet", weight_type="float32")
    assert (
        graph.fingerprint
        == graph_from_edges(SRC, DST, WEIGHT.astype(kind), weight_type="float32").fingerprint
    )
    assert graph.weights.dtype == np.float32


def test_weights_on_request_are_float64(tmp_path):
    assert (
        read(write(tmp_path / "e.csv", lines()), weight_type="float64").weights.dtype == np.float64
    )


@pytest.mark.parametrize("column", ["src", "dst", "weight"])
def test_a_missing_value_in_a_later_block_is_named_with_its_row_in_the_file(tmp_path, column):
    row = {"src": "1", "dst": "2", "weight": "3"}
    text = "src,dst,weight\n" + "1,2,3\n" * 100_000 + ",".join((row | {column: ""}).values()) + "\n"
    with pytest.raises(
        EdgeListError, match=f"e.csv, row 100000: {column} column '{column}' has 1 missing value"
    ) as error:
        read(write(tmp_path / "e.csv", text))
    assert error.value.row == 100_000


def test_late_decimal_converts_earlier_blocks_to_floats(tmp_path):
    rows = [(i, i + 1, i % 100) for i in range(150_000)]
    text = (
        "src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in rows) + "150000,150001,0.5\n"
    )
    graph = read(write(tmp_path / "e.csv", text))
    assert graph.report.weight_source == "float64"
    assert graph.weights[:3].tolist() == [0.0, 1.0, 2.0]
    assert graph.weights[-1] == 0.5
    blanks = write(tmp_path / "e.txt", "# head\n" + text.partition("\n")[2].replace(",", "  "))
    assert read(blanks).fingerprint == graph.fingerprint


# --- any edge list -----------------------------------------------------------------------------------------------------

integer_ids = st.integers(-(2**63), 2**63 - 1)
# No quotes, controls or surrogates: how to write those is the CSV writer's business, not ours.
string_ids = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=5)


@settings(max_examples=tiers.examples(60))
@given(data=st.data(), ids=st.sampled_from(["int64", "string"]), directed=st.booleans())
def test_edge_list_is_the_same_from_csv_and_parquet(tmp_path_factory, data, ids, directed):
    one = integer_ids if ids == "int64" else string_ids
    kind = data.draw(st.sampled_from(["none", "integers", "floats"]))
    weight = {"none": st.none(), "integers": st.integers(0, 2**53), "floats": st.floats(0, 1e300)}[
        kind
    ]
    rows = data.draw(st.lists(st.tuples(one, one, weight), min_size=1, max_size=30))
    if kind == "floats":
        rows.append((*rows[0][:2], 0.5))  # as text, floats that are all whole numbers are integers
    columns = {"src": [r[0] for r in rows], "dst": [r[1] for r in rows]}
    if kind != "none":
        columns["weight"] = pa.array(
            [r[2] for r in rows], pa.int64() if kind == "integers" else pa.float64()
        )
    edges = pa.table(columns)
    folder = tmp_path_factory.mktemp("edges")
    pq.write_table(edges, folder / "e.parquet", row_group_size=7)
    pyarrow.csv.write_csv(edges, folder / "e.csv")
    stored = read(folder / "e.parquet", directed=directed, weight_type="float64")
    text = read(folder / "e.csv", directed=directed, weight_type="float64", id_type=ids)
    assert stored.fingerprint == text.fingerprint
