"""Weights from a documented hash of each edge, so that a graph without weights has the same ones everywhere."""

from __future__ import annotations

import numpy as np

MAX_WEIGHT = 255


def hashed_weights(src: np.ndarray, dst: np.ndarray, directed: bool) -> np.ndarray:
    """Return weights 1 to 255: ``1 + mix(mix(a) + b) mod 255`` in arithmetic modulo 2^64.

    ``mix`` is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). (a, b) are the ids (src, dst) of a directed
    edge, and (min, max) of the two for an undirected one, so that both directions weigh the same.

    ``src, dst``: ids of the edges' ends (integers of shape (n,)); negative ones count as their two's complement.

    >>> hashed_weights(np.array([3, 5]), np.array([5, 3]), directed=False).tolist()
    [18, 18]
    """
    a, b = (src, dst) if directed else (np.minimum(src, dst), np.maximum(src, dst))
    hashed = _mix(_mix(a.astype(np.int64).astype(np.uint64)) + b.astype(np.int64).astype(np.uint64))
    return (hashed % np.uint64(MAX_WEIGHT)).astype(np.int32) + 1


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
