"""Wrong values in each argument of the functions of other modules: an answer, or one error of ours that fits on a screen.

``test_fuzz_api.py`` compares the answers of searches. ``pandana.Network`` has tests of its own.
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import scipy.sparse

import kepler_traverse
from kepler_traverse import (
    InputError,
    KeplerError,
    bfs_many,
    convert,
    csgraph,
    datasets,
    extremes,
    graph_from_edges,
    integer_weights,
    load_graph,
    maps,
    paths,
    plan_bfs_many,
    plan_sssp_many,
    read_graph,
    sssp,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.pipelines import run_job
from tests.support import tiers
from tests.support.wrong_values import Value, values

IDS = np.arange(6)
LONG = "v" * 100_000
MANY = 50_000

# Long values, which an error must not repeat.
LARGE = [
    Value("long text", lambda: LONG),
    Value("long list", lambda: list(range(MANY))),
    Value("long texts", lambda: [LONG, "b"]),
    Value("two long lists", lambda: (list(range(MANY)), list(range(MANY)))),
    Value("long dict", lambda: dict.fromkeys(range(1000), "v" * 200)),
    Value("long array", lambda: np.arange(MANY)),
    Value("long Series", lambda: pd.Series(np.arange(MANY), name="n")),
    Value("wide frame", lambda: pd.DataFrame([range(2000)])),
    Value("long names", lambda: pd.DataFrame({LONG: [1], LONG + "w": [2]})),
    Value("array of text", lambda: np.array(["radius", "center"])),
    Value("Series of text", lambda: pd.Series(["radius"])),
    Value("nested", lambda: [[["a"]]]),
    Value("class", lambda: int),
]
VALUES = [*values(), *LARGE]


def graph():
    return graph_from_edges(IDS[:-1], IDS[1:], np.array([1, 2, 3, 4, 5]), directed=False)


def listed(function):
    """A function whose answer, a stream or an iterator, is read."""

    def call(**given):
        found = function(**given)
        return list(found) if hasattr(found, "__next__") else found

    call.__signature__ = inspect.signature(function)
    return call


def calls(folder):
    """Yield the name of a call, the function, and right arguments."""
    here = graph()
    places = pd.DataFrame({"vertex": IDS, "x": IDS / 10, "y": IDS / 10})
    frame = sssp_many(here, [0], result="isochrones", cutoffs=[3])
    matrix = scipy.sparse.csr_array(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    yield "extremes", extremes.extremes, {"graph": here, "want": ["radius"], "memory": None}
    for name in ("diameter", "radius", "center", "periphery"):
        yield name, getattr(extremes, name), {"graph": here}
    yield "top_closeness", extremes.top_closeness, {"graph": here, "k": 2}
    yield "town", datasets.town, {"seed": "x"}
    yield (
        "write_geoparquet",
        kepler_traverse.write_geoparquet,
        {
            "frame": frame,
            "path": folder / "z.parquet",
            "vertices": places,
        },
    )
    yield "plot", maps.plot, {"frame": frame, "vertices": places, "column": "cutoff"}
    yield "explore", maps.explore, {"frame": frame, "vertices": places}
    yield "from_matrix", csgraph.from_matrix, {"csgraph": matrix}
    for name in ("dijkstra", "bellman_ford", "johnson", "shortest_path"):
        yield name, getattr(csgraph, name), {"csgraph": matrix, "indices": [0]}
    for name in ("breadth_first_order", "breadth_first_tree"):
        yield name, getattr(csgraph, name), {"csgraph": matrix, "i_start": 0}
    yield "to_scipy", convert.to_scipy, {"graph": here}
    yield "to_arrow", convert.to_arrow, {"graph": here}
    yield "from_networkx", convert.from_networkx, {"graph": convert.to_networkx(here)}
    yield "save_graph", kepler_traverse.save_graph, {"graph": here, "folder": folder / "graph"}
    yield "load_graph", kepler_traverse.load_graph, {"folder": folder / "graph"}
    yield "plan.run", plan_bfs_many(here, n_sources=1).run, {"source_vertices": []}
    yield "weighted plan.run", plan_sssp_many(here, n_sources=1).run, {"source_vertices": []}
    yield "paths", paths, {"frame": sssp(here, 0), "targets": [3]}
    yield "bfs_many", listed(bfs_many), {"graph": here, "sources": [0]}
    yield "sssp_many", listed(sssp_many), {"graph": here, "sources": [0]}
    kinds = {
        "nearest": {"k": 1, "groups": ["a"]},
        "within": {"cutoffs": [1]},
        "opportunities": {"cutoffs": [1], "values": IDS, "decay": "linear:3"},
        "flows": {"targets": [1, 2], "volumes": [[1, 2]]},
        "betweenness": {"samples": None},
    }
    for result, own in kinds.items():
        yield result, listed(sssp_many), {"graph": here, "sources": [0], "result": result, **own}
    yield "run_job", refused_job, {"output": folder / "o"} | dict.fromkeys(JOB_OPTIONS)


JOB_OPTIONS = (
    "sources",
    "targets",
    "pairs",
    "cutoff",
    "max_depth",
    "columns",
    "result",
    "cutoffs",
    "vertices",
    "workers",
)


def refused_job(output, **options):
    """A job that ends before it searches, whatever the option says."""
    given = {"sources": [0], "batch_deadline": -1} | options
    if options.get("pairs") is not None:
        del given["sources"]
    return run_job(graph(), output=output, **given)


def arguments_of(function, right):
    """The names of all arguments: those of the signature, and those that are given."""
    parameters = inspect.signature(function).parameters.values()
    return list(
        dict.fromkeys(
            [each.name for each in parameters if each.kind < each.VAR_POSITIONAL] + list(right)
        )
    )


def faults_of(name, function, right):
    """Call a function with each wrong value of each argument; return what is no answer and no short error of ours."""
    wrong = []
    for at, argument in enumerate(arguments_of(function, right)):
        for value in tiers.few([*VALUES[7 * at :], *VALUES[: 7 * at]], 4):
            shown = f"{name}({argument}={value.name})"
            given = value.make()
            if argument == "progress" and callable(given):
                continue  # it is called, and what it raises is raised
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**right | {argument: given})
            except KeplerError as error:
                if len(str(error)) > 1000:
                    wrong.append(f"{shown}: {len(str(error)):,} characters: {str(error)[:100]}")
                if LONG[:150] in str(error):
                    wrong.append(f"{shown}: shows more than 100 characters of a value")
            except Exception as error:
                wrong.append(f"{shown}: {type(error).__name__}: {str(error)[:150]}")
    return wrong


NAMES = [name for name, *_ in calls(Path("none"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_value_gives_an_answer_or_a_short_error_of_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, function, right = next(each for each in calls(tmp_path) if each[0] == name)
    if name == "load_graph":
        kepler_traverse.save_graph(graph(), tmp_path / "graph")
    assert faults_of(name, function, right) == []


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b[31m", "\x00", "\u2028", "\x85"])
def test_an_error_is_one_line_whatever_it_shows(sign, tmp_path):
    for call in (
        lambda: read_graph(f"src,dst{sign}1,2"),
        lambda: read_graph(f"src{sign}*.csv"),
        lambda: load_graph(tmp_path / f"a{sign}b"),
    ):
        with pytest.raises(KeplerError) as refused:
            call()
        text = str(refused.value)
        assert sign not in text
        assert len(text.splitlines()) == 1
        assert text.isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(np.int64(7), "7"), (np.float32(0.5), "0.5"), (np.str_("a"), "'a'"), (np.bool_(True), "True")],
)
def test_a_scalar_of_numpy_is_shown_as_the_number_or_text_that_it_is(value, shown):
    with pytest.raises(KeplerError, match=f"graph must be a Graph, not {shown};"):
        sssp_many(value, [1])


NEAR = graph_from_edges([0, 1, 2, 0], [1, 2, 3, 3], [2, 3, 4, 20])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "k",
    [
        np.int8(5),
        np.uint8(255),
        np.int64(5),
        np.uint64(2**64 - 1),
        pa.scalar(5),
        2**64,
        pytest.param(10**400, id="10**400"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("targets", [None, [2, 3]])
def test_k_is_the_number_that_it_is_equal_to(k, targets):
    options = {"result": "nearest", "targets": targets}
    expected = sssp_many(NEAR, [0, 1], k=4, **options)
    pd.testing.assert_frame_equal(sssp_many(NEAR, [0, 1], k=k, **options), expected)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("weights", [[2, 3], [2**53 + 1, 1], [0.5, 1e308]])
@pytest.mark.parametrize("cost", [1e308, 2**63 - 1, float(2**63), 1e19])
def test_huge_start_costs_are_exact_or_refused(weights, cost):
    graph = graph_from_edges([0, 1], [1, 2], weights)
    try:
        found = sssp_many(graph, [0], result="nearest", start_costs=[cost])
    except KeplerError:
        return
    assert found["distance"][0] == cost


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("weights", [[2, 3], [5e-324, 1e308]])
@pytest.mark.parametrize("unit", [None, 5e-324, pytest.param(10**400, id="10**400")])
def test_units_beyond_float64_are_refused(weights, unit):
    graph = graph_from_edges([0, 1], [1, 2], weights)
    if unit is None and weights == [2, 3]:
        assert integer_weights(graph, unit).unit == 1.0
    else:
        with pytest.raises(InputError):
            integer_weights(graph, unit)


def test_run_ends_in_a_series_of_pandas_are_refused():
    encoded = pc.run_end_encode(pa.array([0, 0, 1]))
    series = pd.Series(pd.arrays.ArrowExtensionArray(encoded))
    graph = graph_from_edges([0, 1], [1, 2], [1, 1])
    for ask in (
        lambda ids: bfs_many(graph, ids, result="summary"),
        lambda ids: sssp_pairs(graph, ids, ids),
        lambda ids: sssp_many(graph, [0, 1, 2], result="nearest", start_costs=ids),
        lambda ids: graph_from_edges(ids, ids),
    ):
        with pytest.raises(InputError, match="run-end encoded"):
            ask(series)
        ask(pa.array(series))
