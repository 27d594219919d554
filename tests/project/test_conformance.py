"""The counts of scripts/conformance.sh: every result is counted, and what must not be recorded as passed is a failure."""

import json

import pytest

from scripts.conformance import __main__ as conformance
from scripts.conformance import suites

pytestmark = pytest.mark.exhaustive  # as the suites are

TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.xfail(reason="no such edge | here", strict=True)
def test_known(): assert 0

@pytest.mark.skip(reason="no GPU with CuPy")
def test_gpu(): pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("RECORD", "PAGE", "REPORTS"):
        monkeypatch.setattr(conformance, name, tmp_path / getattr(conformance, name).name)
    monkeypatch.setattr(conformance, "SUITES", (suite_of(tmp_path),))
    return tmp_path


def suite_of(folder, text=TESTS, is_own=True, needs="scripts"):
    file = folder / "test_some.py"
    file.write_text(text)
    command = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        "-c",
        "/dev/null",
        str(file),
    )
    return suites.Suite(
        name="some",
        title="some tests",
        command=command,
        needs=needs,
        packages=("pytest",),
        is_own=is_own,
    )


def test_results_are_counted_and_the_page_shows_them(folder, capfd):
    assert conformance.run([suite_of(folder)]) == 0
    assert "some: 1 passed, 0 failed, 1 expected failures, 1 skipped" in capfd.readouterr().out
    (record,) = json.loads(conformance.RECORD.read_text())["suites"]
    assert (record["passed"], record["failed"], record["skipped"]) == (
        1,
        [],
        {"no GPU with CuPy": 1},
    )
    assert record["versions"] == {"pytest": pytest.__version__}
    page = conformance.PAGE.read_text()
    assert "| some | some tests | 1 | 0 | 1 | 1 |" in page
    assert "test_known` | no such edge \\| here |" in page
    assert conformance.main(["check"]) == 0


def test_a_failing_test_fails_the_run_and_is_recorded(folder, capfd):
    assert conformance.run([suite_of(folder, TESTS + "def test_wrong(): assert 0\n")]) == 1
    assert "some FAILED: test_some.test_wrong" in capfd.readouterr().err
    assert "| some | `test_some.test_wrong` |" in conformance.PAGE.read_text()
    assert conformance.main(["check"]) == 1
    assert "records failures of some" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"text": TESTS.replace("no GPU with CuPy", "polars is not installed")},
            "were skipped: polars is not installed",
        ),
        ({"text": "import no_such_module"}, "test_some"),
        ({"text": "x = 1"}, "no test ran"),
        ({"text": TESTS.replace("assert 0", "pass")}, "test_known"),
        ({"needs": "no/such/folder"}, "no/such/folder does not exist"),
    ],
)
def test_conformance_counts_what_did_not_pass_as_no_success(change, says, folder, capfd):
    assert conformance.run([suite_of(folder, **change)]) == 1
    assert says in capfd.readouterr().err


def test_conformance_page_lists_why_suites_skip_tests(folder):
    text = TESTS.replace("no GPU with CuPy", "needs pygraphviz")
    assert conformance.run([suite_of(folder, text, is_own=False)]) == 0
    assert "| some | needs pygraphviz | 1 |" in conformance.PAGE.read_text()


def test_a_stale_page_is_noticed(folder, capfd):
    assert conformance.run([suite_of(folder)]) == 0
    conformance.PAGE.write_text(conformance.PAGE.read_text() + "more\n")
    assert conformance.main(["check"]) == 1
    assert "conformance.md is stale" in capfd.readouterr().err
    assert conformance.main(["page"]) == 0
    assert conformance.main(["check"]) == 0


def test_a_suite_that_crashes_is_no_success(folder, capfd):
    text = "import os\n\ndef test_crash(): os._exit(9)\n"
    assert conformance.run([suite_of(folder, text)]) == 1
    assert "some FAILED: it wrote no report" in capfd.readouterr().err


def test_the_page_in_docs_is_that_of_its_record():
    assert conformance.main(["check"]) == 0


def test_replacing_fails_where_no_test_calls_this_library(folder):
    text = "def test_nothing(): pass\n"
    suite = suite_of(folder, text)
    plugged = (*suite.command[:2], "-p", "scripts.conformance.replace_csgraph", *suite.command[2:])
    found = suites.Suite(name="some", title="t", command=plugged, needs="scripts", packages=())
    assert conformance.run([found]) == 1
