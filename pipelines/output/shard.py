"""Shards: processes that share a run without a scheduler. Each takes every n-th batch of the same
plan.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """One of the processes that share a run."""

    index: int  # number of this process, from 0 to below ``count``
    count: int  # number of processes

    def __str__(self) -> str:
        """Return the shard as settings and commits name it: I/N."""
        return f"{self.index}/{self.count}"

    def parts(self, until: int) -> range:
        """Return the numbers of the parts of this shard that are below ``until``: every n-th."""
        return range(self.index, until, self.count)
