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
_MAIN = 10  # one street of so many is a main road
_SPEED = 6.0, 14.0  # metres per second on other streets and on main roads
_DELAY = 5.0  # seconds per junction
_SCHOOLS = 12
_METRES_PER_DEGREE = 111_320.0
_TREES = (
    *(
        "Alder",
        "Apple",
        "Ash",
        "Aspen",
        "Beech",
        "Birch",
        "Box",
        "Cedar",
        "Cherry",
        "Chestnut",
        "Cypress",
        "Elder",
        "Elm",
    ),
    *(
        "Fir",
        "Hawthorn",
        "Hazel",
        "Hickory",
        "Holly",
        "Ivy",
        "Juniper",
        "Larch",
        "Laurel",
        "Lime",
        "Linden",
        "Maple",
    ),
    *(
        "Medlar",
        "Mulberry",
        "Myrtle",
        "Oak",
        "Olive",
        "Pear",
        "Pine",
        "Plane",
        "Plum",
        "Poplar",
        "Quince",
        "Rowan",
    ),
    *("Spruce", "Sycamore", "Walnut", "Willow", "Yew"),
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
        ``vertex`` and ``name``.
    station : int
        The junction in the middle.
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
    angle = np.arctan2(y, x)
    edge_of_town = (
        _BLOCK * _SIDE * (0.47 + 0.035 * np.sin(3 * angle + 1) + 0.02 * np.sin(7 * angle))
    )
    beyond_river = y - (420 * np.sin(x / 1300) - 900)
    in_park = np.hypot(x + 1500, y - 900) < 480
    is_land = (radius < edge_of_town) & ~in_park & (np.abs(beyond_river) > 45)

    streets = []
    for step, line, last, kinds in (
        (1, row, column, ("Street", "Lane")),
        (_SIDE, column, row, ("Road", "Avenue")),
    ):
        begin = number[last < _SIDE - 1]
        end = begin + step
        is_main = line[begin] % _MAIN == _MAIN // 2
        # A main road goes on where a block of it would end in the river.
        wet = (
            is_main
            & is_land[begin]
            & ~is_land[end]
            & ~in_park[end]
            & (last[begin] < _SIDE - 2)
            & (radius[end] < 3000)
        )
        end = np.where(wet, np.minimum(end + step, number.size - 1), end)
        crosses = beyond_river[begin] * beyond_river[end] < 0
        kept = (
            is_land[begin]
            & is_land[end]
            & (is_main | (~crosses & (draws.random(begin.size) > 0.17)))
        )
        names = np.array(
            [f"{_TREES[i % len(_TREES)]} {kinds[i // len(_TREES)]}" for i in range(_SIDE)]
        )
        streets.append((begin[kept], end[kept], is_main[kept], names[line[begin[kept]]]))
    src, dst, is_main, name = (np.concatenate(parts) for parts in zip(*streets, strict=True))
    metres = np.hypot(x[src] - x[dst], y[src] - y[dst])
    seconds = np.rint(metres / np.where(is_main, _SPEED[1], _SPEED[0]) + _DELAY)
    one_way = (
        ~is_main
        & (np.maximum(radius[src], radius[dst]) < 1400)
        & (dst - src == 1)
        & (row[src] % _MAIN % 3 == 1)
    )
    forth = ~one_way | (row[src] % 2 == 0)
    back = ~one_way | (row[src] % 2 == 1)
    street = np.concatenate([np.flatnonzero(forth), np.flatnonzero(back)])
    is_back = np.arange(street.size) >= np.count_nonzero(forth)
    ends = np.where(is_back, dst[street], src[street]), np.where(is_back, src[street], dst[street])

    station = int(np.argmin(np.where(is_land, radius, np.inf)))
    inside = _reached(*ends, station, number.size) & _reached(*ends[::-1], station, number.size)
    renumbered = np.cumsum(inside) - 1
    kept = inside[ends[0]] & inside[ends[1]]
    street = street[kept]
    roads = pd.DataFrame(
        {
            "src": renumbered[ends[0][kept]],
            "dst": renumbered[ends[1][kept]],
            "weight": seconds[street].astype(np.int64),
            "speed": np.where(is_main[street], _SPEED[1], _SPEED[0]),
            "street": name[street],
        }
    )
    x = x[inside]
    y = y[inside]
    radius = radius[inside]
    row = row[inside]
    works = [
        np.exp(-((np.hypot(x - a, y - b) / c) ** 2))
        for a, b, c in ((0, 0, 800), (2300, 1400, 500), (-1900, -1700, 400))
    ]
    junctions = pd.DataFrame(
        {
            "vertex": np.arange(x.size),
            "x": np.round(x / _METRES_PER_DEGREE, 6),
            "y": np.round(y / _METRES_PER_DEGREE, 6),
            "jobs": np.rint(
                90 * works[0] + 120 * works[1] + 80 * works[2] + 6 * draws.random(x.size)
            ).astype(np.int64),
            "residents": np.rint(60 * np.exp(-radius / 2200) * (0.3 + draws.random(x.size))).astype(
                np.int64
            ),
        }
    )
    chosen = _far_apart(x, y, _SCHOOLS)
    first_street = roads.groupby("src")["street"].first()
    schools = pd.DataFrame(
        {
            "vertex": chosen,
            "name": [f"School of {first_street[vertex]}" for vertex in chosen.tolist()],
        }
    )
    return Town(roads, junctions, schools, int(renumbered[station]))


def _reached(src: np.ndarray, dst: np.ndarray, start: int, n_vertices: int) -> np.ndarray:
    """Return which vertices are reached; NumPy is enough here, and compiles nothing."""
    reached = np.zeros(n_vertices, bool)
    reached[start] = True
    before = 0
    while before < (before := int(np.count_nonzero(reached))):
        reached[dst[reached[src]]] = True
    return reached


def _far_apart(x: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """Return n places, each as far as possible from those before it, and none of them at the
    border.
    """
    central = np.flatnonzero(np.hypot(x, y) < 0.75 * np.hypot(x, y).max())
    chosen = [int(central[np.argmin(np.hypot(x[central] - 700, y[central] - 500))])]
    nearest = np.full(central.size, np.inf)
    while len(chosen) < n:
        nearest = np.minimum(
            nearest, np.hypot(x[central] - x[chosen[-1]], y[central] - y[chosen[-1]])
        )
        chosen.append(int(central[np.argmax(nearest)]))
    return np.sort(np.array(chosen))
