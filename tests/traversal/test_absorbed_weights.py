"""Weights that rounding absorbs in a distance: shortest paths are then counted by exact sums.

The oracle is NetworkX with the weights as Python's fractions, whose sums are exact.
"""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import CertificateError, graph_from_edges, sssp_many
from kepler_traverse.cpu import betweenness as cpu
from kepler_traverse.kinds import betweenness
from tests.support import tiers
from tests.support.devices import FIRST, frames_on_pandas, on_a_device, running

# 1e-17 is less than half a unit in the last place of 1.0 in float64, and so is 1e-9 in float32.
WEIGHTS = {
    np.float64: [
        1.0,
        2.0,
        0.1,
        1e-9,
        1e-17,
        2e-17,
        3e-17,
        1e-34,
        5e-324,
        2.0**-53,
        2.0**-54,
        1e300,
    ],
    np.float32: [1.0, 2.0, 0.1, 1e-9, 2e-9, 3e-9, 1e-18, 1e-45, 2.0**-24, 2.0**-25, 1e30],
}


@st.composite
def networks(draw):
    """A graph, and the same in NetworkX with fractions."""
    n, directed, kind = (
        draw(st.integers(2, 10)),
        draw(st.booleans()),
        draw(st.sampled_from(list(WEIGHTS))),
    )
    ends = st.integers(0, n - 1)
    rows = draw(
        st.lists(st.tuples(ends, ends, st.sampled_from(WEIGHTS[kind])), min_size=1, max_size=30)
    )
    src, dst, weights = map(np.array, zip(*rows, strict=True))
    there = (nx.DiGraph if directed else nx.Graph)()
    there.add_nodes_from(range(n))
    for u, v, weight in zip(src.tolist(), dst.tolist(), weights.astype(kind), strict=True):
        exact = Fraction(float(weight))
        there.add_edge(
            u, v, weight=min(exact, there.get_edge_data(u, v, {"weight": exact})["weight"])
        )
    there.remove_edges_from(list(nx.selfloop_edges(there)))
    return graph_from_edges(
        src, dst, weights.astype(kind), vertices=np.arange(n), directed=directed
    ), there


def require_values(graph, there, **options):
    """Compare the values of vertices and edges with those of fractions."""
    kept = sssp_many(graph, "all", result="betweenness", **options)
    found = dict(zip(kept["vertex"], kept["betweenness"], strict=True))
    expected = nx.betweenness_centrality(there, weight="weight", **options)
    assert found == pytest.approx(
        {v: float(value) for v, value in expected.items()}, rel=1e-12, abs=1e-12
    )
    kept = sssp_many(graph, "all", result="betweenness", of="edges")
    found = {
        (u, v): value
        for u, v, value in zip(kept["src"], kept["dst"], kept["betweenness"], strict=True)
    }
    expected = nx.edge_betweenness_centrality(there, weight="weight")
    expected = {key if key in found else key[::-1]: float(value) for key, value in expected.items()}
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=tiers.examples(200), deadline=None)
@given(networks(), st.booleans())
def test_values_are_those_of_exact_fractions(network, endpoints):
    require_values(*network, endpoints=endpoints)


@on_a_device
def test_values_of_a_gpu_are_those_of_exact_fractions():
    @settings(max_examples=tiers.examples(24), deadline=None)
    @given(networks())
    def check_one(network):
        graph, there = network
        require_values(graph.to("cuda"), there)

    with running(FIRST), frames_on_pandas():
        check_one()


def test_metres_in_float32_with_short_edges_count_each_path():
    n = 120
    weights = np.where(np.arange(n) % 20, 210, 0.001).astype(np.float32)
    graph = graph_from_edges(np.arange(n), np.arange(1, n + 1), weights, directed=False)
    kept = sssp_many(graph, "all", result="betweenness", normalized=False)
    assert kept["betweenness"].tolist() == [k * (n - k) for k in range(n + 1)]


def test_targets_and_a_cutoff_limit_what_is_counted():
    graph = graph_from_edges([0, 1, 2, 3], [1, 2, 3, 4], [1.0, 1e-17, 1e-17, 1.0])
    asked = {"result": "betweenness", "normalized": False}
    assert sssp_many(graph, "all", cutoff=1.5, **asked)["betweenness"].tolist() == [0, 2, 3, 2, 0]
    assert sssp_many(graph, "all", targets=[2], **asked)["betweenness"].tolist() == [0, 1, 0, 0, 0]


def test_the_certificate_finds_a_wrong_exact_distance(monkeypatch):
    graph, add = graph_from_edges([0, 1, 0], [1, 2, 2], [1.0, 1e-17, 3.0]), cpu.add_scaled

    def add_wrongly(*args):
        status = add(*args)
        exact = args[-3]
        if exact is not None:
            exact.words[2] += np.uint64(1)
        return status

    monkeypatch.setattr(betweenness.cpu, "add_scaled", add_wrongly)
    with pytest.raises(CertificateError, match="an exact distance"):
        sssp_many(graph, [0], result="betweenness")
