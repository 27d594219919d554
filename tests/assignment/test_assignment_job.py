"""``run --result assignment``: files, manifest, resume after a kill, and what verification finds."""

import json
import signal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import InputError
from kepler_traverse.assignment import VehicleClass, assign
from pipelines import assignment, verify
from pipelines.run.assignment_tables import LinkFile, read_closed
from tests.assignment import networks
from tests.support.forks import ran_forked

EXIT_USAGE = 2


@pytest.fixture
def files(tmp_path):
    links, trips = networks.grid(side=4, n_zones=5, volume=90)
    links.to_parquet(tmp_path / "links.parquet")
    trips.to_parquet(tmp_path / "trips.parquet")
    return tmp_path


def words(folder, *more, out="out"):
    return [
        str(folder / "links.parquet"),
        *("--trips", str(folder / "trips.parquet")),
        *("--output", str(folder / out)),
        *more,
    ]


def verified(folder, out="out", more=()):
    given = [
        str(folder / "links.parquet"),
        *("--trips", str(folder / "trips.parquet")),
        *("--verify", str(folder / out)),
        *more,
    ]
    return assignment.main(given)


def test_files_have_what_the_library_returns(files, capsys):
    chosen = ("--skims", "time,length", "--select-link", "3,7", "--gap", "1e-8")
    assert assignment.main(words(files, *chosen, "--value-of-time", "2")) == 0
    out = files / "out"
    links, trips = (pd.read_parquet(files / f"{name}.parquet") for name in ("links", "trips"))
    expected = assign(
        links, trips, classes=VehicleClass(value_of_time=2.0), gap=1e-8, select_link=[3, 7]
    )
    pd.testing.assert_frame_equal(pd.read_parquet(out / "links.parquet"), expected.links)
    skims = expected.skims(["time", "length"])
    pd.testing.assert_frame_equal(pd.read_parquet(out / "skims.parquet"), skims)
    pairs = pd.read_parquet(out / "selected_pairs.parquet")
    pd.testing.assert_frame_equal(pairs, expected.selected_pairs)
    facts = json.loads((out / "_manifest.json").read_text())
    assert facts["relative_gap"] == expected.relative_gap
    assert facts["objective"] == expected.objective
    assert facts["shortest_by"] == "searches"
    assert (out / "_SUCCESS").exists()
    assert "proved; flows of the links" in capsys.readouterr().err
    assert verified(files) == 0


@pytest.mark.parametrize("method", ["paths", "frank_wolfe"])
def test_killed_run_is_resumed_with_equal_bytes(files, method):
    chosen = ("--method", method, "--gap", "1e-4")
    assert assignment.main(words(files, *chosen, out="whole")) == 0
    program = (
        "import os, signal\n"
        "from pipelines import assignment\n"
        "def kill(iterations, gap):\n"
        "    if iterations == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "assignment._report = kill\n"
        f"assignment.main({words(files, *chosen)!r})\n"
    )
    killed = ran_forked(program)
    assert killed.returncode == -signal.SIGKILL
    out = files / "out"
    assert (out / "_state.npz").exists()
    assert not (out / "_SUCCESS").exists()
    assert assignment.main(words(files, *chosen)) == EXIT_USAGE
    assert assignment.main(words(files, *chosen, "--resume")) == 0
    assert (out / "links.parquet").read_bytes() == (files / "whole/links.parquet").read_bytes()
    gaps = [json.loads((files / name / "_manifest.json").read_text()) for name in ("out", "whole")]
    assert gaps[0]["relative_gap"] == gaps[1]["relative_gap"]
    assert assignment.main(words(files, *chosen, "--resume")) == 0  # only the last search again
    assert (out / "links.parquet").read_bytes() == (files / "whole/links.parquet").read_bytes()
    assert verified(files) == 0


@pytest.mark.parametrize("is_complete", [True, False])
def test_resume_answers_what_is_asked_now(files, capsys, is_complete):
    loose = ("--gap", "0.1") if is_complete else ("--max-iterations", "1")
    assignment.main(words(files, *loose, "--skims", "time", "--select-link", "3"))
    out = files / "out"
    before = (out / "_state.npz").read_bytes()
    trips = pd.read_parquet(files / "trips.parquet")
    trips.assign(volume=trips.volume + 1).to_parquet(files / "others.parquet")
    others = words(files, "--resume")
    others[others.index("--trips") + 1] = str(files / "others.parquet")
    assert assignment.main(others) == EXIT_USAGE
    refused = capsys.readouterr().err
    assert "is of other links, trips, costs" in refused
    assert "; take a new folder by --output" in refused
    assert (out / "_SUCCESS").exists() == is_complete
    assert (out / "_state.npz").read_bytes() == before
    assert assignment.main(words(files, "--resume", "--gap", "1e-7")) == 0
    assert json.loads((out / "_manifest.json").read_text())["relative_gap"] <= 1e-7
    assert sorted(each.name for each in out.iterdir()) == [
        "_SUCCESS",
        "_manifest.json",
        "_state.npz",
        "links.parquet",
    ]
    assert assignment.main(words(files, "--resume", "--gap", "1e-7", "--skims", "length")) == 0
    assert list(pd.read_parquet(out / "skims.parquet"))[2:] == ["cost", "length"]
    assert verified(files) == 0


def test_verification_takes_the_settings_of_the_run_or_refuses_others(files, capsys):
    assert assignment.main(words(files, "--gap", "1e-4", "--power", "4")) == 0
    for flag, value, shown in (
        ("--power", "3", "3"),
        ("--gap", "1e-3", "0.001"),
        ("--cost", "conical", "conical"),
        ("--skims", "time", "time"),
        ("--method", "frank_wolfe", "frank_wolfe"),
        ("--value-of-time", "2", "2.0"),
    ):
        assert verified(files, more=(flag, value)) == EXIT_USAGE
        assert f"{flag} {shown} is not what" in capsys.readouterr().err
    assert verified(files, more=("--gap", "0.0001", "--power", "4", "--cost", "bpr")) == 0


def test_gap_that_is_not_met_has_an_exit_code_of_its_own(files):
    assert assignment.main(words(files, "--max-iterations", "2")) == assignment.EXIT_NOT_MET
    assert not (files / "out/_SUCCESS").exists()
    assert verified(files) == 0
    assert assignment.main(words(files, "--resume")) == 0


def changed_flow(out):
    table = pd.read_parquet(out / "links.parquet")
    table.loc[0, "flow"] += 1.0
    table.to_parquet(out / "links.parquet")


def lost_flow(out):
    (out / "links.parquet").unlink()


def foreign_skims(out):
    pd.DataFrame({"origin": [1], "destination": [2]}).to_parquet(out / "skims.parquet")


def changed_gap(out):
    facts = json.loads((out / "_manifest.json").read_text())
    facts["relative_gap"] /= 2
    (out / "_manifest.json").write_text(json.dumps(facts))


def changed_flow_and_digest(out):
    from kepler_traverse.runtime.regular_files import compute_digests

    table = pq.read_table(out / "links.parquet")
    pq.write_table(table.set_column(2, "flow", table["time"]), out / "links.parquet")
    facts = json.loads((out / "_manifest.json").read_text())
    facts["files"] = compute_digests(out, list(facts["files"]))
    (out / "_manifest.json").write_text(json.dumps(facts))


def changed_paths(out):
    import numpy as np

    from kepler_traverse.runtime.regular_files import compute_digests
    from tests.assignment.test_equilibrium import sealed

    with np.load(out / "_state.npz") as file:
        state = {name: file[name] for name in file.files}
    state["links"] = state["links"][::-1].copy()
    sealed(state, out / "_state.npz")
    facts = json.loads((out / "_manifest.json").read_text())
    facts["files"] = compute_digests(out, list(facts["files"]))
    (out / "_manifest.json").write_text(json.dumps(facts))


def test_verification_with_other_trips_says_so(files, capsys):
    assert assignment.main(words(files, "--gap", "1e-4")) == 0
    trips = pd.read_parquet(files / "trips.parquet")
    trips.assign(volume=trips.volume + 1).to_parquet(files / "trips.parquet")
    assert verified(files) == assignment.EXIT_WRONG
    assert "_state.npz: it is damaged, or of other links, trips or" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (changed_flow, "links.parquet differs from its checksum"),
        (lost_flow, "links.parquet is missing"),
        (foreign_skims, "skims.parquet: it is of another run"),
        (changed_gap, "relative_gap is"),
        (changed_flow_and_digest, "links.parquet: its rows are not those of the flows"),
        (changed_paths, "do not carry its volume"),
    ],
)
def test_verification_reports_planted_faults(files, capsys, plant, message):
    assert assignment.main(words(files, "--gap", "1e-4")) == 0
    plant(files / "out")
    capsys.readouterr()
    assert verified(files) == assignment.EXIT_WRONG
    assert message in capsys.readouterr().out


def test_text_files_and_classes_give_the_same_flows(files):
    for name in ("links", "trips"):
        pd.read_parquet(files / f"{name}.parquet").to_csv(files / f"{name}.csv", index=False)
    (files / "classes.csv").write_text(
        "volume,value_of_time,distance_weight,passenger_cars\nvolume,2,0,1\ntrucks,,0.5,2.5\n"
    )
    given = [
        *(str(files / "links.csv"), "--trips", str(files / "trips.csv"), "--gap", "1e-6"),
        *("--classes", str(files / "classes.csv"), "--output", str(files / "out"), "--closed", "5"),
    ]
    assert assignment.main(given) == 0
    links, trips = (pd.read_parquet(files / f"{name}.parquet") for name in ("links", "trips"))
    classes = [
        VehicleClass(volume="volume", value_of_time=2.0),
        VehicleClass(volume="trucks", distance_weight=0.5, passenger_cars=2.5),
    ]
    expected = assign(links, trips, classes=classes, closed=[5], gap=1e-6).links
    pd.testing.assert_frame_equal(pd.read_parquet(files / "out/links.parquet"), expected)


FILES_OF_CLOSED = {
    "lines.txt": b"# zones\n5\n7\n",
    "marked.txt": b"\xef\xbb\xbf5\r\n7\r\n",
    "latin.txt": "5\n7 \xe4\n".encode("latin-1"),
    "words.txt": b"5\nseven\n",
    "empty.txt": b"",
}


@pytest.mark.parametrize("name", [*FILES_OF_CLOSED, "table.parquet"])
def test_closed_vertices_come_from_each_file_of_ids(tmp_path, name):
    path = tmp_path / name
    if name in FILES_OF_CLOSED:
        path.write_bytes(FILES_OF_CLOSED[name])
    else:
        pd.DataFrame({"vertex": [5, 7], "name": ["a", "b"]}).to_parquet(path)
    links = LinkFile(pa.table({"src": [5], "dst": [7]}), ("src", "dst"), [])
    if name in ("latin.txt", "words.txt", "empty.txt"):
        with pytest.raises(InputError, match=f"{name}.* file of closed"):
            read_closed(str(path), links)
        return
    assert list(read_closed(str(path), links)) == [5, 7]


@pytest.mark.parametrize("ids", [list(range(1000)), [f"z{n}" for n in range(1000)]])
def test_a_long_list_of_closed_vertices_is_no_name_of_a_file(ids):
    links = LinkFile(pa.table({"src": ids, "dst": ids}), ("src", "dst"), [])
    assert read_closed(",".join(map(str, ids)), links) == ids


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--alpha", "4"), "--alpha does not belong to --cost bpr"),
        (("--cost", "conical", "--b", "1"), "--b does not belong to --cost conical"),
        (("--cost", "conical", "--power", "1"), "--power does not belong to --cost conical"),
        (("--classes", "c.csv", "--volume", "cars"), "--volume does not belong to --classes"),
        (
            ("--classes", "c", "--value-of-time", "1"),
            "--value-of-time does not belong to --classes",
        ),
        (("--classes", "c", "--distance-weight", "1"), "--distance-weight does not belong"),
        (("--verify", "out"), "--output does not belong to --verify"),
        (("--verify", "out", "--resume"), "--resume does not belong to --verify"),
        (("--capacity", "lanes"), "no column 'lanes', which is the capacity"),
        (("--select-link", "a"), "give rows of the links"),
        (("--src", "x", "--dst", "y"), "no column 'x'"),
        (("--src", "src"), "--src and --dst belong together"),
        (("--dst", "dst"), "--src and --dst belong together"),
        (("--skims", "time,metres"), "no column 'metres'"),
        (("--skims", ""), "no column ''"),
        (("--skims", "time,time"), "each column is named once"),
        (("--skims", "cost"), "rename the column"),
        (("--closed", "q"), "the ids of this graph are integers"),
        (("--closed", "1_0"), "the ids of this graph are integers"),
        (("--closed", ""), "holds an empty id"),
        (("--select-link", "1_0"), "give rows of the links"),
        (("--gap", "1e-15"), "cannot be proved"),
    ],
)
def test_wrong_flags_are_refused_before_anything_is_written(files, capsys, more, message):
    assert assignment.main(words(files, *more)) == EXIT_USAGE
    assert message in capsys.readouterr().err
    assert not (files / "out").exists()


def test_one_of_output_and_verify_is_needed(files, capsys):
    given = [str(files / "links.parquet"), "--trips", str(files / "trips.parquet")]
    assert assignment.main(given) == EXIT_USAGE
    assert "neither --output nor --verify is given" in capsys.readouterr().err


def test_verify_of_the_job_names_the_program_of_an_assignment(files, capsys):
    assert assignment.main(words(files, "--gap", "1e-3")) == 0
    assert verify.main([str(files / "out"), str(files / "links.parquet")]) == EXIT_USAGE
    assert "assignment" in capsys.readouterr().err


def test_run_and_batch_sources_have_the_result(files):
    for program in (["pipelines"], ["pipelines.batch_sources"]):
        run = ["run"] if program == ["pipelines"] else []
        given = [*run, *words(files, "--result", "assignment", "--gap", "1e-3", out=program[0])]
        ran_forked(f"-m {program[0]}", *given)
        assert (files / program[0] / "_SUCCESS").exists()
