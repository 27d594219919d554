"""What a strategy wins, from the records of measurements: a column of docs/strategies.md and docs/published/strategies.md.

docs/published/measured.json has times of one source on a GPU, docs/benchmarks/measured.json those of other libraries, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from scripts.measure.cells import by_work, per_source, seconds_of
from scripts.measure.record import Record, read
from scripts.measure.work import OURS
from scripts.papers import record as papers
from scripts.papers.record import Time, is_faster

MANY = 1024  # sources of a table of searches from many sources
NOT_IN_A_RECORD = {"hierarchy_sweep": "[hierarchies.md](hierarchies.md) has its times"}


@functools.cache
def papers_record() -> papers.Record:
    return papers.read()


@functools.cache
def measured() -> Record:
    return read()


def times_of(value: float) -> str:
    if value >= 20:
        return f"{value:,.0f}"
    if value >= 1.1:
        return f"{value:.1f}"
    return f"{value:.2f}"


def between(values: Iterable[float]) -> str:
    listed = list(values)
    words = [times_of(min(listed)), times_of(max(listed))]
    if words[0] == words[1]:
        return words[0]
    return f"{words[0]} to {words[1]}"


def of_one_source(name: str, algorithm: str, device: str, rivals: set[str]) -> str:
    """Return where a strategy is the fastest of some on a GPU, or how many times as fast as other libraries on a CPU."""
    if device == "cuda":
        return on_a_gpu(name, algorithm, rivals)
    return beside_libraries(name, algorithm, "cpu")


def fastest_times(algorithm: str, strategies: set[str]) -> dict[str, list[Time]]:
    """Return for each graph the fastest time of each strategy on a GPU, in order, without settings that test a feature."""
    found = {}
    for time in papers_record().times.values():
        if (
            (time.algorithm, time.device) != (algorithm, "cuda")
            or time.strategy not in strategies
            or time.group != "systems"
        ):
            continue
        of_graph = found.setdefault(time.graph, {})
        best = of_graph.get(time.strategy)
        if best is None or time.median < best.median:
            of_graph[time.strategy] = time
    return {
        graph: sorted(times.values(), key=lambda time: time.median)
        for graph, times in found.items()
    }


def on_a_gpu(name: str, algorithm: str, rivals: set[str]) -> str:
    won = {}
    cards = set()
    n_measured = []
    for graph, times in fastest_times(algorithm, rivals | {name}).items():
        if len(times) < 2 or name not in [time.strategy for time in times]:
            continue
        n_measured.append(len(times))
        if times[0].strategy == name and is_faster(times[0], times[1]):
            won[graph] = times[1].median / times[0].median
            cards.add(papers_record().machine_of(times[0]))
    if not won:
        return ""
    least = min(n_measured)
    most = max(n_measured)
    of_how_many = f"{least}" if least == most else f"{least} to {most}"
    where = f" ({', '.join(won)})" if len(won) <= 3 else ""
    words = f"the fastest of {of_how_many} that were measured, on {len(won)} of {len(n_measured)} graphs{where}"
    return f"one source, {' and '.join(sorted(cards))}: {words}, by a factor of {between(won.values())}"


def beside_libraries(name: str, algorithm: str, device: str) -> str:
    """Return how many times as fast a strategy is as the fastest library on each graph, in the newest run of each."""
    found = {}
    compared = [row for row in measured().rows("compare") if row["device"] == device]
    for of in [*by_work(measured().rows("cpu")), *by_work(compared)]:
        ours = of[OURS]
        if (ours["strategy"], ours["work"].partition(",")[0]) == (name, algorithm):
            found[ours["graph"], ours["size"]] = {
                peer.partition(" ")[0]: seconds_of(row) / seconds_of(ours)
                for peer, row in of.items()
                if peer != OURS
            }
    if not found:
        return ""
    ratios = {graph: min(each.values()) for (graph, _), each in sorted(found.items())}
    libraries = sorted({peer for each in found.values() for peer in each})
    sources = sorted({n for _, n in found})
    words = f"{sources[0]:,}" if len(sources) == 1 else f"{sources[0]:,} to {sources[-1]:,}"
    faster = sum(ratio > 1.0 for ratio in ratios.values())
    return (
        f"{words} source{'s' if sources[-1] > 1 else ''}: "
        f"faster than {', '.join(libraries)} on {faster} of {len(ratios)} graphs, "
        f"{between(ratios.values())} times the best of them"
    )


def of_many_sources(name: str, algorithm: str, device: str) -> str:
    """Return how many times as fast as a loop over the baseline a strategy is from MANY sources."""
    if name in NOT_IN_A_RECORD:
        return NOT_IN_A_RECORD[name]
    if device == "cpu":
        return beside_libraries(name, algorithm, device)
    rows = measured().rows("gpu")
    loops = {row["graph"]: row for row in rows if row["work"] == f"{algorithm}, a loop"}
    ratios = {
        row["graph"]: per_source(loops[row["graph"]]) / per_source(row)
        for row in rows
        if row["work"] == f"{algorithm}, {MANY:,} sources"
        and row["strategy"] == name
        and row["graph"] in loops
    }
    if not ratios:
        return ""
    return f"{MANY:,} sources: {between(ratios.values())} times as fast as a loop over cuGraph on {len(ratios)} graphs"
