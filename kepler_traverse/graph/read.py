"""Read a graph from files: read the edge list, number the vertices, build the graph."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from .. import arguments, cuda
from ..errors import InputError, option_text
from ..formats import ReadOptions, read_edges
from ..formats.tables import as_rows, is_table, read_table
from ..labels import digest_of_labels, index_of_rows
from ..runtime.memory import available_memory
from ..runtime.scratch import Scratch
from . import Graph
from .build import WEIGHT_TYPES
from .edge_list_graph import BuildRules, make_graph, system_memory_pool
from .hints import warn_of_hints, with_hints


def read_graph(
    paths: Any,
    *,
    directed: bool = True,
    device: str = "auto",
    src_column: str | None = None,
    dst_column: str | None = None,
    weight_column: str | None = None,
    reverse_weight_column: str | None = None,
    weighted: bool | None = None,
    format: str = "auto",
    header: str = "auto",
    delimiter: str | None = None,
    id_type: str = "auto",
    weight_type: str = "auto",
    vertices: Any = None,
    where: Any = None,
    oneway_column: str | None = None,
    only_vertices: Any = None,
    closed: Any = None,
    largest_component: bool = False,
    edge_ids: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    build_memory: int | None = None,
) -> Graph:
    """Read an edge list from files and build a graph.

    Parallel edges keep the minimum weight, and self-loops are dropped. ``graph.report`` counts
    both. It also has the seconds that reading and building took.

    Parameters
    ----------
    paths : path, sequence of paths, or table
        Files, folders, globs, or URLs that fsspec knows. All files together are one edge list. The
        ``key=value`` folders of a Hive partition are columns of the files below them. Or a table in
        memory as ``graph_from_edges`` takes it, which is moved to the device.
    directed : bool
        False: each row is an edge in both directions.
    device : {"auto", "cpu", "cuda"}
        Where the graph is built; ``"auto"`` takes the GPU if there is one.
    src_column, dst_column, weight_column : str, optional
        Names of the columns. By default the ends are the one pair of columns that is known by its
        names (``src`` and ``dst``, ``source`` and ``target``, ``from`` and ``to``, ``u`` and ``v``,
        ``origin`` and ``destination``, ...) and the weight is the one column that is (``weight``,
        ``length``, ``cost``, ``time``, ``distance``, ``minutes``, ...). Where several could be it,
        the file is refused. Only columns of a text without names are taken by position: the first
        two, and the third as the weight. They are called ``"0"``, ``"1"`` and so on.
        ``graph.report`` says which columns were used and which were not.
    reverse_weight_column : str, optional
        A second weight, that from dst to src; see ``reverse_weight`` of ``graph_from_edges``.
    weighted : bool, optional
        True: there must be a weight column. False: read none. None: read one if it is named or
        found.
    format : {"auto", "parquet", "csv", "snap", "sif", "matrix_market", "dimacs", "tntp", "arrow",
    "delta", "iceberg"}
        ``"auto"`` goes by the ending, also before ``.gz``, ``.bz2`` and ``.zst``, and takes a
        folder with the log of Delta Lake or Iceberg for a table, whose live rows are read by
        deltalake or pyiceberg.
    header : {"auto", "yes", "no"}
        Whether the first line of a CSV file or of SNAP text holds names. ``"auto"`` decides only
        where there is no doubt.
    delimiter : str, optional
        One character between the values of a CSV file; by default the one of comma, semicolon, tab
        and ``|`` that cuts all lines alike.
    id_type : {"auto", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    "string"}
        Type of the vertex ids. ``"auto"``: as stored; in text, int64 if the first row holds
        integers, else string.
    weight_type : {"auto", "float32", "float64"}
        Type of the stored weights. Text holds int64 if all weights are integers, else float64.
    vertices : sequence of ids or path, optional
        Further vertices, which may have no edge, or a local file of them: text with one id per
        line, or Parquet. Matrix Market and DIMACS files have vertices 1..n without this.
    where : str or pyarrow.compute.Expression, optional
        The rows to read: ``where="highway != 'motorway' and lanes >= 2"``; see
        ``graph_from_edges``. In text a column of the filter is read as what it is compared with; an
        empty value is missing. For an expression of pyarrow all columns are read, and those of text
        hold integers, floats or booleans if all values do.
    oneway_column : str, optional
        The column of directions; see ``oneway`` of ``graph_from_edges``.
    only_vertices : sequence of ids or path, optional
        The vertices of the graph; see ``graph_from_edges``. A file holds them as one of
        ``vertices`` does.
    closed : sequence of ids or path, optional
        The vertices through which no path leads: paths may begin and end there, as at the centroid
        of a zone. The graph then has two numbers for each, is directed, and needs weights; see
        ``Graph.closed``. Hops and some results refuse it.
    largest_component : bool
        Keep the largest strongly connected component alone, as ``only_vertices`` of its vertices
        would; ``components`` lists all. Building takes twice as long.
    edge_ids : bool
        Keep the row of each edge; see ``graph_from_edges``. Rows count from 0 over all files,
        header and comments aside.
    scratch : path, optional
        A folder on a disk, which exists. If reading and building are estimated to take more than
        ``build_memory``, all that is as long as the edge list is in files there, the targets and
        weights of the graph included. The graph is the same. The files have no names, and are gone
        with it. For Parquet, Arrow, CSV and SNAP; without ``where``, ``oneway_column``,
        ``reverse_weight_column``, ``only_vertices``, ``closed``, ``largest_component`` and
        ``edge_ids``, and of no table in memory.
    build_memory : int, optional
        Bytes of memory that reading and building may take with ``scratch``; by default the memory
        that is free.

    Returns
    -------
    Graph

    Raises
    ------
    EdgeListError
        A file is missing, empty, damaged or has values that are no ids or weights, or it is not
        sure which columns hold the edges; the message names the file and, where there is one, the
        column and the row (counted from 0, header and comments aside).
    InputError
        An argument is of a wrong type, or arguments contradict each other.
    CapacityError
        The ids of the vertices take more than ``build_memory``.
    NegativeCycleError
        A self-loop has a negative weight.
    DeviceError
        ``device="cuda"`` without a GPU.

    Notes
    -----
    Every binary or compressed file carries its length, so one that was cut short is refused. A plain text file does not:
    if it was cut within its last number, nothing tells.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("src,dst,weight\\n1,2,5\\n2,3,1\\n")
    >>> read_graph(folder / "edges.csv", device="cpu")
    <Graph: 3 vertices, 2 stored edges, directed, integer weights, cpu>
    """
    # Each argument has the right type, and options of files go with files.
    arguments.refuse_open_file("paths", paths)
    paths = as_rows(paths)
    in_memory = is_table(paths)
    if not in_memory:
        paths = arguments.list_paths("paths", paths)
    directed = arguments.flag("directed", directed)
    if weighted is not None:
        weighted = arguments.flag("weighted", weighted)
    for name, value in (("format", format), ("id_type", id_type), ("device", device)):
        arguments.text(name, value)
    texts = {
        "src_column": src_column,
        "dst_column": dst_column,
        "weight_column": weight_column,
        "delimiter": delimiter,
        "oneway_column": oneway_column,
        "reverse_weight_column": reverse_weight_column,
    }
    for name, text in texts.items():
        if text is not None:
            arguments.text(name, text, "a string or None")

    arguments.choice("header", header, ("auto", "yes", "no"))
    arguments.choice("weight_type", weight_type, WEIGHT_TYPES)
    if vertices is not None and not isinstance(vertices, str | os.PathLike):
        vertices = arguments.ids("vertices", vertices)
    if in_memory:
        is_set = {
            "format": format != "auto",
            "header": header != "auto",
            "delimiter": delimiter is not None,
        }
        for name, is_option_set in is_set.items():
            if is_option_set:
                raise InputError(
                    f"paths is a table in memory, and {option_text(name)} "
                    "is for files; leave it out"
                )

    options = ReadOptions(
        **texts,
        weighted=weighted,
        header=header,
        id_type=id_type,
        device=_find_device(device),
        where=where,
        scratch=_make_scratch(scratch, build_memory),
        may_be_empty=vertices is not None,
    )
    rules = BuildRules(
        directed=directed,
        weight_type=weight_type,
        edge_ids=edge_ids,
        only_vertices=only_vertices,
        closed=closed,
        largest_component=largest_component,
    )
    rules.check_oneway(oneway_column, "oneway_column")
    rules.check_oneway(reverse_weight_column, "reverse_weight_column")
    # InputError for an option that needs all rows in memory, beside files for them.
    _check_scratch(options, rules, in_memory)
    if in_memory and edge_ids:
        # With it a later column of weights per row can be compared with the index of the table.
        labels = digest_of_labels(index_of_rows(paths))
    else:
        labels = ""

    start = time.perf_counter()
    # Pools of pyarrow would hold the memory of decoding while the graph is built.
    with system_memory_pool():
        edges = [read_table(paths, options) if in_memory else read_edges(paths, options, format)]
        end_of_reading = time.perf_counter()
        columns = edges[0].columns
        in_files = edges[0].scratch is not None
        # A graph in files is built by the CPU, and moved to the device at the end.
        device = "cpu" if in_files else options.device
        # The only reference to the edges is popped, so that make_graph can free them early.
        graph = make_graph(edges.pop(), device, vertices, rules)
    seconds = {"read": end_of_reading - start, "build": time.perf_counter() - end_of_reading}

    # The report gets the names of the columns, and hints what may have been meant otherwise.
    graph = with_hints(graph, columns)
    report = replace(graph.report, seconds=seconds, in_files=in_files, row_labels=labels)
    graph = replace(graph, report=report).to(options.device)
    warn_of_hints(graph)
    return graph


def _make_scratch(folder: Any, memory: int | None) -> Scratch | None:
    """Return where a graph is built that does not fit in memory, or None without a folder.

    ``folder`` and ``memory``, in bytes, are the options ``scratch`` and ``build_memory`` of
    ``read_graph``, None if they were not given: the limit is then the free memory. Raises
    InputError: there is no such folder, or ``memory`` is given and has no effect, as there is no
    folder.
    """
    if memory is not None:
        memory = arguments.whole("build_memory", memory, least=1)
    if folder is None:
        if memory is not None:
            raise InputError(
                f"{option_text('build_memory')} has no effect without "
                f"{option_text('scratch')}; name a folder"
            )
        return None
    (path,) = arguments.list_paths("scratch", [folder])
    if not os.path.isdir(path):
        raise InputError(
            f"{option_text('scratch', path)}: there is no such folder; make it, or name another"
        )
    return Scratch(path, memory or available_memory("cpu"))


def _check_scratch(options: ReadOptions, rules: BuildRules, in_memory: bool) -> None:
    """Raise InputError if there is scratch space, and an option is given for which all rows must be
    in memory, or the edges are a table in memory.
    """
    if options.scratch is None:
        return
    # Options for which all rows must be in memory, and whether each is given.
    needs_rows = {
        "where": options.where is not None,
        "oneway_column": options.oneway_column is not None,
        "reverse_weight_column": options.closes,
        "only_vertices": rules.only_vertices is not None,
        "closed": rules.closed is not None,
        "largest_component": rules.largest_component,
        "edge_ids": rules.edge_ids,
    }
    name = next((name for name, is_given in needs_rows.items() if is_given), None)
    if in_memory or name is not None:
        if name is None:
            what = "a table in memory is"
        else:
            what = f"with {option_text(name)} the edge list is"
        raise InputError(
            f"{option_text('scratch')} builds in files, and {what} built "
            "in memory; leave one of the two out"
        )


def _find_device(device: str) -> str:
    """Return the device that a graph is built on, "cpu" or "cuda"; ``"auto"`` is the GPU if there
    is one. Raises DeviceError for "cuda" without a GPU.
    """
    arguments.device(device, ("auto", "cpu", "cuda"))
    if device == "auto":
        return "cuda" if cuda.available() else "cpu"
    if device == "cuda":
        cuda.require()
    return device
