"""Lines of integers inside Numba kernels: the smallest sums of a vertex from many sources, and
lines turned into rows.

A line holds the distances of one vertex from as many sources as ``doublings`` says, a tuple as in
``simd_distances``.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .simd_distances import _INT, _WORD, PREFETCH_DISTANCE, _Lines, broadcast, prefetch


@intrinsic
def lower_line(
    typing_context, lines, v, is_set, neighbors, begin, end, weights, unreached, doublings
):
    """Lower the line of a vertex to the smallest sums over its edges ``begin`` to ``end``.

    Integers of lines are at least 0 and at most ``unreached``, twice which fits their type. A line
    that is not set counts as unreached, whatever it holds.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        nothing = line.broadcast(args[7])
        flag = builder.icmp_unsigned("!=", args[2], ir.Constant(args[2].type, 0))
        here = line.integer(1)
        best = cgutils.alloca_once_value(builder, builder.select(flag, line.load(here), nothing))
        for edge, near in line.neighbors(3, line.integer(4), line.integer(5)):
            through = builder.add(near, line.broadcast(line.element(6, edge)))
            builder.store(line.smaller(through, builder.load(best)), best)
        line.store(builder.load(best), here)
        return context.get_dummy_value()

    return types.void(
        lines, v, is_set, neighbors, begin, end, weights, lines.dtype, doublings
    ), generate


@intrinsic
def lower_line_with_sums(
    typing_context,
    lines,
    v,
    is_set,
    neighbors,
    begin,
    end,
    weights,
    unreached,
    sums,
    entry_sums,
    before,
    doublings,
):
    """Lower the line of a vertex as ``lower_line`` does, and take the sums of the first edge that
    lowers it most. Write what the line held to ``before``, and return a bit for each number that an edge
    ties with.

    ``sums`` has a line per line of distances, and ``entry_sums`` what each edge adds to it.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        of_sums = context.make_array(signature.args[8])(context, builder, args[8]).data
        number = context.get_value_type(signature.args[8].dtype)
        vector = ir.VectorType(number, line.count)
        width = signature.args[8].dtype.bitwidth // 8

        def sums_at(place):
            first = builder.gep(of_sums, [builder.mul(place, ir.Constant(_WORD, line.count))])
            return builder.bitcast(first, vector.as_pointer())

        nothing = line.broadcast(args[7])
        flag = builder.icmp_unsigned("!=", args[2], ir.Constant(args[2].type, 0))
        here = line.integer(1)
        held = builder.select(flag, line.load(here), nothing)
        kept = builder.bitcast(line.data(10), line.vector.as_pointer())
        builder.store(held, kept, align=line.kind.bitwidth // 8)
        best = cgutils.alloca_once_value(builder, held)
        total = cgutils.alloca_once_value(builder, builder.load(sums_at(here), align=width))
        none = ir.Constant(line.vector, [0] * line.count)
        ties = cgutils.alloca_once_value(builder, none)
        last = builder.sub(line.size(3), ir.Constant(_WORD, 1))
        for edge, near in line.neighbors(3, line.integer(4), line.integer(5)):
            later = builder.add(edge, ir.Constant(_WORD, PREFETCH_DISTANCE))
            later = builder.select(builder.icmp_signed("<", later, last), later, last)
            prefetch(builder, sums_at(line.number_at(3, later)))
            there = line.number_at(3, edge)
            through = builder.add(near, line.broadcast(line.element(6, edge)))
            adds = broadcast(builder, line.element(9, edge), vector)
            summed = builder.add(builder.load(sums_at(there), align=width), adds)
            is_less = builder.icmp_signed("<", through, builder.load(best))
            is_tie = builder.icmp_signed("==", through, held)
            is_tie = builder.sext(is_tie, line.vector)
            builder.store(builder.or_(builder.load(ties), is_tie), ties)
            builder.store(builder.select(is_less, through, builder.load(best)), best)
            builder.store(builder.select(is_less, summed, builder.load(total)), total)
        line.store(builder.load(best), here)
        builder.store(builder.load(total), sums_at(here), align=width)
        return line.bits(builder.icmp_unsigned("!=", builder.load(ties), none))

    return types.uint64(
        lines,
        v,
        is_set,
        neighbors,
        begin,
        end,
        weights,
        lines.dtype,
        sums,
        entry_sums,
        before,
        doublings,
    ), generate


@intrinsic
def compare_line(typing_context, lines, v, u, weight, doublings):
    """Return a bit for each number of the line of ``v`` that is that of ``u`` plus a weight, and above
    those a bit for each that is larger.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        own = line.load(line.integer(1))
        through = builder.add(line.load(line.integer(2)), line.broadcast(args[3]))
        equal = line.bits(builder.icmp_signed("==", own, through))
        larger = line.bits(builder.icmp_signed(">", own, through))
        return builder.or_(equal, builder.shl(larger, ir.Constant(_WORD, line.count)))

    return types.uint64(lines, v, u, lines.dtype, doublings), generate


@intrinsic
def clear_line(typing_context, lines, v, value, doublings):
    """``lines[v, :] = value``."""

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        line.store(line.broadcast(args[2]), line.integer(1))
        return context.get_dummy_value()

    return types.void(lines, v, lines.dtype, doublings), generate


@intrinsic
def prefetch_line(typing_context, lines, v, doublings):
    """Begin to load the line of a vertex into the cache."""

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        line.prefetch(line.integer(1))
        return context.get_dummy_value()

    return types.void(lines, v, doublings), generate


@intrinsic
def prefetch_entry(typing_context, array, i):
    """Begin to load an element of an array of one dimension, unless it is None. Nothing is read:
    ``i`` may be any number.
    """

    def generate(context, builder, signature, args):
        if signature.args[0] == types.none:
            return context.get_dummy_value()
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        prefetch(builder, builder.gep(data, [at]))
        return context.get_dummy_value()

    return types.void(array, i), generate


@intrinsic
def turn_square(typing_context, lines, places, column, unreached, unit, rows, doublings):
    """``rows[j, column + i] = lines[places[column + i], j] * unit`` for as many i and j as a line
    has integers.

    Integers that are ``unreached`` become infinite. ``rows`` are floats in C order.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        kind = signature.args[5]
        view = context.make_array(kind)(context, builder, args[5])
        number = context.get_value_type(kind.dtype)
        vector = ir.VectorType(number, line.count)
        column = line.integer(2)
        infinite = ir.Constant(vector, [float("inf")] * line.count)
        nothing = line.broadcast(args[3])
        unit = broadcast(builder, args[4], vector)
        square = []
        for i in range(line.count):
            integers = line.load(line.number_at(1, builder.add(column, ir.Constant(_WORD, i))))
            is_reached = builder.icmp_signed("<", integers, nothing)
            floats = builder.fmul(builder.sitofp(integers, vector), unit)
            square.append(builder.select(is_reached, floats, infinite))
        stride = 1
        # exchange the blocks off the diagonal of each square of twice the stride
        while stride < line.count:
            low = [j if not j & stride else line.count + j - stride for j in range(line.count)]
            high = [j + stride if not j & stride else line.count + j for j in range(line.count)]
            low, high = (
                ir.Constant(ir.VectorType(_INT, line.count), order) for order in (low, high)
            )
            for i in range(line.count):
                if not i & stride:
                    upper = square[i]
                    lower = square[i + stride]
                    square[i] = builder.shuffle_vector(upper, lower, low)
                    square[i + stride] = builder.shuffle_vector(upper, lower, high)
            stride *= 2
        for j, part in enumerate(square):
            at = [ir.Constant(_WORD, j), column]
            place = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
            builder.store(
                part, builder.bitcast(place, vector.as_pointer()), align=kind.dtype.bitwidth // 8
            )
        return context.get_dummy_value()

    return types.void(lines, places, column, lines.dtype, rows.dtype, rows, doublings), generate
