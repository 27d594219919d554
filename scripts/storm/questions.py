"""Questions at random: which kind of result, of which searches, with which options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from scripts.storm.edges import FLOATS, Id
from scripts.storm.oracle import Lengths, Network

ALL = "all"


@dataclass(frozen=True)
class Question:
    """What is asked of a graph.

    Attributes
    ----------
    kind : str
        A result kind, or "one" for a search from one source, "plan" for groups of one plan, "extremes".
    algorithm : {"bfs", "sssp"}
    sources : list of ids, or "all"
    targets : list of ids or None
    pairs : list of (origin, destination) or None
    limit : number, list of one per source, or None
    options : mapping
        By the names that the library has for them.
    """

    kind: str
    algorithm: str
    sources: Any
    targets: list[Id] | None = None
    pairs: list[tuple[Id, Id]] | None = None
    limit: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def sources_in(self, network: Network) -> list[Any]:
        """Return the sources as a list of ids."""
        if self.sources == ALL:
            return list(network.ids)
        return list(self.sources)

    def limit_of(self, place: int) -> Any:
        """Return the limit of a source by its place in the list, infinite if there is none."""
        if self.limit is None:
            return float("inf")
        if isinstance(self.limit, list):
            return self.limit[place]
        return self.limit


class Drawing:
    """A random generator that knows the graph that is asked."""

    def __init__(self, draw: Random, network: Network, algorithm: str):
        self.draw = draw
        self.network = network
        self.algorithm = algorithm
        self.lengths: Lengths = network.lengths(algorithm)
        self._typical: list[Any] | None = None

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def ids(self, most: int, may_repeat: bool = True) -> list[Any]:
        """Return some vertices in any order."""
        count = self.draw.randrange(1, most + 1)
        if may_repeat and self.chance(0.3):
            return self.draw.choices(self.network.ids, k=count)
        return self.draw.sample(self.network.ids, min(count, len(self.network.ids)))

    def sources(self, may_repeat: bool = True, may_be_all: bool = True) -> Any:
        if (
            may_be_all
            and self.chance(0.15)
            and len(self.network.ids) <= 60
            and ALL not in self.network.ids
        ):
            return ALL
        is_large = len(self.network.ids) > 300
        return self.ids(self.draw.choice([9, 70, 300] if is_large else [1, 4, 9]), may_repeat)

    def distance(self) -> Any:
        """Return a number that is a likely distance, or lies between two."""
        if self._typical is None:
            self._typical = self._some_distances()
        value = self.draw.choice(self._typical)
        if self.algorithm == "bfs":
            return value
        if self.chance(0.15) and 1 < value < 2**50:
            return self.draw.choice(
                [value + 0.5, value - 0.25, value - 1e-9, math.nextafter(value, 0), value + 1e-9]
            )
        return value

    def _some_distances(self) -> list[Any]:
        try:
            found = self.lengths.distances([self.draw.choice(self.network.ids)])
        except Exception:  # no distances exist: any number will do
            found = {}
        values = sorted({max(0, value) for value in found.values()})
        return [*values[:30], 0, 1, 3]

    def cutoffs(self) -> list[Any]:
        values = sorted({self.distance() for _ in range(self.draw.randrange(1, 4))})
        return [value for value in values if value >= 0 and float(value) == value] or [0]

    def limit(self, share: float = 0.3) -> Any:
        if self.chance(share):
            return max(0, self.distance())
        return None


def _limits_of(asked: Drawing, sources: Any) -> Any:
    """Return no limit, one for all sources, or one for each."""
    if sources != ALL and len(set(sources)) == len(sources) and asked.chance(0.1):
        return [max(0, asked.distance()) for _ in sources]
    return asked.limit()


def _of_vertices(kind: str) -> Callable[[Drawing], Question]:
    def draw_question(asked: Drawing) -> Question:
        sources = asked.sources()
        targets = None
        options: dict[str, Any] = {}
        if kind in ("distances", "predecessors"):
            if asked.chance(0.2):
                targets = asked.ids(6)
            elif asked.chance(0.15):
                options["unreached"] = "null"
        if kind == "matrix" and asked.chance(0.3):
            targets = asked.ids(6, may_repeat=False)
        limit = _limits_of(asked, sources)
        return Question(
            kind, asked.algorithm, sources, targets=targets, limit=limit, options=options
        )

    return draw_question


def _targets(asked: Drawing) -> Question:
    sources = asked.sources()
    targets = asked.ids(6)
    return Question(
        "targets", asked.algorithm, sources, targets=targets, limit=_limits_of(asked, sources)
    )


def _summary(asked: Drawing) -> Question:
    sources = asked.sources()
    return Question("summary", asked.algorithm, sources, limit=_limits_of(asked, sources))


def _levels(asked: Drawing) -> Question:
    asked = Drawing(asked.draw, asked.network, "bfs")
    sources = asked.sources()
    return Question("levels", "bfs", sources, limit=_limits_of(asked, sources))


def _nearest(asked: Drawing) -> Question:
    sources = asked.sources(may_repeat=False)
    return Question("nearest", asked.algorithm, sources, limit=asked.limit())


def _groups(asked: Drawing, count: int) -> list[Any]:
    names = asked.draw.choice([["a", "b"], [1, 2, 3]])
    return [asked.draw.choice(names) for _ in range(count)]


def _k_nearest(asked: Drawing) -> Question:
    sources = asked.ids(asked.draw.choice([2, 6, 12]), may_repeat=False)
    options: dict[str, Any] = {"k": asked.draw.choice([1, 2, 3, 8])}
    if asked.chance(0.3):
        options["groups"] = _groups(asked, len(sources))
    return Question("k_nearest", asked.algorithm, sources, limit=asked.limit(), options=options)


def _nearest_targets(asked: Drawing) -> Question:
    targets = asked.ids(6, may_repeat=False)
    options: dict[str, Any] = {"k": asked.draw.choice([1, 1, 2, 4])}
    if asked.chance(0.3):
        options["groups"] = _groups(asked, len(targets))
    sources = asked.sources()
    limit = asked.limit()
    return Question(
        "nearest_targets", asked.algorithm, sources, targets=targets, limit=limit, options=options
    )


def _decay(asked: Drawing) -> str:
    reach = max(1, round(float(asked.distance())))
    if reach > 1e12:
        reach = 1000
    return asked.draw.choice(
        [f"exponential:{1 / reach:.4g}", f"linear:{reach}", f"gaussian:{reach}"]
    )


def _opportunities(asked: Drawing) -> Question:
    some = asked.draw.sample(asked.network.ids, asked.draw.randrange(1, len(asked.network.ids) + 1))
    names = ["jobs"] if asked.chance(0.5) else ["jobs", "area"]
    values: dict[str, dict[Any, Any]] = {}
    for name in names:
        unit = 8 if name == "area" else None
        numbers = [asked.draw.randrange(0, 100) for _ in some]
        values[name] = {
            vertex: number / unit if unit else number
            for vertex, number in zip(some, numbers, strict=True)
        }
    sources = asked.sources(may_repeat=False)
    options: dict[str, Any] = {"values": values, "cutoffs": asked.cutoffs()}
    if asked.chance(0.25):
        options["decay"] = _decay(asked)
    if sources != ALL and asked.chance(0.2):
        options["source_weights"] = [asked.draw.randrange(0, 9) for _ in sources]
    return Question("opportunities", asked.algorithm, sources, options=options)


def _within(asked: Drawing) -> Question:
    return Question(
        "within", asked.algorithm, asked.sources(), options={"cutoffs": asked.cutoffs()}
    )


def _isochrones(asked: Drawing) -> Question:
    return Question(
        "isochrones", asked.algorithm, asked.sources(), options={"cutoffs": asked.cutoffs()}
    )


def _some_pairs(asked: Drawing) -> list[tuple[Any, Any]]:
    is_large = len(asked.network.ids) > 300
    origins = asked.ids(asked.draw.choice([30, 150] if is_large else [1, 3, 6]))
    count = asked.draw.choice([200, 800] if is_large else [1, 2, 5, 20, 60])
    return [
        (asked.draw.choice(origins), asked.draw.choice(asked.network.ids)) for _ in range(count)
    ]


def _pairs(asked: Drawing) -> Question:
    return Question("pairs", asked.algorithm, None, pairs=_some_pairs(asked), limit=asked.limit())


def _paths(asked: Drawing) -> Question:
    return Question("paths", asked.algorithm, None, pairs=_some_pairs(asked))


def _through(asked: Drawing) -> list[int]:
    rows = range(len(asked.network.edges.rows))
    return asked.draw.sample(rows, min(len(rows), asked.draw.choice([1, 3])))


def _flows(asked: Drawing) -> Question:
    options: dict[str, Any] = {"of": asked.draw.choice(["edges", "vertices"])}
    if asked.chance(0.25):
        options["decay"] = _decay(asked)
    if asked.chance(0.3):
        options["through"] = _through(asked)
    limit = asked.limit(0.2)
    if asked.chance(0.6):
        pairs = _some_pairs(asked)
        if asked.chance(0.7):
            options["volumes"] = [asked.draw.randrange(0, 50) for _ in pairs]
        if asked.chance(0.2):
            options["of"] = "pairs"
        return Question("flows", asked.algorithm, None, pairs=pairs, limit=limit, options=options)
    sources = asked.ids(6, may_repeat=False)
    targets = asked.ids(6, may_repeat=False) if asked.chance(0.6) else None
    if asked.chance(0.4):
        options["source_weights"] = [asked.draw.randrange(0, 9) for _ in sources]
    if targets and asked.chance(0.4):
        options["target_weights"] = [asked.draw.randrange(0, 9) for _ in targets]
    return Question(
        "flows", asked.algorithm, sources, targets=targets, limit=limit, options=options
    )


def _betweenness(asked: Drawing) -> Question:
    options: dict[str, Any] = {"of": asked.draw.choice(["vertices", "edges"])}
    is_all = asked.chance(0.5) and len(asked.network.ids) <= 60 and ALL not in asked.network.ids
    sources = ALL if is_all else asked.ids(8, may_repeat=False)
    targets = asked.ids(8, may_repeat=False) if not is_all and asked.chance(0.4) else None
    if options["of"] == "vertices" and targets is None and asked.chance(0.3):
        options["endpoints"] = True
    options["normalized"] = is_all and asked.chance(0.5)
    limit = asked.limit(0.2)
    return Question(
        "betweenness", asked.algorithm, sources, targets=targets, limit=limit, options=options
    )


def _one(asked: Drawing) -> Question:
    options: dict[str, Any] = {"predecessors": asked.chance(0.7)}
    targets = asked.ids(4) if asked.chance(0.2) else None
    if targets is None and asked.chance(0.2):
        options["unreached"] = "null"
    limit = asked.limit()
    return Question(
        "one", asked.algorithm, asked.ids(1), targets=targets, limit=limit, options=options
    )


def _plan(asked: Drawing) -> Question:
    """Groups of several sizes, one after another."""
    groups = [
        asked.ids(asked.draw.choice([1, 3, 12, 40])) for _ in range(asked.draw.randrange(2, 6))
    ]
    limit = None if asked.lengths.may_be_negative else asked.limit()
    return Question("plan", asked.algorithm, groups[0], limit=limit, options={"groups": groups})


def _extremes(asked: Drawing) -> Question:
    return Question("extremes", asked.algorithm, None)


QUESTIONS: dict[str, Callable[[Drawing], Question]] = {
    **{kind: _of_vertices(kind) for kind in ("distances", "predecessors", "matrix", "reachable")},
    "targets": _targets,
    "summary": _summary,
    "levels": _levels,
    "nearest": _nearest,
    "k_nearest": _k_nearest,
    "nearest_targets": _nearest_targets,
    "opportunities": _opportunities,
    "within": _within,
    "isochrones": _isochrones,
    "pairs": _pairs,
    "paths": _paths,
    "flows": _flows,
    "betweenness": _betweenness,
    "one": _one,
    "plan": _plan,
    "extremes": _extremes,
}
OF_LIBRARY_ALONE = ("one", "plan")
# Kinds that lead to their sources as well, and kinds with sums along paths.
TURNED = (
    "matrix", "summary", "levels", "targets", "nearest", "k_nearest", "nearest_targets", "opportunities",
    "within", "isochrones", "pairs",
)  # fmt: skip
NOT_OF_CLOSED = ("matrix", "reachable", "levels", "betweenness", "plan", "extremes")
ALONG = ("targets", "pairs", "nearest", "k_nearest", "nearest_targets", "paths")


def draw_question(draw: Random, network: Network, kinds: list[str]) -> Question:
    """Return a question at random, of one of some kinds."""
    algorithm = draw.choice(["bfs", "sssp"]) if network.edges.is_weighted else "bfs"
    if network.edges.closed:
        algorithm = "sssp"
        kinds = [kind for kind in kinds if kind not in NOT_OF_CLOSED]
    kind = draw.choice(kinds)
    asked = Drawing(draw, network, algorithm)
    question = QUESTIONS[kind](asked)
    if kind in TURNED and asked.chance(0.25):
        question.options["direction"] = "in"
    if kind in ALONG and asked.chance(0.3) and not asked.lengths.may_be_negative:
        question.options["along"] = {"toll": [draw.randrange(-5, 50) for _ in network.edges.rows]}
    return question


def is_about_floats(question: Question, network: Network) -> bool:
    """Whether distances are sums that may be rounded."""
    return question.algorithm == "sssp" and network.edges.weights in FLOATS
