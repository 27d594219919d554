"""Estimate the memory of a run and choose workers and batch size: pure functions of sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kepler_traverse.errors import CapacityError, several
from kepler_traverse.runtime.display import in_units

from ..output.schemas import ROWS_PER_GROUP, ROWS_PER_PART, SOURCES_PER_PART
from ..worker.writer_pool import bytes_of_writer, writers_within

# Maximum of vertices times sources per part, for results with few rows. It keeps a batch at a
# minute or two, so that a slow batch is not mistaken for a hung one.
VERTICES_PER_PART = {"cpu": 2**28, "cuda": 2**32}
# Distances that a GPU computes at once, if parts hold fewer. A GPU that searches from few sources
# is mostly idle.
DISTANCES_AT_ONCE = 2**28
BATCHES_PER_WORKER = 3  # so that the last batches of a run end at about the same time
# How much longer than with equal shares the worker that ends last may search, in whole groups.
_UNEVEN = 1.1
# Runs that are estimated to take less are run by the driver: workers take seconds to start, and
# on a CPU it takes them from the searches, which use all cores here, too. With one worker there is
# nothing to gain but a dashboard and a second process. On several GPUs the searches take a share of
# their time on one, after the start.
_ALONE_SECONDS = 60.0
_CPU_SECONDS = 20.0
# seconds until worker processes search; on two H200 5.9 from the command to the first search
START_SECONDS = {"cpu": 6.0, "cuda": 6.0}
_SECONDS_PER_ROW = 5e-8  # of one core, to encode and write a row
# of a graph, for one search whose strategy has no cost model
_SECONDS_PER_BYTE = {"cpu": 2e-9, "cuda": 1e-10}
# per vertex: a tile of 64 bytes for a block of sources, and at most 8 beside it
_CERTIFICATE_BYTES = 72
PROCESS_BYTES = 250 * 2**20  # Python, NumPy, pyarrow and compiled kernels of one worker


@dataclass(frozen=True, kw_only=True)
class Load:
    """The sizes of a job."""

    n_vertices: int  # of the graph
    n_sources: int  # of the run, or of one shard of it
    graph_bytes: int  # of the graph, which all workers of a host share
    reverse_bytes: int  # of its reverse; 0 unless the strategy or the certificate reads it
    # Bytes of one plan in addition to the graph, and of the statistics of its results.
    state_bytes: int
    row_bytes: int  # bytes per row of the results, before compression
    rows_per_source: int  # estimate; of all sources together if ``one_search``
    most_rows: int  # maximum of the same
    certified: bool  # whether searches are certified
    one_search: bool = False  # one search serves all sources: one worker, one part
    adds_up: bool = False  # ``most_rows`` are those of a part, whose sources are added up
    # Sources that a worker searches together. A smaller group takes about the same time, so batches
    # should be whole groups. 1 if this does not matter.
    group: int = 1
    visited: int | None = None  # vertices that a search visits, where it ends early; None for all
    is_sorted: bool = False  # parts are sorted, for which all rows of a part are held at a time
    # Sources whose results fill a part, if that was measured; None to estimate it from the rows.
    per_part: int | None = None
    pinned_bytes: int = 0  # edges in host memory, of each worker with a GPU

    @property
    def n_searches(self) -> int:
        """Number of searches, each of which makes rows of its own."""
        return 1 if self.one_search else self.n_sources


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The sizes of a host."""

    device: str  # "cpu" or "cuda"
    cores: int  # that this process may use
    n_gpus: int  # 0 on a CPU
    available: int  # free memory in bytes: of one GPU if ``device`` is "cuda", else of the host
    host: int = sys.maxsize  # free memory of the host in bytes, where GPUs search


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """Workers, batches and memory of a run."""

    workers: int  # 1 if the driver runs the batches itself
    threads: int  # per worker, for its searches
    batch_size: int  # sources per part
    n_batches: int  # of all shards together, once ``size_run`` has returned
    # bytes by item, the total last: for the whole host on a CPU, per GPU otherwise
    memory: dict[str, int]
    # maximum size of the output before compression, as if every source reached every vertex
    output_bytes: int
    # Threads per worker that write parts. With GPUs the cores of the host are free for this; on a
    # CPU none are.
    writers: int = 1
    # Bytes of the host's memory for what these threads hold, of all workers; it does not depend on
    # the size of parts.
    writing_bytes: int = 0
    shared_bytes: int = 0  # of the graph, which all workers of a host share
    worker_bytes: int = 0  # of each worker in the memory of its host
    # Strategies for which each worker has memory, the planned one first; empty if there is nothing
    # to choose.
    strategies: tuple[str, ...] = ()
    per_part: int | None = None  # sources whose results fill a part, if that was measured
    # Whether the driver runs the batches itself, with all threads, and without worker processes.
    in_process: bool = False


def size_up(
    load: Load,
    machine: Machine,
    workers: int | Literal["auto"] = "auto",
    batch_size: int | Literal["auto"] = "auto",
) -> Sizing:
    """Choose workers and batch size, and add up the memory.

    ``load``: sizes of the job. ``machine``: sizes of the host. ``workers`` and ``batch_size``
    (sources per part): what the user has set, or "auto".

    Raises CapacityError: the run does not fit; the message has the numbers.
    """
    if load.one_search:
        workers = 1
        batch_size = load.n_sources

    # Workers, and the memory that they take.
    worker_memory = _memory_of_worker(load, batch_size)
    n_workers = _n_workers(load, machine, worker_memory) if workers == "auto" else workers
    memory = _memory_of_run(load, machine.device, worker_memory, n_workers)
    if memory["total"] > machine.available:
        raise _too_large(memory, machine, n_workers)

    # Batches, and the threads that write them.
    if batch_size == "auto":
        most = most_per_part(load, machine.device, n_workers)
        batch_size = _in_whole_groups(load, n_workers, most)
    n_batches = -(-load.n_sources // batch_size)
    writers = _n_writers(load, machine, n_workers)
    # Where rows come only at the end, of the one search or of the sum over the sources of a part,
    # workers start no threads, whatever ``writers`` is. The check above leaves writing out: with a
    # GPU it is about the memory of the GPU, and ``_n_writers`` keeps the threads within half of the
    # host's. On a CPU the only writer is the thread that searches.
    writing_bytes = 0
    if writers > 1 and not (load.one_search or load.adds_up):
        writing_bytes = n_workers * writers * bytes_of_writer(load.n_vertices)
    return Sizing(
        workers=n_workers,
        threads=1 if machine.device == "cuda" else max(1, machine.cores // n_workers),
        batch_size=batch_size,
        writers=writers,
        writing_bytes=writing_bytes,
        n_batches=n_batches,
        memory=memory,
        # Sums are rows of a part; other rows are those of a search.
        output_bytes=(n_batches if load.adds_up else load.n_searches)
        * load.most_rows
        * load.row_bytes,
        per_part=load.per_part,
        shared_bytes=load.graph_bytes,
        # A worker with a GPU holds its traversals in GPU memory, not in the memory of the host.
        worker_bytes=PROCESS_BYTES
        + load.pinned_bytes
        + (
            worker_memory["part buffer"]
            if machine.device == "cuda"
            else sum(worker_memory.values())
        ),
    )


def _too_large(memory: dict[str, int], machine: Machine, n_workers: int) -> CapacityError:
    """Return the error for a run that does not fit, which lists the memory that it needs.

    ``memory``: bytes by item, with their ``total``. ``machine``: what is free. ``n_workers``: their
    number, for advice.
    """
    items = ", ".join(
        f"{name} {in_units(size)}" for name, size in memory.items() if name != "total"
    )
    remedy = "a larger machine or a smaller graph"
    where = f"with {several(n_workers, 'worker')}"
    if machine.device == "cuda":
        where = "on each GPU"
    elif n_workers > 1:
        remedy = "fewer --workers"
    return CapacityError(
        f"this run needs {in_units(memory['total'])} of memory {where} ({items}), "
        f"and {in_units(machine.available)} are free; take {remedy}"
    )


def runs_in_this_process(
    load: Load, sizing: Sizing, machine: Machine, search_seconds: float | None
) -> bool:
    """Whether this process should run the batches itself, because worker processes would not make
    up for the time that they take to start.

    ``load``, ``sizing``, ``machine``: the sizing of the run with worker processes.
    ``search_seconds``: estimate for all searches in one process; None if not known.
    """
    if search_seconds is None:
        search_seconds = _SECONDS_PER_BYTE[machine.device] * load.graph_bytes * load.n_searches
    # A certificate reads each edge once, as a search does.
    search_seconds *= 1 + load.certified
    writers = machine.cores if machine.device == "cuda" else 1
    write_seconds = _SECONDS_PER_ROW * load.rows_per_source * load.n_searches / writers
    if sizing.workers == 1:
        return search_seconds + write_seconds < _ALONE_SECONDS
    if machine.device == "cpu":
        return search_seconds + write_seconds < _CPU_SECONDS
    # Threads write while a GPU searches. The cores of the host write for all GPUs, so that further
    # ones shorten the searches alone.
    seconds_here = max(search_seconds, write_seconds)
    seconds_of_workers = START_SECONDS["cuda"] + max(search_seconds / sizing.workers, write_seconds)
    return seconds_here <= seconds_of_workers


def _n_workers(load: Load, machine: Machine, worker_memory: dict[str, int]) -> int:
    """Return the number of workers: one per GPU, or one per core as far as memory allows; at most
    one per source.

    ``worker_memory``: bytes of a worker by item.
    """
    if machine.device == "cuda":
        return max(1, min(machine.n_gpus, load.n_sources))
    spare = machine.available - load.graph_bytes
    by_memory = spare // (sum(worker_memory.values()) + PROCESS_BYTES)
    return max(1, min(machine.cores, load.n_sources, by_memory))


def _n_writers(load: Load, machine: Machine, n_workers: int) -> int:
    """Return the number of threads per worker that write parts.

    On a CPU it is 1, since the cores search. With GPUs it is a share of all cores, as far as half
    of the memory of the host suffices.
    """
    if machine.device == "cpu":
        return 1
    return writers_within(
        load.n_vertices, machine.cores // n_workers, machine.host // 2 // n_workers
    )


def with_capacity(
    load: Load, states: Mapping[str, int], size: Callable[[Load], Sizing], chosen: str
) -> tuple[Sizing, list[str]]:
    """Size a run so that its workers have memory for further strategies than the chosen one.

    Parameters
    ----------
    load : Load
        Sizes of the job, with the memory of the chosen strategy (``state_bytes``).
    states : mapping of str to int
        The memory in bytes of each strategy, by its name.
    size : callable
        ``size(load)`` returns the sizing of a load, or raises CapacityError.
    chosen : str
        Name of the chosen strategy.

    Returns
    -------
    sizing : Sizing
        Its workers and batch size are those for the chosen strategy alone.
    names : list of str
        The strategies that fit without changing these, the chosen one first.
    """
    sizing = size(load)
    names = [chosen]
    # By ascending memory, so that the first one that does not fit ends the loop.
    for name, state in sorted(states.items(), key=lambda entry: entry[1]):
        if name == chosen:
            continue
        if state > load.state_bytes:
            try:
                wider = size(replace(load, state_bytes=state))
            except CapacityError:
                break  # the remaining strategies need more
            if (wider.workers, wider.batch_size) != (sizing.workers, sizing.batch_size):
                break
            sizing = wider
        names.append(name)
    return sizing, names


def most_per_part(load: Load, device: str, n_workers: int = 1) -> int:
    """Return the maximum number of sources per part, by the sizes of the job (``load``), and so
    that each worker gets several parts.
    """
    by_workers = -(-load.n_sources // (BATCHES_PER_WORKER * n_workers))
    if by_workers < load.group and _shares_whole_groups(load, n_workers):
        by_workers = load.group
    visited = load.n_vertices if load.visited is None else load.visited
    return min(by_workers, sources_per_part(visited, load.rows_per_source, device, load.per_part))


def _shares_whole_groups(load: Load, n_workers: int) -> bool:
    """Return whether each of several workers gets two or more whole groups, and about as many
    sources as the others.

    A group is the sources that are searched together (``load.group``). A source of a smaller one
    takes longer: in betweenness of USA-road-NE on a GPU by a quarter, for half of the sources.
    """
    if n_workers == 1:
        return False
    n_groups = -(-load.n_sources // load.group)
    groups_of_busiest = -(-n_groups // n_workers)
    equal_share = load.n_sources / n_workers
    return groups_of_busiest > 1 and groups_of_busiest * load.group <= _UNEVEN * equal_share


def _in_whole_groups(load: Load, workers: int, most: int) -> int:
    """Return the sources per batch: at most ``most``, in whole groups, chosen so that workers end
    at the same time.

    A group is the sources that are searched together. ``workers``: their number.
    """
    largest = most // load.group  # groups per batch
    if load.group == 1 or not largest:
        return most
    n_groups = -(-load.n_sources // load.group)

    def groups_of_busiest_worker(groups_per_batch: int) -> int:
        """Return how many groups the worker that ends last searches, if a batch has so many."""
        n_batches, last_groups = divmod(n_groups, groups_per_batch)  # whole ones, and one smaller
        batches_each, n_left = divmod(n_batches, workers)
        with_further_batch = groups_per_batch * (batches_each + (n_left > 0))
        with_smaller_batch = groups_per_batch * batches_each + last_groups
        return max(with_further_batch, with_smaller_batch)

    # At least half of the maximum, because smaller parts mean more files. Ties go to the larger
    # size.
    return load.group * min(range(largest, largest // 2, -1), key=groups_of_busiest_worker)


def sources_per_part(
    n_vertices: int, rows_per_source: int, device: str, per_part: int | None = None
) -> int:
    """Return the maximum number of sources per part for ``--batch-size auto``.

    ``n_vertices``: number of vertices that a search visits. ``rows_per_source``: estimate.
    ``per_part``: sources that fill a part file, if that was measured; it takes the place of the
    estimate by rows. ``SOURCES_PER_PART`` is a bound for results with few rows of tiny graphs,
    since the footer of a part file lists its sources.
    """
    by_rows = per_part or ROWS_PER_PART // max(rows_per_source, 1)
    by_vertices = VERTICES_PER_PART[device] // max(n_vertices, 1)
    return max(1, min(by_rows, by_vertices, SOURCES_PER_PART))


def _memory_of_worker(load: Load, batch_size: int | Literal["auto"]) -> dict[str, int]:
    """Return the bytes that each worker takes for itself, by the names of items in messages.

    ``batch_size``: sources per part. With "auto" they are ``load.per_part``, or if that is None
    (not measured) as many as make about ``ROWS_PER_PART`` rows.
    """
    # Rows that are held at a time: those of a row group. If parts are sorted, those of a whole
    # part, twice, as it is before and after sorting.
    most_held = ROWS_PER_GROUP
    if load.is_sorted:
        sources = load.per_part if batch_size == "auto" else batch_size
        most_held = 2 * (ROWS_PER_PART if sources is None else load.most_rows * sources)
    # No more than the estimate for the whole run, a product. But no less than the maximum of one
    # source, whose rows are held together.
    rows = max(load.most_rows, min(most_held, load.rows_per_source * load.n_searches))
    return {
        "reverse graph": load.reverse_bytes,
        "traversal": load.state_bytes,
        "certificate": _CERTIFICATE_BYTES * load.n_vertices if load.certified else 0,
        # three times: the columns, the Arrow table and the encoded pages
        "part buffer": 3 * rows * load.row_bytes,
    }


def _memory_of_run(
    load: Load, device: str, worker_memory: dict[str, int], workers: int
) -> dict[str, int]:
    """Return the bytes of a run by item, with their ``total``: of one GPU, or of all workers of a
    host.

    ``device``: "cpu" or "cuda". ``worker_memory``: bytes of a worker by item. ``workers``: their
    number.
    """
    if device == "cuda":
        memory = {"graph": load.graph_bytes, **worker_memory}
    else:
        memory = {"graph, shared by all workers": load.graph_bytes}
        memory |= {f"{name}, {workers} x": workers * size for name, size in worker_memory.items()}
        memory[f"processes, {workers} x"] = workers * PROCESS_BYTES
    return memory | {"total": sum(memory.values())}
