"""Named graphs with difficult shapes, and Hypothesis graphs."""

import numpy as np
import pytest
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges, plan_bfs_many, plan_sssp_many
from kepler_traverse.errors import HierarchyError, StrategyError

EDGE_SIZES = (31, 32, 33, 255, 256, 257, 1023, 1024, 1025)


def star(n):
    return [(0, v) for v in range(1, n + 1)]


def path(n):
    return [(v, v + 1) for v in range(n)]


def lattice(rows, columns):
    across = [
        (r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)
    ]
    down = [
        (r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)
    ]
    return across + down


def rmat(scale, edge_factor, seed):
    rng = np.random.default_rng(seed)
    n_edges = edge_factor << scale
    src = np.zeros(n_edges, np.int64)
    dst = np.zeros(n_edges, np.int64)
    for _ in range(scale):
        quadrant = rng.choice(4, n_edges, p=[0.57, 0.19, 0.19, 0.05])
        src, dst = 2 * src + quadrant // 2, 2 * dst + quadrant % 2
    return list(zip(src.tolist(), dst.tolist(), strict=True))


NAMED = {
    "one edge": [(0, 1)],
    "one vertex with a self-loop": [(0, 0)],
    "two components": [(0, 1), (1, 2), (5, 6)],
    "self-loops and parallel edges": [(0, 0), (0, 1), (0, 1), (1, 1), (1, 2), (0, 2), (2, 0)],
    "cycle": [(v, (v + 1) % 100) for v in range(100)],
    "complete": [(u, v) for u in range(40) for v in range(40)],
    "in-star": [(v, 0) for v in range(1, 300)] + [(0, 1)],
    "path": path(1200),
    "lattice": lattice(40, 50),
    "power law": rmat(10, 8, seed=1),
    **{f"star of {n}": star(n) for n in EDGE_SIZES},
    **{
        f"star of {n} behind a path": [(v + n + 1, v + n + 2) for v in range(5)]
        + [(n + 6, 0), *star(n)]
        for n in (32, 1024)
    },
}


def weights_for(rows, seed, kind="integers"):
    rng = np.random.default_rng(seed)
    if kind == "integers":
        return rng.integers(0, 50, len(rows)).tolist()
    return (
        (rng.exponential(1.0, len(rows)) * 10.0 ** rng.integers(-3, 4, len(rows)))
        .astype(np.float32)
        .tolist()
    )


def build(
    rows, weights=None, directed=True, vertices=None, weight_type="auto", id_type=np.int64, **more
):
    """Return a graph on the CPU from edges (u, v), with ``more`` options of ``graph_from_edges``."""
    ends = np.array([row[:2] for row in rows], id_type).reshape(-1, 2)
    if weights is not None:
        weights = np.asarray(weights, None if len(weights) else np.float32)
    return graph_from_edges(
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        weights,
        directed=directed,
        vertices=None if vertices is None else np.asarray(vertices, id_type),
        weight_type=weight_type,
        **more,
    )


def is_refused(graph, strategies, name):
    """Build what the strategy of that name needs. If the graph cannot have it, check the refusal; return True."""
    for row in strategies:
        if not row.is_called(name) or row.device != graph.device:
            continue
        lacks = _lacks(graph, row)
        if lacks:
            with pytest.raises(StrategyError, match=lacks):
                (plan_bfs_many if row.metric == "hops" else plan_sssp_many)(
                    graph, n_sources=2, strategy=name
                )
            return True
    return False


def _lacks(graph, row):
    """Return the text of the refusal if the graph cannot have what a strategy needs, else an empty one."""
    if "acyclic" in row.needs and graph.derived.topological_order is None:
        return "needs a directed graph without a cycle"
    if "hierarchy" in row.needs:
        try:
            graph.hierarchy(row.metric)
        except HierarchyError:
            return "needs a hierarchy"
    return ""


@st.composite
def edge_rows(draw, max_vertices=24, max_rows=80):
    """Edges (u, v) with parallel edges, loops and gaps; at least one edge."""
    n = draw(st.integers(1, max_vertices))
    vertex = st.integers(0, n - 1)
    return draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=max_rows))


@st.composite
def edge_rows_forward(draw, **sizes):
    """Edges (u, v) without a cycle, apart from loops, whose vertices are numbered in any order."""
    rows = draw(edge_rows(**sizes))
    height = draw(st.permutations(range(max(map(max, rows)) + 1)))
    return [(u, v) if height[u] <= height[v] else (v, u) for u, v in rows]


@st.composite
def weighted_rows(draw, elements, **sizes):
    rows = draw(edge_rows(**sizes))
    return rows, draw(st.lists(elements, min_size=len(rows), max_size=len(rows)))


# Zero, equal, tiny (subnormal too), huge, and numbers that others absorb.
awkward_floats = st.sampled_from(
    [0.0, 0.0, 1.0, 1.0, 0.5, 3.0, 2.0**-149, 1e-40, 1e-30, 2.0**-126, 16777216.0, 1e8, 1e20, 0.1]
).map(np.float32)
