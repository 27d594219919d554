"""Truncated and damaged files are refused by name, with no other error and never as a smaller graph."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import EdgeListError
from kepler_traverse.formats import files
from tests.support.edge_files import read, refusal, write

ROWS = pa.table(
    {"src": range(5000), "dst": range(1, 5001), "weight": [i % 97 for i in range(5000)]}
)


def stream(sink):
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=500)


def arrow_file(sink):
    with pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=500)


def csv_text():
    return "src,dst,weight\n" + "".join(f"{u},{u + 1},{u % 97}\n" for u in range(5000))


WHOLE = {
    "e.parquet": lambda path: pq.write_table(ROWS, path, row_group_size=1000),
    "e.arrow": lambda path: arrow_file(str(path)),
    "e.arrows": lambda path: stream(str(path)),
    "e.csv.gz": lambda path: write(path, gzip.compress(csv_text().encode())),
    "e.csv.bz2": lambda path: write(path, bz2.compress(csv_text().encode())),
    "e.csv.zst": lambda path: write(
        path, pa.Codec("zstd").compress(csv_text().encode()).to_pybytes()
    ),
    "e.txt.gz": lambda path: write(
        path, gzip.compress(csv_text().partition("\n")[2].replace(",", " ").encode())
    ),
    "e.parquet.gz": lambda path: pq.write_table(
        ROWS, pa.output_stream(str(path), compression="gzip")
    ),
}


def cuts(size, extra):
    """Positions to cut at: the first and last bytes, and some between."""
    return sorted(
        {
            0,
            1,
            3,
            4,
            8,
            12,
            size - 1,
            size - 4,
            size - 8,
            size - 9,
            *np.linspace(13, size - 10, 25).astype(int).tolist(),
            *extra,
        }
    )


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_cut_short_anywhere_is_refused(tmp_path, name):
    path = tmp_path / name
    WHOLE[name](path)
    assert read(path).report.rows == 5000
    whole = path.read_bytes()
    # Where a stream may end between two batches, it would read as a shorter one.
    ends = (
        [i for i in range(8, len(whole), 8) if whole[i : i + 4] == b"\xff\xff\xff\xff"]
        if name.endswith("arrows")
        else []
    )
    for cut in cuts(len(whole), ends):
        assert str(path) in refusal(write(path, whole[:cut]))


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_file_never_gives_another_kind_of_error(tmp_path, name):
    path = tmp_path / name
    WHOLE[name](path)
    whole = path.read_bytes()
    rng = np.random.default_rng(7)
    refusals = []
    for i in range(40):
        damaged = bytearray(whole)
        # Half of them at the beginning or the end, where formats have metadata. In the data any integer may be a weight.
        at = int(rng.integers(len(whole))) if i % 2 else int(rng.integers(-300, 300)) % len(whole)
        damaged[at : at + 4] = rng.bytes(4)
        write(path, bytes(damaged))
        try:
            read(path)  # bytes that only change a value are indistinguishable from data
        except EdgeListError as error:
            refusals.append(str(error))
    assert refusals
    assert all(str(path) in message for message in refusals)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_refused(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(ROWS, path, compression="none", use_dictionary=False, write_page_checksum=True)
    damaged = bytearray(path.read_bytes())
    damaged[1000] ^= 1
    assert "checksum" in refusal(write(path, bytes(damaged))).lower()


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_a_file_that_unpacks_without_end_is_refused_and_not_read_to_the_end(
    ending, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "_UNPACKED_FREELY", 1 << 20)
    monkeypatch.setattr(files, "_MAX_RATIO", 100)
    for name, line in {
        "a.csv": b"1,2\n",
        "b.csv": b"\n",
        "c.txt": b"# x\n",
        "d.parquet": b"\0\0\0\0",
    }.items():
        path = tmp_path / f"{name}{ending}"
        kind = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}[ending]
        with pa.CompressedOutputStream(str(path), kind) as file:
            file.write(line * ((1 << 21) // len(line)))
        with pytest.raises(
            EdgeListError, match=f"{name}{ending}: it unpacks to more than 100 times its size"
        ):
            read_graph(path, device="cpu")
