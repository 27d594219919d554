"""Entries of the changelog: one file per change, moved under a version when it is released."""

import pytest

from scripts.docs import changelog
from tests.support.processes import ROOT

BEFORE = """# Changelog

What it is.

## Unreleased

### Added

- One.

### Fixed

- Two,
  in two lines.

## 0.1.0

### Added

- Three.
"""
AFTER = """# Changelog

What it is.

## Unreleased

## 0.1.0 - 2026-12-01

### Added

- One.
- Four.
- Three.

### Removed

- Five.

### Fixed

- Two,
  in two lines.
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs" / "changes").mkdir(parents=True)
    (tmp_path / "docs" / "changes" / "README.md").write_text("How.\n")
    (tmp_path / "docs" / "changes" / "four.added.md").write_text("Four.\n")
    (tmp_path / "docs" / "changes" / "five.removed.md").write_text("Five.\n")
    (tmp_path / "CHANGELOG.md").write_text(BEFORE)
    return tmp_path


def test_entries_are_moved_under_a_version(folder, capsys):
    assert changelog.main([], folder) == 0
    assert capsys.readouterr().out == "### Added\n\n- Four.\n\n### Removed\n\n- Five.\n"
    assert changelog.main(["cut", "0.1.0", "--date", "2026-12-01"], folder) == 0
    assert (folder / "CHANGELOG.md").read_text() == AFTER
    assert [path.name for path in (folder / "docs" / "changes").iterdir()] == ["README.md"]


def test_a_version_without_entries_or_that_is_released_is_refused(folder, capsys):
    assert changelog.main(["cut", "0.1.0", "--date", "2026-12-01"], folder) == 0
    for version, said in (("0.2.0", "nothing is unreleased"), ("0.1.0", "is released")):
        assert changelog.main(["cut", version], folder) == 1
        assert said in capsys.readouterr().err
    assert (folder / "CHANGELOG.md").read_text() == AFTER


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("six.md", "Six.", "NAME.SECTION.md"),
        ("six.better.md", "Six.", "the sections are added"),
        ("six.fixed.md", "- Six.", "without a bullet"),
        ("six.fixed.md", "", "must hold sentences"),
    ],
)
def test_a_file_that_is_no_entry_is_named_and_nothing_is_changed(folder, capsys, name, text, said):
    (folder / "docs" / "changes" / name).write_text(text)
    assert changelog.main(["cut", "0.1.0"], folder) == 1
    error = capsys.readouterr().err
    assert name in error
    assert said in error
    assert (folder / "CHANGELOG.md").read_text() == BEFORE


def test_the_changelog_and_the_entries_of_this_repository_can_be_cut():
    entries = changelog.read_entries(ROOT / "docs" / "changes")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = changelog.cut(text, entries or {"Added": "- One.\n"}, "99.0.0", "2026-12-01")
    lines = {line for line in text.splitlines() if line.startswith("- ")}
    assert lines <= set(released.splitlines())
