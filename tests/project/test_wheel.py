"""The wheel in an environment of its own, beside other packages of the name ``pipelines``: what a new user tries first."""

import os
import re
import sys
import tomllib
from types import SimpleNamespace

import pandas as pd
import pytest

from scripts.docs.run_examples import blocks_of
from tests.support.processes import ROOT, ran, skip_where_nothing_is_installed

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1200)]  # packages are installed


# Modules of the checkout would be found before those of the wheel.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def succeed(command, **options):
    done = ran(command, env=ENVIRONMENT, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """An installation of the wheel, and a folder with an edge list and a package of the name that the job has here."""
    skip_where_nothing_is_installed()
    folder = tmp_path_factory.mktemp("user")
    succeed([sys.executable, "-m", "venv", folder / "tools"])
    tools = folder / "tools" / "bin"
    succeed([tools / "pip", "install", "--quiet", "build", "check-wheel-contents", "twine"])
    succeed([tools / "python", "-m", "build", "--outdir", folder, ROOT])
    succeed([tools / "twine", "check", "--strict", *folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    (wheel,) = folder.glob("*.whl")
    names = "kepler_traverse,pipelines.py"  # the second is another name of a part of the first
    succeed([tools / "check-wheel-contents", "--toplevel", names, wheel])

    succeed([sys.executable, "-m", "venv", folder / "venv"])
    programs = folder / "venv" / "bin"
    succeed([programs / "pip", "install", "--quiet", f"{wheel}[job]"])
    (installed,) = (folder / "venv").glob("lib/python*/site-packages")
    edges = folder / "short.csv"
    edges.write_text("from,to\nA,B\n")
    words = [edges, "--sources", "A", "--output", folder / "short"]
    succeed([programs / "python", "-m", "pipelines.batch_sources", *words], cwd=folder)
    (installed / "pipelines.py").write_text("NAME = 'of another project'\n")
    here = folder / "project"
    (here / "pipelines").mkdir(parents=True)
    (here / "pipelines" / "__init__.py").write_text(
        "raise RuntimeError('the folder of a user was imported')\n"
    )
    (here / "edges.csv").write_text("from,to,km\nA,B,2\nB,C,3\nD,E,1\n")
    (here / "trips.csv").write_text("from,to\nA,C\nC,A\n")

    def command(*words):
        return ran([programs / "kepler-traverse", *words], cwd=here, env=ENVIRONMENT)

    def python(code):
        return ran([programs / "python", "-P", "-c", code], cwd=here, env=ENVIRONMENT)

    return SimpleNamespace(
        here=here, programs=programs, wheel=wheel, command=command, python=python
    )


def rows_of(folder):
    return pd.concat(map(pd.read_parquet, sorted(folder.glob("part-*"))), ignore_index=True)


def test_a_table_of_ones_own_with_string_ids_is_searched_resumed_and_verified(user):
    for workers in ("1", "2"):
        words = [
            "--algorithm",
            "bfs",
            "--sources",
            "A,D",
            "--batch-size",
            "1",
            "--workers",
            workers,
        ]
        done = user.command("run", "edges.csv", "--output", f"out-{workers}", *words)
        assert done.returncode == 0, done.stderr
        found = rows_of(user.here / f"out-{workers}")
        assert list(found.itertuples(index=False, name=None)) == [
            ("A", "A", 0),
            ("A", "B", 1),
            ("A", "C", 2),
            ("D", "D", 0),
            ("D", "E", 1),
        ]
    part = sorted((user.here / "out-1").glob("part-*"))[1]
    part.unlink()
    damaged = user.command("verify", "out-1", "edges.csv")
    assert damaged.returncode == 5
    assert part.name in damaged.stdout + damaged.stderr
    again = user.command("run", "edges.csv", "--output", "out-1", *words[:-1], "1", "--resume")
    assert again.returncode == 0, again.stderr
    assert user.command("verify", "out-1", "edges.csv").returncode == 0


def test_routes_are_rows_of_vertices(user):
    words = "--algorithm sssp --columns weight=km --undirected --pairs trips.csv --result paths --output routes"
    done = user.command("run", "edges.csv", *words.split())
    assert done.returncode == 0, done.stderr
    assert rows_of(user.here / "routes")["vertex"].tolist() == ["A", "B", "C", "C", "B", "A"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["edges.csv", "--algorithm", "sssp", "--columns", "weight=miles"],
            ["edges.csv", "miles", "'km'"],
        ),
        (["edgs.csv"], ["edgs.csv"]),
        (["edges.csv", "--sources", "Z"], ["'Z'"]),
        (["edges.csv", "--device", "cuda"], ["in the checkout: pip install -e '.[cuda13]'"]),
    ],
    ids=["column", "file", "source", "GPU"],
)
def test_a_mistake_is_named_and_nothing_is_written(user, words, said):
    sources = [] if "--sources" in words else ["--sources", "A"]
    done = user.command("run", *words, *sources, "--output", "none")
    if "cuda" in words and done.returncode == 0:
        pytest.skip("this machine has a GPU and its packages")
    assert done.returncode > 0
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in said), done.stderr
    assert not (user.here / "none").exists()


def test_a_cluster_of_ones_own_is_used(user):
    code = """
from distributed import Client, LocalCluster
from kepler_traverse.pipelines import run_job
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(run_job("edges.csv", output="clustered", sources=["A"], client=client).n_rows)
"""
    (user.here / "own.py").write_text(code)
    done = ran([user.programs / "python", "-P", "own.py"], cwd=user.here, env=ENVIRONMENT)
    assert done.stdout.split()[-1] == "3", done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the oldest packages have no wheels for it")
def test_the_oldest_packages_that_are_allowed_write_and_read_the_same_rows(user):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = [re.sub(r">=([0-9.]+).*", r"==\1.*", each) for each in project["dependencies"]]
    environment = user.here.parent / "oldest"
    succeed([sys.executable, "-m", "venv", environment])
    succeed([environment / "bin/pip", "install", "--quiet", f"{user.wheel}[job]", *oldest])
    # Read without threads: pyarrow 17 may abort at the end of a process in which its threads have read.
    options = "use_threads=False, pre_buffer=False"
    read = f"import sys, pandas; print(pandas.read_parquet(sys.argv[1], {options}).values.tolist())"
    both = {"oldest": environment / "bin", "newest": user.programs}
    for sort in ("source", "distance"):
        for age, programs in both.items():
            words = [
                "--algorithm", "bfs", "--sources", "A,D", "--batch-size", "2", "--sort", sort, "--output",
                f"{age}-{sort}",
            ]  # fmt: skip
            succeed([programs / "kepler-traverse", "run", "edges.csv", *words], cwd=user.here)
            succeed(
                [programs / "kepler-traverse", "verify", f"{age}-{sort}", "edges.csv"],
                cwd=user.here,
            )
        files = [f"{age}-{sort}/part-000000.parquet" for age in both]
        said = {
            succeed([programs / "python", "-P", "-c", read, each], cwd=user.here)
            for programs in both.values()
            for each in files
        }
        assert len(said) == 1


def test_the_package_of_the_same_name_is_imported_as_before(user):
    code = "import pipelines; print(pipelines.NAME); import kepler_traverse.pipelines as job; print(job.run_job.__module__)"
    assert user.python(code).stdout.split("\n")[:2] == [
        "of another project",
        "kepler_traverse.pipelines.job",
    ]


def test_the_readme_runs_as_typed_once_the_extra_is_there_that_the_error_names(user):
    picture, example = (
        code for _, code in blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    )
    refused = user.python(picture)
    assert "in the checkout: pip install -e '.[plot]'" in refused.stderr.splitlines()[-1]
    succeed([user.programs / "pip", "install", "--quiet", f"{user.wheel}[plot]"])
    assert user.python(picture).returncode == 0
    assert (user.here / "isochrones.png").stat().st_size > 10_000
    on_a_map = picture.replace("plot(", "explore(").replace("import plot", "import explore")
    on_a_map = re.sub(", graph=graph.*", ")", on_a_map)  # a map draws no streets and no title
    assert "pip install lonboard" in user.python(on_a_map).stderr.splitlines()[-1]
    done = user.python(example.partition("graph = graph.to(")[0])
    assert done.returncode == 0, done.stderr
    assert "school" in done.stdout
