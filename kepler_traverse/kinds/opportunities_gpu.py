"""Sums of vertex attributes within cutoffs on a GPU, for several sources; see opportunities.cu.

The same results as ``cpu.opportunities``. For k sources, n vertices, distances of b bytes, and a
attributes with c cutoffs, there are 2 launches (1 up to 1,024 vertices, 3 from 2^20 on) for as many
sources as ``SUMS_AT_ONCE`` allows. They read k n b bytes of distances, and k n a 8 bytes of
attributes, which are shared by sources and mostly come from a cache. They write and read 8 a c
bytes per source and reduction block.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from .._arrays import Array, distances_to_keys, flatten_distances
from ..cuda import cp
from ..cuda.compiler import Request, kernel
from ..cuda.kernel_spec import WARP, make_entries
from ..cuda.launch import launch

BLOCK = 256  # threads per block
PIECE = 1024  # values of a reduction block; as many as on a CPU, so that sums have the same bits
SUMS_AT_ONCE = 1 << 23  # sums of reduction blocks that are held at once: 64 MiB

_FILE = Path(__file__).parent / "kernels" / "opportunities.cu"
_CONSTANTS = (("REDUCTION_BLOCK", PIECE), ("HOP_BYTES", 0), ("DECAY", 0))
_entry = make_entries(_FILE, BLOCK, item_threads=WARP, constants=_CONSTANTS)
_REDUCE = _entry("opportunities_reduce_warp")
_FOLD = _entry("opportunities_fold_warp")
ENTRIES = (_REDUCE, _FOLD)


def sums(
    distance: Array,
    bounds: np.ndarray,
    values: Array,
    n_integers: int,
    decay: int,
    parameters: tuple[float, float],
) -> np.ndarray:
    """Return the sums of vertex attributes within cutoffs, int64 of shape (k, n_attributes,
    n_cutoffs), NumPy: integers, or the bits of float64.

    Parameters
    ----------
    distance : CuPy array of shape (k, n_vertices)
        Hops of 1, 2 or 4 bytes, or float32, float64 or int64 distances.
    bounds : array of shape (n_cutoffs,), of the same type
        The largest distance within each cutoff, ascending.
    values : int64 CuPy array of shape (n_attributes, n_vertices)
        The attributes: first those of integers, then the bits of those of floats.
    n_integers : int
        How many attributes are those of integers.
    decay : int
        One of ``NO_DECAY`` to ``POWER`` of ``cpu.opportunities``.
    parameters : tuple of two floats
        The parameters of the decay; 0 where it has none.
    """
    k, n = distance.shape
    # Each source has ``width`` sums, with a word per reduction block on the way. As many sources
    # are taken at once as memory for such words is granted.
    width = len(values) * bounds.size
    at_once = max(1, SUMS_AT_ONCE // max(width * _n_reduction_blocks(n), 1))
    keys = cp.asarray(distances_to_keys(bounds))
    parts = [
        _sum_some_sources(
            distance[first : first + at_once], keys, values, n_integers, decay, parameters
        )
        for first in range(0, k, at_once)
    ]
    return np.concatenate(parts).reshape(k, len(values), bounds.size)


def _sum_some_sources(
    distance: Array,
    keys: Array,
    values: Array,
    n_integers: int,
    decay: int,
    parameters: tuple[float, float],
) -> np.ndarray:
    """Return the sums of sources that are taken at once, int64 of shape (k * n_attributes *
    n_cutoffs,), NumPy.

    ``distance``, of shape (k, n_vertices), has the rows of these sources. ``keys`` are the bounds
    as ``distances_to_keys`` has them: integers in the same order. ``values`` are the attributes, of
    which the first ``n_integers`` are integers, and the others the bits of floats. ``decay`` and
    ``parameters`` are those of ``sums``.
    """
    k, n = distance.shape
    width = len(values) * keys.size
    size = _n_reduction_blocks(n)
    memory, pitch = flatten_distances(distance)
    # one word per source, attribute, cutoff and reduction block
    words = cp.empty(k * width * size, np.int64)
    args = {
        "distance": memory.view(np.uint8),
        "pitch": pitch,
        "n_vertices": np.int64(n),
        "n_sources": np.int64(k),
        "bounds": keys,
        "n_cutoffs": np.int64(keys.size),
        "values": values.reshape(-1),
        "n_integers": np.int64(n_integers),
        "n_attributes": np.int64(len(values)),
        "parameter": np.float64(parameters[0]),
        "width": np.float64(parameters[1]),
        "sums": words,
    }
    launch(kernel(*Request.reading(distance.dtype, _REDUCE, DECAY=decay)), k * size, args)

    # Add the sums of ``PIECE`` reduction blocks, and so on until one word per sum is left.
    counts = np.int64(keys.size), np.int64(n_integers), np.int64(len(values))
    while size > 1:
        items = k * width * _n_reduction_blocks(size)
        folded = cp.empty(items, np.int64)
        fold = kernel(*Request.reading(distance.dtype, _FOLD, DECAY=decay))
        launch(fold, items, (words, np.int64(size), np.int64(k * width), *counts, folded))
        words = folded
        size = _n_reduction_blocks(size)
    return words.get()


def bytes_needed(n_sources: int, n_vertices: int, n_attributes: int, n_cutoffs: int) -> int:
    """Return the bytes that ``sums`` takes on a GPU at most, in addition to the distances from
    ``n_sources`` sources to ``n_vertices`` vertices. The attributes and the cutoffs, 8 bytes per
    number, are included.
    """
    width = n_attributes * n_cutoffs
    # The words that a step of the fold reads, and those that it writes. The first step reads at
    # most ``SUMS_AT_ONCE`` words, unless one source has more, and writes fewer: together less than
    # twice as many. If ``width * blocks`` is larger, one source alone has so many.
    blocks = _n_reduction_blocks(n_vertices)
    blocks += _n_reduction_blocks(blocks)
    sums_at_once = min(n_sources * width * blocks, max(2 * SUMS_AT_ONCE, width * blocks))
    return 8 * (sums_at_once + n_attributes * n_vertices + n_cutoffs)


def likely_kernels(hops: bool, weight_t: DTypeLike, decay: int = 0) -> list[Request]:
    """Return requests to compile, ahead of the first result, the kernels that read distances.

    Their type is not known yet: for ``hops`` it may be int8 or int16, else it is that of the
    weights, ``weight_t``. ``decay`` is one of ``NO_DECAY`` (0) to ``POWER`` of
    ``cpu.opportunities``: each has a kernel of its own.
    """
    kinds = (np.int8, np.int16) if hops else (weight_t,)
    return [Request.reading(np.dtype(kind), _REDUCE, DECAY=decay) for kind in kinds]


def _n_reduction_blocks(size: int) -> int:
    """Return the number of reduction blocks of ``size`` values, of which the last one may be
    shorter.
    """
    return -(-size // PIECE)
