"""The knobs of H-BF: what they refuse, what the degrees choose, lanes that share a vertex, the memory of a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kepler_traverse import plan_sssp
from kepler_traverse.errors import InputError, StrategyError
from kepler_traverse.published.sssp import h_bf
from kepler_traverse.published.sssp.params import HBfKnobs
from kepler_traverse.search.query import Query
from tests.conftest import HAS_GPU
from tests.support.devices import in_one, on_a_device
from tests.support.graphs import NAMED, build, lattice, star, weights_for

pytestmark = on_a_device


gpu = in_one(None if HAS_GPU else {"block": 64})
on_a_device = pytest.mark.usefixtures("gpu")

LAYERS = [(0, v) for v in range(1, 41)] + [(v, 41 + v) for v in range(1, 41)]  # 81 vertices


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        (
            {"duplicates": "atomic32"},
            "duplicates of h_bf must be 'atomic64', 'mark' or 'keep', not 'atomic32'",
        ),
        ({"enqueue": ""}, "enqueue"),
        ({"heavy": "warps"}, "heavy"),
        ({"heavy": None}, "heavy"),
        ({"edge_classes": 1}, "edge_classes of h_bf must be true or false, not 1"),
        ({"stream_frontier": "yes"}, "stream_frontier"),
        ({"counters": None}, "counters"),
        ({"vertices_per_warp": 0}, "vertices_per_warp"),
        ({"vertices_per_warp": 1025}, "vertices_per_warp"),
        ({"vertices_per_warp": True}, "vertices_per_warp"),
        ({"rounds_per_read": 0}, "rounds_per_read"),
        ({"min_width": 3}, "min_width"),
        ({"max_width": 64}, "max_width"),
        ({"min_width": 4.0}, "min_width"),
        ({"min_width": 16, "max_width": 8}, "16 > 8"),
        ({"heavy_degree": 0}, "heavy_degree"),
        ({"heavy_degree": 2**31}, "heavy_degree"),
    ],
)
def test_a_knob_out_of_range_is_an_error_that_says_what_fits(knobs, message):
    with pytest.raises(InputError, match=message):
        HBfKnobs(**knobs)


@on_a_device
def test_knobs_that_the_types_of_a_graph_do_not_allow_are_refused():
    rows = LAYERS
    wide = build(rows, weights_for(rows, 1, "floats"), weight_type="float64").to("cuda")
    with pytest.raises(StrategyError, match="duplicates to 'mark'"):
        plan_sssp(wide, strategy="h_bf", knobs=HBfKnobs())
    numbers = build(rows, weights_for(rows, 1))
    numbers = replace(numbers, targets=numbers.targets.astype(np.int64)).to("cuda")
    with pytest.raises(StrategyError, match="edge_classes to false"):
        plan_sssp(numbers, strategy="h_bf", knobs={"edge_classes": True})
    with pytest.raises(StrategyError, match="no knob 'k1'; it has edge_classes"):
        plan_sssp(numbers, strategy="h_bf", knobs={"k1": 4})


@on_a_device
def test_vertices_too_many_for_30_bits_are_refused_before_anything_is_marked(monkeypatch):
    monkeypatch.setattr(h_bf, "_MAX_VERTICES", 80)
    rows = LAYERS
    graph = build(rows, weights_for(rows, 1)).to("cuda")
    with pytest.raises(StrategyError, match="this graph has 81"):
        plan_sssp(graph, strategy="h_bf", knobs=HBfKnobs())
    assert not h_bf.rule(graph).edge_classes


@on_a_device
@pytest.mark.parametrize(
    ("rows", "kind", "expected"),
    [
        (lattice(9, 30), "float32", {"duplicates": "atomic64", "heavy": "none", "enqueue": "atomic", "max_width": 4}),
        (lattice(9, 30), "float64", {"duplicates": "mark"}),
        (star(5000), "float32", {"edge_classes": True, "heavy": "none", "min_width": 32}),
        (star(33000), "float32", {"heavy": "children"}),
        (NAMED["complete"], "float32", {"edge_classes": True, "enqueue": "prefix_sum", "min_width": 32}),
        ([(0, 0)], "float32", {"heavy": "none"}),
    ],
    ids=["lattice", "lattice in float64", "star", "large star", "complete", "no edge"],
)  # fmt: skip
def test_the_degrees_choose_the_knobs(rows, kind, expected):
    graph = build(rows, np.array(weights_for(rows, 1), kind), weight_type=kind).to("cuda")
    knobs = h_bf.rule(graph)
    assert {name: getattr(knobs, name) for name in expected} == expected
    h_bf.refuse(graph, knobs)


@pytest.mark.parametrize(
    ("narrowest", "widest", "size", "expected"),
    [(4, 32, 1, 32), (4, 32, 31, 32), (4, 32, 32, 16), (4, 32, 125, 8), (4, 32, 126, 4), (4, 32, 5000, 4),
     (1, 32, 501, 1), (1, 32, 500, 2), (8, 8, 1, 8), (8, 16, 2, 16)],
)  # fmt: skip
def test_the_frontier_chooses_how_many_lanes_share_a_vertex(narrowest, widest, size, expected):
    knobs = HBfKnobs(min_width=narrowest, max_width=widest)
    assert h_bf.width_for(knobs, size, resident=1000) == expected


@on_a_device
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_plan_says_how_much_memory_it_takes_at_most(kind, negative):
    rows = [(v, 100 * v + w) for v in range(8) for w in range(1, 22)]
    weights = np.array(weights_for(rows, 1), kind) - negative
    graph = build(rows, weights, weight_type=kind).to("cuda")
    duplicates = "atomic64" if kind == "float32" else "mark"
    state = h_bf.Run(
        graph, Query(knobs=HBfKnobs(duplicates=duplicates, heavy="blocks", heavy_degree=20))
    )
    assert state.classified is not graph.targets
    arrays = [
        state.distance,
        state.predecessor,
        state.queued_in,
        state.words,
        state.parent,
        state.hubs,
        state.classified,
    ]
    arrays += [state.frontier.queue, state.frontier.next]
    taken = sum(array.nbytes for array in arrays if array is not None)
    most = h_bf.memory(graph.n_vertices, graph.n_edges, True)
    assert taken <= most
    assert most - taken <= 4 * 4 * graph.n_vertices  # not much more
