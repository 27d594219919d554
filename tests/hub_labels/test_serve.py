"""The service answers pairs as the library does, and refuses what it must."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import convert
from kepler_traverse.cpu import threads
from kepler_traverse.errors import InputError
from kepler_traverse.pipelines import run_job
from pipelines import serve
from tests.support.forks import forked
from tests.support.graphs import build, lattice, weights_for
from tests.support.processes import finish, ran

flight = pytest.importorskip("pyarrow.flight")
ROWS = [*lattice(9, 9), (100, 101)]


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    graph = build(ROWS, weights_for(ROWS, 4), directed=True)
    for direction in ("out", "in"):
        run_job(
            graph,
            output=folder / direction,
            algorithm="sssp",
            result="labels",
            direction=direction,
            report=False,
        )
    return graph, str(folder)


@contextlib.contextmanager
def served(folder, headers=(), scheme="grpc", connect=None, **given):
    given["inward"] = f"{folder}/in"
    server = serve.make_server(f"{folder}/out", "127.0.0.1", 0, given)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        with flight.connect(f"{scheme}://127.0.0.1:{server.port}", **connect or {}) as client:
            yield client, flight.FlightCallOptions(headers=list(headers))
    finally:
        server.shutdown()
        thread.join()


def asked(client, options, batches, command=b"pairs"):
    schema = batches[0].schema
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(command), options)
    answers = []
    with writer:
        writer.begin(schema)
        for batch in batches:
            writer.write_batch(batch)
            answers.append(reader.read_chunk().data.column(0))
        writer.done_writing()
    return answers


def pairs_of(*columns):
    return pa.record_batch([pa.array(column) for column in columns], names=["source", "target"])


def assert_sentence(error, message):
    """A client sees what we say, and nothing of the program or the machine."""
    assert message in str(error)
    assert "Traceback" not in str(error)
    assert ".py" not in str(error)


def test_batches_are_answered_in_order(town):
    graph, folder = town
    ids = np.asarray(graph.ids)
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, ids.size, (3, 2, 200))
    distances = dijkstra(convert.to_scipy(graph))
    with served(folder) as (client, options):
        answers = asked(client, options, [pairs_of(ids[s], ids[t]) for s, t in numbers])
        for (s, t), answer in zip(numbers, answers, strict=True):
            found = np.array([np.inf if each is None else each for each in answer.to_pylist()])
            assert np.array_equal(found, distances[s, t])
        (stats,) = client.do_action(flight.Action("stats", b""), options)
        expected = {"calls": 1, "batches": 3, "pairs": 600, "refused": 0, "waiting": 0}
        assert json.loads(stats.body.to_pybytes()) == expected
        (health,) = client.do_action(flight.Action("health", b""), options)
        assert health.body.to_pybytes() == b"ok"
        info = client.get_flight_info(flight.FlightDescriptor.for_command(b"pairs"), options)
        facts = json.loads(info.schema.metadata[b"kepler_traverse.labels"])
        assert facts["graph"] == graph.fingerprint


@pytest.mark.parametrize(
    ("batch", "command", "message"),
    [
        (pairs_of([0, 5], [1, 99]), b"pairs", "target: row 1 has '99', which has no label"),
        (pairs_of([0, None], [1, 2]), b"pairs", "source: a row holds no id"),
        (pairs_of(["a"], ["b"]), b"pairs", "source: ids are string"),
        (pairs_of([0], [2**40]), b"pairs", "target: row 0 has '1099511627776', which has no"),
        (pairs_of([0], [1]), b"paths", 'the command of an exchange is "pairs"'),
        (pa.record_batch([pa.array([1])], names=["a"]), b"pairs", "the columns source and target"),
    ],
)
def test_wrong_calls_are_refused_without_an_answer(town, batch, command, message):
    with served(town[1]) as (client, options), pytest.raises(flight.FlightServerError) as refused:
        asked(client, options, [batch], command)
    assert_sentence(refused.value, message)


OTHER_CALLS = {
    "do_get": lambda client, options: client.do_get(flight.Ticket(b"pairs"), options).read_all(),
    "do_put": lambda client, options: client.do_put(
        flight.FlightDescriptor.for_command(b"pairs"), pa.schema([]), options
    )[0].close(),
    "list_flights": lambda client, options: list(client.list_flights(b"", options)),
    "do_action": lambda client, options: list(
        client.do_action(flight.Action("stop", b""), options)
    ),
}


def test_calls_that_the_service_has_not_are_refused_in_a_sentence(town):
    with served(town[1]) as (client, options):
        for name, call in OTHER_CALLS.items():
            with pytest.raises(flight.FlightServerError) as refused:
                call(client, options)
            is_action = name == "do_action"
            message = "the actions are health" if is_action else "the service answers exchanges"
            assert_sentence(refused.value, message)
        schema = client.get_schema(flight.FlightDescriptor.for_command(b"pairs"), options).schema
    assert schema.names == ["distance"]


def test_a_fault_of_the_service_is_told_on_its_terminal_alone(town, monkeypatch, capsys):
    monkeypatch.setattr(serve.LabelServer, "_answer_pairs", lambda _, batch: batch.column("secret"))
    with (
        served(town[1]) as (client, options),
        pytest.raises(flight.FlightInternalError) as failed,
    ):
        asked(client, options, [pairs_of([0], [1])])
    assert_sentence(failed.value, "the service failed; its terminal says why")
    assert "secret" not in str(failed.value)
    assert "unexpected KeyError in a call" in capsys.readouterr().err


def test_limits_of_rows_and_of_waiting_calls(town, monkeypatch):
    monkeypatch.setattr(serve, "MAX_ROWS", 3)
    with served(town[1]) as (client, options):
        assert asked(client, options, [pairs_of([0] * 3, [0] * 3)])[0].to_pylist() == [0] * 3
        with pytest.raises(flight.FlightServerError, match="at most 3 rows, not 4"):
            asked(client, options, [pairs_of([0] * 4, [0] * 4)])
        monkeypatch.setattr(serve, "MAX_WAITING", 0)
        with pytest.raises(flight.FlightUnavailableError, match="too many calls wait"):
            asked(client, options, [pairs_of([0], [0])])


def test_an_address_that_cannot_be_had_is_refused(town):
    folder = f"{town[1]}/out"
    given = {"inward": f"{town[1]}/in"}
    with (
        serve.make_server(folder, "127.0.0.1", 0, given) as first,
        pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{first.port}; take another"),
    ):
        serve.make_server(folder, "127.0.0.1", first.port, given)
    with contextlib.suppress(InputError):  # where a machine has no IPv6
        serve.make_server(folder, "::1", 0, given).shutdown()
    certificate = town[1] + "/out/_manifest.json"
    given |= {"tls_cert": certificate, "tls_key": certificate}
    with pytest.raises(InputError, match="--tls-cert and --tls-key are a certificate and its key"):
        serve.make_server(folder, "127.0.0.1", 0, given)


@pytest.mark.parametrize("port", ["-1", "65536", "²", ""])
def test_a_port_is_a_number(town, port, capsys):
    assert serve.main([f"{town[1]}/out", f"--port={port}"]) == 2
    assert "must be a number up to 65535" in capsys.readouterr().err


STOPPED = """
import time
from pipelines import serve
from pipelines.cli import signals
signals._HURRY_SECONDS = {hurry}
say = serve.say
def say_slowly(text):
    say(text)
    time.sleep({seconds})
serve.say = say_slowly
raise SystemExit(signals.run_heeding(serve.main))
"""


@pytest.mark.parametrize("is_second", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("seconds", [0, 1], ids=["it waits", "it has just begun"])
def test_an_open_call_does_not_keep_the_service_from_ending(town, seconds, is_second):
    words = [f"{town[1]}/out", "--inward", f"{town[1]}/in", "--port", "0"]
    program = STOPPED.format(seconds=seconds, hurry=0.4 if is_second else 0.1)
    with forked(program, *words) as child:
        port = child.stderr.readline().partition("127.0.0.1:")[2].partition(",")[0]
        with flight.connect(f"grpc://127.0.0.1:{port}") as client:
            batch = pairs_of([0], [0])
            writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"pairs"))
            writer.begin(batch.schema)
            writer.write_batch(batch)
            assert reader.read_chunk().data.column(0).to_pylist() == [0]
            child.send_signal(signal.SIGINT)
            if is_second:
                time.sleep(0.1)
                child.send_signal(signal.SIGINT)
            code, _, said = finish(child)
            assert (code, said) == (130, "interrupted\n")
            with pytest.raises(pa.ArrowException):
                writer.close()


def test_calls_need_one_of_the_tokens(town, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("first\nsecond\n")
    for headers, is_known in (
        ([(b"authorization", b"Bearer second")], True),
        ([(b"authorization", b"Bearer third")], False),
        ([], False),
    ):
        with served(town[1], headers, token_file=str(tokens)) as (client, options):
            if is_known:
                assert asked(client, options, [pairs_of([0], [0])])[0].to_pylist() == [0]
            else:
                with pytest.raises(flight.FlightUnauthenticatedError, match="no token"):
                    asked(client, options, [pairs_of([0], [0])])


def test_other_addresses_need_tls_and_tokens(town, tmp_path):
    with pytest.raises(InputError, match="can be reached from other machines"):
        serve.make_server(town[1], "0.0.0.0", 0, {})
    with pytest.raises(InputError, match="belong together"):
        serve.make_server(town[1], "127.0.0.1", 0, {"tls_cert": "a"})
    empty = tmp_path / "tokens"
    empty.write_text("\n")
    with pytest.raises(InputError, match="it holds no token"):
        serve.make_server(town[1], "127.0.0.1", 0, {"token_file": str(empty)})
    with pytest.raises(InputError, match="it holds no labels of a run"):
        serve.make_server(str(tmp_path), "127.0.0.1", 0, {})


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two certificates of 127.0.0.1 that sign themselves: for each its file and that of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "foreign"):
        made = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        places = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        named = ["-addext", "subjectAltName=IP:127.0.0.1"]
        ran(["openssl", "req", "-x509", *made, *places, *named], cwd=folder)
    return {name: (folder / f"{name}.pem", folder / f"{name}.key") for name in ("ours", "foreign")}


def test_tls_is_for_clients_that_know_the_certificate(town, certificates):
    cert, key = certificates["ours"]
    given = {"tls_cert": str(cert), "tls_key": str(key)}

    def ask(scheme, root):
        connect = {"tls_root_certs": root.read_bytes()} if root else {}
        with served(town[1], scheme=scheme, connect=connect, **given) as (client, options):
            return asked(client, options, [pairs_of([0], [0])])[0].to_pylist()

    assert ask("grpc+tls", cert) == [0]
    with pytest.raises(flight.FlightUnavailableError):
        ask("grpc+tls", certificates["foreign"][0])
    with pytest.raises(flight.FlightUnavailableError):
        ask("grpc", None)


def test_other_addresses_are_served_with_tls_and_tokens(town, certificates, tmp_path):
    cert, key = certificates["ours"]
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    given = {"tls_cert": str(cert), "tls_key": str(key), "token_file": str(tokens)}
    server = serve.make_server(f"{town[1]}/out", "0.0.0.0", 0, given | {"inward": f"{town[1]}/in"})
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        place = f"grpc+tls://127.0.0.1:{server.port}"
        with flight.connect(place, tls_root_certs=cert.read_bytes()) as client:
            for header, is_known in ((b"Bearer secret", True), (b"secret2", False), (b"", False)):
                options = flight.FlightCallOptions(headers=[(b"authorization", header)])
                if is_known:
                    assert asked(client, options, [pairs_of([0], [0])])[0].to_pylist() == [0]
                else:
                    with pytest.raises(flight.FlightUnauthenticatedError):
                        asked(client, options, [pairs_of([0], [0])])
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def held(monkeypatch):
    """Batches wait in the computation until the event is set; the semaphore counts those that do."""
    gate = threading.Event()
    begun = threading.Semaphore(0)
    answer_pairs = serve.LabelServer._answer_pairs

    def waiting(self, batch):
        begun.release()
        assert gate.wait(60)
        return answer_pairs(self, batch)

    monkeypatch.setattr(serve.LabelServer, "_answer_pairs", waiting)
    return gate, begun


def stats_of(client, options):
    (stats,) = client.do_action(flight.Action("stats", b""), options)
    return json.loads(stats.body.to_pybytes())


def test_calls_beyond_those_that_may_wait_are_refused(town, held, monkeypatch):
    gate, begun = held
    monkeypatch.setattr(serve, "MAX_WAITING", 2)
    monkeypatch.setattr(threads, "count", lambda: 1)
    with served(town[1]) as (client, options), ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(asked, client, options, [pairs_of([0], [0])]) for _ in range(3)]
        assert begun.acquire(timeout=60)  # one computes
        while stats_of(client, options)["waiting"] < 2:
            time.sleep(0.01)
        with pytest.raises(flight.FlightUnavailableError, match="too many calls wait"):
            asked(client, options, [pairs_of([0], [0])])
        gate.set()
        assert [call.result(60)[0].to_pylist() for call in calls] == [[0]] * 3
        stats = stats_of(client, options)
        assert (stats["refused"], stats["waiting"], stats["batches"]) == (1, 0, 3)


def test_a_call_does_not_wait_for_ever(town, held, monkeypatch):
    gate, begun = held
    monkeypatch.setattr(serve, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(threads, "count", lambda: 1)
    with served(town[1]) as (client, options), ThreadPoolExecutor(1) as pool:
        call = pool.submit(asked, client, options, [pairs_of([0], [0])])
        assert begun.acquire(timeout=60)
        with pytest.raises(flight.FlightUnavailableError, match="too many calls wait"):
            asked(client, options, [pairs_of([0], [0])])
        gate.set()
        assert call.result(60)[0].to_pylist() == [0]
        assert stats_of(client, options)["waiting"] == 0


def test_a_client_that_does_not_read_holds_up_its_own_batches_alone(town):
    n_batches = 80
    batch = pairs_of(np.zeros(100_000, np.int64), np.zeros(100_000, np.int64))
    with served(town[1]) as (client, options), ThreadPoolExecutor(1) as pool:
        descriptor = flight.FlightDescriptor.for_command(b"pairs")
        writer, reader = client.do_exchange(descriptor, options)
        writer.begin(batch.schema)

        def write():
            for _ in range(n_batches):
                writer.write_batch(batch)
            writer.done_writing()

        writing = pool.submit(write)
        answered = -1
        while (now := stats_of(client, options)["batches"]) != answered or now == 0:
            answered = now
            time.sleep(1.0)
        assert answered < n_batches
        assert not writing.done()
        assert asked(client, options, [pairs_of([0], [0])])[0].to_pylist() == [0]
        n_rows = sum(reader.read_chunk().data.num_rows for _ in range(n_batches))
        assert n_rows == n_batches * 100_000
        writing.result(60)
        writer.close()
