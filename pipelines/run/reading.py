"""The graph of a run, or of another program: given, read from an edge list, or stored before."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kepler_traverse import cuda
from kepler_traverse.bfs.registry import MULTI_SOURCE
from kepler_traverse.errors import (
    EdgeListWarning,
    InputError,
    OutputError,
    UnknownVertexError,
    option_text,
)
from kepler_traverse.formats.files import stored_objects
from kepler_traverse.graph import Graph
from kepler_traverse.graph.read import read_graph
from kepler_traverse.graph.storage import FORMAT, load_graph, stored_origin
from kepler_traverse.runtime.memory import available_memory
from kepler_traverse.runtime.object_stores import URL

from ..cli.constraints import has_effect
from ..cli.options import FILES_OF_IDS, Settings, read_options
from ..cli.terminal import say
from ..output.graph_cache import PlacedGraph, cached_graph, found_graph, local_cache
from ..output.tables_in_memory import ids_given
from ..worker.host_limits import MEMORY_LIMIT
from .question import advised


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Let the library warn of nothing in an edge list: the report of the graph has it, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeListWarning)
        yield


def read_and_say(paths: Any, **options: Any) -> Graph:
    """Return the graph of an edge list, as ``read_graph``, and say the hints of its report."""
    with without_warnings():
        graph = read_graph(paths, **options)
    for hint in graph.report.hints:
        say(hint)
    return graph


def may_stream(settings: Settings, graph: Graph | None = None) -> bool:
    """Whether the edges of a graph, or of any, may move from a GPU to host memory for a run."""
    if settings.algorithm != "bfs" or device_of(settings) != "cuda":
        return False
    if graph is not None and graph.derived.edges_on_host:
        return False
    return settings.strategy == "auto" or _streams_always(settings.strategy)


def _streams_always(strategy: str) -> bool:
    """Whether a strategy searches edges in host memory only."""
    return any(each.edges == "host" and each.is_called(strategy) for each in MULTI_SOURCE)


def obtain_graph(
    settings: Settings, origin: str, stored: Path | None, given: Graph | None
) -> PlacedGraph:
    """Return the graph of a run, and where it is stored already.

    The edges of a graph that the GPU does not hold are in host memory. ``origin``: digest of its
    inputs. ``stored``: where an interrupted run may have left it. ``given``: the graph itself.
    """
    if not may_stream(settings):
        return _find_or_read(settings, origin, stored, given)
    if given is not None and given.derived.edges_on_host:
        return PlacedGraph(given)
    if not _streams_always(settings.strategy):
        with contextlib.suppress(MemoryError):
            return _find_or_read(settings, origin, stored, given)
    cuda.cp.get_default_memory_pool().free_all_blocks()
    placed = _find_or_read(replace(settings, device="cpu"), origin, stored, given)
    return placed._replace(graph=placed.graph.to("cuda", edges="host"))


def _find_or_read(
    settings: Settings, origin: str, stored: Path | None, given: Graph | None
) -> PlacedGraph:
    """Return a stored graph of the inputs, or else read these."""

    def read() -> Graph:
        if given is None:
            return read_edge_list(settings)
        return given.to(device_of(settings))

    if settings.graph_cache is not None:
        if not origin:
            say(
                "--graph-cache is not used: only an edge list of local files, or "
                "in a store, can be recognised later"
            )
        elif settings.plan:
            graph = found_graph(settings.graph_cache, origin, device_of(settings), say)
            return PlacedGraph(graph or read(), reused=graph is not None)
        else:
            return cached_graph(settings.graph_cache, origin, device_of(settings), read, say)
    if stored is not None and origin and stored_origin(stored) == origin:
        # InputError: the graph is half-written, as after a crash of the machine. It is built again.
        with contextlib.suppress(InputError):
            return PlacedGraph(load_graph(stored, device_of(settings)), stored, reused=True)
    return PlacedGraph(read())


def device_of(settings: Settings) -> str:
    """Return the device on which a run searches."""
    if settings.device != "auto":
        return settings.device
    return "cuda" if cuda.available() else "cpu"


def read_edge_list(settings: Settings) -> Graph:
    """Read the edge list and build the graph, with edges in files of the graph cache if memory is
    short.

    Raises OutputError (there is no room for these files) or InputError (as ``read_graph``).
    """
    if settings.device == "cuda":
        cuda.require()
    in_files: dict[str, Any] = {}
    limit = build_limit(settings)
    if settings.graph_cache is not None and limit is not None:
        cache = local_cache(settings.graph_cache)
        # With --plan it need not be there, nor where an output is verified; the files have no
        # names.
        folder = next(path for path in (cache, *cache.parents) if os.path.isdir(path))
        if os.access(folder, os.W_OK):
            in_files = {"scratch": folder, "build_memory": limit}
    try:
        with without_warnings():  # the job says these itself, also of a stored graph
            options = read_options(settings)
            ids = {name: ids_given(options[name], name) for name in FILES_OF_IDS}
            return read_graph(
                settings.edges, device=settings.device, **{**options, **ids}, **in_files
            )
    except UnknownVertexError as error:
        for name in FILES_OF_IDS:
            listed = getattr(settings, name)
            if isinstance(listed, list) and option_text(name) in str(error):
                raise advised(error, listed, name) from None
        raise
    except OSError as error:
        if not in_files:
            raise
        raise OutputError(
            f"{in_files['scratch']}: the graph cannot be built there: {error.strerror or error}"
        ) from None


def build_limit(settings: Settings) -> int | None:
    """Return the bytes in which a graph is read and built, beyond which it is in files; None if it
    is in memory anyway.
    """
    if not has_effect("build_memory", settings):
        return None
    return settings.build_memory or min(available_memory("cpu"), MEMORY_LIMIT)


def _local_files(path: str) -> list[tuple[object, ...]]:
    """Return path, size and modification times of each file of a file, a folder or a pattern."""
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    files: list[tuple[object, ...]] = []
    for name in paths:
        inside = [name]
        if not os.path.isfile(name):
            inside = sorted(str(p) for p in Path(name).rglob("*") if p.is_file())
        for file in inside:
            facts = os.stat(file)
            files.append(
                (os.path.abspath(file), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            )
    return files


def origin_of_graph(graph: Graph) -> str:
    """Return a digest of a graph that is in memory already, as ``digest_inputs`` returns one of
    files.
    """
    rows = [] if graph.edge_rows is None else ["edge_rows"]
    return hashlib.sha256(
        json.dumps([FORMAT, "graph", graph.fingerprint, *rows]).encode()
    ).hexdigest()


def digest_inputs(settings: Settings) -> str:
    """Return a digest of the inputs of a graph; ``""`` if some inputs are neither plain local files
    nor objects of a store.

    It covers each file's absolute path, size, and modification times, the options of reading, and
    the format of stored graphs. The modification times are those of the content and of the inode;
    tools that set the former cannot set the latter. Contents are not read: that would take as long
    as reading the edge list, which the digest avoids. Of an object it covers URL, size and version.
    """
    files: list[tuple[object, ...]] = []
    of_ids = [getattr(settings, name) for name in FILES_OF_IDS]
    for path in (*settings.edges, *(each for each in of_ids if isinstance(each, str))):
        try:
            found: Sequence[tuple[object, ...]] = (
                stored_objects(path) if URL.match(path) else _local_files(path)
            )
        except (OSError, InputError):
            found = ()
        if not found:
            return ""  # the error is raised when the file is read
        files += found
    return hashlib.sha256(
        json.dumps([FORMAT, files, read_options(settings)], sort_keys=True).encode()
    ).hexdigest()
