"""A plan: a search that is checked, compiled and allocated once, and then runs from any number of
sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from .. import arguments
from .._arrays import Array, is_reached, namespace, sort_distinct, to_host
from ..errors import NegativeCycleError
from ..graph import Graph
from ..graph.closed import refuse_closed, where_paths_end
from ..protocols import Ids, VertexId
from ..runtime import LOG
from ..runtime.concurrency import SerializedSearch
from ..runtime.display import in_units, limit_text
from .algorithms import ALGORITHMS
from .closed_returns import refuse_negative_return
from .exact import Sums, WideningSearch, admits_all
from .query import Query
from .results import Traversal, without_farther
from .strategy import Strategy, StrategyT, pick, strategy_for_sums


class Plan:
    """A traversal that is ready to run; made by ``plan_bfs`` and ``plan_sssp``.

    Any thread may run it. Traversals of one plan run one at a time. In the thread that made the
    plan, the arrays of a result are valid until its next traversal. Other threads get copies and
    use a second set of the plan's arrays.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : Strategy
        The strategy that runs.
    query : Query
    sums : Sums
        The type in which the first search sums distances. With integer weights a plan changes to a
        wider type once a result needs it.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str,
        strategies: Sequence[Strategy],
        name: str,
        query: Query,
        may_widen: bool = True,
    ) -> None:
        """Prepare searches by the strategy ``name``, one of ``strategies``, or "auto" for the first
        default that fits.

        With ``may_widen``, a search whose sums could have been rounded is repeated in a wider type.
        A plan for many sources, which repeats them itself, passes False.
        """
        self.graph = graph
        self.algorithm = algorithm
        self.strategy = pick(strategies, name, graph)
        self._is_named = name != "auto"
        self.query = query = replace(query, knobs=self.strategy.knobs_from(query.knobs))
        self.sums = Sums(graph, algorithm, query.limit)
        LOG.debug("%s from one source: %s on %r", algorithm, self.strategy.name, graph)
        self._strategies = strategies

        def prepare(sums: Sums) -> Any:
            """Return a search whose sums have the type of ``sums``: by the chosen strategy, or by
            that for int64 sums.
            """
            # Sums of floats may be rounded, and limits are then rounded in the same way.
            running = strategy_for_sums(self.strategy, strategies, sums, algorithm)
            if running.sums == "float":
                return running.plan(sums.graph, sums.round_limits(query))
            return running.plan(sums.graph, query)

        def make_search() -> Any:
            """Return a search with arrays of its own; threads other than the owner of the plan need
            a second one.
            """
            if may_widen:
                return WideningSearch(Sums(graph, algorithm, query.limit), prepare)
            return prepare(self.sums)

        self._search = SerializedSearch(make_search)

    def __call__(self, source: VertexId) -> Traversal:
        """Traverse from one vertex, identified by the user's id.

        Raises
        ------
        UnknownVertexError
            The source is not in the graph.
        NegativeCycleError
            A negative cycle can be reached from it (SSSP only).
        """
        return self.run_number(int(self.graph.to_numbers([source])[0]))

    def run_number(self, number: int, cut: bool = True) -> Traversal:
        """Traverse from one vertex, identified by its number 0..n-1.

        Parameters
        ----------
        number : int
        cut : bool
            With negative weights a search passes vertices beyond its limit. True: they are
            unreached in the result, and so is each predecessor that is one of them. False: they
            are in the result, whose limit is None, so that it can be certified.

        Raises
        ------
        UnknownVertexError
            ``number`` is not a vertex number of this graph.
        NegativeCycleError
            A negative cycle can be reached from it (SSSP only).
        """
        number = arguments.vertex_number(number, self.graph.n_vertices)
        result = self._traversal(self._search, number)
        if arguments.flag("cut", cut) and passes_limit(self.graph, self.algorithm, self.query):
            return without_farther(result, cast(float, self.query.limit))
        return result

    def run(self, number: int) -> Traversal:
        """Alias of ``run_number``: ``number`` is a vertex number. To traverse from an id, call the
        plan.
        """
        return self.run_number(number)

    def run_unguarded(self, number: int) -> Traversal:
        """Run like ``run``, but without a lock and without checking the number: for one caller at a
        time that has checked it.
        """
        return self._traversal(self._search.unguarded, number)

    def explain(self) -> str:
        """Return a text that states the strategy, why it was chosen, the alternatives, and the
        memory of a search.

        Examples
        --------
        >>> import numpy as np
        >>> print(plan_bfs(graph_from_edges(np.array([0, 1]), np.array([1, 2]))).explain().splitlines()[0])
        bfs from one source, on <Graph: 3 vertices, 2 stored edges, directed, unweighted, cpu>
        """
        # Of the other strategies for the device: those that could run, and the defaults that
        # cannot.
        fitting = []
        left_out = []
        for other in self._strategies:
            if other.device != self.graph.device or other.name == self.strategy.name:
                continue
            reason = other.unsupported_reason(self.graph)
            # Published ones reproduce other systems for study, and are no advice for a user.
            if reason is None and not other.published:
                fitting.append(other.name)
            if reason is not None and other.default:
                left_out.append(f"left out: {other.name}: {reason}")

        if self._is_named:
            choice = "strategy= names it"
        else:
            choice = "the first of the defaults that fits the graph"
        lines = [
            f"{self.algorithm} from one source{limit_text(self.query.limit)}, on {self.graph!r}",
            f"strategy: {self.strategy.name}: {self.strategy.rationale}",
            (
                f"memory: {in_units(self.nbytes)} in addition to the graph "
                f"({in_units(self.graph.nbytes)})"
            ),
            f"why: {choice}",
        ]

        if ALGORITHMS[self.algorithm].is_weighted:
            lines.append(
                f"sums: {self.sums.dtype}"
                + (", wider where these could round" if self.sums.may_widen else "")
            )
        if fitting:
            lines.append("alternatives, for which there are no estimates: " + ", ".join(fitting))
        return "\n".join(lines + left_out)

    def __repr__(self) -> str:
        """Return the algorithm, the strategy, the memory and the graph as a short text."""
        return (
            f"<Plan: {self.algorithm}, {self.strategy.name}, "
            f"{in_units(self.nbytes)}, on {self.graph!r}>"
        )

    def adopt(self) -> None:
        """Make the calling thread the owner, whose results are not copied.

        For a caller that passes a plan from thread to thread and no longer uses earlier results.
        """
        self._search.adopt()

    def _traversal(self, search: Any, number: int) -> Traversal:
        """Return the traversal from the vertex with a number. ``search`` takes that number and
        returns an ``Outcome``.

        Raises NegativeCycleError, with the ids of the vertices: a negative cycle can be reached.
        """
        try:
            outcome = search(number)
            # No path leads through a closed vertex, so that a search from one does not find a
            # negative cycle that begins and ends there.
            if ALGORITHMS[self.algorithm].is_weighted:
                refuse_negative_return(self.graph, number, outcome.distance)
        except NegativeCycleError as error:  # strategies report vertex numbers, users know ids
            ids = self.graph.ids_at(np.array(error.cycle))
            raise NegativeCycleError(ids.tolist(), error.weight) from None
        self._refuse_negative_loops(outcome.distance)
        # Where sums were int64, another strategy than the chosen one has run.
        strategy = strategy_that_ran(self.strategy, self._strategies, outcome)
        return Traversal(
            algorithm=self.algorithm,
            source=number,
            strategy=strategy.name,
            **traversal_fields(outcome),
        )

    def _refuse_negative_loops(self, distance: Array) -> None:
        """Raise NegativeCycleError if a vertex that was reached has a self-loop of negative weight
        in the edge list.

        The graph has no self-loops among its edges, so that searches do not find these.
        ``distance`` has the shape (n_vertices,).
        """
        loops = self.graph.negative_loops
        if not loops or ALGORITHMS[self.algorithm].counts_hops:
            return
        vertices = np.array(list(loops))  # ``loops`` has the weights by vertex number
        reached = np.flatnonzero(
            to_host(is_reached(distance[namespace(distance).asarray(vertices)]))
        )
        if reached.size:
            vertex = int(vertices[reached[0]])
            raise NegativeCycleError(self.graph.ids_at(np.array([vertex])).tolist(), loops[vertex])

    @property
    def nbytes(self) -> int:
        """Bytes of results and scratch that the plan holds for one thread, in addition to the
        graph.
        """
        return self.strategy.memory(
            self.graph.n_vertices, self.graph.n_edges, self.query.predecessors
        )


def passes_limit(graph: Graph, algorithm: str, query: Query) -> bool:
    """Return whether a search by ``algorithm`` returns vertices beyond the limit of ``query``, so
    that its result must be cut. Without a limit it does not.

    With negative weights it does, because a path to a vertex within the limit may lead through
    vertices beyond it.
    """
    return (
        query.limit is not None and ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights
    )


def strategy_that_ran(
    strategy: StrategyT, strategies: Sequence[StrategyT], outcome: Any
) -> StrategyT:
    """Return the strategy that computed an outcome: ``strategy``, which was chosen, or the one for
    int64 sums of the same device, if ``strategies`` have one.

    The type of the distances shows which. An outcome without distances counts as that of the chosen
    one.
    """
    if outcome.distance is None or outcome.distance.dtype != np.int64:
        return strategy
    return next(
        (
            other
            for other in strategies
            if other.sums == "int64" and other.device == strategy.device
        ),
        strategy,
    )


def traversal_fields(outcome: Any) -> dict[str, Any]:
    """Return the fields of ``outcome``, an ``Outcome`` or ``MultiSourceOutcome``, that a
    ``Traversal`` or ``Traversals`` also has, by name: all but ``below``, a bound of the distances.
    """
    fields: dict[str, Any] = outcome._asdict()
    del fields["below"]
    return fields


def make_query(
    graph: Graph,
    algorithm: str,
    *,
    predecessors: bool,
    limit: float | None,
    targets: Ids | None = None,
    **others: Any,
) -> Query:
    """Return the query that follows from options as users give them.

    ``algorithm`` is "bfs" or "sssp". ``predecessors`` says whether these are wanted, ``limit`` is
    the largest distance of interest, None for no limit, and ``targets`` are ids, None for all
    vertices. ``others`` are fields of ``Query`` that need no check.

    Raises InputError or UnknownVertexError: an option has a wrong value, a target is no vertex, or
    hops are asked for in a graph with closed vertices.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    predecessors = arguments.flag("predecessors", predecessors)
    named_algorithm = ALGORITHMS[algorithm]
    if named_algorithm.counts_hops:
        refuse_closed(
            graph, "bfs reads no weights", "take sssp on edges of weight 1, which counts hops, too"
        )
    if limit is not None:
        limit = arguments.limit(named_algorithm.limit_name, limit)
        if named_algorithm.counts_hops:
            limit = int(named_algorithm.largest_limit(limit))  # at most what int32 hops hold
        elif admits_all(graph, limit):
            # so that a distance too large for its type is an error, as it is without a limit
            limit = None
    if targets is None:
        numbers = None
    else:
        # closed vertices have two numbers, and searches find that where paths end
        numbers = sort_distinct(where_paths_end(graph, graph.to_numbers(targets, "target")))
    return Query(predecessors=predecessors, limit=limit, targets=numbers, **others)
