"""Write results about vertices as GeoParquet files: points with pyarrow alone, and concave hulls
with shapely.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import InputError, UnknownVertexError, how_to_install, listed, one_line
from ..labels import VERTEX, columns_in_order, no_ids, table_of_vertices
from ..runtime.regular_files import written_whole

GEOMETRY = "geometry"
# Well-known binary of a point, and of a line between two.
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("at", "<f8", (1, 2))])
_LINE = np.dtype([("order", "u1"), ("kind", "<u4"), ("points", "<u4"), ("at", "<f8", (2, 2))])
_CHUNK = 2**24  # shapes, so that their bytes fit offsets of 32 bits
CRS84 = "OGC:CRS84"
RATIO = 0.3  # of hulls, between following all points and the convex hull
# of three vertices and more, of two or in a line, of one
HULLS = ["Polygon", "LineString", "Point"]


def write_geoparquet(
    frame: Any,
    path: Any,
    vertices: Any,
    *,
    x: str = "x",
    y: str = "y",
    crs: Any = CRS84,
    hulls: bool = False,
    ratio: float = RATIO,
) -> None:
    """Write a frame with a column ``vertex``, such as that of ``result="isochrones"``, or with
    edges, as a GeoParquet file.

    Parameters
    ----------
    frame : pandas.DataFrame, cudf.DataFrame or pyarrow.Table
        The file has a point per row. A frame of edges, such as that of ``flows``, becomes a line
        per edge. A frame of ``paths`` becomes a row per path: the line through its vertices, or a
        point if it has one vertex, their number ``vertices``, and the other columns as they are at
        its end.
    vertices : table
        With the columns ``vertex``, and those of the coordinates; or with an index of ids in place
        of ``vertex``, as OSMnx's nodes have it. It may have more vertices than the frame.
    x, y : str
        Columns of the coordinates: longitude and latitude, unless ``crs`` says otherwise.
    crs : "OGC:CRS84", mapping or None
        The coordinate reference system: longitude and latitude of WGS 84; any other in PROJJSON, as
        ``pyproj.CRS.to_json_dict`` returns it; None if it is not known.
    hulls : bool
        True: a concave hull per source and band, of the vertices within that band's cutoff, from a
        frame of isochrones. The file has the columns ``source, band, vertices, geometry``. It needs
        shapely 2.1 or newer: the extra ``geo``.
    ratio : float
        Of the hulls: 0 follows the points as closely as possible, 1 is the convex hull; see
        ``shapely.concave_hull``.

    Raises
    ------
    InputError
        A column is missing, or the frame has a column ``geometry``; coordinates are not finite
        numbers; a vertex occurs twice in ``vertices``; ``crs`` or ``ratio`` is something else;
        shapely is missing.
    UnknownVertexError
        A vertex of the frame is not in ``vertices``.

    Examples
    --------
    >>> bands = sssp_many(graph, [5], result="isochrones", cutoffs=[600, 1200])  # doctest: +SKIP
    >>> write_geoparquet(bands, "bands.parquet", vertices)  # doctest: +SKIP
    >>> write_geoparquet(bands, "hulls.parquet", vertices, hulls=True)  # doctest: +SKIP
    """
    file = _path(path)
    entry = crs_entry(crs)
    of_edges = {"src", "dst"} <= set(getattr(frame, "column_names", getattr(frame, "columns", ())))
    if arguments.flag("hulls", hulls):
        needed = ["source", "vertex", "band"]
    elif of_edges:
        needed = []
    else:
        needed = ["vertex"]
    table, coordinates = on_map(frame, vertices, x, y, needed)
    if not hulls and GEOMETRY in table.column_names:
        raise InputError(f"frame has a column {GEOMETRY!r} already; rename it")
    if hulls:
        arguments.real("ratio", ratio)
        if not 0 <= ratio <= 1:
            raise InputError(f"ratio must be from 0 to 1, not {arguments.describe(ratio)}")
        table = make_hulls(table, coordinates, float(ratio))
        kinds = HULLS
        bounds = bounds_of_hulls(table)
    elif "position" in table.column_names and {"pair", "target"} & set(table.column_names):
        table, bounds = make_lines(table, coordinates)
        kinds = ["LineString", "Point"]
    else:
        names = ("vertex",) if "vertex" in table.column_names else ("src", "dst")
        bounds = find_bounds(np.concatenate([coordinates.points(table[name]) for name in names]))
        table, kinds = make_shapes(table, coordinates)
    metadata = geo_metadata(kinds, entry, bounds)
    with written_whole(Path(file)) as partial:
        table = table.replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(table, partial, compression="zstd")


def on_map(
    frame: Any, vertices: Any, x: str = "x", y: str = "y", needed: Sequence[str] = ("vertex",)
) -> tuple[Any, Coordinates]:
    """Return a frame as a table of pyarrow, and where vertices are.

    InputError if a column is missing, coordinates are no numbers, or a vertex occurs twice in
    ``vertices``.
    """
    check_names_of_coordinates(x, y)
    table = _arrow(frame, "frame")
    _require_columns("frame", table.column_names, needed)
    return table, read_coordinates(vertices, x, y)


def check_names_of_coordinates(x: str, y: str) -> None:
    """Raise InputError unless the names of the columns of coordinates are texts."""
    for name, value in (("x", x), ("y", y)):
        arguments.text(name, value, "the name of a column of vertices")


def read_coordinates(vertices: Any, x: str, y: str) -> Coordinates:
    """Return where the vertices of a table are; InputError as ``on_map``."""
    given = table_of_vertices("vertices", vertices)
    if given is None:
        raise InputError(
            f"vertices must be a data frame or a pyarrow table, not {arguments.describe(vertices)}"
        )
    ids, columns, are_of_index = given
    if ids is None:
        raise no_ids("vertices")
    _require_columns("vertices", [*(() if are_of_index else (VERTEX,)), *columns], (x, y))
    places = columns_in_order("vertices", {VERTEX: ids, x: columns[x], y: columns[y]})
    at_x, at_y = (to_numbers(f"vertices[{name!r}]", places[name]) for name in (x, y))
    for name, numbers in ((x, at_x), (y, at_y)):
        arguments.size(f"vertices[{name!r}]", numbers, len(ids), "one per row")
    return Coordinates(ids_column("vertices", places[VERTEX]), at_x, at_y, (x, y))


def _require_columns(name: str, columns: Sequence[Any], needed: Sequence[str]) -> None:
    for column in needed:
        if column not in columns:
            raise InputError(f"{name} has no column {column!r}; it has {listed(columns)}")


def ids_column(name: str, ids: Any) -> Any:
    """Return ids as an array of pyarrow: integers of any width, or strings.

    InputError if they are something else, or one is missing; no value is converted.
    """
    try:
        column = arguments.arrow(name, ids)
        if not isinstance(column, (pyarrow.Array, pyarrow.ChunkedArray)):
            if hasattr(column, "dtype"):
                values = column
            else:
                values = arguments.ids(name, column)
            column = pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot be converted to a column of pyarrow: {one_line(error)}"
        ) from None
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        row = compute.index(column.is_null(), True).as_py()
        raise InputError(f"{name}, row {row}: it holds no vertex; drop such rows")
    if kinds.is_integer(column.type) or not len(column):
        return column
    if not (
        kinds.is_string(column.type)
        or kinds.is_large_string(column.type)
        or kinds.is_string_view(column.type)
    ):
        raise InputError(
            f"{name} holds ids of type {column.type}; take those of the graph, integers or strings"
        )
    return column.cast(pyarrow.large_string())


def to_numbers(name: str, column: Any) -> np.ndarray:
    """Return a column of coordinates as float64."""
    return arguments.as_array(name, column).astype(np.float64)


def find_rows(vertices: Any, known: Any, owner: str) -> Any:
    """Return the row of each of some ids among known ones, null where it has none.

    Ids are equal or they are not: none is converted. ``owner`` has the ids, for errors.
    """
    given = ids_column(f"the vertices of {owner}", vertices)
    known = ids_column("vertices", known)
    if not len(given) or not len(known):
        return pyarrow.nulls(len(given), pyarrow.int32())
    if kinds.is_integer(given.type) != kinds.is_integer(known.type):
        return pyarrow.nulls(len(given), pyarrow.int32())
    if given.type != known.type:
        given = _integers_in_type(given.to_numpy(), known.type)
    return compute.index_in(given, value_set=known)


def _integers_in_type(integers: np.ndarray, kind: Any) -> Any:
    """Return integers as an array of pyarrow of another type, null where that does not hold one."""
    dtype = np.dtype(kind.to_pandas_dtype())
    limits = np.iinfo(dtype)
    fits = (integers >= limits.min) & (integers <= limits.max)
    return pyarrow.array(np.where(fits, integers, 0).astype(dtype), mask=~fits)


class Coordinates:
    """Where vertices are: a pyarrow array of ids, and float64 arrays of the same length, with the
    names of their columns.

    InputError if an id is there twice.
    """

    def __init__(
        self, vertices: Any, x: np.ndarray, y: np.ndarray, names: tuple[str, str] = ("x", "y")
    ):
        self._known = ids_column("vertices", vertices)
        self._x = x
        self._y = y
        self._names = names
        if len(compute.unique(self._known)) < len(self._known):
            counts = compute.value_counts(self._known)
            first = counts.field("values")[
                compute.index(compute.greater(counts.field("counts"), 1), True).as_py()
            ]
            raise InputError(
                f"vertices has vertex {first.as_py()!r} twice; give one row per vertex"
            )

    def has(self, vertices: Any) -> np.ndarray:
        """Return which of these ids have coordinates."""
        return (
            find_rows(vertices, self._known, "the graph").is_valid().to_numpy(zero_copy_only=False)
        )

    def of_those_known(self, vertices: Any) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return which of these ids have coordinates, and the coordinates of those.

        InputError if one of these is not finite.
        """
        column = ids_column("the vertices of the graph", vertices)
        is_known = self.has(column)
        return is_known, self.of(column.filter(pyarrow.array(is_known)))

    def points(self, vertices: Any) -> np.ndarray:
        """Return the coordinates of a column of ids, of shape (k, 2)."""
        return np.stack(self.of(vertices), axis=1)

    def of(self, vertices: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates of a column of ids.

        InputError if the ids have another type or a coordinate is not finite, UnknownVertexError if
        a vertex has none.
        """
        rows = find_rows(vertices, self._known, "frame")
        if rows.null_count == len(rows) > 0 and kinds.is_integer(vertices.type) != kinds.is_integer(
            self._known.type
        ):
            raise InputError(
                f"the vertices of frame are {vertices.type}, and those "
                f"of vertices {self._known.type}"
            )
        if rows.null_count:
            missing = vertices.filter(rows.is_null())
            raise UnknownVertexError(
                f"vertices lacks {len(missing)} vertices of frame, the first {missing[0].as_py()!r}"
            )
        places = self._x[rows.to_numpy()], self._y[rows.to_numpy()]
        for name, numbers in zip(self._names, places, strict=True):
            wrong = np.flatnonzero(~np.isfinite(numbers))
            if wrong.size:
                raise InputError(
                    f"vertices[{name!r}] is {numbers[wrong[0]]} at vertex "
                    f"{vertices[int(wrong[0])].as_py()!r}"
                )
        return places


def make_shapes(table: Any, coordinates: Coordinates) -> tuple[Any, list[str]]:
    """Return a table with a column ``geometry``, and its types: the point of each row's vertex, or
    the line of its edge.
    """
    names = ("vertex",) if "vertex" in table.column_names else ("src", "dst")
    at = np.stack([coordinates.points(table[name]) for name in names], axis=1)
    shapes = np.zeros(len(at), _LINE if len(names) == 2 else _POINT)
    shapes["order"] = 1
    shapes["kind"] = len(names)
    shapes["at"] = at
    if len(names) == 2:
        shapes["points"] = 2
    chunks = []
    for begin in range(0, max(1, len(at)), _CHUNK):
        chunk = shapes[begin : begin + _CHUNK]
        offsets = np.arange(chunk.size + 1, dtype=np.int32) * chunk.itemsize
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(chunk)]
        chunks.append(pyarrow.Array.from_buffers(pyarrow.binary(), chunk.size, buffers))
    return table.append_column(GEOMETRY, pyarrow.chunked_array(chunks)), [
        ("Point", "LineString")[len(names) - 1]
    ]


def make_lines(table: Any, coordinates: Coordinates) -> tuple[Any, list[float] | None]:
    """Return a table with a row and a line per path of a frame of ``paths``, and their bounds.

    InputError if the rows do not stand in the order of the paths.
    """
    if "vertices" in table.column_names:
        raise InputError(
            "frame has a column 'vertices', which has the number of "
            "vertices of a path here; rename it"
        )
    position = arguments.as_array("frame['position']", table["position"])
    begins = position == 0
    if position.size and not (
        begins[0] and (begins[1:] | (position[1:] == position[:-1] + 1)).all()
    ):
        raise InputError(
            "frame has paths in another order of rows than that of "
            "paths(); sort it by path and position"
        )
    points = coordinates.points(table["vertex"]).astype("<f8")
    first = np.flatnonzero(begins)
    end = np.append(first[1:], position.size)[: first.size]
    # Well-known binary, little-endian: a line is 2, its number of points, and these; a path of one
    # vertex is a point, which is 1 and itself.
    lines = []
    for begin, after in zip(first.tolist(), end.tolist(), strict=True):
        n = after - begin
        head = np.array([1] if n == 1 else [2, n], "<u4").tobytes()
        lines.append(b"\1" + head + points[begin:after].tobytes())
    kept = [name for name in table.column_names if name not in ("position", "vertex", "edge")]
    last = pyarrow.array(end - 1)  # the row of the path's end
    columns = {name: table[name].take(last) for name in kept}
    columns |= {
        "vertices": pyarrow.array(end - first),
        GEOMETRY: pyarrow.array(lines, pyarrow.binary()),
    }
    return pyarrow.table(columns), find_bounds(points)


def find_bounds(points: np.ndarray) -> list[float] | None:
    """Return the smallest x and y and the largest ones of points of shape (k, 2); None if there is
    none.
    """
    if points.size:
        return [*points.min(axis=0).tolist(), *points.max(axis=0).tolist()]
    return None


def shapely_module() -> Any:
    """Return the module shapely, which hulls need; InputError if it is not installed, or older than
    2.1.
    """
    try:
        import shapely
    except ImportError:
        shapely = None
    if shapely is None or tuple(int(part) for part in shapely.__version__.split(".")[:2]) < (2, 1):
        raise InputError(f"hulls need shapely 2.1 or newer; install it by: {how_to_install('geo')}")
    return shapely


def make_hulls(table: Any, coordinates: Coordinates, ratio: float = RATIO) -> Any:
    """Return a table ``source, band, vertices, geometry``: a concave hull per source and band.

    The table has the columns ``source, vertex, band``; the rows of a source stand together.
    """
    shapely = shapely_module()
    points = coordinates.points(table["vertex"])
    source = table["source"].combine_chunks()
    band = table["band"].to_numpy()
    place = compute.index_in(source, value_set=compute.unique(source)).to_numpy()
    order = np.lexsort([band, place])  # stable: within a band as in the table
    place = place[order]
    band = band[order]
    points = points[order]
    firsts = np.flatnonzero(np.diff(place, prepend=-1))
    rows = []
    hulls = []
    counts = []
    for begin, end in zip(
        firsts.tolist(), [*firsts[1:].tolist(), place.size][: firsts.size], strict=True
    ):
        ends = np.flatnonzero(np.diff(band[begin:end], append=np.nan)) + 1 + begin
        # the vertices within a cutoff are those of this band and of all before it
        for last in ends.tolist():
            hull = shapely.concave_hull(shapely.multipoints(points[begin:last]), ratio=ratio)
            hulls.append(shapely.to_wkb(hull, byte_order=1))
            rows.append(last - 1)
            counts.append(last - begin)
    chosen = np.array(rows, np.int64)
    return pyarrow.table(
        {
            "source": source.take(pyarrow.array(order[chosen])),
            "band": pyarrow.array(band[chosen]),
            "vertices": pyarrow.array(counts, pyarrow.int64()),
            GEOMETRY: pyarrow.array(hulls, pyarrow.binary()),
        }
    )


def bounds_of_hulls(table: Any) -> list[float] | None:
    """Return the smallest x and y and the largest ones of a table of hulls; None if it has no row."""
    shapely = shapely_module()
    if not table.num_rows:
        return None
    return [
        float(value)
        for value in shapely.total_bounds(shapely.from_wkb(table[GEOMETRY].to_pylist()))
    ]


def geo_metadata(
    kinds: Sequence[str], crs: Mapping[str, Any], bounds: list[float] | None = None
) -> dict[str, str]:
    """Return the metadata of a GeoParquet file whose geometry is in the column ``geometry``.

    ``kinds`` are the types of the geometries, ``crs`` is as ``crs_entry`` returns it, and
    ``bounds`` are the smallest x and y, and the largest.
    """
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": list(kinds), **crs}
    if bounds is not None:
        column["bbox"] = bounds
    return {
        "geo": json.dumps(
            {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
        )
    }


def _path(path: Any) -> str:
    if not arguments.is_path(path):
        raise InputError(f"path must be the path of a file, not {arguments.describe(path)}")
    return os.fspath(path)


def crs_entry(crs: Any) -> dict[str, Any]:
    """The entry of the metadata; the format takes WGS 84 where there is none."""
    if isinstance(crs, str) and crs == CRS84:
        return {}
    if crs is None or isinstance(crs, Mapping):
        try:
            return {
                "crs": None if crs is None else json.loads(json.dumps(dict(crs), allow_nan=False))
            }
        except (TypeError, ValueError):
            raise InputError(
                "crs must be a mapping in PROJJSON, which holds texts, numbers, lists and mappings"
            ) from None
    raise InputError(
        f"crs must be {CRS84!r}, a mapping in PROJJSON, or None, not {arguments.describe(crs)}"
    )


def _arrow(value: Any, name: str) -> Any:
    """A table of pyarrow of a frame of any library."""
    table = None
    try:
        if isinstance(value, pyarrow.Table):
            table = value
        elif isinstance(value, Mapping):
            table = pyarrow.table(dict(value))
        elif hasattr(value, "columns") and hasattr(value, "to_arrow"):
            table = pyarrow.table(value.to_arrow())
        elif hasattr(value, "columns") and hasattr(value, "iloc"):
            table = pyarrow.Table.from_pandas(value, preserve_index=False)
        if table is not None:
            table.validate(full=True)
            return table
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot be converted to a table of pyarrow: {one_line(error)}"
        ) from None
    raise InputError(
        f"{name} must be a data frame or a pyarrow table, not {arguments.describe(value)}"
    )
