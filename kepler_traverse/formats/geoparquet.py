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
from .sizes import is_string_type

GEOMETRY = "geometry"  # the column of geometries
# Well-known binary (WKB) of a point, and of a line between two points: the order of bytes, 1 for
# little-endian; the kind, 1 for a point and 2 for a line; of a line the number of points; and x and
# y of each point (``at``).
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("at", "<f8", (1, 2))])
_LINE = np.dtype([("order", "u1"), ("kind", "<u4"), ("points", "<u4"), ("at", "<f8", (2, 2))])
_CHUNK = 2**24  # shapes, so that their bytes fit offsets of 32 bits
CRS84 = "OGC:CRS84"  # longitude and latitude of WGS 84
RATIO = 0.3  # of hulls, between 0, which follows all points, and 1, the convex hull
# the types of hulls: of three vertices and more, of two or in a line, of one
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
    file = _path_text(path)
    # what the metadata say of the reference system; InputError if it is none
    entry = crs_entry(crs)
    # A table of Arrow has its names in ``column_names``: its ``columns`` are values.
    names = getattr(frame, "column_names", getattr(frame, "columns", ()))
    if arguments.flag("hulls", hulls):
        needed = ["source", "vertex", "band"]
    elif {"src", "dst"} <= set(names):
        needed = []
    else:
        needed = ["vertex"]
    table, coordinates = read_map_frame(frame, vertices, x, y, needed)
    if not hulls and GEOMETRY in table.column_names:
        raise InputError(f"frame has a column {GEOMETRY!r} already; rename it")

    # A table with the geometries: hulls; lines of paths, of a frame with a row per vertex of each
    # path, its position there, and the pair or target of the path; or points of vertices and lines
    # of edges.
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
        points = [coordinates.points(table[name]) for name in _columns_of_ends(table)]
        bounds = find_bounds(np.concatenate(points))
        table, kinds = make_shapes(table, coordinates)

    # ``bounds``: the smallest x and y, then the largest; None without a point
    metadata = geo_metadata(kinds, entry, bounds)
    with written_whole(Path(file)) as partial:  # takes the place of ``file`` at the end
        table = table.replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(table, partial, compression="zstd")


def read_map_frame(
    frame: Any, vertices: Any, x: str = "x", y: str = "y", needed: Sequence[str] = ("vertex",)
) -> tuple[Any, Coordinates]:
    """Return a frame as a table of pyarrow, and the coordinates of the vertices of a table.

    ``x`` and ``y`` are the columns of ``vertices`` with coordinates, and ``needed`` names of
    columns that the frame must have. InputError if a column is missing, coordinates are no numbers,
    or a vertex occurs twice in ``vertices``.
    """
    check_names_of_coordinates(x, y)
    table = _to_arrow(frame, "frame")
    _require_columns("frame", table.column_names, needed)
    return table, read_coordinates(vertices, x, y)


def check_names_of_coordinates(x: str, y: str) -> None:
    """Raise InputError unless the names of the columns of coordinates are texts."""
    for name, value in (("x", x), ("y", y)):
        arguments.text(name, value, "the name of a column of vertices")


def read_coordinates(vertices: Any, x: str, y: str) -> Coordinates:
    """Return the coordinates of the vertices of a table, whose columns ``x`` and ``y`` have them.

    The ids are in a column ``vertex``, or another one that is called so, or in the index.
    InputError if a column is missing, coordinates are no numbers, or a vertex occurs twice.
    """
    ids_and_columns = table_of_vertices("vertices", vertices)
    if ids_and_columns is None:
        raise InputError(
            f"vertices must be a data frame or a pyarrow table, not {arguments.describe(vertices)}"
        )
    # ``columns`` are all columns but the ids, by name. ``are_of_index``: whether the ids are the
    # table's index.
    ids, columns, are_of_index = ids_and_columns
    if ids is None:
        raise no_ids("vertices")
    known = list(columns)  # without the ids
    if not are_of_index:
        known.insert(0, VERTEX)
    _require_columns("vertices", known, (x, y))
    # Columns of a mapping may be Series, whose labels say in which order their rows are.
    places = columns_in_order("vertices", {VERTEX: ids, x: columns[x], y: columns[y]})
    numbers = []
    for name in (x, y):
        column = to_numbers(f"vertices[{name!r}]", places[name])
        # ``size`` returns the column, or raises InputError if it has not a number per id.
        numbers.append(arguments.size(f"vertices[{name!r}]", column, len(ids), "one per row"))
    return Coordinates(ids_column("vertices", places[VERTEX]), numbers[0], numbers[1], (x, y))


def _require_columns(name: str, columns: Sequence[Any], needed: Sequence[str]) -> None:
    """Raise InputError, which calls a table ``name``, if a column of ``needed`` is none of its
    ``columns``.
    """
    for column in needed:
        if column not in columns:
            raise InputError(f"{name} has no column {column!r}; it has {listed(columns)}")


def ids_column(name: str, ids: Any) -> Any:
    """Return ids as an array of pyarrow: integers of any width, or large strings.

    ``ids`` are a column of any library, or a list. InputError, which calls them ``name``, if they
    are something else, or one is missing; integers do not become strings, nor strings integers.
    """
    try:
        # validates a column in Arrow's memory; a list or an array is returned as it is
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

    # One array of plain values, of which none is missing.
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        row = compute.index(column.is_null(), True).as_py()
        raise InputError(f"{name}, row {row}: it holds no vertex; drop such rows")
    if kinds.is_integer(column.type) or not len(column):
        return column
    if not is_string_type(column.type):
        raise InputError(
            f"{name} holds ids of type {column.type}; take those of the graph, integers or strings"
        )
    return column.cast(pyarrow.large_string())


def to_numbers(name: str, column: Any) -> np.ndarray:
    """Return a column of coordinates as float64; InputError, which calls it ``name``, if it holds
    no numbers.
    """
    return arguments.as_array(name, column).astype(np.float64)


def find_rows(vertices: Any, known: Any, owner: str) -> Any:
    """Return for each id of ``vertices`` its position in ``known``, an int32 array of pyarrow, null
    where it is none of the known ids.

    Both are columns of ids. An integer is never equal to a string. ``owner`` is what errors call
    the table that has the ids of ``vertices``, such as "frame".
    """
    ids = ids_column(f"the vertices of {owner}", vertices)
    known = ids_column("vertices", known)
    if not len(ids) or not len(known):
        return pyarrow.nulls(len(ids), pyarrow.int32())
    if kinds.is_integer(ids.type) != kinds.is_integer(known.type):
        return pyarrow.nulls(len(ids), pyarrow.int32())
    # ``index_in`` takes ids of one type. All strings are large strings, so these are integers.
    if ids.type != known.type:
        ids = _integers_in_type(ids.to_numpy(), known.type)
    return compute.index_in(ids, value_set=known)


def _integers_in_type(integers: np.ndarray, kind: Any) -> Any:
    """Return integers as an array of pyarrow of the integer type ``kind``, null in place of an
    integer that the type does not hold.
    """
    dtype = np.dtype(kind.to_pandas_dtype())
    limits = np.iinfo(dtype)
    fits = (integers >= limits.min) & (integers <= limits.max)
    return pyarrow.array(np.where(fits, integers, 0).astype(dtype), mask=~fits)


class Coordinates:
    """Where vertices are.

    ``vertices`` is a column of ids, and ``x`` and ``y`` are float64 arrays of the same length.
    ``names`` are what errors call the columns of x and y. InputError if an id is there twice.
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
            place = compute.index(compute.greater(counts.field("counts"), 1), True).as_py()
            repeated = counts.field("values")[place].as_py()
            raise InputError(f"vertices has vertex {repeated!r} twice; give one row per vertex")

    def has(self, vertices: Any) -> np.ndarray:
        """Return a bool per id of the column ``vertices``: whether it has coordinates."""
        rows = find_rows(vertices, self._known, "the graph")
        return np.asarray(rows.is_valid())

    def look_up_known(self, vertices: Any) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return a bool per id of the column ``vertices``: whether it has coordinates; and two
        float64 arrays with x and y of the ids that have coordinates, in their order.

        InputError if one of these coordinates is not finite.
        """
        column = ids_column("the vertices of the graph", vertices)
        is_known = self.has(column)
        return is_known, self.look_up(column.filter(pyarrow.array(is_known)))

    def points(self, vertices: Any) -> np.ndarray:
        """Return x and y of each id of a column of pyarrow, float64 of shape (k, 2); errors are as
        of ``look_up``.
        """
        return np.stack(self.look_up(vertices), axis=1)

    def look_up(self, vertices: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of the ids of a column of pyarrow, float64 of shape (k,) each.

        InputError if the ids have another type or a coordinate is not finite, UnknownVertexError if
        a vertex has none.
        """
        rows = find_rows(vertices, self._known, "frame")
        are_integers = kinds.is_integer(vertices.type)
        are_known_integers = kinds.is_integer(self._known.type)
        # If no id is found, the types may differ, which says more than that all are missing.
        if rows.null_count == len(rows) > 0 and are_integers != are_known_integers:
            raise InputError(
                f"the vertices of frame are {vertices.type}, and those "
                f"of vertices {self._known.type}"
            )
        if rows.null_count:
            missing = vertices.filter(rows.is_null())
            raise UnknownVertexError(
                f"vertices lacks {len(missing)} vertices of frame, the first {missing[0].as_py()!r}"
            )
        x = self._x[rows.to_numpy()]
        y = self._y[rows.to_numpy()]
        for name, numbers in zip(self._names, (x, y), strict=True):
            wrong = np.flatnonzero(~np.isfinite(numbers))
            if wrong.size:
                raise InputError(
                    f"vertices[{name!r}] is {numbers[wrong[0]]} at vertex "
                    f"{vertices[int(wrong[0])].as_py()!r}"
                )
        return x, y


def make_shapes(table: Any, coordinates: Coordinates) -> tuple[Any, list[str]]:
    """Return a table with a column ``geometry`` besides, in well-known binary, and the type of its
    geometries as a list: "Point" or "LineString".

    The geometry of a row is the point of its ``vertex``, or the line from its ``src`` to its
    ``dst``.
    """
    names = _columns_of_ends(table)
    # Of shape (rows, 1 or 2, 2): x and y of each end of each row.
    points = np.stack([coordinates.points(table[name]) for name in names], axis=1)

    # Well-known binary, little-endian: a point is of kind 1, a line of kind 2.
    is_of_edges = len(names) == 2
    shapes = np.zeros(len(points), _LINE if is_of_edges else _POINT)
    shapes["order"] = 1
    shapes["kind"] = len(names)
    shapes["at"] = points
    if is_of_edges:
        shapes["points"] = 2

    # A binary column over the bytes of the shapes, which are all of one size. It has one chunk at
    # least: without one, pyarrow would not know its type.
    chunks = []
    for begin in range(0, max(1, len(points)), _CHUNK):
        chunk = shapes[begin : begin + _CHUNK]
        offsets = np.arange(chunk.size + 1, dtype=np.int32) * chunk.itemsize
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(chunk)]
        chunks.append(pyarrow.Array.from_buffers(pyarrow.binary(), chunk.size, buffers))
    kind = "LineString" if is_of_edges else "Point"
    return table.append_column(GEOMETRY, pyarrow.chunked_array(chunks)), [kind]


def _columns_of_ends(table: Any) -> tuple[str, ...]:
    """Return the names of the columns with the vertices of a row's shape: ``vertex``, or ``src``
    and ``dst`` of a table of edges.
    """
    if "vertex" in table.column_names:
        return ("vertex",)
    return ("src", "dst")


def make_lines(table: Any, coordinates: Coordinates) -> tuple[Any, list[float] | None]:
    """Return a table with a row per path, made of ``table``, a result of ``paths`` with a row per
    vertex of each path; and the bounds of all paths, see ``find_bounds``.

    The row of a path has its line in the column ``geometry``, in well-known binary, and the number
    of its vertices in the column ``vertices``. All other columns have the value of the path's last
    row.
    InputError if the rows do not stand in the order of the paths.
    """
    if "vertices" in table.column_names:
        raise InputError(
            "frame has a column 'vertices', which has the number of "
            "vertices of a path here; rename it"
        )
    # Rows of a path are numbered from 0 on, so that a 0 begins the next path.
    position = arguments.as_array("frame['position']", table["position"])
    is_begin = position == 0
    is_next = position[1:] == position[:-1] + 1
    if position.size and not (is_begin[0] and (is_begin[1:] | is_next).all()):
        raise InputError(
            "frame has paths in another order of rows than that of "
            "paths(); sort it by path and position"
        )
    points = coordinates.points(table["vertex"]).astype("<f8")
    first = np.flatnonzero(is_begin)  # the first row of each path
    # One behind the last row of each path; without rows there is no path, so no end either.
    end = np.append(first[1:], position.size)[: first.size]

    # Well-known binary: byte 1 for little-endian, then for a line 2, the number of its points, and
    # the points; for a path of one vertex, which is a point, 1 and the point.
    lines = []
    for begin, after in zip(first.tolist(), end.tolist(), strict=True):
        n = after - begin
        head = np.array([1] if n == 1 else [2, n], "<u4").tobytes()
        lines.append(b"\1" + head + points[begin:after].tobytes())

    of_vertices = ("position", "vertex", "edge")  # columns that say nothing of a path as a whole
    last = pyarrow.array(end - 1)  # the row of the path's end
    columns = {
        name: table[name].take(last) for name in table.column_names if name not in of_vertices
    }
    columns |= {
        "vertices": pyarrow.array(end - first),
        GEOMETRY: pyarrow.array(lines, pyarrow.binary()),
    }
    return pyarrow.table(columns), find_bounds(points)


def find_bounds(points: np.ndarray) -> list[float] | None:
    """Return the smallest x and y, and then the largest x and y, of points of shape (k, 2); None if
    there is no point.
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
    if shapely is None or tuple(map(int, shapely.__version__.split(".")[:2])) < (2, 1):
        raise InputError(f"hulls need shapely 2.1 or newer; install it by: {how_to_install('geo')}")
    return shapely


def make_hulls(table: Any, coordinates: Coordinates, ratio: float = RATIO) -> Any:
    """Return a table ``source, band, vertices, geometry``: a concave hull per source and band, in
    well-known binary, of the ``vertices`` vertices in that band and in those below it.

    ``table`` has the columns ``source, vertex, band``, a row per vertex that a source reaches in a
    band; the rows of a source stand together. ``ratio`` is as for ``write_geoparquet``.
    """
    shapely = shapely_module()
    points = coordinates.points(table["vertex"])
    source = table["source"].combine_chunks()
    band = table["band"].to_numpy()

    # Rows by source, in the order of the table, and then by band.
    # ``order``: of each row in the new order, its row in the table.
    rank = compute.index_in(source, value_set=compute.unique(source)).to_numpy()
    order = np.lexsort([band, rank])  # stable: within a band as in the table
    rank = rank[order]
    band = band[order]
    points = points[order]
    firsts = np.flatnonzero(np.diff(rank, prepend=-1)).tolist()  # the first row of each source

    last_rows = []  # of each hull, in the new order
    hulls = []
    counts = []  # of the vertices of each hull
    for begin, end in zip(firsts, [*firsts[1:], rank.size][: len(firsts)], strict=True):
        # One behind the last row of each band. The NaN differs from any band, so it ends the
        # largest band of the source.
        ends = np.flatnonzero(np.diff(band[begin:end], append=np.nan)) + 1 + begin
        # the vertices within a cutoff are the vertices of its band and of all bands before it
        for end_of_band in ends.tolist():
            places = shapely.multipoints(points[begin:end_of_band])
            hull = shapely.concave_hull(places, ratio=ratio)
            hulls.append(shapely.to_wkb(hull, byte_order=1))
            last_rows.append(end_of_band - 1)
            counts.append(end_of_band - begin)

    rows = np.array(last_rows, np.int64)
    return pyarrow.table(
        {
            "source": source.take(pyarrow.array(order[rows])),
            "band": pyarrow.array(band[rows]),
            "vertices": pyarrow.array(counts, pyarrow.int64()),
            GEOMETRY: pyarrow.array(hulls, pyarrow.binary()),
        }
    )


def bounds_of_hulls(table: Any) -> list[float] | None:
    """Return the smallest x and y, and then the largest x and y, of a table of hulls; None if it
    has no row.
    """
    shapely = shapely_module()
    if not table.num_rows:
        return None
    geometries = shapely.from_wkb(table[GEOMETRY].to_pylist())
    return list(map(float, shapely.total_bounds(geometries)))


def geo_metadata(
    kinds: Sequence[str], crs: Mapping[str, Any], bounds: list[float] | None = None
) -> dict[str, str]:
    """Return the metadata of the schema of a GeoParquet file whose geometry is in the column
    ``geometry``: the key "geo" with a text in JSON.

    ``kinds`` are the types of the geometries, ``crs`` is as ``crs_entry`` returns it, and
    ``bounds`` are the smallest x and y, and then the largest x and y; None if they are not known.
    """
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": list(kinds), **crs}
    if bounds is not None:
        column["bbox"] = bounds
    return {
        "geo": json.dumps(
            {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
        )
    }


def _path_text(path: Any) -> str:
    """Return the path of a file as text; InputError if ``path`` is no path."""
    if not arguments.is_path(path):
        raise InputError(f"path must be the path of a file, not {arguments.describe(path)}")
    return os.fspath(path)


def crs_entry(crs: Any) -> dict[str, Any]:
    """Return the coordinate reference system ``crs`` as entries of the metadata of a column.

    For ``CRS84`` it is ``{}``, as the format takes longitude and latitude of WGS 84 where there is
    no entry. For None, an unknown system, the key ``crs`` has the value None; for a mapping in
    PROJJSON it has a copy of that. InputError for anything else.
    """
    if isinstance(crs, str) and crs == CRS84:
        return {}
    if crs is None:
        return {"crs": None}
    if isinstance(crs, Mapping):
        try:
            # By way of JSON, so that what JSON cannot hold is refused here.
            return {"crs": json.loads(json.dumps(dict(crs), allow_nan=False))}
        except (TypeError, ValueError):
            raise InputError(
                "crs must be a mapping in PROJJSON, which holds texts, numbers, lists and mappings"
            ) from None
    raise InputError(
        f"crs must be {CRS84!r}, a mapping in PROJJSON, or None, not {arguments.describe(crs)}"
    )


def _to_arrow(value: Any, name: str) -> Any:
    """Return a data frame, a mapping of columns or a table as a table of pyarrow, whose values have
    been validated; InputError, which calls it ``name``, for anything else.
    """
    table = None
    # Frames of polars and cuDF have ``to_arrow``, and frames of pandas have ``iloc``.
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
