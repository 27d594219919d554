"""Seeded faults: correct results are made wrong, and the certificates must reject them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kepler_traverse import cuda, graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse._arrays import namespace
from kepler_traverse.certificate import certify, certify_many

KINDS = ("hops", "integers", "zeros", "floats", "doubles", "negative")
INFINITY = np.float32(np.inf)


class NotHere(Exception):
    """A fault cannot be made in a result."""


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


class Case:
    """A graph, a correct result that reaches much of it, and a random generator for the fault."""

    def __init__(self, seed: int, kind: str):
        self.rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.graph = random_graph(self.rng, kind)
        self.is_bfs = kind == "hops"
        self.plan = {True: plan_bfs, False: plan_sssp}[self.is_bfs]
        plan = self.plan(self.graph)
        n = self.graph.n_vertices
        some = self.rng.choice(n, min(8, n), replace=False).tolist()
        best = max(some, key=lambda s: int(plan.run(s).reached.sum()))
        self.result = plan.run(best).copy()

    @property
    def distance(self):
        return self.result.distance

    @property
    def predecessor(self):
        return self.result.predecessor

    @property
    def others(self) -> list[int]:
        """The vertices that are reached, but the source."""
        reached = np.flatnonzero(self.result.reached).tolist()
        return [v for v in reached if v != self.result.source]

    def one(self):
        """Return one of the others at random."""
        return self.rng.choice(self.others)

    def need(self, condition: bool) -> None:
        if not condition:
            raise NotHere

    def step(self, v: int, way: int) -> None:
        """Change a distance by as little as possible, up or down."""
        if self.is_bfs:
            self.distance[v] += way
        else:
            self.distance[v] = np.nextafter(self.distance[v], way * INFINITY)

    def explains(self, u: int, v: int) -> bool:
        graph = self.graph
        row = slice(graph.offsets[u], graph.offsets[u + 1])
        at = np.flatnonzero(graph.targets[row] == v)
        if not at.size or not self.result.reached[u]:
            return False
        step = 1 if graph.weights is None else graph.weights[row][at[0]]
        return self.distance[v] == self.distance[u] + step

    def forget(self, vertices) -> None:
        forget(self.result, vertices)


def forget(result, vertices) -> None:
    result.distance[vertices] = -1 if result.algorithm == "bfs" else np.inf
    result.predecessor[vertices] = -1


# A fault changes a correct result in place, or replaces it, or raises if it cannot be planted in it.


def one_step_up(case: Case) -> None:
    """The smallest change of one distance."""
    case.step(case.one(), 1)


def one_step_down(case: Case) -> None:
    above = [v for v in case.others if case.distance[v] != 0]
    v = case.rng.choice(above or [-1])
    case.need(v >= 0)
    case.step(v, -1)


def bit_flipped(case: Case) -> None:
    """Any bit of one distance."""
    v = case.one()
    bits = case.distance.view(f"u{case.distance.itemsize}")
    bits[v] ^= bits.dtype.type(1 << int(case.rng.integers(8 * bits.itemsize)))


def subtree_too_far(case: Case) -> None:
    below = {case.one()}
    n = 0
    while len(below) > n:
        n = len(below)
        below |= {v for v in case.others if int(case.predecessor[v]) in below}
    case.distance[list(below)] += 1


def all_too_far(case: Case) -> None:
    case.distance[case.others] += 1


def lost_vertex(case: Case) -> None:
    case.forget(case.one())


def lost_frontier(case: Case) -> None:
    middle = case.rng.choice(case.distance[case.others])
    case.forget([v for v in case.others if case.distance[v] >= middle])


def lost_last_level(case: Case) -> None:
    last = case.distance[case.others].max()
    case.forget([v for v in case.others if case.distance[v] == last])


def only_the_source(case: Case) -> None:
    case.forget(case.others)


def phantom_vertex(case: Case) -> None:
    outside = np.flatnonzero(~case.result.reached)
    case.need(outside.size > 0)
    v = case.rng.choice(outside)
    case.distance[v] = case.distance[case.result.reached].max() + 1
    case.predecessor[v] = case.result.source


def two_vertices_swapped(case: Case) -> None:
    both = case.rng.choice(case.others, 2, replace=False)
    case.need(case.distance[both[0]] != case.distance[both[1]])
    for array in (case.distance, case.predecessor):
        array[both] = array[both[::-1]]


def distance_not_a_number(case: Case) -> None:
    case.need(not case.is_bfs)
    case.distance[case.one()] = np.nan


def distance_below_zero(case: Case) -> None:
    case.distance[case.one()] = -1000


def source_not_at_zero(case: Case) -> None:
    case.distance[case.result.source] = 1


def another_sources_row(case: Case) -> None:
    case.result = replace(case.result, source=int(case.one()))


def cycle_of_zero_weights(case: Case) -> None:
    """Two vertices at distance d + 5, joined by edges of weight 0, that explain each other at a smaller distance."""
    case.need(not case.is_bfs)
    graph = case.graph
    source = case.result.source
    n = graph.n_vertices
    src = np.repeat(np.arange(n), np.diff(graph.offsets))
    weights = graph.weights.dtype.type([5, 0, 0])
    case.graph = graph_from_edges(
        np.append(src, [source, n, n + 1]),
        np.append(graph.targets, [n, n + 1, n]),
        np.append(graph.weights, weights),
        vertices=np.arange(n + 2),
    )
    case.result = plan_sssp(case.graph).run(source).copy()
    case.distance[n:] -= 2
    case.predecessor[n:] = [n + 1, n]


def predecessor_that_is_no_neighbor(case: Case) -> None:
    v = case.one()
    n = case.graph.n_vertices
    case.predecessor[v] = case.rng.choice(
        [u for u in range(n) if u != v and not case.explains(u, v)]
    )


def predecessor_lost(case: Case) -> None:
    case.predecessor[case.one()] = -1


def predecessor_out_of_range(case: Case) -> None:
    case.predecessor[case.one()] = case.graph.n_vertices


def second_root(case: Case) -> None:
    v = case.one()
    case.distance[v] = 0
    case.predecessor[v] = v


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
    case = Case(seed, kind)
    # large enough for every fault
    if len(case.others) < 2 or case.distance[case.others].max() <= 0:
        return None
    try:
        fault(case)
    except NotHere:
        return None
    plan = case.plan(case.graph, predecessors=False)
    return case.graph, case.result, plan.run(case.result.source).distance.copy()


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
                if made is None:
                    continue
                for name, noticed in is_noticed(*made, device).items():
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
        limit = None
        if not (rng.integers(2) or kind == "negative"):
            limit = int(rng.integers(0, 12))
        if kind == "hops":
            plan = plan_bfs(graph, max_depth=limit)
        else:
            plan = plan_sssp(graph, cutoff=limit)
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
