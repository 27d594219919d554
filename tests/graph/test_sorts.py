"""Sorts of integers of short ranges compared with NumPy's."""

import numpy as np
import pytest

from kepler_traverse._arrays import sort_distinct
from kepler_traverse.cpu.counting_sort import stable_order


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("n_keys", "n"), [(0, 0), (0, 3), (1, 1), (1000, 7), (1000, 5000)])
def test_counting_sort_is_stable(kind, n_keys, n):
    keys = np.random.default_rng(n).integers(0, max(n, 1), n_keys).astype(kind)
    order, offsets = stable_order(keys, n)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert np.array_equal(offsets, np.searchsorted(keys[order], np.arange(n + 1)))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("where", ["least", "middle", "largest", "both"])
def test_distinct_integers_are_those_of_numpy(kind, where):
    limits = np.iinfo(kind)
    middle = (limits.min + limits.max) // 2
    begins = {
        "least": [limits.min],
        "middle": [middle],
        "largest": [limits.max - 60],
        "both": [limits.min, limits.max - 60],
    }
    offset = np.random.default_rng(1).integers(0, 60, (2, 50))
    numbers = np.array([[begin + int(i) for i in offset.ravel()] for begin in begins[where]], kind)
    found = sort_distinct(numbers)
    assert found.dtype == kind
    assert np.array_equal(found, np.unique(numbers))


def test_distinct_integers_of_none():
    assert sort_distinct(np.zeros(0, np.int64)).size == 0
