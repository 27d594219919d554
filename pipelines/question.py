"""The question of a run: what is asked of a graph.

An option of a kind of result is a field of the kind's own options. One of all kinds is a setting, a
field here, and a key of ``Identity`` in ``output.manifest_types``. ``run.question`` reads
questions.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kepler_traverse.kinds.result_kinds import PLAIN

if TYPE_CHECKING:
    from kepler_traverse.search.query import PairTable, SourceValues

Ids = list[Any]  # the user's ids: integers, or strings


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What a manifest says of a part of the question, which is read again to verify an output."""

    differs: str  # the error if it is not that of the run
    # the setting that names the file it was read from, with which the error begins; empty if
    # several
    file: str = ""
    again: str = ""  # what to give if it cannot be read again


# The identity records the digest of each.
FACTS = {
    "pairs": Fact(
        file="pairs",
        differs="these are not the pairs of the run; give its table by --pairs",
        again="the table of the run's pairs by --pairs",
    ),
    "targets": Fact(
        file="targets_file",
        differs="these are not the targets of the run; give its own by --targets",
        again="the file of the run's targets by --targets",
    ),
    "groups": Fact(
        file="groups_file",
        differs=(
            "these are not the groups of the run; give its table by --sources, "
            "or by --targets for groups of targets"
        ),
        again="the table of the run's sources by --sources, or that of its targets by --targets",
    ),
    "reduction": Fact(
        differs="the attributes in the file of vertices, the weights of the sources, or the edges of --through are not "
        "those of the run; give the files that the run read"
    ),
    "along": Fact(
        differs=(
            "the columns of --along are not those of the run; give the "
            "files of edges that the run read"
        )
    ),
    "limits": Fact(
        file="sources_file",
        differs="these are not the limits of the run; give its table by --sources",
        again="the table of the run's sources by --sources",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a graph: which result, of which searches, within which limits. It decides
    what the parts hold.
    """

    algorithm: str
    result: str  # name of the output schema
    certify: str
    limit: float | None  # maximum hop count or distance of all searches
    pairs: PairTable | None = None  # the rows of ``--pairs``, as vertex numbers
    targets: Ids | None = None
    # The limit of each source. Searches run to the largest, which is ``limit``, and results are cut
    # at their own.
    limits: SourceValues | None = None
    # of the distances: from the sources ("out") or to them ("in")
    direction: Literal["out", "in"] = "out"
    options: Any = PLAIN  # the checked options of the kind of result

    def identified(self) -> dict[str, Any]:
        """Return what the identity of a run records of the question, beside algorithm, result and
        limit.
        """
        given = {key: getattr(self, key) for key in ("pairs", "targets", "limits", "direction")}
        return {
            key: recorded(value) for key, value in given.items() if value is not None
        } | self.options.recorded


def recorded(value: Any) -> Any:
    """Return what the identity records of a value of a question: the value of a setting, or a
    digest.
    """
    if isinstance(value, list):
        return digest_of_ids(value)
    return getattr(value, "digest", value)


def digest_of_ids(ids: Ids) -> str:
    """Return the SHA-256 of ids."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()
