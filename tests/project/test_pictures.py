"""Maps of results and the generated town: streets in the right colours, pictures of the documentation that are current."""

import re
import shutil
import sys
from collections import Counter

import matplotlib
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib import pyplot

from kepler_traverse import (
    InputError,
    UnknownVertexError,
    datasets,
    graph_from_edges,
    paths,
    sssp_many,
)
from kepler_traverse.datasets import town
from kepler_traverse.maps import explore, plot
from scripts.docs import pictures
from tests.support import tiers

TRIANGLE = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "a"], "weight": [5, 7, 20]})
PLACES = pd.DataFrame(
    {"vertex": ["a", "b", "c", "far"], "x": [0.0, 1.0, 0.0, 9.0], "y": [0.0, 0.0, 1.0, 9.0]}
)


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    matplotlib.use("agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def here():
    return town()


@pytest.fixture(scope="module")
def roads(here):
    return graph_from_edges(here.roads)


def streets_of(axes):
    """The ends of the coloured streets, sorted, by colour."""
    found = {}
    for lines in axes.collections[1:]:
        if hasattr(lines, "get_segments"):
            for line, colour in zip(lines.get_segments(), lines.get_colors(), strict=True):
                found.setdefault(tuple(np.round(colour, 3)), []).append(tuple(map(tuple, line)))
    return found


def test_town_is_strongly_connected_the_same_each_time_and_as_described(here):
    again = town()
    assert all(one.equals(other) for one, other in zip(here[:3], again[:3], strict=True))
    assert not town(2).roads.equals(here.roads)
    graph = nx.from_pandas_edgelist(here.roads, "src", "dst", "weight", create_using=nx.DiGraph)
    assert graph.number_of_edges() == len(here.roads)
    assert nx.is_strongly_connected(graph)
    assert sorted(graph) == here.junctions["vertex"].tolist()
    assert any(not graph.has_edge(v, u) for u, v in graph.edges)
    assert set(here.schools["vertex"]) < set(graph)
    assert here.schools["vertex"].is_unique


def test_isochrones_colour_each_street_by_the_band_of_its_farther_end(here, roads):
    cutoffs = [150, 300, 600]
    found = sssp_many(roads, [here.station], result="isochrones", cutoffs=cutoffs)
    axes = plot(found, here.junctions, graph=roads)
    graph = nx.from_pandas_edgelist(here.roads, "src", "dst", "weight", create_using=nx.DiGraph)
    far = nx.single_source_dijkstra_path_length(graph, here.station, cutoff=600)
    farther = [max(far[u], far[v]) for u, v in graph.edges if u in far and v in far]
    expected = np.histogram(farther, [0, *(cutoff + 0.5 for cutoff in cutoffs)])[0].tolist()
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "up to 150",
        "up to 300",
        "up to 600",
    ]
    streets = streets_of(axes)
    colours = [tuple(np.round(line.get_color(), 3)) for line in legend.get_lines()]
    assert [len(streets[colour]) for colour in colours] == expected


def test_nearest_sources_colour_the_streets_inside_a_group(here, roads):
    schools = here.schools["vertex"].tolist()[:3]
    found = sssp_many(roads, schools, result="nearest")
    axes = plot(found, here.junctions, graph=roads)
    owner = dict(zip(found["vertex"], found["source"], strict=True))
    inside = Counter(
        owner[u]
        for u, v in zip(here.roads["src"], here.roads["dst"], strict=True)
        if owner[u] == owner[v]
    )
    assert sorted(map(len, streets_of(axes).values())) == sorted(inside.values())


# the farther end has 25, 27, 27 or 12
@pytest.mark.parametrize(("directed", "streets"), [(True, [1, 2]), (False, [3])])
def test_values_of_all_sources_colour_streets_or_points(directed, streets):
    graph = graph_from_edges(TRIANGLE, directed=directed)
    summary = sssp_many(graph, "all", result="summary")
    axes = plot(summary, PLACES, graph=graph, column="eccentricity")
    assert sorted(map(len, streets_of(axes).values())) == streets
    points = plot(
        summary, PLACES.iloc[::-1], column="eccentricity", ax=pyplot.figure().add_subplot()
    )
    (dots,) = [each for each in points.collections if not hasattr(each, "get_segments")]
    norm = matplotlib.colors.Normalize(summary["eccentricity"].min(), summary["eccentricity"].max())
    np.testing.assert_allclose(
        dots.get_facecolors(),
        matplotlib.colormaps["viridis"](norm(summary["eccentricity"].astype(float))),
    )
    assert dots.get_offsets().tolist() == PLACES[["x", "y"]][:3].values.tolist()


@pytest.mark.parametrize("result", ["isochrones", "nearest", "summary", "flows"])
def test_the_unit_and_the_title_are_said_and_the_legend_covers_no_street(result):
    graph = graph_from_edges(TRIANGLE)
    options = {"cutoffs": [5, 12]} if result == "isochrones" else {}
    sources = ["a"] if result == "isochrones" else "all"
    found = sssp_many(graph, sources, result=result, **options)
    axes = plot(found, PLACES, graph=graph, unit="minutes", title="A triangle")
    assert axes.get_title() == "A triangle"
    legend = axes.get_legend()
    if legend is None:
        said = axes.figure.axes[-1].get_ylabel()
    else:
        said = legend.get_title().get_text()
        axes.figure.canvas.draw()
        assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
    assert said.endswith(" (minutes)")


ASKED = {
    "k nearest": {"sources": ["a", "b"], "result": "nearest", "k": 2},
    "k nearest of groups": {
        **{"sources": ["a", "b", "c"], "result": "nearest", "k": 2},
        "groups": ["one", "one", "other"],
    },
    "targets": {"sources": "all", "result": "nearest", "k": 2, "targets": ["a", "b"]},
    "cutoffs": {"sources": "all", "result": "within", "cutoffs": [5, 12]},
    "several sources": {"sources": ["a", "b"]},
    "isochrones": {"sources": ["a", "b"], "result": "isochrones", "cutoffs": [5, 12]},
}


@pytest.mark.parametrize("kind", ASKED)
def test_the_advice_for_a_vertex_that_comes_twice_can_be_followed(kind):
    asked = dict(ASKED[kind])
    frame = sssp_many(graph_from_edges(TRIANGLE), asked.pop("sources"), **asked)
    with pytest.raises(InputError) as refused:
        plot(frame, PLACES)
    names = re.findall(r"frame\['(\w+)'\] == \.\.\.", str(refused.value))
    advice = str(refused.value).partition(": ")[2]
    for name in names:
        advice = advice.replace(f"'{name}'] == ...", f"'{name}'] == frame['{name}'].iloc[0]")
    assert names
    plot(eval(advice, {"frame": frame}), PLACES)


@pytest.mark.parametrize("n", [2, 10, 11, 20, 21, 60, 200])
def test_no_two_groups_have_the_same_colour(n):
    frame = pd.DataFrame({"vertex": range(n), "source": range(n)})
    places = pd.DataFrame({"vertex": range(n), "x": range(n), "y": range(n)})
    dots = plot(frame, places).collections[0]
    assert len({tuple(np.round(255 * colour)) for colour in dots.get_facecolors()}) == n


def test_milliseconds_are_shown_as_minutes():
    graph = graph_from_edges(TRIANGLE.assign(weight=[300_000, 90_000, 1]))
    shown = {"unit": "minutes", "per_unit": 60_000}
    bands = sssp_many(graph, ["a"], result="isochrones", cutoffs=[300_000, 450_000])
    legend = plot(bands, PLACES, graph=graph, **shown).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["up to 5", "up to 7.5"]
    bar = plot(sssp_many(graph, ["a"]), PLACES, **shown).figure.axes[-1]
    assert bar.get_ylim() == (0, 6.5)
    with pytest.raises(InputError, match="per_unit must be above 0"):
        plot(bands, PLACES, per_unit=0)


def test_paths_are_lines_from_origin_to_destination(here, roads):
    origins, destinations = [10, 300], [4500, 2300]
    found = paths(roads, (origins, destinations))
    axes = plot(found, here.junctions, graph=roads)
    at = here.junctions[["x", "y"]].to_numpy()
    assert [tuple(line.get_xydata()[0]) for line in axes.lines] == [tuple(at[v]) for v in origins]
    assert [tuple(line.get_xydata()[-1]) for line in axes.lines] == [
        tuple(at[v]) for v in destinations
    ]
    assert sum(len(line.get_xydata()) for line in axes.lines) == len(found)


def test_edges_are_as_wide_as_their_loads_and_the_largest_is_on_top():
    flows = sssp_many(graph_from_edges(TRIANGLE), "all", result="flows", source_weights=[1, 2, 4])
    lines = plot(flows, PLACES).collections[0]
    at = {vertex: [x, y] for vertex, x, y in PLACES.itertuples(index=False)}
    edges = [("b", "c"), ("a", "b"), ("c", "a")]  # they carry 1 + 2 + 2, 1 + 1 + 4 and 4 + 4 + 2
    assert [line.tolist() for line in lines.get_segments()] == [
        [at[src], at[dst]] for src, dst in edges
    ]
    np.testing.assert_allclose(lines.get_linewidths(), [2.8, 3.3, 5.3])
    shades = matplotlib.colormaps["viridis"]([0.0, 0.2, 1.0])
    np.testing.assert_allclose(lines.get_colors(), shades)
    with pytest.raises(InputError, match="a row per edge; draw it by"):
        explore(flows, PLACES)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            {"frame": TRIANGLE.assign(weight=list("xyz"))},
            InputError,
            "'weight' of frame has no numbers",
        ),
        ({"column": "bend"}, InputError, "frame has no column 'bend'"),
        ({"frame": PLACES[["vertex"]]}, InputError, "no column but 'vertex'"),
        (
            {"frame": pd.DataFrame({"vertex": ["a", "a"], "distance": [1, 2]})},
            InputError,
            "a vertex twice",
        ),
        ({"vertices": PLACES[1:]}, UnknownVertexError, "'a'"),
        ({"vertices": PLACES[1:], "graph": graph_from_edges(TRIANGLE)}, UnknownVertexError, "'a'"),
        ({"graph": graph_from_edges([1], [2])}, InputError, "of no edge of the graph"),
        ({"graph": 3}, InputError, "graph must be a Graph"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change, error, said):
    frame = pd.DataFrame({"vertex": ["a", "b"], "distance": [1, 2]})
    given = {"frame": frame, "vertices": PLACES} | change
    with pytest.raises(error, match=said):
        plot(given.pop("frame"), given.pop("vertices"), **given)


@pytest.mark.parametrize("graph", [3, graph_from_edges([1], [2])])
def test_a_graph_that_is_refused_leaves_no_figure(graph):
    frame = pd.DataFrame({"vertex": ["a", "b"], "distance": [1, 2]})
    with pytest.raises(InputError):
        plot(frame, PLACES, graph=graph)
    assert not pyplot.get_fignums()


def test_a_missing_library_is_named(monkeypatch):
    frame = pa.table({"vertex": ["a"], "distance": [1]})
    monkeypatch.setitem(sys.modules, "lonboard", None)
    with pytest.raises(InputError, match="pip install lonboard"):
        explore(frame, PLACES)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InputError, match=r"\[plot\]"):
        plot(frame, PLACES)


# Of vertices and of groups one. Loads of the whole town take seconds, so that their pictures are compared with --all, as are
# the others: what they ask is tested with each kind of result.
FEW = ["isochrones.png", "nearest.png"]
DRAWN = pictures.PICTURES if tiers.ALL else FEW


def test_pictures_are_current_and_a_stale_one_is_found(tmp_path, capsys):
    shutil.copytree(pictures.FOLDER, tmp_path / "pictures")
    shutil.copy(tmp_path / "pictures/isochrones.png", tmp_path / "pictures/nearest.png")
    assert pictures.main(["--check", "--folder", str(tmp_path / "pictures"), "--only", *DRAWN]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nearest.png: stale")


def test_the_examples_of_loads_draw_a_part_of_the_town(here, tmp_path, monkeypatch):
    inner = here.junctions["vertex"][(here.junctions[["x", "y"]].abs() < 0.008).all(axis=1)]
    roads = here.roads[here.roads[["src", "dst"]].isin(inner.tolist()).all(axis=1)]
    junctions = here.junctions[here.junctions["vertex"].isin(roads["src"])]
    assert 100 < len(junctions) < 1000
    part = here._replace(junctions=junctions, roads=roads[roads["dst"].isin(roads["src"])])
    monkeypatch.setattr(datasets, "town", lambda: part)
    loads = ["betweenness.png", "flows.png", "select-link.png"]
    pictures.draw(loads, tmp_path)
    assert len({(tmp_path / name).read_bytes() for name in loads}) == 3


def test_the_routes_of_the_page_have_the_colours_of_their_legend():
    pixels = 255 * pyplot.imread(pictures.FOLDER / "paths.png")[..., :3]
    for colour in ("tab:blue", "tab:orange"):
        wanted = 255 * np.array(matplotlib.colors.to_rgb(colour))
        assert (np.abs(pixels - wanted).max(axis=-1) < 16).sum() > 100
