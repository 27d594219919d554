"""What a run of the tests without ``--all`` leaves out.

A whole test is left out by ``@pytest.mark.exhaustive``, values of a parametrization by ``few`` and ``pairs``.
"""

import itertools
from collections.abc import Iterable, Sequence

ALL = False  # set by conftest.py before modules with tests are imported


def few(cases: Iterable, count: int) -> list:
    """Return ``count`` of the cases, evenly spread from the first on; with ``--all`` every case."""
    cases = list(cases)
    if ALL or len(cases) <= count:
        return cases
    return [cases[index * len(cases) // count] for index in range(count)]


def by_turns(one: Iterable, other: Sequence) -> list[tuple]:
    """Return each member of ``one`` with one of ``other``, by turns; with ``--all`` with each of them."""
    if ALL:
        return list(itertools.product(one, other))
    return list(zip(one, itertools.cycle(other)))


def examples(count: int) -> int:
    """Return how many examples Hypothesis generates for a test that has ``count`` with ``--all``."""
    return count if ALL else -(-count // 8)


def pairs(*axes: Sequence) -> list[tuple]:
    """Return members of the product of ``axes`` so that any two values of two axes occur together.

    With ``--all`` every member.
    """
    product = list(itertools.product(*axes))
    if ALL:
        return product
    places = list(itertools.combinations(range(len(axes)), 2))
    indices = list(itertools.product(*map(range, map(len, axes))))
    missing = {
        (place, tuple(member[axis] for axis in place)) for member in indices for place in places
    }
    chosen = []
    while missing:
        covers = [
            sum((place, (member[place[0]], member[place[1]])) in missing for place in places)
            for member in indices
        ]
        best = covers.index(max(covers))
        missing -= {(place, (indices[best][place[0]], indices[best][place[1]])) for place in places}
        chosen.append(product[best])
    return chosen
