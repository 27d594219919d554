"""The record of the papers and the pages: what is computed, what is compared, and that no page is stale."""

from __future__ import annotations

import re

import pytest

from kepler_traverse.published import BFS, SSSP
from kepler_traverse.published.bfs import bfs_4k, expand_contract
from kepler_traverse.published.sssp import h_bf
from scripts.docs import wins
from scripts.pages import ROOT
from scripts.papers import claims, mutants, page, record, said, tables
from scripts.papers.claims import FAILS, HOLDS, IN_PART, TIE, UNKNOWN
from scripts.papers.experiments import (
    BFS_4K,
    BY_NAME,
    H_BF,
    H_BF_NEGATIVE,
    SEVILMIS,
    SPRINGER,
    UIUC_TABLES,
)
from scripts.papers.record import Record, Time, added, is_faster, machine_of

RUN = {
    "kind": "run",
    "date": "2026-11-27",
    "commit": "0123abc",
    "command": "python -m scripts.measure run papers",
    "machine": {"cpu": "CPU", "cores": 16, "memory_gib": 8, "gpu": "NVIDIA H100", "driver": "1.2"},
    "versions": {"python": "3.12.0"},
}


def line(
    graph,
    strategy,
    label="published",
    *,
    median,
    spread=0.01,
    device="cuda",
    how="published",
    threads=0,
):
    group = "features" if how == "feature" else "systems"
    given = {
        "graph": graph,
        "algorithm": "bfs",
        "suite": "papers",
        "group": group,
        "on": device,
        "strategy": strategy,
    }
    more = {"label": label, "threads": threads, "how": how, "rounds": 3, "sources": 2}
    return (
        {"kind": "time"}
        | given
        | more
        | {"median": median, "least": median, "spread": spread, "repeats": 5}
    )


def record_of(*lines, run=RUN):
    return added(Record(), [run, *lines])


# --- the record ----------------------------------------------------------------------------------------------------------


def test_the_pages_are_those_of_the_record():
    assert page.main(["check"]) == 0


def test_a_record_that_something_else_changed_is_refused(tmp_path):
    place = tmp_path / "measured.json"
    for path, text in record.texts_of(wins.papers_record(), place).items():
        path.write_text(text)
    assert record.read(place).times == wins.papers_record().times
    counts = record.counts_file(place)
    renamed = counts.read_text().replace('"many_blocks"', '"source_per_block"')
    assert renamed != counts.read_text()
    counts.write_text(renamed)
    with pytest.raises(
        record.MalformedError, match=r"measured_counts\.json was changed by something other than"
    ):
        record.read(place)


def test_counters_in_the_record_have_the_names_that_the_strategies_give():
    names = {
        "bfs_4k": {*bfs_4k._COUNTED, *bfs_4k._STEPS},
        "h_bf": {*h_bf._COUNTED, "enqueued", "child_launches", "overflows"},
        "gather_expand_contract": {*expand_contract._COUNTED, "overflows"},
        "bellman_ford": {"relaxations"},
    }
    for each in record.read().counters:
        assert set(each["counters"]) <= names[each["strategy"]]


def test_a_newer_time_replaces_an_older_one_and_the_record_reads_as_it_was_written(tmp_path):
    found = record_of(line("g", "bfs_4k", median=2.0))
    newer = added(found, [RUN | {"commit": "fedcba"}, line("g", "bfs_4k", median=1.0)])
    assert newer.time("g", "bfs_4k").median == 1.0
    assert [run["commit"] for run in newer.runs] == ["fedcba"]
    for path, text in record.texts_of(newer, tmp_path / "measured.json").items():
        path.write_text(text)
    assert record.read(tmp_path / "measured.json").times == newer.times


def test_times_of_two_machines_are_kept_and_never_compared():
    other = RUN | {"machine": RUN["machine"] | {"gpu": "NVIDIA H200"}}
    both = added(
        record_of(line("g", "bfs_4k", median=1.0), line("g", "scan_flags", median=3.0)),
        [other, line("g", "scan_edges", median=2.0)],
    )
    assert len(both.stored) == 3
    assert {time.strategy for time in both.times.values()} == {"bfs_4k", "scan_flags"}
    assert both.machines["g", "bfs", "cuda", "systems"] == "H100"
    assert machine_of(other, "cpu") == "CPU, 16 cores"


def test_lines_of_another_suite_are_refused():
    with pytest.raises(record.MalformedError, match="suite papers was expected"):
        record_of(line("g", "s", median=1.0) | {"suite": "cpu"})


# --- verdicts ------------------------------------------------------------------------------------------------------------


def time_of(median, spread):
    return Time(
        "g",
        "bfs",
        "cuda",
        "s",
        "published",
        0,
        "systems",
        "published",
        0,
        median,
        spread,
        5,
        1,
        1.0,
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (time_of(1.0, 0.02), time_of(1.05, 0.02), True),
        (time_of(1.0, 0.03), time_of(1.05, 0.03), False),
        (time_of(1.0, 0.0), time_of(1.015, 0.0), False),  # never less than 1 % each
        (time_of(1.0, None), time_of(1.5, None), False),  # a spread that is not known
        (time_of(1.0, None), time_of(1.7, None), True),
        (time_of(2.0, 0.0), time_of(1.0, 0.0), False),
    ],
)
def test_a_difference_counts_beyond_both_spreads(one, other, expected):
    assert is_faster(one, other) is expected


RIVALS = ("scan_flags", "scan_edges")


def claim_of(measured):
    return claims.Claim("it is so", "a figure", measured)


FASTEST = claim_of(claims.fastest("g h", "bfs_4k", *RIVALS))


def verdict(claim, *lines, mode="published"):
    return claim.result(record_of(*lines), mode).verdict


def test_the_fastest_everywhere_in_part_nowhere_or_within_the_spread():
    mine = [line(graph, "bfs_4k", median=1.0) for graph in "gh"]

    def with_rival(*medians, spread=0.01):
        rivals = [
            line(graph, "scan_edges", median=median, spread=spread)
            for graph, median in zip("gh", medians, strict=True)
        ]
        return verdict(FASTEST, *mine, *rivals)

    assert with_rival(2.0, 2.0) == HOLDS
    assert with_rival(2.0, 0.5) == IN_PART
    assert with_rival(0.5, 0.5) == FAILS
    assert with_rival(1.1, 1.1, spread=0.2) == TIE
    assert verdict(FASTEST) == UNKNOWN


def test_a_factor_holds_with_four_fifths_of_the_papers(monkeypatch):
    monkeypatch.setattr(claims, "paper_ratios", lambda *_: {"g": 4.0})
    claim = claim_of(claims.speedup("g", "scan_flags", "bfs_4k", "a table"))
    for rival, expected in ((4.0, HOLDS), (3.3, HOLDS), (2.0, IN_PART), (0.9, FAILS)):
        assert (
            verdict(claim, line("g", "bfs_4k", median=1.0), line("g", "scan_flags", median=rival))
            == expected
        )


def test_each_way_to_choose_knobs_has_a_verdict_of_its_own():
    lines = [line("g", "bfs_4k", median=2.0), line("g", "bfs_4k", "rule", median=0.5, how="rule")]
    lines += [line(graph, "scan_flags", median=1.0) for graph in "g"]
    claim = claim_of(claims.fastest("g", "bfs_4k", "scan_flags"))
    assert verdict(claim, *lines) == FAILS
    assert verdict(claim, *lines, mode="rule") == HOLDS
    row = page.claim_rows(record_of(*lines), claim)
    assert row[4] == f"**{FAILS}; by the rule: {HOLDS}**"


def test_a_search_counts_with_the_knobs_of_a_rule_and_not_as_published():
    lines = [
        line("g", "scan_deferred", median=2.0),
        line("g", "scan_deferred", "room 4096", median=1.0, how="search"),
    ]
    found = record_of(*lines)
    assert claims.row(found, "g", "scan_deferred", "published").label == "published"
    assert claims.row(found, "g", "scan_deferred", "rule").label == "room 4096"


def test_a_feature_helps_where_the_set_is_slower_without_it():
    claim = claim_of(claims.feature("g", "bfs_4k", "children"))
    for without, expected in ((2.0, HOLDS), (0.5, FAILS), (1.01, TIE)):
        of_feature = line("g", "bfs_4k", "without children", median=without, how="feature")
        beside_it = line("g", "bfs_4k", median=1.0) | {"group": "features"}
        assert verdict(claim, beside_it, of_feature) == expected
        # of another group
        assert verdict(claim, line("g", "bfs_4k", median=1.0), of_feature) == UNKNOWN


@pytest.mark.parametrize("name", said.PAPERS)
def test_every_claim_has_a_verdict_also_where_nothing_is_measured(name):
    measured = wins.papers_record()
    for claim in claims.CLAIMS[name]:
        for mode in claims.MODES:
            assert claim.result(Record(), mode) == claims.NOT_MEASURED
            assert claim.result(measured, mode).verdict in page.VERDICTS


def test_pages_of_an_empty_record_say_that_nothing_is_measured():
    texts = page.pages(Record())
    for name in said.PAPERS:
        assert UNKNOWN in texts[page.FOLDER / f"{name}.md"]
        assert "## Likely reasons" not in texts[page.FOLDER / f"{name}.md"]


# --- pages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n_figures"), [("bfs-4k", 5), ("h-bf", 4), ("uiuc-bfs", 5)])
def test_figures_of_the_papers_are_those_of_their_tables(name, n_figures):
    of_tables = [
        each
        for each in claims._LISTED[name]
        if each["measure"][0] == "speedup" and len(each["measure"]) > 4
    ]
    assert len(of_tables) == n_figures
    for each in of_tables:
        _, graphs, _, _, table, place = each["measure"]
        rows = getattr(said, table.upper())
        if table == "uiuc":
            rows = {graph: rows[graph] for graph in UIUC_TABLES[graphs] if graph in rows}
        ratios = [times[place] / times[-1] for times in rows.values() if times[place]]
        assert each["figure"].endswith(claims.mean_text(ratios))


def test_every_graph_that_stands_for_one_of_a_paper_is_made_here_and_its_original_has_statistics():
    for listed in (
        BFS_4K,
        H_BF,
        {graph: name for graph, (name, _) in H_BF_NEGATIVE.items()},
        SPRINGER,
    ):
        assert set(listed) <= set(BY_NAME)
        assert set(listed.values()) <= set(said.ORIGINALS)
    assert set(SEVILMIS.values()) == set(said.SEVILMIS_1) == set(said.SEVILMIS_23)
    assert {graph for graphs in UIUC_TABLES.values() for graph in graphs} <= set(BY_NAME)


def test_levels_are_drawn_with_the_kernel_that_ran():
    steps = [[True, 0, 2, 1, 5, 0, 0, 9], [False, 2, 1, 5, 40, 3, 1, 90]]
    found = line("g", "bfs_4k", median=1.0)
    found |= {"n_steps": 2, "steps": steps, "vertices": [[0, 1], [1, 5]]}
    texts = page.pages(record_of(found))
    assert "| published | 2 | 1 | 45 | 3 | 1 |" in texts[page.FOLDER / "bfs-4k.md"]
    assert "<circle" in texts[page.FOLDER / "plots" / "levels-g.svg"]


def test_wins_are_those_of_the_record_and_say_how_many_were_measured():
    found = wins.on_a_gpu("persistent", "bfs", {"persistent", "queue_warp", "queue_thread"})
    n_won, n_graphs = map(int, re.search(r"on (\d+) of (\d+) graphs", found).groups())
    assert 0 < n_won <= n_graphs
    assert "H200" in found or "H100" in found
    # Of the three, the record has times of two.
    assert "of 2 that were measured" in found


def test_every_system_of_the_papers_has_a_settings_file():
    names = {path.stem for path in (ROOT / "conf" / "published").glob("*.toml")}
    for algorithm, rows in (("bfs", BFS), ("sssp", SSSP)):
        for row in rows:
            assert names & {row.name, f"{row.name}_{algorithm}"}, row.name


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda each: each.name.split()[0])
def test_a_mutant_changes_one_place_and_names_a_test(mutant):
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert (
        f"def test_{mutant.test}("
        in (ROOT / "tests" / "published" / "test_features_act.py").read_text()
    )


def test_a_run_of_another_commit_is_another_run():
    found = added(
        record_of(line("g", "a", median=1.0)), [RUN | {"commit": "x"}, line("g", "b", median=1.0)]
    )
    assert [run["commit"] for run in found.runs] == ["0123abc", "x"]
    assert found.time("g", "a").run == 0


# --- what a reader looks for -----------------------------------------------------------------------------------------------

# Figures, tables and algorithms in the texts of the papers.
NUMBERED = {
    "bfs-4k": {"Figure": 15, "Table": 2},
    "h-bf": {"Figure": 9, "Table": 3, "Algorithm": 6},
    "uiuc-bfs": {"Figure": 4, "Table": 3},
    "springer": {"Figure": 17, "Algorithm": 2},
    "sevilmis": {"Figure": 7, "Table": 3, "Algorithm": 2},
}


@pytest.fixture(scope="module")
def rendered():
    return page.pages(wins.papers_record())


@pytest.mark.parametrize("name", said.PAPERS)
def test_every_figure_and_table_of_a_paper_has_a_place_on_its_page_or_a_word_why_not(
    name, rendered
):
    wanted = {
        f"{kind} {number}" for kind, last in NUMBERED[name].items() for number in range(1, last + 1)
    }
    text = rendered[page.FOLDER / f"{name}.md"]
    listed = text.partition("## Figures and tables of the paper")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\| ((?:Figure|Table|Algorithm) \d+) \| (.+) \| (.+) \|$", listed, re.MULTILINE
    )
    assert {item for item, _, _ in rows} == wanted
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert set(re.findall(r"\[([^]]*)\]\(#", listed)) <= set(headings)


@pytest.mark.parametrize("name", said.PAPERS)
def test_every_verdict_against_a_claim_has_a_reason_with_figures(name):
    measured = wins.papers_record()
    for claim in claims.CLAIMS[name]:
        verdicts = {result.verdict for result in claim.results(measured)}
        if verdicts & {FAILS, IN_PART}:
            reason = claim.reason(measured)
            assert re.search(r"\d", reason), claim.said
            assert not reason.endswith(".")


@pytest.mark.parametrize("name", said.PAPERS)
def test_reasons_need_no_more_than_what_the_record_has(name):
    for claim in claims.CLAIMS[name]:
        if claim.reason:
            with pytest.raises(record.NotMeasuredError):
                claim.reason(Record())


@pytest.mark.parametrize("name", said.PAPERS)
def test_the_table_of_claims_has_short_cells_and_comes_first(name, rendered):
    text = rendered[page.FOLDER / f"{name}.md"]
    assert re.search(r"^## (.*)$", text, re.MULTILINE).group(1) == "Claims"
    for claim in claims.CLAIMS[name]:
        for cell in page.claim_rows(wins.papers_record(), claim)[2:]:
            assert len(cell) <= 120, cell


def test_the_first_page_has_short_cells(rendered):
    conclusions = rendered[page.FOLDER / "README.md"].partition("## ")[0]
    for row in conclusions.splitlines():
        assert all(len(cell) <= 260 for cell in row.split("|"))


def test_times_that_are_missing_are_listed_with_the_reason_of_the_record():
    why = line("g", "scan_edges", median=1.0) | {"kind": "left", "why": "about 9 s per search"}
    found = record_of(line("g", "scan_flags", median=1.0), why)
    names = ("scan_flags", "scan_edges", "bfs_4k")
    rows = [tables.Row("", name, "as published", [found.time("g", name)]) for name in names]
    text = tables.Tables(found).left(rows, ["g"], "bfs")
    assert "`scan_edges` on g (about 9 s per search)" in text
    assert "not reached by the runs so far: `bfs_4k` on g" in text
    assert "scan_flags" not in text


def test_relaxations_of_different_numbers_of_sources_are_compared_per_search():
    def counted(strategy, label, relaxations, sources):
        entry = line("g", strategy, label, median=1.0) | {"algorithm": "sssp"}
        more = {"counters": {"relaxations": relaxations}, "sources": sources, "rounds": 4}
        return entry | more | {"out_edges": 100 * sources, "reached": 5 * sources}

    about = wins.papers_record().graphs["USA-road-NY"]
    graph = {"kind": "time", "suite": "papers", "graph": "g", "statistics": about}
    found = record_of(
        graph,
        counted("h_bf", "published", 3200, 16),
        counted("h_bf", "rule", 1600, 16),
        counted("bellman_ford", "with a queue", 800, 2),
        counted("bellman_ford", "without a queue", -1, 1),
    )
    text = page.pages(found)[page.FOLDER / "h-bf.md"]
    assert "| g | 16 and 2 and 1 | 100 | 400 (4) | too many to count | 200 (2) | 100 (1) |" in text


@pytest.mark.parametrize(
    ("rival", "spread", "expected"),
    [(2.0, 0.01, HOLDS), (0.5, 0.01, FAILS), (0.9, 0.2, TIE)],
)
def test_the_first_place_counts_beyond_the_spread(rival, spread, expected):
    measured = claims.Claim("", "", claims.place("scan_flags", "g")).result
    found = record_of(
        line("g", "scan_flags", median=1.0, spread=spread),
        line("g", "scan_level", median=rival, spread=spread),
    )
    assert measured(found, "published").verdict == expected


def test_a_variant_is_close_to_others_within_a_quarter():
    measured = claims.close("g", "scan_virtual_warp", "scan_edges", "scan_relax_edges")
    for edges, relaxed, expected in ((1.0, 0.9, HOLDS), (1.0, 0.5, IN_PART), (0.5, 0.5, FAILS)):
        found = record_of(
            line("g", "scan_virtual_warp", median=1.0),
            line("g", "scan_edges", median=edges),
            line("g", "scan_relax_edges", median=relaxed),
        )
        assert measured(found, "published").verdict == expected
