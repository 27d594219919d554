"""Every example of the pages "from X" runs. A page is skipped without its package, but not for conformance."""

import os
import sys
from pathlib import Path

import pytest

from scripts.docs import run_examples
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "from").glob("*.md"))
SKIPPING_FAILS = bool(os.environ.get("KEPLER_CONFORMANCE"))
NEED_A_GPU = {"cugraph", "cudf", "cupy"}


def run_page(page, folder):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return ran(
        [sys.executable, "-m", "scripts.docs.run_examples", page], cwd=folder, env=environment
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_for_other_libraries_run(page, tmp_path):
    missing = run_examples.missing_packages(page.read_text(encoding="utf-8"))
    if missing and (not SKIPPING_FAILS or NEED_A_GPU & set(missing)):
        pytest.skip(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_for_other_libraries_exist():
    assert PAGES


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("```python\nx = 1\n```\ntext\n```python\n>>> x\n1\n```\n", 0, "2 examples ran"),
        ("```python\n>>> y = [1]\n```\n```python\nassert y == [1]\n```\n", 0, "2 examples ran"),
        ("```python\n>>> 1 + 1\n3\n```\n", 1, "the example in line 2 failed"),
        ("text\n\n```python\nx = 1\nraise KeyError(x)\n```\n", 1, "line 5"),
        ("text\n```\nno example\n```\n", 1, "has no example"),
        (
            "<!-- needs: json, no_such_package -->\n```python\n1 / 0\n```\n",
            3,
            "needs no_such_package",
        ),
        (
            "<!-- needs: no_such_package json -->\n```python\n1 / 0\n```\n",
            3,
            "needs no_such_package",
        ),
        ("<!-- needs: json -->\n```python\n1 / 0\n```\n", 1, "ZeroDivisionError"),
        ("```python\nopen('x', 'w').close()\n```\n", 0, "1 examples ran"),
    ],
)
def test_an_example_that_fails_is_reported_with_its_line(text, code, says, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    done = run_page(page, tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr
