"""Other weights on the edges of a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import Array, get_device, index_dtype, is_negative, iter_slices, namespace, to_host
from ..cpu import csr_build
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cuda import csr_build as csr_on_gpu
from ..cuda import edge_rows as edge_rows_on_gpu
from ..errors import DeviceError, EdgeListError, InputError, option_text, several
from ..formats.selection import RowSelection
from ..formats.tables import as_weights
from ..labels import require_edge_labels
from ..protocols import CsrBackend, EdgeRowsBackend
from . import Graph
from .build import WEIGHT_TYPES, checked_weights, positions_where, smallest_weights
from .closed import find_ties
from .costs import in_one_type, require_numbers
from .csr import NO_ROW, no_edge


def with_weights(
    graph: Graph,
    weight: Any,
    *,
    reverse_weight: Any = None,
    per: str = "row",
    weight_type: str = "auto",
) -> Graph:
    """Return a graph with other weights on the same edges, which is not built again.

    The result is equal to a graph that is built from the same rows with these weights: of parallel
    edges the smallest of the new weights counts, and ``edge_rows`` follow it. The topology is
    shared with the graph, not copied, unless a weight closes an edge.

    A weight that is null (NaN) or infinite closes its row or edge. So does one below 0 if there are
    two weights per row; with one it is a negative weight. What the graph lacks stays closed, so
    begin with a graph whose edges are all open. Vertices stay.

    Parameters
    ----------
    graph : Graph
    weight : number array
        By the rules of ``graph_from_edges``, and on the device of the graph. A Series has the index
        of the data frame that the graph was built from, or 0 to n-1.
    reverse_weight : number array, optional
        A second weight per row, that from dst to src, of a graph that was built with one. Without
        it, ``weight`` is that of both directions.
    per : {"row", "edge"}
        ``"row"``: one weight per row of the edge list, ``report.rows`` of them, those of rows that
        a filter left out included. They have no effect, whatever they are. It needs a graph that
        was built with ``edge_ids=True``. ``"edge"``: one weight per stored edge, ``n_edges`` of
        them, in the order of ``targets``. In an undirected graph both directions of an edge must
        have one weight. ``edge_rows`` stay as they are.
    weight_type : {"auto", "float32", "float64"}
        As for ``graph_from_edges``.

    Raises
    ------
    EdgeListError
        A wrong number of weights, or weights that building refuses; the message names the row.
    InputError
        A Series has another index; the graph does not know its rows (``per="row"``), or was built
        without ``reverse_weight``; it has self-loops of negative weight, or the two directions of
        an edge differ (``per="edge"``).
    DeviceError
        Weights and graph are on different devices.

    Examples
    --------
    >>> graph = graph_from_edges([1, 2, 1], [2, 3, 2], [5, 1, 7], edge_ids=True)
    >>> graph.edge_rows.tolist()
    [0, 1]
    >>> rush_hour = with_weights(graph, [9, 2, 8])
    >>> rush_hour.weights.tolist(), rush_hour.edge_rows.tolist()
    ([8.0, 2.0], [2, 1])
    >>> with_weights(graph, [9, None, 8]).n_edges
    1
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    arguments.choice("per", per, ("row", "edge"))
    arguments.choice("weight_type", weight_type, WEIGHT_TYPES)
    if per == "row" and graph.edge_rows is None:
        raise InputError(
            f"the graph does not know its rows: build it with {option_text('edge_ids', True)}, or give one weight per "
            "stored edge, in the order of graph.targets, with per='edge'"
        )

    # A column of weights, or two.
    has_two_weights = bool(graph.report.reverse_weight_column)
    if reverse_weight is not None and (per == "edge" or not has_two_weights):
        raise InputError(
            "reverse_weight is for the rows of a graph that was built with "
            f"{option_text('reverse_weight_column')}; leave it out, or build the graph with both weights"
        )
    columns = [_checked_column(graph, "weight", weight, per, has_two_weights)]
    if reverse_weight is not None:
        columns.append(
            _checked_column(graph, "reverse_weight", reverse_weight, per, has_two_weights)
        )

    if per == "row":
        edge_weights = _weights_of_rows(graph, columns, weight_type)
    else:
        edge_weights = _weights_of_edges(graph, columns, weight_type)
    if graph.closed is not None:
        # The edges from closed vertices to themselves keep the weight 0.
        edge_weights = _with_ties(graph, edge_weights)
    changed_graph = replace(
        graph,
        weights=edge_weights.weights,
        edge_rows=edge_weights.edge_rows,
        integer_weights=edge_weights.integers,
        # with integer weights, distances are floats only if a float type was asked for
        float_distances=edge_weights.integers and weight_type != "auto",
        negative_loops=edge_weights.loops,
        may_pull=False,  # the copy has no reverse yet
        report=replace(
            graph.report,
            weight_source=str(columns[0].weights.dtype),
            weight_column="",
            negative_zeros=edge_weights.negative_zeros,
        ),
    )
    # With all edges left, degrees and hierarchies of hops are those of the graph.
    if edge_weights.is_open is None or bool(edge_weights.is_open.all()):
        changed_graph.derived.take_topology(graph)
    else:
        changed_graph = _without_closed(changed_graph, edge_weights)
    # The caller has chosen a graph whose BFS uses the reverse, so the copy gets a reverse, too.
    if graph.may_pull:
        changed_graph = changed_graph.derived.with_reverse()
    return changed_graph


class _WeightColumn(NamedTuple):
    """A column of n new weights, one per row of the edge list or one per stored edge."""

    # numbers (n,) in the type that they were given in; those that close something have no meaning
    weights: Array
    # bool (n,): True where a weight closes nothing; None: all are True
    is_open: Array | None


class _EdgeWeights(NamedTuple):
    """New weights of the stored edges, their rows, and facts about them.

    A slot is an integer array of shape (rows,) with one stored edge per row of the edge list, by
    the numbers of ``Graph.edges_of_rows``: positions in ``targets``, ``-1 - v`` for a self-loop of
    vertex v, ``no_edge`` for none. The first slot has the edges from src to dst, and a second one
    those from dst to src.
    """

    weights: Array  # of shape (n_edges,), checked; of no meaning where an edge is closed
    edge_rows: Any  # of shape (n_edges,): the row whose weight counts; None if rows are not known
    negative_zeros: int  # weights of -0.0 that became 0.0
    integers: bool  # whether the weights were given as integers
    loops: dict[int, Any]  # the smallest negative weight per vertex of its self-loops
    # bool of shape (n_edges,): False for a closed edge; None: all are open
    is_open: Array | None = None
    # one slot or two, with ``no_edge`` where a weight closes the edge; None: weights were given per
    # stored edge, or each row is one open edge, so that no slots were made
    slots: list[Array] | None = None


def _checked_column(
    graph: Graph, name: str, values: Any, per: str, has_two_weights: bool
) -> _WeightColumn:
    """Return the weights that the user gave as an array on the device of the graph, and which of
    them close nothing. NaN, infinity and null close.

    ``name`` is the argument, for errors. ``values`` are one weight per row of the edge list or per
    stored edge, as ``per`` says. ``has_two_weights``: the graph was built with a weight per
    direction, so that a weight below 0 closes its direction, too. Errors are raised for labels of
    other rows, another device, and another number of weights.
    """
    # Labels of a Series must be those of the edge list, which a graph knows of rows alone.
    require_edge_labels(name, values, graph.report.row_labels if per == "row" else "")
    # Nulls have become -1, and are True in ``is_null``, which is None if there are none.
    weights, is_null = as_weights(name, values)
    if get_device(weights) != graph.device:
        raise DeviceError(
            f"the graph is on {graph.device} and the weights are on "
            f"{get_device(weights)}; move one of them"
        )
    if per == "row":
        count = graph.report.rows
        what = "rows of the edge list"
    else:
        count = graph.n_edges
        what = "stored edges"
    # One weight per row or per stored edge, in the order of these.
    if weights.size != count:
        raise EdgeListError(
            f"{name} holds {weights.size} weights for {count} {what}; give one per {per} (per={per!r})",
            column=name,
        )
    # What is null, NaN or infinite closes, and so does what is below 0 if there are two weights.
    xp = namespace(weights)
    is_open = xp.ones(weights.size, bool) if is_null is None else xp.asarray(~is_null)
    if weights.dtype.kind == "f":
        is_open &= xp.isfinite(weights)
    if has_two_weights and weights.dtype.kind in "if":
        is_open &= ~(weights < 0)
    return _WeightColumn(weights, None if bool(is_open.all()) else is_open)


def _with_ties(graph: Graph, edge_weights: _EdgeWeights) -> _EdgeWeights:
    """Return weights in which the edges from closed vertices to themselves have the weight 0 and no
    row, and are open, whatever was given for them.

    The arrays of ``edge_weights`` are changed in place. Its negative loops of closed vertices are
    left out, as they are on no path.
    """
    closed: Any = graph.closed
    ties = find_ties(closed, graph.offsets, graph.targets)
    edge_weights.weights[ties] = 0
    if edge_weights.edge_rows is not None:
        edge_weights.edge_rows[ties] = NO_ROW
    if edge_weights.is_open is not None:
        edge_weights.is_open[ties] = True
    closed_vertices = set(closed[0].tolist())
    loops = {v: value for v, value in edge_weights.loops.items() if v not in closed_vertices}
    return edge_weights._replace(loops=loops)


def _weights_of_rows(
    graph: Graph, weight_columns: list[_WeightColumn], weight_type: str
) -> _EdgeWeights:
    """Return the weights of the stored edges, and their rows, from one or two weights per row.

    ``weight_columns`` has one column with the weights of both directions, or two: the weights from
    src to dst, and the weights from dst to src.
    """
    edge_rows: Any = graph.edge_rows
    # Without ``edges_of_rows`` no row was merged with another one, so weights only change places.
    has_row_per_edge = graph.edges_of_rows is None and len(weight_columns) == 1
    if has_row_per_edge and weight_columns[0].is_open is None:
        weights, negative_zeros, integers = checked_weights(weight_columns[0].weights, weight_type)
        return _EdgeWeights(weights[edge_rows], edge_rows, negative_zeros, integers, {})
    slots = _open_slots(graph, weight_columns)
    weights, negative_zeros, integers = _weights_of_slots(graph, slots, weight_columns, weight_type)
    xp = namespace(weights)

    # Rows that are self-loops have no stored edge, but their negative weights count. They are loops
    # in the first slot already.
    first_slot: Any = slots[0]

    def is_negative_loop(edge: Array, value: Array) -> Array:
        # ``no_edge`` is below 0, too, but no row that has it in this slot has a negative weight.
        return is_negative(value) & (edge < 0)

    # Of two columns of weights, the first has the weights of the edges in the first slot.
    places = positions_where(is_negative_loop, first_slot, weights[: first_slot.size])
    loops = smallest_weights(-1 - first_slot[places], weights[places], integers)

    # Of the rows that became one edge, the row of the smallest weight counts.
    backend: EdgeRowsBackend = edge_rows_on_gpu if graph.device == "cuda" else edge_rows_on_cpu
    # The edges of a row are side by side, so that the first of equal weight is of the smallest row.
    # With two slots, the edges of row r are at 2 r and 2 r + 1.
    edges = xp.stack(slots, axis=1).ravel()
    # One weight per row counts for its edge from src to dst and for its edge from dst to src. So
    # the list has one column per slot.
    columns = [*weights.reshape(len(weight_columns), -1)] * (len(slots) // len(weight_columns))
    values = xp.stack(columns, axis=1).ravel()
    # ``lowest``: of each stored edge, the smallest weight in ``values``. ``rows``: the first
    # place in ``edges`` that has this weight.
    lowest = backend.lowest_weights([edges], values, graph.n_edges)
    rows = backend.rows_that_count([edges], values, lowest, graph.n_edges, np.dtype(np.int64))
    # An edge is open if a row that became it is open. Others have weights of no meaning.
    is_open = xp.zeros(graph.n_edges, bool)
    is_open[edges[edges >= 0]] = True
    edge_rows = xp.where(is_open, rows // len(slots), NO_ROW).astype(edge_rows.dtype)
    return _EdgeWeights(lowest, edge_rows, negative_zeros, integers, loops, is_open, slots)


def _open_slots(graph: Graph, weight_columns: list[_WeightColumn]) -> list[Array]:
    """Return the stored edges of each row of the edge list, from src to dst and, if rows have edges
    in both directions, from dst to src: one slot or two, as ``_EdgeWeights`` defines them.
    ``no_edge`` stands in place of the edges that a weight closes.
    """
    slots = _slots_of_rows(graph)
    # One column of weights counts for both slots.
    columns = weight_columns * (len(slots) // len(weight_columns))
    none = no_edge(graph.n_vertices)
    return [
        slot if column.is_open is None else namespace(slot).where(column.is_open, slot, none)
        for slot, column in zip(slots, columns, strict=True)
    ]


def _slots_of_rows(graph: Graph) -> list[Array]:
    """Return the stored edges of each row of the edge list, from src to dst and, if rows have edges
    in both directions, from dst to src: one slot or two, as ``_EdgeWeights`` defines them. No
    weight has closed an edge yet.

    The graph has ``edge_rows``. If it has ``edges_of_rows``, these are the slots; else slots are
    made from ``edge_rows``, and which of two slots has which direction is left open.
    """
    if graph.edges_of_rows is not None:
        return list(graph.edges_of_rows)

    # Sorted by row, the edges of a row are neighbors: one, or two.
    rows: Any = graph.edge_rows
    xp = namespace(rows)
    kind = index_dtype(max(graph.n_edges, graph.n_vertices) + 1)  # for -1 - n_vertices: no edge
    edges = xp.argsort(rows, kind="stable")
    rows = rows[edges]
    is_known = rows >= 0
    edges = edges[is_known].astype(kind)
    rows = rows[is_known]
    is_second = xp.zeros(rows.size, bool)
    is_second[1:] = rows[1:] == rows[:-1]

    # The first edge of each row goes to one slot, and the second, if any row has one, to another.
    # A row with two edges has one weight here, so it does not matter which is from src to dst.
    slots = []
    masks = [~is_second]
    if bool(is_second.any()):
        masks.append(is_second)
    for is_in_slot in masks:
        slot = xp.full(graph.report.rows, no_edge(graph.n_vertices), kind)
        slot[rows[is_in_slot]] = edges[is_in_slot]
        slots.append(slot)
    return slots


def _weights_of_slots(
    graph: Graph, slots: list[Array], weight_columns: list[_WeightColumn], weight_type: str
) -> tuple[Array, int, bool]:
    """Return checked weights of all rows, how many were -0.0, and whether they are integers.

    Two columns are one array of shape (2 rows,), the second after the first. The weights of rows
    without an edge are 0: they have no effect, so they are not refused, whatever they are.
    """
    # A weight is used by the edge of its row, or by both where there is one weight for them.
    none = no_edge(graph.n_vertices)
    used = [slot != none for slot in slots]
    if len(weight_columns) < len(slots):
        used = [used[0] | used[1]]

    columns = [column.weights for column in weight_columns]
    if len(columns) > 1:
        require_numbers(*columns)
    xp = namespace(columns[0])
    columns = [
        xp.where(is_used, column, column.dtype.type(0))
        for is_used, column in zip(used, columns, strict=True)
    ]
    if len(columns) > 1:
        # A type that holds the numbers of both columns exactly; EdgeListError if there is none. No
        # number is below 0: of two weights, such a one closes its direction, and is 0 here.
        columns = in_one_type(*columns)
    # Errors name a row by it. Two columns stand one after the other, so that each row occurs twice.
    selection = RowSelection(total=graph.report.rows)
    if len(columns) == 1:
        return checked_weights(columns[0], weight_type, selection)
    return checked_weights(xp.concatenate(columns), weight_type, selection.twice())


def _without_closed(graph: Graph, edge_weights: _EdgeWeights) -> Graph:
    """Return a copy of ``graph`` without the edges that are closed. Its ``edge_rows`` and
    ``edges_of_rows`` go by the remaining edges.

    ``graph`` still has all edges, with the new weights. ``edge_weights.is_open`` is False for the
    edges that are closed.
    """
    is_open: Any = edge_weights.is_open
    weights: Any = graph.weights
    xp = namespace(is_open)
    # Of each edge the number of open ones before it: its new position, if it is open. The last of
    # the n_edges + 1 elements is the number of all open edges, to which the last offset points.
    places = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(is_open, dtype=np.int64)])
    offsets = places[graph.offsets]
    targets = graph.targets[is_open]
    edge_rows = edges_of_rows = None
    if graph.edge_rows is not None:
        edge_rows = graph.edge_rows[is_open]
        slots = xp.stack(
            _slots_of_rows(graph) if edge_weights.slots is None else edge_weights.slots
        )
        # Rows get the new positions of their edges. Self-loops and rows without an edge stay.
        is_edge = slots >= 0
        edges = xp.where(is_edge, slots, 0)  # 0 stands for what is no edge, and is not used
        new_edges = xp.where(is_open[edges], places[edges], no_edge(graph.n_vertices))
        edges_of_rows = xp.where(is_edge, new_edges, slots).astype(slots.dtype)
    backend: CsrBackend = csr_on_gpu if graph.device == "cuda" else csr_build
    # Vertices may have lost all their edges.
    isolated = backend.count_isolated(offsets, targets, graph.directed)
    return replace(
        graph,
        offsets=offsets,
        targets=targets,
        weights=weights[is_open],
        edge_rows=edge_rows,
        edges_of_rows=edges_of_rows,
        report=replace(graph.report, isolated_vertices=isolated),
    )


def _weights_of_edges(
    graph: Graph, weight_columns: list[_WeightColumn], weight_type: str
) -> _EdgeWeights:
    """Return the weights of the stored edges, from one weight per stored edge, which is the only
    one of ``weight_columns``. Their rows stay.

    InputError: the graph has self-loops of negative weight, or the two directions of an undirected
    edge differ.
    """
    if graph.negative_loops:
        raise InputError(
            f"the graph has {several(len(graph.negative_loops), 'vertex')} with a self-loop of negative weight, and "
            "self-loops are no stored edges; give one weight per row (per='row', of a graph with "
            f"{option_text('edge_ids', True)})"
        )
    weight, is_open = weight_columns[0]
    if is_open is not None:
        xp = namespace(weight)
        if not graph.directed:
            # An edge is closed in both directions, or in none: closed ones compare as infinite.
            _refuse_two_weights(graph, xp.where(is_open, weight.astype(np.float64), np.inf))
        # Weights of closed edges become 0, as the check would refuse NaN and infinity.
        weight = xp.where(is_open, weight, weight.dtype.type(0))
    # Weights that have the right type already are returned without a copy. A graph shares no memory
    # with what its maker may change.
    weights, negative_zeros, integers = checked_weights(weight, weight_type)
    if weights is weight:
        weights = weight.copy()
    if not graph.directed:
        _refuse_two_weights(graph, weights)
    return _EdgeWeights(weights, graph.edge_rows, negative_zeros, integers, {}, is_open)


def _refuse_two_weights(graph: Graph, weights: Array) -> None:
    """Raise InputError if the two directions of an undirected edge have different weights.

    The reverse of an undirected graph has the same edges in the same order, and each the weight of
    the other direction. Bits are compared, as a GPU takes subnormal numbers for zero.
    """
    backend: CsrBackend = csr_on_gpu if graph.device == "cuda" else csr_build
    back: Array  # of each stored edge the weight of its other direction
    _, _, back = backend.transpose(graph.offsets, graph.targets, weights)
    bits = np.dtype(f"i{weights.itemsize}")
    for (first, bits_there), (_, bits_back) in zip(
        iter_slices(weights.view(bits)), iter_slices(back.view(bits)), strict=True
    ):
        places = namespace(bits_there).flatnonzero(bits_there != bits_back)
        if not places.size:
            continue
        # The first edge whose two weights differ. ``first`` is the position of the slice. The tail
        # of the edge is the vertex whose adjacency list has the position of the edge.
        edge = first + int(places[0])
        u = int(np.searchsorted(to_host(graph.offsets), edge, "right")) - 1
        ids = [graph.ids_at([vertex])[0] for vertex in (u, int(graph.targets[edge]))]
        names = " and ".join(str(name.as_py() if graph.has_string_ids else name) for name in ids)
        raise InputError(
            f"the undirected edge between {names} has the weight {weights[edge]} in one direction and {back[edge]} in the "
            "other; give both one weight"
        )
