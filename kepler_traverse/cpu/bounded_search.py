"""How far a search gets: a BFS that ends once it has walked a number of edges.

A survey of a graph, by which a strategy is chosen, runs a few of them.
"""

from __future__ import annotations

from .compiled import njit


@njit(cache=True)
def bounded_search(offsets, targets, source, most_edges, seen, mark, queue):
    """Walk from a source, level by level, until no vertex is new or more than ``most_edges`` are
    walked.

    Parameters
    ----------
    offsets, targets : integer arrays of shape (n_vertices + 1,) and (n_edges,)
        The graph in compressed sparse rows.
    source : int
        The vertex to begin at.
    most_edges : int
        The number of edges beyond which no further vertex is visited.
    seen : uint8 array of shape (n_vertices,)
        Vertices with ``mark`` there count as seen; those that are reached get it. With another mark
        the array can be used by the next search without being cleared.
    mark : int
        The mark of this search.
    queue : integer array of shape (n_vertices,)
        Scratch memory: the vertices in the order in which they are reached.

    Returns
    -------
    n_reached, n_walked, n_levels : int
        Vertices reached, edges walked, levels begun.
    n_reached_before, n_levels_before : int
        Vertices reached and levels begun when the number of levels was the last power of two below
        ``n_levels``, from which callers see how a search grows.
    is_whole : int
        1 if nothing was new at the end.
    """
    seen[source] = mark
    queue[0] = source
    # The vertices of the level that is visited are ``queue[first:level_end]``, and those of the
    # next one follow up to ``last``, which is also the number of vertices reached.
    first = 0
    last = 1
    n_walked = 0
    n_levels = 0
    # (vertices reached, levels) when the number of levels was a power of two, the last two times
    earlier = latest = (1, 0)
    while first < last:
        level_end = last
        for i in range(first, level_end):
            u = queue[i]
            if n_walked > most_edges:
                before = earlier if latest[1] == n_levels else latest
                return last, n_walked, n_levels, before[0], before[1], 0
            n_walked += offsets[u + 1] - offsets[u]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if seen[v] != mark:
                    seen[v] = mark
                    queue[last] = v
                    last += 1
        first = level_end
        n_levels += 1
        if n_levels & (n_levels - 1) == 0:  # a power of two
            earlier = latest
            latest = (last, n_levels)
    # the last power of two below the number of levels, which may be a power of two itself
    before = earlier if latest[1] == n_levels else latest
    return last, n_walked, n_levels, before[0], before[1], 1
