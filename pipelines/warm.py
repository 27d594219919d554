"""Compile ahead what runs of this machine need: ``python -m pipelines.warm``, or ``kepler-traverse
warm``.

Numba and CuPy keep compiled code on disk, and the first run of a machine waits for it. Who builds
an image, or prepares a machine, runs this once. It makes tiny runs of each kind in a temporary
folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kepler_traverse.kinds.result_kinds import ResultKind
from kepler_traverse.runtime.scratch import temporary_folder

from .batch_sources import EXIT_INTERRUPTED, run_program
from .cli import signals
from .cli.terminal import called_as, say, show

if TYPE_CHECKING:
    from kepler_traverse.search.strategy import MultiSourceStrategy

_N_VERTICES = 64
_N_SOURCES = 20
_SOURCES = ["--random-sources", str(_N_SOURCES)]
_WEIGHTS = {"bfs": (None,), "sssp": ("int64", "float64", "float32")}  # types; None without weights
_MAIN_KINDS = ("distances", "predecessors")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        prog=called_as("warm"), description=str(__doc__).partition("\n\n")[2]
    )
    result.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto: the CPU, and a GPU if it answers",
    )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or that of a tiny run that fails."""
    return run_program(parser, _warm, argv)


def _warm(parsed: argparse.Namespace) -> int:
    """Make the tiny runs on the devices that the parsed command line names, print how long they
    took, and return the exit code.
    """
    from kepler_traverse import cuda
    from kepler_traverse.cpu import compile_clock

    devices = [parsed.device]
    if parsed.device == "auto":
        devices = ["cpu", "cuda"] if cuda.available() else ["cpu"]

    # The compiled code is kept in the caches of Numba and CuPy; the results of the runs are not.
    compile_clock.listen()
    started = time.perf_counter()
    n_runs = 0
    with temporary_folder() as folder:
        for device in devices:
            say(f"compiling for device {device}")
            for words in runs(device, Path(folder)):
                n_runs += 1
                code, messages = _run_once(words, Path(folder) / f"out-{n_runs}")
                if code == EXIT_INTERRUPTED:
                    raise KeyboardInterrupt
                if code:
                    say(*messages.splitlines(), f"error: this tiny run fails: {' '.join(words)}")
                    return code

    seconds = time.perf_counter() - started
    show(
        f"compiled for {', '.join(devices)}: {compile_clock.seconds():.1f} s "
        f"of {seconds:.1f} s, in {n_runs} tiny runs"
    )
    return 0


def runs(device: str, folder: Path) -> Iterator[list[str]]:
    """Yield the command lines of tiny runs, which together compile all that a run with defaults may
    need.

    Each is a list of words. ``device``: "cpu" or "cuda". ``folder``: where their files are written.
    """
    from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS
    from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP

    for algorithm, registry in (("bfs", BFS), ("sssp", SSSP)):
        strategies = [entry for entry in registry if entry.default and entry.device == device]
        common = ["--algorithm", algorithm, "--device", device, "--json", "--no-report"]
        for weight in _WEIGHTS[algorithm]:
            words = [str(_write_edges(folder, weight)), *common]
            yield from _runs_of_main_kinds(words, folder)
            yield from _runs_of_other_kinds(words, algorithm, folder)
            # Strategies for graphs without cycles need such a graph.
            acyclic = [str(_write_edges(folder, weight, is_acyclic=True)), *common]
            for strategy in strategies:
                if "acyclic" in strategy.needs:
                    yield from _runs_of_strategy(acyclic, strategy)
                else:
                    yield from _runs_of_strategy(words, strategy)


def _runs_of_main_kinds(words: list[str], folder: Path) -> Iterator[list[str]]:
    """Yield command lines of the kinds of results that need most code, from one source and from
    several, and with a graph that is stored.

    ``words``: what the command lines begin with. ``folder``: where the stored graphs are written.
    """
    cache = ["--graph-cache", str(folder / "graphs")]
    for direction in ("--directed", "--undirected"):
        for result in _MAIN_KINDS:
            for count in ("1", str(_N_SOURCES)):
                yield [*words, direction, "--result", result, "--random-sources", count]
        for _ in range(2):  # the second one maps the stored graph, as worker processes do
            yield [*words, direction, *cache, *_SOURCES]


def _runs_of_other_kinds(words: list[str], algorithm: str, folder: Path) -> Iterator[list[str]]:
    """Yield a command line for each other kind of result that the algorithm has.

    ``words``: what the command lines begin with. ``folder``: where files for them are written.
    """
    from .output.schemas import OUTPUT_SCHEMAS

    for result, kind in OUTPUT_SCHEMAS.items():
        if result not in _MAIN_KINDS and algorithm in kind.algorithms:
            sources = _SOURCES if kind.takes_sources and not kind.needs_pairs else []
            yield [*words, "--result", result, *_needed_options(kind, folder), *sources]


def _runs_of_strategy(words: list[str], strategy: MultiSourceStrategy) -> Iterator[list[str]]:
    """Yield command lines of runs with one strategy, which begin with ``words``."""
    with_strategy = [*words, "--strategy", strategy.name, *_SOURCES]
    graph_options = []
    if "hierarchy" in strategy.needs:
        graph_options = ["--undirected", "--hierarchy", "yes"]
        yield [*with_strategy, "--directed", "--hierarchy", "yes"]
    for result in (*_MAIN_KINDS, "summary"):
        yield [*with_strategy, "--result", result, *graph_options]


def _needed_options(kind: ResultKind, folder: Path) -> list[str]:
    """Return the options, as words of a command line, that a kind of result needs besides sources.

    The graph is not connected, so ``--unconnected`` is among them where the kind has it. Files that
    options name are written to ``folder``.
    """
    attributes = folder / "attributes.csv"
    pairs = folder / "pairs.csv"
    attributes.write_text("vertex,whole,real\n1,5,0.5\n")
    pairs.write_text("origin,destination\n1,2\n1,3\n2,3\n")
    # The words of each option that a kind may need, by its name.
    options = {
        "targets": ["--targets", "1,2,3"],
        "pairs": ["--pairs", str(pairs)],
        "k": ["--nearest-k", "2"],
        "cutoffs": ["--cutoffs", "1,2"],
        "values": ["--values", "whole,real", "--vertices", str(attributes)],
        "along": ["--along", "steps"],
        "unconnected": ["--unconnected", "largest"],
    }
    needed = {*kind.needs}
    if "unconnected" in kind.all_options:
        needed.add("unconnected")
    return [word for name, words in options.items() if name in needed for word in words]


def _write_edges(folder: Path, weight: str | None, is_acyclic: bool = False) -> Path:
    """Write a small random edge list to ``folder``, and return its path.

    ``weight``: type of its weights; None for none. ``is_acyclic``: whether all edges lead to ids
    that are not smaller, so that there is no cycle.
    """
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    path = folder / f"{weight or 'plain'}{'-acyclic' * is_acyclic}.parquet"
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, _N_VERTICES, (2, 8 * _N_VERTICES))
    src[::8] = 0  # long adjacency lists are sorted by code of their own
    if is_acyclic:
        src, dst = np.sort([src, dst], axis=0)
    columns = {"src": src, "dst": dst, "steps": np.ones_like(src)}
    if weight is not None:
        weights = rng.integers(1, 9, src.size).astype(weight)
        if weight != "int64":
            weights += weights.dtype.type(0.5)  # fractions, as floats usually have
        columns["weight"] = weights
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def _run_once(words: list[str], output: Path) -> tuple[int, str]:
    """Make one run of a command line in this process, without output on the terminal; return its
    exit code and its messages.

    ``words``: the command line. ``output``: a new folder for its results.
    """
    from . import batch_sources

    messages = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
        code = batch_sources.main([*words, "--output", str(output)])
    return code, messages.getvalue()


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
