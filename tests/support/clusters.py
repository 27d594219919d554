"""A Dask cluster for tests, which exists before a job starts."""

import logging
import sys
from contextlib import contextmanager

from distributed import LocalCluster

from pipelines.scheduling.cluster import pinned_settings
from tests.support.forks import forked
from tests.support.processes import SILENT, started, wait_until


@contextmanager
def threads_of_this_process(**options):
    """A scheduler and workers that are threads of this process; Dask's settings are a user's."""
    here = {
        "host": "127.0.0.1",
        "protocol": "tcp",
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    with LocalCluster(processes=False, threads_per_worker=1, **here, **options) as cluster:
        yield cluster


@contextmanager
def two_workers():
    """Two workers with nannies, on a scheduler whose dashboard takes a free port."""
    with (
        pinned_settings(),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster


@contextmanager
def dask_program(kind, folder, *words, before=(), **options):
    """A scheduler that has written its address to scheduler.json in the folder, or a worker with one thread and no nanny.

    ``before`` are words of a program that starts it; without them it is forked.
    """
    file = folder / "scheduler.json"
    own = {"scheduler": ["--port", 0], "worker": ["--nthreads", 1, "--no-nanny"]}[kind]
    module = f"distributed.cli.dask_{kind}"
    given = ["--no-dashboard", "--scheduler-file", file, *own, *words]
    if before:
        running = started([*before, sys.executable, "-m", module, *given], **SILENT, **options)
    else:
        running = forked(f"-m {module}", *given, is_silent=True, **options)
    with running as process:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), process)
        yield process
