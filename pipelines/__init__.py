"""Jobs that run from the command line; Dask and configuration files live here and only here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import JobFailedError, JobResult, run_job

__all__ = ["JobFailedError", "JobResult", "run_job"]

if __name__ == "pipelines":  # in a checkout
    import_module("kepler_traverse.pipelines.one_name").name_also_pipelines()


def __getattr__(name: str) -> Any:
    """Return ``run_job`` or one of its classes, imported on first use.

    The programs of this package do not need them for --help, which is therefore answered faster.
    """
    if name in __all__:
        try:
            from . import job
        except ModuleNotFoundError as error:
            from kepler_traverse.errors import how_to_install

            advice = how_to_install("job")
            raise ImportError(
                f"{name} needs {error.name}, which is not installed: {advice}", name=error.name
            ) from error
        return getattr(job, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
