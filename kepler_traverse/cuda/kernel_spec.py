"""Entry points of kernel files as the host sees them: which file, which block, which arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

WARP = 32

# Types that a kernel file leaves open, with the C++ names that the compiler is given for each choice.
C_NAMES = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}
OPEN_TYPES = ("vertex_t", "offset_t", "weight_t")

# Types of struct fields whose C++ names differ from NumPy's.
_NUMPY_NAMES = {"short": "int16", "signed char": "int8", "float": "float32", "double": "float64"}
_C_TYPES = {"int8": "signed char", "int16": "short", "int32": "int"}
# One field per line. KT_NULLABLE: the pointer may be null.
_FIELD = re.compile(r"(?P<nullable>KT_NULLABLE )?(?:const )?(?:kt::)?(?P<type>\w+(?: \w+)?)(?P<pointer>\*?) (?P<name>\w+);")


@dataclass(frozen=True)
class Argument:
    """One argument of an entry point."""

    name: str
    kind: str  # a NumPy type name; one of ``OPEN_TYPES``; or ``ordered_t``, the integers of the width of ``weight_t``
    is_array: bool
    is_optional: bool  # an array that may be None, for which the kernel gets a null pointer

    def dtype(self, types: dict[str, np.dtype]) -> np.dtype:
        """The type of this argument once the open types are chosen."""
        if self.kind == "ordered_t":
            return np.dtype(f"i{types['weight_t'].itemsize}")
        return types[self.kind] if self.kind in OPEN_TYPES else np.dtype(self.kind)


@dataclass(frozen=True, eq=False)  # one object per entry point, compared and hashed by identity
class Entry:
    """An ``extern "C"`` kernel: its source file, the threads of a block and of a work item, its arguments."""

    name: str
    file: Path
    block: int  # threads of a block, compiled in as ``BLOCK``
    arguments: Sequence[Argument]  # in the order of the kernel's parameters, or of the fields of ``argument_struct``
    item_threads: int = 1  # threads that share one work item: 1, or 32 where a warp does
    launches_children: bool = False  # whether it launches kernels itself, and is therefore compiled with relocatable code
    is_cooperative: bool = False  # whether it has barriers of the grid, which must then be resident at once
    constants: tuple[tuple[str, int], ...] = ()  # compile-time constants, with the values that ``variant`` may replace
    # The C++ type of the struct that the kernel takes by value as its only parameter, by default that of
    # ``struct_arguments``; empty if the kernel takes ``arguments`` one by one.
    argument_struct: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.arguments, StructArguments) and not self.argument_struct:
            object.__setattr__(self, "argument_struct", self.arguments.struct_type)

    def layout(self, types: dict[str, np.dtype]) -> np.dtype | None:
        """The argument struct as a structured dtype of the C layout; None if the kernel takes its arguments one by one."""
        if not self.argument_struct:
            return None
        fields = [(a.name, np.dtype(np.uint64) if a.is_array else a.dtype(types)) for a in self.arguments]
        return np.dtype(fields, align=True)

    def variant(self, *, block: int | None = None, launches_children: bool = False, **constants: int) -> Entry:
        """Return the same kernel compiled with other constants, or for another block."""
        known = dict(self.constants)
        unknown = constants.keys() - known.keys()
        if unknown:
            raise TypeError(f"{self.name} has no constant {sorted(unknown)[0]}")
        chosen = tuple((known | constants).items())
        return replace(self, block=block or self.block, launches_children=launches_children, constants=chosen)


def make_entries(file: Path, block: int, **shared: Any) -> Callable[..., Entry]:
    """Return ``entry(name, declared)`` and ``entry(name, struct=...)``, which describe one of a file's kernels.

    ``arguments`` reads what is declared. ``shared``, and further keywords of ``entry``, are attributes of the entries.
    """

    def entry(name: str, declared: str = "", struct: str = "", **more: Any) -> Entry:
        fields = struct_arguments(file, struct) if struct else arguments(declared)
        return Entry(name, file, **({"block": block, "arguments": fields} | shared | more))

    return entry


def arguments(*declared: str) -> tuple[Argument, ...]:
    """Read declarations: ``"int64 n_edges, vertex_t* targets, vertex_t*? parent"``, of which the last may be None."""
    parsed = []
    for text in filter(None, ", ".join(declared).split(", ")):
        kind, name = text.split()
        parsed.append(Argument(name, kind.rstrip("*?"), "*" in kind, kind.endswith("?")))
    return tuple(parsed)


class StructArguments(Sequence[Argument]):
    """The fields of an argument struct; ``struct_arguments`` describes them.

    The kernel file is read when the first field is looked at: importing a module reads no kernel file.

    Attributes
    ----------
    struct_type : str
        The C++ type of the struct.
    """

    def __init__(self, file: Path, struct: str, types: dict[str, str]):
        self._file, self._struct, self._types = file, struct, types
        parameters = ", ".join(_C_TYPES.get(name, name) for name in types.values())
        self.struct_type = f"{struct}<{parameters}>" if parameters else struct

    @functools.cached_property
    def _fields(self) -> tuple[Argument, ...]:
        return tuple(_list_fields(self._file, self._struct, self._types))

    def __iter__(self) -> Iterator[Argument]:
        return iter(self._fields)  # at each launch: several times as fast as one call per index

    def __getitem__(self, i: Any) -> Any:
        return self._fields[i]

    def __len__(self) -> int:
        return len(self._fields)


def struct_arguments(file: Path, struct: str, **types: str) -> StructArguments:
    """Take the fields of an argument struct from the kernel file, so that they are declared once.

    A pointer to a struct, whose name begins with a capital letter, is an int64 array that holds such structs.

    Parameters
    ----------
    **types : str
        NumPy names of the template parameters of the struct.

    Raises
    ------
    ValueError
        At the first use, if the file has no such struct, or a line of it declares anything but one field.
    """
    return StructArguments(file, struct, types)


@functools.cache
def struct_layout(file: Path, struct: str) -> np.dtype:
    """The C layout of a struct that a kernel writes and the host reads or allocates.

    Parameters
    ----------
    file : Path
        A kernel file or a header.
    struct : str
        Its fields are numbers, one per line. Member functions may follow them.

    Returns
    -------
    structured dtype

    Raises
    ------
    ValueError
        The file has no such struct, or a line before the first member function declares anything but one number.
    """
    fields = list(_list_fields(file, struct, {}, has_functions=True))
    if any(field.is_array for field in fields):
        raise ValueError(f"{file.name}: {struct} has a pointer")
    return np.dtype([(field.name, np.dtype(field.kind)) for field in fields], align=True)


def _list_fields(file: Path, struct: str, types: dict[str, str], has_functions: bool = False) -> Iterator[Argument]:
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if body is None:
        raise ValueError(f"{file.name} has no struct {struct}")
    for line in re.sub(r"//.*", "", body[1]).splitlines():
        if has_functions and "(" in line:
            return
        if not line.strip():
            continue
        field = _FIELD.fullmatch(line.strip())
        kind = field and _classify(field["type"], bool(field["pointer"]), types)
        if field is None or kind not in (*OPEN_TYPES, "ordered_t", *np.sctypeDict):
            raise ValueError(f"{file.name}: not a field of {struct} that the host can read: {line.strip()}")
        yield Argument(field["name"], kind, bool(field["pointer"]), bool(field["nullable"]))


def _classify(name: str, is_pointer: bool, types: dict[str, str]) -> str:
    if is_pointer and name[0].isupper():
        return "int64"
    return types.get(name, _NUMPY_NAMES.get(name, name))


def chosen_types(vertex_t: DTypeLike, weight_t: DTypeLike = np.float32) -> dict[str, np.dtype]:
    """The open types for a graph; ``weight_t`` does not matter to kernels that touch no weight."""
    return {"vertex_t": np.dtype(vertex_t), "offset_t": np.dtype(np.int64), "weight_t": np.dtype(weight_t)}
