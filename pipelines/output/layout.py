"""Which sources are in which part file: batches of one size, and with ``--partition-by`` of one
value of a column each.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from urllib.parse import unquote

from kepler_traverse.kinds.result_kinds import ResultKind

from .schemas import OUTPUT_SCHEMAS

PARTITION = r"[^/=._][^/=]*=[^/]+"  # "zone=North": a folder of parts, named by column and value
PARTITION_NAME = re.compile(PARTITION)
# "part-000012.parquet", or "zone=North/part-000012.arrow"; the group is the number
_PART = re.compile(rf"(?:{PARTITION}/)?part-(\d{{6}})\.(?:parquet|arrow)")
# What Hive escapes in names of folders, as %XX.
_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def part_number(name: str) -> int | None:
    """Return the number of a part file from its name; None if it is not the name of a part file."""
    match = _PART.fullmatch(name)
    return int(match[1]) if match else None


def part_order(name: str) -> tuple[int, str]:
    """Return the key by which names of part files are sorted: the number of the part, 0 if the name
    is none of a part file, then the name.
    """
    return part_number(name) or 0, name


def partition_name(column: str, value: object) -> str:
    """Return the name of a partition: the folder of the parts whose sources have ``value`` in the
    ``column`` of their table, as Hive names it.
    """

    def escape(text: str) -> str:
        """Replace characters that Hive has in no name."""
        return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", text)

    return f"{escape(column)}={escape(str(value))}"


@dataclass(frozen=True)
class Layout:
    """The parts of a run, and what they have in common."""

    result: str = "distances"  # name of the output schema, stored in each part with its description
    # Sources per part; the last part of the run, or of each partition, may have fewer.
    batch_size: int = 1
    # Number of sources by the name of the folder of their parts, in the order of the parts. Without
    # partitions the key is "", and the number is that of all sources.
    partitions: Mapping[str, int] = field(default_factory=dict)
    # Order of the rows of a part: "source", as the sources come, or "distance", the smallest first.
    sort: str = "source"
    run: str = ""  # fingerprint of the run, stored in each part

    @property
    def kind(self) -> ResultKind:
        """The result kind, with its columns and its file format."""
        return OUTPUT_SCHEMAS[self.result]

    @cached_property
    def _folders(self) -> list[str]:
        """The folders of the partitions, in the order of their parts."""
        return list(self.partitions)

    @cached_property
    def _ends(self) -> list[int]:
        """For each partition the number of the part that follows its last one, ascending.

        A partition has its sources divided by the batch size, rounded up, as parts.
        """
        return list(accumulate(-(-count // self.batch_size) for count in self.partitions.values()))

    @property
    def n_parts(self) -> int:
        """Number of parts of the run."""
        return self._ends[-1] if self._ends else 0

    def has(self, name: str) -> bool:
        """Whether a part file of the run has this name."""
        number = part_number(name)
        return number is not None and number < self.n_parts and name == self.name(number)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield for each part where its sources begin and end in the list of all sources.

        The end is exclusive. A part has sources of one partition alone.
        """
        begin = 0
        for count in self.partitions.values():
            end = begin + count
            for first in range(begin, end, self.batch_size):
                yield first, min(first + self.batch_size, end)
            begin = end

    def folder(self, number: int) -> str:
        """Return the folder of the part ``number``, with a slash at its end; ``""`` without
        partitions.
        """
        if len(self._folders) > 1:
            # The first partition that ends behind this part has it.
            name = self._folders[bisect_right(self._ends, number)]
        else:  # of one partition, or of none, whose ends need not be counted
            name = "".join(self._folders)
        return f"{name}/" if name else ""

    def name(self, number: int) -> str:
        """Return the name of a part file in the folder of the run."""
        return self.folder(number) + part_name(number, self.result)

    def partition_values(self) -> tuple[str, list[str]]:
        """Return the name of the column of the partitions, and the value of each, as text, in
        order; ``""`` and an empty list without partitions.
        """
        folders = [name for name in self.partitions if name]
        if not folders:
            return "", []
        column = folders[0].partition("=")[0]  # all of them have the same one
        return unquote(column), [unquote(name.partition("=")[2]) for name in folders]

    def names(self) -> list[str]:
        """Return the names of all part files, in their order."""
        return [self.name(number) for number in range(self.n_parts)]


def part_name(number: int, result: str = "distances") -> str:
    """Return the name of a part file without its partition."""
    return f"part-{number:06d}.{OUTPUT_SCHEMAS[result].suffix}"
