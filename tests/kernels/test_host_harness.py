"""The host harness itself: its primitives compute what CUDA's do, and each kind of fault is reported with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.simt import harness
from tests.kernels.simt.launching import FOLDER, every_mode, fails, launch
from tests.support.processes import ran

pytestmark = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)


def run(entry, grid, block, *args, **options):
    launch("primitives.cu", entry, grid, block, *args, **options)


# --- correct kernels --------------------------------------------------------------------------------------------------


@every_mode
def test_every_thread_of_every_block_runs_once(mode):
    out = np.zeros(5 * 40, np.int64)
    run("ids", 5, 40, out, mode=mode)
    assert out.tolist() == [5 * i for i in range(200)]


@every_mode
def test_lanes_that_are_here_get_a_place_each(mode):
    counters, groups = np.zeros(2 + 128, np.int32), np.zeros(1, np.int32)
    run("counts_in_groups", 1, 64, counters, groups, mode=mode)
    assert counters[:2].tolist() == [44, 20]
    assert counters[2:46].all()
    assert counters[66:86].all()
    assert counters[2:].sum() == 64
    if "stress" not in mode:
        assert groups[0] == 4, "lanes at one place go on together"


@every_mode
def test_a_spinning_block_sees_what_another_announces(mode):
    sums, flags, turn = np.zeros(6, np.int32), np.zeros(6, np.int32), np.zeros(1, np.int32)
    run("looks_back", 6, 4, sums, flags, turn, mode=mode)
    assert sums.tolist() == np.arange(6).cumsum().tolist()


def test_the_seed_alone_decides_the_order():
    def order(**mode):
        out = np.zeros(64, np.int32)
        run("order_of_arrival", 2, 32, np.zeros(1, np.int32), out, mode=mode)
        assert sorted(out) == list(range(64))
        return out.tolist()

    orders = [order(stress=True, seed=seed, resident=2) for seed in range(4)]
    assert orders == [order(stress=True, seed=seed, resident=2) for seed in range(4)]
    assert len({tuple(o) for o in orders}) == 4
    assert order() == list(range(64))


# --- faulty kernels ---------------------------------------------------------------------------------------------------

A = np.zeros(64, np.int32)
ARRIVED = np.zeros(4, np.uint32)
TOGETHER, SHARED = {"cooperative": True}, {"shared_mem": 256}
FAULTS = {
    "writes_one_too_far": (
        1,
        8,
        (A[:10], np.int32(10)),
        r"block 0, thread 2: writes 4 bytes out of bounds at byte 40 ",
    ),
    "reads_one_too_far": (
        1,
        8,
        (A[:10], np.int32(10), A[20:21]),
        r"block 0, thread 2: reads 4 bytes out of bounds",
    ),
    "atomic_too_far": (
        2,
        8,
        (A[:10], np.int32(10)),
        r"block \d, thread \d: writes 4 bytes out of bounds",
    ),
    "forgets_the_block_barrier": (
        1,
        64,
        (A,),
        r"thread \d+: rea.*shared memory of block 0",
        SHARED,
    ),
    "reads_past_dynamic_shared_memory": (
        *(1, 64, (A,)),
        r"thread 63: reads 4 bytes out of bounds at byte 256 of shared memory of block \d, which has 256",
        SHARED,
    ),
    "reads_unwritten_shared_memory": (
        1,
        64,
        (A,),
        r"block 0, thread 63: reads what nobody wrote: 4 bytes at byte 252",
    ),
    "exits_before_a_shuffle": (1, 32, (A[:32],), r"thread \d+: .*__shfl_sync of lanes 0xffffffff"),
    "shuffles_in_one_branch": (
        *(1, 64, (A,)),
        r"no thread can go on;\n  block 0, thread 0 to 15: waits in __shfl_sync of lanes 0xffffffff .*"
        r"\n  block 0, thread 16 to 31: waits at a block barrier",
    ),
    "votes_where_others_shuffle": (
        *(1, 32, (A[:32],)),
        r"block 0, thread \d+: __\w+_sync of lanes 0xffffffff .* meets thread \d+ in __",
    ),
    "shuffles_from_a_lane_outside": (
        1,
        32,
        (A[:32],),
        r"__shfl_sync reads lane 20, which is not of its lanes",
    ),
    "shuffles_up_from_outside": (
        1,
        32,
        (A,),
        r"__shfl_up_sync reads lane [4-7], which is not of its lanes 0xffffff00",
    ),
    "matches_without_itself": (
        1,
        16,
        (A,),
        r"__match_any_sync of lanes 0x0000fffe .* is none of the calling lane|exited",
    ),
    "stores_streaming_beside_another": (
        *(2, 8, (A[:16],)),
        r"races, both writing 4 bytes at byte 0 of argument 0, .*; the other is block",
    ),
    "counts_without_an_atomic": (
        1,
        8,
        (A[:1],),
        r"races, .* of argument 0, .*; the other is block 0, thread \d",
    ),
    "reads_beside_an_atomic": (
        1,
        8,
        (A[:2],),
        r"block 0, thread \d: races, (reading|writing) what another",
    ),
    "stores_beside_a_racy_load": (
        *(1, 32, (A,)),
        r"races, (reading|writing) what another (reads|writes), 4 bytes at byte 0 of shared memory of block 0",
    ),
    "adds_beside_an_atomic_in_shared_memory": (
        1,
        32,
        (A,),
        r"thread \d+: races, .*shared memory of block 0",
    ),
    "takes_a_shuffle_for_a_barrier": (
        1,
        32,
        (A,),
        r"races, .* of argument 0",
    ),
    "writes_what_it_loads_as_constant": (
        1,
        8,
        (A[:8],),
        r"block 0, thread \d: writes what this launch loads as constant",
    ),
    "exits_before_the_barrier": (2, 64, (), r"block \d, thread \d+: .*barrier"),
    "waits_at_two_block_barriers": (
        1,
        64,
        (),
        r"block 0, thread \d+: waits at another block barrier than \d+ threads",
    ),
    "counts_where_others_wait": (
        1,
        64,
        (A,),
        r"thread \d+: waits at another block barrier than \d+ threads",
    ),
    "exits_before_the_grid_barrier": (
        2,
        8,
        (),
        r"grid barrier.*exited|exits.* wait at a grid barrier",
        TOGETHER,
    ),
    "waits_at_a_grid_barrier_with_a_count_of": (
        *(2, 8, (ARRIVED[:1] + np.uint32(2),)),
        r"block \d, thread 0: waits at a grid barrier whose count of blocks is 2, and should be 0",
        TOGETHER,
    ),
    "waits_at_two_counts": (
        2,
        8,
        (ARRIVED[:2],),
        r"a grid barrier with another count of blocks than \d+ threads",
        TOGETHER,
    ),
    "forgets_the_grid_barrier": (
        2,
        8,
        (ARRIVED[:1], A[:17]),
        r"races, (reading|writing) what another",
        TOGETHER,
    ),
    "waits_for_ever": (1, 2, (A[:1],), r"block 0, thread \d: no end after 100000 steps"),
    "announces_without_a_fence": (
        2,
        1,
        (A[:1], A[1:2], A[2:3]),
        r"block 1, thread 0: races, reading what another writes,",
    ),
    "hands_out_shared_memory": (
        *(1, 32, (A,)),
        r"kernel add_one_child, launched by block 0, thread 0 of hands_out_shared_memory, block 0, thread \d+: "
        r"touches shared memory of block 0 of kernel hands_out_shared_memory",
    ),
    "hands_out_a_local_variable": (
        1,
        32,
        (A,),
        r"kernel add_one_child, .*: (reads|writes) 4 bytes out of bounds",
    ),
}


@every_mode
@pytest.mark.parametrize("entry", FAULTS)
def test_a_fault_is_reported_with_kernel_block_thread_and_line(entry, mode):
    report = fails(FAULTS[entry], entry, mode)
    assert f" {entry}" in report
    assert "exits, and" in report or "at faults.cu:" in report
    assert ("seed" in report) == ("stress" in mode)


def test_barriers_of_two_branches_are_distinguished_by_their_lines():
    report = fails(FAULTS["waits_at_two_block_barriers"], "waits_at_two_block_barriers", {})
    text = (FOLDER / "faults.cu").read_text().split("waits_at_two_block_barriers")[0]
    assert f"at faults.cu:{text.count(chr(10)) + 5}" in report


def test_a_cooperative_grid_that_does_not_fit_is_refused():
    with pytest.raises(
        harness.SimtError, match="cooperative grid of 17 blocks, and 16 fit at once"
    ):
        launch("faults.cu", "waits_at_two_counts", 17, 8, ARRIVED.copy(), cooperative=True)


def test_arguments_must_have_the_width_of_their_parameters():
    with pytest.raises(harness.SimtError, match="argument 1 has 8 bytes, its parameter 4"):
        launch("faults.cu", "atomic_too_far", 1, 1, A.copy(), np.int64(1))
    with pytest.raises(harness.SimtError, match="argument 2 has 4 bytes, its parameter -1"):
        launch("faults.cu", "atomic_too_far", 1, 1, A.copy(), np.int32(1), np.int32(1))
    with pytest.raises(harness.SimtError, match="more than 1 parameters"):
        launch("faults.cu", "atomic_too_far", 1, 1, A.copy())


def test_a_launch_after_a_fault_runs_as_if_nothing_had_been():
    out = np.zeros(64, np.int64)
    for _ in range(3):
        with pytest.raises(harness.SimtError):
            launch("faults.cu", "exits_before_the_barrier", 2, 64)
        launch("primitives.cu", "ids", 2, 32, out)
        assert out.tolist() == [2 * i for i in range(64)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("writes_one_too_far", "AddressSanitizer: heap-buffer-overflow"),
        ("atomic_too_far", "AddressSanitizer: heap-buffer-overflow"),
        ("overflows_an_integer", "signed integer overflow"),
    ],
)
def test_the_sanitizers_see_faults_too(entry, found):
    script = (
        "import sys, numpy as np\n"
        "from tests.kernels.simt.launching import launch\n"
        "launch('faults.cu', sys.argv[1], 1, 8, np.zeros(10, np.int32), np.int32(10))\n"
    )
    done = ran([sys.executable, "-c", script, entry], env=harness.sanitized_environment())
    assert done.returncode != 0
    assert found in done.stderr
    assert "faults.cu" in done.stderr
    assert f"kernel {entry}, block 0, thread" in done.stderr


@pytest.mark.exhaustive
@pytest.mark.skipif(harness.SANITIZED, reason="this is the run under the sanitizers")
@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("test_strategies_on_host.py", "named or wrong"),
        ("test_graph_kernels.py", "host and (assembled or turned)"),
        ("test_host_cuda_api.py", "turn and not (three or stress or fault)"),
    ],
)
def test_kernels_are_clean_under_the_sanitizers(file, chosen):
    tests = Path(__file__).with_name(file)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--all",
        "-p",
        "no:cacheprovider",
        tests,
        "-k",
        chosen,
    ]
    done = ran(command, env=harness.sanitized_environment())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "passed" in done.stdout
