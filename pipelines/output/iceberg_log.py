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
_COUNTS = re.compile(r"\.summary\.|_count$")  # sums over the files, which are compared first
_TIME = re.compile(r"metadata-log\.\d+\.timestamp-ms")
_UUIDS = re.compile("table-uuid")


def compare_iceberg(
    store: Store, manifest: Manifest, *, make: Callable[[str], None], address: str
) -> None:
    """Compare an Iceberg table with one that its package makes of the same parts.

    ``make``: make the table in the folder of a URL, with absolute addresses of the parts.
    ``address``: of the folder that has the table. Raises DifferenceError; and any error of the
    package.
    """
    with temporary_folder() as folder:
        url = f"file://{folder}"
        make(url)
        again = Store(type(store.path)(folder))
        found = _Table(
            lambda name: store.get(f"{ICEBERG_LOG}/{name}", MAX_BYTES), f"{address}/_iceberg"
        ).describe()
        right = _Table(lambda name: again.get(f"metadata/{name}", MAX_BYTES), url).describe()
        for expected in right:
            # Only now: what is read next is named by what was found to be right.
            there = next(found)
            if there.named:
                named = [
                    each._replace(file=each.file.removeprefix(f"{address}/"))
                    for each in there.named
                ]
                compare_files(named, manifest)
            refuse_difference(there.file, there.what, there.fields, expected.fields)


class _Described(NamedTuple):
    """Fields of a file of a log, by name, and the data files that it names, if it names any."""

    file: str
    what: str
    fields: dict[str, Any]
    named: list[NamedFile] | None = None


class _Table:
    """The log of an Iceberg table, of which ``read`` returns a file by its name; the table has the
    address ``location``.
    """

    def __init__(self, read: Read, location: str):
        self._read = read
        self._location = location
        self._prefix = f"{location}/metadata/"  # of the addresses of files of the log
        # What each table has of its own, as text, and what stands for it where tables are compared.
        self._own: dict[str, str] = {}

    def describe(self) -> Iterator[_Described]:
        """Yield what the files say, one after another; what differs from table to table is
        replaced.
        """
        file, metadata = self._read_metadata()
        self._own = {
            str(metadata.get("current-snapshot-id")): "the present snapshot",
            str(metadata.get("last-updated-ms")): "the time of the table",
        }
        fields = {key: self._replaced(key, value) for key, value in _flat(metadata)}
        yield _Described(file, "", _without_counts(fields))
        (listing,) = (self._name_of(each["manifest-list"]) for each in metadata["snapshots"])
        manifests: list[Any] = []
        for described in self._describe_avro(listing, self._read(listing), manifests):
            fields |= {f"{described.file}: {key}": value for key, value in described.fields.items()}
            yield described._replace(fields=_without_counts(described.fields))
        for each in manifests:
            yield from self._describe_manifest(listing, each)
        counts = {
            key.replace(listing, "manifest list"): value
            for key, value in fields.items()
            if _COUNTS.search(key)
        }
        yield _Described(file, "", counts)

    def _read_metadata(self) -> tuple[str, dict[str, Any]]:
        """Return the file of the metadata that count, and these, without the address of the table."""
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
        """Return the name of a file of the log."""
        return address[len(self._prefix) :]

    def _replaced(self, key: str, value: Any) -> Any:
        """Return a value without what each table has of its own: numbers, times and random names."""
        if type(value) in (int, str) and str(value) in self._own:
            return f"{self._own[str(value)]} as {type(value).__name__}"
        if type(value) is int and _TIME.fullmatch(key) and value >= 0:
            return "a time"
        if not isinstance(value, str):
            return value
        if _UUIDS.fullmatch(key) and re.fullmatch(UUID, value):
            return "a UUID"
        if value.startswith(self._prefix) and ICEBERG_FILE.fullmatch(self._name_of(value)):
            return "a file of the log"
        return value

    def _describe_manifest(self, listing: str, entry: Any) -> Iterator[_Described]:
        """Yield what a manifest says that an entry of the list of manifests names."""
        name = self._name_of(entry["manifest_path"])
        data = self._read(name)
        length = entry["manifest_length"]
        if length != len(data):
            why = f"manifest_length of {name} is {shown(length)}, and it has {len(data)} bytes"
            raise DifferenceError(f"{ICEBERG_LOG}/{listing}", why)
        yield from self._describe_avro(name, data, [])

    def _describe_avro(self, name: str, data: bytes, records: list[Any]) -> Iterator[_Described]:
        """Yield the header of an Avro file, by which the rest is decoded, and its records, which
        are added to a list.
        """
        from pyiceberg.avro.file import AvroFile

        file = f"{ICEBERG_LOG}/{name}"
        with AvroFile(_InMemory(data)) as avro:  # type: ignore[arg-type, var-annotated]
            header = {key: self._replaced(key, value) for key, value in avro.header.meta.items()}
            yield _Described(file, "header: ", header)
            records += [plain_record(record, avro.schema.as_struct()) for record in avro]
            if avro.decoder.tell() != len(data):
                raise DifferenceError(file, "it holds more than its records")
        fields = {
            f"{path}: {key}": self._replaced(key, value)
            for path, each in _by_path(file, records).items()
            for key, value in _flat(each)
        }
        entries = [each["data_file"] for each in records if "data_file" in each]
        named = [
            NamedFile(each["file_path"], each["file_size_in_bytes"], each["record_count"])
            for each in entries
        ]
        yield _Described(file, "", fields, named)


def _without_counts(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if not _COUNTS.search(key)}


def _by_path(file: str, records: list[Any]) -> dict[str, Any]:
    """Return records of a file of the log by the data files, or the manifests, that they name."""
    named: dict[str, Any] = {}
    for number, each in enumerate(records):
        if "data_file" in each:
            path = each["data_file"]["file_path"]
        else:
            path = f"manifest {number}"
        if path in named:
            raise DifferenceError(file, f"it names {shown(path)} twice")
        named[path] = {key: value for key, value in each.items() if key != "manifest_length"}
    return named


class _InMemory:
    """Bytes as a file of pyiceberg."""

    def __init__(self, data: bytes):
        self._data = data

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002
        return io.BytesIO(self._data)


def plain_record(value: Any, kind: Any) -> Any:
    """Return a record of pyiceberg as dicts and lists."""
    if hasattr(value, "_data"):
        return {
            field.name: plain_record(each, field.field_type)
            for field, each in zip(kind.fields, value._data, strict=True)
        }
    if isinstance(value, Mapping):
        return dict(value.items())
    return value


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in dicts and lists by their places, those that are empty, too."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    if not inner or not value:
        yield at, value
        return
    for key, each in inner:
        yield from _flat(each, f"{at}.{key}" if at else str(key))
