"""``result="nearest"``: one search from all sources together finds the nearest of them for each
vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import NO_PREDECESSOR, at_most, namespace
from ..errors import InputError, NegativeCycleError, option_text
from ..graph import BuildReport, Graph
from ..graph.closed import listed_vertices
from ..search.algorithms import ALGORITHMS, BFS
from ..search.closed_returns import closed_sources
from ..search.frames import Column, as_returned_distance
from ..search.plan import Plan
from ..search.query import Query, SourceValues
from ..search.results import Traversal
from ..search.strategy import Strategy
from . import along
from .records import format_ids
from .result_kinds import NearestSourceOptions


def check_options(
    options: NearestSourceOptions, kind: Any, graph: Graph, algorithm: str, numbers: Any
) -> NearestSourceOptions:
    """Return the options with columns to sum as ``AlongPaths``, and with start costs as
    ``SourceValues``.

    Raises InputError as ``along.check_options`` and ``check_start_costs``.
    """
    checked: Any = along.check_options(options, kind, graph, algorithm, numbers)
    costs = options.start_costs
    if costs is None or "sources" not in numbers:  # without sources the job has read them
        return checked
    return replace(checked, start_costs=check_start_costs(graph, numbers["sources"], costs))


def check_start_costs(
    graph: Graph, numbers: np.ndarray, costs: Any, name: str = "start_costs"
) -> SourceValues:
    """Check one start cost per source, in the order of ``numbers``, which are vertex numbers.

    Raises InputError: there is not one number of 0 or more per source, which the weights of the
    graph could be; or a source is given twice with different costs.
    """
    values = arguments.size(name, arguments.numbers(name, costs), numbers.size, "one per source")
    values = values + values.dtype.type(0)  # -0.0 would be a negative weight

    def refuse_first(is_wrong: np.ndarray, why: str) -> None:
        """Raise InputError for the first cost that is wrong."""
        wrong = np.flatnonzero(is_wrong)
        if wrong.size:
            (source,) = format_ids(graph, numbers[wrong[0]])
            cost = values[wrong[0]].item()
            raise InputError(f"{name}: {cost!r} of source {source} {why}")

    refuse_first(values < 0, "is below 0; add the same number to all of them")
    if graph.integer_weights:
        refuse_first(
            values != np.trunc(values),
            "is no integer, and the weights are; give integers in their unit, or weights as floats",
        )
        refuse_first(values.astype(np.float64) >= 2.0**63, "is beyond int64; scale it down")
    if graph.weights is not None:
        kind = graph.weights.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            held = values.astype(kind)
            again = held.astype(values.dtype)
        is_wrong = again != values
        if values.dtype.kind == "i" and kind.kind == "f":
            is_wrong |= held >= 2.0**63  # which integer it becomes depends on the machine
        refuse_first(
            is_wrong,
            f"is not held exactly by weights of {kind}; build the graph with "
            f"{option_text('weight_type', 'float64')}",
        )

    def error_of_two_costs(row: int, first: int) -> InputError:
        """Return the error for a source with two costs, in two rows."""
        (source,) = format_ids(graph, numbers[row])
        return InputError(
            f"{name}: source {source} has the start cost {values[row].item()!r} and, further up, "
            f"{values[first].item()!r}; give it one"
        )

    return SourceValues.of_rows(numbers, values, error_of_two_costs)


def nearest_source_search(
    graph: Graph,
    numbers: np.ndarray,
    algorithm: str,
    single_source: Sequence[Strategy],
    strategy: str,
    query: Query,
    start_costs: SourceValues | None = None,
) -> tuple[Graph, Traversal]:
    """Search for the nearest of several sources of each vertex.

    The search begins at an additional vertex, which an edge of length 0 (for hops, of length 1)
    joins to each source, or an edge as long as its start cost. So it finds the distance from the
    nearest source of each vertex. Predecessors lead back to that source.

    Returns
    -------
    Graph
        The graph with the additional vertex, which is the last one.
    Traversal
        That of this graph from that vertex, for ``certify``.

    Raises NegativeCycleError: a negative cycle is reachable from one of the sources (SSSP only).
    """
    # By hops the edge from the root is one hop more.
    limit = query.limit
    if limit is not None and ALGORITHMS[algorithm].counts_hops:
        limit = BFS.largest_limit(limit + 1)
    costs = np.zeros(numbers.size)
    if start_costs is not None:
        costs = np.array(start_costs.of(numbers))

    # A negative cycle through a closed source: a search from all sources cannot tell a path back to
    # it from that of another, so one from it alone raises the error.
    for source in closed_sources(graph, numbers.tolist()):
        Plan(graph, algorithm, single_source, "auto", Query()).run_number(source)

    rooted = _add_root(graph, numbers, costs)
    plan = Plan(
        rooted,
        algorithm,
        single_source,
        strategy,
        Query(predecessors=True, limit=limit, knobs=query.knobs),
    )
    try:
        return rooted, plan.run_number(graph.n_vertices, cut=False)
    except NegativeCycleError as error:  # ids of the searched graph are vertex numbers
        raise NegativeCycleError(
            graph.ids_at(np.array(error.cycle)).tolist(), error.weight
        ) from None


def nearest_columns(graph: Graph, search: Traversal, limit: float | None) -> dict[str, Column]:
    """Return ``vertex, source, distance`` of a nearest-source search by ascending vertex."""
    xp = namespace(search.distance)
    n = graph.n_vertices
    algorithm = ALGORITHMS[search.algorithm]

    # Walk back to the root's child, which is the source: each round doubles the steps. What is not
    # reached is its own ancestor, too.
    ancestor = xp.where(search.predecessor == NO_PREDECESSOR, xp.arange(n + 1), search.predecessor)
    ancestor = xp.where(ancestor == n, xp.arange(n + 1), ancestor)  # each source is its own root
    while True:
        next_ancestor = ancestor[ancestor]
        if bool((next_ancestor == ancestor).all()):
            break
        ancestor = next_ancestor

    reached = search.reached[:n]
    if algorithm.counts_hops:
        distance = search.distance[:n] - 1  # without the hop from the root
    else:
        distance = search.distance[:n]
    if limit is not None:
        reached &= at_most(distance, algorithm.largest_limit(limit))
    listed = listed_vertices(graph)
    if listed is None:
        vertex = xp.flatnonzero(reached)
    else:
        listed = xp.asarray(listed)
        vertex = listed[reached[listed]]
    source = ancestor[:n][vertex]
    distance = as_returned_distance(graph, distance[vertex])
    return {
        "vertex": Column.of_vertices(graph, vertex),
        "source": Column.of_vertices(graph, source),
        "distance": Column(distance),
    }


def _add_root(graph: Graph, numbers: np.ndarray, costs: np.ndarray) -> Graph:
    """Return a graph with one more vertex, the last one, which has an edge to each vertex of
    ``numbers``, of the weight that ``costs`` has for it.

    Its ids are vertex numbers, and it has no rows of edges and no closed vertices.
    """
    if graph.derived.edges_on_host:
        return _add_root(graph.to("cpu"), numbers, costs).to("cuda", edges="host")
    xp = namespace(graph.offsets)
    heads = xp.asarray(numbers)
    weights = None
    if graph.weights is not None:
        weights = xp.append(graph.weights, xp.asarray(costs, graph.weights.dtype))
    return replace(
        graph,
        offsets=xp.append(graph.offsets, graph.n_edges + numbers.size),
        targets=xp.append(graph.targets, heads.astype(graph.targets.dtype)),
        weights=weights,
        ids=xp.arange(graph.n_vertices + 1),
        directed=True,
        report=BuildReport(),
        edge_rows=None,
        edges_of_rows=None,
        closed=None,
    )
