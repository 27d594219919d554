"""The works of labels give equal distances, on both devices."""

from __future__ import annotations

import pytest

from scripts.bench import labels
from scripts.measure.work import OURS, Inputs
from tests.support.devices import FIRST, frames_on_pandas, on_a_device, running
from tests.support.graphs import build, lattice, weights_for

NOT_INSTALLED = "pandana"


@pytest.fixture
def streets(monkeypatch):
    monkeypatch.setattr(labels, "PAIRS", 300)
    monkeypatch.setattr(labels, "FEW", 50)
    rows = lattice(12, 12)
    return build(rows, weights_for(rows, 3), directed=False)


def check_works(case, device, name=labels.WITH_PEERS):
    """Run each work once, and hold what its peers find against each other."""
    building, proving, pairs = labels.works_of(name, Inputs(device=device))
    for work in (building, proving):
        work.clock(work.peer(OURS).prepare(case))
    found = {
        name: pairs.clock(pairs.peer(name).prepare(case)).found
        for name in pairs.peers
        if name != NOT_INSTALLED
    }
    expected = found.pop(OURS)
    assert len(expected) == 300
    assert [pairs.check(expected, each) for each in found.values()] == ["", ""]
    wrong = found["labels alone"] + 1
    assert pairs.check(expected, wrong)


def test_on_the_cpu(streets):
    check_works(labels.Case(streets), "cpu")


def test_of_networks_with_hubs(streets):
    check_works(labels.HubCase(streets), "cpu", labels.HUBS[0])


@on_a_device
def test_on_a_gpu(streets):
    with running(FIRST), frames_on_pandas():
        check_works(labels.Case(streets), "cuda")
