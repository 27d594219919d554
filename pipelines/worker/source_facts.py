"""Facts of each source that a table of sources has: its group."""

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
