"""Columns of the edge list that are summed along paths: ``--along``."""

from __future__ import annotations

import hashlib
import json

import numpy as np


class AlongPaths:
    """What to sum along the paths of pairs.

    Attributes
    ----------
    values : dict of str to int64 or float64 array
        By name, one value per row of the edge list.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AlongPaths) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]

    @property
    def digest(self) -> str:
        """SHA-256 of names and values."""
        found = hashlib.sha256(json.dumps([(name, str(value.dtype)) for name, value in self.values.items()]).encode())
        for value in self.values.values():
            found.update(np.ascontiguousarray(value).data)
        return found.hexdigest()
