"""BFS-4K: every knob against the oracle, on a GPU or on the host harness; what the knobs refuse; what is counted."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kepler_traverse import plan_bfs
from kepler_traverse.bfs import gpu_steps
from kepler_traverse.cuda import csr_build
from kepler_traverse.errors import InputError, StrategyError
from kepler_traverse.published.bfs import bfs_4k
from kepler_traverse.published.bfs.params import Bfs4kKnobs
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support import tiers
from tests.support.devices import host, in_each, on_a_device, orders, require_hops
from tests.support.graphs import NAMED, build, lattice, path, rmat, star

# of one block size, so that kernels are compiled once; test_strategies_on_host.py has others
MODES = orders(
    in_turn={"resident": 1, "block": 64},
    stress_1={"stress": True, "seed": 1, "block": 64, "resident": 3},
    stress_2={"stress": True, "seed": 2, "block": 64, "resident": 2},
)
mode = in_each(MODES)


@pytest.fixture
def small_block(monkeypatch):
    """A single block of 64 threads, so that small frontiers are too large for it."""
    monkeypatch.setattr(bfs_4k, "SINGLE_BLOCK", bfs_4k.SINGLE_BLOCK.variant(block=64))
    if not HAS_GPU:
        with harness.settings(block=64):
            yield
    else:
        yield


def run(rows, knobs, source=None, directed=True, **options):
    """Traverse on the device, certified and equal to the oracle."""
    graph = build(rows, directed=directed).to("cuda")
    source = rows[0][0] if source is None else source
    result = plan_bfs(graph, strategy="bfs_4k", knobs=knobs, **options)(source)
    require_hops(result, graph, rows, source, directed)
    return result


ALL_OFF = Bfs4kKnobs(
    k1=1, dynamic_width=False, k2=0.0, heavy="none", k4=0, extended=False, k5=0, shared_reads=False, k7=17,
    append="thread", duplicates="keep",
)  # fmt: skip
HEAVY = {"k2": 1.0, "k3": 1, "k6": 32}  # from 32 edges on
CHANGES = {
    "nothing": {},
    **{f"widths from {k1}": {"k1": k1, "dynamic_width": True} for k1 in (1, 4, 32)},
    **{f"width {k1}": {"k1": k1} for k1 in (2, 8, 32)},
    "children": {"heavy": "children", **HEAVY},
    "large children": {"heavy": "children", "k2": 1.0, "k3": 2, "k6": 64},
    "blocks": {"heavy": "blocks", **HEAVY},
    "discovery": {"k4": 1},
    "extended discovery": {"k4": 1, "extended": True},
    "discovery when small": {"k4": 64},
    "single block": {"k5": 1},
    "single block with room": {"k5": 4, "k1": 4, "dynamic_width": True},
    "single block, discovery": {"k5": 2, "k4": 1, "extended": True},
    "single block, heavy": {"k5": 2, "heavy": "children", **HEAVY},
    "shared reads": {"k1": 32, "shared_reads": True},
    "coalesced writes": {"k7": 0, "append": "warp"},
    "coalesced writes of blocks": {"k7": 1, "append": "block"},
    "Hash64": {"duplicates": "hash64"},
    "Hash64 of a single block": {"duplicates": "hash64", "k5": 1},
    "Hash64, blocks, discovery": {
        "duplicates": "hash64",
        "k4": 1,
        "append": "block",
        "heavy": "blocks",
        **HEAVY,
    },
    "compare and swap": {"duplicates": "atomic", "append": "block"},
}


def layers(width):
    """One vertex, two complete layers, and one vertex."""
    first, second, last = range(1, width + 1), range(width + 1, 2 * width + 1), 2 * width + 1
    return [
        *((0, v) for v in first),
        *((u, v) for u in first for v in second),
        *((u, last) for u in second),
    ]


GRAPHS = {
    "power law": rmat(8, 12, seed=3),
    "star of 1025 behind a path": [(v + 1030, v + 1031) for v in range(4)]
    + [(1034, 0), *star(1025)],
    "lattice": lattice(14, 40),
    "bipartite layers": layers(40),
}


@on_a_device
@pytest.mark.parametrize(("change", "graph"), tiers.few(itertools.product(CHANGES, GRAPHS), 44))
@pytest.mark.usefixtures("mode", "small_block")
def test_each_feature_alone_gives_the_right_hops(change, graph):
    run(GRAPHS[graph], replace(ALL_OFF, **CHANGES[change]))


@on_a_device
@pytest.mark.parametrize(
    "name", ["power law", "complete", "in-star", "star of 1025", "self-loops and parallel edges"]
)
@pytest.mark.usefixtures("mode")
def test_the_published_knobs_give_the_right_hops(name):
    rows = [row[:2] for row in NAMED[name]]
    run(rows, Bfs4kKnobs(k2=1.0, k3=2))
    run(rows, Bfs4kKnobs(k5=0), directed=False)


@on_a_device
@pytest.mark.parametrize("depth", [0, 1, 2, 30, 33, 1000])
@pytest.mark.usefixtures("mode", "small_block")
def test_a_single_block_stops_at_the_depth_asked_for(depth):
    result = run(lattice(20, 20), Bfs4kKnobs(k5=1), max_depth=depth)
    # the farthest corner is 38 hops away, and one level finds nothing
    assert result.rounds == min(depth, 39)


@on_a_device
@pytest.mark.parametrize("target_vertices", [[7], [7, 250], [250, 7], [0]])
@pytest.mark.usefixtures("mode", "small_block")
def test_a_single_block_stops_once_its_targets_are_reached(target_vertices):
    result = run(path(300), Bfs4kKnobs(k5=1), targets=target_vertices)
    assert result.rounds == max(target_vertices)


@on_a_device
@pytest.mark.usefixtures("mode", "small_block")
def test_frontiers_beyond_shared_memory_are_spilled_and_come_back():
    fan = 200
    rows = [(0, v) for v in range(1, fan + 1)]
    rows += [(v, fan + 1) for v in range(1, fan + 1)]
    rows += [(fan + v, fan + v + 1) for v in range(1, 20)]
    result = run(rows, replace(ALL_OFF, k5=1, duplicates="atomic", counters=True))
    # The fan leaves the single block; the vertex behind it goes back.
    assert result.counters["single_block"] == 2
    assert result.counters["many_blocks"] == 1
    assert result.rounds == 22


@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="how many duplicates there are is the GPU's affair")
@pytest.mark.parametrize("k5", [0, 1])
@pytest.mark.usefixtures("small_block")
def test_a_level_that_overflows_its_queue_is_listed_again(monkeypatch, k5):
    frontier, widest = gpu_steps.Frontier, 70
    monkeypatch.setattr(gpu_steps, "Frontier", lambda _n, *types: frontier(widest, *types))
    with device.present(), harness.settings(stress=True, seed=5, block=64, resident=4):
        result = run(layers(widest), replace(ALL_OFF, k5=k5, counters=True))
    assert result.counters["overflows"] > 0


@on_a_device
@pytest.mark.parametrize("duplicates", ["hash64", "keep", "atomic"])
@pytest.mark.usefixtures("mode", "small_block")
def test_bfs_4k_counts_what_is_queued(duplicates):
    rows = GRAPHS["bipartite layers"]
    result = run(rows, replace(ALL_OFF, k1=32, k5=0, duplicates=duplicates, counters=True))
    counted, reached = result.counters, 82
    assert counted["edges"] >= len(rows)  # duplicates in a frontier walk their edges again
    assert counted["queued"] >= reached - 1
    if duplicates == "atomic":
        assert counted["queued"] == reached - 1
        assert counted["edges"] == len(rows)
        assert counted["overflows"] == 0
    if duplicates != "hash64":
        assert counted["duplicates"] == counted["conflicts"] == 0
    assert counted["many_blocks"] == result.rounds == 4
    assert counted["single_block"] == 0


@on_a_device
@pytest.mark.usefixtures("small_block")
def test_hash64_finds_duplicates_that_would_stay():
    if HAS_GPU:
        pytest.skip("how many duplicates there are is the GPU's affair")
    rows = GRAPHS["bipartite layers"]

    def queued(duplicates):
        with device.present(), harness.settings(stress=True, seed=5, block=64, resident=4):
            return run(rows, replace(ALL_OFF, duplicates=duplicates, counters=True)).counters

    kept, hashed = queued("keep"), queued("hash64")
    assert kept["queued"] > 81
    assert hashed["duplicates"] > 0


@on_a_device
@pytest.mark.usefixtures("mode")
def test_children_are_launched_for_heavy_vertices_alone():
    rows = [
        (0, 1),
        (1, 2),
        *((2, v) for v in range(3, 203)),
        (3, 300),
        *((4, v) for v in range(400, 431)),
    ]
    result = run(rows, Bfs4kKnobs(k5=0, counters=True, **HEAVY))
    assert result.counters["children"] == 1
    in_a_block = run(rows, Bfs4kKnobs(k5=1, counters=True, **HEAVY))
    assert in_a_block.counters["children"] == 0


@on_a_device
@pytest.mark.parametrize(
    ("most", "expected"),
    [(0, []), (1, [0]), (2, [0, 1]), (3, [0, 1]), (4, [0, 1, 2, 3]), (240, [0, 1, 2, 3])],
)
@pytest.mark.usefixtures("mode")
def test_heavy_vertices_are_the_share_of_highest_degree(most, expected):
    degrees = {0: 90, 1: 80, 2: 70, 3: 70, 4: 31}
    rows = [(v, 10 + w) for v, degree in degrees.items() for w in range(degree)] + [
        (300 + v, 0) for v in range(145)
    ]
    graph = build(rows).to("cuda")
    n = graph.n_vertices
    assert n == 240
    heavy, least = bfs_4k.high_degree_vertices(graph, Bfs4kKnobs(k2=most / n, k3=1, k6=32))
    assert host(graph.ids)[host(heavy)].tolist() == expected
    assert all(degrees[v] >= least for v in expected)
    assert all(degree < least for v, degree in degrees.items() if v not in expected)


def test_bfs_4k_has_no_more_heavy_vertices_than_children_may_wait(monkeypatch):
    monkeypatch.setattr(bfs_4k, "MAX_CHILDREN", 3)
    if HAS_GPU or harness.COMPILER is None:
        pytest.skip("as good on the harness")
    with device.present():
        rows = [(v, 100 + w) for v in range(6) for w in range(40 + v)]
        heavy, least = bfs_4k.high_degree_vertices(build(rows).to("cuda"), Bfs4kKnobs(**HEAVY))
    assert heavy.tolist() == [3, 4, 5]
    assert least == 43


@pytest.mark.parametrize(
    ("knobs", "size", "expected"),
    [
        ({"k4": 1}, 999, "extended 32"),
        ({"k4": 1, "extended": False}, 999, "discovery 32"),
        ({"k4": 1}, 1000, "virtual 4"),
        ({"k4": 2}, 500, "virtual 4"),
        ({"k4": 2, "k1": 1}, 500, "virtual 2"),
        ({"k4": 0, "k1": 1}, 20, "virtual 32"),
        ({"k4": 0, "k1": 1}, 32, "virtual 16"),
        ({"k4": 0, "k1": 1, "dynamic_width": False}, 20, "virtual 1"),
        ({"k4": 0, "k1": 32}, 1000, "virtual 32"),
        ({"k4": 0, "k1": 32}, 1001, "shared 32"),
        ({"k4": 0, "k1": 32, "shared_reads": False}, 1001, "virtual 32"),
    ],
)
def test_choose_advance_depends_on_the_frontier(knobs, size, expected):
    advance, width = bfs_4k.choose_advance(Bfs4kKnobs(**knobs), size, resident=1000)
    assert f"{['virtual', 'shared', 'discovery', 'extended'][advance]} {width}" == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k1", 3),
        ("k1", 64),
        ("k2", 1.5),
        ("k2", -0.1),
        ("heavy", "all"),
        ("k3", 0),
        ("k4", -1),
        ("k5", 17),
        ("k6", 100),
        ("k7", 18),
        ("append", "grid"),
        ("duplicates", "drop"),
        ("extended", 1),
        ("counters", "yes"),
    ],
)
def test_a_knob_out_of_range_is_an_error_that_names_it(name, value):
    with pytest.raises(InputError, match=f"knob {name} of bfs_4k must be .*, not {value!r}"):
        Bfs4kKnobs(**{name: value})


@on_a_device
@pytest.mark.usefixtures("mode")
def test_a_knob_that_does_not_exist_is_an_error_that_lists_the_others():
    graph = build(path(3)).to("cuda")
    with pytest.raises(StrategyError, match="'bfs_4k' has no knob 'k9'; it has k1, dynamic_width"):
        plan_bfs(graph, strategy="bfs_4k", knobs={"k9": 1})
    with pytest.raises(StrategyError, match="'queue_warp' has no knobs"):
        plan_bfs(graph, strategy="queue_warp", knobs={"k1": 4})
    with pytest.raises(StrategyError, match="takes knobs of type Bfs4kKnobs, not Query"):
        plan_bfs(graph, strategy="bfs_4k", knobs=plan_bfs(graph, strategy="queue_warp").query)


@on_a_device
@pytest.mark.usefixtures("mode")
def test_queues_that_do_not_fit_into_shared_memory_are_an_error_that_names_the_knob():
    if HAS_GPU:
        pytest.skip("the harness has less shared memory")
    with pytest.raises(
        StrategyError, match="knob k5 = 16 of bfs_4k needs 131072 bytes of shared memory"
    ):
        plan_bfs(build(path(3)).to("cuda"), strategy="bfs_4k", knobs={"k5": 16})


# Mean, deviation and maximum of the degrees, as in table 1 of the paper.
@pytest.mark.parametrize(
    ("statistics", "expected"),
    [
        ((2.8, 1.0, 12), {"k1": 4, "k2": 0.0, "k5": 8}),  # roadNet-CA
        ((5.2, 50.2, 28754), {"k1": 32, "k2": 0.0015, "k4": 2}),  # com-youtube
        ((64.0, 10.6, 183), {"k1": 32, "k4": 0, "k5": 0}),  # random.2Mv.128Me
        ((96.0, 1033.2, 413378), {"k1": 32, "k4": 0, "k5": 0, "k2": 0.0015}),  # kron_g500-lon20
    ],
)
def test_the_rule_follows_the_paper(statistics, expected):
    knobs = bfs_4k.rule(*statistics)
    assert {name: getattr(knobs, name) for name in expected} == expected


def test_degrees_of_no_vertices_are_zero():
    assert csr_build.degree_statistics(np.zeros(1, np.int64)) == (0.0, 0.0, 0)
