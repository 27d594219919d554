"""Each path and module that configuration, workflows, comments or pages name exists in the checkout."""

import re
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from tests.support.processes import ran, skip_without_repository

ROOT = Path(__file__).resolve().parents[2]
skip_without_repository()
TRACKED = ran(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT
).stdout.split()
FOLDERS = {str(folder) for path in TRACKED for folder in PurePosixPath(path).parents}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

NAMED_PATH = re.compile(
    r"(?<![\w./:-])"
    r"((?:kepler_traverse|pipelines|scripts|tests|docs|conf|examples|\.github)/[\w./-]*\w)"
    r"(?![\w/*])"
)
# What tells of the past, and what gives an example of a path.
MAY_NAME_ANY = {
    "CHANGELOG.md",
    "docs/mutants.md",
    "tests/project/test_check_words.py",
    "tests/kernels/test_mutation.py",
}
MAY_NAME = {
    "conf/published/NAME.toml",
    "docs/guarantees",  # a pattern of Git
    "kepler_traverse/_reached.py",  # in copies of the tree that mutation tests make
    "scripts/check",  # the begin of a name, in a regular expression
}

# What stands at the top of the checkout. An example that is run there leaves files, and they must not be committed.
FOLDERS_AT_THE_TOP = {
    *(".ci", ".github"),
    *("conf", "docs", "examples", "kepler_traverse", "pipelines", "scripts", "tests"),
}
FILES_AT_THE_TOP = {
    *(".clang-format", ".git-blame-ignore-revs", ".gitignore", ".pre-commit-config.yaml"),
    *("AGENTS.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md"),
    *("llms.txt", "pyproject.toml", "setup.py"),
}


def is_there(path: str) -> bool:
    return path in FOLDERS or path in TRACKED


def texts():
    for path in TRACKED:
        is_data = path.startswith("docs/benchmarks/") or path.endswith((".json", ".svg", ".png"))
        if is_data or path in MAY_NAME_ANY or path == "tests/project/test_paths.py":
            continue
        file = ROOT / path
        if not file.is_file():
            continue
        try:
            yield path, file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_nothing_else_stands_at_the_top():
    tops = {PurePosixPath(path).parts[0] for path in TRACKED}
    assert tops == FOLDERS_AT_THE_TOP | FILES_AT_THE_TOP


def test_each_path_that_a_text_names_exists():
    missing = [
        f"{file} names {path}"
        for file, text in texts()
        if file != ".pre-commit-config.yaml"  # whose paths are patterns: the next test
        for path in NAMED_PATH.findall(text)
        if path not in MAY_NAME and not is_there(path)
    ]
    assert not missing, "\n".join(missing)


def alternatives(pattern: str) -> list[str]:
    """The patterns of which one must match, where ``pattern`` is ``^(a|b)$`` or a single one."""
    group = re.fullmatch(r"\^\((.*)\)\$", pattern)
    if group is None:
        return [pattern]
    return [f"^{one}$" for one in re.split(r"\|(?![^(]*\))", group.group(1))]


def hook_patterns() -> list[str]:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    return re.findall(r"^ +files: (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "pattern",
    [one for pattern in hook_patterns() for one in alternatives(pattern)],
)
def test_each_alternative_of_a_hook_matches_a_file(pattern):
    assert any(re.search(pattern, path) for path in TRACKED)


def test_alternatives_are_told_apart():
    assert alternatives(r"^(a|b/(c|d)\.md)$") == ["^a$", r"^b/(c|d)\.md$"]
    assert alternatives(r"\.cu$") == [r"\.cu$"]


def modules_of_configuration() -> set[str]:
    """Modules of ours that pyproject.toml names, without patterns."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r"[\"'( ]((?:kepler_traverse|pipelines|scripts)(?:\.\w+)+)\b", text)
    return {name for name in named if not name.startswith("kepler_traverse.pipelines")}


def test_each_module_of_the_configuration_exists():
    modules = modules_of_configuration()
    assert len(modules) > 50
    tracked = set(TRACKED)
    for module in modules:
        path = module.replace(".", "/")
        holder = path.rpartition("/")[0]
        named = {f"{path}.py", f"{path}/__init__.py", f"{holder}.py", f"{holder}/__init__.py"}
        assert is_there(path) or named & tracked, module


def test_each_path_of_the_linter_exists():
    for pattern in PROJECT["tool"]["ruff"]["lint"]["per-file-ignores"]:
        assert any(PurePosixPath(path).match(pattern) for path in TRACKED), pattern


def test_modules_without_hints_have_compiled_functions():
    """mypy checks functions without hints everywhere but in modules whose functions Numba compiles."""
    unchecked = PROJECT["tool"]["mypy"]["overrides"][0]
    assert unchecked["check_untyped_defs"] is False
    for module in unchecked["module"]:
        file = ROOT / f"{module.replace('.', '/')}.py"
        text = file.read_text(encoding="utf-8")
        assert re.search(r"njit\b|\bintrinsic\b", text), module
