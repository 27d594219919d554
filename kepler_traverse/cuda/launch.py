"""Launches kernels. Arguments are checked here, because CuPy passes them unchecked."""

from __future__ import annotations

import functools
import struct
from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from . import cp
from .compiler import Kernel
from .kernel_spec import Entry

# Every kernel strides over its work by the size of the grid, so any grid is correct. More blocks
# than fit at once balance the load: where a block finishes early, the next one begins.
WAVES = 4

# Dynamic shared memory that needs no attribute of the kernel: 48 KiB on every architecture, less
# its static shared memory.
_FREE_SHARED_BYTES = 40 << 10

# kernels launched by kernels that a device lets wait; cuda_api.cuh has the same number
MAX_CHILDREN = 2048

_WHOLE_DEVICE = 100  # multiprocessors; a partition of a device (MIG) has fewer

# Arguments by name, of which a kernel takes those that it declares. A plain dict has just these.
Named = ChainMap[str, Any]
Arguments = tuple[Any, ...] | dict[str, Any] | Named
_NULL = np.uint64(0)  # a pointer argument of eight bytes


class ArgumentStruct(np.ndarray):
    """The arguments of a kernel that takes one struct: an array of one element, which CuPy passes
    by value.

    Its element has no fields, because CuPy asks for a description of the dtype at each launch.
    Describing 16 fields took 9 microseconds, as long as the launch.
    """

    fields: np.ndarray  # the same memory with named fields, to change one of them
    # The arrays whose addresses the struct holds, with the index of the field. They are kept alive
    # by it.
    arrays: tuple[tuple[int, object], ...]


def launch(
    kernel: Kernel, work_items: int | np.integer, args: Arguments, *, shared_bytes: int = 0
) -> None:
    """Run a kernel on the current stream over so many work items; for 0 there is no launch.

    ``args``: CuPy arrays, contiguous, and NumPy scalars, each of the declared type; None for an
    optional array. A dict has them by name, as does what ``named`` returns. ``shared_bytes``:
    dynamic shared memory of a block.

    Raises
    ------
    TypeError
        An argument is missing, or is not what the entry point declares.
    """
    values = check_arguments(kernel, args)
    _run(kernel, blocks_for(kernel.entry, work_items), values, shared_bytes)


def launch_blocks(kernel: Kernel, blocks: int, args: Arguments, *, shared_bytes: int = 0) -> None:
    """Run a kernel as ``launch`` does, with that many blocks."""
    _run(kernel, blocks, check_arguments(kernel, args), shared_bytes)


def prepare(kernel: Kernel, blocks: int, args: Arguments) -> Callable[..., None]:
    """Check the arguments of a kernel that takes a struct once, for any number of launches: return
    ``run(**changed)``.

    ``run(name=value)`` launches with other NumPy scalars, of the declared types, in place of those
    of ``args``, whose arrays must stay where they are.
    """
    values = check_arguments(kernel, args)
    dtypes = _dtypes_by_name(kernel)

    def run(**changed: np.generic) -> None:
        _change(kernel, dtypes, values[0].fields, changed)
        _run(kernel, blocks, values, 0)

    return run


def _dtypes_by_name(kernel: Kernel) -> dict[str, np.dtype]:
    """Return the types that a kernel declares, by the names of its arguments."""
    return dict(zip(_list_names(kernel.entry), kernel.dtypes, strict=True))


def _change(
    kernel: Kernel, dtypes: dict[str, np.dtype], fields: Any, changed: dict[str, np.generic]
) -> None:
    """Set fields of a struct, which a launch copies, so that the next one may change it."""
    for name, value in changed.items():
        if value.dtype != dtypes[name]:
            raise TypeError(
                f"{name} of {kernel.entry.name} must be of type {dtypes[name]}, not {value.dtype}"
            )
        fields[name][0] = value


class PackedLaunches:
    """Launches of a kernel that takes a struct, which is packed once per set of arrays.

    Packing takes longer than a launch, and a search alternates between few sets of arrays: the two
    queues of a frontier make two.
    """

    def __init__(self, kernel: Kernel, *, shared_bytes: int = 0):
        self._kernel = kernel
        self._shared_bytes = shared_bytes
        self._dtypes = _dtypes_by_name(kernel)
        # by key: the arguments as CuPy takes them, and the fields that launches change, by name
        self._packed: dict[Hashable, tuple[tuple[Any, ...], dict[str, np.ndarray]]] = {}

    def launch(
        self,
        work_items: int | np.integer,
        key: Hashable,
        pack: Callable[[], Mapping[str, Any]],
        **changed: np.generic,
    ) -> None:
        """Run the kernel over so many work items; otherwise as ``launch_blocks``."""
        self.launch_blocks(blocks_for(self._kernel.entry, work_items), key, pack, **changed)

    def launch_blocks(
        self,
        blocks: int,
        key: Hashable,
        pack: Callable[[], Mapping[str, Any]],
        **changed: np.generic,
    ) -> None:
        """Run the kernel with that many blocks.

        ``key`` names the set of arrays. ``pack()``, which is called once per key, returns the
        arguments by name, except those in ``changed``, and others that the kernel does not take.
        ``changed`` are NumPy scalars that differ between the launches with one key: the same names
        each time, of the declared types.

        Raises
        ------
        TypeError
            An argument is missing, or is not what the entry point declares.
        """
        if key not in self._packed:
            taken = {name: value for name, value in pack().items() if name in self._dtypes}
            values = check_arguments(self._kernel, taken | changed)
            self._packed[key] = values, {name: values[0].fields[name] for name in changed}
        values, fields = self._packed[key]
        _change(self._kernel, self._dtypes, fields, changed)
        _run(self._kernel, blocks, values, self._shared_bytes)


def named(run: Any, graph: Any, **named_args: Any) -> Named:
    """Return what kernels that take a struct may take, by name, of which each takes what its struct
    declares.

    These are ``named_args``; the attributes of a run; the number of its ``target_vertices``; and
    the arrays of a graph.
    """
    of_graph = {**graph_arguments(graph), "weights": graph.weights}
    return ChainMap(
        named_args, vars(run), target_arguments(vars(run).get("target_vertices")), of_graph
    )


def graph_arguments(graph: Any) -> dict[str, Any]:
    """Return the edges of a graph, and the number of its vertices, by the names of structs."""
    return {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "n_vertices": np.int64(graph.n_vertices),
    }


def target_arguments(vertices: Any) -> dict[str, Any]:
    """Return the vertices that a search is to reach, an int64 array or None, and their number, by
    the names of structs.
    """
    return {
        "target_vertices": vertices,
        "n_target_vertices": np.int64(0 if vertices is None else vertices.size),
    }


def blocks_at_once(kernel: Kernel, shared_bytes: int = 0) -> int:
    """Return how many blocks of a kernel, each with so much dynamic shared memory, are resident on
    the current device.
    """
    processors, _ = _device_size(cp.cuda.runtime.getDevice())
    _allow_shared_memory(kernel, shared_bytes)
    return processors * cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.function.kernel.ptr, kernel.entry.block, shared_bytes
    )


def _allow_shared_memory(kernel: Kernel, shared_bytes: int) -> None:
    """Set the attribute that a kernel needs for more dynamic shared memory than is free to all."""
    if shared_bytes > _FREE_SHARED_BYTES:
        kernel.function.max_dynamic_shared_size_bytes = shared_bytes


def _run(kernel: Kernel, blocks: int, values: tuple[Any, ...], shared_bytes: int) -> None:
    """Launch a kernel with checked arguments, unless there is no block."""
    _allow_shared_memory(kernel, shared_bytes)
    if blocks:
        kernel.function(
            (blocks,),
            (kernel.entry.block,),
            values,
            **({"shared_mem": shared_bytes} if shared_bytes else {}),
        )


def check_arguments(kernel: Kernel, args: Arguments) -> tuple[Any, ...]:
    """Return the arguments as CuPy takes them, after their types are checked."""
    # Of a ``ChainMap`` the kernel takes what it declares; other names are no error there.
    declared = kernel.entry.arguments
    if isinstance(args, ChainMap):
        args = {name: args[name] for name in _list_names(kernel.entry) if name in args}
    if isinstance(args, dict):
        args = _in_order(kernel.entry, args)
    if len(args) != len(declared):
        raise TypeError(f"{kernel.entry.name} takes {len(declared)} arguments, not {len(args)}")

    values = []
    for argument, dtype, value in zip(declared, kernel.dtypes, args, strict=True):
        where = f"{argument.name} of {kernel.entry.name}"
        if argument.is_array:
            if value is None and argument.is_optional:
                values.append(_NULL)
                continue
            if not hasattr(type(value), "__cuda_array_interface__"):
                raise TypeError(f"{where} must be a CuPy array, not {type(value).__name__}")
            if not value.flags.c_contiguous:
                raise TypeError(f"{where} must be contiguous")
        elif not isinstance(value, np.generic):
            raise TypeError(f"{where} must be a NumPy scalar, not {type(value).__name__}")
        if value.dtype != dtype:
            raise TypeError(f"{where} must be of type {dtype}, not {value.dtype}")
        values.append(value)
    if kernel.layout is None:
        return tuple(values)
    return (_make_struct(kernel.layout, values),)


def _in_order(entry: Entry, args: dict[str, Any]) -> tuple[Any, ...]:
    """Return named arguments in the order of the declaration."""
    names = _list_names(entry)
    if args.keys() != set(names):
        missing = set(names) - args.keys()
        if missing:
            raise TypeError(f"{entry.name} lacks {min(missing)}")
        raise TypeError(f"{entry.name} has no argument {min(args.keys() - set(names))}")
    return tuple(args[name] for name in names)


@functools.cache
def _list_names(entry: Entry) -> tuple[str, ...]:
    """Return the names of the arguments of a kernel, in their order."""
    return tuple(argument.name for argument in entry.arguments)


def _make_struct(layout: np.dtype, values: list[Any]) -> ArgumentStruct:
    """Return a struct of these values, with the addresses of those that are arrays."""
    arrays = tuple(
        (i, value) for i, value in enumerate(values) if not isinstance(value, np.generic)
    )
    words = values.copy()
    for i, array in arrays:
        words[i] = array.data.ptr
    # A bytearray, so that fields can change. Packing is several times as fast as assigning to a
    # structured array.
    fields = np.frombuffer(bytearray(_packer(layout).pack(*words)), layout)
    packed = fields.view(np.dtype((np.void, layout.itemsize))).view(ArgumentStruct)
    packed.fields = fields
    packed.arrays = arrays
    return packed


@functools.cache
def _packer(layout: np.dtype) -> struct.Struct:
    """Return what packs the fields of a layout, aligned as in C; ``0q`` pads the end, as 8 bytes
    are the largest alignment.
    """
    return struct.Struct("@" + "".join(layout[name].char for name in layout.names or ()) + "0q")


def n_blocks(n_threads: int, block: int, largest: int) -> int:
    """Return the blocks for so many threads, at most ``largest``."""
    return min(-(-n_threads // block), largest)


def blocks_for(entry: Entry, work_items: int | np.integer) -> int:
    """Return the blocks of a kernel for so many work items."""
    return n_blocks(int(work_items) * entry.item_threads, entry.block, max_grid(entry.block))


def max_grid(block: int) -> int:
    """Return how many blocks fill the current device WAVES times."""
    processors, threads = _device_size(cp.cuda.runtime.getDevice())
    return WAVES * processors * max(1, threads // block)


def resident_threads() -> int:
    """Return how many threads are resident on the current device."""
    processors, threads = _device_size(cp.cuda.runtime.getDevice())
    return processors * threads


def max_cluster() -> int:
    """Return the blocks of the largest cluster of the current device: 16, 8, or 1 if it has no
    clusters.
    """
    device = cp.cuda.runtime.getDevice()
    capability = int(cp.cuda.Device(device).compute_capability)
    if capability < 90:
        return 1
    # More than 8 blocks need a processor group of as many multiprocessors, which whole data centre
    # devices have.
    if capability in (90, 100, 103) and _device_size(device)[0] >= _WHOLE_DEVICE:
        return 16
    return 8


def shared_memory() -> tuple[int, int]:
    """Return the bytes of shared memory that a block of the current device may have, and that a
    multiprocessor has.
    """
    return _shared_memory(cp.cuda.runtime.getDevice())


def threads_per_multiprocessor() -> int:
    """Return how many threads are resident on one multiprocessor of the current device."""
    return _device_size(cp.cuda.runtime.getDevice())[1]


@functools.cache
def _shared_memory(device: int) -> tuple[int, int]:
    """Return the bytes of shared memory that a block may have, and that a multiprocessor has, of a
    device by its number.
    """
    attributes = cp.cuda.Device(device).attributes
    per_block = attributes["MaxSharedMemoryPerBlockOptin"]
    return per_block, attributes["MaxSharedMemoryPerMultiprocessor"]


@functools.cache
def _device_size(device: int) -> tuple[int, int]:
    """Return the number of multiprocessors, and of threads that are resident on one of them."""
    attributes = cp.cuda.Device(device).attributes
    return attributes["MultiProcessorCount"], attributes["MaxThreadsPerMultiProcessor"]
