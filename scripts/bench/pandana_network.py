"""``kepler_traverse.pandana.Network`` compared with ``pandana.Network`` on the CPU, in one process.

pandana builds its hierarchy with the network, and this library with the first lengths of many pairs: the first work has
both. Of paths the ends are compared, since several can be shortest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kepler_traverse import Graph, read_graph
from scripts.bench.libraries import tails_of
from scripts.measure.work import OURS, Inputs, Prepare, Repeats, Work, unless

PACKAGES = ("pandana", "pandas")
GRAPH = "USA-road-d.NY"
NEAR = 5000
FAR = 3_000_000
POINTS = 500
NEAREST = 3
PAIRS = 100_000
PATHS = 1000
ORIGINS = 100
BUILT = 300  # origins after which this library has built its hierarchy


def network_of(graph: Graph, kind: Any) -> Any:
    """Build a network of pandana's class or ours. Vertices lie on a line: the nearest node of a point is its own."""
    place = pd.Series(np.arange(graph.n_vertices, dtype=float))
    tails = pd.Series(tails_of(graph))
    weights = pd.DataFrame({"weight": graph.weights.astype(np.float64)})
    heads = pd.Series(graph.targets.astype(np.int64))
    return kind(place, place * 0, tails, heads, weights, twoway=False)


def kind_of(library: str) -> Any:
    if library == OURS:
        from kepler_traverse.pandana import Network
    else:
        from pandana import Network
    return Network


def case_of(inputs: Inputs) -> Case:
    return Case(read_graph(inputs.file(GRAPH)))


class Case:
    """A road network in both libraries, and what is drawn of its vertices."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._networks = {}
        n = graph.n_vertices
        random = np.random.default_rng(1)
        self.nodes = pd.Series(np.arange(n))
        self.values = pd.Series(random.integers(0, 100, n).astype(float))
        self.floats = pd.Series(np.random.default_rng(2).exponential(50.0, n))
        self.points = pd.Series(np.sort(random.choice(n, POINTS, replace=False)).astype(float))
        self.origins = random.choice(n, PAIRS)
        self.ends = random.choice(n, PAIRS)
        self.near = random.choice(n, PATHS)
        self.some = np.repeat(self.origins[:ORIGINS], PAIRS // ORIGINS)
        self.many = np.tile(self.ends[: PAIRS // ORIGINS], ORIGINS)
        self.places = pd.Series(random.random(PAIRS) * n)

    def network(self, library: str) -> Any:
        if library not in self._networks:
            self._networks[library] = self.build(library)
        return self._networks[library]

    def build(self, library: str) -> Any:
        made = network_of(self.graph, kind_of(library))
        if library == OURS:
            some = np.arange(min(BUILT, self.graph.n_vertices))
            made.shortest_path_lengths(some, some[::-1])
        return made


class Asked(NamedTuple):
    """A call: the function of a network and a case, and how many rows it returns; None: one per vertex."""

    call: Callable[[Any, Case], Any]
    rows: int | None


def aggregated(network: Any, case: Case, kind: str, decay: str, attribute: str = "values") -> Any:
    network.set(case.nodes, getattr(case, attribute))
    return network.aggregate(NEAR, type=kind, decay=decay)


def nearest(network: Any, case: Case) -> Any:
    network.set_pois("points", FAR, NEAREST, case.points, case.points * 0)
    return network.nearest_pois(FAR, "points", num_pois=NEAREST)


def in_range(network: Any, case: Case) -> Any:
    return network.nodes_in_range(case.near, NEAR).sort_values(["source", "destination"])


def path_ends(network: Any, case: Case) -> Any:
    paths = network.shortest_paths(case.origins[:PATHS], case.ends[:PATHS])
    return [(path[0], path[-1]) for path in paths]


CALLS = {
    f"aggregate({NEAR}, 'sum', 'linear')": Asked(
        partial(aggregated, kind="sum", decay="linear"), None
    ),
    f"aggregate({NEAR}, 'sum', 'flat'), fractions": Asked(
        partial(aggregated, kind="sum", decay="flat", attribute="floats"), None
    ),
    f"aggregate({NEAR}, 'sum', 'linear'), fractions": Asked(
        partial(aggregated, kind="sum", decay="linear", attribute="floats"), None
    ),
    f"aggregate({NEAR}, 'mean', 'flat')": Asked(
        partial(aggregated, kind="mean", decay="flat"), None
    ),
    f"aggregate({NEAR}, 'median')": Asked(partial(aggregated, kind="median", decay="flat"), None),
    f"nearest_pois, {NEAREST} of {POINTS}": Asked(nearest, None),
    f"nodes_in_range({NEAR})": Asked(in_range, PATHS),
    "shortest_path_lengths of random pairs": Asked(
        lambda network, case: network.shortest_path_lengths(case.origins, case.ends), PAIRS
    ),
    f"shortest_path_lengths from {ORIGINS} nodes": Asked(
        lambda network, case: network.shortest_path_lengths(case.some, case.many), PAIRS
    ),
    "shortest_paths of random pairs": Asked(path_ends, PATHS),
    "get_node_ids": Asked(
        lambda network, case: network.get_node_ids(case.places, case.places * 0), PAIRS
    ),
}


def differences(expected: Any, found: Any) -> str:
    """Compare two results; pandana rounds distances to float32."""
    one, other = (np.asarray(each, dtype=float) for each in (expected, found))
    return unless(np.allclose(one, other, rtol=2**-22, atol=0))


def facts_of(case: Case, rows: int | None = None) -> dict[str, int]:
    shape = {"vertices": case.graph.n_vertices, "edges": case.graph.n_edges}
    return shape | {"size": rows or case.graph.n_vertices}


def prepare(library: str, asked: Asked) -> Prepare:
    return lambda case: partial(asked.call, case.network(library), case)


WORKS = (
    Work(
        name="Network(...)",
        graph=GRAPH,
        case=case_of,
        peers={
            library: lambda case, library=library: partial(case.build, library)
            for library in (OURS, "pandana")
        },
        check=lambda *_: "",  # the other works compare what they answer
        facts=lambda case: facts_of(case, case.graph.n_edges),
        repeats=Repeats(most=1),
    ),
    *(
        Work(
            name=name,
            graph=GRAPH,
            case=case_of,
            peers={library: prepare(library, asked) for library in (OURS, "pandana")},
            check=differences,
            facts=partial(facts_of, rows=asked.rows),
        )
        for name, asked in CALLS.items()
    ),
)
