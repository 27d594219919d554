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
    """Return the SHA-256 of the JSON text of ids, integers or strings in their order, as
    hexadecimal digits.
    """
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Targets:
    """The vertices whose distances are asked for, in the order in which the user gives them."""

    ids: Any  # the user's: a list or an array
    numbers: np.ndarray  # int64 of shape (n_targets,): the vertex numbers where paths to them end

    @classmethod
    def of(cls, graph: Graph, ids: Any) -> Targets | None:
        """Return the targets that ``ids`` name in a graph, or None if ``ids`` is None.

        Raises UnknownVertexError: one of the ids is that of no vertex.
        """
        if ids is None:
            return None
        return cls(ids, where_paths_end(graph, graph.to_numbers(ids, "target")))

    @property
    def digest(self) -> str:
        """The SHA-256 of the ids, in their order, as hexadecimal digits."""
        return digest_of_ids(self.ids)


@dataclass(frozen=True, kw_only=True)
class Question(Generic[OptionsT]):
    """What is asked of a graph: which result, of which searches, within which limits. It decides
    every byte of the result.

    Attributes
    ----------
    kind
        The kind of result, such as "distances" or "nearest".
    algorithm
        "bfs" or "sssp".
    certify
        For which sources a certificate proves the distances: "all", "sample" (some sources) or
        "none".
    limit
        The largest hop count or distance (inclusive) up to which all searches go. If ``options``
        set a limit, or ``limits`` is given, it follows from these. None without a limit.
    pairs
        The table of origins and destinations; None for kinds that answer no pairs.
    targets
        The vertices whose distances are asked for; None for all.
    limits
        The limit of each source: its results leave out what is farther. None if all sources have
        the same limit.
    direction
        Distances from the sources ("out"), or to them ("in").
    options
        The options that only this kind has, with their values checked: what
        ``KindOptions.checked`` of the kind's dataclass returns.
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
        """Return a question whose limit agrees with its options and with the limits of its sources.

        The limit is the largest of ``limits``, if these are given. Otherwise it is the limit that
        ``options`` set, such as the largest cutoff, or else ``limit``. None stands for no limit.
        ``kind`` and ``algorithm`` are the fields of these names, and ``others`` the remaining ones.
        """
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
        """Return the keyword arguments of ``plan_multi_source`` that follow from the question: the
        kind of result, and fields of the ``Query`` of the searches.
        """
        kind = self.kind
        targets = self.targets
        # The columns of the edge list to add up along the paths, or None. Where the searches output
        # the paths themselves (``keeps``), the kind adds up along these, and the plan does not.
        walks = self.options.walks if kind.keeps != "paths" else None
        # Certificates need all distances. So do limits that differ between sources, where searches
        # would output only the numbers of vertices per level: these numbers cannot be cut.
        is_cut = self.limits is not None and kind.keeps == "counts"
        needs_all = self.certify != "none" or is_cut
        # ``kind.reads`` lists the representations of distances, besides an array with a row per
        # source, that the kind takes. Records of unreached vertices, and walks along paths, need
        # such an array.
        reads_forms = self.options.unreached == "omit" and not walks
        return {
            # ``one_search`` means: one search from all sources, which is planned elsewhere. Where
            # it cannot be made, as for the k nearest sources by float weights, there is a search
            # per source. This plan is for these searches, which return distances.
            "result": "distances" if kind.one_search else kind.name,
            "limit": self.limit,
            "limits": self.limits,
            "targets": None if targets is None else targets.ids,
            "output": "all" if needs_all else None,  # None: what the kind needs
            "forms": kind.reads if reads_forms else (),
            "walks": walks,
            # what the options of the kind ask of the searches, such as the k nearest targets
            **self.options.of_query(None if targets is None else targets.numbers),
        }

    def asked(self, graph: Graph, query: Query) -> Asked[OptionsT]:
        """Return the bundle that the functions of the kind take, such as ``make_records``.

        ``graph`` is the graph that is searched, for ``direction="in"`` the reverse of the user's,
        and ``query`` is the query of these searches.
        """
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
        """Return what the identity of a run, in its manifest, says of the question: values of
        settings by their names. Tables, such as that of the pairs, are represented by their
        digests.
        """
        # Other limits are recorded with their table, or as the options of a kind with cutoffs.
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
    """Return the options of a kind with checked values, as ``KindOptions.checked`` returns them.

    ``algorithm`` is "bfs" or "sssp". ``given`` has the values by name; None stands for an option
    that is left out. ``ends`` are the ends of the searches as far as they are known: ``sources``
    and ``targets``, int64 vertex numbers, and ``pairs``, a ``PairTable``.

    Raises InputError: a value is wrong, or the options violate a row of
    ``KindOptions.constraints``.
    """
    sources = ends.get("sources")
    is_of_all = sources is None or sources.size >= graph.n_vertices

    # Rules that forbid ``sources`` are about sources that the caller has chosen. All vertices count
    # as no choice, so the rules get None for them.
    values = {**given, "pairs": ends.get("pairs"), "sources": None if is_of_all else sources}
    # Rules (``constraints``) forbid combinations of options. The first one that is violated is the
    # error; only then are the values looked at one by one (``checked``).
    names = {name: name for name, value in values.items() if value is not None}
    given_options = GivenOptions(kind=kind, algorithm=algorithm, written=names, values=values)
    refuse(violations(given_options, kind.options_class.constraints))

    chosen = {name: value for name, value in given.items() if value is not None}
    checked = kind.options_class(**chosen).checked(kind, graph, algorithm, **ends)
    # ``facts`` has what building the graph changed in the edge list, by name. Five calls up is the
    # line of the user that calls ``bfs_many`` or its like: the warning shows it.
    for note in kind.options_class.notes_on_edges(graph.report.facts()):
        warnings.warn(note, EdgeListWarning, stacklevel=5)
    return checked
