"""``result="flows"``: what each edge or vertex carries if the volume of each pair takes its canonical shortest path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from .. import arguments
from .._arrays import MAX_INTEGER, as_distance, device_of, is_rows, to_host
from ..cpu import opportunities as decays
from ..cpu import threads
from ..cpu.exact_sums import BITS, exponent_of
from ..cpu.path_walk import NO_EDGE, Walks
from ..cpu.tree_flows import Tree, carry, new_tree, volumes_at
from ..errors import InputError, PrecisionError
from ..graph import Graph
from ..search.algorithms import ALGORITHMS
from ..search.query import PairTable, SourceValues, digest_of
from ..search.results import Traversals
from ..search.sparse import closed_cycle_error
from . import flows_gpu as gpu
from .conservation import require_conserved, require_inflow
from .loads import CELLS, LOST, LOST_PAIRS, Loads, refuse_twice
from .opportunities import decay_of, source_weights_of
from .records import Asked, CheckedOptions


class FlowQuestion(CheckedOptions):
    """Checked options of flows.

    Attributes
    ----------
    of : {"edges", "vertices"}
    decay, parameter : int and float
        As ``opportunities.Reduction`` has them.
    source_weights : SourceValues or None
    target_weights : int64 or float64 array, NumPy, or None
        In the order of the targets.
    volumes : int64 or float64 array, NumPy, or None
        In the order of the rows of the pairs.
    """

    def __init__(
        self,
        of: str,
        decay: int,
        parameter: float,
        source_weights: SourceValues | None,
        target_weights: np.ndarray | None,
        volumes: np.ndarray | None,
    ) -> None:
        self.of, self.decay, self.parameter = of, decay, parameter
        self.source_weights, self.target_weights, self.volumes = source_weights, target_weights, volumes

    @property
    def digest(self) -> str:
        weights = self.source_weights
        arrays = [each for each in (self.target_weights, self.volumes) if each is not None]
        of_sources = None if weights is None else [str(weights.values.dtype), weights.digest]
        return digest_of([self.of, self.decay, self.parameter, of_sources, [str(each.dtype) for each in arrays]], arrays)


def question_of(
    graph: Graph,
    algorithm: str,
    of: str = "edges",
    decay: str | None = None,
    source_weights: Any = None,
    target_weights: Any = None,
    volumes: Any = None,
    sources: np.ndarray | None = None,
    targets: np.ndarray | None = None,
    pairs: PairTable | None = None,
) -> FlowQuestion:
    """Check the options of flows.

    Raises
    ------
    InputError
        An option has a wrong value, or is for the other of pairs and of sources and targets; a weight or a volume is below 0
        or not finite; the graph has negative weights; a source is given twice.
    PrecisionError
        The volumes are too large to be added up.
    """
    arguments.choice("of", of, CELLS)
    if ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights:
        raise InputError("flows need weights of 0 or more, and the graph has negative ones")
    if pairs is None and volumes is not None:
        raise InputError("volumes are those of pairs; for sources and targets give source_weights and target_weights")
    if pairs is not None and (source_weights is not None or target_weights is not None):
        name = "target_weights" if source_weights is None else "source_weights"
        raise InputError(f"{name} is for sources and targets, and here are pairs; give the volume of each pair by volumes")
    if sources is not None:
        refuse_twice(graph, sources, "flows")
        if source_weights is not None:
            source_weights = source_weights_of(graph, sources, source_weights)
    if source_weights is not None:
        amounts("source_weights", source_weights.values)
    found = FlowQuestion(
        of,
        *decay_of(decay),
        source_weights,
        None if target_weights is None else amounts("target_weights", target_weights),
        None if volumes is None else amounts("volumes", volumes),
    )
    _amounts_and_unit(found, graph, pairs, targets)
    return found


def amounts(name: str, given: Any) -> np.ndarray:
    """Return numbers of 0 or more as an int64 or float64 array.

    Raises
    ------
    InputError
        One is below 0, not finite or beyond int64.
    """
    found = to_host(arguments.as_array(name, given))
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if wrong.size:
        raise InputError(f"{name}, row {wrong[0]}: {found[wrong[0]]} cannot be a volume; give finite numbers of 0 or more")
    if found.dtype.kind == "u" and found.size and int(found.max()) > MAX_INTEGER:
        raise InputError(f"{name} holds {int(found.max())}, which is beyond int64; scale them down")
    return found.astype(np.float64 if found.dtype.kind == "f" else np.int64)


def _amounts_and_unit(
    question: FlowQuestion, graph: Graph, pairs: PairTable | None, targets: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """Return the volume or the weight of each pair or target, and the exponent of the sums, which is 0 for integers.

    Raises
    ------
    InputError
        Their number is not that of the pairs or targets; a target is given twice.
    PrecisionError
        The sum of all volumes is too large.
    """
    of_sources, n_sources = np.ones(1, np.int64), 1
    if pairs is not None:
        of_targets, size = question.volumes, pairs.rows.size
    else:
        if question.source_weights is None:
            n_sources = graph.n_vertices
        else:
            of_sources = question.source_weights.values
        of_targets, size = question.target_weights, graph.n_vertices if targets is None else targets.size
        if targets is not None and np.unique(targets).size < size:
            raise InputError("a target is given twice, and its flows would count twice; give it once")
    if of_targets is None:
        of_targets = np.ones(size, np.int64)
    elif of_targets.size != size:
        raise InputError(f"{of_targets.size} volumes are given, not {size}: give one per target, or per pair")
    is_exact = question.decay == decays.NO_DECAY and of_sources.dtype.kind == of_targets.dtype.kind == "i"
    with np.errstate(over="ignore"):
        bound = float(of_sources.astype(np.float64).sum()) * n_sources * float(of_targets.astype(np.float64).sum())
    if not bound < 2.0**1000:
        raise PrecisionError("the sum of all volumes exceeds float64; scale them down")
    if not is_exact:
        return of_targets.astype(np.float64), exponent_of(max(bound, 2.0**-900)) or -1
    largest = int(of_sources.max(initial=0)) * int(of_targets.max(initial=0))
    # Of sources without weights only the largest number is known here; what an edge carries is checked at the end, too.
    if largest > MAX_INTEGER or bound >= (2.0**63 if n_sources == 1 else 2.0**BITS):
        raise PrecisionError("the sum of all volumes exceeds int64; scale them down, or give floats")
    return of_targets, 0


class Flows(Loads):
    """Flows of one call or of one part, on the canonical paths that ``paths`` returns.

    Paths are walked back by distances alone, so that those of every strategy, hierarchy and device serve alike.
    """

    def __init__(self, asked: Asked, of: str | None = None) -> None:
        question: FlowQuestion = asked.options
        self._of_targets, exponent = _amounts_and_unit(question, asked.graph, asked.pairs, asked.targets)
        super().__init__(asked, of or question.of, exponent)
        self._question = question
        self._targets = np.arange(self.graph.n_vertices) if asked.targets is None else asked.targets
        self._of_one: dict[str, Flows] = {}
        self._trees: list[tuple[Tree, tuple[np.ndarray, ...]] | None] = [None] * threads.max_threads()

    def add(self, group: Traversals) -> None:
        found = group.distance
        if not len(group):
            return
        if is_rows(found) and device_of(found) == "cuda":  # the calling thread has the stream
            self.certify(group)
            self._add(group)
        else:
            self._add(group, [lambda _thread: self.certify(group)])

    def certify(self, group: Traversals, i: int = 0) -> None:
        """Add up the flows of one source of a group alone and check them; see ``conservation``.

        Raises
        ------
        CertificateError
        """
        one = cast(Traversals, group[i : i + 1])
        found: dict[str, tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]] = {}
        for of in dict.fromkeys(("edges", self.of)):
            flows = self._of_one[of] = self._of_one.get(of) or Flows(self.asked, of)
            flows._add(one)
            sums = flows.sums_of_cells
            places = sums.nonzero()
            cells = places[places < flows.n_cells]
            found[of] = cells, (sums.low[cells], sums.high[cells])
            sums.low[places], sums.high[places] = 0, 0
        edges, bound, _, volumes_of = self._ask(one)
        row = to_host(one.distance[0]) if is_rows(one.distance) else one.distance[0]
        targets, (low, high) = volumes_of(0, row)
        served = (row[targets] >= 0) & (row[targets] <= bound)
        source, taken = int(one.sources[0]), (targets[served], (low[served], high[served]))
        cells, loads = found["edges"]
        require_conserved(self.graph, source, row, edges[2], cells, loads, taken)
        if self.of == "vertices":
            require_inflow(self.graph, source, cells, loads, taken[1], *found["vertices"])

    def _ask(self, group: Traversals) -> tuple[tuple[Any, Any, Any, None], Any, Any, Any]:
        """Return edges, the bound, pairs and factors, and a function that returns the targets and volumes of a source."""
        asked, question = self.asked, self._question
        kind: Any = group.distance.dtype
        is_weighted = ALGORITHMS[asked.algorithm].is_weighted
        reverse = (self.graph.derived.sums_in(kind.name) if is_weighted else self.graph).reverse
        bound = as_distance(np.inf if asked.query.limit is None else asked.query.limit, kind)
        bound = min(bound, np.finfo(kind).max) if kind.kind == "f" else bound
        table = None if asked.pairs is None else asked.pairs_of(group)
        amounts, weights = self._of_targets, question.source_weights
        factors = np.array([1] * len(group) if weights is None else weights.of(group.sources), amounts.dtype)

        def volumes_of(i: int, row: np.ndarray) -> Any:
            own, amount = self._targets, amounts
            if table is not None:
                part = slice(*table.lists.offsets[i : i + 2].tolist())
                own, amount = table.lists.vertices[part], amounts[table.rows[part]]
            decay = bound, question.decay, question.parameter, self.exponent
            return own, volumes_at(row, own, amount, factors[i], *decay)

        return (
            (reverse.offsets, reverse.targets, reverse.weights if is_weighted else None, None),
            bound,
            (table, factors),
            volumes_of,
        )

    def _add(self, group: Traversals, beside: Sequence[Callable[[int], object]] = ()) -> None:
        """Add the loads of a group. Threads first take what is to be done ``beside`` it."""
        question = self._question
        found: Any = group.distance
        edges, bound, (table, factors), volumes_of = self._ask(group)
        left = np.arange(len(group))
        if is_rows(found) and device_of(found) == "cuda":
            volumes = gpu.Volumes(
                targets=self._targets if table is None else table.lists.vertices,
                amounts=self._of_targets if table is None else self._of_targets[table.rows],
                factors=factors,
                offsets=None if table is None else table.lists.offsets,
                bound=bound,
                exponent=self.exponent,
                decay=question.decay,
                parameter=question.parameter,
            )
            args = self.asked.graph, group.sources, found, volumes, self.of, self.on_gpu
            left = np.flatnonzero(gpu.add_flows(*args))  # edges of length zero lead there, along which the CPU walks
        wrong = np.full(len(group), NO_EDGE)

        def walk(i: int, thread: int) -> None:
            tree, scratch = self._scratch_of(thread)
            row = to_host(found[i]) if is_rows(found) else found[i]
            own, volumes = volumes_of(i, row)
            sums = self.of_thread(thread)
            lost, walks = np.zeros(own.size, np.bool_), Walks(*edges, row, None, *scratch)
            args = int(group.sources[i]), own, volumes, bound, walks, tree, self.of == "edges"
            wrong[i] = carry(*args, sums.low, sums.high, lost)
            if lost.any():
                places = np.full(int(lost.sum()), self.n_cells + LOST)
                sums.add_at(places, volumes[0][lost], volumes[1][lost])
                sums.low[self.n_cells + LOST_PAIRS] += np.uint64(places.size)

        work: list[Callable[[int], object]] = [*beside, *(partial(walk, i) for i in left.tolist())]
        threads.for_each(lambda item, thread: work[item](thread), len(work))
        for vertex in wrong[wrong != NO_EDGE].tolist():
            name = self.graph.ids_at(np.array([vertex]))[0]
            raise PrecisionError(f"no path explains the distance of vertex {name}: {closed_cycle_error(found.dtype)}")

    def _scratch_of(self, thread: int) -> Any:
        if self._trees[thread] is None:
            n = self.graph.n_vertices
            self._trees[thread] = new_tree(n), (np.full(n, -1, np.int32), *np.empty((2, n), np.int64))
        return self._trees[thread]
