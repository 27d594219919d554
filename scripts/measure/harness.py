"""Measures the works of a suite: results are compared before anything is timed, and calls are repeated in turn.

All peers of a work run once; a result that differs ends the program. Then they run in turn, in both orders, so that a
change of the machine's speed meets all of them. The log has a line per work and peer, with the median of the repeats, the
least, and the spread: the distance of the quartiles, divided by the median.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from scripts.measure.environment import ROOT, forget_peak, memory
from scripts.measure.log import Log
from scripts.measure.work import Call, Inputs, Timed, Work, here

KEY = ("suite", "graph", "work", "peer", "device")
# A suite is a module of scripts/bench that names the packages whose versions are recorded.
SUITES = {
    path.stem: f"scripts.bench.{path.stem}"
    for path in sorted((ROOT / "scripts" / "bench").glob("*.py"))
    if "\nPACKAGES = " in path.read_text(encoding="utf-8")
} | {name: f"scripts.{name}.suite" for name in ("papers", "regret")}
# Reasons why a peer has no time: its package is not installed, it has no such call, or it takes too long.
LEFT_OUT = (ModuleNotFoundError, NotImplementedError, subprocess.TimeoutExpired)


class DifferentResultsError(SystemExit):
    """The results of two peers differ, so that nothing is timed."""


def suite_of(name: str) -> ModuleType:
    return import_module(SUITES[name])


def works_of(suite: ModuleType, inputs: Inputs) -> Iterator[Work]:
    """Yield the works of a suite: its ``WORKS``, or what ``works(inputs)`` yields where they depend on the device."""
    yield from suite.works(inputs) if hasattr(suite, "works") else suite.WORKS


def summary_of(seconds: Sequence[float]) -> dict:
    """Return the median of the repeats, the least, the spread (None of fewer than three), and their number."""
    median = statistics.median(seconds)
    spread = None
    if len(seconds) >= 3:
        low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
        spread = round((high - low) / median, 4)
    return {
        "median": rounded(median),
        "least": rounded(min(seconds)),
        "spread": spread,
        "repeats": len(seconds),
    }


def rounded(value: float) -> float:
    """Return a number of four digits."""
    return float(f"{value:.4g}")


def is_left(suite: str, work: Work, inputs: Inputs, log: Log) -> bool:
    """Whether a peer of a work has no line yet."""
    keys = {(suite, work.graph, work.name, peer, inputs.device) for peer in work.peers}
    return not keys <= log.known


class LatestCase:
    """The case of the latest works, which is freed before another one is made."""

    def __init__(self) -> None:
        self._made = None
        self._case = None

    def case_of(self, work: Work, inputs: Inputs) -> Any:
        make = partial(work.case, inputs)
        made = make.func, make.args, make.keywords
        if made != self._made:
            self._made = None
            self._case = None
            self._case = make()
            self._made = made
        return self._case


LATEST = LatestCase()


def measure(suite: str, work: Work, inputs: Inputs, log: Log) -> None:
    """Compare and time the peers of a work, and write their lines."""
    about = {"suite": suite, "graph": work.graph, "work": work.name, "device": inputs.device}
    case = None if work.in_a_process else LATEST.case_of(work, inputs)
    calls = {}
    first = {}
    for name in work.peers:
        try:
            calls[name] = call_of(suite, work, name, case, inputs)
            first[name] = clock_of(work)(calls[name])
        except LEFT_OUT as reason:
            calls.pop(name, None)
            log.write("left", **about, peer=name, **work.peer(name).facts, why=str(reason))
    compared = [name for name in first if work.peer(name).is_compared]
    for name in compared[1:]:
        wrong = work.check(first[compared[0]].found, first[name].found)
        if wrong:
            raise DifferentResultsError(f"{work.graph}, {work.name}: {name}: {wrong}")
    facts = {} if case is None else work.facts(case)
    for name, times in repeated(work, calls, first).items():
        peer = work.peer(name)
        line = summary_of([each.seconds for each in times]) | more_of(work, times)
        size = {"size": peer.size or work.size}
        log.write("time", **about, peer=name, **{**size, **facts, **peer.facts, **line})
        print(
            f"{log.spent():6.0f} s: {work.graph}, {work.name}: {name} {line['least']} s", flush=True
        )


def clock_of(work: Work) -> Callable[[Call], Timed]:
    if work.in_a_process:
        return here
    return work.clock


def call_of(suite: str, work: Work, name: str, case: Any, inputs: Inputs) -> Call:
    if work.in_a_process:
        return partial(in_a_process, suite, work, name, inputs)
    return work.peer(name).prepare(case)


def repeated(
    work: Work, calls: Mapping[str, Call], first: Mapping[str, Timed]
) -> dict[str, list[Timed]]:
    """Return the times of all rounds; calls that are long are not repeated, but for the first one, which has compiled."""
    clock = clock_of(work)
    names = list(calls)
    if sum(each.seconds for each in first.values()) > work.repeats.seconds:
        again = {} if work.in_a_process else {names[0]: clock(calls[names[0]])}
        return {name: [again.get(name, each)] for name, each in first.items()}
    times = {name: [] for name in names}
    spent = 0.0
    for repeat in range(work.repeats.most):
        if spent > work.repeats.seconds:
            break
        for name in names if repeat % 2 == 0 else names[::-1]:
            times[name].append(clock(calls[name]))
            spent += times[name][-1].seconds
    return times


def more_of(work: Work, times: list[Timed]) -> dict:
    """Return one figure of each of the others of some repeats; texts and whole numbers as they are."""
    found = {}
    for name, value in times[0].more.items():
        if isinstance(value, float):
            found[name] = rounded(work.figure([each.more[name] for each in times]))
        else:
            found[name] = value
    return found


# --- processes


def in_a_process(suite: str, work: Work, name: str, inputs: Inputs) -> Timed:
    """Make a call in a process of its own; ModuleNotFoundError: its package is not installed."""
    given = ["--device", inputs.device, "--seed", str(inputs.seed), *inputs.settings]
    if inputs.graphs is not None:
        given += ["--graphs", str(inputs.graphs)]
    command = [sys.executable, "-m", "scripts.measure", "one", suite, work.graph, work.name, name]
    cores = work.peer(name).cores
    threads = {key: str(cores) for key in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS") if cores}
    allowed = sorted(os.sched_getaffinity(0))[: cores or None]
    done = subprocess.run(
        [*command, *given],
        cwd=ROOT,
        env=os.environ | dict(work.environment) | threads,
        capture_output=True,
        text=True,
        timeout=work.limit,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        if last.startswith("ModuleNotFoundError"):
            raise ModuleNotFoundError(last)
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return Timed(*json.loads(done.stdout.splitlines()[-1]))


def measure_one(work: Work, name: str, inputs: Inputs) -> Timed:
    """Make a call in this process. Its peak of memory is what exceeds that before the call is prepared."""
    work.warm_up(name)
    case = work.case(inputs)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    forget_peak()
    before = memory("VmRSS")
    found, seconds, more = work.clock(work.peer(name).prepare(case))
    peak = memory("VmHWM") - before
    return Timed(
        found,
        seconds,
        {"peak_bytes": peak, **more, **work.facts(case)},
    )


def run_command(command: Sequence[Any], **options: Any) -> str:
    """Run a command and return its output; end this program if it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
