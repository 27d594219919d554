"""What runs without --all: values for every pair of parameters, and generated examples, however slow the machine is."""

import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiers


def test_pairs_hold_any_two_values_of_two_axes(monkeypatch):
    axes = ("abc", range(4), (True, False), "xyz")
    whole = set(itertools.product(*axes))
    monkeypatch.setattr(tiers, "ALL", False)
    chosen = tiers.pairs(*axes)
    assert set(chosen) <= whole
    assert len(chosen) < len(whole) / 3
    for one, other in itertools.combinations(range(len(axes)), 2):
        assert {(case[one], case[other]) for case in chosen} == set(
            itertools.product(axes[one], axes[other])
        )
    assert tiers.few(range(10), 3) == [0, 3, 6]
    assert tiers.by_turns("abc", [1, 2]) == [("a", 1), ("b", 2), ("c", 1)]
    monkeypatch.setattr(tiers, "ALL", True)
    assert set(tiers.pairs(*axes)) == whole
    assert tiers.few(range(10), 3) == list(range(10))
    assert tiers.by_turns("abc", [1, 2]) == list(itertools.product("abc", [1, 2]))


def test_a_slow_machine_fails_no_test_of_generated_examples(monkeypatch):
    seconds = itertools.count(step=10)
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(seconds)))
    drawn = []

    @given(st.integers())
    def draws(number):
        drawn.append(number)

    draws()
    assert drawn
