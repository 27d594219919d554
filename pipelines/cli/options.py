"""The settings of the main job, each listed once; flags, keys of ``conf/*.toml`` and checks are
derived from this table.

It imports no large packages, so that ``--help`` prints at once.
"""

from __future__ import annotations

import argparse
import functools
import operator
import re
import shlex
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, Literal, NamedTuple

from kepler_traverse.errors import option_text
from kepler_traverse.kinds import rules
from kepler_traverse.kinds.result_kinds import ResultKind

from ..output.schemas import OUTPUT_SCHEMAS, ResultName, kinds_of_plugins, leave_out
from .values import (
    exact_number,
    ids_or_file,
    integer,
    number,
    number_or_auto,
    numbers,
    size_in_bytes,
    split_names,
)

if typing.TYPE_CHECKING:
    from kepler_traverse.formats import ReadOptions


class UsageError(Exception):
    """The command line or a settings file is wrong."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """A setting that has a flag: the flag is the key of the settings file, with dashes."""

    key: str  # name of the field of ``Settings``, and key in a settings file
    kind: str  # a key of ``KINDS``: the kind of the value
    help: str  # text of --help
    group: str  # heading under which --help and docs/settings.md list it
    default: object = None  # None means "not set"
    choices: tuple[str, ...] = ()  # all values that are allowed; empty if there are others
    least: float | None = None  # the smallest value allowed
    example: object = None  # a value shown in the settings file if there is no default
    # text for the settings file in place of ``help``; ``""`` if the text is the same
    in_file: str = ""
    # the setting that names the table whose columns are read, without which it is refused
    table: str = ""
    # of an argument of ``read_graph``: whether it is for "files" only, or also for "tables" in
    # memory
    reads: str = ""
    in_python: bool = True  # whether ``run_job``, the job as a function of Python, takes it

    @property
    def flag(self) -> str:
        """The flag on the command line, such as ``--batch-size``."""
        return "--" + self.key.replace("_", "-")


def setting(default: object = None, **facts: Any) -> Any:
    """Return a dataclass field of ``Settings`` that has a flag.

    ``facts`` are attributes of its ``Option``, which become metadata of the field. ``kind`` is
    needed among them if the type of the field does not determine it: a text that is a folder, an
    integer that is a size.
    """
    return field(default=default, metadata=facts)


# Settings by the groups of --help and of docs/settings.md.
_output = functools.partial(setting, group="output")
_program = functools.partial(_output, in_python=False)
_traversal = functools.partial(setting, group="traversal")
_result = functools.partial(setting, group="result")
_sources = functools.partial(setting, group="sources (give one)")
_edge_list = functools.partial(setting, group="edge list")
_of_files = functools.partial(_edge_list, reads="files")
_of_tables = functools.partial(_edge_list, reads="tables")
_running = functools.partial(setting, group="running")


def _parse_columns(text: str) -> dict[str, str]:
    """Parse the value of ``--columns``, such as ``src=from_id,dst=to_id``. Return the names of
    columns by their roles.
    """
    names: dict[str, str] = {}
    for piece in text.split(","):
        role, equals_sign, name = (part.strip() for part in piece.partition("="))
        if not equals_sign or not name:
            raise argparse.ArgumentTypeError(f"{piece!r} is no ROLE=NAME, such as src=from_id")
        if role not in COLUMN_ROLES:
            raise argparse.ArgumentTypeError(
                f"{role!r} is no role of a column; take {', '.join(COLUMN_ROLES)}"
            )
        if role in names:
            raise argparse.ArgumentTypeError(f"the role {role!r} is given twice")
        names[role] = name
    return names


def edge_columns(columns: Mapping[str, str] | None, is_alone: bool = False) -> dict[str, Any]:
    """Return the columns of the edge list as arguments of ``read_graph``, by name, such as
    ``src_column``; None for a role without a column.

    ``columns`` has names of columns by role, as ``Settings.columns``, and may be None. ``is_alone``
    is whether the edge list is the only table that is read: then a column of another table is a
    UsageError.
    """
    named = columns or {}
    others = [role for role in named if COLUMN_ROLES[role] != "edges"]
    if others and is_alone:
        raise UsageError(
            f"--columns {others[0]}=NAME has no effect: this command reads "
            "the edge list alone; leave it out"
        )
    return {
        f"{role}_column": named.get(role)
        for role, table in COLUMN_ROLES.items()
        if table == "edges"
    }


# options that name files of ids, which are read together with the edge list
FILES_OF_IDS = ("vertices", "only_vertices", "closed")


def read_options(settings: Settings) -> dict[str, Any]:
    """Return the arguments of ``read_graph`` for the edge list of a run, by name."""
    options = {option.key: getattr(settings, option.key) for option in OPTIONS if option.reads}
    options |= edge_columns(settings.columns)
    options["weighted"] = settings.algorithm == "sssp"
    if needs_edge_rows(settings):
        options["edge_ids"] = True
    return options


def needs_edge_rows(settings: Settings) -> bool:
    """Return whether the graph must know which row of the edge list each edge is: for results that
    name rows, or that add up other columns along paths.
    """
    return settings.kind.needs_edge_rows or settings.along is not None


def options_of_files(settings: Settings, **others: Any) -> ReadOptions:
    """Return the options of a run by which the files of an edge list are read, without those that
    concern only the graph which is built of them.

    ``others`` are options that take the place of those of the settings.
    """
    from kepler_traverse.formats import ReadOptions  # --help need not import it

    options = read_options(settings) | others
    known = {option.name for option in fields(ReadOptions)}
    return ReadOptions(**{name: value for name, value in options.items() if name in known})


class Kind(NamedTuple):
    """A kind of values that settings have, such as a size in bytes: how a flag takes it."""

    parse: Any  # function that parses the text of a flag; None for a switch, which has no text
    metavar: str = ""  # what stands for the value in --help
    # type annotation of the fields of ``Settings`` that have this kind, unless their metadata name
    # another one; None if each names it
    hint: object = None


KINDS = {
    "text": Kind(str, hint=str),
    "folder": Kind(str, "DIR"),
    "file": Kind(str, "FILE"),
    "choice": Kind(str),
    "integer": Kind(integer, "N", int),
    "number": Kind(number, "X", float),
    "exact_number": Kind(exact_number, "X", int | float),
    "size": Kind(size_in_bytes, "SIZE"),
    "integer_or_auto": Kind(
        functools.partial(number_or_auto, integer, "a whole number"),
        "auto|N",
        int | Literal["auto"],
    ),
    "number_or_auto": Kind(
        functools.partial(number_or_auto, number, "a number"), "auto|X", float | Literal["auto"]
    ),
    "ids": Kind(ids_or_file, "ID,ID,...|FILE", list[int | str] | str),
    "columns": Kind(_parse_columns, "ROLE=NAME,...", dict[str, str]),
    "names": Kind(functools.partial(split_names, "name"), "NAME,NAME,...", list[str]),
    "numbers": Kind(numbers, "X,X,...", list[int | float]),
    "switch": Kind(None, hint=bool),
}


MG: typing.Final = "cugraph-mg"  # the engine, as --engine takes it


_RESULTS = (
    "what to write. distances: one row per source and reached vertex; predecessors: the same with the "
    "vertex before it on a shortest path; matrix: one record per source, a list of its distances to all vertices; "
    "summary: one row of statistics per source; levels: the number of vertices at each hop count (bfs); targets: one "
    "row per source and target; reachable: one row per source and reached vertex, without distances; nearest: one "
    "search from all sources together, one row per vertex with its nearest source; k_nearest and "
    "nearest_targets: see --nearest-k; "
    "opportunities: one row per source and cutoff with the sums of --values; within: one row per source and cutoff with "
    "the number of vertices; isochrones: one row per source and vertex with the smallest of --cutoffs that holds it; "
    "pairs: one row per row of --pairs; paths: one row per vertex of the shortest path of each row of --pairs; flows: "
    "what each edge carries of the rows of --pairs, or of all sources and --targets; betweenness: the share of shortest "
    "paths that lead through each vertex, or edge; "
    "extremes: the vertices of the center and the periphery of the graph with radius and diameter, without sources; "
    "labels: one row per source, by default every vertex, and hub of its label"
)


def _explain_results() -> str:
    """Return the help of ``--result``: the text ``_RESULTS``, and after it the meaning of each
    result kind that the text does not name, such as those of plug-ins.
    """
    named = set(re.findall(r"\w+", _RESULTS))
    texts = [_RESULTS]
    for name, kind in OUTPUT_SCHEMAS.items():
        if name not in named:
            texts.append(f"{name}: {kind.means}")
    return "; ".join(texts)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one run, as ``settings.merge_settings`` checks them.

    The metadata of a field says what its flag and its key in a settings file are: see ``setting``.
    The command line, ``conf/batch_sources.toml`` and ``docs/settings.md`` are made of these fields.
    """

    edges: list[str] = field(
        metadata={
            "help": "files, folders, globs or URLs of the edge list",
            "example": ("edges.parquet",),
        }
    )
    output: str | None = _output(
        kind="folder",
        example="out",
        help="output folder, or its URL; must be new or empty (see --resume)",
    )
    algorithm: Literal["bfs", "sssp"] = _traversal(
        "bfs", help="bfs counts hops, sssp sums edge weights"
    )
    device: Literal["auto", "cpu", "cuda"] = _traversal(
        "auto",
        help=(
            "auto uses a GPU if one is available; CUDA_VISIBLE_DEVICES in "
            "the environment says which of several"
        ),
    )
    engine: Literal["auto", "kepler", "cugraph-mg"] = _traversal(
        "auto",
        help="kepler: this library, with the whole graph on each GPU; cugraph-mg: cuGraph, with the graph partitioned over "
        "all GPUs, one source after another; auto: kepler, with an error that names cugraph-mg if the graph is too large",
    )
    strategy: str = _traversal(
        "auto", help="traversal strategy; an unknown name lists the valid ones"
    )
    max_depth: int | None = _traversal(least=0, example=5, help="bfs: maximum number of hops")
    cutoff: float | int | None = _traversal(
        least=0, example=1000.0, help="sssp: maximum distance; vertices farther away are left out"
    )
    result: ResultName = _result(
        "distances",
        help=_explain_results(),
    )
    direction: Literal["out", "in"] = _result(
        "out",
        help="direction of the distances: out is from the source to the others, in is from the others to the source, by "
        "searches over the reversed edges; columns keep their names",
    )
    targets: list[int | str] | str | None = _result(
        example=(7, 8),
        help=(
            "ids of the targets, or a file of them, as for --sources; the "
            "result is of the ways to them alone"
        ),
    )
    sources: list[int | str] | str | None = _sources(
        example=(3, 17, 99),
        help="ids of the sources, a file that exists or its URL: text with one id per line (lines that begin with # are "
        "comments), or a table, which is Parquet or CSV with a header. --result summary, opportunities and within add their "
        "columns to that table, in _sources.pq",
    )
    keep_columns: list[str] | None = _sources(
        table="sources",
        example=("name", "zone"),
        help="columns of the table of --sources to keep in _sources.pq (default: all). With it, --result levels and targets "
        "write that table, too",
    )
    partition_by: str | None = _sources(
        table="sources",
        example="zone",
        help="column of the table of --sources: the parts of each of its values are in a folder of their own, such as "
        "zone=North, as in Hive's layout, where readers find the column",
    )
    random_sources: int | None = _sources(
        least=1,
        example=64,
        help="number of distinct random vertices with an outgoing edge, drawn with --seed",
    )
    all_sources: bool = _sources(False, help="search from every vertex")
    pairs: str | None = _sources(
        kind="file",
        example="trips.parquet",
        help="table of pairs, Parquet or CSV with a header: one origin and one destination per row. The origins are the "
        "sources, and the default result is pairs",
    )
    seed: int = _sources(
        1,
        least=0,
        help="random seed of --random-sources, --samples and --epsilon",
    )
    directed: bool = _of_tables(
        True,
        help="--undirected reads each row as an edge in both directions",
        in_file="false reads each row as an edge in both directions",
    )
    format: str = _of_files(
        "auto",
        help="file format; auto derives it from the file's name; an unknown name lists the formats",
    )
    columns: dict[str, str] | None = _edge_list(
        example={"src": "from_id", "dst": "to_id", "weight": "km"},
        help="names of columns by their roles, with one comma between two of them. Edge list: src, dst and weight (default: "
        "columns with known names, in text without names the first, the second and the third; columns without names are "
        "called 0, 1 and so on), and oneway, which says which rows are edges in one direction (yes, true, 1: start to end; "
        "no, false, 0: both; -1, reverse: end to start); reverse_weight, the weight from dst to src: below 0, null or "
        "infinite closes a direction. Table of --sources: source, its ids; and limit, the largest "
        "distance of each, in place of --max-depth and --cutoff. Table of --targets: target, its ids. Table of --pairs: "
        "origin and destination (default: columns with known names). For some results further ones, which these tables may "
        "have under these names",
    )
    header: Literal["auto", "yes", "no"] = _of_files(
        "auto", help="whether a CSV file or SNAP text starts with column names"
    )
    delimiter: str | None = _of_files(
        example=",",
        help=(
            "column delimiter of a CSV file (default: comma, semicolon, tab or "
            "|, whichever splits all lines alike)"
        ),
    )
    id_type: str = _of_files("auto", help="type of the vertex ids: auto, int64, string, ...")
    weight_type: Literal["auto", "float32", "float64"] = _of_tables(
        "auto",
        help="type of float weights and of their distances; distances of integer weights are exact integers; with a "
        "float type they are floats, and a distance that is not exact is an error",
    )
    vertices: str | None = _of_tables(
        kind="file",
        example="vertices.txt",
        help="file with the ids of additional vertices, which may have no edge: one id per line, a Parquet file, or a .csv "
        "table with column names; the other columns of a table are attributes for --values",
    )
    where: str | None = _of_tables(
        example="highway != 'motorway'",
        help="rows to read, by the values of their columns: comparisons, in, is null, and, or, not "
        "(docs/inputs/rows.md)",
    )
    only_vertices: list[int | str] | str | None = _of_tables(
        example="inside.txt",
        help="ids of the vertices of the graph, or a file of them: one per line, or a Parquet file. Edges between others "
        "are left out",
    )
    closed: list[int | str] | str | None = _of_tables(
        example="centroids.txt",
        help="ids of vertices through which no path leads, though paths begin and end there, or a file of them: one per "
        "line, or a Parquet file; for --algorithm sssp",
    )
    largest_component: bool = _of_tables(
        False, help="keep the largest strongly connected component alone"
    )
    batch_size: int | Literal["auto"] = _running(
        "auto", least=1, help="sources per part file; auto derives it from rows, workers and memory"
    )
    part_size: int | None = _running(
        kind="size",
        least=1,
        example=256 * 10**6,
        help="bytes per part file, about, such as 256MB, in place of about 8 million rows: the sources per part "
        "follow from a sample of the searches. Parts are smaller if there would be too few, or if they would take minutes",
        in_file="bytes per part file, about (default: as many as about 8 million rows take)",
    )
    workers: int | Literal["auto"] = _running(
        "auto",
        least=1,
        help=(
            "number of workers; auto is one per GPU, or one per core if memory "
            "allows; the cores are divided evenly"
        ),
    )
    gpu_memory: int | None = _running(
        kind="size",
        least=1,
        example=40 * 2**30,
        help=(
            "memory limit per GPU, such as 40GiB, for this library's engine (default: free memory)"
        ),
        in_file="memory limit per GPU in bytes, for this library's engine (default: free memory)",
    )
    scheduler_address: str | None = _running(
        example="tcp://127.0.0.1:8786",
        help="address of an existing Dask scheduler to run on (default: the job starts its own)",
    )
    scheduler_file: str | None = _running(
        kind="file",
        example="scheduler.json",
        help=(
            "file of an existing Dask scheduler to run on; also read from the "
            "environment variable SCHEDULER_FILE"
        ),
    )
    tls_ca_file: str | None = _running(
        kind="file",
        example="ca.pem",
        help="CA certificate (PEM) that signed the scheduler's certificate",
    )
    tls_cert: str | None = _running(
        kind="file",
        example="client.pem",
        help="this job's own certificate (PEM), for a scheduler with TLS",
    )
    tls_key: str | None = _running(
        kind="file", example="client-key.pem", help="private key (PEM) of --tls-cert"
    )
    worker_timeout: float = _running(
        60.0,
        least=1,
        help="stop the run after this many seconds without any worker",
    )
    batch_deadline: float | Literal["auto"] = _running(
        "auto",
        least=1,
        help="restart a worker if a batch takes longer than this many seconds; auto is the larger of 600 and 20 times "
        "the slowest batch so far",
    )
    graph_cache: str | None = _running(
        kind="folder",
        example="graphs",
        help=(
            "folder in which built graphs are stored, or its URL; later runs of "
            "the same files skip reading and building"
        ),
    )
    build_memory: int | None = _running(
        kind="size",
        least=1,
        example=8 * 2**30,
        help="memory limit for reading the edge list and building the graph, such as 8GiB; beyond it, edges are in files in "
        "--graph-cache (default: free memory)",
        in_file="memory limit in bytes for reading the edge list and building the graph; beyond it, edges are in files in "
        "the graph cache (default: free memory)",
    )
    hierarchy: Literal["auto", "yes", "no"] = _running(
        "auto",
        help="build a contraction hierarchy of a road network, or use a stored one: if the estimate says that it pays "
        "(auto), always (yes), or never (no)",
    )
    dashboard_address: str | None = _running(
        example="127.0.0.1:0",
        help=(
            "have the job's own workers on a Dask scheduler with a dashboard at this address; port 0 "
            "selects a free port"
        ),
    )
    certify: Literal["all", "sample", "none"] = _running(
        "all",
        help=(
            "certify every result before it is written (all), the first "
            "one of each batch (sample), or none"
        ),
    )
    shard: str | None = _running(
        example="0/8",
        help="compute every N-th batch only, from batch I on, as one of N processes that share a run without a scheduler: "
        "I/N; auto/N with I from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX; auto with both from SLURM_ARRAY_TASK_ID and "
        "_COUNT. kepler-traverse finish completes the run",
    )
    notice: float = _running(
        20.0,
        least=0,
        help=(
            "seconds that running batches have to finish after Ctrl-C or "
            "SIGTERM; the others are given back"
        ),
    )
    price_requests: float | None = _running(
        least=0,
        example=0.005,
        help=(
            "price of 1,000 requests to the object store of --output; --plan "
            "and the summary say what the run costs"
        ),
    )
    price_gb: float | None = _running(
        least=0, example=0.023, help="the same, of 10^9 bytes put there"
    )
    resume: bool = _running(
        False,
        help="finish an interrupted run in the output folder; only missing parts are computed",
    )
    report: bool = _output(
        True,
        help=(
            "write _report.html into the output folder: settings, "
            "checks, times and failures of the run"
        ),
    )
    plan: bool = _program(False, help="print the plan of the run, and stop")
    json: bool = _program(False, help="print one JSON object on stdout and nothing else")
    verbose: bool = _program(
        False,
        help=(
            "say how the strategy was chosen, and write what the library "
            "logs in this process to stderr"
        ),
    )
    debug: bool = _program(False, help="show the traceback of an error and Dask's log")
    knobs: dict[str, bool | int | float | str] | None = field(
        default=None,
        metadata={
            "help": "options of the strategy, also as a table [knobs] at the end of the file; conf/published/h_bf.toml "
            "is an example",
            "example": {"duplicates": "mark"},
        },
    )
    # Options of result kinds. Here they have a type and a default alone. ``_with_options_of_kinds``
    # adds the text of their flags, from the dataclasses of the kinds, and options of plug-ins.
    unreached: Literal["omit", "null", "cugraph"] = "omit"  # rows of vertices without a path
    sort: Literal["source", "distance"] = "source"  # order of the rows of a part file
    nearest_k: int | None = None  # how many of the nearest sources of each vertex are written
    values: list[str] | None = None  # columns of the table of vertices that are added up
    cutoffs: list[int | float] | None = None  # distances, ascending; the largest ends each search
    decay: str | None = None  # weight of a value by its distance, such as "exponential:0.002"
    geometry: Literal["points", "hulls", "shapes"] | None = None  # what GeoParquet is written
    along: list[str] | None = None  # columns of the edge list that are added up along paths
    of: Literal["edges", "vertices", "pairs"] | None = None  # what carries loads; None: by the kind
    through: Any = None  # file of edges; only pairs count whose paths use one of them
    endpoints: bool = False  # whether a path counts also at the vertices where it begins and ends
    normalized: bool = True  # whether loads are divided by the number of pairs
    samples: int | None = None  # search from so many vertices only, and estimate the result
    epsilon: float | None = None  # the same, with as many vertices as this error demands
    delta: float | None = None  # probability that the error exceeds ``epsilon``
    # whether a graph of several components is refused, or its largest one is taken
    unconnected: Literal["refuse", "largest"] = "refuse"

    @property
    def kind(self) -> ResultKind:
        """The kind of the result, with its columns and options."""
        return OUTPUT_SCHEMAS[self.result]

    @property
    def scheduler(self) -> str | None:
        """Address or file of an existing Dask scheduler to run on; None without one."""
        return self.scheduler_address or self.scheduler_file

    @property
    def wants_workers(self) -> bool:
        """Whether batches must run in worker processes, even if there is so little work that the
        job's own process would do: a setting is about workers.
        """
        return (
            self.scheduler is not None
            or self.workers not in ("auto", 1)
            or self.batch_deadline != Settings.batch_deadline
            or self.dashboard_address is not None
        )

    @property
    def has_own_processes(self) -> bool:
        """Whether worker processes, if there are any, are started by the job itself on this host,
        without Dask.
        """
        return self.scheduler is None and self.dashboard_address is None and self.engine != MG

    @property
    def sampled(self) -> list[str]:
        """The keys of settings that are given and ask for a sample of all vertices as sources."""
        keys = (key for key in ("samples", "epsilon") if key in self.kind.options_of_job)
        return [key for key in keys if self.value(key) is not None]

    @property
    def sources_file(self) -> str | None:
        """The file or URL that ``sources`` names; None if they are ids, or not given."""
        if isinstance(self.sources, str):
            return self.sources
        return None

    @property
    def targets_file(self) -> str | None:
        """The file or URL that ``targets`` names; None if they are ids, or not given."""
        if isinstance(self.targets, str):
            return self.targets
        return None

    def column(self, role: str) -> str | None:
        """Return the name of the column that the user gives a role, a key of ``COLUMN_ROLES``; None
        if none is given.
        """
        return (self.columns or {}).get(role)

    def find_table(self, role: str) -> str:
        """Return the key of the setting that names the table in which the column of a role is:
        "edges", "sources", "targets" or "pairs".

        It may depend on the result: a column of groups is in the table of targets for kinds that
        take targets.
        """
        for option in fields(self.kind.options_class):
            if option.metadata.get("column") == role:
                return str(option.metadata["table"])
        return COLUMN_ROLES[role]

    @property
    def groups_file(self) -> str | None:
        """The file whose table has the column of groups, if there is one: that of the targets or of
        the sources. None if these are ids, or not given.
        """
        if self.find_table("group") == "targets":
            return self.targets_file
        return self.sources_file

    def value(self, key: str) -> Any:
        """Return the value of the setting ``key``. For ``columns.ROLE`` return the name of the
        column of a role, None if none is given.
        """
        setting, _, role = key.partition(".")
        if role:
            return self.column(role)
        return getattr(self, setting)

    def is_given(self, key: str) -> bool:
        """Return whether a setting asks for something that a run without it does not do. ``key``
        may be ``columns.ROLE``.
        """
        value = self.value(key)
        default = getattr(Settings, key, None)
        # Beside the default, one value of these two leaves a run as it is, whatever its result.
        without_effect = {"workers": 1, "hierarchy": "no"}.get(key)
        if value in (None, default, without_effect):
            return False
        # False asks for something only where a switch is on by default.
        return value is not False or default is True

    def spelled(self, key: str, value: object = None) -> str:
        """Return the setting ``key`` as the user writes it, for messages: as a flag, or as an
        argument of Python. With a ``value`` other than None it is written with that value.
        """
        return option_text(key, value)


def flag_of_key(key: str) -> str:
    """Return the flag of the setting ``key``, such as ``--batch-size``. That of ``columns.ROLE`` is
    ``--columns ROLE=NAME``.
    """
    setting, _, role = key.partition(".")
    return "--" + setting.replace("_", "-") + (f" {role}=NAME" if role else "")


def _with_options_of_kinds(settings: type[Settings]) -> type[Settings]:
    """Return a subclass of ``settings`` in which each option of the result kinds is a field with
    a flag. Options of plug-ins are new fields.

    An option that is a column of a table has no field: it is a role of ``columns``, whose help
    names it.
    """
    added = {}  # name, type and field by key, as make_dataclass takes them
    known = {attribute.name for attribute in fields(Option)}
    # cached, as this is slow and several kinds have the same class of options
    hints: Any = functools.cache(typing.get_type_hints)
    for kind, option in _OPTIONS_OF_KINDS:
        if "column" in option.metadata:
            continue
        key = SETTINGS.get(option.name, option.name)
        kinds = rules.kinds_that_take(option.name, OUTPUT_SCHEMAS)
        facts = {name: value for name, value in option.metadata.items() if name in known}
        facts["help"] = f"for --result {kinds}: {facts['help']}"
        hint = hints(kind.options_class)[option.name]
        added[key] = (key, hint, _result(option.default, **facts))

    columns = settings.__dataclass_fields__["columns"]
    facts = {**columns.metadata}
    facts["help"] = "; ".join([facts["help"], *_explain_columns_of_kinds()])
    added["columns"] = ("columns", columns.type, field(default=None, metadata=facts))
    return make_dataclass("Settings", added.values(), bases=(settings,), frozen=True, kw_only=True)


def _explain_columns_of_kinds() -> list[str]:
    """Return a text for the help of ``--columns`` for each role that is an option of result kinds:
    the role, its table, the kinds, and what the column means.
    """
    # names of the kinds by (role, table, help): kinds that share all three are named together
    kinds_by_column: dict[tuple[str, str, str], list[str]] = {}
    for kind, option in _OPTIONS_OF_KINDS:
        if "column" in option.metadata:
            facts = option.metadata
            column = (facts["column"], facts["table"], facts["help"])
            kinds_by_column.setdefault(column, []).append(kind.name)
    return [
        f"{role} of --{table}, for {' or '.join(names)}: {text}"
        for (role, table, text), names in kinds_by_column.items()
    ]


def _unfit_option(kind: ResultKind) -> str:
    """Say which option of the result kind of a plug-in cannot be a setting, and why. Return ``""``
    if all can.
    """
    hints = typing.get_type_hints(kind.options_class)
    # Fields of settings without metadata are options of other kinds, with which a kind may share
    # an option of the same type and default.
    taken = {setting.name for setting in fields(Settings) if setting.metadata}
    shared = {
        option.name: (option.type, option.default)
        for other in OUTPUT_SCHEMAS.values()
        for option in fields(other.options_class)
        if other is not kind
    }
    types_of_flags = {value_kind.hint for value_kind in KINDS.values()} - {None}
    for option in fields(kind.options_class):
        name = option.name
        if not option.metadata.get("job", True):
            continue
        is_alike = shared.get(name) in (None, (option.type, option.default))
        if name in taken or not is_alike:
            return f"whose option {name!r} is already there; rename it"
        if "column" in option.metadata:
            return f"whose option {name!r} is a column, which the job reads of its own kinds"
        hint = _without_none(hints[name])
        if hint not in types_of_flags and typing.get_origin(hint) is not Literal:
            return f"whose option {name!r} has a type that no flag has; keep it out of the job"
    return ""


def _without_none(hint: Any) -> Any:
    """Return a type annotation without its member None, which stands for a value that is not given:
    ``int`` for ``int | None``. An annotation without None is returned unchanged.
    """
    members = typing.get_args(hint)
    if type(None) not in members:
        return hint
    others = [member for member in members if member is not type(None)]
    return functools.reduce(operator.or_, others)


# Kinds of plug-ins whose options cannot be settings are left out of the job.
for _kind in kinds_of_plugins():
    if _problem := _unfit_option(_kind):
        leave_out(_kind, _problem)

# Each kind with each of its options that is one of the job.
_OPTIONS_OF_KINDS = [
    (kind, option)
    for kind in OUTPUT_SCHEMAS.values()
    for option in fields(kind.options_class)
    if option.name in kind.options_of_job
]
# By the name of an argument of the library, the key of the setting that stands for it, where the
# two differ. A column of a table is ``columns.ROLE``.
SETTINGS = {"limits": "columns.limit"}
for _, _option in _OPTIONS_OF_KINDS:
    if "setting" in _option.metadata:
        SETTINGS[_option.name] = _option.metadata["setting"]
    if "column" in _option.metadata:
        SETTINGS[_option.name] = f"columns.{_option.metadata['column']}"
if not typing.TYPE_CHECKING:
    Settings = _with_options_of_kinds(Settings)


def _make_options() -> Iterator[Option]:
    """Yield the ``Option`` of each field of ``Settings`` that has a flag. Its kind and choices
    follow from the type of the field, unless the metadata say otherwise.
    """
    hints = typing.get_type_hints(Settings)
    kinds = {kind.hint: name for name, kind in KINDS.items()}
    for setting in fields(Settings):
        if "group" not in setting.metadata:  # edges and knobs have no flag
            continue
        hint = _without_none(hints[setting.name])
        kind = kinds.get(hint)
        choices = ()
        if typing.get_origin(hint) is Literal:
            kind = "choice"
            choices = typing.get_args(hint)
        facts: dict[str, Any] = {"kind": kind, **setting.metadata}
        yield Option(key=setting.name, default=setting.default, choices=choices, **facts)


OPTIONS = tuple(_make_options())

# At most one setting of each set: a flag replaces the others in a settings file.
SOURCE_CHOICES = ("sources", "random_sources", "all_sources", "pairs")
SCHEDULER_CHOICES = ("scheduler_address", "scheduler_file")
# The roles of columns, each with the setting that names its table.
COLUMN_ROLES: dict[str, str] = {}
for _table, _roles in {
    "edges": ("src", "dst", "weight", "oneway", "reverse_weight"),
    "sources": ("source", "limit"),
    "targets": ("target",),
    "pairs": ("origin", "destination"),
}.items():
    _roles_of_kinds = [
        option.metadata["column"]
        for _, option in _OPTIONS_OF_KINDS
        if option.metadata.get("table") == _table and "column" in option.metadata
    ]
    for _role in (*_roles, *_roles_of_kinds):
        COLUMN_ROLES.setdefault(_role, _table)
TLS = ("tls_ca_file", "tls_cert", "tls_key")  # all three or none


def flag_text(name: str, value: object = None) -> str:
    """Return the flag of the job that stands for an argument of the library, for messages.

    ``name`` is an argument of ``read_graph`` or of a search. ``value`` is shown as the value of the
    flag, quoted for a shell; None shows the flag alone, or with a placeholder.
    """
    # Options whose flag has another name, or none.
    if name == "weighted":  # the algorithm decides it
        if value is False:
            return "--algorithm bfs"
        return "--algorithm sssp"
    if name == "sources" and value == "all":
        return "--all-sources"
    if name == "directed":
        return "--undirected" if value is False else "--directed"
    if name == "knobs":  # a key of a settings file that has no flag
        return "knobs"
    if name == "scratch":  # the files of a graph that is built are where graphs are kept
        name = "graph_cache"

    # ``src_column`` is a role of --columns, as are some options of kinds.
    key = SETTINGS.get(name, name)
    column = name.removesuffix("_column")
    if key == name != column and column in COLUMN_ROLES:
        key = f"columns.{column}"
    setting, _, role = key.partition(".")
    flag = "--" + setting.replace("_", "-")
    if role:
        return f"{flag} {role}={'NAME' if value is None else shlex.quote(str(value))}"

    if name == "vertices" and value is None:
        return f"{flag} FILE"
    if value is None:
        return flag
    return f"{flag} {shlex.quote(str(value))}"
