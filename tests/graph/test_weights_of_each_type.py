"""Each type in a column that is called as a weight is: it is the weight, or a text names it. Nothing is passed over."""

from __future__ import annotations

import datetime
import decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges, read_graph, sssp, with_weights
from kepler_traverse.errors import EdgeListError, EdgeListWarning

ENDS = {"u": [1, 2, 1], "v": [2, 3, 3]}
TWO_DAYS = datetime.datetime(2026, 1, 2)
TYPED = {
    **{
        name: pa.array([1, 2, 3], name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{name: pa.array([1.0, 2.0, 3.0], name) for name in ("float32", "float64")},
    "float16": pa.array(np.array([1, 2, 3], np.float16)),
    "dictionary": pa.array([1, 2, 3]).dictionary_encode(),
    **{
        f"duration[{unit}]": pa.array([1, 2, 3], pa.duration(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "interval": pa.array([pa.MonthDayNano([0, 1, 10**9])] * 3),
    "string": pa.array(["1", "2", "3"]),
    "large_string": pa.array(["1", "2", "3"], pa.large_string()),
    "string_view": pa.array(["1", "2", "3"], pa.string_view()),
    "binary": pa.array([b"1", b"2", b"3"]),
    "bool": pa.array([True, False, True]),
    "decimal": pa.array([decimal.Decimal("1.5")] * 3),
    "date32": pa.array([1, 2, 3], pa.date32()),
    "date64": pa.array([1, 2, 3], pa.date64()),
    "time32": pa.array([1, 2, 3], pa.time32("s")),
    "time64": pa.array([1, 2, 3], pa.time64("us")),
    "timestamp": pa.array([TWO_DAYS] * 3),
    "list": pa.array([[1], [2], [3]]),
    "struct": pa.array([{"a": 1}] * 3),
    "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(3),
}
NUMBERS = [
    name for name in TYPED if name.startswith(("int", "uint", "float", "dictionary", "duration"))
]
NAMES = ("weight", "travel_time", "minutes")


def each_way(table, tmp_path):
    """The table in memory and in files, where these can hold it."""
    yield lambda **options: graph_from_edges(table, **options)
    pyarrow.feather.write_feather(table, tmp_path / "e.feather", compression="uncompressed")
    yield lambda **options: read_graph(tmp_path / "e.feather", device="cpu", **options)
    if not any(pa.types.is_interval(kind) or kind == pa.float16() for kind in table.schema.types):
        pq.write_table(table, tmp_path / "e.parquet")
        yield lambda **options: read_graph(tmp_path / "e.parquet", device="cpu", **options)


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_with_the_name_of_a_weight_is_used_or_named(tmp_path, kind, name):
    for read in each_way(pa.table({**ENDS, name: TYPED[kind]}), tmp_path):
        if kind in NUMBERS:
            assert read().report.weight_column == name
            continue
        with pytest.raises(EdgeListError, match=name):
            read()
        assert read(weighted=False).weights is None


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("name", NAMES)
def test_beside_a_second_candidate_it_is_no_less(tmp_path, kind, name):
    for read in each_way(pa.table({**ENDS, name: TYPED[kind], "cost": [7, 8, 9]}), tmp_path):
        with pytest.raises(EdgeListError, match=name):
            read()
        chosen = (
            {"weight": "cost"}
            if "graph_from_edges" in read.__code__.co_names
            else {"weight_column": "cost"}
        )
        assert read(**chosen).weights.tolist() == [7, 9, 8]


def test_a_time_may_be_a_point_in_time():
    table = pa.table({**ENDS, "time": TYPED["timestamp"]})
    with pytest.warns(EdgeListWarning, match="'time' holds dates or times of day"):
        assert graph_from_edges(table).report.hints
    assert (
        graph_from_edges(table.append_column("length", pa.array([1, 2, 3]))).report.weight_column
        == "length"
    )


MINUTES = [1, 1, 9]
DURATIONS = {
    "pandas": lambda: pd.Series(pd.to_timedelta(MINUTES, unit="min")),
    "pandas, microseconds": lambda: pd.Series(pd.to_timedelta(MINUTES, unit="min")).astype(
        "timedelta64[us]"
    ),
    "pandas with memory of Arrow": lambda: pd.Series(pd.to_timedelta(MINUTES, unit="min")).astype(
        "duration[ns][pyarrow]"
    ),
    "pandas objects": lambda: pd.Series(
        [datetime.timedelta(minutes=m) for m in MINUTES], dtype=object
    ),
    "numpy": lambda: np.array(MINUTES, "timedelta64[m]").astype("timedelta64[s]"),
    "numpy, minutes": lambda: np.array(MINUTES, "timedelta64[m]"),
    "arrow": lambda: pa.array([60 * m for m in MINUTES], pa.duration("s")),
    "interval": lambda: pa.array([pa.MonthDayNano([0, 0, 60 * m * 10**9]) for m in MINUTES]),
    "list": lambda: [datetime.timedelta(minutes=m) for m in MINUTES],
}


@pytest.mark.parametrize("kind", DURATIONS)
def test_durations_are_seconds(kind):
    column = DURATIONS[kind]()
    for graph in (
        graph_from_edges({**ENDS, "travel_time": column}),
        graph_from_edges(ENDS["u"], ENDS["v"], column),
        with_weights(graph_from_edges({**ENDS}, edge_ids=True), column),
    ):
        assert graph.integer_weights
        assert sssp(graph, 1)["distance"].tolist() == [0, 60, 120]
    if kind.startswith("pandas"):
        assert graph_from_edges(pd.DataFrame({**ENDS, "duration": column})).weights.tolist() == [
            60,
            540,
            60,
        ]


def test_two_days_of_an_interval_have_48_hours_and_months_no_length():
    days = pa.array([pa.MonthDayNano([0, 2, -5 * 10**8])] * 3)
    assert graph_from_edges({**ENDS, "time": days}).weights.tolist() == [172799.5] * 3
    months = pa.array(
        [pa.MonthDayNano([0, 2, 0]), pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 0, 0])]
    )
    with pytest.raises(
        EdgeListError, match="row 1: weight column 'time' has an interval of 1 months"
    ):
        graph_from_edges(pa.table({**ENDS, "time": months}))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("order", [("0", "1"), ("1", "0")])
def test_files_of_durations_and_of_numbers_are_not_read_together(suffix, order, tmp_path):
    durations, numbers = (tmp_path / f"{name}.{suffix}" for name in order)
    write = {"parquet": pq.write_table, "arrow": pyarrow.feather.write_feather}[suffix]
    write(pa.table({**ENDS, "time": pa.array([1, 2, 3], pa.duration("ms"))}), durations)
    write(pa.table({**ENDS, "time": [1, 2, 3]}), numbers)
    message = rf"{durations.name}: column 'time' holds durations.*numbers in .*{numbers.name}"
    with pytest.raises(EdgeListError, match=message):
        read_graph(tmp_path)


def test_a_missing_duration_is_refused_with_its_row():
    table = pa.table({**ENDS, "time": pa.array([1, None, 3], pa.duration("s"))})
    with pytest.raises(EdgeListError, match="row 1: weight column 'time' has 1 missing value"):
        graph_from_edges(table)
    with pytest.raises(EdgeListError, match="weight holds 1 nulls"):
        graph_from_edges(ENDS["u"], ENDS["v"], np.array([1, "NaT", 2], "timedelta64[s]"))


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_seconds_are_exact_or_the_nearest_float(values, unit):
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    src = list(range(len(values)))
    graph = graph_from_edges(
        pa.table({"u": src, "v": [u + 1 for u in src], "w": pa.array(values, pa.duration(unit))})
    )
    for value, weight in zip(values, graph.weights.tolist(), strict=True):
        exact = Fraction(value, per)
        if graph.integer_weights:
            assert weight == exact
        else:
            assert weight == float(exact)


def test_parts_in_other_units_are_one_edge_list(tmp_path):
    pieces = [
        (pa.duration("s"), [60]),
        (pa.duration("ms"), [1500]),
        (pa.duration("ns"), [540 * 10**9]),
    ]
    for i, (kind, values) in enumerate(pieces):
        row = {"u": [ENDS["u"][i]], "v": [ENDS["v"][i]], "time": pa.array(values, kind)}
        pyarrow.feather.write_feather(pa.table(row), tmp_path / f"{i}.feather")
    assert sorted(read_graph(tmp_path).weights.tolist()) == [1.5, 60.0, 540.0]
