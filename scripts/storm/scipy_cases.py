"""Cases of ``kepler_traverse.csgraph``: a sparse matrix, and SciPy's functions on this library."""

from __future__ import annotations

import warnings
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import scipy.sparse

from kepler_traverse import csgraph
from scripts.storm.answers import Expected, Refused, Table, expected
from scripts.storm.case import Case, shown_edges
from scripts.storm.edges import EdgeList, draw_edges
from scripts.storm.oracle import NegativeCycle, Network, Unrepresentable
from scripts.storm.questions import Question

_NO_VERTEX = -9999
FUNCTIONS = ("dijkstra", "bellman_ford", "shortest_path", "johnson")
_OF_ALL_VERTICES = ("shortest_path",)
_SEE_EVERY_CYCLE = ("shortest_path", "johnson")
_LARGEST = 2**52


def _as_numbers(edges: EdgeList) -> EdgeList:
    """Return an edge list whose ids are 0 to n - 1, with one row per pair of ends."""
    network = Network(edges)
    rank = network.rank
    rows = [
        (rank[u], rank[v], weight) for u, arcs in network.arcs.items() for v, weight in arcs.items()
    ]
    return replace(edges, rows=rows, directed=True, more_vertices=list(rank.values()))


def _matrix(edges: EdgeList, draw: Random) -> Any:
    n = len(edges.more_vertices)
    kind = {"int64": np.int64, "float32": np.float32}.get(edges.weights, np.float64)
    weights = np.array([1 if weight is None else weight for _, _, weight in edges.rows], kind)
    ends = np.array([row[:2] for row in edges.rows], np.int32).reshape(-1, 2)
    matrix = scipy.sparse.coo_array((weights, (ends[:, 0], ends[:, 1])), shape=(n, n))
    return matrix.asformat(draw.choice(["csr", "csc", "coo", "lil"]))


def _draw_matrix(case: Case) -> tuple[EdgeList, Any]:
    """Return an edge list and the same as a matrix; a zero of a matrix of SciPy may be an edge or none, so there is none."""
    while True:
        edges = _as_numbers(draw_edges(case.draw))
        weights = [weight for _, _, weight in edges.rows if weight is not None]
        if all(weight and abs(weight) < _LARGEST for weight in weights):
            return edges, _matrix(edges, case.draw)


def ask_scipy(case: Case) -> None:
    """Call some functions on one matrix."""
    draw = case.draw
    edges, matrix = _draw_matrix(case)
    for _ in range(draw.randrange(1, 5)):
        name = draw.choice(FUNCTIONS)
        is_unweighted = not edges.is_weighted or draw.random() < 0.3
        options = {
            "directed": draw.random() < 0.6,
            "return_predecessors": draw.random() < 0.5,
        }
        if is_unweighted:
            options["unweighted"] = True
        if draw.random() < 0.7 or name in _OF_ALL_VERTICES:
            sources = draw.choices(range(matrix.shape[0]), k=draw.randrange(1, 6))
            options["indices"] = sources
        else:
            sources = list(range(matrix.shape[0]))
        limit = None
        if name == "dijkstra" and draw.random() < 0.3:
            limit = options["limit"] = draw.choice([0, 1, 2.5, 7, 19.999999999, 100])
        sums = "float64" if edges.weights == "float32" else edges.weights  # as in SciPy
        asked = replace(edges, directed=options["directed"], weights=sums)
        question = Question("matrix", "bfs" if is_unweighted else "sssp", sources, limit=limit)
        _call(case, asked, matrix, question, name, options)


def _wanted(question: Question, network: Network, name: str) -> Expected:
    """Return what must come: some functions refuse a negative cycle that no source reaches, as SciPy's do."""
    if name in _SEE_EVERY_CYCLE:
        try:
            network.lengths(question.algorithm).distances(network.ids)
        except NegativeCycle as error:
            return Refused(("NegativeCycleError",), str(error))
        except Unrepresentable:
            pass  # from another source, perhaps
    return expected(question, network)


def _call(
    case: Case, edges: EdgeList, matrix: Any, question: Question, name: str, options: dict
) -> None:
    network = Network(edges)
    wanted = _wanted(question, network, name)
    words = f"csgraph.{name}({matrix.format}, {options}); {shown_edges(edges)}"
    case.count("calls")
    case.count("calls, csgraph")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of negative weights
            found = getattr(csgraph, name)(matrix, **options)
    except Exception as error:
        case.check_error(name, error, wanted, words)
        return
    if isinstance(wanted, Refused):
        if not wanted.may_answer:
            case.report(name, "accepted", wanted.why, words)
        return
    distances, predecessors = found if options["return_predecessors"] else (found, None)
    lines = [
        tuple(None if value == np.inf else value for value in line) for line in distances.tolist()
    ]
    case.compare(
        name, wanted, Table(wanted.columns, list(zip(question.sources, lines, strict=True))), words
    )
    if predecessors is not None:
        case.count("comparisons")
        wrong = _check_predecessors(network, question, wanted, predecessors)
        if wrong:
            case.report(name, "wrong", wrong, words)


def _check_predecessors(network: Network, question: Question, wanted: Table, found: Any) -> str:
    """Return what is wrong with predecessors: each must explain the distance of its vertex."""
    lengths = network.lengths(question.algorithm)
    for (source, line), before in zip(wanted.rows, found.tolist(), strict=True):
        distance = {v: value for v, value in enumerate(line) if value is not None}
        for vertex, predecessor in enumerate(before):
            if vertex == source or vertex not in distance:
                if predecessor != _NO_VERTEX:
                    return f"from {source}: the predecessor of {vertex} is {predecessor}, and it has none"
            elif (
                predecessor == _NO_VERTEX
                and question.limit is not None
                and lengths.has_negative_arcs
            ):
                continue  # its path leads through a vertex beyond the limit, which has no row
            elif predecessor not in lengths.tight_arcs_into(vertex, distance):
                return f"from {source}: {predecessor} is no predecessor of {vertex}"
    return ""
