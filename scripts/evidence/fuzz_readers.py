"""Give broken files to the readers. Each must be refused by name, or read as a consistent graph.

Valid files of every format are mutated: bytes are flipped, cut, duplicated or moved, two files are joined, and numbers are
replaced by extreme ones. A file is at fault if reading it

- raises anything but an error of this library (a crash of the process is found by the parent, which runs the reader in a
  child process and knows the current file),
- takes longer than the limit, or more memory than the limit,
- gives a graph although the file was cut within its data, in a format that records its length,
- gives an inconsistent graph, or another one at the second reading,
- or prints a warning.

Files at fault are written to the folder together with the outcome.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse import read_graph
from kepler_traverse.errors import KeplerError, NegativeCycleError

SECONDS_PER_FILE = 20
FILES_PER_CHILD = 4000  # pyarrow (26) loses 80 KB with each damaged gzip stream
MEMORY = 3 << 30  # address space beyond what the process has at the start
STUMBLING = (
    b"0|-0|-1|1e400|nan|inf|-inf|9223372036854775808|18446744073709551616|2147483648|4294967296|1e-320|0x7|007|+7| ||\0|"
    b"\xff\xfe|\xef\xbb\xbf|\"|'|#|%|\r|\n\n|,,|999999999999|c|p sp 9 9|1.5|1_0|\xe2\x82\xac"
    b"|;|, |\t|from,to\n|u v\n|src|dst|weight|length|1e-400|9007199254740993|-9007199254740993.0|\xc2\xa0|1\x002\x00"
).split(b"|")
WAYS = ["flip", "bytes", "cut", "drop", "double", "move", "stumble", "number", "join", "zeros"]
# Formats that record their length, so that a file that was cut within its data can be detected.
CARRY_LENGTH = (".parquet", ".arrow", ".gz", ".bz2", ".zst", ".gr", ".mtx")


def texts_of(rows: list[tuple[int, int, int]]) -> dict[str, str]:
    """Return files of text of rows: those whose names end in .gz, .bz2 and .zst are compressed then."""

    def lines(form: str) -> str:
        return "".join(form.format(u=u, v=v, w=w, f=w / 8, u1=u + 1, v1=v + 1) for u, v, w in rows)

    csv = "src,dst,weight\n" + lines("{u},{v},{w}\n")
    gr = f"c comment\np sp 30 {len(rows)}\n" + lines("a {u1} {v1} {w}\n")
    mtx = "%%MatrixMarket matrix coordinate {}\n%c\n30 30 {}\n"
    lower = sorted({(max(u, v) + 1, min(u, v) + 1) for u, v, _ in rows})
    pattern = "".join(f"{u} {v}\n" for u, v in lower)
    return {
        "plain.csv": csv,
        "quoted.csv": "from,to\n" + lines('"a{u}","b ""{v}"""\n'),
        "tabs.tsv": csv.replace(",", "\t"),
        "semicolons.csv": csv.replace(",", ";"),
        "blanks.csv": csv.replace(",", ", "),
        "streets.csv": "u,v,key,length\n" + lines("{u},{v},0,{f}\n"),
        "no header.csv": csv.partition("\n")[2],
        "words.txt": lines("v{u} é{v} {w}\n"),
        "snap.txt": "# comment\n" + lines("{u}\t{v} {w}\n"),
        "roads.gr": gr,
        "real.mtx": mtx.format("real general", len(rows)) + lines("{u1} {v1} {f}\n"),
        "pattern.mtx": mtx.format("pattern symmetric", len(lower)) + pattern,
        "plain.csv.gz": csv,
        "plain.csv.bz2": csv,
        "roads.gr.gz": gr,
        "plain.csv.zst": csv,
    }


COMPRESSED = {
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data).to_pybytes(),
}
CHECKED = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}


def whole_files() -> dict[str, bytes]:
    """Return small valid files of every format."""
    rng = np.random.default_rng(1)
    src, dst, weight = (rng.integers(0, most, 60) for most in (30, 30, 9))
    rows = list(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True))
    files = {}
    for name, text in texts_of(rows).items():
        compress = COMPRESSED.get(Path(name).suffix, bytes)
        files[name] = compress(text.encode())
    table = pa.table({"src": src, "dst": dst, "weight": weight})
    names = {"from": [f"v{i}" for i in src], "to": [f"é{i}" for i in dst], "weight": weight / 7}
    texts = pa.table(names)
    for name, data, options in (
        ("plain.parquet", table, {"row_group_size": 20}),
        ("names.parquet", texts, {"compression": "zstd"}),
        ("checked.parquet", table, CHECKED),
    ):
        sink = pa.BufferOutputStream()
        pq.write_table(data, sink, **options)
        files[name] = sink.getvalue().to_pybytes()
    for name, data, writer in (
        ("plain.arrow", table, pa.ipc.new_file),
        ("names.arrow", texts, pa.ipc.new_file),
        ("plain.arrows", table, pa.ipc.new_stream),
    ):
        sink = pa.BufferOutputStream()
        with writer(sink, data.schema) as out:
            out.write_table(data, max_chunksize=20)
        files[name] = sink.getvalue().to_pybytes()
    return files


def mutate(whole: bytes, other: bytes, rng) -> tuple[bytes, str]:
    """Return a broken copy and a description of the mutation."""
    data = bytearray(whole)
    did = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        way = str(rng.choice(WAYS))
        did.append(way)
        begin, end = sorted(int(x) for x in rng.integers(0, len(data) + 1, 2))
        end = min(end, begin + int(rng.choice([1, 4, 16, 64, 1024])))
        if way == "flip" and begin < len(data):
            data[begin] ^= 1 << int(rng.integers(8))
        elif way == "bytes":
            data[begin:end] = rng.bytes(end - begin)
        elif way == "cut":
            del data[begin:]
        elif way == "drop":
            del data[begin:end]
        elif way == "double":
            data[begin:begin] = data[begin:end]
        elif way == "move":
            piece = data[begin:end]
            del data[begin:end]
            at = int(rng.integers(0, len(data) + 1))
            data[at:at] = piece
        elif way == "stumble":
            data[begin:end] = STUMBLING[int(rng.integers(len(STUMBLING)))]
        elif way == "number":
            digits = [i for i in range(len(data)) if chr(data[i]).isdigit()]
            if digits:
                at = int(rng.choice(digits))
                data[at : at + 1] = STUMBLING[int(rng.integers(len(STUMBLING)))]
        elif way == "join":
            data[begin:] = other[int(rng.integers(0, len(other) + 1)) :]
        elif way == "zeros":
            data[begin:end] = bytes(end - begin)
    return bytes(data), " ".join(did)


def is_consistent(graph) -> bool:
    """Return whether a graph is consistent: sorted adjacency lists within range, finite weights, ascending ids."""
    n = graph.n_vertices
    offsets = graph.offsets
    targets = graph.targets
    sound = offsets[0] == 0 and offsets[-1] == targets.size and bool((np.diff(offsets) >= 0).all())
    sound &= bool(((targets >= 0) & (targets < n)).all()) and len(graph.ids) == n
    inside = np.ones(max(0, targets.size - 1), bool)
    ends = offsets[1:-1]
    inside[ends[(ends > 0) & (ends < targets.size)] - 1] = False
    sound &= bool((np.diff(targets)[inside] > 0).all())
    ids = graph.ids.tolist()
    if graph.has_string_ids:
        ids = [name.encode() for name in ids]
    sound &= all(a < b for a, b in itertools.pairwise(ids))
    return sound and (graph.weights is None or bool(np.isfinite(graph.weights).all()))


def outcome_of(path: Path) -> tuple[str, str]:
    """Read one file: ("refused", message), ("read", fingerprint) or ("fault", what happened)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = read_graph(path, device="cpu")
            if not is_consistent(graph):
                return "fault", "the graph is inconsistent"
            again = read_graph(path, device="cpu", format="auto")
        if again.fingerprint != graph.fingerprint:
            return "fault", "a second reading gives another graph"
        return "read", graph.fingerprint
    except KeplerError as error:
        message = str(error)
        if "\n" in message or len(message) > 1000:
            return "fault", f"the message is not one sentence: {message[:2000]}"
        if isinstance(error, NegativeCycleError) or str(path) in message:
            return "refused", message
        return "fault", f"the message does not name the file: {message}"
    except BaseException:
        return "fault", traceback.format_exc()


def _child(work: Path, seed: int, seconds: float, connection) -> None:
    """Mutate and read until the time is over; tell the parent each file before reading it."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    rng = np.random.default_rng(seed)
    files = whole_files()
    graphs = {}
    for name, whole in files.items():
        (work / name).write_bytes(whole)
        graphs[name] = outcome_of(work / name)
        if graphs[name][0] != "read":
            connection.send(("fault", name, "none", graphs[name][1]))
    names = sorted(files)
    ends = time.monotonic() + seconds
    for _ in range(FILES_PER_CHILD):
        if time.monotonic() > ends:
            break
        name = str(rng.choice(names))
        data, did = mutate(files[name], files[str(rng.choice(names))], rng)
        (work / name).write_bytes(data)
        connection.send(("at", name, did, ""))
        kind, what = outcome_of(work / name)
        # Only cut at the end: data are missing, unless it was one line end.
        cut = (
            did == "cut"
            and len(data) < len(files[name]) - 1
            and name.endswith((*CARRY_LENGTH, ".arrows"))
        )
        if kind == "read" and cut:
            kind = "fault"
            what = f"cut after {len(data)} of {len(files[name])} bytes, and read"
        connection.send((kind, name, did, what))
    connection.send(("end", "", "", ""))


def fuzz(seconds: float, seed: int, out: Path) -> dict:
    """Run children one after another until the time is over; returns the counts."""
    out.mkdir(parents=True, exist_ok=True)
    counts = {"files": 0, "refused": 0, "read": 0, "faults": 0, "seconds": 0}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        while (left := seconds - (time.monotonic() - started)) > 0:
            here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
            child = multiprocessing.get_context("spawn").Process(
                target=_child, args=(work, seed, left, there)
            )
            child.start()
            there.close()
            _listen(here, child, work, out, counts, seed)
            seed += 1
    counts["seconds"] = round(time.monotonic() - started)
    return counts


def _listen(connection, child, work: Path, out: Path, counts: dict, seed: int) -> None:
    name = ""
    did = ""
    limit = 120.0
    while True:
        try:
            if not connection.poll(limit):
                _keep(out, counts, work, name, did, f"no answer for {limit:.0f} s")
                break
            kind, name, did, what = connection.recv()
        except EOFError:
            child.join()
            said = f"the process ended with {child.exitcode} (seed {seed})"
            _keep(out, counts, work, name, did, said)
            break
        limit = SECONDS_PER_FILE
        if kind == "end":
            break
        if kind == "fault":
            _keep(out, counts, work, name, did, what)
        elif kind != "at":
            counts[kind] += 1
        counts["files"] += kind != "at"
    child.kill()
    child.join()


def _keep(out: Path, counts: dict, work: Path, name: str, did: str, what: str) -> None:
    """Store a file that was at fault."""
    counts["faults"] += 1
    if counts["faults"] <= 200 and (work / name).is_file():
        place = out / f"{counts['faults']:04d}-{name}"
        place.write_bytes((work / name).read_bytes())
        place.with_name(place.name + ".why").write_text(f"{did}\n{what}\n")
