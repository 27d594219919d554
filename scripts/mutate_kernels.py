"""Break the kernels one place at a time and see whether the tests on the host harness notice.

    python scripts/mutate_kernels.py                 every mutant; takes half an hour on two cores
    python scripts/mutate_kernels.py --only push.cu  one file
    python scripts/mutate_kernels.py --list          what would be broken

Each mutant is a copy of the package with one change in one .cu or .cuh file; tests/test_simt.py, after the tests of that
file's own (OWN_TESTS), run on it until their first failure. What only a CUDA compiler reads is left alone.
Outcomes go to docs/mutants.md, which keeps those of earlier runs for mutants that are not run again, and the explanations
written there. A survivor is no fault of the kernel: it is a change that no test sees, and wants a test or a line that says
why none can see it.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "mutants.md"
TIME_LIMIT = 300  # seconds; a mutant that takes longer does not end
QUICK = "stress and 1 and (assembled or turned or wrong or again or awkward or negative or cutoff or targets or agree)"
# Tests of one file's own, which fail before the contract does.
OWN_TESTS = {
    "platform.cuh": ("tests/test_simt_platform.py",),
    "caches.cuh": ("tests/test_simt_platform.py",),
    "cluster.cuh": ("tests/test_simt_clusters.py",),
    "edges.cuh": ("tests/test_bfs_4k.py", "tests/test_persistent.py"),
    **dict.fromkeys(("bfs_4k.cu", "local_queue.cuh", "scan.cuh"), ("tests/test_bfs_4k.py",)),
    **dict.fromkeys(("cluster.cu", "persistent.cu", "claims.cuh"), ("tests/test_persistent.py",)),
    **dict.fromkeys(("near_far.cu", "piles.cuh"), ("tests/test_persistent_sssp.py",)),
    "h_bf.cu": ("tests/test_h_bf.py",),
    **dict.fromkeys(("scan.cu", "scan_relax.cu"), ("tests/test_scans.py", "tests/test_simt_papers.py")),
    **dict.fromkeys(("block_queues.cu", "prefix_sum.cu", "gathers.cu", "reach.cuh"), ("tests/test_papers_systems.py",)),
    **dict.fromkeys(("piles.cu", "work_front.cu", "relaxing.cuh", "shares.cuh"), ("tests/test_papers_sssp.py",)),
}
UNEXPLAINED = "not explained yet"

# What is put in place of what. The text is that of one line without its comment; groups may be used.
SWAPS = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ 1\b", ""),
    (r" \+ 1\b", " + 2"),
    (r" - 1u?\b", ""),
    (r"\b0\b(?=[;,)])", "1"),
    (r"\b1\b(?=[;,)])", "0"),
    (r"!(?=[\w(])", ""),
    (r"~(?=\w)", ""),
    (r" \? (.+?) : (.+?)(?=[;)])", r" ? \2 : \1"),
    (r"\breturn;", ";"),
    (r"\bcontinue;", ";"),
    (r"< (n_\w+|list\.size|end|capacity);", r"< \1 - 1;"),
    (r"\bsize\b(?=;)", "size - 1"),
    (r"(\bi|\be) = (.+?)(?=; (?:i|e) <)", r"\1 = \2 + 1"),
    (r" \+= ((?:kt::)?(?:n_threads\(\)|n_warps\(\)|WARP))", r" += 2 * \1"),
    (r"\+ lane\(\)", ""),
    (r"\bthread_id\(\)(?=;)", "warp_id()"),
    (r"\bwarp_id\(\)(?=;)", "thread_id()"),
    (r"\bint64 (?=[a-z]\w* =)", "int32 "),
    (r"static_cast<(kt::)?int64>", r"static_cast<\1int32>"),
    (r"\boffset_t (?=[a-z]\w* =)", "int32 "),
    (r"static_cast<(?:kt::)?(?:word|uint64|uint32)>", ""),
    (r"racy_load\(([^()]+)\)", r"load_constant(\1)"),
    (r"(?:kt::)?racy_load\(([^()]+)\)", r"*(\1)"),
    (r"(?:kt::)?racy_store\(([^()]+), ([^()]+)\)", r"*(\1) = \2"),
    (r"return atomicM(in|ax)\(address, value\)", r"auto old = *address; if (value < old) *address = value; return old"),
    (r"atomicMin", "atomicMax"),
    (r"return atomicExch\(address, value\)", "auto old = *address; *address = value; return old"),
    (
        r"return atomicCAS\(address, expected, value\)",
        "auto old = *address; if (old == expected) *address = value; return old",
    ),
    (r"return static_cast<int64>\(atomicAdd\(.*\)\);", "const int64 old = *address; *address = old + value; return old;"),
    (r"__shfl_sync\(lanes, value, from\)", "__shfl_sync(0xffffffffu, value, from)"),
    (r"__shfl_sync\(lanes, value, from\)", "value"),
    (r"__activemask\(\)", "0xffffffffu"),
    (r"count_lanes\(lanes\)", "1"),
    (r"count_lanes\(lanes & lanes_before\(\)\)", "count_lanes(lanes_before())"),
    (r"count_lanes\(lanes & lanes_before\(\)\)", "count_lanes(lanes)"),
    (r"\+ count_lanes\(lanes & lanes_before\(\)\)", ""),
    (r"first_lane\(lanes\)", "0"),
    (r"<< lane\(\)", "<< (lane() + 1)"),
    (r"% WARP", "% 16"),
    (r"/ WARP", "/ 16"),
    (r"(?<!\* )\bcounters\b(?=\))", "counters + 1"),
    (r"(?<!\* )\bcounts\b(?=\))", "counts + 1"),
    (r"(counters|counts) \+ (\d)", r"\1"),
    (r" << (\w+) \|", r" << (\1 - 1) |"),
    (r"load_constant\((\w+) \+ (\w+)\)", r"load_constant(\1 + \2 + 1)"),
    (r"\[(v|i|at|place)\] =", r"[0] ="),
    (r"\b(from_ordered|to_ordered)\(key", r"\1(~key"),
    (r"a \+ b", "a - b"),
    (r"0x7f", "0x7e"),
    (r"\bu\b(?=\);$)", "v"),
    (r"(\w+) - first_(row|edge)", r"\1"),
    (r"(kt::|\b)ALL_LANES\b", r"(\1ALL_LANES >> 1)"),
    (r"(?:kt::|\b)ALL_LANES\b", "1u"),
    (r", width\)", ", WARP)"),
    (r"shuffle_up|shfl_up", lambda at: at[0].replace("up", "down")),
    (r"shuffle_down|shfl_down", lambda at: at[0].replace("down", "up")),
    (r"shuffle_xor|shfl_xor", lambda at: at[0].replace("xor", "down")),
    (r"\b(atomic|reduce)_(add|min|and)\(", r"\1_max("),
    (r"\b(atomic|reduce)_max\(", r"\1_min("),
    (r"\batomic_or\(", "atomic_and("),
    (r"\batomic_and\(", "atomic_or("),
    (r"__reduce_(add|min|and)_sync", "__reduce_or_sync"),
    (r"__reduce_(max|or)_sync", "__reduce_add_sync"),
    (r"atomic(?:Add|Max|Exch)\b(?=[,(])", "atomicMin"),
    (r"atomicOr\b(?=,)", "atomicAnd"),
    (r"atomicAnd\b(?=,)", "atomicOr"),
    (r"(?<!block_)\bany\(", "all("),
    (r"(?<!block_)\ball\(", "any("),
    (r"\bblock_any\(", "block_all("),
    (r"\bblock_all\(", "block_any("),
    (r"__syncthreads_or\b", "__syncthreads_and"),
    (r"__syncthreads_and\b", "__syncthreads_or"),
    (r"__(ballot|any|all)_sync\(lanes, predicate\)", r"__\1_sync(lanes, !predicate)"),
    (r"(KT_SHARED\(.*, \[)(.+?)\]", r"\1\2 - 1]"),
    (r"\batomic_add\(([^(),]+), ([^(),]+)\);", r"racy_store(\1, racy_load(\1) + \2);"),
    (r"(launch_child\((?!MOST)\w+), [^,]+,", r"\1, 1,"),
]
# A statement of one line that does something and declares nothing.
STATEMENT = re.compile(r"^( *(?:if \(.*\) |for \(.*\) )?)((?:[\w:.]+\(.*\)|[\w.]+(?:\[.*\])? = .*);)$")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    before: str
    after: str

    @property
    def change(self) -> str:
        return f"`{_shown(self.before)}` to `{_shown(self.after)}`"


def _shown(line: str) -> str:
    return " ".join(line.split()).replace("|", "\\|").replace("`", "'").replace("](", "] (") or "nothing"


def kernel_files() -> list[Path]:
    package = ROOT / "kepler_traverse"
    return sorted([*package.rglob("*.cu"), *package.rglob("*.cuh")])


def mutants_of(path: Path) -> list[Mutant]:
    """Every change of SWAPS at every place, conditions that always or never hold, and statements that are not there."""
    name = path.relative_to(ROOT).as_posix()
    found: dict[tuple[int, str], Mutant] = {}
    for number, line in _read_by_the_host(path.read_text().splitlines()):
        code = line.split("//")[0].rstrip()
        if not code.strip() or code.lstrip().startswith(("#", "template", "static_assert", "using", "asm")):
            continue
        changed = [
            code[: at.start()] + (new(at) if callable(new) else at.expand(new)) + code[at.end() :]
            for old, new in SWAPS
            for at in re.finditer(old, code)
            if not re.fullmatch(r"(KT_DEVICE|constexpr) \w+ ", code[: at.start()])  # the name that is defined
        ]
        for at in re.finditer(r"\bif \(", code):
            end = _closing(code, at.end())
            if end:
                changed += [code[: at.end()] + fixed + code[end:] for fixed in ("true", "false")]
        statement = STATEMENT.match(code)
        if statement and not statement[2].startswith("return"):
            changed.append(statement[1] + ";")
        for after in changed:
            if after != code:
                found.setdefault((number, after), Mutant(name, number, code, after))
    return list(found.values())


def _read_by_the_host(lines: list[str]) -> list[tuple[int, str]]:
    """The lines, numbered from 1, without those that the preprocessor keeps for CUDA compilers."""
    found = []
    device_only: list[bool] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#if"):
            device_only.append(bool(re.match(r"#ifdef __CUDACC__|#if defined\(__CUDA_ARCH__\)", line)))
        elif line.startswith("#elif"):
            device_only[-1] = True
        elif line.startswith("#else"):
            device_only[-1] = not device_only[-1]
        elif line.startswith("#endif"):
            device_only.pop()
        elif not any(device_only):
            found.append((number, line))
    return found


def _closing(code: str, start: int) -> int | None:
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if not depth:
            return at
    return None


class Copy:
    """A copy of what the tests need, with at most one mutant in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("kepler_traverse", "tests", "pyproject.toml"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)

    def outcome(self, mutant: Mutant | None) -> tuple[str, str]:
        """``("killed", by what)``, ``("survived", "")``, or ``("no mutant", ...)`` where it does not compile at all."""
        if mutant is None:
            return self._run(())
        path = self.folder / mutant.file
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after, 1)
        path.write_text("".join(lines))
        try:
            return self._run(OWN_TESTS.get(path.name, ()))
        finally:
            path.write_text(text)

    def _run(self, own: tuple[str, ...]) -> tuple[str, str]:
        """The tests that most mutants fail first, then all; ``own`` names files of tests that come before."""
        cache = self.folder / "simt"
        kept = set(cache.iterdir()) if cache.exists() else set()
        try:
            outcome = self._tests(*own) if own else ("survived", "")
            if outcome[0] == "survived":
                outcome = self._tests("tests/test_simt.py", "-k", QUICK)
            if outcome[0] == "survived":
                outcome = self._tests("tests/test_simt.py")
            return outcome
        finally:
            if kept:  # what was compiled without a mutant
                for made in set(cache.iterdir()) - kept:
                    shutil.rmtree(made) if made.is_dir() else made.unlink()

    def _tests(self, *chosen: str) -> tuple[str, str]:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen]
        environment = {**os.environ, "SIMT_CACHE": str(self.folder / "simt"), "PYTHONPATH": str(self.folder)}
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT
            )
        except subprocess.TimeoutExpired:
            return "killed", "does not end"
        if done.returncode == 0:
            return "survived", ""
        warning = re.search(r"-Werror=([\w-]+)\]", done.stdout)
        if "SimtError: g++" in done.stdout:
            return ("killed", f"compiler: {warning[1]}") if warning else ("no mutant", "does not compile")
        failed = re.search(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
        if not failed:
            raise RuntimeError(f"the tests did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        reason = re.search(r"SimtError: kernel .*?: (no thread can go on|[^<\n,(]*)", done.stdout)
        return "killed", reason[1].strip() if reason else failed[1].removeprefix("test_").replace("_", " ")


def run_all(mutants: list[Mutant], workers: int, seconds: float) -> dict[Mutant, tuple[str, str]]:
    waiting: queue.Queue[Mutant] = queue.Queue()
    for mutant in mutants:
        waiting.put(mutant)
    outcomes: dict[Mutant, tuple[str, str]] = {}
    failures: list[BaseException] = []
    until = time.monotonic() + seconds

    def work(folder: Path) -> None:
        try:
            copy = Copy(folder)
            verdict, reason = copy.outcome(None)
            if verdict != "survived":
                raise RuntimeError(f"the tests fail without a mutant: {reason}")
            while time.monotonic() < until and not failures:
                mutant = waiting.get_nowait()
                outcomes[mutant] = copy.outcome(mutant)
                done = f"{len(outcomes)}/{len(mutants)} {' '.join(outcomes[mutant])}"
                print(f"{done}: {mutant.file}:{mutant.line} {mutant.change}", flush=True)
        except queue.Empty:
            pass
        except BaseException as error:
            failures.append(error)

    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=work, args=(Path(folder) / str(i),)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return outcomes


def recorded(mutants: list[Mutant]) -> tuple[dict[Mutant, tuple[str, str]], dict[Mutant, str]]:
    """What the report says of mutants that are still the same: outcomes, and why survivors survive."""
    by_change: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        by_change.setdefault((mutant.file, mutant.change), []).append(mutant)
    outcomes: dict[Mutant, tuple[str, str]] = {}
    reasons: dict[Mutant, str] = {}
    text = REPORT.read_text() if REPORT.exists() else ""
    survivors, _, killed = text.partition("## Killed")
    for part, verdict in ((survivors, "survived"), (killed, "killed")):
        for file, line, change, last in re.findall(r"^\| (\S+):(\d+) \| (`.*`) \| (.*) \|$", part, re.MULTILINE):
            same = by_change.get((file, change), [])
            here = [m for m in same if m.line == int(line)]
            # A line that has moved is known by its text, where the file has it once.
            for mutant in here or (same if len(same) == 1 else []):
                outcomes[mutant] = (verdict, last if verdict == "killed" else "")
                if verdict == "survived" and last != UNEXPLAINED:
                    reasons[mutant] = last
    return outcomes, reasons


def write_report(mutants: list[Mutant], outcomes: dict[Mutant, tuple[str, str]], reasons: dict[Mutant, str]) -> None:
    ran = {m: outcomes[m] for m in mutants if m in outcomes and outcomes[m][0] != "no mutant"}
    survivors = [m for m in ran if ran[m][0] == "survived"]
    killed = [m for m in ran if ran[m][0] == "killed"]
    not_compiled = sum(outcome[0] == "no mutant" for outcome in outcomes.values())
    lines = [
        "# Mutants of the kernels",
        "",
        "Written by `python scripts/mutate_kernels.py`: each kernel file is broken at one place at a time, and",
        "`tests/test_simt.py`, after the tests of that file's own where it has some, run on the host harness until",
        "something fails. What survives is explained below.",
        "",
        f"{len(ran)} mutants, {len(killed)} killed ({100 * len(killed) / max(len(ran), 1):.1f} %), "
        f"{len(survivors)} survived. "
        f"{len(mutants) - len(ran) - not_compiled} others have not been run.",
        "",
        "## Survivors",
        "",
        "| where | change | why it survives |",
        "|---|---|---|",
        *(f"| {m.file}:{m.line} | {m.change} | {reasons.get(m, UNEXPLAINED)} |" for m in survivors),
        "",
        "## Killed",
        "",
        "| where | change | by |",
        "|---|---|---|",
        *(f"| {m.file}:{m.line} | {m.change} | {ran[m][1]} |" for m in killed),
    ]
    REPORT.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the path of the files to break")
    parser.add_argument("--survivors", action="store_true", help="only those that docs/mutants.md lists as survivors")
    parser.add_argument("--new", action="store_true", help="only those that docs/mutants.md does not list")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    parser.add_argument("--workers", type=int, default=2, help="copies of the package that are tested at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further mutant after this time")
    parser.add_argument("--every", type=int, default=1, help="take every n-th mutant")
    options = parser.parse_args()
    mutants = [m for path in kernel_files() for m in mutants_of(path)]
    outcomes, reasons = recorded(mutants)
    chosen = [m for m in mutants if options.only in m.file][:: options.every]
    if options.survivors:
        chosen = [m for m in chosen if outcomes.get(m, ("",))[0] == "survived"]
    if options.new:
        chosen = [m for m in chosen if m not in outcomes]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.line} {mutant.change}")
        print(f"{len(chosen)} mutants")
        return
    random.Random(0).shuffle(chosen)  # so that a run cut short has seen something of every file
    ran = run_all(chosen, options.workers, options.seconds)
    write_report(mutants, {**outcomes, **ran}, reasons)
    survived = sum(outcome[0] == "survived" for outcome in ran.values())
    print(f"{survived} of {len(ran)} survived; see {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
