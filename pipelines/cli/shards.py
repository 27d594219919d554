"""The option ``--shard``: which of several processes that share a run this one is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..output.shard import Shard
from .options import UsageError

# "0/8", "auto/8" or "auto"
_SHARD = re.compile(r"(?P<index>auto|\d{1,7})(?:/(?P<count>\d{1,7}))?")
_MAX_DIGITS = 18  # of a number in a variable of the environment
# variables of the environment, of Slurm and of Kubernetes, with the number of a process
_SLURM_TASK = "SLURM_ARRAY_TASK_ID"
_KUBERNETES_INDEX = "JOB_COMPLETION_INDEX"


def parse_shard(text: str | None, environment: Mapping[str, str]) -> Shard | None:
    """Return the shard that a value of ``--shard`` names: number I of N processes that share a run;
    None if ``text`` is None.

    The value is I/N, auto/N or auto. What it leaves open is taken from ``environment``, the
    variables that Slurm or Kubernetes set. It may be empty for a value I/N, as ``merge_settings``
    stores it. UsageError: the value is of no such form, or a variable is missing.
    """
    if text is None:
        return None
    match = _SHARD.fullmatch(text)
    # only auto may stand without a count
    if match is None or (match["count"] is None and match["index"] != "auto"):
        raise UsageError(
            f"--shard {text}: it is I/N, such as 0/8 for the first of eight; or auto/N, or auto"
        )
    index = match["index"]
    count = match["count"]
    if index == "auto":
        index, count = _from_environment(text, count, environment)
    shard = Shard(int(index), int(count))
    if shard.index >= shard.count:
        raise UsageError(
            f"--shard {text}: there is no shard {shard.index} of {shard.count}; they count from 0"
        )
    return shard


def _from_environment(
    text: str, count: str | None, environment: Mapping[str, str]
) -> tuple[str, str]:
    """Return the index and the count of a shard, two texts of digits, from variables of the
    environment.

    ``text`` is the value of ``--shard``, for errors. ``count`` is N of ``auto/N``, and None for
    ``auto``, which takes the count from the environment, too.
    """
    index = environment.get(_SLURM_TASK) or environment.get(_KUBERNETES_INDEX)
    if index is None or not _is_number(index):
        raise UsageError(
            f"--shard {text}: neither {_SLURM_TASK} nor {_KUBERNETES_INDEX} is set to a number; "
            "give --shard I/N"
        )
    if count is not None:
        return index, count

    # Only Slurm says how many tasks there are. They may begin at any number and skip some.
    n_tasks = None
    if _SLURM_TASK in environment:
        n_tasks = _array_fact(environment, "COUNT")
        first = _array_fact(environment, "MIN", int(index))
        last = _array_fact(environment, "MAX", int(index))
        step = _array_fact(environment, "STEP", 1)
    if n_tasks is None:
        raise UsageError(
            f"--shard auto: {_KUBERNETES_INDEX} says which shard this is, and not "
            "of how many; give --shard auto/N"
        )
    return _find_position(int(index), n_tasks, first, last, step), str(n_tasks)


def _array_fact(environment: Mapping[str, str], fact: str, default: Any = None) -> Any:
    """Return the number in the variable ``SLURM_ARRAY_TASK_FACT``, by which Slurm describes an
    array of tasks, or ``default`` if it is not set. UsageError: it is no number.
    """
    name = f"SLURM_ARRAY_TASK_{fact}"
    value = environment.get(name)
    if not value:
        return default
    if not _is_number(value):
        raise UsageError(
            f"--shard auto: {name} is {value[:100]!r}, which is no number; give --shard I/N"
        )
    return int(value)


def _is_number(text: str) -> bool:
    """Return whether a text consists of the digits 0 to 9, and not of too many."""
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _find_position(index: int, count: int, first: int, last: int, step: int) -> str:
    """Return the position, from 0 and as a text, of task ``index`` among the ``count`` tasks of its
    array. UsageError: these are not numbered from ``first`` to ``last`` by ``step``.
    """
    # ``not step`` comes before the division by it
    if last - first != step * (count - 1) or not step or (index - first) % step:
        raise UsageError(
            f"--shard auto: the {count} tasks of the array are not evenly "
            f"numbered from {first} to {last}; give --shard I/N"
        )
    return str((index - first) // step)
