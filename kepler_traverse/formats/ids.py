"""Files of vertex ids: text with one id per line, or a Parquet column."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import InputError, UnknownVertexError, one_line, option_text
from ..labels import VERTEX_NAMES, is_called
from ..runtime.object_stores import local_path
from ..runtime.regular_files import open_regular
from .log_tables import refuse_log_table, refuse_unread_table
from .sizes import require_parquet_at

# What Arrow takes for an integer, such as 0x10, and no other reader here.
HEXADECIMAL = r"^\s*[+-]?0[xX]"

_DELIMITERS = ",\t;"
_LONGEST = 200  # characters of a message about a value
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}")  # as in edge lists, where 007 and +7 are strings
# By what the ids of a file are for, the names that their column may have where it is one of
# several. The first is the usual one.
_COLUMNS = {
    "sources": ("source", "src", "vertex", "node", "id"),
    "targets": ("target", "dst", "destination", "vertex", "node", "id"),
    "vertices": VERTEX_NAMES,
    "only_vertices": VERTEX_NAMES,
    "closed": VERTEX_NAMES,
}


def integer_id(text: str) -> int | None:
    """Return the integer that a text is as a program writes it, blanks around it aside; None for
    another text. ``007``, ``+7`` and digits of other scripts are no integers here.
    """
    if _INTEGER.fullmatch(text.strip()):
        return int(text)
    return None


@dataclass(frozen=True)
class IdFile:
    """Vertex ids as a file holds them, before it is known what ids the graph has."""

    path: str  # of the file, for errors; ``""`` for ids that an option lists
    # what the ids are for: {"sources", "targets", "vertices", "only_vertices", "closed"}
    what: str
    # whole lines of a text, or the values of a column: an integer array, or a list of any others
    values: list[Any] | np.ndarray
    is_text: bool  # whether ``values`` are lines, of which some may be comments
    # whether the file says what is an integer and what a string, as Parquet does and text does not
    is_typed: bool = False

    @classmethod
    def listed(cls, ids: list[Any], what: str) -> IdFile:
        """Return ids that an option lists, in place of a file."""
        return cls("", what, ids, is_text=False)

    @property
    def holds_strings(self) -> bool:
        """Whether an id is no integer, so that the ids must be strings. A text of integers alone
        may hold either, and is False.
        """
        values = self.values
        if isinstance(values, np.ndarray):
            return False
        bare = [value.partition("#")[0].strip() if self.is_text else value for value in values]
        return any(
            isinstance(value, str) and value != "" and integer_id(value) is None for value in bare
        )

    def ids(
        self, strings: bool, is_vertex: Callable[[str], bool] = lambda _: False
    ) -> list[Any] | np.ndarray:
        """Return the ids in the type of a graph's ids, which are strings or else integers: a list,
        or an array for a column of integers.

        ``strings``: whether the ids of the graph are strings. ``is_vertex`` says whether a string
        is an id of the graph, for lines that could be read in two ways. InputError if a value is no
        id, is not of the type of the graph's ids, or it is not sure which id it is; the message
        names file and line or row.
        """
        # Integers where integers are wanted. An empty array goes on to the error for no ids.
        if isinstance(self.values, np.ndarray) and self.values.size and not strings:
            return self.values
        values = self.values
        if isinstance(values, np.ndarray):
            values = values.tolist()
        ids = []
        for place, value in enumerate(values):
            # A line of text is an id, a comment or nothing, which is None.
            if self.is_text and strings:
                value = self._name_of_line(place, value, is_vertex)
            elif self.is_text:
                # No integer has a # in it, so that a comment may follow one.
                value = value.partition("#")[0].strip() or None
            elif isinstance(value, bool) or not isinstance(value, int | str):
                raise self._error(place, f"{value!r} is no vertex id; ids are integers or strings")
            if value is None:
                continue

            # In the type of the graph's ids.
            if self.is_typed and isinstance(value, str) != strings:
                kind = "strings" if strings else "integers"
                raise self._error(
                    place, f"{value!r} is not a vertex: the ids of this graph are {kind}"[:_LONGEST]
                )
            if not strings and isinstance(value, str):
                number = integer_id(value)
                if number is None:
                    raise self._error(
                        place, f"{value[:40]!r} is not a vertex: the ids of this graph are integers"
                    )
                value = number
            ids.append(value)
        if not ids:
            raise self._empty_error()
        return ids

    def _empty_error(self) -> InputError:
        """Return the error for a file, or an option, without an id."""
        if self.is_text:
            how = "one vertex id per line"
        else:
            how = "a vertex id in each row"
        return InputError(f"{self.path}: the file of {self.what} is empty; give {how}")

    def _name_of_line(self, place: int, line: str, is_vertex: Callable[[str], bool]) -> str | None:
        """Return the id, a string, in a line without the blanks around it; None for a comment, and
        for a blank line.

        A line that is a vertex as it stands, with its blanks or ``#``, is that vertex. InputError
        if it could also mean a comment or another vertex. ``place`` is its position, from 0.
        """
        # ``name``: what the line is without the blanks. The line as it stands differs from it if
        # there are blanks or a ``#``, and may be a vertex as well.
        bare = line.strip()
        name = None if bare.startswith("#") or not bare else bare
        if line == name or not line or not is_vertex(line):
            return name
        if name is None or is_vertex(name):
            other = "a comment" if name is None else repr(name)
            raise self._error(
                place,
                (
                    f"{line!r} is a vertex, but could also mean {other}; "
                    "give the ids as a Parquet file"
                ),
            )
        return line

    def _error(self, place: int, problem: str) -> InputError:
        """Return the error for the value at a position, from 0, which is a line of a text, counted
        from 1 in the message, or a row of a table, counted from 0.
        """
        if not self.path:  # an option lists the ids, so that no place need be named
            return UnknownVertexError(f"{option_text(self.what)}: {problem}.")
        where = f"line {place + 1}" if self.is_text else f"row {place}"
        return InputError(f"{self.path}, {where} of the file of {self.what}: {problem}")


def read_ids(path: str | os.PathLike[str], what: str) -> IdFile:
    """Read a file of vertex ids: UTF-8 text with an id per line, where lines that begin with ``#``
    are comments, or Parquet.

    It is a local file or an object of S3, Google Cloud Storage or Azure (``s3://...``). ``what``
    says what the ids are for, as ``IdFile.what``; it names them in errors and finds their column
    among several. InputError if it is not sure which column that is, or the file cannot be read.
    """
    with _errors_of_file(path, what):
        local = local_path(path)

        # Text, unless it begins as Parquet does or is CSV of a table. ``open_regular`` raises
        # OSError for a FIFO and the like, at which reading would wait.
        with open_regular(local, follow=True) as file:
            data = file.read(4)
            if data != b"PAR1" and not (what == "vertices" and is_id_table(local, "vertices")):
                data += file.read()
                if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
                    raise ValueError("it is no UTF-8 text; save it as UTF-8")
                # Not by splitlines: other signs that end a line may stand in an id.
                lines = [line.removesuffix("\r") for line in data.decode("utf-8-sig").split("\n")]
                _refuse_header(path, what, lines)
                return IdFile(str(path), what, lines, is_text=True)

        # A table, CSV or Parquet.
        if data != b"PAR1":
            table = _read_table(path, local)
            column = column_of_ids(path, table.schema.names, what)
            return _ids_of_column(path, what, table[column], is_typed=False)
        # InputError for a file of a table with a log, such as Delta Lake, which may delete rows
        refuse_log_table(path, what)
        with pyarrow.parquet.ParquetFile(local, page_checksum_verification=True) as parquet:
            column = column_of_ids(path, parquet.schema_arrow.names, what)
            # raises an error if the column takes more memory than is free, before it is read
            require_parquet_at(local, str(path), [column])
            ids = parquet.read(columns=[column]).column(0)
            return _ids_of_column(path, what, ids, is_typed=True)


def _refuse_header(path: str | os.PathLike[str], what: str, lines: list[str]) -> None:
    """Raise InputError for a CSV file of ids whose first line is 0, which may be an id, or the
    header that pandas writes over a column without a name. ``lines`` are all lines of the file.
    """
    if Path(path).suffix.lower() == ".csv" and lines[0].strip(' "') == "0" and any(lines[1:]):
        raise InputError(
            f"{path}: the first line of the file of {what} is 0, which may be an id, or the header that pandas writes over "
            f"a column without a name; call the file .txt if it is an id, or write {_COLUMNS[what][0]!r} in its place"
        )


@contextmanager
def _errors_of_file(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn errors of the block, which reads a file of ids, into InputError with its name.

    The message says so if the file is a table with a log, such as one of Delta Lake, or inside one.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        refuse_unread_table(path, what, error)
        problem = one_line(getattr(error, "strerror", None) or error, 300)
        if str(path).isprintable():
            name = str(path)
        else:
            name = repr(str(path))
        raise InputError(f"{name}: the file of {what} cannot be read: {problem}") from None


def is_id_table(path: str | os.PathLike[str], what: str) -> bool:
    """Return whether a file of ids is CSV whose first line holds names of columns.

    A single column must have the usual name of ids. Of several columns of a file of vertices one
    must have a name that ids have; other files of several columns always have names.
    """
    if Path(path).suffix.lower() != ".csv":
        return False
    names = [name.strip().strip('"') for name in _first_line(path).split(detect_delimiter(path))]
    if len(names) == 1:
        return names == [_COLUMNS[what][0]]
    return what != "vertices" or any(_is_known(what, name) for name in names)


def detect_delimiter(path: str | os.PathLike[str]) -> str:
    """Return the delimiter, one of comma, tab and semicolon, that occurs most often in the first
    line of a text file; a comma if none occurs.
    """
    return max(_DELIMITERS, key=_first_line(path).count)


def _first_line(path: str | os.PathLike[str]) -> str:
    """Return the first line of a text file, or its beginning where there is no end of line."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return file.readline(1 << 16)


def read_vertex_table(
    path: str | os.PathLike[str], names: list[str]
) -> tuple[IdFile, dict[str, pyarrow.ChunkedArray]]:
    """Return the ids and attributes of vertices in a file: the ids, and columns of numbers or texts
    by name, a row per vertex.

    The file is Parquet, or CSV with column names, and has a column of ids; ``names`` are the
    columns of attributes. InputError if it cannot be read or is no table, has no such column, or an
    integer of CSV would be rounded.
    """
    with _errors_of_file(path, "vertices"):
        local = local_path(path)
        is_typed = _is_parquet(local)
        if is_typed:
            # InputError for a file of a table with a log, such as Delta Lake, which may delete rows
            refuse_log_table(path, "vertices")
        table = _read_table(path, local, names)
        column = column_of_ids(path, table.schema.names, "vertices")
        return columns_of_vertices(path, table, column, names, is_typed)


def columns_of_vertices(
    path: str | os.PathLike[str],
    table: pyarrow.Table,
    column: str,
    names: list[str],
    is_typed: bool = True,
) -> tuple[IdFile, dict[str, pyarrow.ChunkedArray]]:
    """Return the ids in ``column`` of a table of vertices, and its columns ``names`` of attributes
    by name.

    ``path`` names the file in errors. ``is_typed``: the file says what is an integer and what a
    string, as Parquet does. InputError if a column of attributes is not there, or there twice.
    """
    for name in names:
        if table.schema.names.count(name) > 1:
            raise InputError(
                f"{path}: the file of vertices has several columns {name!r}; rename all but one"
            )
        if name not in table.schema.names or name == column:
            others = [other for other in table.schema.names if other != column]
            known = ", ".join(map(repr, others)) or "none"
            raise InputError(
                f"{path}: the file of vertices has no column of attributes {name!r}; it has {known}"
            )
    ids = _ids_of_column(path, "vertices", table[column], is_typed)
    return ids, {name: table[name] for name in names}


def _is_parquet(local: str) -> bool:
    """Return whether a file of this host begins as Parquet does."""
    with open_regular(local, follow=True) as file:
        return bool(file.read(4) == b"PAR1")


def _read_table(
    path: str | os.PathLike[str], local: str, attributes: Sequence[str] = ()
) -> pyarrow.Table:
    """Return a table of vertices, Parquet or CSV, as one of pyarrow; ``path`` names the file in
    errors, and ``local`` is where this host has it.

    Columns of CSV that are called as ids are texts, as 007 is not 7. ``attributes`` are columns
    whose numbers must be decimal and exact in the type that they are read in.
    """
    if _is_parquet(local):
        # raises an error if the columns take more memory than is free, before they are read
        require_parquet_at(local, str(path))
        return pyarrow.parquet.read_table(local, page_checksum_verification=True)
    if not is_id_table(local, "vertices"):
        raise InputError(
            f"{path}: attributes need a table; give {option_text('vertices')} as Parquet, or as .csv whose first line has "
            f"column names, one of them {_COLUMNS['vertices'][0]!r}"
        )
    parse = pyarrow.csv.ParseOptions(delimiter=detect_delimiter(local))
    names = pyarrow.csv.open_csv(local, parse_options=parse).schema.names

    def read(**options: Any) -> pyarrow.Table:
        """Return the table, by ``ConvertOptions``."""
        return pyarrow.csv.read_csv(
            local, parse_options=parse, convert_options=pyarrow.csv.ConvertOptions(**options)
        )

    ids = {name: pyarrow.string() for name in names if _is_known("vertices", name)}
    table = read(column_types=ids)

    # Numbers are compared with the text that they were read from, so the file is read once more.
    numbers = [
        name
        for name in attributes
        if names.count(name) == 1 and table[name].type in (pyarrow.float64(), pyarrow.int64())
    ]
    if not numbers:
        return table
    texts = read(column_types=dict.fromkeys(numbers, pyarrow.string()), include_columns=numbers)
    for name in numbers:
        if table[name].type == pyarrow.float64():
            _require_exact(path, name, texts[name])
        else:
            _require_decimal(path, name, texts[name])
    return table


def _require_decimal(path: str | os.PathLike[str], name: str, column: pyarrow.ChunkedArray) -> None:
    """Raise InputError for an integer such as 0x10, in ``column``, the text of the column ``name``,
    which pyarrow reads as int64.
    """
    row = compute.match_substring_regex(column, HEXADECIMAL).index(True).as_py()
    if row >= 0:
        text = column[row].as_py()
        raise InputError(f"{path}: column {name!r}, row {row}: {text!r} is no decimal number")


def _require_exact(path: str | os.PathLike[str], name: str, column: pyarrow.ChunkedArray) -> None:
    """Raise InputError for an integer that float64 does not hold exactly, in ``column``, the text
    of the column ``name``, which pyarrow reads as float64.
    """
    # up to 15 digits each integer has a float of its own
    is_long = compute.match_substring_regex(column, r"^\s*[+-]?[0-9]{16,}\s*$").to_numpy()
    rows = np.flatnonzero(is_long).tolist()
    for row, text in zip(rows, column.filter(is_long).to_pylist(), strict=True):
        if float(text) == np.inf or int(float(text)) != int(text):
            problem = f"float64 cannot hold the integer {text.strip()[:40]} exactly; scale down"
            raise InputError(f"{path}: column {name!r}, row {row}: {problem}")


def column_of_ids(path: str | os.PathLike[str], names: list[str], what: str) -> str:
    """Return which of the columns ``names`` holds the ids: the only column; of several, the only
    column with a name that such ids have. InputError unless there is exactly one.

    ``what``, as ``IdFile.what``, says what the ids are for, and ``path`` names the file in errors.
    """
    # An index that pandas has written without a name is no column that anyone gave.
    names = [name for name in names if not name.startswith("__index_level_")]
    if len(names) == 1:
        chosen = names
    else:
        chosen = [name for name in names if _is_known(what, name)]
    if len(chosen) != 1:
        shown = ", ".join(map(repr, names[:20])) or "no column"
        usual_name = _COLUMNS[what][0]
        advice = f"give a file with that column alone, or call it {usual_name!r}"
        if what in ("sources", "targets"):
            advice += f", or name it with {option_text(f'{usual_name}_column')}"
        raise InputError(
            f"{path}: it is not sure which column of the file of {what} holds the ids; it has {shown}; "
            f"{advice}"
        )
    return chosen[0]


def _ids_of_column(
    path: str | os.PathLike[str], what: str, column: pyarrow.ChunkedArray, is_typed: bool
) -> IdFile:
    """Return the ids in a column of a table: integers as an array, any other values as a list.
    InputError if one is missing.

    ``path`` names the file in errors, and ``what`` and ``is_typed`` are as in ``IdFile``.
    """
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise InputError(
            f"{path}: row {row} of the file of {what} is null; every row must be a vertex id"
        )
    if kinds.is_integer(column.type):
        values = column.to_numpy()
    else:
        values = column.to_pylist()
    return IdFile(str(path), what, values, is_text=False, is_typed=is_typed)


def _is_known(what: str, name: str) -> bool:
    """Return whether the name of a column is one that ids of ``what`` have."""
    return is_called(name, _COLUMNS[what])
