"""The table of doors of commands: every argument and option of ``assignment`` and ``serve``, with what it takes.

Options with a kind behind a colon take ids, numbers, tables or files of the user's. ``FORMS`` have values of each,
which have the result of the first one, or are refused before anything is written.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from tests.doors.containers import EITHER, EQUAL, REFUSED

COMMANDS = {
    "assignment": "edges:links result trips:trips output resume verify src:name dst:name cost free_flow_time:value "
    "capacity:value b:value power:value alpha:value volume:name value_of_time:number distance_weight:number "
    "use classes:classes closed:closed gap:number method max_iterations:count skims:names select_link:rows device debug",
    "serve": "folder:labels inward:labels host port:count tls_cert:file tls_key:file token_file:file debug",
}
LINKS: dict[str, list[Any]] = {
    "src": [30, 10, 20, 10],
    "dst": [10, 20, 40, 30],
    "free_flow_time": [1.0, 2.0, 3.0, 1.0],
    "b": [0.15, 0.15, 0.15, 0.15],
    "power": [4.0, 4.0, 4.0, 4.0],
    "toll": [0.0, 1.0, 0.0, 0.0],
    "capacity": [10.0, 10.0, 10.0, 10.0],
    "length": [2.0, 2.0, 2.0, 2.0],
}
TRIPS: dict[str, list[Any]] = {
    "origin": [30, 10], "destination": [40, 20], "volume": [5.0, 3.0]
}  # fmt: skip
CLASSES: dict[str, list[Any]] = {"volume": ["volume"], "value_of_time": [2.0]}
_NO_FILES = ("no/such.csv", ".", "/dev/null", "")


class Value(NamedTuple):
    """A value of an option, and what must come of it."""

    text: str
    must: str = EQUAL


def links(folder: Path) -> list[Value]:
    return [*_tables(folder, "l", LINKS, ("src", "dst")), *_broken(folder)]


def trips(folder: Path) -> list[Value]:
    return [*_tables(folder, "t", TRIPS, ("origin", "destination")), *_broken(folder)]


def classes(folder: Path) -> list[Value]:
    wrong = [{"volume": ["x"]}, {"value_of_time": ["a"]}, {"value_of_time": [-1.0]}, {"other": [1]}]
    return [
        Value(_write(folder / "c.csv", CLASSES)),
        Value(_write(folder / "c.parquet", CLASSES)),
        *(
            Value(_write(folder / f"c{i}.csv", CLASSES | each), REFUSED)
            for i, each in enumerate(wrong)
        ),
        *_broken(folder),
    ]


def closed(folder: Path) -> list[Value]:
    texts = {"a.txt": "30\n", "b.txt": "# a\n30 # b\n\n", "c.txt": "x\n", "d.txt": "030\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [
        Value("30"),
        Value(" 30"),
        Value("30,30"),
        *(Value(str(folder / name)) for name in ("a.txt", "b.txt")),
        Value(_write(folder / "v.parquet", {"vertex": [30]})),
        Value(_write(folder / "f.parquet", {"vertex": [30.0]}), REFUSED),
        Value(_write(folder / "s.parquet", {"vertex": ["30"]}), REFUSED),
        *(Value(str(folder / name), REFUSED) for name in ("c.txt", "d.txt")),
        *(Value(text, REFUSED) for text in ("99", "x", "030", "+30", "3_0", "30.0", "30,", "٣٠")),
        *_broken(folder),
    ]


def of_text(right: tuple[str, ...], wrong: tuple[str, ...]) -> Any:
    """Return values of a text, of which the right ones have the result of the first."""
    return lambda _: [*map(Value, right), *(Value(text, REFUSED) for text in wrong)]


_NO_NUMBERS = ("x", "", "nan", "inf", "-1", "1e400", "1_0", "٣")
FORMS: dict[str, Any] = {
    "assignment.edges": links,
    "assignment.trips": trips,
    "assignment.classes": classes,
    "assignment.closed": closed,
    "assignment.src": of_text(("src",), ("x", "", "dst")),
    "assignment.dst": of_text(("dst",), ("x", "", "src")),
    "assignment.volume": of_text(("volume",), ("x", "", "1")),
    "assignment.free_flow_time": of_text(("2", "2.0", "length", "+2", "2e0"), _NO_NUMBERS),
    "assignment.capacity": of_text(("2", "2.0", "length"), ("0", *_NO_NUMBERS)),
    "assignment.b": of_text(("2", "length"), _NO_NUMBERS),
    "assignment.power": of_text(("2", "length"), _NO_NUMBERS),
    "assignment.alpha": of_text(("2", "length"), ("1", *_NO_NUMBERS)),
    "assignment.value_of_time": of_text(("2", "2.0"), ("0", *_NO_NUMBERS)),
    "assignment.distance_weight": of_text(("2", "2.0"), _NO_NUMBERS),
    "assignment.gap": of_text(("1e-3", "0.001", ".001"), ("0", *_NO_NUMBERS)),
    "assignment.max_iterations": of_text(("9",), ("0", "1.0", "1e3", *_NO_NUMBERS)),
    "assignment.skims": of_text(("length", " length"), ("x", "", "length,length", "origin")),
    "assignment.select_link": of_text(("1", " 1", "1,1"), ("4", "-1", "x", "", "1.0", "1_0", "٣")),
}
# What other options an option needs.
WITH = {
    "assignment.src": ["--dst", "dst"],
    "assignment.dst": ["--src", "src"],
    "assignment.alpha": ["--cost", "conical"],
}


def _write(path: Path, table: dict[str, list[Any]]) -> str:
    frame = pd.DataFrame(table)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return str(path)


def _tables(
    folder: Path, name: str, table: dict[str, list[Any]], ids: tuple[str, str]
) -> list[Value]:
    """Files of a table, and such as hold other ids or values."""
    number = next(each for each in reversed(table) if each not in ids and each != "length")
    texts = {each: [str(i) for i in table[each]] for each in ids}
    wrong = {
        "floats": {ids[0]: [float(i) for i in table[ids[0]]]},
        "null": {ids[0]: [*table[ids[0]][:-1], None]},
        "text": {number: ["x"] * len(table[number])},
        "nan": {number: [None, *table[number][1:]]},
        "below": {number: [-1.0, *table[number][1:]]},
        "infinite": {number: [float("inf"), *table[number][1:]]},
    }
    return [
        Value(_write(folder / f"{name}.csv", table)),
        Value(_write(folder / f"{name}.parquet", table)),
        Value(_write(folder / f"{name}-text.parquet", table | texts), EITHER),
        *(
            Value(_write(folder / f"{name}-{how}.parquet", table | each), REFUSED)
            for how, each in wrong.items()
        ),
        Value(_write(folder / f"{name}-empty.csv", {each: [] for each in table}), REFUSED),
        Value(_write(folder / f"{name}-other.csv", {"a": [1], "b": [2]}), REFUSED),
    ]


def _broken(folder: Path) -> list[Value]:
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "short.parquet").write_bytes(b"PAR1" + bytes(40))
    names = [str(folder / "binary.csv"), str(folder / "short.parquet"), *_NO_FILES]
    return [Value(name, REFUSED) for name in names]


_FOLDER = tempfile.TemporaryDirectory(prefix="doors-commands-")


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(dir=_FOLDER.name))
