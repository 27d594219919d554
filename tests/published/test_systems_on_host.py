"""The contract for the papers' systems on the host harness: one adversarial order each, with a separate seed."""

from __future__ import annotations

import zlib
from dataclasses import replace

import hypothesis
import numpy as np
import pytest

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.certificate import certify
from kepler_traverse.published import BFS as OF_BFS
from kepler_traverse.published import SSSP as OF_SSSP
from tests.kernels.simt import device, harness
from tests.kernels.simt.contract import POWER_LAW, contract, rows_in
from tests.support import tiers
from tests.support.graphs import NAMED, build, lattice, path, weights_for

pytestmark = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)

BFS = [row for row in OF_BFS if row.device == "cuda"]
SSSP = [row for row in OF_SSSP if row.device == "cuda"]
each_row = pytest.mark.parametrize("row", [*BFS, *SSSP], ids=lambda row: row.name)
each_bfs_row = pytest.mark.parametrize("row", BFS, ids=lambda row: row.name)

hypothesis.settings.register_profile(
    "papers", deadline=None, max_examples=tiers.examples(5), print_blob=True
)


@pytest.fixture(autouse=True, scope="module")
def _device():
    with device.present():
        yield


@pytest.fixture(autouse=True)
def _order_of_the_row(request):
    """Threads in random order; one block size for all strategies, so that each file is compiled once."""
    row = request.getfixturevalue("row") if "row" in request.fixturenames else None
    seed = zlib.crc32(row.name.encode()) if row else 1
    with harness.settings(stress=not harness.SANITIZED, seed=seed, block=64, resident=3):
        yield


@pytest.fixture(autouse=True)
def _few_examples():
    before = hypothesis.settings.get_current_profile_name()
    hypothesis.settings.load_profile("papers")
    yield
    hypothesis.settings.load_profile(before)


# Most of these systems look at all vertices in each of many levels: smaller graphs where there are many.
CONTRACT = contract([*BFS, *SSSP], path=path(80), lattice=lattice(8, 12))
globals().update(CONTRACT)


def test_every_system_for_a_gpu_is_in_the_contract():
    assert rows_in(CONTRACT) == {row.name for row in (*BFS, *SSSP)}
    assert BFS


@pytest.mark.parametrize(
    ("row", "graph"),
    tiers.by_turns([*BFS, *SSSP], ["power law", "in-star"]),
    ids=lambda each: getattr(each, "name", each),
)
def test_bits_are_those_of_the_cpu_also_for_vertex_numbers_of_64_bits(row, graph):
    rows = {"power law": POWER_LAW}.get(graph) or NAMED[graph]
    graph = build(rows, weights_for(rows, 3))
    plan_of = plan_bfs if row in BFS else plan_sssp
    expected = plan_of(graph)(rows[0][0])
    wide = replace(graph, targets=graph.targets.astype(np.int64))
    for moved in (graph.to("cuda"), wide.to("cuda")):
        if row.unsupported_reason(moved) is None:
            found = plan_of(moved, strategy=row.name)(rows[0][0])
            certify(moved, found).require()
            assert found.distance.get().tobytes() == expected.distance.tobytes()
            assert np.array_equal(found.predecessor.get(), expected.predecessor)


@each_row
def test_distances_are_the_same_without_predecessors(row):
    graph = build(POWER_LAW, weights_for(POWER_LAW, 5)).to("cuda")
    plan_of = plan_bfs if row in BFS else plan_sssp
    with_them, without = (
        plan_of(graph, strategy=row.name, predecessors=wanted)(POWER_LAW[0][0])
        for wanted in (True, False)
    )
    assert without.predecessor is None
    assert without.distance.get().tobytes() == with_them.distance.get().tobytes()


@each_bfs_row
@pytest.mark.parametrize("wanted", [[2], [2, 20, 36]])
def test_a_search_goes_on_until_the_farthest_target_whichever_number_it_has(row, wanted):
    graph = build([(v, v + 1) for v in range(39)], directed=False).to("cuda")
    result = plan_bfs(graph, strategy=row.name, targets=wanted)(39)
    assert [int(result.distance[v]) for v in wanted] == [39 - v for v in wanted]
    certify(graph, result).require()


@each_bfs_row
def test_targets_beyond_the_first_of_each_thread_are_waited_for(row):
    late = (100, 200)  # of so many that the grid goes round more than once
    graph = build(
        [*((0, v) for v in range(1, 300) if v not in late), *((299, v) for v in late)]
    ).to("cuda")
    result = plan_bfs(graph, strategy=row.name, targets=range(1, 300))(0)
    assert [int(result.distance[v]) for v in late] == [2, 2]


@each_bfs_row
def test_strategy_has_its_published_names_as_aliases(row):
    graph = build(path(3)).to("cuda")
    for name in row.aliases:
        assert plan_bfs(graph, strategy=name).strategy is row
