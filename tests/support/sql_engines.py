"""Engines of SQL that tests ask: SQLite, DuckDB, polars, a PostgreSQL of their own, and Spark."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.processes import SILENT, ran

UNPRIVILEGED = 65534  # the user and the group that own nothing on Linux


class Sqlite:
    """Tables are frames."""

    def __init__(self, tables: dict[str, pd.DataFrame]):
        self._connection = sqlite3.connect(":memory:")
        for name, frame in tables.items():
            frame.to_sql(name, self._connection, index=False)

    def ask(self, text: str, **values) -> list[tuple]:
        return self._connection.execute(text, values).fetchall()


class Duckdb:
    """Tables are frames; ``views`` makes others."""

    def __init__(self, tables: dict[str, pd.DataFrame], views: str = ""):
        self._connection = pytest.importorskip("duckdb").connect()
        if views:
            self._connection.execute(views)
        for name, frame in tables.items():
            self._connection.register(name, frame)

    def ask(self, text: str, **values) -> list[tuple]:
        return self._connection.execute(re.sub(r":(\w+)", r"$\1", text), values).fetchall()


class Polars:
    """Tables are lazy frames."""

    def __init__(self, tables: dict[str, Any]):
        polars = pytest.importorskip("polars")
        made = {
            name: polars.from_pandas(table) if isinstance(table, pd.DataFrame) else table
            for name, table in tables.items()
        }
        self._context = polars.SQLContext(made)

    def ask(self, text: str, **values) -> list[tuple]:
        written = re.sub(r":(\w+)", lambda found: str(values[found[1]]), text)
        return self._context.execute(written, eager=True).rows()


class Spark:
    """Tables are Parquet files of frames."""

    def __init__(self, tables: dict[str, pd.DataFrame], folder: Path):
        session = pytest.importorskip("pyspark.sql").SparkSession
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java")
        builder = session.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "1")
        self.session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for name, frame in tables.items():
            frame.to_parquet(folder / f"{name}.parquet")
            read = self.session.read.parquet(str(folder / f"{name}.parquet"))
            read.createOrReplaceTempView(name)

    def ask(self, text: str, **values) -> list[tuple]:
        return [tuple(row) for row in self.session.sql(text, args=values).collect()]


class Postgres:
    """Tables are frames, in a server that listens on a socket in a folder."""

    def __init__(self, tables: dict[str, pd.DataFrame], program: list[str]):
        self._program = program
        for name, frame in tables.items():
            columns = ", ".join(f"{column} bigint" for column in frame.columns)
            self._run(f"CREATE TABLE {name} ({columns})")
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                frame.to_csv(file, index=False, header=False)
                file.flush()
                self._run(f"\\copy {name} FROM '{file.name}' (FORMAT csv)")

    def _run(self, text: str) -> str:
        done = ran([*self._program, "-c", text])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, text: str, **values) -> list[tuple]:
        names = list(dict.fromkeys(re.findall(r":(\w+)", text)))
        for place, name in enumerate(names, start=1):
            text = text.replace(f":{name}", f"${place}")
        given = ", ".join(str(values[name]) for name in names)
        asked = f"PREPARE asked AS {text}; EXECUTE asked{f'({given})' if names else ''}"
        found = self._run(asked)
        rows = list(csv.reader(io.StringIO(found)))
        # a row of one null is an empty line
        return [tuple(int(each) if each else None for each in row or [""]) for row in rows]


@contextlib.contextmanager
def postgres_server() -> Iterator[list[str]]:
    """Start a server of one test, and yield the command line of a client of it."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or next((str(each / "initdb") for each in folders), "")
    client = shutil.which("psql")
    if not found or client is None:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(found).parent
    user = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if os.geteuid() == 0:  # as which a server refuses to run
            os.chown(place, UNPRIVILEGED, UNPRIVILEGED)
            ids = [f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
            user = ["setpriv", *ids]
        data = str(place / "data")
        make = [*user, programs / "initdb", "-D", data, "-U", "asked", "--auth=trust", "--no-sync"]
        _do(make, place)
        options = f"-c listen_addresses= -c unix_socket_directories={place} -c fsync=off"
        control = [*user, programs / "pg_ctl", "-D", data, "-w"]
        _do([*control, "-o", options, "-l", place / "log", "start"], place)
        try:
            yield [client, "-X", "-q", "--csv", "-t", "-h", name, "-U", "asked", "-d", "postgres"]
        finally:
            _do([*control, "-m", "immediate", "stop"], place)


def _do(command: list, folder: Path) -> None:
    assert ran(command, cwd=folder, **SILENT).returncode == 0, command
