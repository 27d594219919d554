"""The cache of built graphs: ``--graph-cache``.

The key of a graph is a digest of its input (see ``prepare.origin_of``). If two runs need the same graph at the same time,
the second waits for a lock and uses what the first built. A stored graph is compared with its fingerprint; a damaged or
incomplete one is built again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import load_graph, require_private, stored_origin, write_graph

from ..output.file_locks import NoLocksError, open_lock, take_lock

_SHOWN = 16  # of the digest in names; the whole of it is in the stored graph


def cached_graph(
    cache: Path, origin: str, device: str, build: Callable[[], Graph], say: Callable[[str], None]
) -> tuple[Graph, Path, bool]:
    """Return a graph from the cache, or build and store it.

    Parameters
    ----------
    cache : Path
        Created if it does not exist.
    origin : str
        Digest of the input of the graph.
    device : {"cpu", "cuda"}
    say : callable
        Called with a message if something takes time or was wrong.

    Returns
    -------
    graph : Graph
    folder : Path
        Where the graph is stored.
    found : bool
        Whether it was stored before.

    Raises
    ------
    OutputError
        The cache cannot be written to, or other users can write to it.
    """
    folder = cache / f"graph-{origin[:_SHOWN]}"
    with _only_one(cache, folder.with_suffix(".lock"), say):
        graph = found_graph(cache, origin, device, say)
        if graph is not None:
            return graph, folder, True
        graph = build()
        for left in cache.glob(f"{folder.name}.*.tmp"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            write_graph(graph, folder, origin)
        except OSError as error:
            raise _cannot_keep(cache, error) from None
    return graph, folder, False


def found_graph(cache: Path, origin: str, device: str, say: Callable[[str], None]) -> Graph | None:
    """Return a graph from the cache if it exists and is intact; writes nothing.

    Raises
    ------
    OutputError
        Other users can write to the cache.
    """
    if os.path.lexists(cache):
        _require_private(cache)
    folder = cache / f"graph-{origin[:_SHOWN]}"
    if stored_origin(folder) != origin:
        return None
    try:
        return load_graph(folder, device)
    except InputError as error:
        say(f"the graph is built again: {error}")
        return None


@contextlib.contextmanager
def _only_one(cache: Path, lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(cache)
        file = open_lock(lock)
    except OSError as error:
        raise _cannot_keep(cache, error) from None
    try:
        try:
            if not take_lock(file):
                say(f"another run builds the same graph in {cache}; waiting for it")
                take_lock(file, wait=True)
        except NoLocksError as error:
            raise OutputError(
                f"--graph-cache {cache}: {error.strerror}, so two runs could not exclude each other; take another folder"
            ) from None
        except OSError as error:
            raise _cannot_keep(cache, error) from None
        yield
    finally:
        os.close(file)  # releases the lock, too; the system does so if this process is killed


def _require_private(cache: Path) -> None:
    """Refuse a cache that others can write graphs to: results would be certified against those."""
    try:
        require_private(cache.resolve())
    except InputError as error:
        raise OutputError(f"--graph-cache {error}") from None


def _cannot_keep(cache: Path, error: OSError) -> OutputError:
    return OutputError(f"--graph-cache {cache} cannot be written to: {error.strerror or error}; take another folder")
