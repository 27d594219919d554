"""Generated graphs of the classes and sizes that the papers measured, where the originals are not to be had.

All are made from a seed, by array operations (forest fire: compiled), on NumPy's or CuPy's arrays, and return the ends of
edges. `scripts.make_graphs` has the others. A docstring names the original; the pages show the statistics of both.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from scripts.make_graphs import rmat_ends

__all__ = [
    "brick",
    "circuit",
    "co_papers",
    "co_purchase",
    "forest_fire",
    "gtgraph_rmat",
    "honeycomb",
    "plate",
    "power_law",
    "road",
    "small_world",
    "talk",
]

# The default probabilities of GTgraph's R-MAT generator, which the papers used: less skewed than those of Graph500.
GTGRAPH = (0.45, 0.15, 0.15, 0.25)


def small_world(vertices: int, neighbors: int, rewired: float, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """A ring in which each vertex has edges to the next ``neighbors``, of which a share leads anywhere.

    Watts, Strogatz. Nature 393, 1998. BFS-4K's Gen-SmallWorld has k = 10 and p = 0.3. Read it as undirected.
    """
    number = xp.arange(vertices, dtype=np.int64)
    src = xp.repeat(number, neighbors)
    dst = (src + 1 + xp.tile(xp.arange(neighbors, dtype=np.int64), vertices)) % vertices
    is_rewired = rng.random(src.size, np.float32) < rewired
    return src, xp.where(is_rewired, rng.integers(0, vertices, src.size), dst)


def forest_fire(
    vertices: int,
    forward: float,
    backward: float,
    seed: int,
    xp=np,
    rng=None,  # noqa: ARG001
) -> tuple:
    """Each new vertex burns through the graph from a random one, and gets an edge to each vertex that burns.

    Leskovec, Kleinberg, Faloutsos. Graph evolution: densification and shrinking diameters. TKDD 2007. BFS-4K's has
    forward probability 0.35, backward 0.32. Read it as undirected.
    """
    capacity = 16 * vertices
    src, dst = np.empty((2, capacity), np.int32)
    n_edges = _burn(vertices, forward, backward, seed, src, dst)
    return xp.asarray(src[:n_edges].astype(np.int64)), xp.asarray(dst[:n_edges].astype(np.int64))


@njit(cache=True)
def _burn(vertices, forward, backward, seed, src, dst):
    """Write the edges of `forest_fire`; return their number. A fire ends at 1,000 vertices, which few reach."""
    np.random.seed(seed)  # noqa: NPY002
    # edges out of each vertex, which are written one after the other
    first = np.zeros(vertices + 1, np.int64)
    newest = np.full(vertices, -1, np.int64)  # the newest edge into each vertex
    before = np.empty(src.size, np.int64)  # the edge into the same vertex that came before
    burned_by = np.full(vertices, -1, np.int64)
    queue = np.empty(1000, np.int64)
    n_edges = 0
    for v in range(1, vertices):
        first[v] = n_edges
        start = np.random.randint(0, v)  # noqa: NPY002
        queue[0] = start
        burned_by[start] = v
        head = 0
        tail = 1
        while head < tail:
            u = queue[head]
            head += 1
            ahead = np.random.geometric(1.0 - forward) - 1  # noqa: NPY002
            for e in range(first[u], first[u + 1] if u + 1 < v else n_edges):
                if ahead == 0 or tail == queue.size:
                    break
                w = dst[e]
                if burned_by[w] != v:
                    burned_by[w] = v
                    queue[tail] = w
                    tail += 1
                    ahead -= 1
            behind = np.random.geometric(1.0 - backward) - 1  # noqa: NPY002
            e = newest[u]
            while e >= 0 and behind > 0 and tail < queue.size:
                w = src[e]
                if burned_by[w] != v:
                    burned_by[w] = v
                    queue[tail] = w
                    tail += 1
                    behind -= 1
                e = before[e]
        for i in range(tail):
            if n_edges == src.size:
                break
            src[n_edges] = v
            dst[n_edges] = queue[i]
            before[n_edges] = newest[queue[i]]
            newest[queue[i]] = n_edges
            n_edges += 1
        first[v + 1] = n_edges
    return n_edges


def co_purchase(vertices: int, listed: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Each product lists up to so many others, most of them nearby, as a shop's "bought together" does.

    For SNAP's amazon0505: at most 10 edges out of a vertex, 8.2 on average, diameter 40. Read it as directed.
    """
    kept = listed - xp.minimum(rng.integers(0, 6, vertices), rng.integers(0, 6, vertices))
    number = xp.arange(vertices, dtype=np.int64)
    src = xp.repeat(number, listed)
    is_listed = xp.tile(xp.arange(listed, dtype=np.int64), vertices) < xp.repeat(kept, listed)
    src = src[is_listed]
    # Distances between ids from a power law: half of them are below 16, few go far.
    reach = 7.0 * (1.0 - rng.random(src.size)) ** -1.2
    sign = 1 - 2 * (rng.random(src.size) < 0.5).astype(np.int64)
    away = (xp.minimum(reach, vertices / 32.0)).astype(np.int64) * sign
    return src, (src + away) % vertices


def power_law(
    vertices: int,
    edges: int,
    largest: int,
    hubs: int,
    seed: int,  # noqa: ARG001
    xp=np,
    rng=None,
) -> tuple:
    """Edges with ends drawn by expected degrees: 60 % of the ends among ``hubs`` vertices, by a power of the rank.

    After Chung, Lu. PNAS 99, 2002. For graphs of autonomous systems (as-Skitter) and of friends (flickr, LiveJournal). The
    largest degree comes out below ``largest``, since an edge that is drawn twice counts once. Ids are shuffled.
    """
    shuffled = rng.permutation(vertices)
    ends = []
    for _ in range(2):
        of_hub = _by_rank(hubs, edges, largest / (1.2 * edges), rng)
        of_any = _by_rank(vertices, edges, 100.0 / (0.8 * edges), rng)
        ends.append(shuffled[xp.where(rng.random(edges) < 0.6, of_hub, of_any)])
    return tuple(ends)


def _by_rank(vertices: int, size: int, share: float, rng):
    """Draw so many ranks, of which the first has that share, and the others less by a power of the rank."""
    exponent = math.log(1.0 / share) / math.log(vertices)
    # 48 random bits, since a rank needs more than 24
    drawn = rng.random(size) + rng.random(size) * 2.0**-24
    return (vertices * drawn ** (1.0 / exponent)).astype(np.int64).clip(0, vertices - 1)


def talk(vertices: int, edges: int, largest: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Edges out of few vertices into any: most have none that leaves and few that arrive.

    For SNAP's WikiTalk: 2.1 edges out of a vertex on average, median 0, at most 100,022, diameter 9. Read it as directed.
    """
    writers = max(vertices // 16, 1)
    shuffled = rng.permutation(vertices)
    src = _by_rank(writers, edges, largest / edges, rng)
    is_among_writers = rng.random(edges) < 0.4
    dst = xp.where(
        is_among_writers, _by_rank(writers, edges, 0.002, rng), rng.integers(0, vertices, edges)
    )
    return shuffled[src], shuffled[dst]


def gtgraph_rmat(scale: int, edges: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """An R-MAT graph with the default probabilities of GTgraph.

    Bader, Madduri. GTgraph: a suite of synthetic graph generators, 2006. For rmat.3Mv.20Me and rmat.2Mv.128Me.
    """
    src, dst = rmat_ends(scale, edges, rng, xp, GTGRAPH)
    shuffled = rng.permutation(1 << scale)
    return shuffled[src], shuffled[dst]


def honeycomb(rows: int, columns: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """A hexagonal grid: three neighbors per vertex inside. Nothing is drawn. Read it as undirected.

    For the frames of a two-dimensional simulation, hugetrace and hugebubbles: degree 3, diameters of 4,119 and 7,905.
    """
    number = xp.arange(rows * columns, dtype=np.int64)
    row = number // columns
    column = number % columns
    has_right = column + 1 < columns
    has_below = (row + 1 < rows) & ((row + column) % 2 == 0)
    src = xp.concatenate([number[has_right], number[has_below]])
    return src, xp.concatenate([number[has_right] + 1, number[has_below] + columns])


def _stencil(shape: tuple[int, int, int], xp) -> tuple:
    """Each point of a brick with its neighbors in the cube around it, each pair once."""
    depth, rows, columns = shape
    number = xp.arange(depth * rows * columns, dtype=np.int64)
    z = number // (rows * columns)
    y = number // columns % rows
    x = number % columns
    ends = []
    for dz in (0, 1):
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if (dz, dy, dx) <= (0, 0, 0):
                    continue
                inside = (
                    (z + dz < depth)
                    & (y + dy >= 0)
                    & (y + dy < rows)
                    & (x + dx >= 0)
                    & (x + dx < columns)
                )
                ends.append((number[inside], number[inside] + (dz * rows + dy) * columns + dx))
    return xp.concatenate([src for src, _ in ends]), xp.concatenate([dst for _, dst in ends])


def brick(side: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """A cube of finite elements: 26 neighbors per vertex inside. Nothing is drawn. Read it as undirected.

    For nlpkkt160: 26.5 edges per vertex, at most 27, diameter 162.
    """
    return _stencil((side, side, side), xp)


def plate(side: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """A plate of finite elements, two nodes thick, with three unknowns per node, all of a node's joined with its neighbors'.

    For msdoor: 49.7 edges per vertex, at most 78, and a self-loop per vertex, which `scripts.papers.graphs` adds. Nothing is
    drawn. Read it as undirected.
    """
    src, dst = _stencil((2, side, side), xp)
    nodes = xp.arange(2 * side * side, dtype=np.int64)
    pairs = [(3 * src + a, 3 * dst + b) for a in range(3) for b in range(3)]
    pairs += [(3 * nodes + a, 3 * nodes + b) for a, b in ((0, 1), (0, 2), (1, 2))]
    return xp.concatenate([src for src, _ in pairs]), xp.concatenate([dst for _, dst in pairs])


def circuit(side: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Elements on a square, each joined to a few within 24 places. Read it as undirected, and add a self-loop per vertex.

    For circuit5M_dc: 5.4 edges per vertex, deviation 2.1, at most 27, diameter 135, one of the edges a self-loop.
    """
    n = side * side
    number = xp.arange(n, dtype=np.int64)
    count = 1 + (rng.random(n) < 0.7) + (rng.random(n) < 0.45) + 8 * (rng.random(n) < 0.005)
    src = xp.repeat(number, 11)
    src = src[xp.tile(xp.arange(11, dtype=np.int64), n) < xp.repeat(count, 11)]
    ends = []
    for place in (src // side, src % side):
        moved = xp.abs(place + rng.integers(0, 49, src.size) - 24)
        ends.append(side - 1 - xp.abs(side - 1 - moved))  # what would lie outside is mirrored
    return src, ends[0] * side + ends[1]


def co_papers(groups: int, vertices: int, largest: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Groups whose members are all joined to each other, as papers that cite one paper or authors of one paper.

    For coPapersCiteseer: 73.9 edges per vertex, deviation 101.3, at most 1,188, diameter 34. Sizes follow a power law up to
    ``largest``; members are nearby, but for one in twelve. Read it as undirected.
    """
    size = xp.minimum(2.0 * (1.0 - rng.random(groups)) ** -0.75, float(largest)).astype(np.int64)
    center = rng.integers(0, vertices, groups)
    group = _repeated(xp.arange(groups, dtype=np.int64), size, xp)
    away = (rng.random(group.size) * 2.0 * size[group]).astype(np.int64)
    near = (center[group] + away) % vertices
    far = rng.integers(0, vertices, group.size)
    member = xp.where(rng.random(group.size) < 1.0 / 12.0, far, near)
    first = xp.cumsum(size) - size
    # All pairs (i, j) with i < j of each group: member i is joined to those after it.
    place = xp.arange(member.size, dtype=np.int64) - first[group]
    after = size[group] - 1 - place
    src = _repeated(xp.arange(member.size, dtype=np.int64), after, xp)
    started = xp.cumsum(after) - after
    offset = xp.arange(src.size, dtype=np.int64) - _repeated(started, after, xp)
    return member[src], member[src + 1 + offset]


def _repeated(values, counts, xp):
    """``xp.repeat(values, counts)`` where CuPy's wants the counts on the host."""
    if xp is np:
        return np.repeat(values, counts)
    ends = xp.cumsum(counts)
    return values[xp.searchsorted(ends, xp.arange(int(ends[-1]), dtype=np.int64), side="right")]


def road(
    rows: int,
    columns: int,
    dropped: float,
    bends: float,
    seed: int,  # noqa: ARG001
    xp=np,
    rng=None,
) -> tuple:
    """A grid of junctions of which some streets are missing, and the others have bends: chains of vertices of degree 2.

    The number of bends of a street is geometric with the mean ``bends``. For road networks of OpenStreetMap (asia.osm and
    europe.osm: 2.1 edges per vertex) and of TIGER (USA: 2.4, with fewer bends). Read it as undirected.
    """
    number = xp.arange(rows * columns, dtype=np.int64)
    has_right = (number % columns + 1 < columns) & (rng.random(number.size) >= dropped)
    has_below = (number // columns + 1 < rows) & (rng.random(number.size) >= dropped)
    src = xp.concatenate([number[has_right], number[has_below]])
    dst = xp.concatenate([number[has_right] + 1, number[has_below] + columns])
    log_of_going_on = math.log(bends / (1.0 + bends)) if bends else -math.inf
    n_bends = (xp.log(1.0 - rng.random(src.size)) / log_of_going_on).astype(np.int64)
    ends = xp.cumsum(n_bends + 1)
    street = _repeated(xp.arange(src.size, dtype=np.int64), n_bends + 1, xp)
    piece = xp.arange(street.size, dtype=np.int64) - (ends - n_bends - 1)[street]
    # Bend k of a street follows the junctions; bends are numbered by street.
    bend = number.size + (ends - n_bends - 1)[street] - street + piece
    return xp.where(piece == 0, src[street], bend - 1), xp.where(
        piece == n_bends[street], dst[street], bend
    )
