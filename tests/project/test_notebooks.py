"""The notebooks run from their first cell to their last, which checks what they show."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

from tests.conftest import DATA

ROOT = Path(__file__).resolve().parents[2]
SLOW = {"accessibility", "closeness", "cluster", "city"}  # more than 2 s
REAL = "city"  # reads a file of OpenStreetMap, which is no part of the repository
NOTEBOOKS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] if path.stem in SLOW else [])
    for path in sorted((ROOT / "examples/notebooks").glob("*.py"))
]


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_the_notebook_runs_and_its_last_cell_checks_it(path, tmp_path, monkeypatch):
    if path.stem == REAL:
        pytest.importorskip("osmium")
        file = DATA / "osm/porto_portugal.osm.pbf"
        if not file.exists():
            pytest.skip(f"{file} is absent; set KEPLER_DATA")
        monkeypatch.setenv("OSM_FILE", str(file))
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cells[0] == ""
    assert cells[1].startswith(" [markdown]\n# # ")
    assert "\nassert " in cells[-1]
    runpy.run_path(str(path))
    pyplot.close("all")


def test_there_are_six_notebooks():
    assert len(NOTEBOOKS) == 6
