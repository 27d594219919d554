"""The wheel in an environment of its own, beside other packages of the name ``pipelines``."""

import re
import sys
import tomllib

import pandas as pd
import pytest
import yaml

import kepler_traverse
from tests.support.processes import ROOT, ran


def succeed(command, **options):
    done = ran(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_an_installed_wheel_runs_beside_foreign_packages_of_the_jobs_name(tmp_path):
    succeed([sys.executable, "-m", "venv", tmp_path / "tools"])
    tools = tmp_path / "tools" / "bin"
    succeed([tools / "pip", "install", "--quiet", "build", "check-wheel-contents", "twine"])
    succeed([tools / "python", "-m", "build", "--outdir", tmp_path, ROOT])
    succeed([tools / "twine", "check", "--strict", *tmp_path.glob("*.whl"), *tmp_path.glob("*.tar.gz")])
    (wheel,) = tmp_path.glob("*.whl")
    succeed([tools / "check-wheel-contents", wheel])

    succeed([sys.executable, "-m", "venv", tmp_path / "venv"])
    programs = tmp_path / "venv" / "bin"
    succeed([programs / "pip", "install", "--quiet", f"{wheel}[job]"])
    (installed,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (installed / "pipelines.py").write_text("NAME = 'of another project'\n")
    here = tmp_path / "project"
    (here / "pipelines").mkdir(parents=True)
    (here / "pipelines" / "__init__.py").write_text("raise RuntimeError('the folder of a user was imported')\n")

    (here / "edges.csv").write_text("from,to\nA,B\nB,C\nD,E\n")
    for workers in ("1", "2"):
        words = ["--sources", "A", "--output", f"out-{workers}", "--workers", workers]
        succeed([programs / "kepler-traverse", "run", "edges.csv", *words], cwd=here)
        found = pd.concat(map(pd.read_parquet, sorted((here / f"out-{workers}").glob("part-*"))))
        assert dict(zip(found["vertex"], found["distance"], strict=True)) == {"A": 0, "B": 1, "C": 2}
    succeed([programs / "kepler-traverse", "verify", "out-2", "edges.csv"], cwd=here)
    code = "import pipelines; print(pipelines.NAME); import kepler_traverse.pipelines as job; print(job.run_job.__module__)"
    assert succeed([programs / "python", "-P", "-c", code], cwd=here).split("\n")[:2] == [
        "of another project",
        "kepler_traverse.pipelines.job",
    ]


def test_the_recipe_for_conda_needs_what_the_wheel_needs():
    recipe = yaml.safe_load((ROOT / "conf/conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [f"python{project['requires-python']}", *project["dependencies"], *project["optional-dependencies"]["job"]]
    names = {"dask": "dask-core", "prometheus-client": "prometheus_client", "typing-extensions": "typing_extensions"}
    pairs = [re.match(r"([a-z0-9-]+)([<>=][^;]*[0-9])", each).groups() for each in needed]
    assert {tuple(each.split()) for each in recipe["requirements"]["run"]} == {
        (names.get(name, name), bounds) for name, bounds in pairs
    }
    assert recipe["context"]["version"] == kepler_traverse.__version__
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {at}" for name, at in project["scripts"].items()]
