"""How far a search gets: a BFS that ends once it has walked a number of edges."""

from __future__ import annotations

from .compiled import njit


@njit(cache=True)
def bounded_search(offsets, targets, source, most_edges, seen, mark, queue):
    """Walk from a source, level by level, until nothing is new or more than ``most_edges`` are
    walked.

    Parameters
    ----------
    seen : uint8 array of shape (n_vertices,)
        Vertices with ``mark`` there count as seen; those that are reached get it.
    queue : integer array of shape (n_vertices,)
        Scratch memory.

    Returns
    -------
    n_reached, n_walked, n_levels : int
        Vertices reached, edges walked, levels begun.
    n_reached_before, n_levels_before : int
        The first and the last of these when the number of levels was the last power of two below
        ``n_levels``, from which callers see how a search grows.
    is_whole : int
        1 if nothing was new at the end.
    """
    seen[source] = mark
    queue[0] = source
    first = 0
    last = 1
    n_walked = 0
    n_levels = 0
    # (vertices reached, levels) at the last two powers of two of levels
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
        if n_levels & (n_levels - 1) == 0:
            earlier = latest
            latest = (last, n_levels)
    # the last power of two below the number of levels, which may be a power of two itself
    before = earlier if latest[1] == n_levels else latest
    return last, n_walked, n_levels, before[0], before[1], 1
