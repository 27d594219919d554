"""Entries of the changelog, a file per change in ``docs/changes/``: print them, or put them into CHANGELOG.md."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "Unreleased"
_NAME = re.compile(r"[a-z0-9-]+\.(?P<section>[a-z]+)\.md")

Entries = dict[str, str]  # the list of entries, as Markdown, by section


class FragmentError(ValueError):
    """A file of ``docs/changes/`` is no entry."""


def fragments(folder: Path) -> list[Path]:
    """Return the files of entries, by name."""
    return sorted(path for path in folder.iterdir() if path.name != "README.md")


def read_entries(folder: Path) -> Entries:
    """Return the entries of a folder.

    Raises FragmentError: a file has another name, or does not hold one entry.
    """
    entries = {}
    for path in fragments(folder):
        named = _NAME.fullmatch(path.name)
        section = named["section"].capitalize() if named else ""
        if section not in SECTIONS:
            sections = ", ".join(SECTIONS).lower()
            raise FragmentError(f"{path.name} must be NAME.SECTION.md; the sections are {sections}")
        text = " ".join(path.read_text(encoding="utf-8").split())
        if not text.endswith((".", ").")) or text.startswith(("-", "#", "*")):
            raise FragmentError(f"{path.name} must hold sentences, without a bullet or a heading")
        entries[section] = entries.get(section, "") + f"- {text}\n"
    return entries


def split(changelog: str) -> tuple[str, list[tuple[str, Entries]]]:
    """Return what stands before the first version, and the entries of each version by its heading."""
    head, *versions = re.split(r"^## (.*)\n", changelog, flags=re.MULTILINE)
    return head, [
        (heading, _sections(text))
        for heading, text in zip(versions[::2], versions[1::2], strict=True)
    ]


def _sections(text: str) -> Entries:
    _, *sections = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
    return {
        name: f"{entries.strip()}\n"
        for name, entries in zip(sections[::2], sections[1::2], strict=True)
    }


def joined(*parts: Entries) -> Entries:
    """Return the entries of all parts, by section in the usual order."""
    return {
        section: "".join(part.get(section, "") for part in parts)
        for section in SECTIONS
        if any(section in part for part in parts)
    }


def rendered(entries: Entries) -> str:
    return "".join(f"\n### {section}\n\n{text}" for section, text in entries.items())


def cut(changelog: str, entries: Entries, version: str, date: str) -> str:
    """Return the changelog with all that is unreleased under a version.

    A version that is there without a date was never released: its entries come last.
    """
    head, versions = split(changelog)
    unreleased = next((found for heading, found in versions if heading == UNRELEASED), {})
    before = next((found for heading, found in versions if heading == version), {})
    if any(heading.startswith(f"{version} - ") for heading, _ in versions):
        raise FragmentError(f"CHANGELOG.md has a version {version} that is released; take another")
    released = joined(unreleased, entries, before)
    if not released:
        raise FragmentError("nothing is unreleased")
    others = [(name, found) for name, found in versions if name not in (UNRELEASED, version)]
    parts = [(UNRELEASED, {}), (f"{version} - {date}", released), *others]
    return head + "\n".join(f"## {heading}\n{rendered(found)}" for heading, found in parts)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.docs.changelog", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("show", "cut"), default="show")
    parser.add_argument("version", nargs="?", help="for cut: as 0.2.0")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    given = parser.parse_args(arguments)
    if (given.command == "cut") == (given.version is None):
        parser.error("cut takes a version, and show takes none")
    file = root / "CHANGELOG.md"
    try:
        entries = read_entries(root / "docs" / "changes")
        if given.command == "show":
            print(rendered(joined(entries)).lstrip("\n"), end="")
            return 0
        file.write_text(
            cut(file.read_text(encoding="utf-8"), entries, given.version, given.date),
            encoding="utf-8",
        )
    except FragmentError as error:
        print(error, file=sys.stderr)
        return 1
    for path in fragments(root / "docs" / "changes"):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
