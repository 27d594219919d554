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
from typing import TYPE_CHECKING, Any, NamedTuple

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
from kepler_traverse.formats.files import DataFile, Where, find_files, reading

from ..cli.options import MG, Settings, options_of_files
from ..scheduling.cluster import cluster_for
from ..scheduling.errors import ClusterError
from ..scheduling.existing_cluster import refuse_unfit_workers
from ..worker.device_errors import is_out_of_memory
from . import edge_partition
from .partitioned_graph import Edges, PartitionedGraph

if TYPE_CHECKING:
    import pyarrow

_ENDINGS = {row.name: row.endings for row in FORMATS}["parquet"]
_BLOCK_BYTES = 256 * 2**20  # bytes of a file that a worker reads at once
_FIRST_POOL = 2**30  # initial bytes of the memory pool per GPU; it grows
_TICK = 1.0  # seconds between two looks at the workers while they work
# With --batch-deadline auto a search may take the larger of these seconds and this multiple of the
# slowest search so far.
_MIN_DEADLINE = 600.0
_TIMES_SLOWEST = 20.0


@contextlib.contextmanager
def open_cugraph(settings: Settings) -> Iterator[Cugraph]:
    """Yield cuGraph on a cluster of its own, or on the one that the settings name.

    Raises DeviceError (no GPU, or a package is missing) or ClusterError (workers do not start, or a
    worker is lost).
    """
    rapids = _import_rapids()
    is_external = settings.scheduler is not None
    n_workers = 0 if is_external else _n_workers(settings)
    with cluster_for(settings, "cuda", n_workers, _FIRST_POOL) as client, client.as_current():
        if is_external:
            refuse_unfit_workers(client, "cuda", [])
        rapids.comms.initialize(p2p=True)  # NCCL between all workers
        cugraph = Cugraph(settings, client, rapids)
        try:
            yield cugraph
        finally:
            # Closing NCCL needs all workers: with a lost one the driver would wait here forever.
            if cugraph.is_whole:
                rapids.comms.destroy()


def _import_rapids() -> SimpleNamespace:
    """Return the modules of RAPIDS that this engine calls; raise DeviceError if one is missing."""
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
    """Return the number of workers of an own cluster, one per GPU at most; raise InputError if the
    settings ask for more than there are GPUs.
    """
    n_gpus = cuda.cp.cuda.runtime.getDeviceCount()
    wanted = n_gpus if settings.workers == "auto" else settings.workers
    if wanted > n_gpus:
        raise InputError(
            f"--workers {wanted}: --engine {MG} needs a GPU for each, and this machine has {n_gpus}"
        )
    return wanted


def sentinel(dtype: np.dtype) -> Any:
    """Return the distance that cuGraph assigns to unreached vertices: the largest number of the
    type of distances.
    """
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return np.finfo(dtype).max


class Cugraph:
    """cuGraph on all workers of a cluster, for one graph.

    Calls that all workers take part in are supervised: they raise ClusterError if a worker is lost,
    or if they take too long.

    ``rapids`` has the modules of RAPIDS. Attributes: ``client`` is that of the cluster,
    ``n_workers`` the number of its workers, and ``is_whole`` whether all of them respond, as far as
    is known. A parameter ``kind`` of a method is the type of distances: int32 for hops, else that
    of the weights.
    """

    def __init__(self, settings: Settings, client: Client, rapids: SimpleNamespace) -> None:
        self.client = client
        self._settings = settings
        self._rapids = rapids
        self._workers = set(client.nthreads())
        self.n_workers = len(self._workers)
        self.is_whole = True
        self._graph = None  # of cuGraph, once ``load`` has built it
        self._slowest = 0.0  # seconds of the longest search so far

    def build(self) -> PartitionedGraph:
        """Read the edge list of the settings on the workers, build the graph, and return it."""
        return self._run_on_all(self._build, "reading the edge list")

    def load(self, graph: PartitionedGraph) -> None:
        """Build cuGraph's own graph of the edges on the workers, for ``search``."""
        self._run_on_all(lambda: self._load(graph), "building cuGraph's graph")

    def search(
        self, graph: PartitionedGraph, source: int, limit: float | None, kind: np.dtype
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Search from one source. Return vertex numbers and their distances, NumPy, from each
        worker.

        Unreached vertices have the distance ``sentinel``. ``source`` is a vertex number that an
        edge leaves. With a limit the result may or may not have vertices that are farther away.
        """
        started = time.monotonic()
        pieces = self._run_on_all(
            lambda: self._search(graph, source, limit, kind),
            f"the search from vertex number {source}",
        )
        self._slowest = max(self._slowest, time.monotonic() - started)
        return pieces

    def certify(
        self, graph: PartitionedGraph, source: int, distance: np.ndarray, limit: float | None
    ) -> Certificate:
        """Certify the distances of all vertices from one source, NumPy, on the workers: each checks
        them against its edges. ``Edges.certify`` says by which rules.
        """
        return self._run_on_all(
            lambda: graph.edges.certify(source, distance, limit), "the certificate"
        )

    def _build(self) -> PartitionedGraph:
        """Have the workers read the edge list, build the graph of it, and return the graph."""
        settings = self._settings
        edge_files = _find_parquet(settings)
        paths = edge_files.paths
        columns = edge_files.columns.roles
        files = paths[0]  # how errors name them
        if len(paths) > 1:
            files += f" and {len(paths) - 1} more"

        # Each worker reads blocks of the files, which become rows in its memory.
        block = min(_BLOCK_BYTES, max(self._rapids.dask.get_chunksize(path) for path in paths))
        frames = self._rapids.dask_cudf.read_parquet(
            paths, columns=list(columns.values()), index=False, blocksize=block
        )
        rows = [
            self.client.submit(edge_partition.arrays_of_frame, frame, columns, files, pure=False)
            for frame in self.client.compute(frames.to_delayed())
        ]
        edges = Edges(self.client, rows, "weight" in columns)
        del rows, frames  # ``edges`` forgets them once they are numbered
        graph = edges.build(edge_files.kinds, settings.directed, settings.weight_type, files)
        return replace(graph, report=graph.report.with_columns(edge_files.columns))

    def _load(self, graph: PartitionedGraph) -> None:
        """Build cuGraph's graph of the edges, on the workers that hold them."""
        frames = self._rapids.dask_cudf.from_delayed(graph.edges.frames())
        # directed, since an undirected edge is there in both directions already
        cugraphs_graph = self._rapids.cugraph.Graph(directed=True)
        cugraphs_graph.from_dask_cudf_edgelist(
            frames,
            source="src",
            destination="dst",
            edge_attr="weight" if graph.weights is not None else None,
            renumber=True,
            store_transposed=False,
        )
        self._graph = cugraphs_graph

    def _search(
        self, graph: PartitionedGraph, source: int, limit: float | None, kind: np.dtype
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Search from one source by hops if ``kind`` is an integer type, or by weights if it is a
        float type. Return what ``search`` does. If all weights are 0, hops are searched in their
        place.
        """
        if kind.kind == "i":
            return self._count_hops(graph, source, limit)
        if graph.edges.heaviest == 0:
            # With weights of 0 alone cuGraph's SSSP never leaves its first bucket. What hops reach
            # is at distance 0.
            pieces = []
            for vertices, hops in self._count_hops(graph, source, None):
                is_unreached = hops == sentinel(hops.dtype)
                distances = np.where(is_unreached, sentinel(kind), 0).astype(kind)
                pieces.append((vertices, distances))
            return pieces

        cutoff = None
        if limit is not None:
            last = as_distance(limit, kind)
            # The cutoff is the next larger float than the limit in the type of the weights
            # (``last``), since cuGraph omits vertices at the cutoff itself. A limit beyond all
            # floats is no limit.
            if np.isfinite(last):
                cutoff = float(np.nextafter(last, kind.type(np.inf)))
        return self._gather(self._rapids.dask.sssp(self._graph, source, cutoff=cutoff))

    def _count_hops(
        self, graph: PartitionedGraph, source: int, limit: float | None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Search by hops from one source. Return what ``search`` does.

        ``source`` and ``limit`` are those of ``search``; a ``limit`` of None is no limit.
        """
        depth = None  # no limit
        # cuGraph takes a depth of 0 for no limit. A limit of 0 is passed as 1; the caller removes
        # vertices that are farther. ``MAX_HOP_COUNT`` is the largest int32: no path has as many
        # hops.
        if limit is not None and limit < MAX_HOP_COUNT:
            depth = max(1, int(limit))
        begin = self._rapids.cudf.Series([source], dtype=graph.edges.index)
        return self._gather(self._rapids.dask.bfs(self._graph, begin, depth_limit=depth))

    def _gather(self, frame: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return vertex numbers and distances, NumPy, of each piece of cuGraph's result, a frame of
        dask_cudf. Each piece is converted on its worker.
        """
        pieces = self.client.compute(frame.to_delayed())
        return self.client.gather(
            [
                self.client.submit(edge_partition.results_of_frame, piece, pure=False)
                for piece in pieces
            ]
        )

    def _run_on_all(self, work: Any, what: str) -> Any:
        """Return the value of ``work()``, which needs all workers. If one of them is lost, raise
        ClusterError, since the others would wait for it forever. ``what`` names the work in errors.

        ``work`` runs in a thread while this one looks at the workers, because neither NCCL nor Dask
        times out. CapacityError: the memory of the GPUs is not sufficient.
        """
        outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # the thread needs the client, which cuGraph and Dask look up
        context = contextvars.copy_context()
        start(lambda: outcomes.put(_outcome(context, work)), "kepler-together")
        started = time.monotonic()

        # Until the thread has ended, some workers may wait for others. If an interrupt ends this
        # function meanwhile, the cluster counts as not whole.
        was_whole = self.is_whole
        self.is_whole = False
        while True:
            try:
                result, error = outcomes.get(timeout=_TICK)
                break
            except queue.Empty:
                self._refuse_lost_workers(what, time.monotonic() - started)

        # After an error of this package no worker waits for another.
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

    def _refuse_lost_workers(self, what: str, seconds: float) -> None:
        """Raise ClusterError if a worker was lost or restarted, or if the work, which has taken
        ``seconds`` so far, has passed its deadline. ``what`` names the work.
        """
        deadline = self._settings.batch_deadline
        # "auto": a multiple of the slowest search so far, and never less than ten minutes
        if deadline == "auto":
            deadline = max(_MIN_DEADLINE, _TIMES_SLOWEST * self._slowest)
            if self._graph is None:  # it is being built, which may take any time
                deadline = np.inf
        reason = None
        if self.client.status != "running" or set(self.client.nthreads()) != self._workers:
            reason = "a worker is lost"
        elif seconds > deadline:
            reason = f"no end after {deadline:g} seconds (--batch-deadline)"
        if reason is not None:
            raise ClusterError(f"{what}: {reason}; run again with --resume")


def _outcome(context: contextvars.Context, work: Any) -> tuple[object, BaseException | None]:
    """Call ``work`` in a context of context variables. Return its value and None, or None and the
    error that it raised.
    """
    try:
        return context.run(work), None
    except BaseException as error:  # an error of the other thread, which is raised again here
        return None, error


def _short(error: BaseException) -> str:
    """Return the message of an error in one line of bounded length."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:300] + "..."


class _EdgeFiles(NamedTuple):
    """The Parquet files of an edge list, without those that have no rows."""

    columns: EdgeColumns  # which columns are the ends and the weight of edges
    kinds: dict[str, np.dtype]  # types of the columns by role: "src", "dst" and perhaps "weight"
    paths: list[str]  # at least one


def _find_parquet(settings: Settings) -> _EdgeFiles:
    """Find the files of the edge list and return them. All of them are checked before a worker
    reads one: their format, and that their columns agree. InputError: a check fails.
    """
    import pyarrow.parquet

    options = options_of_files(settings)
    columns: list[EdgeColumns] = []
    kinds: dict[str, np.dtype] = {}
    files: list[DataFile] = []
    empty: list[DataFile] = []
    for file in find_files(settings.edges, set(_ENDINGS)):
        _refuse_unreadable(file, settings.format)
        with (
            reading(file, "Parquet"),
            file.open_random() as source,
            pyarrow.parquet.ParquetFile(source) as parquet,
        ):
            schema = parquet.schema_arrow
            if not parquet.metadata.num_rows:
                empty.append(file)
                continue
        files.append(file)
        columns.append(typed_columns(schema, options, file))
        columns[-1].agree_with(columns[0], file, files[0])
        types = _types_by_role(schema, columns[0].roles, file)
        if kinds and types != kinds:
            raise InputError(
                f"{file}: its columns are not of the types of {files[0].path}; "
                "cast either, so that they agree"
            )
        kinds = types
    if not files:
        raise no_rows(empty[0])  # find_files finds one file or raises
    return _EdgeFiles(columns_of_all(columns), kinds, [file.path for file in files])


def _refuse_unreadable(file: DataFile, format_: str) -> None:
    """Raise InputError for a file that workers cannot read: one that is not Parquet, or not a plain
    local file. ``format_`` is the format that the settings name.
    """
    # ``table`` names the format of a table with a log, such as Delta Lake; ``name`` is the URL of a
    # file that is not on this host.
    if file.table or (file.ending not in _ENDINGS and format_ != "parquet"):
        raise InputError(f"{file}: --engine {MG} reads Parquet files; convert the edge list")
    if not file.is_plain_path or file.compression or file.name != file.path:
        raise InputError(
            f"{file}: --engine {MG} reads plain local files that all workers see; copy it to one"
        )


def _types_by_role(
    schema: pyarrow.Schema, roles: dict[str, str], file: DataFile
) -> dict[str, np.dtype]:
    """Return the types of the columns of edges by role; raise InputError for a type that cuGraph
    cannot take.

    ``schema`` is that of ``file``, and ``roles`` has the names of its columns by role.
    """
    from pyarrow import types

    # Names of folders, as zone=North, stand for columns that the files do not have.
    inside = set(roles.values()) & set(file.partition_names)
    if inside:
        raise InputError(
            f"{file}: --engine {MG} reads no columns of folder names, as "
            f"{inside.pop()!r} is one; write it out"
        )
    kinds = {}
    for role, name in roles.items():
        kind = schema.field(name).type
        is_right = types.is_integer(kind)
        rule = f"--engine {MG} accepts only integer ids"
        if role == "weight":
            is_right |= types.is_float32(kind) or types.is_float64(kind)
            rule = "weights must be integers, float32 or float64"
        if not is_right:
            why = f"has type {kind}; {rule}, cast or number them first"
            raise Where(file, role, name).error(why)
        kinds[role] = np.dtype(kind.to_pandas_dtype())
    return kinds
