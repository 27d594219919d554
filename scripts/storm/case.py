"""One case of a storm: its random generator, its folder, and what is found wrong."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from scripts.storm.answers import Refused, Table, difference
from scripts.storm.edges import EdgeList
from scripts.storm.questions import Question

MAX_SHOWN = 2_000  # characters of a text of a finding


@dataclass(frozen=True)
class Settings:
    """What all cases of a storm have in common."""

    seed: int
    device: str = "cpu"
    doors: tuple[str, ...] = ()  # by default all


@dataclass(frozen=True)
class Finding:
    """What is wrong, and how to see it again."""

    seed: int
    case: int
    door: str
    kind: str
    what: str  # "wrong", "refused", "accepted", "raw error", "crash", "hang"
    detail: str
    asked: str


@dataclass
class Outcome:
    """What a case did: its findings, and counts of calls, comparisons, refusals and kills by name."""

    case: int
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict:
        return {
            "case": self.case,
            "findings": [asdict(each) for each in self.findings],
            "counts": dict(self.counts),
        }


class Case:
    """A case of a storm: its own random generator, a folder, and what becomes of it."""

    def __init__(self, settings: Settings, number: int, folder: Path):
        self.settings = settings
        self.number = number
        self.folder = folder
        self.draw = Random(f"{settings.seed}:{number}")
        self.outcome = Outcome(number)
        self.door = ""

    def count(self, name: str, times: int = 1) -> None:
        self.outcome.counts[name] += times

    def report(self, kind: str, what: str, detail: str, asked: str) -> None:
        """Add a finding."""
        texts = (kind, what, detail[:MAX_SHOWN], asked[:MAX_SHOWN])
        found = Finding(self.settings.seed, self.number, self.door, *texts)
        self.outcome.findings.append(found)

    def compare(
        self, kind: str, wanted: Table, found: Table, asked: str, is_ordered: bool = True
    ) -> None:
        """Compare an answer with what must come out."""
        self.count("comparisons")
        wrong = difference(wanted, found, is_ordered)
        if wrong:
            self.report(kind, "wrong", wrong, asked)

    def check_error(
        self,
        kind: str,
        error: BaseException,
        wanted: Any,
        asked: str,
        allowed: tuple[str, ...] = (),
    ) -> None:
        """Say whether an error is one that may come."""
        self.count("errors")
        names = {each.__name__ for each in type(error).__mro__}
        is_refused = isinstance(wanted, Refused)
        may_come = {*allowed, *(wanted.errors if is_refused else ())}
        if type(error).__name__ in may_come or names & (may_come - {"InputError"}):
            return
        detail = f"{type(error).__name__}: {error}"
        if "KeplerError" not in names:
            lines = "".join(traceback.format_exception(error)[-4:])
            self.report(kind, "raw error", f"{detail}\n{lines}", asked)
            return
        self.report(kind, "another error" if is_refused else "refused", detail, asked)


def shown_edges(edges: EdgeList) -> str:
    """Return an edge list in a few words, with its rows if they are few."""
    words = edges.about
    for name, values in (("rows", edges.rows), ("vertices", edges.more_vertices)):
        if 0 < len(values) <= 12:
            words += f", {name} {values}"
    return words


def shown_question(question: Question) -> str:
    """Return a question as one line."""
    parts = [question.algorithm, question.kind]
    for name in ("sources", "targets", "pairs", "limit"):
        value = getattr(question, name)
        if value is not None:
            parts.append(f"{name}={value}")
    parts += [f"{name}={value}" for name, value in question.options.items()]
    return " ".join(parts)
