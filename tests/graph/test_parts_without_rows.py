"""A part without rows is no fault: of several files, in every format, in each place, however the files are named."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import formats, graph_from_edges, read_graph
from kepler_traverse.errors import EdgeListError
from tests.support.edge_files import DST, EXPECTED, ROWS, SRC, WEIGHT, read, table, zstd

ROW_COUNTS = (3, 4)  # of the parts that have rows


def csv_text(rows, header="src,dst,weight\n"):
    return (header + "".join(f"{u},{v},{w}\n" for u, v, w in rows)).encode()


def snap_text(rows):
    return b"# src dst weight\n" + "".join(f"{u} {v} {w}\n" for u, v, w in rows).encode()


def ids_of(graph):
    return getattr(graph.ids, "to_pylist", graph.ids.tolist)()


def write_bytes(make):
    def write(path, rows):
        path.write_bytes(make(rows))

    return write


def write_arrow(new):
    def write(path, rows):
        piece = (
            table().slice(0, 0)
            if not rows
            else pa.Table.from_pylist(
                [dict(zip(table().schema.names, row, strict=True)) for row in rows]
            )
        )
        with pa.OSFile(str(path), "wb") as file, new(file, piece.schema) as writer:
            writer.write_table(piece)

    return write


def write_parquet(path, rows):
    frame = pd.DataFrame(rows, columns=["src", "dst", "weight"]).astype("int64")
    frame.to_parquet(path)


def write_bare_parquet(path, rows):
    """Writers that see no row may know no type, or write no column at all."""
    if rows:
        write_parquet(path, rows)
    else:
        pq.write_table(pa.table({"src": pa.nulls(0), "dst": pa.nulls(0)}), path)


WRITERS = {
    "parquet": (".parquet", write_parquet),
    "parquet without types": (".parquet", write_bare_parquet),
    "parquet without columns": (
        ".parquet",
        lambda path, rows: (
            write_parquet(path, rows) if rows else pq.write_table(pa.table({}), path)
        ),
    ),
    "csv": (".csv", write_bytes(csv_text)),
    "csv, its part without a byte": (
        ".csv",
        write_bytes(lambda rows: csv_text(rows) if rows else b""),
    ),
    "csv without a header": (".csv", write_bytes(lambda rows: csv_text(rows, ""))),
    "csv with short names": (".csv", write_bytes(lambda rows: csv_text(rows, "u,v,weight\n"))),
    "csv.gz": (".csv.gz", write_bytes(lambda rows: gzip.compress(csv_text(rows)))),
    "csv.zst": (".csv.zst", write_bytes(lambda rows: zstd(csv_text(rows, "")))),
    "csv.bz2": (".csv.bz2", write_bytes(lambda rows: bz2.compress(csv_text(rows)))),
    "snap": (".txt", write_bytes(snap_text)),
    "snap, its part without a byte": (
        ".txt",
        write_bytes(lambda rows: snap_text(rows) if rows else b""),
    ),
    "arrow file": (".arrow", write_arrow(pa.ipc.new_file)),
    "arrow stream": (".arrows", write_arrow(pa.ipc.new_stream)),
    "feather": (
        ".feather",
        lambda path, rows: pyarrow.feather.write_feather(
            pd.DataFrame(rows, columns=["src", "dst", "weight"]).astype("int64"), path
        ),
    ),
}


def write_parts(folder, name, place):
    """The rows in two parts, and a third without a row in some place."""
    ending, write = WRITERS[name]
    folder.mkdir()
    pieces = [ROWS[: ROW_COUNTS[0]], ROWS[ROW_COUNTS[0] :]]
    pieces.insert(place, [])
    paths = [folder / f"part-{i}{ending}" for i in range(3)]
    for path, rows in zip(paths, pieces, strict=True):
        write(path, rows)
    return paths


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_part_without_rows_adds_nothing(tmp_path, name, place):
    paths = write_parts(tmp_path / "parts", name, place)
    for given in (tmp_path / "parts", paths, str(tmp_path / "parts" / "part-*")):
        graph = read(given)
        assert graph.fingerprint == EXPECTED.fingerprint
        assert graph.report.rows == len(ROWS)


@pytest.mark.parametrize("name", WRITERS)
def test_rows_are_counted_over_parts_without_any(tmp_path, name, monkeypatch):
    paths = write_parts(tmp_path / "parts", name, 1)
    expected = graph_from_edges(SRC, DST, WEIGHT, edge_ids=True)
    np.testing.assert_array_equal(read(paths, edge_ids=True).edge_rows, expected.edge_rows)
    # so that columns go to files
    monkeypatch.setattr(formats, "_bytes_to_build", lambda *_: 1 << 62)
    in_files = read(paths, scratch=tmp_path)
    assert in_files.fingerprint == EXPECTED.fingerprint
    assert in_files.report.in_files


# u,v may be two vertices
@pytest.mark.parametrize("name", sorted({*WRITERS} - {"csv with short names"}))
def test_parts_of_which_none_has_rows_are_an_error_without_vertices(tmp_path, name):
    ending, write = WRITERS[name]
    paths = [tmp_path / f"part-{i}{ending}" for i in range(2)]
    for path in paths:
        write(path, [])
    for given in (paths, paths[0]):
        with pytest.raises(EdgeListError, match=r"part-0.*(holds no edges|is empty)"):
            read(given)
        for vertices in ([4, 9], ["a", "b"]):
            graph = read(given, vertices=vertices)
            assert ids_of(graph) == vertices
            assert graph.n_edges == 0


@pytest.mark.parametrize("ids", [[1, 2], ["x", "y"]])
def test_a_filter_that_keeps_nothing_leaves_the_vertices(ids):
    data = {"src": [ids[0]], "dst": [ids[1]], "w": [1]}
    for given in (data, pd.DataFrame(data), pa.table(data)):
        graph = graph_from_edges(given, where="w > 5", vertices=ids)
        assert ids_of(graph) == ids
        assert (graph.n_edges, graph.report.filtered_rows) == (0, 1)
        assert graph.weights is not None
        with pytest.raises(EdgeListError, match="vertices"):
            graph_from_edges(given, where="w > 5")


def test_a_filter_that_keeps_nothing_of_some_files(tmp_path):
    paths = write_parts(tmp_path / "parts", "parquet", 1)
    kept = read(paths, where="weight > 6", vertices=[1, 2, 3, 4, 5])
    assert kept.n_edges == 1
    assert read(paths, where="weight > 60", vertices=[1, 2]).n_edges == 0


@pytest.mark.parametrize(
    "empty",
    [
        {"src": [], "dst": []},
        pd.DataFrame({"src": [], "dst": []}),
        pa.table({"src": pa.nulls(0), "dst": pa.nulls(0)}),
    ],
    ids=["mapping", "pandas", "arrow"],
)
def test_a_table_without_rows_needs_vertices(empty):
    assert ids_of(graph_from_edges(empty, vertices=["a", "b"])) == ["a", "b"]
    assert ids_of(read_graph(empty, vertices=[3, 4])) == [3, 4]
    with pytest.raises(EdgeListError, match="vertices=ids"):
        graph_from_edges(empty)
