"""The form of a rule of several options, for keyword arguments, flags, settings files and
manifests.

A rule is a row: "A needs B", "A excludes B", "A is for kinds K". Rows that all kinds share are in
``rules``, those of one kind beside its options, and those of the job in its ``cli.constraints``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ..errors import InputError, option_text


class Given(Protocol):
    """What a caller gives, as rules see it. ``GivenOptions`` implements it for arguments and flags.

    An option is named as the keyword argument of the library is.
    """

    @property
    def kind(self) -> Any: ...

    def value(self, name: str, /) -> Any:
        """Return the value of the option ``name``; None if it has none."""

    def is_given(self, name: str, /) -> bool:
        """Return whether the option ``name`` asks for something, which a default does not."""

    def spelled(self, name: str, value: object = None, /) -> str:
        """Return the option ``name`` as the caller writes it, such as ``--limit``; with ``value``,
        if that is not None, behind it.
        """


@dataclass(frozen=True, kw_only=True)
class GivenOptions:
    """Options by the names of keyword arguments, or of flags of a program.

    Attributes
    ----------
    kind
        The ``ResultKind`` that is asked for; None for a program, which has no kind.
    algorithm
        "bfs" or "sssp".
    written
        The options that are checked, each as the caller writes it, or None if it is not given.
    values
        The values of those options that rules look at, by name; an option that is not there counts
        as None.
    """

    kind: Any
    algorithm: str
    written: Mapping[str, str | None]
    values: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """Return the value of the option ``name``, or None if it has none. The value of ``result``
        is the name of the kind, if there is a kind.
        """
        if name == "result" and self.kind is not None:
            return self.kind.name
        return self.values.get(name)

    def is_given(self, name: str) -> bool:
        """Return whether the caller has written the option ``name``."""
        return self.written.get(name) is not None

    def spelled(self, name: str, value: object = None) -> str:
        """Return the option ``name`` as the caller has written it; as a caller would write it if it
        is not given, and if ``value`` is not None, which then stands behind it.
        """
        if value is None:
            return self.written.get(name) or option_text(name)
        return option_text(name, value)


class Violation(NamedTuple):
    """A rule that is violated.

    Attributes
    ----------
    option
        The name of the option that is to blame.
    fact
        What is wrong.
    remedy
        What to do instead; empty if the fact says it.
    """

    option: str
    fact: str
    remedy: str

    def __str__(self) -> str:
        """Return the text of an error: the fact, and the remedy if there is one."""
        return f"{self.fact}; {self.remedy}" if self.remedy else self.fact


# Names in braces in texts, such as "{0}", "{pairs}", "{of=}" or "{result=flows}". The groups are
# the name, or the place of an option; "=" if it is there; and the text behind it, perhaps empty.
_OPTION = re.compile(r"\{([\w.]+)(?:(=)([^{}]*))?\}")


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A rule of several options.

    Attributes
    ----------
    names
        The options. The first is to blame.
    violated
        ``violated(given)`` says whether the options of a ``Given`` break the rule.
    why, remedy
        The fact, and what to do. In both, ``{0}`` is the first name as the caller writes it,
        ``{name}`` another option, ``{name=}`` an option with its value, ``{name=text}`` with
        another value, ``{flags}`` are all names, ``{given}`` those that are given, and
        ``{missing}`` the others.
    effect
        What a violation in a settings file is, which may serve several runs: an error, or an option
        that is idle, and left out with a note.
    takes
        Of a rule that names kinds: ``takes(kind)`` says whether a kind takes the option. None for
        other rules, and where the kinds that list the option take it.
    of_tables
        Whether it can be evaluated only with the columns that the headers of tables name.
    """

    names: tuple[str, ...]
    violated: Callable[[Any], object]
    why: str
    remedy: str = "leave {0} out"
    effect: Literal["refuse", "idle"] = "refuse"
    takes: Callable[[Any], bool] | None = None
    of_tables: bool = False

    def violation(self, given: Given, **facts: str) -> Violation | None:
        """Return the violation of the rule by the options of a caller, ``given``; None if they
        respect it.

        ``facts`` are further names that may stand in braces in ``why`` and ``remedy``, with the
        texts that replace them.
        """
        if not self.violated(given):
            return None
        # what replaces ``{0}``, ``{1}`` and so on, and then the other names in braces
        by_place = {str(place): given.spelled(name) for place, name in enumerate(self.names)}
        missing = [given.spelled(name) for name in self.names if given.value(name) is None]
        texts = {
            **by_place,
            "flags": " and ".join(by_place.values()),
            "missing": " and ".join(missing),
            "given": ", ".join(given.spelled(name) for name in self.names if given.is_given(name)),
            **facts,
        }

        def write_option(match: re.Match[str]) -> str:
            """Return the text that replaces a name in braces, of which ``match`` has the name,
            whether "=" follows, and the value behind it.

            ``{name}`` is the name of the kind. ``{0}``, the words of ``texts`` and ``{option}`` are
            written without a value, ``{option=text}`` with that value, and ``{option=}`` with the
            value that is given.
            """
            name, has_value, text = match.groups()
            if name == "name":
                return str(given.kind.name)
            if not has_value:
                return texts[name] if name in texts else given.spelled(name)
            return given.spelled(name, text or given.value(name))

        fact, remedy = (_OPTION.sub(write_option, text) for text in (self.why, self.remedy))
        return Violation(self.names[0], fact, remedy)

    def described(self, spelled: Callable[[str, object], str]) -> str:
        """Return the rule as a sentence of a page of the documentation, where no caller has given
        options.

        ``spelled(name, value)`` returns an option with a value, or alone if the value is None, as
        that page writes it.
        """
        # what replaces the names in braces: see ``why`` in ``Attributes``
        flags = [spelled(name, None) for name in self.names]
        texts = {str(place): flag for place, flag in enumerate(flags)}
        texts |= {
            "flags": " and ".join(flags),
            "missing": "the others",
            "given": "several of these",
        }
        texts["name"] = "results of this kind"

        def write_option(match: re.Match[str]) -> str:
            """Return the text that replaces a name in braces, of which ``match`` has the name and
            the value behind "="; the value follows it if the rule names one.
            """
            name, _, text = match.groups()
            return texts[name] if name in texts else spelled(name, text or None)

        rule = f"{self.why}; {self.remedy}" if self.remedy else self.why
        return _OPTION.sub(write_option, rule)


def violations(given: Given, rows: Iterable[Constraint]) -> Iterator[Violation]:
    """Yield the violation of each rule in ``rows`` that the options of a caller, ``given``,
    violate, in the order of the rules.
    """
    for row in rows:
        violation = row.violation(given)
        if violation is not None:
            yield violation


def refuse(violated: Iterable[Violation]) -> None:
    """Raise InputError with the text of the first violation in ``violated``, if there is one. The
    following ones are not evaluated.
    """
    for violation in violated:
        raise InputError(str(violation))


def is_value(given: Given, name: str, *values: object) -> bool:
    """Return whether the value of the option ``name``, as ``given`` by a caller, is one of
    ``values``. An array or a table is none of them.
    """
    value = given.value(name)
    # An array would be compared element by element.
    return getattr(value, "shape", ()) == () and any(value == each for each in values)


def not_both(
    first: str, second: str, why: str, remedy: str = "leave one of them out"
) -> Constraint:
    """Return the rule that at most one of two options is given: ``first``, which errors blame, and
    ``second``. ``why`` and ``remedy`` are the texts of a ``Constraint``.
    """
    return Constraint(
        names=(first, second),
        violated=lambda given: given.value(first) is not None and given.value(second) is not None,
        why=why,
        remedy=remedy,
    )


def needs(name: str, *others: str, why: str, remedy: str) -> Constraint:
    """Return the rule that the option ``name`` is given only together with at least one of
    ``others``; ``why`` and ``remedy`` are the texts of a ``Constraint``.
    """

    def violated(given: Given) -> bool:
        """Return whether the option is given and none of the others is."""
        if given.value(name) is None:
            return False
        return all(given.value(other) is None for other in others)

    return Constraint(
        names=(name, *others),
        violated=violated,
        why=why,
        remedy=remedy,
    )


def all_or_none(*names: str) -> Constraint:
    """Return the rule that either all of the options ``names`` are given, or none of them."""

    def violated(given: Given) -> bool:
        """Return whether some of the options are given and some are not."""
        n_given = sum(given.value(name) is not None for name in names)
        return 0 < n_given < len(names)

    return Constraint(
        names=names,
        violated=violated,
        why="{flags} go together",
        remedy="give {missing}, too, or none of them",
    )
