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

_PORTABLE_CLUSTER = 8  # blocks; larger clusters need an attribute of the kernel
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14  # CUfunction_attribute


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled entry point, with the types that its arguments must have."""

    entry: Entry
    function: Any  # cupy.cuda.Function or RawKernel
    dtypes: tuple[np.dtype, ...]  # of the arguments that the entry declares, in their order
    layout: np.dtype | None = None  # of the argument struct, for a kernel that takes one


def kernel(entry: Entry, vertex_t: DTypeLike, weight_t: DTypeLike = np.float32) -> Kernel:
    """Return the kernel of an entry point for the given types.

    Raises
    ------
    DeviceError
        There is no GPU to compile for.
    """
    types = chosen_types(vertex_t, weight_t)
    module = _module(*_key(entry, types))
    function = module.get_function(entry.name)
    if dict(entry.constants).get("CLUSTER", 1) > _PORTABLE_CLUSTER:
        cp.cuda.driver.funcSetAttribute(function.kernel.ptr, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    dtypes = tuple(argument.dtype(types) for argument in entry.arguments)
    return Kernel(entry, function, dtypes, entry.layout(types))


def options(entry: Entry, types: dict[str, np.dtype]) -> tuple[str, ...]:
    """Return the compiler options, without the architecture, which CuPy adds."""
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
    """Return the folders with the headers of a kernel file: the shared ones, and its own folder if
    it has headers.
    """
    beside = file.parent
    if any(beside.glob("*.cuh")):
        return (include_directory(), beside)
    return (include_directory(),)


@functools.cache
def header_digest(folders: tuple[Path, ...]) -> str:
    """Return a hexadecimal digest of the names and texts of all headers in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for header in sorted(folder.rglob("*.cuh")):
            name = header.relative_to(folder).as_posix().encode()
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
    """A kernel that will be needed, with its types."""

    entry: Entry
    # vertex_t, weight_t: types of vertex numbers and weights; they do not matter to kernels that
    # touch none, which all take these, so that one binary serves
    vertex_t: Any = np.int32
    weight_t: Any = np.float32

    @classmethod
    def reading(
        cls, distances: np.dtype, entry: Entry, vertex_t: Any = np.int32, **constants: Any
    ) -> Request:
        """Return a request for the kernel that reads hops of their width, or weighted distances of
        their type.
        """
        of_hops = is_hops(distances)
        variant = entry.variant(HOP_BYTES=distances.itemsize if of_hops else 0, **constants)
        return cls(variant, vertex_t, np.float32 if of_hops else distances)


class CompileTimes(NamedTuple):
    """Totals of this process since it began."""

    # kernel files compiled, or loaded from CuPy's cache; one per set of compile-time constants
    modules: int
    compiling: float  # seconds of all threads
    waiting: float  # seconds that callers waited for kernels: all that compiling has delayed them


class Compilation:
    """Kernels that threads compile: a promise per kernel file and set of constants."""

    def __init__(self, promises: list[Promise[Any]]):
        self._promises = promises

    @property
    def is_done(self) -> bool:
        """Whether all are compiled, or have failed."""
        return all(promise.is_given for promise in self._promises)

    def wait(self) -> None:
        """Return when all are compiled. An error is raised where the kernel is needed, not here."""
        for promise in self._promises:
            promise.wait()


def start_compiling(requests: Iterable[Request]) -> Compilation:
    """Compile kernels in threads, for the current device, and return at once.

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
    return Compilation(_module.start(sorted(keys, key=repr)))


def compile_times() -> CompileTimes:
    """Return what compiling has taken so far in this process; a caller takes the difference of two
    calls.
    """
    return _module.times()


def _key(entry: Entry, types: dict[str, np.dtype]) -> tuple[Any, ...]:
    """Return what one compiled module is kept under: its file, its options, whether it is
    cooperative.
    """
    return entry.file, options(entry, types), entry.is_cooperative


class _Modules:
    """Compiled kernel files: each is compiled once, by whichever thread comes first; the others
    wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cache_clear()

    def cache_clear(self) -> None:
        """Forget all modules, and start the times again."""
        self._promises: dict[tuple[Any, ...], Promise[Any]] = {}  # of modules, by ``_key``
        self._times = CompileTimes(0, 0.0, 0.0)

    def times(self) -> CompileTimes:
        """Return what compiling has taken so far."""
        with self._lock:
            return self._times

    def __call__(self, file: Path, compiler_options: tuple[str, ...], is_cooperative: bool) -> Any:
        """Return a module, compiled now unless it is; a call counts the time that it waits."""
        # What is compiled already is returned without a lock and without a look at the device.
        key = file, compiler_options, is_cooperative
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
        """Compile in threads what is not compiled."""
        promises = [self._promise(key) for key in keys]
        missing = [promise for promise in promises if not promise.is_given]
        _uninterrupted.begin(missing, len(os.sched_getaffinity(0)))
        return promises

    def _promise(self, key: tuple[Any, ...]) -> Promise[Any]:
        """Return the result of a compilation for the current device, as a promise; one that failed
        is made again.
        """
        compiled = functools.partial(self._compile, key, cp.cuda.runtime.getDevice())
        with self._lock:
            promise = self._promises.get(key)
            if promise is None or promise.error is not None:
                promise = self._promises[key] = Promise(compiled)
            return promise

    def _compile(self, key: tuple[Any, ...], device: int) -> Any:
        """Compile a module for a device, or load it from CuPy's cache."""
        file, compiler_options, is_cooperative = key
        began = time.perf_counter()
        try:
            cp.cuda.runtime.setDevice(device)  # threads begin with the first
            code = file.read_text(encoding="utf-8")
            module = cp.RawModule(
                code=code, options=compiler_options, enable_cooperative_groups=is_cooperative
            )
            with compiling():
                module.compile()  # planning compiles; the first traversal must not
            return module
        finally:
            self._add(modules=1, compiling=time.perf_counter() - began)

    def _add(self, modules: int = 0, compiling: float = 0.0, waiting: float = 0.0) -> None:
        """Add to the times."""
        with self._lock:
            before = self._times
            self._times = CompileTimes(
                before.modules + modules, before.compiling + compiling, before.waiting + waiting
            )


_module = _Modules()
