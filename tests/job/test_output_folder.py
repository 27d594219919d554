"""The output folder: it is where the user named it, has one run at a time, and no temporary files remain."""

import errno
import fcntl
import json
import os
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import __version__
from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.runtime import file_locks
from pipelines import batch_sources, compare, extremes, finish, run_job, verify
from pipelines.cli.options import OPTIONS
from pipelines.cli.settings import refuse_secrets
from pipelines.output.part_file import FOOTER_KEY
from pipelines.output.run_folder import LEFT, LOCK, OutputFolder, check_folder, delete_left
from pipelines.output.store import Store
from tests.support import tiers
from tests.support.jobs import manifest_of
from tests.support.processes import ran


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]}), path)
    return path


@pytest.fixture(scope="module")
def finished(edges, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "out"
    assert main(edges, "--output", folder) == 0
    return folder


def main(edges, *more):
    words = [
        edges,
        "--sources",
        "1,2",
        "--batch-size",
        1,
        "--workers",
        1,
        "--device",
        "cpu",
        "--no-report",
        *more,
    ]
    return batch_sources.main([str(word) for word in words])


def refused(capsys, code):
    captured = capsys.readouterr()
    assert (code, captured.out, len(captured.err.splitlines())) == (2, "", 1), captured
    assert captured.err.startswith("error: ")
    return captured.err


FOLDERS = [option for option in OPTIONS if option.kind == "folder"]


def test_the_options_that_name_folders_are_known_as_such():
    assert {option.key for option in FOLDERS} == {"output", "graph_cache"}


@pytest.mark.parametrize("where", ["flag", "file"])
@pytest.mark.parametrize(
    ("option", "scheme"),
    [
        (option, scheme)
        for option in FOLDERS
        for scheme in ("gcs", "hdfs", "https", "file", "memory", "S3", "a+b.c-d")
    ],
)
def test_an_address_is_no_folder_to_write_to(
    edges, tmp_path, capsys, monkeypatch, option, scheme, where
):
    monkeypatch.chdir(tmp_path)
    address = f"{scheme}://bucket/out"
    given = [option.flag, address]
    if where == "file":
        (tmp_path / "run.toml").write_text(f'{option.key} = "{address}"\n')
        given = ["--config", "run.toml"]
    others = [] if option.key == "output" else ["--output", "out"]
    before = sorted(os.listdir())
    for more in ([], ["--plan"], ["--resume"]):
        message = refused(capsys, main(edges, *given, *others, *more))
        assert option.flag in message
        assert f"{address}: nothing is written to {scheme}:// addresses" in message
    assert sorted(os.listdir()) == before


def test_an_address_is_no_folder_to_verify(edges, capsys):
    message = refused(capsys, verify.main(["hdfs://bucket/out", str(edges)]))
    assert "hdfs://bucket/out" in message


SECRETS = [
    *(
        "s3://key:word@bucket/out",
        "az://bucket/out?sig=abc",
        "gs://bucket/out#x",
        "s3://word@bucket/out",
    ),
    *(
        "https://key:word@host/out",
        "https://host/out?sig=abc",
        "simplecache::https://word@host/out",
    ),
]


@pytest.mark.parametrize("address", SECRETS)
def test_an_address_with_a_password_is_refused_and_not_repeated(edges, tmp_path, capsys, address):
    here = [str(edges), "--sources", "1"]
    out = ["--output", str(tmp_path / "out")]
    (tmp_path / "run.toml").write_text(f'edges = ["{address}"]\n')
    calls = [
        lambda: main(edges, "--output", address),
        lambda: verify.main([address, str(edges)]),
        lambda: verify.main([str(tmp_path), address]),
        lambda: compare.main([str(edges), address]),
        lambda: extremes.main([address]),
        lambda: batch_sources.main([address, "--sources", "1", *out]),
        lambda: batch_sources.main(
            ["--config", str(tmp_path / "run.toml"), "--sources", "1", *out]
        ),
        *(
            lambda flag=flag: batch_sources.main([*here, *out, flag, address])
            for flag in ("--graph-cache", "--pairs", "--vertices")
        ),
        lambda: finish.main([address]),
        lambda: finish.main([str(tmp_path), "--pairs", address]),
    ]
    if not address.startswith(("http", "simple")):  # whose are words, as there is no such file
        calls.append(lambda: batch_sources.main([str(edges), *out, "--sources", address]))
        calls.append(lambda: batch_sources.main([*here, *out, "--only-vertices", address]))
    for call in calls:
        message = refused(capsys, call())
        assert "give credentials by the environment" in message
        assert not any(word in message for word in ("key:word", "sig=abc", "word@", "bucket/out"))
    for flag in (
        "--sources",
        "--only-vertices",
        "--where",
        "--config",
        "--scheduler-address",
        "--columns",
    ):
        others = [] if flag == "--sources" else ["--sources", "1"]
        for debug in ([], ["--debug"]):
            assert batch_sources.main([str(edges), *out, *others, flag, address, *debug]) == 2
            message = capsys.readouterr().err
            assert ("error: " in message, "Traceback" in message) == (True, bool(debug))
            assert not any(word in message for word in ("key:word", "sig=abc", "word@"))
    for given in ({"edges": address}, {"edges": str(edges), "pairs": address}):
        with pytest.raises(InputError) as refusal:
            run_job(**given, sources=[1], output=tmp_path / "out")
        assert not any(word in str(refusal.value) for word in ("key:word", "sig=abc", "word@"))
    assert not (tmp_path / "out").exists()


def test_of_azure_an_address_may_name_a_container(tmp_path):
    refuse_secrets(
        "--output",
        "abfss://container@account.dfs.core.windows.net/run",
        str(tmp_path),
        [1, 2],
        None,
    )


def test_an_object_store_is_not_for_all_gpus_together(edges, capsys):
    words = [
        str(edges),
        "--sources",
        "1",
        "--output",
        "s3://bucket/out",
        "--engine",
        "cugraph-mg",
        "--device",
        "cuda",
    ]
    assert "--engine cugraph-mg writes to no object store" in refused(
        capsys, batch_sources.main(words)
    )


def test_a_path_with_colons_is_a_path(edges, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(edges, "--output", "s3:out:/x") == 0
    assert (tmp_path / "s3:out:" / "x" / "_SUCCESS").exists()


def too_long(_folder):
    return "x" * 300


def within_a_file(folder):
    (folder / "file").touch()
    return "file/out"


def a_cycle_of_links(folder):
    (folder / "one").symlink_to(folder / "two")
    (folder / "two").symlink_to(folder / "one")
    return "one"


@pytest.mark.parametrize(
    ("key", "more"), [("output", []), ("output", ["--resume"]), ("graph_cache", [])]
)
@pytest.mark.parametrize("make", [too_long, within_a_file, a_cycle_of_links])
def test_a_folder_that_cannot_be_is_refused_by_name(edges, tmp_path, capsys, make, key, more):
    name = tmp_path / make(tmp_path)
    flags = {"output": tmp_path / "out"} | {key: name}
    words = [
        word for flag, value in flags.items() for word in ("--" + flag.replace("_", "-"), value)
    ]
    assert str(name)[:120] in refused(capsys, main(edges, *words, *more))  # long names are cut


@pytest.mark.parametrize("option", FOLDERS, ids=lambda option: option.key)
def test_a_null_character_in_the_name_of_a_folder_is_refused(edges, tmp_path, capsys, option):
    (tmp_path / "run.toml").write_text(f'{option.key} = "a\\u0000b"\n')
    others = [] if option.key == "output" else ["--output", tmp_path / "out"]
    assert f"{option.key} cannot be" in refused(
        capsys, main(edges, "--config", tmp_path / "run.toml", *others)
    )


def test_resuming_where_no_run_is_computes_nothing(edges, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for name, says in (("mistyped", "does not exist"), ("empty", "is empty")):
        message = refused(capsys, main(edges, "--output", tmp_path / name, "--resume"))
        assert (str(tmp_path / name) in message, says in message, "--resume" in message) == (
            True,
            True,
            True,
        )
    assert os.listdir(tmp_path) == ["empty"]
    assert os.listdir(tmp_path / "empty") == []


def test_a_run_that_was_killed_before_it_wrote_anything_is_resumed(edges, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).touch()
    assert main(edges, "--output", tmp_path / "out", "--resume") == 0


def test_error_says_whether_the_folder_has_a_finished_run(edges, finished, tmp_path, capsys):
    folder = shutil.copytree(finished, tmp_path / "out")
    assert "finished run" in refused(capsys, main(edges, "--output", folder))
    (folder / "_SUCCESS").unlink()
    message = refused(capsys, main(edges, "--output", folder))
    assert "not finished" in message
    assert "another run" not in message


def test_a_lock_that_no_process_holds_is_no_hindrance(finished, edges, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "out")
    (folder / LOCK).write_text("left by a run that was killed")
    assert main(edges, "--output", folder, "--resume") == 0
    assert not (folder / LOCK).exists()


@pytest.mark.parametrize("number", sorted(file_locks._UNSUPPORTED), ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_not_called_another_run(
    edges, tmp_path, capsys, monkeypatch, number
):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    message = refused(capsys, main(edges, "--output", tmp_path / "out"))
    assert "another run" not in message
    assert "no file locks" in message
    assert os.strerror(number) in message
    assert os.listdir(tmp_path) == []
    message = refused(
        capsys, main(edges, "--output", tmp_path / "out", "--graph-cache", tmp_path / "cache")
    )
    assert (str(tmp_path / "cache") in message, "no file locks" in message) == (True, True)


def test_a_lock_that_is_held_is_called_another_run(edges, tmp_path, capsys):
    with OutputFolder(Store(tmp_path / "out")):
        held = os.open(tmp_path / "out" / LOCK, os.O_RDWR)
        assert not file_locks.take_lock(held)
        os.close(held)
        assert "not finished" in refused(capsys, main(edges, "--output", tmp_path / "out"))
        assert "another run is writing" in refused(
            capsys, main(edges, "--output", tmp_path / "out", "--resume")
        )


def test_a_file_that_vanishes_while_the_folder_is_looked_at_makes_it_no_empty_folder(
    tmp_path, monkeypatch
):
    (tmp_path / ".part-000001.0123.tmp").touch()

    def vanished(path):
        raise FileNotFoundError(errno.ENOENT, "gone", str(path))

    monkeypatch.setattr("pipelines.output.run_folder.irregular", vanished)
    with pytest.raises(OutputError, match="not finished"):
        check_folder(Store(tmp_path), resume=False)
    assert check_folder(Store(tmp_path), resume=True) is None


def test_a_lock_file_that_a_run_has_just_taken_away_is_made_again(tmp_path, monkeypatch):
    """The run that held it ends between this one's opening of the file and its lock."""
    real = file_locks.take_lock
    taken = []

    def slow(descriptor, wait=False):
        if not taken:
            (tmp_path / LOCK).unlink()
        taken.append(descriptor)
        return real(descriptor, wait)

    monkeypatch.setattr("pipelines.output.run_folder.take_lock", slow)
    with OutputFolder(Store(tmp_path)):
        assert len(taken) == 2
        other = file_locks.open_lock(tmp_path / LOCK)
        assert not file_locks.take_lock(other)
        os.close(other)


def test_a_lock_is_never_opened_by_way_of_a_link(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        file_locks.open_lock(tmp_path / "lock")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    ("status", "swept"), [("done", True), ("failed", True), ("interrupted", False)]
)
def test_temporary_files_of_killed_workers_are_deleted_when_a_run_ends(tmp_path, status, swept):
    with OutputFolder(Store(tmp_path)) as folder:
        folder.manifest["status"] = status
        for name in (".part-000001.0123.tmp", ".task-000002.0123.tmp"):
            (tmp_path / name).write_bytes(b"half a file")
        (tmp_path / ".somebody-elses.tmp").touch()
    assert (tmp_path / ".somebody-elses.tmp").exists()
    assert len(list(tmp_path.glob(".part-*"))) == len(list(tmp_path.glob(".task-*"))) == (not swept)


def test_deleting_temporary_files_follows_no_links(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").touch()
    out = tmp_path / "out"
    with OutputFolder(Store(out)):
        (out / ".part-000001.0123.tmp").symlink_to(victim)
        delete_left(out, LEFT)
        assert not list(out.glob(".part-*"))
    assert (victim / "kept").exists()


def test_manifest_and_parts_hold_the_version_of_the_package(finished):
    assert manifest_of(finished)["versions"]["kepler_traverse"] == __version__
    for path in finished.glob("part-*"):
        assert json.loads(pq.read_metadata(path).metadata[FOOTER_KEY])["version"] == __version__


# Values that the job does not read, and text that a terminal cannot show


def shell(command, **environment):
    environment = os.environ | {"PY": sys.executable} | environment
    done = ran(["bash", "-c", command], errors="surrogateescape", env=environment)
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


def test_a_reader_that_has_gone_is_no_error(edges):
    plan = f'"$PY" -m pipelines.batch_sources {edges} --sources 1 --device cpu --plan'
    for command in tiers.few(
        [plan, '"$PY" -m pipelines.verify --help', plan + " --json", '"$PY" -m pipelines --help'], 1
    ):
        done = shell(f'{command} | true; echo "${{PIPESTATUS[@]}}"')
        assert (done.stdout, done.stderr) == ("0 0\n", "")


@pytest.mark.exhaustive  # as tests/monitoring/test_terminal.py without a process
def test_a_full_disk_under_stdout_is_said(edges):
    done = shell(
        f'"$PY" -m pipelines.batch_sources {edges} --sources 1 --device cpu --plan > /dev/full'
    )
    assert done.returncode == 2
    assert "stdout cannot be written to: No space left" in done.stderr


# Command lines of one process, as each takes most of its time to start; what each returns is the last line of its errors.
COMMANDS = """
import shlex, sys
from pipelines import batch_sources, finish, run_job, verify

for line in sys.argv[1:]:
    program, *words = shlex.split(line)
    code = {"job": batch_sources, "verify": verify}[program].main([*words, "--device", "cpu"])
    print(code, file=sys.stderr, flush=True)
"""


def test_a_terminal_that_knows_ascii_alone_gets_escaped_text(tmp_path):
    names = tmp_path / "names.parquet"
    out = tmp_path / "out"
    pq.write_table(pa.table({"src": ["é", "b"], "dst": ["b", "c"]}), names)
    wrong = (
        ["--sources", "ü"],
        ["--all-sources", "--output", "ö"],
        ["--all-sources", "--algorithm", "é"],
    )
    lines = [f"job {names} --all-sources --workers 1 --output {out}", f"verify {out} {names}"]
    lines += [f"job {names} {' '.join(words)}" for words in wrong] + ["verify ö é"]
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    done = ran(
        [sys.executable, "-c", COMMANDS, *lines],
        errors="surrogateescape",
        env=os.environ | ascii_only,
    )
    assert done.stderr.isascii()
    assert done.stdout.isascii()
    assert "verified (3 sources" in done.stdout
    assert "é" in (out / "_report.html").read_text(encoding="utf-8")
    assert [line for line in done.stderr.splitlines() if line.isdigit()] == [
        "0",
        "0",
        "2",
        "2",
        "2",
        "2",
    ]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 4
    assert errors[-1] == "error: \\udcc3\\udcb6: no such folder"


def test_an_interrupt_after_the_results_says_so_and_resume_writes_the_report(
    edges, tmp_path, monkeypatch, capsys
):
    def interrupted(*_):
        raise KeyboardInterrupt

    words = [edges, "--sources", "1,2", "--device", "cpu", "--output", tmp_path / "out"]
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.run.batch_run.BatchRun.write_report", interrupted)
        assert batch_sources.main([str(word) for word in words]) == 130
    assert (tmp_path / "out" / "_SUCCESS").exists()
    said = capsys.readouterr().err
    assert (
        f"interrupted: all results are in {tmp_path / 'out'}. To write the report too: python -m "
        in said
    )
    for _ in range(2):
        assert batch_sources.main([str(word) for word in (*words, "--resume")]) == 0
        assert "</html>" in (tmp_path / "out" / "_report.html").read_text(encoding="utf-8")
        (tmp_path / "out" / "_report.html").write_bytes(b"damaged")
