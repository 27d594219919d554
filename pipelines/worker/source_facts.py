"""Facts of each source that a table of sources has: its groups, and its limit."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


class SourceGroups:
    """The groups of sources; a source may be in several.

    Parameters
    ----------
    labels : list of int or str
        One per row of the table.
    numbers : int64 array
        Vertex number of the source of each row.

    Attributes
    ----------
    labels : list of int or str
        The distinct labels, ascending.
    members : list of int64 arrays
        The distinct vertex numbers of each group, ascending.
    """

    def __init__(self, labels: list[Any], numbers: np.ndarray):
        self.labels = sorted(set(labels))
        place = {label: i for i, label in enumerate(self.labels)}
        own = np.array([place[label] for label in labels], np.int64)
        self.members = [np.unique(numbers[own == i]) for i in range(len(self.labels))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceGroups) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]

    @property
    def digest(self) -> str:
        """SHA-256 of labels and vertex numbers."""
        found = [[label, own.tolist()] for label, own in zip(self.labels, self.members, strict=True)]
        return hashlib.sha256(json.dumps(found).encode()).hexdigest()


class SourceLimits:
    """The largest distance of each source.

    Parameters
    ----------
    numbers : int64 array
        Distinct vertex numbers of the sources, ascending.
    limits : int64 or float64 array of the same length
    """

    def __init__(self, numbers: np.ndarray, limits: np.ndarray):
        self._numbers, self._limits = numbers, limits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceLimits) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]

    @property
    def largest(self) -> Any:
        """The limit of the searches."""
        return self._limits.max().item()

    def of(self, sources: Any) -> list[Any]:
        """Return the limits of some sources, given by their vertex numbers."""
        return self._limits[np.searchsorted(self._numbers, np.asarray(sources, np.int64))].tolist()

    @property
    def digest(self) -> str:
        """SHA-256 of vertex numbers and limits."""
        return hashlib.sha256(json.dumps([self._numbers.tolist(), self._limits.tolist()]).encode()).hexdigest()
