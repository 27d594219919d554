"""Every function of the backend gives what NetworkX gives: values, their types, their order, and errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse.graph import Graph
from kepler_traverse.networkx_backend import FUNCTIONS, all_sources, backend, convert_from_nx
from kepler_traverse.networkx_backend.refusals import _ALL_SOURCES
from tests.support import tiers

ABSENT = "absent"
MAX_EXAMPLES = 40
CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
WEIGHTS = {
    "integers": st.integers(0, 5),
    "floats": st.sampled_from([0.0, 0.1, 0.25, 0.7, 1.0, 3.5]),
    "both": st.sampled_from([0, 1, 2, 0.1, 0.5, 1.0]),
    "negative integers": st.integers(-2, 6),
    "negative floats": st.sampled_from([-0.5, 0.1, 0.7, 1.0, 3.5]),
    "zeros": st.just(0),
    "huge integers": st.sampled_from([1, 2**40, 2**53 + 1, 2**62, 10**30]),
    "extreme floats": st.sampled_from([1.0, 1e-17, 1e16, 5e-324, 1e308]),
    "others": st.sampled_from([1, 0.5, True, Fraction(1, 3), Decimal("0.1"), math.nan, math.inf]),
    "some missing": st.none(),
}
# The arguments that a test draws for each function; "*" marks those that are given at random.
ARGUMENTS = {
    "all_pairs_all_shortest_paths": "weight method",
    "all_pairs_bellman_ford_path": "weight",
    "all_pairs_bellman_ford_path_length": "weight",
    "all_pairs_dijkstra": "cutoff weight",
    "all_pairs_dijkstra_path": "cutoff weight",
    "all_pairs_dijkstra_path_length": "cutoff weight",
    "all_pairs_shortest_path": "cutoff",
    "all_pairs_shortest_path_length": "cutoff",
    "all_shortest_paths": "source target weight method",
    "ancestors": "source",
    "average_shortest_path_length": "weight",
    "barycenter": "weight",
    "bellman_ford_path": "source target weight",
    "bellman_ford_path_length": "source target weight",
    "bellman_ford_predecessor_and_distance": "source weight heuristic",
    "betweenness_centrality": "*k seed normalized endpoints weight",
    "betweenness_centrality_subset": "several targets normalized weight",
    "bfs_edges": "source reverse depth_limit",
    "bfs_layers": "several",
    "bfs_predecessors": "source depth_limit",
    "bfs_successors": "source depth_limit",
    "bfs_tree": "source reverse depth_limit",
    "bidirectional_dijkstra": "source target weight",
    "bidirectional_shortest_path": "source target",
    "center": "weight",
    "closeness_centrality": "*u distance wf_improved",
    "connected_components": "",
    "descendants": "source",
    "descendants_at_distance": "source hops",
    "diameter": "weight",
    "dijkstra_path": "source target weight",
    "dijkstra_path_length": "source target weight",
    "dijkstra_predecessor_and_distance": "source cutoff weight",
    "eccentricity": "*v weight",
    "edge_betweenness_centrality": "*k seed normalized weight",
    "edge_betweenness_centrality_subset": "several targets normalized weight",
    "global_efficiency": "",
    "harmonic_centrality": "*nbunch distance",
    "has_path": "source target",
    "is_connected": "",
    "multi_source_dijkstra": "several *target cutoff weight",
    "multi_source_dijkstra_path": "several cutoff weight",
    "multi_source_dijkstra_path_length": "several cutoff weight",
    "newman_betweenness_centrality": "*v cutoff normalized",
    "node_connected_component": "n",
    "number_connected_components": "",
    "periphery": "weight",
    "predecessor": "source *target cutoff return_seen",
    "radius": "weight",
    "shortest_path": "*source *target weight method",
    "shortest_path_length": "*source *target weight method",
    "single_source_all_shortest_paths": "source weight method",
    "single_source_bellman_ford": "source *target weight",
    "single_source_bellman_ford_path": "source weight",
    "single_source_bellman_ford_path_length": "source weight",
    "single_source_dijkstra": "source *target cutoff weight",
    "single_source_dijkstra_path": "source cutoff weight",
    "single_source_dijkstra_path_length": "source cutoff weight",
    "single_source_shortest_path": "source cutoff",
    "single_source_shortest_path_length": "source cutoff",
    "single_target_shortest_path": "target cutoff",
    "single_target_shortest_path_length": "target cutoff",
    "voronoi_cells": "several weight",
    "wiener_index": "weight",
}
SEVERAL = {"voronoi_cells": "center_nodes"}
UNDIRECTED_ONLY = {
    "connected_components",
    "global_efficiency",
    "is_connected",
    "node_connected_component",
    "number_connected_components",
}
ROUNDED = _ALL_SOURCES


def of_networkx(name):
    """Return a function of NetworkX by its name in backends, or None."""
    return (
        nx.load_centrality if name == "newman_betweenness_centrality" else getattr(nx, name, None)
    )


def test_each_function_of_the_backend_has_arguments_to_draw():
    assert set(ARGUMENTS) == set(FUNCTIONS)


def keeps(u, v, *_):
    """A filter of edges that hides some in one direction only."""
    return (3 * ord(str(u)[-1]) + ord(str(v)[-1])) % 4 > 0


# Graphs that show another one, by what makes them. Some have edges or weights that differ by direction.
VIEWS = {
    "none": lambda graph: graph,
    "undirected": lambda graph: graph.to_undirected(as_view=True),
    "directed": lambda graph: graph.to_directed(as_view=True),
    "reversed": lambda graph: nx.reverse_view(graph) if graph.is_directed() else graph,
    "nodes": lambda graph: graph.subgraph(list(graph)[1:]),
    "edges": lambda graph: nx.subgraph_view(graph, filter_edge=keeps),
    "edge subgraph": lambda graph: graph.edge_subgraph(list(graph.edges)[1:]),
    "copy": lambda graph: graph.copy(as_view=True),
    "frozen": nx.freeze,
}


@st.composite
def views(draw, classes=CLASSES):
    """A graph, or views of views of one."""
    graph = draw(graphs(classes))
    for name in draw(st.lists(st.sampled_from(list(VIEWS)), max_size=2)):
        graph = VIEWS[name](graph)
    return graph


@st.composite
def graphs(draw, classes=CLASSES):
    graph = draw(st.sampled_from(classes))()
    n = draw(st.integers(1, 7))
    nodes = draw(
        st.sampled_from(
            [
                list(range(n)),
                list(range(n))[::-1],
                [f"n{i}" for i in range(n)],
                [(i, "x") for i in range(n)],
                [i if i % 2 else f"n{i}" for i in range(n)],
                [frozenset([i]) if i % 3 else (i, i + 0.5) for i in range(n)],
            ]
        )
    )
    graph.add_nodes_from(nodes)
    values = WEIGHTS[draw(st.sampled_from(list(WEIGHTS)))]
    ends = st.sampled_from(nodes)
    for u, v, weight in draw(st.lists(st.tuples(ends, ends, values), max_size=16)):
        graph.add_edge(u, v, **({} if weight is None else {"weight": weight}))
    return graph


def drawn(draw, name, graph):
    """The arguments of a call by name."""
    nodes = st.sampled_from([*graph, ABSENT])
    strategies = {
        **dict.fromkeys(("source", "target", "u", "v", "n"), nodes),
        "several": st.lists(nodes, max_size=3),
        "targets": st.lists(nodes, max_size=4),
        "k": st.integers(2, 4),
        "seed": st.integers(0, 3),
        "nbunch": st.lists(nodes, max_size=4),
        "cutoff": st.sampled_from([None, None, -1, 0, 1, 2, 1.5, 0.3, math.inf]),
        "depth_limit": st.sampled_from([None, 0, 1, 2]),
        "hops": st.integers(-1, 3),
        "weight": st.sampled_from(["weight", "weight", "weight", None, "none has it"]),
        "distance": st.sampled_from(["weight", None]),
        "method": st.sampled_from(["dijkstra", "bellman-ford"]),
        **dict.fromkeys(
            ("reverse", "heuristic", "return_seen", "wf_improved", "normalized", "endpoints"),
            st.booleans(),
        ),
    }
    found = {}
    for word in ARGUMENTS[name].split():
        if word.startswith("*") and draw(st.booleans()):
            continue
        word = word.lstrip("*")
        spelled = {"several": SEVERAL.get(name, "sources"), "hops": "distance"}.get(word, word)
        found[spelled] = draw(strategies[word])
    return found


def outcome(call):
    """The result with iterators read to their end, or the type of the error."""
    try:
        result = call()
        return list(result) if isinstance(result, Iterator) else result
    except Exception as error:
        return type(error)


def assert_equal(expected, found, rounded):
    if isinstance(expected, float) and rounded:
        assert type(found) is float
        assert found == pytest.approx(expected, rel=1e-12)
    elif isinstance(expected, nx.Graph):
        assert type(found) is type(expected)
        assert list(found.edges) == list(expected.edges)
        assert list(found) == list(expected)
    elif isinstance(expected, dict):
        assert isinstance(found, Mapping)
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_equal(value, found[key], rounded)
    elif isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            assert_equal(one, other, rounded)
    else:
        assert type(found) is type(expected)
        assert found == expected


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
@settings(max_examples=tiers.examples(MAX_EXAMPLES))
@given(st.data())
def test_a_function_gives_what_networkx_gives(name, data):
    graph = data.draw(views(CLASSES[::2] if name in UNDIRECTED_ONLY else CLASSES))
    keywords = drawn(data.draw, name, graph)
    if name in UNDIRECTED_ONLY and graph.is_directed():
        return
    if isinstance(backend.can_run(name, (graph,), keywords), str):
        return  # NetworkX answers; test_dispatch.py holds which calls these are
    attribute = keywords.get("weight", keywords.get("distance"))
    converted = convert_from_nx(graph, {attribute: 1} if isinstance(attribute, str) else None)
    expected = outcome(lambda: of_networkx(name)(graph, **keywords, backend="networkx"))
    found = outcome(lambda: getattr(backend, name)(converted, **keywords))
    if found is not NotImplementedError:  # of which NetworkX takes no notice, and answers itself
        assert_equal(expected, found, name in ROUNDED)


def test_paths_through_a_cycle_of_weight_zero_are_those_of_networkx():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, 0), (2, 1, 0), (2, 3, -1), (0, 2, 1)])
    converted = convert_from_nx(graph, {"weight": 1})
    expected = nx.single_source_bellman_ford(graph, 0, backend="networkx")
    assert_equal(expected, backend.single_source_bellman_ford(converted, 0), False)


def test_a_negative_cycle_raises_the_error_of_networkx():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, -3), (2, 1, 2)])
    converted = convert_from_nx(graph, {"weight": 1})
    for name in ("single_source_bellman_ford", "bellman_ford_predecessor_and_distance"):
        with pytest.raises(nx.NetworkXUnbounded, match=r"Negative cycle detected\."):
            getattr(backend, name)(converted, 0)


@pytest.mark.parametrize("largest", [1, 2**40])
def test_sums_of_large_integers_stay_exact(largest):
    graph = nx.path_graph(50)
    nx.set_edge_attributes(graph, largest, "weight")
    converted = convert_from_nx(graph, {"weight": 1})
    assert backend.dijkstra_path_length(converted, 0, 49) == 49 * largest
    assert backend.wiener_index(converted, weight="weight") == nx.wiener_index(
        graph, weight="weight", backend="networkx"
    )


def test_paths_are_computed_when_they_are_read():
    graph = nx.path_graph(2000)
    found = backend.single_source_shortest_path(convert_from_nx(graph), 0)
    assert not isinstance(found, dict)
    assert found[1999] == list(range(2000))
    assert found == nx.single_source_shortest_path(graph, 0, backend="networkx")
    assert nx.single_source_shortest_path(graph, 0, backend="networkx") == found
    with pytest.raises(KeyError):
        found[2000]


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_measures_of_all_nodes_are_the_same_from_a_gpu(monkeypatch, directed, weight):
    graph = nx.gnp_random_graph(60, 0.05, seed=1, directed=directed)
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = number % 7 + 1
    monkeypatch.setattr(all_sources, "_EDGES_FOR_GPU", 1)
    moved = []
    to = Graph.to
    monkeypatch.setattr(Graph, "to", lambda self, device: moved.append(device) or to(self, device))
    converted = convert_from_nx(graph, edge_attrs={"weight": 1} if weight else None)
    assert FUNCTIONS["closeness_centrality"](converted, distance=weight) == nx.closeness_centrality(
        graph, distance=weight
    )
    found = FUNCTIONS["harmonic_centrality"](converted, distance=weight)
    assert found == pytest.approx(nx.harmonic_centrality(graph, distance=weight))
    assert moved == ["cuda", "cuda"]


def test_extremes_search_from_few_nodes(monkeypatch):
    graph = nx.grid_2d_graph(13, 17)
    nx.set_edge_attributes(graph, {edge: 1 + sum(edge[0]) % 7 for edge in graph.edges}, "weight")
    # each call converts the graph, so that NetworkX does not warn of its cache
    graph.__networkx_cache__ = None
    searches = []
    extremes = all_sources.extremes

    def counted(*arguments, **options):
        found = extremes(*arguments, **options)
        searches.append(found.searches)
        return found

    monkeypatch.setattr(all_sources, "extremes", counted)
    for function in (nx.diameter, nx.radius, nx.center, nx.periphery):
        for weight in (None, "weight"):
            assert function(graph, weight=weight, backend="kepler") == function(
                graph, weight=weight, backend="networkx"
            )
    assert len(searches) == 8
    assert max(searches) < len(graph) / 4


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_edges_of_a_subset_divide_as_in_networkx(kind, weight):
    """Two paths lead to 3, and one to 5: to 6, which is no target, each of them carries a half, and not two thirds."""
    graph = kind([(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 5), (3, 6), (5, 6), (6, 7)])
    nx.set_edge_attributes(graph, 2, "weight")
    of = {"sources": [0, 4], "targets": [7, 3], "weight": weight, "normalized": True}
    expected = nx.edge_betweenness_centrality_subset(graph, **of, backend="networkx")
    found = nx.edge_betweenness_centrality_subset(graph, **of, backend="kepler")
    assert list(found.items()) == [
        (edge, pytest.approx(value, rel=1e-12)) for edge, value in expected.items()
    ]
    assert nx.edge_betweenness_centrality_subset(kind(), [], [], backend="kepler") == {}


@pytest.mark.parametrize("function", [nx.diameter, nx.radius, nx.center, nx.periphery])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_extremes_of_awkward_graphs_are_those_of_networkx(function, kind):
    def outcome(graph, backend):
        try:
            return function(graph, weight="weight", backend=backend)
        except (ValueError, nx.NetworkXException) as error:
            return type(error), str(error)

    one, apart, zero = kind(), kind(), kind()
    one.add_node("a")
    apart.add_edges_from([(1, 2), (2, 1), (3, 4)], weight=2)
    zero.add_edges_from([(1, 2), (2, 3), (3, 1)], weight=0.0)
    for graph in (kind(), one, apart, zero):
        graph.__networkx_cache__ = None
        found, expected = outcome(graph, "kepler"), outcome(graph, "networkx")
        assert (found, type(found)) == (expected, type(expected))


def test_a_graph_without_nodes_has_the_errors_of_networkx():
    for function in (nx.center, nx.barycenter):
        with pytest.raises(nx.NetworkXPointlessConcept, match=r"^G has no nodes\.$"):
            function(nx.Graph(), backend="kepler")
    with pytest.raises(nx.NodeNotFound, match=r"^Source 1 not in G$"):
        nx.shortest_path(nx.DiGraph(), target=1, backend="kepler")


@pytest.mark.parametrize("of", [{}, {"normalized": False}, {"endpoints": True}])
def test_an_empty_sample_is_what_networkx_makes_of_it(of):
    """NetworkX divides by the size of a sample, unless the graph is too small for a path through a node."""
    for n in (1, 2, 3):
        for call in (
            nx.betweenness_centrality,
            *([] if "endpoints" in of else [nx.edge_betweenness_centrality]),
        ):
            results = []
            for name in ("networkx", "kepler"):
                try:
                    results.append(call(nx.path_graph(n), k=0, **of, backend=name))
                except ZeroDivisionError as error:
                    results.append(str(error))
            assert results[0] == results[1]
