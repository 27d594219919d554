"""The user's ids of the vertices 0..n-1: integers, or strings of Arrow, in ascending order."""

from __future__ import annotations

import bisect
import difflib
from functools import cached_property
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import Array, extent, get_device, namespace, pyarrow, to_host
from .._arrays import arrow_compute as compute
from ..errors import EdgeListError, InputError, UnknownVertexError, option_text, plural, several
from ..labels import NO_NUMBER

_FEW_NAMES = 64  # up to this many strings, a binary search for each is faster than hashing all ids
_HASHED_AT_ONCE = 1 << 16  # strings per update of the fingerprint
_EXPLAINED = 3  # unknown ids for which an error names the nearest known ones
_COMPARED_NAMES = 2000  # known names that an unknown name is compared with
_COMPARED_LENGTH = 200  # characters of a name that are compared


def pack_strings(strings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the UTF-8 bytes of an array of strings of pyarrow, which are the same
    for equal strings: an integer array of shape (n + 1,) that begins with 0, and a uint8 array.
    """
    _, offsets_buffer, text_buffer = strings.buffers()
    kind = np.dtype(np.int64 if strings.type == pyarrow.large_string() else np.int32)
    # a slice of a longer array has offsets that begin after 0
    begin = strings.offset * kind.itemsize
    offsets = np.frombuffer(offsets_buffer, kind, len(strings) + 1, begin)
    if text_buffer is None:
        text = np.zeros(0, np.uint8)
    else:
        text = np.frombuffer(text_buffer, np.uint8)
    return offsets - offsets[0], text[offsets[0] : offsets[-1]].copy()


def unpack_strings(offsets: np.ndarray, text: np.ndarray) -> Any:
    """Return the strings of ``pack_strings`` as an array of pyarrow.

    String i is ``text[offsets[i]:offsets[i + 1]]``. The array shares the memory of both.
    """
    # The widths of offsets are what tells the two types of strings apart.
    if offsets.dtype == np.int64:
        kind = pyarrow.LargeStringArray
    else:
        kind = pyarrow.StringArray
    return kind.from_buffers(offsets.size - 1, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text))


def in_one_integer_type(ends: dict[str, Array]) -> list[Array]:
    """Return columns of ids in one integer type, in the order of ``ends``, which maps the name of
    each for errors to its array.

    NumPy's promotion would convert int64 and uint64 to float64. EdgeListError: a column holds no
    integers, or no type holds all.
    """
    for name, column in ends.items():
        if column.dtype.kind not in "iu":
            raise EdgeListError(
                f"{name}: vertex ids must be integers, not {column.dtype}", column=name
            )
    columns = list(ends.values())
    kind = np.result_type(*columns)
    if kind.kind == "f":
        # int64 beside uint64: int64, unless a number is so large that only uint64 holds it.
        kind = np.dtype(np.int64)
        occupied = [extent(column) for column in columns if column.size]
        if max((int(high) for _, high in occupied), default=0) > np.iinfo(np.int64).max:
            if min(int(low) for low, _ in occupied) < 0:
                raise EdgeListError(
                    "vertex ids mix negative numbers with numbers of 2^63 and "
                    "above; no integer type holds both"
                )
            kind = np.dtype(np.uint64)
    return [column.astype(kind, copy=False) for column in columns]


def ends_of_one_type(name: str, ends: dict[str, Any]) -> list[Any]:
    """Return two columns of ids as arrays of one integer type, or as two lists of strings.

    ``ends`` maps the names of both columns to what the user gave, in the order of the result.
    ``name`` is what errors call the table that has them. InputError: their lengths differ, or one
    holds integers and the other strings.
    """
    columns = [arguments.ids(column_name, column) for column_name, column in ends.items()]
    first, second = ends
    arguments.size(f"{name}, column {second!r}", columns[1], len(columns[0]), f"one per {first!r}")
    # The types of all ids: a list may have any, an array has integers alone.
    kinds: set[type] = set()
    for column in columns:
        kinds |= set(map(type, column)) if isinstance(column, list) else {int}
    if kinds == {str}:
        return [list(column) for column in columns]
    if not kinds <= {int}:
        raise InputError(
            f"{name}: the columns {first!r} and {second!r} must both hold integers, or both strings"
        )
    # an empty list would be an array of floats
    arrays = [np.asarray(column) if len(column) else np.zeros(0, np.int64) for column in columns]
    return in_one_integer_type(dict(zip(ends, arrays, strict=True)))


# In place of the option that has limited the vertices: the graph is the network of an assignment,
# which has the ends of links alone.
ENDS_OF_LINKS = "links"
NODES = "nodes"  # of a graph of another library, or of OpenStreetMap


class VertexIds:
    """A dictionary of ids and vertex numbers.

    ``array`` is ``Graph.ids``: integers or pyarrow strings, ascending, each once, but that of a
    closed vertex twice. ``closed`` is ``Graph.closed``, None without closed vertices. For errors,
    ``limited_by`` is the option that left vertices out.
    """

    def __init__(self, array: Any, closed: np.ndarray | None = None, limited_by: str = "") -> None:
        self._limited_by = limited_by  # a ``BuildReport``'s, or ``ENDS_OF_LINKS``
        self.all = array  # (n_vertices,): the id of each vertex number
        self.array = array  # (n_ids,): each id once, ascending
        self.are_strings = not hasattr(array, "dtype")  # arrays of pyarrow have none
        # int64 (n_ids,): the vertex number of each id of ``array``, of a closed vertex that where
        # paths begin. None: no vertex is closed, and the number is the position.
        self._numbers: np.ndarray | None = None
        if closed is not None:
            is_once = np.ones(len(array), bool)
            is_once[closed[1]] = False  # numbers where paths end
            self._numbers = np.flatnonzero(is_once)
            self.array = self._take(self._numbers)

    def _take(self, numbers: Array) -> Any:
        """Return the ids at some vertex numbers, of either device."""
        if self.are_strings:
            return self.all.take(pyarrow.array(to_host(numbers)))
        return self.all[namespace(self.all).asarray(numbers)]

    @property
    def kind(self) -> str:
        """``"string"``, or the name of the integer type, such as ``"int64"``."""
        if self.are_strings:
            return "string"
        return self.array.dtype.name

    @cached_property
    def _on_host(self) -> np.ndarray:
        """The integer ids, each once, in host memory."""
        return to_host(self.array)

    def contains(self, name: str | int) -> bool:
        """Return whether the id ``name`` is one of these. It must have the type of the ids."""
        return bool(self._look_up([name])[0] >= 0)

    def find(self, labels: Any) -> np.ndarray:
        """Translate labels, such as those of a data frame's index, to vertex numbers, int64.

        A label that is no id has ``NO_NUMBER``: it is of another type, or not in the graph.
        """
        try:
            requested = arguments.ids("labels", labels)
        except UnknownVertexError:  # labels that can be no ids, such as floats
            return np.full(len(labels), NO_NUMBER)
        # An array holds integers alone, a list may hold anything.
        if not isinstance(requested, list):
            if self.are_strings:
                return np.full(len(requested), NO_NUMBER)
            return self._look_up(requested)
        expected = str if self.are_strings else int
        are_ids = np.array(
            [isinstance(i, expected) and not isinstance(i, bool) for i in requested], bool
        )
        numbers = np.full(len(requested), NO_NUMBER)
        numbers[are_ids] = self._look_up(
            [label for label, is_id in zip(requested, are_ids, strict=True) if is_id]
        )
        return numbers

    def _look_up(self, requested: Any) -> np.ndarray:
        """Return the vertex number of each of some ids, int64, or -1 if it is not in the graph.

        ``requested`` is a list or an array of ids that all have the type of the graph's ids.
        """
        if self.are_strings:
            places = self._string_numbers(requested)
        else:
            places = self._integer_numbers(requested)
        if self._numbers is None or not self._numbers.size:
            return places
        return np.where(places < 0, places, self._numbers[places])

    def to_numbers(self, ids: Any, role: str) -> np.ndarray:
        """Translate ids to vertex numbers, an int64 array in the order of ``ids``; of a closed
        vertex the number where paths begin.

        ``role`` is what errors call one of the ids, such as "source". UnknownVertexError: an id is
        of another type than those of the graph, or not in the graph.
        """
        # a list, or an array of integers
        requested = arguments.ids(plural(arguments.text("role", role)), ids)

        # All must have the type of the graph's ids. An array holds integers alone, so for a graph
        # with strings its first element is already wrong.
        wrong: list[Any] = []
        if isinstance(requested, list):
            expected = str if self.are_strings else int
            wrong = [i for i in requested if not isinstance(i, expected) or isinstance(i, bool)]
        elif self.are_strings:
            wrong = requested[:1].tolist()
        if wrong:
            kind = "strings" if self.are_strings else "integers"
            raise UnknownVertexError(
                f"{role} {arguments.describe(wrong[0])} is not a vertex: "
                f"the ids of this graph are {kind}"
            )

        # All must be in the graph.
        numbers = self._look_up(requested)
        missing = arguments.plain_list(requested[i] for i in np.flatnonzero(numbers < 0))
        if missing:
            shown = ", ".join(map(arguments.describe, missing[:10]))
            if len(missing) > 10:
                shown += ", ..."
            raise UnknownVertexError(
                f"{several(len(missing), role)} {'are' if len(missing) > 1 else 'is'} not in the graph: {shown}. "
                f"{self._nearest_ids(missing[:_EXPLAINED])}{self._advice()}"
            )
        return numbers

    def _advice(self) -> str:
        """Return the sentence of an error that says which ids the graph has, by the option that has
        limited its vertices.
        """
        if self._limited_by == "largest_component":
            option = option_text("largest_component")
            return (
                f"By {option} the graph has the largest component alone; leave out all other ids."
            )
        if self._limited_by == ENDS_OF_LINKS:
            return "Take ids that are ends of links."
        if self._limited_by == NODES:
            return "Take ids of nodes of what the graph was made from."
        if self._limited_by:
            option = option_text(self._limited_by)
            return f"The graph has the vertices of {option} alone; leave out all other ids."
        return (
            "Take ids that occur in the edge list, or add vertices without an edge by "
            f"{option_text('vertices')}."
        )

    def _nearest_ids(self, missing: list[Any]) -> str:
        """Return a sentence for each of some unknown ids that names the nearest ids of the graph:
        neighboring integers or similar strings. Each ends with a blank.
        """
        sentences = []
        for unknown in dict.fromkeys(missing):
            if self.are_strings:
                ids: list[Any] = self._similar_names(unknown)
            else:
                ids = self._neighboring_ids(unknown)
            if ids:
                verb = "are" if len(ids) > 1 else "is"
                names = " and ".join(map(arguments.describe, ids))
                sentences.append(f"Near {arguments.describe(unknown)} {verb} {names}. ")
        return "".join(sentences)

    def _neighboring_ids(self, unknown: int) -> list[int]:
        """Return the ids of the graph next below and above an integer that is none of them; at an
        end of the ids only one.
        """
        ids = self._on_host
        # The number nearest to ``unknown`` that the type of the ids holds: ``unknown`` itself, or
        # the end of the range that it lies beyond.
        limits = np.iinfo(ids.dtype)
        nearest = np.array(min(max(unknown, limits.min), limits.max), ids.dtype)
        place = int(np.searchsorted(ids, nearest))
        return [ids[i].item() for i in (place - 1, place) if 0 <= i < ids.size]

    def _similar_names(self, unknown: str) -> list[str]:
        """Return up to two ids of the graph that are similar to a name that is none of them.

        Of many ids, those are compared that sort near the name, or near what differs from it only
        in case or blanks.
        """

        # Names that are compared: all, or a window around the place of each spelling.
        if len(self.array) <= _COMPARED_NAMES:
            names = self.array.to_pylist()
        else:
            bare = unknown.strip()
            spellings = {unknown, bare, bare.lower(), bare.upper(), bare.title(), bare.capitalize()}
            # half a window, so that all windows together have _COMPARED_NAMES names
            width = _COMPARED_NAMES // (2 * len(spellings))
            names = []
            for name in spellings:
                begin = max(0, self._place_of_name(name) - width)
                names += self.array.slice(begin, 2 * width).to_pylist()
        # The time to compare two names grows with the square of their length.
        folded = {name.casefold().strip(): name for name in names if len(name) <= _COMPARED_LENGTH}
        alike = difflib.get_close_matches(unknown.casefold().strip()[:_COMPARED_LENGTH], folded, 2)
        return [folded[name] for name in alike]

    def _integer_numbers(self, requested: list[int] | np.ndarray) -> np.ndarray:
        """Return the position in ``array`` of each of some integers, int64, or -1 if it is no id.

        ``requested`` is a list of integers of Python, which may have any size, or an integer array.
        """
        ids = self._on_host

        # ``in_range``: the integers in the type of the ids, so that they are compared without
        # rounding. 0 stands for an integer that the type does not hold, where ``fits`` is False.
        least = int(np.iinfo(ids.dtype).min)
        most = int(np.iinfo(ids.dtype).max)
        if isinstance(requested, list):
            fits = np.array([least <= i <= most for i in requested], bool)
            in_range = np.array(
                [i if fit else 0 for i, fit in zip(requested, fits, strict=True)], ids.dtype
            )
        else:
            fits = (requested >= least) & (requested <= most)
            in_range = np.where(fits, requested, 0).astype(ids.dtype)

        last = max(ids.size - 1, 0)  # the largest position; 0 also without ids
        has_gaps = not ids.size or int(ids[-1]) - int(ids[0]) > last
        # Without gaps a position is the difference to the first id. One that wraps around belongs
        # to no id, which the comparison below finds.
        if has_gaps:
            places = np.searchsorted(ids, in_range)
        else:
            places = in_range.astype(np.int64) - ids[:1].astype(np.int64)
        places = np.clip(places, 0, last)
        if ids.size:
            is_known = fits & (ids[places] == in_range)
        else:
            is_known = np.zeros(len(requested), bool)
        return np.where(is_known, places, -1).astype(np.int64)

    def _string_numbers(self, requested: Any) -> np.ndarray:
        """Return the position in ``array`` of each of some strings, int64, or -1 if it is no id.

        Few are found by binary search, many by a hash table of all ids.
        """
        # All are encoded at once, which fails if one of them is no valid Unicode. Then only the
        # valid ones are looked up, and the rest keeps -1.
        try:
            "".join(requested).encode()
        except UnicodeEncodeError:  # a lone surrogate, which no text file can contain
            are_texts = np.array([arguments.is_encodable(name) for name in requested])
            numbers = np.full(len(requested), -1)
            numbers[are_texts] = self._string_numbers(
                [name for name, is_text in zip(requested, are_texts, strict=True) if is_text]
            )
            return numbers
        if len(requested) > _FEW_NAMES:
            # UTF-8 cannot encode a lone surrogate, so no id contains one.
            known = [
                name if name.isascii() or arguments.is_encodable(name) else None
                for name in requested
            ]
            places = compute.index_in(pyarrow.array(known, self.array.type), value_set=self.array)
            return np.asarray(places.fill_null(-1)).astype(np.int64)

        def find(name: str) -> int:
            """Return the position of a name in ``array``, or -1."""
            place = self._place_of_name(name)
            if place < len(self.array) and self.array[place].as_py() == name:
                return place
            return -1

        return np.array([find(name) for name in requested], np.int64)

    def _place_of_name(self, name: str) -> int:
        """Return where a name is among the ids, or would be, by their UTF-8 bytes. A character that
        UTF-8 cannot encode counts as "?".
        """
        return bisect.bisect_left(
            self.array, name.encode(errors="replace"), key=lambda scalar: scalar.as_py().encode()
        )

    def at(self, numbers: Array) -> Any:
        """Translate vertex numbers to ids: an integer array, or an array of pyarrow strings.

        UnknownVertexError for numbers that are none; those in GPU memory are not checked.
        """
        if get_device(numbers) == "cpu":
            numbers = arguments.vertex_numbers(numbers, len(self.all))
        return self._take(numbers)

    def hash_strings(self, digest: Any) -> None:
        """Update ``digest``, an object of hashlib, with the ids, which are strings.

        The lengths of some ids come before their bytes, so that the boundaries are unambiguous.
        """
        for begin in range(0, len(self.all), _HASHED_AT_ONCE):
            piece = self.all.slice(begin, _HASHED_AT_ONCE)
            digest.update(np.asarray(compute.binary_length(piece)).astype(np.int64).data)
            digest.update("".join(piece.to_pylist()).encode())
