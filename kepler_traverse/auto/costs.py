"""What a strategy for many sources is estimated to cost: amounts of few terms, times seconds per unit of each.

A strategy says how much there is of each term (``MultiSourceStrategy.terms``), from the graph's shape, the number of sources
and the machine. ``costs.json`` has nanoseconds per unit, fitted to measurements by ``python -m scripts.regret fit``, and the
machine that they were measured on. On another machine each term scales with one speed of ``Machine``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..strategy import MultiSourceStrategy, Shape

_FILE = Path(__file__).with_name("costs.json")

# Which speed of the machine a term goes with. ``level`` and ``start``: the host takes part. ``chain``: loads that wait for
# each other. ``share``: what one worker (block, core) does alone. ``edge``, ``vertex``: work that all workers share.
# ``again``: edges that are relaxed again since weights are uneven; ``stretch``: rounds that are more for that reason.
# ``row``, ``write``, ``clear``: bytes in a row. ``miss``: loads from beyond the cache.
SPEED_OF_TERM = {
    "cpu": {
        "start": "step",
        "sort": "step",
        "reverse": "copy",
        "count": "step",
        "level": "step",
        "chain": "step",
        "share": "step",
        "edge": "step",
        "again": "step",
        "stretch": "step",
        "vertex": "step",
        "row": "step",
        "write": "copy",
        "clear": "copy",
        "miss": "load",
    },
    "cuda": {
        "start": "step",
        "sort": "step",
        "reverse": "copy",
        "count": "step",
        "level": "step",
        "chain": "load",
        "stretch": "load",
        "share": "load",
        "uneven": "load",
        "spill": "load",
        "edge": "copy",
        "again": "load",
        "vertex": "copy",
        "row": "copy",
        "write": "copy",
        "miss": "copy",
    },
}
_MAX_SCALED = 16.0  # a calibration on a busy machine must not turn the estimates upside down


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the estimates scale with.

    Attributes
    ----------
    cores : int
        Threads that compute (CPU), or multiprocessors (GPU).
    cache : int
        Bytes of the cache that random loads should hit: the second level.
    copy : float
        Seconds per byte copied.
    load : float
        Seconds per load that waits for the one before, from beyond the first-level cache.
    step : float
        Seconds per simple operation of a core (CPU), or per launch that the host waits for (GPU).
    """

    cores: int
    cache: int
    copy: float
    load: float
    step: float

    def missing(self, nbytes: float) -> float:
        """Share of random loads from a table of so many bytes that miss the cache."""
        return max(0.0, 1 - self.cache / nbytes) if nbytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Constants of one device.

    Attributes
    ----------
    device : {"cpu", "cuda"}
    measured_on : Machine
    nanoseconds : mapping of str to mapping of str to float
        Of ``"ALGORITHM STRATEGY"`` and term: nanoseconds per unit on that machine.
    """

    device: str
    measured_on: Machine
    nanoseconds: Mapping[str, Mapping[str, float]]

    def seconds(
        self, algorithm: str, strategy: MultiSourceStrategy, shape: Shape, n_sources: int, group: int, machine: Machine
    ) -> float:
        """Estimate of the seconds for so many sources in groups of ``group``; infinite without constants for it."""
        constants = self.nanoseconds.get(key_of(algorithm, strategy))
        if constants is None:
            return float("inf")
        amounts = self.scaled(strategy.terms(shape, n_sources, group, machine), machine)
        return 1e-9 * sum(constants.get(term, 0.0) * amount for term, amount in amounts.items() if amount)

    def scaled(self, amounts: Mapping[str, float], machine: Machine) -> dict[str, float]:
        """Amounts of terms as if they took place on the machine of the constants."""
        speeds = SPEED_OF_TERM[self.device]
        return {term: amount * self._slower(machine, speeds[term]) for term, amount in amounts.items()}

    def _slower(self, machine: Machine, speed: str) -> float:
        slower = getattr(machine, speed) / getattr(self.measured_on, speed)
        return min(max(slower, 1 / _MAX_SCALED), _MAX_SCALED)


def key_of(algorithm: str, strategy: MultiSourceStrategy) -> str:
    """Under what name the constants of a strategy are kept; a loop has that of the strategy that it repeats."""
    return f"{algorithm} {strategy.name}" + (" repeated" if strategy.repeats else "")


@functools.cache
def costs_of(device: str) -> Costs:
    """Return the constants of a device."""
    found = json.loads(_FILE.read_text())[device]
    return Costs(device=device, measured_on=Machine(**found["measured_on"]), nanoseconds=found["nanoseconds"])
