"""NetworkX's betweenness and load of nodes and edges, by ``result="betweenness"``.

``refusals`` leaves to NetworkX what has another meaning there, or none here: weights of 0 or less,
sources that are given twice, edges of multigraphs, and ``load_centrality`` by weights, where
NetworkX leaves out predecessors after the source. ``edge_betweenness_centrality_subset`` has a
kernel of its own: in NetworkX a node that is no target shares evenly among its predecessors, and
not by their paths.

The four functions of betweenness, and ``newman_betweenness_centrality``, have NetworkX's parameters
and results. ``weight`` is the name of an edge attribute, None for hops. ``k`` is the size of a
sample of the nodes as sources, None for all nodes, and ``seed`` draws it. ``normalized`` divides by
the number of pairs. ``endpoints`` counts the ends of a path as nodes on it. ``G._adj`` maps each
node to its vertex number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from .._arrays import is_hops, is_reached, to_host
from ..bfs import bfs_many, plan_bfs_many
from ..errors import PrecisionError
from ..kinds.betweenness import Betweenness, Sample, find_scales
from ..kinds.records import Asked
from ..kinds.result_kinds import RESULT_KINDS, BetweennessOptions
from ..multi_source.planning import MultiSourcePlan
from ..runtime.progress import late_lines, make_meter
from ..search.results import Traversals
from ..sssp import plan_sssp_many, sssp_many
from . import kernels
from .all_sources import PROGRESS_NAME, Weight, searched_where_fast
from .graph import KeplerGraph


def betweenness_centrality(
    G: KeplerGraph, k: int | None, normalized: bool, weight: Weight, endpoints: bool, seed: Any
) -> dict[Any, float]:
    """Return a dictionary by node: the sum, over all pairs, of the share of their shortest paths
    that leads through the node.

    ``weight`` is an edge attribute, None for hops. With ``k`` the sum is estimated from as many
    nodes as sources, which ``seed`` draws; with None all nodes are. ``normalized`` divides by the
    number of pairs. With ``endpoints`` the ends of a path count as nodes on it.
    """
    if k is None or k == len(G):
        sample = None
    else:
        sample = _sample(G, k, seed, endpoints)
    return _of_nodes(G, weight, sample, None, normalized, endpoints)


def betweenness_centrality_subset(
    G: KeplerGraph, sources: Any, targets: Any, normalized: bool, weight: Weight
) -> dict[Any, float]:
    """Return a dictionary by node: the sum, over pairs of one of ``sources`` and one of
    ``targets``, of the share of their shortest paths that leads through the node.

    ``weight`` is an edge attribute, None for hops. ``normalized`` divides by the number of pairs of
    all nodes.
    """
    return _of_nodes(G, weight, sources, targets, normalized, False)  # ends of paths do not count


def edge_betweenness_centrality(
    G: KeplerGraph, k: int | None, normalized: bool, weight: Weight, seed: Any
) -> dict[Any, float]:
    """Return a dictionary by edge: the sum, over all pairs, of the share of their shortest paths
    that leads over the edge. Without a pair each edge has 0.

    ``weight`` is an edge attribute, None for hops. With ``k`` the sum is estimated from as many
    nodes as sources, which ``seed`` draws; with None all nodes are. ``normalized`` divides by the
    number of pairs.
    """
    sample = None if k is None else _sample(G, k, seed, True)  # True: edges are counted
    table = _sums(G, weight, sample, None, of="edges")
    if table is None:
        return _by_edge(G, np.zeros(0, np.int64), np.zeros(0))
    # one number per edge, by which ``_by_edge`` finds its sum
    keys = table["src"].to_numpy() * len(G) + table["dst"].to_numpy()
    scale = _scales(G, "edges", normalized, False, sample)  # False: no ends of paths are counted
    order = np.argsort(keys)
    return _by_edge(G, keys[order], table["betweenness"].to_numpy()[order] * scale)


def edge_betweenness_centrality_subset(
    G: KeplerGraph, sources: Any, targets: Any, normalized: bool, weight: Weight
) -> dict[Any, float]:
    """Return a dictionary by edge: the sum, over pairs of one of ``sources`` and one of
    ``targets``, of the share of their shortest paths that leads over the edge, as NetworkX divides
    them. ``weight`` is an edge attribute, None for hops. ``normalized`` divides by the number of
    pairs of all nodes.

    PrecisionError: a node has 2^1000 shortest paths or more.
    """
    n = len(G)
    graph = G.searched(weight)
    reverse = graph.reverse  # by vertex, the edges that lead to it
    loads = np.zeros(graph.n_edges)  # of the edges, in the order of ``reverse``
    starts = np.array([G._adj[node] for node in sources], np.int64)
    is_target = np.zeros(n, np.bool_)
    is_target[[G._adj[node] for node in set(targets) if node in G]] = True

    make_plan = plan_bfs_many if weight is None else plan_sssp_many
    plan = make_plan(graph, n_sources=max(starts.size, 1))
    for group in _iter_with_progress(plan, starts):
        rows = to_host(group.as_rows().distance)  # of shape (sources of the group, n_vertices)
        lengths = np.ones(graph.n_edges, rows.dtype)
        if not is_hops(rows.dtype):  # weights in the type in which the search added them up
            lengths = graph.derived.sums_in(rows.dtype.name).reverse.weights
        edges = reverse.offsets, reverse.targets, lengths
        for distance in rows:
            reached = np.flatnonzero(is_reached(distance))
            by_distance = reached[np.argsort(distance[reached], kind="stable")]
            # False: nothing was added, since float64 cannot count the paths to a vertex.
            if not kernels.add_subset_loads(*edges, distance, by_distance, is_target, loads):
                raise PrecisionError(
                    "a node has 2**1000 shortest paths or more, which this function does not count"
                )

    # Add up both directions of each edge of an undirected graph.
    tails = reverse.targets.astype(np.int64)
    heads = np.repeat(np.arange(n), np.diff(reverse.offsets))
    if G.directed:
        keys_of_edges = tails * n + heads
    else:
        keys_of_edges = np.minimum(tails, heads) * n + np.maximum(tails, heads)
    # ``place`` has the position of each edge's key in ``keys``, which are sorted
    keys, place = np.unique(keys_of_edges, return_inverse=True)
    sums = np.bincount(place, loads, keys.size)
    return _by_edge(G, keys, sums * _scales(G, "edges", normalized, False))


def newman_betweenness_centrality(
    G: KeplerGraph, v: Any, cutoff: Any, normalized: bool, _: None
) -> Any:
    """Return NetworkX's ``load_centrality`` of the node ``v``, or a dictionary by node if ``v`` is
    None. A packet from each node to each other one is split evenly among the predecessors of each
    node on its way (Newman 2001). ``cutoff`` is the largest number of hops of a path, None or 0 for
    no limit. ``normalized`` divides by the number of pairs of other nodes. A node that is not in
    the graph has the load 0.

    The last parameter, NetworkX's ``weight``, is None in each call.
    """
    n = len(G)
    if not n:
        return {} if v is None else 0.0
    graph = searched_where_fast(G, None, 0)  # 0 sources: the sums are made on the CPU
    kind = RESULT_KINDS["betweenness"]
    # to NetworkX a cutoff of 0 is none
    plan = plan_bfs_many(graph, n_sources=n, result="betweenness", max_depth=cutoff or None)
    options = BetweennessOptions().checked(kind, graph, "bfs")
    question = Asked(kind=kind, graph=graph, algorithm="bfs", query=plan.query, options=options)
    loads = Betweenness(question, is_even=True)  # each predecessor carries the same share

    for group in _iter_with_progress(plan, np.arange(n)):
        loads.add(group)

    if normalized and n > 2:
        scale = 1.0 / ((n - 1) * (n - 2))
    else:
        scale = 1.0
    # The sums are exact integers in a unit. ``floats`` rounds those of all vertices once.
    values = loads.sums.floats(np.arange(n)) * scale
    by_node = dict(zip(G.nodes, values.tolist(), strict=True))
    if v is None:
        return by_node
    return by_node.get(v, 0.0)


def _iter_with_progress(plan: MultiSourcePlan, sources: np.ndarray) -> Iterator[Traversals]:
    """Search from ``sources``, int64 vertex numbers, as ``plan`` says. Yield the distances of each
    group of sources that is searched together. Print lines of progress if this takes long.
    """
    meter = make_meter(late_lines(PROGRESS_NAME), int(sources.size), plan.graph.device)
    with meter.running():
        yield from meter.over(plan.iter_groups(sources))


def _sample(graph: KeplerGraph, k: int, seed: Any, counts_ends: bool) -> list[Any]:
    """Return ``k`` nodes, the same that NetworkX draws from the seed.

    ``counts_ends`` is whether the ends of paths count as nodes on them, or edges are counted.
    """
    nodes: list[Any] = nx.utils.create_py_random_state(seed).sample(graph.nodes, k)
    # NetworkX divides by the size of the sample, unless the graph is too small for a path that
    # counts: it takes two nodes, and if its ends do not count, a third one between them.
    if not nodes and len(graph) > 2 - counts_ends:
        raise ZeroDivisionError("division by zero")
    return nodes


def _sums(
    graph: KeplerGraph, weight: Weight, sources: Iterable[Any] | None, targets: Any, **options: Any
) -> Any:
    """Return the sums of shares of shortest paths over all ordered pairs of one of ``sources`` and
    one of ``targets``, two lists of nodes, None for all nodes.

    ``weight`` is an edge attribute, None for hops. ``options`` are those of
    ``result="betweenness"``. The result is a pandas table with a column ``betweenness`` and a row
    per node, in the order of their numbers, or with ``of="edges"`` a row per edge with columns
    ``src`` and ``dst``. It is None if there is no pair.
    """
    if sources is None:
        starts = np.arange(len(graph))
    else:
        starts = np.array([graph._adj[node] for node in sources], np.int64)
    if targets is None:
        ends = None
    else:
        ends = [graph._adj[node] for node in set(targets) if node in graph]
    if not starts.size or (ends is not None and not ends):
        return None

    search: Any = bfs_many if weight is None else sssp_many
    searched = searched_where_fast(graph, weight, starts.size)
    table = search(
        searched,
        starts,
        result="betweenness",
        targets=ends,
        normalized=False,
        progress=late_lines(PROGRESS_NAME),
        **options,
    )
    if hasattr(table, "to_pandas"):  # a frame of cuDF, if the search was on a GPU
        table = table.to_pandas()
    if graph.directed:
        return table
    # Of a graph without directions the search counts each path once, and NetworkX both ways.
    return table.assign(betweenness=2 * table["betweenness"])


def _of_nodes(
    graph: KeplerGraph,
    weight: Weight,
    sources: Iterable[Any] | None,
    targets: Any,
    normalized: bool,
    endpoints: bool,
) -> dict[Any, float]:
    """Return betweenness by node. ``sources`` and ``targets`` are nodes, None for all. Where
    ``targets`` is None, ``sources`` is a sample, from which the sums are scaled up. ``weight`` is
    an edge attribute, None for hops. ``normalized`` divides by the number of pairs, and with
    ``endpoints`` the ends of a path count as nodes on it. Without a pair all values are 0.0.
    """
    table = _sums(graph, weight, sources, targets, endpoints=endpoints)
    if table is None:
        return dict.fromkeys(graph.nodes, 0.0)
    sample = sources if targets is None else None
    scales = _scales(graph, "vertices", normalized, endpoints, sample)
    values = table["betweenness"].to_numpy() * scales
    return dict(zip(graph.nodes, values.tolist(), strict=True))


def _scales(
    graph: KeplerGraph,
    of: str,
    normalized: bool,
    endpoints: bool,
    sample: Iterable[Any] | None = None,
) -> np.ndarray | float:
    """Return the factors by which NetworkX's values follow from sums over ordered pairs: one per
    node, or one number.

    ``of`` is "vertices" or "edges", whose sums are scaled. With ``normalized`` they are divided by
    the number of pairs. ``endpoints`` says whether sums count the ends of paths. ``sample`` has the
    nodes that are searched in place of all, None if all are.
    """
    options = BetweennessOptions(of=of, normalized=normalized, endpoints=endpoints)  # type: ignore[arg-type]
    if sample is None:
        sample_of_vertices = None
    else:
        # Scales depend on the sources of a sample alone: the three zeros, its seed and the two
        # numbers of its error, are not read.
        sample_of_vertices = Sample(np.array([graph._adj[node] for node in sample]), 0, 0.0, 0.0)
    # The last argument are the vertices whose factors are wanted, which for edges is not read.
    scales: np.ndarray | float = find_scales(
        options, sample_of_vertices, len(graph), graph.directed, np.arange(len(graph))
    )
    return scales


def _by_edge(graph: KeplerGraph, keys: np.ndarray, sums: np.ndarray) -> dict[Any, float]:
    """Return a dictionary of sums by edge, in the order of NetworkX's ``G.edges``.

    ``sums[i]`` is that of the edge with the key ``keys[i]``. A key is ``src * n + dst``, of vertex
    numbers and the number of nodes; it has ``src < dst`` if the graph is undirected. Keys ascend.
    An edge without a key, such as a self-loop, has the sum 0.
    """
    offsets, dst = graph.outgoing
    src = np.repeat(np.arange(len(graph)), np.diff(offsets))
    if graph.directed:
        is_listed = np.ones(src.size, bool)
    else:
        is_listed = src <= dst  # the arrays hold an undirected edge in both directions
    src = src[is_listed]
    dst = dst[is_listed].astype(np.int64)
    edge_keys = src * len(graph) + dst
    loads = np.zeros(src.size)
    # where the key of each edge is in ``keys``, which means something where ``has_sum``
    places = np.searchsorted(keys, edge_keys)
    has_sum = np.isin(edge_keys, keys)
    loads[has_sum] = sums[places[has_sum]]
    edges = zip(graph.names(src), graph.names(dst), strict=True)
    return dict(zip(edges, loads.tolist(), strict=True))
