"""Sums of vertex attributes within cutoffs of each source (cumulative opportunities), and counts of
vertices.

A group of sources is reduced on the device where its distances are, so that distances of all
sources are never held. Sums of integers are exact. Sums of floats are equal bit for bit on every
device and for any number of sources at once: they are folded by halves in reduction blocks of the
vertices in ascending order, as ``distance_stats`` describes, with 0.0 for vertices beyond the
cutoff. The sum within one cutoff does not depend on the other cutoffs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import (
    MAX_INTEGER,
    Array,
    as_distances,
    at_most,
    get_device,
    is_hops,
    is_rows,
    namespace,
    to_host,
)
from ..cpu import opportunities as cpu
from ..errors import InputError, KeplerError, PrecisionError, option_text
from ..graph import Graph, find_vertices
from ..graph.closed import listed_vertices, where_paths_end
from ..labels import (
    VERTEX,
    Partner,
    get_index,
    has_labels,
    in_order,
    is_id_name,
    no_ids,
    table_of_vertices,
)
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.query import SourceValues, compute_digest
from ..search.results import Traversals
from . import opportunities_gpu as gpu
from .records import Asked, CheckedOptions, SourceRecords, Values, format_ids
from .result_kinds import CutoffOptions, OpportunityOptions, ResultKind

DECAYS = {
    "exponential": cpu.EXPONENTIAL,
    "linear": cpu.LINEAR,
    "gaussian": cpu.GAUSSIAN,
    "step": cpu.STEP,
    "logistic": cpu.LOGISTIC,
    "power": cpu.POWER,
}
# A logistic decay has two parameters: the middle, and the standard deviation of the distribution.
# The deviation times this factor is the width by which distances are divided.
_WIDTH_OF_DEVIATION = np.sqrt(3.0) / np.pi
# names of columns, which no attribute may have
SOURCE = "source"
CUTOFF = "cutoff"
VALUE = "value"  # the name of an attribute that was given as one array


def check_source_weights(
    graph: Graph, numbers: np.ndarray, weights: Any, name: str = "source_weights"
) -> SourceValues:
    """Return one weight per source as ``SourceValues``. ``weights`` are in the order of
    ``numbers``, the vertex numbers of the sources; ``name`` is what errors call them.

    Raises InputError: there is not one finite number per source; or a source is given twice with
    different weights.
    """
    values = arguments.size(name, arguments.numbers(name, weights), numbers.size, "one per source")

    def error_of_two_weights(row: int, _: int) -> InputError:
        """Return the error for a row whose source has another weight in an earlier row."""
        (source,) = format_ids(graph, numbers[row])
        return InputError(
            f"{name}: source {source} is given twice with different weights; call once for each"
        )

    return SourceValues.of_rows(numbers, values, error_of_two_weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction(CheckedOptions):
    """What to reduce the distances of each source to: checked options of the result kinds that take
    ``cutoffs``.
    """

    cutoffs: np.ndarray  # int64 or float64, ascending; the last one limits the search
    # The attributes that are added up: int64 or float64 arrays of shape (n_vertices,) by name.
    # With a decay they are float64. Kinds that count vertices by sums have one that is 1 at each,
    # and kinds that count levels or add up nothing have none.
    values: dict[str, np.ndarray] = field(default_factory=dict)  # type: ignore[misc]
    decay: int = cpu.NO_DECAY  # one of NO_DECAY to POWER of ``cpu.opportunities``
    # The parameter of the decay: a rate per unit of distance, a distance or an exponent. 0 without
    # a decay.
    parameter: float = 0.0
    # the second parameter of a logistic decay, in units of distance; 0 for other decays
    width: float = 0.0
    # by which the sums of each source are multiplied; None for 1
    weights: SourceValues | None = None
    # what ``copy_to_gpu`` returns, by the number of the device
    _on_gpu: dict[int, Array] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without what each process makes itself: the values as one
        array, and their copies on its device.
        """
        return {name: value for name, value in vars(self).items() if name != "stacked"} | {
            "_on_gpu": {}
        }

    @property
    def limit(self) -> float | int:
        """The largest cutoff, as a Python number."""
        return self.cutoffs[-1].item()

    @property
    def rows_per_source(self) -> int:
        """The number of records of a source: one per cutoff."""
        return self.cutoffs.size

    def bytes_on_gpu(self, n_sources: int, n_vertices: int) -> int:
        """Return the bytes that the sums of a group of ``n_sources`` sources need on a GPU while
        they are computed, in a graph of ``n_vertices`` vertices.
        """
        return gpu.bytes_needed(n_sources, n_vertices, len(self.values), self.cutoffs.size)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that determines a result, as hexadecimal digits."""
        options = [
            self.cutoffs.tolist(),
            self.decay,
            self.parameter,
            [(n, str(v.dtype)) for n, v in self.values.items()],
        ]
        arrays = list(self.values.values())
        # Options that are not given add nothing to the digest.
        if self.width:
            options.append(self.width)
        if self.weights is not None:
            weights = [self.weights.numbers.tolist(), self.weights.values.tolist()]
            arrays.append(np.frombuffer(json.dumps(weights).encode(), np.uint8))
        return compute_digest(options, arrays)

    def get_dtype(self, name: str) -> np.dtype:
        """Return the type of the sums of an attribute: int64 or float64.

        It is the type of the values, or of their products with the weights of the sources. Counts
        of vertices, for which ``name`` is no attribute, are integers.
        """
        if name in self.values:
            kind = self.values[name].dtype
        else:
            kind = np.dtype(np.int64)
        if self.weights is None:
            return kind
        return np.result_type(kind, self.weights.values.dtype)

    @cached_property
    def stacked(self) -> tuple[np.ndarray, np.ndarray]:
        """The attributes of integers, int64, and those of floats, float64: two arrays of shape
        (n_attributes, n_vertices).
        """
        integers, floats = self.split_names()
        size = next((value.size for value in self.values.values()), 0)
        return (
            np.array([self.values[name] for name in integers], np.int64).reshape(-1, size),
            np.array([self.values[name] for name in floats], np.float64).reshape(-1, size),
        )

    def split_names(self) -> tuple[list[str], list[str]]:
        """Return the names of the attributes of integers, and the names of those of floats, each in
        the order of ``values``.
        """
        integers = [name for name, value in self.values.items() if value.dtype.kind == "i"]
        return integers, [name for name in self.values if name not in integers]

    def copy_to_gpu(self) -> Array:
        """Return the attributes in the memory of the current GPU: int64 of shape (n_attributes,
        n_vertices).

        The rows of integers come first. The rows of floats follow, as the bits of float64. The copy
        is made once per GPU.
        """
        from ..cuda import cp

        device = cp.cuda.runtime.getDevice()
        if device not in self._on_gpu:
            integers, floats = self.stacked
            self._on_gpu[device] = cp.asarray(np.concatenate([integers, floats.view(np.int64)]))
        return self._on_gpu[device]


def check_options(
    options: CutoffOptions,
    kind: ResultKind,
    graph: Graph,
    algorithm: str,
    numbers: Mapping[str, np.ndarray],
) -> Reduction:
    """Check the options of a result kind that takes ``cutoffs``; return them as a ``Reduction``.

    ``algorithm`` is "bfs" or "sssp". ``numbers`` may have ``sources``, int64 vertex numbers, in
    whose order source weights are given. Without them, the weights are ``SourceValues`` already.

    Raises InputError (an option has a wrong value; values are not finite, or not one per vertex; a
    vertex has several), UnknownVertexError (a table has a vertex that the graph lacks) or
    PrecisionError (a sum of values could exceed int64, or float64).
    """
    cutoffs = check_cutoffs(algorithm, options.cutoffs)  # int64 or float64, ascending

    # Kinds without attributes count vertices, or add up nothing. By hops they read counts per
    # level; by weights, the count is the sum of an attribute that is 1 at each vertex.
    if not isinstance(options, OpportunityOptions):
        is_counted = "vertices" in kind.columns and not ALGORITHMS[algorithm].counts_hops
        values = {"vertices": _make_ones(graph)} if is_counted else {}
        return Reduction(cutoffs=cutoffs, values=values)

    # the number of the decay, ``NO_DECAY`` without one, and its two parameters, 0 where unused
    decay, parameter, width = parse_decay(options.decay)
    may_be_negative = ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights
    if decay != cpu.NO_DECAY and may_be_negative:
        raise InputError(
            "decay needs distances of 0 or more, and the graph has "
            "negative weights; leave decay out"
        )

    # One array over all vertices per attribute. A decay makes fractions of integers.
    values = check_attributes(graph, options.values)
    if decay != cpu.NO_DECAY:
        values = {name: value.astype(np.float64) for name, value in values.items()}
    weights = options.source_weights
    # Where the sources are not known yet, the job has read and checked their weights. In both cases
    # they are ``SourceValues`` then: weights by vertex number.
    if "sources" in numbers and weights is not None:
        weights = check_source_weights(graph, numbers["sources"], weights)
    # Sums of each source are multiplied by its weight, so that the largest one decides what fits.
    largest_weight = 1
    if weights is not None:
        largest_weight = max(map(abs, weights.values.tolist()), default=1)
    for name, value in values.items():
        _refuse_overflow(name, value, largest_weight)
    return Reduction(
        cutoffs=cutoffs,
        values=values,
        decay=decay,
        parameter=parameter,
        width=width,
        weights=weights,
    )


def check_cutoffs(algorithm: str, cutoffs: Any) -> np.ndarray:
    """Return the cutoffs that a user gives as an int64 array if all are integers, else as a float64
    array. They ascend. ``algorithm`` is "bfs", whose cutoffs are whole numbers of hops, or "sssp".

    Raises InputError: they are no list of finite numbers in ascending order; the type cannot hold
    one exactly; or a number of hops is no integer.
    """
    listed = _as_list(cutoffs)
    if not listed:
        raise InputError(
            f"cutoffs must be a list of at least one number, not {arguments.describe(cutoffs)}"
        )

    numbers = [arguments.limit("cutoffs", number) for number in listed]
    if ALGORITHMS[algorithm].counts_hops:
        numbers = [int(arguments.whole("cutoffs", number)) for number in numbers]
    if any(number == np.inf for number in numbers):
        raise InputError(
            "cutoffs must be finite; result='summary' counts all vertices that a source reaches"
        )
    if any(before >= after for before, after in itertools.pairwise(numbers)):
        raise InputError(
            "cutoffs must ascend, each larger than the one before, "
            f"not {arguments.describe(numbers)}"
        )

    # With a float, or an integer beyond int64, the type is float64; hops have no other type than
    # int64. No cutoff may be rounded.
    if all(isinstance(number, int) and number <= MAX_INTEGER for number in numbers):
        return np.array(numbers, np.int64)
    if ALGORITHMS[algorithm].counts_hops:
        kind = "int64"
        inexact = numbers
    else:
        kind = "float64"
        inexact = [number for number in numbers if float(number) != number]
    if inexact:
        raise InputError(
            f"cutoffs holds {inexact[-1]}, which {kind} cannot hold exactly; give a smaller one"
        )
    return np.array(numbers, np.float64)


def _as_list(cutoffs: Any) -> list[Any]:
    """Return the cutoffs as a list, from any sequence or array on either device; an empty list for
    anything else, such as a single number or a text.
    """
    if isinstance(cutoffs, (str, bytes, Mapping)):
        return []
    try:
        if get_device(cutoffs) == "cuda":
            return list(to_host(cutoffs))
        return list(cutoffs)
    except TypeError:
        return []


def parse_decay(decay: Any) -> tuple[int, float, float]:
    """Return the number of a decay, one of ``NO_DECAY`` to ``POWER`` of ``cpu.opportunities``, and
    its two parameters.

    ``decay`` is None, or a text such as ``"exponential:0.002"``. Only a logistic decay has a second
    parameter; for the others it is 0. Raises InputError: the text has another form.
    """
    if decay is None:
        return cpu.NO_DECAY, 0.0, 0.0
    examples = "'exponential:0.002', 'linear:1800' or 'gaussian:600'"
    name, _, text = arguments.text("decay", decay, examples).partition(":")
    kind = DECAYS.get(name, cpu.NO_DECAY)
    parameters = _positive_numbers(text)
    # a logistic decay has two parameters, each other decay has one
    if kind == cpu.NO_DECAY or len(parameters) != 1 + (kind == cpu.LOGISTIC):
        raise InputError(
            f"{option_text('decay', decay)} must be exponential:RATE, linear:DISTANCE, gaussian:DISTANCE, step:DISTANCE, "
            "logistic:DISTANCE,DEVIATION or power:EXPONENT, with positive numbers"
        )
    if kind != cpu.LOGISTIC:
        return kind, parameters[0], 0.0
    return kind, parameters[0], parameters[1] * _WIDTH_OF_DEVIATION


def _positive_numbers(text: str) -> list[float]:
    """Return the numbers that a text lists, separated by commas; an empty list if one of them is no
    positive, finite number.
    """
    try:
        numbers = [float(each) for each in text.split(",")]
    except ValueError:
        return []
    # ``float`` would also read "1_000"
    if "_" in text or not all(0 < number < np.inf for number in numbers):
        return []
    return numbers


def check_attributes(graph: Graph, values: Any) -> dict[str, np.ndarray]:
    """Return attributes of vertices as int64 or float64 arrays of shape (n_vertices,), by name.

    ``values`` is what a user gives: a table with a column or an index of ids, a mapping of columns
    in the order of the ids of the graph, or one such column. Vertices that a table lacks have 0.

    Raises InputError or UnknownVertexError, as ``check_options``.
    """
    # ``table_of_vertices`` returns None for what is no table, which is then read as one column.
    # ``ids`` is None if values belong to vertices by position, and ``are_of_index`` says whether
    # they are labels of an index.
    ids, columns, are_of_index = table_of_vertices("values", values) or _read_one_attribute(
        graph, values
    )
    if not columns:
        raise InputError("values has no column besides vertex; give the attributes to add up")
    for name in columns:
        if not isinstance(name, str) or name in ("", SOURCE, CUTOFF):
            raise InputError(
                f"values: {arguments.describe(name)} cannot be the name of "
                "an attribute; rename the column"
            )

    # Find the vertex of each value. Without ids, values are in the order of the ids of the graph:
    # one per vertex, or for a closed vertex, which has two numbers, at the number where paths end.
    if ids is None:
        _refuse_ids(graph, columns)  # a column of ids would say that positions mean nothing
        listed = listed_vertices(graph)
        numbers = np.arange(graph.n_vertices) if listed is None else listed
    elif are_of_index:
        numbers = _numbers_of_index(graph, ids)
    else:
        numbers = graph.to_numbers(ids, VERTEX)

    # The vertices that have several values.
    sorted_numbers = np.sort(numbers)
    twice = sorted_numbers[1:][sorted_numbers[1:] == sorted_numbers[:-1]]
    if twice.size:
        raise InputError(
            f"values: vertex {format_ids(graph, twice[0])[0]} occurs {int((numbers == twice[0]).sum())} times; "
            "add up its rows first"
        )
    # ``partner`` says what the values belong to, for a Series whose index has an order of its own.
    if ids is None:
        per = "one per vertex, in the order of their ids"
        partner = Partner("graph.ids", None, numbers, partial(find_vertices, graph))
    else:
        per = "one per row"
        partner = Partner("the ids of values", ids if are_of_index else get_index(ids))
    attributes = {}
    for name, column in columns.items():
        where = f"values[{name!r}]"
        # A Series is put into the order of ``partner`` by its index. Then there must be one value
        # per element of ``numbers``, and all must be finite. ``at`` says whose value is wrong.
        column = in_order(where, column, partner)
        array = arguments.size(where, arguments.as_array(where, column), numbers.size, per)
        array = arguments.numbers(
            where, array, at=lambda row: f"vertex {format_ids(graph, numbers[row])[0]}"
        )
        # Searches find a closed vertex by the number where paths end: it gets the value.
        attributes[name] = np.zeros(graph.n_vertices, array.dtype)
        attributes[name][where_paths_end(graph, numbers)] = array
    return attributes


def _make_ones(graph: Graph) -> np.ndarray:
    """Return an int64 array with 1 at each vertex, whose sums count vertices.

    A closed vertex, through which no path leads, has two numbers: it counts at the number where
    paths end, and has 0 at the other one.
    """
    ones = np.ones(graph.n_vertices, np.int64)
    if graph.closed is not None:
        ones[graph.closed[0]] = 0
    return ones


def _read_one_attribute(graph: Graph, values: Any) -> tuple[Any, dict[str, Any], bool]:
    """Return an attribute that is given as one column, in the form of ``table_of_vertices``: its
    ids, the columns by name, and whether the ids are those of an index.

    The ids are the index of a Series, if all its labels are vertices. Otherwise they are None, and
    the values are in the order of the ids of the graph.
    """
    index = get_index(values)
    holds_ids = has_labels(index) and bool((find_vertices(graph, index) >= 0).all())
    return (index if holds_ids else None), {VALUE: values}, holds_ids


def _refuse_ids(graph: Graph, columns: Mapping[str, Any]) -> None:
    """Raise InputError if a column of a mapping may hold the ids that the other columns belong to.

    The values of a mapping belong to the vertices by their positions, which would be wrong then. A
    column may hold ids by its name, or because it has all ids of the graph in another order.
    """
    for name, column in columns.items():
        if is_id_name(name) or (len(columns) > 1 and _are_shuffled_ids(graph, column)):
            raise no_ids("values", column=name)


def _are_shuffled_ids(graph: Graph, column: Any) -> bool:
    """Return whether a column holds the id of each vertex once, but not in the order of the ids of
    the graph.
    """
    try:
        values = arguments.as_array(VERTEX, column)
        # A merge of tables may have made floats of integer ids.
        is_whole = values.dtype.kind == "f" and np.array_equal(values, np.trunc(values))
        if is_whole and (np.abs(values) < MAX_INTEGER).all():
            column = values.astype(np.int64)
        numbers = graph.to_numbers(column, VERTEX)
    except KeplerError:  # numbers that are no ids
        return False
    ascending = np.arange(graph.n_vertices)
    return np.array_equal(np.sort(numbers), ascending) and not np.array_equal(numbers, ascending)


def _numbers_of_index(graph: Graph, index: Any) -> np.ndarray:
    """Return the vertex numbers, int64, of the labels of an index; raise InputError if a label is
    no vertex.
    """
    numbers = find_vertices(graph, index)
    unknown = np.flatnonzero(numbers < 0)
    if unknown.size:
        raise no_ids("values", index, arguments.describe(arguments.plain(index[unknown[0]])))
    return numbers


def _refuse_overflow(name: str, values: np.ndarray, factor: int | float) -> None:
    """Raise PrecisionError if a sum of an attribute over some vertices could exceed its type.

    Sums of integers must fit int64, also multiplied by an integer weight of a source. Sums of
    floats, and products with float weights, must fit float64.

    ``values`` are the attribute ``name`` at all vertices. ``factor``, 0 or more, is the largest
    absolute weight of a source, by which sums are multiplied.
    """
    if values.dtype.kind == "f" or isinstance(factor, float):
        with np.errstate(over="ignore"):
            # The sum is added up before a weight, perhaps below 1, multiplies it: hence 1 at least.
            largest_sum = float(np.abs(values.astype(np.float64)).sum()) * max(factor, 1.0)
        # half of the largest float, as this sum itself is rounded
        if not largest_sum < np.finfo(np.float64).max / 2:
            raise PrecisionError(
                f"the sum of values[{name!r}] exceeds float64; scale the values down"
            )
        if values.dtype.kind == "f":
            return
        # The sum of integers is exact, and is rounded once when it is multiplied by a float. So the
        # sum alone must fit int64.
        factor = 1

    # The largest and the smallest sum of any of the values. The upper and the lower 32 bits are
    # added up separately, so that neither sum overflows.
    for signed in (values[values > 0], values[values < 0]):
        total = (int((signed >> 32).sum()) << 32) + int((signed & (2**32 - 1)).sum())
        total *= max(factor, 1)  # with weights of 0 alone, the sum itself must still fit
        if abs(total) > MAX_INTEGER:
            raise PrecisionError(
                f"the sum of values[{name!r}] can reach {total}, beyond int64; "
                "scale the values down, or give floats"
            )


def find_bounds(cutoffs: Iterable[float], kind: np.dtype) -> np.ndarray:
    """Return the largest distance that each cutoff holds, an array in ``kind``, the type of the
    distances.

    Values that stand for unreached vertices are beyond every bound.
    """
    bounds = as_distances(cutoffs, kind)
    # Infinity stands for unreached vertices, which no cutoff holds, not even an infinite one: the
    # bound is then the largest finite number.
    if kind.kind == "f":
        return np.minimum(bounds, np.finfo(kind).max)
    # The largest int32 stands for unreached vertices in kernels; no path has so many edges.
    if kind == np.int32:
        return np.minimum(bounds, kind.type(np.iinfo(kind).max - 1))
    return bounds


def sums_within(distance: Array, reduction: Reduction) -> dict[str, np.ndarray]:
    """Return, for each attribute of ``reduction`` by name, its sums over the vertices within each
    cutoff of each source: int64 or float64 of shape (k, n_cutoffs), NumPy.

    ``distance`` has hops (-1 where unreached) or weighted distances (inf, for integers 2**63 - 1):
    an array of shape (k, n_vertices) of NumPy or CuPy, or ``SparseDistances``, which have reached
    vertices alone, in host memory. The sums are computed on its device.

    With a decay, each value counts with a weight that falls with the distance of its vertex. The
    weights of the sources, ``reduction.weights``, are not applied here.
    """
    bounds = find_bounds(reduction.cutoffs.tolist(), distance.dtype)
    integers, floats = reduction.split_names()
    parameters = reduction.parameter, reduction.width
    if get_device(distance) == "cuda":
        values = reduction.copy_to_gpu()
        words = gpu.sums(distance, bounds, values, len(integers), reduction.decay, parameters)
        # A word is a sum of integers, or the bits of a sum of floats; the attributes of integers
        # come first.
        exact = words[:, : len(integers)]
        rounded = words[:, len(integers) :].view(np.float64)
    else:
        # Distances below the first argument are those of unreached vertices, -1 for hops.
        # ``stacked`` has the attributes of integers, and those of floats.
        args = (
            _least_distance(distance.dtype),
            bounds,
            *reduction.stacked,
            reduction.decay,
            parameters,
        )
        if is_rows(distance):  # an array with a row per source
            exact, rounded = cpu.sums(distance, *args)
        else:
            exact, rounded = distance.sums_within(*args)  # ``SparseDistances``

    # by name, in the order of the attributes, and no longer parts of a larger array
    sums = {name: exact[:, i] for i, name in enumerate(integers)}
    sums |= {name: rounded[:, i] for i, name in enumerate(floats)}
    return {name: np.ascontiguousarray(sums[name]) for name in reduction.values}


def _least_distance(kind: np.dtype) -> Any:
    """Return a bound in ``kind``, the type of the distances: no distance of a vertex that is
    reached is below it.

    Hops are at least 0, and -1 stands for unreached vertices. Weighted distances may be negative.
    """
    if is_hops(kind):
        return kind.type(0)
    if kind.kind == "f":
        return kind.type(-np.inf)
    return kind.type(np.iinfo(kind).min)


def make_records(asked: Asked[Reduction], group: Traversals) -> SourceRecords:
    """Return the records ``cutoff`` and, by the name of each attribute, its sum: one record per
    source and cutoff.

    A kind that counts vertices has an attribute that is 1 at each vertex.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    reduction = asked.options
    sums = sums_within(group.distance, reduction)
    if reduction.weights is not None:
        factors = np.array(reduction.weights.of(group.sources))[:, None]
        sums = {name: value * factors for name, value in sums.items()}
    return _records(reduction, sums, len(group))


def of_levels(asked: Asked[Reduction], counts: Array) -> SourceRecords:
    """Return the records ``cutoff, vertices`` by hops: per source and cutoff, the number of
    vertices within so many hops.

    ``asked.options``, a ``Reduction``, has the cutoffs, whole numbers of hops. ``counts``, of shape
    (k, n_levels), are the vertices of each source at 0, 1, 2, ... hops.
    """
    # The total up to the last level holds all vertices, and so does each cutoff beyond it.
    xp = namespace(counts)
    totals = xp.cumsum(counts.astype(np.int64, copy=False), axis=1)
    last_levels = np.minimum(asked.options.cutoffs, counts.shape[1] - 1)
    vertices = to_host(totals[:, xp.asarray(last_levels)])
    return _records(asked.options, {"vertices": vertices}, len(counts))


def _records(reduction: Reduction, sums: dict[str, np.ndarray], n_sources: int) -> SourceRecords:
    """Return records, one per source and cutoff, from sums of shape (k, n_cutoffs) by name.

    ``n_sources`` is k, and ``reduction`` has the cutoffs.
    """
    values = {CUTOFF: np.tile(reduction.cutoffs, n_sources)} | {
        name: value.reshape(-1) for name, value in sums.items()
    }
    return SourceRecords(values, np.full(n_sources, reduction.cutoffs.size, np.int64))


def make_columns(asked: Asked[Reduction], values: Values) -> dict[str, Column]:
    """Return columns ``cutoff``, and one per attribute. The types are the same if there is no
    source, and so no record.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    reduction = asked.options
    # Where the user names attributes, each is a column. Other kinds have the column of counts.
    if asked.kind.names_columns:
        names = tuple(reduction.values)
    else:
        names = asked.kind.columns[2:]  # without those of the source and of the cutoff
    columns = {CUTOFF: Column(values[CUTOFF].astype(reduction.cutoffs.dtype, copy=False))}
    return columns | {
        name: Column(values[name].astype(reduction.get_dtype(name), copy=False)) for name in names
    }


def find_bands(distance: Array, cutoffs: np.ndarray) -> Array:
    """Return for each distance the smallest cutoff that holds it. No distance is beyond the last
    cutoff.

    ``cutoffs`` ascend. So the position of a distance's cutoff is the number of cutoffs that are too
    small.
    """
    xp = namespace(distance)
    positions = xp.zeros(distance.shape, np.int64)
    # The last cutoff is not compared, since it holds all distances.
    for cutoff in cutoffs[:-1].tolist():
        positions += ~at_most(distance, cutoff)
    return xp.asarray(cutoffs)[positions]
