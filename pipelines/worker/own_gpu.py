"""The GPU of a worker process of the job's own: opened early, limited, and near the cores that use
it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from kepler_traverse import _uninterrupted, cuda

from ..scheduling.gpu_pool import POOL_SHARE


def begin_to_open() -> threading.Thread:
    """Start a thread that makes the CUDA context of the GPU, and return it.

    This takes long, so it begins while the driver still reads the graph. The caller joins the
    thread before it uses the GPU.
    """
    return _uninterrupted.start(_open, "kepler-gpu")


def _open() -> None:
    """Make the context of the GPU.

    An error is suppressed here, also if there is no GPU: the first use of the GPU raises it again.
    """
    with contextlib.suppress(Exception):
        if cuda.available():
            cuda.cp.cuda.runtime.free(0)  # the first call of CUDA makes the context


def limit_process() -> None:
    """Limit the memory that CuPy's pool takes of the GPU to ``POOL_SHARE`` of it, and bind this
    process to the cores that are closest to the GPU.
    """
    cuda.cp.get_default_memory_pool().set_limit(fraction=POOL_SHARE)
    # Where the system does not say which cores are near, the process keeps all of them.
    with contextlib.suppress(OSError, ValueError):
        bus = cuda.cp.cuda.runtime.deviceGetPCIBusId(cuda.cp.cuda.runtime.getDevice())
        text = Path(f"/sys/bus/pci/devices/{bus.lower()}/local_cpulist").read_text().strip()
        near_cores = parse_cores(text) & os.sched_getaffinity(0)
        if near_cores:
            os.sched_setaffinity(0, near_cores)


def parse_cores(text: str) -> set[int]:
    """Return the numbers of a list of cores of Linux: ``0-3,8`` gives 0, 1, 2, 3 and 8. Raises
    ValueError for other text.
    """
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return cores
