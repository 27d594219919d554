"""The report of a run: it agrees with the manifest, is self-contained, and escapes all text."""

import re
import sys
from xml.etree import ElementTree

import pytest

from pipelines.monitoring import html_report
from pipelines.monitoring.svg import make_ticks
from pipelines.output.schemas import OUTPUT_SCHEMAS
from tests.support.fake_runs import HOSTILE, Text, batch, made_up
from tests.support.processes import ROOT, ran


def addresses(source):
    return [
        a
        for a in Text(source).attributes
        if a[1] in ("src", "href", "action", "data") and not (a[2] or "").startswith("data:")
    ]


def test_report_is_self_contained():
    source = html_report.render_page(made_up(5), "command")
    assert addresses(source) == []
    assert (
        "default-src 'none'"
        in {name: value for tag, name, value in Text(source).attributes if tag == "meta"}["content"]
    )


def test_the_report_of_thousands_of_batches_is_below_three_megabytes_and_of_one_batch_complete():
    assert len(html_report.render_page(made_up(8000, n_workers=100), "command")) < 3e6
    words = Text(html_report.render_page(made_up(1), "command"))
    assert words.after("sources done") == "4 of 4"


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_ids_errors_and_paths_cannot_break_out_of_their_place_in_the_report(algorithm):
    failed = [
        {
            "file": "part-000002.parquet",
            "sources": [HOSTILE],
            "error": f"CertificateError: {HOSTILE}",
        }
    ]
    retried = [{"file": "part-000001.parquet", "why": HOSTILE}]
    manifest = made_up(
        4, status="failed", failed=failed, retried=retried, algorithm=algorithm, ended_by=HOSTILE
    )
    manifest["parts"][0] |= {"slowest": [HOSTILE, 1.0], "worker": f"tcp://{HOSTILE}"}
    manifest["settings"]["output"] = HOSTILE
    source = html_report.render_page(manifest, f"command {HOSTILE}")
    assert HOSTILE not in source
    assert "<script" not in source
    assert HOSTILE in "".join(Text(source).words)


def test_report_escapes_unprintable_characters_and_writes_invalid_text():
    odd = "\x1b[31m\x00\x9b\u202e\ud800"
    failed = [{"file": "part-000002.parquet", "sources": [odd], "error": odd}]
    manifest = made_up(4, status="failed", failed=failed, ended_by=f"first\n{odd}")
    manifest["settings"]["output"] = odd
    manifest["parts"][0]["slowest"] = [odd, 1.0]
    source = html_report.render_page(manifest, odd)
    assert source.encode("utf-8")
    words = " ".join(Text(source).words)
    assert words.count(r"\x1b[31m\x00\x9b\u202e\ud800") >= 5
    assert "first\n" in words
    assert not set("\x1b\x00\x9b\u202e") & set(source)


def test_the_report_says_what_failed_and_how_to_finish():
    manifest = made_up(6, status="failed", digest=None)
    lost = manifest["parts"].pop()["sources"]
    manifest["failed"] = [
        {
            "file": "part-000005.parquet",
            "sources": lost[:1],
            "error": "CertificateError: source 20: wrong",
        },
        {"file": "part-000005.parquet", "sources": lost[1:3], "error": "MemoryError: no memory"},
    ]
    manifest["retried"] = [{"file": "part-000005.parquet", "why": "its worker died"}]
    words = Text(
        html_report.render_page(
            manifest, "python -m pipelines.batch_sources e.csv --output out --resume"
        )
    )
    assert words.after("failed sources") == "3"
    assert words.after("retries") == "1"
    assert "python -m pipelines.batch_sources e.csv --output out --resume" in words.words
    assert any(word.startswith("Sources that failed: 3; not computed: 1.") for word in words.words)
    assert "1 more were rejected and not written" in words.after("certificates")
    assert {"CertificateError: source 20: wrong", "MemoryError: no memory", "21, 22"} <= set(
        words.words
    )
    assert words.after("digest") == "none: the run is not complete"


@pytest.mark.parametrize("how", ["all", "sample", "none"])
def test_report_says_how_many_results_were_certified(how):
    manifest = made_up(6)
    manifest["settings"]["certify"] = how
    said = Text(html_report.render_page(manifest, "command")).after("certificates")
    assert {
        "all": "all 24 results",
        "sample": "6 of 24 results",
        "none": "no result was certified",
    }[how] in said


def test_parts_of_unknown_time_and_a_run_without_any_part_are_reported_as_such():
    manifest = made_up(6)
    for part in manifest["parts"][:2]:
        for key in ("worker", "started", "ended", "phases", "edges", "distances", "slowest"):
            del part[key]
    text = " ".join(Text(html_report.render_page(manifest, "command")).words)
    assert "No times are known for 8 sources" in text
    assert "24 of 24" in text
    empty = Text(html_report.render_page(made_up(0, status="interrupted", sources=9), "command"))
    assert empty.after("sources done") == "0 of 9"
    assert any("not computed: 9." in word for word in empty.words)


def test_the_time_between_a_run_and_its_resumption_is_cut_out():
    early = [batch(i, started=1000.0 + 2 * i) for i in range(5)]
    late = [batch(i, started=90_000.0 + 2 * i) for i in range(5, 9)]
    closed, pauses = html_report.remove_pauses(early + late)
    assert pauses == [90_010.0 - 1010.0]
    assert [entry["started"] for entry in closed] == [1000.0 + 2 * i for i in range(9)]
    assert all(entry["ended"] - entry["started"] == 2.0 for entry in closed)


def plots_of(source):
    return re.findall(r"<svg.*?</svg>", source, re.DOTALL)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_report_plots_are_whole_svg_inside_their_image(algorithm):
    manifest = made_up(40, n_workers=6, algorithm=algorithm)
    plots = plots_of(html_report.render_page(manifest, "command"))
    assert len(plots) == 6
    for plot in plots:
        root = ElementTree.fromstring(plot)
        width, height = map(float, root.get("viewBox").split()[2:])
        bars = [each for each in root.iter() if each.tag == "rect"]
        assert bars or root.find(".//polyline") is not None
        for bar in bars:
            x, y, wide, high = (float(bar.get(key)) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width + 1
            assert 0 <= y <= y + high <= height
            assert wide > 0
            assert high >= 0


def test_report_plots_show_all_pairs_and_all_seconds():
    manifest = made_up(40, n_workers=6)
    rates, _, _, phases, reach, histogram = plots_of(html_report.render_page(manifest, "command"))
    titles = [each.text for each in ElementTree.fromstring(histogram).iter("title")]
    assert titles == [f"distance {i}: {40 * n} pairs" for i, n in enumerate([4, 12, 20, 4])]
    assert (
        ElementTree.fromstring(reach).findall(".//circle")[-1].find("title").text
        == "up to 3: 100.0 %"
    )
    shown = [each.text for each in ElementTree.fromstring(phases).iter("title")]
    seconds = sum(float(title.rpartition(": ")[2].split()[1]) for title in shown)
    assert seconds == pytest.approx(
        sum(sum(part["phases"].values()) for part in manifest["parts"]), abs=0.01 * len(shown)
    )
    assert "10.0.0.5:4000" in rates


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (0, 1.03), (-0.5, 6.5), (0, 7e9), (3, 3.0001), (0, 0)]
)
@pytest.mark.parametrize("whole", [False, True])
def test_ticks_are_round_and_within_the_range(start, end, whole):
    ticks = make_ticks(start, end, whole=whole)
    assert len(ticks) <= 6
    assert all(start <= tick <= end * (1 + 1e-9) for tick in ticks)
    if whole and end > start:
        assert all(tick == round(tick) for tick in ticks)


def test_report_imports_no_plotting_library_and_the_scheduler_nothing_of_the_library():
    ours = ["kepler_traverse.errors", "kepler_traverse.pipelines.output"]
    loaded = f"print(sorted({{'bokeh', 'dask', 'jinja2', *{ours!r}}} & set(sys.modules)))"
    code = f"import sys; from pipelines.monitoring import run_stats, run_plots; {loaded}; "
    code += f"from pipelines.monitoring import html_report; {loaded}"
    done = ran([sys.executable, "-c", code])
    assert done.stdout == f"[]\n{ours!r}\n", done.stderr


@pytest.mark.parametrize(
    ("result", "says"), [("summary", "all 12 traversals"), ("nearest", "together was certified")]
)
def test_the_report_says_what_was_written_and_what_was_proven(result, says):
    manifest = made_up(3, result=result, means=OUTPUT_SCHEMAS[result].means)
    words = Text(html_report.render_page(manifest, "command"))
    assert f"bfs from 12 sources: {result}" in words.words
    assert words.after("result") == f"{result}: {OUTPUT_SCHEMAS[result].means}"
    assert says in words.after("certificates")


def test_no_part_of_a_page_is_wider_than_a_phone():
    """Fixed widths of the style, at 16 pixels per rem: on 400 pixels those of the narrow rules count."""
    style = (ROOT / "pipelines/monitoring/templates/style.css").read_text(encoding="utf-8")
    wide, narrow = style.split("@media (max-width: 600px)")
    widths = {"rem": 16, "px": 1}

    def fixed(text):
        found = {}
        for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
            for size, unit in re.findall(r"(?<![-\w])(?:min-)?width: ([\d.]+)(rem|px)", body):
                found[selectors.strip()] = float(size) * widths[unit]
        return found

    replaced = {selectors.strip() for selectors, _ in re.findall(r"([^{}]+)\{([^{}]*)\}", narrow)}
    too_wide = {name: size for name, size in fixed(wide).items() if size > 120}
    assert too_wide, "the style has such widths"
    assert set(too_wide) <= replaced
    # what scrolls within its section may be wider
    texts = ".wide td:not(.n), .wide th:not(.n)"
    assert set(fixed(narrow)) == {".plot", "section > .plot", texts}
    # An address of a worker has a line or two, and not a letter per line.
    assert fixed(narrow)[texts] >= 120
    # The plots that are twice as wide as the others have letters of the same size.
    assert fixed(narrow)["section > .plot"] == 2 * fixed(narrow)[".plot"]
    assert "section { padding: .7rem .6rem; overflow-x: auto; }" in narrow
    assert not re.search(r"minmax\(\d", style), "a grid column may not be wider than the page"
