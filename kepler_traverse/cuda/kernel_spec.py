"""Entry points of kernel files as the host sees them: which file, which block, which arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

WARP = 32

# Types that a kernel file leaves open, with the C++ names that the compiler is given for each
# choice.
C_NAMES = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}
OPEN_TYPES = ("vertex_t", "offset_t", "weight_t")

# Types of struct fields whose C++ names differ from NumPy's.
_NUMPY_NAMES = {"short": "int16", "signed char": "int8", "float": "float32", "double": "float64"}
# A declaration of one value or pointer: its type, whether it is a pointer, and its name. It
# matches, for example, ``int32 level``, ``signed char* hops`` and
# ``const kt::LoopState* __restrict__ states``.
_VALUE = (
    r"(?:const )?(?:kt::)?(?P<type>\w+(?: \w+)?)(?P<pointer>\*?) (?:__restrict__ )?(?P<name>\w+)"
)
_PARAMETER = re.compile(_VALUE)
# One field per line. KT_NULLABLE: the pointer may be null.
_FIELD = re.compile(f"(?P<nullable>KT_NULLABLE )?{_VALUE};")
# A kernel that takes a struct has it as its only parameter: ``const ScanArgs args``, or with the
# type that a template stands for ``const RelaxArgs<weight_t> args``.
_STRUCT = re.compile(r"const (?P<text>(?P<name>\w+)(?:<(?P<type>[^>]*)>)?) args")


@dataclass(frozen=True)
class Argument:
    """One argument of an entry point."""

    name: str  # of the parameter, or of the field of the argument struct
    # a NumPy type name; one of ``OPEN_TYPES``; or ``ordered_t``, the integers of the width of
    # ``weight_t``
    kind: str
    is_array: bool  # whether it is a pointer to an array, and not a number
    is_optional: bool  # an array that may be None, for which the kernel gets a null pointer

    def dtype(self, types: dict[str, np.dtype]) -> np.dtype:
        """Return the type of this argument, of an array that of its elements, where ``types`` has
        the types that stand for the open ones, by name.
        """
        if self.kind == "ordered_t":
            return np.dtype(f"i{types['weight_t'].itemsize}")
        if self.kind in OPEN_TYPES:
            return types[self.kind]
        return np.dtype(self.kind)


@dataclass(frozen=True, eq=False)  # one object per entry point, compared and hashed by identity
class Entry:
    """A kernel of a file (``extern "C"``), as the host sees it: what a launch and a compilation
    need to know of it.

    Its arguments are read from the file when they are looked at first, so that importing a module
    reads no kernel file.
    """

    name: str  # of the C function
    file: Path  # the kernel file, which may have other entry points
    block: int  # threads of a block, compiled in as ``BLOCK``
    optional: str = ""  # names of parameters that may be None; fields of structs say so themselves
    item_threads: int = 1  # threads that share one work item: 1, or 32 where a warp does
    # whether it launches kernels itself, and is therefore compiled with relocatable code
    launches_children: bool = False
    # whether it has barriers of the grid, which must then be resident at once
    is_cooperative: bool = False
    # (name, value) of compile-time constants, macros for the compiler; ``variant`` changes values
    constants: tuple[tuple[str, int], ...] = ()

    @functools.cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments in the order of the kernel's parameters, or of the fields of
        ``argument_struct``.

        Raises
        ------
        ValueError
            The file has no such kernel or struct, or declares an argument in a way that the host
            cannot read.
        """
        return _read_kernel(self.file, self.name, self.optional)[1]

    @functools.cached_property
    def argument_struct(self) -> str:
        """The C++ type of the struct that the kernel takes by value as its only parameter; empty if
        it takes none.
        """
        return _read_kernel(self.file, self.name, self.optional)[0]

    def layout(self, types: dict[str, np.dtype]) -> np.dtype | None:
        """Return the struct that the kernel takes as a structured dtype of the C layout; None if
        the kernel takes its arguments one by one. ``types`` has the types that stand for the open
        ones.
        """
        if not self.argument_struct:
            return None
        fields = []
        for argument in self.arguments:
            dtype = argument.dtype(types)
            if argument.is_array:
                dtype = np.dtype(np.uint64)  # an address
            fields.append((argument.name, dtype))
        return np.dtype(fields, align=True)

    def variant(
        self, *, block: int | None = None, launches_children: bool = False, **constants: int
    ) -> Entry:
        """Return the same kernel with other values of compile-time constants, or another number of
        threads per block.

        Constants that are not given keep their values, and so does ``block``. Not so
        ``launches_children``: without the argument it is False. TypeError: the kernel has no such
        constant.
        """
        known = dict(self.constants)
        unknown = constants.keys() - known.keys()
        if unknown:
            raise TypeError(f"{self.name} has no constant {sorted(unknown)[0]}")
        chosen = tuple((known | constants).items())
        return replace(
            self, block=block or self.block, launches_children=launches_children, constants=chosen
        )


def make_entries(file: Path, block: int, **shared: Any) -> Callable[..., Entry]:
    """Return a function ``entry(name, **attributes)`` that makes an ``Entry`` of a kernel of this
    file. ``block`` and the ``shared`` attributes are those of all, unless a call gives others.
    """
    return functools.partial(Entry, **{"file": file, "block": block, **shared})


@functools.cache
def _read_kernel(file: Path, name: str, optional: str) -> tuple[str, tuple[Argument, ...]]:
    """Read from its file what a kernel takes. Return the C++ type of its argument struct and the
    fields of the struct, or an empty string and the kernel's parameters.

    ``optional`` has the names of parameters that may be None, separated by spaces. ValueError: the
    file has no such kernel, or declares something that the host cannot read.
    """
    text = file.read_text(encoding="utf-8")
    # The text between the parentheses after the kernel's name, in a line such as
    # extern "C" ... void ... NAME(const Args args) {
    kernel = re.search(rf'^extern "C" [^{{;]*?\b{name}\(([^)]*)\)', text, re.MULTILINE)
    if kernel is None:
        raise ValueError(f"{file.name} has no kernel {name}")
    parameters = re.sub(r"\s+", " ", kernel[1])

    # A struct may be a template, whose type the kernel names.
    if struct := _STRUCT.fullmatch(parameters):
        types = {}
        if template := re.search(rf"template <typename (\w+)>\nstruct {struct['name']} ", text):
            types[template[1]] = _classify(struct["type"], False, {})
        return struct["text"], tuple(_list_fields(file, text, struct["name"], types))

    # Parameters one by one. These do not say themselves which of them may be None.
    where = f"{file.name}: not a parameter of {name}"
    optional_names = set(optional.split())
    arguments = []
    for parameter in parameters.split(", ") if parameters else ():
        argument = _read_argument(_PARAMETER, parameter, where, {})
        arguments.append(replace(argument, is_optional=argument.name in optional_names))
    if unknown := optional_names - {each.name for each in arguments if each.is_array}:
        raise ValueError(f"{file.name}: {name} has no pointer {min(unknown)}")
    return "", tuple(arguments)


@functools.cache
def struct_layout(file: Path, struct: str) -> np.dtype:
    """Return the C layout of a struct that a kernel writes and the host reads or allocates, as a
    structured dtype.

    Its fields are numbers, one per line. Member functions may follow them.

    Raises
    ------
    ValueError
        The file has no such struct, or a line before the first member function declares anything
        but one number.
    """
    text = file.read_text(encoding="utf-8")
    fields = list(_list_fields(file, text, struct, {}, has_functions=True))
    if any(field.is_array for field in fields):
        raise ValueError(f"{file.name}: {struct} has a pointer")
    return np.dtype([(field.name, np.dtype(field.kind)) for field in fields], align=True)


def _list_fields(
    file: Path, text: str, struct: str, types: dict[str, str], has_functions: bool = False
) -> Iterator[Argument]:
    """Yield the fields of a struct that a kernel file declares, one per line, in their order.

    ``text`` is that of the file. ``types`` has the type that a parameter of the struct's template
    stands for, by the name of the parameter. With ``has_functions`` member functions may follow the
    fields, and end them. ValueError: there is no such struct, or a line is no field.
    """
    # the lines from ``struct NAME {`` to ``};``, which both begin at the margin
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    if body is None:
        raise ValueError(f"{file.name} has no struct {struct}")
    for line in re.sub(r"//.*", "", body[1]).splitlines():
        if has_functions and "(" in line:
            return
        if not line.strip():
            continue
        yield _read_argument(_FIELD, line.strip(), f"{file.name}: not a field of {struct}", types)


def _read_argument(
    pattern: re.Pattern[str], text: str, where: str, types: dict[str, str]
) -> Argument:
    """Return the argument that a piece of C++ declares, ``text``.

    ``pattern`` matches parameters, or fields of structs. ``types`` has the type that a parameter of
    the struct's template stands for, by its name. For a text that declares no argument raise a
    ValueError that begins with ``where``.
    """
    value = pattern.fullmatch(text)
    kind = _classify(value["type"], bool(value["pointer"]), types) if value else ""
    if value is None or kind not in (*OPEN_TYPES, "ordered_t", *np.sctypeDict):
        raise ValueError(f"{where} that the host can read: {text}")
    is_nullable = bool(value.groupdict().get("nullable"))
    return Argument(value["name"], kind, bool(value["pointer"]), is_nullable)


def _classify(name: str, is_pointer: bool, types: dict[str, str]) -> str:
    """Return the kind of an argument whose C++ type is ``name``: the name of a NumPy type, or an
    open type.

    ``types`` has what parameters of a template stand for. A pointer to structs is "int64", as the
    host allocates structs as 64-bit words.
    """
    # structs alone have names that begin with a capital letter
    if is_pointer and name[0].isupper():
        return "int64"
    return types.get(name, _NUMPY_NAMES.get(name, name))


def chosen_types(vertex_t: DTypeLike, weight_t: DTypeLike = np.float32) -> dict[str, np.dtype]:
    """Return the types that stand for those which kernel files leave open, by name.

    ``vertex_t`` is the type of vertex numbers, and ``weight_t`` that of weights, which does not
    matter to kernels that touch no weight. Offsets are int64.
    """
    return {
        "vertex_t": np.dtype(vertex_t),
        "offset_t": np.dtype(np.int64),
        "weight_t": np.dtype(weight_t),
    }
