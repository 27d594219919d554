"""CSV and TSV: with a header or without, any delimiter, compressed or not."""

from __future__ import annotations

import csv
from dataclasses import replace

from ..errors import EdgeListError
from .edges import END_NAMES, EdgeColumns, EdgeList, ReadOptions, choose_columns, read_each
from .files import DataFile, reading
from .text import TextLayout, first_lines, id_type_of, is_number, no_rows, read_lines

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}


def read_csv(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read CSV files, uncompressed ones on a GPU with cuDF if that is the device.

    Parameters
    ----------
    files : list of DataFile
    options : ReadOptions

    Returns
    -------
    EdgeList

    Raises
    ------
    EdgeListError
        Doubt about the header, missing or repeated columns, short or long rows, values that are no ids or weights.
    """
    id_type = options.id_type
    if id_type == "auto":
        with reading(files[0], "CSV", csv.Error):
            id_type = layout_of(files[0], options).id_type
    if options.device == "cuda" and id_type != "string" and not any(file.compression for file in files):
        edges = _read_on_gpu(files, options, id_type)
        if edges is not None:
            return edges
    return read_each(files, options, lambda file, wanted: _read_one(file, wanted, id_type))


def _read_one(file: DataFile, options: ReadOptions, id_type: str) -> EdgeList:
    with reading(file, "CSV", csv.Error):
        layout = replace(layout_of(file, replace(options, id_type=id_type)), found=options.id_type == "auto")
        with file.open_stream() as source:
            return read_lines(file, source, layout)


def layout_of(file: DataFile, options: ReadOptions) -> TextLayout:
    """Find delimiter, header, columns and the type of the ids in the first two lines."""
    with file.open_stream() as source:
        lines = first_lines(source, 2)
    if not lines:
        raise no_rows(file)
    delimiter = options.delimiter or DELIMITERS.get(file.ending) or _only_delimiter(file, lines[0])
    rows = list(csv.reader(lines, delimiter=delimiter))
    if len(rows[0]) < 2:
        raise EdgeListError(f"{file}: no {delimiter!r} in the first line {lines[0][:80]!r}; give the delimiter")
    header = _has_header(file, rows[0], options)
    names = rows[0] if header else [str(i) for i in range(len(rows[0]))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EdgeListError(
            f"{file}: column {twice[0]!r} occurs {names.count(twice[0])} times in the header; rename all but one"
        )
    columns = choose_columns(names, options, file)
    data = rows[1:] if header else rows
    if not data:
        raise no_rows(file)
    found = options.id_type == "auto"
    return TextLayout(
        names=tuple(names),
        columns=columns,
        id_type=id_type_of(file, columns, names, data[0]) if found else options.id_type,
        found=found,
        header=header,
        delimiter=delimiter,
        quotes=True,
    )


def _only_delimiter(file: DataFile, line: str) -> str:
    found = [sign for sign in ",\t;|" if sign in line]
    if len(found) != 1:
        raise EdgeListError(f"{file}: cannot tell the delimiter from the first line {line[:80]!r}; give the delimiter")
    return found[0]


def _has_header(file: DataFile, row: list[str], options: ReadOptions) -> bool:
    """Decide whether the first line holds names; never take the first edge for them."""
    if options.header != "auto":
        return options.header == "yes"
    if any(is_number(value) for value in row[:2]):
        return False
    names = {value.casefold() for value in row}
    if {options.src_column, options.dst_column} <= set(row) or any(names.issuperset(pair) for pair in END_NAMES):
        return True
    raise EdgeListError(
        f"{file}: the first line {','.join(row)[:80]!r} may be a header or an edge; give header='yes' or header='no'"
    )


def _read_on_gpu(files: list[DataFile], options: ReadOptions, id_type: str) -> EdgeList | None:
    """Read with cuDF as text and check it there; None when anything is unclean, so that the host reader decides.

    cuDF's own conversions take any garbage for a number, and it does not round every decimal right, so weights that
    are no integers are left to the host too: the same file gives the same bits on both devices.
    """
    import cudf

    frames, rows, columns = [], [], None
    for file in files:
        wanted = replace(options if columns is None else columns.pinned(options), id_type=id_type)
        with reading(file, "CSV", csv.Error):
            layout = layout_of(file, wanted)
        columns = columns or layout.columns
        text = _text_on_gpu(cudf, file, layout)
        frame = None if text is None else _integers_on_gpu(cudf, text, columns, id_type, options.id_type == "auto")
        if frame is None:
            return None
        frames.append(frame)
        rows.append((file.name, len(frame)))
    frame = frames[0] if len(frames) == 1 else cudf.concat(frames, ignore_index=True)
    return EdgeList(table=frame, columns=columns, rows=tuple(rows))


def _text_on_gpu(cudf, file: DataFile, layout: TextLayout):
    """All wanted columns as strings, or None if a row is short, long or has a gap."""
    names = [f"column {i}" for i in range(len(layout.names))]
    beyond = "beyond the last column"  # holds what a row has too much
    wanted = [names[layout.names.index(name)] for name in layout.columns.roles.values()]
    with file.filesystem.open(file.path, "rb") as source:
        frame = cudf.read_csv(
            file.path if file.is_plain_path else source,
            sep=layout.delimiter,
            header=None,
            skiprows=0,
            names=[*names, beyond],
            usecols=list(dict.fromkeys([*wanted, names[-1], beyond])),
            dtype=dict.fromkeys([*names, beyond], "str"),
            keep_default_na=False,
            na_values=[""],
        )
    if layout.header:
        if frame[wanted[0]].iloc[0] != layout.columns.src:
            return None
        frame = frame.iloc[1:].reset_index(drop=True)
    short = any(frame[name].isnull().any() for name in dict.fromkeys([*wanted, names[-1]]))
    if len(frame) == 0 or short or frame[beyond].notnull().any():
        return None
    return cudf.DataFrame({role: frame[name] for role, name in zip(layout.columns.roles, wanted, strict=True)})


def _integers_on_gpu(cudf, text, columns: EdgeColumns, id_type: str, plain: bool):
    """Strings to integers, or None unless all are clean integers that fit for certain."""
    pattern = r"^(0|-?[1-9][0-9]*)$" if plain else r"^-?[0-9]+$"
    numbers = {}
    for role in columns.roles:
        kind = "int64" if role == "weight" else id_type
        # 18 digits fit int64 whatever they are; narrower types are checked after the conversion.
        if not text[role].str.match(pattern).all() or int(text[role].str.len().max()) > 18:
            return None
        wide = text[role].astype("int64")
        narrow = wide.astype(kind)
        # A negative number would come back from uint64 unchanged.
        if (kind.startswith("u") and (wide < 0).any()) or not (narrow.astype("int64") == wide).all():
            return None
        numbers[role] = narrow
    return cudf.DataFrame(numbers)
