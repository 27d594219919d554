"""A graph whose edges are partitioned over workers, and certificates of its distances: the driver's
side of ``edge_partition``.

Rows become edges by the rules of ``kepler_traverse.graph.build``: self-loops are dropped, parallel
edges keep the smallest weight, and an undirected edge is stored in both directions with the smaller
weight of the two. cuGraph would average the two, and select any of several parallel edges.
Therefore it gets the edges after these rules, as a directed graph.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client

from kepler_traverse._arrays import EXACT_BELOW, as_distance, float_that_holds, index_dtype
from kepler_traverse.certificate import Certificate
from kepler_traverse.errors import EdgeListError, InputError, PrecisionError
from kepler_traverse.graph import BuildReport, Graph

from . import edge_partition

# a part is sorted and checked as a whole: a worker needs memory for a quarter of its edges more
_PARTS_PER_WORKER = 4
_SAMPLED = 4096  # edge starts per chunk of the rows, by which parts of about equal size are chosen


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PartitionedGraph(Graph):
    """A graph with offsets and ids, whose edges are on workers: ``targets`` and ``weights`` are
    empty.

    Functions that need only vertices and degrees accept it. Its fingerprint is that of the same
    graph as a whole.
    """

    edges: Edges

    @property
    def n_edges(self) -> int:
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays on all workers."""
        weight = 0 if self.weights is None else self.weights.itemsize
        return self.offsets.nbytes + self.n_edges * (self.targets.itemsize + weight)

    def _pieces(self, name: str) -> Iterator[np.ndarray]:
        if name not in ("targets", "weights"):
            return super()._pieces(name)
        return self.edges.column("dst" if name == "targets" else "weight")


class Edges:
    """The edge partitions of a graph on the workers of a cluster.

    ``rows`` are futures of ``edge_partition.Part``: the rows of the edge list, divided in any way.

    Attributes
    ----------
    parts : list of futures of edge_partition.Part
        Ordered by their ranges of vertices, once the graph is built.
    heaviest : number or None
        The largest weight of a row.
    index : dtype
        Of the vertex numbers in the parts.
    """

    def __init__(self, client: Client, rows: Sequence[Any], weighted: bool) -> None:
        self._client = client
        self._rows = rows
        self._weighted = weighted
        self._workers = sorted(client.nthreads())
        self.parts: list[Any] = []
        self.heaviest: float | None = None
        self.index = np.dtype(np.int32)

    def build(
        self, kinds: dict[str, np.dtype], directed: bool, weight_type: str, files: str
    ) -> PartitionedGraph:
        """Check the rows, number the vertices, and distribute the edges to the workers.

        ``kinds``: types of the columns ``src``, ``dst`` and ``weight``. ``files``: those that
        errors name.

        Raises EdgeListError: invalid weights, or ids of both signs that no integer type holds.
        """
        id_kind = _id_kind(kinds, files)
        kind = _float_kind(kinds.get("weight"), weight_type)
        integers = self._weighted and kind is None
        facts = self._ask(edge_partition.check_chunk, self._rows, kind, files)
        ids = functools.reduce(np.union1d, (f.ids.astype(id_kind, copy=False) for f in facts))
        # edges are sorted by both ends in one integer
        if ids.size * ids.size > np.iinfo(np.int64).max:
            raise InputError(
                f"{ids.size} vertices are more than --engine cugraph-mg can number; split the graph"
            )
        if integers:
            weights = (min(f.low for f in facts), max(f.high for f in facts))
            kind = _integer_kind(weights, ids.size, weight_type, files)
        loops = sum(f.self_loops for f in facts)
        n_rows = sum(f.rows for f in facts)
        stored_rows = (n_rows - loops) * (1 if directed else 2)
        # cuGraph has one type for vertices and edges
        self.index = index_dtype(max(ids.size, stored_rows))
        if self._weighted:
            self.heaviest = max(f.high for f in facts)
        bounds = self._distribute(ids, kind, both_ways=not directed)
        offsets, has_edge = self._outline(bounds, ids.size)
        graph = PartitionedGraph(
            offsets=offsets,
            targets=np.zeros(0, index_dtype(ids.size)),
            weights=None if kind is None else np.zeros(0, kind),
            ids=ids,
            directed=directed,
            report=BuildReport(
                rows=n_rows,
                self_loops=loops,
                parallel_edges=stored_rows - int(offsets[-1]),
                negative_zeros=sum(f.negative_zeros for f in facts),
                isolated_vertices=ids.size - int(has_edge.sum()),
                weight_source=str(kinds["weight"]) if self._weighted else "",
            ),
            edges=self,
            integer_weights=integers,
            float_distances=integers and weight_type != "auto",
        )
        if self._weighted:  # this graph object has no weights that would tell it
            graph.derived.cache["heaviest"] = self.heaviest
        return graph

    def _distribute(self, ids: np.ndarray, kind: np.dtype | None, both_ways: bool) -> np.ndarray:
        """Sort the edges into partitions; returns the bounds of their vertex ranges, one more than
        there are partitions.
        """
        client = self._client
        index = self.index
        everywhere = client.scatter(ids, broadcast=True)
        shares = [
            client.submit(
                edge_partition.numbered, rows, everywhere, kind, index, both_ways, pure=False
            )
            for rows in self._rows
        ]
        self._rows = ()
        n_parts = _PARTS_PER_WORKER * len(self._workers)
        samples = np.sort(np.concatenate(self._ask(edge_partition.select_sample, shares, _SAMPLED)))
        inner = np.zeros(n_parts - 1, index)
        if samples.size:
            inner = samples[np.arange(1, n_parts) * samples.size // n_parts]
        bounds = np.concatenate([[0], inner, [ids.size]]).astype(np.int64)
        pieces = [client.submit(edge_partition.cut, share, bounds, pure=False) for share in shares]
        del shares
        self.parts = [
            client.submit(
                _join,
                *[client.submit(_item, piece, part, pure=False) for piece in pieces],
                n_vertices=ids.size,
                workers=[self._workers[part % len(self._workers)]],
                pure=False,
            )
            for part in range(n_parts)
        ]
        return bounds

    def _outline(self, bounds: np.ndarray, n_vertices: int) -> tuple[np.ndarray, np.ndarray]:
        """Return offsets of the whole graph, and which vertices have an edge."""
        futures = [
            self._client.submit(
                edge_partition.outline, part, int(low), int(high), n_vertices, pure=False
            )
            for part, low, high in zip(self.parts, bounds[:-1], bounds[1:], strict=True)
        ]
        offsets = np.zeros(n_vertices + 1, np.int64)
        touched = np.zeros(-(-n_vertices // 8), np.uint8)
        for future, low, high in zip(futures, bounds[:-1], bounds[1:], strict=True):
            degrees, bits = future.result()
            offsets[low + 1 : high + 1] = degrees
            touched |= bits
        has_edge = (offsets[1:] > 0) | np.unpackbits(touched)[:n_vertices].astype(bool)
        return np.cumsum(offsets), has_edge

    def frames(self) -> list[Any]:
        """Return futures of the partitions as cuDF frames ``src, dst[, weight]``, each on the
        worker of its partition.
        """
        return [
            self._client.submit(edge_partition.make_frame, part, pure=False) for part in self.parts
        ]

    def column(self, name: str) -> Iterator[np.ndarray]:
        """Yield one column of all edges in order, one partition after another."""
        for part in self.parts:
            yield self._client.submit(edge_partition.host_column, part, name, pure=False).result()

    def certify(self, source: int, distance: np.ndarray, limit: float | None) -> Certificate:
        """Certify distances from one source without predecessors; each worker checks the edges of
        its partitions.

        The rules are those of ``kepler_traverse.certificate.certify_many``. A distance is founded
        by an edge that explains it and comes from a strictly nearer vertex. A distance that only
        edges of length zero explain is founded through vertices that are founded already, in
        rounds, so that no cycle of such edges can explain itself.

        ``source`` is a vertex number, and ``distance`` a NumPy array of shape (n_vertices,).

        Raises PrecisionError: a distance exceeds the largest number of its type.
        """
        failures = _out_of_range(source, distance, limit)
        if failures:
            return Certificate(failures)
        everywhere = self._client.scatter(distance, broadcast=True)
        checks = self._ask(edge_partition.check, self.parts, everywhere, limit)
        if any(part.overflows for part in checks):
            raise PrecisionError(
                f"a distance exceeds the largest {distance.dtype}; take "
                "--weight-type float64, or scale the weights down"
            )
        longer = [part for part in checks if part.longer]
        if longer:
            count = sum(part.longer for part in longer)
            failures["C3"] = (
                f"{count} edges allow a shorter distance, one of them to "
                f"vertex number {longer[0].at}"
            )
        bits = np.bitwise_or.reduce([part.founded for part in checks])
        lost = self._lost(source, distance, bits, everywhere)
        if lost.size:
            failures["C4"] = (
                f"{lost.size} distances are explained by no edge, or only "
                f"by each other, one of them to vertex number {lost[0]}"
            )
        return Certificate(failures)

    def _lost(
        self, source: int, distance: np.ndarray, bits: np.ndarray, everywhere: Any
    ) -> np.ndarray:
        """Return vertices with a distance that is not founded."""
        counts_hops = distance.dtype.kind == "i"
        reached = distance != -1 if counts_hops else np.isfinite(distance)
        founded = np.unpackbits(bits)[: distance.size].astype(bool)
        founded[source] = True
        while True:
            lost = np.flatnonzero(reached & ~founded)
            if not lost.size or counts_hops:
                return lost
            packed = np.packbits(founded)
            more = np.bitwise_or.reduce(
                self._ask(edge_partition.spread, self.parts, everywhere, packed)
            )
            founded |= np.unpackbits(more)[: distance.size].astype(bool)
            if lost.size == np.count_nonzero(reached & ~founded):
                return lost

    def _ask(self, question: Any, parts: Sequence[Any], *more: Any) -> list[Any]:
        """Run a function on all partitions, each on its worker."""
        return self._client.gather(
            [self._client.submit(question, part, *more, pure=False) for part in parts]
        )


def _item(pieces: list[Any], at: int) -> Any:
    return pieces[at]


def _join(*pieces: Any, n_vertices: int) -> Any:
    return edge_partition.joined(pieces, n_vertices)


def _out_of_range(source: int, distance: np.ndarray, limit: float | None) -> dict[str, str]:
    """Return what violates the rules C1, of the source, and C2, of the range of distances."""
    if distance[source] != 0:
        return {"C1": f"the distance of the source to itself is {distance[source]}"}
    if distance.dtype.kind == "i":
        bad = distance < -1
        if limit is not None:
            bad |= distance > limit
    else:
        most = as_distance(limit, distance.dtype)
        bad = np.signbit(distance) | np.isnan(distance) | ((distance > most) & (distance != np.inf))
    at = np.flatnonzero(bad)
    if at.size:
        return {"C2": f"{at.size} distances are out of range, the first is {distance[at[0]]}"}
    return {}


def _id_kind(kinds: dict[str, np.dtype], files: str) -> np.dtype:
    """Return the type that holds the ids of both ends."""
    kind = np.result_type(kinds["src"], kinds["dst"])
    if kind.kind not in "iu":
        raise EdgeListError(
            f"{files}: ids are {kinds['src']} and {kinds['dst']}, which "
            "no integer type holds; cast them"
        )
    return kind


def _float_kind(kind: np.dtype | None, weight_type: str) -> np.dtype | None:
    """Return the type of float weights; None without weights, or if their values decide it."""
    if kind is None or kind.kind != "f":
        return None
    if weight_type == "auto":
        return np.result_type(kind, np.float32)
    return np.dtype(weight_type)


def _integer_kind(
    weights: tuple[int, int], n_vertices: int, weight_type: str, files: str
) -> np.dtype:
    """Return the narrowest float type that cannot round the sum of a path; float64 if none is known
    to suffice. ``weights``: the smallest and the largest one.
    """
    low, high = weights
    kind = float_that_holds(low, high)
    if kind is None:
        raise EdgeListError(
            f"{files}: integer weight {high} is beyond 2^53, which no "
            "float holds; scale the weights down"
        )
    if weight_type != "auto":
        return max(kind, np.dtype(weight_type), key=lambda dtype: dtype.itemsize)
    narrow = np.dtype(np.float32)
    if high * max(n_vertices - 1, 1) < EXACT_BELOW[narrow]:
        return narrow
    return np.dtype(np.float64)
