"""Lines of integers inside Numba kernels: the smallest sums of a vertex from many sources, and
lines turned into rows.

A line holds the distances of one vertex from as many sources as ``doublings`` says, a tuple as in
``simd_distances``. Each intrinsic returns its types, and ``generate``, which writes the
instructions: its ``args`` are values of the generated code that stand for the arguments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .simd_distances import _INT, _WORD, PREFETCH_DISTANCE, _Lines, broadcast, prefetch


class LinesWithSums(NamedTuple):
    """Distances, and sums of another column along the same paths: a line per vertex, and in it a
    number per source.
    """

    # distances, sums: integers of shape (n, n_sources). The type of sums may be another one
    distances: np.ndarray
    sums: np.ndarray
    # of shape (n_sources,), of the type of the distances, output: the distances that the last
    # lowered line held before it was lowered
    held: np.ndarray


class EdgesWithSums(NamedTuple):
    """Edges in compressed sparse rows, and what each one adds to a sum along a path."""

    offsets: np.ndarray  # of shape (n + 1,): where the edges of each vertex begin
    # heads, weights, added: of shape (n_edges,): the vertex at the other end of each edge, whose
    # line is read; the length of the edge; and what it adds to the sum
    heads: np.ndarray
    weights: np.ndarray
    added: np.ndarray


@intrinsic
def lower_line(typing_context, lines, v, is_set, edges, unreached, doublings):
    """Lower each number of line ``v`` to the smallest sum over the edges of ``v``: that of an
    edge's weight and the number of its head's line.

    ``edges`` has the offsets, heads and weights of compressed sparse rows. Integers of lines are at
    least 0 and at most ``unreached``, twice which fits their type: so sums of two need no check. If
    ``is_set`` is 0, line ``v`` counts as unreached before, whatever it holds, so that lines need
    not be cleared. ``doublings`` is a tuple whose length is the binary logarithm of the numbers per
    line.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: a loop over the edges keeps the smallest sums.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``is_set``, 3 ``edges``, 4 ``unreached``.
        """
        line = _Lines(context, builder, signature, args)
        offsets, heads, weights = line.arrays(3)
        # ``best`` begins with what the line holds, or with unreached if it is not set.
        nothing = line.broadcast(args[4])
        is_line_set = builder.icmp_unsigned("!=", args[2], ir.Constant(args[2].type, 0))
        v_index = line.integer(1)
        best = cgutils.alloca_once_value(
            builder, builder.select(is_line_set, line.load(v_index), nothing)
        )

        for edge, neighbor_line in line.neighbors(v_index, offsets, heads):
            through = builder.add(neighbor_line, line.broadcast(weights.element(edge)))
            builder.store(line.minimum(through, builder.load(best)), best)
        line.store(builder.load(best), v_index)
        return context.get_dummy_value()

    return types.void(lines, v, is_set, edges, lines.dtype, doublings), generate


@intrinsic
def lower_line_with_sums(typing_context, lines, v, is_set, edges, unreached, doublings):
    """Lower line ``v`` as ``lower_line`` does, and write to each of its sums the sum over the first
    edge that lowers the distance most. A sum whose distance is not lowered stays.

    Return a uint64 with a bit for each distance that, as the line held it before, is equal to the
    distance over an edge: a tie, at which the sums over both paths may differ. ``lines`` are
    ``LinesWithSums``, and ``edges`` are ``EdgesWithSums``. ``is_set``, ``unreached`` and
    ``doublings`` are those of ``lower_line``.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: a loop over the edges keeps sums and marks ties.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``is_set``, 3 ``edges``, 4 ``unreached``.
        """
        line = _Lines(context, builder, signature, args)
        _, sums, held_line = line.arrays(0)
        offsets, heads, weights, added = line.arrays(3)
        vector = ir.VectorType(context.get_value_type(sums.kind), line.count)
        width = sums.kind.bitwidth // 8

        def sums_at(place):
            """Generate a pointer to the sums of the line with the number ``place``."""
            first = builder.gep(sums.data, [builder.mul(place, ir.Constant(_WORD, line.count))])
            return builder.bitcast(first, vector.as_pointer())

        nothing = line.broadcast(args[4])
        is_line_set = builder.icmp_unsigned("!=", args[2], ir.Constant(args[2].type, 0))
        v_index = line.integer(1)
        # Keep what the line held before: the caller compares with it.
        held = builder.select(is_line_set, line.load(v_index), nothing)
        held_place = builder.bitcast(held_line.data, line.vector.as_pointer())
        builder.store(held, held_place, align=line.kind.bitwidth // 8)

        # The smallest distances so far, the sums along the same paths, and the lanes with a tie.
        best = cgutils.alloca_once_value(builder, held)
        total = cgutils.alloca_once_value(builder, builder.load(sums_at(v_index), align=width))
        none = ir.Constant(line.vector, [0] * line.count)
        ties = cgutils.alloca_once_value(builder, none)
        last = builder.sub(heads.size, ir.Constant(_WORD, 1))
        for edge, neighbor_line in line.neighbors(v_index, offsets, heads):
            # The sums of later edges are prefetched, as their lines are.
            later = builder.add(edge, ir.Constant(_WORD, PREFETCH_DISTANCE))
            later = builder.select(builder.icmp_signed("<", later, last), later, last)
            prefetch(builder, sums_at(heads.index(later)))

            neighbor_index = heads.index(edge)
            through = builder.add(neighbor_line, line.broadcast(weights.element(edge)))
            adds = broadcast(builder, added.element(edge), vector)
            summed = builder.add(builder.load(sums_at(neighbor_index), align=width), adds)

            is_less = builder.icmp_signed("<", through, builder.load(best))
            is_tie = builder.icmp_signed("==", through, held)
            of_edge = builder.sext(is_tie, line.vector)
            builder.store(builder.or_(builder.load(ties), of_edge), ties)
            builder.store(builder.select(is_less, through, builder.load(best)), best)
            builder.store(builder.select(is_less, summed, builder.load(total)), total)

        line.store(builder.load(best), v_index)
        builder.store(builder.load(total), sums_at(v_index), align=width)
        return line.pack_bits(builder.icmp_unsigned("!=", builder.load(ties), none))

    number = lines[0].dtype
    return types.uint64(lines, v, is_set, edges, number, doublings), generate


@intrinsic
def compare_line(typing_context, lines, v, u, weight, doublings):
    """Compare line ``v`` with line ``u`` plus ``weight``. Return a uint64: of a line of n numbers,
    the lowest n bits say which numbers of ``v`` are equal to the sum, and the next n bits which are
    larger. n is 2 to the length of the tuple ``doublings``.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: two comparisons, whose bits are joined.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``u``, 3 ``weight``.
        """
        line = _Lines(context, builder, signature, args)
        numbers = line.load(line.integer(1))
        through = builder.add(line.load(line.integer(2)), line.broadcast(args[3]))
        equal = line.pack_bits(builder.icmp_signed("==", numbers, through))
        larger = line.pack_bits(builder.icmp_signed(">", numbers, through))
        return builder.or_(equal, builder.shl(larger, ir.Constant(_WORD, line.count)))

    return types.uint64(lines, v, u, lines.dtype, doublings), generate


@intrinsic
def clear_line(typing_context, lines, v, value, doublings):
    """Write one value to all numbers of a line: ``lines[v, :] = value``. The length of the tuple
    ``doublings`` is the binary logarithm of the numbers per line.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: store a vector of one value."""
        line = _Lines(context, builder, signature, args)
        line.store(line.broadcast(args[2]), line.integer(1))
        return context.get_dummy_value()

    return types.void(lines, v, lines.dtype, doublings), generate


@intrinsic
def prefetch_line(typing_context, lines, v, doublings):
    """Begin to load line ``v`` of ``lines`` into the cache. The length of the tuple ``doublings``
    is the binary logarithm of the numbers per line.
    """

    def generate(context, builder, signature, args):
        """Write the instruction that prefetches the line."""
        line = _Lines(context, builder, signature, args)
        line.prefetch(line.integer(1))
        return context.get_dummy_value()

    return types.void(lines, v, doublings), generate


@intrinsic
def prefetch_entry(typing_context, array, i):
    """Begin to load element ``i`` of an array of one dimension into the cache; do nothing if
    ``array`` is None.

    Nothing is read: ``i`` may be any number.
    """

    def generate(context, builder, signature, args):
        """Write the instruction that prefetches the element, or none for None."""
        if signature.args[0] == types.none:
            return context.get_dummy_value()
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        prefetch(builder, builder.gep(data, [index]))
        return context.get_dummy_value()

    return types.void(array, i), generate


@intrinsic
def turn_square(typing_context, lines, places, unreached, unit, rows, doublings):
    """Write a square of distances from lines to rows: ``rows[j, i] = lines[places[i], j] * unit``
    for as many i and j as a line has integers.

    ``lines`` has a line of integers per vertex, and ``rows`` a row of floats per source, whose
    elements are adjacent in memory. ``places`` has the line of each column of the square. Integers
    of ``unreached`` or more become infinite.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: load lines, convert them, transpose, and store rows.

        The arguments by position: 0 ``lines``, 1 ``places``, 2 ``unreached``, 3 ``unit``,
        4 ``rows``.
        """
        line = _Lines(context, builder, signature, args)
        (places,) = line.arrays(1)
        kind = signature.args[4]
        view = context.make_array(kind)(context, builder, args[4])
        vector = ir.VectorType(context.get_value_type(kind.dtype), line.count)
        infinite = ir.Constant(vector, [float("inf")] * line.count)
        nothing = line.broadcast(args[2])
        unit = broadcast(builder, args[3], vector)

        # One vector per place: the distances of a vertex, as floats.
        square = []
        for i in range(line.count):
            integers = line.load(places.index(ir.Constant(_WORD, i)))
            is_reached = builder.icmp_signed("<", integers, nothing)
            floats = builder.fmul(builder.sitofp(integers, vector), unit)
            square.append(builder.select(is_reached, floats, infinite))

        # One vector per source, after the transpose.
        _transpose(builder, square)
        for j, part in enumerate(square):
            indices = [ir.Constant(_WORD, j), ir.Constant(_WORD, 0)]
            place = cgutils.get_item_pointer(
                context, builder, kind, view, indices, wraparound=False
            )
            pointer = builder.bitcast(place, vector.as_pointer())
            builder.store(part, pointer, align=kind.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(lines, places, lines.dtype, rows.dtype, rows, doublings), generate


def _transpose(builder, square):
    """Generate the transpose of n vectors of n numbers, and write it to the list ``square``; n is a
    power of two.

    Each pass exchanges the blocks off the diagonal of each square of twice the stride. In the
    orders of a shuffle, numbers from ``count`` on stand for the second vector.
    """
    count = len(square)
    stride = 1
    while stride < count:
        # The order of each new vector: its own numbers on its side of the diagonal, and those of
        # the other vector, ``stride`` places away, on the other side.
        upper_order = list(range(count))
        lower_order = list(range(count, 2 * count))
        for j in range(count):
            if j & stride:
                upper_order[j] = count + j - stride
            else:
                lower_order[j] = j + stride
        to_upper = ir.Constant(ir.VectorType(_INT, count), upper_order)
        to_lower = ir.Constant(ir.VectorType(_INT, count), lower_order)
        for i in range(count):
            if not i & stride:
                upper = square[i]
                lower = square[i + stride]
                square[i] = builder.shuffle_vector(upper, lower, to_upper)
                square[i + stride] = builder.shuffle_vector(upper, lower, to_lower)
        stride *= 2
