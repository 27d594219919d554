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
from ..cpu.path_walk import NO_EDGE, Walks
from ..cpu.tree_flows import Decay, Served, Tree, carry, new_tree, volumes_at
from ..errors import InputError, PrecisionError, option_text
from ..formats.tables import column_tuple, holds_rows
from ..graph import Graph
from ..graph.closed import count_listed, listed_vertices, where_paths_end
from ..graph.csr import no_edge
from ..search.algorithms import ALGORITHMS
from ..search.query import PairTable, SourceValues, compute_digest
from ..search.results import Traversals
from ..search.sparse import closed_cycle_error
from . import flows_gpu as gpu
from .conservation import Words, require_conserved, require_inflow, require_listed, uses_named
from .loads import CELLS, EXTRA, LOST, LOST_PAIRS, Loads, refuse_twice
from .opportunities import check_source_weights, parse_decay
from .pairs import ends_of_pairs, numbers_of_pairs
from .records import Asked, CheckedOptions, format_ids
from .result_kinds import FlowOptions, ResultKind


class Through(NamedTuple):
    """Edges of which a path must use one."""

    cells: np.ndarray  # int64: their positions in the reversed graph, ascending


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedFlows(CheckedOptions):
    """Checked options of flows."""

    of: str  # {"edges", "vertices", "pairs"}
    decay: int
    # parameter, width: of the decay, as ``opportunities.Reduction`` has them
    parameter: float
    width: float
    source_weights: SourceValues | None
    target_weights: np.ndarray | None  # int64 or float64, in the order of the targets
    volumes: np.ndarray | None  # int64 or float64, in the order of the rows of the pairs
    through: Through | None

    @property
    def digest(self) -> str:
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
        through = () if self.through is None else self.through
        facts += [self.width] if self.width else []
        return compute_digest(facts + ["through"] * len(through), [*arrays, *through])


def check_options(
    options: FlowOptions, kind: ResultKind, graph: Graph, algorithm: str, numbers: Mapping[str, Any]
) -> CheckedFlows:
    """Check the options of flows.

    Raises InputError (an option has a wrong value, or is for the other of pairs and of sources and
    targets; a weight or a volume is below 0 or not finite; the graph has negative weights; a source
    is given twice; ``through`` names what is no edge) or PrecisionError (the volumes are too large
    to be added up).
    """
    given = kind.cells if options.of is None else options.of
    of = arguments.choice("of", given, CELLS)
    sources, targets, pairs = (numbers.get(name) for name in ("sources", "targets", "pairs"))
    if ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights:
        raise InputError("flows need weights of 0 or more, and the graph has negative ones")
    weights = options.source_weights
    through = options.through
    if sources is not None:
        refuse_twice(graph, sources, "flows")
        if weights is not None:
            weights = check_source_weights(graph, sources, weights)
    if weights is not None:
        amounts("source_weights", weights.values)
    decay, parameter, width = parse_decay(options.decay)
    question = CheckedFlows(
        of=of,
        decay=decay,
        parameter=parameter,
        width=width,
        source_weights=weights,
        target_weights=None
        if options.target_weights is None
        else amounts("target_weights", options.target_weights),
        volumes=None if options.volumes is None else amounts("volumes", options.volumes),
        through=through
        if through is None or isinstance(through, Through)
        else check_through(graph, through),
    )
    _amounts_and_unit(question, graph, pairs, targets)
    return question


def check_through(graph: Graph, given: Any) -> Through:
    """Return edges that are given as rows of the edge list, or by their ends as pairs are.

    Raises InputError, as ``through_rows`` and ``through_ends``; the message names the row.
    """
    rows = rows_of_through(given, graph)
    if rows is not None:
        return through_rows(graph, rows, "through")
    names = "src of through", "dst of through"
    ends = ends_of_pairs(given, "edges of through", ("src", "dst"))
    return through_ends(
        graph, *numbers_of_pairs(graph, ends.origins, ends.destinations, names), "through"
    )


def rows_of_through(given: Any, graph: Graph | None = None) -> np.ndarray | None:
    """Return edges that are given as rows of the edge list; None if they are given by their ends.

    ``graph``: that of the edge list, if it is there.

    Raises InputError: they are neither.
    """
    if (
        column_tuple(given) is None
        and not holds_rows(given)
        and arguments.columns("through", given) is None
    ):
        how = (
            "give a list of rows of the edge list, or the ends of the edges, such "
            "as [(1, 2), (3, 4)] or ([1, 3], [2, 4])"
        )
        if type(given) is tuple and len(given) == 2:  # two rows, or one edge?
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
    """Return the stored edges that are some rows of the edge list.

    A self-loop, and a row that is longer than a parallel one, are on no path and have none.

    Raises InputError: the graph does not know its rows; there is no such row, or a filter has left
    it out; there are none.
    """
    host = graph.derived.on_host
    if host.edge_rows is None:
        raise InputError(
            f"{name}: the graph does not know its rows; build it with {option_text('edge_ids', True)}, or give the ends of "
            "the edges"
        )
    if rows.size and rows.dtype.kind not in "iu":
        raise InputError(f"{name} holds {rows.dtype}; rows of the edge list are integers")
    wrong = np.flatnonzero((rows < 0) | (rows >= host.report.rows))
    if wrong.size:
        last = host.report.rows - 1
        raise InputError(
            f"{name}, row {wrong[0]}: the edge list has no row "
            f"{rows[wrong[0]]}; its rows are 0 to {last}"
        )
    if host.report.filtered_rows and host.edges_of_rows is not None:
        wrong = np.flatnonzero(host.edges_of_rows[0][rows] == no_edge(host.n_vertices))
        if wrong.size:
            raise InputError(
                f"{name}, row {wrong[0]}: row {rows[wrong[0]]} of the "
                "edge list is left out by a filter"
            )
    stored = np.flatnonzero(np.isin(host.edge_rows, rows))
    src = (np.searchsorted(host.offsets, stored, side="right") - 1).astype(host.targets.dtype)
    return _through(host, src, host.targets[stored], rows.size, name)


def through_ends(graph: Graph, src: np.ndarray, dst: np.ndarray, name: str) -> Through:
    """Return the stored edges between some vertices, in both directions if the graph is undirected.

    A self-loop is on no path and has none.

    Raises InputError: there is no such edge, or there are none.
    """
    host = graph.derived.on_host
    src, dst = (ends.astype(host.targets.dtype) for ends in (src, dst))
    wrong = np.flatnonzero(
        (find_edges(host.offsets, host.targets, src, dst, np.dtype(np.int64)) < 0) & (src != dst)
    )
    if wrong.size:
        ends = format_ids(host, src[wrong[0]], dst[wrong[0]])
        raise InputError(f"{name}, row {wrong[0]}: there is no edge from {ends[0]} to {ends[1]}")
    if not host.directed:
        heads = np.concatenate([dst, src])
        src = np.concatenate([src, dst])
        dst = heads
    return _through(host, src[src != dst], dst[src != dst], src.size, name)


def _through(host: Graph, src: np.ndarray, dst: np.ndarray, given: int, name: str) -> Through:
    """Return the edges between vertices, each once, by their positions in the reversed graph.

    ``given`` is how many the caller named, self-loops included.
    """
    if not given:
        raise InputError(f"{name} names no edge; give one or more")
    back = host.reverse
    edges = find_edges(back.offsets, back.targets, dst, src, np.dtype(np.int64))
    return Through(np.unique(edges))


def amounts(name: str, given: Any) -> np.ndarray:
    """Return numbers of 0 or more as an int64 or float64 array.

    Raises InputError: one is below 0, not finite or beyond int64.
    """
    return arguments.numbers(
        name,
        given,
        lambda values: values >= 0,
        "cannot be a volume; give finite numbers of 0 or more",
    )


def _amounts_and_unit(
    question: CheckedFlows, graph: Graph, pairs: PairTable | None, targets: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """Return the volume or the weight of each pair or target, and the exponent of the sums, which
    is 0 for integers.

    Raises InputError (their number is not that of the pairs or targets; a target is given twice) or
    PrecisionError (the sum of all volumes is too large).
    """
    of_sources = np.ones(1, np.int64)
    n_sources = 1
    if pairs is not None:
        of_targets = question.volumes
        size = pairs.rows.size
        name = "volumes"
        each = "pair"
    else:
        if question.source_weights is None:
            n_sources = graph.n_vertices
        else:
            of_sources = question.source_weights.values
        of_targets = question.target_weights
        name = "target_weights"
        size, each = (
            (count_listed(graph), "vertex") if targets is None else (targets.size, "target")
        )
        if targets is not None and sort_distinct(targets).size < size:
            raise InputError(
                "a target is given twice, and its flows would count twice; give it once"
            )
    if of_targets is None:
        of_targets = np.ones(size, np.int64)
    arguments.size(name, of_targets, size, f"one per {each}")
    is_exact = (
        question.decay == decays.NO_DECAY and of_sources.dtype.kind == of_targets.dtype.kind == "i"
    )
    with np.errstate(over="ignore"):
        bound = (
            float(of_sources.astype(np.float64).sum())
            * n_sources
            * float(of_targets.astype(np.float64).sum())
        )
    if not bound < 2.0**1000:
        raise PrecisionError("the sum of all volumes exceeds float64; scale them down")
    if not is_exact:
        return of_targets.astype(np.float64), find_exponent(max(bound, 2.0**-900)) or -1
    largest = int(of_sources.max(initial=0)) * int(of_targets.max(initial=0))
    # Of sources without weights only the largest number is known here; what an edge carries is
    # checked at the end, too.
    if largest > MAX_INTEGER or bound >= (2.0**63 if n_sources == 1 else 2.0**BITS):
        raise PrecisionError(
            "the sum of all volumes exceeds int64; scale them down, or give floats"
        )
    return of_targets, 0


class Flows(Loads):
    """Flows of one call or of one part, on the canonical paths that ``paths`` returns.

    Paths are walked back by distances alone, so that those of every strategy, hierarchy and device
    serve alike.
    """

    def __init__(
        self, asked: Asked[CheckedFlows], of: str | None = None, is_whole: bool = False
    ) -> None:
        question = asked.options
        self._of_targets, exponent = _amounts_and_unit(
            question, asked.graph, asked.pairs, asked.targets
        )
        super().__init__(asked, of or question.of, exponent)
        self._question = question
        self._targets = asked.targets
        if self._targets is None:
            self._targets = listed_vertices(self.graph)
        if self._targets is None:
            self._targets = np.arange(self.graph.n_vertices)
        self._named = np.zeros(0, np.uint8)  # as ``tree_flows.carry`` has it
        if question.through is not None and not is_whole:
            # not empty, also if the graph has no edge
            self._named = np.zeros(self.graph.n_edges + 1, np.uint8)
            self._named[question.through.cells] = 1
        self._of_one: dict[tuple[str, bool], Flows] = {}

    def add(self, group: Traversals) -> None:
        if not len(group):
            return
        # the calling thread has the stream
        if is_rows(group.distance) and get_device(group.distance) == "cuda":
            self.certify(group)
            self._add(group)
        else:
            self._add(group, [lambda _thread: self.certify(group)])

    def certify(self, group: Traversals, i: int = 0) -> None:
        """Add up the flows of one source of a group alone and check them; see ``conservation``.

        Raises CertificateError.
        """
        one = cast(Traversals, group[i : i + 1])
        edges, bound, _, select_volumes = self._ask(one)
        if is_rows(one.distance):
            row = to_host(one.distance[0])
        else:
            row = one.distance[0]
        source = int(one.sources[0])
        targets, (low, high), rows = select_volumes(0, row)

        def conserved(sent: np.ndarray, is_whole: bool) -> tuple[np.ndarray, Words]:
            cells, loads = self._of_source(one, "edges", is_whole)
            taken = targets[sent], (low[sent], high[sent])
            require_conserved(self.graph, source, row, edges[2], cells, loads, taken)
            return cells, loads

        sent = np.flatnonzero((row[targets] >= 0) & (row[targets] <= bound))
        if self._named.size:
            cells, _ = conserved(sent, is_whole=True)
            sent = sent[uses_named(self.graph, source, cells, self._named, targets[sent])]
        loads = conserved(sent, is_whole=False)
        taken = (low[sent], high[sent])
        if self.of == "vertices":
            require_inflow(self.graph, source, *loads, taken, *self._of_source(one, "vertices"))
        if self.of == "pairs":
            require_listed(
                self.graph, source, rows[sent], taken, *self._of_source(one, "pairs", rows=rows)
            )

    def _of_source(
        self, one: Traversals, of: str, is_whole: bool = False, rows: Any = None
    ) -> tuple[np.ndarray, Words]:
        """Return the cells that carry something for a group of one source, and what.

        With ``is_whole``, all paths count. ``rows`` are its pairs, whose sums alone are read: there
        may be many others.
        """
        key = of, is_whole
        flows = self._of_one[key] = self._of_one.get(key) or Flows(self.asked, of, is_whole)
        flows._add(one)
        sums = flows.sums_of_cells
        if rows is None:
            places = sums.nonzero()
        else:
            places = np.append(np.sort(rows), flows.n_cells + np.arange(EXTRA))
        cells = places[places < flows.n_cells]
        cells = cells[(sums.low[cells] != 0) | (sums.high[cells] != 0)]
        loads = sums.low[cells], sums.high[cells]
        sums.low[places] = 0
        sums.high[places] = 0
        return cells, loads

    def _ask(self, group: Traversals) -> tuple[tuple[Any, Any, Any, None], Any, Any, Any]:
        """Return edges, the bound, pairs and factors, and a function that returns targets, volumes
        and pairs of a source.
        """
        asked = self.asked
        question = self._question
        kind: Any = group.distance.dtype
        is_weighted = ALGORITHMS[asked.algorithm].is_weighted
        reverse = (self.graph.derived.sums_in(kind.name) if is_weighted else self.graph).reverse
        bound = self.find_bound(kind)
        if asked.pairs is None:
            table = None
        else:
            table = asked.select_pairs(group)
        amounts = self._of_targets
        weights = question.source_weights
        factors = np.array(
            [1] * len(group) if weights is None else weights.of(group.sources), amounts.dtype
        )

        # The path from a closed vertex to itself has no edge.
        sources = to_host(group.sources)
        own_ends = where_paths_end(self.graph, sources)
        decay = Decay(bound, question.decay, (question.parameter, question.width), self.exponent)

        def select_volumes(i: int, row: np.ndarray) -> Any:
            own = np.where(self._targets == own_ends[i], sources[i], self._targets)
            amount = amounts
            rows = None
            if table is not None:
                part = slice(*table.lists.offsets[i : i + 2].tolist())
                own = table.lists.vertices[part]
                rows = table.rows[part]
                amount = amounts[rows]
            return own, volumes_at(row, own, amount, factors[i], decay), rows

        return (
            (reverse.offsets, reverse.targets, reverse.weights if is_weighted else None, None),
            bound,
            (table, factors),
            select_volumes,
        )

    def _add(self, group: Traversals, beside: Sequence[Callable[[int], object]] = ()) -> None:
        """Add the loads of a group. Threads first take what is to be done ``beside`` it."""
        distance: Any = group.distance
        edges, bound, (table, factors), select_volumes = self._ask(group)
        left = np.arange(len(group))
        if is_rows(distance) and get_device(distance) == "cuda":
            volumes = self._volumes_on_gpu(table, factors, bound)
            args = self.asked.graph, group.sources, distance, volumes, self.of, self.on_gpu
            # edges of length zero lead there, along which the CPU walks
            left = np.flatnonzero(gpu.add_flows(*args))
        cells_are = CELLS.index(self.of)
        wrong = np.full(len(group), NO_EDGE)

        def walk(i: int, thread: int) -> None:
            tree, scratch = self.get_scratch(thread)
            if is_rows(distance):
                row = to_host(distance[i])
            else:
                row = distance[i]
            own, (low, high), rows = select_volumes(i, row)
            sums = self.of_thread(thread)
            lost, sent = np.zeros((2, own.size), np.bool_)
            served = Served(own, low, high, bound, lost, sent)
            walks = Walks(*edges, row, None, *scratch)
            source = int(group.sources[i])
            cells = sums.low, sums.high
            wrong[i] = carry(source, served, walks, tree, self._named, cells_are, cells)
            if self.of == "pairs":
                sums.add_at(rows[sent], low[sent], high[sent])
            if lost.any():
                places = np.full(int(lost.sum()), self.n_cells + LOST)
                sums.add_at(places, low[lost], high[lost])
                sums.low[self.n_cells + LOST_PAIRS] += np.uint64(places.size)

        work: list[Callable[[int], object]] = [*beside, *(partial(walk, i) for i in left.tolist())]
        threads.for_each(lambda item, thread: work[item](thread), len(work))
        for vertex in wrong[wrong != NO_EDGE].tolist():
            (name,) = format_ids(self.graph, vertex)
            raise PrecisionError(
                f"no path explains the distance of vertex {name}: "
                f"{closed_cycle_error(distance.dtype)}"
            )

    def _volumes_on_gpu(self, table: Any, factors: np.ndarray, bound: Any) -> gpu.Volumes:
        """Return what the targets of a group take; ``table`` has its pairs, if pairs are asked for."""
        question = self._question
        if table is None:
            of_targets: dict[str, Any] = {
                "targets": self._targets,
                "amounts": self._of_targets,
                "offsets": None,
            }
        else:
            of_targets = {
                "targets": table.lists.vertices,
                "amounts": self._of_targets[table.rows],
                "offsets": table.lists.offsets,
                "rows": table.rows,
            }
        return gpu.Volumes(
            **of_targets,
            factors=factors,
            named=self._named_there,
            bound=bound,
            exponent=self.exponent,
            decay=question.decay,
            parameters=(question.parameter, question.width),
        )

    @cached_property
    def _named_there(self) -> Any:
        """The named edges in the memory of the GPU, or None."""
        if self._named.size:
            return namespace(self.asked.graph.offsets).asarray(self._named)
        return None

    def make_scratch(self, _key: Any) -> tuple[Tree, tuple[np.ndarray, ...]]:
        n = self.graph.n_vertices
        return new_tree(n), (np.full(n, -1, np.int32), *np.empty((2, n), np.int64))
