"""Registry of the result kinds of searches from several sources, for the library and the job.

To add a kind, add an entry to ``RESULT_KINDS``, or list it in ``KINDS`` of a plug-in (``plugins``). A kind with
``records="source"`` names the functions that make its records, and a dataclass of its options. ``bfs_many``, ``sssp_many``
and the job support it without another change. This module imports no other module, so that ``--help`` of the job is fast.
Functions import what they need when they are called.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

_VERTICES_PER_PATH = 256  # an estimate, by which parts are sized
GROUP = "group"  # the column of the groups that sources or targets are in


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Options of a result kind: a field each, with a default, and with ``help`` in its metadata.

    A field is a keyword argument of ``bfs_many`` and ``sssp_many``, and a flag and a key of the settings file of the job,
    whose type it has. The metadata may have what ``pipelines.cli.options.setting`` takes. ``__post_init__`` or ``checked``
    raises InputError for a wrong value. ``limit``, if it is not None, is the limit of the searches.
    """

    def checked(self, kind: ResultKind, graph: Any, algorithm: str, numbers: Any = None) -> Any:  # noqa: ARG002
        """Return the options for a graph and sources, given by their vertex numbers; see ``Asked.options``."""
        return self

    @property
    def limit(self) -> float | None:
        return None

    @property
    def rows_per_source(self) -> int:
        """The largest number of records of a source, by which memory and part files are sized."""
        return 1

    def bytes_on_gpu(self, n_sources: int, n_vertices: int) -> int:  # noqa: ARG002
        """Return the bytes that the records of a group of sources need on a GPU while they are computed."""
        return 0

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines a result."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class CutoffOptions(KindOptions):
    """Options of kinds whose searches end at the largest of several distances; ``checked`` returns a ``Reduction``."""

    cutoffs: list[int | float] | None = field(
        default=None,
        metadata={"help": "distances in ascending order; the largest ends each search", "example": (600, 1200)},
    )

    def checked(self, kind: ResultKind, graph: Any, algorithm: str, numbers: Any = None) -> Any:
        return _call("opportunities", "reduction_of", graph, algorithm, kind.name, **vars(self), numbers=numbers)


@dataclass(frozen=True, kw_only=True)
class OpportunityOptions(CutoffOptions):
    """Options of ``opportunities``."""

    values: list[str] | None = field(
        default=None,
        metadata={
            "help": "columns of the --vertices file to add up; vertices that it lacks have 0",
            "example": ("jobs", "schools"),
            "table": "vertices",
        },
    )
    decay: str | None = field(
        default=None,
        metadata={
            "help": "weight of a value by its distance d: exponential:R is exp(-R d), linear:D is 1 - d/D up to D, "
            "gaussian:D is exp(-(d/D)^2/2); default: 1",
            "example": "exponential:0.002",
        },
    )
    source_weights: str | None = None


class RowSize(NamedTuple):
    """The size of the records of a source.

    Attributes
    ----------
    rows, most : int
        Their number, estimated and at most.
    ids, distances, numbers : int
        Columns of ids, of distances, and of other numbers of 8 bytes.
    """

    rows: int
    most: int
    ids: int
    distances: int
    numbers: int

    def row_bytes(self, of_id: int, of_distance: int) -> int:
        """Return the bytes of a row before compression, from those of an id and of a distance."""
        return self.ids * of_id + self.distances * of_distance + 8 * self.numbers


@dataclass(frozen=True, kw_only=True)
class ResultKind:
    """One kind of result, by the name that ``result=`` and ``--result`` take.

    Attributes
    ----------
    name : str
    means : str
        What a record is, for display in the manifest and in every part file. Empty if no file holds the kind.
    columns : tuple of str
        Columns of a frame and of a part file.
    records : {"vertex", "target", "source", "nearest", "matrix", "pair", "path"}
        What a record belongs to. ``"vertex"``: a vertex that a source reaches. ``"target"``: a pair of source and target.
        ``"source"``: one source; ``records_of`` makes these. ``"nearest"``: a vertex in a nearest-source search.
        ``"matrix"``: one source, with its distances to all vertices as a list. The job writes it without targets.
        ``"pair"``: a row of a table of pairs. ``"path"``: a vertex of the path of such a row.
    is_array : bool
        Whether ``bfs_many`` and ``sssp_many`` return an array in place of a frame.
    is_dense : bool
        Whether the array has one column per vertex or target; otherwise it has one bit per vertex.
    algorithms : tuple of str
        Algorithms that support the kind.
    has_predecessors : bool
        Whether a record has a predecessor, so that searches must compute predecessors.
    keeps : {"all", "targets", "counts", "paths"}
        The least output that a plan needs of each search; see ``Query.output``. ``"counts"`` is for hops only.
    is_per_level : bool
        For ``records="source"``: whether a source has one record per level; otherwise it has one record.
    numbers : int
        Number of 8-byte columns in a file, without ids and distances.
    counts_rows : bool
        Whether the histogram of a part file counts the distances of the records, and not all distances of the searches.
    records_of : callable or None
        ``records_of(asked, traversals)`` returns the ``SourceRecords`` of one group.
    of_levels : callable or None
        ``of_levels(asked, counts)`` returns those of the sources whose level counts it gets, in place of ``records_of``
        where distances are hops.
    columns_of : callable or None
        ``columns_of(asked, values)`` returns the columns besides ``source`` of any records, in any order.
    options : tuple of str
        Options of the public functions and of the job that not all kinds take, and this one does, such as ``"targets"``,
        ``"direction"`` (``"in"``); see ``rules``.
    needs : tuple of str
        Those of them without which there is no result.
    options_class : subclass of KindOptions, optional
        The options of the kind, if it has a dataclass of them. ``asked.options`` is an instance.
    names_values : bool
        Whether the user names further columns, by ``values``.
    reads : tuple of str
        The forms of distances, besides an array of rows, that its records are made from; see ``Query.forms``.
    """

    name: str
    means: str
    columns: tuple[str, ...]
    records: Literal["vertex", "target", "source", "nearest", "matrix", "pair", "path"]
    is_array: bool = False
    is_dense: bool = False
    algorithms: tuple[str, ...] = ("bfs", "sssp")
    has_predecessors: bool = False
    keeps: Literal["all", "targets", "counts", "paths"] = "all"
    is_per_level: bool = False
    numbers: int = 0
    counts_rows: bool = False
    records_of: Callable[..., Any] | None = None
    of_levels: Callable[..., Any] | None = None
    columns_of: Callable[..., dict[str, Any]] | None = None
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options_class: type[KindOptions] | None = None
    names_values: bool = False
    reads: tuple[str, ...] = ()

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a part file may have columns of these names, in this order."""
        given, own = tuple(names), self.columns
        if len(set(given)) < len(given):
            return False
        if self.names_values:
            return given[: len(own)] == own and len(given) > len(own)
        if "along" in self.options:
            return given[: len(own)] == own
        if self.is_distances and given == (own[0], own[2], own[1], *own[3:]):  # the order of cugraph.sssp
            return True
        place = int(self.records == "source")  # of the groups
        return given == own or ("groups" in self.options and given == (*own[:place], GROUP, *own[place:]))

    @cached_property
    def all_options(self) -> tuple[str, ...]:
        """Options that not all kinds take, those of its dataclass included."""
        return self.options + (() if self.options_class is None else tuple(each.name for each in fields(self.options_class)))

    @property
    def needs_pairs(self) -> bool:
        """Whether it answers a table of pairs, by ``bfs_pairs``, ``sssp_pairs`` or ``--pairs``."""
        return "pairs" in self.needs

    @property
    def takes_cutoffs(self) -> bool:
        """Whether ``cutoffs`` take the place of one limit of the distance."""
        return "cutoffs" in self.all_options

    @property
    def takes_limits(self) -> bool:
        """Whether each source may have a limit of its own."""
        return not (self.merged or self.takes_cutoffs or self.needs_pairs)

    @property
    def takes_sources(self) -> bool:
        """Whether it is about sources, and not about the whole graph."""
        return "unconnected" not in self.options

    @property
    def in_files(self) -> bool:
        """Whether the job writes the kind."""
        return bool(self.means)

    @property
    def suffix(self) -> str:
        """The ending of the names of part files: a matrix is written as Arrow files, which readers map into memory."""
        return "arrow" if self.records == "matrix" else "parquet"

    @property
    def merged(self) -> bool:
        """Whether a nearest-source search computes it, so that no record is the result of a single source."""
        return self.records == "nearest"

    def bytes_on_gpu(self, question: Any, n_sources: int, n_vertices: int) -> int:
        """Return the bytes that a group of sources needs on a GPU for its records and its statistics, beside the plan."""
        if self.records != "source":
            return 0
        statistics = import_module("..cuda.distance_stats", __package__)
        own = 0 if question.reduction is None else question.reduction.bytes_on_gpu(n_sources, n_vertices)
        return own + statistics.bytes_needed(question.algorithm == "bfs", n_sources, n_vertices)

    def size(self, question: Any, n_vertices: int, depth: int = 0) -> RowSize:
        """Return the number of rows per source and the columns of a row, for memory and the sizes of part files.

        Parameters
        ----------
        question : pipelines.question.Question
        n_vertices, depth : int
            Of the graph, and of one search; 0 if not known.
        """
        rows = most = n_vertices if question.targets is None else len(question.targets)
        n_groups = 1 if question.groups is None else len(question.groups.labels)
        if self.is_per_level:
            most = n_vertices if question.limit is None else int(min(n_vertices, question.limit + 1))
            rows = min(most, 2 * depth + 1 if depth else n_vertices)
        elif self.records == "source":
            rows = most = (question.k or 1) * n_groups if question.reduction is None else question.reduction.rows_per_source
        elif question.pairs is not None:
            rows, most = question.pairs.rows_per_source
            if self.records == "path":
                rows, most = rows * min(n_vertices, _VERTICES_PER_PATH), most * min(n_vertices, 16 * _VERTICES_PER_PATH)
        else:
            rows = most = rows * (question.k or 1) * n_groups
        named: tuple[str, ...] = () if question.along is None else tuple(question.along.values)
        named += tuple(question.reduction.values) if self.names_values and question.reduction is not None else ()
        ids = sum(name in ("source", "vertex", "target", "predecessor") for name in self.columns)
        has_distance = "distance" in self.columns or "eccentricity" in self.columns
        return RowSize(rows, most, 0 if self.records == "matrix" else ids, int(has_distance), self.numbers + len(named))

    @property
    def is_distances(self) -> bool:
        """Whether the records of a source are its distances, which a certificate checks without another traversal."""
        return self.records == "vertex" and "distance" in self.columns

    def keeps_for(self, counts_hops: bool, has_targets: bool) -> str:
        """Return the output that a plan needs of each search; see ``Query.output``."""
        if (self.keeps == "counts" and not counts_hops) or (self.keeps == "targets" and not has_targets):
            return "all"
        return self.keeps


def _call(module: str, function: str, *args: Any, **named: Any) -> Any:
    return getattr(import_module(f".{module}", __package__), function)(*args, **named)


def _made_by(module: str, *functions: str, **others: str) -> dict[str, Any]:
    """Return functions of a module of this package as fields of a kind; the module is imported when one is called."""
    return {name: partial(_call, module, name) for name in functions} | {
        field: partial(_call, module, name) for field, name in others.items()
    }


_KINDS = (
    ResultKind(
        name="distances",
        reads=("sparse",),
        means="a row for each vertex that a source reaches: its distance from that source",
        columns=("source", "vertex", "distance"),
        records="vertex",
        options=("targets", "unreached"),
        **_made_by("distances", records_of="records_of", columns_of="columns_of_records"),
    ),
    ResultKind(
        name="predecessors",
        means="a row for each vertex that a source reaches: its distance from that source, and the vertex before it",
        columns=("source", "vertex", "distance", "predecessor"),
        records="vertex",
        options=("targets", "unreached"),
        has_predecessors=True,
    ),
    ResultKind(
        name="matrix",
        means="a record for each source: its distances to all vertices, in the order of _vertices.pq",
        columns=("source", "distance"),
        records="matrix",
        is_array=True,
        is_dense=True,
        options=("targets",),
        keeps="targets",
    ),
    ResultKind(
        name="summary",
        reads=("interleaved", "sparse"),
        means="a row for each source: figures over the distances to all vertices that it reaches, or "
        "with --direction in from all vertices that reach it",
        columns=("source", "reached", "eccentricity", "sum", "mean", "closeness", "harmonic"),
        records="source",
        options=("direction",),
        keeps="counts",
        numbers=5,
        **_made_by("summary", "of_levels", "records_of", "columns_of"),
    ),
    ResultKind(
        name="levels",
        reads=("sparse",),
        means="a row for each source and hop count: how many vertices lie there",
        columns=("source", "distance", "vertices"),
        records="source",
        algorithms=("bfs",),
        is_per_level=True,
        keeps="counts",
        numbers=1,
        **_made_by("levels", "of_levels", "columns_of"),
    ),
    ResultKind(
        name="targets",
        reads=("sparse",),
        means="a row for each pair of source and target: the distance, null where there is no way",
        columns=("source", "target", "distance"),
        records="target",
        options=("targets",),
        needs=("targets",),
        keeps="targets",
        counts_rows=True,
        **_made_by("targets", "records_of", "columns_of"),
    ),
    ResultKind(
        name="reachable",
        reads=("sparse",),
        means="a row for each vertex that a source reaches, without distances",
        columns=("source", "vertex"),
        records="vertex",
        is_array=True,
        **_made_by("distances", records_of="records_of", columns_of="columns_of_records"),
    ),
    ResultKind(
        name="nearest",
        means="one search from all sources together: a row for each vertex, with the nearest of the sources",
        columns=("vertex", "source", "distance"),
        records="nearest",
    ),
    ResultKind(
        name="k_nearest",
        means="a row for each vertex and rank, and each group if sources have groups: the k nearest of the sources, by "
        "distance and then by source",
        columns=("vertex", "rank", "source", "distance"),
        records="nearest",
        numbers=1,
        options=("k", "groups"),
        needs=("k",),
    ),
    ResultKind(
        name="nearest_targets",
        reads=("sparse",),
        means="a row for each source and rank, and each group if targets have groups: the k nearest of the targets, by "
        "distance and then by target",
        columns=("source", "rank", "target", "distance"),
        records="source",
        numbers=1,
        options=("targets", "k", "groups"),
        needs=("targets", "k"),
        keeps="targets",
        counts_rows=True,
        **_made_by("nearest_targets", "records_of", "columns_of"),
    ),
    ResultKind(
        name="opportunities",
        reads=("sparse",),
        means="a row for each source and cutoff: sums of the attributes of all vertices within it",
        columns=("source", "cutoff"),
        records="source",
        numbers=1,
        **_made_by("opportunities", "records_of", "columns_of"),
        options=("direction",),
        options_class=OpportunityOptions,
        needs=("cutoffs", "values"),
        names_values=True,
    ),
    ResultKind(
        name="within",
        reads=("sparse",),
        means="a row for each source and cutoff: how many vertices are within it",
        columns=("source", "cutoff", "vertices"),
        records="source",
        keeps="counts",
        numbers=2,
        **_made_by("opportunities", "of_levels", "records_of", "columns_of"),
        options=("direction",),
        options_class=CutoffOptions,
        needs=("cutoffs",),
    ),
    ResultKind(
        name="isochrones",
        reads=("sparse",),
        means="a row for each source and vertex within the largest cutoff: the smallest cutoff that holds it",
        columns=("source", "vertex", "band"),
        records="vertex",
        numbers=1,
        options=("geometry",),
        options_class=CutoffOptions,
        needs=("cutoffs",),
        **_made_by("distances", records_of="records_of", columns_of="columns_of_records"),
    ),
    ResultKind(
        name="pairs",
        reads=("sparse",),
        means="a row for each row of the table of pairs: its number in the table, origin and destination, and the "
        "distance, null where there is no way",
        columns=("pair", "source", "target", "distance"),
        records="pair",
        options=("pairs",),
        needs=("pairs",),
        keeps="targets",
        numbers=1,
        counts_rows=True,
        **_made_by("pairs", "records_of", "columns_of"),
    ),
    ResultKind(
        name="paths",
        means="a row for each vertex of the shortest path of each row of the table of pairs: the number of that row, the "
        "row of the edge list that leads to the vertex, and sums of other columns up to it",
        columns=("pair", "source", "position", "vertex", "edge"),
        records="path",
        has_predecessors=True,
        keeps="paths",
        numbers=3,
        **_made_by("paths", "records_of", "columns_of"),
        reads=("sparse",),
        options=("pairs", "along"),
        needs=("pairs",),
    ),
)

RESULT_KINDS = {kind.name: kind for kind in _KINDS}
