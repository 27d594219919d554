"""Extremes by bounds: equal to eccentricities and closeness of NetworkX by searches from all vertices."""

import doctest

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kepler_traverse
from kepler_traverse import bfs_many, graph_from_edges, sssp_many
from kepler_traverse.errors import CertificateError, InputError, PrecisionError
from kepler_traverse.extremes import (
    EXTREMES,
    center,
    closeness,
    diameter,
    eccentricities,
    extremes,
    periphery,
    radius,
    searches,
    top_closeness,
)
from tests.support import tiers
from tests.support.graphs import lattice, path, rmat, star

ENDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def _networkx(edges, weights, directed):
    """The graph in NetworkX, with the least weight of parallel edges."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(sorted({vertex for edge in edges for vertex in edge}))
    for (u, v), weight in zip(edges, weights, strict=True):
        if u != v:
            known = graph.get_edge_data(u, v)
            graph.add_edge(u, v, weight=weight if known is None else min(weight, known["weight"]))
    return graph


def _kepler(edges, weights, directed, dtype=np.int64):
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    return graph_from_edges(src, dst, np.array(weights, dtype), directed=directed)


def _largest(graph):
    """The largest component; of equally large ones that of the smallest vertex."""
    found = (
        nx.strongly_connected_components(graph)
        if graph.is_directed()
        else nx.connected_components(graph)
    )
    return graph.subgraph(max(found, key=lambda part: (len(part), -min(part))))


def _eccentricities(graph, algorithm):
    if algorithm == "bfs":
        return nx.eccentricity(graph)
    return {v: max(nx.single_source_dijkstra_path_length(graph, v).values()) for v in graph}


def _closeness(graph, algorithm):
    return nx.closeness_centrality(graph, distance="weight" if algorithm == "sssp" else None)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize("directed", [False, True])
@given(edges=ENDS, seed=st.integers(0, 1000), wanted=st.sets(st.sampled_from(EXTREMES), min_size=1))
@settings(max_examples=tiers.examples(60), deadline=None)
def test_extremes_equal_networkx(edges, seed, wanted, directed, algorithm):
    weights = np.random.default_rng(seed).integers(0, 5, len(edges)).tolist()
    part = _largest(_networkx(edges, weights, directed))
    eccentricity = _eccentricities(part, algorithm)
    largest, smallest = max(eccentricity.values()), min(eccentricity.values())
    found = extremes(
        _kepler(edges, weights, directed), algorithm=algorithm, want=wanted, unconnected="largest"
    )
    expected = {
        "diameter": largest,
        "radius": smallest,
        "center": sorted(v for v in eccentricity if eccentricity[v] == smallest),
        "periphery": sorted(v for v in eccentricity if eccentricity[v] == largest),
    }
    assert found.n_vertices == len(part)
    for name in EXTREMES:
        value = getattr(found, name)
        value = value.tolist() if hasattr(value, "tolist") else value
        assert value == (expected[name] if name in wanted else None), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("directed", [False, True])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=tiers.examples(25), deadline=None)
def test_extremes_of_float_weights_equal_searches_from_all(seed, directed, dtype):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 30, (90, 2))
    # Few distinct weights, so that eccentricities differ by rounding or not at all.
    graph = _kepler(edges, rng.choice([0.1, 0.2, 0.3, 0.7], len(edges)), directed, dtype)
    part, _ = eccentricities._connected_part(graph, "sssp", "largest")
    all_of = sssp_many(part, part.ids, result="summary")
    found = extremes(graph, algorithm="sssp", unconnected="largest")
    eccentricity = all_of["eccentricity"]
    assert found.diameter == eccentricity.max()
    assert found.radius == eccentricity.min()
    assert found.center.tolist() == all_of["source"][eccentricity == eccentricity.min()].tolist()
    assert found.periphery.tolist() == all_of["source"][eccentricity == eccentricity.max()].tolist()


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize("directed", [False, True])
@given(edges=ENDS, seed=st.integers(0, 1000), k=st.integers(1, 12))
@settings(max_examples=tiers.examples(60), deadline=None)
def test_top_closeness_equals_networkx(edges, seed, k, directed, algorithm):
    weights = np.random.default_rng(seed).integers(0, 5, len(edges)).tolist()
    graph = _kepler(edges, weights, directed)
    expected = _closeness(_networkx(edges, weights, directed), algorithm)
    found = top_closeness(graph, k, algorithm=algorithm, direction="in")
    assert found["closeness"].tolist() == pytest.approx(sorted(expected.values(), reverse=True)[:k])
    assert found["closeness"].tolist() == pytest.approx([expected[v] for v in found["vertex"]])


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("directed", [False, True])
def test_top_closeness_equals_summaries_of_all(directed, direction, algorithm):
    edges = rmat(9, 3, seed=3)
    graph = _kepler(edges, np.random.default_rng(1).integers(1, 9, len(edges)), directed)
    many = sssp_many if algorithm == "sssp" else bfs_many
    every = many(graph, graph.ids, result="summary", direction=direction)
    every = every.sort_values(["closeness", "source"], ascending=[False, True])
    for k in (1, 7, 40, len(every) + 1):
        found = top_closeness(graph, k, algorithm=algorithm, direction=direction)
        for name, other in (
            ("vertex", "source"),
            ("closeness", "closeness"),
            ("reached", "reached"),
            ("sum", "sum"),
        ):
            assert found[name].tolist() == every[other].tolist()[:k], name


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (path(10), (10, 5, [5], [0, 10])),
        (star(50), (2, 1, [0], list(range(1, 51)))),
        ([(v, (v + 1) % 9) for v in range(9)], (4, 4, list(range(9)), list(range(9)))),
        (lattice(3, 5), (6, 3, [7], [0, 4, 10, 14])),
        ([(3, 3)], (0, 0, [3], [3])),
    ],
    ids=["path", "star", "cycle", "lattice", "one vertex"],
)
def test_extremes_of_known_graphs(edges, expected):
    graph = graph_from_edges(*np.array(edges).T, directed=False)
    assert (
        diameter(graph),
        radius(graph),
        center(graph).tolist(),
        periphery(graph).tolist(),
    ) == expected


def test_extremes_take_few_searches_on_roads_and_power_laws():
    side = 60
    road = graph_from_edges(*np.array(lattice(side, side)).T, directed=False)
    found = extremes(road)
    assert found.diameter == 2 * (side - 1)
    assert found.searches <= 60  # of 3,600 vertices
    edges = np.array(rmat(12, 8, seed=5))
    for directed in (False, True):
        found = extremes(
            graph_from_edges(*edges.T, directed=directed),
            want=("diameter", "radius"),
            unconnected="largest",
        )
        assert found.searches <= 100
        assert found.n_vertices > 1000


def test_top_closeness_prunes_on_roads_and_power_laws():
    rng = np.random.default_rng(2)
    edges = np.array(lattice(20, 200))
    for graph, algorithm in (
        (graph_from_edges(*edges.T, directed=False), "bfs"),
        (graph_from_edges(*edges.T, rng.integers(5, 9, len(edges)), directed=False), "sssp"),
        (graph_from_edges(*np.array(rmat(12, 8, seed=5)).T, directed=False), "bfs"),
    ):
        _, searches = top_closeness(graph, 3, algorithm=algorithm, with_count=True)
        assert searches < graph.n_vertices / 2


@pytest.mark.parametrize("seed", range(3))
def test_hops_of_a_graph_of_two_to_the_thirty_vertices_have_a_wider_type(seed, monkeypatch):
    """Here small graphs take the type of such a large one."""
    ends = np.random.default_rng(seed).integers(0, 60, (2, 70))
    graph = graph_from_edges(*ends, directed=True)
    narrow = top_closeness(graph, 3, algorithm="bfs")
    narrow_reach = bounds_of_reach(graph)
    monkeypatch.setattr(searches, "bound_dtype", lambda *_: np.dtype(np.int64))
    assert top_closeness(graph, 3, algorithm="bfs").equals(narrow)
    assert bounds_of_reach(graph) == narrow_reach


def bounds_of_reach(graph):
    found = closeness._Closeness(searches.Searches(graph, "bfs", False, None), 1)
    return [bounds.tolist() for bounds in found._bounds_of_reach()]


def test_extremes_refuse_a_graph_that_is_not_connected():
    graph = graph_from_edges(np.array([10, 20]), np.array([11, 21]), directed=False)
    with pytest.raises(
        InputError, match=r"no path from vertex \d+ to vertex \d+.*unconnected='largest'"
    ):
        extremes(graph)
    with pytest.raises(
        InputError, match="strongly connected: there is no path from vertex 1 to vertex 0"
    ):
        diameter(graph_from_edges(np.array([0, 1]), np.array([1, 2])))


def test_extremes_of_equal_components_take_that_of_the_smallest_id():
    graph = graph_from_edges(np.array([20, 10]), np.array([21, 11]), directed=False)
    assert center(graph, unconnected="largest").tolist() == [10, 11]


def test_extremes_return_string_ids(tmp_path):
    from kepler_traverse import read_graph

    (tmp_path / "edges.csv").write_text("src,dst\na,b\nb,c\n")
    graph = read_graph(tmp_path / "edges.csv", directed=False, device="cpu")
    assert center(graph).to_pylist() == ["b"]
    assert top_closeness(graph, 1)["vertex"].tolist() == ["b"]


def test_the_largest_component_of_a_graph_that_knows_its_rows():
    graph = graph_from_edges([0, 1, 5], [1, 2, 6], directed=False, edge_ids=True)
    assert extremes(graph, unconnected="largest").center.tolist() == [1]
    assert bfs_many(graph, [0, 5], result="nearest")["source"].tolist() == [0, 0, 0, 5, 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: extremes("graph"), "graph must be a Graph"),
        (lambda graph: extremes(graph, algorithm="dijkstra"), "algorithm='dijkstra'"),
        (lambda graph: extremes(graph, unconnected="ignore"), "unconnected='ignore'"),
        (lambda graph: extremes(graph, want="diameter"), "want must be a collection"),
        (lambda graph: extremes(graph, want=["girth"]), "want='girth'"),
        (lambda graph: extremes(graph, want=[]), "want must be a collection"),
        (lambda graph: extremes(graph, want=3), "want must be a collection"),
        (lambda graph: extremes(graph, certified=1), "certified must be True or False"),
        (lambda graph: extremes(graph, algorithm="sssp"), "needs weights"),
        (lambda graph: top_closeness(graph, algorithm="sssp"), "needs weights"),
        (lambda graph: top_closeness(graph, 0), "k must be 1 or more"),
        (lambda graph: top_closeness(graph, direction="both"), "direction='both'"),
    ],
)
def test_extremes_refuse_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call(graph_from_edges(np.array([0]), np.array([1]), directed=False))


def test_extremes_refuse_weights_that_bounds_do_not_cover():
    negative = _kepler([(0, 1), (1, 0)], [-1, 2], True)
    with pytest.raises(InputError, match="negative weights"):
        extremes(negative, algorithm="sssp")
    with pytest.raises(InputError, match="negative weights"):
        top_closeness(negative, algorithm="sssp")
    with pytest.raises(InputError, match="integer weights"):
        top_closeness(_kepler([(0, 1)], [0.5], False, np.float64), algorithm="sssp")
    huge = _kepler([(0, 1), (1, 2)], [2**61, 2**61], False)
    with pytest.raises(PrecisionError, match="scale the weights down"):
        top_closeness(huge, algorithm="sssp")
    assert diameter(huge, algorithm="sssp") == 2**62


def test_extremes_refuse_an_empty_graph_and_top_closeness_is_empty():
    nothing = np.zeros(0, np.int64)
    graph = graph_from_edges(nothing, nothing)
    with pytest.raises(InputError, match="no vertices"):
        extremes(graph)
    assert len(top_closeness(graph)) == 0


@pytest.mark.parametrize("call", [extremes, top_closeness])
def test_extremes_certify_each_search(call, monkeypatch):
    graph = graph_from_edges(*np.array(lattice(5, 5)).T, directed=False)
    plan_bfs_many = searches.plan_bfs_many

    def plan(*arguments, **options):
        plan = plan_bfs_many(*arguments, **options)

        class Wrong:
            shape = plan.shape

            def iter_groups(self, numbers):
                for group in plan.iter_groups(numbers):
                    group.distance[0, -1] += 1
                    yield group

        return Wrong()

    monkeypatch.setattr(searches, "plan_bfs_many", plan)
    with pytest.raises(CertificateError):
        call(graph)
    call(graph, certified=False)


def test_the_examples_of_extremes_run():
    names = {name: getattr(kepler_traverse, name) for name in kepler_traverse.__all__} | {"np": np}
    for module in (closeness, eccentricities):
        results = doctest.testmod(module, globs=names | vars(eccentricities) | vars(closeness))
        assert results.attempted
        assert not results.failed
