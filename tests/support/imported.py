"""Imports what a process of the job imports before its first batch, for processes that are forked from one that has."""

import fsspec.implementations.local  # noqa: F401
import pandas  # noqa: F401
import pyarrow.dataset  # noqa: F401
import pydantic.type_adapter  # noqa: F401
from numba.core.registry import cpu_target

import pipelines.run.driver  # noqa: F401

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
