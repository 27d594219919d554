"""Whether CSR arrays fit together, in one pass over the edges: searches take their numbers for
addresses unchecked.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from . import threads
from .atomics import atomic_add
from .checksum import mix_one
from .compiled import njit
from .edges import Edges

_BLOCKS = 256  # blocks into which the vertices are divided; threads take one after the other
# Kinds of faults, as columns of ``faults``: a target that is no vertex, targets that do not ascend
# or are the vertex itself, and a weight that is infinite, NaN or -0.0.
_OUT_OF_RANGE, _OUT_OF_ORDER, _WRONG_WEIGHT = range(3)
_NO_WEIGHTS = np.zeros(0, np.int32)  # in place of the weights of a graph without weights


class _Rules(NamedTuple):
    """What weights must not be, as bits, and how edges are hashed."""

    # infinity, negative_zero: the bits of these floats, as integers; 0 if weights are no floats. A
    # float that has all bits of infinity is infinite or NaN.
    infinity: int
    negative_zero: int
    is_float: bool  # whether weights are floats; integers may be any
    key: np.uint64  # random, so that no graph can be made whose fault goes unnoticed
    both_ways: bool  # whether each edge must be there in both directions


def find_fault(offsets, targets, weights, both_ways: bool) -> str:
    """Return what is wrong with CSR arrays in host memory, as a clause for an error; an empty text
    if they fit together. ``weights`` may be None.

    Offsets begin at 0, never fall and end at the number of edges. Targets are vertices, ascend
    within a row, and none is its own vertex. Float weights are finite and not -0.0. If
    ``both_ways``, every edge must also be there in the other direction, with the same weight: sums
    of hashes are compared, which a random key protects, so a fault goes unnoticed with a chance of
    2^-64.
    """
    for name, array in (("offsets", offsets), ("targets", targets), ("weights", weights)):
        if array is not None and not (array.dtype.isnative and array.flags.c_contiguous):
            return f"{name} are not in the byte order and layout of this machine"

    place = int(_first_wrong_offset(offsets, targets.size))
    if place >= 0:
        return (
            f"offsets[{place}] is {offsets[place]}: offsets begin at 0, "
            f"never fall and end at {targets.size}"
        )

    # Weights are compared as bits, so that code is compiled once per width.
    bits = _NO_WEIGHTS
    infinity = 0
    negative_zero = 0
    is_float = False
    if weights is not None:
        is_float = weights.dtype.kind == "f"
        bits = weights.view(f"i{weights.itemsize}")
    if is_float:
        patterns = np.array([np.inf, -0.0], weights.dtype).view(bits.dtype)
        infinity = int(patterns[0])
        negative_zero = int(patterns[1])

    key = np.uint64(secrets.randbits(64))
    # Each block writes the number of a vertex or an edge with each kind of fault, or -1, and a sum
    # of hashes.
    faults = np.full((_BLOCKS, 3), -1, np.int64)
    balance = np.zeros(_BLOCKS, np.uint64)
    rules = _Rules(infinity, negative_zero, is_float, key, both_ways)
    edges = Edges(offsets, targets, bits)
    threads.run(_find_faults, _BLOCKS, edges, rules, faults, balance)

    out_of_range, out_of_order, wrong_weight = faults.max(axis=0).tolist()
    if out_of_range >= 0:
        return f"vertex {out_of_range} has a target that is none of the {offsets.size - 1} vertices"
    if out_of_order >= 0:
        return f"the targets of vertex {out_of_order} do not ascend, or it is its own target"
    if wrong_weight >= 0:
        return (
            f"weights[{wrong_weight}] is {weights[wrong_weight]}: weights are finite and not -0.0"
        )
    if balance.sum():
        return "an undirected edge is not there both ways with one weight"
    return ""


@njit(cache=True)
def _first_wrong_offset(offsets, n_edges):
    """Return the position of the first offset that breaks the rules of ``find_fault``: offsets
    begin at 0, never fall and end at ``n_edges``. Return -1 if none does.
    """
    if offsets[0] != 0:
        return 0
    for v in range(1, offsets.size):
        if offsets[v] < offsets[v - 1] or offsets[v] > n_edges:
            return v
    if offsets[offsets.size - 1] == n_edges:
        return -1
    return offsets.size - 1


@njit(cache=True, nogil=True)
def _find_faults(next_block, n_blocks, edges, rules, faults, balance):
    """Check all edges, block of vertices by block, and write the faults of each block.

    ``edges`` are ``Edges`` with weights as integers of the same bits, and ``rules`` are ``_Rules``.
    ``faults``, int64 of shape (n_blocks, 3), receives the number of a vertex, or for a wrong weight
    of an edge, per kind of fault; it is -1 before. ``balance``, uint64 of shape (n_blocks,),
    receives a sum of hashes, modulo 2^64; over all blocks it is 0 if all edges go both ways.
    Threads take blocks from the counter ``next_block``, until it is ``n_blocks``.
    """
    offsets = edges.offsets
    targets = edges.targets
    bits = edges.weights
    n = offsets.size - 1
    key = rules.key
    block = atomic_add(next_block, 0, 1)
    while block < n_blocks:
        total = np.uint64(0)
        for v in range(n * block // n_blocks, n * (block + 1) // n_blocks):
            last = np.int64(-1)  # the target before in this list, which ascends
            for e in range(offsets[v], offsets[v + 1]):
                u = np.int64(targets[e])
                if u < 0 or u >= n:
                    faults[block, _OUT_OF_RANGE] = v
                elif u <= last or u == v:
                    faults[block, _OUT_OF_ORDER] = v
                last = u

                weight = key  # the part of the hash that stands for the weight
                if bits.size:
                    if rules.is_float and (
                        (bits[e] & rules.infinity) == rules.infinity
                        or bits[e] == rules.negative_zero
                    ):
                        faults[block, _WRONG_WEIGHT] = e
                    weight = mix_one(np.uint64(bits[e]) + key)

                # The edge adds its hash, and takes away that of the edge in the other direction.
                if rules.both_ways:
                    tail = np.uint64(v)
                    head = np.uint64(u)
                    total += mix_one(mix_one(tail ^ key) + head + weight)
                    total -= mix_one(mix_one(head ^ key) + tail + weight)
        balance[block] = total
        block = atomic_add(next_block, 0, 1)
