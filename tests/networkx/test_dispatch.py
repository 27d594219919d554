"""NetworkX finds the backend, keeps what it converted, and answers itself what the backend refuses."""

from __future__ import annotations

import inspect
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import networkx as nx
import pytest

from kepler_traverse import networkx_info
from kepler_traverse.networkx_backend import (
    FUNCTIONS,
    KeplerGraph,
    all_sources,
    backend,
    convert_from_nx,
    convert_to_nx,
    loads,
    single_source,
    traversal,
)
from tests.networkx.test_equal_to_networkx import of_networkx
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("networkx.backends", "networkx.backend_info")
HEAVY = ("numba", "numpy", "pandas")
INSTALLED = all(entry_points(group=group, name="kepler") for group in GROUPS)
installed = pytest.mark.skipif(
    not INSTALLED,
    reason="this environment installed the package before it had the entry point; run scripts/check.sh",
)


@pytest.fixture
def roads():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 2), ("a", "c", 5), ("c", "d", 1)])
    return graph


@pytest.fixture
def calls(monkeypatch):
    """Names of the functions of the backend that NetworkX calls."""
    found = []
    for name, function in FUNCTIONS.items():

        def called(*args, name=name, function=function, **keywords):
            found.append(name)
            return function(*args, **keywords)

        monkeypatch.setattr(backend, name, called)
    return found


def test_the_entry_points_name_objects_that_exist():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points == {
        "networkx.backends": {"kepler": "kepler_traverse.networkx_backend:backend"},
        "networkx.backend_info": {"kepler": "kepler_traverse.networkx_info:get_info"},
    }
    assert callable(networkx_info.get_info)


def test_the_information_lists_exactly_the_functions_of_the_backend():
    modules = all_sources, loads, single_source, traversal
    listed = [*single_source.FROM_TABLE, *(name for each in modules for name in vars(each))]
    own = {name for name in listed if hasattr(of_networkx(name), "orig_func")}
    assert set(networkx_info.get_info()["functions"]) == own == set(FUNCTIONS)


def test_each_function_takes_the_parameters_of_networkx_in_their_order():
    own = (
        vars(all_sources)
        | vars(loads)
        | vars(single_source)
        | vars(traversal)
        | single_source.FROM_TABLE
    )
    for name, function in FUNCTIONS.items():
        theirs = list(inspect.signature(of_networkx(name).orig_func).parameters)
        assert list(inspect.signature(function).parameters) == theirs, name
        by_position = list(inspect.signature(own[name]).bind(*theirs).arguments.items())
        wrong = [
            (mine, given)
            for mine, given in by_position
            if isinstance(given, str) and mine in theirs and mine != given
        ]
        assert not wrong, name


def test_the_information_imports_nothing_heavy():
    code = "import sys; from kepler_traverse import networkx_info; networkx_info.get_info()"
    code = f"{code}; print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = ran([sys.executable, "-c", code])
    assert done.stdout.strip() == "[]", done.stderr


@installed
def test_networkx_calls_the_backend_that_is_named(roads, calls):
    assert nx.dijkstra_path(roads, "a", "d", backend="kepler") == ["a", "b", "c", "d"]
    assert calls == ["dijkstra_path"]


@installed
def test_networkx_calls_the_backend_for_a_converted_graph(roads, calls):
    converted = convert_from_nx(roads, {"weight": 1})
    assert nx.dijkstra_path_length(converted, "a", "d") == 5
    assert calls == ["dijkstra_path_length"]


@installed
def test_networkx_calls_the_backend_by_its_priority_for_a_large_graph_only(calls):
    small, large = nx.path_graph(10), nx.path_graph(30_000)
    with nx.config.backend_priority(algos=["kepler"]):
        assert len(nx.single_source_shortest_path_length(small, 0)) == 10
        assert calls == []
        assert len(nx.single_source_shortest_path_length(large, 0)) == 30_000
    assert calls == ["single_source_shortest_path_length"]


@installed
def test_a_conversion_is_kept_until_the_graph_changes(roads):
    with nx.config(warnings_to_ignore={"cache"}):
        assert nx.dijkstra_path_length(roads, "a", "d", backend="kepler") == 5
        kept = roads.__networkx_cache__["backends"]["kepler"]
        (first,) = kept.values()
        nx.single_source_dijkstra(roads, "b", backend="kepler")
        assert list(kept.values()) == [first]
        roads.add_edge("a", "d", weight=1)
        assert not roads.__networkx_cache__
        assert nx.dijkstra_path_length(roads, "a", "d", backend="kepler") == 1
        roads.remove_node("b")
        assert nx.single_source_dijkstra_path_length(roads, "a", backend="kepler") == {
            "a": 0,
            "d": 1,
            "c": 5,
        }


@installed
def test_a_refused_call_is_answered_by_networkx(roads, calls):
    with nx.config.backend_priority(algos=["kepler"]):
        found = nx.dijkstra_path_length(roads, "a", "d", weight=lambda *_: 1)
    assert found == 2
    assert calls == []
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(roads, "a", "d", weight=lambda *_: 1, backend="kepler")


def uneven():
    """An undirected view of a directed graph with another weight in each direction."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 0, 3), (1, 2, 1), (2, 0, 9)])
    return graph.to_undirected(as_view=True)


def graph_with(*weights):
    graph = nx.path_graph(4)
    for (u, v), weight in zip(list(graph.edges), weights, strict=False):
        graph[u][v]["weight"] = weight
    return graph


@pytest.mark.parametrize(
    ("name", "graph", "keywords", "reason"),
    [
        ("dijkstra_path", graph_with(), {"source": 0, "target": 1, "weight": len}, "weights are a function"),
        ("dijkstra_path", graph_with(1, None), {"source": 0, "target": 1}, "the value None of type NoneType"),
        ("dijkstra_path", graph_with(1, "2"), {"source": 0, "target": 1}, "the value '2' of type str"),
        ("dijkstra_path", graph_with(1, float("nan")), {"source": 0, "target": 1}, "infinite or not a number"),
        ("dijkstra_path", graph_with(1, float("inf")), {"source": 0, "target": 1}, "infinite or not a number"),
        ("dijkstra_path", graph_with(1, 10**30), {"source": 0, "target": 1}, "beyond int64"),
        ("dijkstra_path", graph_with(1, 2**60), {"source": 0, "target": 1}, "may exceed int64"),
        ("dijkstra_path", graph_with(0.5, 2**60), {"source": 0, "target": 1}, "float64 may round"),
        ("diameter", graph_with(0.5, 2, 2), {"weight": "weight"}, "mix integers and floats"),
        ("dijkstra_path", graph_with(0.5, 1e308), {"source": 0, "target": 1}, "may exceed float64"),
        ("betweenness_centrality", graph_with(1, 0), {"weight": "weight"}, "the edge from 1 to 2 has the weight 0"),
        ("betweenness_centrality", graph_with(1.0, 1e-17), {"weight": "weight"}, "has the weight 1e-17, which is too"),
        ("load_centrality", nx.Graph([(0, "a")]), {}, "nodes do not compare"),
        ("eccentricity", uneven(), {"weight": "weight"}, "the two directions of an edge"),
        ("betweenness_centrality", uneven(), {"weight": "weight"}, "the two directions of an edge"),
        ("connected_components", nx.subgraph_view(graph_with(), filter_edge=int.__lt__), {}, "the two directions"),
        ("closeness_centrality", graph_with(-1), {"distance": "weight"}, "weights are negative"),
        ("multi_source_dijkstra", graph_with(-1), {"sources": [0, 1]}, "weights are negative"),
        ("betweenness_centrality", graph_with(1.0, 1e-17, 1.0), {"weight": "weight"}, "too small beside"),
        ("edge_betweenness_centrality", graph_with(1.0, 1e-17, 1.0), {"weight": "weight"}, "too small beside"),
        ("barycenter", graph_with(0.5), {"weight": "weight"}, "sums of floats"),
        ("barycenter", graph_with(), {"attr": "b"}, "attr is given"),
        ("center", graph_with(), {}, "may be a tree"),
        ("eccentricity", graph_with(), {"sp": {}}, "sp is given"),
        ("diameter", graph_with(), {"usebounds": True}, "usebounds is given"),
        ("harmonic_centrality", graph_with(), {"sources": [0]}, "sources is given"),
        ("bfs_edges", graph_with(), {"source": 0, "sort_neighbors": sorted}, "sort_neighbors is given"),
        ("shortest_path", graph_with(), {"method": "none"}, "method 'none' is not served"),
        ("average_shortest_path_length", graph_with(), {"method": "floyd-warshall"}, "method 'floyd-warshall'"),
        ("single_source_shortest_path", graph_with(), {"source": 0, "cutoff": "2"}, "cutoff is of type str"),
        ("dijkstra_path", graph_with(), {"source": 0}, "missing a required argument"),
    ],
)  # fmt: skip
def test_can_run_gives_a_reason_for_what_it_refuses(name, graph, keywords, reason):
    name = {"load_centrality": "newman_betweenness_centrality"}.get(name, name)
    assert reason in backend.can_run(name, (graph,), keywords)


@pytest.mark.parametrize("once", [iter, reversed, lambda nodes: (node for node in nodes)])
@pytest.mark.parametrize(
    ("call", "keywords"),
    [
        (nx.betweenness_centrality_subset, {"sources": [0, 3], "targets": [2]}),
        (nx.betweenness_centrality_subset, {"targets": [2], "sources": [0, 3]}),
        (nx.edge_betweenness_centrality_subset, {"sources": [0, 3], "targets": [2]}),
        (nx.multi_source_dijkstra_path_length, {"sources": [0, 3]}),
        (nx.bfs_layers, {"sources": [0, 3]}),
    ],
)
def test_arguments_that_can_be_read_only_once_are_left_to_networkx(call, keywords, once):
    """The first argument is one; NetworkX reads it once, and nothing of it is missing."""
    graph = graph_with(1, 2, 3)
    first, *_ = keywords
    given = keywords | {first: once(keywords[first])}
    reason = backend.can_run(call.__name__, (graph,), given)
    assert reason == f"{first} is an iterator, which can be read only once"
    assert sorted(given[first]) == sorted(keywords[first])
    given = keywords | {first: once(keywords[first])}
    expected = call(graph, **(keywords | {first: once(keywords[first])}))
    with nx.config(backend_priority=["kepler"]):
        found = call(graph, **given)
    if call is nx.bfs_layers:
        expected = [sorted(layer) for layer in expected]
        found = [sorted(layer) for layer in found]
    assert found == expected


@pytest.mark.parametrize(
    "call", [nx.eccentricity, nx.diameter, nx.closeness_centrality, nx.wiener_index, nx.barycenter]
)
def test_an_undirected_view_whose_directions_differ_is_answered_by_networkx(call):
    view = uneven()
    by = "distance" if call is nx.closeness_centrality else "weight"
    with nx.config.backend_priority(algos=["kepler"]):
        assert call(view, **{by: "weight"}) == call(view, **{by: "weight"}, backend="networkx")
    with pytest.raises(NotImplementedError):
        call(view, **{by: "weight"}, backend="kepler")
    # a graph of its own has one weight per edge
    assert call(view.copy(), **{by: "weight"}, backend="kepler") is not None
    # hops are the same in both directions
    assert backend.can_run(call.__name__, (view,), {by: None}) is True
    converted = convert_from_nx(view, {"weight": 1})
    assert "the two directions" in backend.can_run(call.__name__, (converted,), {by: "weight"})
    with pytest.raises(NotImplementedError, match="the two directions"):
        convert_to_nx(converted)


def test_what_the_library_does_not_count_is_answered_by_networkx():
    graph = nx.Graph()
    for i in range(1001):  # 2**1001 shortest paths
        graph.add_edges_from(
            [(3 * i, 3 * i + 1), (3 * i, 3 * i + 2), (3 * i + 1, 3 * i + 3), (3 * i + 2, 3 * i + 3)]
        )
    of = {"sources": [0], "targets": [3003]}
    with pytest.raises(NotImplementedError):
        nx.edge_betweenness_centrality_subset(graph, **of, backend="kepler")
    with nx.config(warnings_to_ignore={"cache"}), nx.config.backend_priority(algos=["kepler"]):
        found = nx.edge_betweenness_centrality_subset(graph, **of)
    assert found == nx.edge_betweenness_centrality_subset(graph, **of, backend="networkx")


def test_can_run_forgets_weights_when_the_graph_changes():
    graph = graph_with(1, 2, 3)
    call = ("dijkstra_path", (graph, 0, 3), {})
    assert backend.can_run(*call) is True
    graph.add_edge(0, 3, weight="long")
    assert "of type str" in backend.can_run(*call)


def test_should_run_gives_a_reason_for_a_small_graph_and_for_one_pair():
    small, large = nx.path_graph(20), nx.path_graph(40_000)
    assert "conversion pays" in backend.should_run("single_source_shortest_path", (small, 0), {})
    assert backend.should_run("single_source_shortest_path", (large, 0), {}) is True
    assert "one pair" in backend.should_run("shortest_path", (large, 0), {"target": 5})
    assert "conversion pays" in backend.should_run("closeness_centrality", (small,), {})
    assert backend.should_run("closeness_centrality", (nx.path_graph(2_000),), {}) is True
    assert backend.should_run("shortest_path", (KeplerGraph(small), 0, 5), {}) is True


def test_a_graph_comes_back_from_its_conversion(roads):
    back = convert_to_nx(convert_from_nx(roads, {"weight": 1}))
    assert type(back) is nx.DiGraph
    assert list(back.edges(data=True)) == list(roads.edges(data=True))
    assert str(convert_from_nx(roads)) == str(roads)


def test_a_target_among_the_sources_needs_no_search(roads, monkeypatch):
    converted, searches = convert_from_nx(roads, {"weight": 1}), []
    monkeypatch.setattr(single_source, "search_weighted", lambda *asked: searches.append(asked))
    for sources in (["a", "b"], ["b"]):
        given = {"sources": sources, "target": "b"}
        assert FUNCTIONS["multi_source_dijkstra"](converted, **given) == nx.multi_source_dijkstra(
            roads, **given
        )
    with pytest.raises(nx.NodeNotFound):
        FUNCTIONS["multi_source_dijkstra"](converted, ["b", "z"], target="b")
    assert searches == []


def test_merged_parallel_edges_do_not_come_back():
    graph = nx.MultiGraph([(0, 1), (0, 1)])
    with pytest.raises(NotImplementedError, match="parallel edges were merged"):
        convert_to_nx(convert_from_nx(graph))


def test_weights_that_were_not_converted_are_asked_for(roads):
    converted = convert_from_nx(roads)
    assert "edge attribute 'weight'" in backend.can_run("dijkstra_path", (converted, "a", "d"), {})
    with pytest.raises(NotImplementedError, match="edge attribute 'weight'"):
        backend.dijkstra_path(converted, "a", "d")


@installed
@pytest.mark.parametrize("cached", [True, False])
def test_a_view_follows_the_graph_below_it(roads, cached):
    view = nx.reverse_view(roads)
    hidden = nx.subgraph_view(roads, filter_node=lambda node: node != "b")
    with nx.config(warnings_to_ignore={"cache"}, cache_converted_graphs=cached):
        assert nx.dijkstra_path_length(view, "d", "a", backend="kepler") == 5
        assert nx.dijkstra_path_length(hidden, "a", "d", backend="kepler") == 6
        roads.add_edge("a", "d", weight=1)
        assert nx.dijkstra_path_length(view, "d", "a", backend="networkx") == 1
        assert nx.dijkstra_path_length(view, "d", "a", backend="kepler") == 1
        assert nx.dijkstra_path_length(hidden, "a", "d", backend="kepler") == 1
