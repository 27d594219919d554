"""Real graphs through the command line, against SciPy; KEPLER_SOURCES sets how many sources (64 for the record)."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import bellman_ford, dijkstra

from kepler_traverse import NegativeCycleError, bfs, graph_from_edges, plan_sssp, read_graph, sssp
from kepler_traverse.certificate import certify
from pipelines.batch_sources import main
from pipelines.comparison import hashed_weights
from tests.support import tiers

SOURCES = int(os.environ.get("KEPLER_SOURCES", "3"))
pytestmark = pytest.mark.real


def as_matrix(graph, weighted):
    """The graph for SciPy, in double precision: integer weights up to 255 stay exact in both types."""
    data = graph.weights.astype(np.float64) if weighted else np.ones(graph.n_edges)
    return csr_matrix((data, graph.targets, graph.offsets), shape=(graph.n_vertices,) * 2)


GRAPHS = {
    "USA-road-NY-topology": "--undirected",
    "cnr-2000": "--directed",
    "soc-Slashdot0902": "--directed",
}
# 1.5 million vertices; that of New York has a sixth of them, and the same shape
LARGE = {"USA-road-NE-topology": "--undirected"} if tiers.ALL else {}


@pytest.mark.parametrize(("name", "algorithm"), tiers.by_turns(GRAPHS | LARGE, ["bfs", "sssp"]))
def test_the_command_line_equals_scipy(name, algorithm, real_graph, tmp_path, capsys):
    direction = (GRAPHS | LARGE)[name]
    edges = pq.read_table(real_graph(name), columns=["src", "dst"])
    directed = direction == "--directed"
    weight = hashed_weights(edges["src"].to_numpy(), edges["dst"].to_numpy(), directed)
    path = tmp_path / "edges.parquet"
    pq.write_table(edges.append_column("weight", pa.array(weight)), path)
    command = [
        str(path),
        direction,
        "--algorithm",
        algorithm,
        "--random-sources",
        str(SOURCES),
        "--seed",
        "7",
    ]
    assert main([*command, "--certify", "all", "--output", str(tmp_path / "out"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["sources"] == SOURCES
    graph = read_graph(path, directed=directed, device="cpu")
    matrix = as_matrix(graph, algorithm == "sssp")
    found = 0
    for part in sorted((tmp_path / "out").glob("part-*.parquet")):
        rows = pq.read_table(part)
        for source in rows["source"].unique().to_pylist():
            mine = rows.filter(pa.compute.equal(rows["source"], source))
            distance = np.full(graph.n_vertices, np.inf)
            distance[graph.to_numbers(mine["vertex"])] = mine["distance"].to_numpy()
            number = graph.to_numbers([source])
            assert np.array_equal(distance, dijkstra(matrix, indices=number)[0])
            found += 1
    assert found == SOURCES
    assert ds.dataset(tmp_path / "out").count_rows() == summary["rows"]


@pytest.mark.parametrize(
    "name",
    ["karate", "netscience", "as-caida20071105", "delaunay_n16", "email-Enron", "luxembourg_osm"],
)
def test_every_source_of_some_is_certified(name, real_graph):
    graph = read_graph(real_graph(name), directed=False, device="cpu")
    if graph.weights is None:
        graph = replace(
            graph, weights=1 + np.arange(graph.n_edges, dtype=np.float32) % 7, directed=True
        )
    plan = plan_sssp(graph)
    for number in np.random.default_rng(0).choice(graph.n_vertices, 5, replace=False):
        certify(graph, plan.run(int(number))).require()


def test_trust_network_with_a_negative_cycle_is_reported(real_graph):
    graph = read_graph(real_graph("soc-sign-bitcoin-otc"), device="cpu")
    weight = {(u, v): w for u, v, w in edge_weights(graph)}
    with pytest.raises(NegativeCycleError) as caught:
        sssp(graph, int(graph.ids[0]))
    cycle = caught.value.cycle
    around = sum(weight[edge] for edge in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    assert around == caught.value.weight < 0


def edge_weights(graph):
    src = np.repeat(graph.ids, graph.derived.degrees)
    return zip(src.tolist(), graph.ids[graph.targets].tolist(), graph.weights.tolist(), strict=True)


def test_a_power_system_has_no_distances_where_a_negative_self_loop_is_reached(real_graph):
    graph = read_graph(real_graph("bips98_606"), device="cpu")
    loop, weight = next(iter(graph.negative_loops.items()))
    assert weight < 0
    with pytest.raises(NegativeCycleError):
        sssp(graph, int(graph.ids[loop]))
    assert len(bfs(graph, int(graph.ids[loop]))) > 1


def test_a_road_network_tilted_by_a_potential_has_the_distances_that_follow(real_graph):
    edges = pq.read_table(real_graph("USA-road-d.NY"))
    src, dst, weight = (edges[name].to_numpy() for name in ("src", "dst", "weight"))
    height = np.random.default_rng(3).integers(0, 5000, 264_346)
    plain = graph_from_edges(src, dst, weight.astype(np.int64))
    tilted = graph_from_edges(src, dst, weight.astype(np.int64) + height[src] - height[dst])
    assert tilted.has_negative_weights
    straight = plan_sssp(plain).run(1000).distance
    result = plan_sssp(tilted).run(1000)
    certify(tilted, result).require()
    assert np.array_equal(result.distance, straight + (height[1000] - height).astype(np.float32))


def test_negative_weights_equal_scipy(real_graph):
    graph = read_graph(real_graph("algs4-10000EWD"), device="cpu")
    height = np.random.default_rng(4).integers(0, 64, graph.n_vertices) / 64
    src = np.repeat(np.arange(graph.n_vertices), graph.derived.degrees)
    # Quantized, so that every sum is exact in both types and the result is unique.
    straight = np.round(graph.weights.astype(np.float64) * 1024) / 1024
    shape = {name: vars(graph)[name] for name in ("offsets", "targets", "ids")}
    graph = type(graph)(
        **shape, weights=(straight + height[src] - height[graph.targets]).astype(np.float32)
    )
    result = plan_sssp(graph).run(17)
    certify(graph, result).require()
    # Heights telescope along a path: SciPy's search of the straight weights is the answer, in a hundredth of the time of
    # its Bellman-Ford.
    matrix = csr_matrix((straight, graph.targets, graph.offsets), shape=(graph.n_vertices,) * 2)
    expected = dijkstra(matrix, indices=17) + height[17] - height
    assert np.array_equal(result.distance, expected)
    if tiers.ALL:
        assert np.array_equal(expected, bellman_ford(as_matrix(graph, True), indices=17))
