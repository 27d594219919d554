"""The site of the documentation builds without a warning, has every public name, and can be read on a phone."""

import functools
import importlib.util
import json
import re
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kepler_traverse
from tests.support import chromium
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser")
NAMED = re.findall(
    r"^   ([a-z][\w.]*|[A-Z]\w*)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_reference_has_each_public_name_once():
    assert set(kepler_traverse.__all__) <= set(NAMED)
    assert len(NAMED) == len(set(NAMED)) > 60


# Opens each page in a frame as wide as a screen, and returns what cannot be read there. A name in a table may break, but not
# into pieces of a few characters. The letters of a plot are 12 of its 860 units high: they can be read from 640 pixels on.
# On a desk no line of Python is cut on the pages of first steps and of results.
READ = """(async () => {
  const faults = [];
  const WHOLE = /^(README|docs\\/(results|quickstart|gallery|city|traffic|congestion))/;
  const frame = document.createElement("iframe");
  document.body.append(frame);
  frame.style = "width: WIDTHpx; height: 1000px; border: 0";
  for (const page of PAGES) {
    await new Promise(loaded => { frame.onload = loaded; frame.src = "/" + page; });
    const site = frame.contentDocument;
    const fault = what => faults.push(`${page} ${what}`);
    const {scrollWidth, clientWidth} = site.scrollingElement;
    if (scrollWidth > clientWidth) fault(`is ${scrollWidth} pixels wide`);
    if (!site.querySelector("article p")) fault("is empty");
    for (const image of site.querySelectorAll("article img"))
      if (!image.naturalWidth) fault(`lacks the picture ${image.src}`);
    for (const plot of site.querySelectorAll('article img[src$=".svg"]'))
      if (plot.clientWidth < 640) fault(`shows ${plot.src} ${plot.clientWidth} pixels wide`);
    for (const code of site.querySelectorAll(".highlight-python pre"))
      if (WIDTH > 1000 && WHOLE.test(page) && code.scrollWidth > code.clientWidth) fault(`cuts ${code.textContent}`);
    for (const code of site.querySelectorAll(":is(td, th) code")) {
      const lines = code.getClientRects().length;
      if (lines > 2 && code.textContent.length < 5 * lines) fault(`breaks ${code.textContent}`);
    }
  }
  return faults;
})()"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site, and the outcome of building it."""
    if not all(map(importlib.util.find_spec, NEEDED)):
        pytest.skip("the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source"
    unused = shutil.ignore_patterns(".git", ".venv*", "out", "api", "*cache*", "shared")
    shutil.copytree(ROOT, source, ignore=unused)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", source / "docs"]
    return folder / "site", ran([*command, source, folder / "site"])


class Silent(SimpleHTTPRequestHandler):
    """A server without a log."""

    def log_message(self, *_):
        pass


@pytest.fixture
def address(built):
    """Where the site is served, as frames of files may not be looked into."""
    handler = functools.partial(Silent, directory=built[0])
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.exhaustive
def test_the_site_builds_without_a_warning(built):
    site, done = built
    assert (done.returncode, done.stderr) == (0, "")
    assert (site / "index.html").exists()
    for name in NAMED:
        page = (site / "docs" / "api" / f"kepler_traverse.{name}.html").read_text(encoding="utf-8")
        assert f'id="kepler_traverse.{name}"' in page, f"{name} has no docstring on its page"


@pytest.mark.exhaustive
@pytest.mark.skipif(chromium.CHROMIUM is None, reason="no chromium on the path")
@pytest.mark.parametrize("width", [400, 1400])
def test_each_page_can_be_read_on_a_phone_and_on_a_desk(width, built, address, tmp_path):
    site, _ = built
    pages = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
    own = [page for page in pages if (ROOT / page).with_suffix(".md").exists() or "/api/" in page]
    assert len(own) > 150
    read = READ.replace("PAGES", json.dumps(sorted(own))).replace("WIDTH", str(width))
    ready = "document.readyState === 'complete'"
    seen = chromium.look(f"{address}/README.html", tmp_path, "light", ready, read)
    assert seen.answer == []
