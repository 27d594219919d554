"""Every public function, every argument, many wrong values: a correct result, or an error that names the argument.

The valid values of an argument are stated here again, in plain Python and without the library's own checks. A value that
is accepted must have the meaning of a valid value, and give the result of that value.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kepler_traverse
from kepler_traverse import (
    Graph,
    KeplerError,
    bfs,
    convert,
    graph_from_edges,
    plan_bfs,
    plan_bfs_many,
    plan_sssp,
    sssp,
)
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.errors import InputError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.multi_source.stream import ResultStream
from kepler_traverse.search.plan import Plan
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from tests.support import tiers
from tests.support.plans import BFS, SSSP
from tests.support.wrong_values import NOTHING, values

VALUES = list(values())

# --- what arguments may be ----------------------------------------------------------------------------------------------

IDS = [1, 2, 3, 4, 5]
WEIGHTS = [2, 1, 3]


def graph():
    return graph_from_edges(
        np.array([1, 2, 3]), np.array([2, 3, 4]), np.array(WEIGHTS), vertices=np.array([5])
    )


def names_graph():
    ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    return graph_from_numbers(*ends, np.array([2, 3]), ids=pa.array(["a", "b", "c"]))


GRAPH, NAMES = graph(), names_graph()


def is_whole(value):
    return type(value) is int and value >= 0


def is_limit(value):
    return (type(value) in (int, float) and 0 <= value < 10**300) or value == float("inf")


def are_two_weights(value):
    return (
        list_of(lambda weight: type(weight) in (int, float) and abs(weight) < 10**17)(value)
        and len(value) == 2
    )


def is_flag(value):
    return type(value) is bool


def list_of(fits):
    return lambda value: type(value) is list and all(map(fits, value))


def one_of(*names):
    return lambda value: type(value) is str and value in names


def or_none(fits):
    return lambda value: value is None or fits(value)


def never(_):
    return False


def is_id(value):
    return type(value) is int and value in IDS


def is_name(value):
    return type(value) is str and value in ("a", "b", "c")


def are_sources(value):
    """Lists of ids, one id, sets of them, and every vertex."""
    return is_id(value) or list_of(is_id)(value) or (type(value) is str and value == "all")


def are_names(value):
    return is_name(value) or list_of(is_name)(value) or (type(value) is str and value == "all")


def is_number(value):
    return type(value) is int and 0 <= value < 5


def is_vertex(value):
    return type(value) is int and -(2**63) <= value < 2**64


def column_like(length):
    """Lists of integers of any type that holds them, of one length."""
    return lambda value: list_of(is_vertex)(value) and (length is None or len(value) == length)


def weights_of(length):
    def fits(value):
        return (
            type(value) is list
            and len(value) == length
            and all(
                (type(v) is int and abs(v) < 2**53) or (type(v) is float and abs(v) < float("inf"))
                for v in value
            )
        )

    return or_none(fits)


def reverse_weights_of(length):
    """Weights, of which null and infinite ones close a direction."""
    closing = [float("inf"), 1.0], [1, None]
    return lambda value: value in closing or weights_of(length)(value)


def are_directions(length):
    """Lists of -1, 0 and 1, or of booleans."""

    def fits(value):
        if type(value) is not list or len(value) != length:
            return False
        return all(map(is_flag, value)) or all(
            type(v) in (int, float) and v in (-1, 0, 1) for v in value
        )

    return fits


def some_of(*ids):
    return lambda value: value != [] and list_of(lambda v: type(v) is int and v in ids)(value)


def ascends(*kinds):
    """Whether a value is a list of cutoffs of these types."""
    return lambda value: (
        type(value) is list
        and bool(value)
        and all(type(v) in kinds and 0 <= v <= 1e300 for v in value)
        and value == sorted(set(value))
    )


SEARCH = {"strategy": ("auto", one_of("auto")), "knobs": (None, lambda value: value is None)}
SHOWN = {"unreached": ("omit", one_of("omit", "null", "cugraph"))}
HOPS = {"max_depth": (None, or_none(is_limit))}
WEIGHTED = {"cutoff": (None, or_none(is_limit))}


def per_source(n_sources):
    """Whether a value is a limit, or a list of one per source."""
    return or_none(
        lambda value: is_limit(value) or (list_of(is_limit)(value) and len(value) == n_sources)
    )


def limit_of_two(value):
    """A limit, or a list of one for each of two sources, of which each may be None."""
    return (
        value is None or is_limit(value) or (list_of(or_none(is_limit))(value) and len(value) == 2)
    )


def are_two_ids(value):
    return list_of(is_id)(value) and len(value) == 2


MANY_HOPS, MANY_WEIGHTED = {"max_depth": (None, per_source(2))}, {"cutoff": (None, per_source(2))}
ALONE = {"predecessors": (True, is_flag), "targets": (None, or_none(list_of(is_id)))}
MEMORY = {"memory": (None, or_none(lambda value: is_whole(value) and value > 10**6))}
MULTI_SOURCE = {
    "result": (
        "distances",
        one_of("distances", "predecessors", "matrix", "reachable", "summary", "nearest"),
    ),
    "targets": (None, or_none(list_of(is_id))),
}
WITH_CUTOFFS = ("opportunities", "within", "isochrones")
PLANNED = {"n_sources": (2, is_whole), "shape": (None, lambda value: value is None)}
GIVEN = {"graph": (GRAPH, never)}
LONG = {
    "progress": (False, or_none(is_flag)),
    "stream": (False, is_flag),
    "hierarchy": ("auto", one_of("auto", "yes", "no")),
}
SOURCES = {"sources": ([1, 2], are_sources), "direction": ("out", one_of("out"))}


def strings(*choices):
    return or_none(one_of(*choices))


def file_arguments(path):
    return {
        "paths": (path, never),
        "directed": (True, is_flag),
        "device": ("cpu", one_of("cpu", "auto")),
        "src_column": ("src", one_of("src")),
        "dst_column": ("dst", one_of("dst")),
        "weight_column": ("weight", strings("weight")),
        "weighted": (True, lambda value: value is True or value is None),
        "format": ("csv", one_of("csv", "auto")),
        "header": ("yes", one_of("yes", "auto")),
        "delimiter": (",", strings(",")),
        "id_type": ("int64", one_of("int64", "auto")),
        "weight_type": ("auto", one_of("auto", "float32", "float64")),
        "vertices": ([5], or_none(list_of(is_vertex))),
        "where": (None, or_none(never)),
        "oneway_column": (None, or_none(never)),
        "only_vertices": (None, or_none(some_of(1, 2, 3, 5))),
        "closed": (None, lambda value: value == [] or or_none(some_of(1, 2, 3, 5))(value)),
        "largest_component": (False, is_flag),
        "reverse_weight_column": (None, or_none(never)),
        "edge_ids": (False, is_flag),
        "build_memory": (None, or_none(never)),  # without a folder
    }


def calls(path):
    """Yield (name, function, arguments); an argument has a right value and what it may be in plain Python."""
    yield (
        "graph_from_edges",
        kepler_traverse.graph_from_edges,
        {
            "src": ([1, 2], column_like(2)),
            "dst": ([2, 3], column_like(2)),
            "weight": ([1, 2], weights_of(2)),
            "directed": (True, is_flag),
            "vertices": (None, or_none(column_like(None))),
            "weighted": (None, lambda value: value is True or value is None),
            "weight_type": ("auto", one_of("auto", "float32", "float64")),
            "where": (None, or_none(never)),
            "oneway": (None, or_none(are_directions(2))),
            "only_vertices": (None, or_none(some_of(1, 2, 3))),
            "closed": (None, lambda value: value == [] or or_none(some_of(1, 2, 3))(value)),
            "largest_component": (False, is_flag),
            "reverse_weight": (None, reverse_weights_of(2)),
            "edge_ids": (False, is_flag),
        },
    )
    yield "read_graph", kepler_traverse.read_graph, file_arguments(path)
    source = {"source": (1, is_id)}
    yield "bfs", kepler_traverse.bfs, GIVEN | source | SEARCH | HOPS | ALONE | SHOWN
    yield "sssp", kepler_traverse.sssp, GIVEN | source | SEARCH | WEIGHTED | ALONE | SHOWN
    names = {
        "graph": (NAMES, never),
        "source": ("a", is_name),
        "targets": (["b"], or_none(list_of(is_name))),
    }
    yield "bfs of names", kepler_traverse.bfs, names
    many = {
        "graph": (NAMES, never),
        "sources": (["a"], are_names),
        "targets": (["b"], or_none(list_of(is_name))),
    }
    yield "sssp_many of names", kepler_traverse.sssp_many, many
    yield (
        "bfs_many",
        kepler_traverse.bfs_many,
        GIVEN | SOURCES | SEARCH | MANY_HOPS | MULTI_SOURCE | SHOWN | MEMORY | LONG,
    )
    many = GIVEN | SOURCES | SEARCH | MANY_WEIGHTED | MULTI_SOURCE | SHOWN | MEMORY | LONG
    yield "sssp_many", kepler_traverse.sssp_many, many
    for result in (
        *("matrix", "targets", "summary", "levels", "reachable", "nearest", "predecessors"),
        *WITH_CUTOFFS,
    ):
        fixed = GIVEN | SOURCES | {"result": (result, one_of(result))}
        if result not in ("reachable", "predecessors"):
            fixed["direction"] = ("in", one_of("in", "out"))
        if result == "targets":
            fixed["targets"] = ([3], list_of(is_id))
        elif result in ("matrix", "predecessors"):
            fixed["targets"] = ([3], or_none(list_of(is_id)))
        elif result == "nearest":
            fixed["sources"] = ([1], lambda value: value != [] and are_sources(value))
            fixed["k"] = (2, or_none(lambda value: is_whole(value) and value > 0))
            fixed["groups"] = (
                None,
                or_none(lambda value: list_of(is_whole)(value) and len(value) == 1),
            )
        elif result in WITH_CUTOFFS:
            fixed["cutoffs"] = ([1, 2], ascends(int))
            if result == "opportunities":
                fixed["values"] = ({"a": [1] * GRAPH.n_vertices}, never)
                fixed["source_weights"] = (None, or_none(are_two_weights))
                fixed["decay"] = ("linear:2", or_none(one_of("linear:2", "gaussian:1e3")))
            yield f"bfs_many {result}", kepler_traverse.bfs_many, fixed
            yield (
                f"sssp_many {result}",
                kepler_traverse.sssp_many,
                fixed | {"cutoffs": ([1, 2], ascends(int, float))},
            )
            continue
        is_one = result == "nearest"
        yield (
            f"bfs_many {result}",
            kepler_traverse.bfs_many,
            fixed | (HOPS if is_one else MANY_HOPS),
        )
        if result != "levels":
            yield (
                f"sssp_many {result}",
                kepler_traverse.sssp_many,
                fixed | (WEIGHTED if is_one else MANY_WEIGHTED),
            )
    yield "plan_bfs", kepler_traverse.plan_bfs, GIVEN | SEARCH | HOPS | ALONE
    yield "plan_sssp", kepler_traverse.plan_sssp, GIVEN | SEARCH | WEIGHTED | ALONE
    planned = MULTI_SOURCE | {
        "result": (
            "distances",
            one_of("distances", "predecessors", "matrix", "reachable", "summary", "nearest"),
        )
    }
    yield (
        "plan_bfs_many",
        kepler_traverse.plan_bfs_many,
        GIVEN | PLANNED | SEARCH | HOPS | planned | MEMORY,
    )
    yield (
        "plan_sssp_many",
        kepler_traverse.plan_sssp_many,
        GIVEN | PLANNED | SEARCH | WEIGHTED | planned | MEMORY,
    )
    certified = GIVEN | {"result": (bfs(GRAPH, 1), never)}
    yield (
        "certify",
        kepler_traverse.certify,
        certified | {"max_depth": (None, or_none(never))},
    )
    weighted = certified | {"result": (sssp(GRAPH, 1), never)}
    yield "certify sssp", kepler_traverse.certify, weighted | {"cutoff": (None, or_none(never))}
    yield (
        "certify_many",
        kepler_traverse.certify_many,
        GIVEN
        | {
            "source_vertices": (
                np.array([0, 1]),
                lambda value: list_of(is_number)(value) and len(value) == 2,
            ),
            "distances": (plan_bfs_many(GRAPH, n_sources=2).run([0, 1]).distance, never),
            "limit": (None, limit_of_two),
        },
    )
    yield "components", kepler_traverse.components, GIVEN
    columns = GIVEN | {"origins": ([1, 2], are_two_ids), "destinations": ([3, 1], are_two_ids)}
    columns["result"] = ("pairs", one_of("pairs", "flows"))
    columns["direction"] = ("in", one_of("out", "in"))
    yield "bfs_pairs", kepler_traverse.bfs_pairs, columns | SEARCH | HOPS | MEMORY
    yield "sssp_pairs", kepler_traverse.sssp_pairs, columns | SEARCH | WEIGHTED | MEMORY
    yield (
        "paths",
        kepler_traverse.paths,
        {
            "frame": (bfs(GRAPH, 1), never),
            "targets": ([3], list_of(lambda v: is_id(v) and v < 5)),
            "graph": (None, or_none(never)),
        },
    )
    known = kepler_traverse.graph_from_edges([1, 2, 3], [2, 3, 4], WEIGHTS, edge_ids=True)
    yield (
        "paths in a graph",
        kepler_traverse.paths,
        {
            "frame": (bfs(GRAPH, 1), never),
            "targets": ([3], list_of(is_id)),
            "graph": (GRAPH, or_none(never)),
        },
    )
    yield (
        "paths with edges",
        kepler_traverse.paths,
        {
            "frame": (bfs(known, 1), never),
            "targets": ([3], list_of(lambda v: is_id(v) and v < 5)),
            "graph": (known, never),
            "edges": (True, is_flag),
        },
    )
    of_pairs = {
        "frame": (known, never),
        "targets": (([1, 2], [3, 3]), never),
        "edges": (True, is_flag),
        "along": ({"metres": WEIGHTS}, lambda value: value is None or value == {}),
        "algorithm": (None, or_none(one_of("bfs", "sssp"))),
        "strategy": ("auto", one_of("auto")),
    }
    yield "paths of pairs", kepler_traverse.paths, of_pairs | MEMORY
    yield "strategies", kepler_traverse.strategies, {"published": (False, is_flag)}
    yield (
        "Graph",
        Graph,
        {
            "offsets": (GRAPH.offsets, never),
            "targets": (GRAPH.targets, never),
            "weights": (GRAPH.weights, lambda value: value is None),
            "ids": (GRAPH.ids, never),
            "directed": (True, is_flag),
            "report": (GRAPH.report, never),
            "integer_weights": (GRAPH.integer_weights, is_flag),
            "float_distances": (False, is_flag),
            "may_pull": (False, is_flag),
            "edge_rows": (None, or_none(never)),
            "edges_of_rows": (None, or_none(never)),
            "closed": (None, or_none(never)),
            "negative_loops": ({}, lambda value: isinstance(value, dict)),
            "known_fingerprint": (None, or_none(never)),
        },
    )
    derived = GRAPH.derived
    yield (
        "Derived.sums_in",
        derived.sums_in,
        {"dtype": ("float64", one_of("float32", "float64", "int64"))},
    )
    for name, function in (
        ("Graph.hierarchy", GRAPH.hierarchy),
        ("Graph.labels", GRAPH.labels),
        ("Derived.known_hierarchy", derived.known_hierarchy),
    ):
        yield name, function, {"metric": ("hops", one_of("weights", "hops"))}
    yield (
        "with_weights",
        kepler_traverse.with_weights,
        {
            "graph": (known, never),
            "weight": (WEIGHTS, lambda value: value is not None and weights_of(3)(value)),
            "reverse_weight": (None, or_none(never)),
            "per": ("row", one_of("row", "edge")),
            "weight_type": ("auto", one_of("auto", "float32", "float64")),
        },
    )
    yield "Graph.to", GRAPH.to, {"device": ("cpu", one_of("cpu"))}
    yield (
        "Graph.to_numbers",
        GRAPH.to_numbers,
        {"ids": ([1], list_of(is_id)), "role": ("source", lambda value: type(value) is str)},
    )
    yield "Graph.to_numbers names", NAMES.to_numbers, {"ids": (["a"], list_of(is_name))}
    yield "Graph.ids_at", GRAPH.ids_at, {"numbers": (np.array([1]), list_of(is_number))}
    yield (
        "convert.to_networkx",
        lambda weight: sorted(convert.to_networkx(GRAPH, weight).edges(data=True)),
        {"weight": ("weight", lambda value: type(value) is str)},
    )
    yield "Plan.__call__", plan_bfs(GRAPH), {"source": (1, is_id)}
    yield "Plan.run_number", plan_sssp(GRAPH).run_number, {"number": (0, is_number)}
    yield "Plan.run", plan_sssp(GRAPH).run, {"number": (0, is_number)}
    yield (
        "MultiSourcePlan.run",
        plan_bfs_many(GRAPH, n_sources=4).run,
        {"source_vertices": ([0, 1], list_of(is_number))},
    )
    yield (
        "MultiSourcePlan.ranked",
        plan_bfs_many(GRAPH, n_sources=4).ranked,
        {"n_sources": (2, is_whole)},
    )
    yield (
        "MultiSourcePlan.iter_groups",
        lambda source_vertices: list(
            plan_bfs_many(GRAPH, n_sources=4).iter_groups(source_vertices)
        ),
        {"source_vertices": ([0], list_of(is_number))},
    )


SINGULAR = {
    "sources": "source",
    "targets": "target",
    "origins": "origin",
    "destinations": "destination",
    "vertices": "vertices|vertex",
    "ids": "ids|source",
    "numbers": "numbers?",
    "source_vertices": "numbers?",
}
# Where more than one argument may be at fault, or the words of the files say it.
ALSO = {
    "paths": "file|folder|such",
    "header": "column",
    "ids": "sources",
    "src_column": "column",
    "dst_column": "column",
    "weight_column": "column|weight",
    "max_depth": "cutoff",
    "strategy": "strategy",
    "id_type": "id type|ids",
    "memory": "MiB are free",
    "frame": "pairs",
    "targets": "pairs|origins|destinations",
}


def names_argument(message, argument):
    words = "|".join(filter(None, [argument, SINGULAR.get(argument), ALSO.get(argument)]))
    return re.search(rf"\b(?:{words})\b", message)


def plain(result):
    """A result in a form that can be compared."""
    if isinstance(result, Graph):
        weights = None if result.weights is None else result.weights.tolist()
        return (
            result.ids.tolist(),
            result.offsets.tolist(),
            result.targets.tolist(),
            weights,
            result.directed,
        )
    if isinstance(result, pd.DataFrame):
        return (
            result.columns.tolist(),
            [repr(v) for v in result.to_numpy().ravel().tolist()],
            result.dtypes.map(str).tolist(),
        )
    if isinstance(result, (pa.Array, np.ndarray)):
        return str(getattr(result, "dtype", "")), result.tolist()
    if isinstance(result, Plan):
        return plain(result.run(0))
    if isinstance(result, MultiSourcePlan):
        return plain(result.run([0]))
    if isinstance(result, (list, ResultStream)):
        return [plain(item) for item in result]
    if hasattr(result, "distance"):
        kept = (result.distance, result.predecessor, getattr(result, "counts", None))
        return [None if item is None else plain(item) for item in kept]
    return result


def one_call(function, given):
    """Return the outcome of a call: ("answer", result) or ("error", message)."""
    try:
        return "answer", plain(function(**given))
    except KeplerError as error:
        return "error", str(error)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.csv"
    path.write_text("src,dst,weight\n1,2,5\n2,3,1\n")
    return str(path)


NAMED_CALLS = [name for name, *_ in calls("")]
# Each kind of table is tried in tests/graph/test_tables.py, and folders in tests/graph/test_graphs_in_files.py.
TABLES = {("graph_from_edges", "edges"), ("read_graph", "scratch")}
MADE_HERE = {"Certificate", "MultiSourcePlan", "Plan", "Traversal", "Traversals"}


@pytest.mark.parametrize("name", NAMED_CALLS)
def test_wrong_values_give_correct_results_or_errors_that_name_the_argument(name, edges):
    _, function, arguments = next(call for call in calls(edges) if call[0] == name)
    right = {argument: value for argument, (value, _) in arguments.items()}
    right_answer = function(**right)
    assert right_answer is not None
    wrong = []
    for at, (argument, (_, fits)) in enumerate(arguments.items()):
        for value in tiers.few([*VALUES[at:], *VALUES[:at]], len(VALUES) // 6):
            if argument == "progress" and callable(value.make()):
                continue  # it is called, and what it raises is raised
            shown = f"{argument}={value.name}"
            try:
                kind, said = one_call(function, right | {argument: value.make()})
            except Exception as error:
                wrong.append(f"{shown}: {type(error).__name__}: {error}"[:200])
                continue
            accepted = value.means is not NOTHING and fits(value.means)
            if kind == "error":
                if not names_argument(said, argument):
                    wrong.append(f"{shown}: the error does not name it: {said}"[:200])
                if "\x1b" in said or "\0" in said or len(said) > 600:
                    wrong.append(f"{shown}: the error is no line of text")
                if accepted and type(value.make()) is type(value.means):
                    wrong.append(f"{shown}: refused, though it is right: {said}"[:200])
            elif not accepted:
                wrong.append(f"{shown}: accepted: {said}"[:200])
            elif said != one_call(function, right | {argument: as_plain(argument, value.means)})[1]:
                wrong.append(f"{shown}: another answer than of {value.means!r}")
    assert not wrong, "\n".join(wrong)


def as_plain(argument, means):
    """The plain value, for ``ids_at`` as an array, which is all that it takes."""
    return (
        np.array(means, np.int64)
        if argument in ("numbers", "source_vertices") and isinstance(means, list)
        else means
    )


def test_every_public_name_and_argument_is_tried(edges):
    tried = {}
    for _, function, arguments in calls(edges):
        where = getattr(function, "__qualname__", type(function).__name__)
        tried.setdefault(where, set()).update(arguments)
    for name in kepler_traverse.__all__:
        public = getattr(kepler_traverse, name)
        if inspect.isclass(public) and (issubclass(public, Exception) or name in MADE_HERE):
            continue  # users catch these errors and get these objects, and make neither
        if name in ("write_geoparquet", "save_graph", "load_graph"):
            # they take any path: tests/traversal/test_geoparquet.py and tests/graph/test_tables.py
            continue
        if name in ("snap", "integer_weights"):
            continue  # tests/traversal/test_snap.py and tests/hierarchy/test_integer_weights.py
        # further ones are those of plug-ins
        parameters = inspect.signature(public).parameters.values()
        expected = {
            each.name
            for each in parameters
            if each.kind != each.VAR_KEYWORD and (name, each.name) not in TABLES
        }
        assert expected == tried[name], name
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (Graph, Plan, MultiSourcePlan)
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    # These take nothing, are another name, or say in their docstring that the caller has checked.
    assert methods - set(NAMED_CALLS) == {
        "Plan.adopt",
        "Plan.explain",
        "Plan.run_unguarded",
        "MultiSourcePlan.adopt",
        "MultiSourcePlan.explain",
        "MultiSourcePlan.measurements",
        "MultiSourcePlan.release",
        "MultiSourcePlan.estimate_hierarchy",
    }


@pytest.mark.parametrize(
    "row",
    [row for row in chain(BFS, BFS_MULTI_SOURCE, SSSP, SSSP_MULTI_SOURCE) if row.knobs is not None],
    ids=lambda row: row.name,
)
def test_every_wrong_value_of_a_knob_is_refused_by_its_name(row):
    wrong = []
    for field in fields(row.knobs):
        for value in VALUES:
            given = value.make()
            if type(given) is type(field.default) or (
                type(field.default) is float and type(given) is int
            ):
                continue  # of the right type: the knobs' own tests look at the range
            try:
                knobs = row.knobs_from({field.name: given})
            except InputError as error:
                if field.name not in str(error):
                    wrong.append(f"{field.name}={value.name}: {error}")
            except Exception as error:
                wrong.append(f"{field.name}={value.name}: {type(error).__name__}: {error}")
            else:
                if not isinstance(given, np.generic):
                    wrong.append(
                        f"{field.name}={value.name}: accepted as {getattr(knobs, field.name)!r}"
                    )
    assert wrong == []
