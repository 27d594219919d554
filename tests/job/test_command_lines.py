"""The job as its operators meet it: odd command lines, signals, limits of the machine, and what is said then."""

import errno
import os
import re
import resource
import shlex
import signal
import sys
import tomllib
from pathlib import Path

import pytest

from kepler_traverse import errors, plugins
from kepler_traverse.errors import KeplerError, OutputError, how_to_install
from kepler_traverse.runtime import scratch
from kepler_traverse.runtime.regular_files import read_regular
from pipelines import batch_sources, doctor, finish, verify
from pipelines.__main__ import COMMANDS
from pipelines.cli import supervisor
from pipelines.cli.command_line import to_resume
from pipelines.cli.shards import parse_shard
from pipelines.cli.terminal import pasted
from pipelines.output.run_folder import COMMITS, ChangedFolderError, writing_to
from pipelines.verify import prove_output
from tests.support.jobs import call, manifest_of, refused, write_edges
from tests.support.processes import ROOT, ran
from tests.support.tiers import few

MIB = 2**20


@pytest.fixture
def edges(tmp_path):
    return write_edges(tmp_path / "edges.parquet", [1, 2, 3, 7], [2, 3, 4, 8])


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


# Command lines.
ODD = [
    ["--sources", "1", "--", "-ny.parquet"],
    ["--sources=1", "--where=src > 0", "--", "-ny.parquet"],
    ["-v", "--sources", "1", "--", "-ny.parquet"],
    ["--sources", "1", "a 'b'.parquet"],
    ["--sources", "1", "a\nb.parquet"],
    ["--sources", "1", "$HOME `x`.parquet"],
]


@pytest.mark.parametrize("words", ODD)
def test_a_run_goes_on_whatever_its_command_line_looks_like(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    write_edges(tmp_path / words[-1], [1, 2], [2, 3])
    words = ["--output", "out", "--no-report", "--device", "cpu", *words]
    assert call(capsys, *words)[0] == 0
    again = to_resume(words)
    assert to_resume(again) == again
    (tmp_path / "out/part-000000.parquet").unlink()
    assert call(capsys, *again)[0] == 0
    # What is printed is the same command when it is pasted.
    shell = ran(["bash", "-c", f"printf '%s\\0' {pasted(again)}"])
    assert shell.stdout.split("\0")[:-1] == again
    assert pasted(again).isprintable()


@pytest.mark.parametrize(
    "words",
    [["e", "--output", "o"], ["--output", "o", "--", "-e"], ["--output", "o", "--", "--resume"]],
)
def test_the_first_process_resumes_in_front_of_what_is_no_option(words, monkeypatch):
    calls = []

    def watch(_main, argv, needs_workers):
        calls.append((argv, needs_workers))
        return (0, b"") if needs_workers else (-signal.SIGKILL, supervisor._RUNS_BATCHES)

    monkeypatch.setattr(supervisor, "_watch", watch)
    monkeypatch.setattr(sys, "platform", "linux")
    assert supervisor.run(batch_sources.main, words) == 0
    flags, _ = batch_sources.parse_flags(calls[1][0])
    assert flags["resume"] is True
    assert flags["edges"] == [words[-1] if "--" in words else "e"]


@pytest.mark.parametrize(
    ("reported", "more"), [(b"", ""), (supervisor._HAS_FOLDER, " with --resume")]
)
def test_a_job_that_is_killed_says_which_command_goes_on(reported, more, monkeypatch, capsys):
    monkeypatch.setattr(supervisor, "_watch", lambda *_args, **_more: (-signal.SIGKILL, reported))
    assert supervisor.run(batch_sources.main, ["e", "--output", "o"]) == 1
    assert capsys.readouterr().err.endswith(f"run it again{more}\n")


@pytest.mark.parametrize("place", ["s3:/o", "file:/o", "ab:/o", "gs:/b/o", "https:/h/o"])
@pytest.mark.parametrize("words", [["E", "--sources", "1", "--output"], ["E", "--output", "q", "--pairs"],
                                   ["E", "--sources", "1", "--output", "q", "--graph-cache"]])  # fmt: skip
def test_an_address_with_one_slash_is_refused(edges, tmp_path, monkeypatch, capsys, words, place):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir())
    said = refused(capsys, *[str(edges) if word == "E" else word for word in words], place)
    assert "two slashes" in said
    for program, more in ((verify.main, [edges]), (finish.main, [])):
        assert "two slashes" in refused(capsys, place, *more, program=program)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    "place", ["https:/user:word@host/o", "s3:/user:word@host/o", "https:/host/o?sig=word"]
)
def test_a_password_is_not_printed_whatever_the_slashes(edges, capsys, place):
    for words in (
        [edges, "--sources", "1", "--output", place],
        [edges, "--output", "q", "--pairs", place],
    ):
        assert "word" not in refused(capsys, *words)
    assert "word" not in refused(capsys, place, edges, program=verify.main)


def test_a_folder_whose_name_has_a_colon_is_a_folder(edges, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkdir("s3:")
    for out in ("run:1", "./s3:/o"):
        assert call(capsys, edges, "--sources", "1", "--device", "cpu", "--output", out)[0] == 0
        assert call(capsys, out, edges, "--device", "cpu", program=verify.main)[0] == 0
        assert call(capsys, out, program=finish.main)[0] == 0


@pytest.mark.parametrize("name", ["COUNT", "MIN", "MAX", "STEP"])
@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30, "٣"])
def test_a_variable_of_slurm_that_is_no_number_is_named(name, value):
    variables = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "0",
                 "SLURM_ARRAY_TASK_MAX": "1", "SLURM_ARRAY_TASK_STEP": "1"}  # fmt: skip
    assert str(parse_shard("auto", variables)) == "1/2"
    with pytest.raises(batch_sources.UsageError, match=f"SLURM_ARRAY_TASK_{name} is "):
        parse_shard("auto", variables | {f"SLURM_ARRAY_TASK_{name}": value})


def test_a_file_in_a_list_of_ids_is_told(edges, tmp_path, capsys):
    (tmp_path / "ids.txt").write_text("1\n")
    config = tmp_path / "run.toml"
    for key in ("sources", "targets"):
        config.write_text(f'{key} = ["{tmp_path}/ids.txt"]\n')
        more = ["--sources", "1", "--result", "targets"] if key == "targets" else []
        said = refused(capsys, edges, "--config", config, "--output", tmp_path / "out", *more)
        assert f"{key} = '{tmp_path}/ids.txt', without a list" in said
    config.write_text(f'sources = "{tmp_path}/ids.txt"\n')
    assert (
        call(capsys, edges, "--config", config, "--device", "cpu", "--output", tmp_path / "out")[0]
        == 0
    )


def test_a_working_folder_that_is_gone_and_a_locale_without_utf8_are_told(edges, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os, sys; os.rmdir({str(gone)!r}); from pipelines.batch_sources import main; sys.exit(main(sys.argv[1:]))"
    done = ran(
        [sys.executable, "-c", code, edges, "--sources", "1", "--output", "q"],
        cwd=gone,
        env=environment(),
    )
    assert (done.returncode, "the current folder does not exist any more" in done.stderr) == (
        2,
        True,
    ), done.stderr
    posix = environment(LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = ran(
        [sys.executable, "-m", "pipelines.batch_sources", edges, "--sources", "1", "--output", "ö"],
        env=posix,
    )
    assert (done.returncode, "set LC_ALL=C.UTF-8" in done.stderr) == (2, True), done.stderr


# Plug-ins.
BROKEN = [
    "raise SystemExit(0)",
    "import nothing_there",
    "KINDS = 7",
    "raise RuntimeError('a\\nb')",
    "def",
]


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_plugin_is_refused_in_one_line(tmp_path, monkeypatch, source):
    """All commands ask this function; the next test starts each of them with some of the sources."""
    name = f"broken_{BROKEN.index(source)}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, name)
    with pytest.raises(KeplerError, match=f"the plug-in '{name}'") as refusal:
        plugins.refuse_failed()
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("source", few(BROKEN, 1))
def test_a_broken_plugin_is_one_line_for_every_command(tmp_path, source):
    (tmp_path / "broken.py").write_text(source)
    given = environment(KEPLER_PLUGINS="broken")
    code = """
import contextlib, io, sys
from pipelines import batch_sources
from pipelines.__main__ import COMMANDS, main
batch_sources.program = batch_sources.main  # without a process that watches
for name in COMMANDS:
    for words in ([], ["--help"]):
        if name == "doctor" and not words:
            continue
        sys.argv = ["kepler-traverse", name, *words, *(["bash"] if name == "completion" and not words else [])]
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = main()
            except SystemExit as end:
                code = end.code
        text = said.getvalue()
        if (code or 0) != (0 if words else 2) or not (words or (text.count("\\n") == 1 and "the plug-in 'broken'" in text)):
            sys.exit(f"{name} {words}: {code} {text}")
from kepler_traverse import KeplerError, strategies
try:
    strategies()
except KeplerError:
    print("refused")
"""
    done = ran([sys.executable, "-c", code], cwd=tmp_path, env=given)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


def test_a_plugin_is_found_in_the_current_folder(tmp_path):
    (tmp_path / "mine.py").write_text((ROOT / "examples/farthest_plugin.py").read_text())
    code = "import sys; sys.path.remove(''); sys.argv = ['kepler-traverse', 'run', 'farthest', '--help']\n"
    code += "from pipelines.__main__ import main; sys.exit(main())"
    for folder, name in ((ROOT, "examples.farthest_plugin"), (tmp_path, "mine")):
        # As of a console script, the current folder is no place of modules.
        given = environment(KEPLER_PLUGINS=name) | (
            {"PYTHONSAFEPATH": ""} if folder == tmp_path else {}
        )
        done = ran([sys.executable, "-c", code], cwd=folder, env=given)
        assert (done.returncode, "--n-farthest N" in done.stdout) == (0, True), done.stderr


# Signals.
# A program that stays where it is until a signal comes, which is sent once it heeds signals.
STAYS = """
import os, signal, sys, threading, time
real = signal.signal

def installed(number, handler):
    found = real(number, handler)
    if number == signal.SIGTERM and callable(handler):
        threading.Timer(0.3, os.kill, [os.getpid(), sent]).start()
    return found

def stay(*_):
    for _ in range(600):
        time.sleep(0.1)

signal.signal = installed
name, module, sent = sys.argv[1], sys.argv[2], int(sys.argv[3])
"""
STARTS = {
    "console": "from kepler_traverse.pipelines import __main__ as program; import kepler_traverse.pipelines as package",
    "package": "from pipelines import __main__ as program; import pipelines as package",
}
STARTED = """
import importlib
importlib.import_module(f"{package.__name__}.{module}").main = stay
sys.argv = ["kepler-traverse", name]
sys.exit(program.main())
"""
OTHERS = [name for name in COMMANDS if name not in ("run", "plan")]
WAYS = [
    (name, start, number)
    for number in (signal.SIGTERM, signal.SIGINT)
    for start in STARTS
    for name in OTHERS
]


@pytest.mark.parametrize(("name", "start", "number"), few(WAYS, 3))
def test_every_program_ends_by_a_signal_with_130(name, start, number):
    code = f"{STAYS}\n{STARTS[start]}\n{STARTED}"
    done = ran(
        [sys.executable, "-c", code, name, COMMANDS[name][0], int(number)], env=environment()
    )
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert "interrupted" in done.stderr


# which is no module to run
@pytest.mark.parametrize("name", [name for name in OTHERS if name != "completion"])
def test_every_module_that_is_run_heeds_signals(name):
    source = (ROOT / f"pipelines/{COMMANDS[name][0]}.py").read_text()
    assert source.rstrip().endswith("sys.exit(signals.run_heeding(main))")


# A program that has done its work, and gets a signal while it ends.
ENDS = """
import atexit, os, signal, sys
from pipelines import batch_sources
from pipelines.cli import signals, supervisor

sent = getattr(signal, sys.argv[2])

def send():
    os.kill(os.getpid(), sent)

class Last:
    def __del__(self):
        self.send()

if sys.argv[3] == "at exit":
    atexit.register(send)
if sys.argv[3] == "with the last modules":
    kept = Last()
    Last.send = staticmethod(lambda kill=os.kill, pid=os.getpid(), sent=sent: kill(pid, sent))
supervisor.run = lambda *_: 3
ends = {"run": batch_sources.program, "verify": lambda: signals.run_heeding(lambda: 3)}
code = ends[sys.argv[1]]()
if sys.argv[3] == "at once":
    send()
sys.exit(code)
"""


ENDINGS = [
    (name, sent, moment)
    for moment in ("at once", "at exit", "with the last modules")
    for name, sent in (("run", "SIGTERM"), ("verify", "SIGTERM"), ("run", "SIGINT"))
]


@pytest.mark.parametrize(("name", "sent", "moment"), few(ENDINGS, 3))
def test_a_signal_to_a_program_that_ends_does_not_change_its_code(name, sent, moment):
    done = ran([sys.executable, "-c", ENDS, name, sent, moment], env=environment())
    assert (done.returncode, done.stderr) == (3, "")


# Limits of the machine.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) * 2**20,) * 2)
from pipelines.__main__ import main
sys.argv = ["kepler-traverse", *sys.argv[2:]]
sys.exit(main())
"""


def test_a_small_file_is_read_with_little_memory(tmp_path):
    path = tmp_path / "small"
    path.write_bytes(b"x" * 4096)
    before = resource.getrlimit(resource.RLIMIT_AS)
    status = Path("/proc/self/status").read_text()
    now = int(status.partition("VmSize:")[2].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (now + 256 * MIB, before[1]))
    try:
        assert len(read_regular(path, 2**31)) == 4096
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.exhaustive
def test_no_command_needs_much_more_memory_than_a_new_run(tmp_path, edges):
    def limited(mib, *words):
        return ran([sys.executable, "-c", LIMITED, mib, *words], env=environment()).returncode

    same = ["--sources", "1,2", "--batch-size", "1", "--device", "cpu", "--output"]
    needed = next(
        mib
        for mib in range(600, 4000, 200)
        if limited(mib, "run", edges, *same, tmp_path / str(mib)) == 0
    )
    out = tmp_path / str(needed)
    shared = tmp_path / "shared"
    most = needed + 300
    for words in (
        ["run", edges, *same, out, "--resume"], ["verify", out, edges], ["finish", out],
        ["run", edges, *same, shared, "--shard", "0/2"], ["run", edges, *same, shared, "--shard", "1/2"], ["finish", shared],
    ):  # fmt: skip
        assert limited(most, *words) == 0, words


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_raw_error_of_a_disk_names_the_place_and_is_bad_input(number, capsys):
    error = OSError(number, os.strerror(number), "/the/place")
    assert batch_sources.report_error(error, debug=False) == 2
    said = capsys.readouterr().err
    assert "/the/place" in said
    assert os.strerror(number) in said
    assert "unexpected" not in said


def test_a_full_place_of_temporary_files_or_of_edges_is_named(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch.os, "posix_fallocate", full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(OutputError, match=re.escape(f"{tmp_path}: temporary files")),
        scratch.temporary_folder(),
    ):
        pass
    assert not os.listdir(tmp_path)
    with pytest.raises(
        OutputError, match=re.escape(f"{tmp_path}: the graph cannot be built there: No space")
    ):
        scratch.Scratch(tmp_path, 2**30).empty(10, "int64")


@pytest.mark.exhaustive
@pytest.mark.skipif(os.geteuid() != 0, reason="file systems are mounted by root alone")
@pytest.mark.parametrize(
    ("variable", "named", "code"),
    [("NUMBA_CACHE_DIR", "NUMBA_CACHE_DIR", 0), ("output", "free some space", 2)],
)
def test_a_full_disk_is_named(tmp_path, edges, variable, named, code):
    full = tmp_path / "full"
    full.mkdir()
    command = [
        sys.executable,
        "-m",
        "pipelines.batch_sources",
        edges,
        "--sources",
        "1",
        "--device",
        "cpu",
        "--output",
    ]
    out = f"{full}/out" if variable == "output" else tmp_path / "out"
    script = f"mount -t tmpfs -o size=16k tmpfs {full} && (head -c 99999 /dev/zero > {full}/fill; true) && "
    script += shlex.join(map(str, [*command, out]))
    given = environment(**({variable: str(full)} if variable != "output" else {}))
    done = ran(["unshare", "-m", "bash", "-c", script], env=given)
    if "mount" in done.stderr and "permission" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert (done.returncode, named in done.stderr, str(full) in done.stderr) == (
        code,
        True,
        True,
    ), done.stderr
    if code == 0:  # compiled code alone cannot be kept, and the job goes on
        assert manifest_of(out)["status"] == "done"
        assert prove_output(out, [str(edges)], "cpu").as_dict()["valid"]


def test_folders_of_processes_that_were_killed_are_deleted_by_the_next_one(tmp_path, monkeypatch):
    code = "import os; from kepler_traverse.runtime.scratch import make_folder; make_folder(); os.kill(os.getpid(), 9)"
    given = environment(TMPDIR=str(tmp_path))
    assert ran([sys.executable, "-c", code], env=given).returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    (tmp_path / "kepler-of-others").mkdir()
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    with scratch.temporary_folder() as folder, scratch.temporary_folder() as second:
        assert sorted(os.listdir(tmp_path)) == sorted(
            ["kepler-of-others", *map(os.path.basename, (folder, second))]
        )
    assert left not in os.listdir(tmp_path)
    assert os.listdir(tmp_path) == ["kepler-of-others"]


# Several processes, and what stays of them.
def test_what_another_process_has_deleted_is_no_full_disk(tmp_path):
    with (
        pytest.raises(ChangedFolderError, match="another process has completed the run"),
        writing_to(tmp_path),
    ):
        (tmp_path / "missing/file").write_bytes(b"")
    assert batch_sources.report_error(ChangedFolderError("another process"), debug=False) == 1


def test_finish_names_the_shards_to_run_again_and_writes_a_report_that_is_missing(
    tmp_path, edges, capsys
):
    out = tmp_path / "out"
    same = [edges, "--sources", "1,2,3,7", "--batch-size", "1", "--device", "cpu", "--output", out]
    for shard in ("0/3", "2/3"):
        assert call(capsys, *same, "--shard", shard)[0] == 0
    code, _, said = call(capsys, out, program=finish.main)
    assert (code, "run the shard --shard 1/3 again, and then finish" in said) == (3, True), said
    assert call(capsys, *same, "--shard", "1/3")[0] == 0
    assert call(capsys, out, program=finish.main)[0] == 0
    (out / "_report.html").unlink()
    assert call(capsys, out, program=finish.main)[0] == 0
    assert (out / "_report.html").exists()


@pytest.mark.parametrize("damage", ["text", "missing"])
def test_the_advice_for_a_damaged_commit_works(tmp_path, edges, capsys, damage):
    out = tmp_path / "out"
    same = [edges, "--sources", "1,2,3,7", "--batch-size", "1", "--device", "cpu", "--output", out]
    for shard in ("0/2", "1/2"):
        assert call(capsys, *same, "--shard", shard)[0] == 0
    first = out / COMMITS / "00000000.json"
    first.unlink()
    if damage == "text":
        first.write_text("{")
    said = refused(capsys, out, program=finish.main)
    assert f"delete {COMMITS}, and run the same shards again" in said
    for path in (out / COMMITS).iterdir():
        path.unlink()
    (out / COMMITS).rmdir()
    for shard in ("0/2", "1/2"):
        assert call(capsys, *same, "--shard", shard)[0] == 0
    assert call(capsys, out, program=finish.main)[0] == 0


# The table of exit codes in docs/operations/failures.md.
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_each_exit_code_of_the_page_is_that_of_a_run(tmp_path, edges, capsys):
    text = (ROOT / "docs/operations/failures.md").read_text()
    page = text.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    found = {}
    same = ["--device", "cpu", "--no-report"]
    found[0] = call(capsys, edges, "--sources", "1", "--output", tmp_path / "a", *same)[0]
    found[2] = call(capsys, edges, "--sources", "99", "--output", tmp_path / "b", *same)[0]
    cycle = write_edges(tmp_path / "cycle.parquet", [1, 2], [2, 1], [-2, 1])
    found[4] = call(
        capsys, cycle, "--algorithm", "sssp", "--sources", "1", "--output", tmp_path / "c", *same
    )[0]
    floats = write_edges(tmp_path / "floats.parquet", [1, 2], [2, 3], [1e308, 1e308])
    found[3] = call(
        capsys, floats, "--algorithm", "sssp", "--sources", "1", "--output", tmp_path / "d", *same
    )[0]
    found[1] = batch_sources.report_error(RuntimeError("anything"), debug=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pipelines.cli.settings.read_settings",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        found[130] = call(capsys, edges, "--sources", "1", "--output", tmp_path / "e", *same)[0]
    assert {code: found.get(code) for code in codes} == {code: code for code in codes}
    assert call(capsys, tmp_path / "a", edges, "--device", "cpu", program=verify.main)[0] == 0
    (tmp_path / "a/part-000000.parquet").write_bytes(b"no part")
    assert call(capsys, tmp_path / "a", edges, "--device", "cpu", program=verify.main)[0] == 5
    assert call(capsys, tmp_path / "none", edges, program=verify.main)[0] == 2
    assert call(capsys, tmp_path / "none", program=finish.main)[0] == 2


def test_hints_name_the_checkout_while_no_index_has_the_package(tmp_path, monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    monkeypatch.chdir(tmp_path)  # the hint works from any folder
    for extra in ("job", "test", "cuda13", "mg", *doctor.EXTRAS):
        *command, what = shlex.split(how_to_install(extra))
        folder, _, name = what.removesuffix("]").rpartition("[")
        assert command == ["pip", "install", "-e"]
        assert name in project["optional-dependencies"]
        assert (Path(folder) / "pyproject.toml").samefile(ROOT / "pyproject.toml")
    monkeypatch.setattr(errors, "__file__", str(tmp_path.joinpath("kepler_traverse", "errors.py")))
    assert how_to_install("geo") == "in the checkout: pip install -e '.[geo]'"


def test_no_text_names_an_index_that_does_not_have_the_package():
    texts = [
        path
        for folder in ("kepler_traverse", "pipelines")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"install[^\n]*kepler-traverse\[", path.read_text(encoding="utf-8"))
    ]
    assert not texts, "errors.how_to_install has the command"


def test_doctor_says_in_words_what_is_missing():
    lines = {
        "ModuleNotFoundError: No module named 'cupy'": "cupy is not installed",
        "importlib.metadata.PackageNotFoundError: No package metadata was found for nvidia-cuda-nvrtc":
            "nvidia-cuda-nvrtc is not installed",
        "kepler_traverse.errors.InputError: the plug-in 'x' cannot be imported": "the plug-in 'x' cannot be imported",
        "AssertionError": "it does not work",
    }  # fmt: skip
    assert {line: doctor.in_words(line) for line in lines} == lines
    project = (
        (ROOT / "pyproject.toml")
        .read_text()
        .partition("[project.optional-dependencies]")[2]
        .partition("\n[")[0]
    )
    extras = set(re.findall(r"^([a-z0-9]+) = \[", project, re.MULTILINE))
    assert doctor.EXTRAS.keys() <= extras
    assert (
        not extras
        - doctor.EXTRAS.keys()
        - {"job", "test", "docs", "cuda12", "cuda13", "mg", "dev", "bench", "recipes"}
    )


def test_pages_print_commands_that_an_installation_has():
    # logs of measurements are kept
    for page in sorted((*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/from").glob("*.md"))):
        for line in page.read_text().splitlines():
            assert not line.lstrip("$ ").startswith("python -m pipelines"), (page.name, line)
