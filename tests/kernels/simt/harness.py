"""Compile kernel files to host libraries, and launch their kernels: one fiber per CUDA thread (runtime.cpp)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("SIMT_CACHE", HERE.parents[2] / "out" / "simt"))
COMPILER = shutil.which("g++")
# Tests under the sanitizers start a separate Python process with this variable set (test_strategies_on_host.py).
SANITIZED = bool(os.environ.get("SIMT_SANITIZE"))

FREE_SHARED_BYTES = 48 << 10  # dynamic shared memory that a kernel may have without a request
MAX_SHARED_BYTES = 64 << 10

# Compiling takes most of the time: -Og with line tables alone takes a third of the time of -O1 -g.
_COMMON = [
    "-Og",
    "-g1",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    f"-I{HERE}",
]
# Without UBSan's checks of pointers, which AddressSanitizer makes at the access, and with calls in place of inlined checks:
# this halves the time of the compiler.
_SANITIZE = [
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    *(
        "-fno-sanitize=null,object-size,pointer-overflow",
        "--param=asan-instrumentation-with-call-threshold=0",
    ),
]
# Calls of runtime.cpp at every access and basic block; libtsan itself is not linked.
_HOOKS = ["-fsanitize=thread", "--param=tsan-distinguish-volatile=1"]
_STEPS = ["-fsanitize-coverage=trace-pc"]
# a third of the time of ld
_LINK = ["-shared", "-Wl,-z,defs"] + (["-fuse-ld=gold"] if shutil.which("ld.gold") else [])
_ENTRY = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\(\w+\)\s+)?(?:KT_CLUSTER\((\w+)\)\s+)?(\w+)\s*\("
)


class SimtError(AssertionError):
    """A fault of a kernel: the kernel, a block and a thread, and the place in the source."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How kernels run.

    Attributes
    ----------
    block : int or None
        Threads per block, in place of those that the launch requests.
    resident : int
        Blocks of an ordinary launch that run at the same time; with clusters, at least one cluster.
    room : int
        Blocks that can be resident at once; a cooperative grid must fit.
    stress : bool
        Switch threads at random, at any access, with ``seed``; else in order, at atomics, barriers and collectives.
    races : bool
    step_limit : int
        Number of basic blocks and accesses after which a launch counts as endless.
    """

    block: int | None = None
    resident: int = 1
    room: int = 16
    stress: bool = False
    seed: int = 0
    races: bool = True
    step_limit: int = 50_000_000


_settings = Settings()


@contextlib.contextmanager
def settings(**changes):
    """Change the settings inside a ``with`` block."""
    global _settings
    before, _settings = _settings, replace(_settings, **changes)
    try:
        yield
    finally:
        _settings = before


class _Extent(ctypes.Structure):
    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("argument", ctypes.c_uint64),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("arrays", ctypes.POINTER(_Extent)),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "n_arrays",
                "n_arguments",
                "grid",
                "block",
                "cooperative",
                "room",
                "resident",
                "stress",
                "races",
            )
        ),
        *((name, ctypes.c_uint64) for name in ("dynamic_shared", "seed", "step_limit")),
        *((name, ctypes.c_void_p) for name in ("stacks", "events")),
        ("most_events", ctypes.c_uint64),
        ("n_events", ctypes.c_void_p),
    )


# What a thread did: kinds of accesses as in races.hpp, and those of runtime.cpp.
EVENT = np.dtype(
    [("thread", np.uint64), ("address", np.uint64), ("size", np.uint32), ("kind", np.uint32)]
)
WRITE, ATOMIC, CONSTANT = 1, 2, 4
COLLECTIVE, CHILD, IN_CHILD = 1 << 16, 1 << 17, 1 << 18
MAX_EVENTS = 1 << 20  # per launch


@dataclass(frozen=True)
class Recorded:
    """A launch: its shape, and in order what its threads did, if events were asked for."""

    kernel: str
    grid: int
    block: int
    shared: int
    events: np.ndarray

    def at(self, array: np.ndarray, kinds: int | None = None) -> np.ndarray:
        """Return the accesses to an array, with the index of the element as address; of some kinds only."""
        first = array.ctypes.data
        inside = (self.events["address"] >= first) & (self.events["address"] < first + array.nbytes)
        inside &= self.events["kind"] < COLLECTIVE
        found = self.events[inside].copy()
        if found.size:
            # A load of a constant is noted twice: as such, and as the load that the compiler made of it.
            again = (found["kind"][1:] == 0) & ((found["kind"][:-1] & CONSTANT) > 0)
            again &= (found["address"][1:] == found["address"][:-1]) & (
                found["thread"][1:] == found["thread"][:-1]
            )
            found = found[np.concatenate(([True], ~again))]
        found["address"] = (found["address"] - np.uint64(first)) // np.uint64(array.itemsize)
        return found if kinds is None else found[(found["kind"] & np.uint32(kinds)) == kinds]


_recording: tuple[list[Recorded], bool] | None = None


@contextlib.contextmanager
def recorded(events: bool = False):
    """Yield a list that gets each launch inside a ``with`` block, with what its threads did if ``events``."""
    global _recording
    before, _recording = _recording, ([], events)
    try:
        yield _recording[0]
    finally:
        _recording = before


_stacks: list[int] = []  # from the first library that runs


def _stacks_of(library: ctypes.CDLL) -> int:
    if not _stacks:
        library.simt_stacks.restype = ctypes.c_void_p
        _stacks.append(library.simt_stacks())
    return _stacks[0]


class Module:
    """A compiled kernel file; like ``cupy.RawModule``, from the source and the compiler's options.

    ``name`` is for reports; ``cooperative`` makes all launches of its kernels cooperative. Of the options,
    only definitions and include folders are used.
    """

    def __init__(
        self,
        code: str,
        options: tuple[str, ...] = (),
        name: str = "kernel",
        *,
        cooperative: bool = False,
    ):
        self._code, self._options, self._name, self.cooperative = code, options, name, cooperative
        self._libraries: dict[int | None, ctypes.CDLL] = {}

    def compile(self) -> None:
        # What threads compile ahead may never run, and g++ takes many times as long as NVRTC: it waits for the first launch.
        if threading.current_thread() is threading.main_thread():
            self.library(_settings.block)

    def library(self, block: int | None) -> ctypes.CDLL:
        if block not in self._libraries:
            options = [o for o in self._options if re.match("-[DI]", o)]
            if block is not None:
                options = [o for o in options if not o.startswith("-DBLOCK=")] + [
                    f"-DBLOCK={block}"
                ]
            self._libraries[block] = ctypes.CDLL(str(build(self._code, options, self._name)))
        return self._libraries[block]

    def get_function(self, name: str) -> Function:
        return Function(self, name)


class Function:
    """An entry point, which is called like CuPy's with arrays and NumPy scalars."""

    kernel = SimpleNamespace(ptr=0)  # its handle, as of a driver

    def __init__(self, module: Module, name: str):
        self.module, self.name = module, name
        self._max_shared = FREE_SHARED_BYTES
        self._widths: dict[int | None, list[int]] = {}

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory that launches may request."""
        return self._max_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size > MAX_SHARED_BYTES:
            raise SimtError(
                f"kernel {self.name}: {size} bytes of shared memory, and a block has {MAX_SHARED_BYTES}"
            )
        self._max_shared = size

    def __call__(
        self, grid, block, args, *, shared_mem: int = 0, cooperative: bool | None = None
    ) -> None:
        if shared_mem > self._max_shared:
            raise SimtError(
                f"kernel {self.name}: launched with {shared_mem} bytes of shared memory, and its "
                f"max_dynamic_shared_size_bytes is {self._max_shared}"
            )
        library = self.module.library(_settings.block)
        # Pointers to the words that follow them; a struct takes several words.
        n_words = [1 if _is_array(value) else -(-value.dtype.itemsize // 8) for value in args]
        firsts = np.cumsum([0, *n_words])
        pointers, words = np.zeros((2, max(int(firsts[-1]), 1)), np.uint64)
        pointers[: len(args)] = words.ctypes.data + 8 * firsts[:-1]
        widths = self._widths_in(library)
        extents = []
        for i, value in enumerate(args):
            place = words[firsts[i] : firsts[i + 1]]
            if _is_array(value):
                place[0] = value.ctypes.data
                extents.append(_Extent(value.ctypes.data, value.nbytes, i))
                size = 8
            else:
                size = value.dtype.itemsize
                place.view(np.uint8)[:size] = np.frombuffer(value.tobytes(), np.uint8)
                # Arrays that a struct points to are numbered by its fields.
                for field, array in getattr(value, "arrays", ()):
                    extents.append(_Extent(array.ctypes.data, array.nbytes, field))
            width = widths[min(i, len(widths) - 1)]
            if size != width:
                raise SimtError(
                    f"kernel {self.name}: argument {i} has {size} bytes, its parameter {width}"
                )
        if len(args) < len(widths) - 1:
            raise SimtError(f"kernel {self.name} has more than {len(args)} parameters")
        wants_events = _recording is not None and _recording[1]
        events, n_events = (
            np.zeros(MAX_EVENTS if wants_events else 0, EVENT),
            np.zeros(1, np.uint64),
        )
        run = library.simt_launch
        run.restype = ctypes.c_char_p
        report = run(
            ctypes.byref(
                _Launch(
                    kernel=self.name.encode(),
                    call=ctypes.cast(getattr(library, f"simt_call_{self.name}"), ctypes.c_void_p),
                    arguments=pointers.ctypes.data,
                    arrays=(_Extent * max(len(extents), 1))(*extents),
                    n_arrays=len(extents),
                    n_arguments=words.size,
                    grid=grid[0],
                    block=_settings.block or block[0],
                    cooperative=self.module.cooperative if cooperative is None else cooperative,
                    dynamic_shared=shared_mem,
                    stacks=_stacks_of(library),
                    events=events.ctypes.data if wants_events else None,
                    most_events=events.size,
                    n_events=n_events.ctypes.data,
                    **{
                        name: getattr(_settings, name)
                        for name in ("room", "resident", "stress", "races", "seed", "step_limit")
                    },
                )
            )
        )
        if _recording is not None:
            if n_events[0] > MAX_EVENTS:
                raise SimtError(
                    f"kernel {self.name}: {n_events[0]} events, more than are recorded; take a smaller graph"
                )
            threads = _settings.block or block[0]
            _recording[0].append(
                Recorded(self.name, grid[0], threads, shared_mem, events[: int(n_events[0])])
            )
        if report is not None:
            with_lines = re.sub(
                "<pc (0x[0-9a-f]+|0)>", lambda pc: lines_of(library._name, pc[1]), report.decode()
            )
            raise SimtError(
                with_lines + (f" (stress, seed {_settings.seed})" if _settings.stress else "")
            )

    def _widths_in(self, library: ctypes.CDLL) -> list[int]:
        """Return the bytes of each parameter, and -1 after the last."""
        if _settings.block not in self._widths:
            width, found = getattr(library, f"simt_width_{self.name}"), []
            while -1 not in found:
                found.append(width(len(found)))
            self._widths[_settings.block] = found
        return self._widths[_settings.block]


def _is_array(value) -> bool:
    """Return whether an argument is an array in memory; scalars and structs are passed by value."""
    return isinstance(value, np.ndarray) and value.dtype.kind != "V"


def lines_of(library: str, address: str) -> str:
    """Return the source line of an address, and the lines at which it is inlined."""
    found = subprocess.run(
        ["addr2line", "-i", "-e", library, address], capture_output=True, text=True, check=True
    ).stdout
    lines = [re.sub(r".*/| \(discriminator.*", "", line) for line in found.splitlines()]
    lines = [
        line
        for line in lines
        if not line.startswith(
            ("simt.hpp", "cuda_api.cuh", "memory_access.cuh", "cluster.cuh", "??")
        )
    ]
    return "at " + " in ".join(lines) if lines else f"at {address}"


def sanitized_environment() -> dict[str, str]:
    """Return the environment of a Python process in which kernels run under AddressSanitizer and UBSan."""

    def path_of(library):
        return subprocess.run(
            [COMPILER, f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()

    return {
        **os.environ,
        "SIMT_SANITIZE": "1",
        # libstdc++ too: otherwise AddressSanitizer does not find the function that throws, and stops at the first exception.
        "LD_PRELOAD": f"{path_of('libasan.so')} {path_of('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
    }


def build(code: str, options: list[str], name: str) -> Path:
    """Compile a kernel file for the host, unless the cache holds the result; return the library."""
    flags = [
        *_COMMON,
        "-Wconversion",
        "-Wno-unknown-pragmas",
        "-std=c++17",
        *(_SANITIZE if SANITIZED else _HOOKS),
        *_STEPS,
        *os.environ.get("SIMT_FLAGS", "").split(),
        *options,
    ]
    entries, runtime = _ENTRY.findall(code), _runtime()
    headers = [text for o in options if o.startswith("-I") for text in _texts(Path(o[2:]))]
    library = _cached(f"{name}-", ".so", [code, *flags, *headers, runtime.name])
    if not library.exists():
        source = library.with_suffix("") / f"{name}.cu"
        lines = [f"SIMT_ENTRY({entry})" for _, entry in entries]
        lines += [f"SIMT_CLUSTERS({entry}, {n})" for n, entry in entries if n]
        _write(source, "\n".join([code, *lines, ""]))
        kernels = library.with_suffix(".o")
        _compile([*flags, "-x", "c++", "-c", str(source)], kernels)
        # Without -fsanitize=thread here, because the runtime replaces libtsan.
        _compile(
            [*_LINK, *(_SANITIZE if SANITIZED else []), str(kernels), str(runtime), "-ldl"], library
        )
    return library


def _runtime() -> Path:
    """Return the runtime as an object file; it is not instrumented, but AddressSanitizer checks its atomics."""
    flags = [
        *_COMMON,
        "-O2",
        "-std=c++20",
        *(["-fsanitize=address"] if SANITIZED else []),
        *os.environ.get("SIMT_RUNTIME_FLAGS", "").split(),
    ]
    built = _cached("runtime-", ".o", [*flags, *_runtime_texts()])
    if not built.exists():
        _compile([*flags, "-c", str(HERE / "runtime.cpp")], built)
    return built


def _write(file: Path, text: str) -> None:
    """Write a file that another process may be writing, or compiling, at the same time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder) / file.name
        made.write_text(text)
        made.replace(file)


def _compile(arguments: list[str], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        made = Path(folder) / output.name
        # The compiler itself need not run under the sanitizer that this process may have been started with.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(
            [COMPILER, *arguments, "-o", str(made)], capture_output=True, text=True, env=environment
        )
        if done.returncode:
            raise SimtError(f"g++ {' '.join(arguments)}\n{done.stderr}")
        made.replace(output)


def _cached(prefix: str, suffix: str, texts) -> Path:
    digest = hashlib.sha256("\0".join([_version(), *texts]).encode()).hexdigest()[:20]
    return CACHE / f"{prefix}{digest}{suffix}"


@functools.cache
def _version() -> str:
    if COMPILER is None:
        raise SimtError("kernels need g++ to run on the host; install it")
    return subprocess.run(
        [COMPILER, "--version"], capture_output=True, text=True, check=True
    ).stdout


def _texts(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("*.cuh"))]


def _runtime_texts() -> list[str]:
    return [(HERE / name).read_text() for name in ("runtime.cpp", "races.hpp", "simt.hpp")]
