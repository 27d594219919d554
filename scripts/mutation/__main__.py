"""Break the kernels at one place at a time, and check that the tests on the host harness fail.

    python -m scripts.mutation --sample 0.03   this fraction of the mutants of every file, and at least eight
    python -m scripts.mutation --only push.cu  all of one file
    python -m scripts.mutation --list          list the mutants
    python -m scripts.mutation --update        run nothing; drop mutants that no longer match the kernels

Each mutant is a copy of the package with one change in one .cu or .cuh file (scripts/mutation/mutators.py). The tests of
that file (TESTS) run on it, the quickest first, until one fails. Code for CUDA compilers alone is not mutated. Each outcome
is written to docs/mutants.json at once, and docs/mutants.md is rendered from it. The record keeps earlier outcomes of
mutants that still match the kernels, and the explanations of survivors ("note") that were written there.

A survivor is not a fault of the kernel. It is a change that no test detects, and needs a test or an explanation why none
can detect it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scripts.mutation.mutators import ROOT, Mutant, kernel_files, mutants_of, sample
from scripts.mutation.record import PAGE, read_record, record_of, recorded, write_record

PARTS = ("kepler_traverse", "pipelines", "scripts", "tests", "pyproject.toml")
# A removed statement leaves variables unused, so warnings of style are not errors here.
FLAGS = "-Wno-error -Werror=conversion -Werror=uninitialized -Werror=maybe-uninitialized"
TIME_LIMIT = 400  # seconds; a mutant that takes longer does not end
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+::test_(?P<name>\w+))(?P<case>\[.*?\])?(?= - |$)", re.MULTILINE)
Tests = tuple[str, ...]  # arguments of pytest
SAME = ("--all", "--hypothesis-seed=0", "-p", "no:cacheprovider")  # all orders of threads; the same examples for each mutant

SIMT = ("tests/kernels/test_strategies_on_host.py",)
QUICK = (
    *SIMT,
    "-k",
    "stress and 1 and (assembled or turned or wrong or again or awkward or negative or cutoff or targets or agree)",
)
STRESS = (*SIMT, "-k", "stress and 1")
PAPERS = "tests/published/test_systems_on_host.py"
MANY = ("tests/traversal/test_multi_source_gpu.py",)
BITS = (*MANY, "-k", "bits")
BFS_4K, H_BF = ("tests/published/test_bfs_4k.py",), ("tests/published/test_h_bf.py",)
PERSISTENT, PERSISTENT_SSSP = ("tests/traversal/test_persistent_bfs.py",), ("tests/traversal/test_persistent_sssp.py",)
SCANS, SYSTEMS, FRONTS = (
    ("tests/published/test_topology_driven.py",),
    ("tests/published/test_bfs_systems.py",),
    ("tests/published/test_sssp_systems.py",),
)
CERTIFY_MANY = ("tests/traversal/test_certificate_batch.py", "-k", "gpu")

# Every path forced once, on one graph.
WAYS_4K = (*BFS_4K, "-k", "each_feature and power")
WAYS, WAYS_SSSP = (*PERSISTENT, "-k", "every_way and power"), (*PERSISTENT_SSSP, "-k", "every_way and power")
BLOCKS, BLOCKS_SSSP = (
    (*MANY, "-k", "hops and blocks"),
    (*MANY, "-k", "source_per_block and (distances or cutoff or overflow)"),
)


def _row(*names: str) -> Tests:
    return (PAPERS, "-k", " or ".join(names))


# The tests of each file, by the end of its path: in this order, until one fails. Other files have those of _OTHERS.
TESTS: dict[str, tuple[Tests, ...]] = {
    "bfs/kernels/push.cu": ((*SIMT, "-k", "queue_warp or queue_thread"), STRESS),
    "published/bfs/kernels/bfs_4k.cu": (WAYS_4K, BFS_4K),
    **dict.fromkeys(
        ("bfs/kernels/persistent_cluster.cu", "bfs/kernels/persistent_grid.cu", "kernels/bfs_persistent_state.cuh"),
        (WAYS, PERSISTENT),
    ),
    **dict.fromkeys(("bit_parallel.cu", "bit_parallel_output.cu", "kernels/source_bitsets.cuh"), (BITS, MANY)),
    **dict.fromkeys(("bfs/kernels/source_per_block.cu", "kernels/packed_hops.cuh"), (BLOCKS, MANY)),
    "sssp/kernels/relax.cu": ((*SIMT, "-k", "frontier"), STRESS),
    "published/sssp/kernels/h_bf.cu": (H_BF,),
    **dict.fromkeys(
        ("near_far.cu", "near_far/near_far_state.cuh", "near_far/packed_distance.cuh", "near_far/near_far_relax.cuh"),
        (WAYS_SSSP, PERSISTENT_SSSP),
    ),
    "sssp/kernels/source_per_block.cu": (BLOCKS_SSSP, MANY),
    "sssp/kernels/source_per_lane.cu": ((*MANY, "-k", "source_per_lane"), MANY),
    "kernels/block_queues.cu": (SYSTEMS, _row("queue_of")),
    "kernels/prefix_sum.cu": (SYSTEMS, _row("queue_by_prefix_sum")),
    "kernels/expand_contract.cu": (SYSTEMS, _row("gather")),
    "kernels/hybrid.cu": (SYSTEMS, _row("scan_switch", "queue_switch")),
    "kernels/spmv.cu": (_row("sparse_product"), SYSTEMS),
    **dict.fromkeys(("published/bfs/kernels/topology_driven.cu", "kernels/bellman_ford_hops.cu"), (SCANS, _row("scan"))),
    "kernels/threshold_methods.cu": (FRONTS, _row("near_far_piles", "buckets", "delta_stepping", "threshold_front")),
    "published/sssp/kernels/topology_driven.cu": (_row("mask_thread", "topology_thread"), FRONTS),
    "kernels/workfront_sweep.cu": (FRONTS, _row("work_front")),
    "certificate/kernels/single.cu": ((*SIMT, "-k", "stress and 1 and (wrong or limit or agree or circle)"), STRESS),
    **dict.fromkeys(("batch_hops.cu", "batch_weighted.cu"), (CERTIFY_MANY,)),
    **dict.fromkeys(
        ("cuda/kernels/distance_stats.cu", "cuda/kernels/hop_histograms.cu", "kernels/row_reductions.cuh"),
        (("tests/traversal/test_distance_stats.py",),),
    ),
    "cuda/kernels/opportunities.cu": (("tests/traversal/test_opportunities.py",),),
    "cuda/kernels/csr_build.cu": ((*SIMT, "-k", "assembled or turned"), STRESS),
    "kt/advance.cuh": (SYSTEMS, SCANS, WAYS_4K, QUICK, BITS, H_BF, (PAPERS,)),
    "kt/advance_unrolled.cuh": (WAYS, WAYS_SSSP, BLOCKS, BLOCKS_SSSP),
    "kt/scan.cuh": (SYSTEMS, WAYS_4K, QUICK),
    "kt/thread_queue.cuh": (SYSTEMS, WAYS_4K, WAYS, WAYS_SSSP, H_BF),
    **dict.fromkeys(("kernels/advance_by_degree.cuh", "kernels/block_scan.cuh"), (SYSTEMS, _row("gather"))),
    "kernels/advance_in_turn.cuh": (SYSTEMS, WAYS_4K, BFS_4K),
    "kernels/advance_by_edge.cuh": (SCANS, _row("scan")),
    "kernels/block_queues.cuh": (SYSTEMS, _row("queue_of")),
    "kernels/empty_thread_queues.cuh": (SYSTEMS, WAYS_4K, BFS_4K),
    "kernels/visit_nonatomic.cuh": (SYSTEMS, _row("queue_by", "gather")),
    "kt/bfs_visit.cuh": (SYSTEMS, _row("queue_of", "queue_by", "gather", "scan_switch", "queue_switch")),
    "kernels/advance_balanced.cuh": (FRONTS, _row("work_front")),
    "kt/relax.cuh": (FRONTS, _row("mask", "topology", "work_front", "piles", "buckets", "delta", "threshold")),
    "kernels/certificate_tiles.cuh": (CERTIFY_MANY, QUICK),
    "kt/triple_buffer.cuh": (WAYS_SSSP, WAYS),
    "kt/trace.cuh": ((*PERSISTENT, "-k", "trace"), (*PERSISTENT_SSSP, "-k", "trace")),
    **dict.fromkeys(("kt/cuda_api.cuh", "kt/memory_access.cuh"), (("tests/kernels/test_host_cuda_api.py",), QUICK, STRESS)),
    "kt/cluster.cuh": (("tests/kernels/test_host_clusters.py",), PERSISTENT),
}
_OTHERS = (QUICK, STRESS)


def tests_for(file: str) -> tuple[Tests, ...]:
    """The tests to run on a mutant of a file."""
    return next((tests for end, tests in TESTS.items() if file.endswith(f"/{end}")), _OTHERS)


class Copy:
    """A copy of what the tests need, with at most one mutant; code compiled without a mutant is reused."""

    def __init__(self, folder: Path):
        self.folder, self.cache = folder, folder / "simt"
        self._passed: set[str] = set()  # tests that passed without a mutant
        self.cache.mkdir(parents=True, exist_ok=True)
        for name in PARTS:
            source, copy = ROOT / name, folder / name
            if source.is_dir():
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)

    def outcome(self, mutant: Mutant) -> tuple[str, str]:
        """Return ``("killed", by what)``, ``("survived", "")``, or ``("no mutant", ...)`` if it does not compile."""
        for tests in tests_for(mutant.file):
            with self._broken(mutant):
                status, said = self._run(tests)
            outcome = verdict(status, said)
            if outcome[0] == "killed":
                self._must_pass(said)
            if outcome[0] != "survived":
                return outcome
        return "survived", ""

    @contextlib.contextmanager
    def _broken(self, mutant: Mutant):
        path, kept = self.folder / mutant.file, set(self.cache.iterdir())
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after, 1)
        path.write_text("".join(lines))
        broken = "" if path.suffix == ".cuh" else f"{path.stem}-"  # all kernels are compiled anew after a header
        try:
            yield
        finally:
            path.write_text(text)
            for made in set(self.cache.iterdir()) - kept:
                if made.name.startswith(broken) and not made.name.startswith("runtime-"):
                    shutil.rmtree(made) if made.is_dir() else made.unlink()

    def _must_pass(self, said: str) -> None:
        """Raise unless the failed test passes without the mutant."""
        failed = FAILED.search(said)
        if failed and failed["test"] not in self._passed:
            status, said = self._run((failed["test"] + (failed["case"] or ""),))
            if status:
                raise RuntimeError(f"{failed[0]} also without a mutant:\n{said[-5000:]}")
            self._passed.add(failed["test"])

    def _run(self, tests: Tests) -> tuple[int, str]:
        """Return exit status and output of pytest, up to the first failure. The limit is CPU time."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", *SAME, *tests]
        changes = {"SIMT_CACHE": str(self.cache), "SIMT_FLAGS": FLAGS, "PYTHONPATH": str(self.folder)}
        environment = os.environ | changes
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT + 5))
            said, _ = process.communicate()
        return process.returncode, said


def verdict(status: int, said: str) -> tuple[str, str]:
    """Return the verdict on a mutant from the exit status and the output of pytest."""
    if status == 0:
        return "survived", ""
    if status == -signal.SIGXCPU:
        return "killed", "does not end"
    if status < 0:
        return "killed", f"crashes: {signal.Signals(-status).name}"
    warning = re.search(r"-Werror=([\w-]+)=?\]", said)
    if "SimtError: g++" in said:
        return ("killed", f"compiler: {warning[1]}") if warning else ("no mutant", "does not compile")
    failed = FAILED.search(said)
    if not failed:
        raise RuntimeError(f"the tests did not run:\n{said[-5000:]}")
    reason = re.search(r"SimtError: kernel .*?: (no thread can go on|[^<\n,(]*)", said)
    return "killed", reason[1].strip() if reason else failed["name"].replace("_", " ")


def run_all(mutants: list[Mutant], workers: int, seconds: float, folder: Path, keep) -> dict[Mutant, tuple[str, str]]:
    """Return the outcome of each mutant; ``keep`` is called with each outcome at once."""
    waiting: queue.Queue[Mutant] = queue.Queue()
    for mutant in mutants:
        waiting.put(mutant)
    outcomes: dict[Mutant, tuple[str, str]] = {}
    failures: list[BaseException] = []
    until = time.monotonic() + seconds
    one_at_a_time = threading.Lock()

    def work(place: Path) -> None:
        try:
            copy = Copy(place)
            while time.monotonic() < until and not failures:
                mutant = waiting.get_nowait()
                outcome = copy.outcome(mutant)
                with one_at_a_time:
                    outcomes[mutant] = outcome
                    keep(mutant, outcome)
                    done = f"{len(outcomes)}/{len(mutants)} {' '.join(outcome)}"
                    print(f"{done}: {mutant.file}:{mutant.line} {mutant.change}", flush=True)
        except queue.Empty:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(folder / str(i),)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the path of the files to break")
    parser.add_argument("--sample", type=float, default=1, help="fraction of the mutants of each file to run, by the seed")
    parser.add_argument("--least", type=int, default=8, help="minimum number of mutants per file")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample and of its order")
    parser.add_argument("--survivors", action="store_true", help="only those that docs/mutants.json records as survivors")
    parser.add_argument("--new", action="store_true", help="only those that docs/mutants.json does not record")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    parser.add_argument("--update", action="store_true", help="update the page for the current kernels and stop")
    parser.add_argument("--workers", type=int, default=2, help="copies of the package that are tested at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further mutant after this time")
    parser.add_argument(
        "--folder", type=Path, help="folder of the copies and their compiled code, which the next run reuses"
    )
    options = parser.parse_args()
    mutants = [m for path in kernel_files() for m in mutants_of(path)]
    outcomes, reasons, lost = recorded(mutants, read_record())
    chosen = sample([m for m in mutants if options.only in m.file], options.sample, options.least, options.seed)
    if options.survivors:
        chosen = [m for m in chosen if outcomes.get(m, ("",))[0] == "survived"]
    if options.new:
        chosen = [m for m in chosen if m not in outcomes]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.line} {mutant.change}")
        print(f"{len(chosen)} mutants")
        return
    if options.update:
        write_record(record_of(mutants, outcomes, reasons))
        print(f"{len(outcomes)} mutants kept, {lost} no longer in the kernels dropped; see {PAGE.relative_to(ROOT)}")
        return

    def keep(mutant: Mutant, outcome: tuple[str, str]) -> None:
        known, why, _ = recorded(mutants, read_record())  # with explanations written in the meantime
        write_record(record_of(mutants, {**known, mutant: outcome}, why))

    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ran = run_all(chosen, options.workers, options.seconds, folder, keep)
    survived = sum(outcome[0] == "survived" for outcome in ran.values())
    print(f"{survived} of {len(ran)} survived; see {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
