"""The engine ``cugraph-mg``: cuGraph's own multi-GPU BFS and SSSP, for a graph that no single GPU
holds.

Each worker holds a partition of the edges, and all workers search together from one source after
another. The driver writes rows, parts and the manifest with the same code as for the other engine.
cuGraph's distances are the minimum over all paths of sums rounded in the type of the weights, as
this library's are. They are certified edge by edge on the workers. So the output is bit-identical
to that of the other engine, or the source is reported as failed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from kepler_traverse._arrays import EXACT_BELOW, UNREACHED, at_most, sort_distinct
from kepler_traverse.errors import CertificateError, PrecisionError
from kepler_traverse.search.exact import any_beyond
from kepler_traverse.search.query import Query, TargetLists
from kepler_traverse.search.results import Traversals

from ..cli import signals
from ..cli.options import MG, Settings
from ..output.part_file import write_part
from ..output.rows import get_names
from ..output.run_folder import writing_to
from ..output.store import Store
from ..run.batch_run import BatchRun
from ..run.memory_plan import Sizing, sources_per_part
from ..run.prepare import Prepared, choose_sources
from ..run.question import read_question
from ..run.sizing import make_load
from ..worker.batch_context import BatchContext
from ..worker.planning import Request, require_weights
from ..worker.traverse import Attempt, BatchTraverser, Group
from .partitioned_graph import PartitionedGraph
from .rapids import Cugraph, open_cugraph, sentinel

_SOURCES_PER_PART = 64  # a source takes seconds, and an interrupt loses the unfinished part file


@dataclass(frozen=True)
class _Strategy:
    """The attributes of this engine's only strategy, as those of the library's strategies."""

    name: str = MG
    device: str = "cuda"
    rationale: str = (  # why one would take it, for people
        "cuGraph's multi-GPU search, with the graph partitioned over "
        "all workers, one source after another"
    )


class _Plan:
    """A plan of searches, as ``worker.planning.GroupPlan`` describes plans: a search on all workers
    from one source after another.

    Attributes
    ----------
    group : int
        Sources that are searched together: 1.
    depth : int
        Levels that a survey of the graph has found: 0, as there is none.
    algorithm : {"bfs", "sssp"}
    query : Query
        What the searches compute: their limit, and the targets.
    nbytes : int
        Estimate of the bytes of a search per GPU, without cuGraph's own allocations.
    why : str
        Why this engine searches so, for people.
    """

    strategy = _Strategy()
    group = 1
    depth = 0

    def __init__(self, cugraph: Cugraph, graph: PartitionedGraph, request: Request):
        self.algorithm = request.algorithm
        self.cugraph = cugraph
        self._graph = graph
        numbers = None
        targets = None
        if request.targets is not None:
            numbers = request.targets.numbers
            targets = sort_distinct(numbers)
        self.query = Query(
            predecessors=False,
            limit=request.limit,
            targets=targets,
            **request.options.of_query(numbers),  # such as the k nearest targets
        )

        # An estimate: of each vertex its number and a distance, twice, and 4 bytes more.
        distance_bytes = 4  # hops are int32
        if request.algorithm == "sssp":
            distance_bytes = require_weights(graph).itemsize
        self.nbytes = (2 * (4 + distance_bytes) + 4) * graph.n_vertices
        size = f"{graph.n_vertices:,} vertices and {graph.n_edges:,} stored edges"
        self.why = (
            f"{size} in parts on {cugraph.n_workers} workers; every search runs on all of them"
        )

    def run(
        self,
        numbers: Sequence[int] | np.ndarray,
        lists: TargetLists | None = None,  # noqa: ARG002
        /,
        cut: bool = True,  # noqa: ARG002
    ) -> Traversals:
        """Search from the one source of a group, within the limit of the query; return its
        traversal: distances of all vertices, without predecessors.

        ``numbers``: the vertex number of the source. ``lists`` (targets of each source) and ``cut``
        (whether distances are cut at the limit) are those of ``GroupPlan.run``, and have no effect:
        this engine takes no pairs, and its distances are always cut at the limit.
        """
        source = int(numbers[0])  # ``group`` is 1
        limit = self.query.limit
        if self.algorithm == "bfs":
            distance = self._search(source, limit, np.dtype(np.int32), UNREACHED)
            rounds = int(distance.max())  # the number of levels
        else:  # cuGraph returns distances alone, which do not tell the rounds of a weighted search
            distance = self._add_up_weights(source, limit)
            rounds = 0
        return Traversals(
            algorithm=self.algorithm,
            sources=np.array([source]),
            distance=distance[None],
            predecessor=None,
            limits=[limit],
            strategy=MG,
            rounds=[rounds],
        )

    def _add_up_weights(self, source: int, limit: float | None) -> np.ndarray:
        """Return the weighted distances of all vertices from a source, within a limit; infinite
        where unreached. PrecisionError: weights are integers, and the sum of some may have been
        rounded.
        """
        dtype = require_weights(self._graph).dtype
        if not self._graph.integer_weights:
            return self._search(source, limit, dtype, np.inf)

        # Floats below this number represent each integer. A limit from there on is rounded as sums
        # are, so that no sum within it is lost.
        exact_below = EXACT_BELOW[dtype]
        if limit is not None and limit >= exact_below:
            limit = dtype.type(limit).item()
        distance = self._search(source, limit, dtype, np.inf)
        if any_beyond(distance, exact_below):
            raise PrecisionError(
                f"a distance is {exact_below:,} or more, where {dtype} does not hold every integer; "
                "leave --weight-type out, or take --engine kepler"
            )
        return distance

    def _search(
        self, source: int, limit: float | None, dtype: np.dtype, unreached: float
    ) -> np.ndarray:
        """Return the distances of all vertices from a source, as an array of the type ``dtype``.

        A vertex that cuGraph does not reach, or that is beyond ``limit``, has ``unreached``.
        """
        distance = np.full(self._graph.n_vertices, unreached, dtype)
        distance[source] = 0
        # cuGraph does not know vertices without edges. A source that no edge leaves reaches itself.
        if self._graph.derived.degrees[source]:
            # Each worker returns some vertex numbers with their distances; ``sentinel`` is the
            # number by which cuGraph marks unreached vertices of a type.
            for vertices, theirs in self.cugraph.search(self._graph, source, limit, dtype):
                distance[vertices] = np.where(
                    theirs == sentinel(theirs.dtype), unreached, theirs.astype(dtype, copy=False)
                )
        if limit is not None:  # cuGraph may return vertices beyond it
            distance[~at_most(distance, limit)] = unreached
        return distance


class _BatchTraverser(BatchTraverser):
    """Computes results of sources as ``BatchTraverser``, which runs on one GPU, does.

    It certifies on the workers. After an error that concerns one source it continues with the next
    one; any other error ends the run.
    """

    _plan: _Plan
    _graph: PartitionedGraph

    def _try(self, group: Group, first_sources: set[int], context: BatchContext) -> Attempt:
        """Search from a group, which is one source with its part. Return the result, or the reason
        of an error that concerns this source alone; raise other errors.

        ``first_sources``: vertex numbers of the first source of each part, which the certificate
        "sample" checks. ``context`` times the phases, and records the source.
        """
        try:
            return Attempt(*self._traverse(group, first_sources, context))
        except (CertificateError, PrecisionError) as error:
            ((source, _),) = group
            name = self._graph.ids_at(np.array([source]))[0]
            return Attempt(None, reason=f"{type(error).__name__}: source {name}: {error}")

    def _certify(self, traversals: Traversals) -> None:
        """Raise CertificateError if the distances of a traversal are wrong. Each worker checks them
        against its edges.

        ``traversals``: of one source, with the distances of all vertices in host memory.
        """
        for traversal in traversals:
            distance = np.ascontiguousarray(traversal.distance)
            certificate = self._plan.cugraph.certify(
                self._graph, traversal.source, distance, traversal.limit
            )
            certificate.require()


@contextlib.contextmanager
def mg_engine(settings: Settings) -> Iterator[MgEngine]:
    """Yield the engine, with a cluster that lasts as long as the block. It raises the errors of
    ``rapids.open_cugraph``: DeviceError and ClusterError.
    """
    started = time.perf_counter()
    with open_cugraph(settings) as cugraph:
        yield MgEngine(settings, cugraph, time.perf_counter() - started)


class MgEngine:
    """The engine that searches with cuGraph on all workers of a cluster together.

    A run calls ``prepare``, ``size``, ``choose`` and ``answer``, in this order. ``cugraph`` is the
    cluster, which took ``start_seconds`` to start.
    """

    # both are set by ``prepare``
    _graph: PartitionedGraph
    _plan: _Plan

    def __init__(self, settings: Settings, cugraph: Cugraph, start_seconds: float):
        self._settings = settings
        self._cugraph = cugraph
        self._start_seconds = start_seconds

    def prepare(self, stored: Path | None) -> Prepared:  # noqa: ARG002
        """Read and build the graph on the workers, and look up sources and targets. Return all that
        the run needs to know before it begins.

        ``stored``, the folder of a stored graph for other engines, has no effect: the graph of this
        engine is never stored. Raises InputError before anything is written.
        """
        settings = self._settings
        started = time.perf_counter()
        graph = self._cugraph.build()
        seconds = time.perf_counter() - started

        numbers, duplicates = choose_sources(graph, settings)
        question = read_question(graph, settings)
        request = Request.to_answer(question, settings)

        self._graph = graph
        self._plan = _Plan(self._cugraph, graph, request)
        prepared = Prepared(
            graph=graph,
            request=request,
            origin="",  # no stored graph is looked for
            folder=None,
            reused=False,
            numbers=numbers,
            names=get_names(graph, numbers),
            duplicates=duplicates,
            seconds={"read": seconds},
        )
        prepared.plan = self._plan
        return prepared

    def size(self, prepared: Prepared, batch_size: int | Literal["auto"]) -> Sizing:
        """Return the number of sources per batch, and the least memory that is needed per GPU, by
        purpose. These are estimates, as cuGraph does not report its own allocations.

        ``batch_size`` is that of the settings: "auto" has it chosen here.
        """
        graph = self._graph
        # sizes of the job: bytes of a search (``state_bytes``) and of a row, and rows per source
        load = make_load(prepared)

        # Estimates per GPU. A partition has the tail of each edge, too, of up to 8 bytes. cuGraph's
        # graph is a second copy. A certificate holds distances and masks of the edges of one
        # partition, a quarter of the worker's, which take about twice the bytes of these edges; and
        # distances and bitmaps of all vertices.
        edge_bytes = -(-(graph.nbytes + 8 * graph.n_edges) // self._cugraph.n_workers)
        memory = {"edges": edge_bytes, "cuGraph's graph": edge_bytes}
        memory["traversal"] = load.state_bytes
        memory["certificate"] = 0
        if load.certified:
            memory["certificate"] = edge_bytes // 2 + 16 * graph.n_vertices

        if batch_size == "auto":
            # so many that a part file has a size that is read well
            readable_size = sources_per_part(graph.n_vertices, load.rows_per_source, "cuda")
            size = min(load.n_sources, _SOURCES_PER_PART, readable_size)
        else:
            size = batch_size
        return Sizing(
            workers=self._cugraph.n_workers,
            threads=1,
            batch_size=size,
            n_batches=-(-load.n_sources // size),
            memory=memory | {"total": sum(memory.values())},
            output_bytes=load.n_sources * load.most_rows * load.row_bytes,
        )

    def choose(self, prepared: Prepared) -> None:
        """Do nothing, and ignore ``prepared``. Other engines choose a strategy here, and this one
        has only one.
        """

    def answer(self, run: BatchRun) -> None:
        """Compute and write all batches of a run, one after another, and then finish the run.

        Parts that were written before an error are complete. Raises ClusterError (a worker is lost)
        or OutputError.
        """
        started = time.perf_counter()
        run.announce({"start": self._start_seconds})
        with run.watch(self._cugraph.client):
            self._run_batches(run)
        run.finish({"start": self._start_seconds, "traverse": time.perf_counter() - started})

    def _run_batches(self, run: BatchRun) -> None:
        """Search from the sources of each batch, write its part file, and report the outcome."""
        traverser = _BatchTraverser(self._graph, self._plan, run.prepared.request)
        # Without edges cuGraph is not needed: it searches only from sources that an edge leaves.
        if self._graph.n_edges:
            self._cugraph.load(self._graph)
        for part, sources in run.batches.items():
            signals.check()  # an interrupt may have been caught by a library
            context = BatchContext()
            rows = traverser.answer_batch(part, sources, context)  # searches as it is written
            with writing_to(run.folder.path), context.clock("write"):
                summary = write_part(Store(run.folder.path), part, run.layout, rows)

            with signals.held():  # an interrupt waits until the results are in the manifest
                for source, reason in context.failed:
                    run.failed(part, [source], reason)
                if summary is not None:
                    context.finish(summary, worker=f"all {self._cugraph.n_workers}")
                    run.done(part, summary, frozenset(source for source, _ in context.failed))
