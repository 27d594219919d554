"""Write docs/strategies.md and docs/published/strategies.md from the registries; ``--check`` only compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path

from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.published import BFS as PUBLISHED_BFS
from kepler_traverse.published import SSSP as PUBLISHED_SSSP
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from scripts.docs import wins
from scripts.docs.count_lines import lines_of_code
from scripts.pages import ROOT, command, filled

BFS = BFS_REGISTRY.with_plugins()[0]
SSSP = SSSP_REGISTRY.with_plugins()[0]

PAGE = ROOT / "docs" / "strategies.md"
PUBLISHED_PAGE = ROOT / "docs" / "published" / "strategies.md"

TITLES = {"bfs": ("Breadth-first search", BFS), "sssp": ("Shortest distances", SSSP)}
MULTI_SOURCE = {
    "bfs": ("Breadth-first search from many sources", BFS_MULTI_SOURCE),
    "sssp": ("Shortest distances from many sources", SSSP_MULTI_SOURCE),
}
NEEDS = {
    "weights": "weights",
    "non_negative": "no negative weight",
    "narrow": "fewer than 2^31 vertices",
    "hierarchy": "a [hierarchy](hierarchies.md)",
    "acyclic": "directed, no cycle",
}
COLUMNS = ("name", "also called", "device", "auto", "needs", "complexity", "wins", "from")
PUBLISHED_COLUMNS = (
    "name",
    "published as",
    "device",
    "needs",
    "complexity",
    "lines",
    "wins",
    "what it teaches",
    "from",
)
SYSTEMS = {"bfs_4k", "h_bf"}  # published, and registered next to the library's own


def knobs() -> Iterator[tuple]:
    """Yield the strategies with knobs: the algorithm, the strategy, its defaults, and a file of settings or None."""
    for algorithm, (_, strategies) in TITLES.items():
        for strategy in (each for each in strategies if each.knobs):
            values = ", ".join(
                f"`{field.name} = {field.default!r}`" for field in fields(strategy.knobs)
            )
            file = f"conf/published/{strategy.name}.toml"
            yield algorithm, strategy, values, file if (ROOT / file).exists() else None


def cells_of(strategy, wins: str) -> dict[str, str]:
    """The cells of a strategy by column."""
    python, cuda = lines_of_code(strategy.plan)
    aliases = ", ".join(f"`{name}`" for name in strategy.aliases)
    needs = [NEEDS[need] for need in sorted(strategy.needs, reverse=True)]
    if strategy.edges == "host":
        needs.append("edges in [host memory](inputs/limits.md#limits)")
    cells = {
        "name": f"`{strategy.name}`",
        "also called": aliases,
        "published as": aliases,
        "device": strategy.device,
        "auto": "auto" if strategy.default else "",
        "needs": ", ".join(needs),
        "complexity": strategy.complexity,
        "lines": f"{python} + {cuda}" if cuda else str(python),
        "wins": wins,
        "what it teaches": strategy.rationale,
        "from": strategy.paper,
    }
    return {column: cell or "-" for column, cell in cells.items()}


def section(call: str, title: str, columns: tuple[str, ...], strategies) -> tuple:
    """Return the section of some strategies of a call, ``bfs``, ``bfs_many`` and so on."""
    cells = [cells_of(strategy, wins_of(strategy, strategies, call)) for strategy in strategies]
    return call, title, columns, [[of[column] for column in columns] for of in cells]


def wins_of(strategy, strategies, call: str) -> str:
    """Return what a strategy wins among those of its table."""
    algorithm, _, many = call.partition("_")
    if many:
        return wins.of_many_sources(strategy.name, algorithm, strategy.device)
    rivals = {each.name for each in strategies if each.device == strategy.device}
    return wins.of_one_source(strategy.name, algorithm, strategy.device, rivals)


def is_published(strategy) -> bool:
    return strategy in PUBLISHED_BFS or strategy in PUBLISHED_SSSP or strategy.name in SYSTEMS


def strategies_page() -> str:
    """The whole text of docs/strategies.md: the library's own strategies."""
    titles = TITLES | {f"{algorithm}_many": found for algorithm, found in MULTI_SOURCE.items()}
    sections = [
        section(call, title, COLUMNS, [each for each in strategies if not is_published(each)])
        for call, (title, strategies) in titles.items()
    ]
    return filled("strategies.md", {}, sections=sections)


def published_page() -> str:
    """The whole text of docs/published/strategies.md."""
    sections = [
        section(call, title, PUBLISHED_COLUMNS, list(filter(is_published, strategies)))
        for call, (title, strategies) in TITLES.items()
    ]
    return filled("published/strategies.md", {}, sections=sections, knobs=knobs())


def texts() -> dict[Path, str]:
    return {PAGE: strategies_page(), PUBLISHED_PAGE: published_page()}


main = partial(command, "scripts.docs.strategies_page", texts)


if __name__ == "__main__":
    sys.exit(main())
