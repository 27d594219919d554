"""Seeded faults: correct results are made wrong, and the certificates must reject them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kepler_traverse import cuda, graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse._arrays import namespace
from kepler_traverse.certificate import certify, certify_many

KINDS = ("hops", "integers", "zeros", "floats", "doubles", "negative")
NOT_HERE = "this fault cannot be made in this answer"


def random_graph(rng, kind: str):
    """A small graph, directed or not, with parallel edges and loops; kinds are those whose faults differ."""
    n = int(rng.integers(8, 60))
    m = int(rng.integers(20, 200))
    src, dst = rng.integers(0, n, (2, m))
    directed = bool(rng.integers(0, 4)) or kind == "negative"
    if kind == "hops":
        return graph_from_edges(src, dst, directed=directed)
    heights = rng.integers(0, 10, n)  # of a potential, which makes weights negative but no cycle
    weights = {
        "integers": rng.integers(1, 20, m),
        "zeros": rng.integers(0, 3, m),
        "floats": rng.exponential(1, m).astype(np.float32),
        "doubles": rng.exponential(1, m),
        "negative": np.where(src == dst, 1, rng.integers(0, 6, m) + heights[src] - heights[dst]),
    }[kind]
    return graph_from_edges(src, dst, weights, directed=directed)


def random_case(seed: int, kind: str):
    """A graph, a correct result that reaches much of it, and a random generator for the fault."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    graph = random_graph(rng, kind)
    plan = plan_bfs(graph) if kind == "hops" else plan_sssp(graph)
    some = rng.choice(graph.n_vertices, min(8, graph.n_vertices), replace=False).tolist()
    best = max(some, key=lambda s: int(plan.run(s).reached.sum()))
    return graph, plan.run(best).copy(), rng


def reached_but_source(result) -> list[int]:
    return [v for v in np.flatnonzero(result.reached).tolist() if v != result.source]


def is_usable(result) -> bool:
    """Return whether the result is large enough for every fault."""
    others = reached_but_source(result)
    return len(others) > 1 and result.distance[others].max() > 0


def explains(graph, result, u, v) -> bool:
    row = slice(graph.offsets[u], graph.offsets[u + 1])
    at = np.flatnonzero(graph.targets[row] == v)
    if not at.size or not result.reached[u]:
        return False
    step = 1 if graph.weights is None else graph.weights[row][at[0]]
    return result.distance[v] == result.distance[u] + step


def forget(result, vertices) -> None:
    result.distance[vertices] = -1 if result.algorithm == "bfs" else np.inf
    result.predecessor[vertices] = -1


# A fault changes a correct result in place, or raises if it cannot be planted in it. Some return the wrong result.


def one_step_up(result, graph, rng):  # noqa: ARG001
    """The smallest change of one distance."""
    v = rng.choice(reached_but_source(result))
    hops = result.algorithm == "bfs"
    result.distance[v] = (
        result.distance[v] + 1 if hops else np.nextafter(result.distance[v], np.float32(np.inf))
    )


def one_step_down(result, graph, rng):  # noqa: ARG001
    v = rng.choice([v for v in reached_but_source(result) if result.distance[v] != 0] or [-1])
    if v < 0:
        return NOT_HERE
    hops = result.algorithm == "bfs"
    result.distance[v] = (
        result.distance[v] - 1 if hops else np.nextafter(result.distance[v], np.float32(-np.inf))
    )
    return None


def bit_flipped(result, graph, rng):  # noqa: ARG001
    """Any bit of one distance."""
    v = rng.choice(reached_but_source(result))
    bits = result.distance.view(f"u{result.distance.itemsize}")
    bits[v] ^= bits.dtype.type(1 << int(rng.integers(8 * bits.itemsize)))


def subtree_too_far(result, graph, rng):  # noqa: ARG001
    top = rng.choice(reached_but_source(result))
    below = {top}
    while True:
        more = {
            v for v in reached_but_source(result) if int(result.predecessor[v]) in below
        } | below
        if more == below:
            break
        below = more
    result.distance[list(below)] += 1


def all_too_far(result, graph, rng):  # noqa: ARG001
    result.distance[reached_but_source(result)] += 1


def lost_vertex(result, graph, rng):  # noqa: ARG001
    forget(result, rng.choice(reached_but_source(result)))


def lost_frontier(result, graph, rng):  # noqa: ARG001
    middle = rng.choice(result.distance[reached_but_source(result)])
    forget(result, [v for v in reached_but_source(result) if result.distance[v] >= middle])


def lost_last_level(result, graph, rng):  # noqa: ARG001
    last = result.distance[reached_but_source(result)].max()
    forget(result, [v for v in reached_but_source(result) if result.distance[v] == last])


def only_the_source(result, graph, rng):  # noqa: ARG001
    forget(result, reached_but_source(result))


def phantom_vertex(result, graph, rng):  # noqa: ARG001
    outside = np.flatnonzero(~result.reached)
    if not outside.size:
        return NOT_HERE
    v = rng.choice(outside)
    result.distance[v], result.predecessor[v] = (
        result.distance[result.reached].max() + 1,
        result.source,
    )
    return None


def two_vertices_swapped(result, graph, rng):  # noqa: ARG001
    u, v = rng.choice(reached_but_source(result), 2, replace=False)
    if result.distance[u] == result.distance[v]:
        return NOT_HERE
    for array in (result.distance, result.predecessor):
        array[u], array[v] = array[v], array[u]
    return None


def distance_not_a_number(result, graph, rng):  # noqa: ARG001
    if result.algorithm == "bfs":
        return NOT_HERE
    result.distance[rng.choice(reached_but_source(result))] = np.nan
    return None


def distance_below_zero(result, graph, rng):  # noqa: ARG001
    result.distance[rng.choice(reached_but_source(result))] = -1000


def source_not_at_zero(result, graph, rng):  # noqa: ARG001
    result.distance[result.source] = 1


def another_sources_row(result, graph, rng):  # noqa: ARG001
    return replace(result, source=int(rng.choice(reached_but_source(result))))


def cycle_of_zero_weights(result, graph, rng):  # noqa: ARG001
    """Two vertices at distance d + 5, joined by edges of weight 0, that explain each other at a smaller distance."""
    if result.algorithm == "bfs":
        return NOT_HERE
    n = graph.n_vertices
    src = np.repeat(np.arange(n), np.diff(graph.offsets))
    weights = graph.weights.dtype.type([5, 0, 0])
    ends = np.array([[result.source, n], [n, n + 1], [n + 1, n]])
    wider = graph_from_edges(
        np.append(src, ends[:, 0]), np.append(graph.targets, ends[:, 1]), np.append(graph.weights, weights),
        vertices=np.arange(n + 2),
    )  # fmt: skip
    right = plan_sssp(wider).run(result.source).copy()
    right.distance[n:] -= 2
    right.predecessor[n:] = [n + 1, n]
    return wider, right


def predecessor_that_is_no_neighbor(result, graph, rng):
    v = rng.choice(reached_but_source(result))
    strangers = [u for u in range(graph.n_vertices) if u != v and not explains(graph, result, u, v)]
    result.predecessor[v] = rng.choice(strangers)


def predecessor_lost(result, graph, rng):  # noqa: ARG001
    result.predecessor[rng.choice(reached_but_source(result))] = -1


def predecessor_out_of_range(result, graph, rng):
    result.predecessor[rng.choice(reached_but_source(result))] = graph.n_vertices


def second_root(result, graph, rng):  # noqa: ARG001
    v = rng.choice(reached_but_source(result))
    result.distance[v], result.predecessor[v] = 0, v


DISTANCE_FAULTS = (
    one_step_up,
    one_step_down,
    bit_flipped,
    subtree_too_far,
    all_too_far,
    lost_vertex,
    lost_frontier,
    lost_last_level,
    only_the_source,
    phantom_vertex,
    two_vertices_swapped,
    distance_not_a_number,
    distance_below_zero,
    source_not_at_zero,
    another_sources_row,
    cycle_of_zero_weights,
)
PREDECESSOR_FAULTS = (
    predecessor_that_is_no_neighbor,
    predecessor_lost,
    predecessor_out_of_range,
    second_root,
)
FAULTS = DISTANCE_FAULTS + PREDECESSOR_FAULTS


def with_fault(fault, seed: int, kind: str):
    """Return a graph, a result with one fault, and the right distances; None if the fault cannot be planted."""
    graph, result, rng = random_case(seed, kind)
    if not is_usable(result):
        return None
    outcome = fault(result, graph, rng)
    if outcome is NOT_HERE:
        return None
    if isinstance(outcome, tuple):
        graph, result = outcome
    elif outcome is not None:
        result = outcome
    plan = plan_bfs if result.algorithm == "bfs" else plan_sssp
    return graph, result, plan(graph, predecessors=False).run(result.source).distance.copy()


def is_noticed(graph, result, right, device: str = "cpu") -> dict[str, bool]:
    """Return per certificate of a device whether it rejects; that of distances only if these are wrong."""
    is_wrong = result.distance.tobytes() != right.tobytes()
    if device == "cuda":
        move = cuda.cp.asarray
        graph = graph.to(device)
        result = replace(
            result, distance=move(result.distance), predecessor=move(result.predecessor)
        )
    noticed = {"certify": not certify(graph, result).valid}
    if is_wrong:
        many = certify_many(graph, np.array([result.source]), result.distance[None])
        noticed["certify_many"] = not many.valid
    return noticed


def study_faults(cases: int, device: str = "cpu") -> dict[str, dict[str, list[int]]]:
    """Return per fault and certificate of a device how many were planted, on the CPU, and how many rejected."""
    outcome = {}
    for fault in FAULTS:
        counts = outcome[fault.__name__] = {"certify": [0, 0], "certify_many": [0, 0]}
        for kind in KINDS:
            for seed in range(cases):
                made = with_fault(fault, seed, kind)
                for name, noticed in (is_noticed(*made, device) if made else {}).items():
                    counts[name][0] += 1
                    counts[name][1] += noticed
    return outcome


def count_false_alarms(
    answers: int, first_seed: int = 1_000_000, device: str = "cpu"
) -> tuple[int, int]:
    """Certify results of all kinds, with and without a limit; returns how many, and how many were rejected."""
    done = alarms = 0
    seed = first_seed
    while done < answers:
        rng = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        graph = random_graph(rng, kind).to(device)
        limit = None if rng.integers(2) or kind == "negative" else int(rng.integers(0, 12))
        plan = (
            plan_bfs(graph, max_depth=limit) if kind == "hops" else plan_sssp(graph, cutoff=limit)
        )
        sources = rng.choice(graph.n_vertices, min(5, graph.n_vertices), replace=False)
        rows = []
        for source in sources.tolist():
            result = plan.run(source)
            alarms += not certify(graph, result).valid
            rows.append(result.distance.copy())
        done += len(rows)
        alarms += not certify_many(graph, sources, namespace(rows[0]).stack(rows), limit).valid
        seed += 1
    return done, alarms
