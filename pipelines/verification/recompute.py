"""Verification of part files without distances: traverse again, certify, build the same rows, and
compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kepler_traverse.errors import CertificateError, NegativeCycleError
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.question import Question

from ..output.checksums import checksums_in
from ..output.manifest_types import Footer
from ..output.matrix_file import UNREACHED_KEY, cast_lists, is_matrix
from ..output.part_file import expand_sources
from ..output.part_reader import PartReader
from ..output.schemas import SOURCES_PER_PART
from ..worker.batch_context import BatchContext
from ..worker.label_plan import prove_labels
from ..worker.planning import Request, plan_for
from ..worker.traversal_worker import traverser_for
from .part_checks import Findings, Part


class Retraversal:
    """Computes the results of a run again, with certificates. To a part it is what a ``Prover`` is.

    ``question`` and ``batch_size``, the number of sources per part, are those of the run. The
    attribute ``most_rows`` is the maximum number of rows of one source.
    """

    def __init__(self, graph: Graph, question: Question, batch_size: int, findings: Findings):
        self.graph = graph
        self.result_kind = question.kind
        self._findings = findings
        # The question of the run, but with a certificate for each search. Hub labels are proved as
        # a whole instead, here.
        at_once = min(batch_size, SOURCES_PER_PART)  # sources that are searched together
        request = Request(**(vars(question) | {"certify": "all"}), at_once=at_once)
        if self.result_kind.of_labels:
            prove_labels(graph, request)
        self._traverser = traverser_for(graph, plan_for(graph, request), request)
        self.most_rows = max(
            graph.n_vertices, self.result_kind.size(question, graph.n_vertices).most
        )
        if self.result_kind.adds_up:  # a row per edge, vertex or pair, in the name of one source
            n_pairs = 0 if question.pairs is None else question.pairs.rows.size
            self.most_rows = max(self.most_rows, graph.n_edges, n_pairs)

    def answer_part(self, part: int, numbers: list[int]) -> Iterator[tuple[Any, pa.Table, int]]:
        """Compute the results of the sources of a part, by their vertex numbers, and yield (source
        id, table of its rows, checksum of these) for each, in order, as the job writes them.

        Raises CertificateError: the repeated traversal failed, so the part file cannot be verified.
        """
        context = BatchContext()
        for answer in self._traverser.answer_batch(part, numbers, context):
            for source, table, checksum in answer.by_source():
                yield source, expand_sources(table), checksum
        if context.failed:
            raise CertificateError(
                f"{len(context.failed)} sources could not be traversed "
                f"again: {context.failed[0][1]}"
            )

    def finalize(self) -> None:
        """Do nothing. A ``Prover`` certifies here the sources that wait; none waits here."""


class RecomputedPart(Part):
    """One part file, which is compared with recomputed results; its prover is a ``Retraversal``."""

    _prover: Retraversal  # type: ignore[assignment]

    def _unfit_distances(self, schema: pa.Schema) -> str:  # noqa: ARG002
        """Return ``""`` (nothing is wrong), and ignore ``schema``: types are compared later, with
        those of the recomputed rows.
        """
        return ""

    def _check_rows(self, file: PartReader, footer: Footer, numbers: list[int]) -> list[int]:
        """Compare all rows with recomputed ones, and add differences as faults. Return the
        checksums of the sources, computed from the rows of the file.

        ``footer``: of the file. ``numbers``: vertex numbers of the sources, in the order of the
        footer.
        """
        # checksums cover all columns but this one
        covered = [name for name in file.schema.names if name != "predecessor"]
        checksums = checksums_in(self._row_groups(file), self._graph, np.array(numbers), covered)
        try:
            self._compare(_Rows(self._tables(file, footer)), numbers, footer)
        except NegativeCycleError as error:
            self._add("wrong result", str(error))
        return checksums

    def _compare(self, rows: _Rows, numbers: list[int], footer: Footer) -> None:
        """Compare the rows of a part with recomputed ones, source by source up to the first
        difference, which is added as a fault. Count the sources as proven if there is none.

        ``numbers`` are the vertex numbers of the sources.
        """
        answers = self._prover.answer_part(self._number, numbers)
        n_proven = 0
        for (name, expected, checksum), stated in zip(answers, footer["checksums"], strict=True):
            written = rows.take(expected.num_rows)
            # A source of a matrix is a list of distances. Its type, and the number that stands for
            # unreached, may differ between parts: both are compared by what the part states.
            if written.num_rows and is_matrix(written.schema) and is_matrix(expected.schema):
                unreached = _stated_unreached(written)
                right = _stated_unreached(expected)
                if unreached != right:
                    self._add(
                        "wrong result",
                        f"its unreached vertices are at {unreached!r}, not {right!r}",
                    )
                    return
                # the widest type of the part is that of all of its records
                expected = cast_lists(expected, written.schema)

            difference = _difference(written, expected)
            if difference:
                self._add(
                    "wrong result",
                    f"source {name}: {difference}; the rows after it are not compared",
                )
                return
            self._check_checksum(name, checksum, stated)
            n_proven += 1
        if rows.take(1).num_rows:
            self._add("rows", "there are rows after those of its last source")
            return
        how = "traversed again"
        if self._prover.result_kind.of_labels:
            how = "equal to labels that are proved"
        self._findings.proven[how] += n_proven


def _stated_unreached(table: pa.Table) -> str:
    """Return the distance of unreached vertices that a table of lists states in its metadata, as
    text; ``""`` if it states none.
    """
    return table.schema.metadata.get(UNREACHED_KEY, b"").decode()


class _Rows:
    """The rows of several tables, read in order, some at a time."""

    def __init__(self, tables: Iterator[pa.Table]):
        self._tables = tables
        # rows that are read and not taken; None before the first table
        self._held: pa.Table | None = None

    def take(self, count: int) -> pa.Table:
        """Return the next ``count`` rows, in one table; fewer at the end of the last table, and a
        table without columns if there was no table.
        """
        while self._held is None or self._held.num_rows < count:
            table = next(self._tables, None)
            if table is None:
                break
            if self._held is not None:
                table = pa.concat_tables([self._held, table])
            self._held = table
        if self._held is None:
            return pa.table({})
        rows = self._held.slice(0, count)
        self._held = self._held.slice(count)
        return rows


def _difference(written: pa.Table, expected: pa.Table) -> str:
    """Describe the first difference between the rows of one source and the expected ones. Return
    ``""`` if they are equal bit for bit.
    """
    if written.num_rows != expected.num_rows:
        return f"it has {written.num_rows} rows, not {expected.num_rows}"
    if not written.num_rows:  # without rows there may be no columns
        return ""
    if written.schema.names != expected.schema.names:
        return (
            f"its columns are {', '.join(written.schema.names)}, not "
            f"{', '.join(expected.schema.names)}"
        )
    if written.schema.types != expected.schema.types:
        types = ", ".join(f"{field.name} {field.type}" for field in expected.schema)
        return f"its columns are not of the types {types}"

    for name in expected.schema.names:
        if written[name].equals(expected[name]):
            continue
        pairs = zip(written[name].to_pylist(), expected[name].to_pylist(), strict=True)
        for row, (value, right) in enumerate(pairs):
            if value != right:
                return f"{name} of row {row} is {value!r}, not {right!r}"
    return ""
