"""What the logs of tables say of the parts, compared with the parts themselves.

A reader of a table goes by its log: it skips files by counts and bounds, and takes names, types and
partitions from there. So every field is compared that decides what is read. A field that tables of
this job do not have is a difference, too. The files of a log are read here, regular ones of a
bounded size. The packages of the formats would wait at a FIFO, and follow links and addresses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kepler_traverse.errors import OutputError, one_line, several

from .manifest_types import Manifest
from .run_folder import irregular_fault
from .store import Store

DELTA_LOG = "_delta_log"
ICEBERG_LOG = "_iceberg/metadata"
DELTA_COMMIT = "00000000000000000000.json"
# names the metadata that count, for readers of an Iceberg table without a catalog
HINT = "version-hint.text"
MAX_BYTES = 2**30  # of a file of a log
# What a process that was killed has left: "_commit_UUID.json" or "_commit_UUID.json.tmp", a hidden
# file, or a name that ends with "#" and a number.
_UNFINISHED = re.compile(r"_commit_[0-9a-f-]+\.json(\.tmp)?|\..*|.*#\d+")
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HINTED = re.compile(rf"\d{{5}}-{UUID}")  # what the hint may hold: "00001-UUID"
# "00001-UUID.metadata.json", the list of manifests "snap-NUMBER-NUMBER-UUID.avro", a manifest
# "UUID-m0.avro", or the hint
ICEBERG_FILE = re.compile(
    rf"{HINTED.pattern}\.metadata\.json|snap-\d+-\d+-{UUID}\.avro|{UUID}-m\d+\.avro|{HINT}"
)
_OF_LOG = {DELTA_LOG: re.compile(DELTA_COMMIT), ICEBERG_LOG: ICEBERG_FILE}  # names of its files
_LISTED = 3  # files in a message
MISSING = object()  # in place of the value of a field that is not there


class NamedFile(NamedTuple):
    """A file that a table names."""

    file: str  # its name in the folder of the run, or its address if it is elsewhere
    bytes: Any  # its size, an integer; a damaged log may have any other value here
    rows: Any  # its number of rows, or any other value, as ``bytes``


class DifferenceError(Exception):
    """A difference was found. Arguments: the file of the log, ``""`` if it is in none, and what
    differs.
    """


def differing_log(
    store: Store, manifest: Manifest, log: str, compare: Callable[[Store, Manifest], None]
) -> str:
    """Describe the first difference between the log of a table and the parts of the run; ``""`` if
    there is none.

    ``log`` is the folder of the log. ``compare(store, manifest)`` raises DifferenceError for a
    difference. Any other error of it, except OutputError, is a table that cannot be read.
    """
    try:
        _refuse_others_files(store, log)
        compare(store, manifest)
    except DifferenceError as difference:
        file, why = difference.args
        return f"{file}: {why}" if file else str(why)
    except OutputError:
        raise
    except Exception as error:
        # All errors are caught, since a package decodes here what others may have written.
        return f"the table cannot be read ({one_line(error, 400) or type(error).__name__})"
    return ""


def stray_file(store: Store, log: str) -> str:
    """Describe a file in the folder of a log that is none of its files; ``""`` if there is none.

    This is for a folder in which no table is complete.
    """
    try:
        _refuse_others_files(store, log)
    except DifferenceError as difference:
        return ": ".join(difference.args)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return ""


def _refuse_others_files(store: Store, log: str) -> None:
    """Raise DifferenceError for a file that finish has not made, also for a link, a FIFO or the
    like with the name of a file that it makes.

    ``log``: folder of the log, "_delta_log", or "_iceberg/metadata" with the folder of the table
    before the slash.
    """
    # The folder of an Iceberg table may hold a single name: the folder of the log.
    top, _, inner = log.partition("/")
    _refuse_irregular(store, top, "a folder")
    if inner:
        for name in sorted(store.names(top)):
            if name != inner:
                raise DifferenceError(
                    f"{top}/{name}", "it is no file of a table as finish has made it"
                )
            _refuse_irregular(store, log, "a folder")

    for name in sorted(store.names(log)):
        if not (_OF_LOG[log].fullmatch(name) or _UNFINISHED.fullmatch(name)):
            raise DifferenceError(f"{log}/{name}", "it is no file of a table as finish has made it")
        _refuse_irregular(store, f"{log}/{name}", "")


def _refuse_irregular(store: Store, name: str, expected: str) -> None:
    """Raise DifferenceError unless ``name`` is "a folder", or, if ``expected`` is ``""``, a regular
    file.
    """
    fault = irregular_fault(store, name, expected)
    if fault:
        raise DifferenceError(name, fault)


def refuse_difference(
    file: str, section: str, stated: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Raise DifferenceError for the first field of a log that is not as expected.

    ``file`` and ``section`` begin the message: the file of the log, and the name of a field up to
    its last key. ``stated``: the fields that the log has. ``expected``: the fields that the log
    should have, and no others. Types are compared, too.
    """
    for field in dict.fromkeys([*expected, *stated]):
        value = stated.get(field, MISSING)
        right = expected.get(field, MISSING)
        if value != right or type(value) is not type(right):  # True equals 1
            raise DifferenceError(
                file, f"{section}{field} is {shown(value)}, and of the parts it is {shown(right)}"
            )


def shown(value: Any) -> str:
    """Return a value of a log as text for a message, of bounded length."""
    if value is MISSING:
        return "not there"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def compare_files(named: Iterable[NamedFile], manifest: Manifest) -> None:
    """Raise DifferenceError unless a table names the parts of the run, with their sizes and rows,
    each once.

    ``named``: the files that its log names. ``manifest``: lists the parts.
    """
    # Counters are compared, since a damaged log may name a file twice.
    parts = Counter(
        NamedFile(part["file"], part["bytes"], part["rows"]) for part in manifest["parts"]
    )
    stated = Counter(named)
    differences = []
    if parts - stated:
        differences.append(f"lacks {_list_files(parts - stated)}")
    if stated - parts:
        differences.append(f"names {_list_files(stated - parts)}")
    if differences:
        raise DifferenceError("", f"the table {' and '.join(differences)}")


def _list_files(files: Counter[NamedFile]) -> str:
    """Name the first ``_LISTED`` files of a message, with their rows; "..." stands for more."""
    texts = [
        f"{str(file.file)[:100]} of {_rows_text(file.rows)}"
        for file in sorted(files, key=repr)[:_LISTED]
    ]
    if len(files) > _LISTED:
        texts.append("...")
    return ", ".join(texts)


def _rows_text(count: Any) -> str:
    """Return a number of rows for a message; a damaged log may have any value in its place."""
    if type(count) is int:
        return several(count, "row")
    return f"{shown(count)} rows"
