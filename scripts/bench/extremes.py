"""Extremes of graphs compared with NetworKit, igraph and NetworkX.

Extremes are of the largest (strongly connected) component, which every library gets as a graph of its own; the time to build
that graph is not measured. Calls that would take minutes are left out: searches from all vertices of a large graph (igraph,
NetworkX), and closeness on most large graphs (NetworKit).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scripts.bench.libraries import edges_of, igraph_graph, networkit_graph
from scripts.measure.work import OURS, Call, Inputs, Prepare, Repeats, Work

PACKAGES = ("networkit", "igraph", "networkx")
GRAPHS = {  # directed or not
    "luxembourg_osm": False,
    "USA-road-NY-topology": False,
    "delaunay_n16": False,
    "email-Enron": False,
    "as-caida20071105": False,
    "dblp-2010": False,
    "soc-Epinions1": True,
    "web-NotreDame": True,
    "netscience": False,
}
SMALL = {"netscience"}  # graphs on which each library is measured with each call
# graphs on which NetworkX finds the diameter and the radius by bounds
MEDIUM = {"as-caida20071105"}
WITH_CLOSENESS = {"delaunay_n16", "email-Enron", "as-caida20071105", "netscience"}
TOP = 10
CLOSENESS = f"top {TOP} by closeness"


def connected_part(inputs: Inputs, name: str) -> Any:
    """The largest (strongly) connected component of a graph, as a graph of its own whose ids are vertex numbers."""
    from kepler_traverse import graph_from_edges, read_graph

    given = {"weighted": False, "device": "cpu", "largest_component": True}
    part = read_graph(inputs.file(name), directed=GRAPHS[name], **given)
    return graph_from_edges(*edges_of(part)[:2], directed=GRAPHS[name])


def kepler(part: Any) -> dict[str, Call]:
    from kepler_traverse.extremes import center, diameter, periphery, radius, top_closeness

    return {
        "diameter": lambda: diameter(part),
        "radius": lambda: radius(part),
        "center": lambda: center(part).tolist(),
        "periphery": lambda: periphery(part).tolist(),
        CLOSENESS: lambda: top_closeness(part, TOP)["sum"].tolist(),
    }


def networkit(part: Any) -> dict[str, Call]:
    import networkit as nk

    graph = networkit_graph(part.n_vertices, *edges_of(part), directed=part.directed)

    def diameter() -> int:
        search = nk.distance.Diameter(graph, nk.distance.DiameterAlgo.EXACT)
        search.run()
        return int(search.getDiameter()[0])

    def top() -> list[int]:
        search = nk.centrality.TopCloseness(graph, TOP, True, True)
        search.run()
        return [round((part.n_vertices - 1) / score) for score in search.topkScoresList()]

    return {"diameter": diameter, CLOSENESS: top}


def igraph(part: Any) -> dict[str, Call]:
    graph = igraph_graph(part.n_vertices, *edges_of(part)[:2], directed=part.directed)

    def vertices_with(chosen: Callable[[list[float]], float]) -> list[int]:
        of_all = graph.eccentricity(mode="out")
        return np.flatnonzero(np.array(of_all) == chosen(of_all)).tolist()

    def top() -> list[int]:
        others = part.n_vertices - 1
        return sorted(round(others / value) for value in graph.closeness(mode="out"))[:TOP]

    return {
        "diameter": lambda: int(graph.diameter()),
        "radius": lambda: int(graph.radius(mode="out")),
        "center": lambda: vertices_with(min),
        "periphery": lambda: vertices_with(max),
        CLOSENESS: top,
    }


def networkx(part: Any) -> dict[str, Call]:
    import networkx as nx

    graph = nx.DiGraph() if part.directed else nx.Graph()
    graph.add_nodes_from(range(part.n_vertices))
    graph.add_edges_from(np.stack(edges_of(part)[:2], 1).tolist())
    # NetworkX bounds eccentricities of undirected graphs only
    given = {"usebounds": not part.directed, "backend": "networkx"}

    def top() -> list[int]:
        along = graph.reverse() if part.directed else graph
        of_all = nx.closeness_centrality(along, backend="networkx").values()
        return sorted(round((part.n_vertices - 1) / value) for value in of_all)[:TOP]

    return {
        "diameter": lambda: nx.diameter(graph, **given),
        "radius": lambda: nx.radius(graph, **given),
        "center": lambda: sorted(nx.center(graph, **given)),
        "periphery": lambda: sorted(nx.periphery(graph, **given)),
        CLOSENESS: top,
    }


CALLS = ("diameter", "radius", "center", "periphery", CLOSENESS)
MAKERS = {OURS: kepler, "networkit": networkit, "igraph": igraph, "networkx": networkx}


def answers(library: str, graph: str, call: str) -> bool:
    """Whether a library is measured with a call on a graph."""
    if library == "networkit":
        return call == CLOSENESS or (call == "diameter" and not GRAPHS[graph])
    if library == OURS or graph in SMALL:
        return True
    return library == "networkx" and graph in MEDIUM and call in ("diameter", "radius")


def prepare(library: str, call: str) -> Prepare:
    return lambda part: MAKERS[library](part)[call]


WORKS = tuple(
    Work(
        name=call,
        graph=graph,
        case=partial(connected_part, name=graph),
        peers={
            library: prepare(library, call) for library in MAKERS if answers(library, graph, call)
        },
        facts=lambda part: {"vertices": part.n_vertices},
        repeats=Repeats(seconds=2.0),
    )
    for graph in GRAPHS
    for call in CALLS
    if call != CLOSENESS or graph in WITH_CLOSENESS
)
