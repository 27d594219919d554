"""Memory that runs out at one allocation of many: of NumPy, of the stand-in for CuPy, or of CuPy."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from ctypes import c_size_t, c_void_p
from functools import cache
from unittest import mock

import numpy as np
from numba import carray, cfunc, njit, types

from tests.conftest import HAS_GPU
from tests.kernels.simt import device as stand_in

LEAST = 256  # bytes; smaller arrays are no memory that a plan speaks of


class Failing:
    """Counts allocations, and lets one of them fail.

    ``at`` is its number, from 1; 0 lets none fail. ``count`` is the number of allocations so far.
    """

    def __init__(self, at: int) -> None:
        self.state = np.array([0, at, LEAST])

    @property
    def count(self) -> int:
        return int(self.state[0])

    @property
    def has_failed(self) -> bool:
        return bool(0 < self.state[1] <= self.state[0])

    def is_next(self, nbytes: int) -> bool:
        """Count an allocation, and return whether it fails."""
        return bool(_is_next(self.state, nbytes))


@njit
def _is_next(state, nbytes):
    if nbytes < state[2]:
        return False
    state[0] += 1
    return state[0] == state[1]


@contextmanager
def failing_allocation(device: str, at: int):
    """Let the ``at``-th allocation of this thread fail on a device; yield the counter."""
    failing = Failing(at)
    with (
        _on_cpu(failing)
        if device == "cpu"
        else _on_gpu(failing)
        if HAS_GPU
        else _on_stand_in(failing)
    ):
        yield failing


# --- NumPy: a handler of its memory, as of NEP 49 ------------------------------------------------------------------------


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("state", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


_SET_HANDLER = 304  # of NumPy's table of functions
_CAPSULE_NAME = b"mem_handler"  # kept, as a capsule does not copy it
_TOO_MUCH = 1 << 62  # bytes that no system has


@cache
def _handler():
    """Return the handler and its state. It stays: arrays that it allocates are freed by it, however long they live.

    Its functions are compiled, since those of Python cannot run while an error is raised.
    """
    libc = ctypes.CDLL(None)
    malloc = libc.malloc
    calloc = libc.calloc
    realloc = libc.realloc
    free = libc.free
    malloc.argtypes = [c_size_t]
    calloc.argtypes = [c_size_t, c_size_t]
    realloc.argtypes = [c_void_p, c_size_t]
    free.argtypes = [c_void_p]
    malloc.restype = c_void_p
    calloc.restype = c_void_p
    realloc.restype = c_void_p
    free.restype = None
    of_state = types.CPointer(types.int64)
    pointer = types.voidptr
    size_t = types.uintp

    @cfunc(pointer(of_state, size_t))
    def own_malloc(state, size):
        return malloc(_TOO_MUCH if _is_next(carray(state, 3), np.int64(size)) else size)

    @cfunc(pointer(of_state, size_t, size_t))
    def own_calloc(state, number, size):
        return calloc(
            number, _TOO_MUCH if _is_next(carray(state, 3), np.int64(number * size)) else size
        )

    @cfunc(pointer(of_state, pointer, size_t))
    def own_realloc(state, at, size):
        return realloc(at, _TOO_MUCH if _is_next(carray(state, 3), np.int64(size)) else size)

    @cfunc(types.void(of_state, pointer, size_t))
    def own_free(_state, at, _size):
        free(at)

    state = np.zeros(3, np.int64)
    functions = (own_malloc, own_calloc, own_realloc, own_free)
    handler = _Handler(b"failing", 1, state.ctypes.data, *(each.address for each in functions))
    return handler, state, functions


def _set_handler():
    """Return NumPy's ``PyDataMem_SetHandler``, and the handler as it takes it."""
    of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
    of_capsule.restype = ctypes.c_void_p
    of_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(
        of_capsule(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p)
    )
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return set_handler, new(ctypes.addressof(_handler()[0]), _CAPSULE_NAME, None)


@contextmanager
def _on_cpu(failing: Failing):
    set_handler, capsule = _set_handler()
    state = _handler()[1]
    state[:] = failing.state
    before = set_handler(capsule)
    try:
        yield
    finally:
        set_handler(before)
        failing.state[:] = state
        state[:] = 0, 0, LEAST


# --- CuPy and its stand-in ------------------------------------------------------------------------------------------------


@contextmanager
def _on_stand_in(failing: Failing):
    own = type(stand_in.cp)
    allocate = own.empty
    take = stand_in._on_device

    def empty(self, shape, dtype=float):
        if failing.is_next(int(np.prod(shape)) * np.dtype(dtype).itemsize):
            raise MemoryError("out of memory, as the test wants it")
        return allocate(self, shape, dtype)

    def on_device(value):
        if isinstance(value, np.ndarray) and value.base is None and failing.is_next(value.nbytes):
            raise MemoryError("out of memory, as the test wants it")
        return take(value)

    with (
        mock.patch.object(own, "empty", empty),
        mock.patch.object(stand_in, "_on_device", on_device),
    ):
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
