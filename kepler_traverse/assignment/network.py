"""The links and the trips of an assignment, from tables, as arrays of compiled code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import sort_distinct
from .._uninterrupted import load
from ..cpu.breadth_first_order import breadth_first_order
from ..cpu.counting_sort import stable_order
from ..errors import InputError, option_text
from ..formats.column_names import end_pairs, listed
from ..graph.ids import ENDS_OF_LINKS, VertexIds, ends_of_one_type
from ..labels import columns_in_order, index_of_rows
from .cost_functions import LinkTable
from .link_costs import take
from .path_flows import Demand
from .trees import Links


@dataclass(frozen=True, kw_only=True)
class VehicleClass:
    """Trips that see costs of their own.

    For a trip a link costs ``time + toll / value_of_time + distance_weight * length``, where
    ``time`` depends on the flow of all classes together.

    Attributes
    ----------
    volume : str
        The column of the trips with the volumes of the class.
    value_of_time : float, optional
        Units of the toll per unit of time. Without it tolls do not count.
    toll, length : str
        Columns of the links.
    distance_weight : float
        Units of time per unit of length.
    passenger_cars : float
        What a vehicle adds to the flow (passenger car equivalents).
    """

    volume: str = "volume"
    value_of_time: float | None = None
    toll: str = "toll"
    distance_weight: float = 0.0
    length: str = "length"
    passenger_cars: float = 1.0

    def check(self) -> None:
        """Raise InputError for a field that is no text where it names a column, or no number in its
        range: above 0, or 0 or more for ``distance_weight``.
        """
        for name in ("volume", "toll", "length"):
            arguments.text(f"{name} of a class", getattr(self, name), "the name of a column")
        above_zero = {"passenger_cars": self.passenger_cars}
        if self.value_of_time is not None:
            above_zero["value_of_time"] = self.value_of_time
        for name, value in above_zero.items():
            if not (_is_finite(value) and value > 0):
                raise InputError(f"{name} of class {self.volume!r} must be above 0, not {value!r}")
        if not (_is_finite(self.distance_weight) and self.distance_weight >= 0):
            raise InputError(
                f"distance_weight of class {self.volume!r} must be 0 or more, "
                f"not {self.distance_weight!r}"
            )

    def fixed_costs(self, table: LinkTable) -> np.ndarray:
        """Return the part of the cost of each link that no flow changes, toll and weighted length:
        float64 of shape (n_rows,), in the order of the table, in units of time.

        InputError if it is beyond float64.
        """
        # ``numbers`` returns a column as float64. It raises InputError for a missing column, and
        # for a number that is negative or not finite.
        fixed = np.zeros(table.n_rows)
        with np.errstate(over="ignore"):  # infinite costs are refused below
            if self.value_of_time is not None:
                fixed += table.numbers(self.toll, "toll") / self.value_of_time
            if self.distance_weight:
                fixed += table.numbers(self.length, "length") * self.distance_weight
        infinite = np.flatnonzero(~np.isfinite(fixed))
        if infinite.size:
            raise InputError(
                f"links, row {infinite[0]}: what class {self.volume!r} pays for toll and length is beyond "
                "float64; choose other units"
            )
        return fixed


def _is_finite(value: Any) -> bool:
    """Return whether a value is an integer or a float, no bool, and its magnitude is at most the
    largest finite float64.
    """
    is_number = arguments.is_integer(value) or isinstance(value, (float, np.floating))
    return is_number and abs(value) <= sys.float_info.max


@dataclass(frozen=True)
class Network:
    """The links of a network, numbered for compiled code.

    There are two orders of vertices. The rank of a vertex is the position of its id among all ids
    in ascending order. The number of a vertex is its place in a breadth-first search, so that
    vertices that are near in the network are near in memory.

    There are two orders of links. A row is the position of a link in the user's table. A link
    number is its position in ``links``: by the number of the head, then by the rank of the tail,
    then by row.
    """

    ids: VertexIds  # the ids of all vertices, by rank
    place: np.ndarray  # int64 (n_vertices,): the number of the vertex of each rank
    links: Links  # by link number; the ends of links are numbers of vertices, not ranks
    row: np.ndarray  # int64 (n_links,): the row of each link number
    # int64 (n_links,) each, by row: the ranks of the tail (src) and of the head (dst)
    ends: tuple[np.ndarray, np.ndarray]
    table: LinkTable  # the columns of the user's table, by row
    index: Any  # the index of pandas that labels the rows; None if they have no labels

    @property
    def n_vertices(self) -> int:
        """Number of vertices. Each is the end of a link."""
        return int(self.place.size)

    @property
    def n_links(self) -> int:
        """Number of links, one per row of the table."""
        return int(self.row.size)

    @cached_property
    def rank(self) -> np.ndarray:
        """int64 array of shape (n_vertices,): the rank of the vertex with each number, the inverse
        of ``place``.
        """
        return np.argsort(self.place)

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Return values per link in the order of the rows of the table, in a new array.

        The last axis of ``values`` is by link number, and that of the result by row.
        """
        result = np.empty_like(values)
        result[..., self.row] = values
        return result

    def by_link(self, values: np.ndarray) -> np.ndarray:
        """Return values per row, of shape (n_rows,) or (k, n_rows), in the order of the link
        numbers.
        """
        if values.ndim == 1:
            return take(values, self.row)
        return np.stack([self.by_link(each) for each in values])

    def vertex_numbers(self, ids: Any, role: str) -> np.ndarray:
        """Return the numbers (not the ranks) of the vertices with these ids, int64 of shape (k,).

        ``role`` says in errors what the ids are, as "origin". UnknownVertexError for an id that is
        no end of a link.
        """
        return self.place[self.ids.to_numbers(ids, role)]


def table_columns(name: str, table: Any) -> dict[Any, Any]:
    """Return the columns of a table by name, with their rows in one order.

    A mapping of names to pandas Series may have Series with different indexes. They are all put in
    the order of one of the indexes, by their labels. ``name`` says in errors what the table is, as
    "links". InputError: it is no table, or the labels of its columns mean several orders.
    """
    columns = arguments.columns(name, table)
    if columns is None:
        raise InputError(f"{name} must be a table, not {arguments.describe(table)}")
    return columns_in_order(name, columns)


def end_columns(
    name: str, columns: Mapping[Any, Any], chosen: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the names of the two columns that hold the ids of the ends, tails or origins first.

    They are the two names of ``chosen``, or, if both are None, the only pair of columns with known
    names, such as ``src`` and ``dst``. ``name`` says in errors what the table is, as "links".
    InputError: a chosen column is missing, only one is chosen, or not exactly one pair is known.
    """
    # By their texts: with several levels of columns, a name is a tuple.
    names = {str(column): column for column in columns}
    chosen_src, chosen_dst = chosen
    if (chosen_src is None) != (chosen_dst is None):
        raise InputError(
            f"{option_text('src_column')} and {option_text('dst_column')} belong together; name both"
        )
    if chosen_src is not None and chosen_dst is not None:
        for column in chosen:
            if column not in columns:
                raise InputError(
                    f"{name} have no column {column!r}; they have {listed(list(names))}"
                )
        return chosen_src, chosen_dst
    pairs = end_pairs(list(names))  # all pairs of columns whose names are known as ends
    if len(pairs) != 1:
        raise InputError(
            f"{name}: it is not sure which columns hold the ends; they have {listed(list(names))}; "
            "rename two to src and dst, or for trips to origin and destination"
        )
    src, dst = pairs[0]
    return names[src], names[dst]


def read_network(table: Any, ends: tuple[str | None, str | None], closed: Any) -> Network:
    """Return the network of a table of links, one directed link per row.

    ``ends``: the names of the columns of tails and heads, or None for columns with known names.
    ``closed``: ids of the vertices through which no path leads (paths may begin and end there), or
    None.

    InputError for missing columns, values that cannot be ids, and ``closed`` ids that are no end of
    a link.
    """
    columns = table_columns("links", table)
    src, dst = end_columns("links", columns, ends)
    if src == dst:
        raise InputError(f"links: the column {src!r} is named for both ends; name two columns")
    ids, tails, heads = _number_ids({src: columns[src], dst: columns[dst]})
    if not tails.size:
        raise InputError("links have no row")

    n_vertices = len(ids.array)
    is_closed = np.zeros(n_vertices, np.bool_)
    if closed is not None:
        is_closed[ids.to_numbers(closed, "closed vertex")] = True

    # Number the vertices. Sort the rows by the number of the head, then by the rank of the tail,
    # then by row: stable sorts, the last key first. ``stable_order`` returns the positions of its
    # keys in ascending order of the keys, and where the positions of each key begin in this order.
    by_tail = stable_order(tails, n_vertices)
    place = _local_order(n_vertices, tails, heads, by_tail)
    tail_numbers = place[tails]
    head_numbers = place[heads]
    in_order, in_offsets = stable_order(head_numbers[by_tail[0]], n_vertices)
    order = by_tail[0][in_order]  # the row of each link number
    # The link numbers by tail: the links that leave each vertex.
    out_links, out_offsets = stable_order(tail_numbers[order], n_vertices)

    # From ranks to numbers of vertices.
    is_closed_by_number = np.empty_like(is_closed)
    is_closed_by_number[place] = is_closed
    links = Links(
        in_offsets=in_offsets,
        tails=tail_numbers[order].astype(np.int32),
        heads=head_numbers[order].astype(np.int32),
        out_offsets=out_offsets,
        out_links=out_links.astype(np.int32),
        is_closed=is_closed_by_number,
    )
    return Network(
        ids=ids,
        place=place,
        links=links,
        row=order,
        ends=(tails, heads),
        table=LinkTable(columns, int(tails.size)),
        index=index_of_rows(table),
    )


def _number_ids(ends: dict[str, Any]) -> tuple[VertexIds, np.ndarray, np.ndarray]:
    """Return the distinct ids of all ends in ascending order, and the rank of each tail and of each
    head among them (int64 arrays with a value per row).

    ``ends``: the columns of the tails and of the heads, by name.
    """
    columns = ends_of_one_type("links", ends)  # two lists of strings, or two integer arrays
    if isinstance(columns[0], list):  # strings, sorted by their bytes in UTF-8, as Arrow does
        names = sorted({*columns[0], *columns[1]}, key=str.encode)
        array = load("pyarrow").array(names, load("pyarrow").string())
    else:
        array = sort_distinct(np.concatenate(columns))
    ids = VertexIds(array, limited_by=ENDS_OF_LINKS)  # says in errors which ids there are
    tails, heads = (ids.to_numbers(column, "end of a link") for column in columns)
    return ids, tails, heads


def _local_order(
    n: int, tails: np.ndarray, heads: np.ndarray, by_tail: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the place, int64 of shape (n,), of each vertex in the order of a breadth-first search
    from vertex 0, over links in both directions. Vertices that it does not reach come last, by
    rank.

    Vertices are ranks: ``tails`` and ``heads`` have that of each row. ``by_tail`` is what
    ``stable_order`` returned for the tails: the rows by tail, and where each tail begins.
    """
    # The neighbors of each vertex in both directions, as offsets and neighbors.
    by_head = stable_order(heads, n)
    out = (by_tail[1], heads[by_tail[0]].astype(np.int32))
    back = (by_head[1], tails[by_head[0]].astype(np.int32))
    order, _ = breadth_first_order([out, back], 0)  # the predecessors are not needed
    is_unreached = np.ones(n, np.bool_)
    is_unreached[order] = False
    unreached = np.flatnonzero(is_unreached)
    place = np.empty(n, np.int64)
    place[np.concatenate([order, unreached])] = np.arange(n)
    return place


class Trips(NamedTuple):
    """The trips of all classes. Those from a vertex to itself use no link, and are not assigned."""

    demand: Demand  # the pairs of different vertices with a volume above 0, in groups
    volume: float  # the number of all trips, in vehicles, those from a vertex to itself included
    within: float  # the number of trips from a vertex to itself, in vehicles


def read_trips(table: Any, network: Network, classes: Iterable[VehicleClass]) -> Trips:
    """Return the trips of a table, with one column of volumes per class.

    InputError for missing columns and for volumes below 0; UnknownVertexError for ids that are no
    end of a link.
    """
    columns = table_columns("trips", table)
    origin, destination = end_columns("trips", columns, (None, None))
    from_vertex = network.vertex_numbers(columns[origin], "origin")
    to_vertex = network.vertex_numbers(columns[destination], "destination")
    # InputError unless there are as many destinations as origins, and below as many volumes.
    arguments.size(
        f"trips, column {destination!r}", to_vertex, from_vertex.size, f"one per {origin!r}"
    )
    is_within = from_vertex == to_vertex

    # Per class, four arrays over its pairs: number of the class, origin, destination and volume.
    parts = []
    total = 0.0
    within = 0.0
    for k, vehicle_class in enumerate(classes):
        name = vehicle_class.volume
        if name not in columns:
            raise InputError(
                f"trips have no column {name!r}; they have {listed(list(map(str, columns)))}"
            )
        # The function says which numbers are allowed; the text after it says what is wrong with
        # the first that is not, in an InputError.
        volume = arguments.numbers(
            f"trips, column {name!r}",
            columns[name],
            lambda values: values >= 0,
            "is no volume; it must be 0 or more",
        ).astype(np.float64)
        arguments.size(f"trips, column {name!r}", volume, is_within.size, f"one per {origin!r}")
        total += float(volume.sum())
        within += float(volume[is_within].sum())
        is_used = ~is_within & (volume > 0)
        starts, ends, volume = _pairs_of_class(from_vertex, to_vertex, volume, is_used)
        parts.append((np.full(starts.size, k), starts, ends, volume))

    user_class, starts, ends, volume = map(np.concatenate, zip(*parts, strict=True))
    if not volume.size:
        raise InputError("trips have no volume above 0 between two vertices")
    return Trips(_group_pairs(user_class, starts, ends, volume), total, within)


def _pairs_of_class(
    starts: np.ndarray, ends: np.ndarray, volume: np.ndarray, is_used: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of one class, sorted by origin and then by destination: the arrays
    of origins, destinations, and volumes added up over the rows of each pair.

    ``starts``, ``ends`` and ``volume`` (n_rows,) are the numbers of origin and destination and the
    volume of each row of the trips. ``is_used`` (n_rows,) bool: True for the rows that count.
    """
    rows = np.flatnonzero(is_used)
    rows = rows[np.lexsort((ends[rows], starts[rows]))]
    starts = starts[rows]
    ends = ends[rows]
    volume = volume[rows]
    if not volume.size:
        return starts, ends, volume
    # Whether each row is the first one of its pair.
    is_first = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))
    sums = np.bincount(np.cumsum(is_first) - 1, weights=volume)
    return starts[is_first], ends[is_first], sums


def _group_pairs(
    user_class: np.ndarray, starts: np.ndarray, ends: np.ndarray, volume: np.ndarray
) -> Demand:
    """Return the ``Demand`` of some pairs, with a group for each class and origin.

    The arguments have shape (n_pairs,): the class, the numbers of origin and destination, and the
    volume of each pair. Pairs are sorted by class, and within a class those of one origin are
    adjacent.
    """
    # Whether each pair is the first one of its group.
    is_first = np.append(True, (starts[1:] != starts[:-1]) | (user_class[1:] != user_class[:-1]))
    first = np.flatnonzero(is_first)
    return Demand(
        origin=starts[first].astype(np.int32),
        user_class=user_class[first].astype(np.int32),
        first_pair=np.append(first, volume.size).astype(np.int64),
        destination=ends.astype(np.int32),
        volume=volume.astype(np.float64),
    )


def all_pairs(network: Network, zones: Any, n_classes: int) -> Demand:
    """Return all n * n pairs of n vertices for each class, with volume 0, as a ``Demand``.

    ``zones`` are the ids of the vertices; InputError if there is none.
    """
    numbers = network.vertex_numbers(zones, "zone")
    n = numbers.size
    if not n:
        raise InputError(
            "zones is empty; name vertices, or leave it out for the pairs of the trips"
        )
    return _group_pairs(
        np.repeat(np.arange(n_classes), n * n),
        np.tile(np.repeat(numbers, n), n_classes),
        np.tile(numbers, n * n_classes),
        np.zeros(n * n * n_classes),
    )
