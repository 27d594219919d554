"""Draw results on maps: ``plot`` with matplotlib, ``explore`` with lonboard."""

from .draw import explore, plot

__all__ = ["explore", "plot"]
