"""Systems without a queue: every knob against the oracle, refused values, and faults that only they could have."""

from __future__ import annotations

import numpy as np
import pytest

from kepler_traverse import plan_bfs
from kepler_traverse.errors import InputError
from kepler_traverse.published.bfs import topology_driven
from kepler_traverse.published.bfs.params import DeferKnobs, VirtualWarpKnobs
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support import tiers
from tests.support.devices import host, in_each, on_a_device, orders, require_hops
from tests.support.graphs import NAMED, build, lattice, path, rmat, star

MODES = orders(
    in_turn={"resident": 1, "block": 64},
    stress={"stress": True, "seed": 3, "block": 64, "resident": 3},
)
mode = in_each(MODES)
GRAPHS = {
    "power law": rmat(8, 8, seed=3),
    "star of 1025 behind a path": [(v + 1030, v + 1031) for v in range(4)]
    + [(1034, 0), *star(1025)],
    "many stars": [(0, v) for v in range(1, 100)]
    + [(v, 100 * v + w) for v in range(1, 100) for w in range(v)],
}


def run(strategy, rows, knobs=None, directed=True, **options):
    """Traverse on the device, certified and equal to the oracle."""
    graph = build(rows, directed=directed).to("cuda")
    result = plan_bfs(graph, strategy=strategy, knobs=knobs, **options)(rows[0][0])
    require_hops(result, graph, rows, rows[0][0], directed)
    return result


@on_a_device
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.usefixtures("mode")
def test_virtual_warps_of_every_width_give_the_right_hops(width, graph):
    run("scan_virtual_warp", GRAPHS[graph], {"width": width})


# Capacities for no vertex, for one round of a block of 32 threads, for a few rounds, and for all.
@on_a_device
@pytest.mark.parametrize(
    ("graph", "room", "defer_from"),
    tiers.pairs(list(GRAPHS), [0, 31, 32, 40, 4096], [0, 2, 16, 2**63 - 1]),
)
@pytest.mark.usefixtures("mode")
def test_deferring_gives_the_right_hops_whatever_is_deferred_and_however_many_have_room(
    defer_from, room, graph
):
    run("scan_deferred", GRAPHS[graph], {"defer_from": defer_from, "room": room})


@pytest.mark.parametrize(
    ("knobs", "name", "value", "system"),
    [
        *(
            (VirtualWarpKnobs, "width", value, "scan_virtual_warp")
            for value in (0, 3, 64, True, "wide")
        ),
        *((DeferKnobs, "defer_from", value, "scan_deferred") for value in (-1, 2**63, 1.5, True)),
        *((DeferKnobs, "room", value, "scan_deferred") for value in (-1, 4097, 0.5, False)),
    ],
)
def test_a_knob_out_of_range_is_an_error_that_names_it(knobs, name, value, system):
    with pytest.raises(InputError, match=f"knob {name} of {system} must be .*, not {value!r}"):
        knobs(**{name: value})


# Edges that lead from larger to smaller numbers and back: a round finds vertices far beyond its number of hops.
@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="the order of threads is the GPU's affair")
@pytest.mark.parametrize("strategy", ["scan_relax", "scan_relax_edges"])
@pytest.mark.parametrize("seed", range(4))
def test_rounds_return_nothing_beyond_a_limit_or_the_farthest_target(strategy, seed):
    rows = lattice(9, 11)
    with device.present(), harness.settings(stress=seed > 0, seed=seed, block=64, resident=3):
        for directed in (True, False):
            run(strategy, rows, directed=directed, max_depth=5)
            result = run(strategy, rows, directed=directed, targets=[4, 36])
            assert result.limit is not None
            # 18 hops, and a round that changes nothing
            assert run(strategy, rows, directed=directed).rounds <= 20


@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="the order of threads is the GPU's affair")
def test_a_round_may_find_more_than_one_level():
    with device.present(), harness.settings(stress=True, seed=1, block=64, resident=3):
        assert run("scan_relax", path(200)).rounds < 200
        assert run("scan_level", path(200)).rounds == 201


@on_a_device
@pytest.mark.usefixtures("mode")
def test_vertices_are_renamed_by_degree_with_all_of_their_edges():
    rows = (
        [row[:2] for row in NAMED["self-loops and parallel edges"]]
        + star(40)
        + [(40, v) for v in range(20)]
    )
    graph = build(rows).to("cuda")
    degrees = np.diff(host(graph.offsets))
    order = host(topology_driven.order_by_degree(graph))
    assert sorted(order) == list(range(graph.n_vertices))
    assert degrees[order].tolist() == sorted(degrees)
    run("scan_by_degree", rows)


@on_a_device
@pytest.mark.parametrize("strategy", [row.name for row in topology_driven.STRATEGIES])
@pytest.mark.usefixtures("mode")
def test_a_plan_allocates_no_more_than_it_says(strategy, monkeypatch):
    if HAS_GPU:
        pytest.skip("counted on the harness")
    graph = build(GRAPHS["many stars"]).to("cuda")
    n, m = graph.n_vertices, graph.n_edges
    made = []

    def recording(make):
        return lambda *args: made.append(make(*args)) or made[-1]

    for name in ("empty", "zeros", "zeros_like"):
        monkeypatch.setattr(device.cp, name, recording(getattr(device.cp, name)), raising=False)
    for predecessors in (True, False):
        made.clear()
        plan = plan_bfs(graph, strategy=strategy, predecessors=predecessors)
        assert sum(array.nbytes for array in made) <= plan.strategy.memory(n, m, predecessors) + 64
