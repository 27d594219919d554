"""A Dask cluster for tests, which exists before a job starts."""

from __future__ import annotations

import logging
from contextlib import contextmanager

from distributed import LocalCluster

from pipelines.scheduling.cluster import pinned


@contextmanager
def threads_of_this_process(**options):
    """A scheduler and workers that are threads of this process; Dask's settings are a user's."""
    here = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(processes=False, threads_per_worker=1, **here, **options) as cluster:
        yield cluster


@contextmanager
def two_workers():
    """Two workers with nannies, on a scheduler whose dashboard takes a free port."""
    with (
        pinned(),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster
