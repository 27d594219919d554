"""Logs of tables that someone has changed: verify and finish name the field, or no reader reads anything else."""

import copy
import io
import json
import os
import random
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from pipelines import finish, verify
from pipelines.output.iceberg_log import plain_record
from pipelines.output.run_folder import read_manifest
from pipelines.output.store import Store
from pipelines.output.table_logs import DELTA_COMMIT, DELTA_LOG, HINT, ICEBERG_LOG
from pipelines.output.tables import TABLE_FORMATS, differing_table
from tests.job.test_forged_outputs import (
    a_dangling_link,
    a_fifo,
    a_folder,
    a_link_to_the_right_bytes,
    a_socket,
)
from tests.support.jobs import call, write_edges
from tests.support.tiers import few

pytest.importorskip("deltalake", reason="deltalake (extra tables) is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg (extra tables) is not installed")
DELTA_FILE = f"{DELTA_LOG}/{DELTA_COMMIT}"
WAYS = ("drop", "null", "other", "true", "text", "more")
SHAPES = [a_dangling_link, a_link_to_the_right_bytes, a_folder, a_fifo, a_socket]


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.csv.parquet", [1, 2, 3, 7], [2, 3, 4, 8]
    )


@pytest.fixture(scope="module", params=sorted(TABLE_FORMATS))
def table(request, edges, tmp_path_factory):
    """A run of two parts that is a table: its format, its folder and its manifest."""
    from pipelines import batch_sources

    out = tmp_path_factory.mktemp(request.param) / "out"
    words = [
        edges,
        "--sources",
        "1,2",
        "--batch-size",
        1,
        "--device",
        "cpu",
        "--no-report",
        "--output",
        out,
    ]
    assert batch_sources.main([str(word) for word in words]) == 0
    assert finish.main([str(out), "--table", request.param]) == 0
    return request.param, out, read_manifest(Store(out))


@pytest.fixture
def log(table):
    """The table, whose log is as it was once the test has ended."""
    kind, out, manifest = table
    folder = out / TABLE_FORMATS[kind].folder
    kept = shutil.copytree(folder, out.parent / "kept")
    yield kind, out, manifest
    shutil.rmtree(folder)
    shutil.move(kept, folder)


def answers(kind, out):
    """What the packages of a format read, with filters that skip parts and without."""
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(out)
        found = [table.to_pyarrow_table(filters=[("source", "=", source)]) for source in (1, 2, 9)]
        return [
            rows.num_rows for rows in (*found, table.to_pyarrow_table())
        ], table.schema().to_json()
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(f"file://{out}/_iceberg")
    found = [table.scan(row_filter=f"source = {source}").to_arrow() for source in (1, 2, 9)]
    return [rows.num_rows for rows in (*found, table.scan().to_arrow())], str(table.schema())


def places(value, at=()):
    """Every place in nested dicts and lists."""
    if at:
        yield at
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield from places(each, (*at, key))


def another(old):
    """Return another value of the same type."""
    by_type = {
        bool: lambda: not old,
        int: lambda: old + 1,
        str: lambda: f"{old}x",
        list: lambda: [7],
        bytes: lambda: b"\xff",
    }
    return by_type.get(type(old), lambda: {"x": 1})()


def changed(value, place, way):
    """Return a copy with another value in one place; None if the way is not for this place."""
    copied = copy.deepcopy(value)
    outer = copied
    for key in place[:-1]:
        outer = outer[key]
    old = outer[place[-1]]
    if way == "drop":
        del outer[place[-1]]
    elif way == "more" and isinstance(old, dict):
        old["unknown"] = 1
    elif way == "more":
        return None
    else:
        outer[place[-1]] = {"null": None, "other": another(old), "true": True, "text": "zzz"}[way]
    return copied


def delta_of(out):
    """Return the actions of a Delta table, with the JSON in them read, too, and a function that writes them."""
    actions = [json.loads(line) for line in (out / DELTA_FILE).read_text().splitlines()]
    inner = (("add", "stats"), ("metaData", "schemaString"))
    for action in actions:
        for kind, key in inner:
            if kind in action:
                action[kind][key] = json.loads(action[kind][key])

    def write(actions):
        actions = copy.deepcopy(actions)
        for action in actions:
            for kind, key in inner:
                if isinstance(action, dict) and isinstance(action.get(kind), dict):
                    held = action[kind]
                    if isinstance(held.get(key), dict):
                        held[key] = json.dumps(held[key])
        (out / DELTA_FILE).write_text("\n".join(map(json.dumps, actions)))

    return actions, write


def metadata_of(out):
    """Return the metadata of an Iceberg table, and a function that writes them."""
    path = out / ICEBERG_LOG / f"{(out / ICEBERG_LOG / HINT).read_text()}.metadata.json"
    return json.loads(path.read_text()), lambda content: path.write_text(json.dumps(content))


class Memory:
    """A file in memory, as pyiceberg reads and writes it."""

    def __init__(self, data=b""):
        self.data = data

    def open(self, seekable=True):  # noqa: ARG002
        return io.BytesIO(self.data)

    def create(self, overwrite=False):  # noqa: ARG002
        held = io.BytesIO()
        held.close = lambda: setattr(self, "data", held.getvalue())
        return held


def avro_of(path):
    """Return the records of an Avro file, and a function that writes others in their place."""
    from pyiceberg.avro.file import AvroFile, AvroOutputFile

    with AvroFile(Memory(path.read_bytes())) as avro:
        records = list(avro)
        schema = avro.schema
        meta = avro.header.meta
    name = json.loads(meta["avro.schema"])["name"]
    content = [plain_record(record, schema.as_struct()) for record in records]

    def typed(value, kind, like):
        if not hasattr(like, "_data"):
            return value
        made = copy.deepcopy(like)
        made._data = [
            typed(value[field.name], field.field_type, each)
            for field, each in zip(kind.fields, like._data, strict=True)
        ]
        return made

    def write(content):
        file = Memory()
        own = {key: value for key, value in meta.items() if not key.startswith("avro.")}
        with AvroOutputFile(file, schema, name, metadata=own) as avro:
            avro.write_block(
                [
                    typed(each, schema.as_struct(), like)
                    for each, like in zip(content, records, strict=False)
                ]
            )
        path.write_bytes(file.data)

    return content, write


def assert_named_or_harmless(log, content, write, ways, seed, most):
    """Change one place after another: the difference is reported, or readers read what they read before."""
    kind, out, manifest = log
    right = answers(kind, out)
    n_found = 0
    cases = [(place, way) for place in places(content) for way in ways]
    random.Random(seed).shuffle(cases)
    for place, way in cases[:most]:
        forged = changed(content, place, way)
        if forged is None or forged == content:
            continue
        try:
            write(forged)
        except Exception:  # no such value is of the type of the field
            continue
        said = differing_table(Store(out), manifest, kind)
        n_found += bool(said)
        assert "unexpected" not in said
        assert said or answers(kind, out) == right, (place, way)
    write(content)
    assert n_found > 0
    assert differing_table(Store(out), manifest, kind) == ""


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("most", few([60, 10_000], 1))
def test_each_field_of_a_log_is_compared(log, seed, most):
    kind, out, _ = log
    content, write = delta_of(out) if kind == "delta" else metadata_of(out)
    assert_named_or_harmless(log, content, write, WAYS, seed, most)


@pytest.mark.parametrize("most", few([20, 10_000], 1))
@pytest.mark.parametrize("name", ["snap-*.avro", "*-m0.avro"])
def test_each_field_of_a_manifest_is_compared(log, name, most):
    kind, out, _ = log
    if kind == "iceberg":
        (path,) = (out / ICEBERG_LOG).glob(name)
        content, write = avro_of(path)
        write(content)  # as the test writes it, it is still the same
        listing, write_listing = avro_of(next((out / ICEBERG_LOG).glob("snap-*.avro")))
        if name != "snap-*.avro":
            listing[0]["manifest_length"] = path.stat().st_size
            write_listing(listing)

            def write_both(content):
                write(content)
                listing[0]["manifest_length"] = path.stat().st_size
                write_listing(listing)

            assert_named_or_harmless(log, content, write_both, ("null", "other"), 0, most)
        else:
            assert_named_or_harmless(log, content, write, ("null", "other"), 0, most)


def test_changed_bounds_are_named_with_their_field(log, edges, capsys):
    kind, out, _ = log
    if kind == "delta":
        actions, write = delta_of(out)
        (stats,) = (
            each["add"]["stats"]
            for each in actions
            if "add" in each and "-000001" in each["add"]["path"]
        )
        stats["maxValues"]["source"] = 0
        write(actions)
        field = "part-000001.parquet: stats.maxValues.source is 0, and of the part it is 2"
    else:
        (path,) = (out / ICEBERG_LOG).glob("*-m0.avro")
        content, write = avro_of(path)
        content[1]["data_file"]["upper_bounds"][1] = b"\0" * 8
        write(content)
        listing, write_listing = avro_of(next((out / ICEBERG_LOG).glob("snap-*.avro")))
        listing[0]["manifest_length"] = path.stat().st_size
        write_listing(listing)
        field = "part-000001.parquet: data_file.upper_bounds.1 is "
    code, said, _ = call(capsys, out, edges, "--device", "cpu", program=verify.main)
    assert (code, field in said) == (5, True), said
    code, _, said = call(capsys, out, "--table", kind, program=finish.main)
    assert (code, field in said) == (2, True), said
    assert f"delete {TABLE_FORMATS[kind].folder}, and run finish again" in said
    shutil.rmtree(out / TABLE_FORMATS[kind].folder)
    assert call(capsys, out, "--table", kind, program=finish.main)[0] == 0
    assert call(capsys, out, edges, "--device", "cpu", program=verify.main)[0] == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_no_regular_file_is_never_opened(log, edges, capsys, shape):
    kind, out, _ = log
    folder = out / TABLE_FORMATS[kind].folder
    names = sorted(path.relative_to(out) for path in folder.rglob("*"))
    checkpoint = Path(DELTA_LOG, "_last_checkpoint")  # which readers open if it is there
    names += [checkpoint] if kind == "delta" else []
    kept = shutil.copytree(folder, out.parent / "whole")
    for name in [name for name in names if not (shape is a_folder and (out / name).is_dir())]:
        if (out / name).is_dir():
            shutil.rmtree(out / name)
        shape(out / name)
        code, said, _ = call(capsys, out, edges, "--device", "cpu", program=verify.main)
        assert (code, "verified (" in said, name.parts[0] in said) == (5, False, True), (name, said)
        code, _, said = call(capsys, out, "--table", kind, program=finish.main)
        assert code == 2, (name, said)
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        for elsewhere in [each for each in out.parent.rglob("elsewhere") if each.is_file()]:
            elsewhere.unlink()
    shutil.rmtree(kept)
    assert not os.path.lexists("/nonexistent")


def test_the_bounds_of_a_log_are_those_of_the_rows(log):
    import pyarrow.parquet as pq

    kind, out, _ = log
    if kind == "delta":
        for action in delta_of(out)[0]:
            if "add" in action:
                part = pq.read_table(out / action["add"]["path"])
                for name in part.column_names:
                    bounds = pc.min_max(part[name]).as_py()
                    stats = action["add"]["stats"]
                    assert (stats["minValues"][name], stats["maxValues"][name]) == (
                        bounds["min"],
                        bounds["max"],
                    )


@pytest.mark.parametrize("what", ["statistics", "bloom filter", "order"])
def test_a_part_whose_footer_misleads_readers_is_found(edges, tmp_path, capsys, what):
    """As of a part that others have written anew, with a manifest that fits it."""
    import hashlib

    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipelines import batch_sources
    from tests.support.jobs import manifest_of, seal

    out = tmp_path / "out"
    words = [
        edges,
        "--sources",
        "1,2",
        "--batch-size",
        2,
        "--device",
        "cpu",
        "--no-report",
        "--output",
        out,
    ]
    assert batch_sources.main([str(word) for word in words]) == 0
    path = out / "part-000000.parquet"
    file = pq.ParquetFile(path)
    table = file.read()
    metadata = file.metadata.metadata
    options = {}
    if what == "bloom filter":
        options["bloom_filter_options"] = {"vertex": True}
    if what == "order":  # the rows do not ascend by their distance
        options["sorting_columns"] = [pq.SortingColumn(2)]
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {key: value for key, value in metadata.items() if key != b"ARROW:schema"}
        )
    if what == "statistics":
        held = path.read_bytes()
        least = pa.scalar(1, pa.int64()).as_py().to_bytes(8, "little")
        footer = held[-8 - int.from_bytes(held[-8:-4], "little") :]
        forged = footer.replace(b"\x28\x08" + least, b"\x28\x08" + (2).to_bytes(8, "little"))
        forged = forged if forged != footer else footer.replace(least, (2).to_bytes(8, "little"))
        path.write_bytes(held[: -len(footer)] + forged)
    manifest = manifest_of(out)
    data = path.read_bytes()
    manifest["parts"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    seal(out, manifest)
    code, said, _ = call(capsys, out, edges, "--device", "cpu", program=verify.main)
    assert (code, "statistics: part-000000.parquet" in said) == (5, True), said
