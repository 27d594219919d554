"""Edge lists at random: shapes, ids, weights, and what of them may be unusual."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

Id = int | str
Row = tuple[Any, Any, Any]  # the two ends, and a weight or None

NO_WEIGHTS = "none"
INTEGERS = "int64"
FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class EdgeList:
    """An edge list, as a user has it.

    Attributes
    ----------
    rows : list of (src, dst, weight)
    directed : bool
    weights : {"none", "int64", "float32", "float64"}
        The type of the weights.
    more_vertices : list of ids
        Vertices that may have no edge.
    about : str
        What was drawn, in a few words.
    back : list of weights, or None
        The weight of each row in the other direction; None closes that.
    closed : set of ids
        Vertices through which no path leads.
    """

    rows: list[Row]
    directed: bool
    weights: str
    more_vertices: list[Id] = field(default_factory=list)
    about: str = ""
    back: list | None = None
    closed: frozenset[Any] = frozenset()

    @property
    def is_weighted(self) -> bool:
        return self.weights != NO_WEIGHTS

    @property
    def has_text_ids(self) -> bool:
        first = self.rows[0][0] if self.rows else self.more_vertices[0]
        return isinstance(first, str)

    @property
    def has_negative_weights(self) -> bool:
        return self.is_weighted and any(weight < 0 for _, _, weight in self.rows)

    def without_weights(self) -> EdgeList:
        """Return the same edges without their weights."""
        return replace(self, rows=[(u, v, None) for u, v, _ in self.rows], weights=NO_WEIGHTS)


def round_to(weights: str, value: float) -> float:
    """Return a float as its type holds it; beyond the largest of the type it is infinite."""
    if weights != "float32":
        return float(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        if value > 0:
            return float("inf")
        return float("-inf")


# Shapes: pairs of numbers from 0 to n - 1.


def _scattered(draw: Random, n: int) -> list[tuple[int, int]]:
    n_rows = draw.choice([max(1, n // 2), n, 2 * n, 4 * n])
    return [(draw.randrange(n), draw.randrange(n)) for _ in range(n_rows)]


def _grid(draw: Random, n: int) -> list[tuple[int, int]]:
    width = max(1, round(n ** draw.choice([0.3, 0.5])))
    across = [(v, v + 1) for v in range(n - 1) if (v + 1) % width]
    down = [(v, v + width) for v in range(n - width)]
    pairs = across + down
    if draw.random() < 0.5:
        pairs = [pair for pair in pairs if draw.random() < 0.9]
    if draw.random() < 0.3:
        pairs += [(v, u) for u, v in pairs]
    return pairs or [(0, n - 1)]


def _chain(_draw: Random, n: int) -> list[tuple[int, int]]:
    return [(v, v + 1) for v in range(n - 1)] or [(0, 0)]


def _star(draw: Random, n: int) -> list[tuple[int, int]]:
    pairs = [(0, v) for v in range(1, n)] or [(0, 0)]
    if draw.random() < 0.5:
        return pairs
    return [(v, u) for u, v in pairs]


def _hubs(draw: Random, n: int) -> list[tuple[int, int]]:
    pairs = [(v, int(v * draw.random() ** 2)) for v in range(n) for _ in range(3)]
    return [(u, v) if draw.random() < 0.5 else (v, u) for u, v in pairs]


def _islands(draw: Random, n: int) -> list[tuple[int, int]]:
    half = max(1, n // 2)
    here = _scattered(draw, half)
    there = [(u + n - half, v + n - half) for u, v in _scattered(draw, half)]
    return here + there


def _forward(draw: Random, n: int) -> list[tuple[int, int]]:
    """Edges that lead to a larger number: no path ends where it begins."""
    return [tuple(sorted(draw.sample(range(n), 2))) for _ in range(3 * n) if n > 1] or [(0, 0)]


def _complete(draw: Random, n: int) -> list[tuple[int, int]]:
    n = min(n, 25)
    return [(u, v) for u in range(n) for v in range(n) if u != v or draw.random() < 0.1] or [(0, 0)]


SHAPES = {
    "scattered": _scattered,
    "grid": _grid,
    "chain": _chain,
    "star": _star,
    "hubs": _hubs,
    "islands": _islands,
    "forward": _forward,
    "complete": _complete,
}


# Weights: their type, those that are drawn from, and the share of edge lists that have them.
WEIGHTS: dict[str, tuple[str, Sequence, int]] = {
    "small": (INTEGERS, range(1, 10), 8),
    "with zeros": (INTEGERS, [0, 0, 1, 2, 3], 4),
    "equal": (INTEGERS, [2], 2),
    "beyond 2^24": (INTEGERS, [1, 3, 2**23 + 1, 2**24 + 1, 2**25 - 1], 3),
    "beyond 2^53": (INTEGERS, [1, 2**53 + 1, 2**54 - 1, 7], 2),
    "below zero": (INTEGERS, range(1, 10), 4),
    "halves": ("float", [k / 4 for k in range(20)], 3),
    "rounded": ("float", [k / 7 for k in range(1, 100)], 4),
    "of all sizes": ("float", [1.0, 0.1, 1e-3, 3.0, 1e5, 16777216.0, 2.0**-20], 2),
    "absorbed": ("float", [1.0, 1e-9, 1e-17, 5.0, 2.0**-126, 0.0], 1),
    "enormous": ("float", [1.0, 1e30, 1e37, 2e38], 1),
    "floats below zero": ("float", [k / 7 for k in range(1, 100)], 2),
    "none": (NO_WEIGHTS, [None], 4),
}
_BELOW_ZERO = ("below zero", "floats below zero")


def _heights(draw: Random, n: int, pairs: list[tuple[int, int]], weights: list) -> list:
    """Return weights of which some are below zero: those of a potential, so that cycles are not; now and then one is."""
    height = [draw.randrange(0, 20) for _ in range(n)]
    changed = []
    for (u, v), weight in zip(pairs, weights, strict=True):
        moved = weight + height[u] - height[v]
        changed.append(abs(moved) if u == v else moved)
    if draw.random() < 0.3:
        changed[draw.randrange(len(changed))] = -30
    return changed


# Ids.


def _counted(_draw: Random, n: int) -> list[Id]:
    return list(range(n))


def _with_gaps(draw: Random, n: int) -> list[Id]:
    return draw.sample(range(-5 * n, 20 * n), n)


def _large(draw: Random, n: int) -> list[Id]:
    start = draw.choice([2**31 - n // 2, 2**32 + 5, 2**53 + 1, -(2**62), 2**63 - 2 * n])
    return [start + k for k in range(n)]


def _names(draw: Random, n: int) -> list[Id]:
    letters = draw.choice(["abc", "aé☃z", "xX_-", "日本語"])
    found = set()
    while len(found) < n:
        word = "".join(draw.choice(letters) for _ in range(draw.randrange(1, 9)))
        found.add(f"{word}{len(found)}q")
    names = sorted(found)
    draw.shuffle(names)
    return names


def _digits(draw: Random, n: int) -> list[Id]:
    width = draw.choice([1, 5])
    return [f"{k:0{width}d}" for k in draw.sample(range(3 * n), n)]


IDS = {
    "counted": _counted,
    "with gaps": _with_gaps,
    "large": _large,
    "names": _names,
    "digits as text": _digits,
}
SIZES = (1, 2, 3, 5, 8, 13, 21, 34, 34, 55, 55, 90, 130)


def draw_edges(draw: Random, largest: int = 10**9) -> EdgeList:
    """Return an edge list at random with some number of vertices."""
    n = min(draw.choice(SIZES), largest)
    if draw.random() < 0.04:
        n = min(draw.choice([400, 1_200]), largest)
    shape = draw.choice(list(SHAPES))
    id_kind = draw.choice(list(IDS))
    weighing = draw.choices(list(WEIGHTS), [share for _, _, share in WEIGHTS.values()])[0]
    is_directed = draw.random() < 0.55
    pairs = SHAPES[shape](draw, n)
    draw.shuffle(pairs)
    if draw.random() < 0.4:
        pairs += draw.choices(pairs, k=max(1, len(pairs) // 5))  # parallel edges
    if draw.random() < 0.2:
        pairs += [(v, v) for v in draw.choices(range(n), k=2)]  # self-loops
    kind, some, _ = WEIGHTS[weighing]
    weights = [draw.choice(some) for _ in pairs]
    if weighing in _BELOW_ZERO and is_directed:
        weights = _heights(draw, n, pairs, weights)
    if kind == "float":
        kind = draw.choice(FLOATS)
        weights = [round_to(kind, weight) for weight in weights]
    ids = IDS[id_kind](draw, n)
    rows = [(ids[u], ids[v], weight) for (u, v), weight in zip(pairs, weights, strict=True)]
    more = []
    if draw.random() < 0.3:
        more = draw.sample(ids, min(n, 1 + n // 4))
    way = "directed" if is_directed else "undirected"
    about = f"{shape} of {n}, {way}, {len(rows)} rows, weights {weighing} ({kind}), ids {id_kind}"
    return EdgeList(rows, is_directed, kind, more, about)


def closed_in_part(draw: Random, edges: EdgeList) -> EdgeList:
    """Return an edge list with a weight per row and direction, or with closed vertices, now and then."""
    if draw.random() < 0.7:
        return edges
    weights = [weight for _, _, weight in edges.rows]
    if edges.directed and not edges.has_negative_weights and edges.weights in (INTEGERS, "float64"):
        back = [draw.choice([None, *weights[:5]]) for _ in weights]
        edges = replace(edges, back=back, about=f"{edges.about}, back {back[:12]}")
    if edges.is_weighted and all(weights) and draw.random() < 0.6:
        closed = frozenset(end for end, _, _ in draw.choices(edges.rows, k=3))
        edges = replace(edges, closed=closed, about=f"{edges.about}, closed {sorted(closed)}")
    return edges
