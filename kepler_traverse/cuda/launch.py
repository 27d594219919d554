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

# Arguments by name. Of a ``ChainMap`` a kernel takes those that it declares, and the others are no
# error. A plain dict has exactly the declared ones, and a tuple has them in their order.
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
    # (index of the field, array) of the arrays whose addresses the struct holds, so that they live
    # as long as it does
    arrays: tuple[tuple[int, object], ...]


def launch(
    kernel: Kernel, work_items: int | np.integer, args: Arguments, *, shared_bytes: int = 0
) -> None:
    """Run a kernel on the current stream over a number of work items.

    Parameters
    ----------
    kernel : Kernel
    work_items : int
        The number of blocks follows from it. For 0 there is no launch.
    args : tuple, dict or ChainMap
        Contiguous CuPy arrays and NumPy scalars, each of the declared type; None for an optional
        array. A tuple has them in the order of the declaration, a dict by name. A ChainMap, such as
        ``named`` returns, may have other names, too.
    shared_bytes : int
        Dynamic shared memory of a block.

    Raises
    ------
    TypeError
        An argument is missing, or is not what the entry point declares.
    """
    values = check_arguments(kernel, args)
    _run(kernel, blocks_for(kernel.entry, work_items), values, shared_bytes)


def launch_blocks(kernel: Kernel, blocks: int, args: Arguments, *, shared_bytes: int = 0) -> None:
    """Run a kernel on the current stream with a given number of blocks; for 0 there is no launch.

    ``args`` is a tuple of CuPy arrays and NumPy scalars, or has them by name, and ``shared_bytes``
    is the dynamic shared memory of a block. TypeError: an argument is missing, or is not what the
    entry point declares.
    """
    _run(kernel, blocks, check_arguments(kernel, args), shared_bytes)


def prepare(kernel: Kernel, blocks: int, args: Arguments) -> Callable[..., None]:
    """Check the arguments of a kernel once, for any number of launches with that many blocks. The
    kernel must be one that takes a struct.

    Return a function that launches it. ``run(name=value)`` launches with other NumPy scalars, of
    the declared types, in place of those of ``args``, and later launches have them, too. The arrays
    of ``args`` must stay at the same addresses; their content may change.
    """
    values = check_arguments(kernel, args)
    dtypes = _dtypes_by_name(kernel)

    def run(**changed: np.generic) -> None:
        """Launch the kernel, with these scalars in place of earlier ones."""
        _change(kernel, dtypes, values[0].fields, changed)
        _run(kernel, blocks, values, 0)

    return run


def _dtypes_by_name(kernel: Kernel) -> dict[str, np.dtype]:
    """Return the types that a kernel's arguments must have, by their names."""
    return dict(zip(_list_names(kernel.entry), kernel.dtypes, strict=True))


def _change(
    kernel: Kernel, dtypes: dict[str, np.dtype], fields: Any, changed: dict[str, np.generic]
) -> None:
    """Set fields of a packed argument struct to other scalars. TypeError: one is not of the
    declared type.

    A launch copies the struct, so that it may be changed for the next launch while the kernel runs.
    ``fields`` has, by name, an array of one element; ``dtypes`` has the declared types, and
    ``changed`` the new values.
    """
    for name, value in changed.items():
        if value.dtype != dtypes[name]:
            raise TypeError(
                f"{name} of {kernel.entry.name} must be of type {dtypes[name]}, not {value.dtype}"
            )
        fields[name][0] = value


class PackedLaunches:
    """Launches of a kernel that takes a struct, which is packed once per set of arrays and reused.

    Packing takes longer than a launch, and a search alternates between few sets of arrays: the two
    queues of a frontier make two. ``shared_bytes`` is the dynamic shared memory of a block.
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
        """Run the kernel over a number of work items, from which the number of blocks follows.

        ``key`` names the set of arrays that ``pack`` returns. ``pack()`` is called once per key and
        returns the arguments by name, except those in ``changed``: NumPy scalars that differ from
        launch to launch. TypeError: an argument is missing, or is not of the declared type.
        """
        self.launch_blocks(blocks_for(self._kernel.entry, work_items), key, pack, **changed)

    def launch_blocks(
        self,
        blocks: int,
        key: Hashable,
        pack: Callable[[], Mapping[str, Any]],
        **changed: np.generic,
    ) -> None:
        """Run the kernel with that many blocks.

        Parameters
        ----------
        blocks : int
        key : hashable
            A name of the set of arrays that ``pack`` returns.
        pack : callable
            Called once per key. Returns the arguments by name, except those in ``changed``. It may
            return others that the kernel does not take.
        **changed : NumPy scalars
            Arguments that differ between the launches with one key. They have the same names each
            time, and the declared types.

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
    """Return all arguments that kernels of a search may take, by name. A launch takes from them
    those that the kernel's struct declares.

    They are ``named_args``; the attributes of ``run``, an object that holds the arrays of a search;
    its ``target_vertices``, the vertices that the search is to reach, and their number; and the
    arrays of ``graph``. Of equal names the first in this order counts.
    """
    of_graph = {**graph_arguments(graph), "weights": graph.weights}
    return ChainMap(
        named_args, vars(run), target_arguments(vars(run).get("target_vertices")), of_graph
    )


def graph_arguments(graph: Any) -> dict[str, Any]:
    """Return the CSR of a graph without its weights, and the number of its vertices, by the names
    that kernels have for them.
    """
    return {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "n_vertices": np.int64(graph.n_vertices),
    }


def target_arguments(vertices: Any) -> dict[str, Any]:
    """Return the vertices that a search is to reach, and their number, by the names that kernels
    have for them.

    ``vertices`` is a CuPy int64 array of vertex numbers, or None if there are no such vertices.
    """
    return {
        "target_vertices": vertices,
        "n_target_vertices": np.int64(0 if vertices is None else vertices.size),
    }


def blocks_at_once(kernel: Kernel, shared_bytes: int = 0) -> int:
    """Return how many blocks of a kernel the current device runs at once, if each has
    ``shared_bytes`` of dynamic shared memory.
    """
    processors, _ = _device_size(cp.cuda.runtime.getDevice())
    _allow_shared_memory(kernel, shared_bytes)
    return processors * cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.function.kernel.ptr, kernel.entry.block, shared_bytes
    )


def _allow_shared_memory(kernel: Kernel, shared_bytes: int) -> None:
    """Set the attribute of a kernel that CUDA needs for blocks with much dynamic shared memory:
    more than any kernel may have without it.
    """
    if shared_bytes > _FREE_SHARED_BYTES:
        kernel.function.max_dynamic_shared_size_bytes = shared_bytes


def _run(kernel: Kernel, blocks: int, values: tuple[Any, ...], shared_bytes: int) -> None:
    """Launch a kernel on the current stream, unless there is no block.

    ``values`` are the arguments as ``check_arguments`` returns them, and ``shared_bytes`` is the
    dynamic shared memory of a block.
    """
    _allow_shared_memory(kernel, shared_bytes)
    if blocks:
        kernel.function(
            (blocks,),
            (kernel.entry.block,),
            values,
            **({"shared_mem": shared_bytes} if shared_bytes else {}),
        )


def check_arguments(kernel: Kernel, args: Arguments) -> tuple[Any, ...]:
    """Check the arguments of a kernel and return them as CuPy takes them: one by one, or packed in
    one struct if the kernel takes a struct.

    ``args`` has arrays and scalars: a tuple in the declared order, a dict by exactly the declared
    names, or a ChainMap, which may have other names, too. TypeError: an argument is missing, or is
    not an array or a scalar of the declared type.
    """
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
    """Return named arguments in the order in which a kernel declares them. TypeError: one is
    missing, or the kernel has no argument of a name.
    """
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
    """Return the argument struct that holds these values, one per field, and for an array its
    address. ``layout`` is the struct as a structured dtype.
    """
    arrays = tuple(
        (i, value) for i, value in enumerate(values) if not isinstance(value, np.generic)
    )
    words = values.copy()
    for i, array in arrays:
        words[i] = array.data.ptr
    # A bytearray, as fields must be writable. Packing is several times as fast as assigning to a
    # structured array.
    fields = np.frombuffer(bytearray(_packer(layout).pack(*words)), layout)
    # the same memory as one element without fields, which CuPy passes faster
    packed = fields.view(np.dtype((np.void, layout.itemsize))).view(ArgumentStruct)
    packed.fields = fields
    packed.arrays = arrays
    return packed


@functools.cache
def _packer(layout: np.dtype) -> struct.Struct:
    """Return a ``struct.Struct`` that packs values as the fields of a layout, aligned as in C.

    ``0q`` pads the end to a multiple of 8 bytes, the largest alignment of a field.
    """
    return struct.Struct("@" + "".join(layout[name].char for name in layout.names or ()) + "0q")


def n_blocks(n_threads: int, block: int, largest: int) -> int:
    """Return the number of blocks of ``block`` threads for ``n_threads`` threads, ``largest`` at
    most.
    """
    return min(-(-n_threads // block), largest)


def blocks_for(entry: Entry, work_items: int | np.integer) -> int:
    """Return the number of blocks with which a kernel is launched over a number of work items: no
    more than fill the current device ``WAVES`` times, as threads stride over the items.
    """
    return n_blocks(int(work_items) * entry.item_threads, entry.block, max_grid(entry.block))


def max_grid(block: int) -> int:
    """Return how many blocks of ``block`` threads fill the current device ``WAVES`` times."""
    processors, threads = _device_size(cp.cuda.runtime.getDevice())
    return WAVES * processors * max(1, threads // block)


def resident_threads() -> int:
    """Return how many threads the current device runs at once."""
    processors, threads = _device_size(cp.cuda.runtime.getDevice())
    return processors * threads


def max_cluster() -> int:
    """Return the largest number of blocks that the current device runs as one cluster, a group that
    shares memory: 16, 8, or 1 if it has no clusters.
    """
    device = cp.cuda.runtime.getDevice()
    capability = int(cp.cuda.Device(device).compute_capability)
    if capability < 90:  # clusters came with this generation
        return 1
    # More than 8 blocks need a processor group of as many multiprocessors, which whole data centre
    # devices have.
    if capability in (90, 100, 103) and _device_size(device)[0] >= _WHOLE_DEVICE:
        return 16
    return 8


def shared_memory() -> tuple[int, int]:
    """Return two numbers of bytes of shared memory: what one block may have on the current device,
    and what one multiprocessor has for all its blocks.
    """
    return _shared_memory(cp.cuda.runtime.getDevice())


def threads_per_multiprocessor() -> int:
    """Return how many threads one multiprocessor of the current device runs at once."""
    return _device_size(cp.cuda.runtime.getDevice())[1]


@functools.cache
def _shared_memory(device: int) -> tuple[int, int]:
    """Return what ``shared_memory`` does, for a device by its number; it is asked for once."""
    attributes = cp.cuda.Device(device).attributes
    per_block = attributes["MaxSharedMemoryPerBlockOptin"]
    return per_block, attributes["MaxSharedMemoryPerMultiprocessor"]


@functools.cache
def _device_size(device: int) -> tuple[int, int]:
    """Return the number of multiprocessors of a device, by its number, and of threads that each of
    them runs at once.
    """
    attributes = cp.cuda.Device(device).attributes
    return attributes["MultiProcessorCount"], attributes["MaxThreadsPerMultiProcessor"]
