"""A replacement for the part of CuPy that the library uses: NumPy arrays that report a GPU, and kernels on fibers."""

from __future__ import annotations

import ctypes
import functools
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import kepler_traverse
from kepler_traverse.cuda import compiler, launch

from . import harness

GARBAGE = 0xA5  # content of memory that was not written


class _PinnedMemory:
    """``cupy.cuda.PinnedMemory``."""

    def __init__(self, size):
        self.pages = np.full(size, GARBAGE, np.uint8)


class _UnownedMemory:
    """``cupy.cuda.UnownedMemory``."""

    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id

    def holds(self, address: int) -> bool:
        return self.ptr <= address < self.ptr + self.size


class _Stream:
    """``cupy.cuda.Stream``, of a device that does one thing after another."""

    def __init__(self, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def wait_event(self, event):
        if not event.is_recorded:
            raise harness.SimtError("a stream waits for an event that no stream has recorded")

    def synchronize(self):
        pass


class _Event:
    """``cupy.cuda.Event``."""

    def __init__(self, disable_timing=False):  # noqa: ARG002
        self.is_recorded = False

    def record(self, stream=None):  # noqa: ARG002
        self.is_recorded = True


class _Memory:
    """The methods of ``cupy.ndarray.data``."""

    def __init__(self, array):
        self._array, self.ptr = array, array.ctypes.data

    @property
    def mem(self):
        """The memory that an array was made of, unless a copy has memory of its own."""
        mem = self._array.made_of
        return mem if mem is not None and mem.holds(self.ptr) else None

    def copy_from_host_async(self, address: int, size: int, stream=None) -> None:  # noqa: ARG002
        array = self._array
        if not array.flags.c_contiguous or size > array.nbytes:
            raise harness.SimtError(f"{size} bytes copied to an array of {array.nbytes}")
        ctypes.memmove(array.ctypes.data, address, size)

    def memset_async(self, value: int, size: int) -> None:
        # From the first element on, regardless of the array's shape.
        array = self._array
        if not array.flags.c_contiguous or size > array.nbytes:
            raise harness.SimtError(
                f"{size} bytes set from the first of an array of shape {array.shape} and strides {array.strides}"
            )
        array.reshape(-1).view(np.uint8)[:size] = value

    def copy_from_device_async(self, source: _Memory, size: int) -> None:
        for array in (self._array, source._array):
            if not array.flags.c_contiguous or size > array.nbytes:
                raise harness.SimtError(
                    f"{size} bytes copied to or from an array of {array.nbytes}"
                )
        self._array.reshape(-1).view(np.uint8)[:size] = source._array.reshape(-1).view(np.uint8)[
            :size
        ]


class Array(np.ndarray):
    """A NumPy array that the library treats as one of CuPy."""

    made_of: _UnownedMemory | None = None

    def __new__(cls, shape, dtype=float, memptr=None):
        """Return an array in memory that exists, as ``MemoryPointer`` gives it."""
        pages = memptr.owner.pages.data
        array = np.ndarray.__new__(cls, shape, dtype, pages)
        array.made_of = memptr
        return array

    def __array_finalize__(self, obj):
        self.made_of = getattr(obj, "made_of", None)

    @property
    def __cuda_array_interface__(self):
        return {**self.__array_interface__, "version": 3}

    @property
    def data(self):
        return _Memory(self)

    def set(self, array):
        if (array.dtype, array.shape) != (self.dtype, self.shape):
            raise harness.SimtError(f"{array.dtype} {array.shape} set in {self.dtype} {self.shape}")
        self[...] = array

    def get(self, out=None):
        if out is None:
            return np.array(self, subok=False)
        out[...] = self.view(np.ndarray)
        return out


def _on_device(value):
    if isinstance(value, tuple):
        return tuple(map(_on_device, value))
    return value.view(Array) if isinstance(value, np.ndarray) else value


@functools.cache
def _kernel_files() -> dict[str, str]:
    """Return the names of the library's kernel files by their text."""
    return {
        path.read_text(encoding="utf-8"): path.stem
        for path in Path(kepler_traverse.__file__).parent.rglob("*.cu")
    }


class _Cupy:
    """CuPy's functions by NumPy's of the same name."""

    ndarray = Array

    @staticmethod
    def RawModule(code, options, enable_cooperative_groups=False):
        return harness.Module(
            code,
            options,
            _kernel_files().get(code, "kernel"),
            cooperative=enable_cooperative_groups,
        )

    class cuda:
        runtime = SimpleNamespace(
            getDeviceCount=lambda: 1,
            getDevice=lambda: 0,
            setDevice=lambda _device: None,
            memGetInfo=lambda: (1 << 32, 1 << 32),
            CUDARuntimeError=OSError,
        )
        driver = SimpleNamespace(
            occupancyMaxActiveBlocksPerMultiprocessor=lambda _function, _block, _shared: 4
        )
        alloc_pinned_memory = bytearray
        get_current_stream = staticmethod(_Stream)
        PinnedMemory = _PinnedMemory
        PinnedMemoryPointer = staticmethod(lambda memory, _offset: memory.pages.data)
        UnownedMemory = _UnownedMemory
        MemoryPointer = staticmethod(lambda memory, _offset: memory)
        Stream = _Stream
        Event = _Event

        class Device:
            """A device with few resident blocks, so that threads take several items each and a launch starts few fibers."""

            compute_capability = "90"

            def __init__(self, _number=0):
                self.attributes = {
                    "MultiProcessorCount": 1,
                    "MaxThreadsPerMultiProcessor": 128,
                    "MaxThreadsPerBlock": 1024,
                    "MaxSharedMemoryPerBlock": harness.FREE_SHARED_BYTES,
                    "MaxSharedMemoryPerBlockOptin": harness.MAX_SHARED_BYTES,
                    "MaxSharedMemoryPerMultiprocessor": harness.MAX_SHARED_BYTES,
                }

            def synchronize(self):
                """Kernels of the harness have ended when their launch returns."""

    class lib:
        class stride_tricks:
            @staticmethod
            def as_strided(array, shape, strides):
                return np.lib.stride_tricks.as_strided(array, shape, strides, subok=True)

    @staticmethod
    def get_default_memory_pool():
        return SimpleNamespace(
            free_bytes=lambda: 0, total_bytes=lambda: 0, free_all_blocks=lambda: None
        )

    get_default_pinned_memory_pool = get_default_memory_pool

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *args, **options: _on_device(found(*args, **options))

    def empty(self, shape, dtype=float):
        array = np.empty(shape, dtype).view(Array)
        array.reshape(-1).view(np.uint8)[...] = GARBAGE
        return array

    def empty_like(self, array):
        return self.empty(array.shape, array.dtype)

    def asarray(self, array, dtype=None):
        if isinstance(array, Array) and (dtype is None or array.dtype == dtype):
            return array
        return np.array(array, dtype).view(Array)  # a copy, as a transfer makes one


cp = _Cupy()


@contextmanager
def present():
    """Make the library use this device as CuPy and GPU."""
    holders = [
        m
        for name, m in sys.modules.items()
        if name.startswith("kepler_traverse") and "cp" in vars(m)
    ]
    before = [(module, module.cp) for module in holders]
    cupy = sys.modules.get("cupy")
    caches = (compiler._module, launch._device_size)
    try:
        for module in holders:
            module.cp = cp
        sys.modules["cupy"] = cp
        for cache in caches:
            cache.cache_clear()
        assert kepler_traverse.cuda.available()
        yield cp
    finally:
        for module, was in before:
            module.cp = was
        sys.modules.pop("cupy")
        if cupy is not None:
            sys.modules["cupy"] = cupy
        for cache in caches:
            cache.cache_clear()
