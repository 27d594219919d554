"""The site of the documentation builds without a warning and has every public name."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

import kepler_traverse
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser")
NAMED = re.findall(
    r"^   ([a-z][\w.]*|[A-Z]\w*)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_reference_has_each_public_name_once():
    assert set(kepler_traverse.__all__) <= set(NAMED)
    assert len(NAMED) == len(set(NAMED)) > 60


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)), reason="the extra docs is not installed"
)
def test_the_site_builds_without_a_warning(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(
        ROOT,
        source,
        ignore=shutil.ignore_patterns(".git", ".venv*", "out", "api", "*cache*", "shared"),
    )
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        source / "docs",
        source,
        tmp_path / "site",
    ]
    done = ran(command)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "site/index.html").exists()
    for name in NAMED:
        page = (tmp_path / f"site/docs/api/kepler_traverse.{name}.html").read_text(encoding="utf-8")
        assert f'id="kepler_traverse.{name}"' in page, f"{name} has no docstring on its page"
