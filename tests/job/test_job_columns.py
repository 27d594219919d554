"""The job lists used and unused columns, and its messages name flags and not arguments."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import EdgeListError, option_text
from kepler_traverse.formats.edge_list import ReadOptions
from pipelines import verify
from pipelines.batch_sources import main
from pipelines.cli.options import OPTIONS, flag_text
from pipelines.cli.settings import read_settings
from pipelines.monitoring.console import columns_text
from pipelines.run.reading import digest_inputs
from tests.support.jobs import call, manifest_of

STREETS = "u,v,key,osmid,length\n1,2,0,7,1.5\n2,3,0,8,2.5\n3,1,0,9,4.0\n"


@pytest.fixture
def streets(tmp_path):
    path = tmp_path / "streets.csv"
    path.write_text(STREETS)
    return path


def refused(capsys, *argv):
    code, out, err = call(capsys, *argv, "--sources", "1", "--plan")
    assert (code, out) == (2, "")
    return err


def test_a_plan_names_the_columns(capsys, streets):
    code, out, err = call(capsys, streets, "--algorithm", "sssp", "--sources", "1", "--plan")
    assert code == 0
    assert re.search(
        r"^columns +'u' to 'v', weight 'length'; not used: 'key', 'osmid'$", out, re.MULTILINE
    )
    assert "not used" not in err


def test_columns_that_are_added_up_or_weights_back_are_used(capsys, tmp_path):
    path = tmp_path / "roads.csv"
    path.write_text("u,v,minutes,back,km,osmid\n1,2,3,4,0.5,7\n2,3,1,-1,0.25,8\n")
    columns = ("--columns", "weight=minutes", "--columns", "reverse_weight=back")
    argv = [path, "--algorithm", "sssp", *columns, "--sources", "1", "--targets", "3", "--plan"]
    _, out, _ = call(capsys, *argv, "--result", "targets", "--along", "km")
    ends = "'u' to 'v', weight 'minutes', of the other direction 'back'"
    assert f"{ends}; along paths: 'km'; not used: 'osmid'\n" in out
    hops = [path, "--sources", "1", "--targets", "3", "--plan", "--result", "targets"]
    _, out, _ = call(capsys, *hops, "--along", "km,minutes,back")
    assert "of weights" not in out
    assert "is not used" not in out


def test_a_run_names_the_columns_in_summary_manifest_and_report(capsys, streets, tmp_path):
    argv = [streets, "--algorithm", "sssp", "--sources", "1", "--device", "cpu", "--workers", "1"]
    code, out, _ = call(capsys, *argv, "--output", tmp_path / "out")
    assert code == 0
    shown = "'u' to 'v', weight 'length'; not used: 'key', 'osmid'"
    assert f"columns: {shown}\n" in out
    built = manifest_of(tmp_path / "out")["graph"]["built"]
    assert (built["src_column"], built["dst_column"], built["weight_column"]) == (
        "u",
        "v",
        "length",
    )
    assert built["unused_columns"] == ["key", "osmid"]
    page = (tmp_path / "out" / "_report.html").read_text()
    assert (
        shown.replace("'", "&#x27;") in page or shown.replace("'", "&#39;") in page or shown in page
    )
    distances = pq.read_table(tmp_path / "out" / "part-000000.parquet").to_pydict()
    assert distances["distance"] == [0.0, 1.5, 4.0]


def notes(capsys, path, *flags):
    """The notes of a plan, as text and as JSON."""
    argv = [path, "--all-sources", "--plan", *flags]
    _, out, err = call(capsys, *argv)
    assert err == ""
    found = re.findall(r"^note +(.*)$", out, re.MULTILINE)
    assert json.loads(call(capsys, *argv, "--json")[1])["notes"] == found
    return found


def test_bfs_says_which_weights_it_passes_over(capsys, streets):
    says = "bfs counts hops: column 'length' is not used; --algorithm sssp --columns weight=length adds up weights"
    assert notes(capsys, streets) == [says]
    assert notes(capsys, streets, "--algorithm", "sssp") == []
    for flag, value in (("--columns", "weight=key"), ("--weight-type", "float64")):
        code, _, err = call(
            capsys, streets, flag, value, "--plan", "--sources", "1", "--device", "cpu"
        )
        assert (code, re.search(f"{flag}( weight=NAME)? has no effect", err) is not None) == (
            2,
            True,
        ), err
    streets.write_text("from,to,toll,fee\na,b,1,2\n")
    assert (
        "columns 'toll', 'fee' are not used; --algorithm sssp --columns weight=toll"
        in notes(capsys, streets)[0]
    )
    streets.write_text("from,to,name\na,b,x\n")
    assert notes(capsys, streets) == []


def test_a_run_of_bfs_says_it_too(capsys, streets, tmp_path):
    flags = [
        "--output",
        tmp_path / "out",
        "--sources",
        "1",
        "--device",
        "cpu",
        "--workers",
        "1",
        "--no-report",
    ]
    code, _, err = call(capsys, streets, *flags)
    assert code == 0
    assert "bfs counts hops: column 'length' is not used" in err


# --- words -----------------------------------------------------------------------------------------------------------------

SSSP = ["--algorithm", "sssp"]
WORDS = {
    # what: file name, text, flags, what the message says, what it does not say
    "one column of two": ("e.csv", STREETS, ["--columns", "src=u"],
        "--columns src=NAME and --columns dst=NAME go together", "src_column"),
    "a header or an edge": ("e.csv", "alice,bob\nbob,carol\n", [], "give --header yes or --header no", "header="),
    "a delimiter": ("e.csv", "alice+bob\n", [], "give --delimiter", "give the delimiter"),
    "blanks": ("e.csv", "1 2\n", [], "--format snap", "format="),
    "no ending": ("e.dat", "1 2\n", [], "give --format", "give format"),
    "unknown ends": ("e.csv", "a,b\n1,2\n", [], "name them with --columns src=NAME and --columns dst=NAME", "src_column"),
    "no weight": (
        "e.csv", "src,dst,toll\n1,2,3\n", SSSP, "column 'toll' holds numbers; name one with --columns weight=NAME", "_c"),
    "two weights": (
        "e.csv", "src,dst,km,minutes\n1,2,3,4\n", SSSP, "could be 'km' or 'minutes'; name one with --columns weight=",
        "_col",
    ),
    "ids that are no integers": ("e.csv", "src,dst\n1,2\nx,2\n", [], "--id-type string takes ids", "id_type"),
    "an id type": ("e.csv", "src,dst\n1,2\n", ["--id-type", "float"], "--id-type 'float' is none of", "id_type"),
    "a pattern": (
        "e.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", SSSP, "take --algorithm bfs", "=",
    ),
    "a header of Matrix Market": ("e.mtx", "x", ["--header", "yes"], "--header is not for format matrix_market", "header="),
    "an unknown source": ("e.csv", "src,dst\n2,3\n", [], "without an edge by --vertices FILE", "vertices="),
}  # fmt: skip


@pytest.mark.parametrize("what", WORDS)
def test_messages_of_the_job_speak_of_flags(capsys, tmp_path, what):
    name, text, flags, says, does_not_say = WORDS[what]
    (tmp_path / name).write_text(text)
    err = refused(capsys, tmp_path / name, *flags)
    assert says in err
    assert does_not_say not in err.replace(str(tmp_path), "")


def test_messages_of_the_library_speak_of_arguments(tmp_path):
    (tmp_path / "e.csv").write_text("alice,bob\nbob,carol\n")
    main([str(tmp_path / "e.csv"), "--sources", "alice", "--plan"])  # whose words end with it
    with pytest.raises(EdgeListError, match="give header='yes' or header='no'"):
        read_graph(tmp_path / "e.csv", device="cpu")
    assert option_text("id_type", "string") == "id_type='string'"


def test_every_option_of_reading_has_a_flag():
    flags = {option.flag for option in OPTIONS} | {"--undirected"}
    names = [
        name
        for name in ReadOptions.__dataclass_fields__
        if name not in ("weighted", "device", "scratch", "may_be_empty")
    ]
    for name in [*names, "format", "weight_type", "vertices"]:
        assert flag_text(name).split()[0] in flags
    assert flag_text("directed", False) == "--undirected"


# --- vertices and sources --------------------------------------------------------------------------------------------------


def test_further_vertices_may_be_sources_and_change_the_cached_graph(capsys, tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n")
    (tmp_path / "v.txt").write_text("7\n")
    flags = [tmp_path / "e.csv", "--sources", "7", "--plan", "--json"]
    assert "--vertices FILE" in call(capsys, *flags)[2]
    code, out, _ = call(capsys, *flags, "--vertices", tmp_path / "v.txt")
    assert (code, json.loads(out)["graph"]["vertices"]) == (0, 3)
    given = {"edges": [str(tmp_path / "e.csv")], "all_sources": True, "plan": True}
    origins = {
        digest_inputs(read_settings(given)),
        digest_inputs(read_settings(given | {"vertices": str(tmp_path / "v.txt")})),
    }
    (tmp_path / "v.txt").write_text("7\n8\n")
    origins.add(digest_inputs(read_settings(given | {"vertices": str(tmp_path / "v.txt")})))
    assert len(origins) == 3


def test_an_output_with_further_vertices_is_proven_right(capsys, tmp_path):
    (tmp_path / "e.csv").write_text("from,to\na,b\n")
    (tmp_path / "v.txt").write_text("alone\n")
    flags = [
        "--vertices", tmp_path / "v.txt", "--all-sources", "--output", tmp_path / "out", "--workers", "1",
        "--no-report",
    ]  # fmt: skip
    assert call(capsys, tmp_path / "e.csv", *flags)[0] == 0
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "e.csv")]) == 0
    assert "verified (3 sources, 4 rows" in capsys.readouterr().out
    (tmp_path / "v.txt").write_text("other\n")
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "e.csv")]) == 2


def test_a_source_with_a_sharp_sign_is_that_source(capsys, tmp_path):
    pq.write_table(pa.table({"src": ["node", "node#1"], "dst": ["x", "y"]}), tmp_path / "e.parquet")
    (tmp_path / "s.txt").write_text("node#1\n")
    flags = [
        "--sources",
        tmp_path / "s.txt",
        "--output",
        tmp_path / "out",
        "--workers",
        "1",
        "--no-report",
    ]
    assert call(capsys, tmp_path / "e.parquet", *flags)[0] == 0
    rows = pq.read_table(tmp_path / "out" / "part-000000.parquet").to_pydict()
    assert (rows["source"], rows["vertex"]) == (["node#1", "node#1"], ["node#1", "y"])


def test_columns_that_are_summed_are_not_called_unused():
    built = {
        "src_column": "src",
        "dst_column": "dst",
        "weight_column": "seconds",
        "unused_columns": ["metres", "lanes"],
    }
    assert columns_text(built, None, ["metres"]) == (
        "'src' to 'dst', weight 'seconds'; along paths: 'metres'; not used: 'lanes'"
    )
