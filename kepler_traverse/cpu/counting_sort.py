"""Sorting by small whole numbers, in a time that is proportional to their number."""

from __future__ import annotations

import numpy as np

from .compiled import njit


@njit(cache=True, nogil=True)
def stable_order(keys, n):
    """Return the order of keys from 0 to n - 1, in which equal ones stay as they are, and where
    each key begins, both int64.
    """
    offsets = np.zeros(n + 1, np.int64)
    for i in range(keys.size):
        offsets[keys[i] + 1] += 1
    for key in range(n):
        offsets[key + 1] += offsets[key]
    following = offsets[:-1].copy()  # where the next one of each key goes
    order = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        key = keys[i]
        order[following[key]] = i
        following[key] += 1
    return order, offsets
