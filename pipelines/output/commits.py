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

from .layout import part_number, part_order
from .manifest_types import Commit, Failure, Manifest, PartEntry, ShardRecord, TableEntry, checked
from .store import Store

if TYPE_CHECKING:
    from .shard import Shard

COMMITS = "_commits"
MAX_COMMIT_BYTES = 2**31
_BLOCK = 128  # commits
_COMMIT = re.compile(r"(\d{8})\.json")  # "00000012.json", the file of a commit
# begins the names of copies of commits that have lost parts, for those who read no others
_LOST = "lost-"
T = TypeVar("T")


class CommitLog:
    """The log of the run in a store.

    The process that creates the last commit of a block also writes the block: one commit that says
    what all of them say. So a reader opens few files, and an entry is written twice, however many
    commits there are. A block that is missing, since its writer was killed, is read as the commits
    that it is made of.

    ``shard`` is this process among those that share the run, if others do. It keeps a short record
    of its parts beside the commits, which it replaces after each of its own. So the next process of
    this shard reads no commit.

    Attributes
    ----------
    shard : Shard or None
        The shard that keeps a record; None if there is none.
    record : ShardRecord or None
        As ``find_record`` has found it; None before, and if there is none.
    is_closed : bool
        Whether the log had its closing commit when it was last read.
    shards : set of str
        Shards that have committed, as I/N, when the log was last read.
    """

    def __init__(self, store: Store, shard: Shard | None = None):
        self._store = store
        self._writer = uuid.uuid4().hex  # a random name of this process, which its commits state
        self.shard = shard
        # the first number of a commit that may be free; None until the log or a record was read
        self._next: int | None = None
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
        """Add a commit of some entries; return False, and add nothing, if the log is closed.

        ``added``: the entries by the keys of ``Commit``. Raises OSError, or ValueError: a commit is
        damaged or missing.
        """
        data = _to_json({"writer": self._writer, "parts": [], "failed": [], "retried": [], **added})
        # Parts that are lost are also written to a file of their own, since a shard with a record
        # reads no commits: ``find_record`` finds them there.
        if "lost" in added:
            self._store.put_new(f"{COMMITS}/{_LOST}{uuid.uuid4().hex}.json", data)

        # Where the number is taken, the last commit is read: it may have closed the log. A writer
        # that has read no commit begins with the number of the last, so that it reads that one,
        # too.
        if self._next is None:
            self._next = max(0, self._count() - 1)
        # ``put_new`` returns False if the number is taken. Then the next free one is tried.
        while not self._store.put_new(_commit_name(self._next), data):
            # With the number that is taken there are at least ``_next + 1`` commits.
            self._next = self._count(self._next + 1)
            if "closed" in self._commit(self._next - 1):
                return False
        self._next += 1

        if self._next % _BLOCK == 0:
            first = self._next - _BLOCK
            block = merge_commits(map(self._commit, range(first, self._next)), self._writer)
            self._store.put_new(_block_name(first), _to_json(block))
        return True

    def find_record(self) -> None:
        """Read the record of the shard, if there is one, into ``record``; raises OSError.

        Parts that any process has found missing are added to its ``without``.
        """
        if self.shard is None:
            return
        with contextlib.suppress(FileNotFoundError, ValueError):  # then the commits are read
            record = self._get(_record_name(self.shard), ShardRecord)
            for name in self._store.names(COMMITS, after=_LOST):
                if name.startswith(_LOST):
                    lost = self._get(f"{COMMITS}/{name}", Commit).get("lost", ())
                    numbers = map(part_number, lost)
                    record["without"] += [number for number in numbers if number is not None]
            self.record = record
            self._next = record["next"]

    def put_record(self, done: set[int], choice: Any) -> None:
        """Replace the record of the shard, if this process is one. Raises OSError.

        ``done``: numbers of the parts that are in commits of the shard. ``choice``: the choice
        between strategies, as the manifest records it.
        """
        if self.shard is None:
            return
        until = max(done, default=-1) + 1  # the parts below are listed by those that are missing
        without = [part for part in self.shard.parts(until) if part not in done]
        record: ShardRecord = {
            "until": until,
            "without": without,
            "next": self._next or 0,
            "choice": choice,
        }
        with self._store.new_file(_record_name(self.shard)) as file:
            file.write(_to_json(record))

    def close(self, tables: list[TableEntry], traffic: dict[str, int]) -> bool:
        """Add the commit that closes the log; return False, and add nothing, if there are commits
        that were not read. Raises OSError.

        ``tables``: entries of the tables that the run has made. ``traffic``: number of requests of
        this process to object stores, by kind.
        """
        assert self._next is not None  # it was read
        own = {"tables": tables, "traffic": traffic, "closed": True}
        closing = merge_commits((), self._writer) | own
        return self._store.put_new(_commit_name(self._next), _to_json(closing))

    def _count(self, known: int = 0) -> int:
        """Return the number of commits, which is at least ``known``; 0 if there are none.

        Numbers begin at 0 without gaps, since each commit was created after the one before. So the
        largest number gives the count.
        """
        last_known = ""
        if known:
            last_known = f"{known - 1:08d}.json"
        matches = map(_COMMIT.fullmatch, self._store.names(COMMITS, after=last_known))
        return max((int(match[1]) + 1 for match in matches if match), default=known)

    def _commits(self, count: int) -> Iterator[Commit]:
        """Yield the commits with numbers below ``count``; a whole block is one commit.

        A block whose file is missing is read as its single commits.
        """
        for first in range(0, count, _BLOCK):
            with contextlib.suppress(FileNotFoundError):
                if first + _BLOCK <= count:
                    yield self._get(_block_name(first), Commit)
                    continue
            yield from map(self._commit, range(first, min(first + _BLOCK, count)))

    def _commit(self, number: int) -> Commit:
        """Read the commit of a number; raise ValueError if it is missing or damaged."""
        try:
            return self._get(_commit_name(number), Commit)
        except FileNotFoundError:
            raise ValueError(f"commit {number} of the run is missing") from None

    def _get(self, name: str, schema: type[T]) -> T:
        """Read the file ``name`` of the log, and return its content, which fits the type
        ``schema``; raise ValueError if it does not, and FileNotFoundError if there is no such file.
        """
        try:
            return checked(read_json(self._store.get(name, MAX_COMMIT_BYTES)), schema)
        except ValueError as error:
            raise ValueError(f"{name} is damaged: {error}") from None


def _commit_name(number: int) -> str:
    """Return the name of the file of a commit."""
    return f"{COMMITS}/{number:08d}.json"


def _record_name(shard: Shard) -> str:
    """Return the name of the file with the record of a shard."""
    return f"{COMMITS}/shard-{shard.index}-of-{shard.count}.json"


def _block_name(first: int) -> str:
    """Return the name of the file of the block whose first commit has the number ``first``."""
    return f"{COMMITS}/{first:08d}-{first + _BLOCK - 1:08d}.json"


def _to_json(content: Any) -> bytes:
    """Return ``content``, a commit or a record, as the bytes of a file of the log."""
    return json.dumps(content).encode()


def merge_commits(commits: Iterable[Commit], writer: str) -> Commit:
    """Return one commit that says what several say, in their order.

    Lists are joined, and seconds and traffic are added. Of several entries of the same part, of
    several choices and of several lists of tables, the one of the latest commit counts. ``writer``
    identifies the process that writes the result. Without commits, the result has empty lists.
    """
    total: Commit = {"writer": writer, "parts": [], "failed": [], "retried": []}
    parts: dict[str, PartEntry] = {}
    for commit in commits:
        # A part that is lost is dropped, unless this or a later commit has it again.
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
    """Return the manifest of a run with what its commits add, in their order.

    Of several entries of a part, or of a failed source, the entry of the latest commit counts.
    Sources that failed, and that a later attempt has computed, are not failed any more.
    """
    # The manifest is merged as if it were the first commit; keys of commits alone are left out.
    common = ("parts", "failed", "retried", "seconds", "tables", "traffic")
    known: Any = {key: value for key, value in manifest.items() if key in common}
    merged: Any = merge_commits((known, *commits), writer="")
    for key in ("writer", "lost", "shards"):
        merged.pop(key, None)

    # Of sources that no later attempt has computed, each once, with its last error.
    parts = {part["file"]: part for part in merged["parts"]}
    last_errors = {
        (failure["file"], source): failure["error"]
        for failure in merged["failed"]
        for source in failure["sources"]
    }
    failures: dict[tuple[str, str], Failure] = {}  # by part and error
    for (file, source), error in last_errors.items():
        if file not in parts or source not in parts[file]["sources"]:
            new: Failure = {"file": file, "sources": [], "error": error}
            failures.setdefault((file, error), new)["sources"].append(source)

    merged["parts"] = [parts[name] for name in sorted(parts, key=part_order)]
    merged["failed"] = list(failures.values())
    whole: Any = {**manifest, **merged}
    return whole
