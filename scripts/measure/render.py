"""The pages that show measurements, rendered from their record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.bench import (
    hierarchy,
    hierarchy_baselines,
    hierarchy_gpu,
    networkx_backend,
    roofline,
)
from scripts.bench.extremes import LIBRARIES
from scripts.measure import logs, performance
from scripts.measure.cells import (
    Cells,
    by_work,
    call_of,
    measured_on,
    number,
    runs_of,
    seconds_of,
)
from scripts.measure.environment import ROOT
from scripts.measure.record import Record, Row
from scripts.measure.work import OURS
from scripts.pages import between, by_columns, put, read_record, table

DOCS = ROOT / "docs"
BENCHMARKS = DOCS / "benchmarks"
# --- tables


def beside(suite: str, peer: str, size: str, whole: str) -> Callable[[Record], str]:
    """Return the function that makes a table of calls that this library and another one have made.

    Parameters
    ----------
    suite : str
    peer : str
        Name of the other library; in lower case its package.
    size : str
        The title of how much a call asked for.
    whole : str
        What a time covers.
    """

    def table_of(record: Record) -> str:
        rows = record.rows(suite)
        columns: Cells = {
            "graph": lambda of: of[OURS]["graph"],
            "vertices": lambda of: number(of[OURS]["vertices"]),
            "edges": lambda of: number(of[OURS]["edges"]),
            "call": lambda of: f"`{call_of(of[OURS])}`",
            size: lambda of: number(of[OURS]["size"]),
            "seconds": lambda of: f"{seconds_of(of[OURS]):.3g}",
            f"{peer}, seconds": lambda of: f"{seconds_of(of[peer]):.3g}",
            "ratio": lambda of: f"{seconds_of(of[peer]) / seconds_of(of[OURS]):.2f}",
        }
        run = runs_of(rows)[0]
        machine = run["machine"]
        made = f"on {run['date']} at commit {run['commit']}, on {machine['cores']} cores ({machine['cpu']})"
        both = [of for of in by_work(rows) if peer in of]
        return by_columns(columns, both) + (
            f"\nMeasured by `scripts/bench/{suite}.py` {made}, with {peer} {run['versions'][peer.lower()]}.\n"
            f"Each time covers the whole call, {whole}. A ratio above 1: this library is faster.\n"
            "Both made each call in one process, and their results were compared first.\n"
        )

    return table_of


def extremes(record: Record) -> str:
    """Return seconds of each library, and the smallest ratio to this one."""
    rows = record.rows("extremes")
    peers = [library for library in LIBRARIES if any(row["peer"] == library for row in rows)]

    def ratio(of: dict[str, Row]) -> str:
        others = [seconds_of(row) for peer, row in of.items() if peer != OURS]
        return f"{min(others) / seconds_of(of[OURS]):,.2f}" if others else "-"

    columns: Cells = {
        "graph": lambda of: of[OURS]["graph"],
        "vertices": lambda of: number(of[OURS]["vertices"]),
        "call": lambda of: of[OURS]["work"],
        **{
            LIBRARIES[peer]: lambda of, peer=peer: (
                f"{seconds_of(of[peer]):,.3g} s" if peer in of else "-"
            )
            for peer in peers
        },
        "fastest peer / kepler": ratio,
    }
    versions = ", ".join(
        f"{LIBRARIES[peer]} {runs_of(rows)[0]['versions'][peer]}" for peer in peers if peer != OURS
    )
    return f"{by_columns(columns, by_work(rows))}\n{measured_on(rows, versions)}\n"


def backend(record: Record) -> str:
    """Return seconds of NetworkX, this library and other backends."""
    rows = record.rows("networkx_backend")
    titles = {"networkx": "NetworkX", "parallel": "nx-parallel", "cugraph": "nx-cugraph"}
    peers = [peer for peer in titles if any(row["peer"] == peer for row in rows)]

    def shown(of: dict[str, Row], peer: str) -> str:
        if peer not in of:
            return "-"
        size, nodes = of[peer]["size"], of[OURS]["size"]
        taken = seconds_of(of[peer]) * nodes / size
        words = f"{taken:,.3g} s" if taken < 1000 else f"{taken:,.0f} s"
        words = f"{taken / 3600:.1f} h" if taken >= 7200 else words
        return words if size == nodes else f"{words} (estimated)"

    columns: Cells = {
        "call": lambda of: f"`{call_of(of[OURS])}`",
        "nodes": lambda of: number(of[OURS]["size"]),
        OURS: lambda of: shown(of, OURS),
        networkx_backend.CONVERTING: lambda of: shown(of, networkx_backend.CONVERTING),
        **{titles[peer]: lambda of, peer=peer: shown(of, peer) for peer in peers},
    }
    packages = [package for package in networkx_backend.PACKAGES if package in versions_in(rows)]
    versions = ", ".join(f"{package} {versions_in(rows)[package]}" for package in packages)
    return f"{by_columns(columns, by_work(rows))}\n{measured_on(rows, versions)}\n"


def versions_in(rows: list[Row]) -> dict[str, str]:
    """Return the versions of packages in the runs of rows, the first one of each."""
    found: dict[str, str] = {}
    for run in reversed(runs_of(rows)):
        found |= run["versions"]
    return found


def ways_in(record: Record) -> str:
    """Return the memory and seconds of each way from edges in memory to a graph."""
    rows = record.rows("ways_in")
    columns: Cells = {
        "edges in memory": lambda row: row["work"],
        "what is copied": lambda row: row["copied"],
        "peak memory, edge lists": lambda row: f"{row['peak_bytes'] / row['edge_list_bytes']:.1f}",
        "seconds": lambda row: f"{seconds_of(row):.2f}",
    }
    made = performance.made_on(runs_of(rows)[0])
    return f"{by_columns(columns, rows)}\n{rows[0]['size']:,} edges. {made}\n"


def mib(value: float) -> str:
    return f"{value / 2**20:.0f}"


def sizes(record: Record) -> str:
    """Return the sizes of installations."""
    rows = record.rows("installed_sizes")
    whole, *extras = rows
    largest = {
        name.removeprefix("bytes of "): value
        for name, value in whole.items()
        if name.startswith("bytes of ")
    }
    cells = [
        [whole["work"], mib(whole["bytes"])],
        [f"of it: {', '.join(largest)}", ", ".join(map(mib, largest.values()))],
        *([f"with `[{row['work']}]`", mib(row["bytes"])] for row in extras),
    ]
    return f"{table(['installed', 'MiB'], cells)}\n{performance.installed_by('installed_sizes', rows)}\n"


def sizes_sentence(record: Record) -> str:
    """Return what the README says of sizes."""
    of = {row["work"]: mib(row["bytes"]) for row in record.rows("installed_sizes")}
    return (
        f"The library takes {of['the library']} MiB of disk with its packages, and with the job {of['job']} MiB\n"
        "([by package](docs/versions.md#installed-sizes)).\n"
    )


# --- pages


class Part(NamedTuple):
    """A part of a page, between two markers, and the function that makes it from the record."""

    page: Path
    text: Callable[[Record], str]
    begin: str = "measured: begin"
    end: str = "measured: end"


PARTS: Sequence[Part] = (
    Part(
        DOCS / "from/scipy.md",
        beside("csgraph", "SciPy", "sources", "from the matrix to the arrays"),
    ),
    Part(
        DOCS / "from/pandana.md",
        beside("pandana_network", "pandana", "rows", "from Series to Series"),
    ),
    Part(DOCS / "from/networkx.md", backend),
    Part(DOCS / "results/extremes.md", extremes, "extremes: begin", "extremes: end"),
    Part(DOCS / "inputs" / "tables.md", ways_in),
    Part(DOCS / "versions.md", sizes, "sizes: begin", "sizes: end"),
    Part(ROOT / "README.md", sizes_sentence, "sizes: begin", "sizes: end"),
    Part(ROOT / "README.md", performance.short_table),
    *(
        Part(
            DOCS / "hierarchies.md",
            lambda _, name=name, rendered=rendered: rendered(
                read_record(BENCHMARKS / f"{name}.json")
            ),
            begin,
            end,
        )
        for name, rendered, begin, end in (
            ("hierarchy", hierarchy.rendered, "measured", "end"),
            ("hierarchy_more", hierarchy.rendered_more, "measured more", "end more"),
            ("hierarchy_gpu", hierarchy_gpu.rendered, "measured on a GPU", "end of the GPU"),
            ("hierarchy_baselines", hierarchy_baselines.rendered, "baselines", "end of baselines"),
        )
    ),
)


def pages(record: Record, parts: Sequence[Part]) -> dict[Path, str]:
    """Return the texts of the pages with their parts."""
    texts: dict[Path, str] = {}
    for part in parts:
        text = texts.get(part.page) or part.page.read_text(encoding="utf-8")
        markers = f"<!-- {part.begin} -->", f"<!-- {part.end} -->"
        texts[part.page] = between(text, *markers, part.text(record))
    return texts


def whole_pages(record: Record) -> dict[Path, str]:
    """Return the texts of the pages that are generated as a whole, and of plots."""
    levels, plots = roofline.page(record)
    texts = {
        DOCS / "performance.md": performance.page(record),
        BENCHMARKS / "levels.md": levels,
        logs.LOG / "README.md": logs.index(record),
    }
    return texts | {BENCHMARKS / name: text for name, text in plots.items()}


def put_pages(record: Record, check: bool = False) -> int:
    """Write the pages, or with ``check`` say which are stale; return the exit code."""
    texts = pages(record, PARTS) | whole_pages(record)
    superfluous = [
        path for path in (BENCHMARKS / roofline.PLOTS).glob("*.svg") if path not in texts
    ]
    if check and (edited := logs.edited(record)):
        print(f"{' and '.join(edited)}: a log is never edited, and this one was", file=sys.stderr)
        return 1
    for path in superfluous:
        if check:
            print(
                f"{path.name} is of no page: run python -m scripts.measure write", file=sys.stderr
            )
        else:
            path.unlink()
    return put(texts, "scripts.measure write", check) or int(check and bool(superfluous))
