"""Certify what edges carry for one source, by given distances.

Each edge (u, v) of weight w that carries something must be the one on which the path to v ends:
d(u) + w == d(v), and u is the smallest such vertex that is nearer. At each vertex, what comes in is
what goes out and what the vertex takes, and the source sends what all targets take. All is checked
in NumPy, without the walks. With distances that are certified, this proves what each edge carries
for this source. Of edges of length zero it proves only that at most one of those to a vertex
carries something. It does not prove the sum over all sources.

Where paths must use one of some edges, the flows of all pairs of the source are checked first.
Their edges are the paths, on which ``uses_named`` finds the pairs to select, without the marks of
the walks. The flows of these are checked next. So this proves for the source which pairs are
selected, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import positions_in_groups
from ..errors import CertificateError
from ..graph import Graph
from .loads import find_ends
from .records import format_ids

# 128-bit integers: a uint64 and an int64 array, as in ``cpu.exact_sums``
Words = tuple[np.ndarray, np.ndarray]


def require_conserved(
    graph: Graph,
    source: int,
    distance: np.ndarray,
    weights: Any,
    cells: np.ndarray,
    loads: Words,
    taken: tuple[np.ndarray, Words],
) -> None:
    """Check what edges carry for one source, and raise CertificateError if it is wrong.

    Parameters
    ----------
    graph : Graph
        In host memory.
    source : int
        Vertex number.
    distance : array of shape (n_vertices,)
        Distances from the source; -1 or infinity where a vertex is not reached.
    weights : array of the type of the distances, or None
        The weights of the edges of ``graph.reverse``; None for hops.
    cells : int64 array
        The edges that carry something, by their positions in the reversed graph, ascending.
    loads : Words
        What each of these edges carries.
    taken : tuple
        The targets that are reached, int64 vertex numbers, and as ``Words`` what each takes.
    """
    reverse = graph.reverse
    src, dst = find_ends(graph, cells)

    # An edge is tight if its length makes up the distance between its ends. Find the tight edges
    # into the heads of the cells: ``into`` lists all edges into the first head, then those into the
    # second, and so on, and ``first`` says where each list begins.
    begin = reverse.offsets[dst]
    counts = reverse.offsets[dst + 1] - reverse.offsets[dst]
    first = np.cumsum(counts) - counts
    into = np.repeat(begin, counts) + positions_in_groups(counts)
    distance_of_head = np.repeat(distance[dst], counts)
    distance_of_tail = distance[reverse.targets[into]]
    if weights is None:
        length = distance.dtype.type(1)
    else:
        length = weights[into]
    # The sum is rounded to the type of the distances, in which the search has added. One that
    # overflows is infinite, and no finite distance is equal to it.
    with np.errstate(over="ignore"):
        is_tight = (
            (distance_of_tail >= 0)
            & np.isfinite(distance_of_head)
            & ((distance_of_tail + length).astype(distance.dtype) == distance_of_head)
        )

    # Each cell must be the first tight edge from a nearer vertex, which is ``nearer``. Where there
    # is none, it may be a tight edge of length zero, which is ``is_level``.
    no_edge = np.iinfo(np.int64).max  # behind every edge, so that the minimum is an edge if any is
    if into.size:  # ``reduceat`` takes no empty array
        nearer = np.minimum.reduceat(
            np.where(is_tight & (distance_of_tail < distance_of_head), into, no_edge), first
        )
    else:
        nearer = cells
    is_level = np.isin(cells, into[is_tight & (distance_of_tail == distance_of_head)]) & (
        nearer == no_edge
    )
    # Cells ascend by their heads. Two equal heads in a row are two edges into one vertex, and at
    # most one of them is on the path to it.
    wrong = np.flatnonzero(((nearer != cells) & ~is_level) | (np.diff(dst, prepend=-1) == 0))
    if wrong.size:
        ends_of = format_ids(graph, src[wrong[0]], dst[wrong[0]])
        raise _error(
            graph,
            source,
            f"the edge {ends_of[0]} -> {ends_of[1]} carries something and is not on its path",
            wrong,
        )

    # What enters a vertex counts as positive. The source gets what all targets take, as if from
    # outside.
    targets, volumes = taken
    _require_sums(
        graph,
        source,
        "what comes to vertex {} is not what leaves it and what it takes",
        [
            (dst, loads, 1),
            (src, loads, -1),
            (targets, volumes, -1),
            (np.full(targets.size, source), volumes, 1),
        ],
    )


def require_inflow(
    graph: Graph,
    source: int,
    cells: np.ndarray,
    loads: Words,
    taken: Words,
    vertices: np.ndarray,
    carried: Words,
) -> None:
    """Check that each vertex carries what the edges that lead to it carry, and the source what all
    targets take; raise CertificateError if not.

    ``cells`` and ``loads`` are edges and what they carry, as in ``require_conserved``. ``taken`` is
    what each target takes. ``vertices``, int64, and ``carried`` are the vertices of the result and
    what they carry.
    """
    _, dst = find_ends(graph, cells)
    sent = np.full(taken[0].size, source), taken, 1
    message = "what vertex {} carries is not what comes to it"
    _require_sums(graph, source, message, [(dst, loads, 1), sent, (vertices, carried, -1)])


def require_listed(
    graph: Graph, source: int, rows: np.ndarray, taken: Words, listed: np.ndarray, carried: Words
) -> None:
    """Check that the pairs of a result are those that take something, and that they carry what they
    take; raise CertificateError if not.

    ``rows``, int64, are the pairs of the source that have a path, by their rows in the table, and
    ``taken`` is what each takes. ``listed``, ascending rows, and ``carried`` are the result.
    """
    # the pairs that take more than 0, by ascending row, as the result lists them
    served = np.flatnonzero((taken[0] != 0) | (taken[1] != 0))
    served = served[np.argsort(rows[served])]
    wrong = np.setxor1d(rows[served], listed)
    if not wrong.size:
        wrong = listed[(taken[0][served] != carried[0]) | (taken[1][served] != carried[1])]
    if wrong.size:
        raise _error(graph, source, f"pair {wrong[0]} is missing, or is listed wrongly", wrong)


def uses_named(
    graph: Graph, source: int, cells: np.ndarray, named: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return for each target, bool, whether the path to it uses a named edge. It is False at the
    source, and for a target to which no edge of ``cells`` leads.

    ``cells`` are the edges of the paths to all targets, at most one into each vertex, as
    ``require_conserved`` takes them. ``named``, uint8 by the position in the reversed graph, is not
    0 at the named edges. ``targets`` are vertex numbers.
    """
    src, dst = find_ends(graph, cells)

    def find_places(vertices: np.ndarray) -> np.ndarray:
        """Return the position in ``cells`` of the edge into each vertex; one behind the last for
        the source, and for vertices without such an edge.
        """
        places = np.searchsorted(dst, vertices)
        is_there = np.append(dst, -1)[places] == vertices
        return np.where(is_there & (vertices != source), places, cells.size)

    # ``previous`` has the position of the edge before each edge on its path. Each round doubles how
    # many edges back ``uses`` sees and ``previous`` leads. The last position, that of no edge, is
    # its own predecessor and uses nothing.
    previous = np.append(find_places(src), cells.size)
    uses = np.append(named[cells] != 0, False)
    for _ in range(cells.size.bit_length()):
        uses = uses | uses[previous]
        previous = previous[previous]
    of_targets: np.ndarray = uses[find_places(targets)]
    return of_targets


def _require_sums(
    graph: Graph, source: int, message: str, terms: list[tuple[np.ndarray, Words, int]]
) -> None:
    """Check that terms at vertices, each with a sign, add up to 0 at each vertex, modulo 2**128;
    raise CertificateError if not.

    A term has int64 vertex numbers, one number of 128 bits for each as ``Words``, and the sign 1 or
    -1. ``source``, a vertex number, is for the error. ``message`` has a place in braces for the
    vertex that is wrong.
    """
    carry = np.zeros(graph.n_vertices, np.int64)  # of each vertex, from the lower bits
    touched = np.concatenate([vertices for vertices, _, _ in terms])
    # Words are added from the lowest bits on, 32 bits at a time, so that int64 holds the sums.
    for word, shift in ((0, 0), (0, 32), (1, 0), (1, 32)):
        for vertices, words, sign in terms:
            part = words[word].view(np.uint64) >> np.uint64(shift) & np.uint64(2**32 - 1)
            np.add.at(carry, vertices, sign * part.astype(np.int64))
        # What is above the 32 bits is carried on to the next ones.
        total = carry[touched]
        wrong = np.unique(touched[total & (2**32 - 1) != 0])
        if wrong.size:
            raise _error(graph, source, message.format(*format_ids(graph, wrong[0])), wrong)
        carry[touched] = total >> 32


def _error(graph: Graph, source: int, message: str, wrong: np.ndarray) -> CertificateError:
    """Return the error that the flows from a source are wrong. ``message`` says how, and ``wrong``
    has one entry per fault, which are counted.
    """
    return CertificateError(
        f"flows from source {format_ids(graph, source)[0]} are wrong: {message} ({wrong.size} such)"
    )
