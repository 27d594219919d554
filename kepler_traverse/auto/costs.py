"""Cost model of the strategies for many sources: a sum of few terms, each an amount times a fitted
time per unit.

A strategy computes the amount of each term (``MultiSourceStrategy.terms``) from the graph's shape,
the number of sources and the machine. ``costs.json`` holds nanoseconds per unit, fitted to
measurements by ``python -m scripts.regret fit``. It also holds the calibration of the machine that
was measured. On another machine each term scales with one speed of ``Machine``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..search.strategy import MultiSourceStrategy, Shape

_FILE = Path(__file__).with_name("costs.json")

# The speed of the machine that each term scales with.
#   start, level         steps in which the host takes part
#   sort                 what is sorted: vertices that searches reach, or edges
#   count                results that are counted per level
#   chain                dependent loads
#   share                work that one worker (block or core) does alone
#   uneven               the same of a block, times ``Shape.unevenness``
#   spill                accesses of a search to what its shared memory cannot hold
#   lookup               vertices of the first path of a source, whose distances are looked up in a hierarchy
#   merge                hubs of labels that answer a pair
#   edge, vertex         work that all workers share
#   again                edges that are relaxed again because weights are uneven
#   extra_round          additional rounds because weights are uneven
#   reverse              edges of the reversed graph, which is built
#   row, write, clear    bytes that are accessed sequentially
#   bus                  bytes of edges that are copied from host memory to a GPU
#   miss                 loads that miss the cache of a core
#   fetch                loads that come from memory, since no cache has them
_TERMS_OF_SPEED = {
    "cpu": {
        "step": "start sort count level chain share lookup merge edge again extra_round vertex row",
        "copy": "reverse write clear",
        "load": "miss fetch",
    },
    "cuda": {
        "step": "start sort count level",
        "copy": "reverse edge vertex row write miss bus",
        "load": "chain extra_round share uneven spill again",
    },
}
SPEED_OF_TERM = {
    device: {term: speed for speed, terms in of_device.items() for term in terms.split()}
    for device, of_device in _TERMS_OF_SPEED.items()
}
# Bytes of the last level of caches on which one process may count. Other processes, and on rented
# machines other tenants, share that level, so that its size says little.
_LAST_LEVEL = 6 << 20
# A calibration on a busy machine must not distort the estimates. The memories of machines differ
# less than the rest of them.
_MAX_SCALED = {"step": 16.0, "copy": 16.0, "load": 2.0}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Properties of a machine that the estimates scale with."""

    cores: int  # number of compute threads (CPU) or multiprocessors (GPU)
    cache: int  # bytes of the L2 cache, which random loads should hit
    copy: float  # seconds per byte copied
    load: float  # seconds per dependent load that misses the L1 cache
    # seconds per simple operation of a core (CPU), or per launch with a host synchronization (GPU)
    step: float

    def share_of_misses(self, nbytes: float) -> float:
        """Return the share, from 0 to 1, of random loads from a table of ``nbytes`` bytes that miss
        the L2 cache: the share of the table that the cache cannot hold, 0 if it holds all.
        """
        if not nbytes:
            return 0.0
        return max(0.0, 1 - self.cache / nbytes)

    def share_from_memory(self, nbytes: float) -> float:
        """Return the share, from 0 to 1, of random loads from a table of ``nbytes`` bytes that come
        from memory, as no level of the caches has them: the share of the table that exceeds the
        larger of the L2 cache and ``_LAST_LEVEL``.
        """
        if not nbytes:
            return 0.0
        return max(0.0, 1 - max(self.cache, _LAST_LEVEL) / nbytes)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Fitted constants of one device: how long a unit of each term of each strategy takes."""

    device: str  # {"cpu", "cuda"}
    measured_on: Machine  # where the constants were measured
    # Nanoseconds per unit on that machine, by the key of the strategy (``cost_key``) and by term.
    nanoseconds: Mapping[str, Mapping[str, float]]

    def seconds(
        self,
        algorithm: str,
        strategy: MultiSourceStrategy,
        shape: Shape,
        n_sources: int,
        group: int,
        machine: Machine,
    ) -> float:
        """Return the estimated seconds that a strategy takes for ``n_sources`` sources in groups of
        ``group``, on ``machine``. It is infinite for a strategy without fitted constants.

        ``algorithm`` is "bfs" or "sssp". ``shape`` describes the graph and the searches.
        """
        constants = self.nanoseconds.get(cost_key(algorithm, strategy))
        if constants is None:
            return float("inf")
        amounts = self.scaled(strategy.terms(shape, n_sources, group, machine), machine)
        return 1e-9 * sum(
            constants.get(term, 0.0) * amount for term, amount in amounts.items() if amount
        )

    def scaled(self, amounts: Mapping[str, float], machine: Machine) -> dict[str, float]:
        """Return amounts of terms on ``machine`` as the amounts that take the same time on the
        machine where the constants were measured. Each term scales with one speed.
        """
        speeds = SPEED_OF_TERM[self.device]
        return {
            term: amount * self._slowdown(machine, speeds[term]) for term, amount in amounts.items()
        }

    def _slowdown(self, machine: Machine, speed: str) -> float:
        """Return the factor by which an operation takes longer on ``machine`` than where the
        constants were measured, from 1 / ``_MAX_SCALED[speed]`` to ``_MAX_SCALED[speed]``.

        ``speed`` is "copy", "load" or "step", the field of ``Machine`` with the seconds of the
        operation.
        """
        factor = getattr(machine, speed) / getattr(self.measured_on, speed)
        largest = _MAX_SCALED[speed]
        return min(max(factor, 1 / largest), largest)


def cost_key(algorithm: str, strategy: MultiSourceStrategy) -> str:
    """Return the key of a strategy's constants: the algorithm and the name of the strategy.

    A strategy for one source that is run once per source has the addition "repeated".
    """
    return f"{algorithm} {strategy.name}" + (" repeated" if strategy.repeats else "")


@functools.cache
def load_costs(device: str) -> Costs:
    """Return the fitted constants of a device."""
    constants = json.loads(_FILE.read_text())[device]
    return Costs(
        device=device,
        measured_on=Machine(**constants["measured_on"]),
        nanoseconds=constants["nanoseconds"],
    )
