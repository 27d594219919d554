"""Report what works on this machine, and what to install for the rest. Needs only Python.

Exit code 0 means that the job can run on the CPU, 1 that it cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass

from kepler_traverse.errors import how_to_install

from .cli import signals
from .cli.terminal import show

OLDEST_PYTHON = (3, 11)
# CUDA 13 needs a driver of the 580 series or newer.
OLDEST_DRIVER = 580

# Each runs in a separate Python, so that a crash or a hang on import is an outcome, too. The last
# printed line counts.
CPU_PROBES = {
    "Numba": """
import numba
@numba.njit(parallel=True)
def count(n):
    total = 0
    for i in numba.prange(n):
        total += 1
    return total
assert count(1000) == 1000
print(f"{numba.__version__}, {numba.get_num_threads()} threads, threading layer {numba.threading_layer()}")
""",
    "NumPy": "import numpy; print(numpy.__version__)",
    "pandas": "import pandas; print(pandas.__version__)",
    "PyArrow": "import pyarrow, pyarrow.dataset, pyarrow.parquet; print(pyarrow.__version__)",
    "Dask": (
        "import dask, distributed, bokeh; print(f'{distributed.__version__}, "
        "dashboard by Bokeh {bokeh.__version__}')"
    ),
    "Settings and progress": (
        "import pydantic, rich, psutil, fsspec; print('pydantic', pydantic.__version__)"
    ),
    "kepler_traverse": """
import numpy, kepler_traverse
frame = kepler_traverse.bfs(kepler_traverse.graph_from_edges(numpy.array([0, 1]), numpy.array([1, 2])), 0)
assert frame['distance'].tolist() == [0, 1, 2]
print('a BFS on three vertices is right')
""",
}
OF_JOB = ("Dask", "Settings and progress")  # probes of what the library alone does not need
NVRTC_PROBE = """
import ctypes, importlib.metadata
files = importlib.metadata.files('nvidia-cuda-nvrtc')
library = next(f for f in files if f.name.startswith(('libnvrtc.so', 'nvrtc64')) and 'alt' not in f.name)
major, minor = ctypes.c_int(), ctypes.c_int()
assert ctypes.CDLL(str(library.locate())).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
print(f'CUDA {major.value}.{minor.value}: kernels compile without a GPU')
"""
GPU_PROBES = {
    "CuPy": """
import cupy
assert int(cupy.arange(1000).sum()) == 499500
version = cupy.cuda.runtime.runtimeGetVersion()
print(f'{cupy.__version__}, CUDA {version // 1000}.{version % 1000 // 10}, {cupy.cuda.runtime.getDeviceCount()} GPU')
""",
    "cuDF": "import cudf; assert cudf.Series([1, 2]).sum() == 3; print(cudf.__version__)",
    "cuGraph": "import cugraph; print(cugraph.__version__)",
    "dask-cuda": "import dask_cuda; print(dask_cuda.__version__)",
    "dask-cudf": "import dask_cudf; print(dask_cudf.__version__)",
}


EXTRAS = {  # what each extra is for, and the modules that it installs
    "cloud": ("object stores", ("obstore",)),
    "tables": ("finish --table", ("deltalake", "pyiceberg")),
    "geo": ("hulls of isochrones", ("shapely",)),
    "plot": ("maps", ("matplotlib",)),
    "osm": ("OpenStreetMap", ("osmium",)),
    "omx": ("OMX matrices of planners", ("h5py",)),
    "networkx": ("backend of NetworkX", ("networkx",)),
    "torch": ("PyTorch", ("torch", "torch_geometric")),
}
# "ModuleNotFoundError: No module named 'cudf'", or "PackageNotFoundError: nvidia-cuda-nvrtc"
_MISSING = re.compile(
    r"(ModuleNotFoundError: No module named '(?P<module>[\w.]+)'|PackageNotFoundError: (.* )?(?P<package>\S+))$"
)
# the class with which a line begins: "ImportError: " or "cupy.cuda.CUDARuntimeError: "
_CLASS = re.compile(r"^([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception|Exit|Warning|Interrupt)(: |$)")


@dataclass(frozen=True)
class Finding:
    """One row of the table: what was examined, and whether it works."""

    name: str  # of what was examined
    works: bool  # whether it works as it is
    detail: str  # its version, or why it does not work
    advice: str = ""  # what to do if it does not work
    needed: bool = False  # whether the job on the CPU depends on it


def probe(name: str, code: str, advice: str, needed: bool = False) -> Finding:
    """Run code in another Python process, and return the finding.

    Its detail is the last line of output, or, if the code fails, a sentence that says why.
    ``name``: that of the row. ``advice``: what to do if the code fails. ``needed``: whether the job
    on the CPU depends on it.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            timeout=180,
        )
    except subprocess.TimeoutExpired:
        return Finding(name, False, "no result within 180 s", advice, needed)
    # The last line of the output has the version, and that of a traceback has the error.
    works = done.returncode == 0
    lines = (done.stdout if works else done.stderr).strip().splitlines()
    detail = lines[-1] if lines else f"ended with code {done.returncode}"
    if works:
        return Finding(name, True, detail, needed=needed)
    return Finding(name, False, in_words(detail), advice, needed)


def in_words(line: str) -> str:
    """Return the last line of a traceback as a sentence for users: without the class of the error,
    or as "... is not installed" if a package is missing.
    """
    missing = _MISSING.search(line)
    if missing:
        return f"{missing['module'] or missing['package']} is not installed"
    return _CLASS.sub("", line) or "it does not work"


def machine() -> list[Finding]:
    """Return the findings on Python, cores, memory and disk."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    is_new = sys.version_info >= OLDEST_PYTHON
    advice = "" if is_new else "install Python 3.11 or newer"
    findings = [
        Finding(
            "Python",
            is_new,
            f"{platform.python_version()} at {sys.executable}",
            advice,
            needed=True,
        ),
        Finding("System", True, f"{platform.platform()}, {cores} cores"),
    ]

    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):  # not on every system
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        findings.append(Finding("Memory", True, f"{memory / 2**30:.1f} GiB"))

    try:
        folder = os.getcwd()
        free = shutil.disk_usage(folder).free
        findings.append(Finding("Disk", True, f"{free / 2**30:.1f} GiB free in {folder}"))
    except FileNotFoundError:
        findings.append(
            Finding(
                "Disk", False, "the current folder does not exist any more", "change to another one"
            )
        )
    return findings


def gpus() -> list[Finding]:
    """Return the findings of nvidia-smi, one per GPU; a single one that does not work if there is
    no such program, or if it finds no GPU or does not answer.
    """
    command = shutil.which("nvidia-smi")
    if command is None:
        return [Finding("GPU", False, "no nvidia-smi on the path", "none needed for device cpu")]
    query = "--query-gpu=name,memory.total,driver_version,compute_cap"
    try:
        done = subprocess.run(
            [command, query, "--format=csv,noheader"], capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        return [Finding("GPU", False, "nvidia-smi does not respond", "restart the driver")]
    if done.returncode or not done.stdout.strip():
        lines = (done.stdout + done.stderr).strip().splitlines() or ["nvidia-smi finds no GPU"]
        return [Finding("GPU", False, lines[0], "install or restart the NVIDIA driver")]

    # One line per GPU, with the four values of the query, separated by commas.
    findings = []
    for line in done.stdout.strip().splitlines():
        name, memory, driver, capability = map(str.strip, line.split(","))
        series, _, _ = driver.partition(".")
        is_recent = series.isdecimal() and int(series) >= OLDEST_DRIVER
        detail = f"{name}, {memory}, driver {driver}, compute capability {capability}"
        advice = f"CUDA 13 needs driver {OLDEST_DRIVER} or newer; from 535 on: {how_to_install('cuda12')}"
        findings.append(Finding("GPU", is_recent, detail, "" if is_recent else advice))
    return findings


def examine() -> list[Finding]:
    """Return all findings, in the order of the table. With a Python that is too old no package is
    examined, and without a GPU that works none of its packages.
    """
    findings = machine()
    is_new_python = findings[0].works  # the first one is on Python
    if is_new_python:  # or no package could be installed
        install = how_to_install("job")
        findings += [probe(name, code, install, needed=True) for name, code in CPU_PROBES.items()]
        findings += [_extra(name, *facts) for name, facts in EXTRAS.items()]
    cards = gpus()
    findings += cards
    if any(card.works for card in cards):
        gpu = f"{how_to_install('cuda13')}, or for cuGraph and dask-cudf {how_to_install('mg')}"
        findings += [probe(name, code, gpu) for name, code in GPU_PROBES.items()]
    findings.append(
        probe("NVRTC wheel", NVRTC_PROBE, f"for tests of kernels only: {how_to_install('test')}")
    )
    return findings


def _extra(name: str, purpose: str, modules: tuple[str, ...]) -> Finding:
    """Return the finding on an optional extra of the package, by importing its modules."""
    code = f"import {', '.join(modules)}; print('{', '.join(modules)}')"
    return probe(f"Extra {name}", code, f"for {purpose}: {how_to_install(name)}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        description="Report what works on this machine, and what to install for the rest."
    )
    result.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the table"
    )
    return result


def _show_table(findings: list[Finding]) -> None:
    """Print a line per finding, and its advice below it."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "ok" if finding.works else "--"
        show(f"{mark}  {finding.name:<{width}}  {finding.detail}")
        if finding.advice:
            show(f"    {'':<{width}}  -> {finding.advice}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 if the job can run on the CPU, else 1."""
    options = parser().parse_args(arguments)
    findings = examine()

    # What the findings mean for the two devices.
    needed = {finding.name for finding in findings if finding.needed}
    failing = {finding.name for finding in findings if not finding.works}
    runs_on_cpu = not failing & needed
    runs_on_gpu = runs_on_cpu and not failing & {"GPU", *GPU_PROBES}
    code = 0 if runs_on_cpu else 1

    if options.json:
        rows = [asdict(finding) for finding in findings]
        facts = {"cpu": runs_on_cpu, "cuda": runs_on_gpu, "findings": rows}
        show(*json.dumps(facts, indent=2).splitlines())
        return code

    _show_table(findings)
    cpu = "not ready"
    if runs_on_cpu:
        cpu = "ready"
    elif not failing & (needed - set(OF_JOB)):
        cpu = "ready in Python, but not for the job"
    show("", f"device cpu: {cpu}; device cuda: {'ready' if runs_on_gpu else 'not ready'}")
    if any(finding.works for finding in findings if finding.name == "CuPy"):
        show(
            "In a checkout, bash scripts/check.sh --gpu checks results and speed "
            "on this machine's GPUs in ten minutes."
        )
    return code


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
