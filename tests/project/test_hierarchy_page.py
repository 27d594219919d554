"""The benchmark of hierarchies compares distances before it times them."""

import numpy as np
import pytest

from scripts.bench import hierarchy, hierarchy_baselines


@pytest.mark.exhaustive
def test_a_baseline_with_a_wrong_distance_is_refused(monkeypatch):
    side = np.arange(40)
    graph = hierarchy.graph_from_edges(side, (side + 1) % 40, side % 7 + 1, directed=False)

    def wrong(_graph):
        return lambda origins, ends: np.ones((origins.size, ends.size)), lambda origins, _: np.ones(
            origins.size
        )

    monkeypatch.setattr(hierarchy_baselines, "BASELINES", {"numpy": wrong})
    monkeypatch.setattr(hierarchy_baselines, "NAMES", {"numpy": "numpy"})
    with pytest.raises(AssertionError, match=r"distances of numpy .* differ"):
        hierarchy_baselines.measure(graph, 4, 5, 2)
