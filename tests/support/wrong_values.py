"""Values for any argument: wrong ones, and unusual ones that some arguments accept."""

import array
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

NOTHING = object()  # means nothing that any argument may be


@dataclass
class Value:
    """A value, made anew for each call, and the plain value that it means exactly."""

    name: str
    make: object
    means: object = NOTHING


class Evil:
    """An object that no conversion accepts."""

    def __repr__(self):
        raise RuntimeError("no text")

    def __array__(self, *_, **__):
        raise RuntimeError("no array")


def values():
    """Wrong values, and odd ones that are right for some arguments."""
    masked = np.ma.array([1, 2], mask=[False, True])
    yield Value("None", lambda: None, None)
    for plain in (
        True,
        False,
        0,
        1,
        -1,
        2,
        10**400,
        2**63,
        0.5,
        1.0,
        -1.0,
        float("inf"),
        float("nan"),
        1j,
        "",
        "1",
        "no",
        "in",
        "home",
    ):
        yield Value(repr(plain)[:12], lambda plain=plain: plain, plain)
    yield Value("surrogate", lambda: "\ud800", "\ud800")
    yield Value("NUL", lambda: "a\0b", "a\0b")
    yield Value("bytes", lambda: b"1")
    yield Value("object", object)
    yield Value("evil", Evil)
    yield Value("lambda", lambda: len)
    yield Value("Decimal", lambda: Decimal("1"))
    yield Value("Fraction", lambda: Fraction(1, 3))
    yield Value("datetime", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    yield Value("Path", lambda: Path("no/such/file"))
    yield Value("dict", lambda: {1: 2, 2: 3}, {1: 2, 2: 3})
    yield Value("empty dict", dict, {})
    yield Value("set", lambda: {1}, [1])
    yield Value("np.bool", lambda: np.True_, True)
    yield Value("np.int64", lambda: np.int64(1), 1)
    yield Value("np.float32", lambda: np.float32(0.5), 0.5)
    yield Value("np.longdouble", lambda: np.longdouble("0.1"))
    yield Value("np.datetime64", lambda: np.datetime64(1, "ns"))
    yield Value("np.timedelta64", lambda: np.timedelta64(1, "ns"))
    yield Value("time spans", lambda: [np.timedelta64(1, "ns")])
    for plain in (
        [],
        [1],
        [1, 2],
        [1, 1],
        [7],
        [1, None],
        [1, 2.5],
        [0.5, 1.5],
        [True, 2],
        [1, 10**400],
        ["1", "2"],
        [[1], [2]],
        [-1, 2],
    ):
        yield Value(f"list {plain}"[:24], lambda plain=plain: list(plain), plain)
    yield Value("surrogates", lambda: ["a", "\udcff"], ["a", "\udcff"])
    yield Value("strings", lambda: ["b", "a"], ["b", "a"])
    yield Value("tuple", lambda: (1, 2), [1, 2])
    yield Value("range", lambda: range(1, 3), [1, 2])
    yield Value("generator", lambda: (i for i in (1, 2)), [1, 2])
    yield Value("iter of strings", lambda: iter("ab"), ["a", "b"])
    for kind in ("i1", "u8", ">i4"):
        yield Value(f"array {kind}", lambda kind=kind: np.array([1, 2], kind), [1, 2])
    yield Value("strided array", lambda: np.array([1, 9, 2, 9])[::2], [1, 2])
    yield Value("floats", lambda: np.array([1.0, 2.0]), [1.0, 2.0])
    yield Value("halves", lambda: np.array([0.5, 1.5], np.float16), [0.5, 1.5])
    yield Value("bools", lambda: np.array([True, False]), [True, False])
    yield Value("objects", lambda: np.array([1, 2], object), [1, 2])
    yield Value("dates", lambda: np.array([1, 2], "M8[ns]"))
    yield Value("complex array", lambda: np.array([1j, 2j]))
    yield Value("0-d array", lambda: np.array(1))
    yield Value("2-d array", lambda: np.array([[1, 2], [3, 4]]))
    yield Value("records", lambda: np.zeros(2, [("a", "i8")]))
    yield Value("masked", lambda: masked, [1, None])
    yield Value("mask of nothing", lambda: np.ma.array([1, 2], mask=[False, False]), [1, 2])
    yield Value("array.array", lambda: array.array("q", [1, 2]), [1, 2])
    yield Value("Series", lambda: pd.Series([1, 2]), [1, 2])
    yield Value("Series Int64", lambda: pd.Series([1, 2], dtype="Int64"), [1, 2])
    yield Value("Series with NA", lambda: pd.Series([1, None], dtype="Int64"), [1, None])
    yield Value("Series of strings", lambda: pd.Series(["b", "a"]), ["b", "a"])
    yield Value("Index", lambda: pd.Index([1, 2]), [1, 2])
    yield Value(
        "DataFrame", lambda: pd.DataFrame({"vertex": [1], "distance": ["x"], "predecessor": [1]})
    )
    yield Value("pyarrow", lambda: pa.array([1, 2]), [1, 2])
    yield Value("pyarrow null", lambda: pa.array([1, None]), [1, None])
    yield Value("pyarrow chunks", lambda: pa.chunked_array([["b"], ["a"]]), ["b", "a"])
    yield Value("table", lambda: pa.table({"a": [1]}))
    yield Value("infinite list", lambda: [float("inf"), 1.0], [float("inf"), 1.0])
