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
from ..errors import DeviceError, EdgeListError, InputError, option_text
from ..formats.selection import RowSelection
from ..formats.tables import as_weights
from ..labels import require_edge_labels
from ..protocols import CsrBackend, EdgeRowsBackend
from . import Graph
from .build import WEIGHT_TYPES, checked_weights, positions, smallest_weights
from .closed import find_ties
from .costs import in_one_type
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
    has_two = bool(graph.report.reverse_weight_column)
    if reverse_weight is not None and (per == "edge" or not has_two):
        raise InputError(
            "reverse_weight is for the rows of a graph that was built with "
            f"{option_text('reverse_weight_column')}; leave it out, or build the graph with both weights"
        )
    given = [_checked_column(graph, "weight", weight, per, has_two)]
    if reverse_weight is not None:
        given.append(_checked_column(graph, "reverse_weight", reverse_weight, per, has_two))
    made = (_of_rows if per == "row" else _of_edges)(graph, given, weight_type)
    if graph.closed is not None:
        made = _with_ties(graph, made)
    changed = replace(
        graph,
        weights=made.weights,
        edge_rows=made.edge_rows,
        integer_weights=made.integers,
        float_distances=made.integers and weight_type != "auto",
        negative_loops=made.loops,
        may_pull=False,
        report=replace(
            graph.report,
            weight_source=str(given[0].weights.dtype),
            weight_column="",
            negative_zeros=made.negative_zeros,
        ),
    )
    if made.is_open is None or bool(made.is_open.all()):
        changed.derived.take_topology(graph)
    else:
        changed = _without_closed(changed, made)
    weighted: Graph = changed.derived.with_reverse() if graph.may_pull else changed
    return weighted


class _Given(NamedTuple):
    """A column of weights, and which of them close nothing; None: all."""

    weights: Array
    is_open: Array | None


class _Made(NamedTuple):
    """Weights of the stored edges, their rows, and facts about them."""

    weights: Array
    edge_rows: Any
    negative_zeros: int
    integers: bool
    loops: dict[int, Any]
    is_open: Array | None = None  # bool of shape (n_edges,); None: all are
    slots: list[Array] | None = None  # the edges of each row, those that are closed left out


def _checked_column(graph: Graph, name: str, given: Any, per: str, has_two: bool) -> _Given:
    """Return a column of weights on the device of the graph; the errors are of ``with_weights``."""
    require_edge_labels(name, given, graph.report.row_labels if per == "row" else "")
    weights, is_null = as_weights(name, given)
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
    if weights.size != count:
        raise EdgeListError(
            f"{name} holds {weights.size} weights for {count} {what}; give one per {per} (per={per!r})",
            column=name,
        )
    xp = namespace(weights)
    is_open = xp.ones(weights.size, bool) if is_null is None else xp.asarray(~is_null)
    if weights.dtype.kind == "f":
        is_open &= xp.isfinite(weights)
    if has_two and weights.dtype.kind in "if":
        is_open &= ~(weights < 0)
    return _Given(weights, None if bool(is_open.all()) else is_open)


def _with_ties(graph: Graph, made: _Made) -> _Made:
    """Return weights in which the edges from closed vertices to themselves are as they were, and the
    loops of other vertices.
    """
    closed: Any = graph.closed
    ties = find_ties(closed, graph.offsets, graph.targets)
    made.weights[ties] = 0
    if made.edge_rows is not None:
        made.edge_rows[ties] = NO_ROW
    if made.is_open is not None:
        made.is_open[ties] = True
    own = set(closed[0].tolist())
    return made._replace(loops={v: value for v, value in made.loops.items() if v not in own})


def _of_rows(graph: Graph, given: list[_Given], weight_type: str) -> _Made:
    """Return what one or two weights per row make of the stored edges."""
    is_plain = graph.edges_of_rows is None and len(given) == 1
    known: Any = graph.edge_rows
    if is_plain and given[0].is_open is None:
        weights, zeros, integers = checked_weights(given[0].weights, weight_type)
        return _Made(weights[known], known, zeros, integers, {})
    slots = _open_slots(graph, given)
    weights, zeros, integers = _weights_of_slots(graph, slots, given, weight_type)
    xp = namespace(weights)
    own: Any = slots[0]
    at = positions(lambda edge, value: is_negative(value) & (edge < 0), own, weights[: own.size])
    loops = smallest_weights(-1 - own[at], weights[at], integers)
    backend: EdgeRowsBackend = edge_rows_on_gpu if graph.device == "cuda" else edge_rows_on_cpu
    # the edges of a row side by side, so that the first of equal weight is of the smallest row
    edges = xp.stack(slots, axis=1).ravel()
    columns = [*weights.reshape(len(given), -1)] * (len(slots) // len(given))
    values = xp.stack(columns, axis=1).ravel()
    lowest = backend.lowest_weights([edges], values, graph.n_edges)
    rows = backend.rows_that_count([edges], values, lowest, graph.n_edges, np.dtype(np.int64))
    is_open = xp.zeros(graph.n_edges, bool)
    is_open[edges[edges >= 0]] = True
    edge_rows = xp.where(is_open, rows // len(slots), NO_ROW).astype(known.dtype)
    return _Made(lowest, edge_rows, zeros, integers, loops, is_open, slots)


def _open_slots(graph: Graph, given: list[_Given]) -> list[Array]:
    """Return the edges of each row, there and perhaps back, as ``Graph.edges_of_rows`` has them;
    those that a weight closes are left out.
    """
    slots = _slots_of_rows(graph)
    columns = given * (len(slots) // len(given))
    none = no_edge(graph.n_vertices)
    return [
        slot if column.is_open is None else namespace(slot).where(column.is_open, slot, none)
        for slot, column in zip(slots, columns, strict=True)
    ]


def _slots_of_rows(graph: Graph) -> list[Array]:
    """Return the edges of each row, there and perhaps back."""
    if graph.edges_of_rows is not None:
        return list(graph.edges_of_rows)
    rows: Any = graph.edge_rows
    xp = namespace(rows)
    kind = index_dtype(max(graph.n_edges, graph.n_vertices) + 1)
    edges = xp.argsort(rows, kind="stable")
    rows = rows[edges]
    is_known = rows >= 0
    edges = edges[is_known].astype(kind)
    rows = rows[is_known]
    is_second = xp.zeros(rows.size, bool)
    is_second[1:] = rows[1:] == rows[:-1]
    slots = []
    for own in (~is_second, is_second) if bool(is_second.any()) else (~is_second,):
        slot = xp.full(graph.report.rows, no_edge(graph.n_vertices), kind)
        slot[rows[own]] = edges[own]
        slots.append(slot)
    return slots


def _weights_of_slots(
    graph: Graph, slots: list[Array], given: list[_Given], weight_type: str
) -> tuple[Array, int, bool]:
    """Return checked weights of all rows, one column after the other, how many were -0.0, and
    whether they are integers. Those of rows without an edge are 0.
    """
    none = no_edge(graph.n_vertices)
    used = [slot != none for slot in slots]
    if len(given) < len(slots):
        used = [used[0] | used[1]]
    columns = [column.weights for column in given]
    if len(columns) > 1:
        columns = in_one_type(*columns)
    xp = namespace(columns[0])
    columns = [
        xp.where(is_used, column, column.dtype.type(0))
        for is_used, column in zip(used, columns, strict=True)
    ]
    selection = RowSelection(total=graph.report.rows)
    if len(columns) == 1:
        return checked_weights(columns[0], weight_type, selection)
    return checked_weights(xp.concatenate(columns), weight_type, selection.twice())


def _without_closed(graph: Graph, made: _Made) -> Graph:
    """Return a graph without the edges that are closed."""
    is_open: Any = made.is_open
    weights: Any = graph.weights
    xp = namespace(is_open)
    places = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(is_open, dtype=np.int64)])
    offsets = places[graph.offsets]
    targets = graph.targets[is_open]
    edge_rows = edges_of_rows = None
    if graph.edge_rows is not None:
        edge_rows = graph.edge_rows[is_open]
        slots = xp.stack(_slots_of_rows(graph) if made.slots is None else made.slots)
        is_edge = slots >= 0
        at = xp.where(is_edge, slots, 0)
        there = xp.where(is_open[at], places[at], no_edge(graph.n_vertices))
        edges_of_rows = xp.where(is_edge, there, slots).astype(slots.dtype)
    backend: CsrBackend = csr_on_gpu if graph.device == "cuda" else csr_build
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


def _of_edges(graph: Graph, given: list[_Given], weight_type: str) -> _Made:
    """As ``_of_rows``, from one weight per stored edge."""
    if graph.negative_loops:
        raise InputError(
            f"the graph has {len(graph.negative_loops)} vertices with a self-loop of negative weight, and self-loops are no "
            f"stored edges; give one weight per row (per='row', of a graph with {option_text('edge_ids', True)})"
        )
    weight, is_open = given[0]
    if is_open is not None:
        xp = namespace(weight)
        if not graph.directed:
            _refuse_two_weights(graph, xp.where(is_open, weight.astype(np.float64), np.inf))
        weight = xp.where(is_open, weight, weight.dtype.type(0))
    weights, zeros, integers = checked_weights(weight, weight_type)
    if weights is weight:
        weights = weight.copy()  # a graph shares no memory with what its maker may change
    if not graph.directed:
        _refuse_two_weights(graph, weights)
    return _Made(weights, graph.edge_rows, zeros, integers, {}, is_open)


def _refuse_two_weights(graph: Graph, weights: Array) -> None:
    """Raise InputError if the two directions of an undirected edge have different weights."""
    backend: CsrBackend = csr_on_gpu if graph.device == "cuda" else csr_build
    back: Array = backend.transpose(graph.offsets, graph.targets, weights)[2]
    bits = np.dtype(f"i{weights.itemsize}")
    for (first, there), (_, other) in zip(
        iter_slices(weights.view(bits)), iter_slices(back.view(bits)), strict=True
    ):
        differ = namespace(there).flatnonzero(there != other)
        if not differ.size:
            continue
        at = first + int(differ[0])
        u = int(np.searchsorted(to_host(graph.offsets), at, "right")) - 1
        ids = [graph.ids_at([vertex])[0] for vertex in (u, int(graph.targets[at]))]
        names = " and ".join(str(name.as_py() if graph.has_string_ids else name) for name in ids)
        raise InputError(
            f"the undirected edge between {names} has the weight {weights[at]} in one direction and {back[at]} in the "
            "other; give both one weight"
        )
