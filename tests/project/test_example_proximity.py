"""The recipe of proximity, beside a plain computation with NetworkX."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from examples import proximity as recipe
from kepler_traverse import InputError, graph_from_edges
from kepler_traverse.convert import from_networkx


@pytest.fixture(scope="module")
def network():
    """A network with hubs, of 400 genes with names."""
    plain = nx.barabasi_albert_graph(400, 2, seed=3)
    return nx.relabel_nodes(plain, {number: f"G{number}" for number in plain})


def by_networkx(network, first, second):
    hops = [[nx.shortest_path_length(network, a, b) for b in second] for a in first]
    return {"closest": np.mean([min(row) for row in hops]), "mean": np.mean(hops)}


def test_both_measures_and_their_z_scores_are_those_of_networkx(network):
    graph = from_networkx(network)
    first, second = ["G3", "G50", "G399"], ["G0", "G77", "G50", "G120"]
    found = recipe.proximity(graph, first, second, n_random=30, bin_size=40, seed=5)
    rng = np.random.default_rng(5)
    bins = recipe.degree_bins(np.diff(graph.offsets), 40)
    sets = [
        [graph.ids_at(row).to_pylist() for row in drawn]
        for drawn in (
            recipe.draw_sets(bins, graph.to_numbers(genes), 30, rng) for genes in (first, second)
        )
    ]
    random = [by_networkx(network, *each) for each in zip(*sets, strict=True)]
    for name, value in by_networkx(network, first, second).items():
        values = [each[name] for each in random]
        expected = (value, np.mean(values), np.std(values))
        np.testing.assert_allclose(found[name][:3], expected)
        assert found[name].z == pytest.approx((value - np.mean(values)) / np.std(values))


@pytest.mark.parametrize("bin_size", [1, 40, 150, 1000])
def test_bins_hold_each_gene_once_and_degrees_do_not_overlap(network, bin_size):
    degrees = np.array([degree for _, degree in network.degree])
    bins = recipe.degree_bins(degrees, bin_size)
    assert sorted(np.concatenate(bins).tolist()) == list(range(degrees.size))
    assert all(members.size >= min(bin_size, degrees.size) for members in bins)
    ranges = [(degrees[members].min(), degrees[members].max()) for members in bins]
    assert all(one[1] < other[0] for one, other in pairwise(ranges))


def test_random_sets_have_as_many_genes_of_each_bin_and_each_once(network):
    degrees = np.array([degree for _, degree in network.degree])
    bins = recipe.degree_bins(degrees, 40)
    genes = np.array([0, 1, 2, 150, 399])
    for drawn in recipe.draw_sets(bins, genes, 50, np.random.default_rng(0)):
        assert np.unique(drawn).size == genes.size
        for members in bins:
            assert np.isin(drawn, members).sum() == np.isin(genes, members).sum()


def test_the_command_line_reads_sif_and_sets_and_takes_the_largest_component(tmp_path, capsys):
    pairs = [f"A{i} pp A{(i + 1) % 60} A{(i * 7) % 60}" for i in range(60)]
    (tmp_path / "net.sif").write_text("\n".join([*pairs, "x pp y", "z"]))
    (tmp_path / "a.txt").write_text("A1\nA2\n")
    (tmp_path / "b.txt").write_text("A9\n")
    command = [str(tmp_path / name) for name in ("net.sif", "a.txt", "b.txt")]
    assert recipe.main([*command, "--random-sets", "20"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "closest",
        "mean",
    ]
    (tmp_path / "b.txt").write_text("x\n")
    assert recipe.main(command) == 2
    assert "x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"first": []}, "first must hold genes"),
        ({"second": [1, 1]}, "second must hold genes, each once"),
        ({"n_random": 1}, "2 or more"),
        ({"graph": graph_from_edges([1], [2])}, "must be undirected"),
        ({"first": [3]}, "largest component"),
    ],
)
def test_what_has_no_proximity_is_refused(change, said):
    given = {
        "graph": graph_from_edges([1, 3], [2, 4], directed=False),
        "first": [1],
        "second": [2],
        "n_random": 3,
    }
    with pytest.raises(InputError, match=said):
        recipe.proximity(**given | change)
