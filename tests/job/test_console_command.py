"""The command ``kepler-traverse`` and its commands."""

import contextlib
import gc
import sys

import pytest

import kepler_traverse
from kepler_traverse.errors import how_to_install, several
from pipelines import batch_sources, completion
from pipelines.__main__ import COMMANDS, main
from pipelines.cli.command_line import parser
from tests.support.processes import ran


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: kepler-traverse COMMAND"),
        (["--version"], f"kepler-traverse {kepler_traverse.__version__}\n"),
        (
            ["roads.parquet"],
            "error: there is no command 'roads.parquet': take one of run, plan, finish, verify",
        ),
        *(([name, "--help"], f"usage: kepler-traverse {name}") for name in COMMANDS),
    ],
)
def test_the_console_command_names_itself_as_it_was_typed(words, said, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/kepler-traverse", *words])
    # without a process that watches
    monkeypatch.setattr(batch_sources, "program", batch_sources.main)
    with contextlib.suppress(SystemExit):  # of argparse
        main()
    assert "".join(capfd.readouterr()).startswith(said)


def test_several_of_a_thing_are_counted_in_words():
    assert [several(n, "vertex") for n in (0, 1, 2000)] == [
        "0 vertices",
        "1 vertex",
        "2,000 vertices",
    ]
    assert [several(n, noun) for n, noun in ((1, "batch"), (2, "search"), (3, "source"))] == [
        "1 batch",
        "2 searches",
        "3 sources",
    ]


def test_help_of_a_result_kind_lists_its_options_alone(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kepler-traverse run"])
    of_all, of_summary, of_pairs = (
        parser(kind).format_help() for kind in (None, "summary", "pairs")
    )
    for flag in ("--nearest-k", "--cutoffs", "--values", "--geometry", "--unconnected", "--pairs"):
        assert flag in of_all
        assert f"\n  {flag} " not in of_summary
    for flag in ("--max-depth", "--columns", "--random-sources", "--certify"):
        assert f"\n  {flag}" in of_summary
    assert "\n  --pairs " in of_pairs
    assert "\n  --random-sources " not in of_pairs


def test_the_job_in_python_names_the_extra_that_it_needs():
    code = "import sys; sys.modules['pydantic'] = None; from pipelines import run_job"
    said = ran([sys.executable, "-c", code]).stderr.splitlines()[-1]
    needed = "ImportError: run_job needs pydantic, which is not installed: "
    assert said == needed + how_to_install("job")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_commands_and_their_options_are_completed(shell, capsys, monkeypatch):
    pytest.importorskip("shtab")
    assert completion.main([shell]) == 0
    found = capsys.readouterr().out
    assert all(
        word in found
        for word in (
            *COMMANDS,
            "near",
            "--nearest-k" if shell != "tcsh" else "nearest-k",
            "cugraph-mg",
        )
    )
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert completion.main([shell]) == 2
    assert "pip install shtab" in capsys.readouterr().err


@pytest.mark.parametrize(("last_import", "is_paused"), [("no_such_module", True), ("json", False)])
def test_unreachable_objects_are_left_only_while_modules_are_imported(last_import, is_paused):
    with batch_sources.without_collections(last_import):
        assert gc.isenabled() != is_paused
    assert gc.isenabled()
    with pytest.raises(KeyError), batch_sources.without_collections(last_import):
        raise KeyError
    assert gc.isenabled()
    gc.unfreeze()
