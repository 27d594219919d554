"""The statistics of a reduction block of distances inside Numba kernels, in vector registers.

The compiler vectorizes neither extremes of floats nor sums that are folded in place, so the
instructions are written here: by ``generate``, whose ``args`` are values of the generated code that
stand for the arguments of the intrinsic.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .simd_distances import broadcast

WIDTH = 16  # distances of a vector
# Distances of a reduction block, which are summed in a fixed order; the GPU kernels have the same.
PIECE = 1024
_INT = ir.IntType(32)
_WORD = ir.IntType(64)
# Step s adds the vectors s + _STEPS * i of a block, for i below _TOGETHER. The product of both is
# PIECE / WIDTH.
_STEPS = 16
_TOGETHER = 4


def _add_by_halves(builder, values):
    """Generate the sum of a list of values of the generated code, by halves: value i and value
    i + half are added, until one is left. Their number is a power of two.
    """
    while len(values) > 1:
        half = len(values) // 2
        values = [builder.fadd(values[i], values[i + half]) for i in range(half)]
    return values[0]


@intrinsic
def statistics_of_block(typing_context, distances, first, limit, largest, extremes):
    """Return statistics of ``distances[first : first + PIECE]``, an array of floats.

    The result has the sum of the distances within ``limit``, that of the reciprocals of the
    positive ones, both float64 and added by halves, and the numbers of distances within the limit
    and of finite ones. ``largest`` is the largest finite number of their type. ``extremes``, of
    shape (2, WIDTH) and their type, holds the smallest distances of a row so far, and in its second
    row the largest ones: one per lane, a place in the vectors of ``WIDTH`` distances. They are
    updated by the distances within the limit.
    """

    def generate(context, builder, signature, args):
        """Write the instructions for the types of ``signature``, and return the tuple of
        results.
        """
        kind = signature.args[0].dtype
        number = context.get_value_type(kind)
        vector = ir.VectorType(number, WIDTH)
        wide = ir.VectorType(ir.DoubleType(), WIDTH)
        align = kind.bitwidth // 8
        block = context.make_array(signature.args[0])(context, builder, args[0]).data
        first = context.cast(builder, args[1], signature.args[1], types.intp)
        ends = context.make_array(signature.args[4])(context, builder, args[4]).data

        def vector_at(data, index):
            """Generate a pointer to the vector whose first number is element ``index`` of the array
            at the pointer ``data``.
            """
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        def lower_or_raise(extreme, sign, values, are_counted):
            """Generate the update of a vector of extremes: each lane takes the value of ``values``
            if it is counted and better, which is ``sign`` "<" or ">" the extreme.
            """
            best = builder.load(extreme)
            is_better = builder.and_(are_counted, builder.fcmp_ordered(sign, values, best))
            builder.store(builder.select(is_better, values, best), extreme)

        def count(counter, mask):
            """Generate the addition of the number of lanes that are set in ``mask`` to a
            counter.
            """
            n = builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(WIDTH))), _WORD)
            builder.store(builder.add(builder.load(counter), n), counter)

        limit = broadcast(builder, args[2], vector)
        largest = broadcast(builder, args[3], vector)
        zeros = ir.Constant(wide, [0.0] * WIDTH)
        ones = ir.Constant(wide, [1.0] * WIDTH)
        smallest_at = vector_at(ends, ir.Constant(_WORD, 0))
        farthest_at = vector_at(ends, ir.Constant(_WORD, WIDTH))
        nearest = cgutils.alloca_once_value(builder, builder.load(smallest_at, align=align))
        farthest = cgutils.alloca_once_value(builder, builder.load(farthest_at, align=align))
        n_within = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
        n_finite = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))

        # Each step reads some vectors, and leaves one vector of sums and one of reciprocals.
        step_sums = cgutils.alloca_once(builder, wide, size=_STEPS)
        step_reciprocals = cgutils.alloca_once(builder, wide, size=_STEPS)
        with cgutils.for_range(builder, ir.Constant(_WORD, _STEPS)) as loop:
            sums = []
            reciprocals = []
            for i in range(_TOGETHER):
                place = builder.add(loop.index, ir.Constant(_WORD, _STEPS * i))
                index = builder.add(first, builder.mul(place, ir.Constant(_WORD, WIDTH)))
                distances_of_step = builder.load(vector_at(block, index), align=align)
                are_within = builder.fcmp_ordered("<=", distances_of_step, limit)
                count(n_within, are_within)
                count(n_finite, builder.fcmp_ordered("<=", distances_of_step, largest))
                lower_or_raise(nearest, "<", distances_of_step, are_within)
                lower_or_raise(farthest, ">", distances_of_step, are_within)
                # Sums and reciprocals are float64, whatever type distances have.
                double = distances_of_step
                if number != ir.DoubleType():
                    double = builder.fpext(distances_of_step, wide)
                sums.append(builder.select(are_within, double, zeros))
                are_positive = builder.and_(are_within, builder.fcmp_ordered(">", double, zeros))
                reciprocals.append(builder.select(are_positive, builder.fdiv(ones, double), zeros))
            builder.store(_add_by_halves(builder, sums), builder.gep(step_sums, [loop.index]))
            builder.store(
                _add_by_halves(builder, reciprocals), builder.gep(step_reciprocals, [loop.index])
            )
        builder.store(builder.load(nearest), smallest_at, align=align)
        builder.store(builder.load(farthest), farthest_at, align=align)

        def fold(vectors):
            """Generate the sum of the vectors of all steps, and then of the lanes of the result."""
            steps = [ir.Constant(_WORD, i) for i in range(_STEPS)]
            folded = _add_by_halves(
                builder, [builder.load(builder.gep(vectors, [i])) for i in steps]
            )
            lanes = [ir.Constant(_INT, i) for i in range(WIDTH)]
            return _add_by_halves(builder, [builder.extract_element(folded, i) for i in lanes])

        statistics = [
            fold(step_sums),
            fold(step_reciprocals),
            builder.load(n_within),
            builder.load(n_finite),
        ]
        return context.make_tuple(builder, signature.return_type, statistics)

    returned = types.Tuple((types.float64, types.float64, types.int64, types.int64))
    return returned(distances, first, distances.dtype, distances.dtype, extremes), generate
