"""Distances of pairs from hub labels, by Arrow Flight: ``kepler-traverse serve DIR``.

DIR is the output of kepler-traverse run --result labels; of a directed graph --inward names that of
the same run with --direction in. An exchange with the command "pairs" takes batches with the columns
source and target, and answers each with a batch of one column, distance, in the order of the rows;
null where there is no path.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from kepler_traverse import _uninterrupted
from kepler_traverse.errors import InputError, one_line

from .batch_sources import run_program
from .cli import signals
from .cli.command_line import Once, OnceParser
from .cli.options import flag_text
from .cli.terminal import called_as, say
from .output.label_reader import numbers_of_ids, read_labels

MAX_ROWS = 1_000_000  # of a batch
MAX_WAITING = 64  # calls that wait at a time
MAX_SECONDS = 60.0  # that a call waits for others
_MAX_TOKEN_BYTES = 4096
_PAIRS = b"pairs"
_COLUMNS = ("source", "target")
_EPILOG = """\
exit codes: 0 stopped, 1 unexpected error, 2 bad usage or input, 130 interrupted
"""


def _in_sentences(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the server that raises errors of Flight, with one sentence, in place of
    all others.

    Flight sends the client the traceback of any error but its own, which would show the paths of
    this machine.
    """

    @wraps(method)
    def call(*arguments: Any) -> Any:
        """Call the method; raise errors of Flight in place of others."""
        try:
            return method(*arguments)
        except flight.FlightError:
            raise
        except InputError as error:
            raise flight.FlightServerError(str(error)) from None
        except pa.ArrowException as error:  # what the client sends is no stream of batches
            raise flight.FlightServerError(one_line(error)) from None
        except NotImplementedError:
            sentence = 'the service answers exchanges with the command "pairs", and no other calls'
            raise flight.FlightServerError(sentence) from None
        except Exception as error:
            say(f"unexpected {type(error).__name__} in a call: {one_line(error)}")
            raise flight.FlightInternalError("the service failed; its terminal says why") from None

    return call


class LabelServer(flight.FlightServerBase):
    """Answers pairs from the labels of a folder.

    Parameters
    ----------
    location : str
        URL to listen at, such as ``grpc://127.0.0.1:8815``.
    tables : ReadLabels
        The labels, as ``read_labels`` returns them.
    cores : int
        Number of calls that may compute at a time.
    **options
        Those of Flight's server.
    """

    # Calls that the service does not take.
    do_get = _in_sentences(flight.FlightServerBase.do_get)
    do_put = _in_sentences(flight.FlightServerBase.do_put)
    list_flights = _in_sentences(flight.FlightServerBase.list_flights)

    def __init__(self, location: str, tables: Any, *, cores: int, **options: Any):
        super().__init__(location, **options)
        self._tables = tables
        self._slots = threading.Semaphore(cores)  # of the calls that compute
        self._lock = threading.Lock()  # of the counts below
        self._waiting = 0  # calls that wait for a slot
        # Since the start: exchanges, batches and pairs that were answered, and refused batches.
        self._counts = {"calls": 0, "batches": 0, "pairs": 0, "refused": 0}
        distance_type: Any = pa.int64() if tables.is_integer else pa.float64()
        self._schema = pa.schema([("distance", distance_type)])

    @_in_sentences
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:  # noqa: ARG002
        """Answer an exchange batch by batch; Flight calls this.

        ``descriptor`` has the command, ``reader`` yields the batches of the client, and ``writer``
        takes the answers. ``context``, which says who calls, is ignored: ``_Tokens`` checks calls
        before, where tokens are needed. The next batch is read only when the answer to the one
        before is written, so few are in memory.
        """
        if descriptor.command != _PAIRS:
            raise InputError('the command of an exchange is "pairs"')
        self._count(calls=1)
        writer.begin(self._schema)
        for chunk in reader:
            batch = chunk.data
            if batch is None:  # the chunk has metadata alone
                continue
            with self._slot():
                answer = self._answer_pairs(batch)
            writer.write_batch(answer)
            self._count(batches=1, pairs=batch.num_rows)

    @_in_sentences
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:  # noqa: ARG002
        """Return a description of the answers: their schema, with the facts of the labels as
        metadata. It is the same for any ``context`` and ``descriptor``, which Flight passes.
        """
        facts = {b"kepler_traverse.labels": json.dumps(self._tables.facts).encode()}
        # -1 stands for numbers of rows and bytes that are not known.
        return flight.FlightInfo(self._schema.with_metadata(facts), descriptor, [], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:  # noqa: ARG002
        """Return the schema of the answers, which is the same for any ``context`` and
        ``descriptor``. It is not ``_in_sentences``, since Flight sends tracebacks of this call in
        any case.
        """
        return flight.SchemaResult(self._schema)

    def list_actions(self, context: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return the names of the actions, and what they answer; the same for any ``context``."""
        return [("health", "whether the service answers"), ("stats", "numbers of calls and pairs")]

    @_in_sentences
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:  # noqa: ARG002
        """Answer an action of ``list_actions``: "health" by "ok", and "stats" by the counts in
        JSON.

        ``action.type`` is its name. ``context``, which says who calls, is ignored. Raises
        InputError for another action.
        """
        if action.type == "health":
            return iter([b"ok"])
        if action.type == "stats":
            with self._lock:
                return iter([json.dumps(self._counts | {"waiting": self._waiting}).encode()])
        raise InputError("the actions are health and stats")

    def _answer_pairs(self, batch: Any) -> Any:
        """Return a batch with the distances of the pairs in ``batch``, null where there is no path.

        Raises InputError: it has other columns, too many rows, or an id that has no label.
        """
        if tuple(batch.schema.names) != _COLUMNS:
            raise InputError("a batch has the columns source and target, in this order")
        if batch.num_rows > MAX_ROWS:
            raise InputError(f"a batch has at most {MAX_ROWS:,} rows, not {batch.num_rows:,}")
        labels = self._tables.labels
        numbers = [self._numbers(batch, name) for name in _COLUMNS]
        sums = labels.between(*numbers)  # int64 array, in units of ``labels.unit``
        distances: Any = sums
        if not self._tables.is_integer:
            distances = sums * labels.unit
        distance_type = self._schema.field(0).type
        column = pa.array(distances, type=distance_type, mask=sums == labels.unreached)
        return pa.record_batch([column], schema=self._schema)

    def _numbers(self, batch: Any, name: str) -> Any:
        """Return the vertex numbers of the column ``name`` of ids; raise InputError for a null or
        an unknown id.
        """
        column = batch.column(name)
        if column.null_count:
            raise InputError(f"{name}: a row holds no id")
        return numbers_of_ids(name, column, self._tables.ids)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """Wait until a core is free, and hold it within the block.

        Raises an error of Flight, by which clients know that they may try again: too many calls
        wait, or this one has waited too long.
        """
        if not self._take_slot():
            self._count(refused=1)
            raise flight.FlightUnavailableError("too many calls wait; call again in a second")
        try:
            yield
        finally:
            self._slots.release()

    def _take_slot(self) -> bool:
        """Wait until a call may compute, and return True; return False if too many calls wait, or
        this one for too long.
        """
        with self._lock:
            if self._waiting >= MAX_WAITING:
                return False
            self._waiting += 1
        is_taken = self._slots.acquire(timeout=MAX_SECONDS)
        with self._lock:
            self._waiting -= 1
        return is_taken

    def _count(self, **numbers: int) -> None:
        """Add each number to the count of its name, a key of ``_counts``: ``calls=1``."""
        with self._lock:
            for name, number in numbers.items():
                self._counts[name] += number


class _Tokens(flight.ServerMiddlewareFactory):
    """Refuses calls without one of the tokens; none is ever logged."""

    def __init__(self, tokens: Sequence[bytes]):
        super().__init__()
        self._tokens = tokens

    def start_call(self, info: Any, headers: Any) -> None:  # noqa: ARG002
        """Raise an error of Flight unless a header has one of the tokens; Flight calls this first.

        ``headers``: by name, the values of each. ``info``, which says what is called, is ignored:
        all calls need a token.
        """
        for name, values in headers.items():
            if name.lower() == "authorization" and any(map(self._is_known, values)):
                return
        raise flight.FlightUnauthenticatedError("the call has no token of this service")

    def _is_known(self, value: str) -> bool:
        """Whether a header has one of the tokens."""
        word = value.removeprefix("Bearer ").encode()
        # Compared with each, so that the time says nothing of which it is.
        return sum(hmac.compare_digest(word, token) for token in self._tokens) > 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _serve, argv)


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("serve"), description=str(__doc__).partition("\n\n")[2], epilog=_EPILOG
    )
    result.add_argument("folder", metavar="DIR", help="output folder of the run")
    # All of these take a value, are optional, and may be given once.
    for flag, metavar, text in (
        ("--inward", "DIR", "of a directed graph: the output of the same run with --direction in"),
        (
            "--host",
            "ADDRESS",
            "address to listen at (default: 127.0.0.1); any other needs TLS and tokens",
        ),
        ("--port", "PORT", "port (default: 8815; 0: one that is free)"),
        ("--tls-cert", "FILE", "certificate of the service, PEM"),
        ("--tls-key", "FILE", "its private key, PEM"),
        (
            "--token-file",
            "FILE",
            "a token per line; calls need the header authorization: Bearer TOKEN",
        ),
    ):
        result.add_argument(flag, action=Once, metavar=metavar, help=text)
    result.add_argument(
        "--debug", action=Once, nargs=0, help="show where an unexpected error comes from"
    )
    return result


def make_server(folder: str, host: str, port: int, flags: dict[str, Any]) -> LabelServer:
    """Return a server of the labels of a run, which listens already.

    Parameters
    ----------
    folder : str
        Output folder of the run.
    host : str
        Address to listen at.
    port : int
        0 for one that is free.
    flags : dict of str to any
        Values of the other flags of the command line by name, such as ``tls_cert``.

    Raises
    ------
    InputError
        The labels cannot be read; or the address can be reached from other machines, and TLS or
        tokens are missing.
    """
    from kepler_traverse.cpu import threads

    # TLS and tokens.
    options: dict[str, Any] = {}
    has_tls = flags.get("tls_cert") is not None and flags.get("tls_key") is not None
    if (flags.get("tls_cert") is None) != (flags.get("tls_key") is None):
        raise InputError("--tls-cert and --tls-key belong together; give both")
    if not _is_loopback(host) and not (has_tls and flags.get("token_file") is not None):
        raise InputError(
            f"--host {host} can be reached from other machines: give --tls-cert, --tls-key and "
            "--token-file, or listen at 127.0.0.1"
        )
    scheme = "grpc"
    if has_tls:
        scheme = "grpc+tls"
        certificate = _read_small_file(flags["tls_cert"])
        options["tls_certificates"] = [(certificate, _read_small_file(flags["tls_key"]))]
    if flags.get("token_file") is not None:
        options["middleware"] = {"tokens": _Tokens(_read_tokens(flags["token_file"]))}

    tables = read_labels(folder, flags.get("inward"))
    address = f"{host}:{port}"
    if ":" in host:  # of IPv6
        address = f"[{host}]:{port}"
    try:
        return LabelServer(f"{scheme}://{address}", tables, cores=threads.count(), **options)
    except pa.ArrowException:
        # gRPC says why to its log alone
        reason = "take another --port if this one is in use"
        if has_tls:
            reason += ", and see that --tls-cert and --tls-key are a certificate and its key in PEM"
        raise InputError(f"the service cannot listen at {address}; {reason}") from None


def _is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_small_file(path: str) -> bytes:
    """Return the bytes of a file of at most 1 MiB; raise InputError if it cannot be read."""
    from kepler_traverse.runtime.regular_files import read_regular

    try:
        return read_regular(os.path.realpath(path), 2**20)
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror or error}") from None


def _read_tokens(path: str) -> list[bytes]:
    """Return the tokens of a file, one per line.

    Raises InputError: there is none, or one has more than ``_MAX_TOKEN_BYTES`` bytes.
    """
    lines = map(bytes.strip, _read_small_file(path).splitlines())
    tokens = [line for line in lines if line]
    if not tokens or any(len(token) > _MAX_TOKEN_BYTES for token in tokens):
        raise InputError(f"{path}: it holds no token, or one of more than {_MAX_TOKEN_BYTES} bytes")
    return tokens


def _serve(parsed: Any) -> int:
    """Serve as the parsed command line says, until a signal ends it; return the exit code."""
    from kepler_traverse.errors import options_spelled

    flags = {"host": "127.0.0.1", "port": "8815"} | vars(parsed)
    if not (flags["port"].isascii() and flags["port"].isdigit()) or int(flags["port"]) > 65535:
        raise InputError(f"--port {flags['port']!r} must be a number up to 65535")
    with options_spelled(flag_text):
        began = time.perf_counter()
        server = make_server(flags["folder"], flags["host"], int(flags["port"]), flags)
    try:
        seconds = time.perf_counter() - began
        say(
            f"serving {Path(flags['folder'])} at {flags['host']}:{server.port}, loaded in {seconds:.1f} s"
        )
        # The server answers on its own threads. server.serve() would take the signals, and wait for
        # clients without end.
        _uninterrupted.sleep()
    finally:
        # The shutdown waits for the open calls, and signals.run_heeding not for long. On a thread
        # of its own a second interrupt ends the waiting alone: an interpreter that ends while a
        # server is open would hang.
        _uninterrupted.run(server.shutdown)
    return 0


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
