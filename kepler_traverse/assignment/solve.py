"""``assign``: the equilibrium of trips on a congested network."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import arguments, cuda
from ..errors import InputError
from .all_or_nothing import HierarchyLoader, SearchLoader
from .checkpoints import Checkpoint
from .cost_functions import BPR, Conical, CostFunction
from .equilibration import PathEquilibration
from .frank_wolfe import BiconjugateFrankWolfe
from .loaders import make_loader
from .network import Network, VehicleClass, read_network, read_trips
from .problem import Problem
from .results import Equilibrium

METHODS = (PathEquilibration.name, BiconjugateFrankWolfe.name)
DEVICES = ("cpu", "cuda")
# Characters per line of the lists of numbers in fingerprints. It must stay, since files of version
# 0.1.0 have fingerprints of lists that are broken at this width.
_LINE_WIDTH = 75
Report = Callable[[int, float], object]  # called with the number of iterations and the relative gap


def assign(
    links: Any,
    trips: Any,
    *,
    cost: BPR | Conical | CostFunction | None = None,
    classes: VehicleClass | Sequence[VehicleClass] | None = None,
    closed: Any = None,
    gap: float = 1e-6,
    method: str = "paths",
    max_iterations: int = 1000,
    select_link: Any = None,
    checkpoint: Any = None,
    progress: bool | Report | None = None,
    device: str = "cpu",
    src_column: str | None = None,
    dst_column: str | None = None,
) -> Equilibrium:
    """Distribute trips over the paths of a network until no trip has a cheaper one.

    Parameters
    ----------
    links : table
        One directed link per row: its ends, and what ``cost`` and ``classes`` name. Parallel links
        stay apart. The ends are columns with known names, or those of ``src_column`` and
        ``dst_column``.
    trips : table
        ``origin``, ``destination`` and a column of volumes per class. Rows of one pair are added up.
        Trips from a vertex to itself use no link.
    cost : BPR, Conical or CostFunction, optional
        The cost of a link by its flow. Default: ``BPR()``, with the columns ``free_flow_time``,
        ``capacity``, ``b`` and ``power``.
    classes : VehicleClass or sequence of them, optional
        Tolls, values of time, weights of distance. Default: one class, the column ``volume``.
    closed : ids, optional
        Vertices at which paths begin and end, but through which none leads (zones; those below FIRST
        THRU NODE in TNTP files).
    gap : float
        The relative gap to reach, as ``Equilibrium.relative_gap`` has it.
    method : {"paths", "frank_wolfe"}
        ``"paths"`` shifts flow between paths, and reaches any gap that float64 can prove.
        ``"frank_wolfe"`` (bi-conjugate) needs no memory for paths, and is for gaps to 1e-4.
    max_iterations : int
        Searches for shortest paths. Where the gap is not met by then, ``is_converged`` is False.
    select_link : sequence of int, optional
        Rows of the links. The result has the flows and the pairs of the paths that use one of them.
    checkpoint : path, optional
        A file that is written after iterations, at most 5 % of the time. If it is there, the
        assignment goes on from it, and ends with the same bits as without the interruption.
    progress : bool or callable, optional
        True writes a line per iteration to stderr; a function is called with the number of
        iterations and the relative gap.
    device : {"cpu", "cuda"}
        Where ``"frank_wolfe"`` finds shortest paths and loads the trips on networks that have a
        hierarchy, such as roads. The CPU computes all else, and searches other networks and for
        ``"paths"``; ``Equilibrium.shortest_on`` says which device it was.
    src_column, dst_column : str, optional
        Columns of the links.

    Returns
    -------
    Equilibrium

    Raises
    ------
    InputError
        A column or number is wrong, a pair has no path, or the gap cannot be proved in float64.

    Notes
    -----
    The result has the same bits on any number of threads, after a resume, and on every machine with
    IEEE arithmetic, whatever device it has: costs are float64, sums have one order, and powers are
    the library's own.

    References
    ----------
    Mitradjieva, Lindberg (2013): The stiff is moving - conjugate direction Frank-Wolfe methods with
    applications to traffic assignment. Jayakrishnan et al. (1994): A faster path-based algorithm for
    traffic assignment. Spiess (1990): Conical volume-delay functions.
    """
    arguments.choice("method", method, METHODS)
    arguments.choice("device", device, DEVICES)
    max_iterations = arguments.whole("max_iterations", max_iterations, 1)
    if device == "cuda":
        cuda.require()
    report = _reporter(progress)
    network = read_network(links, (src_column, dst_column), closed)
    problem = _problem(network, trips, cost, classes)
    arguments.real("gap", gap)
    problem.require_gap(gap)  # InputError for a gap so small that rounding may hide it
    is_selected = _selected_links(network, select_link)

    # ``solver`` has the flows, and ``kept`` is the checkpoint file.
    solver: PathEquilibration | BiconjugateFrankWolfe
    if method == PathEquilibration.name:
        solver = PathEquilibration(problem)
        kept = _checkpoint(checkpoint, problem, method)
    else:
        solver, kept = _frank_wolfe(problem, is_selected, checkpoint, device)
    # Go on from the file if there is one, else begin. ``read`` gets an example of a state: the file
    # must have arrays of the same names and types.
    state = kept.read({**solver.state(), "gaps": np.zeros(0)})
    if state:
        gaps = state["gaps"].tolist()
        solver.restore(state)
    else:
        gaps = []
        solver.begin()  # puts all trips on first paths

    # Measure the gap and improve the flows, in turns. ``measure`` finds the shortest paths at the
    # costs of the current flows, and returns a ``Bound``: what the trips cost, what they would cost
    # on these paths, and the relative gap. ``write`` writes nothing without a checkpoint, and,
    # unless ``is_last``, nothing soon after a write that took long.
    while True:
        # The state is taken before the search of ``measure``, whose result is not in the file. So a
        # finished assignment that is resumed searches once more, to prove its gap.
        before = {**solver.state(), "gaps": np.array(gaps)} if checkpoint is not None else {}
        kept.write(before, is_last=False)
        bound = solver.measure()
        gaps.append(bound.relative_gap)
        report(len(gaps), bound.relative_gap)
        is_converged = bound.relative_gap <= gap
        if is_converged or len(gaps) >= max_iterations:
            break
        solver.improve(bound)
    kept.write(before, is_last=True)
    # Distances that a hierarchy gave are proved once more, by the links alone. Those of searches,
    # which ``PathEquilibration`` always makes, are proved so already.
    if isinstance(solver, BiconjugateFrankWolfe):
        solver.confirm(bound)
    if is_selected is None:
        selected = None
    else:
        selected = solver.flows_using(is_selected)
    return Equilibrium(
        problem=problem,
        bound=bound,
        class_flow=solver.class_flow.copy(),
        cost=solver.loads.cost,
        objective=problem.objective(solver.class_flow),
        gaps=tuple(gaps),
        is_converged=is_converged,
        selected=selected,
        prover=solver.prover,
    )


def _frank_wolfe(
    problem: Problem, is_selected: np.ndarray | None, checkpoint: Any, device: str
) -> tuple[BiconjugateFrankWolfe, Checkpoint]:
    """Return the Frank-Wolfe solver of a problem, and its checkpoint file.

    ``is_selected`` (n_links,) bool: the links of select link; None without. ``checkpoint`` is the
    path of the file or None, and ``device`` is ``"cpu"`` or ``"cuda"``.

    Searches, and sweeps over a hierarchy, may take different paths where several are equally short.
    So a file that searches wrote is not read for sweeps, nor the reverse: the fingerprint in the
    file says which of the two wrote it.
    """
    selected = None
    if is_selected is not None:
        # ``threshold`` and the width make the text independent of NumPy's options of printing,
        # which would abbreviate a long list.
        selected = np.array2string(
            np.flatnonzero(is_selected), threshold=sys.maxsize, max_line_width=_LINE_WIDTH
        )
    # The selected links are part of the fingerprint, since the state has their flows.
    question = f"{BiconjugateFrankWolfe.name} {selected}"
    kept = _checkpoint(checkpoint, problem, question)
    # The loader puts all trips on their shortest paths, by searches or over a hierarchy, whichever
    # is faster for these links and trips.
    loader = make_loader(problem, is_selected, device)
    if isinstance(loader, HierarchyLoader):
        # A file with this fingerprint was written by searches, as by version 0.1.0, which had no
        # hierarchies. The assignment goes on by searches then.
        if kept.is_there():
            loader = SearchLoader(problem, is_selected)
        else:
            kept = _checkpoint(checkpoint, problem, f"{question} over a hierarchy")
    return BiconjugateFrankWolfe(problem, loader, is_selected), kept


def _checkpoint(path: Any, problem: Problem, question: str) -> Checkpoint:
    """Return the checkpoint file at ``path``. If ``path`` is None, the object reads and writes
    nothing.

    ``question`` is a text that names the method and its options. With the problem it makes the
    fingerprint of the file.
    """
    if path is None:
        return Checkpoint(None, "")
    return Checkpoint(path, problem.fingerprint(question))


def _problem(network: Network, trips: Any, cost: Any, classes: Any) -> Problem:
    """Return the problem from the arguments ``trips``, ``cost`` and ``classes`` of ``assign``:
    check them, and replace None by the defaults: ``BPR()``, and one ``VehicleClass()``. ``classes``
    may be a single class. InputError for an argument that is wrong.
    """
    if cost is None:
        cost = BPR()
    if not isinstance(cost, (BPR, Conical, CostFunction)):
        raise InputError(
            f"cost must be BPR, Conical or CostFunction, not {arguments.describe(cost)}"
        )
    if classes is None:
        classes = VehicleClass()
    listed = [classes] if isinstance(classes, VehicleClass) else classes
    if (
        not isinstance(listed, (list, tuple))
        or not listed
        or not all(isinstance(each, VehicleClass) for each in listed)
    ):
        raise InputError("classes must be a VehicleClass or a list of them")
    for each in listed:
        each.check()
    names = [each.volume for each in listed]
    if len(set(names)) < len(names):
        raise InputError("two classes have the same column of volumes; give each one of its own")
    return Problem(network, read_trips(trips, network, listed), list(listed), cost)


def _selected_links(network: Network, rows: Any) -> np.ndarray | None:
    """Return a bool per link, in the order of the network: whether its row is selected. None if no
    rows are given. ``rows`` is None, one number of a row, or several; InputError for any that is no
    row of the links.
    """
    if rows is None:
        return None
    numbers = arguments.numbers(
        "select_link",
        [rows] if arguments.is_integer(rows) else rows,
        lambda each: (each >= 0) & (each < network.n_links) & (each == np.floor(each)),
        f"is no row of the links, which are 0 to {network.n_links - 1}",
    ).astype(np.int64)
    is_selected = np.zeros(network.n_links, np.bool_)
    is_selected[numbers] = True
    return network.by_link(is_selected)


def _reporter(progress: Any) -> Report:
    """Return the function that is called after each iteration, for the argument ``progress`` of
    ``assign``: the function of the user; for True one that writes a line to stderr; for None and
    False one that does nothing. InputError for any other value.
    """
    if callable(progress):
        return progress
    if progress is not None and not arguments.is_flag(progress):
        raise InputError(
            "progress must be True, False or a function of iterations and gap, "
            f"not {arguments.describe(progress)}"
        )
    if not progress:
        return _report_nothing
    began = time.monotonic()

    def write_line(iterations: int, gap: float) -> None:
        """Write a line to stderr with the iterations, the relative gap and the seconds so far."""
        if sys.stderr is not None:  # as under pythonw and some servers
            seconds = time.monotonic() - began
            sys.stderr.write(f"iteration {iterations}: relative gap {gap:.2e}, {seconds:.1f} s\n")

    return write_line


def _report_nothing(iterations: int, gap: float) -> None:
    """Report nothing, and ignore both arguments: for ``progress`` None or False."""
    pass
