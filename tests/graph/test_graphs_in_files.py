"""Edge lists larger than memory: a graph whose edges are built in files is the graph that is built in memory."""

from __future__ import annotations

import errno
import itertools
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import _arrays, formats, graph_from_edges, read_graph
from kepler_traverse.errors import CapacityError, EdgeListError, InputError, OutputError
from kepler_traverse.formats import parquet, text
from kepler_traverse.runtime import scratch
from tests.conftest import HAS_GPU
from tests.support import tiers
from tests.support.devices import on_a_device, running
from tests.support.processes import ran

ROWS, IDS = 600, 60
MEMORY = 8_000  # bytes: edges are scattered in several passes
KINDS_OF_IDS = ["dense", "from 7", "gaps", "sparse", "unsigned", "strings"]
KINDS_OF_WEIGHTS = ["none", "integers", "large integers", "floats", "narrow floats"]


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    """Take every edge list for one that needs files, and few rows at a time."""
    for place, name, value in (
        *((formats, name, 10**9) for name in ("_BYTES_PER_ROW", "_BYTES_PER_BYTE")),
        (scratch, "READ_AT_A_TIME", 0),
        (parquet, "_ROWS_AT_ONCE", 7),
        (text, "BLOCK_BYTES", 256),
        (_arrays, "HOST_SLICE", 5),
    ):
        monkeypatch.setattr(place, name, value)


def in_files(paths, folder, memory=MEMORY, **options):
    graph = read_graph(paths, device="cpu", scratch=folder, build_memory=memory, **options)
    assert graph.report.in_files
    return graph


def assert_same(graph, other):
    assert not other.report.in_files
    assert graph.fingerprint == other.fingerprint
    assert (graph.report, graph.negative_loops, graph.integer_weights) == (
        *(other.report, other.negative_loops),
        other.integer_weights,
    )
    for name in ("offsets", "targets", "weights"):
        ours, theirs = getattr(graph, name), getattr(other, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()
    assert type(graph.ids) is type(other.ids)
    assert (
        graph.ids.tolist() == other.ids.tolist()
        if not graph.has_string_ids
        else graph.ids.equals(other.ids)
    )


def ends(kind, rng):
    """Two columns with self-loops and parallel edges."""
    columns = rng.integers(0, IDS, (2, ROWS))
    return {
        "dense": columns,
        "from 7": columns + 7,
        "gaps": columns * 3,
        "sparse": columns * 1_000_003 - 10**7,
        "unsigned": columns.astype(np.uint64) * np.uint64(10**15) + np.uint64(2**63),
        "strings": columns.astype(str),
    }[kind]


def weights(kind, rng):
    return {
        "none": None,
        "integers": rng.integers(-3, 1000, ROWS),
        "large integers": rng.integers(2**54, 2**60, ROWS),
        "floats": np.where(rng.random(ROWS) < 0.1, -0.0, rng.random(ROWS)),
        "narrow floats": rng.random(ROWS).astype(np.float32),
    }[kind]


WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=150),
    "arrow": lambda table, path: pa.feather.write_feather(table, path, chunksize=150),
    "csv": pa.csv.write_csv,
    "txt": lambda table, path: pa.csv.write_csv(
        table, path, pa.csv.WriteOptions(delimiter=" ", quoting_style="none")
    ),
}


def write(folder, ending, table, n_files=1):
    for i, part in enumerate(np.array_split(np.arange(table.num_rows), n_files)):
        WRITERS[ending](table.take(part), folder / f"edges-{i}.{ending}")
    return folder if n_files > 1 else folder / f"edges-0.{ending}"


def edge_table(ids, weight, seed=1):
    rng = np.random.default_rng(seed)
    src, dst = ends(ids, rng)
    columns = {"src": src, "dst": dst, "weight": weights(weight, rng)}
    return pa.table(
        {name: pa.array(column) for name, column in columns.items() if column is not None}
    )


@pytest.mark.parametrize(
    ("ids", "weight"), tiers.few(itertools.product(KINDS_OF_IDS, KINDS_OF_WEIGHTS), 13)
)
def test_the_graph_is_that_of_memory(tmp_path, ids, weight):
    path = write(tmp_path, "parquet", edge_table(ids, weight))
    for directed in (True, False):
        assert_same(
            in_files(path, tmp_path, directed=directed),
            read_graph(path, device="cpu", directed=directed),
        )


@pytest.mark.parametrize(
    ("ending", "ids", "n_files"),
    tiers.few(itertools.product(WRITERS, ["sparse", "strings"], [1, 3]), 11),
)
def test_every_format_is_read_in_parts(tmp_path, ending, ids, n_files):
    path = write(tmp_path, ending, edge_table(ids, "floats"), n_files)
    options = {"header": "yes"} if ending == "txt" else {}
    assert_same(in_files(path, tmp_path, **options), read_graph(path, device="cpu", **options))


def test_rows_in_the_order_of_their_sources_are_read_once(tmp_path):
    path = write(
        tmp_path,
        "parquet",
        edge_table("dense", "integers").sort_by([("src", "ascending"), ("dst", "ascending")]),
    )
    assert_same(in_files(path, tmp_path), read_graph(path, device="cpu"))


@on_a_device
def test_for_a_gpu_the_graph_is_moved_there(tmp_path):
    path = write(tmp_path, "parquet", edge_table("gaps", "floats"))
    with running(None if HAS_GPU else {"block": 64}):
        graph = read_graph(path, device="cuda", scratch=tmp_path, build_memory=MEMORY)
        assert graph.device == "cuda"
        assert graph.report.in_files
        assert graph.fingerprint == read_graph(path, device="cpu").fingerprint


def test_vertices_of_their_own_and_a_type_of_weights(tmp_path):
    path = write(tmp_path, "parquet", edge_table("sparse", "integers"))
    more = {"vertices": [3, 5], "weight_type": "float64"}
    assert_same(in_files(path, tmp_path, **more), read_graph(path, device="cpu", **more))


def test_files_of_different_types_are_one_edge_list(tmp_path):
    tables = [
        pa.table(
            {
                "src": pa.array([1, 2, 2], pa.int64()),
                "dst": [2, 3, 3],
                "weight": pa.array([1, 2, 2**40]),
            }
        ),
        pa.table(
            {
                "src": pa.array([2**63, 9], pa.uint64()),
                "dst": [1, 2],
                "weight": pa.array([0.5, -0.0]),
            }
        ),
    ]
    for i, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{i}.parquet")
    assert_same(in_files(tmp_path, tmp_path), read_graph(tmp_path, device="cpu"))


def test_a_text_may_turn_out_to_have_floats(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(
        "src,dst,weight\n"
        + "".join(f"{i % 7},{i % 11},{i if i < 400 else i / 8}\n" for i in range(500))
    )
    assert_same(in_files(path, tmp_path), read_graph(path, device="cpu"))


def spoiled(row, **values):
    columns = {
        "src": [i % 50 for i in range(500)],
        "dst": [0] * 500,
        "weight": [i / 8 for i in range(500)],
    }
    for name, value in values.items():
        columns[name][row] = value
    return pa.table(columns)


@pytest.mark.parametrize(
    ("ending", "table"),
    [
        *(
            (ending, spoiled(450, **{name: None}))
            for ending in ("parquet", "csv")
            for name in ("dst", "weight")
        ),
        *((ending, spoiled(490, weight=float("nan"))) for ending in ("parquet", "csv")),
        ("csv", spoiled(460, weight=1e-310)),
    ],
)
def test_errors_name_the_row_of_the_file(tmp_path, ending, table):
    path = write(tmp_path, ending, table)
    options = {} if table["weight"][460].as_py() > 1 else {"weight_type": "float32"}
    expected, found = (_refusal(path, **options, **more) for more in ({}, {"scratch": tmp_path}))
    assert found == expected
    assert found[1] in (450, 460, 490)


def test_an_integer_that_no_float_holds_is_named_by_its_row(tmp_path):
    """It is in a file already when the first float is met."""
    path = tmp_path / "edges.csv"
    path.write_text(
        "src,dst,weight\n"
        + "".join(
            f"1,{i},{2**60 + 1 if i == 57 else i if i < 400 else i / 8}\n" for i in range(500)
        )
    )
    assert _refusal(path, scratch=tmp_path) == _refusal(path)
    assert _refusal(path)[1] == 57


def _refusal(path, **more):
    with pytest.raises(EdgeListError) as refusal:
        read_graph(
            path, device="cpu", **more, **({"build_memory": MEMORY} if "scratch" in more else {})
        )
    return str(refusal.value), refusal.value.row, refusal.value.column


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_an_empty_table_is_refused_alike(tmp_path, ending):
    WRITERS[ending](edge_table("dense", "integers").slice(0, 0), tmp_path / f"edges-0.{ending}")
    assert _refusal(tmp_path / f"edges-0.{ending}", scratch=tmp_path) == _refusal(
        tmp_path / f"edges-0.{ending}"
    )


@pytest.mark.parametrize(
    ("ids", "memory"), [("dense", ROWS * 10**9), ("strings", 2 * ROWS * 10**9)]
)
def test_memory_is_taken_where_it_is_enough(tmp_path, ids, memory):
    path = write(tmp_path, "parquet", edge_table(ids, "integers"))
    assert not read_graph(path, device="cpu", scratch=tmp_path, build_memory=memory).report.in_files
    in_files(path, tmp_path, memory - 1)


@pytest.mark.parametrize("ids", ["dense", "sparse", "strings"])
def test_vertices_beyond_the_limit_are_refused(tmp_path, ids):
    path = write(tmp_path, "parquet", edge_table(ids, "none"))
    with pytest.raises(CapacityError, match=r"the ids of the vertices take .* raise build_memory"):
        in_files(path, tmp_path, memory=900)


def test_what_is_built_in_memory_is_refused(tmp_path):
    path = write(tmp_path, "parquet", edge_table("dense", "integers"))
    for options, name in (
        ({"where": "weight > 3"}, "where"),
        ({"oneway_column": "weight"}, "oneway_column"),
        ({"only_vertices": [1, 2]}, "only_vertices"),
        ({"edge_ids": True}, "edge_ids"),
    ):
        with pytest.raises(InputError, match=f"with {name}.* the edge list is built in memory"):
            read_graph(path, scratch=tmp_path, **options)
    with pytest.raises(InputError, match="a table in memory is built in memory"):
        read_graph(edge_table("dense", "none"), scratch=tmp_path)
    with pytest.raises(InputError, match="there is no such folder"):
        read_graph(path, device="cpu", scratch=tmp_path / "none")
    with pytest.raises(InputError, match="build_memory has no effect without scratch"):
        read_graph(path, build_memory=10**9)


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = write(tmp_path, "parquet", edge_table("dense", "integers"))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match=f"{tmp_path}: .*No space left"):
        in_files(path, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


_LIMITED = """
import os, resource, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # each thread has buffers of its own
from kepler_traverse import formats, read_graph
from kepler_traverse.runtime import scratch

edges, small, folder, limit = *sys.argv[1:4], int(sys.argv[4])
scratch.READ_AT_A_TIME = limit // 2
in_files = {"scratch": folder, "build_memory": limit}
beyond, formats._BYTES_PER_ROW = formats._BYTES_PER_ROW, limit
for more in ({}, in_files):  # compiles, and starts threads
    read_graph(small, device="cpu", directed=False, **more)
formats._BYTES_PER_ROW = beyond
taken = next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (taken + limit, resource.RLIM_INFINITY))
graph = read_graph(edges, device="cpu", directed=False, **in_files)
print(graph.nbytes // limit, graph.fingerprint)
del graph
try:
    read_graph(edges, device="cpu", directed=False)
except MemoryError:
    print("not in memory")
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="elsewhere RLIMIT_DATA does not count mapped memory",
)
def test_a_graph_of_three_times_the_limit_is_built_within_it(tmp_path, monkeypatch):
    """The system refuses memory beyond the limit: all that is private and can be written to, and so no files.

    Without files the same process runs out of memory.
    """
    monkeypatch.undo()  # a few rows at a time of millions would take seconds
    rng, limit, rows = np.random.default_rng(3), 16 * 10**6, 2_050_000
    columns = {
        "src": rng.integers(0, 20_000, rows),
        "dst": rng.integers(0, 20_000, rows),
        "weight": rng.random(rows),
    }
    edges, small = (
        tmp_path / "edges.parquet",
        write(tmp_path, "parquet", edge_table("dense", "floats")),
    )
    pq.write_table(
        pa.table(columns), edges, row_group_size=500_000, use_dictionary=False, compression="none"
    )
    done = ran([sys.executable, "-c", _LIMITED, edges, small, tmp_path, limit])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"3 {graph_from_edges(columns, directed=False).fingerprint}",
        "not in memory",
    ]
