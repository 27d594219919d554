"""Write docs/memory.md: which graphs fit a GPU, how many sources one pass serves, and the time per source, as planned.

``python -m scripts.bench.memory_table`` writes the page; with ``--check`` nothing is written, and the exit code is 1 if
it is stale. Nothing is measured, and no GPU is needed: the planner's functions of sizes are called.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import NamedTuple
from unittest import mock

from kepler_traverse.auto.costs import load_costs
from kepler_traverse.bfs.multi_source import source_per_block
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS
from kepler_traverse.bfs.tuning import SourcePerBlockTuning as SourcePerBlockOfHopsTuning
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
ALL_BLOCKS_OF_HOPS = SourcePerBlockOfHopsTuning(in_flight=SOURCES)
# What a strategy asks its GPU: threads of a multiprocessor and of all 132; shared memory of a block and of a multiprocessor.
H200 = {
    "threads_per_multiprocessor": lambda: 2048,
    "resident_threads": lambda: 132 * 2048,
    "shared_memory": lambda: (232_448, 233_472),
}


class Work(NamedTuple):
    """A search, and the strategies for whole searches from many sources."""

    title: str
    registry: tuple[MultiSourceStrategy, ...]
    weight: int  # bytes per distance
    queries: dict[str, Query]  # by the name of the strategy


WORKS = (
    Work(
        "BFS, summary",
        BFS,
        0,
        {
            "bit_parallel": Query(predecessors=False, output="counts"),
            "source_per_block": Query(
                predecessors=False, output="counts", tuning=ALL_BLOCKS_OF_HOPS
            ),
        },
    ),
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


@mock.patch.multiple(source_per_block, **H200)
def groups_of(work: Work, shape: Shape, card: int) -> list[tuple[float, int]]:
    """Return, for each strategy that fits a card of so many bytes, its estimated milliseconds per source, with the speeds of
    the GPU of the constants, and how many sources a pass serves.
    """
    costs = load_costs("cuda")
    algorithm = work.title.partition(",")[0].lower()
    free = card - TAKEN - bytes_of_graph(shape)
    most = int(free * candidates._SHARE_OF_MEMORY)
    found = []
    for name, query in work.queries.items():
        strategy = strategy_of(work, name)
        try:
            group, _ = candidates._largest_group(strategy, shape, query, SOURCES, most)
        except CapacityError:
            continue
        seconds = costs.seconds(algorithm, strategy, shape, SOURCES, group, costs.measured_on)
        found.append((1000 * seconds / SOURCES, group))
    return found


def sources_per_pass(work: Work, shape: Shape, card: int) -> int:
    """Return how many sources a pass serves on a card of so many bytes, 0 if the graph does not fit."""
    return max((group for _, group in groups_of(work, shape, card)), default=0)


def fastest(work: Work, shape: Shape, card: int) -> str:
    """Return the sources per pass of the fastest strategy and its milliseconds per source; "-" if the graph does not fit."""
    found = groups_of(work, shape, card)
    if not found:
        return "-"
    each, group = min(found)
    return f"{group:,}: {float(f'{each:.2g}'):,g}"


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
            cells.append(fastest(work, make_shape(each, work.weight), size))
        rows.append(cells)
    return rows


def page() -> str:
    """Return the whole text of docs/memory.md."""
    filters = {"in_millions": in_millions, "rows": rows_of}
    return filled("memory.md", filters, works=WORKS, shapes=SHAPES, sizes=SIZES)


main = partial(command, "scripts.bench.memory_table", lambda: {PAGE: page()})


if __name__ == "__main__":
    sys.exit(main())
