"""Where the batches run: an own cluster on this machine, or a scheduler that exists already, as one context manager."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

import dask
from distributed import Client, LocalCluster

from kepler_traverse.errors import DeviceError, InputError

HOST = "127.0.0.1"
_PRELOAD = ["pipelines.worker"]  # its dask_setup
CONNECT_SECONDS = 30
NO_WORKERS_SECONDS = 60  # without any worker for so long, a run gives up
POOL_SHARE = 0.9  # of a GPU's memory; the rest is for CUDA itself
_MEBIBYTE = 2**20

# Every setting of Dask that a run relies on, so that a user's own configuration cannot change what it does.
_PINNED = {
    "distributed.scheduler.allowed-failures": 0,  # the driver counts the deaths that a batch has met
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "1 hour",  # kernels hold the interpreter, and so the heartbeat, for a traversal
    "distributed.scheduler.no-workers-timeout": f"{NO_WORKERS_SECONDS} s",
    "distributed.scheduler.idle-timeout": None,
    "distributed.scheduler.preload": [],
    "distributed.worker.preload": [],
    "distributed.nanny.preload": [],
    "distributed.worker.lifetime.duration": None,
    # The graph is mapped and shared, which Dask would count once a worker; sizing.py keeps the run within memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.tick.limit": "1 hour",
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS} s",
}


@contextlib.contextmanager
def cluster_for(settings, device: str, n_workers: int, bytes_a_gpu: int) -> Iterator[Client]:
    """Yield a client of the scheduler that the settings name, or of an own cluster, which ends with the block.

    Parameters
    ----------
    settings : Settings
    device : {"cpu", "cuda"}
    n_workers : int
        Of an own cluster.
    bytes_a_gpu : int
        First size of each GPU's memory pool.

    Raises
    ------
    InputError
        No scheduler answers there, or it has no workers.
    """
    with pinned(settings.debug):
        if settings.scheduler_address or settings.scheduler_file:
            with _existing(settings) as client:
                yield client
            return
        make = _gpu_cluster if device == "cuda" else _cpu_cluster
        with (
            make(n_workers, settings.dashboard_address, bytes_a_gpu, settings.debug) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


@contextlib.contextmanager
def pinned(debug: bool = False) -> Iterator[None]:
    """Pin Dask's settings, and silence its log: a worker that dies and comes back is this job's business."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.WARNING if debug else logging.CRITICAL)
    try:
        with dask.config.set(_PINNED):
            yield
    finally:
        logger.setLevel(before)


def workers_of(settings) -> int:
    """Count the workers of the scheduler that the settings name."""
    with pinned(), _existing(settings) as client:
        return len(client.nthreads())


@contextlib.contextmanager
def _existing(settings) -> Iterator[Client]:
    where = settings.scheduler_address or settings.scheduler_file
    if settings.scheduler_file and not os.path.exists(settings.scheduler_file):
        raise InputError(f"{where}: there is no such scheduler file; start a scheduler with --scheduler-file first")
    how = {"scheduler_file": where} if settings.scheduler_file else {"address": where}
    try:
        client = Client(**how, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {where}: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(f"the Dask scheduler at {where} has no workers; start some and try again") from None
        yield client


def _cpu_cluster(n_workers: int, dashboard: str, _bytes: int, debug: bool) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host=HOST,
        protocol="tcp",
        dashboard_address=dashboard,
        memory_limit=None,
        preload=_PRELOAD,
        silence_logs=logging.WARNING if debug else logging.CRITICAL,
    )


def _gpu_cluster(n_workers: int, dashboard: str, bytes_a_gpu: int, debug: bool) -> LocalCluster:
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        raise DeviceError(
            "device 'cuda' needs dask-cuda to run batches: pip install 'kepler-traverse[cuda13]', or take --device cpu"
        ) from None
    return LocalCUDACluster(
        n_workers=n_workers,
        threads_per_worker=1,
        host=HOST,
        protocol="tcp",
        dashboard_address=dashboard,
        memory_limit=None,
        preload=_PRELOAD,
        # cuDF and CuPy share one pool; it starts at what the plan needs and may grow.
        rmm_pool_size=-(-bytes_a_gpu // _MEBIBYTE) * _MEBIBYTE,
        rmm_maximum_pool_size=POOL_SHARE,
        rmm_allocator_external_lib_list="cupy",
        silence_logs=logging.WARNING if debug else logging.CRITICAL,
    )
