"""The graph cache and other stored graphs: no other user can choose the graph that a run is certified against."""

import errno
import json
import os
import shutil
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import formats, graph_from_edges
from kepler_traverse.errors import InputError
from kepler_traverse.graph import storage
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.graph.storage import load_graph, require_private, stored_origin, write_graph
from kepler_traverse.runtime.regular_files import sealed
from kepler_traverse.runtime.scratch import Scratch
from pipelines import batch_sources
from pipelines.verify import main as verify_output
from tests.support.forks import ran_forked
from tests.support.jobs import manifest_of, write_edges


@pytest.fixture
def edges(tmp_path):
    return write_edges(tmp_path / "edges.parquet", [1, 2, 3], [2, 3, 1], [1, 2, 3])


def main(edges, cache, *more):
    words = [edges, "--sources", "1", "--device", "cpu", "--graph-cache", cache, *more]
    return batch_sources.main([str(word) for word in words])


def computed(edges, cache, output):
    assert main(edges, cache, "--output", output, "--workers", 1, "--no-report") == 0
    return manifest_of(output)


def writable_by(mode):
    def spoil(path):
        path.chmod(path.stat().st_mode | mode)

    return spoil


def another_users(path, monkeypatch):
    real = os.lstat

    def lstat(asked, *more, **keywords):
        facts = real(asked, *more, **keywords)
        return (
            os.stat_result([*facts[:4], facts.st_uid + 4711, *facts[5:10]])
            if os.fspath(asked) == str(path)
            else facts
        )

    monkeypatch.setattr(storage.os, "lstat", lstat)


@pytest.mark.parametrize("mode", [0o020, 0o002, 0o022])
@pytest.mark.parametrize("more", [["--plan"], []], ids=["plan", "run"])
def test_a_cache_that_others_can_write_to_is_refused(edges, tmp_path, capsys, mode, more):
    cache = tmp_path / "cache"
    output = tmp_path / "out"
    cache.mkdir()
    writable_by(mode)(cache)
    assert main(edges, cache, "--output", output, *more) == 2
    message = capsys.readouterr().err
    assert ("--graph-cache" in message, str(cache) in message, "others can write" in message) == (
        True,
        True,
        True,
    )
    assert not output.exists()
    assert list(cache.iterdir()) == []


def test_a_cache_of_another_user_is_refused(edges, tmp_path, capsys, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    another_users(cache, monkeypatch)
    assert main(edges, cache, "--output", tmp_path / "out") == 2
    assert "belongs to another user" in capsys.readouterr().err
    assert list(cache.iterdir()) == []


def test_a_cache_behind_a_link_is_judged_by_what_it_leads_to(edges, tmp_path, capsys):
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    computed(edges, tmp_path / "link", tmp_path / "out")
    writable_by(0o002)(real)
    capsys.readouterr()
    assert main(edges, tmp_path / "link", "--output", tmp_path / "two") == 2
    assert str(real) in capsys.readouterr().err


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o000])
def test_a_cache_that_the_job_makes_is_its_users_alone_whatever_the_umask(
    edges, tmp_path, capsys, umask
):
    before = os.umask(umask)
    try:
        assert not computed(edges, tmp_path / "cache", tmp_path / "out")["graph"]["reused"]
        assert computed(edges, tmp_path / "cache", tmp_path / "again")["graph"]["reused"]
    finally:
        os.umask(before)
    assert "built again" not in capsys.readouterr().err
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("place", ["", "meta.json", "targets.npy"])
@pytest.mark.parametrize("how", ["mode", "owner"])
def test_a_graph_that_others_could_have_written_is_built_again(
    edges, tmp_path, capsys, monkeypatch, place, how
):
    cache = tmp_path / "cache"
    computed(edges, cache, tmp_path / "out")
    (folder,) = cache.glob("graph-*[!k]")
    if how == "mode":
        writable_by(0o002)(folder / place)
    else:
        another_users(folder / place, monkeypatch)
    capsys.readouterr()
    assert not computed(edges, cache, tmp_path / "again")["graph"]["reused"]
    assert "the graph is built again" in capsys.readouterr().err


def test_a_graph_put_in_place_of_the_right_one_is_not_used(edges, tmp_path, capsys):
    """The meta.json of the graph agrees with it; only the permissions reveal who could have written it."""
    cache = tmp_path / "cache"
    manifest = computed(edges, cache, tmp_path / "out")
    (folder,) = cache.glob("graph-*[!k]")
    before = os.umask(0o000)
    try:
        write_graph(
            graph_from_edges(np.array([1, 2]), np.array([3, 3])), folder, stored_origin(folder)
        )
    finally:
        os.umask(before)
    writable_by(0o022)(folder)
    assert computed(edges, cache, tmp_path / "again")["digest"] == manifest["digest"]
    assert "others can write" in capsys.readouterr().err


def test_a_graph_behind_a_link_is_refused(tmp_path):
    write_graph(graph_from_edges(np.array([1]), np.array([2])), tmp_path / "graph")
    (tmp_path / "link").symlink_to(tmp_path / "graph")
    with pytest.raises(InputError, match="symbolic link"):
        require_private(tmp_path / "link")


STRINGS = graph_from_numbers(
    np.array([0, 1, 4], np.int32),
    np.array([1, 2, 0], np.int32),
    ids=pa.array(["a", "b", "c", "d", "é"]),
)
INTEGERS = graph_from_edges(np.array([1, 2, 3]), np.array([2, 3, 1]), np.array([5, 6, 7]))
LEFT_OUT = object()
WRONG = [
    LEFT_OUT,
    None,
    True,
    -1,
    0.5,
    10**30,
    "x",
    "../../evil",
    [],
    [[]],
    [None],
    {},
    {"rows": "x"},
]


@pytest.mark.parametrize("graph", [STRINGS, INTEGERS], ids=["strings", "integers"])
def test_facts_about_a_stored_graph_of_another_kind_are_refused(tmp_path, graph):
    folder = tmp_path / "graph"
    write_graph(graph, folder)
    meta = json.loads((folder / "meta.json").read_text())
    del meta["checksum"]
    tried = 0
    for key, right in meta.items():
        for value in WRONG:
            changed = (
                {**meta, key: value}
                if value is not LEFT_OUT
                else {k: v for k, v in meta.items() if k != key}
            )
            if value == right:
                continue
            if type(value) is type(right) and not (
                isinstance(value, list) or value == {"rows": "x"}
            ):
                # other texts and booleans are as valid, and an incomplete report is a valid report
                continue
            (folder / "meta.json").write_bytes(sealed(changed))
            for verify in (False, True):
                with pytest.raises(InputError, match=r"damaged|this version reads"):
                    load_graph(folder, verify=verify)
            assert stored_origin(folder) == ""
            tried += 1
    assert tried > 60


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "offsets/../targets", "evil"])
def test_arrays_are_read_from_the_cache_folder_only(tmp_path, name):
    folder = tmp_path / "graph"
    write_graph(INTEGERS, folder)
    np.save(tmp_path / "evil.npy", np.arange(3))
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(
        json.dumps(meta | {"files": meta["files"] | {f"{name}.npy": "0" * 64}})
    )
    with pytest.raises(InputError, match="files cannot be"):
        load_graph(folder, verify=False)


TEXTS = [
    b"",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"format": NaN}',
    b'{"format": 1, "format": 1}',
    b"9" * 5000,
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_facts_that_are_no_json_of_one_meaning_are_no_graph(tmp_path, text):
    folder = tmp_path / "graph"
    write_graph(INTEGERS, folder)
    (folder / "meta.json").write_bytes(text)
    with pytest.raises(InputError):
        load_graph(folder, verify=False)
    assert stored_origin(folder) == ""


def a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_link(path):
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(
        b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': [[[(, }" + b" " * 200
    )


def a_pickle(path):
    np.save(path, np.array([{}]), allow_pickle=True)
    path.with_name(path.name + ".npy").rename(path) if path.suffix != ".npy" else None


@pytest.mark.parametrize("make", [a_fifo, a_folder, a_link, empty, garbage, a_pickle])
@pytest.mark.parametrize(("graph", "name"), [
    *((INTEGERS, name) for name in ("meta.json", "offsets.npy", "targets.npy", "weights.npy", "ids.npy")),
    (STRINGS, "ids.arrow"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_file_of_a_stored_graph_that_is_none_is_refused_and_not_waited_at(
    tmp_path, graph, name, make
):
    folder = tmp_path / "graph"
    write_graph(graph, folder, "origin")
    make(folder / name)
    with pytest.raises(InputError, match=r"damaged|no stored graph|symbolic link"):
        load_graph(folder)


@pytest.fixture
def many_edges(tmp_path, monkeypatch):
    """An edge list that counts as large."""
    monkeypatch.setattr(formats, "_BYTES_PER_ROW", 2**30)
    path = tmp_path / "many.parquet"
    src, dst, weight = np.random.default_rng(5).integers(0, 40, (3, 900))
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), path, row_group_size=200)
    return path


def bytes_in(cache):
    (graph,) = cache.glob("graph-*/")
    return {path.name: path.read_bytes() for path in graph.iterdir()}


@pytest.mark.parametrize(
    "more", [[], ["--undirected"], ["--id-type", "string"], ["--algorithm", "sssp"]]
)
def test_a_graph_that_is_built_in_files_is_stored_alike(many_edges, tmp_path, capsys, more):
    limit = ["--build-memory", "1GiB", *more]
    assert main(many_edges, tmp_path / "files", "--plan", *limit) == 0
    assert "with edges in files, with a limit of 1.0 GiB" in capsys.readouterr().out
    assert not (tmp_path / "files").exists()
    assert main(many_edges, tmp_path / "files", "--output", tmp_path / "one", *limit) == 0
    assert (
        main(
            many_edges,
            tmp_path / "memory",
            "--output",
            tmp_path / "two",
            "--build-memory",
            "8000GiB",
            *more,
        )
        == 0
    )
    assert bytes_in(tmp_path / "files") == bytes_in(tmp_path / "memory")
    capsys.readouterr()
    assert main(many_edges, tmp_path / "files", "--plan", "--json", *limit) == 0
    building = json.loads(capsys.readouterr().out)["building"]
    assert building == {"memory_limit": 2**30, "in_files": False, "stored_before": True}


def test_an_output_is_verified_with_edges_in_files(many_edges, tmp_path, capsys, monkeypatch):
    cache = tmp_path / "cache"
    made = []
    assert main(many_edges, cache, "--output", tmp_path / "out", "--build-memory", "1GiB") == 0
    empty = Scratch.empty
    monkeypatch.setattr(
        Scratch, "empty", lambda self, *size: made.append(self.folder) or empty(self, *size)
    )
    assert verify_output([str(tmp_path / "out"), str(many_edges), "--device", "cpu"]) == 0
    assert set(made) == {cache}
    shutil.rmtree(cache)
    assert verify_output([str(tmp_path / "out"), str(many_edges), "--device", "cpu"]) == 0
    assert set(made) == {cache, tmp_path}
    capsys.readouterr()


_KILLED = """
import os, signal, sys
from kepler_traverse import formats
from kepler_traverse.cpu import csr_build
from pipelines import batch_sources

formats._BYTES_PER_ROW = 2**30
csr_build._merge_parallel_edges = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
batch_sources.main(sys.argv[1:])
"""


def test_nothing_is_left_of_a_graph_whose_building_is_killed(many_edges, tmp_path):
    cache = tmp_path / "cache"
    more = ["--build-memory", "1GiB"]
    words = [
        many_edges,
        "--sources",
        "1",
        "--device",
        "cpu",
        "--graph-cache",
        cache,
        "--output",
        tmp_path / "out",
        *more,
    ]
    assert ran_forked(_KILLED, *words).returncode == -signal.SIGKILL
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    assert not (tmp_path / "out").exists()
    assert computed(many_edges, cache, tmp_path / "out")["graph"]["reused"] is False


def test_a_full_disk_of_the_cache_ends_the_run_with_a_word(
    many_edges, tmp_path, capsys, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert (
        main(many_edges, tmp_path / "cache", "--output", tmp_path / "out", "--build-memory", "1GiB")
        == 2
    )
    message = capsys.readouterr().err
    assert (
        f"{tmp_path / 'cache'}: the graph cannot be built there: No space left on device" in message
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "without --graph-cache a graph is built in memory"),
        (
            ["--graph-cache", "graphs", "--where", "weight > 3"],
            "with --where a graph is built in memory",
        ),
        (
            ["--graph-cache", "graphs", "--result", "flows", "--targets", "1"],
            "with --result a graph is built in memory",
        ),
    ],
)
def test_a_limit_that_has_no_effect_is_refused(edges, tmp_path, capsys, monkeypatch, more, why):
    monkeypatch.chdir(tmp_path)
    words = [str(edges), "--sources", "1", "--output", "out", "--build-memory", "1GiB", *more]
    assert batch_sources.main(words) == 2
    assert why in capsys.readouterr().err
