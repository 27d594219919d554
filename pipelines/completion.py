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
    """Return the parser of the command line."""
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


def _complete(parsed: argparse.Namespace) -> int:
    """Print the completion script for the shell that the parsed command line names; return the exit
    code.
    """
    try:
        import shtab
    except ModuleNotFoundError:
        say("error: completion needs shtab, which is not installed: pip install shtab")
        return 2
    from .__main__ import COMMANDS

    joined = join_parsers(COMMANDS, shtab.FILE, shtab.DIRECTORY)
    show(*shtab.complete(joined, parsed.shell).splitlines())
    return 0


def join_parsers(
    commands: Mapping[str, tuple[str, str]], files: object, folders: object
) -> argparse.ArgumentParser:
    """Return one parser with those of all commands as its subcommands, for the package shtab.

    ``commands``: for the name of each command its module and its help. ``files`` and ``folders``:
    objects of shtab that complete names of files and of folders. They are set for arguments whose
    metavar says that they are one.
    """
    result = argparse.ArgumentParser(prog="kepler-traverse")
    result.add_argument("--version", action="store_true", help="print the version")
    subcommands = result.add_subparsers()
    for name, (module, text) in commands.items():
        command = import_module(f".{module}", __package__).parser()
        for action in command._actions:
            kinds = str(action.metavar).split("|")
            if "EDGES" in kinds or "FILE" in kinds:
                action.complete = files
            elif "DIR" in kinds:
                action.complete = folders
        subcommands.add_parser(name, help=text, parents=[command], add_help=False)
    return result
