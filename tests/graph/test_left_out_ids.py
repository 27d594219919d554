"""Ids that an option has left out of a graph: the error names the option, and its advice works when it is followed."""

import networkx
import pandas as pd
import pytest

from kepler_traverse import (
    convert,
    graph_from_edges,
    load_graph,
    save_graph,
    sssp,
    sssp_many,
    sssp_pairs,
    with_weights,
)
from kepler_traverse.assignment import BPR, assign
from kepler_traverse.errors import UnknownVertexError
from kepler_traverse.pipelines import run_job

EDGES = {"src": [1, 2, 3, 4], "dst": [2, 3, 1, 5], "weight": [1, 1, 1, 1]}
LARGEST = r"not in the graph: 4\. .*By largest_component the graph has the largest component alone"
ONLY = r"not in the graph: 4\. .*has the vertices of only_vertices alone"


def built(**options):
    return graph_from_edges(EDGES, directed=False, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [({"largest_component": True}, LARGEST), ({"only_vertices": [1, 2, 3]}, ONLY)],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda graph: sssp(graph, 4),
        lambda graph: sssp_many(graph, [1], result="targets", targets=[4, 1]),
        lambda graph: sssp_pairs(graph, [1], [4]),
        lambda graph: sssp_many(graph, [1], result="flows", through=[(4, 5)]),
        lambda graph: sssp_many(
            graph, [1], result="opportunities", values={"vertex": [1, 4], "a": [1, 1]}, cutoffs=[1]
        ),
    ],
)
def test_an_id_that_is_left_out_names_the_option(options, text, ask):
    with pytest.raises(UnknownVertexError, match=text):
        ask(built(**options))


def test_a_closed_vertex_that_is_left_out_names_the_option():
    with pytest.raises(UnknownVertexError, match=LARGEST):
        built(largest_component=True, closed=[2, 4])
    with pytest.raises(UnknownVertexError, match=ONLY):
        built(only_vertices=[1, 2, 3], closed=[4])
    with pytest.raises(UnknownVertexError, match="add vertices without an edge by vertices"):
        built(only_vertices=[1, 9])
    assert built(largest_component=True, closed=[2]).closed is not None


def test_a_stored_graph_says_what_was_left_out(tmp_path):
    save_graph(built(largest_component=True), tmp_path / "g")
    with pytest.raises(UnknownVertexError, match=LARGEST):
        sssp(load_graph(tmp_path / "g"), 4)


def test_vertices_of_an_assignment_are_ends_of_links():
    links = {"src": [1], "dst": [2], "free_flow_time": [1.0]}
    trips = {"origin": [1], "destination": [2], "volume": [1.0]}
    cost = BPR(b=0, power=1, capacity=1)
    with pytest.raises(UnknownVertexError, match=r"closed vertex is not.*: 9\. .*ends of links"):
        assign(links, trips, cost=cost, closed=[9])
    with pytest.raises(UnknownVertexError, match=r"destination is not.*: 9\. .*ends of links"):
        assign(links, trips | {"destination": [9]}, cost=cost)


@pytest.mark.parametrize("option", [{"largest_component": True}, {"only_vertices": [1, 2, 3]}])
def test_a_table_of_all_vertices_has_the_values_of_those_that_are_kept(tmp_path, option):
    pd.DataFrame(EDGES).to_csv(tmp_path / "e.csv", index=False)
    table = pd.DataFrame({"vertex": [5, 4, 3, 2, 1], "jobs": [50, 40, 30, 20, 10]})
    options = {"result": "opportunities", "values": ["jobs"], "cutoffs": [0], "directed": False}
    done = run_job(
        tmp_path / "e.csv",
        output=tmp_path / "o",
        all_sources=True,
        vertices=table,
        report=False,
        device="cpu",
        **options,
        **option,
    )
    assert done.to_pandas()["jobs"].to_list() == [10, 20, 30]


def test_an_unknown_id_of_a_converted_graph_names_no_option_of_building(tmp_path):
    graph = convert.from_networkx(networkx.path_graph(3))
    save_graph(graph, tmp_path / "graph")
    for made in (graph, load_graph(tmp_path / "graph")):
        with pytest.raises(
            UnknownVertexError, match=r"9.*Take ids of nodes of what the graph was"
        ) as error:
            sssp_many(with_weights(made, [1] * 4, per="edge"), [9])
        assert "vertices" not in str(error.value)
