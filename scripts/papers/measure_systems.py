"""The part ``systems`` of the suite ``papers``: every strategy of a registry, also very slow ones.

A traversal on a GPU cannot be interrupted. Therefore a strategy first runs with small limits of its depth, and the times
give an estimate of the whole. A strategy with an estimate beyond ``--system-seconds`` is omitted and listed with it. If a
strategy takes longer than estimated, because its frontier grew, its single time is recorded.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

PROBES = (
    1 / 64,
    1 / 16,
    1 / 4,
)  # fractions of the distance to the farthest vertex; the last one only if the others permit it
MIN_LEVELS = 32  # with fewer levels, no strategy spends most of its time on levels


@dataclass(frozen=True)
class Probed:
    """Seconds of a traversal up to a fraction of the distance to its farthest vertex."""

    share: float
    seconds: float


def estimated_seconds(near: Probed, far: Probed) -> float:
    """Extrapolate linearly: right for strategies with equal work per level, too low for those with a frontier.

    A strategy that computes everything and then applies the limit takes equally long for both, and gets no larger estimate.
    """
    slope = (far.seconds - near.seconds) / (far.share - near.share)
    return far.seconds + max(slope, 0.0) * (1.0 - far.share)


def limits_of(farthest: float, algorithm: str) -> tuple | None:
    """Return limits of depth or distance for the first runs; None if the farthest vertex is near."""
    if algorithm == "sssp":
        return tuple(farthest * share for share in PROBES) if farthest > 0 else None
    return tuple(int(farthest * share) + 1 for share in PROBES) if farthest >= MIN_LEVELS else None


def estimate(bench, setting) -> float:
    """Return the estimated seconds of the first source, without a complete traversal; 0 without an estimate."""
    from kepler_traverse._arrays import namespace

    source = bench.sources[0]
    distance = bench.expected.get(source)
    if distance is None or (bench.algorithm == "sssp" and bench.graph.has_negative_weights):
        return 0.0  # with negative weights no distance ends a search early
    farthest = float(distance[namespace(distance).isfinite(distance)].max())  # CuPy's max has no argument `where`
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
    """Set the number of threads of Numba; 0: all."""
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
    """Return the kind of line for a strategy of the registry, and its content."""
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
