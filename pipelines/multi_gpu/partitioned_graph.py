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
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client

from kepler_traverse._arrays import (
    EXACT_BELOW,
    UNREACHED,
    as_distance,
    float_that_holds,
    index_dtype,
)
from kepler_traverse.certificate import Certificate
from kepler_traverse.errors import EdgeListError, InputError, PrecisionError
from kepler_traverse.graph import BuildReport, Graph

from . import edge_partition

# A partition is sorted and checked as a whole, which takes additional memory in its size. With four
# per worker this is a quarter of the worker's edges.
_PARTITIONS_PER_WORKER = 4
# edge starts per chunk of the rows, by which partitions of about equal size are chosen
_SAMPLE_SIZE = 4096


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PartitionedGraph(Graph):
    """A graph with offsets and ids, whose edges are on workers: ``targets`` and ``weights`` are
    empty.

    Functions that need only vertices and degrees accept it. Its fingerprint is that of the same
    graph as a whole.
    """

    edges: Edges  # the edges on the workers

    @property
    def n_edges(self) -> int:
        """Number of stored edges on all workers."""
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays on all workers."""
        weight = 0 if self.weights is None else self.weights.itemsize
        return self.offsets.nbytes + self.n_edges * (self.targets.itemsize + weight)

    def _pieces(self, name: str) -> Iterator[np.ndarray]:
        """Yield the array ``name`` of the graph in pieces, NumPy, for its fingerprint. "targets"
        and "weights" come from the workers, one partition after another; any other array, such as
        "offsets", is in this process, and yielded as the base class does.
        """
        if name not in ("targets", "weights"):
            return super()._pieces(name)
        return self.edges.column("dst" if name == "targets" else "weight")


class Edges:
    """The edge partitions of a graph on the workers of a cluster.

    ``client`` is that of the Dask cluster. ``rows`` are futures of ``edge_partition.EdgeArrays``,
    results that are on workers: the rows of the edge list, divided in any way. ``weighted`` is
    whether they have weights.

    Attributes
    ----------
    partitions : list of futures of edge_partition.EdgeArrays
        Ordered by their ranges of vertices, once the graph is built.
    heaviest : number or None
        The largest weight of a row; None without weights, and before the graph is built.
    index : dtype
        Type of the vertex numbers in the partitions.
    """

    def __init__(self, client: Client, rows: Sequence[Any], weighted: bool) -> None:
        self._client = client
        self._rows = rows
        self._weighted = weighted
        self._workers = sorted(client.nthreads())
        self.partitions: list[Any] = []
        self.heaviest: float | None = None
        self.index = np.dtype(np.int32)

    def build(
        self, kinds: dict[str, np.dtype], directed: bool, weight_type: str, files: str
    ) -> PartitionedGraph:
        """Check the rows, number the vertices, and distribute the edges to the workers. Return the
        graph.

        ``kinds`` has the types of the columns "src", "dst" and, if there are weights, "weight".
        ``weight_type`` is the setting: "auto", "float32" or "float64". ``files`` names the files of
        the edge list in errors.

        Raises EdgeListError: invalid weights, or ids of both signs that no integer type holds.
        """
        # Check each chunk of the rows, and collect the ids.
        id_dtype = _id_dtype(kinds, files)
        weight_dtype = _float_dtype(kinds.get("weight"), weight_type)
        facts = self._ask(edge_partition.check_chunk, self._rows, weight_dtype, files)
        ids = functools.reduce(
            np.union1d, (chunk.ids.astype(id_dtype, copy=False) for chunk in facts)
        )
        # edges are sorted by one int64 number, src * n + dst
        if ids.size * ids.size > np.iinfo(np.int64).max:
            raise InputError(
                f"{ids.size} vertices are more than --engine cugraph-mg can number; split the graph"
            )

        # Choose the types of weights and vertex numbers.
        has_integers = self._weighted and weight_dtype is None
        if has_integers:
            range_ = (min(chunk.low for chunk in facts), max(chunk.high for chunk in facts))
            weight_dtype = _integer_dtype(range_, ids.size, weight_type, files)
        n_loops = sum(chunk.self_loops for chunk in facts)
        n_rows = sum(chunk.rows for chunk in facts)
        n_stored_rows = (n_rows - n_loops) * (1 if directed else 2)
        # cuGraph has one type for the numbers of vertices and of edges
        self.index = index_dtype(max(ids.size, n_stored_rows))
        if self._weighted:
            self.heaviest = max(chunk.high for chunk in facts)

        # Distribute the edges.
        bounds = self._distribute(ids, weight_dtype, both_ways=not directed)
        offsets, has_edge = self._outline(bounds, ids.size)
        graph = PartitionedGraph(
            offsets=offsets,
            targets=np.zeros(0, index_dtype(ids.size)),
            weights=None if weight_dtype is None else np.zeros(0, weight_dtype),
            ids=ids,
            directed=directed,
            report=BuildReport(
                rows=n_rows,
                self_loops=n_loops,
                parallel_edges=n_stored_rows - int(offsets[-1]),
                negative_zeros=sum(chunk.negative_zeros for chunk in facts),
                isolated_vertices=ids.size - int(has_edge.sum()),
                weight_source=str(kinds["weight"]) if self._weighted else "",
            ),
            edges=self,
            integer_weights=has_integers,
            # Sums of integers are returned as integers, unless the settings name a type of floats.
            float_distances=has_integers and weight_type != "auto",
        )
        # Functions of a graph look up its heaviest weight there. This object has no weights of
        # which it could be computed.
        if self._weighted:
            graph.derived.cache["heaviest"] = self.heaviest
        return graph

    def _distribute(
        self, ids: np.ndarray, weight_dtype: np.dtype | None, both_ways: bool
    ) -> np.ndarray:
        """Sort the edges into partitions on the workers, by where they begin.

        ``ids`` are those of all vertices, ascending, and ``weight_dtype`` is the type of weights,
        None without them. ``both_ways`` stores each edge in both directions.

        Return int64 bounds, one more than there are partitions: the edges of partition i leave the
        vertices from ``bounds[i]`` to below ``bounds[i + 1]``.
        """
        client = self._client
        index = self.index
        ids_everywhere = client.scatter(ids, broadcast=True)
        chunks = [
            client.submit(
                edge_partition.number_vertices,
                rows,
                ids_everywhere,
                weight_dtype,
                index,
                both_ways,
                pure=False,
            )
            for rows in self._rows
        ]
        self._rows = ()  # the workers may forget them

        # Choose ranges of vertices such that about as many edges leave each of them, by a sample of
        # the edges of each chunk. ``starts``: vertices that sampled edges leave, ascending;
        # ``inner``: those of them at which a new range begins, all 0 without edges.
        n_partitions = _PARTITIONS_PER_WORKER * len(self._workers)
        samples = self._ask(edge_partition.select_sample, chunks, _SAMPLE_SIZE)
        starts = np.sort(np.concatenate(samples))
        inner = np.zeros(n_partitions - 1, index)
        if starts.size:
            inner = starts[np.arange(1, n_partitions) * starts.size // n_partitions]
        bounds = np.concatenate([[0], inner, [ids.size]]).astype(np.int64)

        # Each chunk is split at the bounds, and the pieces of a range are joined on one worker.
        splits = [
            client.submit(edge_partition.split, chunk, bounds, pure=False) for chunk in chunks
        ]
        del chunks  # so that the workers may forget them once they are split
        for number in range(n_partitions):
            pieces = [client.submit(_select_piece, split, number, pure=False) for split in splits]
            partition = client.submit(
                _join,
                *pieces,
                n_vertices=ids.size,
                workers=[self._workers[number % len(self._workers)]],
                pure=False,
            )
            self.partitions.append(partition)
        return bounds

    def _outline(self, bounds: np.ndarray, n_vertices: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of the whole graph, int64 of shape (n_vertices + 1,), and a mask of
        shape (n_vertices,) of the vertices that an edge leaves or enters.

        ``bounds`` are those of the ranges of vertices, as ``_distribute`` returns them.
        """
        ranges = list(pairwise(bounds.tolist()))
        futures = [
            self._client.submit(
                edge_partition.outline, partition, low, high, n_vertices, pure=False
            )
            for partition, (low, high) in zip(self.partitions, ranges, strict=True)
        ]
        offsets = np.zeros(n_vertices + 1, np.int64)  # degrees at first
        bitmap_of_heads = np.zeros(-(-n_vertices // 8), np.uint8)
        for future, (low, high) in zip(futures, ranges, strict=True):
            degrees, bitmap = future.result()
            offsets[low + 1 : high + 1] = degrees
            bitmap_of_heads |= bitmap
        is_head = np.unpackbits(bitmap_of_heads)[:n_vertices].astype(bool)
        has_edge = (offsets[1:] > 0) | is_head
        return np.cumsum(offsets), has_edge

    def frames(self) -> list[Any]:
        """Return futures of the partitions as cuDF frames ``src, dst[, weight]``, each on the
        worker of its partition.
        """
        return [
            self._client.submit(edge_partition.make_frame, partition, pure=False)
            for partition in self.partitions
        ]

    def column(self, name: str) -> Iterator[np.ndarray]:
        """Yield the array ``name`` of all edges, "src", "dst" or "weight", in the order of the
        graph's CSR: a NumPy array per partition.
        """
        for partition in self.partitions:
            future = self._client.submit(edge_partition.host_column, partition, name, pure=False)
            yield future.result()

    def certify(self, source: int, distance: np.ndarray, limit: float | None) -> Certificate:
        """Certify distances from one source without predecessors; each worker checks the edges of
        its partitions.

        The rules are those of ``kepler_traverse.certificate.certify_many``. A distance is founded
        by an edge that explains it and comes from a strictly nearer vertex. A distance that only
        edges of length zero explain is founded through vertices that are founded already, in
        rounds, so that no cycle of such edges can explain itself.

        ``source`` is a vertex number, and ``distance`` a NumPy array of shape (n_vertices,): hops
        (int32, -1 where unreached) or weighted distances (floats, ``inf`` where unreached).
        ``limit``: up to which they should be complete; None without one.

        Raises PrecisionError: a distance exceeds the largest number of its type.
        """
        failures = _range_failures(source, distance, limit)
        if failures:  # the rules below hold for numbers in range alone
            return Certificate(failures)

        # Each worker checks its edges. Then the answers of all are put together.
        distance_everywhere = self._client.scatter(distance, broadcast=True)
        checks = self._ask(edge_partition.check, self.partitions, distance_everywhere, limit)
        if any(checked.overflows for checked in checks):
            raise PrecisionError(
                f"a distance exceeds the largest {distance.dtype}; take "
                "--weight-type float64, or scale the weights down"
            )

        # Rule C3: no edge allows a shorter distance. Rule C4: edges explain each distance.
        longer = [checked for checked in checks if checked.longer]
        if longer:
            count = sum(checked.longer for checked in longer)
            failures["C3"] = (
                f"{count} edges allow a shorter distance, one of them to "
                f"vertex number {longer[0].at}"
            )
        bitmap = np.bitwise_or.reduce([checked.founded for checked in checks])
        unfounded = self._find_unfounded(source, distance, bitmap, distance_everywhere)
        if unfounded.size:
            failures["C4"] = (
                f"{unfounded.size} distances are explained by no edge, or only "
                f"by each other, one of them to vertex number {unfounded[0]}"
            )
        return Certificate(failures)

    def _find_unfounded(
        self, source: int, distance: np.ndarray, bitmap: np.ndarray, distance_everywhere: Any
    ) -> np.ndarray:
        """Return the numbers of the vertices with a distance that is not founded: edges do not
        explain it all the way from the source.

        ``bitmap`` has the vertices that an edge from a nearer vertex founds, a bit per vertex.
        ``distance_everywhere`` is a future of ``distance`` on all workers.
        """
        counts_hops = distance.dtype.kind == "i"
        if counts_hops:
            is_reached = distance != UNREACHED
        else:
            is_reached = np.isfinite(distance)
        is_founded = np.unpackbits(bitmap)[: distance.size].astype(bool)
        is_founded[source] = True
        # Each round founds the vertices that an edge of length zero from a founded one explains,
        # until a round founds none.
        while True:
            unfounded = np.flatnonzero(is_reached & ~is_founded)
            if not unfounded.size or counts_hops:  # no edge has length zero in hops
                return unfounded
            founded = np.packbits(is_founded)
            bitmaps = self._ask(
                edge_partition.spread, self.partitions, distance_everywhere, founded
            )
            bitmap = np.bitwise_or.reduce(bitmaps)
            is_founded |= np.unpackbits(bitmap)[: distance.size].astype(bool)
            if unfounded.size == np.count_nonzero(is_reached & ~is_founded):
                return unfounded

    def _ask(self, question: Any, arrays: Sequence[Any], *arguments: Any) -> list[Any]:
        """Call a function of ``edge_partition`` for all chunks or partitions, each on its worker.

        ``question`` is the function. ``arrays`` are futures of its first argument, and
        ``arguments`` its other ones. Return the answers in the order of the futures.
        """
        return self._client.gather(
            [self._client.submit(question, edges, *arguments, pure=False) for edges in arrays]
        )


def _select_piece(pieces: list[Any], number: int) -> Any:
    """Return the piece of a chunk at position ``number``. This is a task of its own, so that only
    this piece is sent to another worker, and not all pieces.
    """
    return pieces[number]


def _join(*pieces: Any, n_vertices: int) -> Any:
    """Join pieces to a partition. Each piece is an argument, since Dask replaces futures among the
    arguments of a task by their results, but does not look into a list.
    """
    return edge_partition.join(pieces, n_vertices)


def _range_failures(source: int, distance: np.ndarray, limit: float | None) -> dict[str, str]:
    """Return what violates two rules of certificates, as texts by the name of the rule: C1, that
    the source is at distance 0, and C2, that all distances are in range. It is empty if nothing
    does.

    Hops are -1 (unreached), or from 0 to the limit. Weighted distances are ``inf`` (unreached), or
    from 0.0 to the limit, and never -0.0.
    """
    if distance[source] != 0:
        return {"C1": f"the distance of the source to itself is {distance[source]}"}
    if distance.dtype.kind == "i":
        is_wrong = distance < UNREACHED
        if limit is not None:
            is_wrong |= distance > limit
    else:
        largest = as_distance(limit, distance.dtype)  # the limit in the type of the distances
        is_beyond = (distance > largest) & (distance != np.inf)
        is_wrong = np.signbit(distance) | np.isnan(distance) | is_beyond
    wrong = distance[is_wrong]
    if wrong.size:
        return {"C2": f"{wrong.size} distances are out of range, the first is {wrong[0]}"}
    return {}


def _id_dtype(kinds: dict[str, np.dtype], files: str) -> np.dtype:
    """Return the integer type that holds the ids of both ends of edges; raise EdgeListError if
    there is none. ``kinds`` has the types of columns by role, and ``files`` is for errors.
    """
    dtype = np.result_type(kinds["src"], kinds["dst"])
    if dtype.kind not in "iu":
        raise EdgeListError(
            f"{files}: ids are {kinds['src']} and {kinds['dst']}, which "
            "no integer type holds; cast them"
        )
    return dtype


def _float_dtype(column_dtype: np.dtype | None, weight_type: str) -> np.dtype | None:
    """Return the type in which float weights are stored. Return None without weights, or if they
    are integers, whose values decide about the type.

    ``column_dtype`` is the type of the column, None without one, and ``weight_type`` the setting.
    """
    if column_dtype is None or column_dtype.kind != "f":
        return None
    if weight_type == "auto":
        return np.result_type(column_dtype, np.float32)
    return np.dtype(weight_type)


def _integer_dtype(
    weights: tuple[int, int], n_vertices: int, weight_type: str, files: str
) -> np.dtype:
    """Return the float type in which integer weights are stored, as cuGraph takes no integers: the
    narrowest one that cannot round the sum of a path, or float64 if none is known to suffice.

    ``weights`` are the smallest and the largest weight. A ``weight_type`` other than "auto" is
    taken if it holds each weight, else the wider type that does; sums may then be rounded.
    EdgeListError: a weight is too large for any float type.
    """
    low, high = weights
    holds_weights = float_that_holds(low, high)
    if holds_weights is None:
        raise EdgeListError(
            f"{files}: integer weight {high} is beyond 2^53, which no "
            "float holds; scale the weights down"
        )
    if weight_type != "auto":
        return max(holds_weights, np.dtype(weight_type), key=lambda dtype: dtype.itemsize)
    # A path has at most n - 1 edges. float32 holds each integer below ``EXACT_BELOW``.
    narrow = np.dtype(np.float32)
    if high * max(n_vertices - 1, 1) < EXACT_BELOW[narrow]:
        return narrow
    return np.dtype(np.float64)
