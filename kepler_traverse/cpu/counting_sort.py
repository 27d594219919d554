"""Sorting by small whole numbers, in a time that is proportional to their number."""

from __future__ import annotations

import numpy as np

from .compiled import njit


@njit(cache=True, nogil=True)
def stable_order(keys, n):
    """Return the positions of ``keys`` in ascending order of the keys, and where the positions of
    each key begin in this order; both int64. Keys [1, 0, 1] and n = 2 give [1, 0, 2] and [0, 1, 3].

    ``keys`` are integers from 0 to ``n - 1``, of shape (k,). The first result has shape (k,);
    positions of equal keys ascend. The second one has shape (n + 1,), and ends with k.
    """
    # Count each key one place further, so that the running sum gives where each key begins.
    offsets = np.zeros(n + 1, np.int64)
    for i in range(keys.size):
        offsets[keys[i] + 1] += 1
    for key in range(n):
        offsets[key + 1] += offsets[key]
    following = offsets[:-1].copy()  # where the next position of each key is written
    order = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        key = keys[i]
        order[following[key]] = i
        following[key] += 1
    return order, offsets
