"""How much of a GPU's memory a run may take, and which GPU a worker of its own cluster has."""

from __future__ import annotations

import os
from pathlib import Path

POOL_SHARE = 0.9  # the rest is for CUDA itself
GPU_OF_WORKER = "KEPLER_GPU_OF_WORKER"  # set in the environment of a worker that has one


def visible_gpus(n_workers: int) -> list[str]:
    """Return the GPU of each worker, as ``CUDA_VISIBLE_DEVICES`` names it.

    These are the first GPUs of that variable, if it is set in this process: fewer than
    ``n_workers`` if it names fewer. If it is not set or empty, they are "0", "1", ... for all
    workers.
    """
    gpus = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if not gpus:
        gpus = [str(number) for number in range(n_workers)]
    return gpus[:n_workers]


def count_gpu_files() -> int:
    """Return the number of GPUs that the system has files of ("/dev/nvidia0"), without asking CUDA;
    0 if there are none.
    """
    return sum(path.name[len("nvidia") :].isdigit() for path in Path("/dev").glob("nvidia*"))
