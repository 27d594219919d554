"""Fit the constants of ``kepler_traverse/auto/costs.json`` to a sweep, and show by cross-validation how well they hold.

The error is that of the logarithm of the time, so that small and large graphs, and times too slow and too fast, count the
same. The constants of an algorithm are then adjusted together, so that the smallest estimate of a cell is that of a fast
strategy. No constant is negative. Each graph's times are predicted by constants that were fitted without that graph.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares, minimize, nnls

from kepler_traverse.auto.costs import SPEED_OF_TERM, Costs, Machine, cost_key
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS
from kepler_traverse.multi_source.one_at_a_time import one_at_a_time
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP
from scripts.measure.log import read_whole_lines

STRATEGIES = {
    "bfs": (BFS_REGISTRY.with_plugins()[0], BFS),
    "sssp": (SSSP_REGISTRY.with_plugins()[0], SSSP),
}

FILE = Path(__file__).resolve().parents[2] / "kepler_traverse" / "auto" / "costs.json"
# seconds from which on a time has full weight, and the weight of shorter times
LONG = 0.005
_WEIGHT_OF_SHORT = 0.4
NOTHING: Mapping[str, float] = {}
_UNKNOWN = 0.02  # fraction of the time with which a term begins that no constant is known of
_NEGLIGIBLE = 1e-6  # fraction of the time with which a term that NNLS omits begins
_LINE = ("device", "graph", "work", "peer")
_CELL = ("machine", "graph", "weights", "algorithm", "sources", "result")
_BENT = 0.3  # error from which on it counts in proportion, not squared
# difference of logarithms in which a choice is in doubt, and weight of a regret
_DOUBT = 0.07
_REGRET = 3.0
_LARGEST = 2.0  # logarithm; a larger regret counts as this
# Weight of the difference of the logarithms of a constant and the one before, next to that of a measured time. It decides
# where no measurement does, such as on loads from memory by sweeps of small graphs.
_KEPT = 0.2
_NOTHING = 1e-4  # fraction of the time; a term that never exceeds it is omitted


def read(files: list[Path]) -> list[dict]:
    """Return the lines of logs of the suite regret; of what was measured again only the fastest.

    A strategy that was left out as too slow has no ``seconds``, and ``over``: seconds that it took by then.
    """
    fastest = {}
    for file in files:
        about = {}
        for line in read_whole_lines(file):
            if line["kind"] == "run":
                about = {name: line[name] for name in ("machine", "commit", "versions")}
                continue
            found = about | line | {"seconds": line.get("least"), "over": over(line)}
            found["strategy"] = line["peer"].partition(",")[0]
            key = (str(about["machine"]), *(line[name] for name in _LINE))
            before = fastest.setdefault(key, found)
            if found["seconds"] and found["seconds"] < (before["seconds"] or math.inf):
                fastest[key] = found
    return list(fastest.values())


def over(line: dict) -> float | None:
    words = line.get("why", "").split()
    if words[:1] == ["over"]:
        return float(words[1])
    return None


def total(line: dict) -> float:
    """Return the seconds of a run, with those of building the reverse where the strategy needs one."""
    return line["seconds"] + (line.get("reverse_built") or 0.0)


def strategy_of(line: dict):
    """Return the strategy that a line of a sweep measured."""
    single, several = STRATEGIES[line["algorithm"]]
    key = line["device"], line["strategy"]
    rows = single if line["is_loop"] else several
    found = next(row for row in rows if (row.device, row.name) == key)
    if line["is_loop"]:
        return one_at_a_time(found, line["algorithm"])
    return found


def usable(line: dict) -> bool:
    """Whether a line has a time of a strategy for many sources that its terms may be fitted to.

    Searches within a limit have none where a sample of them reads too much, so that the plan has the shape of whole ones.
    """
    if line.get("seconds") is None or line["sources"] == 1 or line["strategy"] == "auto":
        return False
    return line["result"] != "within" or line["shape"]["is_short"]


def amounts_of(line: dict, costs: Costs) -> dict[str, float]:
    """Amounts of the terms of a line, as if measured on the machine of the constants."""
    machine = Machine(**line["speeds"])
    amounts = line.get("terms")
    if amounts is None:
        shape = Shape(**line["shape"])
        amounts = strategy_of(line).terms(shape, line["sources"], line["group"], machine)
    return costs.scaled(amounts, machine)


def key_of(line: dict) -> str:
    """Return the key of the constants of a line's strategy; that from the targets is in no registry."""
    if "terms" in line:
        return f"{line['algorithm']} {line['strategy']}"
    return cost_key(line["algorithm"], strategy_of(line))


def fitted(
    amounts: list[dict[str, float]], seconds: np.ndarray, before: Mapping[str, float] = NOTHING
) -> dict[str, float]:
    """Nanoseconds per unit of each term. ``before`` are those that it begins with, and keeps to if nothing else decides."""
    terms = [
        term
        for term in dict.fromkeys(term for each in amounts for term in each)
        if any(each.get(term) for each in amounts)
    ]
    matrix = np.array([[each.get(term, 0.0) for term in terms] for each in amounts]) * 1e-9
    shares = matrix / seconds[:, None]
    scale = shares.max(axis=0)
    begin, _ = nnls(shares / scale, np.ones(seconds.size), maxiter=100 * len(terms))
    known = np.array([before.get(term, 0.0) for term in terms])
    is_known = known > 0
    logs = np.log(
        np.maximum(np.where(is_known, known * scale, np.maximum(begin, _UNKNOWN)), _NEGLIGIBLE)
    )
    kept = logs[is_known]

    weights = np.where(seconds > LONG, 1.0, _WEIGHT_OF_SHORT)

    def errors(logs):
        of_times = weights * np.log(np.maximum(shares / scale @ np.exp(logs), _NEGLIGIBLE))
        return np.concatenate([of_times, _KEPT * (logs[is_known] - kept)])

    found = least_squares(errors, logs, loss="soft_l1", f_scale=_BENT, bounds=(-40, 40))
    most = np.exp(found.x)  # the largest share of a time that each term has
    return {
        term: float(f"{share / scale[i]:.4g}")
        for i, (term, share) in enumerate(zip(terms, most, strict=True))
        if share > _NOTHING
    }


def adjusted(
    lines: list[dict], costs: Costs, constants: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Adjust the constants of one algorithm, so that what they choose has little regret and the errors stay small.

    A choice by estimates that differ by less than ``_DOUBT`` counts as a choice of either, so that the sum of errors and
    regrets has a gradient.
    """
    columns = {
        pair: i
        for i, pair in enumerate((key, term) for key in constants for term in constants[key])
    }
    start = np.log([constants[key][term] for key, term in columns])
    amounts = np.zeros((len(lines), len(columns)))
    for i, line in enumerate(lines):
        key = key_of(line)
        for term, amount in amounts_of(line, costs).items():
            if (key, term) in columns:
                amounts[i, columns[key, term]] = 1e-9 * amount
    seconds = np.array([total(line) for line in lines])
    cells = np.unique(
        [json.dumps([line.get(name) for name in _CELL]) for line in lines], return_inverse=True
    )[1]
    best = np.full(cells.max() + 1, np.inf)
    np.minimum.at(best, cells, seconds)
    regret = np.minimum(np.log(seconds / best[cells]), _LARGEST)
    weights = np.where(seconds > LONG, 1.0, _WEIGHT_OF_SHORT)
    of_cell = np.where(best > LONG, _REGRET, 0.0)

    def loss(logs):
        parts = amounts * np.exp(logs)
        estimates = np.maximum(parts.sum(axis=1), 1e-12)
        errors = np.log(estimates / seconds)
        bent = np.sqrt(1 + (errors / _BENT) ** 2)
        likely = -np.log(estimates) / _DOUBT
        most = np.full(best.size, -np.inf)
        np.maximum.at(most, cells, likely)
        chosen = np.exp(likely - most[cells])
        chosen /= np.bincount(cells, chosen)[cells]
        expected = np.bincount(cells, chosen * regret)
        slope = (
            weights * errors / bent - of_cell[cells] * chosen * (regret - expected[cells]) / _DOUBT
        )
        value = (weights * _BENT**2 * (bent - 1)).sum() + (of_cell * expected).sum()
        return value, (parts * (slope / estimates)[:, None]).sum(axis=0)

    found = np.exp(
        minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(each - 2, each + 2) for each in start],
        ).x
    )
    result = {key: dict(terms) for key, terms in constants.items()}
    for (key, term), i in columns.items():
        result[key][term] = float(f"{found[i]:.4g}")
    return result


def fit(lines: list[dict], costs: Costs) -> dict[str, dict[str, float]]:
    """Constants of every strategy that the lines have."""
    by_key = defaultdict(list)
    by_algorithm = defaultdict(list)
    for line in filter(usable, lines):
        by_key[key_of(line)].append(line)
        by_algorithm[line["algorithm"]].append(line)
    constants = {
        key: fitted(
            [amounts_of(line, costs) for line in own],
            np.array([total(line) for line in own]),
            costs.nanoseconds.get(key, NOTHING),
        )
        for key, own in sorted(by_key.items())
    }
    for algorithm, own in by_algorithm.items():
        of_algorithm = {
            key: terms for key, terms in constants.items() if key.split()[0] == algorithm
        }
        constants |= adjusted(own, costs, of_algorithm)
    return constants


def predicted(line: dict, constants: dict, costs: Costs) -> float:
    """Return the estimated seconds of a line; infinite if the constants lack its strategy."""
    found = constants.get(key_of(line))
    if found is None:
        return math.inf
    return 1e-9 * sum(
        found.get(term, 0.0) * amount for term, amount in amounts_of(line, costs).items()
    )


def cross_validated(lines: list[dict], costs: Costs) -> dict:
    """Leave one graph out, fit to the others, and predict it.

    Returns
    -------
    dict
        ``errors``: per strategy, the median and the 90th percentile of the error factor; ``regret``: geometric mean and
        maximum of the regret of the choice, over cells of two or more strategies that take more than LONG; ``predictions``:
        of each time its graph, weights, algorithm, sources, result, strategy, predicted seconds and measured seconds.
    """
    lines = list(filter(usable, lines))
    off = defaultdict(list)
    cells = defaultdict(list)
    predictions = []
    for graph in sorted({line["graph"] for line in lines}):
        constants = fit([line for line in lines if line["graph"] != graph], costs)
        for line in lines:
            if line["graph"] != graph:
                continue
            seconds = predicted(line, constants, costs)
            cell = tuple(
                line[name] for name in ("graph", "weights", "algorithm", "sources", "result")
            )
            cells[cell].append((seconds, total(line)))
            predictions.append([*cell, key_of(line), seconds, total(line)])
            if math.isfinite(seconds) and seconds > 0:
                off[key_of(line)].append(abs(math.log(seconds / total(line))))
    best = {cell: min(taken for _, taken in own) for cell, own in cells.items()}
    regrets = [
        min(own)[1] / best[cell]
        for cell, own in cells.items()
        if len(own) > 1 and best[cell] > LONG
    ]
    return {
        "errors": {
            key: {
                "lines": len(own),
                "median": round(math.exp(np.median(own)), 3),
                "p90": round(math.exp(np.quantile(own, 0.9)), 3),
            }
            for key, own in sorted(off.items())
        },
        "regret": {
            "cells": len(regrets),
            "mean": round(float(np.exp(np.mean(np.log(regrets)))), 4) if regrets else None,
            "largest": round(max(regrets), 3) if regrets else None,
        },
        "predictions": predictions,
    }


def with_unmeasured(
    found: dict[str, dict[str, float]], lines: list[dict], costs: Costs
) -> dict[str, dict[str, float]]:
    """Add the constants before of terms that no line of their strategy has, such as of results that were not measured."""
    measured = defaultdict(set)
    for line in filter(usable, lines):
        amounts = amounts_of(line, costs)
        measured[key_of(line)].update(term for term, amount in amounts.items() if amount)
    return {
        key: terms
        | {
            term: value
            for term, value in costs.nanoseconds.get(key, NOTHING).items()
            if term not in measured[key]
        }
        for key, terms in found.items()
    }


def rescaled(kept: dict, machine: Machine, device: str) -> dict[str, dict[str, float]]:
    """Return the constants that were measured on one machine as those of another one."""
    machine_before = Machine(**kept["measured_on"])
    slower = {
        term: getattr(machine, speed) / getattr(machine_before, speed)
        for term, speed in SPEED_OF_TERM[device].items()
    }
    return {
        key: {term: float(f"{value * slower[term]:.4g}") for term, value in terms.items()}
        for key, terms in kept["nanoseconds"].items()
    }


def main(files: list[Path], output: Path = FILE, without: Collection[str] = ()) -> dict[str, list]:
    """Fit each device that has lines in the files; the constants of other devices are unchanged.

    Strategies of the keys ``without``, and those that no line measures, keep their constants, on the machine of the lines.
    Return the predictions of each device, as ``cross_validated`` makes them.
    """
    lines = [line for line in filter(usable, read(files)) if key_of(line) not in without]
    kept = json.loads(output.read_text()) if output.exists() else {}
    predictions = {}
    for device in sorted({line["device"] for line in lines}):
        own = [line for line in lines if line["device"] == device]
        measured_on = Machine(**own[0]["speeds"])  # lines of other machines are scaled to this one
        before = rescaled(kept[device], measured_on, device) if device in kept else {}
        costs = Costs(device=device, measured_on=measured_on, nanoseconds=before)
        found = fit(own, costs)
        unknown = {term for terms in found.values() for term in terms} - set(SPEED_OF_TERM[device])
        if unknown:
            raise SystemExit(f"terms without a speed: {', '.join(sorted(unknown))}")
        checked = cross_validated(own, costs)
        predictions[device] = checked.pop("predictions")
        errors_before = kept.get(device, {}).get("cross_validation", {}).get("errors", {})
        errors_kept = {key: errors_before[key] for key in without if key in errors_before}
        checked["errors"] = dict(sorted((errors_kept | checked["errors"]).items()))
        kept[device] = {
            "measured_on": asdict(measured_on),
            "nanoseconds": dict(sorted((before | with_unmeasured(found, own, costs)).items())),
            "cross_validation": checked,
        }
        for key, error in checked["errors"].items():
            print(
                f"{device} {key}: {error['lines']} lines, off by {error['median']} (median), {error['p90']} (90 %)"
            )
        print(f"{device}: regret of what would be chosen {checked['regret']}")
    output.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{output} written")
    return predictions
