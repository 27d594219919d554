"""Harmonic centrality of all vertices from sampled sources: sums of the levels' bits against hops of the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kepler_traverse import plan_bfs
from kepler_traverse.bfs.multi_source.harmonic_sums import UNIT_BITS, HarmonicSums, sample_size
from scripts.bench import large_graphs
from scripts.measure.work import OURS, Inputs
from tests.support.devices import FIRST, MODES, host, in_each, in_one, on_a_device
from tests.support.graphs import build, lattice, path, rmat

mode, one_order = in_each(MODES), in_one(FIRST)
GRAPHS = {
    "power law": rmat(7, 8, seed=3),
    "lattice": lattice(5, 9),
    "a path and what nothing reaches": [*path(40), (50, 51), (51, 52)],
}


def sums_of_cpu(graph, sources) -> list[int]:
    """Sums in units of 2^-40, of hops that the CPU finds."""
    sums = [0] * graph.n_vertices
    search = plan_bfs(graph)
    for source in sources.tolist():
        for vertex, hops in enumerate(search.run(source).distance.tolist()):
            if hops > 0:
                sums[vertex] += (1 << UNIT_BITS) // hops
    return sums


@on_a_device
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.usefixtures("mode")
def test_sums_are_those_of_hops_from_each_source(name, group):
    graph = build(GRAPHS[name])
    sums = HarmonicSums(graph.to("cuda"), group)
    sources = np.random.default_rng(1).choice(graph.n_vertices, 40, replace=False)
    searched = []
    sums.add(sources[:37], searched.append)
    sums.add(sources[37:])
    assert host(sums.sums).tolist() == sums_of_cpu(graph, sources)
    assert sum(searched) == (graph.derived.degrees[sources[:37]] > 0).sum()
    n = graph.n_vertices
    expected = np.array(sums_of_cpu(graph, sources)) / 2.0**UNIT_BITS * n / (40 * (n - 1))
    np.testing.assert_allclose(host(sums.centrality()), expected, rtol=1e-12)


@on_a_device
@pytest.mark.usefixtures("one_order")
def test_all_sources_give_the_harmonic_centrality_itself():
    graph = build(GRAPHS["lattice"], directed=False)
    sums = HarmonicSums(graph.to("cuda"), 32)
    sums.add(np.arange(graph.n_vertices))
    n = graph.n_vertices
    exact = [
        sum(1 / hops for hops in plan_bfs(graph).run(v).distance.tolist() if hops > 0) / (n - 1)
        for v in range(n)
    ]
    np.testing.assert_allclose(host(sums.centrality()), exact, atol=1e-11)


def test_a_sample_is_as_large_as_the_bound_says():
    for n, error, confidence in ((119_000_000, 0.01, 0.95), (1000, 0.1, 0.5), (1, 0.5, 0.5)):
        k = sample_size(n, error, confidence)
        misses = [2 * n * math.exp(-2 * size * error**2) for size in (k, k - 1)]
        assert misses[0] <= 1 - confidence < misses[1]


@pytest.fixture
def little(monkeypatch):
    """Small graphs in the place of large ones."""
    small = {"SCALE": 6, "MANY": 32, "GROUPS": (32,), "VERTICES": 100, "EDGES": 600}
    for name, value in (small | {"ERROR": 0.3, "PIECE": 500}).items():
        monkeypatch.setattr(large_graphs, name, value)


@on_a_device
@pytest.mark.usefixtures("one_order", "little")
def test_large_graphs_are_searched_alike_wherever_their_edges_are(monkeypatch):
    for work in large_graphs.works(Inputs(device="cuda")):
        case = work.case(Inputs())
        found = {name: work.peer(name).prepare(case)() for name in work.peers}
        expected = found.pop(OURS)
        assert expected.seconds > 0
        assert [work.check(expected.found, each.found) for each in found.values()] == [""] * len(
            found
        )
        if found:
            assert set(found) == set(large_graphs.WAYS)
            assert work.check(expected.found, expected.found + 1)
    assert 10 < expected.more["size"] <= work.facts(case)["vertices"] == 100
    monkeypatch.setattr(large_graphs, "UNIT_BITS", UNIT_BITS - 1)
    with pytest.raises(SystemExit, match="harmonic sums differ"):
        large_graphs.centrality(case)
