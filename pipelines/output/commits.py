"""The log of a run that is not finished: numbered commits, which are created once and never changed.

A commit holds what its writer has done since its last one. Writers exclude each other by the numbers alone: of two that
create the same one, the second takes the next. So any number of processes write to one run without a lock, a commit costs
the same however many parts there are, and a reader sees it whole or not at all. The commit that closes the log says what the
run has come to; what is behind it does not count.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from typing import Any

from kepler_traverse.runtime.regular_files import json_of

from .manifest_types import Commit, Failure, Manifest, TableEntry, checked
from .store import LocalStore

COMMITS = "_commits"
MAX_COMMIT_BYTES = 2**30
_NAME = re.compile(r"\d{8}\.json")


class CommitLog:
    """The log of the run in a store."""

    def __init__(self, store: LocalStore):
        self._store, self._writer = store, uuid.uuid4().hex
        self._next: int | None = None  # the first number that may be free
        self.is_closed = False  # as of the last reading

    def read(self) -> list[Commit]:
        """Return the commits up to the one that closes the log.

        Raises
        ------
        OSError
        ValueError
            A commit is damaged or missing.
        """
        commits: list[Commit] = []
        for number in range(self._count()):
            commits.append(self._commit(number))
            if commits[-1].get("closed"):
                break
        self._next, self.is_closed = len(commits), bool(commits) and "closed" in commits[-1]
        return commits

    def close(self, tables: list[TableEntry]) -> bool:
        """Close the log, with the tables of the run; return False if there are commits that were not read.

        Raises as ``read``.
        """
        assert self._next is not None  # it was read
        closing: Commit = {
            "writer": self._writer,
            "parts": [],
            "failed": [],
            "retried": [],
            "tables": tables,
            "closed": True,
        }
        return self._store.put_new(_name(self._next), json.dumps(closing).encode())

    def append(self, added: dict[str, Any]) -> bool:
        """Add a commit of some entries; return False, and add nothing, if the log is closed. Raises as ``read``."""
        data = json.dumps({"writer": self._writer, **added}).encode()
        if self._next is None:
            self._next = max(0, self._count() - 1)
        while not self._store.put_new(_name(self._next), data):
            if self._commit(self._next).get("closed"):
                return False
            self._next += 1
        self._next += 1
        return True

    def _count(self) -> int:
        return sum(_NAME.fullmatch(name) is not None for name in self._store.names(COMMITS))

    def _commit(self, number: int) -> Commit:
        try:
            return checked(json_of(self._store.get(_name(number), MAX_COMMIT_BYTES)), Commit)
        except (FileNotFoundError, ValueError) as error:
            raise ValueError(f"commit {number} of the run cannot be read: {error}") from None


def _name(number: int) -> str:
    return f"{COMMITS}/{number:08d}.json"


def with_commits(manifest: Manifest, commits: Iterable[Commit]) -> Manifest:
    """Return the manifest of a run with what its commits add; the last entry of a part or a failed source counts."""
    found = manifest.copy()
    parts, seconds = {part["file"]: part for part in manifest["parts"]}, dict(manifest["seconds"])
    failed, retried = list(manifest["failed"]), list(manifest["retried"])
    for commit in commits:
        parts |= {part["file"]: part for part in commit["parts"]}
        failed += commit["failed"]
        retried += commit["retried"]
        for step, value in commit.get("seconds", {}).items():
            seconds[step] = round(seconds.get(step, 0.0) + value, 3)
        found["choice"] = commit.get("choice", found.get("choice"))
        found["tables"] = commit.get("tables", found["tables"])
    found["parts"] = [parts[name] for name in sorted(parts)]
    found["failed"] = _still_failed(failed, {name: parts[name]["sources"] for name in parts.keys() & _files(failed)})
    found["retried"], found["seconds"] = retried, seconds
    return found


def _files(failed: Iterable[Failure]) -> set[str]:
    return {failure["file"] for failure in failed}


def _still_failed(failed: list[Failure], computed: dict[str, list[int | str]]) -> list[Failure]:
    """Return the failures of sources that no later attempt has computed, each source once, with its last error."""
    last = {(each["file"], source): each["error"] for each in failed for source in each["sources"]}
    left: dict[tuple[str, str], Failure] = {}
    for (file, source), error in last.items():
        if source not in computed.get(file, ()):
            left.setdefault((file, error), {"file": file, "sources": [], "error": error})["sources"].append(source)
    return list(left.values())
