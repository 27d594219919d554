"""Other weights on the edges of a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import Array, get_device, is_negative, iter_slices, namespace, to_host
from ..cpu import csr_build
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cuda import csr_build as csr_on_gpu
from ..cuda import edge_rows as edge_rows_on_gpu
from ..errors import DeviceError, EdgeListError, InputError, option_text
from ..formats.selection import RowSelection
from ..formats.tables import as_column
from ..labels import require_edge_labels
from ..protocols import CsrBackend, EdgeRowsBackend
from . import Graph
from .build import NO_ROW, WEIGHT_TYPES, checked_weights, no_edge, positions, smallest_weights
from .closed import find_ties


def with_weights(
    graph: Graph, weight: Any, *, per: str = "row", weight_type: str = "auto"
) -> Graph:
    """Return a graph with other weights on the same edges, which is not built again.

    The result is equal to a graph that is built from the same rows with these weights: of parallel
    edges the smallest of the new weights counts, and ``edge_rows`` follow it. The topology is
    shared with the graph, not copied.

    Parameters
    ----------
    graph : Graph
    weight : number array
        By the rules of ``graph_from_edges``, and on the device of the graph. A Series has the index
        of the data frame that the graph was built from, or 0 to n-1.
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
        A Series has another index; the graph does not know its rows (``per="row"``); it has
        self-loops of negative weight, or the two directions of an edge differ (``per="edge"``).
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
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    arguments.choice("per", per, ("row", "edge"))
    arguments.choice("weight_type", weight_type, WEIGHT_TYPES)
    if per == "row" and graph.edge_rows is None:
        raise InputError(
            f"the graph does not know its rows: build it with {option_text('edge_ids', True)}, or give one weight per "
            "stored edge, in the order of graph.targets, with per='edge'"
        )
    require_edge_labels("weight", weight, graph.report.row_labels if per == "row" else "")
    try:
        weight = as_column("weight", weight)
    except EdgeListError as error:
        raise _about_closed(error) from None
    if get_device(weight) != graph.device:
        raise DeviceError(
            f"the graph is on {graph.device} and the weights are on "
            f"{get_device(weight)}; move one of them"
        )
    count, what = (
        (graph.report.rows, "rows of the edge list")
        if per == "row"
        else (graph.n_edges, "stored edges")
    )
    if weight.size != count:
        raise EdgeListError(
            (
                f"weight holds {weight.size} weights for {count} {what}; "
                f"give one per {per} (per={per!r})"
            ),
            column="weight",
        )
    source = str(weight.dtype)
    try:
        weights, rows, zeros, integers, loops = (_of_rows if per == "row" else _of_edges)(
            graph, weight, weight_type
        )
    except EdgeListError as error:
        raise _about_closed(error) from None
    if graph.closed is not None:
        weights, rows, loops = _with_ties(graph, weights, rows, loops)
    made = replace(
        graph,
        weights=weights,
        edge_rows=rows,
        integer_weights=integers,
        float_distances=integers and weight_type != "auto",
        negative_loops=loops,
        may_pull=False,
        report=replace(graph.report, weight_source=source, weight_column="", negative_zeros=zeros),
    )
    made.derived.take_topology(graph)
    weighted: Graph = made.derived.with_reverse() if graph.may_pull else made
    return weighted


def _with_ties(
    graph: Graph, weights: Array, rows: Any, loops: dict[int, Any]
) -> tuple[Array, Any, dict[int, Any]]:
    """Return weights and rows in which the edges from closed vertices to themselves are as they
    were, and the loops of other vertices.
    """
    closed: Any = graph.closed
    ties = find_ties(closed, graph.offsets, graph.targets)
    weights[ties] = 0
    if rows is not None:
        rows[ties] = NO_ROW
    own = set(closed[0].tolist())
    return weights, rows, {vertex: value for vertex, value in loops.items() if vertex not in own}


def _about_closed(error: EdgeListError) -> EdgeListError:
    """Return the error for weights of which some are no numbers, with what to do here, where no row
    can be dropped.
    """
    said, drops, _ = error.message.rpartition("drop ")
    if not drops:
        return error
    return EdgeListError(
        f"{said}a weight cannot close an edge; to close one, build the graph without its row, as "
        f"{option_text('where')} does",
        row=error.row,
        column="weight",
    )


def _of_rows(
    graph: Graph, weight: Array, weight_type: str
) -> tuple[Array, Array, int, bool, dict[int, Any]]:
    """Return weights of the stored edges, their rows, and facts about the weights, from one weight
    per row.
    """
    rows: Any = graph.edge_rows
    edges = graph.edges_of_rows
    selection = RowSelection(total=weight.size)
    if edges is None:
        weight, zeros, integers = checked_weights(weight, weight_type)
        return weight[rows], rows, zeros, integers, {}
    xp = namespace(weight)
    if graph.report.filtered_rows:
        kept = xp.flatnonzero(edges[0] != no_edge(graph.n_vertices))
        weight = weight[kept]
        edges = edges[:, kept]
        selection = selection.take(to_host(kept))
    weight, zeros, integers = checked_weights(weight, weight_type, selection)
    at = positions(lambda edge, value: is_negative(value) & (edge < 0), edges[0], weight)
    loops = smallest_weights(-1 - edges[0][at], weight[at], integers)
    backend: EdgeRowsBackend = edge_rows_on_gpu if graph.device == "cuda" else edge_rows_on_cpu
    weights = backend.lowest_weights(list(edges), weight, graph.n_edges)
    edge_rows = backend.rows_that_count(list(edges), weight, weights, graph.n_edges, rows.dtype)
    if selection.kept is not None:
        edge_rows = xp.asarray(np.append(selection.kept, -1).astype(rows.dtype))[edge_rows]
    return weights, edge_rows, zeros, integers, loops


def _of_edges(
    graph: Graph, weight: Array, weight_type: str
) -> tuple[Array, Any, int, bool, dict[int, Any]]:
    """As ``_of_rows``, from one weight per stored edge."""
    if graph.negative_loops:
        raise InputError(
            f"the graph has {len(graph.negative_loops)} vertices with a self-loop of negative weight, and self-loops are no "
            f"stored edges; give one weight per row (per='row', of a graph with {option_text('edge_ids', True)})"
        )
    weights, zeros, integers = checked_weights(weight, weight_type)
    if weights is weight:
        weights = weight.copy()  # a graph shares no memory with what its maker may change
    if not graph.directed:
        _refuse_two_weights(graph, weights)
    return weights, graph.edge_rows, zeros, integers, {}


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
