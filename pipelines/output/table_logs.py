"""What the logs of tables say of the parts, compared with the parts themselves.

A reader of a table goes by its log: it skips files by counts and bounds, and takes names, types and
partitions from there. So every field is compared that decides what is read. A field that tables of
this job do not have is a difference, too. The files of a log are read here, regular ones of a
bounded size. The packages of the formats would wait at a FIFO, and follow links and addresses.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from kepler_traverse.errors import OutputError, one_line, several
from kepler_traverse.formats.parquet_footer import (
    Chunk,
    decode_bound,
    read_chunks,
    read_schema,
)
from kepler_traverse.runtime.regular_files import irregular, read_json
from kepler_traverse.runtime.scratch import temporary_folder

from .layout import Layout
from .manifest_types import Manifest
from .run_folder import read_layout
from .store import Store

DELTA_LOG = "_delta_log"
ICEBERG_LOG = "_iceberg/metadata"
DELTA_COMMIT = "00000000000000000000.json"
# names the metadata that count, for readers of an Iceberg table without a catalog
HINT = "version-hint.text"
_MAX_BYTES = 2**30  # of a file of a log
# what a process that was killed has left
_UNFINISHED = re.compile(r"_commit_[0-9a-f-]+\.json(\.tmp)?|\..*|.*#\d+")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HINTED = re.compile(rf"\d{{5}}-{_UUID}")
_ICEBERG_FILE = re.compile(
    rf"{_HINTED.pattern}\.metadata\.json|snap-\d+-\d+-{_UUID}\.avro|{_UUID}-m\d+\.avro|{HINT}"
)
_OF_LOG = {DELTA_LOG: re.compile(DELTA_COMMIT), ICEBERG_LOG: _ICEBERG_FILE}
_DELTA_TYPES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.float64(): "double",
    pa.float32(): "float",
    pa.string(): "string",
    pa.large_string(): "string",
}
_BOUNDS = ("minValues", "maxValues", "nullCount")
_LISTED = 3  # files in a message
_SHORT = 32  # characters of a text that no format cuts short
_MISSING = object()
Read = Callable[[str], bytes]  # the content of a file of the log, by its name


class _Named(NamedTuple):
    """A file that a table names: its name in the folder, or its address if it is elsewhere."""

    file: str
    bytes: Any  # a number of a part; what a log says may be anything
    rows: Any


class _DifferenceError(Exception):
    """A difference was found: in which file of the log, and which."""


def differing_log(
    store: Store, manifest: Manifest, log: str, compare: Callable[[Store, Manifest], None]
) -> str:
    """Describe the first difference between the log of a table and the parts of the run; ``""`` if
    there is none.

    ``compare`` raises it, as ``compare_delta`` does.
    """
    try:
        _refuse_others_files(store, log)
        compare(store, manifest)
    except _DifferenceError as difference:
        file, why = difference.args
        return f"{file}: {why}" if file else str(why)
    except OutputError:
        raise
    except Exception as error:
        # also any error of a package that decodes what others may have written
        return f"the table cannot be read ({one_line(error, 400) or type(error).__name__})"
    return ""


def stray_file(store: Store, log: str) -> str:
    """Describe what is in the place of a log and is none of its files, where no table is; ``""`` if
    nothing is.
    """
    try:
        _refuse_others_files(store, log)
    except _DifferenceError as difference:
        return ": ".join(difference.args)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return ""


def _refuse_others_files(store: Store, log: str) -> None:
    """Raise _DifferenceError for a file that finish has not made, also a link, a FIFO or the like
    of the name of one.
    """
    top, _, inner = log.partition("/")
    if inner:
        levels = [("", {top}), (top, {inner})]
    else:
        levels = [("", {top})]
    for folder, known in levels:
        for name in sorted(store.names(folder)) if folder else known:
            where = f"{folder}/{name}".lstrip("/")
            if name not in known:
                raise _DifferenceError(where, "it is no file of a table as finish has made it")
            _refuse_irregular(store, where, "a folder")
    for name in sorted(store.names(log)):
        if not (_OF_LOG[log].fullmatch(name) or _UNFINISHED.fullmatch(name)):
            raise _DifferenceError(
                f"{log}/{name}", "it is no file of a table as finish has made it"
            )
        _refuse_irregular(store, f"{log}/{name}", "")


def _refuse_irregular(store: Store, name: str, expected: str) -> None:
    if store.is_local:
        what = irregular(store.path / name)
    else:
        what = expected
    if what != expected:
        raise _DifferenceError(
            name, f"it is {what or 'a file'} and not {expected or 'a regular file'}"
        )


def _first_difference(
    file: str, what: str, there: Mapping[str, Any], right: Mapping[str, Any]
) -> None:
    """Raise _DifferenceError for the first field of a log that is not right."""
    for field in dict.fromkeys([*right, *there]):
        found = there.get(field, _MISSING)
        expected = right.get(field, _MISSING)
        if found != expected or type(found) is not type(expected):
            raise _DifferenceError(
                file, f"{what}{field} is {_shown(found)}, and of the parts it is {_shown(expected)}"
            )


def _shown(value: Any) -> str:
    text = "not there" if value is _MISSING else repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


# Delta Lake: one commit, whose lines are JSON.


def compare_delta(store: Store, manifest: Manifest) -> None:
    """Compare a Delta table with the parts of a run. Raises _DifferenceError; OSError, ValueError:
    it cannot be read.
    """
    layout = read_layout(manifest)
    file = f"{DELTA_LOG}/{DELTA_COMMIT}"
    actions: dict[str, list[Any]] = {}
    for number, line in enumerate(filter(bytes.strip, store.get(file, _MAX_BYTES).splitlines()), 1):
        try:
            action: Any = read_json(line)
            ((kind, fields),) = action.items()
            if not isinstance(fields, dict):
                raise ValueError(f"{kind!r} is no object")
        except (ValueError, AttributeError) as error:
            raise _DifferenceError(
                file, f"line {number} is no action of a log ({one_line(error)})"
            ) from None
        actions.setdefault(kind, []).append(fields)
    known = {"commitInfo", "protocol", "metaData", "add"}
    for kind in actions:
        if kind not in known:
            raise _DifferenceError(
                file, f"it has an action {_shown(kind)}, which finish does not write"
            )
    for kind in ("protocol", "metaData"):
        if len(actions.get(kind, ())) != 1:
            raise _DifferenceError(
                file, f"it has {len(actions.get(kind, ()))} actions {kind!r}, and a table has one"
            )
    (protocol,), (metadata,) = actions["protocol"], actions["metaData"]
    writer = protocol.get("minWriterVersion")
    right: dict[str, Any] = {
        "minReaderVersion": 1,
        "minWriterVersion": writer if type(writer) is int else 2,
    }
    _first_difference(file, "protocol.", _without_nulls(protocol), right)
    schema = read_schema(store.parquet_footer(manifest["parts"][0]["file"]))
    column, _ = layout.partition_values()
    _compare_delta_metadata(file, metadata, schema, column)
    added = [
        _Added(unquote(str(add.get("path"))), add, _stats_of(file, add))
        for add in actions.get("add", ())
    ]
    named = [
        _Named(each.file, each.fields.get("size"), each.stats.get("numRecords")) for each in added
    ]
    _compare_files(named, manifest)
    for each in added:
        _compare_added(file, each, store, layout)


def _compare_files(named: Iterable[_Named], manifest: Manifest) -> None:
    """Raise _DifferenceError unless a table names the parts of the run, with their sizes and rows,
    each once.
    """
    parts = Counter(_Named(part["file"], part["bytes"], part["rows"]) for part in manifest["parts"])
    there = Counter(named)
    texts = [_listed("lacks", parts - there), _listed("names", there - parts)]
    if any(texts):
        raise _DifferenceError(
            "", " and ".join(filter(None, texts)).replace(" and the table", " and")
        )


def _listed(verb: str, files: Counter[_Named]) -> str:
    if not files:
        return ""
    shown = [
        f"{str(each.file)[:100]} of {_rows(each.rows)}"
        for each in sorted(files, key=repr)[:_LISTED]
    ]
    return f"the table {verb} {', '.join(shown)}" + (", ..." if len(files) > _LISTED else "")


def _rows(count: Any) -> str:
    if type(count) is int:
        return several(count, "row")
    return f"{_shown(count)} rows"


def _without_nulls(fields: dict[str, Any], *without: str) -> dict[str, Any]:
    """Return the other fields of an action that are set: in a log of Delta Lake null is the same as
    none.
    """
    return {key: value for key, value in fields.items() if value is not None and key not in without}


def _compare_delta_metadata(
    file: str, metadata: dict[str, Any], schema: pa.Schema, column: str
) -> None:
    """Compare schema, partitions and configuration of a Delta table; its id and its time are its
    own.
    """
    said = _without_nulls(metadata, "id", "createdTime")
    for key, allowed in (("id", [str]), ("createdTime", [int, type(None)])):
        if type(metadata.get(key)) not in allowed:
            raise _DifferenceError(
                file, f"metaData.{key} is {_shown(metadata.get(key))}, which is none"
            )
    text = said.pop("schemaString", None)
    try:
        fields = read_json(str(text).encode())
    except ValueError as error:
        raise _DifferenceError(
            file, f"metaData.schemaString is no JSON ({one_line(error)})"
        ) from None
    right = {
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [column] if column else [],
    }
    _first_difference(file, "metaData.", said, right | {"configuration": {}})
    if isinstance(fields, dict) and fields.keys() == {"type", "fields"}:
        found = fields.get("fields")
    else:
        found = None
    if not isinstance(found, list) or not isinstance(fields, dict) or fields["type"] != "struct":
        raise _DifferenceError(file, "metaData.schemaString is no schema of columns")
    types: list[tuple[str, set[Any]]] = [
        (each.name, {_DELTA_TYPES.get(each.type)}) for each in schema
    ]
    types += [(column, {"long", "string"})] if column else []
    if len(found) != len(types) or not all(isinstance(each, dict) for each in found):
        raise _DifferenceError(
            file, f"metaData.schemaString has {len(found)} columns, and the parts have {len(types)}"
        )
    for given, (name, kinds) in zip(found, types, strict=True):
        kind = next((each for each in kinds if each == given.get("type")), min(kinds, key=str))
        expected = {"name": name, "type": kind, "nullable": True, "metadata": {}}
        _first_difference(file, "metaData.schemaString: ", given, expected)


class _Added(NamedTuple):
    """An action of a log of Delta Lake that adds a file."""

    file: str
    fields: dict[str, Any]
    stats: dict[str, Any]


def _stats_of(file: str, add: dict[str, Any]) -> dict[str, Any]:
    where = f"add of {_shown(add.get('path'))}: stats"
    try:
        stats = read_json(str(add.get("stats")).encode())
    except ValueError as error:
        raise _DifferenceError(file, f"{where} is no JSON ({one_line(error)})") from None
    if not isinstance(stats, dict):
        raise _DifferenceError(file, f"{where} is no object")
    return stats


def _compare_added(file: str, added: _Added, store: Store, layout: Layout) -> None:
    """Compare what a Delta table says of a part, beside its size and its rows, with its footer."""
    name = added.file
    column, values = layout.partition_values()
    folders = [f"{each}/" for each in layout.partitions]
    right = {"dataChange": True, "partitionValues": {}}
    if column:
        right["partitionValues"] = {column: values[folders.index(name[: name.rindex("/") + 1])]}
    said = _without_nulls(added.fields, "path", "size", "stats")
    if type(said.pop("modificationTime", None)) is not int:
        raise _DifferenceError(file, f"add of {name}: modificationTime is no time")
    _first_difference(file, f"add of {name}: ", said, right)
    where = f"add of {name}: stats."
    others = _without_nulls(added.stats, "numRecords", *_BOUNDS)
    _first_difference(file, where, others, {"tightBounds": True} if "tightBounds" in others else {})
    facts = _column_facts(store, name)
    for key in _BOUNDS:
        found = added.stats.get(key, _MISSING)
        if not isinstance(found, dict):
            raise _DifferenceError(
                file, f"{where}{key} is {_shown(found)}, and not one value per column"
            )
        # Also one that is left out: deltalake takes a bound without the other one for a file
        # without rows.
        for each in dict.fromkeys([*facts, *found]):
            if each not in facts:
                raise _DifferenceError(
                    file, f"{where}{key} names {_shown(each)}, which is no column of the part"
                )
            if not facts[each].fits(key, found.get(each)):
                value = _shown(found.get(each, _MISSING))
                expected = _shown(getattr(facts[each], key))
                raise _DifferenceError(
                    file, f"{where}{key}.{each} is {value}, and of the part it is {expected}"
                )


class _Facts(NamedTuple):
    """What the footer of a part says of a column; None for bounds that it does not have."""

    minValues: Any
    maxValues: Any
    nullCount: int | None
    kind: pa.DataType

    def fits(self, key: str, value: Any) -> bool:
        """Return whether a value of a log is the right one; a long text may be cut short, on the
        safe side.
        """
        right = getattr(self, key)
        if type(value) is bool or right is None:
            return value is None
        if isinstance(right, str):
            if not isinstance(value, str) or len(right) <= _SHORT:
                return bool(value == right)
            same = right.startswith(value[: _SHORT - 1])
            return same and (value <= right if key == "minValues" else value >= right)
        if not isinstance(value, int | float):
            return False
        if self.kind == pa.float32() and key != "nullCount":
            value = pa.scalar(value, pa.float32()).as_py()
        return bool(value == right)


def _column_facts(store: Store, name: str) -> dict[str, _Facts]:
    footer = store.parquet_footer(name)
    groups = read_chunks(footer, lambda _: True)
    return {
        field.name: _facts_of(
            [each for group in groups for each in group if each.name == field.name], field.type
        )
        for field in read_schema(footer)
    }


def _facts_of(chunks: list[Chunk], kind: pa.DataType) -> _Facts:
    """Return what is stated of a column whose every row group states it."""
    filled = [each for each in chunks if each.n_values > (each.n_nulls or 0)]
    minima = [decode_bound(each.minimum, kind) for each in filled if each.minimum is not None]
    maxima = [decode_bound(each.maximum, kind) for each in filled if each.maximum is not None]
    nulls = [each.n_nulls for each in chunks if each.n_nulls is not None]
    has_bounds = len(minima) == len(maxima) == len(filled) > 0
    return _Facts(
        minValues=min(minima) if has_bounds else None,
        maxValues=max(maxima) if has_bounds else None,
        nullCount=sum(nulls) if filled and len(nulls) == len(chunks) else None,
        kind=kind,
    )


# Apache Iceberg: metadata in JSON, which name a list of manifests, which name files; both are in
# Avro.


def compare_iceberg(
    store: Store, manifest: Manifest, *, make: Callable[[str], None], address: str
) -> None:
    """Compare an Iceberg table with one that its package makes of the same parts.

    ``make``: make the table in the folder of a URL, with absolute addresses of the parts.
    ``address``: of the folder that has the table. Raises _DifferenceError; and any error of the
    package.
    """
    with temporary_folder() as folder:
        url = f"file://{folder}"
        make(url)
        again = Store(type(store.path)(folder))
        found = _iceberg_files(
            lambda name: store.get(f"{ICEBERG_LOG}/{name}", _MAX_BYTES), f"{address}/_iceberg"
        )
        right = _iceberg_files(lambda name: again.get(f"metadata/{name}", _MAX_BYTES), url)
        for expected in right:
            # Only now: what is read next is named by what was found to be right.
            there = next(found)
            if there.named:
                _compare_files(
                    [
                        each._replace(file=each.file.removeprefix(f"{address}/"))
                        for each in there.named
                    ],
                    manifest,
                )
            _first_difference(there.file, there.what, there.fields, expected.fields)


_COUNTS = re.compile(r"\.summary\.|_count$")  # sums over the files, which are compared first
_TIME = re.compile(r"metadata-log\.\d+\.timestamp-ms")
_UUIDS = re.compile("table-uuid")


class _Described(NamedTuple):
    """Fields of a file of a log, by name, and the data files that it names, if it names any."""

    file: str
    what: str
    fields: dict[str, Any]
    named: list[_Named] | None = None


def _iceberg_files(read: Read, location: str) -> Iterator[_Described]:
    """Yield what the files of an Iceberg table say, one after another; what differs from table to
    table is replaced.
    """
    hint = read(HINT).decode("ascii", "replace").strip()
    if not _HINTED.fullmatch(hint):
        raise _DifferenceError(
            f"{ICEBERG_LOG}/{HINT}", f"it names {_shown(hint)}, which are no metadata"
        )
    name = f"{hint}.metadata.json"
    file = f"{ICEBERG_LOG}/{name}"
    metadata: Any = read_json(read(name))
    if not isinstance(metadata, dict):
        raise _DifferenceError(file, "they are no object")
    if metadata.get("location") != location:
        why = f"location is {_shown(metadata.get('location'))}, and the table is in {location}"
        raise _DifferenceError(
            file, f"{why}: if the folder was moved, delete _iceberg, and run finish again"
        )
    snapshot, changed = metadata.get("current-snapshot-id"), metadata.get("last-updated-ms")
    prefix = f"{location}/metadata/"

    def replaced(key: str, value: Any) -> Any:
        """Return a value without what each table has of its own: numbers, times and random names."""
        own = {str(snapshot): "the present snapshot", str(changed): "the time of the table"}
        if type(value) in (int, str) and str(value) in own:
            return f"{own[str(value)]} as {type(value).__name__}"
        if type(value) is int and _TIME.fullmatch(key) and value >= 0:
            return "a time"
        if isinstance(value, str) and _UUIDS.fullmatch(key) and re.fullmatch(_UUID, value):
            return "a UUID"
        if (
            isinstance(value, str)
            and value.startswith(prefix)
            and _ICEBERG_FILE.fullmatch(value[len(prefix) :])
        ):
            return "a file of the log"
        return value

    del metadata["location"]
    fields = {key: replaced(key, value) for key, value in _flat(metadata)}
    yield _Described(
        file, "", {key: value for key, value in fields.items() if not _COUNTS.search(key)}
    )
    (listing,) = (each["manifest-list"][len(prefix) :] for each in metadata["snapshots"])
    manifests: list[Any] = []
    for described in _avro(listing, read(listing), replaced, manifests):
        fields |= {f"{described.file}: {key}": value for key, value in described.fields.items()}
        listed = {key: value for key, value in described.fields.items() if not _COUNTS.search(key)}
        yield described._replace(fields=listed)
    for each in manifests:
        name = each["manifest_path"][len(prefix) :]
        data = read(name)
        if each["manifest_length"] != len(data):
            length = (
                f"manifest_length of {name} is "
                f"{_shown(each['manifest_length'])}, and it has {len(data)} bytes"
            )
            raise _DifferenceError(f"{ICEBERG_LOG}/{listing}", length)
        yield from _avro(name, data, replaced, [])
    counts = {
        key.replace(listing, "manifest list"): value
        for key, value in fields.items()
        if _COUNTS.search(key)
    }
    yield _Described(file, "", counts)


def _avro(
    name: str, data: bytes, replaced: Callable[[str, Any], Any], records: list[Any]
) -> Iterator[_Described]:
    """Yield the header of an Avro file, by which the rest is decoded, and its records, which are
    added to a list.
    """
    from pyiceberg.avro.file import AvroFile

    file = f"{ICEBERG_LOG}/{name}"
    with AvroFile(_InMemory(data)) as avro:  # type: ignore[arg-type, var-annotated]
        yield _Described(
            file, "header: ", {key: replaced(key, value) for key, value in avro.header.meta.items()}
        )
        records += [_plain(record, avro.schema.as_struct()) for record in avro]
        if avro.decoder.tell() != len(data):
            raise _DifferenceError(file, "it holds more than its records")
    named: dict[str, Any] = {}
    for number, each in enumerate(records):
        if "data_file" in each:
            path = each["data_file"]["file_path"]
        else:
            path = f"manifest {number}"
        if path in named:
            raise _DifferenceError(file, f"it names {_shown(path)} twice")
        named[path] = {key: value for key, value in each.items() if key != "manifest_length"}
    fields = {
        f"{path}: {key}": replaced(key, value)
        for path, each in named.items()
        for key, value in _flat(each)
    }
    entries = [each["data_file"] for each in records if "data_file" in each]
    files = [
        _Named(each["file_path"], each["file_size_in_bytes"], each["record_count"])
        for each in entries
    ]
    yield _Described(file, "", fields, files)


class _InMemory:
    """Bytes as a file of pyiceberg."""

    def __init__(self, data: bytes):
        self._data = data

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002
        return io.BytesIO(self._data)


def _plain(value: Any, kind: Any) -> Any:
    """Return a record of pyiceberg as dicts and lists."""
    if hasattr(value, "_data"):
        return {
            field.name: _plain(each, field.field_type)
            for field, each in zip(kind.fields, value._data, strict=True)
        }
    if isinstance(value, Mapping):
        return dict(value.items())
    return value


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in dicts and lists by their places, those that are empty, too."""
    inner: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if not inner or not len(value):
        yield at, value
        return
    for key, each in inner:
        yield from _flat(each, f"{at}.{key}" if at else str(key))
