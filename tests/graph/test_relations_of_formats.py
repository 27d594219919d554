"""Relations between edge lists that hold in every format: the same rows in another order, in parts, under other ids."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph, sssp_many
from tests.support.edge_files import need

N_VERTICES, N_ROWS = 12, 40


def write_delta(table, path):
    need("deltalake").write_deltalake(path, table)


def write_text(sep, squeeze=bytes):
    def write(table, path):
        path.write_bytes(squeeze(table.to_pandas().to_csv(index=False, sep=sep).encode()))

    return write


def write_snap(table, path):
    path.write_bytes(
        b"# src dst weight\n"
        + table.to_pandas().to_csv(index=False, sep=" ", header=False).encode()
    )


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


WRITERS = {
    "parquet": (".parquet", lambda table, path: pq.write_table(table, path, row_group_size=7)),
    "csv": (".csv", write_text(",")),
    "tsv.gz": (".tsv.gz", write_text("\t", gzip.compress)),
    "snap": (".txt", write_snap),
    "feather": (
        ".feather",
        lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=7),
    ),
    "stream": (".arrows", write_stream),
    "delta": (".d", write_delta),
}


@pytest.fixture(scope="module", params=["integers", "text"])
def rows(request):
    r = np.random.default_rng(7)
    ids = np.sort(r.choice(1000, N_VERTICES, replace=False) + 3)
    src, dst = ids[r.integers(0, N_VERTICES, (2, N_ROWS))]
    if request.param == "text":
        src, dst = (np.char.add("v", np.char.zfill(column.astype(str), 4)) for column in (src, dst))
    return pa.table({"src": src, "dst": dst, "weight": r.integers(0, 9, N_ROWS)})


@pytest.mark.parametrize(
    "empty", [None, 1, *(pytest.param(at, marks=pytest.mark.exhaustive) for at in (0, 3))]
)
@pytest.mark.parametrize("name", WRITERS)
def test_rows_in_another_order_and_in_parts_are_the_same_graph(tmp_path, rows, name, empty):
    ending, write = WRITERS[name]
    r = np.random.default_rng(11)
    shuffled = rows.take(r.permutation(N_ROWS))
    pieces = [shuffled.slice(0, 1), shuffled.slice(1, 20), shuffled.slice(21)]
    if empty is not None:
        pieces.insert(empty, rows.slice(0, 0))
    paths = [tmp_path / f"{at}{ending}" for at in range(len(pieces))]
    for piece, path in zip(pieces, paths, strict=True):
        write(piece, path)
    expected = graph_from_edges(rows).fingerprint
    assert read_graph(paths).fingerprint == expected
    assert read_graph(str(tmp_path / f"*{ending}")).fingerprint == expected
    if name != "delta":
        assert read_graph(tmp_path).fingerprint == expected


@pytest.mark.parametrize("name", WRITERS)
def test_renamed_vertices_have_the_distances_of_the_old_ones(tmp_path, rows, name):
    ending, write = WRITERS[name]
    old = sorted(set(rows["src"].to_pylist()) | set(rows["dst"].to_pylist()))
    new = {vertex: f"{len(old) - at:03d}x" for at, vertex in enumerate(old)}
    ends = {
        role: pa.array([new[vertex] for vertex in rows[role].to_pylist()])
        for role in ("src", "dst")
    }
    write(pa.table({**ends, "weight": rows["weight"]}), tmp_path / f"e{ending}")
    found = pd.DataFrame(
        sssp_many(read_graph(tmp_path / f"e{ending}"), [new[vertex] for vertex in old])
    )
    right = pd.DataFrame(sssp_many(graph_from_edges(rows), old))
    renamed = {
        (new[s], new[v]): d
        for s, v, d in right[["source", "vertex", "distance"]].itertuples(index=False)
    }
    assert {
        (s, v): d for s, v, d in found[["source", "vertex", "distance"]].itertuples(index=False)
    } == renamed
