"""A prepared graph on disk, so that several processes of one machine share its pages instead of building it each.

A folder of plain ``.npy`` files, for string ids an Arrow file, and ``meta.json``, which is written last. Nothing in it can
hold code.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ._arrays import to_host
from .errors import InputError
from .graph import BuildReport, Graph

FORMAT = 2  # raise it also where building a graph changes what it holds: stored ones are refused then
_META = "meta.json"


def save_graph(graph: Graph, folder, origin: str = "") -> None:
    """Write a graph to a folder, which appears whole or not at all.

    Parameters
    ----------
    graph : Graph
        On either device.
    folder : path
        What is there under this name is replaced.
    origin : str
        What the graph was made of, for ``stored_origin``.
    """
    folder = Path(folder)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write_into(partial, graph, origin)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_into(partial: Path, graph: Graph, origin: str) -> None:
    arrays = {"offsets": graph.offsets, "targets": graph.targets, "weights": graph.weights}
    if graph.has_string_ids:
        _save_strings(graph.ids, partial / "ids.arrow")
    else:
        arrays["ids"] = graph.ids
    arrays = {name: array for name, array in arrays.items() if array is not None}
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", np.ascontiguousarray(to_host(array)), allow_pickle=False)
    meta = {
        "format": FORMAT,
        "arrays": sorted(arrays),
        "directed": graph.directed,
        "report": asdict(graph.report),
        "fingerprint": graph.fingerprint,
        "origin": origin,
    }
    (partial / _META).write_text(json.dumps(meta, indent=1))


def load_graph(folder, device: str = "cpu", *, verify: bool = False) -> Graph:
    """Read a graph that ``save_graph`` wrote.

    On the CPU the arrays are views of the files: pages are read on first use and shared between processes; what a
    process writes to them stays its own.

    Parameters
    ----------
    folder : path
    device : {"cpu", "cuda"}
    verify : bool
        Compare the fingerprint of what was read with the stored one.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        The folder holds no such graph, or it is damaged.
    DeviceError
        This machine cannot use the device.
    """
    folder = Path(folder)
    meta = _meta(folder)
    try:
        arrays = {name: _open_array(folder / f"{name}.npy") for name in meta["arrays"]}
        ids = arrays["ids"] if "ids" in arrays else _open_strings(folder / "ids.arrow")
        graph = Graph(
            offsets=arrays["offsets"],
            targets=arrays["targets"],
            weights=arrays.get("weights"),
            ids=ids,
            directed=meta["directed"],
            report=BuildReport(**meta["report"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder}: the stored graph is damaged ({error}); delete it and start again") from None
    if verify and graph.fingerprint != meta["fingerprint"]:
        raise InputError(f"{folder}: the stored graph is damaged (its fingerprint differs); delete it and start again")
    # The fingerprint of a large graph takes seconds, and it is known.
    graph.__dict__["fingerprint"] = meta["fingerprint"]
    moved = graph.to(device)
    moved.__dict__["fingerprint"] = meta["fingerprint"]
    return moved


def stored_origin(folder) -> str:
    """Return what ``save_graph`` was told about the graph's origin, ``""`` if there is no stored graph."""
    try:
        return _meta(Path(folder))["origin"]
    except InputError:
        return ""


def _meta(folder: Path) -> dict:
    try:
        meta = json.loads((folder / _META).read_text())
    except (OSError, ValueError):
        raise InputError(f"{folder}: no stored graph is here") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise InputError(f"{folder}: the stored graph is of another version")
    return meta


def _open_array(path: Path) -> np.ndarray:
    """Map a file copy-on-write; a plain array over it, because Numba compiles anew for read-only arrays and subclasses."""
    mapped = np.load(path, mmap_mode="c", allow_pickle=False)
    return np.asarray(mapped)


def _save_strings(ids, path: Path) -> None:
    import pyarrow
    import pyarrow.ipc

    table = pyarrow.table({"ids": ids})
    with pyarrow.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def _open_strings(path: Path):
    import pyarrow
    import pyarrow.ipc

    column = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all().column("ids")
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
