"""The benchmark of extremes compares results before it times them."""

import numpy as np
import pytest

from kepler_traverse import graph_from_edges
from scripts.bench import extremes
from tests.support.graphs import lattice


def test_the_benchmark_refuses_results_that_differ():
    extremes.require_equal([1, 2], [1, 2], "here")
    with pytest.raises(AssertionError, match="here"):
        extremes.require_equal([1, 2], [2, 1], "here")


@pytest.mark.exhaustive
@pytest.mark.parametrize("directed", [False, True])
def test_networkx_returns_equal_results(directed):
    edges = np.array(lattice(4, 6)).T
    part = graph_from_edges(
        *(np.concatenate([edges, edges[::-1]], axis=1) if directed else edges), directed=directed
    )
    for call in extremes.calls_of("netscience", part, ["networkx"]):
        assert call.by_library["networkx"]() == call.by_library["kepler"](), call.name
