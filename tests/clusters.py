"""A Dask cluster for tests: what exists already before a job comes."""

from __future__ import annotations

from contextlib import contextmanager

from distributed import LocalCluster

from pipelines.cluster import pinned


@contextmanager
def two_workers():
    """Two workers with nannies, on a scheduler whose dashboard takes a free port."""
    with (
        pinned(),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster
