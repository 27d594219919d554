"""A prepared graph on disk, so that several processes of one machine share its pages instead of
building it each.

The folder holds plain ``.npy`` files, an Arrow file for string ids, and ``meta.json``, which is
written last and has a SHA-256 of each file and of itself. None of these formats can hold code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import MAX_INTEGER, pyarrow, to_host
from .._arrays import arrow_compute as compute
from ..cpu import csr_check
from ..errors import InputError
from ..hierarchy.stored import FOLDERS, has_hierarchy, load_hierarchy, open_array, save_hierarchy
from ..hub_labels.stored import LABEL_FOLDERS, has_labels, load_labels, save_labels
from ..runtime.regular_files import (
    compute_digests,
    deny_others,
    differing_file,
    partial_folder,
    read_sealed,
    refuse_irregular,
    require_private,
    sealed,
)
from . import BuildReport, Graph
from .closed import fault_of_closed
from .csr import NO_ROW, list_distinct_ids, no_edge

# The version of the format, in the metadata. Raise it also where building a graph changes what it
# holds: stored ones are refused then.
FORMAT = 4
META = "meta.json"  # the file of the metadata
_MAX_META_BYTES = 2**24  # of a file of metadata that is read
_STRINGS = "ids.arrow"  # the file of ids that are strings; integers are in ``ids.npy``
# names of the files of a stored graph beside the metadata, hierarchies and labels aside
_FILES = {
    _STRINGS,
    *(
        f"{name}.npy"
        for name in (
            "offsets",
            "targets",
            "weights",
            "ids",
            "edge_rows",
            "edges_of_rows",
            "closed",
        )
    ),
}
# ids that are compared at a time, which avoids a temporary array as long as the ids
_PART = 1 << 22


def save_graph(graph: Graph, folder: str | os.PathLike[str]) -> None:
    """Write a graph to a folder, from which ``load_graph`` maps it without building it again.

    The folder appears complete or not at all. An existing stored graph of this name is replaced.

    Parameters
    ----------
    graph : Graph
        On either device; its hierarchies and hub labels are stored, too.
    folder : path

    Raises
    ------
    InputError
        Something else than a stored graph has this name, or the folder cannot be written.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    path = arguments.list_paths("folder", [folder])[0]
    if os.path.lexists(path) and not is_stored_graph(path):
        raise InputError(f"{path} exists and is no stored graph; name a new folder, or remove it")
    try:
        write_graph(graph, path)
    except OSError as error:
        raise InputError(
            f"{path}: the graph cannot be written: {error.strerror or error}"
        ) from error


def write_graph(graph: Graph, folder: str | os.PathLike[str], origin: str = "") -> None:
    """Write a graph to a folder, which appears complete or not at all; what is there is removed.

    Unlike ``save_graph`` it does not check whether the folder that it removes is a stored graph.
    ``origin`` is a text that tells the input of the graph, such as a digest, and ``stored_origin``
    returns it; ``""`` if it is not known. Raises OSError.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with partial_folder(folder) as partial:
        _write_into(partial, graph, origin)
        # A folder cannot be renamed to one that has files.
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)


def _write_into(partial: Path, graph: Graph, origin: str) -> None:
    """Write the files of a graph to an existing folder.

    These are its arrays, then the metadata with a digest of each file, and then the hierarchies and
    labels that are known, which have metadata of their own.
    """
    names = ("offsets", "targets", "weights", "edge_rows", "edges_of_rows", "closed")
    arrays = {name: getattr(graph, name) for name in names}
    if graph.has_string_ids:
        table = pyarrow.table({"ids": graph.ids})
        with pyarrow.ipc.new_file(str(partial / _STRINGS), table.schema) as writer:
            writer.write_table(table)
    else:
        arrays["ids"] = graph.ids
    # What the graph does not have, such as weights, has no file.
    arrays = {name: array for name, array in arrays.items() if array is not None}
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", np.ascontiguousarray(to_host(array)), allow_pickle=False)

    meta = {
        "format": FORMAT,
        "files": compute_digests(partial, sorted(path.name for path in partial.iterdir())),
        "directed": graph.directed,
        # without the seconds that building took, so that equal graphs have equal files
        "report": graph.report.facts(),
        "integer_weights": graph.integer_weights,
        "float_distances": graph.float_distances,
        "negative_loops": sorted(graph.negative_loops.items()),
        "fingerprint": graph.fingerprint,
        "origin": origin,
    }
    # JSON with a SHA-256 of itself
    (partial / META).write_bytes(sealed(meta))

    # Hierarchies and labels, in a folder per metric. The fingerprint ties them to this graph.
    for metric in FOLDERS:
        hierarchy = graph.derived.known_hierarchy(metric)
        if hierarchy is not None:
            save_hierarchy(hierarchy, partial, graph.fingerprint, metric)
        labels = graph.derived.known_labels(metric)
        if labels is not None:
            save_labels(labels, partial, graph.fingerprint)
    deny_others(partial)  # ``load_graph`` refuses files that other users could have written


def load_graph(
    folder: str | os.PathLike[str], device: str = "cpu", *, verify: bool = True
) -> Graph:
    """Read a graph that ``save_graph`` wrote.

    On the CPU the arrays are copy-on-write mappings of the files: pages are read on first use and
    shared between processes, and writes are private to a process. Every load checks that the arrays
    form a graph, which reads all of them once.

    Parameters
    ----------
    folder : path
    device : {"cpu", "cuda"}
    verify : bool
        Compare each file with its SHA-256, and refuse files that other users could have written.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        The folder holds no stored graph, it is damaged, or with ``verify`` others could have
        written it.
    DeviceError
        This machine cannot use the device.
    """
    arguments.device(device)
    folder = Path(arguments.list_paths("folder", [folder])[0])
    meta = _read_meta(folder)
    if arguments.flag("verify", verify):
        for path in (folder, *folder.rglob("*")):
            require_private(path)  # raises InputError if another user could have written it

    # Whatever is wrong with the files becomes one error, which says what it is.
    try:
        if verify:
            # A text that names the first file whose SHA-256 is another one; "" if none is.
            fault = differing_file(folder, meta["files"])
            if fault:
                raise ValueError(fault)

        # The arrays, as mappings of their files. Names of files come from the metadata, which
        # ``_read_meta`` has refused unless all are in ``_FILES``.
        arrays = {
            name.removesuffix(".npy"): open_array(folder / name)
            for name in meta["files"]
            if name != _STRINGS
        }
        if "ids" in arrays:
            ids = arrays["ids"]
        else:
            ids = _open_strings(folder / _STRINGS)
        graph = Graph(
            offsets=arrays["offsets"],
            targets=arrays["targets"],
            weights=arrays.get("weights"),
            ids=ids,
            directed=meta["directed"],
            report=BuildReport(**meta["report"]),
            integer_weights=meta["integer_weights"],
            float_distances=meta["float_distances"],
            negative_loops={int(vertex): weight for vertex, weight in meta["negative_loops"]},
            edge_rows=arrays.get("edge_rows"),
            edges_of_rows=arrays.get("edges_of_rows"),
            closed=arrays.get("closed"),
            known_fingerprint=meta["fingerprint"],
        )

        # What the classes do not check themselves: that the arrays form a graph.
        if any(vertex >= graph.n_vertices for vertex in graph.negative_loops):
            raise ValueError("a loop is at no vertex")
        # Each check returns a text that says what is wrong, "" if nothing is. In an undirected
        # graph (the last argument) each edge must be there in both directions.
        fault = csr_check.find_fault(
            graph.offsets, graph.targets, graph.weights, not graph.directed
        )
        fault = fault or fault_of_closed(graph)
        fault = fault or _fault_of_ids(graph) or _fault_of_edge_rows(graph)
        if fault:
            raise ValueError(fault)
        if graph.integer_weights and graph.derived.heaviest > MAX_INTEGER:
            raise ValueError("an integer weight is beyond int64")

        # Hierarchies and labels. Loading one compares the fingerprint in its metadata with that of
        # the graph.
        for metric in FOLDERS:
            if has_hierarchy(folder, metric):
                hierarchy = load_hierarchy(folder, graph.n_vertices, graph.fingerprint, metric)
                graph.derived.keep_hierarchy(hierarchy, metric)
            if has_labels(folder, metric):
                labels = load_labels(folder, graph.n_vertices, graph.fingerprint, metric)
                graph.derived.keep_labels(labels, metric)
    except MemoryError:
        raise  # says nothing about the files
    except Exception as error:
        # whatever NumPy and PyArrow make of damaged bytes: no list of it is complete
        raise InputError(
            f"{folder}: the stored graph is damaged ({error}); delete it and start again"
        ) from None
    return graph.to(device)


def _fault_of_ids(graph: Graph) -> str:
    """Describe what is wrong with the ids of a graph; ``""`` if they are integers or strings that
    ascend, each once.
    """
    ids = list_distinct_ids(graph)
    if graph.has_string_ids:
        if ids.type not in (pyarrow.string(), pyarrow.large_string()) or ids.null_count:
            return f"its ids are {ids.type} with {ids.null_count} nulls"
        ids.validate(full=True)
        is_ascending = len(ids) < 2 or compute.all(compute.less(ids[:-1], ids[1:])).as_py()
    else:
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or not ids.dtype.isnative:
            return f"its ids are {ids.dtype}, not integers"
        # Slices of the ids, and of the id that follows each. The last slice of followers is one
        # shorter, as the last id has none.
        pairs = (
            (ids[begin : begin + _PART], ids[begin + 1 : begin + 1 + _PART])
            for begin in range(0, ids.size - 1, _PART)
        )
        is_ascending = all(bool((low[: high.size] < high).all()) for low, high in pairs)
    if is_ascending:
        return ""
    return "its ids do not ascend, each once"


def _fault_of_edge_rows(graph: Graph) -> str:
    """Describe what in ``edge_rows`` or ``edges_of_rows`` is out of range; ``""`` if nothing is.

    ``Graph`` has checked the shapes of both arrays.
    """
    # Only edges from a closed vertex to itself have no row.
    low_row = 0 if graph.closed is None else NO_ROW
    # Self-loops of vertices 0, 1, ... are -1, -2, ...; after them comes the number for no edge.
    low_edge = no_edge(graph.n_vertices)
    return _fault_of_numbers(
        "edge_rows", graph.edge_rows, low_row, graph.report.rows
    ) or _fault_of_numbers("edges_of_rows", graph.edges_of_rows, low_edge, graph.n_edges)


def _fault_of_numbers(name: str, array: Any, low: int, end: int) -> str:
    """Describe what is wrong with integers that must be in ``low..end - 1``; ``""`` if all are, or
    if ``array`` is None. ``name`` is what the message calls them.
    """
    if array is None:
        return ""
    if not array.dtype.isnative:
        return f"{name} cannot be {array.dtype} of shape {array.shape}"
    parts = (array.reshape(-1)[begin : begin + _PART] for begin in range(0, array.size, _PART))
    if any(int(part.min()) < low or int(part.max()) >= end for part in parts):
        return f"{name} holds numbers outside {low}..{end - 1}"
    return ""


def is_stored_graph(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a graph of ``write_graph``, of any version, and nothing else;
    no link is followed.

    Only names are compared. What is such a folder may be replaced by another graph.
    """
    folder = Path(folder)
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    known = {META, *FOLDERS.values(), *LABEL_FOLDERS.values(), *_FILES}
    return {META, "offsets.npy"} <= names <= known


def stored_origin(folder: str | os.PathLike[str]) -> str:
    """Return the ``origin`` that ``write_graph`` stored, ``""`` if the folder holds no stored
    graph, or a damaged one.
    """
    try:
        return _read_meta(Path(folder))["origin"]
    except InputError:
        return ""


def _read_meta(folder: Path) -> dict[str, Any]:
    """Return the metadata of a stored graph: a dict with the keys that ``_write_into`` writes, each
    value of the right type.

    Raises InputError: the folder has no metadata, or they are damaged or of another format.
    """
    try:
        # ``is_whole``: the file is, byte for byte, what ``sealed`` wrote, its checksum included.
        meta, is_whole = read_sealed(folder / META, _MAX_META_BYTES)
    except (OSError, ValueError):
        raise InputError(f"{folder}: no stored graph is here") from None
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise InputError(
            f"{folder}: the stored graph is damaged, or of another program ({META} names no "
            "format); build it again from its edge list in another folder"
        )
    if meta["format"] != FORMAT:
        raise InputError(
            f"{folder}: the stored graph has format {meta['format']}, and this version reads format "
            f"{FORMAT}; build it again from its edge list, and save that"
        )
    # A wrong key says more than a wrong checksum, so it is named first.
    fault = _meta_fault(meta) or ("" if is_whole else "it differs from its checksum")
    if fault:
        raise InputError(
            f"{folder}: the stored graph is damaged ({META}: {fault}); delete it and start again"
        )
    return meta


def _meta_fault(meta: dict[str, Any]) -> str:
    """Describe what is wrong with the metadata of a stored graph, a dict of JSON; ``""`` if nothing
    is.
    """
    # The files must be files of a graph, of which exactly one has ids.
    files = meta.get("files")
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        return "files must be names and their SHA-256"
    if (
        not {"offsets.npy", "targets.npy"} <= set(files) <= _FILES
        or len({"ids.npy", _STRINGS} & set(files)) != 1
    ):
        # other names could be paths outside the folder
        return f"files cannot be {', '.join(files)}"

    for name in ("directed", "integer_weights", "float_distances"):
        if not isinstance(meta.get(name), bool):
            return f"{name} must be true or false"
    loops = meta.get("negative_loops")
    if not isinstance(loops, list) or not all(_is_loop(entry) for entry in loops):
        return "negative_loops must be vertices and weights"
    if not isinstance(meta.get("origin"), str):
        return "origin must be text"
    if not isinstance(meta.get("fingerprint"), str) or not re.fullmatch(
        "[0-9a-f]{64}", meta["fingerprint"]
    ):
        return "fingerprint must be a SHA-256"

    # The report: fields of a ``BuildReport``, of the types of their defaults.
    report = meta.get("report")
    defaults = {name: getattr(BuildReport(), name) for name in BuildReport.recorded_names()}
    if not isinstance(report, dict) or not set(report) <= set(defaults):
        return f"report must have {', '.join(defaults)}"
    wrong = [name for name, value in report.items() if not _is_like(value, defaults[name])]
    if wrong:
        return f"report.{wrong[0]} cannot be {json.dumps(report[wrong[0]])[:40]}"
    return ""


def _is_loop(entry: object) -> bool:
    """Return whether an entry of JSON is a list of a vertex number and the negative weight of an
    edge from this vertex to itself.
    """
    if not isinstance(entry, list) or len(entry) != 2:
        return False
    vertex, weight = entry
    return (
        type(vertex) is int and 0 <= vertex < 2**63 and type(weight) in (int, float) and weight < 0
    )


def _is_like(value: object, default: object) -> bool:
    """Return whether a value from JSON may be the value of a field of a ``BuildReport`` whose
    default is ``default``.

    JSON has lists in place of tuples. Integers are counts, so none is negative.
    """
    if isinstance(default, tuple):
        return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return type(value) is type(default) and not (isinstance(value, int) and value < 0)


def _open_strings(path: Path) -> pyarrow.Array:
    """Return the string ids in an Arrow file as one array. It is a view of the mapped file if the
    file has one chunk, else a copy.
    """
    refuse_irregular(path)
    column = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all().column("ids")
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()
