"""Results of traversals from many sources, in the forms of ``RESULT_KINDS``.

``bfs_many`` and ``sssp_many`` take the name of a form as ``result=``. Results are assembled group
by group, so that memory holds the result and the distances of one group. Frames of cuDF, of strings
and with unreached vertices are in memory twice while they are concatenated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import MAX_INTEGER, as_distances, is_rows, namespace, positions_in_groups
from ..errors import InputError, NegativeCycleError, option_text, several
from ..graph import Graph, find_vertices, has_vertex
from ..graph.closed import where_paths_begin, where_paths_end
from ..kinds import rules
from ..kinds.constraints import Constraint, GivenOptions, refuse, violations
from ..kinds.loads import Loads
from ..kinds.question import Question
from ..kinds.records import Asked, columns_of_records, join_records, records_of_group
from ..kinds.result_kinds import RESULT_KINDS, ResultKind
from ..labels import Partner, get_index, in_order
from ..protocols import Ids
from ..runtime import LOG
from ..runtime.progress import Meter
from ..search.algorithms import ALGORITHMS, Algorithm
from ..search.exact import admits_all
from ..search.frames import (
    UNREACHED_CHOICES,
    Column,
    FrameKind,
    attach_query,
    columns_on_device,
    frames_on,
)
from ..search.query import SourceValues
from ..search.results import Traversals

RESULTS = tuple(RESULT_KINDS)


def _options_per(kind: ResultKind, table: str) -> list[str]:
    """Return the names of the options of a kind that have a value per source, or per target.

    ``table`` is "sources" or "targets".
    """
    # The metadata of such an option names the table whose rows its values belong to.
    own = fields(kind.options_class)
    return [option.name for option in own if option.metadata.get("table") == table]


def _all_options_per(table: str) -> list[str]:
    """Return the names of the options of all kinds that have a value per source, or per target,
    each once. ``table`` is "sources" or "targets".
    """
    names = [name for kind in RESULT_KINDS.values() for name in _options_per(kind, table)]
    return list(dict.fromkeys(names))


def no_set(table: str, name: str) -> Constraint:
    """Return the rule that refuses a set of vertices together with an option that has a value for
    each: a set has no order, so the values belong to no vertex.

    ``table`` is "sources" or "targets", and ``name`` the option.
    """

    def violated(given: GivenOptions) -> bool:
        """Return whether the vertices are a set, and the option has a value for each."""
        is_set = isinstance(given.value(table), (set, frozenset))
        return is_set and given.is_given(name) and name in _options_per(given.kind, table)

    return Constraint(
        names=(table, name),
        violated=violated,
        why="{0} must be a list, in the order of {1}",
        remedy="a set has no order",
    )


# Rules of options that hold for calls of ``bfs_many`` and ``sssp_many`` only, and not for the job.
CALL_RULES = (
    Constraint(
        names=("result",),
        violated=lambda given: given.kind.needs_pairs,
        why="{result=} needs a table of pairs",
        remedy="take bfs_pairs, sssp_pairs or paths(graph, pairs)",
    ),
    Constraint(
        names=("stream", "result"),
        violated=lambda given: given.value("stream") == "arrow" and given.kind.array_of is not None,
        why="{result=} is an array, which has no record batches",
        remedy="take stream=True, or {result=distances}",
    ),
    *(no_set(table, name) for table in ("sources", "targets") for name in _all_options_per(table)),
)
DIRECTIONS = ("out", "in")
ALL = "all"  # as ``sources``: every vertex
ARROW = "arrow"  # as ``stream``: record batches


def outputs_needed_by(result: str, algorithm: str, targets: Ids | None) -> str:
    """Return what searches must output for a result: "all" distances, those of the "targets",
    "counts" of vertices per level, or "paths", as in ``Query.output``.

    ``result`` is the name of a kind, and ``targets`` are ids or None.

    Raises InputError: the result does not exist, or not for this algorithm, or it needs targets.
    """
    kind = RESULT_KINDS[arguments.choice("result", result, tuple(RESULT_KINDS))]
    rules.check(kind, algorithm, {"targets": None if targets is None else option_text("targets")})
    has_targets = targets is not None or kind.needs_pairs
    return kind.keeps_for(ALGORITHMS[algorithm].counts_hops, has_targets)


@dataclass(frozen=True, kw_only=True)
class GivenCall:
    """A call of ``bfs_many`` or ``sssp_many``: its arguments, by their names and not yet checked,
    but for graph and sources.

    Attributes
    ----------
    result
        The name of a kind of result.
    limit
        ``max_depth`` or ``cutoff``.
    strategy, targets, knobs, unreached, direction, memory, hierarchy, progress
        As in ``bfs_many``.
    stream
        False, True, or ``ARROW`` for record batches.
    of_kind : mapping
        The options that not all result kinds take, by name; None for those that are not given.
    """

    result: Any
    limit: Any
    strategy: Any
    targets: Any
    knobs: Any
    unreached: Any
    direction: Any
    memory: Any
    hierarchy: Any
    progress: Any
    stream: Any
    of_kind: Mapping[str, Any]

    def by_its_kind(self) -> GivenCall:
        """Return the call with two arguments resolved.

        ``unreached`` becomes an option of the kind of result, in ``of_kind``. ``result="nearest"``
        becomes the kind that it means: with ``k``, that of the k nearest.
        """
        # Most kinds refuse ``unreached``, and so it is handed on only where it differs from the
        # default.
        of_kind = dict(self.of_kind)
        if arguments.choice("unreached", self.unreached, UNREACHED_CHOICES) != "omit":
            of_kind["unreached"] = self.unreached
        result = self.result
        if isinstance(result, str):
            has_targets = self.targets is not None
            k = arguments.plain(of_kind.get("k"))  # products of NumPy's int8 would overflow
            result, of_kind["k"] = rules.choose_kind(result, k, has_targets)
        return replace(self, unreached="omit", result=result, of_kind=of_kind)


def check_arguments(
    graph: Graph, sources: Any, call: GivenCall, algorithm: Algorithm
) -> tuple[Graph, np.ndarray, Any, GivenCall]:
    """Check the arguments of ``bfs_many`` and ``sssp_many``.

    Return the graph to search, the reverse for ``direction="in"``; the vertex numbers of the
    sources, int64 of shape (k,), in the given order; the ids of the targets, or None; and the call
    with all values per source and per target in the order of these.

    Raises InputError, TypeError or UnknownVertexError: an argument is wrong.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    direction = call.direction
    stream = call.stream
    options = call.of_kind
    kind = RESULT_KINDS[arguments.choice("result", call.result, tuple(RESULT_KINDS))]
    if call.memory is not None:
        arguments.whole("memory", call.memory)
    if not arguments.is_flag(stream) and not (isinstance(stream, str) and stream == ARROW):
        raise InputError(
            f"stream must be True, False or {ARROW!r}, not {arguments.describe(stream)}"
        )

    # Refuse options that do not fit the kind or each other, by two sets of rules: those of this
    # call, and those that the job shares.
    refuse_unknown(options)
    # ``written`` has each option as the caller writes it, None for those that are not given.
    values = {**options, "targets": call.targets}
    for option in fields(kind.options_class):  # those of a plug-in are not in the signature
        values.setdefault(option.name, None)
    written = {name: None if value is None else name for name, value in values.items()}
    written["limit"] = None if call.limit is None else algorithm.limit_name
    written["direction"] = (
        "direction='in'" if arguments.choice("direction", direction, DIRECTIONS) == "in" else None
    )
    written["stream"] = "stream" if stream else None
    # From here on ``values`` are the arguments at whose values the rules of this call look.
    values = {
        "sources": sources,
        "targets": call.targets,
        "stream": stream if isinstance(stream, str) else None,
    }
    given_options = GivenOptions(
        kind=kind, algorithm=algorithm.name, written=written, values=values
    )
    refuse(violations(given_options, CALL_RULES))
    rules.check(kind, algorithm.name, written)

    # the pandas indexes of these two arguments, None where one has no index
    indexes = {"sources": get_index(sources), "targets": get_index(call.targets)}
    numbers = source_numbers(graph, given_sources(sources))
    targets = None if call.targets is None else arguments.ids("targets", call.targets)

    # Values per source and per target belong to their index, or are in their order. A ``Partner``
    # has what they belong to: the index and the vertex numbers, and a function that finds the
    # vertices of the labels of an index.
    partners = {
        "sources": Partner("sources", indexes["sources"], numbers, partial(find_vertices, graph))
    }
    if targets is not None and options_per(call, "targets"):
        target_numbers = graph.to_numbers(targets, "target")
        partners["targets"] = Partner(
            "targets", indexes["targets"], target_numbers, partial(find_vertices, graph)
        )

    # In the reverse, a closed vertex has its numbers the other way round: a search begins at the
    # one where paths of the graph end.
    searched = graph_in_direction(graph, direction)
    if searched is not graph:
        numbers = where_paths_end(graph, numbers)
    return searched, numbers, targets, with_values_in_order(partners, call, algorithm)


def options_per(question: GivenCall, table: str) -> list[str]:
    """Return the names of the options of a call that are given and have a value per source, or per
    target.

    ``question`` is the call, and ``table`` is "sources" or "targets".
    """
    return [
        name
        for name in _options_per(RESULT_KINDS[question.result], table)
        if question.of_kind.get(name) is not None
    ]


def with_values_in_order(
    partners: Mapping[str, Partner], question: GivenCall, algorithm: Algorithm
) -> GivenCall:
    """Return a call whose values per source and per target are in the order of these. A Series, for
    example, is ordered by the labels of its index.

    ``question`` is the call. ``partners`` has, by "sources" and "targets", what the values belong
    to. The limit may be one per source.
    """
    of_kind = dict(question.of_kind)
    for table, partner in partners.items():
        for name in options_per(question, table):
            of_kind[name] = in_order(name, of_kind[name], partner)
    limit = in_order(algorithm.limit_name, question.limit, partners["sources"])
    return replace(question, of_kind=of_kind, limit=limit)


def refuse_unknown(options: Iterable[str]) -> None:
    """Raise TypeError, as Python does for an unknown argument, if an option by one of the names
    ``options`` exists for no kind of result.
    """
    # ``library=False`` in its metadata marks an option that the job alone has.
    known = {
        option.name
        for kind in RESULT_KINDS.values()
        for option in fields(kind.options_class)
        if option.metadata.get("library", True)
    }
    unknown = sorted({*options} - known)
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; no result has such an option")


def given_sources(sources: Any) -> Any:
    """Return the argument ``sources`` as ids: a list, an integer array or ``"all"``. One id becomes
    a list. A set, which has no order, stays a set.
    """
    if isinstance(sources, str) and sources == ALL:
        return sources
    if arguments.is_one_id(sources):
        return arguments.ids("sources", [sources])
    if isinstance(sources, (set, frozenset)):
        return sources
    return arguments.ids("sources", sources)


def source_numbers(graph: Graph, sources: Any) -> np.ndarray:
    """Return the vertex numbers of sources, int64 of shape (k,), in their order; those of a set
    ascending.

    ``sources`` is what ``given_sources`` returns.

    Raises InputError (``"all"`` could mean a vertex of this name) or UnknownVertexError (some ids
    are not vertices).
    """
    if isinstance(sources, str):  # "all"
        if graph.has_string_ids and has_vertex(graph, ALL):
            raise InputError(
                f"sources={ALL!r} could mean every vertex or the vertex of this name; give [{ALL!r}] for that vertex, or "
                "graph.ids for every vertex"
            )
        return where_paths_begin(graph)
    if isinstance(sources, (set, frozenset)):
        return np.sort(graph.to_numbers(list(sources)))
    return graph.to_numbers(sources)


def graph_in_direction(graph: Graph, direction: str) -> Graph:
    """Return the graph, or its reverse for distances to a source (``direction="in"``)."""
    if arguments.choice("direction", direction, DIRECTIONS) == "out" or not graph.directed:
        return graph
    return graph.derived.linked_reverse()


def cycle_in_direction(error: NegativeCycleError, direction: str) -> NegativeCycleError:
    """Return an error with its cycle in the direction of the edges of the caller's graph. With
    ``direction="in"`` the search was in the reverse, which has the cycle the other way round.
    """
    if direction == "out":
        return error
    return NegativeCycleError(error.cycle[::-1], error.weight)


def limits_per_source(
    graph: Graph,
    algorithm: Algorithm,
    kind: ResultKind,
    limit: Any,
    sources: Any,
    numbers: np.ndarray,
) -> SourceValues | None:
    """Return the limits of the sources, by vertex number; None if all have the same.

    ``limit`` is what the caller gives as one limit, or as one per source. ``sources`` are those
    that the caller gives, in that order, and ``numbers`` their vertex numbers. ``kind`` is the kind
    of result.

    Raises InputError: there is not one limit per source, or a limit has a wrong value; a source is
    given twice with different limits; or the kind of result is one search from all sources.
    """
    name = algorithm.limit_name
    limits = arguments.limits(name, limit, numbers.size)
    if limits is None:  # one limit for all sources, or none
        return None
    rules.check(kind, algorithm.name, {"limits": name})  # refuses kinds that take one limit only
    if isinstance(sources, (set, frozenset)):
        raise InputError(f"sources must be a list, in the order of {name}; a set has no order")

    # As int64 or float64, as distances of the result are, rounded down where the type does not
    # hold a limit.
    if algorithm.counts_hops:
        values = np.array([algorithm.largest_limit(each) for each in limits], np.int64)
    elif graph.returns_integers:
        # A limit beyond all that int64 holds, such as infinity, becomes the largest number.
        values = as_distances(limits, np.dtype(np.int64))
        values[[admits_all(graph, each) for each in limits]] = MAX_INTEGER
    else:
        values = as_distances(limits, np.dtype(np.float64))

    def error_of_two_limits(row: int, _: int) -> InputError:
        """Return the error for a source whose limit in row ``row`` differs from an earlier one."""
        vertex = graph.ids_at(namespace(graph.offsets).asarray(numbers[row : row + 1])).tolist()[0]
        return InputError(
            f"source {arguments.describe(vertex)} is given twice with "
            "different limits; call once for each"
        )

    return SourceValues.of_rows(numbers, values, error_of_two_limits)


def compute_result(plan: Any, numbers: np.ndarray, question: Question, meter: Meter) -> Any:
    """Search from many sources by ``plan``, a ``MultiSourcePlan``, and return the result that
    ``question`` asks for: a frame or an array.

    ``numbers`` are the vertex numbers of the sources, int64, in the order of the result. A source
    that occurs twice is searched once. ``meter`` reports the progress.
    """
    form = ResultForm(plan, question, frames_on(plan.graph.device))

    # Distinct sources in ascending order need no sorting, which for all vertices takes as long as
    # short searches.
    if (numbers[1:] > numbers[:-1]).all():
        distinct = numbers
        places = np.arange(numbers.size)
    else:
        distinct, places = np.unique(numbers, return_inverse=True)

    # Not cut at the limit, as each kind of result leaves out what is beyond it.
    groups = plan.iter_groups(distinct, cut=False)
    try:
        with meter.running():
            # ``over`` yields the groups, and reports their sources as done.
            return form.make(meter.over(groups), distinct, places)
    except BaseException:  # a kept error keeps this frame, and with it the plan's memory
        plan.release()
        raise


class ResultForm:
    """Makes the results of a question from the groups of a plan.

    ``plan`` is a ``MultiSourcePlan``, and ``kind`` the kind of result that is asked for. ``frames``
    says of which library frames are: pandas, cuDF or pyarrow.
    """

    def __init__(self, plan: Any, question: Question, frames: FrameKind) -> None:
        """Keep the plan, and what its results need to know of the question: ``_asked``, an
        ``Asked`` with the graph, the query and the options of the kind.
        """
        self.plan = plan
        self.kind = question.kind
        self._frames = frames
        self._asked = question.asked(plan.graph, plan.query)

    def make(self, groups: Iterable[Traversals], distinct: np.ndarray, places: np.ndarray) -> Any:
        """Return a result, a frame or an array, from the groups of searches.

        ``groups`` have the searches from ``distinct`` sources, int64 vertex numbers, in this order.
        ``places`` has, for each source of the result in its order, the position in ``distinct``.
        """
        kind = self.kind
        asked = self._asked
        # A kind of result has one of four ways: loads, such as flows, that are added up over all
        # groups; an array; a frame of its own; or records of each source.
        if kind.make_loads is not None:
            return loads_frame(kind.make_loads(asked), groups, self._frames)
        if kind.array_of is not None:
            return kind.array_of(asked, groups, places)

        # The first group shows the form of the distances: an array of rows, or entries of reached
        # vertices only, of which ``make_frame`` takes none. It is put back in front of the others.
        groups = iter(groups)
        first = next(groups, None)
        groups = () if first is None else chain([first], groups)
        if kind.make_frame is not None and (first is None or is_rows(first.distance)):
            frame = kind.make_frame(asked, groups, places, self._frames)
        else:
            frame = self._frames.make(_columns_of_sources(asked, groups, places, distinct[places]))

        # The query is kept with the frame, so that its distances can be certified later. That takes
        # a search, one limit for all sources, and distances, which bands are not. ``is_limited``
        # means that one of these is missing.
        is_limited = first is None or self.plan.query.limits is not None or not kind.is_distances
        if is_limited:
            return frame
        return attach_query(frame, self.plan)

    def make_group(self, group: Traversals) -> Any:
        """Return the result of one group, in memory of its own."""
        return self.make([group], group.sources, np.arange(len(group)))

    def make_empty(self) -> Any:
        """Return the result without a source, which has the types of all others."""
        no_sources = np.zeros(0, np.int64)
        return self.make([], no_sources, no_sources)


def loads_frame(loads: Loads, groups: Iterable[Traversals], frames: FrameKind) -> Any:
    """Add the searches of all groups to ``loads``, the flows or the betweenness of edges or
    vertices, and return these as a frame.

    The ``attrs`` of the frame, if its library has them, say how many pairs have no path, and what
    volume. A warning is logged if there are such pairs.
    """
    for group in groups:
        loads.add(group)
    frame = frames.make(columns_on_device(loads.columns(), loads.asked.graph))

    # The pairs without a path: their number, and what they would have carried, by the name of the
    # column of loads (``value``).
    lost = loads.lost()
    if lost["pairs"]:
        LOG.warning(
            "%s without a path: a %s of %s is on no edge",
            several(lost["pairs"], "pair"),
            loads.value,
            lost[loads.value],
        )
    if hasattr(frame, "attrs"):
        frame.attrs |= loads.facts()
    return frame


def _columns_of_sources(
    asked: Asked, groups: Iterable[Traversals], places: np.ndarray, numbers: np.ndarray
) -> dict[str, Column]:
    """Return the columns of records, the rows of a frame that belong to one source each, in the
    order of the sources of the result, on the graph's device.

    ``groups`` have the searches from distinct sources. ``places`` has, for each source of the
    result, its position among these, and ``numbers`` its vertex number.
    """
    # Records are in the order of the searches. Unless the result has the same order, they are taken
    # source by source: ``starts`` has the first record of each source of the result.
    # ``records.sizes`` has the records of each search, ``records.values`` their arrays by name.
    records = join_records([records_of_group(asked, group) for group in groups])
    sizes = records.sizes[places]
    values = records.values
    if not np.array_equal(places, np.arange(records.sizes.size)):
        starts = (np.cumsum(records.sizes) - records.sizes)[places]
        values = records.take(np.repeat(starts, sizes) + positions_in_groups(sizes))
    return columns_on_device(
        columns_of_records(asked, np.repeat(numbers, sizes), values), asked.graph
    )
