"""The parts of a finished run as a table of Delta Lake or Apache Iceberg (extra ``tables``).

Nothing is rewritten: a table is metadata beside the parts, which names them and has the counts and
the smallest and largest values of their footers. The packages of the two formats write it and read
it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kepler_traverse.errors import InputError, OutputError, how_to_install, one_line
from kepler_traverse.formats.parquet_footer import read_schema

from .delta_log import compare_delta
from .iceberg_log import compare_iceberg
from .layout import Layout, partition_name
from .manifest_types import Manifest
from .run_folder import read_layout
from .schemas import OUTPUT_SCHEMAS
from .store import Store
from .table_logs import DELTA_LOG, HINT, ICEBERG_LOG, differing_log, stray_file

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # "-12"; of 18 digits at most, to fit int64


class TableFormat(NamedTuple):
    """How parts become a table, and how it is read back."""

    log: str  # folder with the table's log, beside the parts
    mark: re.Pattern[str]  # a file in it that is there once the table is
    needs: tuple[str, ...]  # modules of the extra
    unfit_names: re.Pattern[str]  # what the format has in no name of a column
    # ``write(store, root, schema, layout)`` makes the table of the parts below the URL ``root``
    write: Callable[[Store, str, pa.Schema, Layout], None]
    compare: Callable[[Store, Manifest], None]  # raises DifferenceError, see ``differing_log``

    @property
    def folder(self) -> str:
        """Folder of the table in the folder of the run."""
        return self.log.partition("/")[0]

    def is_there(self, store: Store) -> bool:
        """Whether a store has a table of this format."""
        with contextlib.suppress(NotADirectoryError):
            return any(map(self.mark.fullmatch, store.names(self.log)))
        return False


def _write_delta(_store: Store, root: str, _schema: pa.Schema, layout: Layout) -> None:
    """Make a Delta table of the parts below the URL ``root``, with their partitions.

    Its package finds the parts and their schema itself, so the store and the schema are not used.
    """
    from deltalake import Schema, convert_to_deltalake

    column, values = layout.partition_values()
    if not column:
        convert_to_deltalake(root)
        return
    # Values are integers if all look so, as readers of Hive's layout guess.
    kind = pa.string()
    if all(map(_INTEGER.fullmatch, values)):
        kind = pa.int64()
    partitions = Schema.from_arrow(pa.schema({column: kind}))
    convert_to_deltalake(root, partition_by=partitions, partition_strategy="hive")


def _write_iceberg(store: Store, root: str, schema: pa.Schema, layout: Layout) -> None:
    """Make an Iceberg table of the parts below the URL ``root``, in the folder "_iceberg" of the
    ``store``. ``schema`` is that of the parts, and ``layout`` has their names.

    The hint, by which readers find it, is written last, so that they see it whole or not at all.
    """
    hint = _make_iceberg(f"{root}/_iceberg", root, schema, layout)
    store.put_new(f"{ICEBERG_LOG}/{HINT}", hint.encode())


def _make_iceberg(place: str, root: str, schema: pa.Schema, layout: Layout) -> str:
    """Make an Iceberg table, in the folder of the URL ``place``, of the parts below the URL
    ``root``.

    Return the hint to it: the name of its metadata file without the ending.
    """
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("run", warehouse=place, **_s3_options())
    catalog.create_namespace("run")
    table = catalog.create_table("run.parts", schema, location=place)
    table.add_files([f"{root}/{name}" for name in layout.names()])
    return str(table.metadata_location).rpartition("/")[2].removesuffix(".metadata.json")


def _compare_iceberg(store: Store, manifest: Manifest) -> None:
    """Compare an Iceberg table with one that is made of the same parts in a temporary folder.

    Raises DifferenceError: they differ.
    """
    root = _root_url(store)
    schema = _make_schema(store, manifest, "iceberg")
    layout = read_layout(manifest)

    def make(place: str) -> None:
        """Make the table at another place, and write its hint."""
        again = Path(place.removeprefix("file://")) / "metadata" / HINT
        again.write_text(_make_iceberg(place, root, schema, layout))

    compare_iceberg(store, manifest, make=make, address=root)


def _s3_options() -> dict[str, str]:
    """Return the options of pyiceberg for S3 that it does not read from the environment itself."""
    names = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.region": "AWS_REGION"}
    return {key: os.environ[name] for key, name in names.items() if name in os.environ}


TABLE_FORMATS = {
    "delta": TableFormat(
        log=DELTA_LOG,
        mark=re.compile(r"\d{20}\.json"),  # a commit of Delta Lake, named by 20 digits
        needs=("deltalake",),
        unfit_names=re.compile(r"[ ,;{}()\n\t=]"),
        write=_write_delta,
        compare=compare_delta,
    ),
    "iceberg": TableFormat(
        log=ICEBERG_LOG,
        mark=re.compile(re.escape(HINT)),  # which is written last
        needs=("pyiceberg.table", "pyiceberg.catalog.memory", "pyiceberg.io.pyarrow"),
        unfit_names=re.compile(r"(?!)"),  # matches nothing: all names fit
        write=_write_iceberg,
        compare=_compare_iceberg,
    ),
}


def refuse_without_packages(name: str) -> None:
    """Raise InputError, which names the extra, if the packages of a format are not installed."""
    for module in TABLE_FORMATS[name].needs:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise InputError(
                f"a table of {name} needs {error.name}, which is not installed: "
                f"{how_to_install('tables')}"
            ) from None


def register(store: Store, manifest: Manifest, name: str) -> bool:
    """Make the parts of a finished run a table, unless they are one already.

    The table is then compared with the parts in either case.

    Parameters
    ----------
    store : Store
        The output folder of the run.
    manifest : Manifest
        Lists its parts.
    name : str
        Format of the table, a key of ``TABLE_FORMATS``.

    Returns
    -------
    bool
        Whether the parts were such a table already.

    Raises
    ------
    InputError
        The packages of the format are not installed, or it cannot hold the parts.
    OutputError
        The folder has a table of another format or of other files, or the table cannot be written.
    """
    refuse_without_packages(name)
    # The folder may have one table; a table of another format is not replaced.
    formats = [known for known, form in TABLE_FORMATS.items() if form.is_there(store)]
    existing = formats[0] if formats else None
    if existing not in (None, name):
        other = TABLE_FORMATS[existing].folder
        raise OutputError(
            f"{store}: the parts are a table of {existing} already; take "
            f"that, or delete {other} first"
        )
    if existing is None:
        _make_table(store, manifest, name)

    difference = differing_table(store, manifest, name)
    if difference:
        folder = TABLE_FORMATS[name].folder
        raise OutputError(f"{store}/{folder}: {difference}; delete {folder}, and run finish again")
    return existing is not None


def _make_table(store: Store, manifest: Manifest, name: str) -> None:
    """Make the parts a table of the format ``name``.

    It is no error if another process does so meanwhile. Raises OutputError: other files are in the
    place of the table, or it cannot be written.
    """
    form = TABLE_FORMATS[name]
    if form.folder in store.names():
        stray = stray_file(store, form.log)
        if stray:
            raise OutputError(f"{store}/{stray}; delete {form.folder}, and run finish again")
    schema = _make_schema(store, manifest, name)
    try:
        form.write(store, _root_url(store), schema, read_layout(manifest))
    except Exception as error:  # of any kind, since packages raise errors of their own
        if not form.is_there(store):
            why = one_line(error, 400) or type(error).__name__
            raise OutputError(f"{store}: the table cannot be written: {why}") from None


def differing_table(store: Store, manifest: Manifest, name: str) -> str:
    """Describe how the table of the format ``name`` differs from the parts of the run, with file
    and field; ``""`` if it does not.

    Raises InputError: the packages of the format are not installed.
    """
    refuse_without_packages(name)
    form = TABLE_FORMATS[name]
    return differing_log(store, manifest, form.log, form.compare)


def wrong_tables(store: Store, manifest: Manifest) -> dict[str, str]:
    """Return what is wrong with the tables of a run, by the names of their folders; an empty dict
    if nothing is.

    A folder without a complete table must have no files of others. Raises InputError: the packages
    of a format are not installed.
    """
    wrong: dict[str, str] = {}
    for name, form in TABLE_FORMATS.items():
        if form.folder not in store.names():
            continue
        if form.is_there(store):
            fault = differing_table(store, manifest, name)
        else:
            fault = stray_file(store, form.log)
        if fault:
            wrong[form.folder] = fault
    return wrong


def table_address(store: Store, name: str) -> str:
    """Return the path or URL by which readers open the table of the format ``name``."""
    if name == "iceberg":
        return f"{store}/_iceberg"
    return str(store)


def _root_url(store: Store) -> str:
    """Return the URL of a store, without a slash at its end, as tables name it: of a folder on a
    disk one that begins with "file://".
    """
    if store.is_local:
        return f"file://{store.path.absolute()}"
    return str(store)


def _make_schema(store: Store, manifest: Manifest, name: str) -> pa.Schema:
    """Return the schema of the parts, from the footer of the first; raise InputError if a table of
    the format ``name`` cannot hold them.
    """
    kind = OUTPUT_SCHEMAS[manifest["result"]]
    if kind.adds_up:
        raise InputError(
            f"{store}: parts of --result {kind.name} have shares of the "
            "loads, which are no table; take _loads.pq"
        )
    if kind.suffix == "arrow":
        raise InputError(
            f"{store}: parts of --result {kind.name} are Arrow files; a "
            f"table of {name} has Parquet files"
        )

    column, values = read_layout(manifest).partition_values()
    if column and name == "iceberg":
        raise InputError(
            f"{store}: Iceberg takes partitions from columns of the files, "
            f"which lack {column!r}; take --table delta"
        )
    for text in (column, *values):
        # Called with a value alone, ``partition_name`` returns "=" and the value, with escapes.
        if partition_name("", text) != f"={text}":
            raise InputError(
                f"{store}: deltalake does not find the folder of the "
                f"partition {text!r}; rename that value"
            )
    if store.is_local and re.search("[#?%]", _root_url(store)):
        raise InputError(
            f"{store}: a table cannot name files of a folder with #, ? "
            "or % in its path; move the folder"
        )

    schema = read_schema(store.parquet_footer(manifest["parts"][0]["file"])).remove_metadata()
    _refuse_unfit_columns(store, schema, name)
    return schema


def _refuse_unfit_columns(store: Store, schema: pa.Schema, name: str) -> None:
    """Raise InputError for a column that a table of the format ``name`` cannot have: one of
    unsigned integers, of an unfit name, or two whose names differ by case alone.
    """
    for field in schema:
        if pa.types.is_unsigned_integer(field.type):
            raise InputError(
                f"{store}: column {field.name!r} has type {field.type}, and a table of {name} has no unsigned integers; "
                "run again with --id-type string, or int64 if all ids are below 2^63"
            )
        if TABLE_FORMATS[name].unfit_names.search(field.name):
            raise InputError(
                f"{store}: column {field.name!r}: names of columns of "
                f"{name} have no blanks and none of ,;{{}}()=; rename it"
            )

    # Readers of tables take names that differ by case alone for one.
    counts = Counter(column.lower() for column in schema.names)
    for lower, count in counts.items():
        if count > 1:
            alike = [repr(column) for column in schema.names if column.lower() == lower]
            raise InputError(
                f"{store}: columns {' and '.join(alike)} are one to a table, which ignores case; "
                "rename one"
            )
