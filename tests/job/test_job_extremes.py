"""``--result extremes``: those of the library, without sources; resumed, verified, refused."""

import functools
import shutil

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pipelines import run_job
from pipelines.batch_sources import main
from tests.job.test_result_kinds import first_lost, forge
from tests.support.jobs import (
    Runs,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    refused,
    rows_of,
    summary_of,
    write_edges,
)

N = 70
CASES = {
    "bfs": ["--undirected"],
    "sssp": ["--undirected", "--algorithm", "sssp"],
    "largest": ["--unconnected", "largest"],
    "floats": ["--undirected", "--algorithm", "sssp", "--columns", "weight=share"],
}


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(4)
    src, dst = np.concatenate(
        [[np.arange(N - 1), np.arange(1, N)], rng.integers(0, N, (2, 40))], axis=1
    )
    name = np.vectorize("v{:03d}".format)
    weight = rng.integers(1, 9, src.size)
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    return write_edges(path, name(src), name(dst), weight, share=weight / 8)


def command(edges, folder, case, *more):
    words = [
        edges,
        "--result",
        "extremes",
        *CASES[case],
        "--device",
        "cpu",
        "--no-report",
        "--json",
        "--output",
        folder,
    ]
    return [str(word) for word in (*words, *more)]


@pytest.fixture(scope="module")
def job(edges, tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), functools.partial(command, edges))


def by_networkx(edges, case):
    table = pd.read_parquet(edges)
    weight = {"sssp": "weight", "floats": "share"}.get(case)
    graph = nx.MultiDiGraph() if case == "largest" else nx.MultiGraph()
    for row in table.itertuples():
        if row.src != row.dst:
            graph.add_edge(row.src, row.dst, weight=row.weight, share=row.share)
    if case == "largest":
        graph = graph.subgraph(max(nx.strongly_connected_components(graph), key=len))
    far = {
        v: max(
            nx.single_source_dijkstra_path_length(
                graph, v, weight=weight or (lambda *_: 1)
            ).values()
        )
        for v in graph
    }
    rows = [("center", v, far[v]) for v in sorted(graph) if far[v] == min(far.values())]
    return rows + [("periphery", v, far[v]) for v in sorted(graph) if far[v] == max(far.values())]


@pytest.mark.parametrize("case", CASES)
def test_rows_are_the_extremes_of_all_eccentricities(case, edges, job, capsys):
    folder = job(case)
    rows = rows_of(folder)
    assert list(rows.columns) == ["set", "vertex", "eccentricity"]
    assert list(rows.itertuples(index=False, name=None)) == by_networkx(edges, case)
    assert manifest_of(job(case, "--certify", "none"))["digest"] == manifest_of(folder)["digest"]
    assert proven(folder, edges, capsys)[0] == 0
    assert main(command(edges, folder, case, "--resume")) == 0


def test_the_part_is_written_again_and_is_kept_if_it_is_right(edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("sssp"), tmp_path / "out")
    before = parts_of(folder)
    (folder / "part-000000.parquet").unlink()
    assert main(command(edges, folder, "sssp", "--resume")) == 0
    assert parts_of(folder) == before
    forget_parts(folder)
    assert summary_of(capsys, *command(edges, folder, "sssp", "--resume"))["computed"] == 0
    assert "unconnected was" in refused(
        capsys, *command(edges, folder, "sssp", "--resume", "--unconnected", "largest")
    )


@pytest.mark.parametrize(
    "change",
    [
        first_lost,
        lambda t: t.set_column(2, "eccentricity", pa.array(t["eccentricity"].to_numpy() + 1)),
    ],
)
def test_wrong_extremes_are_found(change, edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("sssp"), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, edges, capsys)
    assert (code, {fault["kind"] for fault in found["faults"]}) == (5, {"wrong result"})


def test_a_graph_in_memory_needs_no_sources(edges, job, tmp_path):
    made = run_job(
        pd.read_parquet(edges), output=tmp_path / "out", result="extremes", directed=False
    )
    assert made.to_pandas().equals(rows_of(job("bfs")))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--all-sources"], "leave --all-sources out"),
        (["--max-depth", "3"], "leave --max-depth out"),
        (["--batch-size", "3"], "leave --batch-size out"),
        (["--result", "distances", "--sources", "v001", "--unconnected", "largest"],
         "--unconnected is for --result extremes, not distances"),
    ],
)  # fmt: skip
def test_extremes_refuse_options_that_they_do_not_take(more, said, edges, tmp_path, capsys):
    base = [] if "--result" in more else ["--result", "extremes"]
    assert said in refused(
        capsys, edges, *base, "--device", "cpu", "--output", tmp_path / "out", *more
    )
    assert not (tmp_path / "out").exists()
