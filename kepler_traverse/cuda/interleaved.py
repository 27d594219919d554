"""Interleaved distances on a GPU: one line of integers per vertex, with the sums from all sources
side by side.

A sweep over a hierarchy finds distances in this form. To write them as one row per source takes
almost as long as to find them, so statistics and certificates read the lines. See interleaved.cu.
Memory traffic bounds all of it: for k sources, n vertices, m edges and sums of b bytes, rows take 2
k n b bytes, statistics k n b, and a certificate k (n + m) b less what the cache holds.
"""

from __future__ import annotations

import math
from collections import ChainMap
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arrays import as_distance
from . import cp
from .compiler import Request, kernel
from .distance_stats import _WORDS, PIECE, bins, fold_records
from .kernel_spec import WARP, Entry, make_entries
from .launch import Named, launch, launch_blocks, max_grid, resident_threads

BLOCK = 256
# 32-bit words of a column of lines that a thread block turns into a row at once: 256 sums of int32
TILE = 256
# the sum that stands for no path, by the type of sums
UNREACHED = {np.dtype(np.int32): 2**30, np.dtype(np.int64): 2**62}
_FILE = Path(__file__).parent / "kernels" / "interleaved.cu"
_CONSTANTS = (
    ("REDUCTION_BLOCK", PIECE),
    ("RECORD_WORDS", _WORDS),
    ("TILE", TILE),
    ("FLOAT_BYTES", 4),
    ("WORDS", 4),
)
_entry = make_entries(_FILE, BLOCK, constants=_CONSTANTS)
_TO_ROWS = _entry("interleaved_to_rows", block=2 * BLOCK)
_STATS = _entry("interleaved_stats")
_WEIGHTS = _entry("interleaved_weights")
_CHECK = _entry("interleaved_check_warp", item_threads=WARP)
ENTRIES = (_TO_ROWS, _STATS, _WEIGHTS, _CHECK)


def as_wide_as(kind: np.dtype) -> np.dtype:
    """Return the float type of the same width as an integer type.

    Kernels of this module are compiled for it as ``weight_t``, and take as sums the integers of its
    width.
    """
    return np.dtype(f"f{kind.itemsize}")


def words_per_thread(lanes: int, kind: np.dtype) -> int:
    """Return how many 32-bit words each thread reads at once of a line of ``lanes`` sums of the
    type ``kind``: 1, 2 or 4, so that warps of 32 threads divide the line without a rest.
    """
    words = lanes * kind.itemsize // 4 // WARP
    # For int64 the words are even, and so is the result: a thread reads whole sums.
    return math.gcd(words, 4)


def share_chunks(n_lines: int, lanes: int, kind: np.dtype) -> tuple[int, int]:
    """Divide lines into work items, each for one warp. Return the number of items, and the number
    of chunks of a line per item.

    A chunk is the part of a line that a warp reads at once. An item has as many chunks as possible,
    as long as there are enough items to fill the device. Lines have ``lanes`` sums of the type
    ``kind``.
    """
    n_chunks = lanes * kind.itemsize // (4 * WARP * words_per_thread(lanes, kind))
    per_item = n_chunks & -n_chunks  # the largest power of two that divides the number of chunks
    while per_item > 1 and n_lines * n_chunks // per_item < resident_threads() // WARP:
        per_item //= 2
    return n_lines * n_chunks // per_item, per_item


class Scale(NamedTuple):
    """What integer sums stand for: a distance is a sum times ``unit``."""

    unit: float  # a power of two, of which all distances are multiples
    dtype: Any  # float type of the graph's weights, in which distances are returned
    bound: int  # sums from this on are beyond the limit of the search, or mean no path
    highest: int  # the largest sum below ``bound`` that was found


class InterleavedDistances:
    """Distances from several sources to all vertices, interleaved: a line of memory per vertex has
    those from all sources. ``rows`` returns one row per source, as other strategies do.

    Callers use it like an array of rows: ``shape`` is (n_sources, n_vertices), ``size`` the number
    of distances, ``dtype`` the type of the rows, and an index selects sources.

    Parameters
    ----------
    lines : CuPy array, int32 or int64 of shape (n_vertices, lanes)
        Sums, which are distances in units, and ``UNREACHED`` where there is no path. ``lanes`` is a
        multiple of 32.
    n_sources : int
    scale : Scale
        The unit of the sums, and which sums are distances. Its fields are attributes, too.
    first : int
        The lane of the first source. The lanes of all other sources follow, in their order.
    """

    form = "interleaved"
    ndim = 2

    def __init__(
        self,
        lines: Any,
        n_sources: int,
        scale: Scale,
        first: int = 0,
    ):
        self.lines = lines
        self.scale = scale
        self.unit = scale.unit
        self.dtype = np.dtype(scale.dtype)
        self.bound = scale.bound
        self.highest = scale.highest
        self.first = first
        self.shape = (n_sources, lines.shape[0])
        self.size = n_sources * lines.shape[0]

    def __len__(self) -> int:
        """Return the number of sources."""
        return self.shape[0]

    def __getitem__(self, i: int | slice) -> Any:
        """Return the distances from source ``i`` as a row, a CuPy array of shape (n_vertices,).

        For a slice return those from a range of sources, interleaved and without a copy; with a
        step other than 1, rows.
        """
        if isinstance(i, slice):
            begin, end, step = i.indices(len(self))
            if step != 1:
                return self.rows()[i]
            return InterleavedDistances(
                self.lines, max(end - begin, 0), self.scale, self.first + begin
            )
        # by ``range`` a negative index counts from the end, and one out of bounds is an IndexError
        return self[range(len(self))[i] : range(len(self))[i] + 1].rows()[0]

    def copy(self) -> Any:
        """Return the distances in memory of their own, as rows: one per source."""
        return self.rows()

    def rows(self, columns: Any = None, out: Any = None) -> Any:
        """Return distances as rows, a CuPy array of shape (n_sources, n_columns), infinite where
        there is no path or it is beyond the limit. It is ``out`` if that is given.

        ``columns``, a CuPy int64 array, has the vertex number of each column; by default there is
        one for each vertex, in order.
        """
        n_columns = self.shape[1] if columns is None else columns.size
        rows = out
        if rows is None:
            rows = cp.empty((len(self), n_columns), self.dtype)
        if not rows.size:
            return rows

        args = self._arguments() | {
            "columns": columns,
            "n_columns": np.int64(n_columns),
            "row_pitch": np.int64(n_columns),
            "rows": rows.reshape(-1).view(np.uint8),
        }
        # a block converts a tile: TILE words of columns, for 32 sources
        tiles = -(-n_columns * self.lines.itemsize // (4 * TILE)) * -(-len(self) // WARP)
        launch_blocks(self._kernel(_TO_ROWS), min(tiles, max_grid(_TO_ROWS.block)), args)
        return rows

    def any_beyond(self, bound: int) -> bool:
        """Return whether a distance is ``bound`` or more, so that rounding may have changed it.
        Distances are not negative here.
        """
        return bool(self.highest * self.unit >= bound)

    def bins(
        self, limit: Any, bins_per_unit: np.ndarray, before: np.ndarray, n_bins: int
    ) -> np.ndarray:
        """Count the distances of each source in bins of equal width; return NumPy int64 of shape
        (n_sources, n_bins).

        Distances above ``limit``, None for none, do not count. ``bins_per_unit``, float64, and
        ``before``, int64, have a number per source: a distance d is in bin
        ``floor(d * bins_per_unit) - before``.
        """
        if limit is None:
            limit = math.inf
        # at most the largest finite number, as vertices without a path are infinite in the rows
        bound = min(as_distance(limit, self.dtype), np.finfo(self.dtype).max)
        return bins(self.rows(), bound, bins_per_unit, before, n_bins)

    def stats(self, offsets: Any, limit: Any) -> tuple[Any, ...]:
        """Return statistics of distances, NumPy arrays with one number per source: what
        ``cuda.distance_stats.statistics`` returns, with the same bits.

        ``offsets`` are those of the CSR. Distances above ``limit`` do not count; None is no limit.
        """
        k, n = self.shape
        # A record per source and block of PIECE vertices. ``fold_records`` reduces those of a
        # source to one.
        n_blocks = -(-n // PIECE)
        records = cp.empty((k, n_blocks, _WORDS), np.int64)
        # the largest sum that counts
        largest = min(sums_up_to(limit, self.unit, self.lines.dtype), self.bound - 1)
        args = self._arguments() | {
            "n_vertices": np.int64(n),
            "limit": self.lines.dtype.type(largest),
            "offsets": offsets,
            "records": records,
        }
        launch_blocks(self._kernel(_STATS), min(n_blocks * -(-k // BLOCK), max_grid(BLOCK)), args)
        return fold_records(records, self.dtype)

    def is_certified(self, reverse: Any, in_units: Any, sources: np.ndarray, limit: Any) -> bool:
        """Return whether all distances obey the rules of a certificate, which prove them right:
        that of a source is 0, and another one is the smallest over the edges that lead to the
        vertex.

        ``reverse`` is the reverse graph, and ``in_units`` has the weights of its edges as
        multiples of the unit (see ``EdgeWeights``). ``sources`` are vertex numbers, NumPy. The
        distances are complete up to ``limit``. Which distances violate a rule is not said; a check
        of rows finds that out.

        Raises
        ------
        ValueError
            The sources do not begin at lane 0, or weights and sums differ in type.
        """
        if self.first or self.lines.dtype != in_units.dtype:
            raise ValueError("certificates read whole lines, with sums of the type of the weights")
        kind = self.lines.dtype
        violations = cp.zeros(1, np.int64)  # a kernel counts here what breaks a rule
        n_items, per_item = share_chunks(self.shape[1], self.lines.shape[1], kind)
        args = self._arguments() | {
            "chunks_per_item": np.int32(per_item),
            "offsets": reverse.offsets,
            "neighbors": reverse.targets,
            "weights": in_units,
            "n_vertices": np.int64(self.shape[1]),
            "sources": cp.asarray(sources),
            "limit": kind.type(sums_up_to(limit, self.unit, kind)),  # the largest sum within it
            "violations": violations,
        }
        entry = self._kernel(_CHECK, WORDS=words_per_thread(self.lines.shape[1], kind))
        launch(entry, n_items, args)
        return not int(violations.get()[0])

    def _arguments(self) -> Named:
        """Return arguments that kernels of this module take, by name. A launch takes from a
        ``ChainMap`` those that the kernel declares.
        """
        return ChainMap(
            {
                "lines": self.lines,
                "pitch": np.int64(self.lines.shape[1]),
                "first": np.int64(self.first),
                "n_sources": np.int64(len(self)),
                "bound": self.lines.dtype.type(self.bound),
                "unit": np.float64(self.unit),
            }
        )

    def _kernel(self, entry: Entry, **constants: Any) -> Any:
        """Return a kernel for the types of the distances and of the lines. ``constants`` are other
        compile-time constants of it.
        """
        return kernel(
            entry.variant(FLOAT_BYTES=self.dtype.itemsize, **constants),
            np.int32,
            as_wide_as(self.lines.dtype),
        )


class EdgeWeights:
    """The weights of a graph as multiples of a unit, for certificates of interleaved distances.

    Parameters
    ----------
    graph : Graph
        Its reverse graph is made if it is not there yet.
    unit : float
        A power of two.
    kind : dtype
        int32 or int64, the type of the sums.

    Attributes
    ----------
    in_units : CuPy array of shape (n_edges,)
        The weights of the edges of the reverse graph, divided by the unit, of the type ``kind``.
    fits : bool
        Whether all weights are positive multiples of the unit. If not, distances are certified as
        rows, and ``in_units`` is not used.
    """

    def __init__(self, graph: Any, unit: float, kind: np.dtype):
        reverse = graph.reverse
        self.in_units = cp.empty(reverse.n_edges, kind)
        misfits = cp.zeros(1, np.int64)
        args = {
            "weights": reverse.weights.view(np.uint8),
            "n_edges": np.int64(reverse.n_edges),
            "unit": np.float64(unit),
            "in_units": self.in_units,
            "misfits": misfits,
        }
        entry = _WEIGHTS.variant(FLOAT_BYTES=reverse.weights.dtype.itemsize)
        launch(kernel(entry, np.int32, as_wide_as(kind)), reverse.n_edges, args)
        self.fits = not int(misfits.get()[0])


def sums_up_to(limit: Any, unit: float, kind: np.dtype) -> int:
    """Return the largest sum, in units, whose distance is within ``limit``. Without a limit, None
    or infinite, return the largest sum that is a distance.

    ``kind`` is the type of the sums. Those from ``UNREACHED`` on stand for no path.
    """
    largest = UNREACHED[np.dtype(kind)] - 1
    # Fractions, so that the quotient is not rounded up to the next sum.
    if limit is None or math.isinf(limit):
        return largest
    return min(largest, math.floor(Fraction(limit) / Fraction(unit)))


def likely_kernels(kind: np.dtype, dtype: np.dtype) -> list[Request]:
    """Return requests for the kernels that a plan is likely to need whose lines have integers of
    the type ``kind``, and whose rows have distances of the type ``dtype``.
    """
    return [
        Request(_TO_ROWS.variant(FLOAT_BYTES=np.dtype(dtype).itemsize), np.int32, as_wide_as(kind))
    ]
