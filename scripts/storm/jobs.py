"""Questions to the job: files and settings of a run, ways to run it, and its output as tables."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import batch_sources, finish, run_job, verify
from scripts.storm import containers
from scripts.storm.answers import Table, without
from scripts.storm.edges import EdgeList
from scripts.storm.library import LIMITS, WITH_OTHER_NAMES
from scripts.storm.questions import ALL, Question

ROOT = Path(__file__).resolve().parents[2]

_RENAMED = {"k": "nearest_k"}
_AS_GIVEN = ("direction", "unreached", "cutoffs", "decay", "of", "endpoints", "normalized", "k")
OF_LOADS = ("flows", "betweenness")
NO_SHARDS = ("nearest", "k_nearest", "extremes")


def search_path() -> str:
    """Return PYTHONPATH for a process of this checkout: its root, and then what it is here."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


@dataclass
class Run:
    """A run of the job: its settings by their keys, its edge list, and its folder.

    Attributes
    ----------
    edges : list of path
    settings : dict
        Without the edge list and the output.
    output : Path
    """

    edges: list[Path]
    settings: dict
    output: Path
    about: str = ""

    @property
    def shown(self) -> str:
        """The settings that the question does not say."""
        of_question = (
            "algorithm",
            "result",
            "sources",
            "targets",
            "directed",
            "cutoffs",
            "values",
            "columns",
        )
        return ", ".join(
            f"{key}={value}" for key, value in self.settings.items() if key not in of_question
        )

    def words(self, config: Path, *more: str) -> list[str]:
        """Write a settings file, and return the command line that reads it."""
        config.write_text(
            "".join(f"{key} = {_toml(value)}\n" for key, value in self.settings.items()),
            encoding="utf-8",
        )
        return [*map(str, self.edges), "--config", str(config), "--output", str(self.output), *more]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Path):
        return json.dumps(str(value))
    return json.dumps(value, ensure_ascii=False)


def _write_table(path: Path, columns: dict[str, list], draw: Random) -> Path:
    """Write a table as Parquet or CSV; return its path. No column of Parquet holds integers of 64
    bits and larger ones.
    """
    integers = [each for values in columns.values() for each in values if isinstance(each, int)]
    as_parquet = draw.random() < 0.5
    if as_parquet and max(integers, default=0) < 1 << 63:
        path = path.with_suffix(".parquet")
        pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
        return path
    path = path.with_suffix(".csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def make_run(edges: EdgeList, question: Question, folder: Path, draw: Random, device: str) -> Run:
    """Write the files of a question, and return a run that answers it."""
    files = folder / "files"
    files.mkdir()
    along = question.options.get("along")
    if along:
        name = "Parquet"
        written = containers.Written(files / "edges.parquet", {})
        pq.write_table(containers.arrow_table(edges, along), written.path)
    else:
        name = draw.choice(list(containers.FILES))
        written = containers.FILES[name](edges, files, draw)
    paths = written.path if isinstance(written.path, list) else [written.path]
    asking = _Asking(question, folder, draw)
    settings = asking.settings
    settings |= {"algorithm": question.algorithm, "device": device, "directed": edges.directed}
    settings["result"] = WITH_OTHER_NAMES.get(question.kind, question.kind)
    settings["report"] = draw.random() < 0.1
    settings |= written.options
    if question.algorithm == "bfs":
        settings.pop("weight_type", None)
    asking.add_options()
    asking.add_sources()
    asking.add_targets()
    asking.add_pairs()
    asking.add_vertices(edges)
    if along:
        settings["along"] = list(along)
    if edges.closed:
        settings["closed"] = folder / "closed.txt"
        settings["closed"].write_text("\n".join(map(str, edges.closed)), encoding="utf-8")
    if asking.roles:
        settings["columns"] = asking.roles
    return Run(paths, settings, folder / "out", name)


def _of_one_type(limits: list) -> list:
    """Return limits as a column of a table can hold them, with the same answers.

    Between 2^53 and 2^63 they are of weights that are integers. Beside them a limit of 2.75 is one of
    2. Beyond they are of weights that are floats.
    """
    if max(limits) <= 2**53:
        return limits
    if max(limits) >= 2**63:
        return [float(limit) for limit in limits]
    return [math.floor(limit) for limit in limits]


class _Asking:
    """The settings of a question, with the tables that they name, and the roles of columns of these tables."""

    def __init__(self, question: Question, folder: Path, draw: Random):
        self.question = question
        self.folder = folder
        self.draw = draw
        self.settings = {}
        self.roles = {}

    def add_options(self) -> None:
        given = self.question.options
        for key in _AS_GIVEN:
            if key in given:
                self.settings[_RENAMED.get(key, key)] = given[key]
        if not given.get("endpoints", True):
            del self.settings["endpoints"]
        if self.question.kind == "extremes":
            self.settings["unconnected"] = "largest"
        if "through" in given:
            self.settings["through"] = self.write("through", {"edge": given["through"]})
        limit = self.question.limit
        if limit is not None and not isinstance(limit, list):
            self.settings[LIMITS[self.question.algorithm]] = limit

    def write(self, name: str, columns: dict[str, list]) -> Path:
        return _write_table(self.folder / name, columns, self.draw)

    def add_ids(self, key: str, name: str, ids: list, roles: dict[str, tuple[str, list]]) -> None:
        """Give ids as a list or in a table, whose other columns have roles."""
        if not roles and self.draw.random() < 0.6:
            self.settings[key] = ids
            return
        self.settings[key] = self.write(name, {key[:-1]: ids} | dict(roles.values()))
        self.roles |= {role: column for role, (column, _) in roles.items()}

    def given(self, option: str, role: str, column: str, kind: str = "") -> dict:
        """Return the role of a column that an option of a kind, or of any, is in."""
        if option in self.question.options and kind in ("", self.question.kind):
            return {role: (column, self.question.options[option])}
        return {}

    def add_sources(self) -> None:
        question = self.question
        if question.sources == ALL:
            self.settings["all_sources"] = True
        elif question.sources is not None:
            roles = self.given("groups", "group", "kind", "k_nearest")
            roles |= self.given("source_weights", "source_weight", "people")
            roles |= self.given("start_costs", "start_cost", "wait")
            if isinstance(question.limit, list):
                roles["limit"] = ("most", _of_one_type(question.limit))
            self.add_ids("sources", "stops", question.sources, roles)

    def add_targets(self) -> None:
        if self.question.targets is not None:
            roles = self.given("groups", "group", "kind", "nearest_targets")
            roles |= self.given("target_weights", "target_weight", "jobs")
            self.add_ids("targets", "clinics", self.question.targets, roles)

    def add_pairs(self) -> None:
        if self.question.pairs is None:
            return
        origins, destinations = ([pair[end] for pair in self.question.pairs] for end in (0, 1))
        columns = {"origin": origins, "destination": destinations}
        if "volumes" in self.question.options:
            columns["riders"] = self.question.options["volumes"]
            self.roles["volume"] = "riders"
        self.settings["pairs"] = self.write("trips", columns)

    def add_vertices(self, edges: EdgeList) -> None:
        values = self.question.options.get("values", {})
        known = (vertex for of_vertices in values.values() for vertex in of_vertices)
        listed = list(dict.fromkeys([*edges.more_vertices, *known]))
        if not listed:
            return
        columns = {"vertex": listed}
        for name, of_vertices in values.items():
            columns[name] = [of_vertices.get(vertex, 0) for vertex in listed]
        if values:
            self.settings["values"] = list(values)
        self.settings["vertices"] = self.write("vertices", columns)


def for_job(question: Question) -> Question:
    """Return a question as the job has it: each source and each target once, and a matrix of all vertices."""
    changed = dict(question.__dict__)
    if isinstance(question.sources, list) and question.kind != "k_nearest":
        changed["sources"] = list(dict.fromkeys(question.sources))
    if question.kind == "matrix":
        changed["targets"] = None
    elif question.targets is not None and question.kind != "nearest_targets":
        changed["targets"] = list(dict.fromkeys(question.targets))
    return Question(**changed)


# Running.


@dataclass(frozen=True)
class Ended:
    """How a command has ended."""

    code: int
    out: str
    err: str
    error: BaseException | None = None


def call(program: Callable[[list[str]], int], words: list[str]) -> Ended:
    """Run a command line in this process."""
    out = io.StringIO()
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program(words)
    return Ended(code, out.getvalue(), err.getvalue())


def run_main(run: Run, folder: Path, *more: str) -> Ended:
    """Run the command line of a run in this process."""
    return call(batch_sources.main, run.words(folder / "run.toml", *more))


def run_python(run: Run, _folder: Path) -> Ended:
    """Run by ``run_job``; the code is that of the command line for the same error."""
    out = io.StringIO()
    settings = dict(run.settings)
    if settings.pop("all_sources", False):
        settings["sources"] = ALL
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            run_job(run.edges, output=run.output, **settings)
    except Exception as error:
        return Ended(code_of(error), "", str(error), error)
    return Ended(0, out.getvalue(), "")


_CODES = {"JobFailedError": 3, "NegativeCycleError": 4, "ClusterError": 1}


def code_of(error: BaseException) -> int:
    """Return the exit code that the command line has for an error; -1 for one that is none of the library's."""
    names = [each.__name__ for each in type(error).__mro__]
    if "KeplerError" not in names:
        return -1
    return next((_CODES[name] for name in names if name in _CODES), 2)


def run_shards(run: Run, folder: Path, count: int) -> Ended:
    """Run all shards in this process, and ``finish``."""
    for index in range(count):
        ended = run_main(run, folder, "--shard", f"{index}/{count}")
        if ended.code:
            return ended
    return call(finish.main, [str(run.output)])


def run_verify(run: Run) -> Ended:
    """Verify the output of a run."""
    return call(verify.main, [str(run.output), *map(str, run.edges), "--device", "cpu"])


def run_finish(run: Run, table: str) -> Ended:
    """Make the parts of a run a table of another format."""
    return call(finish.main, [str(run.output), "--table", table])


def command(run: Run, folder: Path, *more: str) -> list[str]:
    """Return the command that runs a run in a process of its own."""
    return [sys.executable, "-m", "pipelines.batch_sources", *run.words(folder / "run.toml", *more)]


# Outputs.


def part_files(output: Path) -> list[Path]:
    """Return the part files of a run, in the order of their numbers; files may come and go meanwhile."""
    found = [
        Path(place) / name
        for place, _, names in os.walk(output)
        for name in names
        if name.startswith("part-")
    ]
    return sorted(found, key=lambda path: path.name)


def read_part(path: Path) -> pa.Table:
    """Read a part file."""
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    return pq.ParquetFile(path).read()


def _arrow_rows(table: pa.Table) -> Table:
    columns = [column.to_pylist() for column in table.columns]
    return Table(tuple(table.column_names), list(zip(*columns, strict=True)))


def read_output(run: Run, question: Question) -> list[tuple[Table, bool]]:
    """Return what an output says, as the tables that must be equal to the answer, and whether their order matters."""
    if question.kind in OF_LOADS:
        return [(_loads(run, question), True)]
    of_parts = _lines if question.kind == "matrix" else _arrow_rows
    parts = [of_parts(read_part(path)) for path in part_files(run.output)]
    found = Table(parts[0].columns if parts else (), [row for part in parts for row in part.rows])
    if question.kind == "pairs":
        found = without(replace(found, rows=sorted(found.rows)), "pair")
        return [(found, True), (_given_pairs(run, question), True)]
    if question.kind == "paths":
        ordered = sorted(found.rows, key=lambda row: (row[0], row[2]))
        return [(without(replace(found, rows=ordered), "source"), True)]
    return [(found, True)]


def _given_pairs(run: Run, question: Question) -> Table:
    """Return the table of pairs, with ids as the question has them: a CSV file has texts."""
    names = ["distance", *question.options.get("along", ())]
    table = pq.read_table(run.output / "_pairs.pq").select(["origin", "destination", *names])
    found = _arrow_rows(table.rename_columns(["source", "target", *names]))
    kind = type((question.pairs or [("", "")])[0][0])
    rows = [(kind(origin), kind(end), *rest) for origin, end, *rest in found.rows]
    return replace(found, rows=rows)


def _lines(table: pa.Table) -> Table:
    """Return the lines of a part of a matrix; its metadata says how vertices without a path are marked."""
    mark = table.schema.metadata[b"kepler_traverse.unreached"].decode()
    unreached = int(mark) if re.fullmatch(r"-?[0-9]+", mark) else float(mark)
    found = _arrow_rows(table)
    rows = [
        (source, tuple(None if each == unreached else each for each in distances))
        for source, distances in found.rows
    ]
    return Table(found.columns, rows)


def _loads(run: Run, question: Question) -> Table:
    table = pq.read_table(run.output / "_loads.pq")
    if question.kind == "betweenness" and "edge" in table.column_names:
        table = table.drop_columns(["edge"])
    return _arrow_rows(table)


def without_zeros(table: Table) -> Table:
    """Return a table without the rows that carry nothing, as files of loads are."""
    return replace(table, rows=[row for row in table.rows if row[-1]])


def digest(output: Path) -> str:
    """Return the digest of a finished run."""
    return json.loads((output / "_manifest.json").read_text(encoding="utf-8"))["digest"]


def readable(output: Path) -> str:
    """Return what is wrong with a part file that is there, or nothing: at any time each must be whole."""
    for path in part_files(output):
        try:
            read_part(path)
        except Exception as error:
            return f"{path.name} cannot be read: {error}"
    return ""
