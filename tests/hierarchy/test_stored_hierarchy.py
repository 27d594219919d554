"""A stored hierarchy is loaded unchanged with its graph, or refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from kepler_traverse import load_graph, plan_sssp_many, save_graph
from kepler_traverse.errors import InputError
from kepler_traverse.hierarchy.stored import FOLDER, save_hierarchy
from tests.support.graphs import build, lattice, weights_for

ROWS = lattice(12, 12)


def stored(folder, directed=False, seed=1):
    graph = build(ROWS, weights_for(ROWS, seed), directed)
    graph.hierarchy()
    save_graph(graph, folder)
    return graph


@pytest.mark.parametrize("directed", [True, False])
def test_a_hierarchy_survives_the_disk(directed, tmp_path):
    graph = stored(tmp_path / "graph", directed)
    loaded = load_graph(tmp_path / "graph")
    before, after = graph.hierarchy(), loaded.derived.known_hierarchy("weights")
    assert after.is_symmetric == (not directed)
    for name in ("order", "position"):
        assert np.array_equal(getattr(before, name), getattr(after, name))
    for one, other in zip(
        (*before.upward, *before.downward), (*after.upward, *after.downward), strict=True
    ):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert (before.unit, before.longest, before.levels, before.shortcuts) == (
        after.unit,
        after.longest,
        after.levels,
        after.shortcuts,
    )
    plan = plan_sssp_many(loaded, n_sources=4, strategy="hierarchy_sweep")
    expected = (
        plan_sssp_many(graph, n_sources=4, strategy="near_far_per_thread")
        .run(np.arange(4))
        .distance
    )
    assert np.array_equal(plan.run(np.arange(4)).distance, expected)


def test_a_worker_finds_a_flipped_bit_of_a_hierarchy(tmp_path):
    stored(tmp_path / "graph")
    path = tmp_path / "graph" / FOLDER / "upward_weights.npy"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        InputError, match=r"hierarchy/upward_weights\.npy differs from its checksum"
    ):
        load_graph(tmp_path / "graph", verify=False)


def test_the_hierarchy_of_another_graph_is_refused(tmp_path):
    stored(tmp_path / "graph")
    other = stored(tmp_path / "other", seed=2)
    shutil.rmtree(tmp_path / "graph" / FOLDER)
    save_hierarchy(other.hierarchy(), tmp_path / "graph", other.fingerprint)
    with pytest.raises(InputError, match="its hierarchy is that of another graph"):
        load_graph(tmp_path / "graph")


def test_arrays_that_form_no_hierarchy_are_refused_whatever_their_checksum(tmp_path):
    graph = stored(tmp_path / "graph")
    hierarchy = graph.hierarchy()
    hierarchy.upward.heads[-1] = graph.n_vertices - 1  # leads to itself
    shutil.rmtree(tmp_path / "graph" / FOLDER)
    save_hierarchy(hierarchy, tmp_path / "graph", graph.fingerprint)
    with pytest.raises(InputError, match="its hierarchy is none"):
        load_graph(tmp_path / "graph")
