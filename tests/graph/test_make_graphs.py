"""The generator of edge lists: the same seed gives the same file."""

import numpy as np
import pyarrow.parquet
import pytest

from kepler_traverse import graph_from_edges, plan_sssp
from scripts import make_graphs

KINDS = {
    "rmat": ["rmat", "--scale", "8", "--edge-factor", "4"],
    "lattice": ["lattice", "--rows", "20", "--columns", "30", "--drop", "0.1"],
    "erdos-renyi": ["erdos-renyi", "--vertices", "100", "--edges", "500"],
    "mesh": ["mesh", "--rows", "20", "--columns", "30"],
    "scale-free": ["scale-free", "--vertices", "2000"],
}


def generate(path, kind, seed):
    make_graphs.main([*KINDS[kind], "--seed", str(seed), "--weights", "--output", str(path)])
    return pyarrow.parquet.read_table(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_edges_again_and_another_seed_does_not(kind, tmp_path):
    first, again, other = (
        generate(tmp_path / f"{i}.parquet", kind, seed) for i, seed in enumerate([7, 7, 8])
    )
    assert first.equals(again)
    assert not first.equals(other)
    assert (tmp_path / "0.parquet").read_bytes() == (tmp_path / "1.parquet").read_bytes()
    weight = first["weight"].to_numpy()
    assert weight.dtype == np.int32
    assert 1 <= weight.min() <= weight.max() <= 255


def test_an_rmat_graph_has_the_asked_size_and_skewed_degrees():
    src, dst = make_graphs.rmat(scale=10, edge_factor=16, seed=1)
    assert src.size == dst.size == 16 * 1024
    assert min(src.min(), dst.min()) >= 0
    assert max(src.max(), dst.max()) < 1024
    assert np.bincount(src).max() > 10 * 16


def test_the_quadrants_of_rmat_have_their_probabilities():
    # At scale 1 an edge is one quadrant; the shuffle may only swap the two numbers.
    src, dst = make_graphs.rmat(scale=1, edge_factor=1 << 17, seed=1)
    shares = np.bincount(2 * src + dst, minlength=4) / src.size
    if shares[0] < shares[3]:
        shares = shares[::-1]
    np.testing.assert_allclose(shares, make_graphs.RMAT, atol=0.01)


def test_lattice_drops_the_given_fraction_and_has_small_degrees():
    src, dst = make_graphs.lattice(rows=100, columns=100, drop=0.25, seed=1)
    full, _ = make_graphs.lattice(rows=100, columns=100, drop=0.0, seed=1)
    assert 0.73 < src.size / full.size < 0.77
    assert np.bincount(np.concatenate([src, dst])).max() <= 8
    assert not np.any(src == dst)


def test_a_mesh_is_a_triangulated_grid():
    rows, columns = 20, 30
    src, dst = make_graphs.mesh(rows, columns, seed=1)
    cells = (rows - 1) * (columns - 1)
    assert src.size == rows * (columns - 1) + (rows - 1) * columns + cells
    (down, right), (end_down, end_right) = (np.divmod(ends, columns) for ends in (src, dst))
    steps = set(zip((end_down - down).tolist(), (end_right - right).tolist(), strict=True))
    assert steps == {(0, 1), (1, 0), (1, 1), (1, -1)}
    degrees = np.bincount(np.concatenate([src, dst]), minlength=rows * columns).reshape(
        rows, columns
    )[1:-1, 1:-1]
    assert set(degrees.ravel().tolist()) == {4, 5, 6, 7, 8}
    falling = ((end_down - down == 1) & (end_right - right == 1)).sum()
    assert 0.4 * cells < falling < 0.6 * cells


def test_every_inner_vertex_of_a_degree_six_grid_has_six_neighbors(tmp_path):
    rows, columns = 20, 30
    src, dst = make_graphs.degree_six(rows, columns, seed=1)
    assert src.size == rows * (columns - 1) + (rows - 1) * columns + (rows - 1) * (columns - 1)
    degrees = np.bincount(np.concatenate([src, dst]), minlength=rows * columns).reshape(
        rows, columns
    )
    assert set(degrees[1:-1, 1:-1].ravel().tolist()) == {6}
    assert degrees.max() == 6
    make_graphs.main(
        [
            "degree-six",
            "--rows",
            "20",
            "--columns",
            "30",
            "--output",
            str(tmp_path / "grid.parquet"),
        ]
    )
    written = pyarrow.parquet.read_table(tmp_path / "grid.parquet")
    assert np.array_equal(written["src"].to_numpy(), src)
    assert np.array_equal(written["dst"].to_numpy(), dst)


@pytest.mark.parametrize(
    "rng", [None, make_graphs.Draws(np, 1)], ids=["NumPy's draws", "our draws"]
)
def test_scale_free_graph_has_one_hub_per_thousand_vertices(rng):
    src, dst = make_graphs.scale_free(20_500, 1, rng=rng)
    degrees = np.bincount(src, minlength=20_500)
    assert (degrees == 1000).sum() == 20
    small = degrees[degrees != 1000]
    assert set(small.tolist()) == {5, 6, 7}
    assert 5.9 < small.mean() < 6.1
    assert 0 <= dst.min() <= dst.max() < 20_500


def test_potentials_make_negative_weights_and_move_distances_by_their_difference(tmp_path):
    edges, lowered = tmp_path / "edges.parquet", tmp_path / "lowered.parquet"
    make_graphs.main([*KINDS["lattice"], "--weights", "--output", str(edges)])
    make_graphs.main(
        ["potentials", str(edges), "--largest", "100", "--seed", "5", "--output", str(lowered)]
    )
    before, after = (
        graph_from_edges(
            *(table[name].to_numpy() for name in ("src", "dst", "weight")), directed=True
        )
        for table in map(pyarrow.parquet.read_table, (edges, lowered))
    )
    assert after.has_negative_weights
    h = make_graphs.potential(before.ids, 100, 5)
    assert (h.min(), h.max()) == (0, 100)
    for source in (0, 7):
        plain, moved = plan_sssp(before).run(source), plan_sssp(after).run(source)
        np.testing.assert_array_equal(moved.distance, plain.distance + h[source] - h)


def test_potentials_need_weights(tmp_path):
    edges = tmp_path / "edges.parquet"
    make_graphs.main([*KINDS["lattice"], "--output", str(edges)])
    with pytest.raises(SystemExit, match="no column 'weight'"):
        make_graphs.main(["potentials", str(edges), "--output", str(tmp_path / "lowered.parquet")])


def test_draws_are_uniform_never_repeat_and_depend_on_the_seed():
    rng, other = make_graphs.Draws(np, 1), make_graphs.Draws(np, 2)
    first, second = rng.random(100_000), rng.random(100_000)
    for draw in (first, second):
        np.testing.assert_allclose(np.histogram(draw, 10, (0, 1))[0] / draw.size, 0.1, atol=0.005)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
    assert not np.array_equal(first, other.random(100_000))
    assert np.array_equal(first, make_graphs.Draws(np, 1).random(100_000))
    assert first.dtype == np.float64
    assert rng.random(3, np.float32).dtype == np.float32


def test_draws_of_integers_stay_in_their_range_and_permutations_hold_every_number_once():
    rng = make_graphs.Draws(np, 1)
    assert set(rng.integers(3, 8, 1000).tolist()) == {3, 4, 5, 6, 7}
    permutation = rng.permutation(1000)
    assert sorted(permutation.tolist()) == list(range(1000))
    assert not np.array_equal(permutation, np.arange(1000))


def test_a_generator_takes_draws_in_place_of_numpys():
    src, dst = make_graphs.rmat(10, 16, 1, rng=make_graphs.Draws(np, 1))
    again, _ = make_graphs.rmat(10, 16, 1, rng=make_graphs.Draws(np, 1))
    assert np.array_equal(src, again)
    assert src.max() < 1024
    assert np.bincount(src).max() > 10 * 16
    assert not np.array_equal(src, dst)
