"""One graph in every accepted format is one Graph, and ids and weights keep their types."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import cuda, graph_from_edges, read_graph
from kepler_traverse.errors import DeviceError, InputError
from kepler_traverse.formats import FORMATS

# Every vertex 1..5 has an edge, so formats that know n agree with those that do not; with a duplicate and a loop.
ROWS = [(1, 2, 5), (2, 3, 1), (3, 1, 7), (4, 4, 2), (3, 4, 0), (5, 1, 3), (1, 2, 4)]
SRC, DST, WEIGHT = (np.array(column, np.int64) for column in zip(*ROWS, strict=True))


def table(src=SRC, dst=DST, weight=WEIGHT, names=("src", "dst", "weight")):
    columns = [src, dst] if weight is None else [src, dst, weight]
    return pa.table(dict(zip(names, columns, strict=False)))


def lines(delimiter=",", header="src,dst,weight\n", end="\n"):
    return header.replace(",", delimiter) + "".join(f"{u}{delimiter}{v}{delimiter}{w}{end}" for u, v, w in ROWS)


def zstd(data):
    return pa.Codec("zstd").compress(data).to_pybytes()


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path, **options):
    return read_graph(path, device="cpu", **options)


def ipc(path, kind, compression=None):
    with kind(path, table().schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table(), max_chunksize=3)
    return path


def snap(blank="\t"):
    return "# Directed graph\n# Nodes: 5 Edges: 7\n\n" + lines(blank, header="")


def matrix_market():
    return f"%%MatrixMarket matrix coordinate integer general\n% made for a test\n5 5 {len(ROWS)}\n" + lines(" ", header="")


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
    "blanks.csv": lines(", ", header="src,dst,weight\n".replace(",", ",")).replace("src, dst, weight", "src,dst,weight"),
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


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".zst"])
def test_text_formats_give_the_same_graph_compressed_or_not(tmp_path, name, ending):
    squeeze = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}[ending]
    graph = read(write(tmp_path / (name + ending), squeeze(TEXTS[name].encode())))
    assert graph.fingerprint == EXPECTED.fingerprint
    assert graph.report == EXPECTED.report


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


@pytest.mark.parametrize("name", BINARIES)
def test_binary_formats_give_the_same_graph(tmp_path, name):
    BINARIES[name](str(tmp_path / name))
    assert read(tmp_path / name).fingerprint == EXPECTED.fingerprint


@pytest.mark.parametrize("name", ["plain.parquet", "file.arrow", "stream.arrows"])
def test_a_binary_file_may_be_compressed_as_a_whole(tmp_path, name):
    BINARIES[name](str(tmp_path / name))
    path = write(tmp_path / (name + ".gz"), gzip.compress((tmp_path / name).read_bytes()))
    assert read(path).fingerprint == EXPECTED.fingerprint


def test_every_format_has_a_file_in_these_tests():
    endings = {name[name.rindex(".") :] for name in [*TEXTS, *BINARIES]}
    assert all(endings & set(entry.endings) for entry in FORMATS)


def test_any_delimiter_can_be_named(tmp_path):
    assert read(write(tmp_path / "edges.csv", lines("~")), delimiter="~").fingerprint == EXPECTED.fingerprint
    assert read(write(tmp_path / "edges.data", lines(";")), format="csv").fingerprint == EXPECTED.fingerprint


def test_an_undirected_graph_is_the_same_from_text_and_parquet(tmp_path):
    pq.write_table(table(), tmp_path / "edges.parquet")
    graph = read(tmp_path / "edges.parquet", directed=False)
    assert not graph.directed
    assert graph.fingerprint == read(write(tmp_path / "edges.csv", lines()), directed=False).fingerprint
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
    write(tmp_path / "a.csv", "src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in ROWS[:4]))
    write(tmp_path / "b.csv", "weight,extra,dst,src\n" + "".join(f"{w},x,{v},{u}\n" for u, v, w in ROWS[4:]))
    assert read([tmp_path / "a.csv", tmp_path / "b.csv"]).fingerprint == EXPECTED.fingerprint


def test_int32_and_int64_files_are_read_together(tmp_path):
    pq.write_table(table(SRC[:3].astype(np.int32), DST[:3], WEIGHT[:3].astype(np.int8)), tmp_path / "a.parquet")
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
        ("src,dst,cost", {}, False),
        ("src,dst,cost", {"weight_column": "cost"}, True),
        ("src,dst,weight", {"weighted": False}, False),
        ("a,b,c", {"header": "yes"}, True),
        ("a,b,c", {"header": "yes", "weighted": False}, False),
        ("c,b,a", {"src_column": "b", "dst_column": "c", "weight_column": "a"}, True),
        ("c,b,a", {"src_column": "b", "dst_column": "c"}, False),
        ("b,weight,a", {"src_column": "b", "dst_column": "a", "weighted": True}, True),
    ],
)
def test_columns_are_those_named_or_the_obvious_ones(tmp_path, header, options, has_weights):
    graph = read(write(tmp_path / "edges.csv", header + "\n1,2,3\n3,1,2\n"), **options)
    assert (graph.weights is not None) == has_weights


def test_columns_of_a_file_without_header_are_named_by_position(tmp_path):
    path = write(tmp_path / "edges.csv", "9,1,2\n8,2,3\n")
    graph = read(path, src_column="1", dst_column="2", weight_column="0")
    assert graph.ids.tolist() == [1, 2, 3]
    assert graph.weights.tolist() == [9.0, 8.0]


# --- ids ---------------------------------------------------------------------------------------------------------------

ID_COLUMNS = {
    "negative": np.array([-5, -1, 3, -5], np.int64),
    "beyond 32 bits": np.array([2**31, 2**40, -(2**62), 7], np.int64),
    "the ends of int64": np.array([-(2**63), 2**63 - 1, 0, 1], np.int64),
    "above 2^63": np.array([2**63, 2**64 - 1, 0, 5], np.uint64),
    "int8": np.array([-128, 127, 0, 1], np.int8),
    "uint32": np.array([0, 2**32 - 1, 1, 2], np.uint32),
}


@pytest.mark.parametrize("name", ID_COLUMNS)
def test_integer_ids_of_any_type_come_back_as_they_were(tmp_path, name):
    ids = ID_COLUMNS[name]
    expected = graph_from_edges(ids[:-1], ids[1:])
    pq.write_table(table(ids[:-1], ids[1:], None), tmp_path / "edges.parquet")
    text = "".join(f"{u},{v}\n" for u, v in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True))
    for graph in (
        read(tmp_path / "edges.parquet"),
        read(write(tmp_path / "edges.csv", text), id_type=ids.dtype.name),
        read(write(tmp_path / "edges.txt", text.replace(",", " ")), id_type=ids.dtype.name),
    ):
        assert graph.ids.dtype == ids.dtype
        assert graph.ids.tolist() == sorted(set(ids.tolist()))
        assert graph.fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_string_ids_are_ordered_by_their_bytes(tmp_path, kind):
    src, dst = ["b", "ä", "zebra", "A"], ["A", "b", "ä", "\U0001f600"]
    path = tmp_path / "edges.arrow"
    with pa.ipc.new_file(path, pa.schema([("src", kind), ("dst", kind)])) as writer:
        writer.write_table(pa.table({"src": pa.array(src).cast(kind), "dst": pa.array(dst).cast(kind)}))
    graph = read(path)
    names = sorted({*src, *dst}, key=str.encode)
    assert graph.ids.to_pylist() == names
    assert graph.numbers_of(["ä", "A"]).tolist() == [names.index("ä"), names.index("A")]
    text = "src,dst\n" + "".join(f"{u},{v}\n" for u, v in zip(src, dst, strict=True))
    assert read(write(tmp_path / "edges.csv", text)).fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    ("first", "kind"), [("1", "int64"), ("-1", "int64"), ("007", "string"), ("0x7", "string"), ("+7", "string")]
)
def test_the_first_row_of_a_text_tells_the_type_of_ids(tmp_path, first, kind):
    graph = read(write(tmp_path / "edges.csv", f"src,dst\n{first},12\n12,13\n"))
    assert graph._id_kind == kind


def test_integers_are_taken_as_strings_on_request(tmp_path):
    pq.write_table(table(), tmp_path / "edges.parquet")
    graph = read(tmp_path / "edges.parquet", id_type="string")
    assert graph.ids.to_pylist() == ["1", "2", "3", "4", "5"]
    for name in ("edges.csv", "edges.gr", "edges.mtx"):
        assert read(write(tmp_path / name, TEXTS[name]), id_type="string").fingerprint == graph.fingerprint


def test_strings_are_taken_as_integers_on_request(tmp_path):
    pq.write_table(table(pa.array(SRC).cast("string"), pa.array(DST).cast("string")), tmp_path / "edges.parquet")
    assert read(tmp_path / "edges.parquet", id_type="int64").fingerprint == EXPECTED.fingerprint
    padded = "src,dst\n007, +8\n -7,9 \n"
    assert read(write(tmp_path / "a.csv", padded), id_type="int64").ids.tolist() == [-7, 7, 8, 9]


@pytest.mark.parametrize("more", [[9, 1], np.array([9, 1], np.int32)])
def test_isolated_vertices_may_be_given(tmp_path, more):
    assert read(write(tmp_path / "e.csv", lines()), vertices=more).ids.tolist() == [1, 2, 3, 4, 5, 9]
    pq.write_table(table(SRC.astype(np.int32), DST.astype(np.int32)), tmp_path / "e.parquet")
    graph = read(tmp_path / "e.parquet", vertices=more)
    assert graph.ids.dtype == np.int32
    assert graph.ids.tolist() == [1, 2, 3, 4, 5, 9]


def test_isolated_vertices_may_be_strings(tmp_path):
    graph = read(write(tmp_path / "e.csv", "src,dst\nb,c\n"), vertices=["a", "b"])
    assert graph.ids.to_pylist() == ["a", "b", "c"]
    assert graph.report.isolated_vertices == 1


@pytest.mark.parametrize("name", ["e.gr", "e.mtx"])
def test_formats_that_number_their_vertices_keep_isolated_ones(tmp_path, name):
    text = {"e.gr": "p sp 9 1\na 2 7 3\n", "e.mtx": "%%MatrixMarket matrix coordinate integer general\n9 9 1\n2 7 3\n"}[name]
    path = write(tmp_path / name, text)
    assert read(path).ids.tolist() == list(range(1, 10))
    assert read(path, id_type="int16").ids.dtype == np.int16
    assert read(path, vertices=[20]).ids.tolist() == [*range(1, 10), 20]
    assert len(read(path, id_type="string").ids) == 9


# --- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "source", "kind"),
    [
        (["1", "2"], "int64", "float32"),
        (["1", str(2**24 + 1)], "int64", "float64"),
        (["1", "2.5"], "float64", "float64"),
        (["2.5", "1"], "float64", "float64"),
        (["1e3", "-0.0"], "float64", "float64"),
        ([" 1", "+2 "], "int64", "float32"),
        (["0.1", ".3"], "float64", "float64"),
    ],
)
def test_text_weights_are_integers_if_all_are_else_floats(tmp_path, texts, source, kind):
    graph = read(write(tmp_path / "e.csv", f"src,dst,weight\n1,2,{texts[0]}\n2,3,{texts[1]}\n"))
    assert (graph.report.weight_source, graph.weights.dtype.name) == (source, kind)
    assert graph.weights.tolist() == [float(text) for text in texts]


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64])
def test_stored_weights_keep_their_values(tmp_path, kind):
    pq.write_table(table(weight=WEIGHT.astype(kind)), tmp_path / "e.parquet")
    graph = read(tmp_path / "e.parquet", weight_type="float32")
    assert graph.fingerprint == EXPECTED.fingerprint


def test_weights_on_request_are_float64(tmp_path):
    assert read(write(tmp_path / "e.csv", lines()), weight_type="float64").weights.dtype == np.float64


def test_a_late_decimal_turns_earlier_blocks_to_floats(tmp_path):
    rows = [(i, i + 1, i % 100) for i in range(150_000)]
    text = "src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in rows) + "150000,150001,0.5\n"
    graph = read(write(tmp_path / "e.csv", text))
    assert graph.report.weight_source == "float64"
    assert graph.weights[:3].tolist() == [0.0, 1.0, 2.0]
    assert graph.weights[-1] == 0.5
    blanks = write(tmp_path / "e.txt", "# head\n" + text.partition("\n")[2].replace(",", "  "))
    assert read(blanks).fingerprint == graph.fingerprint


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
    src = np.repeat(graph.ids, graph.degrees).tolist()
    weights = [None] * graph.n_edges if graph.weights is None else graph.weights.tolist()
    assert dict(zip(zip(src, graph.ids[graph.targets].tolist(), strict=True), weights, strict=True)) == edges


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
    pq.write_table(table(SRC[:3].astype(np.int32), DST[:3]), tmp_path / "a.parquet")
    pq.write_table(table(SRC[3:], DST[3:]), tmp_path / "b.parquet")
    mixed = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert read_graph(mixed, device="cuda").fingerprint == read(mixed).fingerprint


@pytest.mark.gpu
@pytest.mark.parametrize(
    "text", ["src,dst\nb,c\nc,d\n", "src,dst,weight\n1,2,0.1\n2,3,0.3\n", "src,dst\n9223372036854775807,1\n"]
)
def test_what_cudf_would_not_read_exactly_is_the_same_on_the_gpu(tmp_path, text):
    path = write(tmp_path / "e.csv", text)
    assert read_graph(path, device="cuda").fingerprint == read(path).fingerprint


# --- any edge list -----------------------------------------------------------------------------------------------------

integer_ids = st.integers(-(2**63), 2**63 - 1)
# No quotes, controls or surrogates: how to write those is the CSV writer's business, not ours.
string_ids = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=5)
weights = st.one_of(st.none(), st.integers(0, 2**24), st.floats(0, 1e300, allow_nan=False))


@settings(max_examples=60)
@given(data=st.data(), ids=st.sampled_from(["int64", "string"]), directed=st.booleans())
def test_any_edge_list_is_the_same_from_csv_and_parquet(tmp_path_factory, data, ids, directed):
    one = integer_ids if ids == "int64" else string_ids
    kind = data.draw(st.sampled_from(["none", "integers", "floats"]))
    weight = {"none": st.none(), "integers": st.integers(0, 2**53), "floats": st.floats(0, 1e300)}[kind]
    rows = data.draw(st.lists(st.tuples(one, one, weight), min_size=1, max_size=30))
    columns = {"src": [r[0] for r in rows], "dst": [r[1] for r in rows]}
    if kind != "none":
        columns["weight"] = pa.array([r[2] for r in rows], pa.int64() if kind == "integers" else pa.float64())
    edges = pa.table(columns)
    folder = tmp_path_factory.mktemp("edges")
    pq.write_table(edges, folder / "e.parquet", row_group_size=7)
    pyarrow.csv.write_csv(edges, folder / "e.csv")
    stored = read(folder / "e.parquet", directed=directed, weight_type="float64")
    text = read(folder / "e.csv", directed=directed, weight_type="float64", id_type=ids)
    assert stored.fingerprint == text.fingerprint


def test_options_that_contradict_each_other_are_errors(tmp_path):
    path = write(tmp_path / "e.csv", lines())
    for options, match in [
        ({"format": "xml"}, "'xml' is none of"),
        ({"header": "maybe"}, "'maybe' is none of"),
        ({"id_type": "float"}, "'float' is none of"),
        ({"delimiter": ",,"}, "one character"),
        ({"src_column": "a"}, "name both or neither"),
        ({"weighted": False, "weight_column": "weight"}, "take one of the two"),
        ({"src_column": "a", "dst_column": "a"}, "must differ"),
        ({"weight_type": "float16"}, "'float16' is none of"),
        ({"vertices": ["a"]}, "vertices must be integers"),
    ]:
        with pytest.raises(InputError, match=match):
            read(path, **options)
