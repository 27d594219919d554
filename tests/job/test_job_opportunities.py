"""Opportunities, counts and isochrones of the job: those of the library, for any batches, resumed, verified, refused."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, read_graph, sssp_many
from kepler_traverse.kinds.k_nearest import search_labels
from kepler_traverse.multi_source import together
from kepler_traverse.multi_source.planning import MultiSourcePlan
from pipelines import verify
from pipelines.batch_sources import main
from pipelines.scheduling.in_process import NAME
from tests.job.test_result_kinds import forge, written
from tests.support.jobs import Runs, manifest_of, parts_of, proven

N_SOURCES = 11
CASES = {
    "opportunities": ["--result", "opportunities", "--values", "jobs,area", "--cutoffs", "0,2"],
    "opportunities of weights": [
        *("--result", "opportunities", "--algorithm", "sssp", "--values", "jobs,area", "--cutoffs", "3,9.5,14"),
        *("--decay", "exponential:0.1"),
    ],
    "opportunities, inwards": ["--result", "opportunities", "--values", "jobs", "--cutoffs", "1,3", "--direction", "in"],
    "within": ["--result", "within", "--cutoffs", "0,1,200"],
    "within of weights": ["--result", "within", "--algorithm", "sssp", "--cutoffs", "3,9.5"],
    "isochrones": ["--result", "isochrones", "--cutoffs", "1,2"],
    "isochrones of weights": ["--result", "isochrones", "--algorithm", "sssp", "--cutoffs", "3,9.5"],
}


NEAREST = {
    "k_nearest": ["--result", "nearest", "--nearest-k", "3"],
    "k_nearest to a limit": ["--result", "k_nearest", "--nearest-k", "2", "--max-depth", "1"],
    "k_nearest of weights": ["--result", "nearest", "--nearest-k", "20", "--algorithm", "sssp"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with an edge list and a table of vertices, of which some have no edge."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(7)
    src, dst = rng.integers(0, 45, (2, 100)) * 7
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": rng.integers(0, 9, 100)}), folder / "edges.parquet")
    ids = np.unique([*src, *dst, 1000, 2000])[::-1]
    table = pd.DataFrame({"vertex": ids, "jobs": rng.integers(-9, 99, ids.size), "area": rng.random(ids.size)})
    table.to_parquet(folder / "vertices.parquet")
    table.to_csv(folder / "vertices.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def job(data, tmp_path_factory):
    def command(folder, case, *more, batch_size=4, vertices="vertices.parquet"):
        words = [data / "edges.parquet", "--vertices", data / vertices, "--random-sources", N_SOURCES, "--device", "cpu"]
        words += CASES[case] if case in CASES else NEAREST[case]
        words += ["--batch-size", batch_size, "--workers", 1] if case in CASES else []
        words += ["--no-report", "--json", "--output", folder]
        return [str(word) for word in (*words, *more)]

    return Runs(tmp_path_factory.mktemp("runs"), command)


def answer(data, case, sources):
    """What the library says."""
    flags = dict(zip(CASES[case][::2], CASES[case][1::2], strict=True))
    hops = flags.get("--algorithm") != "sssp"
    table = pd.read_parquet(data / "vertices.parquet")
    graph = read_graph(data / "edges.parquet", device="cpu", weighted=not hops, vertices=table["vertex"].to_numpy())
    options = {"cutoffs": [float(each) if "." in each else int(each) for each in flags["--cutoffs"].split(",")]}
    if "--values" in flags:
        options["values"] = table[["vertex", *flags["--values"].split(",")]]
    options |= {name: flags[f"--{name}"] for name in ("decay", "direction") if f"--{name}" in flags}
    return (bfs_many if hops else sssp_many)(graph, sources, result=flags["--result"], **options)


@pytest.mark.parametrize("case", CASES)
def test_rows_equal_the_librarys_for_any_batches(case, data, job):
    folder = job(case)
    manifest = manifest_of(folder)
    sources = [source for part in manifest["parts"] for source in part["sources"]]
    pd.testing.assert_frame_equal(written(folder), answer(data, case, sources), check_exact=True)
    for other in (job(case, batch_size=1), job(case, batch_size=99), job(case, "--certify", "none")):
        assert manifest_of(other)["digest"] == manifest["digest"]
        assert written(other).equals(written(folder))


def test_workers_get_the_attributes(job):
    here = job("opportunities of weights")
    there = job("opportunities of weights", "--dashboard-address", "localhost:0")  # asked for, so there is a cluster
    assert {part["worker"] for part in manifest_of(there)["parts"]}.isdisjoint({NAME})
    assert {part["worker"] for part in manifest_of(here)["parts"]} == {NAME}
    assert parts_of(there) == parts_of(here)


@pytest.mark.parametrize("case", CASES)
def test_an_output_is_verified_by_traversing_again(case, data, job, capsys):
    code, found = proven(job(case), data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": N_SOURCES})


def test_a_renamed_attribute_is_found(data, job, tmp_path, capsys):
    folder = tmp_path / "out"
    shutil.copytree(job("opportunities"), folder)
    named = lambda table: table.rename_columns(["source", "cutoff", "area", "jobs"])  # noqa: E731
    forge(folder, lambda table: named(table).replace_schema_metadata(table.schema.metadata))
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"][0]["kind"]) == (5, "wrong result")
    assert "its columns are source, cutoff, area, jobs, not source, cutoff, jobs, area" in found["faults"][0]["message"]


def test_a_run_with_other_cutoffs_or_attributes_is_not_resumed(data, job, tmp_path, capsys):
    folder = job("opportunities")
    words = job.command(folder, "opportunities", "--resume")
    assert main([word if word != "0,2" else "0,3" for word in words]) == 2
    assert "reduction was" in capsys.readouterr().err
    table = pd.read_parquet(data / "vertices.parquet")
    table["jobs"] += 1
    table.to_parquet(tmp_path / "vertices.parquet")
    assert main([word.replace(str(data / "vertices"), str(tmp_path / "vertices")) for word in words]) == 2
    assert "reduction was" in capsys.readouterr().err


def test_a_csv_of_vertices_gives_the_same_rows(job):
    assert written(job("opportunities", vertices="vertices.csv")).equals(written(job("opportunities")))


def test_changed_attributes_are_refused_by_verify(data, job, tmp_path, capsys):
    folder, moved = tmp_path / "out", tmp_path / "vertices.parquet"
    shutil.copy(data / "vertices.parquet", moved)
    words = job.command(folder, "opportunities")
    assert main([word if word != str(data / "vertices.parquet") else str(moved) for word in words]) == 0
    table = pd.read_parquet(moved)
    table["jobs"] += 1
    table.to_parquet(moved)
    assert verify.main([str(folder), str(data / "edges.parquet"), "--device", "cpu"]) == 2
    assert "are not those of the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--result", "opportunities", "--values", "jobs"], "--result opportunities needs --cutoffs"),
        (["--result", "opportunities", "--cutoffs", "1"], "--result opportunities needs --values"),
        (["--result", "within"], "--result within needs --cutoffs"),
        (["--nearest-k", "2"], "--nearest-k is for --result k_nearest"),
        (["--result", "k_nearest"], "--result k_nearest needs --nearest-k"),
        (["--cutoffs", "1"], "--cutoffs is for --result opportunities, within or isochrones, not distances"),
        (
            ["--result", "within", "--cutoffs", "1", "--decay", "linear:3"],
            "--decay is for --result opportunities or flows, not within",
        ),
        (["--result", "within", "--cutoffs", "1,x"], "'x' is no number"),
        (["--result", "within", "--cutoffs", "2,1"], "cutoffs must ascend"),
        (["--result", "within", "--cutoffs", "1.5"], "cutoffs must be a whole number"),
        (["--result", "within", "--cutoffs", "1", "--max-depth", "3"], "leave --max-depth out"),
        (
            ["--result", "opportunities", "--cutoffs", "1", "--values", "shops"],
            "no column of attributes 'shops'; it has 'jobs'",
        ),
        (["--result", "opportunities", "--cutoffs", "1", "--values", "jobs,"], "holds an empty name"),
        (["--result", "opportunities", "--cutoffs", "1", "--values", "jobs", "--decay", "flat"], "must be exponential:RATE"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(words, message, data, tmp_path, capsys):
    argv = [data / "edges.parquet", "--vertices", data / "vertices.parquet", "--all-sources", "--device", "cpu", *words]
    assert main([str(word) for word in (*argv, "--output", tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_values_need_a_table_of_vertices(data, tmp_path, capsys):
    words = ["--all-sources", "--device", "cpu", "--result", "opportunities", "--cutoffs", "1", "--values", "jobs"]
    argv = [str(data / "edges.parquet"), *words, "--output", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "--values reads columns of --vertices; give that table" in capsys.readouterr().err
    (tmp_path / "ids.txt").write_text("7\n14\n")
    assert main([*argv, "--vertices", str(tmp_path / "ids.txt")]) == 2
    assert "attributes need a table; give --vertices FILE as Parquet, or as .csv" in capsys.readouterr().err


@pytest.mark.parametrize("case", NEAREST)
def test_the_k_nearest_are_those_of_the_library(case, data, job, capsys):
    folder = job(case)
    manifest = manifest_of(folder)
    flags = dict(zip(NEAREST[case][::2], NEAREST[case][1::2], strict=True))
    hops = flags.get("--algorithm") != "sssp"
    table = pd.read_parquet(data / "vertices.parquet")
    graph = read_graph(data / "edges.parquet", device="cpu", weighted=not hops, vertices=table["vertex"].to_numpy())
    (part,) = manifest["parts"]
    limit = {"max_depth": 1} if "--max-depth" in flags else {}
    expected = (bfs_many if hops else sssp_many)(
        graph, part["sources"], result="nearest", k=int(flags["--nearest-k"]), **limit
    )
    pd.testing.assert_frame_equal(written(folder), expected, check_exact=True)
    assert (manifest["result"], manifest["identity"]["k"]) == ("k_nearest", int(flags["--nearest-k"]))
    assert manifest_of(job(case, "--certify", "none"))["digest"] == manifest["digest"]
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": N_SOURCES})
    assert main(job.command(folder, case, "--resume")) == 0


def test_wrong_distances_fail_before_they_are_merged(data, tmp_path, monkeypatch):
    run = MultiSourcePlan.iter_groups

    def too_near(plan, numbers):
        for group in run(plan, numbers):
            group.distance[group.distance == 2] = 1
            yield group

    monkeypatch.setattr(MultiSourcePlan, "iter_groups", too_near)
    argv = [data / "edges.parquet", "--random-sources", 5, "--device", "cpu", *NEAREST["k_nearest"]]
    argv += ["--strategy", "bit_parallel"]
    assert main([str(word) for word in (*argv, "--no-report", "--output", tmp_path / "out")]) == 3
    assert "CertificateError" in manifest_of(tmp_path / "out")["failed"][0]["error"]


def test_wrong_labels_of_one_search_fail(data, tmp_path, monkeypatch):
    def too_near(*given):
        distance, owner = search_labels(*given)
        distance[distance == 2] = 1
        return distance, owner

    monkeypatch.setattr(together, "search_labels", too_near)
    argv = [data / "edges.parquet", "--random-sources", 5, "--device", "cpu", *NEAREST["k_nearest"]]
    assert main([str(word) for word in (*argv, "--no-report", "--output", tmp_path / "out")]) == 3
    assert "the nearest sources of vertex" in manifest_of(tmp_path / "out")["failed"][0]["error"]


def test_a_run_with_another_k_is_not_resumed(job, capsys):
    folder = job("k_nearest")
    words = job.command(folder, "k_nearest", "--resume")
    assert main([word if word != "3" else "4" for word in words]) == 2
    assert "k was 3 and is 4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "jobs\n1,9007199254740993\n2,0.5\n",
            "column 'jobs', row 0: float64 cannot hold the integer 9007199254740993 exactly",
        ),
        ("jobs\n1,1\n2,9223372036854775809\n", "row 1: float64 cannot hold the integer 9223372036854775809 exactly"),
        ("jobs,jobs\n1,2,3\n", "places.csv: the file of vertices has several columns 'jobs'; rename all but one"),
        ("jobs\n1,\n2,3\n", "places.csv: values['jobs'] holds 1 nulls"),
        ("jobs\n1,2\n1,3\n", "places.csv: values: vertex 1 occurs 2 times"),
        ("jobs\n1,9223372036854775807\n2,1\n", "places.csv: the sum of values['jobs'] can reach"),
    ],
)
def test_tables_of_attributes_that_cannot_be_used_are_refused(table, said, tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n")
    (tmp_path / "places.csv").write_text(f"vertex,{table}")
    words = ["--all-sources", "--device", "cpu", "--result", "opportunities", "--cutoffs", "1", "--values", "jobs"]
    words += ["--vertices", str(tmp_path / "places.csv"), "--output", str(tmp_path / "out")]
    assert main([str(tmp_path / "edges.csv"), *words]) == 2
    assert said in capsys.readouterr().err
