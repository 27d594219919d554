"""Matrices as ``scipy.sparse.csgraph`` reads them: which entries are edges, and with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from .._arrays import FLOAT64_EXACT, index_dtype
from .._uninterrupted import load
from ..errors import InputError
from ..graph import Graph
from ..graph.build import graph_from_numbers

_OWN_FORMATS = ("csr", "csc", "coo")  # whose values need not be float64


def as_csr(csgraph: Any, directed: bool) -> Any:
    """Return a CSR matrix of SciPy whose stored entries are the edges that SciPy sees in
    ``csgraph``, a matrix or array of the user.

    Stored entries of a sparse matrix are edges, zeros included. Zero, NaN and infinite entries of a
    dense array and masked entries of a masked array are none. Duplicates of a COO matrix are added
    up, those of a CSR matrix are parallel edges. Weights keep their type where float64 holds them;
    SciPy would copy them. ``directed`` is SciPy's argument of that name: with False, it reads a CSC
    matrix as its transpose.

    Raises InputError: the matrix is not square, or nothing that SciPy can read.
    """
    load("scipy.sparse.csgraph")
    from scipy import sparse
    from scipy.sparse import csgraph as scipy_csgraph

    try:
        if isinstance(csgraph, np.ma.MaskedArray):
            # SciPy needs a mask of the array's shape
            masked = np.ma.array(csgraph.data, mask=np.ma.getmaskarray(csgraph))
            matrix = scipy_csgraph.csgraph_from_masked(masked)
        elif sparse.issparse(csgraph) or hasattr(csgraph, "to_scipy_sparse"):
            if not sparse.issparse(csgraph):  # of the package sparse, converted as SciPy does
                # ``accept_fv``: what may stand at the places that are not stored, as "no edge"
                csgraph = csgraph.to_scipy_sparse(accept_fv=[0, np.inf, np.nan]).tocsc()
            arguments.sparse("csgraph", csgraph)
            if not directed and csgraph.format == "csc":
                csgraph = csgraph.T  # as SciPy does; the order of the neighbors depends on it
            matrix = csgraph.tocsr()
            if csgraph.format not in _OWN_FORMATS or matrix.dtype.kind not in "biuf":
                matrix = matrix.astype(np.float64, copy=False)
                # SciPy converts a damaged matrix to a damaged one
                arguments.sparse("csgraph", matrix)
        else:
            matrix = scipy_csgraph.csgraph_from_dense(csgraph, null_value=0)
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise InputError(f"csgraph cannot be read as a graph: {error}") from error
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"csgraph must be a square matrix, not of shape {matrix.shape}")
    return matrix


def has_negative_weights(matrix: Any) -> bool:
    """Return whether a stored entry of a sparse matrix is below zero. SciPy's ``dijkstra`` warns of
    these, also where it does not use the weights.
    """
    return matrix.data.dtype.kind in "if" and bool((matrix.data < 0).any())


def as_graph(matrix: Any, *, directed: bool, weighted: bool) -> Graph:
    """Return the graph of a CSR matrix: entry (i, j) is an edge from vertex i to vertex j. The ids
    are the vertex numbers.

    An infinite or NaN weight is no way to anywhere, so its edge is left out. Weights become
    float64, in which SciPy adds them, or stay integers where no sum of them can round in float64.
    Without ``weighted`` the graph has no weights. Without ``directed`` each entry is an edge in
    both directions.
    """
    # the ends of each stored entry: its row, and its column
    n = matrix.shape[0]
    kind = index_dtype(n)
    src = np.repeat(np.arange(n, dtype=kind), np.diff(matrix.indptr))
    dst = matrix.indices.astype(kind, copy=False)
    weight = None
    if weighted:
        weight = _convert_weights(matrix.data, n)
    if weight is not None and weight.dtype.kind == "f":
        is_edge = np.isfinite(weight)
        if not is_edge.all():
            src = src[is_edge]
            dst = dst[is_edge]
            weight = weight[is_edge]
    return graph_from_numbers(src, dst, weight, ids=np.arange(n, dtype=kind), directed=directed)


def _convert_weights(data: np.ndarray, n_vertices: int) -> np.ndarray:
    """Return weights as float64, or as integers if no sum of them along a path can round in
    float64.

    ``data`` are the entries of a matrix with ``n_vertices`` rows.
    """
    # Entries of True are edges of weight 1.
    if data.dtype.kind == "b":
        return data.astype(np.int8)
    # A path has fewer edges than there are vertices, which bounds its sum.
    if data.dtype.kind in "iu" and data.size:
        largest = max(int(data.max()), -int(data.min()))
        if largest * n_vertices < FLOAT64_EXACT:
            return data
    with np.errstate(over="ignore"):
        weight = data.astype(np.float64, copy=False)
    if not data.size or data.dtype.kind in "iu":
        return weight
    # Integers in a float type: their sums are the same as integers, and may then be computed in
    # float32.
    if float(np.abs(weight).max()) * n_vertices < FLOAT64_EXACT:
        integers = weight.astype(np.int64)
        if np.array_equal(integers, weight):
            return integers
    return weight


def check_indices(indices: Any, n_vertices: int) -> np.ndarray:
    """Return the vertex numbers that a user gives as ``indices``, an int64 array of the same shape.
    Negative ones count from the end of the ``n_vertices`` vertices, as in Python.

    Raises InputError: they are no integers, or out of range.
    """
    try:
        array = np.asarray(indices)
    except MemoryError:
        raise
    except Exception as error:  # rows that differ in length, or what a class of the caller raises
        raise InputError(f"indices must be vertex numbers: {error}") from None
    if not array.size:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind == "O":
        array = np.array(arguments.plain_list(array.ravel())).reshape(array.shape)
    if array.dtype.kind not in "iuf" or not np.array_equal(np.trunc(array), array):
        raise InputError(
            f"indices must be whole numbers, not {arguments.describe(array.ravel().tolist()[0])}"
        )
    wrong = (array < -n_vertices) | (array >= n_vertices)
    if wrong.any():
        raise InputError(
            f"indices holds {array[wrong][0]}, and the vertices are 0 to {n_vertices - 1}"
        )
    numbers = array.astype(np.int64)
    return np.where(numbers < 0, numbers + n_vertices, numbers)
