"""Atomic updates of NumPy arrays inside Numba kernels.

Numba offers atomics on GPUs only; LLVM has them for every processor. Each function works on one
element of a one-dimensional integer array and returns the value that stood there before. Distances
of float type are passed as integers of the same width (see ``ordered``), whose order is the order
of the floats.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _element(context, builder, array_type, array, index):
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def _read_modify_write(operation: str):
    @intrinsic
    def update(typing_context, array, index, value):
        def generate(context, builder, signature, args):
            array_type, index_type, value_type = signature.args
            at = context.cast(builder, args[1], index_type, types.intp)
            new = context.cast(builder, args[2], value_type, array_type.dtype)
            return builder.atomic_rmw(
                operation, _element(context, builder, array_type, args[0], at), new, "monotonic"
            )

        return array.dtype(array, index, value), generate

    return update


atomic_min = _read_modify_write("min")
atomic_umin = _read_modify_write("umin")  # as unsigned: -1 is the largest value
atomic_add = _read_modify_write("add")
atomic_exchange = _read_modify_write("xchg")


@intrinsic
def compare_and_swap(typing_context, array, index, expected, value):
    """Store ``value`` where ``expected`` stands; return what stood there."""

    def generate(context, builder, signature, args):
        array_type, index_type, expected_type, value_type = signature.args
        at = context.cast(builder, args[1], index_type, types.intp)
        old = context.cast(builder, args[2], expected_type, array_type.dtype)
        new = context.cast(builder, args[3], value_type, array_type.dtype)
        pointer = _element(context, builder, array_type, args[0], at)
        return builder.extract_value(
            builder.cmpxchg(pointer, old, new, "monotonic", "monotonic"), 0
        )

    return array.dtype(array, index, expected, value), generate


def ordered_dtype(weight_dtype: np.dtype) -> np.dtype:
    """Return the integer type whose order stands for the order of the floats."""
    return np.dtype(f"i{np.dtype(weight_dtype).itemsize}")


def _flip_negative(builder, bits, width):
    """Reverse the order of the negative numbers by turning all their bits but the sign."""
    integer = ir.IntType(width)
    flipped = builder.xor(bits, ir.Constant(integer, 2 ** (width - 1) - 1))
    return builder.select(builder.icmp_signed(">=", bits, ir.Constant(integer, 0)), bits, flipped)


@intrinsic
def to_ordered(typing_context, value):
    """Map a float to an integer of its width, order kept; the very bits of non-negative floats."""
    if value is types.float32:
        integer = types.int32
    else:
        integer = types.int64

    def generate(context, builder, signature, args):
        return _flip_negative(
            builder, builder.bitcast(args[0], ir.IntType(integer.bitwidth)), integer.bitwidth
        )

    return integer(value), generate


@intrinsic
def from_ordered(typing_context, bits):
    """Undo ``to_ordered``."""
    if bits is types.int32:
        real = types.float32
    else:
        real = types.float64

    def generate(context, builder, signature, args):
        flipped = _flip_negative(builder, args[0], signature.args[0].bitwidth)
        return builder.bitcast(
            flipped, ir.FloatType() if real is types.float32 else ir.DoubleType()
        )

    return real(bits), generate
