"""Wrong input of the job: one message, exit code 2, and no output folder."""

import contextlib
import os
import socket
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import cuda
from kepler_traverse.errors import InputError, how_to_install
from kepler_traverse.formats.ids import read_ids
from pipelines.batch_sources import main
from pipelines.cli.options import OPTIONS
from pipelines.run.given_table import read_given_table
from tests.support.jobs import call


def fails(capsys, *argv, code=2):
    """Run the command line, expect it to fail, and return its one message."""
    found, out, err = call(capsys, *argv)
    assert (found, out, len(err.splitlines())) == (code, "", 1), err
    assert err.startswith("error: ")
    return err.rstrip("\n")


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)


def a_missing_file(path):
    return path


def a_header_only(path):
    path.write_text("src,dst,weight\n")


def a_truncated_parquet(path):
    parquet(path, src=np.arange(1000), dst=np.arange(1000))
    path.write_bytes(path.read_bytes()[:-50])


def a_nan_weight(path):
    parquet(path, src=[1, 2], dst=[2, 3], weight=[1.0, float("nan")])


def a_negative_weight(path):
    parquet(path, src=[1, 2], dst=[2, 3], weight=[1.0, -2.0])


def good(path):
    parquet(path, src=[1, 2, 3], dst=[2, 3, 1], weight=[1, 2, 3])


SSSP = ["--algorithm", "sssp"]


@pytest.mark.parametrize(
    ("name", "make", "flags", "words"),
    [
        ("edges.parquet", a_missing_file, [], ["edges.parquet"]),
        ("edges.csv", a_header_only, [], ["edges.csv"]),
        ("edges.parquet", a_truncated_parquet, [], ["edges.parquet"]),
        ("edges.parquet", a_nan_weight, SSSP, ["edges.parquet", "weight", "row 1", "NaN"]),
        (
            "edges.parquet",
            a_negative_weight,
            [*SSSP, "--strategy", "near_far"],
            ["near_far", "negative", "frontier"],
        ),
        ("edges.parquet", good, ["--sources", "1,77,78"], ["77, 78", "source"]),
        ("edges.parquet", good, ["--sources", "1,x"], ["source 'x'", "integers"]),
        ("edges.parquet", good, ["--random-sources", "4"], ["4 random sources", "3 vertices"]),
        (
            "edges.parquet",
            good,
            ["--strategy", "dijkstra"],
            ["'dijkstra'", "switch", "source_per_thread"],
        ),
        ("edges.parquet", good, ["--format", "exel"], ["exel", "parquet", "csv"]),
        ("edges.parquet", good, ["--scheduler-file", "no_such.json"], ["no_such.json"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_wrong_input_gives_one_message_that_names_it(name, make, flags, words, tmp_path, capsys):
    make(tmp_path / name)
    sources = [] if {"--sources", "--random-sources"} & set(flags) else ["--sources", "1"]
    message = fails(
        capsys, tmp_path / name, *flags, *sources, "--device", "cpu", "--output", tmp_path / "out"
    )
    assert all(word in message for word in words), message
    assert not (tmp_path / "out").exists()


@pytest.fixture
def edges(tmp_path):
    good(tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["sources.txt", "nor is there a file of that name"]),
        ("", ["sources.txt", "empty"]),
        ("1\n9\n", ["9"]),
        ("1\nfour\n", ["'four'"]),
    ],
)
def test_a_wrong_file_of_sources_is_refused(edges, tmp_path, capsys, text, words):
    path = tmp_path / "sources.txt"
    if text is not None:
        path.write_text(text)
    message = fails(
        capsys, edges, "--sources", path, "--device", "cpu", "--output", tmp_path / "out"
    )
    assert all(word in message for word in words), message
    assert not (tmp_path / "out").exists()


def test_an_unknown_target_is_refused(edges, tmp_path, capsys):
    (tmp_path / "targets.txt").write_text("2\n55\n")
    targets = ["--targets", tmp_path / "targets.txt"]
    message = fails(
        capsys, edges, "--sources", 1, *targets, "--device", "cpu", "--output", tmp_path / "out"
    )
    assert "target" in message
    assert "55" in message


@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["new", "resume"])
@pytest.mark.parametrize("name", ["notes.txt", "_manifest.json", "part-000000.parquet"])
def test_a_folder_in_use_is_refused_and_left_alone(edges, tmp_path, capsys, name, resume):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / name).write_text("mine")
    assert str(folder) in fails(
        capsys, edges, "--sources", 1, "--device", "cpu", "--output", folder, *resume
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: "mine"}


def test_an_output_that_is_a_file_is_refused(edges, capsys):
    assert "this is a file" in fails(
        capsys, edges, "--sources", 1, "--device", "cpu", "--output", edges
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_made_is_refused(edges, tmp_path, capsys):
    tmp_path.chmod(0o555)
    message = fails(capsys, edges, "--sources", 1, "--device", "cpu", "--output", tmp_path / "out")
    tmp_path.chmod(0o755)
    assert "cannot be made" in message


@pytest.mark.skipif(cuda.available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused(edges, tmp_path, capsys):
    message = fails(capsys, edges, "--sources", 1, "--device", "cuda", "--output", tmp_path / "out")
    assert "cuda" in message
    assert "cpu" in message
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_does_not_answer_is_refused(edges, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pipelines.scheduling.cluster.CONNECT_SECONDS", 1)
    address = "tcp://127.0.0.1:9"
    message = fails(
        capsys,
        edges,
        "--sources",
        1,
        "--device",
        "cpu",
        "--output",
        tmp_path / "out",
        "--scheduler-address",
        address,
    )
    assert address in message
    assert not (tmp_path / "out").exists()


def test_a_traceback_is_shown_on_request_only(edges, tmp_path, capsys):
    argv = [
        str(edges),
        "--sources",
        "77",
        "--device",
        "cpu",
        "--output",
        str(tmp_path / "out"),
        "--debug",
    ]
    assert main(argv) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("a bug"), "unexpected RuntimeError: a bug; --debug shows where it comes from"),
        (ModuleNotFoundError("No module named 'mine'", name="mine"),
         "unexpected ModuleNotFoundError: No module named 'mine'"),
        (ModuleNotFoundError(name="dask.config"),
         "the job needs dask, which is not installed: " + how_to_install("job")),
    ],
)  # fmt: skip
def test_an_unexpected_error_is_one_message_and_exit_code_one(
    edges, tmp_path, capsys, monkeypatch, error, said
):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("pipelines.run.engine.prepare", broken)
    assert said in fails(capsys, edges, "--sources", 1, "--output", tmp_path / "out", code=1)


def test_a_negative_self_loop_is_a_negative_cycle(tmp_path, capsys):
    parquet(tmp_path / "edges.parquet", src=[1, 2], dst=[2, 2], weight=[1, -1])
    job = [tmp_path / "edges.parquet", *SSSP, "--device", "cpu", "--no-report", "--output"]
    assert main([str(word) for word in (*job, tmp_path / "out", "--sources", 1)]) == 4
    err = capsys.readouterr().err
    assert "negative cycle" in err
    assert "2 -> 2" in err
    parquet(tmp_path / "edges.parquet", src=[1, 3], dst=[2, 3], weight=[1, -1])
    # which does not reach the loop
    assert main([str(word) for word in (*job, tmp_path / "other", "--sources", 1)]) == 0


FILES = [option.flag for option in OPTIONS if option.kind in ("file", "ids")]
IDS = {option.flag for option in OPTIONS if option.kind == "ids"}


@pytest.mark.parametrize("shape", ["a FIFO", "a device", "a socket", "a folder"])
def test_files_that_are_not_regular_are_refused_whatever_names_them(shape, tmp_path, capsys):
    edges, odd = tmp_path / "edges.csv", tmp_path / "odd.csv"
    edges.write_text("src,dst\n1,2\n")
    with contextlib.ExitStack() as opened:
        if shape == "a FIFO":
            os.mkfifo(odd)
        elif shape == "a device":
            odd.symlink_to("/dev/zero")
        elif shape == "a socket":
            opened.enter_context(socket.socket(socket.AF_UNIX)).bind(str(odd))
        else:
            odd.mkdir()
        said = f"odd.csv: the file cannot be read: it is {shape} and not a regular file"
        assert {
            "--sources",
            "--targets",
            "--pairs",
            "--vertices",
            "--scheduler-file",
            "--tls-key",
        } <= set(FILES)
        # there it is an id
        for flag in FILES if shape != "a folder" else set(FILES) - IDS:
            kind = {
                "--through": ("--result", "flows"),
                "--closed": ("--algorithm", "sssp"),
            }.get(flag, ())
            sources = () if flag in ("--sources", "--pairs") else ("--sources", 1)
            if flag.startswith("--tls-"):
                others = {"--tls-ca-file", "--tls-cert", "--tls-key"} - {flag}
                kind = (
                    *chain(*((other, odd) for other in others)),
                    "--scheduler-address",
                    "tls://a:1",
                )
            words = (edges, flag, odd, *kind, *sources, "--output", tmp_path / "out")
            assert said in fails(capsys, *words)
        words = [edges, "--sources", 1, "--output", tmp_path / "out"]
        assert f"it is {shape}" in fails(capsys, *words, "--config", odd)
        for read in (read_sources_table, lambda path: read_ids(path, "sources")):
            with pytest.raises(InputError, match=f"it is {shape}"):
                read(odd)
        if shape != "a folder":
            assert f"odd.csv: it is {shape} and not a regular file" in fails(
                capsys, odd, *words[1:]
            )
            assert f"odd.csv: it is {shape} and not a regular file" in fails(
                capsys, tmp_path, *words[1:]
            )
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_also_the_name_of_a_file_is_refused(edges, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1").write_text("2\n")
    words = [edges, "--device", "cpu", "--output", "out"]
    for flag in ("--sources", "--targets"):
        assert "'1' may be ids or the file of this name; for the file give ./1" in fails(
            capsys, *words, flag, "1"
        )
    parquet(tmp_path / "names.parquet", src=["a"], dst=["b"])
    said = fails(capsys, tmp_path / "names.parquet", "--output", "out", "--sources", "stops.csv")
    assert said.endswith("Nor is there a file of that name.")
    assert "99" in fails(
        capsys, *words, "--sources", "./1", "--targets", "99", "--result", "targets"
    )
    assert (
        "source './1' is not a vertex: the ids of this graph are integers; a file is given alone"
        in fails(capsys, *words, "--sources", "./1,2")
    )


def read_sources_table(path):
    return read_given_table(str(path), "sources", tuple)


def test_a_home_folder_that_no_shell_has_expanded_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for flag in ("--output", "--graph-cache"):
        assert "~/x: the shell has not expanded ~" in fails(
            capsys, "edges.csv", "--sources", "1", f"{flag}=~/x"
        )
    assert not list(tmp_path.iterdir())
