"""Where the batches run: an own cluster on this machine, or a scheduler that exists already, as one
context manager.

All users of a host reach 127.0.0.1, and a process that connects to a scheduler, a nanny or a worker
of Dask can run code there. So connections of an own cluster need the certificate of the run, and
its dashboard a token.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from ssl import TLSVersion
from typing import Any

import dask
from distributed import Client, LocalCluster, Scheduler
from distributed.security import Security

from kepler_traverse.errors import DeviceError, InputError, how_to_install
from kepler_traverse.runtime.scratch import temporary_folder

from ..cli.options import Settings
from ..cli.terminal import say
from ..monitoring.dashboard_access import require_token
from . import dask_log
from .errors import ClusterError
from .gpu_pool import GPU_OF_WORKER, POOL_SHARE, visible_gpus

_PRELOAD = [__name__.replace(".scheduling.cluster", ".worker.plugin")]  # its dask_setup
CONNECT_SECONDS = 30
_ANY_PORT = "127.0.0.1:0"  # of the dashboard
_POLL_SECONDS = 0.1  # between two looks for the first worker
_START_TRIES = 3  # of all workers of an own cluster
_SET_UP_TRIES = 5  # of the plugin in all workers
_MEBIBYTE = 2**20
# of a certificate: beyond any run, since Dask connects throughout
_VALIDITY = datetime.timedelta(days=3650)
# The client of a caller in Python; None for the command line.
_callers_client: ContextVar[Client | None] = ContextVar("callers_client", default=None)

# Every setting of Dask that a run relies on, so that a user's own configuration cannot change what
# it does.
_PINNED = {
    # the driver counts the deaths that a batch has met
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    # kernels hold the interpreter, and so the heartbeat, for a traversal
    "distributed.scheduler.worker-ttl": "1 hour",
    "distributed.scheduler.no-workers-timeout": None,  # the driver looks after the workers itself
    "distributed.scheduler.idle-timeout": None,
    "distributed.scheduler.preload": [],
    "distributed.worker.preload": [],
    "distributed.nanny.preload": [],
    "distributed.worker.lifetime.duration": None,
    # The graph is mapped and shared, which Dask would count once a worker; memory_plan.py keeps the
    # run within memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.tick.limit": "1 hour",
    # sys._current_frames() deadlocks in CPython 3.11 if it collects a mapped array while another
    # thread enters the interpreter from C (gh-106883).
    "distributed.worker.profile.enabled": False,
    "distributed.worker.blocked-handlers": ["call_stack"],
    "distributed.admin.system-monitor.interval": "2s",
    # As by default, but without MALLOC_TRIM_THRESHOLD_: with it each large array is new memory, to
    # be cleared page by page.
    "distributed.nanny.pre-spawn-environ": {
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
    },
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS} s",
    "distributed.comm.retry.count": 0,
    # An own cluster would close the nanny of a worker that happens to be down so long after any
    # earlier death of it.
    "distributed.deploy.lost-worker-timeout": "365 days",
}


@contextlib.contextmanager
def cluster_for(
    settings: Settings,
    device: str,
    n_workers: int,
    rapids_pool: int | None = None,
) -> Iterator[Client]:
    """Yield a client of the scheduler that the settings name, or of an own cluster, which ends with
    the block.

    Parameters
    ----------
    settings : Settings
        Address of a scheduler or of its file, if there is one, and of the dashboard.
    device : str
        "cpu", or another one for a GPU per worker.
    n_workers : int
        Number of workers of an own cluster.
    rapids_pool : int, optional
        Bytes at the start of the memory pool that RAPIDS and CuPy share on each GPU; None for
        workers without RAPIDS.

    Raises
    ------
    InputError
        No scheduler answers there, or it has no workers.
    ClusterError
        Workers die while they start.
    """
    with pinned_settings(settings.debug):
        if settings.scheduler_address or settings.scheduler_file:
            with existing_client(settings) as client:
                yield client
            return

        def start() -> LocalCluster:
            """Start the cluster once."""
            dashboard = settings.dashboard_address or _ANY_PORT
            if rapids_pool is not None:
                return _rapids_cluster(n_workers, dashboard, rapids_pool, settings.debug)
            gpus = []
            if device != "cpu":
                gpus = visible_gpus(n_workers)
            return _cluster(n_workers, dashboard, gpus, settings.debug)

        # Dask imports modules from its scratch folder. In one that all users share, others could
        # place theirs.
        with temporary_folder() as scratch:
            with dask.config.set({"temporary-directory": scratch}):
                cluster = _start_with_retry(start)
            with cluster, Client(cluster, set_as_default=False) as client:
                yield client


def _start_with_retry(start: Callable[[], LocalCluster]) -> LocalCluster:
    """Return a cluster that ``start`` has started; call it again if a worker dies meanwhile, for
    Dask then gives up the whole cluster.

    Raises ClusterError: all tries have failed.
    """
    for tries_left in reversed(range(_START_TRIES)):
        try:
            return start()
        except (OSError, RuntimeError, TimeoutError) as error:
            if not tries_left:
                message = (
                    f"the workers do not start: {_root_cause(error)} "
                    f"({_START_TRIES} times); run again with --resume"
                )
                raise ClusterError(message) from error
            say(f"the workers do not start: {_root_cause(error)}; they are started again")
    raise AssertionError("unreachable")  # the last try returns or raises


@contextlib.contextmanager
def pinned_settings(debug: bool = False) -> Iterator[None]:
    """Within the block, set all settings of Dask that a run relies on, and silence Dask's log
    unless ``debug``.
    """
    with dask_log.silenced(debug), dask.config.set(_PINNED):
        yield


@contextlib.contextmanager
def client_in_use(client: Client) -> Iterator[None]:
    """Within the block, use a caller's client for the scheduler that the settings name, and leave
    it open.
    """
    token = _callers_client.set(client)
    try:
        yield
    finally:
        _callers_client.reset(token)


@contextlib.contextmanager
def existing_client(settings: Settings) -> Iterator[Client]:
    """Yield a client of the scheduler that the settings name, once it has a worker.

    Raises InputError: no scheduler answers there, or it has no workers.
    """
    where = settings.scheduler_address or settings.scheduler_file
    callers_client = _callers_client.get()
    if callers_client is not None:
        _wait_for_a_worker(callers_client, where)
        yield callers_client
        return

    keyword = "address"  # argument of ``Client`` that ``where`` is for
    if settings.scheduler_file:
        keyword = "scheduler_file"
        if not os.path.exists(settings.scheduler_file):
            raise InputError(
                f"{where}: there is no such scheduler file; start a "
                "scheduler with --scheduler-file first"
            )
    try:
        client = Client(
            **{keyword: where},
            security=_security(settings),
            timeout=CONNECT_SECONDS,
            set_as_default=False,
        )
    except (  # what Dask raises for an address, a file or certificates that it cannot use
        OSError,
        ValueError,
        TimeoutError,
        RuntimeError,
        TypeError,
        LookupError,
        ImportError,
    ) as error:
        raise InputError(f"no Dask scheduler answers at {where}: {_root_cause(error)}") from None
    with client:
        _wait_for_a_worker(client, where)
        yield client


def _wait_for_a_worker(client: Client, where: str | None) -> None:
    """Wait until the scheduler has a worker; raise InputError if none comes in
    ``CONNECT_SECONDS``.

    Dask's own wait does not count workers that it has paused. Here they count, since a later check
    names them, with the reason. ``where``: address of the scheduler, for errors.
    """
    until = time.monotonic() + CONNECT_SECONDS
    # An adaptive cluster starts workers only for tasks, so a task is submitted for the wait. The
    # name keeps its future, without which Dask would cancel it.
    _task = client.submit(int, pure=False)
    while not client.nthreads():
        if time.monotonic() > until:
            raise InputError(
                f"the Dask scheduler at {where} has no workers; start some and try again"
            )
        time.sleep(_POLL_SECONDS)


def _security(settings: Settings) -> Security:
    """Return the certificates that the settings name, or else those of Dask's own configuration,
    which may have none.
    """
    if settings.tls_ca_file is None:
        return Security()
    files = {
        "tls_ca_file": settings.tls_ca_file,
        "tls_client_cert": settings.tls_cert,
        "tls_client_key": settings.tls_key,
    }
    return Security(require_encryption=True, **files)


def _root_cause(error: BaseException) -> str:
    """Return the message of the first error in a chain of causes, or its class without a message.

    The last error, of Dask, often says only that the time is over.
    """
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def give_plugin(client: Client, plugin: Any, name: str) -> None:
    """Set up a plugin in every worker, and again in all if one dies meanwhile.

    Dask also sets it up in each worker that starts later. ``name``: of the plugin in Dask. Raises
    ClusterError (workers keep dying) or Exception (what the plugin raises while it is set up).
    """
    for _ in range(_SET_UP_TRIES):
        try:
            client.register_plugin(plugin, name=name)
            return
        except (OSError, TimeoutError) as error:  # OSError: the connection to a worker is closed
            last_error = error
            say(
                "a worker was lost while it loaded the graph "
                f"({_root_cause(error)}); the others and its successor load it"
            )
    raise ClusterError(
        f"workers die while they load the graph ({_root_cause(last_error)}); run again with --resume"
    )


def take_plugin(client: Client, name: str) -> None:
    """Remove a plugin from every worker, and from those that start later.

    An error is suppressed: a worker that dies meanwhile has no plugin any more.
    """
    with contextlib.suppress(OSError, TimeoutError):
        client.unregister_worker_plugin(name)


def _cluster(n_workers: int, dashboard: str, gpus: list[str], debug: bool) -> LocalCluster:
    """Return a new cluster of worker processes, each of which sees one of the GPUs if there are
    any.

    ``dashboard``: address of the dashboard. ``gpus``: one per worker, as ``CUDA_VISIBLE_DEVICES``
    names them; empty on a CPU. ``debug``: whether Dask's log is printed.
    """
    return start_private_cluster(
        LocalCluster,
        gpus,
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=dashboard,
        memory_limit=None,
        preload=_PRELOAD,
        silence_logs=dask_log.level(debug),
    )


def _rapids_cluster(n_workers: int, dashboard: str, pool: int, debug: bool) -> LocalCluster:
    """Return a new cluster of worker processes in which cuDF and cuGraph share memory with CuPy.

    ``dashboard``: address of the dashboard. ``pool``: bytes of the shared pool on each GPU at the
    start. ``debug``: whether Dask's log is printed.
    """
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        raise DeviceError(
            f"--engine cugraph-mg needs dask-cuda to run batches: {how_to_install('mg')}"
        ) from None
    return start_private_cluster(
        LocalCUDACluster,
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=dashboard,
        memory_limit=None,
        preload=_PRELOAD,
        # cuDF and CuPy share one pool. It starts with ``pool`` bytes, rounded up to whole MiB, and
        # may grow.
        rmm_pool_size=-(-pool // _MEBIBYTE) * _MEBIBYTE,
        rmm_maximum_pool_size=POOL_SHARE,  # a share of the memory of the GPU
        rmm_allocator_external_lib_list="cupy",
        silence_logs=dask_log.level(debug),
    )


def make_certificate() -> Security:
    """Return a new certificate that signs itself, with its key, as the only authority.

    Both stay in memory: Dask sends them to its worker processes through pipes. OpenSSL reads files,
    so Dask's ``Security`` writes them, in each process, to a temporary folder of mode 700 for that
    moment.
    """
    # Imported here, since a scheduler that exists already needs none.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kepler-traverse")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _VALIDITY,  # clocks may differ
        not_valid_after=now + _VALIDITY,
    )
    signed = builder.sign(key, hashes.SHA256())
    public_pem = signed.public_bytes(serialization.Encoding.PEM).decode()
    private_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()

    # An option that is left out would be taken from Dask's configuration, which may be the user's.
    # None stands for no largest version, and for the ciphers that OpenSSL takes by default.
    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=public_pem,
        tls_min_version=TLSVersion.TLSv1_3,
        tls_max_version=None,
        tls_ciphers=None,
        **{f"tls_{role}_cert": public_pem for role in roles},
        **{f"tls_{role}_key": private_pem for role in roles},
    )


class PrivateScheduler(Scheduler):
    """A scheduler whose HTTP server answers 403 unless the path begins with ``token``, from its
    first request on.
    """

    def __init__(self, **options: Any):
        self.token = secrets.token_hex(16)
        super().__init__(http_prefix=self.token, **options)

    def start_http_server(self, *arguments: Any, **keywords: Any) -> None:
        """Start the server, and demand the token before it answers the first request."""
        super().start_http_server(*arguments, **keywords)  # type: ignore[no-untyped-call]
        require_token(self.http_application, self.token)


def start_private_cluster(
    kind: type[LocalCluster], gpus: Sequence[str] = (), **options: Any
) -> LocalCluster:
    """Start a local cluster that only this process and its workers can connect to.

    ``kind``: class of the cluster, of Dask or of dask-cuda. ``gpus``: the GPU that each worker
    sees, also after it was started again; empty if no worker has one, or if dask-cuda chooses.
    ``options``: further arguments of the class.
    """

    class PrivateCluster(kind):  # type: ignore[misc, valid-type]
        """A cluster of class ``kind`` whose dashboard needs a token, with a GPU per worker."""

        async def _start(self) -> None:
            """Start with a private scheduler, and with the GPU of each worker in its environment."""
            self.scheduler_spec["cls"] = PrivateScheduler
            # Without GPUs, or where dask-cuda gives them out, there is no pair.
            for name, gpu in zip(list(self.worker_spec), gpus, strict=False):
                spec = self.worker_spec[name]
                environment = {"CUDA_VISIBLE_DEVICES": gpu, GPU_OF_WORKER: gpu}
                self.worker_spec[name] = spec | {"options": spec["options"] | {"env": environment}}
            await super()._start()

        @property
        def dashboard_link(self) -> str:
            """The address of the dashboard, with the token in its path."""
            before, _, page = super().dashboard_link.rpartition("/")
            return f"{before}/{self.scheduler.token}/{page}"

    return PrivateCluster(host="127.0.0.1", protocol="tls", security=make_certificate(), **options)
