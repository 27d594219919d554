"""The functions of kepler_traverse.csgraph return what SciPy's return: values, types, shapes, and errors."""

import doctest
import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as scipy_csgraph
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kepler_traverse
from kepler_traverse import convert, csgraph
from tests.support import tiers

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


@st.composite
def dense_matrices(draw, negative=False, largest=7):
    """Square matrices with many zeros, so that shortest paths have ties and some vertices are not reached."""
    n = draw(st.integers(1, 8))
    low = -2 if negative else 0
    values = st.sampled_from([0, 0, 0, *range(low, largest)])
    rows = draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=n, max_size=n))
    dtype = draw(st.sampled_from([np.int8, np.int64, np.float32, np.float64]))
    return np.array(rows, dtype)


@st.composite
def sparse_matrices(draw, negative=False):
    """CSR, CSC and COO matrices with explicit zeros, unsorted indices, duplicates and fractions whose sums are exact."""
    n = draw(st.integers(1, 8))
    entries = draw(
        st.lists(
            st.tuples(
                st.integers(0, n - 1), st.integers(0, n - 1), st.integers(-2 if negative else 0, 5)
            ),
            max_size=20,
        )
    )
    row, column, value = (
        (np.array(part, np.int64) for part in zip(*entries, strict=True))
        if entries
        else ([], [], [])
    )
    data = np.asarray(value) * draw(st.sampled_from([1, 0.25]))
    kind = draw(st.sampled_from(["csr", "csc", "coo"]))
    array = draw(st.sampled_from([scipy.sparse.coo_array, scipy.sparse.coo_matrix]))(
        (data, (row, column)), shape=(n, n)
    )
    if kind == "coo":
        return array
    # Without the conversion's sums, so that duplicates are parallel edges.
    order = np.argsort(row if kind == "csr" else column, kind="stable")
    ends = np.concatenate(
        [
            [0],
            np.cumsum(np.bincount(np.asarray(row if kind == "csr" else column, int), minlength=n)),
        ]
    )
    inner = np.asarray(column if kind == "csr" else row, np.int32)[order]
    made = getattr(scipy.sparse, f"{kind}_array")((n, n))
    made.data, made.indices, made.indptr = (
        data[order].astype(np.float64),
        inner,
        ends.astype(np.int32),
    )
    return made


def matrices(negative=False):
    return st.one_of(dense_matrices(negative), sparse_matrices(negative))


def assert_predecessors_lead_along_shortest_paths(
    matrix, directed, unweighted, distance, predecessor
):
    """Each vertex that is reached has the predecessor of a shortest path, and following them ends at a source."""
    edges = convert.to_scipy(csgraph.from_matrix(matrix, directed, weighted=not unweighted)).todok()
    for row, previous in zip(np.atleast_2d(distance), np.atleast_2d(predecessor), strict=True):
        for v in range(row.size):
            u, steps = v, 0
            while previous[u] != -9999:
                assert (previous[u], u) in edges
                assert row[previous[u]] + (1 if unweighted else edges[previous[u], u]) == row[u]
                u, steps = previous[u], steps + 1
                assert steps < row.size
            assert not np.isfinite(row[v]) or row[u] == 0


def both(name, *arguments, **named):
    """What both libraries return, or the type of the error; a case in which both raise says nothing else."""
    found = []
    for library in (csgraph, scipy_csgraph):
        is_cycle = bool(found) and found[0] is scipy_csgraph.NegativeCycleError
        if is_cycle and (name == "dijkstra" or arguments[1:] == ("D",)):
            return found * 2  # SciPy's dijkstra would not end
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(getattr(library, name)(*arguments, **named))
        except (ValueError, scipy_csgraph.NegativeCycleError) as error:
            found.append(
                next(
                    kind
                    for kind in (ValueError, scipy_csgraph.NegativeCycleError)
                    if isinstance(error, kind)
                )
            )
    return found


def assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs)
    for mine, other in (
        zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    ):
        assert isinstance(mine, type) == isinstance(other, type)
        if isinstance(mine, type):
            assert mine is other
        else:
            assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    "name",
    [
        "dijkstra",
        "bellman_ford",
        "johnson",
        "shortest_path",
        "breadth_first_order",
        "breadth_first_tree",
    ],
)
def test_signatures_are_those_of_scipy(name):
    ours = inspect.signature(getattr(csgraph, name)).parameters.values()
    theirs = inspect.signature(getattr(scipy_csgraph, name)).parameters.values()
    assert [(p.name, p.default, p.kind) for p in ours] == [
        (p.name, p.default, p.kind) for p in theirs
    ]


def test_the_examples_of_the_docstrings_run():
    found = doctest.testmod(csgraph, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 10
    assert found.failed == 0


@settings(max_examples=tiers.examples(200))
@given(
    matrix=matrices(),
    directed=st.booleans(),
    unweighted=st.booleans(),
    limit=st.sampled_from([np.inf, 0, 1, 2.5, 6]),
    data=st.data(),
)
def test_dijkstra_is_that_of_scipy(matrix, directed, unweighted, limit, data):
    n = matrix.shape[0]
    some = st.lists(st.integers(-n, n - 1), max_size=5)
    indices = data.draw(
        st.one_of(st.none(), st.integers(-n, n - 1), some, some.map(lambda found: [found, found]))
    )
    named = {"directed": directed, "indices": indices, "unweighted": unweighted, "limit": limit}
    assert_same(*both("dijkstra", matrix, **named))
    ours, theirs = both("dijkstra", matrix, **named, return_predecessors=True)
    assert_same(ours[0], theirs[0])
    assert (ours[1].dtype, ours[1].shape) == (theirs[1].dtype, theirs[1].shape)
    assert np.array_equal(ours[1] == -9999, theirs[1] == -9999)
    flat = (-1, n)
    assert_predecessors_lead_along_shortest_paths(
        matrix, directed, unweighted, ours[0].reshape(flat), ours[1].reshape(flat)
    )


@settings(max_examples=tiers.examples(100))
@given(
    matrix=matrices(), directed=st.booleans(), limit=st.sampled_from([np.inf, 0, 2]), data=st.data()
)
def test_the_nearest_sources_are_those_of_scipy(matrix, directed, limit, data):
    n = matrix.shape[0]
    indices = data.draw(st.one_of(st.none(), st.lists(st.integers(0, n - 1), max_size=5)))
    unweighted = data.draw(st.booleans())
    named = {
        "directed": directed,
        "indices": indices,
        "unweighted": unweighted,
        "limit": limit,
        "min_only": True,
    }
    assert_same(*both("dijkstra", matrix, **named))
    ours, theirs = both("dijkstra", matrix, **named, return_predecessors=True)
    assert_same(ours[0], theirs[0])
    distance, predecessor, sources = ours
    assert [array.dtype for array in ours] == [array.dtype for array in theirs]
    assert np.array_equal(sources == -9999, theirs[2] == -9999)
    assert np.array_equal(predecessor == -9999, theirs[1] == -9999)
    assert_predecessors_lead_along_shortest_paths(
        matrix, directed, unweighted, distance, predecessor
    )
    for v in np.flatnonzero(predecessor != -9999):
        assert sources[predecessor[v]] == sources[v]


# Sums that float32 and float64 hold, round down and round up; fractions; and sums beyond float64.
AWKWARD = [
    *(
        [0, 1, 2, 3],
        [0.1, 0.3, 0.7, 1.5],
        [2**23, 2**23 + 1, 2**23 + 2],
        [2**24 - 1, 2, 4, 2**24 + 3],
    ),
    *([2**52, 2**52 + 1, 2**53 - 1, 3], [1e308, 1.0, 5e-324]),
]


@st.composite
def awkward_matrices(draw):
    n = draw(st.integers(2, 6))
    ends, values = st.integers(0, n - 1), st.sampled_from(draw(st.sampled_from(AWKWARD)))
    entries = {
        (row, column): value
        for row, column, value in draw(st.lists(st.tuples(ends, ends, values), max_size=14))
    }
    row, column = zip(*entries, strict=True) if entries else ((), ())
    return scipy.sparse.csr_array(
        (np.array(list(entries.values()), np.float64), (row, column)), shape=(n, n)
    )


def chain(*weights):
    n = len(weights) + 1
    return scipy.sparse.csr_array(
        (np.array(weights, np.float64), (np.arange(n - 1), np.arange(1, n))), shape=(n, n)
    )


@settings(max_examples=tiers.examples(300))
@example(matrix=chain(2, 1), directed=True, min_only=False, step=-1, which=1)
@example(matrix=chain(2**23 + 2, 2**23 + 1), directed=True, min_only=False, step=1, which=2)
@example(matrix=chain(1e308, 1e308), directed=True, min_only=False, step=0, which=1)
@given(
    matrix=awkward_matrices(),
    directed=st.booleans(),
    min_only=st.booleans(),
    step=st.sampled_from([-1, 0, 1]),
    which=st.integers(0, 40),
)
def test_a_limit_beside_a_distance_is_compared_as_by_scipy(matrix, directed, min_only, step, which):
    distances = np.unique(scipy_csgraph.dijkstra(matrix, directed))
    limit = distances[which % distances.size]
    limit = max(0.0, np.nextafter(limit, step * np.inf)) if step else limit
    named = {
        "directed": directed,
        "limit": limit,
        "min_only": min_only,
        "return_predecessors": True,
    }
    ours, theirs = both("dijkstra", matrix, **named)
    assert_same(ours[0], theirs[0])
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        assert np.array_equal(mine == -9999, other == -9999)


def test_negative_weights_within_a_limit_are_those_within_it_and_no_others():
    distances = csgraph.bellman_ford(chain(5, -4, 0.5))
    with pytest.warns(UserWarning, match="negative weights"):
        found, previous = csgraph.dijkstra(chain(5, -4, 0.5), limit=1.25, return_predecessors=True)
    assert np.array_equal(found, np.where(distances <= 1.25, distances, np.inf))
    # from vertex 0, vertex 2 is reached through vertex 1, which is at 5
    whole = csgraph.bellman_ford(chain(5, -4, 0.5), return_predecessors=True)[1]
    is_known = (whole != -9999) & np.isfinite(found)
    is_known &= np.isfinite(np.take_along_axis(found, whole.clip(0), axis=1))
    assert np.array_equal(previous, np.where(is_known, whole, -9999))
    assert not is_known[0, 2]
    assert is_known[1, 3]


@settings(max_examples=tiers.examples(200))
@given(
    matrix=matrices(negative=True), directed=st.booleans(), unweighted=st.booleans(), data=st.data()
)
def test_negative_weights_have_the_distances_and_the_cycles_of_scipy(
    matrix, directed, unweighted, data
):
    n = matrix.shape[0]
    indices = data.draw(
        st.one_of(st.none(), st.integers(0, n - 1), st.lists(st.integers(0, n - 1), max_size=3))
    )
    named = {"directed": directed, "indices": indices, "unweighted": unweighted}
    for name in ("bellman_ford", "johnson", "dijkstra"):
        assert_same(*both(name, matrix, **named))
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()  # the only one of these formats that SciPy's "FW" takes
    for method in ("auto", "D", "BF", "J", "FW"):
        if indices is None or method != "FW":
            assert_same(*both("shortest_path", matrix, method, **named))


@settings(max_examples=tiers.examples(100))
@given(matrix=matrices(), directed=st.booleans(), data=st.data())
def test_the_breadth_first_order_is_that_of_scipy(matrix, directed, data):
    start = data.draw(st.integers(0, matrix.shape[0] - 1))
    assert_same(*both("breadth_first_order", matrix, start, directed))
    assert_same(*both("breadth_first_order", matrix, start, directed, False))
    ours, theirs = both("breadth_first_tree", matrix, start, directed)
    assert type(ours) is type(theirs)
    assert_same(ours.toarray(), theirs.toarray())


@given(matrix=dense_matrices(), kind=st.sampled_from(FORMATS), mask=st.booleans())
def test_every_kind_of_matrix_is_read_as_by_scipy(matrix, kind, mask):
    dense = matrix.astype(float)
    # With a mask of its own: SciPy raises an error for a masked array that has none.
    given = (
        np.ma.masked_array(dense, mask=dense < 2)
        if mask
        else getattr(scipy.sparse, f"{kind}_array")(matrix)
    )
    assert_same(*both("dijkstra", given))
    assert_same(*both("dijkstra", matrix.tolist()))
    assert_same(*both("breadth_first_order", given, 0))
    assert_same(*both("shortest_path", given, directed=False, indices=[0]))
    assert_same(*both("shortest_path", scipy.sparse.csr_array(matrix), "FW", directed=False))


def test_a_masked_array_that_masks_nothing_has_an_edge_in_each_entry():
    assert_same(*both("shortest_path", np.ma.masked_equal([[5, 2], [3, 4]], 0)))


def test_random_floats_are_summed_as_by_scipy():
    rng = np.random.default_rng(5)
    matrix = scipy.sparse.random_array((300, 300), density=0.02, rng=rng, format="csr")
    for directed in (True, False):
        assert_same(*both("dijkstra", matrix, directed))
        assert_same(*both("shortest_path", matrix, "J", directed))
        assert_same(*both("dijkstra", matrix.astype(np.float32), directed, indices=[1, 2]))
    ours, theirs = both("dijkstra", matrix, return_predecessors=True)
    assert_same(ours, theirs)  # sums of random fractions have no ties


def test_infinite_and_nan_entries_are_no_way_in_a_sparse_matrix():
    matrix = scipy.sparse.csr_array(([np.inf, np.nan, 1.0], ([0, 1, 0], [1, 2, 2])), shape=(3, 3))
    for name in ("dijkstra", "johnson", "bellman_ford"):
        assert_same(*both(name, matrix))
        assert_same(*both(name, matrix, unweighted=True))
    assert_same(*both("breadth_first_order", matrix, 0))


def test_weights_that_float64_rounds_are_rounded_as_by_scipy():
    matrix = scipy.sparse.csr_array(([2**53 + 1, 1, 2**60], ([0, 1, 1], [1, 2, 0])), shape=(3, 3))
    assert_same(*both("dijkstra", matrix))
    largest = np.finfo(float).max
    beyond = scipy.sparse.csr_array(([largest, largest], ([0, 1], [1, 2])), shape=(3, 3))
    for name in ("dijkstra", "johnson", "bellman_ford"):
        assert_same(*both(name, beyond))


def test_negative_weights_of_dijkstra_warn_as_in_scipy():
    matrix = np.array([[0, -1, 0], [0, 0, 3], [0, 0, 0]])
    with pytest.warns(UserWarning, match="negative weights"):
        assert_same(
            csgraph.dijkstra(matrix), np.array([[0, -1, 2], [np.inf, 0, 3], [np.inf, np.inf, 0]])
        )
    with pytest.warns(UserWarning, match="negative weights"):
        csgraph.dijkstra(csgraph.from_matrix(matrix))
    with (
        pytest.warns(UserWarning, match="negative weights"),
        pytest.raises(scipy_csgraph.NegativeCycleError),
    ):
        csgraph.dijkstra(matrix, directed=False)


def test_a_negative_cycle_is_an_error_of_both_libraries():
    matrix = np.array([[0, 1, 0], [0, 0, -3], [0, 1, 0]])
    for kind in (kepler_traverse.NegativeCycleError, scipy_csgraph.NegativeCycleError):
        with pytest.raises(kind, match="negative cycle of 2 vertices") as caught:
            csgraph.johnson(matrix)
        assert sorted(pickle.loads(pickle.dumps(caught.value)).cycle) == [1, 2]


@pytest.mark.timeout(20)
@pytest.mark.filterwarnings("ignore:.*negative weights")
@pytest.mark.parametrize("min_only", [False, True])
@pytest.mark.parametrize(
    ("passed_on", "limit"),
    [([-np.inf], np.inf), ([1.0], np.nan), ([1e308, 1e308], np.inf)],
    ids=["minus infinity", "a limit that is no number", "beyond float64"],
)
def test_dijkstra_ends_on_a_negative_cycle_where_scipy_searches(passed_on, limit, min_only):
    weights = [-2.0, 1.0, *passed_on]
    ends = ([0, 1, 0, 3][: len(weights)], [1, 0, 3, 2][: len(weights)])
    matrix = scipy.sparse.csr_array((weights, ends), shape=(4, 4))
    options = {"limit": limit, "min_only": min_only}
    with pytest.raises(scipy_csgraph.NegativeCycleError):
        csgraph.dijkstra(matrix, indices=[0, 2], **options)
    assert_same(
        csgraph.dijkstra(matrix, indices=[2, 2], **options),
        scipy_csgraph.dijkstra(matrix, indices=[2, 2], **options),
    )


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_graph_that_was_built_once_gives_the_same(device):
    matrix = scipy.sparse.random_array(
        (60, 60), density=0.1, rng=np.random.default_rng(1), format="csr"
    )
    graph, hops = (
        csgraph.from_matrix(matrix).to(device),
        csgraph.from_matrix(matrix, weighted=False).to(device),
    )
    for name in ("dijkstra", "bellman_ford", "johnson", "shortest_path"):
        assert_same(
            getattr(csgraph, name)(graph, indices=[3, 3, 5]),
            getattr(csgraph, name)(matrix, indices=[3, 3, 5]),
        )
        assert_same(
            getattr(csgraph, name)(hops, unweighted=True),
            getattr(csgraph, name)(matrix, unweighted=True),
        )
    nearest = {"indices": [3, 5], "min_only": True, "return_predecessors": True}
    assert_same(csgraph.dijkstra(graph, **nearest), csgraph.dijkstra(matrix, **nearest))
    assert_same(csgraph.breadth_first_order(graph, 2), csgraph.breadth_first_order(matrix, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: csgraph.dijkstra(np.ones((2, 3))), "csgraph"),
        (
            lambda _: csgraph.dijkstra(scipy.sparse.csr_array((2, 3))),
            r"square matrix, not of shape \(2, 3\)",
        ),
        (lambda _: csgraph.dijkstra("graph"), "csgraph"),
        (
            lambda g: csgraph.dijkstra(g, indices=[0, 3]),
            "indices holds 3, and the vertices are 0 to 2",
        ),
        (lambda g: csgraph.dijkstra(g, indices=-4), "indices holds -4"),
        (lambda g: csgraph.dijkstra(g, indices=[2**40]), "indices holds 1099511627776"),
        (lambda g: csgraph.dijkstra(g, indices=[0.5]), "indices must be whole numbers, not 0.5"),
        (lambda g: csgraph.dijkstra(g, indices=["a"]), "indices must be whole numbers, not 'a'"),
        (lambda g: csgraph.dijkstra(g, indices=[[0], [1, 2]]), "indices must be vertex numbers"),
        (lambda g: csgraph.dijkstra(g, limit=-1), "limit must be 0 or more, not -1"),
        (lambda g: csgraph.dijkstra(g, limit="far"), "limit must be a number, not 'far'"),
        (
            lambda g: csgraph.breadth_first_order(g, 3),
            "i_start must be a vertex from 0 to 2, not 3",
        ),
        (
            lambda g: csgraph.breadth_first_order(g, -1),
            "i_start must be a vertex from 0 to 2, not -1",
        ),
        (lambda g: csgraph.shortest_path(g, "A*"), "method='A\\*' is none of"),
        (lambda g: csgraph.shortest_path(g, "FW", indices=[0]), "method='FW' computes all pairs"),
        (
            lambda g: csgraph.shortest_path(csgraph.from_matrix(g), "FW"),
            "takes a matrix and no Graph",
        ),
        (
            lambda g: csgraph.dijkstra(csgraph.from_matrix(g), directed=False),
            "directed=False was given",
        ),
        (
            lambda g: csgraph.dijkstra(csgraph.from_matrix(g, weighted=False)),
            "without weights; take unweighted=True",
        ),
        (lambda g: csgraph.breadth_first_tree(csgraph.from_matrix(g), 0), "give its matrix"),
        (lambda g: csgraph.from_matrix(g, directed="no"), "directed must be True or False"),
    ],
)
def test_a_wrong_argument_is_named_by_its_error(call, message):
    with pytest.raises(kepler_traverse.InputError, match=message):
        call(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))


@pytest.mark.parametrize("shape", [(0, 0), (1, 1)])
def test_matrices_without_edges_are_graphs_too(shape):
    for matrix in (np.zeros(shape), scipy.sparse.csr_array(shape)):
        assert_same(*both("dijkstra", matrix))
        assert_same(*both("dijkstra", matrix, return_predecessors=True))
        assert_same(*both("dijkstra", matrix, min_only=True, return_predecessors=True))
        assert_same(*both("johnson", matrix, indices=[]))


def test_the_arguments_are_left_as_they_were():
    dense = np.array([[0, 1.5, 0], [0, 0, 2], [0, 0, 0]])
    sparse = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 3))
    before = dense.copy(), sparse.copy()
    for function in (csgraph.dijkstra, csgraph.johnson, csgraph.shortest_path):
        function(dense)
        function(sparse, directed=False)
    assert np.array_equal(dense, before[0])
    assert sparse.nnz == before[1].nnz
    assert np.array_equal(sparse.data, before[1].data)
