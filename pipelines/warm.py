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
_WEIGHTS = {"bfs": (None,), "sssp": ("int64", "float64", "float32")}
_FEW = ("distances", "predecessors")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
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


def _warm(given: argparse.Namespace) -> int:
    """Make the tiny runs, and say how long they took."""
    from kepler_traverse import cuda
    from kepler_traverse.cpu import compile_clock

    devices = [given.device]
    if given.device == "auto":
        devices = ["cpu", "cuda"] if cuda.available() else ["cpu"]
    compile_clock.listen()
    started = time.perf_counter()
    n_runs = 0
    with temporary_folder() as folder:
        for each in devices:
            say(f"compiling for device {each}")
            for words in runs(each, Path(folder)):
                n_runs += 1
                code, text = _run(words, Path(folder) / f"out-{n_runs}")
                if code == EXIT_INTERRUPTED:
                    raise KeyboardInterrupt
                if code:
                    say(*text.splitlines(), f"error: this tiny run fails: {' '.join(words)}")
                    return code
    seconds = time.perf_counter() - started
    show(
        f"compiled for {', '.join(devices)}: {compile_clock.seconds():.1f} s "
        f"of {seconds:.1f} s, in {n_runs} tiny runs"
    )
    return 0


def runs(device: str, folder: Path) -> Iterator[list[str]]:
    """Yield the command lines of tiny runs, which between them need all that a run by default
    needs.
    """
    from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS
    from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP

    for algorithm, listed in (("bfs", BFS), ("sssp", SSSP)):
        strategies = [each for each in listed if each.default and each.device == device]
        common = ["--algorithm", algorithm, "--device", device, "--json", "--no-report"]
        for weight in _WEIGHTS[algorithm]:
            words = [str(_edges(folder, weight)), *common]
            yield from _few_kinds(words, folder)
            yield from _other_kinds(words, algorithm, folder)
            acyclic = [str(_edges(folder, weight, is_acyclic=True)), *common]
            for strategy in strategies:
                own = acyclic if "acyclic" in strategy.needs else words
                yield from _of_strategy(own, strategy)


def _few_kinds(words: list[str], folder: Path) -> Iterator[list[str]]:
    """Yield runs of the kinds that need most code, from one source and from several, and by a graph
    that is stored.
    """
    cache = ["--graph-cache", str(folder / "graphs")]
    for direction in ("--directed", "--undirected"):
        for result in _FEW:
            for count in ("1", str(_N_SOURCES)):
                yield [*words, direction, "--result", result, "--random-sources", count]
        for _ in range(2):  # the second one maps the stored graph, as worker processes do
            yield [*words, direction, *cache, *_SOURCES]


def _other_kinds(words: list[str], algorithm: str, folder: Path) -> Iterator[list[str]]:
    """Yield a run of each other kind of results."""
    from .output.schemas import OUTPUT_SCHEMAS

    for result, kind in OUTPUT_SCHEMAS.items():
        if result not in _FEW and algorithm in kind.algorithms:
            sources = _SOURCES if kind.takes_sources and not kind.needs_pairs else []
            yield [*words, "--result", result, *_needed_by(kind, folder), *sources]


def _of_strategy(words: list[str], strategy: MultiSourceStrategy) -> Iterator[list[str]]:
    """Yield runs with a strategy."""
    named = [*words, "--strategy", strategy.name, *_SOURCES]
    more = []
    if "hierarchy" in strategy.needs:
        more = ["--undirected", "--hierarchy", "yes"]
        yield [*named, "--directed", "--hierarchy", "yes"]
    for result in (*_FEW, "summary"):
        yield [*named, "--result", result, *more]


def _needed_by(kind: ResultKind, folder: Path) -> list[str]:
    """Return the options that a result needs, beside sources, and what a graph that is not
    connected needs.
    """
    attributes = folder / "attributes.csv"
    pairs = folder / "pairs.csv"
    attributes.write_text("vertex,whole,real\n1,5,0.5\n")
    pairs.write_text("origin,destination\n1,2\n1,3\n2,3\n")
    given = {
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
    return [word for name, words in given.items() if name in needed for word in words]


def _edges(folder: Path, weight: str | None, is_acyclic: bool = False) -> Path:
    """Write a small edge list, and return its path."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    path = folder / f"{weight or 'plain'}{'-acyclic' * is_acyclic}.parquet"
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, _N_VERTICES, (2, 8 * _N_VERTICES))
    src[::8] = 0  # long adjacency lists are sorted by code of their own
    if is_acyclic:
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    columns = {"src": src, "dst": dst, "steps": np.ones_like(src)}
    if weight is not None:
        values = rng.integers(1, 9, src.size).astype(weight)
        columns["weight"] = values if weight == "int64" else values + values.dtype.type(0.5)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def _run(words: list[str], output: Path) -> tuple[int, str]:
    """Make one run; return its exit code, and what it said."""
    from . import batch_sources

    text = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(text):
        code = batch_sources.main([*words, "--output", str(output)])
    return code, text.getvalue()


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
