"""Each module of the job is loaded once in a process, however it was imported, and a wheel has all of them."""

import runpy
import sys
from pathlib import Path

import pytest

from tests.support import tiers
from tests.support.processes import ROOT, ran, ran_after, skip_without_repository

# Prints the files of library and job that are loaded more than once.
LOADED_TWICE = """
import sys
from collections import Counter
from pathlib import Path
root = Path(sys.argv[1])
modules = {id(module): module for name, module in sys.modules.items() if name != "__main__"}
files = Counter(str(getattr(module, "__file__", "")) for module in modules.values())
folders = root / "kepler_traverse", root / "pipelines"
ours = {file for file in files if any(map(Path(file).is_relative_to, folders))}
assert len(ours) > 100, len(ours)
print(sorted(file for file in ours if files[file] > 1))
"""
RUN_WITH_BOTH_NAMES = """
import kepler_traverse.pipelines, pipelines, pipelines.job
from kepler_traverse.pipelines import JobFailedError
import kepler_traverse.pipelines.verify as of_library
from pipelines import verify
assert kepler_traverse.pipelines is pipelines
assert verify is of_library
assert pipelines.job.JobFailedError is JobFailedError is kepler_traverse.pipelines.job.JobFailedError
"""
STARTS = {
    "the short name first": "from pipelines.job import run_job; import kepler_traverse.pipelines.run.driver",
    "the long name first": "import kepler_traverse.pipelines.run.driver; from pipelines.job import run_job",
    "a package below": "import pipelines.worker.plugin, pipelines.run.driver; from pipelines import run_job",
}


PROGRAMS = ["batch_sources", "verify", "finish", "compare", "extremes", "serve", "warm"]
# Runs each module as Python's -m does, in one process, since importing what they share takes longest.
HELP_OF_EACH = """
import runpy, sys
for module in sys.argv[1:]:
    sys.modules.pop(module, None)
    sys.argv = [module, "--help"]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        print(module, "has returned")
    except SystemExit as end:
        print(module, "has ended with", end.code)
"""


MODULES = [f"pipelines.{name}" for name in PROGRAMS] + ["kepler_traverse.pipelines.batch_sources"]
# What other projects import takes longest, and is none of what these tests are about.
OF_OTHERS = "import distributed, numba, pandas, pyarrow.dataset, pyarrow.parquet"
BESIDE = """
import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]; import pipelines; print(pipelines.NAME)
from kepler_traverse.pipelines import run_job
print(run_job('edges.csv', output='out', sources=[1], device='cpu', report=False).n_rows)
print(pipelines.NAME)
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """What became of each program, by its name."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "__init__.py").write_text("NAME = 'of another project'\n")
    (folder / "edges.csv").write_text("src,dst\n1,2\n")
    scripts = {
        start: (f"{code}\n{RUN_WITH_BOTH_NAMES}\n{LOADED_TWICE}", [ROOT], {})
        for start, code in STARTS.items()
        if tiers.ALL or start != "a package below"
    }
    scripts["help"] = (HELP_OF_EACH, MODULES, {})
    scripts["beside"] = (BESIDE, [folder, ROOT], {"cwd": folder})
    done = ran_after(OF_OTHERS, tmp_path_factory.mktemp("outputs"), *scripts.values())
    return dict(zip(scripts, done, strict=True))


@pytest.mark.parametrize(
    "start",
    [
        "the short name first",
        "the long name first",
        pytest.param("a package below", marks=pytest.mark.exhaustive),
    ],
)
def test_no_module_is_loaded_under_two_names(ends, start):
    assert ends[start].stdout == "[]\n", ends[start].stderr


def test_each_program_runs_as_a_module(ends):
    done = ends["help"]
    assert (done.returncode, done.stderr) == (0, "")
    rest = done.stdout
    for module in MODULES:
        said, ended, rest = rest.partition(f"{module} has ended with 0\n")
        assert ended, said
        assert "python -m pipelines.{}".format(module.rpartition(".")[2]) in said


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("pipelines.finish", marks=pytest.mark.exhaustive),
        "kepler_traverse.pipelines.batch_sources",
    ],
)
def test_a_program_runs_as_a_module_of_a_new_process(module):
    done = ran([sys.executable, "-m", module, "--help"])
    assert done.returncode == 0, done.stderr
    assert "python -m pipelines.{}".format(module.rpartition(".")[2]) in done.stdout
    assert done.stderr == ""


def test_a_module_that_is_not_there_is_named_as_it_was_typed():
    done = ran([sys.executable, "-m", "pipelines.no_such_program"])
    assert done.returncode == 1
    assert done.stderr.endswith("No module named pipelines.no_such_program\n")


def test_the_job_runs_beside_another_package_of_the_short_name(ends):
    expected = ["of another project", "2", "of another project"]
    assert ends["beside"].stdout.split("\n")[:3] == expected, ends["beside"].stderr


def test_a_wheel_has_each_file_of_library_and_job(monkeypatch):
    given = {}
    monkeypatch.setattr("setuptools.setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))

    def folder_of(package: str) -> Path:
        mapped = given["package_dir"].get(package)
        if mapped is not None:
            return ROOT / mapped
        parent, _, name = package.rpartition(".")
        return folder_of(parent) / name

    packed = {folder_of(package) for package in given["packages"]}
    skip_without_repository()
    tracked = ran(["git", "ls-files", "kepler_traverse", "pipelines"]).stdout.split()
    # In a checkout alone: a wheel has the job in its place.
    needed = {(ROOT / path).parent for path in tracked} - {ROOT / "kepler_traverse" / "pipelines"}
    assert needed <= packed
    (module,) = given["py_modules"]
    assert (ROOT / given["package_dir"][""] / f"{module}.py").is_file()


def test_no_file_of_the_repository_is_a_link():
    skip_without_repository()
    modes = ran(["git", "ls-files", "--stage"]).stdout.splitlines()
    assert len(modes) > 500
    assert [line for line in modes if line.startswith("120000")] == []
