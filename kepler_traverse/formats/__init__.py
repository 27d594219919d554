"""Edge lists on disk: the formats, how a file name tells them, and one reader each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import EdgeListError, InputError, option_text
from .arrow import read_arrow
from .csv import read_csv
from .edge_list import ID_TYPES, EdgeColumns, EdgeList, ReadOptions
from .files import COMPRESSIONS, DataFile, find_files
from .log_readers import read_delta, read_iceberg
from .log_tables import LOG_FORMATS
from .numbered import read_dimacs, read_matrix_market
from .parquet import read_parquet, rows_in
from .sif import read_sif
from .snap import read_snap
from .tntp import read_tntp

__all__ = ["FORMATS", "ID_TYPES", "EdgeColumns", "EdgeList", "Format", "ReadOptions", "read_edges"]


# Measured peaks of reading and building in memory, rounded up: per row of Parquet, twice as much
# with text; and per byte of other files. Compressed text is unpacked to some times its size.
_BYTES_PER_ROW = 100  # of memory, per row of Parquet without text
_BYTES_PER_BYTE = 5  # of memory, per byte of text
_UNPACKED = 6  # bytes of text per byte of a compressed file


@dataclass(frozen=True)
class Format:
    """A file format: its name, the endings that tell it, and the options that are about it.

    ``read(files, options)`` reads the edges. It raises EdgeListError for columns that are missing,
    repeated, or no ids or weights, for rows that are short, long or null, for counts that differ
    from a header, and for a damaged file.
    """

    name: str  # as the option ``format`` has it
    # in lower case, with the dot; () for a format of folders: a table with a log
    endings: tuple[str, ...]
    read: Callable[[list[DataFile], ReadOptions], EdgeList]
    takes: tuple[str, ...] = ()  # options that other formats refuse, such as ``"delimiter"``
    # whether ``options.scratch`` is used: columns go to files as they are read
    in_parts: bool = False


FORMATS = (
    Format("parquet", (".parquet", ".pq"), read_parquet, in_parts=True),
    Format(
        "csv",
        (".csv", ".tsv", ".tab", ".psv"),
        read_csv,
        takes=("header", "delimiter"),
        in_parts=True,
    ),
    Format(
        "snap",
        (".txt", ".el", ".wel", ".edges", ".edgelist", ".snap"),
        read_snap,
        takes=("header",),
        in_parts=True,
    ),
    Format("sif", (".sif",), read_sif, in_parts=True),
    Format("matrix_market", (".mtx",), read_matrix_market),
    Format("dimacs", (".gr",), read_dimacs),
    Format("tntp", (".tntp",), read_tntp, in_parts=True),
    Format("arrow", (".arrow", ".arrows", ".ipc", ".feather"), read_arrow, in_parts=True),
    Format("delta", (), read_delta),
    Format("iceberg", (), read_iceberg),
)


def read_edges(paths: Any, options: ReadOptions, format: str = "auto") -> EdgeList:
    """Read an edge list from files, folders, globs or URLs, all of which are one list.

    ``format`` is the name of a ``Format``, or ``"auto"``: then it follows from the endings, also
    before ``.gz``, ``.bz2`` and ``.zst``. InputError for an unknown format; EdgeListError for files
    of several formats, nothing to read, or a file that cannot be used.
    """
    by_name = {entry.name: entry for entry in FORMATS}
    if format != "auto" and format not in by_name:
        raise InputError(
            f"{option_text('format')} {format!r} is none of 'auto', {', '.join(map(repr, by_name))}"
        )

    # The files, and ``entry``, the format that all of them have.
    chosen = FORMATS if format == "auto" else (by_name[format],)
    files = find_files(paths, {ending for entry in chosen for ending in entry.endings})
    if len(chosen) == 1:
        entry = chosen[0]
    else:
        entry = _detect_format(files)
    _refuse_unlike_tables(files, entry)

    # Options that the format does not take, and that have another value than their default.
    for name, unset in (("header", "auto"), ("delimiter", None)):
        if getattr(options, name) != unset and name not in entry.takes:
            if entry.name == "snap":
                other = f", or give {option_text('format', 'csv')}"
            else:
                other = ""
            raise InputError(
                f"{files[0]}: {option_text(name)} is not for format "
                f"{entry.name}; leave it out{other}"
            )

    # A graph that fits in ``scratch.memory`` bytes is built in memory, and so is a graph whose
    # reader puts nothing into files. A graph in files is built by the CPU.
    if options.scratch is not None:
        # ``in_parts``: the reader can put columns into files. ``reads_more``: a filter, directions
        # or second weights are wanted, for which all rows must be in memory.
        needs_files = (
            entry.in_parts
            and not options.reads_more
            and _bytes_to_build(files, entry) > options.scratch.memory
        )
        if needs_files:
            options = replace(options, device="cpu")
        else:
            options = replace(options, scratch=None)
    return entry.read(files, options)


def _refuse_unlike_tables(files: list[DataFile], entry: Format) -> None:
    """Raise EdgeListError for a table with a log, such as Delta Lake, that shall be read in the
    format ``entry`` of plain files, and for a plain file that shall be read as such a table.
    """
    # What ``DataFile.table`` must be: the name of a format of tables with a log, which has no
    # endings; ``""`` for plain files.
    table = "" if entry.endings else entry.name
    unlike = next((file for file in files if file.table != table), None)
    if unlike is not None:
        if table:
            what = f"no table of {LOG_FORMATS[table].title}"
        else:
            what = f"a table of {LOG_FORMATS[unlike.table].title}"
        raise EdgeListError(f"{unlike}: it is {what}; leave {option_text('format')} out")


def _bytes_to_build(files: list[DataFile], entry: Format) -> int:
    """Return an estimate of the bytes of memory that reading files and building a graph of them
    takes: of Parquet by its rows, of other files by their size.
    """
    total = 0
    for file in files:
        if entry.name == "parquet":
            n_rows, has_text = rows_in(file)
            total += _BYTES_PER_ROW * n_rows * (2 if has_text else 1)
        else:
            ratio = _UNPACKED if file.compression else 1
            total += _BYTES_PER_BYTE * ratio * file.filesystem.size(file.path)
    return total


def _detect_format(files: list[DataFile]) -> Format:
    """Return the format that all files have, by their endings, or as tables with a log;
    EdgeListError if an ending is not known, or the files are of several formats.
    """
    by_ending = {ending: entry for entry in FORMATS for ending in entry.endings}
    for file in files:
        if not file.table and file.ending not in by_ending:
            raise EdgeListError(
                f"{file}: the ending {file.ending!r} tells no format; save a table as Parquet or CSV, or give "
                f"{option_text('format')}, one of "
                f"{', '.join(entry.name for entry in FORMATS)} (compressed: {', '.join(COMPRESSIONS)} after it)"
            )
    # a file of each format
    by_format = {file.table or by_ending[file.ending].name: file for file in files}
    if len(by_format) > 1:
        (format_name, file), (other_name, other_file) = list(by_format.items())[:2]
        raise EdgeListError(
            f"{file} is {format_name}, {other_file} is {other_name}; give files of one format, "
            f"or name it with {option_text('format')}"
        )
    return next(entry for entry in FORMATS if entry.name in by_format)
