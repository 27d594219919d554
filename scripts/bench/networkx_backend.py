"""Measure the backend of NetworkX, NetworkX, nx-parallel and nx-cugraph.

python -m scripts.bench.networkx_backend run --graphs FOLDER    writes docs/benchmarks/networkx.json
python -m scripts.bench.networkx_backend add --graphs FOLDER    adds backends that the record lacks, measured now

``scripts.docs.measured_tables`` makes the table of docs/from/networkx.md of the record.

FOLDER holds USA-road-d.NY.parquet. The first result of each library is compared with that of this one before it is timed.
For all sources of a large graph, NetworkX's time is that of a sample of sources, multiplied, which the page calls estimated;
the other libraries have no call for a sample. Libraries that are not installed are left out. ``add`` is for a library that
needs another release of NetworkX than the others.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from scripts.bench.environment import ROOT, about, timed
from scripts.pages import read_record, write_record

RECORD = ROOT / "docs/benchmarks/networkx.json"
BACKENDS = {
    "kepler": "kepler-traverse",
    "networkx": "networkx",
    "parallel": "nx-parallel",
    "cugraph": "nx-cugraph-cu13",
}
STREETS, TOWN, DISTRICT = 90_000, 20_000, 2_000  # nodes of the parts of the street network
SAMPLE = 40  # sources for which NetworkX's time of all sources is measured
REPEATS, LONG = 3, 2.0  # calls that take more seconds are not repeated


@dataclass(frozen=True, kw_only=True)
class Case:
    """A call that is measured."""

    name: str  # as it is written in Python
    nodes: int
    call: Callable[[Any, str], Any]  # ``call(graph, backend)`` returns the result
    # ``sampled(graph, backend, nodes)`` returns the same for some nodes, if NetworkX would take too long for all.
    sampled: Callable[[Any, str, list[Any]], Any] | None = None


def closeness(distance: str | None, n_nodes: int) -> Case:
    """Closeness of all nodes, by hops or by lengths."""
    import networkx as nx

    def of_some(graph, backend, nodes):
        return {
            node: nx.closeness_centrality(graph, u=node, distance=distance, backend=backend)
            for node in nodes
        }

    return Case(
        name=f"closeness_centrality(G{'' if distance is None else f', distance={distance!r}'})",
        nodes=n_nodes,
        call=lambda graph, backend: nx.closeness_centrality(
            graph, distance=distance, backend=backend
        ),
        sampled=None if n_nodes == DISTRICT else of_some,
    )


def cases() -> list[Case]:
    """All calls that are measured."""
    import networkx as nx

    return [
        closeness(None, STREETS),
        closeness("weight", TOWN),
        closeness("weight", DISTRICT),
        Case(
            name="betweenness_centrality(G)",
            nodes=DISTRICT,
            call=lambda graph, backend: nx.betweenness_centrality(graph, backend=backend),
        ),
        Case(
            name="betweenness_centrality(G, weight='weight')",
            nodes=DISTRICT,
            call=lambda graph, backend: nx.betweenness_centrality(
                graph, weight="weight", backend=backend
            ),
        ),
        Case(
            name="dict(all_pairs_shortest_path_length(G))",
            nodes=DISTRICT,
            call=lambda graph, backend: dict(
                nx.all_pairs_shortest_path_length(graph, backend=backend)
            ),
        ),
        Case(
            name="dict(all_pairs_dijkstra_path_length(G))",
            nodes=DISTRICT,
            call=lambda graph, backend: dict(
                nx.all_pairs_dijkstra_path_length(graph, backend=backend)
            ),
        ),
        Case(
            name="multi_source_dijkstra_path_length(G, 10 nodes)",
            nodes=STREETS,
            call=lambda graph, backend: nx.multi_source_dijkstra_path_length(
                graph, list(graph)[:10], backend=backend
            ),
        ),
        Case(
            name="single_source_dijkstra_path_length(G, node)",
            nodes=STREETS,
            call=lambda graph, backend: nx.single_source_dijkstra_path_length(
                graph, next(iter(graph)), backend=backend
            ),
        ),
        Case(
            name="single_source_shortest_path_length(G, node)",
            nodes=STREETS,
            call=lambda graph, backend: nx.single_source_shortest_path_length(
                graph, next(iter(graph)), backend=backend
            ),
        ),
    ]


def street_network(folder: Path) -> Any:
    """The streets of New York: weights are lengths in tenths of a foot, of parallel ones the smallest."""
    import networkx as nx
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder / "USA-road-d.NY.parquet").to_pydict()
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        sorted(zip(table["src"], table["dst"], table["weight"], strict=True), reverse=True)
    )
    return graph


def part_of(graph: Any, n_nodes: int) -> Any:
    """The nodes nearest to the first one by hops, as a graph of their own."""
    import networkx as nx

    near = nx.single_source_shortest_path_length(graph, next(iter(graph)), backend="networkx")
    return graph.subgraph(list(near)[:n_nodes]).copy()


def require_equal(expected: Any, found: Any) -> None:
    """Raise unless two results are equal, floats to 12 digits."""
    if isinstance(expected, Mapping):
        if set(expected) != set(found):
            raise AssertionError("results have different nodes")
        for node, value in expected.items():
            require_equal(value, found[node])
    elif not (
        math.isclose(expected, found, rel_tol=1e-12)
        if isinstance(expected, float)
        else expected == found
    ):
        raise AssertionError(f"{found!r} is not {expected!r}")


def seconds_of(case: Case, graph: Any, backend: str, ours: Any) -> tuple[float, bool]:
    """Time a call whose result is compared first. Say whether the time is that of a sample, multiplied."""
    if case.sampled is not None:
        nodes = list(graph)[:: max(len(graph) // SAMPLE, 1)][:SAMPLE]
        found, taken = timed(lambda: case.sampled(graph, backend, nodes))
        require_equal(found, {node: ours[node] for node in nodes})
        return taken / len(nodes) * len(graph), True
    found, taken = timed(lambda: case.call(graph, backend))
    require_equal(found, ours)
    return repeated(lambda: case.call(graph, backend), taken), False


def repeated(call: Callable[[], Any], first: float) -> float:
    """The median of several times, or the first one if it was long."""
    return first if first > LONG else statistics.median([timed(call)[1] for _ in range(REPEATS)])


def measure(graphs: Path, backends: list[str], ours_too: bool) -> list[dict]:
    """Measure every case with every backend that takes it, and with this one if its times are wanted, too."""
    import networkx as nx

    nx.config.warnings_to_ignore.add("cache")
    if "parallel" in backends:
        nx.config.backends.parallel.active = True
        nx.config.backends.parallel.n_jobs = len(os.sched_getaffinity(0))
    streets = street_network(graphs)
    parts = {n: part_of(streets, n) for n in {case.nodes for case in cases()}}
    rows = []
    for case in cases():
        if case.sampled is not None and not ours_too:
            continue
        graph = parts[case.nodes]
        case.call(part_of(graph, 200), "kepler")  # compiles
        graph.__networkx_cache__.clear()
        ours, first = timed(lambda case=case, graph=graph: case.call(graph, "kepler"))
        row = {"call": case.name, "nodes": len(graph), "edges": graph.number_of_edges()}
        if ours_too:
            again = repeated(lambda case=case, graph=graph: case.call(graph, "kepler"), first)
            rows.append(
                row | {"backend": "kepler, with conversion", "seconds": first, "estimated": False}
            )
            rows.append(row | {"backend": "kepler", "seconds": again, "estimated": False})
        for backend in backends:
            if case.sampled is not None and backend != "networkx":
                continue
            try:
                taken, estimated = seconds_of(case, graph, backend, ours)
            except NotImplementedError:
                continue
            rows.append(row | {"backend": backend, "seconds": taken, "estimated": estimated})
        for each in rows:
            if (each["call"], each["nodes"]) == (case.name, len(graph)):
                print(f"{case.name}: {each['backend']} {each['seconds']:.3f} s", flush=True)
    return rows


def installed() -> dict[str, str]:
    """Versions of the libraries that are here and work with this release of NetworkX."""
    found = {}
    for backend, package in BACKENDS.items():
        with suppress(PackageNotFoundError, ImportError):
            for point in entry_points(group="networkx.backends", name=backend):
                point.load()
            found[backend] = version(package)
    return found


def table(record: dict) -> str:
    """The table of the page."""
    names = ["networkx", *(name for name in ("parallel", "cugraph") if name in record["versions"])]
    titles = {"networkx": "NetworkX", "parallel": "nx-parallel", "cugraph": "nx-cugraph"}
    by_call: dict[tuple[str, int], dict[str, dict]] = {}
    for row in record["rows"]:
        by_call.setdefault((row["call"], row["nodes"]), {})[row["backend"]] = row
    lines = [
        f"| call | nodes | kepler | kepler, with conversion | {' | '.join(titles[name] for name in names)} |",
        "|---|---|---|---|" + "---|" * len(names),
    ]
    for (call, nodes), found in by_call.items():
        shown = [
            _seconds(found.get(name)) for name in ("kepler", "kepler, with conversion", *names)
        ]
        lines.append(f"| `{call}` | {nodes:,} | {' | '.join(shown)} |")
    versions = ", ".join(
        f"{BACKENDS[name]} {number}"
        for name, number in record["versions"].items()
        if name != "kepler"
    )
    machine_text = f"{record['machine']['cpu']}, {record['machine']['cores']} cores"
    lines += [
        "",
        f"Measured on {record['date']} at commit {record['commit']}: {machine_text}; {versions}.",
    ]
    return "\n".join(lines) + "\n"


def _seconds(row: dict | None) -> str:
    if row is None:
        return "-"
    seconds = row["seconds"]
    text = (
        f"{seconds / 3600:.1f} h"
        if seconds >= 7200
        else f"{seconds:,.3g} s"
        if seconds < 1000
        else f"{seconds:,.0f} s"
    )
    return f"{text} (estimated)" if row["estimated"] else text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the backend of NetworkX.")
    parser.add_argument("command", choices=("run", "add"))
    parser.add_argument(
        "--graphs", type=Path, required=True, help="folder with USA-road-d.NY.parquet"
    )
    options = parser.parse_args(arguments)
    record = about(()) | {"rows": []} if options.command == "run" else read_record(RECORD)
    added = {name: number for name, number in installed().items() if name not in record["versions"]}
    record["rows"] += measure(
        options.graphs, [name for name in added if name != "kepler"], options.command == "run"
    )
    if options.command == "add":
        added = {
            name: f"{number} (with networkx {version('networkx')})"
            for name, number in added.items()
        }
    record["versions"] |= added
    write_record(RECORD, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
