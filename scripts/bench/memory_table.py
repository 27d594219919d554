"""Write docs/memory.md: which graphs fit a GPU, and how many sources one pass serves, by the planner's own figures.

``python -m scripts.bench.memory_table`` writes the page; with ``--check`` nothing is written, and the exit code is 1 if
it is stale. Nothing is measured, and no GPU is needed: the planner's functions of sizes are called.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import NamedTuple

from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS
from kepler_traverse.errors import CapacityError
from kepler_traverse.multi_source import candidates
from kepler_traverse.search.query import Query
from kepler_traverse.search.strategy import MultiSourceStrategy, Shape
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP
from kepler_traverse.sssp.tuning import SourcePerBlockTuning
from scripts.pages import ROOT, command, filled

PAGE = ROOT / "docs/memory.md"
CARDS = (8, 16, 24, 48, 80, 141)  # GB
TAKEN = 10**9  # bytes of a card that are assumed to be taken, by the CUDA context and kernels
SOURCES = 10_000
SIZES = (10**6, 10**7, 10**8)  # vertices
MAX_VERTICES = 2**31 - 1  # larger numbers of vertices take 8 bytes
# As many blocks as a group has sources: the most scratch memory, whatever the card.
ALL_BLOCKS = SourcePerBlockTuning(in_flight=SOURCES)


class Work(NamedTuple):
    """A search, and the strategies for whole searches from many sources."""

    title: str
    registry: tuple[MultiSourceStrategy, ...]
    weight: int  # bytes per distance
    queries: dict[str, Query]  # by the name of the strategy


WORKS = (
    Work("BFS, summary", BFS, 0, {"bit_parallel": Query(predecessors=False, output="counts")}),
    Work(
        "SSSP, distances",
        SSSP,
        4,
        {
            "source_per_block": Query(predecessors=False, tuning=ALL_BLOCKS),
            "source_per_lane": Query(predecessors=False),
        },
    ),
)


def road_like(n: int, weight: int) -> Shape:
    """Return the shape of an undirected road network: 2.5 stored edges per vertex, many levels."""
    return Shape(n, 5 * n // 2, False, 2 * math.isqrt(n), 4, weight)


def r_mat_like(n: int, weight: int) -> Shape:
    """Return the shape of a directed R-MAT graph: 16 edges per vertex, few levels."""
    return Shape(n, 16 * n, True, 12, 4, weight)


SHAPES = {
    "road-like: undirected, 2.5 stored edges per vertex": road_like,
    "R-MAT-like: directed, 16 edges per vertex": r_mat_like,
}


def bytes_of_graph(shape: Shape) -> int:
    """Return the bytes of a graph on a GPU: offsets and ids of 8 bytes, targets and weights."""
    return 16 * shape.n_vertices + (shape.index + shape.weight) * shape.n_edges


def strategy_of(work: Work, name: str) -> MultiSourceStrategy:
    """Return the default strategy of that name for a GPU."""
    (found,) = [
        row for row in work.registry if row.name == name and row.device == "cuda" and row.default
    ]
    return found


def sources_per_pass(work: Work, shape: Shape, card: int) -> int:
    """Return how many sources a pass serves on a card of so many bytes, 0 if the graph does not fit."""
    free = card - TAKEN - bytes_of_graph(shape)
    most = int(free * candidates._SHARE)
    largest = 0
    for name, query in work.queries.items():
        try:
            group, _ = candidates._largest_group(
                strategy_of(work, name), shape, query, SOURCES, most
            )
        except CapacityError:
            continue
        largest = max(largest, group)
    return largest


def largest_graph(work: Work, make_shape, card: int) -> int:
    """Return the most vertices of a graph of a shape with which a pass serves one source or more."""
    fits = 1
    does_not = MAX_VERTICES + 1
    while does_not - fits > 1:
        middle = (fits + does_not) // 2
        if sources_per_pass(work, make_shape(middle, work.weight), card):
            fits = middle
        else:
            does_not = middle
    return fits


def in_millions(value: int) -> str:
    """Return a number in millions, rounded down to two digits."""
    digits = max(len(str(value)) - 2, 0)
    rounded = value // 10**digits * 10**digits
    if rounded < 10**9:
        return f"{rounded / 10**6:,.3g} M"
    return f"{rounded // 10**6:,} M"


def rows_of(work: Work, make_shape) -> list[list[str]]:
    rows = []
    for card in CARDS:
        size = card * 10**9
        n = largest_graph(work, make_shape, size)
        shape = make_shape(n, work.weight)
        cells = [f"{card} GB", in_millions(n), in_millions(shape.n_edges)]
        for each in SIZES:
            group = sources_per_pass(work, make_shape(each, work.weight), size)
            cells.append(f"{group:,}" if group else "-")
        rows.append(cells)
    return rows


def page() -> str:
    """Return the whole text of docs/memory.md."""
    filters = {"in_millions": in_millions, "rows": rows_of}
    return filled("memory.md", filters, works=WORKS, shapes=SHAPES, sizes=SIZES)


main = partial(command, "scripts.bench.memory_table", lambda: {PAGE: page()})


if __name__ == "__main__":
    sys.exit(main())
