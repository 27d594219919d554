"""The cache of built graphs: ``--graph-cache``.

The key of a graph is a digest of its input (see ``run.reading.digest_inputs``). If two runs need the
same graph at the same time, the second waits for a lock and uses what the first built. A stored
graph is compared with its fingerprint; a damaged or incomplete one is built again.

A cache in an object store is one for many hosts. Each of them copies a graph once, to a cache of
its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import META, load_graph, stored_origin, write_graph
from kepler_traverse.runtime.file_locks import NoLocksError, open_lock, take_lock
from kepler_traverse.runtime.object_stores import (
    URL,
    cache_folder,
    fetch,
    objects_below,
    open_store,
)
from kepler_traverse.runtime.regular_files import require_private

from .store import ObjectStore

# name of a file of a stored graph: "offsets.npy", or "hierarchy/meta.json" in a folder within it
_FILE = re.compile(r"(\w+/)?\w+\.\w+")
_NAMED_DIGITS = 16  # of the digest in names; the whole of it is in the stored graph


class PlacedGraph(NamedTuple):
    """A graph, and where it is stored."""

    graph: Graph  # on the device of the run
    folder: Path | None = None  # where it is stored already; None if nowhere
    reused: bool = False  # whether it was loaded from there, rather than built


def cached_graph(
    place: str | Path,
    origin: str,
    device: str,
    build: Callable[[], Graph],
    say: Callable[[str], None],
) -> PlacedGraph:
    """Return a graph from the cache, or build and store it.

    Parameters
    ----------
    place : str or Path
        The cache: a folder, which is created if it does not exist, or the URL of one in an object
        store.
    origin : str
        Digest of the input of the graph, by which it is found.
    device : str
        "cpu" or "cuda", to which the graph is loaded.
    build : callable
        Returns the graph; called if the cache does not have it.
    say : callable
        Called with a message for the user if something takes time or was wrong.

    Raises
    ------
    OutputError
        The cache cannot be written to, or other users can write to it.
    """
    cache = local_cache(place)
    folder = cache / _folder_name(origin)
    with _locked(cache, folder.with_suffix(".lock"), say):
        graph = find_graph(place, origin, device, say)
        if graph is not None:
            return PlacedGraph(graph, folder, reused=True)

        graph = build()
        for leftover in cache.glob(f"{folder.name}.*.tmp"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            write_graph(graph, folder, origin)
        except OSError as error:
            raise _cannot_write(cache, error) from None

        # A large graph was built in temporary files. It is replaced by the stored one, so that
        # these files give their space back.
        if graph.report.in_files:
            graph = replace(load_graph(folder, device, verify=False), report=graph.report)
        if URL.match(str(place)):
            put_graph(str(place), folder, origin)
    return PlacedGraph(graph, folder)


def _folder_name(origin: str) -> str:
    """Return the name of the folder of a graph, by the digest of its input."""
    return f"graph-{origin[:_NAMED_DIGITS]}"


def local_cache(place: str | Path) -> Path:
    """Return the folder of a cache on this host; for the URL of a cache in a store, the folder to
    which its graphs are copied.
    """
    if URL.match(str(place)):
        return cache_folder("graphs")
    return Path(place).absolute()


def put_graph(place: str, folder: Path, origin: str, within: str = "") -> None:
    """Copy a stored graph, or a folder within it, to a cache in a store.

    ``place``: URL of the cache. ``folder``: where the graph is stored here. ``origin``: digest of
    the input of the graph. ``within``: name of the folder in it to copy, such as that of a
    hierarchy; "" for the whole graph. Raises OutputError: the store does not take it.
    """
    # The metadata of a folder (the file ``META``) are copied after its other files, and those of
    # the graph last. So a reader that finds the metadata finds all else.
    files = [path for path in (folder / within).rglob("*") if path.is_file()]
    files.sort(key=lambda path: (path == folder / META, path.name == META, path))
    try:
        store = ObjectStore(f"{place.rstrip('/')}/{_folder_name(origin)}", folder)
        for path in files:
            store.put(str(path.relative_to(folder)), path)
    except OSError as error:
        raise _cannot_write(place, error) from None


def _fetch(place: str, folder: Path) -> None:
    """Copy a graph from a store to ``folder`` of this host, if the store has the whole graph.

    ``place``: URL of the cache, in which the graph has the name of ``folder``. It is copied to a
    temporary folder, which is then renamed, so that ``folder`` is whole or not there.
    """
    url = f"{place.rstrip('/')}/{folder.name}"
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    try:
        names = [item.url[len(url) + 1 :] for item in objects_below(url)]
        if META not in names:
            return

        store = open_store(url)
        for name in filter(_FILE.fullmatch, names):
            # A folder without metadata, such as a hierarchy, is still being put by another host, so
            # it is left out.
            if os.path.join(os.path.dirname(name), META) not in names:
                continue
            copy = partial / name
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fetch(store, name, copy)
            copy.chmod(0o600)  # no other user may read or change it

        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except OSError as error:
        raise OutputError(
            f"--graph-cache {place}: the graph cannot be copied: {error.strerror or error}"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def find_graph(
    place: str | Path, origin: str, device: str, say: Callable[[str], None]
) -> Graph | None:
    """Return a graph from the cache; None if it does not exist, or is damaged. From a cache in a
    store, it is copied to this host.

    ``place``: a folder, or the URL of one in a store. ``origin``: the digest of the graph's input.
    ``device``: "cpu" or "cuda", to which the graph is loaded. ``say``: called with a message if the
    graph is damaged.

    Raises OutputError: other users can write to the cache, or the store cannot be read.
    """
    cache = local_cache(place)
    if os.path.lexists(cache):
        _require_private(cache)
    folder = cache / _folder_name(origin)
    # ``stored_origin`` reads the whole digest, "" if the folder has no whole graph. The name of the
    # folder has a part of it alone.
    if stored_origin(folder) != origin and URL.match(str(place)):
        _fetch(str(place), folder)
    if stored_origin(folder) != origin:
        return None
    try:
        return load_graph(folder, device)
    except InputError as error:
        say(f"the graph is built again: {error}")
        return None


def copy_graph(place: str, origin: str) -> Path:
    """Copy a graph of a cache in a store to this host, unless another process has; return its
    folder.

    ``place``: URL of the cache. ``origin``: the digest of the graph's input. Raises OutputError: it
    is not in the cache, or it cannot be copied.
    """
    cache = local_cache(place)
    folder = cache / _folder_name(origin)
    say = lambda _: None  # noqa: E731
    with _locked(cache, folder.with_suffix(".lock"), say):
        if stored_origin(folder) != origin and find_graph(place, origin, "cpu", say) is None:
            raise OutputError(
                f"{place}: there is no whole graph {folder.name}; run again with --resume"
            )
    return folder


@contextlib.contextmanager
def _locked(cache: Path, lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a graph within the block; wait for it if another process holds it.

    ``cache``: folder of the cache, which is created if there is none. ``lock``: path of the lock
    file. ``say``: called with a message if this process has to wait. Raises OutputError: the cache
    cannot be written to, other users can write to it, or its file system has no locks.
    """
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(cache)
        file = open_lock(lock)
    except OSError as error:
        raise _cannot_write(cache, error) from None
    # From here on the file is closed in any case, also if the lock cannot be taken.
    try:
        try:
            if not take_lock(file):
                say(f"another run builds the same graph in {cache}; waiting for it")
                take_lock(file, wait=True)
        except NoLocksError as error:
            raise OutputError(
                f"--graph-cache {cache}: {error.strerror}, so two runs could not "
                "exclude each other; take another folder"
            ) from None
        except OSError as error:
            raise _cannot_write(cache, error) from None
        yield
    finally:
        os.close(file)  # releases the lock, too; the system does so if this process is killed


def _require_private(cache: Path) -> None:
    """Raise OutputError for a cache that other users can write graphs to.

    Results are certified against the graph, so a false graph would make false results look right.
    """
    try:
        require_private(cache.resolve())
    except InputError as error:
        raise OutputError(f"--graph-cache {error}") from None


def _cannot_write(cache: Path | str, error: OSError) -> OutputError:
    """Return the OutputError that says why a cache cannot be written to."""
    return OutputError(
        f"--graph-cache {cache} cannot be written to: "
        f"{error.strerror or error}; take another folder"
    )
