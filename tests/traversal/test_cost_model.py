"""Estimated costs of the multi-source strategies of a GPU: the cheaper one agrees with measurements."""

from __future__ import annotations

import pytest

from kepler_traverse.auto.costs import load_costs
from kepler_traverse.bfs import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import MULTI_SOURCE as SSSP_MULTI_SOURCE

# Measured on an H200: vertices, stored edges, levels, and the faster strategy per number of sources at once.
NORTHEAST, POWER_LAW = (1_524_453, 3_868_020, 1600), (646_010, 31_400_044, 7)
LATTICES = (
    (14_400, 57_120, 237),
    (57_600, 229_440, 477),
    (230_400, 919_680, 957),
    (2_250_000, 8_994_000, 2998),
)


def seconds(algorithm, rows, name, shape, n_sources):
    costs = load_costs("cuda")
    row = next(row for row in rows if (row.device, row.name) == ("cuda", name))
    return costs.seconds(
        algorithm, row, shape, n_sources, row.group_size(n_sources), costs.measured_on
    )


@pytest.mark.parametrize(
    ("algorithm", "sizes", "n_sources", "better", "worse"),
    [
        ("bfs", NORTHEAST, 5, "source_per_block", "bit_parallel"),
        ("bfs", NORTHEAST, 1024, "source_per_block", "bit_parallel"),
        # where one block has to walk 31 million edges
        ("bfs", POWER_LAW, 12, "bit_parallel", "source_per_block"),
        ("bfs", POWER_LAW, 1024, "bit_parallel", "source_per_block"),
        ("sssp", NORTHEAST, 64, "source_per_block", "source_per_lane"),
        ("sssp", POWER_LAW, 12, "source_per_lane", "source_per_block"),
        ("sssp", POWER_LAW, 1024, "source_per_lane", "source_per_block"),
        *(
            (algorithm, lattice, k, "source_per_block", "short_search")
            for algorithm in ("bfs", "sssp")
            for lattice in LATTICES
            for k in (16, 512)
        ),
    ],
)
def test_estimates_agree_with_what_was_measured(algorithm, sizes, n_sources, better, worse):
    shape = Shape(*sizes[:2], False, sizes[2], 4, 4 if algorithm == "sssp" else 0)
    rows = {"bfs": BFS_MULTI_SOURCE, "sssp": SSSP_MULTI_SOURCE}[algorithm]
    estimated = [seconds(algorithm, rows, name, shape, n_sources) for name in (better, worse)]
    assert estimated[0] < estimated[1]
