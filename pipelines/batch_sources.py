"""Edge list and sources in, Parquet files of distances out: ``python -m pipelines.batch_sources
--help``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from .cli import signals, steps, supervisor
from .cli.command_line import Once, OnceParser, options_in, parse_flags, parser, to_resume
from .cli.options import FILES_OF_IDS, OPTIONS, UsageError, flag_text
from .cli.own_programs import own_program
from .cli.supervisor import UNWATCHED, Supervision
from .cli.terminal import called_as, log_said, pasted, say
from .output.schemas import (
    OUTPUT_SCHEMAS,
    failed_plugins,
    refuse_failed_plugins,
    with_failed_plugins,
)

# Modules that the extra ``job`` installs, and Dask's own that they import.
_OF_EXTRA_JOB = {
    "bokeh",
    "cryptography",
    "dask",
    "distributed",
    "jinja2",
    "markupsafe",
    "prometheus_client",
    "pydantic",
    "rich",
}
# What the files are that a run reads beside the edge list, by the settings that name them.
_GIVEN_TABLES = {
    "pairs": "table of pairs",
    "sources": "table of the sources",
    "targets": "file with the targets",
}
_GIVEN_TABLES |= {
    option.key: f"table of {option.flag}"
    for option in OPTIONS
    if option.key in FILES_OF_IDS or (option.group == "result" and option.kind == "file")
}
EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
EXIT_NEGATIVE_CYCLE = 4
EXIT_INTERRUPTED = 130


def program() -> int:
    """Run the command line of this process and return the exit code.

    The run is in a child process. This process watches it, and has another one finish the run if
    the child dies.
    """
    other = own_program(sys.argv[1:])
    if other is not None:  # the result has a program of its own
        return signals.run_heeding(import_module(f".{other}", __package__).main)
    return signals.run_heeding(lambda: supervisor.run(main, sys.argv[1:]))


def main(argv: list[str] | None = None, supervision: Supervision = UNWATCHED) -> int:
    """Run the command line and return its exit code, which is one of those that ``--help`` lists.

    ``argv``: without the program's name; from ``sys.argv`` if not given. ``supervision``: whether
    another process takes over if this one dies.
    """
    argv = sys.argv[1:] if argv is None else argv
    options = options_in(argv)
    try:
        if "-h" in options or "--help" in options:
            _print_help(argv)
            return 0
        flags, config = parse_flags(argv)
        refuse_failed_plugins()

        # The steps of the run are shown on the terminal from now on.
        if supervision.is_watched and "--plan" not in options:
            steps.show()
            steps.begin("starting")
        with contextlib.ExitStack() as stack:
            # Workers import their modules while this process imports its own. All imports come as
            # late as they can, so that --help and a misspelt flag are answered at once.
            with without_collections(f"{__package__}.run.driver"):
                from .scheduling.worker_processes import begun_ahead, started_ahead

                begun = stack.enter_context(begun_ahead(flags))
                from .cli.settings import read_settings

                settings = read_settings(flags, config)
                processes = stack.enter_context(started_ahead(settings, begun))
                from kepler_traverse.errors import options_spelled, show_notices
                from kepler_traverse.runtime.object_stores import WAITS

                from .engines import open_engine
                from .run import driver

            # Notices of the library, and waits for an object store, are printed.
            show_notices(say)
            WAITS.report_by(say)
            with options_spelled(flag_text), log_said(settings.verbose):
                resume_command = f"{called_as('batch_sources')} {pasted(to_resume(argv))}"
                open_with_processes = functools.partial(open_engine, processes=processes)
                return driver.run(settings, resume_command, open_with_processes, supervision)
    except KeyboardInterrupt as interrupt:
        say(str(interrupt) or "interrupted before anything was written")
        return EXIT_INTERRUPTED
    except Exception as error:
        # The module of these errors may not be imported yet. Then this error is none of them.
        errors = sys.modules.get(f"{__package__}.scheduling.errors")
        is_unusable = errors is not None and isinstance(error, errors.ProcessUnusableError)
        if is_unusable and supervision.is_watched:  # then the watching process goes on
            return supervisor.EXIT_UNUSABLE
        return report_error(error, debug="--debug" in options)


@contextlib.contextmanager
def without_collections(last_import: str) -> Iterator[None]:
    """Keep Python from looking for unreachable objects among those of modules, while these are
    imported and later: there are none, and each time it looks takes up to a tenth of a second.

    ``last_import``: the name of a module that is imported meanwhile. If it was imported before,
    nothing is changed, as other objects would never be released.
    """
    if last_import in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _print_help(argv: list[str]) -> None:
    """Print the help of the job, or that of a result kind that the command line names.

    ``argv``: the words of the command line, which has -h or --help.
    """
    kind = next((word for word in argv if word in OUTPUT_SCHEMAS), None)
    # A word that is no kind may be one of a plug-in that cannot be used; then the error says so.
    if kind is None and not argv[0].startswith("-"):
        refuse_failed_plugins()
    parser(kind).print_help()
    _note_failed_plugins()


def run_program(
    parser: Callable[[], Any],
    work: Callable[[Any], int],
    argv: Sequence[str] | None,
    interrupted: str = "interrupted",
) -> int:
    """Run a program other than the job: parse its command line, call ``work(parsed)``, report what
    that raises, and return the exit code.

    ``parser()`` returns the parser. ``argv``: the words of the command line; None for those of this
    process. ``interrupted``: what is printed after an interrupt. Addresses of edge lists that
    contain secrets, such as passwords, are refused.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if {"-h", "--help"} & set(options_in(words)):
            parser().print_help()
            _note_failed_plugins()
            return 0
        parsed = parser().parse_args(words)
        refuse_failed_plugins()
        # Imported here, so that --help and a misspelt flag are answered at once.
        from kepler_traverse.errors import show_notices
        from kepler_traverse.runtime.object_stores import WAITS

        # Notices of the library, and waits for an object store, are printed.
        show_notices(say)
        WAITS.report_by(say)
        if hasattr(parsed, "edges"):
            from .cli.settings import refuse_secrets

            refuse_secrets("EDGES", *parsed.edges)
        return work(parsed)
    except KeyboardInterrupt:
        say(interrupted)
        return EXIT_INTERRUPTED
    except Exception as error:
        return report_error(error, debug="--debug" in options_in(words))


def _note_failed_plugins() -> None:
    """Print a note for each plug-in that cannot be used, which says why."""
    for problem in failed_plugins():
        say(f"note: {problem}")


def add_tables(program: OnceParser) -> None:
    """Add to a parser the options of all programs that read an output folder: present paths of the
    tables of the run, which may have been moved, --json and --debug.
    """
    for name, what in _GIVEN_TABLES.items():
        program.add_argument(
            "--" + name.replace("_", "-"),
            action=Once,
            metavar="FILE",
            help=f"{what} of the run, if it was moved",
        )
    program.add_argument(
        "--json", action=Once, nargs=0, help="print one JSON object on stdout and nothing else"
    )
    program.add_argument("--debug", action=Once, nargs=0, help="show the traceback of an error")


def moved_tables(parsed: Any) -> dict[str, str]:
    """Return the paths of the tables that a parsed command line names, by their settings.

    Raises an error for an address that contains secrets, or that is incomplete.
    """
    from .cli.settings import refuse_half_addresses, refuse_secrets

    tables = {key: getattr(parsed, key) for key in _GIVEN_TABLES if hasattr(parsed, key)}
    for key, path in tables.items():
        refuse_secrets(f"--{key}", path)
        refuse_half_addresses(f"--{key}", path)
    return tables


def report_error(error: Exception, debug: bool) -> int:
    """Print one message for an error, without secrets, and return its exit code.

    ``debug``: whether the traceback is printed, too.
    """
    from kepler_traverse.errors import (
        InputError,
        KeplerError,
        NegativeCycleError,
        PrecisionError,
        how_to_install,
        without_secrets,
    )

    if debug:
        say(*without_secrets("".join(traceback.format_exception(error))).splitlines())
    code = EXIT_UNEXPECTED
    message = str(error)
    disk_fault = _describe_disk_fault(error)
    missing_package = ""
    if isinstance(error, ModuleNotFoundError):
        missing_package, _, _ = str(error.name).partition(".")

    if isinstance(error, UsageError):
        code = EXIT_USAGE
        message = with_failed_plugins(message)
    elif disk_fault:
        code = EXIT_USAGE
        message = disk_fault
    elif isinstance(error, (InputError, PrecisionError)):
        code = EXIT_USAGE  # values too large to be added up are bad input, too
    elif isinstance(error, NegativeCycleError):
        code = EXIT_NEGATIVE_CYCLE
    elif missing_package in _OF_EXTRA_JOB:
        message = f"the job needs {missing_package}, which is not installed: " + how_to_install(
            "job"
        )
    elif not isinstance(error, KeplerError):
        message = f"unexpected {type(error).__name__}: {error}; --debug shows where it comes from"
    say(without_secrets(f"error: {message}"))
    return code


def _describe_disk_fault(error: Exception) -> str:
    """Describe an error of a disk that the user can correct: a folder is gone, full or read-only;
    ``""`` for other errors.
    """
    if not isinstance(error, OSError):
        return ""
    # ``getcwd`` fails if the current folder was deleted, which is the cause then.
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except FileNotFoundError:
            return "the current folder does not exist any more; change to another one"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        place = (
            error.filename
            or "a folder of the run: --output, --graph-cache, TMPDIR or NUMBA_CACHE_DIR"
        )
        return (
            f"{place}: a file cannot be written there: {error.strerror}; "
            "free space, or take another folder"
        )
    return ""


if __name__ == "__main__":
    sys.exit(program())
