"""Which options belong to which result kind: one table for keyword arguments, for flags and for the
manifest of a run.

``option_text`` writes the options in messages as the caller gives them. A new option of a kind is a
name in ``ResultKind.options``. It has an entry here only if its error differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from ..errors import InputError, option_text
from .result_kinds import RESULT_KINDS, ResultKind

_IS_FOR = "{option} is for {result} {able}, not {name}; leave it out"


# Options, whether a kind takes them (None: if it lists them) and the error.
RULES: tuple[tuple[tuple[str, ...], Callable[[ResultKind], bool] | None, str], ...] = (
    (
        ("sources", "limit"),
        attrgetter("takes_sources"),
        "{kind} is about distances between all vertices; leave {option} out",
    ),
    (
        ("strategy",),
        attrgetter("takes_sources"),
        "{kind} chooses its searches itself; leave {option} out",
    ),
    (
        ("limit",),
        lambda kind: not kind.takes_cutoffs,
        "{kind} searches up to the largest of {cutoffs}; leave {option} out",
    ),
    (
        ("limits",),
        attrgetter("takes_limits"),
        "{option} is a limit per source, and {kind} takes none; give one limit for all",
    ),
    (
        ("stream", "batch_size", "workers", "hierarchy"),
        lambda kind: not kind.one_search,
        "{kind} is one search from all sources together; leave {option} out",
    ),
    (
        ("stream",),
        lambda kind: not kind.adds_up,
        "{kind} is added up over all sources; leave {option} out",
    ),
    (("keep_columns",), lambda kind: kind.adds_to in ("sources", "kept columns"), _IS_FOR),
    (("direction",), None, f"{_IS_FOR}, or reverse the edges"),
    (("groups",), None, f"{_IS_FOR}, or give {{k}} with {{result}} nearest"),
)
# What the options are that some kinds need.
NEEDED = {
    "targets": "the vertices where the ways end",
    "pairs": "the table of origins and destinations",
    "k": "the number of sources per vertex",
    "cutoffs": "the largest distances to count",
    "values": "the attributes of the vertices to add up",
}


class _Written(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return option_text(name)


def kinds_that_take(
    option: str, kinds: Mapping[str, ResultKind], takes: Callable[[ResultKind], bool] | None = None
) -> str:
    """Return the names of the kinds that take an option, as a text."""
    *others, last = [
        k.name for k in kinds.values() if (option in k.all_options if takes is None else takes(k))
    ]
    return f"{', '.join(others)} or {last}" if others else last


def takes(kind: ResultKind, option: str, kinds: Mapping[str, ResultKind]) -> bool:
    """Whether a job of a kind takes an option; one that no rule and no kind names is for all."""
    rules = [rule for names, rule, _ in RULES if option in names]
    if not rules and not any(option in each.options_of_job for each in kinds.values()):
        return True
    return all(
        option in kind.options_of_job if rule is None else rule(kind) for rule in rules or [None]
    )


def errors(
    kind: ResultKind,
    algorithm: str,
    given: Mapping[str, str | None],
    kinds: Mapping[str, ResultKind] = RESULT_KINDS,
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a question: an option that the kind does not take, or ``""``, and
    the error.

    ``given``: for each option how the error writes it; None if it is not given. Others are not
    checked. ``kinds``: those that the error may name.
    """
    named = option_text("result", kind.name)
    if algorithm not in kind.algorithms:
        yield "", f"{named} counts hops (bfs); for sssp take {option_text('result', 'summary')}"
    for option, written in given.items():
        if option in kind.needs and written is None:
            yield "", f"{named} needs {option_text(option)}, {NEEDED[option]}"
        for _, takes, text in [rule for rule in RULES if option in rule[0]] or [
            ((), None, _IS_FOR)
        ]:
            if written is None or (option in kind.all_options if takes is None else takes(kind)):
                continue
            able = kinds_that_take(option, kinds, takes)
            yield (
                option,
                text.format_map(_Written(option=written, name=kind.name, kind=named, able=able)),
            )


def meant(result: str, k: Any, has_targets: bool) -> tuple[str, Any]:
    """Return the kind that a result, ``k`` and targets mean, and its ``k``: there are three kinds
    of nearest vertices.
    """
    if result not in ("nearest", "k_nearest") or (k is None and not has_targets):
        return result, k
    if not has_targets:
        return "k_nearest", k
    return "nearest_targets", 1 if k is None and result == "nearest" else k


def check(kind: ResultKind, algorithm: str, given: Mapping[str, str | None]) -> None:
    """Raise InputError for the first of ``errors``."""
    for _, error in errors(kind, algorithm, given):
        raise InputError(error)
