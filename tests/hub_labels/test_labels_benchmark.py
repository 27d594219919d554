"""The benchmark of labels runs to its end, on both devices, and checks what it times."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scripts.bench import labels
from tests.support.devices import FIRST, frames_on_pandas, on_a_device, running
from tests.support.graphs import lattice, weights_for


@pytest.fixture
def edges(tmp_path):
    rows = np.array(lattice(12, 12))
    frame = pd.DataFrame({"src": rows[:, 0], "dst": rows[:, 1]})
    path = tmp_path / "edges.parquet"
    frame.assign(weight=weights_for(rows, 3)).to_parquet(path)
    return str(path)


def test_on_the_cpu(edges):
    figures = labels.measure(edges, "cpu", 300, False)
    assert figures["vertices"] == 144
    assert figures["merge, us per pair"] > 0
    assert "GPU, million pairs per second" not in figures


@on_a_device
def test_on_a_gpu(edges):
    with running(FIRST), frames_on_pandas():
        figures = labels.measure(edges, "cuda", 300, False)
    assert figures["GPU, million pairs per second"] >= 0
    assert figures["GPU, sssp_pairs, us per pair"] > 0
