"""What the tables of docs/published are made of, from the record; scripts/templates/published has the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import geometric_mean
from typing import Any, NamedTuple

from pipelines.monitoring.svg import Plane, Size, picture
from scripts.bench import svg_plots
from scripts.papers import claims
from scripts.papers.claims import RULED, row, system
from scripts.papers.experiments import (
    BFS_4K,
    BY_NAME,
    H_BF,
    H_BF_NEGATIVE,
    SPRINGER,
    SPRINGER_VARIANTS,
    SYSTEMS_OF,
    UIUC_TABLES,
)
from scripts.papers.record import Record, Time, is_faster
from scripts.papers.words import factor

System = tuple[str, str, str]  # name in the paper, strategy, device
BY_RULE = {"published": "as published", "rule": "by the rule"}


def alias(strategy: str) -> str:
    """Return the name of a variant in Springer's paper."""
    from kepler_traverse.published import BFS

    names = (name for each in BFS if each.name == strategy for name in each.aliases)
    return next((name[9:] for name in names if name.startswith("springer")), "-")


def systems_of(paper: str) -> tuple[System, ...]:
    """Return the systems of a paper in the order of its tables."""
    listed = tuple(
        (name, strategy, *(device or ["cuda"])) for name, strategy, *device in SYSTEMS_OF[paper]
    )
    variants = SPRINGER_VARIANTS if paper == "springer" else ()
    return (*listed, *((alias(name), name, "cuda") for name in variants))


SYSTEMS = {paper: systems_of(paper) for paper in SYSTEMS_OF}


def known(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,g}"


def bars(counts: list[int] | None) -> str:
    """Return a picture of one line: vertices by classes of degrees, on a logarithmic scale."""
    if not counts:
        return "-"
    signs = " ▁▂▃▄▅▆▇█"
    most = len(str(max(counts)))
    heights = (max(1, round(8 * len(str(count)) / most)) if count else 0 for count in counts)
    return f"`{''.join(signs[height] for height in heights)}`"


def milliseconds(time: Time | None) -> str:
    if not time:
        return "-"
    value = 1e3 * time.median
    words = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    spread = "±?" if time.spread is None else f"±{100 * time.spread:.0f} %"
    few = "" if time.repeats >= 5 or time.spread is None else f", {time.repeats} repeats"
    return f"{words} {spread}{few}"


def compared(before: Time, time: Time | None) -> str:
    """Return how many times as fast a setting is as another; whether that is beyond the spread is in the sign."""
    if not time:
        return "-"
    words = factor(before.median / time.median)
    if is_faster(time, before):
        return f"**{words}**"
    if is_faster(before, time):
        return words
    return f"{words} ="


def stands_for() -> dict[str, list[str]]:
    """Return for each of our graphs the originals for which it stands."""
    negative = {graph: original for graph, (original, _) in H_BF_NEGATIVE.items()}
    found = {}
    for listed in (BFS_4K, H_BF, negative, SPRINGER, *UIUC_TABLES.values()):
        for graph, original in listed.items():
            names = found.setdefault(graph, [])
            if original not in names:
                names += [original]
    return found


class Row(NamedTuple):
    """A row of a table of systems: what it is, and its times."""

    name: str
    strategy: str
    knobs: str
    times: list[Time | None]


class Shown(NamedTuple):
    """A table of systems: graphs that are shown, those that are not measured, rows, and what rows lack, by the reason."""

    graphs: list[str]
    missing: list[str]
    rows: list[Row]
    left: str

    def cells(self, row: Row) -> list[str]:
        columns = zip(*(each.times for each in self.rows), strict=True)
        return [cell(time, column) for time, column in zip(row.times, columns, strict=True)]


def cell(time: Time | None, column: Iterable[Time | None]) -> str:
    if not time:
        return "-"
    others = [other for other in column if other and other.key != time.key]
    words = milliseconds(time)
    if time.how == "search":
        words += f" ({time.label})"
    if others and all(is_faster(time, other) for other in others):
        return f"**{words}**"
    return words


class Tables:
    """The record, as templates ask it; ``plots`` has what they draw, by its file."""

    def __init__(self, record: Record):
        self.record = record
        self.plots = {}

    def measured(self, graphs: Iterable[str], algorithm: str) -> list[str]:
        """Return the graphs that have times of systems."""
        times = self.record.where(algorithm=algorithm)
        with_times = {time.graph for time in times if time.how != "feature"}
        return [graph for graph in graphs if graph in with_times]

    def systems(self, listed: Iterable[System], graphs: dict[str, str], algorithm: str) -> Shown:
        """Return a table of systems and graphs, with a row per way to choose the knobs of each."""
        shown = self.measured(graphs, algorithm)
        rows = [row for each in listed for row in self.rows_of(each, shown, algorithm)]
        library = self.times(shown, "persistent", "library", algorithm=algorithm)
        rows.append(Row("(in no paper)", "persistent", "the library's choice", library))
        rows = [row for row in rows if any(row.times)]
        missing = [graph for graph in graphs if graph not in shown]
        return Shown(shown, missing, rows, self.left(rows, shown, algorithm))

    def times(self, graphs: Iterable[str], *setting: str, **given: Any) -> list[Time | None]:
        return [self.record.time(graph, *setting, **given) for graph in graphs]

    def rows_of(self, system: System, graphs: list[str], algorithm: str) -> Iterable[Row]:
        """Yield the rows of a system: as published, and by a rule or a search where there is one."""
        name, strategy, device = system
        given = {"algorithm": algorithm, "device": device}
        one_core = {"threads": 1} if device == "cpu" else {}
        words = "as published, one core" if one_core else "as published"
        yield Row(name, strategy, words, self.times(graphs, strategy, **given, **one_core))
        if one_core:
            return
        if strategy in RULED:
            yield Row(name, strategy, "by the rule", self.times(graphs, strategy, "rule", **given))
        elif self.record.where(
            strategy=strategy, algorithm=algorithm, group="systems", how="search"
        ):
            best = [self.record.best(graph, strategy, **given) for graph in graphs]
            yield Row(name, strategy, "search", best)

    def left(self, rows: Iterable[Row], graphs: list[str], algorithm: str) -> str:
        """Return a sentence on the times that a table lacks, with the reasons that the record has."""
        labels = {"by the rule": "rule", "the library's choice": "library"}
        reasons = {}
        for each in rows:
            device = ("cpu", 1) if each.knobs.endswith("one core") else ("cuda", 0)
            label = labels.get(each.knobs, "published")
            for graph, time in zip(graphs, each.times, strict=True):
                if time is None and each.knobs != "search":
                    key = (graph, algorithm, device[0], each.strategy, label, device[1], "systems")
                    why = self.record.left.get(key, "")
                    reasons.setdefault(why, []).append(f"`{each.strategy}` on {graph}")
        parts = [
            f"{', '.join(names)} ({why})"
            if why
            else f"not reached by the runs so far: {', '.join(names)}"
            for why, names in reasons.items()
        ]
        if parts:
            return f"Left out: {'; '.join(parts)}."
        return ""

    def left_on(self, strategy: str, graphs: list[str]) -> str:
        """Return why a sequential search for shortest distances has no times on some graphs."""
        missing = [None] * len(graphs)
        row = Row("", strategy, "as published, one core", missing)
        return self.left([row], graphs, "sssp")

    def graphs(self) -> Iterable[tuple[str, dict]]:
        """Yield the measured graphs with their statistics, in the order of the works."""
        known = [name for name in BY_NAME if name in self.record.graphs]
        for name in known + sorted(set(self.record.graphs) - set(known)):
            yield name, self.record.graphs[name]

    def ratio(
        self, graph: str, rivals: tuple[str, ...], ours: str, mode: str, algorithm: str
    ) -> float | None:
        """Return the time of the best of some systems divided by ours."""
        mine = row(self.record, graph, ours, mode, algorithm)
        device = "cpu" if rivals[0] in ("fifo", "heap") else "cuda"
        theirs = system(*rivals, algorithm=algorithm, device=device)(self.record, graph, mode)
        if mine and theirs:
            return theirs.median / mine.median
        return None

    def mean_ratio(self, graphs: Iterable[str], *given: Any) -> str:
        values = [value for graph in graphs if (value := self.ratio(graph, *given))]
        if values:
            return f"**{factor(geometric_mean(values))}** ({len(values)})"
        return "-"

    def labels(self, strategy: str, algorithm: str, prefix: str) -> list[str]:
        """Return the settings of features that begin with a word; with none, the others."""
        times = self.record.where(strategy=strategy, algorithm=algorithm, group="features")
        found = dict.fromkeys(time.label for time in times if time.how == "feature")
        found.pop("none", None)
        if prefix:
            return [label for label in found if label.startswith(prefix)]
        others = ("only ", "without ", "width ", "edge-discover,")
        return [label for label in found if not label.startswith(others)]

    def swept(self, strategy: str, algorithm: str) -> dict[str, list[str]]:
        """Return the measured values of each knob of a strategy, as labels."""
        given = {"strategy": strategy, "algorithm": algorithm, "group": "knobs", "how": "search"}
        found = {}
        for time in self.record.where(**given):
            found.setdefault(time.label.rpartition(" ")[0], set()).add(time.label)
        return {knob: sorted(labels, key=by_value) for knob, labels in found.items()}

    def most_threads(self, graph: str, strategy: str, threads: Iterable[int]) -> Time | None:
        times = (claims.threaded(self.record, graph, strategy, count) for count in threads)
        return max(filter(None, times), key=lambda time: time.threads, default=None)

    def slow_pulls(self, graphs: Iterable[str]) -> dict[str, list[str]]:
        """Return the bottom-up searches with integers that were left out, by graph."""
        found = {}
        for (graph, _, _, strategy, _, threads, _), why in sorted(self.record.left.items()):
            if strategy == "pull_integers" and graph in graphs:
                found.setdefault(graph, []).append(f"{threads}: {why}")
        return found

    def usual(self, graph: str, strategy: str, algorithm: str, device: str, threads: int):
        """Return the time as published, by the library's choice or a rule, or of the best peer."""
        given = {"algorithm": algorithm, "device": device, "threads": threads}
        for label in ("published", "library", "rule"):
            time = self.record.time(graph, strategy, label, **given)
            if time:
                return time
        given = {"algorithm": algorithm, "device": device, "how": "peer"}
        peers = self.record.where(graph=graph, strategy=strategy, **given)
        return min(peers, key=lambda time: time.median, default=None)

    def every_strategy(self, algorithm: str) -> dict:
        """Return all strategies of an algorithm and its graphs."""
        times = [time for time in self.record.where(algorithm=algorithm) if time.how != "feature"]
        listed = {(time.strategy, time.device, time.threads) for time in times if time.threads < 2}
        graphs = [
            graph for graph in self.record.graphs if any(time.graph == graph for time in times)
        ]
        order = sorted(listed, key=lambda each: (each[1] == "cpu", each[0]))
        return {"graphs": graphs, "strategies": order}

    def n_times(self, run: dict) -> int:
        place = self.record.runs.index(run)
        return sum(time.run == place for time in self.record.times.values())

    # --- plots

    def draw(self, file: str, text: str) -> str:
        """Keep a plot; return where a page has it."""
        self.plots[file] = text
        return f"plots/{file}"

    def draw_systems(self, file: str, shown: Shown) -> str:
        points = {}
        for i, graph in enumerate(shown.graphs):
            times = {f"{row.strategy}, {row.knobs}": row.times[i] for row in shown.rows}
            points[graph] = {name: 1e3 * time.median for name, time in times.items() if time}
        text = svg_plots.dots("Time per search", "ms, median", points, reference=None)
        return self.draw(file, text)

    def draw_levels(self, graph: str, found: list[dict]) -> str:
        return self.draw(f"levels-{graph}.svg", level_plot(graph, found))


def by_value(label: str) -> float:
    if label[-1].isdigit():
        return float(label.rpartition(" ")[2])
    return 0.0


def rule_knobs(about: dict) -> str:
    """Return the knobs of BFS-4K's rule for the degrees of a graph that are not as published."""
    from dataclasses import asdict

    from kepler_traverse.published.bfs.bfs_4k import rule
    from kepler_traverse.published.bfs.params import Bfs4kKnobs

    usual = asdict(Bfs4kKnobs())
    chosen = asdict(rule(*(about[name] for name in ("mean", "deviation", "largest"))))
    changed = (f"{name} = {value}" for name, value in chosen.items() if value != usual[name])
    return ", ".join(changed) or "as published"


def level_plot(graph: str, found: list[dict]) -> str:
    """Plot vertices per level, and what each setting queued for the next."""
    colours = {each["label"]: svg_plots.look_of(i + 1)[0] for i, each in enumerate(found)}
    vertices = found[0]["vertices"]
    last = max([level for level, _ in vertices] + [1])
    queued = [step[4] for each in found for step in each["steps"]]
    most = max([n for _, n in vertices] + queued)
    black = svg_plots.look_of(0)[0]
    legend = [("vertices", black), *colours.items()]
    title = f"{graph}: vertices per level, and vertices queued"
    size = Size(svg_plots.WIDTH, 340)
    plane = Plane(title, (0, last), (1, 2 * most), size, legend=legend, log="y")
    plane.x_axis("level", whole=True)
    plane.y_axis("vertices")
    plane.line([(level, max(n, 1)) for level, n in vertices], black)
    for each in found:
        for is_alone, level, n_levels, _, n_queued, *_ in each["steps"]:
            shape = "circle" if is_alone else "triangle"
            x = min(level + n_levels, last)
            plane.mark(x, max(n_queued, 1), colours[each["label"]], shape)
    return picture(plane, file=True)


def relaxed(counted: dict | None, dijkstra: float) -> str:
    """Return the relaxations per search, and in brackets as a multiple of Dijkstra's."""
    if counted is None:
        return "-"
    total = counted["counters"]["relaxations"]
    if total < 0:
        return "too many to count"
    per_search = total / counted["sources"]
    return f"{per_search:,.0f} ({factor(per_search / dijkstra)})"


FILTERS: dict[str, Callable[..., str]] = {
    "bars": bars,
    "compared": compared,
    "factor": lambda value: factor(value) if value else "-",
    "known": known,
    "ms": milliseconds,
    "relaxed": relaxed,
    "rule_knobs": rule_knobs,
}
