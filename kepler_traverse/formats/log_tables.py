"""Folders in which a log says which files, and which rows of them, are live: Delta Lake, Apache
Iceberg and others.

Read as plain files, such a folder gives rows back that were overwritten or deleted. ``log_readers``
reads the tables for which there is a package; all others, and a file inside one, are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import InputError, how_to_install, one_line
from ..runtime.object_stores import URL, listed, open_store, send
from ..runtime.regular_files import open_regular

METADATA = ".metadata.json"  # ending of the metadata of a table of Iceberg
_HEAD = 1 << 16  # bytes of metadata in which the first keys stand
_EXTRA = how_to_install("tables")  # the command that installs the readers of such tables
# A file with one of these endings, such as "edges.csv.gz", is certainly no part of such a table.
# Files of Parquet, ORC and Avro may be.
_NO_DATA = re.compile(
    r"\.(csv|tsv|tab|psv|txt|el|wel|edges|edgelist|snap|mtx|gr|arrows?|ipc|feather)(\.(gz|bz2|zst))?$"
)
# URLs of objects by which a listing of a store shows the root of a table. The first group is the
# root, and the second a key of ``formats`` in ``tables_in_listing``: "s3://b/roads" and
# "_delta_log" in "s3://b/roads/_delta_log/00.json", and "metadata" in
# "s3://b/roads/metadata/v1.metadata.json". No single object shows a table of Paimon, which is known
# by three names together.
_MARKS = re.compile(
    r"(.+)/(_delta_log|\.hoodie|_spark_metadata|metadata(?=/[^/]+\.metadata\.json))/[^/]+"
)


class Folder(Protocol):
    """A folder of some file system."""

    path: str  # on that file system, or the URL

    def has(self, name: str) -> bool:
        """Return whether there is a file or folder of this name, which may have slashes."""

    def names(self, below: str) -> list[str]:
        """Return the names in the folder ``below`` of this one, sorted; ``[]`` if there is none."""

    def head(self, name: str) -> bytes:
        """Return the first ``_HEAD`` bytes of a file, or all if it has fewer."""


@dataclass(frozen=True)
class LogFormat:
    """A format of tables whose live files a log names."""

    name: str  # its key in ``LOG_FORMATS``
    title: str  # what errors call it
    is_in: Callable[[Folder], bool]  # returns whether a folder is the root of such a table
    advice: str  # how to get the rows of a table, for errors


def metadata_in(folder: Folder) -> tuple[str, list[str]]:
    """Return the name of the folder with the metadata of a table of Iceberg, and the names of its
    files of metadata, sorted; ``""`` and ``[]`` if ``folder`` is no such table.

    The folder is ``metadata`` of the table, or the one that ``finish --table iceberg`` puts beside
    the parts of a run.
    """
    for below in ("metadata", "_iceberg/metadata"):
        if folder.has(below):
            names = [name for name in folder.names(below) if name.endswith(METADATA)]
        else:
            names = []
        # Other programs call files so, too, but only metadata of Iceberg say this.
        if names and b'"format-version"' in folder.head(f"{below}/{names[0]}"):
            return below, names
    return "", []


def _advise_spark(name: str) -> str:
    """Return the advice how Spark writes the rows of a table as plain files; ``name`` is what Spark
    calls the format.
    """
    return (
        "write its rows as plain Parquet with Spark: "
        f"spark.read.format({name!r}).load(FOLDER).write.parquet(NEW)"
    )


LOG_FORMATS = {
    form.name: form
    for form in (
        LogFormat(
            "delta",
            "Delta Lake",
            lambda folder: folder.has("_delta_log"),
            f"deltalake reads it: {_EXTRA}",
        ),
        LogFormat(
            "iceberg",
            "Apache Iceberg",
            lambda folder: metadata_in(folder)[1] != [],
            f"pyiceberg reads it: {_EXTRA}",
        ),
        LogFormat(
            "hudi", "Apache Hudi", lambda folder: folder.has(".hoodie"), _advise_spark("hudi")
        ),
        LogFormat(
            "paimon",
            "Apache Paimon",
            lambda folder: (
                folder.has("schema/schema-0") and folder.has("snapshot") and folder.has("manifest")
            ),
            _advise_spark("paimon"),
        ),
        LogFormat(
            "stream",
            "Spark Structured Streaming",
            lambda folder: folder.has("_spark_metadata"),
            _advise_spark("parquet"),
        ),
    )
}


def log_format_in(folder: Folder) -> LogFormat | None:
    """Return the format of the table that a folder is the root of, None if it is a plain folder."""
    return next((form for form in LOG_FORMATS.values() if form.is_in(folder)), None)


class LogFinder:
    """Finds the tables that files and folders of one file system are in; looks at each folder once.

    ``folder_at`` returns the folder at a path.
    """

    def __init__(self, folder_at: Callable[[str], Folder]):
        self._folder_at = folder_at
        # by the paths of folders, the format of the table that each is the root of; None for a
        # plain folder
        self._known: dict[str, LogFormat | None] = {}

    def log_above(self, path: str) -> tuple[str, LogFormat] | None:
        """Return the path of the innermost folder above a file that is the root of a table, and the
        format of that table; None if there is no such folder.

        For a folder the path ends in a slash, and the folder itself may be the root.
        """
        folder = path.rpartition("/")[0]
        # Up to the root of the file system, or the "s3:/" of a URL.
        while folder and not folder.endswith(("/", ":")):
            if folder not in self._known:
                self._known[folder] = log_format_in(self._folder_at(folder))
            form = self._known[folder]
            if form is not None:
                return folder, form
            folder = folder.rpartition("/")[0]
        return None

    def refuse_inside(self, path: str, name: str) -> None:
        """Raise InputError if a file is inside a table with a log; ``name`` is what the error calls
        it. For a folder the path ends in a slash.
        """
        table = self.log_above(path) if may_be_data(path) else None
        if table is not None:
            root, form = table
            raise inside_error(name, root, form)


def inside_error(name: str, root: str, form: LogFormat) -> InputError:
    """Return the error for a file or folder, called ``name``, inside the table at ``root``."""
    return InputError(
        f"{name}: it is inside {root}, a table of {form.title}, whose log says which files and rows are live; "
        "give that folder"
    )


def unread_error(name: str, form: LogFormat, where: str = "") -> InputError:
    """Return the error for a table, called ``name``, that is not read here; ``where`` says from
    which place it is not read, such as " from an object store", or nothing.
    """
    return InputError(
        f"{name}: it is a table of {form.title}, whose log says which files and rows are live, and is not read{where}; "
        f"{form.advice}"
    )


def may_be_data(path: str) -> bool:
    """Return whether a file could belong to a table with a log, by its ending: Parquet, ORC or
    Avro, or any ending but those of text, Arrow and other edge lists.
    """
    return _NO_DATA.search(path.lower()) is None


def refuse_log_table(path: str | os.PathLike[str], what: str) -> None:
    """Raise InputError for a table with a log, or a file inside one, where one plain file of
    ``what``, such as "sources", is wanted.

    In an object store this takes several requests. So readers call it only for a file that is
    Parquet, or cannot be read: text is no part of a table.
    """
    text = os.fspath(path)
    if URL.match(text):
        finder = LogFinder(StoredFolder)
        name = text
    else:
        name = os.path.abspath(os.path.expanduser(text))
        # With a slash at its end, ``log_above`` begins at a folder itself, not at the one above it.
        name += "/" if os.path.isdir(name) else ""
        finder = LogFinder(LocalFolder)
    if not may_be_data(name):
        return
    try:
        table = finder.log_above(name)
    except OSError as error:
        raise InputError(f"{text}: it cannot be read ({one_line(error)})") from None
    if table is None:
        return
    root, form = table
    place = "" if name == f"{root}/" else f"inside {root}, "  # "": it is the table itself
    raise InputError(
        f"{text}: it is {place}a table of {form.title}, whose log says which files and rows are live; the {what} are "
        f"read from one plain file: write its live rows to a Parquet file of their own ({form.advice})"
    )


def refuse_unread_table(
    path: str | os.PathLike[str], what: str, error: OSError | ValueError
) -> None:
    """Raise InputError if a file of ``what``, such as "sources", that could not be read is a table
    with a log, or inside one.

    ``error`` is that of reading it. A store that did not answer is not asked again.
    """
    has_answer = isinstance(error, (FileNotFoundError, ValueError))
    if has_answer or not URL.match(os.fspath(path)):
        refuse_log_table(path, what)


def tables_in_listing(urls: list[str]) -> list[tuple[str, LogFormat]]:
    """Return the URLs of the roots of the tables that a listing of objects shows, sorted, and the
    format of each. ``urls`` are those of the objects.
    """
    formats = {
        "_delta_log": "delta",
        "metadata": "iceberg",
        ".hoodie": "hudi",
        "_spark_metadata": "stream",
    }
    form_of_root = {}
    for url in urls:
        match = _MARKS.fullmatch(url)
        if match is not None:
            root, mark = match.groups()
            form_of_root[root] = LOG_FORMATS[formats[mark]]
    return [(root, form_of_root[root]) for root in sorted(form_of_root)]


class LocalFolder:
    """A folder of this host; its methods are those of ``Folder``."""

    def __init__(self, path: str):
        self.path = path

    def has(self, name: str) -> bool:
        """Return whether there is a file or folder of this name, which may have slashes."""
        return os.path.exists(os.path.join(self.path, name))

    def names(self, below: str) -> list[str]:
        """Return the names in the folder ``below`` of this one, sorted; ``[]`` if there is none."""
        try:
            return sorted(os.listdir(os.path.join(self.path, below)))
        except OSError:
            return []

    def head(self, name: str) -> bytes:
        """Return the first ``_HEAD`` bytes of the file ``name``, which may have slashes, or all if
        it has fewer. A symbolic link stands for the file that it leads to.
        """
        with open_regular(os.path.join(self.path, name), follow=True) as file:
            return file.read(_HEAD)


class OtherFolder:
    """A folder of a file system of fsspec; its methods are those of ``Folder``."""

    def __init__(self, filesystem: Any, path: str):
        self._filesystem = filesystem
        self.path = path

    def has(self, name: str) -> bool:
        """Return whether there is a file or folder of this name, which may have slashes."""
        return bool(self._filesystem.exists(f"{self.path}/{name}"))

    def names(self, below: str) -> list[str]:
        """Return the names in the folder ``below`` of this one, sorted; ``[]`` if there is none."""
        try:
            paths = self._filesystem.ls(f"{self.path}/{below}", detail=False)
        except OSError:
            return []
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def head(self, name: str) -> bytes:
        """Return the first ``_HEAD`` bytes of the file ``name``, which may have slashes, or all if
        it has fewer.
        """
        return bytes(self._filesystem.cat_file(f"{self.path}/{name}", end=_HEAD))


class StoredFolder:
    """The objects below a URL of an object store; its methods are those of ``Folder``."""

    def __init__(self, path: str):
        self.path = path
        self._store: Any = None  # opened when it is first used

    def _objects(self, name: str) -> Iterator[Any]:
        """Yield the object of this name, if there is one, and the objects in a folder of this name
        and in folders within it.
        """
        self._store = self._store or open_store(self.path)
        return listed(self._store, self.path, name)

    def has(self, name: str) -> bool:
        """Return whether there is an object of this name, or one in a folder of this name."""
        return next(self._objects(name), None) is not None

    def names(self, below: str) -> list[str]:
        """Return the names in the folder ``below`` of this one, sorted; ``[]`` if there is none."""
        prefix = f"{self.path.rstrip('/')}/{below}/"
        inside = (stored.url.removeprefix(prefix) for stored in self._objects(below))
        return sorted({name.partition("/")[0] for name in inside})

    def head(self, name: str) -> bytes:
        """Return the first ``_HEAD`` bytes of the object ``name``, which may have slashes, or all
        if it has fewer. OSError if the store does not give them.
        """
        import obstore

        self._store = self._store or open_store(self.path)
        # ``send`` gets the request as a function: it counts each attempt as a "get", and calls the
        # function again after a fault that may pass, such as a lost connection.
        return bytes(
            send("get", lambda: obstore.get_range(self._store, name, start=0, length=_HEAD))
        )
