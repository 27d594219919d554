"""Summaries outward and inward, compared with igraph, in Python and as a job."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import bfs_many, sssp_many, sssp_pairs
from kepler_traverse.errors import InputError, NegativeCycleError
from pipelines import verify
from pipelines.batch_sources import main
from tests.support.graphs import NAMED, build, weights_for
from tests.support.jobs import manifest_of, refused, write_edges

RNG = np.random.default_rng(11)
ROWS = sorted({(int(u), int(v)) for u, v in RNG.integers(0, 40, (110, 2)) if u != v})
WEIGHTS = RNG.integers(1, 20, len(ROWS)).tolist()
GRAPH = build(ROWS, WEIGHTS)
IDS = GRAPH.ids.tolist()


def igraph_graph():
    import igraph  # here, as it takes a second to import, in each process that collects tests

    place = {name: at for at, name in enumerate(IDS)}
    return igraph.Graph(n=len(IDS), edges=[(place[u], place[v]) for u, v in ROWS], directed=True)


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("weighted", [False, True])
def test_summaries_inward_are_those_of_igraph_in_that_mode(direction, weighted):
    frame = (sssp_many if weighted else bfs_many)(GRAPH, IDS, result="summary", direction=direction)
    other, weights = igraph_graph(), WEIGHTS if weighted else None
    distances = np.array(other.distances(mode=direction, weights=weights), np.float64)
    others = np.where(np.isfinite(distances), distances, 0)
    reached = np.isfinite(distances).sum(axis=1)
    assert frame["source"].tolist() == IDS
    assert frame["closeness"].nunique() > 10
    assert frame["reached"].tolist() == reached.tolist()
    assert frame["eccentricity"].tolist() == others.max(axis=1).tolist()
    assert frame["sum"].tolist() == others.sum(axis=1).tolist()
    n = len(IDS)
    of_igraph = (
        np.nan_to_num(other.closeness(mode=direction, weights=weights)) * (reached - 1) / (n - 1)
    )
    np.testing.assert_allclose(frame["closeness"], of_igraph, rtol=1e-12)
    np.testing.assert_allclose(
        frame["harmonic"] / (n - 1),
        other.harmonic_centrality(mode=direction, weights=weights),
        rtol=1e-12,
    )


def test_an_undirected_graph_has_one_summary():
    rows = [row[:2] for row in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 3), directed=False)
    for many in (bfs_many, sssp_many):
        out, inward = (many(graph, [3, 1], result="summary", direction=d) for d in ("out", "in"))
        assert out.equals(inward)


def test_the_reverse_of_the_reverse_is_no_third_graph():
    bfs_many(GRAPH, [1], result="summary", direction="in")
    assert GRAPH.reverse.reverse is GRAPH


@pytest.mark.parametrize("result", ["distances", "predecessors", "reachable"])
def test_direction_in_is_refused_for_other_results(result):
    with pytest.raises(InputError, match="direction='in' is for result matrix"):
        bfs_many(GRAPH, [1], result=result, direction="in")


def test_negative_cycle_is_reported_in_the_order_of_the_edges():
    graph = build([(0, 1), (1, 2), (2, 0), (2, 3)], [1, 1, -4, 1])
    with pytest.raises(NegativeCycleError) as caught:
        sssp_many(graph, [3], result="summary", direction="in")
    cycle = caught.value.cycle
    assert cycle[cycle.index(0) :] + cycle[: cycle.index(0)] == [0, 1, 2]


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", *zip(*ROWS, strict=True), WEIGHTS
    )


def test_a_job_counts_inward_says_so_and_can_be_verified(edges, tmp_path):
    folder = tmp_path / "out"
    words = [
        str(edges),
        "--all-sources",
        "--algorithm",
        "sssp",
        "--result",
        "summary",
        "--workers",
        "1",
        "--device",
        "cpu",
    ]
    assert main([*words, "--direction", "in", "--output", str(folder)]) == 0
    expected = sssp_many(GRAPH, IDS, result="summary", direction="in")
    assert pd.read_parquet(sorted(folder.glob("part-*.parquet"))).equals(expected)
    manifest = manifest_of(folder)
    assert (
        manifest["direction"]
        == manifest["settings"]["direction"]
        == manifest["identity"]["direction"]
        == "in"
    )
    assert "distances to the sources" in (folder / "_report.html").read_text()
    assert verify.main([str(folder), str(edges)]) == 0
    # A run in the other direction is another run with other rows.
    assert main([*words, "--resume", "--output", str(folder)]) == 2
    manifest["identity"]["direction"] = "out"
    (folder / "_manifest.json").write_text(json.dumps(manifest))
    assert verify.main([str(folder), str(edges)]) == verify.EXIT_WRONG


def test_a_job_refuses_a_direction_that_its_result_does_not_have(edges, tmp_path, capsys):
    for wrong in (
        ["--direction", "in"],
        ["--direction", "in", "--result", "reachable"],
        ["--direction", "inward"],
    ):
        assert "--direction" in refused(
            capsys, edges, "--all-sources", *wrong, "--output", tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def arguments_of(kind, folder):
    """Return the flags of a job, and what the library returns for the same question."""
    sources = [IDS[3], IDS[17], IDS[8]]
    targets = IDS[10:25]
    flags = {
        "targets": ["--result", "targets"],
        "matrix": ["--result", "matrix"],
        "nearest": ["--result", "nearest"],
        "k nearest": ["--result", "nearest", "--nearest-k", "2"],
        "nearest targets": ["--result", "nearest", "--nearest-k", "2"],
        "isochrones": ["--result", "isochrones", "--cutoffs", "9,30"],
    }[kind]
    takes_targets = kind in ("targets", "nearest targets")
    if takes_targets:
        (folder / "targets.txt").write_text("".join(f"{target}\n" for target in targets))
        flags += ["--targets", str(folder / "targets.txt")]
    (folder / "sources.txt").write_text("".join(f"{source}\n" for source in sources))
    flags += ["--sources", str(folder / "sources.txt")]
    options = {"result": flags[1], "direction": "in"}
    if takes_targets:
        options["targets"] = targets
    if "--nearest-k" in flags:
        options["k"] = 2
    if kind == "isochrones":
        options["cutoffs"] = [9, 30]
    return flags, sssp_many(GRAPH, sorted(sources) if "nearest" in kind else sources, **options)


@pytest.mark.parametrize(
    "kind", ["targets", "matrix", "nearest", "k nearest", "nearest targets", "isochrones"]
)
def test_a_job_of_other_results_inward(kind, edges, tmp_path):
    flags, expected = arguments_of(kind, tmp_path)
    folder = tmp_path / "out"
    words = [str(edges), "--algorithm", "sssp", "--workers", "1", "--device", "cpu"]
    assert main([*words, *flags, "--direction", "in", "--output", str(folder)]) == 0
    assert manifest_of(folder)["direction"] == "in"
    if kind == "matrix":
        parts = sorted(folder.glob("part-*.arrow"))
        table = pa.concat_tables(pa.ipc.open_file(part).read_all() for part in parts)
        made = np.array(table["distance"].to_pylist(), np.float64)
        assert np.array_equal(np.where(made < 0, np.inf, made), expected)
    else:
        made = pd.concat(map(pd.read_parquet, sorted(folder.glob("part-*.parquet"))))
        keys = [name for name in ("source", "vertex", "rank", "target") if name in expected]
        pd.testing.assert_frame_equal(
            made.sort_values(keys, ignore_index=True),
            expected.sort_values(keys, ignore_index=True),
            check_dtype=False,
        )
    assert verify.main([str(folder), str(edges)]) == 0


def test_a_job_of_pairs_inward(edges, tmp_path):
    pairs = pd.DataFrame({"origin": [IDS[3]] * 9, "destination": IDS[10:19]})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    folder = tmp_path / "out"
    words = [str(edges), "--algorithm", "sssp", "--workers", "1", "--device", "cpu"]
    words += ["--result", "pairs", "--pairs", str(tmp_path / "pairs.csv")]
    assert main([*words, "--direction", "in", "--output", str(folder)]) == 0
    expected = sssp_pairs(GRAPH, pairs.origin, pairs.destination, direction="in")
    made = pd.read_parquet(folder / "_pairs.pq")
    assert made.distance.astype("Int64").tolist() == expected.distance.tolist()
    assert verify.main([str(folder), str(edges)]) == 0
