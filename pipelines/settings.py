"""Settings of the main job: defaults, then a file of ``conf/``, then flags; checked in one place."""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from .options import OPTIONS, SCHEDULER_CHOICES, SOURCE_CHOICES, TLS, Option, UsageError

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _annotation(option: Option):
    whole = Annotated[int, Field(ge=option.least)] if option.least is not None else int
    number = Annotated[float, Field(ge=option.least)] if option.least is not None else float
    kinds = {
        "text": Annotated[str, Field(min_length=1)],
        "choice": Literal[option.choices],
        "integer": whole,
        "number": number,
        "integer_or_auto": whole | Literal["auto"],
        "number_or_auto": number | Literal["auto"],
        "ids": Annotated[list[int | str], Field(min_length=1)],
        "switch": bool,
    }
    kind = kinds[option.kind]
    return (kind | None, None) if option.default is None else (kind, option.default)


# The model is made from the table of options, so that no setting is listed twice.
_KNOBS = Annotated[dict[str, bool | int | float | str], Field(min_length=1)] | None
_FIELDS = [
    ("edges", Annotated[list[str], Field(min_length=1)]),
    *((o.key, *_annotation(o)) for o in OPTIONS),
    ("knobs", _KNOBS, None),
]
Settings = dataclass(make_dataclass("Settings", _FIELDS, kw_only=True), config=_STRICT)
KNOWN_KEYS = ("edges", *(option.key for option in OPTIONS), "knobs")


def read_file(path: Path) -> dict:
    """Read a settings file.

    Raises
    ------
    UsageError
        The file is missing, is no TOML, or has a key that is no setting (the known ones are listed).
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: the settings file cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    for key in values:
        if key not in KNOWN_KEYS:
            near = difflib.get_close_matches(key, KNOWN_KEYS, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"{path}: unknown key {key!r}; {meant}The known keys are {', '.join(KNOWN_KEYS)}")
    return values


def settings_of(flags: dict, config: Path | None = None) -> Settings:
    """Merge defaults, file and flags, and check them.

    Parameters
    ----------
    flags : dict
        Settings given on the command line.
    config : Path, optional
        A file with more of them; flags win.

    Returns
    -------
    Settings

    Raises
    ------
    UsageError
        A value that cannot be, or settings that contradict each other.
    """
    values = {} if config is None else read_file(config)
    for choices in (SOURCE_CHOICES, SCHEDULER_CHOICES):
        if any(key in flags for key in choices):
            values = {key: value for key, value in values.items() if key not in choices}
    values |= flags
    if not any(key in values for key in SCHEDULER_CHOICES) and os.environ.get("SCHEDULER_FILE"):
        values["scheduler_file"] = os.environ["SCHEDULER_FILE"]
    if "edges" not in values:
        raise UsageError("no edge list is given: name its files on the command line, or as 'edges' in a settings file")
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise UsageError(_sentence(error, flags, config)) from None
    _check_together(settings)
    if settings.knobs is not None:
        _check_knobs(settings, config)
    return settings


def _sentence(error: ValidationError, flags: dict, config: Path | None) -> str:
    first = error.errors()[0]
    key = first["loc"][0]
    where = "--" + key.replace("_", "-") if key in flags or config is None else f"{config}: {key}"
    shown = first["input"] if first["type"] != "missing" else None
    return f"{where} cannot be {shown!r}: {first['msg'][0].lower()}{first['msg'][1:]}"


def _check_together(settings) -> None:
    chosen = [key for key in SOURCE_CHOICES if getattr(settings, key) not in (None, False)]
    named = ", ".join("--" + key.replace("_", "-") for key in chosen or SOURCE_CHOICES)
    if len(chosen) != 1:
        what = "no sources are given: take one of" if not chosen else "sources are given more than once, by"
        raise UsageError(f"{what} {named}" + ("; take one" if chosen else ""))
    if settings.scheduler_address and settings.scheduler_file:
        raise UsageError("--scheduler-address and --scheduler-file name two schedulers; take one")
    _check_tls(settings)
    if settings.algorithm == "bfs" and settings.cutoff is not None:
        raise UsageError("--cutoff limits weighted distances (sssp); bfs takes --max-depth")
    if settings.algorithm == "sssp" and settings.max_depth is not None:
        raise UsageError("--max-depth limits hops (bfs); sssp takes --cutoff")
    if settings.output is None and not settings.plan:
        raise UsageError("--output is missing: name a folder for the results, or take --plan to see what would run")


def _check_tls(settings) -> None:
    missing = [key for key in TLS if getattr(settings, key) is None]
    named = ", ".join("--" + key.replace("_", "-") for key in missing)
    if len(missing) == len(TLS):
        return
    if missing:
        raise UsageError(f"TLS takes a certificate authority, a certificate and its key: {named} is missing")
    if not (settings.scheduler_address or settings.scheduler_file):
        raise UsageError("--tls-ca-file, --tls-cert and --tls-key are for a scheduler that runs already; name it, too")
    if settings.scheduler_address and not settings.scheduler_address.startswith("tls://"):
        raise UsageError(
            f"--scheduler-address {settings.scheduler_address} is not encrypted; with TLS it is tls://HOST:PORT"
        )
    for key in TLS:
        try:
            open(getattr(settings, key), "rb").close()
        except OSError as error:
            flag = "--" + key.replace("_", "-")
            raise UsageError(f"{flag} {getattr(settings, key)} cannot be read: {error.strerror}") from None


def _check_knobs(settings, config: Path) -> None:
    """Raise UsageError for knobs that the strategy does not have, before a graph is read that may be large."""
    from kepler_traverse.bfs.catalogue import STRATEGIES as BFS
    from kepler_traverse.errors import InputError
    from kepler_traverse.sssp.catalogue import STRATEGIES as SSSP

    if settings.strategy == "auto":
        raise UsageError(f"{config}: [knobs] are those of one strategy, and strategy is 'auto'; name the strategy")
    named = [row for row in (BFS if settings.algorithm == "bfs" else SSSP) if settings.strategy in (row.name, *row.also)]
    # A name that is none, or not on the device, is refused with those that fit once the graph is there.
    rows = [row for row in named if settings.device in ("auto", row.device)]
    for row in [row for row in rows if row.knobs is not None] or rows[:1]:
        try:
            row.knobs_from(settings.knobs)
        except InputError as error:
            raise UsageError(f"{config}: [knobs]: {error}") from None
