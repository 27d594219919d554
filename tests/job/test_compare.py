"""Comparison with SciPy: agreement is reported, and a single wrong distance is found."""

import json

import numpy as np
import pytest

from kepler_traverse import cuda
from pipelines import comparison
from pipelines.compare import main
from pipelines.comparison import MAX_WEIGHT, hashed_weights
from pipelines.run.prepare import random_sources
from tests.support import tiers
from tests.support.jobs import call, refused, summary_of, write_edges


@pytest.fixture
def edges(tmp_path):
    """Edge list whose weights are not whole numbers, with vertices that no source reaches."""
    rng = np.random.default_rng(2)
    src, dst = rng.integers(-50, 150, (2, 600))
    return write_edges(tmp_path / "edges.parquet", src, dst, rng.random(600))


@pytest.fixture
def no_children(monkeypatch):
    """Leave out the processes that measure memory."""
    monkeypatch.setattr("pipelines.comparison.peak_memory", lambda *_: {"ours": 1, "peer": 2})


def test_memory_is_that_of_processes_of_their_own(edges, capsys):
    algorithm = [] if tiers.ALL else ["--algorithm", "sssp"]
    facts = summary_of(
        capsys, edges, "--random-sources", 5, "--device", "cpu", "--json", *algorithm, program=main
    )
    assert [run["algorithm"] for run in facts["runs"]] == (
        ["bfs", "sssp"] if tiers.ALL else ["sssp"]
    )
    for run in facts["runs"]:
        assert run["equal"]
        assert run["certified"] == 5
        assert run["peer"] == "SciPy"
        assert run["ours_ms"]["median"] > 0
        assert run["peak_rss_bytes"]["ours"] > 10**7
        assert run["peak_rss_bytes"]["peer"] > 10**7
    assert facts["versions"]["scipy"]


@pytest.mark.usefixtures("no_children")
@pytest.mark.parametrize(
    "flags", [[], ["--undirected"], ["--hash-weights"], ["--hash-weights", "--undirected"]]
)
def test_the_table_says_that_all_is_equal(edges, capsys, flags):
    code, out, _ = call(
        capsys, edges, "--random-sources", 3, "--device", "cpu", *flags, program=main
    )
    assert code == 0
    assert out.count("all distances equal, 3 results certified") == 2


@pytest.mark.usefixtures("no_children")
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_wrong_distance_is_noticed(edges, capsys, monkeypatch, algorithm):
    right = comparison.in_our_encoding

    def one_off(*arguments):
        distance = right(*arguments).copy()
        distance[7] += 1 if distance[7] < 1000 else -np.inf
        return distance

    monkeypatch.setattr(comparison, "in_our_encoding", one_off)
    words = [
        "--algorithm",
        algorithm,
        "--random-sources",
        2,
        "--device",
        "cpu",
        "--undirected",
        "--json",
    ]
    code, out, _ = call(capsys, edges, *words, program=main)
    assert code == 1
    (run,) = json.loads(out)["runs"]
    assert not run["equal"]
    assert run["differing_distances"] == 2


@pytest.mark.parametrize(
    ("weights", "flags", "message"),
    [
        ([1, -1, 1], ["--algorithm", "sssp"], "negative weights"),
        ([2**53, 3, 2**53], ["--algorithm", "sssp"], "scale the weights down"),
        ([1, 1, 1], ["--random-sources", "0"], "must be 1 or more"),
        ([1, 1, 1], ["--random-sources", "9"], "9 random sources"),
        ([1, 1, 1], ["--seed", "1", "--seed", "1"], "--seed is given twice"),
    ],
)
def test_incomparable_graphs_and_options_are_refused(tmp_path, capsys, weights, flags, message):
    path = write_edges(tmp_path / "edges.parquet", [0, 1, 2], [1, 2, 3], weights)
    if "--random-sources" not in flags:
        flags = [*flags, "--random-sources", "3"]
    (line,) = refused(capsys, path, "--device", "cpu", *flags, program=main).splitlines()
    assert message in line


def test_hashed_weights_are_the_stated_ones():
    def mix(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    rng = np.random.default_rng(1)
    src, dst = rng.integers(-(2**40), 2**40, (2, 500))
    expected = [
        1 + mix((mix(u % 2**64) + v) % 2**64) % 255
        for u, v in zip(src.tolist(), dst.tolist(), strict=True)
    ]
    weights = hashed_weights(src, dst, directed=True)
    assert weights.tolist() == expected
    assert (weights.min(), weights.max()) >= (1, 1)
    assert weights.max() <= MAX_WEIGHT
    undirected = hashed_weights(src, dst, directed=False)
    np.testing.assert_array_equal(undirected, hashed_weights(dst, src, directed=False))


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["--directed", "--undirected"])
def test_compare_finds_both_algorithms_to_agree_with_cugraph(edges, capsys, direction):
    code, out, err = call(
        capsys,
        edges,
        "--random-sources",
        8,
        "--device",
        "cuda",
        "--hash-weights",
        direction,
        "--json",
        program=main,
    )
    assert code == 0, err
    assert all(run["equal"] and run["peer"] == "cuGraph" for run in json.loads(out)["runs"])


@pytest.mark.gpu
def test_random_sources_are_the_same_on_both_devices(edges):
    from kepler_traverse.graph.read import read_graph

    graph = read_graph(edges, device="cpu")
    assert cuda.available()
    np.testing.assert_array_equal(
        random_sources(graph, 9, 4), random_sources(graph.to("cuda"), 9, 4)
    )
