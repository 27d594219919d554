"""Measure contraction and sweeps over hierarchies, and fit the constants of sweeps.

``python -m scripts.regret.hierarchies FOLDER GRAPH ... --cores 1 2 --out FILE`` prints the seconds of each contraction and
of each sweep next to their estimates, and the constants that fit the sweeps. ``--write`` stores these in ``costs.json``.
Graphs are those of ``scripts.bench.hierarchy``: stems of Parquet files in FOLDER, or ``lattice-SIDE``. ``scripts.regret``
measures the other strategies, on graphs without hierarchies.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numba
import numpy as np

from kepler_traverse import Graph, plan_sssp_many
from kepler_traverse.auto.calibration import get_machine
from kepler_traverse.auto.costs import load_costs
from kepler_traverse.hierarchy.estimate import build_seconds
from scripts.bench.hierarchy import SWEEP, graph_of
from scripts.regret.fit import FILE, amounts_of, fitted

SOURCES = 32, 128, 512
TARGETS = 1000
REPEATS = 3


def contraction(graph: Graph, name: str, cores: int) -> dict:
    """Measure a contraction on some threads."""
    numba.set_num_threads(cores)
    machine = get_machine("cpu")
    graph.derived.keep_hierarchy(graph.derived.without_hierarchy().hierarchy(), "weights")
    return {
        "graph": name,
        "cores": cores,
        "seconds": graph.derived.known_hierarchy("weights").seconds,
        "estimate": build_seconds(
            graph.n_vertices, graph.n_edges, graph.directed, cores, machine.step
        ),
    }


def sweeps(graph: Graph, name: str) -> list[dict]:
    """Measure sweeps of some numbers of sources, in the format of the other sweeps."""
    rng = np.random.default_rng(5)
    targets = graph.ids_at(
        rng.choice(graph.n_vertices, min(TARGETS, graph.n_vertices), replace=False)
    )
    lines = []
    for options in ({}, {"targets": targets, "result": "targets"}):
        for k in SOURCES:
            sources = rng.choice(graph.n_vertices, k, replace=False)
            plan = plan_sssp_many(graph, n_sources=k, strategy=SWEEP, **options)
            seconds = []
            for _ in range(REPEATS):
                began = time.perf_counter()
                for _group in plan.iter_groups(sources):
                    pass
                seconds.append(time.perf_counter() - began)
            lines.append(
                {
                    "graph": name,
                    "algorithm": "sssp",
                    "device": "cpu",
                    "strategy": SWEEP,
                    "repeats": False,
                    "sources": k,
                    "group": plan.group,
                    "seconds": min(seconds),
                    "speeds": asdict(get_machine("cpu")),
                    "shape": plan.shape._asdict(),
                }
            )
    return lines


def predicted(amounts: dict[str, float], constants: dict[str, float]) -> float:
    return 1e-9 * sum(constants.get(term, 0.0) * amount for term, amount in amounts.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--cores", type=int, nargs="+", default=[numba.config.NUMBA_NUM_THREADS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    graph_of(Path("lattice-20")).hierarchy()  # compiles
    builds, lines = [], []
    for name in options.graphs:
        graph = graph_of(options.folder / f"{name}.parquet")
        builds += [contraction(graph, name, cores) for cores in options.cores]
        lines += sweeps(graph, name)
    costs = load_costs("cpu")
    key = f"sssp {SWEEP}"
    amounts, seconds = (
        [amounts_of(line, costs) for line in lines],
        np.array([line["seconds"] for line in lines]),
    )
    found = fitted(amounts, seconds)
    for each in builds:
        print(
            f"{each['graph']}, {each['cores']} cores: {each['seconds']:.1f} s, estimated {each['estimate']:.1f} s"
        )
    for line, each in zip(lines, amounts, strict=True):
        before, after = predicted(each, dict(costs.nanoseconds[key])), predicted(each, found)
        print(
            f"{line['graph']}, {line['sources']} sources, {line['shape']['keep']}: {1e3 * line['seconds']:.1f} ms, "
            f"estimated {1e3 * before:.1f}, fitted {1e3 * after:.1f}"
        )
    for title, constants in (("stored", dict(costs.nanoseconds[key])), ("fitted", found)):
        errors = np.exp(np.abs(np.log([predicted(each, constants) for each in amounts] / seconds)))
        print(
            f"{title} {constants}: median error {np.median(errors):.2f}x, largest {errors.max():.2f}x"
        )
    if options.out is not None:
        options.out.write_text(
            json.dumps({"builds": builds, "sweeps": lines}, indent=1) + "\n", encoding="utf-8"
        )
    if options.write:
        stored = json.loads(FILE.read_text(encoding="utf-8"))
        terms = stored["cpu"]["nanoseconds"][key]
        measured = {term for each in amounts for term in each}
        stored["cpu"]["nanoseconds"][key] = {
            term: terms[term] for term in terms if term not in measured
        } | found
        FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
