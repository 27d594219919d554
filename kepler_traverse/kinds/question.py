"""What is asked of a graph: one object from keyword arguments, flags or a settings file to plans,
tasks, the identity of a run, and its verification.

An option of a kind of result is a field of the kind's own options; one of all kinds is a field
here.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal

import numpy as np

from ..errors import EdgeListWarning
from ..graph import Graph
from ..graph.closed import where_paths_end
from ..search.query import PairTable, Query, SourceValues
from .constraints import GivenOptions, refuse, violations
from .records import Asked
from .result_kinds import PLAIN, OptionsT, ResultKind


def digest_of_ids(ids: list[Any]) -> str:
    """Return the SHA-256 of ids, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets in the given order."""

    ids: Any  # the user's: a list or an array
    numbers: np.ndarray  # int64 of shape (n_targets,): the vertex numbers where paths to them end

    @classmethod
    def of(cls, graph: Graph, ids: Any) -> Targets | None:
        """Look targets up, which may be None; raise UnknownVertexError if one is no vertex."""
        if ids is None:
            return None
        return cls(ids, where_paths_end(graph, graph.to_numbers(ids, "target")))

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, in their order."""
        return digest_of_ids(self.ids)


@dataclass(frozen=True, kw_only=True)
class Question(Generic[OptionsT]):
    """What is asked of a graph: which result, of which searches, within which limits. It decides
    every byte of the result.

    Attributes
    ----------
    kind
        Of the result.
    algorithm
        "bfs" or "sssp".
    certify
        Which results are certified: "all", "sample" or "none".
    limit
        The maximum hop count or distance of all searches: that of the options, or the largest of
        ``limits``, if they have one. None without a limit.
    pairs
        The table of origins and destinations; None for kinds that answer no pairs.
    targets
        The vertices whose distances are asked for; None for all.
    limits
        The limit of each source, at which its results are cut; None if all have the same.
    direction
        Distances from the sources ("out"), or to them ("in").
    options
        The checked options of the kind: see ``KindOptions.checked``.
    """

    kind: ResultKind[OptionsT]
    algorithm: str
    certify: str = "none"
    limit: float | None = None
    pairs: PairTable | None = None
    targets: Targets | None = None
    limits: SourceValues | None = None
    direction: Literal["out", "in"] = "out"
    options: OptionsT = PLAIN  # type: ignore[assignment]

    @classmethod
    def of(
        cls,
        kind: ResultKind[OptionsT],
        algorithm: str,
        *,
        limit: Any,
        limits: SourceValues | None,
        options: OptionsT,
        **others: Any,
    ) -> Question[OptionsT]:
        """Return a question whose limit is also that of its options and of its sources."""
        if options.limit is not None:
            limit = options.limit
        if limits is not None:
            limit = limits.largest
        return cls(
            kind=kind,
            algorithm=algorithm,
            limit=limit,
            limits=limits,
            options=options,
            **others,
        )

    def of_plan(self) -> dict[str, Any]:
        """Return the arguments of ``plan_multi_source`` that follow from the question.

        Certificates need all distances. Counts cannot be cut at a limit of each source.
        """
        # Kinds that keep paths add up along them by themselves. One search has no plan of its own:
        # where it takes several in its place, they are planned as for distances.
        kind = self.kind
        targets = self.targets
        walks = self.options.walks if kind.keeps != "paths" else None
        is_cut = self.limits is not None and kind.keeps == "counts"
        needs_all = self.certify != "none" or is_cut
        # Rows of unreached vertices, and walks, are made from arrays of rows alone.
        reads_forms = self.options.unreached == "omit" and not walks
        return {
            "result": "distances" if kind.one_search else kind.name,
            "limit": self.limit,
            "limits": self.limits,
            "targets": None if targets is None else targets.ids,
            "output": "all" if needs_all else None,
            "forms": kind.reads if reads_forms else (),
            "walks": walks,
            **self.options.of_query(None if targets is None else targets.numbers),
        }

    def asked(self, graph: Graph, query: Query) -> Asked[OptionsT]:
        """Return what the functions of the kind take, for traversals of a query."""
        return Asked(
            kind=self.kind,
            graph=graph,
            algorithm=self.algorithm,
            query=query,
            options=self.options,
            targets=None if self.targets is None else self.targets.numbers,
            pairs=self.pairs,
        )

    def recorded(self) -> dict[str, Any]:
        """Return what the identity of a run says of the question: the values of settings, tables by
        their digests.
        """
        has_one_limit = self.limits is None and not self.kind.takes_cutoffs
        tables = {"pairs": self.pairs, "targets": self.targets, "limits": self.limits}
        return {
            "algorithm": self.algorithm,
            "limit": self.limit if has_one_limit else None,
            "targets": None,  # unless the tables below have some
            "result": self.kind.name,
            "certify": self.certify,
            "direction": self.direction,
            **{name: table.digest for name, table in tables.items() if table is not None},
            **self.options.recorded,
        }


def check_options(
    kind: ResultKind[OptionsT], graph: Graph, algorithm: str, given: Mapping[str, Any], **ends: Any
) -> OptionsT:
    """Return the checked options of a kind, from those that are not None; see
    ``KindOptions.checked``.

    ``ends`` are its ``numbers``: ``sources``, ``targets`` and ``pairs``, as far as they are known.

    Raises InputError, too, if they violate a row of ``KindOptions.constraints``.
    """
    sources = ends.get("sources")
    is_of_all = sources is None or sources.size >= graph.n_vertices

    # Rules see all sources as none: then the caller has named none.
    values = {**given, "pairs": ends.get("pairs"), "sources": None if is_of_all else sources}
    names = {name: name for name, value in values.items() if value is not None}
    given_options = GivenOptions(kind=kind, algorithm=algorithm, written=names, values=values)
    refuse(violations(given_options, kind.options_class.constraints))

    chosen = {name: value for name, value in given.items() if value is not None}
    checked = kind.options_class(**chosen).checked(kind, graph, algorithm, **ends)
    # The warning is shown at the line that calls ``bfs_many`` or its like.
    for note in kind.options_class.notes_on_edges(graph.report.facts()):
        warnings.warn(note, EdgeListWarning, stacklevel=5)
    return checked
