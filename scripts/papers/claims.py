"""The claims of the papers beside what is measured here: each verdict is computed from the record.

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
from typing import NamedTuple

from scripts.papers import reasons, said
from scripts.papers.experiments import BFS_4K, H_BF, H_BF_NEGATIVE, SEVILMIS, THREADS, UIUC_TABLES
from scripts.papers.reasons import Reason
from scripts.papers.record import NotMeasuredError, Record, Time, geometric_mean, is_faster
from scripts.papers.words import extremes, factor, figures

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold here", "not measured"
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


def threaded(record: Record, graph: str, strategy: str, threads: int) -> Time | None:
    return record.time(graph, strategy, device="cpu", threads=threads)


def on_threads(strategy: str, threads: int) -> Choice:
    return setting(strategy, device="cpu", threads=threads)


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
    ratios, faster, slower = {}, 0, 0
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
    return HOLDS if paper is None or ours >= ENOUGH * paper else IN_PART


def by_count(n: int, of: int) -> str:
    if not of:
        return UNKNOWN
    return HOLDS if n == of else IN_PART if n else FAILS


def mean_text(values: Iterable[float]) -> str:
    """Return the geometric mean in one line, with the extremes."""
    listed = list(values)
    ends = f"{factor(min(listed))} to {factor(max(listed))}"
    return f"{factor(geometric_mean(listed))} ({ends}, {len(listed)} graphs)"


def speedup(
    graphs: Iterable[str], before: Choice, after: Choice, paper: dict[str, float] | None = None
) -> Measured:
    """Return the measure of a mean factor beside the paper's, which is given by our graph."""

    def measured(record: Record, mode: str) -> Result:
        found = on_graphs(record, mode, graphs, before, after)
        same = [paper[graph] for graph in found.ratios if graph in paper] if paper else []
        target = geometric_mean(same) if same else None
        words = f"; the paper there {factor(target)}" if same else ""
        return Result(mean_text(found.ratios.values()), by_factor(found.mean, target), paper=words)

    return measured


def counted(
    graphs: Iterable[str],
    before: Choice,
    after: Choice,
    words: str = "helps on {faster}, harms on {slower} of {n} graphs: {extremes}",
    with_detail: bool = False,
) -> Measured:
    """Return the measure of on how many graphs one setting is faster than another."""

    def measured(record: Record, mode: str) -> Result:
        return result_of(on_graphs(record, mode, graphs, before, after), words, with_detail)

    return measured


def result_of(found: Compared, words: str, with_detail: bool) -> Result:
    n = len(found.ratios)
    shown = extremes(found.ratios) if n > 1 else factor(*found.ratios.values())
    text = words.format(faster=found.faster, slower=found.slower, n=n, extremes=shown)
    verdict = TIE if found.faster == found.slower == 0 else by_count(found.faster, n)
    return Result(text, verdict, figures(found.ratios) if with_detail else "")


def feature(graphs: Iterable[str], strategy: str, name: str, algorithm: str = "bfs") -> Measured:
    """Return the measure of a feature: within the published set, and alone in place of the rule."""
    given = {"algorithm": algorithm, "group": "features"}
    within = setting(strategy, f"without {name}", **given), setting(strategy, **given)
    alone = setting(strategy, "none", **given), setting(strategy, f"only {name}", **given)
    of_modes = {"published": counted(graphs, *within), "rule": counted(graphs, *alone)}
    return lambda record, mode: of_modes[mode](record, mode)


def fastest(graphs: Iterable[str], ours: Choice, *rivals: Choice) -> Measured:
    """Return the measure of on how many graphs a system is the fastest."""

    def measured(record: Record, mode: str) -> Result:
        won: list[str] = []
        beaten: dict[str, str] = {}
        most, n = 0.0, 0
        for graph in graphs:
            mine = ours(record, graph, mode)
            others = [time for rival in rivals if (time := rival(record, graph, mode))]
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
        text += f", beaten on {len(beaten)} by up to {factor(most)}" if beaten else ""
        text += f", {ties} within the spread" if ties else ""
        detail = f"fastest on {', '.join(won)}; " if won else ""
        detail += f"beaten on {', '.join(beaten.values())}" if beaten else ""
        return Result(text, TIE if ties == n else by_count(len(won), n), detail)

    return measured


def figure_of(pairs: Iterable[tuple[float | None, float | None]]) -> str:
    """Return the paper's own factors in one line, of the pairs that it has."""
    return mean_text(theirs / ours for theirs, ours in pairs if theirs and ours)


# --- BFS-4K

MERRILL = (
    "gather_expand_contract",
    "gather_contract_expand",
    "gather_two_phase",
    "gather_switch",
)
STRATEGY_OF = {
    "Harish": ("scan_flags",),
    "Edge Parall.": ("scan_edges",),
    "Static Virtual Warp": ("scan_virtual_warp",),
    "Luo": ("queue_of_warps",),
    "Garland": MERRILL,
}
ALL_RIVALS = tuple(strategy for strategies in STRATEGY_OF.values() for strategy in strategies)
_COUNTED = ("internet-1M7", "kron-20", "mesh-1000", "web-NotreDame", "USA-road-NE")
_FEATURED = ("internet-1M7", "kron-20", "mesh-1000", "USA-road-NE", "web-NotreDame")
_FEATURED += ("erdos-renyi-2M", "rmat-2M-128M", "honeycomb-4M6")


# The paper's times of its rivals divided by those of BFS-4K, by the original; of a sequential search it has none.
BFS_4K_RATIOS: dict[str, list[float | None]] = {
    original: [None, *(time / times[-1] if time else None for time in times[:-1])]
    for original, times in said.BFS_4K_TABLE_2.items()
}


def _paper_ratios(place: int) -> dict[str, float]:
    """Return the paper's ratios of a rival to BFS-4K, by our graph that stands for the original."""
    found = {graph: BFS_4K_RATIOS.get(original) for graph, original in BFS_4K.items()}
    return {graph: each[place] for graph, each in found.items() if each and each[place]}


def duplicates_left(counted: dict) -> int:
    """Return how many vertices were queued beyond those that were reached, without the sources."""
    return counted["counters"]["queued"] - (counted["reached"] - counted["sources"])


def _duplicates(
    ours: dict[str, str], theirs: tuple[str, dict[str, str]], words: str, is_fewer: bool
) -> Measured:
    """Return the measure of duplicates beside those of another setting; settings by mode."""

    def measured(record: Record, mode: str) -> Result:
        facts, ratios = [], {}
        strategy, labels = theirs
        for graph in _COUNTED:
            mine = record.counted(graph, "bfs_4k", ours[mode])
            other = record.counted(graph, strategy, labels[mode])
            if mine and other:
                left, beside = duplicates_left(mine), duplicates_left(other)
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


_SAME = dict.fromkeys(MODES, "published")
_BFS_4K_FEATURES = (
    ("dynamic virtual warps improve the search (5.2)", "figure 14, without numbers",
     "dynamic widths", reasons.of_dynamic_widths),
    ("dynamic parallelism improves graphs of uneven degree (5.3)", "figure 14, without numbers",
     "children", reasons.of_children),
    ("edge-discover balances the work (5.4)", "figure 14, without numbers",
     "edge-discover", reasons.of_edge_discover),
    ("a single block helps small frontiers (5.5)", "figure 7, without numbers",
     "single block", reasons.of_single_block),
    ("coalesced writes pay (5.6)", "no number", "coalesced writes", None),
    ("coalesced reads pay (5.6)", "no number", "shared reads", None),
    ("prefix sums pay (5.1)", "no number", "prefix sum",
     partial(reasons.of_few, strategy="bfs_4k", feature="prefix sum", algorithm="bfs")),
    ("duplicate detection pays (6)", "figure 14, without numbers", "Hash64", reasons.of_hash64),
)  # fmt: skip
BFS_4K_CLAIMS = (
    Claim(
        'BFS-4K "outperforms all the other implementations in every graph" (7)',
        "fastest on 18 of 18",
        fastest(BFS_4K, system("bfs_4k"), *map(system, ALL_RIVALS)),
        reasons.of_all_rivals,
    ),
    *(
        Claim(
            f"faster than {rival} (table 2)",
            figure_of((times[i], times[-1]) for times in said.BFS_4K_TABLE_2.values()),
            speedup(BFS_4K, system(*strategies), system("bfs_4k"), _paper_ratios(i + 1)),
            partial(reasons.of_depth, rivals=strategies, place=i),
        )
        for i, (rival, strategies) in enumerate(STRATEGY_OF.items())
    ),
    Claim(
        "faster than a sequential search (figure 15)",
        "the text has no numbers",
        speedup(BFS_4K, system("fifo", device="cpu"), system("bfs_4k")),
    ),
    *(
        Claim(words, figure, feature(_FEATURED, "bfs_4k", name), reason, "alone")
        for words, figure, name, reason in _BFS_4K_FEATURES
    ),
    Claim(
        "wider virtual warps make more duplicates, edge-discover few (6, figure 12)",
        "a figure without numbers",
        _duplicates(
            dict.fromkeys(MODES, "width 4, keep"),
            ("bfs_4k", {"published": "width 1, keep", "rule": "edge-discover, keep"}),
            "duplicates",
            is_fewer=False,
        ),
        reasons.of_growth,
        "width 4 beside edge-discover",
    ),
    Claim(
        "Hash64 leaves fewer duplicates than the culling of Merrill et al. (figure 13)",
        "21,432 left against 28,892 (-25.8 %)",
        _duplicates(
            {"published": "width 4, hash64", "rule": "edge-discover, hash64"},
            ("gather_expand_contract", _SAME),
            "left",
            is_fewer=True,
        ),
        reasons.of_culling,
        "with edge-discover",
    ),
)

# --- H-BF

DAVIDSON = ("work_front", "near_far_piles", "buckets")
H_BF_RATIOS = {
    original: [time / times[-1] for time in times[:-1]]
    for original, times in said.H_BF_TABLE_2.items()
}
_SSSP = partial(system, algorithm="sssp")
_OURS = _SSSP("h_bf")


def _table_3(record: Record, mode: str) -> Result:
    """The gain of the optimizations over a base without any, on the graphs with negative weights."""
    facts, values, n = [], {}, 0
    for graph, (original, features) in H_BF_NEGATIVE.items():
        both = " and ".join(features)
        label = f"only {both}" if mode == "published" else "rule"
        base = record.time(graph, "h_bf", "none", algorithm="sssp")
        better = record.time(graph, "h_bf", label, algorithm="sssp")
        if base and better:
            _, before, after = said.H_BF_TABLE_3[original]
            values[original] = base.median / better.median
            n += values[original] >= ENOUGH * before / after
            gain, paper = factor(values[original]), factor(before / after)
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
    ran = [graph for graph in graphs if _OURS(record, graph, mode)]
    if not ran:
        raise NotMeasuredError
    text = f"runs on {len(ran)} graphs"
    try:
        found = on_graphs(record, mode, ran, _SSSP("fifo", device="cpu"), _OURS)
    except NotMeasuredError:
        return Result(text, HOLDS)
    n = len(found.ratios)
    text += f"; {factor(found.mean)} times as fast as the sequential search ({n} graphs)"
    return Result(text, HOLDS)


_DAVIDSON_REASON = partial(reasons.of_davidson, graphs=tuple(H_BF), rivals=DAVIDSON)
_FEW = partial(partial, reasons.of_few, strategy="h_bf")
_H_BF_FEATURES = (
    ("edge classes save relaxations and atomics (4.1)", "3.4 on wiki-talk",
     "edge classes", reasons.of_edge_classes),
    ("64-bit atomics remove duplicates (4.2)", "1.9 on random_2Mv.128Me",
     "duplicate removal", reasons.of_atomic64),
    ("frontier and offsets are streamed (5.1, item 1)", "no number",
     "frontier streamed", _FEW(feature="frontier streamed")),
    ("edges through the read-only cache (5.1, item 2)", "no number",
     "edges read-only", _FEW(feature="edges read-only")),
    ("distances past the L1 cache (5.1, item 3)", "no number",
     "L1 bypassed", _FEW(feature="L1 bypassed")),
    ("enqueuing through shared memory (5.1, item 4)", "no number",
     "shared enqueue", reasons.of_shared_enqueue),
    ("32 vertices per virtual warp (5.2)", "2.9 on hugetrace",
     "warp workload", reasons.of_warp_workload),
    ("dynamic virtual warps of 4 to 32 lanes (5.2)", "2.6 on as-Skitter, with children",
     "dynamic widths", reasons.of_widths_h_bf),
    ("dynamic parallelism (5.3)", "2.6 on as-Skitter, with widths",
     "children", reasons.of_children_h_bf),
)  # fmt: skip


def _over_h_bf(words: str, rivals: Choice, place: int, reason: Reason | None, figure="") -> Claim:
    """Return the claim that H-BF is faster than a system in a column of table 2."""
    paper = {graph: H_BF_RATIOS[original][place] for graph, original in H_BF.items()}
    listed = mean_text(ratios[place] for ratios in H_BF_RATIOS.values())
    return Claim(words, figure + listed, speedup(H_BF, rivals, _OURS, paper), reason)


H_BF_CLAIMS = (
    _over_h_bf(
        '"an average speedup of 5x higher than the existing most efficient parallel implementations" '
        "(abstract): over the better of Workfront Sweep and Near-Far Pile (table 2)",
        _SSSP(*DAVIDSON),
        3,
        _DAVIDSON_REASON,
        "5; table 2: ",
    ),
    _over_h_bf(
        "faster than LoneStar (table 2)",
        _SSSP("topology_thread"),
        2,
        partial(reasons.of_lonestar, graphs=tuple(H_BF)),
    ),
    _over_h_bf(
        "faster than queue-based Bellman-Ford on a CPU (table 2, figure 8)",
        _SSSP("fifo", device="cpu"),
        0,
        None,
    ),
    _over_h_bf(
        "faster than Dijkstra's algorithm on a CPU, but on USA-road-d.CAL (table 2)",
        _SSSP("heap", device="cpu"),
        1,
        None,
    ),
    Claim(
        '"H-BF outperforms all the other implementations in every graph" (6.2)',
        "6 of 7 (Dijkstra on USA-road-d.CAL: 588 against 720 ms)",
        fastest(
            H_BF,
            _OURS,
            *map(_SSSP, ("topology_thread", *DAVIDSON)),
            *(_SSSP(name, device="cpu") for name in ("fifo", "heap")),
        ),
        _DAVIDSON_REASON,
    ),
    Claim(
        'optimizations improve the speedup over the sequential search "from a minimum of twice to '
        'almost four times" (table 3)',
        "2.9 (warp workload), 3.4 (edge classes), 2.6 (children and widths), 1.9 (64-bit atomics)",
        _table_3,
        reasons.of_table_3,
    ),
    *(
        Claim(words, figure, feature(H_BF, "h_bf", name, "sssp"), reason, "alone")
        for words, figure, name, reason in _H_BF_FEATURES
    ),
    Claim(
        'relaxations within "one order of magnitude" of Dijkstra\'s (6.2, figure 9)',
        "about 10 times on msdoor",
        _work,
        reasons.of_work,
    ),
    Claim("it works on graphs with negative weights (abstract)", "4 graphs", _negative),
)

# --- Luo, Wong, Hwu

_REGULAR, _ROADS_OF_UIUC, _SCALE_FREE = UIUC_TABLES.values()
_UIUC_KINDS = tuple(
    zip(
        UIUC_TABLES.items(),
        ("regular graphs", "road networks", "scale-free graphs"),
        (reasons.of_scan_per_level, reasons.of_scan_per_level, reasons.of_few_levels),
        strict=True,
    )
)
_ALL_OF_UIUC = [graph for table in UIUC_TABLES.values() for graph in table]
_UIUC_BFS = system("queue_of_warps")


def _over_uiuc(rival: str, rivals: Choice, place: int, n_tables: int, reason=None) -> list[Claim]:
    """Return the claims that UIUC-BFS is faster than a system, table by table."""
    found = []
    for (title, graphs), what, of_kind in _UIUC_KINDS[:n_tables]:
        paper = {
            graph: said.UIUC[graph][place] / said.UIUC[graph][2]
            for graph in graphs
            if graph in said.UIUC
        }
        words = f"faster than {rival} on {what} ({title.partition(':')[0]})"
        measured = speedup(graphs, rivals, _UIUC_BFS, paper)
        likely = partial(reason or of_kind, graphs=tuple(graphs))
        found.append(Claim(words, mean_text(paper.values()), measured, likely))
    return found


def _no_faster(record: Record, mode: str) -> Result:
    before = system("fifo", device="cpu")
    found = on_graphs(record, mode, _SCALE_FREE, before, _UIUC_BFS).ratios
    text = ", ".join(f"{graph} {factor(value)}" for graph, value in found.items())
    return Result(text, by_count(sum(value <= 1.05 for value in found.values()), len(found)))


def _layers(words: str, label: str, reason: Reason) -> Claim:
    """Return the claim of a part of UIUC-BFS; the other knobs are as published, so that there is one result."""
    without = setting("queue_of_warps", label, group="layers")
    whole = setting("queue_of_warps", group="layers")
    return Claim(words, "no number", counted(_ALL_OF_UIUC, without, whole), reason)


UIUC_CLAIMS = (
    *_over_uiuc("CPU-BFS", system("fifo", device="cpu"), 1, 2, reasons.of_scan_per_level),
    Claim(
        'no faster than CPU-BFS on scale-free graphs: "highly imbalanced problems cannot benefit as much" (table 3)',
        "0.52 (1M), 0.94 (5M), 1.05 (10M)",
        _no_faster,
        partial(reasons.of_cpu_per_edge, graphs=tuple(_SCALE_FREE), regular=tuple(_REGULAR)),
    ),
    *_over_uiuc("IIIT-BFS", system("scan_flags"), 0, 3),
    Claim(
        "IIIT-BFS is slower than CPU-BFS (tables 1 to 3)",
        "on 13 of 13",
        counted(
            _ALL_OF_UIUC,
            system("scan_flags"),
            system("fifo", device="cpu"),
            "slower on {faster} of {n}; IIIT-BFS's time / the CPU's: {extremes}",
            with_detail=True,
        ),
        partial(reasons.of_scan_per_level, graphs=(*_REGULAR, *_ROADS_OF_UIUC)),
    ),
    Claim(
        "queues of warps below those of blocks avoid collisions (3.2)",
        "no number",
        counted(
            _ALL_OF_UIUC,
            setting("queue_of_blocks", group="queues"),
            setting("queue_of_blocks", "queues warp", group="queues"),
        ),
        reasons.of_warp_queues,
    ),
    _layers(
        "a barrier of one block in place of launches saves time: layer 1 (3.3)",
        "without layer 1",
        reasons.of_layer_1,
    ),
    _layers(
        "a barrier of all blocks in place of launches saves time: layer 2 (3.3)",
        "without layer 2",
        reasons.of_layer_2,
    ),
    _layers(
        "both in place of a launch per level save time (3.3)",
        "layer 3 alone",
        reasons.of_layer_2,
    ),
    _layers("vertices of high degree are split (4)", "without splitting", reasons.of_splitting),
)

# --- Springer

_FIGURE_7 = ("scan_relax", "scan_flags", "scan_level", "scan_deferred", "scan_by_degree")
_FIGURE_7 += ("scan_redirected", "scan_virtual_warp", "queue_of_blocks", "queue_by_prefix_sum")
_FIGURE_7 += ("scan_relax_edges", "scan_edges")


def _place(name: str, graph: str, last: bool = False) -> Measured:
    """Return the measure of whether a variant of figure 7 is the fastest, or the slowest, beyond the spreads."""
    what = "slowest" if last else "fastest"

    def measured(record: Record, mode: str) -> Result:
        found = [variant(strategy)(record, graph, mode) for strategy in _FIGURE_7]
        order = sorted(filter(None, found), key=lambda time: time.median, reverse=last)
        names = [time.strategy for time in order]
        if name not in names or len(order) < 2:
            raise NotMeasuredError
        place = names.index(name)
        end, mine = order[0], order[place]
        if mine is end:
            share = factor(order[1].median / mine.median)
            text = f"the {what} of {len(order)}; next `{order[1].strategy}`, {share} of its time"
            return Result(text, HOLDS)
        text = f"place {place + 1} of {len(order)} from the {what}; `{end.strategy}` takes "
        text += f"{factor(end.median / mine.median)} of its time"
        is_beyond = is_faster(mine, end) if last else is_faster(end, mine)
        return Result(text, FAILS if is_beyond else TIE)

    return measured


def ratio_of(
    slower: str, quicker: str, graphs: tuple[str, ...], paper: float | None = None
) -> Measured:
    """Return the measure of the time of a strategy divided by that of another."""
    words = "{extremes}"
    if len(graphs) > 1:
        words = "on {faster} of {n}, reversed on {slower}: {extremes}"

    def measured(record: Record, mode: str) -> Result:
        found = on_graphs(record, mode, graphs, variant(slower), variant(quicker))
        result = result_of(found, words, len(found.ratios) > 2)
        if paper is None:
            return result
        return Result(result.text, by_factor(found.mean, paper))

    return measured


def _is_close(name: str, others: tuple[str, ...], graph: str) -> Measured:
    """Return the measure of whether a variant takes at most 1 / ENOUGH times as long as others, or as some of them."""

    def measured(record: Record, mode: str) -> Result:
        mine = variant(name)(record, graph, mode)
        ratios = compared(
            (f"`{other}`", mine, variant(other)(record, graph, mode)) for other in others
        ).ratios
        n_close = sum(ratio <= 1.0 / ENOUGH for ratio in ratios.values())
        return Result(f"its time / theirs: {extremes(ratios)}", by_count(n_close, len(ratios)))

    return measured


def _width(graph: str, widths: tuple[int, ...]) -> Measured:
    labels = {16: "published"} | {width: f"width {width}" for width in (1, 2, 4, 8, 32)}

    def measured(record: Record, _mode: str) -> Result:
        times = {
            width: time
            for width, label in labels.items()
            if (time := record.time(graph, "scan_virtual_warp", label))
        }
        if not times:
            raise NotMeasuredError
        best = min(times, key=lambda width: times[width].median)
        near = {width for width in times if not is_faster(times[best], times[width])}
        ties = ", ".join(str(width) for width in sorted(near - {best}))
        text = f"best width {best}" + (f"; within the spread: {ties}" if ties else "")
        return Result(text, HOLDS if near & set(widths) else FAILS)

    return measured


_SLASHDOT, _ROADS, _TALK = "soc-Slashdot0902", "USA-road-NE", "talk-2M4"
_EDGES = ("scan_relax_edges", "scan_edges")
_PER_THREAD = ("scan_level", "queue_of_blocks", "scan_virtual_warp", "scan_edges")
_LONGEST = "the longest list decides, not the mean, and more lanes finish it sooner"
_PER_EDGE = "with a thread per edge no list is longer than another"
_NOTHING_TO_SAVE = (
    "looking at all vertices, or at all edges, takes no longer than a launch and a read by the host, so that a "
    "queue has nothing to save"
)
_ONE_WALKS = "one thread walks the longest list, and more lanes per list finish it sooner"
_IN_EACH = "one thread walks the longest list in each of them, and the sums take little beside that"
# What is said, the paper's figure, the measure, and of the reason the graph, the variants and further words.
_SPRINGER = (
    ("Slashdot: the unoptimized version is the slowest (5)", "figure 7a",
     _place("scan_relax", _SLASHDOT, True), _SLASHDOT, _FIGURE_7, ""),
    ('Slashdot: "having a frontier of vertices can cut the runtime in half"', "2",
     ratio_of("scan_relax", "scan_flags", (_SLASHDOT,), 2.0),
     _SLASHDOT, ("scan_relax", "scan_flags"), ""),
    ("Slashdot: virtual warps of 16 perform very well", "figure 7a",
     ratio_of("scan_level", "scan_virtual_warp", (_SLASHDOT,)), _SLASHDOT, _PER_THREAD, ""),
    ("Slashdot: a slightly smaller virtual warp could be better still", "figure 7a",
     _width(_SLASHDOT, (8,)),
     _SLASHDOT, ("scan_level", "scan_virtual_warp", "scan_edges"), _LONGEST),
    ("Slashdot: virtual warps come close to the edge-centric versions", "figure 7a",
     _is_close("scan_virtual_warp", _EDGES, _SLASHDOT),
     _SLASHDOT, ("scan_virtual_warp", *_EDGES), _PER_EDGE),
    ("Slashdot: a queue does not pay", "figure 7a",
     ratio_of("queue_of_blocks", "scan_level", (_SLASHDOT,)), _SLASHDOT, _PER_THREAD, ""),
    ("roads: prefix sums are the slowest", "1.375 s",
     _place("queue_by_prefix_sum", _ROADS, True), _ROADS, _FIGURE_7, ""),
    ("roads: a frontier queue is the best", "figure 7b",
     _place("queue_of_blocks", _ROADS), _ROADS, _PER_THREAD, _NOTHING_TO_SAVE),
    ("roads: virtual warps do not pay", "figure 7b",
     ratio_of("scan_virtual_warp", "scan_level", (_ROADS,)), _ROADS, _PER_THREAD, ""),
    ("WikiTalk: a frontier queue is the best", "figure 7c",
     _place("queue_of_blocks", _TALK), _TALK, _PER_THREAD, _ONE_WALKS),
    ("WikiTalk: reordering by degree gives a little", "figure 7c",
     ratio_of("scan_level", "scan_by_degree", (_TALK,)),
     _TALK, ("scan_level", "scan_by_degree"), ""),
    ("WikiTalk: prefix sums are the slowest", "figure 7c",
     _place("queue_by_prefix_sum", _TALK, True),
     _TALK, ("queue_by_prefix_sum", "scan_level", "queue_of_blocks", "scan_relax"), _IN_EACH),
)  # fmt: skip
SPRINGER_CLAIMS = tuple(
    Claim(
        words,
        figure,
        measured,
        partial(reasons.of_variants, graph=graph, names=names, words=further),
    )
    for words, figure, measured, graph, names, further in _SPRINGER
)

# --- Sevilmis, Sivri, Aydin

_SERIAL = {"buffers": 0, "switch": 1}  # places in table 1


def _scaling(strategy: str) -> Measured:
    def measured(record: Record, _mode: str) -> Result:
        most = most_threads(record, strategy)
        if most < 2:
            raise NotMeasuredError
        found = on_graphs(record, "", SEVILMIS, on_threads(strategy, 1), on_threads(strategy, most))
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


def _over_serial(words: str, strategy: str, serial: str, place: int) -> Claim:
    """Return the claim of the own serial version's time divided by that on the GPU, as tables 2 and 3 have it."""
    of_paper = {
        name: times[_SERIAL[serial]][0] / said.SEVILMIS_23[name][place]
        for name, times in said.SEVILMIS_1.items()
    }
    low, high = factor(min(of_paper.values())), factor(max(of_paper.values()))
    figure = f"{factor(geometric_mean(of_paper.values()))} ({low} to {high})"
    paper = {graph: of_paper[original] for graph, original in SEVILMIS.items()}
    return Claim(
        f"{words}: over the serial version (table {2 + place // 2})",
        figure,
        speedup(SEVILMIS, on_threads(serial, 1), system(strategy), paper),
    )


_HYBRIDS = (("scan_level", "scan_switch"), ("queue_thread", "queue_switch"))
_ER = said.SEVILMIS_23["rmat-er"]
SEVILMIS_CLAIMS = (
    Claim(
        "top-down scales with threads (table 1)",
        "2.1 to 6.2 on 16 threads",
        _scaling("buffers"),
        partial(reasons.of_threads, graphs=tuple(SEVILMIS), strategy="buffers"),
    ),
    Claim(
        "hybrid scales with threads (table 1)",
        "1.6 to 5.3 on 16 threads",
        _scaling("switch"),
        partial(reasons.of_threads, graphs=tuple(SEVILMIS), strategy="switch"),
    ),
    Claim(
        "hybrid lowers the serial time (figure 2)",
        "1.1 to 4.9, on 5 of 5",
        counted(
            SEVILMIS,
            on_threads("buffers", 1),
            on_threads("switch", 1),
            "on {faster} of {n}, slower on {slower}: {extremes}",
            with_detail=True,
        ),
        partial(
            reasons.of_hybrids, graphs=tuple(SEVILMIS), push="buffers", pull="switch", device="cpu"
        ),
    ),
    Claim(
        "efficiency is higher top-down (figure 4)",
        "on 4 of 5 at 16 threads",
        _efficiency,
        partial(reasons.of_threads, graphs=tuple(SEVILMIS), strategy="buffers"),
    ),
    Claim(
        "bottom-up, a bitset in place of integers is beneficial (4.2.2)",
        "no number",
        _bitset,
        partial(reasons.of_bitset, graphs=tuple(SEVILMIS)),
    ),
    _over_serial("layers, top-down", "scan_level", "buffers", 0),
    _over_serial("layers, hybrid", "scan_switch", "switch", 1),
    _over_serial("frontiers, top-down", "queue_thread", "buffers", 2),
    _over_serial("frontiers, hybrid", "queue_switch", "switch", 3),
    Claim(
        'layers perform "extremely bad" on europe.osm, where frontiers do not',
        "20 times slower",
        ratio_of("scan_level", "queue_thread", ("road-12M",), 20.0),
        partial(
            reasons.of_levels_of,
            graph="road-12M",
            names=("scan_level", "queue_thread"),
            words="looking at all vertices takes little more than a launch and a read by the host",
        ),
    ),
    *(
        Claim(
            f"layers are faster than frontiers on rmat-er, {way}",
            factor(_ER[place + 2] / _ER[place]),
            ratio_of(frontiers, layers, ("erdos-renyi-2M",), paper),
            partial(
                reasons.of_levels_of,
                graph="erdos-renyi-2M",
                names=(layers, frontiers),
                words="lanes that append at the same time share one atomic (`kt/frontier_queue.cuh`), "
                "so that a queue costs little",
            ),
        )
        for way, place, layers, frontiers, paper in (
            ("top-down", 0, "scan_level", "queue_thread", 1.8),
            ("hybrid", 1, "scan_switch", "queue_switch", 4.1),
        )
    ),
    *(
        Claim(
            f'hybrid "performs always better" than top-down, by {what}',
            figure,
            ratio_of(push, pull, tuple(SEVILMIS)),
            partial(reasons.of_hybrids, graphs=tuple(SEVILMIS), push=push, pull=pull),
        )
        for (push, pull), what, figure in zip(
            _HYBRIDS,
            ("layers", "frontiers"),
            ("5 of 5", "4 of 5 (not europe.osm)"),
            strict=True,
        )
    ),
)

CLAIMS = {
    "bfs-4k": BFS_4K_CLAIMS,
    "h-bf": H_BF_CLAIMS,
    "uiuc-bfs": UIUC_CLAIMS,
    "springer": SPRINGER_CLAIMS,
    "sevilmis": SEVILMIS_CLAIMS,
}
