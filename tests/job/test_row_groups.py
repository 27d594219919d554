"""Part files are those that pyarrow writes: the same rows, types, statistics and pages, whatever was encoded before."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.output import row_groups
from pipelines.output.part_file import plain
from pipelines.output.row_groups import Encoding, RowGroupWriter, release_encoded_columns
from pipelines.output.thrift import Reader, encoded

OPTIONS = {"version": "2.6", "compression": "zstd", "compression_level": 1, "write_page_checksum": True}
ENCODING = Encoding(OPTIONS, dictionary=("source",), statistics=("source", "vertex"), repeated=("vertex",))


def rows(source, vertex, distance):
    zeros = pa.array(np.zeros(len(vertex), np.int8))
    column = pa.DictionaryArray.from_arrays(zeros, pa.array([source]))
    return pa.table({"source": column, "vertex": vertex, "distance": distance})


def schema_of(table):
    types = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return pa.schema(list(zip(table.schema.names, types, strict=True)), {"what": "rows"})


def whole_in(groups):
    """The columns of integers that are written by differences."""
    return tuple(f.name for f in schema_of(groups[0]) if pa.types.is_integer(f.type) and f.name != "source")


def bytes_of(groups, encoding=ENCODING):
    file = io.BytesIO()
    writer = RowGroupWriter(file, schema_of(groups[0]), encoding._replace(differences=whole_in(groups)))
    for group in groups:
        writer.write(group)
    writer.close({b"footer": "a note"})
    return file.getvalue()


def written(groups, encoding=ENCODING):
    return pq.ParquetFile(io.BytesIO(bytes_of(groups, encoding)), page_checksum_verification=True)


def by_pyarrow(groups):
    file = io.BytesIO()
    options = {"use_dictionary": ["source"], "write_statistics": ["source", "vertex"]}
    options["column_encoding"] = dict.fromkeys(whole_in(groups), "DELTA_BINARY_PACKED")
    with pq.ParquetWriter(file, schema_of(groups[0]), **OPTIONS, **options) as writer:
        for group in groups:
            writer.write_table(plain(group), row_group_size=max(group.num_rows, 1))
        writer.add_key_value_metadata({b"footer": "a note"})
    return pq.ParquetFile(io.BytesIO(file.getvalue()))


INTEGERS = pa.array(np.arange(50_000, dtype=np.int32) * 3)
SOME = pa.array(np.arange(0, 50_000, 7, dtype=np.int32))
STRINGS = pa.array([f"town {i}" for i in range(30_000)])
CASES = {
    "one source per group": [rows(s, INTEGERS, pa.array(np.arange(50_000) % (s + 5))) for s in (7, 3, 9)],
    "floats": [rows(s, INTEGERS, pa.array(np.arange(50_000) / 7)) for s in (7, 3)],
    "other vertices": [rows(1, INTEGERS, INTEGERS), rows(2, SOME, SOME), rows(3, INTEGERS, INTEGERS)],
    "several sources per group": [
        pa.concat_tables([rows(s, v, v) for s, v in ((5, SOME), (2, INTEGERS), (8, SOME.slice(0, 0)))]),
        pa.concat_tables([rows(s, v, v) for s, v in ((6, SOME), (1, INTEGERS), (4, SOME))]),
        pa.concat_tables([rows(s, v, v) for s, v in ((16, SOME), (11, INTEGERS), (14, SOME))]),
    ],
    "strings": [rows(s, STRINGS, pa.array(np.arange(30_000))) for s in ("home", "a longer name", "work")],
    "a source twice": [pa.concat_tables([rows(5, SOME, SOME), rows(5, SOME, SOME)])],
    "nulls": [rows(1, SOME, pa.array([None, 3] * (len(SOME) // 2) + [None] * (len(SOME) % 2), pa.int32()))],
    "slices": [rows(1, INTEGERS.slice(5, 90), SOME.slice(0, 90)), rows(2, INTEGERS.slice(9, 90), SOME.slice(0, 90))],
    "no dictionary arrays": [pa.table({"source": SOME, "vertex": SOME, "distance": SOME})] * 2,
}


@pytest.fixture(autouse=True)
def _nothing_encoded():
    release_encoded_columns()
    yield
    release_encoded_columns()


@pytest.mark.parametrize("case", CASES)
def test_the_file_is_that_of_pyarrow(case):
    for _ in range(2):  # the second time with what was kept of the first
        ours, theirs = written(CASES[case]), by_pyarrow(CASES[case])
        assert ours.schema_arrow.equals(theirs.schema_arrow, check_metadata=True)
        assert ours.metadata.metadata[b"footer"] == b"a note"
        assert ours.num_row_groups == theirs.num_row_groups
        assert ours.read().equals(theirs.read())
        for i in range(ours.num_row_groups):
            assert ours.read_row_group(i).equals(theirs.read_row_group(i))
            for c in range(3):
                one, other = (file.metadata.row_group(i).column(c).to_dict() for file in (ours, theirs))
                where = [key for key in one if "offset" in key or "total" in key]
                assert {k: v for k, v in one.items() if k not in where} == {k: v for k, v in other.items() if k not in where}


def test_an_array_at_the_address_of_an_earlier_one_is_encoded():
    def last_vertex(offset):
        memory[:] = np.arange(1000) + offset
        return written([rows(1, pa.array(memory), SOME.slice(0, 1000))]).read()["vertex"][-1].as_py()

    memory = np.zeros(1000, np.int32)
    assert last_vertex(0) == 999
    release_encoded_columns()  # arrays are immutable: only a pool that lends their memory again may write to it
    assert last_vertex(5) == 1004


def test_the_pages_of_vertices_are_encoded_once(monkeypatch):
    encode, names = row_groups._encoded, []

    def counted(column, field, options):
        names.append((field.name, len(column)))
        return encode(column, field, options)

    monkeypatch.setattr(row_groups, "_encoded", counted)
    written(CASES["one source per group"])
    assert names.count(("vertex", 50_000)) == 1
    assert names.count(("distance", 50_000)) == 3
    assert names.count(("source", 50_000)) == 1
    assert names.count(("source", 1)) == 1


def test_long_names_are_written_without_keeping_a_dictionary():
    names = ["x" * 300_000, "y" * 300_000]
    groups = [pa.concat_tables([rows(name, SOME.slice(0, 3), SOME.slice(0, 3)) for name in names])]
    assert written(groups).read()["source"].to_pylist() == [name for name in names for _ in range(3)]


def test_row_groups_split_more_rows_than_one_takes(monkeypatch):
    monkeypatch.setattr(row_groups, "_MAX_ROWS", 20_000)
    file = written(CASES["one source per group"][:1])
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [20_000, 20_000, 10_000]
    assert file.read().equals(plain(CASES["one source per group"][0]).replace_schema_metadata(file.schema_arrow.metadata))


def test_a_dictionary_array_is_refused_where_no_dictionary_is_written():
    with pytest.raises(ValueError, match="without a dictionary"):
        written(CASES["floats"], ENCODING._replace(dictionary=()))


def test_a_footer_is_read_and_written_again():
    data = by_pyarrow(CASES["strings"])
    file = io.BytesIO()
    with pq.ParquetWriter(file, data.schema_arrow) as writer:
        writer.write_table(data.read())
    footer = file.getvalue()[-8 - int.from_bytes(file.getvalue()[-8:-4], "little") : -8]
    assert encoded(Reader(footer).struct()) == footer
    with pytest.raises(IndexError):
        Reader(footer[:-1]).struct()


def test_duckdb_reads_the_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    groups = CASES["several sources per group"]
    (tmp_path / "part.parquet").write_bytes(bytes_of(groups))
    table = duckdb.sql(f"select * from '{tmp_path / 'part.parquet'}'").to_arrow_table()
    assert table.to_pydict() == plain(pa.concat_tables(groups)).to_pydict()
    where = f"select count(*), max(vertex) from '{tmp_path / 'part.parquet'}' where source = 11"
    assert duckdb.sql(where).fetchall() == [(50_000, 149_997)]
