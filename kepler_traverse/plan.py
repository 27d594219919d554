"""A plan: checked, compiled and allocated once, then run from as many sources as wanted; and what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from . import arguments
from ._arrays import LARGEST_HOP_COUNT
from .concurrency import SerializedSearch
from .errors import NegativeCycleError
from .graph import Graph
from .query import Query
from .results import Traversal
from .strategy import Strategy, pick


class Plan:
    """A traversal that is ready to run; made by ``plan_bfs`` and ``plan_sssp``.

    Any thread may run it; traversals of one plan run one at a time. The thread that made the plan gets results whose arrays
    hold until its next traversal. Results of other threads are copies, and take a second set of the plan's arrays.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : Strategy
        The row of the catalogue that runs.
    query : Query
    """

    def __init__(self, graph: Graph, algorithm: str, rows: Sequence[Strategy], name: str, query: Query):
        self.graph, self.algorithm = graph, algorithm
        self.strategy = pick(rows, name, graph)
        self.query = query = replace(query, knobs=self.strategy.knobs_from(query.knobs))
        self._search = SerializedSearch(lambda: self.strategy.plan(graph, query))

    def __call__(self, source) -> Traversal:
        """Traverse from one vertex, given by the user's id.

        Raises
        ------
        UnknownVertexError
            The source is not in the graph.
        NegativeCycleError
            A negative cycle can be reached from it (SSSP only).
        """
        return self.run(int(self.graph.numbers_of([source])[0]))

    def run(self, number: int) -> Traversal:
        """Traverse from one vertex, given by its number 0..n-1.

        Raises
        ------
        UnknownVertexError
            Not a vertex number of this graph.
        NegativeCycleError
            A negative cycle can be reached from it (SSSP only).
        """
        return self._traversal(self._search, arguments.vertex_number(number, self.graph.n_vertices))

    def run_unguarded(self, number: int) -> Traversal:
        """As ``run``, for one caller at a time that has checked the number."""
        return self._traversal(self._search.unguarded, number)

    def adopt(self) -> None:
        """Make the calling thread the one whose results are not copied.

        For a caller that hands a plan from thread to thread, and uses no earlier result any more.
        """
        self._search.adopt()

    def _traversal(self, search, number: int) -> Traversal:
        try:
            outcome = search(number)
        except NegativeCycleError as error:  # strategies know numbers only
            ids = self.graph.ids_at(np.array(error.cycle))
            raise NegativeCycleError(ids.tolist(), error.weight) from None
        return Traversal(
            algorithm=self.algorithm,
            source=number,
            strategy=self.strategy.name,
            **outcome._asdict(),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that the plan holds beside the graph for one thread: results and scratch."""
        return self.strategy.memory(self.graph.n_vertices, self.graph.n_edges, self.query.predecessors)


def query_for(graph: Graph, predecessors: bool, limit, targets, knobs, limit_name: str, keep: str = "all") -> Query:
    """Check the options that every traversal shares."""
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    predecessors = arguments.flag("predecessors", predecessors)
    if limit is not None:
        limit = arguments.limit(limit_name, limit)
        limit = int(min(limit, LARGEST_HOP_COUNT)) if limit_name == "max_depth" else limit
    if targets is not None:
        targets = np.unique(graph.numbers_of(targets, "target"))
    return Query(predecessors=predecessors, limit=limit, targets=targets, knobs=knobs, keep=keep)
