"""The record of the papers' measurements: reading, adding lines of a run, asking for times.

docs/published/measured.json and measured_counts.json beside it hold

    runs      objects: date, commit, command, machine, versions
    graphs    object: graph to its statistics
    settings  of strategies, which rows name by their places (SETTING)
    times     blocks of rows (SHARED, OWN): a row per key and machine, the newest one
    left      rows that were left out, with the reason in place of times
    counted   the names of what the kernels of each strategy counted, as they were measured: they are never renamed
    counters  rows (COUNTED) with the counts in the order of these names
    levels    objects: what BFS-4K did level by level, a list per column of ``levels.COLUMNS``
    vertices  of these graphs, at each number of hops
    digest    of each file, so that no search and replace in the code changes what was measured

Seconds have four digits. ``spread`` is the distance of the quartiles divided by the median, null where there are too few
repeats to have one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scripts.measure.record import RUN, place_of
from scripts.pages import ROOT, as_text

FOLDER = ROOT / "docs" / "published"
MEASURED = FOLDER / "measured.json"

KEY = ("graph", "algorithm", "device", "strategy", "label", "threads", "group")
# Columns of a row of the file: those that its block shares, and its own, of which the first is the place of its setting.
SHARED = ("graph", "algorithm", "device", "group", "run")
SETTING = ("strategy", "label", "threads", "how")
OWN = ("median", "spread", "repeats", "sources", "rounds")
COUNTED = (*KEY, "run", "rounds", "out_edges", "reached", "sources")
STEPS = (*KEY, "run", "n_steps")
# Entries of lines that counters and levels do without.
UNUSED = ("kind", "at", "suite", "work", "peer", "on", "how", "knobs", "size")
UNUSED += ("median", "least", "spread", "repeats")
# of a time of fewer than three repeats: the machine's speed has stepped by as much within a run
UNKNOWN_SPREAD = 0.3


class MalformedError(Exception):
    """A record or the lines of a run lack what a page needs."""


class NotMeasuredError(Exception):
    """A record lacks the times that a claim or a reason needs."""


class Time(NamedTuple):
    """The time of a setting on a graph: seconds per search."""

    graph: str
    algorithm: str
    device: str
    strategy: str
    label: str
    threads: int
    group: str
    how: str
    run: int
    median: float
    spread: float | None
    repeats: int
    sources: int
    rounds: float

    @property
    def key(self) -> tuple:
        return tuple(getattr(self, name) for name in KEY)

    @property
    def compared_with(self) -> tuple[str, str, str, str]:
        """Return graph, algorithm, device and group: what is compared is of one machine."""
        return self.graph, self.algorithm, self.device, self.group

    @property
    def noise(self) -> float:
        """Return by how much a difference must exceed this time to count; never less than 1 %."""
        if self.spread is None:
            return UNKNOWN_SPREAD
        return max(self.spread, 0.01)


def is_faster(one: Time, other: Time) -> bool:
    """Return whether a time is less than another one, beyond both spreads."""
    return other.median / one.median > 1.0 + one.noise + other.noise


def machine_of(run: dict, device: str) -> str:
    """Return the card, or the processor with the number of its cores: times of two machines are never compared."""
    machine = run["machine"]
    if device == "cuda":
        return (machine["gpu"] or "?").replace("NVIDIA ", "")
    return f"{machine['cpu']}, {machine['cores']} cores"


@dataclass
class Record:
    """All measurements.

    ``stored`` has the times of all machines, by key and machine. ``times`` has those that are shown and compared, by key.
    For each graph, algorithm, device and group they are of one machine: the one with the most times.
    """

    runs: list[dict] = field(default_factory=list)
    graphs: dict[str, dict] = field(default_factory=dict)
    stored: dict[tuple, Time] = field(default_factory=dict)
    left: dict[tuple, str] = field(default_factory=dict)
    counters: list[dict] = field(default_factory=list)
    levels: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_times = {}
        for key, time in self.stored.items():
            n_times.setdefault(time.compared_with, Counter())[key[-1]] += 1
        self.machines = {where: max(found, key=found.get) for where, found in n_times.items()}
        self.times = {}
        self._choices = {}
        for key, time in self.stored.items():
            if self.machines[time.compared_with] != key[-1]:
                continue
            self.times[time.key] = time
            if time.group == "systems" and time.how in ("published", "rule", "search"):
                self._choices.setdefault(
                    (time.graph, time.strategy, time.algorithm, time.device), []
                ).append(time)

    def time(
        self,
        graph: str,
        strategy: str,
        label: str = "published",
        *,
        algorithm: str = "bfs",
        device: str = "cuda",
        threads: int = 0,
        group: str = "systems",
    ) -> Time | None:
        """Return the time of a setting; a search on one core has ``threads=1``."""
        return self.times.get((graph, algorithm, device, strategy, label, threads, group))

    def where(self, **given: Any) -> list[Time]:
        """Return the times of which each of these entries is the same."""
        return [
            time
            for time in self.times.values()
            if all(getattr(time, name) == value for name, value in given.items())
        ]

    def best(
        self, graph: str, strategy: str, *, algorithm: str = "bfs", device: str = "cuda"
    ) -> Time | None:
        """Return the fastest setting of a strategy whose knobs are published, or chosen by a rule or a search."""
        found = self._choices.get((graph, strategy, algorithm, device), [])
        return min(found, key=lambda time: time.median, default=None)

    def machine_of(self, time: Time) -> str:
        return machine_of(self.runs[time.run], time.device)

    def counted(self, graph: str, strategy: str, label: str, algorithm: str = "bfs") -> dict | None:
        wanted = (graph, algorithm, strategy, label)
        keys = ("graph", "algorithm", "strategy", "label")
        return next(
            (each for each in self.counters if tuple(each[key] for key in keys) == wanted), None
        )


def digest_of(content: dict) -> str:
    text = json.dumps(
        {key: content[key] for key in sorted(content) if key != "digest"}, sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def counts_file(path: Path) -> Path:
    """Return the file beside the one of the times, so that neither is too long."""
    return path.with_name(f"{path.stem}_counts{path.suffix}")


def parsed(path: Path) -> dict:
    """Return the content of a file; MalformedError: it was not written by this program."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("digest") != digest_of(content):
        raise MalformedError(
            f"{path.name} was changed by something other than 'python -m scripts.papers.page add': restore it from git"
        )
    return content


def read(path: Path | None = None) -> Record:
    """Return the record of a file and of the one with the counts."""
    path = path or MEASURED
    content = parsed(path)
    counts = parsed(counts_file(path))
    times = [
        Time(
            **dict(zip(SHARED, block["of"], strict=True)),
            **dict(zip(SETTING, content["settings"][setting], strict=True)),
            **dict(zip(OWN, own, strict=True)),
        )
        for block in content["times"]
        for setting, *own in block["rows"]
    ]
    left = {tuple(row[:-1]): row[-1] for row in content["left"]}
    runs = content["runs"]
    stored = {(*time.key, machine_of(runs[time.run], time.device)): time for time in times}
    levels = [
        dict(zip(STEPS, each["of"], strict=True))
        | {"steps": transposed(each["steps"])}
        | {"vertices": transposed(counts["vertices"][each["of"][0]])}
        for each in counts["levels"]
    ]
    counters = [counter_of(row, counts["counted"]) for row in counts["counters"]]
    return Record(runs, content["graphs"], stored, left, counters, levels)


def counter_of(row: list, names: dict[str, list[str]]) -> dict:
    """Return what a row of the file says of counters."""
    about = dict(zip(COUNTED, row, strict=False))
    counted = zip(names[about["strategy"]], row[len(COUNTED) :], strict=True)
    return about | {"counters": {name: value for name, value in counted if value is not None}}


def texts_of(record: Record, path: Path) -> dict[Path, str]:
    """Return the texts of both files."""
    blocks = {}
    settings = {}
    for _, time in sorted(record.stored.items()):
        of_block, setting = (
            tuple(getattr(time, name) for name in names) for names in (SHARED, SETTING)
        )
        own = [short(getattr(time, name)) for name in OWN]
        place = settings.setdefault(setting, len(settings))
        blocks.setdefault(of_block, []).append([place, *own])
    content = {
        "runs": record.runs,
        "graphs": record.graphs,
        "settings": [list(setting) for setting in settings],
        "times": [{"of": list(of_block), "rows": rows} for of_block, rows in blocks.items()],
        "left": [[*key, why] for key, why in sorted(record.left.items())],
    }
    counted = {}
    for each in record.counters:
        names = counted.setdefault(each["strategy"], [])
        names += [name for name in each["counters"] if name not in names]
    counts = {
        "counted": counted,
        "counters": [
            [each.get(name) for name in COUNTED]
            + [each["counters"].get(name) for name in counted[each["strategy"]]]
            for each in record.counters
        ],
        "vertices": {each["graph"]: transposed(each["vertices"]) for each in record.levels},
        "levels": [
            {"of": [each[name] for name in STEPS], "steps": transposed(each["steps"])}
            for each in record.levels
        ],
    }
    return {file: signed(text) for file, text in ((path, content), (counts_file(path), counts))}


def transposed(rows: list[list]) -> list[list]:
    return [list(column) for column in zip(*rows, strict=True)]


def signed(content: dict) -> str:
    """Return JSON with a digest."""
    digest = digest_of(json.loads(json.dumps(content)))
    return as_text(content | {"digest": digest}, width=100) + "\n"


def short(value: Any) -> Any:
    """Return a whole number without its decimal point, and others as they are."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def added(record: Record, lines: list[dict]) -> Record:
    """Return a record with the lines of a run of the suite papers; newer rows replace those of the same key."""
    run = -1
    runs = list(record.runs)
    stored = dict(record.stored)
    left = dict(record.left)
    graphs = dict(record.graphs)
    counters = list(record.counters)
    levels = list(record.levels)
    for line in lines:
        if line["kind"] == "run":
            run = place_of(runs, {name: line[name] for name in RUN})
            continue
        if line.get("suite") != "papers":
            raise MalformedError(f"a line of the suite papers was expected: {str(line)[:80]}")
        if "statistics" in line:
            graphs[line["graph"]] = line["statistics"]
            continue
        line = line | {"device": line["on"], "run": run}
        key = identity(line)
        place = (*key, machine_of(runs[run], line["device"]))
        if line["kind"] == "left":
            left[key] = line["why"]
            stored.pop(place, None)
        elif "counters" in line or "steps" in line:
            into = counters if "counters" in line else levels
            entry = {name: value for name, value in line.items() if name not in UNUSED}
            into[:] = [each for each in into if identity(each) != key] + [entry]
        else:
            stored[place] = Time(**{name: line[name] for name in Time._fields})
            left.pop(key, None)
    return without_unused_runs(Record(runs, graphs, stored, left, counters, levels))


def identity(entry: dict) -> tuple:
    return tuple(entry.get(name) for name in KEY)


def without_unused_runs(record: Record) -> Record:
    """Drop runs of which nothing is left, and number the others anew."""
    used = {time.run for time in record.stored.values()} | {
        each["run"] for each in record.counters + record.levels
    }
    place = {old: new for new, old in enumerate(sorted(used))}
    stored = {key: time._replace(run=place[time.run]) for key, time in record.stored.items()}
    return Record(
        [record.runs[old] for old in sorted(used)],
        record.graphs,
        stored,
        record.left,
        [each | {"run": place[each["run"]]} for each in record.counters],
        [each | {"run": place[each["run"]]} for each in record.levels],
    )
