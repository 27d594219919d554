"""Rules of several settings of the job together, such as "A needs B": a row per rule. Settings are
named by their keys, and columns of tables by their roles as ``columns.ROLE``.

A ``Constraint`` has a function that says whether settings violate it, and texts of an error: why,
and what to do. In the texts ``{0}`` is the first setting as the user writes it, ``{name}`` another
one, and ``{name=}`` one with its value. A rule of one value is a fact of its option, in
``options``. A rule that reads a file, or the graph, is where that is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kepler_traverse.kinds.constraints import (
    Constraint,
    GivenOptions,
    all_or_none,
    is_value,
    not_both,
)

from .options import COLUMN_ROLES, MG, OPTIONS, SOURCE_CHOICES, TLS, Option, Settings
from .values import is_url


def needs_table(option: Option) -> Constraint:
    """Return the rule that an option which reads columns of a table, such as ``--keep-columns``, is
    given together with that table.
    """
    table = option.table
    formats = ""
    if table == "sources":
        table = "columns.source"  # sources may also be ids, which have no columns
        formats = ", Parquet or CSV with a header"
    return Constraint(
        names=(option.key, option.table),
        violated=lambda settings: settings.is_given(option.key) and settings.value(table) is None,
        why="{0} reads columns of {1}",
        remedy=f"give that table{formats}",
        of_tables=True,
    )


def only_with(name: str, other: str, value: str, remedy: str = "leave {0} out") -> Constraint:
    """Return the rule that the flag ``name`` of a program is given only where another flag has one
    value. ``remedy`` says what to do where it has another value.
    """
    return Constraint(
        names=(name, other),
        violated=lambda flags: flags.is_given(name) and flags.value(other) != value,
        why=f"{{0}} does not belong to {{{other}=}}",
        remedy=remedy,
    )


def _keeps_cache_in_output(settings: Settings) -> bool:
    """Return whether the folder of cached graphs is the output folder, or is in it."""
    if settings.output is None or settings.graph_cache is None:
        return False
    cache = _absolute_path(settings.graph_cache)
    output = _absolute_path(settings.output)
    # with a slash, so that /out/graphs is in /out, and /outer is not
    return f"{cache}/".startswith(f"{output}/")


def _absolute_path(path: str) -> str:
    """Return a URL without a slash at its end, or the absolute path of a folder."""
    if is_url(path):
        return path.rstrip("/")
    return os.path.abspath(path)


def _names_open_scheduler(settings: Settings) -> bool:
    """Return whether there is a key for TLS, but the scheduler's address is one without TLS."""
    address = settings.scheduler_address
    return settings.tls_key is not None and bool(address) and not str(address).startswith("tls://")


def _count_source_choices(settings: Settings) -> int:
    """Return how many of the settings that name sources are given."""
    return sum(map(settings.is_given, SOURCE_CHOICES))


def idle(name: str, violated: Callable[[Settings], object], why: str, *others: str) -> Constraint:
    """Return the rule that the setting ``name`` has no effect if ``violated(settings)`` is true.

    ``why`` completes the sentence "NAME has no effect: ...". ``others`` are the settings because of
    which it has none. A flag that violates such a rule is refused; a setting of a file is left out
    with a note.
    """
    return Constraint(
        names=(name, *others),
        violated=violated,
        why=f"{{0}} has no effect: {why}",
        remedy="leave it out",
        effect="idle",
    )


def _built_in_memory(key: str) -> Constraint:
    """Return the rule that ``build_memory``, a limit beyond which a graph is built in files, has no
    effect with the setting ``key``. By that setting rows of the edge list are looked up or left
    out, which is done in memory.
    """
    return idle(
        "build_memory",
        lambda settings: settings.value(key) not in (None, False),
        f"with {{{key}}} a graph is built in memory",
        key,
    )


_SCHEDULER = (
    "a scheduler is named by {scheduler_address}, {scheduler_file} "
    "or SCHEDULER_FILE in the environment"
)
# results that refuse closed vertices
NOT_OF_CLOSED = ("matrix", "reachable", "betweenness", "extremes")
_NO_WEIGHTS = "bfs counts hops and takes no weights; {algorithm=sssp} does"


def _has_no_table(role: str) -> Callable[[Settings], bool]:
    """Return a function that says whether settings name no file for the table with the column of a
    role.
    """

    def violated(settings: Settings) -> bool:
        """Return whether no file is given for the table."""
        # sources and targets may also be ids, which have no columns; pairs are always a file
        files = {"sources": settings.sources_file, "targets": settings.targets_file}
        return files.get(settings.find_table(role), settings.pairs) is None

    return violated


def _has_no_rows_per_source(settings: Settings) -> bool:
    """Return whether the rows of the result belong to all sources together, and not to one each."""
    return settings.kind.one_search or settings.kind.adds_up


# Settings without effect in combination with others. In a settings file, which may serve several
# runs, they are no error.
IDLE: tuple[Constraint, ...] = (
    idle(
        "partition_by",
        _has_no_rows_per_source,
        "the rows of {result=} belong to no source alone",
        "result",
    ),
    idle(
        "seed",
        lambda settings: not (settings.random_sources or settings.sampled),
        "it draws {random_sources}, and the sources are given otherwise",
        "random_sources",
    ),
    idle("weight_type", lambda settings: settings.algorithm == "bfs", _NO_WEIGHTS, "algorithm"),
    idle(
        "part_size",
        lambda settings: settings.batch_size != "auto",
        "{batch_size} gives the number of sources per part",
        "batch_size",
    ),
    idle(
        "part_size",
        lambda settings: settings.kind.one_search,
        "one search computes all of {result=}, and one part has it",
        "result",
    ),
    idle(
        "part_size",
        lambda settings: settings.kind.adds_up,
        "parts of {result=} do not grow with their sources",
        "result",
    ),
    idle(
        "part_size",
        lambda settings: settings.engine == MG,
        f"{{engine={MG}}} has as many sources per part as it searches from",
        "engine",
    ),
    idle(
        "workers",
        lambda settings: settings.scheduler,
        f"{_SCHEDULER}, and the job takes all of its workers",
        "scheduler_address",
    ),
    idle(
        "gpu_memory",
        lambda settings: settings.device == "cpu",
        "the run is on the CPU ({device=cpu})",
        "device",
    ),
    idle(
        "gpu_memory",
        lambda settings: settings.engine == MG,
        f"{{engine={MG}}} allocates for itself",
        "engine",
    ),
    idle(
        "worker_timeout",
        lambda settings: settings.engine == MG,
        f"{{engine={MG}}} ends as soon as a worker is lost",
        "engine",
    ),
    idle(
        "build_memory",
        lambda settings: settings.graph_cache is None,
        "without {graph_cache} a graph is built in memory",
        "graph_cache",
    ),
    *map(
        _built_in_memory,
        (
            "where",
            "only_vertices",
            "closed",
            "largest_component",
            "columns.oneway",
            "columns.reverse_weight",
        ),
    ),
    idle(
        "build_memory",
        lambda settings: settings.kind.needs_edge_rows or settings.along is not None,
        "with {result} a graph is built in memory",
        "result",
    ),
    idle(
        "dashboard_address",
        lambda settings: settings.scheduler,
        f"{_SCHEDULER}, and it has its own",
        "scheduler_address",
    ),
    *(
        idle(
            name,
            lambda settings: not is_url(settings.output),
            "{output} is in no object store",
            "output",
        )
        for name in ("price_requests", "price_gb")
    ),
    *(
        idle(
            f"columns.{role}",
            _has_no_table(role),
            f"it names a column of the table of {{{table}}}, and no such file is given",
            table,
        )
        for role, table in COLUMN_ROLES.items()
        if table != "edges"  # which a run always has
    ),
    *(
        idle(
            f"columns.{role}",
            lambda settings: settings.algorithm == "bfs",
            _NO_WEIGHTS,
            "algorithm",
        )
        for role in ("weight", "reverse_weight")
    ),
)


def _not_undirected(role: str) -> Constraint:
    """Return the rule that ``--undirected`` is not given together with a column, named by its role,
    that says which rows of the edge list are edges in both directions.
    """
    return Constraint(
        names=(f"columns.{role}", "directed"),
        violated=lambda settings: not settings.directed and settings.column(role) is not None,
        why="{0} says which rows are edges in both directions, and {directed=} says that all are",
        remedy="leave one of the two out",
    )


def not_of_mg(name: str, values: tuple[Any, ...], why: str, other: str = "") -> Constraint:
    """Return the rule that the engine cugraph-mg, which partitions a graph over several GPUs, takes
    the setting ``name`` only with one of ``values``.

    ``why`` is the reason in an error. ``other`` says what else to do than to leave the setting out.
    """
    return Constraint(
        names=(name, "engine"),
        violated=lambda settings: settings.engine == MG and not is_value(settings, name, *values),
        why=f"{{engine={MG}}}: {why}",
        remedy=f"leave {{0}} out{other}",
    )


_ALL_ROWS = "it reads all rows, each as the graph is directed"
_OF_EDGES = "its vertices are those of the edges"
_NO_STRATEGIES = "it has no strategies and no knobs"
# rules of the engine cugraph-mg
MG_ROWS: tuple[Constraint, ...] = (
    Constraint(
        names=("result", "engine"),
        violated=lambda settings: (
            settings.engine == MG
            and (
                settings.kind.suffix == "arrow"
                or settings.kind.has_predecessors
                or not settings.kind.takes_limits
            )
        ),
        why=f"{{engine={MG}}}: it writes no {{name}}",
        remedy="take {result=distances}",
    ),
    not_of_mg("device", ("auto", "cuda"), "it runs on GPUs"),
    not_of_mg("unreached", ("omit",), "it writes reached vertices only"),
    not_of_mg("columns.limit", (None,), "it takes one limit for all sources"),
    not_of_mg("along", (None,), "it adds up no other columns than the weights"),
    not_of_mg(
        "direction", ("out",), "it searches outwards only", ", or swap src and dst of {columns}"
    ),
    not_of_mg("strategy", ("auto",), _NO_STRATEGIES),
    not_of_mg("knobs", (None,), _NO_STRATEGIES),
    not_of_mg("hierarchy", ("auto", "no"), "it uses no hierarchy"),
    not_of_mg("shard", (None,), "all of its workers search together"),
    not_of_mg("partition_by", (None,), "its parts are in one folder"),
    not_of_mg("graph_cache", (None,), "its graph is partitioned and is not cached"),
    not_of_mg("vertices", (None,), _OF_EDGES),
    not_of_mg("only_vertices", (None,), _OF_EDGES),
    not_of_mg("where", (None,), _ALL_ROWS, ", or write the edges anew"),
    *(
        not_of_mg(f"columns.{role}", (None,), _ALL_ROWS, ", or write the edges anew")
        for role in ("oneway", "reverse_weight")
    ),
    not_of_mg("closed", (None,), "its paths lead through all vertices"),
    not_of_mg("largest_component", (False,), _OF_EDGES),
    not_of_mg(
        "id_type", ("auto",), "it takes integer ids as they are stored", ", or cast the columns"
    ),
    not_of_mg(
        "format", ("auto", "parquet"), "it reads Parquet files", ", and convert the edge list"
    ),
    Constraint(
        names=("engine", "output"),
        violated=lambda settings: settings.engine == MG and is_url(settings.output),
        why=f"{{engine={MG}}} writes to no object store",
        remedy="take an {output} folder that all hosts see",
    ),
)


OF_VERTICES = ("values", "geometry")  # options that read the table of vertices


def _no_file(name: str, is_for_tables: bool) -> Constraint:
    """Return the rule that the option ``name``, of how files of edges are read, has no effect where
    edges are in memory.

    ``is_for_tables`` is whether it has an effect on a table in memory, but not on a graph.
    """

    def violated(options: GivenOptions) -> bool:
        """Return whether the option is given, and nothing in the run reads it."""
        if not options.is_given(name) or (is_for_tables and options.value("edges") != "a graph"):
            return False
        # The table of vertices may still have what the result reads.
        return name != "vertices" or not any(map(options.is_given, OF_VERTICES))

    return Constraint(
        names=(name,),
        violated=violated,
        why="{0} has no effect: edges are {edges}",
        remedy="leave it out",
    )


def _no_weights(name: str) -> Constraint:
    """Return the rule that an option of weights, for edges in a table in memory, has no effect
    unless the algorithm is sssp.
    """
    return Constraint(
        names=(name,),
        violated=lambda options: (
            options.value("edges") != "a graph"
            and options.algorithm != "sssp"
            and options.is_given(name)
        ),
        why="a column or a type of weights has no effect: bfs counts hops",
        remedy="leave it out",
    )


def _no_column(role: str) -> Constraint:
    """Return the rule that no column has a role of the edge list where edges are a graph, which has
    no columns.
    """
    name = f"columns.{role}"
    return Constraint(
        names=(name,),
        violated=lambda options: options.value("edges") == "a graph" and options.is_given(name),
        why=f"columns names {role} {{value}}, and edges are a graph",
        remedy="leave it out",
    )


# Rules of calls of the job from Python with edges in memory. The option ``edges`` says what these
# are: "a graph" or "a table in memory".
IN_MEMORY: tuple[Constraint, ...] = (
    *(
        _no_file(option.key, option.reads == "tables")
        for option in OPTIONS
        if option.reads in ("files", "tables")
    ),
    Constraint(
        names=("along",),
        violated=lambda options: options.is_given("along"),
        why="{0} reads columns of the files of an edge list, and edges are in memory",
        remedy="give paths, or leave it out",
    ),
    *map(_no_weights, ("weight_type", "columns.weight")),
    *(_no_column(role) for role, table in COLUMN_ROLES.items() if table == "edges"),
)

# rules whose violation is an error
CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint(
        names=SOURCE_CHOICES,
        violated=lambda settings: (
            settings.kind.takes_sources and not _count_source_choices(settings)
        ),
        why="no sources are given",
        remedy="take one of {0}, {1}, {2} and {3}",
    ),
    Constraint(
        names=SOURCE_CHOICES,
        violated=lambda settings: (
            settings.kind.takes_sources and _count_source_choices(settings) > 1
        ),
        why="sources are given more than once, by {given}",
        remedy="take one",
    ),
    not_both("scheduler_address", "scheduler_file", "{flags} name two schedulers"),
    not_both("columns.limit", "max_depth", "{flags} both limit the distance"),
    not_both("columns.limit", "cutoff", "{flags} both limit the distance"),
    not_both("shard", "scheduler_address", "{flags} both give out the batches"),
    not_both("shard", "scheduler_file", "{flags} both give out the batches"),
    Constraint(
        names=("graph_cache", "output"),
        violated=_keeps_cache_in_output,
        why="{graph_cache=}: it is in the folder of {1}, which holds files of a run alone",
        remedy="take another folder",
    ),
    *(needs_table(option) for option in OPTIONS if option.table),
    all_or_none(*TLS),
    all_or_none("columns.origin", "columns.destination"),
    Constraint(
        names=TLS,
        violated=lambda settings: settings.tls_key is not None and not settings.scheduler,
        why="{0}, {1} and {2} are for a scheduler that runs already",
        remedy="name it, too",
    ),
    Constraint(
        names=("scheduler_address", *TLS),
        violated=_names_open_scheduler,
        why="{scheduler_address=} is not encrypted",
        remedy="with TLS it is tls://HOST:PORT",
    ),
    Constraint(
        names=("shard", "result"),
        violated=lambda settings: settings.shard is not None and settings.kind.one_search,
        why="{0} has no effect: one search computes all of {result=}",
        remedy="leave it out",
    ),
    Constraint(
        names=("cutoff", "max_depth"),
        violated=lambda settings: settings.algorithm == "bfs" and settings.cutoff is not None,
        why="{0} limits weighted distances (sssp)",
        remedy="bfs takes {1}",
    ),
    Constraint(
        names=("max_depth", "cutoff"),
        violated=lambda settings: settings.algorithm == "sssp" and settings.max_depth is not None,
        why="{0} limits hops (bfs)",
        remedy="sssp takes {1}",
    ),
    *map(_not_undirected, ("oneway", "reverse_weight")),
    Constraint(
        names=("columns.reverse_weight", "columns.oneway"),
        violated=lambda settings: (
            settings.column("oneway") is not None and settings.column("reverse_weight") is not None
        ),
        why="{0} says by itself which rows are edges in both directions",
        remedy="leave {1} out",
    ),
    Constraint(
        names=("closed", "algorithm"),
        violated=lambda settings: settings.closed is not None and settings.algorithm == "bfs",
        why="bfs reads no weights, and {0} needs them",
        remedy="take {algorithm=sssp} on edges of weight 1, which counts hops, too",
    ),
    Constraint(
        names=("closed", "result"),
        violated=lambda settings: (
            settings.closed is not None and settings.kind.name in NOT_OF_CLOSED
        ),
        why="the paths of {result=} may lead through all vertices",
        remedy="leave {0} out",
    ),
    Constraint(
        names=("closed", "direction"),
        violated=lambda settings: settings.closed is not None and settings.direction == "in",
        why="a job with {0} searches outwards only",
        remedy="swap src and dst of {columns}, or call sssp_many",
    ),
    Constraint(
        names=("hierarchy", "device"),
        violated=lambda settings: (
            settings.hierarchy == "yes"
            and settings.algorithm == "bfs"
            and settings.device == "cuda"
        ),
        why="{0} yes with bfs is for {1} cpu",
        remedy="leave one of them out",
    ),
    Constraint(
        names=("result", "device"),
        violated=lambda settings: settings.kind.of_labels and settings.device == "cuda",
        why="the labels of {result=} are made on the CPU",
        remedy="leave {1} out",
    ),
    Constraint(
        names=("result", "hierarchy"),
        violated=lambda settings: settings.kind.of_labels and settings.hierarchy == "no",
        why="the labels of {result=} are made of a hierarchy",
        remedy="leave {1} out",
    ),
    Constraint(
        names=("output", "plan"),
        violated=lambda settings: settings.output is None and not settings.plan,
        why="{0} is missing",
        remedy="name a folder for the results, or take {1} to see what would run",
    ),
    *MG_ROWS,
)


def has_effect(key: str, settings: Settings) -> bool:
    """Return whether a setting, by its key, has an effect in combination with the others.

    The first name of a rule is the setting that has none.
    """
    return not any(row.violated(settings) for row in IDLE if row.names[0] == key)
