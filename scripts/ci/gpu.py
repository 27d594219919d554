"""Check a machine with GPUs: ``bash scripts/check.sh --gpu [STAGE ...]``; without a stage, all but ``scale`` in ten minutes.

tests      all tests that need a GPU: those marked ``gpu`` or ``on_a_device``
parity     all strategies against cuGraph and against the CPU, bit for bit, on random graphs
groups     each result kind from 2,500 sources, and digests of jobs, on three graphs, against the CPU (scripts/ci/groups.py)
multi      the engine for graphs that are partitioned over GPUs, on all GPUs
sanitize   compute-sanitizer over a sample of the tests: memcheck and racecheck, or what ``--tool`` names
speed      the recorded works again, compared with cuGraph; on the recorded kind of GPU none may take more than TOLERANCE
           times as long
scale      the start of workers, parts of other sizes, and all GPUs beside one, with a verdict (the suite gpus); only if
           it is named

Nothing is installed: what is missing is named, and what needs it does not run. All stages run, even after a failure. Those
before ``speed`` run side by side and share the GPUs. out/gpu.json has the record, out/gpu the output of each process. The
exit status is 0 if nothing failed, 1 if something did, and 2 without a GPU. Needs Python alone, and what each stage needs.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipelines import doctor
from scripts import reports
from scripts.measure import record as measurements
from scripts.measure.cells import number, per_source
from scripts.measure.environment import commit, machine
from scripts.measure.work import OURS as LIBRARY
from scripts.pages import table

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "gpu"
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))
# In this order, since processes that start last should be short.
STAGES = ("sanitize", "parity", "multi", "groups", "tests", "speed", "scale")
ALONE = ("speed", "scale")  # one process at a time
MAX_PER_GPU = 13  # processes of the others at a time
ONLY_IF_NAMED = ("scale",)
SCALE_SECONDS = 200.0
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PASSED = "passed"
FAILED = "FAILED"
NOT_RUN = "not run"
# on another host with an H200 the 43 recorded works took 0.56 to 1.11 times as long
TOLERANCE = 1.25

OURS = ("kepler_traverse", "pipelines", "scripts", "tests")
MARKED = re.compile(
    r"^\s*@(pytest\.mark\.gpu|on_a_device)\b|\b(marks|pytestmark)\b.*(mark\.gpu|on_a_device)"
    r"|^from tests\.support\.(devices|plans) import .*\b(each_namespace|in_each|in_one|rows_of)\b",
    re.MULTILINE,
)
MULTI_GPU = "tests/job/test_multi_gpu_engine.py"
# Processes that share the tests of a file.
PARTS = {
    "test_contract.py": 6,
    "test_gpu.py": 3,
    "test_multi_source.py": 6,
    "test_multi_source_gpu.py": 3,
}
# Small tests of kernels of strategies, statistics, hierarchies, the k nearest and loads; of them one in SAMPLE is run.
SANITIZED = (
    *("tests/traversal/test_contract.py", "tests/traversal/test_multi_source_gpu.py"),
    *("tests/traversal/test_distance_stats.py", "tests/hierarchy/test_hierarchy_on_gpu.py"),
    *("tests/traversal/test_k_nearest.py", "tests/traversal/test_short_search.py"),
    "tests/traversal/test_loads_on_gpu.py",
)
SMALL = (
    "(cuda and (again or cutoff or depth or targets or negative or complete or power or 33) and not path and not any_graph)"
    " or (test_multi_source_gpu and not groups and not memory) or test_distance_stats"
    " or (test_hierarchy_on_gpu and not any_graph) or one_search_on_a_gpu or searches_on_a_gpu_find"
    " or test_loads_on_gpu"
)
SAMPLE = 8
SANITIZER_SECONDS = 180
# Libraries ask the driver for functions that it may not have; memcheck would report each such call.
SANITIZER_OPTIONS = {"memcheck": ("--report-api-errors", "no")}
# Of these tests, which have thousands of launches, four had not ended after two minutes each.
NOT_SANITIZED = {"racecheck": " and not each_alone and not bit_planes and not deeper"}
# Of the suite gpu, and the file that a graph comes from; and of the suite hierarchy.
SPEED_GRAPHS = {
    "R-MAT 20": None,
    "lattice 1500": None,
    "USA-road-NY": "USA-road-NY-topology",
    "USA-road-NE": "USA-road-NE-topology",
}
HIERARCHY = "USA-road-d.NY"
# The slowest first.
GROUP_GRAPHS = ("email-Enron", "luxembourg_osm", "dblp-2010")


Verdict = tuple[str, str]  # and what to say


def verdict_of(is_right: bool) -> str:
    if is_right:
        return PASSED
    return FAILED


@dataclass(frozen=True)
class Job:
    """A process of a stage. ``judge(exit_status, folder)`` returns a verdict and what to say; ``needs`` are modules."""

    stage: str
    name: str
    command: list[str]
    judge: Callable[[int, Path], Verdict]
    needs: tuple[str, ...] = ()
    seconds: float = 420.0
    all_gpus: bool = False


@dataclass(frozen=True)
class Row:
    """The outcome of a job."""

    stage: str
    name: str
    verdict: str
    seconds: float
    detail: str


# --- the tests of one process


class Selection:
    """A plugin of pytest: one of several parts of the tests, every n-th of those, until the time is over."""

    def __init__(self, part: int, parts: int, every: int, seconds: float):
        self._part = part
        self._parts = parts
        self._every = every
        self._ends = time.monotonic() + seconds
        self.is_late = False

    def pytest_addoption(self, parser: Any) -> None:
        # pyproject.toml has settings that pytest refuses where it is older, or where pytest-timeout is not installed.
        if importlib.util.find_spec("pytest_timeout") is None:
            parser.addini("timeout", "of pytest-timeout")
        if "faulthandler_exit_on_timeout" not in parser._inidict:
            parser.addini("faulthandler_exit_on_timeout", "of later versions")

    def pytest_configure(self, config: Any) -> None:
        config.addinivalue_line("markers", "timeout: of pytest-timeout")

    def pytest_collection_finish(self, session: Any) -> None:
        items = session.items
        # Tests side by side compile the same kernels, so a part has neighbors.
        bounds = [len(items) * i // self._parts for i in (self._part, self._part + 1)]
        items[:] = items[slice(*bounds)][:: self._every]

    def pytest_runtest_logfinish(self) -> None:
        self.is_late = time.monotonic() > self._ends

    def pytest_runtest_teardown(self, item: Any) -> None:
        if self.is_late:
            item.session.shouldstop = "the time is over"


def run_pytest(arguments: list[str]) -> int:
    """Run tests in this process: ``REPORT PART PARTS EVERY SECONDS DRIVER ...`` and arguments of pytest.

    With DRIVER 1 the driver makes each allocation: in CuPy's pool, an access past an array would hit memory that belongs to
    the process, and no sanitizer would report it.
    """
    import pytest

    report, part, parts, every, seconds, driver, *others = arguments
    if driver == "1":
        import cupy

        cupy.cuda.set_allocator(None)
        cupy.cuda.set_pinned_memory_allocator(None)
    selection = Selection(int(part), int(parts), int(every), float(seconds))
    given = ["-q", "-p", "no:cacheprovider", "-m", "gpu", f"--junitxml={report}", *others]
    status = pytest.main(given, plugins=[selection])
    if selection.is_late and status == pytest.ExitCode.INTERRUPTED:
        return 0
    return int(status)


def pytest_command(
    name: str,
    *given: str,
    part: int = 0,
    parts: int = 1,
    every: int = 1,
    seconds: float = 1e9,
    driver: bool = False,
) -> list[str]:
    """Return the command that runs tests by ``run_pytest``."""
    numbers = [str(number) for number in (part, parts, every, seconds, int(driver))]
    module = [sys.executable, "-m", "scripts.ci.gpu", "--pytest"]
    return [*module, str(OUT / f"{name}.xml"), *numbers, *given]


def modules_missing(cases: Iterable[reports.Case]) -> list[str]:
    """Return the modules of other projects that a file of tests could not import, if nothing else went wrong."""
    modules = set()
    for case in cases:
        if case.outcome == reports.FAILED:
            found = re.search(r"ModuleNotFoundError: No module named '(\w+)", case.text)
            if found is None or found[1] in OURS:
                return []
            modules.add(found[1])
    return sorted(modules)


def judge_tests(name: str, status: int, folder: Path) -> Verdict:
    report = folder / f"{name}.xml"
    if not report.exists():
        return FAILED, f"ended with {status} and without a report"
    cases = reports.cases_in(report)
    counts = reports.counts_of(cases)
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    missing = modules_missing(cases)
    if missing:
        return NOT_RUN, f"missing: {', '.join(missing)}"
    if counts["failed"]:
        return FAILED, said
    if status not in (0, 5):
        return FAILED, f"{said}, ended with {status}"
    if counts["passed"]:
        return PASSED, said
    return NOT_RUN, "; ".join(sorted({case.message for case in cases})) or "no test was selected"


def job_of_tests(stage: str, name: str, command: list[str], *needs: str, **given: Any) -> Job:
    return Job(stage, name, command, partial(judge_tests, name), ("pytest", *needs), **given)


# --- the stages


def test_files() -> Iterator[str]:
    """Yield the files with tests that need a GPU."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if MARKED.search(text):
            yield str(path.relative_to(ROOT))


def jobs_of_tests(options: argparse.Namespace) -> Iterator[Job]:
    chosen = []
    if options.k:
        chosen += ["-k", options.k]
    if options.all:
        chosen.append("--all")
    parts_of = {path: PARTS.get(Path(path).name, 1) for path in test_files() if path != MULTI_GPU}
    for path, parts in sorted(parts_of.items(), key=lambda each: -each[1]):
        for part in range(parts):
            name = Path(path).stem
            if parts > 1:
                name += f"-{part + 1}-of-{parts}"
            command = pytest_command(name, path, *chosen, part=part, parts=parts)
            yield job_of_tests("tests", name, command)


def judge_parity(key: str, equal: tuple, status: int, folder: Path) -> Verdict:
    """Judge by the pairs of figures of a measurement that must be equal."""
    if status:
        return FAILED, f"ended with {status}"
    figures = json.loads((folder / f"{key}.json").read_text())[key]["figures"]
    rows = figures.get("rows", {"all strategies": figures})
    is_right = all(row[one] == row[whole] > 0 for row in rows.values() for one, whole in equal)
    one, whole = equal[0]
    said = (f"{name}: {row[one]:,} of {row[whole]:,} equal" for name, row in rows.items())
    return verdict_of(rows and is_right), ", ".join(said)


def jobs_of_parity(_options: argparse.Namespace) -> Iterator[Job]:
    for key, needs, equal in (
        ("parity", ("pylibcugraph",), (("equal", "results"), ("certified", "results"))),
        ("gpu_bits", (), (("equal", "distances"), ("equal_predecessors", "predecessors"))),
    ):
        command = [sys.executable, "-m", "scripts.evidence", "measure", "--only", key]
        command += ["--output", str(OUT / f"{key}.json")]
        command += ["--parity-seconds", "60", "--commit", commit()]
        yield Job("parity", key, command, partial(judge_parity, key, equal), needs, seconds=330)


def jobs_of_multi(_options: argparse.Namespace) -> Iterator[Job]:
    # the last one for a cluster of its own
    needs = ("cugraph", "dask_cuda", "cryptography")
    command = pytest_command("multi-gpu", MULTI_GPU)
    yield job_of_tests("multi", "multi-gpu", command, *needs, all_gpus=True)


def judge_groups(name: str, status: int, folder: Path) -> Verdict:
    log = folder / f"groups-{name.replace(' ', '-')}.log"
    lines = log.read_text(errors="replace").splitlines()
    equal, differing = (
        [line for line in lines if f": {word}, " in line] for word in ("equal", "DIFFERS")
    )
    said = f"{len(equal)} results equal, {len(differing)} differ"
    if differing:
        return FAILED, f"{said}: {differing[0]}"
    if status or not equal:
        return FAILED, f"{said}, ended with {status}"
    return PASSED, said


def absent(*names: str) -> tuple[str, ...]:
    """Return those files of graphs that are not there."""
    files = (DATA / f"{name}.parquet" for name in names)
    return tuple(str(file) for file in files if not file.exists())


def jobs_of_groups(_options: argparse.Namespace) -> Iterator[Job]:
    for graph, part in itertools.product(GROUP_GRAPHS, ("weights", "hops", "forward", "jobs")):
        name = f"{graph} {part}"
        command = [sys.executable, "-m", "scripts.ci.groups", graph, "--part", part]
        judge = partial(judge_groups, name)
        yield Job("groups", name, command, judge, absent(graph), seconds=420)


def jobs_of_sanitize(options: argparse.Namespace) -> Iterator[Job]:
    found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    for tool in options.tool:
        given = [*SANITIZED, "-vv", "-k", options.k or f"({SMALL}){NOT_SANITIZED.get(tool, '')}"]
        sample = pytest_command(tool, *given, every=SAMPLE, seconds=SANITIZER_SECONDS, driver=True)
        command = [found, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]
        command += [*SANITIZER_OPTIONS.get(tool, ()), *sample]
        yield job_of_tests("sanitize", tool, command, seconds=SANITIZER_SECONDS + 120)


def measuring(suite: str, file: str, *given: str) -> list[str]:
    """Return the command that measures a suite."""
    command = [sys.executable, "-m", "scripts.measure", "run", suite, "--device", "cuda"]
    command += ["--graphs", str(DATA), "--output", str(OUT / file), "--commit", commit()]
    return [*command, *given]


def jobs_of_speed(options: argparse.Namespace) -> Iterator[Job]:
    limits = (f"scripts.bench.gpu.{name}=2" for name in ("PEER_SECONDS", "MANY_SECONDS"))
    given = [word for limit in limits for word in ("--set", limit)]
    lacking = absent_graphs()
    graphs = [name for name in SPEED_GRAPHS if name not in lacking]
    suites = (
        ("gpu", "one source and many", 80, ["--seconds", "60", *given, "--only", *graphs], ()),
        ("hierarchy", "hierarchy", 75, ["--only", HIERARCHY], absent(HIERARCHY)),
    )
    for suite, name, seconds, words, missing in suites:
        judge = partial(judge_speed, f"{suite}.jsonl", options.works)
        command = measuring(suite, f"{suite}.jsonl", *words)
        yield Job("speed", name, command, judge, missing, seconds=seconds)


def absent_graphs() -> list[str]:
    """Return the graphs of the stage speed whose files are not there."""
    return [name for name, file in SPEED_GRAPHS.items() if file and absent(file)]


def judge_scale(status: int, folder: Path) -> Verdict:
    from scripts.bench import gpus

    path = folder / "scale.jsonl"
    lines = measurements.lines_of(path) if path.exists() else []
    found = gpus.judged(line for line in lines if line["kind"] == "time")
    missed = [name for name, is_met in found.items() if not is_met]
    said = f"{len(found) - len(missed)} of {len(found)} figures meet their targets"
    if missed:
        said += f"; {FAILED}: {'; '.join(missed)}"
    return verdict_of(found and not missed and not status), said


def jobs_of_scale(options: argparse.Namespace) -> Iterator[Job]:
    from scripts.bench import gpus  # which needs more than Python

    seconds = min(options.seconds - 20.0, options.scale_seconds)
    command = measuring("gpus", "scale.jsonl", "--seconds", str(seconds))
    given = {"seconds": seconds + 15.0, "all_gpus": True}
    yield Job("scale", "all GPUs", command, judge_scale, absent(gpus.ROADS), **given)


JOBS = {
    "tests": jobs_of_tests,
    "parity": jobs_of_parity,
    "multi": jobs_of_multi,
    "groups": jobs_of_groups,
    "sanitize": jobs_of_sanitize,
    "speed": jobs_of_speed,
    "scale": jobs_of_scale,
}


# --- speed beside the record


class Speed(NamedTuple):
    """The milliseconds of a work, those of cuGraph where it ran, and the kind of GPU."""

    ms: float
    peer: float | None
    gpu: str | None


def works_of(rows: list[dict]) -> dict[str, Speed]:
    """Return the works of rows of the suite ``gpu``, each with its run, by their names."""
    peers = {
        (row["graph"], row["work"]): per_source(row) for row in rows if row["peer"] == "cuGraph"
    }
    works = {}
    for row in rows:
        graph = row["graph"]
        work = row["work"]
        if row["peer"] == LIBRARY:
            name = f"{graph}, {work}"
            if row["size"] > 1:
                name += ", each"
                work = f"{work.partition(',')[0]}, a loop"
            peer = peers.get((graph, work))
            works[name] = Speed(per_source(row), peer, row["run"]["machine"]["gpu"])
    return works


def works_in(record: measurements.Record) -> dict[str, Speed]:
    """Return the works of the suites that the stage runs."""
    hierarchies = [row for row in record.rows("hierarchy") if row["device"] == "cuda"]
    return works_of(record.rows("gpu")) | works_of(hierarchies)


def measured(path: Path) -> dict[str, Speed]:
    """Return the works of a file that a job of the stage has written."""
    if not path.exists():
        return {}
    return works_in(measurements.added(measurements.Record(), measurements.lines_of(path)))


def recorded() -> dict[str, Speed]:
    return works_in(measurements.read())


def compared(now: dict[str, Speed], before: dict[str, Speed]) -> Iterator[dict]:
    """Yield each work beside its record; that of another kind of GPU is information."""
    for work, speed in now.items():
        known = before.get(work)
        ratio = known and speed.ms / known.ms
        if ratio is None:
            verdict = "no record"
        elif known.gpu != speed.gpu:
            verdict = "information"
        else:
            verdict = verdict_of(ratio <= TOLERANCE)
        yield {
            "work": work,
            "ms": speed.ms,
            "recorded_ms": known and known.ms,
            "recorded_on": known and known.gpu,
            "ratio": ratio,
            "cugraph_ms": speed.peer,
            "verdict": verdict,
        }


def judge_speed(file: str, works: list[dict], status: int, folder: Path) -> Verdict:
    found = list(compared(measured(folder / file), recorded()))
    works.extend(found)
    slower = [work["work"] for work in found if work["verdict"] == FAILED]
    said = f"{len(found)} works, {len(slower)} slower than {TOLERANCE} times the record"
    lacking = absent_graphs()
    if lacking:
        said += f"; without {', '.join(lacking)}, whose files are not in {DATA}"
    if status:
        return FAILED, f"ended with {status}; {said}"
    if found:
        return verdict_of(not slower), said
    return NOT_RUN, said


# --- running


def missing_of(job: Job) -> list[str]:
    """Return what a job needs and this machine lacks: modules, files and the program that it starts."""
    missing = [name for name in job.needs if "/" in name or importlib.util.find_spec(name) is None]
    if shutil.which(job.command[0]):
        return missing
    return [*missing, job.command[0]]


def run_job(job: Job, gpu: str, ends: float, threads: int) -> Row:
    """Run a job on one GPU, or on all if it says so, and judge it.

    A job that takes too long is killed with its processes. ``threads``: of compiled code on the CPU, unless the caller has
    chosen.
    """
    missing = missing_of(job)
    began = time.monotonic()
    if missing:
        return Row(job.stage, job.name, NOT_RUN, 0.0, f"missing: {', '.join(missing)}")
    left = min(job.seconds, ends - began)
    if left <= 0:
        return Row(job.stage, job.name, FAILED, 0.0, "no time was left")
    log = OUT / f"{job.stage}-{job.name.replace(' ', '-')}.log"
    environment = {"NUMBA_NUM_THREADS": str(threads)} | os.environ
    if not job.all_gpus:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    with log.open("wb") as output:
        given = {"cwd": ROOT, "env": environment, "start_new_session": True}
        process = subprocess.Popen(job.command, stdout=output, stderr=output, **given)
        try:
            status = process.wait(left)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            # What it has measured until then counts.
            verdict = FAILED
            said = [f"stopped after {left:.0f} s", job.judge(-signal.SIGKILL, OUT)[1]]
            detail = "; ".join(filter(None, said))
        else:
            verdict, detail = job.judge(status, OUT)
    if verdict == FAILED:
        tail = log.read_text(errors="replace").splitlines()[-25:]
        print("\n".join([f"-- the end of {log}", *tail, "--"]), flush=True)
    row = Row(job.stage, job.name, verdict, round(time.monotonic() - began, 1), detail)
    print(f"{row.stage}: {row.name}: {row.verdict}, {row.seconds:.0f} s, {row.detail}", flush=True)
    return row


def run_jobs(jobs: list[Job], gpus: list[str], at_once: int, ends: float) -> list[Row]:
    """Run the jobs of most stages side by side, and then those of ``ALONE`` one at a time."""
    rows = []
    alone = [job for job in jobs if job.stage in ALONE]
    shared = [job for job in jobs if job.stage not in ALONE]
    before = ends - sum(job.seconds for job in alone) if shared else ends
    for own, most, until in ((shared, at_once, before), (alone, 1, ends)):
        threads = max(2, machine()["cores"] // most)
        run = partial(run_job, ends=until, threads=threads)
        with ThreadPoolExecutor(most) as pool:
            rows += pool.map(run, own, itertools.cycle(gpus))
    return rows


def count_gpus() -> tuple[int, str]:
    """Return the number of GPUs that CuPy finds, and why there is none."""
    code = "import cupy; assert int(cupy.arange(9).sum()) == 36; print(cupy.cuda.runtime.getDeviceCount())"
    found = doctor.probe("CuPy", code, doctor.how_to_install("cuda13"))
    if found.works:
        return int(found.detail), ""
    card = doctor.gpus()[0]
    return 0, f"CuPy: {found.detail} ({found.advice})" if card.works else card.detail


def print_works(works: list[dict]) -> None:
    rows = []
    for work in works:
        numbers = [work[key] for key in ("ms", "recorded_ms", "ratio", "cugraph_ms")]
        verdict = work["verdict"]
        if verdict == "information":
            verdict = f"recorded on {work['recorded_on']}"
        rows.append([work["work"], *map(number, numbers), verdict])
    if rows:
        print(f"\n{table(['work', 'ms', 'recorded', 'ratio', 'cuGraph', ''], rows)}")


def print_stages(rows: list[Row]) -> None:
    verdicts = (PASSED, FAILED, NOT_RUN)
    counted = []
    for stage, group in itertools.groupby(rows, lambda row: row.stage):
        own = list(group)
        counts = [sum(row.verdict == verdict for row in own) for verdict in verdicts]
        seconds = sum(row.seconds for row in own)
        counted.append([stage, *map(str, counts), f"{seconds:.0f}"])
    print(f"\n{table(['stage', *verdicts, 'seconds of processes'], counted)}")
    for row in rows:
        if row.verdict != PASSED:
            print(f"{row.verdict}: {row.stage}, {row.name}: {row.detail}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="check.sh --gpu", description="Check results and speed on the GPUs of a machine."
    )
    parser.add_argument(
        "stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; default: all but scale"
    )
    parser.add_argument(
        "--seconds", type=float, default=585.0, help="stop what still runs after this time"
    )
    parser.add_argument(
        "--tool",
        nargs="+",
        choices=TOOLS,
        default=list(TOOLS[:2]),
        help="tools of compute-sanitizer",
    )
    parser.add_argument(
        "--scale-seconds", type=float, default=SCALE_SECONDS, help="time for the stage scale"
    )
    parser.add_argument("-k", help="an expression that selects tests")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also exhaustive tests, which take longer than ten minutes",
    )
    options = parser.parse_args(arguments)
    unknown = [stage for stage in options.stages if stage not in STAGES]
    if unknown:
        parser.error(f"no stage {unknown[0]!r}; these are: {', '.join(STAGES)}")
    options.works = []
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    began = time.monotonic()
    n_gpus, reason = count_gpus()
    if not n_gpus:
        print(f"There is no GPU to check: {reason}.", file=sys.stderr)
        return 2
    here = machine()
    print(
        f"{n_gpus} GPU, {here['gpu']}, driver {here['driver']}, {here['cores']} cores, {sys.executable}",
        flush=True,
    )
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    jobs = [
        job
        for stage in STAGES
        if stage in (options.stages or set(STAGES).difference(ONLY_IF_NAMED))
        for job in JOBS[stage](options)
    ]
    # Processes use one GPU each, in turns: of those that the caller has chosen, if any.
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    gpus = chosen.split(",") if chosen else [str(gpu) for gpu in range(n_gpus)]
    at_once = max(1, min(MAX_PER_GPU * n_gpus, here["cores"] - 3))
    rows = run_jobs(jobs, gpus, at_once, began + options.seconds)
    print_works(options.works)
    print_stages(rows)
    verdicts = {row.verdict for row in rows}
    is_failed = FAILED in verdicts or PASSED not in verdicts
    seconds = round(time.monotonic() - began, 1)
    record = {
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": here,
        "gpus": n_gpus,
        "seconds": seconds,
        "passed": not is_failed,
        "tolerance": TOLERANCE,
        "works": options.works,
        "rows": [asdict(row) for row in rows],
    }
    OUT.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(
        f"\n{FAILED if is_failed else 'Nothing failed'} after {seconds:.0f} s; the record is {OUT.with_suffix('.json')}"
    )
    return int(is_failed)


if __name__ == "__main__":
    sys.exit(run_pytest(sys.argv[2:]) if sys.argv[1:2] == ["--pytest"] else main(sys.argv[1:]))
