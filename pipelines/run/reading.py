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
from ..output.graph_cache import PlacedGraph, cached_graph, find_graph, local_cache
from ..output.tables_in_memory import ids_given
from ..worker.host_limits import MEMORY_LIMIT
from .question import with_advice


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Silence warnings about an edge list within the block, because the report of the graph has
    them, too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeListWarning)
        yield


def read_and_say(paths: Any, **options: Any) -> Graph:
    """Return the graph of an edge list, and print the hints of its report.

    Parameters are those of ``read_graph``: the paths of the files, and options of reading.
    """
    with without_warnings():
        graph = read_graph(paths, **options)
    for hint in graph.report.hints:
        say(hint)
    return graph


def may_stream(settings: Settings, graph: Graph | None = None) -> bool:
    """Whether the edges of a graph may move from a GPU to host memory, from which a search streams
    them; only searches of hops do so.

    Without a ``graph``, whether the settings allow it. It is False if the edges are there already.
    """
    if settings.algorithm != "bfs" or device_of(settings) != "cuda":
        return False
    if graph is not None and graph.derived.edges_on_host:
        return False
    return settings.strategy == "auto" or _streams_always(settings.strategy)


def _streams_always(strategy: str) -> bool:
    """Whether the strategy of this name only searches graphs whose edges are in host memory.

    ``MULTI_SOURCE`` has the strategies of BFS from several sources. ``edges`` of a strategy is
    "host" if it needs them there.
    """
    return any(entry.edges == "host" and entry.is_called(strategy) for entry in MULTI_SOURCE)


def obtain_graph(
    settings: Settings, origin: str, stored: Path | None, in_memory: Graph | None
) -> PlacedGraph:
    """Return the graph of a run, and where it is stored already.

    If the GPU does not hold the graph, and the settings allow it, its edges are in host memory.
    ``origin``: digest of its inputs. ``stored``: folder in which an interrupted run may have left
    it. ``in_memory``: the graph itself, if a caller gave it.
    """
    if not may_stream(settings):
        return _find_or_read(settings, origin, stored, in_memory)
    if in_memory is not None and in_memory.derived.edges_on_host:
        return PlacedGraph(in_memory)
    if not _streams_always(settings.strategy):
        with contextlib.suppress(MemoryError):
            return _find_or_read(settings, origin, stored, in_memory)
    # Memory that was allocated before the GPU was full is released, for the graph without its
    # edges.
    cuda.cp.get_default_memory_pool().free_all_blocks()
    placed = _find_or_read(replace(settings, device="cpu"), origin, stored, in_memory)
    return placed._replace(graph=placed.graph.to("cuda", edges="host"))


def _find_or_read(
    settings: Settings, origin: str, stored: Path | None, in_memory: Graph | None
) -> PlacedGraph:
    """Return a graph from the cache or from ``stored``, or else read the edge list, or take the
    graph that the caller gave; also where it is stored, if it is.

    ``origin``: digest of its inputs, "" if they cannot be recognized later. ``stored``: folder in
    which an interrupted run may have left it. ``in_memory``: the graph itself, if a caller gave it.
    """

    def read() -> Graph:
        """Return the graph without looking for a stored one."""
        if in_memory is None:
            return read_edge_list(settings)
        return in_memory.to(device_of(settings))

    if settings.graph_cache is not None:
        if not origin:
            say(
                "--graph-cache is not used: only an edge list of local files, or "
                "in a store, can be recognised later"
            )
        elif settings.plan:  # a plan writes nothing, so that a graph that it reads is not stored
            graph = find_graph(settings.graph_cache, origin, device_of(settings), say)
            return PlacedGraph(graph or read(), reused=graph is not None)
        else:  # from the cache; or by ``read``, and then it is stored there
            return cached_graph(settings.graph_cache, origin, device_of(settings), read, say)
    if stored is not None and origin and stored_origin(stored) == origin:
        # The digest that is stored with the graph is that of these inputs, so it is the same graph.
        # InputError: the graph is half-written, as after a crash of the machine. It is built again.
        with contextlib.suppress(InputError):
            return PlacedGraph(load_graph(stored, device_of(settings)), stored, reused=True)
    return PlacedGraph(read())


def device_of(settings: Settings) -> str:
    """Return the device on which a run searches: "cpu" or "cuda"."""
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
    in_files: dict[str, Any] = {}  # arguments of ``read_graph`` for edges in files
    limit = build_limit(settings)
    if settings.graph_cache is not None and limit is not None:
        # The cache need not exist with --plan, nor where an output is verified: the files, which
        # have no names, are then in the nearest folder above that exists.
        cache = local_cache(settings.graph_cache)
        folder = next(path for path in (cache, *cache.parents) if os.path.isdir(path))
        if os.access(folder, os.W_OK):
            in_files = {"scratch": folder, "build_memory": limit}
    try:
        with without_warnings():  # the job says these itself, also of a stored graph
            options = read_options(settings)
            # Options of vertices, such as ``only_vertices``: lists of ids, which the command line
            # or a caller gives, become ``IdFile`` objects; names of tables in memory their column
            # of ids; paths of files and None stay.
            options |= {name: ids_given(options[name], name) for name in FILES_OF_IDS}
            # ``scratch`` is where ``read_graph`` may put edges, and ``build_memory`` the bytes of
            # memory beyond which it does.
            return read_graph(settings.edges, device=settings.device, **options, **in_files)
    except UnknownVertexError as error:
        # An id is no vertex of the graph. If an option lists ids, and the error is about it, a
        # single id may be meant as the name of a file: the error then gets advice on that.
        for name in FILES_OF_IDS:
            ids = getattr(settings, name)
            if isinstance(ids, list) and option_text(name) in str(error):
                raise with_advice(error, ids, name) from None
        raise
    except OSError as error:
        if not in_files:
            raise
        raise OutputError(
            f"{in_files['scratch']}: the graph cannot be built there: {error.strerror or error}"
        ) from None


def build_limit(settings: Settings) -> int | None:
    """Return the bytes of memory beyond which a graph is read and built in files: the setting, or
    by default the free memory. None if it always is built in memory.
    """
    # Without a cache, and for graphs whose rows are looked up, a limit would have no effect.
    if not has_effect("build_memory", settings):
        return None
    return settings.build_memory or min(available_memory("cpu"), MEMORY_LIMIT)


def _describe_local_files(path: str) -> list[tuple[object, ...]]:
    """Return the files that a path, a folder or a pattern names, as facts by which a change of them
    is noticed.

    Each entry has the absolute path, the size in bytes, and the times of the last change of content
    and inode, in nanoseconds.
    """
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    facts: list[tuple[object, ...]] = []
    for name in paths:
        files = [name]
        if not os.path.isfile(name):
            files = sorted(str(below) for below in Path(name).rglob("*") if below.is_file())
        for file in files:
            status = os.stat(file)
            facts.append(
                (os.path.abspath(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            )
    return facts


def origin_of_graph(graph: Graph) -> str:
    """Return the digest of a graph in memory, by which a stored copy of it is found. For files
    ``digest_inputs`` returns such a digest.
    """
    facts = [FORMAT, "graph", graph.fingerprint]
    if graph.edge_rows is not None:
        facts.append("edge_rows")
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def digest_inputs(settings: Settings) -> str:
    """Return a digest of the inputs of a graph; ``""`` if some inputs are neither plain local files
    nor objects of a store.

    It covers each file's absolute path, size, and modification times, the options of reading, and
    the format of stored graphs. The modification times are those of the content and of the inode;
    tools that set the former cannot set the latter. Contents are not read: that would take as long
    as reading the edge list, which the digest avoids. Of an object it covers URL, size and version.
    """
    options = [getattr(settings, name) for name in FILES_OF_IDS]
    id_files = [value for value in options if isinstance(value, str)]  # others are lists of ids
    facts: list[tuple[object, ...]] = []
    for path in (*settings.edges, *id_files):
        files: Sequence[tuple[object, ...]] = ()
        with contextlib.suppress(OSError, InputError):  # raised when the file is read
            files = stored_objects(path) if URL.match(path) else _describe_local_files(path)
        if not files:
            return ""
        facts += files
    text = json.dumps([FORMAT, facts, read_options(settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
