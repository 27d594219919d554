"""Opportunities, counts and isochrones within cutoffs: equal to sums over full distances, alike on every device."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs_many,
    cuda,
    graph_from_edges,
    plan_bfs_many,
    plan_sssp_many,
    sssp_many,
)
from kepler_traverse.cpu import opportunities as on_cpu
from kepler_traverse.errors import InputError, PrecisionError, UnknownVertexError
from kepler_traverse.kinds import opportunities_gpu as on_gpu
from kepler_traverse.kinds.opportunities import Reduction, find_bands, parse_decay, sums_within
from kepler_traverse.kinds.question import Question
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from pipelines.output.rows import make_rows as made
from tests.conftest import HAS_GPU
from tests.support.devices import FIRST, MODES, count_allocations, host, on_a_device, running
from tests.support.graphs import NAMED, build, weights_for

SIZES = [1, 31, 1023, 1024, 1025, 3000]
KINDS = [np.int8, np.int16, np.int32, np.float32, np.float64, np.int64]
DECAYS = {
    None: lambda _: 1.0,
    "exponential:0.02": lambda d: math.exp(-0.02 * d),
    "linear:60": lambda d: max(0.0, 1 - d / 60),
    "gaussian:25": lambda d: math.exp(-((d / 25) ** 2) / 2),
    "step:20": lambda d: float(d <= 20),
    "logistic:30,8": lambda d: (
        (1 + math.exp(-30 / (8 * 3**0.5 / math.pi)))
        / (1 + math.exp((d - 30) / (8 * 3**0.5 / math.pi)))
    ),
    "power:1.3": lambda d: d**-1.3 if d > 1 else 1.0,
}
# Each is a variant of the kernel: every kind and every decay, float32 with and without.
COMPILED = [(np.int8, None), (np.int32, None), (np.float32, None), (np.float32, "exponential:0.02")]
COMPILED += [(np.int16, "gaussian:25"), (np.float64, "linear:60"), (np.int64, "linear:60")]
COMPILED += [(np.int32, "step:20"), (np.float64, "logistic:30,8"), (np.float32, "power:1.3")]
GRAPH = graph_from_edges(
    np.array([10, 20, 20, 30]), np.array([20, 30, 40, 50]), np.array([2, 3, 4, 5])
)
IDS = [10, 20, 30, 40, 50]  # at 0, 2, 5, 6 and 10 from the first


def distances(n: int, kind, k: int = 4) -> np.ndarray:
    """Distances of which some are unreached, 0, or subnormal."""
    kind, rng = np.dtype(kind), np.random.default_rng(n)
    found = np.minimum(rng.exponential(40, (k, n)), 120).astype(kind)
    found[0] = 0
    far = rng.random((k, n)) < 0.3
    far[0] = False
    unreached = (
        -1
        if kind.itemsize < 4 or kind == np.int32
        else np.inf
        if kind.kind == "f"
        else np.iinfo(kind).max
    )
    if kind.kind == "f":
        found[1, n // 3] = np.finfo(kind).tiny / kind.type(4)
    found[far] = unreached
    return found


def reduction(n: int, kind, decay: str | None = None, cutoffs=(0, 10, 40)) -> Reduction:
    rng = np.random.default_rng(n + 1)
    values = {
        "jobs": rng.integers(-(10**12), 10**13, n),
        "area": rng.normal(0, 1, n) * 10.0 ** rng.integers(-9, 9, n),
        "people": rng.integers(0, 9, n),
    }
    if decay is not None:
        values = {name: value.astype(float) for name, value in values.items()}
    kind_of_decay, parameter, width = parse_decay(decay)
    whole = np.dtype(kind).kind == "i"
    limits = np.array(cutoffs, np.int64 if whole else np.float64)
    return Reduction(
        cutoffs=limits, values=values, decay=kind_of_decay, parameter=parameter, width=width
    )


def bits(found: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in found.items()}


def folded(values: np.ndarray) -> float:
    """The documented order: halves within reduction blocks of 1,024 values, and over the sums of these."""
    while values.size > 1 or values.ndim > 1:
        padded = np.zeros(-(-values.size // 1024) * 1024)
        padded[: values.size] = values
        padded = padded.reshape(-1, 1024)
        while padded.shape[1] > 1:
            half = padded.shape[1] // 2
            padded = padded[:, :half] + padded[:, half:]
        values = padded[:, 0]
    return values[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_sums_are_those_of_each_vertex_by_itself(n, kind):
    rows = distances(n, kind)
    for decay in DECAYS:
        check_sums(rows, reduction(n, kind, decay), decay)


def check_sums(rows, asked, decay):
    found = sums_within(rows, asked)
    weight = np.vectorize(DECAYS[decay], otypes=[float])
    for i, row in enumerate(rows):
        for c, cutoff in enumerate(asked.cutoffs):
            near = (row >= 0) & (row <= cutoff)
            for name, values in asked.values.items():
                place = (decay, name, i, c)
                if values.dtype.kind == "i":
                    assert found[name][i, c] == sum(values[near].tolist()), place
                elif decay is None:
                    assert found[name][i, c] == folded(np.where(near, values, 0.0)), place
                else:
                    terms = values[near] * weight(row[near].astype(float))
                    assert found[name][i, c] == pytest.approx(
                        math.fsum(terms), rel=1e-13, abs=1e-13 * np.abs(terms).sum()
                    ), place


def test_a_sum_is_the_same_with_other_cutoffs_attributes_and_sources():
    rows, asked = distances(3000, np.float32), reduction(3000, np.float32)
    found = sums_within(rows, asked)
    alone = reduction(3000, np.float32, cutoffs=(10,))
    del alone.values["people"]
    assert sums_within(rows[2:3], alone)["area"][0, 0] == found["area"][2, 1]


@pytest.mark.parametrize(
    "x",
    [0.0, -1e-300, -1e-9, -0.3, -0.34657, -0.3466, -17.25, -700.5, -740.0, -745.0, -746.0, -1e9],
)
def test_exponential_is_that_of_mathematics_to_two_units_in_the_last_place(x):
    assert on_cpu.exponential(x) == pytest.approx(math.exp(x), rel=2**-51, abs=5e-324)


@on_a_device
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "decay"), COMPILED)
@pytest.mark.parametrize("n", [1, 31, 1025, 3000])
def test_a_gpu_finds_the_bits_of_a_cpu(monkeypatch, n, kind, decay, mode):
    rows, asked = distances(n, kind), reduction(n, kind, decay)
    expected = sums_within(rows, asked)
    with running(MODES[mode]):
        there = cuda.cp.asarray(rows)
        assert bits(sums_within(there, asked)) == bits(expected)
        monkeypatch.setattr(on_gpu, "SUMS_AT_ONCE", 1)  # one source at a time
        assert bits(sums_within(there[1:], asked)) == bits(
            {name: value[1:] for name, value in expected.items()}
        )
    asked._on_gpu.clear()


@on_a_device
def test_a_gpu_folds_the_sums_of_reduction_blocks_in_several_passes():
    n = 1030 * 1024 + 5
    row = np.random.default_rng(2).exponential(1, (1, n)).astype(np.float32)
    asked = Reduction(
        cutoffs=np.array([1, 2]),
        values={"a": np.arange(n), "b": np.random.default_rng(3).random(n)},
    )
    expected = sums_within(row, asked)
    with running(FIRST):
        assert bits(sums_within(cuda.cp.asarray(row), asked)) == bits(expected)


@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="what the stand-in allocates can be counted")
@pytest.mark.parametrize(("k", "n"), [(1, 1), (5, 1023), (5, 3000)])
def test_bytes_needed_cover_the_allocations(monkeypatch, k, n):
    rows, asked = np.zeros((k, n), np.float32), reduction(n, np.float32)
    with running(FIRST):
        taken = count_allocations(monkeypatch, on_gpu)
        sums_within(cuda.cp.asarray(rows), asked)
    assert 0 < sum(taken) <= on_gpu.bytes_needed(k, n, 3, 3)


@st.composite
def networks(draw):
    n = draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 9)), min_size=1, max_size=40))
    cutoffs = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=4)))
    integers = draw(st.lists(st.integers(-(2**50), 2**50), min_size=n, max_size=n))
    floats = draw(st.lists(st.floats(-1e9, 1e9), min_size=n, max_size=n))
    src, dst, weight = map(np.array, zip(*edges, strict=True))
    graph = graph_from_edges(src, dst, weight, vertices=np.arange(n), directed=draw(st.booleans()))
    return graph, cutoffs, {"jobs": integers, "area": floats}


@given(networks())
def test_each_kind_equals_a_group_by_over_distances(network):
    graph, cutoffs, values = network
    sources = list(range(graph.n_vertices))
    attributes = pd.DataFrame({"vertex": sources, **values})
    for many in (bfs_many, sssp_many):
        rows = many(graph, sources, result="distances").merge(attributes, on="vertex")
        found = many(graph, sources, result="opportunities", values=attributes, cutoffs=cutoffs)
        within = many(graph, sources, result="within", cutoffs=cutoffs)
        assert list(found.columns) == ["source", "cutoff", "jobs", "area"]
        for i, cutoff in enumerate(cutoffs):
            near = rows[rows["distance"] <= cutoff].groupby("source")
            here = found[found["cutoff"] == cutoff]
            assert here["jobs"].tolist() == near["jobs"].sum().tolist()
            assert here["area"].tolist() == pytest.approx(near["area"].sum().tolist(), abs=1e-5)
            assert within["vertices"].tolist()[i :: len(cutoffs)] == near.size().tolist()
        bands = many(graph, sources, result="isochrones", cutoffs=cutoffs)
        near = rows[rows["distance"] <= cutoffs[-1]].sort_values(["source", "vertex"])
        assert list(bands.columns) == ["source", "vertex", "band"]
        assert (
            bands[["source", "vertex"]].values.tolist()
            == near[["source", "vertex"]].values.tolist()
        )
        assert bands["band"].tolist() == [
            min(c for c in cutoffs if c >= d) for d in near["distance"]
        ]


@on_a_device
@pytest.mark.parametrize("name", ["two components", "in-star"])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_the_rows_of_a_group_are_those_of_a_cpu(algorithm, name):
    edges = [row[:2] for row in NAMED[name]]
    graph = build(edges, weights_for(edges, 4), directed=False)
    sources = np.arange(min(5, graph.n_vertices))
    values = {"a": np.arange(graph.n_vertices), "b": np.linspace(0, 1, graph.n_vertices)}
    planned, limit = (
        (plan_bfs_many, "max_depth") if algorithm == "bfs" else (plan_sssp_many, "cutoff")
    )

    def of(graph, result, **options):
        kind = RESULT_KINDS[result]
        asked = kind.options_class(cutoffs=[0, 1, 3], **options).checked(kind, graph, algorithm)
        plan = planned(
            graph, n_sources=5, result="distances", strategy="one_at_a_time", **{limit: 3}
        )
        question = Question(algorithm=algorithm, kind=kind, options=asked)
        return list(made(question, graph, plan.query, plan.run(sources)))

    sums = {"result": "opportunities", "values": values}
    for call in (sums, {**sums, "decay": "gaussian:2"}, {"result": "within"}):
        with running(FIRST):
            found = of(graph.to("cuda"), **call)
        for one, other in zip(found, of(graph, **call), strict=True):
            assert one.answer.table.equals(other.answer.table)
            assert (one.answer.sources, one.answer.checksums) == (
                other.answer.sources,
                other.answer.checksums,
            )
            assert (one.counts[0], one.counts[2]) == (other.counts[0], other.counts[2])


@on_a_device
def test_cutoffs_beyond_every_distance_hold_no_unreached_vertex():
    asked = Reduction(
        cutoffs=np.array([2**31 - 2, 2**31 - 1, 2**62]), values={"a": np.arange(1, 4)}
    )
    for kind in KINDS:
        rows = distances(3, kind)[:1]
        rows[0] = 0, 1, {"i": -1 if rows.itemsize < 8 else 2**63 - 1, "f": np.inf}[rows.dtype.kind]
        assert sums_within(rows, asked)["a"].tolist() == [[3, 3, 3]]
        with running(FIRST):
            assert sums_within(cuda.cp.asarray(rows), asked)["a"].tolist() == [[3, 3, 3]]
        asked._on_gpu.clear()
    graph = graph_from_edges(np.array([0]), np.array([1]), vertices=np.array([2]))
    assert bfs_many(graph, [0], result="within", cutoffs=[2**31 - 1, 2**62])[
        "vertices"
    ].tolist() == [2, 2]
    found = bfs_many(
        graph, [0], result="opportunities", values=[1, 2, 4], cutoffs=[2**31 - 1, 2**62]
    )
    assert found["value"].tolist() == [3, 3]


@on_a_device
def test_bands_are_those_of_a_cpu():
    cutoffs = np.array([0.0, 1e-40, 5.0, 9.0])
    rows = np.array([0, 1e-45, 1e-40, 2e-40, 5, 7, 9], np.float32)
    expected = find_bands(rows, cutoffs)
    assert expected.tolist() == [0, 1e-40, 1e-40, 5, 5, 9, 9]
    with running(FIRST):
        assert host(find_bands(cuda.cp.asarray(rows), cutoffs)).tolist() == expected.tolist()


def of_first(**options):
    return sssp_many(GRAPH, [10], result="opportunities", **options)


def test_values_are_a_table_a_mapping_or_an_array():
    jobs = [1, 2, 4, 8, 16]
    ways = [
        pd.DataFrame({"jobs": jobs, "vertex": IDS}),
        pd.DataFrame({"jobs": jobs}, index=pd.Index(IDS, name="vertex")),
        pa.table({"vertex": IDS[::-1], "jobs": jobs[::-1]}),
        {"vertex": IDS, "jobs": jobs},
        {"jobs": np.array(jobs, np.uint8)},
    ]
    for values in ways:
        assert of_first(values=values, cutoffs=[0, 5, 9.5])["jobs"].tolist() == [1, 7, 15]
    assert of_first(values=np.array(jobs), cutoffs=[10])["value"].tolist() == [31]
    missing = of_first(values={"vertex": [40, 10], "jobs": [8, 1]}, cutoffs=[5, 6])
    assert missing["jobs"].tolist() == [1, 9]


def test_direction_in_counts_what_can_reach_the_source():
    values = {"jobs": [1, 2, 4, 8, 16]}
    found = sssp_many(
        GRAPH, [50], result="opportunities", values=values, cutoffs=[5, 10], direction="in"
    )
    assert found["jobs"].tolist() == [20, 23]


def test_a_cutoff_is_compared_as_that_of_the_search():
    graph = graph_from_edges(np.array([0]), np.array([1]), np.array([0.1], np.float32))
    at = float(np.float32(0.1))  # a little more than 0.1
    assert sssp_many(graph, [0], result="within", cutoffs=[0.05, 0.1, at])["vertices"].tolist() == [
        1,
        1,
        2,
    ]
    assert [len(sssp_many(graph, [0], cutoff=each)) for each in (0.1, at)] == [1, 2]


def test_integers_beyond_2_to_the_53_are_exact():
    big = 2**62 - 1
    found = of_first(values={"jobs": [big, 1, 0, 0, -big]}, cutoffs=[0, 2, 10])
    assert found["jobs"].tolist() == [big, big + 1, 1]
    graph = graph_from_edges(np.array([0]), np.array([1]), np.array([2**60 + 1]))
    assert sssp_many(graph, [0], result="within", cutoffs=[2**60, 2**60 + 1])[
        "vertices"
    ].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, "needs cutoffs, the largest distances"),
        ({"cutoffs": [1]}, InputError, "needs values, the attributes of the vertices"),
        ({"cutoffs": [], "values": IDS}, InputError, "at least one number"),
        ({"cutoffs": "600", "values": IDS}, InputError, "at least one number"),
        ({"cutoffs": [2, 2], "values": IDS}, InputError, "cutoffs must ascend"),
        ({"cutoffs": [3, 2], "values": IDS}, InputError, "cutoffs must ascend"),
        ({"cutoffs": [-1], "values": IDS}, InputError, "cutoffs must be 0 or more"),
        ({"cutoffs": [math.nan], "values": IDS}, InputError, "cutoffs must be 0 or more"),
        ({"cutoffs": [math.inf], "values": IDS}, InputError, "cutoffs must be finite"),
        ({"cutoffs": [1], "values": IDS, "cutoff": 5}, InputError, "leave cutoff out"),
        (
            {"cutoffs": [1], "values": [1, 2]},
            InputError,
            r"values\['value'\] has 2 values, not 5: give one per vertex",
        ),
        (
            {"cutoffs": [1], "values": {"vertex": [10], "a": [1, 2]}},
            InputError,
            "has 2 values, not 1: give one per row",
        ),
        ({"cutoffs": [1], "values": {"vertex": [10]}}, InputError, "no column besides vertex"),
        (
            {"cutoffs": [1], "values": {"vertex": [10, 11], "a": [1, 2]}},
            UnknownVertexError,
            "not in the graph: 11",
        ),
        (
            {"cutoffs": [1], "values": {"vertex": [10, 10], "a": [1, 2]}},
            InputError,
            "vertex 10 occurs 2 times",
        ),
        (
            {"cutoffs": [1], "values": {"a": [1.0, math.nan, 0, 0, 0]}},
            InputError,
            r"values\['a'\], vertex 20: nan is not finite",
        ),
        (
            {"cutoffs": [1], "values": {"vertex": [40], "a": [math.inf]}},
            InputError,
            r"values\['a'\], vertex 40: inf is not finite",
        ),
        ({"cutoffs": [1], "values": {"source": IDS}}, InputError, "'source' cannot be the name"),
        ({"cutoffs": [1], "values": {"a": ["x"] * 5}}, InputError, "must hold numbers"),
        (
            {"cutoffs": [1], "values": {"a": np.ones(5, bool)}},
            InputError,
            r"values\['a'\]: its values must be numbers, not bool",
        ),
        (
            {"cutoffs": [1], "values": {"a": pa.array([1, 2, None, 4, 5])}},
            InputError,
            r"values\['a'\] holds 1 nulls",
        ),
        (
            {"cutoffs": [1], "values": {"a": [2**63 - 1, 1, 0, 0, 0]}},
            PrecisionError,
            "beyond int64",
        ),
        (
            {"cutoffs": [1], "values": {"a": [-(2**63), -1, 0, 0, 0]}},
            PrecisionError,
            "beyond int64",
        ),
        ({"cutoffs": [1], "values": {"a": [1e308] * 5}}, PrecisionError, "exceeds float64"),
        (
            {"cutoffs": [1], "values": pd.Series(IDS, list("abcde"))},
            InputError,
            "an index that is neither 0 to n-1",
        ),
        (
            {"cutoffs": [1], "values": pd.DataFrame({"node_no": IDS, "a": IDS})},
            InputError,
            "values has no column 'vertex'",
        ),
        (
            {"cutoffs": [1], "values": IDS, "decay": "exponential"},
            InputError,
            "must be exponential:RATE",
        ),
        (
            {"cutoffs": [1], "values": IDS, "decay": "linear:0"},
            InputError,
            "must be exponential:RATE",
        ),
        (
            {"cutoffs": [1], "values": IDS, "decay": "power:2,3"},
            InputError,
            "must be exponential:RATE",
        ),
        ({"cutoffs": [1], "values": IDS, "decay": 5}, InputError, "decay must be"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        of_first(**options)


def test_options_of_other_kinds_are_refused():
    with pytest.raises(
        InputError, match="cutoffs is for result opportunities, within, streets or isochrones"
    ):
        sssp_many(GRAPH, [10], cutoffs=[1])
    with pytest.raises(InputError, match="values is for result opportunities, not within"):
        sssp_many(GRAPH, [10], result="within", cutoffs=[1], values=IDS)
    with pytest.raises(InputError, match="cutoffs must be a whole number"):
        bfs_many(GRAPH, [10], result="within", cutoffs=[1.5])
    with pytest.raises(
        InputError, match="cutoffs holds 9223372036854775808, which int64 cannot hold"
    ):
        bfs_many(GRAPH, [10], result="within", cutoffs=[2**63])
    for result in ("summary", "matrix", "reachable"):
        with pytest.raises(
            InputError, match=f"unreached is for result distances or predecessors, not {result}"
        ):
            bfs_many(GRAPH, [10], result=result, unreached="null")
    negative = graph_from_edges(np.array([0]), np.array([1]), np.array([-1]))
    with pytest.raises(InputError, match="decay needs distances of 0 or more"):
        sssp_many(
            negative, [0], result="opportunities", cutoffs=[1], values=[1, 2], decay="linear:3"
        )
    assert sssp_many(negative, [0], result="opportunities", cutoffs=[0], values=[1, 2])[
        "value"
    ].tolist() == [3]
    of_hops = bfs_many(
        negative, [0], result="opportunities", cutoffs=[1], values=[1, 2], decay="linear:4"
    )
    assert of_hops["value"].tolist() == [2.5]


def test_a_reduction_is_sent_without_what_a_device_holds():
    asked = reduction(5, np.float32)
    _ = asked.stacked
    asked._on_gpu[0] = "memory of a device"
    again = pickle.loads(pickle.dumps(asked))
    assert again.digest == asked.digest
    assert again._on_gpu == {}
    assert "stacked" not in vars(again)
    other = reduction(5, np.float32)
    other.values["jobs"][0] += 1
    assert other.digest != asked.digest
    assert (
        reduction(5, np.float32, "linear:60").digest != reduction(5, np.float32, "linear:61").digest
    )


def test_opportunities_of_no_source_are_an_empty_frame():
    found = sssp_many(GRAPH, [], result="opportunities", values={"a": IDS}, cutoffs=[1, 2])
    assert list(found.columns) == ["source", "cutoff", "a"]
    assert not len(found)


def test_a_reduction_keeps_integers_as_integers_without_a_decay():
    kind = RESULT_KINDS["opportunities"]
    for decay, dtype in ((None, np.int64), ("linear:3", np.float64)):
        options = kind.options_class(cutoffs=[1], values={"a": IDS}, decay=decay)
        assert options.checked(kind, GRAPH, "sssp").values["a"].dtype == dtype


@pytest.mark.parametrize("decay", ["flat", "linear", "exp"])
def test_sums_equal_those_of_pandana(decay):
    pandana = pytest.importorskip("pandana")
    rng = np.random.default_rng(5)
    n, radius = 60, 25.0
    src, dst = rng.integers(0, n, (2, 200))
    weight = rng.integers(1, 10, 200).astype(float)
    jobs = rng.integers(0, 100, n).astype(float)
    x, y = pd.Series(rng.random(n)), pd.Series(rng.random(n))
    network = pandana.Network(
        x, y, pd.Series(src), pd.Series(dst), pd.DataFrame({"w": weight}), twoway=True
    )
    network.precompute(radius + 1)
    network.set(pd.Series(np.arange(n)), variable=pd.Series(jobs), name="jobs")
    theirs = network.aggregate(radius, type="sum", decay=decay, name="jobs").loc[np.arange(n)]
    graph = graph_from_edges(
        src, dst, weight, directed=False, vertices=np.arange(n), weight_type="float64"
    )
    ours = {"flat": None, "linear": f"linear:{radius}", "exp": f"exponential:{1 / radius!r}"}[decay]
    found = sssp_many(
        graph,
        np.arange(n),
        result="opportunities",
        values={"jobs": jobs},
        cutoffs=[radius],
        decay=ours,
    )
    np.testing.assert_allclose(found["jobs"], theirs.to_numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1], "source_weights has 1 value, not 2"),
        ([1, np.nan], "source_weights, row 1: nan is not finite"),
        (["a", "b"], "source_weights"),
        (5, "source_weights"),
    ],
)
def test_wrong_source_weights_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        bfs_many(
            GRAPH,
            [10, 20],
            result="opportunities",
            cutoffs=[1],
            values={"a": IDS},
            source_weights=weights,
        )
    with pytest.raises(
        InputError, match="source_weights is for result opportunities or flows, not within"
    ):
        bfs_many(GRAPH, [10, 20], result="within", cutoffs=[1], source_weights=[1, 2])
    with pytest.raises(InputError, match="a set has no order"):
        bfs_many(
            GRAPH,
            {10, 20},
            result="opportunities",
            cutoffs=[1],
            values={"a": IDS},
            source_weights=[1, 2],
        )


def test_weighted_sums_are_those_of_a_stream_and_beyond_their_type_refused():
    options = {"result": "opportunities", "cutoffs": [1, 2], "values": {"a": IDS}}
    plain = bfs_many(GRAPH, [20, 10, 20], **options)
    found = bfs_many(GRAPH, [20, 10, 20], source_weights=[10, 3, 10], **options)
    assert found["a"].tolist() == (plain["a"] * np.repeat([10, 3, 10], 2)).tolist()
    with bfs_many(
        GRAPH, [20, 10, 20], source_weights=[10, 3, 10], stream=True, **options
    ) as groups:
        assert pd.concat(list(groups), ignore_index=True).equals(found)
    with pytest.raises(InputError, match="given twice with different weights"):
        bfs_many(GRAPH, [20, 10, 20], source_weights=[10, 3, 11], **options)
    with pytest.raises(PrecisionError, match="beyond int64"):
        bfs_many(GRAPH, [20], source_weights=[2**62], **options)
