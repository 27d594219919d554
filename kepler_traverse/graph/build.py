"""Build a Graph from edge arrays: renumber, check weights, and handle parallel edges, self-loops
and direction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import (
    MAX_INTEGER,
    Array,
    extent,
    float_that_holds,
    get_device,
    index_dtype,
    is_negative,
    iter_slices,
    namespace,
    pyarrow,
    to_host,
)
from ..cpu import compile_clock, csr_build
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cpu.components import find_component
from ..cuda import csr_build as csr_on_gpu
from ..cuda import edge_rows as edge_rows_on_gpu
from ..cuda import edge_weights
from ..errors import DeviceError, EdgeListError, InputError, option_text
from ..formats.selection import BOTH_WAYS, DST_TO_SRC, RowSelection
from ..protocols import CsrBackend, EdgeRowsBackend
from ..runtime import LOG
from ..runtime.scratch import Scratch
from . import BuildReport, Graph
from .closed import Split, find_ties, split_numbers
from .costs import open_costs
from .csr import NO_ROW, no_edge
from .ids import NODES, VertexIds, in_one_integer_type

WEIGHT_TYPES = ("auto", "float32", "float64")
ENDS = ("src", "dst")


def graph_from_arrays(
    src: Array,
    dst: Array,
    weight: Array | None = None,
    *,
    reverse_weight: Array | None = None,
    vertices: Array | None = None,
    scratch: Scratch | None = None,
    **rules: Any,
) -> Graph:
    """Build a graph from columns of edges whose ids are integers; ``graph_from_edges`` takes all
    others.

    The columns are arrays of shape (rows,), all on one device, on which the graph is built.
    ``reverse_weight`` has the weights from dst to src. ``vertices`` are the ids of additional
    vertices, which may have no edge. With ``scratch`` the graph is built in files. ``rules`` are
    keyword arguments of ``graph_from_numbers``, and errors are as of ``graph_from_edges``.
    """
    if vertices is not None:
        vertices = arguments.as_array("vertices", vertices)

    weights: dict[str, Any] = {"weight": weight, "reverse_weight": reverse_weight}
    columns = {"src": src, "dst": dst, **weights, "vertices": vertices}
    devices = {name: get_device(column) for name, column in columns.items() if column is not None}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {device}" for name, device in devices.items())
        raise DeviceError(f"all columns must be on one device: {where}")

    # Ids become vertex numbers. What holds them before is released as soon as it is converted.
    del columns
    with_ids = {"src": src, "dst": dst}
    if vertices is not None:
        with_ids["vertices"] = vertices
    # NumPy's promotion would make floats of int64 and uint64. EdgeListError for other types than
    # integers.
    src, dst, *additional = in_one_integer_type(with_ids)
    del with_ids
    backend = _choose_backend(src, scratch)
    # int32 if it numbers so many vertices, else int64
    dtype = index_dtype(_max_vertices([src, dst, *additional]))
    # ``ids`` are the distinct ids, ascending, and the columns become positions in them. Additional
    # vertices have done their part by being among the ids.
    ids, (src, dst, *_) = backend.renumber([src, dst, *additional], dtype)
    return graph_from_numbers(
        src, dst, **weights, ids=ids, all_are_ends=vertices is None, scratch=scratch, **rules
    )


def _choose_backend(array: Array, scratch: Scratch | None) -> CsrBackend:
    """Return the functions that build a CSR on the device of an array, in files if there is scratch
    space, which is only on the CPU.
    """
    if get_device(array) == "cuda":
        return csr_on_gpu
    in_files: CsrBackend = csr_build if scratch is None else csr_build.in_files(scratch)
    return in_files


def graph_from_numbers(
    src: Array,
    dst: Array,
    weight: Any = None,
    *,
    ids: Any,
    reverse_weight: Any = None,
    directed: bool = True,
    weight_type: str = "auto",
    all_are_ends: bool = False,
    edge_ids: bool = False,
    only_vertices: Any = None,
    closed: Any = None,
    largest_component: bool = False,
    selection: RowSelection | None = None,
    scratch: Scratch | None = None,
) -> Graph:
    """Build a graph from edges whose ends are positions in ``ids`` (ascending ids, one per vertex).

    ``src``, ``dst`` and the weights have shape (rows,); ``selection`` says which rows of the edge
    list they are, and in which direction each is an edge. None: they are all rows, in the direction
    of the graph. ``all_are_ends`` states that each vertex is an end of some edge, so that without
    self-loops none can be isolated. With ``scratch`` the graph is built in files. The other
    arguments, and errors, are as of ``graph_from_edges``.
    """
    backend = _choose_backend(src, scratch)
    if selection is None:
        selection = RowSelection(total=src.size)
    # The option that leaves vertices out, or "". Errors for an unknown id of ``closed`` name it.
    limited_by = _limiting_option(only_vertices, largest_component)

    # The largest component is found in a graph of all edges, whose vertices are then chosen.
    if largest_component:
        # On the CPU, where components are found. Closed vertices are split only in the graph of the
        # component, below.
        whole = graph_from_numbers(
            src,
            dst,
            weight,
            ids=ids,
            reverse_weight=reverse_weight,
            directed=directed,
            weight_type=weight_type,
            only_vertices=only_vertices,
            selection=selection,
        ).to("cpu")
        # ``find_component`` returns the vertex numbers of the largest strong component.
        if whole.n_vertices:
            only_vertices = whole.ids_at(find_component(whole.offsets, whole.targets))

    # Rows are left out: those of other vertices, and those of which no direction is open.
    input_rows = _InputRows(src, dst, weight, reverse_weight, ids, selection, all_are_ends)
    if only_vertices is not None:
        input_rows = input_rows.between(only_vertices)
    # Both facts are of the rows before closed ones are left out: these are not filtered, and two
    # weights become one type.
    weight_source = "" if weight is None else str(weight.dtype)
    filtered_rows = selection.total - input_rows.src.size
    # Only of two weights per row, one that is below 0, NaN or infinite closes its direction.
    input_rows, closed_directions = input_rows.without_closed()
    src, dst, weight, reverse_weight, ids, selection, all_are_ends = input_rows

    # Weights are checked. With two weights per row, ``weight`` has those of both directions now,
    # the second half after the first, so that they become one type.
    negative_zeros = 0
    negative_loops = {}
    are_integers = False
    if weight is not None:
        places = selection if reverse_weight is None else selection.twice()
        weight, negative_zeros, are_integers = checked_weights(weight, weight_type, places, scratch)
    if reverse_weight is not None:
        reverse_weight = weight[src.size :]
        weight = weight[: src.size]
    elif weight is not None:  # with two weights per row, one below 0 has closed its direction
        # Self-loops are not stored, but a search that reaches a negative one has no result.
        negative_loops = _find_negative_loops(src, dst, weight, are_integers)

    # Closed vertices get a second number. ``ids`` and ``negative_loops`` go by the final numbers from
    # here on; src and dst get them in ``rows.edges()``.
    split, ids, negative_loops = _split_closed(ids, closed, weight, negative_loops, limited_by)
    if split is not None and not directed:
        # Both directions of an edge of a closed vertex join different numbers.
        selection = replace(selection, directions=np.full(src.size, BOTH_WAYS, np.int8))
        directed = True

    # Rows become edges in the directions that they have, and are sorted and merged.
    # ``two_way_rows``: positions of the rows that are an edge in both directions. Only these need a
    # second weight.
    two_way_rows = None
    if selection.directions is not None:
        src, dst, two_way_rows = _orient_rows(src, dst, selection.directions)
        if reverse_weight is not None:
            reverse_weight = reverse_weight[two_way_rows]
    rows = _Rows(src, dst, weight, two_way_rows, reverse_weight, selection, split)
    # ``assemble`` drops self-loops, and keeps the smallest weight of parallel edges. With the last
    # argument, each edge is also stored from dst to src.
    edges = _Edges(*backend.assemble(*rows.edges(), len(ids), not directed))
    edge_rows = edges_of_rows = None
    if edge_ids:
        edge_rows, edges_of_rows = _relate_rows(rows, edges, len(ids), directed)

    # Vertices without an edge, which are counted only if there may be one.
    isolated_vertices = 0
    if edges.self_loops or not all_are_ends:
        isolated_vertices = backend.count_isolated(edges.offsets, edges.targets, directed)
        # A closed vertex has an edge to itself, so that the backend does not count it.
        isolated_vertices += rows.count_closed_without_edges()

    graph = Graph(
        offsets=edges.offsets,
        targets=edges.targets,
        weights=edges.weights,
        ids=ids,
        directed=directed,
        report=BuildReport(
            rows=selection.total,
            filtered_rows=filtered_rows,
            self_loops=edges.self_loops,
            parallel_edges=edges.parallel,
            negative_zeros=negative_zeros,
            isolated_vertices=isolated_vertices,
            weight_source=weight_source,
            # the argument; readers of tables and files put the column's own name in its place
            reverse_weight_column="" if reverse_weight is None else "reverse_weight",
            closed_directions=closed_directions,
            limited_by=limited_by,
        ),
        integer_weights=are_integers,
        # with integer weights, distances are floats only if a float type was asked for
        float_distances=are_integers and weight_type != "auto",
        negative_loops=negative_loops,
        edge_rows=edge_rows,
        edges_of_rows=edges_of_rows,
        closed=None if split is None else split.numbers,
    )
    if LOG.isEnabledFor(logging.DEBUG):
        compile_clock.listen()  # measures what Numba compiles in searches that follow
    LOG.info("built %r", graph)
    return graph


class _InputRows(NamedTuple):
    """The rows that are given to ``graph_from_numbers``, whose arguments the fields are."""

    src: Array  # integers (rows,): positions in ``ids``, as ``dst``
    dst: Array
    # (rows,), or None without weights; with two weights per row (2 rows,) after ``without_closed``
    weight: Any
    reverse_weight: Any  # (rows,): weights from dst to src, or None
    ids: Any  # ascending, one per vertex: integers, or strings of pyarrow
    selection: RowSelection  # which rows of the edge list these are
    all_are_ends: bool  # True: each vertex is known to be an end of a row

    def between(self, vertices: Any) -> _InputRows:
        """Return the rows of which both ends are among some vertices, given by their ids.

        ``ids`` of the result are those of these vertices alone, and its ends are positions in them.
        """
        rows, ids, numbers = _find_rows_between(self.src, self.dst, self.ids, vertices)

        def take(values: Any) -> Any:
            if values is None:
                return None
            return values[rows]

        return _InputRows(
            src=numbers[self.src[rows]],
            dst=numbers[self.dst[rows]],
            weight=take(self.weight),
            reverse_weight=take(self.reverse_weight),
            ids=ids,
            selection=self.selection.take(to_host(rows)),
            all_are_ends=False,  # a vertex may have lost its edges to others
        )

    def without_closed(self) -> tuple[_InputRows, int]:
        """Return the rows of which a direction is open, and the number of closed directions.

        Rows with one weight are all open here. With two weights per row, ``weight`` of the result
        has shape (2 rows,): the weights of the edges of all rows, and after them those of the edges
        back. Its ``reverse_weight`` is still that of all rows, and only says that there are two
        weights.
        """
        if self.reverse_weight is None:
            return self, 0
        # The rows that are open in some direction, with their directions and weights.
        costs = open_costs(self.weight, self.reverse_weight)
        selection = self.selection.take(to_host(costs.rows))
        open_rows = self._replace(
            src=self.src[costs.rows],
            dst=self.dst[costs.rows],
            weight=costs.weights,
            selection=replace(selection, directions=costs.directions),
            all_are_ends=False,
        )
        return open_rows, costs.n_closed


class _Rows(NamedTuple):
    """The rows that a graph is built of, as arrays of shape (rows,).

    Each row has an edge "there", from its src to its dst. It may also have an edge "back", from its
    dst to its src. Where a row of the edge list is open from dst to src alone, src and dst were
    exchanged, so that its one edge is the edge there.
    """

    src: Array  # integers: vertex numbers before closed vertices are split, as ``dst``
    dst: Array
    weight: Array | None  # checked, of the edges there; None without weights
    # int64 (n_back,): positions of the rows that are also an edge back, ascending; None: no row has
    # a direction of its own
    back: Array | None
    # of the edges back, one per element of ``back``; None: they have the weights of their rows
    reverse_weight: Array | None
    selection: RowSelection  # which rows of the edge list these are
    split: Split | None  # the numbers once closed vertices are split; None: no vertex is closed

    def ends_there(self) -> tuple[Array, Array]:
        """Return the ends of the edge of each row: src and dst, by their final numbers."""
        if self.split is None:
            return self.src, self.dst
        return self.split.map_ends(self.src, self.dst)

    def ends_back(self) -> tuple[Array, Array]:
        """Return the ends of the edges back, in the order of ``back``: two arrays of shape
        (n_back,), with src and dst of each of these edges, by their final numbers.
        """
        src = self.dst[self.back]
        dst = self.src[self.back]
        if self.split is None:
            return src, dst
        return self.split.map_ends(src, dst)

    def edges(self) -> tuple[Array, Array, Array | None]:
        """Return src, dst and weights of all edges; None in place of the weights if rows have none.

        First comes the edge of each row, then the edges back, and then those from closed vertices
        to themselves.
        """
        xp = namespace(self.src)
        parts: list[Any] = [(*self.ends_there(), self.weight)]
        if self.back is not None:
            weight = self.reverse_weight
            if weight is None and self.weight is not None:
                weight = self.weight[self.back]
            parts.append((*self.ends_back(), weight))
        if self.split is not None:
            # The edge from a closed vertex to itself costs nothing. There are weights, as graphs
            # without them have no closed vertices.
            # ``first`` and ``last``: of each closed vertex the two numbers that this edge joins.
            first, last = map(xp.asarray, self.split.numbers)
            parts.append((first, last, xp.zeros_like(self.weight, shape=first.size)))
        if len(parts) == 1:
            return parts[0]
        src, dst, weights = zip(*parts, strict=True)
        kind = src[0].dtype  # may be int32, where the int64 of ``split.numbers`` would widen all
        return (
            xp.concatenate(src).astype(kind, copy=False),
            xp.concatenate(dst).astype(kind, copy=False),
            None if self.weight is None else xp.concatenate(weights),
        )

    def both_weights(self) -> list[Array]:
        """Return two arrays of shape (rows,): the weight of each row, and that of its edge back,
        which is 0 where there is no such edge. ``reverse_weight`` must not be None.
        """
        weights: Any = self.weight
        weights_back = namespace(weights).zeros_like(weights)
        weights_back[self.back] = self.reverse_weight
        return [weights, weights_back]

    def count_closed_without_edges(self) -> int:
        """Return the number of closed vertices that no other vertex is joined to.

        The backend does not count them, since each has the edge to itself.
        """
        if self.split is None:
            return 0
        xp = namespace(self.src)
        # By the numbers that vertices had first: whether a row joins each to another vertex.
        is_end = xp.zeros(self.split.first.size, bool)
        is_no_loop = self.src != self.dst
        is_end[self.src[is_no_loop]] = True
        is_end[self.dst[is_no_loop]] = True
        first_numbers, _ = self.split.numbers
        closed = self.split.names[first_numbers]  # as vertices were numbered first
        return int((~to_host(is_end)[closed]).sum())


class _Edges(NamedTuple):
    """What ``CsrBackend.assemble`` returns: a CSR, and how many edges were left out."""

    offsets: Array  # int64 (n_vertices + 1,)
    targets: Array  # (n_edges,), ascending within an adjacency list
    weights: Array | None  # (n_edges,): of parallel edges the smallest
    self_loops: int  # rows that were dropped, as both ends are one vertex
    parallel: int  # edges that were dropped, as another edge joins the same vertices


def _find_negative_loops(
    src: Array, dst: Array, weights: Array, are_integers: bool
) -> dict[int, Any]:
    """Map each vertex with self-loops of negative weight to the smallest of these weights; ``{}``
    if there are no such self-loops.

    ``src``, ``dst`` and ``weights`` have an element per row. ``are_integers``: the weights were
    given as integers, so that the result has int and not float.
    """
    on_gpu = get_device(src) == "cuda"
    # One kernel tells whether there is any, which is rare: the steps below need more memory.
    if on_gpu and not edge_weights.count_negative_loops(src, dst, weights):
        return {}

    def is_negative_loop(u: Array, v: Array, w: Array) -> Array:
        return is_negative(w) & (u == v)

    places = positions_where(is_negative_loop, src, dst, weights)
    return smallest_weights(src[places], weights[places], are_integers)


def _relate_rows(
    rows: _Rows, edges: _Edges, n_vertices: int, directed: bool
) -> tuple[Array, Array | None]:
    """Return ``Graph.edge_rows`` and ``Graph.edges_of_rows``: the row of each stored edge, of shape
    (n_edges,), and the stored edges of each row, of shape (1 or 2, rows of the edge list).

    The second is None where the first says the same: each row is one stored edge, or both
    directions of one. ``edges`` were made from ``rows``, ``n_vertices`` is the number of final
    vertex numbers, and with ``directed`` false each row is an edge in both directions.
    """
    xp = namespace(rows.src)
    # Of each row its number in the edge list; None: no row was left out.
    row_numbers = rows.selection.row_numbers
    backend: EdgeRowsBackend = edge_rows_on_cpu
    if get_device(rows.src) == "cuda":
        backend = edge_rows_on_gpu

    # Which edge each row became, and of the rows of an edge the one that counts: the first that has
    # the weight of the stored edge.
    row_edges = _find_edges_of_rows(rows, edges, n_vertices, directed, backend)
    index = index_dtype(rows.selection.total)
    if rows.reverse_weight is None:
        edge_rows = backend.rows_that_count(
            row_edges, rows.weight, edges.weights, edges.targets.size, index
        )
    else:
        edge_rows = rows_of_two_costs(row_edges, rows.both_weights(), edges.weights, index, backend)

    # Rows are numbered as they were given, with those that were left out. The appended -1 is what
    # NO_ROW, which is -1, too, takes as the last element.
    if row_numbers is not None:
        edge_rows = xp.asarray(np.append(row_numbers, -1).astype(edge_rows.dtype))[edge_rows]
    # ``find_ties``: positions of the edges from closed vertices to themselves, which no row is.
    if rows.split is not None:
        edge_rows[find_ties(rows.split.numbers, edges.offsets, edges.targets)] = NO_ROW

    # The edges of all rows, those that were left out included.
    if rows.reverse_weight is not None:
        # ``_Rows`` has exchanged src and dst of some rows; callers go by the columns as given.
        row_edges = _order_by_direction(row_edges, rows, n_vertices)
    elif not edges.self_loops and not edges.parallel and row_numbers is None:
        return edge_rows, None
    edges_of_rows = xp.stack(row_edges)
    if row_numbers is None:
        return edge_rows, edges_of_rows
    shape = len(row_edges), rows.selection.total
    edges_of_all_rows = xp.full(shape, no_edge(n_vertices), edges_of_rows.dtype)
    edges_of_all_rows[:, xp.asarray(row_numbers)] = edges_of_rows
    return edge_rows, edges_of_all_rows


def rows_of_two_costs(
    row_edges: list[Array], weights: list[Array], stored: Array, index: Any, backend: Any
) -> Array:
    """Return the row of each stored edge, of shape (n_edges,), where rows have one weight per
    direction: the first row that has the weight of the edge. It is -1 for an edge without a row.

    ``row_edges`` and ``weights`` have two arrays of shape (rows,): of the edges from src to dst
    (there), and of those from dst to src (back). A value of ``row_edges`` is the position of the
    stored edge that the row became in that direction, or below 0 if it became none: it is a
    self-loop, or not open in that direction. ``stored`` has the weight of each stored edge.
    ``index`` is the type of the result, and ``backend`` an ``EdgeRowsBackend`` of the device.
    """
    xp = namespace(stored)
    # a row's two edges side by side, so that the first of equal weight is of the smallest row
    both_edges = xp.stack(row_edges, axis=1).ravel()
    both_weights = xp.stack(weights, axis=1).ravel()
    # For each stored edge the first place in ``both_edges`` that has its weight: the edge there of
    # row r is at place 2 r, and its edge back at 2 r + 1. A place of -1 stays -1 by the division.
    places = backend.rows_that_count(
        [both_edges], both_weights, stored, stored.size, np.dtype(np.int64)
    )
    return (places // len(row_edges)).astype(index)


def _order_by_direction(row_edges: list[Array], rows: _Rows, n_vertices: int) -> list[Array]:
    """Return two integer arrays of shape (rows,): the stored edge of each row from src to dst, and
    its stored edge from dst to src. src and dst are the columns of the edge list.

    ``row_edges`` has two arrays of these values as well, but by src and dst of ``_Rows``, which
    exchanges both in rows that are open from dst to src alone. The only edge of such a row is in
    the first array of ``row_edges``, and goes to the second array of the result; in the first the
    row then has ``no_edge``.
    """
    xp = namespace(rows.src)
    there, back = row_edges
    is_reversed = xp.asarray(rows.selection.directions == DST_TO_SRC)
    back = xp.where(is_reversed, there, back)
    return [xp.where(is_reversed, no_edge(n_vertices), there).astype(back.dtype), back]


def _find_edges_of_rows(
    rows: _Rows, edges: _Edges, n_vertices: int, directed: bool, backend: EdgeRowsBackend
) -> list[Array]:
    """Return the stored edge of each row from its src to its dst (``there``) and, where rows have
    edges in both directions, its stored edge from dst to src (``back``): a list of one or two
    integer arrays of shape (rows,).

    A value is a position in ``edges.targets``; ``-1 - u`` for a self-loop of vertex u; or
    ``no_edge``, if the row has no edge back. ``backend`` is that of the device.
    """
    xp = namespace(rows.src)
    # One more, since ``no_edge`` is -1 - n_vertices.
    index = index_dtype(max(edges.targets.size, n_vertices) + 1)

    def find(src: Array, dst: Array) -> Array:
        kind = edges.targets.dtype  # which the backend expects of both ends
        src = src.astype(kind, copy=False)
        dst = dst.astype(kind, copy=False)
        return backend.find_edges(edges.offsets, edges.targets, src, dst, index)

    there = find(*rows.ends_there())
    # In an undirected graph no vertex is split: closed vertices make a graph directed.
    if not directed:
        return [there, find(rows.dst, rows.src)]
    if rows.back is None:
        return [there]
    back = xp.full(rows.src.size, no_edge(n_vertices), index)
    back[rows.back] = find(*rows.ends_back())
    return [there, back]


def of_nodes(graph: Graph) -> Graph:
    """Return a graph whose errors for unknown ids propose no options of building, since it was made
    from nodes of another library by a function without such options.
    """
    return replace(graph, report=replace(graph.report, limited_by=NODES))


def _limiting_option(only_vertices: Any, largest_component: bool) -> str:
    """Return the option that leaves vertices out, as a ``BuildReport`` has it; ``""`` if none does.
    Of both, the largest component comes last.
    """
    if largest_component:
        return "largest_component"
    if only_vertices is not None:
        return "only_vertices"
    return ""


def _split_closed(
    ids: Any, closed: Any, weight: Any, negative_loops: dict[int, Any], limited_by: str
) -> tuple[Split | None, Any, dict[int, Any]]:
    """Return the numbering that splits closed vertices, the id of each final number, and the
    negative loops by final numbers. A split is the numbering in which each closed vertex has two
    numbers: where paths begin, and where they end. Where no vertex is closed, the numbering is
    None.

    ``ids`` and ``negative_loops`` go by the numbers before the split: the id of each vertex, and the
    weights of negative loops. Loops of closed vertices are left out of the result: they are on no
    path. ``closed`` are ids, or None. ``limited_by`` is for errors, as a ``BuildReport`` has it.

    Raises InputError (the graph has no weights) or UnknownVertexError (one is no vertex).
    """
    if closed is None:
        return None, ids, negative_loops
    is_closed = _mark_chosen(ids, closed, f"{option_text('closed')} id", limited_by)
    if not is_closed.any():
        return None, ids, negative_loops
    if weight is None:
        raise InputError(
            f"{option_text('closed')} needs weights, and the edges have none; give each the weight 1"
        )
    # Each closed vertex gets two numbers, side by side; all stay in the order of ids.
    split = split_numbers(is_closed, namespace(weight))
    first = to_host(split.first)  # of each vertex its final number, where paths begin
    negative_loops = {
        int(first[vertex]): value
        for vertex, value in negative_loops.items()
        if not is_closed[vertex]
    }
    # ``split.names`` has, for each final number, the number of its vertex before the split, so that
    # both numbers of a closed vertex get its id. The ids are integers; else strings of pyarrow,
    # which are indexed otherwise.
    if hasattr(ids, "dtype"):
        return split, ids[namespace(ids).asarray(split.names)], negative_loops
    return split, ids.take(pyarrow.array(split.names)), negative_loops


def _mark_chosen(ids: Any, chosen: Any, role: str, limited_by: str = "") -> np.ndarray:
    """Return a bool per vertex: whether its id, of the ascending ``ids``, is among those chosen.

    ``role`` is what errors call a chosen id, and ``limited_by`` is the option that has limited the
    ids, for errors. UnknownVertexError if a chosen id is none of ``ids``.
    """
    flags = np.zeros(len(ids), bool)
    flags[VertexIds(ids, limited_by=limited_by).to_numbers(chosen, role)] = True
    return flags


def checked_weights(
    weight: Any,
    weight_type: str,
    selection: RowSelection | None = None,
    scratch: Scratch | None = None,
) -> tuple[Any, int, bool]:
    """Check weights of shape (rows,) and convert them to the type that the graph has them in.

    ``weight_type`` is as for ``graph_from_edges``, ``selection`` says which rows of the edge list
    these are, for errors, and with ``scratch`` the result is in a file. Return the weights, how
    many were -0.0, and whether they were given as integers. EdgeListError for what is NaN,
    infinite, no number, or beyond what the type holds exactly.
    """
    are_integers = weight.dtype.kind in "iu"
    n_negative_zeros = 0
    try:
        if are_integers:
            converted = _convert_integers(weight, weight_type, scratch)
        else:
            converted, n_negative_zeros = _convert_floats(weight, weight_type, scratch)
    except EdgeListError as error:
        if selection is None or error.row is None:
            raise
        # The error counts the rows that are left; the user's edge list has others between them.
        row = selection.row(error.row)
        message = error.message.replace(f"weight of row {error.row} ", f"weight of row {row} ", 1)
        raise EdgeListError(message, row, error.column) from None
    return converted, n_negative_zeros, are_integers


def _find_rows_between(
    src: Array, dst: Array, ids: Any, only_vertices: Any
) -> tuple[Array, Any, Array]:
    """Return the positions of the rows of which both ends are among some vertices, int64 ascending;
    the ids of these vertices; and an array with the new number of each vertex by its old one.

    ``only_vertices`` are the ids of the vertices that are kept. New numbers of others have no
    meaning. UnknownVertexError if one is none of ``ids``, InputError if there is none.
    """
    xp = namespace(src)
    chosen = _mark_chosen(ids, only_vertices, f"{option_text('only_vertices')} id")
    if not chosen.any():
        raise InputError(f"{option_text('only_vertices')} is empty; name the vertices of the graph")
    # New numbers count the chosen vertices, so that they stay in the order of ids.
    numbers = xp.asarray((np.cumsum(chosen) - 1).astype(src.dtype))
    is_chosen = xp.asarray(chosen)

    def are_both_chosen(u: Array, v: Array) -> Array:
        return is_chosen[u] & is_chosen[v]

    rows = positions_where(are_both_chosen, src, dst)
    if hasattr(ids, "dtype"):  # an array of integers; else strings of pyarrow
        ids = ids[is_chosen]
    else:
        ids = ids.take(pyarrow.array(np.flatnonzero(chosen)))
    return rows, ids, numbers


def positions_where(condition: Callable[..., Array], *arrays: Any) -> Any:
    """Return the int64 positions, ascending, at which a condition holds for the elements of arrays
    of one size.

    ``condition`` takes a slice of each array and returns bools, so that no temporary array is as
    long as they are.
    """
    xp = namespace(arrays[0])
    parts = [xp.zeros(0, np.int64)]
    # ``iter_slices`` yields the position at which each slice begins, here ``first``, and the slice.
    for (first, values), *others in zip(*(iter_slices(array) for array in arrays), strict=True):
        parts.append(xp.flatnonzero(condition(values, *(other for _, other in others))) + first)
    return xp.concatenate(parts)


def _orient_rows(src: Array, dst: Array, directions: np.ndarray) -> tuple[Array, Array, Array]:
    """Return the ends of each row in the direction of its edge, and the int64 positions of the rows
    that are also an edge back, which no self-loop is.

    ``directions`` is an int8 array of shape (rows,) with ``SRC_TO_DST``, ``BOTH_WAYS`` or
    ``DST_TO_SRC`` per row. The ends of rows with ``DST_TO_SRC`` are exchanged.
    """
    xp = namespace(src)
    directions = xp.asarray(directions)
    is_reversed = directions == DST_TO_SRC
    # Not in place: the arrays may be the caller's.
    src, dst = xp.where(is_reversed, dst, src), xp.where(is_reversed, src, dst)

    def has_edge_back(direction: Array, u: Array, v: Array) -> Array:
        return (direction == BOTH_WAYS) & (u != v)

    return src, dst, positions_where(has_edge_back, directions, src, dst)


def _max_vertices(columns: list[Array]) -> int:
    """Return an upper bound on the number of distinct ids in some columns of integers.

    It chooses the type of vertex numbers, so a bound that int32 holds need not be lower. Of more
    ids than that, the length of their range may be a smaller bound.
    """
    count = sum(int(column.size) for column in columns)
    if index_dtype(count) == np.int32:
        return count
    occupied = [column for column in columns if column.size]
    lowest, highest = zip(*(extent(column) for column in occupied), strict=True)
    return min(count, int(max(highest) - min(lowest) + 1))


def _count_where(condition: Callable[..., Array], *arrays: Any) -> tuple[int, int]:
    """Return at how many positions a condition holds for the elements of arrays of one size, and
    the first of them, which is 0 if there is none.

    ``condition`` takes a slice of each, so that no temporary array is as long as they are.
    """
    count = 0
    first_hit = 0
    # ``iter_slices`` yields the position at which each slice begins, and the slice.
    for (begin, values), *others in zip(*(iter_slices(array) for array in arrays), strict=True):
        is_hit = condition(values, *(other for _, other in others))
        n_hits = int(namespace(values).count_nonzero(is_hit))
        if n_hits and not count:
            first_hit = begin + int(is_hit.argmax())
        count += n_hits
    return count, first_hit


def _convert_integers(weight: Any, weight_type: str, scratch: Scratch | None) -> Any:
    """Return integer weights in the narrowest of float32, float64 and int64 that represents each
    exactly, or in the requested type if that is wider; in a file if there is scratch space.

    EdgeListError if distances of such weights cannot be exact in the type of the result.
    """
    xp = namespace(weight)
    low, high = extent(weight) if weight.size else (0, 0)
    largest = max(high, -low)  # absolute value
    held_by = float_that_holds(low, high)  # None if no float type holds all

    # An error says which bound the largest weight passes. MAX_INTEGER is 2^63 - 1, which as a
    # distance means "unreached", so no weight may be as large.
    beyond = "2^63 - 2, the largest distance"
    if weight_type != "auto":
        beyond = "2^53, up to which float64 holds integers"
    elif high > MAX_INTEGER:
        beyond = "int64, in which distances are summed"
    if largest >= MAX_INTEGER or (held_by is None and weight_type != "auto"):
        # the row of a weight with the largest absolute value
        row = int(xp.argmax(weight) if high > -low else xp.argmin(weight))
        raise EdgeListError(
            f"integer weight {int(weight[row])} is beyond {beyond}; scale the weights down",
            row=row,
            column="weight",
        )

    kind = held_by or np.dtype(np.int64)
    # The wider type of the two. Where a type is requested, ``held_by`` is not None here.
    if weight_type != "auto":
        kind = max(kind, np.dtype(weight_type), key=lambda dtype: dtype.itemsize)
    if get_device(weight) == "cuda":
        return edge_weights.from_integers(weight, kind)
    return _cast(weight, kind, scratch)


def _cast(values: np.ndarray, kind: np.dtype, scratch: Scratch | None) -> np.ndarray:
    """Return a copy of values in host memory in the type ``kind``, in a file if there is scratch
    space.
    """
    # Slices are given back as they are: storing them in the result converts them.
    return csr_build.filled(lambda part: part, values, kind, scratch)


def _convert_floats(weight: Any, weight_type: str, scratch: Scratch | None) -> tuple[Any, int]:
    """Check weights that are no integers, and convert them to float32 or float64, the type of
    distances; -0.0 becomes 0.0.

    Return the weights, in a file if there is scratch space, and how many were -0.0. EdgeListError
    for weights that are no numbers, NaN, infinite in that type, or 0 in that type alone.
    """
    xp = namespace(weight)
    if weight.dtype.kind != "f":
        raise EdgeListError(f"weights must be numbers, not {weight.dtype}", column="weight")
    if weight_type == "auto":
        kind = np.result_type(weight.dtype, np.float32)  # float32 for float16, else as it is
    else:
        kind = np.dtype(weight_type)
    if kind.itemsize > 8:
        raise EdgeListError(
            f"weights of type {weight.dtype} are not supported; give float64", column="weight"
        )

    # What overflows becomes infinite, and is refused below with its row.
    with np.errstate(over="ignore"):
        if get_device(weight) == "cuda" and kind.itemsize < weight.itemsize:
            # CuPy's cast would flush subnormal results to 0
            cast = xp.asarray(to_host(weight).astype(kind))
        elif kind == weight.dtype or get_device(weight) == "cuda":
            cast = weight.astype(kind, copy=False)
        else:
            cast = _cast(weight, kind, scratch)

    # Weights must be finite in that type, too, and not become 0.
    if get_device(cast) == "cuda":
        # how many are not finite, the position of the first of these, and how many are -0.0
        n_wrong, row, negative_zeros = edge_weights.check(cast)
    else:
        n_wrong, row = _count_where(lambda part: ~np.isfinite(part), cast)
        bits = cast.view(f"i{cast.itemsize}")
        bits_of_negative_zero = np.iinfo(bits.dtype).min  # the sign alone is set
        negative_zeros, _ = _count_where(lambda part: part == bits_of_negative_zero, bits)
    if n_wrong:
        if bool(xp.isnan(weight[row])):
            what = "NaN"
        else:
            what = f"{float(weight[row]):g}, infinite as {kind}"
        advice = "drop or correct the rows"
        if bool(xp.isfinite(weight[row])):  # only a narrower type is too small
            wider = option_text("weight_type", "float64")
            advice = f"scale the weights down, or take {wider}"
        raise EdgeListError(
            (
                f"weight of row {row} is {what} ({n_wrong} such rows): every weight "
                f"must be finite; {advice}"
            ),
            row=row,
            column="weight",
        )
    if kind.itemsize < weight.itemsize:
        # EdgeListError if a weight that is not 0 has become 0
        _refuse_lost_weights(weight, cast)

    if not negative_zeros:
        return cast, 0
    if get_device(cast) == "cuda":
        return edge_weights.without_negative_zeros(cast), negative_zeros
    return csr_build.filled(
        lambda part: np.where(part == 0, 0, part), cast, cast.dtype, scratch
    ), negative_zeros


def _refuse_lost_weights(weight: Any, cast: Any) -> None:
    """Raise EdgeListError if a weight that is not 0 has become 0 in a narrower type: its edge would
    cost nothing.

    ``weight`` has the weights as they were given, and ``cast`` those in the narrower type.
    """

    def is_zero(values: Any) -> Any:
        if values.itemsize > 8:  # NumPy's long double: no integer type is as wide
            return values == 0
        # By its bits, as on a GPU subnormal numbers compare as zero. The shift drops the sign.
        return values.view(f"i{values.itemsize}") << 1 == 0

    def is_lost(wide: Any, narrow: Any) -> Any:
        return is_zero(narrow) & ~is_zero(wide)

    n_lost, row = _count_where(is_lost, weight, cast)
    if n_lost:
        raise EdgeListError(
            f"weight of row {row} is {float(weight[row]):g}, which {cast.dtype} takes for 0 ({n_lost} such rows); scale the "
            f"weights up, or take {option_text('weight_type', 'float64')}",
            row=row,
            column="weight",
        )


def smallest_weights(vertices: Array, weights: Array, are_integers: bool) -> dict[int, Any]:
    """Map each vertex that has self-loops of negative weight to the smallest of these weights, as
    Python numbers: int if ``are_integers``, else float.

    ``vertices`` and ``weights`` have one element per self-loop of negative weight.
    """
    smallest: dict[int, int | float] = {}
    # A vertex that is new begins with 0, which is above each of these weights.
    for vertex, value in zip(to_host(vertices).tolist(), to_host(weights).tolist(), strict=True):
        smallest[vertex] = min(
            smallest.get(vertex, 0), int(value) if are_integers else float(value)
        )
    return smallest
