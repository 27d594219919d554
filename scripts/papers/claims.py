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

from scripts.papers import said
from scripts.papers.experiments import BFS_4K, H_BF, H_BF_NEGATIVE, SEVILMIS, THREADS, UIUC_TABLES
from scripts.papers.record import Record, Time, geometric_mean, is_faster

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold here", "not measured"
TIE = "no difference beyond the spread"
ENOUGH = 0.8  # of the paper's factor
MODES = ("published", "rule")


@dataclass(frozen=True)
class Result:
    """What is measured of a claim with one way to choose knobs."""

    text: str
    verdict: str


NOT_MEASURED = Result(UNKNOWN, UNKNOWN)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: its sentence and figure, and functions of the record.

    ``reasons``: for a verdict, the likely reason. A verdict without one is not explained.
    """

    said: str
    figure: str
    measured: Callable[[Record, str], Result]
    reasons: dict[str, str] = field(default_factory=dict)


def factor(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


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
    return text + (
        f"; the paper on the originals of these: {factor(geometric_mean(same))}" if same else ""
    )


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
    reasons: dict[str, str] | None = None,
) -> Claim:
    """Return the claim that ours is faster than a rival by the paper's factors, which are given by our graph."""

    def measured(record: Record, mode: str) -> Result:
        found = speedups(record, graphs, rivals, ours, mode, algorithm, device)
        if not found:
            return NOT_MEASURED
        same = [paper[graph] for graph in found if graph in paper]
        target = geometric_mean(same) if same else None
        return Result(mean_text(found, paper), by_factor(geometric_mean(found.values()), target))

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
    reasons: dict[str, str] | None = None,
) -> Claim:
    """Return the claim that ours is the fastest system on every graph."""

    def measured(record: Record, mode: str) -> Result:
        won, beaten, n = [], [], 0
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
                beaten.append(
                    f"{graph} (`{nearest.strategy}`, {factor(mine.median / nearest.median)})"
                )
        if not n:
            return NOT_MEASURED
        text = f"fastest on {len(won)} of {n}"
        text += f"; beaten on {', '.join(beaten)}" if beaten else ""
        ties = n - len(won) - len(beaten)
        verdict = TIE if ties == n else by_count(len(won), n)
        return Result(text + (f"; {ties} within the spread" if ties else ""), verdict)

    return Claim(sentence, figure, measured, reasons or {})


def effect(
    record: Record, graph: str, strategy: str, without: str, with_it: str, algorithm: str = "bfs"
) -> float | None:
    """Return the time without a feature divided by the time with it; None if it is not measured."""
    before = record.time(graph, strategy, without, algorithm=algorithm, group="features")
    after = record.time(graph, strategy, with_it, algorithm=algorithm, group="features")
    return before.median / after.median if before and after else None


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
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    text = (
        f"helps on {helps}, harms on {harms} of {len(values)} graphs; {factor(values[low])} ({low})"
    )
    text += f" to {factor(values[high])} ({high})" if len(values) > 1 else ""
    return Result(text, by_count(helps, len(values)) if helps else FAILS if harms else TIE)


def feature_claim(
    sentence: str,
    figure: str,
    graphs: Iterable[str],
    strategy: str,
    feature: str,
    algorithm: str = "bfs",
    reasons: dict[str, str] | None = None,
) -> Claim:
    """Return the claim that a feature helps: alone (in place of the rule) and within the published set."""
    listed = tuple(graphs)

    def measured(record: Record, mode: str) -> Result:
        if mode == "published":
            return effect_text(
                record, listed, strategy, f"without {feature}", "published", algorithm
            )
        alone = effect_text(record, listed, strategy, "none", f"only {feature}", algorithm)
        return Result(f"alone: {alone.text}", alone.verdict) if alone is not NOT_MEASURED else alone

    return Claim(sentence, figure, measured, reasons or {})


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
LAUNCHES = (
    "an H200 or H100 holds 270,336 threads at once, 11 times a GTX 780: levels are short, and "
    "launches and reads by the host decide "
    "on roads and meshes; a scan of all vertices costs little elsewhere"
)


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


def _hash_against_culling(record: Record, mode: str) -> Result:
    """Share of the duplicates that stay: Hash64 with virtual warps of width 4, beside the culling of Merrill et al."""
    facts, better, differs = [], 0, False
    for graph in ("internet-1M7", "kron-20", "mesh-1000", "web-NotreDame", "USA-road-NE"):
        hashed = record.counted(
            graph, "bfs_4k", "width 4, hash64" if mode == "published" else "edge-discover, hash64"
        )
        culled = record.counted(graph, "gather_expand_contract", "published")
        if not hashed or not culled:
            continue
        left = [
            each["counters"]["queued"] - (each["reached"] - each["sources"])
            for each in (hashed, culled)
        ]
        better += left[0] < left[1]
        differs |= left[0] != left[1]
        facts.append(f"{graph}: {left[0]:,} left against {left[1]:,}")
    if not facts:
        return NOT_MEASURED
    way = "" if mode == "published" else "with edge-discover: "
    return Result(way + "; ".join(facts), by_count(better, len(facts)) if differs else TIE)


def _growth_of_duplicates(record: Record, mode: str) -> Result:
    """Edges looked at with width 4 and width 1 (or edge-discover), duplicates kept, beside those of reached vertices."""
    facts, n = [], 0
    narrow = "width 1, keep" if mode == "published" else "edge-discover, keep"
    for graph in ("internet-1M7", "kron-20", "mesh-1000", "web-NotreDame", "USA-road-NE"):
        wide, less = (
            record.counted(graph, "bfs_4k", "width 4, keep"),
            record.counted(graph, "bfs_4k", narrow),
        )
        if wide and less:
            ratios = [
                each["counters"]["queued"] / max(each["reached"] - each["sources"], 1)
                for each in (wide, less)
            ]
            n += ratios[0] > ratios[1]
            facts.append(
                f"{graph}: {factor(ratios[0])} queued per vertex, {narrow.split(',')[0]} {factor(ratios[1])}"
            )
    return Result("; ".join(facts), by_count(n, len(facts))) if facts else NOT_MEASURED


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
        reasons=dict.fromkeys((IN_PART, FAILS), LAUNCHES),
    ),
    *(
        speedup_claim(
            f"faster than {rival} (table 2)",
            BFS_4K,
            strategies,
            "bfs_4k",
            _paper_ratios(i),
            figure=_figure_of_table_2(i),
            reasons={
                IN_PART: LAUNCHES,
                FAILS: LAUNCHES,
                HOLDS: "as in the paper: less work per level",
            },
        )
        for i, (rival, strategies) in enumerate(STRATEGY_OF.items())
    ),
    Claim(
        "faster than a sequential search (figure 15)",
        "the text has no numbers",
        lambda record, mode: _over_sequential(record, mode, BFS_4K, "bfs_4k", None),
        {
            HOLDS: "the device has many times the bandwidth of a core",
            FAILS: "the device has too little to do per level",
        },
    ),
    feature_claim(
        "dynamic virtual warps improve the search (5.2)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "dynamic widths",
        reasons={HOLDS: "idle lanes share the edges of small frontiers"},
    ),
    feature_claim(
        "dynamic parallelism improves graphs of uneven degree (5.3)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "children",
        reasons={IN_PART: "only graphs with vertices of thousands of edges have children"},
    ),
    feature_claim(
        "edge-discover balances the work (5.4)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "edge-discover",
        reasons=dict.fromkeys(
            (IN_PART, FAILS), "it wins where degrees are low and uneven; searching costs elsewhere"
        ),
    ),
    feature_claim(
        "a single block helps small frontiers (5.5)",
        "figure 7, without numbers",
        _FEATURED,
        "bfs_4k",
        "single block",
        reasons={IN_PART: "it saves launches, which only graphs of many levels have"},
    ),
    feature_claim(
        "coalesced writes pay (5.6)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "coalesced writes",
        reasons={FAILS: "the L2 cache merges writes by itself"},
    ),
    feature_claim(
        "coalesced reads pay (5.6)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "shared reads",
        reasons={FAILS: "the L1 cache serves a warp's equal addresses at once"},
    ),
    feature_claim(
        "prefix sums pay (5.1)",
        "no number",
        _FEATURED,
        "bfs_4k",
        "prefix sum",
        reasons={FAILS: "atomics of one address are merged by the compiler and fast in L2"},
    ),
    feature_claim(
        "duplicate detection pays (6)",
        "figure 14, without numbers",
        _FEATURED,
        "bfs_4k",
        "Hash64",
        reasons=dict.fromkeys(
            (IN_PART, FAILS), "stores are seen sooner, so fewer duplicates arise"
        ),
    ),
    Claim(
        "wider virtual warps make more duplicates, edge-discover few (6, figure 12)",
        "a figure without numbers",
        _growth_of_duplicates,
    ),
    Claim(
        "Hash64 leaves fewer duplicates than the culling of Merrill et al. (figure 13)",
        "21,432 left against 28,892 (-25.8 %)",
        _hash_against_culling,
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
    facts, n = [], 0
    for graph, (original, features) in H_BF_NEGATIVE.items():
        base = record.time(graph, "h_bf", "none", algorithm="sssp")
        label = "only " + " and ".join(features) if mode == "published" else "rule"
        better = record.time(graph, "h_bf", label, algorithm="sssp")
        if base and better:
            _, before, after = said.H_BF_TABLE_3[original]
            gain = base.median / better.median
            n += gain >= ENOUGH * before / after
            facts.append(
                f"{original}: {factor(gain)} (paper {factor(before / after)}, {' and '.join(features)})"
            )
    if facts:
        return Result("; ".join(facts), by_count(n, len(facts)))
    # Without these graphs: the published set beside none of its features.
    values = {
        time.graph: gain
        for time in record.where(lambda each: (each.strategy, each.label) == ("h_bf", "none"))
        if (
            gain := effect(
                record,
                time.graph,
                "h_bf",
                "none",
                "published" if mode == "published" else "rule",
                "sssp",
            )
        )
    }
    if not values:
        return NOT_MEASURED
    mean = geometric_mean(values.values())
    text = f"all features beside none on {len(values)} other graphs: {factor(mean)} ({factor(min(values.values()))} to "
    return Result(text + f"{factor(max(values.values()))})", by_factor(mean, 2.0))


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
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    text = f"{factor(values[low])} ({low}) to {factor(values[high])} ({high}) times Dijkstra's; at most 10 on {within} of "
    return Result(text + f"{len(values)} graphs", by_count(within, len(values)))


def _negative(record: Record, mode: str) -> Result:
    graphs = [
        graph
        for graph in (*H_BF_NEGATIVE, "USA-road-NY-negative")
        if row(record, graph, "h_bf", mode, "sssp")
    ]
    if not graphs:
        return NOT_MEASURED
    found = speedups(record, graphs, ("fifo",), "h_bf", mode, "sssp", "cpu")
    text = f"runs on {len(graphs)} graphs with negative weights"
    text += (
        f"; {factor(geometric_mean(found.values()))} times the sequential search" if found else ""
    )
    return Result(text, HOLDS)


_MANY_ROUNDS = "the rounds of a small frontier take as long as a launch, whatever the features save"
_WIDE = "there are more resident threads than vertices in most frontiers: a warp per vertex without features is near the best"  # noqa: E501
_ON_H_BF = tuple(
    dict.fromkeys(
        (
            *H_BF,
            "USA-road-NW",
            "USA-road-FLA",
            "soc-Slashdot0902",
            "cnr-2000",
            "rmat-20",
            "rmat-22",
            "erdos-renyi-2M",
            "delaunay_n16",
            "luxembourg_osm",
            "lattice-1500",
            "ego-Twitter",
            "dblp-2010",
            "web-NotreDame",
        )
    )
)

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
        reasons=dict.fromkeys(
            (IN_PART, FAILS),
            "host reads per round cost both sides the same, and their kernels are as wide",
        ),
    ),
    speedup_claim(
        "faster than LoneStar (table 2)",
        H_BF,
        ("topology_thread",),
        "h_bf",
        _h_bf_ratios(2),
        figure=_figure_of_h_bf(2),
        algorithm="sssp",
        reasons=dict.fromkeys(
            (IN_PART, FAILS),
            "scanning all edges costs little where a round has few levels to wait for",
        ),
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
        reasons=dict.fromkeys((IN_PART, FAILS), _MANY_ROUNDS),
    ),
    Claim(
        'optimizations improve the speedup over the sequential search "from a minimum of twice to '
        'almost four times" (table 3)',
        "2.9 (warp workload), 3.4 (edge classes), 2.6 (children and widths), 1.9 (64-bit atomics)",
        _table_3,
        dict.fromkeys((IN_PART, FAILS), _WIDE),
    ),
    feature_claim(
        "edge classes save relaxations and atomics (4.1)",
        "3.4 on wiki-talk",
        _ON_H_BF,
        "h_bf",
        "edge classes",
        "sssp",
        dict.fromkeys(
            (IN_PART, FAILS),
            "they need many vertices of one or no edge, and cost a copy of the targets",
        ),
    ),
    feature_claim(
        "64-bit atomics remove duplicates (4.2)",
        "1.9 on random_2Mv.128Me",
        _ON_H_BF,
        "h_bf",
        "duplicate removal",
        "sssp",
        {IN_PART: "where frontiers are large"},
    ),
    feature_claim(
        "frontier and offsets are streamed (5.1, item 1)",
        "no number",
        _ON_H_BF,
        "h_bf",
        "frontier streamed",
        "sssp",
    ),
    feature_claim(
        "edges through the read-only cache (5.1, item 2)",
        "no number",
        _ON_H_BF,
        "h_bf",
        "edges read-only",
        "sssp",
    ),
    feature_claim(
        "distances past the L1 cache (5.1, item 3)",
        "no number",
        _ON_H_BF,
        "h_bf",
        "L1 bypassed",
        "sssp",
    ),
    feature_claim(
        "enqueuing through shared memory (5.1, item 4)",
        "no number",
        _ON_H_BF,
        "h_bf",
        "shared enqueue",
        "sssp",
    ),
    feature_claim(
        "32 vertices per virtual warp (5.2)",
        "2.9 on hugetrace",
        _ON_H_BF,
        "h_bf",
        "warp workload",
        "sssp",
        {FAILS: "there are more warps than vertices, so one vertex per warp ends sooner"},
    ),
    feature_claim(
        "dynamic virtual warps of 4 to 32 lanes (5.2)",
        "2.6 on as-Skitter, with children",
        _ON_H_BF,
        "h_bf",
        "dynamic widths",
        "sssp",
        dict.fromkeys((IN_PART, FAILS), "the lower bound of 4 lanes costs: a whole warp is there"),
    ),
    feature_claim(
        "dynamic parallelism (5.3)",
        "2.6 on as-Skitter, with widths",
        _ON_H_BF,
        "h_bf",
        "children",
        "sssp",
        {IN_PART: "only where degrees exceed T_DP by far"},
    ),
    Claim(
        'relaxations within "one order of magnitude" of Dijkstra\'s (6.2, figure 9)',
        "about 10 times on msdoor",
        _work,
        {IN_PART: "random weights and long paths make vertices improve many times"},
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
    facts, n, known = [], 0, 0
    for table in UIUC_TABLES.values():
        for graph in table:
            theirs, cpu = (
                row(record, graph, "scan_flags", mode),
                row(record, graph, "fifo", mode, device="cpu"),
            )
            if theirs and cpu:
                known += 1
                n += is_faster(cpu, theirs)
                facts.append(f"{graph} {factor(cpu.median / theirs.median)}")
    text = f"slower than the CPU on {n} of {known}; the CPU's time / IIIT-BFS's: {', '.join(facts)}"
    return Result(text, by_count(n, known)) if known else NOT_MEASURED


def _part_of_uiuc(labels: tuple[str, ...]) -> Callable[[Record, str], Result]:
    """Return a function: the time without a part of UIUC-BFS divided by the time with it, on each graph that has both."""

    def measured(record: Record, mode: str) -> Result:
        facts, n = [], 0
        for graph in [graph for table in UIUC_TABLES.values() for graph in table]:
            base = record.time(graph, "queue_of_warps", mode, group="layers")
            for label in labels:
                without = record.time(graph, "queue_of_warps", label, group="layers")
                if base and without:
                    n += is_faster(base, without)
                    facts.append(f"{graph}, {label}: {factor(without.median / base.median)}")
        return Result("; ".join(facts), by_count(n, len(facts))) if facts else NOT_MEASURED

    return measured


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
            reasons={HOLDS: "bandwidth grew more than the speed of a core"},
        )
        for table, what in ((_TABLE_1, "regular graphs"), (_TABLE_2, "road networks"))
    ),
    Claim(
        'no faster than CPU-BFS on scale-free graphs: "highly imbalanced problems cannot benefit as much" (table 3)',
        "0.52 (1M), 0.94 (5M), 1.05 (10M)",
        lambda record, mode: _no_faster(record, mode),
        {FAILS: "1,000 edges of one vertex are little for a device that holds 270,336 threads"},
    ),
    *(
        speedup_claim(
            f"faster than IIIT-BFS on {what} ({table.partition(':')[0]})",
            UIUC_TABLES[table],
            ("scan_flags",),
            "queue_of_warps",
            _uiuc_ratios(table, 0),
            figure=figure_of(_uiuc_ratios(table, 0).values()),
            reasons={
                IN_PART: "a scan of all vertices takes less time than it did, next to a launch"
            },
        )
        for table, what in (
            (_TABLE_1, "regular graphs"),
            (_TABLE_2, "road networks"),
            (_TABLE_3, "scale-free graphs"),
        )
    ),
    Claim(
        "IIIT-BFS is slower than CPU-BFS (tables 1 to 3)",
        "on 13 of 13",
        _iiit_slower,
        dict.fromkeys(
            (IN_PART, FAILS), "a level scans millions of vertices in the time of two launches"
        ),
    ),
    Claim(
        "synchronizing without a launch saves time: layers 1 and 2 (3.3)",
        "no number",
        _part_of_uiuc(("without layer 1", "without layer 2", "layer 3 alone")),
    ),
    Claim(
        "vertices of high degree are split (4)", "no number", _part_of_uiuc(("without splitting",))
    ),
)


def _no_faster(record: Record, mode: str) -> Result:
    found = speedups(record, UIUC_TABLES[_TABLE_3], ("fifo",), "queue_of_warps", mode, device="cpu")
    if not found:
        return NOT_MEASURED
    text = ", ".join(f"{graph} {factor(value)}" for graph, value in found.items())
    return Result(text, by_count(sum(value <= 1.05 for value in found.values()), len(found)))


# --- Springer ----------------------------------------------------------------------------------------------------------

_SPRINGER_GRAPHS = {
    "soc-Slashdot0902": "Slashdot",
    "USA-road-NE": "roads",
    "talk-2M4": "WikiTalk",
    "web-NotreDame": "WikiTalk",
}
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


def _of_figure_7(record: Record, graph: str, mode: str) -> list[Time]:
    found = [row(record, graph, strategy, mode) for strategy in _FIGURE_7]
    return sorted((time for time in found if time), key=lambda time: time.median)


def _rank(
    names: tuple[str, ...], graphs: tuple[str, ...], last: bool = False
) -> Callable[[Record, str], Result]:
    """Return a function: the places of strategies among the variants of figure 7."""

    def measured(record: Record, mode: str) -> Result:
        facts, n = [], 0
        for graph in graphs:
            order = _of_figure_7(record, graph, mode)
            for name in names:
                places = [i for i, time in enumerate(order) if time.strategy == name]
                if places:
                    n += places[0] == (len(order) - 1 if last else 0)
                    facts.append(f"{graph}: `{name}` is place {places[0] + 1} of {len(order)}")
        return Result("; ".join(facts), by_count(n, len(facts))) if facts else NOT_MEASURED

    return measured


def _ratio_of(
    slower: str, quicker: str, graphs: tuple[str, ...], paper: float | None = None
) -> Callable[[Record, str], Result]:
    """Return a function: the time of a strategy divided by that of another."""

    def measured(record: Record, mode: str) -> Result:
        facts, values, n, reversed_on = [], [], 0, 0
        for graph in graphs:
            one, other = row(record, graph, slower, mode), row(record, graph, quicker, mode)
            if one and other:
                values.append(one.median / other.median)
                n += is_faster(other, one)
                reversed_on += is_faster(one, other)
                facts.append(f"{graph}: {factor(values[-1])}")
        if not facts:
            return NOT_MEASURED
        if paper is not None:
            return Result("; ".join(facts), by_factor(geometric_mean(values), paper))
        return Result("; ".join(facts), TIE if n == reversed_on == 0 else by_count(n, len(facts)))

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
        return Result(
            f"{graph}: best width {best}; within the spread: {sorted(near)}",
            HOLDS if set(near) & set(widths) else FAILS,
        )

    return measured


_ROADS, _TALK = ("USA-road-NE",), ("talk-2M4", "web-NotreDame")
SPRINGER_CLAIMS = (
    Claim(
        "Slashdot: the unoptimized version is the slowest (5)",
        "figure 7a",
        _rank(("scan_relax",), ("soc-Slashdot0902",), True),
    ),
    Claim(
        'Slashdot: "having a frontier of vertices can cut the runtime in half"',
        "2",
        _ratio_of("scan_relax", "scan_flags", ("soc-Slashdot0902",), 2.0),
    ),
    Claim(
        "Slashdot does very well with virtual warps of 16, perhaps better a little narrower",
        "figure 7a",
        _width("soc-Slashdot0902", (8, 16)),
        {FAILS: "a device with more threads wants wider virtual warps"},
    ),
    Claim(
        "Slashdot: virtual warps come close to the edge-centric version",
        "figure 7a",
        _ratio_of("scan_level", "scan_virtual_warp", ("soc-Slashdot0902",)),
    ),
    Claim(
        "Slashdot: a queue does not pay",
        "figure 7a",
        _ratio_of("queue_of_blocks", "scan_level", ("soc-Slashdot0902",)),
    ),
    Claim(
        "roads: prefix sums are the slowest",
        "1.375 s",
        _rank(("queue_by_prefix_sum",), _ROADS, True),
    ),
    Claim(
        "roads: a frontier queue is the best",
        "figure 7b",
        _rank(("queue_of_blocks",), _ROADS),
        {
            FAILS: "a scan of 1.5 million vertices takes less time than a level of a queue takes on the host"
        },
    ),
    Claim(
        "roads: virtual warps do not pay",
        "figure 7b",
        _ratio_of("scan_virtual_warp", "scan_level", _ROADS),
    ),
    Claim(
        "WikiTalk: a frontier queue is the best",
        "figure 7c",
        _rank(("queue_of_blocks",), _TALK),
        {FAILS: "one thread per vertex waits for vertices of thousands of edges"},
    ),
    Claim(
        "WikiTalk: reordering by degree gives a little",
        "figure 7c",
        _ratio_of("scan_level", "scan_by_degree", _TALK),
    ),
    Claim(
        "WikiTalk: prefix sums are the slowest",
        "figure 7c",
        _rank(("queue_by_prefix_sum",), _TALK, True),
    ),
)


# --- Sevilmis, Sivri, Aydin --------------------------------------------------------------------------------------------

SEVILMIS_GRAPHS = SEVILMIS | {
    "dblp-2010": "coPapersCiteseer",
    "rmat-22": "rmat-b",
    "luxembourg_osm": "europe.osm",
    "cnr-2000": "wikipedia",
}
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
        for graph in SEVILMIS_GRAPHS:
            one, all_of_them = (
                threaded(record, graph, strategy, 1),
                threaded(record, graph, strategy, most),
            )
            if one and all_of_them and most > 1:
                values[graph] = one.median / all_of_them.median
        if not values:
            return NOT_MEASURED
        paper = [said.SEVILMIS_1[SEVILMIS_GRAPHS[graph]][_CPU[strategy][1]] for graph in values]
        place = THREADS.index(most) if most in THREADS else len(THREADS) - 1
        target = geometric_mean(times[0] / times[place] for times in paper)
        text = f"on {most} threads {factor(geometric_mean(values.values()))} ({factor(min(values.values()))} to "
        text += f"{factor(max(values.values()))}, {len(values)} graphs); the paper on as many: {factor(target)}"
        return Result(text, by_factor(geometric_mean(values.values()), target))

    return measured


def _hybrid_serial(record: Record, mode: str) -> Result:
    del mode
    values = {}
    for graph in SEVILMIS_GRAPHS:
        one, other = threaded(record, graph, "buffers", 1), threaded(record, graph, "switch", 1)
        if one and other:
            values[graph] = one.median / other.median
    if not values:
        return NOT_MEASURED
    text = ", ".join(f"{graph} {factor(value)}" for graph, value in values.items())
    return Result(text, by_count(sum(value > 1.0 for value in values.values()), len(values)))


def _efficiency(record: Record, mode: str) -> Result:
    del mode
    most = min(_most_threads(record, "buffers"), _most_threads(record, "switch"))
    facts, n = [], 0
    for graph in SEVILMIS_GRAPHS:
        found = {}
        for strategy in ("buffers", "switch"):
            one, many = (
                threaded(record, graph, strategy, 1),
                threaded(record, graph, strategy, most),
            )
            if one and many and most > 1:
                found[strategy] = one.median / many.median / most
        if len(found) == 2:
            n += found["buffers"] > found["switch"]
            facts.append(f"{graph} {found['buffers']:.2f} against {found['switch']:.2f}")
    return (
        Result(f"on {most} threads: {', '.join(facts)}", by_count(n, len(facts)))
        if facts
        else NOT_MEASURED
    )


def _hybrid_beats(push: str, pull: str, graphs: Iterable[str]) -> Callable[[Record, str], Result]:
    listed = tuple(graphs)

    def measured(record: Record, mode: str) -> Result:
        return _ratio_of(push, pull, listed)(record, mode)

    return measured


def _gpu_over_serial(strategy: str, serial: str, place: int) -> Callable[[Record, str], Result]:
    """Return a function: the time of the own serial version divided by that on the GPU, as tables 2 and 3 have it."""

    def measured(record: Record, mode: str) -> Result:
        values, paper = {}, {}
        for graph, original in SEVILMIS_GRAPHS.items():
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


_ROAD_LIKE = ("road-12M", "luxembourg_osm")
SEVILMIS_CLAIMS = (
    Claim(
        "top-down scales with threads (table 1)", "2.1 to 6.2 on 16 threads", _scaling("buffers")
    ),
    Claim("hybrid scales with threads (table 1)", "1.6 to 5.3 on 16 threads", _scaling("switch")),
    Claim("hybrid lowers the serial time", "1.1 to 4.9, on 5 of 5", _hybrid_serial),
    Claim("efficiency is higher top-down", "on 4 of 5 at 16 threads", _efficiency),
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
        _ratio_of("scan_level", "queue_thread", _ROAD_LIKE, 20.0),
        dict.fromkeys((IN_PART, FAILS), "a scan takes little more time than a launch"),
    ),
    Claim(
        "layers are faster than frontiers on rmat-er",
        "1.8 (top-down), 4.1 (hybrid)",
        _ratio_of("queue_thread", "scan_level", ("erdos-renyi-2M",), 1.8),
        dict.fromkeys(
            (IN_PART, FAILS), "atomics of a warp on one counter are merged, so a queue costs less"
        ),
    ),
    Claim(
        'hybrid "performs always better" than top-down, by layers',
        "5 of 5",
        _hybrid_beats("scan_level", "scan_switch", SEVILMIS_GRAPHS),
    ),
    Claim(
        'hybrid "performs always better" than top-down, by frontiers',
        "4 of 5 (not europe.osm)",
        _hybrid_beats("queue_thread", "queue_switch", SEVILMIS_GRAPHS),
    ),
)

CLAIMS = {
    "bfs-4k": BFS_4K_CLAIMS,
    "h-bf": H_BF_CLAIMS,
    "uiuc-bfs": UIUC_CLAIMS,
    "springer": SPRINGER_CLAIMS,
    "sevilmis": SEVILMIS_CLAIMS,
}
