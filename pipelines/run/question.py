"""The question of a run: read from its settings, recorded as the identity of its parts, and read
again to verify them.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kepler_traverse import arguments
from kepler_traverse._arrays import MAX_INTEGER, as_distance
from kepler_traverse.arguments import describe
from kepler_traverse.errors import InputError, PrecisionError, UnknownVertexError
from kepler_traverse.formats.ids import integer_id, read_ids
from kepler_traverse.formats.log_tables import refuse_log_table
from kepler_traverse.graph import Graph, find_vertices, has_vertex
from kepler_traverse.kinds.question import Question, Targets, digest_of_ids
from kepler_traverse.kinds.result_kinds import PLAIN
from kepler_traverse.labels import VERTEX

from ..cli.options import SETTINGS, Settings
from ..output.manifest_types import FACTS, Identity
from ..output.rows import Ids, get_names
from ..output.run_folder import MANIFEST
from .given_table import numbers_in_column, read_pairs, read_vertex_columns
from .source_columns import COLUMN_READERS, READ_TABLE


def read_vertices(
    graph: Graph, settings: Settings, what: Literal["sources", "targets"]
) -> np.ndarray:
    """Return the vertex numbers of the given sources or targets, from ids, a file of ids or a
    table, in the given order.
    """
    given = getattr(settings, what)
    role = what[:-1]
    if not isinstance(given, str):
        return numbers_of_ids(graph, ids_like(graph, list(given or ()), role), role)
    if settings.column(role) is None:
        return numbers_of_ids(graph, ids_in(graph, given, what), role, given)
    table, column = READ_TABLE[what](settings)
    return numbers_in_column(graph, given, table, column)


def read_targets(graph: Graph, settings: Settings, _: Ids | str) -> Ids:
    """Return the ids of the distinct targets, in the given order."""
    numbers = read_vertices(graph, settings, "targets")
    if not numbers.size:
        raise InputError(f"{settings.targets_file}: the table of targets has no row")
    names = get_names(graph, numbers)
    distinct = list(dict.fromkeys(names))
    counts_each = (
        "target_weights" in settings.kind.all_options and settings.column("target_weight") is None
    )
    if counts_each and len(distinct) < len(names):
        raise InputError("a target is given twice, and its flows would count twice; give it once")
    return distinct


def numbers_of_ids(
    graph: Graph, ids: Ids | np.ndarray, role: str, file: str | None = None
) -> np.ndarray:
    """Return vertex numbers; the error names the file of the ids, or says that there is none where
    an id looks like one.
    """
    try:
        return graph.to_numbers(ids, role)
    except UnknownVertexError as error:
        if file is not None:
            advice = ""
            if file.endswith(".csv") and graph.has_string_ids and not has_vertex(graph, ids[0]):
                advice = (
                    f" If {ids[0]!r} is the name of its column, give --columns {role}={ids[0]}."
                )
            raise UnknownVertexError(f"{file}: {error}{advice}") from None
        raise advised(error, ids, f"{role}s") from None


def advised(error: UnknownVertexError, ids: Ids | np.ndarray, what: str) -> UnknownVertexError:
    """Return the error of listed ids, with advice if the only one may be the name of a file.

    Raises InputError: it is the folder of a table of another format.
    """
    name = str(ids[0])
    if len(ids) == 1 and os.path.isdir(name):
        refuse_log_table(name, what)
        return UnknownVertexError(f"{error} There is a folder of that name: name one file in it.")
    if len(ids) == 1 and os.path.splitext(name)[1] and not os.path.exists(name):
        return UnknownVertexError(f"{error} Nor is there a file of that name.")
    return error


def ids_in(graph: Graph, file: str, what: str) -> Ids | np.ndarray:
    """Read the ids of sources or targets from a file, in the type of the graph's ids."""
    return read_ids(file, what).ids(graph.has_string_ids, functools.partial(has_vertex, graph))


def ids_like(graph: Graph, ids: Ids, role: str) -> Ids:
    """Convert ids that were given as text, which has no types, to the type of the graph's ids."""
    if graph.has_string_ids:
        return list(ids)
    return [_integer(i, role) for i in ids]


def _integer(value: object, role: str) -> int:
    """Return an id as an integer; the error says what else the text may be."""
    number = integer_id(value) if isinstance(value, str) else value
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    advice = "nor is there a file of that name"
    if os.path.isdir(str(value)):
        refuse_log_table(str(value), f"{role}s")
        advice = "there is a folder of that name, and a file is needed; give one file"
    elif os.path.exists(str(value)):
        advice = "a file is given alone, in Python as a pathlib.Path"
    raise InputError(
        f"{role} {describe(value)} is not a vertex: the ids of this graph are integers; {advice}"
    )


def _read_attributes(graph: Graph, settings: Settings, names: list[str]) -> dict[str, Any]:
    """Return the ids of vertices and their attributes, by the table of vertices."""
    found, columns = read_vertex_columns(str(settings.vertices), names)
    ids = found.ids(graph.has_string_ids)
    if settings.largest_component or settings.only_vertices:
        # All are vertices, since they are in the table, and some are left out.
        kept = find_vertices(graph, ids) >= 0
        ids = list(itertools.compress(ids, kept))
        columns = {name: column.filter(pa.array(kept)) for name, column in columns.items()}
    return {VERTEX: ids, **columns}


# Functions that read what settings name, by the field of ``Question`` or the option of a kind:
# ``read(graph, settings, value)``. Other options are the values of their settings.
_READERS: dict[str, Callable[[Graph, Settings, Any], Any]] = {
    "pairs": read_pairs,
    "targets": read_targets,
    "values": _read_attributes,
    **COLUMN_READERS,
}


def options_of_kind(graph: Graph, settings: Settings, given: dict[str, Any], **ends: Any) -> Any:
    """Return the checked options of the kind, for pairs or targets; raise InputError as
    ``KindOptions.checked``.
    """
    kind = settings.kind
    try:
        return kind.options_class(**given).checked(kind, graph, settings.algorithm, **ends)
    except (InputError, PrecisionError) as error:  # the values are those of the user
        if settings.vertices is not None and "values" in str(error).partition("[")[0]:
            raise InputError(f"{settings.vertices}: {error}") from None
        raise error if isinstance(error, InputError) else InputError(str(error)) from None


def make_question(
    settings: Settings, options: Any = PLAIN, limits: Any = None, **tables: Any
) -> Question:
    """Return the question of settings, and of what was read for them."""
    return Question.of(
        settings.kind,
        settings.algorithm,
        limit=limit_of_settings(settings),
        limits=limits,
        options=options,
        certify=settings.certify,
        direction=settings.direction,
        **tables,
    )


def limit_of_settings(settings: Settings) -> int | float | None:
    """Return the limit of all searches, as manifests record it: a cutoff is a float, unless it is
    an int64 that floats lack.

    Raises InputError: the cutoff is beyond every float.
    """
    if settings.algorithm == "bfs":
        return settings.max_depth
    if settings.cutoff is None:
        return None
    cutoff = arguments.limit("cutoff", settings.cutoff)
    as_float = as_distance(cutoff, np.dtype(np.float64)).item()
    if as_float != cutoff <= MAX_INTEGER:
        return cutoff
    return as_float


def read_question(graph: Graph, settings: Settings, identity: Identity | None = None) -> Question:
    """Read what the settings ask of a graph.

    ``settings``: to read the question of a run again, those of the run, with the present paths of
    its files. ``identity``: that of the run. What is read must be what the run read.

    Raises InputError: a file cannot be read, or a value is wrong; the message names it. With
    ``identity``, it also says what to give.
    """
    own = fields(settings.kind.options_class)
    names = [
        each.name for each in own if each.metadata.get("job", True) or "setting" in each.metadata
    ]
    again = {}
    if identity is not None:
        again = {name: fact.again for name, fact in FACTS.items()}
        again |= {
            each.name: f"that of the run by --{each.name}"
            for each in own
            if each.metadata.get("kind") == "file"
        }
    values = {}
    for name in ("pairs", "targets", "limits", *names):
        try:
            values[name] = _read_value(graph, settings, name)
        except InputError as error:
            if not again.get(name):
                raise
            raise InputError(f"{error}; give {again[name]}") from None
    targets = Targets.of(graph, values["targets"])
    values["targets"] = targets
    ends = {}
    if settings.kind.adds_up:
        numbers = None if targets is None else targets.numbers
        ends = {"targets": numbers, "pairs": values["pairs"]}
    options = options_of_kind(graph, settings, {name: values.pop(name) for name in names}, **ends)
    question = make_question(settings, options, **values)
    if identity is not None:
        _refuse_another_question(question, settings, identity)
    return question


def _read_value(graph: Graph, settings: Settings, name: str) -> Any:
    """Return the value of an option, or what is read of the file that its setting names."""
    value = settings.value(SETTINGS.get(name, name))
    if value is None or name not in _READERS:
        return value
    return _READERS[name](graph, settings, value)


def _refuse_another_question(question: Question, settings: Settings, identity: Identity) -> None:
    """Raise InputError if files that were read again are not those of the run."""
    recorded = question.recorded()
    for key, fact in FACTS.items():
        if recorded.get(key) != identity.get(key):
            where = ""
            if fact.file:
                where = f"{getattr(settings, fact.file) or MANIFEST}: "
            raise InputError(where + fact.differs)


def make_identity(
    question: Question,
    fingerprint: str,
    sources: Ids,
    batch_size: int,
    partitions: dict[str, int] | None = None,
) -> Identity:
    """Return everything that determines the content of the parts.

    ``fingerprint``: that of the graph. ``partitions``: those of a ``Layout``.
    """
    identity: Any = {
        "graph": fingerprint,
        **question.recorded(),
        "sources": digest_of_ids(sources),
        "batch_size": batch_size,
    }
    if partitions is not None:
        identity["partitions"] = partitions
    return identity
