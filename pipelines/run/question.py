"""The question of a run: read from its settings, recorded as the identity of its parts, and read again to verify them.

Each part of a question is one entry of ``FACTS``: how it is read, what identifies it in the manifest, and what to give if it
cannot be read again. A new option that decides what the parts hold is a setting, an entry here and a field of ``Question``.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np

from kepler_traverse.errors import InputError, PrecisionError, UnknownVertexError
from kepler_traverse.formats.ids import integer_id, read_ids, read_vertex_table
from kepler_traverse.graph import Graph, has_vertex
from kepler_traverse.kinds.opportunities import VERTEX

from ..cli.options import SETTINGS, Settings
from ..output.manifest_types import Identity
from ..output.rows import names_of
from ..output.run_folder import MANIFEST
from ..output.schemas import OUTPUT_SCHEMAS
from ..question import Ids, Question
from .edge_columns import read_along
from .given_table import numbers_in_column
from .pair_file import pairs_digest, read_pairs
from .source_columns import read_groups, read_limits, read_target_table, read_weights


def digest_of_ids(ids: Ids) -> str:
    """Return the SHA-256 of ids."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One part of a question, beside algorithm, result, limit and sources.

    Attributes
    ----------
    key : str
        The field of ``Question`` and the key of the identity.
    read : callable
        ``read(graph, settings)`` returns it; None if the settings do not ask for it.
    setting : str
        The setting that it is the value of; empty if it is read from files.
    identify : callable
        Returns what the identity records of it; not called for None.
    unless : object
        The value that the identity does not record, so that the fingerprints of runs without the option stay as they were.
    differs : str
        The error if it is not that of the run. Empty if it is the value of a setting, which a manifest that contradicts
        itself has wrong.
    file : str
        The setting that names the file it was read from, with which the error begins; empty if there are several.
    again : str
        What to give if it cannot be read again.
    """

    key: str
    read: Callable[[Graph, Settings], Any]
    setting: str = ""
    identify: Callable[[Any], Any] = attrgetter("digest")
    unless: object = None
    differs: str = ""
    file: str = ""
    again: str = ""


def targets_of(graph: Graph, settings: Settings) -> Ids | None:
    """Return the distinct targets, from ids or a file, in the type of the graph's ids and in the given order."""
    file = settings.targets_file
    if settings.targets is None:
        return None
    if file is not None and settings.column("target") is not None:
        table, column = read_target_table(settings)
        numbers = numbers_in_column(graph, file, table, column)
        if not numbers.size:
            raise InputError(f"{file}: the table of targets has no row")
        return list(dict.fromkeys(names_of(graph, numbers)))
    if file is not None:
        ids = ids_in(graph, file, "targets")
        return list(dict.fromkeys(ids if isinstance(ids, list) else ids.tolist()))
    given = ids_like(graph, list(settings.targets), "target")
    numbers_of_ids(graph, given, "target")
    return list(dict.fromkeys(given))


def numbers_of_ids(graph: Graph, ids: Ids, role: str) -> np.ndarray:
    """Return vertex numbers; the error for an only id that looks like the name of a file says that there is none."""
    try:
        return graph.numbers_of(ids, role)
    except UnknownVertexError as error:
        if len(ids) == 1 and os.path.splitext(str(ids[0]))[1] and not os.path.exists(ids[0]):
            raise UnknownVertexError(f"{error} Nor is there a file of that name.") from None
        raise


def ids_in(graph: Graph, file: str, what: str) -> Ids | np.ndarray:
    """Read the ids of sources or targets from a file, in the type of the graph's ids."""
    return read_ids(file, what).ids(graph.has_string_ids, functools.partial(has_vertex, graph))


def ids_like(graph: Graph, ids: Ids, role: str) -> Ids:
    """Convert ids that were given as text to the type of the graph's ids."""
    return [str(i) for i in ids] if graph.has_string_ids else [_integer(i, role) for i in ids]


def _integer(value: object, role: str) -> int:
    number = integer_id(value) if isinstance(value, str) else value
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    is_file = os.path.isfile(str(value))
    raise InputError(
        f"{role} {value!r} is not a vertex: the ids of this graph are integers; "
        + ("a file is given alone, in Python as a pathlib.Path" if is_file else "nor is there a file of that name")
    )


def _options_of_kind(graph: Graph, settings: Settings) -> Any:
    """Return the checked options of a kind that has a dataclass of them, None for others.

    Raises
    ------
    InputError
        The file of vertices cannot be read or lacks a column; and as ``KindOptions.checked``.
    """
    kind = OUTPUT_SCHEMAS[settings.result]
    if kind.options_class is None:
        return None
    given = {each.name: settings.value(SETTINGS.get(each.name, each.name)) for each in fields(kind.options_class)}
    if given.get("values") is not None:
        ids, columns = read_vertex_table(str(settings.vertices), given["values"])
        given["values"] = {VERTEX: ids.ids(graph.has_string_ids), **columns}
    if given.get("source_weights") is not None:
        given["source_weights"] = read_weights(graph, settings, given["source_weights"])
    try:
        return kind.options_class(**given).checked(kind, graph, settings.algorithm)
    except PrecisionError as error:  # the values are those of the user
        raise InputError(str(error)) from None


def _of_setting(key: str, setting: str = "", identify: Callable[[Any], Any] = str, unless: object = None) -> Fact:
    """Return the fact that is the value of a setting."""
    read = attrgetter(setting or key)
    return Fact(key=key, setting=setting or key, read=lambda _, given: read(given), identify=identify, unless=unless)


_SOURCES = "the table of the run's sources by --sources"
FACTS = (
    Fact(
        key="pairs",
        read=read_pairs,
        identify=pairs_digest,
        file="pairs",
        differs="these are not the pairs of the run; give its table by --pairs",
        again="the table of the run's pairs by --pairs",
    ),
    Fact(
        key="targets",
        read=targets_of,
        identify=digest_of_ids,
        file="targets_file",
        differs="these are not the targets of the run; give its own by --targets",
        again="the file of the run's targets by --targets",
    ),
    Fact(
        key="groups",
        read=read_groups,
        file="groups_file",
        differs="these are not the groups of the run; give its table by --sources, or by --targets for groups of targets",
        again="the table of the run's sources by --sources, or that of its targets by --targets",
    ),
    Fact(
        key="reduction",
        read=_options_of_kind,
        differs="the attributes in the file of vertices, or the weights of the sources, are not those of the run; give the "
        "files that the run read",
    ),
    Fact(
        key="along",
        read=read_along,
        differs="the columns of --along are not those of the run; give the files of edges that the run read",
    ),
    Fact(
        key="limits",
        read=read_limits,
        file="sources_file",
        differs="these are not the limits of the run; give its table by --sources",
        again=_SOURCES,
    ),
    _of_setting("direction"),
    _of_setting("k", "nearest_k", identify=int),
    _of_setting("unreached", unless="omit"),
    _of_setting("unconnected", unless="refuse"),
)


def question_of(settings: Settings, facts: dict[str, Any]) -> Question:
    """Return the question of settings and of what was read for them; facts that are missing are not asked for."""
    limit: Any = settings.max_depth if settings.algorithm == "bfs" else settings.cutoff
    reduction, limits = facts.get("reduction"), facts.get("limits")
    if reduction is not None and reduction.limit is not None:
        limit = reduction.limit
    if limits is not None:
        limit = limits.largest
    given = {key: value for key, value in facts.items() if value is not None}
    return Question(algorithm=settings.algorithm, result=settings.result, certify=settings.certify, limit=limit, **given)


def read_question(graph: Graph, settings: Settings) -> Question:
    """Read what the settings ask of a graph.

    Raises
    ------
    InputError
        A file cannot be read, or a value is wrong; the message names it.
    """
    return question_of(settings, {fact.key: fact.read(graph, settings) for fact in FACTS})


def read_question_again(graph: Graph, settings: Settings, identity: Identity) -> Question:
    """Read the question of a run again.

    Parameters
    ----------
    graph : Graph
    settings : Settings
        Those of the run, with the present paths of its files.
    identity : dict
        That of the run.

    Raises
    ------
    InputError
        Something cannot be read, or is not what the run read; the message says what to give.
    """
    facts = {}
    for fact in FACTS:
        try:
            facts[fact.key] = value = fact.read(graph, settings)
        except InputError as error:
            raise InputError(f"{error}; give {fact.again}" if fact.again else str(error)) from None
        if fact.differs and (None if value is None else fact.identify(value)) != identity.get(fact.key):
            where = f"{getattr(settings, fact.file) or MANIFEST}: " if fact.file else ""
            raise InputError(where + fact.differs)
    return question_of(settings, facts)


def identity_of(question: Question, fingerprint: str, sources: Ids, batch_size: int) -> Identity:
    """Return everything that determines the content of the parts.

    Parameters
    ----------
    question : Question
    fingerprint : str
        That of the graph.
    sources : list of ids
    batch_size : int
    """
    identity: dict[str, Any] = {
        "graph": fingerprint,
        "algorithm": question.algorithm,
        "limit": question.limit if question.limits is None and not OUTPUT_SCHEMAS[question.result].takes_cutoffs else None,
        "targets": None,
        "result": question.result,
        "certify": question.certify,
        "sources": digest_of_ids(sources),
        "batch_size": batch_size,
    }
    for fact in FACTS:
        value = getattr(question, fact.key)
        if value is not None and value != fact.unless:
            identity[fact.key] = fact.identify(value)
    return identity  # type: ignore[return-value]
