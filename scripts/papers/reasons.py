"""The likely reasons for verdicts. All their figures are computed from the record, so that no later measurement belies them.

Each function takes the record and returns a sentence, or "" if the record lacks what it needs. Those with arguments return
such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scripts.papers import said
from scripts.papers.experiments import BFS_4K, H_BF_NEGATIVE
from scripts.papers.record import Record, Time, geometric_mean, is_faster
from scripts.papers.words import extremes, factor, named, span

Reason = Callable[[Record], str]

# Threads that a device holds at once: 132 multiprocessors of 2,048. A GTX 780 has 12 of them.
RESIDENT = 132 * 2048
RESIDENT_GTX_780 = 12 * 2048
WARP = 32
# From so many levels on, a graph is called deep here: launches decide.
DEEP = 100
# How bfs_4k's steps are recorded: scripts/papers/levels.py
IS_ALONE, FRONTIER = 0, 3


def per_round(time: Time) -> float:
    """Return the microseconds of a level of a search, or of a round."""
    return 1e6 * time.median / max(time.rounds, 1.0)


def rounds_of(
    record: Record, graphs: Iterable[str], strategy: str, label: str = "published", algorithm="bfs"
) -> dict[str, float]:
    """Return for each measured graph the microseconds per level or round of a strategy."""
    found = {}
    for graph in graphs:
        time = record.time(graph, strategy, label, algorithm=algorithm)
        if time:
            found[graph] = per_round(time)
    return found


def effects(
    record: Record, strategy: str, before: str, after: str, algorithm: str = "bfs"
) -> dict[str, tuple[float, int]]:
    """Return for each graph the time of one setting divided by that of another.

    With it comes 1 if the latter is faster beyond the spreads, -1 if it is slower, and else 0.
    """
    found = {}
    for one in record.where(
        lambda time: (
            (time.strategy, time.label, time.algorithm, time.group)
            == (strategy, before, algorithm, "features")
        )
    ):
        other = record.time(one.graph, strategy, after, algorithm=algorithm, group="features")
        if other:
            sign = int(is_faster(other, one)) - int(is_faster(one, other))
            found[one.graph] = (one.median / other.median, sign)
    return found


def helped(found: dict[str, tuple[float, int]]) -> tuple[list[str], list[str]]:
    """Return the graphs on which a feature helps, and the others."""
    return (
        [graph for graph, (_, sign) in found.items() if sign > 0],
        [graph for graph, (_, sign) in found.items() if sign <= 0],
    )


def gains(found: dict[str, tuple[float, int]]) -> dict[str, float]:
    return {graph: value for graph, (value, _) in found.items()}


def figures(values: dict[str, float], unit: str = "") -> str:
    return ", ".join(f"{graph} {factor(value)}{unit}" for graph, value in values.items())


# --- BFS-4K ------------------------------------------------------------------------------------------------------------


def levels_in_paper(graphs: Iterable[str], place: int, also: int | None = None) -> list[float]:
    """Return the microseconds per level of a system in table 2 of BFS-4K: its time / the diameter.

    ``also``: only for originals for which this column has a time, too.
    """
    found = []
    for graph in graphs:
        original = BFS_4K[graph]
        times = said.BFS_4K_TABLE_2[original]
        diameter = said.ORIGINALS[original].diameter
        is_timed = times[place] and (also is None or times[also])
        if is_timed and diameter and diameter >= DEEP:
            found.append(1e3 * times[place] / diameter)
    return found


def of_depth(rivals: tuple[str, ...], place: int) -> Reason:
    """Return a reason: rivals beside BFS-4K on deep and on flat graphs, with the time of a level.

    ``place`` is the column of the rival in table 2.
    """

    def reason(record: Record) -> str:
        ratios: dict[bool, dict[str, float]] = {True: {}, False: {}}
        ours_per_level, theirs_per_level = [], []
        for graph in BFS_4K:
            ours = record.time(graph, "bfs_4k")
            theirs = fastest(record, graph, rivals)
            if not ours or not theirs:
                continue
            deep = ours.rounds >= DEEP
            ratios[deep][graph] = theirs.median / ours.median
            if deep:
                ours_per_level.append(per_round(ours))
                theirs_per_level.append(per_round(theirs))
        if not ratios[True] or not ratios[False]:
            return ""
        parts = []
        for deep, where in ((True, "deep"), (False, "flat")):
            in_paper = []
            for graph in ratios[deep]:
                times = said.BFS_4K_TABLE_2[BFS_4K[graph]]
                if times[place]:
                    in_paper.append(times[place] / times[-1])
            words = f"{factor(geometric_mean(ratios[deep].values()))} on {len(ratios[deep])} {where} graphs"
            if in_paper:
                words += f" (paper {factor(geometric_mean(in_paper))})"
            parts.append(words)
        text = (
            f"as published {', '.join(parts)}. Mean µs per level of the deep ones: BFS-4K "
            f"{factor(geometric_mean(ours_per_level))}, its rival "
            f"{factor(geometric_mean(theirs_per_level))}"
        )
        if in_paper := levels_in_paper(ratios[True], place):
            ours_in_paper = levels_in_paper(ratios[True], -1, place)
            text += (
                "; in the paper (time / diameter, where that is 100 or more) "
                f"{factor(geometric_mean(ours_in_paper))} and {factor(geometric_mean(in_paper))}"
            )
        return text

    return reason


def fastest(record: Record, graph: str, names: Iterable[str], algorithm="bfs") -> Time | None:
    found = [record.time(graph, name, algorithm=algorithm) for name in names]
    return min((time for time in found if time), key=lambda time: time.median, default=None)


def of_all_rivals(record: Record) -> str:
    """The two kinds of graphs on which BFS-4K is beaten: by a barrier on deep ones, by scans on flat ones."""
    deep = [
        graph for graph in BFS_4K if (time := record.time(graph, "bfs_4k")) and time.rounds >= DEEP
    ]
    ours = rounds_of(record, deep, "bfs_4k")
    luo = rounds_of(record, deep, "queue_of_warps")
    once = rounds_of(record, deep, "persistent", "library")
    launched = [
        per_round(time)
        for time in record.where(lambda each: each.label == "layer 3 alone")
        if time.rounds >= DEEP
    ]
    scans, visits = {}, {}
    for graph in ("kron-20", "internet-1M7"):
        scan, mine = record.time(graph, "scan_edges"), record.time(graph, "bfs_4k")
        counted = record.counted(graph, "bfs_4k", "published")
        if scan and mine and counted:
            scans[graph] = record.graphs[graph]["edges"] * scan.rounds / scan.median / 1e9
            looked_at = counted["counters"]["edges"] / counted["sources"]
            visits[graph] = looked_at / mine.median / 1e9
    if not ours or not luo or not once or not launched or not scans:
        return ""
    in_paper = levels_in_paper(deep, -1)
    return (
        "deep graphs: a launch per level and a read by the host, which is in Python. µs per level: "
        "`bfs_4k` "
        f"{span(ours.values())} (in the paper, by time / diameter, {span(in_paper)}); "
        "`queue_of_warps`, which has a barrier of "
        f"all blocks, {span(luo.values())}, and {span(launched)} with a launch per level on roads "
        "and grids; `persistent`, a "
        f"single launch, {span(once.values())}. Flat graphs: a scan of all edges reads them in "
        f"order, {figures(scans)} billion "
        f"per second; BFS-4K looks at each edge about once, {figures(visits)} billion per second"
    )


def of_dynamic_widths(record: Record) -> str:
    wide, shown = {}, {}
    for each in record.levels:
        if each["label"] == "published":
            many = [step for step in each["steps"] if not step[IS_ALONE]]
            shown[each["graph"]] = len(many)
            wide[each["graph"]] = sum(step[FRONTIER] >= RESIDENT for step in many)
    if not shown:
        return ""
    counts = ", ".join(f"{graph} {wide[graph]} of {shown[graph]}" for graph in shown)
    return (
        f"as published (K4 = 1) edge-discover takes all frontiers below the {RESIDENT:,} threads "
        "of the device, so that "
        "virtual warps act in larger ones and in the single block. Launches shown of many blocks "
        "with a larger one: "
        f"{counts}"
    )


def per_source(record: Record, strategy: str, counter: str) -> dict[str, float]:
    """Return what a published strategy has counted per source, by graph."""
    return {
        each["graph"]: each["counters"][counter] / each["sources"]
        for each in record.counters
        if (each["strategy"], each["label"]) == (strategy, "published")
    }


def of_children(record: Record) -> str:
    counts = per_source(record, "bfs_4k", "children")
    harmed = [
        graph
        for graph, (_, sign) in effects(record, "bfs_4k", "without children", "published").items()
        if sign < 0
    ]
    if not counts:
        return ""
    words = f"children per search: {figures(counts)}; it helps where there are many"
    for graph in harmed:
        words += (
            f". It harms on {graph}, whose largest degree is {record.graphs[graph]['largest']:,}: "
            "hardly more than the "
            "2,048 edges of a child's block (K3 x K6), for which a launch does not pay"
        )
    return words


def of_edge_discover(record: Record) -> str:
    within, rest = helped(effects(record, "bfs_4k", "without edge-discover", "published"))
    alone, _ = helped(effects(record, "bfs_4k", "none", "only edge-discover"))
    if not within:
        return ""
    uneven = {
        graph: record.graphs[graph]["deviation"] / record.graphs[graph]["mean"]
        for graph in (*within, *rest)
    }
    others = [graph for graph in alone if graph not in within]
    return (
        "it levels uneven degrees. Deviation / mean of the degrees where the set gains by it: "
        f"{figures({graph: uneven[graph] for graph in within})}; elsewhere: "
        f"{figures({graph: uneven[graph] for graph in rest})}. Alone it gains on {named(others)}, "
        "too, where within the "
        "set wide virtual warps and children do the same"
    )


def of_single_block(record: Record) -> str:
    launches = {}
    for each in record.counters:
        if (each["strategy"], each["label"]) == ("bfs_4k", "published"):
            many = record.counted(each["graph"], "bfs_4k", "edge-discover, hash64")
            if many:
                with_it = each["counters"]["single_block"] + each["counters"]["many_blocks"]
                before = many["counters"]["many_blocks"] / many["sources"]
                launches[each["graph"]] = (before, with_it / each["sources"])
    if not launches:
        return ""
    words = ", ".join(
        f"{graph} {factor(before)} to {factor(after)}"
        for graph, (before, after) in launches.items()
    )
    return f"it saves launches, and only graphs of many levels have many. Launches per search without and with it: {words}"


def of_hash64(record: Record) -> str:
    shares = {
        each["graph"]: 100 * each["counters"]["duplicates"] / each["counters"]["queued"]
        for each in record.counters
        if (each["strategy"], each["label"]) == ("bfs_4k", "published")
    }
    found = effects(record, "bfs_4k", "without Hash64", "published")
    harmed = [graph for graph, (_, sign) in found.items() if sign < 0]
    if not shares:
        return ""
    few = [graph for graph in shares if shares[graph] < 1]
    return (
        f"duplicates found, as a share of what is queued: {figures(shares, ' %')}. It harms on "
        f"{named(harmed)}: where it "
        f"finds next to none ({named(few)}) each vertex that is queued pays for the table in vain, "
        "and where it finds many, "
        "launches take most of the time"
    )


def of_growth(record: Record) -> str:
    left = {}
    for each in record.counters:
        if (each["strategy"], each["label"]) == ("bfs_4k", "width 1, keep"):
            reached = each["reached"] - each["sources"]
            left[each["graph"]] = 100 * (each["counters"]["queued"] - reached) / reached
    if not left:
        return ""
    return (
        "duplicates arise over many levels: each of them makes more. Duplicates of width 1 per "
        "vertex reached: "
        f"{figures(left, ' %')}; where they are few, chance decides which width has more"
    )


def of_culling(record: Record) -> str:
    by_bits, by_tables, found = {}, {}, {}
    for each in record.counters:
        if each["strategy"] == "gather_expand_contract":
            graph, counts = each["graph"], each["counters"]
            by_bits[graph] = 100 * counts["by_bits"] / counts["inspected"]
            by_tables[graph] = counts["by_history"] + counts["by_warp"]
            hashed = record.counted(graph, "bfs_4k", "edge-discover, hash64")
            if hashed:
                found[graph] = hashed["counters"]["duplicates"]
    if not found:
        return ""
    more = [graph for graph in found if found[graph] > by_tables[graph]]
    tables = ", ".join(f"{graph} {by_tables[graph]:,}" for graph in by_tables)
    hashes = ", ".join(f"{graph} {count:,}" for graph, count in found.items())
    return (
        "before its tables, the culling reads a bitmask of the visited vertices that all blocks "
        "share; it rejects "
        f"{span(by_bits.values())} % of what is inspected. Hash64 has one table per block and no "
        "such mask. Compared as "
        f"tables alone, Hash64 finds more on {len(more)} of {len(found)} graphs (with "
        f"edge-discover: {hashes}; the culling's "
        f"tables: {tables})"
    )


# --- H-BF --------------------------------------------------------------------------------------------------------------


def _left_out(record: Record, feature: str) -> str:
    found = effects(record, "h_bf", "published", f"without {feature}", "sssp")
    return span(gains(found).values()) if found else "?"


def of_davidson(graphs: Iterable[str], rivals: tuple[str, ...]) -> Reason:
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        if not effects(record, "h_bf", "published", "without warp workload", "sssp"):
            return ""
        ours = rounds_of(record, listed, "h_bf", "published", "sssp")
        by_rule = rounds_of(record, listed, "h_bf", "rule", "sssp")
        theirs = {}
        for graph in listed:
            found = [record.time(graph, rival, algorithm="sssp") for rival in rivals]
            timed = [time for time in found if time]
            if timed:
                theirs[graph] = per_round(min(timed, key=lambda time: time.median))
        return (
            "as published, features cost more than they save here: without the warp workload the "
            "set is "
            f"{_left_out(record, 'warp workload')} times as fast, without dynamic widths "
            f"{_left_out(record, 'dynamic widths')}, without edge classes "
            f"{_left_out(record, 'edge classes')}. A round takes "
            f"H-BF {span(ours.values())} µs as published and {span(by_rule.values())} µs by the "
            "rule, which reads the "
            f"frontier's size every 32 rounds; the best rival {span(theirs.values())} µs, with a "
            "read in each round"
        )

    return reason


def of_lonestar(graphs: Iterable[str]) -> Reason:
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        theirs = rounds_of(record, listed, "topology_thread", "published", "sssp")
        shares, ours = {}, {}
        for graph in theirs:
            time = record.time(graph, "h_bf", algorithm="sssp")
            rival = record.time(graph, "topology_thread", algorithm="sssp")
            if time and rival:
                ours[graph] = per_round(time)
                shares[graph] = rival.rounds / time.rounds
        if not ours:
            return ""
        return (
            f"a round over all edges takes LoneStar's {extremes(theirs)} µs, one of H-BF as "
            f"published {extremes(ours)} µs; "
            f"and LoneStar's needs {span(shares.values())} times as many rounds, since a round "
            "reads what it has itself stored"
        )

    return reason


def enqueued_per_round(record: Record, label: str = "published") -> dict[str, float]:
    return {
        each["graph"]: each["counters"]["enqueued"] / each["rounds"]
        for each in record.counters
        if (each["strategy"], each["label"]) == ("h_bf", label)
    }


def published_counters(record: Record, graphs: Iterable[str]) -> dict[str, dict]:
    """Return the entries of the counters of H-BF as published on some graphs."""
    found = {graph: record.counted(graph, "h_bf", "published", "sssp") for graph in graphs}
    return {graph: each for graph, each in found.items() if each}


def of_warp_workload(record: Record) -> str:
    found = effects(record, "h_bf", "without warp workload", "published", "sssp")
    frontiers = enqueued_per_round(record)
    warps = {graph: frontiers[graph] / WARP for graph in found if graph in frontiers}
    if not warps:
        return ""
    parts = [
        f"{graph} {warps[graph]:,.0f} ({factor(found[graph][0])})"
        for graph in sorted(warps, key=warps.__getitem__)
    ]
    return (
        "each virtual warp walks its 32 vertices one after the other, and the fewer such warps a "
        f"round has, the more of the device idles, which holds {RESIDENT // WARP:,} warps (a GTX "
        f"780 {RESIDENT_GTX_780 // WARP}). Virtual warps per round in the mean, and the effect "
        f"within the set: {', '.join(parts)}"
    )


def of_table_3(record: Record) -> str:
    if not (workload := of_warp_workload(record)):
        return ""
    overs, in_paper = {}, {}
    for time in record.where(
        lambda each: (each.strategy, each.label, each.group) == ("h_bf", "none", "systems")
    ):
        cpu = record.time(time.graph, "fifo", algorithm="sssp", device="cpu", threads=1)
        if cpu:
            overs[time.graph] = cpu.median / time.median
            original = H_BF_NEGATIVE[time.graph][0]
            sequential, before, _ = said.H_BF_TABLE_3[original]
            in_paper[original] = sequential / before
    return (
        f"the set without features is {figures(overs)} times as fast as the sequential search, in "
        "the paper "
        f"{figures(in_paper)}. Warp workload: {workload}. {of_edge_classes_on_table_3(record)}"
    )


def of_edge_classes_on_table_3(record: Record) -> str:
    """How much edge classes save on the graph on which table 3 measures them."""
    parts = []
    for graph, (_, features) in H_BF_NEGATIVE.items():
        entry = record.counted(graph, "h_bf", "published", "sssp")
        if "edge classes" in features and entry:
            parts.append(
                f"Edge classes skip {factor(saved_by_classes(entry))} % of the edges on {graph}, "
                "whose "
                f"largest degree of {record.graphs[graph]['largest']:,} they leave as it is"
            )
    return "; ".join(parts)


def saved_by_classes(entry: dict) -> float:
    """Return the percentage of the edges looked at that need no relaxation."""
    counts = entry["counters"]
    return 100 * counts["skipped_edges"] / (counts["relaxations"] + counts["skipped_edges"])


def of_edge_classes(record: Record) -> str:
    found = effects(record, "h_bf", "without edge classes", "published", "sssp")
    entries = published_counters(record, found)
    if not entries:
        return ""
    skipped = {graph: saved_by_classes(entry) for graph, entry in entries.items()}
    direct = []
    for entry in entries.values():
        counts = entry["counters"]
        direct.append(100 * counts["direct_writes"] / max(counts["successful"], 1))
    return (
        f"edges skipped: {figures(skipped, ' %')}; of the successful relaxations at most "
        f"{factor(max(direct))} % are stored without an atomic. That is less than it costs to "
        "tell each edge's class"
    )


def of_atomic64(record: Record) -> str:
    found = effects(record, "h_bf", "without duplicate removal", "published", "sssp")
    parts = []
    for graph, entry in published_counters(record, found).items():
        counts = entry["counters"]
        avoided = counts["duplicates_avoided"]
        share = 100 * avoided / (avoided + counts["enqueued"])
        n_rounds = entry["rounds"] / entry["sources"]
        effect = factor(found[graph][0])
        parts.append((n_rounds, f"{graph} {n_rounds:,.0f}, {factor(share)} % ({effect})"))
    if not parts:
        return ""
    listed = "; ".join(text for _, text in sorted(parts))
    return (
        "a duplicate makes more in each later round, so that removing few of them pays over many "
        "rounds, and removing many of them need not over few. Rounds, duplicates avoided of what "
        f"would be queued, and the effect: {listed}"
    )


def of_few(strategy: str, feature: str, algorithm: str = "sssp") -> Reason:
    """Return a reason for an effect on few graphs."""

    def reason(record: Record) -> str:
        found = effects(record, strategy, f"without {feature}", "published", algorithm)
        within, rest = helped(found)
        if not within or not rest:
            return ""
        values = gains(found)
        return (
            f"within the set it gains on {figures({graph: values[graph] for graph in within})}; "
            "elsewhere the difference is "
            f"{span(values[graph] for graph in rest)} and within the spreads, which a smaller gain "
            "would not exceed"
        )

    return reason


def of_shared_enqueue(record: Record) -> str:
    sizes = enqueued_per_round(record)
    found = effects(record, "h_bf", "none", "only shared enqueue", "sssp")
    within, rest = helped(found)
    within = [graph for graph in within if graph in sizes]
    rest = [graph for graph in rest if graph in sizes]
    if not within or not rest:
        return ""
    return (
        "it pays where a round enqueues much: alone on "
        f"{figures({graph: sizes[graph] for graph in within})} vertices per round, not on "
        f"{figures({graph: sizes[graph] for graph in rest})}; within the set on all, as each lane "
        "finds more (warp workload)"
    )


def of_widths_h_bf(record: Record) -> str:
    swept = {}
    for time in record.where(
        lambda each: (each.strategy, each.label, each.group) == ("h_bf", "min_width 16", "knobs")
    ):
        base = record.time(time.graph, "h_bf", algorithm="sssp", group="knobs")
        if base:
            swept[time.graph] = base.median / time.median
    found = effects(record, "h_bf", "none", "only dynamic widths", "sssp")
    alone, _ = helped(found)
    harmed = [graph for graph, (_, sign) in found.items() if sign < 0]
    degrees = {graph: record.graphs[graph]["mean"] for graph in found}
    if not swept or not alone:
        return ""
    return (
        f"with at least 16 lanes in place of 4 the set is {figures(swept)} times as fast. Alone, "
        "narrow warps gain at low "
        f"mean degrees ({figures({graph: degrees[graph] for graph in alone})}) and lose at higher "
        "ones "
        f"({figures({graph: degrees[graph] for graph in harmed})})"
    )


def of_children_h_bf(record: Record) -> str:
    launched = per_source(record, "h_bf", "child_launches")
    found = effects(record, "h_bf", "none", "only children", "sssp")
    alone, _ = helped(found)
    without_any = [graph for graph in alone if not launched.get(graph)]
    some = {graph: value for graph, value in launched.items() if graph in found and value}
    if not some:
        return ""
    words = f"children per search, among these graphs: {figures(some)}; the others have none"
    for graph in without_any:
        words += (
            f". The {factor(found[graph][0])} alone on {graph}, which has none, cannot come from "
            "children: a base may be off by "
            "as much"
        )
    return words


def of_work(record: Record) -> str:
    within, beyond = {}, {}
    for each in record.counters:
        if (each["strategy"], each["label"]) == ("h_bf", "published"):
            multiple = each["counters"]["relaxations"] / each["out_edges"]
            into = within if multiple <= 10.0 else beyond
            into[each["graph"]] = record.graphs[each["graph"]]["diameter"]
    if not within or not beyond:
        return ""
    return (
        "over long paths a distance falls many times, and each fall relaxes all edges behind it "
        "again. Diameters where the "
        f"multiple is at most 10: {span(within.values())}; beyond: {span(beyond.values())}"
    )


# --- Luo, Wong, Hwu ----------------------------------------------------------------------------------------------------


def of_cpu_per_edge(graphs: Iterable[str], regular: Iterable[str]) -> Reason:
    """Return a reason: nanoseconds per edge of the sequential search on scale-free and on regular graphs."""
    listed, others = tuple(graphs), tuple(regular)

    def reason(record: Record) -> str:
        per_edge: list[dict[str, float]] = []
        for names in (listed, others):
            found = {}
            for graph in names:
                time = record.time(graph, "fifo", device="cpu", threads=1)
                if time:
                    found[graph] = 1e9 * time.median / record.graphs[graph]["edges"]
            per_edge.append(found)
        gained = {}
        for graph in listed:
            base = record.time(graph, "queue_of_warps", group="layers")
            plain = record.time(graph, "queue_of_warps", "without splitting", group="layers")
            if base and plain:
                gained[graph] = plain.median / base.median
        if not all(per_edge) or not gained:
            return ""
        return (
            "neighbors at random miss the caches of the CPU, which takes "
            f"{span(per_edge[0].values())} ns per edge, and "
            f"{span(per_edge[1].values())} on regular graphs. 1,000 edges of one vertex are few "
            f"for {RESIDENT:,} threads, "
            f"once lists are split (without: {figures(gained)} times as long)"
        )

    return reason


def of_scan_per_level(graphs: Iterable[str]) -> Reason:
    """Return a reason: the time of a level of IIIT-BFS grows much less than the number of vertices that it looks at."""
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        levels = rounds_of(record, listed, "scan_flags")
        if len(levels) < 2:
            return ""
        sizes = {graph: record.graphs[graph]["vertices"] for graph in levels}
        small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        return (
            f"a level of IIIT-BFS looks at all vertices: {factor(levels[small])} µs on {small} "
            f"({sizes[small]:,} vertices), "
            f"{factor(levels[large])} µs on {large} ({sizes[large]:,}). "
            f"{factor(sizes[large] / sizes[small])} times the vertices "
            f"take {factor(levels[large] / levels[small])} times the time: looking is cheap beside "
            "two launches and a read by "
            "the host"
        )

    return reason


def of_few_levels(graphs: Iterable[str]) -> Reason:
    """Return a reason: with few levels all vertices are looked at seldom, and both searches mostly visit edges."""
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        levels, rates = [], {"scan_flags": {}, "queue_of_warps": {}}
        for graph in listed:
            for strategy, found in rates.items():
                time = record.time(graph, strategy)
                if time:
                    levels.append(time.rounds)
                    found[graph] = record.graphs[graph]["edges"] / time.median / 1e9
        if not levels:
            return ""
        return (
            f"in {span(levels)} levels all vertices are looked at as often, and no more; visiting "
            "the edges is most of both "
            f"searches. Billions of edges per second: IIIT-BFS {figures(rates['scan_flags'])}; "
            "UIUC-BFS "
            f"{figures(rates['queue_of_warps'])}"
        )

    return reason


def of_layer_1(record: Record) -> str:
    found = {}
    for time in record.where(lambda each: each.label == "without layer 1"):
        base = record.time(time.graph, "queue_of_warps", group="layers")
        if base:
            found[time.graph] = time.median / base.median
    if not found:
        return ""
    return (
        "without it the barrier of the grid (layer 2) takes the small frontiers. Time without it / "
        "with it: "
        f"{figures(found)}"
    )


def of_layer_2(record: Record) -> str:
    levels = {}
    for time in record.where(lambda each: each.label == "without layer 2"):
        levels[time.graph] = time.rounds
    if not levels:
        return ""
    return f"a launch per level counts where there are many levels: {figures(levels)}"


def of_warp_queues(record: Record) -> str:
    levels = {}
    for time in record.where(lambda each: (each.group, each.label) == ("queues", "published")):
        levels[time.graph] = per_round(time)
    if not levels:
        return ""
    return (
        "since Maxwell atomics in shared memory are done by hardware, and collisions cost little; "
        "with a queue per warp one thread sums the offsets, and each warp copies its own queue, "
        f"however uneven they are. µs per level with a queue per block: {figures(levels)}"
    )


def of_splitting(record: Record) -> str:
    largest = {}
    for time in record.where(lambda each: each.label == "without splitting"):
        largest[time.graph] = record.graphs[time.graph]["largest"]
    if not largest:
        return ""
    return (
        f"largest degrees: {figures(largest)}. Lists of more than 7 edges are split; where there "
        "are next to none, a queue "
        "of parts costs and gives nothing"
    )


# --- Springer ----------------------------------------------------------------------------------------------------------


def of_variants(graph: str, names: Iterable[str]) -> Reason:
    """Return a reason: the times per level of some variants on a graph."""
    listed = tuple(names)

    def reason(record: Record) -> str:
        levels = {}
        for name in listed:
            time = record.time(graph, name)
            if time:
                levels[f"`{name}`"] = per_round(time)
        if not levels:
            return ""
        largest = record.graphs[graph]["largest"]
        return f"time per level: {figures(levels, ' µs')}; the largest degree is {largest:,}"

    return reason


def followed_by(first: Reason, words: str) -> Reason:
    """Return a reason that ends with further words."""

    def reason(record: Record) -> str:
        text = first(record)
        return f"{text}: {words}" if text else ""

    return reason


# --- Sevilmis, Sivri, Aydin --------------------------------------------------------------------------------------------


def of_threads(graphs: Iterable[str], strategy: str) -> Reason:
    """Return a reason: speedup of the most threads beside the vertices of a level."""
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        parts = []
        for graph in listed:
            times = {
                time.threads: time
                for time in record.where(
                    lambda each, graph=graph: (
                        (each.graph, each.strategy, each.device, each.algorithm)
                        == (graph, strategy, "cpu", "bfs")
                    )
                )
            }
            if 1 not in times or len(times) < 2:
                continue
            most = max(times)
            per_level = record.graphs[graph]["vertices"] / times[1].rounds
            gain = times[1].median / times[most].median
            parts.append(f"{graph} {per_level:,.0f} ({factor(gain)})")
        if not parts:
            return ""
        return (
            "a level that has few vertices cannot employ the threads, which wait for each other "
            "after each. Vertices per "
            f"level, and the speedup: {', '.join(parts)}"
        )

    return reason


DENSE = 100 / 32  # percent of the vertices, from which a hybrid goes bottom-up


def of_hybrids(graphs: Iterable[str], push: str, pull: str, device: str = "cuda") -> Reason:
    """Return a reason: where a hybrid wins, beside the share of the vertices in a level."""
    listed = tuple(graphs)
    threads = 1 if device == "cpu" else 0

    def reason(record: Record) -> str:
        parts, without = [], []
        for graph in listed:
            one = record.time(graph, push, device=device, threads=threads)
            other = record.time(graph, pull, device=device, threads=threads)
            if not one or not other:
                continue
            share = 100 / one.rounds
            gain = one.median / other.median
            parts.append(f"{graph} {factor(share)} % ({factor(gain)})")
            if share < DENSE / 10 and is_faster(other, one):
                without.append(graph)
        if not parts:
            return ""
        text = (
            f"it goes bottom-up in levels that hold 1/32 of the vertices ({factor(DENSE)} %), and "
            "gains by it only there. "
            f"Vertices per level in the mean, and the gain: {', '.join(parts)}"
        )
        if without:
            text += (
                f". What it gains on {named(without)} is no gain of the direction: `{pull}` and "
                f"`{push}` are two programs"
            )
        return text

    return reason


def of_bitset(graphs: Iterable[str]) -> Reason:
    """Return a reason: what the frontier takes as integers and as bits, and where the difference is within the spread."""
    listed = tuple(graphs)

    def reason(record: Record) -> str:
        sizes, ties = {}, []
        for integers in record.where(lambda each: each.strategy == "pull_integers"):
            given = {"device": "cpu", "threads": integers.threads}
            bits = record.time(integers.graph, "pull_bits", **given)
            if integers.graph not in listed or not bits:
                continue
            sizes[integers.graph] = record.graphs[integers.graph]["vertices"]
            if not is_faster(bits, integers):
                ties.append(f"{integers.threads}")
        if not sizes:
            return ""
        parts = [f"{graph} {4 * n:,} and {n // 8:,} bytes" for graph, n in sizes.items()]
        return (
            f"not beyond the spreads with threads: {named(ties)}. The frontier takes, as integers and "
            f"as bits: {', '.join(parts)}"
        )

    return reason


def of_levels_of(graph: str, names: Iterable[str], words: str) -> Reason:
    listed = tuple(names)

    def reason(record: Record) -> str:
        levels = {}
        for name in listed:
            time = record.time(graph, name)
            if time:
                levels[f"`{name}`"] = per_round(time)
        return f"time per level on {graph}: {figures(levels, ' µs')}: {words}" if levels else ""

    return reason
