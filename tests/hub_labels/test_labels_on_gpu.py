"""Pairs by labels on a GPU, or on the host harness, are those of the CPU."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import cuda, plan_sssp_many, sssp_many, sssp_pairs
from kepler_traverse.errors import InputError
from kepler_traverse.hub_labels.on_gpu import LabelsOnGpu
from tests.support.devices import (
    FIRST,
    MODES,
    frames_on_pandas,
    host,
    in_each,
    in_one,
    on_a_device,
    running,
)
from tests.support.graphs import build, lattice, path, rmat, star, weighted_rows, weights_for

pytestmark = on_a_device

mode, one_order = in_each(MODES), in_one(FIRST)
GRAPHS = {
    "lattice": lattice(9, 11),
    "one-way edges": [(v, v + 1) for v in range(40)] + [(v + 2, v) for v in range(0, 39, 3)],
    "several components": [*path(20), (50, 51), (51, 52), (60, 60), (70, 71), (71, 70)],
    "star": star(70),
    "power law": rmat(6, 4, seed=3),
}


def check(graph, n_pairs=None):
    labels = graph.labels()
    n = graph.n_vertices
    pairs = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    if n_pairs is not None:
        pairs = tuple(np.random.default_rng(1).integers(0, n, (2, n_pairs)))
    found = labels.between(*(cuda.cp.asarray(each) for each in pairs))
    assert np.array_equal(host(found), labels.between(*pairs))


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_pairs_are_those_of_the_cpu(name, directed):
    rows = GRAPHS[name]
    check(build(rows, weights_for(rows, 2), directed), 300)


@pytest.mark.usefixtures("mode")
def test_labels_that_are_longer_than_a_warp():
    rows = [(u, v) for u in range(60) for v in range(u)]
    graph = build(rows, np.random.default_rng(2).integers(900, 1000, len(rows)), directed=False)
    assert graph.labels().longest > 32
    check(graph, 400)


@settings(max_examples=15)
@given(drawn=weighted_rows(st.sampled_from([0, 1, 9, 2**40]), max_rows=30), directed=st.booleans())
def test_pairs_of_any_graph_are_those_of_the_cpu(drawn, directed):
    with running(FIRST):
        check(build(*drawn, directed))


@pytest.mark.usefixtures("one_order")
def test_no_pairs_and_unequal_columns():
    labels = build(GRAPHS["star"], weights_for(GRAPHS["star"], 1)).labels()
    nothing = cuda.cp.zeros(0, np.int64)
    assert labels.between(nothing, nothing).size == 0
    with pytest.raises(InputError, match="a pair needs one of each"):
        labels.between(nothing, cuda.cp.zeros(2, np.int64))
    with pytest.raises(InputError, match="number 71 is no vertex number"):
        labels.between(np.array([0]), np.array([71]))


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weight_type", ["auto", "float32"])
def test_searches_for_pairs_and_few_targets_are_answered(directed, weight_type, monkeypatch):
    answers = []
    between = LabelsOnGpu.between

    def counted(self, sources, targets):
        answers.append(sources.size)
        return between(self, sources, targets)

    monkeypatch.setattr(LabelsOnGpu, "between", counted)
    rows = [*lattice(30, 30), (2000, 2001)]
    weights = np.array(weights_for(rows, 2))
    if weight_type == "float32":
        weights = weights / 4
    graph = build(rows, weights, directed, weight_type=weight_type)
    pairs = graph.ids_at(np.random.default_rng(3).integers(0, graph.n_vertices, 400)).reshape(2, -1)
    asked = {"result": "targets", "targets": pairs[1][:3]}
    expected = sssp_pairs(graph, *pairs), sssp_many(graph, graph.ids_at(np.arange(50)), **asked)
    graph.labels()
    on_gpu = graph.to("cuda")
    with frames_on_pandas():
        named = {"strategy": "hierarchy_sweep"}
        found = sssp_pairs(on_gpu, *pairs, **named)
        table = sssp_many(on_gpu, graph.ids_at(np.arange(50)), **named, **asked)
    assert answers == [200, 150]
    for each, right in zip((found, table), expected, strict=True):
        distance = pd.DataFrame(each)["distance"].to_numpy(np.float64, na_value=np.inf)
        assert np.array_equal(distance, right["distance"].to_numpy(np.float64, na_value=np.inf))
    plan = plan_sssp_many(on_gpu, n_sources=200, result="pairs")
    assert "hub labels answer the targets" in plan.why or plan.strategy.name != "hierarchy_sweep"
