"""Files of planners: networks and trips in TNTP and GMNS, matrices in OMX, tables for map
matching.
"""

from .tables import RoadNetwork, read_network, read_omx, read_trips, write_omx, write_ubodt

__all__ = [
    "RoadNetwork",
    "read_network",
    "read_omx",
    "read_trips",
    "write_omx",
    "write_ubodt",
]
