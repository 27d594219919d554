"""``result="flows"``: what each edge or vertex carries if the volume of each pair takes its
canonical shortest path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np

from .. import arguments
from .._arrays import MAX_INTEGER, get_device, is_rows, namespace, sort_distinct, to_host
from ..cpu import opportunities as decays
from ..cpu import threads
from ..cpu.edge_rows import find_edges
from ..cpu.exact_sums import BITS, find_exponent
from ..cpu.path_walk import NO_EDGE, Walks, new_walk_scratch
from ..cpu.tree_flows import Decay, Served, Tree, carry, new_tree, volumes_at
from ..errors import InputError, PrecisionError, option_text
from ..formats.tables import column_tuple, holds_rows
from ..graph import Graph
from ..graph.closed import count_listed, listed_vertices, where_paths_end
from ..graph.csr import no_edge
from ..search.algorithms import ALGORITHMS
from ..search.query import PairTable, SourceValues, compute_digest
from ..search.results import Traversals
from . import flows_gpu as gpu
from .conservation import Words, require_conserved, require_inflow, require_listed, uses_named
from .loads import CELLS, EXTRA, LOST, LOST_PAIRS, Loads, refuse_twice
from .opportunities import check_source_weights, parse_decay
from .pairs import ends_of_pairs, numbers_of_pairs
from .records import Asked, CheckedOptions, format_ids, unexplained_error
from .result_kinds import FlowOptions, ResultKind


class Through(NamedTuple):
    """Edges of which a path must use one."""

    cells: np.ndarray  # int64: their positions in the reversed graph, ascending


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedFlows(CheckedOptions):
    """Checked options of flows."""

    of: str  # {"edges", "vertices", "pairs"}: what carries the loads
    decay: int  # one of NO_DECAY to POWER of ``cpu.opportunities``
    # parameter, width: the first parameter of the decay, and the second one, which only a logistic
    # decay has; 0 where there is none
    parameter: float
    width: float
    source_weights: SourceValues | None  # by which what a source sends is multiplied; None for 1
    # What each target takes: int64 or float64, in the order of the targets. None for 1 each, and
    # for pairs.
    target_weights: np.ndarray | None
    # What goes from the origin to the destination of each pair: int64 or float64, in the order of
    # the rows. None for 1 each, and without pairs.
    volumes: np.ndarray | None
    # the edges of which a path must use one; None if all paths count
    through: Through | None

    @property
    def digest(self) -> str:
        """The SHA-256 of what determines a result, as hexadecimal digits."""
        weights = self.source_weights
        arrays = [each for each in (self.target_weights, self.volumes) if each is not None]
        if weights is None:
            of_sources = None
        else:
            of_sources = [str(weights.values.dtype), weights.digest]
        facts = [
            self.of,
            self.decay,
            self.parameter,
            of_sources,
            [str(each.dtype) for each in arrays],
        ]
        # Options that are not given add nothing to the digest.
        if self.width:
            facts.append(self.width)
        if self.through is not None:
            facts.append("through")
            arrays.append(self.through.cells)
        return compute_digest(facts, arrays)


def check_options(
    options: FlowOptions, kind: ResultKind, graph: Graph, algorithm: str, numbers: Mapping[str, Any]
) -> CheckedFlows:
    """Return the checked options of flows.

    ``kind`` says what carries the flows by default, and ``algorithm`` is "bfs" or "sssp".
    ``numbers`` has what is known of the ends: ``sources`` and ``targets``, int64 vertex numbers,
    and ``pairs``, a ``PairTable``.

    Raises InputError (an option has a wrong value, or is for pairs where there are sources and
    targets, or the reverse; a weight or a volume is below 0 or not finite; the graph has negative
    weights; a source is given twice; ``through`` names what is no edge) or PrecisionError (the
    volumes are too large to be added up).
    """
    # ``cells`` of the kind is what carries the flows where the user does not say it.
    given = kind.cells if options.of is None else options.of
    of = arguments.choice("of", given, CELLS)
    sources, targets, pairs = (numbers.get(name) for name in ("sources", "targets", "pairs"))
    if ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights:
        raise InputError("flows need weights of 0 or more, and the graph has negative ones")

    # Where the sources are known, their weights become ``SourceValues``: weights by vertex number.
    # Else the job has made these already.
    weights = options.source_weights
    if sources is not None:
        refuse_twice(graph, sources, "flows")  # the flows of such a source would count twice
        if weights is not None:
            weights = check_source_weights(graph, sources, weights)
    if weights is not None:
        check_amounts("source_weights", weights.values)

    decay, parameter, width = parse_decay(options.decay)
    target_weights = None
    if options.target_weights is not None:
        target_weights = check_amounts("target_weights", options.target_weights)
    volumes = None
    if options.volumes is not None:
        volumes = check_amounts("volumes", options.volumes)
    # The job passes edges that it has read from a file as ``Through``.
    through = options.through
    if through is not None and not isinstance(through, Through):
        through = check_through(graph, through)
    question = CheckedFlows(
        of=of,
        decay=decay,
        parameter=parameter,
        width=width,
        source_weights=weights,
        target_weights=target_weights,
        volumes=volumes,
        through=through,
    )
    # Each ``Flows`` computes the amounts again. They are computed here for their errors alone, so
    # that these come before a search.
    _find_amounts_and_unit(question, graph, pairs, targets)
    return question


def check_through(graph: Graph, given: Any) -> Through:
    """Return the edges of which a path must use one.

    ``given`` has them as rows of the edge list, or by their ends, in any form that
    ``ends_of_pairs`` takes.

    Raises InputError, as ``through_rows`` and ``through_ends``; the message names the row of
    ``given``.
    """
    rows = rows_of_through(given, graph)
    if rows is not None:
        return through_rows(graph, rows, "through")
    names = "src of through", "dst of through"
    ends = ends_of_pairs(given, "edges of through", ("src", "dst"))
    src, dst = numbers_of_pairs(graph, ends.origins, ends.destinations, names)
    return through_ends(graph, src, dst, "through")


def rows_of_through(given: Any, graph: Graph | None = None) -> np.ndarray | None:
    """Return the rows of the edge list that ``given`` holds, an array in host memory; None if it
    has the ends of edges, as a table, two columns or rows of two ids.

    ``graph`` is the graph that was built from the edge list. It only makes an error clearer, and
    may be None.

    Raises InputError: ``given`` is neither.
    """
    is_table = (
        column_tuple(given) is not None
        or holds_rows(given)
        or arguments.columns("through", given) is not None
    )
    if not is_table:
        how = (
            "give a list of rows of the edge list, or the ends of the edges, such "
            "as [(1, 2), (3, 4)] or ([1, 3], [2, 4])"
        )
        # A tuple of two numbers could be two rows, or the two ends of one edge.
        if type(given) is tuple and len(given) == 2:
            raise InputError(f"through is {arguments.describe(given)}; {how}")
        if graph is not None and graph.report.row_labels and hasattr(given, "get_indexer"):
            raise InputError(
                "through is an index, and the labels of the table of edges are no numbers of rows; give these, such as "
                "np.flatnonzero(is_bridge)"
            )
        try:
            return to_host(arguments.as_array("through", given))
        except InputError as error:
            raise InputError(f"{error}; {how}") from None
    return None


def through_rows(graph: Graph, rows: np.ndarray, name: str) -> Through:
    """Return the stored edges of some rows of the edge list, of which a path must use one.

    ``rows`` are numbers of rows, from 0. A self-loop, and a row that is longer than a parallel one,
    are on no path, and the graph stores no edge for them. ``name`` is what errors call the rows.

    Raises InputError: the graph does not know its rows; there is no such row, or a filter has left
    it out; no row is given.
    """
    host = graph.derived.on_host  # the graph in host memory, itself if it is there
    if host.edge_rows is None:  # else it has the row of each stored edge
        raise InputError(
            f"{name}: the graph does not know its rows; build it with {option_text('edge_ids', True)}, or give the ends of "
            "the edges"
        )

    # An empty list is an array of floats, and is refused by ``_find_through``.
    if rows.size and rows.dtype.kind not in "iu":
        raise InputError(f"{name} holds {rows.dtype}; rows of the edge list are integers")
    wrong = np.flatnonzero((rows < 0) | (rows >= host.report.rows))
    if wrong.size:
        last = host.report.rows - 1
        raise InputError(
            f"{name}, row {wrong[0]}: the edge list has no row "
            f"{rows[wrong[0]]}; its rows are 0 to {last}"
        )
    # A row that a filter has left out has no edge, nor has a self-loop. They have different marks
    # in place of its position. Only a row that a filter has left out is an error.
    if host.report.filtered_rows and host.edges_of_rows is not None:
        # the first row of ``edges_of_rows``: the position of the edge from ``src`` to ``dst``, or
        # a mark
        wrong = np.flatnonzero(host.edges_of_rows[0][rows] == no_edge(host.n_vertices))
        if wrong.size:
            raise InputError(
                f"{name}, row {wrong[0]}: row {rows[wrong[0]]} of the "
                "edge list is left out by a filter"
            )

    # the positions of the stored edges, and the vertices that these leave
    stored = np.flatnonzero(np.isin(host.edge_rows, rows))
    src = (np.searchsorted(host.offsets, stored, side="right") - 1).astype(host.targets.dtype)
    return _find_through(host, src, host.targets[stored], rows.size, name)


def through_ends(graph: Graph, src: np.ndarray, dst: np.ndarray, name: str) -> Through:
    """Return the stored edges between some vertices, of which a path must use one; in both
    directions if the graph is undirected.

    ``src`` and ``dst`` are vertex numbers, one of each per edge. A self-loop is on no path, and the
    graph stores none. ``name`` is what errors call the edges.

    Raises InputError: there is no such edge, or none is given.
    """
    host = graph.derived.on_host  # the graph in host memory, itself if it is there
    src, dst = (ends.astype(host.targets.dtype) for ends in (src, dst))
    # A position is below 0 where the graph has no such edge; that is an error but for self-loops.
    edges = find_edges(host.offsets, host.targets, src, dst, np.dtype(np.int64))
    wrong = np.flatnonzero((edges < 0) & (src != dst))
    if wrong.size:
        ends = format_ids(host, src[wrong[0]], dst[wrong[0]])
        raise InputError(f"{name}, row {wrong[0]}: there is no edge from {ends[0]} to {ends[1]}")

    if not host.directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    return _find_through(host, src[src != dst], dst[src != dst], src.size, name)


def _find_through(
    host: Graph, src: np.ndarray, dst: np.ndarray, n_named: int, name: str
) -> Through:
    """Return the edges from ``src`` to ``dst``, vertex numbers, as their positions in the reversed
    graph, each once.

    ``host`` is the graph in host memory. ``n_named`` is how many edges the caller named, self-loops
    included. Raises InputError if it is 0; ``name`` is what the error calls them.
    """
    if not n_named:
        raise InputError(f"{name} names no edge; give one or more")
    reverse = host.reverse
    # The reversed graph has the edge from ``dst`` to ``src`` in its place.
    edges = find_edges(reverse.offsets, reverse.targets, dst, src, np.dtype(np.int64))
    return Through(np.unique(edges))


def check_amounts(name: str, given: Any) -> np.ndarray:
    """Return numbers of 0 or more, which a user has ``given``, as an int64 or float64 array.
    ``name`` is what errors call them.

    Raises InputError: one is below 0, not finite or beyond int64.
    """
    return arguments.numbers(
        name,
        given,
        lambda values: values >= 0,
        "cannot be a volume; give finite numbers of 0 or more",
    )


def _find_amounts_and_unit(
    question: CheckedFlows, graph: Graph, pairs: PairTable | None, targets: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """Return what each pair or target takes, and the exponent of the unit of the sums.

    ``question`` has the volumes of pairs, or the weights of sources and targets; where it has none,
    each is 1. ``pairs`` is None without a table of pairs, and ``targets`` is None for all vertices.

    The amounts are int64 or float64: the volumes, of shape (n_pairs,) in the order of the rows, or
    the weights of the targets, of shape (n_targets,). Sums are integers in units of 2**exponent.
    The exponent is 0 for sums of integers.

    Raises InputError (the number of amounts is not that of the pairs or targets; a target is given
    twice) or PrecisionError (the sum of all volumes is too large).
    """
    # What sources send, and how many sources there may be of each such amount. They multiply what
    # the targets take. The volume of a pair is all that it takes, so that 1 stands for all origins.
    source_amounts = np.ones(1, np.int64)
    n_sources = 1
    if pairs is not None:
        amounts = question.volumes
        size = pairs.rows.size
        name = "volumes"
        noun = "pair"
    else:
        if question.source_weights is None:
            n_sources = graph.n_vertices
        else:
            source_amounts = question.source_weights.values
        amounts = question.target_weights
        name = "target_weights"
        if targets is None:
            size = count_listed(graph)  # a closed vertex, which has two numbers, counts once
            noun = "vertex"
        else:
            size = targets.size
            noun = "target"
            if sort_distinct(targets).size < size:
                raise InputError(
                    "a target is given twice, and its flows would count twice; give it once"
                )

    if amounts is None:
        amounts = np.ones(size, np.int64)
    arguments.size(name, amounts, size, f"one per {noun}")

    # ``bound`` is the sum over all sources and targets: no edge carries more. Sums are exact
    # without a unit if all numbers are integers, and no decay makes floats of them.
    is_exact = (
        question.decay == decays.NO_DECAY and source_amounts.dtype.kind == amounts.dtype.kind == "i"
    )
    with np.errstate(over="ignore"):
        bound = (
            float(source_amounts.astype(np.float64).sum())
            * n_sources
            * float(amounts.astype(np.float64).sum())
        )
    if not bound < 2.0**1000:
        raise PrecisionError("the sum of all volumes exceeds float64; scale them down")
    # ``find_exponent`` returns the smallest exponent with which sums up to the bound have at most
    # ``BITS`` bits. An exponent of 0 stands for sums of integers, so that floats take -1 in place
    # of it. The bound is taken as 2**-900 or more, so that float64 holds the unit.
    if not is_exact:
        return amounts.astype(np.float64), find_exponent(max(bound, 2.0**-900)) or -1
    largest = int(source_amounts.max(initial=0)) * int(amounts.max(initial=0))
    # Where sources have no weights, their number is not known here but at most that of the
    # vertices. So the bound only keeps the sums below 2**BITS, which 128 bits hold with a sign, and
    # what an edge carries is checked again at the end.
    if largest > MAX_INTEGER or bound >= (2.0**63 if n_sources == 1 else 2.0**BITS):
        raise PrecisionError(
            "the sum of all volumes exceeds int64; scale them down, or give floats"
        )
    return amounts, 0


class _Prepared(NamedTuple):
    """What the walks along the paths from all sources of a group have in common."""

    reverse: Graph  # the reversed graph, with weights in the type of the distances
    weights: Any  # the weights of ``reverse``; None for hops
    bound: Any  # the largest distance that is served, in the type of the distances
    table: PairTable | None  # the pairs of the group, if pairs are asked for
    factors: np.ndarray  # of shape (k,): by which the amounts of each source are multiplied
    # ``select_volumes(i, distances)`` returns, of source i of the group: its targets, vertex
    # numbers; what they take, as two words each (``Words``); and the rows of its pairs in the
    # table, None without pairs.
    select_volumes: Callable[[int, np.ndarray], tuple[np.ndarray, Words, Any]]


class Flows(Loads):
    """Flows of one call or of one part, on the canonical paths that ``paths`` returns: one path per
    source and target, the same on every device.

    Paths are walked back by distances alone. So the distances of every strategy, hierarchy and
    device can be used.
    """

    def __init__(
        self, asked: Asked[CheckedFlows], of: str | None = None, is_whole: bool = False
    ) -> None:
        """``asked`` has the graph, the checked options, and the pairs or the targets. ``of`` says
        what carries the loads, one of ``CELLS``; by default it is that of the options. With
        ``is_whole`` all paths count, also if the options name edges that they must use.
        """
        question = asked.options
        self._amounts, exponent = _find_amounts_and_unit(
            question, asked.graph, asked.pairs, asked.targets
        )
        super().__init__(asked, of or question.of, exponent)
        self._question = question
        # int64: the vertex numbers where paths end, in the order of the amounts; not read for pairs
        self._targets = asked.targets
        if self._targets is None:
            self._targets = listed_vertices(self.graph)
        if self._targets is None:
            self._targets = np.arange(self.graph.n_vertices)
        # 1 at the edges of the reversed graph of which a path must use one; empty if all paths
        # count, as ``tree_flows.carry`` takes it
        self._named = np.zeros(0, np.uint8)
        if question.through is not None and not is_whole:
            # one entry more, so that it is not empty if the graph has no edge
            self._named = np.zeros(self.graph.n_edges + 1, np.uint8)
            self._named[question.through.cells] = 1
        # Objects that add up the flows of one source alone, to certify them, by ``of`` and
        # ``is_whole``. They are used again for the next source.
        self._flows_of_source: dict[tuple[str, bool], Flows] = {}

    def add(self, group: Traversals) -> None:
        """Add the loads of all sources of a group, and certify the loads of its first source
        meanwhile.
        """
        if not len(group):
            return
        # On a GPU both are done one after the other, since only the calling thread has its stream.
        # Otherwise one thread certifies while others add.
        if is_rows(group.distance) and get_device(group.distance) == "cuda":
            self.certify(group)
            self._add(group)
        else:
            self._add(group, [lambda _thread: self.certify(group)])

    def certify(self, group: Traversals, i: int = 0) -> None:
        """Add up the flows of source i of a group alone, and check them by the rules of
        ``conservation``.

        Raises CertificateError: they are wrong.
        """
        single = cast(Traversals, group[i : i + 1])  # a group of source i alone
        prepared = self._prepare_group(single)
        # ``row`` has the distances from the source, of shape (n_vertices,).
        if is_rows(single.distance):
            row = to_host(single.distance[0])
        else:
            row = single.distance[0]
        source = int(single.sources[0])
        # ``low`` and ``high`` are the two words of what each target takes, a 128-bit integer.
        # ``rows`` are the rows of the source's pairs in their table, None without pairs.
        targets, (low, high), rows = prepared.select_volumes(0, row)

        def require_source_conserved(sent: np.ndarray, is_whole: bool) -> tuple[np.ndarray, Words]:
            """Check the flows from the source to the targets at the positions ``sent``. Return the
            edges that carry something, and what they carry.

            With ``is_whole`` they are those of all paths.
            """
            # Each edge must end the shortest path to its head. What comes into a vertex must be
            # what goes out, and what the vertex takes.
            cells, loads = self._add_source_alone(single, "edges", is_whole)
            taken = targets[sent], (low[sent], high[sent])
            require_conserved(self.graph, source, row, prepared.weights, cells, loads, taken)
            return cells, loads

        # ``sent`` has the positions of the targets whose paths count: those that are reached. Where
        # paths must use a named edge, the flows on all paths are checked first, and their edges
        # show which paths do.
        is_sent = (row[targets] >= 0) & (row[targets] <= prepared.bound)
        sent = np.flatnonzero(is_sent)
        if self._named.size:
            cells, _ = require_source_conserved(sent, is_whole=True)
            sent = sent[uses_named(self.graph, source, cells, self._named, targets[sent])]
        cells, loads = require_source_conserved(sent, is_whole=False)

        # Where vertices or pairs carry the loads, these must follow from what the edges carry, and
        # from what the targets take.
        taken = (low[sent], high[sent])
        if self.of == "vertices":
            vertices, carried = self._add_source_alone(single, "vertices")
            require_inflow(self.graph, source, cells, loads, taken, vertices, carried)
        if self.of == "pairs":
            listed, carried = self._add_source_alone(single, "pairs", rows=rows)
            require_listed(self.graph, source, rows[sent], taken, listed, carried)

    def _add_source_alone(
        self, single: Traversals, of: str, is_whole: bool = False, rows: Any = None
    ) -> tuple[np.ndarray, Words]:
        """Return the cells that carry something for a group of one source, ascending, and what each
        carries.

        ``single`` is that group, with the distances from its source. ``of`` is one of ``CELLS``.
        With ``is_whole``, all paths count. ``rows`` are the rows of the pairs of the source, if
        pairs carry the loads: then only the sums of these are read, since the table may have many
        others.
        """
        key = of, is_whole
        if key not in self._flows_of_source:
            self._flows_of_source[key] = Flows(self.asked, of, is_whole)
        flows = self._flows_of_source[key]
        flows._add(single)

        sums = flows.sums_of_cells
        if rows is None:
            places = sums.nonzero()
        else:
            # The ``EXTRA`` places behind the cells have the load and the number of pairs without a
            # path, which must be cleared, too.
            places = np.append(np.sort(rows), flows.n_cells + np.arange(EXTRA))
        cells = places[places < flows.n_cells]
        cells = cells[(sums.low[cells] != 0) | (sums.high[cells] != 0)]
        loads = sums.low[cells], sums.high[cells]

        # Set to 0 what this source has added, so that the next one finds sums of 0.
        sums.low[places] = 0
        sums.high[places] = 0
        return cells, loads

    def _prepare_group(self, group: Traversals) -> _Prepared:
        """Return what the walks along the paths of a group have in common."""
        # Lengths of edges are added in the type of the distances, as the search has done.
        asked = self.asked
        question = self._question
        kind: Any = group.distance.dtype
        if ALGORITHMS[asked.algorithm].is_weighted:
            reverse = self.graph.derived.sums_in(kind.name).reverse  # with weights of that type
            weights = reverse.weights
        else:
            reverse = self.graph.reverse
            weights = None

        # the largest distance within the limit, and the pairs whose origins are in the group
        bound = self.find_bound(kind)
        table = None if asked.pairs is None else asked.select_pairs(group)
        amounts = self._amounts
        if question.source_weights is None:
            factors = np.ones(len(group), amounts.dtype)
        else:
            factors = np.array(question.source_weights.of(group.sources), amounts.dtype)

        # A closed vertex has a number where paths begin and another where they end. The path from
        # it to itself has no edge: so for this source its target is the number where it begins.
        sources = to_host(group.sources)
        own_ends = where_paths_end(self.graph, sources)
        decay = Decay(bound, question.decay, (question.parameter, question.width), self.exponent)

        def select_volumes(i: int, row: np.ndarray) -> tuple[np.ndarray, Any, Any]:
            """Return the targets of source i, what they take, and the rows of its pairs, as
            ``_Prepared.select_volumes`` says. ``row`` has the distances from the source, of shape
            (n_vertices,).
            """
            if table is None:
                targets: Any = np.where(self._targets == own_ends[i], sources[i], self._targets)
                return targets, volumes_at(row, targets, amounts, factors[i], decay), None
            part = slice(*table.lists.offsets[i : i + 2].tolist())
            targets = table.lists.vertices[part]
            rows = table.rows[part]
            return targets, volumes_at(row, targets, amounts[rows], factors[i], decay), rows

        return _Prepared(reverse, weights, bound, table, factors, select_volumes)

    def _add(self, group: Traversals, beside: Sequence[Callable[[int], object]] = ()) -> None:
        """Add the loads of a group, and call each function in ``beside`` with the number of a
        thread meanwhile: threads take these first.

        On a GPU a kernel adds the loads, except those of sources that it leaves to the CPU.

        Raises PrecisionError: no path explains a distance.
        """
        distance: Any = group.distance
        prepared = self._prepare_group(group)
        on_host = np.arange(len(group))
        if is_rows(distance) and get_device(distance) == "cuda":
            # It adds to ``on_gpu``, the sums in the memory of the GPU.
            volumes = self._volumes_on_gpu(prepared)
            is_left = gpu.add_flows(
                self.asked.graph, group.sources, distance, volumes, self.of, self.on_gpu
            )
            # The kernel leaves sources with edges of length zero on their paths to the CPU.
            on_host = np.flatnonzero(is_left)
        cells_are = CELLS.index(self.of)  # ``carry`` takes the position in ``CELLS``
        # per source, a vertex whose distance no edge explains
        unexplained = np.full(len(group), NO_EDGE)

        def walk(i: int, thread: int) -> None:
            """Add the loads of source i to the sums of a thread, along the paths from its targets
            back to it.
            """
            tree, scratch = self.get_scratch(thread)
            if is_rows(distance):
                row = to_host(distance[i])
            else:
                row = distance[i]
            targets, (low, high), rows = prepared.select_volumes(i, row)
            sums = self.of_thread(thread)  # those that this thread alone adds to
            is_lost, is_sent = np.zeros((2, targets.size), np.bool_)
            served = Served(targets, low, high, prepared.bound, is_lost, is_sent)
            reverse = prepared.reverse
            # None twice: distances are sums of the weights as they are, in no other unit, and are
            # all known, so that nothing looks them up on the way.
            walks = Walks(
                reverse.offsets, reverse.targets, prepared.weights, None, row, None, *scratch
            )
            source = int(group.sources[i])
            sum_words = sums.low, sums.high
            unexplained[i] = carry(source, served, walks, tree, self._named, cells_are, sum_words)
            # ``carry`` has marked the targets that something was sent to, and those without a path.
            if self.of == "pairs":
                sums.add_at(rows[is_sent], low[is_sent], high[is_sent])
            # What pairs without a path would have carried (``LOST``), and the number of these
            # pairs (``LOST_PAIRS``), have the two places behind those of the cells.
            if is_lost.any():
                places = np.full(int(is_lost.sum()), self.n_cells + LOST)
                sums.add_at(places, low[is_lost], high[is_lost])
                sums.low[self.n_cells + LOST_PAIRS] += np.uint64(places.size)

        work: list[Callable[[int], object]] = [
            *beside,
            *(partial(walk, i) for i in on_host.tolist()),
        ]
        threads.for_each(lambda item, thread: work[item](thread), len(work))
        for vertex in unexplained[unexplained != NO_EDGE].tolist():
            raise unexplained_error(self.graph, vertex, distance.dtype)

    def _volumes_on_gpu(self, prepared: _Prepared) -> gpu.Volumes:
        """Return what the targets of the sources of a group take, in the form that the kernel
        reads. ``prepared`` is what ``_prepare_group`` returns for the group.
        """
        # All sources have the same targets, or each source has those of its pairs.
        question = self._question
        table = prepared.table
        if table is None:
            of_targets: dict[str, Any] = {
                "targets": self._targets,
                "amounts": self._amounts,
                "offsets": None,
            }
        else:
            of_targets = {
                "targets": table.lists.vertices,
                "amounts": self._amounts[table.rows],
                "offsets": table.lists.offsets,
                "rows": table.rows,
            }
        return gpu.Volumes(
            **of_targets,
            factors=prepared.factors,
            named=self._named_on_gpu,
            bound=prepared.bound,
            exponent=self.exponent,
            decay=question.decay,
            parameters=(question.parameter, question.width),
        )

    @cached_property
    def _named_on_gpu(self) -> Any:
        """The edges of which a path must use one, uint8 in the memory of the GPU and not 0 at
        these; None if all paths count.
        """
        if self._named.size:
            return namespace(self.asked.graph.offsets).asarray(self._named)
        return None

    def make_scratch(self, _key: Any) -> tuple[Tree, tuple[np.ndarray, ...]]:
        """Return new scratch of one thread: the ``Tree`` that ``carry`` uses, and the arrays
        ``level``, ``queue`` and ``path`` of ``Walks``.

        The key is ignored: the scratch depends on the number of vertices alone.
        """
        n = self.graph.n_vertices
        return new_tree(n), new_walk_scratch(n)
