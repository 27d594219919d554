"""A generated town: junctions with coordinates, streets with names and travel times, jobs and
schools.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from .. import arguments

_SIDE = 84  # rows and columns of streets, of which a disc is built on
_BLOCK = 90.0  # metres between streets, before they bend
_MAIN = 10  # one of so many streets side by side is a main road
_SPEED = 6.0  # metres per second
_MAIN_SPEED = 14.0  # metres per second on main roads
_DELAY = 5.0  # seconds that each street takes besides, for its junction
_SCHOOLS = 12  # number of schools
_METRES_PER_DEGREE = 111_320.0  # at the equator, in both directions
# streets are named after them
_TREES = (
    "Alder Apple Ash Aspen Beech Birch Box Cedar Cherry Chestnut Cypress Elder Elm Fir "
    "Hawthorn Hazel Hickory Holly Ivy Juniper Larch Laurel Lime Linden Maple Medlar Mulberry "
    "Myrtle Oak Olive Pear Pine Plane Plum Poplar Quince Rowan Spruce Sycamore Walnut Willow "
    "Yew"
)


class Town(NamedTuple):
    """Tables of a generated town.

    Attributes
    ----------
    roads : pandas.DataFrame
        A row per street between two junctions and direction, with the columns ``src, dst`` (int64),
        ``weight`` (int64, seconds by car), ``speed`` (float64, metres per second) and ``street``
        (its name). Streets of one way have one row.
    junctions : pandas.DataFrame
        A row per junction: ``vertex`` (int64), ``x, y`` (float64, longitude and latitude; the town
        lies in the sea, where equator and zero meridian meet), ``jobs`` and ``residents`` (int64).
    schools : pandas.DataFrame
        A row per school: ``vertex`` (int64, its junction) and ``name``.
    station : int
        The vertex of the junction in the middle.
    """

    roads: pd.DataFrame
    junctions: pd.DataFrame
    schools: pd.DataFrame
    station: int


def town(seed: int = 1) -> Town:
    """Return a generated town of about 5,000 junctions, the same for the same seed.

    A river with few bridges divides it. One street of ten is a main road. Some streets of the
    centre have one way. Each junction can be reached from each other one.

    Parameters
    ----------
    seed : int
        0 or more: of the bends of streets and of those that are missing.

    Returns
    -------
    Town

    Examples
    --------
    >>> from kepler_traverse.datasets import town
    >>> from kepler_traverse import graph_from_edges, sssp_many
    >>> here = town()
    >>> graph = graph_from_edges(here.roads)
    >>> nearest = sssp_many(graph, here.schools["vertex"], result="nearest")  # vertex, its school, seconds
    >>> len(nearest) == len(here.junctions)
    True
    """
    draws = np.random.default_rng(arguments.whole("seed", seed))

    # Places on a grid of ``_SIDE`` rows and columns, as arrays of shape (n_places,): place number
    # ``_SIDE * row + column``. Streets bend, as places are moved at random, by up to a quarter of a
    # block along each axis, and turned around the middle, by up to 0.35 radians, as their distance
    # from it says. ``x`` and ``y`` are metres from the middle.
    number = np.arange(_SIDE * _SIDE)
    row = number // _SIDE
    column = number % _SIDE
    x, y = (
        _BLOCK * (line - (_SIDE - 1) / 2 + 0.5 * (draws.random(number.size) - 0.5))
        for line in (column, row)
    )
    twist = 0.35 * np.sin(np.hypot(x, y) / 1600)
    x, y = x * np.cos(twist) - y * np.sin(twist), x * np.sin(twist) + y * np.cos(twist)
    radius = np.hypot(x, y)

    # Land is where a junction may be: in the town, and in no park or river. The border of the town
    # and the river are waves.
    angle = np.arctan2(y, x)
    # metres from the middle to the border, in the direction of each place
    edge_of_town = (
        _BLOCK * _SIDE * (0.47 + 0.035 * np.sin(3 * angle + 1) + 0.02 * np.sin(7 * angle))
    )
    beyond_river = y - (420 * np.sin(x / 1300) - 900)  # metres north of the middle of the river
    is_in_park = np.hypot(x + 1500, y - 900) < 480
    is_land = (radius < edge_of_town) & ~is_in_park & (np.abs(beyond_river) > 45)
    grid = _Grid(row, column, radius, is_land, is_in_park, beyond_river)

    # Streets, as pairs of places, and the directions in which they lead. One-way streets are side
    # streets along some rows of the centre.
    src, dst, is_main, name = _lay_streets(grid, draws)
    metres = np.hypot(x[src] - x[dst], y[src] - y[dst])
    speed = np.where(is_main, _MAIN_SPEED, _SPEED)
    seconds = np.rint(metres / speed + _DELAY)
    is_one_way = (
        ~is_main
        & (np.maximum(radius[src], radius[dst]) < 1400)
        & (dst - src == 1)  # along a row
        & (row[src] % _MAIN % 3 == 1)  # three of ten rows: 1, 4 and 7 of each ten
    )
    # One-way streets lead forth in even rows, and back in odd ones. A street and direction becomes
    # an edge: ``street`` has its street, and ``begin`` and ``end`` its places.
    leads_forth = ~is_one_way | (row[src] % 2 == 0)
    leads_back = ~is_one_way | (row[src] % 2 == 1)
    street = np.concatenate([np.flatnonzero(leads_forth), np.flatnonzero(leads_back)])
    is_back = np.arange(street.size) >= np.count_nonzero(leads_forth)
    begin = np.where(is_back, dst[street], src[street])
    end = np.where(is_back, src[street], dst[street])

    # Junctions are the places from which the station can be reached, and back. They are numbered in
    # the order of places.
    station = int(np.argmin(np.where(is_land, radius, np.inf)))
    is_junction = _find_reached(begin, end, station, number.size)
    is_junction &= _find_reached(end, begin, station, number.size)
    vertex = np.cumsum(is_junction) - 1  # by place; of no meaning where there is no junction
    is_road = is_junction[begin] & is_junction[end]
    street = street[is_road]
    roads = pd.DataFrame(
        {
            "src": vertex[begin[is_road]],
            "dst": vertex[end[is_road]],
            "weight": seconds[street].astype(np.int64),
            "speed": speed[street],
            "street": name[street],
        }
    )
    x = x[is_junction]
    y = y[is_junction]
    junctions = _make_junctions(x, y, radius[is_junction], draws)

    # A school is called after the first street of its junction.
    school_vertices = _far_apart(x, y, _SCHOOLS)
    first_street = roads.groupby("src")["street"].first()
    names = [f"School of {first_street[school]}" for school in school_vertices.tolist()]
    schools = pd.DataFrame({"vertex": school_vertices, "name": names})
    return Town(roads, junctions, schools, int(vertex[station]))


class _Grid(NamedTuple):
    """The places of the grid, as arrays of shape (n_places,)."""

    row: np.ndarray  # int64, from 0 on, as ``column``
    column: np.ndarray
    radius: np.ndarray  # float64, metres from the middle of the town
    is_land: np.ndarray  # bool: whether a junction may be there
    is_in_park: np.ndarray  # bool: where no street leads, not even a main road
    # float64, metres from the middle of the river, below 0 on the other bank
    beyond_river: np.ndarray


def _lay_streets(
    grid: _Grid, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return four arrays of shape (n_streets,): the places of both ends, int64; whether each street
    is a main road; and its name.

    A street is a block long, or two over the river. ``draws`` says which side streets are missing.
    """
    number = np.arange(grid.row.size)
    streets = []
    # Along rows and along columns: the step to the next place, the number of the street, the place
    # in it, and what streets are called.
    for step, line, place, kinds in (
        (1, grid.row, grid.column, ("Street", "Lane")),
        (_SIDE, grid.column, grid.row, ("Road", "Avenue")),
    ):
        begin = number[place < _SIDE - 1]  # all places but the last place of each street
        end = begin + step
        is_main = line[begin] % _MAIN == _MAIN // 2
        # A main road goes on where a block of it would end in the river: the block ends a step
        # later, beyond a bridge. ``is_wet`` says where. Beyond 3 km from the middle there are no
        # bridges. The minimum only keeps places that ``np.where`` does not take in the grid.
        is_wet = (
            is_main
            & grid.is_land[begin]
            & ~grid.is_land[end]
            & ~grid.is_in_park[end]
            & (place[begin] < _SIDE - 2)
            & (grid.radius[end] < 3000)
        )
        end = np.where(is_wet, np.minimum(end + step, number.size - 1), end)
        # Only main roads cross the river, and about every sixth block of a side street is missing.
        crosses = grid.beyond_river[begin] * grid.beyond_river[end] < 0
        is_street = (
            grid.is_land[begin]
            & grid.is_land[end]
            & (is_main | (~crosses & (draws.random(begin.size) > 0.17)))
        )
        # "Alder Street" and all other trees with "Street", then all trees with "Lane": a name for
        # each of the 84 streets of a direction. Streets of the other direction are "Road"s and
        # "Avenue"s.
        names = np.array([f"{tree} {kind}" for kind in kinds for tree in _TREES.split()])
        begin = begin[is_street]
        streets.append((begin, end[is_street], is_main[is_street], names[line[begin]]))
    along_rows, along_columns = streets
    src, dst, is_main, name = map(np.concatenate, zip(along_rows, along_columns, strict=True))
    return src, dst, is_main, name


def _make_junctions(
    x: np.ndarray, y: np.ndarray, radius: np.ndarray, draws: np.random.Generator
) -> pd.DataFrame:
    """Return the table of junctions, as ``Town`` has it, in the order of their numbers.

    ``x``, ``y`` and ``radius`` are in metres from the middle. Most jobs are in three centres, and
    most people live near the middle.
    """
    # The nearness of each junction to each centre, from 0 to 1: 1 at the centre, and 1/e as far
    # from it as its width. Centres have a place and a width in metres.
    centres = [
        np.exp(-((np.hypot(x - centre_x, y - centre_y) / width) ** 2))
        for centre_x, centre_y, width in ((0, 0, 800), (2300, 1400, 500), (-1900, -1700, 400))
    ]
    jobs = 90 * centres[0] + 120 * centres[1] + 80 * centres[2] + 6 * draws.random(x.size)
    residents = 60 * np.exp(-radius / 2200) * (0.3 + draws.random(x.size))
    return pd.DataFrame(
        {
            "vertex": np.arange(x.size),
            "x": np.round(x / _METRES_PER_DEGREE, 6),
            "y": np.round(y / _METRES_PER_DEGREE, 6),
            "jobs": np.rint(jobs).astype(np.int64),
            "residents": np.rint(residents).astype(np.int64),
        }
    )


def _find_reached(src: np.ndarray, dst: np.ndarray, start: int, n_vertices: int) -> np.ndarray:
    """Return a bool per vertex: whether a path leads to it from ``start``.

    ``src`` and ``dst`` are the ends of the edges. NumPy is enough here, and compiles nothing.
    """
    is_reached = np.zeros(n_vertices, bool)
    is_reached[start] = True
    # Follow the edges of all reached vertices, until a pass reaches no further vertex.
    n_before = 0
    while n_before < np.count_nonzero(is_reached):
        n_before = int(np.count_nonzero(is_reached))
        is_reached[dst[is_reached[src]]] = True
    return is_reached


def _far_apart(x: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """Return the positions of n of the places at ``x`` and ``y`` (metres), ascending. Each is as
    far as possible from the places chosen before it, and none is at the border.
    """
    central = np.flatnonzero(np.hypot(x, y) < 0.75 * np.hypot(x, y).max())
    x = x[central]
    y = y[central]
    place = int(np.argmin(np.hypot(x - 700, y - 500)))  # the first: near a place in the centre
    places = [place]
    distance = np.full(central.size, np.inf)  # to the nearest of the places so far
    while len(places) < n:
        distance = np.minimum(distance, np.hypot(x - x[place], y - y[place]))
        place = int(np.argmax(distance))
        places.append(place)
    return np.sort(central[places])
