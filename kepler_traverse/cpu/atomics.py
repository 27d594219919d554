"""Atomic updates of NumPy arrays inside Numba kernels.

Numba offers atomics on GPUs only; LLVM has them for every processor. Each function works on one
element of a one-dimensional integer array and returns the value that stood there before. Distances
of float type are passed as integers of the same width (see ``to_ordered``), whose order is the
order of the floats.

Each intrinsic returns its types, and ``generate``, which writes the instructions: its ``args`` are
values of the generated code that stand for the arguments.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _element(context, builder, array_type, array, index):
    """Generate a pointer to an element of a one-dimensional array, whose index is not checked.

    ``array_type`` is Numba's type of the array; ``array`` and ``index`` are values of the generated
    code.
    """
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def _read_modify_write(operation: str):
    """Return an intrinsic ``update(array, index, value)`` that changes an element by an operation
    and returns what stood there; ``operation`` is one of LLVM's ``atomicrmw``, such as "min".
    """

    @intrinsic
    def update(typing_context, array, index, value):
        """Change ``array[index]`` by the operation with ``value``; return what stood there."""

        def generate(context, builder, signature, args):
            """Write one atomic operation; its value is what stood in the element."""
            array_type, index_type, value_type = signature.args
            place = context.cast(builder, args[1], index_type, types.intp)
            new = context.cast(builder, args[2], value_type, array_type.dtype)
            pointer = _element(context, builder, array_type, args[0], place)
            return builder.atomic_rmw(operation, pointer, new, "monotonic")

        return array.dtype(array, index, value), generate

    return update


atomic_min = _read_modify_write("min")
atomic_umin = _read_modify_write("umin")  # as unsigned: -1 is the largest value
atomic_add = _read_modify_write("add")
atomic_exchange = _read_modify_write("xchg")


@intrinsic
def compare_and_swap(typing_context, array, index, expected, value):
    """Store ``value`` in ``array[index]`` if ``expected`` stands there; return what stood there."""

    def generate(context, builder, signature, args):
        """Write one atomic compare-and-swap; its value is what stood there."""
        array_type, index_type, expected_type, value_type = signature.args
        place = context.cast(builder, args[1], index_type, types.intp)
        old = context.cast(builder, args[2], expected_type, array_type.dtype)
        new = context.cast(builder, args[3], value_type, array_type.dtype)
        pointer = _element(context, builder, array_type, args[0], place)
        pair = builder.cmpxchg(pointer, old, new, "monotonic", "monotonic")
        return builder.extract_value(pair, 0)  # the second value says whether it was stored

    return array.dtype(array, index, expected, value), generate


def ordered_dtype(weight_dtype: np.dtype) -> np.dtype:
    """Return the integer type of the width of a float type, to which ``to_ordered`` maps floats."""
    return np.dtype(f"i{np.dtype(weight_dtype).itemsize}")


def _flip_negative(builder, bits, width):
    """Generate ``bits``, an integer of ``width`` bits, with all bits but the sign turned if it is
    negative. Done to the bits of floats, this makes their order that of integers; done twice, it
    gives the bits of the float again.
    """
    integer = ir.IntType(width)
    flipped = builder.xor(bits, ir.Constant(integer, 2 ** (width - 1) - 1))
    return builder.select(builder.icmp_signed(">=", bits, ir.Constant(integer, 0)), bits, flipped)


@intrinsic
def to_ordered(typing_context, value):
    """Return a float, float32 or float64, as an integer of its width, such that the order of
    integers is that of the floats. A float of 0 or more keeps its bits.
    """
    if value is types.float32:
        integer = types.int32
    else:
        integer = types.int64

    def generate(context, builder, signature, args):
        """Write the conversion of the float ``args[0]`` to an integer."""
        bits = builder.bitcast(args[0], ir.IntType(integer.bitwidth))
        return _flip_negative(builder, bits, integer.bitwidth)

    return integer(value), generate


@intrinsic
def from_ordered(typing_context, bits):
    """Return the float that ``to_ordered`` has mapped to ``bits``, an int32 or int64."""
    if bits is types.int32:
        real = types.float32
        llvm_type = ir.FloatType()
    else:
        real = types.float64
        llvm_type = ir.DoubleType()

    def generate(context, builder, signature, args):
        """Write the conversion of the integer ``args[0]`` to a float."""
        flipped = _flip_negative(builder, args[0], signature.args[0].bitwidth)
        return builder.bitcast(flipped, llvm_type)

    return real(bits), generate
