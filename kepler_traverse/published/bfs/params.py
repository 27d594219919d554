"""The knobs of the published BFS systems. The defaults are the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InputError

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex
BLOCKS = (32, 64, 128, 256, 512, 1024)

MAX_DEFERRED = 4096  # vertices; with 64-bit numbers 32 KiB of the 48 KiB that a block has by default


def check_knobs(strategy: str, knobs: Any, *rules: tuple[str, str, bool]) -> None:
    """Reject the first knob that does not fit. A rule is the name of a knob, what is expected, and whether it fits."""
    for name, expected, fits in rules:
        if not fits:
            raise InputError(f"knob {name} of {strategy} must be {expected}, not {getattr(knobs, name)!r}")


def is_whole(value: Any, minimum: int, maximum: int) -> bool:
    """Whether a value is a whole number from ``minimum`` to ``maximum``."""
    return not isinstance(value, bool) and value in range(minimum, maximum + 1)


@dataclass(frozen=True, kw_only=True)
class VirtualWarpKnobs:
    """Settings of the scan by virtual warps.

    Attributes
    ----------
    width : {1, 2, 4, 8, 16, 32}
        Lanes per vertex (Hong et al.; Springer, section 3.5, whose figure 13 has 16). In table 2 of BFS-4K the best width is
        between 1 (roads) and 32 (Kronecker graphs).

    Raises
    ------
    InputError
        A value out of range.
    """

    width: int = 16

    def __post_init__(self) -> None:
        if type(self.width) is not int or self.width not in WIDTHS:
            raise InputError(f"knob width of scan_virtual_warp must be one of {WIDTHS}, not {self.width!r}")


@dataclass(frozen=True, kw_only=True)
class DeferKnobs:
    """Settings of the scan that defers high-degree vertices. The defaults are those of Springer's figure 12.

    Attributes
    ----------
    defer_from : int, 0 or more
        Vertices of this degree or more wait until their block has scanned all others (``DEFER_MAX``).
    room : int from 0 to 4096
        Capacity of the queue in the shared memory of a block (``D_BLOCK_QUEUE_SIZE``). If it is below the number of threads
        of a block, no vertex waits.

    Raises
    ------
    InputError
        A value out of range.
    """

    defer_from: int = 16
    room: int = 2048

    def __post_init__(self) -> None:
        for name, end, expected in (
            ("defer_from", 2**63, "a whole number from 0 on"),
            ("room", MAX_DEFERRED + 1, f"a whole number from 0 to {MAX_DEFERRED}"),
        ):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < end:
                raise InputError(f"knob {name} of scan_deferred must be {expected}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class BlockQueueKnobs:
    """Settings of ``queue_of_blocks``. The defaults are those of Springer.

    Attributes
    ----------
    queues : {"block", "warp"}
        The queue in shared memory to which a thread appends: that of its block (Springer, 3.6) or of its warp (Luo, Wong,
        Hwu 2010, 3.2).
    room : int from 1 to 8192
        Total capacity of the queues of a block, in vertices (Springer, figure 14).

    Raises
    ------
    InputError
        A value out of range.
    """

    queues: str = "block"
    room: int = 8192

    def __post_init__(self) -> None:
        check_knobs(
            "queue_of_blocks",
            self,
            ("queues", "'block' or 'warp'", self.queues in ("block", "warp")),
            ("room", "a whole number from 1 to 8192", is_whole(self.room, 1, 8192)),
        )


@dataclass(frozen=True, kw_only=True)
class WarpQueueKnobs:
    """Settings of ``queue_of_warps``. The defaults are those of Luo, Wong, Hwu 2010.

    Attributes
    ----------
    alone_up_to : int from 0 to 512
        Frontiers of at most this many vertices are expanded by a single block, with one thread per vertex (3.3); 0: never.
    grid_up_to : int, 0 or more
        Frontiers of at most this many vertices are expanded by a grid with barriers, in one launch (3.3); 0: never. The
        paper has one thread per vertex: 30 multiprocessors with 512 threads.
    room : int from 1 to 8192
        Total capacity of the queues of a block's warps, in vertices (4). In the paper it is enough for all neighbors of all
        threads; its graphs have up to 7 per vertex.
    split_above : int, 0 or more
        Longer adjacency lists are split into edge chunks of this many edges (4); 0: never. In the paper's irregular graphs
        0.1 % of the vertices have 1,000 edges, the others up to 7.

    Raises
    ------
    InputError
        A value out of range.
    """

    alone_up_to: int = 512
    grid_up_to: int = 15360
    room: int = 3584
    split_above: int = 7

    def __post_init__(self) -> None:
        check_knobs(
            "queue_of_warps",
            self,
            ("alone_up_to", "a whole number from 0 to 512", is_whole(self.alone_up_to, 0, 512)),
            ("grid_up_to", "a whole number from 0 on", is_whole(self.grid_up_to, 0, 2**62)),
            ("room", "a whole number from 1 to 8192", is_whole(self.room, 1, 8192)),
            ("split_above", "a whole number from 0 on", is_whole(self.split_above, 0, 2**62)),
        )


GATHERINGS = ("scan", "warp", "scan_warp", "scan_warp_block")


@dataclass(frozen=True, kw_only=True)
class GatherKnobs:
    """Settings of the strategies that gather edges. The defaults are those of Merrill, Garland, Grimshaw 2012.

    Attributes
    ----------
    gathering : {"scan_warp_block", "scan_warp", "scan", "warp"}
        Which threads visit the edges of a vertex. ``scan``: lanes that find their edges by binary search; ``warp``: a warp,
        from 32 edges on, or for each vertex if nothing else is named; ``block``: a block, from as many edges on as it has
        threads.
    bits : bool
        Whether one bit per vertex is read before its distance.
    warp_culling, history_culling : bool
        Whether duplicates are searched for among the vertices of a warp, and among those that a block has found.
    counters : bool
        Whether to count, which takes time: ``Traversal.counters``.

    Raises
    ------
    InputError
        A value out of range.
    """

    gathering: str = "scan_warp_block"
    bits: bool = True
    warp_culling: bool = True
    history_culling: bool = True
    counters: bool = False

    def __post_init__(self) -> None:
        switches = ("bits", "warp_culling", "history_culling", "counters")
        check_knobs(
            "a strategy that gathers",
            self,
            ("gathering", f"one of {GATHERINGS}", self.gathering in GATHERINGS),
            *((name, "true or false", isinstance(getattr(self, name), bool)) for name in switches),
        )


@dataclass(frozen=True, kw_only=True)
class Bfs4kKnobs:
    """Options of BFS-4K. The defaults are those of the paper, whose sections are in parentheses.

    Attributes
    ----------
    k1 : {1, 2, 4, 8, 16, 32}
        Minimum number of lanes of a virtual warp (5.2). The paper uses 4 on road networks and 32 on graphs of high or
        uneven degree.
    dynamic_width : bool
        Whether a virtual warp grows up to 32 lanes while the frontier is small (5.2); otherwise it has ``k1`` lanes.
    k2 : float in [0, 1]
        Share of the vertices, those of the highest degree, whose edges are visited separately (5.3); 0 for none. The
        paper uses at most 0.0015, and only if some degrees exceed 2,048: see ``k3``.
    heavy : {"children", "blocks", "none"}
        Mapping of these vertices: child kernels by dynamic parallelism (5.3), one block per vertex, or the same as for
        all other vertices.
    k3 : int, 1 or more
        Edges that each thread of a child kernel visits (5.3). A vertex of fewer than ``k3 * k6`` edges, too few for one
        block, is not treated separately.
    k4 : int, 0 or more
        Lanes find their edges by a search while the frontier is smaller than the number of resident threads / ``k4``
        (5.4); 0 for never. The paper uses 2 for low and uneven degrees, 1 for others, 0 for high degrees.
    extended : bool
        Whether that search is skipped within an adjacency list longer than a warp (EXT, 5.4).
    k5 : int from 0 to 16
        A single block continues without grid barriers while the frontier has at most 1,024 * ``k5`` vertices (5.5); 0
        for never. The paper uses 1, and 0 for high degrees.
    k6 : {32, 64, 128, 256, 512, 1024}
        Threads per block where a level runs on many blocks (5.5).
    shared_reads : bool
        Whether a warp reads 32 vertices at once and processes them one after the other. Applies if virtual warps have 32
        lanes and the frontier has more vertices than there are threads (5.6).
    k7 : int from 0 to 17
        Queues of threads are written to contiguous memory if they hold at least ``k7`` vertices on average (5.6); 17 for
        never.
    append : {"block", "warp", "thread"}
        The scope that reserves positions in the next frontier together (5.1).
    duplicates : {"hash64", "keep", "atomic"}
        Handling of vertices that are found twice in a level. ``"hash64"``: a hash table in shared memory removes most
        (6). ``"keep"``: all remain. ``"atomic"``: there are none, since a compare-and-swap claims each vertex.
    counters : bool
        Whether to fill ``Traversal.counters``, which takes time.

    Raises
    ------
    InputError
        A value is out of range.
    """

    k1: int = 4
    dynamic_width: bool = True
    k2: float = 0.0015
    heavy: str = "children"
    k3: int = 16
    k4: int = 1
    extended: bool = True
    k5: int = 1
    k6: int = 128
    shared_reads: bool = True
    k7: int = 10
    append: str = "block"
    duplicates: str = "hash64"
    counters: bool = False

    def __post_init__(self) -> None:
        for name, expected, fits in (
            ("k1", f"one of {WIDTHS}", self.k1 in WIDTHS),
            ("k2", "a share from 0 to 1", isinstance(self.k2, (int, float)) and 0 <= self.k2 <= 1),
            ("heavy", "'children', 'blocks' or 'none'", self.heavy in ("children", "blocks", "none")),
            ("k3", "a whole number from 1 to 65536", self.k3 in range(1, 65537)),
            ("k4", "a whole number from 0 on", self.k4 in range(2**31)),
            ("k5", "a whole number from 0 to 16", self.k5 in range(17)),
            ("k6", f"one of {BLOCKS}", self.k6 in BLOCKS),
            ("k7", "a whole number from 0 to 17", self.k7 in range(18)),
            ("append", "'block', 'warp' or 'thread'", self.append in ("block", "warp", "thread")),
            ("duplicates", "'hash64', 'keep' or 'atomic'", self.duplicates in ("hash64", "keep", "atomic")),
            *((name, "true or false", isinstance(getattr(self, name), bool)) for name in _SWITCHES),
        ):
            if not fits:
                raise InputError(f"knob {name} of bfs_4k must be {expected}, not {getattr(self, name)!r}")


_SWITCHES = ("dynamic_width", "extended", "shared_reads", "counters")
