"""Settings of the main job: defaults, overridden by a file of ``conf/``, overridden by flags; all
checked here.

In all functions ``flags`` are the values of the command line by the keys of settings, and
``config`` is the settings file, None if there is none. Messages name a setting by the place that it
is from.
"""

from __future__ import annotations

import difflib
import os
import re
import reprlib
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, make_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from kepler_traverse.errors import InputError, has_secrets, option_text, options_spelled
from kepler_traverse.kinds import rules
from kepler_traverse.kinds.constraints import GivenOptions, Violation, violations
from kepler_traverse.runtime.object_stores import URL
from kepler_traverse.runtime.regular_files import open_regular

from ..output.schemas import OUTPUT_SCHEMAS, refuse_failed_plugins, with_failed_plugins
from .constraints import CONSTRAINTS, IDLE
from .options import (
    COLUMN_ROLES,
    OPTIONS,
    SCHEDULER_CHOICES,
    SETTINGS,
    SOURCE_CHOICES,
    TLS,
    Settings,
    UsageError,
    flag_of_key,
    flag_text,
)
from .shards import parse_shard
from .terminal import say

# HOST:PORT, in which the host may be missing: "127.0.0.1:8787", "[::1]:8787", ":8787", "8787"; and
# an address of a scheduler, with or without a protocol: "tcp://10.0.0.1:8786"
_ADDRESS = re.compile(r"([^\s:/]*:|\[[0-9a-fA-F:.]+\]:)?(?P<port>[0-9]{1,5})")
_URL = re.compile(r"([a-z][a-z0-9+]*://)?([^\s:/]+|\[[0-9a-fA-F:.%]+\]):(?P<port>[0-9]{1,5})")
_SHORT = reprlib.Repr()  # of values in messages
_SHORT.maxother = _SHORT.maxstring = 60
_SHORT.maxlevel = 2
_SHORT.maxlist = 4
_SHORT.maxtuple = 4
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")  # how a URL begins
# found in the name of a file, but hardly in an id
_FILE_NAME = re.compile(r"[./]")
# how a path begins that was meant as a URL: "s3:/" without a second slash
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/(?!/)")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _bounded(hint: Any, least: float | None) -> Any:
    """Return a type annotation with bounds, for pydantic, of the values that a setting allows.

    ``hint`` is the annotation of the field of ``Settings``. Numbers must be ``least`` or more, if
    that is not None. Texts, lists and tables must not be empty.
    """
    # the members of a union are bounded one by one
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.Union[tuple(_bounded(member, least) for member in typing.get_args(hint))]  # noqa: UP007
    if hint in (int, float):
        if least is None:
            return hint
        return Annotated[hint, Field(ge=least)]
    is_sized = hint is str or typing.get_origin(hint) in (list, dict)
    if is_sized:
        return Annotated[hint, Field(min_length=1)]
    return hint


def _make_checked_settings() -> Any:
    """Return a class that checks values for ``Settings``: a dataclass of pydantic with the same
    fields, whose types have the ranges that the metadata of the fields name.
    """
    hints = typing.get_type_hints(Settings)
    hints["columns"] = dict[Literal[tuple(COLUMN_ROLES)], str] | None  # type: ignore[misc]
    checked = []  # name, type and field, as make_dataclass takes them
    for setting in fields(Settings):
        hint = _bounded(hints[setting.name], setting.metadata.get("least"))
        checked.append((setting.name, hint, field(default=setting.default)))
    return dataclass(make_dataclass("Settings", checked, kw_only=True), config=_STRICT)


_CheckedSettings = _make_checked_settings()
# settings that are a path, or may be one
_PLACES = {"edges", *(option.key for option in OPTIONS if option.kind in ("folder", "file", "ids"))}
KNOWN_KEYS = tuple(setting.name for setting in fields(Settings))


def _make_settings(values: dict[str, Any]) -> Settings:
    """Return settings with these values, by key, and defaults for the others. Raise pydantic's
    ValidationError if a value is of a wrong type or out of range.
    """
    return Settings(**vars(_CheckedSettings(**values)))


def read_file(path: Path) -> dict[str, Any]:
    """Return the values of a settings file, by key, as TOML has them; they are not checked.

    Raises UsageError: the file is missing or not TOML, or has a key that is no setting; the message
    lists the known keys.
    """
    try:
        with open_regular(path, follow=True) as file:
            values = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: the settings file cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(
            f"{path}: not a TOML file that can be read: its values are nested too deeply"
        ) from None
    except ValueError as error:
        # of tomllib, of text that is not UTF-8, or of a path with a null character
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    for key in values:
        if key not in KNOWN_KEYS:
            similar = difflib.get_close_matches(key, KNOWN_KEYS, 1)
            hint = f"did you mean {similar[0]!r}? " if similar else ""
            known = ", ".join(KNOWN_KEYS)
            message = f"{path}: unknown key {key!r}; {hint}The known keys are {known}"
            raise UsageError(with_failed_plugins(message))
    return values


def merge_settings(
    flags: dict[str, Any], config: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Merge defaults, a settings file and flags, check the result, and return it. Flags override
    the file, and the file overrides defaults.

    No file but the settings file is opened. ``flags`` has values by the keys of settings.
    ``config`` is the settings file, None for none. ``environment`` may name a scheduler file, and a
    shard.

    Raises UsageError (values are wrong or contradict) or InputError (a plug-in cannot be used).
    """
    # Each value for itself: its type is checked.
    values = _merge_values(flags, config, environment)
    try:
        settings = _make_settings(values)
    except ValidationError as error:
        raise UsageError(with_failed_plugins(_describe_error(error, flags, config))) from None
    refuse_failed_plugins()

    # What follows from others. A shard "auto" becomes I/N, by variables of Slurm or Kubernetes.
    shard = parse_shard(settings.shard, environment)
    settings = replace(settings, shard=None if shard is None else str(shard))
    if settings.pairs is not None and "result" not in values:
        settings = replace(settings, result="pairs")
    settings = _with_implied_values(settings)

    # Values that no type describes, and values together. In errors options are called by their
    # flags (``flag_text``). Rules about the columns of the user's tables are checked later, by
    # ``read_settings``, since the headers are not read here (``has_tables``).
    _check_texts(settings, flags, config)
    _check_networks(settings, flags, config)
    _refuse_listed_files(settings, flags, config)
    _check_addresses(settings)
    with options_spelled(flag_text, by_default=True):
        settings = _with_rules(settings, flags, config, has_tables=False)
    if settings.where is not None:
        _check_condition(settings.where)
    if settings.knobs is not None:
        _check_knobs(settings, config)
    return settings


def _merge_values(
    flags: dict[str, Any], config: Path | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of a settings file, by key, with those of flags in their place where both
    are there. They are not checked, but UsageError is raised if no edge list is among them.
    """
    values = {} if config is None else read_file(config)
    # A run has one kind of sources and one scheduler: a flag for either drops all that the file
    # says of it.
    for choices in (SOURCE_CHOICES, SCHEDULER_CHOICES):
        if any(key in flags for key in choices):
            values = {key: value for key, value in values.items() if key not in choices}
    values = values | flags
    if not any(key in values for key in SCHEDULER_CHOICES) and environment.get("SCHEDULER_FILE"):
        values["scheduler_file"] = environment["SCHEDULER_FILE"]
    if "edges" not in values:
        raise UsageError(
            "no edge list is given: name its files on the command line, "
            "or as 'edges' in a settings file"
        )
    return values


def _with_implied_values(settings: Settings) -> Settings:
    """Return settings in which values that follow from others are set: the kind of the result, all
    vertices as sources, and the device.
    """
    # "nearest" and "k_nearest" stand for other kinds, too, if there are targets or a ``k``.
    result, k = rules.choose_kind(settings.result, settings.nearest_k, settings.targets is not None)
    settings = replace(settings, result=result, nearest_k=k)
    takes_all_sources = settings.sampled or settings.kind.of_labels
    if takes_all_sources and not any(map(settings.is_given, SOURCE_CHOICES)):
        settings = replace(settings, all_sources=True)
    if settings.kind.of_labels and settings.device == "auto":
        settings = replace(settings, device="cpu")  # labels are built on the CPU alone
    return settings


def read_settings(
    flags: dict[str, Any], config: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Return what ``merge_settings`` does, with the columns of the user's tables that have roles by
    their names. For these the headers of the tables are read, and rules about columns are checked.

    It also raises UsageError if a file that is there cannot be read.
    """
    settings = merge_settings(flags, config, environment)
    _check_readable(settings)
    settings = _with_columns_of_tables(settings)
    with options_spelled(flag_text, by_default=True):
        return _with_rules(settings, flags, config, has_tables=True)


def checked_settings(values: dict[str, Any]) -> Settings:
    """Return the settings that a manifest holds, ``values`` by key; raise ValueError if one is
    wrong.

    A manifest of another version may lack keys, which then have defaults, or have unknown ones,
    which are left out.
    """
    try:
        return _make_settings({key: value for key, value in values.items() if key in KNOWN_KEYS})
    except ValidationError as error:
        raise ValueError(f"settings: {_describe_error(error, values, None)}") from None


def _describe_error(error: ValidationError, flags: dict[str, Any], config: Path | None) -> str:
    """Return the first error that pydantic found as a sentence, which names the setting as the user
    gave it and says what is wrong with its value.
    """
    first = error.errors()[0]
    value = None
    if first["type"] != "missing":
        value = first["input"]
    why = first["msg"][0].lower() + first["msg"][1:]
    if first["type"] == "string_unicode":
        encoding = sys.getfilesystemencoding()
        how = "set LC_ALL=C.UTF-8, or PYTHONUTF8=1"
        if encoding == "utf-8":
            how = "rename it"
        why = f"it holds bytes that are no text in {encoding}; {how}"
    name = _name_setting(str(first["loc"][0]), flags, config)
    return f"{name} cannot be {_SHORT.repr(value)}: {why}"


def refuse_unreadable(name: str, path: str | Path) -> None:
    """Raise UsageError for a file that cannot be read. A pipe is one, for which a reader might wait
    without an end.

    ``name`` is the flag of the file, for errors.
    """
    try:
        open_regular(Path(path), follow=True).close()
    except OSError as error:
        if os.path.isdir(path):
            # Imported here, since --help does not need it. It raises an error that says more if the
            # folder is a table of Delta Lake or Iceberg.
            from kepler_traverse.formats.log_tables import refuse_log_table

            refuse_log_table(path, f"rows of {name}")
        raise UsageError(f"{name} {path}: the file cannot be read: {error.strerror}") from None


def refuse_secrets(name: str, *places: object) -> None:
    """Raise UsageError for a URL that holds what may be a password or a signature, since URLs are
    written to manifests.

    ``name`` is the flag of the places, for errors. ``places`` that are no texts are let pass.
    """
    for place in places:
        if isinstance(place, str) and has_secrets(place):
            raise UsageError(
                f"{name} {place.partition(':')[0]}://...: the address holds more than a place and a path (? or # begins a "
                "query, @ follows a user), and addresses are written to manifests; give credentials by the environment"
            )


def refuse_half_addresses(name: str, *places: object) -> None:
    """Raise UsageError for a path such as s3:/bucket, which pyarrow would take for a URL.

    ``name`` is the flag of the places, for errors. ``places`` that are no texts are let pass.
    """
    for place in places:
        if isinstance(place, str) and _ONE_SLASH.match(place):
            scheme = place.partition(":")[0]
            raise UsageError(
                f"{name} {place}: this begins like an address, and an address has two slashes: {scheme}://; if it is a file "
                f"or a folder on this machine, give its whole path, or ./{place}"
            )


def refuse_address(name: str, folder: str, takes_stores: bool = False) -> None:
    """Raise UsageError for a folder at an address that nothing can be written to: as a path, it
    would be created at an unexpected place.

    ``name`` is the flag of the folder, for errors. ``takes_stores`` is whether it may be a URL of
    an object store.
    """
    scheme = _SCHEME.match(folder)
    refuse_secrets(name, folder)
    refuse_half_addresses(name, folder)
    if takes_stores and URL.match(folder):
        return
    # What a path may look like by mistake: another kind of URL, ~ in quotes, a null character.
    if scheme:
        raise UsageError(
            f"{name} {folder}: nothing is written to {scheme[0]} addresses, and as a path this would be a folder on this "
            "machine; give the path of a local or mounted folder, and copy it afterwards"
        )
    if folder.startswith("~"):
        raise UsageError(
            f"{name} {folder}: the shell has not expanded ~, which it does only at the begin of a word; give "
            f"the whole path, or ./{folder} for a folder with that name"
        )
    if "\0" in folder:
        raise UsageError(f"{name} {folder!r}: no path holds a null character")


def _name_setting(key: str, flags: dict[str, Any], config: Path | None) -> str:
    """Return the name of the setting ``key`` as the user gave it, for errors: a flag, or the path
    of the settings file and the key in it.
    """
    if key == "edges":
        return "EDGES"
    if key in flags or config is None:
        return flag_of_key(key)
    return f"{config}: {key}"


def _check_texts(settings: Settings, flags: dict[str, Any], config: Path | None) -> None:
    """Raise UsageError if a text is empty or holds a null character, which no file system or
    network accepts, or if an address holds secrets or lacks a slash.
    """
    for key in KNOWN_KEYS:
        value = getattr(settings, key)
        name = _name_setting(key, flags, config)
        # All texts of the setting: its items, the names of columns, or the value itself.
        if isinstance(value, list):
            texts = value
        elif isinstance(value, dict):
            texts = list(value.values())
        else:
            texts = [value]
        if any(isinstance(text, str) and ("\0" in text or not text) for text in texts):
            raise UsageError(
                f"{name} cannot be {value!r}: a text is empty or holds a null character"
            )
        if key == "edges":
            refuse_secrets(name, *texts)
        elif key in _PLACES:
            refuse_secrets(name, value)
            refuse_half_addresses(name, value)


def _check_networks(settings: Settings, flags: dict[str, Any], config: Path | None) -> None:
    """Raise UsageError if the address of the dashboard or of the scheduler is of a wrong form."""
    for key, pattern, example in (
        ("dashboard_address", _ADDRESS, "HOST:PORT, such as 127.0.0.1:8787"),
        ("scheduler_address", _URL, "PROTOCOL://HOST:PORT, such as tcp://10.0.0.1:8786"),
    ):
        value = getattr(settings, key)
        if value is None:
            continue
        match = pattern.fullmatch(value)
        if match is None or int(match["port"]) > 65535:
            name = _name_setting(key, flags, config)
            raise UsageError(f"{name} cannot be {value!r}: it is {example}")


def _with_columns_of_tables(settings: Settings) -> Settings:
    """Return settings whose ``columns`` also have those columns of the user's tables that have a
    role by their name, such as a column ``weight`` of the table of sources. The headers of the
    tables are read.
    """
    from kepler_traverse.formats.ids import column_of_ids

    from ..output.table_columns import columns_of_file

    columns = dict(settings.columns or {})
    tables = (
        ("sources", "source", settings.sources_file),
        ("targets", "target", settings.targets_file),
        ("pairs", "origin", settings.pairs),
    )
    for table, role, path in tables:  # role: that of the column of ids
        if path is None:  # the table is not given, or is a list of ids
            continue

        # A file of which a column is named must be a table, and no text with one id per line.
        is_table = table == "pairs" or table in map(settings.find_table, columns)
        names = columns_of_file(path, table, is_table)
        if names is None:  # a text file with one id per line
            continue

        # The column of ids, and those of further roles; the user's names count first.
        if role not in columns and table != "pairs":
            with options_spelled(flag_text, by_default=True):
                columns[role] = column_of_ids(path, names, table)
        for option_role, name in _columns_by_name(settings, table, role, names):
            columns.setdefault(option_role, name)
    return replace(settings, columns=columns or None)


def _columns_by_name(
    settings: Settings, table: str, role: str, names: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield each role that the result takes from a column of a table, and the column that has the
    role by its name.

    ``table`` is the setting that names the table, and ``names`` are its columns. ``role`` is that
    of its column of ids, such as "source": a role ``source_weight`` is also that of a column
    ``weight``.
    """
    # ``SETTINGS`` has "columns.ROLE" for an option that is a column, by the name of the option.
    for option, key in SETTINGS.items():
        _, _, option_role = key.partition(".")
        if not option_role:  # no option of a column
            continue
        name = option_role
        if name not in names:
            name = option_role.removeprefix(f"{role}_")
        has_column = name in names and settings.find_table(option_role) == table
        if has_column and rules.takes(settings.kind, option, OUTPUT_SCHEMAS):
            yield option_role, name


def find_idle(settings: Settings) -> Iterator[Violation]:
    """Yield a violation for each setting of a run that has no effect in combination with the
    others: it says why.
    """
    return (idle for idle in violations(settings, IDLE) if settings.is_given(idle.option))


def _with_rules(
    settings: Settings, flags: dict[str, Any], config: Path | None, has_tables: bool
) -> Settings:
    """Return settings without those that have no effect. Raise UsageError for settings that violate
    a rule, or lack what the result needs.

    A setting of a file that has no effect is reported and dropped, since the file may serve several
    runs; a flag is refused. ``has_tables`` is whether the columns that the headers of tables name
    are among the settings: before, rules about these are not checked.
    """
    # Rules of the options of all kinds.
    keys = _keys_of_options(settings)
    options = _options_of(settings)
    for row, violation in rules.violations(options, OUTPUT_SCHEMAS):
        if row.effect == "refuse":
            raise UsageError(str(violation))
        settings = _without(settings, keys[violation.option], violation, flags, config)

    # Settings of the job that have no effect. A flag that is given as off, or as "auto", asks for
    # nothing, and is let pass.
    for row in IDLE:
        key = row.names[0]  # the setting that has no effect; the others are why
        is_flag = key in flags and settings.value(key) not in (False, "auto")
        if settings.is_given(key) or is_flag:
            idle = row.violation(settings, **{"0": _name_setting(key, flags, config)})
            if idle is not None:
                settings = _without(settings, key, idle, flags)

    # Rules of the kind, and of the job.
    rows = [row for row in CONSTRAINTS if has_tables or not row.of_tables]
    for violation in chain(
        violations(options, options.kind.options_class.constraints), violations(settings, rows)
    ):
        raise UsageError(str(violation))
    return settings


def _without(
    settings: Settings,
    key: str,
    violation: Violation,
    flags: dict[str, Any],
    config: Path | None = None,
) -> Settings:
    """Return settings without one that has no effect. A setting of a file is reported on stderr;
    for one that is a flag raise UsageError.

    ``key`` is that of the setting, or ``columns.ROLE``. ``violation`` says why it has no effect.
    ``config`` is the settings file, given if the text of the violation does not name it, else None.
    The setting gets its default, and a role loses its column.
    """
    setting, _, role = key.partition(".")
    if setting in flags:
        raise UsageError(str(violation))
    place = "" if config is None else f"{config}: "
    say(f"note: {place}{violation.fact}")
    changed: dict[str, Any] = {setting: getattr(Settings, setting, None)}  # its default
    if role:
        columns = {**(settings.columns or {})}
        columns.pop(role, None)
        changed = {"columns": columns or None}
    return replace(settings, **changed)


def _options_of(settings: Settings) -> GivenOptions:
    """Return the options of the result as the library's rules take them: by the names of keyword
    arguments, each as the user writes it and with its value.
    """
    keys = _keys_of_options(settings)
    written = {
        name: option_text(key) if settings.is_given(key) else None for name, key in keys.items()
    }
    # A direction that is given is "in", since "out" is the default: messages name it with its
    # value.
    written |= {"direction": written["direction"] and option_text("direction", "in")}
    values = {name: settings.value(key) for name, key in keys.items()}
    # to the rules, None stands for all vertices as sources, and for none that are given
    if settings.all_sources or not settings.is_given(keys["sources"]):
        values["sources"] = None
    return GivenOptions(
        kind=settings.kind, algorithm=settings.algorithm, written=written, values=values
    )


def _keys_of_options(settings: Settings) -> dict[str, str]:
    """Return the key of a setting for each option of the library's rules, by the name of the
    option.

    If several settings stand for an option, as for ``sources``, it is the key of the one that is
    given.
    """
    # ``stream`` is an argument of the library that no setting stands for.
    keys = {name: name for row in rules.ROWS for name in row.names if name != "stream"}
    keys |= {
        name: name for kind in OUTPUT_SCHEMAS.values() for name in kind.options_of_job
    } | SETTINGS
    keys["limit"] = "max_depth" if settings.algorithm == "bfs" else "cutoff"
    for name, choices in (("sources", SOURCE_CHOICES), ("strategy", ("strategy", "knobs"))):
        keys[name] = next((key for key in choices if settings.is_given(key)), name)
    return keys


def _refuse_listed_files(settings: Settings, flags: dict[str, Any], config: Path | None) -> None:
    """Raise UsageError if a list of ids in a settings file has the name of a file: the file alone,
    without a list, would be read.
    """
    for option in OPTIONS:
        ids = getattr(settings, option.key)
        if option.kind != "ids" or option.key in flags or not isinstance(ids, list):
            continue
        for id_ in ids:
            if isinstance(id_, str) and _FILE_NAME.search(id_) and os.path.isfile(id_):
                name = _name_setting(option.key, flags, config)
                raise UsageError(
                    f"{name} is a list of ids, and {id_[:100]!r} is the name of a file; give "
                    f"{option.key} = {id_!r}, without a list, for the ids in it"
                )


def _check_addresses(settings: Settings) -> None:
    """Raise UsageError if a folder of the settings is at an address that is never written to.

    ``refuse_address`` refuses URLs, what begins like one, ``~`` at the begin, and null characters.
    The two folders ``output`` and ``graph_cache`` may be URLs of an object store, since the job can
    write to one. URLs with secrets are refused for these, too.
    """
    for option in OPTIONS:
        path = getattr(settings, option.key)
        if path is not None and option.kind == "folder":
            refuse_address(option.flag, path, takes_stores=option.key in ("output", "graph_cache"))


def _check_readable(settings: Settings) -> None:
    """Raise UsageError for a file that exists and cannot be read.

    For a file that does not exist, its reader raises an error later. Those of TLS have no such
    reader, and are refused here.
    """
    for option in OPTIONS:
        path = getattr(settings, option.key)
        is_file = option.kind == "file" or (option.kind == "ids" and isinstance(path, str))
        if is_file and path is not None and (option.key in TLS or os.path.exists(path)):
            refuse_unreadable(option.flag, path)


def _check_condition(where: str) -> None:
    """Raise UsageError if a text, the value of ``--where``, is no condition on rows."""
    from kepler_traverse.formats.where import row_filter

    try:
        with options_spelled(flag_text, by_default=True):
            row_filter(where)
    except InputError as error:
        raise UsageError(str(error)) from None


def _check_knobs(settings: Settings, config: Path | None) -> None:
    """Raise UsageError for knobs (options of one strategy) that the strategy does not have, before
    the graph is read. ``config`` is the settings file, where knobs are given.
    """
    from kepler_traverse.bfs import REGISTRY as BFS
    from kepler_traverse.sssp import REGISTRY as SSSP

    if settings.strategy == "auto":
        raise UsageError(
            f"{config}: [knobs] are those of one strategy, and "
            "strategy is 'auto'; name the strategy"
        )
    registry = BFS if settings.algorithm == "bfs" else SSSP
    strategies, _ = registry.with_plugins()
    # A name of no strategy, or of none for the device, is refused once the graph is there.
    named = [
        strategy
        for strategy in strategies
        if strategy.is_called(settings.strategy) and settings.device in ("auto", strategy.device)
    ]
    # Each strategy of the name that takes knobs checks them. Without such a strategy, the first of
    # the name raises an error, which says that it takes none.
    for strategy in [strategy for strategy in named if strategy.knobs is not None] or named[:1]:
        try:
            strategy.knobs_from(settings.knobs)
        except InputError as error:
            raise UsageError(f"{config}: [knobs]: {error}") from None
