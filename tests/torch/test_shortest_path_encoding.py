"""``AddShortestPathEncoding`` against NetworkX and the utilities of PyTorch Geometric."""

from __future__ import annotations

import pickle

import networkx
import numpy as np
import pytest

from kepler_traverse.errors import (
    InputError,
    NegativeCycleError,
    PrecisionError,
    UnknownVertexError,
)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import torch_geometric.transforms as T  # noqa: E402
from torch_geometric import EdgeIndex  # noqa: E402
from torch_geometric.data import Batch, Data, HeteroData  # noqa: E402
from torch_geometric.datasets import FakeDataset  # noqa: E402
from torch_geometric.loader import DataLoader  # noqa: E402
from torch_geometric.utils import k_hop_subgraph, to_networkx  # noqa: E402

from kepler_traverse.pyg import AddShortestPathEncoding  # noqa: E402

NAME = "shortest_path_encoding"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def random_data(n_nodes=60, n_edges=150, seed=0, weights=None):
    """Directed, with self-loops, parallel edges, and nodes without an edge."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, n_nodes - 5, (2, n_edges), generator=generator)
    data = Data(
        edge_index=edge_index, num_nodes=n_nodes, x=torch.rand(n_nodes, 3, generator=generator)
    )
    if weights == "floats":
        data.edge_weight = torch.rand(n_edges, generator=generator)
    elif weights == "integers":
        data.edge_weight = torch.randint(0, 20, (n_edges,), generator=generator)
    return data


def expected_distances(data, anchors, weight=None, cutoff=None, directed=True, unreached=-1.0):
    """By NetworkX, whose graphs keep the least of parallel edges here."""
    least = {}
    values = [1] * data.num_edges if weight is None else data[weight].view(-1).tolist()
    for (u, v), value in zip(data.edge_index.t().tolist(), values, strict=True):
        for ends in ((u, v),) if directed else ((u, v), (v, u)):
            least[ends] = min(value, least.get(ends, value))
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in least.items())
    table = np.full((data.num_nodes, len(anchors)), unreached)
    for column, anchor in enumerate(anchors):
        for node, distance in networkx.single_source_dijkstra_path_length(
            graph, anchor, cutoff
        ).items():
            table[node, column] = distance
    return torch.from_numpy(table)


def assert_close(found, expected):
    torch.testing.assert_close(found.cpu(), expected.to(found.dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("cutoff", [None, 3])
@pytest.mark.parametrize("weights", [None, "floats", "integers"])
def test_distances_are_networkxs(weights, cutoff, directed, device):
    data = random_data(weights=weights)
    cutoff = 0.5 if cutoff and weights == "floats" else cutoff
    weight = "edge_weight" if weights else None
    anchors = [4, 59, 0, 4]
    transform = AddShortestPathEncoding(anchors, cutoff, weight=weight, directed=directed)
    found = transform(data.to(device))[NAME]
    assert found.device.type == device
    assert found.dtype == torch.float32
    assert found.is_contiguous()
    assert_close(found, expected_distances(data, anchors, weight, cutoff, directed))


def test_hops_are_those_of_pygs_utilities():
    data = random_data()
    hops = AddShortestPathEncoding("all")(data)[NAME]
    graph = to_networkx(data)
    for anchor in range(0, 60, 7):
        lengths = networkx.single_source_shortest_path_length(graph, anchor)
        assert {
            node: int(hops[node, anchor]) for node in range(60) if hops[node, anchor] >= 0
        } == lengths
        for k in (1, 2, 3):
            near, *_ = k_hop_subgraph(
                anchor, k, data.edge_index, num_nodes=60, flow="target_to_source"
            )
            limited = AddShortestPathEncoding([anchor], cutoff=k)(data)[NAME][:, 0]
            assert torch.equal((limited >= 0).nonzero().view(-1), near.sort().values)


def test_a_number_of_anchors_is_the_nodes_of_highest_degree():
    edges = [(3, 0), (3, 1), (3, 2), (1, 0), (1, 2), (2, 0), (2, 1), (0, 4), (0, 0), (0, 4), (0, 4)]
    data = Data(edge_index=torch.tensor(edges).t(), num_nodes=5)
    # Out-degrees without self-loops and parallel edges: 1, 2, 2, 3, 0.
    assert torch.equal(
        AddShortestPathEncoding(3)(data)[NAME], AddShortestPathEncoding([3, 1, 2])(data)[NAME]
    )


def test_a_seed_chooses_the_same_nodes_each_time():
    data, transform = random_data(), AddShortestPathEncoding(6, seed=1)
    found = transform(data)[NAME]
    assert torch.equal(found, pickle.loads(pickle.dumps(transform))(random_data(seed=0))[NAME])
    chosen = (found == 0).nonzero()[:, 1].bincount()
    assert chosen.tolist() == [1] * 6
    assert not torch.equal(found, AddShortestPathEncoding(6, seed=2)(data)[NAME])


def test_a_small_graph_has_columns_for_all_anchors():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    found = AddShortestPathEncoding(4, unreached=9)(data)[NAME]
    assert found.tolist() == [[0, 1, 9, 9], [1, 0, 9, 9]]
    nothing = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=0)
    assert AddShortestPathEncoding(4)(nothing)[NAME].shape == (0, 4)
    assert AddShortestPathEncoding("all")(nothing)[NAME].shape == (0, 0)
    apart = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=3)
    assert AddShortestPathEncoding(1)(apart)[NAME].tolist() == [[0], [-1], [-1]]


def test_transform_leaves_its_input_alone_and_works_in_compose():
    data = random_data(weights="floats")
    before = data.clone()
    transform = T.Compose(
        [T.ToUndirected(reduce="min"), AddShortestPathEncoding(4, 2), T.NormalizeFeatures()]
    )
    found = transform(data)
    assert sorted(data.keys()) == sorted(before.keys())
    assert torch.equal(data.edge_index, before.edge_index)
    assert found[NAME].shape == (60, 4)
    assert "anchors=4, cutoff=2" in repr(transform)
    # Both directions of each edge, or the option that takes them so.
    undirected = AddShortestPathEncoding([1, 2], weight="edge_weight", directed=False)(data)[NAME]
    stored = T.Compose(
        [T.ToUndirected(reduce="min"), AddShortestPathEncoding([1, 2], weight="edge_weight")]
    )(data)[NAME]
    assert torch.equal(undirected, stored)


def test_distances_are_appended_to_x_without_a_name():
    data = random_data()
    found = AddShortestPathEncoding([0, 1], attr_name=None)(data)
    assert found.x.shape == (60, 5)
    assert torch.equal(found.x[:, :3], data.x)
    assert torch.equal(found.x[:, 3:], AddShortestPathEncoding([0, 1])(data)[NAME])
    half = AddShortestPathEncoding([0], attr_name=None)(
        Data(x=data.x[:, 0].half(), edge_index=data.edge_index)
    )
    assert half.x.dtype == torch.float16
    assert half.x.shape == (60, 2)
    del data.x
    assert AddShortestPathEncoding([0, 1], attr_name=None)(data).x.shape == (60, 2)


def test_weights_and_edges_of_other_shapes_and_types():
    data = random_data(weights="floats")
    expected = AddShortestPathEncoding([0, 1], weight="edge_weight")(data)[NAME]
    data.edge_attr = data.edge_weight.double().view(-1, 1).requires_grad_()
    found = AddShortestPathEncoding([0, 1], weight="edge_attr")(data)[NAME]
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), expected)
    # not contiguous
    data.edge_attr = torch.stack([data.edge_weight, data.edge_weight + 1], dim=1)[:, :1]
    assert torch.equal(AddShortestPathEncoding([0, 1], weight="edge_attr")(data)[NAME], expected)
    data.edge_attr = data.edge_weight.bfloat16()
    found = AddShortestPathEncoding([0, 1], weight="edge_attr")(data)[NAME]
    data.edge_attr = data.edge_attr.float()
    assert torch.equal(found, AddShortestPathEncoding([0, 1], weight="edge_attr")(data)[NAME])
    for edge_index in (
        data.edge_index.int(),
        EdgeIndex(data.edge_index),
        data.edge_index.t().contiguous().t(),
    ):
        data.edge_index = edge_index
        assert torch.equal(
            AddShortestPathEncoding([0, 1], weight="edge_weight")(data)[NAME], expected
        )


def test_the_datas_own_tensors_are_not_changed():
    data = Data(
        edge_index=torch.tensor([[0, 1, 1], [1, 2, 1]]),
        num_nodes=3,
        edge_weight=torch.tensor([-0.0, 1.5, 0.0]),
    )
    before = data.clone()
    found = AddShortestPathEncoding("all", weight="edge_weight")(data)[NAME]
    found += 7
    assert torch.equal(data.edge_index, before.edge_index)
    assert torch.equal(data.edge_weight.view(torch.int32), before.edge_weight.view(torch.int32))


def test_dtype_holds_hops_and_integer_sums_exactly_or_is_refused():
    path = Data(edge_index=torch.stack([torch.arange(299), torch.arange(1, 300)]), num_nodes=300)
    for dtype in (torch.int16, torch.int64, torch.float16, torch.float64):
        found = AddShortestPathEncoding([0], dtype=dtype)(path)[NAME]
        assert found.dtype == dtype
        assert found[:, 0].tolist() == list(range(300))
    for dtype in (torch.int8, torch.uint8, torch.bfloat16):
        with pytest.raises(PrecisionError, match="299"):
            AddShortestPathEncoding([0], dtype=dtype, unreached=0)(path)
    path.edge_weight = torch.full((299,), 2**24 + 1)
    with pytest.raises(PrecisionError, match="float32"):
        AddShortestPathEncoding([0], weight="edge_weight")(path)
    exact = AddShortestPathEncoding([0], weight="edge_weight", dtype=torch.int64)(path)[NAME]
    assert exact[:, 0].tolist() == [(2**24 + 1) * node for node in range(300)]
    path.edge_weight = torch.rand(299)
    with pytest.raises(InputError, match="sums of float weights"):
        AddShortestPathEncoding([0], weight="edge_weight", dtype=torch.int64)(path)


@pytest.mark.parametrize("unreached", [0.5, 300, -1])
def test_unreached_must_fit_the_dtype(unreached):
    data = random_data()
    with pytest.raises(InputError, match="unreached"):
        AddShortestPathEncoding([0], dtype=torch.uint8, unreached=unreached)(data)
    assert AddShortestPathEncoding([59], unreached=unreached)(data)[NAME][0].item() == unreached
    infinite = AddShortestPathEncoding([59], unreached=float("inf"))(data)[NAME]
    assert torch.isinf(infinite).sum() == 59
    with pytest.raises(InputError, match="unreached"):
        AddShortestPathEncoding([0], dtype=torch.int64, unreached=float("inf"))(data)
    with pytest.raises(InputError, match="unreached"):
        AddShortestPathEncoding([0], dtype=torch.float16, unreached=1e9)(data)


def test_negative_weights_and_cycles():
    data = Data(
        edge_index=torch.tensor([[0, 1, 0], [1, 2, 3]]),
        num_nodes=5,
        edge_weight=torch.tensor([3.0, -4.0, 2.0]),
    )
    with pytest.raises(InputError, match=r"unreached=-1\.0 is also a distance"):
        AddShortestPathEncoding([0], weight="edge_weight")(data)
    found = AddShortestPathEncoding([0], weight="edge_weight", unreached=float("inf"))(data)[NAME]
    assert found[:, 0].tolist() == [0, 3, -1, 2, float("inf")]
    limited = AddShortestPathEncoding([0], 2.5, weight="edge_weight", unreached=float("inf"))(data)[
        NAME
    ]
    assert limited[:, 0].tolist() == [0, float("inf"), -1, 2, float("inf")]
    data.edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    data.edge_weight = torch.tensor([1.0, -4.0, 2.0])
    with pytest.raises(NegativeCycleError):
        AddShortestPathEncoding([0], weight="edge_weight")(data)


def test_data_of_other_kinds_are_refused():
    transform, data = AddShortestPathEncoding(2), random_data()
    for wrong, message in (
        (HeteroData(), "HeteroData.*to_homogeneous"),
        (Batch.from_data_list([data, data]), "Batch.*before they are batched"),
        (3, "must be a Data"),
        (Data(num_nodes=3), "no edge_index"),
        (Data(edge_index=torch.tensor([[0, 7], [1, 2]]), num_nodes=3), "holds 7, which is no node"),
        (
            Data(edge_index=torch.tensor([[0, -1], [1, 2]]), num_nodes=3),
            "holds -1, which is no node",
        ),
        (
            Data(edge_index=torch.zeros(3, 2, dtype=torch.long), num_nodes=3),
            r"shape \(2, num_edges\)",
        ),
        (Data(edge_index=torch.rand(2, 3), num_nodes=3), "torch.float32"),
        (
            Data(edge_index=torch.zeros(2, 3, dtype=torch.long, device="meta"), num_nodes=3),
            "on device 'meta'",
        ),
    ):
        with pytest.raises(InputError, match=message):
            transform(wrong)
    with pytest.raises(UnknownVertexError, match="anchor 60 is no node of a graph of 60 nodes"):
        AddShortestPathEncoding([0, 60])(data)


def test_edge_attributes_that_are_no_weights_are_refused():
    data = random_data(weights="floats")
    data.edge_attr = torch.rand(150, 4)
    data.edge_mask = data.edge_weight > 0.5
    for name, message in (
        ("length", "no edge attribute 'length'; its attributes are"),
        ("num_nodes", "no edge attribute"),
        ("edge_attr", r"must have shape \(150,\) or \(150, 1\), not \(150, 4\)"),
        ("edge_mask", "must hold numbers"),
    ):
        with pytest.raises(InputError, match=message):
            AddShortestPathEncoding(2, weight=name)(data)
    apart = Data(edge_index=data.edge_index, edge_weight=data.edge_weight.to("meta"), num_nodes=60)
    with pytest.raises(InputError, match="edge_weight is on device meta, and edge_index on cpu"):
        AddShortestPathEncoding(2, weight="edge_weight")(apart)
    data.edge_weight[3] = float("nan")
    with pytest.raises(InputError, match=r"(?i)nan"):
        AddShortestPathEncoding(2, weight="edge_weight")(data)


@pytest.mark.parametrize(
    "options",
    [
        {"anchors": 0},
        {"anchors": True},
        {"anchors": 2.5},
        {"anchors": []},
        {"anchors": [0, -1]},
        {"anchors": [0, 1.0]},
        {"anchors": "most"},
        {"anchors": torch.tensor([[0]])},
        {"anchors": 2, "cutoff": -1},
        {"anchors": 2, "attr_name": 3},
        {"anchors": 2, "weight": torch.ones(3)},
        {"anchors": 2, "directed": None},
        {"anchors": 2, "unreached": "inf"},
        {"anchors": [0], "seed": 3},
        {"anchors": 2, "seed": -3},
        {"anchors": 2, "dtype": "float32"},
        {"anchors": 2, "dtype": torch.complex64},
        {"anchors": 2, "dtype": torch.float32, "attr_name": None},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(options):
    with pytest.raises(InputError):
        AddShortestPathEncoding(**options)


@pytest.mark.parametrize("device", DEVICES)
def test_anchors_of_tensors_and_arrays(device):
    data = random_data()
    expected = AddShortestPathEncoding([3, 1])(data)[NAME]
    for anchors in (torch.tensor([3, 1], device=device), np.array([3, 1], np.uint8), (3, 1)):
        assert torch.equal(AddShortestPathEncoding(anchors)(data)[NAME], expected)


# fork, from Python 3.12 on
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_dataloader_apply_the_transform(context):
    transform = AddShortestPathEncoding(3, cutoff=4)
    dataset = FakeDataset(num_graphs=8, avg_num_nodes=20, avg_degree=3, transform=transform)
    # the parent has searched before the workers begin
    expected = torch.cat([dataset[i][NAME] for i in range(8)])
    loader = DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context=context)
    assert torch.equal(torch.cat([batch[NAME] for batch in loader]), expected)
    assert expected.shape[1] == 3


@pytest.mark.gpu
def test_cuda_tensors_stay_on_their_device():
    data = random_data(2000, 9000, weights="floats")
    for options in (
        {"anchors": 16},
        {"anchors": 16, "weight": "edge_weight"},
        {"anchors": "all", "cutoff": 3},
    ):
        transform = AddShortestPathEncoding(**options)
        found = transform(data.clone().to("cuda"))[NAME]
        assert found.is_cuda
        assert torch.equal(found.cpu(), transform(data.clone())[NAME])
