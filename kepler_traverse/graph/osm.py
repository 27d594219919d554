"""Read streets of OpenStreetMap: tables of streets and junctions with travel times, and their
graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import sort_distinct
from ..cpu.nearest_point import EARTH_RADIUS
from ..errors import EdgeListError, InputError, how_to_install
from ..runtime import LOG
from ..runtime.regular_files import irregular
from . import Graph
from .build import of_nodes
from .edges import graph_from_edges

if TYPE_CHECKING:
    import pandas as pd

# longitude of a node that the file lacks, in libosmium's units of 1e-7 degrees
_NOWHERE = 2**31 - 1
# the farthest that a place can be, in the same units
_WEST = 1_800_000_000
_SOUTH = 900_000_000
_MPH = 1.609344  # km per mile
_WALKING_PACE = 7.0  # km/h: what maxspeed=walk allows
_FASTEST = 300  # km/h that a limit can be; others are slips, such as the time of a sign
# a limit of speed, such as "50", "50.5 km/h" or "30mph": its number and its unit, None without one
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(mph|km/h|kmh|kph)?")
# Values of tags of access that close a street to the mode, and those that open one.
_DENIED = {"no", "private", "agricultural", "forestry", "military", "emergency", "use_sidepath"}
_GRANTED = {"yes", "designated", "permissive", "official"}
# Values of tags of direction: open only in the order of the street's nodes, only against it, or in
# both directions.
_ALONG = {"yes", "true", "1"}
_BACK = {"-1", "reverse"}
_BOTH = {"no", "false", "0"}
# tags of the cycleways of a side; a tag with ``:oneway`` behind the name says the direction
_SIDES = ("cycleway:left", "cycleway:right", "cycleway:both")
# tags whose value begins with "opposite" where a cycleway leads against a one-way street
_CONTRAFLOW = ("cycleway", *_SIDES)
# values of ``highway`` that no one can use
_CLOSED = (
    "construction",
    "proposed",
    "abandoned",
    "disused",
    "razed",
    "platform",
    "raceway",
    "corridor",
    "elevator",
)


class _Mode(NamedTuple):
    """How one travels: what is open, at which speed, and in which direction."""

    speeds: dict[str, float]  # km/h by the value of ``highway``
    access: tuple[str, ...]  # tags of access, the most specific first
    oneway: tuple[str, ...]  # tags of direction, the most specific first
    # whether one goes at the speed of ``maxspeed``: only cars do, to which private service ways are
    # closed, too
    limited: bool
    contraflow: bool = False  # whether a cycleway may lead against a one-way street
    # km/h on a street that ``speeds`` lacks, if the most specific tag of access opens it; 0: none
    # is opened so
    opened: float = 0.0


_SLOW_STREETS = (
    "residential",
    "living_street",
    "unclassified",
    "service",
    "road",
    "tertiary",
    "secondary",
    "primary",
)
_PATHS = ("track", "cycleway", "path", "tertiary_link", "secondary_link", "primary_link")
MODES = {
    "drive": _Mode(
        {
            "motorway": 110,
            "trunk": 90,
            "primary": 65,
            "secondary": 55,
            "tertiary": 45,
            "unclassified": 40,
            "motorway_link": 60,
            "trunk_link": 50,
            "primary_link": 45,
            "secondary_link": 40,
            "tertiary_link": 35,
            "residential": 30,
            "road": 30,
            "service": 15,
            "living_street": 10,
        },
        ("motorcar", "motor_vehicle", "vehicle", "access"),
        ("oneway:motorcar", "oneway:motor_vehicle", "oneway:vehicle", "oneway"),
        limited=True,
    ),
    "bike": _Mode(
        {**dict.fromkeys((*_SLOW_STREETS, *_PATHS), 15.0), "track": 12.0, "path": 10.0},
        ("bicycle", "vehicle", "access"),
        ("oneway:bicycle", "oneway"),
        limited=False,
        contraflow=True,
        opened=12.0,
    ),
    "walk": _Mode(
        {
            **dict.fromkeys((*_SLOW_STREETS, *_PATHS, "footway", "pedestrian", "bridleway"), 4.8),
            "steps": 2.4,
        },
        ("foot", "access"),
        ("oneway:foot",),
        limited=False,
        opened=4.8,
    ),
}


class Streets(NamedTuple):
    """Streets of OpenStreetMap.

    Attributes
    ----------
    graph : Graph
        Directed, with ``roads["weight"]`` as its weights. It knows the row of each edge, as
        ``edge_ids=True`` makes it.
    roads : pandas.DataFrame
        A row per street between two junctions and direction: ``src, dst`` (int64, ids of nodes),
        ``weight`` (int64), ``metres`` (float64), ``speed`` (float64, km/h), ``way`` (int64),
        ``highway`` and ``street`` (its name, or "").
    junctions : pandas.DataFrame
        A row per vertex: ``vertex`` (int64, id of the node), ``x, y`` (float64, longitude and
        latitude).
    """

    graph: Graph
    roads: pd.DataFrame
    junctions: pd.DataFrame


def from_osm(
    path: str | os.PathLike[str], mode: str = "drive", weight: str = "milliseconds"
) -> Streets:
    """Read the streets of a file of OpenStreetMap.

    A vertex is a node where streets meet or end. Nodes between give an edge its length, along great
    circles. Turn restrictions, traffic lights, barriers, ferries and slopes are not read. Where a
    file was cut out of a larger one, a street ends at its last node that the file has.

    Parameters
    ----------
    path : path
        A local file: ``.osm.pbf``, ``.osm``, ``.osm.bz2`` or another that libosmium reads.
    mode : {"drive", "bike", "walk"}
        What may be used, in which direction and how fast. To drive, the speed is
        ``maxspeed:forward`` or ``maxspeed:backward`` in that direction, else ``maxspeed`` (``walk``
        is 7 km/h), else that of the kind of street: motorway 110 km/h, trunk 90, primary 65,
        secondary 55, tertiary 45, unclassified 40, residential 30, service 15, living_street 10;
        slip roads 60 to 35. A bike goes at 15 km/h (track 12, path 10), and at 12 where
        ``bicycle=yes`` opens another street; against a one-way street where ``oneway:bicycle=no``,
        or ``cycleway``, ``cycleway:left``, ``cycleway:right`` or ``cycleway:both`` is ``opposite``,
        ``opposite_lane`` and so on. One walks at 4.8 km/h, on steps at 2.4, in both directions.
        Streets that are closed to the mode by their tags of access, parking aisles and driveways
        (to drive), areas, and what is not built are left out.
    weight : {"milliseconds", "millimetres"}
        What the weights count, as integers, so that sums are exact and a hierarchy can be built.

    Returns
    -------
    Streets

    Raises
    ------
    InputError
        osmium is missing (the extra ``osm``), or an argument is wrong.
    EdgeListError
        The file is missing, no regular file, damaged or not sorted (nodes, then ways), holds
        changes or several versions of a way, has a place outside the earth or a negative id, or no
        street for the mode.

    Examples
    --------
    >>> here = from_osm("region.osm.pbf", mode="walk")  # doctest: +SKIP
    >>> near = sssp_many(here.graph, [here.junctions["vertex"][0]], cutoff=900_000)  # 15 minutes; doctest: +SKIP
    """
    arguments.choice("mode", mode, tuple(MODES))
    arguments.choice("weight", weight, ("milliseconds", "millimetres"))
    try:
        import osmium
    except ImportError:
        raise InputError(
            f"files of OpenStreetMap need osmium; install it by: {how_to_install('osm')}"
        ) from None
    if len(arguments.list_paths("path", path)) != 1 or not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path must be the path of one file, not {arguments.describe(path)}")
    file = Path(path).expanduser()
    if not file.exists():
        raise EdgeListError(f"{file}: there is no such file")
    # "a FIFO" or the like for what is no regular file, else ""
    if what := irregular(file, follow=True):
        raise EdgeListError(f"{file}: it is {what} and not a regular file")

    # The ways of streets, with the places of their nodes.
    try:
        if osmium.io.File(str(file)).has_multiple_object_versions:
            raise EdgeListError(
                f"{file}: it holds changes or a history; give a file of "
                "one state (osmium time-filter)"
            )
        # The place of a node is kept before the filter of kinds drops it.
        elements = osmium.FileProcessor(
            str(file), osmium.osm.NODE | osmium.osm.WAY
        ).with_locations()
        elements = elements.with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
        ways = _Ways(elements.with_filter(osmium.filter.KeyFilter("highway")), MODES[mode])
        # the ids of nodes whose places were not found
        missing = ways.check(file)
        nodes = osmium.FileProcessor(str(file), osmium.osm.NODE)
        # A node that ways lack and the file has stands behind them.
        late_node = None
        if missing.size:
            late_nodes = nodes.with_filter(osmium.filter.IdFilter(missing.tolist()))
            late_node = next((node.id for node in late_nodes), None)
    except (RuntimeError, UnicodeDecodeError, osmium.InvalidLocationError) as error:
        raise EdgeListError(f"{file}: it cannot be read as OpenStreetMap: {error}") from None
    if late_node is not None:
        raise EdgeListError(
            f"{file}: node {late_node} stands behind a way that needs it; sort the file (osmium sort)"
        )
    if missing.size:
        LOG.info("%s: it lacks %d nodes of streets, which end before them", file, missing.size)

    # Tables of the streets, and their graph.
    roads, junctions = ways.tables()
    if roads.empty:
        raise EdgeListError(f"{file}: it has no street for mode {mode!r}")
    metres = roads["metres"].to_numpy()
    if weight == "millimetres":
        length = 1000 * metres
    else:
        length = 3600 * metres / roads["speed"].to_numpy()
    roads.insert(2, "weight", np.rint(length).astype(np.int64))
    # With ``edge_ids`` the graph knows the row of ``roads`` of each edge.
    graph = graph_from_edges(
        roads["src"], roads["dst"], roads["weight"], vertices=junctions["vertex"], edge_ids=True
    )
    return Streets(of_nodes(graph), roads, junctions)


def _direction(tags: dict[str, str], mode: _Mode) -> tuple[bool, bool]:
    """Return whether a street is open in the order of its nodes, and whether it is open against it.

    ``tags`` are the tags of the street. The most specific tag of direction decides, except that a
    cycleway against a one-way street opens both directions. Without such a tag, roundabouts and
    motorways are one-way, and all streets are open in both directions to people on foot.
    """
    for key in mode.oneway:
        value = tags.get(key, "")
        if value in _ALONG | _BACK | _BOTH:
            # The first tag is of the mode itself, and already says what cycleways would.
            if key != mode.oneway[0] and _has_contraflow(tags, mode):
                return True, True
            return value not in _BACK, value not in _ALONG
    # Without such a tag. One walks in both directions everywhere.
    if "oneway" not in mode.oneway or _has_contraflow(tags, mode):
        return True, True
    is_oneway_without_tag = tags.get("junction") in ("roundabout", "circular") or tags[
        "highway"
    ] in ("motorway", "motorway_link")
    return True, not is_oneway_without_tag


def _has_contraflow(tags: dict[str, str], mode: _Mode) -> bool:
    """Return whether a cycleway leads against the direction of a one-way street; False in a mode
    that takes no cycleways.
    """
    if not mode.contraflow:
        return False
    # A value such as "opposite_lane"; or a cycleway of a side that leads back, or both ways.
    is_opposite = any(tags.get(key, "").startswith("opposite") for key in _CONTRAFLOW)
    return is_opposite or any(tags.get(f"{key}:oneway", "") in _BACK | _BOTH for key in _SIDES)


def _speeds(tags: dict[str, str], mode: _Mode) -> tuple[float, float]:
    """Return the speeds on a street in km/h along its nodes and against them, 0 where it is closed.

    A limit of one direction comes first, then the limit of both directions, then the speed of the
    kind of street. A mode that heeds no limits has the speed of the kind.
    """
    speed = _speed_of_kind(tags, mode)
    if not speed or not mode.limited:
        return speed, speed
    speed_of_both = _parse_limit(tags.get("maxspeed", "")) or speed
    along = _parse_limit(tags.get("maxspeed:forward", ""))
    against = _parse_limit(tags.get("maxspeed:backward", ""))
    return along or speed_of_both, against or speed_of_both


def _parse_limit(text: str) -> float:
    """Return a limit of speed in km/h from the value of a tag, such as "50", "30 mph" or "walk"; 0
    if it is no limit, or one that cannot be meant.
    """
    text = text.strip()
    if text == "walk":
        return _WALKING_PACE
    limit = _NUMBER.fullmatch(text)
    if limit is None:
        return 0.0
    allowed = float(limit[1]) * (_MPH if limit[2] == "mph" else 1.0)
    return allowed if 1 <= allowed <= _FASTEST else 0.0


def _speed_of_kind(tags: dict[str, str], mode: _Mode) -> float:
    """Return the speed on a street in km/h by its kind, without limits of speed; 0 if it is closed
    to the mode.
    """
    highway = tags["highway"]
    if highway in _CLOSED or tags.get("area") == "yes":
        return 0.0
    if mode.limited and tags.get("service") in (
        "parking_aisle",
        "driveway",
        "private",
        "emergency_access",
    ):
        return 0.0
    speed = mode.speeds.get(highway, 0.0)
    # The most specific tag of access decides. Only one of the mode itself opens a street that is
    # closed by its kind.
    access_tag = next((key for key in mode.access if key in tags), None)
    if access_tag is not None:
        if tags[access_tag] in _DENIED:
            return 0.0
        if access_tag == mode.access[0] and tags[access_tag] in _GRANTED:
            speed = speed or mode.opened
    return float(speed)


class _WayFacts(NamedTuple):
    """What the tags of a street say. Along a street is in the order of its nodes.

    ``_Ways.tables`` also makes one whose fields are arrays, with an element per street.
    """

    way: int  # id of the way of OpenStreetMap
    highway: str  # the kind of street: the value of this tag
    name: str  # ``""`` without one
    speed_along: float  # km/h, above 0 in both directions
    speed_against: float
    is_open_along: bool  # whether one may go in this direction
    is_open_against: bool


class _Ways:
    """Streets as lists: what their tags say, and the nodes of all, one after the other.

    ``ways`` yields ways of osmium that have a tag ``highway``, and whose nodes have places. Streets
    that are closed to the mode are left out.
    """

    def __init__(self, ways: Iterable[Any], mode: _Mode):
        self.facts: list[_WayFacts] = []  # per street
        self.sizes: list[int] = []  # number of nodes per street
        self.nodes: list[int] = []  # ids of the nodes of all streets
        # longitudes and latitudes of these nodes, in units of 1e-7 degrees; ``_NOWHERE`` for a node
        # that the file lacks
        self.x: list[int] = []
        self.y: list[int] = []
        for way in ways:
            tags = dict(way.tags)
            along, against = _speeds(tags, mode)
            if along:  # above 0 if the street is open to the mode; then ``against`` is, too
                name = tags.get("name", "")
                directions = _direction(tags, mode)
                self.facts.append(
                    _WayFacts(way.id, tags["highway"], name, along, against, *directions)
                )
                nodes = list(way.nodes)
                self.nodes += [node.ref for node in nodes]
                self.x += [node.x for node in nodes]
                self.y += [node.y for node in nodes]
                self.sizes.append(len(nodes))

    def check(self, file: Path) -> np.ndarray:
        """Return the ids of nodes whose places were not found, int64, ascending, each once.

        EdgeListError for what would give wrong streets: a way twice, a negative id, or a place
        outside the earth. ``file`` is the name in the message.
        """
        way, repeats = np.unique([facts.way for facts in self.facts], return_counts=True)
        if (repeats > 1).any():
            raise EdgeListError(
                f"{file}: way {way[repeats.argmax()]} stands there "
                "twice; give one version of each way"
            )
        nodes = np.array(self.nodes, np.int64)
        x = np.array(self.x, np.int64)
        y = np.array(self.y, np.int64)
        if (nodes < 0).any():
            raise EdgeListError(
                f"{file}: node {nodes.min()} has a negative id; only ids "
                "of the published map can be read"
            )
        is_there = x != _NOWHERE  # per node: whether its place was found
        outside = is_there & ((np.abs(x) > _WEST) | (np.abs(y) > _SOUTH))
        if outside.any():
            first = outside.argmax()  # the first position at which ``outside`` is True
            raise EdgeListError(
                f"{file}: node {nodes[first]} lies outside the earth, at "
                f"{x[first] / 1e7}, {y[first] / 1e7}"
            )
        return sort_distinct(nodes[~is_there])

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the tables of roads, each between two junctions in one direction, and of
        junctions, with the columns that ``Streets`` lists.

        Both are empty if there is no street. Roads lack their ``weight``.
        """
        import pandas as pd

        if not self.facts:
            return pd.DataFrame(), pd.DataFrame()
        nodes = np.array(self.nodes, np.int64)
        x = np.array(self.x, np.int64)
        street = np.repeat(np.arange(len(self.sizes)), self.sizes)  # of each node, its street
        is_there = x != _NOWHERE
        if not is_there.any():
            return pd.DataFrame(), pd.DataFrame()

        # Missing nodes cut a street into pieces. Of each node that is left, ``piece`` has a number
        # that grows by one or more from each piece to the next one.
        piece = (street + np.cumsum(~is_there))[is_there]
        nodes = nodes[is_there]
        street = street[is_there]
        x = x[is_there] / 1e7
        y = np.array(self.y)[is_there] / 1e7

        # Junctions are the nodes that occur more than once, and the ends of pieces. ``is_joined``:
        # whether a node and the next one are of one piece.
        is_joined = piece[:-1] == piece[1:]
        is_end = np.r_[True, ~is_joined] | np.r_[~is_joined, True]
        # ``place``: where each distinct node occurs first. ``number``: which distinct node each one
        # is. ``ids``, ``count`` and ``is_junction`` have an element per distinct node.
        ids, place, number, count = np.unique(
            nodes, return_index=True, return_inverse=True, return_counts=True
        )
        is_junction = count > 1
        is_junction[number[is_end]] = True

        # A road leads from one junction of a piece to the next: ``begin`` and ``end`` are places in
        # ``nodes``. Its length is a difference of the metres along all pieces.
        steps = np.where(is_joined, _metres(x[:-1], y[:-1], x[1:], y[1:]), 0)
        metres_so_far = np.r_[0, np.cumsum(steps)]
        stops = np.flatnonzero(is_junction[number])
        begin = stops[:-1]
        end = stops[1:]
        is_inside = piece[begin] == piece[end]  # else one piece ends, and the next one begins
        begin = begin[is_inside]
        end = end[is_inside]

        # Each direction that is open is a row. The facts of the streets become one array per field.
        columns = zip(
            zip(*self.facts, strict=True),
            (np.int64, object, object, float, float, bool, bool),
            strict=True,
        )
        arrays: Any = (np.array(values, kind) for values, kind in columns)
        facts: Any = _WayFacts(*arrays)
        parts = []
        for src, dst, is_open, speed in (
            (begin, end, facts.is_open_along, facts.speed_along),
            (end, begin, facts.is_open_against, facts.speed_against),
        ):
            is_row = is_open[street[src]]
            src = src[is_row]
            dst = dst[is_row]
            streets = street[src]
            part = {
                "src": nodes[src],
                "dst": nodes[dst],
                "metres": np.abs(metres_so_far[dst] - metres_so_far[src]),
                "speed": speed[streets],
                "way": facts.way[streets],
                "highway": facts.highway[streets],
                "street": facts.name[streets],
            }
            parts.append(pd.DataFrame(part))
        junctions = pd.DataFrame({"vertex": ids, "x": x[place], "y": y[place]})[is_junction]
        return pd.concat(parts, ignore_index=True), junctions.reset_index(drop=True)


def _metres(x: np.ndarray, y: np.ndarray, to_x: np.ndarray, to_y: np.ndarray) -> np.ndarray:
    """Return the lengths in metres of arcs of great circles from the places (``x``, ``y``) to
    (``to_x``, ``to_y``), longitudes and latitudes in degrees, by the haversine formula.
    """
    x, y, to_x, to_y = map(np.radians, (x, y, to_x, to_y))
    half = np.sin((to_y - y) / 2) ** 2 + np.cos(y) * np.cos(to_y) * np.sin((to_x - x) / 2) ** 2
    # Rounding can make the square of a sine greater than 1.
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1)))
