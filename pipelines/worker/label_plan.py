"""The plan of ``--result labels``: rows of hub labels, which are built and proved as a whole before
the first part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kepler_traverse._arrays import EXACT_BELOW, make_offsets, positions_in_groups
from kepler_traverse.certificate import certify
from kepler_traverse.graph import Graph
from kepler_traverse.hub_labels.arrays import HubLabels
from kepler_traverse.kinds.question import Question
from kepler_traverse.runtime.display import in_units
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.answering import answering_labels
from kepler_traverse.search.query import Query, TargetLists
from kepler_traverse.search.results import Traversals
from kepler_traverse.search.sparse import SparseDistances

_ROWS_PER_GROUP = 1 << 20  # rows of labels that one group should have, about
# a proof takes so many times as long as building; measured on USA-road-d.NY
PROOFS = 2.0
_BYTES_PER_ROW = 64  # that a row of a group takes until it is in columns


@dataclass(frozen=True)
class _Strategy:
    """The attributes of the only strategy of labels."""

    name: str = "hub_labels"
    device: str = "cpu"  # where labels are built and looked up
    # What plans print on why there is this strategy.
    rationale: str = "labels are built over a hierarchy, and proved before they are written"


class LabelPlan:
    """A plan that looks up hub labels in place of searching; its attributes are those of
    ``GroupPlan``.

    A hub label of a vertex lists distances to some vertices, its hubs. ``graph`` has its edges in
    the direction of the request. If it has no labels yet, the first call of ``run`` builds them.

    Attributes
    ----------
    strategy
        The only one of labels, with its name and its device.
    algorithm : str
        "bfs" or "sssp".
    query : Query
        What a search for the rows of labels would return: distances of some vertices.
    why : str
        Number and size of the labels, for people.
    depth : int
        0: no search has levels.
    labels_nbytes : int
        Bytes of the labels, or what building them takes at most.
    group : int
        Vertices whose labels have about ``_ROWS_PER_GROUP`` rows.
    nbytes : int
        Bytes that the rows of a group take.
    """

    strategy: ClassVar = _Strategy()
    depth = 0

    def __init__(self, graph: Graph, request: Question[Any]):
        self.algorithm = request.algorithm
        self.query = Query(predecessors=False, output="targets")
        self._graph = graph
        self._metric = ALGORITHMS[request.algorithm].metric  # "hops" or "weights"
        labels = graph.derived.known_labels(self._metric)
        # ``hubs`` is the mean number of hubs per vertex, of the labels or of their estimate.
        if labels is None:  # then the options have an estimate of their size
            estimate = request.options.estimate
            hubs = estimate.hubs
            # Building takes ``peak`` times the bytes of the labels.
            self.labels_nbytes = estimate.peak * estimate.nbytes
            self.why = f"hub labels: {estimate}, by those of {estimate.sampled:,} vertices"
        else:
            hubs = labels.hubs_per_vertex
            self.labels_nbytes = labels.nbytes
            self.why = (
                f"hub labels: {hubs:,.1f} hubs per vertex, {labels.rows:,} rows, "
                f"{in_units(labels.nbytes)}"
            )
        self.group = max(1, int(_ROWS_PER_GROUP / max(hubs, 1)))
        self.nbytes = _BYTES_PER_ROW * _ROWS_PER_GROUP

    def run(
        self,
        numbers: Sequence[int] | np.ndarray,
        lists: TargetLists | None = None,  # noqa: ARG002
        /,
        cut: bool = True,  # noqa: ARG002
    ) -> Traversals:
        """Return the labels of some vertices as the traversals of searches that reach the hubs.

        ``numbers``: vertex numbers of the sources. Distances are sparse: of each source those of
        its hubs, as vertex numbers in ascending order. There are no predecessors.
        ``lists`` and ``cut`` are those of ``GroupPlan.run``, and have no effect: a label has
        neither requested targets nor a limit.
        """
        labels = self._graph.labels(self._metric)
        sources = np.asarray(numbers, np.int64)

        # The positions of the entries of all labels, one label after the other. Labels are stored
        # by rank, and name their hubs by rank.
        by_rank = labels.outward
        ranks = labels.rank[sources]
        sizes = np.diff(by_rank.offsets)[ranks]
        entries = np.repeat(by_rank.offsets[ranks], sizes) + positions_in_groups(sizes)
        hubs = labels.order[by_rank.hubs[entries]]

        # Within a label, entries are sorted by rank; rows are sorted by vertex number. One key per
        # entry has the position of its source before the vertex number of its hub.
        positions = np.repeat(np.arange(sources.size), sizes)  # of the source of each entry
        order = np.argsort(positions * labels.n_vertices + hubs)
        distances = labels.to_distances(self._graph, by_rank.distances[entries[order]])
        rows = SparseDistances(make_offsets(sizes), hubs[order], distances, labels.n_vertices)
        return Traversals(
            algorithm=self.algorithm,
            sources=sources,
            distance=rows,
            predecessor=None,
            limits=[None] * sources.size,
            strategy=self.strategy.name,
            rounds=[0] * sources.size,
        )


def answers_all_pairs(graph: Graph, question: Question[Any]) -> bool:
    """Whether the hub labels of a graph on the CPU answer all pairs or paths of a question.

    This needs labels and a hierarchy that the graph has already, and sums along paths that fit the
    type of the graph's distances.
    """
    pairs = question.pairs
    # What each search has to return: "targets" is distances of its targets, "paths" their paths.
    output = question.kind.keeps
    if pairs is None or output not in ("targets", "paths") or graph.device != "cpu":
        return False
    metric = ALGORITHMS[question.algorithm].metric
    labels = graph.derived.known_labels(metric)
    hierarchy = graph.derived.known_hierarchy(metric)
    if labels is None or hierarchy is None:
        return False

    # The strategy that uses labels answers only queries with few enough targets per source.
    per_source = pairs.rows.size / max(pairs.sources.size, 1)
    query = Query(output=output, has_target_lists=True, targets_per_source=per_source)
    if answering_labels(graph, query, metric) is None:
        return False

    # If a sum needs a wider type than the graph has, the plan takes another strategy, whose results
    # the proof of the labels does not cover. Hops fit any type. Of weights, ``longest`` bounds the
    # distances, in units of the hierarchy, and ``EXACT_BELOW`` has the number below which a type
    # holds all integers.
    if metric == "hops":
        return True
    weights: Any = graph.weights
    return bool(hierarchy.longest * hierarchy.unit < EXACT_BELOW[weights.dtype])


def proof_seconds(question: Question[Any], graph: Graph) -> float:
    """Estimate the seconds of a proof of the labels that a question takes, by those of building
    them.
    """
    estimate = graph.derived.estimate_labels(ALGORITHMS[question.algorithm].metric)
    return PROOFS * estimate.seconds


def prove_labels(graph: Graph, question: Question[Any]) -> HubLabels:
    """Return the hub labels of a graph that answer a question.

    They are built unless the graph has them. They are proved unless ``question.certify`` is
    ``"none"``. ``graph`` has its edges in their own direction, not reversed. Raises
    CertificateError: the labels are wrong.
    """
    labels = graph.labels(ALGORITHMS[question.algorithm].metric)
    if question.certify != "none":
        certify(graph, labels).require()
    return labels
