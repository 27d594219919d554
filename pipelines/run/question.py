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
    """Return the vertex numbers of sources or targets in the given order (int64 array).

    ``what`` says which. The settings have them as a list of ids, as a file of ids, or as a table
    with a column of ids. Raises UnknownVertexError: an id is no vertex.
    """
    ids_or_file = getattr(settings, what)
    role = what[:-1]
    if not isinstance(ids_or_file, str):
        return numbers_of_ids(graph, convert_ids(graph, list(ids_or_file or ()), role), role)
    if settings.column(role) is None:
        ids = read_id_file(graph, ids_or_file, what)
        return numbers_of_ids(graph, ids, role, ids_or_file)
    table, column = READ_TABLE[what](settings)
    return numbers_in_column(graph, ids_or_file, table, column)


def read_targets(graph: Graph, settings: Settings, _: Ids | str) -> Ids:
    """Return the ids of the distinct targets, in the given order.

    The last argument is the value of the setting, which all functions of ``_READERS`` get. It is
    not used: ``read_vertices`` takes it from the settings.

    Raises InputError: there are none, or flows would count a target twice.
    """
    numbers = read_vertices(graph, settings, "targets")
    if not numbers.size:
        raise InputError(f"{settings.targets_file}: the table of targets has no row")
    names = get_names(graph, numbers)
    distinct = list(dict.fromkeys(names))
    # Each target counts with its weight, which is 1 without a column of weights. A target that is
    # given twice would count twice. (With a column, its reader refuses that.)
    has_weights = settings.column("target_weight") is not None
    weighs_targets = "target_weights" in settings.kind.all_options
    if weighs_targets and not has_weights and len(distinct) < len(names):
        raise InputError("a target is given twice, and its flows would count twice; give it once")
    return distinct


def numbers_of_ids(
    graph: Graph, ids: Ids | np.ndarray, role: str, file: str | None = None
) -> np.ndarray:
    """Return the vertex numbers of ids (int64 array).

    ``role``: "source" or "target", for errors. ``file``: the one that the ids are from; None if
    they were listed, and the error may then advise that an id looks like a file.

    Raises UnknownVertexError: an id is no vertex.
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
        raise with_advice(error, ids, f"{role}s") from None


def with_advice(error: UnknownVertexError, ids: Ids | np.ndarray, what: str) -> UnknownVertexError:
    """Return the error of listed ids, with advice if there is only one, which may be meant as the
    name of a file.

    ``what``: what the ids are, as "sources".

    Raises InputError: the id is the name of a folder with a table of Delta Lake or Iceberg.
    """
    name = str(ids[0])
    if len(ids) == 1 and os.path.isdir(name):
        refuse_log_table(name, what)
        return UnknownVertexError(f"{error} There is a folder of that name: name one file in it.")
    if len(ids) == 1 and os.path.splitext(name)[1] and not os.path.exists(name):
        return UnknownVertexError(f"{error} Nor is there a file of that name.")
    return error


def read_id_file(graph: Graph, file: str, what: str) -> Ids | np.ndarray:
    """Return the ids in a file of sources or targets, in the type of the graph's ids.

    ``file``: its path. ``what``: "sources" or "targets".
    """
    return read_ids(file, what).ids(graph.has_string_ids, functools.partial(has_vertex, graph))


def convert_ids(graph: Graph, ids: Ids, role: str) -> Ids:
    """Return ids in the type of the graph's ids; they may have been given as text, which has no
    types. ``role``: "source" or "target", for errors.
    """
    if graph.has_string_ids:
        return list(ids)
    return [_to_integer_id(value, role) for value in ids]


def _to_integer_id(value: object, role: str) -> int:
    """Return an id as an integer; raise InputError if it is none, which says what else the text may
    be meant as. ``role``: "source" or "target", for errors.
    """
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
    """Return the ids of the vertices and their attributes in the columns ``names`` of the table of
    vertices, by column; the ids are under ``VERTEX``.
    """
    id_file, columns = read_vertex_columns(str(settings.vertices), names)
    ids = id_file.ids(graph.has_string_ids)
    # The settings may leave vertices of the table out of the graph; their rows are dropped.
    if settings.largest_component or settings.only_vertices:
        is_in_graph = find_vertices(graph, ids) >= 0
        ids = list(itertools.compress(ids, is_in_graph))
        columns = {name: column.filter(pa.array(is_in_graph)) for name, column in columns.items()}
    return {VERTEX: ids, **columns}


# Functions that read the file or the table which a setting names, by the field of ``Question`` or
# the option of a kind: ``read(graph, settings, value)``. Other options are the values of their
# settings.
_READERS: dict[str, Callable[[Graph, Settings, Any], Any]] = {
    "pairs": read_pairs,
    "targets": read_targets,
    "values": _read_attributes,
    **COLUMN_READERS,
}


def options_of_kind(graph: Graph, settings: Settings, values: dict[str, Any], **ends: Any) -> Any:
    """Return the checked options of the result kind; raise InputError if a value is wrong.

    ``values``: of the options, by name. ``ends``: ``pairs`` and ``targets``, for kinds that need
    them to check their options.
    """
    kind = settings.kind
    try:
        return kind.options_class(**values).checked(kind, graph, settings.algorithm, **ends)
    except (InputError, PrecisionError) as error:
        # An error about attributes begins with "values", and gets the name of the user's file.
        if settings.vertices is not None and "values" in str(error).partition("[")[0]:
            raise InputError(f"{settings.vertices}: {error}") from None
        raise error if isinstance(error, InputError) else InputError(str(error)) from None


def make_question(settings: Settings, options: Any, limits: Any = None, **tables: Any) -> Question:
    """Return the question that settings ask.

    ``options``: the checked options of the result kind. ``limits``: the limit of each source, or
    None. ``tables``: ``pairs`` and ``targets``, as they were read.
    """
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
    """Return the limit of all searches, as manifests record it; None without one.

    For bfs it is a number of hops. For sssp it is a distance: a float, or an integer if int64 holds
    that integer and float64 does not. Raises InputError: the cutoff is beyond every float.
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
    """Read what the settings ask of a graph: tables, targets, limits and options of the kind.

    Parameters
    ----------
    graph : Graph
        In which ids are looked up.
    settings : Settings
        To read the question of a run again, those of the run, with the present paths of its files.
    identity : Identity, optional
        That of the run whose question is read again. What is read must be what the run has read.

    Raises
    ------
    InputError
        A file cannot be read, or a value is wrong; the message names it. With ``identity``, it also
        says what to give.
    """
    option_fields = fields(settings.kind.options_class)
    # Options that the job does not have are left out, unless another setting of it stands for them.
    option_names = [
        option.name
        for option in option_fields
        if option.metadata.get("job", True) or "setting" in option.metadata
    ]

    # The values; if a run is read again, an error says which file to give. ``FACTS`` has, for each
    # file of which the identity has a digest, what the user is to give (``again``).
    advice = {}
    if identity is not None:
        advice = {name: fact.again for name, fact in FACTS.items()}
        advice |= {
            option.name: f"that of the run by --{option.name}"
            for option in option_fields
            if option.metadata.get("kind") == "file"
        }
    values = {}
    for name in ("pairs", "targets", "limits", *option_names):
        try:
            values[name] = _read_value(graph, settings, name)
        except InputError as error:
            if not advice.get(name):
                raise
            raise InputError(f"{error}; give {advice[name]}") from None

    # The question. Only kinds with sums over sources (``adds_up``) need its pairs or targets to
    # check their options.
    targets = Targets.of(graph, values["targets"])  # with their vertex numbers
    values["targets"] = targets
    ends = {}
    if settings.kind.adds_up:
        numbers = None if targets is None else targets.numbers
        ends = {"targets": numbers, "pairs": values["pairs"]}
    of_kind = {name: values.pop(name) for name in option_names}
    options = options_of_kind(graph, settings, of_kind, **ends)
    question = make_question(settings, options, **values)
    if identity is not None:
        _refuse_another_question(question, settings, identity)
    return question


def _read_value(graph: Graph, settings: Settings, name: str) -> Any:
    """Return the value of the option ``name``, or, if its setting names a file or columns, what is
    read from there; None if it is not set.
    """
    # ``SETTINGS`` has the setting of an option that is called otherwise, such as "columns.limit".
    value = settings.value(SETTINGS.get(name, name))
    if value is None or name not in _READERS:
        return value
    return _READERS[name](graph, settings, value)


def _refuse_another_question(question: Question, settings: Settings, identity: Identity) -> None:
    """Raise InputError if files that were read again differ from those of the run.

    The digests of what was read (``question.recorded``) are compared with those in ``identity``.
    """
    recorded = question.recorded()
    for key, fact in FACTS.items():
        if recorded.get(key) != identity.get(key):
            place = ""
            if fact.file:
                place = f"{getattr(settings, fact.file) or MANIFEST}: "
            raise InputError(place + fact.differs)


def make_identity(
    question: Question,
    fingerprint: str,
    sources: Ids,
    batch_size: int,
    partitions: dict[str, int] | None = None,
) -> Identity:
    """Return everything that determines the content of the parts, for the manifest.

    ``question``: what is computed. ``fingerprint``: that of the graph. ``sources``: ids of the
    sources, in the order of the parts. ``batch_size``: sources per part. ``partitions``: number of
    sources by the folder of their parts; None if all are in one folder.
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
