"""``--result extremes``: the diameter, radius, center and periphery of the graph, written as one part.

It takes no sources. The run has one nominal source, the vertex of the smallest id, to which all rows belong in the manifest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kepler_traverse._arrays import namespace, to_host
from kepler_traverse.extremes import extremes, require_connected
from kepler_traverse.graph import Graph
from kepler_traverse.search.frames import Column
from kepler_traverse.search.plan import make_query

from ..output.checksums import bits_of, bits_of_texts
from .nearest_source import Found, NearestSourcePlan, NearestSourceTraverser
from .phase_timer import Phases
from .request import PlannedStrategy

_ARRAYS = 8  # of 8 bytes per vertex: bounds, distances, and what is computed of them


class _Bounds:
    """What stands for the strategy: the searches of ``extremes`` choose their own."""

    name = "eccentricity_bounds"
    rationale = "searches from few vertices bound the eccentricities of all others"

    def __init__(self, device: str):
        self.device = device


class ExtremesPlan(NearestSourcePlan):
    """The search for the extremes of a graph.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    unconnected : {"refuse", "largest"}
    memory : int or None

    Raises
    ------
    InputError
        As ``kepler_traverse.extremes.extremes``.
    """

    def __init__(self, graph: Graph, algorithm: str, unconnected: str, memory: int | None):
        self.graph, self.algorithm, self.group, self.depth = graph, algorithm, 1, 0
        self.unconnected, self.memory = unconnected, memory
        self.strategy: Any = _strategy(graph)
        self.query = make_query(graph, False, None, None, None, "max_depth" if algorithm == "bfs" else "cutoff")
        self.nbytes = graph.nbytes + _ARRAYS * 8 * graph.n_vertices
        self.why = f"{graph!r}; {self.strategy.rationale}"
        require_connected(graph, algorithm=algorithm, unconnected=unconnected, memory=memory)


def _strategy(graph: Graph) -> PlannedStrategy:
    return _Bounds(graph.device)


class ExtremesTraverser(NearestSourceTraverser):
    """Finds the extremes; it has the same method as ``BatchTraverser``."""

    _plan: ExtremesPlan

    def _search(self, numbers: np.ndarray, clock: Phases) -> Found:
        plan, graph = self._plan, self._graph
        with clock("traverse") as traversing:  # which certifies each of its searches
            found = extremes(
                graph,
                algorithm=plan.algorithm,
                unconnected=plan.unconnected,
                certified=self._request.certify != "none",
                memory=plan.memory,
            )
        sets = ("center", found.center, found.radius), ("periphery", found.periphery, found.diameter)
        vertex = np.concatenate([to_host(graph.numbers_of(ids)) for _, ids, _ in sets])
        sizes = [len(ids) for _, ids, _ in sets]
        eccentricity = np.repeat(np.array([value for _, _, value in sets]), sizes)
        name = pa.array(np.repeat([each for each, _, _ in sets], sizes).tolist(), pa.string())
        columns = {
            "set": Column(name),
            "vertex": Column(graph.ids_at(namespace(graph.offsets).asarray(vertex))),
            "eccentricity": Column(eccentricity),
        }
        bits = [bits_of_texts(name), bits_of(vertex), bits_of(eccentricity)]
        nominal = np.full(vertex.size, numbers[0])
        return Found(columns, nominal, bits, eccentricity, 0, found.searches, traversing.seconds)
