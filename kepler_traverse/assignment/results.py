"""The equilibrium of an assignment: flows, costs, skims, select link, and the proof of its gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import arguments
from ..errors import CertificateError, InputError
from ..search.frames import Column, frame_from
from .all_or_nothing import Prover, sum_along
from .cost_functions import LinkTable
from .network import all_pairs
from .path_flows import Demand
from .problem import Bound, Problem

# The error by rounding that a sum of flows may have, as a part of the volumes that it sums up.
_FEASIBLE = 1e-9
_OF_SKIMS = ("origin", "destination", "vehicles", "cost")  # columns that each table of skims has


def read_skimmed(table: LinkTable, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the columns of the links that skims sum up along paths: float64 arrays with a value
    per row of the links, by name.

    ``names`` may include ``"time"``, the congested time. It follows from the flows, so it is left
    out here. InputError: a column is missing, holds no numbers, is named twice, or has the name of
    a column that the result has anyway.
    """
    taken = next((name for name in names if name in _OF_SKIMS), None)
    if taken is not None or len(set(names)) < len(names):
        raise InputError(
            f"along={taken or list(names)!r}: each column is named once, and the result has "
            f"{', '.join(_OF_SKIMS)} of its own; rename the column"
        )
    # ``time`` is no column of the links here: it depends on the flows.
    return {name: table.numbers(name, "value", least=-np.inf) for name in names if name != "time"}


@dataclass(frozen=True, repr=False)
class Equilibrium:
    """The flows of an assignment, and how far they are from equilibrium.

    Attributes
    ----------
    relative_gap : float
        ``(total - shortest) / total``, with all that rounding may hide: a proved bound. The
        objective exceeds its least value by at most ``total - shortest``.
    total, shortest : float
        What all trips cost, and what they would cost on shortest paths at the same costs. Vehicles
        count by their ``passenger_cars``.
    objective : float or None
        Beckmann's sum of integrals; None for a function of the user's without an integral.
    iterations : int
        Searches for shortest paths, over all resumes.
    is_converged : bool
        Whether the gap that was asked for is met.
    gaps : tuple of float
        The relative gap after each iteration.
    shortest_by : str
        How shortest paths were found: by ``"searches"``, or over a ``"hierarchy"``. It depends on the
        method, the links and the trips alone.
    shortest_on : str
        Where: on the ``"cpu"``, or with ``device="cuda"`` over a hierarchy on ``"cuda"``.
    """

    problem: Problem  # links, trips and costs
    bound: Bound  # total, shortest and gap
    # float64 (n_classes, n_links), in the order of ``problem.network.links``: vehicles of each
    # class on each link
    class_flow: np.ndarray
    cost: np.ndarray  # of the same shape: the cost of each link for each class at these flows
    objective: float | None
    gaps: tuple[float, ...]
    is_converged: bool
    # of the paths that use a selected link: flows of the shape of ``class_flow``, and the volume of
    # each pair (n_pairs,); None without ``select_link``
    selected: tuple[np.ndarray, np.ndarray] | None
    prover: Prover  # has found the distances; ``certify`` computes them again by it

    def __repr__(self) -> str:
        """Return how far the flows are from equilibrium, in one line."""
        return (
            f"Equilibrium(relative_gap={self.relative_gap:.3g}, iterations={self.iterations}, "
            f"is_converged={self.is_converged}, objective={self.objective!r}, "
            f"shortest_by={self.shortest_by!r}, shortest_on={self.shortest_on!r})"
        )

    @property
    def relative_gap(self) -> float:
        """``(total - shortest) / total``, with all that rounding may hide: a proved bound."""
        return self.bound.relative_gap

    @property
    def total(self) -> float:
        """What all trips cost on the paths that they use."""
        return self.bound.total

    @property
    def shortest(self) -> float:
        """What all trips would cost on shortest paths at the same costs."""
        return self.bound.shortest

    @property
    def iterations(self) -> int:
        """Searches for shortest paths, over all resumes."""
        return len(self.gaps)

    @property
    def shortest_by(self) -> str:
        """How shortest paths were found: by ``"searches"``, or over a ``"hierarchy"``."""
        return self.prover.name

    @property
    def shortest_on(self) -> str:
        """The device that found the shortest paths: ``"cpu"`` or ``"cuda"``."""
        return self.prover.device

    @property
    def average_excess(self) -> float:
        """``(total - shortest)`` per trip. Trips from a zone to itself count as trips."""
        return (self.total - self.shortest) / self.problem.trips.volume

    def link_columns(self) -> dict[str, Column]:
        """Return the columns of the frame ``links`` by name, each with a value per row of the table
        of links, in its order. With several classes there are a flow and a cost per class, and with
        select link a column ``selected``.
        """
        network = self.problem.network
        classes = self.problem.classes
        flow = self.problem.common_flow(self.class_flow)
        time, _ = self.problem.times(flow)

        # By the names of the columns: arrays (n_links,) in the order of ``network.links``. With one
        # class, its flow and the flow of all are the same column.
        values = {"flow": flow, "time": time}
        if len(classes) == 1:
            values["cost"] = self.cost[0]
        else:
            for k, vehicle_class in enumerate(classes):
                values[f"flow_{vehicle_class.volume}"] = self.class_flow[k]
                values[f"cost_{vehicle_class.volume}"] = self.cost[k]
        if self.selected is not None:
            selected_flow, _ = self.selected
            values["selected"] = self.problem.common_flow(selected_flow)

        src, dst = network.ends  # by row already; ranks of vertices, by which ids are looked up
        columns = {"src": Column(network.ids.at(src)), "dst": Column(network.ids.at(dst))}
        for name, of_links in values.items():
            columns[name] = Column(network.by_row(of_links))
        return columns

    @property
    def links(self) -> Any:
        """A data frame with one row per row of the links, in their order and with their index:
        ``src``, ``dst``, ``flow`` of all classes, ``time``, and ``cost``; of several classes
        ``flow_VOLUME`` and ``cost_VOLUME``; ``selected`` with ``select_link``.
        """
        frame = frame_from(self.link_columns(), "cpu")  # of pandas
        if self.problem.network.index is not None:
            frame.index = self.problem.network.index
        return frame

    @property
    def selected_pairs(self) -> Any:
        """A data frame with the volume of each pair whose paths use a selected link: ``origin``,
        ``destination``, ``volume``, and ``vehicles``, the column of the volumes, if there are
        several classes; None without ``select_link``.
        """
        if self.selected is None:
            return None
        return frame_from(self.selected_columns(), "cpu")

    def selected_columns(self) -> dict[str, Column]:
        """Return the columns of the frame ``selected_pairs`` by name: one row per pair with a
        selected volume above 0. The assignment must have been called with ``select_link``.
        """
        assert self.selected is not None
        _, volume = self.selected
        is_used = volume > 0
        columns = self._pair_columns(self.problem.demand, is_used)
        return columns | {"volume": Column(volume[is_used])}

    def _pair_columns(self, demand: Demand, is_used: np.ndarray) -> dict[str, Column]:
        """Return the columns that name some pairs: ``origin`` and ``destination`` with the ids of
        their ends, and, if there are several classes, ``vehicles`` with the name of their class.

        ``is_used`` (n_pairs,) bool: True for the pairs of ``demand`` that get a row. A class is
        named by its column of volumes in the trips.
        """
        network = self.problem.network
        n_pairs = np.diff(demand.first_pair)  # of each group
        origins = np.repeat(demand.origin, n_pairs)[is_used]
        # Pairs have vertex numbers, and ids are looked up by rank, the order of the ids.
        columns = {
            "origin": Column(network.ids.at(network.rank[origins])),
            "destination": Column(network.ids.at(network.rank[demand.destination[is_used]])),
        }
        classes = self.problem.classes
        if len(classes) > 1:
            # by the number of the class
            names = np.array([vehicle_class.volume for vehicle_class in classes], dtype=object)
            columns["vehicles"] = Column(names[np.repeat(demand.user_class, n_pairs)[is_used]])
        return columns

    def skims(self, along: str | Sequence[str] = (), *, zones: Any = None) -> Any:
        """Return the costs of pairs at equilibrium, and sums of columns along their paths.

        Parameters
        ----------
        along : str or sequence of str, optional
            Columns of the links, or ``"time"``, the congested time. Each is summed along the
            canonical shortest path at the final costs, from the origin on, in float64.
        zones : ids, optional
            All pairs of these vertices in place of the pairs of the trips.

        Returns
        -------
        data frame
            ``origin``, ``destination``, ``vehicles`` if there are several classes, ``cost``, and
            the columns of ``along``. Without a path they are null.
        """
        return frame_from(self.skim_columns(arguments.names("along", along), zones), "cpu")

    def skim_columns(self, names: Sequence[str], zones: Any = None) -> dict[str, Column]:
        """Return the columns of the frame ``skims`` by name, with a row per pair.

        ``names`` are the columns of the links to sum along the paths, ``"time"`` included.
        ``zones`` are ids of vertices, of which all pairs are listed for each class; None lists the
        pairs of the trips.
        """
        network = self.problem.network
        # By name, with a value per row of the table; without "time", which follows from the flows.
        columns_of_links = read_skimmed(network.table, names)
        if zones is None:
            demand = self.problem.demand
        else:
            demand = all_pairs(network, zones, len(self.problem.classes))
        # The time of each link at the flow of all classes; its slope is not needed. Values along
        # paths are by link number, so ``by_link`` reorders the columns, which are by row.
        time, _ = self.problem.times(self.problem.common_flow(self.class_flow))
        values = [
            time if name == "time" else network.by_link(columns_of_links[name]) for name in names
        ]
        distance, sums = sum_along(self.problem, demand, self.cost, values)

        # Nulls where there is no path: ``sum_along`` returns infinite distances and sums of NaN
        # there. ``nulls`` is True for a row without a value; None says that all rows have one.
        is_missing = np.isinf(distance)
        distance[is_missing] = np.nan
        nulls = is_missing if is_missing.any() else None
        columns = self._pair_columns(demand, np.ones(distance.size, np.bool_))
        columns["cost"] = Column(distance, nulls)
        for name, values_of_pairs in zip(names, sums, strict=True):
            columns[name] = Column(values_of_pairs, nulls)
        return columns

    def certify(self) -> Bound:
        """Prove the gap anew from the flows alone; CertificateError if the gap is not as stated.

        Costs follow from the flows. Distances follow from the costs by searches that begin from
        nothing; those of a hierarchy are proved by the links alone, for all vertices. That the
        flows of each class leave and enter each vertex as its trips say is checked, too.
        """
        problem = self.problem
        self._check_conservation()
        loads = problem.loads_at(problem.common_flow(self.class_flow))
        if not np.array_equal(loads.cost, self.cost):
            raise CertificateError("the costs of the links are not those of their flows")
        distance = self.prover.prove(loads.cost)
        bound = problem.bound(self.class_flow, loads.cost, distance)
        if bound != self.bound:
            raise CertificateError(
                f"the relative gap is {bound.relative_gap!r}, and {self.relative_gap!r} is stated"
            )
        return bound

    def _check_conservation(self) -> None:
        """Raise CertificateError unless, for each class and at each vertex, the flow that leaves
        less the flow that enters is the volume that begins less the volume that ends there.
        """
        problem = self.problem
        demand = problem.demand
        links = problem.network.links
        n = problem.network.n_vertices
        origins = np.repeat(demand.origin, np.diff(demand.first_pair))
        class_of_pair = np.repeat(demand.user_class, np.diff(demand.first_pair))
        for k, flow in enumerate(self.class_flow):
            volume = np.where(class_of_pair == k, demand.volume, 0.0)
            # Arrays (n_vertices,): trips that begin and end at each vertex, and the flow that
            # leaves and enters it.
            begun = np.bincount(origins, weights=volume, minlength=n)
            ended = np.bincount(demand.destination, weights=volume, minlength=n)
            out = np.bincount(links.tails, weights=flow, minlength=n)
            into = np.bincount(links.heads, weights=flow, minlength=n)
            wrong = np.abs(out - into - begun + ended) > _FEASIBLE * (out + into + begun + ended)
            if (flow < 0).any() or wrong.any():
                raise CertificateError(
                    f"the flows of class {problem.classes[k].volume!r} do not begin and end as its "
                    "trips do"
                )
