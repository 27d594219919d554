"""What is measured for each paper (experiments.toml): graphs, settings of strategies, and works in the order of their rank.

A work is a graph, an algorithm and the settings that are compared on it. Works of rank 1 are what the tables of claims need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from scripts.measure.graphs import FILES, GraphSource
from scripts.measure.graphs import PAPERS as BY_NAME
from scripts.pages import listed

__all__ = ["BY_NAME", "FILES", "GRAPHS", "GraphSource"]
_LISTED = listed(__file__)
PAPERS = tuple(_LISTED["works"])
PARTS = ("time", "counters", "levels")
GRAPHS = tuple(BY_NAME.values())
BFS_4K, H_BF, NEGATIVE, SPRINGER, SEVILMIS = _LISTED["graphs"].values()
# Of a graph, the paper's graph, and the optimizations that table 3 measures on it.
H_BF_NEGATIVE = {graph: (NEGATIVE[graph], names) for graph, names in _LISTED["table_3"].items()}
UIUC_TABLES: dict[str, dict[str, str]] = _LISTED["uiuc"]
FEATURES: dict[str, dict[str, tuple[dict, dict]]] = _LISTED["features"]
THREADS: list[int] = _LISTED["threads"]
SYSTEMS_OF: dict[str, list[list[str]]] = _LISTED["systems"]
SHAPES = tuple((block, grid) for block in (64, 256, 1024) for grid in (0, 64, 256, 1024, 4096))


@dataclass(frozen=True)
class Setting:
    """A strategy with knobs.

    Attributes
    ----------
    label : str
        ``published``, ``rule``, ``library``, or what the setting changes.
    knobs : dict or None
        Those that differ from the published ones; None: those of the strategy's rule.
    how : {"published", "rule", "search", "feature", "library", "peer"}
        Who chose the knobs.
    threads : int
        Threads of a CPU; 0: all.
    """

    strategy: str
    label: str
    device: str = "cuda"
    knobs: dict | None = field(default=None, hash=False)
    how: str = "published"
    threads: int = 0
    predecessors: bool = True

    @property
    def key(self) -> tuple:
        return self.device, self.strategy, self.label, self.threads


@dataclass(frozen=True)
class Work:
    """The settings of one algorithm that are compared on one graph.

    Attributes
    ----------
    part : {"time", "counters", "levels"}
        What is recorded of them.
    group : str
        What they are compared for. Times of one group are measured in turn, and only they are compared: the published set is
        in several groups.
    """

    rank: int
    graph: str
    algorithm: str
    settings: tuple[Setting, ...]
    part: str = "time"
    group: str = "systems"

    @property
    def place(self) -> tuple:
        """Where the work stands among others: by rank, then by graph."""
        graph = list(BY_NAME).index(self.graph)
        part = PARTS.index(self.part)
        return self.rank, graph, self.algorithm, part, self.group != "systems", self.group


def published(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "published", knobs={}) for strategy in strategies)


def by_rule(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "rule", how="rule") for strategy in strategies)


def library(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "library", how="library") for strategy in strategies)


def searched(strategy: str, knob: str, *values: Any) -> tuple[Setting, ...]:
    """Return a setting per value of a knob: the best of them is what a search over the knob finds."""
    found = (int(value) if str(value).isdigit() else value for value in values)
    return tuple(
        Setting(strategy, f"{knob} {value}", knobs={knob: value}, how="search") for value in found
    )


def on_cpu(strategy: str, threads: str, *words: str) -> tuple[Setting, ...]:
    """Return settings of a CPU; ``distances`` has no predecessors. ``switch`` is the library's own."""
    how = "library" if strategy == "switch" else "published"
    counts = THREADS if threads == "all" else [int(threads)]
    given = {"how": how, "predecessors": "distances" not in words}
    return tuple(Setting(strategy, "published", "cpu", threads=n, **given) for n in counts)


def changed(strategy: str, knobs: dict[str, dict]) -> tuple[Setting, ...]:
    """Return a setting per label, with its knobs."""
    return tuple(
        Setting(strategy, label, knobs=each, how="feature") for label, each in knobs.items()
    )


def off(strategy: str) -> dict:
    switches = (feature for feature, _ in FEATURES[strategy].values())
    return {name: value for feature in switches for name, value in feature.items()}


def only(strategy: str, *names: str) -> dict[str, dict]:
    """Return the knobs of some features together without the others, by their label."""
    knobs = off(strategy)
    for name in names:
        knobs |= FEATURES[strategy][name][1]
    return {"only " + " and ".join(names) if names else "none": knobs}


def featured(strategy: str) -> tuple[Setting, ...]:
    """Return all settings that tell what each feature of a strategy does."""
    table = FEATURES[strategy]
    knobs = only(strategy)
    for name in table:
        knobs |= only(strategy, name)
    knobs |= {f"without {name}": each[0] for name, each in table.items()}
    both = published(strategy) + by_rule(strategy)
    return both + changed(strategy, knobs | _LISTED["variants"][strategy])


def swept(strategy: str) -> tuple[Setting, ...]:
    found = published(strategy)
    for knob, values in _LISTED["sweeps"][strategy].items():
        found += searched(strategy, knob, *values)
    return found


def shaped(strategy: str) -> tuple[Setting, ...]:
    """Return blocks of so many threads, in grids of so many blocks (figure 8), beside the published ones."""
    found = published(strategy)
    for block, grid in SHAPES:
        knobs = {"block": block, "grid": grid}
        if (block, grid) != (256, 0):
            found += (Setting(strategy, f"block {block}, grid {grid}", knobs=knobs, how="search"),)
    return found


def of_duplicates(strategy: str) -> tuple[Setting, ...]:
    """Return the ways to advance, each with and without Hash64."""
    both = ("keep", "hash64")
    ways = _LISTED["duplicates"].items()
    knobs = {f"{way}, {each}": found | {"duplicates": each} for way, found in ways for each in both}
    return changed(strategy, knobs)


def counted(*settings: Setting) -> tuple[Setting, ...]:
    return tuple(replace(each, knobs=(each.knobs or {}) | {"counters": True}) for each in settings)


WORDS = {
    "published": published,
    "rule": by_rule,
    "library": library,
    "search": searched,
    "cpu": on_cpu,
    "featured": featured,
    "swept": swept,
    "shapes": shaped,
    "duplicates": of_duplicates,
    "layers": lambda strategy: changed(strategy, _LISTED["layers"]),
    "none": lambda strategy: changed(strategy, only(strategy)),
}


def settings_of(line: str, graph: str) -> tuple[Setting, ...]:
    """Return the settings that a line of experiments.toml stands for; ``together`` depends on the graph."""
    word, *others = line.split()
    if word == "counted":
        return counted(*settings_of(others[0], graph))
    if word == "together":
        return changed(others[0], only(others[0], *_LISTED["table_3"][graph]))
    if word in WORDS:
        return WORDS[word](*others)
    return tuple(each for inner in _LISTED["settings"][word] for each in settings_of(inner, graph))


(SEQUENTIAL_BFS,) = settings_of("sequential", "")
SEQUENTIAL_SSSP = settings_of("sequential_sssp", "")
SPRINGER_VARIANTS, MERRILL = (
    tuple(setting.strategy for setting in settings_of(name, "")) for name in ("figure_7", "merrill")
)


def graphs_of(names: str) -> Iterable[str]:
    """Return the graphs of a table, of all of UIUC-BFS, or of these names."""
    if names == "uiuc":
        return [graph for table in UIUC_TABLES.values() for graph in table]
    tables = _LISTED["graphs"] | UIUC_TABLES
    return tables.get(names) or names.split()


def works_listed(papers: Iterable[str]) -> Iterator[Work]:
    for paper in papers:
        for rank, names, algorithm, line, *others in _LISTED["works"][paper]:
            for graph in graphs_of(names):
                yield Work(rank, graph, algorithm, settings_of(line, graph), *others)


def works_of(papers: Iterable[str]) -> list[Work]:
    """Return the works of some papers in their order; what several works ask of a graph at one rank is one work."""
    merged = {}
    for work in works_listed(papers):
        before = merged.setdefault(work.place, replace(work, settings=()))
        known = {setting.key for setting in before.settings}
        more = tuple(setting for setting in work.settings if setting.key not in known)
        merged[work.place] = replace(before, settings=before.settings + more)
    return [merged[place] for place in sorted(merged)]
