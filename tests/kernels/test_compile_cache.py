"""Compiled code is stored for later processes, even if neither the package nor the home folder is writable."""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import sys
import threading
from pathlib import Path

import numba
import pytest
from numba.core import caching

from kepler_traverse.cpu import numba_cache
from kepler_traverse.cpu.compiled import is_compiled
from tests.support.processes import ran, ran_after

ROOT = Path(__file__).parents[2]
# Root may write anywhere, unless that right is dropped.
UNPRIVILEGED = (
    ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]
    if os.geteuid() == 0
    else []
)
SEARCH = """
import numpy as np
import kepler_traverse
from kepler_traverse import bfs, graph_from_edges
graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
assert bfs(graph, 0, strategy="queue")["distance"].tolist() == [0, 1, 2]
from kepler_traverse.bfs import cpu_steps
print(len(cpu_steps.push_serial.stats.cache_hits), len(cpu_steps.push_serial.stats.cache_misses))
"""


@pytest.fixture
def sealed(tmp_path):
    """Return a read-only copy of the package."""
    if UNPRIVILEGED and not shutil.which("setpriv"):
        pytest.skip("root may write anywhere, and there is no setpriv to drop that right")
    package = tmp_path / "package"
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kepler_traverse", package / "kepler_traverse", ignore=left_out)
    for place in [package, *package.rglob("*")]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    yield package
    for place in [package, *package.rglob("*")]:
        place.chmod(0o755)


def search(package, temporary):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(package),
        "HOME": str(package),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*UNPRIVILEGED, sys.executable, "-c", SEARCH]
    done = ran(command, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


@pytest.mark.exhaustive
def test_a_read_only_package_and_home_still_keep_compiled_code(sealed, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    assert search(sealed, temporary) == (0, 1)
    assert search(sealed, temporary) == (1, 0)
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o077 == 0


SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
sys.path.insert(0, sys.argv[1])
from one import add, subtract
from another import double
print(add(3, 4), subtract(3, 4), double(3), len(add.stats.cache_misses))
"""
COMPILED = "from kepler_traverse.cpu.compiled import njit\n"
ADD = "@njit(cache=True)\ndef add(a, b): return a + b\n"
SUBTRACT = "@njit(cache=True)\ndef subtract(a, b): return a - b\n"
DOUBLE = "@njit(cache=True)\ndef double(a): return 2 * a\n"


def test_a_full_disk_costs_the_kept_code_alone(tmp_path):
    for folder, text in (("one", ADD + SUBTRACT), ("another", DOUBLE)):
        (tmp_path / "code" / folder).mkdir(parents=True)
        (tmp_path / "code" / folder / "__init__.py").write_text(COMPILED + text)
    kept = tmp_path / "kept"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(ROOT)}
    done = ran([sys.executable, "-c", SMALL_FILES, tmp_path / "code"], env=environment)
    assert (done.returncode, done.stdout) == (0, "7 -1 6 1\n"), done.stderr
    notices = [line for line in done.stderr.splitlines() if "UserWarning" in line]
    assert len(notices) == 2, "one of each folder"
    assert len(set(notices)) == 2
    assert all("compiled code cannot be kept there: File too large; " in line for line in notices)
    assert not [path for path in kept.rglob("*") if path.is_file() and path.stat().st_size]


def test_a_writable_package_is_left_to_numba(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    numba_cache.choose_folder()
    assert numba.config.CACHE_DIR == ""


def test_a_folder_that_others_can_write_to_is_not_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(numba_cache.tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / f"kepler_traverse-{os.getuid()}"
    theirs.mkdir()
    theirs.chmod(0o777)
    taken = numba_cache._private_temporary_folder()
    assert taken != theirs
    assert taken.stat().st_mode & 0o077 == 0


def test_a_link_in_its_place_is_not_followed(monkeypatch, tmp_path):
    monkeypatch.setattr(numba_cache.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"kepler_traverse-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert numba_cache._private_temporary_folder().name.startswith("kepler_traverse-")
    assert numba_cache._private_temporary_folder().resolve() != tmp_path / "elsewhere"


def test_processes_that_compile_at_the_same_time_do_not_take_each_others_code(tmp_path):
    """All interleavings of two processes that save one function, compiled for different types."""

    class Process(caching.IndexDataCacheFile):
        """Waits before each step until it is its turn."""

        def __init__(self, turns, number):
            super().__init__(str(tmp_path), "function", "stamp")
            self._turns, self._number = turns, number

        def _load_index(self):
            self._turns.wait_for(self._number)
            return super()._load_index()

        def _save_index(self, overloads):
            self._turns.wait_for(self._number)
            super()._save_index(overloads)

        def _save_data(self, name, data):
            self._turns.wait_for(self._number)
            super()._save_data(name, data)

    class Turns:
        """The order in which two threads go on; a thread that is done leaves its turns to the other."""

        def __init__(self, order):
            self._left, self._done, self._changed = list(order), set(), threading.Condition()

        def wait_for(self, number):
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._left or self._left[0] == number or self._left[0] in self._done
                )
                while self._left and self._left[0] in self._done:
                    self._left.pop(0)
                if self._left:
                    self._left.pop(0)
                self._changed.notify_all()

        def end(self, number):
            with self._changed:
                self._done.add(number)
                self._changed.notify_all()

    for order in sorted(set(itertools.permutations([0, 0, 0, 1, 1, 1]))):
        for path in tmp_path.iterdir():
            path.unlink()
        turns = Turns(order)

        def save(number, turns=turns):
            Process(turns, number).save(("types", number), f"code {number}")
            turns.end(number)

        saving = [threading.Thread(target=save, args=(number,)) for number in (0, 1)]
        for thread in saving:
            thread.start()
        for thread in saving:
            thread.join()
        found = [
            caching.IndexDataCacheFile(str(tmp_path), "function", "stamp").load(("types", i))
            for i in (0, 1)
        ]
        assert all(code in (None, f"code {i}") for i, code in enumerate(found)), order
        assert any(found)


OWN_TYPES = """
import sys
sys.path.insert(0, sys.argv[1])
open(sys.argv[1] + "/own.py", "w").write(sys.argv[2])
import own
print(own.first(own.{name}(3, 4)))
"""
OWN = """
from typing import NamedTuple
from kepler_traverse.cpu.compiled import njit
class {name}(NamedTuple):
    a: int
    b: int
@njit(cache=True)
def first(pair):
    return pair.{field}
"""


def test_an_index_that_names_a_class_that_is_gone_is_made_anew(tmp_path):
    # of other lengths, as Python compiles no file anew that has the same time and length
    scripts = [
        (OWN_TYPES.format(name=name), [tmp_path, OWN.format(name=name, field=field)], {})
        for name, field in (("Old", "a"), ("Newer", "b"))
    ]
    old, newer = ran_after("import kepler_traverse.cpu", tmp_path, *scripts)
    assert (old.stdout, newer.stdout) == ("3\n", "4\n"), old.stderr + newer.stderr


def test_each_folder_with_compiled_code_is_listed():
    package = Path(numba_cache.__file__).parents[1]
    compiled = {
        path.parent for path in package.rglob("*.py") if "njit(cache=True" in path.read_text()
    }
    assert compiled <= set(numba_cache._folders())


def test_code_that_was_kept_is_known_before_it_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "doubles.py").write_text(
        "from kepler_traverse.cpu.compiled import njit\n"
        "@njit(cache=True)\ndef double(x):\n    return 2 * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    double = importlib.import_module("doubles").double
    assert not is_compiled(double)
    assert double(4) == 8
    assert is_compiled(double)
    again = importlib.reload(sys.modules["doubles"]).double
    assert not again.signatures
    assert is_compiled(again)
    monkeypatch.delitem(sys.modules, "doubles")
