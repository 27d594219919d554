"""The part ``systems`` of the suite ``papers``: every row of a catalogue, also those that may take very long.

A traversal on a GPU cannot be interrupted. So a row is first run up to small limits of its depth; what they took tells about
how long the whole would take. Beyond ``--system-seconds`` the row is left out, with that estimate; a row that was let
through and took longer all the same, as its frontier grew, is recorded with its one time.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

PROBES = (1 / 64, 1 / 16, 1 / 4)  # of the way to the farthest vertex; the last only where the others allow it
MIN_LEVELS = 32  # below, no row spends its time on levels


@dataclass(frozen=True)
class Probed:
    """Seconds that a traversal took up to a share of the distance to its farthest vertex."""

    share: float
    seconds: float


def estimated_seconds(near: Probed, far: Probed) -> float:
    """The whole by a straight line: right for rows that do the same in every level, too little for those with a frontier.

    A row that computes everything and then cuts takes as long for both, and is not taken for longer.
    """
    slope = (far.seconds - near.seconds) / (far.share - near.share)
    return far.seconds + max(slope, 0.0) * (1.0 - far.share)


def limits_of(farthest: float, algorithm: str) -> tuple | None:
    """Depths, or distances, to go to first; None where the farthest vertex is near anyway."""
    if algorithm == "sssp":
        return tuple(farthest * share for share in PROBES) if farthest > 0 else None
    return tuple(int(farthest * share) + 1 for share in PROBES) if farthest >= MIN_LEVELS else None


def estimate(bench, setting) -> float:
    """About how many seconds the first source takes, without a traversal to its end; 0 where nothing can be said."""
    from kepler_traverse._arrays import namespace

    source = bench.sources[0]
    distance = bench.expected.get(source)
    if distance is None or (bench.algorithm == "sssp" and bench.graph.has_negative_weights):
        return 0.0  # with negative weights no distance ends a search early
    farthest = float(distance[namespace(distance).isfinite(distance)].max())  # CuPy's max takes no condition
    limits = limits_of(farthest, bench.algorithm)
    if limits is None:
        return 0.0
    bench.plan(setting, limits[0]).run(source)  # compiles and loads
    seconds, before = 0.0, None
    for limit in limits:
        probed = Probed(limit / farthest, bench.once(bench.plan(setting, limit).run, source)[0])
        if before is not None:
            seconds = estimated_seconds(before, probed)
            if seconds > bench.options.system_seconds:
                break
        before = probed
    return seconds


@contextmanager
def on_threads(wanted: int):
    """Let Numba use so many threads; 0: all."""
    if not wanted:
        yield
        return
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(wanted)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def has_threads(wanted: int) -> bool:
    import numba

    return wanted <= numba.config.NUMBA_NUM_THREADS


def measure(bench, setting) -> tuple[str, dict]:
    """The kind of line that a row of the catalogue gives, and what is in it."""
    limit = bench.options.system_seconds
    with on_threads(setting.threads):
        seconds = estimate(bench, setting)
        if seconds > limit:
            about = f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
            return "left", {"why": f"about {about} s a traversal, where {limit:g} s is the limit"}
        plan = bench.plan(setting)
        source = bench.sources[0]
        if not seconds:
            plan.run(source)  # compiles and loads
        took, result = bench.once(plan.run, source)
        bench.check(source, result)
        if took > limit:
            return "over", {"took": float(f"{took:.4g}"), "limit": limit}
        return "time", bench.time(setting)
