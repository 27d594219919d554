"""Stored labels are loaded unchanged with their graph, or refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from kepler_traverse import load_graph, save_graph
from kepler_traverse.errors import InputError
from kepler_traverse.hub_labels.stored import LABEL_FOLDERS, save_labels
from tests.support.graphs import build, lattice, weights_for

ROWS = lattice(12, 12)
FOLDER = LABEL_FOLDERS["weights"]


def stored(folder, directed=False, seed=1):
    graph = build(ROWS, weights_for(ROWS, seed), directed)
    graph.labels()
    save_graph(graph, folder)
    return graph


@pytest.mark.parametrize("directed", [True, False])
def test_labels_survive_the_disk(directed, tmp_path):
    graph = build(ROWS, weights_for(ROWS, 1), directed)
    graph.labels()
    graph.labels("hops")
    save_graph(graph, tmp_path / "graph")
    save_graph(graph, tmp_path / "graph")  # replaces a stored graph with labels
    loaded = load_graph(tmp_path / "graph")
    for metric in ("weights", "hops"):
        before, after = graph.labels(metric), loaded.derived.known_labels(metric)
        assert after.is_symmetric == (not directed)
        assert np.array_equal(before.rank, after.rank)
        assert before.unit == after.unit
        for direction, lists in before.directions.items():
            for one, other in zip(lists, after.directions[direction], strict=True):
                assert one.dtype == other.dtype
                assert np.array_equal(one, other)


def test_a_flipped_bit_of_labels_is_found(tmp_path):
    stored(tmp_path / "graph")
    path = tmp_path / "graph" / FOLDER / "outward_distances.npy"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"outward_distances\.npy differs from its checksum"):
        load_graph(tmp_path / "graph", verify=False)


def test_the_labels_of_another_graph_are_refused(tmp_path):
    stored(tmp_path / "graph")
    other = stored(tmp_path / "other", seed=2)
    shutil.rmtree(tmp_path / "graph" / FOLDER)
    save_labels(other.labels(), tmp_path / "graph", other.fingerprint)
    with pytest.raises(InputError, match="its labels are those of another graph"):
        load_graph(tmp_path / "graph")


def hub_beyond(lists):
    lists.hubs[-1] += 1


def negative_hub(lists):
    lists.hubs[lists.offsets[-2]] = -1


def not_ascending(lists):
    first = lists.offsets[-2]
    lists.hubs[first], lists.hubs[first + 1] = lists.hubs[first + 1], lists.hubs[first]


def negative_distance(lists):
    lists.distances[lists.offsets[-2]] = -1


def empty_label(lists):
    lists.offsets[1] = 0


def too_long(lists):
    lists.distances[lists.offsets[-2]] = 2**30 - 1


@pytest.mark.parametrize(
    "fault", [hub_beyond, negative_hub, not_ascending, negative_distance, empty_label, too_long]
)
def test_arrays_that_form_no_labels_are_refused_whatever_their_checksum(fault, tmp_path):
    graph = stored(tmp_path / "graph")
    fault(graph.labels().outward)
    shutil.rmtree(tmp_path / "graph" / FOLDER)
    save_labels(graph.labels(), tmp_path / "graph", graph.fingerprint)
    with pytest.raises(InputError, match=r"its labels are none|sums of its labels are too large"):
        load_graph(tmp_path / "graph")
