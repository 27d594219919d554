"""Completion of the command line for a shell: ``kepler-traverse completion bash``, zsh or tcsh."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module

from .batch_sources import run_program
from .cli.terminal import called_as, say, show

_EPILOG = """\
bash: kepler-traverse completion bash > ~/.local/share/bash-completion/completions/kepler-traverse
zsh:  kepler-traverse completion zsh > a folder of $fpath, as _kepler-traverse
tcsh: kepler-traverse completion tcsh > ~/.kepler-traverse.csh, and source it in ~/.tcshrc
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(
        prog=called_as("completion"),
        description=(
            "Write the completion of all commands to stdout. It needs shtab: pip install shtab"
        ),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    return result


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _complete, argv)


def _complete(given: argparse.Namespace) -> int:
    """Print the completion for a shell; return the exit code."""
    try:
        import shtab
    except ModuleNotFoundError:
        say("error: completion needs shtab, which is not installed: pip install shtab")
        return 2
    from .__main__ import COMMANDS

    show(*shtab.complete(whole(COMMANDS, shtab.FILE, shtab.DIRECTORY), given.shell).splitlines())
    return 0


def whole(
    commands: Mapping[str, tuple[str, str]], a_file: object, a_folder: object
) -> argparse.ArgumentParser:
    """Return one command line with those of all commands, whose values are completed as files and
    folders if they are.
    """
    result = argparse.ArgumentParser(prog="kepler-traverse")
    result.add_argument("--version", action="store_true", help="print the version")
    several = result.add_subparsers()
    for name, (module, text) in commands.items():
        own = import_module(f".{module}", __package__).parser()
        for action in own._actions:
            values = str(action.metavar).split("|")
            if {"EDGES", "FILE"} & set(values):
                action.complete = a_file
            elif "DIR" in values:
                action.complete = a_folder
        several.add_parser(name, help=text, parents=[own], add_help=False)
    return result
