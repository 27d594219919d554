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

_COPIED = 1 << 25  # bytes of the measured copy
# entries of the table, and dependent loads that are timed
_CHASED = 1 << 21
_LOADS = 1 << 15
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
    """Return the calibration of the machine, stored or measured now. ``cores`` are those that this
    thread may use now.
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
    """Return where the calibration of the machine is stored; None where nothing can be."""
    folder = numba_cache.own_folder()
    if folder is None:
        return None
    properties = (_FORMAT, platform.node(), _machine_properties(device))
    name = hashlib.sha256(repr(properties).encode()).hexdigest()[:16]
    return folder / f"machine-{device}-{name}.json"


def _machine_properties(device: str) -> tuple[str | int | None, ...]:
    """Return properties that distinguish one machine from another, as a part of the name under
    which its calibration is stored.
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
    """Read a calibration file if it is complete, this user owns it and no other user may write it.

    It holds numbers only, so a wrong file costs time but cannot change a result.
    """
    try:
        status = file.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
        machine = Machine(**json.loads(file.read_text()))
        numbers = np.array(list(asdict(machine).values()), np.float64)
    except (OSError, ValueError, TypeError):
        return None
    if (np.isfinite(numbers) & (numbers > 0)).all():
        return machine
    return None


def _write(file: Path, machine: Machine) -> None:
    """Store a calibration. If that fails, the next process measures again."""
    with contextlib.suppress(OSError), replacing(file) as partial:
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(asdict(machine)))


def _fewest_seconds(call: Callable[[], object]) -> float:
    """Return the fewest seconds of several calls, after one warm-up call."""
    call()
    seconds: list[float] = []
    while len(seconds) < _REPEATS or sum(seconds) < _SECONDS:
        start_time = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start_time)
    return min(seconds)


def _measure_cpu() -> Machine:
    """Measure the speeds of this machine."""
    source = np.ones(_COPIED, np.uint8)
    copy = np.zeros(_COPIED, np.uint8)
    order = np.random.default_rng(1).permutation(_CHASED).astype(np.int32)
    # the entry that follows each entry of the table
    chain = np.empty_like(order)
    chain[order] = np.roll(order, 1)  # one cycle through the whole table
    next_entry = 0

    def chase() -> None:
        """Follow the chain of dependent loads, which leads at random through a table."""
        # each call goes on where the one before has ended, as no cache has these entries
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
    """Return the bytes of the second-level cache of a core."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (ValueError, OSError):
        size = 0
    return max(size, _MIN_CACHE)


def _measure_gpu() -> Machine:
    """Measure the speeds of the current GPU."""
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
        load=_CYCLES_OF_A_LOAD / (1e3 * attributes.get("ClockRate", _KILOHERTZ)),
        step=_fewest_seconds(step),
    )
