"""The log of a Delta table, compared with the parts: one commit, whose lines are JSON."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from kepler_traverse.errors import one_line
from kepler_traverse.formats.parquet_footer import (
    Chunk,
    decode_bound,
    read_chunks,
    read_schema,
)
from kepler_traverse.runtime.regular_files import read_json

from .layout import Layout
from .manifest_types import Manifest
from .run_folder import read_layout
from .store import Store
from .table_logs import (
    DELTA_COMMIT,
    DELTA_LOG,
    MAX_BYTES,
    MISSING,
    DifferenceError,
    NamedFile,
    compare_files,
    refuse_difference,
    shown,
)

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
_FILE = f"{DELTA_LOG}/{DELTA_COMMIT}"
_ACTIONS = {"commitInfo", "protocol", "metaData", "add"}
_BOUNDS = ("minValues", "maxValues", "nullCount")
_SHORT = 32  # characters of a text that no format cuts short


def compare_delta(store: Store, manifest: Manifest) -> None:
    """Compare a Delta table with the parts of a run. Raises DifferenceError; OSError, ValueError:
    it cannot be read.
    """
    layout = read_layout(manifest)
    actions = _read_actions(store)
    (protocol,) = actions["protocol"]
    (metadata,) = actions["metaData"]
    writer = protocol.get("minWriterVersion")
    right: dict[str, Any] = {
        "minReaderVersion": 1,
        "minWriterVersion": writer if type(writer) is int else 2,
    }
    refuse_difference(_FILE, "protocol.", _without_nulls(protocol), right)
    schema = read_schema(store.parquet_footer(manifest["parts"][0]["file"]))
    column, _ = layout.partition_values()
    _compare_metadata(metadata, schema, column)
    added = [
        _Added(unquote(str(add.get("path"))), add, _read_stats(add))
        for add in actions.get("add", ())
    ]
    named = [
        NamedFile(each.file, each.fields.get("size"), each.stats.get("numRecords"))
        for each in added
    ]
    compare_files(named, manifest)
    for each in added:
        _compare_fields(each, layout)
        _compare_stats(each, column_facts(store, each.file))


def _read_actions(store: Store) -> dict[str, list[Any]]:
    """Return the actions of the log by their kinds; of two kinds there is one each."""
    actions: dict[str, list[Any]] = {}
    lines = filter(bytes.strip, store.get(_FILE, MAX_BYTES).splitlines())
    for number, line in enumerate(lines, 1):
        try:
            action: Any = read_json(line)
            ((kind, fields),) = action.items()
            if not isinstance(fields, dict):
                raise ValueError(f"{kind!r} is no object")
        except (ValueError, AttributeError) as error:
            why = f"line {number} is no action of a log ({one_line(error)})"
            raise DifferenceError(_FILE, why) from None
        if kind not in _ACTIONS:
            why = f"it has an action {shown(kind)}, which finish does not write"
            raise DifferenceError(_FILE, why)
        actions.setdefault(kind, []).append(fields)
    for kind in ("protocol", "metaData"):
        count = len(actions.get(kind, ()))
        if count != 1:
            why = f"it has {count} actions {kind!r}, and a table has one"
            raise DifferenceError(_FILE, why)
    return actions


def _without_nulls(fields: dict[str, Any], *without: str) -> dict[str, Any]:
    """Return the other fields of an action that are set: in a log of Delta Lake null is the same as
    none.
    """
    return {key: value for key, value in fields.items() if value is not None and key not in without}


def _compare_metadata(metadata: dict[str, Any], schema: pa.Schema, column: str) -> None:
    """Compare schema, partitions and configuration of a Delta table; its id and its time are its
    own. ``column``: that of the partitions, ``""`` if there are none.
    """
    for key, allowed in (("id", [str]), ("createdTime", [int, type(None)])):
        if type(metadata.get(key)) not in allowed:
            why = f"metaData.{key} is {shown(metadata.get(key))}, which is none"
            raise DifferenceError(_FILE, why)
    said = _without_nulls(metadata, "id", "createdTime")
    columns = _read_columns(said.pop("schemaString", None))
    right = {
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [column] if column else [],
        "configuration": {},
    }
    refuse_difference(_FILE, "metaData.", said, right)
    _compare_columns(columns, schema, column)


def _read_columns(text: Any) -> Any:
    """Return the columns of a schema in JSON; None if the text is JSON and no schema."""
    try:
        fields = read_json(str(text).encode())
    except ValueError as error:
        why = f"metaData.schemaString is no JSON ({one_line(error)})"
        raise DifferenceError(_FILE, why) from None
    if isinstance(fields, dict) and fields.keys() == {"type", "fields"}:
        return fields["fields"] if fields["type"] == "struct" else None
    return None


def _compare_columns(columns: Any, schema: pa.Schema, partition: str) -> None:
    """Compare the columns of a Delta table with those of the parts, and of their partitions."""
    if not isinstance(columns, list):
        raise DifferenceError(_FILE, "metaData.schemaString is no schema of columns")
    types: list[tuple[str, set[Any]]] = [
        (each.name, {_DELTA_TYPES.get(each.type)}) for each in schema
    ]
    if partition:
        types.append((partition, {"long", "string"}))
    if len(columns) != len(types) or not all(isinstance(each, dict) for each in columns):
        why = f"metaData.schemaString has {len(columns)} columns, and the parts have {len(types)}"
        raise DifferenceError(_FILE, why)
    for given, (name, allowed) in zip(columns, types, strict=True):
        kind = next((each for each in allowed if each == given.get("type")), min(allowed, key=str))
        expected = {"name": name, "type": kind, "nullable": True, "metadata": {}}
        refuse_difference(_FILE, "metaData.schemaString: ", given, expected)


class _Added(NamedTuple):
    """An action of a log of Delta Lake that adds a file."""

    file: str
    fields: dict[str, Any]
    stats: dict[str, Any]


def _read_stats(add: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics that an action has of its file, as JSON."""
    where = f"add of {shown(add.get('path'))}: stats"
    try:
        stats = read_json(str(add.get("stats")).encode())
    except ValueError as error:
        raise DifferenceError(_FILE, f"{where} is no JSON ({one_line(error)})") from None
    if not isinstance(stats, dict):
        raise DifferenceError(_FILE, f"{where} is no object")
    return stats


def _compare_fields(added: _Added, layout: Layout) -> None:
    """Compare what a Delta table says of a part, beside its size and its statistics."""
    name = added.file
    column, values = layout.partition_values()
    right = {"dataChange": True, "partitionValues": {}}
    if column:
        folders = [f"{each}/" for each in layout.partitions]
        right["partitionValues"] = {column: values[folders.index(name[: name.rindex("/") + 1])]}
    said = _without_nulls(added.fields, "path", "size", "stats")
    if type(said.pop("modificationTime", None)) is not int:
        raise DifferenceError(_FILE, f"add of {name}: modificationTime is no time")
    refuse_difference(_FILE, f"add of {name}: ", said, right)


def _compare_stats(added: _Added, facts: dict[str, _Facts]) -> None:
    """Compare the statistics of a part, beside its number of rows, with those of its footer."""
    where = f"add of {added.file}: stats."
    others = _without_nulls(added.stats, "numRecords", *_BOUNDS)
    right = {"tightBounds": True} if "tightBounds" in others else {}
    refuse_difference(_FILE, where, others, right)
    for key in _BOUNDS:
        found = added.stats.get(key, MISSING)
        if not isinstance(found, dict):
            why = f"{where}{key} is {shown(found)}, and not one value per column"
            raise DifferenceError(_FILE, why)
        # Also one that is left out: deltalake takes a bound without the other one for a file
        # without rows.
        for column in dict.fromkeys([*facts, *found]):
            if column not in facts:
                why = f"{where}{key} names {shown(column)}, which is no column of the part"
                raise DifferenceError(_FILE, why)
            if not facts[column].fits(key, found.get(column)):
                value = shown(found.get(column, MISSING))
                expected = shown(getattr(facts[column], key))
                why = f"{where}{key}.{column} is {value}, and of the part it is {expected}"
                raise DifferenceError(_FILE, why)


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


def column_facts(store: Store, name: str) -> dict[str, _Facts]:
    """Return what the footer of a part says of its columns, by their names."""
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
