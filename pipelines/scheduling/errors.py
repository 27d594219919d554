"""Errors of the workers as a whole; this module imports no Dask, since a run in one process has
none.
"""

from __future__ import annotations

from kepler_traverse.errors import KeplerError


class ClusterError(KeplerError):
    """The workers or the scheduler are gone, or do not come up."""


class ProcessUnusableError(ClusterError):
    """This process cannot compute any longer, and what is left needs another one: its device
    failed, or a batch hangs.
    """
