"""Runs whose output is in an object store: the interface of a store, and runs against an S3 server with faults."""

import functools
import json
import os
import queue
from collections import Counter

import pandas as pd
import pytest

from kepler_traverse import read_graph
from kepler_traverse.errors import InputError
from kepler_traverse.runtime import object_stores
from kepler_traverse.runtime.object_stores import TRAFFIC
from pipelines import batch_sources, finish, run_job, verify
from pipelines.output.commits import CommitLog
from pipelines.output.run_folder import OutputFolder
from pipelines.output.store import ObjectStore, Store, open_store
from pipelines.run import finishing
from tests.job.test_shards import argv, entry, files, folder, numbers_in  # noqa: F401
from tests.support import tiers
from tests.support.jobs import manifest_of
from tests.support.object_store import served, skip_without_server
from tests.support.processes import at_once

skip_without_server()
URL = "s3://bucket/run"


pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, served(patch) as found:
        patch.setenv("KEPLER_CACHE_DIR", str(tmp_path_factory.mktemp("copies")))
        patch.setattr(object_stores, "_FIRST_PAUSE", 0.01)
        yield found


@pytest.fixture(autouse=True)
def no_faults(server):
    server.fail_share = 0.0
    server.cut_share = 0.0
    server.denied = ""
    server._random.seed(1)  # the same faults whichever tests run before


@pytest.fixture(params=["disk", "objects"])
def store(request, tmp_path):
    (tmp_path / "here").mkdir()
    return (
        Store(tmp_path / "here")
        if request.param == "disk"
        else open_store(f"s3://bucket/{tmp_path.name}")
    )


def put(store, name, data):
    with store.new_file(name) as file:
        file.write(data)


def test_a_store_has_whole_files_and_creates_one_once(store):
    assert store.names() == store.names("folder") == []
    assert store.put_new("folder/a", b"1")
    assert not store.put_new("folder/a", b"2")
    put(store, "b", b"3")
    put(store, "b", b"4" * 10)
    with pytest.raises(TypeError):
        put(store, "c", "no bytes")
    assert (store.get("folder/a", 9), store.get("b", 10)) == (b"1", b"4" * 10)
    assert (sorted(store.names()), store.names("folder")) == (["b", "folder"], ["a"])
    with pytest.raises(OSError, match="bytes"):
        store.get("b", 9)
    with pytest.raises(FileNotFoundError):
        store.get("none", 9)
    (store.path / ".part.tmp").write_bytes(b"5")
    store.move_in(store.path / ".part.tmp", "part")
    with store.local(["part", "none"]) as here:
        assert ((here / "part").read_bytes(), (here / "none").exists()) == (b"5", False)
    store.delete("folder")
    store.delete("none")
    assert (sorted(store.names()), store.names("folder")) == (["b", "part"], [])


def test_writers_of_one_log_lose_nothing(store):
    def write(writer):
        log = CommitLog(store)
        for number in range(6):
            assert log.append(entry(100 * writer + number))

    at_once(*(functools.partial(write, writer) for writer in range(4)))
    assert sorted(numbers_in(CommitLog(store))) == [
        100 * writer + number for writer in range(4) for number in range(6)
    ]


def test_an_object_store_cleans_up_and_names_itself():
    store = open_store(URL)
    scratch = store.path
    assert (scratch.is_dir(), str(store), str(open_store(URL + "/"))) == (True, URL, URL)
    store.close()
    assert not scratch.exists()


def run(folder, url, *more, **options):  # noqa: F811
    return batch_sources.main(argv(folder, url, *more, **options))


def downloaded(url, path):
    store = open_store(url)
    path.mkdir()
    with store.local(store.names()) as here:
        for each in here.iterdir():
            each.rename(path / each.name)
    return path


@pytest.fixture(scope="module")
def inputs(folder):  # noqa: F811
    """The URLs of the inputs in the store, whose names are those on the disk."""
    store = open_store("s3://bucket/inputs")
    for each in folder.iterdir():
        put(store, each.name, each.read_bytes())
    put(store, "parts/a.parquet", (folder / "edges.parquet").read_bytes())
    put(store, "parts/_SUCCESS", b"")
    return "s3://bucket/inputs"


def test_read_graph_takes_objects_folders_and_patterns(folder, inputs, server):  # noqa: F811
    expected = read_graph(folder / "edges.parquet").fingerprint
    server.log.clear()
    for name in ("edges.parquet", "parts", "parts/", "parts/*", "*/a.parquet", "par*"):
        assert read_graph(f"{inputs}/{name}").fingerprint == expected, name
    for name, says in (
        ("none.parquet", "no such object"),
        ("none*", "no object matches"),
        ("edges.parquet?x=1", "credent"),
    ):
        with pytest.raises(InputError, match=says):
            read_graph(f"{inputs}/{name}")


def test_an_object_is_copied_once_and_again_when_it_changes(server, tmp_path, monkeypatch):
    monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
    url = "s3://bucket/changing/edges.csv"
    store = open_store("s3://bucket/changing")
    put(store, "edges.csv", b"src,dst\n1,2\n2,3\n")
    server.cut_share = 0.4
    server.log.clear()
    assert at_once(*[lambda: read_graph(url).n_edges] * 4) == [2] * 4
    assert server.log["GET"] == 1 + server.log["cut"]
    put(store, "edges.csv", b"src,dst\n1,2\n2,3\n3,4\n")
    assert read_graph(url).n_edges == 3
    copies = tmp_path / "copies" / "objects"
    assert len([each for each in copies.iterdir() if each.suffix == ".csv"]) == 2
    copies.chmod(0o777)
    with pytest.raises(InputError, match="others can write to it"):
        read_graph(url)


@pytest.mark.parametrize("kind", tiers.few(["pairs", "summary", "distances"], 1))
def test_a_run_whose_inputs_are_in_the_store_is_that_of_files(folder, inputs, tmp_path, kind):  # noqa: F811
    url = f"s3://bucket/{kind}-of-urls"
    out = tmp_path / "out"
    words = [
        word.replace(str(folder), inputs)
        for word in argv(folder, url, "--graph-cache", "s3://bucket/graphs", kind=kind)
    ]
    assert [batch_sources.main([*words, "--shard", f"{index}/2"]) for index in range(2)] == [0, 0]
    assert finish.main([url]) == 0
    assert batch_sources.main(argv(folder, out, kind=kind)) == 0
    check(folder, url, out, tmp_path)
    assert verify.main([url, f"{inputs}/edges.parquet", "--device", "cpu"]) == 0


def test_a_graph_is_built_once_for_all_hosts(inputs, tmp_path, monkeypatch, capsys):
    """Each host has a folder for copies of its own."""
    words = [
        f"{inputs}/edges.parquet",
        "--algorithm",
        "sssp",
        "--device",
        "cpu",
        "--random-sources",
        "3",
    ]
    words += ["--graph-cache", "s3://bucket/hosts", "--hierarchy", "yes"]
    reused = []
    contracted = []
    digests = set()
    for host in range(4):
        monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / f"host{host}"))
        if host == 2:  # damage is found
            store = open_store("s3://bucket/hosts")
            (name,) = store.names()
            store = open_store(f"s3://bucket/hosts/{name}")
            put(store, "targets.npy", store.get("targets.npy", 10**6)[:-1] + b"x")
        if host == 3:  # another one is still putting the hierarchy
            store._api.delete(store._store, "hierarchy/meta.json")
        assert batch_sources.main([*words, "--output", str(tmp_path / f"out{host}")]) == 0
        manifest = manifest_of(tmp_path / f"out{host}")
        said = capsys.readouterr().err
        assert ("built again" in said) == (host == 2)
        contracted.append("<Hierarchy" in said)
        reused.append(manifest["graph"]["reused"])
        digests.add(manifest["digest"])
    assert (reused, len(digests)) == ([False, True, False, True], 1)
    assert contracted == [True, False, True, True]


def test_run_job_writes_to_a_store_and_reads_it_again(folder, inputs, alone):  # noqa: F811
    options = {"algorithm": "sssp", "device": "cpu", "random_sources": 11, "batch_size": 2}
    done = run_job(f"{inputs}/edges.parquet", output="s3://bucket/called/", **options)
    assert (done.path, done.digest) == ("s3://bucket/called", manifest_of(alone)["digest"])
    assert done.parts[0] == "s3://bucket/called/part-000000.parquet"
    assert done.to_pandas().equals(pd.read_parquet(alone))
    listed = run_job(f"{inputs}/edges.parquet", output="s3://bucket/listed", sources=f"{inputs}/stops.csv", device="cpu",
                     columns={"source": "stop"})  # fmt: skip
    assert listed.n_sources == len(set(pd.read_csv(folder / "stops.csv")["stop"]))


@pytest.fixture(scope="module")
def alone(folder, tmp_path_factory):  # noqa: F811
    path = tmp_path_factory.mktemp("alone") / "out"
    assert batch_sources.main(argv(folder, path)) == 0
    return path


def check(folder, url, alone, tmp_path):  # noqa: F811
    """The objects are the files of a run on a disk, and nothing says what the credentials are."""
    found = downloaded(url, tmp_path / "found")
    assert files(found) == files(alone)
    assert sorted(os.listdir(found)) == sorted(os.listdir(alone))
    assert manifest_of(found)["digest"] == manifest_of(alone)["digest"]
    for path in found.iterdir():
        assert not any(word in path.read_bytes() for word in (b"OFTHETEST", b"AWS_"))
    assert verify.main([url, str(folder / "edges.parquet"), "--device", "cpu"]) == 0


def test_a_run_to_an_object_store_has_the_bytes_of_one_to_a_disk(folder, alone, tmp_path, capsys):  # noqa: F811
    url = "s3://bucket/one/run"
    assert run(folder, url) == 0
    captured = capsys.readouterr()
    assert manifest_of(alone)["digest"] in captured.out
    assert "OFTHETEST" not in captured.err + captured.out
    check(folder, url, alone, tmp_path)
    assert run(folder, url) == 2
    assert "holds a finished run" in capsys.readouterr().err
    assert run(folder, url, "--resume", "--json") == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0
    assert finish.main([url]) == 0
    assert "was finished before" in capsys.readouterr().out
    store = open_store(url)
    put(store, "part-000001.parquet", b"damaged")
    assert finish.main([url]) == 3
    assert "1 part is missing or damaged (part-000001.parquet); --resume" in capsys.readouterr().err
    assert verify.main([url, str(folder / "edges.parquet"), "--device", "cpu"]) == verify.EXIT_WRONG
    assert run(folder, url, "--resume", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["computed"] == 1
    assert verify.main([url, str(folder / "edges.parquet"), "--device", "cpu"]) == 0


def test_a_job_that_another_one_overtakes_leaves_nothing_beside_the_results(
    folder,  # noqa: F811
    alone,
    tmp_path,
    monkeypatch,
):
    """What it commits once the other one has completed the run, and deleted the log, is of no run."""
    url = "s3://bucket/overtaken"
    join = OutputFolder.join
    commits = []

    def slow(self, *args, **how):
        monkeypatch.setattr(OutputFolder, "join", join)
        manifest = join(self, *args, **how)
        assert run(folder, url, "--resume") == 0
        return manifest

    append = CommitLog.append
    monkeypatch.setattr(
        CommitLog, "append", lambda self, added: commits.append(added) or append(self, added)
    )
    monkeypatch.setattr(OutputFolder, "join", slow)
    assert run(folder, url) == 0
    assert len(commits) >= 2, "both have committed"
    assert open_store(url).names("_commits") == []
    check(folder, url, alone, tmp_path)


@pytest.mark.parametrize("kind", tiers.few(["matrix", "flows", "pairs"], 2))
def test_tables_beside_the_parts_are_in_the_store(folder, tmp_path, kind):  # noqa: F811
    url = f"s3://bucket/{kind}"
    out = tmp_path / "out"
    assert (run(folder, url, kind=kind), batch_sources.main(argv(folder, out, kind=kind))) == (0, 0)
    check(folder, url, out, tmp_path)


def test_shards_of_a_store_with_faults_write_the_same(
    folder,  # noqa: F811
    server,
    alone,
    tmp_path,
    capsys,
):
    """Puts fail before or after they are done, reads are cut short, and two calls of finish are at once."""
    url = "s3://bucket/shards"
    server.fail_share = 0.2
    server.cut_share = 0.2
    server.log.clear()
    assert [run(folder, url, "--shard", f"{index}/3") for index in range(3)] == [0, 0, 0]
    assert run(folder, url, "--shard", "1/3", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["computed"] == 0
    found = at_once(*[lambda: finishing.finish_run(open_store(url))[0]["digest"]] * 3)
    assert found == [manifest_of(alone)["digest"]] * 3
    assert server.log["failed"] > 0
    assert server.log["cut"] > 0
    check(folder, url, alone, tmp_path)


def test_requests_are_counted_as_the_server_counts_them(folder, server):  # noqa: F811
    url = "s3://bucket/counted"
    server.fail_share = 0.2
    server.cut_share = 0.3
    TRAFFIC.take()
    server.log.clear()
    assert [run(folder, url, "--shard", f"{index}/2") for index in range(2)] == [0, 0]
    assert finish.main([url]) == 0
    # what came after the log of the run was closed
    asked = server.log.copy()
    behind = TRAFFIC.take()
    server.fail_share = server.cut_share = 0.0
    manifest = json.loads(open_store(url).get("_manifest.json", 10**6))
    parts = [part | part["stored"] for part in manifest["parts"]]
    counted = Counter(manifest["traffic"]) + Counter(behind)
    assert counted["put"] + sum(part["requests"] for part in parts) == asked["PUT"]
    assert (
        counted["sent"] + sum(part["requests"] * part["bytes"] for part in parts) == asked["bytes"]
    )
    assert counted["get"] == asked["GET"] - asked["list"]
    assert (counted["list"], counted["head"], counted["delete"]) == (
        asked["list"],
        asked["HEAD"],
        asked["POST"],
    )
    assert min(asked["failed"], asked["cut"]) > 0
    assert all(0 < part["seconds"] < 60 for part in parts)


def test_plan_and_summary_say_what_the_store_is_asked_for_and_costs(folder, capsys):  # noqa: F811
    # 1 per request, and per byte
    url = "s3://bucket/priced"
    prices = ["--price-requests", "1000", "--price-gb", "1e9"]

    def said(program, *more):
        capsys.readouterr()
        assert program([*more, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["store"]

    words = argv(folder, url)
    plan = said(batch_sources.main, *words, *prices, "--plan")
    assert plan["cost"] == plan["requests"] + plan["sent"]
    assert "cost" not in said(batch_sources.main, *words, "--plan")
    first, second = (
        said(batch_sources.main, *words, *prices, "--shard", f"{index}/2") for index in range(2)
    )
    whole = said(finish.main, url)
    assert whole["cost"] == whole["requests"] + whole["sent"]
    for key in ("requests", "sent"):
        assert whole[key] >= first[key] + second[key]
    assert plan["requests"] <= whole["requests"]
    assert whole["sent"] > sum(
        part["bytes"] for part in json.loads(open_store(url).get("_manifest.json", 10**6))["parts"]
    )
    assert batch_sources.main([*words, "--plan"]) == 0
    assert "at least 11 requests, at most " in capsys.readouterr().out
    assert finish.main([url]) == 0
    assert f"store: {whole['requests']} requests, " in capsys.readouterr().out


def test_finish_reads_no_part_that_is_as_it_was_put_and_says_which_is_lost(
    folder,  # noqa: F811
    alone,
    tmp_path,
    monkeypatch,
    capsys,
):
    url = "s3://bucket/lost"
    read = []
    local = ObjectStore.local
    monkeypatch.setattr(
        ObjectStore, "local", lambda self, names: read.extend(names) or local(self, names)
    )

    def computed(index):
        capsys.readouterr()
        assert run(folder, url, "--shard", f"{index}/2", "--json") == 0
        return json.loads(capsys.readouterr().out)["computed"]

    assert [computed(index) for index in range(2)] == [3, 3]
    store = open_store(url)
    again = "part-000005.parquet"
    put(store, again, store.get(again, 10**6))  # the same bytes, put by a process that was slow
    put(store, "part-000002.parquet", store.get("part-000002.parquet", 10**6)[:-1] + b"x")
    store._api.delete(store._store, "part-000003.parquet")
    with monkeypatch.context() as patch:
        patch.delattr(CommitLog, "read")  # a shard has a record of its own
        assert [computed(index) for index in range(2)] == [0, 0]
    assert finish.main([url]) == 3
    assert (
        "2 parts are damaged (part-000002.parquet, part-000003.parquet)" in capsys.readouterr().err
    )
    assert read == ["part-000002.parquet", "part-000003.parquet"]
    with monkeypatch.context() as patch:
        patch.delattr(CommitLog, "read")
        assert [computed(index) for index in range(2)] == [1, 1]
    put(store, "_graph-0/meta.json", b"of a job that was killed")
    put(store, "_commits/shard-0-of-2.json", b"{")  # then the commits say the same
    assert computed(0) == 0
    read.clear()
    assert finish.main([url]) == 0
    assert read == []
    assert store.names("_graph-0") == []
    check(folder, url, alone, tmp_path)


@pytest.mark.parametrize(("denied", "code"), [("PUT", 2), ("GET HEAD", 2), ("POST", 0)])
def test_a_store_that_refuses_is_one_line_without_credentials(
    folder,  # noqa: F811
    server,
    alone,
    capsys,
    denied,
    code,
):
    """Credentials that may not delete are enough: the commits stay."""
    url = f"s3://bucket/denied-{denied[:3]}"
    assert run(folder, url, "--shard", "0/2") == 0
    server.denied = denied
    assert run(folder, url, "--resume", "--debug", "-v") == code
    error = capsys.readouterr().err
    assert ("AccessDenied" in error, "OFTHETEST" in error, "HMAC" in error) == (
        code > 0,
        False,
        False,
    ), error
    server.denied = ""
    assert run(folder, url, "--resume") == 0
    assert (
        manifest_of(alone)["digest"]
        == json.loads(open_store(url).get("_manifest.json", 10**6))["digest"]
    )


def test_a_store_that_cannot_be_reached_is_an_error_of_one_line(
    folder,  # noqa: F811
    server,
    capsys,
    monkeypatch,
):
    monkeypatch.setattr(object_stores, "_PATIENCE", 0.3)
    assert run(folder, "s3://nobucket/run") == 2
    message = capsys.readouterr().err
    assert "s3://nobucket/run" in message
    assert "NoSuchBucket" in message
    assert len([line for line in message.splitlines() if line.startswith("error: ")]) == 1
    server.fail_share = 1.0
    assert run(folder, "s3://bucket/failing") == 2
    assert "s3://bucket/failing" in capsys.readouterr().err.splitlines()[-1]


LOGS = {
    "Delta Lake": ("_delta_log/00000000000000000000.json", b"{}"),
    "Apache Iceberg": (
        "metadata/v1.metadata.json",
        b'{"format-version": 2, "location": "s3://bucket/t"}',
    ),
    "Apache Hudi": (".hoodie/hoodie.properties", b""),
}


@pytest.mark.parametrize("title", LOGS)
def test_tables_with_a_log_are_refused_in_a_store(tmp_path, title):
    name, content = LOGS[title]
    pd.DataFrame({"src": ["a"], "dst": ["b"]}).to_parquet(tmp_path / "p.parquet")
    above = f"s3://bucket/{tmp_path.name}"
    url = f"{above}/table"
    for at, data in ((name, content), ("day=1/p.parquet", (tmp_path / "p.parquet").read_bytes())):
        with open_store(url).new_file(at) as file:
            file.write(data)
    inside = f"{url}/day=1/p.parquet"
    for given in (
        url,
        f"{url}/",
        above,
        inside,
        f"{url}/day=1",
        f"{url}/day=*/*.parquet",
        f"{above}/*",
    ):
        with pytest.raises(InputError, match=f"a table of {title}"):
            read_graph(given)
    (tmp_path / "e.csv").write_text("src,dst\na,b\n")
    with pytest.raises(InputError, match=f"a table of {title}"):
        read_graph(tmp_path / "e.csv", vertices=inside)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "set AWS_ALLOW_HTTP=true"),
        (
            {"AWS_ENDPOINT_URL": "127.0.0.1:9"},
            "AWS_ENDPOINT_URL is '127.0.0.1:9', which is no address of a server",
        ),
        ({"AWS_ENDPOINT_URL_S3": "ftp://127.0.0.1:9"}, "AWS_ENDPOINT_URL_S3 is "),
        ({"AWS_REGION": "x y"}, "AWS_REGION is 'x y'"),
    ],
)
def test_an_error_of_configuration_is_reported_at_once(
    monkeypatch, tmp_path, capsys, variables, said
):
    for name in ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_stores.random, "uniform", lambda *_: pytest.fail("it waits"))
    for program, words in (
        (
            batch_sources.main,
            ["s3://bucket/edges.parquet", "--sources", "1", "--output", str(tmp_path / "out")],
        ),
        (verify.main, ["s3://bucket/out", "edges.parquet"]),
        (finish.main, ["s3://bucket/out"]),
    ):
        assert program(words) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_request_that_waits_is_reported(monkeypatch):
    reported = queue.Queue()
    waits = object_stores._Waits()
    monkeypatch.setattr(object_stores, "_SAID_AFTER", 0.05)
    monkeypatch.setattr(object_stores, "_LOOKED_EVERY", 0.01)
    waits.report_by(reported.put)
    with waits.count_wait("list") as note:
        note("which is sent again: the server is slow")
        assert "(list, which is sent again: the server is slow)" in reported.get(timeout=60)
    monkeypatch.setattr(object_stores, "_SAID_EVERY", 0.05)
    of_next_run = queue.Queue()
    waits.report_by(of_next_run.put)
    with waits.count_wait("get"):
        assert "(get)" in of_next_run.get(timeout=60)
