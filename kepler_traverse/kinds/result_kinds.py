"""Registry of the result kinds of searches from several sources, for the library and the job.

To add a kind, list it in ``KINDS`` of a new module beside this one, or of a plug-in (``plugins``);
or, so that ``--help`` of the job imports nothing for it, add an entry here and its functions
beside. A kind says what a search must compute, which functions make the records, how many a source
has, and how they lie in files; the defaults are those of kinds whose records belong to one source
each. ``bfs_many``, ``sssp_many`` and the job support it without another change. This module imports
no large package. Functions import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple

from ..errors import option_text, several
from .constraints import Constraint, is_value, needs, not_both

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OptionsT = TypeVar("OptionsT", bound="KindOptions", default=Any)
else:
    from typing import TypeVar

    OptionsT = TypeVar("OptionsT")

GROUP = "group"  # the column of the groups that sources or targets are in
# the columns that hold ids of vertices
ID_COLUMNS = ("source", "vertex", "target", "predecessor", "hub")


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Options of a result kind: a field each, with a default, and with ``help`` in its metadata.

    A field is a keyword argument of ``bfs_many`` and ``sssp_many`` unless its metadata has
    ``library=False``. It is a flag and a key of the settings file of the job, whose type it has,
    unless it has ``job=False``. The metadata may have what ``pipelines.cli.options.setting`` takes.
    It may have ``setting``, which is the key if that is another (with ``job=False``, that of a
    setting of all kinds), and ``column``, which is the role of a column of its ``table`` that the
    job reads in place of a flag. ``__post_init__`` or ``checked`` raises InputError for a wrong
    value. ``limit``, if it is not None, is the limit of the searches.
    """

    # The module of this package whose ``check_options(options, kind, graph, algorithm, numbers)``
    # returns the checked ones.
    checked_by: ClassVar[str] = ""
    # Where a kind has no such option: how vertices without a path are shown, the order of the rows
    # of a part file, and the columns that the user names.
    unreached: ClassVar[Any] = "omit"
    sort: ClassVar[Any] = "source"
    values: ClassVar[Any] = MappingProxyType({})
    # whether a manifest records one digest of all options, called ``reduction``, in place of each
    # option by its name
    is_recorded_whole: ClassVar[bool] = False
    # the rules of the options of this kind; those of options of all kinds are in ``rules``
    constraints: ClassVar[tuple[Constraint, ...]] = ()

    def checked(self, kind: ResultKind, graph: Any, algorithm: str, **numbers: Any) -> Any:
        """Return the options with checked values, as ``Asked.options`` has them; raise InputError
        if one is wrong. A class without ``checked_by`` returns its options as they are.

        ``kind`` is the result kind, and ``algorithm`` is "bfs" or "sssp". ``numbers`` may have
        ``sources`` and ``targets``, int64 vertex numbers, and ``pairs``, a ``PairTable``. An option
        with a value per source or target has its values in the order of these. If ``sources`` are
        not there, such options keep the form in which the job has read them.
        """
        if not self.checked_by:
            return self
        return _call(self.checked_by, "check_options", self, kind, graph, algorithm, numbers)

    @property
    def limit(self) -> float | None:
        """The largest distance up to which the searches go, if the options set one; else None."""
        return None

    @property
    def walks(self) -> Any:
        """The columns of the edge list that are added up along the paths, ``AlongPaths``; None if
        there are none.

        The paths may be walked back along the distances. So the searches then return the distances
        of all vertices.
        """
        return None

    @property
    def rows_per_source(self) -> int:
        """The largest number of records of a source, by which memory and part files are sized."""
        return 1

    def bytes_on_gpu(self, n_sources: int, n_vertices: int) -> int:  # noqa: ARG002
        """Return the bytes that the records of a group of ``n_sources`` sources need on a GPU while
        they are computed, in a graph of ``n_vertices`` vertices.

        They are 0, and both arguments are ignored, unless a subclass returns its own number.
        """
        return 0

    def of_query(self, targets: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return further fields of the ``Query`` of the searches, by name: none, unless a subclass
        has some.

        ``targets``, which is ignored here, are vertex numbers, or None if the user gives no
        targets.
        """
        return {}

    @classmethod
    def notes_on_edges(cls, built: Mapping[str, Any]) -> list[str]:  # noqa: ARG003
        """Return sentences that say which rows of the edge list the result leaves out: none, unless
        a subclass has some.

        ``built``, which is ignored here, has the fields of a ``BuildReport`` by name, such as the
        number of self-loops.
        """
        return []

    @property
    def recorded(self) -> dict[str, Any]:
        """What identifies the options in a manifest: by name, those that are not the default. A
        table is represented by its digest.
        """
        recorded = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if value != option.default:
                recorded[option.name] = getattr(value, "digest", value)
        return recorded


PLAIN = KindOptions()  # of kinds without an option


@dataclass(frozen=True, kw_only=True)
class UnreachedOptions(KindOptions):
    """Options of ``distances`` and ``predecessors``: how vertices without a path are shown, and how
    the rows of a part file are sorted.
    """

    checked_by = "distances"
    unreached: Literal["omit", "null", "cugraph"] = field(  # type: ignore[misc]
        default="omit",
        metadata={
            "help": "vertices without a path have no row, a row with nulls, or the marks, types and order of columns of "
            "cuGraph"
        },
    )
    sort: Literal["source", "distance"] = field(  # type: ignore[misc]
        default="source",
        metadata={
            "library": False,
            "help": "order of the rows of a part file: by source and vertex; or by distance, so that a query for small "
            "distances reads little, while a part takes more memory and disk",
        },
    )


_ALONG = {
    "example": ("metres", "toll"),
    "help": "columns of the edge list to add up along the shortest paths: one column each. Of paths it is the sum "
    "from the origin up to the vertex, of streets that within a cutoff",
}


@dataclass(frozen=True, kw_only=True)
class AlongOptions(KindOptions):
    """Options of kinds that add up columns of the edge list along paths; ``checked`` returns
    ``AlongPaths``.
    """

    checked_by = "along"
    # The names of the columns, or from the library a table with these columns. Once checked, it is
    # ``AlongPaths``, which has the values; None if no column is added up.
    along: list[str] | None = field(default=None, metadata=_ALONG)

    @property
    def walks(self) -> Any:
        """The columns that are added up along the paths, ``AlongPaths`` once the options are
        checked; None if there are none.
        """
        return self.along

    @property
    def values(self) -> Mapping[str, Any]:
        """The columns that are added up, by the names that the user gives them; each is also a
        column of the result. The values are int64 or float64, one per row of the edge list; empty
        if no column is added up.
        """
        columns: Any = self.along
        return {} if columns is None else columns.values


@dataclass(frozen=True, kw_only=True)
class NearestSourceOptions(AlongOptions):
    """Options of ``nearest``; ``checked`` returns start costs as ``SourceValues``, and columns to
    sum as ``AlongPaths``.
    """

    checked_by = "nearest"
    constraints = (
        Constraint(
            names=("start_costs",),
            violated=lambda given: given.is_given("start_costs") and given.algorithm == "bfs",
            why="{0} adds to sums of weights, and bfs counts hops",
            remedy="take sssp, or leave it out",
        ),
    )
    start_costs: Any = field(
        default=None,
        metadata={
            "table": "sources",
            "column": "start_cost",
            "help": "what each source adds to its distances, such as the wait there",
        },
    )


@dataclass(frozen=True, kw_only=True)
class NearestOptions(AlongOptions):
    """Options of ``k_nearest``; ``checked`` returns groups as ``SourceGroups``, and columns to sum
    as ``AlongPaths``.
    """

    checked_by = "k_nearest"
    k: int | None = field(
        default=None,
        metadata={
            "setting": "nearest_k",
            "help": "write this many of the nearest sources of each vertex, with their ranks (nearest is then k_nearest). "
            "Hops and integer weights take one search from all sources, unless --strategy names one; other "
            "weights take one per source. With --targets, the result is nearest_targets: the nearest targets of each source",
            "least": 1,
            "example": 3,
        },
    )
    groups: Any = field(
        default=None,
        metadata={
            "table": "sources",
            "column": "group",
            "help": (
                "the nearest of each group are written, such as the nearest "
                "school and the nearest hospital"
            ),
        },
    )

    @property
    def rows_per_source(self) -> int:
        """The largest number of records of a vertex: k, or k per group if sources have groups.

        For ``nearest_targets`` it is that of a source, whose targets may have groups. Without ``k``
        it is 1.
        """
        k = self.k or 1
        if self.groups is None:
            return k
        return k * len(self.groups.labels)


@dataclass(frozen=True, kw_only=True)
class NearestTargetsOptions(NearestOptions):
    """Options of ``nearest_targets``."""

    groups: Any = field(
        default=None,
        metadata={"table": "targets", "column": "group", "help": "the same of targets"},
    )

    def of_query(self, targets: Any) -> dict[str, Any]:
        """Return the field ``nearest`` of a ``Query``: k, and the vertex numbers of the targets by
        group.

        ``targets`` are the vertex numbers of all targets, in the order of the groups.
        """
        return _call("k_nearest", "query_of_targets", self, targets)


@dataclass(frozen=True, kw_only=True)
class PathOptions(AlongOptions):
    """Options of ``paths``."""

    # whether a record names the row of the edge list that leads to its vertex
    edges: bool = field(default=True, metadata={"job": False})


@dataclass(frozen=True, kw_only=True)
class CutoffOptions(KindOptions):
    """Options of kinds whose searches end at the largest of several distances; ``checked`` returns
    a ``Reduction``.
    """

    checked_by = "opportunities"
    is_recorded_whole = True
    cutoffs: list[int | float] | None = field(
        default=None,
        metadata={
            "help": "distances in ascending order; the largest ends each search",
            "example": (600, 1200),
        },
    )


@dataclass(frozen=True, kw_only=True)
class StreetOptions(CutoffOptions):
    """Options of ``streets``; ``checked`` returns a ``StreetsWithin``."""

    checked_by = "streets"
    along: list[str] | None = field(default=None, metadata=_ALONG)

    @classmethod
    def notes_on_edges(cls, built: Mapping[str, Any]) -> list[str]:
        """Return a sentence about the parallel edges and self-loops of the edge list, which no sum
        includes; an empty list if there are none.

        ``built`` has the fields of a ``BuildReport`` by name.
        """
        left_out = []
        for noun, name in (("parallel edge", "parallel_edges"), ("self-loop", "self_loops")):
            if built.get(name, 0):
                left_out.append(several(built[name], noun))
        if not left_out:
            return []
        return [
            f"{option_text('result', 'streets')} adds up no part of {' and '.join(left_out)}, which "
            "the graph does not have; if they are streets, split each by a vertex inside"
        ]


Geometry = Literal["points", "hulls", "shapes"] | None
_GEOMETRY = {
    "library": False,
    "table": "vertices",
    "example": "points",
    "help": "GeoParquet by the columns x and y of the --vertices file. Of isochrones, points: _points.pq has a point per "
    "row; hulls: _hulls.pq has a concave hull per source and cutoff, which needs the extra geo. Of loads, shapes: "
    "_loads.pq has the line of each edge, or the point of each vertex",
}


@dataclass(frozen=True, kw_only=True)
class IsochroneOptions(CutoffOptions):
    """Options of ``isochrones``."""

    geometry: Geometry = field(default=None, metadata=_GEOMETRY)


_SOURCE_WEIGHTS = {
    "table": "sources",
    "column": "source_weight",
    "help": (
        "a number by which its sums or volumes are multiplied, of a "
        "column that may be called weight"
    ),
}
_TARGET_WEIGHTS = {
    "table": "targets",
    "column": "target_weight",
    "help": "a number by which volumes are multiplied, of a column that may be called weight",
}
_VOLUMES = {
    "table": "pairs",
    "column": "volume",
    "help": "what goes from the origin to the destination (default: 1)",
}
_THROUGH = {
    "kind": "file",
    "example": "bridges.csv",
    "help": "table of edges, Parquet or CSV with a header: their ends, or rows of the edge list in a column called edge. "
    "Only pairs count whose paths use one of them",
}
_DECAY = {
    "help": "weight of a value by its distance d: exponential:R is exp(-R d), linear:D is 1 - d/D up to D, gaussian:D is "
    "exp(-(d/D)^2/2), step:D is 1 up to D, logistic:D,S is (1 + exp(-D/w))/(1 + exp((d-D)/w)) with w = S sqrt(3)/pi, "
    "power:B is d^-B from 1 on; default: 1",
    "example": "exponential:0.002",
}


@dataclass(frozen=True, kw_only=True)
class OpportunityOptions(CutoffOptions):
    """Options of ``opportunities``."""

    values: list[str] | None = field(  # type: ignore[misc]
        default=None,
        metadata={
            "help": "columns of the --vertices file to add up; vertices that it lacks have 0",
            "example": ("jobs", "schools"),
            "table": "vertices",
        },
    )
    decay: str | None = field(default=None, metadata=_DECAY)
    source_weights: Any = field(default=None, metadata=_SOURCE_WEIGHTS)


Cells = Literal["edges", "vertices", "pairs"] | None  # None: ResultKind.cells
_OF = {
    "help": "what carries the loads: the edges, or the vertices; by default edges for flows, vertices for betweenness. Of "
    "flows of --pairs, pairs lists those that have a path, with their volumes",
    "example": "vertices",
}


@dataclass(frozen=True, kw_only=True)
class FlowOptions(KindOptions):
    """Options of ``flows``; ``checked`` returns a ``CheckedFlows``."""

    checked_by = "flows"
    is_recorded_whole = True
    constraints = (
        Constraint(
            names=("of", "pairs"),
            violated=lambda given: is_value(given, "of", "pairs") and given.value("pairs") is None,
            why="{of=} lists the rows of a table of pairs",
            remedy="give {pairs}",
        ),
        needs(
            "volumes",
            "pairs",
            why="{0} are those of pairs",
            remedy="for sources and targets give {source_weights} and {target_weights}",
        ),
        *(
            not_both(
                name,
                "pairs",
                "{0} is for sources and targets, and here are pairs",
                "give the volume of each pair by {volumes}",
            )
            for name in ("source_weights", "target_weights")
        ),
        not_both(
            "targets",
            "pairs",
            "{0} has no effect: each row of {1} has its destination",
            "leave it out",
        ),
    )
    of: Cells = field(default=None, metadata=_OF)
    decay: str | None = field(default=None, metadata=_DECAY)
    source_weights: Any = field(default=None, metadata=_SOURCE_WEIGHTS)
    target_weights: Any = field(default=None, metadata=_TARGET_WEIGHTS)
    volumes: Any = field(default=None, metadata=_VOLUMES)
    through: Any = field(default=None, metadata=_THROUGH)
    geometry: Geometry = field(default=None, metadata=_GEOMETRY)


@dataclass(frozen=True, kw_only=True)
class BetweennessOptions(KindOptions):
    """Options of ``betweenness``; ``checked`` returns a ``CheckedBetweenness``."""

    checked_by = "betweenness"
    is_recorded_whole = True
    constraints = (
        Constraint(
            names=("of",),
            violated=lambda given: is_value(given, "of", "pairs"),
            why="{of=} is for {result=flows}, not betweenness",
            remedy="leave it out",
        ),
        Constraint(
            names=("endpoints", "of"),
            violated=lambda given: (
                is_value(given, "endpoints", True) and is_value(given, "of", "edges")
            ),
            why="{0} is for vertices: each edge of a path lies between its ends",
            remedy="leave it out",
        ),
        *(
            not_both(
                name,
                "sources",
                "{0} chooses among all vertices",
                "give {sources=all}, or leave {0} out",
            )
            for name in ("samples", "epsilon")
        ),
        needs(
            "seed",
            "epsilon",
            "samples",
            why="{0} is for the choice of sources",
            remedy="give {1} or {2}, or leave it out",
        ),
        needs(
            "delta",
            "epsilon",
            "samples",
            why="{0} is the probability that {1} fails",
            remedy="give {1}, or {2}",
        ),
        not_both("samples", "epsilon", "{flags} both say how many sources are searched"),
    )
    of: Cells = field(default=None, metadata=_OF)
    endpoints: bool = field(
        default=False,
        metadata={"help": "count a path also at the vertices where it begins and ends"},
    )
    normalized: bool = field(default=True, metadata={"help": "divide by the number of pairs"})
    samples: int | None = field(
        default=None,
        metadata={
            "help": "search from this many vertices only, those that NetworkX's k and seed select, and estimate the rest; "
            "the manifest has the bound of the error",
            "least": 2,
            "example": 1000,
        },
    )
    epsilon: float | None = field(
        default=None,
        metadata={
            "help": "search from as many vertices as an error of normalized values of at most this needs; if that is all, "
            "the result is exact, and the run says so",
            "example": 0.05,
        },
    )
    delta: float | None = field(
        default=None,
        metadata={
            "help": "probability that the bound of an estimate fails (default: 0.1)",
            "example": 0.01,
        },
    )
    seed: int | None = field(default=None, metadata={"job": False, "setting": "seed"})
    geometry: Geometry = field(default=None, metadata=_GEOMETRY)


class RowSize(NamedTuple):
    """The number and the width of the records of a source, by which memory and part files are
    sized.
    """

    rows: int  # the estimated number of records of a source
    most: int  # the largest number of records of a source
    # ids, distances, numbers: how many columns hold ids, distances, and other numbers of 8 bytes
    ids: int
    distances: int
    numbers: int

    def row_bytes(self, of_id: int, of_distance: int) -> int:
        """Return the bytes of a row before compression. ``of_id`` and ``of_distance`` are the bytes
        of one id and of one distance.
        """
        return self.ids * of_id + self.distances * of_distance + 8 * self.numbers


def _per_vertex(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of records of a source, as an estimate and as an upper bound: one per
    target, or one per vertex if the ``Question`` has no targets.

    ``n_vertices`` is the number of vertices of the graph. ``depth``, the number of levels of one
    search, is not needed.
    """
    if question.targets is None:
        rows = n_vertices
    else:
        rows = question.targets.numbers.size
    return rows, rows


def _per_source(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of records of a source, as an estimate and as an upper bound: as many as
    the options of the ``Question`` say, which is one by default.

    ``n_vertices`` and ``depth`` are not needed: these records are not per vertex, nor per level.
    """
    return question.options.rows_per_source, question.options.rows_per_source


def _per_vertex_and_rank(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of records of one search from all sources, as an estimate and as an upper
    bound: for each of ``n_vertices`` vertices as many as the options of the ``Question`` say, such
    as k. ``depth`` is not needed.
    """
    rows = n_vertices * question.options.rows_per_source
    return rows, rows


@dataclass(frozen=True, kw_only=True)
class ResultKind(Generic[OptionsT]):
    """One kind of result, by the name that ``result=`` and ``--result`` take.

    ``OptionsT`` is the class of its options, as its functions see them: as they are checked.
    """

    name: str
    # what a record is, as the manifest and every part file say; empty if no file holds the kind
    means: str
    columns: tuple[str, ...]  # of a frame and of a part file
    # ``rows(question, n_vertices, depth)`` returns the number of records of a source, estimated and
    # at most, for a ``Question``, and the number of levels of one search.
    rows: Callable[[Any, int, int], tuple[int, int]] = _per_source
    order: tuple[str, ...] = ("source",)  # columns by which the records of a part file ascend
    # What the rows of a source are in part files: records that are made of a group of sources; a
    # row per vertex that it reaches, of which the column of vertices is the same for most sources;
    # or one row with a list of its distances to all vertices, in the order of _vertices.pq, in an
    # Arrow file.
    written_as: Literal["records", "vertices", "lists"] = "records"
    # Which table of the user a finished run writes with the records: that of sources; that of
    # sources only if columns of it are kept; that of pairs; or none.
    adds_to: Literal["sources", "kept columns", "pairs", ""] = "sources"
    # whether one search serves all sources, so that no record is the result of a single source
    one_search: bool = False
    algorithms: tuple[str, ...] = ("bfs", "sssp")
    # whether a record has a predecessor, so that searches must compute predecessors
    has_predecessors: bool = False
    # The least output that a plan needs of each search; see ``Query.output``. "counts" is for hops
    # only.
    keeps: Literal["all", "targets", "counts", "paths"] = "all"
    # whether the histogram of a part file is of the records, and not of all that is searched
    counts_rows: bool = False
    # ``make_records(asked, traversals)`` returns the ``SourceRecords`` of one group.
    make_records: Callable[..., Any] | None = None
    # ``of_levels(asked, counts)`` returns those of the sources whose level counts it gets, in place
    # of ``make_records`` where distances are hops.
    of_levels: Callable[..., Any] | None = None
    # ``make_loads(asked)`` returns the ``kinds.loads.Loads`` to which groups are added, in place of
    # ``make_records``: a result of the whole graph, in which no record belongs to one source.
    make_loads: Callable[..., Any] | None = None
    # ``make_columns(asked, values)`` returns the columns besides ``source`` of any records, in any
    # order.
    make_columns: Callable[..., dict[str, Any]] | None = None
    # ``make_frame(asked, groups, places, frames)`` returns a frame from distances that are arrays
    # of rows, in place of ``make_records`` and ``make_columns``.
    make_frame: Callable[..., Any] | None = None
    # ``array_of(asked, groups, places)`` returns the array that ``bfs_many`` and ``sssp_many``
    # return in place of a frame.
    array_of: Callable[..., Any] | None = None
    # modules whose kernels make the records and statistics on a GPU
    on_gpu: tuple[str, ...] = ("cuda.distance_stats",)
    # Options of the public functions and of the job that not all kinds take, and this one does,
    # such as "targets" and "direction" ("in"); see ``rules``.
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # those of them without which there is no result
    # The options that the kind has beside those. ``asked.options`` is an instance, or what its
    # ``checked`` returns.
    options_class: type[OptionsT] = KindOptions  # type: ignore[assignment]
    # whether the user names further columns: those of ``asked.options.values``
    names_columns: bool = False
    takes_sources: bool = True  # whether it is about sources, and not about the whole graph
    # the column of what an edge or a vertex carries, of kinds with ``make_loads``
    load: str = "volume"
    cells: Literal["edges", "vertices"] = "edges"  # what carries it by default
    # ``scaled(options, cells, n_cells, n_vertices, directed)`` returns what the sums of some cells
    # over all sources of a job are multiplied by, and what else is said of the result, by name.
    scaled: Callable[..., tuple[Any, dict[str, Any]]] | None = None
    # The forms of distances, besides an array of rows, that its records are made from; see
    # ``Query.forms``.
    reads: tuple[str, ...] = ()
    # whether its records are rows of hub labels, which are built and proved as a whole, and no
    # search makes
    of_labels: bool = False

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether a part file may have columns of these names, in this order."""
        columns = tuple(names)
        expected = self.columns
        if len(set(columns)) < len(columns):
            return False
        # Where groups are given, their column is the first one; of kinds whose first column is the
        # source, it is the second one.
        place = int(not self.one_search)
        if "groups" in self.all_options and columns[place : place + 1] == (GROUP,):
            expected = (*expected[:place], GROUP, *expected[place:])
        # Behind the kind's own columns, there may be columns that the user has named. Kinds that
        # need ``values`` have at least one of them.
        if self.names_columns:
            return columns[: len(expected)] == expected and (
                len(columns) > len(expected) or "values" not in self.needs
            )
        # cugraph.sssp has the distance before the vertex: source, distance, vertex
        if self.is_distances and columns == (expected[0], expected[2], expected[1], *expected[3:]):
            return True
        return columns == expected

    @cached_property
    def all_options(self) -> tuple[str, ...]:
        """The names of the options that this kind takes and not all kinds do: shared ones, and the
        fields of its dataclass.
        """
        return self.options + tuple(option.name for option in fields(self.options_class))

    @cached_property
    def options_of_job(self) -> tuple[str, ...]:
        """The names in ``all_options`` that are also options of the job."""
        own = fields(self.options_class)
        return self.options + tuple(
            option.name for option in own if option.metadata.get("job", True)
        )

    def is_one_per_source(self, options: Any) -> bool:
        """Return whether a frame has one row per source, in the order of the sources.

        ``options`` are the checked options, which may ask for several rows per source, such as one
        per cutoff.
        """
        return (
            self.rows is _per_source and self.order == ("source",) and options.rows_per_source == 1
        )

    @property
    def needs_pairs(self) -> bool:
        """Whether the kind answers a table of pairs, by ``bfs_pairs``, ``sssp_pairs`` or
        ``--pairs``.
        """
        return "pairs" in self.needs

    @property
    def needs_edge_rows(self) -> bool:
        """Whether a record names a row of the edge list, so that the graph must know the rows of
        its edges. Results that are added up over the sources name them where edges carry the loads.
        """
        return "edge" in self.columns or self.adds_up

    @property
    def takes_cutoffs(self) -> bool:
        """Whether the kind takes ``cutoffs``, of which the largest is the limit of the searches."""
        return "cutoffs" in self.all_options

    @property
    def takes_limits(self) -> bool:
        """Whether each source may have a limit of its own.

        One search from all sources, sums over all sources, hub labels and tables of pairs have at
        most one limit for all. So have kinds with cutoffs: the largest of these.
        """
        is_of_searches = not (self.one_search or self.adds_up or self.of_labels)
        return is_of_searches and not (self.takes_cutoffs or self.needs_pairs)

    @property
    def adds_up(self) -> bool:
        """Whether groups of sources are added up into one result of the graph, instead of having
        records of their own.
        """
        return self.make_loads is not None

    def bytes_of_loads(self, graph: Any, threads: int, question: Any) -> int:
        """Return the bytes that adding up loads needs: for each of ``threads`` threads, and for the
        certificate, its sums and its scratch. Kinds that do not add up need 0.

        ``question`` is a ``Question``.
        """
        if not self.adds_up:
            return 0
        # Each thread has a sum per edge, per vertex or per pair: two words of 8 bytes. Whichever
        # carries the loads, the largest of the three numbers is a bound. ``n_pairs`` is 0 unless
        # pairs carry them, since their number does not matter then.
        if question.options.of == "pairs":
            n_pairs = question.pairs.rows.size
        else:
            n_pairs = 0
        # ``per_vertex`` has the bytes of a ``Tree`` and of the walks. The certificate has sums of
        # its own: of edges, of what carries the loads, and with ``through`` of edges on all paths.
        per_vertex = 80
        certificates = 2 + (getattr(question.options, "through", None) is not None)
        bytes_of_sums = (
            16 * max(graph.n_edges, graph.n_vertices, n_pairs) + per_vertex * graph.n_vertices
        )
        return (threads + certificates) * bytes_of_sums

    @property
    def in_files(self) -> bool:
        """Whether the job can write the kind to files."""
        return bool(self.means)

    @property
    def suffix(self) -> str:
        """The ending of the names of part files: a matrix is written as Arrow files, which readers
        map into memory.
        """
        return "arrow" if self.written_as == "lists" else "parquet"

    @property
    def has_all_vertices(self) -> bool:
        """Whether a source has a record, or an entry of its list, per vertex that it reaches, made
        directly from its array of distances.
        """
        return self.written_as != "records"

    def likely_kernels(self, hops: bool, weights: Any) -> list[Any]:
        """Return requests to compile the GPU kernels that make the records and statistics, before
        the first result needs them.

        ``hops`` says whether distances are numbers of edges. ``weights`` is the type of the
        weights.
        """
        # By hops, a kind with ``of_levels`` reads the numbers of vertices per level alone. The
        # kernels of the first module, ``cuda.distance_stats``, count these.
        if hops and self.of_levels is not None:
            names = self.on_gpu[:1]
        else:
            names = self.on_gpu
        modules = [import_module(f"..{name}", __package__) for name in names]
        return [request for module in modules for request in module.likely_kernels(hops, weights)]

    def bytes_on_gpu(self, question: Any, n_sources: int, n_vertices: int) -> int:
        """Return the bytes that a group of ``n_sources`` sources needs on a GPU for its records and
        its statistics, in addition to what the plan allocates. Kinds without kernels need 0.

        ``question`` is a ``Question``, and ``n_vertices`` the number of vertices of the graph.
        """
        if not self.on_gpu:
            return 0
        statistics = import_module("..cuda.distance_stats", __package__)
        own = question.options.bytes_on_gpu(n_sources, n_vertices)
        return own + statistics.bytes_needed(question.algorithm == "bfs", n_sources, n_vertices)

    def size(
        self, question: Any, n_vertices: int, depth: int = 0, visited: int | None = None
    ) -> RowSize:
        """Return the number of rows per source, and how many columns of each width a row has.

        ``question`` is a ``Question``, and ``n_vertices`` is the number of vertices of the graph.
        ``depth`` is the number of levels of one search, 0 if it is not known. ``visited`` is the
        number of vertices that this search reaches, None if it is not known.
        """
        rows, max_rows = self.rows(question, n_vertices, depth)
        if self.written_as == "vertices" and visited is not None:
            rows = min(rows, visited)
        ids = sum(name in ID_COLUMNS for name in self.columns)
        distances = sum(name in ("distance", "eccentricity") for name in self.columns)
        numbers = len(self.columns) - ids - distances
        if self.names_columns:
            numbers += len(question.options.values)
        # The sizes are per distance. A list has one id, of its source, for all of its distances:
        # per distance, that takes next to nothing.
        if self.written_as == "lists":
            ids = 0
        return RowSize(rows, max_rows, ids, distances, numbers)

    @property
    def is_distances(self) -> bool:
        """Whether the records of a source hold the distances of all vertices that it reaches, as
        those of "predecessors" do, so that a certificate can check them without another search.
        """
        return self.written_as == "vertices" and "distance" in self.columns

    def keeps_for(self, counts_hops: bool, has_targets: bool) -> str:
        """Return the output that a plan needs of each search: "all", "targets", "counts" or
        "paths", as ``Query.output`` names it.

        It is ``keeps`` of the kind, with two exceptions. "counts" (vertices per level) becomes
        "all" unless distances are hops, as ``counts_hops`` says. "targets" (distances of targets
        alone) becomes "all" unless the query ``has_targets``.
        """
        if (self.keeps == "counts" and not counts_hops) or (
            self.keeps == "targets" and not has_targets
        ):
            return "all"
        return self.keeps


def _call(module: str, function: str, *args: Any, **named: Any) -> Any:
    """Import a module of this package, call one of its functions with ``args`` and ``named``, and
    return its result. So the list of kinds imports nothing large.
    """
    return getattr(import_module(f".{module}", __package__), function)(*args, **named)


def _made_by(module: str, *functions: str, **others: str) -> dict[str, Any]:
    """Return fields of a ``ResultKind`` whose functions are in a module of this package. The module
    is imported when one of them is called.

    ``functions`` name fields whose functions have the same name. ``others`` have, by field,
    functions or classes with other names.
    """
    names = {name: name for name in functions} | others
    return {field: partial(_call, module, name) for field, name in names.items()}


# A record per vertex that a source reaches.
_OF_VERTICES: dict[str, Any] = {
    **_made_by(
        "distances", "make_frame", make_records="make_records", make_columns="columns_of_records"
    ),
    "rows": _per_vertex,
    "order": ("source", "vertex"),
    "written_as": "vertices",
    "adds_to": "",
    "on_gpu": (),
}
# Records of one search from all sources together, such as the nearest source of each vertex.
OF_ONE_SEARCH: dict[str, Any] = {
    "rows": _per_vertex,
    "order": (GROUP, "vertex", "rank"),
    "adds_to": "",
    "one_search": True,
    "on_gpu": (),
}


@dataclass(frozen=True, kw_only=True)
class LabelOptions(KindOptions):
    """Options of ``labels``; ``checked`` returns a ``CheckedLabels``."""

    checked_by = "hub_labels"


# A record per row of hub labels: per source and hub.
OF_LABELS: dict[str, Any] = {
    **_made_by("hub_labels", "make_records", "make_columns"),
    "order": ("source", "hub"),
    "adds_to": "",
    "on_gpu": (),
    "counts_rows": True,
    "options": ("direction",),
    "options_class": LabelOptions,
    "reads": ("sparse",),
    "of_labels": True,
}
# The columns of a part file of loads: the number of an edge or vertex (a cell), and what it
# carries, a 128-bit integer ``high`` * 2**64 + ``low`` in units of 2**``exponent``.
CELL_COLUMNS = ("cell", "low", "high", "exponent")
_OF_CELLS: dict[str, Any] = {
    "columns": CELL_COLUMNS,
    "order": ("cell",),
    "adds_to": "",
    "reads": ("sparse",),
}
_KINDS: tuple[ResultKind, ...] = (
    ResultKind(
        name="distances",
        reads=("sparse",),
        means="a row for each vertex that a source reaches: its distance from that source",
        columns=("source", "vertex", "distance"),
        options=("targets",),
        options_class=UnreachedOptions,
        **_OF_VERTICES,
    ),
    ResultKind(
        name="predecessors",
        reads=("sparse",),
        means=(
            "a row for each vertex that a source reaches: its distance from "
            "that source, and the vertex before it"
        ),
        columns=("source", "vertex", "distance", "predecessor"),
        options=("targets",),
        options_class=UnreachedOptions,
        has_predecessors=True,
        **_OF_VERTICES,
    ),
    ResultKind(
        name="matrix",
        means=(
            "a record for each source: its distances to all vertices, in the order of _vertices.pq"
        ),
        columns=("source", "distance"),
        rows=_per_vertex,
        written_as="lists",
        adds_to="",
        on_gpu=(),
        options=("targets", "direction"),
        options_class=AlongOptions,
        names_columns=True,
        keeps="targets",
        **_made_by("matrix", array_of="matrix"),
    ),
    ResultKind(
        name="summary",
        reads=("interleaved", "sparse"),
        means="a row for each source: figures over the distances to all vertices that it reaches, or "
        "with --direction in from all vertices that reach it",
        columns=("source", "reached", "eccentricity", "sum", "mean", "closeness", "harmonic"),
        options=("direction",),
        keeps="counts",
        **_made_by("summary", "of_levels", "make_records", "make_columns"),
    ),
    ResultKind(
        name="levels",
        reads=("sparse",),
        means="a row for each source and hop count: how many vertices lie there",
        columns=("source", "distance", "vertices"),
        algorithms=("bfs",),
        options=("direction",),
        adds_to="kept columns",
        keeps="counts",
        **_made_by("levels", "of_levels", "make_columns", "rows"),
    ),
    ResultKind(
        name="targets",
        reads=("sparse",),
        means="a row for each pair of source and target: the distance, null where there is no way",
        columns=("source", "target", "distance"),
        rows=_per_vertex,
        adds_to="kept columns",
        on_gpu=(),
        options=("targets", "direction"),
        options_class=AlongOptions,
        names_columns=True,
        needs=("targets",),
        keeps="targets",
        counts_rows=True,
        **_made_by("targets", "make_records", "make_columns"),
    ),
    ResultKind(
        name="reachable",
        reads=("sparse",),
        means="a row for each vertex that a source reaches, without distances",
        columns=("source", "vertex"),
        **_OF_VERTICES,
        **_made_by("matrix", array_of="bitmap"),
    ),
    ResultKind(
        name="nearest",
        means=(
            "one search from all sources together: a row for each vertex, "
            "with the nearest of the sources"
        ),
        columns=("vertex", "source", "distance"),
        options=("direction",),
        options_class=NearestSourceOptions,
        names_columns=True,
        **OF_ONE_SEARCH,
    ),
    ResultKind(
        name="k_nearest",
        means="a row for each vertex and rank, and each group if sources have groups: the k nearest of the sources, by "
        "distance and then by source",
        columns=("vertex", "rank", "source", "distance"),
        **OF_ONE_SEARCH | {"rows": _per_vertex_and_rank},
        options=("direction",),
        options_class=NearestOptions,
        names_columns=True,
        needs=("k",),
    ),
    ResultKind(
        name="nearest_targets",
        reads=("sparse",),
        means="a row for each source and rank, and each group if targets have groups: the k nearest of the targets, by "
        "distance and then by target",
        columns=("source", "rank", "target", "distance"),
        options=("targets", "direction"),
        options_class=NearestTargetsOptions,
        names_columns=True,
        needs=("targets", "k"),
        keeps="targets",
        counts_rows=True,
        **_made_by("nearest_targets", "make_records", "make_columns"),
    ),
    ResultKind(
        name="opportunities",
        reads=("sparse",),
        means="a row for each source and cutoff: sums of the attributes of all vertices within it",
        columns=("source", "cutoff"),
        **_made_by("opportunities", "make_records", "make_columns"),
        on_gpu=("cuda.distance_stats", "kinds.opportunities_gpu"),
        options=("direction",),
        options_class=OpportunityOptions,
        needs=("cutoffs", "values"),
        names_columns=True,
    ),
    ResultKind(
        name="within",
        reads=("sparse",),
        means="a row for each source and cutoff: how many vertices are within it",
        columns=("source", "cutoff", "vertices"),
        keeps="counts",
        **_made_by("opportunities", "of_levels", "make_records", "make_columns"),
        on_gpu=("cuda.distance_stats", "kinds.opportunities_gpu"),
        options=("direction",),
        options_class=CutoffOptions,
        needs=("cutoffs",),
    ),
    ResultKind(
        name="streets",
        reads=("sparse",),
        means="a row for each source and cutoff: sums of columns of the edge list over what is within it of each edge",
        columns=("source", "cutoff"),
        **_made_by("streets", "make_records", "make_columns"),
        options=("direction",),
        options_class=StreetOptions,
        needs=("cutoffs", "along"),
        names_columns=True,
    ),
    ResultKind(
        name="isochrones",
        reads=("sparse",),
        means=(
            "a row for each source and vertex within the largest cutoff: "
            "the smallest cutoff that holds it"
        ),
        columns=("source", "vertex", "band"),
        options=("direction",),
        options_class=IsochroneOptions,
        needs=("cutoffs",),
        **_OF_VERTICES,
    ),
    ResultKind(
        name="pairs",
        reads=("sparse",),
        means="a row for each row of the table of pairs: its number in the table, origin and destination, and the "
        "distance, null where there is no way",
        columns=("pair", "source", "target", "distance"),
        adds_to="pairs",
        on_gpu=(),
        options=("pairs", "direction"),
        options_class=AlongOptions,
        names_columns=True,
        needs=("pairs",),
        keeps="targets",
        counts_rows=True,
        **_made_by("pairs", "make_records", "make_columns", "rows"),
    ),
    ResultKind(
        name="paths",
        means="a row for each vertex of the shortest path of each row of the table of pairs: the number of that row, the "
        "row of the edge list that leads to the vertex, and sums of other columns up to it",
        columns=("pair", "source", "position", "vertex", "edge"),
        adds_to="",
        on_gpu=(),
        has_predecessors=True,
        keeps="paths",
        **_made_by("paths", "make_records", "make_columns", "rows"),
        reads=("sparse",),
        options=("pairs",),
        options_class=PathOptions,
        names_columns=True,
        needs=("pairs",),
    ),
    ResultKind(
        name="flows",
        **_OF_CELLS,
        means="a row for each edge, or vertex, that paths of the sources of this file lead through: (high 2^64 + low) "
        "2^exponent is what it carries, where low is unsigned, and cell is its row in _cells.pq",
        on_gpu=("kinds.flows_gpu",),
        options=("targets", "pairs"),
        options_class=FlowOptions,
        **_made_by("flows", make_loads="Flows"),
    ),
    ResultKind(
        name="betweenness",
        **_OF_CELLS,
        means="a row for each vertex, or edge, on shortest paths from the sources of this file: (high 2^64 + low) "
        "2^exponent is their share, where low is unsigned, and cell is its row in _cells.pq",
        cells="vertices",
        load="betweenness",
        on_gpu=("kinds.betweenness_gpu",),
        options=("targets",),
        options_class=BetweennessOptions,
        **_made_by("betweenness", "scaled", make_loads="Betweenness"),
    ),
)

RESULT_KINDS = {kind.name: kind for kind in _KINDS}


def modules_with_kinds(folder: Path) -> tuple[str, ...]:
    """Return the names of the modules of this package that list further kinds in ``KINDS``, as
    plug-ins do.

    ``folder`` is the folder of the package. Its files are searched as text, so that nothing is
    imported.
    """
    return tuple(
        f"{__package__}.{file.stem}"
        for file in sorted(folder.glob("*.py"))
        if b"\nKINDS = " in file.read_bytes()
    )


OWN_MODULES = modules_with_kinds(Path(__file__).parent)
