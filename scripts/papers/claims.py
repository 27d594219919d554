"""The claims of the papers (claims.toml) beside what is measured here: each verdict is computed from the record.

A claim has two results: with the knobs as published, and with those that a rule or a search chooses. Each has facts, one
per graph or rival, and a verdict:

    holds         on all graphs, or at least four fifths of the paper's factor
    in part       on some graphs, or a smaller factor above 1
    does not hold on none, or a factor of 1 or less
    no difference beyond the spread
    not measured  a time is missing

A difference counts only beyond the spreads of both times (`record.is_faster`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import Any, NamedTuple

from scripts.pages import listed
from scripts.papers import reasons, said
from scripts.papers.experiments import (
    BFS_4K,
    H_BF,
    H_BF_NEGATIVE,
    SEVILMIS,
    SPRINGER_VARIANTS,
    THREADS,
    UIUC_TABLES,
    graphs_of,
)
from scripts.papers.reasons import Reason
from scripts.papers.record import NotMeasuredError, Record, Time, is_faster
from scripts.papers.words import extremes, factor, figures

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold here"
UNKNOWN = "not measured"
TIE = "no difference beyond the spread"
ENOUGH = 0.8  # of the paper's factor
MODES = ("published", "rule")
RULED = ("bfs_4k", "h_bf", "queue_of_warps")  # strategies whose knobs a rule chooses


class Result(NamedTuple):
    """What is measured of a claim with one way to choose knobs.

    ``detail``: the same graph by graph, where that does not fit into a table of all claims. ``paper``: the paper's figure
    on the same graphs.
    """

    text: str
    verdict: str
    detail: str = ""
    paper: str = ""


NOT_MEASURED = Result(UNKNOWN, UNKNOWN)
Measured = Callable[[Record, str], Result]
Choice = Callable[[Record, str, str], "Time | None"]  # of record, graph and mode


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: its sentence and figure, and functions of the record.

    ``reason``: the likely reason why it does not hold, or in part. ``other``: what the second result is of.
    """

    said: str
    figure: str
    measured: Measured
    reason: Reason | None = None
    other: str = "by the rule"

    def results(self, record: Record) -> list[Result]:
        return [self.result(record, mode) for mode in MODES]

    def result(self, record: Record, mode: str) -> Result:
        try:
            return self.measured(record, mode)
        except NotMeasuredError:
            return NOT_MEASURED


# --- times that are compared


def row(
    record: Record, graph: str, strategy: str, mode: str, algorithm: str = "bfs", device="cuda"
) -> Time | None:
    """Return the time of a system: as published, or the best that a rule or a search finds.

    A static virtual warp is tuned per graph in the papers, so its published width is the best one.
    """
    given = {"algorithm": algorithm, "device": device}
    if device == "cpu":
        return record.time(graph, strategy, threads=1, **given)
    if mode == "published" and strategy != "scan_virtual_warp":
        return record.time(graph, strategy, **given)
    if strategy in RULED:
        return record.time(graph, strategy, "rule", **given)
    return record.best(graph, strategy, **given)


def system(*strategies: str, algorithm: str = "bfs", device: str = "cuda") -> Choice:
    """Return the choice of the best of some systems."""

    def chosen(record: Record, graph: str, mode: str) -> Time | None:
        times = (row(record, graph, name, mode, algorithm, device) for name in strategies)
        return min(filter(None, times), key=lambda time: time.median, default=None)

    return chosen


def setting(strategy: str, label: str = "published", **given) -> Choice:
    return lambda record, graph, _mode: record.time(graph, strategy, label, **given)


def variant(strategy: str) -> Choice:
    """Return the choice of the constants of the paper's listings, or of the best of those measured."""

    def chosen(record: Record, graph: str, mode: str) -> Time | None:
        return (record.time if mode == "published" else record.best)(graph, strategy)

    return chosen


def choice(text: str) -> Choice:
    """Return the choice that a text of claims.toml stands for."""
    name, is_threaded, threads = text.partition("*")
    if is_threaded:
        return setting(name, device="cpu", threads=int(threads))
    if "/" in text:
        strategy, label, group = text.split("/")
        return setting(strategy, label, group=group)
    names = text.removeprefix("sssp:").removeprefix("cpu:").split("|")
    algorithm = "sssp" if text.startswith("sssp:") else "bfs"
    device = "cpu" if "cpu:" in text else "cuda"
    return system(*names, algorithm=algorithm, device=device)


def threaded(record: Record, graph: str, strategy: str, threads: int) -> Time | None:
    return record.time(graph, strategy, device="cpu", threads=threads)


def most_threads(record: Record, *strategies: str) -> int:
    """Return the largest number of threads with which each strategy is measured."""
    times = {
        name: [time.threads for time in record.where(device="cpu", strategy=name)]
        for name in strategies
    }
    return min(max(found, default=0) for found in times.values())


class Compared(NamedTuple):
    """Times of one setting divided by those of another, and how often each is faster beyond the spreads."""

    ratios: dict[str, float]
    faster: int
    slower: int

    @property
    def mean(self) -> float:
        return geometric_mean(self.ratios.values())


def compared(pairs: Iterable[tuple[str, Time | None, Time | None]]) -> Compared:
    """Compare pairs of times by name; NotMeasuredError: none is whole."""
    ratios = {}
    faster = 0
    slower = 0
    for name, before, after in pairs:
        if before and after:
            ratios[name] = before.median / after.median
            faster += is_faster(after, before)
            slower += is_faster(before, after)
    if not ratios:
        raise NotMeasuredError
    return Compared(ratios, faster, slower)


def on_graphs(
    record: Record, mode: str, graphs: Iterable[str], before: Choice, after: Choice
) -> Compared:
    return compared(
        (graph, before(record, graph, mode), after(record, graph, mode)) for graph in graphs
    )


# --- kinds of claims


def by_factor(ours: float, paper: float | None) -> str:
    if ours <= 1.0:
        return FAILS
    if paper is None or ours >= ENOUGH * paper:
        return HOLDS
    return IN_PART


def by_count(n: int, of: int) -> str:
    if not of:
        return UNKNOWN
    if n == of:
        return HOLDS
    if n:
        return IN_PART
    return FAILS


def mean_text(values: Iterable[float]) -> str:
    """Return the geometric mean in one line, with the extremes."""
    listed = list(values)
    ends = f"{factor(min(listed))} to {factor(max(listed))}"
    return f"{factor(geometric_mean(listed))} ({ends}, {len(listed)} graphs)"


def paper_ratios(table: str, place: int) -> dict[str, float]:
    """Return the paper's factors of a column of a table over its last one, by our graph that stands for the original.

    Of tables 2 and 3 of Sevilmis, Sivri and Aydin: those of the own serial version, which table 1 has, over a column.
    """
    rows = getattr(said, table.upper())
    if table == "sevilmis_23":
        serial = {name: times[place % 2][0] for name, times in said.SEVILMIS_1.items()}
        return {graph: serial[name] / rows[name][place] for graph, name in SEVILMIS.items()}
    originals = {"bfs_4k_table_2": BFS_4K, "h_bf_table_2": H_BF}.get(table) or {
        name: name for name in rows
    }
    times = {graph: rows[name] for graph, name in originals.items() if name in rows}
    return {graph: each[place] / each[-1] for graph, each in times.items() if each[place]}


def speedup(
    graphs: str, before: str, after: str, table: str | None = None, place: int = 0
) -> Measured:
    """Return the measure of a mean factor beside the paper's, in a column of a table."""
    paper = {} if table is None else paper_ratios(table, place)

    def measured(record: Record, mode: str) -> Result:
        found = on_graphs(record, mode, graphs_of(graphs), choice(before), choice(after))
        same = [paper[graph] for graph in found.ratios if graph in paper]
        target = geometric_mean(same) if same else None
        words = f"; the paper there {factor(target)}" if target else ""
        return Result(mean_text(found.ratios.values()), by_factor(found.mean, target), paper=words)

    return measured


HELPS = "helps on {faster}, harms on {slower} of {n} graphs: {extremes}"


def counted(
    graphs: str, before: str, after: str, words: str = HELPS, with_detail: bool = False
) -> Measured:
    """Return the measure of on how many graphs one setting is faster than another."""

    def measured(record: Record, mode: str) -> Result:
        found = on_graphs(record, mode, graphs_of(graphs), choice(before), choice(after))
        return result_of(found, words, with_detail)

    return measured


def result_of(found: Compared, words: str, with_detail: bool) -> Result:
    n = len(found.ratios)
    shown = extremes(found.ratios) if n > 1 else factor(*found.ratios.values())
    text = words.format(faster=found.faster, slower=found.slower, n=n, extremes=shown)
    verdict = TIE if found.faster == found.slower == 0 else by_count(found.faster, n)
    return Result(text, verdict, figures(found.ratios) if with_detail else "")


def feature(graphs: str, strategy: str, name: str, algorithm: str = "bfs") -> Measured:
    """Return the measure of a feature: within the published set, and alone in place of the rule."""
    labels = {"published": (f"without {name}", "published"), "rule": ("none", f"only {name}")}

    def measured(record: Record, mode: str) -> Result:
        given = {"algorithm": algorithm, "group": "features"}
        both = (setting(strategy, label, **given) for label in labels[mode])
        return result_of(on_graphs(record, mode, graphs_of(graphs), *both), HELPS, False)

    return measured


def fastest(graphs: str, ours: str, *rivals: str) -> Measured:
    """Return the measure of on how many graphs a system is the fastest."""

    def measured(record: Record, mode: str) -> Result:
        won = []
        beaten = {}
        most = 0.0
        n = 0
        for graph in graphs_of(graphs):
            mine = choice(ours)(record, graph, mode)
            others = [time for rival in rivals if (time := choice(rival)(record, graph, mode))]
            if not mine or not others:
                continue
            n += 1
            nearest = min(others, key=lambda time: time.median)
            if is_faster(mine, nearest):
                won.append(graph)
            elif is_faster(nearest, mine):
                ratio = mine.median / nearest.median
                most = max(most, ratio)
                beaten[graph] = f"{graph} (`{nearest.strategy}`, {factor(ratio)})"
        if not n:
            raise NotMeasuredError
        ties = n - len(won) - len(beaten)
        text = f"fastest on {len(won)} of {n}"
        if beaten:
            text += f", beaten on {len(beaten)} by up to {factor(most)}"
        if ties:
            text += f", {ties} within the spread"
        detail = f"fastest on {', '.join(won)}; " if won else ""
        if beaten:
            detail += f"beaten on {', '.join(beaten.values())}"
        return Result(text, TIE if ties == n else by_count(len(won), n), detail)

    return measured


# --- BFS-4K

_COUNTED = ("internet-1M7", "kron-20", "mesh-1000", "web-NotreDame", "USA-road-NE")
# The paper's times of its rivals divided by those of BFS-4K, by the original; of a sequential search it has none.
BFS_4K_RATIOS: dict[str, list[float | None]] = {
    original: [None, *(time / times[-1] if time else None for time in times[:-1])]
    for original, times in said.BFS_4K_TABLE_2.items()
}


def duplicates_left(counted: dict) -> int:
    """Return how many vertices were queued beyond those that were reached, without the sources."""
    return counted["counters"]["queued"] - (counted["reached"] - counted["sources"])


def _duplicates(
    ours: dict[str, str], theirs: tuple[str, dict[str, str]], words: str, is_fewer: bool
) -> Measured:
    """Return the measure of duplicates beside those of another setting; settings by mode."""

    def measured(record: Record, mode: str) -> Result:
        facts = []
        ratios = {}
        strategy, labels = theirs
        for graph in _COUNTED:
            mine = record.counted(graph, "bfs_4k", ours[mode])
            other = record.counted(graph, strategy, labels[mode])
            if mine and other:
                left = duplicates_left(mine)
                beside = duplicates_left(other)
                ratios[graph] = left / max(beside, 1)
                facts.append(f"{graph}: {left:,} {words} against {beside:,}")
        if not facts:
            raise NotMeasuredError
        n = sum((ratio < 1.0) if is_fewer else (ratio > 1.0) for ratio in ratios.values())
        is_tie = is_fewer and all(ratio == 1.0 for ratio in ratios.values())
        text = f"{'fewer' if is_fewer else 'more'} on {n} of {len(ratios)}: "
        text += f"{extremes(ratios)} times as many"
        return Result(text, TIE if is_tie else by_count(n, len(ratios)), "; ".join(facts))

    return measured


def growth() -> Measured:
    """Return the measure of how many more duplicates wider virtual warps leave."""
    beside = {"published": "width 1, keep", "rule": "edge-discover, keep"}
    ours = dict.fromkeys(MODES, "width 4, keep")
    return _duplicates(ours, ("bfs_4k", beside), "duplicates", is_fewer=False)


def culling() -> Measured:
    """Return the measure of how many fewer duplicates Hash64 leaves than the culling of Merrill et al."""
    ours = {"published": "width 4, hash64", "rule": "edge-discover, hash64"}
    beside = dict.fromkeys(MODES, "published")
    return _duplicates(ours, ("gather_expand_contract", beside), "left", is_fewer=True)


# --- H-BF

H_BF_RATIOS = {
    original: [time / times[-1] for time in times[:-1]]
    for original, times in said.H_BF_TABLE_2.items()
}


def _table_3(record: Record, mode: str) -> Result:
    """The gain of the optimizations over a base without any, on the graphs with negative weights."""
    facts = []
    values = {}
    n = 0
    for graph, (original, features) in H_BF_NEGATIVE.items():
        both = " and ".join(features)
        label = f"only {both}" if mode == "published" else "rule"
        base = record.time(graph, "h_bf", "none", algorithm="sssp")
        better = record.time(graph, "h_bf", label, algorithm="sssp")
        if base and better:
            _, before, after = said.H_BF_TABLE_3[original]
            values[original] = base.median / better.median
            n += values[original] >= ENOUGH * before / after
            gain = factor(values[original])
            paper = factor(before / after)
            facts.append(f"{original}: {gain} (paper {paper}, {both})")
    if not facts:
        raise NotMeasuredError
    return Result(extremes(values), by_count(n, len(facts)), "; ".join(facts))


def _work(record: Record, mode: str) -> Result:
    """Relaxations per edge out of a reached vertex, which Dijkstra's algorithm relaxes once."""
    values = reasons.relaxed_per_edge(record, mode)
    if not values:
        raise NotMeasuredError
    within = sum(value <= 10.0 for value in values.values())
    text = f"{extremes(values)} times; at most 10 on {within} of {len(values)} graphs"
    return Result(text, by_count(within, len(values)))


def _negative(record: Record, mode: str) -> Result:
    graphs = [*H_BF_NEGATIVE, "USA-road-NY-negative"]
    ours = choice("sssp:h_bf")
    ran = [graph for graph in graphs if ours(record, graph, mode)]
    if not ran:
        raise NotMeasuredError
    text = f"runs on {len(ran)} graphs"
    try:
        found = on_graphs(record, mode, ran, choice("sssp:cpu:fifo"), ours)
    except NotMeasuredError:
        return Result(text, HOLDS)
    n = len(found.ratios)
    text += f"; {factor(found.mean)} times as fast as the sequential search ({n} graphs)"
    return Result(text, HOLDS)


# --- Luo, Wong, Hwu


def _no_faster(record: Record, mode: str) -> Result:
    *_, scale_free = UIUC_TABLES.values()
    both = choice("cpu:fifo"), choice("queue_of_warps")
    found = on_graphs(record, mode, scale_free, *both).ratios
    text = ", ".join(f"{graph} {factor(value)}" for graph, value in found.items())
    return Result(text, by_count(sum(value <= 1.05 for value in found.values()), len(found)))


# --- Springer


def place(name: str, graph: str, last: bool = False) -> Measured:
    """Return the measure of whether a variant of figure 7 is the fastest, or the slowest, beyond the spreads."""
    what = "slowest" if last else "fastest"

    def measured(record: Record, mode: str) -> Result:
        found = [variant(strategy)(record, graph, mode) for strategy in SPRINGER_VARIANTS]
        order = sorted(filter(None, found), key=lambda time: time.median, reverse=last)
        names = [time.strategy for time in order]
        if name not in names or len(order) < 2:
            raise NotMeasuredError
        rank = names.index(name)
        end = order[0]
        mine = order[rank]
        if mine is end:
            share = factor(order[1].median / mine.median)
            text = f"the {what} of {len(order)}; next `{order[1].strategy}`, {share} of its time"
            return Result(text, HOLDS)
        text = f"place {rank + 1} of {len(order)} from the {what}; `{end.strategy}` takes "
        text += f"{factor(end.median / mine.median)} of its time"
        is_beyond = is_faster(mine, end) if last else is_faster(end, mine)
        return Result(text, FAILS if is_beyond else TIE)

    return measured


def ratio(graphs: str, slower: str, quicker: str, paper: float | None = None) -> Measured:
    """Return the measure of the time of a strategy divided by that of another."""
    listed = list(graphs_of(graphs))
    words = (
        "{extremes}" if len(listed) == 1 else "on {faster} of {n}, reversed on {slower}: {extremes}"
    )

    def measured(record: Record, mode: str) -> Result:
        found = on_graphs(record, mode, listed, variant(slower), variant(quicker))
        result = result_of(found, words, len(found.ratios) > 2)
        if paper is None:
            return result
        return Result(result.text, by_factor(found.mean, paper))

    return measured


def close(graph: str, name: str, *others: str) -> Measured:
    """Return the measure of whether a variant takes at most 1 / ENOUGH times as long as others, or as some of them."""

    def measured(record: Record, mode: str) -> Result:
        mine = variant(name)(record, graph, mode)
        ratios = compared(
            (f"`{other}`", mine, variant(other)(record, graph, mode)) for other in others
        ).ratios
        n_close = sum(ratio <= 1.0 / ENOUGH for ratio in ratios.values())
        return Result(f"its time / theirs: {extremes(ratios)}", by_count(n_close, len(ratios)))

    return measured


def width(graph: str, expected: int) -> Measured:
    labels = {16: "published"} | {each: f"width {each}" for each in (1, 2, 4, 8, 32)}

    def measured(record: Record, _mode: str) -> Result:
        times = {
            each: time
            for each, label in labels.items()
            if (time := record.time(graph, "scan_virtual_warp", label))
        }
        if not times:
            raise NotMeasuredError
        best = min(times, key=lambda each: times[each].median)
        near = {each for each in times if not is_faster(times[best], times[each])}
        ties = ", ".join(map(str, sorted(near - {best})))
        text = f"best width {best}" + (f"; within the spread: {ties}" if ties else "")
        return Result(text, HOLDS if expected in near else FAILS)

    return measured


# --- Sevilmis, Sivri, Aydin

_SERIAL = {"buffers": 0, "switch": 1}  # places in table 1


def scaling(strategy: str) -> Measured:
    def measured(record: Record, _mode: str) -> Result:
        most = most_threads(record, strategy)
        if most < 2:
            raise NotMeasuredError
        both = choice(f"{strategy}*1"), choice(f"{strategy}*{most}")
        found = on_graphs(record, "", SEVILMIS, *both)
        tables = [said.SEVILMIS_1[SEVILMIS[graph]][_SERIAL[strategy]] for graph in found.ratios]
        place = THREADS.index(most) if most in THREADS else len(THREADS) - 1
        target = geometric_mean(times[0] / times[place] for times in tables)
        text = f"on {most} threads {mean_text(found.ratios.values())}; "
        text += f"the paper on as many: {factor(target)}"
        return Result(text, by_factor(found.mean, target))

    return measured


def _efficiency(record: Record, _mode: str) -> Result:
    most = most_threads(record, *_SERIAL)
    gains = [
        compared(
            (graph, threaded(record, graph, name, 1), threaded(record, graph, name, most))
            for graph in SEVILMIS
        ).ratios
        for name in _SERIAL
    ]
    both = [graph for graph in SEVILMIS if all(graph in found for found in gains)]
    if not both or most < 2:
        raise NotMeasuredError
    buffers, switch = gains
    higher = sum(buffers[graph] > switch[graph] for graph in both)
    facts = (
        f"{graph} {buffers[graph] / most:.2f} against {switch[graph] / most:.2f}" for graph in both
    )
    text = f"on {higher} of {len(both)} at {most} threads"
    return Result(text, by_count(higher, len(both)), ", ".join(facts))


def _bitset(record: Record, _mode: str) -> Result:
    """The time of bottom-up searches with integers divided by that with bits, per graph and number of threads."""
    found = compared(
        (
            f"{graph}, threads: {threads}",
            threaded(record, graph, "pull_integers", threads),
            threaded(record, graph, "pull_bits", threads),
        )
        for graph in SEVILMIS
        for threads in THREADS
    )
    return result_of(found, "faster in {faster} of {n}, slower in {slower}: {extremes}", True)


# --- claims

KINDS: dict[str, Callable[..., Measured]] = {
    "speedup": speedup,
    "counted": counted,
    "feature": feature,
    "fastest": fastest,
    "growth": growth,
    "culling": culling,
    "place": place,
    "ratio": ratio,
    "close": close,
    "width": width,
    "scaling": scaling,
}
SINGLE: dict[str, Measured] = {
    "table_3": _table_3,
    "work": _work,
    "negative": _negative,
    "no_faster": _no_faster,
    "efficiency": _efficiency,
    "bitset": _bitset,
}


def reason_of(of: str, **given: Any) -> Reason:
    """Return a reason of claims.toml; its graphs may be a table of them."""
    for name in {"graphs", "regular"} & given.keys():
        given[name] = tuple(graphs_of(given[name]))
    return partial(getattr(reasons, f"of_{of}"), **given)


def claim_of(measure: list, reason: dict | None = None, **about: str) -> Claim:
    kind, *given = measure
    measured = SINGLE[kind] if kind in SINGLE else KINDS[kind](*given)
    return Claim(measured=measured, reason=reason and reason_of(**reason), **about)


_LISTED = listed(__file__)
CLAIMS = {name: [claim_of(**each) for each in claims] for name, claims in _LISTED.items()}
