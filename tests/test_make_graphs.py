"""The generator of edge lists: the same seed gives the same file."""

import numpy as np
import pyarrow.parquet
import pytest

from scripts import make_graphs

KINDS = {
    "rmat": ["rmat", "--scale", "8", "--edge-factor", "4"],
    "lattice": ["lattice", "--rows", "20", "--columns", "30", "--drop", "0.1"],
    "erdos-renyi": ["erdos-renyi", "--vertices", "100", "--edges", "500"],
}


def generate(path, kind, seed):
    make_graphs.main([*KINDS[kind], "--seed", str(seed), "--weights", "--output", str(path)])
    return pyarrow.parquet.read_table(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_edges_again_and_another_seed_does_not(kind, tmp_path):
    first, again, other = (generate(tmp_path / f"{i}.parquet", kind, seed) for i, seed in enumerate([7, 7, 8]))
    assert first.equals(again)
    assert not first.equals(other)
    assert (tmp_path / "0.parquet").read_bytes() == (tmp_path / "1.parquet").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_integers_from_1_to_255(kind, tmp_path):
    weight = generate(tmp_path / "edges.parquet", kind, 1)["weight"].to_numpy()
    assert weight.dtype == np.int32
    assert weight.min() >= 1
    assert weight.max() <= 255


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


def test_a_lattice_drops_the_asked_share_and_has_small_degrees():
    src, dst = make_graphs.lattice(rows=100, columns=100, drop=0.25, seed=1)
    full, _ = make_graphs.lattice(rows=100, columns=100, drop=0.0, seed=1)
    assert 0.73 < src.size / full.size < 0.77
    assert np.bincount(np.concatenate([src, dst])).max() <= 8
    assert not np.any(src == dst)
