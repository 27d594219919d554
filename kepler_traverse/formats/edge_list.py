"""What every reader takes and gives back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import pyarrow
from ..errors import EdgeListError, InputError, option_text
from ..runtime.scratch import Scratch
from .files import DataFile, Where, shown
from .where import RowFilter, row_filter

ID_TYPES = (
    "auto",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "string",
)

# names of the options that name a column each
END_OPTIONS = ("src_column", "dst_column")
COLUMN_OPTIONS = (*END_OPTIONS, "weight_column", "oneway_column", "reverse_weight_column")

BYTES_PER_VERTEX = 16  # its id and its offset, the least that a graph needs


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user wants of an edge list. The fields have the meaning of the arguments of
    ``read_graph`` with the same names.

    Options that contradict each other are refused here, before a file is opened.
    """

    # src_column, dst_column, weight_column, oneway_column: names of columns, None where none is
    # named; in a file without header ``"0"`` is the first
    src_column: str | None = None
    dst_column: str | None = None
    weight_column: str | None = None
    # True: there must be a weight. False: none is read. None: one is read if it is named or found.
    weighted: bool | None = None
    header: str = "auto"  # whether the first line holds names: {"auto", "yes", "no"}
    delimiter: str | None = None  # of text; None: it is detected
    id_type: str = "auto"  # one of ``ID_TYPES``
    device: str = "cpu"  # where the columns shall be: {"cpu", "cuda"}
    oneway_column: str | None = None  # the column that says in which directions rows are edges
    # the column of weights of rows from dst to src; with it weights may close an edge
    reverse_weight_column: str | None = None
    where: Any = None  # the filter of rows: text, an expression of pyarrow, or None
    scratch: Scratch | None = None  # where columns are put as they are read; None: in memory
    may_be_empty: bool = False  # whether no row at all is fine, as there are vertices

    def __post_init__(self) -> None:
        # Each option by itself.
        if self.id_type not in ID_TYPES:
            raise InputError(
                f"{option_text('id_type')} {self.id_type!r} is none of "
                f"{', '.join(map(repr, ID_TYPES))}"
            )
        if self.header not in ("auto", "yes", "no"):
            raise InputError(
                f"{option_text('header')} {self.header!r} is none of 'auto', 'yes', 'no'"
            )
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\n\r"'):
            name = option_text("delimiter")
            raise InputError(
                f"{name} {self.delimiter!r} must be one character, not a quote or an end of line"
            )
        if self.delimiter is not None and not self.delimiter.isascii():
            raise InputError(
                f"{option_text('delimiter')} {self.delimiter!r} must be an ASCII character"
            )

        # Options that belong together.
        _ = self.row_filter  # raises InputError for a text that is no condition
        if (self.src_column is None) != (self.dst_column is None):
            options = f"{option_text('src_column')} and {option_text('dst_column')}"
            raise InputError(f"{options} go together: name both or neither")
        if self.weighted is False and self.weight_column is not None:
            options = f"{option_text('weight_column')} and {option_text('weighted', False)}"
            raise InputError(f"{options} contradict each other; take one of the two")
        self._check_two_weights()
        self._check_distinct_columns()

    def _check_distinct_columns(self) -> None:
        """Raise InputError if two options name the same column."""
        columns = {name: getattr(self, name) for name in COLUMN_OPTIONS}
        columns = {name: column for name, column in columns.items() if column is not None}
        if len(set(columns.values())) < len(columns):
            texts = ", ".join(map(option_text, columns))
            values = ", ".join(map(repr, columns.values()))
            raise InputError(f"{texts} must differ, not {values}")

    def _check_two_weights(self) -> None:
        """Raise InputError for a second weight per row beside directions of rows, or if no weight
        shall be read.
        """
        if self.reverse_weight_column is None:
            return
        second = option_text("reverse_weight_column")
        if self.oneway_column is not None:
            raise InputError(
                f"{second} says by itself which rows are edges in both directions; leave "
                f"{option_text('oneway_column')} out"
            )
        if self.weighted is False:
            raise InputError(
                f"{second} and {option_text('weighted', False)} contradict each other; take one "
                "of the two"
            )

    @property
    def closes(self) -> bool:
        """Whether a weight that is null, NaN, infinite or below 0 closes its direction of a row.

        That needs two weights per row. With one weight per row, null, NaN and infinity are errors,
        and a number below 0 is a weight. Rows that are no edges are then left out by ``where``.
        """
        return self.reverse_weight_column is not None

    @property
    def row_filter(self) -> RowFilter | None:
        """The filter of ``where``; None without one."""
        if self.where is None:
            return None
        return row_filter(self.where)

    @property
    def names_columns(self) -> bool:
        """Whether it is known which columns the filter reads, as of a text or without a filter, but
        not of an expression of pyarrow.
        """
        return self.row_filter is None or self.row_filter.columns is not None

    def new_chunks(self) -> Any:
        """Return an empty object that collects the chunks of one column by ``+=`` and yields them
        again: a list, or a ``ColumnFile`` if there is scratch space.
        """
        from .columns import ColumnFile

        if self.scratch is None:
            return []
        return ColumnFile(self.scratch.folder)

    @property
    def reads_more(self) -> bool:
        """Whether a filter, directions or second weights are read, which readers on a GPU and in
        files do not do.
        """
        return self.where is not None or self.oneway_column is not None or self.closes


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Names of the columns that hold the edges, as the file has them; None for one that is not
    read.
    """

    src: str
    dst: str
    weight: str | None = None  # from src to dst, or in both directions
    reverse_weight: str | None = None  # from dst to src
    durations: tuple[str, ...] = ()  # roles of weights that are durations, where columns have types
    unused: tuple[str, ...] = ()  # columns of the file that are not read
    unused_numbers: tuple[str, ...] = ()  # those of ``unused`` that are known to hold numbers
    # columns that have the name of a weight and hold dates or times; empty if a weight is read, or
    # if an option says whether there are weights
    unused_dates: tuple[str, ...] = ()
    oneway: str | None = None  # the column of directions
    filters: tuple[str, ...] = ()  # columns that the filter reads, or may read
    where: str = ""  # the filter as text, ``""`` without one
    first_through: int = 1  # where the format says so: no path leads through a vertex below it

    @property
    def selection_names(self) -> list[str]:
        """Names of the columns of the directions and of the filter, each once."""
        names = list(self.filters)
        if self.oneway is not None:
            names.insert(0, self.oneway)
        return list(dict.fromkeys(names))

    @property
    def read_names(self) -> list[str]:
        """Names of all columns that are read, each once."""
        return list(dict.fromkeys([*self.roles.values(), *self.selection_names]))

    @property
    def roles(self) -> dict[str, str]:
        """Maps the roles "src" and "dst", and "weight" and "reverse_weight" if such a column is
        read, to the names of their columns.
        """
        roles = {"src": self.src, "dst": self.dst}
        weights = {"weight": self.weight, "reverse_weight": self.reverse_weight}
        return roles | {role: name for role, name in weights.items() if name is not None}

    def agree_with(self, first: EdgeColumns, file: DataFile, first_file: DataFile) -> None:
        """Raise EdgeListError unless the edges of ``file`` are in the same columns and units as the
        edges of ``first_file``. This object has the columns of ``file``, and ``first`` has those of
        ``first_file``.
        """
        if self.roles != first.roles:
            raise EdgeListError(
                f"{file}: the edges are in {self} here, but in {first} in {first_file}; files read together must have "
                f"the same columns; name them with {option_text('src_column')}, {option_text('dst_column')} and "
                f"{option_text('weight_column')}, or rename them",
                column="weight" if (self.src, self.dst) == (first.src, first.dst) else "src",
            )
        # Roles of weights that are durations in one of both files and numbers in the other file.
        differing = set(self.durations) ^ set(first.durations)
        if differing:
            role = min(differing)
            in_seconds = file
            in_numbers = first_file
            if role in first.durations:
                in_seconds = first_file
                in_numbers = file
            raise EdgeListError(
                f"{in_seconds}: column {shown(self.roles[role])} holds durations, which are read in seconds, and "
                f"numbers in {in_numbers}; files read together must have one unit: cast the column in one of them",
                column=role,
            )

    def __str__(self) -> str:
        if self.weight is None:
            weight = "without a weight"
        else:
            weight = f"with the weight {shown(self.weight)}"
        return f"{shown(self.src)} and {shown(self.dst)} {weight}"


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeList:
    """Edges as read, before any rule about duplicates or loops."""

    # columns ``src, dst[, weight[, reverse_weight]]`` without nulls: ids are integers or strings,
    # weights integers or floats. It is a table of pyarrow, a frame of cuDF, or a dict of arrays.
    table: Any
    columns: EdgeColumns  # what the columns are called in the files
    # names of the files in the order read, and rows of each, those that a filter leaves out
    # included
    rows: tuple[tuple[str, int], ...]
    # number of vertices where the format says that they are consecutive integers; None elsewhere
    n_vertices: int | None = None
    first_vertex: int = 1  # the smallest of these integers: 1 in files, 0 in matrices
    # int64 numbers over all files of the rows in ``table``, ascending; None: all rows are in it
    row_numbers: np.ndarray | None = None
    # int8 array, of the rows in ``table``: 1 for an edge from src to dst, 0 for one both ways, -1
    # for one from dst to src; and codes of letters, until ``selection.settle_letters`` replaces
    # them. None: all are edges from src to dst, or as the graph is.
    directions: np.ndarray | None = None
    # the folder of the files that hold the columns, and later the graph; None: all is in memory
    scratch: Scratch | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all files, those that a filter leaves out included."""
        return sum(rows for _, rows in self.rows)

    def place(self, row: int) -> tuple[str, int]:
        """Return the name of the file that holds a row, and the number of the row in that file,
        from 0. ``row`` counts over all files. IndexError if there is no such row.
        """
        for name, rows in self.rows:
            if row < rows:
                return name, row
            row -= rows
        raise IndexError(row)


def refuse_absurd_size(file: DataFile, n_vertices: int) -> None:
    """Raise EdgeListError if a header, or the shape of a matrix, claims more vertices than the
    memory of this machine could number. Nothing has been allocated for them yet.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # For the message: a matrix in memory has no file system, and so no header.
    if n_vertices * BYTES_PER_VERTEX > memory:
        raise EdgeListError(
            f"{file}: {'its header claims' if file.filesystem else 'it has'} {n_vertices} vertices, and to number so many "
            f"takes {n_vertices * BYTES_PER_VERTEX} bytes, which this machine does not have ({memory}); "
            f"{'is the header damaged?' if file.filesystem else 'give its edges as src, dst and weight'}"
        )


class NoRowsError(EdgeListError):
    """A file holds no edges. Among several files that are read together, a file without edges is
    no error if another file has edges, as many programs write parts without rows.
    """

    # the columns that the file has for edges; None if they are not known
    columns: EdgeColumns | None = None


def no_rows(
    file: DataFile,
    columns: EdgeColumns | None = None,
    problem: str = "the file holds no edges (0 rows)",
) -> NoRowsError:
    """Return the error for a file without a single edge, which says ``problem`` of it. ``columns``
    are those that the file has for edges, None if that is not known.
    """
    error = NoRowsError(f"{file}: {problem}")
    error.columns = columns
    return error


def no_edges(name: str, columns: EdgeColumns | None = None) -> EdgeList:
    """Return the edges of a file or table without rows, whose columns have the type null, as their
    types are not known.

    ``name`` is the name of the file or table, and ``columns`` its columns. None: they are not
    known, and ``src`` and ``dst`` of the result have the name ``""``.
    """
    columns = columns or EdgeColumns(src="", dst="")
    empty_column = pyarrow.chunked_array([], pyarrow.null())
    return EdgeList(
        table=pyarrow.table(dict.fromkeys(columns.roles, empty_column)),
        columns=columns,
        rows=((name, 0),),
        # empty rather than None where a filter or directions would have been read
        row_numbers=np.zeros(0, np.int64) if columns.where else None,
        directions=None if columns.oneway is None else np.zeros(0, np.int8),
    )


def read_each(
    files: list[DataFile],
    options: ReadOptions,
    read_one: Callable[[DataFile, ReadOptions], EdgeList],
) -> EdgeList:
    """Read files one after another, by ``read_one``, and return the edges of all.

    All files that have rows must have the same columns. ``read_one`` raises NoRowsError for a file
    without rows; it is raised again if no file has a row, unless ``options.may_be_empty``.
    """
    parts: list[EdgeList] = []  # of all files
    parts_with_rows: list[EdgeList] = []
    first_file = files[0]  # the first file with rows, once there is one
    first_problem: NoRowsError | None = None
    rows_before = 0
    for file in files:
        try:
            part = read_one(file, options)
            if parts_with_rows:
                # EdgeListError if the edges are in other columns or units than in the first file
                part.columns.agree_with(parts_with_rows[0].columns, file, first_file)
            else:
                first_file = file
        except NoRowsError as problem:
            first_problem = first_problem or problem
            parts.append(no_edges(file.name, problem.columns))
            continue
        except EdgeListError as error:
            if error.row is None:  # the error is about no single row
                raise
            # ``error.row`` counts within this file, and the new one over all files.
            raise EdgeListError(error.message, rows_before + error.row, error.column) from None
        rows_before += part.n_rows
        parts.append(part)
        parts_with_rows.append(part)

    # A file without rows is an error only if no file has a row.
    if first_problem is not None and not parts_with_rows and not options.may_be_empty:
        try:
            raise first_problem
        finally:
            # An error refers to this frame. If the frame refers to the error, too, both keep the
            # callers' frames alive.
            first_problem = None
    if len(parts) == 1:
        edges = parts[0]
    else:
        edges = _concatenate(parts, parts_with_rows, options)
    return replace(edges, scratch=options.scratch)


def columns_of_all(columns: list[EdgeColumns]) -> EdgeColumns:
    """Return the columns of several files whose columns agree: those of the first file, with the
    unused columns of all files. ``columns`` has an element per file, at least one.
    """
    unused = dict.fromkeys(name for of_file in columns for name in of_file.unused)
    numbers = dict.fromkeys(name for of_file in columns for name in of_file.unused_numbers)
    dates = dict.fromkeys(name for of_file in columns for name in of_file.unused_dates)
    return replace(
        columns[0], unused=tuple(unused), unused_numbers=tuple(numbers), unused_dates=tuple(dates)
    )


def _concatenate(
    parts: list[EdgeList], parts_with_rows: list[EdgeList], options: ReadOptions
) -> EdgeList:
    """Return the edges of several files one below the other, in types that hold them all.

    ``parts`` are the edges of all files, in order, and ``parts_with_rows`` those of the files that
    have rows, also if a filter leaves none of them.
    """
    rows = tuple(entry for part in parts for entry in part.rows)
    if not parts_with_rows:  # no file has an edge: the empty columns of the first file do for all
        return replace(parts[0], rows=rows)
    from .columns import cast_exactly, type_for_all

    # Only files of which a filter leaves rows are joined: the types of the other files need not
    # fit. If no file has a row left, the empty columns of the first file do for all.
    columns = {}
    selected = [part for part in parts_with_rows if part.table.num_rows] or parts_with_rows[:1]
    for role in selected[0].columns.roles:
        pieces = [part.table[role] for part in selected]
        places = []  # for errors: the column in each file
        for part in selected:
            ((name, _),) = part.rows  # a part is of one file
            column_name = part.columns.roles[role]
            places.append(Where(DataFile.named(name), role, column_name, part.row_numbers))
        # a type that holds the values of all files; EdgeListError for strings beside numbers
        kind = type_for_all(pieces, places)
        chunks: list[Any] = []
        for piece, place in zip(pieces, places, strict=True):
            if piece.type == kind:
                chunks += piece.chunks
            else:
                # ``new_chunks`` collects them: a list, or a file if there is scratch space.
                chunks += cast_exactly(piece.chunks, kind, place, options.new_chunks())
        columns[role] = pyarrow.chunked_array(chunks, kind)

    # The rows that a filter leaves are numbered through all files. A filter or a column of
    # directions is of all files or of none, so the first part tells which of both there is.
    rows_before = np.cumsum([0, *(part.n_rows for part in parts_with_rows)])
    row_numbers = None
    if selected[0].row_numbers is not None:
        row_numbers = np.concatenate(
            [
                part.row_numbers + n_before
                for part, n_before in zip(parts_with_rows, rows_before[:-1], strict=True)
                if part.row_numbers is not None
            ]
        )
    directions = None
    if selected[0].directions is not None:
        directions = np.concatenate([part.directions for part in parts_with_rows])
    return EdgeList(
        table=pyarrow.table(columns),
        # those of the first file, with the unused columns of all
        columns=columns_of_all([part.columns for part in parts_with_rows]),
        rows=rows,
        row_numbers=row_numbers,
        directions=directions,
    )
