"""A plan: checked, compiled and allocated once, then run from as many sources as wanted; and what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ._arrays import is_reached, namespace, to_host
from .errors import InputError, NegativeCycleError, PrecisionError
from .exact import Sums
from .graph import Graph
from .query import Query
from .results import Traversal
from .strategy import Strategy, in_use, pick


class Plan:
    """A traversal that is ready to run; made by ``plan_bfs`` and ``plan_sssp``.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : Strategy
        The row of the catalogue that runs.
    query : Query
    sums : Sums
        The type that distances are summed in. A plan for integer weights begins with the narrowest that may do, and goes on
        to a wider one once a result needs it.
    """

    def __init__(
        self, graph: Graph, algorithm: str, rows: Sequence[Strategy], name: str, query: Query, may_widen: bool = True
    ):
        self.graph, self.algorithm = graph, algorithm
        self.strategy = pick(rows, name, graph)
        self.query = replace(query, knobs=self.strategy.knobs_from(query.knobs))
        self._rows, self._may_widen = rows, may_widen
        self.sums = Sums(graph, algorithm, query.limit)
        self._prepare()

    def _prepare(self) -> None:
        """Allocate for sums of the current type."""
        self._traverse = None  # gives back what the type before had
        self._running = in_use(self.strategy, self._rows, self.sums, self.algorithm)
        self._traverse = self._running.plan(self.sums.graph, self.query)

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
        """Traverse from one vertex, given by its number 0..n-1."""
        while True:
            try:
                outcome = self._traverse(number)
            except NegativeCycleError as error:  # strategies know numbers only
                ids = self.graph.ids_at(np.array(error.cycle))
                raise NegativeCycleError(ids.tolist(), error.weight) from None
            except PrecisionError:
                if not (self._may_widen and self.sums.may_widen):
                    raise
            else:
                if not self._may_widen or self.sums.hold(outcome.distance, outcome.below):
                    break
            self.sums.widen()
            self._prepare()
        self._refuse_negative_loops(outcome.distance)
        fields = outcome._asdict()
        del fields["below"]
        return Traversal(algorithm=self.algorithm, source=number, strategy=self._running.name, **fields)

    def _refuse_negative_loops(self, distance) -> None:
        """Raise NegativeCycleError for a vertex that was reached and has a self-loop of negative weight."""
        loops = self.graph.negative_loops if self.algorithm == "sssp" else None
        if not loops:
            return
        vertices = np.array(list(loops))
        reached = np.flatnonzero(to_host(is_reached(distance[namespace(distance).asarray(vertices)])))
        if reached.size:
            vertex = int(vertices[reached[0]])
            raise NegativeCycleError(self.graph.ids_at(np.array([vertex])).tolist(), loops[vertex])

    @property
    def nbytes(self) -> int:
        """Bytes that the plan holds beside the graph: results and scratch."""
        return self.strategy.memory(self.graph.n_vertices, self.graph.n_edges, self.query.predecessors)


def query_for(graph: Graph, predecessors: bool, limit, targets, knobs, limit_name: str, keep: str = "all") -> Query:
    """Check the options that every traversal shares."""
    if limit is not None and not limit >= 0:
        raise InputError(f"{limit_name} must be 0 or more, not {limit!r}")
    if targets is not None:
        targets = np.unique(graph.numbers_of(targets, "target"))
    return Query(predecessors=predecessors, limit=limit, targets=targets, knobs=knobs, keep=keep)
