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
    names = (
        "SLURM_ARRAY_TASK_COUNT",
        *(f"SLURM_ARRAY_TASK_{each}" for each in ("MIN", "MAX", "STEP")),
    )
    if _TASK in environment:
        given = {name: environment.get(name) or "" for name in names}
    else:
        given = {}
    for name, value in given.items():
        if value and not _is_number(value):
            raise UsageError(
                f"--shard auto: {name} is {value[:100]!r}, which is no number; give --shard I/N"
            )
    count, first, last, step = (given.get(name, "") for name in names)
    if not count:
        raise UsageError(
            f"--shard auto: {_INDEX} says which shard this is, and not "
            "of how many; give --shard auto/N"
        )
    return _place(
        int(index), int(count), int(first or index), int(last or index), int(step or 1)
    ), count


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
