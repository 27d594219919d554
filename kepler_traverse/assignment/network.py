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
        """Raise InputError for a name that is none, or a number that is out of range."""
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
        """Return the part of the costs that no flow changes, float64 per row, in units of time.

        InputError if it is beyond float64.
        """
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
    """Whether a value is a number that float64 holds."""
    is_number = arguments.is_integer(value) or isinstance(value, (float, np.floating))
    return is_number and abs(value) <= sys.float_info.max


@dataclass(frozen=True)
class Network:
    """The links in the order of compiled code.

    Vertices are numbered by a breadth-first search, so that those that are near are near in memory.
    Each vertex has its links in the order of the ids of their tails, and then of their rows. The
    rank of an id is its position in ascending order.
    """

    ids: VertexIds  # of all ends of links, by their ranks
    place: np.ndarray  # int64: the number of each vertex here, by the rank of its id
    links: Links  # their ends are numbers of vertices here, not ranks
    row: np.ndarray  # int64: of each link, its row of the table
    ends: tuple[np.ndarray, np.ndarray]  # src and dst of each row, by the rank of the id
    table: LinkTable  # the columns of the links, by row
    index: Any  # of pandas, of the rows; None if they have no labels

    @property
    def n_vertices(self) -> int:
        """Number of vertices, which are the ends of links."""
        return int(self.place.size)

    @property
    def n_links(self) -> int:
        """Number of links, one per row of the table."""
        return int(self.row.size)

    @cached_property
    def rank(self) -> np.ndarray:
        """Of each vertex by its number here, the rank of its id."""
        return np.argsort(self.place)

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Return values of links, in the last axis, in the order of the rows."""
        result = np.empty_like(values)
        result[..., self.row] = values
        return result

    def by_link(self, values: np.ndarray) -> np.ndarray:
        """Return values of rows, of shape (n_rows,) or (k, n_rows), in the order of the links."""
        if values.ndim == 1:
            return take(values, self.row)
        return np.stack([self.by_link(each) for each in values])

    def vertex_numbers(self, ids: Any, role: str) -> np.ndarray:
        """Return the numbers of vertices; UnknownVertexError for an id that no link has."""
        return self.place[self.ids.to_numbers(ids, role)]


def table_columns(name: str, table: Any) -> dict[Any, Any]:
    """Return the columns of a table by name, with their rows in one order.

    Columns with labels are put in the order of one index. InputError: it is no table, or the labels
    of its columns mean several orders.
    """
    columns = arguments.columns(name, table)
    if columns is None:
        raise InputError(f"{name} must be a table, not {arguments.describe(table)}")
    return columns_in_order(name, columns)


def end_columns(
    name: str, columns: Mapping[Any, Any], chosen: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the names of the two columns of ids: the chosen ones, or those with known names.

    ``name``: what the table is of, for errors.
    """
    names = {str(column): column for column in columns}  # of levels, a name is a tuple
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
    pairs = end_pairs(list(names))
    if len(pairs) != 1:
        raise InputError(
            f"{name}: it is not sure which columns hold the ends; they have {listed(list(names))}; "
            "rename two to src and dst, or for trips to origin and destination"
        )
    src, dst = pairs[0]
    return names[src], names[dst]


def read_network(table: Any, ends: tuple[str | None, str | None], closed: Any) -> Network:
    """Return the network of a table of links.

    ``ends``: names of the columns of their ends, or None for known names. ``closed``: ids of
    vertices through which no path leads, or None.

    InputError for columns that are missing, ids that are none, and ``closed`` vertices without a
    link.
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

    # Numbers of vertices, and the links in the order of heads, of the ids of tails, and of rows.
    by_tail = stable_order(tails, n_vertices)
    place = _local_order(n_vertices, tails, heads, by_tail)
    tail_numbers = place[tails]
    head_numbers = place[heads]
    in_order, in_offsets = stable_order(head_numbers[by_tail[0]], n_vertices)
    order = by_tail[0][in_order]
    out_links, out_offsets = stable_order(tail_numbers[order], n_vertices)

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
    """Return the ids of all ends in order, and the rank of the id of each tail and of each head
    (int64 arrays with a value per row).

    ``ends``: the two columns of ids by name.
    """
    columns = ends_of_one_type("links", ends)
    if isinstance(columns[0], list):
        names = sorted({*columns[0], *columns[1]}, key=str.encode)
        array = load("pyarrow").array(names, load("pyarrow").string())
    else:
        array = sort_distinct(np.concatenate(columns))
    ids = VertexIds(array, limited_by=ENDS_OF_LINKS)
    tails, heads = (ids.to_numbers(column, "end of a link") for column in columns)
    return ids, tails, heads


def _local_order(
    n: int, tails: np.ndarray, heads: np.ndarray, by_tail: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the place (n,) int64 of each vertex in the order of a breadth-first search from vertex
    0, over links in both directions. Vertices that it does not reach follow.

    ``by_tail``: the order of the links by their tails, and where each tail begins.
    """
    by_head = stable_order(heads, n)
    out = (by_tail[1], heads[by_tail[0]].astype(np.int32))
    back = (by_head[1], tails[by_head[0]].astype(np.int32))
    order, _ = breadth_first_order([out, back], 0)
    is_unreached = np.ones(n, np.bool_)
    is_unreached[order] = False
    unreached = np.flatnonzero(is_unreached)
    place = np.empty(n, np.int64)
    place[np.concatenate([order, unreached])] = np.arange(n)
    return place


class Trips(NamedTuple):
    """The trips: what is assigned, and what is not since it stays in its zone."""

    demand: Demand  # the pairs between different vertices with a volume above 0
    volume: float  # of all trips, in vehicles
    within: float  # of these from a vertex to itself


def read_trips(table: Any, network: Network, classes: Iterable[VehicleClass]) -> Trips:
    """Return the trips of a table, with one column of volumes per class.

    InputError for columns that are missing, volumes below 0 and ids without a link.
    """
    columns = table_columns("trips", table)
    origin, destination = end_columns("trips", columns, (None, None))
    from_vertex = network.vertex_numbers(columns[origin], "origin")
    to_vertex = network.vertex_numbers(columns[destination], "destination")
    arguments.size(
        f"trips, column {destination!r}", to_vertex, from_vertex.size, f"one per {origin!r}"
    )
    is_within = from_vertex == to_vertex

    # Per class, the number of the class, origins, destinations and volumes of its pairs.
    parts = []
    total = 0.0
    within = 0.0
    for k, vehicle_class in enumerate(classes):
        name = vehicle_class.volume
        if name not in columns:
            raise InputError(
                f"trips have no column {name!r}; they have {listed(list(map(str, columns)))}"
            )
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
    """Return the pairs of a class by origin and destination, each once, with the sum of its
    volumes: origins, destinations and volumes.

    ``is_used`` (bool array): the rows of the other arrays that count.
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

    The arrays have shape (n_pairs,): the class, origin, destination and volume of each pair. They
    are in the order of classes, and within a class those of one origin stand together.
    """
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
    """Return all pairs of some vertices, for each class, with volume 0; ``zones``: their ids."""
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
