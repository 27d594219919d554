"""Generated pages and records of measurements: how they are read, written, and compared with what is there."""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "scripts" / "templates"


def read_record(path: Path, absent: Any = None) -> Any:
    """Return what a file holds, or ``absent``, if that is given, where there is no file."""
    if absent is not None and not path.exists():
        return absent
    return json.loads(path.read_text(encoding="utf-8"))


def listed(module: str, name: str | None = None) -> dict[str, Any]:
    """Return the tables of the TOML file beside a module (``__file__``), which has its name or another one."""
    path = Path(module)
    file = path.with_name(name or f"{path.stem}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def write_record(path: Path, record: Any) -> None:
    path.write_text(as_text(record) + "\n", encoding="utf-8")


def as_text(value: Any, width: int = 120) -> str:
    """Return JSON of which each line is a row, or what fits into the width: small, and a change is one line.

    A row is what holds single values, and lists of them in the entries of an object.
    """
    line = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if len(line) <= width or is_row(value):
        return line
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}:{as_text(each, width)}" for key, each in value.items()]
        begin, end = "{}"
    else:
        parts = [as_text(each, width) for each in value]
        begin, end = "[]"
    joined = ",\n".join(parts)
    return f"{begin}\n{joined}\n{end}"


def packed(rows: Iterable[dict], names: Sequence[str]) -> tuple[list[dict], list[dict]]:
    """Return what rows have in common under some names, each once, and rows with its places as ``made``."""
    made = []
    own = []
    for row in rows:
        common = {name: row[name] for name in names if name in row}
        if common not in made:
            made.append(common)
        rest = {name: value for name, value in row.items() if name not in names}
        own.append(rest | {"made": made.index(common)})
    return made, own


def unpacked(made: list[dict], row: dict) -> dict:
    """Return a row with what it has in common with others."""
    own = dict(row)
    return own | made[own.pop("made")]


def is_row(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_flat(each) for each in value.values())
    return is_flat(value)


def is_flat(value: Any) -> bool:
    """Whether a value is a single one, or a list of such."""
    if isinstance(value, list):
        return not any(isinstance(each, (list, dict)) for each in value)
    return not isinstance(value, dict)


def between(text: str, begin: str, end: str, lines: str) -> str:
    """Return a text with other lines between two markers; raise ValueError if it lacks one."""
    head, is_begun, rest = text.partition(begin)
    _, is_ended, tail = rest.partition(end)
    if not is_begun or not is_ended:
        raise ValueError(f"the page lacks {begin} or {end}")
    return f"{head}{begin}\n{lines}{end}{tail}"


def filled(template: str, filters: Mapping[str, Callable], **given: Any) -> str:
    """Return the text of a template of scripts/templates: Markdown with loops, conditions and filters of Jinja."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= filters
    return environment.get_template(template).render(**given)


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def by_columns(columns: Mapping[str, Callable[[Any], str]], rows: Iterable[Any]) -> str:
    """Return a Markdown table: a column per entry, its header and the cell of a row.

    Blanks at the end tell headers apart that are equal.
    """
    return table(
        [name.strip() for name in columns],
        [[cell(row) for cell in columns.values()] for row in rows],
    )


def put(
    texts: Mapping[Path, str], program: str, check: bool = False, plots: Path | None = None
) -> int:
    """Write the texts of files, or with ``check`` say which differ; return the exit code: 1 if one differs.

    Plots in the folder ``plots`` that are not among the files are of no page; they are deleted.
    """
    superfluous = [path for path in plots.glob("*.svg") if path not in texts] if plots else []
    stale = [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if check:
        wrong = dict.fromkeys(stale, "stale") | dict.fromkeys(superfluous, "of no page")
        for path, what in wrong.items():
            print(f"{path.name} is {what}: run python -m {program}", file=sys.stderr)
        return int(bool(wrong))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
    for path in superfluous:
        path.unlink()
    return 0


def command(
    program: str, make: Callable[[], Mapping[Path, str]], arguments: list[str] | None = None
) -> int:
    """Write the files that a program generates, or with ``--check`` say which are stale; return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if one is stale"
    )
    return put(make(), program, parser.parse_args(arguments).check)
