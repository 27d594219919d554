"""Cases of Ctrl-C: a call of the library is interrupted at some moment, and the next call must be right."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from scripts.storm import containers, library
from scripts.storm.answers import Table, difference
from scripts.storm.case import Case, shown_question
from scripts.storm.edges import INTEGERS, EdgeList
from scripts.storm.oracle import Network
from scripts.storm.questions import ALL, QUESTIONS, Question, draw_question

_N_VERTICES = 3_000
_N_SOURCES = 150
_MOMENTS = (0.0, 0.002, 0.01, 0.03, 0.1, 0.3)  # seconds
KINDS = tuple(kind for kind in QUESTIONS if kind not in ("one", "plan"))


def _draw_graph(draw: Random) -> tuple[Network, Any]:
    """Return a graph whose searches take a while."""
    n = _N_VERTICES
    rows = [(v, v + 1, draw.randrange(1, 50)) for v in range(n - 1)]
    rows += [
        (draw.randrange(n), min(n - 1, draw.randrange(n)), draw.randrange(1, 500)) for _ in range(n)
    ]
    edges = EdgeList(rows, draw.random() < 0.5, INTEGERS)
    table = containers.IN_MEMORY["mapping"](edges, draw)
    graph = library.kt.graph_from_edges(table, directed=edges.directed, edge_ids=True)
    return Network(edges), graph


def _longer(question: Question, draw: Random, network: Network) -> Question:
    """Return a question of many sources, or of many pairs."""
    if question.pairs is not None:
        pairs = [
            (draw.choice(network.ids), draw.choice(network.ids)) for _ in range(4 * _N_SOURCES)
        ]
        options = {name: value for name, value in question.options.items() if name != "volumes"}
        return replace(question, pairs=pairs, options=options)
    if question.sources is None or question.sources == ALL:
        return question
    unlike = ("groups", "source_weights", "start_costs")
    options = {name: value for name, value in question.options.items() if name not in unlike}
    sources = draw.sample(network.ids, _N_SOURCES)
    limit = None if isinstance(question.limit, list) else question.limit
    return replace(question, sources=sources, options=options, limit=limit)


@contextlib.contextmanager
def _interrupted(seconds: float) -> Iterator[None]:
    """Send this process SIGINT after some time, if the block has not ended by then; at the end it has come or never will."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            timer.cancel()
            timer.join()
            time.sleep(0.001)  # so that a signal that has been sent is heard here
        signal.signal(signal.SIGINT, before)


def run_interrupted(case: Case) -> None:
    """Ask some questions about one graph, of which each is interrupted first, and asked twice then."""
    draw = case.draw
    network, graph = _draw_graph(draw)
    for _ in range(draw.randrange(2, 6)):
        kind = draw.choice(KINDS)
        question = _longer(draw_question(draw, network, [kind]), draw, network)
        way = library.draw_way(draw, question, "cpu")
        way = replace(
            way, options={name: value for name, value in way.options.items() if name != "memory"}
        )
        moment = draw.choice(_MOMENTS) * draw.uniform(0.5, 1.5)
        _ask_interrupted(case, graph, question, way, moment)


def _ask_interrupted(
    case: Case, graph: Any, question: Question, way: library.Way, moment: float
) -> None:
    words = f"{_N_VERTICES} vertices in a chain with shortcuts; {shown_question(question)}; {way}; SIGINT after {moment:.4f} s"  # noqa: E501
    case.count("calls")
    case.count(f"calls, {question.kind}")
    first = None
    allowed = ("StrategyError", "HierarchyError")
    try:
        with _interrupted(moment):
            first = library.ask(graph, question, way)
    except KeyboardInterrupt:
        case.count("interrupts")
    except Exception as error:
        case.check_error(question.kind, error, None, words, allowed)
    try:
        again = library.ask(graph, question, way)
        once_more = library.ask(graph, question, library.Way())
    except Exception as error:
        case.check_error(question.kind, error, None, f"{words}; asked again", allowed)
        return
    for found in (first, once_more):
        if found is not None and found.columns and again.columns:
            case.count("comparisons")
            wrong = difference(Table(again.columns, again.rows), found)
            if wrong:
                case.report(question.kind, "wrong", f"after an interrupt: {wrong}", words)
