"""Questions to the library: how they are asked, and the answers as tables."""

from __future__ import annotations

import sys
import warnings
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
from kepler_traverse.errors import EdgeListWarning
from kepler_traverse.extremes import extremes
from scripts.storm import containers
from scripts.storm.answers import Table, without
from scripts.storm.edges import EdgeList
from scripts.storm.questions import ALL, Question

IN_STREAMS = (
    "distances", "predecessors", "targets", "nearest_targets", "summary", "levels", "opportunities", "within", "streets",
    "isochrones",
)  # fmt: skip
WITH_OTHER_NAMES = {"k_nearest": "nearest", "nearest_targets": "nearest"}
LIMITS = {"bfs": "max_depth", "sssp": "cutoff"}


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
    options: dict = field(default_factory=dict)

    @property
    def names_strategy(self) -> bool:
        return "strategy" in self.options


def make_graph(edges: EdgeList, folder: Path, draw: Random) -> tuple[Any, str]:
    """Return a graph of an edge list that is handed over in some way, and the name of the way."""
    common = {"directed": edges.directed, "edge_ids": True}
    if edges.more_vertices:
        common["vertices"] = np.array(edges.more_vertices)
    if edges.closed:
        common["closed"] = sorted(edges.closed)
    if edges.back is not None:
        table = containers.arrow_table(edges, {"back": edges.back})
        return kt.graph_from_edges(table, reverse_weight="back", **common), "two weights"
    if draw.random() < 0.5:
        name = draw.choice(list(containers.IN_MEMORY))
        made = containers.IN_MEMORY[name](edges, draw)
        columns = made if isinstance(made, tuple) else (made,)
        return kt.graph_from_edges(*columns, **common), name
    name = draw.choice(list(containers.FILES))
    written = containers.FILES[name](edges, folder, draw)
    return kt.read_graph(written.path, device="cpu", **written.options, **common), name


def draw_way(draw: Random, question: Question, device: str) -> Way:
    """Return a way at random to ask a question."""
    options = {}
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeListWarning)  # streets that are parallel edges
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


def plain(column: Any) -> list:
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


def rows_of_matrix(matrix: Any) -> list[tuple]:
    """Return the lines of a matrix, with None where there is no path."""
    lines = np.asarray(to_host(matrix))
    unreached = -1  # of hops
    if lines.dtype.kind == "f":
        unreached = np.inf
    elif lines.dtype == np.int64:
        unreached = np.iinfo(np.int64).max
    return [
        tuple(None if value == unreached else value for value in line) for line in lines.tolist()
    ]


def plain_array(values: Any) -> list:
    """Return the values of an array as Python has them."""
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    return np.asarray(to_host(values)).tolist()


def plain_ids(graph: Any) -> list:
    """Return the ids of all vertices as Python has them."""
    return plain_array(graph.ids)


# Calls.


def _function(question: Question, bfs: str, sssp: str) -> Callable:
    return getattr(kt, bfs if question.algorithm == "bfs" else sssp)


def _ids(ids: Any, way: Way) -> Any:
    if isinstance(ids, str) and ids == ALL:
        return ids
    return containers.IDS[way.ids](ids)


def _options(question: Question, way: Way) -> dict:
    """Return the options of a call; tables are frames, and targets are in the container of the way."""
    options = question.options | way.options
    if "values" in options:
        values = pd.DataFrame(options["values"])
        options["values"] = values.rename_axis("vertex").reset_index()
    if "along" in options:
        options["along"] = pd.DataFrame(options["along"])
    if question.limit is not None:
        options[LIMITS[question.algorithm]] = question.limit
    if question.targets is not None:
        options["targets"] = _ids(question.targets, way)
    return options


def _ask_many(graph: Any, question: Question, way: Way) -> Table:
    function = _function(question, "bfs_many", "sssp_many")
    result = WITH_OTHER_NAMES.get(question.kind, question.kind)
    sources = _ids(question.sources, way)
    found = function(graph, sources, result=result, **_options(question, way))
    stream = way.options.get("stream", False)
    if stream == "arrow":
        return table_of(found.read_all().to_pandas(types_mapper=_null_types))
    if stream:
        frames = [to_host(frame) for frame in found]
        if not frames:
            return Table((), [])
        return table_of(pd.concat(frames, ignore_index=True))
    listed = plain_ids(graph) if question.sources == ALL else question.sources
    if question.kind == "matrix":
        rows = zip(listed, rows_of_matrix(found), strict=True)
        return Table(("source", "distance"), list(rows))
    if question.kind == "reachable":
        return _as_pairs(graph, listed, found)
    return table_of(found)


def _null_types(kind: Any) -> Any:
    """Return the type of pandas that has nulls for an Arrow type, so that integers beyond 2^53 stay exact."""
    return {"int64": pd.Int64Dtype(), "int32": pd.Int32Dtype(), "uint64": pd.UInt64Dtype()}.get(
        str(kind)
    )


def _as_pairs(graph: Any, sources: list, bitmap: Any) -> Table:
    ids = plain_ids(graph)
    bits = np.unpackbits(np.asarray(to_host(bitmap)), axis=1, bitorder="little")[:, : len(ids)]
    rows = [
        (source, ids[v])
        for source, line in zip(sources, bits, strict=True)
        for v in np.flatnonzero(line).tolist()
    ]
    return Table(("source", "vertex"), rows)


def _ask_one(graph: Any, question: Question, way: Way) -> Table:
    function = _function(question, "bfs", "sssp")
    return table_of(function(graph, question.sources[0], **_options(question, way)))


def _columns(question: Question, way: Way) -> tuple[Any, Any]:
    pairs = question.pairs or []
    return tuple(containers.IDS[way.ids]([pair[end] for pair in pairs]) for end in (0, 1))


def _ask_pairs(graph: Any, question: Question, way: Way) -> Table:
    if question.pairs is None:
        return _ask_many(graph, question, way)
    function = _function(question, "bfs_pairs", "sssp_pairs")
    columns = _columns(question, way)
    return table_of(function(graph, *columns, result=question.kind, **_options(question, way)))


def _ask_paths(graph: Any, question: Question, way: Way) -> Table:
    options = _options(question, way) | {"algorithm": question.algorithm, "edges": True}
    pairs = _columns(question, way)
    # A tuple of two tuples would be two pairs, and one of two iterators has no columns.
    if way.ids in ("tuple", "iterator"):
        rows = list(map(tuple, question.pairs or []))
        pairs = rows if way.ids == "tuple" else iter(rows)
    return table_of(kt.paths(graph, pairs, **options))


def _ask_betweenness(graph: Any, question: Question, way: Way) -> Table:
    found = _ask_many(graph, question, way)
    if "edge" in found.columns:
        return without(found, "edge")
    return found


def _ask_extremes(graph: Any, question: Question, way: Way) -> Table:
    found = extremes(graph, algorithm=question.algorithm, unconnected="largest", **way.options)
    rows = [("center", vertex, found.radius) for vertex in plain_array(found.center)]
    rows += [("periphery", vertex, found.diameter) for vertex in plain_array(found.periphery)]
    return Table(("set", "vertex", "eccentricity"), rows)


def _ask_plan(graph: Any, question: Question, way: Way) -> Table:
    """Run the groups of a question by one plan, which was made for the first one."""
    planning = _function(question, "plan_bfs_many", "plan_sssp_many")
    options = _options(question, way)
    groups = options.pop("groups")
    plan = planning(graph, n_sources=len(groups[0]), **options)
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
    "flows": _ask_pairs,
    "betweenness": _ask_betweenness,
    "extremes": _ask_extremes,
    "plan": _ask_plan,
}
