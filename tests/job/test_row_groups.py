"""Part files are those that pyarrow writes: the same rows, types, statistics and pages, whatever was encoded before."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kepler_traverse.formats.thrift import Reader, encoded
from pipelines.output import row_groups
from pipelines.output.part_file import expand_sources
from pipelines.output.row_groups import Encoding, RowGroupWriter, release_encoded_columns

OPTIONS = {
    "version": "2.6",
    "compression": "zstd",
    "compression_level": 1,
    "write_page_checksum": True,
}
ENCODING = Encoding(
    OPTIONS, dictionary=("source",), repeated=("vertex",), order=("source", "vertex")
)


def rows(source, vertex, distance):
    zeros = pa.array(np.zeros(len(vertex), np.int8))
    column = pa.DictionaryArray.from_arrays(zeros, pa.array([source]))
    return pa.table({"source": column, "vertex": vertex, "distance": distance})


def schema_of(table):
    types = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return pa.schema(list(zip(table.schema.names, types, strict=True)), {"what": "rows"})


def whole_in(groups):
    """The columns of integers that are written by differences."""
    return tuple(
        f.name for f in schema_of(groups[0]) if pa.types.is_integer(f.type) and f.name != "source"
    )


def bytes_of(groups, encoding=ENCODING):
    file = io.BytesIO()
    writer = RowGroupWriter(
        file, schema_of(groups[0]), encoding._replace(differences=whole_in(groups))
    )
    for group in groups:
        writer.write(group)
    writer.close({b"footer": "a note"})
    return file.getvalue()


def written(groups, encoding=ENCODING):
    return pq.ParquetFile(io.BytesIO(bytes_of(groups, encoding)), page_checksum_verification=True)


def by_pyarrow(groups):
    file = io.BytesIO()
    options = {"use_dictionary": ["source"], "write_page_index": True}
    options["column_encoding"] = dict.fromkeys(whole_in(groups), "DELTA_BINARY_PACKED")
    with pq.ParquetWriter(file, schema_of(groups[0]), **OPTIONS, **options) as writer:
        for group in groups:
            writer.write_table(expand_sources(group), row_group_size=max(group.num_rows, 1))
        writer.add_key_value_metadata({b"footer": "a note"})
    return pq.ParquetFile(io.BytesIO(file.getvalue()))


INTEGERS = pa.array(np.arange(50_000, dtype=np.int32) * 3)
SOME = pa.array(np.arange(0, 50_000, 7, dtype=np.int32))
STRINGS = pa.array([f"town {i:05}" for i in range(30_000)])
CASES = {
    "one source per group": [
        rows(s, INTEGERS, pa.array(np.arange(50_000) % (s + 5))) for s in (7, 3, 9)
    ],
    "floats": [rows(s, INTEGERS, pa.array(np.arange(50_000) / 7)) for s in (7, 3)],
    "other vertices": [
        rows(1, INTEGERS, INTEGERS),
        rows(2, SOME, SOME),
        rows(3, INTEGERS, INTEGERS),
    ],
    "several sources per group": [
        pa.concat_tables(
            [rows(s, v, v) for s, v in ((5, SOME), (2, INTEGERS), (8, SOME.slice(0, 0)))]
        ),
        pa.concat_tables([rows(s, v, v) for s, v in ((6, SOME), (1, INTEGERS), (4, SOME))]),
        pa.concat_tables([rows(s, v, v) for s, v in ((16, SOME), (11, INTEGERS), (14, SOME))]),
    ],
    "strings": [
        rows(s, STRINGS, pa.array(np.arange(30_000))) for s in ("home", "a longer name", "work")
    ],
    "a source twice": [pa.concat_tables([rows(5, SOME, SOME), rows(5, SOME, SOME)])],
    "nulls": [
        rows(1, SOME, pa.array([None, 3] * (len(SOME) // 2) + [None] * (len(SOME) % 2), pa.int32()))
    ],
    "slices": [
        rows(1, INTEGERS.slice(5, 90), SOME.slice(0, 90)),
        rows(2, INTEGERS.slice(9, 90), SOME.slice(0, 90)),
    ],
    **{
        str(kind): [
            rows(pa.scalar(largest, kind), SOME.cast(pa.uint64()), SOME),
            rows(pa.scalar(1, kind), SOME.cast(pa.uint64()), SOME),
        ]
        for kind, largest in (
            (pa.int8(), -128),
            (pa.uint8(), 255),
            (pa.uint32(), 2**32 - 1),
            (pa.uint64(), 2**64 - 1),
        )
    },
    "no dictionary arrays": [pa.table({"source": SOME, "vertex": SOME, "distance": SOME})] * 2,
}


def page_index(data):
    """Yield, per column of each row group, the first row of each page, and its smallest and largest value."""
    footer = row_groups._read_footer(pa.py_buffer(data))
    columns = [entry for group in footer[4][1].values for entry in group[1][1].values]
    for entry in columns:
        values, places = Reader(data, entry[6][1]).struct(), Reader(data, entry[4][1]).struct()
        pages = [tuple(value for _, value in place.values()) for place in places[1][1].values]
        for offset, size, _ in pages:
            header = Reader(data, offset)
            assert header.struct()[3][1] == size - (header.at - offset)
        assert pages[0][0] == entry[3][1][9][1]
        yield [row for *_, row in pages], values[2][1].values, values[3][1].values


def is_sorted(rows, names):
    return not names or rows.select(names).equals(
        rows.select(names).sort_by([(name, "ascending") for name in names])
    )


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
                one, other = (
                    file.metadata.row_group(i).column(c).to_dict() for file in (ours, theirs)
                )
                where = [key for key in one if "offset" in key or "total" in key]
                assert {k: v for k, v in one.items() if k not in where} == {
                    k: v for k, v in other.items() if k not in where
                }
                assert one["statistics"]["has_min_max"]


@pytest.mark.parametrize("case", CASES)
def test_page_index_and_order_are_those_of_the_rows(case, monkeypatch):
    for group_bytes in (2**22, 2**19):
        monkeypatch.setattr(row_groups, "GROUP_BYTES", group_bytes)
        data = bytes_of(CASES[case])
        file, pages = pq.ParquetFile(io.BytesIO(data)), page_index(data)
        claims = []
        for i in range(file.num_row_groups):
            rows, claimed = file.read_row_group(i), file.metadata.row_group(i).sorting_columns
            claims.append([rows.column_names[each.column_index] for each in claimed])
            assert is_sorted(rows, claims[-1])
            for values in rows.columns:
                first, least, largest = next(pages)
                assert first[0] == 0
                for begin, end, low, high in zip(
                    first, [*first[1:], len(values)], least, largest, strict=True
                ):
                    bounds = pc.min_max(values[begin:end])
                    for bound, stored in (("min", low), ("max", high)):
                        expected = bounds[bound].as_py()
                        is_text = isinstance(expected, str)
                        kind = None if is_text else values.type.to_pandas_dtype()
                        assert expected == (
                            stored.decode() if is_text else np.frombuffer(stored, kind)[0]
                        )
        assert (case in ("several sources per group", "a source twice")) == (claims[0] == [])


def test_readers_skip_row_groups_far_from_a_source(monkeypatch):
    """Where vertices with close numbers lie close to each other, as in road networks."""
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 2**14)
    groups = [rows(s, INTEGERS, pa.array(abs(np.arange(50_000) - 1_000 * s))) for s in (7, 30)]
    metadata = written(groups).metadata
    near = [
        metadata.row_group(i).column(2).statistics.min < 100 for i in range(metadata.num_row_groups)
    ]
    assert 0 < sum(near) * 10 < len(near)


def test_an_array_at_the_address_of_an_earlier_one_is_encoded():
    def last_vertex(offset):
        memory[:] = np.arange(1000) + offset
        return (
            written([rows(1, pa.array(memory), SOME.slice(0, 1000))]).read()["vertex"][-1].as_py()
        )

    memory = np.zeros(1000, np.int32)
    assert last_vertex(0) == 999
    # arrays are immutable: only a pool that lends their memory again may write to it
    release_encoded_columns()
    assert last_vertex(5) == 1004


def test_the_pages_of_vertices_are_encoded_once(monkeypatch):
    encode, names = row_groups._encode_by_pyarrow, []

    def counted(column, field, options):
        names.append((field.name, len(column)))
        return encode(column, field, options)

    monkeypatch.setattr(row_groups, "_encode_by_pyarrow", counted)
    written(CASES["one source per group"])
    assert names.count(("vertex", 50_000)) == 1
    assert names.count(("distance", 50_000)) == 3
    assert names.count(("source", 50_000)) == 1
    assert names.count(("source", 1)) == 1


def test_long_names_are_written_without_keeping_a_dictionary():
    names = ["x" * 300_000, "y" * 300_000]
    groups = [pa.concat_tables([rows(name, SOME.slice(0, 3), SOME.slice(0, 3)) for name in names])]
    assert written(groups).read()["source"].to_pylist() == [
        name for name in names for _ in range(3)
    ]


def test_row_groups_split_more_rows_than_one_takes(monkeypatch):
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 20_000 * 20)
    file = written(CASES["one source per group"][:1])
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [
        25_000,
        25_000,
    ]
    assert file.read().equals(
        expand_sources(CASES["one source per group"][0]).replace_schema_metadata(
            file.schema_arrow.metadata
        )
    )


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


def test_duckdb_and_polars_read_the_file(tmp_path):
    path, groups = str(tmp_path / "part.parquet"), CASES["several sources per group"]
    (tmp_path / "part.parquet").write_bytes(bytes_of(groups))
    all_rows = expand_sources(pa.concat_tables(groups)).to_pydict()
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"select * from '{path}'").to_arrow_table().to_pydict() == all_rows
    where = f"select count(*), max(vertex) from '{path}' where source = 11 and distance < 300"
    assert duckdb.sql(where).fetchall() == [(100, 297)]
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(path).to_dict(as_series=False) == all_rows
    found = (
        polars.scan_parquet(path)
        .filter((polars.col("source") == 11) & (polars.col("distance") < 300))
        .collect()
    )
    assert (found.height, found["vertex"].max()) == (100, 297)


@pytest.mark.gpu
def test_cudf_reads_the_file(tmp_path):
    cudf, path, groups = (
        pytest.importorskip("cudf"),
        str(tmp_path / "part.parquet"),
        CASES["several sources per group"],
    )
    (tmp_path / "part.parquet").write_bytes(bytes_of(groups))
    assert (
        cudf.read_parquet(path).to_arrow().to_pydict()
        == expand_sources(pa.concat_tables(groups)).to_pydict()
    )
    found = cudf.read_parquet(path, filters=[("source", "==", 11), ("distance", "<", 300)])
    assert (len(found), int(found["vertex"].max())) == (100, 297)
