"""Jobs that run from the command line; Dask and configuration files live here and only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import JobFailedError, JobResult, run_job

__all__ = ["JobFailedError", "JobResult", "run_job"]


def __getattr__(name: str) -> Any:
    # On first use, since programs of this package begin with --help, which needs none of it.
    if name in __all__:
        from . import job

        return getattr(job, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
