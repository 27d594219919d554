"""What the workers of a cluster that exists already must have: this version of the package, memory,
the folders, the device.

All of it but the folders is asked before anything is written, and of each worker that joins later.
"""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from distributed import Client
from distributed.system import MEMORY_LIMIT

from kepler_traverse import cuda
from kepler_traverse.errors import CapacityError, InputError
from kepler_traverse.runtime.display import in_units
from kepler_traverse.runtime.object_stores import cache_folder, find_object

from ..cli.options import Settings
from ..cli.terminal import say
from ..output.run_folder import MANIFEST
from .cluster import existing_client, pinned_settings
from .errors import ClusterError
from .package_version import version_here

# An expression, and not a function of this package, which a worker without the package could not
# unpickle.
_ASK_VERSION = f"__import__({__name__!r}, fromlist=['version_here']).version_here()"


@dataclass(frozen=True, kw_only=True)
class WorkerMemory:
    """The memory that a worker may take."""

    host: str  # name of its host, whose workers share the free memory
    limit: int  # its ``--memory-limit`` in bytes; 0 if it has none
    usable: int  # bytes of it until Dask pauses or ends the worker; 0 if it does neither
    available: int  # bytes that are free on its host


def survey(settings: Settings, device: str) -> dict[str, WorkerMemory]:
    """Ask the workers of the scheduler that the settings name how much memory they may take; return
    the answers by the workers' addresses.

    ``device``: "cpu" or "cuda", which each worker must have.

    Raises InputError: no scheduler answers, it has no workers, or one of them has another version
    of this package, or no GPU.
    """
    with pinned_settings(), existing_client(settings) as client:
        refuse_unfit_workers(client, device, [])
        answers = client.run(_measure_memory, on_error="return")
    # A worker that has left answers by an error.
    memories = {
        worker: answer for worker, answer in answers.items() if isinstance(answer, WorkerMemory)
    }
    if not memories:
        raise InputError(
            "the workers of the Dask scheduler have left; have an adaptive "
            "cluster keep idle ones for longer"
        )
    return memories


def check_existing(settings: Settings, device: str, folders: list[Path], url: str = "") -> None:
    """Raise InputError unless all workers of the scheduler that the settings name can run this job.

    ``device``: "cpu" or "cuda". ``folders``: absolute ones, which exist here and which all workers
    must see. ``url``: the object store of the run; "" if it has none.
    """
    with pinned_settings(), existing_client(settings) as client:
        refuse_unfit_workers(client, device, folders, url)
        answers = client.run(_can_deadlock, on_error="return")
        # ``is True``, since an answer may be an error, which is true as well.
        if any(answer is True for answer in answers.values()):
            say(
                "note: Dask's profiler runs in the workers, and with Python 3.11 it can stop one forever; "
                "start them with DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False"
            )


def refuse_unfit_workers(client: Client, device: str, folders: list[Path], url: str = "") -> None:
    """Raise InputError unless all workers can run this job: they have this version of the package,
    see its folders or its object store, and have its device.

    ``device``: "cpu" or "cuda". ``folders`` are absolute and exist here. ``url``: the object store
    of the run, which has its manifest already; "" if the run is in none.
    """
    _refuse(_other_versions(client))

    # A worker sees a folder if it reads there what is written here.
    token = uuid.uuid4().hex
    name = f".shared.{token}.tmp"
    try:
        for folder in folders:
            _write_token(folder / name, token)
        problems = client.run(_unfitness, folders, name, token, device, url, on_error="return")
    finally:
        for folder in folders:
            (folder / name).unlink(missing_ok=True)
    _refuse(problems)


def _write_token(path: Path, token: str) -> None:
    """Write the file ``path``; raise InputError if its folder cannot be written to."""
    try:
        path.write_text(token)
    except OSError as error:
        raise InputError(
            f"{path.parent}: this folder cannot be written to: {error.strerror}"
        ) from None


def refuse_small_workers(memories: dict[str, WorkerMemory], shared: int, own: int) -> None:
    """Raise CapacityError unless every worker may take the memory that the plan needs.

    ``memories``: what each worker may take, by its address. ``shared``: bytes of the graph, which
    workers of a host share, and which Dask counts for each. ``own``: bytes that each worker takes
    for itself.
    """
    problems = {
        worker: _memory_problem(memory, shared + own) for worker, memory in memories.items()
    }
    _refuse(problems, CapacityError)

    # All workers of a host together must fit into its free memory, the graph once.
    available_by_host = defaultdict(list)  # as each worker of a host has measured it
    for memory in memories.values():
        available_by_host[memory.host].append(memory.available)
    for host, available in available_by_host.items():
        needed = shared + len(available) * own
        if needed > max(available):
            raise CapacityError(
                f"host {host} has {in_units(max(available))} of free memory, and its {len(available)} workers need "
                f"{in_units(needed)} for this run (graph {in_units(shared)}, each worker {in_units(own)}); "
                "start fewer workers there"
            )


def check_newcomers(client: Client, workers: list[str], needed: int, url: str = "") -> None:
    """Raise ClusterError unless workers that have joined can take part in a run.

    A worker that has left again is no problem. ``workers``: their addresses. ``needed``: bytes that
    each must be able to take. ``url``: the object store of the run, which each must be able to
    read; "" if it has none.
    """

    def ask_memory(workers: list[str]) -> dict[str, object]:
        """Return by worker why it may not take the memory, None if it may, or an error if it could
        not be asked.
        """
        answers = client.run(_measure_memory, workers=workers, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, WorkerMemory):
                answers[worker] = _memory_problem(answer, needed)
        return answers

    def ask_store(workers: list[str]) -> dict[str, object]:
        """Return by worker why it cannot use the store of the run, None if it can, or an error; an
        empty dict if the run is in no store.
        """
        if not url:
            return {}
        return client.run(_unfitness, [], "", "", "cpu", url, workers=workers, on_error="return")

    # The version first: a worker of another one may not know the other questions.
    for ask in (partial(_other_versions, client), ask_memory, ask_store):
        answers = ask(workers) if workers else {}
        problems = _problems(answers)
        if problems:
            worker, problem = min(problems.items())
            raise ClusterError(
                f"worker {worker} has joined and cannot run this job: "
                f"{problem}. Then run again with --resume"
            )
        # Workers that have left meanwhile (an OSError) are not asked again.
        workers = [worker for worker, answer in answers.items() if not isinstance(answer, OSError)]


def _problems(answers: Mapping[str, object]) -> dict[str, str]:
    """Return what workers lack, by worker, for those that lack something.

    ``answers``: for each worker a text, None if nothing is lacking, or an error. An OSError is of a
    worker that has left, which is no problem.
    """
    return {
        worker: str(answer)
        for worker, answer in answers.items()
        if answer and not isinstance(answer, OSError)
    }


def _refuse(answers: Mapping[str, object], error: type[InputError] = InputError) -> None:
    """Raise an ``error`` that names the first worker that lacks something, and counts the others;
    do nothing if none does.

    ``answers``: by worker a text that says what it lacks, None, or an error.
    """
    problems = _problems(answers)
    if not problems:
        return
    worker, problem = min(problems.items())
    others = ""
    if len(problems) > 1:
        others = f", nor can {len(problems) - 1} others of {len(answers)} workers"
    raise error(f"worker {worker} cannot run this job{others}: {problem}")


def _other_versions(client: Client, workers: list[str] | None = None) -> dict[str, object]:
    """Return by worker why its version of this package is not that of this job, and what to do;
    None if it is; an OSError if the worker has left.

    ``workers``: addresses of those that are asked; None for all.
    """
    here = version_here()
    problems: dict[str, object] = {}
    answers = client.run(eval, _ASK_VERSION, workers=workers, on_error="return")
    for worker, version in answers.items():
        host = worker.rpartition("://")[2].rpartition(":")[0]
        # An OSError stays as it is: ``_problems`` takes it for a worker that has left.
        problems[worker] = None if version == here else version
        if isinstance(version, BaseException) and not isinstance(version, OSError):
            problems[worker] = (
                f"on host {host} it lacks this package, or has another version of it ({type(version).__name__}: {version}); "
                f"install what this job runs ({here}) where the worker runs, and start the worker anew"
            )
        elif isinstance(version, str) and version != here:
            problems[worker] = (
                f"on host {host} it has another version of this package ({version}) than this job ({here}); "
                "install the same one, and start the worker anew"
            )
    return problems


def _memory_problem(memory: WorkerMemory, needed: int) -> str | None:
    """Return a text that says why a worker may not take ``needed`` bytes of memory; None if it
    may.
    """
    if not memory.usable or needed <= memory.usable:
        return None
    enough = in_units(-(-needed * memory.limit // memory.usable))
    return (
        f"on host {memory.host} its memory limit is {in_units(memory.limit)}, of which Dask lets it use "
        f"{in_units(memory.usable)}, and the plan needs {in_units(needed)} in each worker (the graph, which workers of a "
        f"host share, counts for each); start the workers with --memory-limit 0, which is none, or with {enough} at least"
    )


def _can_deadlock(dask_worker: Any) -> bool:
    """Whether Dask's profiler calls ``sys._current_frames`` where that may deadlock, see
    ``cluster._PINNED``; runs in the worker, whose ``Worker`` Dask passes by this argument's name.
    """
    return sys.version_info < (3, 12) and "profile" in dask_worker.periodic_callbacks


def _measure_memory(dask_worker: Any) -> WorkerMemory:
    """Return what this worker may take; runs in the worker, whose ``Worker`` Dask passes by this
    argument's name.
    """
    import dask

    # Dask pauses a worker at one fraction of its limit, and its nanny ends it at another fraction.
    # One that is False switches that off. The worker may use the smallest fraction that is on; 0
    # bytes stand for no such bound.
    manager = dask_worker.memory_manager
    limit = manager.memory_limit or 0
    fractions = [manager.memory_pause_fraction]
    if dask_worker.nanny:
        fractions.append(dask.config.get("distributed.worker.memory.terminate"))
    # psutil tells what is free on the host. A container may be allowed less: ``MEMORY_LIMIT`` is
    # the memory of the host, or the limit of the container or of the process if that is smaller.
    return WorkerMemory(
        host=socket.gethostname(),
        limit=limit,
        usable=int(limit * min(filter(None, fractions), default=0)),
        available=min(psutil.virtual_memory().available, MEMORY_LIMIT),
    )


def _unfitness(folders: list[Path], name: str, token: str, device: str, url: str) -> str | None:
    """Return a text that says why this worker cannot run the job, None if it can; runs in the
    worker.

    Each of ``folders`` has a file ``name`` whose content is ``token``, if the worker sees the same
    folder as the driver. ``device``: "cpu" or "cuda". ``url``: the object store of the run, whose
    manifest the worker must find; "" if the run is in none.
    """
    here = f"on host {socket.gethostname()}"
    for folder in folders:
        try:
            content = (folder / name).read_text()
            if content == token:  # whether this worker may write there, too
                own_file = folder / f".shared.{token}{os.getpid()}.tmp"
                own_file.touch()
                own_file.unlink()
        except OSError as error:
            content = str(error.strerror)
        if content != token:
            return (
                f"{here} it does not see what is written to {folder} ({content}); "
                "all workers need it at this path, on a file system that they share; or take an --output in an object store"
            )

    if url:
        try:
            cache_folder("graphs")  # to which the worker will copy the graph; raises if it cannot
            problem = "" if find_object(f"{url}/{MANIFEST}") else "there is no such object"
        except (OSError, InputError) as error:
            problem = str(error)
        if problem:
            return (
                f"{here} it cannot use {url}/{MANIFEST} ({problem}); give the worker the extra cloud, and the region, "
                "endpoint and credentials of the store in its environment"
            )

    if device == "cuda" and not cuda.available():
        return f"{here} it finds no GPU with CuPy; give each worker one, or take --device cpu"
    return None
