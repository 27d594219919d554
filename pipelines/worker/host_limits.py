"""The cores and the memory that this process may use: those of the host, or of its container,
whichever is less.

Dask's modules for this take a tenth of a second to import; a run in one process needs no Dask.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_MEMORY_LIMITS = (  # of a container, in bytes: cgroups of version 1 and of version 2
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.soft_limit_in_bytes",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.high",
)


def cpu_count() -> int:
    """Return the number of cores that this process may use, at least 1.

    It is limited by the affinity of the process, and by the quota of CPU time of its container.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for quota, period in _quotas():
        if quota > 0 and period > 0:  # a quota of -1 is none
            cores = min(cores, -(-quota // period))  # rounded up: part of a core counts as one
    return max(1, cores)


def _quotas() -> Iterator[tuple[int, int]]:
    """Yield quota and period of the container's CPU time, in microseconds.

    In each period the container may use CPU time up to the quota. A file that is missing or has
    other content yields nothing. A quota of -1 (cgroups of version 1) is no limit.
    """
    for folder in ("cpuacct,cpu", "cpu,cpuacct"):  # cgroups of version 1
        with contextlib.suppress(OSError, ValueError):
            base = Path("/sys/fs/cgroup") / folder
            yield (
                int((base / "cpu.cfs_quota_us").read_text()),
                int((base / "cpu.cfs_period_us").read_text()),
            )
    with contextlib.suppress(OSError, ValueError):  # of version 2, in lines "0::/folder"
        groups = Path("/proc/self/cgroup").read_text().strip()
        folder = groups.rpartition(":")[2].strip("/")
        quota, period = (Path("/sys/fs/cgroup") / folder / "cpu.max").read_text().split()
        yield int(quota), int(period)  # ValueError for "max", which is no quota


def memory_limit() -> int:
    """Return the bytes of memory that this process may use: those of the host, or the least of the
    limits of its container and of its own resident set.
    """
    size = psutil.virtual_memory().total
    for path in _MEMORY_LIMITS:
        # A limit that is not set has no file, or the text "max", which is no number.
        with contextlib.suppress(OSError, ValueError):
            limit = int(Path(path).read_text())
            if limit > 0:
                size = min(size, limit)
    with contextlib.suppress(ImportError, OSError):  # Windows has no such module
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_RSS)
        if hard_limit > 0:  # -1 is none
            size = min(size, hard_limit)
    return size


CPU_COUNT = cpu_count()
MEMORY_LIMIT = memory_limit()
