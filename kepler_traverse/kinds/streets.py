"""``result="streets"``: sums of columns of the edge list over the streets within cutoffs of each
source, such as their metres.

A street is a row of the edge list. What lies within a cutoff of it begins at each end that a search
may enter it from, and goes as far as the rest of the cutoff lasts. Parts that begin at both ends
count once where they meet. All sums are float64, and are added in the order of the edges, for any
device and any number of sources at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._arrays import is_reached, is_rows, to_host
from ..cpu import threads
from ..cpu.compiled import njit
from ..errors import InputError, option_text
from ..graph import Graph
from ..graph.closed import refuse_closed
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.query import compute_digest
from ..search.results import Traversals
from . import along
from .along import ALONG, AlongPaths
from .opportunities import CUTOFF, check_cutoffs
from .records import Asked, CheckedOptions, SourceRecords, Values
from .result_kinds import AlongOptions, StreetOptions

_NO_EDGE = -1


class _Streets(NamedTuple):
    """The edges of a graph in host memory, for compiled code."""

    # offsets, targets: of the CSR of the graph that is searched
    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray  # float64 of shape (n_edges,); 1 for hops
    # int64 of shape (n_edges,): the position in ``targets`` of the edge that leads back on the same
    # row of the edge list, or ``_NO_EDGE``
    back: np.ndarray
    columns: np.ndarray  # float64 of shape (n_edges, n_columns): what each edge has of each column


@dataclass(frozen=True, kw_only=True, eq=False)
class StreetsWithin(CheckedOptions):
    """Checked options of ``streets``."""

    cutoffs: np.ndarray  # int64 or float64, ascending; the last one limits the search
    along: AlongPaths  # the columns that are added up
    # at most one entry: the edges of the graph that is searched, once they are listed (a list, as a
    # frozen dataclass takes no new value)
    _streets: list[_Streets] = field(default_factory=list, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the listed edges: each process lists them itself."""
        return vars(self) | {"_streets": []}

    @property
    def limit(self) -> float | int:
        """The largest cutoff, up to which the searches go."""
        return self.cutoffs[-1].item()

    @property
    def rows_per_source(self) -> int:
        """The number of records of a source: one per cutoff."""
        return self.cutoffs.size

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The columns of the edge list that are added up, by name, with a value per row of the edge
        list.
        """
        return self.along.values

    @property
    def digest(self) -> str:
        """The SHA-256 of the cutoffs and the columns, as hexadecimal digits."""
        return compute_digest([self.cutoffs.tolist(), self.along.digest])

    def list_streets(self, graph: Graph, is_weighted: bool) -> _Streets:
        """Return the edges of the graph that is searched. They are listed once, and then used
        again.

        ``is_weighted`` says whether lengths are weights; else each edge has the length 1.
        """
        if not self._streets:
            self._streets.append(_list_streets(graph, is_weighted, self.values))
        return self._streets[0]


def check_options(
    options: StreetOptions, kind: Any, graph: Graph, algorithm: str, numbers: Any
) -> StreetsWithin:
    """Return the checked options of ``streets``: the cutoffs, and the columns to add up.

    ``kind`` is the result kind, and ``algorithm`` is "bfs" or "sssp". ``numbers`` has what is known
    of the ends of the searches, which is not needed here.

    Raises InputError: the graph has negative weights or closed vertices, or does not know its rows;
    a cutoff is wrong; or ``along`` is no table with a finite number per row of the edge list.
    """
    if ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights:
        raise InputError(
            "result='streets' needs weights of 0 or more, and the graph has negative ones: no part "
            "of such a street is within a cutoff"
        )
    refuse_closed(graph, "result='streets' lets paths begin inside of streets")
    # Columns are checked as those of the other kinds with ``along``. Any part of a column must add
    # up to a finite number.
    cutoffs = check_cutoffs(algorithm, options.cutoffs)
    of_columns = AlongOptions(along=options.along)
    checked: Any = along.check_options(of_columns, kind, graph, algorithm, numbers)
    for name, values in checked.along.values.items():
        with np.errstate(over="ignore"):
            if not np.isfinite(np.abs(values.astype(np.float64)).sum()):
                raise InputError(
                    f"{option_text('along')} {name!r}: its sum exceeds float64; scale the column down"
                )
    return StreetsWithin(cutoffs=cutoffs, along=checked.along)


def make_records(asked: Asked[StreetsWithin], group: Traversals) -> SourceRecords:
    """Return the records ``cutoff`` and, by the name of each column, its sum: one record per source
    and cutoff.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    options = asked.options
    distance: Any = group.distance
    # the edges with their lengths and columns, which the first group lists for all groups
    streets = options.list_streets(asked.graph, ALGORITHMS[asked.algorithm].is_weighted)
    # by source, cutoff and column
    sums = np.zeros((len(group), options.cutoffs.size, len(options.values)))
    rests: list[Any] = [None] * threads.max_threads()  # scratch of ``_sum_streets``, by thread

    def add_up(i: int, thread: int) -> None:
        """Write the sums of source i, with the scratch of a thread."""
        if rests[thread] is None:
            rests[thread] = np.full(asked.graph.n_vertices, -1.0)
        vertices, distances = _reached_by(distance, i)
        for place, cutoff in enumerate(options.cutoffs):
            # how far a path goes on from each vertex; below 0 where the vertex is beyond the cutoff
            rest = (cutoff - distances).astype(np.float64)
            _sum_streets(vertices, rest, streets, rests[thread], sums[i, place])

    threads.for_each(add_up, len(group))

    values = {CUTOFF: np.tile(options.cutoffs, len(group))}
    for place, name in enumerate(options.values):
        values[ALONG + name] = sums[:, :, place].reshape(-1)
    return SourceRecords(values, np.full(len(group), options.cutoffs.size, np.int64))


def make_columns(asked: Asked[StreetsWithin], values: Values) -> dict[str, Column]:
    """Return columns ``cutoff``, and one of float64 per column of the edge list.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    options = asked.options
    columns = {CUTOFF: Column(values[CUTOFF].astype(options.cutoffs.dtype, copy=False))}
    return columns | {
        name: Column(values[ALONG + name].astype(np.float64, copy=False)) for name in options.values
    }


def _reached_by(distance: Any, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices that source i of a group reaches, ascending, and their distances: hops as
    int64, sums of weights as int64 or float64.

    ``distance`` is an array with a row per source, or ``SparseDistances``.
    """
    if is_rows(distance):
        row = to_host(distance[i])
        vertices = np.flatnonzero(is_reached(row))
        distances = row[vertices]
    else:
        part = slice(*distance.offsets[i : i + 2].tolist())
        vertices = distance.vertices[part].astype(np.int64)
        distances = distance.distance[part]
    return vertices, distances.astype(np.int64 if distances.dtype.kind == "i" else np.float64)


def _list_streets(graph: Graph, is_weighted: bool, values: Mapping[str, np.ndarray]) -> _Streets:
    """Return the edges of a graph, in host memory, as ``_Streets``.

    ``is_weighted`` says whether lengths are weights; else each edge has the length 1. ``values``
    are columns by name with a value per row of the edge list. An edge without a row has 0 in each.
    """
    host: Any = graph.derived.on_host
    rows = _rows_of_edges(graph)
    weights = np.ones(host.n_edges)
    if is_weighted:
        weights[:] = host.weights
    has_row = rows >= 0
    columns = np.zeros((host.n_edges, len(values)))
    for place, column in enumerate(values.values()):
        columns[has_row, place] = column[rows[has_row]]
    back = np.full(host.n_edges, _NO_EDGE)
    _find_back(host.offsets, host.targets, rows, back)
    return _Streets(host.offsets, host.targets, weights, back, columns)


def _rows_of_edges(graph: Graph) -> np.ndarray:
    """Return the row of each edge, -1 if it has none, in host memory.

    A graph that reverses the one that was built has no rows of its own: the one that was built
    knows the rows of its reverse.
    """
    if graph.edge_rows is not None:
        return to_host(graph.edge_rows)
    built: Any = graph.reverse
    return built.derived.on_host.derived.rows_of_reverse


@njit(cache=True, nogil=True)
def _find_back(offsets, targets, rows, back):
    """Write to ``back[e]``, for each edge e, the position of the edge that leads back on the same
    row of the edge list; other entries are left as they are.

    ``offsets`` and ``targets`` are the CSR, and ``rows`` has the row of each edge. ``targets``
    ascend within each vertex and name no neighbor twice, so that a binary search finds the only
    candidate.
    """
    for u in range(offsets.size - 1):
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            neighbors = targets[offsets[v] : offsets[v + 1]]
            edge_back = offsets[v] + np.searchsorted(neighbors, u)
            if (
                edge_back < offsets[v + 1]
                and targets[edge_back] == u
                and rows[edge_back] == rows[e]
            ):
                back[e] = edge_back


@njit(cache=True, nogil=True)
def _sum_streets(vertices, rest, streets, rests, sums):
    """Add to ``sums``, one per column, what lies within one cutoff of one source.

    ``vertices`` are those that the source reaches, ascending. ``rest``, float64 of the same length,
    says how much of the cutoff is left at each of them; it is below 0 at vertices beyond the
    cutoff. ``streets`` are ``_Streets``. ``rests``, float64 of shape (n_vertices,), is scratch: it
    holds ``rest`` by vertex number meanwhile, and is -1 everywhere before and after.
    """
    weights = streets.weights
    for i in range(vertices.size):
        rests[vertices[i]] = rest[i]

    # A street is entered at u and, if it leads both ways, perhaps at its other end v. The two parts
    # may meet, and together they are at most the whole street.
    for i in range(vertices.size):
        if rest[i] < 0:
            continue
        u = vertices[i]
        for e in range(streets.offsets[u], streets.offsets[u + 1]):
            v = streets.targets[e]
            back = streets.back[e]
            is_entered_there = back != _NO_EDGE and rests[v] >= 0
            if is_entered_there and v < u:
                continue  # the street was added when it was entered at v
            share = _share_within(rest[i], weights[e])
            if is_entered_there:
                share += _share_within(rests[v], weights[back])
            share = min(share, 1.0)
            for c in range(sums.size):
                sums[c] += share * streets.columns[e, c]

    for i in range(vertices.size):
        rests[vertices[i]] = -1.0


@njit(cache=True, nogil=True)
def _share_within(rest, weight):
    """Return the share of a street, from 0 to 1, that lies within ``rest``, which is what is left
    of the cutoff at its end. ``weight`` is the length of the street.
    """
    # The whole street is within it. This includes streets of length 0, by which the line below must
    # not divide.
    if rest >= weight:
        return 1.0
    return rest / weight
