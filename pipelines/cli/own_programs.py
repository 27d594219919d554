"""Results of a run that have a program of their own, since no search from sources makes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

OWN_PROGRAMS = ("assignment",)  # names of results, and of modules in ``pipelines``


def own_program(words: Sequence[str]) -> str | None:
    """Return the name of the result, and of its module, if the words of a command line ask for one
    that has a program of its own. Return None for results of searches.
    """
    # both spellings: --result=NAME and --result NAME
    results = [word.removeprefix("--result=") for word in words if word.startswith("--result=")]
    results += [value for flag, value in pairwise(words) if flag == "--result"]
    return next((name for name in results if name in OWN_PROGRAMS), None)
