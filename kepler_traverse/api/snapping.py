"""``snap``: the vertex nearest to each of some places that are no vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from .._arrays import namespace, to_host
from ..cpu.components import find_component
from ..cpu.nearest_point import nearest_points
from ..errors import InputError, UnknownVertexError, listed
from ..formats.geoparquet import check_names_of_coordinates, read_coordinates
from ..graph import Graph
from ..graph.closed import where_paths_begin
from ..labels import columns_in_order, index_of_rows
from ..search.frames import Column, columns_on_device, frame_from

_COORDINATES = ("degrees", "metres")  # values of the argument ``coordinates``
_COMPONENTS = ("largest", "any")  # values of the argument ``component``
# the largest absolute longitude, in degrees: 0 to 360 and -180 to 180 are both in use
_LONGITUDE = 360.0
_LATITUDE = 90.0  # the largest absolute latitude, in degrees
_FARTHEST = 1e150  # the largest coordinate, so that squares are finite


def snap(
    graph: Graph,
    points: Any,
    vertices: Any,
    *,
    coordinates: str,
    cutoff: float | None = None,
    component: str = "largest",
    around: Any = None,
    x: str = "x",
    y: str = "y",
) -> Any:
    """Return the vertex nearest to each of some points, and how far it is.

    Parameters
    ----------
    graph : Graph
        Only its vertices are taken.
    points : table
        Columns of the coordinates, with one row per point: a data frame of any library, a table of
        Arrow or a mapping of columns.
    vertices : table
        With the columns ``vertex``, and those of the coordinates; or with an index of ids in place
        of ``vertex``, as OSMnx's nodes have it. Vertices of the graph that it lacks are not taken.
    coordinates : {"degrees", "metres"}
        ``"degrees"``: longitude (-360 to 360) and latitude (-90 to 90); offsets are metres along
        great circles of a sphere with a radius of 6,371,008.8 m, by haversines in float64.
        ``"metres"``: coordinates of a plane, in any unit, which the offsets have as well.
    cutoff : float, optional
        The largest offset, inclusive. A point without a vertex so near gets none.
    component : {"largest", "any"}
        ``"largest"``: of the strongly connected components, in which each vertex can be reached
        from each other one, the one with the most vertices is taken; of equally large ones that
        with the smallest id. A place at a street without a way out would have no path to the
        others. ``"any"``: all vertices are taken.
    around : id, optional
        Take the component of this vertex in place of the largest.
    x, y : str
        Columns of the coordinates, in ``points`` as in ``vertices``.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        ``vertex`` and ``offset`` (float64), a row per point, in the order and with the index of
        ``points``. Of equally near vertices that with the smallest id is returned. With ``cutoff``
        both are null where no vertex is so near.

    Raises
    ------
    InputError
        A column is missing; a coordinate is not finite, or no longitude or latitude in degrees; a
        vertex occurs twice in ``vertices``; no vertex has coordinates.
    UnknownVertexError
        ``around`` is not a vertex of the graph.

    Examples
    --------
    >>> graph = graph_from_edges({"src": [1, 2], "dst": [2, 1], "weight": [5, 5]})
    >>> junctions = {"vertex": [1, 2], "x": [-8.61, -8.60], "y": [41.15, 41.15]}
    >>> snap(graph, {"x": [-8.603], "y": [41.15]}, junctions, coordinates="degrees").round(1)
       vertex  offset
    0       2   251.2
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    arguments.choice("coordinates", coordinates, _COORDINATES)
    limit = None if cutoff is None else arguments.limit("cutoff", cutoff)
    check_names_of_coordinates(x, y)
    places = _read_points(points, x, y)
    _require_places("points", (x, y), places, coordinates)

    # ``numbers``: the vertices that may be taken and have coordinates. ``has_place`` is True for a
    # candidate with coordinates, and ``candidate_places`` has x and y of these alone.
    numbers = _candidates(graph, component, around)
    vertex_places = read_coordinates(vertices, x, y)
    ids = graph.ids_at(namespace(graph.offsets).asarray(numbers))
    # Coordinates are looked up on the host; strings are there on any device.
    if not graph.has_string_ids:
        ids = to_host(ids)
    has_place, candidate_places = vertex_places.look_up_known(ids)
    if not has_place.any():
        raise InputError(
            f"vertices has the coordinates of none of {len(numbers):,} vertices to snap to; it "
            "needs the ids of the graph's vertices"
        )
    numbers = numbers[has_place]
    _require_places("vertices", (x, y), candidate_places, coordinates)

    # ``nearest`` has, per point, a position in ``numbers``.
    is_on_sphere = coordinates == "degrees"
    nearest, offset = nearest_points(*candidate_places, *places, on_sphere=is_on_sphere)
    is_far = None  # null where true
    if limit is not None:
        is_far = offset > limit
    vertex = Column.of_vertices(graph, numbers[nearest])
    columns = {"vertex": Column(vertex.values, is_far), "offset": Column(offset, is_far)}
    frame = frame_from(columns_on_device(columns, graph), graph.device)
    index = index_of_rows(points)
    if index is not None:
        frame.index = index
    return frame


def _read_points(points: Any, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of the table ``points``: float64 arrays of shape (n_points,).

    ``x`` and ``y`` are the names of its columns. Whether values are finite or in range is not
    checked here. InputError if ``points`` is no table, or lacks a column.
    """
    columns = arguments.columns("points", points)
    if columns is None:
        raise InputError(
            f"points must be a table with the columns {x!r} and {y!r}, not "
            f"{arguments.describe(points)}"
        )
    missing = next((name for name in (x, y) if name not in columns), None)
    if missing is not None:
        if "geometry" in columns:
            advice = "; of GeoPandas, give points.geometry.get_coordinates()"
        else:
            advice = f"; it has {listed(list(columns))}; name others by x= and y="
        raise InputError(f"points has no column {missing!r}{advice}")
    # Columns with labels are brought into one order of rows, and all into host memory.
    columns = columns_in_order("points", {x: columns[x], y: columns[y]})
    x_values, y_values = (
        to_host(arguments.as_array(f"points[{name!r}]", columns[name])).astype(np.float64)
        for name in (x, y)
    )
    arguments.size(f"points[{y!r}]", y_values, x_values.size, f"one per value of points[{x!r}]")
    return x_values, y_values


def _require_places(
    owner: str, names: tuple[str, str], places: tuple[np.ndarray, np.ndarray], coordinates: str
) -> None:
    """Raise InputError unless all coordinates are finite and in the range of their kind.

    ``places`` is x and y, float64 arrays of the same length, and ``names`` are the names of their
    columns. ``coordinates`` is "degrees" (x is a longitude and y a latitude) or "metres". ``owner``
    is the name of the argument that holds the columns, for the message.
    """
    if coordinates == "degrees":
        limits = (_LONGITUDE, _LATITUDE)
        what = ("longitude", "latitude")
        advice = "; give coordinates='metres' for places on a plane"
    else:
        limits = (_FARTHEST, _FARTHEST)
        what = ("coordinate", "coordinate")
        advice = ""
    for name, values, limit, kind in zip(names, places, limits, what, strict=True):
        wrong = np.flatnonzero(~(np.abs(values) <= limit))  # NaN fails the comparison, too
        if not wrong.size:
            continue
        value = values[wrong[0]]
        if not np.isfinite(value):
            advice = "; leave such rows out"
        # Of ``vertices`` only the rows of candidates are here, so that a position is no row.
        if owner == "points":
            where = f", row {wrong[0]}"
        else:
            where = ""
        raise InputError(f"{owner}[{name!r}]{where} holds {value}, which is no {kind}{advice}")


def _candidates(graph: Graph, component: str, around: Any) -> np.ndarray:
    """Return the numbers of the vertices that points may be snapped to, ascending, in host memory.

    ``component`` and ``around`` are the arguments of ``snap``; ``around`` is None or an id.
    InputError if the graph has no vertices or the two arguments contradict each other.
    UnknownVertexError if ``around`` is no vertex of the graph.
    """
    arguments.choice("component", component, _COMPONENTS)
    if not graph.n_vertices:
        raise InputError("graph has no vertices to snap to")
    vertex = None
    if around is not None:
        if not arguments.is_one_id(around):
            raise UnknownVertexError(f"around must be one vertex, not {arguments.describe(around)}")
        vertex = int(graph.to_numbers([around], "vertex around which to snap")[0])
    if component == "any":
        if vertex is not None:
            raise InputError(
                "around names a component, and component='any' takes all; leave one out"
            )
        # A closed vertex, which ends paths but lets none through, has two vertex numbers for its
        # id. This takes one of them per id.
        return where_paths_begin(graph)
    # Components are found on the CPU.
    return find_component(to_host(graph.offsets), to_host(graph.targets), vertex)
