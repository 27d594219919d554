"""Networks of the tests, and a textbook Frank-Wolfe as their oracle."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from kepler_traverse.assignment import BPR, VehicleClass
from kepler_traverse.assignment.network import read_network, read_trips
from kepler_traverse.assignment.problem import Problem

CLASSES = [VehicleClass(), VehicleClass(volume="trucks", passenger_cars=2.5)]


def grid(side=6, seed=1, n_zones=8, volume=60.0):
    """Return links and trips of a grid with parallel links, a detour and random demand."""
    rng = np.random.default_rng(seed)
    ends = []
    for i in range(side):
        for j in range(side):
            if i + 1 < side:
                ends.append((i * side + j, (i + 1) * side + j))
            if j + 1 < side:
                ends.append((i * side + j, i * side + j + 1))
    ends += [(b, a) for a, b in ends]
    ends += ends[:3]  # parallel, with parameters of their own
    src, dst = np.array(ends).T
    n = src.size
    links = pd.DataFrame(
        {
            "src": src * 10 + 5,
            "dst": dst * 10 + 5,
            "free_flow_time": rng.uniform(1, 5, n).round(2),
            "capacity": rng.uniform(40, 120, n).round(1),
            "b": 0.15,
            "power": 4.0,
            "length": rng.uniform(0.5, 3, n).round(2),
            "toll": rng.integers(0, 3, n).astype(float),
        }
    )
    zones = rng.choice(side * side, n_zones, replace=False) * 10 + 5
    pairs = [(a, b) for a in zones for b in zones]
    trips = pd.DataFrame(pairs, columns=["origin", "destination"])
    trips["volume"] = rng.uniform(0, volume, len(trips)).round(1)
    trips["trucks"] = rng.uniform(0, volume / 8, len(trips)).round(1)
    return links, trips


def bpr_of(links):
    """Return a function of the flows: the costs of the Bureau of Public Roads by NumPy's own power."""
    names = ("free_flow_time", "b", "capacity", "power")
    time, b, capacity, power = (links[name].to_numpy() for name in names)

    def cost_of(flow):
        return time * (1 + b * (np.asarray(flow) / capacity) ** power)

    return cost_of


def bpr(links, flow):
    """Return the costs of the Bureau of Public Roads at these flows."""
    return bpr_of(links)(flow)


def cheapest(links, cost):
    """Return the ids of the vertices, the places of the ends of all links in them, and the cheapest link of each pair."""
    ids, at = np.unique(links[["src", "dst"]].to_numpy(), return_inverse=True)
    at = at.reshape(-1, 2)
    order = np.lexsort((cost, at[:, 1], at[:, 0]))
    is_first = np.append(True, (np.diff(at[order], axis=0) != 0).any(axis=1))
    return ids, at, order[is_first]


def distances(links, cost):
    """Return the ids of the vertices, and all distances by SciPy."""
    cost = np.asarray(cost)
    ids, at, best = cheapest(links, cost)
    matrix = csr_matrix((cost[best], tuple(at[best].T)), (ids.size, ids.size))
    return ids, *dijkstra(matrix, return_predecessors=True)


def all_or_nothing(links, trips, cost):
    """Return the flows of all trips on shortest paths, and what they cost."""
    ids, distance, before = distances(links, cost)
    _, at, best = cheapest(links, cost)
    link = np.zeros((ids.size, ids.size), int)
    link[tuple(at[best].T)] = best
    flow = np.zeros(len(links))
    total = 0.0
    rows = trips[["origin", "destination", "volume"]].to_numpy()
    ends = np.searchsorted(ids, rows[:, :2])
    for (s, t), volume in zip(ends.tolist(), rows[:, 2], strict=True):
        total += volume * distance[s, t]
        while t != s:
            p = before[s, t]
            flow[link[p, t]] += volume
            t = p
    return flow, total


def textbook(links, trips, cost_of, n_iterations):
    """Return the flows of Frank-Wolfe with a bisection for the step."""
    flow, _ = all_or_nothing(links, trips, cost_of(np.zeros(len(links))))
    for _ in range(n_iterations):
        target, _ = all_or_nothing(links, trips, cost_of(flow))
        low, high = 0.0, 1.0
        for _ in range(40):
            step = (low + high) / 2
            if cost_of(flow + step * (target - flow)) @ (target - flow) > 0:
                high = step
            else:
                low = step
        flow = flow + low * (target - flow)
    return flow


def problem_of(seed, n_zones=20, side=7):
    """Return a grid in two parts with closed zones, each with two connectors, and costs of both
    classes: many are 0, many paths tie.
    """
    rng = np.random.default_rng(seed)
    links, _ = grid(side, seed, n_zones=2)
    apart = links.assign(src=links.src + 10_000, dst=links.dst + 10_000)
    zones = np.arange(n_zones)
    inner = rng.choice(links.src.unique(), (2, n_zones)) + 10_000 * (zones % 2)
    ways = [(zones, each) for each in inner] + [(each, zones) for each in inner]
    ways.append((zones[:4], zones[[2, 3, 0, 1]]))  # from zone to zone
    connectors = pd.DataFrame(np.hstack(ways).T, columns=["src", "dst"])
    connectors = connectors.assign(free_flow_time=1.0, capacity=50.0, b=0.15, power=4.0)
    links = pd.concat([links, apart, connectors], ignore_index=True)
    pairs = [(a, b) for a in zones for b in zones if a % 2 == b % 2]
    trips = pd.DataFrame(pairs, columns=["origin", "destination"])
    for name in ("volume", "trucks"):
        trips[name] = rng.integers(0, 4, len(pairs)).astype(float)
    network = read_network(links, (None, None), zones)
    problem = Problem(network, read_trips(trips, network, CLASSES), CLASSES, BPR())
    cost = rng.integers(0, 4, (2, len(links))) * rng.choice([1.0, 0.1], (2, 1))
    return problem, cost
