"""Results about vertices with coordinates as pictures (matplotlib) and as maps of a notebook
(lonboard).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import arguments
from ..errors import InputError, how_to_install, listed
from ..formats.geoparquet import (
    GEOMETRY,
    Coordinates,
    find_rows,
    make_lines,
    make_shapes,
    read_map_frame,
)
from ..graph import Graph

# columns that are drawn, unless the caller names one: the first that a frame has
_FIRST = ("band", "closeness", "source", "distance")
# columns by which several rows of one vertex may differ
_APART = ("rank", "group", "cutoff", "source", "target")
_FEW = 10  # groups that colours and a legend can distinguish
_MAX_MARKS = 50  # sources that are marked; more marks would hide the values
_GREY = "#c8ccd2"
# how sources and ends of paths are marked
_MARK: dict[str, Any] = {
    "s": 50,
    "c": "white",
    "edgecolors": "black",
    "linewidths": 1.5,
    "zorder": 4,
}
# arguments that place a legend at the right of the axes, where it covers no street
_BESIDE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (1, 0), "frameon": False}
_SHADES = ((0.9, 0.75), (0.55, 0.95), (0.8, 0.5))  # saturation and brightness
# A step in hue, as a fraction of the circle of hues: the golden ratio. Multiples of it stay far
# apart on the circle.
_GOLDEN = 0.6180339887498949
# metadata of a column of geometries, by which lonboard knows their format and coordinate system
_WKB = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": "OGC:CRS84"}'}


def plot(
    frame: Any,
    vertices: Any,
    *,
    graph: Graph | None = None,
    column: str | None = None,
    unit: str = "",
    per_unit: float = 1,
    title: str = "",
    x: str = "x",
    y: str = "y",
    ax: Any = None,
) -> Any:
    """Draw a result with matplotlib: isochrones, nearest sources, distances, closeness, paths,
    loads of edges.

    Parameters
    ----------
    frame : pandas.DataFrame, cudf.DataFrame or pyarrow.Table
        With a column ``vertex``, each vertex once; or a frame of ``paths``; or with a row per
        source, such as that of ``result="summary"``; or with a row per edge, such as that of
        ``result="flows"``: edges are drawn as wide as their values.
    vertices : table
        With the columns ``vertex``, and those of the coordinates; or with an index of ids in place
        of ``vertex``. It may have more vertices than the frame.
    graph : Graph, optional
        Its edges are drawn, in the colour of the vertex at the end that has the larger value; of
        groups, edges inside one. Otherwise the vertices are drawn as points.
    column : str, optional
        What the colours show. Default: the first that the frame has of ``band``, ``closeness``,
        ``source`` (if there are several) and ``distance``, or else its last column.
    unit : str
        Of the values, such as ``"seconds"``; the legend or the colour bar says it.
    per_unit : float
        Values of the frame that are one unit, by which legend and colour bar divide: 60,000 shows
        milliseconds as minutes.
    title : str
        Of the picture.
    x, y : str
        Columns of the coordinates. Where all are longitudes and latitudes, the picture keeps the
        proportions of the place.
    ax : matplotlib.axes.Axes, optional
        To draw on; default: those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        matplotlib is missing; a column is missing; a vertex occurs twice in the frame or in
        ``vertices``.
    UnknownVertexError
        A vertex of the frame is not in ``vertices``.

    Examples
    --------
    >>> from kepler_traverse.datasets import town  # doctest: +SKIP
    >>> here = town()  # doctest: +SKIP
    >>> graph = graph_from_edges(here.roads)  # doctest: +SKIP
    >>> bands = sssp_many(graph, [here.station], result="isochrones", cutoffs=[300, 600])  # doctest: +SKIP
    >>> plot(bands, here.junctions, graph=graph).figure.savefig("isochrones.png")  # doctest: +SKIP
    """
    pyplot = _import_module(
        "matplotlib.pyplot",
        f"pictures need matplotlib; install it by: {how_to_install('plot')}",
    )
    from matplotlib.collections import LineCollection

    # ``table`` is the frame as a table of pyarrow. ``places`` looks up coordinates by ids.
    scale = _Scale.checked(unit, per_unit)
    table, places = _read_table(frame, vertices, x, y)
    streets = None if graph is None else _find_streets(graph, places)
    if ax is None:
        ax = pyplot.figure(figsize=(8, 8), layout="constrained").add_subplot()

    # The streets in grey, and what the frame says above them. Frames of ``paths`` have a column
    # ``position``, the place of a vertex in its path.
    if streets is not None:
        lines = LineCollection(list(streets.lines), colors=_GREY, linewidths=0.6, zorder=1)
        ax.add_collection(lines)
    if "position" in table.column_names:
        _draw_paths(ax, table, places)
    elif _has_edges(table):
        _draw_edges(ax, table, places, _choose_column(table, column), scale)
    else:
        _draw_values(ax, table, places, streets, _choose_column(table, column), scale)

    if title:
        ax.set_title(title)
    ax.autoscale_view()
    west, east = ax.get_xlim()
    south, north = ax.get_ylim()
    aspect: Any = "equal"  # one unit of y is as long as one of x, as on a plane
    if west >= -180 and east <= 180 and south > -90 and north < 90:
        # A degree of longitude is shorter than one of latitude, by the cosine of the latitude.
        aspect = 1 / math.cos(math.radians((south + north) / 2))
    ax.set_aspect(aspect)
    ax.set_axis_off()
    return ax


def explore(
    frame: Any, vertices: Any, *, column: str | None = None, x: str = "x", y: str = "y"
) -> Any:
    """Show a result on a map of a notebook, with lonboard: vertices as points, and frames of
    ``paths`` as lines.

    Parameters
    ----------
    frame, vertices, column, x, y
        As of ``plot``; coordinates are longitudes and latitudes.

    Returns
    -------
    lonboard.Map

    Raises
    ------
    InputError, UnknownVertexError
        As of ``plot``; lonboard is missing.
    """
    if _has_edges(frame):
        raise InputError(
            "explore() shows vertices and paths, and frame has a row per edge; draw it by plot()"
        )
    lonboard = _import_module(
        "lonboard",
        f"explore() needs lonboard; install it by: {how_to_install('plot', 'lonboard')}",
    )
    # Frames of ``paths`` have a column ``position``. Their lines get alternating colours, which
    # distinguish paths that cross.
    table, places = _read_table(frame, vertices, x, y)
    if "position" in table.column_names:
        table, _ = make_lines(table, places)  # a row per path, with its line in ``GEOMETRY``
        colours = _Colours.of_column(pa.array(np.arange(table.num_rows) % _FEW))
        options: dict[str, Any] = {"get_color": colours.bytes(), "width_min_pixels": 3}
        layer = lonboard.PathLayer
    else:
        colours = _Colours.of_column(table[_choose_column(table, column)])
        table, _ = make_shapes(table, places)  # adds ``GEOMETRY``, the point of each vertex
        options = {"get_fill_color": colours.bytes(), "radius_min_pixels": 3}
        layer = lonboard.ScatterplotLayer
    # lonboard reads the geometries by the metadata of their column, which only a cast can add.
    geometry = pa.field(GEOMETRY, pa.binary(), metadata=_WKB)
    fields = [geometry if field.name == GEOMETRY else field for field in table.schema]
    return lonboard.Map(layer(table=table.cast(pa.schema(fields)), **options))


class _Scale(NamedTuple):
    """The unit in which the legend and the colour bar show the values of a column."""

    unit: str = ""  # the name of the unit, such as "minutes"; ``""``: values have none
    per_unit: float = 1  # the number in the frame that is one unit: shown is value / per_unit

    @classmethod
    def checked(cls, unit: str, per_unit: float) -> _Scale:
        """Return the scale of the arguments ``unit`` and ``per_unit`` of ``plot``.

        InputError if ``unit`` is no text, or ``per_unit`` no finite number above 0.
        """
        arguments.text("unit", unit)
        arguments.real("per_unit", per_unit)
        if not 0 < per_unit < math.inf:
            raise InputError(f"per_unit must be above 0, not {arguments.describe(per_unit)}")
        return cls(unit, float(per_unit))

    def label(self, column: str) -> str:
        """Return the title of a legend or a colour bar: the name of a column, and the unit."""
        if self.unit:
            return f"{column} ({self.unit})"
        return column

    def convert(self, value: Any) -> Any:
        """Return a value of a frame, or an array of values, in the unit. Integers stay integers if
        the frame has values in the unit already.
        """
        if self.per_unit == 1:
            return value
        return value / self.per_unit


_AS_IT_IS = _Scale()


class _Streets(NamedTuple):
    """The edges of a graph whose two ends both have coordinates."""

    src: pa.Array  # the id of the vertex where each edge begins, of shape (n_edges,)
    dst: pa.Array  # the id of the vertex where each edge ends, of shape (n_edges,)
    # float64 of shape (n_edges, 2, 2): ``lines[i, 0]`` is x and y of ``src[i]``, and
    # ``lines[i, 1]`` is x and y of ``dst[i]``
    lines: np.ndarray


class _Colours(NamedTuple):
    """The colour of each of the n rows of a column.

    A column of numbers, such as distances, is coloured on a continuous scale. The distinct values
    of any other column are groups, such as sources or bands, with one colour each.
    """

    # float64 of shape (n,): the numbers, in the unit of the scale; of groups, the position of the
    # row's group among all groups in ascending order
    values: np.ndarray
    rgba: np.ndarray  # float64 of shape (n, 4): red, green, blue and opacity of each row, 0 to 1
    names: list[str]  # of groups, in ascending order; empty of numbers, or if there are many groups
    palette: np.ndarray  # float64 of shape (n_groups, 4): the colour per group; empty of numbers
    norm: Any = None  # matplotlib's map of numbers to 0 to 1; None of groups
    cmap: Any = None  # matplotlib's map of 0 to 1 to colours; None of groups

    @classmethod
    def of_column(cls, column: Any, name: str = "", scale: _Scale = _AS_IT_IS) -> _Colours:
        """Return the colours of a column of pyarrow.

        ``name`` is the name of the column. Numbers are coloured on a continuous scale, except that
        the columns "source" and, with few distinct values, "band" are groups. ``scale`` converts
        numbers, and the names of bands, to the unit that is shown.
        """
        colormaps = _import_module(
            "matplotlib", f"pictures need matplotlib: {how_to_install('plot')}"
        ).colormaps
        from matplotlib.colors import Normalize

        if hasattr(column, "combine_chunks"):  # a column of a table is in chunks, an array is not
            column = column.combine_chunks()
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        groups = pc.unique(column).sort()
        is_band = name == "band"
        if is_number and name != "source" and (not is_band or len(groups) > _FEW):
            values = scale.convert(column.to_numpy(zero_copy_only=False).astype(np.float64))
            # NaN and infinity would leave the scale without ends.
            finite = values[np.isfinite(values)]
            if finite.size:
                norm = Normalize(finite.min(), finite.max())
            else:
                norm = Normalize(0, 1)
            cmap = colormaps["viridis"]
            return cls(values, cmap(norm(values)), [], np.empty((0, 4)), norm, cmap)

        # Groups: a colour each, and a name if there are few.
        ranks = np.asarray(pc.index_in(column, value_set=groups)).astype(np.int64)
        if is_band:  # bands have an order, so their colours ascend, without the brightest yellow
            palette = colormaps["viridis"](np.linspace(0.0, 0.9, len(groups)))
        else:
            palette = _palette(len(groups))
        names = []
        if is_band and len(groups) <= _FEW:
            names = [
                f"up to {_format_number(scale.convert(cutoff))}" for cutoff in groups.to_pylist()
            ]
        elif len(groups) <= _FEW:
            names = [str(group) for group in groups.to_pylist()]
        return cls(ranks.astype(np.float64), palette[ranks], names, palette)

    def bytes(self) -> np.ndarray:
        """Return the colour of each row as lonboard takes it, uint8 of shape (n, 4), 0 to 255."""
        return (self.rgba * 255).astype(np.uint8)


def _palette(n: int) -> np.ndarray:
    """Return n colours that differ: float64 of shape (n, 4), red, green, blue and opacity 1."""
    from matplotlib import colormaps
    from matplotlib.colors import hsv_to_rgb

    if n <= 2 * _FEW:
        listed_colours: Any = colormaps["tab10" if n <= _FEW else "tab20"]
        rgb = np.array(listed_colours.colors)[:n]
    else:  # hues far apart for each two that follow each other, in three shades
        number = np.arange(n)
        shade = number % len(_SHADES)
        hue = number * _GOLDEN % 1
        rgb = hsv_to_rgb(np.column_stack([hue, np.array(_SHADES)[shade]]))
    return np.column_stack([rgb, np.ones(n)])


def _format_number(number: Any) -> str:
    """Return a number as text for a legend: integers as they are, floats with at most 10 digits,
    and whole floats without ``.0``.
    """
    if isinstance(number, float):
        return f"{number:.10g}"
    return str(number)


def _import_module(name: str, advice: str) -> Any:
    """Return a module by its name. If it is missing, raise InputError with the message ``advice``,
    which says how to install it.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise InputError(advice) from None


def _read_table(frame: Any, vertices: Any, x: str, y: str) -> tuple[Any, Coordinates]:
    """Return a frame as a table of pyarrow, and the coordinates of the vertices.

    The arguments are those of ``plot``. ``Coordinates`` looks up x and y by ids. A frame with a row
    per edge keeps its columns. Any other table has a column ``vertex``. It has each vertex once, or
    the vertices of paths one after the other. If a frame has no such column but a row per source,
    its column ``source`` becomes ``vertex``.
    """
    if _has_edges(frame):
        return read_map_frame(frame, vertices, x, y, needed=("src", "dst"))
    # Data frames have their names in ``columns``; a table of pyarrow has its data there, in which
    # no name is found, and ``column_names``.
    if "vertex" not in getattr(frame, "columns", ()) and "source" in getattr(frame, "columns", ()):
        frame = frame.rename(columns={"source": "vertex"})
    elif (
        isinstance(frame, pa.Table)
        and "vertex" not in frame.column_names
        and "source" in frame.column_names
    ):
        frame = frame.rename_columns(
            ["vertex" if name == "source" else name for name in frame.column_names]
        )
    # InputError if there is no column ``vertex``, or coordinates are no numbers
    table, places = read_map_frame(frame, vertices, x, y)
    places.look_up(table["vertex"])  # also where streets are drawn, an unknown vertex is an error
    # A vertex has one colour, so it must have one row, except in paths. The error shows how to
    # select rows by the columns that separate the rows of one vertex, such as those of one source.
    if "position" not in table.column_names and len(pc.unique(table["vertex"])) < table.num_rows:
        names = _columns_apart(table)
        conditions = [f"frame[{name!r}] == ..." for name in names]
        if len(names) > 1:
            conditions = [f"({condition})" for condition in conditions]
        advice = "give each vertex once"
        if names:
            advice = f"draw those of one {' and '.join(names)}: frame[{' & '.join(conditions)}]"
        raise InputError(f"frame has a vertex twice; {advice}")
    return table, places


def _columns_apart(table: Any) -> tuple[str, ...]:
    """Return the names of one or two columns of ``_APART`` by which rows of one vertex differ in a
    pyarrow table: rows that agree in these columns have different vertices.

    One column is preferred to two. Without such columns the result is empty.
    """
    known = [name for name in _APART if name in table.column_names]
    for names in (*((name,) for name in known), *combinations(known, 2)):
        # As many groups as rows: no two rows agree in the vertex and in all these columns.
        distinct = table.group_by(["vertex", *names]).aggregate([])
        if distinct.num_rows == table.num_rows:
            return names
    return ()


def _has_edges(frame: Any) -> bool:
    """Whether a frame, of any library, has a row per edge: columns ``src`` and ``dst``, and no
    column ``vertex``.
    """
    if isinstance(frame, pa.Table):
        names = frame.column_names
    else:
        names = getattr(frame, "columns", ())
    return {"src", "dst"} <= set(names) and "vertex" not in names


def _choose_column(table: Any, column: str | None) -> str:
    """Return the name of the column of a pyarrow table that colours show.

    ``column`` is the caller's choice; InputError if it is not there. If it is None, the choice is
    the first of ``_FIRST`` that the table has, or else the last column. One source alone would give
    all rows one colour, so that ``source`` is chosen only if there are several.
    """
    names = [name for name in table.column_names if name != "vertex"]
    if column is not None:
        arguments.text("column", column, "the name of a column of frame")
        if column not in table.column_names:
            raise InputError(f"frame has no column {column!r}; it has {listed(table.column_names)}")
        return column
    if not names:
        raise InputError("frame has no column but 'vertex': no colours can be chosen")
    has_sources = "source" in names and len(pc.unique(table["source"])) > 1  # several of them
    for name in _FIRST:
        if name in names and (name != "source" or has_sources):
            return name
    return names[-1]


def _find_streets(graph: Graph, places: Coordinates) -> _Streets:
    """Return the edges of a graph whose ends both have coordinates in ``places``; of an undirected
    graph each edge once. InputError if the graph has edges, and no edge has coordinates at both
    ends.
    """
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a Graph, not {arguments.describe(graph)}")
    graph = graph.to("cpu")  # matplotlib draws from host memory
    # Vertex numbers of both ends of each edge. ``has_place`` is indexed by vertex numbers,
    # ``is_drawn`` by edges.
    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    dst = np.asarray(graph.targets)
    ids = pa.array(graph.ids_at(np.arange(graph.n_vertices)))
    has_place = places.has(ids)
    is_drawn = has_place[src] & has_place[dst]
    if is_drawn.size and not is_drawn.any():
        raise InputError(
            "vertices has the coordinates of no edge of the graph; it "
            "needs the ids of the graph's vertices"
        )
    # Both directions are stored, and are one line.
    if not graph.directed:
        is_drawn &= src <= dst
    begin = ids.take(pa.array(src[is_drawn]))
    end = ids.take(pa.array(dst[is_drawn]))
    lines = np.stack([places.points(begin), places.points(end)], axis=1)
    return _Streets(begin, end, lines)


def _draw_values(
    ax: Any, table: Any, places: Coordinates, streets: _Streets | None, column: str, scale: _Scale
) -> None:
    """Draw a column of values: streets in the colours of their ends, or vertices as points if
    ``streets`` is None; then a legend of groups, or a colour bar of numbers, and the sources.

    ``ax`` are the axes of matplotlib to draw on. ``table`` is a pyarrow table with each vertex once
    in its column ``vertex``. ``places`` has the coordinates of the vertices. ``column`` names the
    values, and ``scale`` has their unit.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    colours = _Colours.of_column(table[column], column, scale)
    if streets is None:
        # ``look_up`` returns x and y of all vertices.
        ax.scatter(*places.look_up(table["vertex"]), c=colours.rgba, s=8, zorder=2)
    else:
        # ``src_rows`` and ``dst_rows`` have the row of the table of each end of a street, null
        # where the table lacks the vertex. From ``src_row`` on, only streets with rows for both
        # ends are left.
        src_rows = find_rows(streets.src, table["vertex"], "the graph")
        dst_rows = find_rows(streets.dst, table["vertex"], "the graph")
        has_both = pc.and_(src_rows.is_valid(), dst_rows.is_valid())
        src_row = src_rows.filter(has_both).to_numpy()
        dst_row = dst_rows.filter(has_both).to_numpy()
        lines = streets.lines[np.asarray(has_both)]
        src_value = colours.values[src_row]
        dst_value = colours.values[dst_row]
        # A street has the colour of the end with the larger value: it is reached within a cutoff
        # when both ends are. Between two groups without an order, such as sources, none is drawn.
        # ``norm`` is None if the values are groups; bands are groups with an order.
        rgba = colours.rgba[np.where(src_value >= dst_value, src_row, dst_row)]
        if colours.norm is None and column != "band":
            is_inside = src_value == dst_value
            lines = lines[is_inside]
            rgba = rgba[is_inside]
        ax.add_collection(LineCollection(lines, colors=rgba, linewidths=1.6, zorder=2))

    if colours.norm is not None:
        _draw_colour_bar(ax, colours, scale.label(column))
    elif colours.names:
        handles = [
            Line2D([], [], color=colour, lw=3, label=name)
            for name, colour in zip(colours.names, colours.palette, strict=True)
        ]
        ax.legend(handles=handles, title=scale.label(column), **_BESIDE)

    if "source" in table.column_names:
        sources = pc.unique(table["source"])
        sources = sources.filter(pa.array(places.has(sources)))
        if 0 < len(sources) <= _MAX_MARKS:
            ax.scatter(*places.look_up(sources), **_MARK)


def _draw_edges(ax: Any, table: Any, places: Coordinates, column: str, scale: _Scale) -> None:
    """Draw each edge with a colour and a width that show its value, the largest on top; then a
    colour bar.

    ``ax`` are axes of matplotlib. ``table`` has the ids of the two ends of each edge in ``src`` and
    ``dst``, and its value in ``column``; InputError if that holds no numbers. ``places`` has the
    coordinates of the ends, and ``scale`` the unit of the values.
    """
    from matplotlib.collections import LineCollection

    table = table.sort_by(column)  # later lines are drawn over earlier ones
    colours = _Colours.of_column(table[column], scale=scale)
    if colours.norm is None:
        raise InputError(
            f"the column {column!r} of frame has no numbers, which widths of edges could show"
        )
    lines = np.stack([places.points(table["src"]), places.points(table["dst"])], axis=1)
    largest = colours.values.max(initial=0) or 1  # no division by 0 where all values are 0
    # from 0.3 points, which are still visible, to 5.3 points; negative values are as narrow as 0
    widths = 0.3 + 5 * np.clip(colours.values / largest, 0, 1)
    ax.add_collection(
        LineCollection(
            list(lines), colors=colours.rgba, linewidths=widths, capstyle="round", zorder=2
        )
    )
    _draw_colour_bar(ax, colours, scale.label(column))


def _draw_colour_bar(ax: Any, colours: _Colours, label: str) -> None:
    """Add a colour bar for numbers, with the title ``label``, to the figure of ``ax``."""
    from matplotlib.cm import ScalarMappable

    mappable = ScalarMappable(colours.norm, colours.cmap)
    ax.figure.colorbar(mappable, ax=ax, label=label, shrink=0.6)


def _draw_paths(ax: Any, table: Any, places: Coordinates) -> None:
    """Draw each path of a frame of ``paths`` as a line through all its vertices, with a mark at
    both ends, and a legend if there are few.

    ``ax`` are axes of matplotlib. ``table`` has a row per vertex of a path, in the order of the
    paths and of their vertices, and ``places`` has their coordinates.
    """
    points_of_all = places.points(table["vertex"])
    # A row per path: its pair or target, and in ``vertices`` the number of its vertices. The sums
    # of these numbers are the rows of ``table`` at which paths end.
    lines, _ = make_lines(table, places)
    label = "pair" if "pair" in table.column_names else "target"
    ends = np.cumsum(lines["vertices"].to_numpy())
    names = lines[label].to_pylist()
    for name, points in zip(names, np.split(points_of_all, ends[:-1]), strict=True):
        ax.plot(*points.T, linewidth=3, solid_capstyle="round", label=f"{label} {name}", zorder=3)
        ax.scatter(*points[[0, -1]].T, **_MARK)
    if 0 < len(names) <= _FEW:
        ax.legend(**_BESIDE)
