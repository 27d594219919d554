"""Small files that stand for gigabytes are refused by name before the memory is allocated: under a cap of memory."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph
from kepler_traverse.errors import CapacityError, EdgeListError
from kepler_traverse.formats import sizes
from tests.support.edge_files import zstd
from tests.support.processes import ran

MIB = 1 << 20
ROWS = 20_000
LIMIT = 3 << 30  # bytes of address space, of which libraries take the half


def codes_of_long_text(values=1):
    codes = np.zeros(ROWS, np.int32)
    return pa.DictionaryArray.from_arrays(
        codes, pa.array([chr(97 + i) * MIB for i in range(values)])
    )


def short_text(n=ROWS):
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array(["y"]))


def views():
    """Views of one text, which is there once."""
    each = np.array(
        (MIB, b"xxxx", 0, 0),
        [("length", "<i4"), ("prefix", "S4"), ("buffer", "<i4"), ("offset", "<i4")],
    )
    return pa.Array.from_buffers(
        pa.string_view(),
        ROWS,
        [None, pa.py_buffer(np.repeat(each, ROWS)), pa.py_buffer(b"x" * MIB)],
    )


def parquet(table, **options):
    def write(path):
        pq.write_table(table(), path, compression="zstd", **options)

    return ".parquet", write


def arrow(table, compression="zstd", stream=False):
    def write(path):
        data, options = table(), pa.ipc.IpcWriteOptions(compression=compression)
        new = pa.ipc.new_stream if stream else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as file, new(file, data.schema, options=options) as writer:
            writer.write_table(data)

    return ".arrow", write


def plain_strings(table):
    """Without the schema of Arrow, so that a column is text as in files of other writers."""

    def write(path):
        pq.write_table(table(), path, compression="zstd", store_schema=False)

    return ".parquet", write


def runs(n=400_000_000):
    """Row groups of the same integers, by runs: some bytes each."""

    def write(path):
        piece = pa.table(
            {"src": np.zeros(20_000_000, np.int64), "dst": np.ones(20_000_000, np.int64)}
        )
        with pq.ParquetWriter(path, piece.schema, compression="zstd") as writer:
            for _ in range(n // 20_000_000):
                writer.write_table(piece, row_group_size=20_000_000)

    return ".parquet", write


def shared_beginnings(path):
    texts = pa.array(["x" * 100_000 + str(i) for i in range(4000)])
    table = pa.table({"src": texts, "dst": pa.array(["y"] * 4000)})
    pq.write_table(
        table,
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"src": "DELTA_BYTE_ARRAY"},
    )


BOMBS = {
    "a dictionary of Arrow in Parquet": parquet(
        lambda: pa.table({"src": codes_of_long_text(), "dst": short_text()})
    ),
    "a dictionary of Parquet": plain_strings(
        lambda: pa.table({"src": codes_of_long_text(), "dst": short_text()})
    ),
    "a dictionary whose first values are short": plain_strings(
        lambda: pa.table(
            {
                "src": pa.DictionaryArray.from_arrays(
                    np.r_[np.zeros(ROWS // 2, np.int32), np.ones(ROWS // 2, np.int32)],
                    pa.array(["a", "b" * (MIB // 2)]),
                ),
                "dst": short_text(),
            }
        )
    ),
    "texts with one beginning": (".parquet", shared_beginnings),
    "runs in Parquet": runs(),
    "a dictionary in Arrow": arrow(
        lambda: pa.table({"src": codes_of_long_text(), "dst": short_text()})
    ),
    "a dictionary in a stream": arrow(
        lambda: pa.table({"src": codes_of_long_text(), "dst": short_text()}), stream=True
    ),
    "views in Arrow": arrow(
        lambda: pa.table({"src": views(), "dst": short_text()}), compression=None
    ),
    "zeros in Arrow": arrow(
        lambda: pa.table({"src": np.zeros(1 << 27, np.int64), "dst": np.zeros(1 << 27, np.int64)})
    ),
    "zeros in a stream": arrow(
        lambda: pa.table({"src": np.zeros(1 << 27, np.int64), "dst": np.zeros(1 << 27, np.int64)}),
        stream=True,
    ),
    "text in zstd": (
        ".csv.zst",
        lambda path: path.write_bytes(zstd(b"src,dst\n" + b"1,2\n" * (1 << 23))),
    ),
    "Parquet in zstd": (
        ".parquet.zst",
        lambda path: path.write_bytes(zstd(b"PAR1" + bytes(1 << 30))),
    ),
}
LONG = (
    "texts with one beginning",
    "runs in Parquet",
    "zeros in Arrow",
    "zeros in a stream",
    "Parquet in zstd",
)

CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from kepler_traverse import read_graph
from kepler_traverse.errors import InputError
for path in sys.argv[2:]:
    try:
        read_graph(path, device="cpu")
    except InputError as error:
        print("refused:", error)
    else:
        print("read:", path)
"""


def outcomes(paths, limit=LIMIT):
    child = ran([sys.executable, "-c", CHILD, limit, *paths])
    assert child.returncode == 0, child.stderr[-2000:]
    return child.stdout.splitlines()


@pytest.mark.parametrize(
    "names", [sorted(set(BOMBS) - set(LONG)), pytest.param(LONG, marks=pytest.mark.exhaustive)]
)
def test_a_small_file_that_stands_for_gigabytes_is_refused(tmp_path, names):
    paths = []
    for at, name in enumerate(names):
        ending, write = BOMBS[name]
        paths.append(tmp_path / f"{at}{ending}")
        write(paths[-1])
        assert paths[-1].stat().st_size < 4 * MIB, name
    for name, path, said in zip(names, paths, outcomes(paths), strict=True):
        assert said.startswith(f"refused: {path}: "), (name, said)
        assert "unpack" in said, (name, said)


def test_large_texts_that_are_there_are_read(tmp_path):
    """Long ids, a dictionary with one long value among short ones, and one row after another."""
    texts = ["x" * 1000 + str(i) for i in range(200)]
    src, dst = pa.array(texts * 50), pa.array((texts[1:] + texts[:1]) * 50)
    for options in (
        {},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    ):
        pq.write_table(
            pa.table({"src": src, "dst": dst}),
            tmp_path / "e.parquet",
            compression="zstd",
            **options,
        )
        assert read_graph(tmp_path / "e.parquet", device="cpu").n_vertices == 200
    for kind in (src.dictionary_encode(), src.cast(pa.string_view())):
        table = pa.table({"src": kind, "dst": dst})
        pyarrow.feather.write_feather(table, tmp_path / "e.feather")
        assert read_graph(tmp_path / "e.feather", device="cpu").n_vertices == 200
        assert graph_from_edges(table).n_vertices == 200


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_compressed_arrow_files_are_read(tmp_path, compression):
    r = np.random.default_rng(0)
    table = pa.table(
        {"src": r.integers(0, 99, 5000), "dst": r.integers(0, 99, 5000), "name": ["a", None] * 2500}
    )
    pyarrow.feather.write_feather(
        table, tmp_path / "e.feather", compression=compression, chunksize=700
    )
    assert read_graph(tmp_path / "e.feather", device="cpu").report.rows == 5000


@pytest.mark.parametrize("what", ["vertices", "only_vertices"])
def test_files_of_ids_are_bounded_as_well(tmp_path, what):
    BOMBS["a dictionary of Parquet"][1](tmp_path / "v.parquet")
    names = pq.read_table(tmp_path / "v.parquet", columns=["dst"]).rename_columns(["vertex"])
    pq.write_table(
        names.append_column("long", codes_of_long_text()),
        tmp_path / "more.parquet",
        store_schema=False,
    )
    table = pa.table({"vertex": codes_of_long_text()})
    pq.write_table(table, tmp_path / "v.parquet", compression="zstd", store_schema=False)
    (tmp_path / "e.csv").write_text("src,dst\ny,z\n")
    with pytest.raises(EdgeListError, match=r"v\.parquet: its .* unpack to 19\.5 GiB"):
        read_graph(tmp_path / "e.csv", **{what: tmp_path / "v.parquet"})
    assert read_graph(tmp_path / "e.csv", vertices=tmp_path / "more.parquet").n_vertices == 2


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_memory_that_is_not_there_is_said(tmp_path, monkeypatch, kind):
    """Of a file that unpacks by no absurd factor."""
    values = np.random.default_rng(0).integers(0, 2**62, 300_000)
    column = pa.array(values) if kind == "numbers" else pa.array(values.astype(str))
    pq.write_table(pa.table({"src": column, "dst": column}), tmp_path / "e.parquet")
    monkeypatch.setattr(sizes, "available_memory", lambda _: 4 * MIB)
    with pytest.raises(
        CapacityError, match=r"e\.parquet: its rows unpack to .* and 4\.0 MiB of memory are left"
    ):
        read_graph(tmp_path / "e.parquet", device="cpu")
