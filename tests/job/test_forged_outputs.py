"""Forged output files of every kind: one clear error or a named fault, never a hang, never "verified"."""

import copy
import hashlib
import itertools
import json
import os
import shutil
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import OutputError
from pipelines import batch_sources, verify
from pipelines.output.layout import Layout
from pipelines.output.manifest_types import Manifest, adapter
from pipelines.output.part_file import FOOTER_KEY, checked_part, part_name
from pipelines.output.run_folder import MANIFEST, SUCCESS, check_folder
from pipelines.output.store import Store
from tests.support import tiers
from tests.support.jobs import random_edges, seal

N_SOURCES = 10
BATCH_SIZE = 4
NAMES = [MANIFEST, SUCCESS, part_name(1), "_lock"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run: its folder, its edge list, and its command line without ``--output``."""
    folder = tmp_path_factory.mktemp("runs")
    edges = random_edges(folder / "edges.parquet", 3, 60, 300, (1, 9))
    words = [edges, "--algorithm", "sssp", "--random-sources", N_SOURCES, "--batch-size", BATCH_SIZE, "--workers", 1,
             "--device", "cpu"]  # fmt: skip
    words = [str(word) for word in words]
    assert batch_sources.main([*words, "--output", str(folder / "out"), "--no-report"]) == 0
    return folder / "out", edges, words


class Run:
    """A copy of the finished run that a test may spoil."""

    def __init__(self, finished, folder: Path, capsys):
        original, self.edges, self._words = finished
        self.folder = folder / "out"
        self._capsys = capsys
        shutil.copytree(original, self.folder)

    @property
    def manifest(self) -> dict:
        return json.loads((self.folder / MANIFEST).read_text())

    def seal(self, manifest: bytes | dict) -> None:
        seal(self.folder, manifest)

    def verify(self) -> tuple[int, str]:
        return self._ran(verify.main([str(self.folder), str(self.edges), "--device", "cpu"]))

    def resume(self, *more) -> tuple[int, str]:
        words = [*self._words, "--output", str(self.folder), "--resume", "--no-report", *more]
        return self._ran(batch_sources.main(words))

    def _ran(self, code: int) -> tuple[int, str]:
        captured = self._capsys.readouterr()
        text = captured.out + captured.err
        assert "unexpected" not in text
        assert "Traceback" not in text
        return code, text

    def assert_refused(self, name: str) -> None:
        """Verify reports a fault or refuses the output; resuming refuses or repairs it. Both messages name the file."""
        code, text = self.verify()
        assert code in (2, 5), text
        assert name in text
        assert "verified (" not in text
        code, text = self.resume()
        assert code == 2, text
        assert name in text
        assert text.startswith("error: ")
        assert len(text.splitlines()) == 1


@pytest.fixture
def run(finished, tmp_path, capsys):
    return Run(finished, tmp_path, capsys)


def a_dangling_link(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/nonexistent/victim")


def a_link_to_the_right_bytes(path):
    if path.exists():
        path.rename(path.parent.parent / "elsewhere")
    else:
        (path.parent.parent / "elsewhere").touch()
    path.symlink_to(path.parent.parent / "elsewhere")


def a_folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def a_fifo(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def a_socket(path):
    path.unlink(missing_ok=True)
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "shape", [a_dangling_link, a_link_to_the_right_bytes, a_folder, a_fifo, a_socket]
)
def test_special_files_are_never_verified_nor_waited_at(run, name, shape):
    shape(run.folder / name)
    if name == "_lock":  # of which verify knows nothing
        code, text = run.resume()
        assert (code, name in text) == (2, True)
        assert not Path("/nonexistent").exists()
    else:
        run.assert_refused(name)


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_file_that_the_system_does_not_read_is_named(run, name, monkeypatch):
    real = os.open

    def refusing(path, *more, **keywords):
        if os.fspath(path).endswith(name):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *more, **keywords)

    monkeypatch.setattr("kepler_traverse.runtime.regular_files.os.open", refusing)
    code, text = run.verify()
    assert (code in (2, 5), name in text) == (True, True), text
    if name != SUCCESS:  # which is written anew
        code, text = run.resume()
        assert (code, name in text) == (2, True), text


TEXTS = {
    "empty": b"",
    "cut short": None,
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "UTF-16": '{"format": 2}'.encode("utf-16"),
    "nested deeply": b'{"format": 2, "parts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested": b'{"format": 2, "parts": ' + b"[" * 50 + b"]" * 50 + b"}",
    "a key twice": None, "NaN": None, "infinity": None, "beyond 64 bits": None, "very many digits": None,
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_a_manifest_that_is_no_json_of_one_meaning_is_refused(run, what):
    whole = (run.folder / MANIFEST).read_bytes()
    changed = {
        "cut short": whole[: len(whole) // 2],
        "a key twice": whole.replace(b'"format": 2,', b'"format": 2, "format": 2,'),
        "NaN": whole.replace(b'"workers": 1', b'"workers": NaN'),
        "infinity": whole.replace(b'"read": ', b'"read": 1e999, "more": '),
        "beyond 64 bits": whole.replace(
            b'"duplicate_sources": 0', b'"duplicate_sources": ' + b"9" * 400
        ),
        "very many digits": whole.replace(
            b'"duplicate_sources": 0', b'"duplicate_sources": ' + b"9" * 5000
        ),
    }
    text = changed.get(what, TEXTS[what])
    assert text != whole
    run.seal(text)
    run.assert_refused(MANIFEST)


def test_a_run_writes_no_key_that_its_manifest_does_not_define(run):
    manifest = run.manifest
    del manifest["graph"]["built"]  # of whose fields the definition has those that are used
    adapter(Manifest).validate_python(manifest, extra="forbid")


def places(value, at=()):
    """Every place in a manifest, of lists the first entry's alone."""
    yield at
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:1])
        if isinstance(value, list)
        else ()
    )
    for key, held in inner:
        yield from places(held, (*at, key))


def changed_at(manifest, place, value):
    changed = copy.deepcopy(manifest)
    outer = changed
    for key in place[:-1]:
        outer = outer[key]
    if value is LEFT_OUT:
        del outer[place[-1]]
    else:
        outer[place[-1]] = value
    return changed


LEFT_OUT = object()
WRONG = [
    LEFT_OUT,
    None,
    True,
    -1,
    10**9,
    10**30,
    0.5,
    1e300,
    "x",
    "<b>\x1b[31m",
    "0" * 64,
    [],
    [[]],
    {},
    {"x": 1},
]
# Fields that verification does not depend on: those that are only displayed, and settings other than those of reading.
SHOWN = {
    "means", "direction", "device", "strategy", "workers", "memory", "duplicate_sources", "versions",
    "seconds", "built", "reused", "vertices", "stored_edges", "started", "ended", "phases",
    "worker", "edges", "rounds", "slowest", "distances", "settings", "retried", "failed",
    "status", "directed", "choice",
}  # fmt: skip


def test_manifest_fields_of_wrong_types_are_found_unless_only_displayed(run):
    manifest = run.manifest
    tried = refused = 0
    for place, value in tiers.few(itertools.product(filter(None, places(manifest)), WRONG), 300):
        text = json.dumps(changed_at(manifest, place, value))
        if text == json.dumps(manifest):
            continue
        run.seal(text.encode())
        code, text = run.verify()
        assert code in (0, 2, 5), (place, value, text)
        tried, refused = tried + 1, refused + (code != 0)
        if code == 0:
            assert SHOWN & set(place), (place, value)
    assert tried > (1000 if tiers.ALL else 200)
    assert refused > tried // 2


def refusal(folder) -> str:
    try:
        check_folder(Store(folder), resume=True)
    except OutputError as error:
        return str(error)
    return ""


def test_resuming_handles_manifest_fields_of_wrong_types(run):
    manifest = run.manifest
    tried = 0
    # Resuming takes nothing of the settings.
    taken = [place for place in places(manifest) if place and place[0] != "settings"]
    for place, value in tiers.few(itertools.product(taken, WRONG), 100):
        changed = changed_at(manifest, place, value)
        run.seal(changed)
        tried += 1
        if MANIFEST in refusal(run.folder):
            continue
        if value in ([], {}, 10**9, "x") and tried % 3:  # a run takes a while
            continue
        code, text = run.resume()
        assert code in (0, 2), (place, value, text)
        if code == 0:
            assert f"digest: {manifest['digest']}" in text, (place, value)
    assert tried > (500 if tiers.ALL else 50)


@pytest.mark.parametrize(
    "change", [{"batches": 10**9}, {"batches": 10**6, "sources": 4 * 10**6}, {"sources": 2**62}]
)
def test_a_number_in_a_manifest_takes_neither_time_nor_memory(run, change):
    run.seal(run.manifest | change)
    assert run.verify()[0] in (2, 5)


def footer_of(path):
    with pq.ParquetFile(path) as file:
        return json.loads(file.metadata.metadata[FOOTER_KEY])


def with_footer(path, footer: bytes | None, change=lambda table: table):
    """Write a part again with another footer, or with other columns."""
    with pq.ParquetFile(path) as file:
        table = change(file.read())
    others = {key: value for key, value in table.schema.metadata.items() if key != FOOTER_KEY}
    table = table.replace_schema_metadata(others)
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        if footer is not None:
            writer.add_key_value_metadata({FOOTER_KEY: footer})


def resealed(run, number):
    path = run.folder / part_name(number)
    manifest = run.manifest
    facts = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    manifest["parts"][number] |= facts
    run.seal(manifest)


def footers(right: dict):
    yield from (
        None,
        b"",
        b"[]",
        b"\xff",
        b"[" * 50_000,
        json.dumps(right).encode().replace(b"{", b'{"run": 1, ', 1),
    )
    for key in ("format", "run", "part", "result", "rows", "sources", "checksums"):
        for value in (LEFT_OUT, None, True, -1, 10**30, 0.5, "x", [], [None], {}, [10**30], [{}]):
            if value != right[key]:
                yield json.dumps(changed_at(right, (key,), value)).encode()


def test_every_wrong_footer_is_found_and_such_a_part_is_computed_again(run):
    path = run.folder / part_name(1)
    whole = path.read_bytes()
    footer = footer_of(path)
    entry = run.manifest["parts"][1]
    graph = read_graph(run.edges, device="cpu")
    known = (run.folder, 1, Layout(run=footer["run"]), footer["sources"], graph, None)
    assert checked_part(*known) == {
        key: entry[key] for key in ("file", "rows", "sha256", "checksum", "bytes")
    }
    tried = 0
    for wrong in footers(footer):
        path.write_bytes(whole)
        with_footer(path, wrong)
        resealed(run, 1)
        code, text = run.verify()
        assert (code, path.name in text) == (5, True), (wrong, text)
        assert checked_part(*known) is None, wrong
        tried += 1
    assert tried > 80


COLUMNS = {
    "lists": lambda table: pa.array([[1]] * table.num_rows),
    "bytes": lambda table: pa.array([b"x"] * table.num_rows),
    "dates": lambda table: pa.array([1] * table.num_rows, pa.date32()),
    "nulls": lambda table: pa.nulls(table.num_rows),
    "a null": lambda table: pa.array([None, *range(1, table.num_rows)], table.schema.field(0).type),
    "booleans": lambda table: pa.array([True] * table.num_rows),
    "decimals": lambda table: pa.array([1] * table.num_rows, pa.int32()).cast(pa.decimal128(20)),
    "strings": lambda table: pa.array(["x"] * table.num_rows),
    "large numbers": lambda table: pa.array([2**64 - 1] * table.num_rows, pa.uint64()),
    "dictionaries": lambda table: pa.array(["x"] * table.num_rows).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["source", "vertex", "distance"])
def test_columns_of_another_kind_are_found(run, name, kind):
    path = run.folder / part_name(1)
    footer = footer_of(path)

    def change(table):
        return table.set_column(table.schema.get_field_index(name), name, COLUMNS[kind](table))

    with_footer(path, json.dumps(footer).encode(), change)
    resealed(run, 1)
    code, text = run.verify()
    assert (code, path.name in text) == (5, True), text
    known = (
        run.folder,
        1,
        Layout(run=footer["run"]),
        footer["sources"],
        read_graph(run.edges, device="cpu"),
        None,
    )
    assert checked_part(*known) is None


def test_part_missing_in_the_manifest_leaves_its_sources_unverified(run):
    manifest = run.manifest
    (run.folder / part_name(2)).unlink()
    manifest["parts"].pop()
    run.seal(manifest)
    assert run.verify()[0] == 5


def test_an_extra_part_is_refused_by_resuming_and_found_by_verify(run):
    shutil.copy(run.folder / part_name(0), run.folder / part_name(9))
    before = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    run.assert_refused(part_name(9))
    assert {path.name: path.read_bytes() for path in run.folder.iterdir()} == before


def test_a_forged_manifest_with_a_mark_that_fits_is_not_taken_over_by_resuming(run):
    right = run.manifest
    for forged in (
        {"parts": []},
        {"digest": "0" * 16 + "-" + "0" * 16},
        {"parts": right["parts"][:1], "sources": 4},
    ):
        run.seal(right | forged)
        code, text = run.resume()
        assert code == 0, text
        assert f"digest: {right['digest']}" in text
        assert run.verify()[0] == 0


def test_garbage_in_success_is_found_and_repaired_by_resuming(run):
    for mark in (b"", b"\xff\xfe\xff", b"x" * 100_000, b"0" * 64):
        (run.folder / SUCCESS).write_bytes(mark)
        code, text = run.verify()
        assert (code, SUCCESS in text) == (5, True)
        assert run.resume()[0] == 0
        assert run.verify()[0] == 0


def test_resuming_a_finished_run_deletes_temporary_files(run):
    left = [
        ".part-000001.0123456789abcdef.tmp",
        ".task-000004.01234567.tmp",
        ".shared.0123.tmp",
        "._manifest.json.7.tmp",
    ]
    for name in left:
        (run.folder / name).write_bytes(b"half a file")
    (run.folder / "_graph.77.tmp").mkdir()
    kept = {path.name for path in run.folder.iterdir()} - {*left, "_graph.77.tmp"}
    assert run.resume()[0] == 0
    assert {path.name for path in run.folder.iterdir()} == kept
