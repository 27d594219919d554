"""The only package that imports CuPy. It imports on every machine; ``require`` says what is missing where it cannot run."""

from __future__ import annotations

from ..errors import DeviceError

try:
    import cupy as cp
except ImportError:  # a machine without a GPU imports everything and runs on the CPU
    cp = None


def available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    if cp is None:
        return False
    try:
        return cp.cuda.runtime.getDeviceCount() > 0
    except cp.cuda.runtime.CUDARuntimeError:
        return False


def require() -> None:
    """Raise a DeviceError that says what is missing unless a GPU can be used."""
    if cp is None:
        raise DeviceError(
            "device 'cuda' needs CuPy, which is not installed: pip install 'kepler-traverse[cuda13]', or take device 'cpu'"
        )
    if not available():
        raise DeviceError("device 'cuda' was asked for, but no GPU answers on this machine; take device 'cpu'")


from . import csr, exact, figures  # noqa: E402  (need cp above)

__all__ = ["available", "cp", "csr", "exact", "figures", "require"]
