"""The tables of docs/hierarchies.md are those of the records."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scripts.bench import hierarchy, hierarchy_baselines


@pytest.mark.parametrize("module", [hierarchy, hierarchy_baselines], ids=lambda module: module.__name__)
def test_the_page_has_the_tables_of_the_record(module):
    table = module.rendered(json.loads(module.RECORD.read_text(encoding="utf-8")))
    assert module.BEGIN + table + module.END in module.PAGE.read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_a_baseline_with_a_wrong_distance_is_refused(monkeypatch):
    side = np.arange(40)
    graph = hierarchy.graph_from_edges(side, (side + 1) % 40, side % 7 + 1, directed=False)

    def wrong(_graph):
        return lambda origins, ends: np.ones((origins.size, ends.size)), lambda origins, _: np.ones(origins.size)

    monkeypatch.setattr(hierarchy_baselines, "BASELINES", {"numpy": wrong})
    monkeypatch.setattr(hierarchy_baselines, "NAMES", {"numpy": "numpy"})
    with pytest.raises(AssertionError, match="distances of numpy differ"):
        hierarchy_baselines.measure(graph, 4, 5, 2)
