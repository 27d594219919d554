"""Hub labels beside the hierarchy and pandana: building and proving them, and pairs with an origin of their own each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kepler_traverse import Graph, bfs_pairs, certify, read_graph, sssp_pairs
from kepler_traverse._arrays import to_host
from kepler_traverse.hub_labels.build import build_labels
from kepler_traverse.hub_labels.pruned import build_pruned
from scripts.bench.libraries import roads_of
from scripts.bench.pandana_network import differences, network_of
from scripts.measure.work import OURS, Baseline, Call, Inputs, Work

PACKAGES = ("pandana",)
# networks with hubs of many edges, whose labels count hops
HUBS = ("email-Enron", "cnr-2000")
ROADS = ("USA-road-d.NY", "USA-road-NE-topology")
WITH_PEERS = "USA-road-d.NY"  # on which building a network of pandana takes seconds, not minutes
PAIRS = 1_000_000
FEW = 10_000  # the latter of peers


class Case:
    """A road network with labels, and pairs."""

    metric = "weights"
    search = staticmethod(sssp_pairs)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers = np.random.default_rng(0).integers(0, graph.n_vertices, (2, PAIRS))
        graph.derived.estimate_labels(self.metric)  # which builds the hierarchy of roads
        graph.derived.keep_labels(self.build(), self.metric)

    def build(self) -> Any:
        estimate = self.graph.derived.estimate_labels()
        return build_labels(self.graph.hierarchy(), "weights", estimate.rows_per_direction)

    def ids(self, count: int) -> list[np.ndarray]:
        return [self.graph.ids_at(each[:count]) for each in self.numbers]

    def distances(self, graph: Graph, count: int) -> np.ndarray:
        found = self.search(graph, *self.ids(count))["distance"]
        return found.to_numpy(np.float64, na_value=np.inf)


class HubCase(Case):
    """A network with hubs, whose labels count hops."""

    metric = "hops"
    search = staticmethod(bfs_pairs)

    def build(self) -> Any:
        hierarchy, labels = build_pruned(self.graph, self.metric)
        self.graph.derived.keep_hierarchy(hierarchy, self.metric)
        return labels


def case_of(inputs: Inputs, name: str) -> Case:
    if name in HUBS:
        return HubCase(read_graph(inputs.file(name), directed=False, device="cpu", weighted=False))
    return Case(roads_of(inputs, name))


def merging(case: Case, device: str) -> Call:
    """Prepare the sums of the labels alone, in the unit of the weights."""
    labels = case.graph.derived.known_labels(case.metric)
    numbers = case.numbers
    if device == "cuda":
        import cupy

        numbers = [cupy.asarray(each) for each in numbers]

    def run() -> np.ndarray:
        sums = to_host(labels.between(*numbers))
        return np.where(sums == labels.unreached, np.inf, sums * labels.unit)

    return run


def over_hierarchy(case: Case) -> Call:
    bare = case.graph.derived.without_hierarchy()
    bare.hierarchy()
    return partial(case.distances, bare, FEW)


def by_searches(case: Case) -> Call:
    return partial(case.distances, case.graph.derived.without_hierarchy(), FEW)


def of_pandana(case: Case) -> Call:
    import pandana

    network = network_of(case.graph, pandana.Network)
    pairs = [each[:FEW] for each in case.numbers]
    return lambda: np.array(network.shortest_path_lengths(*pairs))


def same(expected: np.ndarray, found: np.ndarray) -> str:
    return differences(expected[: len(found)], found)


def alone(call: Callable[[Case], Any]) -> dict:
    return {OURS: lambda case: lambda: call(case) and None}


def proving(case: Case) -> None:
    certify(case.graph, case.graph.derived.known_labels(case.metric)).require()


def works(inputs: Inputs) -> list[Work]:
    return [work for name in (*ROADS, *HUBS) for work in works_of(name, inputs)]


def works_of(name: str, inputs: Inputs) -> list[Work]:
    given = {"graph": name, "case": partial(case_of, name=name)}
    pairs = {
        OURS: lambda case: partial(case.distances, case.graph, PAIRS),
        "labels alone": partial(merging, device=inputs.device),
    }
    if name in HUBS:
        pairs["searches"] = Baseline(prepare=by_searches, size=FEW)
    else:
        pairs["hierarchy"] = Baseline(prepare=over_hierarchy, size=FEW)
    if name == WITH_PEERS:
        pairs["pandana"] = Baseline(prepare=of_pandana, size=FEW)
    return [
        Work(name="building labels", peers=alone(lambda case: case.build()), **given),
        Work(name="proving labels", peers=alone(proving), **given),
        Work(name="pairs", size=PAIRS, peers=pairs, check=same, **given),
    ]
