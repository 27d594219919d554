"""Which library an array belongs to, the widths of indices and weights, and the values that mean
"none".

Devices are distinguished by ``__cuda_array_interface__``, so nothing here needs CuPy. pyarrow is
imported when one of its names is first used: it takes a tenth of a second, and searches that return
arrays need none of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._uninterrupted import load

Array = Any  # numpy.ndarray or cupy.ndarray: which one is read off the value, never configured

# Hop distance of a vertex that was not reached. Float distances have +inf, and int64 distances
# ``MAX_INTEGER`` in its place.
UNREACHED = -1
NO_PREDECESSOR = -1  # of a source, and of a vertex that was not reached
MAX_HOP_COUNT = 2**31 - 1  # hops are int32

# Each float type holds every integer up to this number exactly.
FLOAT32_EXACT = 2**24
FLOAT64_EXACT = 2**53
MAX_INTEGER = 2**63 - 1  # of int64; as an int64 distance it means "unreached"

# Types that sums of integer weights are computed in, narrowest first. Each holds all integers below
# the number exactly.
EXACT_BELOW: dict[np.dtype, int] = {
    np.dtype(np.float32): FLOAT32_EXACT,
    np.dtype(np.float64): FLOAT64_EXACT,
    np.dtype(np.int64): MAX_INTEGER,
}
MAX_SLICE = 1 << 28  # elements of a slice of a long array, on a GPU
# ``sort_distinct`` marks integers in an array over their range if this range has at most so many
# places per integer.
_PER_NUMBER = 4
HOST_SLICE = 1 << 18  # elements of a slice in host memory, so that temporary arrays are small


class _Deferred:
    """A stand-in for a module, which is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        """``name`` is that of the module, as in an ``import`` statement."""
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module, or a module of a package that was not imported yet."""
        try:
            return getattr(load(self._name), name)
        except AttributeError:
            # Private names are asked for by Python itself, as for a copy; they are no modules.
            if name.startswith("_"):
                raise
            return load(f"{self._name}.{name}")


pyarrow: Any = _Deferred("pyarrow")
arrow_compute: Any = _Deferred("pyarrow.compute")
arrow_types: Any = _Deferred("pyarrow.types")


def get_device(array: Array) -> str:
    """Return ``"cuda"`` for an array in GPU memory, else ``"cpu"``."""
    # ``InterleavedDistances``, which exist on a GPU only, have ``lines`` and no such interface.
    if hasattr(array, "__cuda_array_interface__") or hasattr(array, "lines"):
        return "cuda"
    return "cpu"


def is_rows(distance: Any) -> bool:
    """Return whether distances from several sources are an array with one row per source.

    The other forms are ``cuda.interleaved.InterleavedDistances`` and
    ``search.sparse.SparseDistances``, whose attribute ``form`` has their name. Their methods
    ``rows``, ``stats``, ``bins`` and ``any_beyond`` return, bit for bit, what is computed from the
    rows of an array.
    """
    return not hasattr(distance, "form")


def namespace(array: Array) -> Any:
    """Return the module (NumPy or CuPy) whose functions work on ``array``."""
    if get_device(array) == "cuda":
        return sys.modules["cupy"]  # imported already, since there is an array of it
    return np


def to_host(array: Array) -> np.ndarray:
    """Return ``array`` as a NumPy array, copying only from a GPU."""
    if get_device(array) == "cuda":
        return array.get()
    return np.asarray(array)


def index_dtype(n_vertices: int) -> np.dtype:
    """Return the narrowest type for the vertex numbers of ``n_vertices`` vertices, 0 to n-1: int32
    while they fit, else int64.
    """
    return np.dtype(np.int32 if n_vertices <= np.iinfo(np.int32).max else np.int64)


def make_offsets(sizes: np.ndarray) -> np.ndarray:
    """Return where each of some rows begins if they stand one after the other, and where the last
    one ends: int64 of shape (n + 1,). ``sizes`` (n,) are their lengths.
    """
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def sort_distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct numbers of an array in ascending order, in one dimension.

    ``numpy.unique`` collects them in a hash table, which takes 10 times as long for a million
    different ones. If the range of integers is not much longer than the array, they are marked in
    an array over this range, else sorted.
    """
    if numbers.size and numbers.dtype.kind in "iu":  # a float is no position in an array
        low = numbers.min()
        n_between = int(numbers.max()) - int(low) + 1
        if n_between <= _PER_NUMBER * numbers.size:
            is_there = np.zeros(n_between, bool)
            # A difference that the type does not hold wraps around to the same unsigned number.
            above = (numbers - low).view(f"u{numbers.itemsize}")
            is_there[above.astype(np.intp)] = True
            return np.flatnonzero(is_there).astype(numbers.dtype) + low
    ordered = np.sort(numbers, axis=None)
    is_first = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def positions_in_groups(sizes: np.ndarray) -> np.ndarray:
    """Return the concatenation of ``arange(size)`` for each size of an integer array: the position
    of each element within its group, if groups of these sizes stand one after the other.
    """
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def iter_slices(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield slices of an array of one dimension, each with the position where it begins.

    Slices are short enough that CuPy counts their elements in 32 bits: some of its reductions and
    scans over 2^31 elements and more give wrong results in silence (its issues 9186, 9841).
    """
    if get_device(array) == "cuda":
        size = MAX_SLICE
    else:
        size = min(MAX_SLICE, HOST_SLICE)
    for first in range(0, array.size, size):
        yield first, array[first : first + size]


def flatten_distances(distances: Array) -> tuple[Array, np.int64]:
    """Return distances of shape (k, n) as an array of one dimension, and its pitch: the number of
    elements from the beginning of one source to that of the next.

    The pitch is n or larger, as there may be gaps between sources. The array shares the memory of
    ``distances``, unless the distances from a source are not contiguous, or sources overlap.
    """
    xp = namespace(distances)
    k, n = distances.shape
    pitch = distances.strides[0] // distances.itemsize
    # Copy if there are gaps within the distances of a source, or if sources overlap.
    if (
        distances.strides[1] != distances.itemsize
        or distances.strides[0] % distances.itemsize
        or (k > 1 and pitch < n)
    ):
        distances = xp.ascontiguousarray(distances)
        pitch = n
    if k <= 1:  # the stride between sources may be any number then
        pitch = n
    size = (k - 1) * pitch + n
    flat = xp.lib.stride_tricks.as_strided(distances, (size,), (distances.itemsize,))
    return flat, np.int64(pitch)


def compute_mean(values: np.ndarray) -> float:
    """Return the mean of ``values``, numbers in host memory, 0 if there are none; infinite if their
    sum is beyond float64.
    """
    with np.errstate(over="ignore"):
        if values.size:
            return float(values.mean(dtype=np.float64))
        return 0.0


def extent(column: Array) -> tuple[int, int]:
    """Return the smallest and the largest number of ``column``, an array of integers on either
    device that is not empty.
    """
    extents = [(int(values.min()), int(values.max())) for _, values in iter_slices(column)]
    return min(low for low, _ in extents), max(high for _, high in extents)


def hops_dtype(depth: int) -> np.dtype:
    """Return the narrowest type for hop counts up to ``depth``: int8, int16 or int32. Types are
    signed, since -1 stands for unreached vertices.
    """
    for narrow in (np.int8, np.int16):
        if depth <= np.iinfo(narrow).max:
            return np.dtype(narrow)
    return np.dtype(np.int32)


def float_that_holds(low: int, high: int) -> np.dtype | None:
    """Return the smaller of float32 and float64 that holds every integer from ``low`` to ``high``
    exactly; None if neither does.
    """
    largest = max(abs(int(low)), abs(int(high)))
    if largest <= FLOAT32_EXACT:
        return np.dtype(np.float32)
    if largest <= FLOAT64_EXACT:
        return np.dtype(np.float64)
    return None


def is_hops(dtype: np.dtype) -> bool:
    """Return whether distances of type ``dtype`` are hops: int8, int16 or int32. Weighted distances
    are floats, or int64.
    """
    return dtype.kind == "i" and dtype.itemsize < 8


def unreached_value(dtype: np.dtype) -> Any:
    """Return the distance that stands for "unreached" in distances of type ``dtype``, as a scalar
    of this type: -1 for hops, the largest integer for int64, else infinity.
    """
    if is_hops(dtype):
        return dtype.type(UNREACHED)
    if dtype.kind == "i":
        return dtype.type(MAX_INTEGER)
    return dtype.type(np.inf)


def is_reached(distance: Array) -> Array:
    """Return a bool array of the shape of ``distance``, hops or weighted: True for the distance of
    a reached vertex.
    """
    if distance.dtype.kind == "f":
        return namespace(distance).isfinite(distance)
    return distance != unreached_value(distance.dtype)


def at_most(distance: Array, limit: float) -> Array:
    """Return a bool array: True where ``distance <= limit``.

    CuPy's kernels take subnormal floats for zero. So on a GPU floats are compared by their bits, as
    integers in the same order.
    """
    bound = as_distance(limit, distance.dtype)
    if distance.dtype.kind == "i" or get_device(distance) == "cpu":
        return distance <= bound
    kind = f"i{distance.itemsize}"
    key_of_bound = int(_flip_negative(np.array(bound).view(kind)))
    return _flip_negative(distance.view(kind)) <= key_of_bound


def is_negative(values: Array) -> Array:
    """Return a bool array: True where a float of ``values`` is below zero. There must be no -0.0.

    The sign bit is read, since CuPy's kernels take subnormal floats for zero.
    """
    return values.view(f"i{values.itemsize}") < 0


def as_distance(limit: float | None, dtype: np.dtype) -> Any:
    """Return the largest distance of type ``dtype`` that is within a limit, as a scalar of NumPy of
    this type.

    The limit, a number of Python or NumPy, is rounded down. So a distance is within the limit
    exactly if it is at most the result. A limit beyond the type is infinite for floats; for
    integers it is the largest finite distance. None is no limit.
    """
    kind = np.dtype(dtype)
    if limit is None:
        limit = np.inf
    if isinstance(limit, np.generic):
        # Python compares its own numbers exactly; NumPy would first round one of them.
        limit = limit.item()
    if kind.kind == "i":
        if kind.itemsize == 8:
            largest = MAX_INTEGER - 1  # ``MAX_INTEGER`` stands for unreached
        else:
            largest = np.iinfo(kind).max
        return kind.type(largest if limit >= largest else math.floor(limit))
    with np.errstate(over="ignore"):
        nearest = kind.type(limit)
    if np.isfinite(nearest) and nearest.item() > limit:  # rounded up: take the next one below
        return np.nextafter(nearest, kind.type(-np.inf))
    return nearest


def as_distances(limits: Iterable[float | None], dtype: np.dtype) -> np.ndarray:
    """Return the largest distance of type ``dtype`` that is within each limit, as an array of this
    type. Limits are rounded down. None stands for no limit: infinity, or of integers the largest
    finite distance.
    """
    # Many limits are often equal, so each is converted once.
    limits = list(limits)
    bounds = {limit: as_distance(limit, dtype) for limit in set(limits)}
    return np.array([bounds[limit] for limit in limits], dtype)


def distances_to_keys(distance: Array) -> Array:
    """Return int64 keys of distances, which are in the same order as these.

    Keys of floats are made from their bits, since CuPy's kernels take subnormal floats for zero.
    """
    if distance.dtype.kind == "i":
        return distance.astype(np.int64)
    return _flip_negative(distance.view(f"i{distance.itemsize}")).astype(np.int64)


def keys_to_distances(keys: Array, kind: np.dtype) -> Array:
    """Return the distances that ``distances_to_keys`` made int64 keys of.

    ``kind`` is their type. Hops, of whatever integer type, are returned as int64.
    """
    if kind.kind == "i":
        if kind.itemsize == 8:
            return keys
        return keys.astype(np.int64)
    return _flip_negative(keys.astype(f"i{kind.itemsize}")).view(kind)


def _flip_negative(bits: Array) -> Array:
    """Convert the bits of floats, viewed as signed integers, to integers in the order of the
    floats, or such integers back to bits: the function is its own inverse.

    Of negative floats the bits grow with the magnitude. So all their bits but the sign are
    inverted.
    """
    return namespace(bits).where(bits >= 0, bits, bits ^ np.iinfo(bits.dtype).max)
