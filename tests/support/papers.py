"""The pages of docs/published and the suite that measures them, in a folder with nothing measured."""

from __future__ import annotations

import json
import sys

import pytest

from scripts.bench import __main__ as bench
from scripts.papers import page as papers_page
from scripts.papers import results

RUN = {
    "kind": "run",
    "date": "2026-11-21",
    "commit": "0123abc",
    "command": "python -m scripts.bench --suite papers",
    "machine": {"cpu": "CPU", "cores": 2, "memory_gib": 8, "gpu": "GPU", "driver": "1.2"},
    "versions": {"python": "3.12.0"},
    "device": "cuda",
    "repeats": 2,
    "seed": 1,
}


def graph_line(name):
    sizes = {"vertices": 1000, "edges": 2500, "directed": False}
    degrees = {"degree_mean": 2.5, "degree_deviation": 1.0, "degree_max": 7}
    return {"kind": "graph", "graph": name, "origin": f"{name}.parquet"} | sizes | degrees


def page_text():
    """All pages, one after the other: the overview first."""
    pages = sorted(papers_page.FOLDER.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    return "\n".join(path.read_text() for path in pages)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder in place of docs/published, with nothing measured; returns how to add lines."""
    monkeypatch.setattr(papers_page, "FOLDER", tmp_path)
    monkeypatch.setattr(papers_page, "MEASURED", tmp_path / "papers.json")
    nothing = {"reading": dict.fromkeys(results.READING, ""), "runs": [], "graphs": {}, "blocks": []}
    papers_page.MEASURED.write_text(results.as_text(nothing))

    def add(lines):
        file = tmp_path / "lines.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return papers_page.main(["add", str(file)])

    return add


@pytest.fixture
def run_suite(tmp_path, monkeypatch):
    """Runs the suite with flags; returns exit code and lines."""

    def run(*flags):
        output = tmp_path / "papers.jsonl"
        usual = ["--graphs", str(tmp_path), "--output", str(output), "--sources", "2", "--commit", "0123abc"]
        monkeypatch.setattr(sys, "argv", ["__main__.py", "--suite", "papers", *usual, *flags])
        return bench.main(), [json.loads(line) for line in output.read_text().splitlines()]

    return run
