"""``kepler_traverse.pandana.Network`` compared with ``pandana.Network`` on the CPU; results are compared before times.

python -m scripts.bench.pandana_network EDGES [--repeats N]

EDGES is a Parquet file of a road network, with columns src, dst and an integer weight, USA-road-d.NY.parquet for the record
docs/benchmarks/pandana_network.json. ``python -m scripts.docs.measured_tables`` renders it into docs/from/pandana.md. Both
libraries make the same call in one process, one after the other. A time is the least of the repeats. The first call, which
compiles or loads compiled code, is not among them. pandana builds its hierarchy with the network, and this library with the
first lengths of many pairs: the first row has both. Of paths the ends are compared, since several can be shortest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kepler_traverse import Graph, read_graph
from kepler_traverse.pandana import Network
from scripts.bench.environment import ROOT, about, least
from scripts.bench.short_searches import equal, network_of
from scripts.pages import write_record

RECORD = ROOT / "docs" / "benchmarks" / "pandana_network.json"
NEAR, FAR, POINTS, NEAREST = 5000, 3_000_000, 500, 3
PAIRS, PATHS, ORIGINS = 100_000, 1000, 100
_BUILT = 300  # origins after which this library has built its hierarchy


def calls(graph: Graph) -> Iterator[tuple[str, int, Callable[[Any], Any]]]:
    """Yield the title of a call, how many rows it has, and a function of the network that returns an array to compare."""
    n, random = graph.n_vertices, np.random.default_rng(1)
    values = pd.Series(random.integers(0, 100, n).astype(float))
    points = pd.Series(np.sort(random.choice(n, POINTS, replace=False)).astype(float))
    origins, ends, near = random.choice(n, PAIRS), random.choice(n, PAIRS), random.choice(n, PATHS)
    some, many = (
        np.repeat(origins[:ORIGINS], PAIRS // ORIGINS),
        np.tile(ends[: PAIRS // ORIGINS], ORIGINS),
    )
    places = pd.Series(random.random(PAIRS) * n)

    def aggregated(kind: str, decay: str) -> Callable[[Any], Any]:
        def call(network: Any) -> Any:
            network.set(pd.Series(np.arange(n)), values)
            return network.aggregate(NEAR, type=kind, decay=decay)

        return call

    def nearest(network: Any) -> Any:
        network.set_pois("points", FAR, NEAREST, points, points * 0)
        return network.nearest_pois(FAR, "points", num_pois=NEAREST)

    def in_range(network: Any) -> Any:
        found = network.nodes_in_range(near, NEAR)
        return found.sort_values(["source", "destination"])

    def paths(network: Any) -> Any:
        return [
            (path[0], path[-1]) for path in network.shortest_paths(origins[:PATHS], ends[:PATHS])
        ]

    yield f"aggregate({NEAR}, 'sum', 'linear')", n, aggregated("sum", "linear")
    yield f"aggregate({NEAR}, 'mean', 'flat')", n, aggregated("mean", "flat")
    yield f"aggregate({NEAR}, 'median')", n, aggregated("median", "flat")
    yield f"nearest_pois, {NEAREST} of {POINTS}", n, nearest
    yield f"nodes_in_range({NEAR})", near.size, in_range
    yield (
        "shortest_path_lengths of random pairs",
        PAIRS,
        lambda network: network.shortest_path_lengths(origins, ends),
    )
    yield (
        f"shortest_path_lengths from {ORIGINS} nodes",
        PAIRS,
        lambda network: network.shortest_path_lengths(some, many),
    )
    yield "shortest_paths of random pairs", PATHS, paths
    yield "get_node_ids", PAIRS, lambda network: network.get_node_ids(places, places * 0)


def measure(name: str, graph: Graph, kind: Any, repeats: int) -> list[dict[str, Any]]:
    """Time all calls of both libraries, of which ``kind`` is the other one's. A result that differs ends the program."""

    def built() -> Any:
        made = network_of(graph, Network)
        some = np.arange(min(_BUILT, graph.n_vertices))
        made.shortest_path_lengths(some, some[::-1])
        return made

    built()
    (seconds, ours), (peer_seconds, theirs) = (
        least(built, 1),
        least(lambda: network_of(graph, kind), 1),
    )
    rows = [("Network(...)", graph.n_edges, seconds, peer_seconds)]
    for title, size, call in calls(graph):
        call(ours)
        (seconds, found), (peer_seconds, expected) = (
            least(lambda network=network: call(network), repeats)  # noqa: B023
            for network in (ours, theirs)
        )
        if not equal(found, expected):
            raise SystemExit(f"{title}: the results differ")
        rows.append((title, size, seconds, peer_seconds))
        print(*rows[-1], file=sys.stderr, flush=True)
    about = {"graph": name, "vertices": graph.n_vertices, "edges": graph.n_edges}
    return [
        about
        | {
            "call": title,
            "rows": size,
            "seconds": float(f"{own:.3g}"),
            "pandana_seconds": float(f"{other:.3g}"),
        }
        for title, size, own, other in rows
    ]


def main(arguments: list[str] | None = None) -> int:
    import pandana

    parser = argparse.ArgumentParser(description="Compare kepler_traverse.pandana with pandana.")
    parser.add_argument("edges", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    rows = measure(options.edges.stem, read_graph(options.edges), pandana.Network, options.repeats)
    command = (
        f"python -m scripts.bench.pandana_network {options.edges.name} --repeats {options.repeats}"
    )
    facts = about(("pandana", "pandas", "numpy", "numba"), command)
    write_record(RECORD, facts | {"load": round(load, 1), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
