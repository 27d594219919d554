"""Containers for ids, numbers and tables: what a user may hold them in, and what comes of each.

A form is a name, a value and what must come of it: the result of the plain form (``EQUAL``), an error of this library
(``REFUSED``), or either of both (``EITHER``). No form may have another result.
"""

from __future__ import annotations

import array
import decimal
import enum
import importlib.util
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

EQUAL, REFUSED, EITHER = "equal", "refused", "either"
LIBRARIES = [
    name
    for name in ("polars", "duckdb", "dask", "cudf")
    if importlib.util.find_spec(name) is not None
]


class Form(NamedTuple):
    name: str
    value: Any
    must: str = EQUAL
    # the argument that the values are for, in a container of its own; None: its plain form
    partner: Any = None


class Text(str):
    """A class derived from ``str``."""


class Number(int):
    """A class derived from ``int``."""


def _members(values: list[Any]) -> list[Any]:
    kind = enum.StrEnum if isinstance(values[0], str) else enum.IntEnum
    distinct = dict.fromkeys(values)
    members = kind("Members", {f"m{i}": value for i, value in enumerate(distinct)})
    return [members(value) for value in values]


def columns(values: list[Any]) -> list[Form]:
    """Columns without labels."""
    forms = [
        Form("list", list(values)),
        Form("tuple", tuple(values)),
        Form("array", np.array(values)),
        Form("array of objects", np.array(values, object)),
        Form("strided array", np.repeat(np.array(values), 2)[::2]),
        Form("Arrow array", pa.array(values)),
        Form("Arrow slice", pa.array([values[0], *values])[1:]),
        Form("Arrow chunks", pa.chunked_array([values[:1], values[1:]], pa.array(values).type)),
        Form("Arrow dictionary", pa.array(values).dictionary_encode(), EITHER),
        Form("Arrow scalars", list(pa.array(values))),
        Form("NumPy scalars", list(np.array(values))),
        Form("Series", pd.Series(values)),
        Form("Series of Arrow", pd.Series(values, dtype=pd.ArrowDtype(pa.array(values).type))),
        Form("Series of categories", pd.Series(values).astype("category"), EITHER),
        Form("Index", pd.Index(values)),
        Form("generator", (value for value in values), EITHER),
        Form("dict keys", dict.fromkeys(values).keys(), EITHER),
        Form("dict values", dict(enumerate(values)).values(), EITHER),
    ]
    if isinstance(values[0], str):
        forms += [
            Form("subclass", [Text(value) for value in values]),
            Form("StrEnum", _members(values)),
            Form("large strings", pa.array(values, pa.large_string())),
            Form("string views", pa.array(values, pa.string_view()), EITHER),
            Form("string array", pd.array(values, "string")),
            Form("StringDType", np.array(values, np.dtypes.StringDType())),
        ]
    elif isinstance(values[0], int):
        forms += [
            Form("subclass", [Number(value) for value in values]),
            Form("IntEnum", _members(values)),
            Form("int32", np.array(values, np.int32)),
            *([Form("uint64", np.array(values, np.uint64))] if min(values) >= 0 else []),
            Form("other byte order", np.array(values, ">i8")),
            Form("array.array", array.array("q", values)),
            Form("Int64", pd.Series(values, dtype="Int64")),
            Form("masked, but nothing", np.ma.array(values, mask=False)),
        ]
    if "polars" in LIBRARIES:
        import polars

        forms.append(Form("polars Series", polars.Series(values)))
    return forms


def no_ids(values: list[Any], must_be_known: bool = True) -> list[Form]:
    """Columns that hold no ids of a graph that has ``values``, though some are equal after a cast."""
    other = (
        [str(value) for value in values] if isinstance(values[0], int) else list(range(len(values)))
    )
    wrong: list[Any] = [
        Form("ids of the other type", other),
        Form("array of the other type", np.array(other)),
        Form("one None", [*values[1:], None]),
        Form(
            "Series with a null",
            pd.Series(
                [*values[1:], None], dtype="string" if isinstance(values[0], str) else "Int64"
            ),
        ),
        Form("Arrow null", pa.array([*values[1:], None])),
        Form("NaN", [*values[1:], float("nan")]),
        Form("booleans", [True] * len(values)),
        Form("nested", [[value] for value in values]),
        Form("bytes", [b"a"] * len(values)),
        Form("a number", 3.5),
        Form("an object", object()),
        *(
            [Form("unknown ids", ["zz"] if isinstance(values[0], str) else [987654321])]
            if must_be_known
            else []
        ),
    ]
    if isinstance(values[0], int):
        wrong += [
            Form("floats", [float(value) for value in values]),
            Form("array of floats", np.array(values, float)),
            Form("Series of floats", pd.Series(values, dtype=float)),
            Form("Arrow floats", pa.array(values, pa.float64())),
            Form("decimals", [decimal.Decimal(value) for value in values]),
        ]
    return [form._replace(must=REFUSED) for form in wrong]


def no_numbers(values: list[Any], may_be_null: bool = False) -> list[Form]:
    """Columns that do not hold one number for each of ``values``. ``may_be_null``: without those that lack one alone."""
    nulls: list[Any] = [
        Form("one None", [*values[1:], None]),
        Form("Series with a null", pd.Series([*values[1:], None], dtype="Int64")),
        Form("Arrow null", pa.array([*values[1:], None])),
        Form("NaN", [*values[1:], float("nan")]),
        Form("masked", np.ma.array(values, mask=[True] + [False] * (len(values) - 1))),
    ]
    wrong: list[Any] = [
        Form("texts", [str(value) for value in values]),
        *([] if may_be_null else nulls),
        Form("booleans", np.ones(len(values), bool)),
        Form("dates", np.array(values, "M8[s]")),
        Form("too few", list(values[1:])),
        Form("too many", [*values, values[0]]),
        Form("mapping", dict(enumerate(values))),
        Form("object", object()),
        Form("complex", np.array(values, complex)),
    ]
    return [form._replace(must=REFUSED) for form in wrong]


def one_is_null(values: list[int]) -> list[Form]:
    """Columns of integers of which the one behind ``values`` is missing."""
    column = [*values, None]
    forms = [
        Form("one None", column),
        Form("array of objects", np.array(column, object)),
        Form("Series with a null", pd.Series(column, dtype="Int64")),
        Form("Series of Arrow", pd.Series(column, dtype=pd.ArrowDtype(pa.int64()))),
        Form("Arrow null", pa.array(column)),
        Form("Arrow chunks", pa.chunked_array([column[:1], column[1:]], pa.int64())),
        Form("masked", np.ma.array([*values, 1], mask=[False] * len(values) + [True])),
    ]
    if "polars" in LIBRARIES:
        import polars

        forms.append(Form("polars Series", polars.Series(column)))
    return forms


def one_is_not_finite(values: list[int]) -> list[Form]:
    """Columns of floats of which the one behind ``values`` is missing or infinite."""
    floats = [float(value) for value in values]
    forms = []
    for name, last in {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf}.items():
        column = [*floats, last]
        forms += [
            Form(f"{name} in a list", column),
            Form(f"{name} in an array", np.array(column)),
            Form(f"{name} in a Series", pd.Series(column)),
            Form(f"{name} in Arrow", pa.array(column)),
        ]
    return [
        *forms,
        Form("one None", [*floats, None]),
        Form("Series with a null", pd.Series([*floats, None], dtype="Float64")),
        Form("Arrow null", pa.array([*floats, None])),
    ]


def indexes(n: int) -> dict[str, pd.Index]:
    """Labels of n rows."""
    return {
        "shuffled": pd.Index(np.roll(np.arange(n), 1)),
        "filtered": pd.Index(np.arange(n) * 5 + 1000),
        "text": pd.Index([f"row {n - i}" for i in range(n)]),
        "named": pd.Index([f"row {n - i}" for i in range(n)], name="row"),
        "levels": pd.MultiIndex.from_arrays(
            [np.arange(n)[::-1], list("abcdefgh"[:n])], names=["row", "key"]
        ),
    }


def labelled(values: list[Any], partner: list[Any], by_ids: bool) -> list[Form]:
    """Series that mean ``values`` for ``partner`` by their labels. ``by_ids``: labels may be ids of vertices."""
    n = len(values)
    turned = np.roll(np.arange(n), 1)
    forms = [Form("default, partner default", pd.Series(values), EQUAL, pd.Series(partner))]
    for name, index in indexes(n).items():
        mine, theirs = pd.Series(values, index), pd.Series(partner, index)
        forms += [
            Form(f"{name}, as the partner", mine, EQUAL, theirs),
            Form(f"{name}, in another order", mine.iloc[turned], EITHER, theirs),
            Form(
                f"default, partner {name}",
                pd.Series(values),
                EITHER if name == "shuffled" else EQUAL,
                theirs,
            ),
        ]
        if name == "shuffled":
            continue
        forms.append(
            Form(
                f"{name}, other labels than the partner",
                mine,
                EITHER,
                pd.Series(partner, indexes(n)["shuffled"]),
            )
        )
        forms.append(Form(f"{name}, partner without labels", mine, EITHER, list(partner)))
    forms.append(
        Form(
            "in another order than default",
            pd.Series(values).iloc[turned],
            EITHER,
            pd.Series(partner),
        )
    )
    if by_ids:
        of_ids = pd.Series(values, partner)
        distinct = of_ids[~of_ids.index.duplicated()]
        forms += [
            Form("by ids", distinct.iloc[::-1], EQUAL, list(partner)),
            Form("by ids, partner an Index", distinct.iloc[::-1], EQUAL, pd.Index(partner)),
            Form("by ids, as the partner's", of_ids, EQUAL, list(partner)),
            Form("one id is missing", distinct.iloc[1:], REFUSED, list(partner)),
        ]
    return forms


def frames(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """A table in each library; data frames of pandas have an index that says nothing."""
    pandas = pd.DataFrame(table)
    arrow = pa.table(table)
    found: list[tuple[str, Any]] = [
        ("mapping", dict(table)),
        ("mapping of arrays", {name: np.array(column) for name, column in table.items()}),
        ("pandas", pandas),
        ("pandas of Arrow", pandas.convert_dtypes(dtype_backend="pyarrow")),
        ("Arrow", arrow),
        ("Arrow batch", arrow.to_batches()[0]),
    ]
    if "polars" in LIBRARIES:
        import polars

        found += [
            ("polars", polars.from_arrow(arrow)),
            ("polars lazy", polars.from_arrow(arrow).lazy()),
        ]
    if "duckdb" in LIBRARIES:
        import duckdb

        found.append(("DuckDB", duckdb.from_arrow(arrow)))
    if "dask" in LIBRARIES and importlib.util.find_spec("dask.dataframe"):
        import dask.dataframe

        found.append(("Dask", dask.dataframe.from_pandas(pandas, npartitions=1)))
    return found


def vertex_tables(ids: list[Any], table: dict[str, list[Any]]) -> list[Form]:
    """Tables of vertices in each library, with the ids in a column or an index of each name, and not in ascending order."""
    forms = []
    for name, must in (
        ("vertex", EQUAL),
        ("Vertex", EQUAL),
        ("node_id", EQUAL),
        ("id", EQUAL),
        ("osmid", REFUSED),
        ("stop_id", REFUSED),
        ("junction", REFUSED),
    ):
        for library, frame in frames({name: ids, **table}):
            forms.append(Form(f"{library}, column {name}", frame, must))
    by_index = pd.DataFrame(table, ids)
    forms += [
        Form("index without a name", by_index),
        Form("index osmid", by_index.rename_axis("osmid")),
        Form("index vertex", by_index.rename_axis("vertex")),
        Form(
            "leftover index beside a column",
            pd.DataFrame({"vertex": ids, **table}, indexes(len(ids))["filtered"]),
        ),
        Form("two columns of ids", pd.DataFrame({"node": ids, "id": ids, **table}), REFUSED),
        Form(
            "index vertex and column vertex",
            pd.DataFrame({"vertex": ids, **table}, pd.Index(ids, name="vertex")),
            REFUSED,
        ),
        Form("index of positions", pd.DataFrame(table, indexes(len(ids))["filtered"]), REFUSED),
        Form("index of text", pd.DataFrame(table, indexes(len(ids))["text"]), REFUSED),
        Form("no ids at all", pd.DataFrame(table), REFUSED),
        Form("no ids, Arrow", pa.table(table), REFUSED),
        Form("a vertex twice", pd.DataFrame({"vertex": [ids[0], *ids[:-1]], **table}), REFUSED),
        Form("a vertex is missing", pd.DataFrame({"vertex": [*ids[:-1], None], **table}), REFUSED),
        Form("not a table", 5, REFUSED),
    ]
    if isinstance(ids[0], int):
        forms += [
            Form("ids as text", pd.DataFrame({"vertex": list(map(str, ids)), **table}), REFUSED),
            Form(
                "ids as floats", pd.DataFrame({"vertex": [float(i) for i in ids], **table}), REFUSED
            ),
            Form(
                "ids as floats, Arrow",
                pa.table({"vertex": pa.array(ids, pa.float64()), **table}),
                REFUSED,
            ),
            Form("index of floats", pd.DataFrame(table, pd.Index(ids, dtype=float)), REFUSED),
            Form(
                "structured array",
                np.array(list(zip(ids, *table.values(), strict=True)), _record("vertex", table)),
            ),
        ]
    return forms


def point_tables(table: dict[str, list[Any]]) -> list[Form]:
    """Tables of places in each library, whose rows have any labels, and what holds no places."""
    n = len(next(iter(table.values())))
    first = next(iter(table))
    changes = {
        "a null": [None, *table[first][1:]],
        "texts": [str(each) for each in table[first]],
        "NaN": [float("nan"), *table[first][1:]],
        "infinity": [float("inf"), *table[first][1:]],
        "booleans": [True] * n,
    }
    wrong = [
        Form(f"{name} with {what}", frame, REFUSED)
        for what, column in changes.items()
        for name, frame in frames(table | {first: column})
    ]
    return [
        *(Form(name, frame) for name, frame in frames(table)),
        *(Form(f"index {name}", pd.DataFrame(table, index)) for name, index in indexes(n).items()),
        Form("more columns", pd.DataFrame(table | {"name": list("abcdefgh"[:n])})),
        Form("a column is missing", pd.DataFrame({first: table[first]}), REFUSED),
        Form("columns of two lengths", table | {first: table[first][1:]}, REFUSED),
        Form("not a table", 5, REFUSED),
        Form("array", np.zeros((n, 2)), REFUSED),
        *wrong,
    ]


def _record(ids: str, table: dict[str, list[Any]]) -> list[tuple[str, str]]:
    return [(ids, "i8"), *((name, np.array(column).dtype.str) for name, column in table.items())]


def pairs(first: list[Any], second: list[Any], are_edges: bool = False) -> list[Form]:
    """Pairs of two columns, by one argument; their number must not change what a form means.

    ``are_edges``: rows of three are edges with a weight, and an array of two rows is an ``edge_index``.
    """
    rows = list(zip(first, second, strict=True))
    frame = pd.DataFrame({"origin": first, "destination": second})
    by_levels = frame.assign(x=1).set_index(["origin", "destination"])
    lists_may_be_columns = len(rows) in ((2, 3) if are_edges else (2,))
    only_pairs = [
        Form("array of rows", np.array(rows), REFUSED),
        Form("rows of three", [(*row, row[0]) for row in rows], REFUSED),
        Form("three columns", (list(first), list(second), list(first)), REFUSED),
    ]
    return [
        *([] if are_edges else only_pairs),
        Form("columns", (list(first), list(second))),
        Form("columns of arrays", (np.array(first), np.array(second))),
        Form("columns of Arrow", (pa.array(first), pa.array(second))),
        Form("columns of one frame", (frame["origin"], frame["destination"])),
        Form(
            "columns of one filtered frame", _both(frame.set_index(indexes(len(rows))["filtered"]))
        ),
        Form("rows", rows),
        Form("rows in a tuple", tuple(rows)),
        Form("rows of an iterator", iter(rows)),
        Form("zip", zip(first, second, strict=True)),
        Form("rows of a frame", list(frame.itertuples(index=False))),
        Form(
            "rows of lists", [list(row) for row in rows], REFUSED if lists_may_be_columns else EQUAL
        ),
        *(
            []
            if lists_may_be_columns
            else [Form("lists in a tuple", tuple(map(list, rows)), REFUSED)]
        ),
        Form("one id", first[0], REFUSED),
        Form("a row without its tuple", rows[0], REFUSED),
        Form("columns of two lengths", (list(first), list(second)[1:]), REFUSED),
        Form("sets", (set(first), set(second)), REFUSED),
        Form("index of levels", by_levels.index),
        Form("frame with levels", by_levels),
        *(
            Form(f"table of {name}", table)
            for name, table in frames({"origin": first, "destination": second})
        ),
        *(
            Form(f"table of {name} u, v", table)
            for name, table in frames({"u": first, "v": second})
        ),
        Form(
            "table with three names",
            pd.DataFrame({"u": first, "v": second, "src": first, "dst": second}),
            REFUSED,
        ),
        Form("table without names", pd.DataFrame({"a": first, "b": second}), REFUSED),
    ]


def _both(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    return frame["origin"], frame["destination"]


def ends(first: list[Any], second: list[Any], leads: bool) -> list[Form]:
    """Two columns of ids beside each other: a value, and its partner. ``leads``: the rows are in the order of the value."""
    n = len(first)
    forms = [
        Form(f"{form.name}", form.value, form.must, list(second))
        for form in columns(first)
        if form.name != "dict keys"
    ]
    forms += [
        Form(f"{form.name} on the other side", list(first), form.must, form.value)
        for form in columns(second)
    ]
    for name, index in indexes(n).items():
        mine, theirs = pd.Series(first, index), pd.Series(second, index)
        forms += [
            Form(f"{name} on both sides", mine, EQUAL, theirs),
            Form(f"{name} in another order", *_turned(mine, theirs, leads)),
            Form(f"{name} beside a list", mine, EQUAL, list(second)),
        ]
    forms += [Form(form.name, form.value, REFUSED, list(second)) for form in no_ids(first)]
    return [
        form for form in forms if not (form.name.startswith("dict keys") and len(set(second)) < n)
    ]


def _turned(value: Any, partner: Any, leads: bool) -> tuple[Any, str, Any]:
    turned = np.roll(np.arange(len(value)), 1)
    return (value, EITHER, partner.iloc[turned]) if leads else (value.iloc[turned], EITHER, partner)


def numbers(values: list[Any]) -> list[Form]:
    """Lists of numbers that belong to nothing, such as cutoffs."""
    forms = [
        *columns(values),
        *(form for form in no_numbers(values) if not form.name.startswith("too")),
    ]
    return [
        form._replace(must=EITHER)
        if form.name in ("mapping", "masked", "masked, but nothing")
        else form
        for form in forms
    ]


def one_id(value: Any) -> list[Form]:
    """One id, as a value."""
    right = [
        Form("plain", value),
        Form("Arrow scalar", pa.scalar(value)),
        Form("NumPy scalar", np.array([value])[0]),
        Form("subclass", Text(value) if isinstance(value, str) else Number(value)),
        Form("member", _members([value])[0]),
        Form("of a Series", pd.Series([value]).iloc[0]),
    ]
    other = int if isinstance(value, str) else str
    wrong: list[Any] = [
        None,
        float("nan"),
        True,
        b"a",
        [value],
        (value,),
        pd.Series([value]),
        object(),
        987654321,
        "zz",
    ]
    wrong += [other(value)] if other is str else []
    wrong += [float(value)] if other is str else []
    return right + [
        Form(f"wrong {type(each).__name__} {str(each)[:9]}", each, REFUSED) for each in wrong
    ]


def one_number(value: Any) -> list[Form]:
    """One number, as a value."""
    right = [
        Form("plain", value),
        Form("NumPy scalar", np.array([value])[0]),
        Form("Arrow scalar", pa.scalar(value), EITHER),
    ]
    wrong: list[Any] = ["3", True, float("nan"), -1, b"3", {"a": 3}, object()]
    return right + [Form(f"wrong {type(each).__name__}", each, REFUSED) for each in wrong]
