"""Closed vertices, two weights per row and the largest component of a job, compared with the library."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import read_graph, sssp_many, sssp_pairs
from pipelines import verify
from pipelines.batch_sources import main
from tests.support.jobs import manifest_of

SOURCES = [3, 21, 12, 30]
CLOSED = [3, 12, 9, 27]
TARGETS = [0, 9, 27, 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    rng = np.random.default_rng(5)
    size = 40
    costs = rng.integers(-2, 7, (2, size))
    pd.DataFrame(
        {
            "src": rng.integers(0, 12, size) * 3,
            "dst": rng.integers(0, 12, size) * 3,
            "cost": costs[0],
            "reverse_cost": costs[1],
        }
    ).to_csv(folder / "edges.csv", index=False)
    for name, ids in {"sources": SOURCES, "targets": TARGETS, "closed": CLOSED}.items():
        (folder / f"{name}.txt").write_text("".join(f"{each}\n" for each in ids))
    pd.DataFrame({"origin": SOURCES * 2, "destination": TARGETS + SOURCES}).to_csv(
        folder / "pairs.csv", index=False
    )
    return folder


KINDS = {
    "distances": {},
    "predecessors": {},
    "targets": {"targets": TARGETS},
    "nearest": {},
    "k nearest": {"k": 2},
    "isochrones": {"cutoffs": [4, 9]},
    "within": {"cutoffs": [4, 9]},
    "summary": {},
}


def run(folder, output, *words):
    fixed = ["--algorithm", "sssp"]
    if "--columns" not in words:
        fixed += ["--columns", "weight=cost,reverse_weight=reverse_cost"]
    fixed += ["--closed", folder / "closed.txt", "--workers", 1, "--device", "cpu"]
    every = [folder / "edges.csv", *fixed, *words, "--output", output]
    assert main([str(word) for word in every]) == 0
    return output


def graph_of(folder, **options):
    return read_graph(
        folder / "edges.csv",
        weight_column="cost",
        reverse_weight_column="reverse_cost",
        device="cpu",
        closed=CLOSED,
        **options,
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_results_are_those_of_the_library(kind, folder, tmp_path):
    options = KINDS[kind]
    result = kind.removeprefix("k ")
    words = ["--result", result, "--sources", folder / "sources.txt"]
    words += ["--targets", folder / "targets.txt"] if "targets" in options else []
    words += ["--nearest-k", 2] if "k" in options else []
    words += ["--cutoffs", "4,9"] if "cutoffs" in options else []
    made = run(folder, tmp_path / "out", *words)
    rows = pd.concat(map(pd.read_parquet, sorted(made.glob("part-*.parquet"))))
    expected = sssp_many(graph_of(folder), SOURCES, result=result, **options)
    keys = [name for name in ("source", "vertex", "rank", "target", "cutoff") if name in expected]
    rows = rows.sort_values(keys, ignore_index=True)
    expected = expected.sort_values(keys, ignore_index=True)
    assert rows[expected.columns].astype(float).equals(expected.astype(float))
    assert verify.main([str(made), str(folder / "edges.csv"), "--device", "cpu"]) == 0
    assert manifest_of(made)["settings"]["closed"].endswith("closed.txt")


def test_closed_vertices_are_listed_or_in_a_file(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edges = [str(folder / "edges.csv"), "--columns", "weight=cost,reverse_weight=reverse_cost"]
    words = [*edges, "--algorithm", "sssp", "--sources", "3", "--device", "cpu", "--no-report"]
    digests = set()
    for name, given in {
        "listed": ",".join(map(str, CLOSED)),
        "file": str(folder / "closed.txt"),
    }.items():
        assert main([*words, "--closed", given, "--output", name]) == 0
        digests.add(manifest_of(Path(name))["digest"])
        assert verify.main([name, edges[0], "--device", "cpu"]) == 0
    assert len(digests) == 1
    Path("6").touch()
    for given, text in {
        "x.txt": "'x.txt' is not a vertex: the ids of this graph are integers. Nor is there a file",
        "3,,6": "'3,,6' holds an empty id",
        "6": "'6' may be ids or the file of this name; for the file give ./6",
    }.items():
        capsys.readouterr()
        assert main([*words, "--closed", given, "--output", "refused"]) == 2
        assert text in capsys.readouterr().err


COLUMNS_OF_TABLES = {
    "groups of targets": ("nearest_targets", "targets", "groups", "group", list("abab")),
    "groups of sources": ("k_nearest", "sources", "groups", "group", list("abba")),
    "limits of sources": ("targets", "sources", "cutoff", "limit", [3, 9, 5, 7]),
    "weights of sources": (
        "opportunities",
        "sources",
        "source_weights",
        "source_weight",
        [1, 4, 2, 8],
    ),
    "weights of targets": ("flows", "targets", "target_weights", "target_weight", [1, 4, 2, 8]),
}


@pytest.mark.parametrize("column", list(COLUMNS_OF_TABLES))
def test_columns_of_tables_belong_to_closed_vertices_as_in_the_library(column, folder, tmp_path):
    result, table, option, name, values = COLUMNS_OF_TABLES[column]
    ids = {"sources": SOURCES, "targets": TARGETS}
    files = {each: tmp_path / f"{each}.csv" for each in ids}
    for each, path in files.items():
        own = {name: values} if each == table else {}
        pd.DataFrame({each.removesuffix("s"): ids[each]} | own).to_csv(path, index=False)
    words = ["--result", result, "--sources", files["sources"]]
    options = {option: values}
    if result in ("nearest_targets", "targets", "flows"):
        words += ["--targets", files["targets"]]
        options["targets"] = TARGETS
    if result in ("nearest_targets", "k_nearest"):
        words += ["--nearest-k", 1]
        options["k"] = 1
    if result == "opportunities":
        vertices = pd.DataFrame({"vertex": CLOSED, "jobs": [1, 10, 100, 1000]})
        vertices.to_csv(tmp_path / "vertices.csv", index=False)
        words += ["--vertices", tmp_path / "vertices.csv", "--values", "jobs", "--cutoffs", "4,9"]
        options |= {"values": vertices, "cutoffs": [4, 9]}
    roles = f"weight=cost,reverse_weight=reverse_cost,{name}={name}"
    made = run(folder, tmp_path / "out", "--columns", roles, *words)
    graph = graph_of(folder, edge_ids=result == "flows")
    expected = sssp_many(graph, SOURCES, result=result, **options)
    if result == "flows":
        loads = pd.read_parquet(made / "_loads.pq")
        assert loads[["src", "dst", "volume"]].equals(expected[["src", "dst", "volume"]])
        return
    rows = pd.concat(map(pd.read_parquet, sorted(made.glob("part-*.parquet"))))
    keys = [each for each in expected if each not in ("distance", "jobs", "reached")]
    rows = rows.sort_values(keys, ignore_index=True)[expected.columns]
    expected = expected.sort_values(keys, ignore_index=True)
    assert rows.convert_dtypes().astype(str).equals(expected.convert_dtypes().astype(str))
    assert len(rows)


def test_pairs_and_flows_are_those_of_the_library(folder, tmp_path):
    words = ["--pairs", folder / "pairs.csv", "--result"]
    pairs = pd.read_csv(folder / "pairs.csv")
    made = run(folder, tmp_path / "pairs", *words, "pairs")
    expected = sssp_pairs(graph_of(folder), pairs.origin, pairs.destination)
    answered = pd.read_parquet(made / "_pairs.pq")
    found = answered.distance.astype("Int64").fillna(-1)
    assert found.tolist() == expected.distance.fillna(-1).tolist()
    edges = str(folder / "edges.csv")
    assert verify.main([str(made), edges, "--device", "cpu"]) == 0
    for result in ("flows", "paths"):
        made = run(folder, tmp_path / result, *words, result)
        assert verify.main([str(made), edges, "--device", "cpu"]) == 0
    flows = sssp_pairs(
        graph_of(folder, edge_ids=True), pairs.origin, pairs.destination, result="flows"
    )
    loads = pd.read_parquet(tmp_path / "flows" / "_loads.pq")
    assert loads[["src", "dst", "volume"]].equals(flows[["src", "dst", "volume"]])


def test_all_sources_and_the_largest_component(folder, tmp_path):
    words = ["--result", "summary", "--all-sources"]
    made = run(folder, tmp_path / "all", *words)
    rows = pd.concat(map(pd.read_parquet, sorted(made.glob("part-*.parquet"))))
    expected = sssp_many(graph_of(folder), "all", result="summary")
    assert rows.reset_index(drop=True).equals(expected)
    (tmp_path / "one.txt").write_text("3\n")
    fixed = ["--algorithm", "sssp", "--columns", "weight=cost,reverse_weight=reverse_cost"]
    fixed += ["--largest-component", "--all-sources", "--result", "summary"]
    fixed += ["--workers", "1", "--device", "cpu", "--output", str(tmp_path / "largest")]
    assert main([str(folder / "edges.csv"), *fixed]) == 0
    rows = pd.concat(map(pd.read_parquet, sorted((tmp_path / "largest").glob("part-*.parquet"))))
    assert (rows.reached == len(rows)).all()
