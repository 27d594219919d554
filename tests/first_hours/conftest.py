"""A fresh environment with the wheel, in which a new user types; packages come from this environment, without a network."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT, ran, skip_where_nothing_is_installed

PAGE = ROOT / "docs" / "testing.md"


def succeed(command: list[Any], **options: Any) -> str:
    """Run a command that must succeed; return what it has written to stdout."""
    done = ran(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


class User:
    """A person with a folder and a fresh environment; ``print`` of pytest shows how long the first right answer took."""

    def __init__(self, name: str, folder: Path, wheel: Path) -> None:
        self.name = name
        self.folder = folder
        self.here = folder / "work"
        self.here.mkdir()
        succeed([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
        self.programs = folder / "venv" / "bin"
        (packages,) = (folder / "venv").glob("lib/python*/site-packages")
        # a line of a .pth file adds a folder without the .pth files in it, and so no checkout
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        installing = ["install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", wheel]
        succeed([sys.executable, "-m", "pip", "--python", self.programs / "python", *installing])
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }
        self.began = time.perf_counter()

    def run(self, *words: Any, **environment: str) -> Any:
        """Run a program of the environment, in the user's folder."""
        program, *others = words
        own = self.environment | environment
        return ran([self.programs / program, *others], cwd=self.here, env=own)

    def python(self, code: str, **environment: str) -> str:
        """Run code that must succeed; return what it has printed."""
        done = self.run("python", "-c", code, **environment)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def command(self, *words: Any, **environment: str) -> str:
        """Run ``kepler-traverse``, which must succeed; return all that it has said."""
        done = self.run("kepler-traverse", *words, **environment)
        assert done.returncode == 0, done.stderr
        return str(done.stdout) + str(done.stderr)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    skip_where_nothing_is_installed()
    folder = tmp_path_factory.mktemp("wheel")
    building = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT]
    succeed(building)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture
def user(request: Any, tmp_path: Path, wheel: Path) -> User:
    """A new user with the wheel; the code is that of the wheel."""
    found = User(request.node.name, tmp_path, wheel)
    where = found.python("import kepler_traverse; print(kepler_traverse.__file__)")
    assert str(tmp_path) in where
    found.began = time.perf_counter()
    return found


def row_of(name: str, page: str) -> str:
    """The row of a test in the table of the page, which begins with the test's name as words."""
    words = name.removeprefix("test_").replace("_", "")
    rows = re.findall(r"^\| .* \| [\d.]+ \| [\d.]+ \|$", page, re.MULTILINE)
    (found,) = (row for row in rows if re.sub(r"[^a-z0-9]", "", row.lower()).startswith(words))
    return found


@pytest.fixture
def answered(user: User, capsys: Any) -> Any:
    """What a test calls at its first right answer; it prints the seconds, or writes them to their page."""
    row = row_of(user.name, PAGE.read_text(encoding="utf-8"))

    def tell() -> None:
        seconds = time.perf_counter() - user.began
        load = os.getloadavg()[0]
        with capsys.disabled():
            print(f"\n{user.name}: first right answer after {seconds:.1f} s (load {load:.1f})")
        if os.environ.get("KEPLER_RECORD"):
            title = row.split(" | ")[0]
            page = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(page.replace(row, f"{title} | {seconds:.1f} | {load:.1f} |"), "utf-8")

    return tell


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port on loopback at which no process listens."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
