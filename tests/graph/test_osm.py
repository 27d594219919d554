"""Streets of OpenStreetMap, compared with a search of all nodes of a file by rules written for the test."""

import heapq
import itertools
import math
import random
import sys

import pytest

from kepler_traverse import EdgeListError, InputError, sssp_many
from kepler_traverse.convert import from_osm

pytest.importorskip("osmium", reason="osmium is not installed: pip install 'kepler-traverse[osm]'")

PLACES = {
    number: (8.40 + 0.003 * (number % 6), 49.0 + 0.002 * (number // 6)) for number in range(1, 37)
}


def written(folder, ways, places=PLACES):
    """A file of OpenStreetMap: ways as (nodes, tags)."""
    lines = ["<osm version='0.6'>"]
    lines += [
        f"<node id='{number}' lon='{x!r}' lat='{y!r}' version='1'/>"
        for number, (x, y) in places.items()
    ]
    for number, (nodes, tags) in enumerate(ways, 500):
        inside = "".join(f"<nd ref='{node}'/>" for node in nodes)
        inside += "".join(f"<tag k='{key}' v='{value}'/>" for key, value in tags.items())
        lines.append(f"<way id='{number}' version='1'>{inside}</way>")
    path = folder / "streets.osm"
    path.write_text("\n".join([*lines, "</osm>"]))
    return path


def arc(one, other):
    """Metres between two places, by the law of cosines of spheres."""
    (x, y), (to_x, to_y) = (tuple(map(math.radians, PLACES[node])) for node in (one, other))
    cosine = math.sin(y) * math.sin(to_y) + math.cos(y) * math.cos(to_y) * math.cos(x - to_x)
    return 6_371_008.8 * math.acos(min(1.0, cosine))


def nearest_of_all_nodes(edges, source):
    """Dijkstra over the nodes, shapes included."""
    found, heap = {}, [(0.0, source)]
    while heap:
        distance, node = heapq.heappop(heap)
        if node in found:
            continue
        found[node] = distance
        for to, length in edges.get(node, ()):
            heapq.heappush(heap, (distance + length, to))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_times_are_those_of_a_search_through_all_nodes(tmp_path, seed):
    draw = random.Random(seed)
    ways = []
    for _ in range(18):
        nodes = draw.sample(sorted(PLACES), draw.randint(2, 7))
        nodes += [nodes[0]] * draw.randint(0, 1)
        tags = {"highway": draw.choice(["primary", "residential", "service"])}
        if draw.random() < 0.4:
            tags["oneway"] = draw.choice(["yes", "-1", "no"])
        if draw.random() < 0.4:
            tags["maxspeed"] = draw.choice(["50", "30 mph", "none", "0.5", "900 km/h"])
        ways.append((nodes, tags))
    edges = {}
    for nodes, tags in ways:
        speed = {"50": 50, "30 mph": 30 * 1.609344}.get(
            tags.get("maxspeed"), {"primary": 65, "residential": 30, "service": 15}[tags["highway"]]
        )
        for one, other in itertools.pairwise(nodes):
            time = 3600 * arc(one, other) / speed
            if tags.get("oneway") != "-1":
                edges.setdefault(one, []).append((other, time))
            if tags.get("oneway") != "yes":
                edges.setdefault(other, []).append((one, time))
    here = from_osm(written(tmp_path, ways))
    vertices = here.junctions["vertex"].tolist()
    found = sssp_many(here.graph, vertices).groupby("source")
    for source in vertices:
        right = {
            node: time
            for node, time in nearest_of_all_nodes(edges, source).items()
            if node in vertices
        }
        times = found.get_group(source).set_index("vertex")["distance"].to_dict()
        assert times.keys() == right.keys()
        assert all(abs(times[node] - right[node]) <= 0.51 * len(here.roads) for node in right)
    places = {vertex: (x, y) for vertex, x, y in here.junctions.itertuples(index=False)}
    assert all(places[vertex] == pytest.approx(PLACES[vertex], abs=1e-7) for vertex in vertices)


@pytest.mark.parametrize(
    ("tags", "open_to"),
    [
        ({"highway": "motorway"}, {"drive": ">"}),
        ({"highway": "footway"}, {"walk": "<>"}),
        ({"highway": "footway", "bicycle": "yes"}, {"walk": "<>", "bike": "<>"}),
        ({"highway": "residential", "oneway": "yes"}, {"drive": ">", "bike": ">", "walk": "<>"}),
        (
            {"highway": "residential", "oneway": "-1", "oneway:bicycle": "no"},
            {"drive": "<", "bike": "<>", "walk": "<>"},
        ),
        *(
            (
                {"highway": "residential", "oneway": "yes", **lane},
                {"drive": ">", "bike": "<>", "walk": "<>"},
            )
            for lane in (
                {"cycleway": "opposite"},
                {"cycleway": "opposite_lane"},
                {"cycleway": "opposite_track"},
                {"cycleway:left": "opposite_lane"},
                {"cycleway:both": "opposite_share_busway"},
                {"cycleway:left": "lane", "cycleway:left:oneway": "-1"},
                {"cycleway": "track", "oneway:bicycle": "no"},
            )
        ),
        (
            {"highway": "residential", "oneway": "-1", "cycleway": "opposite"},
            {"drive": "<", "bike": "<>", "walk": "<>"},
        ),
        (
            {
                "highway": "residential",
                "oneway": "yes",
                "cycleway": "opposite",
                "oneway:bicycle": "yes",
            },
            {"drive": ">", "bike": ">", "walk": "<>"},
        ),
        (
            {"highway": "residential", "oneway": "yes", "cycleway": "lane"},
            {"drive": ">", "bike": ">", "walk": "<>"},
        ),
        (
            {"highway": "tertiary", "junction": "roundabout"},
            {"drive": ">", "bike": ">", "walk": "<>"},
        ),
        ({"highway": "service", "access": "private"}, {}),
        ({"highway": "service", "access": "no", "foot": "yes"}, {"walk": "<>"}),
        ({"highway": "service", "service": "driveway"}, {"bike": "<>", "walk": "<>"}),
        (
            {"highway": "primary", "vehicle": "no", "motor_vehicle": "yes"},
            {"drive": "<>", "walk": "<>"},
        ),
        ({"highway": "pedestrian", "area": "yes"}, {}),
        ({"highway": "construction", "foot": "yes"}, {}),
    ],
)
def test_tags_open_and_close_a_street(tmp_path, tags, open_to):
    path = written(tmp_path, [((1, 2), tags)])
    for mode in ("drive", "bike", "walk"):
        if mode not in open_to:
            with pytest.raises(
                EdgeListError, match=rf"streets\.osm: it has no street for mode '{mode}'"
            ):
                from_osm(path, mode)
            continue
        roads = from_osm(path, mode).roads
        ends = {">": (1, 2), "<": (2, 1)}
        assert set(zip(roads["src"], roads["dst"], strict=True)) == {
            ends[sign] for sign in open_to[mode]
        }


@pytest.mark.parametrize(
    ("tags", "along", "against"),
    [
        ({"maxspeed": "50"}, 50, 50),
        ({"maxspeed:forward": "70"}, 70, 30),
        ({"maxspeed:backward": "40 mph"}, 30, 40 * 1.609344),
        ({"maxspeed": "50", "maxspeed:forward": "70"}, 70, 50),
        ({"maxspeed": "50", "maxspeed:backward": "20"}, 50, 20),
        ({"maxspeed:forward": "70", "maxspeed:backward": "20"}, 70, 20),
        ({"maxspeed": "50", "maxspeed:forward": "none"}, 50, 50),
        ({"maxspeed": "walk"}, 7, 7),
        ({"maxspeed": "50", "maxspeed:backward": "walk"}, 50, 7),
        ({"maxspeed": "DE:urban"}, 30, 30),
    ],
)
def test_limits_hold_for_their_direction(tmp_path, tags, along, against):
    path = written(tmp_path, [((1, 2), {"highway": "residential", **tags})])
    roads = from_osm(path, "drive").roads
    speeds = {
        (u, v): speed for u, v, speed in roads[["src", "dst", "speed"]].itertuples(index=False)
    }
    assert speeds == {(1, 2): pytest.approx(along), (2, 1): pytest.approx(against)}
    for mode, speed in (("bike", 15), ("walk", 4.8)):
        assert set(from_osm(path, mode).roads["speed"]) == {speed}


def test_streets_end_at_nodes_that_the_file_lacks(tmp_path):
    here = from_osm(
        written(tmp_path, [((1, 2, 99, 3, 4, 98), {"highway": "path"})]), "walk", "millimetres"
    )
    assert here.junctions["vertex"].tolist() == [1, 2, 3, 4]
    assert here.roads[["src", "dst"]].to_numpy().tolist() == [[1, 2], [3, 4], [2, 1], [4, 3]]
    assert here.roads["weight"].to_numpy() == pytest.approx(
        [1000 * arc(1, 2), 1000 * arc(3, 4)] * 2, abs=1
    )


ALL = [f"<node id='{node}' lon='8.{node}' lat='49' version='1'/>" for node in (1, 2)]
WAY = ["<way id='1' version='1'><nd ref='1'/><nd ref='2'/><tag k='highway' v='road'/></way>"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.osm", None, "there is no such file"),
        ("broken.osm", "<osm version='0.6'><way", "it cannot be read as OpenStreetMap"),
        ("edges.csv", "src,dst\n1,2\n", "it cannot be read as OpenStreetMap"),
        ("unsorted.osm", ALL[:1] + WAY + ALL[1:], "node 2 stands behind a way that needs it"),
        ("later.osm", WAY + ALL, "node 1 stands behind a way"),
        ("elsewhere.osm", WAY, "it has no street for mode 'drive'"),
        ("twice.osm", ALL + WAY + WAY, "way 1 stands there twice"),
        (
            "drawn.osm",
            [line.replace("'2'", "'-2'") for line in ALL + WAY],
            "node -2 has a negative id",
        ),
        (
            "far.osm",
            [line.replace("lat='49'", "lat='91'") for line in ALL + WAY],
            "node 1 lies outside the earth",
        ),
        (
            "place.osm",
            [line.replace("lat='49'", "lat='x'") for line in ALL + WAY],
            "it cannot be read as OpenStreetMap",
        ),
        ("past.osh", ALL + WAY, "it holds changes or a history"),
        (
            "name.osm.opl",
            b"n1 v1 x8 y49\nn2 v1 x8 y48\nw1 v1 Thighway=road,name=\xff Nn1,n2\n",
            "it cannot be read",
        ),
    ],
)
def test_files_that_are_none_are_refused(tmp_path, name, content, said):
    if isinstance(content, list):
        content = "".join(["<osm version='0.6'>", *content, "</osm>"])
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(EdgeListError, match=f"{name}: {said}"):
        from_osm(tmp_path / name)


def test_arguments_and_a_missing_library_are_named(tmp_path, monkeypatch):
    path = written(tmp_path, [((1, 2), {"highway": "path"})])
    with pytest.raises(InputError, match="mode"):
        from_osm(path, "fly")
    for wrong in (None, b"streets.osm", [path]):
        with pytest.raises(InputError, match="path"):
            from_osm(wrong)
    monkeypatch.setitem(sys.modules, "osmium", None)
    with pytest.raises(InputError, match=r"\[osm\]"):
        from_osm(path)
