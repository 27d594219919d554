"""The knobs of the papers' systems; the defaults are the published values."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError
from ..tuning import WIDTHS

MAX_DEFERRED = 4096  # vertices; of 64 bits they take 32 KiB, where a block has 48 without asking


def check_knobs(strategy: str, knobs, *rules: tuple[str, str, bool]) -> None:
    """Refuse the first knob that does not fit: each rule is a name, what is wanted, and whether it is so."""
    for name, expected, fits in rules:
        if not fits:
            raise InputError(f"knob {name} of {strategy} must be {expected}, not {getattr(knobs, name)!r}")


def is_whole(value, least: int, most: int) -> bool:
    """Whether a value is a whole number from ``least`` to ``most``."""
    return not isinstance(value, bool) and value in range(least, most + 1)


@dataclass(frozen=True, kw_only=True)
class VirtualWarpKnobs:
    """Settings of the scan by virtual warps.

    Attributes
    ----------
    width : {1, 2, 4, 8, 16, 32}
        Lanes that share a vertex: Hong et al., and Springer, section 3.5, whose figure 13 has 16. The best one in BFS-4K's
        table 2 lies between 1 (roads) and 32 (Kronecker graphs).

    Raises
    ------
    InputError
        A value out of range.
    """

    width: int = 16

    def __post_init__(self):
        if type(self.width) is not int or self.width not in WIDTHS:
            raise InputError(f"knob width of scan_virtual_warp must be one of {WIDTHS}, not {self.width!r}")


@dataclass(frozen=True, kw_only=True)
class DeferKnobs:
    """Settings of the scan that defers outliers; the defaults are those of Springer's figure 12.

    Attributes
    ----------
    defer_from : int, 0 or more
        Edges from which on a vertex waits until its block has looked at all others (``DEFER_MAX``).
    room : int from 0 to 4096
        Vertices that may wait in the shared memory of a block (``D_BLOCK_QUEUE_SIZE``); with fewer than a block has threads
        none does.

    Raises
    ------
    InputError
        A value out of range.
    """

    defer_from: int = 16
    room: int = 2048

    def __post_init__(self):
        for name, most, expected in (
            ("defer_from", 2**63, "a whole number from 0 on"),
            ("room", MAX_DEFERRED + 1, f"a whole number from 0 to {MAX_DEFERRED}"),
        ):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < most:
                raise InputError(f"knob {name} of scan_deferred must be {expected}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class BlockQueueKnobs:
    """Settings of ``queue_of_blocks``; the defaults are those of Springer.

    Attributes
    ----------
    queues : {"block", "warp"}
        Whose queue a thread appends to in shared memory: one of the block (Springer, 3.6), or its warp's own (Luo, Wong,
        Hwu 2010, 3.2).
    room : int from 1 to 8192
        Vertices that the queues of a block hold together (Springer, figure 14).

    Raises
    ------
    InputError
        A value out of range.
    """

    queues: str = "block"
    room: int = 8192

    def __post_init__(self):
        check_knobs(
            "queue_of_blocks",
            self,
            ("queues", "'block' or 'warp'", self.queues in ("block", "warp")),
            ("room", "a whole number from 1 to 8192", is_whole(self.room, 1, 8192)),
        )


@dataclass(frozen=True, kw_only=True)
class WarpQueueKnobs:
    """Settings of ``queue_of_warps``; the defaults are those of Luo, Wong, Hwu 2010.

    Attributes
    ----------
    alone_up_to : int from 0 to 512
        Vertices of a frontier up to which a single block goes on alone (3.3), a thread each; 0 for never.
    grid_up_to : int, 0 or more
        Vertices up to which blocks wait for each other in one launch (3.3); 0 for never. The paper has a thread each: 30
        multiprocessors with 512 threads.
    room : int from 1 to 8192
        Vertices that the queues of a block's warps hold together (4): the paper has room for all neighbours of all threads,
        of which its graphs have up to 7.
    split_above : int, 0 or more
        Edges of a row beyond which it is cut into pieces of as many (4); 0 for never. In the paper's irregular graphs 0.1 %
        of the vertices have 1,000 edges, the others up to 7.

    Raises
    ------
    InputError
        A value out of range.
    """

    alone_up_to: int = 512
    grid_up_to: int = 15360
    room: int = 3584
    split_above: int = 7

    def __post_init__(self):
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
    """Settings of the rows that gather edges; the defaults are those of Merrill, Garland, Grimshaw 2012.

    Attributes
    ----------
    gathering : {"scan_warp_block", "scan_warp", "scan", "warp"}
        Who takes the edges of a vertex: lanes that look for them (scan); a warp, from 32 edges on, or of every vertex where
        nothing else is named; a block, from as many edges on as it has threads.
    bits : bool
        Whether a bit a vertex says that it was reached, before its distance is asked.
    warp_culling, history_culling : bool
        Whether vertices found twice are looked for among those of a warp, and among those that a block has found.
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

    def __post_init__(self):
        switches = ("bits", "warp_culling", "history_culling", "counters")
        check_knobs(
            "a row that gathers",
            self,
            ("gathering", f"one of {GATHERINGS}", self.gathering in GATHERINGS),
            *((name, "true or false", isinstance(getattr(self, name), bool)) for name in switches),
        )
