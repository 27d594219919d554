"""Which options belong to which result kind: the rows of all kinds, and their evaluation for
keyword arguments, for flags and for the manifest of a run.

A new option of a kind is a name in ``ResultKind.options``, or a field of its options. It has a row
here only if its error differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from .constraints import Constraint, GivenOptions, Violation, refuse
from .result_kinds import RESULT_KINDS, ResultKind

_IS_FOR = "{0} is for {result} {able}, not {name}"


def only_for(
    name: str,
    takes: Callable[[ResultKind], bool] | None = None,
    why: str = _IS_FOR,
    remedy: str = "leave it out",
) -> Constraint:
    """Return the rule that the option ``name`` is for some kinds of result alone.

    ``takes(kind)`` says whether a kind takes the option; by default, those kinds take it that list
    it among their options. ``why`` and ``remedy`` are the texts of a ``Constraint``. A settings
    file may serve several runs, so there the option is left out with a note.
    """

    def takes_option(kind: ResultKind) -> bool:
        """Return whether a kind takes the option."""
        return name in kind.all_options if takes is None else takes(kind)

    return Constraint(
        names=(name,),
        violated=lambda given: given.is_given(name) and not takes_option(given.kind),
        why=why,
        remedy=remedy,
        effect="idle",
        takes=takes,
    )


ROWS = (
    *(
        only_for(
            name,
            attrgetter("takes_sources"),
            "{result=} is about distances between all vertices",
            "leave {0} out",
        )
        for name in ("sources", "limit")
    ),
    only_for(
        "strategy",
        attrgetter("takes_sources"),
        "{result=} chooses its searches itself",
        "leave {0} out",
    ),
    *(
        only_for(name, lambda kind: not kind.of_labels, why, "leave {0} out")
        for name, why in (
            ("limit", "{result=} has the distances to all hubs"),
            ("strategy", "{result=} searches nothing"),
        )
    ),
    only_for(
        "limit",
        lambda kind: not kind.takes_cutoffs,
        "{result=} searches up to the largest of {cutoffs}",
        "leave {0} out",
    ),
    only_for(
        "limits",
        attrgetter("takes_limits"),
        "{0} is a limit per source, and {result=} takes none",
        "give one limit for all",
    ),
    *(
        only_for(
            name,
            lambda kind: not kind.one_search,
            "{result=} is one search from all sources together",
            "leave {0} out",
        )
        for name in ("stream", "batch_size", "workers", "hierarchy")
    ),
    only_for(
        "stream",
        lambda kind: not kind.adds_up,
        "{result=} is added up over all sources",
        "leave {0} out",
    ),
    only_for("keep_columns", lambda kind: kind.adds_to in ("sources", "kept columns")),
    only_for("direction", remedy="leave it out, or reverse the edges"),
    only_for("groups", remedy="leave it out, or give {k} with {result} nearest"),
)
# of each option that has rows
_ROWS_OF = {name: [row for row in ROWS if name in row.names] for row in ROWS for name in row.names}
_WRONG_ALGORITHM = Constraint(
    names=("algorithm",),
    violated=lambda given: given.algorithm not in given.kind.algorithms,
    why="{result=} counts hops (bfs)",
    remedy="for sssp take {result=summary}",
)
# What the options are that some kinds need.
_NEEDED = {
    "targets": "the vertices where the ways end",
    "pairs": "the table of origins and destinations",
    "k": "the number of sources per vertex",
    "cutoffs": "the largest distances to count",
    "values": "the attributes of the vertices to add up",
    "along": "the columns of the edge list to add up",
}


@cache
def _needs(name: str) -> Constraint:
    """Return the rule that the option ``name`` is given for the kinds that need it. The option may
    be one of a plug-in, of which ``_NEEDED`` says nothing.
    """
    what = f", {_NEEDED[name]}" if name in _NEEDED else ""
    return Constraint(
        names=(name,),
        violated=lambda given: name in given.kind.needs and not given.is_given(name),
        why=f"{{result=}} needs {{0}}{what}",
        remedy="",
    )


def kinds_that_take(
    option: str, kinds: Mapping[str, ResultKind], takes: Callable[[ResultKind], bool] | None = None
) -> str:
    """Return the names of the kinds that take an option, as a text such as "paths, pairs or flows".

    ``takes(kind)`` says whether a kind takes it; None: the kinds that list the option take it. At
    least one kind does.
    """
    names = [
        kind.name
        for kind in kinds.values()
        if (option in kind.all_options if takes is None else takes(kind))
    ]
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def takes(kind: ResultKind, option: str, kinds: Mapping[str, ResultKind]) -> bool:
    """Return whether a job that asks for a kind takes an option.

    ``kinds`` are all kinds by name. An option that no row of ``ROWS`` and no kind names is taken by
    all.
    """
    # Where a row has no ``takes``, or the option has no row, the kinds that take the option list it
    # themselves. An option that none of them lists is one of all kinds.
    rows = _ROWS_OF.get(option, [])
    is_of_kinds = any(row.takes is None for row in rows) or not rows
    if is_of_kinds and option not in kind.options_of_job:
        return not rows and not any(option in each.options_of_job for each in kinds.values())
    return all(row.takes is None or row.takes(kind) for row in rows)


def violations(
    given: GivenOptions, kinds: Mapping[str, ResultKind] = RESULT_KINDS
) -> Iterator[tuple[Constraint, Violation]]:
    """Yield each row that the options of a caller violate, with the violation.

    The rows are those of all kinds about the options that ``given`` names. ``kinds`` are the kinds
    that the texts of errors may name.
    """
    rows = [_WRONG_ALGORITHM]
    for name in given.written:
        if name in given.kind.needs:
            rows.append(_needs(name))
        rows += _ROWS_OF.get(name) or [only_for(name)]
    for row in rows:
        names_of_kinds = ""
        # the text that names the kinds which take the option
        if "{able}" in row.why:
            names_of_kinds = kinds_that_take(row.names[0], kinds, row.takes)
        violation = row.violation(given, able=names_of_kinds)
        if violation is not None:
            yield row, violation


def check(kind: ResultKind, algorithm: str, written: Mapping[str, str | None]) -> None:
    """Raise InputError for the first row of ``ROWS`` that the options violate.

    ``kind`` is the result kind that is asked for, and ``algorithm`` is "bfs" or "sssp". ``written``
    has the options by name, each as the caller writes it, or None if it is not given.
    """
    given = GivenOptions(kind=kind, algorithm=algorithm, written=written)
    refuse(violation for _, violation in violations(given))


def choose_kind(result: str, k: Any, has_targets: bool) -> tuple[str, Any]:
    """Return the name of the kind that is asked for, and its ``k``.

    ``result`` is the name that the user gives. "nearest" and "k_nearest" each stand for three
    kinds: with targets for ``nearest_targets``, else with ``k`` for ``k_nearest``, and for
    themselves if there is neither. Other names, and their ``k``, are returned as they are.
    ``has_targets`` says whether targets are given. ``k`` is None if it is not given.
    """
    if result not in ("nearest", "k_nearest") or (k is None and not has_targets):
        return result, k
    if not has_targets:
        return "k_nearest", k
    # The nearest target alone is the default of "nearest"; "k_nearest" needs a ``k``.
    if k is None and result == "nearest":
        k = 1
    return "nearest_targets", k
