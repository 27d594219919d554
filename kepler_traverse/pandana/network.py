"""``Network``: pandana's class and its methods, each by a call of this library."""

from __future__ import annotations

import math
import reprlib
import warnings
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from .. import arguments
from .._arrays import FLOAT64_EXACT, index_dtype, positions_in_groups, sort_distinct
from ..api.path_frames import paths
from ..cpu import threads
from ..cpu.counting_sort import stable_order
from ..cpu.nearest_point import nearest_points
from ..cpu.quantiles import CHUNK, Reached, ValueLists, find_quantiles
from ..errors import HierarchyError, InputError, PrecisionError, UnknownVertexError, one_line
from ..graph import Graph
from ..graph.build import graph_from_numbers
from ..sssp import sssp_many, sssp_pairs

UNCONNECTED = 4294967.295  # the length that pandana returns where there is no path
# by name of a quantile: the share of the values that are below it
_QUANTILES = {"min": 0.0, "25pct": 0.25, "median": 0.5, "75pct": 0.75, "max": 1.0}
_AGGREGATIONS = ("sum", "mean", *_QUANTILES, "std", "count")
_DECAYS = ("exp", "linear", "flat")
# pandana's other names of aggregations and decays, and the one that each stands for
_ALIASES = {
    "ave": "mean",
    "avg": "mean",
    "average": "mean",
    "stddev": "std",
    "med": "median",
    "exponential": "exp",
}
# the names of two arguments of nodes, for errors
_LISTS = ("nodes_a", "nodes_b")
_ONE_NODE = ("node_a", "node_b")
# A hierarchy is an order of the vertices with shortcuts, which makes each search faster. From so
# many searches on, building one for a road network and searching over it takes less time than
# searching without it (docs/hierarchies.md).
_MANY_ORIGINS = 300
# Hub labels hold, per vertex, distances to some vertices high in the hierarchy; they make a pair
# faster than the hierarchy alone. Labels are built once the pairs so far took, over the hierarchy,
# ``_TIMES_OF_BUILDING`` times as long as building labels would.
_TIMES_OF_BUILDING = 2
_SECONDS_PER_PAIR = 3e-5  # the time that one pair is assumed to take over a hierarchy
# Seconds that pairs took so far, by ``_SECONDS_PER_PAIR``, from which on the time to build labels
# is estimated, since the estimate itself takes time.
_FIRST_LOOK = 0.5


class _Impedance:
    """A graph whose edges are weighted by one impedance, the cost of an edge (such as metres).

    Vertices of the graph are positions of nodes in ``Network.node_ids``. Impedances with at most
    three decimals are stored as integers of a unit, 1 or 1/1000, so that sums are exact and a
    hierarchy can be built. Others stay floats.

    Attributes
    ----------
    graph : Graph
        Weights are in units.
    per_one : int
        Units per 1 of the impedance: 1, or 1000.
    _n_origins : float
        Distinct origins of all searches so far; minus infinity once the graph has proved to have no
        hierarchy, so that none is tried again.
    _n_pairs : int
        Pairs of all searches so far.
    _seconds_for_labels : float
        Seconds that the pairs so far must have taken before hub labels are estimated and then
        built; infinity once labels have proved too long.

    Parameters
    ----------
    name : str
        The column of ``edge_weights``, for errors.
    src, dst : int64 arrays of shape (n_edges,)
        Positions of the nodes at the two ends of each edge.
    impedance : array of shape (n_edges,)
        Finite numbers of 0 or more; InputError for others.
    n_nodes : int
    directed : bool
        False: each edge leads in both directions.
    """

    def __init__(
        self,
        name: str,
        src: np.ndarray,
        dst: np.ndarray,
        impedance: Any,
        n_nodes: int,
        directed: bool,
    ):
        """Check the impedances, and build the graph. The arguments are those of the class."""
        weights = np.asarray(impedance)
        if weights.dtype.kind not in "iuf":
            raise InputError(f"edge_weights[{name!r}] must be numbers, not {weights.dtype}")
        if weights.dtype.kind == "f":
            weights = weights.astype(np.float64)  # each value as it is, and sums of them in float64
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if wrong.size:
            value = weights[wrong[0]]
            raise InputError(
                f"edge_weights[{name!r}], row {wrong[0]} is {value}: "
                "impedances are finite and 0 or more"
            )

        # Integers of the larger unit that represents all values exactly. Otherwise floats stay.
        self.per_one = 1
        if weights.dtype.kind == "f":
            for per_one in (1, 1000):
                units = np.rint(weights * per_one)  # float64 holds integers below 2**53 exactly
                is_exact = np.array_equal(units / per_one, weights)
                if is_exact and units.max(initial=0) < FLOAT64_EXACT:
                    weights = units.astype(np.int64)
                    self.per_one = per_one
                    break
        kind = index_dtype(n_nodes)
        self.graph: Graph = graph_from_numbers(
            src.astype(kind), dst.astype(kind), weights, ids=np.arange(n_nodes), directed=directed
        )
        self._n_origins: float = 0  # of all searches so far
        self._n_pairs = 0
        self._seconds_for_labels = _FIRST_LOOK

    def limit(self, name: str, distance: Any) -> int | float:
        """Return a distance, given as impedance, in the units of the graph's weights.

        If the unit is 1 or the distance infinite, it stays as it is. Else fractions of a unit, here
        1/1000, are dropped: no sum of whole units lies between a whole number and the next one. The
        decimals of a float are those that Python shows: 0.3 becomes 300 units. ``name`` is that of
        the argument, for errors.
        """
        number = arguments.limit(name, distance)
        if self.per_one == 1 or number == math.inf:
            return number
        # By the decimals: the product of floats may round below a whole number that is meant.
        return math.floor(Decimal(repr(number)) * self.per_one)

    def lengths(self, distance: pd.Series) -> np.ndarray:
        """Return a column of distances in units of the graph as impedances, float64, of the same
        length; NaN where the column is null, which stands for no path.
        """
        return distance.to_numpy(np.float64, na_value=np.nan) / self.per_one

    def prepare_for_sources(self, origins: np.ndarray) -> Graph:
        """Return the graph to search from ``origins``, positions of nodes that may repeat.

        It gets a hierarchy once the distinct origins of all calls together are so many that
        building one saves time. If the graph has proved to have no hierarchy, it stays without.
        """
        self._n_origins += sort_distinct(origins).size
        if self._n_origins >= _MANY_ORIGINS:
            try:
                self.graph.hierarchy()
            except HierarchyError:  # a network with hubs, or impedances whose sums round
                self._n_origins = -math.inf  # it is not tried again
        return self.graph

    def prepare_for_pairs(self, origins: np.ndarray) -> Graph:
        """Return the graph to search for pairs, one per element of ``origins``, positions of nodes.

        It gets a hierarchy as in ``prepare_for_sources``, and then hub labels once the pairs of all
        calls together are so many that building labels saves time. Without a hierarchy, and once
        labels have proved too long, the graph is returned as it is.
        """
        graph = self.prepare_for_sources(origins)
        self._n_pairs += origins.size
        # Labels are built over a hierarchy, and once.
        derived = graph.derived
        if (
            derived.known_hierarchy("weights") is None
            or derived.known_labels("weights") is not None
        ):
            return graph
        # The first comparison is with ``_FIRST_LOOK``, a guess. Once it is passed, the time to
        # build labels is estimated, and the second comparison is with the estimate. In later calls
        # both are with the estimate, or with infinity once labels have proved too long.
        spent = self._n_pairs * _SECONDS_PER_PAIR
        if spent > self._seconds_for_labels:
            self._seconds_for_labels = _TIMES_OF_BUILDING * derived.estimate_labels().seconds
        if spent > self._seconds_for_labels:
            try:
                graph.labels()
            except HierarchyError:  # labels would be too long; they are not tried again
                self._seconds_for_labels = math.inf
        return graph


class Network:
    """A network of nodes with coordinates, and of edges with one impedance or more, as
    ``pandana.Network``.

    Parameters
    ----------
    node_x, node_y : pandas.Series
        Coordinates. Their index has the ids of the nodes: integers, strings or other values, each
        once.
    edge_from, edge_to : pandas.Series
        Ids of the ends of the edges.
    edge_weights : pandas.DataFrame
        A column of finite numbers of 0 or more for each impedance. Its index is that of the ends.
    twoway : bool
        True: each row is an edge in both directions.

    Raises
    ------
    InputError
        An id occurs twice, rows have no edge each, or an impedance is no such number.
    UnknownVertexError
        An edge ends at no node.

    Examples
    --------
    >>> import pandas
    >>> from kepler_traverse.pandana import Network
    >>> x, y = pandas.Series([0.0, 1.0, 2.0], [7, 8, 9]), pandas.Series([0.0, 0.0, 0.0], [7, 8, 9])
    >>> net = Network(x, y, pandas.Series([7, 8]), pandas.Series([8, 9]), pandas.DataFrame({"metres": [400, 500]}))
    >>> net.set(pandas.Series([8, 9]), pandas.Series([10, 20]), name="jobs")
    >>> net.aggregate(900, type="sum", decay="flat", name="jobs").tolist()
    [30.0, 30.0, 30.0]
    """

    def __init__(
        self,
        node_x: Any,
        node_y: Any,
        edge_from: Any,
        edge_to: Any,
        edge_weights: Any,
        twoway: bool = True,
    ):
        # Nodes, and edges by the common index of their columns.
        self.nodes_df = pd.DataFrame({"x": node_x, "y": node_y})
        try:
            self.edges_df = pd.DataFrame({"from": edge_from, "to": edge_to}).join(edge_weights)
        except (ValueError, TypeError, NotImplementedError) as error:
            # of pandas, about indexes of several levels
            raise InputError(
                "edge_from, edge_to and edge_weights have no common index "
                f"({one_line(error)}); take them from one table"
            ) from None
        self.impedance_names = list(edge_weights.columns)
        self._twoway = arguments.flag("twoway", twoway)
        twice = self.node_ids[self.node_ids.duplicated()]
        if twice.size:
            raise InputError(
                f"node {_format_id(twice[0])} occurs twice in the index of "
                "node_x; give each node one row"
            )
        if not len(self.edges_df) == len(edge_from) == len(edge_to) == len(edge_weights):
            raise InputError(
                f"edge_from, edge_to and edge_weights have {len(edge_from)}, {len(edge_to)} and {len(edge_weights)} rows, "
                f"and joining them by their indexes gives {len(self.edges_df)}; give them one index without duplicates"
            )

        # A graph per impedance, over the positions of the nodes.
        src = self._find_numbers("edge_from", self.edges_df["from"])
        dst = self._find_numbers("edge_to", self.edges_df["to"])
        self._impedances = {
            name: _Impedance(
                name, src, dst, self.edges_df[name], self.node_ids.size, not self._twoway
            )
            for name in self.impedance_names
        }
        # by name of a variable: positions of nodes, int64, and the float64 value at each, both of
        # shape (n_rows,); a node may have several rows
        self._variables: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        # by category: the labels of the points of interest, and the position of the node of each,
        # an integer array of the same length
        self._pois: dict[str, tuple[pd.Index, np.ndarray]] = {}

    @classmethod
    def from_hdf5(cls, filename: Any, migrate_legacy: bool = False) -> Network:
        """Read a network that ``save_hdf5`` or pandana has written. It needs PyTables;
        ``migrate_legacy`` is refused.
        """
        if migrate_legacy:
            raise InputError(
                "migrate_legacy is not here: "
                "pandana.loaders.pandash5.migrate_legacy_hdf converts the file"
            )
        with _open_store(filename, "r") as store:
            nodes = store["nodes"]
            edges = store["edges"]
            names = store["impedance_names"].tolist()
            twoway = bool(store["two_way"].iloc[0])
        return cls(nodes["x"], nodes["y"], edges["from"], edges["to"], edges[names], twoway=twoway)

    def save_hdf5(self, filename: Any, rm_nodes: Any = None) -> None:
        """Write nodes, edges and impedances to an HDF5 file, which is replaced if it exists. It
        needs PyTables.

        ``rm_nodes`` has the ids of nodes that are left out, with all edges that end at them.
        """
        removed = [] if rm_nodes is None else list(rm_nodes)
        edges = self.edges_df
        is_removed = edges["from"].isin(removed) | edges["to"].isin(removed)
        with _open_store(filename, "w") as store:
            store["nodes"] = self.nodes_df[~self.node_ids.isin(removed)]
            store["edges"] = edges[~is_removed]
            store["two_way"] = pd.Series([self._twoway])
            store["impedance_names"] = pd.Series(self.impedance_names)

    @property
    def node_ids(self) -> pd.Index:
        """Ids of the nodes: the index of what most methods return."""
        return self.nodes_df.index

    @property
    def bbox(self) -> list[float]:
        """The bounding box of all nodes: smallest x, smallest y, largest x, largest y."""
        return [*self.nodes_df.min().tolist(), *self.nodes_df.max().tolist()]

    @property
    def aggregations(self) -> list[bytes]:
        """The values that ``type`` of ``aggregate`` may have, as bytes, as pandana has them."""
        return [name.encode() for name in _AGGREGATIONS]

    @property
    def decays(self) -> list[bytes]:
        """The values that ``decay`` of ``aggregate`` may have, as bytes, as pandana has them."""
        return [name.encode() for name in _DECAYS]

    def precompute(self, distance: float) -> None:
        """Check the distance and do nothing else: searches end at the distance of each call, which
        needs no preparation.
        """
        arguments.limit("distance", distance)

    def set(self, node_ids: Any, variable: Any = None, name: str = "tmp") -> None:
        """Set a variable at nodes, for ``aggregate``. A node may have any number of values.

        Parameters
        ----------
        node_ids : pandas.Series
            The id of a node per row.
        variable : pandas.Series, optional
            Values, with the index of ``node_ids``. Default: 1 each.
        name : str
            What ``aggregate`` calls the variable. A variable of this name is replaced.

        Warns
        -----
        UserWarning
            Rows without a value, or whose node is not in the network, are left out.
        """
        rows = pd.DataFrame({"node": node_ids, "value": 1.0 if variable is None else variable})
        numbers = _find_positions(self.node_ids, pd.Index(rows["node"]))
        values = rows["value"].to_numpy(np.float64, na_value=np.nan)
        is_complete = (numbers >= 0) & ~np.isnan(values)
        if not is_complete.all():
            n_missing = int((~is_complete).sum())
            warnings.warn(
                f"{n_missing} rows of {name!r} have no value or no node of the network; left out",
                stacklevel=2,
            )
        self._variables[name] = numbers[is_complete], values[is_complete]

    def aggregate(
        self,
        distance: float,
        type: str = "sum",
        decay: str = "linear",
        imp_name: str | None = None,
        name: str = "tmp",
    ) -> pd.Series:
        """Aggregate the values of a variable within a distance of each node.

        Parameters
        ----------
        distance : float
            Inclusive.
        type : str
            One of ``aggregations`` or pandana's other names of them, in any case. Where there is no
            value, quantiles (``min`` and ``max``, too) are -1 and others 0. A quantile is a value,
            not a mean of two.
        decay : {"linear", "exp", "flat"}
            What values of sums and means are multiplied by, at a distance d: 1 - d / distance,
            exp(-d / distance), or 1.
        imp_name : str, optional
            Default: the only impedance.
        name : str
            Of ``set``.

        Returns
        -------
        pandas.Series
            A float64 per node.
        """
        kind = arguments.choice("type", _full_name(arguments.text("type", type)), _AGGREGATIONS)
        decay = arguments.choice("decay", _full_name(arguments.text("decay", decay)), _DECAYS)
        if name not in self._variables:
            raise InputError(f"variable {name!r} is not known; give it to set() first")
        nodes, values = self._variables[name]
        impedance = self._find_impedance(imp_name)
        limit = impedance.limit("distance", distance)
        if kind in _QUANTILES:
            share = _QUANTILES[kind]
            return self._per_node(self._quantiles(impedance.graph, limit, nodes, values, share))

        # All other kinds, "sum", "count", "mean" and "std", are made of sums over the nodes within
        # the distance. A standard deviation does not change if a constant is subtracted from all
        # values. Subtracting the mean of all makes the values small, so that few digits cancel in
        # the difference of two sums below.
        if kind == "std":
            with np.errstate(over="ignore", invalid="ignore"):
                values = values - (values.mean() if values.size else 0.0)

        def sums(decay: str = "flat", **rows_of_sums: Any) -> list[np.ndarray]:
            """Return sums over the rows of the variable within the distance of each node.

            Each keyword of ``rows_of_sums`` names one sum: its value is an array with one number
            per row, which are added up, or None to count the rows. ``decay`` is one of ``_DECAYS``.
            The result has, per keyword, an array with one sum per node.
            """
            # A node may have several rows, which are added up first.
            at_nodes = {
                column: self._sums_at_nodes(name, nodes, rows)
                for column, rows in rows_of_sums.items()
            }
            try:
                frame = sssp_many(
                    impedance.graph,
                    "all",
                    result="opportunities",
                    values=at_nodes,
                    cutoffs=[limit],
                    decay=self._decay(decay, float(distance) * impedance.per_one),
                )
            except PrecisionError:
                raise PrecisionError(
                    f"variable {name!r}: sums of its values exceed float64; scale them down"
                ) from None
            return [frame[column].to_numpy() for column in rows_of_sums]

        if kind == "sum":
            (total,) = sums(decay, total=values)
            return self._per_node(total)
        if kind == "count":
            (count,) = sums(count=None)
            return self._per_node(count)
        # A mean is the sum of the decayed values over the number of rows, which is not decayed. So
        # with a decay it takes two searches. A standard deviation ignores the decay.
        if kind == "mean" and decay != "flat":
            (total,) = sums(decay, total=values)
            (count,) = sums(count=None)
        elif kind == "mean":
            total, count = sums(total=values, count=None)
        else:  # a square that overflows to infinity is refused when it is added up
            with np.errstate(over="ignore"):
                squared = values * values
            total, squares, count = sums(total=values, squares=squared, count=None)
        # Of kinds, "mean" and "std" are left; both divide by the count. Where there is no row, the
        # result is 0 / 1.
        count = np.maximum(count, 1)
        if kind == "mean":
            return self._per_node(total / count)
        # The variance is the mean of the squares less the square of the mean; rounding could make
        # it slightly negative.
        return self._per_node(np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0)))

    def low_connectivity_nodes(
        self, impedance: float, count: int, imp_name: str | None = None
    ) -> np.ndarray:
        """Return the ids of nodes from which fewer than ``count`` nodes, themselves included, are
        within the distance ``impedance``, inclusive. ``imp_name`` names the impedance.
        """
        by_name = self._find_impedance(imp_name)
        cutoff = by_name.limit("impedance", impedance)
        frame = sssp_many(by_name.graph, "all", result="within", cutoffs=[cutoff])
        return self.node_ids[frame["vertices"].to_numpy() < count].to_numpy()

    def get_node_ids(
        self, x_col: Any, y_col: Any, mapping_distance: float | None = None
    ) -> pd.Series:
        """Return the id of the node nearest to each location, by Euclidean distance; of equally
        near nodes the first.

        Parameters
        ----------
        x_col, y_col : pandas.Series
            Finite coordinates.
        mapping_distance : float, optional
            Locations farther than that from each node have no row in the result.

        Returns
        -------
        pandas.Series
            An id per location, with the index of ``x_col``.
        """
        # ``points`` are the nodes, x and y, and ``locations`` are those of which nodes are wanted.
        places = pd.DataFrame({"x": x_col, "y": y_col})
        points = [self.nodes_df[axis].to_numpy(np.float64) for axis in ("x", "y")]
        locations = [places[axis].to_numpy(np.float64, na_value=np.nan) for axis in ("x", "y")]
        for name, axis in zip(
            ("node_x", "node_y", "x_col", "y_col"), [*points, *locations], strict=True
        ):
            if not np.isfinite(axis).all():
                raise InputError(
                    f"{name} holds {axis[~np.isfinite(axis)][0]}; give finite coordinates"
                )
        if not points[0].size:
            raise InputError("the network has no nodes")
        numbers, distances = nearest_points(*points, *locations)
        ids = pd.Series(self.node_ids[numbers], index=places.index, name="node_id")
        if mapping_distance is None:
            return ids
        return ids[distances <= arguments.limit("mapping_distance", mapping_distance)]

    def init_pois(self, *_: Any, **__: Any) -> None:
        """Raise InputError with what to call instead: pandana has deprecated this method."""
        raise InputError(
            "init_pois() is deprecated by pandana and is not here; leave it "
            "out, and give set_pois() x_col and y_col"
        )

    def set_pois(
        self,
        category: str,
        maxdist: float | None = None,  # noqa: ARG002
        maxitems: int | None = None,  # noqa: ARG002
        x_col: Any = None,
        y_col: Any = None,
        mapping_distance: float | None = None,
    ) -> None:
        """Set the points of interest of a category, each at the node nearest to it.

        ``x_col`` and ``y_col`` are series of coordinates with a common index, which has the labels
        of the points. Points farther than ``mapping_distance`` from each node are left out; None
        leaves out none. ``maxdist`` and ``maxitems`` are not used: ``nearest_pois`` takes any
        distance and number.
        """
        if x_col is None or y_col is None:
            raise InputError(
                "x_col and y_col must be given by name: set_pois(category, x_col=..., y_col=...)"
            )
        nodes = self.get_node_ids(x_col, y_col, mapping_distance)
        self._pois[category] = nodes.index, self.node_ids.get_indexer(pd.Index(nodes))

    def nearest_pois(
        self,
        distance: float,
        category: str,
        num_pois: int = 1,
        max_distance: float | None = None,
        imp_name: str | None = None,
        include_poi_ids: bool = False,
    ) -> pd.DataFrame:
        """Return the distances from each node to the nearest points of interest, and on request
        their labels.

        Parameters
        ----------
        distance : float
            Inclusive.
        category : str
            Of ``set_pois``.
        num_pois : int
            Columns 1, 2, ... of the result. Points at one node count each.
        max_distance : float, optional
            What stands where there are fewer points. Default: ``distance``.
        imp_name : str, optional
            Default: the only impedance.
        include_poi_ids : bool
            Add columns ``poi1``, ``poi2``, ...: labels of the index of ``x_col``, missing where
            there are fewer points. Of points at equal distances those of earlier nodes come first,
            and of one node the earlier ones.

        Returns
        -------
        pandas.DataFrame
            A row per node, with its id as index. Column i has the distance to the i-th nearest
            point.
        """
        if category not in self._pois:
            raise InputError(
                f"category {category!r} is not known; give its points to set_pois() first"
            )
        k = arguments.whole("num_pois", num_pois, least=1)
        impedance = self._find_impedance(imp_name)
        limit = impedance.limit("distance", distance)
        labels, nodes = self._pois[category]
        default = float(distance if max_distance is None else max_distance)
        # Per node and rank: the distance to the point of that rank, and its position in ``labels``,
        # -1 where there are fewer points.
        lengths = np.full((self.node_ids.size, k), default)
        pois = np.full(lengths.shape, -1)
        if nodes.size:
            # ``by_node`` has the positions of the points, sorted by their nodes. ``targets`` are
            # the distinct nodes with points, ascending. The points of node ``targets[i]`` are
            # ``counts[i]`` elements of ``by_node`` from ``first[i]`` on.
            by_node = np.argsort(nodes, kind="stable")
            targets, first, counts = np.unique(
                nodes[by_node], return_index=True, return_counts=True
            )
            frame = sssp_many(
                impedance.graph, "all", result="nearest", k=k, targets=targets, cutoff=limit
            )
            # The frame has a row per source and each of its k nearest nodes with points, nearest
            # first; ``place`` is the position in ``targets`` of the node of each row. ``point``,
            # ``source`` and ``length`` have a row per source and point, with all points of these
            # nodes: the position of the point, that of the source, and the distance.
            place = np.searchsorted(targets, frame["target"].to_numpy())
            point = by_node[_list_ranges(first[place], counts[place])]
            source = np.repeat(frame["source"].to_numpy(), counts[place])
            length = np.repeat(impedance.lengths(frame["distance"]), counts[place])
            # ``column``: the rank of the point for its source, from 0, which is the column of the
            # result. It is the row less the first row of the same source, as the rows of a source
            # stand together and sources ascend. Ranks from ``k`` on are dropped: the k-th nearest
            # node may have several points.
            column = np.arange(source.size) - np.searchsorted(source, source)
            is_near = column < k
            lengths[source[is_near], column[is_near]] = length[is_near]
            pois[source[is_near], column[is_near]] = point[is_near]
        result = pd.DataFrame(lengths, index=self.node_ids, columns=list(range(1, k + 1)))
        if include_poi_ids:
            for i in range(k):  # the position -1 is none of ``labels``, so that it becomes missing
                result[f"poi{i + 1}"] = pd.Series(labels).reindex(pois[:, i]).array
        return result

    def nodes_in_range(
        self, nodes: Any, radius: float, imp_name: str | None = None
    ) -> pd.DataFrame:
        """Return the distances from each of some nodes to all nodes within a radius.

        Parameters
        ----------
        nodes : sequence of ids
            Where the searches begin; an id that occurs again is taken once.
        radius : float
            The largest distance, inclusive.
        imp_name : str, optional
            Default: the only impedance.

        Returns
        -------
        pandas.DataFrame
            A row per pair, with its ids in ``source`` and ``destination``, and the distance in a
            column that has the name of the impedance.
        """
        impedance = self._find_impedance(imp_name)
        sources = pd.unique(self._find_numbers("nodes", nodes))
        frame = sssp_many(impedance.graph, sources, cutoff=impedance.limit("radius", radius))
        return pd.DataFrame(
            {
                "source": self.node_ids[frame["source"].to_numpy()],
                "destination": self.node_ids[frame["vertex"].to_numpy()],
                self._find_impedance_name(imp_name): impedance.lengths(frame["distance"]),
            }
        )

    def shortest_path(self, node_a: Any, node_b: Any, imp_name: str | None = None) -> np.ndarray:
        """Return the ids of the nodes of a shortest path from ``node_a`` to ``node_b``, both ends
        included; an empty array if there is no path.
        """
        return self._paths(self._number_pairs([node_a], [node_b], _ONE_NODE), imp_name)[0]

    def shortest_paths(
        self, nodes_a: Any, nodes_b: Any, imp_name: str | None = None
    ) -> list[np.ndarray]:
        """Return a shortest path from each node of ``nodes_a`` to the node of ``nodes_b`` in the
        same row: an array of ids of nodes per pair, empty where there is no path.
        """
        return self._paths(self._number_pairs(nodes_a, nodes_b), imp_name)

    def _paths(
        self, pairs: tuple[np.ndarray, np.ndarray], imp_name: str | None
    ) -> list[np.ndarray]:
        """Return an array per pair: the ids of the nodes of a shortest path, empty without a path.

        ``pairs`` are the positions of the origins and of the destinations, int64 arrays of the same
        length.
        """
        origins, _ = pairs
        frame = paths(self._find_impedance(imp_name).prepare_for_sources(origins), pairs)
        nodes = self.node_ids.to_numpy()[frame["vertex"].to_numpy()]
        # The rows of a pair stand together, in the order of the pairs: those of pair i are from
        # ``ends[i]`` to before ``ends[i + 1]``.
        ends = np.searchsorted(frame["pair"].to_numpy(), np.arange(origins.size + 1))
        return [nodes[begin:end] for begin, end in pairwise(ends.tolist())]

    def shortest_path_length(self, node_a: Any, node_b: Any, imp_name: str | None = None) -> float:
        """Return the length of a shortest path from ``node_a`` to ``node_b``; 4294967.295, with a
        UserWarning, if there is none.
        """
        return self._path_lengths(self._number_pairs([node_a], [node_b], _ONE_NODE), imp_name)[0]

    def shortest_path_lengths(
        self, nodes_a: Any, nodes_b: Any, imp_name: str | None = None
    ) -> list[float]:
        """Return the length of a shortest path from each node of ``nodes_a`` to the node of
        ``nodes_b`` in the same row.

        Warns
        -----
        UserWarning
            Pairs have no path. Their length is 4294967.295, as in pandana.
        """
        return self._path_lengths(self._number_pairs(nodes_a, nodes_b), imp_name)

    def _path_lengths(
        self, pairs: tuple[np.ndarray, np.ndarray], imp_name: str | None
    ) -> list[float]:
        """Return the length of a shortest path per pair; ``UNCONNECTED``, with a warning, where
        there is no path.

        ``pairs`` are the positions of the origins and of the destinations, two arrays of the same
        length.
        """
        impedance = self._find_impedance(imp_name)
        origins, destinations = pairs
        frame = sssp_pairs(impedance.prepare_for_pairs(origins), origins, destinations)
        lengths = impedance.lengths(frame["distance"])
        is_missing = np.isnan(lengths)
        if is_missing.any():
            warnings.warn(
                f"{int(is_missing.sum())} pairs have no path; their length is {UNCONNECTED}",
                stacklevel=3,  # the caller of the public method
            )
        return np.where(is_missing, UNCONNECTED, lengths).tolist()

    def plot(
        self,
        data: pd.Series,
        bbox: Any = None,
        plot_type: str = "scatter",
        fig_kwargs: dict[str, Any] | None = None,
        plot_kwargs: dict[str, Any] | None = None,
        cbar_kwargs: dict[str, Any] | None = None,
    ) -> tuple[Any, Any]:
        """Draw the streets in the colors of a value per node by ``kepler_traverse.maps``; return
        figure and axes.

        Parameters
        ----------
        data : pandas.Series
            A value per node; the index has ids of nodes.
        bbox : tuple, optional
            Smallest y and x, and largest y and x.
        fig_kwargs : dict, optional
            For ``matplotlib.pyplot.subplots``.
        plot_type, plot_kwargs, cbar_kwargs
            Other values than the defaults are refused.
        """
        from ..maps import plot

        if plot_type != "scatter" or plot_kwargs or cbar_kwargs:
            raise InputError(
                "plot() draws streets; for plot_type, plot_kwargs and "
                "cbar_kwargs call matplotlib with nodes_df"
            )
        import matplotlib.pyplot as pyplot

        # The vertices of the graph are positions of nodes, so both tables have these.
        figure, axes = pyplot.subplots(**(fig_kwargs or {"figsize": (10, 8)}))
        numbers = self._find_numbers("data", data.index)
        nodes = pd.DataFrame(
            {
                "vertex": np.arange(self.node_ids.size),
                "x": self.nodes_df["x"],
                "y": self.nodes_df["y"],
            }
        )
        frame = pd.DataFrame({"vertex": numbers, "value": data.to_numpy()})
        # Of any impedance: all have the same streets.
        graph = next(iter(self._impedances.values())).graph
        plot(frame, nodes.reset_index(drop=True), graph=graph, column="value", ax=axes)
        if bbox is not None:
            axes.set(ylim=(bbox[0], bbox[2]), xlim=(bbox[1], bbox[3]))
        return figure, axes

    def _per_node(self, values: np.ndarray) -> pd.Series:
        """Return an array with a value per node as a float64 series, with the ids as index."""
        return pd.Series(values.astype(np.float64, copy=False), index=self.node_ids)

    def _find_numbers(self, name: str, ids: Any) -> np.ndarray:
        """Return the positions in ``node_ids`` of some ids, an integer array.

        UnknownVertexError if an id is that of no node; ``name`` is the argument that holds the ids,
        for the message.
        """
        ids = pd.Index(ids)
        try:
            numbers = _find_positions(self.node_ids, ids)
        except TypeError:  # of pandas, about a list in a column
            raise UnknownVertexError(
                f"{name} holds values that are no ids of nodes: they cannot be hashed"
            ) from None
        missing = np.flatnonzero(numbers < 0)
        if missing.size:
            if name in _ONE_NODE:
                where = name
            else:
                where = f"{name}, row {missing[0]}"
            raise UnknownVertexError(
                f"{where}: {_format_id(ids[missing[0]])} is no node of the network"
            )
        return numbers

    def _number_pairs(
        self, nodes_a: Any, nodes_b: Any, names: tuple[str, str] = _LISTS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of origins and of destinations, two arrays of the same length.

        ``nodes_a`` and ``nodes_b`` are iterables of ids. ``names`` are the names of the two
        arguments, for errors. InputError if the two have different lengths, UnknownVertexError if
        an id is that of no node.
        """
        # An iterator can be read once, and has no length.
        if not hasattr(nodes_a, "__len__"):
            nodes_a = list(nodes_a)
        if not hasattr(nodes_b, "__len__"):
            nodes_b = list(nodes_b)
        if len(nodes_a) != len(nodes_b):
            raise InputError(
                f"{len(nodes_a)} origins and {len(nodes_b)} destinations: give as many of both"
            )
        return self._find_numbers(names[0], nodes_a), self._find_numbers(names[1], nodes_b)

    def _find_impedance_name(self, imp_name: str | None) -> str:
        """Return the name of an impedance: ``imp_name``, or, if it is None, that of the network's
        only impedance.

        InputError if there is no impedance of this name, or None could mean several.
        """
        if imp_name is None and len(self.impedance_names) == 1:
            name = self.impedance_names[0]
        else:
            name = imp_name
        if name is None or name not in self.impedance_names:
            raise InputError(
                f"imp_name must be one of {self.impedance_names}, not "
                f"{arguments.describe(imp_name)}"
            )
        return name

    def _find_impedance(self, imp_name: str | None) -> _Impedance:
        """Return an impedance by its name; if ``imp_name`` is None, the network's only impedance.
        InputError as ``_find_impedance_name``.
        """
        return self._impedances[self._find_impedance_name(imp_name)]

    def _sums_at_nodes(self, name: str, nodes: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return, per node, the sum of the numbers that the rows of a variable have at this node.

        ``nodes`` has the position of the node of each row, int of shape (n_rows,). ``rows``, of the
        same shape, has the number of each row: its value or the square of its value; None counts
        the rows. The result has shape (n_nodes,), 0 for a node without rows. ``name`` is that of
        the variable, for the InputError if a sum is not finite.
        """
        sums = np.bincount(nodes, rows, self.node_ids.size)
        wrong = np.flatnonzero(~np.isfinite(sums))
        if wrong.size:
            node = _format_id(self.node_ids[wrong[0]])
            raise InputError(
                f"variable {name!r}, node {node}: {sums[wrong[0]]} cannot be "
                "added up; give smaller, finite values"
            )
        return sums

    @staticmethod
    def _decay(name: str, distance: float) -> str | None:
        """Return a decay of pandana in the form that ``decay=`` of ``sssp_many`` takes.

        ``name`` is one of ``_DECAYS``; "flat" gives None, no decay. ``distance`` is the cutoff, in
        units of the graph: "linear" falls to 0 at it, and "exp" has the rate 1 / ``distance``. A
        result is such as ``"linear:500.0"``. InputError, except for "flat", if the distance is 0 or
        infinite.
        """
        if name == "flat":
            return None
        if not 0 < distance < math.inf:
            raise InputError(f"decay={name!r} needs a finite distance above 0; take decay='flat'")
        if name == "linear":
            return f"linear:{distance!r}"
        return f"exponential:{1 / distance!r}"

    def _quantiles(
        self, graph: Graph, limit: float, nodes: np.ndarray, values: np.ndarray, share: float
    ) -> np.ndarray:
        """Return a quantile of the values within a limit of each node, float64 per node; -1 where
        there is no value.

        Of n values in ascending order it is the value at position ``int(n * share)``, or the last
        value if that position is n. ``share`` is from 0 to 1, 0.5 for the median. ``nodes``
        (positions of nodes) and ``values`` have one element per row of the variable. ``limit`` is a
        distance in units of the graph.
        """
        result = np.full(self.node_ids.size, -1.0)
        if not nodes.size:
            return result

        order, offsets = stable_order(nodes, self.node_ids.size)
        lists = ValueLists(offsets, values[order])
        targets = np.flatnonzero(np.diff(offsets))
        with sssp_many(graph, "all", targets=targets, cutoff=limit, stream=True) as groups:
            for frame in groups:
                # Sources stand in ascending order in the frame, all rows of a source in one frame.
                source = frame["source"].to_numpy()
                if not source.size:
                    continue
                begins = np.flatnonzero(np.append(True, source[1:] != source[:-1]))
                reached = Reached(np.append(begins, source.size), frame["vertex"].to_numpy())
                found = np.empty(begins.size, values.dtype)
                n_items = -(-begins.size // CHUNK)
                threads.run(find_quantiles, n_items, reached, lists, share, found)
                result[source[begins]] = found
        return result


def _find_positions(known: pd.Index, ids: pd.Index) -> np.ndarray:
    """Return the position in ``known`` of each of ``ids``, an integer array; -1 for an id that is
    not in ``known``.

    pandas compares integers with floats as floats, in which many large integers are equal. So if
    one index has floats and the other has not, ids are compared one by one, as Python objects.
    """
    kinds = [getattr(index.dtype, "kind", "O") for index in (known, ids)]
    if "f" in kinds and kinds[0] != kinds[1]:
        known = known.astype(object)
        ids = ids.astype(object)
        places = {known_id: place for place, known_id in enumerate(known)}
        return np.array([places.get(node_id, -1) for node_id in ids], np.int64)
    return known.get_indexer(ids)


def _full_name(name: str) -> str:
    """Return the name in ``_AGGREGATIONS`` or ``_DECAYS`` that ``name``, in letters of any case,
    stands for in pandana. A name without an alias stands for itself, in small letters; whether it
    is known is not checked.
    """
    return _ALIASES.get(name.lower(), name.lower())


def _format_id(value: Any) -> str:
    """Return a node's id as text for an error, as the caller writes it: a number of NumPy as one of
    Python, and a long text shortened.
    """
    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)


def _list_ranges(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return all positions of some ranges, one range after the other. Range i begins at
    ``begins[i]`` and has ``sizes[i]`` positions: begins [7, 2] and sizes [2, 3] give [7, 8, 2, 3,
    4].
    """
    return np.repeat(begins, sizes) + positions_in_groups(sizes)


def _open_store(filename: Any, mode: Any) -> Any:
    """Open an HDF5 file of pandas for reading (``mode`` "r") or writing ("w"); InputError if
    PyTables is missing.
    """
    try:
        return pd.HDFStore(filename, mode=mode)
    except ImportError:
        raise InputError("HDF5 files need PyTables; install it by: pip install tables") from None
