"""Pictures of the documentation and of the demonstration: current, well-formed, and of the right streets."""

from __future__ import annotations

import itertools
import re
import shutil
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from pipelines import run_job
from scripts import demo_picture
from scripts.docs import pictures
from scripts.make_graphs import lattice
from scripts.road_map import BANDS, Mark, Streets, road_map

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def town():
    return pictures.Town()


def streets_of(picture):
    """The number of streets of each colour."""
    paths = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("fill") == "none"]
    return {path.get("stroke"): len(re.findall("M", path.get("d"))) for path in paths}


def test_pictures_are_current_and_a_stale_one_is_found(monkeypatch, tmp_path, capsys):
    assert pictures.main(["--check"]) == 0
    shutil.copytree(pictures.FOLDER, tmp_path / "pictures")
    monkeypatch.setattr(pictures, "FOLDER", tmp_path / "pictures")
    stale = tmp_path / "pictures/nearest.svg"
    stale.write_text(stale.read_text().replace(">A<", ">B<"))
    assert pictures.main(["--check"]) == 1
    assert "nearest.svg: stale" in capsys.readouterr().err
    (tmp_path / "pictures/paths.svg").unlink()
    assert pictures.main([]) == 0
    assert pictures.main(["--check"]) == 0


def test_isochrones_have_the_streets_of_each_band(town):
    graph = nx.Graph()
    offsets, targets, weights = town.graph.offsets, town.graph.targets, town.graph.weights
    for v in range(town.graph.n_vertices):
        for i in range(offsets[v], offsets[v + 1]):
            graph.add_edge(v, int(targets[i]), weight=int(weights[i]))
    far = nx.single_source_dijkstra_path_length(graph, pictures.HOME)
    ends = zip(town.src.tolist(), town.dst.tolist(), strict=True)
    farther = [max(far.get(one, np.inf), far.get(other, np.inf)) for one, other in ends]
    bands = itertools.pairwise([0, *pictures.CUTOFFS])
    expected = [sum(low < each <= high for each in farther) for low, high in bands]
    found = streets_of(pictures.isochrones(town))
    assert [found[colour] for colour in BANDS] == expected


def test_a_map_escapes_its_texts_and_keeps_its_proportions():
    ends = np.array([[0, 0, 10, 0], [10, 0, 10, 5]], float)
    picture = road_map("a < b", [Streets("<&>", "#000000", ends)], [Mark(0, 0, 'x"<y>')], width=224)
    root = ElementTree.fromstring(picture)
    assert [text.text for text in root.iter(f"{SVG}text")] == ["a < b", "<&>", 'x"<y>']
    (path,) = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    ends = [tuple(map(int, end.split())) for end in re.findall(r"[ML](\d+ \d+)", path.get("d"))]
    (left, top), (right, bottom) = ends[0], ends[3]
    assert (right - left, bottom - top) == (200, 100)


def test_the_demonstration_draws_a_tree_of_its_last_run(tmp_path, capsys):
    src, dst = lattice(4, demo_picture.COLUMNS, 0.0, 1)
    made = run_job(
        {"src": src, "dst": dst},
        output=tmp_path / "run",
        directed=False,
        sources=[300, 5],
        result="predecessors",
        device="cpu",
        report=False,
    )
    demo_picture.main([str(made.path), str(tmp_path / "tree.svg")])
    assert str(tmp_path / "tree.svg") in capsys.readouterr().out
    reached = made.to_pandas().query("source == 300")["vertex"].size
    assert sum(streets_of((tmp_path / "tree.svg").read_text()).values()) == reached - 1
