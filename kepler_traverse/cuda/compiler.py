"""Compiles kernel files: at most once per process; CuPy's disk cache keeps the binaries between
processes.

A file is compiled by the thread that needs it first, or before that by a thread of
``start_compiling``. NVRTC releases the interpreter's lock, so several files compile at once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import _uninterrupted
from .._arrays import is_hops
from .._uninterrupted import Promise
from ..cpu.compile_clock import compiling, waiting
from ..errors import DeviceError
from . import cp, require
from .kernel_cache import require_private_cache
from .kernel_spec import C_NAMES, Entry, chosen_types

_PORTABLE_CLUSTER = 8  # blocks of a cluster; larger clusters need an attribute of the kernel
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14  # CUfunction_attribute


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled entry point, with the types that its arguments must have."""

    entry: Entry  # the kernel in its file, as the host sees it
    function: Any  # cupy.cuda.Function or RawKernel, which launches the kernel when it is called
    dtypes: tuple[np.dtype, ...]  # of the arguments that the entry declares, in their order
    # the struct that the kernel takes by value, as a structured dtype; None if it takes its
    # arguments one by one
    layout: np.dtype | None = None


def kernel(entry: Entry, vertex_t: DTypeLike, weight_t: DTypeLike = np.float32) -> Kernel:
    """Return the kernel of an entry point, compiled for the current device unless it is already.

    Parameters
    ----------
    entry : Entry
    vertex_t : dtype
        Type of vertex numbers.
    weight_t : dtype
        Type of weights and weighted distances. It does not matter to kernels that touch none.

    Returns
    -------
    Kernel

    Raises
    ------
    DeviceError
        There is no GPU to compile for.
    """
    types = chosen_types(vertex_t, weight_t)
    module = _module(*_key(entry, types))
    function = module.get_function(entry.name)
    # a kernel whose clusters, groups of blocks that share memory, are large needs an attribute
    if dict(entry.constants).get("CLUSTER", 1) > _PORTABLE_CLUSTER:
        cp.cuda.driver.funcSetAttribute(function.kernel.ptr, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    dtypes = tuple(argument.dtype(types) for argument in entry.arguments)
    return Kernel(entry, function, dtypes, entry.layout(types))


def options(entry: Entry, types: dict[str, np.dtype]) -> tuple[str, ...]:
    """Return the compiler options of the file of an entry point, without the architecture, which
    CuPy adds. ``types`` has the types that the file leaves open, by name.
    """
    folders = header_folders(Path(entry.file))
    return (
        "-std=c++17",
        *(f"-I{folder}" for folder in folders),
        # The key of CuPy's disk cache covers the source and the options, not the headers. Without
        # their digest, a changed header would run the old binary.
        f"-DKT_HEADERS=0x{header_digest(folders)}",
        f"-DBLOCK={entry.block}",
        *(f"-D{name}={C_NAMES[dtype.name]}" for name, dtype in sorted(types.items())),
        *(f"-D{name}={value}" for name, value in entry.constants),
        # Relocatable code is slower, so only kernels that launch children are compiled with it.
        *(("-dc", "-DKT_DEVICE_LAUNCH") if entry.launches_children else ()),
    )


@functools.cache
def header_folders(file: Path) -> tuple[Path, ...]:
    """Return the folders in which the compiler looks for the headers of a kernel file: that of the
    shared headers, and the file's own folder if there are headers in it.
    """
    beside = file.parent
    if any(beside.glob("*.cuh")):
        return (include_directory(), beside)
    return (include_directory(),)


@functools.cache
def header_digest(folders: tuple[Path, ...]) -> str:
    """Return 16 hexadecimal digits that depend on the names and texts of all headers in these
    folders.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for header in sorted(folder.rglob("*.cuh")):
            name = header.relative_to(folder).as_posix().encode()
            # zero bytes mark where a name and a text end, so that no two sets of headers agree
            digest.update(name + b"\0" + header.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def include_directory() -> Path:
    """Return the folder of the shared headers, which must be on disk for the compiler."""
    folder = resources.files(__package__) / "include"
    if not isinstance(folder, Path):
        raise DeviceError(
            "the CUDA headers lie in a zip archive; install kepler-traverse unpacked, as pip does"
        )
    return folder


class Request(NamedTuple):
    """A kernel that will be needed, with its types: the arguments of ``kernel``."""

    entry: Entry  # the kernel, in its file
    # Types of vertex numbers and of weights. To kernels that touch none they do not matter. Such
    # kernels all take these defaults, so that they are compiled once.
    vertex_t: Any = np.int32
    weight_t: Any = np.float32

    @classmethod
    def reading(
        cls, distances: np.dtype, entry: Entry, vertex_t: Any = np.int32, **constants: Any
    ) -> Request:
        """Return a request for the variant of ``entry`` that reads distances of the given type:
        hops, which are integers of any width, or weighted distances.

        ``constants`` are other compile-time constants of the variant. ``HOP_BYTES`` is one, too: 0
        stands for weighted distances.
        """
        of_hops = is_hops(distances)
        variant = entry.variant(HOP_BYTES=distances.itemsize if of_hops else 0, **constants)
        return cls(variant, vertex_t, np.float32 if of_hops else distances)


class CompileTimes(NamedTuple):
    """Totals of compiling in this process since it began."""

    # kernel files compiled, or loaded from CuPy's cache; one per set of compile-time constants
    modules: int
    compiling: float  # seconds of compiling, added up over all threads
    waiting: float  # seconds that callers waited for kernels: all that compiling has delayed them


class Compilation:
    """Kernels that threads compile in the background.

    ``promises`` has one per kernel file and set of compile-time constants: a value, the compiled
    module, that is computed once.
    """

    def __init__(self, promises: list[Promise[Any]]):
        self._promises = promises

    @property
    def is_done(self) -> bool:
        """Whether each kernel is compiled, or has failed to compile."""
        return all(promise.is_given for promise in self._promises)

    def wait(self) -> None:
        """Return when all kernels are compiled. An error is raised where the kernel is needed, not
        here.
        """
        for promise in self._promises:
            promise.wait()


def start_compiling(requests: Iterable[Request]) -> Compilation:
    """Compile kernels in threads, for the current device, and return at once.

    Parameters
    ----------
    requests : iterable of Request
        Several may need the same module, which is compiled once.

    Returns
    -------
    Compilation
        The kernels, which may be waited for.

    Raises
    ------
    DeviceError
        There is no GPU to compile for, or others can write to the cache of kernels.
    """
    require()
    require_private_cache()
    keys = {
        _key(request.entry, chosen_types(request.vertex_t, request.weight_t))
        for request in requests
    }
    # sorted, as the order of a set differs between runs
    return Compilation(_module.start(sorted(keys, key=repr)))


def compile_times() -> CompileTimes:
    """Return what compiling has taken so far in this process; a caller takes the difference of two
    calls.
    """
    return _module.times()


def _key(entry: Entry, types: dict[str, np.dtype]) -> tuple[Any, ...]:
    """Return what one compiled module is kept under: its file, its compiler options, and whether
    its kernels have barriers of the whole grid (cooperative launch).
    """
    return entry.file, options(entry, types), entry.is_cooperative


class _Modules:
    """Compiled kernel files (modules). Each is compiled once, by the thread that asks for it first;
    other threads wait for it. A module is known by its key, which ``_key`` makes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # for changes of the two attributes below
        self.cache_clear()

    def cache_clear(self) -> None:
        """Forget all modules, and count times from 0 again. Functions of ``functools.cache`` have
        this name, too.
        """
        self._promises: dict[tuple[Any, ...], Promise[Any]] = {}  # of modules, by key
        self._times = CompileTimes(0, 0.0, 0.0)

    def times(self) -> CompileTimes:
        """Return what compiling has taken so far in this process."""
        with self._lock:
            return self._times

    def __call__(self, file: Path, compiler_options: tuple[str, ...], is_cooperative: bool) -> Any:
        """Return the module of a kernel file, compiled now unless it is already. The time that the
        call waits is added to the times.
        """
        # A module that is compiled is returned without a lock and without a look at the device,
        # since this is called before each launch.
        key = file, compiler_options, is_cooperative
        # ``take`` waits for the module, and returns it or raises the error of its compilation.
        promise = self._promises.get(key)
        if promise is not None and promise.is_given and promise.error is None:
            return promise.take()
        require()
        require_private_cache()
        began = time.perf_counter()
        try:
            with waiting():
                return self._promise(key).take()
        finally:
            self._add(waiting=time.perf_counter() - began)

    def start(self, keys: list[tuple[Any, ...]]) -> list[Promise[Any]]:
        """Compile in threads the modules of these keys that are not compiled. Return a promise of
        each, in the order of the keys.
        """
        promises = [self._promise(key) for key in keys]
        missing = [promise for promise in promises if not promise.is_given]
        _uninterrupted.begin(missing, len(os.sched_getaffinity(0)))
        return promises

    def _promise(self, key: tuple[Any, ...]) -> Promise[Any]:
        """Return a promise of the module of a key, compiled for the device that is current now. A
        compilation that failed before is tried again.
        """
        compiled = functools.partial(self._compile, key, cp.cuda.runtime.getDevice())
        with self._lock:
            promise = self._promises.get(key)
            if promise is None or promise.error is not None:
                promise = self._promises[key] = Promise(compiled)
            return promise

    def _compile(self, key: tuple[Any, ...], device: int) -> Any:
        """Compile the module of a key for a device, by its number, or load it from CuPy's cache.
        Return CuPy's module, and add the time to the times.
        """
        file, compiler_options, is_cooperative = key
        began = time.perf_counter()
        try:
            cp.cuda.runtime.setDevice(device)  # a new thread begins with the first device
            code = file.read_text(encoding="utf-8")
            module = cp.RawModule(
                code=code, options=compiler_options, enable_cooperative_groups=is_cooperative
            )
            with compiling():
                # CuPy would compile at the first launch, in the middle of a search
                module.compile()
            return module
        finally:
            self._add(modules=1, compiling=time.perf_counter() - began)

    def _add(self, modules: int = 0, compiling: float = 0.0, waiting: float = 0.0) -> None:
        """Add a number of modules, and seconds, to the times."""
        with self._lock:
            before = self._times
            self._times = CompileTimes(
                before.modules + modules, before.compiling + compiling, before.waiting + waiting
            )


_module = _Modules()
