"""Write one batch of results as one Parquet file, atomically, and check such a file.

The same batch gives the same bytes each time: the writer's options are fixed and nothing in the
file depends on time, worker or device.
"""

from __future__ import annotations

import io
import itertools
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse import __version__
from kepler_traverse.errors import KeplerError, OutputError
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.result_kinds import GROUP, ID_COLUMNS, ResultKind
from kepler_traverse.runtime.regular_files import read_json, size_and_digest

from .buffer_pool import BUFFERS
from .checksums import MASK, checksums_in
from .layout import Layout, part_name
from .manifest_types import FORMAT, Footer, PartEntry, PartSummary, checked
from .matrix_file import MatrixWriter, unfit_lists
from .part_reader import PartReader, open_part
from .row_groups import THIS_THREAD, Encoders, Encoding, RowGroupWriter
from .schemas import OUTPUT_SCHEMAS
from .store import HashedFile, Store

_BUFFER_BYTES = 2**20  # that are gathered before a write
BY_DISTANCE = ("distance", "source", "vertex")
FOOTER_KEY = b"kepler_traverse"
# metadata of the schema, which readers preserve
RESULT_KEY = b"kepler_traverse.result"
MEANS_KEY = b"kepler_traverse.means"


def part_exists(folder: Path, number: int) -> bool:
    """Whether a file of the part ``number`` is in a folder, or in a partition of it (NAME=VALUE).

    The kind of result does not matter: Parquet files and Arrow files count.
    """
    names = {part_name(number, result) for result in OUTPUT_SCHEMAS}
    return any((folder / name).exists() or any(folder.glob(f"*=*/{name}")) for name in names)


class NotWantedError(KeplerError):
    """The part was assigned to another worker in the meantime."""


def write_part(
    store: Store,
    number: int,
    layout: Layout,
    answers: Iterable[Answer],
    is_wanted: Callable[[], bool] = lambda: True,
    encoders: Encoders = THIS_THREAD,
) -> PartSummary | None:
    """Write the results of one batch to a part file.

    Parameters
    ----------
    store : Store
        Takes the file, once it is complete.
    number : int
        Number of the part.
    layout : Layout
        Name of the part, kind of result and order of the rows.
    answers : iterable of Answer
        Results in the order of the sources. About one row group of them is held in memory, and
        those that ``encoders`` encode; all of them if rows are sorted by distance.
    is_wanted : callable
        Called just before the store takes the file. If it returns False, the part was reassigned
        while this worker hung, and the file must not replace the other one.
    encoders : Encoders
        Encode the row groups, in this thread or in others.

    Returns
    -------
    PartSummary or None
        Without times and counts. None, and no file, if there are no results.

    Raises
    ------
    NotWantedError
        ``is_wanted`` has returned False.
    OSError
        The disk is full, or the folder is gone.
    """
    # No file is begun before there is a result.
    answers = iter(answers)
    first = next(answers, None)
    if first is None:
        return None
    answers = itertools.chain([first], answers)

    kind = layout.kind
    if layout.sort == "distance":
        # Sorted rows do not repeat the vertices of the source before, whose pages ``_open_writer``
        # would have kept by ``written_as``.
        kind = replace(kind, order=BY_DISTANCE, written_as="records")
        answers = _sort_rows(answers)

    name = layout.name(number)
    partial = store.path / f".part-{number:06d}.{uuid.uuid4().hex}.tmp"
    try:
        results = _PartResults(number, layout, answers)
        if kind.suffix == "arrow":
            digest = _write_matrix(partial, kind, results)
        else:
            digest = _write_rows(partial, kind, results, encoders)
        size = partial.stat().st_size
        if not is_wanted():
            raise NotWantedError(f"part {number} has been given to another worker")
        # ``stored`` says how an object store has taken the file, its version among others; None in
        # a folder.
        stored = store.move_in(partial, name)
    finally:
        partial.unlink(missing_ok=True)
    part: PartSummary = {
        "file": name,
        "rows": results.rows,
        "sha256": digest,
        "checksum": f"{sum(results.checksums) & MASK:016x}",
        "bytes": size,
    }
    if stored is None:
        return part
    return {**part, "stored": stored}


class Answer(NamedTuple):
    """Results of one source, or of several whose rows are in one table, one source after the other."""

    sources: list[Any]  # the user's ids
    # Number of rows of each source; one number, of all rows, where those of all sources are mixed.
    sizes: Sequence[int] | np.ndarray
    table: pa.Table  # the rows
    checksums: list[int]  # of the rows of each source

    @classmethod
    def of_one(cls, source: Any, table: pa.Table, checksum: int) -> Answer:
        """Return the results of one source."""
        return cls([source], [table.num_rows], table, [checksum])

    def by_source(self) -> Iterator[tuple[Any, pa.Table, int]]:
        """Yield id, table and checksum of each source. Not for results whose rows are mixed."""
        begin = 0
        for source, size, checksum in zip(self.sources, self.sizes, self.checksums, strict=True):
            yield source, self.table.slice(begin, size), checksum
            begin += size


def sort_by_distance(table: pa.Table) -> pa.Table:
    """Sort rows by distance, and equal ones by source and vertex; those without a distance come
    last.
    """
    return table.take(pc.sort_indices(table, [(name, "ascending") for name in BY_DISTANCE]))


def _sort_rows(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the results of all sources as one ``Answer``, whose rows are sorted by distance.

    Its ``sizes`` has one number, that of all rows: the rows of the sources are mixed, so that no
    row group can end with a source.
    """
    held = list(answers)
    rows = pa.concat_tables([answer.table for answer in held])
    table = sort_by_distance(expand_sources(rows))
    sources = [source for answer in held for source in answer.sources]
    checksums = [checksum for answer in held for checksum in answer.checksums]
    yield Answer(sources, [table.num_rows], table, checksums)


class _PartResults:
    """The results of the sources of a part, which can be iterated once.

    Iterating collects what the footer of the file says of them: sources, checksums and the number
    of rows. ``footer`` is complete after the last result.
    """

    def __init__(self, number: int, layout: Layout, answers: Iterable[Answer]):
        self._number = number
        self._layout = layout
        self._answers = answers
        self._sources: list[object] = []  # ids, in the order of the results
        self.checksums: list[int] = []  # of the rows of each source
        self.rows = 0  # of all sources so far

    def __iter__(self) -> Iterator[Answer]:
        """Yield the results, and note what the footer says of each."""
        for answer in self._answers:
            self._sources.extend(answer.sources)
            self.checksums.extend(answer.checksums)
            self.rows += answer.table.num_rows
            yield answer

    def footer(self) -> dict[bytes, str]:
        """Return the metadata of the file, which are a ``Footer`` in JSON."""
        footer = {
            "format": FORMAT,
            "version": __version__,
            "run": self._layout.run,
            "part": self._number,
            "result": self._layout.result,
            "rows": self.rows,
            "sources": self._sources,
            "checksums": [f"{checksum:016x}" for checksum in self.checksums],
        }
        return {FOOTER_KEY: json.dumps(footer)}


def _write_rows(partial: Path, kind: ResultKind, results: _PartResults, encoders: Encoders) -> str:
    """Write the results of a part to the new Parquet file ``partial``; return its SHA-256, in
    hexadecimal digits.
    """
    raw = HashedFile(partial, "xb")
    # Buffered by pyarrow, so that writer threads take the interpreter lock only a few times per
    # second.
    with (
        io.BufferedWriter(raw) as file,
        pa.output_stream(file, compression=None, buffer_size=_BUFFER_BYTES) as stream,
    ):
        writer: RowGroupWriter | None = None
        held: list[pa.Table] = []  # tables, or slices of them, that the next row group begins with
        n_held = 0  # number of rows in ``held``
        for answer in results:
            table = answer.table
            if writer is None:
                writer = _open_writer(stream, table.schema, kind, encoders)

            # A row group ends with the rows of the source that fills it, so that it does not depend
            # on how many sources a table has.
            ends = np.cumsum(answer.sizes)  # position in ``table`` where each source's rows end
            begin = 0  # position of the first row that is not yet held or written
            next_source = 0  # position of the source of that row
            while True:
                # Position of the source with whose rows the row group is full: the first one up to
                # whose end it has ``rows_per_group`` rows. Without one it is ``ends.size``.
                filling = int(np.searchsorted(ends, begin + writer.rows_per_group - n_held))
                if filling >= ends.size:
                    break
                held.append(table.slice(begin, ends[filling] - begin))
                _flush(writer, held)
                begin = int(ends[filling])
                next_source = filling + 1
                n_held = 0
            if next_source < ends.size:
                held.append(table.slice(begin))
                n_held += table.num_rows - begin

        assert writer is not None  # there is a result
        _flush(writer, held)
        writer.close(results.footer())
        stream.flush()
    return raw.digest.hexdigest()


def _write_matrix(partial: Path, kind: ResultKind, results: _PartResults) -> str:
    """Write the results of a part to the new Arrow file ``partial``, a list of distances per
    source; return its SHA-256, in hexadecimal digits.
    """
    writer: MatrixWriter | None = None  # made with the first result, whose metadata it takes
    try:
        for answer in results:
            table = answer.table
            if writer is None:
                metadata = {RESULT_KEY: kind.name, MEANS_KEY: kind.means}
                writer = MatrixWriter(partial, metadata | (table.schema.metadata or {}))
            writer.write(table)
        assert writer is not None  # there is a result
        return writer.close(results.footer())
    finally:
        if writer is not None:
            writer.abandon()  # without effect on a file that is complete


def expand_sources(table: pa.Table) -> pa.Table:
    """Return the table with the source column as plain ids, if it is a dictionary array, which has
    each id once and its position per row. Any other table is returned unchanged.
    """
    position = table.schema.get_field_index("source")  # -1 without one
    if position < 0 or not pa.types.is_dictionary(table["source"].type):
        return table
    chunks = table["source"].chunks
    id_type = table["source"].type.value_type
    if not pa.types.is_integer(id_type):
        decoded = [chunk.dictionary_decode() for chunk in chunks]
        return table.set_column(position, "source", pa.chunked_array(decoded, id_type))

    # Integers are expanded into memory of the pool. The system would have to clear new memory.
    values = BUFFERS.empty(table.num_rows, id_type.to_pandas_dtype())
    end = 0
    for chunk in chunks:
        begin = end
        end += len(chunk)
        if len(chunk.dictionary) == 1:
            values[begin:end] = chunk.dictionary[0].as_py()
        else:  # with ``mode="clip"`` NumPy writes to ``out`` directly; all indices are in range
            np.take(
                chunk.dictionary.to_numpy(),
                chunk.indices.to_numpy(),
                out=values[begin:end],
                mode="clip",
            )
    return table.set_column(position, "source", pa.array(values))


def _open_writer(
    file: Any, schema: pa.Schema, kind: ResultKind, encoders: Encoders
) -> RowGroupWriter:
    """Return a writer of rows with the columns of ``schema``, encoded as suits a kind of results.

    ``file``: an open stream of pyarrow. ``schema``: of the tables that are written. A column that
    is a dictionary array there has the type of its values in the file.
    """
    types = {}
    for field in schema:
        types[field.name] = field.type
        if pa.types.is_dictionary(field.type):  # it stands for its values
            types[field.name] = field.type.value_type
    schema = pa.schema(types.items()).with_metadata({RESULT_KEY: kind.name, MEANS_KEY: kind.means})

    # Sources and targets repeat, so they use a dictionary. Vertices ascend within a source, and
    # hops of vertices with close numbers differ by little, so they use differences. For road
    # networks this takes two thirds of the size of a dictionary, in half the time. Rows per vertex
    # (``written_as``) often have the same vertices as those of the source before, so that the
    # encoded pages of "vertex" are kept and reused (``repeated``).
    integers = [field.name for field in schema if pa.types.is_integer(field.type)]
    encoding = Encoding(
        options={
            "version": "2.6",
            "compression": "zstd",
            "compression_level": 1,
            "write_page_checksum": True,
        },
        dictionary=tuple(name for name in (GROUP, "source", "target") if name in schema.names),
        differences=tuple(name for name in ("vertex", "distance") if name in integers),
        repeated=("vertex",) if kind.written_as == "vertices" else (),
        order=kind.order,
    )
    return RowGroupWriter(file, schema, encoding, encoders)


def _flush(writer: RowGroupWriter, held: list[pa.Table]) -> None:
    """Write held tables as one row group, or several if they are large, and empty the list."""
    if held:
        writer.write(pa.concat_tables(held))
        held.clear()


def read_footer(file: PartReader) -> Footer:
    """Return the footer of a part; raise ValueError if this job has not written it."""
    metadata = file.metadata
    if FOOTER_KEY not in metadata:
        raise ValueError("it is no part of this job")
    footer = checked(read_json(metadata[FOOTER_KEY]), Footer)
    if len(footer["sources"]) != len(footer["checksums"]):
        raise ValueError(
            f"it has {len(footer['sources'])} sources and {len(footer['checksums'])} checksums"
        )
    return footer


def unfit_columns(schema: pa.Schema, kind: ResultKind, graph: Graph) -> str:
    """Describe how the schema of a part file differs from that of a kind of results; ``""`` if they
    agree.

    Compared are the metadata (name and meaning of the result), and names and types of the columns.
    ``graph`` gives the type of ids and the number of vertices.
    """
    # The metadata, then the names of the columns, then their types.
    stated = schema.metadata or {}
    for key, value in ((RESULT_KEY, kind.name), (MEANS_KEY, kind.means)):
        if stated.get(key) != value.encode():
            return (
                f"its schema has {key.decode()} {stated.get(key, b'')[:60]!r}, not {value[:60]!r}"
            )
    if not kind.fits(schema.names):
        further = " and those of the attributes" if kind.names_columns else ""
        return f"its columns are {', '.join(schema.names)}, not {', '.join(kind.columns)}{further}"
    for field in schema:
        if kind.written_as == "lists" and field.name == "distance":
            fault = unfit_lists(schema, graph.n_vertices)
            if fault:
                return fault
        elif not _has_right_type(field, graph):
            return f"its column {field.name!r} has type {field.type}"
    return ""


def _has_right_type(field: pa.Field, graph: Graph) -> bool:
    """Whether a column of ids, numbers or names has a type that this job writes.

    Names are those of groups, and of the sets of vertices of ``--result extremes``. Ids must have
    the type of the graph's ids; other columns are numbers of any type, except names.
    """
    is_text = pa.types.is_string(field.type)
    if field.name not in ID_COLUMNS:  # no ids of vertices
        is_float = pa.types.is_float32(field.type) or pa.types.is_float64(field.type)
        is_name = is_text and field.name in (GROUP, "set")
        return is_float or is_name or pa.types.is_integer(field.type)
    if graph.has_string_ids:
        return is_text or pa.types.is_large_string(field.type)
    ids: Any = graph.ids
    return bool(field.type == pa.from_numpy_dtype(ids.dtype))


def checked_part(
    folder: Path,
    number: int,
    layout: Layout,
    sources: list[Any],
    graph: Graph,
    known: PartEntry | None,
) -> PartSummary | None:
    """Return the summary of a part on disk if it is complete and correct, else None.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    number : int
        Number of the part.
    layout : Layout
        Name of the part, kind of result and fingerprint of the run.
    sources : list
        Ids that the part must hold, in this order.
    graph : Graph
        Graph of the run, to which ids of rows must belong.
    known : PartEntry or None
        Entry of the part in the manifest, which is returned unchanged if the file fits, so it must
        have been validated before. Without one all checksums are recomputed from the rows.

    Raises
    ------
    OutputError
        The file exists but cannot be read, or it is not a regular file.
    """
    name = layout.name(number)
    path = folder / name
    try:
        size, digest = size_and_digest(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(
            f"{path}: this part cannot be read: {error.strerror}; mend that, "
            "or delete it, and run again with --resume"
        ) from None
    if known is not None:
        # The file must have the bytes of the entry, and the entry the sources that are wanted now:
        # a part may lack sources that failed when it was written.
        is_whole = known["sha256"] == digest and known["sources"] == sources
        return known if is_whole else None

    expected = {
        "run": layout.run,
        "part": number,
        "result": layout.result,
        "sources": sources,
    }
    try:
        with open_part(path) as file:
            footer: dict[str, Any] = {**read_footer(file)}
            is_of_run = all(footer[key] == value for key, value in expected.items())
            if not is_of_run or unfit_columns(file.schema, layout.kind, graph):
                return None
            # No checksum of a source covers its predecessors. Reading the table still checks their
            # pages, each of which has a checksum of its own.
            columns = [name for name in file.schema.names if name != "predecessor"]
            checksums = checksums_in(file.tables(), graph, graph.to_numbers(sources), columns)
            rows = file.n_rows
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None  # unreadable or not written by this job: it is computed again

    texts = [f"{checksum:016x}" for checksum in checksums]
    if footer["rows"] != rows or footer["checksums"] != texts:
        return None
    return {
        "file": name,
        "rows": rows,
        "sha256": digest,
        "checksum": f"{sum(checksums) & MASK:016x}",
        "bytes": size,
    }
