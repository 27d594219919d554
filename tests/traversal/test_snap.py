"""``snap``: the nearest vertex of a component, beside a brute-force search in plain Python."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import (
    InputError,
    UnknownVertexError,
    graph_from_edges,
    snap,
    sssp_many,
)
from kepler_traverse.cpu.nearest_point import EARTH_RADIUS, nearest_points


def haversine(one, other):
    (x, y), (to_x, to_y) = one, other
    along = math.sin(math.radians(to_y - y) / 2)
    across = math.sin(math.radians(to_x - x) / 2)
    half = along**2 + math.cos(math.radians(y)) * math.cos(math.radians(to_y)) * across**2
    return 2 * EARTH_RADIUS * math.asin(min(1, math.sqrt(half)))


def chain(ids):
    """A graph in which each vertex reaches each other one."""
    ids = list(ids)
    return graph_from_edges({"src": ids, "dst": [*ids[1:], ids[0]]}, directed=False, vertices=ids)


def snapped(places, points, metric=haversine, **options):
    """Snap to the vertices 0, 1, ... at some places, and find the same by looking at all."""
    table = pd.DataFrame(places, columns=["x", "y"], dtype=float).rename_axis("vertex")
    given = pd.DataFrame(points, columns=["x", "y"], dtype=float)
    frame = snap(chain(range(len(places))), given, table.reset_index(), **options)
    expected = [
        min((metric(point, place), i) for i, place in enumerate(places)) for point in points
    ]
    return frame, expected


LONGITUDES = st.sampled_from(
    [-180.0, -179.999, -8.6, -8.5999, 0.0, 1e-7, 90.0, 179.9, 180.0, 351.4]
)
LATITUDES = st.sampled_from([-90.0, -89.99, -30.0, 0.0, 1e-7, 41.1, 41.1001, 89.999, 90.0])
ANYWHERE = st.tuples(st.floats(-180, 180), st.floats(-90, 90)) | st.tuples(LONGITUDES, LATITUDES)


@settings(max_examples=40, deadline=None)
@given(st.lists(ANYWHERE, min_size=1, max_size=40), st.lists(ANYWHERE, max_size=10))
def test_on_the_earth_it_is_the_nearest_also_at_poles_and_beyond_180_degrees(places, points):
    frame, expected = snapped(places, points, coordinates="degrees")
    np.testing.assert_allclose(
        frame["offset"], [distance for distance, _ in expected], rtol=1e-9, atol=1e-6
    )
    for point, vertex, (distance, _) in zip(points, frame["vertex"], expected, strict=True):
        assert haversine(point, places[vertex]) <= distance * (1 + 1e-12) + 1e-8


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1),
    st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9))),
    st.sampled_from([1.0, 1e-3, 1e7]),
)
def test_on_a_plane_ties_go_to_the_smallest_id(places, points, unit):
    places = [(x * unit, y * unit) for x, y in places]
    points = [(x * unit / 2, y * unit / 2) for x, y in points]
    frame, expected = snapped(
        places,
        points,
        lambda a, b: math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2),
        coordinates="metres",
    )
    assert frame["vertex"].tolist() == [vertex for _, vertex in expected]
    assert frame["offset"].tolist() == [distance for distance, _ in expected]


@pytest.mark.parametrize("step", [1e-7, 0.01, 1.0])
def test_ties_on_the_earth_go_to_the_smallest_id(step):
    places = [(x * step, y * step) for x in (1, -1) for y in (-1, 1)]
    frame, _ = snapped(places, [(0, 0), (step, 0), (-step, 0)], coordinates="degrees")
    assert frame["vertex"].tolist() == [0, 0, 2]


def test_one_vertex_far_away_and_many_in_one_place_hide_no_other():
    rng = np.random.default_rng(1)
    x = np.r_[0.0, rng.normal(4e5, 30, 3000), np.full(500, 4e5)]
    y = np.r_[0.0, rng.normal(5e6, 30, 3000), np.full(500, 5e6)]
    of = rng.normal((4e5, 5e6), 300, (200, 2)).T
    squares = (x - of[0][:, None]) ** 2 + (y - of[1][:, None]) ** 2
    assert nearest_points(x, y, *of)[0].tolist() == squares.argmin(axis=1).tolist()


ROADS = {"src": [1, 2, 3, 8, 9, 3], "dst": [2, 3, 1, 9, 8, 7]}  # 7 has no way out
JUNCTIONS = {"vertex": [1, 2, 3, 7, 8, 9], "x": [0.0, 1, 2, 3, 4, 5], "y": [0.0] * 6}


@pytest.mark.parametrize(
    ("options", "vertices"),
    [
        ({}, [1, 3, 3]),
        ({"component": "any"}, [1, 7, 9]),
        ({"around": 8}, [8, 8, 9]),
        ({"around": 7}, [7, 7, 7]),
        ({"cutoff": 1.5}, [1, 3, None]),
        ({"cutoff": 1, "component": "any"}, [1, 7, 9]),
    ],
)
def test_a_component_is_the_largest_or_that_around_a_vertex(options, vertices):
    points = {"x": [0.0, 3, 5], "y": [0.0, 0, 1]}
    frame = snap(graph_from_edges(ROADS), points, JUNCTIONS, coordinates="metres", **options)
    found = [None if each is pd.NA else each for each in frame["vertex"]]
    assert found == vertices
    assert frame["offset"].isna().tolist() == [each is None for each in vertices]


def test_rows_have_the_labels_of_the_points_and_vertices_may_be_few():
    points = pd.DataFrame({"lon": [5.0, 0.0], "lat": [0.0, 0.0]}, index=["oak", "elm"])
    stops = pd.DataFrame({"lon": [1.0, 2.0], "lat": [0.0, 0.0]}, index=[2, 3])
    graph = graph_from_edges(ROADS)
    points["stop"] = snap(graph, points, stops, coordinates="metres", x="lon", y="lat")["vertex"]
    assert points["stop"].to_dict() == {"oak": 3, "elm": 2}


def test_places_that_are_no_vertices_have_a_nearest_school():
    """As the page has it: each school of the nearest vertex is named."""
    graph = graph_from_edges(ROADS | {"weight": [5, 5, 5, 1, 1, 1]})
    schools = pd.DataFrame({"x": [0.1, 0.2, 2.2], "y": 0.0, "name": ["oak", "elm", "ash"]})
    schools["vertex"] = snap(graph, schools, JUNCTIONS, coordinates="metres")["vertex"]
    found = sssp_many(graph, [2], result="nearest", k=1, targets=schools["vertex"].unique())
    named = found.merge(schools, left_on="target", right_on="vertex")
    assert named[["name", "distance"]].to_numpy().tolist() == [["ash", 5]]


def test_places_as_vertices_count_the_way_to_the_street():
    """As the page has it: rows from each place to its junction and back, with their own weights."""
    roads = pd.DataFrame(ROADS | {"weight": [5, 5, 5, 1, 1, 1]})
    places = pd.DataFrame({"place": [101, 102], "x": [0.0, 2.0], "y": [3.0, 4.0]})
    at = snap(graph_from_edges(roads), places, JUNCTIONS, coordinates="metres")
    steps = {"src": places["place"], "dst": at["vertex"], "weight": at["offset"].astype(int)}
    there = pd.DataFrame(steps)
    back = there.rename(columns={"src": "dst", "dst": "src"})
    graph = graph_from_edges(pd.concat([roads, there, back]))
    found = sssp_many(graph, [101, 102], result="targets", targets=[101, 102])
    assert found["distance"].tolist() == [0, 3 + 10 + 4, 4 + 5 + 3, 0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"points": {"x": [4e5], "y": [5e6]}},
            InputError,
            "no longitude; give coordinates='metres'",
        ),
        (
            {"points": {"x": [5.0], "y": [91.0]}},
            InputError,
            "row 0 holds 91.0, which is no latitude",
        ),
        ({"points": {"geometry": [1]}}, InputError, "points.geometry.get_coordinates()"),
        ({"vertices": JUNCTIONS | {"y": [99.0] * 6}}, InputError, "vertices\\['y'\\] holds 99.0"),
        ({"vertices": {"vertex": [77], "x": [0], "y": [0]}}, InputError, "of none of 3 vertices"),
        ({"coordinates": "km"}, InputError, "none of 'degrees', 'metres'"),
        ({"around": 5}, UnknownVertexError, "vertex around which to snap"),
        ({"around": 1, "component": "any"}, InputError, "leave one out"),
        (
            {"graph": graph_from_edges({"src": [], "dst": []}, vertices=[])},
            InputError,
            "no vertices",
        ),
    ],
)
def test_what_is_no_place_is_refused(change, error, text):
    call = {
        "graph": graph_from_edges(ROADS),
        "points": {"x": [0.0], "y": [0.0]},
        "vertices": JUNCTIONS,
        "coordinates": "degrees",
    }
    with pytest.raises(error, match=text.replace("(", "\\(").replace(")", "\\)")):
        snap(**call | change)


@pytest.mark.gpu
def test_a_graph_in_gpu_memory_has_the_same_frame():
    graph = graph_from_edges(ROADS)
    points = {"x": [0.2, 3.0, 5.0], "y": [0.0, 0.0, 9.0]}
    call = {"points": points, "vertices": JUNCTIONS, "coordinates": "metres", "cutoff": 3}
    found = snap(graph.to("cuda"), **call).to_pandas()
    expected = snap(graph, **call)
    assert (
        found.astype(object)
        .where(found.notna(), None)
        .equals(expected.astype(object).where(expected.notna(), None))
    )
