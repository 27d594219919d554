"""CSV and TSV: with a header or without, any delimiter, compressed or not."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from typing import Any

from ..errors import EdgeListError, option_text
from .edge_list import EdgeColumns, EdgeList, NoRowsError, ReadOptions, columns_of_all, no_rows
from .files import DataFile, reading, shown
from .header import holds_names, layout_of_rows
from .text import (
    SAMPLE_LINES,
    HeaderDoubtError,
    TextLayout,
    could_count,
    find_id_type,
    first_lines,
    header_doubt,
    is_plain_integer,
    read_texts,
)

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}


def read_csv(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of CSV files. If the device is a GPU, cuDF reads uncompressed ones there.

    EdgeListError if it is in doubt whether the first line is a header.
    """
    # Strings, and all that cuDF does not read for certain, are left to the reader of the host. So
    # are files of which more is read than the edges: a filter, directions or second weights.
    if (
        options.device == "cuda"
        and not options.reads_more
        and not any(file.compression for file in files)
    ):
        # the type that an option declares, else the one that the first row of data shows
        id_type = find_id_type(files, options, "CSV", detect_layout)
        edges = None
        if id_type != "string":
            edges = _read_on_gpu(files, options, id_type)
        if edges is not None:
            return edges
    # pyarrow splits the lines as they are, so the stream of them is the source itself.
    return read_texts(files, options, "CSV", detect_layout, lambda _, source: source)


def detect_layout(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    """Return delimiter, header, columns and the type of the ids of a CSV file, by its first lines.

    ``id_type`` is the type of the ids if it is known already, else ``"auto"``. NoRowsError for a
    file without lines, HeaderDoubtError if the first line may be names or an edge, EdgeListError
    if it cannot be decided which columns the edges are in.
    """
    with file.open_stream() as source:
        lines = first_lines(file, source, SAMPLE_LINES)
    if not lines:
        raise no_rows(file)
    delimiter = options.delimiter or _detect_delimiter(file, lines, options)
    rows = _split_sample(lines, delimiter)
    if len(rows[0]) < 2:
        raise EdgeListError(
            f"{file}: no {delimiter!r} in the first line "
            f"{lines[0][:80]!r}; {_advise_delimiter(lines[0])}"
        )

    # Names of the columns, as the file writes them and without blanks. ``has_header`` is None where
    # the first line could be names or an edge.
    has_header = holds_names(rows, options, file.partition_names)
    if has_header is None:
        raise header_doubt(file, lines[0])
    if has_header:
        written = rows[0]
    else:
        written = [str(i) for i in range(len(rows[0]))]
    names = [name.strip() for name in written]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EdgeListError(
            f"{file}: column {shown(twice[0])} occurs {names.count(twice[0])} "
            "times in the header; rename all but one"
        )

    # Blanks behind each delimiter are trimmed, but a quote behind one would be a part of the value.
    has_blanks = all(value[:1].isspace() for row in rows for value in row[1:])
    has_quotes = any('"' in line for line in lines)
    # chooses the columns of the edges, and the type of ids by the first row
    layout = layout_of_rows(file, options, names, rows, has_header, id_type)
    # Columns are chosen by names without blanks. The names of the layout keep them, since pyarrow
    # finds a column by what is written.
    return replace(
        layout,
        names=tuple(written),
        delimiter=delimiter,
        quotes=True,
        trim=has_blanks and not has_quotes,
    )


def _split_sample(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the values of each row of the first lines, without the last row where it may be half
    of one.
    """
    rows = list(csv.reader(lines, delimiter=delimiter))
    # The last line of many may be the first half of a quoted value.
    if len(lines) < SAMPLE_LINES or len(rows) == 1:
        return rows
    return rows[:-1]


def _detect_delimiter(file: DataFile, lines: list[str], options: ReadOptions) -> str:
    """Return the delimiter of the first lines of a file: the only one that cuts all lines into
    equally many values; of several such delimiters, the only one by which the first line has the
    names of an edge's ends, or two integers.

    If none cuts all lines alike, the delimiter that is usual for the file's ending may be taken;
    the reader then says which lines are short or long. EdgeListError if no delimiter, or more than
    one, is left.
    """
    # Delimiters that cut the first line, and those that cut all lines alike.
    rows_of = {sign: _split_sample(lines, sign) for sign in ",\t;|"}
    cutting = [sign for sign, rows in rows_of.items() if len(rows[0]) > 1]
    cutting_alike = [sign for sign in cutting if len(set(map(len, rows_of[sign]))) == 1]
    candidates = cutting_alike or cutting
    if len(candidates) > 1:
        candidates = [sign for sign in candidates if _has_edges(file, rows_of[sign], options)]
        usual = DELIMITERS.get(file.ending)
        if not candidates and not cutting_alike and usual in cutting:
            candidates = [usual]
    if len(candidates) == 1:
        return candidates[0]

    # The error says whether a line is cut at all.
    if not cutting:
        what = "no comma, semicolon, tab or | in"
    else:
        what = "cannot tell the delimiter from"
    has_blanks = not cutting and len(lines[0].split()) > 1
    if has_blanks:
        blanks = f", or {option_text('format', 'snap')} where blanks are the delimiter"
    else:
        blanks = ""
    raise EdgeListError(
        f"{file}: {what} the first line {lines[0][:80]!r}; {_advise_delimiter(lines[0])}{blanks}"
    )


def _advise_delimiter(line: str) -> str:
    """Return what an error proposes where a line is not cut: no delimiter cuts a number or a word."""
    if re.fullmatch(r"[0-9]*|[^\W0-9]*", line.strip()):
        return "an edge needs two columns"
    return f"give {option_text('delimiter')}"


def _has_edges(file: DataFile, rows: list[list[str]], options: ReadOptions) -> bool:
    """Return whether the first of some rows, as a delimiter cuts them, holds the names of an edge's
    ends, or begins with two integers.
    """
    # By the values alone: what the caller says of the header is true of any delimiter.
    return bool(holds_names(rows, replace(options, header="auto"), file.partition_names)) or all(
        is_plain_integer(value.strip()) for value in rows[0][:2]
    )


def _read_on_gpu(files: list[DataFile], options: ReadOptions, id_type: str) -> EdgeList | None:
    """Return the edges of files, which cuDF reads as text and which are checked on the GPU; None if
    anything is unclean, so that the reader of the host decides.

    ``id_type`` is an integer type. cuDF's own conversions take any garbage for a number, and it
    does not round every decimal right, so weights that are no integers are left to the host too:
    the same file gives the same bits on both devices.
    """
    import cudf

    frames = []
    rows = []
    columns = []  # of each file, which all agree
    for file in files:
        try:
            with reading(file, "CSV", allow_empty=True):
                layout = detect_layout(file, options, id_type)
        except (NoRowsError, HeaderDoubtError):  # the host reader also asks the rest of the files
            return None
        # All files must have the same columns; else ``agree_with`` raises an error.
        columns.append(layout.columns)
        columns[-1].agree_with(columns[0], file, files[0])
        # The values of a column of a partition are in the names of folders, not in the file.
        if set(layout.columns.roles.values()) & set(file.partition_names):
            return None
        frame = None
        text = _text_on_gpu(cudf, file, layout)
        if text is not None:
            frame = _integers_on_gpu(cudf, text, columns[0], id_type, options.id_type == "auto")
        # A first line that could count vertices and edges is left to the host reader, which looks
        # at the ids.
        if frame is None or could_count(layout.first, len(frame) - 1):
            return None
        frames.append(frame)
        rows.append((file.name, len(frame)))
    if len(frames) == 1:
        frame = frames[0]
    else:
        frame = cudf.concat(frames, ignore_index=True)
    return EdgeList(table=frame, columns=columns_of_all(columns), rows=tuple(rows))


def _text_on_gpu(cudf: Any, file: DataFile, layout: TextLayout) -> Any:
    """Return the columns of the edges as strings, a frame of cuDF with a column per role; None if a
    row is short, long or lacks a value, if there is no row, or if cuDF has another first line than
    the host.

    ``cudf`` is the module. The last column of the file is read, too: it is missing where a row is
    short.
    """
    names = [f"column {i}" for i in range(len(layout.names))]
    beyond = "beyond the last column"  # holds what a row has too much
    # By role, src first. ``written`` returns a column's name as the header has it, with its blanks.
    edge_names = [
        names[layout.names.index(layout.written(name))] for name in layout.columns.roles.values()
    ]
    with file.filesystem.open(file.path, "rb") as source:
        frame = cudf.read_csv(
            # cuDF opens a file of this host itself, by its path
            file.path if file.is_plain_path else source,
            sep=layout.delimiter,
            header=None,
            skiprows=0,
            names=[*names, beyond],
            usecols=list(dict.fromkeys([*edge_names, names[-1], beyond])),
            dtype=dict.fromkeys([*names, beyond], "str"),
            keep_default_na=False,
            na_values=[""],
        )

    # cuDF has read the header as a row of text, which is dropped. It must be the line that the host
    # took for the header. The name of src tells that: if it differs, the readers do not agree on
    # the first line or its text, and the host reads the file.
    if layout.header:
        if frame[edge_names[0]].iloc[0] != layout.written(layout.columns.src):
            return None
        frame = frame.iloc[1:].reset_index(drop=True)
    has_gap = any(frame[name].isnull().any() for name in dict.fromkeys([*edge_names, names[-1]]))
    if len(frame) == 0 or has_gap or frame[beyond].notnull().any():
        return None
    return cudf.DataFrame(
        {role: frame[name] for role, name in zip(layout.columns.roles, edge_names, strict=True)}
    )


def _integers_on_gpu(cudf: Any, text: Any, columns: EdgeColumns, id_type: str, plain: bool) -> Any:
    """Return the strings of ``_text_on_gpu`` as integers, a frame of cuDF with a column per role;
    None unless all are integers that fit their type for certain.

    Ids are of ``id_type``, weights int64. ``plain``: 007 and -0 are no integers, as no type of ids
    was asked for.
    """
    if plain:
        pattern = r"^(0|-?[1-9][0-9]*)$"
    else:
        pattern = r"^-?[0-9]+$"
    numbers = {}
    for role in columns.roles:
        kind = "int64" if role == "weight" else id_type
        # 18 digits fit int64 whatever they are; narrower types are checked after the conversion.
        if not text[role].str.match(pattern).all() or int(text[role].str.len().max()) > 18:
            return None
        wide = text[role].astype("int64")
        narrow = wide.astype(kind)
        # Numbers that do not fit ``kind`` change when they are converted back. Only a negative
        # number that became uint64 does not, so it is looked for.
        if (kind.startswith("u") and (wide < 0).any()) or not (
            narrow.astype("int64") == wide
        ).all():
            return None
        numbers[role] = narrow
    return cudf.DataFrame(numbers)
