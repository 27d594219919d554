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
    """Options of the builder, common to all ways of numbering vertices.

    The fields have the meaning of the arguments of ``graph_from_edges``. Ids are a list or an array
    of them, an ``IdFile``, or the path of a file of ids.
    """

    directed: bool  # False: each row is an edge in both directions
    weight_type: str  # of float weights and their distances: one of ``WEIGHT_TYPES``
    edge_ids: bool = False  # whether the graph keeps the row of each edge
    only_vertices: Any = None  # ids of the vertices that are kept; None: all are
    closed: Any = None  # ids of the vertices through which no path leads; None: there are none
    largest_component: bool = False  # whether only the largest strong component is kept

    def __post_init__(self) -> None:
        # Check the values. The class is frozen: checked ones are set past that.
        for name in ("directed", "edge_ids", "largest_component"):
            object.__setattr__(self, name, arguments.flag(name, getattr(self, name)))
        arguments.choice("weight_type", self.weight_type, WEIGHT_TYPES)
        for name in _ID_RULES:
            ids = getattr(self, name)
            if ids is not None and not isinstance(ids, str | os.PathLike | IdFile):
                object.__setattr__(self, name, arguments.ids(name, ids))

    def check_oneway(self, oneway: Any, name: str) -> None:
        """Raise InputError if there are directions of rows beside ``directed=False``, which a
        caller has set: it is not the default.

        ``oneway`` is the value of the option ``name``, None if it was not given.
        """
        if oneway is not None and not self.directed:
            raise InputError(
                f"{option_text(name)} says which rows are edges in both directions, and {option_text('directed', False)} "
                "says that all are; leave one of the two out"
            )

    def builder_arguments(self, selection: RowSelection, has_string_ids: bool) -> dict[str, Any]:
        """Return keyword arguments of ``graph_from_arrays`` and ``graph_from_numbers``.

        ``selection`` is passed on. Ids of files are read here, in the type of the graph's ids:
        strings with ``has_string_ids``, else integers.
        """
        # The path of a file becomes an ``IdFile``, and an ``IdFile`` becomes its ids.
        id_rules = {name: getattr(self, name) for name in _ID_RULES}
        for name, ids in id_rules.items():
            if isinstance(ids, str | os.PathLike):
                ids = read_ids(ids, name)
            if isinstance(ids, IdFile):
                id_rules[name] = ids.ids(has_string_ids)
        return {
            **id_rules,
            "directed": self.directed,
            "weight_type": self.weight_type,
            "edge_ids": self.edge_ids,
            "largest_component": self.largest_component,
            "selection": selection,
        }


@contextmanager
def system_memory_pool() -> Iterator[None]:
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
    """Build the graph of an edge list on ``device``, "cpu" or "cuda". Errors name the file and the
    row.

    ``vertices`` are additional ids, the path of a file of them, or None. The table of the edges is
    any that an ``EdgeList`` has: of pyarrow, of cuDF, or a dict of arrays by role. Columns are
    removed from the edge list one by one, and no name here refers to the arrays, so each is freed
    after use.
    """
    # By role: src, dst, and weight and reverse_weight if there are some.
    columns = {role: edges.table[role] for role in edges.columns.roles}
    edges = replace(edges, table=None)

    # Errors of building know the row, but not its file.
    try:
        if edges.directions is None:
            directions = None
        else:
            directions = settle_letters(edges.directions)  # codes of B, F and T become directions
        selection = RowSelection(
            total=edges.n_rows, row_numbers=edges.row_numbers, directions=directions
        )
        if edges.row_numbers is not None and not edges.row_numbers.size and vertices is None:
            raise EdgeListError(
                f"{option_text('where')} is true for none of the {edges.n_rows} rows; give another condition, or "
                f"{option_text('vertices')} for a graph without edges"
            )

        # The ids are all integers or all strings. Columns without rows have no type, so that the
        # vertices decide.
        if vertices is not None and getattr(columns["src"], "type", None) == pyarrow.null():
            columns, vertices = _typed_like(columns, vertices)
        # EdgeListError if one end has integers and the other one strings
        _refuse_mixed_ends(columns)
        has_string_ids = _are_strings(columns["src"])
        if isinstance(vertices, str | os.PathLike):
            vertices = read_ids(vertices, "vertices").ids(has_string_ids)
        scratch = edges.scratch
        # Files of ids, such as those of ``closed``, are read here, in the type of the edge list.
        building = {**rules.builder_arguments(selection, has_string_ids), "scratch": scratch}
        if has_string_ids:
            return _from_strings(columns, device, edges.n_vertices, vertices, building)

        # Integers: of a range that the format states, as Matrix Market does, or of any kind. The
        # vertices of a range are additional ones beside those of the user.
        arrays = {
            role: _as_device_array(columns.pop(role), device, scratch) for role in list(columns)
        }
        if edges.n_vertices is not None and vertices is None:
            return _from_range(arrays, edges, building)
        kind = arrays["src"].dtype
        additional: Array = None if vertices is None else _vertices_as_integers(vertices, kind)
        if edges.n_vertices is not None:
            first = edges.first_vertex
            additional = np.union1d(
                np.arange(first, first + edges.n_vertices, dtype=kind), additional
            )
        if additional is not None and device == "cuda":
            additional = cuda.cp.asarray(additional)
        return graph_from_arrays(
            arrays.pop("src"),
            arrays.pop("dst"),
            arrays.pop("weight", None),
            reverse_weight=arrays.pop("reverse_weight", None),
            vertices=additional,
            **building,
        )
    except EdgeListError as error:
        raise _locate_error(error, edges) from None


def _refuse_mixed_ends(columns: dict[str, Any]) -> None:
    """Raise EdgeListError if src of the edges has integers and dst has strings, or the reverse."""
    if _are_strings(columns["src"]) != _are_strings(columns["dst"]):
        ends = ", ".join(
            f"{role} holds {'strings' if _are_strings(columns[role]) else 'integers'}"
            for role in ENDS
        )
        how = f"{option_text('id_type', 'string')} takes both as strings"
        raise EdgeListError(f"one end is an integer, the other a string ({ends}); {how}")


def _typed_like(columns: dict[str, Any], vertices: Any) -> tuple[dict[str, Any], Ids]:
    """Return empty columns for the roles of ``columns``, the ends in the type of the vertices' ids;
    and the vertices, which are read if they are the path of a file.
    """
    if isinstance(vertices, str | os.PathLike):
        file = read_ids(vertices, "vertices")
        vertices = file.ids(file.holds_strings)
    # An array holds integers alone.
    is_text = not isinstance(vertices, np.ndarray) and any(
        isinstance(vertex, str) for vertex in vertices
    )
    if is_text:
        kind = pyarrow.large_string()
    else:
        kind = pyarrow.int64()
    ends = dict.fromkeys(ENDS, pyarrow.chunked_array([], kind))
    weights = pyarrow.chunked_array([], pyarrow.int64())
    return {role: ends.get(role, weights) for role in columns}, vertices


def _are_strings(column: Any) -> bool:
    """Return whether a column is a pyarrow column of strings, and no array or column of integers.

    Columns of cuDF are always numbers here.
    """
    # Only chunked arrays of pyarrow have chunks.
    return hasattr(column, "chunks") and not kinds.is_integer(column.type)


def _as_device_array(column: Any, device: str, scratch: Scratch | None) -> Array:
    """Return a column of numbers as an array on the device, without a copy if it is there already
    and in one piece.

    The column is an array, a chunked array of pyarrow without nulls, or a Series of cuDF. Its
    chunks are joined in a file if there is scratch space.
    """
    array: Array
    if isinstance(column, np.ndarray):
        array = column
    elif not hasattr(column, "chunks"):
        # An array of CuPy, which has ``get``; or a Series of cuDF, whose memory is taken as CuPy's.
        if hasattr(column, "get"):
            array = column
        else:
            array = column.values
    elif column.num_chunks == 1:
        array = column.chunk(0).to_numpy(zero_copy_only=True)
    else:
        array = _concatenate([column], len(column), column.type.to_pandas_dtype(), scratch)
    if get_device(array) == device:
        return array
    if device == "cuda":
        return cuda.cp.asarray(array)
    return array.get()


def _concatenate(
    columns: Iterable[Any], size: int, kind: Any, scratch: Scratch | None
) -> np.ndarray:
    """Return the values of columns of pyarrow, ``size`` in all, one below another, as an array of
    the type ``kind``; in a file if there is scratch space. Columns may be made one by one.
    """
    empty = np.empty if scratch is None else scratch.empty
    values = empty(size, kind)
    begin = 0
    for column in columns:
        for chunk in column.chunks:
            end = begin + len(chunk)
            values[begin:end] = chunk.to_numpy(zero_copy_only=True)
            begin = end
    return values


def _vertices_as_integers(vertices: Ids, kind: np.dtype) -> np.ndarray:
    """Return the user's additional vertices as an integer array: of ``kind``, the type of the ids,
    if that holds them, else of the type that they have. InputError if they are no integers.
    """
    try:
        array = arguments.as_array("vertices", vertices)
    except InputError as error:
        raise InputError(
            f"vertices must be integers like the ids of the edge list: {error}"
        ) from None
    if array.size == 0:  # an empty list has no integer type of its own
        return np.zeros(0, kind)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputError(
            f"vertices must be integers like the ids of the edge list, not {array.dtype}"
        )
    limits = np.iinfo(kind)
    fits = limits.min <= int(array.min()) and int(array.max()) <= limits.max
    return array.astype(kind) if fits else array


def _from_range(arrays: dict[str, Array], edges: EdgeList, building: dict[str, Any]) -> Graph:
    """Build from arrays whose ids are known to be a range, so that no id need be looked up.

    ``arrays`` are by role, and are removed once they are used. The ids are ``edges.n_vertices``
    numbers from ``edges.first_vertex`` on. ``building`` has further arguments of
    ``graph_from_numbers``.
    """
    first = edges.first_vertex  # the smallest id: 1 in files, 0 in matrices
    n_vertices = edges.n_vertices or 0
    # Ids of a file have the type in which they were read. Positions in a matrix, from 0 on, have
    # whatever type its indices have, so their ids are int64.
    if first:
        kind = arrays["src"].dtype
    else:
        kind = np.dtype(np.int64)
    numbers = []
    for role in ("src", "dst"):
        # A copy, from which the first id can be taken in place.
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
    """Number strings by the order of their UTF-8 bytes, on the host, and build on the device.

    ``columns`` has columns of pyarrow by role, which are removed once they are used. Unless
    ``n_vertices`` is None, the strings "1" to ``str(n_vertices)`` are vertices, too. ``vertices``
    are the user's additional ids, or None. ``building`` has further arguments of
    ``graph_from_numbers``.
    """
    # Ids that need not be the end of an edge.
    additional: list[Any] = []
    if n_vertices is not None:
        additional += [str(i) for i in range(1, n_vertices + 1)]
    additional += [] if vertices is None else list(vertices)
    if not all(isinstance(vertex, str) for vertex in additional):
        raise InputError("vertices must be strings like the ids of the edge list")
    unencodable = [vertex for vertex in additional if not arguments.is_encodable(vertex)]
    if unencodable:
        raise InputError(
            f"vertices holds {arguments.describe(unencodable[0])}, which is not valid Unicode text"
        )

    # The distinct strings of both ends and the additional vertices, sorted.
    if columns["src"].type == columns["dst"].type == pyarrow.string():
        text = pyarrow.string()
    else:
        text = pyarrow.large_string()
    # Duplicates are removed from each end alone, and before the cast: to cast a whole column would
    # put a copy of it into memory.
    distinct = [compute.unique(columns[role]).cast(text) for role in ENDS]
    ids = compute.unique(pyarrow.chunked_array([*distinct, pyarrow.array(additional, text)], text))
    ids = ids.take(compute.sort_indices(ids))
    scratch: Scratch | None = building["scratch"]
    # The ids stay in memory, also where the edges are in files. An estimate: their bytes three
    # times, with the copies that sorting and casting make, and 32 bytes per id in a hash table.
    # ``require`` raises CapacityError if that exceeds the limit of memory.
    if scratch is not None:
        scratch.require(3 * ids.nbytes + 32 * len(ids), "the ids of the vertices")
    if ids.nbytes <= np.iinfo(np.int32).max:
        ids = ids.cast(pyarrow.string())  # whose offsets are int32

    # Each end becomes the positions of its strings in the ids, some rows at a time.
    kind = index_dtype(len(ids))
    numbers = []
    for role in ENDS:
        column = columns.pop(role)
        known = ids.cast(text)
        # Each call makes a hash table of the ids, so there are few calls. What one returns has 4
        # bytes per row, so that ``memory // 16`` rows take a quarter of the memory.
        if scratch is None:
            n_rows = max(1, len(column))
        else:
            n_rows = max(HOST_SLICE, scratch.memory // 16)
        pieces = (column.slice(begin, n_rows).cast(text) for begin in range(0, len(column), n_rows))
        codes = (compute.index_in(piece, value_set=known) for piece in pieces)
        numbers.append(
            _as_device_array(_concatenate(codes, len(column), kind, scratch), device, scratch)
        )
    weights = {
        role: _as_device_array(columns.pop(role), device, scratch)
        for role in WEIGHTS
        if role in columns
    }
    return graph_from_numbers(numbers[0], numbers[1], ids=ids, **weights, **building)


def _locate_error(error: EdgeListError, edges: EdgeList) -> EdgeListError:
    """Return an error of building that names the file, the column, and the row as the file counts
    it.

    ``error`` counts rows over all files, and so does the ``row`` of the result. If it is about no
    row, the message names the files.
    """
    if error.row is None:
        if len(edges.rows) == 1:
            files = edges.rows[0][0]
        else:
            files = f"{edges.rows[0][0]} and {len(edges.rows) - 1} more"
        return EdgeListError(
            # not twice, where the message names the files already
            error.message if files in error.message else f"{files}: {error.message}",
            None,
            error.column,
        )
    name, row = edges.place(error.row)
    if error.column in edges.columns.roles:
        column = f", column {edges.columns.roles[error.column]!r}"
    else:
        column = ""
    # The message of the builder has the row as counted over all files. It is taken out, and the row
    # within the file is put in front.
    message = error.message.replace(f"weight of row {error.row} ", "the weight ")
    return EdgeListError(f"{name}, row {row}{column}: {message}", error.row, error.column)
