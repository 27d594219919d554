"""Clusters of blocks on the host: their barrier, shared memory across blocks, and faults of both."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.simt import harness
from tests.kernels.simt.launching import BLOCK, HEADERS, every_mode, fails, integers, launch

pytestmark = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)

sizes = pytest.mark.parametrize("size", [1, 2, 4])


def run(entry, size, grid, *args, **options):
    launch("clusters.cu", entry, grid, BLOCK, *args, defined=(f"CLUSTER={size}",), **options)


@every_mode
@sizes
def test_a_thread_knows_its_cluster_and_its_place_there(size, mode):
    out = np.zeros((8 * BLOCK, 2), np.int32)
    run("cluster_places", size, 8, out, mode=mode)
    assert out.tolist() == [[i // BLOCK % size, i // BLOCK // size] for i in range(8 * BLOCK)]


@every_mode
@sizes
def test_blocks_of_a_cluster_share_what_one_of_them_holds(size, mode):
    values = integers(8 * BLOCK, 0, 100)
    out, last = np.zeros((2, values.size), np.int32)
    run("sums_of_clusters", size, 8, values, out, last, shared_mem=8 * size, mode=mode)
    of_clusters = values.reshape(-1, size * BLOCK)
    assert out.tolist() == of_clusters.sum(axis=1).repeat(size * BLOCK).tolist()
    for mine, any_of_them in zip(of_clusters, last.reshape(of_clusters.shape), strict=True):
        assert len(set(any_of_them)) == 1
        assert any_of_them[0] in mine


@every_mode
@sizes
@pytest.mark.parametrize("cooperative", [False, True])
def test_a_cluster_barrier_holds_all_its_blocks_again_and_again(cooperative, size, mode):
    values = integers(8 * BLOCK)
    expected = np.roll(values.reshape(-1, size, BLOCK), 5, axis=1).ravel() + 5
    arrived = np.zeros(1, np.uint32) if cooperative else np.uint64(0)
    run("hands_round", size, 8, values, np.int32(5), arrived, cooperative=cooperative, mode=mode)
    assert values.tolist() == expected.tolist()


@every_mode
@sizes
def test_child_kernels_run_concurrently_with_clusters(size, mode):
    counts = np.zeros(8, np.int32)
    run("launches_from_clusters", size, 8, counts, mode={"step_limit": 10**9, **mode})
    assert counts.tolist() == [BLOCK * 3 * BLOCK] * 8


# --- faulty kernels ---------------------------------------------------------------------------------------------------

A = np.zeros(4 * BLOCK, np.int32)
PLACE = np.zeros(1, np.uint64)
FAULTS = {
    "touches_before_the_others_begin": (
        2,
        (A,),
        r"block 0, thread \d+: touches shared memory of block 1 .*, which may not have begun: no barrier of the cluster",
    ),
    "exits_while_another_reads": (
        2,
        (A,),
        r"block 1, thread \d+: ends its block while block 0, thread \d+ may still touch its shared memory"
        r"|block 0, thread \d+: touches shared memory of block 1 .*, which has ended",
    ),
    "ends_with_a_barrier_of_the_block": (
        2,
        (A,),
        r"block 1, thread \d+: ends its block while block 0, thread 3 may still touch its shared memory .*: no barrier of"
        r"|block 0, thread 3: touches shared memory of block 1 .*, which has ended",
    ),
    "reads_after_the_end": (
        2,
        (A,),
        r"block 0, thread \d+: touches shared memory of block 1 .*, which has ended",
    ),
    "exits_before_the_cluster_barrier": (
        2,
        (),
        r"cluster barrier that block 1, thread 3 never reaches|block 1, thread 3: exits, and \d+ threads of its cluster",
    ),
    "waits_at_two_cluster_barriers": (
        2,
        (),
        r"thread \d+: waits at another cluster barrier than \d+ threads",
    ),
    "waits_at_a_block_barrier_instead": (
        2,
        (),
        r"no thread can go on;\n  block 0, thread 0 to 63: waits at a cluster barrier at clusters.cu:.*"
        r"\n  block 1, thread 0 to 3: waits at a block barrier at .*"
        r"\n  block 1, thread 4 to 63: waits at a cluster barrier",
    ),
    "forgets_the_cluster_barrier": (
        2,
        (A,),
        r"thread \d+: races, (reading|writing) what another (writes|reads), 4 bytes at byte \d+ of shared memory of block",
    ),
    "adds_beside_an_atomic_from_afar": (
        2,
        (A,),
        r"thread \d+: races, .* 4 bytes at byte 0 of shared memory of block 0",
    ),
    "hands_out_its_own_pointer": (
        2,
        (PLACE, A),
        r"block 1, thread \d+: touches shared memory of block 0 .*, which is another block's",
    ),
    "reaches_into_another_cluster": (
        4,
        (np.zeros(1, np.uint32), PLACE, A),
        r"block [23], thread \d+: touches shared memory of block 1 .*, which is another block's",
        {"cooperative": True},
    ),
    "asks_for_a_block_too_many": (
        2,
        (A,),
        r"asks for shared memory of block 2 of its cluster, which has 2",
    ),
    "asks_for_global_memory_of_another_block": (
        2,
        (A,),
        r"by a pointer that is not to its own shared memory",
    ),
    "reads_past_the_memory_of_another_block": (
        2,
        (A,),
        r"block (0, thread 63: .* of shared memory of block 1|1, thread 63: .* of shared memory of block 0), which has 256",
    ),
    "launches_clusters": (
        1,
        (A,),
        r"launches cluster_places, which has clusters: children have none here",
    ),
}


@every_mode
@pytest.mark.parametrize("entry", FAULTS)
def test_a_fault_is_reported_with_kernel_block_thread_and_line(entry, mode):
    grid, args, expected, options = (*FAULTS[entry], {})[:4]
    fault = (grid, BLOCK, args, expected, {"defined": ("CLUSTER=2",), **options})
    report = fails(fault, entry, mode, "clusters.cu")
    assert f"kernel {entry}" in report
    assert "exits, and" in report or "at clusters.cu:" in report


def test_a_grid_is_a_number_of_whole_clusters_of_at_most_eight_blocks():
    with pytest.raises(
        harness.SimtError, match="a grid of 7 blocks, which is no multiple of its clusters of 2"
    ):
        run("cluster_places", 2, 7, A.copy())
    with pytest.raises(
        harness.SimtError, match="clusters of 16 blocks, and 8 are the most everywhere"
    ):
        run("cluster_places", 16, 16, A.copy())


def test_a_cluster_takes_its_size_from_the_constant():
    text = '#include <kt/cuda_api.cuh>\nextern "C" __global__ void KT_CLUSTER(4) wrong(int* out) { *out = 1; }\n'
    with pytest.raises(harness.SimtError, match="KT_CLUSTER takes the constant CLUSTER"):
        harness.Module(text, (f"-I{HEADERS}", "-DCLUSTER=2"), "wrong").compile()
