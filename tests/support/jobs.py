"""Runs of the job in this process, what their folders hold, and what the library says about the same."""

import hashlib
import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse import bfs_many, read_graph, sssp_many
from pipelines import verify
from pipelines.batch_sources import main


def write_edges(path, src, dst, weight=None, **more):
    """Write an edge list as Parquet; return its path."""
    columns = {"src": src, "dst": dst}
    if weight is not None:
        columns["weight"] = weight
    pq.write_table(pa.table(columns | more), path)
    return path


def random_edges(path, seed, n_vertices, n_rows, weights=(1, 99)):
    """Write an edge list of integers that a seed chooses; return its path."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, n_vertices, (2, n_rows))
    return write_edges(path, src, dst, rng.integers(*weights, n_rows))


def manifest_of(folder):
    return json.loads((folder / "_manifest.json").read_text())


def parts_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def rows_of(folder):
    """Return all rows, in the order of the run's sources."""
    return pd.concat(
        [pd.read_parquet(path) for path in sorted(folder.glob("part-*"))], ignore_index=True
    )


def seal(folder, manifest):
    """Write a manifest, and the mark that fits it."""
    data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    (folder / "_manifest.json").write_bytes(data)
    (folder / "_SUCCESS").write_text(hashlib.sha256(data).hexdigest() + "\n")


def forget_parts(folder):
    """Make the manifest older than the parts, as that of a run that was killed is."""
    (folder / "_SUCCESS").unlink()
    (folder / "_manifest.json").write_text(
        json.dumps(manifest_of(folder) | {"status": "running", "parts": [], "digest": None})
    )


# Whether a run compiles, and says so, depends on what the tests before it have compiled.
_COMPILES = "compiling (once for this machine)\n"


def call(capsys, *argv, program=main):
    """Run a command line; return its exit code, stdout and stderr without the notice of compiling."""
    capsys.readouterr()
    code = program([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.replace(_COMPILES, "")


def refused(capsys, *argv, program=main):
    """Return the message with which a command line is refused."""
    code, out, err = call(capsys, *argv, program=program)
    assert (code, out) == (2, ""), err
    return err


def summary_of(capsys, *argv, program=main):
    """Return what a command line with ``--json`` says at its end."""
    code, out, err = call(capsys, *argv, program=program)
    assert code == 0, err
    return json.loads(out)


def proven(folder, edges, capsys, *more):
    """Return what verify says about an output: its exit code and its findings."""
    code, out, _ = call(
        capsys, folder, edges, "--device", "cpu", "--json", *more, program=verify.main
    )
    return code, json.loads(out)


class Observer:
    """Takes what becomes of batches; a retry or a failure is one of ``expected``, or an error."""

    def __init__(self, *expected):
        self.parts = Counter()
        self.again = []
        self.failures = []
        self.notices = []
        self._expected = expected

    def done(self, part, summary, without):  # noqa: ARG002
        self.parts[part] += 1

    def failed(self, part, sources, reason):
        assert "failed" in self._expected, (part, sources, reason)
        self.failures.append((part, sources, reason))

    def retried(self, part, why):
        assert why in self._expected, (part, why)
        self.again.append(part)

    def draining(self, tasks):
        raise AssertionError(tasks)

    def notice(self, message):
        self.notices.append(message)


class Runs:
    """Makes each run once, and returns its folder; ``command(folder, *case, **way)`` is its command line."""

    def __init__(self, root, command):
        self.command = command
        self._root = root
        self._folders = {}

    def __call__(self, *case, **way):
        key = (*case, *way.items())
        if key not in self._folders:
            folder = self._root / str(len(self._folders))
            self._folders[key] = folder
            assert main(self.command(folder, *case, **way)) == 0
        return self._folders[key]


def _numbers(text):
    return [float(each) if "." in each else int(each) for each in str(text).split(",")]


OPTIONS = {
    "--result": ("result", str), "--decay": ("decay", str), "--direction": ("direction", str), "--nearest-k": ("k", int),
    "--max-depth": ("max_depth", int), "--cutoff": ("cutoff", float), "--cutoffs": ("cutoffs", _numbers),
    "--targets": ("targets", _numbers),
}  # fmt: skip


def by_library(edges, words, sources, attributes=None, **more):
    """Return what the library says about a command line: the graph and a frame, or the matrix.

    ``words`` are options with a value each; ``attributes`` is the table of ``--vertices``.
    """
    flags = dict(zip(words[::2], words[1::2], strict=True))
    is_weighted = flags.get("--algorithm") == "sssp"
    weight = flags.get("--columns", "").partition("weight=")[2]
    reading = {}
    if is_weighted and weight:
        reading["weight_column"] = weight
    if attributes is not None:
        reading["vertices"] = attributes["vertex"].to_numpy()
    graph = read_graph(edges, device="cpu", weighted=is_weighted, **reading)
    options = {
        name: kind(flags[flag]) for flag, (name, kind) in OPTIONS.items() if flag in flags
    } | more
    if "--values" in flags:
        options["values"] = attributes[["vertex", *flags["--values"].split(",")]]
    found = (sssp_many if is_weighted else bfs_many)(graph, sources, **options)
    if options.get("result") == "reachable":
        source, vertex = np.nonzero(
            np.unpackbits(found, axis=1, bitorder="little")[:, : graph.n_vertices]
        )
        found = pd.DataFrame({"source": np.array(sources)[source], "vertex": graph.ids[vertex]})
    return graph, found
