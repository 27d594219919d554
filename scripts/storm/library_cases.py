"""Cases of the library: a graph that is handed over in some way, and some questions about it."""

from __future__ import annotations

from random import Random
from typing import Any

from scripts.storm import library
from scripts.storm.answers import Refused, Table, difference, expected
from scripts.storm.case import Case, shown_edges, shown_question
from scripts.storm.edges import closed_in_part, draw_edges
from scripts.storm.oracle import Network
from scripts.storm.questions import QUESTIONS, Question, draw_question

# A strategy that is named may not take a graph or a kind, and a plan may not fit into the memory that is given.
_IF_NAMED = ("StrategyError", "HierarchyError")
_IF_LIMITED = ("CapacityError",)


def ask_library(case: Case) -> None:
    """Ask the library some questions about one graph."""
    draw = case.draw
    edges = closed_in_part(draw, draw_edges(draw))
    network = Network(edges)
    graph = None
    try:
        graph, container = library.make_graph(edges, case.folder, draw)
    except Exception as error:
        case.check_error("build", error, None, shown_edges(edges))
        return
    case.count("graphs")
    words = f"{shown_edges(edges)}; as {container}"
    # A closed vertex has two numbers.
    if list(dict.fromkeys(library.plain_ids(graph))) != network.ids:
        case.report(
            "build",
            "wrong",
            f"ids are {library.plain_ids(graph)[:20]}, not {network.ids[:20]}",
            words,
        )
        return
    if draw.random() < 0.25:
        words += _build(case, graph, draw)
    kinds = list(QUESTIONS)
    for _ in range(draw.randrange(2, 8)):
        question = draw_question(draw, network, kinds)
        way = library.draw_way(draw, question, "cpu")
        _ask_once(
            case, graph, question, way, network, f"{words}; {shown_question(question)}; {way}"
        )


def _build(case: Case, graph: Any, draw: Random) -> str:
    """Build a hierarchy, or hub labels over one."""
    what = draw.choice(["hierarchy", "labels"])
    metric = draw.choice(["hops", "weights"])
    try:
        getattr(graph, what)(metric)
    except Exception as error:
        case.check_error(what, error, None, f"{what}({metric!r})", ("HierarchyError", "InputError"))
        return ""
    return f"; {what} {metric}"


def _ask_once(
    case: Case, graph: Any, question: Question, way: library.Way, network: Network, words: str
) -> None:
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
        if not wanted.may_answer:
            case.report(question.kind, "accepted", f"{wanted.why}; {found.rows[:3]}", words)
        return
    if not (way.options.get("stream") and not found.columns):
        case.compare(question.kind, wanted, found, words)
    if case.settings.device == "cuda":
        _ask_on_gpu(case, graph, question, way, found, words)


def _ask_on_gpu(
    case: Case, graph: Any, question: Question, way: library.Way, found: Table, words: str
) -> None:
    """Ask the same of the GPU, now and then by another strategy: the answer must have the same bits as that of the CPU."""
    # so that the CPU is asked alike
    draw = Random(f"{case.settings.seed}:{case.number}:{shown_question(question)}")
    options = {name: value for name, value in way.options.items() if name != "strategy"}
    if draw.random() < 0.4 and question.kind != "extremes":
        options["strategy"] = draw.choice(library.strategies_for(question, "cuda"))
    other_way = library.Way(way.ids, options)
    words = f"{words}; on the GPU {other_way}"
    case.count("calls on the GPU")
    try:
        other = library.ask(graph.to("cuda"), question, other_way)
    except Exception as error:
        case.check_error(question.kind, error, None, words, (*_IF_NAMED, *_IF_LIMITED))
        return
    if not other.columns:
        return
    case.count("comparisons")
    wrong = difference(Table(found.columns, found.rows), other)
    if wrong:
        case.report(question.kind, "wrong", f"on the GPU: {wrong}", words)
