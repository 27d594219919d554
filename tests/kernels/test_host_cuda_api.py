"""The CUDA wrappers of kt/cuda_api.cuh on the host: each computes what CUDA defines, and its misuse is reported."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.simt import device, harness
from tests.kernels.simt.launching import BLOCK, FOLDER, HEADERS, every_mode, fails, integers, launch

pytestmark = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)

MASKS = [0xFFFFFFFF, 0x00FFFFFF, 0x80000001, 0x5555AAAA, 1 << 17]
NUMBERS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}


def run(entry, grid, block, *args, **options):
    launch("platform.cu", entry, grid, block, *args, **options)


def of_lanes(mask):
    return [i for i in range(32) if mask >> i & 1]


def four_kinds(size):
    return [integers(size, dtype=kind) for kind in NUMBERS.values()]


# --- correct kernels --------------------------------------------------------------------------------------------------


@every_mode
def test_a_thread_knows_its_place(mode):
    out = np.zeros((3 * 96, 7), np.int32)
    run("places", 3, 96, out, mode=mode)
    for i, place in enumerate(out.tolist()):
        assert place == [i // 96, 3, i % 96, i % 96 // 32, i % 96 % 32, i // 32, 9]


@every_mode
def test_the_clock_goes_forward_for_all_threads(mode):
    out = np.zeros((2, 40), np.int64)
    run("clock_readings", 1, 40, out, mode=mode)
    assert 0 < out[0].max() <= out[1].min()


@every_mode
def test_barriers_of_a_block_count_its_predicates_and_order_its_writes(mode):
    values = np.array([0] * 40 + [1] * 40 + [0, 1] * 20, np.int32)
    out = np.zeros((4, 3, 40), np.int32)
    run("block_barriers", 3, 40, values, out, mode=mode)
    assert out.tolist() == [
        [[row[b]] * 40 for b in range(3)]
        for row in ((0, 40, 20), (0, 1, 1), (0, 1, 0), (0, 40, 20))
    ]


@every_mode
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("argument", [0, 1, 3, 12, 31])
def test_shuffles_stay_within_their_width(argument, width, mode):
    given = four_kinds(64)
    out = [np.zeros((2, 4, 64), values.dtype) for values in given]
    run("shuffles", 1, 64, *given, np.int32(argument), np.int32(width), *out, mode=mode)
    for values, found in zip(given, out, strict=True):
        for by_width, group in zip(found, (width, 32), strict=True):
            for t in range(64):
                warp, lane = t // 32 * 32, t % 32
                first = lane // group * group
                up, down, across = lane - argument, lane + argument, lane ^ argument
                sources = [
                    first + argument % group,
                    up if up >= first else lane,
                    down if down < first + group else lane,
                    across if across < first + group else lane,
                ]
                assert by_width[:, t].tolist() == [values[warp + s] for s in sources]


@every_mode
@pytest.mark.parametrize("mask", MASKS, ids=hex)
def test_votes_are_those_of_their_lanes(mask, mode):
    values = integers(64, -1, 3)
    wide = values.astype(np.int64) << 33
    out = np.zeros((8, 64), np.uint32)
    run("votes", 1, 64, values, wide, np.uint32(mask), out, mode=mode)
    lanes = of_lanes(mask)
    for warp in (0, 32):
        mine = {i: int(values[warp + i]) for i in lanes}
        ballot = sum(1 << i for i in lanes if mine[i] > 0)
        for i in range(32):
            if i not in mine:
                assert not out[:, warp + i].any()
                continue
            same = sum(1 << j for j in lanes if mine[j] == mine[i])
            before = sum(j < i for j in lanes)
            assert out[:, warp + i].tolist() == [
                ballot,
                ballot != 0,
                ballot == mask,
                same,
                same,
                0,
                before,
                lanes[0],
            ]


@every_mode
@pytest.mark.parametrize("mask", MASKS, ids=hex)
@pytest.mark.parametrize(
    "defined", [(), ("KT_REDUCE_BY_SHUFFLES",)], ids=["instruction", "shuffles"]
)
def test_reductions_are_signed_or_unsigned_as_their_type_and_of_their_lanes(defined, mask, mode):
    values = integers(64)
    signed, unsigned = np.zeros((3, 64), np.int32), np.zeros((5, 64), np.uint32)
    run("reductions", 1, 64, values, np.uint32(mask), signed, unsigned, mode=mode, defined=defined)
    lanes = of_lanes(mask)
    for warp in (0, 32):
        mine = values[warp : warp + 32][lanes]
        bits = mine.view(np.uint32)
        total = bits.sum(dtype=np.uint32)
        of_signed = [mine.sum(), mine.min(), mine.max()]
        of_bits = [
            total,
            bits.min(),
            bits.max(),
            np.bitwise_and.reduce(bits),
            np.bitwise_or.reduce(bits),
        ]
        for i in range(32):
            expected = (of_signed, of_bits) if i in lanes else ([0] * 3, [0] * 5)
            assert (signed[:, warp + i].tolist(), unsigned[:, warp + i].tolist()) == expected


@every_mode
def test_atomics_of_every_type_lose_nothing(mode):
    i = np.arange(3 * 40)
    added = {np.int32: i - 20, np.uint32: i, np.int64: (i - 20) << 33 | 7, np.uint64: i << 33 | 7}
    sums = [np.full(3, 50, kind) for kind in added]
    swaps = [np.full(2, 5, kind) for kind in (np.int32, np.uint64)]
    bits = [np.array([0, -1], kind).view(f"u{kind().itemsize}") for kind in (np.int32, np.int64)]
    run("atomics", 3, 40, *sums, *swaps, *bits, mode=mode)
    for found, values in zip(sums, added.values(), strict=True):
        assert found.tolist() == [50 + values.sum(), min(50, values.min()), max(50, values.max())]
    assert [found.tolist() for found in swaps] == [[7, 5 + i.sum()]] * 2
    assert [found.tolist() for found in bits] == [[(1 << 32) - 1, 0], [(1 << 64) - 1, 0]]


def test_atomics_return_what_was_there():
    word, wide, out = np.array([3], np.int32), np.array([9], np.uint64), np.zeros(8, np.int32)
    run("atomics_return_what_was_there", 1, 1, word, wide, out)
    assert out.tolist() == [3, 5, 1, 9, 4, 4, 9, 15]
    assert (word[0], wide[0]) == (8, 12)


@every_mode
def test_a_block_has_static_and_dynamic_shared_memory_of_its_own(mode):
    values, out = integers(3 * 64, 0, 8), np.zeros((3, 8, 3), np.int32)
    run("counts_in_shared_memory", 3, 64, values, out, shared_mem=8 * 8, mode=mode)
    for mine, found in zip(values.reshape(3, 64), out, strict=True):
        counts = np.bincount(mine, minlength=8)
        assert found[:, 0].tolist() == found[:, 1].tolist() == counts.tolist()
        assert set(found[:, 2]) <= set(mine)
        assert len(set(found[:, 2])) == 1


@every_mode
def test_a_grid_barrier_holds_all_blocks_again_and_again(mode):
    values, others, arrived = integers(3 * 8), np.zeros(3 * 8, np.int32), np.zeros(1, np.uint32)
    expected = values.copy()
    for _ in range(4):
        expected = expected + np.roll(expected, -8)
    run("passes_round", 3, 8, arrived, values, others, np.int32(4), cooperative=True, mode=mode)
    assert np.array_equal(values, expected)


@every_mode
def test_stores_before_a_fence_are_visible_after_the_flag(mode):
    value, flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(4 * 8, np.int32)
    run("announces", 4, 8, value, flag, out, mode={"resident": 2, **mode})
    assert out.tolist() == [0] * 8 + [42] * 24


@every_mode
def test_loads_and_stores_for_any_cache_mean_the_same(mode):
    given = four_kinds(2 * 40)
    out = [np.zeros((4, 80), values.dtype) for values in given]
    run("copies", 2, 40, *given, *out, mode=mode)
    for values, found in zip(given, out, strict=True):
        assert (found == values).all()


def test_bits_and_sums_of_numbers_are_ieee_and_keep_subnormal_ones():
    narrow = np.array([1e-45, 1e-45, -0.0, 3.4e38, 3.4e38, 0.1], np.float32)
    wide = np.array([5e-324, 5e-324, -0.0, 1.7e308, 1.7e308, 0.1])
    sums, wide_sums = np.zeros((2, 6), np.float32), np.zeros((4, 6))
    bits, wide_bits = np.zeros(6, np.int32), np.zeros(6, np.int64)
    run("numbers", 1, 6, narrow, wide, sums, wide_sums, bits, wide_bits)
    with np.errstate(over="ignore"):
        assert sums[0].tobytes() == (narrow + np.roll(narrow, -1)).tobytes()
        assert wide_sums[0].tobytes() == (wide + np.roll(wide, -1)).tobytes()
    assert (bits.tobytes(), wide_bits.tobytes()) == (narrow.tobytes(), wide.tobytes())
    assert (sums[1].tobytes(), wide_sums[1].tobytes()) == (narrow.tobytes(), wide.tobytes())
    assert (wide_sums[2].tobytes(), wide_sums[3].tobytes()) == (
        narrow.astype(float).tobytes(),
        wide.tobytes(),
    )


A = np.zeros(64, np.int32)


def test_a_grid_that_is_not_cooperative_has_no_barrier():
    fault = (
        2,
        8,
        (np.zeros(1, np.uint32),),
        r"waits at a grid barrier, and the launch is not cooperative",
    )
    fails(fault, "waits_at_a_grid_barrier_with_a_count_of", {})


# --- launches from the device -----------------------------------------------------------------------------------------


def children(entry, grid, block, *args, **options):
    launch("children.cu", entry, grid, block, *args, **options)


@every_mode
def test_children_work_on_what_their_threads_prepared(mode):
    values = np.full(3 * 16 * 11, -1, np.int32)
    children("hands_out_parts", 3, 16, values, np.int32(11), mode=mode)
    i = np.arange(values.size)
    assert values.tolist() == (i % 11 + i // 11 * 100).tolist()


@every_mode
def test_a_launch_after_a_barrier_comes_after_what_the_whole_block_did(mode):
    values = np.zeros(3 * BLOCK, np.int32)
    children("launches_after_a_barrier", 3, BLOCK, values, mode=mode)
    assert values.reshape(3, BLOCK).tolist() == [list(range(1000, 1000 + BLOCK))] * 3


@every_mode
def test_children_launch_children(mode):
    values = np.zeros(77, np.int32)
    children("halve", 1, 4, values, np.int64(77), mode=mode)
    assert values.tolist() == [1] * 77


@every_mode
def test_a_child_has_blocks_barriers_shared_memory_and_warps_of_its_own(mode):
    values, sums = integers(5 * BLOCK), np.zeros(5, np.int32)
    children("sums_in_a_child", 2, BLOCK, values, sums, np.int32(5), mode=mode)
    assert sums.tolist() == values.reshape(5, BLOCK).sum(axis=1).tolist()


@every_mode
def test_so_many_children_and_no_more_may_wait(mode):
    counter = np.zeros(1, np.int32)
    children(
        "launches_many",
        1,
        2,
        counter,
        np.int32(1024),
        np.int32(3),
        mode={"step_limit": 10**9, **mode},
    )
    assert counter[0] == 2 * 1024 * 3 * 2


CHILD_FAULTS = {
    "launches_many": (
        1,
        1,
        (A[:1], np.int32(2049), np.int32(1)),
        r"kernel launches_many, block 0, thread 0: launches counts_child after 2048 others, which",
    ),
    "launches_a_child_that_reads_too_far": (
        2,
        16,
        (A[:10], np.int64(10), A[20:21]),
        r"kernel child_reads_too_far, launched by block 0, thread 0 of launches_a_child_that_reads_too_far, block 0, thread "
        r"10: reads 4 bytes out of bounds at byte 40 of argument 0 of kernel launches_a_child_that_reads_too_far, which has",
    ),
    "launches_beside_a_writer": (
        1,
        4,
        (A[:4],),
        r"races, .* 4 bytes at byte 4 of argument 0.*; the other is kernel (launches_beside_a_writer|add_child),",
    ),
    "writes_after_the_launch": (
        1,
        4,
        (A[:4],),
        r"races, .* 4 bytes at byte 0 of argument 0.*; the other is kernel (writes_after|add_child, launched by)",
    ),
    "reads_after_the_launch": (
        1,
        4,
        (A[:4], A[4:8]),
        r"races, .* 4 bytes at byte 0 of argument 0.*; the other is kernel ",
    ),
    "two_children_share_a_word": (
        1,
        4,
        (A[:4],),
        r"kernel add_child, launched by .*: races, .* 4 bytes at byte 4 of argument 0 of kernel two_children_share_a_word, "
        r".*; the other is kernel add_child, launched by block 0, thread 0 of two_children_share_a_word, block 0, thread",
    ),
    "descend": (1, 1, (A[:1],), r"kernel descend, .*launches descend as a child deeper than 24"),
    "launches_a_child_that_is_stuck": (1, 4, (A,), r"kernel barrier_child, launched by .*barrier"),
    "sums_in_a_child": (
        1,
        32,
        (A, A[:2], np.int32(0)),
        r"kernel sums_in_a_child, .*: launches sum_child with 0 blocks",
    ),
}


@every_mode
@pytest.mark.parametrize("entry", CHILD_FAULTS)
def test_a_fault_of_children_is_reported_with_kernel_block_thread_and_line(entry, mode):
    report = fails(CHILD_FAULTS[entry], entry, {"step_limit": 10**8, **mode}, "children.cu")
    assert "at children.cu:" in report


def test_threads_of_a_cooperative_grid_may_not_launch():
    fault = (
        1,
        1,
        (A[:1], np.int32(1), np.int32(1)),
        "launches counts_child, and the threads of a cooperative grid may not",
    )
    fails((*fault, {"cooperative": True}), "launches_many", {}, "children.cu")


# --- the stand-in for CuPy ----------------------------------------------------------------------------------------------


def test_shared_memory_beyond_what_is_free_must_be_asked_for():
    text = (FOLDER / "platform.cu").read_text()
    options = (f"-I{HEADERS}", f"-DBLOCK={BLOCK}", "-dc")
    kernel = device.cp.RawModule(code=text, options=options).get_function("counts_in_shared_memory")
    attributes = device.cp.cuda.Device().attributes
    free, most = attributes["MaxSharedMemoryPerBlock"], attributes["MaxSharedMemoryPerBlockOptin"]
    args = (np.zeros(64, np.int32), np.zeros(24, np.int32))
    kernel((1,), (64,), args, shared_mem=free)
    with pytest.raises(harness.SimtError, match="max_dynamic_shared_size_bytes is"):
        kernel((1,), (64,), args, shared_mem=free + 1)
    with pytest.raises(
        harness.SimtError, match=f"{most + 1} bytes of shared memory, and a block has {most}"
    ):
        kernel.max_dynamic_shared_size_bytes = most + 1
    kernel.max_dynamic_shared_size_bytes = most
    kernel((1,), (64,), args, shared_mem=most)
    assert args[1][0] == 64


def test_a_module_with_cooperative_groups_launches_cooperative_grids():
    text = (FOLDER / "platform.cu").read_text()
    options = (f"-I{HEADERS}",)
    values = integers(3 * 8)
    for together in (True, False):
        kernel = device.cp.RawModule(code=text, options=options, enable_cooperative_groups=together)
        args = (np.zeros(1, np.uint32), values.copy(), np.zeros(24, np.int32), np.int32(1))
        if together:
            kernel.get_function("passes_round")((3,), (8,), args)
            assert np.array_equal(args[1], values + np.roll(values, -8))
        else:
            with pytest.raises(harness.SimtError, match="the launch is not cooperative"):
                kernel.get_function("passes_round")((3,), (8,), args)
