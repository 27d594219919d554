"""Certificates: prove in O(V + E) that the result of a traversal is right, without a second
traversal and a tolerance.

There are five rules in the arithmetic of the traversal: a sum d + w of floats is rounded once to
the graph's type, and a sum of integers is exact. Integer distances in a float type are checked in
that type. They must be smaller than the first integer that the type may round, which shows that
none of their sums was rounded (``kepler_traverse.search.exact``).

- C1: the source is at distance 0 and its own predecessor, and no other vertex is its own.
- C2: every distance is a number in range or "unreached", and the unreached are those without
  predecessor.
- C3: no edge leads from a reached vertex to an unreached one or to one that is farther than the
  edge allows.
- C4: every reached vertex but the source has an edge from its predecessor that explains its
  distance exactly.
- C5: predecessors form no cycle.

By C3 no path is shorter than the distance, because rounded addition is monotonic. By C4 and C5 the
predecessors lead back to the source along a path of that length. The rules are those of Graph500
(specification, 2017, "Validation") for directed graphs. Graph500 lacks C5 for weighted paths.
Without it a cycle of zero-weight edges can explain distances that are too small.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import (
    EXACT_BELOW,
    MAX_HOP_COUNT,
    Array,
    as_distance,
    get_device,
    is_hops,
    is_reached,
    is_rows,
    namespace,
    to_host,
)
from ..cuda.interleaved import InterleavedDistances
from ..errors import CertificateError, DeviceError, InputError
from ..graph import Graph
from ..hub_labels.arrays import HubLabels
from ..labels import Partner, get_index, in_order
from ..protocols import Frame, Ids
from ..search import frames
from ..search.algorithms import ALGORITHMS
from ..search.exact import any_beyond, to_integers
from ..search.results import Traversal, Traversals
from ..search.sparse import SparseDistances
from . import batch, batch_cpu, batch_gpu, integer_sums, of_labels, single_cpu, single_gpu

RULES = ("C1", "C2", "C3", "C4", "C5")
_WANTED_SOURCES = "source_vertices must be a one-dimensional array of vertex numbers, at least one"


@dataclass(frozen=True)
class Certificate:
    """The outcome of a check.

    Attributes
    ----------
    failures : dict of str to str
        A description of the violation per broken rule, with a vertex as an example; empty if the
        result is right.
    sources : int
        Number of traversals that were checked.
    limit : int, float or None
        Distance up to which a frame is complete; None means everywhere, or the limit that a
        ``Traversal`` has.
    """

    failures: dict[str, str] = field(default_factory=dict)
    sources: int = 1
    limit: float | None = None

    @property
    def valid(self) -> bool:
        """Whether the result is right: no rule is broken."""
        return not self.failures

    def require(self) -> None:
        """Raise CertificateError unless the result is certified."""
        if self.failures:
            raise CertificateError(
                "the result is wrong: "
                + "; ".join(f"{rule}: {fault}" for rule, fault in self.failures.items())
            )


@dataclass(frozen=True)
class LabelCertificate(Certificate):
    """The outcome of a check of hub labels.

    Attributes
    ----------
    proved, sampled : tuple of str
        What is proved of all rows and pairs, and what was checked of a sample, a sentence each;
        nothing that is not true if there are failures.
    """

    proved: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()


def certify(
    graph: Graph, result: Any, *, cutoff: float | None = None, max_depth: int | None = None
) -> Certificate:
    """Prove that a result is right, or report the rules that it breaks.

    Parameters
    ----------
    graph : Graph
        The graph that was traversed.
    result : Traversal, pandas.DataFrame, cudf.DataFrame or HubLabels
        Labels are those of ``graph.labels()``, and the certificate, a ``LabelCertificate``, says
        what is proved and what is sampled. Others need predecessors.
        A frame is a result of ``bfs``, ``sssp``, ``bfs_many`` or ``sssp_many``
        without targets, with unreached vertices left out or null. pandas frames record the
        algorithm in ``attrs``. In other frames int64 distances are weighted if the graph has
        integer weights, and all other integers are hops.
    cutoff, max_depth : number, optional
        The limit of the search that made a frame. pandas frames record it in ``attrs``; it is
        needed for other frames.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        The result has no predecessors, or rows that belong to no vertex of the graph. Or it is
        incomplete: a frame that was made with targets, or a result that was made with a cutoff on a
        graph with negative weights.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
    >>> certify(graph, bfs(graph, 0)).valid
    True
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    says_its_limit = isinstance(result, Traversal | HubLabels)
    # Labels and a traversal are objects of the library. All else is a frame.
    if says_its_limit and (cutoff is not None or max_depth is not None):
        raise InputError(
            "cutoff and max_depth are for frames; a Traversal says itself how far it goes, and "
            "labels go everywhere"
        )
    if isinstance(result, HubLabels):
        return _certify_labels(graph, result)
    if isinstance(result, Traversal):
        if ALGORITHMS[result.algorithm].is_weighted and graph.weights is None:
            raise InputError("result holds weighted distances, and the graph has no weights")
        if get_device(result.distance) != graph.device:
            raise DeviceError(
                f"result is on the {get_device(result.distance)} and the graph "
                f"on the {graph.device}; move either"
            )
        _refuse_paths_beyond(graph, ALGORITHMS[result.algorithm].counts_hops, result.limit)
        return Certificate(_broken_rules(graph, result))

    # A frame holds one or several traversals. Of each broken rule the first example is kept.
    # ``check_frame`` raises InputError for a frame without the columns of a result with
    # predecessors. ``to_traversals`` yields a ``Traversal`` per source, in which vertices without a
    # row are unreached.
    failures: dict[str, str] = {}
    n_traversals = 0
    frames.check_frame("result", result)
    if frames.has_cugraph_marks(result):
        raise InputError("result must be made with unreached='omit' or 'null'")
    limit = _limit_of_frame(graph, result, cutoff, max_depth)
    for traversal in frames.to_traversals(graph, result, limit):
        n_traversals += 1
        for rule, fault in _broken_rules(graph, traversal).items():
            failures.setdefault(
                rule, f"source {graph.ids_at(np.array([traversal.source]))[0]}: {fault}"
            )

    if not n_traversals:
        raise InputError("the frame is empty: there is nothing to certify")
    if "C3" in failures and limit is None:
        failures["C3"] += (
            "; if the frame was made with cutoff= or max_depth=, give certify the same"
        )
    return Certificate(failures, n_traversals, limit)


def _certify_labels(graph: Graph, labels: HubLabels) -> LabelCertificate:
    """Return the certificate of hub labels: lists of distances per vertex, from which the distance
    of any two vertices is found.

    All labels are proved, and the distances that they give from some vertices to all others are
    certified, in each direction.
    """
    graph = graph.to("cpu")  # labels and their proofs are in host memory
    # ``sources`` are the vertices of the sample: the hubs that most labels have, and some at
    # random. ``prove_labels`` checks all labels, and returns a text per broken rule of L1 to L5.
    sources = of_labels.sample_sources(graph, labels)
    failures = of_labels.prove_labels(graph, labels)
    if failures:
        return LabelCertificate(failures, sources.size)

    # Distances to the sample are distances from it in the reverse graph, for which ``reversed``
    # exchanges the labels of both directions. ``linked_reverse`` keeps ``graph`` as the reverse of
    # its reverse, so that certificates build no third graph.
    directions = [(graph, labels)]
    if not labels.is_symmetric:
        directions.append((graph.derived.linked_reverse(), labels.reversed()))
    for directed_graph, directed_labels in directions:
        # L1 to L5 are proved above. L6: rows of the sampled hubs have the distance that labels
        # answer.
        fault = of_labels.find_fault_of_columns(directed_graph, directed_labels, sources)
        if fault:
            failures.setdefault("L6", fault)
        # Some sources at a time, with the distances that labels give from them to all vertices.
        answers = of_labels.answers_to_all(directed_graph, directed_labels, sources)
        for some_sources, distances in answers:
            found = certify_many(directed_graph, some_sources, distances).failures
            for rule, reason in found.items():
                failures.setdefault(rule, reason)

    if failures:
        return LabelCertificate(failures, sources.size)
    descriptions = (of_labels.describe_sample(sources),)
    return LabelCertificate({}, sources.size, None, of_labels.PROVED, descriptions)


def _limit_of_frame(graph: Graph, frame: Frame, cutoff: float | None, max_depth: int | None) -> Any:
    """Return the limit of the search that made a frame: the argument, or the one that the frame
    records; None without a limit.

    Raises InputError: the arguments contradict each other or the frame, or a frame with this limit
    cannot be certified.
    """
    # What the search has recorded in the frame, by name: ``algorithm``, ``limit``, and whether it
    # had ``targets``. It is empty for a frame that has lost its record or cannot have one.
    record = frames.get_query(frame)
    if record.get("targets"):
        raise InputError(
            "result was made with targets=, so that rows are missing: "
            "certify one that was made without"
        )
    if cutoff is not None and max_depth is not None:
        raise InputError(
            "cutoff and max_depth are both given; bfs takes max_depth, sssp takes cutoff"
        )
    holds_hops = frames.holds_hops(graph, frame)

    # The argument, by the name that the algorithm has for it.
    name = "max_depth" if holds_hops else "cutoff"
    if holds_hops and cutoff is not None:
        raise InputError("cutoff is for weighted distances")
    if not holds_hops and max_depth is not None:
        raise InputError("max_depth is for hops")
    limit: Any = max_depth if holds_hops else cutoff
    if limit is not None:
        limit = arguments.limit(name, limit)  # a number of 0 or more, else InputError
        if holds_hops:  # fractions are rounded down; no number of hops is larger than the maximum
            limit = int(min(limit, MAX_HOP_COUNT))

    if record:
        recorded_limit = record.get("limit")
        if limit is not None and limit != recorded_limit:
            raise InputError(
                f"{name} is {limit}, and result was made with {recorded_limit}: leave it out"
            )
        if recorded_limit is None:
            limit = None
        else:
            limit = arguments.limit("the limit in result.attrs", recorded_limit)
    _refuse_paths_beyond(graph, holds_hops, limit)
    return limit


def _refuse_paths_beyond(graph: Graph, counts_hops: bool, limit: Any) -> None:
    """Raise InputError if paths to vertices within ``limit`` may lead through farther ones, which a
    result lacks. This is so with negative weights.
    """
    if limit is not None and not counts_hops and graph.has_negative_weights:
        raise InputError(
            "result was made with a cutoff, and with negative weights paths may lead through vertices beyond it: certify a "
            "result that was made without one"
        )


def certify_many(
    graph: Graph, source_vertices: Ids, distances: Array, limit: Any = None
) -> Certificate:
    """Certify distances from many sources, without predecessors. Each edge is read once per block
    of sources.

    Parameters
    ----------
    graph : Graph
    source_vertices : integer array of shape (n_sources,), NumPy
        Vertex numbers of the sources.
    distances : array of shape (n_sources, n_vertices), on the graph's device, or SparseDistances
        One row per source; there may be gaps between rows. Hops as int8, int16 or int32 with -1 for
        unreached vertices, or weighted distances in the type of the graph's weights with ``inf``.
        Distances of integer weights may also have a wider type of float32, float64, and int64 with
        2**63 - 1.
    limit : int or float, or sequence of one per source, optional
        Every vertex up to this distance must be reached, and no vertex beyond it. In a sequence
        None and ``inf`` mean that there is no limit.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        The arrays fit neither each other nor the graph, or there are no sources.
    DeviceError
        The distances are not on the graph's device.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
    >>> certify_many(graph, np.array([0, 1]), np.array([[0, 1, 2], [-1, 0, 1]], np.int8)).valid
    True
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    _check_device(graph, distances)
    # A ``limit`` with an index of pandas, one per source, is put in the order of the sources by the
    # labels of both indexes. Anything else stays as it is.
    limit = in_order("limit", limit, Partner("source_vertices", get_index(source_vertices)))
    sources = _read_sources(source_vertices)
    distances = _as_distances(graph, distances)
    _check_sources(graph, sources, distances)

    limits = _limits_of_sources(limit, sources.size)
    for source_limit in set(limits):
        _refuse_paths_beyond(graph, is_hops(distances.dtype), source_limit)
    # Weights in the type of the distances, so that sums are rounded as in the search.
    if not is_hops(distances.dtype):
        graph_of_type = _in_type_of_distances(graph, distances.dtype)
        # Sums near the limit may be rounded to it: look at them in a type that holds them.
        if any(_may_round(graph, distances.dtype, source_limit) for source_limit in set(limits)):
            rows = _rows_on_device(graph, distances)
            return certify_many(graph, sources, _widen(rows), limits)
        graph = graph_of_type
    elif distances.dtype not in (np.int8, np.int16, np.int32):
        raise InputError(f"hops must be int8, int16 or int32, not {distances.dtype}")
    return _certify_batch(graph, sources.astype(np.int64, copy=False), distances, limits)


def _check_device(graph: Graph, distances: Any) -> None:
    """Raise DeviceError for distances on another device than the graph. ``SparseDistances`` may be
    on either.
    """
    is_sparse = isinstance(distances, SparseDistances)
    if get_device(distances) != graph.device and not is_sparse:
        raise DeviceError(
            f"distances are on the {get_device(distances)} and the graph "
            f"on the {graph.device}; move either"
        )


def _read_sources(source_vertices: Any) -> np.ndarray:
    """Return what the caller gives for vertex numbers as an array of NumPy. Its shape and values
    are checked by ``_check_sources``.

    Raises InputError: it cannot be read as numbers.
    """
    try:
        sources: Any = arguments.ids("source_vertices", source_vertices)
    except InputError as error:
        raise InputError(f"{_WANTED_SOURCES}: {error}") from None
    if isinstance(sources, list) and any(isinstance(number, bool) for number in sources):
        raise InputError("source_vertices must be vertex numbers, not True or False")
    return np.asarray(sources)


def _as_distances(graph: Graph, distances: Any) -> Any:
    """Return distances from many sources in a form that can be checked: ``SparseDistances``,
    ``InterleavedDistances``, or an array on the graph's device.

    Raises InputError: they are none of these, and no array can be made of them.
    """
    if isinstance(distances, (SparseDistances, InterleavedDistances)):
        return distances
    try:
        return namespace(graph.offsets).asarray(distances)
    except Exception as error:  # an object of any library may raise any error
        raise InputError(f"distances cannot be read as an array: {error}") from None


def _check_sources(graph: Graph, sources: np.ndarray, distances: Any) -> None:
    """Raise InputError unless ``sources`` is an array of vertex numbers of the graph, at least one,
    and ``distances`` have a row for each.
    """
    if sources.ndim != 1 or sources.dtype.kind not in "iu" or not sources.size:
        raise InputError(_WANTED_SOURCES)
    expected = sources.size, graph.n_vertices
    if distances.shape != expected:
        raise InputError(
            f"distances must have the shape {expected}, not "
            f"{distances.shape}: one row for each of source_vertices"
        )
    if sources.min() < 0 or sources.max() >= graph.n_vertices:
        raise InputError(f"source_vertices must lie in 0..{graph.n_vertices - 1}")


def _rows_on_device(graph: Graph, distances: Any) -> Any:
    """Return the distances of any form as rows, on the graph's device."""
    if is_rows(distances):
        return distances
    return namespace(graph.offsets).asarray(distances.rows())


def _certify_batch(
    graph: Graph, sources: np.ndarray, distances: Any, limits: list[Any]
) -> Certificate:
    """Certify distances from many sources, whose type fits the graph, in the way that their form
    allows.

    ``sources`` are int64 vertex numbers. ``distances`` are ``InterleavedDistances``,
    ``SparseDistances`` or an array of rows. ``limits`` has one per source, None where there is
    none.
    """
    if isinstance(distances, InterleavedDistances):
        if _interleaved_are_valid(graph, sources, distances, limits):
            return Certificate({}, sources.size)
        distances = distances.rows()  # a check of these tells which rule is broken
    elif isinstance(distances, SparseDistances):
        if _is_checked_as_sparse(graph, distances):
            findings = distances.check(graph, sources, limits)
            return _certificate_of_findings(graph, sources, distances, findings)
        distances = _rows_on_device(graph, distances)
    # Rows: first what does not depend on edges, and then the five rules.
    faults = _find_unsound(graph, distances)
    if faults:
        return Certificate(faults, sources.size)
    findings = _findings_of_batch(graph, sources, distances, limits)
    return _certificate_of_findings(graph, sources, distances, findings)


def _is_checked_as_sparse(graph: Graph, distances: SparseDistances) -> bool:
    """Return whether sparse distances, which list reached vertices only, can be checked in this
    form, without a row per source.
    """
    if graph.has_negative_weights:
        return False  # paths may lead through vertices that are farther than the limit
    if is_hops(distances.dtype) or not graph.integer_weights:
        return True
    # Sums of integers that the type may round, from EXACT_BELOW on, are a fault, which a check of
    # rows reports.
    return not distances.any_beyond(EXACT_BELOW[distances.dtype])


def _limits_of_sources(limit: Any, n_sources: int) -> list[Any]:
    """Return the limit of each source, None where there is none.

    ``limit`` is one for all, or a sequence with one for each.
    """
    if limit is None:
        return [None] * n_sources
    if isinstance(limit, (list, tuple)):
        # as numbers, so that all are checked in one way
        limit = [np.inf if source_limit is None else source_limit for source_limit in limit]
    limits = arguments.limits("limit", limit, n_sources)
    if limits is None:  # it is one number
        return [arguments.limit("limit", limit)] * n_sources
    return [None if source_limit == np.inf else source_limit for source_limit in limits]


def _certificate_of_findings(
    graph: Graph, sources: np.ndarray, distances: Any, findings: np.ndarray
) -> Certificate:
    """Return the certificate that says what a check has found, with an example of each broken rule.

    ``findings``, int64 of shape (5, 3), has for each of C1 to C5 the number of violations, and the
    position of the source and the vertex of an example. ``distances`` have one of the forms that
    ``_as_distances`` returns.
    """
    failures = {}
    for rule, (n_violations, position, vertex) in zip(RULES, findings.tolist(), strict=True):
        if n_violations:
            source = _id(graph, sources[position])
            failures[rule] = (
                f"{n_violations} distances {_BROKEN[rule]}, one of them from source {source} "
                f"to {_name(graph, vertex)}: {_distance_at(distances, position, vertex)}"
            )
    return Certificate(failures, sources.size)


def _distance_at(distances: Any, position: int, vertex: int) -> Any:
    """Return the distance of the vertex number ``vertex`` from the source of row ``position``."""
    if is_rows(distances):
        return to_host(distances[position : position + 1, vertex])[0]
    return distances.distance_between(position, vertex)


def certify_group(graph: Graph, traversals: Traversals) -> None:
    """Certify the traversals from several sources, with their predecessors if there are any; raise
    CertificateError if one is wrong.
    """
    if traversals.predecessor is not None:
        for traversal in traversals:
            certify(graph, traversal).require()
        return
    # Sparse distances may say that they were certified when they were found.
    if getattr(traversals.distance, "is_certified", False):
        return
    limits: Any = traversals.limits  # a search that ended at its targets has a limit of its own
    if limits.count(limits[0]) == len(limits):
        limits = limits[0]
    certify_many(graph, traversals.sources, traversals.distance, limits).require()


def _interleaved_are_valid(
    graph: Graph, sources: np.ndarray, distances: Any, limits: list[Any]
) -> bool:
    """Return whether interleaved distances, the integer sums of each vertex side by side on a GPU,
    obey all rules; False also where only a check of rows can tell.

    ``limits`` has one per source, None where there is none.
    """
    if len(set(limits)) > 1 or graph.has_negative_weights:
        return False
    # Such a check reads whole lines, with all of their lanes, also those without a source. So it
    # needs the first source in lane 0 (``first``), and is not worth it where half of the lanes or
    # more have no source.
    if distances.first or distances.lines.shape[1] >= 2 * len(distances):
        return False
    # Sums of integers that the type may round are a fault, which a check of rows reports.
    if graph.integer_weights and distances.highest >= EXACT_BELOW[distances.dtype]:
        return False
    return bool(batch_gpu.are_interleaved_valid(graph, sources, distances, limits[0]))


def _findings_of_batch(
    graph: Graph, sources: np.ndarray, distances: Array, limits: list[Any]
) -> np.ndarray:
    """Check rows of distances from many sources, on the device of the graph, or for int64 on the
    host. Return the findings that ``_certificate_of_findings`` takes.

    ``sources`` are int64 vertex numbers. ``limits`` has one per source, None where there is none.
    """
    if distances.dtype == np.int64:
        return integer_sums.check_distances(graph, sources, distances, limits)
    backend = batch_gpu if graph.device == "cuda" else batch_cpu
    return batch.check_distances(backend.summaries, graph, sources, distances, limits)


# What the distances do that break a rule, in messages.
_BROKEN = {
    "C1": "of a source to itself are not 0",
    "C2": "are out of range",
    "C3": "are longer than an edge allows",
    "C4": "are explained by no edge",
    "C5": "are explained only by each other",
}


def _in_type_of_distances(graph: Graph, dtype: np.dtype) -> Graph:
    """Return the graph with weights of ``dtype``, the type of weighted distances.

    Raises InputError: searches of this graph return no distances of that type.
    """
    if graph.weights is None:
        raise InputError(f"distances are {dtype}, and the graph has no weights")
    # Integer distances may have the type of the weights, or a wider one of float32, float64, int64,
    # which are the keys of EXACT_BELOW in this order.
    dtypes = list(EXACT_BELOW)
    if graph.returns_integers:
        allowed = dtypes[dtypes.index(graph.weights.dtype) :]
    else:
        allowed = [graph.weights.dtype]
    if dtype not in allowed:
        raise InputError(f"distances are {dtype}, and the graph has {graph.weights.dtype} weights")
    return graph.derived.sums_in(dtype.name)


def _may_round(graph: Graph, dtype: np.dtype, limit: float | None) -> bool:
    """Return whether a sum of integers beyond ``limit`` could be rounded to one within it, in a
    float type whose distances are otherwise exact. ``dtype`` is the type of the distances.
    """
    if not graph.returns_integers or dtype.kind != "f" or limit is None:
        return False
    # Distances and weights are exact, below the bound. Their sums are below twice the bound, and
    # those below the bound itself are exact, too.
    return EXACT_BELOW[dtype] <= limit <= 2 * EXACT_BELOW[dtype]


def _widen(distance: Array) -> Array:
    """Return distances that represent integers in the next wider type, float64 or int64, which
    rounds none of these sums.
    """
    if distance.dtype == np.float32:
        return distance.astype(np.float64)
    return to_integers(distance)


def _find_unsound(graph: Graph, distance: Any) -> dict[str, str]:
    """Return faults of weighted distances that are seen without the edges of the CSR: a sum of
    integers that may be rounded, or a reached vertex with a negative self-loop.

    The result is a description by rule, empty without a fault. ``distance`` has shape (n,) or
    (k, n). Hops have no such fault.
    """
    if is_hops(distance.dtype):
        return {}
    if (
        graph.integer_weights
        and distance.dtype.kind == "f"
        and any_beyond(distance, EXACT_BELOW[distance.dtype])
    ):
        bound = EXACT_BELOW[distance.dtype]
        return {
            "C2": (
                f"a distance is {bound:,} or more, where {distance.dtype} "
                "does not hold every sum of integers"
            )
        }

    # Self-loops are no edges of the CSR. A negative one is a negative cycle.
    loops = np.array(list(graph.negative_loops), np.int64)
    if loops.size:
        at_loops = distance[..., namespace(distance).asarray(loops)].reshape(-1, loops.size)
        reached_loops = np.flatnonzero(to_host(is_reached(at_loops).any(axis=0)))
        if reached_loops.size:
            return {
                "C3": (
                    f"{_name(graph, loops[reached_loops[0]])} has a self-loop of negative "
                    "weight: no distance is the shortest"
                )
            }
    return {}


class _Findings(NamedTuple):
    """What the passes over a traversal with predecessors have found (``check`` of ``single_cpu``
    and ``single_gpu``): numbers of vertices and edges, and the first vertex of some.
    """

    n_roots: int  # number of vertices that are their own predecessor
    n_bad: int  # number of vertices that break C2
    # the smallest of these vertices; the number of all vertices if there is none, here and below
    first_bad: int
    n_reached: int  # number of reached vertices
    n_violated: int  # number of edges that break C3
    first_violated: int  # the smallest vertex that such an edge leads to
    n_unexplained: int  # number of vertices that break C4
    first_unexplained: int  # the smallest of these vertices
    n_level: int  # number of reached vertices, but the source, no farther than their predecessor


def _broken_rules(graph: Graph, result: Traversal) -> dict[str, str]:
    """Return a description of the violation per rule, C1 to C5, that a traversal breaks; an empty
    dict if it is right.

    Raises InputError: the traversal has no predecessors, or distances of a type that does not fit
    the graph.
    """
    if result.predecessor is None:
        raise InputError(
            "a certificate needs predecessors: plan with predecessors=True, or take certify_many"
        )
    backend = single_gpu if graph.device == "cuda" else single_cpu
    distance = result.distance
    predecessor = result.predecessor
    if distance.shape != (graph.n_vertices,) or predecessor.shape != (graph.n_vertices,):
        return {
            "C2": f"{distance.size} distances and {predecessor.size} predecessors for {graph.n_vertices} vertices"
        }
    # Weights in the type of the distances, so that sums are rounded as in the search.
    algorithm = ALGORITHMS[result.algorithm]
    if algorithm.is_weighted:
        graph_of_type = _in_type_of_distances(graph, distance.dtype)
        if _may_round(graph_of_type, distance.dtype, result.limit):
            return _broken_rules(graph, replace(result, distance=_widen(distance)))
        graph = graph_of_type

    # the largest distance of the type within the limit; without one (``no_limit``) any distance
    limit = as_distance(
        algorithm.no_limit if result.limit is None else result.limit, distance.dtype
    )
    faults = _find_unsound(graph, distance)
    if faults:
        return faults
    # Sums in int64 have a check of their own, on the host.
    if distance.dtype == np.int64:
        return _broken_rules_of_int64(graph, result)

    # One pass over vertices and edges, whose counts become descriptions.
    findings = _Findings(*backend.check(graph, result, limit))
    failures = {}
    source = result.source
    if not (distance[source] == 0 and predecessor[source] == source and findings.n_roots == 1):
        failures["C1"] = (
            f"source {_name(graph, source)} has distance {distance[source]}, and "
            f"{findings.n_roots} vertices are their own predecessor"
        )
    if findings.n_bad:
        failures["C2"] = (
            f"{findings.n_bad} vertices out of range, the first is {_name(graph, findings.first_bad)}: "
            f"distance {distance[findings.first_bad]}, predecessor {predecessor[findings.first_bad]}"
        )
    if failures:
        return failures  # the other rules mean nothing for such values
    if findings.n_violated:
        failures["C3"] = (
            f"{findings.n_violated} edges allow a shorter distance, the first "
            f"leads to {_name(graph, findings.first_violated)}"
        )

    # If every predecessor is strictly nearer, there is no cycle, and none is looked for. This holds
    # for all of BFS and nearly all of SSSP.
    may_circle = bool(findings.n_level or findings.n_unexplained)
    return failures | _wrong_predecessors(
        graph, result, findings.n_unexplained, findings.first_unexplained, may_circle
    )


def _broken_rules_of_int64(graph: Graph, result: Traversal) -> dict[str, str]:
    """Return a description of the violation per rule that a traversal breaks, for distances in
    int64; an empty dict if it is right.
    """
    findings = integer_sums.check_distances(
        graph, np.array([result.source]), result.distance[None], [result.limit]
    )
    failures = {
        rule: f"{count} distances {_BROKEN[rule]}, one of them that of {_name(graph, vertex)}"
        for rule, (count, _, vertex) in zip(RULES, findings.tolist(), strict=True)
        if count
    }
    # The check above has looked at distances alone. A circle is looked for only if all else holds.
    wrong = integer_sums.wrong_predecessors(graph, result)
    first = int(wrong[0]) if wrong.size else 0  # 0 is not looked at
    by_predecessors = _wrong_predecessors(
        graph, result, wrong.size, first, not failures and not wrong.size
    )
    return failures | {
        rule: fault for rule, fault in by_predecessors.items() if rule not in failures
    }


def _wrong_predecessors(
    graph: Graph, result: Traversal, n_unexplained: int, first: int, may_circle: bool
) -> dict[str, str]:
    """Return descriptions of what breaks C4 and C5, by rule.

    ``n_unexplained`` is the number of vertices that break C4, and ``first`` the smallest of these,
    or any number if there are none. C5,
    predecessors that form a circle, is checked only if ``may_circle``.
    """
    failures = {}
    if n_unexplained:
        failures["C4"] = (
            f"{n_unexplained} vertices have no edge from their predecessor that explains their distance, "
            f"the first is {_name(graph, first)}"
        )
    cycle = _predecessor_cycle(result) if may_circle else None
    if cycle is not None:
        failures["C5"] = f"the predecessors of {_name(graph, cycle)} run in a circle"
    return failures


def _id(graph: Graph, vertex: int) -> Any:
    """Return the user's id of a vertex number."""
    return graph.ids_at(namespace(graph.offsets).asarray([vertex]))[0]


def _name(graph: Graph, vertex: int) -> str:
    """Return a vertex number as messages name it, by the user's id."""
    return f"vertex {_id(graph, vertex)}"


def _predecessor_cycle(result: Traversal) -> int | None:
    """Return a vertex whose predecessors never lead to the source (rule C5), or None if there is
    none. All predecessors of reached vertices are vertex numbers.
    """
    distance = result.distance
    predecessor = result.predecessor
    xp = namespace(distance)
    # Steps back stay at the source, its own predecessor. More of them than vertices end there, or
    # the vertex leads into a cycle.
    ancestor = xp.where(result.reached, predecessor, result.source)
    for _ in range(max(1, int(distance.size).bit_length())):
        ancestor = ancestor[ancestor]  # pointer doubling: 2^k steps back after k iterations
    vertices = xp.flatnonzero(ancestor != result.source)
    return int(vertices[0]) if vertices.size else None
