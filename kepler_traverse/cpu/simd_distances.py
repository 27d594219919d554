"""Lines of numbers inside Numba kernels: one number a source side by side, a line a vertex, and
vector instructions on them.

How many numbers a line has is read off the type of ``doublings``: a tuple of 3 stands for 2^3, a
short one to compile. Lines are the rows of a two-dimensional array in C order.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_INT = ir.IntType(32)

# edges before one is looked at, its line is prefetched: those of the next rows, too
PREFETCH_DISTANCE = 24


def prefetch(builder, place):
    """Generate code that begins to load what a pointer points to into the cache."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(
        function,
        [
            builder.bitcast(place, _BYTE.as_pointer()),
            *(ir.Constant(_INT, value) for value in (0, 3, 1)),
        ],
    )


def broadcast(builder, value, vector):
    """Generate a vector of a type with one value in all places."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(_INT, vector.count), [0] * vector.count)
    )


class _Array:
    """An array in the generated code. ``at`` and what is returned are values of that code."""

    def __init__(self, context, builder, kind, value):
        view = context.make_array(kind)(context, builder, value)
        self._context = context
        self._builder = builder
        self.kind = kind.dtype
        self.data = view.data
        self.size = view.nitems

    def element(self, at):
        return self._builder.load(self._builder.gep(self.data, [at]))

    def index(self, at):
        """An element as an index."""
        return self._context.cast(self._builder, self.element(at), self.kind, types.intp)


class _Lines:
    """What the intrinsics below share while code is generated.

    ``position`` is that of an argument of the intrinsic. The first argument is the array of lines,
    or a named tuple that begins with it. ``line`` and what is returned are values of the generated
    code.
    """

    def __init__(self, context, builder, signature, args):
        self._context = context
        self._builder = builder
        self._signature = signature
        self._args = args
        self._lines = self.arrays(0)[0]
        self.kind = self._lines.kind
        self.count = 1 << len(signature.args[-1])
        self.number = context.get_value_type(self.kind)
        self.vector = ir.VectorType(self.number, self.count)
        self.is_float = isinstance(self.kind, types.Float)

    def integer(self, position: int):
        return self._context.cast(
            self._builder, self._args[position], self._signature.args[position], types.intp
        )

    def arrays(self, position: int) -> list[_Array]:
        """The arrays of a named tuple, or one array that is an argument."""
        kind = self._signature.args[position]
        value = self._args[position]
        if isinstance(kind, types.Array):
            return [_Array(self._context, self._builder, kind, value)]
        return [
            _Array(self._context, self._builder, each, self._builder.extract_value(value, i))
            for i, each in enumerate(kind.types)
        ]

    def place(self, line):
        first = self._builder.mul(line, ir.Constant(_WORD, self.count))
        return self._builder.gep(self._lines.data, [first])

    def load(self, line):
        place = self._builder.bitcast(self.place(line), self.vector.as_pointer())
        return self._builder.load(place, align=self.kind.bitwidth // 8)

    def store(self, value, line):
        place = self._builder.bitcast(self.place(line), self.vector.as_pointer())
        self._builder.store(value, place, align=self.kind.bitwidth // 8)

    def prefetch(self, line):
        prefetch(self._builder, self.place(line))

    def broadcast(self, value):
        return broadcast(self._builder, value, self.vector)

    def farthest(self):
        if self.is_float:
            value = float("inf")
        else:
            value = 2**self.kind.bitwidth - 1
        return ir.Constant(self.vector, [value] * self.count)

    def compared(self, symbol: str, left, right):
        if self.is_float:
            return self._builder.fcmp_ordered(symbol, left, right)
        return self._builder.icmp_unsigned(symbol, left, right)

    def smaller(self, left, right):
        return self._builder.select(self.compared("<", left, right), left, right)

    def bits(self, of_lanes):
        return self._builder.zext(self._builder.bitcast(of_lanes, ir.IntType(self.count)), _WORD)

    def neighbors(self, v, offsets: _Array, heads: _Array):
        """Generate a loop over the adjacency list of a vertex.

        Yield the place of an edge, and the line of its head.
        """
        builder = self._builder
        one = ir.Constant(_WORD, 1)
        begin = offsets.index(v)
        end = offsets.index(builder.add(v, one))
        last = builder.sub(heads.size, one)
        with cgutils.for_range_slice(builder, begin, end, one, _WORD, inc=True) as (edge, _):
            later = builder.add(edge, ir.Constant(_WORD, PREFETCH_DISTANCE))
            later = builder.select(builder.icmp_signed("<", later, last), later, last)
            self.prefetch(heads.index(later))
            yield edge, self.load(heads.index(edge))


@intrinsic
def differing_hops(typing_context, lines, v, edges, limit, doublings):
    """A bit for each source whose hop count of ``v`` is not one more than the smallest of its
    neighbors.

    ``edges`` begins with offsets and neighbors. Hop counts are unsigned; the unreached have the
    largest number, and what is beyond the limit counts as unreached.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        offsets, neighbors, *_ = line.arrays(2)
        here = line.integer(1)
        best = cgutils.alloca_once_value(builder, line.farthest())
        for _, near in line.neighbors(here, offsets, neighbors):
            builder.store(line.smaller(builder.load(best), near), best)
        nearest = builder.load(best)
        # one more is within the limit
        is_near = line.compared("<", nearest, line.broadcast(args[3]))
        hops = builder.add(nearest, ir.Constant(line.vector, [1] * line.count))
        hops = builder.select(is_near, hops, line.farthest())
        return line.bits(line.compared("!=", hops, line.load(here)))

    return types.uint64(lines, v, edges, lines.dtype, doublings), generate


@intrinsic
def differing_sums(typing_context, lines, v, edges, limit, doublings):
    """Bits of sources whose distance of ``v`` is not the smallest sum, and not that of strictly
    nearer neighbors alone.

    ``edges`` has offsets, neighbors and weights. The unreached are at an infinite distance, and
    what is beyond the limit counts as unreached.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        offsets, neighbors, weights = line.arrays(2)
        here = line.load(line.integer(1))
        best = cgutils.alloca_once_value(builder, line.farthest())
        nearer = cgutils.alloca_once_value(builder, line.farthest())
        for edge, near in line.neighbors(line.integer(1), offsets, neighbors):
            through = builder.fadd(near, line.broadcast(weights.element(edge)))
            builder.store(line.smaller(through, builder.load(best)), best)
            through = builder.select(line.compared("<", near, here), through, line.farthest())
            builder.store(line.smaller(through, builder.load(nearer)), nearer)
        within = line.compared("<=", builder.load(best), line.broadcast(args[3]))
        nearest = builder.select(within, builder.load(best), line.farthest())
        bits = [
            line.bits(line.compared("!=", here, value)) for value in (nearest, builder.load(nearer))
        ]
        return context.make_tuple(builder, signature.return_type, bits)

    returned = types.UniTuple(types.uint64, 2)
    return returned(lines, v, edges, lines.dtype, doublings), generate


@intrinsic
def lower_by_line(typing_context, lines, v, u, weight, doublings):
    """Lower the line of ``v`` to that of ``u`` plus a weight, where this is at most ``lines[0]``.

    Return the least number that is new; if none is, infinity or the largest unsigned integer.
    """

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        here = line.load(line.integer(1))
        near = line.load(line.integer(2))
        limits = line.load(ir.Constant(_WORD, 0))
        if line.is_float:
            through = builder.fadd(near, line.broadcast(args[3]))
            is_within = line.compared("<=", through, limits)
        else:
            through = builder.add(near, line.broadcast(args[3]))
            # one more is within the limit, and no overflow
            is_within = line.compared("<", near, limits)
        is_new = builder.and_(is_within, line.compared("<", through, here))
        line.store(builder.select(is_new, through, here), line.integer(1))
        bits = ir.IntType(line.kind.bitwidth)  # those of floats of 0 or more are in their order
        new = builder.bitcast(
            builder.select(is_new, through, line.farthest()), ir.VectorType(bits, line.count)
        )
        name = f"llvm.vector.reduce.umin.v{line.count}i{line.kind.bitwidth}"
        least = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(bits, [new.type]), name
        )
        return builder.bitcast(builder.call(least, [new]), line.number)

    return lines.dtype(lines, v, u, lines.dtype, doublings), generate


@intrinsic
def lay_out(typing_context, lines, v, lane, rows, doublings):
    """``lines[v + i, lane + j] = rows[lane + j, v + i]`` for all i and j below ``square_side``."""

    def generate(context, builder, signature, args):
        line = _Lines(context, builder, signature, args)
        kind = signature.args[3]
        side = square_side(line.count)
        view = context.make_array(kind)(context, builder, args[3])
        first = line.integer(2)
        column = line.integer(1)
        squares = []
        for j in range(side):
            at = [builder.add(first, ir.Constant(_WORD, j)), column]
            place = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
            vector = ir.VectorType(context.get_value_type(kind.dtype), side)
            part = builder.load(
                builder.bitcast(place, vector.as_pointer()), align=kind.dtype.bitwidth // 8
            )
            squares.append(part)
        half = side // 2
        # Vectors that are half the square apart are zipped: each pair becomes two vectors, which
        # hold their numbers by turns. After log2(side) times, rows are columns.
        halves = []
        for first_of_half in (0, half):
            order = [i // 2 + side * (i % 2) + first_of_half for i in range(side)]
            halves.append(ir.Constant(ir.VectorType(_INT, side), order))
        for _ in range(side.bit_length() - 1):
            squares = [
                builder.shuffle_vector(squares[i // 2], squares[i // 2 + half], halves[i % 2])
                for i in range(side)
            ]
        for i, part in enumerate(squares):
            place = builder.gep(line.place(builder.add(column, ir.Constant(_WORD, i))), [first])
            builder.store(
                part, builder.bitcast(place, part.type.as_pointer()), align=line.kind.bitwidth // 8
            )
        return context.get_dummy_value()

    return types.void(lines, v, lane, rows, doublings), generate


def square_side(count: int) -> int:
    """Rows and columns of the square that ``lay_out`` turns, for lines of so many numbers."""
    return min(count, 16)
