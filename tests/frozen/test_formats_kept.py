"""Each format of stored graphs, hierarchies and outputs that was ever written: read and verified, or refused by its number.

``formats`` holds a small file of each, by ``FORMAT-WHAT``. They are never written again: a new format adds some. The edge
lists are those that they were made of.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kepler_traverse import bfs_many, load_graph, read_graph, sssp_many
from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.graph.storage import FORMAT as GRAPH_FORMAT
from kepler_traverse.hierarchy.stored import FOLDERS, has_hierarchy
from pipelines import run_job
from pipelines.output.manifest_types import FORMAT as OUTPUT_FORMAT
from pipelines.verify import prove_output

KEPT = Path(__file__).parent / "formats"
GRAPHS, OUTPUTS = (
    sorted(path.name for path in (KEPT / what).iterdir()) for what in ("graphs", "outputs")
)
FIRST_READ = {"graphs": 4, "outputs": 2}  # formats before these were in no version


def format_of(name):
    return int(name.partition("-")[0])


def copied(what, name, folder):
    """A copy that no other user can write to, as a checkout may be."""
    made = Path(shutil.copytree(KEPT / what / name, folder / name))
    for path in (made, *made.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return made


def test_there_is_one_of_each_format():
    assert {format_of(name) for name in GRAPHS} == set(range(1, GRAPH_FORMAT + 1))
    assert {format_of(name) for name in OUTPUTS} == set(range(1, OUTPUT_FORMAT + 1))


@pytest.mark.parametrize("name", GRAPHS)
def test_a_stored_graph_of_each_format_is_the_graph_of_its_edges(tmp_path, name):
    folder = copied("graphs", name, tmp_path)
    assert json.loads((folder / "meta.json").read_text())["format"] == format_of(name)
    if format_of(name) < FIRST_READ["graphs"]:
        said = f"has format {format_of(name)}, and this version reads format .*build it again"
        with pytest.raises(InputError, match=said):
            load_graph(folder)
        return
    loaded = load_graph(folder)
    edges = name.partition("-")[2]
    is_numbers = edges == "numbers"
    built = read_graph(
        KEPT / f"{edges}.csv", directed=not is_numbers, device="cpu", edge_ids=is_numbers
    )
    assert loaded.fingerprint == built.fingerprint == built.derived.without_hierarchy().fingerprint
    assert loaded.report == built.report
    metrics = [metric for metric in FOLDERS if has_hierarchy(folder, metric)]
    assert metrics == (["weights", "hops"] if is_numbers else [])
    ids = loaded.ids.tolist() if is_numbers else loaded.ids.to_pylist()
    assert sssp_many(loaded, ids).equals(sssp_many(built, ids))
    assert bfs_many(loaded, ids).equals(bfs_many(built, ids))
    for metric in metrics:
        search = sssp_many if metric == "weights" else bfs_many
        assert search(loaded, ids, strategy="hierarchy_sweep").equals(search(built, ids))


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_of_each_format_is_verified_and_resumed(tmp_path, monkeypatch, name):
    folder = copied("outputs", name, tmp_path)
    manifest = json.loads((folder / "_manifest.json").read_text())
    assert manifest["format"] == format_of(name)
    for each in KEPT.glob("*.csv"):
        shutil.copy(each, tmp_path)
    monkeypatch.chdir(tmp_path)
    edges = Path(manifest["settings"]["edges"][0]).name
    if format_of(name) < FIRST_READ["outputs"]:
        with pytest.raises(
            OutputError, match=f"in format {format_of(name)}, and this version reads format"
        ):
            prove_output(folder, edges if (tmp_path / edges).exists() else "numbers.csv", "cpu")
        return
    found = prove_output(folder, edges, "cpu").as_dict()
    assert found["valid"], found


@pytest.mark.parametrize("name", ["2-distances", "2-summary"])
def test_a_missing_part_of_an_earlier_output_is_computed_again(tmp_path, monkeypatch, name):
    folder = copied("outputs", name, tmp_path)
    manifest = json.loads((folder / "_manifest.json").read_text())
    shutil.copy(KEPT / "numbers.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    (folder / manifest["parts"][0]["file"]).unlink()
    given = {"distances": {"sources": [1, 3], "directed": False}, "summary": {"all_sources": True}}[
        manifest["result"]
    ]
    options = {
        "algorithm": manifest["algorithm"],
        "result": manifest["result"],
        "device": "cpu",
        "report": False,
        **given,
    }
    again = run_job("numbers.csv", output=folder, resume=True, **options)
    assert (again.computed, again.digest) == (1, manifest["digest"])
