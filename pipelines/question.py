"""The question of a run: what is asked of a graph.

Each field of ``Question`` says how it is read from the settings, what identifies it in the manifest, and what to give if it
cannot be read again. A new option that decides what the parts hold is a setting and a field here. ``run.question`` reads
questions, and ``Identity`` in ``output.manifest_types`` has a key for each field.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from kepler_traverse.search.query import Digested, digest_of

if TYPE_CHECKING:
    from kepler_traverse.kinds.k_nearest import SourceGroups
    from kepler_traverse.search.query import PairTable, SourceValues

    from .output.schemas import ResultName

Ids = list[Any]  # the user's ids: integers, or strings


class AlongPaths(Digested):
    """What to sum along the paths of pairs.

    Attributes
    ----------
    values : dict of str to int64 or float64 array
        By name, one value per row of the edge list.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        self.values = values

    @property
    def digest(self) -> str:
        return digest_of([(name, str(value.dtype)) for name, value in self.values.items()], self.values.values())


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What a field of ``Question`` says of itself."""

    # ``"MODULE.FUNCTION"`` of ``pipelines.run``: ``function(graph, settings)`` returns it, None if the settings do not ask
    # for it. Empty if it is the value of a setting.
    read: str = ""
    setting: str = ""  # that setting
    # What the identity records: a digest (str), a number of 1 or more (int), or one of these values.
    recorded: type | tuple[str, ...] = str
    # Otherwise the identity lacks the default, so that fingerprints of runs without the option stay as they were.
    is_always_recorded: bool = False
    # The error if it is not that of the run. Empty if it is the value of a setting, which a manifest that contradicts itself
    # has wrong.
    differs: str = ""
    # The setting that names the file it was read from, with which the error begins; empty if there are several.
    file: str = ""
    again: str = ""  # what to give if it cannot be read again


def _read_by(function: str, differs: str, file: str = "", again: str = "") -> dict[str, Fact]:
    return {"fact": Fact(read=function, differs=differs, file=file, again=again)}


def _of_setting(setting: str, recorded: type | tuple[str, ...], is_always_recorded: bool = False) -> dict[str, Fact]:
    return {"fact": Fact(setting=setting, recorded=recorded, is_always_recorded=is_always_recorded)}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a graph: which result, of which searches, within which limits. It decides what the parts hold."""

    algorithm: str
    result: ResultName  # name of the output schema
    certify: str
    limit: float | None  # maximum hop count or distance of all searches
    # The rows of ``--pairs``, as vertex numbers.
    pairs: PairTable | None = field(
        default=None,
        metadata=_read_by(
            "pair_file.read_pairs",
            file="pairs",
            differs="these are not the pairs of the run; give its table by --pairs",
            again="the table of the run's pairs by --pairs",
        ),
    )
    # List of ids or None.
    targets: Ids | None = field(
        default=None,
        metadata=_read_by(
            "question.targets_of",
            file="targets_file",
            differs="these are not the targets of the run; give its own by --targets",
            again="the file of the run's targets by --targets",
        ),
    )
    # Groups of the sources, or of the targets for kinds that take these, each with its own nearest ones.
    groups: SourceGroups | None = field(
        default=None,
        metadata=_read_by(
            "source_columns.read_groups",
            file="groups_file",
            differs="these are not the groups of the run; give its table by --sources, or by --targets for groups of "
            "targets",
            again="the table of the run's sources by --sources, or that of its targets by --targets",
        ),
    )
    # The options of the kind of result: cutoffs and attributes of the vertices, or an instance of its own dataclass.
    reduction: Any = field(
        default=None,
        metadata=_read_by(
            "question.options_of_kind",
            differs="the attributes in the file of vertices, or the weights of the sources, are not those of the run; give "
            "the files that the run read",
        ),
    )
    # Columns of the edge list to sum along paths.
    along: AlongPaths | None = field(
        default=None,
        metadata=_read_by(
            "edge_columns.read_along",
            differs="the columns of --along are not those of the run; give the files of edges that the run read",
        ),
    )
    # The limit of each source. Searches run to the largest, which is ``limit``, and results are cut at their own.
    limits: SourceValues | None = field(
        default=None,
        metadata=_read_by(
            "source_columns.read_limits",
            file="sources_file",
            differs="these are not the limits of the run; give its table by --sources",
            again="the table of the run's sources by --sources",
        ),
    )
    # {"out", "in"}: direction of the distances: from the sources ("out") or to them ("in").
    direction: str = field(default="out", metadata=_of_setting("direction", ("out", "in"), is_always_recorded=True))
    # Number of nearest sources of each vertex, for the kind that takes it.
    k: int | None = field(default=None, metadata=_of_setting("nearest_k", int))
    # {"omit", "null", "cugraph"}: how vertices without a path are written.
    unreached: str = field(default="omit", metadata=_of_setting("unreached", ("omit", "null", "cugraph")))
    # {"refuse", "largest"}: for the extremes of a graph.
    unconnected: str = field(default="refuse", metadata=_of_setting("unconnected", ("refuse", "largest")))

    def identified(self) -> dict[str, Any]:
        """Return what the identity of a run records of the question, beside algorithm, result and limit."""
        given = {key: getattr(self, key) for key in FACTS}
        return {
            key: recorded(value)
            for key, value in given.items()
            if value is not None and (FACTS[key].is_always_recorded or value != getattr(Question, key))
        }


FACTS: dict[str, Fact] = {each.name: each.metadata["fact"] for each in fields(Question) if each.metadata}


def recorded(value: Any) -> Any:
    """Return what the identity records of a value of a question: the value of a setting, or a digest."""
    return digest_of_ids(value) if isinstance(value, list) else getattr(value, "digest", value)


def digest_of_ids(ids: Ids) -> str:
    """Return the SHA-256 of ids."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()
