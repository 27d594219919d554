"""One case: a graph, some questions, a door, and what is found wrong."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from scripts.storm import library
from scripts.storm.answers import Refused, Table, difference, expected
from scripts.storm.edges import EdgeList, draw_edges
from scripts.storm.oracle import Network
from scripts.storm.questions import QUESTIONS, Question, draw_question

MAX_SHOWN = 2_000  # characters of a text of a finding


@dataclass(frozen=True)
class Settings:
    """What all cases of a storm have in common."""

    seed: int
    device: str = "cpu"
    doors: tuple[str, ...] = ()  # by default all


@dataclass(frozen=True)
class Finding:
    """What is wrong, and how to see it again."""

    seed: int
    case: int
    door: str
    kind: str
    what: str  # "wrong", "refused", "accepted", "raw error", "crash", "hang"
    detail: str
    asked: str


@dataclass
class Outcome:
    """What a case did: its findings, and counts of calls, comparisons, refusals and kills by name."""

    case: int
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        return {"case": self.case, "findings": [asdict(each) for each in self.findings], "counts": dict(self.counts)}


class Case:
    """A case of a storm: its own random generator, a folder, and what becomes of it."""

    def __init__(self, settings: Settings, number: int, folder: Path):
        self.settings = settings
        self.number = number
        self.folder = folder
        self.draw = Random(f"{settings.seed}:{number}")
        self.outcome = Outcome(number)
        self.door = ""

    def count(self, name: str, times: int = 1) -> None:
        self.outcome.counts[name] += times

    def report(self, kind: str, what: str, detail: str, asked: str) -> None:
        """Add a finding."""
        shown = detail[:MAX_SHOWN]
        found = Finding(self.settings.seed, self.number, self.door, kind, what, shown, asked[:MAX_SHOWN])
        self.outcome.findings.append(found)

    def compare(self, kind: str, wanted: Table, found: Table, asked: str, is_ordered: bool = True) -> None:
        """Compare an answer with what must come out."""
        self.count("comparisons")
        wrong = difference(wanted, found, is_ordered)
        if wrong:
            self.report(kind, "wrong", wrong, asked)

    def check_error(self, kind: str, error: BaseException, wanted: Any, asked: str, allowed: tuple[str, ...] = ()) -> None:
        """Say whether an error is one that may come."""
        self.count("errors")
        names = {each.__name__ for each in type(error).__mro__}
        may_come = set(allowed)
        if isinstance(wanted, Refused):
            may_come |= set(wanted.errors)
        if type(error).__name__ in may_come or names & (may_come - {"InputError"}):
            return
        if "KeplerError" not in names:
            lines = "".join(traceback.format_exception(error)[-4:])
            self.report(kind, "raw error", f"{type(error).__name__}: {error}\n{lines}", asked)
            return
        what = "another error" if isinstance(wanted, Refused) else "refused"
        self.report(kind, what, f"{type(error).__name__}: {error}", asked)


def shown_edges(edges: EdgeList) -> str:
    """Return an edge list in a few words, with its rows if they are few."""
    rows = f", rows {edges.rows}" if len(edges.rows) <= 12 else ""
    more = f", vertices {edges.more_vertices}" if edges.more_vertices and len(edges.more_vertices) <= 12 else ""
    return f"{edges.about}{rows}{more}"


def shown_question(question: Question) -> str:
    """Return a question as one line."""
    parts = [question.algorithm, question.kind]
    for name in ("sources", "targets", "pairs", "limit"):
        value = getattr(question, name)
        if value is not None:
            parts.append(f"{name}={value}")
    parts += [f"{name}={value}" for name, value in question.options.items()]
    return " ".join(parts)


# The library.

# A strategy that is named may not take a graph or a kind, and a plan may not fit into the memory that is given.
_IF_NAMED = ("StrategyError", "HierarchyError")
_IF_LIMITED = ("CapacityError",)


def ask_library(case: Case) -> None:
    """Ask the library some questions about one graph."""
    draw = case.draw
    edges = draw_edges(draw)
    network = Network(edges)
    graph = None
    try:
        graph, container = library.make_graph(edges, case.folder, draw)
    except Exception as error:
        case.check_error("build", error, None, shown_edges(edges))
        return
    case.count("graphs")
    words = f"{shown_edges(edges)}; as {container}"
    if library.plain_ids(graph) != network.ids:
        case.report("build", "wrong", f"ids are {library.plain_ids(graph)[:20]}, not {network.ids[:20]}", words)
        return
    if draw.random() < 0.25:
        words += _build_hierarchy(case, graph, draw)
    kinds = [kind for kind in QUESTIONS]
    for _ in range(draw.randrange(2, 8)):
        question = draw_question(draw, network, kinds)
        way = library.draw_way(draw, question, "cpu")
        _ask_once(case, graph, question, way, network, f"{words}; {shown_question(question)}; {way}")


def _build_hierarchy(case: Case, graph: Any, draw: Random) -> str:
    metric = draw.choice(["hops", "weights"])
    try:
        graph.hierarchy(metric)
    except Exception as error:
        case.check_error("hierarchy", error, None, f"hierarchy({metric!r})", ("HierarchyError", "InputError"))
        return ""
    return f"; hierarchy {metric}"


def _ask_once(case: Case, graph: Any, question: Question, way: library.Way, network: Network, words: str) -> None:
    wanted = expected(question, network)
    case.count("calls")
    case.count(f"calls, {question.kind}")
    allowed = _IF_NAMED if way.names_strategy else ()
    if "memory" in way.options:
        allowed += _IF_LIMITED
    try:
        found = library.ask(graph, question, way)
    except Exception as error:
        case.check_error(question.kind, error, wanted, words, allowed)
        return
    if isinstance(wanted, Refused):
        case.report(question.kind, "accepted", f"{wanted.why}; {found.rows[:3]}", words)
        return
    if not (way.options.get("stream") and not found.columns):
        case.compare(question.kind, wanted, found, words)
    if case.settings.device == "cuda" and "strategy" not in way.options:
        _ask_on_gpu(case, graph, question, way, found, words)


def _ask_on_gpu(case: Case, graph: Any, question: Question, way: library.Way, found: Table, words: str) -> None:
    """Ask the same of the GPU: the answer must have the same bits as that of the CPU."""
    case.count("calls on the GPU")
    try:
        other = library.ask(graph.to("cuda"), question, way)
    except Exception as error:
        case.check_error(question.kind, error, None, f"{words}; on the GPU", _IF_LIMITED)
        return
    case.count("comparisons")
    wrong = difference(Table(found.columns, found.rows), other)
    if wrong:
        case.report(question.kind, "wrong", f"on the GPU: {wrong}", words)


DOORS: dict[str, tuple[Callable[[Case], None], int]] = {
    "library": (ask_library, 10),
}


def run_case(settings: Settings, number: int) -> Outcome:
    """Run a case and return what became of it."""
    with tempfile.TemporaryDirectory(prefix="kepler-storm-") as place:
        case = Case(settings, number, Path(place))
        names = [name for name in DOORS if not settings.doors or name in settings.doors]
        case.door = case.draw.choices(names, [DOORS[name][1] for name in names])[0]
        case.count("cases")
        case.count(f"cases, {case.door}")
        DOORS[case.door][0](case)
        return case.outcome
