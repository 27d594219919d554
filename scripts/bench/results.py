"""Measure how results are written and built: part files, files of a matrix, and frames, each beside the way it replaces.

    python -m scripts.bench.results --roads USA-road-NE-topology.parquet --social soc-Slashdot0902.parquet --output FILE

The tables and matrices of both ways are compared before they are timed. Seconds are medians; "before" and "now" take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse import bfs_many, plan_bfs_many, read_graph
from kepler_traverse.search.frames import Column, columns_of, concatenate_frames, frame_from
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import Traversals
from pipelines.output.part_file import Answer, plain, write_part
from pipelines.output.rows import Vertices, rows_of
from pipelines.question import Question
from scripts.bench.environment import commit, machine

_REPEATS = 5


def timed(ways: dict[str, Callable[[], Any]], clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Return the median seconds of each of several ways, which take turns after one call of each."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(_REPEATS):
        for name, way in ways.items():
            begin = clock()
            way()
            found[name].append(clock() - begin)
    return {name: round(statistics.median(seconds), 5) for name, seconds in found.items()}


def by_one_writer(path: Path, tables: list[pa.Table]) -> None:
    """Write a part of distances by one writer of pyarrow, which encodes each column of each source."""
    columns = {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in tables[0].schema}
    with pq.ParquetWriter(
        path,
        pa.schema(columns.items()),
        version="2.6",
        compression="zstd",
        compression_level=1,
        use_dictionary=["source"],
        column_encoding=dict.fromkeys(("vertex", "distance"), "DELTA_BINARY_PACKED"),
        write_statistics=["source", "vertex"],
        write_page_checksum=True,
    ) as writer:
        for table in tables:
            writer.write_table(plain(table), row_group_size=table.num_rows)


def measure_parts(graph: Any, traversals: Traversals, folder: Path) -> dict[str, Any]:
    """CPU seconds per source of a part: encoding alone, and rows with encoding."""
    vertices = Vertices(graph)

    def answers(result: str) -> list[Answer]:
        question = Question(algorithm=traversals.algorithm, result=result, certify="none", limit=None)
        rows = rows_of(question, graph, Query(), traversals, vertices=vertices)
        return [row.answer for row in rows]

    made = answers("distances")
    by_one_writer(folder / "before.parquet", [answer.table for answer in made])
    write_part(folder, 0, "run", made)
    if not pq.read_table(folder / "before.parquet").equals(pq.read_table(folder / "part-000000.parquet")):
        raise ValueError("the two writers have written different rows")
    count = len(traversals)
    encode = {
        "before": lambda: by_one_writer(folder / "before.parquet", [answer.table for answer in made]),
        "now": lambda: write_part(folder, 0, "run", made),
    }
    whole = {
        "distances, before": lambda: by_one_writer(
            folder / "before.parquet", [answer.table for answer in answers("distances")]
        ),
        "distances": lambda: write_part(folder, 0, "run", answers("distances")),
        "matrix": lambda: write_part(folder, 0, "run", answers("matrix"), result="matrix"),
    }
    names = {"distances, before": "before.parquet", "distances": "part-000000.parquet", "matrix": "part-000000.arrow"}
    encoding = {name: round(seconds / count, 6) for name, seconds in timed(encode, time.process_time).items()}
    parts = {name: round(seconds / count, 6) for name, seconds in timed(whole, time.process_time).items()}
    return {
        "sources": count,
        "vertices": graph.n_vertices,
        "encoding_cpu_seconds_per_source": encoding,
        "rows_and_encoding_cpu_seconds_per_source": parts,
        "bytes_per_source": {name: (folder / file).stat().st_size // count for name, file in names.items()},
        "ratio_of_encoding": round(encoding["before"] / encoding["now"], 2),
        "ratio_of_distances": round(parts["distances, before"] / parts["distances"], 2),
        "ratio_of_matrix": round(parts["distances, before"] / parts["matrix"], 2),
    }


def measure_files(matrix: np.ndarray, folder: Path) -> list[dict[str, Any]]:
    """Seconds per source to write a matrix of int16 and to read it into NumPy, in several kinds of files."""
    k, n = matrix.shape
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), n)
    table = pa.table({"source": np.arange(k), "distance": lists})
    blob = pa.FixedSizeBinaryArray.from_buffers(pa.binary(2 * n), k, [None, pa.py_buffer(matrix)])
    blobs = pa.table({"source": np.arange(k), "distance": blob})
    codec = pa.Codec("lz4")
    element = "distance.list.element"

    def parquet(name: str, rows: pa.Table, **options: Any) -> tuple[Callable[[], Any], Callable[[], Any], list[str]]:
        def read() -> np.ndarray:
            column = pq.read_table(folder / name)["distance"].combine_chunks()
            flat = column.values.to_numpy() if rows is table else np.frombuffer(column.buffers()[1], np.int16)
            return flat.reshape(k, n)

        options = {"use_dictionary": False, "write_statistics": False, **options}
        return lambda: pq.write_table(rows, folder / name, **options), read, [name]

    def arrow(name: str, compression: str | None, is_mapped: bool) -> tuple[Callable[[], Any], Callable[[], Any], list[str]]:
        def write() -> None:
            with pa.ipc.new_file(
                folder / name, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
            ) as file:
                file.write_table(table)

        def read() -> np.ndarray:
            source = pa.memory_map(str(folder / name)) if is_mapped else pa.OSFile(str(folder / name))
            return pa.ipc.open_file(source).get_batch(0)["distance"].flatten().to_numpy().reshape(k, n)

        return write, read, [name]

    def write_chunks() -> None:
        for i in range(k):
            (folder / f"chunk.{i}").write_bytes(codec.compress(matrix[i].tobytes()))

    def read_chunks() -> np.ndarray:
        rows = [codec.decompress((folder / f"chunk.{i}").read_bytes(), 2 * n) for i in range(k)]
        return np.array([np.frombuffer(row, np.int16) for row in rows])

    zstd: dict[str, Any] = {"compression": "zstd", "compression_level": 1}
    split = {**zstd, "column_encoding": {element: "BYTE_STREAM_SPLIT"}}
    differences = {**zstd, "column_encoding": {element: "DELTA_BINARY_PACKED"}}
    kinds = {
        "Parquet, lists, uncompressed": parquet("a.parquet", table, compression="none"),
        "Parquet, lists, zstd 1": parquet("b.parquet", table, **zstd),
        "Parquet, lists, differences, zstd 1": parquet("c.parquet", table, **differences),
        "Parquet, lists, byte stream split, zstd 1": parquet("d.parquet", table, **split),
        "Parquet, fixed binary, uncompressed": parquet("e.parquet", blobs, compression="none"),
        "Arrow, uncompressed": arrow("a.arrow", None, False),
        "Arrow, uncompressed, mapped": arrow("b.arrow", None, True),
        "Arrow, lz4": arrow("c.arrow", "lz4", False),
        "Arrow, zstd": arrow("d.arrow", "zstd", False),
        ".npy": (lambda: np.save(folder / "a.npy", matrix), lambda: np.load(folder / "a.npy"), ["a.npy"]),
        ".npy, mapped": (
            lambda: np.save(folder / "b.npy", matrix),
            lambda: np.load(folder / "b.npy", mmap_mode="r"),
            ["b.npy"],
        ),
        "chunk per source, lz4 (as in Zarr)": (write_chunks, read_chunks, [f"chunk.{i}" for i in range(k)]),
    }
    found = []
    for name, (write, read, files) in kinds.items():
        write()
        if not np.array_equal(read(), matrix):
            raise ValueError(f"{name}: another matrix was read")
        # The sum makes a reader that maps the file touch all of it.
        seconds = timed({"write": write, "read": read, "read_and_sum": lambda read=read: read().sum()})
        size = sum(os.stat(folder / file).st_size for file in files)
        found.append({"files": name, **{key: round(value / k, 6) for key, value in seconds.items()}, "bytes": size // k})
    return found


def measure_frames(graph: Any, sources: np.ndarray) -> dict[str, Any]:
    """Seconds of a frame of all distances, with its search, and of the search alone."""
    numbers = graph.numbers_of(sources)
    distinct, places = np.unique(numbers, return_inverse=True)

    def before() -> Any:
        plan = plan_bfs_many(graph, n_sources=distinct.size)
        frames = []
        for group in plan.iter_groups(distinct):
            for traversal in group:
                columns = columns_of(graph, traversal, plan.query)
                source = Column.of_vertices(graph, np.full(len(columns["vertex"].values), traversal.source))
                frames.append(frame_from({"source": source, **columns}, graph.device))
        return concatenate_frames([frames[i] for i in places], graph.device)

    def search() -> None:
        plan = plan_bfs_many(graph, n_sources=distinct.size)
        for _ in plan.iter_groups(distinct):
            pass

    frame = bfs_many(graph, sources)
    if not frame.equals(before()):
        raise ValueError("the two frames differ")
    rows = len(frame)
    del frame
    seconds = timed({"search": search, "before": before, "now": lambda: bfs_many(graph, sources)})
    return {
        "sources": int(sources.size),
        "rows": rows,
        "seconds": seconds,
        "ratio": round(seconds["before"] / seconds["now"], 2),
        "times_the_search": {name: round(seconds[name] / seconds["search"], 2) for name in ("before", "now")},
    }


def table_of(found: dict[str, Any]) -> str:
    """Return the measurements of the files of a matrix as a table, per source."""
    lines = ["| file | write, ms | read, ms | read and sum, ms | MB |", "|---|---|---|---|---|"]
    for row in found["matrix_files"]:
        cells = [f"{1e3 * row[key]:.1f}" for key in ("write", "read", "read_and_sum")] + [f"{row['bytes'] / 1e6:.1f}"]
        lines.append(f"| {row['files']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roads", required=True, help="an edge list of an undirected graph of many levels")
    parser.add_argument("--social", required=True, help="an edge list of an undirected graph of few levels")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    versions = {name: version(name) for name in ("numpy", "pyarrow", "pandas")}
    found: dict[str, Any] = {"measured": str(date.today()), "commit": commit(), "machine": machine(), "versions": versions}
    with tempfile.TemporaryDirectory(dir=options.output.resolve().parent) as name:
        graph = read_graph(options.roads, directed=False)
        numbers = np.sort(rng.choice(graph.n_vertices, 5, replace=False))
        traversals = plan_bfs_many(graph, n_sources=5).run(numbers)
        found["roads"] = Path(options.roads).stem
        found["parts"] = measure_parts(graph, traversals, Path(name))
        found["matrix_files"] = measure_files(np.ascontiguousarray(traversals.distance.astype(np.int16)), Path(name))
    graph = read_graph(options.social, directed=False)
    found["social"] = Path(options.social).stem
    found["frames"] = measure_frames(graph, rng.choice(np.asarray(graph.ids), 256, replace=False))
    options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
