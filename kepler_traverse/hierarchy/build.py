"""The hierarchy of a graph: its arrays, ready for sweeps."""

from __future__ import annotations

import numpy as np

from .contraction import Contraction, Lists
from .sweep import UNREACHED_32, depth_first, longest_upward


class Hierarchy:
    """A contraction hierarchy.

    Attributes
    ----------
    order, position : int32 arrays of shape (n,)
        The vertex at each position, from the top, and the position of each vertex.
    ahead, back : tuple of offsets, heads, weights
        Edges from each position to positions above, and from positions above to it. The same for an undirected graph.
    longest : int
        No sum along a path that a search considers is larger.
    """

    def __init__(self, contraction: Contraction):
        up = contraction.ahead
        n = up.size.size
        self.order, self.position = np.empty(n, np.int32), np.full(n, -1, np.int32)
        lists = up if contraction.symmetric else _joined(up, contraction.back)
        depth_first(lists[0] if isinstance(lists, tuple) else up.begin, *( (up.size, up.head) if not isinstance(lists, tuple) else lists[1:]), self.order, self.position)
        self.ahead = self._edges(up)
        self.back = self.ahead if contraction.symmetric else self._edges(contraction.back)
        self.longest = longest_upward(*self.ahead) + longest_upward(*self.back)
        self.level = contraction.level[self.order]
        if self.is_narrow:
            self.ahead = (*self.ahead[:2], self.ahead[2].astype(np.int32))
            self.back = self.ahead if contraction.symmetric else (*self.back[:2], self.back[2].astype(np.int32))

    @property
    def is_narrow(self) -> bool:
        """Whether sums fit 32-bit integers."""
        return self.longest < UNREACHED_32

    def _edges(self, lists: Lists):
        size = lists.size[self.order]
        offsets = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
        at = np.repeat(lists.begin[self.order] - offsets[:-1], size) + np.arange(offsets[-1])
        return offsets, self.position[lists.head[at]], lists.weight[at]


def _joined(up: Lists, down: Lists):
    """One list per vertex of its neighbours above, whichever the direction."""
    size = up.size + down.size
    begin = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
    head = np.empty(begin[-1], np.int32)
    for lists, first in ((up, begin[:-1]), (down, begin[:-1] + up.size)):
        at = np.arange(lists.size.sum()) - np.repeat(np.cumsum(lists.size, dtype=np.int64) - lists.size, lists.size)
        head[np.repeat(first, lists.size) + at] = lists.head[np.repeat(lists.begin, lists.size) + at]
    return begin[:-1], size, head
