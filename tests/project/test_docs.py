"""Generated pages are current, and the generators refuse data that would make them wrong."""

import ast
import doctest
import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest

import kepler_traverse
from kepler_traverse.bfs import cpu_steps, gpu_steps
from kepler_traverse.bfs.host_loop import levels, switch
from kepler_traverse.kinds import result_kinds
from pipelines import compare
from scripts import make_graphs
from scripts.bench import memory_table, networkx_backend, performance_page, ways_in
from scripts.docs import recipes_page, settings_page, signatures, strategies_page
from scripts.docs.count_lines import kernel_lines, lines_of_code, lines_with_code
from scripts.measure import record, render

ROOT = Path(__file__).resolve().parents[2]

RUN = {
    "title": "A road graph on a laptop", "date": "2026-09-01", "commit": "0123abc",
    "command": "python -m pipelines.compare road.parquet",
    "machine": {"cpu": "CPU", "cores": 2, "memory_gib": 8, "gpu": None, "driver": None},
    "versions": {"scipy": "1.17.1"},
    "traversals": [
        {
            "graph": "road", "vertices": 1000, "edges": 2500, "directed": False, "algorithm": "bfs", "weights": "",
            "device": "cpu", "strategy": "switch", "sources": 64, "seconds": 2.0, "peak_bytes": 2**20, "peer": "SciPy",
            "peer_seconds": 5.0, "peer_peak_bytes": 2**21, "agrees": True, "certified": True,
        }
    ],
    "builds": [
        {
            "graph": "road", "rows": 1250, "device": "cpu", "edge_list_bytes": 2**20, "seconds": 1.0,
            "peak_bytes": 3 * 2**20, "peer": "pandas + SciPy", "peer_seconds": 2.0, "peer_peak_bytes": None,
        }
    ],
    "tables": [
        {
            "name": "cpu_jobs",
            "columns": ["graph", "vertices", "algorithm", "result", "sources", "seconds", "peak_mib"],
            "rows": [["road", 1000, "bfs", "distances", 64, 3.25, 700]],
        }
    ],
    "log": {"file": "2026-09-01-a-road-graph-on-a-laptop.md", "sha256": ""},
}  # fmt: skip
CHOICE = {"device": "cpu", "graph": "road", "algorithm": "bfs", "baseline": "SciPy"}


def test_the_page_of_strategies_is_current():
    assert strategies_page.main(["--check"]) == 0


def test_every_strategy_is_on_one_of_the_two_pages_and_auto_on_the_first():
    own, published = strategies_page.strategies_page(), strategies_page.published_page()
    for _, rows in [*strategies_page.TITLES.values(), *strategies_page.MULTI_SOURCE.values()]:
        for row in rows:
            assert f"| `{row.name}` | " in (published if strategies_page.is_published(row) else own)
            assert not (row.default and strategies_page.is_published(row))
    assert "| auto |" in own
    assert "## Knobs" in published


def test_settings_page_template_and_schema_are_current():
    assert settings_page.main(["--check"]) == 0


def test_signatures_are_those_of_the_dataclasses_of_options():
    pytest.importorskip("ruff")
    assert signatures.main(["--check"]) == 0


def test_the_check_of_signatures_names_a_stale_file(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ruff")
    stale = tmp_path / "_signatures.py"
    stale.write_text(signatures.FILE.read_text().replace("decay: str", "decay: int"))
    monkeypatch.setattr(signatures, "FILE", stale)
    assert signatures.main(["--check"]) == 1
    expected = "_signatures.py is stale: run python -m scripts.docs.signatures\n"
    assert capsys.readouterr().out == expected


def test_settings_page_check_names_a_stale_file(tmp_path, monkeypatch, capsys):
    stale = tmp_path / "settings.md"
    stale.write_text(settings_page.page() + "more\n")
    monkeypatch.setattr(settings_page, "ROOT", tmp_path)
    monkeypatch.setattr(settings_page, "PAGE", stale)
    assert settings_page.main(["--check"]) == 1
    assert (
        capsys.readouterr().err
        == "settings.md is stale: run python -m scripts.docs.settings_page\n"
    )


def test_recipes_and_the_list_of_pages_are_current_and_a_stale_file_is_named(monkeypatch, capsys):
    assert recipes_page.main(["--check"]) == 0
    monkeypatch.setattr(recipes_page, "RULES", "")
    assert recipes_page.main(["--check"]) == 1
    assert (
        capsys.readouterr().err == "AGENTS.md is stale: run python -m scripts.docs.recipes_page\n"
    )
    monkeypatch.setattr(recipes_page, "RECIPES", {"A graph": ("results", "no such section")})
    with pytest.raises(SystemExit, match="no example in the section 'no such section'"):
        recipes_page.recipes()


def test_lines_of_code_are_those_that_a_plan_reaches_and_no_comments(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        '"""What it is."""\n\nx = 1  # one\n# two\ndef f():\n    """Why."""\n    return (1,\n            2)\n'
    )
    assert lines_with_code(file) == {3, 5, 7, 8}
    push, both = (
        levels(cpu_steps.Run, cpu_steps.push),
        levels(cpu_steps.Run, switch(cpu_steps.push, cpu_steps.pull, cpu_steps.is_dense)),
    )
    assert 50 < lines_of_code(push)[0] < lines_of_code(both)[0]
    assert lines_of_code(push)[1] == 0
    assert lines_of_code(levels(gpu_steps.PushRun, gpu_steps.push("warp")))[1] > 0


def test_a_kernel_is_counted_without_the_entry_points_that_others_use():
    counted = {entry.name: kernel_lines({entry}) for entry in gpu_steps.ENTRIES}
    everything = kernel_lines(set(gpu_steps.ENTRIES))
    shared = (sum(counted.values()) - everything) / (len(counted) - 1)
    assert all(0 < shared < lines < everything for lines in counted.values())


def test_the_tables_of_measurements_are_current():
    assert performance_page.main(["check"]) == 0


def test_the_page_of_memory_is_current():
    assert memory_table.main(["--check"]) == 0


def test_a_larger_card_holds_a_larger_graph_and_one_vertex_more_does_not_fit():
    for work in memory_table.WORKS:
        for make_shape in memory_table.SHAPES.values():
            sizes = [memory_table.largest_graph(work, make_shape, card * 10**9) for card in (8, 16)]
            assert 1 < sizes[0] < sizes[1]
            for size, is_enough in ((sizes[0], True), (sizes[0] + 1, False)):
                shape = make_shape(size, work.weight)
                assert (memory_table.sources_per_pass(work, shape, 8 * 10**9) > 0) == is_enough


def test_measurements_become_a_log_with_tables_and_notes():
    text = performance_page.log_text(RUN, "Most of the time goes into the first level.")
    assert (
        "road, undirected | 1,000 | 2,500 | bfs | cpu | switch | 64 | 2 | SciPy | 5 | 2.50 | 1 MiB | 2 MiB"
        in text
    )
    assert "| 3.00 | pandas + SciPy |" in text
    assert "| road | 1,000 | bfs | distances | 64 | 3.25 | 700 |" in text
    assert text.endswith("Most of the time goes into the first level.\n")


def test_the_page_shows_the_newest_figure_and_the_fastest_baseline():
    newer = json.loads(json.dumps(RUN))
    slower = dict(newer["traversals"][0], peer="NetworKit", peer_seconds=8.0)
    newer["traversals"][0]["seconds"] = slower["seconds"] = 1.0
    newer["traversals"].append(slower)
    page = performance_page.performance_page([RUN, newer])
    assert (
        "| road, undirected | 1,000 | 2,500 | bfs | 64 | 1 | 1 MiB | SciPy | 5 | 2 MiB | 5.00 |"
        in page
    )
    assert "NetworKit" not in page
    assert "| road | 1,000 | bfs | distances | 64 | 3.25 | 700 |" in page
    assert "| road | 1,250 | 1 | 3 MiB | 2 | - | 2.00 |" in page
    assert "No measurements" not in page


def test_a_log_is_written_once_and_an_edited_one_is_noticed(tmp_path, monkeypatch, capsys):
    for name in ("LOG", "MEASUREMENTS", "BENCHMARKS", "PAGE", "README"):
        monkeypatch.setattr(performance_page, name, tmp_path / getattr(performance_page, name).name)
    performance_page.MEASUREMENTS.write_text('{"readme": [], "runs": []}')
    performance_page.README.write_text(f"{performance_page.BEGIN}\n{performance_page.END}\n")
    file = tmp_path / "run.json"
    file.write_text(json.dumps({key: value for key, value in RUN.items() if key != "log"}))
    assert performance_page.main(["add", str(file)]) == 0
    assert performance_page.main(["check"]) == 0
    assert performance_page.main(["add", str(file)]) == 2
    assert "never written twice" in capsys.readouterr().err
    (log,) = [path for path in performance_page.LOG.glob("*.md") if path.name != "README.md"]
    assert log.name in (performance_page.LOG / "README.md").read_text()
    log.write_text(log.read_text().replace("5", "6"))
    assert performance_page.main(["check"]) == 1
    assert "never edited" in capsys.readouterr().err


def test_the_newest_time_of_a_graph_goes_to_the_readme():
    newer = json.loads(json.dumps(RUN))
    newer["traversals"][0]["seconds"] = 1.0
    text = performance_page.readme_with(
        f"head\n{performance_page.BEGIN}\nold\n{performance_page.END}\ntail\n",
        [RUN, newer],
        [CHOICE],
    )
    assert "old" not in text
    assert "| 5.00 |" in text
    assert "| 2.50 |" not in text
    assert text.startswith("head\n")
    assert text.endswith("\ntail\n")


def test_pages_without_measurements_say_so():
    assert "No measurements" in performance_page.performance_page([])
    assert "No measurements" in performance_page.short_table([], [])
    with pytest.raises(performance_page.Malformed, match="no run has measured"):
        performance_page.short_table([RUN], [CHOICE | {"graph": "lattice"}])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"certified": False}, "was not certified"),
        ({"agrees": False}, "does not agree"),
        ({"speed": 1}, "unknown key 'speed'"),
    ],
)
def test_a_time_whose_result_is_not_right_is_refused(change, message):
    wrong = json.loads(json.dumps(RUN))
    wrong["traversals"][0] |= change
    with pytest.raises(performance_page.Malformed, match=message):
        performance_page.pages({"readme": [], "runs": [wrong]})


def test_a_file_that_is_no_measurement_is_refused(tmp_path, capsys):
    file = tmp_path / "other.json"
    file.write_text("{}")
    before = performance_page.MEASUREMENTS.read_bytes()
    assert performance_page.main(["add", str(file)]) == 2
    assert "neither a run nor" in capsys.readouterr().err
    assert performance_page.MEASUREMENTS.read_bytes() == before


def test_output_of_compare_becomes_a_run(tmp_path, monkeypatch, capsys):
    edges = tmp_path / "little.parquet"
    make_graphs.main(
        ["erdos-renyi", "--vertices", "50", "--edges", "200", "--weights", "--output", str(edges)]
    )
    capsys.readouterr()
    # in children
    monkeypatch.setattr("pipelines.comparison.peak_memory", lambda *_: {"ours": 1, "peer": 2})
    assert compare.main([str(edges), "--random-sources", "2", "--device", "cpu", "--json"]) == 0
    printed = tmp_path / "compare.json"
    printed.write_text(capsys.readouterr().out)
    for name in ("MEASUREMENTS", "PAGE", "README", "BENCHMARKS", "LOG"):
        monkeypatch.setattr(performance_page, name, tmp_path / getattr(performance_page, name).name)
    performance_page.MEASUREMENTS.write_text('{"readme": [], "runs": []}')
    performance_page.README.write_text(f"{performance_page.BEGIN}\n{performance_page.END}\n")
    assert performance_page.main(["add", str(printed)]) == 2
    assert "give --title, --commit, --date, --cpu" in capsys.readouterr().err
    flags = ["--title", "Little", "--commit", "0123abc", "--date", "2026-09-01", "--cpu", "CPU"]
    assert performance_page.main(["add", str(printed), *flags]) == 0
    (run,) = json.loads(performance_page.MEASUREMENTS.read_text())["runs"]
    assert [row["algorithm"] for row in run["traversals"]] == ["bfs", "sssp"]
    assert all(
        row["agrees"] and row["certified"] and row["sources"] == 2 for row in run["traversals"]
    )
    assert "| little, directed | 50 |" in performance_page.PAGE.read_text()
    assert run["log"]["file"] == "2026-09-01-little.md"
    assert performance_page.main(["check"]) == 0


# Entries of the changelog have the links that they will have there.
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "changes"),
        *ROOT.glob(".github/**/*.md"),
        *ROOT.glob("tests/**/*.md"),
    ]
)


def anchors_of(path):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#]*)#?([^)]*)\)", text):
        linked = (ROOT / page).parent / target if target else ROOT / page
        assert linked.exists(), f"{page} links to {target}, which does not exist"
        assert not anchor or anchor in anchors_of(linked), (
            f"{page} links to #{anchor}, which {linked.name} lacks"
        )


def test_the_tree_in_the_overview_exists():
    text = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
    tree = text.split("```text\n", 1)[1].split("```", 1)[0]
    folders, missing = [ROOT], []
    for line in tree.splitlines():
        entry = re.match(r"((?:│   |    )*)(?:├── |└── )(\S+)", line)
        if entry:
            depth = len(entry[1]) // 4
            path = folders[depth] / entry[2].rstrip("/")
            folders[depth + 1 :] = [path]
            if not path.exists():
                missing.append(path.relative_to(ROOT).as_posix())
    assert len(tree.splitlines()) > 20
    assert missing == []


RESULTS = sorted(
    path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/results/*.md")
)
# What `maps.plot` draws is a generated town, which has coordinates.
WITHOUT_THE_GRAPH = {"results/maps.md"}


@pytest.mark.parametrize(
    "page", ["quickstart.md", "results.md", "inputs.md", "semantics.md", *RESULTS]
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert results.attempted >= 4
    assert results.failed == 0


def test_the_contents_of_results_list_each_page_and_each_kind():
    text = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((results/[\w-]+\.md)\)", text)) == RESULTS
    kinds = {name for name in result_kinds.RESULT_KINDS if f"`{name}`" not in text}
    assert kinds == set()


@pytest.mark.parametrize("page", RESULTS)
def test_a_page_of_results_has_the_graph_the_call_three_rules_and_the_job(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    contents = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    (graph,) = re.findall(r"```python\n.*?```", contents, re.DOTALL)
    assert (graph in text) == (page not in WITHOUT_THE_GRAPH)
    title = re.findall(r"^# (.*)$", text, re.MULTILINE)[0]
    assert f"[{title}]({page})" in contents
    shown, _, folded = text.partition("<details>")
    call = shown.partition("\n## What to type\n")[2].partition("\n## ")[0]
    assert ">>> " in call
    rules = shown.partition("\n## Rules\n")[2]
    assert len(re.findall(r"^- ", rules, re.MULTILINE)) == 3
    assert "<summary>As a job" in folded
    assert re.findall(r"\b(?:digest|[Cc]ertificate|certified)\b", shown) == []


def test_the_sentences_of_the_readme_have_the_numbers_of_the_records():
    benchmarks, text = (
        ROOT / "docs/benchmarks",
        " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()),
    )
    measured = record.read()
    closeness = {
        row["peer"]: render.seconds_of(row)
        for row in measured.rows("networkx_backend")
        if row["work"] == "closeness_centrality(G), 90,000 nodes"
    }
    nodes = 90_000 / networkx_backend.SAMPLE
    # the record of the table on the page of pandana, whose class the same line names
    nearest = {
        row["peer"]: row
        for row in measured.rows("pandana_network")
        if row["work"] == "nearest_pois, 3 of 500"
    }
    ours_of_pandana, pandana = nearest["kepler"], nearest["pandana"]
    runs = json.loads((benchmarks / "measurements.json").read_text())["runs"]
    wanted = {
        "graph": "USA-road-NE",
        "algorithm": "bfs",
        "device": "cuda",
        "baseline": "cuGraph top-down",
    }
    roads = [
        row for run in runs for row in run["traversals"] if performance_page.matches(row, wanted)
    ][-1]
    ours, theirs = (1e3 * roads[key] / roads["sources"] for key in ("seconds", "peer_seconds"))
    for fact in (
        f"in {closeness['kepler']:.0f} s on two cores; NetworkX would take {closeness['networkx'] * nodes / 3600:.1f} h",
        f"{pandana['size']:,} junctions in {ours_of_pandana['least']:.2f} s, "
        f"where pandana takes {pandana['least']:.1f} s",
        f"at {ours:.1f} ms per source on an H200, where cuGraph takes {theirs:.0f} ms",
    ):
        assert fact in text


def test_the_table_of_ways_to_a_graph_is_that_of_the_measurements():
    found = json.loads((ROOT / "docs" / "benchmarks" / "ways_in.json").read_text(encoding="utf-8"))
    assert len(found["ways"]) == len(ways_in.WAYS)
    assert max(row["ratio"] for row in found["ways"]) <= 3


def test_the_version_stands_in_one_place_which_the_build_reads_without_an_import():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "kepler_traverse.__version__"
    }
    # setuptools takes a literal of the module's text, and imports the module where there is none.
    body = ast.parse((ROOT / "kepler_traverse" / "__init__.py").read_text(encoding="utf-8")).body
    assigned = [node for node in body if isinstance(node, ast.Assign)]
    literals = [
        ast.literal_eval(node.value)
        for node in assigned
        if ast.unparse(node.targets[0]) == "__version__"
    ]
    assert literals == [kepler_traverse.__version__]


def test_the_changelog_names_the_version_of_the_package():
    heading = rf"^## {re.escape(kepler_traverse.__version__)}\b"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_python_example_of_the_readme_runs_as_typed(capsys):
    readme = performance_page.README.read_text(encoding="utf-8")
    ((example, shown),) = re.findall(
        r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", readme, re.DOTALL
    )
    on_a_cpu, _, on_a_gpu = example.partition("graph = graph.to(")
    assert on_a_gpu
    names = {}
    exec(on_a_cpu, names)
    assert capsys.readouterr().out == shown
    assert names["near"]["distance"].tolist() == [0, 900, 600]  # home, school, work
    assert names["route"]["vertex"].tolist() == ["home", "work", "school", "home", "work"]
    assert names["table"].shape == (6, 3)
    assert names["times"]["distance"].tolist() == [900, 300]
    assert names["closest"]["source"].tolist() == ["home", "work", "work"]
    assert names["central"]["reached"].tolist() == [3, 3]


def test_the_citation_names_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(kepler_traverse.__version__)}$", text, re.MULTILINE)


def test_the_changelog_begins_with_the_sections_of_what_is_unreleased():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    assert unreleased.startswith("Unreleased\n")
    sections = re.findall(r"^### (\w+)$", unreleased, re.MULTILINE)
    assert sections in ([], ["Added", "Changed", "Fixed", "Removed"])  # none after a version is cut


def test_the_console_command_can_be_called():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["kepler-traverse"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert module == "kepler_traverse.pipelines.__main__"
