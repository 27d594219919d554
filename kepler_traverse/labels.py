"""Which vertex or row a value belongs to: by a label, or by position where there is no label at
all.

The labels are those of the index of a data frame or of a Series. An index 0 to n-1, which a frame
has if no one gave it another, says nothing but the position. Arrays, lists and columns of Arrow and
polars have no labels.

One rule holds for every argument with a value per row, per vertex or per source. Its column belongs
to a partner, the argument that says what each value is for. It is read by position if neither has
labels or both have the same; by labels if both have the same in another order; and by ids if its
index holds the vertices that it is for. What could mean two orders is refused, and so is what means
none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from . import arguments
from .errors import InputError

VERTEX = "vertex"  # the name of the column of ids in tables that the library returns
# names by which the column of ids is recognized in tables of a user
VERTEX_NAMES = (VERTEX, "node", "id")
# Names that columns of any ids have: with a sign or a change of case before "id", as stop_id and
# nodeId, or one of some known words, as osmid and geoid; but not "paid". The ids may be those of
# vertices or of other things.
_ID_NAME = re.compile(
    r".*[\W_]ids?|.*[a-z]I[dD]s?|(osm|geo|object|point|place|zone|stop|f|g|o)ids?"
)
NO_NUMBER = -1  # the vertex number of a label that is no vertex
_PERMUTED = "numbers "  # begins the digest of labels that are 0 to n-1 in another order


def is_called(name: Any, known: tuple[str, ...] = VERTEX_NAMES) -> bool:
    """Return whether the name of a column is one of the names in ``known``.

    Case, punctuation and a final "id" do not count: "Node_ID" is "node".
    """
    if not isinstance(name, str):
        return False
    plain = re.sub(r"[\W_]+", "", name).casefold()
    known_stems = {known_name.removesuffix("id") for known_name in known}
    return bool(plain) and plain.removesuffix("id") in known_stems


def is_id_name(name: Any) -> bool:
    """Return whether the name of a column is one that columns of ids have, of vertices or of other
    things, such as "osmid" or "stop_id".
    """
    if not isinstance(name, str):
        return False
    return _ID_NAME.fullmatch(name) is not None or _ID_NAME.fullmatch(name.casefold()) is not None


def get_index(value: Any) -> Any:
    """Return the index of a Series or of a data frame as an index of pandas; None for a value that
    has none. Those of Dask are computed, and those of cuDF are copied from the GPU.
    """
    index = getattr(value, "index", None)
    if index is not None and arguments.is_dask(index):
        index = index.compute()
    if index is None or not hasattr(index, "is_unique"):  # ``index`` of a list is a method
        return None
    if hasattr(index, "to_pandas"):
        return index.to_pandas()
    return index


def named_levels(index: Any) -> dict[str, Any]:
    """Return the levels of an index of pandas that have names, as columns by name. ``index`` may be
    None, which has no levels.
    """
    names = [] if index is None else index.names
    return {
        str(name): index.get_level_values(i) for i, name in enumerate(names) if name is not None
    }


def is_positions(index: Any) -> bool:
    """Return whether the labels of an index of pandas are 0 to n-1 in this order, so that they are
    positions.
    """
    if index.nlevels > 1 or getattr(index.dtype, "kind", "") not in ("i", "u"):
        return False
    if hasattr(index, "step"):  # a RangeIndex, whose labels need not be listed
        return bool(index.start == 0 and (index.step == 1 or len(index) < 2))
    return bool(np.array_equal(index.to_numpy(), np.arange(len(index))))


def has_labels(index: Any) -> bool:
    """Return whether an index has labels: it is not None, and its labels are not just the positions
    0 to n-1.
    """
    return index is not None and not is_positions(index)


class Partner(NamedTuple):
    """The argument whose elements say what each value of another argument is for.

    For example ``sources`` is the partner of weights per source: element i of ``sources`` is the
    vertex that a weight is for.
    """

    name: str  # of the argument, for errors
    index: Any = None  # the index of pandas that the argument has; None if it has none
    # int64 (n,): the numbers of the vertices that the values are for, in the order of the partner;
    # None where values are for rows of a table
    numbers: np.ndarray | None = None
    # takes labels of an index, and returns their vertex numbers, ``NO_NUMBER`` for a label that is
    # no vertex; None where ``numbers`` is None
    find: Callable[[Any], np.ndarray] | None = None


def in_order(name: str, value: Any, partner: Partner) -> Any:
    """Return a column of values in the order of its partner, the argument that says what each value
    is for. A value without an index, such as an array or a list, is returned as it is.

    ``name`` is the argument that the values are, for errors. Raises InputError: the labels of its
    index mean no order, or could mean two different orders.
    """
    index = get_index(value)
    if (
        index is None
        or not (has_labels(index) or has_labels(partner.index))
        or _is_same(index, partner.index)
    ):
        return value

    # Each order that could be meant: for each element of the partner, the position of its value.
    # By labels, both must have the same ones. By position, the labels must be 0 to n-1. By ids, the
    # labels must be the ids of the vertices that the partner names (``partner.find``).
    orders = []
    by_labels = _order_of_labels(index, partner.index)
    if by_labels is not None:
        orders.append(by_labels)
    if is_positions(index) or (by_labels is not None and is_positions(partner.index)):
        orders.append(np.arange(len(index)))
    if partner.find is not None and has_labels(index):
        by_ids = _order_of_ids(partner.find(index), partner.numbers)
        if by_ids is not None:
            orders.append(by_ids)

    # There must be one order, or all must be the same.
    if not orders:
        vertices = ""
        if partner.find is not None:
            vertices = ", and does not hold the ids"
        raise InputError(
            f"{name} has an index that is neither 0 to n-1 nor that of {partner.name}{vertices}; give {name}.to_numpy() if "
            f"its values are in the order of {partner.name}"
        )
    if any(not np.array_equal(order, orders[0]) for order in orders[1:]):
        raise InputError(
            f"{name} has another order by the labels of its index than by position or by ids; give {name}.to_numpy() if its "
            f"values are in the order of {partner.name}, or take both from one table"
        )
    if arguments.is_dask(value):
        value = value.compute()
    return value.take(orders[0])


def ends_in_order(names: tuple[str, str], ends: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """Return two columns of ids, the ends of rows, in one order, and the index of the rows, None if
    they have no labels.

    ``names`` are the arguments that the columns are, for errors. If both have an index, the order
    is that of the column whose index has labels, of the first if both have. If one of them has no
    index, as a list, both are taken by position. InputError if the labels mean no order, or could
    mean two.
    """
    first, second = ends
    first_name, second_name = names
    first_index = get_index(first)
    second_index = get_index(second)
    if first_index is not None and second_index is not None:
        if has_labels(second_index) and not has_labels(first_index):
            first = in_order(first_name, first, Partner(second_name, second_index))
        else:
            second = in_order(second_name, second, Partner(first_name, first_index))
    for index in (first_index, second_index):
        if has_labels(index):
            return first, second, index
    return first, second, None


def index_of_rows(table: Any) -> Any:
    """Return the index of pandas that labels the rows of a table, None if there are no labels.

    The columns of a mapping may each have an index. Then it is the first of these with labels.
    """
    if isinstance(table, Mapping):
        indexes = [get_index(column) for column in table.values()]
    else:
        indexes = [get_index(table)]
    return next((index for index in indexes if has_labels(index)), None)


def columns_in_order(name: str, table: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the columns of the mapping ``table`` in one order: that of the first column whose
    index has labels. If none has labels, they are returned as they are. InputError if the labels of
    another column mean no order, or could mean two.

    ``name`` is the argument that the mapping is, for errors.
    """
    partner = Partner(f"the other columns of {name}", index_of_rows(table))
    if partner.index is None:
        return dict(table)
    return {
        column_name: in_order(f"{name}[{column_name!r}]", column, partner)
        for column_name, column in table.items()
    }


def _is_same(index: Any, other: Any) -> bool:
    """Return whether two indexes of pandas have the same labels in the same order; ``other`` may be
    None.
    """
    return other is not None and len(index) == len(other) and bool(index.equals(other))


def _order_of_labels(index: Any, other: Any) -> np.ndarray | None:
    """Return for each label of ``other`` its position in ``index``, an integer array; None unless
    both have the same labels, each once, and the same type. ``other`` may be None.
    """
    if other is None or len(index) != len(other) or index.nlevels != other.nlevels:
        return None
    if not (index.is_unique and other.is_unique):
        return None
    if getattr(index, "dtype", None) != getattr(other, "dtype", None):
        return None
    order = index.get_indexer(other)
    if (order < 0).any():
        return None
    return order


def _order_of_ids(labels: np.ndarray, numbers: Any) -> np.ndarray | None:
    """Return for each vertex of ``numbers`` the position of its label, int64; None unless each
    vertex has one label and no more.

    ``labels`` (n_labels,) are the vertex numbers of all labels, ``NO_NUMBER`` for those that are no
    vertex. Labels of vertices that are not in ``numbers`` do not matter.
    """
    # The positions of the labels that are vertices, by vertex number; ``NO_NUMBER`` sorts first.
    place = np.argsort(labels, kind="stable")
    place = place[np.searchsorted(labels[place], 0) :]
    known = labels[place]
    if (known[1:] == known[:-1]).any() or (not known.size and numbers.size):
        return None
    # Where each vertex would be; one beyond the end is then found to be another vertex.
    ranks = np.minimum(np.searchsorted(known, numbers), max(known.size - 1, 0))
    if np.array_equal(known[ranks], numbers):
        return place[ranks]
    return None


def table_of_vertices(name: str, table: Any) -> tuple[Any, dict[Any, Any], bool] | None:
    """Return which vertices the rows of a table are for: their ids, the other columns by name, and
    whether the ids are the labels of its index. Return None if ``table`` is no table.

    The ids are None for a mapping of columns in which none has a known name. ``name`` is the
    argument that the table is, for errors.

    Raises InputError: a table other than a mapping has neither a column of a known name nor an
    index with labels, or the ids could be in several places.
    """
    columns = arguments.columns(name, table)
    if columns is None:
        return None
    index = get_index(table)
    is_named = index is not None and index.nlevels == 1 and index.name is not None

    # A column of a known name, unless an index with a name could be meant as well. A column called
    # "vertex" takes precedence over other known names, and over an index with a name, unless that is
    # called "vertex", too.
    if VERTEX in columns:
        known = [VERTEX]
    else:
        known = [name_of_column for name_of_column in columns if is_called(name_of_column)]
    if len(known) > 1 or (known and is_named and (known != [VERTEX] or index.name == VERTEX)):
        candidates = list(map(arguments.describe, known))
        if is_named:
            candidates.append(f"the index {arguments.describe(index.name)}")
        could_be = " or ".join(candidates)
        raise InputError(
            f"{name}: the ids could be {could_be}; call one {VERTEX!r}, "
            "and give the others another name"
        )
    if known:
        ids = columns.pop(known[0])
        return ids, columns, False

    # Else an index with labels; of a mapping nothing.
    if index is not None and index.nlevels == 1 and (is_named or has_labels(index)):
        return index, columns, True
    if isinstance(table, Mapping):
        return None, columns, False
    column = next((column for column in columns if is_id_name(column)), None)
    raise no_ids(name, index, column=column)


def no_ids(name: str, index: Any = None, unknown: str = "", column: Any = None) -> InputError:
    """Return the error for a table that does not say which vertices its rows are for.

    ``name`` is the argument that the table is, and ``index`` its index of pandas, None without one.
    ``unknown`` is a label of the index that is no vertex, as text, and ``column`` the name of a
    column that may hold the ids.
    """
    # What to do, by what the table has.
    advice = f"call the column of ids {VERTEX!r}"
    if index is not None:
        in_order = (
            f"if its rows are in the order of graph.ids, give {name}.assign({VERTEX}=graph.ids)"
        )
        if column is not None:
            renamed = f"{name}.rename(columns={{{column!r}: {VERTEX!r}}})"
            advice = f"give {renamed}; {in_order}"
        else:
            advice = (
                "if its index holds the ids, as that of OSMnx's nodes, give "
                f"{name}.rename_axis({VERTEX!r}).reset_index(); {in_order}"
            )
    elif column is not None:
        advice += f", or add {VERTEX!r}: graph.ids to columns in the order of graph.ids"
    if column is not None:
        besides = f", and its column {arguments.describe(column)} may hold the ids"
    elif unknown:
        besides = f", and the label {unknown} of its index is no vertex"
    else:
        besides = ""
    return InputError(f"{name} has no column {VERTEX!r}{besides}; {advice}")


def digest_of_labels(index: Any) -> str:
    """Return a text that identifies the labels of an index of pandas, in their order; ``""`` if it
    has no labels, or is None.

    It is a SHA-256 in hexadecimal. If the labels are 0 to n-1 in another order, ``_PERMUTED`` is
    put before it: for a column with the index 0 to n-1 it is then not clear whether its labels or
    its positions count.
    """
    if not has_labels(index):
        return ""
    hash_of_labels = import_module("pandas.util").hash_pandas_object
    digest = hashlib.sha256(hash_of_labels(index).to_numpy().tobytes()).hexdigest()
    is_integer = index.nlevels == 1 and getattr(index.dtype, "kind", "") in ("i", "u")
    if is_integer and np.array_equal(np.sort(index.to_numpy()), np.arange(len(index))):
        return f"{_PERMUTED}{digest}"
    return digest


def require_edge_labels(name: str, value: Any, known: str) -> None:
    """Raise InputError if a Series or a table with a value per row of the edge list has other
    labels than the edge list, or the same ones in another order.

    ``known`` is the ``digest_of_labels`` of the edge list. A value without an index belongs to the
    rows by position. So does one with the index 0 to n-1, unless the edge list has the labels 0 to
    n-1 in another order. ``name`` is the argument, for errors.
    """
    index = get_index(value)
    if (
        index is None
        or (is_positions(index) and not known.startswith(_PERMUTED))
        or digest_of_labels(index) == known
    ):
        return
    raise InputError(
        f"{name} has an index that is not that of the table of edges which the graph was built from; if its rows are those "
        f"of the edge list in their order, give {name}.to_numpy(), or columns of it"
    )
