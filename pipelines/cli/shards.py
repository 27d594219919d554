"""The option ``--shard``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..output.shard import Shard
from .options import UsageError

_SHARD = re.compile(r"(auto|\d{1,7})(?:/(\d{1,7}))?")
_MAX_DIGITS = 18
_TASK = "SLURM_ARRAY_TASK_ID"
_INDEX = "JOB_COMPLETION_INDEX"


def parse_shard(text: str | None, environment: Mapping[str, str]) -> Shard | None:
    """Return the shard that ``--shard`` names: I/N; auto/N or auto, with the rest from the
    environment.
    """
    if text is None:
        return None
    found = _SHARD.fullmatch(text)
    if found is None or (found[2] is None and found[1] != "auto"):
        raise UsageError(
            f"--shard {text}: it is I/N, such as 0/8 for the first of eight; or auto/N, or auto"
        )
    index = found[1]
    count = found[2]
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
    """Return the index and the count of ``auto`` and ``auto/N``."""
    index = environment.get(_TASK) or environment.get(_INDEX)
    if index is None or not _is_number(index):
        raise UsageError(
            f"--shard {text}: neither {_TASK} nor {_INDEX} is set to a number; give --shard I/N"
        )
    if count is not None:
        return index, count
    array: dict[str, int | None] = {}
    if _TASK in environment:
        array = {each: _array_fact(environment, each) for each in ("COUNT", "MIN", "MAX", "STEP")}
    n_tasks = array.get("COUNT")
    if n_tasks is None:
        raise UsageError(
            f"--shard auto: {_INDEX} says which shard this is, and not "
            "of how many; give --shard auto/N"
        )
    first = array["MIN"]
    last = array["MAX"]
    step = array["STEP"]
    place = _place(
        int(index),
        n_tasks,
        int(index) if first is None else first,
        int(index) if last is None else last,
        1 if step is None else step,
    )
    return place, str(n_tasks)


def _array_fact(environment: Mapping[str, str], fact: str) -> int | None:
    """Return a number that Slurm says of an array of tasks; None if it does not say it."""
    name = f"SLURM_ARRAY_TASK_{fact}"
    value = environment.get(name)
    if not value:
        return None
    if not _is_number(value):
        raise UsageError(
            f"--shard auto: {name} is {value[:100]!r}, which is no number; give --shard I/N"
        )
    return int(value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _place(index: int, count: int, first: int, last: int, step: int) -> str:
    """Return the place of a task among those of its array."""
    if last - first != step * (count - 1) or not step or (index - first) % step:
        raise UsageError(
            f"--shard auto: the {count} tasks of the array are not evenly "
            f"numbered from {first} to {last}; give --shard I/N"
        )
    return str((index - first) // step)
