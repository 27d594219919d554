"""``njit`` for this library: functions that end as they should, whenever a signal comes.

Python runs the handler of a signal, which raises KeyboardInterrupt after Ctrl-C, before the next
bytecode of the main thread. Numba expects no exception in two places where it runs bytecode:

- The code that returns an array asks a Python function for the class of arrays. It does not look
  whether that has raised an error, so the array, or the tuple that holds it, is no object. Here the
  class is a constant of the compiled function.
- Functions that LLVM calls back while it compiles cannot raise an error, and it is lost. Modules
  that Numba imports at its first compilation register types, and half of them would be missing.
  Here another thread compiles than the main thread.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from .. import _uninterrupted
from . import compile_clock


def njit(*function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function at its first call as ``numba.njit`` does, where no signal interrupts it.

    Use it as a decorator, with or without options of ``numba.njit``. Signatures are not taken.
    """
    if not function:
        return lambda decorated: njit(decorated, **options)
    compiled = numba.njit(*function, **options)
    if hasattr(compiled, "_compile_for_args"):  # with NUMBA_DISABLE_JIT it is the function itself
        compiled._compile_for_args = _uninterrupted_compiler(compiled._compile_for_args)
    return compiled


def is_compiled(function: Any) -> bool:
    """Return whether a function decorated by ``njit`` has been compiled for some types: by this
    process, or by another one that has kept the code on this machine.

    The code of an older version of the function counts, too. Use it for estimates.
    """
    if not isinstance(function, Dispatcher):  # with NUMBA_DISABLE_JIT nothing is compiled
        return True
    if function.signatures:
        return True
    folder = function.stats.cache_path
    if folder is None:  # code is not kept
        return False
    plain = function.py_func
    return any(Path(folder).glob(f"{Path(inspect.getfile(plain)).stem}.{plain.__qualname__}-*.nbi"))


def _uninterrupted_compiler(compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that stands for ``compile_for``, which Numba calls, with the arguments of a
    call, to compile a function for their types or to load it from its cache.

    If the main thread calls it, another thread compiles, and the main thread waits for the other.
    Any other thread compiles by itself, since signals come to the main thread alone.
    """

    def compile_all(*args: Any) -> Any:
        """Compile for the types of ``args``; before the first compilation, change how arrays are
        returned.
        """
        _keep_the_class_of_arrays()
        return compile_for(*args)

    def compile_uninterrupted(*args: Any) -> Any:
        """Compile where no signal comes, and count the time as compiling of this thread."""
        with compile_clock.waiting():
            return _uninterrupted.run(compile_all, *args)

    return compile_uninterrupted


@cache
def _keep_the_class_of_arrays() -> None:
    """Have Numba take the class of the arrays that a function returns from the constants of the
    function, rather than from a call of Python that a signal may interrupt.

    It replaces a part of Numba once per process, hence the cache.
    """
    from numba.core import boxing, types
    from numba.core.pythonapi import _boxers

    # Numba's function that boxes an array, makes an object of Python of it, serializes the class of
    # arrays and unserializes it in the compiled function. A constant takes the place of both.
    def box_array(kind: Any, value: Any, place: Any) -> Any:
        """Generate the code that boxes ``value``, an array of the Numba type ``kind``; ``place`` is
        Numba's context of boxing.
        """
        array_class = place.env_manager.add_const(kind.box_type)
        api = copy.copy(place.pyapi)
        api.serialize_object = lambda _: None
        api.unserialize = lambda _: place.env_manager.read_const(array_class)
        return boxing.box_array(kind, value, place._replace(pyapi=api))

    _boxers.functions[types.Array] = box_array
