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
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import batch_sources, finish, run_job, verify
from scripts.storm import containers
from scripts.storm.answers import Table
from scripts.storm.edges import EdgeList
from scripts.storm.questions import ALL, Question

ROOT = Path(__file__).resolve().parents[2]

_LIMITS = {"bfs": "max_depth", "sssp": "cutoff"}
_RENAMED = {"k": "nearest_k"}
_AS_GIVEN = ("direction", "unreached", "cutoffs", "decay", "of", "endpoints", "normalized", "k")
OF_LOADS = ("flows", "betweenness")
NO_SHARDS = ("nearest", "k_nearest", "extremes")
_NAMES_OF_RESULTS = {"k_nearest": "nearest", "nearest_targets": "nearest"}


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
    settings: dict[str, Any]
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


def _write_table(path: Path, columns: dict[str, list[Any]], draw: Random) -> Path:
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
        pq.write_table(containers.arrow_table(edges, along), files / "edges.parquet")
        name = "Parquet"
        written = containers.Written(files / "edges.parquet", {})
    else:
        name = draw.choice(list(containers.FILES))
        written = containers.FILES[name](edges, files, draw)
    paths = written.path if isinstance(written.path, list) else [written.path]
    result = _NAMES_OF_RESULTS.get(question.kind, question.kind)
    settings: dict[str, Any] = {"algorithm": question.algorithm, "device": device, "result": result}
    settings |= {"directed": edges.directed, "report": draw.random() < 0.1}
    settings |= {
        key: value
        for key, value in written.options.items()
        if key != "weight_type" or question.algorithm == "sssp"
    }
    settings["columns"] = {}
    _add_options(settings, question)
    _add_limit(settings, question)
    _add_sources(settings, question, folder, draw)
    _add_targets(settings, question, folder, draw)
    _add_pairs(settings, question, folder, draw)
    _add_vertices(settings, edges, question, folder, draw)
    if along:
        settings["along"] = list(along)
    if edges.closed:
        settings["closed"] = folder / "closed.txt"
        settings["closed"].write_text("\n".join(map(str, edges.closed)), encoding="utf-8")
    if "through" in question.options:
        settings["through"] = _write_table(
            folder / "through", {"edge": question.options["through"]}, draw
        )
    if not settings["columns"]:
        del settings["columns"]
    return Run(paths, settings, folder / "out", name)


def _add_options(settings: dict[str, Any], question: Question) -> None:
    for key in _AS_GIVEN:
        if key in question.options:
            settings[_RENAMED.get(key, key)] = question.options[key]
    if settings.get("endpoints") is False:
        del settings["endpoints"]
    if question.kind == "extremes":
        settings["unconnected"] = "largest"


def _add_limit(settings: dict[str, Any], question: Question) -> None:
    if question.limit is not None and not isinstance(question.limit, list):
        settings[_LIMITS[question.algorithm]] = question.limit


def _of_one_type(limits: list[Any]) -> list[Any]:
    """Return limits as a column of a table can hold them, with the same answers.

    Between 2^53 and 2^63 they are of weights that are integers. Beside them a limit of 2.75 is one of
    2. Beyond they are of weights that are floats.
    """
    if max(limits) <= 2**53:
        return limits
    if max(limits) >= 2**63:
        return [float(limit) for limit in limits]
    return [math.floor(limit) for limit in limits]


def _add_sources(settings: dict[str, Any], question: Question, folder: Path, draw: Random) -> None:
    if question.sources is None:
        return
    if question.sources == ALL:
        settings["all_sources"] = True
        return
    columns: dict[str, list[Any]] = {"source": question.sources}
    roles = {}
    if isinstance(question.limit, list):
        columns["most"] = _of_one_type(question.limit)
        roles["limit"] = "most"
    if "groups" in question.options and question.kind == "k_nearest":
        columns["kind"] = question.options["groups"]
        roles["group"] = "kind"
    if "source_weights" in question.options:
        columns["people"] = question.options["source_weights"]
        roles["source_weight"] = "people"
    if not roles and draw.random() < 0.6:
        settings["sources"] = question.sources
        return
    settings["sources"] = _write_table(folder / "stops", columns, draw)
    settings["columns"] |= roles


def _add_targets(settings: dict[str, Any], question: Question, folder: Path, draw: Random) -> None:
    if question.targets is None:
        return
    columns: dict[str, list[Any]] = {"target": question.targets}
    roles = {}
    if "groups" in question.options and question.kind == "nearest_targets":
        columns["kind"] = question.options["groups"]
        roles["group"] = "kind"
    if "target_weights" in question.options:
        columns["jobs"] = question.options["target_weights"]
        roles["target_weight"] = "jobs"
    if not roles and draw.random() < 0.6:
        settings["targets"] = question.targets
        return
    settings["targets"] = _write_table(folder / "clinics", columns, draw)
    settings["columns"] |= roles


def _add_pairs(settings: dict[str, Any], question: Question, folder: Path, draw: Random) -> None:
    if question.pairs is None:
        return
    columns: dict[str, list[Any]] = {
        "origin": [origin for origin, _ in question.pairs],
        "destination": [destination for _, destination in question.pairs],
    }
    if "volumes" in question.options:
        columns["riders"] = question.options["volumes"]
        settings["columns"]["volume"] = "riders"
    settings["pairs"] = _write_table(folder / "trips", columns, draw)


def _add_vertices(
    settings: dict[str, Any], edges: EdgeList, question: Question, folder: Path, draw: Random
) -> None:
    values = question.options.get("values", {})
    listed = list(
        dict.fromkeys(
            [*edges.more_vertices, *(vertex for known in values.values() for vertex in known)]
        )
    )
    if not listed:
        return
    columns: dict[str, list[Any]] = {"vertex": listed}
    for name, known in values.items():
        columns[name] = [known.get(vertex, 0) for vertex in listed]
    if values:
        settings["values"] = list(values)
    settings["vertices"] = _write_table(folder / "vertices", columns, draw)


def for_job(question: Question) -> Question:
    """Return a question as the job has it: each source and each target once, and a matrix of all vertices."""
    changed: dict[str, Any] = dict(question.__dict__)
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
    settings = {key: value for key, value in run.settings.items() if key != "all_sources"}
    if run.settings.get("all_sources"):
        settings["sources"] = ALL
    for key in ("sources", "targets"):
        if isinstance(settings.get(key), Path):
            settings[key] = Path(settings[key])
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
        by_pair = sorted(found.rows)
        return [
            (_without(Table(found.columns, by_pair), "pair"), True),
            (_given_pairs(run, question), True),
        ]
    if question.kind == "paths":
        ordered = sorted(found.rows, key=lambda row: (row[0], row[2]))
        return [(_without(Table(found.columns, ordered), "source"), True)]
    return [(found, True)]


def _without(table: Table, name: str) -> Table:
    place = table.columns.index(name)
    columns = table.columns[:place] + table.columns[place + 1 :]
    return Table(columns, [row[:place] + row[place + 1 :] for row in table.rows])


def _given_pairs(run: Run, question: Question) -> Table:
    """Return the table of pairs, with ids as the question has them: a CSV file has texts."""
    names = ["distance", *question.options.get("along", ())]
    table = pq.read_table(run.output / "_pairs.pq").select(["origin", "destination", *names])
    found = _arrow_rows(table.rename_columns(["source", "target", *names]))
    kind = type((question.pairs or [("", "")])[0][0])
    return Table(
        found.columns, [(kind(origin), kind(end), *rest) for origin, end, *rest in found.rows]
    )


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
    return Table(
        table.columns, [row for row in table.rows if row[-1]], table.close, table.lost, table.floor
    )


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
