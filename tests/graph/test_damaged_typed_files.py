"""Parquet and Arrow files with changed bytes are refused by name, and end no process.

pyarrow's objects of columns end the process where a footer contradicts itself. Such footers are read and written again by
the code that checks them, with one field changed.
"""

from __future__ import annotations

import contextlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import EdgeListError, InputError
from kepler_traverse.formats import parquet_fields as fields
from kepler_traverse.formats.ids import read_ids, read_vertex_table
from kepler_traverse.formats.parquet_footer import parse_footer, read_chunks, read_footer
from kepler_traverse.formats.thrift import BINARY, DOUBLE, I32, I64, LIST, Items, Reader, encoded
from pipelines.output.delta_log import stats_by_column
from pipelines.output.store import Store
from pipelines.run.given_table import read_given_table

ROWS = pa.table(
    {"vertex": ["a", "b", "c", "d"], "dst": ["b", "c", "d", "a"], "weight": [1, 2, 3, 4]}
)


def column(footer, group=0, number=0):
    entry = footer[fields.FILE_GROUPS][1].values[group][fields.GROUP_COLUMNS][1].values[number]
    return entry[fields.ENTRY_METADATA][1]


def change(field, value, group=0, number=0):
    def apply(footer):
        column(footer, group, number)[field] = value

    return apply


def columns_of_group(footer):
    return footer[fields.FILE_GROUPS][1].values[0][fields.GROUP_COLUMNS][1].values


def histogram(footer):
    sizes = column(footer)[fields.SIZE_STATISTICS][1]
    sizes[fields.LEVELS] = (LIST, Items(I64, [1, 1, 1, 1]))


def bytes_of_text_for_numbers(footer):
    column(footer, 0, 2)[fields.SIZE_STATISTICS][1][1] = (I64, 5)


# The bounds can be read in spite of these.
READABLE = {"a histogram of other levels", "bytes of text of a column of numbers"}
DAMAGES = {
    "another type": change(fields.TYPE, (I32, 2)),
    "another type in the second group": change(fields.TYPE, (I32, 1), 1),
    "an unknown type": change(fields.TYPE, (I32, 77)),
    "fewer columns": lambda footer: columns_of_group(footer).pop(),
    "more columns": lambda footer: columns_of_group(footer).append(columns_of_group(footer)[0]),
    "values below none": change(fields.N_VALUES, (I64, -1)),
    "bytes below none": change(fields.UNCOMPRESSED, (I64, -5)),
    "a histogram of other levels": histogram,
    "bytes of text of a column of numbers": bytes_of_text_for_numbers,
    "no metadata": lambda footer: columns_of_group(footer)[0].pop(fields.ENTRY_METADATA),
}


def forged(path, apply):
    """Write the rows, and their footer again after a change."""
    sink = io.BytesIO()
    pq.write_table(ROWS, sink, row_group_size=2)
    footer = parse_footer(read_footer(sink))
    data = sink.getvalue()
    apply(footer)
    again = encoded(footer)
    size = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -8 - size] + again + len(again).to_bytes(4, "little") + b"PAR1")
    return path


DOORS = {
    "edges": lambda path: read_graph(path, src_column="vertex", dst_column="dst"),
    "edges in files": lambda path: read_graph(
        path, src_column="vertex", dst_column="dst", scratch=path.parent, build_memory=1 << 22
    ),
    "vertices": lambda path: read_vertex_table(path, ["weight", "dst"]),
    "a table": lambda path: read_given_table(str(path), "sources", lambda names: (names[0],)),
    "ids": lambda path: read_ids(path, "vertices"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_contradictory_footer_is_refused(tmp_path, damage, door):
    path = forged(tmp_path / "e.parquet", DAMAGES[damage])
    may_read = contextlib.nullcontext()
    if (damage, door) != ("bytes of text of a column of numbers", "ids"):  # which read another one
        may_read = pytest.raises(InputError, match=r"e\.parquet.*cannot be read")
    with may_read:
        DOORS[door](path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_facts_of_a_table_are_read_without_objects_of_pyarrow(tmp_path, damage):
    forged(tmp_path / "e.parquet", DAMAGES[damage])
    store = Store(tmp_path)
    if damage in READABLE:
        facts = stats_by_column(store, "e.parquet")
        assert facts["weight"][:3] == (1, 4, 0)
        assert facts["vertex"][:3] == ("a", "d", 0)
    else:
        with pytest.raises(pa.ArrowInvalid, match="footer"):
            stats_by_column(store, "e.parquet")


@pytest.mark.parametrize("door", DOORS)
def test_a_changed_bit_of_a_page_with_a_checksum_is_refused(tmp_path, door):
    path = tmp_path / "e.parquet"
    pq.write_table(ROWS, path, compression="none", use_dictionary=False, write_page_checksum=True)
    DOORS[door](path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"a\1\0\0\0b", b"q\1\0\0\0b", 1))
    assert path.read_bytes() != data
    with pytest.raises(InputError, match=r"e\.parquet.*(CRC|checksum)"):
        DOORS[door](path)


def test_a_changed_byte_of_a_message_of_arrow_is_refused_or_means_nothing(tmp_path):
    path = tmp_path / "e.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, ROWS.schema, options=options) as writer,
    ):
        writer.write_table(ROWS)
    right = DOORS["edges"](path).fingerprint
    data = path.read_bytes()
    begin = data.index(b"\xff\xff\xff\xff", 12)  # of the message of the rows
    for at in range(begin, begin + 120):
        path.write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :])
        with contextlib.suppress(EdgeListError):
            assert DOORS["edges"](path).fingerprint == right


def test_columns_are_described_as_pyarrow_does(tmp_path):
    nested = pa.array([[1], [2, 3], [], None])
    table = ROWS.append_column("nested", nested).append_column("half", pa.array([0.5, None] * 2))
    encodings = {"vertex": "DELTA_BYTE_ARRAY", "dst": "PLAIN", "weight": "DELTA_BINARY_PACKED"}
    path = tmp_path / "e.parquet"
    pq.write_table(
        table, path, row_group_size=3, use_dictionary=["half"], column_encoding=encodings
    )
    facts = pq.read_metadata(path)
    with path.open("rb") as file:
        footer = read_footer(file)
    names = [*table.column_names, "nested.list.element"]
    for wanted in (names.__contains__, names[1::2].__contains__):
        found = read_chunks(footer, wanted)
        assert len(found) == facts.num_row_groups
        for group, chunks in enumerate(found):
            known = [facts.row_group(group).column(number) for number in range(facts.num_columns)]
            expected = [each for each in known if wanted(each.path_in_schema)]
            for chunk, each in zip(chunks, expected, strict=True):
                assert chunk[:4] == (
                    each.path_in_schema,
                    each.physical_type,
                    each.num_values,
                    each.total_uncompressed_size,
                )
                assert chunk.is_delta == any("DELTA" in name for name in each.encodings)
                assert chunk.has_dictionary == each.has_dictionary_page
                assert chunk.n_nulls == each.statistics.null_count


def test_a_list_that_does_not_end_is_refused():
    for kind in (DOUBLE, BINARY, I64):
        data = bytes([0x19, 0xF0 | kind, *[0xFF] * 8, 0x7F])  # 2^63 items
        with pytest.raises(IndexError):
            Reader(data).struct()
        reader = Reader(data)
        (number, field) = next(reader.fields())
        assert number == 1
        with pytest.raises(IndexError):
            reader.skip(field)
