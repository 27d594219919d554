"""Estimated costs of the multi-source strategies of a GPU: the cheaper one agrees with measurements."""

from __future__ import annotations

import pytest

from kepler_traverse.auto.costs import load_costs
from kepler_traverse.bfs import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import MULTI_SOURCE as SSSP_MULTI_SOURCE

# Measured on an H200: vertices, stored edges, levels, and the faster strategy per number of sources at once.
NORTHEAST, POWER_LAW = (1_524_453, 3_868_020, 1600), (646_010, 31_400_044, 7)
LATTICES = (14_400, 57_120, 237), (57_600, 229_440, 477), (230_400, 919_680, 957), (2_250_000, 8_994_000, 2998)


def seconds(algorithm, rows, name, shape, n_sources):
    costs = load_costs("cuda")
    row = next(row for row in rows if (row.device, row.name) == ("cuda", name))
    return costs.seconds(algorithm, row, shape, n_sources, row.group_size(n_sources), costs.measured_on)


@pytest.mark.parametrize(
    ("sizes", "n_sources", "better", "worse"),
    [
        (NORTHEAST, 5, "source_per_block", "bit_parallel"),
        (NORTHEAST, 1024, "source_per_block", "bit_parallel"),
        (POWER_LAW, 12, "bit_parallel", "source_per_block"),  # where one block has to walk 31 million edges
        (POWER_LAW, 1024, "bit_parallel", "source_per_block"),
        *((lattice, k, "source_per_block", "short_search") for lattice in LATTICES for k in (16, 512)),
    ],
)
def test_estimates_agree_with_what_was_measured(sizes, n_sources, better, worse):
    shape = Shape(sizes[0], sizes[1], False, sizes[2], 4, 0)
    assert seconds("bfs", BFS_MULTI_SOURCE, better, shape, n_sources) < seconds(
        "bfs", BFS_MULTI_SOURCE, worse, shape, n_sources
    )


@pytest.mark.parametrize(
    ("sizes", "n_sources", "better", "worse"),
    [
        (NORTHEAST, 64, "source_per_block", "source_per_lane"),
        (POWER_LAW, 12, "source_per_lane", "source_per_block"),
        (POWER_LAW, 1024, "source_per_lane", "source_per_block"),
        *((lattice, k, "source_per_block", "short_search") for lattice in LATTICES for k in (16, 512)),
    ],
)
def test_weighted_estimates_agree_with_what_was_measured(sizes, n_sources, better, worse):
    shape = Shape(sizes[0], sizes[1], False, sizes[2], 4, 4)
    assert seconds("sssp", SSSP_MULTI_SOURCE, better, shape, n_sources) < seconds(
        "sssp", SSSP_MULTI_SOURCE, worse, shape, n_sources
    )
