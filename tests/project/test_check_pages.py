"""The check of pages for users finds a page that is too long and each word of a diary, and nothing else."""

import pytest

from scripts.ci import check_pages


def test_all_pages_for_users_pass():
    assert check_pages.main([]) == 0


def test_every_limit_is_that_of_a_page_or_of_pages_to_come():
    unused = [
        pattern
        for pattern in check_pages.LIMITS
        if "*" not in pattern and not (check_pages.ROOT / pattern).exists()
    ]
    assert unused == []


def test_a_page_with_one_word_more_than_its_limit_is_found():
    most = check_pages.LIMITS["docs/quickstart.md"]
    assert check_pages.faults_of("docs/quickstart.md", "| a " * most + "|\n|---|\n") == []
    (fault,) = check_pages.faults_of("docs/quickstart.md", "| a " * most + "| b |")
    assert fault.startswith("docs/quickstart.md: 1,001 words")


@pytest.mark.parametrize(
    "text",
    [
        "Tried there: prefetches.", "At most 2 s are wanted.", "30 ms were\nmissed there.", "median of three, load 5 to 6",
        "(load 0.3)", "in three runs at a load of 2.2", "beside other work (loads 6 to 15)", "the load was\n3.9 before",
        "The load of the machine was unknown.",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["docs/operations/run.md", "docs/performance.md", "docs/from/scipy.md"]
)
def test_a_word_of_a_diary_is_found_with_its_line(path, text):
    faults = check_pages.faults_of(path, f"# A page\n\n{text}\n")
    assert faults
    assert all(fault.startswith((f"{path}:3: ", f"{path}:4: ")) for fault in faults)


@pytest.mark.parametrize("command", ["python -m pipelines.verify", "python3 -m pipelines run"])
def test_a_command_that_the_wheel_does_not_have_is_found(command):
    (fault,) = check_pages.faults_of("docs/results/hops.md", f"text\n\n`{command} out`\n")
    assert fault.startswith("docs/results/hops.md:3: 'python")
    assert fault.endswith("the wheel has kepler-traverse in its place")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/benchmarks/log/2026-11-28-long-runs.md", "tried at load 9\n"),
        ("docs/decisions.md", "tried at load 9\n"),
        (
            "docs/traffic.md",
            "`_loads.pq` holds 3 loads; the load of an edge; it tries 2; load_graph 3\n",
        ),
    ],
)
def test_logs_and_words_of_the_field_pass(path, text):
    assert check_pages.faults_of(path, text) == []


def test_a_planted_fault_ends_the_program_with_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check_pages, "ROOT", tmp_path)
    page = tmp_path / "README.md"
    page.write_text("# A library\n\nIt was tried.\n")
    assert check_pages.main([]) == 1
    assert capsys.readouterr().out.startswith("README.md:3: 'tried': what was tried belongs to")
    page.write_text("# A library\n")
    assert check_pages.main([str(page)]) == 0
