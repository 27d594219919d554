"""Measure extremes of graphs beside NetworKit, igraph and NetworkX: ``python -m scripts.bench.extremes --graphs FOLDER``.

It writes docs/benchmarks/extremes.json, of which ``scripts.docs.measured_tables`` makes the table of
docs/results/extremes.md.

FOLDER holds the Parquet files of ``GRAPHS``. Extremes are of the largest (strongly connected) component, which every library
gets as a graph of its own; the time to build that graph is not measured. The result of each library is compared with that
of this one before it is timed. Libraries that are not installed are left out, and so are calls that would take minutes:
searches from all vertices of a large graph (igraph, NetworkX), and closeness on most large graphs (NetworKit).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.environment import ROOT, about, timed
from scripts.pages import write_record

RECORD = ROOT / "docs/benchmarks/extremes.json"
PACKAGES = {
    "kepler": "kepler-traverse",
    "networkit": "networkit",
    "igraph": "igraph",
    "networkx": "networkx",
}
TITLES = {"kepler": "kepler", "networkit": "NetworKit", "igraph": "igraph", "networkx": "NetworkX"}
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
NO_CLOSENESS = {
    "luxembourg_osm",
    "USA-road-NY-topology",
    "dblp-2010",
    "soc-Epinions1",
    "web-NotreDame",
}
TOP = 10
REPEATS, LONG = 3, 1.0  # calls that take more seconds are not repeated


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that is measured, with one function per library that has it; each returns a comparable result."""

    name: str
    by_library: dict[str, Callable[[], Any]]


def edges_of(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a graph by vertex numbers, without self-loops; of an undirected graph each once."""
    src, dst = (
        np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets)),
        graph.targets.astype(np.int64),
    )
    kept = src != dst if graph.directed else src < dst
    return src[kept], dst[kept]


def calls_of(graph_name: str, part: Any, libraries: list[str]) -> list[Call]:
    """All calls on a connected graph."""
    from kepler_traverse.extremes import center, diameter, periphery, radius, top_closeness

    ours = {
        "diameter": lambda: diameter(part),
        "radius": lambda: radius(part),
        "center": lambda: center(part).tolist(),
        "periphery": lambda: periphery(part).tolist(),
        f"top {TOP} by closeness": lambda: top_closeness(part, TOP)["sum"].tolist(),
    }
    found: dict[str, dict[str, Callable[[], Any]]] = {
        name: {"kepler": call} for name, call in ours.items()
    }
    makers = {"networkit": _networkit, "igraph": _igraph, "networkx": _networkx}
    for library in libraries:
        if not (
            library == "networkit"
            or graph_name in SMALL
            or (library == "networkx" and graph_name in MEDIUM)
        ):
            continue
        for name, call in makers[library](part).items():
            if library == "networkit" or graph_name in SMALL or name in ("diameter", "radius"):
                found[name][library] = call
    if graph_name in NO_CLOSENESS:
        del found[f"top {TOP} by closeness"]
    return [Call(name=name, by_library=by_library) for name, by_library in found.items()]


def _networkit(part: Any) -> dict[str, Callable[[], Any]]:
    import networkit as nk

    src, dst = edges_of(part)
    graph = nk.GraphFromCoo(
        (src.astype(np.uint64), dst.astype(np.uint64)), n=part.n_vertices, directed=part.directed
    )

    def diameter() -> int:
        search = nk.distance.Diameter(graph, nk.distance.DiameterAlgo.EXACT)
        search.run()
        return int(search.getDiameter()[0])

    def top() -> list[int]:
        search = nk.centrality.TopCloseness(graph, TOP, True, True)
        search.run()
        others = part.n_vertices - 1
        return [round(others / score) for score in search.topkScoresList()]

    calls: dict[str, Callable[[], Any]] = {f"top {TOP} by closeness": top}
    return calls if part.directed else {"diameter": diameter} | calls


def _igraph(part: Any) -> dict[str, Callable[[], Any]]:
    import igraph

    graph = igraph.Graph(
        n=part.n_vertices, edges=np.stack(edges_of(part), 1).tolist(), directed=part.directed
    )

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
        f"top {TOP} by closeness": top,
    }


def _networkx(part: Any) -> dict[str, Callable[[], Any]]:
    import networkx as nx

    graph: Any = nx.DiGraph() if part.directed else nx.Graph()
    graph.add_nodes_from(range(part.n_vertices))
    graph.add_edges_from(np.stack(edges_of(part), 1).tolist())
    # NetworkX bounds eccentricities of undirected graphs only
    bounds = {"usebounds": not part.directed}

    def top() -> list[int]:
        along, others = graph.reverse() if part.directed else graph, part.n_vertices - 1
        return sorted(
            round(others / value)
            for value in nx.closeness_centrality(along, backend="networkx").values()
        )[:TOP]

    return {
        "diameter": lambda: nx.diameter(graph, **bounds, backend="networkx"),
        "radius": lambda: nx.radius(graph, **bounds, backend="networkx"),
        "center": lambda: sorted(nx.center(graph, **bounds, backend="networkx")),
        "periphery": lambda: sorted(nx.periphery(graph, **bounds, backend="networkx")),
        f"top {TOP} by closeness": top,
    }


def connected_part(graphs: Path, name: str) -> Any:
    """The largest (strongly) connected component of a graph, as a graph of its own whose ids are vertex numbers."""
    import pyarrow.parquet

    from kepler_traverse import graph_from_edges
    from kepler_traverse.extremes.eccentricities import _induced, _largest_component

    table = pyarrow.parquet.read_table(graphs / f"{name}.parquet", columns=["src", "dst"])
    graph = graph_from_edges(
        table["src"].to_numpy(), table["dst"].to_numpy(), directed=GRAPHS[name]
    )
    return graph_from_edges(
        *edges_of(_induced(graph, _largest_component(graph))), directed=GRAPHS[name]
    )


def seconds_of(call: Callable[[], Any], first: float) -> float:
    """The median of several times, or the first one if it was long."""
    if first > LONG:
        return first
    return statistics.median([timed(call)[1] for _ in range(REPEATS)])


def require_equal(expected: Any, found: Any, where: str) -> None:
    """Raise unless a library returns what this one does."""
    if found != expected:
        raise AssertionError(f"{where}: {found!r} is not {expected!r}")


def measure(graphs: Path, libraries: list[str]) -> list[dict]:
    rows = []
    for name in GRAPHS:
        part = connected_part(graphs, name)
        for call in calls_of(name, part, libraries):
            expected = None
            for library, each in call.by_library.items():
                each() if library == "kepler" else None  # compiles
                found, taken = timed(each)
                expected = found if library == "kepler" else expected
                require_equal(expected, found, f"{name}, {call.name}, {library}")
                row = {
                    "graph": name,
                    "vertices": part.n_vertices,
                    "edges": part.n_edges,
                    "directed": part.directed,
                }
                rows.append(
                    row
                    | {"call": call.name, "library": library, "seconds": seconds_of(each, taken)}
                )
                print(f"{name}, {call.name}: {library} {rows[-1]['seconds']:.4f} s", flush=True)
    return rows


def table(record: dict) -> str:
    """The table of the page: seconds of each library, and the smallest ratio to this one."""
    libraries = [library for library in TITLES if library in record["versions"]]
    lines = [
        f"| graph | vertices | call | {' | '.join(TITLES[library] for library in libraries)} | fastest peer / kepler |",
        "|---|---|---|" + "---|" * (len(libraries) + 1),
    ]
    by_call: dict[tuple[str, str], dict[str, dict]] = {}
    for row in record["rows"]:
        by_call.setdefault((row["graph"], row["call"]), {})[row["library"]] = row
    for (graph, call), found in by_call.items():
        ours = found["kepler"]
        peers = [row["seconds"] for library, row in found.items() if library != "kepler"]
        ratio = f"{min(peers) / ours['seconds']:,.2f}" if peers else "-"
        shown = [
            f"{found[library]['seconds']:,.3g} s" if library in found else "-"
            for library in libraries
        ]
        lines.append(f"| {graph} | {ours['vertices']:,} | {call} | {' | '.join(shown)} | {ratio} |")
    versions = ", ".join(
        f"{TITLES[library]} {record['versions'][library]}"
        for library in libraries
        if library != "kepler"
    )
    machine_text = f"{record['machine']['cpu']}, {record['machine']['cores']} cores"
    lines += [
        "",
        f"Measured on {record['date']} at commit {record['commit']}: {machine_text}; {versions}.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Measure extremes of graphs beside other libraries."
    )
    parser.add_argument("--graphs", type=Path, required=True, help="folder with the graphs")
    options = parser.parse_args(arguments)
    record = about(PACKAGES.values(), "python -m scripts.bench.extremes --graphs FOLDER")
    record["versions"] = {
        name: record["versions"][of] for name, of in PACKAGES.items() if of in record["versions"]
    }
    record["rows"] = measure(
        options.graphs, [library for library in record["versions"] if library != "kepler"]
    )
    write_record(RECORD, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
