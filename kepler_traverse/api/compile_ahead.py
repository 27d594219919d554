"""Compile the GPU kernels of a run in threads while its edge list is read."""

from __future__ import annotations

import numpy as np

from .. import arguments, cuda
from ..bfs import persistent
from ..certificate import batch_gpu
from ..cuda import csr_build, edge_weights, exact, graph_statistics, vertex_ids
from ..cuda.compiler import Compilation, CompileTimes, Request, compile_times, start_compiling
from ..kinds.result_kinds import RESULT_KINDS
from ..search.algorithms import ALGORITHMS


def compile_ahead(
    algorithm: str,
    *,
    result: str = "distances",
    directed: bool = True,
    weighted: bool | None = None,
    weight_type: str = "float32",
    certify: bool = True,
) -> Compilation:
    """Start to compile the kernels that a run from many sources needs on the current GPU, and
    return at once.

    These are the kernels that are known before the graph is: those that build and survey it,
    certify, and make results. A plan then compiles the kernels of its strategy while the survey
    runs. With kernels in CuPy's cache all this takes milliseconds.

    Parameters
    ----------
    algorithm : {"bfs", "sssp"}
    result : str
        As for ``bfs_many`` and ``sssp_many``.
    directed : bool
        As for ``read_graph``.
    weighted : bool, optional
        Whether the edge list has weights; by default if the algorithm needs them.
    weight_type : {"float32", "float64"}
        The type of the weights, where that is known. With other weights some kernels are compiled
        when they are needed.
    certify : bool
        Whether results are certified.

    Returns
    -------
    Compilation
        ``wait()`` returns when all are compiled. Waiting is not necessary: a kernel that is needed
        earlier is waited for.

    Raises
    ------
    DeviceError
        There is no GPU to compile for, or others can write to the cache of kernels.
    InputError
        An argument has a wrong value.

    Examples
    --------
    >>> from kepler_traverse.api.compile_ahead import compile_ahead
    >>> ahead = compile_ahead("bfs", directed=False)  # doctest: +SKIP
    >>> graph = read_graph("roads.parquet", directed=False).to("cuda")  # doctest: +SKIP
    """
    algorithm = arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))
    kind = RESULT_KINDS[arguments.choice("result", result, tuple(RESULT_KINDS))]
    arguments.flag("directed", directed)
    arguments.flag("certify", certify)
    weights = np.dtype(arguments.choice("weight_type", weight_type, ("float32", "float64")))
    cuda.require()
    counts_hops = ALGORITHMS[algorithm].counts_hops
    has_weights = not counts_hops
    if weighted is not None:
        has_weights = arguments.flag("weighted", weighted)

    # Building the graph and surveying it: a survey measures its degrees and its depth by a BFS, for
    # the choice of a strategy. A file is compiled as a whole for each set of types, so its first
    # kernel, ``ENTRIES[0]``, stands for all. Types are those of vertex numbers and of weights;
    # kernels that read no weights are compiled with float32.
    weight_t = weights if has_weights else np.dtype(np.float32)
    requests = [
        Request(module.ENTRIES[0], np.int32, weight_t)
        for module in (csr_build, vertex_ids, graph_statistics)
    ]
    requests.append(Request(graph_statistics.ENTRIES[0]))  # with the types for no weights
    if has_weights:
        requests.append(Request(edge_weights.ENTRIES[0], np.int32, weight_t))
    requests += persistent.likely_kernels(directed, predecessors=False)  # of the survey

    # Certifying, and results. ``exact`` finds out whether rounding may have changed a distance;
    # hops are never rounded.
    if not counts_hops:
        requests.append(Request(exact.ENTRIES[0], np.int32, weights))
    if certify:
        requests += batch_gpu.likely_kernels(counts_hops, weights)
    return start_compiling(requests + kind.likely_kernels(counts_hops, weights))


__all__ = ["Compilation", "CompileTimes", "compile_ahead", "compile_times"]
