"""One small graph as a file of every format, for the tests of the readers."""

import importlib
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph
from kepler_traverse.errors import EdgeListError

# Every vertex 1..5 has an edge, so formats that know n agree with those that do not; with a duplicate and a loop.
ROWS = [(1, 2, 5), (2, 3, 1), (3, 1, 7), (4, 4, 2), (3, 4, 0), (5, 1, 3), (1, 2, 4)]
SRC, DST, WEIGHT = (np.array(column, np.int64) for column in zip(*ROWS, strict=True))


def need(name):
    """Import an optional package; what it says about its own dependencies is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(name, exc_type=ImportError)
        return importlib.import_module(name)


def table(src=SRC, dst=DST, weight=WEIGHT, names=("src", "dst", "weight")):
    columns = [src, dst] if weight is None else [src, dst, weight]
    return pa.table(dict(zip(names, columns, strict=False)))


def lines(delimiter=",", header="src,dst,weight\n", end="\n"):
    return header.replace(",", delimiter) + "".join(
        f"{u}{delimiter}{v}{delimiter}{w}{end}" for u, v, w in ROWS
    )


def zstd(data):
    return pa.Codec("zstd").compress(data).to_pybytes()


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path, **options):
    return read_graph(path, device="cpu", **options)


def ipc(path, kind, compression=None):
    with kind(
        path, table().schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table(), max_chunksize=3)
    return path


def snap(blank="\t"):
    return "# Directed graph\n# Nodes: 5 Edges: 7\n\n" + lines(blank, header="")


def matrix_market():
    return (
        f"%%MatrixMarket matrix coordinate integer general\n% made for a test\n5 5 {len(ROWS)}\n"
        + lines(" ", header="")
    )


def dimacs():
    arcs = "".join(f"a {u} {v} {w}\n" for u, v, w in ROWS)
    return f"c made for a test\np sp 5 {len(ROWS)}\nc and on\n{arcs}"


EXPECTED = graph_from_edges(SRC, DST, WEIGHT)

TEXTS = {
    "edges.csv": lines(),
    "crlf.csv": lines(end="\r\n"),
    "bom.csv": "\ufeff" + lines(),
    "blank lines.csv": "\n\n" + lines(end="\n\n"),
    "no last line end.csv": lines().rstrip("\n"),
    "blanks.csv": lines(", ", header="src,dst,weight\n".replace(",", ",")).replace(
        "src, dst, weight", "src,dst,weight"
    ),
    "quoted.csv": "src,dst,weight\n" + "".join(f'"{u}","{v}","{w}"\n' for u, v, w in ROWS),
    "no header.csv": lines(header=""),
    "edges.tsv": lines("\t"),
    "semicolons.psv": lines("|"),
    "snap.txt": snap(),
    "snap blanks.txt": snap("  "),
    "snap mixed.edges": snap(" \t "),
    "snap crlf.el": snap().replace("\n", "\r\n"),
    "snap late comment.txt": snap() + "# the end\n",
    "edges.mtx": matrix_market(),
    "edges.gr": dimacs(),
}

BINARIES = {
    "plain.parquet": lambda path: pq.write_table(table(), path, row_group_size=2),
    "zstd.pq": lambda path: pq.write_table(table(), path, compression="zstd"),
    "renamed.parquet": lambda path: pq.write_table(table(names=("u", "v", "cost")), path),
    "dictionary.parquet": lambda path: pq.write_table(
        table(pa.array(SRC).dictionary_encode(), pa.array(DST).dictionary_encode()), path
    ),
    "file.arrow": lambda path: ipc(path, pa.ipc.new_file),
    "zstd.arrow": lambda path: ipc(path, pa.ipc.new_file, "zstd"),
    "stream.arrows": lambda path: ipc(path, pa.ipc.new_stream),
    "edges.feather": lambda path: pa.feather.write_feather(table(), path),
}


def refusal(path, **options) -> str:
    """The message with which an edge list is refused; it must be one line, name the file and survive pickling."""
    with pytest.raises(EdgeListError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.row, copy.column) == (message, caught.value.row, caught.value.column)
    return message
