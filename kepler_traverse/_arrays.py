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

UNREACHED = -1  # hop distance of a vertex that was not reached; for weighted distances it is +inf
NO_PREDECESSOR = -1
MAX_HOP_COUNT = 2**31 - 1  # hops are int32

# The largest integers up to which every integer is held exactly.
FLOAT32_EXACT = 2**24
FLOAT64_EXACT = 2**53
MAX_INTEGER = 2**63 - 1  # of int64; as an int64 distance it means "unreached"

# Types that sums of integer weights are computed in, narrowest first, with the first number that
# each may round or lack.
EXACT_BELOW: dict[np.dtype, int] = {
    np.dtype(np.float32): FLOAT32_EXACT,
    np.dtype(np.float64): FLOAT64_EXACT,
    np.dtype(np.int64): MAX_INTEGER,
}
MAX_SLICE = 1 << 28  # elements of a slice of a long array
_PER_NUMBER = 4  # the longest range whose integers are marked, per integer of an array
HOST_SLICE = 1 << 18  # the same in host memory, so that temporary arrays are small


class _Deferred:
    """A module, or a package with its modules, that is imported when one of its names is first
    used.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(load(self._name), name)
        except AttributeError:
            if name.startswith("_"):
                raise
            return load(f"{self._name}.{name}")


pyarrow: Any = _Deferred("pyarrow")
arrow_compute: Any = _Deferred("pyarrow.compute")
arrow_types: Any = _Deferred("pyarrow.types")


def get_device(array: Array) -> str:
    """Return ``"cuda"`` for an array in GPU memory, else ``"cpu"``."""
    # ``lines`` are those of interleaved distances, which are on a GPU alone.
    if hasattr(array, "__cuda_array_interface__") or hasattr(array, "lines"):
        return "cuda"
    return "cpu"


def is_rows(distance: Any) -> bool:
    """Return whether distances from several sources are an array, one row per source.

    The other forms, ``cuda.interleaved.InterleavedDistances`` and
    ``search.sparse.SparseDistances``, have a name, slices, ``rows``, ``stats``, ``bins`` and
    ``any_beyond``. These return, bit for bit, what is computed of the rows.
    """
    return not hasattr(distance, "form")


def namespace(array: Array) -> Any:
    """Return the module (NumPy or CuPy) whose functions work on ``array``."""
    if get_device(array) == "cuda":
        return sys.modules["cupy"]
    return np


def to_host(array: Array) -> np.ndarray:
    """Return ``array`` as a NumPy array, copying only from a GPU."""
    if get_device(array) == "cuda":
        return array.get()
    return np.asarray(array)


def index_dtype(n_vertices: int) -> np.dtype:
    """Return the narrowest type for vertex numbers: int32 while they fit."""
    return np.dtype(np.int32 if n_vertices <= np.iinfo(np.int32).max else np.int64)


def make_offsets(sizes: np.ndarray) -> np.ndarray:
    """Return where rows of these sizes begin, and where the last one ends."""
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def sort_distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct integers of an array in ascending order, of shape (n,).

    ``numpy.unique`` collects them in a hash table, which takes 10 times as long for a million
    different ones. Integers of a range that is not much longer than the array are marked in it.
    """
    if numbers.size and numbers.dtype.kind in "iu":  # those of floats are no places of an array
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
    """Return the concatenation of ``arange(size)`` for each size."""
    return np.asarray(np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes))


def iter_slices(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield (position, slice) of an array. No slice is so long that CuPy would count its elements
    in 32 bits.

    Some of CuPy's reductions and scans over 2^31 elements and more give wrong results in silence
    (its issues 9186, 9841).
    """
    if get_device(array) == "cuda":
        size = MAX_SLICE
    else:
        size = min(MAX_SLICE, HOST_SLICE)
    for first in range(0, array.size, size):
        yield first, array[first : first + size]


def flatten_distances(distances: Array) -> tuple[Array, np.int64]:
    """Return distances of shape (k, n) as one array, and the number of elements between the begins
    of two sources.

    The array is a copy if the distances from a source are not contiguous.
    """
    xp = namespace(distances)
    k, n = distances.shape
    pitch = distances.strides[0] // distances.itemsize
    # Gaps within the distances of a source, and sources that overlap, have no such form.
    if (
        distances.strides[1] != distances.itemsize
        or distances.strides[0] % distances.itemsize
        or (k > 1 and pitch < n)
    ):
        distances = xp.ascontiguousarray(distances)
        pitch = n
    if k <= 1:  # whose stride may be any
        pitch = n
    size = (k - 1) * pitch + n
    flat = xp.lib.stride_tricks.as_strided(distances, (size,), (distances.itemsize,))
    return flat, np.int64(pitch)


def compute_mean(values: np.ndarray) -> float:
    """Return the mean of numbers in host memory, 0 of none; infinite where float64 does not hold
    their sum.
    """
    with np.errstate(over="ignore"):
        if values.size:
            return float(values.mean(dtype=np.float64))
        return 0.0


def extent(column: Array) -> tuple[int, int]:
    """Return the smallest and the largest of integers, at least one."""
    extents = [(int(values.min()), int(values.max())) for _, values in iter_slices(column)]
    return min(low for low, _ in extents), max(high for _, high in extents)


def hops_dtype(depth: int) -> np.dtype:
    """Return the narrowest type for hop counts up to ``depth``: -1 is for the unreached, so types
    are signed.
    """
    for narrow in (np.int8, np.int16):
        if depth <= np.iinfo(narrow).max:
            return np.dtype(narrow)
    return np.dtype(np.int32)


def float_that_holds(low: int, high: int) -> np.dtype | None:
    """Return the smallest float type that holds every integer of ``[low, high]`` exactly, or None."""
    largest = max(abs(int(low)), abs(int(high)))
    if largest <= FLOAT32_EXACT:
        return np.dtype(np.float32)
    if largest <= FLOAT64_EXACT:
        return np.dtype(np.float64)
    return None


def is_hops(dtype: np.dtype) -> bool:
    """Return whether distances of this type are hops. Weighted distances are floats, or int64."""
    return dtype.kind == "i" and dtype.itemsize < 8


def unreached_value(dtype: np.dtype) -> Any:
    """Return the distance, in its own type, that stands for "unreached"."""
    if is_hops(dtype):
        return dtype.type(UNREACHED)
    if dtype.kind == "i":
        return dtype.type(MAX_INTEGER)
    return dtype.type(np.inf)


def is_reached(distance: Array) -> Array:
    """Return where distances, hops or weighted, are those of reached vertices."""
    if distance.dtype.kind == "f":
        return namespace(distance).isfinite(distance)
    return distance != unreached_value(distance.dtype)


def at_most(distance: Array, limit: float) -> Array:
    """Return where ``distance <= limit``, also for subnormal numbers on a GPU, where CuPy's kernels
    take them for zero. There floats are compared by their bits, as integers in the same order.
    """
    bound = as_distance(limit, distance.dtype)
    if distance.dtype.kind == "i" or get_device(distance) == "cpu":
        return distance <= bound
    kind = f"i{distance.itemsize}"
    key_of_bound = int(_flip_negative(np.array(bound).view(kind)))
    return _flip_negative(distance.view(kind)) <= key_of_bound


def is_negative(values: Array) -> Array:
    """Return where floats that hold no -0.0 are below zero, by their sign bit: subnormal numbers
    count on a GPU too.
    """
    return values.view(f"i{values.itemsize}") < 0


def as_distance(limit: float | None, dtype: np.dtype) -> Any:
    """Return the largest distance of a type that a limit admits, a Python number or a scalar of
    NumPy.

    The limit is rounded down, so that a distance is within the limit as given where it is at most
    this one. A limit beyond the type is infinite for floats; for integers it is the largest finite
    distance. None is no limit.
    """
    kind = np.dtype(dtype)
    if limit is None:
        limit = np.inf
    if isinstance(limit, np.generic):
        # Python compares its numbers by their values, NumPy rounds one of them first
        limit = limit.item()
    if kind.kind == "i":
        if kind.itemsize == 8:
            largest = MAX_INTEGER - 1
        else:
            largest = np.iinfo(kind).max
        return kind.type(largest if limit >= largest else math.floor(limit))
    with np.errstate(over="ignore"):
        nearest = kind.type(limit)
    if np.isfinite(nearest) and nearest.item() > limit:
        return np.nextafter(nearest, kind.type(-np.inf))
    return nearest


def as_distances(limits: Iterable[float | None], dtype: np.dtype) -> np.ndarray:
    """Return ``as_distance`` of each limit, as an array; None stands for no limit."""
    limits = list(limits)
    bounds = {limit: as_distance(limit, dtype) for limit in set(limits)}
    return np.array([bounds[limit] for limit in limits], dtype)


def distances_to_keys(distance: Array) -> Array:
    """Return distances as int64 in the same order: of floats by their bits, so that a GPU compares
    subnormal numbers, too.
    """
    if distance.dtype.kind == "i":
        return distance.astype(np.int64)
    return _flip_negative(distance.view(f"i{distance.itemsize}")).astype(np.int64)


def keys_to_distances(keys: Array, kind: np.dtype) -> Array:
    """Return the distances of a type that have these keys; hops of any type as int64."""
    if kind.kind == "i":
        if kind.itemsize == 8:
            return keys
        return keys.astype(np.int64)
    return _flip_negative(keys.astype(f"i{kind.itemsize}")).view(kind)


def _flip_negative(bits: Array) -> Array:
    """Return the bits of floats as integers in the order of the floats, or bits from these again.

    Below zero all bits but the sign are inverted.
    """
    return namespace(bits).where(bits >= 0, bits, bits ^ np.iinfo(bits.dtype).max)
