"""Sixteen numbers of an array compared with one at once, inside Numba kernels: a bit each, and no
branch.

Rows of a graph are short, and of random lengths: a loop over a row ends where no processor expects
it. What lies beyond the row is compared, too, and its bits are dropped; so the array must have
sixteen numbers from the first one on.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .simd_distances import broadcast

SIXTEEN = 16  # numbers that are compared at once


def _compare_sixteen(symbol: str):
    """Return the generator of an intrinsic that compares by ``symbol``, such as "<"."""

    def generate(context, builder, signature, args):
        """Write the instructions: ``args`` are the array, the first index and the value."""
        kind, index_kind, _ = signature.args
        view = context.make_array(kind)(context, builder, args[0])
        index = context.cast(builder, args[1], index_kind, types.intp)
        place = cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)
        vector = ir.VectorType(context.get_value_type(kind.dtype), SIXTEEN)
        pointer = builder.bitcast(place, vector.as_pointer())
        numbers = builder.load(pointer, align=kind.dtype.bitwidth // 8)

        value = broadcast(builder, args[2], vector)
        if isinstance(kind.dtype, types.Float):
            matches = builder.fcmp_ordered(symbol, numbers, value)
        elif kind.dtype.signed:
            matches = builder.icmp_signed(symbol, numbers, value)
        else:
            matches = builder.icmp_unsigned(symbol, numbers, value)

        # 16 comparisons of one bit are 16 bits of an integer.
        return builder.zext(builder.bitcast(matches, ir.IntType(SIXTEEN)), ir.IntType(64))

    return generate


@intrinsic
def are_equal(typing_context, array, at, value):
    """Return a uint64 whose bit i, for i from 0 to 15, says whether ``array[at + i]`` is ``value``,
    a number of the array's type. The array must have so many elements.
    """
    return types.uint64(array, at, array.dtype), _compare_sixteen("==")


@intrinsic
def are_less(typing_context, array, at, value):
    """Return a uint64 whose bit i, for i from 0 to 15, says whether ``array[at + i]`` is less than
    ``value``, a number of the array's type. The array must have so many elements.
    """
    return types.uint64(array, at, array.dtype), _compare_sixteen("<")
