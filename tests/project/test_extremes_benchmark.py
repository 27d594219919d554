"""The libraries of the benchmark of extremes are asked the same."""

import numpy as np
import pytest

from kepler_traverse import graph_from_edges
from scripts.bench import extremes
from tests.support.graphs import lattice


@pytest.mark.exhaustive
@pytest.mark.parametrize("directed", [False, True])
def test_networkx_returns_equal_results(directed):
    edges = np.array(lattice(4, 6)).T
    part = graph_from_edges(
        *(np.concatenate([edges, edges[::-1]], axis=1) if directed else edges), directed=directed
    )
    ours, theirs = extremes.kepler(part), extremes.networkx(part)
    for call in extremes.CALLS:
        assert theirs[call]() == ours[call](), call
