"""Questions to the library: how they are asked, and the answers as tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

import kepler_traverse as kt
from kepler_traverse.extremes import extremes
from scripts.storm import containers
from scripts.storm.answers import Table
from scripts.storm.edges import EdgeList
from scripts.storm.questions import ALL, Question

IN_STREAMS = (
    "distances", "predecessors", "targets", "nearest_targets", "summary", "levels", "opportunities", "within", "isochrones",
)  # fmt: skip
WITH_OTHER_NAMES = {"k_nearest": "nearest", "nearest_targets": "nearest"}
_LIMITS = {"bfs": "max_depth", "sssp": "cutoff"}


@dataclass(frozen=True)
class Way:
    """How a question is asked of the library; each is drawn beside the question.

    Attributes
    ----------
    ids : str
        The container of ids: a name of ``containers.IDS``.
    options : mapping
        ``strategy``, ``memory`` and ``stream``.
    """

    ids: str = "list"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def names_strategy(self) -> bool:
        return "strategy" in self.options


def make_graph(edges: EdgeList, folder: Path, draw: Random) -> tuple[Any, str]:
    """Return a graph of an edge list that is handed over in some way, and the name of the way."""
    vertices = np.array(edges.more_vertices) if edges.more_vertices else None
    common: dict[str, Any] = {"directed": edges.directed, "edge_ids": True}
    if vertices is not None:
        common["vertices"] = vertices
    if edges.closed:
        common["closed"] = sorted(edges.closed)
    if edges.back is not None:
        table = containers.arrow_table(edges, {"back": edges.back})
        return kt.graph_from_edges(table, reverse_weight="back", **common), "two weights"
    if draw.random() < 0.5:
        name = draw.choice(list(containers.IN_MEMORY))
        made = containers.IN_MEMORY[name](edges, draw)
        is_columns = isinstance(made, tuple)
        graph = (
            kt.graph_from_edges(*made, **common)
            if is_columns
            else kt.graph_from_edges(made, **common)
        )
        return graph, name
    name = draw.choice(list(containers.FILES))
    written = containers.FILES[name](edges, folder, draw)
    return kt.read_graph(written.path, device="cpu", **written.options, **common), name


def draw_way(draw: Random, question: Question, device: str) -> Way:
    """Return a way at random to ask a question."""
    options: dict[str, Any] = {}
    has_searches = question.kind != "extremes"
    if has_searches and draw.random() < 0.4:
        options["strategy"] = draw.choice(strategies_for(question, device))
    has_groups = question.kind not in ("one", "extremes", "plan")
    if has_groups and draw.random() < 0.25:
        options["memory"] = draw.choice([4_000, 50_000, 1 << 20, 1 << 24])
    if question.kind in IN_STREAMS and draw.random() < 0.2:
        options["stream"] = draw.choice([True, "arrow"])
    return Way(draw.choice(list(containers.IDS)), options)


def strategies_for(question: Question, device: str) -> list[str]:
    """Return the names of the strategies of a device that may answer a question."""
    listed = kt.strategies()
    fits = (listed["algorithm"] == question.algorithm) & (listed["device"] == device)
    if question.kind in ("one", "nearest"):
        fits &= listed["sources"] == "one"
    return sorted(set(listed[fits]["name"]))


def ask(graph: Any, question: Question, way: Way) -> Table:
    """Ask the library, and return its answer as a table. Errors of the library are not caught."""
    return _ASK.get(question.kind, _ask_many)(graph, question, way)


class _Series(pd.Series):
    """What the library calls of a Series of cuDF, in host memory."""

    def __init__(self, values: Any = None, **options: Any):
        super().__init__(to_host(values), **options)

    @staticmethod
    def from_arrow(values: Any) -> pd.Series:
        return pd.Series(values.to_pandas())

    def mask(self, is_null: Any) -> pd.Series:
        values = pd.array(np.asarray(self), dtype=str(self.dtype).capitalize())
        values[np.asarray(to_host(is_null))] = pd.NA
        return pd.Series(values)


def use_pandas_without_cudf() -> None:
    """Let frames of a GPU be those of pandas, on a machine that has CuPy and no cuDF."""
    if "cudf" in sys.modules or find_spec("cudf") is not None:
        return
    stand_in = SimpleNamespace(DataFrame=pd.DataFrame, Series=_Series, concat=pd.concat)
    sys.modules["cudf"] = cast(Any, stand_in)


# Frames and arrays as tables.


def to_host(found: Any) -> Any:
    """Return a frame or an array of a GPU as one of pandas or NumPy."""
    if hasattr(found, "to_pandas"):
        return found.to_pandas()
    is_of_pandas = isinstance(found, (pd.DataFrame, pd.Series))
    if hasattr(found, "get") and not is_of_pandas:
        return found.get()
    return found


def plain(column: Any) -> list[Any]:
    """Return the values of a column as Python has them, None for null."""
    return [
        None if value is pd.NA or value is None or value != value else value
        for value in column.astype(object).tolist()
    ]


def table_of(found: Any) -> Table:
    """Return a frame as a table."""
    frame = to_host(found)
    columns = [plain(frame[name]) for name in frame.columns]
    lost = frame.attrs.get("kepler_traverse.lost")
    return Table(
        tuple(frame.columns),
        list(zip(*columns, strict=True)),
        lost=None if lost is None else (lost["pairs"], lost["volume"]),
    )


def rows_of_matrix(matrix: Any) -> list[tuple[Any, ...]]:
    """Return the lines of a matrix, with None where there is no path."""
    lines = np.asarray(to_host(matrix))
    if lines.dtype.kind == "f":
        return [
            tuple(None if value == np.inf else value for value in line) for line in lines.tolist()
        ]
    unreached = np.iinfo(np.int64).max if lines.dtype == np.int64 else -1  # sums, or hops
    return [
        tuple(None if value == unreached else value for value in line) for line in lines.tolist()
    ]


# Calls.


def _limit(question: Question) -> dict[str, Any]:
    if question.limit is None:
        return {}
    return {_LIMITS[question.algorithm]: question.limit}


def _ids(ids: Any, way: Way) -> Any:
    if isinstance(ids, str) and ids == ALL:
        return ids
    return containers.IDS[way.ids](ids)


def _values(given: dict[str, dict[Any, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(given)
    return frame.rename_axis("vertex").reset_index()


def _options(question: Question) -> dict[str, Any]:
    options = dict(question.options)
    if "values" in options:
        options["values"] = _values(options["values"])
    if "along" in options:
        options["along"] = pd.DataFrame(options["along"])
    return options


def _ask_many(graph: Any, question: Question, way: Way) -> Table:
    function: Callable[..., Any] = kt.bfs_many if question.algorithm == "bfs" else kt.sssp_many
    options = _options(question) | _limit(question) | way.options
    if question.targets is not None:
        options["targets"] = _ids(question.targets, way)
    result = WITH_OTHER_NAMES.get(question.kind, question.kind)
    found = function(graph, _ids(question.sources, way), result=result, **options)
    stream = way.options.get("stream", False)
    if stream == "arrow":
        return table_of(found.read_all().to_pandas(types_mapper=_null_types))
    if stream:
        frames = [to_host(frame) for frame in found]
        if frames:
            return table_of(pd.concat(frames, ignore_index=True))
        return Table((), [])
    if question.kind == "matrix":
        return _as_lines(graph, question, rows_of_matrix(found))
    if question.kind == "reachable":
        return _as_pairs(graph, question, found)
    return table_of(found)


def _null_types(kind: Any) -> Any:
    """Return the type of pandas that has nulls for an Arrow type, so that integers beyond 2^53 stay exact."""
    return {"int64": pd.Int64Dtype(), "int32": pd.Int32Dtype(), "uint64": pd.UInt64Dtype()}.get(
        str(kind)
    )


def _listed_sources(graph: Any, question: Question) -> list[Any]:
    if question.sources == ALL:
        return plain_ids(graph)
    return list(question.sources)


def plain_ids(graph: Any) -> list[Any]:
    """Return the ids of all vertices as Python has them."""
    ids = graph.ids
    if hasattr(ids, "to_pylist"):
        return ids.to_pylist()
    return np.asarray(to_host(ids)).tolist()


def _as_lines(graph: Any, question: Question, lines: list[tuple[Any, ...]]) -> Table:
    sources = _listed_sources(graph, question)
    return Table(("source", "distance"), list(zip(sources, lines, strict=True)))


def _as_pairs(graph: Any, question: Question, bitmap: Any) -> Table:
    ids = plain_ids(graph)
    bits = np.unpackbits(np.asarray(to_host(bitmap)), axis=1, bitorder="little")[:, : len(ids)]
    sources = _listed_sources(graph, question)
    rows = [
        (source, ids[v])
        for source, line in zip(sources, bits, strict=True)
        for v in np.flatnonzero(line).tolist()
    ]
    return Table(("source", "vertex"), rows)


def _ask_one(graph: Any, question: Question, way: Way) -> Table:
    function: Callable[..., Any] = kt.bfs if question.algorithm == "bfs" else kt.sssp
    options = dict(question.options) | _limit(question) | way.options
    if question.targets is not None:
        options["targets"] = _ids(question.targets, way)
    return table_of(function(graph, question.sources[0], **options))


def _columns(question: Question, way: Way) -> tuple[Any, Any]:
    pairs = question.pairs or []
    origins, destinations = ([pair[end] for pair in pairs] for end in (0, 1))
    return containers.IDS[way.ids](origins), containers.IDS[way.ids](destinations)


def _ask_pairs(graph: Any, question: Question, way: Way) -> Table:
    function: Callable[..., Any] = kt.bfs_pairs if question.algorithm == "bfs" else kt.sssp_pairs
    options = _options(question) | _limit(question) | way.options
    return table_of(function(graph, *_columns(question, way), **options))


def _ask_paths(graph: Any, question: Question, way: Way) -> Table:
    options = _options(question) | {"algorithm": question.algorithm, "edges": True}
    pairs: Any = _columns(question, way)
    # A tuple of two tuples would be two pairs, and one of two iterators has no columns.
    if way.ids == "tuple":
        pairs = list(map(tuple, question.pairs or []))
    elif way.ids == "iterator":
        pairs = iter(list(map(tuple, question.pairs or [])))
    return table_of(kt.paths(graph, pairs, **options, **way.options))


def _ask_flows(graph: Any, question: Question, way: Way) -> Table:
    if question.pairs is None:
        return _ask_many(graph, question, way)
    function: Callable[..., Any] = kt.bfs_pairs if question.algorithm == "bfs" else kt.sssp_pairs
    options = dict(question.options) | _limit(question) | way.options
    return table_of(function(graph, *_columns(question, way), result="flows", **options))


def _ask_betweenness(graph: Any, question: Question, way: Way) -> Table:
    found = _ask_many(graph, question, way)
    if "edge" not in found.columns:
        return found
    place = found.columns.index("edge")
    columns = tuple(name for name in found.columns if name != "edge")
    rows = [tuple(value for at, value in enumerate(row) if at != place) for row in found.rows]
    return Table(columns, rows)


def _ask_extremes(graph: Any, question: Question, way: Way) -> Table:
    found = extremes(graph, algorithm=question.algorithm, unconnected="largest", **way.options)
    center, periphery = (_plain_array(vertices) for vertices in (found.center, found.periphery))
    rows = [("center", vertex, found.radius) for vertex in center]
    rows += [("periphery", vertex, found.diameter) for vertex in periphery]
    return Table(("set", "vertex", "eccentricity"), rows)


def _plain_array(values: Any) -> list[Any]:
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    return np.asarray(to_host(values)).tolist()


def _ask_plan(graph: Any, question: Question, way: Way) -> Table:
    """Run the groups of a question by one plan, which was made for the first one."""
    planning: Callable[..., Any] = (
        kt.plan_bfs_many if question.algorithm == "bfs" else kt.plan_sssp_many
    )
    groups = question.options["groups"]
    plan = planning(graph, n_sources=len(groups[0]), **_limit(question), **way.options)
    rows = []
    for place, group in enumerate(groups):
        numbers = np.asarray(to_host(graph.to_numbers(group)))
        found = [plan.run(numbers)] if numbers.size <= plan.group else plan.iter_groups(numbers)
        lines = [line for each in found for line in rows_of_matrix(each.distance)]
        rows += [(place, source, line) for source, line in zip(group, lines, strict=True)]
    return Table(("group", "source", "distance"), rows)


_ASK: dict[str, Callable[[Any, Question, Way], Table]] = {
    "one": _ask_one,
    "pairs": _ask_pairs,
    "paths": _ask_paths,
    "flows": _ask_flows,
    "betweenness": _ask_betweenness,
    "extremes": _ask_extremes,
    "plan": _ask_plan,
}
