"""pandana's ``Network`` on this library, for programs that are written for pandana. Replace the
import::

from kepler_traverse.pandana import Network  # was: from pandana import Network
"""

from .network import Network

__all__ = ["Network"]
