"""Congestion: the equilibrium of trips on a network whose links cost more the more they carry."""

from .cost_functions import BPR, Conical, CostFunction
from .network import VehicleClass
from .results import Equilibrium
from .solve import assign

__all__ = ["BPR", "Conical", "CostFunction", "Equilibrium", "VehicleClass", "assign"]
