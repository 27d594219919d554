"""``to_torch``: tensors that share the memory of arrays of results."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from kepler_traverse import bfs, bfs_many, graph_from_edges, plan_sssp, sssp_many
from kepler_traverse.errors import InputError
from kepler_traverse.tensors import to_torch
from tests.support.graphs import NAMED, build, weights_for

torch = pytest.importorskip("torch")


def test_a_matrix_and_its_tensor_are_one_memory():
    matrix = bfs_many(graph_from_edges([0, 1], [1, 2]), [0, 1], result="matrix")
    tensor = to_torch(matrix)
    assert tensor.data_ptr() == matrix.ctypes.data
    assert tensor.dtype == torch.int8
    assert tensor.tolist() == [[0, 1, 2], [-1, 0, 1]]
    matrix[1, 0] = 7
    tensor[0, 2] = 9
    assert matrix.tolist() == tensor.tolist() == [[0, 1, 9], [7, 0, 1]]


def test_a_tensor_keeps_the_memory_of_its_matrix():
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1, "floats"))
    ids = graph.ids.tolist()
    expected = sssp_many(graph, ids[:50], result="matrix").copy()
    tensor = to_torch(sssp_many(graph, ids[:50], result="matrix"))
    gc.collect()
    other = sssp_many(graph, ids[50:100], result="matrix")
    assert not np.shares_memory(other, tensor.numpy())
    assert np.array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize(
    ("weights", "options", "dtype"),
    [
        (None, {"result": "matrix"}, "int8"),
        (None, {"result": "reachable"}, "uint8"),
        ("float32", {"result": "matrix"}, "float32"),
        ("float64", {"result": "matrix"}, "float64"),
        ("float32", {"result": "matrix", "targets": [2, 0]}, "float32"),
    ],
)
def test_shapes_and_types_are_those_of_the_array(weights, options, dtype):
    graph = graph_from_edges(
        [0, 1], [1, 2], None if weights is None else np.array([0.1, 0.2], weights)
    )
    array = (bfs_many if weights is None else sssp_many)(graph, [0, 2], **options)
    tensor = to_torch(array)
    assert tensor.dtype == getattr(torch, dtype)
    assert tuple(tensor.shape) == array.shape
    assert np.array_equal(tensor.numpy(), array)


def test_hops_beyond_int8_and_sums_beyond_floats_are_tensors():
    assert to_torch(bfs_many(build(NAMED["path"]), [0], result="matrix")).dtype == torch.int16
    graph = graph_from_edges([0, 1], [1, 2], [2**60, 1])
    assert to_torch(sssp_many(graph, [0], result="matrix")).tolist() == [[0, 2**60, 2**60 + 1]]


def test_arrays_of_a_plan_are_shared_until_they_are_copied():
    plan = plan_sssp(graph_from_edges([0, 1], [1, 2], [1.5, 2.0]))
    found = plan.run(0)
    assert to_torch(found.distance).data_ptr() == found.distance.ctypes.data
    kept = to_torch(found.copy().distance)
    plan.run(1)
    assert kept.tolist() == [0, 1.5, 3.5]


def test_tensors_refuse_what_is_no_writable_array():
    graph = graph_from_edges([0, 1], [1, 2])
    matrix = bfs_many(graph, [0], result="matrix")
    matrix.flags.writeable = False
    with pytest.raises(InputError, match=r"read-only.*array\.copy\(\)"):
        to_torch(matrix)
    assert to_torch(matrix.copy()).tolist() == [[0, 1, 2]]
    for wrong in (bfs(graph, 0), [1, 2], None, "matrix"):
        with pytest.raises(InputError, match="array must be one of NumPy or CuPy"):
            to_torch(wrong)
    with pytest.raises(InputError, match="cannot be a torch tensor"):
        to_torch(np.array(["a"]))


@pytest.mark.gpu
def test_a_matrix_on_a_gpu_and_its_tensor_are_one_memory():
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1, "floats"))
    for traverse_many in (bfs_many, sssp_many):
        sources = graph.ids.tolist()[:50]
        matrix = traverse_many(graph.to("cuda"), sources, result="matrix")
        tensor = to_torch(matrix)
        assert tensor.is_cuda
        assert tensor.data_ptr() == matrix.data.ptr
        tensor[0, 0] = 3
        assert int(matrix[0, 0]) == 3
        tensor[0, 0] = 0
        assert np.array_equal(tensor.cpu().numpy(), traverse_many(graph, sources, result="matrix"))
