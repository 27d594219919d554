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

    ``kind`` and ``algorithm`` are those of ``along.check_options``. ``numbers`` may have
    ``sources``, their vertex numbers in the order of the start costs. Without them, the job has
    read and checked the costs already.

    Raises InputError as ``along.check_options`` and ``check_start_costs``.
    """
    checked: Any = along.check_options(options, kind, graph, algorithm, numbers)
    costs = options.start_costs
    if costs is None or "sources" not in numbers:
        return checked
    return replace(checked, start_costs=check_start_costs(graph, numbers["sources"], costs))


def check_start_costs(
    graph: Graph, numbers: np.ndarray, costs: Any, name: str = "start_costs"
) -> SourceValues:
    """Return one start cost per source as ``SourceValues``: what the source adds to the distances
    from it.

    ``costs`` are in the order of ``numbers``, the vertex numbers of the sources. ``name`` is what
    errors call them.

    Raises InputError: there is not one number of 0 or more per source; the type of the weights does
    not hold a cost exactly, or weights are integers and a cost is not; or a source is given twice
    with different costs.
    """
    values = arguments.size(name, arguments.numbers(name, costs), numbers.size, "one per source")
    values = values + values.dtype.type(0)  # -0.0 would be a negative weight

    def refuse_first(is_wrong: np.ndarray, why: str) -> None:
        """Raise InputError for the first cost at which ``is_wrong``, bool of shape (n_sources,), is
        True; ``why`` ends its text.
        """
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
    # A cost becomes the weight of an edge.
    if graph.weights is not None:
        kind = graph.weights.dtype
        if kind.kind == "f":
            refuse_first(~_is_held(values, np.dtype(np.float64)), "has too many digits; round it")
        refuse_first(
            ~_is_held(values, kind),
            f"is not held exactly by weights of {kind}; build the graph with "
            f"{option_text('weight_type', 'float64')}",
        )

    def error_of_two_costs(row: int, first: int) -> InputError:
        """Return the error for a source whose cost in ``row`` differs from that in the row
        ``first``.
        """
        (source,) = format_ids(graph, numbers[row])
        return InputError(
            f"{name}: source {source} has the start cost {values[row].item()!r} and, further up, "
            f"{values[first].item()!r}; give it one"
        )

    return SourceValues.of_rows(numbers, values, error_of_two_costs)


def _is_held(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Return for each number whether the type ``kind`` holds it exactly, bool of the shape of
    ``values``.
    """
    # A type that holds a number exactly returns the same number.
    with np.errstate(over="ignore", invalid="ignore"):
        held = values.astype(kind)
        again = held.astype(values.dtype)
    is_held = again == values
    if values.dtype.kind == "i" and kind.kind == "f":
        is_held &= held < 2.0**63  # which integer a larger one becomes depends on the machine
    return is_held


def nearest_source_search(
    graph: Graph,
    numbers: np.ndarray,
    algorithm: str,
    single_source: Sequence[Strategy],
    strategy: str,
    query: Query,
    start_costs: SourceValues | None = None,
) -> tuple[Graph, Traversal]:
    """Search for the nearest of several sources of each vertex, by one search.

    The search begins at an additional vertex, the root, which an edge joins to each source: of
    length 0, or as long as its start cost, or of one hop. So it finds the distance of each vertex
    from its nearest source. Predecessors lead back to that source, and then to the root.

    Parameters
    ----------
    graph : Graph
    numbers : int64 array
        Vertex numbers of the sources.
    algorithm : {"bfs", "sssp"}
    single_source : sequence of Strategy
        The strategies of the algorithm for one source.
    strategy : str
        The name of one of them, or "auto".
    query : Query
        Its limit and its knobs count. All else of it is ignored.
    start_costs : SourceValues, optional
        What each source adds to the distances from it; by default 0.

    Returns
    -------
    Graph
        The graph with the root, which is the last vertex.
    Traversal
        That of this graph from the root, for ``certify``. By hops, its distances are one too large.

    Raises NegativeCycleError: a negative cycle is reachable from one of the sources (SSSP only).
    """
    # By hops, the edge from the root adds one hop to each distance, and so to the limit, which
    # ``largest_limit`` keeps within int32.
    limit = query.limit
    if limit is not None and ALGORITHMS[algorithm].counts_hops:
        limit = BFS.largest_limit(limit + 1)
    costs = np.zeros(numbers.size)
    if start_costs is not None:
        costs = np.array(start_costs.of(numbers))

    # No path leads through a closed vertex, but a negative cycle may begin and end at a closed
    # source. In a search from all sources, a negative path to it may have begun at another source.
    # So a search from it alone raises the error, and its result is dropped.
    # ``closed_sources`` has none of these if no weight is negative.
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
    # The root has the number ``n_vertices``. With negative weights a search passes vertices beyond
    # the limit. They are kept (``cut=False``), since the certificate needs them;
    # ``nearest_columns`` leaves them out.
    try:
        return rooted, plan.run_number(graph.n_vertices, cut=False)
    except NegativeCycleError as error:  # ids of the searched graph are vertex numbers
        raise NegativeCycleError(
            graph.ids_at(np.array(error.cycle)).tolist(), error.weight
        ) from None


def nearest_columns(graph: Graph, search: Traversal, limit: float | None) -> dict[str, Column]:
    """Return columns ``vertex, source, distance`` from a nearest-source search, by ascending
    vertex.

    ``search`` is the traversal that ``nearest_source_search`` returns. ``graph`` is the user's
    graph, without the root. What is farther than ``limit``, None for no limit, has no row.
    """
    xp = namespace(search.distance)
    n = graph.n_vertices
    algorithm = ALGORITHMS[search.algorithm]

    # Walk back to the source, which is a child of the root: each round doubles the steps back. The
    # array has one entry more than the graph has vertices: the root, number n.
    # Sources, and vertices that were not reached, are their own ancestors, at which walks end.
    ancestor = xp.where(search.predecessor == NO_PREDECESSOR, xp.arange(n + 1), search.predecessor)
    ancestor = xp.where(ancestor == n, xp.arange(n + 1), ancestor)
    while True:
        next_ancestor = ancestor[ancestor]
        if bool((next_ancestor == ancestor).all()):
            break
        ancestor = next_ancestor

    # Without the root, which has the last number.
    reached = search.reached[:n]
    if algorithm.counts_hops:
        distance = search.distance[:n] - 1  # without the hop from the root
    else:
        distance = search.distance[:n]
    if limit is not None:
        reached &= at_most(distance, algorithm.largest_limit(limit))
    # A closed vertex has two numbers, and is listed by the one where paths end.
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
    """Return a graph with one more vertex, the last one, which an edge joins to each vertex of
    ``numbers``. Its weights are ``costs``, in the order of ``numbers``.

    The ids of the new graph are vertex numbers. It knows no rows of an edge list, and has no closed
    vertices.
    """
    # Edges that are in host memory are joined there, and stay there.
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
        # Ids are vertex numbers here, so that both numbers of a closed vertex are vertices.
        report=BuildReport(),
        edge_rows=None,
        edges_of_rows=None,
        closed=None,
    )
