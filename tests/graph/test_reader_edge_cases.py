"""Values that other libraries misread silently, in a file of every format: an error, or a repair that is counted."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import NegativeCycleError, plan_sssp
from tests.support.edge_files import read, refusal, write

# A good edge on either side, so that the odd row is neither the first nor the last.
GOOD = [(1, 2, 3), (2, 3, 4)]


def delimited(sign, header):
    return lambda rows: header + "".join(sign.join(map(str, row)) + "\n" for row in rows)


def dimacs(rows):
    return f"p sp 9 {len(rows)}\n" + delimited(" ", "")([("a", *row) for row in rows])


def matrix_market(rows):
    return f"%%MatrixMarket matrix coordinate real general\n9 9 {len(rows)}\n" + delimited(" ", "")(
        rows
    )


TEXT = {
    "csv": delimited(",", "src,dst,weight\n"),
    "tsv": delimited("\t", "src\tdst\tweight\n"),
    "txt": delimited(" ", "# edges\n"),
    "gr": dimacs,
    "mtx": matrix_market,
}


def typed(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(dict(zip(("src", "dst", "weight"), columns, strict=True)))


def ipc(path, kind, table):
    with kind(str(path), table.schema) as writer:
        writer.write_table(table)


BINARY = {
    "parquet": lambda path, table: pq.write_table(table, path),
    "arrow": lambda path, table: ipc(path, pa.ipc.new_file, table),
    "arrows": lambda path, table: ipc(path, pa.ipc.new_stream, table),
    "feather": lambda path, table: pa.feather.write_feather(table, path),
}
FORMATS = (*TEXT, *BINARY)
NUMBERED = ("gr", "mtx")  # vertices are 1..n there


def made(folder, ending, row):
    """Write a file with an odd row between two good ones. In text, values are written unchanged, and None as nothing."""
    path = folder / f"edges.{ending}"
    if ending in TEXT:
        return write(
            path,
            TEXT[ending]([GOOD[0], ["" if value is None else value for value in row], GOOD[1]]),
        )
    u, v, w = row
    whole = [(float(a), w) if isinstance(w, float) else (a, w) for a in (3, 4)]
    rows = [(1, 2, whole[0][0]), (u, v, w), (2, 3, whole[1][0])]
    BINARY[ending](path, typed(rows))
    return path


REFUSED = {
    # what: the odd row as text and as typed values (None: no typed column can hold it), and words of the message
    "NaN": ((1, 3, "nan"), (1, 3, math.nan), ["weight is NaN"]),
    "an infinite weight": ((1, 3, "inf"), (1, 3, math.inf), ["weight is inf"]),
    "a negative infinite weight": (
        (1, 3, "-Infinity"),
        (1, 3, -math.inf),
        ["weight is -inf", "not a number"],
    ),
    "a weight beyond float64": ((1, 3, "1e400"), None, ["infinite"]),
    "a missing weight": ((1, 3, None), (1, 3, None), ["missing", "Expected 3 columns, got 2"]),
    "a weight that is a word": ((1, 3, "far"), None, ["'far', which is not a number"]),
    "a hexadecimal weight": ((1, 3, "0x10"), None, ["'0x10', which is not a number"]),
    "a missing id": (
        (None, 3, 1),
        (None, 3, 1),
        ["missing", "Expected 3 columns, got 2", "an arc is"],
    ),
    "an id that is a word": (("bob", 3, 1), None, ["'bob', which is not an integer"]),
    "an id with a point": (
        ("1.5", 3, 1),
        (1.5, 3, 1),
        ["'1.5', which is not an integer", "has type double"],
    ),
    "a hexadecimal id": (("0x7", 3, 1), None, ["'0x7', which is not an integer"]),
    "an id beyond int64": (("9223372036854775808", 3, 1), None, ["beyond int64"]),
    "an id with an underscore": (("1_0", 3, 1), None, ["'1_0', which is not an integer"]),
    "an id in other digits": (("١", 3, 1), None, ["'١', which is not an integer"]),
    "a NUL in an id": (("1\0", 3, 1), None, ["which is not an integer"]),
    "a mark in an id": (("\ufeff1", 3, 1), None, ["which is not an integer"]),
    "a weight that would become 0": ((1, 3, "1e-400"), None, ["which float64 takes for 0"]),
    "a row too short": ((1, 3), None, ["Expected 3 columns, got 2"]),
    "a row too long": ((1, 3, 1, 1), None, ["Expected 3 columns, got 4"]),
}


@pytest.mark.parametrize(
    ("what", "ending"),
    # None: a typed column cannot hold it.
    [
        (what, ending)
        for what, (_, values, _) in REFUSED.items()
        for ending in FORMATS
        if ending in TEXT or values
    ],
)
def test_invalid_edges_are_refused_in_every_format(tmp_path, what, ending):
    text, values, says = REFUSED[what]
    message = refusal(made(tmp_path, ending, text if ending in TEXT else values))
    assert f"edges.{ending}" in message
    assert any(words in message for words in says)


@pytest.mark.parametrize("ending", FORMATS)
def test_integer_weights_that_no_float_holds_are_refused_in_every_format(tmp_path, ending):
    path = made(tmp_path, ending, (1, 3, 2**53 + 1))
    if ending == "mtx":  # says that its numbers are real
        path.write_text(path.read_text().replace("real", "integer"))
    assert "integer weight 9007199254740993 is beyond 2^53" in refusal(path, weight_type="float64")
    assert read(path).weights.tolist() == [3, 2**53 + 1, 4]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("vertex", [-5, 0, 2**31 + 5, 2**53 + 1, 2**63 - 1])
def test_integers_of_64_bits_are_unchanged_as_ids(tmp_path, ending, vertex):
    path = made(tmp_path, ending, (vertex, 3, 1))
    if ending in NUMBERED:
        assert f"src {vertex} is outside 1..9" in refusal(path)
    else:
        assert read(path).ids.tolist() == sorted({1, 2, 3, vertex})


REPAIRED = {
    # what: the odd row, the field of the report that counts it, edges and weights that stay
    "a parallel edge that is longer": ((1, 2, 9.0), "parallel_edges", [3, 4]),
    "a parallel edge that is shorter": ((1, 2, 1.0), "parallel_edges", [1, 4]),
    "a self-loop": ((2, 2, 1.0), "self_loops", [3, 4]),
    "a weight of -0.0": ((1, 3, -0.0), "negative_zeros", [3, 0, 4]),
    "a weight of 0": ((1, 3, 0.0), None, [3, 0, 4]),
    "a subnormal weight": ((1, 3, 1e-320), None, [3, 1e-320, 4]),
    "a weight below 1e-8": ((1, 3, 1e-30), None, [3, 1e-30, 4]),
    "a negative weight": ((1, 3, -2.5), None, [3, -2.5, 4]),
}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("what", REPAIRED)
def test_repairs_are_counted_and_odd_values_unchanged_in_every_format(tmp_path, what, ending):
    row, counted_as, weights = REPAIRED[what]
    graph = read(made(tmp_path, ending, row), weight_type="float64")
    counts = {
        name: getattr(graph.report, name)
        for name in ("parallel_edges", "self_loops", "negative_zeros")
    }
    assert counts == {name: int(name == counted_as) for name in counts}
    assert graph.weights.tolist() == weights
    assert not np.signbit(graph.weights[graph.weights == 0]).any()


@pytest.mark.parametrize("ending", FORMATS)
def test_a_negative_cycle_is_named_in_every_format(tmp_path, ending):
    graph = read(made(tmp_path, ending, (3, 1, -9)))
    with pytest.raises(NegativeCycleError) as caught:
        plan_sssp(graph)(1)
    assert sorted(caught.value.cycle) == [1, 2, 3]
    assert caught.value.weight == -2
