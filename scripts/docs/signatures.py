"""Write kepler_traverse/_signatures.py: what ``bfs_many``, ``sssp_many`` and the functions for pairs take and return, for
type checkers and editors, from the result kinds and the dataclasses of their options.

``python -m scripts.docs.signatures`` writes it; with ``--check`` nothing is written, and the exit code is 1 if it is stale.
"""

from __future__ import annotations

import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from textwrap import indent
from typing import Any, Literal

from kepler_traverse.kinds.result_kinds import RESULT_KINDS, ResultKind
from kepler_traverse.search.algorithms import ALGORITHMS
from scripts.pages import ROOT, command

FILE = ROOT / "kepler_traverse/_signatures.py"
HEAD = '''"""What functions with a ``result`` take and return, for type checkers and editors: a dictionary of
options per result, and an overload per type that comes back. Nothing of it happens at run time.

Written by ``python -m scripts.docs.signatures`` from the dataclasses of options; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    Required,
    TypedDict,
    Unpack,
    overload,
)

if TYPE_CHECKING:
    from .graph import Graph
    from .multi_source.stream import ResultStream
    from .protocols import (
        Frame,
        Ids,
        Integer,
        KindName,
        Knobs,
        Matrix,
        Numbers,
        RecordBatches,
        Sources,
    )
    from .runtime.progress import Report

    class How(TypedDict, total=False):
        """How pairs are searched, whatever is asked of them."""

        strategy: str
        knobs: Knobs | None
        memory: Integer | None

    class HowMany(How, total=False):
        """How searches from several sources are made."""

        hierarchy: Literal["auto", "yes", "no"]
        progress: bool | Report | None
'''
LIMITS = {"bfs": ("max_depth", "Integer"), "sssp": ("cutoff", "float")}
# the types of options whose dataclasses have none, since the job reads them from a table; that of a
# column of a table that is not here
OF_COLUMN = "Numbers | None"
TYPES = {
    "groups": "Ids | None",
    "cutoffs": "Numbers | None",
    "through": "Any",
    "values": "Any",
    "along": "Any",
}


@dataclass(frozen=True)
class Entry:
    """A name of a result, the kind that it is with some options, and those that it needs."""

    name: str
    kind: ResultKind
    needs: tuple[str, ...]

    @property
    def title(self) -> str:
        """What a dictionary of its options is named after."""
        return self.name if self.name == self.kind.name else f"{self.name}_as_{self.kind.name}"


def entries(algorithm: str) -> Iterator[Entry]:
    """Yield the kinds of searches from many sources. ``"nearest"`` means three kinds, and
    ``"k_nearest"`` two: with ``targets`` it is that of the nearest targets of each source.
    """
    for kind in RESULT_KINDS.values():
        if kind.needs_pairs or algorithm not in kind.algorithms:
            continue
        yield Entry(kind.name, kind, kind.needs)
    yield Entry("nearest", RESULT_KINDS["k_nearest"], ())
    yield Entry("nearest", RESULT_KINDS["nearest_targets"], ("targets",))
    yield Entry("k_nearest", RESULT_KINDS["nearest_targets"], ("targets", "k"))


def grouped(algorithm: str) -> dict[tuple, list[Entry]]:
    """Return the results by what their overloads say."""
    found = {}
    for entry in entries(algorithm):
        facts = (returned(entry.kind), streams(entry.kind), parameters(entry, algorithm))
        found.setdefault(facts, []).append(entry)
    return found


def returned(kind: ResultKind) -> str:
    """Return the type of a result."""
    if kind.array_of is None:
        return "Frame"
    return "Matrix"


def streams(kind: ResultKind) -> tuple[str, ...]:
    """Return the values of ``stream`` that a kind takes."""
    if kind.one_search or kind.adds_up:
        return ("False",)
    if kind.array_of is not None:
        return ("False", "True")
    return ("False", "True", "'arrow'")


def parameters(entry: Entry, algorithm: str) -> tuple[str, ...]:
    """Return the options of a call, besides ``result`` and ``stream``."""
    kind = entry.kind
    own = []
    if not kind.takes_cutoffs:
        name, of_one = LIMITS[algorithm]
        several = " | Numbers" if kind.takes_limits else ""
        own.append(f"{name}: {of_one}{several} | None")
    if "targets" in kind.options:
        own.append(field("targets", "Ids | None", entry.needs))
    if "direction" in kind.options:
        own.append("direction: Literal['out', 'in']")
    return (*own, *options(kind, entry.needs, without=("pairs",)))


def options(kind: ResultKind, needs: tuple[str, ...], without: tuple[str, ...]) -> Iterator[str]:
    """Yield the options of a kind's dataclass, without those that have a value per row of some tables."""
    hints = typing.get_type_hints(kind.options_class)
    for each in fields(kind.options_class):
        if each.metadata.get("library", True) and each.metadata.get("table") not in without:
            hint = TYPES.get(each.name)
            if hint is None:
                is_column = "column" in each.metadata
                hint = OF_COLUMN if is_column else in_signature(hints[each.name])
            yield field(each.name, hint, needs)


def field(name: str, hint: str, needs: tuple[str, ...]) -> str:
    """Return an item of a dictionary of options, which says if it is needed."""
    if name in needs:
        return f"{name}: Required[{hint.removesuffix(' | None')}]"
    return f"{name}: {hint}"


def in_signature(hint: Any) -> str:
    """Return a type as the text of a signature."""
    if hint is type(None):
        return "None"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(in_signature(member) for member in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, typing.get_args(hint)))}]"
    return {int: "Integer", float: "float", str: "str", bool: "bool"}[hint]


def dictionary(name: str, base: str, items: tuple[str, ...]) -> str:
    """Return the class of a dictionary of options."""
    return "\n    ".join([f"class {name}({base}, total=False):", *items]) + "\n"


def overload(head: tuple[str, ...], options: str, result: str) -> str:
    """Return one overload."""
    return (
        f"@overload\ndef __call__(self, {', '.join(head)}, **options: {options}) -> {result}: ...\n"
    )


def class_name(*words: str) -> str:
    return "".join(word.title().replace("_", "") for word in words)


def of_many(algorithm: str) -> tuple[str, str]:
    """Return the options of ``bfs_many`` or ``sssp_many``, and its overloads."""
    head = ("graph: Graph", "sources: Sources", "*")
    options = overloads = ""
    for (result, ways, items), entries_of in grouped(algorithm).items():
        names = [entry.name for entry in entries_of]
        name = class_name(algorithm, entries_of[0].title, "options")
        options += dictionary(name, "HowMany", items)
        named = f"result: Literal[{', '.join(map(repr, names))}]"
        if "distances" in names:
            named += " = 'distances'"
        for way in ways:
            default = " = False" if way == "False" else ""
            stream = f"stream: Literal[{way}]{default}"
            made = {"False": result, "True": "ResultStream", "'arrow'": "RecordBatches"}[way]
            overloads += overload((*head, named, stream), f"Unpack[{name}]", made)
    overloads += overload((*head, "result: KindName"), "Any", "Any")
    return options, overloads + overload((*head, "result: str"), "Unpack[HowMany]", "Any")


def of_pairs(algorithm: str) -> tuple[str, str]:
    """Return the options of ``bfs_pairs`` or ``sssp_pairs``, and its overloads."""
    head = ("graph: Graph", "origins: Any", "destinations: Ids | None = None", "*")
    limit, of_one = LIMITS[algorithm]
    every = overloads = ""
    for kind in RESULT_KINDS.values():
        if "pairs" not in kind.options or kind.has_predecessors:
            continue
        name = class_name(
            algorithm, kind.name, "" if kind.name == "pairs" else "of_pairs", "options"
        )
        own = options(kind, (), without=("sources", "targets"))
        every += dictionary(name, "How", (f"{limit}: {of_one} | None", *own))
        named = f"result: Literal[{kind.name!r}]" + (" = 'pairs'" if kind.name == "pairs" else "")
        overloads += overload((*head, named), f"Unpack[{name}]", "Frame")
    return every, overloads + overload((*head, "result: KindName"), "Any", "Any")


def module() -> str:
    """Return the text of the module."""
    protocols = []
    functions = []
    for algorithm in ALGORITHMS:
        for form, described in (("many", of_many), ("pairs", of_pairs)):
            name = f"{algorithm}_{form}"
            of = class_name(algorithm, form)
            options, overloads = described(algorithm)
            body = options + f"\nclass {of}(Protocol):\n" + indent(overloads, "    ")
            protocols.append(indent(body, "    "))
            functions.append(
                f"def as_{name}(function: Callable[..., Any]) -> {of}:\n"
                f'    """Return a function, which type checkers then take for one of ``{of}``."""\n'
                f"    return function\n"
            )
    return formatted(HEAD + "\n" + "\n".join(protocols) + "\n\n" + "\n\n".join(functions))


def formatted(text: str) -> str:
    """Return Python as the formatter writes it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


main = partial(command, "scripts.docs.signatures", lambda: {FILE: module()})


if __name__ == "__main__":
    sys.exit(main())
