"""A stored graph is loaded unchanged, or refused."""

import json

import numpy as np
import pyarrow as pa
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse.errors import InputError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.graph.storage import load_graph, stored_origin, write_graph
from kepler_traverse.hierarchy.stored import FOLDER, FOLDERS
from tests.support.graphs import lattice


def some_graphs():
    src, dst = np.array([-5, 2**40, 7, 7, 1]), np.array([7, 1, 2**40, 1, -5])
    weight = np.array([3, 1, 4, 1, 5])
    strings = pa.array(["a", "b", "c", "d", "é"])
    ends = np.array([0, 1, 4], np.int32), np.array([1, 2, 0], np.int32)
    return {
        "integer ids": graph_from_edges(src, dst),
        "weights": graph_from_edges(src, dst, weight.astype(np.float64)),
        "undirected": graph_from_edges(src, dst, weight, directed=False),
        "string ids": graph_from_numbers(*ends, ids=strings),
        "no edges": graph_from_edges([], [], vertices=np.array([4, 9])),
        "no vertices": graph_from_edges([], []),
        "integer weights and a negative loop": graph_from_edges(
            [1, 2, 2], [2, 2, 3], [2**24, -5, 1]
        ),
    }


GRAPHS = some_graphs()


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_a_graph_survives_the_disk(name, tmp_path):
    graph = GRAPHS[name]
    write_graph(graph, tmp_path / "graph")
    loaded = load_graph(tmp_path / "graph")
    assert loaded.directed == graph.directed
    assert loaded.report == graph.report
    assert loaded.fingerprint == graph.fingerprint
    assert (loaded.integer_weights, loaded.negative_loops) == (
        graph.integer_weights,
        graph.negative_loops,
    )
    for attribute in ("offsets", "targets", "weights"):
        before, after = getattr(graph, attribute), getattr(loaded, attribute)
        assert (before is None) == (after is None)
        if before is not None:
            assert type(after) is np.ndarray
            assert after.dtype == before.dtype
            np.testing.assert_array_equal(after, before)
    assert list(loaded.ids) == list(graph.ids)
    assert type(loaded.ids) is type(graph.ids)


def test_writes_to_a_loaded_graph_are_private_to_the_process(tmp_path):
    write_graph(GRAPHS["integer ids"], tmp_path / "graph")
    load_graph(tmp_path / "graph", verify=False).targets[:] = 0
    load_graph(tmp_path / "graph")


def test_saving_replaces_what_was_there(tmp_path):
    write_graph(GRAPHS["weights"], tmp_path / "graph", origin="first")
    write_graph(GRAPHS["integer ids"], tmp_path / "graph", origin="second")
    assert stored_origin(tmp_path / "graph") == "second"
    assert load_graph(tmp_path / "graph").weights is None
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_folder_without_a_graph_is_refused(tmp_path):
    assert stored_origin(tmp_path / "nothing") == ""
    with pytest.raises(InputError, match="no stored graph"):
        load_graph(tmp_path / "nothing", verify=False)


def test_every_byte_of_a_stored_graph_counts(tmp_path):
    rng, folder = np.random.default_rng(1), tmp_path / "graph"
    rows = np.array(lattice(6, 6))[:, :2]
    weights = rng.integers(1, 9, len(rows))
    graph = graph_from_edges(
        [*rows[:, 0], 1], [*rows[:, 1], 1], [*weights, 4], directed=False, edge_ids=True
    )
    graph.hierarchy()
    graph.hierarchy("hops")
    write_graph(graph, folder, "origin")
    load_graph(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {"edge_rows.npy", "edges_of_rows.npy", "ids.npy", "meta.json", "order.npy"} <= {
        path.name for path in files
    }
    for path in files:
        data = path.read_bytes()
        # the magic, the padding, the end
        places = {0, 60, 126, 127, len(data) - 1, *rng.integers(0, len(data), 4)}
        damages = [
            data[:at] + bytes([data[at] ^ 1 << rng.integers(8)]) + data[at + 1 :]
            for at in places
            if at < len(data)
        ]
        for damaged in (*damages, data[:-1], data + b"\n", b""):
            path.write_bytes(damaged)
            with pytest.raises(
                InputError, match=r"damaged|this version reads format|no stored graph"
            ):
                load_graph(folder)
        path.unlink()
        # then there is none
        if path != folder / FOLDER / "meta.json" and path != folder / FOLDERS["hops"] / "meta.json":
            with pytest.raises(InputError, match=r"damaged|no stored graph"):
                load_graph(folder)
        path.write_bytes(data)


def test_ids_in_arrow_count_too_and_so_does_the_version(tmp_path):
    folder = tmp_path / "graph"
    write_graph(GRAPHS["string ids"], folder)
    data = (folder / "ids.arrow").read_bytes()
    for at in range(0, len(data), 16):
        (folder / "ids.arrow").write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
        with pytest.raises(InputError, match=r"damaged \(ids.arrow differs from its checksum"):
            load_graph(folder)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"format": 0}))
    with pytest.raises(InputError, match="this version reads format"):
        load_graph(folder, verify=False)
