"""Bad edge lists: each gives one error that names the file and the fault, never another exception, never a graph."""

from __future__ import annotations

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import EdgeListError, InputError
from kepler_traverse.formats.files import DataFile, reading
from tests.support.bad_texts import TEXTS
from tests.support.edge_files import read, refusal, write


@pytest.mark.parametrize("what", TEXTS)
def test_a_bad_text_is_refused_by_name(tmp_path, what):
    name, text, options, says = TEXTS[what]
    message = refusal(write(tmp_path / name, text), **options)
    assert str(tmp_path / name) in message
    assert says in message


@pytest.mark.gpu
@pytest.mark.parametrize("what", TEXTS)
def test_a_bad_text_is_refused_with_the_same_words_on_the_gpu(tmp_path, what):
    name, text, options, _ = TEXTS[what]
    path = write(tmp_path / name, text)
    with pytest.raises(EdgeListError) as caught:
        read_graph(path, device="cuda", **options)
    assert str(caught.value) == refusal(path, **options)


def typed(src=None, dst=None, weight=None):
    columns = {
        "src": pa.array([1, 2, 3]) if src is None else src,
        "dst": pa.array([2, 3, 4]) if dst is None else dst,
    }
    return pa.table(columns if weight is None else {**columns, "weight": weight})


TABLES = {
    "no rows": (typed().slice(0, 0), {}, "no edges"),
    "one column": (pa.table({"a": [1]}), {}, "needs two columns"),
    "a missing column": (
        typed(),
        {"src_column": "u", "dst_column": "dst"},
        "no column 'u', which src_column names; it has columns 'src', 'dst'",
    ),
    "no weights": (typed(), {"weighted": True}, "no weight column"),
    "null ids": (
        typed(pa.array([1, None, None])),
        {},
        "row 1: src column 'src' has 2 missing values",
    ),
    "null string ids": (
        typed(pa.array(["a", "b", "c"]), pa.array(["a", "b", None])),
        {},
        "row 2: dst column 'dst'",
    ),
    "null dictionary ids": (
        typed(pa.array(["a", None, "c"]).dictionary_encode(), pa.array(["a", "b", "c"])),
        {},
        "row 1: src",
    ),
    "float ids": (
        typed(pa.array([1.0, 2.0, 3.5])),
        {},
        "has type double; vertex ids must be integers or strings",
    ),
    "bool ids": (typed(pa.array([True, False, True])), {}, "has type bool"),
    "decimal ids": (typed(pa.array([1, 2, 3]).cast(pa.decimal128(20))), {}, "has type decimal128"),
    "dates as ids": (typed(pa.array([1, 2, 3], pa.date32())), {}, "has type date32"),
    "binary ids": (typed(pa.array([b"a", b"b", b"c"])), {}, "has type binary"),
    "nested ids": (typed(pa.array([[1], [2], [3]])), {}, "has type list"),
    "all null ids": (typed(pa.nulls(3)), {}, "has type null"),
    "integer and string ends": (
        typed(dst=pa.array(["a", "b", "c"])),
        {},
        "one end is an integer, the other a string",
    ),
    "int64 and uint64 without a type for both": (
        typed(pa.array([-1, 2, 3]), pa.array([2**63, 1, 2], pa.uint64())),
        {},
        "no integer type holds both",
    ),
    "ids beyond the type asked for": (
        typed(pa.array([1, 2**40, 3])),
        {"id_type": "int32"},
        "does not fit id_type='int32' (Integer value 1099511627776 not in range: "
        "-2147483648 to 2147483647); take id_type='int64' or id_type='string'",
    ),
    "negative ids where none were declared": (
        typed(pa.array([1, -2, 3])),
        {"id_type": "uint64"},
        "; take id_type='int64' or id_type='string'",
    ),
    "ids beyond int64": (
        typed(pa.array([1, 2**63, 3], pa.uint64())),
        {"id_type": "int64"},
        "; take id_type='uint64' or id_type='string'",
    ),
    "words where integers were declared": (
        typed(pa.array(["1", "b", "c"]), pa.array(["1", "2", "3"])),
        {"id_type": "int64"},
        "row 1: src column 'src' has 'b'",
    ),
    "null weights": (
        typed(weight=pa.array([1.0, None, None])),
        {},
        "row 1: weight column 'weight' has 2 missing values",
    ),
    "bool weights": (
        typed(weight=pa.array([True, False, True])),
        {},
        "has type bool; weights must be",
    ),
    "string weights": (
        typed(weight=pa.array(["1", "2", "3"])),
        {},
        "has type string; weights must be",
    ),
    "decimal weights": (
        typed(weight=pa.array([1, 2, 3]).cast(pa.decimal128(20))),
        {},
        "has type decimal128",
    ),
    "nested weights": (typed(weight=pa.array([[1], [2], [3]])), {}, "has type list"),
    "NaN weights": (
        typed(weight=pa.array([1, np.nan, np.nan])),
        {},
        "row 1, column 'weight': the weight is NaN (2 such rows)",
    ),
    "infinite weights": (
        typed(weight=pa.array([1, 2, -np.inf])),
        {},
        "row 2, column 'weight': the weight is -inf",
    ),
    "inexact weights": (
        typed(weight=pa.array([1, -(2**60), 2])),
        {"weight_type": "float64"},
        "row 1, column 'weight': integer weight -1152921504606846976 is beyond 2^53",
    ),
}


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("what", TABLES)
def test_a_bad_column_is_refused_by_name(tmp_path, what, format):
    table, options, says = TABLES[what]
    path = tmp_path / f"e.{format}"
    if format == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    message = refusal(path, **options)
    assert str(path) in message
    assert says in message


@pytest.mark.gpu
@pytest.mark.parametrize("what", TABLES)
def test_a_bad_column_is_refused_with_the_same_words_on_the_gpu(tmp_path, what):
    table, options, _ = TABLES[what]
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(EdgeListError) as caught:
        read_graph(tmp_path / "e.parquet", device="cuda", **options)
    assert str(caught.value) == refusal(tmp_path / "e.parquet", **options)


def test_a_repeated_column_of_an_arrow_file_is_refused(tmp_path):
    table = pa.Table.from_arrays(
        [pa.array([1]), pa.array([2]), pa.array([3])], names=["src", "dst", "src"]
    )
    with pa.ipc.new_file(tmp_path / "e.arrow", table.schema) as writer:
        writer.write_table(table)
    assert "'src' occurs 2 times" in refusal(tmp_path / "e.arrow")


def test_a_file_that_may_not_be_read_is_not_said_to_be_damaged(tmp_path):
    file = DataFile(fsspec.filesystem("file"), str(write(tmp_path / "e.csv", "1,2\n")), "e.csv")
    with (
        pytest.raises(EdgeListError, match=r"^e\.csv: it may not be read \(permission denied\)$"),
        reading(file, "CSV"),
    ):
        raise PermissionError(13, "Permission denied")


# --- several files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["absent.csv", "absent/", "absent*.csv", "absent/*.parquet"])
def test_a_path_that_leads_nowhere_is_refused(tmp_path, name):
    message = refusal(str(tmp_path / name))
    assert str(tmp_path / name) in message
    assert "no such file" in message or "no file matches" in message


def test_a_folder_without_data_is_refused(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "part-0.parquet.tmp").write_text("unfinished")
    assert "holds no data files" in refusal(tmp_path)
    assert str(tmp_path) in refusal(tmp_path)


def test_empty_list_of_paths_is_refused():
    with pytest.raises(EdgeListError, match="no edge list was given"):
        read([])


def test_an_unknown_protocol_is_refused():
    with pytest.raises(EdgeListError, match="nowhere://x: cannot be opened"):
        read("nowhere://x")


def test_files_of_two_formats_are_refused(tmp_path):
    write(tmp_path / "a.csv", "1,2\n")
    pq.write_table(typed(), tmp_path / "b.parquet")
    assert "files of one format" in refusal(tmp_path)
    assert read(tmp_path, format="csv").n_edges == 1


@pytest.mark.parametrize("ending", ["gr", "mtx"])
def test_files_that_number_their_vertices_are_read_one_at_a_time(tmp_path, ending):
    paths = [write(tmp_path / f"{i}.{ending}", "p sp 1 0\n") for i in range(2)]
    assert "give one file, not 2" in refusal(paths)


@pytest.mark.parametrize("ending", ["gr", "mtx"])
def test_column_names_for_a_format_without_them_are_refused(tmp_path, ending):
    with pytest.raises(InputError, match="no column names; leave weight_column out"):
        read(write(tmp_path / f"e.{ending}", "p sp 1 0\n"), weight_column="w")


def pair(tmp_path, first, second):
    pq.write_table(first, tmp_path / "a.parquet")
    pq.write_table(second, tmp_path / "b.parquet")
    return refusal(tmp_path)


def test_the_one_file_that_lacks_a_column_is_named(tmp_path):
    message = pair(tmp_path, typed(weight=pa.array([1, 2, 3])), typed())
    assert (
        f"{tmp_path / 'b.parquet'}: the edges are in 'src' and 'dst' without a weight here"
        in message
    )
    assert f"'src' and 'dst' with the weight 'weight' in {tmp_path / 'a.parquet'}" in message


def test_a_file_of_another_type_is_named(tmp_path):
    message = pair(tmp_path, typed(), typed(pa.array(["a", "b", "c"]), pa.array(["a", "b", "c"])))
    assert str(tmp_path / "b.parquet") in message
    assert "has type string, but int64" in message


def test_files_whose_ids_no_type_holds_are_refused(tmp_path):
    huge = pa.array([2**63, 1, 2], pa.uint64())
    assert "2^63" in pair(tmp_path, typed(pa.array([-1, 1, 2])), typed(huge, huge))


def test_error_has_the_row_of_its_file_and_the_count_of_all_files(tmp_path):
    pq.write_table(typed(weight=pa.array([1.0, 2.0, 3.0])), tmp_path / "a.parquet")
    pq.write_table(typed(weight=pa.array([1.0, 2.0, np.nan])), tmp_path / "b.parquet")
    with pytest.raises(
        EdgeListError, match=r"b\.parquet, row 2, column 'weight': the weight is NaN"
    ) as caught:
        read(tmp_path)
    assert (caught.value.row, caught.value.column) == (5, "weight")
    pq.write_table(
        typed(src=pa.array([1, None, 3]), weight=pa.array([1.0, 2.0, 3.0])), tmp_path / "b.parquet"
    )
    with pytest.raises(EdgeListError, match=r"b\.parquet, row 1: src column 'src'") as caught:
        read(tmp_path)
    assert (caught.value.row, caught.value.column) == (4, "src")


def test_type_of_ids_is_that_of_the_first_row(tmp_path):
    write(tmp_path / "a.csv", "src,dst\n1,2\n")
    write(tmp_path / "b.csv", "src,dst\nx,y\n")
    assert f"{tmp_path / 'b.csv'}, row 0: src column 'src' has 'x'" in refusal(tmp_path)


def test_a_wrong_value_far_down_is_named_by_its_row(tmp_path):
    lines = [f"{i},{i + 1}\n" for i in range(200_000)]
    lines[150_000] = "150000,oops\n"
    assert "row 150000: dst column '1' has 'oops'" in refusal(
        write(tmp_path / "e.csv", "".join(lines)), header="no"
    )


# --- repairs that are counted, not refused ------------------------------------------------------------------------------
