"""What a suite of measurements consists of: works. A work is a graph, calls that are compared on it, and a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scripts.measure.environment import timed

OURS = "kepler"  # the peer that the results of the others are compared with
Call = Callable[[], Any]
Prepare = Callable[[Any], Call]  # from a case


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the command line says of the works."""

    graphs: Path | None = None
    device: str = "cpu"
    seed: int = 1
    settings: tuple[str, ...] = ()  # options that set constants of modules

    def file(self, name: str) -> Path:
        """Return the path of a file of the folder of graphs."""
        path = (self.graphs or Path()) / f"{name}.parquet"
        if not path.exists():
            raise FileNotFoundError(f"{path} is absent: --graphs names the folder of the files")
        return path


class Timed(NamedTuple):
    """What a call returned, its seconds, and what else was measured of it, by name."""

    found: Any
    seconds: float
    more: Mapping[str, float] = {}


def here(call: Call) -> Timed:
    """Time a call, unless it returns a `Timed` itself, such as one that starts a process."""
    found, seconds = timed(call)
    if isinstance(found, Timed):
        return found
    return Timed(found, seconds)


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """When rounds of calls end: after so many, or when a work has taken so many seconds."""

    most: int = 3
    seconds: float = 20.0


ONCE = Repeats(most=1, seconds=0.0)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A library or a strategy. ``prepare(case)`` returns its call; what it does is not timed.

    Attributes
    ----------
    size : int, optional
        Sources or pairs that it answers, the first ones, where these are fewer than those of the work.
    is_compared : bool
        False where it answers another question, whose results cannot be compared.
    facts : dict
        Entries of its rows.
    cores : int
        Cores, the first ones, that its process may use; 0: all.
    """

    prepare: Prepare
    size: int | None = None
    is_compared: bool = True
    facts: Mapping = field(default_factory=dict)
    cores: int = 0


def planner(algorithm: str, many: bool = False) -> Callable:
    """Return the function that plans the searches of an algorithm, from one source or from many."""
    import kepler_traverse

    return getattr(kepler_traverse, f"plan_{algorithm}_many" if many else f"plan_{algorithm}")


def nothing(_case: Any) -> dict:
    return {}


def unless(is_same: bool, words: str = "the results differ") -> str:
    """Return what a check says: nothing, or how two results differ."""
    if is_same:
        return ""
    return words


def differences(expected: Any, found: Any) -> str:
    """Return "" if two results are equal, else how they differ. Of a part of the work only the first values are compared."""
    import numpy as np  # here: checks without a GPU say so with Python alone

    if isinstance(expected, np.ndarray):
        return unless(np.array_equal(expected[: len(found)], found))
    return unless(found == expected, f"{found!r:.80} is not {expected!r:.80}")


@dataclass(frozen=True, kw_only=True)
class Work:
    """Calls that are compared on a graph.

    Attributes
    ----------
    case : callable
        ``case(inputs)`` returns what the peers prepare their calls from. Works of the same function and arguments share it.
    peers : dict
        Peers, or the function that prepares the call, by name. The first is `OURS`, or the strategy of this library that
        others are compared with. Where its package is not installed, a peer is left out.
    size : int
        Sources, pairs or edges that a time is divided by.
    check : callable
        ``check(expected, found)`` returns "" if the results of two peers agree, else how they differ.
    facts : callable
        ``facts(case)`` returns entries of each row, which a table shows.
    clock : callable
        Calls and returns a `Timed`, which may have further entries of the row.
    in_a_process : bool
        Whether each call is made in a process of its own, whose peak of memory is recorded, too. Its result is JSON then,
        and ``warm_up(peer)`` imports and compiles before.
    environment : dict
        Of these processes.
    figure : callable
        What is recorded of the further figures of all repeats: the least, or another one.
    limit : float
        Seconds that such a process may take; a peer that takes longer is left out.
    """

    name: str
    graph: str
    case: Callable[[Inputs], Any]
    peers: Mapping[str, Baseline | Prepare]
    size: int = 1
    check: Callable[[Any, Any], str] = differences
    facts: Callable[[Any], Mapping] = nothing
    clock: Callable[[Call], Timed] = here
    repeats: Repeats = Repeats()
    in_a_process: bool = False
    warm_up: Callable[[str], Any] = nothing
    environment: Mapping[str, str] = field(default_factory=dict)
    figure: Callable[[list[float]], float] = min
    limit: float = 600.0

    def peer(self, name: str) -> Baseline:
        peer = self.peers[name]
        if isinstance(peer, Baseline):
            return peer
        return Baseline(prepare=peer)
