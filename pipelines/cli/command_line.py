"""The command line of the job, and parsers of the other programs: which flags there are, and which
were given.

It imports no large packages, so that ``--help`` prints at once.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kepler_traverse.kinds import rules
from kepler_traverse.kinds.result_kinds import ResultKind

from ..output.schemas import OUTPUT_SCHEMAS
from .options import KINDS, OPTIONS, SETTINGS, SOURCE_CHOICES, Option, UsageError
from .terminal import called_as, show

# how a value below 0 begins: "-1", "-.5", "-inf"
_VALUE_BELOW_ZERO = re.compile(r"-(\.?[0-9]|inf|nan)", re.IGNORECASE)
_EXAMPLES = """\
examples:
  {program} roads.parquet --undirected --random-sources 64 --output out
  {program} edges.csv --algorithm sssp --sources 3,17,99 --output out
  {program} --config conf/road.toml roads.parquet --output out --plan

{program} KIND --help lists the options of one result kind.

exit codes: 0 done, 1 unexpected error, 2 bad input or usage, 3 some sources failed, 4 negative cycle, 130 interrupted
"""


class OnceParser(argparse.ArgumentParser):
    """An argument parser that raises UsageError and takes no flag twice."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **keywords
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of a command line, by default those of this process, and return a
        namespace of values by key. The error for an unknown option suggests similar ones.
        """
        parsed, unknown = self.parse_known_args(self._join_values(args), namespace)
        if unknown:
            flags = [word for word in unknown if word.startswith("-") and word != "--"]
            if flags:
                self.error(self._describe_unknown(flags[0].partition("=")[0]))
            self.error(f"unexpected argument {unknown[0]!r}")
        return parsed

    def error(self, message: str) -> Any:
        """Raise UsageError with a message of argparse. If a flag has no value, add what to do with
        a value that looks like a flag. argparse calls this, and would end the process itself.
        """
        without_value = re.match(r"argument (?P<flag>--\S+): expected one argument$", message)
        if without_value:
            message += f"; a value that begins with - is given as {without_value['flag']}=VALUE"
        raise UsageError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        """Print a message of argparse, the help, on stdout as all output of the job; argparse calls
        this. ``file`` is ignored, since it is always stdout here: errors are raised instead.
        """
        show(*message.splitlines())

    def _join_values(self, args: Any) -> list[str]:
        """Return the words of a command line, in which a flag and a value that begins with a
        negative number are one word, such as ``--cutoff=-1``. Argparse would take the value for a
        flag. ``args`` None stands for the command line of this process.
        """
        words = list(sys.argv[1:] if args is None else args)
        # flags that take a value; a switch takes none
        with_value = {
            flag for flag, action in self._option_string_actions.items() if action.nargs != 0
        }
        joined: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--":  # no option comes after it
                return [*joined, word, *words]
            if word in with_value and words and _VALUE_BELOW_ZERO.match(words[0]):
                word = f"{word}={words.pop(0)}"
            joined.append(word)
        return joined

    def _describe_unknown(self, name: str) -> str:
        """Return an error text for an unknown option ``name``, with up to four options that it may
        mean: those that begin with it, or else those of similar spelling.
        """
        known = [flag[2:] for flag in self._option_string_actions if flag.startswith("--")]
        bare_name = name.strip("-").replace("_", "-")
        similar = [flag for flag in known if bare_name and flag.startswith(bare_name)]
        if not similar:
            similar = difflib.get_close_matches(bare_name, known, 3, 0.7)
        if not similar:
            return f"unknown option {name}"
        flags = [f"--{flag}" for flag in similar[:4]]
        return f"unknown option {name}; did you mean {' or '.join(flags)}?"


class Once(argparse.Action):
    """Store the value of a flag, or for a switch whether it is on; raise an error if the flag was
    given before.

    Values that are dictionaries, as of ``--columns``, are joined if they have no key in common.
    """

    def __init__(self, option_strings: Any, dest: Any, const: Any = None, **keywords: Any) -> None:
        # SUPPRESS: a flag that is not given leaves no attribute in the namespace
        super().__init__(option_strings, dest, const=const, default=argparse.SUPPRESS, **keywords)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> Any:
        """Store the parsed value of a flag in the namespace; argparse calls this for each flag.

        ``values``: the parsed value; not used for a switch, for which True is stored, or False if
        ``option_string``, the flag as it was given, turns the switch off.
        """
        earlier = getattr(namespace, self.dest, None)
        # ``--columns src=a --columns dst=b`` is one flag; any other is given once.
        if isinstance(earlier, dict) and not earlier.keys() & values.keys():
            values = earlier | values
        elif hasattr(namespace, self.dest):
            parser.error(
                f"{option_string} is given twice, or against another flag for the same setting"
            )
        if self.nargs == 0:  # a switch, which is off by the second of its flags
            value = not option_string.startswith(("--no-", "--undirected"))
        else:
            value = values
        setattr(namespace, self.dest, value)


def make_metavar(option: Option) -> str:
    """Return the placeholder in ``--help`` for the value of a flag without choices: that of its
    kind in ``KINDS``, if the kind has one.
    """
    if KINDS[option.kind].metavar:
        return KINDS[option.kind].metavar
    if option.key == "where":
        return "CONDITION"
    if option.key.endswith("_address"):
        return "ADDRESS"
    return "NAME"


def add_option(group: Any, option: Option) -> None:
    """Add the flag of one setting to an argparse group."""
    if option.kind == "switch":  # which has two flags, and no value
        _add_switch(group, option)
        return
    default = ""
    if option.default is not None:
        default = f" (default: {option.default})"
    group.add_argument(
        option.flag,
        dest=option.key,
        action=Once,
        type=KINDS[option.kind].parse,
        choices=option.choices or None,
        metavar=None if option.choices else make_metavar(option),
        help=option.help + default,
    )


def _add_switch(group: Any, option: Option) -> None:
    """Add the two flags of a setting that is on or off to an argparse group. ``Once`` stores True
    for ``option.flag``, and False for the other one.
    """
    off = "--no-" + option.flag[2:]
    if option.key == "directed":
        off = "--undirected"
    short = ["-v"] if option.key == "verbose" else []
    group.add_argument(
        *short, option.flag, off, dest=option.key, action=Once, nargs=0, help=option.help
    )


def _takes(kind: ResultKind, option: Option) -> bool:
    """Return whether a result of a kind may be asked for together with an option, and with the
    setting that the option itself needs. ``--help`` of a kind lists these options.
    """
    needed_key = option.table
    if option.key == "seed":
        needed_key = "random_sources"
    needed = [other for other in OPTIONS if other.key == needed_key]
    if option.key == "result" or not all(_takes(kind, other) for other in needed):
        return False
    # A kind that answers a table of pairs takes its sources from there, and none otherwise.
    if kind.needs_pairs and option.key in SOURCE_CHOICES:
        return option.key == "pairs"

    # Names of arguments of the library, which rules are written with, by the keys of settings.
    names = {key: name for name, key in SETTINGS.items()}
    names |= dict.fromkeys(("max_depth", "cutoff"), "limit")
    names |= dict.fromkeys(SOURCE_CHOICES, "sources")
    names["pairs"] = "pairs"  # a source choice that has a rule of its own
    return rules.takes(kind, names.get(option.key, option.key), OUTPUT_SCHEMAS)


def parser(kind: str | None = None) -> OnceParser:
    """Return the parser of the job's command line, with all options. For ``--help`` of one result
    kind, ``kind`` is its name, and only the options that it takes are there.
    """
    program = called_as("batch_sources")
    question = "(--sources ... | --random-sources N | ...)"
    if kind is not None:
        question = f"--result {kind}"
    result = OnceParser(
        prog=program,
        usage=f"%(prog)s EDGES... --output DIR {question} [options]",
        description=(
            "Traverse a graph from many sources: an edge list on disk "
            "becomes Parquet files of distances."
        ),
        epilog=_EXAMPLES.format(program=program),
    )
    result.add_argument(
        "edges", nargs="*", metavar="EDGES", help="files, folders, globs or URLs of the edge list"
    )

    # Options by group, in the order of the first of each.
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS:
        if kind is not None and not _takes(OUTPUT_SCHEMAS[kind], option):
            continue
        if option.group not in groups:
            groups[option.group] = result.add_argument_group(option.group)
        add_option(groups[option.group], option)

    groups["running"].add_argument(
        "--config",
        action=Once,
        type=Path,
        metavar="FILE",
        help="TOML file with settings; flags override it",
    )
    return result


def options_in(words: Sequence[str]) -> list[str]:
    """Return the words of a command line that may be options: those before the first ``--``."""
    return list(itertools.takewhile(lambda word: word != "--", words))


def to_resume(words: Sequence[str]) -> list[str]:
    """Return the words of the command line that resumes the run which ``words`` began: the same,
    with ``--resume`` as the last option.
    """
    options = options_in(words)
    others = [word for word in options if word not in ("--resume", "--no-resume")]
    after_options = words[len(options) :]
    return [*others, "--resume", *after_options]


def parse_flags(argv: list[str]) -> tuple[dict[str, Any], Path | None]:
    """Parse a command line; return the values of the flags that were given, by the keys of
    settings, and the path of the settings file.

    Raises UsageError: a flag is unknown, given twice, or without its value.
    """
    flags = vars(parser().parse_args(argv))
    config = flags.pop("config", None)
    if not flags["edges"]:  # none is given here: an empty list would override the settings file
        del flags["edges"]
    return flags, config
