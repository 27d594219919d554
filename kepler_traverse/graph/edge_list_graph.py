"""Build a Graph from an edge list as the readers return it: number the vertices, then build the
CSR.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import arguments, cuda
from .._arrays import HOST_SLICE, Array, get_device, index_dtype, namespace, pyarrow
from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from ..errors import EdgeListError, InputError, option_text
from ..formats import EdgeList
from ..formats.files import WEIGHTS
from ..formats.ids import IdFile, read_ids
from ..formats.selection import RowSelection, settle_letters
from ..protocols import Ids
from ..runtime.scratch import Scratch
from . import Graph
from .build import ENDS, WEIGHT_TYPES, graph_from_arrays, graph_from_numbers

_ID_RULES = ("only_vertices", "closed")  # ids, an ``IdFile``, or the path of one


@dataclass(frozen=True, kw_only=True)
class BuildRules:
    """Options of the builder, common to all ways of numbering vertices; see ``graph_from_edges``."""

    directed: bool
    weight_type: str
    edge_ids: bool = False
    only_vertices: Any = None
    closed: Any = None
    largest_component: bool = False

    def __post_init__(self) -> None:
        for name in ("directed", "edge_ids", "largest_component"):
            object.__setattr__(self, name, arguments.flag(name, getattr(self, name)))
        arguments.choice("weight_type", self.weight_type, WEIGHT_TYPES)
        for name in _ID_RULES:
            given = getattr(self, name)
            if given is not None and not isinstance(given, str | os.PathLike | IdFile):
                object.__setattr__(self, name, arguments.ids(name, given))

    def check_oneway(self, oneway: Any, name: str) -> None:
        """Refuse directions of rows beside ``directed=False``, which is no default."""
        if oneway is not None and not self.directed:
            raise InputError(
                f"{option_text(name)} says which rows are edges in both directions, and {option_text('directed', False)} "
                "says that all are; leave one of the two out"
            )

    def of(self, selection: RowSelection, strings: bool) -> dict[str, Any]:
        """Return the keyword arguments of the builder."""
        chosen = {name: getattr(self, name) for name in _ID_RULES}
        for name, given in chosen.items():
            if isinstance(given, str | os.PathLike):
                given = read_ids(given, name)
            if isinstance(given, IdFile):
                chosen[name] = given.ids(strings)
        return {
            **chosen,
            "directed": self.directed,
            "weight_type": self.weight_type,
            "edge_ids": self.edge_ids,
            "largest_component": self.largest_component,
            "selection": selection,
        }


@contextmanager
def memory_given_back() -> Iterator[None]:
    """Let pyarrow allocate from the system inside the context.

    Its own pools would hold the memory of decoding, as large as the edge list or larger, while the
    graph is built. Measured with USA-road-NE, the peak is 3.7 times the edge list with mimalloc and
    2.0 to 2.8 times with the system's.
    """
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(before)


def make_graph(edges: EdgeList, device: str, vertices: Ids | None, rules: BuildRules) -> Graph:
    """Build the graph on a device, with additional vertices or a file of them. Errors name the file
    and the row.

    The table of the edges may also be a dict of arrays by role. Columns are removed from the edge
    list one by one, and no name here refers to the arrays, so each is freed after use.
    """
    columns = {role: edges.table[role] for role in edges.columns.roles}
    edges = replace(edges, table=None)
    try:
        if edges.directions is None:
            directions = None
        else:
            directions = settle_letters(edges.directions)
        selection = RowSelection(total=edges.n_rows, kept=edges.kept, directions=directions)
        if edges.kept is not None and not edges.kept.size and vertices is None:
            raise EdgeListError(
                f"{option_text('where')} is true for none of the {edges.n_rows} rows; give another condition, or "
                f"{option_text('vertices')} for a graph without edges"
            )
        # without rows
        if vertices is not None and getattr(columns["src"], "type", None) == pyarrow.null():
            columns, vertices = _typed_like(columns, vertices)
        _refuse_mixed_ends(columns)
        if isinstance(vertices, str | os.PathLike):
            vertices = read_ids(vertices, "vertices").ids(_are_strings(columns["src"]))
        scratch = edges.scratch
        building = {**rules.of(selection, _are_strings(columns["src"])), "scratch": scratch}
        if _are_strings(columns["src"]):
            return _from_strings(columns, device, edges.n_vertices, vertices, building)
        arrays = {role: _array(columns.pop(role), device, scratch) for role in list(columns)}
        if edges.n_vertices is not None and vertices is None:
            return _from_range(arrays, edges, building)
        kind = arrays["src"].dtype
        more: Array = None if vertices is None else _integers(vertices, kind)
        if edges.n_vertices is not None:
            first = edges.first_vertex
            more = np.union1d(np.arange(first, first + edges.n_vertices, dtype=kind), more)
        return graph_from_arrays(
            arrays.pop("src"),
            arrays.pop("dst"),
            arrays.pop("weight", None),
            reverse_weight=arrays.pop("reverse_weight", None),
            vertices=cuda.cp.asarray(more) if more is not None and device == "cuda" else more,
            **building,
        )
    except EdgeListError as error:
        raise _placed(error, edges) from None


def _refuse_mixed_ends(columns: dict[str, Any]) -> None:
    if _are_strings(columns["src"]) != _are_strings(columns["dst"]):
        ends = ", ".join(
            f"{role} holds {'strings' if _are_strings(columns[role]) else 'integers'}"
            for role in ENDS
        )
        how = f"{option_text('id_type', 'string')} takes both as strings"
        raise EdgeListError(f"one end is an integer, the other a string ({ends}); {how}")


def _typed_like(columns: dict[str, Any], vertices: Any) -> tuple[dict[str, Any], Ids]:
    """Return columns without rows, with ends in the type of the vertices, and these."""
    if isinstance(vertices, str | os.PathLike):
        file = read_ids(vertices, "vertices")
        vertices = file.ids(file.holds_strings)
    is_text = not isinstance(vertices, np.ndarray) and any(
        isinstance(vertex, str) for vertex in vertices
    )
    if is_text:
        kind = pyarrow.large_string()
    else:
        kind = pyarrow.int64()
    ends = dict.fromkeys(ENDS, pyarrow.chunked_array([], kind))
    return {
        role: ends.get(role, pyarrow.chunked_array([], pyarrow.int64())) for role in columns
    }, vertices


def _are_strings(column: Any) -> bool:
    """Whether a column is pyarrow text; cuDF columns are always numbers here."""
    return hasattr(column, "chunks") and not kinds.is_integer(column.type)


def _array(column: Any, device: str, scratch: Scratch | None = None) -> Array:
    """Return a column as an array on the device, without a copy if its memory layout allows it."""
    array: Array
    if isinstance(column, np.ndarray):
        array = column
    elif not hasattr(column, "chunks"):
        # cuDF: the column's own memory, as CuPy
        if hasattr(column, "get"):
            array = column
        else:
            array = column.values
    elif column.num_chunks == 1:
        array = column.chunk(0).to_numpy(zero_copy_only=True)
    else:
        array = _joined([column], len(column), column.type.to_pandas_dtype(), scratch)
    if get_device(array) == device:
        return array
    if device == "cuda":
        return cuda.cp.asarray(array)
    return array.get()


def _joined(columns: Iterable[Any], size: int, kind: Any, scratch: Scratch | None) -> np.ndarray:
    """Return the values of columns of pyarrow, one below another."""
    whole = (np.empty if scratch is None else scratch.empty)(size, kind)
    at = 0
    for chunk in (chunk for column in columns for chunk in column.chunks):
        whole[at : at + len(chunk)] = chunk.to_numpy(zero_copy_only=True)
        at += len(chunk)
    return whole


def _integers(vertices: Ids, kind: np.dtype) -> np.ndarray:
    """Return the user's additional vertices, in the type of the ids if they fit."""
    try:
        array = arguments.as_array("vertices", vertices)
    except InputError as error:
        raise InputError(
            f"vertices must be integers like the ids of the edge list: {error}"
        ) from None
    if array.size == 0:
        return np.zeros(0, kind)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputError(
            f"vertices must be integers like the ids of the edge list, not {array.dtype}"
        )
    limits = np.iinfo(kind)
    fits = limits.min <= int(array.min()) and int(array.max()) <= limits.max
    return array.astype(kind) if fits else array


def _from_range(arrays: dict[str, Array], edges: EdgeList, building: dict[str, Any]) -> Graph:
    """Build from ids that are known to lie in a range."""
    first = edges.first_vertex
    n_vertices = edges.n_vertices or 0
    # positions in a matrix have no type of their own
    if first:
        kind = arrays["src"].dtype
    else:
        kind = np.dtype(np.int64)
    numbers = []
    for role in ("src", "dst"):
        number = arrays.pop(role).astype(index_dtype(n_vertices))
        number -= first
        numbers.append(number)
    return graph_from_numbers(
        numbers[0],
        numbers[1],
        arrays.pop("weight", None),
        reverse_weight=arrays.pop("reverse_weight", None),
        ids=namespace(numbers[0]).arange(first, first + n_vertices, dtype=kind),
        **building,
    )


def _from_strings(
    columns: dict[str, Any],
    device: str,
    n_vertices: int | None,
    vertices: Any,
    building: dict[str, Any],
) -> Graph:
    """Number strings by the order of their UTF-8 bytes, on the host."""
    more: list[Any] = []
    if n_vertices is not None:
        more += [str(i) for i in range(1, n_vertices + 1)]
    more += [] if vertices is None else list(vertices)
    if not all(isinstance(vertex, str) for vertex in more):
        raise InputError("vertices must be strings like the ids of the edge list")
    halves = [vertex for vertex in more if not arguments.is_encodable(vertex)]
    if halves:
        raise InputError(
            f"vertices holds {arguments.describe(halves[0])}, which is not valid Unicode text"
        )
    if columns["src"].type == columns["dst"].type == pyarrow.string():
        text = pyarrow.string()
    else:
        text = pyarrow.large_string()
    # Each end alone: one cast to the type of the other would be in memory as a whole.
    distinct = [compute.unique(columns[role]).cast(text) for role in ENDS]
    ids = compute.unique(pyarrow.chunked_array([*distinct, pyarrow.array(more, text)], text))
    ids = ids.take(compute.sort_indices(ids))
    scratch: Scratch | None = building["scratch"]
    if scratch is not None:
        scratch.require(3 * ids.nbytes + 32 * len(ids), "the ids of the vertices")
    if ids.nbytes <= np.iinfo(np.int32).max:
        ids = ids.cast(pyarrow.string())
    kind = index_dtype(len(ids))
    numbers = []
    for role in ENDS:
        column = columns.pop(role)
        known = ids.cast(text)
        # Each call makes a hash table of the ids; a quarter of the memory holds what it returns.
        if scratch is None:
            most = max(1, len(column))
        else:
            most = max(HOST_SLICE, scratch.memory // 16)
        pieces = (column.slice(at, most).cast(text) for at in range(0, len(column), most))
        codes = (compute.index_in(piece, value_set=known) for piece in pieces)
        numbers.append(_array(_joined(codes, len(column), kind, scratch), device))
    weights = {
        role: _array(columns.pop(role), device, scratch) for role in WEIGHTS if role in columns
    }
    return graph_from_numbers(numbers[0], numbers[1], ids=ids, **weights, **building)


def _placed(error: EdgeListError, edges: EdgeList) -> EdgeListError:
    """Name the file, the column and the row in the file in an error about a row of the whole edge
    list.
    """
    if error.row is None:
        if len(edges.rows) == 1:
            files = edges.rows[0][0]
        else:
            files = f"{edges.rows[0][0]} and {len(edges.rows) - 1} more"
        return EdgeListError(
            error.message if files in error.message else f"{files}: {error.message}",
            None,
            error.column,
        )
    name, row = edges.place(error.row)
    if error.column in edges.columns.roles:
        column = f", column {edges.columns.roles[error.column]!r}"
    else:
        column = ""
    # The builder counts rows over all files.
    message = error.message.replace(f"weight of row {error.row} ", "the weight ")
    return EdgeListError(f"{name}, row {row}{column}: {message}", error.row, error.column)
