"""Shards: processes that share a run without a scheduler. Each takes every n-th batch of the same
plan.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """Number ``index``, from 0, of ``count`` processes."""

    index: int
    count: int

    def __str__(self) -> str:
        """Return the shard as settings and commits name it: I/N."""
        return f"{self.index}/{self.count}"

    def parts(self, until: int) -> range:
        """Return the parts of this shard below a number."""
        return range(self.index, until, self.count)
