"""Columns of the tables of sources and targets, by the library: groups, limits; any batches, resumed, verified, refused."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, graph_from_edges, read_graph, sssp_many
from pipelines import run_job, verify
from pipelines.batch_sources import main
from tests.job.test_matrix import written as list_of_matrix
from tests.job.test_result_kinds import first_lost, forge, one_more
from tests.support import tiers
from tests.support.jobs import (
    Runs,
    by_library,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    refused,
    rows_of,
    summary_of,
    write_edges,
)  # fmt: skip

N = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with an edge list, and a table of sources, of which one is in two groups."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(7)
    src, dst = (
        np.concatenate([rng.integers(0, N, (2, 90)), [np.arange(N), np.arange(N)]], axis=1) * 7
    )
    write_edges(folder / "edges.parquet", src, dst, rng.integers(0, 9, src.size))
    stops = [21, 7, 70, 14, 7, 140, 203]
    kinds = ["school", "school", "école", "hospital", "hospital", "school", "hospital"]
    table = pd.DataFrame({"stop": stops, "kind": kinds, "rank": [2, 2, 1, 2, -1, 1, 2]})
    table["people"], table["share"] = (
        [3, 5, -2, 0, 5, 10**9, 7],
        [0.5, 1.25, 3.0, 0.1, 1.25, 2.0, 1e-3],
    )
    table["most"], table["metres"] = [1, 0, 3, 2, 0, 7, 2], [3, 0, 9.5, 4, 0, 2.5, 6]
    table.to_parquet(folder / "stops.parquet", index=False)
    table.to_csv(folder / "stops.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def job(data, tmp_path_factory):
    def command(folder, *more, table="stops.parquet"):
        words = [
            data / "edges.parquet",
            "--sources",
            data / table,
            "--columns",
            "source=stop",
            "--device",
            "cpu",
        ]
        return [str(word) for word in (*words, "--no-report", "--json", "--output", folder, *more)]

    return Runs(tmp_path_factory.mktemp("runs"), command)


AREA = ["--result", "opportunities", "--cutoffs", "1,3", "--values", "jobs,area", "--columns"]
GROUPS = ["--result", "nearest", "--nearest-k", "2", "--columns", "group=kind"]


@pytest.mark.parametrize("column", ["kind", "rank"])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_the_nearest_of_each_group_are_those_of_the_library(column, algorithm, data, job, capsys):
    words = ["--algorithm", algorithm, *GROUPS[:-1], f"group={column}"]
    table = pd.read_parquet(data / "stops.parquet")
    graph = read_graph(data / "edges.parquet", device="cpu", weighted=algorithm == "sssp")
    search = bfs_many if algorithm == "bfs" else sssp_many
    expected = search(
        graph, table["stop"].tolist(), result="nearest", k=2, groups=table[column].tolist()
    )
    folder = job(*words)
    pd.testing.assert_frame_equal(rows_of(folder), expected, check_exact=True)
    assert parts_of(job(*words, table="stops.csv")) == parts_of(folder)
    assert rows_of(job(*words, "--certify", "none")).equals(expected)
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": 6})


@pytest.mark.parametrize("column", ["kind", "rank"])
def test_the_nearest_targets_of_each_group_are_those_of_the_library(column, data, tmp_path, capsys):
    sources = "7,21,35,273"
    table = pd.read_parquet(data / "stops.parquet")
    graph = read_graph(data / "edges.parquet", device="cpu")
    ends = {"targets": table["stop"].tolist(), "groups": table[column].tolist()}
    expected = sssp_many(
        graph, [int(each) for each in sources.split(",")], result="nearest", k=2, cutoff=9, **ends
    )

    def words(folder, file, *more):
        named = [
            "--columns",
            f"target=stop,group={column}",
            "--targets",
            file,
            "--sources",
            sources,
        ]
        own = [
            "--algorithm",
            "sssp",
            "--result",
            "nearest",
            "--nearest-k",
            "2",
            "--cutoff",
            "9",
            "--device",
            "cpu",
        ]
        words = (
            data / "edges.parquet",
            *own,
            *named,
            "--no-report",
            "--json",
            "--output",
            folder,
            *more,
        )
        return list(map(str, words))

    ways = {"one": [], "two": ["--batch-size", 1], "three": ["--certify", "none"]}
    for (name, more), suffix in zip(ways.items(), ("parquet", "csv", "parquet"), strict=True):
        assert main(words(tmp_path / name, data / f"stops.{suffix}", *more)) == 0
        pd.testing.assert_frame_equal(rows_of(tmp_path / name), expected, check_exact=True)
    assert manifest_of(tmp_path / "two")["digest"] == manifest_of(tmp_path / "one")["digest"]
    folder = tmp_path / "one"
    assert main(words(folder, data / "stops.parquet", "--resume")) == 0
    resumed = words(folder, data / "stops.parquet", "--resume")
    assert "groups was" in refused(
        capsys, *(word.replace(f"group={column}", "group=people") for word in resumed)
    )
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": 4})
    table.assign(**{column: table[column].iloc[::-1].tolist()}).to_parquet(
        tmp_path / "other.parquet"
    )
    verified = [
        folder,
        data / "edges.parquet",
        "--device",
        "cpu",
        "--targets",
        tmp_path / "other.parquet",
    ]
    said = refused(capsys, *verified, program=verify.main)
    assert "other.parquet: these are not the groups of the run" in said
    forge(
        folder, lambda t: t.set_column(1, "group", t["group"].take(pa.array(range(len(t)))[::-1]))
    )
    assert proven(folder, data / "edges.parquet", capsys)[0] == 5


def test_groups_of_targets_are_a_column_of_their_table(data, tmp_path, capsys):
    """A table of sources with such a column has no groups, and must not have it beside those of the targets."""
    table = pd.read_parquet(data / "stops.parquet").rename(
        columns={"stop": "source", "kind": "group"}
    )
    table[["source", "group"]].to_csv(tmp_path / "sources.csv", index=False)
    table.rename(columns={"source": "target"}).to_csv(tmp_path / "targets.csv", index=False)
    words = [
        data / "edges.parquet",
        "--result",
        "nearest",
        "--device",
        "cpu",
        "--no-report",
        "--output",
        tmp_path / "out",
    ]
    words += ["--sources", tmp_path / "sources.csv", "--targets"]
    assert "has a column 'group', which the result adds" in refused(
        capsys, *words, tmp_path / "targets.csv"
    )
    assert main([str(word) for word in (*words, "7,21")]) == 0
    assert manifest_of(tmp_path / "out")["settings"]["columns"] == {"source": "source"}
    assert "group" in pd.read_parquet(tmp_path / "out" / "_sources.pq")


def test_a_table_whose_sources_reach_no_target_is_written(data, job, tmp_path):
    pd.read_csv(data / "stops.csv", usecols=["stop", "kind"]).to_csv(
        tmp_path / "some.csv", index=False
    )
    words = [
        "--result",
        "nearest",
        "--nearest-k",
        "1",
        "--targets",
        "273",
        "--max-depth",
        "0",
        "--batch-size",
        "2",
    ]
    for more in ([], ["--resume"]):
        assert main(job.command(tmp_path / "out", *words, *more, table=tmp_path / "some.csv")) == 0
        answer = pd.read_parquet(tmp_path / "out" / "_sources.pq")
        assert (len(answer), answer["distance"].notna().sum()) == (7, 0)


@pytest.mark.parametrize(
    "change",
    [
        one_more,
        first_lost,
        lambda t: t.set_column(0, "group", t["group"].take(pa.array(range(len(t)))[::-1])),
    ],
)
def test_wrong_rows_of_groups_are_found(change, data, job, tmp_path, capsys):
    folder = shutil.copytree(job(*GROUPS), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, {fault["kind"] for fault in found["faults"]}) == (5, {"wrong result"})


def test_groups_are_resumed_from_rows_alone(job, tmp_path, capsys):
    folder = shutil.copytree(job(*GROUPS), tmp_path / "out")
    before = parts_of(folder)
    forget_parts(folder)
    assert summary_of(capsys, *job.command(folder, *GROUPS, "--resume"))["computed"] == 0
    assert parts_of(folder) == before
    assert "groups was" in refused(
        capsys, *job.command(folder, *GROUPS[:-1], "group=rank", "--resume")
    )


def test_changed_groups_are_refused_by_verify(data, job, tmp_path, capsys):
    table = pd.read_parquet(data / "stops.parquet")
    table["kind"] = table["kind"].iloc[::-1].tolist()
    table.to_parquet(tmp_path / "other.parquet")
    words = [job(*GROUPS), data / "edges.parquet", "--device", "cpu", "--sources"]
    for path, said in (
        (tmp_path / "other.parquet", "not the groups of the run"),
        (tmp_path / "none", "--sources"),
    ):
        assert said in refused(capsys, *words, path, program=verify.main)


LIMITS = {
    "distances": [],
    "distances of weights": ["--algorithm", "sssp"],
    "predecessors of weights": ["--algorithm", "sssp", "--result", "predecessors"],
    "targets of weights": ["--algorithm", "sssp", "--result", "targets", "--targets", "70,7,273"],
    "distances of targets": ["--targets", "70,7,273"],
    "summary": ["--result", "summary"],
    "summary of weights": ["--algorithm", "sssp", "--result", "summary"],
    "levels": ["--result", "levels"],
    "reachable": ["--result", "reachable"],
    "matrix": ["--algorithm", "sssp", "--result", "matrix"],
}


def limited(case):
    return [*LIMITS[case], "--columns", "limit=metres" if "sssp" in LIMITS[case] else "limit=most"]


def searched_alone(data, case):
    """Rows of one search of the library per source, each to its own limit."""
    table = pd.read_parquet(data / "stops.parquet").drop_duplicates("stop")
    frames = []
    for row in table.itertuples():
        limit = {"cutoff": row.metres} if "sssp" in LIMITS[case] else {"max_depth": row.most}
        frames.append(by_library(data / "edges.parquet", LIMITS[case], [row.stop], **limit)[1])
    return np.concatenate(frames) if case == "matrix" else pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize("case", tiers.few(LIMITS, 6))
def test_each_source_is_searched_to_its_own_limit(case, data, job, capsys):
    folder = job(*limited(case), "--batch-size", "4")
    expected = searched_alone(data, case)
    if case == "matrix":
        assert np.array_equal(list_of_matrix(folder)[1], np.where(np.isinf(expected), -1, expected))
    else:
        rows = rows_of(folder)
        # pandas marks what is missing in two ways
        for name in expected if "targets" in case else ():
            rows[name], expected[name] = rows[name].astype(float), expected[name].astype(float)
        pd.testing.assert_frame_equal(rows, expected, check_exact=True)
    digest = manifest_of(folder)["digest"]
    for other in (
        job(*limited(case), "--batch-size", "1"),
        job(*limited(case), "--certify", "none", table="stops.csv"),
    ):
        assert manifest_of(other)["digest"] == digest
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], sum(found["proven"].values())) == (0, [], 6)


def test_text_of_a_table_is_taken_as_it_is_written(tmp_path):
    (tmp_path / "edges.csv").write_text("from,to\nNA,B\nB,null\n")
    (tmp_path / "stops.csv").write_text("source;country\nNA;NA\nnull;\nB;null\n")
    words = ["--device", "cpu", "--no-report", "--result", "summary", "--output", tmp_path / "out"]
    assert (
        main(
            [
                str(word)
                for word in (tmp_path / "edges.csv", "--sources", tmp_path / "stops.csv", *words)
            ]
        )
        == 0
    )
    table = pq.read_table(
        tmp_path / "out" / "_sources.pq", columns=["source", "country", "reached"]
    )
    assert list(zip(*table.to_pydict().values(), strict=True)) == [
        ("NA", "NA", 3),
        ("null", None, 1),
        ("B", "null", 2),
    ]


def test_a_run_with_other_limits_or_without_is_not_resumed(job, capsys):
    words = limited("distances")
    folder = job(*words, "--batch-size", "4")
    for other, said in (([*words[:-1], "limit=rank"], "row 4: -1 is no limit"), ([], "limits was")):
        assert said in refused(
            capsys, *job.command(folder, *other, "--batch-size", "4", "--resume")
        )


def test_a_vertex_beyond_the_limit_of_its_source_is_found(data, job, tmp_path, capsys):
    folder = shutil.copytree(job(*limited("distances")), tmp_path / "out")
    table = pd.read_parquet(data / "stops.parquet")
    forge(folder, first_lost)
    assert proven(folder, data / "edges.parquet", capsys)[0] == 5
    # With other limits in the table the rows would be wrong; the run's digest of the limits says so first.
    table.assign(most=table["most"] + 1).to_parquet(tmp_path / "other.parquet")
    words = [job(*limited("distances")), data / "edges.parquet", "--device", "cpu", "--sources"]
    assert "not the limits of the run" in refused(
        capsys, *words, tmp_path / "other.parquet", program=verify.main
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "group=kind"], "--columns group=NAME is for --result k_nearest"),
        ([*GROUPS[:-1], "group=type"], "no column 'type'; the table of sources has"),
        ([*GROUPS[:-1], "group=gap"], "column 'gap', row 1: it holds no value"),
        (
            [*GROUPS[:-1], "group=share"],
            "column 'share' has type double; groups are integers or strings",
        ),
        ([*AREA, "source_weight=kind"], "; weights and volumes are numbers"),
        ([*AREA, "source_weight=infinite"], "column 'infinite', row 0: inf is not finite"),
        ([*AREA, "source_weight=two"], "source 7 is given twice with different weights"),
        ([*AREA, "source_weight=huge"], "beyond int64"),
        (
            ["--columns", "source_weight=two", "--result", "within", "--cutoffs", "1"],
            "is for --result opportunities or",
        ),
        (["--columns", "limit=kind"], "; the largest number of hops is an integer"),
        (
            ["--columns", "limit=metres"],
            "column 'metres' has type double; the largest number of hops is an integer",
        ),
        (
            ["--columns", "limit=kind", "--algorithm", "sssp"],
            "; limits are numbers: all of a text file",
        ),
        (["--columns", "limit=rank"], "column 'rank', row 4: -1 is no limit"),
        (["--columns", "limit=far", "--algorithm", "sssp"], "column 'far', row 2: inf is no limit"),
        (
            ["--columns", "limit=two"],
            "column 'two', row 4: source 7 has the limit 5 here and 2 in row 1",
        ),
        (
            ["--columns", "limit=most", "--max-depth", "2"],
            "--columns limit=NAME and --max-depth both limit the distance",
        ),
        (["--columns", "limit=most", "--result", "nearest"], "--result nearest takes none"),
        (
            ["--columns", "limit=most", "--result", "within", "--cutoffs", "3"],
            "--result within takes none",
        ),
    ],
)
@pytest.mark.usefixtures("places")
def test_columns_that_cannot_be_used_are_refused(words, said, data, job, tmp_path, capsys):
    odd = {
        "far": [1.0, 2.0, np.inf, 1.0, 2.0, 1.0, 1.0],
        "infinite": np.inf,
        "huge": 2**61,
        "gap": ["a", None, *"bcdef"],
    }
    table = pd.read_parquet(data / "stops.parquet").assign(two=range(1, 8), **odd)
    table.to_parquet(tmp_path / "own.parquet", index=False)
    places = ["--vertices", data / "places.csv"] if "opportunities" in words else []
    assert said in refused(
        capsys, *job.command(tmp_path / "out", *words, *places, table=tmp_path / "own.parquet")
    )
    assert not (tmp_path / "out").exists()


def opportunities(data, weights):
    more = ["--columns", f"source_weight={weights}"] if weights else []
    return [*AREA[:-1], "--vertices", str(data / "places.csv"), *more]


@pytest.fixture(scope="module")
def places(data):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"vertex": np.arange(N) * 7, "jobs": rng.integers(-9, 99, N), "area": rng.random(N)}
    )
    table.to_csv(data / "places.csv", index=False)
    return table


@pytest.mark.parametrize(
    ("words", "role", "column"),
    [([], "limit", "most"), (GROUPS[:-2], "group", "kind"), (None, "source_weight", "people")],
)
@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_called_by_their_roles_are_found(
    words, role, column, suffix, data, job, tmp_path, capsys
):
    """Columns of roles that the result has not are passed over."""
    words = opportunities(data, None) if words is None else words
    table = pd.read_parquet(data / "stops.parquet")
    table = table.rename(
        columns={"stop": "source", "most": "limit", "kind": "group", "people": "weight"}
    )
    path = tmp_path / f"own.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    common = [
        data / "edges.parquet",
        "--sources",
        path,
        "--device",
        "cpu",
        "--no-report",
        "--output",
        tmp_path / "out",
    ]
    assert main([str(word) for word in (*common, *words)]) == 0
    found = manifest_of(tmp_path / "out")
    named = {"limit": "limit", "group": "group", "source_weight": "weight"}
    assert found["settings"]["columns"] == {"source": "source", role: named[role]}
    expected = job(*words, "--columns", f"{role}={column}")
    assert found["digest"] == manifest_of(expected)["digest"]
    capsys.readouterr()
    assert verify.main([str(tmp_path / "out"), str(data / "edges.parquet"), "--device", "cpu"]) == 0


@pytest.mark.parametrize("column", ["people", "share"])
def test_sums_are_multiplied_by_the_weight_of_their_source(column, data, places, job, capsys):
    words = opportunities(data, column)
    folder = job(*words, "--batch-size", "4")
    plain = rows_of(job(*opportunities(data, None)))
    weights = (
        pd.read_parquet(data / "stops.parquet").drop_duplicates("stop").set_index("stop")[column]
    )
    rows = rows_of(folder)
    assert rows["jobs"].dtype == (np.int64 if column == "people" else np.float64)
    for name in ("jobs", "area"):
        assert rows[name].tolist() == (plain[name] * plain["source"].map(weights)).tolist()
    for other in (
        job(*words, "--batch-size", "1"),
        job(*words, "--certify", "none", table="stops.csv"),
    ):
        assert rows_of(other).equals(rows)
    graph = read_graph(data / "edges.parquet", device="cpu", weighted=False)
    table = pd.read_parquet(data / "stops.parquet")
    options = {"result": "opportunities", "values": places, "cutoffs": [1, 3]}
    found = bfs_many(graph, table["stop"].tolist(), source_weights=table[column], **options)
    assert found.drop_duplicates(["source", "cutoff"]).reset_index(drop=True).equals(rows)
    code, found = proven(folder, data / "edges.parquet", capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": 6})
    other = "share" if column == "people" else "people"
    resumed = job.command(folder, *opportunities(data, other), "--batch-size", "4", "--resume")
    assert "reduction was" in refused(capsys, *resumed)


@pytest.mark.parametrize("weights", [[1, 3], [1.0, 0.5], [1e30, 2e30]])
@pytest.mark.parametrize("limit", [2.5, 2.0**63, 1.5e30, 1.0000000150474662e30, 1e300])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_limit_of_a_column_is_that_of_a_cutoff(weights, limit, form, tmp_path):
    graph = graph_from_edges([0, 1], [1, 2], weights)
    path = tmp_path / f"stops.{form}"
    table = pd.DataFrame({"source": [0], "most": [limit]})
    if form == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    asked = {"algorithm": "sssp", "sources": path, "columns": {"limit": "most"}, "report": False}
    found = run_job(graph, output=tmp_path / "out", **asked).to_pandas()
    expected = sssp_many(graph, [0], cutoff=limit)
    assert found.distance.tolist() == expected.distance.tolist()
