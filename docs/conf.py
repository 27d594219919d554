"""The site: the Markdown pages of the repository, and a reference of the public names from their docstrings.

``pip install -e '.[docs]'`` brings Sphinx, and ``sphinx-build -W -c docs . out/site`` builds the site.
"""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer

import kepler_traverse

HERE = Path(__file__).parent
project = "kepler-traverse"
author = "The kepler-traverse maintainers"
release = kepler_traverse.__version__
extensions = ["myst_parser", "sphinx.ext.autosummary", "numpydoc"]
root_doc = "README"
include_patterns = ["*.md", ".github/SECURITY.md", "docs/**", "tests/kernels/simt/README.md"]
exclude_patterns = ["docs/conf.py", "docs/templates", "docs/changes/*.*.md"]
myst_heading_anchors = 4  # as GitHub makes them
autodoc_typehints = "none"  # docstrings say the types
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
templates_path = [str(HERE / "templates")]  # autosummary would look for them below the root
html_static_path = ["templates/static"]
html_css_files = ["site.css"]
html_title = project
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navbar_center": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_sidebars = {"**": ["contents.html"]}
html_show_sourcelink = False
suppress_warnings = ["toc.not_included"]

# The pages of results, in the order of their contents.
RESULTS = re.findall(
    r"\]\((results/\w[\w-]*)\.md\)", (HERE / "results.md").read_text(encoding="utf-8")
)
# The pages by subject. Others, such as logs of measurements, are reached by links.
CONTENTS = {
    "First steps": [
        "quickstart",
        "gallery",
        "city",
        "inputs",
        "results",
        "traffic",
        "congestion",
        "floating-catchment",
        "proximity",
        "hierarchies",
        "labels",
    ],
    "Inputs": [
        f"inputs/{name}"
        for name in (
            *("files", "tables", "rows", "edge-rows", "labels"),
            *("openstreetmap", "zones", "limits"),
        )
    ],
    "Results": RESULTS,
    "From other libraries": [
        "semantics",
        *sorted(f"from/{path.stem}" for path in HERE.glob("from/*.md")),
    ],
    "Operations": [
        "operations",
        *(
            f"operations/{name}"
            for name in (
                *("run", "files", "tables", "clusters", "shards"),
                *("object-stores", "failures", "runbook", "threats"),
            )
        ),
    ],
    "Reference": ["api", "settings", "strategies", "plugins", "glossary", "versions"],
    "Evidence": ["guarantees", "performance", "memory", "conformance", "published/README"],
    "Development": ["overview", "decisions", "kernels", "testing"],
}
EXAMPLE_END = re.compile(r"(^```python\n(?:(?!```).)*?)\n\n```$", re.MULTILINE | re.DOTALL)
FIRST = '<!doctype html><title>kepler-traverse</title><meta http-equiv="refresh" content="0; url=README.html">\n'


def add_contents(_app, docname, source):
    """The README ends with the contents of the site, which GitHub would show as text."""
    if docname == root_doc:
        for caption, pages in CONTENTS.items():
            names = "\n".join(f"docs/{page}" for page in pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def close_examples(_app, _docname, source):
    """Drop the blank line that ends an example for doctest: a reader would see an empty line."""
    source[0] = EXAMPLE_END.sub(r"\1\n```", source[0])


def write_first_page(app, error):
    if error is None:
        Path(app.outdir, "index.html").write_text(FIRST, encoding="utf-8")


def skip_fields(_app, _what, _name, member, skip, _options):
    """Fields of named tuples have no docstring of their own; their class has one."""
    return skip or (member.__doc__ or "").startswith("Alias for field number")


def setup(app):
    app.add_lexer("mermaid", TextLexer)  # diagrams, as text
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("source-read", add_contents)
    app.connect("source-read", close_examples)
    app.connect("build-finished", write_first_page)
