"""What ``pipelines.compare`` compares this library with: baselines, their peak memory, and weights
where there are none.

Baselines are called as their users search from many sources: the graph is built once, then one call
per source.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import cuda, plan_bfs, plan_sssp
from kepler_traverse._arrays import FLOAT32_EXACT, UNREACHED, is_hops, namespace
from kepler_traverse.errors import DeviceError, InputError, how_to_install
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import load_graph, save_graph
from kepler_traverse.runtime.scratch import temporary_folder
from kepler_traverse.search.plan import Plan

from .cli.terminal import show
from .worker.planning import require_weights

_N_SOURCES = 4  # of a measurement of memory: all traversals need the same
MAX_WEIGHT = 255  # of those that are hashed

# A traversal by a baseline: from the number of a source to what the other library returns. SciPy
# returns an array of distances per vertex, and cuGraph a pair of arrays: vertices, and the distance
# of each. ``in_our_encoding`` converts both, outside the time that is measured.
Baseline = Callable[[int], object]


def our_plan(graph: Graph, algorithm: str, strategy: str) -> Plan:
    """Return this library's plan of searches from one source at a time.

    It computes predecessors, too, since the baselines do. ``strategy``: name of one, or "auto".
    """
    make_plan = plan_bfs if algorithm == "bfs" else plan_sssp
    return make_plan(graph, strategy=strategy)


def choose_baseline(graph: Graph, algorithm: str) -> tuple[str, dict[str, Baseline]]:
    """Return the name of the baseline for a graph's device, and its traversals, prepared for the
    graph, by the names of their variants.

    Raises InputError (the baseline does not support this graph) or DeviceError (cuGraph is not
    installed).
    """
    if graph.device == "cuda":
        return "cuGraph", _cugraph(graph, algorithm)
    return "SciPy", {"dijkstra": _scipy(graph, algorithm)}


def _scipy(graph: Graph, algorithm: str) -> Baseline:
    """Return the traversal of SciPy, with the graph converted once to the types that SciPy computes
    with.

    Raises InputError: SciPy is not installed, or the graph is too large for it.
    """
    try:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra
    except ImportError:
        raise InputError("comparing on a CPU needs SciPy: pip install scipy") from None

    if max(graph.n_vertices, graph.n_edges) > np.iinfo(np.int32).max:
        raise InputError("SciPy's shortest paths take at most 2^31 - 1 vertices and edges")

    # In the types that SciPy computes with, so that no call converts the graph.
    if algorithm == "bfs":
        weights = np.ones(graph.n_edges)
    else:
        weights = require_weights(graph).astype(np.float64)
    shape = (graph.n_vertices, graph.n_vertices)
    matrix = csr_matrix((weights, graph.targets, graph.offsets.astype(np.int32)), shape=shape)

    def traverse(source: int) -> Any:
        """Return the distances of all vertices from a source: float64, infinite where unreached."""
        # Predecessors are computed, and not used: our plan computes them, too, and both do equal
        # work.
        distances, _ = dijkstra(
            matrix,
            directed=True,
            indices=source,
            unweighted=algorithm == "bfs",
            return_predecessors=True,
        )
        return distances

    return traverse


def _cugraph(graph: Graph, algorithm: str) -> dict[str, Baseline]:
    """Return the traversals of cuGraph by the names of their variants; each returns vertices and
    their distances.

    Raises InputError (the graph is too large) or DeviceError (cuGraph is not installed).
    """
    cp = cuda.cp
    try:
        import pylibcugraph
    except ImportError:
        raise DeviceError(f"comparing on a GPU needs cuGraph: {how_to_install('mg')}") from None
    if graph.n_edges > np.iinfo(np.int32).max:
        raise InputError(
            "cuGraph takes at most 2^31 - 1 stored edges on one GPU; compare on a smaller graph"
        )

    handle = pylibcugraph.ResourceHandle()
    weights = None if algorithm == "bfs" else graph.weights
    their_graph = pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=not graph.directed, is_multigraph=False),
        graph.offsets.astype(cp.int32),
        graph.targets,
        weight_array=weights,
        store_transposed=False,
        renumber=False,
        do_expensive_check=False,
        input_array_format="CSR",
    )

    def sssp(source: int) -> Any:
        """Return vertices and their distances, without a limit or a check of the graph."""
        # Predecessors are computed, and not used, as those of SciPy.
        # The last two arguments: whether to compute predecessors, and to check the graph.
        vertices, distances, _ = pylibcugraph.sssp(handle, their_graph, source, np.inf, True, False)
        return vertices, distances

    def make_bfs(direction_optimizing: bool) -> Baseline:
        """Return a search by hops: one that changes between push and pull if
        ``direction_optimizing``, else one that only pushes.
        """

        def bfs(source: int) -> Any:
            """Return vertices and their hops, without a limit or a check of the graph."""
            start = cp.array([source], graph.targets.dtype)
            # Predecessors are computed, and not used, as those of SciPy. The arguments after the
            # direction: the largest depth (-1: no limit), and the two of ``sssp``.
            distances, _, vertices = pylibcugraph.bfs(
                handle, their_graph, start, direction_optimizing, -1, True, False
            )
            return vertices, distances

        return bfs

    if algorithm == "sssp":
        return {"sssp": sssp}
    variants = {"top-down": make_bfs(False)}
    if not graph.directed:  # cuGraph switches direction on symmetric graphs only
        variants["direction-optimising"] = make_bfs(True)
    return variants


def in_our_encoding(answer: Any, graph: Graph, algorithm: str) -> Any:
    """Return the answer of a ``Baseline`` as this library has distances.

    The result is an array of shape (n_vertices,) on the graph's device. BFS: int32, -1 where
    unreached. SSSP: the float type that the baseline adds in, infinite where unreached.
    """
    if graph.device == "cpu":
        if algorithm == "bfs":
            return np.where(np.isinf(answer), UNREACHED, answer).astype(np.int32)
        return answer
    cp = cuda.cp
    vertices, distances = answer
    # The largest value of its type is cuGraph's for an unreached vertex.
    limits = np.iinfo if distances.dtype.kind == "i" else np.finfo
    largest = limits(distances.dtype).max
    unreached = UNREACHED if algorithm == "bfs" else np.inf
    ours = cp.full(graph.n_vertices, unreached, np.int32 if algorithm == "bfs" else distances.dtype)
    ours[vertices] = cp.where(distances == largest, unreached, distances).astype(ours.dtype)
    return ours


def refuse_rounded(expected: Any, ours: np.dtype) -> None:
    """Raise InputError if one type rounds integers that the other one holds exactly, so that equal
    distances would seem to differ.

    ``expected``: distances of the baseline. ``ours``: the type of this library's distances. Hops
    are exact in both.
    """
    if is_hops(ours):
        return
    # Integers of 64 bits, or wider floats, hold sums that the type of the baseline rounds.
    if ours.kind == "i" or expected.dtype.itemsize < ours.itemsize:
        raise InputError(
            f"distances were found in {ours}, and the reference adds in {expected.dtype}, which rounds such sums; "
            "scale the weights down, or on a GPU add --weight-type float64"
        )
    # float32 holds all integers up to a limit, so no distance may exceed it.
    if expected.dtype == np.float64 and ours == np.float32:
        xp = namespace(expected)
        largest = float(xp.max(expected, where=xp.isfinite(expected), initial=0))
        if largest > FLOAT32_EXACT:
            raise InputError(
                f"distances up to {largest:g} cannot be compared exactly in "
                "float32; add --weight-type float64"
            )


def hashed_weights(src: np.ndarray, dst: np.ndarray, directed: bool) -> np.ndarray:
    """Return weights 1 to 255: ``1 + mix(mix(a) + b) mod 255`` in arithmetic modulo 2^64.

    ``mix`` is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). (a, b) are the ids
    (src, dst) of a directed edge, and (min, max) of the two for an undirected one, so that both
    directions weigh the same.

    ``src, dst``: ids of the edges' ends (integers of shape (n,)); negative ones count as their
    two's complement.

    >>> hashed_weights(np.array([3, 5]), np.array([5, 3]), directed=False).tolist()
    [18, 18]
    """
    a = src
    b = dst
    if not directed:
        a = np.minimum(src, dst)
        b = np.maximum(src, dst)
    # Converted to int64 first, so that uint64 holds the two's complement of a negative id that has
    # a narrower type.
    a = a.astype(np.int64).astype(np.uint64)
    b = b.astype(np.int64).astype(np.uint64)
    hashed = _mix(_mix(a) + b)
    return (hashed % np.uint64(MAX_WEIGHT)).astype(np.int32) + 1


def _mix(x: np.ndarray) -> np.ndarray:
    """Return an array of uint64 with the finaliser of splitmix64 of each value (uint64), which
    scrambles its bits.
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def peak_memory(graph: Graph, algorithm: str, strategy: str, sources: Any) -> dict[str, int]:
    """Return the peak resident bytes of a process that searches with this library ("ours"), and of
    one that searches with the baseline ("peer").

    Both map the same stored graph, and search from the first few of ``sources`` (vertex numbers).
    Processes of their own are measured, since this one has had other arrays.
    """
    first_sources = ",".join(map(str, sources[:_N_SOURCES]))
    peaks = {}
    with temporary_folder() as folder:
        # Each process runs this module as a program, which calls ``_traverse``.
        save_graph(graph, Path(folder) / "graph")
        for side in ("ours", "peer"):
            command = [
                sys.executable,
                "-m",
                __name__,
                f"{folder}/graph",
                side,
                algorithm,
                strategy,
                first_sources,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"measuring the memory of {side} failed: {done.stderr.strip()}")
            peaks[side] = json.loads(done.stdout)
    return peaks


def _traverse(folder: str, side: str, algorithm: str, strategy: str, sources: str) -> int:
    """Search with one library from some sources; return the peak of this process's memory in bytes.

    It is the program that ``peak_memory`` runs. ``folder``: of the stored graph. ``side``: "ours"
    or "peer" (the baseline). ``sources``: vertex numbers, separated by commas.
    """
    graph = load_graph(folder, verify=False)
    traverse: Callable[[int], object]
    if side == "ours":
        traverse = our_plan(graph, algorithm, strategy).run
    else:
        _, variants = choose_baseline(graph, algorithm)
        (traverse,) = variants.values()  # SciPy has one
    for source in sources.split(","):
        traverse(int(source))
    # VmHWM, in KiB, and not ``ru_maxrss``, which includes the pages of a large parent process.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    show(str(_traverse(*sys.argv[1:])))
