"""Read a graph from files: read the edge list, number the vertices, build the graph."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import arguments, cuda
from ._arrays import Array, index_dtype, namespace
from .build import WEIGHT_TYPES, graph_from_edges, graph_from_numbers
from .errors import DeviceError, EdgeListError, InputError, option_text
from .formats import EdgeList, ReadOptions, read_edges
from .formats.ids import read_ids
from .graph import Graph


def read_graph(
    paths: Any,
    *,
    directed: bool = True,
    device: str = "auto",
    src_column: str | None = None,
    dst_column: str | None = None,
    weight_column: str | None = None,
    weighted: bool | None = None,
    format: str = "auto",
    header: str = "auto",
    delimiter: str | None = None,
    id_type: str = "auto",
    weight_type: str = "auto",
    vertices: Any = None,
) -> Graph:
    """Read an edge list from files and build a graph.

    Parallel edges keep the minimum weight, and self-loops are dropped. ``graph.report`` counts both. It also has the seconds
    that reading and building took.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders, globs, or URLs that fsspec knows. All files together are one edge list. The ``key=value`` folders
        of a Hive partition are columns of the files below them.
    directed : bool
        False: each row is an edge in both directions.
    device : {"auto", "cpu", "cuda"}
        Where the graph is built; ``"auto"`` takes the GPU if there is one.
    src_column, dst_column, weight_column : str, optional
        Names of the columns. By default the ends are the one pair of columns that is known by its names (``src`` and
        ``dst``, ``source`` and ``target``, ``from`` and ``to``, ``u`` and ``v``, ``origin`` and ``destination``, ...) and
        the weight is the one column that is (``weight``, ``length``, ``cost``, ``time``, ``distance``, ``minutes``, ...).
        Where several could be it, the file is refused. Only columns of a text without names are taken by position: the
        first two, and the third as the weight. They are called ``"0"``, ``"1"`` and so on. ``graph.report`` says
        which columns were used and which were not.
    weighted : bool, optional
        True: there must be a weight column. False: read none. None: read one if it is named or found.
    format : {"auto", "parquet", "csv", "snap", "matrix_market", "dimacs", "arrow"}
        ``"auto"`` goes by the ending, also before ``.gz``, ``.bz2`` and ``.zst``.
    header : {"auto", "yes", "no"}
        Whether the first line of a CSV file or of SNAP text holds names. ``"auto"`` decides only where there is no doubt.
    delimiter : str, optional
        One character between the values of a CSV file; by default the one of comma, semicolon, tab and ``|`` that cuts
        all lines alike.
    id_type : {"auto", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "string"}
        Type of the vertex ids. ``"auto"``: as stored; in text, int64 if the first row holds integers, else string.
    weight_type : {"auto", "float32", "float64"}
        Type of the stored weights. Text holds int64 if all weights are integers, else float64.
    vertices : sequence of ids or path, optional
        Further vertices, which may have no edge, or a local file of them: text with one id per line, or Parquet. Matrix
        Market and DIMACS files have vertices 1..n without this.

    Returns
    -------
    Graph

    Raises
    ------
    EdgeListError
        A file is missing, empty, damaged or has values that are no ids or weights, or it is not sure which columns hold
        the edges; the message names the file and, where there is one, the column and the row (counted from 0, header and
        comments aside).
    InputError
        An argument is of a wrong type, or arguments contradict each other.
    NegativeCycleError
        A self-loop has a negative weight.
    DeviceError
        ``device="cuda"`` without a GPU.

    Notes
    -----
    Every binary or compressed file carries its length, so one that was cut short is refused. A plain text file does not:
    if it was cut within its last number, nothing tells.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("src,dst,weight\\n1,2,5\\n2,3,1\\n")
    >>> read_graph(folder / "edges.csv", device="cpu")
    <Graph: 3 vertices, 2 stored edges, directed, integer weights, cpu>
    """
    paths = arguments.paths_of("paths", paths)
    directed = arguments.flag("directed", directed)
    weighted = None if weighted is None else arguments.flag("weighted", weighted)
    for name, value in (("format", format), ("id_type", id_type), ("device", device)):
        arguments.text(name, value)
    for name, given in (
        ("src_column", src_column),
        ("dst_column", dst_column),
        ("weight_column", weight_column),
        ("delimiter", delimiter),
    ):
        if given is not None:
            arguments.text(name, given, "a string or None")
    arguments.choice("header", header, ("auto", "yes", "no"))
    arguments.choice("weight_type", weight_type, WEIGHT_TYPES)
    if vertices is not None and not isinstance(vertices, str | os.PathLike):
        vertices = arguments.ids("vertices", vertices)
    options = ReadOptions(
        src_column=src_column,
        dst_column=dst_column,
        weight_column=weight_column,
        weighted=weighted,
        header=header,
        delimiter=delimiter,
        id_type=id_type,
        device=_device(device),
    )
    rules = _Rules(directed=directed, weight_type=weight_type)
    begun = time.perf_counter()
    with _memory_given_back():
        edges = [read_edges(paths, options, format)]
        read = time.perf_counter()
        columns = edges[0].columns
        graph = _build(edges.pop(), options.device, vertices, rules)  # pop: _build can then free the edges early
    seconds = {"read": read - begun, "build": time.perf_counter() - read}
    return replace(graph, report=replace(graph.report.with_columns(columns), seconds=seconds))


@contextmanager
def _memory_given_back() -> Iterator[None]:
    """Let pyarrow allocate from the system inside the context.

    Its own pools would hold the memory of decoding, as large as the edge list or larger, while the graph is built. Measured
    with USA-road-NE, the peak is 3.7 times the edge list with mimalloc and 2.0 to 2.8 times with the system's.
    """
    import pyarrow

    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(before)


@dataclass(frozen=True, kw_only=True)
class _Rules:
    """Options of the builder, common to all ways of numbering vertices."""

    directed: bool
    weight_type: str


def _device(device: str) -> str:
    if device == "auto":
        return "cuda" if cuda.available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise DeviceError(f"{option_text('device')} {device!r} is none of 'auto', 'cpu', 'cuda'")
    if device == "cuda":
        cuda.require()
    return device


def _build(edges: EdgeList, device: str, vertices: Any, rules: _Rules) -> Graph:
    """Build the graph. Errors of the builder name the file and the row.

    Columns are removed from the edge list one by one, and no name here refers to the arrays, so each is freed after use.
    """
    table: Any = edges.table
    columns = {role: table[role] for role in edges.columns.roles}
    del table
    edges = replace(edges, table=None)
    try:
        if _are_strings(columns["src"]) != _are_strings(columns["dst"]):
            how = f"{option_text('id_type', 'string')} takes both as strings"
            raise EdgeListError(f"one end is an integer, the other a string; {how}")
        if isinstance(vertices, str | os.PathLike):
            vertices = read_ids(vertices, "vertices").ids(_are_strings(columns["src"]))
        if _are_strings(columns["src"]):
            return _from_strings(columns, device, edges.n_vertices, vertices, rules)
        arrays = {role: _array(columns.pop(role), device) for role in list(columns)}
        if edges.n_vertices is not None and vertices is None:
            return _from_range(arrays, edges.n_vertices, rules)
        kind = arrays["src"].dtype
        more: Any = None if vertices is None else _integers(vertices, kind)
        if edges.n_vertices is not None:
            more = np.union1d(np.arange(1, edges.n_vertices + 1, dtype=kind), more)
        return graph_from_edges(
            arrays.pop("src"),
            arrays.pop("dst"),
            arrays.pop("weight", None),
            directed=rules.directed,
            vertices=cuda.cp.asarray(more) if more is not None and device == "cuda" else more,
            weight_type=rules.weight_type,
        )
    except EdgeListError as error:
        raise _placed(error, edges) from None


def _are_strings(column: Any) -> bool:
    """Whether a column is pyarrow text; cuDF columns are always numbers here."""
    import pyarrow.types as kinds

    return hasattr(column, "chunks") and not kinds.is_integer(column.type)


def _array(column: Any, device: str) -> Array:
    """Return a column as an array on the device, without a copy if its memory layout allows it."""
    if not hasattr(column, "chunks"):
        return column.values  # cuDF: the column's own memory, as CuPy
    if column.num_chunks == 1:
        array = column.chunk(0).to_numpy(zero_copy_only=True)
    else:
        array = np.concatenate([chunk.to_numpy(zero_copy_only=True) for chunk in column.chunks])
    return cuda.cp.asarray(array) if device == "cuda" else array


def _integers(vertices: Any, kind: np.dtype) -> np.ndarray:
    """Return the user's additional vertices, in the type of the ids if they fit."""
    try:
        array = arguments.as_array("vertices", vertices)
    except InputError as error:
        raise InputError(f"vertices must be integers like the ids of the edge list: {error}") from None
    if array.size == 0:
        return np.zeros(0, kind)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputError(f"vertices must be integers like the ids of the edge list, not {array.dtype}")
    limits = np.iinfo(kind)
    fits = limits.min <= int(array.min()) and int(array.max()) <= limits.max
    return array.astype(kind) if fits else array


def _from_range(arrays: dict[str, Array], n_vertices: int, rules: _Rules) -> Graph:
    """Build from ids that are known to lie in 1..n."""
    kind = arrays["src"].dtype
    numbers = []
    for role in ("src", "dst"):
        number = arrays.pop(role).astype(index_dtype(n_vertices))
        number -= 1
        numbers.append(number)
    return graph_from_numbers(
        numbers[0],
        numbers[1],
        arrays.pop("weight", None),
        ids=namespace(numbers[0]).arange(1, n_vertices + 1, dtype=kind),
        directed=rules.directed,
        weight_type=rules.weight_type,
    )


def _from_strings(columns: dict[str, Any], device: str, n_vertices: int | None, vertices: Any, rules: _Rules) -> Graph:
    """Number strings by the order of their UTF-8 bytes, on the host."""
    import pyarrow
    import pyarrow.compute as compute

    more = [] if n_vertices is None else [str(i) for i in range(1, n_vertices + 1)]
    more += [] if vertices is None else list(vertices)
    if not all(isinstance(vertex, str) for vertex in more):
        raise InputError("vertices must be strings like the ids of the edge list")
    halves = [vertex for vertex in more if not arguments.is_encodable(vertex)]
    if halves:
        raise InputError(f"vertices holds {arguments.describe(halves[0])}, which is not valid Unicode text")
    text = pyarrow.string() if columns["src"].type == columns["dst"].type == pyarrow.string() else pyarrow.large_string()
    ends = {role: columns.pop(role).cast(text) for role in ("src", "dst")}
    ids = compute.unique(pyarrow.chunked_array([*ends["src"].chunks, *ends["dst"].chunks, pyarrow.array(more, text)], text))
    ids = ids.take(compute.sort_indices(ids))
    if ids.nbytes <= np.iinfo(np.int32).max:
        ids = ids.cast(pyarrow.string())
    kind = index_dtype(len(ids))
    numbers = []
    for role in ("src", "dst"):
        codes = compute.index_in(ends.pop(role), value_set=ids.cast(text))
        numbers.append(_array(codes, device).astype(kind, copy=False))
    weight = _array(columns.pop("weight"), device) if "weight" in columns else None
    return graph_from_numbers(
        numbers[0], numbers[1], weight, ids=ids, directed=rules.directed, weight_type=rules.weight_type
    )


def _placed(error: EdgeListError, edges: EdgeList) -> EdgeListError:
    """Name the file, the column and the row in the file in an error about a row of the whole edge list."""
    if error.row is None:
        files = edges.rows[0][0] if len(edges.rows) == 1 else f"{edges.rows[0][0]} and {len(edges.rows) - 1} more"
        return EdgeListError(f"{files}: {error.message}", None, error.column)
    name, row = edges.place(error.row)
    column = f", column {edges.columns.roles[error.column]!r}" if error.column in edges.columns.roles else ""
    # The builder counts rows over all files.
    message = error.message.replace(f"weight of row {error.row} ", "the weight ")
    return EdgeListError(f"{name}, row {row}{column}: {message}", error.row, error.column)
