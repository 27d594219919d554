"""Sums that are the same in every order of their terms: 128-bit integers in units of a power of
two.

Terms are rounded to the unit once, when they are made. Integers are then added, so that neither the
order of the terms nor the number of threads, batches, workers and devices changes a bit.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import PrecisionError, plural
from .compiled import njit

PRIME = 2**61 - 1  # the modulus of checksums
BITS = 126  # bits of the largest sum of absolute values; 128 bits hold it with its sign
_TWO_64 = 2.0**64


@njit(cache=True, nogil=True, inline="always")
def add(low, high, i, x_low, x_high):
    """Add a 128-bit integer to element ``i`` of the sums whose words are ``low`` and ``high``.

    A 128-bit integer is in two's complement: the lower word is a uint64, the upper one an int64.
    The integer that is added has the words ``x_low`` and ``x_high``.
    """
    # The sum of the lower words is modulo 2**64: if it is less than a term, there was a carry.
    total = low[i] + x_low
    high[i] += x_high + np.int64(total < x_low)
    low[i] = total


@njit(cache=True, nogil=True)
def split(x, exponent):
    """Return a float in units of ``2**exponent``, rounded half to even, as the lower and the upper
    word of a 128-bit integer, (uint64, int64). It must fit into ``BITS`` bits.
    """
    scaled = np.abs(math.ldexp(x, -exponent))
    if scaled < 4503599627370496.0:  # 2**52, from which on floats are integers
        scaled = np.rint(scaled)
    upper = np.floor(scaled / _TWO_64)
    low = np.uint64(scaled - upper * _TWO_64)
    high = np.int64(upper)
    if x < 0:  # negate: turn all bits, and add 1, which carries if the lower word becomes 0
        low = ~low + np.uint64(1)
        high = ~high + np.int64(low == 0)
    return low, high


@njit(cache=True, nogil=True)
def _merge(low, high, more_low, more_high):
    """Add the elements of other sums, whose words are ``more_low`` and ``more_high``, to those of
    the same place.
    """
    for i in range(low.size):
        add(low, high, i, more_low[i], more_high[i])


def find_exponent(bound: float) -> int:
    """Return the smallest exponent such that sums of up to ``bound`` have at most ``BITS`` bits in
    units of 2**exponent.

    A term is then exact down to 2**-73 of the bound, and has an error of half a unit, 2**-127 of
    the bound, at most.
    """
    return math.frexp(bound)[1] - BITS


@njit(cache=True, nogil=True)
def _multiply_residues(a, b):
    """Return the product of two residues modulo ``PRIME``, uint64 numbers below it."""
    # Multiply in halves of 32 bits: a is a1 * 2**32 + a0, and b is b1 * 2**32 + b0.
    mask = np.uint64(2**32 - 1)
    a0 = a & mask
    a1 = a >> np.uint64(32)
    b0 = b & mask
    b1 = b >> np.uint64(32)

    # both factors are below 2**61, so that nothing overflows
    middle = a1 * b0 + ((a0 * b0) >> np.uint64(32))
    across = a0 * b1 + (middle & mask)
    upper = a1 * b1 + (middle >> np.uint64(32)) + (across >> np.uint64(32))
    # The product is upper * 2**64 + a * b modulo 2**64. As 2**61 is 1 modulo PRIME, the bits from
    # 61 on are added to those below.
    product = ((a * b) & np.uint64(PRIME)) + ((upper << np.uint64(3)) | ((a * b) >> np.uint64(61)))
    return product % np.uint64(PRIME)


@njit(cache=True, nogil=True)
def linear_checksum(factors, low, high):
    """Return the sum of 128-bit integers times factors, modulo ``PRIME``, a uint64.

    Checksums of terms add up to that of their sum, which so can be checked without the terms.
    ``factors``, uint64, and the words ``low`` and ``high`` of the integers are of shape (n,).
    """
    prime = np.uint64(PRIME)
    total = np.uint64(0)
    for i in range(low.size):
        upper = np.uint64(high[i] % np.int64(PRIME))  # 0 or more, also of a negative number
        # 2**64 is 8 modulo PRIME
        value = (low[i] % prime + np.uint64(8) * upper % prime) % prime
        total = (total + _multiply_residues(value, factors[i] % prime)) % prime
    return total


class ExactSums:
    """n exact sums, 0 at first: element i is ``(high[i] * 2**64 + low[i]) * 2**exponent``.

    Attributes
    ----------
    low, high : uint64 and int64 arrays of shape (n,)
        The words of each sum, a 128-bit integer in units.
    exponent : int
        The unit is ``2**exponent``; 0 for sums of integers.
    """

    def __init__(self, n: int, exponent: int = 0) -> None:
        self.low = np.zeros(n, np.uint64)
        self.high = np.zeros(n, np.int64)
        self.exponent = exponent

    def merge(self, other: ExactSums) -> None:
        """Add the sums of ``other`` to those at the same places; ValueError if the number of sums
        or the unit differs.
        """
        if other.exponent != self.exponent or other.low.size != self.low.size:
            raise ValueError("these sums have another unit or size")
        _merge(self.low, self.high, other.low, other.high)

    def add_at(self, places: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Add a term to the sum at each of ``places``, of which one may occur several times.

        ``low`` and ``high`` are the words of the terms, in the unit of the sums. All three arrays
        have the same length.
        """
        _add_at(self.low, self.high, places, low, high)

    def nonzero(self) -> np.ndarray:
        """Return the places of the sums that are not 0, ascending."""
        return np.flatnonzero((self.low != 0) | (self.high != 0))

    def integers(self, places: np.ndarray, what: str) -> np.ndarray:
        """Return the sums at ``places`` as int64. PrecisionError if a sum exceeds int64, or the
        unit is not 1; ``what`` names the sums in its message, in the singular.
        """
        values = self.low[places].view(np.int64)
        # The upper word of a number that fits int64 repeats the sign of the lower word.
        signs = values >> 63
        if self.exponent or (self.high[places] != signs).any():
            raise PrecisionError(
                f"a sum of {plural(what)} exceeds int64; scale them down, or give floats"
            )
        return values

    def floats(self, places: np.ndarray) -> np.ndarray:
        """Return the sums at ``places`` as float64, each rounded once, half to even."""
        return _rounded(self.low[places], self.high[places], self.exponent)

    def total(self) -> int:
        """Return the sum of all elements, in units, an exact integer of Python."""
        # Halves of words are summed in 64 bits, which do not overflow.
        mask = 2**32 - 1
        total = int((self.low & np.uint64(mask)).sum())
        total += int((self.low >> np.uint64(32)).sum()) << 32
        total += int((self.high & mask).sum()) << 64
        total += int((self.high >> 32).sum()) << 96
        return total


@njit(cache=True, nogil=True)
def _add_at(low, high, places, more_low, more_high):
    """Add each term, whose words are ``more_low`` and ``more_high``, to the element at its
    place.
    """
    for i in range(places.size):
        add(low, high, places[i], more_low[i], more_high[i])


@njit(cache=True, nogil=True)
def _rounded(low, high, exponent):
    """Return 128-bit integers in units of ``2**exponent``, whose words are ``low`` and ``high``, as
    float64, each rounded half to even.
    """
    rounded = np.empty(low.size, np.float64)
    for i in range(low.size):
        lower = low[i]
        upper = high[i]
        is_negative = upper < 0
        if is_negative:  # continue with the absolute value
            lower = ~lower + np.uint64(1)
            upper = ~upper + np.int64(lower == 0)

        # The highest 64 bits, with a last one that says whether any below them is set, are rounded
        # once: by the cast.
        shift = 0
        top = np.uint64(upper)
        if top == 0:
            top = lower
        else:
            # ``top`` becomes the 64 bits from the highest one on, and the number is
            # ``top * 2**shift`` and what is below. ``lead`` counts the leading zeros.
            lead = 0
            while top >> np.uint64(63) == 0:
                top = top << np.uint64(1)
                lead += 1
            shift = 64 - lead
            if lead > 0:
                top |= lower >> np.uint64(shift)
            if lead == 0:
                top |= np.uint64(lower != 0)
            else:
                top |= np.uint64((lower << np.uint64(lead)) != 0)
        value = math.ldexp(np.float64(top), shift + exponent)
        rounded[i] = -value if is_negative else value
    return rounded
