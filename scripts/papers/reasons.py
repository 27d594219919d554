"""The likely reasons for verdicts. All their figures are computed from the record, so that no later measurement belies them.

Each function returns a sentence of a record; NotMeasuredError: the record lacks what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import geometric_mean
from typing import NamedTuple

from scripts.papers import said
from scripts.papers.experiments import BFS_4K, H_BF_NEGATIVE
from scripts.papers.record import NotMeasuredError, Record, Time, is_faster
from scripts.papers.words import extremes, factor, figures, listed, named, span

Reason = Callable[[Record], str]

# Threads that a device holds at once: 132 multiprocessors of 2,048. A GTX 780 has 12 of them.
RESIDENT = 132 * 2048
RESIDENT_GTX_780 = 12 * 2048
WARP = 32
# From so many levels on, a graph is called deep here: launches decide.
DEEP = 100
DENSE = 100 / 32  # percent of the vertices, from which a hybrid goes bottom-up
# How bfs_4k's steps are recorded: scripts/papers/levels.py
IS_ALONE = 0
FRONTIER = 3


def per_round(time: Time) -> float:
    """Return the microseconds of a level of a search, or of a round."""
    return 1e6 * time.median / max(time.rounds, 1.0)


def mean(values: Iterable[float]) -> str:
    return factor(geometric_mean(listed(values)))


def rounds_of(
    record: Record, graphs: Iterable[str], strategy: str, label="published", algorithm="bfs"
) -> dict[str, float]:
    """Return for each measured graph the microseconds per level or round of a strategy."""
    times = {graph: record.time(graph, strategy, label, algorithm=algorithm) for graph in graphs}
    return {graph: per_round(time) for graph, time in times.items() if time}


class Effects(NamedTuple):
    """For each graph the time of one setting divided by that of another, and whether that is beyond the spreads."""

    ratios: dict[str, float]
    helped: list[str]
    harmed: list[str]

    @property
    def rest(self) -> list[str]:
        return [graph for graph in self.ratios if graph not in self.helped]

    def pick(self, names: Iterable[str]) -> dict[str, float]:
        return {name: self.ratios[name] for name in names}


def effects(
    record: Record, strategy: str, before: str, after: str, algorithm="bfs", group="features"
) -> Effects:
    found = Effects({}, [], [])
    given = {"algorithm": algorithm, "group": group}
    for one in record.where(strategy=strategy, label=before, **given):
        other = record.time(one.graph, strategy, after, **given)
        if other:
            found.ratios[one.graph] = one.median / other.median
            if is_faster(other, one):
                found.helped.append(one.graph)
            elif is_faster(one, other):
                found.harmed.append(one.graph)
    return found


def counters(record: Record, strategy: str, label: str = "published") -> dict[str, dict]:
    """Return the entries of the counters of a strategy by graph."""
    return {
        each["graph"]: each
        for each in record.counters
        if (each["strategy"], each["label"]) == (strategy, label)
    }


def per_source(record: Record, strategy: str, counter: str) -> dict[str, float]:
    found = counters(record, strategy).items()
    return {graph: each["counters"][counter] / each["sources"] for graph, each in found}


def of_graphs(record: Record, names: Iterable[str], key: str) -> dict:
    """Return a statistic of some graphs."""
    return {name: record.graphs[name][key] for name in names}


# --- BFS-4K


def levels_in_paper(graphs: Iterable[str], place: int, also: int | None = None) -> list[float]:
    """Return the microseconds per level of a system in table 2 of BFS-4K: its time / the diameter.

    ``also``: only for originals for which this column has a time, too.
    """
    found = []
    for original in (BFS_4K[graph] for graph in graphs):
        times = said.BFS_4K_TABLE_2[original]
        diameter = said.ORIGINALS[original].diameter
        is_timed = times[place] and (also is None or times[also])
        if is_timed and diameter and diameter >= DEEP:
            found.append(1e3 * times[place] / diameter)
    return found


def of_depth(record: Record, rivals: tuple[str, ...], place: int) -> str:
    """Rivals beside BFS-4K on deep and on flat graphs, with the time of a level; ``place`` is the rival's column."""
    pairs = {}
    for graph in BFS_4K:
        ours = record.time(graph, "bfs_4k")
        theirs = fastest(record, graph, rivals)
        if ours and theirs:
            pairs[graph] = ours, theirs
    parts = []
    deep = [graph for graph, (ours, _) in pairs.items() if ours.rounds >= DEEP]
    flat = [graph for graph in pairs if graph not in deep]
    for graphs, where in ((deep, "deep"), (flat, "flat")):
        ratios = [pairs[graph][1].median / pairs[graph][0].median for graph in graphs]
        tables = [said.BFS_4K_TABLE_2[BFS_4K[graph]] for graph in graphs]
        in_paper = [times[place] / times[-1] for times in tables if times[place]]
        words = f"{mean(ratios)} on {len(graphs)} {where} graphs"
        parts.append(words + (f" (paper {mean(in_paper)})" if in_paper else ""))
    ours, theirs = (mean(per_round(pairs[graph][i]) for graph in deep) for i in (0, 1))
    text = (
        f"as published {', '.join(parts)}. Mean µs per level of the deep ones: BFS-4K {ours}, "
        f"its rival {theirs}"
    )
    in_paper = levels_in_paper(deep, place)
    if in_paper:
        text += (
            "; in the paper (time / diameter, where that is 100 or more) "
            f"{mean(levels_in_paper(deep, -1, place))} and {mean(in_paper)}"
        )
    return text


def fastest(record: Record, graph: str, names: Iterable[str], algorithm="bfs") -> Time | None:
    found = (record.time(graph, name, algorithm=algorithm) for name in names)
    return min(filter(None, found), key=lambda time: time.median, default=None)


def of_all_rivals(record: Record) -> str:
    """The two kinds of graphs on which BFS-4K is beaten: by a barrier on deep ones, by scans on flat ones."""
    ours = {graph: time for graph in BFS_4K if (time := record.time(graph, "bfs_4k"))}
    deep = [graph for graph, time in ours.items() if time.rounds >= DEEP]
    launched = record.where(label="layer 3 alone")
    scans = {}
    visits = {}
    for graph in ("kron-20", "internet-1M7"):
        scan = record.time(graph, "scan_edges")
        counted = record.counted(graph, "bfs_4k", "published")
        if scan and graph in ours and counted:
            scans[graph] = record.graphs[graph]["edges"] * scan.rounds / scan.median / 1e9
            looked_at = counted["counters"]["edges"] / counted["sources"]
            visits[graph] = looked_at / ours[graph].median / 1e9
    in_python = span(rounds_of(record, deep, "bfs_4k").values())
    barrier = span(rounds_of(record, deep, "queue_of_warps").values())
    per_launch = span(per_round(time) for time in launched if time.rounds >= DEEP)
    once = span(rounds_of(record, deep, "persistent", "library").values())
    return (
        "deep graphs: a launch per level and a read by the host, which is in Python. µs per level: "
        f"`bfs_4k` {in_python} (in the paper, by time / diameter, {span(levels_in_paper(deep, -1))}); "
        f"`queue_of_warps`, which has a barrier of all blocks, {barrier}, and {per_launch} with a "
        f"launch per level on roads and grids; `persistent`, a single launch, {once}. Flat graphs: "
        f"a scan of all edges reads them in order, {figures(scans)} billion per second; BFS-4K "
        f"looks at each edge about once, {figures(visits)} billion per second"
    )


def of_dynamic_widths(record: Record) -> str:
    shown = {}
    for each in record.levels:
        if each["label"] == "published":
            many = [step for step in each["steps"] if not step[IS_ALONE]]
            wide = sum(step[FRONTIER] >= RESIDENT for step in many)
            shown[each["graph"]] = f"{each['graph']} {wide} of {len(many)}"
    if not shown:
        raise NotMeasuredError
    return (
        f"as published (K4 = 1) edge-discover takes all frontiers below the {RESIDENT:,} threads "
        "of the device, so that virtual warps act in larger ones and in the single block. Launches "
        f"shown of many blocks with a larger one: {named(shown.values())}"
    )


def of_children(record: Record) -> str:
    counts = per_source(record, "bfs_4k", "children")
    words = f"children per search: {figures(counts)}; it helps where there are many"
    for graph in effects(record, "bfs_4k", "without children", "published").harmed:
        words += (
            f". It harms on {graph}, whose largest degree is {record.graphs[graph]['largest']:,}: "
            "hardly more than the 2,048 edges of a child's block (K3 x K6), for which a launch does "
            "not pay"
        )
    return words


def of_edge_discover(record: Record) -> str:
    found = effects(record, "bfs_4k", "without edge-discover", "published")
    alone = effects(record, "bfs_4k", "none", "only edge-discover").helped

    def uneven(names: Iterable[str]) -> str:
        graphs = {name: record.graphs[name] for name in names}
        return figures({name: each["deviation"] / each["mean"] for name, each in graphs.items()})

    others = [graph for graph in alone if graph not in found.helped]
    return (
        "it levels uneven degrees. Deviation / mean of the degrees where the set gains by it: "
        f"{uneven(found.helped)}; elsewhere: {uneven(found.rest)}. Alone it gains on {named(others)}, "
        "too, where within the set wide virtual warps and children do the same"
    )


def of_single_block(record: Record) -> str:
    launches = []
    for graph, each in counters(record, "bfs_4k").items():
        many = record.counted(graph, "bfs_4k", "edge-discover, hash64")
        if many:
            with_it = each["counters"]["single_block"] + each["counters"]["many_blocks"]
            before = factor(many["counters"]["many_blocks"] / many["sources"])
            launches.append(f"{graph} {before} to {factor(with_it / each['sources'])}")
    if not launches:
        raise NotMeasuredError
    return (
        "it saves launches, and only graphs of many levels have many. Launches per search, first "
        f"without and then with it: {named(launches)}"
    )


def shares(entries: Mapping[str, dict], part: str, whole: Iterable[str]) -> dict[str, float]:
    """Return a counter as a percentage of the sum of some, by graph."""
    return {
        graph: 100 * each["counters"][part] / sum(each["counters"][name] for name in whole)
        for graph, each in entries.items()
    }


def of_hash64(record: Record) -> str:
    found = shares(counters(record, "bfs_4k"), "duplicates", ["queued"])
    harmed = effects(record, "bfs_4k", "without Hash64", "published").harmed
    few = [graph for graph in found if found[graph] < 1]
    return (
        f"duplicates found, as a share of what is queued: {figures(found, ' %')}. It harms on "
        f"{named(harmed)}: where it finds next to none ({named(few)}) each vertex that is queued "
        "pays for the table in vain, and where it finds many, launches take most of the time"
    )


def of_growth(record: Record) -> str:
    left = {}
    for graph, each in counters(record, "bfs_4k", "width 1, keep").items():
        reached = each["reached"] - each["sources"]
        left[graph] = 100 * (each["counters"]["queued"] - reached) / reached
    return (
        "duplicates arise over many levels: each of them makes more. Duplicates of width 1 per "
        f"vertex reached: {figures(left, ' %')}; where they are few, chance decides which width "
        "has more"
    )


def of_culling(record: Record) -> str:
    culled = counters(record, "gather_expand_contract")
    tables = {
        graph: each["counters"]["by_history"] + each["counters"]["by_warp"]
        for graph, each in culled.items()
    }
    hashes = {
        graph: each["counters"]["duplicates"]
        for graph, each in counters(record, "bfs_4k", "edge-discover, hash64").items()
        if graph in tables
    }
    more = sum(hashes[graph] > tables[graph] for graph in hashes)
    of_hash, of_tables = (
        named(f"{graph} {count:,}" for graph, count in each.items())
        for each in ({graph: hashes[graph] for graph in tables if graph in hashes}, tables)
    )
    return (
        "before its tables, the culling reads a bitmask of the visited vertices that all blocks "
        f"share; it rejects {span(shares(culled, 'by_bits', ['inspected']).values())} % of what is "
        "inspected. Hash64 has one table per block and no such mask. Compared as tables alone, "
        f"Hash64 finds more on {more} of {len(hashes)} graphs (with edge-discover: {of_hash}; the "
        f"culling's tables: {of_tables})"
    )


# --- H-BF


def of_davidson(record: Record, graphs: tuple[str, ...], rivals: tuple[str, ...]) -> str:
    def without(feature: str) -> str:
        return span(
            effects(record, "h_bf", "published", f"without {feature}", "sssp").ratios.values()
        )

    ours, by_rule = (
        span(rounds_of(record, graphs, "h_bf", label, "sssp").values())
        for label in ("published", "rule")
    )
    best = (fastest(record, graph, rivals, "sssp") for graph in graphs)
    theirs = span(map(per_round, filter(None, best)))
    return (
        "as published, features cost more than they save here: without the warp workload the set "
        f"is {without('warp workload')} times as fast, without dynamic widths "
        f"{without('dynamic widths')}, without edge classes {without('edge classes')}. A round "
        f"takes H-BF {ours} µs as published and {by_rule} µs by the rule, which reads the "
        f"frontier's size every 32 rounds; the best rival {theirs} µs, with a read in each round"
    )


def of_lonestar(record: Record, graphs: tuple[str, ...]) -> str:
    theirs = rounds_of(record, graphs, "topology_thread", "published", "sssp")
    ratios = {}
    ours = {}
    for graph in theirs:
        time = record.time(graph, "h_bf", algorithm="sssp")
        rival = record.time(graph, "topology_thread", algorithm="sssp")
        if time and rival:
            ours[graph] = per_round(time)
            ratios[graph] = rival.rounds / time.rounds
    return (
        f"a round over all edges takes LoneStar {extremes(theirs)} µs. A round takes H-BF as "
        f"published {extremes(ours)} µs. LoneStar needs {span(ratios.values())} times as many "
        "rounds, because a round reads what it has itself stored"
    )


def enqueued_per_round(record: Record) -> dict[str, float]:
    found = counters(record, "h_bf").items()
    return {graph: each["counters"]["enqueued"] / each["rounds"] for graph, each in found}


def of_warp_workload(record: Record) -> str:
    found = effects(record, "h_bf", "without warp workload", "published", "sssp").ratios
    frontiers = enqueued_per_round(record)
    warps = {graph: frontiers[graph] / WARP for graph in found if graph in frontiers}
    parts = [
        f"{graph} {warps[graph]:,.0f} ({factor(found[graph])})"
        for graph in sorted(warps, key=warps.__getitem__)
    ]
    if not parts:
        raise NotMeasuredError
    return (
        "each virtual warp walks its 32 vertices one after the other. The fewer such warps a round "
        f"has, the more of the device idles: it holds {RESIDENT // WARP:,} warps (a GTX 780: "
        f"{RESIDENT_GTX_780 // WARP}). Virtual warps per round in the mean, and the effect within "
        f"the set: {named(parts)}"
    )


def of_table_3(record: Record) -> str:
    workload = of_warp_workload(record)
    overs = {}
    in_paper = {}
    for time in record.where(strategy="h_bf", label="none", group="systems"):
        cpu = record.time(time.graph, "fifo", algorithm="sssp", device="cpu", threads=1)
        if cpu:
            overs[time.graph] = cpu.median / time.median
            original = H_BF_NEGATIVE[time.graph][0]
            sequential, before, _ = said.H_BF_TABLE_3[original]
            in_paper[original] = sequential / before
    return (
        f"the set without features is {figures(overs)} times as fast as the sequential search, in "
        f"the paper {figures(in_paper)}. Warp workload: {workload}. "
        f"{'; '.join(of_edge_classes_on_table_3(record))}"
    )


def saved_by_classes(record: Record) -> dict[str, float]:
    """Return the percentage of the edges looked at that need no relaxation, by graph."""
    return shares(counters(record, "h_bf"), "skipped_edges", ("relaxations", "skipped_edges"))


def of_edge_classes_on_table_3(record: Record) -> Iterator[str]:
    """How much edge classes save on the graph on which table 3 measures them."""
    saved = saved_by_classes(record)
    for graph, (_, features) in H_BF_NEGATIVE.items():
        if "edge classes" in features and graph in saved:
            yield (
                f"Edge classes skip {factor(saved[graph])} % of the edges on {graph}, whose largest "
                f"degree of {record.graphs[graph]['largest']:,} they leave as it is"
            )


def of_edge_classes(record: Record) -> str:
    found = effects(record, "h_bf", "without edge classes", "published", "sssp").ratios
    saved = {graph: share for graph, share in saved_by_classes(record).items() if graph in found}
    entries = counters(record, "h_bf")
    counts = [entries[graph]["counters"] for graph in saved]
    direct = [100 * each["direct_writes"] / max(each["successful"], 1) for each in counts]
    return (
        f"edges skipped: {figures({graph: saved[graph] for graph in found if graph in saved}, ' %')}; "
        f"of the successful relaxations at most {factor(max(direct))} % are stored without an "
        "atomic. That is less than it costs to tell each edge's class"
    )


def of_atomic64(record: Record) -> str:
    found = effects(record, "h_bf", "without duplicate removal", "published", "sssp").ratios
    parts = []
    for graph, entry in counters(record, "h_bf").items():
        if graph in found:
            counts = entry["counters"]
            n_rounds = entry["rounds"] / entry["sources"]
            avoided = counts["duplicates_avoided"]
            share = factor(100 * avoided / (avoided + counts["enqueued"]))
            effect = factor(found[graph])
            parts.append((n_rounds, f"{graph} {n_rounds:,.0f}, {share} % ({effect})"))
    if not parts:
        raise NotMeasuredError
    return (
        "a duplicate makes more duplicates in each later round. So removing few pays over many "
        "rounds, and removing many need not pay over few. Rounds, duplicates avoided of what would "
        f"be queued, and the effect: {'; '.join(text for _, text in sorted(parts))}"
    )


def of_few(record: Record, strategy: str, feature: str, algorithm: str = "sssp") -> str:
    """An effect on few graphs."""
    found = effects(record, strategy, f"without {feature}", "published", algorithm)
    return (
        f"within the set it gains on {figures(found.pick(found.helped))}; elsewhere the difference "
        f"is {span(found.pick(found.rest).values())}, within the spreads, so that a smaller gain "
        "would not show"
    )


def of_shared_enqueue(record: Record) -> str:
    sizes = enqueued_per_round(record)
    found = effects(record, "h_bf", "none", "only shared enqueue", "sssp")
    within, rest = (
        figures({graph: sizes[graph] for graph in names if graph in sizes})
        for names in (found.helped, found.rest)
    )
    return (
        f"it pays where a round enqueues much: alone on {within} vertices per round, not on {rest}; "
        "within the set on all, as each lane finds more (warp workload)"
    )


def of_widths_h_bf(record: Record) -> str:
    swept = effects(record, "h_bf", "published", "min_width 16", "sssp", "knobs")
    found = effects(record, "h_bf", "none", "only dynamic widths", "sssp")
    gains, losses = (
        figures(of_graphs(record, names, "mean")) for names in (found.helped, found.harmed)
    )
    return (
        f"with at least 16 lanes in place of 4 the set is {figures(swept.ratios)} times as fast. "
        f"Alone, narrow warps gain at low mean degrees ({gains}) and lose at higher ones ({losses})"
    )


def of_children_h_bf(record: Record) -> str:
    launched = per_source(record, "h_bf", "child_launches")
    found = effects(record, "h_bf", "none", "only children", "sssp")
    some = {graph: value for graph, value in launched.items() if graph in found.ratios and value}
    words = f"children per search, among these graphs: {figures(some)}; the others have none"
    for graph in found.helped:
        if not launched.get(graph):
            words += (
                f". The {factor(found.ratios[graph])} alone on {graph}, which has none, cannot come "
                "from children: a base may be off by as much"
            )
    return words


def relaxed_per_edge(record: Record, label: str) -> dict[str, float]:
    """Return the relaxations of H-BF per edge out of a reached vertex, by graph."""
    return {
        graph: each["counters"]["relaxations"] / each["out_edges"]
        for graph, each in counters(record, "h_bf", label).items()
        if "relaxations" in each["counters"]
    }


def of_work(record: Record) -> str:
    multiples = relaxed_per_edge(record, "published")
    depths = of_graphs(record, multiples, "diameter")
    within = span(depths[graph] for graph, multiple in multiples.items() if multiple <= 10.0)
    beyond = span(depths[graph] for graph, multiple in multiples.items() if multiple > 10.0)
    return (
        "over long paths a distance falls many times, and each fall relaxes all edges behind it "
        f"again. Diameters where the multiple is at most 10: {within}; beyond: {beyond}"
    )


# --- Luo, Wong, Hwu


def of_cpu_per_edge(record: Record, graphs: tuple[str, ...], regular: tuple[str, ...]) -> str:
    """Nanoseconds per edge of the sequential search on scale-free and on regular graphs."""

    def per_edge(names: Iterable[str]) -> str:
        times = {name: record.time(name, "fifo", device="cpu", threads=1) for name in names}
        edges = of_graphs(record, (name for name, time in times.items() if time), "edges")
        return span(1e9 * times[name].median / edges[name] for name in edges)

    found = effects(record, "queue_of_warps", "without splitting", "published", group="layers")
    gained = figures(found.pick(graph for graph in graphs if graph in found.ratios))
    return (
        f"neighbors at random miss the caches of the CPU, which takes {per_edge(graphs)} ns per "
        f"edge, and {per_edge(regular)} on regular graphs. 1,000 edges of one vertex are few for "
        f"{RESIDENT:,} threads, once lists are split (without: {gained} times as long)"
    )


def of_scan_per_level(record: Record, graphs: tuple[str, ...]) -> str:
    """The time of a level of IIIT-BFS grows much less than the number of vertices that it looks at."""
    levels = rounds_of(record, graphs, "scan_flags")
    if len(levels) < 2:
        raise NotMeasuredError
    sizes = of_graphs(record, levels, "vertices")
    small = min(sizes, key=sizes.__getitem__)
    large = max(sizes, key=sizes.__getitem__)
    return (
        f"a level of IIIT-BFS looks at all vertices: {factor(levels[small])} µs on {small} "
        f"({sizes[small]:,} vertices), {factor(levels[large])} µs on {large} ({sizes[large]:,}). "
        f"{factor(sizes[large] / sizes[small])} times the vertices take "
        f"{factor(levels[large] / levels[small])} times the time: looking is cheap beside two "
        "launches and a read by the host"
    )


def of_few_levels(record: Record, graphs: tuple[str, ...]) -> str:
    """With few levels all vertices are looked at seldom, and both searches mostly visit edges."""

    def rates(strategy: str) -> str:
        edges = of_graphs(record, times[strategy], "edges")
        return figures(
            {graph: edges[graph] / times[strategy][graph].median / 1e9 for graph in edges}
        )

    times = {
        strategy: {graph: time for graph in graphs if (time := record.time(graph, strategy))}
        for strategy in ("scan_flags", "queue_of_warps")
    }
    levels = span(time.rounds for of_strategy in times.values() for time in of_strategy.values())
    return (
        f"IIIT-BFS looks at all vertices once per level, and there are only {levels} levels. Both "
        "searches mostly visit edges. Billions of edges per second: IIIT-BFS "
        f"{rates('scan_flags')}; UIUC-BFS {rates('queue_of_warps')}"
    )


def of_layer_1(record: Record) -> str:
    found = effects(record, "queue_of_warps", "without layer 1", "published", group="layers")
    return (
        "without it the barrier of the grid (layer 2) takes the small frontiers. Time without it / "
        f"with it: {figures(found.ratios)}"
    )


def of_layer_2(record: Record) -> str:
    levels = {time.graph: time.rounds for time in record.where(label="without layer 2")}
    return f"a launch per level counts where there are many levels: {figures(levels)}"


def of_warp_queues(record: Record) -> str:
    times = record.where(group="queues", label="published")
    return (
        "since Maxwell atomics in shared memory are done by hardware, and collisions cost little; "
        "with a queue per warp one thread sums the offsets, and each warp copies its own queue, "
        "however uneven they are. µs per level with a queue per block: "
        f"{figures({time.graph: per_round(time) for time in times})}"
    )


def of_splitting(record: Record) -> str:
    graphs = [time.graph for time in record.where(label="without splitting")]
    return (
        f"largest degrees: {figures(of_graphs(record, graphs, 'largest'))}. Lists of more than 7 "
        "edges are split; where there are next to none, a queue of parts costs and gives nothing"
    )


# --- Springer, and Sevilmis, Sivri, Aydin


def levels_of(record: Record, graph: str, names: Iterable[str]) -> str:
    """Return the time per level of some strategies on a graph."""
    times = (record.time(graph, name) for name in names)
    return figures({f"`{time.strategy}`": per_round(time) for time in times if time}, " µs")


def of_variants(record: Record, graph: str, names: Iterable[str], words: str) -> str:
    levels = levels_of(record, graph, names)
    text = f"time per level: {levels}; the largest degree is {record.graphs[graph]['largest']:,}"
    if words:
        return f"{text}: {words}"
    return text


def of_levels_of(record: Record, graph: str, names: Iterable[str], words: str) -> str:
    return f"time per level on {graph}: {levels_of(record, graph, names)}: {words}"


def of_threads(record: Record, graphs: tuple[str, ...], strategy: str) -> str:
    """Speedup of the most threads beside the vertices of a level."""
    parts = []
    for graph in graphs:
        found = record.where(graph=graph, strategy=strategy, device="cpu", algorithm="bfs")
        times = {time.threads: time for time in found}
        if 1 in times and len(times) > 1:
            per_level = record.graphs[graph]["vertices"] / times[1].rounds
            gain = factor(times[1].median / times[max(times)].median)
            parts.append(f"{graph} {per_level:,.0f} ({gain})")
    if not parts:
        raise NotMeasuredError
    return (
        "a level of few vertices cannot employ all threads, and they wait for each other after each "
        f"level. Vertices per level, and the speedup: {named(parts)}"
    )


def of_hybrids(
    record: Record, graphs: tuple[str, ...], push: str, pull: str, device: str = "cuda"
) -> str:
    """Where a hybrid wins, beside the share of the vertices in a level."""
    parts = []
    without = []
    given = {"device": device, "threads": int(device == "cpu")}
    for graph in graphs:
        one, other = (record.time(graph, name, **given) for name in (push, pull))
        if one and other:
            share = 100 / one.rounds
            parts.append(f"{graph} {factor(share)} % ({factor(one.median / other.median)})")
            if share < DENSE / 10 and is_faster(other, one):
                without.append(graph)
    if not parts:
        raise NotMeasuredError
    text = (
        f"it goes bottom-up in levels that hold 1/32 of the vertices ({factor(DENSE)} %), and "
        f"gains by it only there. Vertices per level in the mean, and the gain: {named(parts)}"
    )
    if without:
        text += (
            f". The gain on {named(without)} does not come from the direction: `{pull}` and "
            f"`{push}` are two programs"
        )
    return text


def of_bitset(record: Record, graphs: tuple[str, ...]) -> str:
    """What the frontier takes as integers and as bits, and where the difference is within the spread."""
    sizes = {}
    ties = []
    for integers in record.where(strategy="pull_integers"):
        given = {"device": "cpu", "threads": integers.threads}
        bits = record.time(integers.graph, "pull_bits", **given)
        if integers.graph in graphs and bits:
            sizes[integers.graph] = record.graphs[integers.graph]["vertices"]
            if not is_faster(bits, integers):
                ties.append(f"{integers.threads}")
    parts = [f"{graph} {4 * n:,} and {n // 8:,} bytes" for graph, n in sizes.items()]
    if not parts:
        raise NotMeasuredError
    return (
        f"the gain is within the spreads with so many threads: {named(ties)}. The frontier takes, "
        f"as integers and as bits: {named(parts)}"
    )
