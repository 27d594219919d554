"""What must come out for each kind of result, by the distances and paths of ``oracle``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

from scripts.storm.oracle import (
    MAX_INTEGER,
    Lengths,
    NegativeCycle,
    Network,
    Unrepresentable,
    path_to,
)
from scripts.storm.questions import Question, is_about_floats

RELATIVE = 1e-9  # of sums of floats, whose order is not said here


@dataclass(frozen=True)
class Table:
    """Rows of values as Python has them, None for null.

    Attributes
    ----------
    columns : tuple of str
    rows : list of tuple
    close : frozenset of str
        Columns of numbers that may differ by a relative error of ``RELATIVE``.
    lost : tuple or None
        Of flows: the number of pairs without a path, and their volume.
    floor : float
        Of flows with a decay, which are rounded to a multiple of a tiny volume: what is below is not compared.
    """

    columns: tuple[str, ...]
    rows: list[tuple]
    close: frozenset[str] = frozenset()
    lost: tuple[int, Any] | None = None
    floor: float = 0.0

    def above_floor(self, floor: float) -> list[tuple]:
        """Return the rows without those that carry next to nothing."""
        if floor:
            return [row for row in self.rows if row[-1] >= floor]
        return self.rows


@dataclass(frozen=True)
class Refused:
    """An error must come: the names of classes, of which any will do. With ``may_answer``, a search may end before it."""

    errors: tuple[str, ...]
    why: str
    may_answer: bool = False


@dataclass(frozen=True)
class AnyOf:
    """A value that is one of several."""

    values: frozenset[Any]


# A value that may be any, such as a sum along one of several paths.
ANYTHING = object()
Expected = Table | Refused


class Asked:
    """A question and the graph that it is about, in the direction of the question."""

    def __init__(self, question: Question, network: Network):
        self.question = question
        is_turned = question.options.get("direction") == "in"
        self.network = network.reversed() if is_turned and network.edges.directed else network
        self.lengths = self.network.lengths(question.algorithm)
        self.sources = [] if question.sources is None else question.sources_in(network)
        self.known = {}
        self._before = {}

    def distances(self, source: Any) -> dict:
        """Return the distances from a source, without a limit."""
        if source not in self.known:
            self.known[source] = self.lengths.distances([source])
        return self.known[source]

    def predecessors(self, source: Any) -> dict:
        if source not in self._before:
            self._before[source] = self.lengths.predecessors(source, self.distances(source))
        return self._before[source]

    def searches(self) -> Iterable[tuple[Any, dict]]:
        """Yield each source with the vertices within its limit, by ascending id, and their distances."""
        for place, source in enumerate(self.sources):
            limit = self.question.limit_of(place)
            found = self.distances(source)
            inside = {v: found[v] for v in self.network.ids if v in found and found[v] <= limit}
            yield source, inside

    def distance_within(self, source: Any, target: Any, place: int = 0) -> Any:
        """Return the distance of a target, or None beyond the limit or without a path."""
        distance = self.distances(source).get(target)
        is_inside = distance is not None and distance <= self.question.limit_of(place)
        if is_inside:
            return distance
        return None


def without(table: Table, name: str) -> Table:
    """Return a table without one of its columns."""
    place = table.columns.index(name)
    columns = table.columns[:place] + table.columns[place + 1 :]
    return replace(
        table, columns=columns, rows=[row[:place] + row[place + 1 :] for row in table.rows]
    )


def _distances(asked: Asked) -> Table:
    question = asked.question
    has_before = question.kind == "predecessors" or question.options.get("predecessors", False)
    chosen = asked.network.ids
    if question.targets is not None:
        chosen = [vertex for vertex in chosen if vertex in question.targets]
    rows = []
    for source, inside in asked.searches():
        before = asked.predecessors(source) if has_before else {}
        rows += [
            (source, vertex, inside.get(vertex), before.get(vertex) if vertex in inside else None)
            for vertex in chosen
            if vertex in inside or question.options.get("unreached") == "null"
        ]
    table = Table(("source", "vertex", "distance", "predecessor"), rows)
    if not has_before:
        table = without(table, "predecessor")
    if question.kind == "one":
        table = without(table, "source")
    return table


def _matrix(asked: Asked) -> Table:
    places = asked.network.ids if asked.question.targets is None else asked.question.targets
    rows = [
        (source, tuple(inside.get(vertex) for vertex in places))
        for source, inside in asked.searches()
    ]
    return Table(("source", "distance"), rows)


def _reachable(asked: Asked) -> Table:
    rows = [(source, vertex) for source, inside in asked.searches() for vertex in inside]
    return Table(("source", "vertex"), rows)


def _targets(asked: Asked) -> Table:
    distinct = dict.fromkeys(asked.question.targets or ())
    rows = [
        (source, target, inside.get(target))
        for source, inside in asked.searches()
        for target in distinct
    ]
    return Table(("source", "target", "distance"), rows)


def _summary(asked: Asked) -> Table:
    rows = []
    n = len(asked.network.ids)
    for source, inside in asked.searches():
        others = [distance for vertex, distance in inside.items() if vertex != source]
        total = math.fsum(others) if others and isinstance(others[0], float) else sum(others)
        if isinstance(total, int) and abs(total) > MAX_INTEGER:
            raise Unrepresentable("the sum of the distances is beyond int64")
        mean = total / len(others) if others else 0.0
        closeness = len(others) ** 2 / (total * (n - 1)) if total > 0 else 0.0
        harmonic = math.fsum(1 / distance for distance in others if distance > 0)
        rows.append((source, len(inside), max(inside.values()), total, mean, closeness, harmonic))
    close = {"mean", "closeness", "harmonic"}
    if is_about_floats(asked.question, asked.network):
        close.add("sum")
    names = ("source", "reached", "eccentricity", "sum", "mean", "closeness", "harmonic")
    return Table(names, rows, frozenset(close))


def _levels(asked: Asked) -> Table:
    rows = [
        (source, hops, count)
        for source, inside in asked.searches()
        for hops, count in sorted(Counter(inside.values()).items())
    ]
    return Table(("source", "distance", "vertices"), rows)


def _nearest(asked: Asked) -> Table:
    costs = asked.question.options.get("start_costs")
    sources = dict.fromkeys(asked.sources, 0)
    if costs is not None:
        sources = dict(zip(asked.sources, costs, strict=True))
    distance = asked.lengths.distances(sources)
    limit = asked.question.limit_of(0)
    owner: dict
    if asked.lengths.may_be_negative or costs is not None:
        alone = {
            source: asked.lengths.distances({source: cost}) for source, cost in sources.items()
        }
        owner = {
            v: AnyOf(frozenset(source for source, found in alone.items() if found.get(v) == least))
            for v, least in distance.items()
        }
    else:
        owner = asked.lengths.nearest_sources(asked.sources, distance)
    inside = [v for v in asked.network.ids if v in distance and distance[v] <= limit]
    return Table(("vertex", "source", "distance"), [(v, owner[v], distance[v]) for v in inside])


def _members(labels: list | None, ids: list) -> list[tuple[Any, list]]:
    """Return the groups in ascending order, each with its ids in ascending order; one group called None without labels."""
    found = {}
    for label, vertex in zip(labels or [None] * len(ids), ids, strict=True):
        found.setdefault(label, set()).add(vertex)
    return [(label, sorted(found[label])) for label in sorted(found)]


def _ranked(distances: Iterable[tuple], k: int, limit: Any) -> list[tuple[int, Any, Any]]:
    """Return rank, id and distance of the k nearest within a limit of some (distance, id)."""
    inside = [each for each in distances if each[0] is not None and each[0] <= limit]
    return [(rank, v, distance) for rank, (distance, v) in enumerate(sorted(inside)[:k], 1)]


def _by_groups(asked: Asked, table: Table) -> Table:
    if "groups" in asked.question.options:
        return table
    return without(table, "group")


def _k_nearest(asked: Asked) -> Table:
    options = asked.question.options
    limit = asked.question.limit_of(0)
    rows = []
    for label, members in _members(options.get("groups"), asked.sources):
        for vertex in asked.network.ids:
            near = ((asked.distances(source).get(vertex), source) for source in members)
            rows += [(label, vertex, *each) for each in _ranked(near, options["k"], limit)]
    return _by_groups(asked, Table(("group", "vertex", "rank", "source", "distance"), rows))


def _backward(asked: Asked, back: Lengths, source: Any, target: Any) -> Any:
    # With negative weights searches begin at the sources, as a cycle may lie behind the targets.
    # So they do for sums along paths.
    begins_at_sources = asked.lengths.may_be_negative or "along" in asked.question.options
    if begins_at_sources or not is_about_floats(asked.question, asked.network):
        return asked.distances(source).get(target)
    key = ("back", target)
    if key not in asked.known:
        asked.known[key] = back.distances([target])
    return asked.known[key].get(source)


def _nearest_targets(asked: Asked) -> Table:
    options = asked.question.options
    groups = _members(options.get("groups"), asked.question.targets or [])
    rows = []
    # Sums of floats are those of searches that begin at the targets.
    back = asked.network.reversed().lengths(asked.question.algorithm)
    for place, source in enumerate(asked.sources):
        limit = asked.question.limit_of(place)
        for label, members in groups:
            near = ((_backward(asked, back, source, target), target) for target in members)
            rows += [(source, label, *each) for each in _ranked(near, options["k"], limit)]
    return _by_groups(asked, Table(("source", "group", "rank", "target", "distance"), rows))


def _decayed(decay: str | None, distance: Any) -> float:
    """Return what a value at a distance is multiplied by."""
    if decay is None:
        return 1
    name, _, number = decay.partition(":")
    parameter = float(number)
    if name == "exponential":
        return math.exp(-parameter * distance)
    if name == "linear":
        return max(0.0, 1 - distance / parameter)
    return math.exp(-((distance / parameter) ** 2) / 2)


def _opportunities(asked: Asked) -> Expected:
    options = asked.question.options
    decay = options.get("decay")
    if decay and asked.lengths.may_be_negative:
        return Refused(("InputError",), "a decay takes no negative weights")
    weights = options.get("source_weights") or [1] * len(asked.sources)

    def total(values: dict, inside: dict, cutoff: Any) -> Any:
        return sum(
            values[vertex] * _decayed(decay, distance)
            for vertex, distance in inside.items()
            if vertex in values and distance <= cutoff
        )

    rows = [
        (
            source,
            cutoff,
            *(total(each, inside, cutoff) * weight for each in options["values"].values()),
        )
        for weight, (source, inside) in zip(weights, asked.searches(), strict=True)
        for cutoff in options["cutoffs"]
    ]
    names = tuple(options["values"])
    return Table(("source", "cutoff", *names), rows, frozenset(names if decay else ()))


def _within(asked: Asked) -> Table:
    rows = [
        (source, cutoff, sum(distance <= cutoff for distance in inside.values()))
        for source, inside in asked.searches()
        for cutoff in asked.question.options["cutoffs"]
    ]
    return Table(("source", "cutoff", "vertices"), rows)


def _share(rest: Any, weight: Any) -> float:
    """Return the share of a street that the rest of a cutoff lasts for."""
    if rest >= weight:
        return 1.0
    return float(rest / weight)


def _streets(asked: Asked) -> Expected:
    if asked.lengths.may_be_negative:
        return Refused(("InputError",), "streets take no negative weights")
    along = asked.question.options["along"]
    network = asked.network
    counts_hops = asked.lengths.counts_hops
    ways = {}
    for (u, v), row in network.row_of.items():
        ways.setdefault(row, []).append((u, 1 if counts_hops else network.arcs[u][v]))
    rows = []
    for source, inside in asked.searches():
        for cutoff in asked.question.options["cutoffs"]:
            shares = {
                row: sum(
                    _share(cutoff - inside[u], weight)
                    for u, weight in entries
                    if u in inside and inside[u] <= cutoff
                )
                for row, entries in ways.items()
            }
            sums = (
                math.fsum(min(share, 1.0) * values[row] for row, share in shares.items())
                for values in along.values()
            )
            rows.append((source, cutoff, *sums))
    return Table(("source", "cutoff", *along), rows, frozenset(along))


def _isochrones(asked: Asked) -> Table:
    rows = []
    for source, inside in asked.searches():
        for vertex, distance in inside.items():
            bands = (cutoff for cutoff in asked.question.options["cutoffs"] if distance <= cutoff)
            rows += [(source, vertex, band) for band in islice(bands, 1)]
    return Table(("source", "vertex", "band"), rows)


def _pairs(asked: Asked) -> Table:
    rows = [(o, d, asked.distance_within(o, d)) for o, d in asked.question.pairs or ()]
    return Table(("source", "target", "distance"), rows)


def _paths(asked: Asked) -> Table:
    along = asked.question.options.get("along", {})
    rows = []
    for pair, (origin, destination) in enumerate(asked.question.pairs or ()):
        if asked.distance_within(origin, destination) is None:
            continue
        way = path_to(destination, asked.predecessors(origin))
        sums = dict.fromkeys(along, 0)
        rows.append((pair, 0, origin, None, *sums.values()))
        for position, (u, v) in enumerate(pairwise(way), 1):
            edge = asked.network.row_of[u, v]
            for name, values in along.items():
                sums[name] += values[edge]
            rows.append((pair, position, v, edge, *sums.values()))
    return Table(("pair", "position", "vertex", "edge", *along), rows)


def _volumes(asked: Asked) -> list[tuple[Any, Any, Any]]:
    """Return origin, destination and volume of each pair of a question about flows."""
    options = asked.question.options
    if asked.question.pairs is not None:
        volumes = options.get("volumes") or [1] * len(asked.question.pairs)
        return [
            (o, d, volume) for (o, d), volume in zip(asked.question.pairs, volumes, strict=True)
        ]
    targets = asked.network.ids if asked.question.targets is None else asked.question.targets
    of_sources = options.get("source_weights") or [1] * len(asked.sources)
    of_targets = options.get("target_weights") or [1] * len(targets)
    return [
        (source, target, one * other)
        for source, one in zip(asked.sources, of_sources, strict=True)
        for target, other in zip(targets, of_targets, strict=True)
    ]


class _Loads:
    """What the pairs of a question carry to edges, to vertices and to the list of pairs."""

    def __init__(self, asked: Asked):
        self.of_edges = Counter()
        self.of_vertices = Counter()
        self.of_pairs = []
        edges = asked.network.edges
        self._is_directed = edges.directed or bool(edges.closed)  # then graphs are directed

    def add(self, pair: int, way: list, steps: list[tuple], amount: Any) -> None:
        if not amount:
            return
        self.of_pairs.append((pair, way[0], way[-1], amount))
        for vertex in way:
            self.of_vertices[vertex] += amount
        for step in steps:
            self.of_edges[step if self._is_directed else tuple(sorted(step))] += amount


def _in_order(edges: Iterable[tuple]) -> list[tuple]:
    return sorted(edges, key=lambda edge: (edge[1], edge[0]))


def _flows(asked: Asked) -> Expected:
    options = asked.question.options
    if asked.lengths.may_be_negative:
        return Refused(("InputError", "NegativeCycleError"), "flows take no negative weights")
    through = options.get("through")
    row_of = asked.network.row_of
    loads = _Loads(asked)
    lost_pairs = 0
    lost_volume = 0
    for pair, (origin, destination, volume) in enumerate(_volumes(asked)):
        distance = asked.distance_within(origin, destination)
        if distance is None:
            lost_pairs += 1
            lost_volume += volume
            continue
        way = path_to(destination, asked.predecessors(origin))
        steps = list(pairwise(way))
        if through is None or any(row_of[step] in through for step in steps):
            loads.add(pair, way, steps, volume * _decayed(options.get("decay"), distance))
    close = frozenset(["volume"] if "decay" in options else [])
    rest = ((lost_pairs, lost_volume), 1e-6 if "decay" in options else 0.0)
    if options["of"] == "pairs":
        return Table(("pair", "source", "target", "volume"), loads.of_pairs, close, *rest)
    if options["of"] == "vertices":
        of_vertices = sorted(loads.of_vertices.items())
        return Table(("vertex", "volume"), list(of_vertices), close, *rest)
    edges = _in_order(loads.of_edges)
    rows = [(u, v, row_of[u, v], loads.of_edges[u, v]) for u, v in edges]
    return Table(("src", "dst", "edge", "volume"), rows, close, *rest)


def _may_absorb(asked: Asked, distance: dict) -> bool:
    """Whether the smallest weight is below the last place of the farthest distance, or near it."""
    if asked.lengths.is_exact:
        return False
    last_place = math.ulp(max(distance.values()))
    if asked.lengths.weights == "float32":
        last_place *= 2.0**29
    weights = (weight for arcs in asked.network.arcs.values() for weight in arcs.values())
    return min(weights, default=math.inf) <= last_place


def _shares(
    asked: Asked, source: Any
) -> tuple[dict[Any, Fraction], dict[tuple[Any, Any], Fraction], list]:
    """Return what each vertex and each edge carries of the shortest paths from a source, and the ends of these paths."""
    distance = asked.distances(source)
    if _may_absorb(asked, distance):
        raise Unrepresentable("rounding may absorb a weight, so that exact sums decide")
    limit = asked.question.limit_of(0)
    order = sorted((v for v in distance if distance[v] <= limit), key=lambda v: distance[v])
    counts = {source: 1}
    before = {source: []}
    for v in order:
        if v == source:
            continue
        starts = asked.lengths.tight_arcs_into(v, distance)
        if any(distance[u] >= distance[v] for u in starts):
            raise Unrepresentable(
                "rounding absorbs a weight, so that the number of paths is not defined"
            )
        before[v] = starts
        counts[v] = sum(counts[u] for u in starts)
    targets = set(order if asked.question.targets is None else asked.question.targets) - {source}
    carried = dict.fromkeys(order, Fraction(0))
    over = {}
    for v in reversed(order):
        for u in before[v]:
            part = Fraction(counts[u], counts[v]) * ((v in targets) + carried[v])
            carried[u] += part
            over[u, v] = part
    carried[source] = Fraction(0)
    return carried, over, [v for v in order if v in targets]


def _betweenness(asked: Asked) -> Expected:
    options = asked.question.options
    weights = (weight for arcs in asked.network.arcs.values() for weight in arcs.values())
    if asked.question.algorithm == "sssp" and any(weight <= 0 for weight in weights):
        return Refused(("InputError", "NegativeCycleError"), "a weight is not above 0")
    is_directed = asked.network.edges.directed

    def edge(u: Any, v: Any) -> tuple:
        return (u, v) if is_directed else tuple(sorted((u, v)))

    of_vertices = dict.fromkeys(asked.network.ids, Fraction(0))
    arcs_of = asked.network.arcs.items()
    of_edges = {edge(u, v): Fraction(0) for u, arcs in arcs_of for v in arcs}
    has_ends = options.get("endpoints", False)
    for source in asked.sources:
        carried, over, ends = _shares(asked, source)
        for v, share in carried.items():
            of_vertices[v] += share
        for (u, v), share in over.items():
            of_edges[edge(u, v)] += share
        for v in [*ends, *[source] * len(ends)] if has_ends else ():
            of_vertices[v] += 1
    n = len(asked.network.ids)
    scale = Fraction(1) if is_directed else Fraction(1, 2)
    inner = n if has_ends or options["of"] == "edges" else n - 2
    if options["normalized"] and inner > 0 and n > 1:
        scale = Fraction(1, inner * (n - 1))
    close = frozenset(["betweenness"])
    if options["of"] == "vertices":
        values = [(v, float(of_vertices[v] * scale)) for v in asked.network.ids]
        return Table(("vertex", "betweenness"), values, close)
    rows = [(*each, float(of_edges[each] * scale)) for each in _in_order(of_edges)]
    return Table(("src", "dst", "betweenness"), rows, close)


def _largest_component(asked: Asked) -> list:
    """Return the largest set of vertices that reach each other; of equally large ones that with the smallest id."""
    onward = asked.network.lengths("bfs")
    backward = asked.network.reversed().lengths("bfs")
    best = []
    seen = set()
    for vertex in asked.network.ids:
        if vertex not in seen:
            both = onward.distances([vertex]).keys() & backward.distances([vertex]).keys()
            seen |= both
            if len(both) > len(best):
                best = sorted(both)
    return best


def _extremes(asked: Asked) -> Expected:
    if asked.lengths.may_be_negative:
        return Refused(("InputError",), "extremes take no negative weights")
    inside = _largest_component(asked)
    farthest = {v: max(asked.distances(v)[w] for w in inside) for v in inside}
    radius = min(farthest.values())
    diameter = max(farthest.values())
    rows = [("center", v, radius) for v in inside if farthest[v] == radius]
    rows += [("periphery", v, diameter) for v in inside if farthest[v] == diameter]
    return Table(("set", "vertex", "eccentricity"), rows)


def _plan(asked: Asked) -> Table:
    """The distances of each source of each group of a plan, one group after another."""
    rows = []
    limit = asked.question.limit_of(0)
    for place, group in enumerate(asked.question.options["groups"]):
        for source in group:
            found = asked.distances(source)
            inside = {v: distance for v, distance in found.items() if distance <= limit}
            rows.append((place, source, tuple(map(inside.get, asked.network.ids))))
    return Table(("group", "source", "distance"), rows)


ANSWERS: dict[str, Callable[[Asked], Expected]] = {
    "distances": _distances,
    "predecessors": _distances,
    "one": _distances,
    "matrix": _matrix,
    "reachable": _reachable,
    "targets": _targets,
    "summary": _summary,
    "levels": _levels,
    "nearest": _nearest,
    "k_nearest": _k_nearest,
    "nearest_targets": _nearest_targets,
    "opportunities": _opportunities,
    "within": _within,
    "streets": _streets,
    "isochrones": _isochrones,
    "pairs": _pairs,
    "paths": _paths,
    "flows": _flows,
    "betweenness": _betweenness,
    "extremes": _extremes,
    "plan": _plan,
}


def _searched(asked: Asked) -> None:
    """Search from all sources, so that an error is known whatever the records need."""
    for source in [*asked.sources, *(origin for origin, _ in asked.question.pairs or ())]:
        asked.distances(source)


def _with_sums(asked: Asked, table: Table) -> Table:
    """Return a table with the sums of columns along the path of each row, null without a path."""
    along = asked.question.options["along"]
    end = "target" if "target" in table.columns else "vertex"
    places = [table.columns.index(name) for name in ("source", end, "distance")]
    rows = []
    for row in table.rows:
        source, target, distance = (row[place] for place in places)
        sums = [None] * len(along)
        if isinstance(source, AnyOf) and len(source.values) > 1:
            sums = [ANYTHING] * len(along)
        elif distance is not None:
            # All shortest paths to a vertex begin at its only nearest source.
            if isinstance(source, AnyOf):
                (source,) = source.values
            way = path_to(target, asked.predecessors(source))
            edges = [asked.network.row_of[step] for step in pairwise(way)]
            sums = [sum(values[edge] for edge in edges) for values in along.values()]
        rows.append((*row, *sums))
    return replace(table, columns=(*table.columns, *along), rows=rows)


def expected(question: Question, network: Network) -> Expected:
    """Return the table that a question has, or the errors of which one must come."""
    asked = Asked(question, network)
    try:
        _searched(asked)
        answer = ANSWERS[question.kind](asked)
        has_sums = "along" not in question.options or question.kind in ("paths", "streets")
        if has_sums or isinstance(answer, Refused):
            return answer
        return _with_sums(asked, answer)
    except NegativeCycle as error:
        return Refused(("NegativeCycleError", "InputError"), str(error))
    except Unrepresentable as error:
        ends = (question.limit, question.options.get("cutoffs"), question.targets, question.pairs)
        # Betweenness counts paths exactly where rounding absorbs a weight. The nearest source of
        # each vertex may be known before a sum is too large.
        may_answer = question.kind in ("extremes", "betweenness", "nearest")
        ends_early = may_answer or any(end is not None for end in ends)
        return Refused(
            ("PrecisionError", "NegativeCycleError", "CapacityError"), str(error), ends_early
        )


def difference(wanted: Table, found: Table, is_ordered: bool = True) -> str:
    """Return how a table differs from what must come out, or nothing."""
    if wanted.columns != found.columns:
        return f"columns are {found.columns}, not {wanted.columns}"
    rows = wanted.above_floor(wanted.floor)
    others = found.above_floor(wanted.floor)
    if not is_ordered:
        exact = [place for place, name in enumerate(wanted.columns) if name not in wanted.close]
        rows, others = (
            sorted(each, key=lambda row: [repr(row[place]) for place in exact])
            for each in (rows, others)
        )
    for place, (row, other) in enumerate(zip(rows, others, strict=False)):
        for name, value, seen in zip(wanted.columns, row, other, strict=True):
            if not _fits(value, seen, name in wanted.close):
                return f"row {place}: {name} is {seen!r}, not {value!r}; the row is {other!r}, and must be {row!r}"
    if len(rows) != len(others):
        return f"{len(others)} rows, not {len(rows)}"
    if wanted.lost is not None and found.lost is not None and wanted.lost[0] != found.lost[0]:
        return f"lost are {found.lost}, not {wanted.lost}"
    return ""


def _fits(value: Any, seen: Any, is_close: bool) -> bool:
    if value is ANYTHING:
        return True
    if isinstance(value, AnyOf):
        return seen in value.values
    if is_close and value is not None and seen is not None:
        return math.isclose(value, seen, rel_tol=RELATIVE, abs_tol=1e-9)
    return bool(value == seen and (value is None) == (seen is None))
