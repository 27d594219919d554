"""What all measurements share: the facts of their records, and a clock."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from pipelines.run.environment import versions
from scripts.pages import ROOT as ROOT

PYTEST = (sys.executable, "-m", "pytest", "-q")


def about(packages: Iterable[str], command: str = "", at: str | None = None) -> dict:
    """Return the facts with which a record begins: date, commit, machine, versions of packages, and the command.

    ``at`` is the commit of a copy of the code without its repository.
    """
    facts = {
        "date": date.today().isoformat(),
        "commit": at or commit(),
        "machine": machine(),
        "versions": versions(packages),
    }
    if command:
        facts["command"] = without_places(command)
    return facts


def without_places(command: str) -> str:
    """Return a command line as it is typed elsewhere: without the folders of a machine, and the commit of a copy."""
    command = re.sub(r" --commit \S+", "", command)
    for option, stands_for in (("--graphs", "GRAPHS"), ("--output", "FILE")):
        command = re.sub(rf"{option} \S+", f"{option} {stands_for}", command)
    return command


def timed(call: Callable, *arguments: Any) -> tuple[Any, float]:
    """Return what a call returns, and its seconds."""
    began = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - began


def timed_on_gpu(call: Callable) -> tuple[Any, float]:
    """Return what a call returns, and its seconds with all its kernels."""
    wait_for_gpu()
    began = time.perf_counter()
    result = call()
    wait_for_gpu()
    return result, time.perf_counter() - began


def wait_for_gpu() -> None:
    from kepler_traverse.cuda import cp

    cp.cuda.Device().synchronize()


def free_pool() -> None:
    """Give the memory that CuPy keeps back to the GPU."""
    from kepler_traverse.cuda import cp

    cp.get_default_memory_pool().free_all_blocks()


def memory(key: str) -> int:
    """Return an entry of this process's status in bytes: VmRSS, or VmHWM, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def forget_peak() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def machine() -> dict:
    """Return this machine as records have it."""
    info = Path("/proc/cpuinfo")
    name = None
    if info.exists():
        name = re.search(r"model name\s*: (.*)", info.read_text())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = {
        "cpu": name[1].strip() if name else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30),
        "gpu": None,
        "driver": None,
    }
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return found  # no GPU here
    gpu, driver = done.stdout.splitlines()[0].split(",")
    return found | {"gpu": gpu.strip(), "driver": driver.strip()}


def commit() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
        )
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"
