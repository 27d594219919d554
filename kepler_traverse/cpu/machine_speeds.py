"""Loops that measure what a core does: loads that wait for each other, and simple steps."""

from __future__ import annotations

from .compiled import njit


@njit(cache=True)
def chase(chain, begin, loads):
    """Follow a chain through a table: ``chain[i]`` is the entry after entry ``i``. Each of the
    ``loads`` steps, from entry ``begin`` on, waits for the step before. Return the entry at which
    the last step ends.
    """
    place = begin
    for _ in range(loads):
        place = chain[place]
    return place


@njit(cache=True)
def walk(steps):
    """Take ``steps`` steps that wait for each other, without memory: a product, a sum, and a choice
    by the outcome. Return the last outcome, so that no compiler leaves the steps out.

    The product is that of a random generator, so that no branch predictor knows the choice.
    """
    x = 1
    odd = 0
    for _ in range(steps):
        x = x * 6364136223846793005 + 1442695040888963407
        if x & 64:
            odd += 1
            x ^= odd
    return x
