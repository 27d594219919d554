"""Rows of bits inside Numba kernels: one bit per source, a few machine words per vertex, one vector
instruction per row.

Numba has no vector values, and does not find by itself that a loop over the words of a row may be
one instruction. Each function works on rows of two-dimensional uint64 arrays. The type of
``lanes``, a tuple that holds the bits in use, says how many words per row there are.

Each intrinsic returns its types, and ``generate``, which writes the instructions: its ``args`` are
values of the generated code that stand for the arguments.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)

DIGITS = 8  # binary digits of a counter of ``count_row``, which so holds up to 255


class _Rows:
    """What the intrinsics below share while code is generated: rows of arguments as vectors.

    ``context``, ``builder``, ``signature`` and ``args`` are those that Numba passes to
    ``generate``: how types are compiled, what writes instructions, the types of the intrinsic's
    arguments, and their values in the generated code. In the methods, arrays and indices are given
    by the positions of their arguments; pointers and vectors are values of the generated code.

    Attributes
    ----------
    vector : llvmlite.ir.VectorType
        The type of a row: as many 64-bit words as the tuple ``lanes``, the last argument, has.
    """

    def __init__(self, context, builder, signature, args):
        self._context = context
        self._builder = builder
        self._signature = signature
        self._args = args
        self.vector = ir.VectorType(_WORD, len(signature.args[-1]))

    def place(self, array: int, index: int):
        """Generate a pointer to a row: ``array`` and ``index`` are the positions of the arguments
        that are the array, and the number of the row.
        """
        kind = self._signature.args[index]
        i = self._context.cast(self._builder, self._args[index], kind, types.intp)
        return self._place(array, i)

    def _place(self, array: int, i):
        """Generate a pointer to row ``i``, a value of the generated code, of the argument at the
        position ``array``.
        """
        kind = self._signature.args[array]
        view = self._context.make_array(kind)(self._context, self._builder, self._args[array])
        indices = [i, ir.Constant(_WORD, 0)]
        pointer = cgutils.get_item_pointer(
            self._context, self._builder, kind, view, indices, wraparound=False
        )
        return self._builder.bitcast(pointer, self.vector.as_pointer())

    def place_of_constant(self, array: int, index: int):
        """Generate a pointer to the row ``index``, a number of Python, of the argument at the
        position ``array``.
        """
        return self._place(array, ir.Constant(_WORD, index))

    def load(self, place):
        """Generate the load of a row as a vector. It is aligned to the 8 bytes of a word, as rows
        of NumPy arrays are, and not to a vector.
        """
        return self._builder.load(place, align=8)

    def store(self, value, place):
        """Generate the store of a vector to a row, which is aligned as in ``load``."""
        self._builder.store(value, place, align=8)

    def lanes(self):
        """Generate the bits in use, the tuple of words that is the last argument of each intrinsic,
        as a vector.
        """
        value = ir.Constant(self.vector, ir.Undefined)
        for i in range(self.vector.count):
            word = self._builder.extract_value(self._args[-1], i)
            value = self._builder.insert_element(value, word, ir.Constant(ir.IntType(32), i))
        return value

    def is_zero(self, value):
        """Generate whether no bit of a vector is set, as one bit."""
        name = f"llvm.vector.reduce.or.v{self.vector.count}i64"
        reduce = cgutils.get_or_insert_function(
            self._builder.module, ir.FunctionType(_WORD, [self.vector]), name
        )
        return self._builder.icmp_unsigned(
            "==", self._builder.call(reduce, [value]), ir.Constant(_WORD, 0)
        )


@intrinsic
def or_row(typing_context, into, i, rows, u, lanes):
    """Add the bits of row ``u`` of ``rows`` to row ``i`` of ``into``: ``into[i] |= rows[u]``. Of
    ``lanes``, a tuple, only the length is used: the 64-bit words of a row.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: load both rows, and store their union.

        The arguments by position: 0 ``into``, 1 ``i``, 2 ``rows``, 3 ``u``.
        """
        row = _Rows(context, builder, signature, args)
        place = row.place(0, 1)
        row.store(builder.or_(row.load(place), row.load(row.place(2, 3))), place)
        return context.get_dummy_value()

    return types.void(into, i, rows, u, lanes), generate


@intrinsic
def copy_row(typing_context, into, i, rows, u, lanes):
    """Copy row ``u`` of ``rows`` to row ``i`` of ``into``: ``into[i] = rows[u]``. Of ``lanes``, a
    tuple, only the length is used: the 64-bit words of a row.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: load a row, and store it.

        The arguments by position: 0 ``into``, 1 ``i``, 2 ``rows``, 3 ``u``.
        """
        row = _Rows(context, builder, signature, args)
        row.store(row.load(row.place(2, 3)), row.place(0, 1))
        return context.get_dummy_value()

    return types.void(into, i, rows, u, lanes), generate


@intrinsic
def is_full(typing_context, rows, i, lanes):
    """Return whether ``rows[i]`` holds all bits of ``lanes``, a tuple of words with the bits in
    use.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: no bit of ``lanes`` is missing in the row."""
        row = _Rows(context, builder, signature, args)
        return row.is_zero(builder.and_(builder.not_(row.load(row.place(0, 1))), row.lanes()))

    return types.boolean(rows, i, lanes), generate


@intrinsic
def take_new(typing_context, found, seen, v, lanes):
    """Keep in ``found[v]`` the bits that ``seen[v]`` lacks, add these to ``seen[v]``, and return
    whether there are any.

    A bit stands for a source: these are the sources that reach the vertex ``v`` for the first time.
    Of ``lanes``, a tuple, only the length is used: the 64-bit words of a row.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: load both rows, store both, and test the new bits.

        The arguments by position: 0 ``found``, 1 ``seen``, 2 ``v``.
        """
        row = _Rows(context, builder, signature, args)
        found_place = row.place(0, 2)
        seen_place = row.place(1, 2)
        bits = row.load(found_place)
        before = row.load(seen_place)
        new = builder.and_(bits, builder.not_(before))  # the sources that are new at ``v``
        row.store(new, found_place)
        row.store(builder.or_(bits, before), seen_place)
        return builder.not_(row.is_zero(new))

    return types.boolean(found, seen, v, lanes), generate


@intrinsic
def count_row(typing_context, digits, rows, v, lanes):
    """Add each bit of ``rows[v]`` to a counter of its own, of ``DIGITS`` binary digits.

    ``digits``, a uint64 array of ``DIGITS`` rows, holds the counters: row d has digit d of each, at
    the place of its bit, and digit 0 is the lowest. The caller clears them before they overflow. Of
    ``lanes``, a tuple, only the length is used: the 64-bit words of a row.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: add the row, as carries, to digit after digit.

        The arguments by position: 0 ``digits``, 1 ``rows``, 2 ``v``.
        """
        row = _Rows(context, builder, signature, args)

        # A ripple-carry adder, on all lanes at once.
        carry = row.load(row.place(1, 2))
        for digit in range(DIGITS):
            place = row.place_of_constant(0, digit)
            before = row.load(place)
            row.store(builder.xor(before, carry), place)
            carry = builder.and_(before, carry)
        return context.get_dummy_value()

    return types.void(digits, rows, v, lanes), generate
