"""The job, called from Python: ``kepler_traverse.pipelines.run_job``."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kepler_traverse import Graph, arguments, graph_from_edges
from kepler_traverse.errors import InputError, KeplerError, options_spelled, several
from kepler_traverse.formats.ids import integer_id, read_ids
from kepler_traverse.formats.tables import as_rows, column_tuple, is_table
from kepler_traverse.graph import find_vertices
from kepler_traverse.kinds.constraints import GivenOptions
from kepler_traverse.kinds.flows import rows_of_through
from kepler_traverse.kinds.pairs import columns_of_pairs, typed_columns
from kepler_traverse.labels import (
    VERTEX,
    columns_in_order,
    is_called,
    is_id_name,
    no_ids,
    table_of_vertices,
)
from kepler_traverse.multi_source.outputs import ALL, given_sources, source_numbers
from kepler_traverse.runtime.display import html_table, in_units
from kepler_traverse.runtime.object_stores import URL

from .cli.constraints import IN_MEMORY, OF_VERTICES
from .cli.options import (
    COLUMN_ROLES,
    FILES_OF_IDS,
    MG,
    OPTIONS,
    SETTINGS,
    SOURCE_CHOICES,
    TLS,
    UsageError,
    flag_text,
)
from .cli.settings import read_settings
from .engines import open_engine
from .output.manifest_types import Failure, Manifest
from .output.part_reader import open_part
from .output.schemas import OUTPUT_SCHEMAS, with_failed_plugins
from .output.store import open_store
from .output.tables_in_memory import INDEX, name_in_memory, tables_in_memory
from .run import driver
from .run.engine import CallerInputs
from .run.source_columns import EDGE
from .scheduling.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

_OF_SCHEDULERS = ("scheduler_address", "scheduler_file", *TLS)
# kinds of options whose values are numbers, or a switch
_NUMBERS = ("integer", "number", "numbers", "size", "integer_or_auto", "number_or_auto", "switch")
_IN_MEMORY = "(in memory)"  # in place of the files of an edge list, in the manifest
# It stands in for the address of a client while options are checked, since a client may have an
# address that no flag takes.
_CHECKED_ADDRESS = "tcp://client:0"


@dataclass(frozen=True, eq=False, kw_only=True)
class JobResult:
    """A finished run of the job.

    Attributes
    ----------
    path : Path or str
        The output folder, or its URL.
    manifest : dict
        ``_manifest.json``: settings, times, failures, and each part with its sources and checksum.
    computed : int
        Number of parts that this call has computed. Those that an earlier run had finished are not
        computed again.
    total_seconds : float
        Wall time of this call.
    """

    path: Path | str
    manifest: Manifest
    computed: int
    total_seconds: float

    @property
    def n_sources(self) -> int:
        """Number of distinct sources."""
        return self.manifest["sources"]

    @property
    def n_rows(self) -> int:
        """Number of rows of all part files."""
        return sum(part["rows"] for part in self.manifest["parts"])

    @property
    def nbytes(self) -> int:
        """Bytes of all part files."""
        return sum(part["bytes"] for part in self.manifest["parts"])

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each step: reading, building, planning, compiling, starting workers and
        traversing.
        """
        return self.manifest["seconds"]

    @property
    def digest(self) -> str | None:
        """Checksum of all results, which is equal for any batch size, number of workers and device."""
        return self.manifest["digest"]

    @property
    def failed(self) -> list[Failure]:
        """The sources that failed, with errors."""
        return self.manifest["failed"]

    @property
    def parts(self) -> list[Path] | list[str]:
        """The part files, or their URLs, in the order of the sources."""
        names = [part["file"] for part in self.manifest["parts"]]
        if isinstance(self.path, str):
            return [f"{self.path}/{name}" for name in names]
        return [self.path / name for name in names]

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows as pyarrow tables, one per row group, so that they need not fit into
        memory.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read; all by default.
        """
        store = open_store(self.path)
        for entry in self.manifest["parts"]:
            name = entry["file"]
            with store.local([name]) as folder, open_part(folder / name) as part:
                yield from part.tables(None if columns is None else list(columns))

    def to_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """Read all rows as one ``pyarrow.Table``, in the order of the sources.

        Parameters
        ----------
        columns : sequence of str, optional
        """
        import pyarrow

        # Parts of a matrix have the narrowest types that hold their distances.
        return pyarrow.concat_tables(
            self.tables(columns), promote_options="permissive"
        ).replace_schema_metadata(None)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """Read all rows as one ``pandas.DataFrame``, in the order of the sources.

        Parameters
        ----------
        columns : sequence of str, optional
        """
        return self.to_arrow(columns).to_pandas()

    def __repr__(self) -> str:
        """Return the size and the status of the result in one line."""
        return (
            f"<JobResult: {self.manifest['result']} of {several(self.n_sources, 'source')}, {several(self.n_rows, 'row')} "
            f"in {several(len(self.parts), 'part')}, {in_units(self.nbytes)}, {self.manifest['status']}, {str(self.path)!r}>"
        )

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        rows: list[tuple[str, object]] = [
            ("path", self.path),
            ("status", self.manifest["status"]),
            ("result", f"{self.manifest['algorithm']}, {self.manifest['result']}"),
            ("sources", f"{self.n_sources:,}"),
            (
                "rows",
                f"{self.n_rows:,} in {several(len(self.parts), 'part')}, {in_units(self.nbytes)}",
            ),
            ("strategy", f"{self.manifest['strategy']} on {self.manifest['device']}"),
            ("seconds", ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())),
            ("digest", self.digest),
        ]
        if self.failed:
            rows.append(
                ("failed sources", f"{sum(len(failure['sources']) for failure in self.failed):,}")
            )
        return html_table("Job", rows)


class JobFailedError(KeplerError):
    """Some sources of a job failed; the results of all others are written.

    Attributes
    ----------
    result : JobResult
        With the manifest, whose ``failed`` lists the sources and their errors.
    """

    def __init__(self, message: str, result: JobResult):
        super().__init__(message, result)
        self.message = message
        self.result = result

    def __str__(self) -> str:
        """Return the message without the result."""
        return self.message


def run_job(
    edges: Any, *, output: str | os.PathLike[str], client: Client | None = None, **options: Any
) -> JobResult:
    """Run the job: search from many sources, certify each result, and write Parquet files with a
    manifest.

    It does what ``kepler-traverse run`` does. A call that was interrupted, or that failed, is
    finished by the same call with ``resume=True``, which computes only what is missing.

    Without ``client`` the batches run in this process, with all cores or one GPU. ``workers=2`` or
    more starts worker processes, and so does ``batch_deadline=``. ``dashboard_address=`` has them
    on a scheduler of Dask; a script then needs ``if __name__ == "__main__":``. Ctrl-C lets the
    batches that run finish first; a second one ends the call at once.

    Parameters
    ----------
    edges : Graph, table, path or list of paths
        A graph; a table as ``graph_from_edges`` takes it; or the files of an edge list. A graph in
        memory is stored in the output folder while worker processes run, or in ``graph_cache``.
    output : path or str
        Folder of the results, new or empty except with ``resume=True``; or a URL, as
        ``s3://bucket/run``.
    client : distributed.Client, optional
        A client of any Dask cluster, on whose workers the batches run. All of them need this
        package, and need to see the output folder at the same path.
    **options
        The options of the job by their names in docs/settings.md, as ``algorithm="sssp"``,
        ``cutoff=3600`` or ``result="summary"``, and ``columns`` a mapping. ``sources`` is what
        ``bfs_many`` takes (ids, one id, or ``"all"``), or a file: a ``pathlib.Path``, or the URL of
        an object, as ``s3://bucket/stops.csv``; so is ``targets``. ``pairs`` is a file, or what
        ``sssp_pairs`` takes: a table, two columns, or rows of two. ``through`` is a file, or what
        ``sssp_many`` takes. ``vertices``, ``only_vertices`` and ``closed`` are files, or ids;
        ``vertices`` may also be a table with a column ``vertex`` or an index of ids. Of a table in
        memory the manifest has no path: ``verify`` and ``finish`` then need a file, such as
        ``--pairs FILE``.

    Returns
    -------
    JobResult

    Raises
    ------
    InputError
        An option or the input is wrong; nothing has been written. Derived errors are those of
        ``read_graph`` and ``bfs_many``, and ``OutputError`` for the folder.
    JobFailedError
        Some sources failed; its ``result`` lists them.
    NegativeCycleError
        A negative cycle can be reached from a source.
    ClusterError
        The workers are gone or do not start.
    KeyboardInterrupt
        Finished batches are in the manifest.

    Examples
    --------
    >>> from kepler_traverse.pipelines import run_job
    >>> done = run_job("roads.parquet", output="out", algorithm="sssp", directed=False, sources=["home"])  # doctest: +SKIP
    >>> done.to_pandas()  # doctest: +SKIP
    """
    # The options as settings take them, the tables in memory, and the graph or the paths of files.
    for name, value in {"edges": edges, "output": output, **options}.items():
        arguments.refuse_open_file(name, value)
    values = _as_settings(options)
    tables = _take_tables(values)
    has_all_sources = _normalize_sources(values)
    graph, paths = _read_graph(edges, values, tables)
    _refuse_tables(values)
    values |= {"edges": paths, "output": _path_text("output", output)}

    # What is checked once the graph is there, which for paths is in the run.
    listed_ids = {
        name: values[name] for name in ("sources", "targets") if isinstance(values.get(name), list)
    }

    def check(graph: Graph) -> None:
        """Raise InputError if sources, targets or vertices in memory are none of the graph."""
        # Called for its error alone: "all" may be the name of a vertex.
        if has_all_sources:
            source_numbers(graph, ALL)
        # Ids that come from the index of a data frame are under the name ``INDEX``.
        if INDEX in tables.get("vertices", {}):
            _refuse_unknown_labels(graph, tables["vertices"][INDEX])
        for name, ids in listed_ids.items():
            # The run itself explains a text that is no id, as it does those of a command line.
            typed = [id_ for id_ in ids if not isinstance(id_, str) or integer_id(id_) is not None]
            graph.to_numbers(typed, name[:-1])

    # Of a graph in memory, each id is looked up before the run begins, texts among them.
    if graph is not None:
        for name, ids in listed_ids.items():
            graph.to_numbers(ids, name[:-1])

    # The run.
    inputs = CallerInputs(graph=graph, stays_here=client is None, check=check)
    with _in_words_of_python(), contextlib.ExitStack() as stack:
        stack.enter_context(tables_in_memory(tables))
        if client is None:
            settings = read_settings(values, environment={})
        else:
            from .scheduling.cluster import client_in_use

            address = _find_address(client)
            values |= {"scheduler_address": _CHECKED_ADDRESS}
            settings = read_settings(values, environment={})
            settings = replace(settings, scheduler_address=address)
            stack.enter_context(client_in_use(client))
        if graph is not None and settings.engine == MG:
            raise InputError(
                f"engine={MG!r} reads its partitions from files; give the paths of the edge list"
            )
        finished = driver.execute(settings, "run_job(..., resume=True)", open_engine, inputs=inputs)
    assert finished is not None  # only the plan of a command line ends without

    # Its result.
    path: Path | str = Path(output).absolute()
    if URL.match(values["output"]):
        path = values["output"].rstrip("/")
    result = JobResult(
        path=path,
        manifest=json.loads(json.dumps(finished.manifest)),  # as a reader of the file has it
        computed=finished.computed,
        total_seconds=finished.seconds,
    )
    if result.failed:
        n_failed = sum(len(failure["sources"]) for failure in result.failed)
        raise JobFailedError(
            f"{n_failed:,} of {several(result.n_sources, 'source')} failed, the first of them: {result.failed[0]['error']}; "
            f"the results of the others are in {result.path}, and resume=True tries these again",
            result,
        )
    return result


def _refuse_unknown_labels(graph: Graph, column: Any) -> None:
    """Raise InputError if a label in ``column``, the index of a table of vertices, is no vertex of
    the graph.
    """
    import pandas

    labels = pandas.Index(column.to_pandas())
    unknown = np.flatnonzero(find_vertices(graph, labels) < 0)
    if unknown.size:
        label = arguments.describe(arguments.plain(labels[unknown[0]]))
        raise no_ids("vertices", labels, label)


def _refuse_unknown_options(options: Iterable[str]) -> None:
    """Raise InputError for an option that ``run_job`` does not take.

    ``options``: the names of those that were given.
    """
    # By name, whether an option can be given in Python. ``knobs`` has no flag, so no ``Option``.
    known = {option.key: option.in_python for option in OPTIONS} | {"knobs": True}
    for name in options:
        if not known.get(name, True):
            raise InputError(f"{name} is an option of the command line only; leave it out")
        if name in _OF_SCHEDULERS:
            raise InputError(
                f"{name} is an option of the command line only; give "
                "client=, a client of that scheduler"
            )
        if name not in known:
            similar = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise InputError(with_failed_plugins(f"{name} is no option of the job{hint}"))


def _as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of ``run_job`` as settings take them.

    Options that are None are left out. Paths become texts, numbers those of Python, and targets a
    list of ids, unless they are a file.
    """
    _refuse_unknown_options(options)
    values = {name: value for name, value in options.items() if value is not None}
    for option in OPTIONS:
        if option.key != "sources" and isinstance(values.get(option.key), os.PathLike):
            values[option.key] = _path_text(option.key, values[option.key])
        if option.key in values and option.kind in _NUMBERS:
            values[option.key] = _as_plain_numbers(option.key, values[option.key])
    if "targets" in values and not _is_file(options["targets"]):
        values["targets"] = _as_list(arguments.ids("targets", values["targets"]))
    return values


def _as_plain_numbers(name: str, value: Any) -> Any:
    """Return a number as one of Python's, and numbers in a container as a list of such.

    ``name``: of the option, for errors. ``value``: a scalar, or any container that the library
    takes, such as a NumPy array.
    """
    # A scalar, a text or a mapping is not iterated over.
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        if arguments.is_flag(value):
            return bool(value)
        return arguments.plain(value)
    column = arguments.arrow(name, value)
    numbers = column.tolist() if hasattr(column, "tolist") else column
    if not isinstance(numbers, Iterable):  # of an array without a dimension
        return numbers
    return arguments.plain_list(numbers)


def _take_tables(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns of the tables that options have in memory, by the names of the options.

    In ``values`` each such table is replaced, in place, by the name under which the run finds it.
    """
    tables = {}
    for key, make_columns in _TABLES.items():
        value = values.get(key)
        if value is not None and not isinstance(value, str):  # a text is the path of a file
            tables[key] = make_columns(key, value)
            values[key] = name_in_memory(key)
    return tables


def _columns_of_through(_: str, edges: Any) -> dict[str, Any]:
    """Return the option ``through`` as the columns that a file of edges would have: row numbers of
    the edge list, or src and dst. The name of the option is not used, but all functions of
    ``_TABLES`` get it.

    ``edges``: a table with a column of row numbers, row numbers alone, or the two ends of edges.
    """
    # ``EDGE`` is the name of the column of row numbers. ``rows_of_through`` returns None if
    # ``edges`` has the ends of edges.
    columns = arguments.columns("through", edges)
    if columns is not None and EDGE in columns:
        return typed_columns("through", columns)
    rows = rows_of_through(edges)
    if rows is not None:
        return typed_columns("through", {EDGE: rows})
    return columns_of_pairs(edges, "edges of through", ("src", "dst"))


def _columns_of_vertices(name: str, value: Any) -> dict[str, Any]:
    """Return the column of the ids of vertices, and, if ``value`` is a table, those of their
    attributes.

    ``name``: of the option, for errors. Ids that come from the index of a data frame are under the
    name ``INDEX``, unless the name of the index says that they are ids: they must be vertices of
    the edges.
    """
    parts = table_of_vertices(name, value)
    if parts is None:
        return typed_columns(name, {VERTEX: arguments.ids(name, value)})
    ids, columns, are_of_index = parts
    if ids is None:
        raise no_ids(name)
    are_ids = not are_of_index or is_called(ids.name) or is_id_name(ids.name)
    id_column = VERTEX if are_ids else INDEX
    return typed_columns(name, columns_in_order(name, {id_column: ids, **columns}))


# Options that may be tables in memory, and functions that return their columns.
_TABLES: dict[str, Callable[[str, Any], dict[str, Any]]] = {
    "pairs": lambda _, table: columns_of_pairs(table),
    "through": _columns_of_through,
    **dict.fromkeys(FILES_OF_IDS, _columns_of_vertices),
}


def _refuse_tables(values: dict[str, Any]) -> None:
    """Raise InputError for a table in memory that is given for an option which takes only a file,
    because ``verify`` reads that again.
    """
    for option in OPTIONS:
        value = values.get(option.key)
        if option.kind == "file" and value is not None and not isinstance(value, str):
            raise InputError(
                f"{option.key} must be the path of a file, not {arguments.describe(value)}: the job reads it, and verify "
                "reads it again; write the table, for example by its to_parquet(path)"
            )


def _is_file(value: Any) -> bool:
    """Whether sources or targets are a file (a path object or a URL), and not ids."""
    return isinstance(value, os.PathLike) or (
        isinstance(value, str) and URL.match(value) is not None
    )


def _path_text(name: str, value: Any) -> str:
    """Return a path as text; ``name`` is its option, for errors."""
    (path,) = arguments.list_paths(name, [value])
    return os.fsdecode(path)


def _normalize_sources(values: dict[str, Any]) -> bool:
    """Replace ``sources`` in ``values``, in place, by what settings take: a path, a list of ids, or
    ``all_sources``. Return whether all vertices are sources.
    """
    if "sources" not in values:
        return False
    for name in SOURCE_CHOICES:
        if name != "sources" and values.get(name) not in (None, False):
            raise InputError(f"sources are given more than once, by sources and {name}; take one")
    if _is_file(values["sources"]):
        values["sources"] = _path_text("sources", values["sources"])
        return False
    sources = given_sources(values["sources"])
    if isinstance(sources, str):  # "all": other texts are refused
        del values["sources"]
        values["all_sources"] = True
        return True
    values["sources"] = _as_list(sources)
    if not values["sources"]:
        raise InputError("sources are empty: give at least one id")
    return False


def _as_list(ids: Any) -> list[Any]:
    """Return ids as a list: those of an array as integers or texts of Python, those of a set in
    ascending order, so that the result does not depend on the order of the set, and any others as
    they are.
    """
    if isinstance(ids, np.ndarray):
        return ids.tolist()
    if not isinstance(ids, (set, frozenset)):
        return list(ids)
    try:
        return list(arguments.ids("sources", sorted(ids)))
    except TypeError:
        raise InputError("sources must be integers or strings, and not both") from None


def _take_columns_of_edges(values: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the columns of edges by role, such as "src", None where not given.

    They are removed from the option ``columns`` in ``values``. The columns of other tables stay.
    """
    columns = _columns_by_role(values.pop("columns", None))
    # ``COLUMN_ROLES`` has, for each role, the option that names its table.
    of_edges = {
        role: columns.pop(role, None) for role, table in COLUMN_ROLES.items() if table == "edges"
    }
    if columns:
        values["columns"] = columns
    return of_edges


def _read_graph(
    edges: Any, values: dict[str, Any], tables: dict[str, dict[str, Any]]
) -> tuple[Graph | None, list[str]]:
    """Return the graph of edges in memory, or the paths of an edge list.

    ``edges``: what ``run_job`` was given. ``values``: its options; those that a graph is built with
    are removed. ``tables``: the columns of tables in memory, by their options.

    Return a pair. For edges in memory it is their graph, and a list with a text that stands for the
    files. For files it is None, and their paths, which the run reads.
    """
    is_graph = isinstance(edges, Graph)
    if not is_graph:
        edges = as_rows(edges)
        paths = _list_paths(edges)
        if paths:
            return None, paths

    # Edges in memory.
    _refuse_options_of_files(values, is_graph)
    of_edges = _take_columns_of_edges(values)
    kind = OUTPUT_SCHEMAS.get(_name_of_result(values))
    if is_graph:
        graph = edges
    elif is_table(edges) or column_tuple(edges) is not None:
        needs_rows = kind is not None and kind.needs_edge_rows
        ids = {name: _take_ids(name, values, tables) for name in FILES_OF_IDS}
        graph = _build_graph(edges, of_edges | ids, values, needs_rows)
    else:
        raise InputError(
            "edges must be a Graph, a table, a path or a list of "
            f"paths, not {arguments.describe(edges)}"
        )
    if kind is not None and "edge" in kind.columns and graph.edge_rows is None:
        raise InputError(
            f"result={kind.name!r} needs a graph that knows its rows; build it with edge_ids=True"
        )
    # The settings describe the graph as it is, and leave it on its device.
    values["directed"] = graph.directed
    values.setdefault("device", graph.device)
    return graph, [_IN_MEMORY]


def _list_paths(edges: Any) -> list[str]:
    """Return the paths of an edge list; an empty list if the edges are no paths."""
    items = edges if isinstance(edges, (list, tuple)) else [edges]
    are_paths = all(isinstance(item, (str, os.PathLike)) for item in items)
    if not items or not are_paths:
        return []
    return [os.fsdecode(path) for path in arguments.list_paths("edges", edges)]


def _refuse_options_of_files(values: dict[str, Any], is_graph: bool) -> None:
    """Raise InputError for an option that has no effect where edges are in memory.

    ``is_graph``: whether the edges are a graph, and not a table.
    """
    edges = "a graph" if is_graph else "a table in memory"
    # Each role of ``columns`` counts as an option of its own, for the rules in ``IN_MEMORY``.
    columns = _columns_by_role(values.get("columns"))
    known = values | {f"columns.{role}": name for role, name in columns.items()}
    options = GivenOptions(
        kind=None,
        algorithm=values.get("algorithm", ""),
        written={name: name for name in known if known[name] is not None},
        values=known | {"edges": edges},
    )
    for row in IN_MEMORY:
        value = repr(options.value(row.names[0]))
        violation = row.violation(options, edges=edges, value=value)
        if violation is not None:
            raise InputError(str(violation))


def _take_ids(name: str, values: dict[str, Any], tables: dict[str, dict[str, Any]]) -> Any:
    """Return the ids of an option that the graph is built with, such as ``vertices``; None without
    it.

    The option is removed from ``values``, since the run does not need it, unless the run reads
    attributes in the same table. ``tables``: the columns of tables in memory, by their options.
    """
    path = values.get(name)
    if path is None:
        return None
    if name != "vertices" or not any(values.get(option) for option in OF_VERTICES):
        del values[name]
    # A table has no such column if its ids are the index of a data frame: these are vertices that
    # the edges have already.
    if name in tables:
        return tables[name].get(VERTEX)
    file = read_ids(path, name)
    return file.ids(file.holds_strings)  # in the type that they have in the file


def _build_graph(
    edges: Any, of_edges: dict[str, Any], values: dict[str, Any], needs_rows: bool
) -> Graph:
    """Build the graph of a table in memory; remove the options that it is built with from
    ``values``.

    ``of_edges``: arguments of ``graph_from_edges``: columns by role, and ids. ``needs_rows``:
    whether the graph must know the row of each edge in the table.
    """
    # The run that follows must not apply these again.
    of_building = {
        "weight_type": values.pop("weight_type", "auto"),
        "where": values.pop("where", None),
        "largest_component": values.pop("largest_component", False),
    }
    weighted: bool | None = False
    if values.get("algorithm") == "sssp":
        weighted = None  # as of files: a column of weights is used if there is one
    return graph_from_edges(
        edges,
        **of_edges,
        **of_building,
        directed=values.get("directed", True),
        weighted=weighted,
        edge_ids=needs_rows,
    )


def _name_of_result(values: dict[str, Any]) -> str:
    """Return the value of the option ``result`` in ``values``; ``""`` without it, or if it is no
    text, which a later check refuses.
    """
    result = values.get("result")
    return result if isinstance(result, str) else ""


def _columns_by_role(columns: Any) -> dict[str, Any]:
    """Return the option ``columns`` as a dictionary; raise InputError if it is no mapping of roles."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not all(isinstance(role, str) for role in columns):
        raise InputError(
            f"columns must be a mapping of roles to names, as {{'src': 'from'}}, not {arguments.describe(columns)}"
        )
    return dict(columns)


def _find_address(client: Any) -> str:
    """Return the address of a client's scheduler; raise InputError if the client is closed or
    asynchronous.
    """
    from distributed import Client

    arguments.instance("client", client, Client, "distributed.Client(address) makes one")
    if client.asynchronous:
        raise InputError("client must not be asynchronous; make one without asynchronous=True")
    if client.status != "running":
        raise InputError(f"client is {client.status}; make a new one")
    return client.scheduler.address


@contextlib.contextmanager
def _in_words_of_python() -> Iterator[None]:
    """Within the block, let errors name options as arguments of ``run_job``: ``graph_cache`` for
    ``--graph-cache``. A UsageError becomes an InputError.
    """
    try:
        with options_spelled(_spelled):
            yield
    except UsageError as error:
        raise InputError(_as_arguments(str(error))) from None
    except (InputError, ClusterError) as error:
        error.args = (_as_arguments(str(error.args[0])), *error.args[1:])
        raise


def _spelled(name: str, value: object = None) -> str:
    """Return an option of the library, and its value if given, as an argument of ``run_job``, for
    messages.
    """
    flag = flag_text(name, value)
    if flag.startswith("--columns"):
        return _as_arguments(flag)
    name = SETTINGS.get(name, name)  # the option of the job, where it is called otherwise
    return name if value is None else f"{name}={value!r}"


def _as_arguments(message: str) -> str:
    """Return a message in which flags of the command line, and its word EDGES, are replaced by the
    arguments of ``run_job``.
    """
    # A message about a key of a settings file begins with the file's name, which is None here, and
    # has a key of a table in brackets: "None: [knobs] are those of ..." becomes "knobs are those of
    # ...". Without the brackets, "None: KEY" becomes "KEY".
    message = re.sub(r"\bNone: \[?(\w+)\]?", r"\1", message).replace("EDGES", "edges")
    message = message.replace("--undirected", "directed=False").replace("--resume", "resume=True")
    # "--columns src=NAME,dst=to", one pair or several with commas between, ...
    message = re.sub(r"--columns (\w+=[^\s,;]+(,\w+=[^\s,;]+)*)", _as_mapping, message)
    # ... and any flag that is left, as "--graph-cache" or "--no-report"
    return re.sub(r"--(no-)?([a-z][a-z-]*[a-z])", _as_argument, message)


def _as_mapping(match: re.Match[str]) -> str:
    """Return ``--columns`` as the argument: "--columns src=NAME,dst=to" is
    "columns={'src': ..., 'dst': 'to'}". NAME stands for any name of a column in messages.

    ``match``: group 1 holds the pairs, "src=NAME,dst=to".
    """
    pairs = (pair.partition("=") for pair in match[1].split(","))
    items = (f"{role!r}: {'...' if name == 'NAME' else repr(name)}" for role, _, name in pairs)
    return f"columns={{{', '.join(items)}}}"


def _as_argument(match: re.Match[str]) -> str:
    """Return a flag as the argument: --graph-cache is graph_cache, --no-report is report=False.

    ``match``: group 1 is "no-" or None, group 2 the name of the flag, "graph-cache" or "report".
    """
    name = match[2].replace("-", "_")
    return f"{name}=False" if match[1] else name
