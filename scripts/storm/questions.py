"""Questions at random: which kind of result, of which searches, with which options."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random
from typing import Any

from scripts.storm.edges import FLOATS, Id
from scripts.storm.oracle import Network

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
    options: dict = field(default_factory=dict)

    def sources_in(self, network: Network) -> list:
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
    """A question that is drawn part by part, with a random generator that knows the graph that is asked."""

    def __init__(self, draw: Random, network: Network, algorithm: str):
        self.draw = draw
        self.network = network
        self.algorithm = algorithm
        self.lengths = network.lengths(algorithm)
        self.is_large = len(network.ids) > 300
        self.may_be_all = len(network.ids) <= 60 and ALL not in network.ids
        self.sources = None
        self.targets = None
        self.pairs = None
        self.limit = None
        self.options = {}

    def question(self, kind: str) -> Question:
        """Return what the parts of a kind have drawn."""
        for part in QUESTIONS[kind]:
            part(self)
        given = {name: getattr(self, name) for name in ("targets", "pairs", "limit", "options")}
        return Question(kind, self.algorithm, self.sources, **given)

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def ids(self, most: int, may_repeat: bool = True) -> list:
        """Return some vertices in any order."""
        count = self.draw.randrange(1, most + 1)
        if may_repeat and self.chance(0.3):
            return self.draw.choices(self.network.ids, k=count)
        return self.draw.sample(self.network.ids, min(count, len(self.network.ids)))

    @cached_property
    def typical(self) -> list:
        """Some distances of the graph, and numbers that may be none."""
        try:
            found = self.lengths.distances([self.draw.choice(self.network.ids)])
        except Exception:  # no distances exist: any number will do
            found = {}
        values = sorted({max(0, value) for value in found.values()})
        return [*values[:30], 0, 1, 3]

    def distance(self) -> Any:
        """Return a number that is a likely distance, or lies between two."""
        value = self.draw.choice(self.typical)
        if self.algorithm == "sssp" and self.chance(0.15) and 1 < value < 2**50:
            beside = (value + 0.5, value - 0.25, value - 1e-9, value + 1e-9)
            return self.draw.choice([*beside, math.nextafter(value, 0)])
        return value

    def weights(self, count: int) -> list[int]:
        return [self.draw.randrange(0, 9) for _ in range(count)]


# Parts of questions.


def _sources(asked: Drawing, may_repeat: bool = True) -> None:
    if asked.chance(0.15) and asked.may_be_all:
        asked.sources = ALL
        return
    most = asked.draw.choice([9, 70, 300] if asked.is_large else [1, 4, 9])
    asked.sources = asked.ids(most, may_repeat)


def _few_sources(asked: Drawing, most: Sequence[int]) -> None:
    asked.sources = asked.ids(asked.draw.choice(most), may_repeat=False)


def _targets(
    asked: Drawing, most: int = 6, may_repeat: bool = True, share: float = 1.0, null: float = 0.0
) -> None:
    """Draw targets, or in some other questions that vertices without a path are in the answer."""
    if share == 1.0 or asked.chance(share):
        asked.targets = asked.ids(most, may_repeat)
    elif null and asked.chance(null):
        asked.options["unreached"] = "null"


def _pairs(asked: Drawing) -> None:
    origins = asked.ids(asked.draw.choice([30, 150] if asked.is_large else [1, 3, 6]))
    count = asked.draw.choice([200, 800] if asked.is_large else [1, 2, 5, 20, 60])
    choose = asked.draw.choice
    asked.pairs = [(choose(origins), choose(asked.network.ids)) for _ in range(count)]


def _limit(asked: Drawing, share: float = 0.3) -> None:
    if asked.chance(share):
        asked.limit = max(0, asked.distance())


def _limits(asked: Drawing) -> None:
    """Draw no limit, one for all sources, or one for each."""
    sources = asked.sources
    if sources != ALL and len(set(sources)) == len(sources) and asked.chance(0.1):
        asked.limit = [max(0, asked.distance()) for _ in sources]
    else:
        _limit(asked)


def _k(asked: Drawing, of: str, numbers: Sequence[int]) -> None:
    """Draw a number of nearest vertices, in some questions for each group of sources or targets."""
    asked.options["k"] = asked.draw.choice(numbers)
    if asked.chance(0.3):
        names = asked.draw.choice([["a", "b"], [1, 2, 3]])
        asked.options["groups"] = [asked.draw.choice(names) for _ in getattr(asked, of)]


def _cutoffs(asked: Drawing) -> None:
    values = sorted({asked.distance() for _ in range(asked.draw.randrange(1, 4))})
    whole = [value for value in values if value >= 0 and float(value) == value]
    asked.options["cutoffs"] = whole or [0]


def _decay(asked: Drawing) -> None:
    if not asked.chance(0.25):
        return
    reach = max(1, round(float(asked.distance())))
    if reach > 1e12:
        reach = 1000
    decays = [f"exponential:{1 / reach:.4g}", f"linear:{reach}", f"gaussian:{reach}"]
    asked.options["decay"] = asked.draw.choice(decays)


def _values(asked: Drawing) -> None:
    ids = asked.network.ids
    some = asked.draw.sample(ids, asked.draw.randrange(1, len(ids) + 1))
    values = {"jobs": {vertex: asked.draw.randrange(0, 100) for vertex in some}}
    if asked.chance(0.5):
        values["area"] = {vertex: asked.draw.randrange(0, 100) / 8 for vertex in some}
    asked.options["values"] = values


def _streets(asked: Drawing) -> None:
    """Draw columns of the edge list to add up; some rows have none."""
    rows = range(len(asked.network.edges.rows))
    asked.options["along"] = {"trees": [asked.draw.choice([0, 40, 70, 1000]) for _ in rows]}
    if asked.chance(0.3):
        asked.options["along"]["shops"] = [asked.draw.choice([0.5, -2.0, 3.25]) for _ in rows]


def _start_costs(asked: Drawing) -> None:
    """Draw what each source adds to its distances, with ties and costs beyond all distances."""
    if asked.algorithm == "sssp" and asked.sources != ALL and asked.chance(0.3):
        costs = [0, 0, 1, 3, 8, max(0, int(asked.draw.choice(asked.typical))) % 2**20]
        asked.options["start_costs"] = [asked.draw.choice(costs) for _ in asked.sources]


def _source_weights(asked: Drawing) -> None:
    if asked.sources != ALL and asked.chance(0.2):
        asked.options["source_weights"] = asked.weights(len(asked.sources))


def _by_hops(asked: Drawing) -> None:
    asked.algorithm = "bfs"
    asked.lengths = asked.network.lengths("bfs")


def _loads(asked: Drawing) -> None:
    asked.options["of"] = asked.draw.choice(["edges", "vertices"])


def _volumes(asked: Drawing) -> None:
    """Draw what flows: along pairs, or from sources to targets."""
    if asked.chance(0.3):
        rows = range(len(asked.network.edges.rows))
        count = min(len(rows), asked.draw.choice([1, 3]))
        asked.options["through"] = asked.draw.sample(rows, count)
    if asked.chance(0.6):
        _pairs(asked)
        if asked.chance(0.7):
            asked.options["volumes"] = [asked.draw.randrange(0, 50) for _ in asked.pairs or ()]
        if asked.chance(0.2):
            asked.options["of"] = "pairs"
        return
    _few_sources(asked, [6])
    _targets(asked, may_repeat=False, share=0.6)
    if asked.chance(0.4):
        asked.options["source_weights"] = asked.weights(len(asked.sources))
    if asked.targets and asked.chance(0.4):
        asked.options["target_weights"] = asked.weights(len(asked.targets))


def _between(asked: Drawing) -> None:
    if asked.chance(0.5) and asked.may_be_all:
        asked.sources = ALL
    else:
        _few_sources(asked, [8])
        _targets(asked, 8, may_repeat=False, share=0.4)
    if asked.options["of"] == "vertices" and asked.targets is None and asked.chance(0.3):
        asked.options["endpoints"] = True
    asked.options["normalized"] = asked.sources == ALL and asked.chance(0.5)


def _one(asked: Drawing) -> None:
    asked.options["predecessors"] = asked.chance(0.7)
    asked.sources = asked.ids(1)


def _plan(asked: Drawing) -> None:
    """Draw groups of several sizes, one after another."""
    sizes = [asked.draw.choice([1, 3, 12, 40]) for _ in range(asked.draw.randrange(2, 6))]
    asked.options["groups"] = [asked.ids(size) for size in sizes]
    asked.sources = asked.options["groups"][0]
    if not asked.lengths.may_be_negative:
        _limit(asked)


_distinct = partial(_sources, may_repeat=False)
_in_part = partial(_targets, share=0.2, null=0.15)
# The parts of each kind, in the order in which they are drawn.
QUESTIONS: dict[str, tuple[Callable[[Drawing], None], ...]] = {
    "distances": (_sources, _in_part, _limits),
    "predecessors": (_sources, _in_part, _limits),
    "matrix": (_sources, partial(_targets, may_repeat=False, share=0.3), _limits),
    "reachable": (_sources, _limits),
    "targets": (_sources, _targets, _limits),
    "summary": (_sources, _limits),
    "levels": (_by_hops, _sources, _limits),
    "nearest": (_distinct, _limit, _start_costs),
    "k_nearest": (partial(_few_sources, most=(2, 6, 12)), partial(_k, of="sources", numbers=(1, 2, 3, 8)), _limit),
    "nearest_targets": (
        partial(_targets, may_repeat=False), partial(_k, of="targets", numbers=(1, 1, 2, 4)), _sources, _limit
    ),
    "opportunities": (_values, _distinct, _cutoffs, _decay, _source_weights),
    "within": (_sources, _cutoffs),
    "streets": (_sources, _cutoffs, _streets),
    "isochrones": (_sources, _cutoffs),
    "pairs": (_pairs, _limit),
    "paths": (_pairs,),
    "flows": (_loads, _decay, partial(_limit, share=0.2), _volumes),
    "betweenness": (_loads, _between, partial(_limit, share=0.2)),
    "one": (_one, partial(_targets, most=4, share=0.2, null=0.2), _limit),
    "plan": (_plan,),
    "extremes": (),
}  # fmt: skip
OF_LIBRARY_ALONE = ("one", "plan")
# Kinds that lead to their sources as well, and kinds with sums along paths.
TURNED = (
    "matrix", "summary", "levels", "targets", "nearest", "k_nearest", "nearest_targets", "opportunities",
    "within", "streets", "isochrones", "pairs",
)  # fmt: skip
NOT_OF_CLOSED = ("matrix", "reachable", "levels", "betweenness", "streets", "plan", "extremes")
ALONG = ("targets", "pairs", "nearest", "k_nearest", "nearest_targets", "paths")


def draw_question(draw: Random, network: Network, kinds: list[str]) -> Question:
    """Return a question at random, of one of some kinds."""
    algorithm = draw.choice(["bfs", "sssp"]) if network.edges.is_weighted else "bfs"
    if network.edges.closed:
        algorithm = "sssp"
        kinds = [kind for kind in kinds if kind not in NOT_OF_CLOSED]
    kind = draw.choice(kinds)
    asked = Drawing(draw, network, algorithm)
    question = asked.question(kind)
    if kind in TURNED and asked.chance(0.25):
        question.options["direction"] = "in"
    # A path of floats plus a start cost may be another one than that of the source alone.
    may_differ = "start_costs" in question.options and is_about_floats(question, network)
    one_path = not asked.lengths.may_be_negative and not may_differ
    if kind in ALONG and asked.chance(0.3) and one_path:
        question.options["along"] = {"toll": [draw.randrange(-5, 50) for _ in network.edges.rows]}
    return question


def is_about_floats(question: Question, network: Network) -> bool:
    """Whether distances are sums that may be rounded."""
    return question.algorithm == "sssp" and network.edges.weights in FLOATS
