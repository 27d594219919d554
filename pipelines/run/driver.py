"""The main job from settings to results: prepare, size, run, report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from kepler_traverse import __version__, cuda
from kepler_traverse.errors import CapacityError
from kepler_traverse.kinds.constraints import violations
from kepler_traverse.search.exact import describe_distances

from ..cli import steps
from ..cli.constraints import MG_ROWS
from ..cli.options import MG, Settings, flag_of_key
from ..cli.settings import find_idle
from ..cli.shards import parse_shard
from ..cli.supervisor import UNWATCHED, Supervision
from ..cli.terminal import say
from ..cli.values import is_url
from ..monitoring import console
from ..output.commits import CommitLog
from ..output.manifest_types import FORMAT, Built, Manifest, ShardRecord
from ..output.run_folder import (
    OutputFolder,
    check_folder,
    compute_fingerprint,
    graph_folder,
    mark_fits,
    read_layout,
    refuse_another_run,
    refuse_further_files,
)
from ..output.shard import Shard
from ..output.store import Store, open_store
from .answered_tables import list_tables, tables_of_graph
from .batch_run import BatchRun
from .engine import NO_INPUTS, CallerInputs, Engine, OpenEngine
from .environment import versions
from .expectation import expect_run
from .finishing import finish_run
from .prepare import Prepared
from .question import make_identity


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that has ended, and may have failed for some sources."""

    manifest: Manifest  # its ``failed`` lists the sources that failed
    computed: int  # number of parts that this run has computed
    kept: int  # number of parts that an earlier run has computed
    seconds: float  # of the whole run, from reading the graph on


def run(
    settings: Settings,
    resume_command: str,
    open_engine: OpenEngine,
    supervision: Supervision = UNWATCHED,
) -> int:
    """Run the job, print its plan or its summary, and return its exit code: 0, or 3 if some sources
    failed.

    Parameters and errors are those of ``execute``.
    """
    if supervision is UNWATCHED:
        supervision = Supervision()  # ``has_folder`` is set by this run, and UNWATCHED is shared
    try:
        finished = execute(settings, resume_command, open_engine, supervision)
        if finished is None:
            return 0
        console.show_summary(
            settings, finished.manifest, finished.computed, finished.kept, finished.seconds
        )
    except KeyboardInterrupt as interrupt:
        if interrupt.args:  # the batches ran, and it says how many are done
            raise
        text = _describe_leftovers(settings, resume_command, supervision.has_folder)
        raise KeyboardInterrupt(text) from None
    return 3 if finished.manifest["failed"] else 0


def _describe_leftovers(settings: Settings, resume_command: str, has_folder: bool) -> str:
    """Describe, for the user, what an interrupt has left in the output folder, and how to go on.

    ``resume_command``: the command that finishes the run. ``has_folder``: whether the folder has
    files of this run.
    """
    if settings.plan or not (has_folder or settings.resume):
        return "interrupted before anything was written"
    if not is_url(settings.output):
        folder = Path(str(settings.output)).absolute()
        if mark_fits(Store(folder)):
            return (
                f"interrupted: all results are in {folder}. To write the "
                f"report too: {resume_command}"
            )
        return (
            f"interrupted: {folder} holds a run that is not finished. To finish: {resume_command}"
        )
    return f"interrupted. To finish: {resume_command}"


def execute(
    settings: Settings,
    resume_command: str,
    open_engine: OpenEngine,
    supervision: Supervision = UNWATCHED,
    inputs: CallerInputs = NO_INPUTS,
) -> Finished | None:
    """Run the job; with ``settings.plan`` print its plan and return None.

    Parameters
    ----------
    settings : Settings
        All options of the run.
    resume_command : str
        Command that finishes the run; it is shown after an interrupt and in the report.
    open_engine : callable
        Returns a context manager that yields the engine of the settings, which runs the searches.
    supervision : Supervision
        Whether another process takes over if this one dies.
    inputs : CallerInputs
        What a caller in Python gives beyond the settings.

    Returns
    -------
    Finished or None
        None for a plan.

    Raises
    ------
    InputError
        The input is invalid; nothing has been written.
    NegativeCycleError
        A negative cycle can be reached from some source.
    KeyboardInterrupt
        The run was interrupted, which the manifest records first.
    """
    with contextlib.ExitStack() as opened:
        output = None
        if settings.output is not None and not settings.plan:
            output = opened.enter_context(contextlib.closing(_open_output(settings.output)))
        return _execute(settings, output, resume_command, open_engine, supervision, inputs)


def _open_output(address: str) -> Store:
    """Open the store of a URL or of a path, which is relative to the current folder."""
    if is_url(address):
        return open_store(address)
    return open_store(Path(address).absolute())


def _execute(
    settings: Settings,
    output: Store | None,
    resume_command: str,
    open_engine: OpenEngine,
    supervision: Supervision,
    inputs: CallerInputs,
) -> Finished | None:
    """Prepare the run, and print its plan or compute the parts that are missing.

    ``output``: the store of the results; None for a plan. The other arguments, the result and the
    errors are those of ``execute``, which opens and closes the store.
    """
    destination = None if output is None else _Destination.of(settings, output)
    with open_engine(settings, supervision, inputs) as engine:
        started = time.perf_counter()
        prepared = _prepare(settings, engine, destination)
        if settings.plan:
            if settings.resume:
                say("note: --plan shows the whole run, also what --resume would find done")
            steps.begin("trying a few sources")
            console.show_plan(settings, prepared, partial(expect_run, settings, prepared))
            return None
        assert destination is not None  # merge_settings requires --output, except with --plan
        run = _Run(settings, prepared, destination, resume_command, supervision)
        batches, folder = run.answer(engine)
        return Finished(
            manifest=folder.manifest,
            computed=batches.computed,
            kept=batches.kept,
            seconds=time.perf_counter() - started,
        )


@dataclass(frozen=True, kw_only=True)
class _Destination:
    """The output folder of a run, before the run begins."""

    output: Store  # the folder, or the object store
    # Which batches this process has, and under which name it records them; None if it has all and
    # holds the lock of the folder.
    shard: Shard | None
    is_alone: bool  # whether no other process takes part in the run
    trusts_record: bool  # whether finished parts are known from the records of the shard alone
    log: CommitLog  # of the run in the folder, as far as it has been read
    earlier: Manifest | None  # the manifest of an earlier run, which this one resumes; None if none

    @classmethod
    def of(cls, settings: Settings, output: Store) -> _Destination:
        """Return the destination of a run; read what ``output`` has of an earlier run.

        Raises OutputError: it holds files of others, or of a run that the settings do not resume.
        """
        shard = parse_shard(settings.shard, {})
        is_alone = shard is None
        # An object store has no locks, so that others may write there, too: the run records its
        # parts as the only shard would.
        if not output.is_local and is_alone:
            shard = Shard(0, 1)
        trusts_record = not (is_alone or output.is_local)
        log = CommitLog(output, shard if trusts_record else None)
        earlier = check_folder(output, settings.resume, shared=not is_alone, log=log)
        return cls(
            output=output,
            shard=shard,
            is_alone=is_alone,
            trusts_record=trusts_record,
            log=log,
            earlier=earlier,
        )


def _prepare(settings: Settings, engine: Engine, destination: _Destination | None) -> Prepared:
    """Read and build the graph, and choose workers, batches and strategy.

    ``destination``: where the run writes; None for a plan. An earlier run there may have stored the
    graph, and gives the size of the batches.
    """
    earlier = None if destination is None else destination.earlier
    steps.begin("reading the edge list and building the graph")
    with suggesting_mg(settings):
        stored = None
        if destination is not None and earlier is not None:
            stored = graph_folder(destination.output.path, destination.shard)
        prepared = engine.prepare(stored)

        batch_size = settings.batch_size
        # With the batch size of the earlier run, its parts hold the same sources, and can be kept.
        if earlier is not None and batch_size == "auto":
            batch_size = earlier["identity"].get("batch_size", "auto")
        prepared.sizing = engine.size(prepared, batch_size)
        prepared.choice = engine.choose(prepared)
    return prepared


class _Run:
    """A run that is prepared, and its output folder, before anything is written.

    The manifest is made as that of a new run. ``answer`` enters what an earlier run has done, and
    computes the rest. ``destination``: where the run writes. ``resume_command``: the command that
    finishes it. ``supervision``: learns when the folder has files of this run.
    """

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        destination: _Destination,
        resume_command: str,
        supervision: Supervision,
    ):
        self._settings = settings
        self._prepared = prepared
        self._destination = destination
        self._resume_command = resume_command
        self._supervision = supervision
        self._manifest = _new_manifest(settings, prepared)

    def answer(self, engine: Engine) -> tuple[BatchRun, OutputFolder]:
        """Compute the parts that are missing, and write the last manifest; return the batches and
        the folder.

        ``engine``: runs the searches.
        """
        destination = self._destination
        earlier = destination.earlier
        if earlier is not None:  # before this run changes anything in the folder
            self._refuse_others(earlier)
        with OutputFolder(destination.output, destination.shard, destination.log) as folder:
            # A folder is there now, with its lock. A store has nothing of this run yet.
            # ``begin_folder`` tells the watching process that there are files which --resume can
            # finish.
            if destination.output.is_local:
                self._supervision.begin_folder()

            # The manifest, with what the earlier run has measured. ``record`` is what this shard
            # has recorded in the log of a run in an object store; None elsewhere.
            record = destination.log.record
            if earlier is not None:
                self._resume_choice(earlier, record)
            folder.manifest = self._manifest
            # ``join`` begins the shared run, unless another process has, and returns the manifest
            # that is there. Where none may be there, one that has come meanwhile is an error.
            is_shared = destination.shard is not None
            if is_shared:
                may_be_there = self._settings.resume or not destination.is_alone
                earlier = folder.join(earlier, may_be_there=may_be_there)
                self._supervision.begin_folder()
                self._refuse_others(earlier)  # another process may have begun the run meanwhile

            # The parts and tables of the earlier run that stay.
            batches = BatchRun(
                self._settings, self._prepared, folder, self._resume_command, destination.shard
            )
            if earlier is not None:
                self._keep_parts(batches, earlier, record)
            # ``keeps``: the file of the earlier run is on disk unchanged.
            for name, make in tables_of_graph(self._settings).items():
                if not batches.keeps(name):
                    folder.put_table(name, [make(self._prepared.graph)])

            # The missing parts, and the end of the run.
            try:
                if earlier is not None and not is_shared and batches.nothing_is_missing(earlier):
                    folder.manifest = earlier  # the run is complete, and its manifest stays
                else:  # search, write parts, and complete the folder unless the run is shared
                    batches.run(engine.answer)
            finally:
                batches.write_report()
            # The only process of a run in an object store is its only shard, and finishes it
            # itself.
            if is_shared and destination.is_alone and not folder.manifest["failed"]:
                folder.manifest, _ = finish_run(destination.output)
        return batches, folder

    def _refuse_others(self, earlier: Manifest) -> None:
        """Raise OutputError if the folder holds another run, or parts or tables that are none of
        this run.
        """
        destination = self._destination
        output = destination.output
        identity = self._manifest["identity"]
        # Only a run that is not shared may go on with a larger sample of sources.
        may_extend = self._prepared.names if destination.shard is None else ()  # ids of sources
        refuse_another_run(output, earlier, identity, not destination.is_alone, may_extend)
        # finish lists the parts of a shared run in an object store, which may be many
        if not destination.trusts_record:
            versions = output.versions()
            layout = read_layout(self._manifest)
            refuse_further_files(output, versions, layout, list_tables(self._settings))

    def _resume_choice(self, earlier: Manifest, record: ShardRecord | None) -> None:
        """Take over the times of strategies that an earlier run has measured.

        They are in the ``record`` of the shard, or without one (None) in the manifest ``earlier``.
        Nothing is done if there is no choice between strategies.
        """
        choice = self._prepared.choice
        if choice is None:
            return
        choice.resume(earlier.get("choice") if record is None else record["choice"])
        self._manifest["strategy"] = choice.strategy

    def _keep_parts(self, batches: BatchRun, earlier: Manifest, record: ShardRecord | None) -> None:
        """Keep the parts of an earlier run, so that they are not computed again.

        ``earlier``: its manifest. ``record``: what this shard has recorded of it, if anything.
        """
        if self._destination.trusts_record:
            batches.keep_recorded_parts(earlier, record)
        else:
            batches.keep_checked_parts(earlier)
        if self._supervision.needs_workers:
            batches.note_takeover(earlier)


@contextlib.contextmanager
def suggesting_mg(settings: Settings) -> Iterator[None]:
    """If the block raises because a graph or a plan does not fit one GPU, suggest the multi-GPU
    engine in the error, which becomes a CapacityError.

    That engine holds arrays of the vertices on each GPU, and partitions the edges alone. Where hops
    are counted, edges need not be on a GPU, so it helps only if the host does not hold them either.
    """
    try:
        yield
    except (CapacityError, MemoryError) as error:
        if settings.device == "cpu" or settings.engine == MG or not cuda.available():
            raise
        text = str(error)
        if isinstance(error, MemoryError):
            text = f"the graph does not fit the memory of a GPU ({' '.join(text.split())})"

        with_mg = replace(settings, engine=MG)
        may_help = settings.algorithm == "sssp" or isinstance(error, MemoryError)
        # It is suggested only if it takes these settings, perhaps without some flags: ``MG_ROWS``
        # are its rules, and ``find_idle`` finds settings that would have no effect.
        if may_help and settings.engine == "auto" and not any(violations(with_mg, MG_ROWS)):
            text += f"; or take --engine {MG}, which partitions the graph over all GPUs"
            idle_flags = [flag_of_key(violation.option) for violation in find_idle(with_mg)]
            if idle_flags:
                text += f" (and leave {' and '.join(idle_flags)} out)"
        raise CapacityError(text) from error


def _new_manifest(settings: Settings, prepared: Prepared) -> Manifest:
    """Return the manifest of a run that begins: it has no parts yet."""
    graph = prepared.graph
    sizing = prepared.sizing
    choice = prepared.choice
    identity = make_identity(
        prepared.request, graph.fingerprint, prepared.names, sizing.batch_size, prepared.partitions
    )
    # ``identity`` has all that determines the content of the parts, and "fingerprint" is its digest
    # (without the sources of a sample), by which the parts of another run are distinguished. ``means``
    # says what a row of the result is. The strategy is the one that measured times have chosen, if
    # there was a choice. The shard is left out of the settings, so that all processes of a shared
    # run write the same.
    manifest: Manifest = {
        "format": FORMAT,
        "status": "running",
        "algorithm": settings.algorithm,
        "result": prepared.request.kind.name,
        "direction": settings.direction,
        "means": prepared.request.kind.means,
        "settings": asdict(replace(settings, shard=None)),
        "identity": identity,
        "fingerprint": compute_fingerprint(identity),
        "distances": describe_distances(graph, prepared.request.algorithm),
        "graph": {
            "fingerprint": graph.fingerprint,
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
            "built": cast(Built, graph.report.facts()),
            "reused": prepared.reused,
        },
        "device": prepared.plan.strategy.device,
        "strategy": prepared.plan.strategy.name if choice is None else choice.strategy,
        "choice": None if choice is None else choice.record,
        "workers": sizing.workers,
        "memory": sizing.memory,
        "sources": prepared.n_sources,
        "duplicate_sources": prepared.duplicates,
        "batches": sizing.n_batches,
        "versions": {
            "kepler_traverse": __version__,
            **versions(("numpy", "numba", "pyarrow", "distributed")),
        },
        "seconds": {name: round(value, 3) for name, value in prepared.seconds.items()},
        "parts": [],
        "tables": [],
        "failed": [],
        "retried": [],
        "digest": None,
    }
    if prepared.request.is_proved_by_labels:
        manifest["proved"] = "labels"
    return manifest
