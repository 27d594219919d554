"""Lines of numbers inside Numba kernels: one line per vertex, with one number per source side by
side, and vector instructions on them.

How many numbers a line has is read off the type of ``doublings``: a tuple of 3 stands for 2^3, a
short one to compile. Lines are the rows of a two-dimensional array in C order.

Each intrinsic is called while Numba finds the types of a kernel. It returns its own types, and
``generate``, which Numba calls later to write the instructions: with LLVM's ``builder``, and with
the values of the generated code that stand for the arguments, ``args``, in their order.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_INT = ir.IntType(32)

# The line at the end of an edge is prefetched when the edge so many places before it is looked at,
# which may be one of another vertex.
PREFETCH_DISTANCE = 24


def prefetch(builder, place):
    """Generate code that begins to load what ``place``, a pointer, points to into the cache."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    pointer = builder.bitcast(place, _BYTE.as_pointer())
    # to read, to keep in all levels of the cache, of data
    options = [ir.Constant(_INT, value) for value in (0, 3, 1)]
    builder.call(function, [pointer, *options])


def broadcast(builder, value, vector):
    """Generate a vector of the LLVM type ``vector`` with one value in all places."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


class _Array:
    """An array of one or two dimensions in the generated code.

    ``data``, a pointer to its elements, and ``size``, their number, are values of that code, and
    ``kind`` is the Numba type of an element. The constructor takes the Numba type of the array and
    its value. In the methods, ``at`` and what is returned are values of that code, too.
    """

    def __init__(self, context, builder, kind, value):
        view = context.make_array(kind)(context, builder, value)
        self._context = context
        self._builder = builder
        self.kind = kind.dtype
        self.data = view.data
        self.size = view.nitems

    def element(self, at):
        """Generate the load of element ``at``."""
        return self._builder.load(self._builder.gep(self.data, [at]))

    def index(self, at):
        """Generate the load of element ``at``, converted to the type of an index."""
        return self._context.cast(self._builder, self.element(at), self.kind, types.intp)


class _Lines:
    """What the intrinsics below share while code is generated.

    The constructor takes what Numba passes to ``generate``. In the methods, ``position`` is that of
    an argument of the intrinsic. The first argument is the array of lines, or a named tuple that
    begins with it, and the last argument is ``doublings``. ``line``, the number of a line, and what
    is returned are values of the generated code, and a line there is a vector.

    - ``kind``: the Numba type of the numbers; ``is_float``: whether they are floats.
    - ``count``: how many numbers a line has.
    - ``number``, ``vector``: the LLVM types of a number and of a line.
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
        """Generate the argument at a position, converted to the type of an index."""
        return self._context.cast(
            self._builder, self._args[position], self._signature.args[position], types.intp
        )

    def arrays(self, position: int) -> list[_Array]:
        """Return the arrays of the argument at a position: those of a named tuple, or one array."""
        kind = self._signature.args[position]
        value = self._args[position]
        if isinstance(kind, types.Array):
            return [_Array(self._context, self._builder, kind, value)]
        return [
            _Array(self._context, self._builder, each, self._builder.extract_value(value, i))
            for i, each in enumerate(kind.types)
        ]

    def place(self, line):
        """Generate a pointer to the first number of a line."""
        first = self._builder.mul(line, ir.Constant(_WORD, self.count))
        return self._builder.gep(self._lines.data, [first])

    def load(self, line):
        """Generate the load of a line; it is aligned as its numbers are, not as a vector."""
        place = self._builder.bitcast(self.place(line), self.vector.as_pointer())
        return self._builder.load(place, align=self.kind.bitwidth // 8)

    def store(self, value, line):
        """Generate the store of the vector ``value`` to a line."""
        place = self._builder.bitcast(self.place(line), self.vector.as_pointer())
        self._builder.store(value, place, align=self.kind.bitwidth // 8)

    def prefetch(self, line):
        """Generate code that begins to load a line into the cache."""
        prefetch(self._builder, self.place(line))

    def broadcast(self, value):
        """Generate a line with one value in all lanes, which are the places of its numbers."""
        return broadcast(self._builder, value, self.vector)

    def unreached(self):
        """Generate a line that has in all lanes the distance of an unreached vertex: infinity, or
        the largest unsigned integer.
        """
        if self.is_float:
            value = float("inf")
        else:
            value = 2**self.kind.bitwidth - 1
        return ir.Constant(self.vector, [value] * self.count)

    def compare(self, symbol: str, left, right):
        """Generate whether each number of the line ``left`` is, say, "<" that of ``right``: a
        vector of one bit per lane. Integers are compared as unsigned ones.
        """
        if self.is_float:
            return self._builder.fcmp_ordered(symbol, left, right)
        return self._builder.icmp_unsigned(symbol, left, right)

    def minimum(self, left, right):
        """Generate a line with the smaller of the numbers of two lines in each lane."""
        return self._builder.select(self.compare("<", left, right), left, right)

    def pack_bits(self, of_lanes):
        """Generate the bits of the lanes, a result of ``compare``, as one integer of 64 bits, in
        which lane 0 is the lowest.
        """
        return self._builder.zext(self._builder.bitcast(of_lanes, ir.IntType(self.count)), _WORD)

    def neighbors(self, v, offsets: _Array, heads: _Array):
        """Generate a loop over the edges of the vertex ``v``, whose body the caller generates.

        Yield once, inside the loop: the place of an edge, and the line of the vertex at its other
        end. ``offsets`` and ``heads`` are compressed sparse rows. Lines of later edges are
        prefetched.
        """
        builder = self._builder
        one = ir.Constant(_WORD, 1)
        begin = offsets.index(v)
        end = offsets.index(builder.add(v, one))
        last = builder.sub(heads.size, one)
        with cgutils.for_range_slice(builder, begin, end, one, _WORD, inc=True) as (edge, _):
            # not beyond the last head, which is read to find the line
            later = builder.add(edge, ir.Constant(_WORD, PREFETCH_DISTANCE))
            later = builder.select(builder.icmp_signed("<", later, last), later, last)
            self.prefetch(heads.index(later))
            yield edge, self.load(heads.index(edge))


@intrinsic
def differing_hops(typing_context, lines, v, edges, limit, doublings):
    """Return a uint64 with a bit for each source whose number of hops of ``v`` is not one more than
    the smallest of its in-neighbors.

    The certificate of many searches looks again at vertices with such a bit. A source has one at
    its own vertex. ``lines`` has a line of unsigned integers per vertex, the hops from each source,
    and the largest integer where unreached. ``edges`` begins with the offsets and heads of
    compressed sparse rows, in which the heads of ``v`` are the tails of the edges into it.
    ``limit`` is one for all sources: hops beyond it count as unreached.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: a loop over the edges, and then a comparison.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``edges``, 3 ``limit``.
        """
        line = _Lines(context, builder, signature, args)
        offsets, neighbors, *_ = line.arrays(2)
        v_index = line.integer(1)
        best = cgutils.alloca_once_value(builder, line.unreached())
        for _, neighbor_line in line.neighbors(v_index, offsets, neighbors):
            builder.store(line.minimum(builder.load(best), neighbor_line), best)

        nearest = builder.load(best)
        # Hops below the limit count, since one hop more is then within the limit.
        is_near = line.compare("<", nearest, line.broadcast(args[3]))
        hops = builder.add(nearest, ir.Constant(line.vector, [1] * line.count))
        hops = builder.select(is_near, hops, line.unreached())
        return line.pack_bits(line.compare("!=", hops, line.load(v_index)))

    return types.uint64(lines, v, edges, lines.dtype, doublings), generate


@intrinsic
def differing_sums(typing_context, lines, v, edges, limit, doublings):
    """Return two uint64 with a bit per source: whether the distance of ``v`` is not the smallest
    sum over its edges, and whether it is not the smallest sum over edges from strictly nearer
    in-neighbors.

    ``lines`` has a line of floats per vertex, the distances from each source, infinite where
    unreached. ``edges`` has the offsets, heads and weights of compressed sparse rows, in which the
    heads of ``v`` are the tails of the edges into it. For the first word, sums beyond ``limit``,
    one for all sources, count as unreached. The second word is meant for sources that reach ``v``
    within the limit; for others its bits say nothing.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: a loop over the edges, and then two comparisons.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``edges``, 3 ``limit``.
        """
        line = _Lines(context, builder, signature, args)
        offsets, neighbors, weights = line.arrays(2)
        own_line = line.load(line.integer(1))
        best = cgutils.alloca_once_value(builder, line.unreached())
        nearer = cgutils.alloca_once_value(builder, line.unreached())
        for edge, neighbor_line in line.neighbors(line.integer(1), offsets, neighbors):
            through = builder.fadd(neighbor_line, line.broadcast(weights.element(edge)))
            builder.store(line.minimum(through, builder.load(best)), best)
            through = builder.select(
                line.compare("<", neighbor_line, own_line), through, line.unreached()
            )
            builder.store(line.minimum(through, builder.load(nearer)), nearer)

        # An unreached vertex is right if its best sum is beyond the limit, so that this sum becomes
        # infinite. The sum from nearer neighbors needs no limit: its bit is read for reached
        # vertices only, whose distances are within the limit, and so differ from any sum beyond it.
        within = line.compare("<=", builder.load(best), line.broadcast(args[3]))
        nearest = builder.select(within, builder.load(best), line.unreached())
        bits = [
            line.pack_bits(line.compare("!=", own_line, value))
            for value in (nearest, builder.load(nearer))
        ]
        return context.make_tuple(builder, signature.return_type, bits)

    returned = types.UniTuple(types.uint64, 2)
    return returned(lines, v, edges, lines.dtype, doublings), generate


@intrinsic
def lower_by_line(typing_context, lines, v, u, weight, doublings):
    """Lower the numbers of line ``v`` to those of line ``u`` plus ``weight``, where these are
    smaller, and at most those of line 0, which holds the limit of each source.

    ``lines`` has a line of numbers per vertex, behind line 0. Return the smallest number that was
    written; if none was, infinity or the largest unsigned integer. Numbers are floats of 0 or more,
    or unsigned integers, of which ``weight`` is 1.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: lower the line, and find the smallest new number.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``u``, 3 ``weight``.
        """
        line = _Lines(context, builder, signature, args)
        v_line = line.load(line.integer(1))
        u_line = line.load(line.integer(2))
        limits = line.load(ir.Constant(_WORD, 0))

        if line.is_float:
            through = builder.fadd(u_line, line.broadcast(args[3]))
            is_within = line.compare("<=", through, limits)
        else:
            through = builder.add(u_line, line.broadcast(args[3]))
            # Compared before 1 is added: the sum is then within the limit, and has not overflowed.
            is_within = line.compare("<", u_line, limits)

        is_new = builder.and_(is_within, line.compare("<", through, v_line))
        line.store(builder.select(is_new, through, v_line), line.integer(1))

        # The minimum is that of unsigned integers: bits of floats of 0 or more are in their order.
        bits = ir.IntType(line.kind.bitwidth)
        lowered = builder.select(is_new, through, line.unreached())
        new = builder.bitcast(lowered, ir.VectorType(bits, line.count))
        name = f"llvm.vector.reduce.umin.v{line.count}i{line.kind.bitwidth}"
        least = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(bits, [new.type]), name
        )
        return builder.bitcast(builder.call(least, [new]), line.number)

    return lines.dtype(lines, v, u, lines.dtype, doublings), generate


@intrinsic
def lay_out(typing_context, lines, v, lane, rows, doublings):
    """Copy a square of distances from rows to lines: ``lines[v + i, lane + j] = rows[lane + j,
    v + i]`` for all i and j below ``square_side``.

    ``rows`` has a row of distances per source, and ``lines`` the same distances, a line per vertex.
    """

    def generate(context, builder, signature, args):
        """Write the instructions: load a square, transpose it, and store it.

        The arguments by position: 0 ``lines``, 1 ``v``, 2 ``lane``, 3 ``rows``.
        """
        line = _Lines(context, builder, signature, args)
        kind = signature.args[3]
        side = square_side(line.count)
        # One vector per source: its distances of ``side`` vertices.
        view = context.make_array(kind)(context, builder, args[3])
        first = line.integer(2)
        column = line.integer(1)
        square = []
        for j in range(side):
            indices = [builder.add(first, ir.Constant(_WORD, j)), column]
            place = cgutils.get_item_pointer(
                context, builder, kind, view, indices, wraparound=False
            )
            vector = ir.VectorType(context.get_value_type(kind.dtype), side)
            pointer = builder.bitcast(place, vector.as_pointer())
            square.append(builder.load(pointer, align=kind.dtype.bitwidth // 8))

        # Vectors that are half the square apart are zipped: each pair becomes two vectors, which
        # hold their numbers by turns. After log2(side) times, rows are columns.
        half = side // 2
        halves = []
        for first_of_half in (0, half):
            order = [i // 2 + side * (i % 2) + first_of_half for i in range(side)]
            halves.append(ir.Constant(ir.VectorType(_INT, side), order))
        for _ in range(side.bit_length() - 1):
            square = [
                builder.shuffle_vector(square[i // 2], square[i // 2 + half], halves[i % 2])
                for i in range(side)
            ]

        for i, part in enumerate(square):
            place = builder.gep(line.place(builder.add(column, ir.Constant(_WORD, i))), [first])
            pointer = builder.bitcast(place, part.type.as_pointer())
            builder.store(part, pointer, align=line.kind.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(lines, v, lane, rows, doublings), generate


def square_side(count: int) -> int:
    """Return the number of rows, and of columns, of the square that ``lay_out`` copies, for lines
    of ``count`` numbers. ``certificate.batch_cpu``, which calls it, computes the same number.
    """
    return min(count, 16)
