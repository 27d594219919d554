"""Seconds that building a hierarchy is likely to take, and the sources from which on it pays."""

from __future__ import annotations

import math
from typing import NamedTuple

# Fitted to road networks and lattices of 0.1 to 2.2 million vertices, on the two cores of
# docs/hierarchies.md. The time per vertex grows with the mean degree, because separators of the
# rest do.
_MICROSECONDS = 6.2  # per vertex, at the mean degree that follows
_AT_DEGREE = 2.5
_GROWTH = 1.46  # of the logarithm of the time, per unit of the mean degree
# parts of the time on two cores that more cores do not shorten, and that they share
_ALONE = 0.6
_SHARED = 0.8
_MEASURED_STEP = 2.2e-9  # ``Machine.step`` of that machine
# of one core, to evaluate a pair of edges; 80 to 160 on roads and lattices, 90 to 600 on networks
# with hubs
_NANOSECONDS_PER_PAIR = 100
# times the estimated break-even sources must be, as estimates of both strategies err
_MARGIN = 1.5
# Estimated seconds that a hierarchy must save. Compiling contraction takes some, once per machine.
# On a small graph that is longer than the run.
_WORTH = 5.0


class Estimate(NamedTuple):
    """Estimated seconds with and without a hierarchy that is still to be built."""

    build: float  # seconds to build it
    # sweep, search: seconds per source with it and without it
    sweep: float
    search: float
    metric: str = "weights"  # {"weights", "hops"}

    @property
    def break_even(self) -> float:
        """Sources from which on building one pays; infinite if never."""
        saved_per_source = self.search - self.sweep
        if saved_per_source > 0:
            return math.ceil(self.build / saved_per_source)
        return math.inf

    def seconds_saved(self, n_sources: int) -> float:
        """Return the seconds that building a hierarchy saves, negative if it costs more than it
        saves.
        """
        return n_sources * (self.search - self.sweep) - self.build

    def is_worth_it(self, n_sources: int) -> bool:
        """Return whether ``hierarchy="auto"`` builds one for so many sources."""
        is_safe = _MARGIN * self.break_even <= n_sources
        return is_safe and self.seconds_saved(n_sources) >= _WORTH

    def __str__(self) -> str:
        if math.isinf(self.break_even):
            return "a hierarchy would not pay"
        if self.metric == "hops":
            call = "graph.hierarchy('hops')"
        else:
            call = "graph.hierarchy()"
        return (
            f"a hierarchy would take {self.build:.2g} s to build by {call} and "
            f"pay from about {self.break_even:,.0f} sources"
        )


def build_seconds(n_vertices: int, n_edges: int, directed: bool, cores: int, step: float) -> float:
    """Estimate the seconds that ``Graph.hierarchy`` takes.

    ``n_edges`` counts stored edges; ``step`` is ``Machine.step``, the seconds of a
    simple operation of a core.
    """
    degree = n_edges / max(n_vertices, 1)
    directions = 2 if directed else 1
    per_vertex = 1e-6 * _MICROSECONDS * math.exp(_GROWTH * (degree - _AT_DEGREE)) * directions
    share_of_cores = _ALONE + _SHARED / cores
    return n_vertices * per_vertex * share_of_cores * step / _MEASURED_STEP


def round_seconds(pairs: int, cores: int) -> float:
    """Estimate the seconds of a round that finds the priorities of all vertices, from
    ``Contraction.pairs_of_rest``.
    """
    return 1e-9 * _NANOSECONDS_PER_PAIR * pairs / cores
