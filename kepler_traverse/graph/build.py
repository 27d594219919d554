"""Build a Graph from edge arrays: renumber, check weights, and handle parallel edges, self-loops
and direction.
"""

from __future__ import annotations

import logging
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
from .ids import VertexIds, in_one_integer_type

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
    """Build a graph from columns of edges whose ids are integers; for all others,
    ``graph_from_edges``, which has the rules.

    The columns are arrays of one length. ``vertices`` are additional ones, which may have no edge.
    ``rules`` are those of ``graph_from_numbers``, and errors are as of ``graph_from_edges``.
    """
    if vertices is not None:
        vertices = arguments.as_array("vertices", vertices)
    weights: dict[str, Any] = {"weight": weight, "reverse_weight": reverse_weight}
    columns = {"src": src, "dst": dst, **weights, "vertices": vertices}
    devices = {name: get_device(column) for name, column in columns.items() if column is not None}
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {device}" for name, device in devices.items())
        raise DeviceError(f"all columns must be on one device: {where}")
    for role in weights:
        del columns[role]
    src, dst, *others = in_one_integer_type(
        {name: column for name, column in columns.items() if column is not None}
    )
    del columns
    backend = _backend(src, scratch)
    ids, (src, dst, *_) = backend.renumber(
        [src, dst, *others], index_dtype(_max_vertices([src, dst, *others]))
    )
    return graph_from_numbers(
        src, dst, **weights, ids=ids, all_are_ends=vertices is None, scratch=scratch, **rules
    )


def _backend(array: Array, scratch: Scratch | None) -> CsrBackend:
    """Return what builds on the device of an array."""
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
    """Like ``graph_from_arrays``, for ends that are positions in ``ids`` (ascending ids, one per
    vertex).

    ``all_are_ends`` states that each vertex is an end of some edge, so that without self-loops none
    can be isolated.
    """
    backend = _backend(src, scratch)
    if selection is None:
        selection = RowSelection(total=src.size)
    limited_by = _limited_by(only_vertices, largest_component)
    if largest_component:
        # of a graph that has the same edges, and no row of them is asked for
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
        if whole.n_vertices:
            only_vertices = whole.ids_at(find_component(whole.offsets, whole.targets))
    # Rows are left out: those of other vertices, and those of which no direction is open.
    given = _Given(src, dst, weight, reverse_weight, ids, selection, all_are_ends)
    if only_vertices is not None:
        given = given.within(only_vertices)
    weight_source = "" if weight is None else str(weight.dtype)
    filtered_rows = selection.total - given.src.size
    given, closed_directions = given.without_closed()
    src, dst, weight, reverse_weight, ids, selection, all_are_ends = given
    # Weights are checked: those of both directions together, the second half after the first.
    negative_zeros = 0
    loops = {}
    integers = False
    if weight is not None:
        places = selection if reverse_weight is None else selection.twice()
        weight, negative_zeros, integers = checked_weights(weight, weight_type, places, scratch)
    if reverse_weight is not None:
        reverse_weight = weight[src.size :]
        weight = weight[: src.size]
    elif weight is not None:
        loops = _find_negative_loops(src, dst, weight, integers)
    # Closed vertices get a second number.
    split = None
    if closed is not None:
        split, ids, loops = _split(ids, closed, weight, loops, limited_by)
        if not directed:
            # Both directions of an edge of a closed vertex join different numbers.
            selection = replace(selection, directions=np.full(src.size, BOTH_WAYS, np.int8))
            directed = True
    # Rows become edges in the directions that they have, and are sorted and merged.
    back = None
    if selection.directions is not None:
        src, dst, back = _directed(src, dst, selection.directions)
        if reverse_weight is not None:
            reverse_weight = reverse_weight[back]
    rows = _Rows(src, dst, weight, back, reverse_weight, selection, split)
    edges = _Edges(*backend.assemble(*rows.edges(), len(ids), not directed))
    edge_rows = edges_of_rows = None
    if edge_ids:
        edge_rows, edges_of_rows = _relate_rows(rows, edges, len(ids), directed)
    isolated_vertices = 0
    if edges.self_loops or not all_are_ends:
        isolated_vertices = backend.count_isolated(edges.offsets, edges.targets, directed)
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
            reverse_weight_column="" if reverse_weight is None else "reverse_weight",
            closed_directions=closed_directions,
            limited_by=limited_by,
        ),
        integer_weights=integers,
        float_distances=integers and weight_type != "auto",
        negative_loops=loops,
        edge_rows=edge_rows,
        edges_of_rows=edges_of_rows,
        closed=None if split is None else split.numbers,
    )
    if LOG.isEnabledFor(logging.DEBUG):
        compile_clock.listen()
    LOG.info("built %r", graph)
    return graph


class _Given(NamedTuple):
    """The rows that are given to ``graph_from_numbers``."""

    src: Array
    dst: Array
    weight: Any
    reverse_weight: Any
    ids: Any
    selection: RowSelection
    all_are_ends: bool

    def within(self, vertices: Any) -> _Given:
        """Return the rows between some vertices, which are numbered anew."""
        kept, ids, numbers = _between(self.src, self.dst, self.ids, vertices)

        def take(values: Any) -> Any:
            if values is None:
                return None
            return values[kept]

        return _Given(
            src=numbers[self.src[kept]],
            dst=numbers[self.dst[kept]],
            weight=take(self.weight),
            reverse_weight=take(self.reverse_weight),
            ids=ids,
            selection=self.selection.take(to_host(kept)),
            all_are_ends=False,
        )

    def without_closed(self) -> tuple[_Given, int]:
        """Return the rows of which a direction is open, and the number of closed directions.

        With two weights per row, ``weight`` then has those of all rows, and after them those back.
        """
        if self.reverse_weight is None:
            return self, 0
        costs = open_costs(self.weight, self.reverse_weight)
        taken = self.selection.take(to_host(costs.rows))
        open_rows = self._replace(
            src=self.src[costs.rows],
            dst=self.dst[costs.rows],
            weight=costs.weights,
            selection=replace(taken, directions=costs.directions),
            all_are_ends=False,
        )
        return open_rows, costs.n_closed


class _Rows(NamedTuple):
    """The rows that a graph is built of: ends as vertices were numbered first, and checked weights."""

    src: Array
    dst: Array
    weight: Array | None
    back: Array | None  # the rows that are also an edge back; None: no row has a direction
    reverse_weight: Array | None  # of the edges back; None: that of their rows
    selection: RowSelection
    split: Split | None  # the final numbers; None: the same

    def ends_there(self) -> tuple[Array, Array]:
        """Return the ends of the edge of each row."""
        if self.split is None:
            return self.src, self.dst
        return self.split.map_ends(self.src, self.dst)

    def ends_back(self) -> tuple[Array, Array]:
        """Return the ends of the edge back of each row that has one."""
        src = self.dst[self.back]
        dst = self.src[self.back]
        if self.split is None:
            return src, dst
        return self.split.map_ends(src, dst)

    def edges(self) -> tuple[Array, Array, Array | None]:
        """Return the ends and weights of all edges: of the rows, back, and of closed vertices."""
        xp = namespace(self.src)
        parts: list[Any] = [(*self.ends_there(), self.weight)]
        if self.back is not None:
            weight = self.reverse_weight
            if weight is None and self.weight is not None:
                weight = self.weight[self.back]
            parts.append((*self.ends_back(), weight))
        if self.split is not None:
            first, last = (xp.asarray(each) for each in self.split.numbers)
            parts.append((first, last, xp.zeros_like(self.weight, shape=first.size)))
        if len(parts) == 1:
            return parts[0]
        src, dst, weights = zip(*parts, strict=True)
        kind = src[0].dtype
        return (
            xp.concatenate(src).astype(kind, copy=False),
            xp.concatenate(dst).astype(kind, copy=False),
            None if self.weight is None else xp.concatenate(weights),
        )

    def both_weights(self) -> list[Array]:
        """Return the weights of each row and of its edge back; 0 where there is none."""
        weights: Any = self.weight
        back = namespace(weights).zeros_like(weights)
        back[self.back] = self.reverse_weight
        return [weights, back]

    def count_closed_without_edges(self) -> int:
        """Return the number of closed vertices that no other vertex is joined to."""
        if self.split is None:
            return 0
        xp = namespace(self.src)
        is_end = xp.zeros(self.split.first.size, bool)
        joined = self.src != self.dst
        is_end[self.src[joined]] = True
        is_end[self.dst[joined]] = True
        names = self.split.names[self.split.numbers[0]]
        return int((~to_host(is_end)[names]).sum())


class _Edges(NamedTuple):
    """What ``CsrBackend.assemble`` returns."""

    offsets: Array
    targets: Array
    weights: Array | None
    self_loops: int
    parallel: int


def _find_negative_loops(src: Array, dst: Array, weight: Array, integers: bool) -> dict[int, Any]:
    """Return the smallest weight per vertex of the self-loops with negative weights."""
    on_gpu = get_device(src) == "cuda"
    if on_gpu and not edge_weights.count_negative_loops(src, dst, weight):
        return {}
    at = positions(lambda u, v, w: is_negative(w) & (u == v), src, dst, weight)
    return smallest_weights(src[at], weight[at], integers)


def _relate_rows(
    rows: _Rows, edges: _Edges, n_vertices: int, directed: bool
) -> tuple[Array, Array | None]:
    """Return ``Graph.edge_rows`` and ``Graph.edges_of_rows``; the second is None where the first
    says the same.
    """
    xp = namespace(rows.src)
    kept = rows.selection.kept
    backend: EdgeRowsBackend = edge_rows_on_cpu
    if get_device(rows.src) == "cuda":
        backend = edge_rows_on_gpu
    # Which edge each row became, and of the rows of an edge the one that counts.
    row_edges = _find_edges_of_rows(rows, edges, n_vertices, directed, backend)
    index = index_dtype(rows.selection.total)
    if rows.reverse_weight is None:
        edge_rows = backend.rows_that_count(
            row_edges, rows.weight, edges.weights, edges.targets.size, index
        )
    else:
        edge_rows = rows_of_two_costs(row_edges, rows.both_weights(), edges.weights, index, backend)
    # Rows are numbered as they were given, with those that were left out.
    if kept is not None:
        edge_rows = xp.asarray(np.append(kept, -1).astype(edge_rows.dtype))[edge_rows]
    if rows.split is not None:
        edge_rows[find_ties(rows.split.numbers, edges.offsets, edges.targets)] = NO_ROW
    if rows.reverse_weight is not None:
        row_edges = _by_direction(row_edges, rows, n_vertices)
    elif not edges.self_loops and not edges.parallel and kept is None:
        return edge_rows, None
    edges_of_rows = xp.stack(row_edges)
    if kept is None:
        return edge_rows, edges_of_rows
    shape = len(row_edges), rows.selection.total
    every = xp.full(shape, no_edge(n_vertices), edges_of_rows.dtype)
    every[:, xp.asarray(kept)] = edges_of_rows
    return edge_rows, every


def rows_of_two_costs(
    row_edges: list[Array], weights: list[Array], stored: Array, index: Any, backend: Any
) -> Array:
    """Return the row of each stored edge, of rows with one weight per direction."""
    xp = namespace(stored)
    # a row's two edges side by side, so that the first of equal weight is of the smallest row
    both_edges = xp.stack(row_edges, axis=1).ravel()
    both_weights = xp.stack(weights, axis=1).ravel()
    places = backend.rows_that_count(
        [both_edges], both_weights, stored, stored.size, np.dtype(np.int64)
    )
    return (places // len(row_edges)).astype(index)


def _by_direction(row_edges: list[Array], rows: _Rows, n_vertices: int) -> list[Array]:
    """Return the edge of each row from its src to its dst, and that back."""
    xp = namespace(rows.src)
    there, back = row_edges
    is_reversed = xp.asarray(rows.selection.directions == DST_TO_SRC)
    back = xp.where(is_reversed, there, back)
    return [xp.where(is_reversed, no_edge(n_vertices), there).astype(back.dtype), back]


def _find_edges_of_rows(
    rows: _Rows, edges: _Edges, n_vertices: int, directed: bool, backend: EdgeRowsBackend
) -> list[Array]:
    """Return the edge of each row, and where rows have edges in both directions also those back."""
    xp = namespace(rows.src)
    index = index_dtype(max(edges.targets.size, n_vertices) + 1)

    def find(src: Array, dst: Array) -> Array:
        kind = edges.targets.dtype
        src = src.astype(kind, copy=False)
        dst = dst.astype(kind, copy=False)
        return backend.find_edges(edges.offsets, edges.targets, src, dst, index)

    there = find(*rows.ends_there())
    if not directed:
        return [there, find(rows.dst, rows.src)]
    if rows.back is None:
        return [there]
    and_back = xp.full(rows.src.size, no_edge(n_vertices), index)
    and_back[rows.back] = find(*rows.ends_back())
    return [there, and_back]


def _limited_by(only_vertices: Any, largest_component: bool) -> str:
    """Return the option that leaves vertices out, as a ``BuildReport`` has it."""
    if largest_component:
        return "largest_component"
    if only_vertices is not None:
        return "only_vertices"
    return ""


def _split(
    ids: Any, closed: Any, weight: Any, loops: dict[int, Any], limited_by: str
) -> tuple[Split, Any, dict[int, Any]]:
    """Return the numbering that splits closed vertices, its ids, and the negative loops in it.

    A loop of a closed vertex is on no path.

    Raises InputError (the graph has no weights) or UnknownVertexError (one is no vertex).
    """
    if weight is None:
        raise InputError(
            f"{option_text('closed')} needs weights, and the edges have none; give each the weight 1"
        )
    is_closed = _mark_chosen(ids, closed, f"{option_text('closed')} id", limited_by)
    split = split_numbers(is_closed, namespace(weight))
    first = to_host(split.first)
    loops = {int(first[vertex]): value for vertex, value in loops.items() if not is_closed[vertex]}
    if hasattr(ids, "dtype"):
        return split, ids[namespace(ids).asarray(split.names)], loops
    return split, ids.take(pyarrow.array(split.names)), loops


def _mark_chosen(ids: Any, chosen: Any, role: str, limited_by: str = "") -> np.ndarray:
    """Return which of the vertices of some ids, ascending, are among those chosen."""
    flags = np.zeros(len(ids), bool)
    flags[VertexIds(ids, limited_by=limited_by).to_numbers(chosen, role)] = True
    return flags


def checked_weights(
    weight: Any,
    weight_type: str,
    selection: RowSelection | None = None,
    scratch: Scratch | None = None,
) -> tuple[Any, int, bool]:
    """Check weights of shape (rows,) and convert them to the type of the graph's; ``selection``
    names their rows in errors.

    Return the weights, how many were -0.0, and whether they are integers. EdgeListError for what is
    NaN, infinite, no number, or beyond what the type holds exactly.
    """
    integers = weight.dtype.kind in "iu"
    try:
        converted, zeros = (_integer_weights if integers else _float_weights)(
            weight, weight_type, scratch
        )
    except EdgeListError as error:
        if selection is None or error.row is None:
            raise
        row = selection.row(error.row)
        message = error.message.replace(f"weight of row {error.row} ", f"weight of row {row} ", 1)
        raise EdgeListError(message, row, error.column) from None
    return converted, zeros, integers


def _between(src: Array, dst: Array, ids: Any, only_vertices: Any) -> tuple[Array, Any, Array]:
    """Return which rows are edges between some vertices, the ids of these, and the new number of
    each vertex.
    """
    xp = namespace(src)
    chosen = _mark_chosen(ids, only_vertices, f"{option_text('only_vertices')} id")
    if not chosen.any():
        raise InputError(f"{option_text('only_vertices')} is empty; name the vertices of the graph")
    numbers = xp.asarray((np.cumsum(chosen) - 1).astype(src.dtype))
    flags = xp.asarray(chosen)
    kept = positions(lambda u, v: flags[u] & flags[v], src, dst)
    if hasattr(ids, "dtype"):
        ids = ids[flags]
    else:
        ids = ids.take(pyarrow.array(np.flatnonzero(chosen)))
    return kept, ids, numbers


def positions(condition: Any, *arrays: Any) -> Any:
    """Return where a condition holds for the elements of some arrays."""
    xp = namespace(arrays[0])
    parts = [xp.zeros(0, np.int64)]
    for (first, values), *others in zip(*(iter_slices(array) for array in arrays), strict=True):
        parts.append(xp.flatnonzero(condition(values, *(other for _, other in others))) + first)
    return xp.concatenate(parts)


def _directed(src: Array, dst: Array, directions: np.ndarray) -> tuple[Array, Array, Array]:
    """Return the ends of each row in the direction of its edge, and the rows that are also an edge
    back.
    """
    xp = namespace(src)
    way = xp.asarray(directions)
    reversed_rows = way == DST_TO_SRC
    # Not in place: the arrays may be the caller's.
    src, dst = xp.where(reversed_rows, dst, src), xp.where(reversed_rows, src, dst)
    return src, dst, positions(lambda way, u, v: (way == BOTH_WAYS) & (u != v), way, src, dst)


def _max_vertices(columns: list[Array]) -> int:
    """Upper bound on the number of distinct ids. With many edges, the range of ids is a tighter
    bound than their count.
    """
    count = sum(int(column.size) for column in columns)
    if index_dtype(count) == np.int32:
        return count
    occupied = [column for column in columns if column.size]
    lowest, highest = zip(*(extent(column) for column in occupied), strict=True)
    return min(count, int(max(highest) - min(lowest) + 1))


def _where(flags: Any, *arrays: Any) -> tuple[int, int]:
    """Return how often ``flags`` is true for elements of the arrays, and the first position where
    it is.
    """
    count = first = 0
    for (at, values), *others in zip(*(iter_slices(array) for array in arrays), strict=True):
        flagged = flags(values, *(other for _, other in others))
        here = int(namespace(values).count_nonzero(flagged))
        if here and not count:
            first = at + int(flagged.argmax())
        count += here
    return count, first


def _integer_weights(weight: Any, weight_type: str, scratch: Scratch | None) -> Any:
    """Convert integers to the narrowest type that represents each exactly, or to the requested type
    if that is wider.
    """
    xp = namespace(weight)
    low, high = extent(weight) if weight.size else (0, 0)
    largest = max(high, -low)
    held_by = float_that_holds(low, high)
    beyond = "2^63 - 2, the largest distance"
    if weight_type != "auto":
        beyond = "2^53, up to which float64 holds integers"
    elif high > MAX_INTEGER:
        beyond = "int64, in which distances are summed"
    if largest >= MAX_INTEGER or (held_by is None and weight_type != "auto"):
        row = int(xp.argmax(weight) if high > -low else xp.argmin(weight))
        raise EdgeListError(
            f"integer weight {int(weight[row])} is beyond {beyond}; scale the weights down",
            row=row,
            column="weight",
        )
    kind = held_by or np.dtype(np.int64)
    if weight_type != "auto":
        kind = max(kind, np.dtype(weight_type), key=lambda dtype: dtype.itemsize)
    if get_device(weight) == "cuda":
        return edge_weights.from_integers(weight, kind), 0
    return csr_build.filled(lambda part: part, weight, kind, scratch), 0


def _float_weights(weight: Any, weight_type: str, scratch: Scratch | None) -> Any:
    """Check weights and convert them to the type of distances; -0.0 becomes 0.0."""
    xp = namespace(weight)
    if weight.dtype.kind != "f":
        raise EdgeListError(f"weights must be numbers, not {weight.dtype}", column="weight")
    if weight_type == "auto":
        kind = np.result_type(weight.dtype, np.float32)
    else:
        kind = np.dtype(weight_type)
    if kind.itemsize > 8:
        raise EdgeListError(
            f"weights of type {weight.dtype} are not supported; give float64", column="weight"
        )
    with np.errstate(over="ignore"):
        if get_device(weight) == "cuda" and kind.itemsize < weight.itemsize:
            # CuPy's cast would flush subnormal results to 0
            cast = xp.asarray(to_host(weight).astype(kind))
        elif kind == weight.dtype or get_device(weight) == "cuda":
            cast = weight.astype(kind, copy=False)
        else:
            cast = csr_build.filled(lambda part: part, weight, kind, scratch)
    if get_device(cast) == "cuda":
        bad, row, negative_zeros = edge_weights.check(cast)
    else:
        bad, row = _where(lambda part: ~np.isfinite(part), cast)
        bits = cast.view(f"i{cast.itemsize}")
        negative_zeros, _ = _where(lambda part: part == np.iinfo(bits.dtype).min, bits)
    if bad:
        if bool(xp.isnan(weight[row])):
            what = "NaN"
        else:
            what = f"{float(weight[row]):g}, infinite as {kind}"
        raise EdgeListError(
            (
                f"weight of row {row} is {what} ({bad} such rows): every weight "
                "must be finite; drop or correct the rows"
            ),
            row=row,
            column="weight",
        )
    if kind.itemsize < weight.itemsize:
        _refuse_lost_weights(weight, cast)
    if not negative_zeros:
        return cast, 0
    if get_device(cast) == "cuda":
        return edge_weights.without_negative_zeros(cast), negative_zeros
    return csr_build.filled(
        lambda part: np.where(part == 0, 0, part), cast, cast.dtype, scratch
    ), negative_zeros


def _refuse_lost_weights(weight: Any, cast: Any) -> None:
    """Refuse nonzero weights that become 0 in a narrower type: their edges would cost nothing."""

    def is_zero(values: Any) -> Any:
        if values.itemsize > 8:  # NumPy's long double: no integer type is as wide
            return values == 0
        # by its bits: on a GPU subnormal numbers compare as zero
        return values.view(f"i{values.itemsize}") << 1 == 0

    lost, row = _where(lambda wide, narrow: is_zero(narrow) & ~is_zero(wide), weight, cast)
    if lost:
        raise EdgeListError(
            f"weight of row {row} is {float(weight[row]):g}, which {cast.dtype} takes for 0 ({lost} such rows); scale the "
            f"weights up, or take {option_text('weight_type', 'float64')}",
            row=row,
            column="weight",
        )


def smallest_weights(vertices: Array, weights: Array, integers: bool) -> dict[int, Any]:
    """Map each vertex to the smallest of its negative weights, as Python numbers."""
    smallest: dict[int, int | float] = {}
    for vertex, value in zip(to_host(vertices).tolist(), to_host(weights).tolist(), strict=True):
        smallest[vertex] = min(smallest.get(vertex, 0), int(value) if integers else float(value))
    return smallest
