"""Compiles kernel files: at most once per process; CuPy's disk cache keeps the binaries between processes."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from ..compile_clock import compiling
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
    function: object
    dtypes: tuple[np.dtype, ...]
    layout: np.dtype | None = None  # of the argument struct, for a kernel that takes one


def kernel(entry: Entry, vertex_t, weight_t=np.float32) -> Kernel:
    """Return the kernel of an entry point for the given types.

    Raises
    ------
    DeviceError
        There is no GPU to compile for.
    """
    types = chosen_types(vertex_t, weight_t)
    with compiling():
        module = _module(entry.file, options(entry, types), entry.is_cooperative)
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
        # The key of CuPy's disk cache covers the source and the options, not the headers. Without their digest, a changed
        # header would run the old binary.
        f"-DKT_HEADERS=0x{header_digest(folders)}",
        f"-DBLOCK={entry.block}",
        *(f"-D{name}={C_NAMES[dtype.name]}" for name, dtype in sorted(types.items())),
        *(f"-D{name}={value}" for name, value in entry.constants),
        # Relocatable code is slower, so only kernels that launch children are compiled with it.
        *(("-dc", "-DKT_DEVICE_LAUNCH") if entry.launches_children else ()),
    )


@functools.cache
def header_folders(file: Path) -> tuple[Path, ...]:
    """Return the folders with the headers of a kernel file: the shared ones, and its own folder if it has headers."""
    beside = file.parent
    return (include_directory(), beside) if any(beside.glob("*.cuh")) else (include_directory(),)


@functools.cache
def header_digest(folders: tuple[Path, ...]) -> str:
    """Return a hexadecimal digest of the names and texts of all headers in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for header in sorted(folder.rglob("*.cuh")):
            digest.update(header.relative_to(folder).as_posix().encode() + b"\0" + header.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def include_directory() -> Path:
    """Return the folder of the shared headers, which must be on disk for the compiler."""
    folder = resources.files(__package__) / "include"
    if not isinstance(folder, Path):
        raise DeviceError("the CUDA headers lie in a zip archive; install kepler-traverse unpacked, as pip does")
    return folder


@functools.cache
def _module(file: Path, compiler_options: tuple[str, ...], is_cooperative: bool):
    require()
    require_private_cache()
    code = file.read_text(encoding="utf-8")
    module = cp.RawModule(code=code, options=compiler_options, enable_cooperative_groups=is_cooperative)
    module.compile()  # planning compiles; the first traversal must not
    return module
