"""The log of a run that is not finished: numbered commits, which are created once and never
changed.

A commit holds what its writer has done since its last one. Writers exclude each other by the
numbers alone: of two that create the same one, the second takes the next. So any number of
processes write to one run without a lock, a commit costs the same however many parts there are, and
a reader sees it whole or not at all. The commit that closes the log says what the run has come to;
what is behind it does not count.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from kepler_traverse.runtime.regular_files import read_json

from .layout import in_order, part_number
from .manifest_types import Commit, Failure, Manifest, PartEntry, ShardRecord, TableEntry, checked
from .store import Store

if TYPE_CHECKING:
    from .shard import Shard

COMMITS = "_commits"
MAX_COMMIT_BYTES = 2**31
_BLOCK = 128  # commits
_COMMIT = re.compile(r"(\d{8})\.json")
# begins the names of copies of commits that have lost parts, for those who read no others
_LOST = "lost-"
T = TypeVar("T")


class CommitLog:
    """The log of the run in a store.

    The process that creates the last commit of a block also writes the block: one commit that says
    what all of them say. So a reader opens few files, and an entry is written twice, however many
    commits there are. A block that is missing, since its writer was killed, is read as the commits
    that it is made of.

    ``shard`` keeps a short record of its parts beside the commits, which it replaces after each of
    its own. So the next process of this shard reads no commit.
    """

    def __init__(self, store: Store, shard: Shard | None = None):
        self._store = store
        self._writer = uuid.uuid4().hex
        self.shard = shard
        self._next: int | None = None  # the first number that may be free
        self.record: ShardRecord | None = None  # as ``find_record`` has found it
        self.is_closed = False  # as of the last reading
        self.shards: set[str] = set()  # those that have committed, as I/N, as of the last reading

    def read(self) -> list[Commit]:
        """Return the commits, or blocks of them, up to the one that closes the log.

        Raises OSError, or ValueError: a commit is damaged or missing.
        """
        count = self._count()
        commits = list(self._commits(count))
        self._next = count
        self.is_closed = bool(commits) and "closed" in commits[-1]
        self.shards = {name for commit in commits for name in commit.get("shards", ())}
        return commits

    def append(self, added: dict[str, Any]) -> bool:
        """Add a commit of some entries; return False, and add nothing, if the log is closed. Raises
        as ``read``.
        """
        data = _data({"writer": self._writer, "parts": [], "failed": [], "retried": [], **added})
        if "lost" in added:
            self._store.put_new(f"{COMMITS}/{_LOST}{uuid.uuid4().hex}.json", data)
        if self._next is None:
            self._next = max(0, self._count() - 1)
        while not self._store.put_new(_name(self._next), data):
            self._next = self._count(self._next + 1)
            if "closed" in self._commit(self._next - 1):
                return False
        self._next += 1
        if self._next % _BLOCK == 0:
            first = self._next - _BLOCK
            block = merged(map(self._commit, range(first, self._next)), self._writer)
            self._store.put_new(_block(first), _data(block))
        return True

    def find_record(self) -> None:
        """Read the record of the shard, if there is one, without the parts that were ever lost.
        Raises OSError.
        """
        if self.shard is None:
            return
        with contextlib.suppress(FileNotFoundError, ValueError):  # then the commits are read
            record = self._get(_record(self.shard), ShardRecord)
            for name in self._store.names(COMMITS, after=_LOST):
                if name.startswith(_LOST):
                    lost = self._get(f"{COMMITS}/{name}", Commit).get("lost", ())
                    record["without"] += [
                        part for part in map(part_number, lost) if part is not None
                    ]
            self.record, self._next = record, record["next"]

    def put_record(self, done: set[int], choice: Any) -> None:
        """Replace the record of the shard, if it keeps one; its commits have all parts of ``done``.
        Raises OSError.
        """
        if self.shard is None:
            return
        until = max(done, default=-1) + 1
        without = [part for part in self.shard.parts(until) if part not in done]
        record: ShardRecord = {
            "until": until,
            "without": without,
            "next": self._next or 0,
            "choice": choice,
        }
        with self._store.new_file(_record(self.shard)) as file:
            file.write(_data(record))

    def close(self, tables: list[TableEntry], traffic: dict[str, int]) -> bool:
        """Close the log, with tables and requests of its writer; False if there are commits that
        were not read. OSError.
        """
        assert self._next is not None  # it was read
        closing = merged((), self._writer) | {"tables": tables, "traffic": traffic, "closed": True}
        return self._store.put_new(_name(self._next), _data(closing))

    def _count(self, known: int = 0) -> int:
        """Return the number of commits, if it is not less, by that of the last: each was created
        after the one before.
        """
        names = map(
            _COMMIT.fullmatch,
            self._store.names(COMMITS, after=f"{known - 1:08d}.json" if known else ""),
        )
        return max((int(name[1]) + 1 for name in names if name), default=known)

    def _commits(self, count: int) -> Iterator[Commit]:
        """Yield the commits below a number, whole blocks as one."""
        for first in range(0, count, _BLOCK):
            with contextlib.suppress(FileNotFoundError):
                if first + _BLOCK <= count:
                    yield self._get(_block(first), Commit)
                    continue
            yield from map(self._commit, range(first, min(first + _BLOCK, count)))

    def _commit(self, number: int) -> Commit:
        try:
            return self._get(_name(number), Commit)
        except FileNotFoundError:
            raise ValueError(f"commit {number} of the run is missing") from None

    def _get(self, name: str, schema: type[T]) -> T:
        """Read a file of the log, and check it."""
        try:
            return checked(read_json(self._store.get(name, MAX_COMMIT_BYTES)), schema)
        except ValueError as error:
            raise ValueError(f"{name} is damaged: {error}") from None


def _name(number: int) -> str:
    return f"{COMMITS}/{number:08d}.json"


def _record(shard: Shard) -> str:
    return f"{COMMITS}/shard-{shard.index}-of-{shard.count}.json"


def _block(first: int) -> str:
    return f"{COMMITS}/{first:08d}-{first + _BLOCK - 1:08d}.json"


def _data(commit: Any) -> bytes:
    return json.dumps(commit).encode()


def merged(commits: Iterable[Commit], writer: str) -> Commit:
    """Return one commit that says what several say, one after the other."""
    total: Commit = {"writer": writer, "parts": [], "failed": [], "retried": []}
    parts: dict[str, PartEntry] = {}
    for commit in commits:
        for name in commit.get("lost", ()):
            parts.pop(name, None)
            total.setdefault("lost", []).append(name)
        parts |= {part["file"]: part for part in commit["parts"]}
        total["failed"] += commit["failed"]
        total["retried"] += commit["retried"]
        if "shards" in commit:
            total["shards"] = sorted({*total.get("shards", ()), *commit["shards"]})
        for step, value in commit.get("seconds", {}).items():
            seconds = total.setdefault("seconds", {})
            seconds[step] = round(seconds.get(step, 0.0) + value, 3)
        if "traffic" in commit:
            total["traffic"] = dict(Counter(total.get("traffic", {})) + Counter(commit["traffic"]))
        for key in ("choice", "tables"):
            if key in commit:
                total[key] = commit[key]
    total["parts"] = list(parts.values())
    return total


def with_commits(manifest: Manifest, commits: Iterable[Commit]) -> Manifest:
    """Return the manifest of a run with what its commits add; the last entry of a part or of a
    failed source counts.
    """
    kept = ("parts", "failed", "retried", "seconds", "tables", "traffic")
    known: Any = {key: value for key, value in manifest.items() if key in kept}
    added: Any = merged((known, *commits), "")
    for key in ("writer", "lost", "shards"):
        added.pop(key, None)
    parts = {part["file"]: part for part in added["parts"]}
    # Of sources that no later attempt has computed, each once, with its last error.
    last = {
        (each["file"], source): each["error"]
        for each in added["failed"]
        for source in each["sources"]
    }
    failed: dict[tuple[str, str], Failure] = {}
    for (file, source), error in last.items():
        if file not in parts or source not in parts[file]["sources"]:
            failed.setdefault((file, error), {"file": file, "sources": [], "error": error})[
                "sources"
            ].append(source)
    in_place = {
        "parts": [parts[name] for name in sorted(parts, key=in_order)],
        "failed": list(failed.values()),
    }
    whole: Any = {**manifest, **added, **in_place}
    return whole
