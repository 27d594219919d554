"""The checksum of ``results`` in one pass over an array, where NumPy takes a dozen."""

from __future__ import annotations

import numpy as np

from .compiled import njit

# the increment of splitmix64, 2^64 / golden ratio, and its two multipliers
ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(x):
    """Return the bits of a uint64 mixed by the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA
    2014): every input bit changes half of the output bits.

    Takes arrays of either library, and a single number where Numba compiles it.
    """
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


mix_one = njit(inline="always")(mix)


@njit(cache=True, nogil=True)
def checksum(distance, bits, unreached, source):
    """Return the sum of hashes of (source, vertex, distance) over all reached vertices, a uint64,
    modulo 2^64. So it does not depend on the order of vertices or sources.

    ``bits`` are the distances as unsigned integers of the same bits, of shape (n_vertices,) as
    ``distance``. ``unreached`` is the distance of vertices that are not reached, and ``source`` is
    a uint64 that stands for the source.
    """
    total = np.uint64(0)
    for v in range(distance.size):
        if distance[v] != unreached:
            total += mix_one(mix_one(mix_one(np.uint64(v) + ODD) ^ np.uint64(bits[v])) + source)
    return total


@njit(cache=True, nogil=True)
def checksum_of_integers(distance, unreached, source):
    """Return the ``checksum`` of distances that are integers held as floats: the same as if they
    were held as int64. The arguments are those of ``checksum``.
    """
    total = np.uint64(0)
    for v in range(distance.size):
        if distance[v] != unreached:
            bits = np.uint64(np.int64(distance[v]))
            total += mix_one(mix_one(mix_one(np.uint64(v) + ODD) ^ bits) + source)
    return total
