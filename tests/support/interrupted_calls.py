"""Calls of each kind, and a program that interrupts one of them again and again.

``python -m tests.support.interrupted_calls NAME SIGNAL SEED TIMES`` makes a call TIMES times, sends itself SIGNAL at random
moments meanwhile, and makes the call once more after each. It prints a line of JSON per interrupt.

A signal that comes after the end of a call is no interrupt. The next one then comes earlier.
"""

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np

from kepler_traverse import (
    bfs,
    bfs_many,
    bfs_pairs,
    certify_many,
    graph_from_edges,
    paths,
    plan_sssp_many,
    sssp,
    sssp_many,
    sssp_pairs,
)

RNG = np.random.default_rng(0)
SIZE = 15_000
ENDS = RNG.integers(0, SIZE, (2, 3 * SIZE))
ENDS[:, :SIZE] = [np.arange(SIZE), (np.arange(SIZE) + 1) % SIZE]  # all are connected
WEIGHTS = RNG.integers(1, 500, 3 * SIZE)
SOURCES = RNG.integers(0, SIZE, 150)
TARGETS = RNG.choice(SIZE, 150, replace=False)
LOOKS = {"values": np.arange(SIZE), "cutoffs": [300, 600]}


def graph(weights=WEIGHTS, size=SIZE, **options):
    some = ENDS.max(axis=0) < size
    return graph_from_edges(
        *ENDS[:, some], weights[some], directed=False, vertices=np.arange(size), **options
    )


def many(call=sssp_many, sources=SOURCES, weights=WEIGHTS, size=SIZE, **options):
    """Return a call of ``bfs_many`` or ``sssp_many``."""
    made = graph(weights, size)
    return lambda: call(made, sources[sources < size], **options)


def streamed():
    made = graph()
    options = {"stream": True, "memory": 1 << 22, "progress": lambda *_: None}
    return lambda: np.concatenate(
        [each.to_numpy() for each in sssp_many(made, SOURCES[:100], **options)]
    )


def in_batches():
    made = graph()
    return lambda: (
        bfs_many(made, SOURCES[:100], stream="arrow", memory=1 << 22).read_all().to_pandas()
    )


def planned():
    plan = plan_sssp_many(graph(), n_sources=16)
    return lambda: [plan.run(some).distance.copy() for some in SOURCES[:96].reshape(6, 16)]


def certified():
    made = graph()
    distances = sssp_many(made, SOURCES[:60], result="matrix")
    return lambda: certify_many(made, SOURCES[:60], distances).valid


def one_each(search):
    made = graph()
    return lambda: [search(made, source)["distance"].sum() for source in SOURCES[:40]]


def walked():
    made = graph(edge_ids=True)
    return lambda: paths(made, (SOURCES, TARGETS))


def built():
    def build():
        made = graph()
        return made.fingerprint, made.n_edges

    return build


def prepared():
    """A contraction hierarchy of a lattice, and pairs that are looked up in it."""
    side = 60
    ids = np.arange(side * side).reshape(side, side)
    ends = np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()]
    weights = RNG.integers(1, 99, ends[0].size)

    def prepare():
        made = graph_from_edges(*ends, weights, directed=False)
        made.hierarchy()
        return sssp_pairs(made, SOURCES % side**2, TARGETS % side**2)

    return prepare


def in_threads():
    """Eight threads search, and the main thread waits for them."""
    made = graph()
    parts = np.array_split(SOURCES, 8)

    def search():
        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(lambda part: sssp_many(made, part, result="matrix").sum(), parts))

    return search


def of_networkx(name, **options):
    def make():
        import networkx as nx

        nodes = nx.Graph()
        near = np.r_[ENDS % 300, [WEIGHTS]][:, :1000]
        nodes.add_weighted_edges_from(zip(*near.tolist(), strict=True))
        nx.config.warnings_to_ignore.add("cache")
        return lambda: _plain(getattr(nx, name)(nodes, backend="kepler", **options))

    return make


def _plain(found):
    return list(found) if hasattr(found, "__next__") else found


def of_csgraph(name, **options):
    def make():
        import scipy.sparse

        from kepler_traverse import csgraph

        matrix = scipy.sparse.csr_array((WEIGHTS.astype(float), ENDS), shape=(SIZE, SIZE))
        return lambda: np.asarray(getattr(csgraph, name)(matrix, **options))

    return make


def of_pandana():
    import pandas as pd

    from kepler_traverse.pandana import Network

    size = 2_000
    at = np.arange(size) / size
    some = ENDS.max(axis=0) < size
    net = Network(
        at, at, *map(pd.Series, ENDS[:, some]), pd.DataFrame({"length": WEIGHTS[some] / 8.0})
    )
    net.set(pd.Series(SOURCES % size), pd.Series(np.ones(SOURCES.size)), name="jobs")

    def aggregate():
        lengths = net.shortest_path_lengths(SOURCES % size, TARGETS % size)
        return net.aggregate(60, type="sum", decay="flat", name="jobs"), lengths

    return aggregate


def assigned(**options):
    """An assignment, its proof, its skims and its select link, as a tuple of arrays."""
    from kepler_traverse.assignment import BPR, assign

    some = ENDS[:, (ENDS.max(axis=0) < 2_000)]
    both = np.concatenate([some, some[::-1]], axis=1)
    links = {"src": both[0], "dst": both[1], "free_flow_time": WEIGHTS[: both.shape[1]]}
    cost = BPR(capacity=20.0, b=0.15, power=4.0)
    demand = {"origin": SOURCES % 2_000, "destination": TARGETS % 2_000}
    demand["volume"] = np.ones(SOURCES.size)

    def solve():
        result = assign(links, demand, cost=cost, max_iterations=6, select_link=[3], **options)
        result.certify()
        skims = result.skims("time")["time"].to_numpy()
        return result.class_flow, skims, result.selected_pairs["volume"].to_numpy(), result.gaps

    return solve


LIBRARY = {
    "assignment": assigned,
    "assignment frank_wolfe": lambda: assigned(method="frank_wolfe"),
    "bfs": lambda: one_each(bfs),
    "sssp": lambda: one_each(sssp),
    "bfs distances": lambda: many(bfs_many, SOURCES[:60]),
    "bfs summary": lambda: many(bfs_many, result="summary"),
    "bfs levels": lambda: many(bfs_many, result="levels"),
    "bfs bits": lambda: many(bfs_many, result="summary", strategy="bit_parallel"),
    "bfs betweenness": lambda: many(bfs_many, SOURCES[:100], result="betweenness"),
    "distances": lambda: many(sources=SOURCES[:60]),
    "predecessors": lambda: many(sources=SOURCES[:60], result="predecessors"),
    "matrix": lambda: many(sources=SOURCES[:100], result="matrix"),
    "float summary": lambda: many(weights=WEIGHTS / 8.1, result="summary"),
    "within": lambda: many(result="within", cutoffs=[300, 600]),
    "isochrones": lambda: many(result="isochrones", cutoffs=[300, 600]),
    "opportunities": lambda: many(result="opportunities", **LOOKS),
    "nearest": lambda: many(result="nearest", k=1),
    "k nearest": lambda: many(result="nearest", k=9),
    "targets": lambda: many(result="targets", targets=TARGETS),
    "nearest targets": lambda: many(result="nearest", targets=TARGETS, k=3),
    "betweenness": lambda: many(sources=SOURCES[:60], result="betweenness"),
    "flows": lambda: many(sources=SOURCES[:60], result="flows", targets=TARGETS),
    "bfs pairs": lambda: pairs(bfs_pairs),
    "pairs": lambda: pairs(sssp_pairs),
    "paths": walked,
    "build": built,
    "hierarchy": prepared,
    "plan": planned,
    "certificate": certified,
    "stream": streamed,
    "record batches": in_batches,
    "eight threads": in_threads,
}
OTHERS = {
    "networkx lengths": of_networkx("all_pairs_dijkstra_path_length", weight="weight"),
    "networkx betweenness": of_networkx("betweenness_centrality"),
    "networkx closeness": of_networkx("closeness_centrality"),
    "networkx paths": of_networkx("all_pairs_dijkstra", weight="weight"),
    "networkx components": of_networkx("connected_components"),
    "csgraph dijkstra": of_csgraph("dijkstra", indices=range(40)),
    "csgraph shortest_path": of_csgraph("shortest_path", indices=range(40), unweighted=True),
    "pandana": of_pandana,
}
CALLS = LIBRARY | OTHERS


def pairs(call):
    made = graph()
    return lambda: call(made, np.repeat(SOURCES, 3), np.tile(TARGETS, 3))


def is_same(found, expected):
    if isinstance(found, tuple | list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if hasattr(found, "equals"):
        return found.equals(expected)
    return bool(np.all(np.asarray(found == expected)))


# What the library imports when it needs it, it must import whole. An import statement of a user's is the user's.
IMPORTED_BY_USERS = {
    "networkx": ["networkx"],
    "csgraph": ["kepler_traverse.csgraph"],
    "pandana": ["kepler_traverse.pandana"],
}


class LateError(TimeoutError):
    """What a handler of the user's raises."""


def raise_late(_number, _frame):
    raise LateError


def attempt(call, number, delay):
    """Make a call and send a signal after some seconds; return how the call ended, and in how many seconds after it."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    try:
        try:
            sender.start()
            call()
            ended = time.perf_counter()
            how = "returned"
        except BaseException as error:
            ended = time.perf_counter()
            how = type(error).__name__
        sender.join()
        for _ in range(100):
            time.sleep(0)
    except (KeyboardInterrupt, LateError):
        return "too late", 0.0
    return how, ended - sent[0]


def main(name, number, seed, times):
    faulthandler.enable()
    for needed in IMPORTED_BY_USERS.get(name.split()[0], ()):
        import_module(needed)
    numbers = {"SIGINT": signal.SIGINT, "SIGALRM": signal.SIGALRM}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, raise_late)
    chance = random.Random(seed)
    call = None
    longest = 1.2  # of the first call in seconds
    while times:
        delay = chance.uniform(0.0, longest)
        how, seconds = attempt(call or (lambda: CALLS[name]()()), numbers[number], delay)
        if call is None:
            call = CALLS[name]()
            expected = call()
            began = time.perf_counter()
            is_right = is_same(call(), expected)
            longest = time.perf_counter() - began
            if how == "too late":  # the first call was short
                continue
        elif how == "too late":
            longest = max(min(longest, delay), 1e-4)
            continue
        else:
            is_right = is_same(call(), expected)
        times -= 1
        print(
            json.dumps(
                {"name": name, "how": how, "delay": delay, "seconds": seconds, "right": is_right}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
