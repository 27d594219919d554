"""What settings together must be: a row per rule.

A rule of one value is a fact of its option, in ``options``. A rule that reads a file, or the graph,
is where that is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .options import MG, OPTIONS, TLS, Option, Settings, flag_of_key, is_url


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A rule of several settings.

    ``names`` are keys of settings, or roles as ``columns.ROLE``; the first is to blame. ``why`` is
    the fact and ``remedy`` what to do, if the fact does not say it. In both, ``{0}`` is the flag of
    the first name, ``{result}`` the value of a setting, ``{flags}`` all flags and ``{missing}``
    those that are not given.
    """

    names: tuple[str, ...]
    violated: Callable[[Settings], object]
    why: str
    remedy: str = ""

    def message(self, given: Settings) -> str:
        """Return the error for settings that violate the rule."""
        flags = [flag_of_key(name) for name in self.names]
        missing = [flag_of_key(name) for name in self.names if given.value(name) is None]
        facts = {**vars(given), "flags": " and ".join(flags), "missing": " and ".join(missing)}
        text = f"{self.why}; {self.remedy}" if self.remedy else self.why
        return text.format(*flags, **facts)


def not_both(one: str, other: str, why: str) -> Constraint:
    """Return the rule that one of two settings is left out."""
    return Constraint(
        names=(one, other),
        violated=lambda given: given.value(one) is not None and given.value(other) is not None,
        why=f"{{flags}} {why}",
        remedy="leave one of them out",
    )


def all_or_none(*names: str) -> Constraint:
    """Return the rule that settings are given together."""

    def violated(given: Settings) -> bool:
        n_given = sum(given.value(name) is not None for name in names)
        return 0 < n_given < len(names)

    return Constraint(
        names=names,
        violated=violated,
        why="{flags} go together",
        remedy="give {missing}, too, or none of them",
    )


def needs_table(option: Option) -> Constraint:
    """Return the rule that an option which reads columns comes with their table."""
    if option.table == "sources":
        table = "columns.source"  # sources may also be ids, which have no columns
        more = ", Parquet or CSV with a header"
    else:
        table = option.table
        more = ""
    return Constraint(
        names=(option.key, option.table),
        violated=lambda given: given.is_given(option.key) and given.value(table) is None,
        why="{0} reads columns of {1}",
        remedy=f"give that table{more}",
    )


def _keeps_cache_in_output(given: Settings) -> bool:
    if given.output is None or given.graph_cache is None:
        return False
    cache = _whole_path(given.graph_cache)
    output = _whole_path(given.output)
    return f"{cache}/".startswith(f"{output}/")


def _whole_path(path: str) -> str:
    if is_url(path):
        return path.rstrip("/")
    return os.path.abspath(path)


def _names_open_scheduler(given: Settings) -> bool:
    address = given.scheduler_address
    return given.tls_key is not None and bool(address) and not str(address).startswith("tls://")


CONSTRAINTS: tuple[Constraint, ...] = (
    not_both("scheduler_address", "scheduler_file", "name two schedulers"),
    not_both("columns.limit", "max_depth", "both limit the distance"),
    not_both("columns.limit", "cutoff", "both limit the distance"),
    not_both("shard", "scheduler_address", "both give out the batches"),
    not_both("shard", "scheduler_file", "both give out the batches"),
    Constraint(
        names=("graph_cache", "output"),
        violated=_keeps_cache_in_output,
        why="{0} {graph_cache}: it is in the folder of {1}, which holds files of a run alone",
        remedy="take another folder",
    ),
    *(needs_table(option) for option in OPTIONS if option.table),
    all_or_none(*TLS),
    all_or_none("columns.origin", "columns.destination"),
    Constraint(
        names=TLS,
        violated=lambda given: given.tls_key is not None and not given.scheduler,
        why="{0}, {1} and {2} are for a scheduler that runs already",
        remedy="name it, too",
    ),
    Constraint(
        names=("scheduler_address", *TLS),
        violated=_names_open_scheduler,
        why="{0} {scheduler_address} is not encrypted",
        remedy="with TLS it is tls://HOST:PORT",
    ),
    Constraint(
        names=("shard", "result"),
        violated=lambda given: given.shard is not None and given.kind.one_search,
        why="{0} has no effect: one search computes all of {1} {result}",
        remedy="leave it out",
    ),
    Constraint(
        names=("engine", "output"),
        violated=lambda given: given.engine == MG and is_url(given.output),
        why="{0} {engine} writes to no object store",
        remedy="take an {1} folder that all hosts see",
    ),
    Constraint(
        names=("cutoff", "max_depth"),
        violated=lambda given: given.algorithm == "bfs" and given.cutoff is not None,
        why="{0} limits weighted distances (sssp)",
        remedy="bfs takes {1}",
    ),
    Constraint(
        names=("max_depth", "cutoff"),
        violated=lambda given: given.algorithm == "sssp" and given.max_depth is not None,
        why="{0} limits hops (bfs)",
        remedy="sssp takes {1}",
    ),
    Constraint(
        names=("columns.oneway", "directed"),
        violated=lambda given: not given.directed and given.column("oneway") is not None,
        why=(
            "{0} says which rows are edges in both directions, and --undirected says that all are"
        ),
        remedy="leave one of the two out",
    ),
    Constraint(
        names=("hierarchy", "device"),
        violated=lambda given: (
            given.hierarchy == "yes" and given.algorithm == "bfs" and given.device == "cuda"
        ),
        why="{0} yes with bfs is for {1} cpu",
        remedy="leave one of them out",
    ),
    Constraint(
        names=("output", "plan"),
        violated=lambda given: given.output is None and not given.plan,
        why="{0} is missing: name a folder for the results, or take {1} to see what would run",
    ),
)


def violations(given: Settings) -> Iterator[str]:
    """Yield the error for each rule that settings violate."""
    for constraint in CONSTRAINTS:
        if constraint.violated(given):
            yield constraint.message(given)
