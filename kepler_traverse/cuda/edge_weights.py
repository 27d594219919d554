"""Weights of an edge list on a GPU, converted and checked; sums and samples of weights. See
edge_weights.cu.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .._arrays import Array
from . import cp
from .compiler import kernel
from .copies import copy_array
from .kernel_spec import make_entries
from .launch import launch

BLOCK = 256
# Partial sums of ``total``, each of one thread. Their number is fixed, so that a sum has the same
# bits on every device.
SUMS = 1 << 15

_FILE = Path(__file__).parent / "kernels" / "edge_weights.cu"
_entry = make_entries(_FILE, BLOCK)
_FROM_INTEGERS = _entry("weights_from_integers")
_CHECK = _entry("weights_check")
_WITHOUT_NEGATIVE_ZEROS = _entry("weights_without_negative_zeros")
_COUNT_NEGATIVE_LOOPS = _entry("weights_count_negative_loops")
_SUM = _entry("weights_sum")
_SAMPLE = _entry("weights_sample")
ENTRIES = (_FROM_INTEGERS, _CHECK, _WITHOUT_NEGATIVE_ZEROS, _COUNT_NEGATIVE_LOOPS, _SUM, _SAMPLE)


def from_integers(integers: Array, dtype: np.dtype) -> Array:
    """Return a copy of ``integers`` in the type ``dtype``, which must hold each exactly. They are
    of any integer type, and below 2^63 in absolute value.
    """
    if integers.dtype == dtype:
        return copy_array(cp.ascontiguousarray(integers))
    integers = cp.ascontiguousarray(integers)
    weights = cp.empty(integers.size, dtype)
    # the type as kernels name it (any_integer.cuh): its size in bytes, negative if it is signed
    type_code = np.int32(-integers.itemsize if integers.dtype.kind == "i" else integers.itemsize)
    launch(
        kernel(_FROM_INTEGERS, np.int32, np.dtype(dtype)),
        integers.size,
        (integers.view(np.uint8), np.int64(integers.size), type_code, weights),
    )
    return weights


def check(weights: Array) -> tuple[int, int, int]:
    """Return the number of float weights that are not finite; the position of the first of them,
    2^63 - 1 if there is none; and the number of negative zeros.
    """
    # A kernel's atomic minimum lowers the second to the first position; the largest number stands
    # for none.
    findings = cp.asarray(np.array([0, np.iinfo(np.int64).max, 0]))
    launch(
        kernel(_CHECK, np.int32, weights.dtype),
        weights.size,
        (weights, np.int64(weights.size), findings),
    )
    n_bad, first, n_zeros = findings.get().tolist()
    return n_bad, first, n_zeros


def without_negative_zeros(weights: Array) -> Array:
    """Return a copy of float weights in which each -0.0 is 0.0."""
    cleared = cp.empty(weights.size, weights.dtype)
    args = (weights, np.int64(weights.size), cleared)
    launch(kernel(_WITHOUT_NEGATIVE_ZEROS, np.int32, weights.dtype), weights.size, args)
    return cleared


def count_negative_loops(src: Array, dst: Array, weights: Array) -> int:
    """Return the number of edges from a vertex to itself with a weight below zero."""
    counter = cp.zeros(1, np.int64)
    src, dst, weights = (cp.ascontiguousarray(column) for column in (src, dst, weights))
    args = (src, dst, weights, np.int64(weights.size), counter)
    launch(kernel(_COUNT_NEGATIVE_LOOPS, src.dtype, weights.dtype), weights.size, args)
    return int(counter.get()[0])


def total(weights: Array) -> float:
    """Return the sum of the weights in float64, with the same bits in every run and on every
    device; infinite if float64 cannot hold it.
    """
    # Each thread makes one partial sum. The host adds these up exactly, and rounds once.
    sums = cp.empty(min(SUMS, weights.size), np.float64)
    args = (weights, np.int64(weights.size), np.int64(sums.size), sums)
    launch(kernel(_SUM, np.int32, weights.dtype), sums.size, args)
    try:
        return math.fsum(sums.get().tolist())
    except OverflowError:
        return math.inf


def sample(weights: Array, step: int) -> np.ndarray:
    """Return every ``step``-th weight from the first on, as a NumPy array."""
    samples = cp.empty(-(-weights.size // step), weights.dtype)
    args = (weights, np.int64(step), np.int64(samples.size), samples)
    launch(kernel(_SAMPLE, np.int32, weights.dtype), samples.size, args)
    return samples.get()
