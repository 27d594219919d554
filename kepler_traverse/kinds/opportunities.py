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
# A logistic decay has two: the middle, and the standard deviation of the distribution.
_WIDTH_OF_DEVIATION = np.sqrt(3.0) / np.pi
# names of columns, which no attribute may have
SOURCE = "source"
CUTOFF = "cutoff"
VALUE = "value"  # the name of an attribute that was given as one array


def check_source_weights(
    graph: Graph, numbers: np.ndarray, weights: Any, name: str = "source_weights"
) -> SourceValues:
    """Check one weight per source, in the order of ``numbers``, which are vertex numbers.

    Raises InputError: there is not one finite number per source; or a source is given twice with
    different weights.
    """
    values = arguments.size(name, arguments.numbers(name, weights), numbers.size, "one per source")

    def error_of_two_weights(row: int, _: int) -> InputError:
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
    parameter: float = 0.0  # of the decay
    width: float = 0.0  # a second one, if the decay has two; else 0
    weights: SourceValues | None = None  # by which the sums of each source are multiplied
    # what ``copy_to_gpu`` returns, by the number of the device
    _on_gpu: dict[int, Array] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        # Each process stacks the values and copies them to its own device.
        return {name: value for name, value in vars(self).items() if name != "stacked"} | {
            "_on_gpu": {}
        }

    @property
    def limit(self) -> float | int:
        """The largest cutoff, as a Python number."""
        return self.cutoffs[-1].item()

    @property
    def rows_per_source(self) -> int:
        """Number of records of a source."""
        return self.cutoffs.size

    def bytes_on_gpu(self, n_sources: int, n_vertices: int) -> int:
        """Return the bytes that the sums of a group need on a GPU while they are computed."""
        return gpu.bytes_needed(n_sources, n_vertices, len(self.values), self.cutoffs.size)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines a result."""
        options = [
            self.cutoffs.tolist(),
            self.decay,
            self.parameter,
            [(n, str(v.dtype)) for n, v in self.values.items()],
        ]
        arrays = list(self.values.values())
        # What is not there adds nothing to the digest.
        if self.width:
            options.append(self.width)
        if self.weights is not None:
            weights = [self.weights.numbers.tolist(), self.weights.values.tolist()]
            arrays.append(np.frombuffer(json.dumps(weights).encode(), np.uint8))
        return compute_digest(options, arrays)

    def get_dtype(self, name: str) -> np.dtype:
        """Return the type of the sums of an attribute; counts of vertices are int64."""
        if name in self.values:
            kind = self.values[name].dtype
        else:
            kind = np.dtype(np.int64)
        if self.weights is None:
            return kind
        return np.result_type(kind, self.weights.values.dtype)

    @cached_property
    def stacked(self) -> tuple[np.ndarray, np.ndarray]:
        """The attributes of integers, and those of floats: arrays of shape (n_attributes,
        n_vertices).
        """
        integers, floats = self.split_names()
        size = next((value.size for value in self.values.values()), 0)
        return (
            np.array([self.values[name] for name in integers], np.int64).reshape(-1, size),
            np.array([self.values[name] for name in floats], np.float64).reshape(-1, size),
        )

    def split_names(self) -> tuple[list[str], list[str]]:
        """Return the names of the attributes of integers, and of those of floats."""
        integers = [name for name, value in self.values.items() if value.dtype.kind == "i"]
        return integers, [name for name in self.values if name not in integers]

    def copy_to_gpu(self) -> Array:
        """Return the values on the current GPU: int64 of shape (n_attributes, n_vertices), integers
        and then bits of floats.
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
    """Check the options of a result kind that takes ``cutoffs``.

    Raises InputError (an option has a wrong value; values are not finite, or not one per vertex; a
    vertex has several), UnknownVertexError (a table has a vertex that the graph lacks) or
    PrecisionError (a sum of values could exceed int64, or float64).
    """
    cutoffs = check_cutoffs(algorithm, options.cutoffs)

    # Kinds without attributes count vertices: hops by levels, others as sums of 1.
    if not isinstance(options, OpportunityOptions):
        is_counted = "vertices" in kind.columns and not ALGORITHMS[algorithm].counts_hops
        values = {"vertices": _make_ones(graph)} if is_counted else {}
        return Reduction(cutoffs=cutoffs, values=values)

    decay, parameter, width = parse_decay(options.decay)
    may_be_negative = ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights
    if decay != cpu.NO_DECAY and may_be_negative:
        raise InputError(
            "decay needs distances of 0 or more, and the graph has "
            "negative weights; leave decay out"
        )

    values = check_attributes(graph, options.values)
    if decay != cpu.NO_DECAY:
        values = {name: value.astype(np.float64) for name, value in values.items()}
    weights = options.source_weights
    # Without sources the job has read their weights already.
    if "sources" in numbers and weights is not None:
        weights = check_source_weights(graph, numbers["sources"], weights)
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
    """Return cutoffs as an int64 array if all are integers, else float64.

    Raises InputError: they are no list of finite numbers in ascending order, or the type cannot
    hold one exactly; for hops one is no integer.
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
    """Return the numbers of a sequence as a list; an empty one for anything else."""
    if isinstance(cutoffs, (str, bytes, Mapping)):
        return []
    try:
        if get_device(cutoffs) == "cuda":
            return list(to_host(cutoffs))
        return list(cutoffs)
    except TypeError:
        return []


def parse_decay(decay: Any) -> tuple[int, float, float]:
    """Return a decay such as ``"exponential:0.002"`` as a number, its parameter, and a second one,
    which is 0 where there is one alone.
    """
    if decay is None:
        return cpu.NO_DECAY, 0.0, 0.0
    examples = "'exponential:0.002', 'linear:1800' or 'gaussian:600'"
    name, _, text = arguments.text("decay", decay, examples).partition(":")
    kind = DECAYS.get(name, cpu.NO_DECAY)
    parameters = _positive_numbers(text)
    if kind == cpu.NO_DECAY or len(parameters) != 1 + (kind == cpu.LOGISTIC):
        raise InputError(
            f"{option_text('decay', decay)} must be exponential:RATE, linear:DISTANCE, gaussian:DISTANCE, step:DISTANCE, "
            "logistic:DISTANCE,DEVIATION or power:EXPONENT, with positive numbers"
        )
    if kind != cpu.LOGISTIC:
        return kind, parameters[0], 0.0
    return kind, parameters[0], parameters[1] * _WIDTH_OF_DEVIATION


def _positive_numbers(text: str) -> list[float]:
    """Return numbers that a text lists with commas; an empty list if one is no positive number."""
    try:
        numbers = [float(each) for each in text.split(",")]
    except ValueError:
        return []
    if "_" in text or not all(0 < number < np.inf for number in numbers):
        return []
    return numbers


def check_attributes(graph: Graph, values: Any) -> dict[str, np.ndarray]:
    """Return attributes of vertices as int64 or float64 arrays of shape (n_vertices,), by name.

    Vertices that a table lacks have 0. Raises InputError or UnknownVertexError as
    ``check_options``.
    """
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

    # Find the vertex of each value.
    if ids is None:
        _refuse_ids(graph, columns)
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
    if ids is None:
        per = "one per vertex, in the order of their ids"
        partner = Partner("graph.ids", None, numbers, partial(find_vertices, graph))
    else:
        per = "one per row"
        partner = Partner("the ids of values", ids if are_of_index else get_index(ids))
    attributes = {}
    for name, column in columns.items():
        where = f"values[{name!r}]"
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
    """Return 1 for each vertex, so that sums count vertices: 0 at the first number of a closed one,
    which has two.
    """
    ones = np.ones(graph.n_vertices, np.int64)
    if graph.closed is not None:
        ones[graph.closed[0]] = 0
    return ones


def _read_one_attribute(graph: Graph, values: Any) -> tuple[Any, dict[str, Any], bool]:
    """Return one column of values as ``table_of_vertices`` does: its ids, the columns by name, and
    whether the ids are those of an index.

    The ids are those of a Series whose index holds them; else None.
    """
    index = get_index(values)
    holds_ids = has_labels(index) and bool((find_vertices(graph, index) >= 0).all())
    return (index if holds_ids else None), {VALUE: values}, holds_ids


def _refuse_ids(graph: Graph, columns: Mapping[str, Any]) -> None:
    """Raise InputError if a column of a mapping, whose values would go by position, may hold the
    ids that the others belong to: by its name, or as it holds all ids of the graph in another
    order.
    """
    for name, column in columns.items():
        if is_id_name(name) or (len(columns) > 1 and _are_shuffled_ids(graph, column)):
            raise no_ids("values", column=name)


def _are_shuffled_ids(graph: Graph, column: Any) -> bool:
    """Return whether a column holds each id once, in no ascending order; a merge may have made
    floats of them.
    """
    try:
        values = arguments.as_array(VERTEX, column)
        is_whole = values.dtype.kind == "f" and np.array_equal(values, np.trunc(values))
        if is_whole and (np.abs(values) < MAX_INTEGER).all():
            column = values.astype(np.int64)
        numbers = graph.to_numbers(column, VERTEX)
    except KeplerError:  # numbers that are no ids
        return False
    ascending = np.arange(graph.n_vertices)
    return np.array_equal(np.sort(numbers), ascending) and not np.array_equal(numbers, ascending)


def _numbers_of_index(graph: Graph, index: Any) -> np.ndarray:
    """Return the vertex numbers of the labels of an index; InputError if one is no vertex."""
    numbers = find_vertices(graph, index)
    unknown = np.flatnonzero(numbers < 0)
    if unknown.size:
        raise no_ids("values", index, arguments.describe(arguments.plain(index[unknown[0]])))
    return numbers


def _refuse_overflow(name: str, values: np.ndarray, factor: int | float) -> None:
    """Raise PrecisionError if the sum over some vertices, times the factor, could exceed its type."""
    if values.dtype.kind == "f" or isinstance(factor, float):
        with np.errstate(over="ignore"):
            largest_sum = float(np.abs(values.astype(np.float64)).sum()) * max(factor, 1.0)
        if not largest_sum < np.finfo(np.float64).max / 2:
            raise PrecisionError(
                f"the sum of values[{name!r}] exceeds float64; scale the values down"
            )
        if values.dtype.kind == "f":
            return
        factor = 1  # the sum itself is exact, and is rounded once

    # The largest and the smallest sum of some values; halves of words add up without overflow.
    for signed in (values[values > 0], values[values < 0]):
        total = (int((signed >> 32).sum()) << 32) + int((signed & (2**32 - 1)).sum())
        total *= max(factor, 1)
        if abs(total) > MAX_INTEGER:
            raise PrecisionError(
                f"the sum of values[{name!r}] can reach {total}, beyond int64; "
                "scale the values down, or give floats"
            )


def find_bounds(cutoffs: Iterable[float], kind: np.dtype) -> np.ndarray:
    """Return the largest distance within each cutoff, in the type of the distances."""
    bounds = as_distances(cutoffs, kind)
    # Infinity stands for unreached vertices, which no cutoff holds, not even an infinite one.
    if kind.kind == "f":
        return np.minimum(bounds, np.finfo(kind).max)
    # The largest int32 stands for unreached vertices in kernels; no path has so many edges.
    if kind == np.int32:
        return np.minimum(bounds, kind.type(np.iinfo(kind).max - 1))
    return bounds


def sums_within(distance: Array, reduction: Reduction) -> dict[str, np.ndarray]:
    """Add up the attributes of the vertices within each cutoff of each source, on the device of the
    distances.

    Distances, of shape (k, n_vertices), are hops (-1 where unreached) or weighted (inf, for
    integers 2**63 - 1). The sums of each attribute are int64 or float64 of shape (k, n_cutoffs),
    NumPy.
    """
    bounds = find_bounds(reduction.cutoffs.tolist(), distance.dtype)
    integers, floats = reduction.split_names()
    parameters = reduction.parameter, reduction.width
    if get_device(distance) == "cuda":
        values = reduction.copy_to_gpu()
        words = gpu.sums(distance, bounds, values, len(integers), reduction.decay, parameters)
        exact = words[:, : len(integers)]
        rounded = words[:, len(integers) :].view(np.float64)
    else:
        args = (
            _least_distance(distance.dtype),
            bounds,
            *reduction.stacked,
            reduction.decay,
            parameters,
        )
        if is_rows(distance):
            exact, rounded = cpu.sums(distance, *args)
        else:
            exact, rounded = distance.sums_within(*args)

    sums = {name: exact[:, i] for i, name in enumerate(integers)}
    sums |= {name: rounded[:, i] for i, name in enumerate(floats)}
    return {name: np.ascontiguousarray(sums[name]) for name in reduction.values}


def _least_distance(kind: np.dtype) -> Any:
    """Return a bound that no distance of a reached vertex is below, in the type of the distances.

    Hops are at least 0, as -1 stands for unreached vertices. Weighted distances may be negative.
    """
    if is_hops(kind):
        return kind.type(0)
    if kind.kind == "f":
        return kind.type(-np.inf)
    return kind.type(np.iinfo(kind).min)


def make_records(asked: Asked[Reduction], group: Traversals) -> SourceRecords:
    """Return for each source and cutoff the sum of each attribute; counts of vertices sum one that
    is 1 everywhere.
    """
    reduction = asked.options
    sums = sums_within(group.distance, reduction)
    if reduction.weights is not None:
        factors = np.array(reduction.weights.of(group.sources))[:, None]
        sums = {name: value * factors for name, value in sums.items()}
    return _records(reduction, sums, len(group))


def of_levels(asked: Asked[Reduction], counts: Array) -> SourceRecords:
    """Return for each source and cutoff the number of vertices within as many hops.

    ``counts``, of shape (k, n_levels), are the vertices of each source at 0, 1, 2, ... hops.
    """
    # The last level holds all: so do cutoffs beyond it.
    xp = namespace(counts)
    totals = xp.cumsum(counts.astype(np.int64, copy=False), axis=1)
    last_levels = np.minimum(asked.options.cutoffs, counts.shape[1] - 1)
    vertices = to_host(totals[:, xp.asarray(last_levels)])
    return _records(asked.options, {"vertices": vertices}, len(counts))


def _records(reduction: Reduction, sums: dict[str, np.ndarray], n_sources: int) -> SourceRecords:
    """Return sums of shape (k, n_cutoffs), by name, as records: one per source and cutoff."""
    values = {CUTOFF: np.tile(reduction.cutoffs, n_sources)} | {
        name: value.reshape(-1) for name, value in sums.items()
    }
    return SourceRecords(values, np.full(n_sources, reduction.cutoffs.size, np.int64))


def make_columns(asked: Asked[Reduction], values: Values) -> dict[str, Column]:
    """Return columns ``cutoff``, and one per attribute, of its type also where there is no source."""
    reduction = asked.options
    if asked.kind.names_columns:
        names = tuple(reduction.values)
    else:
        names = asked.kind.columns[2:]  # without those of the source and of the cutoff
    columns = {CUTOFF: Column(values[CUTOFF].astype(reduction.cutoffs.dtype, copy=False))}
    return columns | {
        name: Column(values[name].astype(reduction.get_dtype(name), copy=False)) for name in names
    }


def find_bands(distance: Array, cutoffs: np.ndarray) -> Array:
    """Return the smallest cutoff that holds each distance; no distance is beyond the last cutoff.

    Cutoffs ascend, so that its position is the number of cutoffs that are too small.
    """
    xp = namespace(distance)
    positions = xp.zeros(distance.shape, np.int64)
    for cutoff in cutoffs[:-1].tolist():
        positions += ~at_most(distance, cutoff)
    return xp.asarray(cutoffs)[positions]
