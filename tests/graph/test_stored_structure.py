"""A stored graph with valid checksums and invalid arrays is refused, and never searched."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kepler_traverse import bfs, sssp
from kepler_traverse.cpu.csr_check import find_fault
from kepler_traverse.errors import InputError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.graph.storage import load_graph, write_graph
from kepler_traverse.runtime.regular_files import MAX_DEPTH, compute_digests, read_json, sealed
from tests.support.graphs import NAMED, build, edge_rows, weights_for

ROWS = [row[:2] for row in NAMED["power law"]]


@pytest.fixture
def stored(tmp_path):
    """Save a graph, change its files, and adapt its checksums."""

    def store(change, directed=True, strings=False):
        folder = tmp_path / "graph"
        graph = build(ROWS, weights_for(ROWS, 2), directed=directed)
        if strings:
            ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
            graph = graph_from_numbers(*ends, ids=pa.array(["a", "b", "c"]))
        write_graph(graph, folder)
        names = [
            name
            for name in ("offsets", "targets", "weights", "ids")
            if (folder / f"{name}.npy").exists()
        ]
        arrays = {name: np.load(folder / f"{name}.npy") for name in names}
        change(arrays)
        ids = arrays.get("ids", pa.array(["a", "b", "c"]))
        if isinstance(ids, pa.Array):
            with pyarrow.ipc.new_file(
                str(folder / "ids.arrow"), pa.schema([("ids", ids.type)])
            ) as writer:
                writer.write_table(pa.table({"ids": ids}))
        for name in names:
            np.save(folder / f"{name}.npy", arrays[name])
        meta = json.loads((folder / "meta.json").read_text())
        del meta["checksum"]
        meta["files"] = compute_digests(folder, list(meta["files"]))
        (folder / "meta.json").write_bytes(sealed(meta))
        return folder

    return store


def put(name, at, value):
    def change(arrays):
        arrays[name][at] = value

    return change


def replaced(name, make):
    def change(arrays):
        arrays[name] = make(arrays[name])

    return change


def swapped(arrays):
    """Two targets of one vertex in the wrong order."""
    first = int(np.flatnonzero(np.diff(arrays["offsets"]) > 1)[0])
    at = arrays["offsets"][first]
    arrays["targets"][[at, at + 1]] = arrays["targets"][[at + 1, at]]


def with_self_loop(arrays):
    vertex = int(np.flatnonzero(np.diff(arrays["offsets"]) == 1)[0])
    arrays["targets"][arrays["offsets"][vertex]] = vertex


FAULTS = {
    "a target far away": (put("targets", 5, 2_000_000_000), "vertices"),
    "a target just beyond": (put("targets", -1, len({v for row in ROWS for v in row})), "vertices"),
    "a negative target": (put("targets", 0, -1), "vertices"),
    "offsets that begin late": (put("offsets", 0, 1), "offsets"),
    "offsets that fall": (put("offsets", 7, 0), "offsets"),
    "an offset beyond the edges": (put("offsets", 9, 2**40), "offsets"),
    "offsets that end early": (put("offsets", -1, 3), "offsets"),
    "offsets that end late": (
        lambda a: a["offsets"].__setitem__(-1, a["offsets"][-1] + 1),
        "offsets",
    ),
    "no offsets": (replaced("offsets", lambda a: a[:0]), "offsets"),
    "offsets of 32 bits": (replaced("offsets", lambda a: a.astype(np.int32)), "offsets"),
    "offsets in two dimensions": (replaced("offsets", lambda a: a.reshape(1, -1)), "offsets"),
    "targets of another byte order": (replaced("targets", lambda a: a.astype(">i4")), "byte order"),
    "targets as floats": (replaced("targets", lambda a: a.astype(np.float32)), "targets"),
    "targets out of order": (swapped, "ascend"),
    "a target twice": (lambda a: a["targets"].__setitem__(1, a["targets"][0]), "ascend"),
    "a self-loop": (with_self_loop, "own target"),
    "a weight that is NaN": (put("weights", 3, np.nan), "weights"),
    "an infinite weight": (put("weights", -1, -np.inf), "weights"),
    "a weight of -0.0": (put("weights", 4, -0.0), "weights"),
    "too few weights": (replaced("weights", lambda a: a[:-1]), "weights"),
    "weights as strings": (replaced("weights", lambda a: a.astype("U3")), "weights"),
    "ids that fall": (replaced("ids", lambda a: a[::-1].copy()), "ascend"),
    "an id twice": (put("ids", 1, 0), "ascend"),
    "too few ids": (replaced("ids", lambda a: a[:-1]), "ids"),
    "ids as floats": (replaced("ids", lambda a: a.astype(np.float64)), "ids"),
}
STRING_FAULTS = {
    "strings out of order": pa.array(["b", "a", "c"]),
    "a string twice": pa.array(["a", "a", "c"]),
    "a null": pa.array(["a", None, "c"]),
    "bytes": pa.array([b"a", b"b", b"c"]),
    "no UTF-8": pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.arange(4, dtype=np.int32)), pa.py_buffer(b"a\xffc")]
    ),
    "offsets beyond the text": pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.py_buffer(np.array([0, 50, 2, 3], np.int32)), pa.py_buffer(b"abc")],
    ),
}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_refused(name, verify, stored):
    change, message = FAULTS[name]
    with pytest.raises(InputError, match=f"damaged .*{message}"):
        load_graph(stored(change), verify=verify)


@pytest.mark.parametrize("name", STRING_FAULTS)
def test_faults_of_string_ids_are_refused(name, stored):
    with pytest.raises(InputError, match="damaged"):
        load_graph(
            stored(lambda arrays: arrays.update(ids=STRING_FAULTS[name]), strings=True),
            verify=False,
        )


@pytest.mark.parametrize("name", ["targets", "weights"])
def test_an_undirected_edge_must_be_there_both_ways(name, stored):
    def change(arrays):
        if name == "weights":
            arrays["weights"][11] += 1
            return
        vertex = next(v for v in range(1000) if arrays["offsets"][v + 1] > arrays["offsets"][v])
        at, row = (
            arrays["offsets"][vertex + 1] - 1,
            arrays["targets"][arrays["offsets"][vertex] : arrays["offsets"][vertex + 1]],
        )
        free = next(
            u
            for u in range(arrays["offsets"].size - 2, 0, -1)
            if u not in row and u > row[:-1].max(initial=-1)
        )
        arrays["targets"][at] = free

    with pytest.raises(InputError, match="both ways"):
        load_graph(stored(change, directed=False), verify=False)
    load_graph(stored(lambda _: None, directed=False))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"PK\x05\x06" + bytes(18),
        b"garbage",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': 'O'}  \n",
    ],
)
def test_a_file_that_is_no_array_is_refused(content, tmp_path):
    write_graph(build(ROWS), tmp_path / "graph")
    (tmp_path / "graph" / "targets.npy").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        load_graph(tmp_path / "graph", verify=False)


@given(edge_rows(), st.booleans(), st.sampled_from(["f4", "f8", None]))
def test_every_graph_that_is_built_has_no_fault(rows, directed, kind):
    weights = None if kind is None else (np.arange(len(rows)) % 3 - 0.0).astype(kind)
    graph = build(rows, weights, directed=directed, weight_type="auto")
    assert find_fault(graph.offsets, graph.targets, graph.weights, not directed) == ""
    assert (
        find_fault(
            graph.reverse.offsets, graph.reverse.targets, graph.reverse.weights, not directed
        )
        == ""
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(["offsets", "targets", "weights"]),
    at=st.integers(0, 2**16),
    bit=st.integers(0, 63),
)
@example(name="weights", at=907, bit=29)  # an integer weight beyond int64
def test_a_flipped_bit_is_refused_or_leaves_a_graph_that_can_be_searched(stored, name, at, bit):
    def change(arrays):
        bits = arrays[name].view(np.uint8)
        bits[(at * 8 + bit // 8) % bits.size] ^= 1 << (bit % 8)

    try:
        graph = load_graph(stored(change), verify=False)
    except InputError:
        return
    source = int(graph.ids[0])
    assert bfs(graph, source)["distance"].min() == 0
    if not graph.has_negative_weights:
        assert sssp(graph, source)["distance"].min() == 0


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_json_is_read_to_the_depth_that_the_error_names(opens, closes):
    def nested(depth):
        return (opens * depth + "1" + closes * depth).encode()

    assert read_json(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))
    with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} deep"):
        read_json(nested(MAX_DEPTH + 1))
