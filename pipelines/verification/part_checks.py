"""Verification of part files: the contents of each file, and certificates for its distances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse._arrays import NO_PREDECESSOR, namespace, unreached_value
from kepler_traverse.certificate import certify, certify_many
from kepler_traverse.errors import UnknownVertexError, one_line
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.question import Question
from kepler_traverse.runtime.regular_files import size_and_digest
from kepler_traverse.search import results
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.exact import narrow_distances

from ..output.checksums import MASK
from ..output.layout import Layout, part_number
from ..output.manifest_types import Footer, PartEntry
from ..output.matrix_file import is_matrix
from ..output.part_file import read_footer, sort_by_distance, unfit_columns
from ..output.part_reader import PartReader, open_part
from ..output.schemas import ROWS_PER_GROUP

MAX_FAULTS = 100  # faults that are listed one by one; more are only counted
BATCH_BYTES = 2**28  # bytes of distances that are collected and then certified together


@dataclass(frozen=True)
class Fault:
    """One fault of a part file."""

    kind: str  # a few words, such as "missing part" or "wrong result"
    file: str  # name of the file
    message: str  # what is wrong, with the place in the file


@dataclass
class Findings:
    """The number of sources and rows that were checked, and the faults."""

    faults: list[Fault] = field(default_factory=list)  # the first ``MAX_FAULTS``
    unlisted: int = 0  # number of further faults
    sources: int = 0  # number of sources of the parts that could be read
    rows: int = 0  # number of rows of the same parts
    # number of sources whose results are right, by how that was found, such as "certified"
    proven: Counter[str] = field(default_factory=Counter[str])

    def add(self, kind: str, file: str, message: str) -> None:
        """Add a fault. Beyond the first ``MAX_FAULTS`` it is only counted."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(kind, file, message))
        else:
            self.unlisted += 1

    def as_dict(self) -> dict[str, Any]:
        """Return the findings as ``--json`` prints them; ``valid`` says that there is no fault."""
        return asdict(self) | {"proven": dict(self.proven), "valid": not self.faults}


def can_certify(graph: Graph, question: Question) -> bool:
    """Return whether part files have all distances that certificates need: those of each vertex
    that a path to a row's vertex may lead through.
    """
    # With negative weights a path within the limit may lead through vertices beyond it, which part
    # files leave out.
    is_cut = (
        question.limit is not None and question.algorithm == "sssp" and graph.has_negative_weights
    )
    # Where unreached vertices have rows, too, these have no distance.
    is_whole = question.targets is None and question.options.unreached == "omit" and not is_cut
    return is_whole and question.kind.is_distances


class Prover:
    """Certifies the distances of sources: with predecessors one by one, without them several at
    once.

    ``question`` is that of the run whose parts are verified. Sources whose certificate
    holds are counted in ``findings``, and others added to it as faults.

    Attributes
    ----------
    most_rows : int
        Maximum number of rows of one source.
    limit : number or None
        The limit of all searches, or the largest if each source has its own; None without one.
        ``limit_of`` returns that of one source.
    column_dtype, dtype : numpy.dtype
        Types of distances in files, and while they are collected.
    unreached : number
        Value of an unreached vertex in the type in which distances are collected.
    """

    def __init__(self, graph: Graph, question: Question, findings: Findings) -> None:
        self.graph = graph
        self._findings = findings
        self.most_rows = graph.n_vertices
        self.limit = question.limit
        self._limits = question.limits  # of each source; None if ``limit`` is that of all
        self.algorithm = question.algorithm
        self.result_kind = question.kind
        self.column_dtype = ALGORITHMS[self.algorithm].result_dtype(graph)
        # Integer distances are collected as int64 and certified in the type of the search that
        # found them.
        self._are_integers = self.algorithm == "sssp" and graph.returns_integers
        self.dtype = self.column_dtype
        if self._are_integers:
            self.dtype = np.dtype(np.int64)
        self.unreached = unreached_value(self.dtype)
        # Sources without predecessors wait until so many are certified together.
        source_bytes = max(1, graph.n_vertices * self.dtype.itemsize)
        # One pass over the edges certifies 64 sources at most.
        self._max_waiting = max(1, min(64, BATCH_BYTES // source_bytes))
        self._waiting: list[tuple[str, results.Traversal]] = []  # (file name, one source)

    def limit_of(self, source: int) -> Any:
        """Return the largest distance that is searched from a source, by its vertex number; None
        without a limit.
        """
        if self._limits is None:
            return self.limit
        return self._limits.of([source])[0]

    def verify(self, file: str, traversal: results.Traversal) -> None:
        """Certify the rows of one source, as a traversal with arrays over all vertices, now or
        together with the next ones. ``file`` is the name of its file, for faults.
        """
        if traversal.predecessor is None:
            self._waiting.append((file, traversal))
            if len(self._waiting) == self._max_waiting:
                self.finalize()
            return
        on_device = replace(
            traversal,
            distance=self._to_device(traversal.distance),
            predecessor=namespace(self.graph.offsets).asarray(traversal.predecessor),
        )
        self._conclude(file, traversal, certify(self.graph, on_device).failures, "certified")

    def finalize(self) -> None:
        """Certify the sources that wait, all at once; do nothing if none waits. This must be called
        after the last source of a run, too.
        """
        waiting = self._waiting
        self._waiting = []
        if not waiting:
            return
        distances = self._to_device(np.array([traversal.distance for _, traversal in waiting]))
        sources = np.array([traversal.source for _, traversal in waiting])
        limits: Any = self.limit
        if self._limits is not None:
            limits = self._limits.of(sources)
        how = "certified without predecessors"
        if certify_many(self.graph, sources, distances, limits).valid:
            self._findings.proven[how] += len(waiting)
            return

        # The group failed as a whole: certify each source alone, to report which are wrong.
        for i, (file, traversal) in enumerate(waiting):
            certificate = certify_many(
                self.graph, sources[i : i + 1], distances[i : i + 1], traversal.limit
            )
            self._conclude(file, traversal, certificate.failures, how)

    def _to_device(self, distance: np.ndarray) -> Any:
        """Return distances on the graph's device, in the type in which they are certified."""
        if self._are_integers:
            distance = narrow_distances(self.graph, distance)
        return namespace(self.graph.offsets).asarray(distance)

    def _conclude(
        self, file: str, traversal: results.Traversal, failures: dict[str, str], how: str
    ) -> None:
        """Count the source of a traversal as proven, or add its failures as a fault.

        ``failures`` has a text for each rule of the certificate that is violated. ``how`` says how
        the source was certified.
        """
        if not failures:
            self._findings.proven[how] += 1
            return
        text = "; ".join(f"{rule}: {why}" for rule, why in failures.items())
        self._findings.add("wrong result", file, f"source {self.name(traversal.source)}: {text}")

    def name(self, number: int) -> str:
        """Return the user's id of a vertex, by its number, as text."""
        return str(self.graph.ids_at(namespace(self.graph.offsets).asarray([int(number)]))[0])


class Part:
    """One part file, which is read source by source and passed to a prover.

    The rows must be of the ``result_kind`` of the prover, and a source has ``most_rows`` at most.

    Parameters
    ----------
    path : Path
        The file.
    entry : PartEntry
        What the manifest says of the file: its digest, sources and numbers.
    layout : Layout
        What the footers of all parts of the run state, and how rows are sorted.
    prover : Prover
        Verifies the rows of each source.
    findings : Findings
        Receives the faults.
    """

    def __init__(
        self, path: Path, entry: PartEntry, layout: Layout, prover: Prover, findings: Findings
    ) -> None:
        self._path = path
        self._entry = entry
        self._layout = layout
        self._number = part_number(entry["file"]) or 0  # that the footer must state
        self._prover = prover
        self._findings = findings
        self._graph = prover.graph
        self._has_false_statistics = False  # whether that fault was found already

    def check(self) -> None:
        """Check the file, and add its faults and numbers of sources and rows to the findings."""
        entry = self._entry
        findings = self._findings
        try:
            size, digest = size_and_digest(self._path)
        except FileNotFoundError:
            self._add("missing part", "the file does not exist")
            return
        except OSError as error:
            self._add("damaged part", f"it cannot be read ({error.strerror})")
            return
        # A changed file is read all the same, to say what changed.
        if digest != entry["sha256"] or size != entry["bytes"]:
            self._add("changed part", "its bytes are not those that the manifest names")

        # A damaged file may raise any of the errors below, wherever it is read.
        try:
            with open_part(self._path) as file:
                footer = self._check_footer(file)
                if footer is None:
                    return
                # How metadata, or names or types of columns, differ from those of the kind.
                fault = unfit_columns(file.schema, self._prover.result_kind, self._graph)
                fault = fault or self._unfit_distances(file.schema)
                if fault:
                    self._add("columns", fault)
                    return
                numbers = self._source_numbers(footer)
                checksums = []
                if numbers is not None:
                    checksums = self._check_rows(file, footer, numbers)
                rows = file.n_rows
        except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
            self._add("damaged part", f"it cannot be read ({one_line(error)})")
            return

        # What the file says in total, beside its footer and the manifest.
        findings.sources += len(footer["sources"])
        findings.rows += rows
        if rows != footer["rows"] or rows != entry["rows"]:
            self._add(
                "rows",
                (
                    f"it holds {rows} rows, its footer says {footer['rows']} "
                    f"and the manifest {entry['rows']}"
                ),
            )
        # The checksum of a part is the sum of those of its sources, modulo 2^64.
        if f"{sum(checksums) & MASK:016x}" != entry["checksum"]:
            self._add("checksum", "the checksum of its rows is not the one in the manifest")

    def _add(self, kind: str, message: str) -> None:
        """Add a fault of this file to the findings."""
        self._findings.add(kind, self._path.name, message)

    def _check_footer(self, file: PartReader) -> Footer | None:
        """Check the footer of the file, where its writer has stated run, part and sources. Add its
        faults, and return it; None if the rows cannot be checked by it.
        """
        try:
            footer = read_footer(file)
        except ValueError as error:
            self._add("damaged part", f"its footer is not that of a part of this job ({error})")
            return None
        run = footer["run"]
        number = footer["part"]
        if run != self._layout.run:
            self._add(
                "another run",
                f"it was written by another run ({str(run)[:16]}, not {self._layout.run[:16]})",
            )
        if number != self._number:
            self._add("another run", f"it was written as part {number}")
        # Rows of another result have other columns, so that nothing more can be checked.
        if footer["result"] != self._layout.result:
            self._add(
                "another result",
                (
                    f"it was written as {footer['result']!r}, and the run is "
                    f"for {self._prover.result_kind.name!r}"
                ),
            )
            return None
        if footer["sources"] != self._entry["sources"]:
            self._add("sources", "its sources are not those that the manifest names")
        return footer

    def _unfit_distances(self, schema: pa.Schema) -> str:
        """Describe what is wrong with the type of the column of distances; return ``""`` if nothing
        is. ``schema``: that of the file, which has such a column.
        """
        kind = schema.field("distance").type
        if kind == pa.from_numpy_dtype(self._prover.column_dtype):
            return ""
        return f"its column 'distance' has type {kind}"

    def _source_numbers(self, footer: Footer) -> list[int] | None:
        """Return the vertex numbers of the sources that a footer names. If one is no vertex or is
        named twice, add a fault and return None.
        """
        try:
            numbers = self._graph.to_numbers(footer["sources"]).tolist()
        except UnknownVertexError as error:
            self._add("sources", f"its footer: {error}")
            return None
        if len(set(numbers)) != len(numbers):
            self._add("sources", "its footer names a source twice")
            return None
        return numbers

    def _check_rows(self, file: PartReader, footer: Footer, numbers: list[int]) -> list[int]:
        """Check all rows, and have the prover verify each source. Return the checksums of the
        sources, computed from the rows.

        ``numbers`` are the vertex numbers of the sources that the footer names, in its order, which
        is that of the rows. Checking ends at rows that are out of order.
        """
        stated = dict(zip(numbers, footer["checksums"], strict=True))  # checksum by source
        checksums: list[int] = []
        expected_sources = iter(numbers)
        for source, pieces in self._iter_sources(self._tables(file, footer)):
            if source not in stated:
                self._add(
                    "sources",
                    f"it holds rows of {self._prover.name(source)}, which is no source of it",
                )
                continue

            # Rows are in the order of the sources; sources that are skipped here have no rows. If
            # none of the rest is this one, it came earlier.
            for expected in expected_sources:
                if expected == source:
                    break
                self._add(
                    "rows",
                    (
                        f"source {self._prover.name(expected)} has no rows, "
                        "and its own is always there"
                    ),
                )
            else:
                self._add(
                    "order",
                    f"the rows of source {self._prover.name(source)} stand apart or out of order",
                )
                return checksums

            traversal = self._make_traversal(source, pieces)
            checksums.append(results.checksum(traversal))
            self._check_checksum(self._prover.name(source), checksums[-1], stated[source])
            # A closed vertex, through which no path leads, has two numbers; rows have one of them.
            if self._graph.closed is not None:
                move_to_path_ends(self._graph, traversal, self._prover.unreached)
            # Certified now, or later together with others; a fault gets the name of the file.
            self._prover.verify(self._path.name, traversal)
        for expected in expected_sources:
            self._add(
                "rows",
                f"source {self._prover.name(expected)} has no rows, and its own is always there",
            )
        return checksums

    def _check_checksum(self, name: object, checksum: int, stated: str) -> None:
        """Add a fault unless the checksum of a source's rows is the one that the footer states.
        ``name`` is the id of the source.
        """
        if f"{checksum:016x}" != stated:
            self._add(
                "checksum", f"source {name}: the checksum of its rows is not the one in the footer"
            )

    def _tables(self, file: PartReader, footer: Footer) -> Iterator[pa.Table]:
        """Yield the rows of the file in one table or several, such that those of each source follow
        each other, in the order of the sources.
        """
        if self._layout.sort == "source":
            yield from self._row_groups(file)
            return

        # Rows that are sorted by distance are all read, checked, and sorted by source.
        sources = footer["sources"]
        if file.n_rows > len(sources) * self._prover.most_rows:
            raise ValueError(f"it has {file.n_rows} rows, more than {len(sources)} sources have")
        # a part without rows has no row group
        empty = file.schema.empty_table().replace_schema_metadata(None)
        rows = pa.concat_tables([empty, *self._row_groups(file)])
        if not sort_by_distance(rows).equals(rows):
            self._add("order", "its rows are not sorted by distance, source and vertex")
        # sorted by the position of the source in the footer, and by vertex
        position = pc.index_in(rows["source"], value_set=pa.array(sources, rows["source"].type))
        keys = [(name, "ascending") for name in ("position", "vertex")]
        yield rows.take(pc.sort_indices(rows.append_column("position", position), keys))

    def _row_groups(self, file: PartReader) -> Iterator[pa.Table]:
        """Yield the row groups of the file as tables, whose values are checked to fit their types.
        If what the file states of a group, such as a minimum, is false, add a fault.

        ValueError: a group has more rows than this job writes, and might not fit in memory.
        """
        for group, n_rows in enumerate(file.group_rows):
            # The job fills a group with the rows of whole sources, and splits it only where it has
            # twice the rows of one.
            if n_rows > 2 * ROWS_PER_GROUP + self._prover.most_rows:
                raise ValueError(f"row group {group} has {n_rows} rows, more than this job writes")
            table = file.read(group)
            table.validate(full=True)
            fault = file.describe_false_statement(group, table)
            if fault and not self._has_false_statistics:  # rows may be read twice
                self._has_false_statistics = True
                self._add("statistics", f"row group {group}: {fault}")
            if not is_matrix(table.schema):  # whose lists are read by the metadata
                table = table.replace_schema_metadata(None)
            yield table

    def _iter_sources(self, tables: Iterator[pa.Table]) -> Iterator[tuple[int, list[list[Any]]]]:
        """Yield each source, by its vertex number, with its rows as a list of pieces.

        The rows of a source follow each other in ``tables``, but may be in several. A piece is the
        part in one table: a list of NumPy arrays of vertex numbers, distances and, if the kind has
        them, predecessors.
        """
        current: int | None = None
        pieces: list[list[Any]] = []
        for table in tables:
            source = self._numbers(table["source"])
            vertex = self._numbers(table["vertex"])
            if table["distance"].null_count:
                raise ValueError("a distance is null")
            columns = [vertex, table["distance"].to_numpy()]
            if self._prover.result_kind.has_predecessors:
                columns.append(self._numbers(table["predecessor"]))

            # A source may begin in one table and end in a later one.
            # ``starts`` has the rows whose source is not that of the row before; 0 is the first.
            starts = np.flatnonzero(np.diff(source, prepend=-1))
            for begin, end in zip(starts, [*starts[1:], len(source)], strict=True):
                if source[begin] != current and current is not None:
                    yield current, pieces
                    pieces = []
                current = int(source[begin])
                pieces.append([column[begin:end] for column in columns])
        if current is not None:
            yield current, pieces

    def _numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the vertex numbers of a column of ids; raise ValueError for null, or for an id
        that is no vertex.
        """
        if column.null_count:
            raise ValueError("an id is null")
        return self._graph.to_numbers(
            column if self._graph.has_string_ids else column.to_numpy(), "id"
        )

    def _make_traversal(self, source: int, pieces: list[list[Any]]) -> results.Traversal:
        """Return the rows of one source, by its vertex number, as a traversal with arrays over all
        vertices. A vertex without a row is unreached. Add a fault if vertices do not ascend.

        ``pieces`` are those that ``_iter_sources`` yields: lists of arrays of vertex numbers,
        distances and, if the kind has them, predecessors.
        """
        prover = self._prover
        n = self._graph.n_vertices
        distance = np.full(n, prover.unreached, prover.dtype)
        predecessor = None
        if prover.result_kind.has_predecessors:
            predecessor = np.full(n, NO_PREDECESSOR, self._graph.targets.dtype)

        # ``last``: vertex number of the row before a piece, -1 before the first piece. A row is
        # wrong if its vertex number is not larger than that of the row before.
        last = -1
        for vertices, distances, *predecessors in pieces:
            is_wrong = np.diff(vertices, prepend=last) <= 0
            if is_wrong.any():
                vertex = vertices[int(is_wrong.argmax())]
                what = "stands out of order"
                if (vertices == vertex).sum() > 1 or vertex == last:
                    what = "is there twice"
                self._add(
                    "rows", f"source {prover.name(source)}: vertex {prover.name(vertex)} {what}"
                )
            last = vertices[-1]
            distance[vertices] = distances
            if predecessor is not None:
                predecessor[vertices] = predecessors[0]
        return results.Traversal(
            algorithm=prover.algorithm,
            source=source,
            distance=distance,
            predecessor=predecessor,
            limit=prover.limit_of(source),
            strategy="",
            rounds=0,
        )


def move_to_path_ends(graph: Graph, traversal: results.Traversal, unreached: Any) -> None:
    """Move distances and predecessors of closed vertices from the numbers of their ids to the
    numbers at which paths end, as a search has them. Arrays are changed in place.

    A closed vertex, through which no path leads, has two numbers. Its edges leave the first, which
    only a source reaches: itself. Its edges enter the second. ``unreached`` is the distance of an
    unreached vertex.
    """
    closed: Any = graph.closed
    first, second = closed  # both numbers of each closed vertex
    source = traversal.source
    # each array with its value of unreached vertices, and that of the source
    arrays: list[tuple[Any, Any, Any]] = [(traversal.distance, unreached, 0)]
    if traversal.predecessor is not None:
        arrays.append((traversal.predecessor, NO_PREDECESSOR, source))
    for values, missing, of_source in arrays:
        values[second] = values[first]
        values[first] = missing
        if source in first:  # any other source has a row of its own, which is to be checked
            values[source] = of_source
