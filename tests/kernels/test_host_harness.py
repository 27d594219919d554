"""The host harness itself: its primitives compute what CUDA's do, and each kind of fault is reported with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.simt import harness
from tests.kernels.simt.launching import every_mode, fails, integers, launch
from tests.support.processes import ran

pytestmark = pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels for the host")


def run(entry, grid, block, *args, **options):
    launch("primitives.cu", entry, grid, block, *args, **options)


# --- correct kernels --------------------------------------------------------------------------------------------------


@every_mode
def test_every_thread_of_every_block_runs_once(mode):
    out = np.zeros(5 * 40, np.int64)
    run("ids", 5, 40, out, mode=mode)
    assert out.tolist() == [5 * i for i in range(200)]


@every_mode
@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize("argument", [0, 1, 5, 20])
def test_shuffles_give_the_value_of_the_lane_that_cuda_defines(argument, width, mode):
    values, out = integers(64), np.zeros((4, 64))
    run("shuffles", 1, 64, values, np.int32(argument), np.int32(width), out, mode=mode)
    for t in range(64):
        warp, lane = t // 32 * 32, t % 32
        first = lane // width * width
        up, down, across = lane - argument, lane + argument, lane ^ argument
        sources = [
            first + argument % width,
            up if up >= first else lane,
            down if down < first + width else lane,
            across if across < first + width else lane,
        ]
        assert out[:, t].tolist() == [values[warp + s] for s in sources]


@every_mode
@pytest.mark.parametrize("values", [integers(64, -2, 3), np.full(64, 4, np.int32)], ids=["mixed", "equal"])
def test_votes_and_matches_see_the_lanes_of_their_mask(values, mode):
    out = np.zeros((6, 64), np.uint32)
    run("votes", 1, 64, values, out, mode=mode)
    for warp in (0, 32):
        lanes = range(24)
        mine = [int(values[warp + i]) for i in lanes]
        ballot = sum(1 << i for i in lanes if mine[i] > 0)
        equal = len(set(mine)) == 1
        for i in lanes:
            match = sum(1 << j for j in lanes if mine[j] == mine[i])
            expected = [ballot, ballot != 0, ballot == 0xFFFFFF, match, 0xFFFFFF * equal, equal]
            assert out[:, warp + i].tolist() == expected


@every_mode
def test_reductions_are_those_of_signed_and_unsigned_numbers(mode):
    values, out = integers(64), np.zeros((7, 64), np.int32)
    run("reductions", 1, 64, values, out, mode=mode)
    for warp in (slice(0, 32), slice(32, 64)):
        mine, bits = values[warp], values[warp].view(np.uint32)
        folds = [np.bitwise_and.reduce(bits), np.bitwise_or.reduce(bits), np.bitwise_xor.reduce(bits)]
        expected = [mine.sum(), mine.min(), mine.max(), *(np.uint32(x).view(np.int32) for x in (bits.min(), *folds))]
        assert (out[:, warp] == np.array(expected, np.int32)[:, None]).all()


@every_mode
def test_barriers_count_what_their_block_says(mode):
    values, out = np.array([0] * 40 + [1] * 40 + [0, 1] * 20, np.int32), np.zeros((3, 3, 40), np.int32)
    run("counting_barriers", 3, 40, values, out, mode=mode)
    assert out.tolist() == [[[n] * 40 for n in block] for block in ([0, 0, 0], [40, 1, 1], [20, 0, 1])]


@every_mode
def test_atomics_of_all_types_lose_nothing(mode):
    i = np.arange(3 * 40)
    values = {
        np.int32: i - 20,
        np.uint32: i,
        np.int64: (i - 20) << 33 | 7,
        np.uint64: i << 33 | 7,
        np.float32: i - 20,
        np.float64: i - 20,
    }
    start = 50
    out = {kind: np.full(5, start, kind) for kind in values}
    bits = np.array([0xFFFFFFFF, 0, 0], np.uint32)
    run("atomics", 3, 40, *out.values(), bits, mode=mode)
    for kind, added in values.items():
        least, most, total = min(added.min(), start), max(added.max(), start), start + added.sum()
        exchanged = 7 if 7 in added else start
        assert out[kind].tolist() == np.array([total, least, most, exchanged, total], kind).tolist()
    assert bits.tolist() == [0, 0xFFFFFFFF, np.bitwise_xor.reduce(np.left_shift(1, i % 32))]


@every_mode
def test_each_block_has_shared_memory_of_its_own(mode):
    values = integers(5 * 64)
    expected = values.reshape(5, 64).cumsum(axis=1).ravel()
    run("scan_in_shared_memory", 5, 64, values, shared_mem=64 * 4, mode=mode)
    assert np.array_equal(values, expected)


@every_mode
def test_a_grid_barrier_holds_all_blocks(mode):
    values, others = integers(3 * 8), np.zeros(3 * 8, np.int32)
    expected = values.copy()
    for _ in range(4):
        expected = expected + np.roll(expected, -8)
    run("passes_round", 3, 8, values, others, np.int32(4), cooperative=True, mode=mode)
    assert np.array_equal(values, expected)


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
FAULTS = {
    "writes_one_too_far": (
        1,
        8,
        (A[:10], np.int32(10)),
        r"block 0, thread 2: writes 4 bytes out of bounds at byte 40 of argument 0",
    ),
    "reads_one_too_far": (1, 8, (A[:10], np.int32(10), A[20:21]), r"block 0, thread 2: reads 4 bytes out of bounds"),
    "atomic_too_far": (2, 8, (A[:10], np.int32(10)), r"block \d, thread \d: writes 4 bytes out of bounds"),
    "forgets_the_barrier": (1, 64, (A,), r"block 0, thread \d+: rea.*shared memory of block 0"),
    "reads_unwritten_shared_memory": (
        1,
        64,
        (A,),
        r"block 0, thread 63: reads what nobody wrote: 4 bytes at byte 252 of shared",
    ),
    "exits_before_a_shuffle": (1, 32, (A[:32],), r"thread \d+: .*__shfl_sync of lanes 0xffffffff"),
    "shuffles_in_one_branch": (
        1,
        64,
        (A,),
        r"no thread can go on;\n  block 0, thread 0 to 15: waits in __shfl_sync of lanes 0xffffffff .*"
        r"\n  block 0, thread 16 to 31: waits at a block barrier",
    ),
    "votes_where_others_shuffle": (
        1,
        32,
        (A[:32],),
        r"block 0, thread \d+: __\w+_sync of lanes 0xffffffff .* meets thread \d+ in __",
    ),
    "shuffles_from_a_lane_outside": (
        1,
        32,
        (A[:32],),
        r"block 0, thread \d+: __shfl_sync reads lane 20, which is not of its lanes",
    ),
    "shuffles_without_itself": (
        1,
        32,
        (A[:32],),
        r"block 0, thread [1-9]\d*: __shfl_sync of lanes 0x00000001 .* none of the calling",
    ),
    "all_write_one_word": (
        2,
        8,
        (A[:1],),
        r"block \d, thread \d: races, both writing 4 bytes at byte 0 of argument 0, .*; the other is block",
    ),
    "counts_without_an_atomic": (
        1,
        8,
        (A[:1],),
        r"block 0, thread \d: races, .* of argument 0, .*; the other is block 0, thread \d",
    ),
    "reads_beside_an_atomic": (1, 8, (A[:2],), r"block 0, thread \d: races, (reading|writing) what another"),
    "takes_a_vote_for_a_barrier": (1, 32, (A,), r"block 0, thread \d+: races, reading what another writes"),
    "writes_what_it_loads_as_constant": (1, 8, (A[:8],), r"block 0, thread \d: writes what this launch loads as constant"),
    "exits_before_the_barrier": (2, 64, (), r"block \d, thread \d+: .*barrier"),
    "waits_at_two_barriers": (1, 64, (), r"block 0, thread \d+: waits at another block barrier than \d+ threads"),
    "grid_barrier_alone": (2, 8, (), r"block \d, thread \d: waits at a grid barrier, and the launch is not cooperative"),
    "waits_for_ever": (1, 2, (A[:1],), r"block 0, thread \d: no end after 100000 steps"),
    "announces_without_a_fence": (2, 1, (A[:1], A[1:2], A[2:3]), r"block 1, thread 0: races, reading what another writes,"),
}


@every_mode
@pytest.mark.parametrize("entry", FAULTS)
def test_a_fault_is_reported_with_kernel_block_thread_and_line(entry, mode):
    report = fails(FAULTS[entry], entry, mode)
    assert f"kernel {entry}" in report
    assert "at faults.cu:" in report
    assert ("seed" in report) == ("stress" in mode)


@every_mode
def test_a_thread_that_exits_before_a_grid_barrier_is_reported(mode):
    with pytest.raises(
        harness.SimtError, match=r"block \d, thread \d: .*grid barrier.*exited|exits.* wait at a grid barrier"
    ):
        launch("faults.cu", "exits_before_the_grid_barrier", 2, 8, cooperative=True, mode=mode)


def test_a_cooperative_grid_that_does_not_fit_is_refused():
    with pytest.raises(harness.SimtError, match="cooperative grid of 17 blocks, and 16 fit at once"):
        launch("faults.cu", "grid_barrier_alone", 17, 8, cooperative=True)


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
        ("test_strategies_on_host.py", "named or assembled or turned or wrong"),
        ("test_host_cuda_api.py", "turn and not (three or stress or fault)"),
    ],
)
def test_kernels_are_clean_under_the_sanitizers(file, chosen):
    tests = Path(__file__).with_name(file)
    command = [sys.executable, "-m", "pytest", "-q", "--all", "-p", "no:cacheprovider", tests, "-k", chosen]
    done = ran(command, env=harness.sanitized_environment())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "passed" in done.stdout
