"""Folders whose log says what is live: live rows only, or refused by a text that names the table and its package."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import EdgeListError, InputError
from kepler_traverse.formats import ids, log_tables
from kepler_traverse.formats.ids import read_ids, read_vertex_table
from kepler_traverse.runtime.object_stores import StoredObject
from pipelines.run import given_table
from pipelines.run.given_table import read_given_table
from tests.support.edge_files import need

OLD = {"src": ["a", "b"], "dst": ["b", "c"], "weight": [1, 1]}
LIVE = {"src": ["a", "c"], "dst": ["b", "a"], "weight": [9, 4]}
LIVE_EDGES = {("a", "b", 9), ("c", "a", 4)}


def edges_of(graph):
    ids = graph.ids.to_pylist()
    return {
        (ids[u], ids[graph.targets[at]], int(graph.weights[at]))
        for u in range(graph.n_vertices)
        for at in range(graph.offsets[u], graph.offsets[u + 1])
    }


def delta_overwritten(folder):
    write = need("deltalake").write_deltalake
    write(folder, pa.table(OLD))
    write(folder, pa.table(LIVE), mode="overwrite")


def delta_deleted(folder):
    deltalake = need("deltalake")
    both = {name: OLD[name] + LIVE[name] for name in OLD}
    deltalake.write_deltalake(folder, pa.table(both))
    deltalake.DeltaTable(folder).delete("weight = 1")


def delta_partitioned(folder):
    write = need("deltalake").write_deltalake
    day = {"day": [1, 2]}
    write(folder, pa.table({**OLD, **day}), partition_by=["day"])
    write(folder, pa.table({**LIVE, **day}), mode="overwrite", partition_by=["day"])


def delta_with_deletion_vector(folder):
    """A table whose second and third row are deleted by a bitmap in the log."""
    write = need("deltalake").write_deltalake
    rows = {name: [LIVE[name][0], *OLD[name], LIVE[name][1]] for name in OLD}
    write(folder, pa.table(rows))
    deleted = [1, 2]
    container = struct.pack("<IIHHI", 12346, 1, 0, len(deleted) - 1, 16) + struct.pack(
        f"<{len(deleted)}H", *deleted
    )
    bitmap = struct.pack("<IQI", 1681511377, 1, 0) + container
    padded = bitmap + b"\0" * (-len(bitmap) % 4)
    alphabet = (
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    python = (
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    )
    text = base64.b85encode(padded).translate(bytes.maketrans(python, alphabet)).decode()
    log = os.path.join(folder, "_delta_log", "00000000000000000000.json")
    with open(log) as file:
        actions = [json.loads(line) for line in file]
    for action in actions:
        if "protocol" in action:
            features = {
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "add" in action:
            vector = {
                "storageType": "i",
                "pathOrInlineDv": text,
                "sizeInBytes": len(bitmap),
                "cardinality": len(deleted),
            }
            action["add"]["deletionVector"] = vector
    with open(log, "w") as file:
        file.writelines(json.dumps(action) + "\n" for action in actions)


def iceberg_table(folder, name="t"):
    need("pyiceberg.table")
    memory = need("pyiceberg.catalog.memory")
    catalog = memory.InMemoryCatalog("c", warehouse=f"file://{folder.parent}")
    catalog.create_namespace("n")
    schema = pa.schema({"src": pa.string(), "dst": pa.string(), "weight": pa.int64()})
    table = catalog.create_table(f"n.{name}", schema, location=f"file://{folder}")
    table.append(pa.table(OLD, schema=schema))
    table.overwrite(pa.table(LIVE, schema=schema))
    return table


def iceberg_with_hint(folder):
    table = iceberg_table(folder)
    current = table.metadata_location.rpartition("/")[2]
    (folder / "metadata" / "version-hint.text").write_text(current.removesuffix(".metadata.json"))


READ = {
    "delta, overwritten": delta_overwritten,
    "delta, deleted": delta_deleted,
    "delta, partitioned": delta_partitioned,
    "delta with a deletion vector": delta_with_deletion_vector,
    "iceberg with a hint": iceberg_with_hint,
}


@pytest.fixture(params=READ)
def lake(request, tmp_path):
    folder = tmp_path / "lake" / "a table"
    folder.parent.mkdir()
    READ[request.param](folder)
    return folder


def data_file_of(folder):
    return sorted(path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)[0]


def test_live_rows_alone_are_edges(lake):
    for given in (lake, str(lake), f"{lake}/", f"file://{lake}", str(lake.parent / "*"), [lake]):
        assert edges_of(read_graph(given)) == LIVE_EDGES
    assert edges_of(read_graph(lake, where="weight > 5")) == {("a", "b", 9)}
    assert read_graph([lake, lake]).report.rows == 4


def test_a_part_of_a_table_is_no_edge_list(lake):
    """The folder above, a folder or a file inside, a pattern of files, and those among plain files."""
    plain = lake.parent.parent / "plain.parquet"
    pq.write_table(pa.table(OLD), plain)
    file = data_file_of(lake)
    inside = [
        lake.parent,
        file,
        [file],
        [plain, file],
        str(file.parent / "*.parquet"),
        str(lake / "**" / "*.parquet"),
    ]
    if file.parent != lake:
        inside.append(file.parent)
    for given in inside:
        with pytest.raises(InputError, match=r"a table of (Delta Lake|Apache Iceberg)"):
            read_graph(given)
    with pytest.raises(EdgeListError, match="give files of one format"):
        read_graph([plain, lake])
    with pytest.raises(EdgeListError, match="leave format out"):
        read_graph(lake, format="parquet")
    assert read_graph(plain).report.rows == 2


def test_other_data_beside_a_log_is_read(lake):
    path = lake / "beside.csv"
    path.write_text("src,dst\nx,y\n")
    assert read_graph(path).report.rows == 1


@pytest.mark.parametrize("what", ["vertices", "only_vertices"])
def test_files_of_ids_are_no_tables(lake, what, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst\nx,y\n")
    for given in (lake, data_file_of(lake)):
        with pytest.raises(
            InputError, match=r"a table of (Delta Lake|Apache Iceberg).*(deltalake|pyiceberg)"
        ):
            read_graph(edges, **{what: given})


def test_metadata_that_only_a_catalog_knows_are_asked_for(tmp_path):
    folder = tmp_path / "t"
    table = iceberg_table(folder)
    with pytest.raises(EdgeListError, match="only its catalog knows which"):
        read_graph(folder)
    assert edges_of(read_graph(table.metadata_location.removeprefix("file://"))) == LIVE_EDGES
    (folder / "metadata" / "version-hint.text").write_text("17")
    with pytest.raises(EdgeListError, match="names the metadata '17'"):
        read_graph(folder)


def test_a_file_that_is_called_metadata_is_no_table(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "roads.metadata.json").write_text('{"license": "ODbL"}')
    pq.write_table(pa.table(OLD), tmp_path / "e.parquet")
    assert read_graph(tmp_path).report.rows == 2


UNREAD = {
    "Apache Hudi": [".hoodie/hoodie.properties"],
    "Apache Paimon": ["schema/schema-0", "snapshot/LATEST", "manifest/manifest-0"],
    "Spark Structured Streaming": ["_spark_metadata/0"],
}


@pytest.mark.parametrize("title", UNREAD)
def test_tables_without_a_reader_are_refused_everywhere(tmp_path, title):
    folder = tmp_path / "t"
    for name in UNREAD[title]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "day=1").mkdir()
    file = folder / "day=1" / "p.parquet"
    pq.write_table(pa.table(OLD), file)
    for given in (
        folder,
        tmp_path,
        file,
        file.parent,
        str(folder / "*" / "*.parquet"),
        str(tmp_path / "*"),
    ):
        with pytest.raises(InputError, match=f"a table of {title}"):
            read_graph(given)


def test_without_its_package_a_table_is_refused(tmp_path, monkeypatch):
    delta_overwritten(tmp_path / "t")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(
        InputError,
        match=r"a table of Delta Lake.*deltalake.*pip install .*\[tables\]'?",
    ):
        read_graph(tmp_path / "t")


def test_a_damaged_log_is_named(tmp_path):
    delta_overwritten(tmp_path / "t")
    for log in (tmp_path / "t" / "_delta_log").iterdir():
        log.write_text("{")
    with pytest.raises(EdgeListError, match=r"the table of Delta Lake cannot be read by deltalake"):
        read_graph(tmp_path / "t")


READERS = {
    "sources": lambda path: read_ids(path, "sources"),
    "attributes": lambda path: read_vertex_table(path, ["jobs"]),
    "pairs": lambda path: read_given_table(path, "pairs", lambda _names: ("vertex",)),
}


@pytest.mark.parametrize("ending", ["", ".txt", ".csv", ".parquet"])
@pytest.mark.parametrize("reader", READERS)
def test_an_object_store_is_asked_for_a_log_only_of_parquet(reader, ending, tmp_path, monkeypatch):
    """A text is no part of a table, whatever it is called."""
    here = tmp_path / "ids.csv"
    here.write_text("5\n6\n" if reader == "sources" else "vertex,jobs\n5,1\n6,2\n")
    if ending == ".parquet":
        pq.write_table(pa.table({"vertex": [5, 6], "jobs": [1, 2]}), here)
    asked = []
    for module in (ids, given_table):
        monkeypatch.setattr(module, "local_path", lambda _url: str(here))
    monkeypatch.setattr(log_tables.LogFinder, "log_above", lambda _self, path: asked.append(path))
    READERS[reader](f"s3://bucket/ids{ending}")
    assert len(asked) == (ending == ".parquet")


def test_names_in_a_folder_of_a_store_are_those_of_a_folder_on_a_disk(tmp_path, monkeypatch):
    names = ["metadata/b.json", "metadata/old/a.metadata.json", "metadata/old/c.json", "d.json"]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    stored = log_tables.StoredFolder("s3://bucket/t")

    def objects(below):
        return [StoredObject(f"s3://bucket/t/{name}", 2, "") for name in names if below in name]

    monkeypatch.setattr(stored, "_objects", objects)
    here = log_tables.LocalFolder(str(tmp_path))
    for below in ("metadata", "metadata/old", "none"):
        assert stored.names(below) == here.names(below)


@pytest.mark.parametrize("reader", READERS)
def test_what_cannot_be_read_is_looked_for_in_a_table(reader, monkeypatch):
    def missing(url):
        raise FileNotFoundError(url)

    found = ("s3://bucket/t", log_tables.LOG_FORMATS["delta"])
    for module in (ids, given_table):
        monkeypatch.setattr(module, "local_path", missing)
    monkeypatch.setattr(log_tables.LogFinder, "log_above", lambda *_: found)
    with pytest.raises(InputError, match="inside s3://bucket/t, a table of Delta Lake"):
        READERS[reader]("s3://bucket/t/part")
