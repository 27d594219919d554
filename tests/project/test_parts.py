"""Parts of the checks: what a run of one records, what the summary says, and that a part ends at its limit."""

import os
import sys

import psutil
import pytest

from scripts.ci import parts
from tests.support.processes import ROOT, ran, wait_until

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_passes"/>
<testcase classname="tests.test_a" name="test_fails"><failure message="assert 1 == 2">{text}</failure></testcase>
<testcase classname="tests.test_a" name="test_breaks"><error message="in a fixture"/></testcase>
<testcase classname="tests.test_a" name="test_lacks"><skipped message="no package"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    monkeypatch.setattr(parts, "PARTS", tmp_path / "out/parts")
    monkeypatch.setattr(parts, "SUMMARY", tmp_path / "out/parts/summary.txt")
    monkeypatch.setattr(
        parts, "commit", lambda: "one"
    )  # not that of a checkout in which someone works
    return tmp_path


def program(text, *arguments):
    return [sys.executable, "-I", "-S", "-c", text, *map(str, arguments)]


def test_a_part_that_passes_and_one_that_fails_are_summed_up(capfd):
    assert parts.run("coverage", program("print('96 %')"), 60) == 0
    assert parts.run("checks", program("print('the reason'); raise SystemExit(3)"), 60) == 1
    assert "96 %" in capfd.readouterr().out
    passed, failed, *details = parts.sum_up([]).splitlines()
    assert passed.startswith("coverage: passed, ")
    assert failed.startswith("checks: failed with exit code 3, ")
    assert details[-2:] == ["== checks: the last lines of out/parts/checks.log", "the reason"]


def test_tests_that_failed_are_named_and_others_counted(folder):
    text = "x" * 2 * parts.MAX_FAILURE + " the end"
    write = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); sys.exit(1)"
    command = program(write, folder / "out/tests.xml", REPORT.format(text=text))
    assert parts.run("tests", command, 60) == 1
    said = parts.sum_up([])
    assert "; 1 tests passed, 2 failed, 1 skipped\n" in said
    assert "== tests: tests.test_a::test_fails\n" in said
    assert "== tests: tests.test_a::test_breaks\nin a fixture\n" in said
    assert "x the end\n" in said
    assert "x" * (parts.MAX_FAILURE + 1) not in said


def test_a_report_of_an_earlier_run_is_not_counted(folder):
    report = folder / "out/tests.xml"
    report.parent.mkdir()
    report.write_text(REPORT)
    assert parts.run("tests", program("raise SystemExit(4)"), 60) == 1
    assert "tests: failed with exit code 4" in parts.sum_up([])
    assert "tests passed" not in parts.sum_up([])


def test_a_part_of_which_no_test_ran_has_failed(folder):
    empty = "<testsuites><testsuite></testsuite></testsuites>"
    write = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    assert parts.run("bounds", program(write, folder / "out/bounds.xml", empty), 60) == 1
    assert parts.sum_up([]).startswith("bounds: failed: no test ran, ")


IGNORES = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
WAITS = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(1000)"


STARTS = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', *sys.argv[1:]])"


def has_ended(pid):
    """Whether a process has ended; its parent may not have looked at it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def _hurried(monkeypatch):
    monkeypatch.setattr(parts, "GRACE", 0.2)


@pytest.mark.usefixtures("_hurried")
def test_nothing_is_left_of_a_part_that_is_stopped(folder):
    """Also of the processes that its command has started."""
    pid = folder / "pid"
    parts.run("tests", program(STARTS, "-c", IGNORES + WAITS, pid), 1.0)
    if pid.exists() and (number := pid.read_text()):  # it had begun before the limit
        wait_until(lambda: has_ended(int(number)))


@pytest.mark.usefixtures("_hurried")
@pytest.mark.parametrize("before", ["", IGNORES], ids=["interrupted", "killed"])
def test_a_part_ends_at_its_limit(folder, before):
    pid = folder / "pid"
    assert parts.run("tests", program(before + WAITS, pid), 0.5) == 1
    assert parts.sum_up([]).startswith("tests: stopped after its limit of 0 s, ")
    if pid.exists() and (number := pid.read_text()):  # it had begun before the limit
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


def test_the_summary_has_the_parts_that_are_named_and_not_too_much(capsys, monkeypatch):
    parts.run("bounds", program("pass"), 60)
    parts.run("libraries", program("pass"), 60)
    assert parts.main(["summary", "libraries"]) == 0
    assert parts.SUMMARY.read_text() == capsys.readouterr().out
    assert parts.sum_up(["libraries"]).startswith("libraries: passed")
    assert "bounds" not in parts.sum_up(["libraries"])
    assert parts.sum_up([]).count(": passed") == 2
    with monkeypatch.context() as patch:
        patch.setattr(parts, "commit", lambda: "another")
        assert parts.sum_up([]) == "\n"
    monkeypatch.setattr(parts, "MAX_SUMMARY", 10)
    assert parts.sum_up([]) == "bounds: pa\nMore was left out: see the reports.\n"


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ([], ["tests"]),
        (["-k", "x"], ["tests -k x"]),
        (["--all"], ["tests --all", "coverage", "bounds", "libraries"]),
        (["--all", "bounds", "tests", "-x"], ["tests --all -x", "bounds"]),
    ],
)
def test_the_script_runs_the_parts_that_are_named(folder, words, runs):
    """By a Python that writes down what it is asked for, in place of running it."""
    python = folder / "python"
    log = folder / "log"
    python.write_text(
        f'#!/bin/bash\ncase "$*" in\n*scripts.ci.parts\\ run*) echo "${{*:4}}" >>{log} ;;\n*affinity*) echo 5 ;;\nesac\n'
    )
    python.chmod(0o755)
    variables = os.environ | {"KEPLER_PYTHON": str(python), "KEPLER_WORKERS": ""}
    done = ran(["bash", ROOT / "scripts/check.sh", *words], env=variables)
    assert "All checks passed" in done.stdout, done.stderr
    found = [line.split() for line in log.read_text().splitlines()]
    assert [line[0] for line in found] == [run.split()[0] for run in runs]
    for line, run in zip(found, runs, strict=True):
        if line[0] == "tests":
            assert line[line.index("--numprocesses") + 1] == "5"
            assert line[line.index("--junitxml=out/tests.xml") + 1 :] == run.split()[1:]
            assert ("coverage" in line) == (len(runs) == 4)
