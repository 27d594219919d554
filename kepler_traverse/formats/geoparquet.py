"""Write results about vertices as GeoParquet files of points, with pyarrow alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import arguments
from ..errors import InputError, UnknownVertexError

_GEOMETRY = "geometry"
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])  # well-known binary, 21 bytes
CRS84 = "OGC:CRS84"


def write_geoparquet(frame: Any, path: Any, vertices: Any, *, x: str = "x", y: str = "y", crs: Any = CRS84) -> None:
    """Write a frame with a column ``vertex``, such as that of ``result="isochrones"``, as a GeoParquet file of points.

    Parameters
    ----------
    frame : pandas.DataFrame, cudf.DataFrame or pyarrow.Table
    path : path
        Of the file; an existing one is replaced.
    vertices : table
        With the columns ``vertex``, and those of the coordinates. It may have more vertices than the frame.
    x, y : str
        Columns of the coordinates: longitude and latitude, unless ``crs`` says otherwise.
    crs : "OGC:CRS84", mapping or None
        The coordinate reference system: longitude and latitude of WGS 84; any other in PROJJSON, as
        ``pyproj.CRS.to_json_dict`` returns it; None if it is not known.

    Raises
    ------
    InputError
        A column is missing, or the frame has a column ``geometry``; coordinates are not finite numbers; a vertex occurs
        twice in ``vertices``; ``crs`` is something else.
    UnknownVertexError
        A vertex of the frame is not in ``vertices``.

    Examples
    --------
    >>> bands = sssp_many(graph, [5], result="isochrones", cutoffs=[600, 1200])  # doctest: +SKIP
    >>> write_geoparquet(bands, "bands.parquet", vertices)  # doctest: +SKIP
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    file = _path(path)
    for name, value in (("x", x), ("y", y)):
        arguments.text(name, value, "the name of a column of vertices")
    entry = _crs_entry(crs)
    table, places = _arrow(frame, "frame"), _arrow(vertices, "vertices")
    for name, columns, needed in (("frame", table, ["vertex"]), ("vertices", places, ["vertex", x, y])):
        for column in needed:
            if column not in columns.column_names:
                raise InputError(f"{name} has no column {column!r}; it has {', '.join(map(repr, columns.column_names))}")
    if _GEOMETRY in table.column_names:
        raise InputError(f"frame has a column {_GEOMETRY!r} already; rename it")
    known = places["vertex"].combine_chunks()
    if len(pyarrow.compute.unique(known)) < len(known):
        raise InputError("vertices has a vertex twice; give one row per vertex")
    try:
        rows = pyarrow.compute.index_in(table["vertex"].cast(known.type), value_set=known)
    except pyarrow.ArrowInvalid:
        raise InputError(f"the vertices of frame are {table['vertex'].type}, and those of vertices {known.type}") from None
    if rows.null_count:
        missing = table["vertex"].filter(rows.is_null())
        raise UnknownVertexError(f"vertices lacks {len(missing)} vertices of frame, the first {missing[0].as_py()!r}")
    rows = rows.to_numpy()
    points = np.zeros(len(rows), _POINT)
    points["order"], points["kind"] = 1, 1
    for axis, name in (("x", x), ("y", y)):
        numbers = arguments.as_array(f"vertices[{name!r}]", places[name]).astype(np.float64)[rows]
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise InputError(
                f"vertices[{name!r}] is {numbers[wrong[0]]} at vertex {table['vertex'][int(wrong[0])].as_py()!r}"
            )
        points[axis] = numbers
    binary = pyarrow.Array.from_buffers(
        pyarrow.binary(),
        len(points),
        [None, pyarrow.py_buffer(np.arange(len(points) + 1, dtype=np.int32) * _POINT.itemsize), pyarrow.py_buffer(points)],
    )
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"], **entry}
    if len(points):
        column["bbox"] = [float(f(points[axis])) for f in (np.min, np.max) for axis in ("x", "y")]
    metadata = {"version": "1.1.0", "primary_column": _GEOMETRY, "columns": {_GEOMETRY: column}}
    table = table.append_column(_GEOMETRY, binary).replace_schema_metadata({"geo": json.dumps(metadata)})
    try:
        pyarrow.parquet.write_table(table, file, compression="zstd")
    except OSError as error:
        raise InputError(f"path {file!r} cannot be written: {error.strerror or error}") from None


def _path(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path) or not os.fspath(path):
        raise InputError(f"path must be the path of a file, not {arguments.describe(path)}")
    return os.fspath(path)


def _crs_entry(crs: Any) -> dict[str, Any]:
    """The entry of the metadata; the format takes WGS 84 where there is none."""
    if isinstance(crs, str) and crs == CRS84:
        return {}
    if crs is None or isinstance(crs, Mapping):
        try:
            return {"crs": None if crs is None else json.loads(json.dumps(dict(crs), allow_nan=False))}
        except (TypeError, ValueError):
            raise InputError("crs must be a mapping in PROJJSON, which holds texts, numbers, lists and mappings") from None
    raise InputError(f"crs must be {CRS84!r}, a mapping in PROJJSON, or None, not {arguments.describe(crs)}")


def _arrow(value: Any, name: str) -> Any:
    """A table of pyarrow of a frame of any library."""
    import pyarrow

    if isinstance(value, pyarrow.Table):
        return value
    try:
        if isinstance(value, Mapping):
            return pyarrow.table(dict(value))
        if hasattr(value, "columns") and hasattr(value, "to_arrow"):
            return pyarrow.table(value.to_arrow())
        if hasattr(value, "columns") and hasattr(value, "iloc"):
            return pyarrow.Table.from_pandas(value, preserve_index=False)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be converted to a table of pyarrow: {' '.join(str(error).split())[:200]}") from None
    raise InputError(f"{name} must be a data frame or a pyarrow table, not {arguments.describe(value)}")
