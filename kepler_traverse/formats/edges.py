"""What every reader takes and gives back, and which columns of a file are the ends and the weight of an edge."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import EdgeListError, InputError
from .files import DataFile

ID_TYPES = ("auto", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string")

# Names of the two ends that are recognised without being asked for, in any case; first match wins.
END_NAMES = (("src", "dst"), ("source", "target"), ("source", "destination"), ("from", "to"))
WEIGHT_NAME = "weight"
BYTES_A_VERTEX = 16  # its id and its offset, the least that a graph needs


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user wants of an edge list; see ``read_graph`` for the meaning of each.

    Attributes
    ----------
    src_column, dst_column, weight_column : str or None
        Names of columns; in a file without header ``"0"`` is the first.
    weighted : bool or None
    header : {"auto", "yes", "no"}
    delimiter : str or None
    id_type : str
        One of ``ID_TYPES``.
    device : {"cpu", "cuda"}
    """

    src_column: str | None = None
    dst_column: str | None = None
    weight_column: str | None = None
    weighted: bool | None = None
    header: str = "auto"
    delimiter: str | None = None
    id_type: str = "auto"
    device: str = "cpu"

    def __post_init__(self):
        if self.id_type not in ID_TYPES:
            raise InputError(f"id_type {self.id_type!r} is none of {', '.join(map(repr, ID_TYPES))}")
        if self.header not in ("auto", "yes", "no"):
            raise InputError(f"header {self.header!r} is none of 'auto', 'yes', 'no'")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\n\r"'):
            raise InputError(f"delimiter {self.delimiter!r} must be one character, not a quote or an end of line")
        if (self.src_column is None) != (self.dst_column is None):
            raise InputError("src_column and dst_column go together: name both or neither")
        if self.weighted is False and self.weight_column is not None:
            raise InputError("weight_column was given with weighted=False; take one of the two")
        named = [name for name in (self.src_column, self.dst_column, self.weight_column) if name is not None]
        if len(set(named)) < len(named):
            raise InputError(f"src_column, dst_column and weight_column must differ, not {', '.join(map(repr, named))}")


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Names of the columns of one file that hold the edges."""

    src: str
    dst: str
    weight: str | None = None

    @property
    def roles(self) -> dict[str, str]:
        """Role to name, the weight only if there is one."""
        roles = {"src": self.src, "dst": self.dst}
        return roles if self.weight is None else {**roles, "weight": self.weight}

    def pinned(self, options: ReadOptions) -> ReadOptions:
        """Return options that ask for exactly these columns: what further files must have."""
        return replace(
            options,
            src_column=self.src,
            dst_column=self.dst,
            weight_column=self.weight,
            weighted=self.weight is not None,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeList:
    """Edges as read, before any rule about duplicates or loops.

    Attributes
    ----------
    table : pyarrow.Table or cudf.DataFrame
        Columns ``src, dst[, weight]`` without nulls: ids are integers or strings, weights integers or floats.
    columns : EdgeColumns
        What the columns are called in the files.
    rows : tuple of (str, int)
        Files in the order read, and rows of each.
    n_vertices : int or None
        Where the format says that the vertices are 1..n.
    """

    table: object
    columns: EdgeColumns
    rows: tuple[tuple[str, int], ...]
    n_vertices: int | None = None

    def place(self, row: int) -> tuple[str, int]:
        """Return the file and the row in it, from 0, of a row counted over all files."""
        for name, rows in self.rows:
            if row < rows:
                return name, row
            row -= rows
        raise IndexError(row)


@dataclass(frozen=True)
class Where:
    """One column of one file, to name in errors."""

    file: DataFile
    role: str
    name: str

    def error(self, problem: str, row: int | None = None) -> EdgeListError:
        """An error about this column; ``row`` counts from 0 in this file, header and comments aside."""
        at = "" if row is None else f", row {row}"
        return EdgeListError(f"{self.file}{at}: {self.role} column {self.name!r} {problem}", row, self.role)


def choose_columns(names: list[str], options: ReadOptions, file: DataFile) -> EdgeColumns:
    """Pick the edge columns among the names of a file: those asked for, else the obvious ones.

    Raises
    ------
    EdgeListError
        A column is missing or there twice, or there is no weight where one is required.
    """
    folded = [name.casefold() for name in names]
    ends = next((pair for pair in END_NAMES if pair[0] in folded and pair[1] in folded), None)
    by_position = options.src_column is None and ends is None
    if options.src_column is not None:
        src, dst = options.src_column, options.dst_column
    elif ends is not None:
        src, dst = (names[folded.index(end)] for end in ends)
    elif len(names) >= 2:
        src, dst = names[:2]
    else:
        raise EdgeListError(f"{file}: an edge needs two columns, this file has only {_listed(names)}")
    weight = options.weight_column
    if weight is None and options.weighted is not False:
        if WEIGHT_NAME in folded:
            weight = names[folded.index(WEIGHT_NAME)]
        elif by_position and len(names) > 2:
            weight = names[2]
    if weight is None and options.weighted:
        raise EdgeListError(
            f"{file}: no weight column; it has {_listed(names)}. Name one with weight_column", column="weight"
        )
    columns = EdgeColumns(src=src, dst=dst, weight=weight)
    for role, name in columns.roles.items():
        if name not in names:
            raise EdgeListError(f"{file}: no column {name!r} for {role}; it has {_listed(names)}", column=role)
        if names.count(name) > 1:
            raise EdgeListError(f"{file}: column {name!r} occurs {names.count(name)} times; rename all but one", column=role)
    return columns


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return f"{'column' if len(names) == 1 else 'columns'} {shown}" if names else "no columns"


def no_column_names(options: ReadOptions, file: DataFile, kind: str) -> None:
    """Refuse column names for a format that has none."""
    for option in ("src_column", "dst_column", "weight_column"):
        if getattr(options, option) is not None:
            raise InputError(f"{file}: {kind} files have no column names; leave {option} out")


def refuse_absurd_size(file: DataFile, n_vertices: int) -> None:
    """Refuse a header that claims more vertices than this machine could number, before memory is asked for.

    Raises
    ------
    EdgeListError
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_vertices * BYTES_A_VERTEX > memory:
        raise EdgeListError(
            f"{file}: its header claims {n_vertices} vertices, and to number so many takes {n_vertices * BYTES_A_VERTEX} "
            f"bytes, which this machine does not have ({memory}); is the header damaged?"
        )


def read_each(
    files: list[DataFile], options: ReadOptions, read_one: Callable[[DataFile, ReadOptions], EdgeList]
) -> EdgeList:
    """Read files one after another; each must have the columns of the first."""
    parts: list[EdgeList] = []
    rows_before = 0
    for file in files:
        try:
            part = read_one(file, parts[0].columns.pinned(options) if parts else options)
        except EdgeListError as error:
            if error.row is None:
                raise
            raise EdgeListError(error.message, rows_before + error.row, error.column) from None
        rows_before += part.table.num_rows
        parts.append(part)
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: list[EdgeList]) -> EdgeList:
    """Put the edges of several files one below the other in types that hold them all."""
    import pyarrow

    from .columns import type_for_all

    columns = {}
    for role in parts[0].columns.roles:
        pieces = [part.table[role] for part in parts]
        kind = type_for_all(
            pieces, [Where(DataFile.named(part.rows[0][0]), role, part.columns.roles[role]) for part in parts]
        )
        columns[role] = pyarrow.chunked_array([chunk for piece in pieces for chunk in piece.cast(kind).chunks], kind)
    return EdgeList(
        table=pyarrow.table(columns),
        columns=parts[0].columns,
        rows=tuple(entry for part in parts for entry in part.rows),
    )
