"""Write conf/batch_sources.toml and docs/settings.md from the fields of ``pipelines.cli.options.Settings``, and
docs/manifest.schema.json from ``pipelines.output.manifest_types.Manifest``.

``python -m scripts.docs.settings_page`` writes all; with ``--check`` nothing is written, and the exit code is 1 if one is
stale.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path

from pydantic.json_schema import GenerateJsonSchema

from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from pipelines.cli.command_line import make_metavar
from pipelines.cli.constraints import CONSTRAINTS, IDLE
from pipelines.cli.options import OPTIONS, Option, Settings, flag_text
from pipelines.output.manifest_types import Manifest, adapter
from scripts.pages import ROOT, as_text, command, filled

TEMPLATE = ROOT / "conf/batch_sources.toml"
PAGE = ROOT / "docs/settings.md"
SCHEMA = ROOT / "docs/manifest.schema.json"
WIDTH = 125  # characters of a line of the template

TEMPLATE_HEAD = """\
# Every setting of `kepler-traverse run` with its default. Flags override this file. An unknown key is an
# error. Settings without a default are commented out, with an example value.
# Written by scripts/docs/settings_page.py: change pipelines/cli/options.py instead.
"""


def in_toml(value: object) -> str:
    """Return a value as TOML, which is JSON except for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {in_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def in_file(text: str) -> str:
    """Return a help text with flags replaced by keys: ``--result summary`` becomes ``result = "summary"``."""
    text = re.sub(r"--(result) (\w+)", r'\1 = "\2"', text)
    return re.sub(r"--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), text)


def one_of(choices: tuple[str, ...]) -> str:
    if choices:
        return ", ".join(choices[:-1]) + " or " + choices[-1] + ": "
    return ""


def comment_of(text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def template() -> str:
    """The whole text of conf/batch_sources.toml."""
    options = {option.key: option for option in OPTIONS}
    parts = [TEMPLATE_HEAD]
    for each in fields(Settings):
        option = options.get(each.name)
        text = each.metadata["help"]
        if option is not None:
            text = one_of(option.choices) + (option.in_file or in_file(option.help))
        line = f"# {each.name} = {in_toml(each.metadata.get('example'))}"
        if each.default not in (MISSING, None):
            line = f"{each.name} = {in_toml(each.default)}"
        parts.append(f"{comment_of(text)}\n{line}\n")
    return "\n".join(parts)


def value_of(option: Option) -> str:
    """Return the values of a flag, for a cell of the table."""
    if option.kind == "switch":
        return "true or false"
    return (
        " ".join(f"`{choice}`" for choice in option.choices)
        or "`" + make_metavar(option).replace("|", "` or `") + "`"
    )


def page() -> str:
    """The whole text of docs/settings.md."""
    groups = {}
    for option in OPTIONS:
        groups.setdefault(option.group, []).append(option)
    filters = {"value": value_of, "toml": in_toml, "meaning": meaning_of}
    return filled("settings.md", filters, groups=groups, rules=dict.fromkeys(rules()))


def meaning_of(text: str) -> str:
    """Return a help text for a cell of the table."""
    return re.sub(r"--[a-z][a-z-]*", r"`\g<0>`", text).replace("|", "\\|")


def rules() -> Iterator[str]:
    """Yield the rules of several settings, each once, in the order of the tables of constraints."""
    of_kinds = (row for kind in RESULT_KINDS.values() for row in kind.options_class.constraints)
    for row in (*CONSTRAINTS, *of_kinds, *IDLE):
        yield row.described(lambda name, value: f"`{flag_text(name, value)}`")


class Untitled(GenerateJsonSchema):
    """Leaves out the titles of fields, which repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        return False


def schema() -> str:
    """The whole text of docs/manifest.schema.json."""
    text = {
        "$schema": Untitled.schema_dialect,
        **adapter(Manifest).json_schema(schema_generator=Untitled),
    }
    return as_text(text) + "\n"


def texts() -> dict[Path, str]:
    return {TEMPLATE: template(), PAGE: page(), SCHEMA: schema()}


main = partial(command, "scripts.docs.settings_page", texts)


if __name__ == "__main__":
    sys.exit(main())
