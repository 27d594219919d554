"""A part that states false bounds, places or an order is found: readers skip by them, and pyarrow does not.

As others could write it: the manifest fits the changed part.
"""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse.formats import parquet_fields as parquet
from kepler_traverse.formats.thrift import (
    BINARY,
    FALSE,
    I32,
    I64,
    LIST,
    TRUE,
    Items,
    Reader,
    encoded,
)
from pipelines import run_job
from pipelines.output.parquet_statements import Statements
from pipelines.verify import prove_output
from tests.support.jobs import manifest_of, seal

PART = "part-000000.parquet"
SOURCE, VERTEX, DISTANCE = range(3)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """A run whose part has several pages per column, and its edge list."""
    folder = tmp_path_factory.mktemp("statements")
    n = 240
    ring = np.arange(n)
    edges = {"src": ring, "dst": (ring + 1) % n, "weight": 1 + ring % 7}
    pq.write_table(pa.table(edges), folder / "e.parquet")
    run_job(
        folder / "e.parquet",
        sources=[*range(120, 200), *range(120)],  # neither rise nor fall by page
        directed=False,
        algorithm="sssp",
        batch_size=200,
        output=folder / "out",
        report=False,
        device="cpu",
    )
    return folder / "out", str(folder / "e.parquet")


class Forged:
    """The footer and the indexes of a part, to be changed and written again."""

    def __init__(self, path):
        self.path = path
        data = path.read_bytes()
        size = int.from_bytes(data[-8:-4], "little")
        self.data = data[: -8 - size]
        self.footer = Reader(data[-8 - size : -8]).struct()
        self.group = self.footer[parquet.FILE_GROUPS][1].values[0]

    def entry(self, column):
        return self.group[parquet.GROUP_COLUMNS][1].values[column]

    def column(self, column):
        return self.entry(column)[parquet.ENTRY_METADATA][1]

    def statistics(self, column):
        return self.column(column)[parquet.STATISTICS][1]

    def change_index(self, column, which, change):
        """Put a changed index behind all others, and let the footer point to it."""
        at, size = parquet.INDEXES[which]
        entry = self.entry(column)
        begin = entry[at][1]
        index = Reader(self.data[begin : begin + entry[size][1]]).struct()
        change(index)
        changed = encoded(index)
        entry[at] = (I64, len(self.data))
        entry[size] = (I32, len(changed))
        self.data += changed

    def write(self):
        footer = encoded(self.footer)
        self.path.write_bytes(self.data + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def number(value):
    return int(value).to_bytes(8, "little")


def put(struct, field, kind, value):
    struct[field] = (kind, value)


def change_item(struct, field, at, value):
    kind, items = struct[field]
    values = list(items.values)
    values[at] = value
    struct[field] = (kind, Items(items.kind, values))


def of_values(field, at, value, column=VERTEX):
    """Change an item of the values of pages."""
    return lambda part: part.change_index(
        column, 1, lambda index: change_item(index, field, at, value)
    )


def of_places(field, value):
    """Change a field of the place of the second page."""

    def change(index):
        index[parquet.PAGES][1].values[1][field] = (I64, value)

    return lambda part: part.change_index(VERTEX, 0, change)


def swap_names(part):
    first = part.column(SOURCE)
    second = part.column(VERTEX)
    first[parquet.PATH], second[parquet.PATH] = second[parquet.PATH], first[parquet.PATH]


FORGERIES = {
    **{
        f"bound {field} of column {column}": lambda part, field=field, column=column: put(
            part.statistics(column), field, BINARY, number(3)
        )
        for field in parquet.MAX_AND_MIN
        for column in (SOURCE, VERTEX, DISTANCE)
    },
    "nulls of a column": lambda part: put(part.statistics(VERTEX), parquet.NULL_COUNT, I64, 5),
    "distinct values": lambda part: put(part.statistics(VERTEX), parquet.DISTINCT_COUNT, I64, 1),
    "a bound of another size": lambda part: put(part.statistics(VERTEX), 5, BINARY, b"\1"),
    "min of a page": of_values(parquet.MINIMA, 1, number(9)),
    "max of a page": of_values(parquet.MAXIMA, 0, number(9)),
    "min of a page of sources": of_values(parquet.MINIMA, 0, number(90), SOURCE),
    "max of a page of distances": of_values(parquet.MAXIMA, 1, number(1), DISTANCE),
    "nulls of a page": of_values(parquet.NULL_COUNTS, 0, 7),
    "a page of nulls": of_values(parquet.NULL_PAGES, 0, TRUE),
    "pages in order": lambda part: part.change_index(
        SOURCE, 1, lambda index: put(index, parquet.BOUNDARY_ORDER, I32, 1)
    ),
    "pages in falling order": lambda part: part.change_index(
        SOURCE, 1, lambda index: put(index, parquet.BOUNDARY_ORDER, I32, 2)
    ),
    "first row of a page": of_places(3, 19_000),
    "place of a page": of_places(1, 4),
    "size of a page": of_places(2, 90),
    "place of the index": lambda part: put(part.entry(VERTEX), 6, I64, 4),
    "an index beyond the file": lambda part: put(part.entry(VERTEX), 6, I64, 2**50),
    "a Bloom filter": lambda part: put(part.column(VERTEX), 14, I64, 4),
    "another file": lambda part: put(part.entry(VERTEX), 1, BINARY, b"other.parquet"),
    "names of columns": swap_names,
    "values of a column": lambda part: put(part.column(VERTEX), parquet.N_VALUES, I64, 9),
    "first byte of a row group": lambda part: put(part.group, parquet.GROUP_OFFSET, I64, 2**40),
    "bytes of a row group": lambda part: put(part.group, parquet.GROUP_COMPRESSED, I64, 1),
    "rows of the file": lambda part: put(part.footer, parquet.FILE_ROWS, I64, 10**6),
    "encodings of pages": lambda part: change_item(
        part.column(VERTEX),
        parquet.ENCODING_STATS,
        0,
        {1: (I32, 0), 2: (I32, 8), 3: (I32, 3)},
    ),
    "order by distance": lambda part: put(
        part.group,
        parquet.GROUP_SORTING,
        LIST,
        Items(12, [{1: (I32, DISTANCE), 2: (FALSE, False), 3: (FALSE, False)}]),
    ),
}


def verified(output, tmp_path, forge):
    folder, edges = output
    there = tmp_path / "out"
    shutil.copytree(folder, there)
    part = Forged(there / PART)
    forge(part)
    part.write()
    data = part.path.read_bytes()
    manifest = manifest_of(there)
    manifest["parts"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    seal(there, manifest)
    return prove_output(there, [edges], "cpu").faults


def test_a_part_that_is_written_again_unchanged_is_right(output, tmp_path):
    def rewrite(part):
        for column in (SOURCE, VERTEX, DISTANCE):
            for which in (0, 1):
                part.change_index(column, which, lambda _index: None)

    assert verified(output, tmp_path, rewrite) == []
    pages = pq.ParquetFile(output[0] / PART).metadata.row_group(0).num_rows / 20_000
    assert pages > 2, "more than one page"


def test_a_footer_with_another_bit_is_no_raw_error(tmp_path):
    # Some of them pyarrow reads without a word.
    path = tmp_path / "part.parquet"
    rows = pa.table({"source": [1], "vertex": [2]})
    pq.write_table(rows, path, store_schema=False)
    whole = path.read_bytes()
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    n_found = 0
    for bit in range(8 * begin, 8 * begin + 64):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            n_found += bool(Statements(path).first_fault(0, rows))
        except pa.ArrowInvalid:
            n_found += 1
    assert n_found > 32, "others change the version and the names of the schema"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_false_statement_is_found(output, tmp_path, name):
    faults = verified(output, tmp_path, FORGERIES[name])
    assert faults, "it was passed"
    assert {fault.kind for fault in faults} <= {"statistics", "damaged part"}
    assert {fault.file for fault in faults} == {PART}
