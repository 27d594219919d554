"""Strongly connected components, and the largest one where graphs are read, compared with NetworkX."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from kepler_traverse import InputError, components, graph_from_edges, read_graph


def edges(seed, names=False):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"src": rng.integers(0, 40, 60), "dst": rng.integers(0, 40, 60), "weight": rng.random(60)}
    )
    if names:
        table = table.assign(src="v" + table.src.astype(str), dst="v" + table.dst.astype(str))
    return table


def sets_of(table, directed):
    graph = nx.from_pandas_edgelist(
        table, "src", "dst", create_using=nx.DiGraph if directed else nx.Graph
    )
    find = nx.strongly_connected_components if directed else nx.connected_components
    return sorted(find(graph), key=lambda each: (-len(each), min(each)))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("names", [True, False])
def test_components_are_those_of_networkx(directed, names):
    for seed in range(4):
        table = edges(seed, names)
        graph = graph_from_edges(table, directed=directed)
        frame = components(graph)
        made = [set(rows.vertex) for _, rows in frame.groupby("component")]
        assert made == sets_of(table, directed)
        assert frame.vertex.is_monotonic_increasing


@pytest.mark.parametrize("directed", [True, False])
def test_the_largest_component_is_the_graph_of_its_vertices(directed, tmp_path):
    for seed in range(4):
        table = edges(seed, names=seed == 1)
        largest = sorted(sets_of(table, directed)[0])
        options = {"directed": directed, "edge_ids": True}
        expected = graph_from_edges(table, only_vertices=largest, **options)
        table.to_parquet(tmp_path / "edges.parquet")
        for graph in (
            graph_from_edges(table, largest_component=True, **options),
            read_graph(tmp_path / "edges.parquet", largest_component=True, device="cpu", **options),
        ):
            assert graph.fingerprint == expected.fingerprint
            assert graph.edge_rows.tolist() == expected.edge_rows.tolist()
            assert graph.report.filtered_rows == expected.report.filtered_rows
        assert (components(graph).component == 0).all()


def test_closed_streets_and_filters_come_before_the_component():
    roads = {
        "src": [1, 2, 3, 4],
        "dst": [2, 1, 4, 3],
        "cost": [1, 1, 1, 1],
        "back": [-1, -1, 2, -1],
    }
    roads = {
        name: [*column, *extra]
        for (name, column), extra in zip(
            roads.items(), ([4, 5], [5, 4], [1, -1], [-1, -1]), strict=True
        )
    }
    options = {"weight": "cost", "reverse_weight": "back", "largest_component": True}
    graph = graph_from_edges(roads, **options)
    assert graph.ids.tolist() == [1, 2]
    graph = graph_from_edges(roads, closed=[2], **options)
    assert graph.ids.tolist() == [1, 2, 2]
    assert graph_from_edges(roads, where="src > 2", **options).ids.tolist() == [3, 4]


def test_components_refuse_closed_vertices():
    graph = graph_from_edges([1, 2], [2, 1], [1, 1], closed=[2])
    with pytest.raises(InputError, match="closed vertex"):
        components(graph)
    with pytest.raises(InputError, match="largest_component must be True or False"):
        graph_from_edges([1], [2], largest_component="yes")


def test_the_largest_component_of_no_edges_has_no_vertex():
    for vertices in (None, []):
        graph = graph_from_edges([], [], [], largest_component=True, vertices=vertices)
        assert graph.n_vertices == 0
