"""The console command ``kepler-traverse``: ``kepler-traverse COMMAND ...``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from kepler_traverse import __version__

from .cli import signals
from .cli.own_programs import own_program
from .cli.terminal import say, show

EXIT_USAGE = 2
# For each command its module in this package, and what it does.
COMMANDS = {
    "run": (
        "batch_sources",
        "search from many sources; results, manifest and report go into a folder",
    ),
    "plan": ("batch_sources", "print what run would do and how much memory it takes"),
    "finish": (
        "finish",
        "complete a run whose shards have ended: check all parts, and commit the manifest",
    ),
    "verify": ("verify", "verify an output folder from its files and the edge list alone"),
    "compare": ("compare", "compare results and times with cuGraph, or with SciPy on a CPU"),
    "extremes": (
        "extremes",
        "diameter, radius, center, periphery, or the vertices of the highest closeness",
    ),
    "assignment": (
        "assignment",
        "flows of trips on congested links; run --result assignment is the same",
    ),
    "serve": ("serve", "answer pairs by Arrow Flight, from the labels that a run wrote"),
    "warm": ("warm", "compile ahead what runs of this machine need"),
    "doctor": ("doctor", "report what works on this machine, and what to install for the rest"),
    "completion": ("completion", "write the completion of these commands for bash, zsh or tcsh"),
}


def main() -> int:
    """Run the command line of this process and return its exit code.

    The first word names a program of this package, and the others are its command line.
    """
    command, *words = sys.argv[1:] or ["--help"]
    if command in ("-h", "--help"):
        show(
            "usage: kepler-traverse COMMAND ...",
            "",
            *(f"  {name:<12}{text}" for name, (_, text) in COMMANDS.items()),
            "",
            "kepler-traverse COMMAND --help lists the options of a command; "
            "run KIND --help those of a result kind.",
        )
        return 0
    if command == "--version":
        show(f"kepler-traverse {__version__}")
        return 0
    if command not in COMMANDS:
        say(f"error: there is no command {command!r}: take one of {', '.join(COMMANDS)}")
        return EXIT_USAGE

    if command == "run":  # some results have a program of their own
        command = own_program(words) or command
    if command == "plan":
        words = ["--plan", *words]
    # Usage and messages name the program as it was typed: see called_as in
    # pipelines/cli/terminal.py.
    sys.argv = [f"kepler-traverse {command}", *words]
    module_name, _ = COMMANDS[command]

    def import_program() -> Any:
        """Import the module of the command; only when signals are handled, since it takes long."""
        return import_module(f".{module_name}", __package__)

    if module_name == "batch_sources":  # whose two processes divide the signals between them
        return int(import_program().program())
    return signals.run_heeding(lambda: int(import_program().main()))


if __name__ == "__main__":
    sys.exit(main())
