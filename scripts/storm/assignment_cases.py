"""Cases of ``assign`` and its job: flows beside a plain search, with the gap computed anew."""

from __future__ import annotations

import contextlib
import heapq
import io
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from kepler_traverse.assignment import BPR, assign
from scripts.storm.case import Case

_ROUNDING = 1e-9  # of sums and powers in another order
_GAPS = {"paths": 1e-6, "frank_wolfe": 1e-3}
_MOST = 3_000  # searches
_TABLES = {
    "pandas": lambda frame: frame,
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "mapping": lambda frame: {name: frame[name].tolist() for name in frame},
    "index of texts": lambda frame: frame.set_axis([f"row {i}" for i in range(len(frame))]),
}


class Asked(NamedTuple):
    """An assignment: tables of links and trips, closed vertices, rows of select link, and how it is
    solved.
    """

    links: pd.DataFrame
    trips: pd.DataFrame
    closed: list[Any]
    selected: list[int]
    method: str

    @property
    def words(self) -> str:
        lists = {name: self.links[name].tolist() for name in self.links}
        trips = {name: self.trips[name].tolist() for name in self.trips}
        rest = f"closed {self.closed}; selected {self.selected}; {self.method}"
        return f"links {lists}; trips {trips}; {rest}"


def _draw_asked(draw: Random) -> Asked:
    n = draw.randrange(2, 12)
    ids: list[Any] = [7 * v - 20 for v in range(n)]
    if draw.random() < 0.3:
        ids = [f"v{v:02d}é" for v in range(n)]
    ends = [(draw.choice(ids), draw.choice(ids)) for _ in range(draw.randrange(1, 4 * n))]
    if draw.random() < 0.8:  # all are connected
        ends += list(zip(ids, [*ids[1:], ids[0]], strict=True))
    links = pd.DataFrame(ends, columns=["src", "dst"])
    for name, values in (
        ("free_flow_time", [0.0, 0.5, 1.0, 2.5, 7.0]),
        ("capacity", [0.5, 3.0, 20.0]),
        ("b", [0.0, 0.15, 1.0]),
        ("power", [0.0, 0.5, 1.0, 4.0]),
    ):
        links[name] = [draw.choice(values) for _ in ends]
    known = sorted({end for pair in ends for end in pair})
    rows = [
        (draw.choice(known), draw.choice(known), draw.choice([0, 1, 2.5, 10]))
        for _ in range(draw.randrange(1, 2 * n))
    ]
    trips = pd.DataFrame(rows, columns=["origin", "destination", "volume"])
    closed = draw.sample(known, draw.randrange(len(known))) if draw.random() < 0.3 else []
    selected = draw.sample(range(len(links)), min(2, len(links))) if draw.random() < 0.3 else []
    return Asked(links, trips, closed, selected, draw.choice(list(_GAPS)))


def _distances(asked: Asked, cost: list[float], origin: Any) -> dict[Any, float]:
    """Return the distances from a vertex, by Dijkstra's algorithm."""
    out: dict[Any, list[tuple[Any, float]]] = {}
    for u, v, each in zip(asked.links.src, asked.links.dst, cost, strict=True):
        out.setdefault(u, []).append((v, each))
    known: dict[Any, float] = {}
    queue = [(0.0, origin)]
    while queue:
        distance, u = heapq.heappop(queue)
        if u in known:
            continue
        known[u] = distance
        if u in asked.closed and u != origin:
            continue
        for v, each in out.get(u, []):
            heapq.heappush(queue, (distance + each, v))
    return known


def _costs(links: pd.DataFrame, flow: np.ndarray) -> np.ndarray:
    ratio = flow / links.capacity.to_numpy()
    term = links.b.to_numpy() * ratio ** links.power.to_numpy()
    return np.asarray(links.free_flow_time.to_numpy() * (1 + term))


def _refusal(asked: Asked) -> str:
    """Return the words of the error that must come; ``""`` if flows must."""
    trips = asked.trips[(asked.trips.volume > 0) & (asked.trips.origin != asked.trips.destination)]
    if trips.empty:
        return "trips have no volume above 0 between two vertices"
    hops = [1.0] * len(asked.links)
    for origin, of_origin in trips.groupby("origin"):
        if set(of_origin.destination) - set(_distances(asked, hops, origin)):
            return "no path leads from"
    return ""


def _fault(asked: Asked, result: Any) -> str:
    """Describe what is wrong with flows, costs or the gap; ``""`` if nothing is."""
    links, trips = asked.links, asked.trips[asked.trips.origin != asked.trips.destination]
    flow, cost = (result.links[name].to_numpy() for name in ("flow", "cost"))
    if not np.allclose(cost, _costs(links, flow), rtol=_ROUNDING):
        return f"the costs of flows {flow.tolist()} are {cost.tolist()}"
    balance: dict[Any, float] = {}
    moved = [(links.src, links.dst, flow), (trips.destination, trips.origin, trips.volume)]
    for leaving, entering, volumes in moved:
        for u, v, volume in zip(leaving, entering, volumes, strict=True):
            balance[u] = balance.get(u, 0.0) + volume
            balance[v] = balance.get(v, 0.0) - volume
    scale = 1.0 + float(flow.sum()) + float(trips.volume.sum())
    if flow.min() < 0 or max(map(abs, balance.values())) > _ROUNDING * scale:
        return f"flows {flow.tolist()} do not begin and end as the trips do"
    if asked.selected:
        fault = _fault_of_selected(asked, result, scale)
        if fault:
            return fault
    total = float(flow @ cost)
    shortest = 0.0
    for origin, of_origin in trips.groupby("origin"):
        distance = _distances(asked, cost.tolist(), origin)
        pairs = zip(of_origin.destination, of_origin.volume, strict=True)
        shortest += sum(volume * distance[v] for v, volume in pairs if volume > 0)
    gap = (total - shortest) / total if total > 0 else 0.0
    if abs(gap - result.relative_gap) > _ROUNDING or gap < -_ROUNDING:
        return f"the gap is {gap!r}, and {result.relative_gap!r} is stated"
    if not result.is_converged and result.iterations < _MOST:
        return f"it ended after {result.iterations} searches at {result.relative_gap!r}"
    return ""


def _fault_of_selected(asked: Asked, result: Any, scale: float) -> str:
    """Describe what is wrong with what uses selected links: all that is on them does, and no flow or
    pair has more than all of it.
    """
    flow = result.links["flow"].to_numpy()
    selected = result.links["selected"].to_numpy()
    rounding = _ROUNDING * scale
    if (selected > flow + rounding).any() or selected.min() < -rounding:
        return f"of flows {flow.tolist()} {selected.tolist()} use links {asked.selected}"
    if not np.allclose(selected[asked.selected], flow[asked.selected], atol=rounding):
        return f"of flows {flow.tolist()} only {selected.tolist()} use links {asked.selected}"
    pairs = result.selected_pairs
    volumes = asked.trips.groupby(["origin", "destination"]).volume.sum()
    for row in pairs.itertuples():
        if row.volume > volumes[row.origin, row.destination] + rounding:
            return f"{row.volume} from {row.origin} to {row.destination} use a selected link"
    most = sum(flow[asked.selected])
    if not max(flow[asked.selected]) - rounding <= pairs.volume.sum() <= most + rounding:
        return f"{pairs.volume.sum()} use links {asked.selected} with {flow[asked.selected]}"
    return ""


def ask_assignment(case: Case) -> None:
    """Assign some trips in the library, and now and then in the job."""
    asked = _draw_asked(case.draw)
    refusal = _refusal(asked)
    table = _TABLES[case.draw.choice(list(_TABLES))]
    case.count("calls")
    case.count("calls, assign")
    tables = table(asked.links), table(asked.trips)
    try:
        result = _assign(asked, tables, "cpu")
    except Exception as error:
        if not refusal or refusal not in str(error):
            case.check_error("assign", error, None, asked.words)
        return
    if refusal:
        case.report("assign", "accepted", refusal, asked.words)
        return
    case.count("comparisons")
    fault = _fault(asked, result)
    if fault:
        case.report("assign", "wrong", fault, asked.words)
    if case.settings.device == "cuda":
        _ask_on_gpu(case, asked, tables, result)
    if case.draw.random() < 0.2:
        _ask_job(case, asked, result)


def _assign(asked: Asked, tables: tuple[Any, Any], device: str) -> Any:
    """Return what ``assign`` does, certified."""
    result = assign(
        *tables,
        cost=BPR(),
        closed=asked.closed or None,
        select_link=asked.selected or None,
        method=asked.method,
        gap=_GAPS[asked.method],
        max_iterations=_MOST,
        device=device,
    )
    result.certify()
    return result


def _ask_on_gpu(case: Case, asked: Asked, tables: tuple[Any, Any], expected: Any) -> None:
    """Assign the same with a GPU: all that is found must have the bits of the CPU."""
    case.count("calls on the GPU")
    try:
        found = _assign(asked, tables, "cuda")
    except Exception as error:
        case.check_error("assign", error, None, f"{asked.words}; on the GPU")
        return
    case.count("comparisons")
    is_equal = found.bound == expected.bound and found.links.equals(expected.links)
    if asked.selected:
        is_equal &= found.selected_pairs.equals(expected.selected_pairs)
    if not is_equal:
        case.report("assign", "wrong", "a GPU finds other flows than a CPU", asked.words)


def _write_parquet(table: pd.DataFrame, place: Path, _draw: Random) -> tuple[Path, list[str]]:
    path = place.with_suffix(".parquet")
    table.to_parquet(path)
    return path, []


def _write_csv(table: pd.DataFrame, place: Path, _draw: Random) -> tuple[Path, list[str]]:
    path = place.with_suffix(".csv")
    table.to_csv(path, index=False)
    return path, []


def _write_gmns(links: pd.DataFrame, place: Path, draw: Random) -> tuple[Path, list[str]]:
    """Write links for cars, and between them some that cars may not use."""
    uses = ["auto", "AUTO;bike", "all", "", "cars"]
    rows = [
        (row.src, row.dst, row.free_flow_time, row.capacity, row.b, row.power, draw.choice(uses))
        for row in links.itertuples()
    ]
    for _ in range(draw.randrange(4)):
        ends = draw.choice(rows)[:2]
        rows.insert(draw.randrange(len(rows) + 1), (*ends, 0, 1, 0, 0, "walk;bike"))
    place.mkdir()
    names = ["from_node_id", "to_node_id", "length", "capacity", "VDF_alpha", "VDF_beta"]
    table = pd.DataFrame(rows, columns=[*names, "allowed_uses"])
    # a mile takes a minute
    table = table.assign(directed="true", free_speed=60, lanes=1)
    table.to_csv(place / "link.csv", index=False)
    (place / "use_group.csv").write_text("use_group,uses\ncars,auto;taxi\n", encoding="utf-8")
    units = "dataset_name,short_length,long_length,speed\nstorm,ft,mile,mph\n"
    (place / "config.csv").write_text(units, encoding="utf-8")
    return place, ["--use=auto"]


_WRITERS = {"Parquet": _write_parquet, "CSV": _write_csv, "GMNS": _write_gmns}


def _ask_job(case: Case, asked: Asked, result: Any) -> None:
    """Compare what the job writes with what the library returned, and let the job verify it."""
    from pipelines import assignment

    write = _WRITERS[case.draw.choice(list(_WRITERS))]
    links, uses = write(asked.links, case.folder / "links", case.draw)
    write_trips = case.draw.choice([_write_parquet, _write_csv])
    trips, _ = write_trips(asked.trips, case.folder / "trips", case.draw)
    given = [str(links), *uses, "--trips", str(trips)]
    out = case.folder / "out"
    options = [f"--method={asked.method}", f"--gap={_GAPS[asked.method]}"]
    options.append(f"--max-iterations={_MOST}")
    if asked.closed:
        options.append("--closed=" + ",".join(map(str, asked.closed)))
    if asked.selected and not uses:  # rows of a file with further links are others
        options.append("--select-link=" + ",".join(map(str, asked.selected)))
    devices = sorted({"cpu", case.settings.device})
    verify_on = case.draw.choice(devices)
    options.append(f"--device={case.draw.choice(devices)}")
    case.count("calls, job of assign")
    is_met = 0 if result.is_converged else assignment.EXIT_NOT_MET
    for more, expected in (
        ([f"--output={out}", *options], is_met),
        ([f"--verify={out}", f"--device={verify_on}"], 0),
    ):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = assignment.main([*given, *more])
        if code != expected:
            case.report("assign", "exit code", f"{code}: {said.getvalue()}", asked.words)
            return
    case.count("comparisons")
    found = pd.read_parquet(Path(out) / "links.parquet")
    columns = ["src", "dst", "flow", "cost"]
    expected = result.links[columns].reset_index(drop=True)  # labels of rows are not in a file
    if not found[columns].equals(expected):
        case.report("assign", "wrong", "the job has other flows than the library", asked.words)
