"""The statistics of a reduction block of distances inside Numba kernels, in vector registers.

The compiler vectorizes neither extremes of floats nor sums that are folded in place, so the
instructions are written here.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .simd_distances import broadcast

WIDTH = 16  # distances of a vector
PIECE = 1024  # distances of a reduction block; the kernels', too
_INT = ir.IntType(32)
_WORD = ir.IntType(64)
# a step adds the vectors ``step + _STEPS * i`` of a block; the product is PIECE / WIDTH
_STEPS = 16
_TOGETHER = 4


def _tree(builder, values):
    """Add values by halves: value i and value i + half of them."""
    while len(values) > 1:
        half = len(values) // 2
        values = [builder.fadd(values[i], values[i + half]) for i in range(half)]
    return values[0]


@intrinsic
def statistics_of_block(typing_context, distances, first, limit, largest, extremes):
    """Return figures of ``distances[first : first + PIECE]``, floats: sums, folded by halves, and
    counts.

    Distances beyond ``limit`` are ignored, and ``largest`` is the largest finite number.
    ``extremes``, of shape (2, WIDTH) and their type, are lowered to the smallest, and raised to the
    largest distances within the limit. The figures are the sum of the distances within the limit,
    that of the reciprocals of the positive ones, and the numbers of distances within the limit and
    of finite ones.
    """

    def generate(context, builder, signature, args):
        kind = signature.args[0].dtype
        number = context.get_value_type(kind)
        vector = ir.VectorType(number, WIDTH)
        wide = ir.VectorType(ir.DoubleType(), WIDTH)
        align = kind.bitwidth // 8
        first = context.cast(builder, args[1], signature.args[1], types.intp)
        data = builder.gep(
            context.make_array(signature.args[0])(context, builder, args[0]).data, [first]
        )
        ends = context.make_array(signature.args[4])(context, builder, args[4]).data

        def count(mask):
            return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(WIDTH))), _WORD)

        limit, largest = (broadcast(builder, value, vector) for value in args[2:4])
        zeros, ones = (ir.Constant(wide, [value] * WIDTH) for value in (0.0, 1.0))
        near, far = (
            cgutils.alloca_once_value(builder, builder.load(place, align=align))
            for place in (
                builder.bitcast(builder.gep(ends, [ir.Constant(_WORD, at)]), vector.as_pointer())
                for at in (0, WIDTH)
            )
        )
        counts = [cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0)) for _ in range(2)]
        parts = [cgutils.alloca_once(builder, wide, size=_STEPS) for _ in range(2)]
        with cgutils.for_range(builder, ir.Constant(_WORD, _STEPS)) as loop:
            sums = []
            reciprocals = []
            for i in range(_TOGETHER):
                at = builder.mul(
                    builder.add(loop.index, ir.Constant(_WORD, _STEPS * i)),
                    ir.Constant(_WORD, WIDTH),
                )
                here = builder.load(
                    builder.bitcast(builder.gep(data, [at]), vector.as_pointer()), align=align
                )
                counted = builder.fcmp_ordered("<=", here, limit)
                for counter, mask in zip(
                    counts, (counted, builder.fcmp_ordered("<=", here, largest)), strict=True
                ):
                    builder.store(builder.add(builder.load(counter), count(mask)), counter)
                for extreme, sign in ((near, "<"), (far, ">")):
                    best = builder.load(extreme)
                    is_better = builder.and_(counted, builder.fcmp_ordered(sign, here, best))
                    builder.store(builder.select(is_better, here, best), extreme)
                if number == ir.DoubleType():
                    double = here
                else:
                    double = builder.fpext(here, wide)
                sums.append(builder.select(counted, double, zeros))
                is_positive = builder.and_(counted, builder.fcmp_ordered(">", double, zeros))
                reciprocals.append(builder.select(is_positive, builder.fdiv(ones, double), zeros))
            for values, to in zip((sums, reciprocals), parts, strict=True):
                builder.store(_tree(builder, values), builder.gep(to, [loop.index]))
        for extreme, at in ((near, 0), (far, WIDTH)):
            place = builder.bitcast(
                builder.gep(ends, [ir.Constant(_WORD, at)]), vector.as_pointer()
            )
            builder.store(builder.load(extreme), place, align=align)
        totals = []
        for part in parts:
            folded = _tree(
                builder,
                [builder.load(builder.gep(part, [ir.Constant(_WORD, i)])) for i in range(_STEPS)],
            )
            totals.append(
                _tree(
                    builder,
                    [builder.extract_element(folded, ir.Constant(_INT, i)) for i in range(WIDTH)],
                )
            )
        return context.make_tuple(
            builder, signature.return_type, [*totals, *map(builder.load, counts)]
        )

    returned = types.Tuple((types.float64, types.float64, types.int64, types.int64))
    return returned(distances, first, distances.dtype, distances.dtype, extremes), generate
