"""The check of words finds each kind of retired word where it searches for it, and nothing else."""

import pytest

from scripts.ci import check_words


def found(path, text):
    return check_words.retired_words(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "rows_a_source = 1\n", "def f(bytes_a_gpu): ...\n", "_MOST_BINS = LARGEST_WEIGHT = 3\n", "FEWEST_SLOTS = 1\n",
        "told = []\n", "self._told()\n", "x = turn % 3\n", "memory.room\n", "class ManyPlan: ...\n", "f(free_memory())\n",
        "row.misfit(graph)\n", "# 8 bytes a vertex\n", "x = 1  # ms a source\n",
    ],
)  # fmt: skip
def test_a_retired_word_in_the_library_is_found(text):
    (line,) = {each.partition(": ")[0] for each in found("kepler_traverse/search/plan.py", text)}
    assert line == "kepler_traverse/search/plan.py:1"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("int a;\nint turn = 0;\n", 2),
        ("/* one\ntwo */ Told* told;\n", 2),
        ("template <typename Who>\n", 1),
        ("a;\n// 64 bytes a vertex\n", 2),
        ("/* first\n a bit a source */\n", 2),
        ("#define X edges_a_block\n", 1),
    ],
)
def test_a_retired_word_in_a_kernel_is_found_with_its_line(text, line):
    assert {each.split(":")[1] for each in found("kepler_traverse/x.cu", text)} == {str(line)}


def test_an_idiom_in_a_page_is_found_and_one_in_data_of_its_day_is_not():
    assert len(found("docs/operations/run.md", "one\n10 ms a worker, 4 bytes a vertex\n")) == 2
    assert found("docs/performance.md", "10 ms a worker\n") == []


@pytest.mark.parametrize(
    "path", ["kepler_traverse/search/plan.py", "pipelines/verify.py", "tests/test_x.py"]
)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a worker that nobody uses\n", 1),
        ('"""Verify.\n\nThe output is proven right.\n"""\n', 3),
        ('def f():\n    """Return ms a source."""\n', 2),
        ('class A:\n    x = 1\n\n    def f(self):\n        """Mend the file."""\n', 5),
    ],
)
def test_an_idiom_is_found_in_comments_and_docstrings(path, text, line):
    assert {each.split(":")[1] for each in found(path, text)} == {str(line)}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scripts/bench/gpu.py", 'x = "ms a source"\n'),
        ("kepler_traverse/search/plan.py", 'raise InputError("in turn, a bit a source; told")\n'),
        (
            "kepler_traverse/search/plan.py",
            "rows_per_source = MAX_BINS + turned + retold + n_rooms\n",
        ),
        ("kepler_traverse/search/plan.py", "# each block in turn, and edges a task of its own\n"),
        ("kepler_traverse/published/bfs/params.py", "room: int = 2048\n"),
        ("kepler_traverse/x.cu", '#error "turn"\n'),
        ("tests/test_x.py", "told = turn = room\n"),
        ("tests/test_x.py", "def test_few_rows_a_source_make_batches(): ...\n"),
        ("kepler_traverse/sssp/tuning.py", "edges_a_bucket = 32.0\n"),
    ],
)
def test_words_of_the_field_and_texts_of_programs_pass(path, text):
    assert found(path, text) == []


def test_a_file_with_a_retired_word_fails_and_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    (tmp_path / "good.py").write_text("iteration = 1\n")
    (tmp_path / "bad.py").write_text("sources_a_part = 1\n")
    assert check_words.main([str(tmp_path / "good.py")]) == 0
    assert check_words.main([str(tmp_path / name) for name in ("good.py", "bad.py")]) == 1
    assert capsys.readouterr().out == "bad.py:1: sources_a_part: write _per_\n"
