"""All RAPIDS calls of the engine ``cugraph-mg``, on a cluster with one worker per GPU, and the
supervision of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import queue
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from distributed import Client, KilledWorker

from kepler_traverse import cuda
from kepler_traverse._arrays import MAX_HOP_COUNT, as_distance
from kepler_traverse._uninterrupted import start
from kepler_traverse.certificate import Certificate
from kepler_traverse.errors import (
    CapacityError,
    DeviceError,
    InputError,
    KeplerError,
    how_to_install,
)
from kepler_traverse.formats import FORMATS
from kepler_traverse.formats.arrow import typed_columns
from kepler_traverse.formats.edge_list import EdgeColumns, columns_of_all, no_rows
from kepler_traverse.formats.files import Where, find_files, reading

from ..cli.options import MG, Settings, options_of_files
from ..scheduling.cluster import cluster_for
from ..scheduling.errors import ClusterError
from ..scheduling.existing_cluster import refuse_unfit_workers
from ..worker.device_errors import is_out_of_memory
from . import edge_partition
from .partitioned_graph import Edges, PartitionedGraph

_BLOCK_BYTES = 256 * 2**20  # bytes of a file that a worker reads at once
_FIRST_POOL = 2**30  # initial bytes of the memory pool per GPU; it grows
_TICK = 1.0  # seconds
# of --batch-deadline auto: seconds, and a multiple of the slowest source so far
_MIN_DEADLINE = 600.0
_TIMES_SLOWEST = 20.0


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[Cugraph]:
    """Yield cuGraph on a cluster of its own, or on the one that the settings name.

    Raises DeviceError (no GPU, or a package is missing) or ClusterError (workers do not start, or a
    worker is lost).
    """
    rapids = _rapids()
    is_external = settings.scheduler is not None
    n_workers = 0 if is_external else _n_workers(settings)
    with cluster_for(settings, "cuda", n_workers, _FIRST_POOL) as client, client.as_current():
        if is_external:
            refuse_unfit_workers(client, "cuda", [])
        rapids.comms.initialize(p2p=True)
        together = Cugraph(settings, client, rapids)
        try:
            yield together
        finally:
            # else the driver would wait here for a worker that waits for a lost one
            if together.is_whole:
                rapids.comms.destroy()


def _rapids() -> SimpleNamespace:
    """Return the modules of RAPIDS that this engine calls."""
    try:
        import cudf
        import cugraph
        import cugraph.dask
        import dask_cuda  # noqa: F401
        import dask_cudf
        from cugraph.dask.comms import comms
    except ImportError as error:
        raise DeviceError(
            f"--engine {MG} needs cuGraph with Dask, and {error.name or error} is not installed: "
            f"{how_to_install('mg')} on a machine with an NVIDIA GPU"
        ) from None
    cuda.require()
    return SimpleNamespace(
        cudf=cudf, cugraph=cugraph, dask=cugraph.dask, dask_cudf=dask_cudf, comms=comms
    )


def _n_workers(settings: Settings) -> int:
    n_gpus = cuda.cp.cuda.runtime.getDeviceCount()
    if settings.workers == "auto":
        wanted = n_gpus
    else:
        wanted = settings.workers
    if wanted > n_gpus:
        raise InputError(
            f"--workers {wanted}: --engine {MG} needs a GPU for each, and this machine has {n_gpus}"
        )
    return wanted


def sentinel(kind: np.dtype) -> Any:
    """Return the distance that cuGraph assigns to unreached vertices."""
    return (np.iinfo if kind.kind in "iu" else np.finfo)(kind).max


class Cugraph:
    """cuGraph on all workers of a cluster, for one graph; ``is_whole``: whether all of them
    respond, as far as is known.
    """

    def __init__(self, settings: Settings, client: Client, rapids: SimpleNamespace) -> None:
        self.client = client
        self._settings = settings
        self._rapids = rapids
        self._workers = set(client.nthreads())
        self.n_workers = len(self._workers)
        self.is_whole = True
        self._graph = None
        self._slowest = 0.0

    def build(self) -> PartitionedGraph:
        """Read the edge list of the settings on the workers and build the graph."""
        return self.together(self._built, "reading the edge list")

    def load(self, graph: PartitionedGraph) -> None:
        """Load the edges into cuGraph."""
        self.together(lambda: self._load(graph), "building cuGraph's graph")

    def search(
        self, graph: PartitionedGraph, source: int, limit: float | None, kind: np.dtype
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return vertices and distances from each worker; unreached vertices have cuGraph's
        ``sentinel``.

        ``source`` has an edge. With a limit the result may or may not have vertices farther away.
        ``kind``: type of the distances: int32 for hops, else the type of the weights.
        """
        started = time.monotonic()
        answers = self.together(
            lambda: self._searched(graph, source, limit, kind),
            f"the search from vertex number {source}",
        )
        self._slowest = max(self._slowest, time.monotonic() - started)
        return answers

    def certify(
        self, graph: PartitionedGraph, source: int, distance: np.ndarray, limit: float | None
    ) -> Certificate:
        """Certify distances on the workers; see ``Edges.certify``."""
        return self.together(
            lambda: graph.edges.certify(source, distance, limit), "the certificate"
        )

    def _built(self) -> PartitionedGraph:
        settings = self._settings
        read, kinds, paths = _parquet_files(settings)
        columns = read.roles
        if len(paths) == 1:
            files = paths[0]
        else:
            files = f"{paths[0]} and {len(paths) - 1} more"
        block = min(_BLOCK_BYTES, max(self._rapids.dask.get_chunksize(path) for path in paths))
        frames = self._rapids.dask_cudf.read_parquet(
            paths, columns=list(columns.values()), index=False, blocksize=block
        )
        rows = [
            self.client.submit(edge_partition.rows_in, frame, columns, files, pure=False)
            for frame in self.client.compute(frames.to_delayed())
        ]
        edges = Edges(self.client, rows, "weight" in columns)
        del rows, frames
        graph = edges.build(kinds, settings.directed, settings.weight_type, files)
        return replace(graph, report=graph.report.with_columns(read))

    def _load(self, graph: PartitionedGraph) -> None:
        frames = self._rapids.dask_cudf.from_delayed(graph.edges.frames())
        # with both directions of each edge: see partitioned_graph
        loaded = self._rapids.cugraph.Graph(directed=True)
        loaded.from_dask_cudf_edgelist(
            frames,
            source="src",
            destination="dst",
            edge_attr="weight" if graph.weights is not None else None,
            renumber=True,
            store_transposed=False,
        )
        self._graph = loaded

    def _searched(
        self, graph: PartitionedGraph, source: int, limit: float | None, kind: np.dtype
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        all_zero = kind.kind == "f" and graph.edges.heaviest == 0
        # with weights of 0 alone cuGraph's SSSP never leaves its first bucket
        if kind.kind == "i" or all_zero:
            index = graph.edges.index
            # cuGraph takes a depth of 0 for no limit. A limit of 0 is passed as 1; farther vertices
            # are removed later.
            if limit is None or all_zero or limit >= MAX_HOP_COUNT:
                depth = None
            else:
                depth = max(1, int(limit))
            start = self._rapids.cudf.Series([source], dtype=index)
            frame = self._rapids.dask.bfs(self._graph, start, depth_limit=depth)
        else:
            cutoff = None
            # cuGraph omits vertices at the cutoff itself
            if limit is not None and np.isfinite(as_distance(limit, kind)):
                cutoff = float(np.nextafter(as_distance(limit, kind), kind.type(np.inf)))
            frame = self._rapids.dask.sssp(self._graph, source, cutoff=cutoff)
        pieces = self.client.compute(frame.to_delayed())
        answers = self.client.gather(
            [self.client.submit(edge_partition.found_in, piece, pure=False) for piece in pieces]
        )
        if all_zero:
            return [
                (v, np.where(d == sentinel(d.dtype), np.finfo(kind).max, 0).astype(kind))
                for v, d in answers
            ]
        return answers

    def together(self, work: Any, what: str) -> Any:
        """Return the value of ``work()``, which needs all workers. If one is lost, raise; the
        others would wait forever.

        ``work`` runs in a thread, because neither NCCL nor Dask times out.
        """
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # the thread needs the client, which cuGraph and Dask look up
        context = contextvars.copy_context()
        start(lambda: done.put(_outcome(context, work)), "kepler-together")
        started = time.monotonic()
        # until the thread has ended; an interrupt may be raised here
        was_whole = self.is_whole
        self.is_whole = False
        while True:
            try:
                result, error = done.get(timeout=_TICK)
                break
            except queue.Empty:
                self._look(what, time.monotonic() - started)
        if error is None or isinstance(error, KeplerError):
            self.is_whole = was_whole
            if error is not None:
                raise error
            return result
        if is_out_of_memory(error):
            raise CapacityError(
                f"{what}: the memory of the {self.n_workers} GPUs is not "
                f"sufficient ({_short(error)}); use more GPUs"
            ) from error
        if isinstance(error, KilledWorker):
            raise ClusterError(f"{what}: a worker died; run again with --resume") from error
        raise ClusterError(
            f"{what}: {type(error).__name__}: {_short(error)}; run again with --resume"
        ) from error

    def _look(self, what: str, seconds: float) -> None:
        """Raise ClusterError if a worker was lost or restarted, or if the search exceeds its
        deadline.
        """
        deadline = self._settings.batch_deadline
        if deadline == "auto":
            if self._graph is not None:
                deadline = max(_MIN_DEADLINE, _TIMES_SLOWEST * self._slowest)
            else:
                deadline = np.inf
        reason = None
        if self.client.status != "running" or set(self.client.nthreads()) != self._workers:
            reason = "a worker is lost"
        elif seconds > deadline:
            reason = f"no end after {deadline:g} seconds (--batch-deadline)"
        if reason is not None:
            raise ClusterError(f"{what}: {reason}; run again with --resume")


def _outcome(context: contextvars.Context, work: Any) -> tuple[object, BaseException | None]:
    try:
        return context.run(work), None
    except BaseException as error:  # an error of the other thread, which is raised again here
        return None, error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:300] + "..."


def _parquet_files(settings: Settings) -> tuple[EdgeColumns, dict[str, np.dtype], list[str]]:
    """Return the types of the columns by role, and the paths; checks all files before a worker
    reads one.
    """
    import pyarrow
    import pyarrow.parquet
    import pyarrow.types as types

    endings = {row.name: row.endings for row in FORMATS}["parquet"]
    options = options_of_files(settings)
    columns: list[EdgeColumns] = []
    paths: list[str] = []
    kinds: dict[str, np.dtype] | None = None
    first = first_empty = None
    for file in find_files(settings.edges, set(endings)):
        if file.table or (file.ending not in endings and settings.format != "parquet"):
            raise InputError(f"{file}: --engine {MG} reads Parquet files; convert the edge list")
        if not file.is_plain_path or file.compression or file.name != file.path:
            raise InputError(
                f"{file}: --engine {MG} reads plain local files that "
                "all workers see; copy it to one"
            )
        with (
            reading(file, "Parquet"),
            file.open_random() as source,
            pyarrow.parquet.ParquetFile(source) as parquet,
        ):
            schema = parquet.schema_arrow
            if not parquet.metadata.num_rows:
                first_empty = first_empty or file
                continue
        columns.append(typed_columns(schema, options, file))
        first = first or file
        columns[-1].agree_with(columns[0], file, first)
        inside = set(columns[0].roles.values()) & set(file.partition_names)
        if inside:
            raise InputError(
                f"{file}: --engine {MG} reads no columns of folder names, as "
                f"{inside.pop()!r} is one; write it out"
            )
        own = {}
        for role, name in columns[0].roles.items():
            kind = schema.field(name).type
            if not (
                types.is_integer(kind)
                or (role == "weight" and kind in (pyarrow.float32(), pyarrow.float64()))
            ):
                if role == "weight":
                    what = "weights must be integers, float32 or float64"
                else:
                    what = f"--engine {MG} accepts only integer ids"
                raise Where(file, role, name).error(
                    f"has type {kind}; {what}, cast or number them first"
                )
            own[role] = np.dtype(kind.to_pandas_dtype())
        if kinds is not None and own != kinds:
            raise InputError(
                f"{file}: its columns are not of the types of {paths[0]}; "
                "cast either, so that they agree"
            )
        kinds = own
        paths.append(file.path)
    if kinds is None:
        assert first_empty is not None  # find_files finds one file or raises
        raise no_rows(first_empty)
    return columns_of_all(columns), kinds, paths
