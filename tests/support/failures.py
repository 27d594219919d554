"""Memory that runs out at one allocation of many: of NumPy, of the stand-in for CuPy, or of CuPy."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from unittest import mock

import numpy as np

from tests.conftest import HAS_GPU
from tests.kernels.simt import device as stand_in

LEAST = 256  # bytes; smaller arrays are no memory that a plan speaks of


class Failing:
    """Counts allocations, and lets one of them fail.

    ``at`` is its number, from 1; 0 lets none fail. ``count`` is the number of allocations so far.
    """

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    @property
    def has_failed(self) -> bool:
        return 0 < self.at <= self.count

    def is_next(self, nbytes: int) -> bool:
        """Count an allocation, and return whether it fails."""
        self.count += nbytes >= LEAST
        return nbytes >= LEAST and self.count == self.at


@contextmanager
def failing_allocation(device: str, at: int):
    """Let the ``at``-th allocation of this thread fail on a device; yield the counter."""
    failing = Failing(at)
    with _on_cpu(failing) if device == "cpu" else _on_gpu(failing) if HAS_GPU else _on_stand_in(failing):
        yield failing


# --- NumPy: a handler of its memory, as of NEP 49 ------------------------------------------------------------------------

_libc = ctypes.CDLL(None)
for _name, _arguments in {
    "malloc": [ctypes.c_size_t],
    "calloc": [ctypes.c_size_t, ctypes.c_size_t],
    "realloc": [ctypes.c_void_p, ctypes.c_size_t],
    "free": [ctypes.c_void_p],
}.items():
    getattr(_libc, _name).argtypes = _arguments
    getattr(_libc, _name).restype = None if _name == "free" else ctypes.c_void_p

_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_CALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_REALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_SET_HANDLER = 304  # of NumPy's table of functions


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", _MALLOC),
        ("calloc", _CALLOC),
        ("realloc", _REALLOC),
        ("free", _FREE),
    )


_current = Failing(0)


def _malloc(_ctx, size):
    return None if _current.is_next(size) else _libc.malloc(size)


def _calloc(_ctx, number, size):
    return None if _current.is_next(number * size) else _libc.calloc(number, size)


def _realloc(_ctx, pointer, size):
    return None if _current.is_next(size) else _libc.realloc(pointer, size)


def _free(_ctx, pointer, _size):
    _libc.free(pointer)


# Arrays that were allocated by the handler are freed by it, however long they live.
_HANDLER = _Handler(b"failing", 1, None, _MALLOC(_malloc), _CALLOC(_calloc), _REALLOC(_realloc), _FREE(_free))


def _set_handler():
    """Return NumPy's ``PyDataMem_SetHandler``, and the handler as it takes it."""
    of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
    of_capsule.restype, of_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(of_capsule(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return set_handler, new(ctypes.addressof(_HANDLER), _CAPSULE_NAME, None)


_CAPSULE_NAME = b"mem_handler"  # kept, as the capsule does not copy it


@contextmanager
def _on_cpu(failing: Failing):
    global _current
    set_handler, capsule = _set_handler()
    before, _current = _current, failing
    handler = set_handler(capsule)
    try:
        yield
    finally:
        set_handler(handler)
        _current = before


# --- CuPy and its stand-in ------------------------------------------------------------------------------------------------


@contextmanager
def _on_stand_in(failing: Failing):
    own = type(stand_in.cp)
    allocate, take = own.empty, stand_in._on_device

    def empty(self, shape, dtype=float):
        if failing.is_next(int(np.prod(shape)) * np.dtype(dtype).itemsize):
            raise MemoryError("out of memory, as the test wants it")
        return allocate(self, shape, dtype)

    def on_device(value):
        if isinstance(value, np.ndarray) and value.base is None and failing.is_next(value.nbytes):
            raise MemoryError("out of memory, as the test wants it")
        return take(value)

    with mock.patch.object(own, "empty", empty), mock.patch.object(stand_in, "_on_device", on_device):
        yield


@contextmanager
def _on_gpu(failing: Failing):
    import cupy

    allocate = cupy.cuda.get_allocator()

    def failing_allocator(nbytes):
        if failing.is_next(nbytes):
            raise cupy.cuda.memory.OutOfMemoryError(nbytes, 0, 0)
        return allocate(nbytes)

    with cupy.cuda.using_allocator(failing_allocator):
        yield
