"""Opportunities, counts and isochrones of the job: those of the library, for any batches, resumed, verified, refused."""

import shutil

import numpy as np
import pandas as pd
import pytest

from kepler_traverse.kinds.k_nearest import search_labels
from kepler_traverse.multi_source import together
from kepler_traverse.multi_source.planning import MultiSourcePlan
from pipelines import verify
from pipelines.batch_sources import main
from tests.job.test_result_kinds import forge
from tests.support import tiers
from tests.support.jobs import Runs, by_library, manifest_of, proven, refused, rows_of, write_edges

N_SOURCES = 11
CASES = {
    "opportunities": ["--result", "opportunities", "--values", "jobs,area", "--cutoffs", "0,2"],
    "opportunities of weights": [
        *(
            "--result",
            "opportunities",
            "--algorithm",
            "sssp",
            "--values",
            "jobs,area",
            "--cutoffs",
            "3,9.5,14",
        ),
        *("--decay", "exponential:0.1"),
    ],
    "opportunities, inwards": [
        "--result",
        "opportunities",
        "--values",
        "jobs",
        "--cutoffs",
        "1,3",
        "--direction",
        "in",
    ],
    "within": ["--result", "within", "--cutoffs", "0,1,200"],
    "within of weights": ["--result", "within", "--algorithm", "sssp", "--cutoffs", "3,9.5"],
    "isochrones": ["--result", "isochrones", "--cutoffs", "1,2"],
    "isochrones of weights": [
        "--result",
        "isochrones",
        "--algorithm",
        "sssp",
        "--cutoffs",
        "3,9.5",
    ],
}
NEAREST = {  # which one search finds
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
    write_edges(folder / "edges.parquet", src, dst, rng.integers(0, 9, 100))
    ids = np.unique([*src, *dst, 1000, 2000])[::-1]
    table = pd.DataFrame(
        {"vertex": ids, "jobs": rng.integers(-9, 99, ids.size), "area": rng.random(ids.size)}
    )
    table.to_parquet(folder / "vertices.parquet")
    table.to_csv(folder / "vertices.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def job(data, tmp_path_factory):
    def command(folder, case, *more, batch_size=4, vertices="vertices.parquet"):
        words = [
            data / "edges.parquet",
            "--vertices",
            data / vertices,
            "--random-sources",
            N_SOURCES,
            "--device",
            "cpu",
        ]
        words += (CASES | NEAREST)[case]
        words += ["--batch-size", batch_size, "--workers", 1] if case in CASES else []
        words += ["--no-report", "--json", "--output", folder]
        return [str(word) for word in (*words, *more)]

    return Runs(tmp_path_factory.mktemp("runs"), command)


@pytest.mark.parametrize("case", tiers.few(CASES | NEAREST, 6))
def test_rows_equal_the_librarys_for_any_batches_and_are_proven_right_again(
    case, data, job, capsys
):
    folder = job(case)
    manifest = manifest_of(folder)
    sources = [source for part in manifest["parts"] for source in part["sources"]]
    table, more = (
        pd.read_parquet(data / "vertices.parquet"),
        {"result": "k_nearest"} if case in NEAREST else {},
    )
    _, expected = by_library(
        data / "edges.parquet", (CASES | NEAREST)[case], sources, table, **more
    )
    pd.testing.assert_frame_equal(rows_of(folder), expected, check_exact=True)
    if case in NEAREST:
        flags = dict(zip(NEAREST[case][::2], NEAREST[case][1::2], strict=True))
        assert (manifest["result"], manifest["identity"]["k"]) == (
            "k_nearest",
            int(flags["--nearest-k"]),
        )
    for way in [{}, {"batch_size": 1}, {"batch_size": 99}] if case in CASES else [{}]:
        other = job(case, *([] if way else ["--certify", "none"]), **way)
        assert manifest_of(other)["digest"] == manifest["digest"]
        assert rows_of(other).equals(rows_of(folder))
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": N_SOURCES})
    assert main(job.command(folder, case, "--resume")) == 0


def test_a_renamed_attribute_is_found(data, job, tmp_path, capsys):
    folder = shutil.copytree(job("opportunities"), tmp_path / "out")
    named = lambda table: table.rename_columns(["source", "cutoff", "area", "jobs"])  # noqa: E731
    forge(folder, lambda table: named(table).replace_schema_metadata(table.schema.metadata))
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"][0]["kind"]) == (5, "wrong result")
    assert (
        "its columns are source, cutoff, area, jobs, not source, cutoff, jobs, area"
        in found["faults"][0]["message"]
    )


def test_a_run_with_other_cutoffs_or_attributes_is_not_resumed(data, job, tmp_path, capsys):
    folder = job("opportunities")
    words = job.command(folder, "opportunities", "--resume")
    assert "reduction was" in refused(capsys, *(word if word != "0,2" else "0,3" for word in words))
    table = pd.read_parquet(data / "vertices.parquet")
    table["jobs"] += 1
    table.to_parquet(tmp_path / "vertices.parquet")
    moved = [word.replace(str(data / "vertices"), str(tmp_path / "vertices")) for word in words]
    assert "reduction was" in refused(capsys, *moved)


def test_a_csv_of_vertices_gives_the_same_rows(job):
    assert rows_of(job("opportunities", vertices="vertices.csv")).equals(
        rows_of(job("opportunities"))
    )


def test_changed_attributes_are_refused_by_verify(data, job, tmp_path, capsys):
    folder, moved = tmp_path / "out", tmp_path / "vertices.parquet"
    shutil.copy(data / "vertices.parquet", moved)
    words = job.command(folder, "opportunities")
    assert (
        main([word if word != str(data / "vertices.parquet") else str(moved) for word in words])
        == 0
    )
    table = pd.read_parquet(moved)
    table["jobs"] += 1
    table.to_parquet(moved)
    said = refused(capsys, folder, data / "edges.parquet", "--device", "cpu", program=verify.main)
    assert "are not those of the run" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--result", "opportunities", "--values", "jobs"],
            "--result opportunities needs --cutoffs",
        ),
        (
            ["--result", "within", "--cutoffs", "1", "--decay", "linear:3"],
            "--decay is for --result opportunities or flows",
        ),
        (["--result", "within", "--cutoffs", "1,x"], "'x' is no number"),
        (
            ["--result", "opportunities", "--cutoffs", "1", "--values", "jobs,"],
            "holds an empty name",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    words, message, data, tmp_path, capsys
):
    argv = [
        data / "edges.parquet",
        "--vertices",
        data / "vertices.parquet",
        "--all-sources",
        "--device",
        "cpu",
        *words,
    ]
    assert message in refused(capsys, *argv, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_need_a_table_of_vertices(data, tmp_path, capsys):
    (tmp_path / "ids.txt").write_text("7\n14\n")
    words = "--all-sources --device cpu --result opportunities --cutoffs 1 --values jobs --plan --vertices"
    said = refused(capsys, data / "edges.parquet", *words.split(), tmp_path / "ids.txt")
    assert "attributes need a table; give --vertices FILE as Parquet, or as .csv" in said


@pytest.mark.parametrize("way", ["merged", "one search"])
def test_wrong_distances_of_the_k_nearest_fail(way, data, tmp_path, monkeypatch):
    run = MultiSourcePlan.iter_groups

    def groups_too_near(plan, numbers, cut):
        for group in run(plan, numbers, cut=cut):
            group.distance[group.distance == 2] = 1
            yield group

    def labels_too_near(*given):
        distance, owner = search_labels(*given)
        distance[distance == 2] = 1
        return distance, owner

    argv = [
        data / "edges.parquet",
        "--random-sources",
        5,
        "--device",
        "cpu",
        *NEAREST["k_nearest"],
        "--no-report",
    ]
    if way == "merged":
        monkeypatch.setattr(MultiSourcePlan, "iter_groups", groups_too_near)
        argv += ["--strategy", "bit_parallel"]
    else:
        monkeypatch.setattr(together, "search_labels", labels_too_near)
    assert main([str(word) for word in (*argv, "--output", tmp_path / "out")]) == 3
    said = {"merged": "CertificateError", "one search": "the nearest sources of vertex"}[way]
    assert said in manifest_of(tmp_path / "out")["failed"][0]["error"]


def test_a_run_with_another_k_is_not_resumed(job, capsys):
    folder = job("k_nearest")
    words = job.command(folder, "k_nearest", "--resume")
    assert "k was 3 and is 4" in refused(capsys, *(word if word != "3" else "4" for word in words))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "jobs\n1,9007199254740993\n2,0.5\n",
            "column 'jobs', row 0: float64 cannot hold the integer 9007199254740993",
        ),
        ("jobs\n1,0x10\n2,1\n", "column 'jobs', row 0: '0x10' is no decimal number"),
        (
            "jobs\n1,1\n2,9223372036854775809\n",
            "row 1: float64 cannot hold the integer 9223372036854775809 exactly",
        ),
        (
            "jobs,jobs\n1,2,3\n",
            "places.csv: the file of vertices has several columns 'jobs'; rename all but one",
        ),
        ("jobs\n1,\n2,3\n", "places.csv: values['jobs'] holds 1 nulls"),
        ("jobs\n1,2\n1,3\n", "places.csv: values: vertex 1 occurs 2 times"),
        ("jobs\n1,9223372036854775807\n2,1\n", "places.csv: the sum of values['jobs'] can reach"),
    ],
)
def test_tables_of_attributes_that_cannot_be_used_are_refused(table, said, tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n")
    (tmp_path / "places.csv").write_text(f"vertex,{table}")
    words = "--all-sources --device cpu --result opportunities --cutoffs 1 --values jobs --plan --vertices"
    assert said in refused(capsys, tmp_path / "edges.csv", *words.split(), tmp_path / "places.csv")
