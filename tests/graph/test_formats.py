"""The same graph in every accepted format, in one file or several, gives the same Graph."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import cuda, graph_from_edges, read_graph
from kepler_traverse.errors import DeviceError, InputError
from kepler_traverse.formats import FORMATS
from kepler_traverse.formats.text import is_number
from tests.support.edge_files import (
    BINARIES,
    DST,
    EXPECTED,
    ROWS,
    SRC,
    TEXTS,
    WEIGHT,
    lines,
    read,
    table,
    write,
    zstd,
)

NO_COLUMNS = {"src_column": "", "dst_column": "", "weight_column": "", "unused_columns": ()}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".zst"])
def test_text_formats_give_the_same_graph_compressed_or_not(tmp_path, name, ending):
    squeeze = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}[ending]
    graph = read(write(tmp_path / (name + ending), squeeze(TEXTS[name].encode())))
    assert graph.fingerprint == EXPECTED.fingerprint
    assert replace(graph.report, **NO_COLUMNS) == EXPECTED.report
    # Names, positions, and names that the format itself has.
    ends = ("src", "dst", "weight"), ("0", "1", "2"), ("row", "column", "value")
    assert (graph.report.src_column, graph.report.dst_column, graph.report.weight_column) in ends
    assert graph.report.unused_columns == ()


@pytest.mark.parametrize("name", BINARIES)
def test_binary_formats_give_the_same_graph(tmp_path, name):
    BINARIES[name](str(tmp_path / name))
    assert read(tmp_path / name).fingerprint == EXPECTED.fingerprint


@pytest.mark.parametrize("name", ["plain.parquet", "file.arrow", "stream.arrows"])
def test_a_binary_file_may_be_compressed_as_a_whole(tmp_path, name):
    BINARIES[name](str(tmp_path / name))
    path = write(tmp_path / (name + ".gz"), gzip.compress((tmp_path / name).read_bytes()))
    assert read(path).fingerprint == EXPECTED.fingerprint


# but tables with a log, networks of planners, and those of biologists, whose edges have no weight: they have their own
def test_every_format_has_a_file_in_these_tests():
    endings = {name[name.rindex(".") :] for name in [*TEXTS, *BINARIES]} | {".sif", ".tntp"}
    assert all(endings & set(entry.endings) for entry in FORMATS if entry.endings)


def test_delimiters_can_be_given_by_option(tmp_path):
    assert (
        read(write(tmp_path / "edges.csv", lines("~")), delimiter="~").fingerprint
        == EXPECTED.fingerprint
    )
    assert (
        read(write(tmp_path / "edges.data", lines(";")), format="csv").fingerprint
        == EXPECTED.fingerprint
    )


def test_an_undirected_graph_is_the_same_from_text_and_parquet(tmp_path):
    pq.write_table(table(), tmp_path / "edges.parquet")
    graph = read(tmp_path / "edges.parquet", directed=False)
    assert not graph.directed
    assert (
        graph.fingerprint
        == read(write(tmp_path / "edges.csv", lines()), directed=False).fingerprint
    )
    assert graph.fingerprint == graph_from_edges(SRC, DST, WEIGHT, directed=False).fingerprint


# --- several files -----------------------------------------------------------------------------------------------------


def spread(folder, pieces=3):
    """The rows over several Parquet files, in folders of a hive partition."""
    for i in range(pieces):
        part = folder / f"day={i}"
        part.mkdir(parents=True)
        pq.write_table(table().take(list(range(i, len(ROWS), pieces))), part / "part-0.parquet")
    return folder


def test_folder_glob_and_several_paths_are_one_edge_list(tmp_path):
    folder = spread(tmp_path / "data")
    (folder / "_SUCCESS").write_text("")
    (folder / "day=0" / ".part-9.parquet").write_text("hidden")
    (folder / "day=0" / "part-1.parquet.tmp").write_text("unfinished")
    files = sorted(folder.glob("*/part-*.parquet"))
    for paths in (
        folder,
        str(folder),
        str(folder / "*" / "*.parquet"),
        str(folder / "day=*"),
        files,
        [folder / "day=0", *files[1:]],
    ):
        assert read(paths).fingerprint == EXPECTED.fingerprint


def test_a_hive_partitioned_dataset_is_read(tmp_path):
    data = table().append_column("day", pa.array([1, 2, 1, 2, 3, 3, 1]))
    pyarrow.dataset.write_dataset(
        data,
        tmp_path / "data",
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(pa.schema([("day", pa.int64())]), flavor="hive"),
    )
    assert read(tmp_path / "data").fingerprint == EXPECTED.fingerprint


def test_several_csv_files_may_order_their_columns_differently(tmp_path):
    write(
        tmp_path / "a.csv", "src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in ROWS[:4])
    )
    write(
        tmp_path / "b.csv",
        "weight,extra,dst,src\n" + "".join(f"{w},x,{v},{u}\n" for u, v, w in ROWS[4:]),
    )
    assert read([tmp_path / "a.csv", tmp_path / "b.csv"]).fingerprint == EXPECTED.fingerprint


def test_int32_and_int64_files_are_read_together(tmp_path):
    pq.write_table(
        table(SRC[:3].astype(np.int32), DST[:3], WEIGHT[:3].astype(np.int8)), tmp_path / "a.parquet"
    )
    pq.write_table(table(SRC[3:], DST[3:].astype(np.uint32), WEIGHT[3:]), tmp_path / "b.parquet")
    assert read(tmp_path).fingerprint == EXPECTED.fingerprint


def test_a_url_and_a_name_with_glob_signs_are_read(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/edges/a.csv", lines().encode())
    assert read("memory://edges/a.csv").fingerprint == EXPECTED.fingerprint
    assert read("memory://edges").fingerprint == EXPECTED.fingerprint
    assert read(f"file://{write(tmp_path / 'a.csv', lines())}").fingerprint == EXPECTED.fingerprint
    assert read(write(tmp_path / "a[1]*.csv", lines())).fingerprint == EXPECTED.fingerprint
    memory.rm("/edges", recursive=True)


# --- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "options", "has_weights"),
    [
        ("src,dst,weight", {}, True),
        ("weight,src,dst", {}, True),
        ("SRC,Dst,Weight", {}, True),
        ("id,source,target", {}, False),
        ("from,to,when", {}, False),
        ("src,dst,toll", {}, False),
        ("src,dst,cost", {}, True),
        ("src,dst,toll", {"weight_column": "toll"}, True),
        ("src,dst,weight", {"weighted": False}, False),
        ("c,b,a", {"src_column": "b", "dst_column": "c", "weight_column": "a"}, True),
        ("c,b,a", {"src_column": "b", "dst_column": "c"}, False),
        ("b,weight,a", {"src_column": "b", "dst_column": "a", "weighted": True}, True),
    ],
)
def test_columns_are_those_named_or_known(tmp_path, header, options, has_weights):
    graph = read(write(tmp_path / "edges.csv", header + "\n1,2,3\n3,1,2\n"), **options)
    assert (graph.weights is not None) == has_weights


def test_columns_of_a_file_without_header_are_named_by_position(tmp_path):
    path = write(tmp_path / "edges.csv", "9,1,2\n8,2,3\n")
    graph = read(path, src_column="1", dst_column="2", weight_column="0")
    assert graph.ids.tolist() == [1, 2, 3]
    assert graph.weights.tolist() == [9.0, 8.0]


# --- Matrix Market -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "entries", "edges"),
    [
        ("integer symmetric", "2 1 5\n3 3 1\n", {(1, 2): 5, (2, 1): 5}),
        ("integer skew-symmetric", "2 1 5\n", {(2, 1): 5, (1, 2): -5}),
        ("pattern general", "1 2\n3 1\n", {(1, 2): None, (3, 1): None}),
        ("pattern symmetric", "2 1\n", {(1, 2): None, (2, 1): None}),
        ("real general", "1 2 0.5\n1 2 0.25\n2 3 0\n", {(1, 2): 0.25, (2, 3): 0}),
    ],
)
def test_matrix_market_kinds_are_expanded(tmp_path, kind, entries, edges):
    text = f"%%MatrixMarket matrix coordinate {kind}\n3 3 {entries.count(chr(10))}\n{entries}"
    graph = read(write(tmp_path / "e.mtx", text))
    src = np.repeat(graph.ids, graph.derived.degrees).tolist()
    weights = [None] * graph.n_edges if graph.weights is None else graph.weights.tolist()
    assert (
        dict(zip(zip(src, graph.ids[graph.targets].tolist(), strict=True), weights, strict=True))
        == edges
    )


# --- devices -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(cuda.available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_an_error(tmp_path):
    path = write(tmp_path / "e.csv", lines())
    with pytest.raises(DeviceError, match="'cuda'"):
        read_graph(path, device="cuda")
    assert read_graph(path, device="auto").device == "cpu"


def test_an_unknown_device_is_an_error(tmp_path):
    with pytest.raises(DeviceError, match="'gpu' is none of"):
        read_graph(write(tmp_path / "e.csv", lines()), device="gpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*TEXTS, *BINARIES])
def test_a_graph_read_on_the_gpu_is_the_same(tmp_path, name):
    if name in TEXTS:
        write(tmp_path / name, TEXTS[name])
    else:
        BINARIES[name](str(tmp_path / name))
    graph = read_graph(tmp_path / name, device="cuda")
    assert graph.device == "cuda"
    assert graph.fingerprint == EXPECTED.fingerprint


@pytest.mark.gpu
def test_several_files_and_types_read_on_the_gpu_are_the_same(tmp_path):
    assert read_graph(spread(tmp_path / "same"), device="cuda").fingerprint == EXPECTED.fingerprint
    pq.write_table(table(SRC[:3].astype(np.int32), DST[:3], WEIGHT[:3]), tmp_path / "a.parquet")
    pq.write_table(table(SRC[3:], DST[3:], WEIGHT[3:]), tmp_path / "b.parquet")
    mixed = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert read_graph(mixed, device="cuda").fingerprint == read(mixed).fingerprint


@pytest.mark.gpu
@pytest.mark.parametrize(
    "text",
    [
        "src,dst\nb,c\nc,d\n",
        "src,dst,weight\n1,2,0.1\n2,3,0.3\n",
        "src,dst\n9223372036854775807,1\n",
    ],
)
def test_gpu_reads_values_that_cudf_would_round(tmp_path, text):
    path = write(tmp_path / "e.csv", text)
    assert read_graph(path, device="cuda").fingerprint == read(path).fingerprint


def test_options_that_contradict_each_other_are_errors(tmp_path):
    path = write(tmp_path / "e.csv", lines())
    for options, match in [
        ({"format": "xml"}, "'xml' is none of"),
        ({"header": "maybe"}, "'maybe' is none of"),
        ({"id_type": "float"}, "'float' is none of"),
        ({"delimiter": ",,"}, "one character"),
        ({"delimiter": "é"}, "must be an ASCII character"),
        ({"src_column": "a"}, "src_column and dst_column go together: name both or neither"),
        ({"weighted": False, "weight_column": "weight"}, "take one of the two"),
        ({"src_column": "a", "dst_column": "a"}, "must differ"),
        ({"weight_type": "float16"}, "'float16' is none of"),
        ({"vertices": ["a"]}, "vertices must be integers"),
    ]:
        with pytest.raises(InputError, match=match):
            read(path, **options)


def test_very_long_digits_are_refused_in_linear_time():
    digits = "4" * 2_000_000
    assert is_number(digits)
    assert is_number(f"{digits}.{digits}e5")
    assert not is_number(f"{digits}x")
    assert not is_number(f"{digits}.{digits}x")
