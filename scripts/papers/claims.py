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
from dataclasses import dataclass, field

from scripts.papers import reasons, said
from scripts.papers.experiments import BFS_4K, H_BF, H_BF_NEGATIVE, SEVILMIS, THREADS, UIUC_TABLES
from scripts.papers.reasons import Reason
from scripts.papers.record import Record, Time, geometric_mean, is_faster
from scripts.papers.words import extremes, factor

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold here", "not measured"
TIE = "no difference beyond the spread"
ENOUGH = 0.8  # of the paper's factor
MODES = ("published", "rule")


@dataclass(frozen=True)
class Result:
    """What is measured of a claim with one way to choose knobs.

    ``detail``: the same graph by graph, where that does not fit into a table of all claims.
    """

    text: str
    verdict: str
    detail: str = ""


NOT_MEASURED = Result(UNKNOWN, UNKNOWN)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: its sentence and figure, and functions of the record.

    ``reasons``: for a verdict, the likely reason, computed from the record. ``other``: what the second result is of.
    """

    said: str
    figure: str
    measured: Callable[[Record, str], Result]
    reasons: dict[str, Reason] = field(default_factory=dict)
    other: str = "by the rule"


def unless_it_holds(reason: Reason) -> dict[str, Reason]:
    """Return one reason for both verdicts against a claim."""
    return {IN_PART: reason, FAILS: reason}


def by_factor(ours: float, paper: float | None) -> str:
    if ours <= 1.0:
        return FAILS
    return HOLDS if paper is None or ours >= ENOUGH * paper else IN_PART


def by_count(n: int, of: int) -> str:
    if not of:
        return UNKNOWN
    return HOLDS if n == of else IN_PART if n else FAILS


def row(
    record: Record,
    graph: str,
    strategy: str,
    mode: str,
    algorithm: str = "bfs",
    device: str = "cuda",
) -> Time | None:
    """Return the time of a system: as published, or the best that a rule or a search finds.

    A static virtual warp is tuned per graph in the papers, so its published width is the best one.
    """
    given = {"algorithm": algorithm, "device": device}
    if device == "cpu":
        return record.time(graph, strategy, threads=1, **given)
    if mode == "published" and strategy != "scan_virtual_warp":
        return record.time(graph, strategy, "published", **given)
    if strategy in ("bfs_4k", "h_bf", "queue_of_warps"):
        return record.time(graph, strategy, "rule", **given)
    return record.best(graph, strategy, **given)


def best_of(
    record: Record, graph: str, strategies: Iterable[str], mode: str, algorithm: str = "bfs"
) -> Time | None:
    found = [
        time for strategy in strategies if (time := row(record, graph, strategy, mode, algorithm))
    ]
    return min(found, key=lambda time: time.median, default=None)


def speedups(
    record: Record,
    graphs: Iterable[str],
    rivals: tuple[str, ...],
    ours: str,
    mode: str,
    algorithm: str = "bfs",
    device: str = "cuda",
) -> dict[str, float]:
    """Return for each measured graph the rival's time (the best of several) divided by ours."""
    found = {}
    for graph in graphs:
        mine = row(record, graph, ours, mode, algorithm)
        if device == "cpu":
            theirs = row(record, graph, rivals[0], mode, algorithm, device)
        else:
            theirs = best_of(record, graph, rivals, mode, algorithm)
        if mine and theirs:
            found[graph] = theirs.median / mine.median
    return found


def mean_text(found: dict[str, float], paper: dict[str, float]) -> str:
    """Return the geometric mean with its extremes, and the paper's over the graphs that are measured."""
    low, high = min(found.values()), max(found.values())
    text = f"{factor(geometric_mean(found.values()))} ({factor(low)} to {factor(high)}, {len(found)} graphs)"
    same = [paper[graph] for graph in found if graph in paper]
    return text + (f"; the paper there {factor(geometric_mean(same))}" if same else "")


def speedup_claim(
    sentence: str,
    graphs: dict[str, str],
    rivals: tuple[str, ...],
    ours: str,
    paper: dict[str, float],
    *,
    figure: str,
    algorithm: str = "bfs",
    device: str = "cuda",
    reasons: dict[str, Reason] | None = None,
) -> Claim:
    """Return the claim that ours is faster than a rival by the paper's factors, which are given by our graph."""

    def measured(record: Record, mode: str) -> Result:
        found = speedups(record, graphs, rivals, ours, mode, algorithm, device)
        if not found:
            return NOT_MEASURED
        same = [paper[graph] for graph in found if graph in paper]
        target = geometric_mean(same) if same else None
        shown = paper if mode == "published" else {}
        return Result(mean_text(found, shown), by_factor(geometric_mean(found.values()), target))

    return Claim(sentence, figure, measured, reasons or {})


def figure_of(values: Iterable[float]) -> str:
    """Return the paper's own factors in one line."""
    listed = list(values)
    return f"{factor(geometric_mean(listed))} ({factor(min(listed))} to {factor(max(listed))}, {len(listed)} graphs)"


def fastest_claim(
    sentence: str,
    figure: str,
    graphs: Iterable[str],
    ours: str,
    rivals: tuple[str, ...],
    *,
    algorithm: str = "bfs",
    sequential: tuple[str, ...] = (),
    reasons: dict[str, Reason] | None = None,
) -> Claim:
    """Return the claim that ours is the fastest system on every graph."""

    def measured(record: Record, mode: str) -> Result:
        won: list[str] = []
        beaten: dict[str, float] = {}
        by_whom: list[str] = []
        n = 0
        for graph in graphs:
            mine = row(record, graph, ours, mode, algorithm)
            others = [row(record, graph, rival, mode, algorithm) for rival in rivals]
            others += [row(record, graph, rival, mode, algorithm, "cpu") for rival in sequential]
            timed = [time for time in others if time]
            if not mine or not timed:
                continue
            n += 1
            nearest = min(timed, key=lambda time: time.median)
            if is_faster(mine, nearest):
                won.append(graph)
            elif is_faster(nearest, mine):
                beaten[graph] = mine.median / nearest.median
                by_whom.append(f"{graph} (`{nearest.strategy}`, {factor(beaten[graph])})")
        if not n:
            return NOT_MEASURED
        text = f"fastest on {len(won)} of {n}"
        if beaten:
            text += f", beaten on {len(beaten)} by up to {factor(max(beaten.values()))}"
        ties = n - len(won) - len(beaten)
        text += f", {ties} within the spread" if ties else ""
        verdict = TIE if ties == n else by_count(len(won), n)
        detail = f"fastest on {', '.join(won)}; " if won else ""
        detail += f"beaten on {', '.join(by_whom)}" if by_whom else ""
        return Result(text, verdict, detail)

    return Claim(sentence, figure, measured, reasons or {})


def effect_text(
    record: Record, graphs: Iterable[str], strategy: str, without: str, with_it: str, algorithm: str
) -> Result:
    helps, harms, values = 0, 0, {}
    for graph in graphs:
        before = record.time(graph, strategy, without, algorithm=algorithm, group="features")
        after = record.time(graph, strategy, with_it, algorithm=algorithm, group="features")
        if before and after:
            values[graph] = before.median / after.median
            helps += is_faster(after, before)
            harms += is_faster(before, after)
    if not values:
        return NOT_MEASURED
    text = f"helps on {helps}, harms on {harms} of {len(values)} graphs: {extremes(values)}"
    return Result(text, by_count(helps, len(values)) if helps else FAILS if harms else TIE)


def feature_claim(
    sentence: str,
    figure: str,
    graphs: Iterable[str],
    strategy: str,
    feature: str,
    algorithm: str = "bfs",
    reasons: dict[str, Reason] | None = None,
) -> Claim:
    """Return the claim that a feature helps: alone (in place of the rule) and within the published set."""
    listed = tuple(graphs)

    def measured(record: Record, mode: str) -> Result:
        if mode == "published":
            return effect_text(
                record, listed, strategy, f"without {feature}", "published", algorithm
            )
        return effect_text(record, listed, strategy, "none", f"only {feature}", algorithm)

    return Claim(sentence, figure, measured, reasons or {}, "alone")


# --- BFS-4K ------------------------------------------------------------------------------------------------------------

STRATEGY_OF = {
    "Harish": ("scan_flags",),
    "Edge Parall.": ("scan_edges",),
    "Static Virtual Warp": ("scan_virtual_warp",),
    "Luo": ("queue_of_warps",),
    "Garland": (
        "gather_expand_contract",
        "gather_contract_expand",
        "gather_two_phase",
        "gather_switch",
    ),
}
ALL_RIVALS = tuple(strategy for strategies in STRATEGY_OF.values() for strategy in strategies)


def _paper_ratios(rival: int) -> dict[str, float]:
    """Return the paper's ratios of a rival to BFS-4K, by our graph that stands for the original."""
    found = {}
    for graph, original in BFS_4K.items():
        times = said.BFS_4K_TABLE_2.get(original)
        if times and (theirs := times[rival]) and (ours := times[-1]):
            found[graph] = theirs / ours
    return found


def _figure_of_table_2(rival: int) -> str:
    pairs = [(times[rival], times[-1]) for times in said.BFS_4K_TABLE_2.values()]
    return figure_of(theirs / ours for theirs, ours in pairs if theirs and ours)


_COUNTED = ("internet-1M7", "kron-20", "mesh-1000", "web-NotreDame", "USA-road-NE")


def duplicates_left(counted: dict) -> int:
    """Return how many vertices were queued beyond those that were reached, without the sources."""
    return counted["counters"]["queued"] - (counted["reached"] - counted["sources"])


def _hash_against_culling(record: Record, mode: str) -> Result:
    """The duplicates that Hash64 leaves with virtual warps of width 4, or with edge-discover, beside Merrill's culling."""
    label = "width 4, hash64" if mode == "published" else "edge-discover, hash64"
    facts, ratios = [], {}
    for graph in _COUNTED:
        hashed = record.counted(graph, "bfs_4k", label)
        culled = record.counted(graph, "gather_expand_contract", "published")
        if not hashed or not culled:
            continue
        ours, theirs = duplicates_left(hashed), duplicates_left(culled)
        ratios[graph] = ours / max(theirs, 1)
        facts.append(f"{graph}: {ours:,} left against {theirs:,}")
    if not facts:
        return NOT_MEASURED
    fewer = sum(ratio < 1.0 for ratio in ratios.values())
    is_tie = all(ratio == 1.0 for ratio in ratios.values())
    text = f"fewer on {fewer} of {len(ratios)}: {extremes(ratios)} times as many"
    return Result(text, TIE if is_tie else by_count(fewer, len(ratios)), "; ".join(facts))


def _growth_of_duplicates(record: Record, mode: str) -> Result:
    """Vertices queued with width 4 beside width 1, or beside edge-discover, where duplicates are kept."""
    narrow = "width 1, keep" if mode == "published" else "edge-discover, keep"
    facts, ratios = [], {}
    for graph in _COUNTED:
        wide = record.counted(graph, "bfs_4k", "width 4, keep")
        less = record.counted(graph, "bfs_4k", narrow)
        if wide and less:
            ours, theirs = duplicates_left(wide), duplicates_left(less)
            ratios[graph] = ours / max(theirs, 1)
            facts.append(f"{graph}: {ours:,} duplicates against {theirs:,}")
    if not facts:
        return NOT_MEASURED
    more = sum(ratio > 1.0 for ratio in ratios.values())
    text = f"more on {more} of {len(ratios)}: {extremes(ratios)} times as many"
    return Result(text, by_count(more, len(ratios)), "; ".join(facts))


_FEATURED = (
    "internet-1M7",
    "kron-20",
    "mesh-1000",
    "USA-road-NE",
    "web-NotreDame",
    "erdos-renyi-2M",
    "rmat-2M-128M",
    "honeycomb-4M6",
)

BFS_4K_CLAIMS = (
    fastest_claim(
        'BFS-4K "outperforms all the other implementations in every graph" (7)',
        "fastest on 18 of 18",
        BFS_4K,
        "bfs_4k",
        ALL_RIVALS,
        reasons=unless_it_holds(reasons.of_all_rivals),
    ),
    *(
        speedup_claim(
            f"faster than {rival} (table 2)",
            BFS_4K,
            strategies,
            "bfs_4k",
            _paper_ratios(i),
            figure=_figure_of_table_2(i),
            reasons=unless_it_holds(reasons.of_depth(strategies, i)),
        )
        for i, (rival, strategies) in enumerate(STRATEGY_OF.items())
    ),
    Claim(
        "faster than a sequential search (figure 15)",
        "the text has no numbers",
        lambda record, mode: _over_sequential(record, mode, BFS_4K, "bfs_4k", None),
    ),
    feature_claim(
        "dynamic virtual warps improve the search (5.2)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "dynamic widths",
        reasons=unless_it_holds(reasons.of_dynamic_widths),
    ),
    feature_claim(
        "dynamic parallelism improves graphs of uneven degree (5.3)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "children",
        reasons=unless_it_holds(reasons.of_children),
    ),
    feature_claim(
        "edge-discover balances the work (5.4)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "edge-discover",
        reasons=unless_it_holds(reasons.of_edge_discover),
    ),
    feature_claim(
        "a single block helps small frontiers (5.5)",
        "figure 7, without numbers",
        _FEATURED,
        "bfs_4k",
        "single block",
        reasons=unless_it_holds(reasons.of_single_block),
    ),
    feature_claim(
        "coalesced writes pay (5.6)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "coalesced writes",
    ),
    feature_claim(
        "coalesced reads pay (5.6)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "shared reads",
    ),
    feature_claim(
        "prefix sums pay (5.1)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "prefix sum",
        reasons=unless_it_holds(reasons.of_few("bfs_4k", "prefix sum", "bfs")),
    ),
    feature_claim(
        "duplicate detection pays (6)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "Hash64",
        reasons=unless_it_holds(reasons.of_hash64),
    ),
    Claim(
        "wider virtual warps make more duplicates, edge-discover few (6, figure 12)",
        "a figure without numbers",
        _growth_of_duplicates,
        unless_it_holds(reasons.of_growth),
        "width 4 beside edge-discover",
    ),
    Claim(
        "Hash64 leaves fewer duplicates than the culling of Merrill et al. (figure 13)",
        "21,432 left against 28,892 (-25.8 %)",
        _hash_against_culling,
        unless_it_holds(reasons.of_culling),
        "with edge-discover",
    ),
)


def _over_sequential(
    record: Record,
    mode: str,
    graphs: Iterable[str],
    ours: str,
    paper: dict[str, float] | None,
    algorithm: str = "bfs",
) -> Result:
    found = speedups(record, graphs, ("fifo",), ours, mode, algorithm, "cpu")
    if not found:
        return NOT_MEASURED
    same = [(paper or {})[graph] for graph in found if graph in (paper or {})]
    target = geometric_mean(same) if same else None
    return Result(mean_text(found, paper or {}), by_factor(geometric_mean(found.values()), target))


# --- H-BF --------------------------------------------------------------------------------------------------------------

DAVIDSON = ("work_front", "near_far_piles", "buckets")


def _figure_of_h_bf(system: int) -> str:
    return figure_of(times[system] / times[-1] for times in said.H_BF_TABLE_2.values())


def _h_bf_ratios(system: int) -> dict[str, float]:
    return {
        graph: said.H_BF_TABLE_2[name][system] / said.H_BF_TABLE_2[name][-1]
        for graph, name in H_BF.items()
    }


def _table_3(record: Record, mode: str) -> Result:
    """The gain of the optimizations over a base without any, on the graphs with negative weights."""
    facts, values, n = [], {}, 0
    for graph, (original, features) in H_BF_NEGATIVE.items():
        base = record.time(graph, "h_bf", "none", algorithm="sssp")
        label = "only " + " and ".join(features) if mode == "published" else "rule"
        better = record.time(graph, "h_bf", label, algorithm="sssp")
        if base and better:
            _, before, after = said.H_BF_TABLE_3[original]
            gain = base.median / better.median
            n += gain >= ENOUGH * before / after
            values[original] = gain
            facts.append(
                f"{original}: {factor(gain)} (paper {factor(before / after)}, {' and '.join(features)})"
            )
    if not facts:
        return NOT_MEASURED
    return Result(extremes(values), by_count(n, len(facts)), "; ".join(facts))


def _work(record: Record, mode: str) -> Result:
    """Relaxations per edge out of a reached vertex, which Dijkstra's algorithm relaxes once."""
    values = {
        each["graph"]: each["counters"]["relaxations"] / each["out_edges"]
        for each in record.counters
        if each["strategy"] == "h_bf"
        and each["label"] == mode
        and "relaxations" in each["counters"]
    }
    if not values:
        return NOT_MEASURED
    within = sum(value <= 10.0 for value in values.values())
    text = f"{extremes(values)} times; at most 10 on {within} of {len(values)} graphs"
    return Result(text, by_count(within, len(values)))


def _negative(record: Record, mode: str) -> Result:
    graphs = [
        graph
        for graph in (*H_BF_NEGATIVE, "USA-road-NY-negative")
        if row(record, graph, "h_bf", mode, "sssp")
    ]
    if not graphs:
        return NOT_MEASURED
    found = speedups(record, graphs, ("fifo",), "h_bf", mode, "sssp", "cpu")
    text = f"runs on {len(graphs)} graphs"
    text += (
        f"; {factor(geometric_mean(found.values()))} times as fast as the sequential search ({len(found)} graphs)"
        if found
        else ""
    )
    return Result(text, HOLDS)


H_BF_CLAIMS = (
    speedup_claim(
        '"an average speedup of 5x higher than the existing most efficient parallel implementations" '
        "(abstract): over the better "
        "of Workfront Sweep and Near-Far Pile (table 2)",
        H_BF,
        DAVIDSON,
        "h_bf",
        _h_bf_ratios(3),
        figure=f"5; table 2: {_figure_of_h_bf(3)}",
        algorithm="sssp",
        reasons=unless_it_holds(reasons.of_davidson(H_BF, DAVIDSON)),
    ),
    speedup_claim(
        "faster than LoneStar (table 2)",
        H_BF,
        ("topology_thread",),
        "h_bf",
        _h_bf_ratios(2),
        figure=_figure_of_h_bf(2),
        algorithm="sssp",
        reasons=unless_it_holds(reasons.of_lonestar(H_BF)),
    ),
    speedup_claim(
        "faster than queue-based Bellman-Ford on a CPU (table 2, figure 8)",
        H_BF,
        ("fifo",),
        "h_bf",
        _h_bf_ratios(0),
        figure=_figure_of_h_bf(0),
        algorithm="sssp",
        device="cpu",
    ),
    speedup_claim(
        "faster than Dijkstra's algorithm on a CPU, but on USA-road-d.CAL (table 2)",
        H_BF,
        ("heap",),
        "h_bf",
        _h_bf_ratios(1),
        figure=_figure_of_h_bf(1),
        algorithm="sssp",
        device="cpu",
    ),
    fastest_claim(
        '"H-BF outperforms all the other implementations in every graph" (6.2)',
        "6 of 7 (Dijkstra on USA-road-d.CAL: 588 against 720 ms)",
        H_BF,
        "h_bf",
        ("topology_thread", *DAVIDSON),
        algorithm="sssp",
        sequential=("fifo", "heap"),
        reasons=unless_it_holds(reasons.of_davidson(H_BF, DAVIDSON)),
    ),
    Claim(
        'optimizations improve the speedup over the sequential search "from a minimum of twice to '
        'almost four times" (table 3)',
        "2.9 (warp workload), 3.4 (edge classes), 2.6 (children and widths), 1.9 (64-bit atomics)",
        _table_3,
        unless_it_holds(reasons.of_table_3),
    ),
    feature_claim(
        "edge classes save relaxations and atomics (4.1)",
        "3.4 on wiki-talk",
        H_BF,
        "h_bf",
        "edge classes",
        "sssp",
        unless_it_holds(reasons.of_edge_classes),
    ),
    feature_claim(
        "64-bit atomics remove duplicates (4.2)",
        "1.9 on random_2Mv.128Me",
        H_BF,
        "h_bf",
        "duplicate removal",
        "sssp",
        unless_it_holds(reasons.of_atomic64),
    ),
    feature_claim(
        "frontier and offsets are streamed (5.1, item 1)",
        "no number",
        H_BF,
        "h_bf",
        "frontier streamed",
        "sssp",
        unless_it_holds(reasons.of_few("h_bf", "frontier streamed")),
    ),
    feature_claim(
        "edges through the read-only cache (5.1, item 2)",
        "no number",
        H_BF,
        "h_bf",
        "edges read-only",
        "sssp",
        unless_it_holds(reasons.of_few("h_bf", "edges read-only")),
    ),
    feature_claim(
        "distances past the L1 cache (5.1, item 3)",
        "no number",
        H_BF,
        "h_bf",
        "L1 bypassed",
        "sssp",
        unless_it_holds(reasons.of_few("h_bf", "L1 bypassed")),
    ),
    feature_claim(
        "enqueuing through shared memory (5.1, item 4)",
        "no number",
        H_BF,
        "h_bf",
        "shared enqueue",
        "sssp",
        unless_it_holds(reasons.of_shared_enqueue),
    ),
    feature_claim(
        "32 vertices per virtual warp (5.2)",
        "2.9 on hugetrace",
        H_BF,
        "h_bf",
        "warp workload",
        "sssp",
        unless_it_holds(reasons.of_warp_workload),
    ),
    feature_claim(
        "dynamic virtual warps of 4 to 32 lanes (5.2)",
        "2.6 on as-Skitter, with children",
        H_BF,
        "h_bf",
        "dynamic widths",
        "sssp",
        unless_it_holds(reasons.of_widths_h_bf),
    ),
    feature_claim(
        "dynamic parallelism (5.3)",
        "2.6 on as-Skitter, with widths",
        H_BF,
        "h_bf",
        "children",
        "sssp",
        unless_it_holds(reasons.of_children_h_bf),
    ),
    Claim(
        'relaxations within "one order of magnitude" of Dijkstra\'s (6.2, figure 9)',
        "about 10 times on msdoor",
        _work,
        unless_it_holds(reasons.of_work),
    ),
    Claim("it works on graphs with negative weights (abstract)", "4 graphs", _negative),
)


# --- Luo, Wong, Hwu ----------------------------------------------------------------------------------------------------


def _uiuc_ratios(table: str, system: int) -> dict[str, float]:
    return {
        graph: said.UIUC[graph][system] / said.UIUC[graph][2]
        for graph in UIUC_TABLES[table]
        if graph in said.UIUC
    }


def _iiit_slower(record: Record, mode: str) -> Result:
    ratios, slower = {}, 0
    for table in UIUC_TABLES.values():
        for graph in table:
            theirs = row(record, graph, "scan_flags", mode)
            cpu = row(record, graph, "fifo", mode, device="cpu")
            if theirs and cpu:
                slower += is_faster(cpu, theirs)
                ratios[graph] = cpu.median / theirs.median
    if not ratios:
        return NOT_MEASURED
    text = f"slower on {slower} of {len(ratios)}; the CPU's time / IIIT-BFS's: {extremes(ratios)}"
    return Result(text, by_count(slower, len(ratios)), reasons.figures(ratios))


def _part_of_uiuc(label: str) -> Callable[[Record, str], Result]:
    """Return a function: the time without a part of UIUC-BFS divided by the time with it, on each graph that has both.

    The other knobs are as published in both, so that there is one result.
    """

    def measured(record: Record, mode: str) -> Result:
        del mode
        ratios, helps, harms = {}, 0, 0
        for graph in [graph for table in UIUC_TABLES.values() for graph in table]:
            base = record.time(graph, "queue_of_warps", group="layers")
            without = record.time(graph, "queue_of_warps", label, group="layers")
            if base and without:
                helps += is_faster(base, without)
                harms += is_faster(without, base)
                ratios[graph] = without.median / base.median
        if not ratios:
            return NOT_MEASURED
        text = f"helps on {helps}, harms on {harms} of {len(ratios)} graphs: {extremes(ratios)}"
        if not helps and not harms:
            return Result(text, TIE)
        return Result(text, by_count(helps, len(ratios)))

    return measured


def _queues_of_warps(record: Record, mode: str) -> Result:
    """The time with a queue per block divided by that with a queue per warp, too."""
    del mode
    ratios, helps, harms = {}, 0, 0
    for block in record.where(lambda each: (each.group, each.label) == ("queues", "published")):
        warps = record.time(block.graph, "queue_of_blocks", "queues warp", group="queues")
        if warps:
            helps += is_faster(warps, block)
            harms += is_faster(block, warps)
            ratios[block.graph] = block.median / warps.median
    if not ratios:
        return NOT_MEASURED
    text = f"helps on {helps}, harms on {harms} of {len(ratios)} graphs: {extremes(ratios)}"
    verdict = TIE if helps == harms == 0 else by_count(helps, len(ratios))
    return Result(text, verdict)


_TABLE_1, _TABLE_2, _TABLE_3 = UIUC_TABLES
UIUC_CLAIMS = (
    *(
        speedup_claim(
            f"faster than CPU-BFS on {what} ({table.partition(':')[0]})",
            UIUC_TABLES[table],
            ("fifo",),
            "queue_of_warps",
            _uiuc_ratios(table, 1),
            figure=figure_of(_uiuc_ratios(table, 1).values()),
            device="cpu",
            reasons=unless_it_holds(reasons.of_scan_per_level(UIUC_TABLES[table])),
        )
        for table, what in ((_TABLE_1, "regular graphs"), (_TABLE_2, "road networks"))
    ),
    Claim(
        'no faster than CPU-BFS on scale-free graphs: "highly imbalanced problems cannot benefit as much" (table 3)',
        "0.52 (1M), 0.94 (5M), 1.05 (10M)",
        lambda record, mode: _no_faster(record, mode),
        unless_it_holds(
            reasons.of_cpu_per_edge(UIUC_TABLES[_TABLE_3], UIUC_TABLES[_TABLE_1]),
        ),
    ),
    *(
        speedup_claim(
            f"faster than IIIT-BFS on {what} ({table.partition(':')[0]})",
            UIUC_TABLES[table],
            ("scan_flags",),
            "queue_of_warps",
            _uiuc_ratios(table, 0),
            figure=figure_of(_uiuc_ratios(table, 0).values()),
            reasons=unless_it_holds(reason(UIUC_TABLES[table])),
        )
        for table, what, reason in (
            (_TABLE_1, "regular graphs", reasons.of_scan_per_level),
            (_TABLE_2, "road networks", reasons.of_scan_per_level),
            (_TABLE_3, "scale-free graphs", reasons.of_few_levels),
        )
    ),
    Claim(
        "IIIT-BFS is slower than CPU-BFS (tables 1 to 3)",
        "on 13 of 13",
        _iiit_slower,
        unless_it_holds(
            reasons.of_scan_per_level({**UIUC_TABLES[_TABLE_1], **UIUC_TABLES[_TABLE_2]})
        ),
    ),
    Claim(
        "queues of warps below those of blocks avoid collisions (3.2)",
        "no number",
        _queues_of_warps,
        unless_it_holds(reasons.of_warp_queues),
    ),
    Claim(
        "a barrier of one block in place of launches saves time: layer 1 (3.3)",
        "no number",
        _part_of_uiuc("without layer 1"),
        unless_it_holds(reasons.of_layer_1),
    ),
    Claim(
        "a barrier of all blocks in place of launches saves time: layer 2 (3.3)",
        "no number",
        _part_of_uiuc("without layer 2"),
        unless_it_holds(reasons.of_layer_2),
    ),
    Claim(
        "both in place of a launch per level save time (3.3)",
        "no number",
        _part_of_uiuc("layer 3 alone"),
        unless_it_holds(reasons.of_layer_2),
    ),
    Claim(
        "vertices of high degree are split (4)",
        "no number",
        _part_of_uiuc("without splitting"),
        unless_it_holds(reasons.of_splitting),
    ),
)


def _no_faster(record: Record, mode: str) -> Result:
    found = speedups(record, UIUC_TABLES[_TABLE_3], ("fifo",), "queue_of_warps", mode, device="cpu")
    if not found:
        return NOT_MEASURED
    text = ", ".join(f"{graph} {factor(value)}" for graph, value in found.items())
    return Result(text, by_count(sum(value <= 1.05 for value in found.values()), len(found)))


# --- Springer ----------------------------------------------------------------------------------------------------------

_FIGURE_7 = (
    "scan_relax",
    "scan_flags",
    "scan_level",
    "scan_deferred",
    "scan_by_degree",
    "scan_redirected",
    "scan_virtual_warp",
    "queue_of_blocks",
    "queue_by_prefix_sum",
    "scan_relax_edges",
    "scan_edges",
)


def _variant(record: Record, graph: str, strategy: str, mode: str) -> Time | None:
    """Return the time of a variant with the constants of the paper's listings, or with the best of those measured."""
    if mode == "published":
        return record.time(graph, strategy)
    return record.best(graph, strategy)


def _place(name: str, graph: str, last: bool = False) -> Callable[[Record, str], Result]:
    """Return a function: whether a variant of figure 7 is the fastest, or the slowest, beyond the spreads."""

    def measured(record: Record, mode: str) -> Result:
        found = [_variant(record, graph, strategy, mode) for strategy in _FIGURE_7]
        order = sorted((time for time in found if time), key=lambda time: time.median, reverse=last)
        mine = next((time for time in order if time.strategy == name), None)
        if mine is None or len(order) < 2:
            return NOT_MEASURED
        end = order[0]
        place = order.index(mine) + 1
        what = "slowest" if last else "fastest"
        if mine is end:
            share = factor(order[1].median / mine.median)
            return Result(
                f"the {what} of {len(order)}; next `{order[1].strategy}`, {share} of its time",
                HOLDS,
            )
        text = f"place {place} of {len(order)} from the {what}; `{end.strategy}` takes "
        text += f"{factor(end.median / mine.median)} of its time"
        is_beyond = is_faster(mine, end) if last else is_faster(end, mine)
        return Result(text, FAILS if is_beyond else TIE)

    return measured


def _ratio_of(
    slower: str, quicker: str, graphs: tuple[str, ...], paper: float | None = None
) -> Callable[[Record, str], Result]:
    """Return a function: the time of a strategy divided by that of another."""

    def measured(record: Record, mode: str) -> Result:
        values, n, reversed_on = {}, 0, 0
        for graph in graphs:
            one = _variant(record, graph, slower, mode)
            other = _variant(record, graph, quicker, mode)
            if one and other:
                values[graph] = one.median / other.median
                n += is_faster(other, one)
                reversed_on += is_faster(one, other)
        if not values:
            return NOT_MEASURED
        if len(graphs) > 1:
            text = f"on {n} of {len(values)}, reversed on {reversed_on}: {extremes(values)}"
        else:
            text = factor(values[graphs[0]])
        if paper is not None:
            return Result(text, by_factor(geometric_mean(values.values()), paper))
        verdict = TIE if n == reversed_on == 0 else by_count(n, len(values))
        return Result(text, verdict, reasons.figures(values) if len(values) > 2 else "")

    return measured


def _is_close(name: str, others: tuple[str, ...], graph: str) -> Callable[[Record, str], Result]:
    """Return a function: whether a variant takes at most 1 / ENOUGH times as long as others, or as some of them."""

    def measured(record: Record, mode: str) -> Result:
        mine = _variant(record, graph, name, mode)
        found = [_variant(record, graph, other, mode) for other in others]
        timed = [time for time in found if time]
        if not mine or not timed:
            return NOT_MEASURED
        ratios = {f"`{time.strategy}`": mine.median / time.median for time in timed}
        n_close = sum(ratio <= 1.0 / ENOUGH for ratio in ratios.values())
        verdict = by_count(n_close, len(ratios))
        return Result(f"its time / theirs: {extremes(ratios)}", verdict)

    return measured


def _width(graph: str, widths: tuple[int, ...]) -> Callable[[Record, str], Result]:
    def measured(record: Record, mode: str) -> Result:
        del mode
        times = {16: record.time(graph, "scan_virtual_warp")}
        times |= {
            width: record.time(graph, "scan_virtual_warp", f"width {width}")
            for width in (1, 2, 4, 8, 32)
        }
        known = {width: time for width, time in times.items() if time}
        if not known:
            return NOT_MEASURED
        best = min(known, key=lambda width: known[width].median)
        near = [width for width in known if not is_faster(known[best], known[width])]
        ties = [str(width) for width in sorted(near) if width != best]
        text = f"best width {best}" + (f"; within the spread: {', '.join(ties)}" if ties else "")
        return Result(
            text,
            HOLDS if set(near) & set(widths) else FAILS,
        )

    return measured


_SLASHDOT, _ROADS, _TALK = "soc-Slashdot0902", "USA-road-NE", "talk-2M4"
_EDGE_CENTRIC = ("scan_relax_edges", "scan_edges")
_PER_THREAD = ("scan_level", "queue_of_blocks", "scan_virtual_warp", "scan_edges")
SPRINGER_CLAIMS = (
    Claim(
        "Slashdot: the unoptimized version is the slowest (5)",
        "figure 7a",
        _place("scan_relax", _SLASHDOT, True),
        unless_it_holds(reasons.of_variants(_SLASHDOT, _FIGURE_7)),
    ),
    Claim(
        'Slashdot: "having a frontier of vertices can cut the runtime in half"',
        "2",
        _ratio_of("scan_relax", "scan_flags", (_SLASHDOT,), 2.0),
        unless_it_holds(reasons.of_variants(_SLASHDOT, ("scan_relax", "scan_flags"))),
    ),
    Claim(
        "Slashdot: virtual warps of 16 perform very well",
        "figure 7a",
        _ratio_of("scan_level", "scan_virtual_warp", (_SLASHDOT,)),
        unless_it_holds(reasons.of_variants(_SLASHDOT, _PER_THREAD)),
    ),
    Claim(
        "Slashdot: a slightly smaller virtual warp could be better still",
        "figure 7a",
        _width(_SLASHDOT, (8,)),
        unless_it_holds(
            reasons.followed_by(
                reasons.of_variants(_SLASHDOT, ("scan_level", "scan_virtual_warp", "scan_edges")),
                "the longest list decides, not the mean, and more lanes finish it sooner",
            )
        ),
    ),
    Claim(
        "Slashdot: virtual warps come close to the edge-centric versions",
        "figure 7a",
        _is_close("scan_virtual_warp", _EDGE_CENTRIC, _SLASHDOT),
        unless_it_holds(
            reasons.followed_by(
                reasons.of_variants(_SLASHDOT, ("scan_virtual_warp", *_EDGE_CENTRIC)),
                "with a thread per edge no list is longer than another",
            )
        ),
    ),
    Claim(
        "Slashdot: a queue does not pay",
        "figure 7a",
        _ratio_of("queue_of_blocks", "scan_level", (_SLASHDOT,)),
        unless_it_holds(reasons.of_variants(_SLASHDOT, _PER_THREAD)),
    ),
    Claim(
        "roads: prefix sums are the slowest",
        "1.375 s",
        _place("queue_by_prefix_sum", _ROADS, True),
        unless_it_holds(reasons.of_variants(_ROADS, _FIGURE_7)),
    ),
    Claim(
        "roads: a frontier queue is the best",
        "figure 7b",
        _place("queue_of_blocks", _ROADS),
        unless_it_holds(
            reasons.followed_by(
                reasons.of_variants(_ROADS, _PER_THREAD),
                "looking at all vertices, or at all edges, takes no longer than a launch and a read by the host, so that a "
                "queue has nothing to save",
            )
        ),
    ),
    Claim(
        "roads: virtual warps do not pay",
        "figure 7b",
        _ratio_of("scan_virtual_warp", "scan_level", (_ROADS,)),
        unless_it_holds(reasons.of_variants(_ROADS, _PER_THREAD)),
    ),
    Claim(
        "WikiTalk: a frontier queue is the best",
        "figure 7c",
        _place("queue_of_blocks", _TALK),
        unless_it_holds(
            reasons.followed_by(
                reasons.of_variants(_TALK, _PER_THREAD),
                "one thread walks the longest list, and more lanes per list finish it sooner",
            )
        ),
    ),
    Claim(
        "WikiTalk: reordering by degree gives a little",
        "figure 7c",
        _ratio_of("scan_level", "scan_by_degree", (_TALK,)),
        unless_it_holds(reasons.of_variants(_TALK, ("scan_level", "scan_by_degree"))),
    ),
    Claim(
        "WikiTalk: prefix sums are the slowest",
        "figure 7c",
        _place("queue_by_prefix_sum", _TALK, True),
        unless_it_holds(
            reasons.followed_by(
                reasons.of_variants(
                    _TALK, ("queue_by_prefix_sum", "scan_level", "queue_of_blocks", "scan_relax")
                ),
                "one thread walks the longest list in each of them, and the sums take little beside that",
            )
        ),
    ),
)


# --- Sevilmis, Sivri, Aydin --------------------------------------------------------------------------------------------

_CPU = {"buffers": ("published", 0), "switch": ("published", 1)}


def threaded(record: Record, graph: str, strategy: str, threads: int) -> Time | None:
    return record.time(graph, strategy, "published", device="cpu", threads=threads)


def _most_threads(record: Record, strategy: str) -> int:
    return max(
        (
            time.threads
            for time in record.where(
                lambda each: each.device == "cpu" and each.strategy == strategy
            )
        ),
        default=0,
    )


def _scaling(strategy: str) -> Callable[[Record, str], Result]:
    def measured(record: Record, mode: str) -> Result:
        del mode
        most = _most_threads(record, strategy)
        values = {}
        for graph in SEVILMIS:
            one, all_of_them = (
                threaded(record, graph, strategy, 1),
                threaded(record, graph, strategy, most),
            )
            if one and all_of_them and most > 1:
                values[graph] = one.median / all_of_them.median
        if not values:
            return NOT_MEASURED
        paper = [said.SEVILMIS_1[SEVILMIS[graph]][_CPU[strategy][1]] for graph in values]
        place = THREADS.index(most) if most in THREADS else len(THREADS) - 1
        target = geometric_mean(times[0] / times[place] for times in paper)
        text = f"on {most} threads {factor(geometric_mean(values.values()))} ({factor(min(values.values()))} to "
        text += f"{factor(max(values.values()))}, {len(values)} graphs); the paper on as many: {factor(target)}"
        return Result(text, by_factor(geometric_mean(values.values()), target))

    return measured


def _hybrid_serial(record: Record, mode: str) -> Result:
    del mode
    values, faster, slower = {}, 0, 0
    for graph in SEVILMIS:
        one, other = threaded(record, graph, "buffers", 1), threaded(record, graph, "switch", 1)
        if one and other:
            values[graph] = one.median / other.median
            faster += is_faster(other, one)
            slower += is_faster(one, other)
    if not values:
        return NOT_MEASURED
    text = f"on {faster} of {len(values)}, slower on {slower}: {extremes(values)}"
    return Result(text, by_count(faster, len(values)), reasons.figures(values))


def _efficiency(record: Record, mode: str) -> Result:
    del mode
    most = min(_most_threads(record, "buffers"), _most_threads(record, "switch"))
    facts, higher = [], 0
    for graph in SEVILMIS:
        found = {}
        for strategy in ("buffers", "switch"):
            one = threaded(record, graph, strategy, 1)
            many = threaded(record, graph, strategy, most)
            if one and many and most > 1:
                found[strategy] = one.median / many.median / most
        if len(found) == 2:
            higher += found["buffers"] > found["switch"]
            facts.append(f"{graph} {found['buffers']:.2f} against {found['switch']:.2f}")
    if not facts:
        return NOT_MEASURED
    text = f"on {higher} of {len(facts)} at {most} threads"
    return Result(text, by_count(higher, len(facts)), ", ".join(facts))


def _bitset(record: Record, mode: str) -> Result:
    """The time of bottom-up searches with integers divided by that with bits, per graph and number of threads."""
    del mode
    values, faster, slower = {}, 0, 0
    for graph in SEVILMIS:
        for threads in THREADS:
            integers = threaded(record, graph, "pull_integers", threads)
            bits = threaded(record, graph, "pull_bits", threads)
            if integers and bits:
                values[f"{graph}, threads: {threads}"] = integers.median / bits.median
                faster += is_faster(bits, integers)
                slower += is_faster(integers, bits)
    if not values:
        return NOT_MEASURED
    text = f"faster in {faster} of {len(values)}, slower in {slower}: {extremes(values)}"
    verdict = TIE if faster == slower == 0 else by_count(faster, len(values))
    return Result(text, verdict, reasons.figures(values))


def _gpu_over_serial(strategy: str, serial: str, place: int) -> Callable[[Record, str], Result]:
    """Return a function: the time of the own serial version divided by that on the GPU, as tables 2 and 3 have it."""

    def measured(record: Record, mode: str) -> Result:
        values, paper = {}, {}
        for graph, original in SEVILMIS.items():
            mine, one = row(record, graph, strategy, mode), threaded(record, graph, serial, 1)
            if mine and one:
                values[graph] = one.median / mine.median
                cpu = said.SEVILMIS_1[original][0 if serial == "buffers" else 1][0]
                paper[graph] = cpu / said.SEVILMIS_23[original][place]
        if not values:
            return NOT_MEASURED
        return Result(
            mean_text(values, paper),
            by_factor(geometric_mean(values.values()), geometric_mean(paper.values())),
        )

    return measured


def _paper_gpu(serial: int, place: int) -> str:
    values = [
        said.SEVILMIS_1[name][serial][0] / said.SEVILMIS_23[name][place] for name in said.SEVILMIS_1
    ]
    return f"{factor(geometric_mean(values))} ({factor(min(values))} to {factor(max(values))})"


SEVILMIS_CLAIMS = (
    Claim(
        "top-down scales with threads (table 1)",
        "2.1 to 6.2 on 16 threads",
        _scaling("buffers"),
        unless_it_holds(reasons.of_threads(SEVILMIS, "buffers")),
    ),
    Claim(
        "hybrid scales with threads (table 1)",
        "1.6 to 5.3 on 16 threads",
        _scaling("switch"),
        unless_it_holds(reasons.of_threads(SEVILMIS, "switch")),
    ),
    Claim(
        "hybrid lowers the serial time (figure 2)",
        "1.1 to 4.9, on 5 of 5",
        _hybrid_serial,
        unless_it_holds(reasons.of_hybrids(SEVILMIS, "buffers", "switch", "cpu")),
    ),
    Claim(
        "efficiency is higher top-down (figure 4)",
        "on 4 of 5 at 16 threads",
        _efficiency,
        unless_it_holds(reasons.of_threads(SEVILMIS, "buffers")),
    ),
    Claim(
        "bottom-up, a bitset in place of integers is beneficial (4.2.2)",
        "no number",
        _bitset,
        unless_it_holds(reasons.of_bitset(SEVILMIS)),
    ),
    Claim(
        "layers, top-down: over the serial version (table 2)",
        _paper_gpu(0, 0),
        _gpu_over_serial("scan_level", "buffers", 0),
    ),
    Claim(
        "layers, hybrid: over the serial version (table 2)",
        _paper_gpu(1, 1),
        _gpu_over_serial("scan_switch", "switch", 1),
    ),
    Claim(
        "frontiers, top-down: over the serial version (table 3)",
        _paper_gpu(0, 2),
        _gpu_over_serial("queue_thread", "buffers", 2),
    ),
    Claim(
        "frontiers, hybrid: over the serial version (table 3)",
        _paper_gpu(1, 3),
        _gpu_over_serial("queue_switch", "switch", 3),
    ),
    Claim(
        'layers perform "extremely bad" on europe.osm, where frontiers do not',
        "20 times slower",
        _ratio_of("scan_level", "queue_thread", ("road-12M",), 20.0),
        unless_it_holds(
            reasons.of_levels_of(
                "road-12M",
                ("scan_level", "queue_thread"),
                "looking at all vertices takes little more than a launch and a read by the host",
            )
        ),
    ),
    *(
        Claim(
            f"layers are faster than frontiers on rmat-er, {way}",
            factor(said.SEVILMIS_23["rmat-er"][place + 2] / said.SEVILMIS_23["rmat-er"][place]),
            _ratio_of(frontiers, layers, ("erdos-renyi-2M",), paper),
            unless_it_holds(
                reasons.of_levels_of(
                    "erdos-renyi-2M",
                    (layers, frontiers),
                    "lanes that append at the same time share one atomic (`kt/frontier_queue.cuh`), "
                    "so that a queue costs little",
                )
            ),
        )
        for way, place, layers, frontiers, paper in (
            ("top-down", 0, "scan_level", "queue_thread", 1.8),
            ("hybrid", 1, "scan_switch", "queue_switch", 4.1),
        )
    ),
    Claim(
        'hybrid "performs always better" than top-down, by layers',
        "5 of 5",
        _ratio_of("scan_level", "scan_switch", tuple(SEVILMIS)),
        unless_it_holds(reasons.of_hybrids(SEVILMIS, "scan_level", "scan_switch")),
    ),
    Claim(
        'hybrid "performs always better" than top-down, by frontiers',
        "4 of 5 (not europe.osm)",
        _ratio_of("queue_thread", "queue_switch", tuple(SEVILMIS)),
        unless_it_holds(reasons.of_hybrids(SEVILMIS, "queue_thread", "queue_switch")),
    ),
)

CLAIMS = {
    "bfs-4k": BFS_4K_CLAIMS,
    "h-bf": H_BF_CLAIMS,
    "uiuc-bfs": UIUC_CLAIMS,
    "springer": SPRINGER_CLAIMS,
    "sevilmis": SEVILMIS_CLAIMS,
}
