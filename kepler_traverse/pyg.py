"""A transform of PyTorch Geometric that adds distances from anchors to the nodes.

The module imports without PyTorch Geometric; the transform raises an error that says what is
missing.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from . import arguments, cuda
from ._arrays import Array, index_dtype, to_host, unreached_value
from .bfs import bfs_many
from .errors import (
    DeviceError,
    InputError,
    PrecisionError,
    UnknownVertexError,
    how_to_install,
    listed,
)
from .graph import Graph
from .graph.build import graph_from_numbers
from .sssp import sssp_many
from .tensors import to_torch

try:
    from torch_geometric.transforms import BaseTransform
except ImportError:
    BaseTransform = object


class AddShortestPathEncoding(BaseTransform):
    """Add to each node its shortest-path distances from anchor nodes.

    The attribute has shape (num_nodes, n_anchors); column i has the distances from anchor i to all
    nodes. It is computed on the device of ``edge_index`` and stays there.

    Parameters
    ----------
    anchors : int, sequence of int, integer tensor or "all"
        - A number k: the k nodes of highest out-degree, where self-loops and parallel edges do not
          count, and of nodes of equal degree those of lower index. With ``seed``, k nodes at
          random. A graph of fewer than k nodes has k columns, too, so that graphs can be batched;
          those without an anchor hold ``unreached``.
        - Node indices, which every graph must have.
        - ``"all"``: every node, by its index. The attribute then has as many columns as the graph
          has nodes.
    cutoff : float, optional
        Largest distance (inclusive). Nodes beyond it count as unreached.
    attr_name : str or None
        Attribute of the data that gets the distances. With None they are appended to ``x``, in its
        type.
    weight : str, optional
        Edge attribute with the weights, of shape (num_edges,) or (num_edges, 1): ``"edge_weight"``
        or ``"edge_attr"``. Without a name, distances are hops. Parallel edges keep the minimum
        weight; negative weights are accepted.
    directed : bool
        True: edges lead from ``edge_index[0]`` to ``edge_index[1]``. Data that store both
        directions of each edge, as is usual, need nothing else. False: each edge is also taken in
        the other direction.
    unreached : float
        Distance of a node that an anchor does not reach.
    seed : int, optional
        Seed of the choice of k nodes. The same seed chooses the same nodes in graphs of equal
        ``num_nodes``.
    dtype : torch.dtype, optional
        Type of the attribute. By default float32 for hops and for sums of integer weights, else the
        type of the weights. Hops and sums of integer weights are exact in it, or the transform
        raises PrecisionError.
    strategy : str
        As in ``bfs_many``.

    Raises
    ------
    ImportError
        PyTorch Geometric is not installed.
    InputError, UnknownVertexError
        A parameter has a wrong type or value. When the transform is applied: the data are no
        ``Data`` of one graph, lack the attribute, or lack an anchor.
    NegativeCycleError
        When the transform is applied: an anchor reaches a negative cycle.

    Examples
    --------
    >>> from torch_geometric.transforms import Compose, ToUndirected  # doctest: +SKIP
    >>> transform = Compose([ToUndirected(), AddShortestPathEncoding(anchors=8, cutoff=5)])  # doctest: +SKIP
    """

    def __init__(
        self,
        anchors: Any,
        cutoff: float | None = None,
        attr_name: str | None = "shortest_path_encoding",
        *,
        weight: str | None = None,
        directed: bool = True,
        unreached: float = -1.0,
        seed: int | None = None,
        dtype: Any = None,
        strategy: str = "auto",
    ) -> None:
        # ``object`` stands for the base class where PyTorch Geometric is not installed.
        if BaseTransform is object:
            raise ImportError(
                "AddShortestPathEncoding needs PyTorch Geometric: " + how_to_install("torch")
            )
        self.anchors = _check_anchors(anchors)
        self.cutoff = None if cutoff is None else arguments.limit("cutoff", cutoff)
        self.attr_name = attr_name
        if attr_name is not None:
            arguments.text("attr_name", attr_name, "a string or None")
        self.weight = weight
        if weight is not None:
            arguments.text("weight", weight, "the name of an edge attribute")
        self.directed = arguments.flag("directed", directed)

        # ``seed`` is of use only if ``anchors`` is a number of nodes to choose.
        arguments.real("unreached", unreached)
        self.unreached = unreached
        self.seed = None if seed is None else arguments.whole("seed", seed)
        if seed is not None and not isinstance(self.anchors, int):
            raise InputError(
                "seed chooses a number of anchors; give anchors as that number, or leave seed out"
            )

        # Distances that are appended to ``x`` have its type.
        self.dtype = _check_dtype(dtype)
        if dtype is not None and attr_name is None:
            raise InputError(
                "attr_name=None appends to x, in its type; leave dtype "
                "out, or give attr_name a name"
            )
        self.strategy = arguments.text("strategy", strategy)

    def __repr__(self) -> str:
        """Return the class and its main parameters; of anchors by index only their number."""
        if isinstance(self.anchors, tuple):
            anchors = f"<{len(self.anchors)} nodes>"
        else:
            anchors = repr(self.anchors)
        return (
            f"{type(self).__name__}(anchors={anchors}, "
            f"cutoff={self.cutoff}, attr_name={self.attr_name!r})"
        )

    def forward(self, data: Any) -> Any:
        """Return ``data``, a ``Data`` of PyTorch Geometric, with the distances as an attribute or
        appended to ``x``. Transforms are called by this method.
        """
        import torch

        # The distances from each anchor to all nodes, on the device of the edges.
        edge_index, n_nodes = _check_edges(data)
        x = None  # what the distances are appended to
        if self.attr_name is None:
            x = data.x
        with _use_device(edge_index):
            graph = self._build_graph(data, edge_index, n_nodes)
            anchors = self._find_anchors(graph)
            distances, reached = self._distances(graph, anchors)

        # A column per anchor; a small graph gets as many columns as a large one.
        dtype = self._choose_dtype(graph, distances, x)  # that of ``x``, if there is one
        encoding = self._convert(graph, distances, reached, dtype)
        if isinstance(self.anchors, int) and self.anchors > n_nodes:
            missing = encoding.new_full((n_nodes, self.anchors - n_nodes), self.unreached)
            encoding = torch.cat([encoding, missing], dim=1)
        if self.attr_name is not None:
            data[self.attr_name] = encoding
        elif x is None:
            data.x = encoding
        else:
            if x.dim() == 1:  # one feature per node, without an axis for features
                x = x.view(-1, 1)
            data.x = torch.cat([x, encoding], dim=-1)
        return data

    def _build_graph(self, data: Any, edge_index: Any, n_nodes: int) -> Graph:
        """Return the graph of the edges of ``data``, whose ids are the indexes of nodes, 0 to
        ``n_nodes`` - 1. ``edge_index`` is the checked tensor of shape (2, num_edges).
        """
        weights = None
        if self.weight is not None:
            weights = _as_array(_check_weights(data, self.weight, edge_index))
        src, dst = (_as_array(ends).astype(index_dtype(n_nodes)) for ends in edge_index)
        xp = cuda.cp if edge_index.is_cuda else np
        return graph_from_numbers(src, dst, weights, ids=xp.arange(n_nodes), directed=self.directed)

    def _find_anchors(self, graph: Graph) -> np.ndarray:
        """Return the indexes of the anchors in a graph, integers of shape (n_anchors,), as the
        parameter ``anchors`` says.

        If that is a number k and the graph has fewer nodes, there are fewer than k.
        UnknownVertexError for an index that is no node.
        """
        n = graph.n_vertices
        if isinstance(self.anchors, str):
            return np.arange(n)
        if isinstance(self.anchors, tuple):
            for anchor in self.anchors:
                if anchor >= n:
                    raise UnknownVertexError(f"anchor {anchor} is no node of a graph of {n} nodes")
            return np.array(self.anchors, np.int64)
        if self.seed is not None:
            return np.random.default_rng(self.seed).permutation(n)[: self.anchors]
        # By descending degree. The sort is stable: of equal degrees the lower index comes first.
        return np.argsort(-to_host(graph.derived.degrees), kind="stable")[: self.anchors]

    def _distances(self, graph: Graph, anchors: np.ndarray) -> tuple[Any, Any]:
        """Return the distances from each anchor to all nodes, and a bool for each: whether the node
        is reached. Both are tensors of shape (n_anchors, n_nodes).

        ``anchors`` are indexes of nodes. Distances of unreached nodes have no meaning.
        """
        import torch

        limit: Any = self.cutoff
        if self.weight is None:
            matrix = bfs_many(
                graph, anchors, result="matrix", strategy=self.strategy, max_depth=limit
            )
        else:
            matrix = sssp_many(
                graph, anchors, result="matrix", strategy=self.strategy, cutoff=limit
            )
        distances = to_torch(matrix)
        if distances.is_floating_point():
            return distances, torch.isfinite(distances)
        return distances, distances != unreached_value(matrix.dtype).item()

    def _choose_dtype(self, graph: Graph, distances: Any, x: Any) -> Any:
        """Return the torch type of the attribute: that of ``x`` if the distances are appended to
        it, else the parameter ``dtype`` or its default.

        InputError if the type does not hold ``unreached``, or if it is an integer type and weights
        are floats.
        """
        import torch

        if x is not None:
            dtype = x.dtype
        elif self.dtype is not None:
            dtype = self.dtype
        elif self.weight is None or graph.returns_integers:
            dtype = torch.float32
        else:
            dtype = distances.dtype

        if not dtype.is_floating_point:
            if self.weight is not None and not graph.returns_integers:
                raise InputError(
                    f"sums of float weights cannot be {dtype}; give a "
                    "float type, or integer weights"
                )
            limits = torch.iinfo(dtype)
            if (
                not float(self.unreached).is_integer()
                or not limits.min <= self.unreached <= limits.max
            ):
                raise InputError(
                    f"unreached={self.unreached} cannot be {dtype}; give a "
                    "number that can, or a float type"
                )
        elif abs(self.unreached) > torch.finfo(dtype).max and abs(self.unreached) != np.inf:
            raise InputError(
                f"unreached={self.unreached} cannot be {dtype}; give a smaller number, or infinity"
            )
        return dtype

    def _convert(self, graph: Graph, distances: Any, reached: Any, dtype: Any) -> Any:
        """Return distances in the type ``dtype``, transposed to (n_nodes, n_anchors), with the
        parameter ``unreached`` for nodes that are not reached.

        ``distances`` and ``reached`` (bool: whether the node is reached) have the shape (n_anchors,
        n_nodes). PrecisionError if the type does not hold an integer distance exactly; InputError
        if ``unreached`` is also a distance.
        """
        # 0 in place of unreached distances, which need not fit the type.
        known = distances.masked_fill(~reached, 0)
        converted = known.to(dtype)
        is_integer = self.weight is None or graph.returns_integers
        if is_integer and not bool((converted.to(known.dtype) == known).all()):
            raise PrecisionError(
                f"a distance of {known.abs().max().item():,} has no exact "
                f"value in {dtype}; give a wider dtype"
            )
        if graph.has_negative_weights and bool((reached & (converted == self.unreached)).any()):
            raise InputError(
                f"unreached={self.unreached} is also a distance in this graph, which has negative weights; give another "
                "value, as float('inf')"
            )
        return converted.masked_fill_(~reached, self.unreached).t().contiguous()


def _check_anchors(anchors: Any) -> int | str | tuple[int, ...]:
    """Return the parameter ``anchors``, checked: a number of nodes, "all", or a tuple of indexes of
    nodes. Whether they are nodes is checked with each graph.
    """
    if isinstance(anchors, str):
        return arguments.choice("anchors", anchors, ("all",))
    if isinstance(anchors, (int, np.integer)):
        return arguments.whole("anchors", anchors, 1)
    numbers = [arguments.whole("anchors", anchor) for anchor in arguments.ids("anchors", anchors)]
    if not numbers:
        raise InputError("anchors is empty; give at least one node, a number of nodes, or 'all'")
    return tuple(numbers)


def _check_dtype(dtype: Any) -> Any:
    """Return the parameter ``dtype``, checked: a torch type of integers or real floats, or None."""
    import torch

    if dtype is None:
        return None
    if not isinstance(dtype, torch.dtype) or dtype.is_complex or dtype == torch.bool:
        raise InputError(
            f"dtype must be a torch.dtype of integers or floats, not {arguments.describe(dtype)}"
        )
    return dtype


def _check_edges(data: Any) -> tuple[Any, int]:
    """Return ``edge_index`` of the data, an integer tensor of shape (2, num_edges), and the number
    of nodes.

    InputError for data of another kind, or edges whose ends are no nodes; DeviceError for data that
    are neither on a CPU nor on a GPU of CUDA.
    """
    from torch_geometric.data import Batch, Data, HeteroData

    if isinstance(data, HeteroData):
        raise InputError(
            "data is a HeteroData, and distances between nodes of several types are not defined; "
            "give data.to_homogeneous(), or data[edge type] as a Data of its own"
        )
    if isinstance(data, Batch):
        raise InputError(
            "data is a Batch of several graphs; apply the transform to "
            "each graph before they are batched"
        )
    if not isinstance(data, Data):
        raise InputError(
            f"data must be a Data of PyTorch Geometric, not {arguments.describe(data)}"
        )

    edge_index = data.edge_index
    if edge_index is None:
        raise InputError(
            "data has no edge_index; apply the transform before ToSparseTensor, which replaces it"
        )
    if hasattr(edge_index, "as_tensor"):  # PyTorch Geometric's EdgeIndex
        edge_index = edge_index.as_tensor()
    if (
        edge_index.dim() != 2
        or edge_index.size(0) != 2
        or str(edge_index.dtype) not in ("torch.int32", "torch.int64")
    ):
        raise InputError(
            "edge_index must have shape (2, num_edges) and integers, not "
            f"{tuple(edge_index.shape)} of {edge_index.dtype}"
        )
    if edge_index.device.type not in ("cpu", "cuda"):
        raise DeviceError(
            f"data are on device {str(edge_index.device)!r}; move them to 'cpu' or 'cuda'"
        )

    n_nodes = data.num_nodes
    if n_nodes is None:
        raise InputError("data does not say how many nodes there are; set data.num_nodes")
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= n_nodes):
        wrong = edge_index[(edge_index < 0) | (edge_index >= n_nodes)][0].item()
        raise InputError(
            f"edge_index holds {wrong}, which is no node of a graph of {n_nodes} nodes"
        )
    return edge_index, n_nodes


def _check_weights(data: Any, name: str, edge_index: Any) -> Any:
    """Return the edge attribute ``name`` of the data as a tensor of weights of shape (num_edges,).

    InputError if there is no such attribute, or if it has another shape or no numbers; DeviceError
    if it is on another device than ``edge_index``.
    """
    import torch

    n_edges = edge_index.size(1)

    weight = getattr(data, name, None)
    if not isinstance(weight, torch.Tensor):
        raise InputError(
            f"data has no edge attribute {name!r}; its attributes are {listed(data.keys())}"
        )
    if tuple(weight.shape) not in ((n_edges,), (n_edges, 1)):
        raise InputError(
            f"{name} must have shape ({n_edges},) or ({n_edges}, 1), not {tuple(weight.shape)}; make one column of it an "
            "attribute of its own and name that"
        )
    if weight.dtype == torch.bool or weight.is_complex():
        raise InputError(f"{name} must hold numbers, not {weight.dtype}")
    if weight.device != edge_index.device:
        raise DeviceError(
            f"{name} is on device {weight.device}, and edge_index on "
            f"{edge_index.device}; move data as a whole"
        )
    weight = weight.detach().reshape(-1)
    # NumPy has no bfloat16. Each number of either type is exactly a float32.
    if weight.dtype in (torch.float16, torch.bfloat16):
        return weight.float()
    return weight


def _as_array(tensor: Any) -> Array:
    """Return a tensor as an array of NumPy, or of CuPy if it is on a GPU. The array shares the
    memory of the tensor if that is contiguous, else it is a copy.
    """
    tensor = tensor.contiguous()
    if tensor.is_cuda:
        return cuda.cp.from_dlpack(tensor)
    return tensor.numpy()


def _use_device(tensor: Any) -> Any:
    """Return a context manager in which CuPy uses the GPU of a tensor; for a tensor on the CPU it
    does nothing.
    """
    if not tensor.is_cuda:
        return contextlib.nullcontext()
    cuda.require()
    return cuda.cp.cuda.Device(tensor.device.index)
