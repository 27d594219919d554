"""The measurements on the page for users of SciPy are those of the record."""

import json

import numpy as np
import pytest
import scipy.sparse

from scripts.bench import csgraph as bench
from scripts.docs import scipy_page


def test_the_measurements_beside_scipy_are_current():
    assert scipy_page.main(["--check"]) == 0


def test_a_stale_table_of_measurements_is_noticed(tmp_path, monkeypatch, capsys):
    record = json.loads(scipy_page.RECORD.read_text())
    record["rows"][0]["scipy_seconds"] = 10 * record["rows"][0]["seconds"]
    monkeypatch.setattr(scipy_page, "RECORD", tmp_path / "csgraph.json")
    monkeypatch.setattr(scipy_page, "PAGE", tmp_path / "scipy.md")
    scipy_page.RECORD.write_text(json.dumps(record))
    scipy_page.PAGE.write_text(f"head\n{scipy_page.BEGIN}\nold\n{scipy_page.END}\ntail\n")
    assert scipy_page.main(["--check"]) == 1
    assert "scipy.md is stale" in capsys.readouterr().err
    assert scipy_page.main([]) == 0
    assert scipy_page.main(["--check"]) == 0
    text = scipy_page.PAGE.read_text()
    assert "| 10.00 |" in text
    assert "old" not in text


def test_times_are_recorded_only_if_the_results_agree(monkeypatch):
    matrix = scipy.sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 2], [0, 0, 0]]))
    for count in (1, 2):
        for title, call in bench.calls(count).items():
            row = bench.measure("little", matrix, np.arange(count), title, call, 1)
            assert (row["edges"], row["sources"]) == (2, count)
    monkeypatch.setattr(bench.csgraph, "dijkstra", lambda *_, **__: np.zeros(3))
    with pytest.raises(SystemExit, match="little, dijkstra, 1 sources: the results differ"):
        bench.measure("little", matrix, np.arange(1), "dijkstra", {"name": "dijkstra"}, 1)
