"""Part files of ``--result matrix``: Arrow files of one record per source, with a list of its
distances to all vertices.

Readers map such a file into memory and take the distances without a copy and without decoding.
Integers have the narrowest type of at least 2 bytes that holds those of the part.
"""

from __future__ import annotations

import io
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kepler_traverse._arrays import MAX_INTEGER, UNREACHED, is_hops, to_host
from kepler_traverse.graph import Graph

from .schemas import ROWS_PER_PART
from .store import HashedFile

VERTICES = "_vertices.pq"
# metadata of the schema: the distance of unreached vertices
UNREACHED_KEY = b"kepler_traverse.unreached"


def unreached_in_file(counts_hops: bool, integers: bool, signed: bool) -> float:
    """Return the distance of unreached vertices in a file: -1 for hops and for sums of integers,
    ``2**63 - 1`` for sums of integers that may be negative, and ``inf`` for other weights.

    ``integers``: whether weights are integers; ``signed``: whether one is negative.
    """
    if counts_hops:
        return UNREACHED
    if not integers:
        return float("inf")
    if signed:
        return MAX_INTEGER
    return UNREACHED


def make_list(distance: np.ndarray, reached: np.ndarray, unreached: float) -> pa.FixedSizeListArray:
    """Return the distances of one source as an array of one list: floats in their own type, hops
    and sums of integers in the narrowest type.

    ``distance`` has shape (n_vertices,). ``reached``, bool, of the same shape, says which vertices
    are reached. ``unreached`` is the distance of the others in the file, as ``unreached_in_file``
    returns it; hops have it already. Hops are not copied if their type stays, so that the caller
    must not change them later.
    """
    if unreached == np.inf:
        distance = distance.copy()  # the array may belong to a plan
    elif is_hops(distance.dtype):
        distance = distance.astype(_narrowest(int(distance.max())), copy=False)
    else:
        # Sums of integers, as floats or int64. Unreached ones are set to 0 first, since a float
        # ``inf`` becomes no integer, and to ``unreached`` in the end. Where sums may be negative,
        # ``unreached`` is the largest int64, so that the type becomes int64, which holds all sums.
        sums = np.where(reached, distance, 0).astype(np.int64)
        largest = int(sums.max())
        if unreached == MAX_INTEGER:
            largest = MAX_INTEGER
        distance = np.where(reached, sums, np.int64(unreached)).astype(_narrowest(largest))
    return pa.FixedSizeListArray.from_arrays(pa.array(distance), distance.size)


def _narrowest(largest: int) -> np.dtype:
    """Return the narrowest type of integers, of 2 bytes or more, that holds a number."""
    dtypes = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))
    return next(dtype for dtype in dtypes if largest <= np.iinfo(dtype).max)


def unreached_of_schema(schema: pa.Schema) -> Any:
    """Return the distance of unreached vertices that a file states, in the type of its lists.

    Raises ValueError: it states none, or none of that type.
    """
    stated = (schema.metadata or {}).get(UNREACHED_KEY, b"").decode()
    kind = np.dtype(schema.field("distance").type.value_type.to_pandas_dtype())
    try:
        if kind.kind == "f":
            return kind.type(float(stated))
        return kind.type(int(stated))
    except (ValueError, OverflowError):
        raise ValueError(f"it states no distance of unreached vertices ({stated!r})") from None


def is_matrix(schema: pa.Schema) -> bool:
    """Whether the column of distances holds lists."""
    if "distance" not in schema.names:
        return False
    return pa.types.is_fixed_size_list(schema.field("distance").type)


def to_array(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of lists as an array of shape (records, list size), without a copy if the
    column is one chunk; several chunks are copied together. Raises ValueError: a distance is null.
    """
    lists = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if lists.null_count or lists.values.null_count:
        raise ValueError("a distance is null")
    distances = lists.flatten().to_numpy(zero_copy_only=False)
    return distances.reshape(len(lists), lists.type.list_size)


def cast_lists(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table whose lists of distances have the type that ``schema`` has for them.

    A table that has it already is returned unchanged. Raises pyarrow.ArrowInvalid: a distance does
    not fit that type.
    """
    kind = schema.field("distance").type
    if table.schema.field("distance").type == kind:
        return table
    position = table.schema.get_field_index("distance")
    flat = pa.array(to_array(table["distance"]).ravel()).cast(kind.value_type)
    lists = pa.FixedSizeListArray.from_arrays(flat, kind.list_size)
    return table.set_column(position, "distance", lists)


class MatrixWriter:
    """Writes an Arrow file, with about ``ROWS_PER_PART`` distances per record batch.

    Its lists have the widest type of a record. If a later record needs a wider type than the
    batches that are written, the file begins anew.

    ``path`` must not exist. ``metadata`` is that of the schema.
    """

    def __init__(self, path: Path, metadata: dict[Any, Any]):
        self._path = path
        self._metadata = metadata
        self._pending: list[pa.Table] = []  # records that are not written yet
        # The file (a ``HashedFile``), its buffer (a ``BufferedWriter``), and the writer of pyarrow;
        # None before the first batch.
        self._raw: Any = None
        self._file: Any = None
        self._writer: Any = None
        # of the file, with the widest type of lists so far; None before the first batch
        self._schema: pa.Schema | None = None

    def write(self, table: pa.Table) -> None:
        """Write the record of one source, a table of one row; it is held until a batch is full."""
        self._pending.append(table)
        size = table.schema.field("distance").type.list_size
        if len(self._pending) * size >= ROWS_PER_PART:
            self._flush()

    def close(self, metadata: dict[bytes, str]) -> str:
        """Write what is pending, and metadata of the file; return the SHA-256 of the file.

        The metadata are those of an empty last batch: when the schema is written, they are not
        known.
        """
        self._flush()
        assert self._schema is not None  # there was a record
        empty = pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in self._schema], schema=self._schema
        )
        self._writer.write_batch(empty, custom_metadata=metadata)
        self._end()
        return self._raw.digest.hexdigest()

    def _flush(self) -> None:
        """Write the pending records as one batch, in the widest type of lists so far."""
        tables = self._pending
        self._pending = []
        if not tables:
            return

        # The widest type among the pending records and those that are written.
        schemas = [table.schema for table in tables]
        if self._schema is not None:
            schemas.append(self._schema)
        list_types = [schema.field("distance").type for schema in schemas]
        widest = max(list_types, key=lambda list_type: list_type.value_type.bit_width)
        schema = self._schema
        if schema is None or widest != schema.field("distance").type:
            columns = [tables[0].schema.field("source"), pa.field("distance", widest)]
            schema = pa.schema(columns, self._metadata)
            self._begin(schema)
        self._put(pa.concat_tables([cast_lists(table, schema).cast(schema) for table in tables]))

    def _put(self, table: pa.Table) -> None:
        """Write a table as one batch."""
        (batch,) = table.combine_chunks().to_batches()
        self._writer.write_batch(batch)

    def _begin(self, schema: pa.Schema) -> None:
        """Begin the file with the type of lists that ``schema`` has; if there is a file already,
        write its batches anew, in this type.
        """
        # An Arrow file has one schema, so the earlier file is set aside, and copied at the end.
        earlier = None
        if self._writer is not None:
            self._end()
            # Its name matches ``run_folder.LEFT``, so that a later run deletes it if this process
            # dies.
            earlier = self._path.with_name(f"{self._path.stem}{uuid.uuid4().hex}.tmp")
            os.replace(self._path, earlier)

        self._schema = schema
        self._raw = HashedFile(self._path, "xb")
        self._file = io.BufferedWriter(self._raw)
        self._writer = pa.ipc.new_file(self._file, schema)

        if earlier is not None:
            with pa.OSFile(str(earlier)) as source:
                reader = pa.ipc.open_file(source)
                for i in range(reader.num_record_batches):
                    table = pa.Table.from_batches([reader.get_batch(i)])
                    self._put(cast_lists(table, schema).cast(schema))
            earlier.unlink()

    def _end(self) -> None:
        """Complete the present file, and close it; ``_raw`` keeps its digest."""
        self._writer.close()
        self._file.close()
        self._writer = None

    def abandon(self) -> None:
        """Close the file after an error; do nothing if none was begun, or if it is complete."""
        if self._file is not None:
            self._file.close()


def metadata_and_rows(file: pa.ipc.RecordBatchFileReader) -> tuple[dict[bytes, bytes], list[int]]:
    """Return the metadata that ``MatrixWriter.close`` has written with the last batch, and the
    number of rows of each batch, which is 0 for that last one. A file without batches has neither.
    """
    rows: list[int] = []
    metadata: dict[bytes, bytes] = {}
    for i in range(file.num_record_batches):
        batch, of_batch = file.get_batch_with_custom_metadata(i)
        rows.append(batch.num_rows)
        metadata = dict(of_batch or {})  # those of the last batch remain
    return metadata, rows


def unfit_lists(schema: pa.Schema, n_vertices: int) -> str:
    """Describe what is wrong with the type of the column of distances; ``""`` if nothing is.

    It must have lists of ``n_vertices`` numbers.
    """
    kind = schema.field("distance").type
    if not is_matrix(schema) or kind.list_size != n_vertices:
        return f"its column 'distance' has type {kind}, not lists of {n_vertices}"
    value = kind.value_type
    if value not in (pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()):
        return f"its column 'distance' has lists of {value}"
    return ""


def vertices_table(graph: Graph) -> pa.Table:
    """Return the ids of all vertices, in the order of the lists."""
    ids: Any = graph.ids
    if not graph.has_string_ids:
        ids = pa.array(to_host(ids))
    return pa.table({"vertex": ids})
