"""The tables and plots of the pages of docs/published, from the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial

from pipelines.monitoring.svg import Plane, picture
from scripts.bench import svg_plots
from scripts.papers import claims, said
from scripts.papers.claims import row, threaded
from scripts.papers.experiments import (
    BFS_4K,
    H_BF,
    H_BF_NEGATIVE,
    LAYERED,
    MERRILL,
    SEVILMIS,
    SPRINGER,
    SPRINGER_VARIANTS,
    THREADS,
    UIUC_TABLES,
)
from scripts.papers.record import Record, Time, geometric_mean, is_faster
from scripts.papers.words import factor

Draw = Callable[[str, str], None]
Sections = Iterator[tuple[str, str]]

EXPLAINED = """Milliseconds per search, the median and the spread; `-`: not measured. The fastest of a graph is bold, if it
is so beyond the spreads. *search* names the best knob of those measured.
"""


def table(header: list[str], rows: Iterable[list[str]], of_numbers: bool = True) -> str:
    if of_numbers:
        edge = "|---|" + "--:|" * (len(header) - 1)
    else:
        edge = "|---|" + "---|" * (len(header) - 1)
    return (
        "\n".join(
            [
                "| " + " | ".join(header) + " |",
                edge,
                *("| " + " | ".join(row) + " |" for row in rows),
            ]
        )
        + "\n"
    )


def known(value: float | None) -> str:
    return "-" if value is None else f"{value:,g}"


def bars(counts: list[int] | None) -> str:
    """Return a picture of one line: vertices by classes of degrees, on a logarithmic scale."""
    if not counts:
        return "-"
    signs = " ▁▂▃▄▅▆▇█"
    most = len(str(max(counts)))
    return (
        "`"
        + "".join(
            signs[0 if not count else max(1, round(8 * len(str(count)) / most))] for count in counts
        )
        + "`"
    )


def milliseconds(time: Time | None) -> str:
    if time is None:
        return "-"
    value = 1e3 * time.median
    words = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    spread = "±?" if time.spread is None else f"±{100 * time.spread:.0f} %"
    few = "" if time.repeats >= 5 or time.spread is None else f", {time.repeats} repeats"
    return f"{words} {spread}{few}"


def stands_for() -> dict[str, list[str]]:
    """Return for each of our graphs the originals for which it stands."""
    found: dict[str, list[str]] = {}
    negative = {graph: original for graph, (original, _) in H_BF_NEGATIVE.items()}
    for listed in (
        claims.BFS_4K,
        claims.H_BF,
        negative,
        SPRINGER,
        *UIUC_TABLES.values(),
    ):
        for graph, original in listed.items():
            if original not in found.setdefault(graph, []):
                found[graph].append(original)
    return found


# --- systems -----------------------------------------------------------------------------------------------------------

System = tuple[str, str, str]  # name in the paper, strategy, device


def measured_graphs(record: Record, graphs: Iterable[str], algorithm: str) -> list[str]:
    with_times = {
        time.graph
        for time in record.where(lambda each: each.algorithm == algorithm and each.how != "feature")
    }
    return [graph for graph in graphs if graph in with_times]


def rows_of_system(
    record: Record, system: System, graphs: list[str], algorithm: str
) -> list[tuple[list[str], list[Time | None]]]:
    """Return the rows of a system: as published, and by a rule or a search where there is one."""
    name, strategy, device = system
    given = {"algorithm": algorithm, "device": device}
    found = []
    if device == "cpu":
        times = [record.time(graph, strategy, threads=1, **given) for graph in graphs]
        found.append(([name, f"`{strategy}`", "as published, one core"], times))
    else:
        found.append(
            (
                [name, f"`{strategy}`", "as published"],
                [record.time(graph, strategy, **given) for graph in graphs],
            )
        )
        if strategy in ("bfs_4k", "h_bf", "queue_of_warps"):
            found.append(
                (
                    [name, f"`{strategy}`", "by the rule"],
                    [record.time(graph, strategy, "rule", **given) for graph in graphs],
                )
            )
        elif record.where(
            lambda time: (
                (time.strategy, time.algorithm, time.group, time.how)
                == (strategy, algorithm, "systems", "search")
            )
        ):
            found.append(
                (
                    [name, f"`{strategy}`", "search"],
                    [record.best(graph, strategy, **given) for graph in graphs],
                )
            )
    return found


def systems_table(
    record: Record,
    systems: Iterable[System],
    graphs: dict[str, str],
    algorithm: str,
    draw: Draw,
    file: str,
) -> str:
    """Return a table of systems and graphs, with both rows of each system, and draw it."""
    shown = measured_graphs(record, graphs, algorithm)
    missing = [graph for graph in graphs if graph not in shown]
    names = [] if shown else ["No graph of this table is measured yet.\n"]
    if missing and shown:
        names = [f"Not measured yet: {', '.join(missing)}.\n"]
    found = [
        each for system in systems for each in rows_of_system(record, system, shown, algorithm)
    ]
    library = [record.time(graph, "persistent", "library", algorithm=algorithm) for graph in shown]
    found.append((["(in no paper)", "`persistent`", "the library's choice"], library))
    found = [each for each in found if any(each[1])]
    names += absent(record, found, shown, algorithm)
    rows = [["*stands for*", "", "", *(graphs[graph] for graph in shown)]]
    rows.append(
        [
            "*GPU*",
            "",
            "",
            *(record.machines.get((graph, algorithm, "cuda", "systems"), "-") for graph in shown),
        ]
    )
    for about, times in found:
        rows.append(
            [
                *about,
                *(cell(time, [others[i] for _, others in found]) for i, time in enumerate(times)),
            ]
        )
    if shown:
        points = {
            graph: {
                f"{about[1].strip('`')}, {about[2]}": 1e3 * time.median
                for about, times in found
                if (time := times[i])
            }
            for i, graph in enumerate(shown)
        }
        draw(file, svg_plots.dots("Time per search", "ms, median", points, reference=None))
        names.append(f"![Times](plots/{file})\n")
    return "\n".join(
        [
            EXPLAINED,
            table(["in the paper", "strategy", "knobs", *shown], rows) if shown else "",
            *names,
        ]
    )


def absent(record: Record, found: list, graphs: list[str], algorithm: str) -> list[str]:
    """Return a sentence on the times that a table lacks, with the reasons that the record has."""
    reasons: dict[str, list[str]] = {}
    for (_, strategy, knobs), times in found:
        if knobs == "search":
            continue
        name = strategy.strip("`")
        device, threads = ("cpu", 1) if knobs.endswith("one core") else ("cuda", 0)
        label = {"by the rule": "rule", "the library's choice": "library"}.get(knobs, "published")
        for graph, time in zip(graphs, times, strict=True):
            if time is None:
                key = (graph, algorithm, device, name, label, threads, "systems")
                reasons.setdefault(record.left.get(key, ""), []).append(f"{strategy} on {graph}")
    parts = [
        f"{', '.join(names)} ({why})"
        if why
        else f"not reached by the runs so far: {', '.join(names)}"
        for why, names in reasons.items()
    ]
    return [f"Left out: {'; '.join(parts)}.\n"] if parts else []


def cell(time: Time | None, column: list[Time | None]) -> str:
    if time is None:
        return "-"
    others = [other for other in column if other and other.key != time.key]
    words = milliseconds(time)
    words += f" ({time.label})" if time.how == "search" else ""
    return f"**{words}**" if others and all(is_faster(time, other) for other in others) else words


def ratio_rows(
    record: Record,
    graphs: dict[str, str],
    rivals: dict[str, tuple[str, ...]],
    ours: str,
    algorithm: str,
    paper: Callable[[str, int], float | None],
) -> str:
    """Return the rivals' times divided by ours: of the paper, as published, and by the rule; 1 and less is against ours."""
    shown = measured_graphs(record, graphs, algorithm)
    rows = []
    for graph in shown:
        for mode, words in (
            ("paper", "paper"),
            ("published", "as published"),
            ("rule", "by the rule"),
        ):
            cells = []
            for i, strategies in enumerate(rivals.values()):
                if mode == "paper":
                    value = paper(graphs[graph], i)
                else:
                    value = ratio(record, graph, strategies, ours, mode, algorithm)
                cells.append("-" if value is None else factor(value))
            about = [graph, graphs[graph]] if mode == "paper" else ["", ""]
            rows.append([*about, words, *cells])
    for mode in ("published", "rule"):
        means = []
        for strategies in rivals.values():
            values = [
                value
                for graph in shown
                if (value := ratio(record, graph, strategies, ours, mode, algorithm))
            ]
            means.append(f"**{factor(geometric_mean(values))}** ({len(values)})" if values else "-")
        rows.append(
            [
                "geometric mean (graphs)",
                "",
                "as published" if mode == "published" else "by the rule",
                *means,
            ]
        )
    return table(["graph", "stands for", "", *rivals], rows)


def ratio(
    record: Record, graph: str, strategies: tuple[str, ...], ours: str, mode: str, algorithm: str
) -> float | None:
    mine = row(record, graph, ours, mode, algorithm)
    if strategies[0] in ("fifo", "heap"):
        theirs = row(record, graph, strategies[0], mode, algorithm, "cpu")
    else:
        theirs = claims.best_of(record, graph, strategies, mode, algorithm)
    return theirs.median / mine.median if mine and theirs else None


# --- features, knobs, counters -------------------------------------------------------------------------------------------


def feature_tables(record: Record, strategy: str, algorithm: str) -> str:
    """Return what each feature does alone, and what the published set loses without it."""
    of_group = record.where(
        lambda time: (
            (time.strategy, time.algorithm, time.group) == (strategy, algorithm, "features")
        )
    )
    of_strategy = [time for time in of_group if time.how == "feature"]
    graphs = [graph for graph in record.graphs if any(time.graph == graph for time in of_strategy)]
    if not graphs:
        return "Not measured yet.\n"
    labels = list(dict.fromkeys(time.label for time in of_strategy))
    parts = []
    groups = (
        (
            "only ",
            "none",
            "Each feature alone, over none: the time of none divided by that of the setting.",
        ),
        (
            "without ",
            "published",
            "The published set without one feature: the time of the set divided by that of the setting. "
            "Above 1, the feature costs more than it saves.",
        ),
        ("", "published", "Another way for one feature, the others as published: as above."),
    )
    for prefix, base, words in groups:
        chosen = [
            label
            for label in labels
            if label.startswith(prefix)
            and label != "none"
            and not (
                not prefix and label.startswith(("only ", "without ", "width ", "edge-discover,"))
            )
        ]
        extra = ["published", "rule"] if prefix == "only " else []
        rows = []
        for graph in graphs:
            given = {"algorithm": algorithm, "group": "features"}
            before = record.time(graph, strategy, base, **given)
            if before:
                times = [
                    record.time(graph, strategy, label, **given) for label in (*chosen, *extra)
                ]
                rows.append(
                    [graph, milliseconds(before), *(compared(before, time) for time in times)]
                )
        if rows and chosen:
            parts += [
                words + " *=*: no difference beyond the spread.\n",
                table(
                    ["graph", base, *(label.removeprefix(prefix) for label in (*chosen, *extra))],
                    rows,
                ),
            ]
    return "\n".join(parts)


def compared(before: Time, time: Time | None) -> str:
    """Return how many times as fast a setting is as another; whether that is beyond the spread is in the sign."""
    if time is None:
        return "-"
    words = factor(before.median / time.median)
    return (
        f"**{words}**"
        if is_faster(time, before)
        else words
        if is_faster(before, time)
        else f"{words} ="
    )


def sweep_table(record: Record, strategy: str, algorithm: str) -> str:
    """Return the time of each value of a knob, relative to the published set."""
    swept = record.where(
        lambda time: (time.strategy, time.algorithm, time.group) == (strategy, algorithm, "knobs")
    )
    swept = [time for time in swept if time.how == "search"]
    knobs = list(dict.fromkeys(time.label.rpartition(" ")[0] for time in swept))
    parts = []
    for knob in knobs:
        labels = sorted(
            {time.label for time in swept if time.label.rpartition(" ")[0] == knob},
            key=lambda label: float(label.rpartition(" ")[2]) if label[-1].isdigit() else 0.0,
        )
        rows = []
        for graph in dict.fromkeys(time.graph for time in swept if time.label in labels):
            given = {"algorithm": algorithm, "group": "knobs"}
            base = record.time(graph, strategy, **given)
            if base:
                times = [record.time(graph, strategy, label, **given) for label in labels]
                rows.append([graph, milliseconds(base), *(compared(base, time) for time in times)])
        if rows:
            parts += [
                f"`{knob}`, the others as published: the published set's time divided by the setting's.\n",
                table(["graph", "published", *labels], rows),
            ]
    return "\n".join(parts) or "Not measured yet.\n"


def counter_table(record: Record, strategy: str) -> str:
    """Return the counters, summed over the sources of a row."""
    entries = [each for each in record.counters if each["strategy"] == strategy]
    if not entries:
        return "Not measured yet.\n"
    names = list(dict.fromkeys(name for each in entries for name in each["counters"]))
    rows = []
    for each in entries:
        counts = [
            f"{each['counters'][name]:,}" if name in each["counters"] else "-" for name in names
        ]
        queued = each["counters"].get("queued")
        left = "-" if queued is None else f"{queued - (each['reached'] - each['sources']):,}"
        looked_at = next(
            (
                each["counters"][name]
                for name in ("relaxations", "edges")
                if name in each["counters"]
            ),
            None,
        )
        share = "-" if looked_at is None else factor(looked_at / each["out_edges"])
        rows.append(
            [
                each["graph"],
                each["label"],
                str(each["sources"]),
                *counts,
                left,
                f"{each['reached']:,}",
                share,
            ]
        )
    return table(
        ["graph", "setting", "sources", *names, "left", "reached", "edges / those out of reached"],
        rows,
    )


# --- BFS-4K ------------------------------------------------------------------------------------------------------------

_BFS_SYSTEMS: tuple[System, ...] = (
    ("sequential", "fifo", "cpu"),
    ("Harish", "scan_flags", "cuda"),
    ("Edge Parall.", "scan_edges", "cuda"),
    ("Static Virtual Warp", "scan_virtual_warp", "cuda"),
    ("Luo", "queue_of_warps", "cuda"),
    *(("Garland (Merrill)", name, "cuda") for name in MERRILL),
    ("sparse matrices", "sparse_product", "cuda"),
    ("BFS-4K", "bfs_4k", "cuda"),
)
FIGURE_1 = """| | Harish | virtual warps | edge parallelism | Luo | Garland | BFS-4K |
|---|---|---|---|---|---|---|
| strategy here | `scan_flags` | `scan_virtual_warp` | `scan_edges` | `queue_of_warps` | `gather_*` | `bfs_4k` |
| work, paper | O(VD + E) | O(VD + E) | O(ED) | O(V + E) | O(V + E) | O(V + E) |
| space, paper | 3V + E | 2V + E | 2E | - | 4V + 2E at least | 4V + E at least |
| parallel over, paper | vertices | virtual warps | edges | vertices | vertices, edges | vertices, edges, both dynamically |
| high degrees, paper | no | yes | indifferent | no | yes | yes |
| high degrees, here | no | lanes per vertex | indifferent | split | by lane, warp, block | children or blocks |
| duplicates, paper | no | no | no | no | detected | detected |
| duplicates, here | none: flags | none: levels | none: levels | none: compare-and-swap | culling | Hash64 |
| synchronization, paper | host | host | host | host, blocks, threads | host, blocks | host, blocks, threads |
| synchronization, here | host | host | host | host, blocks, threads | host | host, threads |
"""


def levels_section(record: Record, draw: Draw) -> str:
    """Return the growth of the frontier per graph: vertices, queued and duplicates, and the kernel that ran."""
    if not record.levels:
        return (
            "Not measured yet: `python -m scripts.papers bfs-4k --part levels` records them. "
            "`python -m examples.levels FILE --strategies bfs_4k` draws those of a file.\n"
        )
    parts = [
        "Circles: the single block; triangles: many blocks, a launch per level. "
        "`python -m examples.levels FILE --strategies bfs_4k` draws the levels of any graph.\n"
    ]
    for graph in dict.fromkeys(each["graph"] for each in record.levels):
        found = [each for each in record.levels if each["graph"] == graph]
        file = f"levels-{graph}.svg"
        draw(file, level_plot(graph, found))
        parts.append(f"![Frontier of {graph}](plots/{file})\n")
        rows = []
        for each in found:
            steps = each["steps"]
            sums = [sum(step[i] for step in steps) for i in (4, 5, 6)]
            alone = sum(bool(step[0]) for step in steps)
            shown = "" if each["n_steps"] == len(steps) else f" (of {each['n_steps']})"
            rows.append(
                [
                    each["label"],
                    f"{len(steps)}{shown}",
                    str(alone),
                    *(f"{value:,}" for value in sums),
                ]
            )
        parts.append(
            table(
                [
                    "setting",
                    "launches shown",
                    "of the single block",
                    "queued",
                    "duplicates",
                    "conflicts",
                ],
                rows,
            )
        )
    return "\n".join(parts)


def rule_table(record: Record, graphs: list[str]) -> str:
    """Return the knobs of BFS-4K's rule for the degrees of each graph, where they are not as published."""
    from kepler_traverse.published.bfs.bfs_4k import rule
    from kepler_traverse.published.bfs.params import Bfs4kKnobs

    usual = asdict(Bfs4kKnobs())
    rows = []
    for graph in graphs:
        degrees = [record.graphs[graph][name] for name in ("mean", "deviation", "largest")]
        chosen = asdict(rule(*degrees))
        changed = ", ".join(
            f"{name} = {value}" for name, value in chosen.items() if value != usual[name]
        )
        rows.append([graph, *(f"{value:,g}" for value in degrees), changed or "as published"])
    return table(
        ["graph", "mean degree", "deviation", "largest", "knobs that are not as published"], rows
    )


def duplicate_times(record: Record) -> str:
    times = record.where(lambda time: time.group == "duplicates")
    labels = list(dict.fromkeys(time.label for time in times))
    graphs = dict.fromkeys(time.graph for time in times)
    rows = [
        [
            graph,
            *(
                milliseconds(record.time(graph, "bfs_4k", label, group="duplicates"))
                for label in labels
            ),
        ]
        for graph in graphs
    ]
    return table(["graph", *labels], rows) if rows else "Not measured yet.\n"


def level_plot(graph: str, found: list[dict]) -> str:
    """Plot vertices per level, and what each setting queued for the next."""
    colours = {each["label"]: svg_plots.look_of(i + 1)[0] for i, each in enumerate(found)}
    last = max([level for level, _ in found[0]["vertices"]] + [1])
    most = max(
        [n for _, n in found[0]["vertices"]] + [step[4] for each in found for step in each["steps"]]
    )
    legend = [("vertices", svg_plots.look_of(0)[0]), *colours.items()]
    title = f"{graph}: vertices per level, and vertices queued"
    plane = Plane(title, (0, last), (1, 2 * most), svg_plots.WIDTH, 340, legend=legend, log="y")
    plane.x_axis("level", whole=True)
    plane.y_axis("vertices")
    plane.line([(level, max(n, 1)) for level, n in found[0]["vertices"]], svg_plots.look_of(0)[0])
    for each in found:
        for is_alone, level, n_levels, _, queued, *_ in each["steps"]:
            plane.mark(
                min(level + n_levels, last),
                max(queued, 1),
                colours[each["label"]],
                "circle" if is_alone else "triangle",
            )
    return picture(plane, file=True)


def bfs_4k(record: Record, draw: Draw) -> Sections:
    yield "Figure 1: the systems", FIGURE_1
    graphs = claims.BFS_4K
    yield (
        "Table 2: times",
        systems_table(record, _BFS_SYSTEMS, graphs, "bfs", draw, "systems-bfs-4k.svg"),
    )
    rivals = {"sequential": ("fifo",), **claims.STRATEGY_OF}

    def paper(original: str, rival: int) -> float | None:
        times = said.BFS_4K_TABLE_2.get(original)
        return times[rival - 1] / times[-1] if rival and times and times[rival - 1] else None

    yield (
        "Figure 15: the others' times divided by BFS-4K's",
        ratio_rows(record, graphs, rivals, "bfs_4k", "bfs", paper),
    )
    yield "Figure 14: features", feature_tables(record, "bfs_4k", "bfs")
    yield "What the rule chooses", rule_table(record, measured_graphs(record, graphs, "bfs"))
    yield "Knobs", sweep_table(record, "bfs_4k", "bfs")
    yield "Figures 7, 10, 12 and 13a: levels and duplicates", levels_section(record, draw)
    yield "Duplicates counted", counter_table(record, "bfs_4k")
    yield "Times with and without Hash64, a launch per level", duplicate_times(record)
    yield (
        "Figure 13b: the culling of Merrill et al.",
        counter_table(record, "gather_expand_contract"),
    )


# --- H-BF --------------------------------------------------------------------------------------------------------------

_SSSP_SYSTEMS: tuple[System, ...] = (
    ("Bellman-Ford Queue-Based Seq.", "fifo", "cpu"),
    ("Boost Dijkstra Seq.", "heap", "cpu"),
    ("LoneStar", "topology_thread", "cuda"),
    ("WorkFront Sweep", "work_front", "cuda"),
    ("Near-Far Pile", "near_far_piles", "cuda"),
    ("Bucketing", "buckets", "cuda"),
    ("Harish", "mask_thread", "cuda"),
    ("delta-stepping", "delta_stepping", "cuda"),
    ("Martin, Ortega-Arranz", "threshold_front", "cuda"),
    ("H-BF", "h_bf", "cuda"),
)


def mteps(record: Record) -> str:
    """Return millions of traversed edges per second: stored edges divided by the time, as in the paper."""
    shown = measured_graphs(record, claims.H_BF, "sssp")
    rows = []
    for graph in shown:
        edges = record.graphs[graph]["edges"]
        cells = []
        for _, strategy, device in (*_SSSP_SYSTEMS[:6], _SSSP_SYSTEMS[-1]):
            times = [
                row(record, graph, strategy, mode, "sssp", device) for mode in ("published", "rule")
            ]
            values = [known_rate(edges, time) for time in (times[:1] if device == "cpu" else times)]
            cells.append(" / ".join(values))
        original = claims.H_BF[graph]
        rows.append([graph, original, known(said.H_BF_MTEPS.get(original)), *cells])
    header = [
        "graph",
        "stands for",
        "H-BF in the paper",
        *(name for name, _, _ in _SSSP_SYSTEMS[:6]),
        "H-BF",
    ]
    words = "On a GPU: as published / by a rule or a search.\n"
    return f"{words}\n{table(header, rows)}" if rows else "Not measured yet.\n"


def known_rate(edges: int, time: Time | None) -> str:
    return "-" if time is None else factor(edges / time.median / 1e6)


def table_3(record: Record) -> str:
    rows, missing = [], []
    for graph, (original, features) in H_BF_NEGATIVE.items():
        sequential, before, after = said.H_BF_TABLE_3[original]
        given = {"algorithm": "sssp"}
        cpu = record.time(graph, "fifo", device="cpu", threads=1, **given)
        if cpu is None:
            missing.append(graph)
        labels = ("none", "only " + " and ".join(features), "published", "rule")
        times = [record.time(graph, "h_bf", label, **given) for label in labels]
        paper = f"{factor(sequential / before)}, then {factor(sequential / after)}"
        ours = ", ".join(
            factor(cpu.median / time.median) if cpu and time else "-" for time in times
        )
        rows.append(
            [
                graph,
                original,
                " and ".join(features),
                paper,
                milliseconds(cpu),
                *map(milliseconds, times),
                ours,
            ]
        )
    header = [
        "graph",
        "stands for",
        "optimization",
        "paper: over sequential without and with it",
        "sequential",
        "none",
        "with it",
        "as published",
        "by the rule",
        "over sequential: none, with it, published, rule",
    ]
    text = table(header, rows)
    found = [(["", "`fifo`", "as published, one core"], [None] * len(missing))]
    return "\n".join([text, *absent(record, found, missing, "sssp")])


def relaxed(counted: dict | None, dijkstra: float) -> str:
    """Return the relaxations per search, and in brackets as a multiple of Dijkstra's."""
    if counted is None:
        return "-"
    total = counted["counters"]["relaxations"]
    if total < 0:
        return "too many to count"
    per_search = total / counted["sources"]
    return f"{per_search:,.0f} ({factor(per_search / dijkstra)})"


def figure_9(record: Record) -> str:
    """Return the relaxations of four algorithms per search."""
    rows = []
    for graph in record.graphs:
        ours = [record.counted(graph, "h_bf", mode, "sssp") for mode in ("published", "rule")]
        if None in ours:
            continue
        others = [
            record.counted(graph, "bellman_ford", label, "sssp")
            for label in ("with a queue", "without a queue")
        ]
        dijkstra = ours[0]["out_edges"] / ours[0]["sources"]
        n_sources = dict.fromkeys(str(each["sources"]) for each in (*ours, *others) if each)
        cells = [relaxed(each, dijkstra) for each in (*others, *ours)]
        rows.append([graph, " and ".join(n_sources), f"{dijkstra:,.0f}", *cells])
    header = [
        "graph",
        "sources",
        "Dijkstra",
        "Bellman-Ford with a queue",
        "without a queue",
        "H-BF as published",
        "H-BF by the rule",
    ]
    words = (
        "Relaxations per search; in brackets as multiples of Dijkstra's, which relaxes each edge once. Where there are two "
        "numbers of sources, the first is of H-BF; Bellman-Ford has the first ones of the same. *-*: not counted; "
        "`python -m scripts.papers h-bf --part counters --device cpu` does it, without a GPU.\n"
    )
    return f"{words}\n{table(header, rows)}" if rows else "Not measured yet.\n"


def h_bf(record: Record, draw: Draw) -> Sections:
    graphs = claims.H_BF
    yield (
        "Table 2: times",
        systems_table(record, _SSSP_SYSTEMS, graphs, "sssp", draw, "systems-h-bf.svg"),
    )
    yield "Table 2: millions of traversed edges per second", mteps(record)
    rivals = {
        "sequential with a queue": ("fifo",),
        "Dijkstra": ("heap",),
        "LoneStar": ("topology_thread",),
        "the best of Davidson et al.": claims.DAVIDSON,
    }

    def paper(original: str, rival: int) -> float | None:
        times = said.H_BF_TABLE_2.get(original)
        return times[rival] / times[-1] if times else None

    yield (
        "Figure 8: the others' times divided by H-BF's",
        ratio_rows(record, graphs, rivals, "h_bf", "sssp", paper),
    )
    yield "Table 3: graphs with negative weights", table_3(record)
    yield "Figure 9: relaxations", figure_9(record)
    yield "Features", feature_tables(record, "h_bf", "sssp")
    yield "Knobs", sweep_table(record, "h_bf", "sssp")
    yield "Counters", counter_table(record, "h_bf")


# --- the other papers ----------------------------------------------------------------------------------------------------

_UIUC_SYSTEMS: tuple[System, ...] = (
    ("CPU-BFS", "fifo", "cpu"),
    ("IIIT-BFS", "scan_flags", "cuda"),
    ("UIUC-BFS", "queue_of_warps", "cuda"),
)


def uiuc(record: Record, draw: Draw) -> Sections:
    for i, (title, graphs) in enumerate(UIUC_TABLES.items(), 1):
        named = {graph: graph if name == graph else name for graph, name in graphs.items()}
        yield (
            title,
            systems_table(record, _UIUC_SYSTEMS, named, "bfs", draw, f"systems-uiuc-{i}.svg"),
        )
        shown = measured_graphs(record, graphs, "bfs")
        rows = []
        for graph in shown:
            paper = said.UIUC.get(graph)
            for system, strategy, device, place in (
                ("CPU-BFS", "fifo", "cpu", 1),
                ("IIIT-BFS", "scan_flags", "cuda", 0),
            ):
                cells = ["-" if not paper else factor(paper[place] / paper[2])]
                for mode in ("published", "rule"):
                    mine, theirs = (
                        row(record, graph, "queue_of_warps", mode),
                        row(record, graph, strategy, mode, device=device),
                    )
                    cells.append(factor(theirs.median / mine.median) if mine and theirs else "-")
                rows.append([graph, system, *cells])
        yield (
            f"{title.partition(':')[0]}: the others' times divided by UIUC-BFS's",
            table(["graph", "system", "paper", "as published", "by the rule"], rows)
            if rows
            else "Not measured yet.\n",
        )
    yield "Layers, thresholds and splitting", parts_of_uiuc(record)
    yield "Queues of a block and of its warps", block_queues(record)


def parts_of_uiuc(record: Record) -> str:
    times = record.where(lambda time: time.group == "layers")
    labels = [
        label
        for label in dict.fromkeys(time.label for time in times)
        if label not in ("published", "rule")
    ]
    rows = []
    for graph in dict.fromkeys(time.graph for time in times):
        base = record.time(graph, "queue_of_warps", group="layers")
        if base:
            found = [
                record.time(graph, "queue_of_warps", label, group="layers")
                for label in ("rule", *labels)
            ]
            rows.append([graph, milliseconds(base), *(compared(base, time) for time in found)])
    words = (
        "The published set's time divided by the setting's. *=*: no difference beyond the spread.\n"
    )
    return (
        f"{words}\n{table(['graph', 'as published', 'by the rule', *labels], rows)}"
        if rows
        else "Not measured yet.\n"
    )


def block_queues(record: Record) -> str:
    rows = []
    for time in record.where(lambda each: (each.group, each.label) == ("queues", "published")):
        warps = record.time(time.graph, "queue_of_blocks", "queues warp", group="queues")
        rows.append(
            [
                time.graph,
                milliseconds(time),
                milliseconds(warps),
                "-" if warps is None else compared(time, warps),
            ]
        )
    return (
        table(["graph", "queue per block", "queue per warp", "ratio"], rows)
        if rows
        else "Not measured yet.\n"
    )


def springer(record: Record, draw: Draw) -> Sections:
    systems: tuple[System, ...] = (
        ("sequential", "fifo", "cpu"),
        *((alias(name), name, "cuda") for name in SPRINGER_VARIANTS),
    )
    yield (
        "Figure 7: all variants",
        systems_table(record, systems, SPRINGER, "bfs", draw, "systems-springer.svg"),
    )
    yield "Figure 8: shapes of the grid", shapes(record)


def alias(strategy: str) -> str:
    from kepler_traverse.published import BFS

    names = [
        name
        for each in BFS
        if each.name == strategy
        for name in each.aliases
        if name.startswith("springer")
    ]
    return names[0].removeprefix("springer-") if names else "-"


def shapes(record: Record) -> str:
    """Return the times by threads per block and blocks per grid; grid 0: a thread per vertex or edge."""
    times = record.where(lambda time: time.group == "shapes")
    parts = []
    for graph, strategy in dict.fromkeys((time.graph, time.strategy) for time in times):
        found = {
            time.label: time for time in times if (time.graph, time.strategy) == (graph, strategy)
        }
        if "published" in found:
            found["block 256, grid 0"] = found.pop("published")
        places = [[int(word.rpartition(" ")[2]) for word in label.split(", ")] for label in found]
        blocks, grids = (sorted({place[i] for place in places}) for i in (0, 1))
        rows = [
            [
                str(block),
                *(milliseconds(found.get(f"block {block}, grid {grid}")) for grid in grids),
            ]
            for block in blocks
        ]
        parts += [
            f"`{strategy}` on {graph}:\n",
            table(["threads per block \\ blocks", *map(str, grids)], rows),
        ]
    return "\n".join(parts) or "Not measured yet.\n"


_SEVILMIS_SYSTEMS: tuple[System, ...] = (
    ("sequential", "fifo", "cpu"),
    *zip(
        ("layers, top-down", "layers, hybrid", "frontiers, top-down", "frontiers, hybrid"),
        LAYERED,
        ("cuda",) * 4,
        strict=True,
    ),
)


def thread_table(record: Record) -> str:
    rows = []
    for graph in measured_graphs(record, SEVILMIS, "bfs"):
        original = SEVILMIS[graph]
        for place, threads in enumerate(THREADS):
            cells = []
            for i, strategy in enumerate(("buffers", "switch")):
                one, time = (
                    threaded(record, graph, strategy, 1),
                    threaded(record, graph, strategy, threads),
                )
                paper = said.SEVILMIS_1[original][i]
                speedup = one.median / time.median if one and time else None
                cells += [
                    milliseconds(time),
                    "-" if speedup is None else f"{speedup:.2f}",
                    f"{paper[0] / paper[place]:.2f}",
                ]
                cells.append("-" if speedup is None else f"{speedup / threads:.2f}")
            if any(
                threaded(record, graph, strategy, threads) for strategy in ("buffers", "switch")
            ):
                rows.append([graph, original, str(threads), *cells])
    header = [
        "graph",
        "stands for",
        "threads",
        *(
            f"{what} {word}"
            for what in ("top-down", "hybrid")
            for word in ("time", "speedup", "speedup in the paper", "efficiency")
        ),
    ]
    return table(header, rows) if rows else "Not measured yet.\n"


def bottom_up_table(record: Record) -> str:
    """Return the times of bottom-up searches on a CPU: with integers, and with bits."""
    rows = []
    for graph in SEVILMIS:
        for threads in THREADS:
            integers = threaded(record, graph, "pull_integers", threads)
            bits = threaded(record, graph, "pull_bits", threads)
            if integers and bits:
                cells = [milliseconds(integers), milliseconds(bits), compared(integers, bits)]
                rows.append([graph, str(threads), *cells])
    slow: dict[str, list[str]] = {}
    for key, why in sorted(record.left.items()):
        if key[3] == "pull_integers" and key[0] in SEVILMIS:
            slow.setdefault(key[0], []).append(f"{key[5]}: {why}")
    left = "".join(
        f"Left out, by threads: {graph} ({'; '.join(listed)}).\n" for graph, listed in slow.items()
    )
    header = ["graph", "threads", "integers", "bits", "ratio"]
    return f"{table(header, rows)}\n{left}" if rows else "Not measured yet.\n"


def figure_7(record: Record) -> str:
    """Return the speedups of the CPU and of the GPU over the own serial version, side by side."""
    rows = []
    for graph in measured_graphs(record, SEVILMIS, "bfs"):
        original = SEVILMIS[graph]
        cells, paper = [], []
        for i, (serial, on_gpu) in enumerate((("buffers", (0, 2)), ("switch", (1, 3)))):
            one = threaded(record, graph, serial, 1)
            times = [threaded(record, graph, serial, threads) for threads in THREADS]
            most = next((time for time in reversed(times) if time), None)
            serial_paper = said.SEVILMIS_1[original][i]
            cells.append(
                f"{factor(one.median / most.median)} ({most.threads})" if one and most else "-"
            )
            paper.append(factor(serial_paper[0] / serial_paper[-1]))
            for place in on_gpu:
                time = record.time(graph, LAYERED[place])
                cells.append(factor(one.median / time.median) if one and time else "-")
                paper.append(factor(serial_paper[0] / said.SEVILMIS_23[original][place]))
        rows += [[graph, original, "here", *cells], ["", "", "paper", *paper]]
    header = [
        "graph",
        "stands for",
        "",
        "top-down, CPU (threads)",
        "by layers",
        "by frontiers",
        "hybrid, CPU (threads)",
        "by layers",
        "by frontiers",
    ]
    return table(header, rows) if rows else "Not measured yet.\n"


def sevilmis(record: Record, draw: Draw) -> Sections:
    yield "Table 1: threads of a CPU", thread_table(record)
    yield (
        "Tables 2 and 3: GPU",
        systems_table(record, _SEVILMIS_SYSTEMS, SEVILMIS, "bfs", draw, "systems-sevilmis.svg"),
    )
    yield "Figure 7: CPU beside GPU, over the own serial version", figure_7(record)
    yield "Bottom-up on a CPU: integers and bits (4.2.2)", bottom_up_table(record)


SECTIONS = {
    "bfs-4k": bfs_4k,
    "h-bf": h_bf,
    "uiuc-bfs": uiuc,
    "springer": springer,
    "sevilmis": sevilmis,
}

# --- every strategy ------------------------------------------------------------------------------------------------------

ALL = """# All strategies on all graphs

{generated}
Milliseconds per search: the median and the spread of each strategy with the knobs as published, of the library's choice, or
of the rule where it is the only one measured. [How it was measured](README.md#how-it-was-measured).
"""


def all_strategies(record: Record, generated: str) -> str:
    parts = [ALL.format(generated=generated)]
    for algorithm, title in (("bfs", "Breadth-first search"), ("sssp", "Shortest distances")):
        times = record.where(
            lambda time, algorithm=algorithm: time.algorithm == algorithm and time.how != "feature"
        )
        graphs = [graph for graph in record.graphs if any(time.graph == graph for time in times)]
        names = list(
            dict.fromkeys(
                (time.device, time.strategy, max(time.threads, 0))
                for time in times
                if time.threads in (0, 1)
            )
        )
        rows = []
        for device, strategy, threads in sorted(
            names, key=lambda each: (each[0] == "cpu", each[1])
        ):
            find = partial(
                _usual,
                record,
                strategy=strategy,
                algorithm=algorithm,
                device=device,
                threads=threads,
            )
            cells = [milliseconds(find(graph)) for graph in graphs]
            if any(words != "-" for words in cells):
                rows.append([f"`{strategy}`", device if not threads else "cpu, one core", *cells])
        parts += [f"## {title}\n", table(["strategy", "device", *graphs], rows)]
    return "\n".join(parts)


def _usual(
    record: Record, graph: str, strategy: str, algorithm: str, device: str, threads: int
) -> Time | None:
    given = {"algorithm": algorithm, "device": device, "threads": threads}
    for label in ("published", "library", "rule"):
        time = record.time(graph, strategy, label, **given)
        if time:
            return time
    peers = record.where(
        lambda time: (
            (time.graph, time.strategy, time.algorithm, time.device, time.how)
            == (graph, strategy, algorithm, device, "peer")
        )
    )
    return min(peers, key=lambda time: time.median, default=None)


GRAPHS_OF = {"bfs-4k": BFS_4K, "h-bf": H_BF, "springer": SPRINGER, "sevilmis": SEVILMIS}
