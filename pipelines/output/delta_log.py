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
_UNCUT_LENGTH = 32  # characters of a text that no format cuts short in its statistics


def compare_delta(store: Store, manifest: Manifest) -> None:
    """Raise DifferenceError at the first difference of a Delta table from the parts of a run.

    ``store`` has the table and the parts, and ``manifest`` lists the parts. Raises OSError or
    ValueError: the table cannot be read.
    """
    layout = read_layout(manifest)
    actions = _read_actions(store)
    (protocol,) = actions["protocol"]
    (metadata,) = actions["metaData"]

    # Readers go by ``minReaderVersion`` alone, so any version of a writer is right: the one that is
    # stated is expected.
    writer_version = protocol.get("minWriterVersion")
    if type(writer_version) is not int:
        writer_version = 2
    expected = {"minReaderVersion": 1, "minWriterVersion": writer_version}
    refuse_difference(_FILE, "protocol.", _without_nulls(protocol), expected)

    schema = read_schema(store.parquet_footer(manifest["parts"][0]["file"]))
    column, _ = layout.partition_values()
    _compare_metadata(metadata, schema, column)

    # The names of files are compared first, so that no footer is read of a file that is no part.
    added = [
        _AddedFile(unquote(str(add.get("path"))), add, _read_stats(add))
        for add in actions.get("add", ())
    ]
    named = [
        NamedFile(file.name, file.fields.get("size"), file.stats.get("numRecords"))
        for file in added
    ]
    compare_files(named, manifest)
    for file in added:
        _compare_fields(file, layout)
        _compare_stats(file, stats_by_column(store, file.name))


def _read_actions(store: Store) -> dict[str, list[Any]]:
    """Return the fields of the actions of the log by their kinds.

    An action is a line of JSON, an object with its kind as the only key. Of ``protocol`` and
    ``metaData`` there is one each; else DifferenceError is raised, as for other kinds.
    """
    actions: dict[str, list[Any]] = {}
    lines = filter(bytes.strip, store.get(_FILE, MAX_BYTES).splitlines())
    for number, line in enumerate(lines, 1):
        try:
            action: Any = read_json(line)
            ((kind, fields),) = action.items()  # ValueError unless there is one key
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


def _without_nulls(fields: dict[str, Any], *excluded: str) -> dict[str, Any]:
    """Return the fields of an action that are set, but for those of the excluded keys: in a log of
    Delta Lake a null field is the same as none.
    """
    return {
        key: value for key, value in fields.items() if value is not None and key not in excluded
    }


def _compare_metadata(metadata: dict[str, Any], schema: pa.Schema, column: str) -> None:
    """Compare schema, partitions and configuration of a Delta table with those of the parts.

    Its id and its time are its own, so only their types are compared. ``metadata``: the fields of
    the action. ``schema``: of the parts. ``column``: name of the column of the partitions, ``""``
    if there are none.
    """
    for key, allowed in (("id", [str]), ("createdTime", [int, type(None)])):
        if type(metadata.get(key)) not in allowed:
            why = f"metaData.{key} is {shown(metadata.get(key))}, which is none"
            raise DifferenceError(_FILE, why)
    stated = _without_nulls(metadata, "id", "createdTime")
    columns = _read_columns(stated.pop("schemaString", None))
    expected = {
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [column] if column else [],
        "configuration": {},
    }
    refuse_difference(_FILE, "metaData.", stated, expected)
    _compare_columns(columns, schema, column)


def _read_columns(text: Any) -> Any:
    """Return the columns of the schema of a Delta table, which is JSON in ``text``: what it has as
    "fields", a list in a right schema, but of any type in a damaged one.

    None if the JSON is no schema. Raises DifferenceError: the text is no JSON.
    """
    try:
        fields = read_json(str(text).encode())
    except ValueError as error:
        why = f"metaData.schemaString is no JSON ({one_line(error)})"
        raise DifferenceError(_FILE, why) from None
    if isinstance(fields, dict) and fields.keys() == {"type", "fields"}:
        return fields["fields"] if fields["type"] == "struct" else None
    return None


def _compare_columns(columns: Any, schema: pa.Schema, partition: str) -> None:
    """Compare the columns of a Delta table with those of the parts, and of their partitions.

    ``columns``: what the log has of the columns, of whatever type. ``partition``: name of the
    column of the partitions, ``""`` if there are none.
    """
    if not isinstance(columns, list):
        raise DifferenceError(_FILE, "metaData.schemaString is no schema of columns")

    allowed: list[tuple[str, list[Any]]] = [
        (field.name, [_DELTA_TYPES.get(field.type)]) for field in schema
    ]
    if partition:
        allowed.append((partition, ["long", "string"]))  # as its values are
    if len(columns) != len(allowed) or not all(isinstance(column, dict) for column in columns):
        why = f"metaData.schemaString has {len(columns)} columns, and the parts have {len(allowed)}"
        raise DifferenceError(_FILE, why)

    for column, (name, types) in zip(columns, allowed, strict=True):
        # ``right``: the type that is expected. Any allowed one is, if the log states it; else the
        # first one, for the message.
        right = types[0]
        if column.get("type") in types:
            right = column["type"]
        expected = {"name": name, "type": right, "nullable": True, "metadata": {}}
        refuse_difference(_FILE, "metaData.schemaString: ", column, expected)


class _AddedFile(NamedTuple):
    """An action of a log of Delta Lake that adds a file."""

    name: str  # of the file in the folder of the run, without the escapes of its address
    fields: dict[str, Any]  # all fields of the action
    stats: dict[str, Any]  # the statistics of the file, which the action has as JSON


def _read_stats(add: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics of a file from ``add``, the fields of the action that adds it, where
    they are JSON in a text.

    Raises DifferenceError: they are no object of JSON.
    """
    where = f"add of {shown(add.get('path'))}: stats"
    try:
        stats = read_json(str(add.get("stats")).encode())
    except ValueError as error:
        raise DifferenceError(_FILE, f"{where} is no JSON ({one_line(error)})") from None
    if not isinstance(stats, dict):
        raise DifferenceError(_FILE, f"{where} is no object")
    return stats


def _compare_fields(added: _AddedFile, layout: Layout) -> None:
    """Compare what a Delta table says of a part, except its name, size and statistics.

    The value of the partition must be that of the part's folder.
    """
    column, values = layout.partition_values()
    expected = {"dataChange": True, "partitionValues": {}}
    if column:
        folder = added.name.rpartition("/")[0]
        expected["partitionValues"] = {column: values[list(layout.partitions).index(folder)]}

    stated = _without_nulls(added.fields, "path", "size", "stats")
    if type(stated.pop("modificationTime", None)) is not int:
        raise DifferenceError(_FILE, f"add of {added.name}: modificationTime is no time")
    refuse_difference(_FILE, f"add of {added.name}: ", stated, expected)


def _compare_stats(added: _AddedFile, columns: dict[str, _ColumnStats]) -> None:
    """Compare the statistics of a part in the log, except its number of rows, with those in its
    footer. ``columns``: the latter, by the name of the column.
    """
    where = f"add of {added.name}: stats."
    # what is neither the number of rows nor one of the three statistics per column
    others = _without_nulls(added.stats, "numRecords", *_BOUNDS)
    expected = {}
    if "tightBounds" in others:  # it may be left out
        expected["tightBounds"] = True
    refuse_difference(_FILE, where, others, expected)

    for key in _BOUNDS:
        values = added.stats.get(key, MISSING)
        if not isinstance(values, dict):
            why = f"{where}{key} is {shown(values)}, and not one value per column"
            raise DifferenceError(_FILE, why)
        # A column that is left out is compared, too: deltalake takes a bound without the other one
        # for a file without rows.
        for name in dict.fromkeys([*columns, *values]):
            if name not in columns:
                why = f"{where}{key} names {shown(name)}, which is no column of the part"
                raise DifferenceError(_FILE, why)
            if not columns[name].fits(key, values.get(name)):
                value = shown(values.get(name, MISSING))
                right = shown(getattr(columns[name], key))
                why = f"{where}{key}.{name} is {value}, and of the part it is {right}"
                raise DifferenceError(_FILE, why)


class _ColumnStats(NamedTuple):
    """What the footer of a part says of a column; None for bounds that it does not have."""

    # The fields have the names that Delta Lake has for these statistics.
    minValues: Any  # the smallest value
    maxValues: Any  # the largest value
    nullCount: int | None  # None if a chunk does not state it, or if no chunk has a value
    kind: pa.DataType  # of the column

    def fits(self, key: str, value: Any) -> bool:
        """Return whether a log may state ``value`` as the statistic ``key`` of this column.

        ``key`` is the name of one of the first three fields. ``value`` is None if the log does not
        state it. Numbers must be equal. A long text may be cut short in a log. Then a smallest
        value may be less than the right one, and a largest value greater.
        """
        right = getattr(self, key)
        # What the footer does not have, the log may not state. A bool never fits: True would equal
        # 1 below.
        if type(value) is bool or right is None:
            return value is None

        if isinstance(right, str):
            if not isinstance(value, str) or len(right) <= _UNCUT_LENGTH:
                return bool(value == right)
            # The last character may be another one: a cut largest value ends with a higher one.
            begins_alike = right.startswith(value[: _UNCUT_LENGTH - 1])
            is_safe = value <= right if key == "minValues" else value >= right
            return begins_alike and is_safe

        if not isinstance(value, int | float):
            return False
        if self.kind == pa.float32() and key != "nullCount":  # JSON has more digits than float32
            value = pa.scalar(value, pa.float32()).as_py()
        return bool(value == right)


def stats_by_column(store: Store, name: str) -> dict[str, _ColumnStats]:
    """Return the statistics in the footer of a part, by the name of the column."""
    footer = store.parquet_footer(name)
    chunks: dict[str, list[Chunk]] = {}
    for group in read_chunks(footer, lambda _: True):  # of all columns
        for chunk in group:
            chunks.setdefault(chunk.name, []).append(chunk)
    return {
        field.name: _merge_stats(chunks.get(field.name, []), field.type)
        for field in read_schema(footer)
    }


def _merge_stats(chunks: list[Chunk], kind: pa.DataType) -> _ColumnStats:
    """Return the statistics of a column from those of its chunks, one per row group.

    A count of nulls that not every chunk states is None, and so are bounds that not every chunk
    with values states. All are None if no chunk has a value. ``kind``: type of the column.
    """
    # Chunks with a value that is not null, of which alone bounds are expected. A chunk that does
    # not state its nulls counts as having values.
    filled = [chunk for chunk in chunks if chunk.n_values > (chunk.n_nulls or 0)]
    minima = [decode_bound(chunk.minimum, kind) for chunk in filled if chunk.minimum is not None]
    maxima = [decode_bound(chunk.maximum, kind) for chunk in filled if chunk.maximum is not None]
    nulls = [chunk.n_nulls for chunk in chunks if chunk.n_nulls is not None]
    has_bounds = len(minima) == len(maxima) == len(filled) > 0  # and one chunk at least
    return _ColumnStats(
        minValues=min(minima) if has_bounds else None,
        maxValues=max(maxima) if has_bounds else None,
        nullCount=sum(nulls) if filled and len(nulls) == len(chunks) else None,
        kind=kind,
    )
