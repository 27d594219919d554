"""Seconds that building a hierarchy is likely to take, and the sources from which on it pays."""

from __future__ import annotations

import math
from typing import NamedTuple

from .contraction import must_compile

# Fitted to road networks and lattices of 0.1 to 2.2 million vertices, on the two cores of
# docs/hierarchies.md. The time per vertex grows with the mean degree, because the separators of
# the part that is not contracted yet grow with it.
_MICROSECONDS = 6.2  # on two cores per vertex, in a graph of the mean degree ``_AT_DEGREE``
_AT_DEGREE = 2.5
_GROWTH = 1.46  # growth of the natural logarithm of the time per unit of the mean degree
# The time on n cores, relative to that on two, is ``_ALONE + _SHARED / n``: the part that runs on
# one core, and the part that cores share.
_ALONE = 0.6
_SHARED = 0.8
_MEASURED_STEP = 2.2e-9  # ``Machine.step`` of that machine, the seconds of a simple operation
# Time of one core to evaluate a pair of edges that meet at a vertex; 80 to 160 on roads and
# lattices, 90 to 600 on networks with hubs.
_NANOSECONDS_PER_PAIR = 100
# There must be this many times the estimated number of sources at which both strategies take the
# same time, as both estimates err.
_MARGIN = 1.5
# Estimated seconds that a hierarchy must save.
_WORTH = 1.0
# The same where contraction and sweeps are compiled first. That takes 8 s on two cores, which is
# longer than a run on a small graph; but it happens once per machine, and later runs gain.
_WORTH_COMPILING = 5.0


class Estimate(NamedTuple):
    """Estimated seconds of searches with and without a hierarchy that is not built yet."""

    build: float  # seconds to build the hierarchy
    sweep: float  # seconds per source with the hierarchy
    search: float  # seconds per source without it
    metric: str = "weights"  # {"weights", "hops"}: the lengths that the hierarchy is for

    @property
    def break_even(self) -> float:
        """The number of sources from which on building the hierarchy pays; infinite if never."""
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
        """Return whether ``hierarchy="auto"`` builds the hierarchy for this many sources: it must
        save ``_WORTH`` seconds, or ``_WORTH_COMPILING`` if this machine has not compiled
        contraction yet. It must pay even if the estimates are wrong by the factor ``_MARGIN``.
        False if it never pays, where ``break_even`` is infinite.
        """
        least = _WORTH
        if must_compile():
            least = _WORTH_COMPILING
        is_safe = _MARGIN * self.break_even <= n_sources
        return is_safe and self.seconds_saved(n_sources) >= least

    def __str__(self) -> str:
        """Return a sentence for ``explain`` of a plan: how long building takes, and from how many
        sources on it pays.
        """
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
    """Estimate the seconds that ``Graph.hierarchy`` takes to build a hierarchy.

    ``n_edges`` counts stored edges, both directions of an undirected edge. ``cores`` is the number
    of threads, and ``step`` is ``Machine.step``, the seconds of a simple operation of a core.
    """
    degree = n_edges / max(n_vertices, 1)
    directions = 2 if directed else 1  # a directed graph has a second list of edges per vertex
    per_vertex = 1e-6 * _MICROSECONDS * math.exp(_GROWTH * (degree - _AT_DEGREE)) * directions
    share_of_cores = _ALONE + _SHARED / cores
    return n_vertices * per_vertex * share_of_cores * step / _MEASURED_STEP


def round_seconds(pairs: int, cores: int) -> float:
    """Estimate the seconds of a round of contraction that finds the priorities of all vertices.

    ``pairs`` is ``Contraction.pairs_of_rest``: the number of pairs of an edge to and an edge from
    the same vertex. ``cores`` is the number of threads.
    """
    return 1e-9 * _NANOSECONDS_PER_PAIR * pairs / cores
