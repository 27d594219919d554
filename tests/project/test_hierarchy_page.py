"""The suite of hierarchies compares results before it times them."""

from dataclasses import replace

import numpy as np
import pytest

from kepler_traverse import graph_from_edges
from scripts.bench import hierarchy
from scripts.measure import harness
from scripts.measure.log import Log
from scripts.measure.work import OURS, Inputs


@pytest.fixture
def little(monkeypatch):
    """A ring for the works of the suite, with few sources."""
    for name in ("PAIRS", "TARGETS", "WHOLE", "BASELINE_ORIGINS"):
        monkeypatch.setattr(hierarchy, name, 20)
    few = {name: (*row[:2], 20, 4) for name, row in hierarchy.ASKED.items()}
    monkeypatch.setattr(hierarchy, "ASKED", few)
    side = np.arange(240)
    return graph_from_edges(side, (side + 1) % 240, side % 7 + 1, directed=False)


def test_sweeps_give_what_searches_give(little):
    for work in (*hierarchy.builds("ring"), *hierarchy.sweeps(hierarchy.ROADS[1])):
        calls = [work.peer(name).prepare(little) for name in work.peers]
        first, *others = [work.clock(call).found for call in calls]
        assert [work.check(first, each) for each in others] == [""] * len(others), work.name


def test_a_library_with_a_wrong_distance_is_refused(little, monkeypatch, tmp_path):
    wrong = hierarchy.Network(
        lambda origins, ends: np.ones((origins.size, ends.size)),
        lambda origins, _ends: np.ones(origins.size),
    )
    networks = {OURS: hierarchy.of_kepler, "numpy": lambda _graph: wrong}
    monkeypatch.setattr(hierarchy, "NETWORKS", networks)
    compared = hierarchy.Compared(little)
    for work in list(hierarchy.beside_libraries("ring"))[1:]:
        refused = pytest.raises(SystemExit, match="numpy: the results differ")
        with Log(tmp_path / work.name, harness.KEY) as log, refused:
            harness.measure("s", replace(work, case=lambda _: compared), Inputs(), log)
