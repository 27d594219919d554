"""Each surrounding is what its name says, and the page has what was recorded."""

import json
import os
import shutil
import sys

import pytest

from scripts.ci import surroundings
from tests.support.processes import ROOT, ran

PROBE = """
import glob, json, os, shutil, signal, tempfile
home, ours = os.path.expanduser("~"), f"/proc/{os.getppid()}/task/*/children"
others = [open(f"/proc/{number}/cmdline").read() for file in glob.glob(ours) for number in open(file).read().split()]
print(json.dumps({
    "ignored": [name for name in ("SIGHUP", "SIGINT") if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN],
    "busy": sum(other.endswith("while True: pass\\0") for other in others),
    "one core": len(os.sched_getaffinity(0)) == 1,
    "root": os.geteuid() == 0,
    "home is writable": os.access(home, os.W_OK),
    "found": [name for name in ("bash", "git", "python3", "ls") if shutil.which(name)],
    "temporary": os.path.dirname(tempfile.gettempdir()),
    "seed": os.environ.get("PYTHONHASHSEED"),
}))
"""
SEEN = {
    "background": {"ignored": ["SIGHUP", "SIGINT"]},
    "busy": {"busy": 4},
    "core": {"one core": True},
    "user": {"root": False},
    "home": {"root": False, "home is writable": False},
    "path": {"found": ["bash", "git", "python3"]},
    "temporary": {"temporary": "/dev/shm"},
    "hash-7": {"seed": "7"},
}
TESTS = "<testcase/><testcase><error/></testcase><testcase><skipped/></testcase>"
REPORT = "<testsuites><testsuite>" + TESTS + "{failed}</testsuite></testsuites>"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(surroundings, "LOGS", tmp_path)
    monkeypatch.setattr(surroundings, "REPORT", tmp_path / "tests.xml")
    monkeypatch.setattr(surroundings, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(surroundings, "PAGE", tmp_path / "page.md")


def seen_in(name, folder):
    found = surroundings.run(name, [sys.executable, "-I", "-S", "-c", PROBE])
    text = (folder / f"{name}.log").read_text()
    assert found["passed"], text
    return json.loads(text)


def test_each_surrounding_differs_from_a_quiet_terminal_as_its_name_says(tmp_path):
    quiet = seen_in("quiet", tmp_path)
    assert (quiet["ignored"], quiet["busy"]) == ([], 0)
    for name, differs in SEEN.items():
        found = seen_in(name, tmp_path)
        assert {key: found[key] for key in differs} == differs, name


def test_outcomes_are_recorded_and_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    surroundings.RECORD.write_text('{"made": [], "runs": {}}')
    surroundings.PAGE.write_text(f"head\n{surroundings.BEGIN}\nold\n{surroundings.END}\ntail\n")
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); sys.exit(int(sys.argv[3]))"
    checks = [sys.executable, "-c", code, str(surroundings.REPORT)]
    monkeypatch.setattr(
        surroundings, "CHECKS", [*checks, REPORT.format(failed="<testcase><failure/></testcase>")]
    )
    monkeypatch.setattr(surroundings, "ROOT", tmp_path)
    assert surroundings.main(["run", "--only", "core", "--", "1"]) == 1
    assert "failed: core" in capsys.readouterr().err
    monkeypatch.setattr(surroundings, "CHECKS", [*checks, REPORT.format(failed="")])
    assert surroundings.main(["run", "--only", "quiet", "--", "0"]) == 0
    text = surroundings.PAGE.read_text()
    assert "| one core | **failed** | 1 | 2 | 1 | " in text
    assert "| in a terminal, nothing else runs | passed | 1 | 1 | 1 | " in text
    assert "\nold\n" not in text
    assert surroundings.main(["check"]) == 0
    surroundings.RECORD.write_text(
        surroundings.RECORD.read_text().replace('"passed":false', '"passed":true')
    )
    assert surroundings.main(["check"]) == 1
    assert "is stale" in capsys.readouterr().err


@pytest.mark.parametrize("folder", [ROOT, ROOT / "scripts", ROOT / "scripts/ci"])
def test_the_head_of_the_checks_needs_no_other_program(folder):
    script = os.path.relpath(ROOT / "scripts/check.sh", folder)
    done = ran([shutil.which("bash"), script], cwd=folder, env={"PATH": ""})
    assert (done.returncode, done.stderr) == (1, "\ngit is needed, and none is on the path.\n")
