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
from ..formats.geoparquet import GEOMETRY, Coordinates, find_rows, make_lines, make_shapes, on_map
from ..graph import Graph

# what is drawn of a frame, unless the caller names a column
_FIRST = ("band", "closeness", "source", "distance")
# by which rows of one vertex may differ
_APART = ("rank", "group", "cutoff", "source", "target")
_FEW = 10  # groups that colours and a legend can distinguish
_GREY = "#c8ccd2"
_SHADES = ((0.9, 0.75), (0.55, 0.95), (0.8, 0.5))  # saturation and brightness
_GOLDEN = 0.6180339887498949  # of the circle of hues, of which no few multiples meet
# as lonboard reads it
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
    pyplot = _module(
        "matplotlib.pyplot",
        f"pictures need matplotlib; install it by: {how_to_install('plot')}",
    )
    from matplotlib.collections import LineCollection

    scale = _Scale.of(unit, per_unit)
    table, places = _table(frame, vertices, x, y)
    if graph is None:
        streets = None
    else:
        streets = _streets(graph, places)
    if ax is None:
        ax = pyplot.figure(figsize=(8, 8), layout="constrained").add_subplot()
    if streets is not None:
        ax.add_collection(
            LineCollection(list(streets.lines), colors=_GREY, linewidths=0.6, zorder=1)
        )
    if "position" in table.column_names:
        _draw_paths(ax, table, places)
    elif _is_of_edges(table):
        _draw_edges(ax, table, places, _column(table, column), scale)
    else:
        _draw_values(ax, table, places, streets, _column(table, column), scale)
    if title:
        ax.set_title(title)
    ax.autoscale_view()
    left, right = ax.get_xlim()
    low, high = ax.get_ylim()
    aspect: Any = "equal"
    if left >= -180 and right <= 180 and low > -90 and high < 90:
        # A degree of longitude is shorter than one of latitude, by the cosine of the latitude.
        aspect = 1 / math.cos(math.radians((low + high) / 2))
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
    if _is_of_edges(frame):
        raise InputError(
            "explore() shows vertices and paths, and frame has a row per edge; draw it by plot()"
        )
    lonboard = _module(
        "lonboard",
        f"explore() needs lonboard; install it by: {how_to_install('plot', 'lonboard')}",
    )
    table, places = _table(frame, vertices, x, y)
    if "position" in table.column_names:
        table, _ = make_lines(table, places)
        colours = _Colours.of(pa.array(np.arange(table.num_rows) % _FEW))
        options: dict[str, Any] = {"get_color": colours.bytes(), "width_min_pixels": 3}
        layer = lonboard.PathLayer
    else:
        colours = _Colours.of(table[_column(table, column)])
        table, _ = make_shapes(table, places)
        options = {"get_fill_color": colours.bytes(), "radius_min_pixels": 3}
        layer = lonboard.ScatterplotLayer
    geometry = pa.field(GEOMETRY, pa.binary(), metadata=_WKB)
    fields = [geometry if field.name == GEOMETRY else field for field in table.schema]
    return lonboard.Map(layer(table=table.cast(pa.schema(fields)), **options))


class _Scale(NamedTuple):
    """What legend and colour bar say of values: their unit, and how many of them are one."""

    unit: str = ""
    per_unit: float = 1

    @classmethod
    def of(cls, unit: str, per_unit: float) -> _Scale:
        arguments.text("unit", unit)
        arguments.real("per_unit", per_unit)
        if not 0 < per_unit < math.inf:
            raise InputError(f"per_unit must be above 0, not {arguments.describe(per_unit)}")
        return cls(unit, float(per_unit))

    def label(self, column: str) -> str:
        """Return what a legend or a colour bar says of a column."""
        return f"{column} ({self.unit})" if self.unit else column

    def divided(self, value: Any) -> Any:
        if self.per_unit == 1:
            return value
        return value / self.per_unit


_AS_IT_IS = _Scale()


class _Streets(NamedTuple):
    """Edges between vertices with coordinates: their ends as vertices and as lines."""

    src: pa.Array
    dst: pa.Array
    lines: np.ndarray


class _Colours(NamedTuple):
    """Colours of values."""

    values: np.ndarray  # of numbers themselves; of groups, their places in ``names``
    rgba: np.ndarray  # float64 array of shape (n, 4)
    names: list[str]  # of groups, in the order of the legend; empty if there are many
    palette: np.ndarray  # float64 array of shape (n_groups, 4): the color of each group
    # norm, cmap: of numbers; None of groups
    norm: Any = None
    cmap: Any = None

    @classmethod
    def of(cls, column: Any, name: str = "", scale: _Scale = _AS_IT_IS) -> _Colours:
        colormaps = _module(
            "matplotlib", f"pictures need matplotlib: {how_to_install('plot')}"
        ).colormaps
        from matplotlib.colors import Normalize

        if hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        groups = pc.unique(column).sort()
        is_band = name == "band"
        if is_number and name != "source" and (not is_band or len(groups) > _FEW):
            values = scale.divided(column.to_numpy(zero_copy_only=False).astype(np.float64))
            finite = values[np.isfinite(values)]
            norm = Normalize(*((finite.min(), finite.max()) if finite.size else (0, 1)))
            cmap = colormaps["viridis"]
            return cls(values, cmap(norm(values)), [], np.empty((0, 4)), norm, cmap)
        places = (
            pc.index_in(column, value_set=groups).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        if is_band:
            palette = colormaps["viridis"](np.linspace(0.0, 0.9, len(groups)))
        else:
            palette = _palette(len(groups))
        if len(groups) <= _FEW:
            names = [
                f"up to {_short(scale.divided(each))}" if is_band else str(each)
                for each in groups.to_pylist()
            ]
        else:
            names = []
        return cls(places.astype(np.float64), palette[places], names, palette)

    def bytes(self) -> np.ndarray:
        return (self.rgba * 255).astype(np.uint8)


def _palette(n: int) -> np.ndarray:
    """Return n colours that differ, as a float64 array of shape (n, 4)."""
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


def _short(number: Any) -> str:
    """Return a number of a legend; what is whole without a fraction."""
    return f"{number:.10g}" if isinstance(number, float) else str(number)


def _module(name: str, advice: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise InputError(advice) from None


def _table(frame: Any, vertices: Any, x: str, y: str) -> tuple[Any, Coordinates]:
    """Return the frame and the coordinates. Without edges it has a column ``vertex``; of a row per
    source, the sources.
    """
    if _is_of_edges(frame):
        return on_map(frame, vertices, x, y, needed=("src", "dst"))
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
    table, places = on_map(frame, vertices, x, y)
    places.look_up(table["vertex"])  # also where streets are drawn, an unknown vertex is an error
    if "position" not in table.column_names and len(pc.unique(table["vertex"])) < table.num_rows:
        names = _apart(table)
        if names:
            chosen = " & ".join(f"(frame[{name!r}] == ...)" for name in names)
            if len(names) == 1:
                chosen = chosen[1:-1]
            advice = f"draw those of one {' and '.join(names)}: frame[{chosen}]"
        else:
            advice = "give each vertex once"
        raise InputError(f"frame has a vertex twice; {advice}")
    return table, places


def _apart(table: Any) -> tuple[str, ...]:
    """Return the names of the columns by which the rows of one vertex differ, as few as suffice: of
    the k nearest, of groups, of cutoffs or of sources.
    """
    known = [name for name in _APART if name in table.column_names]
    for names in (*((name,) for name in known), *combinations(known, 2)):
        pairs = table.select(["vertex", *names]).group_by(["vertex", *names]).aggregate([])
        if pairs.num_rows == table.num_rows:
            return names
    return ()


def _is_of_edges(frame: Any) -> bool:
    if isinstance(frame, pa.Table):
        names = frame.column_names
    else:
        names = getattr(frame, "columns", ())
    return {"src", "dst"} <= set(names) and "vertex" not in names


def _column(table: Any, column: str | None) -> str:
    """Return the name of the column that colours show."""
    names = [name for name in table.column_names if name != "vertex"]
    if column is not None:
        arguments.text("column", column, "the name of a column of frame")
        if column not in table.column_names:
            raise InputError(f"frame has no column {column!r}; it has {listed(table.column_names)}")
        return column
    if not names:
        raise InputError("frame has no column but 'vertex': no colours can be chosen")
    several = "source" in names and len(pc.unique(table["source"])) > 1
    return next(
        (name for name in _FIRST if name in names and (name != "source" or several)), names[-1]
    )


def _streets(graph: Graph, places: Coordinates) -> _Streets:
    """Return the edges of a graph whose ends have coordinates; of an undirected graph each once."""
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a Graph, not {arguments.describe(graph)}")
    graph = graph.to("cpu")
    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    dst = np.asarray(graph.targets)
    kept = slice(None) if graph.directed else src <= dst
    ids = pa.array(graph.ids_at(np.arange(graph.n_vertices)))
    known = places.has(ids)[src] & places.has(ids)[dst]
    if known.size and not known.any():
        raise InputError(
            "vertices has the coordinates of no edge of the graph; it "
            "needs the ids of the graph's vertices"
        )
    src = src[kept][known[kept]]
    dst = dst[kept][known[kept]]
    begin = ids.take(pa.array(src))
    end = ids.take(pa.array(dst))
    lines = np.stack([places.points(begin), places.points(end)], axis=1)
    return _Streets(begin, end, lines)


def _draw_values(
    ax: Any, table: Any, places: Coordinates, streets: _Streets | None, column: str, scale: _Scale
) -> None:
    """Draw streets, or vertices without a graph, in the colours of a column, and a legend or a
    colour bar.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    colours = _Colours.of(table[column], column, scale)
    if streets is None:
        ax.scatter(*places.look_up(table["vertex"]), c=colours.rgba, s=8, zorder=2)
    else:
        ends = [find_rows(end, table["vertex"], "the graph") for end in (streets.src, streets.dst)]
        both = pc.and_(ends[0].is_valid(), ends[1].is_valid()).to_numpy(zero_copy_only=False)
        one, other = (end.filter(pa.array(both)).to_numpy() for end in ends)
        farther = np.where(colours.values[one] >= colours.values[other], one, other)
        lines = streets.lines[both]
        chosen = colours.rgba[farther]
        if colours.norm is None and column != "band":
            same = colours.values[one] == colours.values[other]
            lines = lines[same]
            chosen = chosen[same]
        ax.add_collection(LineCollection(lines, colors=chosen, linewidths=1.6, zorder=2))
    if colours.norm is not None:
        ax.figure.colorbar(
            ScalarMappable(colours.norm, colours.cmap),
            ax=ax,
            label=scale.label(column),
            shrink=0.6,
        )
    elif colours.names:
        handles = [
            Line2D([], [], color=colour, lw=3, label=name)
            for name, colour in zip(colours.names, colours.palette, strict=True)
        ]
        # beside the picture, where it covers no street
        ax.legend(
            handles=handles,
            title=scale.label(column),
            loc="lower left",
            bbox_to_anchor=(1, 0),
            frameon=False,
        )
    if "source" in table.column_names:
        sources = pc.unique(table["source"])
        sources = sources.filter(pa.array(places.has(sources)))
        if 0 < len(sources) <= 5 * _FEW:
            ax.scatter(
                *places.look_up(sources),
                s=50,
                c="white",
                edgecolors="black",
                linewidths=1.5,
                zorder=4,
            )


def _draw_edges(ax: Any, table: Any, places: Coordinates, column: str, scale: _Scale) -> None:
    """Draw each edge in the colour of its value and as wide, the largest on top, and a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection

    table = table.sort_by(column)
    colours = _Colours.of(table[column], scale=scale)
    if colours.norm is None:
        raise InputError(
            f"the column {column!r} of frame has no numbers, which widths of edges could show"
        )
    lines = np.stack([places.points(table[end]) for end in ("src", "dst")], axis=1)
    widths = 0.3 + 5 * np.clip(colours.values / (colours.values.max(initial=0) or 1), 0, 1)
    ax.add_collection(
        LineCollection(
            list(lines), colors=colours.rgba, linewidths=widths, capstyle="round", zorder=2
        )
    )
    ax.figure.colorbar(
        ScalarMappable(colours.norm, colours.cmap), ax=ax, label=scale.label(column), shrink=0.6
    )


def _draw_paths(ax: Any, table: Any, places: Coordinates) -> None:
    """Draw each path as a line between its two ends."""
    at = places.points(table["vertex"])
    lines, _ = make_lines(table, places)
    label = next(name for name in ("pair", "target") if name in table.column_names)
    cuts = np.cumsum(lines["vertices"].to_numpy())
    names = lines[label].to_pylist()
    for name, points in zip(names, np.split(at, cuts[:-1]), strict=True):
        ax.plot(*points.T, linewidth=3, solid_capstyle="round", label=f"{label} {name}", zorder=3)
        ax.scatter(
            *points[[0, -1]].T, s=50, c="white", edgecolors="black", linewidths=1.5, zorder=4
        )
    if 0 < len(names) <= _FEW:
        ax.legend(loc="lower left", bbox_to_anchor=(1, 0), frameon=False)
