"""The knobs of the papers' systems; the defaults are the published values."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError
from ..params import WIDTHS

MOST_DEFERRED = 4096  # vertices; of 64 bits they take 32 KiB, where a block has 48 without asking


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
        for name, most, wanted in (
            ("defer_from", 2**63, "a whole number from 0 on"),
            ("room", MOST_DEFERRED + 1, f"a whole number from 0 to {MOST_DEFERRED}"),
        ):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < most:
                raise InputError(f"knob {name} of scan_deferred must be {wanted}, not {value!r}")
