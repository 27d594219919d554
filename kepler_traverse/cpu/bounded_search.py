"""How far a search gets: a BFS that ends once it has walked a number of edges."""

from __future__ import annotations

from .compiled import njit


@njit(cache=True)
def bounded_search(offsets, targets, source, most_edges, seen, mark, queue):
    """Walk from a source, level by level, until nothing is new or ``most_edges`` are walked.

    What is ``mark`` in ``seen``, a uint8 array of shape (n_vertices,), counts as seen; what is seen
    becomes ``mark``. The queue has the same shape. Return the vertices reached; edges walked;
    levels begun; vertices and levels at the last power of two of levels before that; 1 if the
    search is whole.
    """
    seen[source] = mark
    queue[0] = source
    first = 0
    last = 1
    walked = 0
    levels = 0
    earlier = latest = (1, 0)
    while first < last:
        level_ends = last
        for i in range(first, level_ends):
            u = queue[i]
            if walked > most_edges:
                before = earlier if latest[1] == levels else latest
                return last, walked, levels, before[0], before[1], 0
            walked += offsets[u + 1] - offsets[u]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if seen[v] != mark:
                    seen[v] = mark
                    queue[last] = v
                    last += 1
        first = level_ends
        levels += 1
        if levels & (levels - 1) == 0:
            earlier = latest
            latest = (last, levels)
    before = earlier if latest[1] == levels else latest
    return last, walked, levels, before[0], before[1], 1
