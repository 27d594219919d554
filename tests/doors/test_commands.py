"""Every option of a command that takes ids, numbers, tables or files: the result of the plain form, or one line."""

import itertools
import shutil

import pandas as pd
import pytest

from pipelines import assignment, serve
from pipelines.batch_sources import main
from tests.doors import commands
from tests.doors.commands import COMMANDS, FORMS, WITH
from tests.doors.containers import EQUAL, REFUSED

_SCREEN = 24 * 80
_EVERY = 3  # in the short test an option takes one value of so many


def listed(row):
    return {name: kind for name, _, kind in (each.partition(":") for each in row.split())}


@pytest.mark.parametrize("program", [assignment, serve])
def test_every_option_of_a_command_has_its_row(program):
    own = {action.dest for action in program.parser()._actions} - {"help"}
    name = program.__name__.rpartition(".")[2]
    assert own == set(listed(COMMANDS[name]))


def test_every_option_of_an_assignment_with_a_kind_is_crossed():
    kinds = listed(COMMANDS["assignment"])
    assert set(FORMS) == {f"assignment.{name}" for name, kind in kinds.items() if kind}


def outcome(name, value, folder, capsys):
    """Return EQUAL and the tables that a call has written, or REFUSED and what it has said."""
    option = name.partition(".")[2]
    given = {"edges": str(folder / "l.csv"), "trips": str(folder / "t.csv"), option: value}
    words = [given.pop("edges"), "--output", str(folder / "out"), *WITH.get(name, [])]
    for each, text in given.items():
        words.append(f"--{each.replace('_', '-')}={text}")
    shutil.rmtree(folder / "out", ignore_errors=True)
    code = assignment.main(words)
    said = capsys.readouterr().err
    if code != 2:
        assert code == 0, said
        tables = sorted((folder / "out").glob("*.parquet"))
        return EQUAL, {path.name: pd.read_parquet(path).to_dict("list") for path in tables}
    assert not (folder / "out").exists() or not list((folder / "out").iterdir())
    return REFUSED, said


def faults(name, chosen, capsys):
    folder = commands.new_folder()
    commands.links(folder)
    commands.trips(folder)
    plain, *values = FORMS[name](folder)
    way, expected = outcome(name, plain.text, folder, capsys)
    if way == REFUSED:
        yield f"the plain form is refused: {expected}"
        return
    for at, (text, must) in enumerate(values):
        if not chosen(at):
            continue
        way, found = outcome(name, text, folder, capsys)
        if way == EQUAL and (must == REFUSED or found != expected):
            yield f"{text!r}: should be {must}, and has the result {str(found)[:300]}"
        elif way == REFUSED and must == EQUAL:
            yield f"{text!r}: is refused: {found[:300]}"
        elif way == REFUSED and ("unexpected" in found or len(found) > _SCREEN):
            yield f"{text!r}: its message is {found[:300]}"


@pytest.mark.parametrize("name", FORMS)
def test_an_option_takes_some_values_and_refuses_others(name, capsys):
    first = list(FORMS).index(name)
    assert list(faults(name, lambda at: (at + first) % _EVERY == 0, capsys)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_an_option_takes_or_refuses_every_value(name, capsys):
    assert list(faults(name, lambda _: True, capsys)) == []


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """The folder of labels that a run has written, and the words that write them."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "e.csv").write_text("src,dst,weight\n1,2,1\n2,3,2\n3,1,4\n")
    words = ["--undirected", "--result", "labels", "--algorithm", "sssp", "--all-sources"]
    words += ["--no-report", "--device", "cpu"]
    assert main([str(folder / "e.csv"), *words, "--output", str(folder / "out")]) == 0
    return folder


_WRONG_SERVERS = {
    "folder": ["no/such", ".", "", "/dev/null"],
    "inward": ["no/such", ".", "", "/dev/null"],
    "port": ["x", "-1", "70000", "1.0", "", "1_0", "٣"],
    "token-file": ["no/such", ".", "", "/dev/null"],
    "tls-cert": ["no/such"],
    "tls-key": ["no/such"],
    "host": ["0.0.0.0", ""],
}


@pytest.mark.parametrize(
    ("option", "value"),
    [(name, value) for name, values in _WRONG_SERVERS.items() for value in values],
)
def test_a_server_refuses_wrong_values(labels, option, value, capsys, monkeypatch):
    monkeypatch.setattr(serve.LabelServer, "serve", lambda _: pytest.fail("it serves"))
    words = [value if option == "folder" else str(labels / "out")]
    if option != "folder":
        words.append(f"--{option}={value}")
    assert serve.main(words) == 2
    said = capsys.readouterr().err
    assert "unexpected" not in said
    assert 0 < len(said) < _SCREEN


def test_labels_take_no_options_that_have_no_effect(labels, capsys):
    words = ["--undirected", "--result", "labels", "--algorithm", "sssp", "--no-report"]
    wrong = [
        ["--all-sources", "--cutoff", "3"],
        ["--all-sources", "--targets", "1"],
        ["--sources", "9"],
    ]
    for number, more in zip(itertools.count(), wrong):
        out = labels / f"wrong{number}"
        assert main([str(labels / "e.csv"), *words, *more, "--output", str(out)]) == 2, more
        assert "unexpected" not in capsys.readouterr().err
        assert not out.exists()
