"""Thrift's compact protocol, as far as the footer of a Parquet file needs it: bytes to lists and
dicts, and back.

A struct is a dict from field number to ``(type, value)``, in the order of the fields, so that
unknown fields survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

# the numbers of the types; a boolean field has its value in its type
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_MAX_SHIFT = 63  # bits below the last 7 that an integer of 64 bits may have
_UNEXPECTED = "type {} is not expected in a Parquet footer"

# A struct: by the number of each field its type and its value. Values of ``BINARY`` and ``DOUBLE``
# are bytes, values of ``LIST`` and ``SET`` are ``Items``, and values of ``STRUCT`` are such dicts.
Struct = dict[int, tuple[int, Any]]


class Items(NamedTuple):
    """A list or set of items of one type."""

    kind: int  # the type of the items: ``BYTE`` to ``STRUCT``
    values: list[Any]  # the items, as ``Reader.item`` returns them


class Reader:
    """Reads values one after another from bytes, from position ``at`` on.

    All methods raise IndexError where the bytes end within a value, and ValueError for a type that
    Parquet footers do not use. Only a text that is cut short is returned as it is: reading on, if
    only to the end of its struct, then raises IndexError.
    """

    def __init__(self, data: bytes, at: int = 0):
        self._data = data
        self.at = at  # position of the next byte

    def struct(self) -> Struct:
        """Read a struct.

        Raises ValueError (it holds a type that Parquet footers do not use) or IndexError (the bytes
        end within it).
        """
        return {number: (kind, self.value(kind)) for number, kind in self.fields()}

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct. The caller reads or skips the value of a
        field before it takes the next one.
        """
        number = 0
        # The upper half of a byte is the step from the number before, or 0 where the number stands
        # by itself. The lower half is the type. A byte of 0 ends the struct.
        while head := self._byte():
            step = head >> 4
            if step:
                number += step
            else:
                number = self._zigzag()
            yield number, head & 15

    def value(self, kind: int) -> Any:
        """Return the value of a field of the type ``kind``: True or False for a boolean, whose
        value is in its type, so that nothing is read; else what ``item`` returns.
        """
        if kind in (TRUE, FALSE):
            return kind == TRUE
        return self.item(kind)

    def skip(self, kind: int) -> None:
        """Pass over the value of a field of the type ``kind``."""
        if kind not in (TRUE, FALSE):
            self.at = _skip(self._data, self.at, kind)

    def items(self) -> tuple[int, int]:
        """Read the head of a list or set; return the type of its items, and how many there are."""
        head = self._byte()  # the upper half is the size, the lower half the type
        size = head >> 4
        if size == 15:  # the size stands by itself
            size = self._varint()
        return head & 15, size

    def structs(self) -> Iterator[int]:
        """Read the head of a list of structs, and yield ``STRUCT`` for each of them. The caller
        reads or skips a struct before it takes the next one.
        """
        kind, size = self.items()
        if size and kind != STRUCT:
            raise ValueError(f"a list holds type {kind}, and not structs")
        for _ in range(size):
            yield kind

    def item(self, kind: int) -> Any:
        """Read an item of a list, or the value of a field that is no boolean, of the type ``kind``.

        Return an int for integers, bytes and booleans; bytes for ``BINARY`` and ``DOUBLE``; a
        ``Struct``; or ``Items`` for a list or set.
        """
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == BINARY:
            size = self._varint()
            self.at += size  # behind the end of the bytes if the text is cut short
            return self._data[self.at - size : self.at]
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            kind, size = self.items()
            return Items(kind, [self.item(kind) for _ in range(size)])
        if kind in (TRUE, FALSE, BYTE):  # booleans in lists are bytes
            return self._byte()
        if kind == DOUBLE:
            self.at += 8
            # A slice behind the end is empty and no error. This raises IndexError there, so that a
            # damaged list of many ends.
            self._data[self.at - 1]
            return self._data[self.at - 8 : self.at]
        raise ValueError(_UNEXPECTED.format(kind))

    def _byte(self) -> int:
        """Read one byte."""
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        """Read an integer of 0 or more: 7 bits per byte, the lowest first; a byte below 128 is the
        last.
        """
        value = 0
        shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > _MAX_SHIFT:
                raise ValueError("a number has more than 64 bits")

    def _zigzag(self) -> int:
        """Read an integer of any sign: 0, -1, 1, -2, ... are written as 0, 1, 2, 3, ..."""
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _skip(data: bytes, at: int, kind: int) -> int:
    """Return the position behind the value of the type ``kind`` at a position of ``data``.

    No objects are made of the value, as wide tables have many columns that are not read.
    """
    if kind in _INTEGERS:
        while data[at] > 127:  # all bytes of a number but the last
            at += 1
        return at + 1
    if kind == STRUCT:
        while head := data[at]:  # see ``Reader.fields``
            at += 1
            if head < 16:  # the number of the field stands by itself
                at = _skip(data, at, I16)
            if head & 15 > FALSE:  # TRUE is 1 and FALSE 2: a boolean has no value but its type
                at = _skip(data, at, head & 15)
        return at + 1
    reader = Reader(data, at)
    if kind in (LIST, SET):
        kind, size = reader.items()
        at = reader.at
        for _ in range(size):
            at = _skip(data, at, kind)
        return at
    reader.item(kind)
    return reader.at


def encoded(fields: Struct) -> bytes:
    """Return the bytes of a struct that ``Reader`` reads."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def _put_struct(out: bytearray, fields: Struct) -> None:
    """Append the bytes of a struct to ``out``; the methods of ``Reader`` say how each thing is
    written.
    """
    last = 0  # the number of the field that was written before this one
    for number, (kind, value) in fields.items():
        if kind in (TRUE, FALSE):
            written = TRUE if value else FALSE
        else:
            written = kind
        step = number - last
        if 0 < step < 16:  # fits into half a byte; else the number stands by itself
            out.append(step << 4 | written)
        else:
            out.append(written)
            _put_zigzag(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    """Append the bytes of ``value`` to ``out``: the value of a field, or an item of a list, of the
    type ``kind``, as ``Reader.item`` returns it. A boolean is an item of a list here, since a field
    has it in its type.
    """
    if kind in _INTEGERS:
        _put_zigzag(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        size = len(value.values)
        out.append(min(size, 15) << 4 | value.kind)  # 15: the size stands by itself
        if size >= 15:
            _put_varint(out, size)
        for item in value.values:
            _put(out, value.kind, item)
    elif kind == DOUBLE:
        out += value
    else:  # a byte, or a boolean in a list
        out.append(value)


def _put_varint(out: bytearray, value: int) -> None:
    """Append an integer of 0 or more to ``out``, 7 bits per byte, as ``Reader`` reads it."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_zigzag(out: bytearray, value: int) -> None:
    """Append an integer of any sign to ``out``: 0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
    if value >= 0:
        _put_varint(out, value << 1)
    else:
        _put_varint(out, (-value << 1) - 1)
