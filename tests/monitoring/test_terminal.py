"""Untrusted text reaches a terminal escaped, in the messages of all commands."""

import ast
import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
from kepler_traverse.errors import OutputError
from pipelines import batch_sources, compare, verify
from pipelines.cli import terminal
from pipelines.monitoring import progress
from pipelines.monitoring.run_stats import RunStats, Share
from tests.support.import_graph import tree_of

PIPELINES = Path(pipelines.__file__).parent
NASTY = "\x1b[31mRED\x1b]0;pwn\x07\r\x9b2J\x7f\u202eevil\u2028\ud800\n/tmp/out: verified"
ESCAPED = r"\x1b[31mRED\x1b]0;pwn\x07\r\x9b2J\x7f\u202eevil\u2028\ud800\n/tmp/out: verified"


def test_everything_that_is_not_printable_is_written_as_repr_writes_it():
    assert terminal.printable(NASTY) == ESCAPED
    assert terminal.printable("é ü 漢字 'quoted' back\\slash") == "é ü 漢字 'quoted' back\\slash"
    for code in [*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x202A, 0x2066, 0xFEFF, 0xDFFF, 0xE0001]:
        assert terminal.printable(f"a{chr(code)}b").isprintable()


def test_lines_are_one_line_each(capsys):
    terminal.say("a\nb", "c")
    terminal.show("d\re")
    assert tuple(capsys.readouterr()) == ("d\\re\n", "a\\nb\nc\n")


class Stream(io.StringIO):
    encoding = "ascii"

    def __init__(self, error=None):
        super().__init__()
        self._error = error

    def flush(self):
        if self._error is not None:
            raise self._error


def test_a_stream_gets_what_its_encoding_has(monkeypatch):
    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.show("é")
    assert stream.getvalue() == "\\xe9\n"


def test_a_stream_that_fails_ends_no_run_and_a_lost_summary_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(OSError(5, "Input/output error")))
    terminal.say("progress")
    monkeypatch.setattr(sys, "stdout", Stream(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="No space left"):
        terminal.show("summary")
    for closed in (None, io.StringIO()):
        if closed is not None:
            closed.close()
        monkeypatch.setattr(sys, "stdout", closed)
        terminal.show("nobody is there")


def writes_to_the_terminal(node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "print"
    if not isinstance(node, ast.Attribute):
        return False
    of_terminal = node.attr in ("stdout", "stderr", "print_exc", "print_exception")
    return of_terminal and ast.unparse(node.value) != "done"  # of a child


def test_terminal_module_alone_writes_to_the_terminal():
    found = {
        path.name: node.lineno
        for path in sorted(PIPELINES.rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if writes_to_the_terminal(node)
    }
    assert found.keys() == {"terminal.py"}, found


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder of a hostile name, and edges of hostile ids round a negative cycle."""
    folder = tmp_path / NASTY.replace("/", "-").replace("\ud800", "")
    folder.mkdir()
    monkeypatch.chdir(folder)
    nasty = NASTY.replace("\ud800", "")
    pq.write_table(
        pa.table({"src": [nasty, "b"], "dst": ["b", nasty], "weight": [-5.0, 1.0]}), "cycle.parquet"
    )
    pq.write_table(
        pa.table({"src": [nasty, "b"], "dst": ["b", nasty], "weight": [5.0, 1.0]}), "edges.parquet"
    )
    return folder


def assert_printable(captured):
    for text in captured:
        for line in text.split("\n"):  # not splitlines, which takes \r and others for ends of lines
            assert line.isprintable(), line


def test_messages_of_all_commands_have_no_control_characters(hostile, capsys, monkeypatch):
    # a process of its own, and nothing of text
    monkeypatch.setattr("pipelines.comparison.peak_memory", lambda *_: {})
    seen = set()
    cycle, edges, out = (
        str(hostile / "cycle.parquet"),
        str(hostile / "edges.parquet"),
        str(hostile / "out"),
    )
    one = ["--workers", "1", "--device", "cpu"]
    sssp = [edges, "--algorithm", "sssp", *one]
    name = NASTY.replace("\ud800", "")
    for code, command, words in [
        (4, batch_sources, [cycle, "--algorithm", "sssp", "--all-sources", *one, "--output", out]),
        (
            4,
            batch_sources,
            [cycle, "--algorithm", "sssp", "--all-sources", *one, "--output", out + "1", "--debug"],
        ),
        (2, batch_sources, [*sssp, "--sources", name + "x", "--plan"]),
        (2, batch_sources, [name, "--all-sources", "--plan"]),
        (2, batch_sources, [*sssp, "--all-sources", "--plan", "--strategy", name]),
        (2, batch_sources, [*sssp, "--all-sources", "--plan", "--config", name]),
        (2, batch_sources, [*sssp, "--all-sources", "--plan", "--columns", f"src={name}"]),
        (2, batch_sources, [*sssp, "--all-sources", "--plan", "--" + name]),
        (
            2,
            batch_sources,
            [*sssp, "--all-sources", "--scheduler-file", name, "--output", out + "2"],
        ),
        (0, batch_sources, [*sssp, "--all-sources", "--plan"]),
        (0, batch_sources, [*sssp, "--all-sources", "--plan", "--json"]),
        (0, batch_sources, [*sssp, "--all-sources", "--output", out + "3"]),
        (2, batch_sources, [*sssp, "--all-sources", "--output", out + "3"]),
        (0, verify, [out + "3", edges, "--device", "cpu"]),
        (2, verify, [out + "3", cycle, "--device", "cpu"]),
        (2, verify, [name, edges]),
        (2, compare, [name]),
        (0, compare, [edges, "--random-sources", "1", "--device", "cpu", "--json"]),
    ]:
        assert command.main(words) == code, (command, words, capsys.readouterr())
        captured = capsys.readouterr()
        assert_printable(captured)
        seen |= {text for text in captured if r"\x1b[31mRED" in text}
    assert len(seen) > 10


def test_verify_escapes_the_source_that_it_finds_wrong(hostile, capsys):
    out = hostile / "out"
    words = [
        str(hostile / "edges.parquet"),
        "--algorithm",
        "sssp",
        "--all-sources",
        "--workers",
        "1",
        "--device",
        "cpu",
    ]
    assert batch_sources.main([*words, "--output", str(out)]) == 0
    path = out / "part-000000.parquet"
    with pq.ParquetFile(path) as file:
        table = file.read()
    distance = pa.array(
        [d + 1 for d in table["distance"].to_pylist()], table.schema.field("distance").type
    )
    pq.write_table(table.set_column(2, "distance", distance), path, write_page_checksum=True)
    capsys.readouterr()
    assert verify.main([str(out), str(hostile / "edges.parquet"), "--device", "cpu"]) == 5
    captured = capsys.readouterr()
    assert_printable(captured)
    assert r"wrong result: " in captured.out
    assert r"source \x1b[31mRED" in captured.out


def test_names_of_workers_on_the_terminal_are_neither_control_characters_nor_markup():
    stats = RunStats(0.0, 1)
    stats.workers = {NASTY: Share(), "[red]x[/red]": Share()}
    cells = list(progress._workers_table(stats).columns[0].cells)
    assert [cell.plain for cell in cells] == [ESCAPED, "[red]x[/red]"]
