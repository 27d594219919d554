"""Files of planners: what is read is what the file says, and a damaged file is named with its line."""

import errno
import os

import numpy as np
import pandas as pd
import pytest

import kepler_traverse as kt
from kepler_traverse import CapacityError, EdgeListError, InputError
from kepler_traverse.assignment import BPR, assign
from kepler_traverse.errors import EdgeListWarning, OutputError
from kepler_traverse.formats import omx
from kepler_traverse.planning import (
    read_network,
    read_omx,
    read_trips,
    write_omx,
    write_ubodt,
)
from pipelines import assignment

NETWORK = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 4
<FIRST THRU NODE> 3
<NUMBER OF LINKS> 5
<ORIGINAL HEADER>~ 	Init node 	Term node 	;
<END OF METADATA>


~ 	init_node	term_node	capacity	length	free_flow_time	b	power	speed	toll	link_type	;
	1	3	10.5	2	1.25	0.15	4	25	0	1	;
	3	4	4	2	1	0.15	4	25	0	1	;
	3	4	4	3	2	0.15	4	25	7	1	;
~ a comment
	4	2	9999	2	1	0	0	25	0	3;
	2	1	9	2	1	0.15	4	25	0	1	;
"""
TRIPS = """<NUMBER OF ZONES> 2
<TOTAL OD FLOW> 12.5
<END OF METADATA>

Origin 	1
    1 :      0.0;     2 :    8.5;
Origin  2
    1 :    4.0;
"""


@pytest.fixture
def tntp(tmp_path):
    (tmp_path / "net.tntp").write_text(NETWORK)
    (tmp_path / "trips.tntp").write_text(TRIPS)
    return tmp_path


def test_tntp_network_and_trips_are_those_of_the_text(tntp):
    network = read_network(tntp / "net.tntp")
    assert network.closed == [1, 2]
    links = network.links
    assert links.init_node.to_list() == [1, 3, 3, 4, 2]
    assert links.capacity.to_list() == [10.5, 4, 4, 9999, 9]
    assert links.link_type.to_list() == [1, 1, 1, 3, 1]
    trips = read_trips(tntp / "trips.tntp")
    assert trips.to_numpy().tolist() == [[1, 1, 0], [1, 2, 8.5], [2, 1, 4]]
    result = assign(links, trips, closed=network.closed, gap=1e-8)
    assert result.links.flow.sum() == pytest.approx(8.5 * 3 + 4)
    assert result.links.flow[1:3].sum() == pytest.approx(8.5)


@pytest.mark.filterwarnings("ignore:by FIRST THRU NODE")
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_tntp_is_an_edge_list(tntp, ending):
    path = tntp / "net.tntp"
    if ending:
        import gzip

        path = tntp / "other.tntp.gz"
        path.write_bytes(gzip.compress(NETWORK.encode()))
    graph = kt.read_graph(path, weight_column="free_flow_time")
    assert graph.n_edges == 4  # of parallel ones the cheapest
    distances = kt.sssp(graph, 1)
    assert distances.set_index("vertex").distance.to_dict() == {1: 0, 2: 3.25, 3: 1.25, 4: 2.25}
    assert read_network(path).closed == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("	9999	2", "	2", "line 14 '4.* has not 10 values"),
        ("<END OF METADATA>", "", "line 9 .*stands before <END OF METADATA>|line 10"),
        ("<NUMBER OF LINKS> 5", "<NUMBER OF LINKS> 6", "has 5 links, and its header says 6"),
        ("<NUMBER OF LINKS> 5", "<NUMBER OF LINKS> 5;", "is '5;', which is no number"),
        ("<NUMBER OF LINKS> 5", "<NUMBER OF LINKS> 1,000", "is '1,000', which is no number"),
        ("	10.5	", "	ten	", "line 10 .*has the capacity 'ten', which is no number"),
        ("<FIRST THRU NODE> 3", "<FIRST THRU NODE> x", "FIRST THRU NODE"),
    ],
)
def test_damaged_networks_are_named_with_their_line(tntp, old, new, message):
    path = tntp / "net.tntp"
    path.write_text(NETWORK.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_network(path)


SWAPPED = NETWORK.replace("capacity	length", "length	capacity")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWAPPED, r"line 9 .* names the columns in another order than TNTP has: init_node"),
        (SWAPPED.replace("free_flow_time", "Free Flow Time (min)"), "line 9 .* another order"),
        (
            NETWORK.replace("<ORIGINAL", "<FIRST THRU NODE> 1\n<ORIGINAL"),
            "line 5 .* says another thing than a line before: 3",
        ),
        (NETWORK.replace("NODE> 3", "NODE> 3.0"), "net.tntp: <FIRST THRU NODE> is '3.0'"),
    ],
)
def test_networks_that_contradict_themselves_are_refused(tntp, text, message):
    path = tntp / "net.tntp"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_network(path)
    if "length	capacity" in text:
        with pytest.raises(EdgeListError, match=message):
            kt.read_graph(path)


@pytest.mark.parametrize(
    "name", ["first thru node", " FIRST  THRU\tNODE ", "FIRST THROUGH NODE", "First Through Node"]
)
def test_closed_vertices_follow_from_each_spelling_of_the_header(tntp, name):
    path = tntp / "net.tntp"
    closed = read_network(path).closed
    assert closed
    text = NETWORK.replace("FIRST THRU NODE", name)
    path.write_text(text.replace("<END OF METADATA>", "< End  of metadata >"))
    assert read_network(path).closed == closed
    with pytest.warns(EdgeListWarning, match="by FIRST THRU NODE"):
        kt.read_graph(path, weight_column="length")


# Python takes all of these for numbers. In edge lists they are words.
@pytest.mark.parametrize("word", ["1_0", "٣", "+7", "007", "1e1"])
def test_whole_numbers_of_tntp_are_those_of_edge_lists(tntp, word):
    path = tntp / "net.tntp"
    row = NETWORK.splitlines()[-1]
    ends = row.split()
    path.write_text(NETWORK.replace(row, row.replace(ends[0], word, 1)), encoding="utf-8")
    with pytest.raises(EdgeListError, match=r"has the init_node .* which is no number"):
        read_network(path)
    path = tntp / "trips.tntp"
    for old, new in (("Origin 	1", f"Origin 	{word}"), ("2 :    8.5;", f"{word} :    8.5;")):
        assert old in TRIPS
        path.write_text(TRIPS.replace(old, new), encoding="utf-8")
        with pytest.raises(EdgeListError, match="are not all 'destination : volume;'"):
            read_trips(path)


@pytest.mark.parametrize("word", ["1_0.5", "٣.5", "inf", "nan", "0x10", "1.5D0"])
def test_numbers_of_tntp_are_plain_digits(tntp, word):
    path = tntp / "net.tntp"
    path.write_text(NETWORK.replace("	10.5	", f"	{word}	"), encoding="utf-8")
    with pytest.raises(EdgeListError, match=r"has the capacity .* which is no number"):
        read_network(path)
    path = tntp / "trips.tntp"
    path.write_text(TRIPS.replace("8.5;", f"{word};"), encoding="utf-8")
    with pytest.raises(EdgeListError, match="are not all 'destination : volume;'"):
        read_trips(path)


@pytest.mark.filterwarnings("ignore:by FIRST THRU NODE")
@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_comments_may_hold_any_text(tntp, mark):
    path = tntp / "net.tntp"
    expected = read_network(path).links
    lines = NETWORK.splitlines()
    lines.insert(-1, f"~ one{mark}two 3")
    for end in ("\n", "\r\n", "\r"):
        path.write_text("".join(line + end for line in lines), encoding="utf-8", newline="")
        pd.testing.assert_frame_equal(read_network(path).links, expected)


@pytest.mark.filterwarnings("ignore:by FIRST THRU NODE")
def test_byte_order_marks_and_other_headings_change_no_network(tntp):
    path = tntp / "net.tntp"
    before = read_network(path)
    trips = read_trips(tntp / "trips.tntp")
    heading = "~ 	init_node	term_node	capacity	length	free_flow_time	b	power	speed	toll	link_type	;"
    assert heading in NETWORK
    for other in (
        "~ Init node	Term node	Capacity (veh/h)	Length	Free Flow Time	B	Power	Speed limit	Toll	Type	;",
        "~ time, length and capacity are in other units",
    ):
        path.write_text("\ufeff" + NETWORK.replace(heading, other), encoding="utf-8")
        pd.testing.assert_frame_equal(read_network(path).links, before.links)
        assert kt.read_graph(path, weight_column="length").n_edges == 4
    (tntp / "trips.tntp").write_text("\ufeff" + TRIPS, encoding="utf-8")
    pd.testing.assert_frame_equal(read_trips(tntp / "trips.tntp"), trips)


def test_damaged_network_is_no_edge_list(tntp):
    path = tntp / "net.tntp"
    path.write_text(NETWORK.replace("	9999	2", "	2"))
    with pytest.raises(EdgeListError, match=r"line 14 .*has not 10 values"):
        kt.read_graph(path)
    path.write_text("1 2 3\n")
    with pytest.raises(EdgeListError, match="is the file a TNTP network"):
        kt.read_graph(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Origin 	1", "", "do not begin with a line 'Origin n'"),
        ("2 :    8.5;", "2     8.5;", "origin '1' are not all"),
        ("8.5", "9.5", "add up to 13.5, and the header says 12.5"),
        ("12.5", "12,5", "is '12,5', which is no number"),
        ("<END OF METADATA>", "", "stands before"),
    ],
)
def test_damaged_trips_are_named(tntp, old, new, message):
    path = tntp / "trips.tntp"
    path.write_text(TRIPS.replace(old, new))
    with pytest.raises(EdgeListError, match=message):
        read_trips(path)


@pytest.fixture
def gmns(tmp_path):
    (tmp_path / "link.csv").write_text(
        "link_id,from_node_id,to_node_id,directed,length,free_speed,capacity,lanes,toll,VDF_alpha1\n"
        "7,1,2,true,2,30,900,2,,0.15\n8,2,3,false,1,60,1000,1,0.5,0.2\n"
    )
    (tmp_path / "config.csv").write_text("long_length,speed\nmi,mph\n")
    (tmp_path / "node.csv").write_text(
        "node_id,x_coord,y_coord,zone_id\n1,0,0,10\n2,1,0,\n3,2,0,30\n"
    )
    (tmp_path / "demand.csv").write_text("o_zone_id,d_zone_id,volume\n10,30,50\n")
    return tmp_path


def test_gmns_links_have_minutes_lanes_and_both_directions(gmns):
    links = read_network(gmns).links
    assert links[["src", "dst"]].to_numpy().tolist() == [[1, 2], [2, 3], [3, 2]]
    assert links.link_id.to_list() == [7, 8, 8]
    assert links.is_reverse.to_list() == [False, False, True]
    assert links.free_flow_time.to_list() == [4.0, 1.0, 1.0]
    assert links.capacity.to_list() == [1800, 1000, 1000]
    assert links.toll.to_list() == [0, 0.5, 0.5]
    assert links.b.to_list() == [0.15, 0.2, 0.2]
    trips = read_trips(gmns)
    assert trips.to_numpy().tolist() == [[1, 3, 50]]
    result = assign(read_network(gmns / "link.csv").links, trips, cost=BPR(power=4))
    assert result.links.flow.to_list() == [50, 50, 0]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("config.csv", "mi,mph", "league,knots", "league with knots is none of"),
        ("link.csv", "true", "maybe", "row 0: directed is 'maybe'"),
        ("link.csv", ",900,", ",,", "row 0 has no capacity"),
        ("link.csv", "lanes", "tracks", "no column 'lanes'"),
        ("link.csv", "lanes", "length", "two columns are called 'length'"),
        ("link.csv", ",toll", ",VDF_alpha", "has VDF_alpha and VDF_alpha1; remove one"),
        ("link.csv", ",0.5,", ",true,", "'toll' holds true and false, not numbers"),
        ("link.csv", ",30,", ",0,", "row 0: 0 is no free_speed"),
        ("link.csv", ",900,", ",0x384,", "has the capacity '0x384', which is no decimal number"),
        ("node.csv", "1,0,", "3,0,", None),
    ],
)
def test_damaged_gmns_is_named(gmns, file, old, new, message):
    path = gmns / file
    path.write_text(path.read_text().replace(old, new))
    if message is None:  # zone 10 now is vertex 3
        assert read_trips(gmns).origin.to_list() == [3]
        return
    with pytest.raises(InputError, match=message):
        read_network(gmns)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("1", "2", [1, 2]),
        ("01", "1", ["01", "1"]),
        ("1", "a1", ["1", "a1"]),
        ("+1", "1", ["+1", "1"]),
        (str(2**63), "1", [str(2**63), "1"]),
        ('"7"', "8", [7, 8]),
        ("1.0", "1", ["1.0", "1"]),
    ],
)
def test_gmns_ids_that_differ_in_the_file_stay_apart(gmns, first, second, expected):
    (gmns / "link.csv").write_text(
        "link_id,from_node_id,to_node_id,directed,length,free_speed,capacity,lanes\n"
        f"a,{first},{second},false,2,30,900,2\n"
    )
    links = read_network(gmns).links
    assert links.src.to_list() == expected
    assert links.dst.to_list() == expected[::-1]
    (gmns / "node.csv").write_text(f"node_id,zone_id\n{first},{second}\n{second},{first}\n")
    (gmns / "demand.csv").write_text(f"o_zone_id,d_zone_id,volume\n{second},{first},5\n")
    trips = read_trips(gmns)
    assert trips.origin.to_list() + trips.destination.to_list() == expected
    result = assign(links, trips, cost=BPR(b=0, power=1))
    assert result.links.flow.to_list() == [5, 0]


@pytest.mark.filterwarnings("ignore:.*allowed_uses limits")
@pytest.mark.parametrize("use", [None, "auto"])
@pytest.mark.parametrize(
    ("node", "link"), [("a9", "3"), ("3", "a9"), ("09", "9"), (str(2**63), "3")]
)
def test_gmns_nodes_have_one_type_in_links_and_trips(gmns, node, link, use):
    """One text among the nodes, in one file alone, or in a link that is not read."""
    (gmns / "node.csv").write_text(f"node_id,zone_id\n1,10\n2,20\n{node},30\n")
    (gmns / "link.csv").write_text(
        "link_id,from_node_id,to_node_id,directed,length,free_speed,capacity,lanes,allowed_uses\n"
        f"1,1,2,true,2,30,900,2,auto\n2,2,{link},true,2,30,900,2,walk\n"
    )
    (gmns / "demand.csv").write_text("o_zone_id,d_zone_id,volume\n10,20,5\n")
    links = read_network(gmns, use=use).links
    assert links.src[0] == "1"
    result = assign(links, read_trips(gmns), cost=BPR(b=0, power=1))
    assert result.links.flow[0] == 5


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("node.csv", None, "node.csv is not there; GMNS has node_id and zone_id in it"),
        ("demand.csv", None, "demand.csv is not there; GMNS has o_zone_id and d_zone_id"),
        ("demand.csv", "o_zone_id,d_zone_id,volume\n", "demand.csv: it has no row"),
        ("demand.csv", "o_zone_id,d_zone_id,volume\n,30,1\n", "row 0 has no o_zone_id"),
        ("demand.csv", "o_zone_id,d_zone_id,volume\n010,30,1\n", "zone '010' has no vertex"),
        ("demand.csv", "o_zone_id,volume\n10,1\n", "no column 'd_zone_id'"),
    ],
)
def test_gmns_trips_of_missing_rows_are_refused(gmns, file, text, message):
    (gmns / file).unlink()
    if text is not None:
        (gmns / file).write_text(text)
    with pytest.raises(InputError, match=message):
        read_trips(gmns)


USES = {1: "auto;bike", 2: "walk", 3: "", 4: "All", 5: "Cars, walk"}


@pytest.fixture
def gmns_with_uses(gmns):
    rows = [f'{link},1,{link + 1},true,2,30,900,2,"{uses}"' for link, uses in USES.items()]
    header = (
        "link_id,from_node_id,to_node_id,directed,length,free_speed,capacity,lanes,allowed_uses"
    )
    (gmns / "link.csv").write_text("\n".join([header, *rows]) + "\n")
    (gmns / "use_group.csv").write_text('use_group,uses\ncars,motor\nmotor,"auto,truck"\n')
    return gmns


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("auto", [1, 3, 4, 5]),
        ("walk", [2, 3, 4, 5]),
        ("Truck", [3, 4, 5]),
        ("bike", [1, 3, 4]),
        ("all", [3, 4]),
    ],
)
def test_gmns_links_are_those_of_a_use(gmns_with_uses, use, expected):
    assert read_network(gmns_with_uses, use=use).links.link_id.to_list() == expected


def test_a_use_that_only_a_group_names_is_known_and_any_where_no_link_is_limited(gmns_with_uses):
    path = gmns_with_uses / "link.csv"
    text = path.read_text()
    path.write_text(text.replace("auto;bike", "walk").replace("Cars, walk", "walk"))
    assert read_network(gmns_with_uses, use="auto").links.link_id.to_list() == [3, 4]
    with pytest.raises(InputError, match=r"no link has use='bus'; allowed_uses has .*truck"):
        read_network(gmns_with_uses, use="bus")
    path.write_text(text.replace("auto;bike", "all").replace("Cars, walk", "").replace("walk", ""))
    assert len(read_network(gmns_with_uses, use="bus").links) == len(USES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("true", "x", "row 3: directed is 'x'"),
        ("30", "", "row 3 has no free_speed"),
        ("30", "-1", "row 3: -1 is"),
    ],
)
def test_gmns_rows_of_other_uses_shift_no_row_of_an_error(gmns_with_uses, old, new, message):
    path = gmns_with_uses / "link.csv"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("30", "")  # a way for walking has no speed
    lines[4] = lines[4].replace(old, new, 1)
    path.write_text("\n".join(lines))
    with pytest.raises(EdgeListError, match=message):
        read_network(gmns_with_uses, use="auto")


def test_gmns_uses_are_not_ignored_in_silence(gmns_with_uses, tntp, capsys, tmp_path):
    message = r"allowed_uses limits 3 of 5 links to some uses, and all links are read: use='auto'"
    with pytest.warns(EdgeListWarning, match=message) as warned:
        assert len(read_network(gmns_with_uses).links) == 5
    assert warned[0].filename == __file__
    for use, message in (
        ("tram", "no link has use='tram'; allowed_uses has 'all', 'auto', 'bike', 'cars'"),
        (5, "use must be"),
    ):
        with pytest.raises(InputError, match=message):
            read_network(gmns_with_uses, use=use)
    with pytest.raises(InputError, match="use='auto' is for GMNS"):
        read_network(tntp / "net.tntp", use="auto")
    given = [
        str(gmns_with_uses),
        "--trips",
        str(tmp_path / "trips.csv"),
        "--b",
        "1",
        "--power",
        "1",
    ]
    (tmp_path / "trips.csv").write_text("origin,destination,volume\n1,3,5\n")
    assert assignment.main([*given, "--output", str(tmp_path / "all")]) == 0
    said = capsys.readouterr().err
    assert "all links are read: --use auto reads those of cars" in said
    assert assignment.main([*given, "--output", str(tmp_path / "cars"), "--use", "auto"]) == 2
    assert "1 destination is not in the graph: 3" in capsys.readouterr().err
    assert assignment.main([*given, "--output", str(tmp_path / "feet"), "--use", "walk"]) == 0
    assert "allowed_uses" not in capsys.readouterr().err
    assert len(pd.read_parquet(tmp_path / "feet/links.parquet")) == 4
    of_walk = [str(gmns_with_uses), "--trips", str(tmp_path / "trips.csv")]
    assert assignment.main([*of_walk, "--verify", str(tmp_path / "feet")]) == 0


def test_gmns_without_units_or_with_doubtful_zones_is_refused(gmns):
    (gmns / "node.csv").write_text(
        "node_id,x_coord,y_coord,zone_id\n1,0,0,10\n2,1,0,10\n3,2,0,30\n"
    )
    with pytest.raises(InputError, match="zone '10' has the vertices 1 and 2"):
        read_trips(gmns)
    (gmns / "demand.csv").write_text("o_zone_id,d_zone_id,volume\n10,31,50\n")
    (gmns / "node.csv").write_text("node_id,x_coord,y_coord,zone_id\n1,0,0,10\n3,2,0,30\n")
    with pytest.raises(InputError, match="zone '31' has no vertex"):
        read_trips(gmns)
    (gmns / "config.csv").unlink()
    with pytest.raises(InputError, match="GMNS has the units in it"):
        read_network(gmns)


def test_omx_files_keep_tables_of_pairs(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "skims.omx"
    table = pd.DataFrame(
        {"origin": [7, 7, 9], "destination": [7, 9, 7], "cost": [0.0, 2.5, np.nan], "km": [0, 3, 4]}
    )
    write_omx(path, table)
    back = read_omx(path)
    assert back.origin.to_list() == [7, 7, 9]
    assert back.cost.fillna(-1).to_list() == [0, 2.5, -1]
    assert read_omx(path, "km").km.to_list() == [0, 3, 4]
    with h5py.File(path) as file:
        assert bytes(file.attrs["OMX_VERSION"]) == b"0.2"
        assert file.attrs["SHAPE"].tolist() == [2, 2]
        assert file["data/km"].chunks is not None
        assert file["lookup/zone"][:].tolist() == [7, 9]
    with pytest.raises(InputError, match="no matrix 'time'"):
        read_omx(path, ["time"])
    with pytest.raises(InputError, match="no lookup 'taz'"):
        read_omx(path, lookup="taz")
    with pytest.raises(InputError, match="7 to 9 has two rows"):
        write_omx(path, pd.concat([table, table[1:2]]))
    names = table.assign(origin=["a", "a", "b"], destination=["a", "b", "a"])
    write_omx(path, names, "km", lookup="name")
    assert read_omx(path).origin.to_list() == ["a", "a", "b"]
    (tmp_path / "text.omx").write_text("no")
    with pytest.raises(InputError, match="cannot be read as OMX"):
        read_omx(tmp_path / "text.omx")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2**53 + 1, 1], "'x' holds 9007199254740993, which float64 cannot hold"),
        (pd.array([2**53 + 1, None], "Int64"), "'x' holds 9007199254740993"),
        (["1", "2"], "'x' must hold numbers, not strings"),
        ([True, False], "'x'.* must .*numbers, not bool"),
        ([1j, 2j], "'x'.* must be numbers, not complex"),
        (pd.to_timedelta([1, 2], "s"), "'x'.* must be numbers, not timedelta"),
        (pd.to_datetime(["2020-01-01"] * 2), "'x'.* must be numbers, not datetime"),
    ],
)
def test_omx_takes_numbers_that_it_holds(tmp_path, values, message):
    pytest.importorskip("h5py")
    table = pd.DataFrame({"origin": [1, 2], "destination": [2, 1], "x": values})
    with pytest.raises(InputError, match=message):
        write_omx(tmp_path / "a.omx", table)
    assert not (tmp_path / "a.omx").exists()


def test_omx_of_more_zones_than_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(omx, "available_memory", lambda _: 8 * 1000**2 - 1)
    ids = np.arange(1000)
    with pytest.raises(CapacityError, match=r"its matrices take .* of memory"):
        write_omx(tmp_path / "a.omx", {"origin": ids, "destination": ids, "x": ids})


ALIKE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("matrix", "lookup", "message"),
    [
        (ALIKE, {"zone": np.array([5, 5])}, "the lookup 'zone' has 5 twice"),
        (ALIKE, {"zone": np.array([b"a", b"a"])}, "the lookup 'zone' has 'a' twice"),
        (ALIKE, {"zone": np.array([5.0, 6.0])}, "the lookup 'zone' holds 5.0; ids are integers"),
        (ALIKE, {"zone": np.array([b"a", b"\xff"])}, "which is no UTF-8 text"),
        (np.array([[2**53 + 1, 1], [2, 3]]), {}, "'m' holds 9007199254740993"),
        (np.array([[2**63, 1], [2, 3]], np.uint64), {}, "'m' holds 9223372036854775808"),
        (None, {}, "its matrices take 305176 GiB of memory"),
    ],
)
def test_omx_that_cannot_be_read_exactly_is_refused(tmp_path, matrix, lookup, message):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.omx"
    with h5py.File(path, "w") as file:
        if matrix is None:
            n = 200_000 * 32
            file.create_dataset("data/m", shape=(n, n), dtype="f8", chunks=(256, 256))
        else:
            file["data/m"] = matrix
        for name, values in lookup.items():
            file[f"lookup/{name}"] = values
    with pytest.raises(InputError, match=message):
        read_omx(path)


def test_omx_without_a_group_of_lookups_has_zones_from_1(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.omx", "w") as file:
        file["data/m"] = ALIKE
        file["lookup"] = [1, 2]
    assert read_omx(tmp_path / "a.omx").destination.to_list() == [1, 2, 1, 2]


def test_openmatrix_reads_and_writes_the_same(tmp_path):
    openmatrix = pytest.importorskip("openmatrix")
    path = str(tmp_path / "a.omx")
    write_omx(path, {"origin": [3, 5], "destination": [5, 3], "trips": [1.5, 2.0]}, lookup="taz")
    with openmatrix.open_file(path) as file:
        assert file.list_matrices() == ["trips"]
        assert file.shape() == (2, 2)
        assert file.mapping("taz") == {3: 0, 5: 1}
        assert np.array(file["trips"])[0, 1] == 1.5
    with openmatrix.open_file(path, "w") as file:
        file["trips"] = np.array([[0.0, 4.0], [6.0, 0.0]])
        file.create_mapping("taz", [10, 20])
    frame = read_omx(path)
    assert frame.to_numpy().tolist() == [[10, 10, 0], [10, 20, 4], [20, 10, 6], [20, 20, 0]]


def test_omx_needs_one_pair_of_ends_and_values(tmp_path):
    with pytest.raises(InputError, match="not sure which columns hold the pairs"):
        write_omx(tmp_path / "a.omx", {"a": [1], "b": [2]})
    with pytest.raises(InputError, match="no column 'x' of values"):
        write_omx(tmp_path / "a.omx", {"origin": [1], "destination": [2]}, "x")


def test_ubodt_has_the_first_and_last_steps_of_each_path(tmp_path):
    rng = np.random.default_rng(3)
    n = 40
    edges = pd.DataFrame(
        {"src": rng.integers(0, n, 150), "dst": rng.integers(0, n, 150), "weight": rng.integers(1, 9, 150)}
    )  # fmt: skip
    graph = kt.graph_from_edges(edges, edge_ids=True)
    path = tmp_path / "ubodt.txt"
    n_rows = write_ubodt(graph, path, 12)
    table = pd.read_csv(path, sep=";")
    assert len(table) == n_rows > n
    assert list(table) == ["source", "target", "next_n", "prev_n", "next_e", "distance"]
    assert (table.distance <= 12).all()
    routes = kt.paths(graph, (table.source, table.target))
    steps = routes.groupby("pair").vertex.agg(["first", list])
    for row, route in zip(table.itertuples(), steps["list"], strict=True):
        assert (row.next_n, row.prev_n) == (route[1], route[-2])
        edge = edges.iloc[row.next_e]
        assert (edge.src, edge.dst) == (row.source, row.next_n)
    expected = kt.sssp_many(graph, "all", cutoff=12)
    assert n_rows == len(expected) - graph.n_vertices


def test_ubodt_needs_integer_ids_and_numbers_of_edges(tmp_path):
    named = kt.graph_from_edges({"src": ["a"], "dst": ["b"], "weight": [1]}, edge_ids=True)
    with pytest.raises(InputError, match="ids that are strings"):
        write_ubodt(named, tmp_path / "u", 1)
    plain = kt.graph_from_edges({"src": [1], "dst": [2], "weight": [1]})
    with pytest.raises(InputError, match="edge_ids=True"):
        write_ubodt(plain, tmp_path / "u", 1)
    assert not (tmp_path / "u").exists()


PAIRS = pd.DataFrame({"origin": [1, 2], "destination": [2, 1], "minutes": [3.0, 4.0]})


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"origin": ["1", "2"]}, {}, "both hold integers, or both strings"),
        ({"origin": [], "destination": [], "minutes": []}, {}, "has no row"),
        ({"minutes": [3.0]}, {}, "column 'minutes' has 1 value, not 2"),
        ({"destination": [2]}, {}, "column 'destination' has 1 value, not 2"),
        ({"a/b": [1, 2]}, {}, "'a/b' cannot be the name"),
        ({"": [1, 2]}, {}, "cannot be the name"),
        ({3: [1, 2]}, {}, "3 cannot be the name"),
        ({}, {"columns": 3}, "columns must be a name"),
        ({}, {"lookup": ""}, "cannot be the name"),
        ({}, {"lookup": 3}, "lookup must be"),
        ({}, {"path": 3}, "path must be a path"),
    ],
)
def test_omx_refuses_wrong_tables_by_name(tmp_path, changed, options, message):
    pytest.importorskip("h5py")
    path = tmp_path / "x.omx"
    with pytest.raises(InputError, match=message):
        write_omx(**{"path": path, "table": PAIRS.to_dict("list") | changed} | options)
    assert not path.exists()


def test_omx_takes_integers_of_two_types(tmp_path):
    pytest.importorskip("h5py")
    path = tmp_path / "x.omx"
    write_omx(path, PAIRS.astype({"origin": "uint64"}))
    assert read_omx(path).equals(PAIRS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": np.ones((2, 2)), "b": np.ones((3, 3))}, "'b' has the shape"),
        ({"a": np.ones(3)}, "'a' is no matrix of numbers"),
        ({"a": np.array([[b"x"]])}, "'a' is no matrix of numbers"),
    ],
)
def test_omx_that_holds_other_things_is_refused(tmp_path, data, message):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.omx"
    with h5py.File(path, "w") as file:
        group = file.create_group("data")
        for name, values in data.items():
            group[name] = values
    with pytest.raises(InputError, match=message):
        read_omx(path)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("net.tntp", "10.5", "nan"),
        ("net.tntp", "9999", "inf"),
        ("net.tntp", "\t2\t1\t9", "\t" + "9" * 30 + "\t1\t9"),
        ("net.tntp", "\t2\t1\t9", "\tnan\t1\t9"),
        ("trips.tntp", "8.5", "nan"),
        ("trips.tntp", "8.5", "inf"),
    ],
)
def test_tntp_numbers_that_no_column_holds_are_named(tntp, name, old, new):
    path = tntp / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    read = read_network if name == "net.tntp" else read_trips
    with pytest.raises(EdgeListError, match=name):
        read(path)


@pytest.mark.parametrize("old", ["Origin 	1", "    2 :"])
def test_tntp_zones_beyond_int64_are_named(tntp, old):
    path = tntp / "trips.tntp"
    text = path.read_text().replace("     2 :", "\n    2 :")
    path.write_text(text.replace(old, old.replace(old.strip(" :")[-1], "9" * 30), 1))
    with pytest.raises(EdgeListError, match=r"trips\.tntp"):
        read_trips(path)


def in_omx(matrix=((1.0,),), name="m", lookup=None):
    """Return a function that fills an OMX file."""

    def fill(file):
        file.create_group("data")[name] = matrix
        if lookup is not None:
            file.create_group("lookup")["zone"] = lookup

    return fill


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (lambda _: None, "no group 'data'"),
        (lambda file: file.create_dataset("data", data=[1]), "no group 'data'"),
        (lambda file: file.create_group("data").create_group("m"), "no matrix of numbers"),
        (in_omx([[b"a"]]), "no matrix of numbers"),
        (in_omx([1.0]), "no matrix of numbers"),
        (in_omx([[2**62 + 1]]), r"which float64 cannot hold"),
        (in_omx(name="origin"), "called 'origin', as a column"),
        (in_omx(lookup=[1.5]), "holds 1.5; ids are integers or strings"),
        (in_omx(lookup=[b"\xff"]), "is no UTF-8 text"),
        (in_omx(np.ones((2, 2)), lookup=[7, 7]), "has 7 twice"),
        (
            lambda file: file.create_group("data").create_dataset(
                "m", shape=(10**7, 10**7), chunks=(8, 8), dtype="f8"
            ),
            "GiB are left",
        ),
    ],
)
def test_omx_of_another_kind_is_one_error_that_names_the_file(tmp_path, fill, message):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.omx", "w") as file:
        fill(file)
    with pytest.raises(kt.KeplerError, match=rf"a\.omx: .*{message}"):
        read_omx(tmp_path / "a.omx")


def test_damaged_omx_is_one_error_or_is_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.omx"
    write_omx(path, PAIRS)
    whole = path.read_bytes()
    chance = np.random.default_rng(1)
    messages = []
    for at in range(0, len(whole), len(whole) // 60):
        flipped = bytearray(whole)
        flipped[at : at + 40] = chance.bytes(40)
        for damaged in (whole[:at], flipped):
            path.write_bytes(damaged)
            try:
                read_omx(path)
            except kt.KeplerError as error:
                messages.append(str(error))
    assert len(messages) > 60
    assert all("a.omx: " in message for message in messages)
    with h5py.File(path, "w") as file:
        file.create_group("data")["m"] = h5py.SoftLink("/none")
    with pytest.raises(InputError, match=r"a\.omx: .*may be damaged"):
        read_omx(path)


@pytest.mark.parametrize("write", ["omx", "ubodt", "geoparquet", "checkpoint"])
def test_a_full_disk_is_named_and_keeps_the_file_before(tmp_path, monkeypatch, write):
    path = tmp_path / "there"
    path.write_text("before")
    graph = kt.graph_from_edges([1], [2], [3], edge_ids=True)
    links = {"src": [1], "dst": [2], "free_flow_time": [1.0]}
    trips = {"origin": [1], "destination": [2], "volume": [5.0]}
    places = {"vertex": [1, 2], "x": [0, 1], "y": [0, 1]}
    if write == "checkpoint":
        path.unlink()

    replace = os.replace

    def full(partial, target):
        if target == path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(partial, target)  # as of compiled code

    calls = {
        "omx": lambda: write_omx(path, PAIRS),
        "ubodt": lambda: write_ubodt(graph, path, 9),
        "geoparquet": lambda: kt.write_geoparquet(kt.sssp(graph, 1), path, places),
        "checkpoint": lambda: assign(
            links, trips, cost=BPR(b=0, power=1, capacity=1), checkpoint=path
        ),
    }
    monkeypatch.setattr("kepler_traverse.runtime.regular_files.os.replace", full)
    with pytest.raises(OutputError, match="there: it cannot be written: No space left on device"):
        calls[write]()
    left = [] if write == "checkpoint" else ["there"]
    assert [each.name for each in tmp_path.iterdir()] == left
    if left:
        assert path.read_text() == "before"


def test_zones_that_a_graph_of_a_network_lets_paths_through_are_said_once(tmp_path):
    rows = "".join(f"\t{u}\t{v}\t1\t1\t1\t0\t1\t0\t0\t1\t;\n" for u, v in ((1, 2), (2, 3), (3, 1)))
    for first in (1, 3):
        file = tmp_path / f"{first}.tntp"
        file.write_text(f"<FIRST THRU NODE> {first}\n<END OF METADATA>\n{rows}")
    with pytest.warns(kt.errors.EdgeListWarning, match="no path leads through a vertex below 3"):
        graph = kt.read_graph(tmp_path / "3.tntp", device="cpu")
    assert len(graph.report.hints) == 1
    closed = kt.read_graph(tmp_path / "3.tntp", device="cpu", closed=[1, 2])
    assert not closed.report.hints
    assert not kt.read_graph(tmp_path / "1.tntp", device="cpu").report.hints
