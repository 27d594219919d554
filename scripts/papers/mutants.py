"""Switches published features off one by one, in silence, and says whether the tests notice.

    python -m scripts.papers.mutants                run all, one after the other, in a copy of the checkout
    python -m scripts.papers.mutants --only NAME    run some
    python -m scripts.papers.mutants --list         say what they change

A mutant leaves all results as they are, or nearly so: distances are right without any of these features. The test that is
named with it must fail. Exit code 1: a mutant survived.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("kepler_traverse", "pipelines", "scripts", "tests", "conf", "pyproject.toml")
FEATURES = "tests/published/test_features_act.py::test_"
SECONDS = 300.0  # of one mutant, with compiling

_BFS, _SSSP, _KT = (
    "kepler_traverse/published/bfs",
    "kepler_traverse/published/sssp",
    "kepler_traverse/cuda/include/kt",
)
_4K, _4K_PY, _HBF = f"{_BFS}/kernels/bfs_4k.cu", f"{_BFS}/bfs_4k.py", f"{_SSSP}/kernels/h_bf.cu"


class Mutant(NamedTuple):
    """A feature that is switched off: a text that occurs once in a file is replaced, and a test must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = (
    # Those that survived when the pages were checked first.
    Mutant(
        "M2 Hash64 keeps duplicates",
        _4K,
        "return !duplicate;",
        "return true;",
        "hash64_removes_the_duplicates_that_it_finds",
    ),
    Mutant(
        "M18 scan_switch never pulls",
        f"{_BFS}/hybrid_and_spmv.py",
        "switch(push_layer, pull_layer, is_dense)",
        "switch(push_layer, push_layer, is_dense)",
        "the_registered_hybrids_pull_where_the_frontier_is_dense",
    ),
    Mutant(
        "M23 queue_of_warps never splits",
        f"{_BFS}/hierarchical_queues.py",
        "            chunks = split(graph, knobs.split_above)",
        "            chunks = None",
        "long_adjacency_lists_are_split_into_chunks_for_several_threads",
    ),
    Mutant(
        "M17 nothing is deferred",
        f"{_BFS}/kernels/topology_driven.cu",
        "list.end - list.begin < args.defer_from ||",
        "list.end >= list.begin ||",
        "outliers_are_visited_after_all_other_vertices_of_their_block",
    ),
    Mutant(
        "M15 one W-frontier",
        f"{_BFS}/kernels/block_queues.cu",
        "kt::warp_in_block() % n_queues;",
        "0;",
        "each_warp_has_a_w_frontier_of_its_own",
    ),
    Mutant(
        "M5 edge-discover is never dispatched",
        _4K,
        "if (advance == VIRTUAL_WARPS)",
        "if (advance != SHARED_READS)",
        "edge_discover_gives_each_lane_an_edge_of_any_vertex",
    ),
    Mutant(
        "M4 reads are never shared",
        _4K,
        "kt::edges_by_shared_reads(args.targets, team, size, lists, expand);",
        "kt::edges_by_virtual_warp(args.targets, team, size, WARP, lists, expand);",
        "shared_reads_load_the_offsets_of_a_vertex_once_per_warp",
    ),
    Mutant(
        "M21b EXT is off",
        f"{_KT}/advance.cuh",
        "if (!extended) continue;",
        "if (true || extended) continue;",
        "extended_edge_discover_searches_less_for_the_same_edges",
    ),
    Mutant(
        "M19b a block gathers no list",
        f"{_BFS}/kernels/advances.cuh",
        "const bool is_long = mine.end - mine.begin >= block_from;",
        "const bool is_long = mine.end < mine.begin + 0 * block_from;",
        "a_whole_block_gathers_a_long_adjacency_list",
    ),
    Mutant(
        "M6b children of one block",
        _4K,
        "kt::launch_child(bfs_4k_child, static_cast<int32>(blocks), child);",
        "kt::launch_child(bfs_4k_child, blocks ? 1 : 1, child);",
        "children_have_a_block_for_every_k3_edges_of_each_thread",
    ),
    Mutant(
        "M1 the single block's width never grows",
        _4K,
        "while (width < args.max_width && 2 * width * size <= BLOCK)",
        "while (width < 0 * args.max_width)",
        "virtual_warps_of_the_single_block_grow_while_the_frontier_is_small",
    ),
    Mutant(
        "M13 the width of H-BF never grows",
        _HBF,
        "while (width < args.max_width && 2 * width * n_frontier <= args.resident)",
        "while (width < 0 * args.max_width)",
        "virtual_warps_of_h_bf_grow_while_the_frontier_is_small",
    ),
    Mutant(
        "M14 vertices_per_warp is ignored",
        f"{_SSSP}/h_bf.py",
        "threads = -(-size // knobs.vertices_per_warp) *",
        "threads = size *",
        "virtual_warps_that_take_many_vertices_are_fewer",
    ),
    Mutant(
        "M3b writes are not coalesced",
        f"{_KT}/thread_queue.cuh",
        "    if (coalesced) {\n",
        "    if (coalesced && place < 0) {\n",
        "coalesced_writes_put_the_queues_of_a_warp_side_by_side",
    ),
    Mutant(
        "M7 no ballot",
        f"{_KT}/thread_queue.cuh",
        "if (all(ALL_LANES, size <= 1)) {",
        "if (all(ALL_LANES, size < 0)) {",
        "lanes_with_one_vertex_at_most_are_counted_by_a_ballot",
    ),
    Mutant(
        "M12 the frontier is not streamed",
        _HBF,
        "return STREAM ? kt::load_streaming(address) : kt::load_constant(address);",
        "return kt::load_constant(address);",
        "the_frontier_and_its_offsets_are_streamed",
    ),
    Mutant(
        "M10b self-loops are relaxed",
        _HBF,
        "is_end || (u == v && !is_negative)",
        "is_end || (u == v && u < 0 && !is_negative)",
        "self_loops_are_skipped_if_a_graph_keeps_them",
    ),
    # Further ones.
    Mutant(
        "N1 a warp reserves places per thread",
        _4K,
        "  if (APPEND == BY_THREAD)\n",
        "  if (APPEND != BY_BLOCK)\n",
        "a_thread_a_warp_or_a_block_reserves_places_for_all_it_found",
    ),
    Mutant(
        "N2 a block reserves places per warp",
        _4K,
        "    if (APPEND == BY_BLOCK)\n",
        "    if (APPEND > BY_BLOCK)\n",
        "a_thread_a_warp_or_a_block_reserves_places_for_all_it_found",
    ),
    Mutant(
        "N3 the single block never discovers",
        _4K_PY,
        "np.int32(SINGLE_BLOCK.block // knobs.k4 if knobs.k4 else 0)",
        "np.int32(0)",
        "the_single_block_discovers_edges_below_the_threshold",
    ),
    Mutant(
        "N4 k6 is ignored",
        _4K_PY,
        '"block": knobs.k6,',
        '"block": 128,',
        "blocks_have_as_many_threads_as_k6_says",
    ),
    Mutant(
        "N5 a table of two words",
        _4K_PY,
        "(table // _TABLE_WORD).bit_length() - 1",
        "(table // _TABLE_WORD).bit_length() * 0 + 1",
        "the_table_of_hash64_fills_the_shared_memory_of_a_block",
    ),
    Mutant(
        "N6 k2 is ignored",
        _4K_PY,
        "max_vertices = min(int(knobs.k2 * graph.n_vertices), MAX_CHILDREN)",
        "max_vertices = min(graph.n_vertices, MAX_CHILDREN)",
        "no_more_than_the_share_k2_of_the_vertices_get_children",
    ),
    Mutant(
        "N7 the width of many blocks never grows",
        _4K_PY,
        "while knobs.dynamic_width and width < WARP",
        "while knobs.dynamic_width and width < 0",
        "virtual_warps_of_many_blocks_grow_while_the_frontier_is_small",
    ),
    Mutant(
        "N8 a hub is not a block's",
        _4K_PY,
        'heavy = knobs.heavy if self.high_degree.size else "none"',
        'heavy = "none"',
        "a_block_of_its_own_visits_a_vertex_of_high_degree",
    ),
    Mutant(
        "N9 nothing goes through shared memory",
        f"{_SSSP}/h_bf.py",
        '"ENQUEUE": _ENQUEUE[knobs.enqueue],',
        '"ENQUEUE": min(_ENQUEUE[knobs.enqueue], 1),',
        "vertices_go_through_shared_memory_into_neighboring_places",
    ),
    Mutant(
        "N10 no prefix sum",
        _HBF,
        "if (ENQUEUE == APPENDED) {",
        "if (ENQUEUE <= BY_PREFIX_SUM) {",
        "lanes_reserve_places_together_for_a_prefix_sum",
    ),
    Mutant(
        "N11 H-BF's children of one block",
        _HBF,
        "kt::launch_child(h_bf_relax_list, static_cast<int32>(blocks), child);",
        "kt::launch_child(h_bf_relax_list, blocks ? 1 : 1, child);",
        "children_of_h_bf_have_a_block_for_every_sixteen_edges_of_each_thread",
    ),
    Mutant(
        "N12 edges are read as all else",
        _HBF,
        "return READ_ONLY ? kt::load_constant(array + e) : array[e];",
        "return array[e];",
        "edges_are_read_through_the_read_only_cache",
    ),
    Mutant(
        "N13 no barrier of the grid",
        f"{_BFS}/hierarchical_queues.py",
        "if frontier.size > max(knobs.alone_up_to, knobs.grid_up_to):",
        "if frontier.size > knobs.alone_up_to:",
        "middle_frontiers_stay_in_one_launch_behind_a_barrier",
    ),
    Mutant(
        "N14 no queue in shared memory",
        f"{_BFS}/kernels/block_queues.cu",
        "    if (place < queue_capacity)\n      slots[queue",
        "    if (place < 0 * queue_capacity)\n      slots[queue",
        "a_block_reserves_places_of_the_g_frontier_once",
    ),
    Mutant(
        "N15 no redirection",
        f"{_BFS}/kernels/topology_driven.cu",
        "scan_by_thread(args, kt::Queue{args.order, args.n_vertices});",
        "scan_by_thread(args, kt::Range{0, args.n_vertices});",
        "redirection_reads_vertices_from_a_list_in_the_order_of_degrees",
    ),
    Mutant(
        "N16 virtual warps of one lane",
        f"{_BFS}/topology_driven.py",
        "return Scan(graph, query, _VIRTUAL_WARP, width * graph.n_vertices, width=np.int32(width))",
        "return Scan(graph, query, _VIRTUAL_WARP, width * graph.n_vertices, width=np.int32(1))",
        "a_virtual_warp_shares_a_list_among_its_lanes",
    ),
    Mutant(
        "N17 the grid is ignored",
        f"{_BFS}/topology_driven.py",
        "self.blocks = self.knobs.grid or blocks_for(entry, n_threads)",
        "self.blocks = blocks_for(entry, n_threads)",
        "grids_have_the_shape_that_the_knobs_say",
    ),
    Mutant(
        "N18 the block is ignored",
        f"{_BFS}/topology_driven.py",
        "entry = entry.variant(block=self.knobs.block)",
        "entry = entry.variant(block=BLOCK)",
        "grids_have_the_shape_that_the_knobs_say",
    ),
    Mutant(
        "N19 bottom-up reads whole lists",
        f"{_KT}/advance.cuh",
        "while (e < alone && found == NO_PREDECESSOR) {",
        "while (e < alone) {",
        "bottom_up_stops_at_the_first_neighbor_in_the_frontier",
    ),
    Mutant(
        "N20 queue_switch never pulls",
        f"{_BFS}/hybrid_and_spmv.py",
        'switch(gpu_steps.push("thread"), pull_queue, is_dense)',
        'switch(gpu_steps.push("thread"), gpu_steps.push("thread"), is_dense)',
        "the_registered_hybrids_pull_where_the_frontier_is_dense",
    ),
    Mutant(
        "N21 a thread visits a warp's edges",
        f"{_BFS}/kernels/advances.cuh",
        "for (offset_t e = thread_id(); e < n_edges; e += n_threads())",
        "for (offset_t e = lane() ? n_edges : thread_id(); e < n_edges; e += (e + 1) % WARP ? 1 : n_threads() - WARP + 1)",
        "a_thread_per_edge_visits_one_edge",
    ),
    Mutant(
        "N23 distances are cached",
        _HBF,
        "return BYPASS_L1 ? kt::racy_load(address) : kt::racy_load_cached(address);",
        "return kt::racy_load_cached(address);",
        "distances_bypass_the_l1_cache",
    ),
    Mutant(
        "N22 no piles",
        f"{_SSSP}/kernels/threshold_methods.cu",
        "while (pile < n_thresholds && key >= kt::load_constant(thresholds + pile)) ++pile;",
        "",
        "piles_hold_back_what_lies_beyond_the_threshold",
    ),
)


def copy_of_checkout(folder: Path) -> None:
    """Copy what the tests need; the cache of compiled kernels is shared."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(source, folder / name)


def is_killed(mutant: Mutant, folder: Path) -> bool:
    """Return whether the mutant's test fails. It is an error if it passes no more without the mutant."""
    file = folder / mutant.file
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        environment = os.environ | {
            "PYTHONPATH": str(folder),
            "SIMT_CACHE": str(ROOT / "out" / "simt"),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            FEATURES + mutant.test,
        ]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    finally:
        file.write_text(before, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    if "SimtError: g++" in done.stdout:
        raise RuntimeError(f"{mutant.name} does not compile\n{done.stdout[-2000:]}")
    return done.returncode == 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="first words of names: M2, N17")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    known = {mutant.name.split()[0] for mutant in MUTANTS}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        parser.error(f"no mutant is named {unknown[0]}; --list prints all")
    chosen = [
        mutant for mutant in MUTANTS if not options.only or mutant.name.split()[0] in options.only
    ]
    if options.list:
        print("\n".join(f"{mutant.name}: {mutant.file}" for mutant in chosen))
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy_of_checkout(Path(folder))
        for mutant in chosen:
            try:
                killed = is_killed(mutant, Path(folder))
            except RuntimeError as error:
                print(f"NOT RUN: {error}", flush=True)
                survivors.append(mutant.name)
                continue
            print(f"{'killed' if killed else 'SURVIVED'}: {mutant.name}", flush=True)
            if not killed:
                survivors.append(mutant.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants are killed")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
