"""Searches on a GPU that touch only what they reach, one source per thread block; see
short_search.cu.

A search keeps the vertices that it reaches in a hash table, of which there are several sizes
(tiers). A search whose table is full is repeated with a larger one, the last of which holds all
vertices. The result of a search is a row: its vertices, ascending, and their distances. Rows come
to host memory, where all results are computed from them: they are as short as the searches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array
from ..errors import CapacityError
from . import cp
from .compiler import Kernel, Request, kernel
from .kernel_spec import WARP, Entry
from .launch import blocks_at_once, launch, launch_blocks

_FILE = Path(__file__).parent / "kernels" / "short_search.cu"
_CONSTANTS = (("IN_SHARED", 1), ("HOPS", 0))
_SEARCH = Entry("short_search_block", _FILE, WARP, constants=_CONSTANTS)
_GATHER = Entry("short_search_gather_warp", _FILE, WARP, item_threads=WARP, constants=_CONSTANTS)
ENTRIES = (_SEARCH, _GATHER)
MAX_TABLE_BYTES = 1 << 29  # of all tables in global memory
# What the kernel writes in place of the begin of a row that it has not stored:
_TABLE_IS_FULL = -1  # the search reached too many vertices for its table
_NO_CAPACITY = -2  # the memory for all rows was used up
_MAX_LOG_CAPACITY = 30  # of the largest table
_VERTICES = 64  # vertices per source, before a search has shown how many there are
_SMALL_LOG_CAPACITY = 17  # of the first table in global memory, which most searches fit into


class Tier(NamedTuple):
    """One size of the table in which a search keeps what it reaches. A search whose table is full
    goes on to the next tier.
    """

    block: int  # threads of a block, which makes one search at a time
    log_capacity: int  # binary logarithm of the slots of its table
    in_shared: bool  # whether the table is in shared memory, and not in global memory


IN_SHARED = (Tier(32, 8, True), Tier(128, 11, True), Tier(128, 13, True))


class Rows(NamedTuple):
    """What several searches reach: NumPy arrays, one row after the other."""

    sizes: np.ndarray  # int64 array of shape (k,): vertices that each search reaches
    # Array of shape (k,), of the type of distances: the distance up to which each row is complete.
    # It is the limit, or less if a search has reached its targets before.
    stops: np.ndarray
    vertices: np.ndarray  # int32 array of the sum of sizes: vertex numbers, ascending in each row
    distance: np.ndarray  # array of the same length: the distance of each, of the type of distances


class ShortSearches:
    """The searches of a plan, in a graph on a GPU with 32-bit vertex numbers and without negative
    weights.

    It remembers from its searches with which tier of tables, and with how much memory for rows, the
    next ones should begin.

    Parameters
    ----------
    graph : Graph
    weights : CuPy array of shape (n_edges,) or None
        Weights of the type of distances; None to count hops.
    kind : dtype
        Type of distances: int32 for hops, else float32 or float64.
    goals : tuple of three NumPy int32 arrays
        Groups of vertices. A search ends when it has reached as many of the nearest vertices of
        each group as the group needs. The arrays say, of shape (n_vertices + 1,), where the groups
        of each vertex begin in the second array; the numbers of groups; and, of shape (n_groups,),
        how many vertices each needs. All are empty if searches have no such end.
    """

    def __init__(self, graph: Any, weights: Array, kind: np.dtype, goals: tuple[np.ndarray, ...]):
        self._edges = {"offsets": graph.offsets, "targets": graph.targets, "weights": weights}
        self._n_vertices = graph.n_vertices
        self._kind = kind
        n_groups = goals[-1].size
        self._goals: dict[str, Any] = {"n_groups": np.int32(n_groups)}
        for name, array in zip(("first_group", "groups", "needs"), goals, strict=True):
            self._goals[name] = cp.asarray(array) if n_groups else None
        # Kernels handle distances as integers of their width (keys). As no distance is negative,
        # the order of the bits of floats is that of the floats.
        self._key_dtype = np.dtype(f"i{self._kind.itemsize}")

        # The last table has two slots per vertex of the graph, rounded up to a power of two whose
        # exponent is ``largest``: at least twice the slots of the largest table in shared memory,
        # and at most 2 ** _MAX_LOG_CAPACITY.
        last_in_shared = IN_SHARED[-1]
        log_capacity = (2 * graph.n_vertices - 1).bit_length()
        largest = min(max(last_in_shared.log_capacity + 1, log_capacity), _MAX_LOG_CAPACITY)
        self._tiers = list(IN_SHARED)
        for log_capacity in sorted({min(_SMALL_LOG_CAPACITY, largest), largest}):
            self._tiers.append(Tier(last_in_shared.block, log_capacity, False))
        self._first_tier = 0  # number of the tier that the next search begins with
        self._vertices_per_source = float(_VERTICES)  # in the rows of the last searches, on average

    def rows(
        self,
        sources: np.ndarray,
        limits: np.ndarray,
        lists: np.ndarray,
        list_of: np.ndarray,
        tiers: int | None = None,
    ) -> Rows | None:
        """Search from several vertices.

        Parameters
        ----------
        sources : int64 array of shape (k,)
            Vertex numbers.
        limits : array of shape (k,), of the type of distances
            Vertices that are farther are not reached. A source whose limit is below 0 is not
            searched from, and its row is empty.
        lists : int64 array
            Vertex numbers of the targets of all sources. A search ends once all its targets are
            reached.
        list_of : int64 array of shape (k, 2)
            Where in ``lists`` the targets of each source begin and end.
        tiers : int, optional
            How many sizes of tables may be tried, from the smallest on; by default all.

        Returns
        -------
        Rows or None
            None if a search reaches more vertices than the tables of these tiers hold.

        Raises
        ------
        CapacityError
            A search reaches more vertices than the largest table holds.
        """
        k = sources.size
        sizes = np.zeros(k, np.int64)  # number of vertices of each row
        stops = limits.copy()  # distance up to which each row is complete
        positions_left = np.arange(k)  # in ``sources``: those whose tables have been full so far
        parts = []  # (positions in ``sources``, arrays of a launch with their rows)

        # The kernel takes no infinite limit. For a search that stops at the largest finite number
        # in place of one, the limit of the caller is returned.
        if self._kind.kind == "i":
            finite = np.iinfo(self._kind).max
        else:
            finite = np.finfo(self._kind).max
        per_source = {
            "sources": sources,
            "limits": np.minimum(limits, finite).view(self._key_dtype),
            "list_of": list_of,
        }
        targets = cp.asarray(lists) if lists.size else None

        # Each tier searches from the sources that were too large for the tiers before it.
        for number in range(self._first_tier, len(self._tiers[:tiers])):
            positions_left, searched = self._search_tier(
                self._tiers[number], per_source, targets, positions_left
            )
            parts += searched
            for positions, part in searched:
                sizes[positions] = _copy_to_host(part["sizes"])
                stop_keys = _copy_to_host(part["stops"])
                stops[positions] = np.where(
                    stop_keys < per_source["limits"][positions],
                    stop_keys.view(self._kind),
                    limits[positions],
                )
            if not positions_left.size:
                break
            # If most sources were too large for this tier, later calls begin with the next one.
            self._first_tier = number + (2 * positions_left.size > k)
        if positions_left.size and tiers is None:
            raise CapacityError(
                "a short search on a GPU holds fewer than 2^30 vertices; leave strategy='auto'"
            )
        if positions_left.size:
            return None
        if k:
            self._vertices_per_source = max(float(sizes.mean()), 1.0)
        return self._gather_rows(sizes, stops, parts)

    def _search_tier(
        self,
        tier: Tier,
        per_source: dict[str, np.ndarray],
        targets: Array | None,
        positions: np.ndarray,
    ) -> tuple[np.ndarray, list[Any]]:
        """Search from the sources at some positions with tables of one tier.

        ``per_source`` has arrays with an entry per source, by the names of the kernel's arguments.
        Return the positions whose table was full; and for all other sources, launch by launch,
        their positions and the arrays of ``_launch``. Launches are repeated while there is too
        little memory for all rows.
        """
        full: list[np.ndarray] = []
        searched: list[Any] = []
        # Vertices of all rows, with a margin, so that few rows lack memory.
        capacity = int(1.25 * self._vertices_per_source * positions.size) + 1024
        while positions.size:
            arguments = {name: cp.asarray(each[positions]) for name, each in per_source.items()}
            arrays = self._launch(tier, arguments, targets, capacity)

            # A row begins at 0 or later; a negative number says why it is not stored.
            begins = _copy_to_host(arrays["begins"])
            if begins.min() >= 0:
                searched.append((positions, arrays))
                positions = positions[:0]
                break
            searched_here = np.flatnonzero(begins >= 0)
            chosen = {
                name: arrays[name][cp.asarray(searched_here)]
                for name in ("begins", "sizes", "stops")
            }
            searched.append((positions[searched_here], arrays | chosen))
            full.append(positions[begins == _TABLE_IS_FULL])
            # Sources whose rows found no memory are searched again, with as much memory as all rows
            # of this launch would have needed.
            positions = positions[begins == _NO_CAPACITY]
            capacity = int(arrays["used"].get()[0])
        # ``positions`` is empty here. It makes an array of the right type if no table was full.
        return np.concatenate([*full, positions]), searched

    def _launch(
        self, tier: Tier, per_source: dict[str, Array], targets: Array | None, capacity: int
    ) -> dict[str, Any]:
        """Search from some sources with tables of one tier. Return the arguments of the kernel by
        name, among them the CuPy arrays that it writes.

        ``per_source`` has the arguments with an entry per source, and ``targets`` the target
        vertices of all sources, None without any. ``capacity`` is the number of vertices that all
        rows together may have.

        The kernel writes, per source, ``begins`` and ``sizes``, int64: where its row begins and
        how many vertices it has; and ``stops``: the distance up to which it is complete, as a key.
        Of all rows it writes ``vertices``, int32, and ``distances``, as keys; and ``used``: how
        many vertices all rows have, which may be more than the capacity.
        """
        search = self._kernel(_SEARCH, tier)
        k = per_source["sources"].size
        table_bytes = self._table_bytes(tier)
        shared = table_bytes if tier.in_shared else 0
        # Each block takes one source after the other, with one table.
        blocks = min(k, blocks_at_once(search, shared))  # as many as the device runs at once
        if not tier.in_shared:
            # as many tables as MAX_TABLE_BYTES hold, and one even if it is larger
            blocks = max(1, min(blocks, MAX_TABLE_BYTES // table_bytes))
        args = {
            **self._edges,
            **self._goals,
            **per_source,
            "lists": targets,
            "n_sources": np.int64(k),
            "taken": cp.zeros(1, np.int64),
            "stops": cp.empty(k, self._key_dtype),
            "log_capacity": np.int32(tier.log_capacity),
            "tables": None if tier.in_shared else cp.empty(blocks * table_bytes, np.uint8),
            "table_bytes": np.int64(table_bytes),
            "begins": cp.empty(k, np.int64),
            "sizes": cp.empty(k, np.int64),
            "max_vertices": np.int64(capacity),
            "used": cp.zeros(1, np.int64),
            "vertices": cp.empty(capacity, np.int32),
            "distances": cp.empty(capacity, self._key_dtype),
        }
        launch_blocks(search, blocks, args, shared_bytes=shared)
        return args

    def _table_bytes(self, tier: Tier) -> int:
        """Return the bytes of the table of a search in one tier."""
        capacity = 1 << tier.log_capacity
        # two bits per slot, in words of 32 bits: whether it is queued, in even and in odd rounds
        marks = 8 * (-(-capacity // 32))
        size = capacity * bytes_per_slot(self._kind.itemsize, tier.in_shared) + marks + 4
        return -(-size // 8) * 8  # so that the next table is aligned

    def _gather_rows(self, sizes: np.ndarray, stops: np.ndarray, parts: list[Any]) -> Rows:
        """Copy rows into the order of the sources, and to host memory.

        ``sizes`` has the number of vertices of each row, and ``stops`` the distance up to which it
        is complete, both in the order of the sources. ``parts`` has, by launch, the positions of
        its sources, and the arrays that ``_launch`` returned with their rows.
        """
        ends = np.cumsum(sizes)  # of the rows, in the order of the sources
        total = int(ends[-1]) if ends.size else 0
        vertices = cp.empty(total, np.int32)
        distances = cp.empty(total, self._key_dtype)
        for positions, arrays in parts:
            rows = (
                arrays["begins"],
                arrays["sizes"],
                cp.asarray((ends - sizes)[positions]),
                np.int64(positions.size),
            )
            args = *rows, arrays["vertices"], arrays["distances"], vertices, distances
            # the kernel of any tier would do, as it reads no table
            launch(self._kernel(_GATHER, IN_SHARED[0]), positions.size, args)
        return Rows(
            sizes, stops, _copy_to_host(vertices), _copy_to_host(distances).view(self._kind)
        )

    def _kernel(self, entry: Entry, tier: Tier) -> Kernel:
        """Return the kernel of an entry point for tables of a tier and the type of distances."""
        return kernel(*_request(entry, tier, self._kind))


def bytes_per_slot(width: int, in_shared: bool) -> int:
    """Return the bytes that a table needs per slot: a distance of ``width`` bytes, a vertex number,
    and a place in each of three lists of slots. A table in shared memory is so small that the
    number of a slot takes 2 bytes.
    """
    return width + 4 + 3 * (2 if in_shared else 4)


def likely_kernels(kind: np.dtype) -> list[Request]:
    """Return requests for the kernels that searches with distances of this type are likely to need:
    those of the two smallest tiers.
    """
    return [_request(_SEARCH, tier, kind) for tier in IN_SHARED[:2]]


def _request(entry: Entry, tier: Tier, kind: np.dtype) -> Request:
    """Return a request for the kernel of an entry point for tables of a tier and distances of the
    type ``kind``, which is an integer type for hops.
    """
    hops = int(kind.kind == "i")
    variant = entry.variant(block=tier.block, IN_SHARED=int(tier.in_shared), HOPS=hops)
    return Request(variant, np.int32, np.float32 if hops else kind)


def _copy_to_host(array: Array) -> np.ndarray:
    """Return a copy of a CuPy array in pinned host memory, which the device writes directly.

    CuPy keeps such memory for the next copy of the same size, so sizes are rounded up to few
    different ones.
    """
    # a power of two that is at least an eighth of the size
    unit = 1 << max(array.nbytes.bit_length() - 3, 0)
    on_host = np.frombuffer(
        cp.cuda.alloc_pinned_memory(max(-(-array.nbytes // unit) * unit, 1)),
        array.dtype,
        array.size,
    )
    return array.get(out=on_host) if array.size else on_host
