"""Generated pages are current, and the generators refuse data that would make them wrong."""

import ast
import doctest
import functools
import importlib
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import kepler_traverse
from kepler_traverse.bfs import cpu_steps, gpu_steps
from kepler_traverse.bfs.host_loop import levels, switch
from kepler_traverse.kinds import result_kinds
from scripts.bench import memory_table, networkx_backend, ways_in
from scripts.docs import recipes_page, run_examples, settings_page, signatures, strategies_page
from scripts.docs.count_lines import kernel_lines, lines_of_code, lines_with_code
from scripts.measure import cells, record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages_of_strategies():
    return strategies_page.strategies_page(), strategies_page.published_page()


def test_the_page_of_strategies_is_current(pages_of_strategies, monkeypatch):
    own, published = pages_of_strategies
    monkeypatch.setattr(strategies_page, "strategies_page", lambda: own)
    monkeypatch.setattr(strategies_page, "published_page", lambda: published)
    assert strategies_page.main(["--check"]) == 0


def test_every_strategy_is_on_one_of_the_two_pages_and_auto_on_the_first(pages_of_strategies):
    own, published = pages_of_strategies
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
    assert capsys.readouterr().err == expected


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
    monkeypatch.setattr(recipes_page, "RECIPES", {})
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


@functools.cache
def anchors_of(path):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"\]\((?!https?:|mailto:)([^)#]*)#?([^)]*)\)", text)


def test_links_lead_to_files_and_headings_that_exist():
    links = [(page, *link) for page in PAGES for link in links_of(page)]
    assert len(links) > 500
    for page, target, anchor in links:
        linked = (ROOT / page).parent / target if target else ROOT / page
        assert linked.exists(), f"{page} links to {target}, which does not exist"
        assert not anchor or anchor in anchors_of(linked.resolve()), (
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
INPUTS = [
    f"inputs/{name}.md" for name in ("edge-rows", "files", "labels", "rows", "tables", "zones")
]
# Maps, and places that are no vertices, need coordinates.
WITHOUT_THE_GRAPH = {"results/maps.md", "results/places.md"}


@pytest.mark.parametrize(
    "page", ["quickstart.md", "results.md", "inputs.md", "semantics.md", *INPUTS, *RESULTS]
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert results.attempted >= 4
    assert results.failed == 0


@pytest.mark.parametrize("page", ["hierarchies.md", "labels.md"])
def test_the_examples_for_files_of_the_reader_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    roads = pd.DataFrame({"src": [1, 1, 2], "dst": [2, 3, 3], "weight": [4, 17, 9]})
    roads.to_parquet("roads.parquet")
    names = {"sources": [1, 2], "trips": pd.DataFrame({"origin": [1], "destination": [3]})}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for line, code in run_examples.blocks_of(text):
        assert run_examples.run_block(code, line, page, names)


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
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    measured = record.read()
    closeness = {
        row["peer"]: cells.seconds_of(row)
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
    roads = {
        row["peer"]: cells.per_source(row)
        for row in measured.rows("compare")
        if (row["graph"], row["work"]) == ("USA-road-NE", "bfs")
    }
    ours, theirs = roads["kepler"], roads["cuGraph top-down"]
    for fact in (
        f"in {closeness['kepler']:.0f} s on two cores; NetworkX would take {closeness['networkx'] * nodes / 3600:.1f} h",
        f"{pandana['size']:,} junctions in {ours_of_pandana['least']:.2f} s, "
        f"where pandana takes {pandana['least']:.1f} s",
        f"at {ours:.1f} ms per source on an H200, where cuGraph takes {theirs:.0f} ms",
    ):
        assert fact in text


def test_the_table_of_ways_to_a_graph_is_that_of_the_measurements():
    rows = record.read().rows("ways_in")
    assert {row["work"] for row in rows} == set(ways_in.WAYS)
    assert max(row["peak_bytes"] / row["edge_list_bytes"] for row in rows) <= 3


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
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
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


# Terms of the job and of proofs, by what a page of results says beside the first of each.
EXPLAINED = {
    r"(?<!record )(?<!by )\bbatch(?! by)": r"sources (?:of one|per) part file|sources that are written together",
    r"[Pp]art files?\b|\bparts?\b \(": (
        r"some of the sources|of some|written together|of one part|one part file|per part file|by origin"
    ),
    r"digest": r"checksum",
    r"[Cc]ertif": r"proo|prov",
    r"canonical": r"smallest|decisions",
    r"stored edge": r"direction",
}


@pytest.mark.parametrize("page", RESULTS)
def test_a_page_of_results_explains_each_term_where_it_is_first_used(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = " ".join(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())
    unexplained = []
    for term, meaning in EXPLAINED.items():
        first = re.search(term, text)
        if first and not re.search(meaning, text[max(0, first.start() - 200) : first.end() + 200]):
            unexplained.append(first[0])
    assert unexplained == []


def test_the_page_of_pandana_gives_the_time_of_the_call_alone():
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    (alone,) = re.findall(r"\| the 3 nearest of 500 targets \|.*", page)
    assert alone.split("|")[3].strip() in (ROOT / "docs/from/pandana.md").read_text()
