"""Two weights per row, one per direction, of which either may close the row: beside a table with a
row per direction.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import (
    EdgeListError,
    InputError,
    graph_from_edges,
    read_graph,
    sssp,
    with_weights,
)
from kepler_traverse.errors import EdgeListWarning


def streets(seed, kind):
    """Return rows with costs of which some are closed, in a way that the type has."""
    rng = np.random.default_rng(seed)
    size = 60
    costs = rng.integers(0, 9, (2, size)).astype(float)
    closed = rng.random((2, size)) < 0.3
    ends = rng.integers(0, 12, (2, size)) * 5
    shut = {
        "floats": lambda: rng.choice([-1.0, -0.5, np.inf, -np.inf, np.nan], costs.shape),
        "integers": lambda: rng.choice([-1.0, -7.0], costs.shape),
        "nulls": lambda: np.full(costs.shape, np.nan),
    }[kind]()
    costs = np.where(closed, shut, costs if kind != "floats" else costs / 4)
    table = pd.DataFrame({"a": ends[0], "b": ends[1], "cost": costs[0], "back": costs[1]})
    if kind == "integers":
        table = table.astype({"cost": "int32", "back": "int64"})
    if kind == "nulls":
        table = table.astype({"cost": "Int16", "back": "Int64"})
    return table, closed


def one_row_per_direction(table, closed):
    """Return a row per open direction, and the row of the table that each is."""
    rows, numbers = [], []
    for i, row in enumerate(table.itertuples()):
        for u, v, weight, shut in (
            (row.a, row.b, row.cost, closed[0, i]),
            (row.b, row.a, row.back, closed[1, i]),
        ):
            if not shut:
                rows.append((u, v, weight))
                numbers.append(i)
    return pd.DataFrame(rows, columns=["a", "b", "w"]), np.array(numbers)


COLUMNS = {"src": "a", "dst": "b", "weight": "cost", "reverse_weight": "back"}
FILES = {f"{name}_column": column for name, column in COLUMNS.items()}


@pytest.mark.parametrize("kind", ["floats", "integers", "nulls"])
@pytest.mark.parametrize("closed_vertices", [None, [5, 20]])
def test_two_weights_are_two_rows(kind, closed_vertices, tmp_path):
    for seed in range(3):
        table, closed = streets(seed, kind)
        single, numbers = one_row_per_direction(table, closed)
        ids = sorted({*table.a, *table.b})
        weights = single.w.astype(float if kind == "floats" else int)
        more = {"closed": closed_vertices, "edge_ids": True}
        expected = graph_from_edges(
            single.assign(w=weights), src="a", dst="b", weight="w", vertices=ids, **more
        )
        graph = graph_from_edges(table, **COLUMNS, **more)
        assert graph.fingerprint == expected.fingerprint
        has_row = expected.edge_rows >= 0
        assert (graph.edge_rows[has_row] == numbers[expected.edge_rows[has_row]]).all()
        assert (graph.edge_rows[~has_row] == -1).all()
        assert graph.report.closed_directions == closed.sum()
        assert graph.report.filtered_rows == 0
        for names in (FILES, {**FILES, "where": "a >= 0"}):
            table.to_parquet(tmp_path / "t.parquet")
            table.to_csv(tmp_path / "t.csv", index=False)
            for name in ("t.parquet", "t.csv"):
                read = read_graph(tmp_path / name, device="cpu", **names, **more)
                assert read.fingerprint == graph.fingerprint, name
                assert (read.edge_rows == graph.edge_rows).all()
        columns = graph_from_edges(table.a, table.b, table.cost, reverse_weight=table.back, **more)
        assert columns.fingerprint == graph.fingerprint
        arrow = graph_from_edges(pa.Table.from_pandas(table), **COLUMNS, **more)
        assert arrow.fingerprint == graph.fingerprint


def test_only_open_rows_of_a_filter_count():
    table, closed = streets(1, "integers")
    kept = (table.a > 10).to_numpy()
    graph = graph_from_edges(table, where="a > 10", edge_ids=True, **COLUMNS)
    assert graph.report.filtered_rows == (~kept).sum()
    assert graph.report.closed_directions == closed[:, kept].sum()
    rows = table.iloc[graph.edge_rows]
    assert (rows.a > 10).all()
    only = graph_from_edges(table, only_vertices=[5, 10, 15], edge_ids=True, **COLUMNS)
    assert set(table.iloc[only.edge_rows].a) <= {5, 10, 15}


def test_two_weights_take_the_known_name_of_a_weight():
    """As a table of pgRouting has them."""
    roads = {"source": [1, 2], "target": [2, 3], "cost": [4.0, -1], "reverse_cost": [-1, 2.0]}
    graph = graph_from_edges(roads, reverse_weight="reverse_cost")
    assert sssp(graph, 3).distance.tolist() == [2.0, 0.0]
    assert graph.report.weight_column == "cost"
    assert graph.report.reverse_weight_column == "reverse_cost"
    assert graph.report.unused_columns == ()
    with pytest.warns(EdgeListWarning, match="give reverse_weight='reverse_cost'"):
        graph_from_edges({**roads, "cost": [4.0, 3.0]}, weight="cost")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directed": False}, "reverse_weight .*directed=False"),
        ({"oneway": "cost"}, "leave oneway out"),
        ({"weighted": False}, "contradict"),
        ({"reverse_weight": "a"}, "src, dst, reverse_weight must differ"),
        ({"reverse_weight": "nothing"}, "no column 'nothing', which reverse_weight names"),
    ],
)
def test_two_weights_refuse_what_contradicts(options, message):
    table, _ = streets(1, "integers")
    table = table.rename(columns={"cost": "weight"})
    given = {"src": "a", "dst": "b", "reverse_weight": "back"} | options
    with pytest.raises(InputError, match=message):
        graph_from_edges(table, **given)


def test_two_weights_name_the_row_of_a_wrong_one():
    with pytest.raises(EdgeListError, match="from src to dst, too"):
        graph_from_edges([1], [2], reverse_weight=[3])
    large = 2**63 - 1
    with pytest.raises(EdgeListError, match=str(large)):
        graph_from_edges([1, 2], [2, 3], [-1, 4], reverse_weight=[3, large])
    with pytest.raises(EdgeListError, match="does not hold exactly"):
        graph_from_edges([1], [2], [2**60 + 1], reverse_weight=[0.5])
    with pytest.raises(EdgeListError, match="reverse_weight"):
        graph_from_edges([1], [2], [1], reverse_weight=["long"])


@pytest.mark.parametrize("kind", ["uint64", "uint32", "int8", "int64"])
def test_two_weights_that_are_integers_of_two_types_stay_integers(kind):
    large = 2**53 + 1  # which float64 does not hold
    ends, there, back = ([1, 2, 3], [2, 3, 4]), [5, -1, large], np.array([7, 8, 9], kind)
    options = {"edge_ids": True}
    expected = graph_from_edges(*ends, there, reverse_weight=[7, 8, 9], **options)
    graph = graph_from_edges(*ends, there, reverse_weight=back, **options)
    assert graph.fingerprint == expected.fingerprint
    assert graph.integer_weights
    assert sssp(graph, 3, targets=[4]).distance.max() == large
    turned = graph_from_edges(*reversed(ends), back, reverse_weight=there, **options)
    assert turned.fingerprint == expected.fingerprint
    first = graph_from_edges(*ends, [1, 1, 1], reverse_weight=[1, 1, 1], **options)
    assert with_weights(first, there, reverse_weight=back).fingerprint == expected.fingerprint


def test_of_two_weights_a_closed_one_need_not_fit_the_type_of_the_other():
    far = -(2**60) - 1
    expected = graph_from_edges(
        [1, 2], [2, 3], [4.0, -1], reverse_weight=[0.5, 0.25], edge_ids=True
    )
    graph = graph_from_edges([1, 2], [2, 3], [4, far], reverse_weight=[0.5, 0.25], edge_ids=True)
    assert graph.fingerprint == expected.fingerprint
    first = graph_from_edges([1, 2], [2, 3], [1, 1], reverse_weight=[1, 1], edge_ids=True)
    made = with_weights(first, [4, far], reverse_weight=[0.5, 0.25])
    assert made.fingerprint == expected.fingerprint


def test_two_weights_name_the_row_of_one_beyond_int64():
    large = np.array([3, 2**63], np.uint64)
    message = rf"weight of row 1 |integer weight {2**63} is beyond int64"
    with pytest.raises(EdgeListError, match=message) as built:
        graph_from_edges([1, 2], [2, 3], [-1, 4], reverse_weight=large)
    first = graph_from_edges([1, 2], [2, 3], [1, 1], reverse_weight=[1, 1], edge_ids=True)
    with pytest.raises(EdgeListError, match=message) as made:
        with_weights(first, [-1, 4], reverse_weight=large)
    assert (built.value.row, made.value.row) == (1, 1)
