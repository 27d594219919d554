"""The log of an Iceberg table, compared with one that its package makes of the same parts.

It has metadata in JSON, which name a list of manifests, which name files; both are in Avro.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kepler_traverse.runtime.regular_files import read_json
from kepler_traverse.runtime.scratch import temporary_folder

from .manifest_types import Manifest
from .store import Store
from .table_logs import (
    HINT,
    HINTED,
    ICEBERG_FILE,
    ICEBERG_LOG,
    MAX_BYTES,
    UUID,
    DifferenceError,
    NamedFile,
    compare_files,
    refuse_difference,
    shown,
)

Read = Callable[[str], bytes]  # the content of a file of the log, by its name
# Keys of fields, as ``_flatten`` names them:
# Sums over the files, which are compared before: "snapshots.0.summary.total-records", or
# "manifest 0.added_rows_count".
_COUNTS = re.compile(r"\.summary\.|_count$")
_TIMES = re.compile(r"metadata-log\.\d+\.timestamp-ms")  # "metadata-log.0.timestamp-ms"
_UUIDS = re.compile("table-uuid")


def compare_iceberg(
    store: Store, manifest: Manifest, *, make: Callable[[str], None], address: str
) -> None:
    """Compare an Iceberg table with one that its package makes of the same parts.

    Parameters
    ----------
    store : Store
        The folder of the run, with the table.
    manifest : Manifest
        Lists the parts of the run.
    make : callable
        ``make(url)`` makes the table of the parts again in the folder of a URL.
    address : str
        URL of the folder of the run, by which the table names the parts.

    Raises
    ------
    DifferenceError
        The tables differ.
    Exception
        Any error of the package that reads the table.
    """
    with temporary_folder() as folder:
        url = f"file://{folder}"
        make(url)
        again = Store(type(store.path)(folder))  # the name of the folder as a Path
        actual_log = _Table(
            lambda name: store.get(f"{ICEBERG_LOG}/{name}", MAX_BYTES), f"{address}/_iceberg"
        ).describe()
        expected_log = _Table(lambda name: again.get(f"metadata/{name}", MAX_BYTES), url).describe()

        for expected in expected_log:
            # The next file is read only now: its name comes from what has been found to be right.
            actual = next(actual_log)
            if actual.data_files:
                names = [
                    data_file._replace(file=data_file.file.removeprefix(f"{address}/"))
                    for data_file in actual.data_files
                ]
                compare_files(names, manifest)
            refuse_difference(actual.file, actual.section, actual.fields, expected.fields)


class _Description(NamedTuple):
    """What a file of a log says, or a section of it, with what differs from table to table
    replaced.
    """

    file: str  # its name in the folder of the run
    section: str  # begins the names of its fields in messages; "" for the whole file
    fields: dict[str, Any]  # values by their keys, which are joined by dots where they are nested
    data_files: list[NamedFile] | None = None  # those that a manifest names; None in other files


class _Table:
    """The log of an Iceberg table.

    ``read`` returns the content of a file of the log by its name. ``location`` is the URL of the
    table, with which the addresses of its files begin.
    """

    def __init__(self, read: Read, location: str):
        self._read = read
        self._location = location
        self._prefix = f"{location}/metadata/"  # of the addresses of files of the log
        # Values that each table has of its own, as text, with what stands for them in comparisons.
        self._placeholders: dict[str, str] = {}

    def describe(self) -> Iterator[_Description]:
        """Yield what the files say, one after another; what differs from table to table is
        replaced.

        They are the metadata, the list of manifests and the manifests. Counts over all files come
        last: a file too many is named, rather than its count.
        """
        # The metadata, which name the list of manifests of the one snapshot.
        file, metadata = self._read_metadata()
        self._placeholders = {
            str(metadata.get("current-snapshot-id")): "the present snapshot",
            str(metadata.get("last-updated-ms")): "the time of the table",
        }
        fields = {key: self._replace_own(key, value) for key, value in _flatten(metadata)}
        yield _Description(file, "", _without_counts(fields))

        # The list of manifests, and then each manifest.
        (snapshot,) = metadata["snapshots"]
        listing = self._name_of(snapshot["manifest-list"])
        manifests: list[Any] = []
        for description in self._describe_avro(listing, self._read(listing), manifests):
            fields |= {f"{listing}: {key}": value for key, value in description.fields.items()}
            yield description._replace(fields=_without_counts(description.fields))
        for entry in manifests:
            yield from self._describe_manifest(listing, entry)

        # Names of files are random, so the keys of counts name the list by what it is.
        counts = {
            key.replace(listing, "manifest list"): value
            for key, value in fields.items()
            if _COUNTS.search(key)
        }
        yield _Description(file, "", counts)

    def _read_metadata(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the metadata file that the hint names, and its fields.

        The address of the table (``location``) is checked here, and is not among the fields.
        """
        # The name is checked before a file of that name is read.
        hint = self._read(HINT).decode("ascii", "replace").strip()
        if not HINTED.fullmatch(hint):
            why = f"it names {shown(hint)}, which are no metadata"
            raise DifferenceError(f"{ICEBERG_LOG}/{HINT}", why)
        name = f"{hint}.metadata.json"
        file = f"{ICEBERG_LOG}/{name}"
        metadata: Any = read_json(self._read(name))
        if not isinstance(metadata, dict):
            raise DifferenceError(file, "they are no object")
        location = metadata.pop("location", None)
        if location != self._location:
            why = f"location is {shown(location)}, and the table is in {self._location}"
            how = "if the folder was moved, delete _iceberg, and run finish again"
            raise DifferenceError(file, f"{why}: {how}")
        return file, metadata

    def _name_of(self, address: str) -> str:
        """Return the name of a file of the log from its address, ``_prefix`` and the name. An
        address that begins otherwise is cut at the same length: callers have checked it.
        """
        return address[len(self._prefix) :]

    def _replace_own(self, key: str, value: Any) -> Any:
        """Return a text in place of a value that each table has of its own, and any other value as
        it is.

        Own values are numbers, times and random names: the number of the present snapshot becomes
        "the present snapshot as int". ``key``: of the field that has the value.
        """
        if type(value) in (int, str) and str(value) in self._placeholders:
            return f"{self._placeholders[str(value)]} as {type(value).__name__}"
        if type(value) is int and _TIMES.fullmatch(key) and value >= 0:
            return "a time"
        if not isinstance(value, str):
            return value
        if _UUIDS.fullmatch(key) and re.fullmatch(UUID, value):
            return "a UUID"
        if value.startswith(self._prefix) and ICEBERG_FILE.fullmatch(self._name_of(value)):
            return "a file of the log"
        return value

    def _describe_manifest(self, listing: str, entry: Any) -> Iterator[_Description]:
        """Yield what a manifest says.

        ``listing``: name of the list of manifests. ``entry``: its record that names the manifest.
        Raises DifferenceError: the manifest has another length than the entry says.
        """
        name = self._name_of(entry["manifest_path"])
        data = self._read(name)
        length = entry["manifest_length"]
        if length != len(data):
            why = f"manifest_length of {name} is {shown(length)}, and it has {len(data)} bytes"
            raise DifferenceError(f"{ICEBERG_LOG}/{listing}", why)
        # The records name data files, and no further files of the log: the list is not used.
        yield from self._describe_avro(name, data, [])

    def _describe_avro(self, name: str, data: bytes, records: list[Any]) -> Iterator[_Description]:
        """Yield the header of an Avro file, and then its records; also add these to ``records``.

        ``name``: of the file in the log. ``data``: its content. The header is yielded first, since
        the rest is decoded by it: the caller compares it before the records are decoded.
        """
        from pyiceberg.avro.file import AvroFile

        file = f"{ICEBERG_LOG}/{name}"
        with AvroFile(_InMemory(data)) as avro:  # type: ignore[arg-type, var-annotated]
            header = {key: self._replace_own(key, value) for key, value in avro.header.meta.items()}
            yield _Description(file, "header: ", header)
            records += [plain_record(record, avro.schema.as_struct()) for record in avro]
            if avro.decoder.tell() != len(data):
                raise DifferenceError(file, "it holds more than its records")

        fields = {
            f"{path}: {key}": self._replace_own(key, value)
            for path, record in _by_path(file, records).items()
            for key, value in _flatten(record)
        }
        entries = [record["data_file"] for record in records if "data_file" in record]
        data_files = [
            NamedFile(entry["file_path"], entry["file_size_in_bytes"], entry["record_count"])
            for entry in entries
        ]
        yield _Description(file, "", fields, data_files)


def _without_counts(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields except sums over all files, which are compared last."""
    return {key: value for key, value in fields.items() if not _COUNTS.search(key)}


def _by_path(file: str, records: list[Any]) -> dict[str, Any]:
    """Return records of a file of the log by what they name.

    The key of a record of a data file is the file's address. Manifests have random names, so the
    key of a record of a manifest is "manifest" and its position. The field ``manifest_length`` is
    left out, since it was compared with the file. Raises DifferenceError: a file is named twice.
    """
    by_path: dict[str, Any] = {}
    for number, record in enumerate(records):
        if "data_file" in record:
            path = record["data_file"]["file_path"]
        else:
            path = f"manifest {number}"
        if path in by_path:
            raise DifferenceError(file, f"it names {shown(path)} twice")
        by_path[path] = {key: value for key, value in record.items() if key != "manifest_length"}
    return by_path


class _InMemory:
    """Bytes as a file of pyiceberg."""

    def __init__(self, data: bytes):
        self._data = data

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002
        """Return the bytes as an open file; pyiceberg calls it.

        ``seekable`` is ignored: the file can be read from any position in any case.
        """
        return io.BytesIO(self._data)


def plain_record(value: Any, struct: Any) -> Any:
    """Return a value of pyiceberg as a plain one: a record as a dict of its fields, by name, and
    records within it likewise; another mapping as a dict; any other value as it is.

    ``struct``: type of a record, which has the names of its fields; not used for other values.
    """
    if hasattr(value, "_data"):  # a record, whose values are in the order of the fields
        return {
            field.name: plain_record(inner, field.field_type)
            for field, inner in zip(struct.fields, value._data, strict=True)
        }
    if isinstance(value, Mapping):
        return dict(value.items())
    return value


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in nested dicts and lists, each after its keys, joined by dots.

    Positions in lists are keys, too: {"a": [{"b": 1}]} yields ("a.0.b", 1). An empty dict or list
    is a value. ``prefix``: keys of ``value`` itself, joined; "" at the top.
    """
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    if not items or not value:  # an enumeration is true also without items
        yield prefix, value
        return
    for key, inner in items:
        yield from _flatten(inner, f"{prefix}.{key}" if prefix else str(key))
