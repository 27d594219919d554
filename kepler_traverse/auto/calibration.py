"""Calibration: cores, cache size and three speeds of the machine, measured once per machine in less
than 0.5 s.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from .. import cuda
from ..cpu import machine_speeds, numba_cache, threads
from ..cuda.copies import copy_into
from ..runtime.regular_files import replacing
from .costs import Machine, load_costs

_COPIED = 1 << 25  # bytes of the copy that is timed
_CHASED = 1 << 21  # entries of the table through which dependent loads lead
_LOADS = 1 << 15  # dependent loads that are timed in one call
_STEPS = 1 << 18  # simple operations that are timed
# timed calls, of which the fastest counts, and the least seconds of all together: in a shorter time
# other processes may keep the machine busy throughout, and what is measured is stored for good
_REPEATS = 5
_SECONDS = 0.1
_MIN_CACHE = 1 << 18  # bytes of a cache whose size is unknown
# A load from the L2 of a GPU took about the same number of cycles on all devices of the last ten
# years. Its time is derived from the clock rate; the second number is the clock rate for drivers
# that do not report one.
_CYCLES_OF_A_LOAD = 260
_KILOHERTZ = 1_500_000
_FORMAT = 4  # of what is stored; another number measures again


def get_machine(device: str) -> Machine:
    """Return the calibration of the machine for a device, "cpu" or "cuda": stored by an earlier
    process, or measured now. On the CPU, ``cores`` are those that this thread may use now.
    """
    machine = _load_or_measure(device)
    if device == "cpu":
        return replace(machine, cores=threads.count())
    return machine


@functools.cache
def _load_or_measure(device: str) -> Machine:
    """Return the calibration of the machine for a device, as it is stored or else measured."""
    file = _calibration_file(device)
    machine = None if file is None else _read(file)
    if machine is None:
        try:
            if device == "cuda":
                machine = _measure_gpu()
            else:
                machine = _measure_cpu()
        except MemoryError:
            # too little memory to measure: use the machine of the constants, and do not store it
            return load_costs(device).measured_on
        if file is not None:
            _write(file, machine)
    return machine


def _calibration_file(device: str) -> Path | None:
    """Return the file in which the calibration of the machine for ``device``, "cpu" or "cuda", is
    stored; None where no file can be written.

    Its name depends on the properties of the machine, so that a folder may be shared by machines.
    """
    folder = numba_cache.own_folder()
    if folder is None:
        return None
    properties = (_FORMAT, platform.node(), _machine_properties(device))
    name = hashlib.sha256(repr(properties).encode()).hexdigest()[:16]
    return folder / f"machine-{device}-{name}.json"


def _machine_properties(device: str) -> tuple[str | int | None, ...]:
    """Return properties that distinguish one machine from another: those of the current GPU if
    ``device`` is "cuda", else those of the processor. They are a part of the name of the file with
    its calibration.
    """
    if device == "cuda":
        gpu = cuda.cp.cuda.Device()
        attributes = gpu.attributes
        return (
            gpu.compute_capability,
            attributes["MultiProcessorCount"],
            attributes.get("ClockRate"),
        )
    return platform.machine(), platform.processor(), os.cpu_count()


def _read(file: Path) -> Machine | None:
    """Return the calibration that a file holds; None if there is no such file, it is damaged,
    another user owns it, or another user may write it.

    It holds numbers only, so a wrong file costs time but cannot change a result.
    """
    try:
        status = file.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
        machine = Machine(**json.loads(file.read_text()))
        # raises an error for a value that is no number
        numbers = np.array(list(asdict(machine).values()), np.float64)
    except (OSError, ValueError, TypeError):
        return None
    if (np.isfinite(numbers) & (numbers > 0)).all():
        return machine
    return None


def _write(file: Path, machine: Machine) -> None:
    """Store the calibration ``machine`` in a file that only this user may read. If that fails, the
    next process measures again.
    """
    with contextlib.suppress(OSError), replacing(file) as partial:
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(asdict(machine)))


def _fewest_seconds(call: Callable[[], object]) -> float:
    """Return the fewest seconds that a call took, of several after one for warming up. Other
    processes only add time.
    """
    call()
    seconds: list[float] = []
    while len(seconds) < _REPEATS or sum(seconds) < _SECONDS:
        start_time = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start_time)
    return min(seconds)


def _measure_cpu() -> Machine:
    """Measure the speeds of this machine: of copies, dependent loads and simple operations."""
    source = np.ones(_COPIED, np.uint8)
    copy = np.zeros(_COPIED, np.uint8)
    order = np.random.default_rng(1).permutation(_CHASED).astype(np.int32)
    # Each entry names the entry that follows it, in one cycle through the whole table: no load can
    # begin before the previous load has ended.
    chain = np.empty_like(order)
    chain[order] = np.roll(order, 1)
    next_entry = 0

    def chase() -> None:
        """Follow the chain of dependent loads, which leads at random through the table, by a number
        of steps.
        """
        # Each call goes on where the previous call has ended: no cache has the next entries yet.
        nonlocal next_entry
        next_entry = machine_speeds.chase(chain, next_entry, _LOADS)

    return Machine(
        cores=threads.count(),
        cache=_second_level_bytes(),
        copy=_fewest_seconds(lambda: np.copyto(copy, source)) / _COPIED,
        load=_fewest_seconds(chase) / _LOADS,
        step=_fewest_seconds(lambda: machine_speeds.walk(_STEPS)) / _STEPS,
    )


def _second_level_bytes() -> int:
    """Return the bytes of the second-level cache of a core; a small number if the system does not
    say.
    """
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (ValueError, OSError):
        size = 0
    return max(size, _MIN_CACHE)


def _measure_gpu() -> Machine:
    """Measure the speeds of the current GPU: of a copy and of a launch with a wait. That of a load
    follows from the clock rate.
    """
    cp = cuda.cp
    gpu = cp.cuda.Device()
    attributes = gpu.attributes
    source = cp.zeros(_COPIED, np.uint8)
    copied = cp.empty(_COPIED, np.uint8)
    word = cp.zeros(1, np.int64)

    def copy() -> None:
        """Copy within GPU memory, and wait."""
        copy_into(copied, source)
        cp.cuda.get_current_stream().synchronize()

    def step() -> None:
        """Launch a kernel, and wait for what it writes."""
        word.fill(0)
        word.get()

    return Machine(
        cores=attributes["MultiProcessorCount"],
        cache=max(attributes.get("L2CacheSize", 0), _MIN_CACHE),
        copy=_fewest_seconds(copy) / _COPIED,
        # the clock rate is in kHz
        load=_CYCLES_OF_A_LOAD / (1e3 * attributes.get("ClockRate", _KILOHERTZ)),
        step=_fewest_seconds(step),
    )
