"""The one definition of ``_manifest.json`` and of the footer of a part file, for type checkers and
for ``checked``.

Both come from a folder that others may have written to, so they are checked before anything in them
is used. Unknown keys are ignored, because a later version may add some. Known keys have the types
and ranges that this job writes, so that no number in them causes an unbounded allocation or loop.
``docs/manifest.schema.json`` is written from ``Manifest``.
"""

# This module has no ``from __future__ import annotations``: annotations as strings would not tell
# pydantic which keys may be missing.

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    get_args,
    get_type_hints,
)

from kepler_traverse.kinds import rules
from kepler_traverse.kinds.constraints import GivenOptions

from .layout import PARTITION
from .schemas import OUTPUT_SCHEMAS, ResultName

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # pydantic takes no other

T = TypeVar("T")
MAX_PARTS = 10**6  # part names have six digits
MAX_BINS = 64  # per histogram: enough for a plot, and a summary stays below about 1 KB


class Rule:
    """A condition on a value, in the annotation of its type.

    ``check`` is a function of the value that returns it, or raises ValueError if it is wrong. Else
    ``ranges`` are constraints of pydantic's core schemas, such as ``ge``, ``max_length`` and
    ``pattern``. pydantic calls the method below. It is not imported here, because workers start
    faster without it.
    """

    def __init__(self, check: Callable[[Any], Any] | None = None, **ranges: Any) -> None:
        self._check = check
        self._ranges = ranges

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of the annotated type, with this condition."""
        schema = handler(source)
        if self._check is None:
            return schema | self._ranges
        return {
            "type": "function-after",
            "function": {"type": "no-info", "function": self._check},
            "schema": schema,
        }


FORMAT = 2  # of manifests and footers; the next one begins where code of this one cannot read them
Format = Annotated[int, Rule(ge=FORMAT, le=FORMAT)]
Count = Annotated[int, Rule(ge=0, lt=2**63)]
Positive = Annotated[int, Rule(ge=1, lt=2**63)]
Hash = Annotated[str, Rule(pattern="^[0-9a-f]{64}$")]  # SHA-256 in hexadecimal digits
Checksum = Annotated[str, Rule(pattern="^[0-9a-f]{16}$")]  # 64 bits in hexadecimal digits
PartName = Annotated[str, Rule(pattern=rf"^({PARTITION}/)?part-[0-9]{{6}}\.(parquet|arrow)$")]
PartitionName = Annotated[str, Rule(pattern=f"^{PARTITION}$")]
ShardName = Annotated[str, Rule(pattern=r"^[0-9]{1,7}/[0-9]{1,7}$")]
Id = Annotated[int, Rule(ge=-(2**63), lt=2**64)] | str  # the user's id of a vertex
Seconds = Annotated[float, Rule(ge=0, le=1e12)]
Phases = Annotated[
    dict[Annotated[str, Rule(pattern="^[a-z_]{1,32}$")], Seconds], Rule(max_length=64)
]
Algorithm = Literal["bfs", "sssp"]
Status = Literal["running", "done", "failed", "interrupted"]


def _check_bins(histogram: Any) -> Any:
    """Return a histogram, if its bins can be those of distances; else raise ValueError.

    For other bins ``part_stats.sum_histograms``, which doubles their width until all fit, might not
    end.
    """
    # A width is a power of two: 0.5 times 2^exponent. The first bin begins at a float, below
    # 2^1024, so that the bits of its number and the exponent are 1025 at most.
    mantissa, exponent = math.frexp(histogram["width"])
    if mantissa != 0.5 or histogram["first"].bit_length() + exponent > 1025:
        raise ValueError("its bins are not those of distances")
    return histogram


def _check_times(part: Any) -> Any:
    """Return the entry of a part, if it has all fields of times and counts or none; else raise
    ValueError.

    A part file that was found without a manifest entry has none. The report needs all or none.
    """
    missing = {"started", "ended", "phases", "worker", "edges"} - set(part)
    if missing and {"started", "worker"} <= set(part):
        raise ValueError(f"{sorted(missing)[0]!r} is missing, though the time of the part is there")
    return part


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A part of the question that a run has read from a file, and that is read again to verify an
    output: texts of errors about it.
    """

    differs: str  # the error if what is read again is not what the run has read
    # Name of the setting that says from which file it was read; the error begins with that file.
    # Empty if there are several files.
    file: str = ""
    again: str = ""  # what the user has to give if it cannot be read again; empty if it always can


# By the key of the identity in a manifest, under which the digest of this part is recorded.
FACTS = {
    "pairs": Fact(
        file="pairs",
        differs="these are not the pairs of the run; give its table by --pairs",
        again="the table of the run's pairs by --pairs",
    ),
    "targets": Fact(
        file="targets_file",
        differs="these are not the targets of the run; give its own by --targets",
        again="the file of the run's targets by --targets",
    ),
    "groups": Fact(
        file="groups_file",
        differs=(
            "these are not the groups of the run; give its table by --sources, "
            "or by --targets for groups of targets"
        ),
        again="the table of the run's sources by --sources, or that of its targets by --targets",
    ),
    "reduction": Fact(
        differs="the attributes in the file of vertices, the weights of the sources, the edges of --through, or the columns "
        "of --along are not those of the run; give the files that the run read"
    ),
    "along": Fact(
        differs=(
            "the columns of --along are not those of the run; give the "
            "files of edges that the run read"
        )
    ),
    "limits": Fact(
        file="sources_file",
        differs="these are not the limits of the run; give its table by --sources",
        again="the table of the run's sources by --sources",
    ),
}
_FILES_OF_TABLES = {"sources": "sources_file", "targets": "targets_file", "pairs": "pairs"}


def _facts_of_columns() -> dict[str, Fact]:
    """Return a ``Fact`` by name for each option that is a column of a table of the user, has a
    digest of its own in the identity, and is not in ``FACTS`` already.
    """
    facts = {}
    for kind in OUTPUT_SCHEMAS.values():
        if kind.options_class.is_recorded_whole:  # in one digest, named "reduction"
            continue
        for option in fields(kind.options_class):
            if "column" not in option.metadata or option.name in FACTS:
                continue
            table = option.metadata["table"]
            what = f"{option.metadata['column']} of the {table}"
            facts[option.name] = Fact(
                file=_FILES_OF_TABLES[table],
                differs=f"these are not the {what} of the run; give its table by --{table}",
                again=f"the table of the run's {table} by --{table}",
            )
    return facts


FACTS |= _facts_of_columns()


# The options of result kinds that the identity records each by its name: their types and defaults.
NAMED_OPTIONS: dict[str, tuple[Any, Any]] = {
    option.name: (get_type_hints(kind.options_class)[option.name], option.default)
    for kind in OUTPUT_SCHEMAS.values()
    for option in fields(kind.options_class)
    if option.name in kind.options_of_job and not kind.options_class.is_recorded_whole
}
# The values of options that an identity does not have.
DEFAULTS = {"direction": "out"} | {name: default for name, (_, default) in NAMED_OPTIONS.items()}


def _check_question(identity: Any) -> Any:
    """Return the identity of a run, if its options fit each other; else raise ValueError.

    The combinations are those that the settings of a run refuse, so no run has them.
    """
    kind = OUTPUT_SCHEMAS[identity["result"]]
    is_recorded_whole = kind.options_class.is_recorded_whole

    # An option is given if the identity has another value than the one of an option that is unset.
    unset: dict[str, Any] = dict.fromkeys(("limit", "pairs", "targets", "limits")) | DEFAULTS
    if is_recorded_whole:  # in one digest, "reduction"
        for option in fields(kind.options_class):
            unset.pop(option.name, None)
    given = {
        name: None if identity.get(name) in (None, value) else name for name, value in unset.items()
    }
    options = GivenOptions(kind=kind, algorithm=identity["algorithm"], written=given)
    for _, violation in rules.violations(options, OUTPUT_SCHEMAS):
        raise ValueError(violation.fact)  # the first one

    if given["limit"]:
        has_part_of_hop = identity["algorithm"] == "bfs" and isinstance(identity["limit"], float)
        if given["limits"] or has_part_of_hop:
            raise ValueError("a limit of hops is an integer, and no run has two limits")
    if ("reduction" in identity) != is_recorded_whole:
        raise ValueError(
            f"result {kind.name!r} goes "
            f"{'without' if 'reduction' in identity else 'with'} options of its own"
        )
    return identity


class Histogram(TypedDict):
    """Distances of a part file, as ``part_stats.make_histogram`` returns them."""

    width: Annotated[float, Rule(gt=0)]  # of a bin, a power of two
    first: int  # the first bin begins at ``first * width``
    # Number of vertices per bin.
    counts: Annotated[
        list[Annotated[int, Rule(ge=0, le=2**53)]], Rule(min_length=1, max_length=MAX_BINS)
    ]


Distances = Annotated[Histogram, Rule(_check_bins)]
Slowest = Annotated[tuple[Id, Seconds], Rule(strict=False)]  # a list in JSON


class PartCounts(TypedDict, total=False):
    """What ``part_stats.PartStats`` counts."""

    edges: Count  # stored edges of the vertices that the searches have reached
    rounds: Count  # the most levels or rounds of one search
    slowest: Slowest | None  # the source that took longest, and its seconds; None if not known
    distances: Distances | None  # None if no row has a distance


class Stored(TypedDict):
    """What it took to put a part into an object store, and the version of the object, ``""`` if the
    store has none.
    """

    requests: Count  # more than one if it was sent again
    seconds: Seconds  # of all requests
    version: str  # of the object, as the store names it; "" if the store has no versions


class PartSummary(PartCounts):
    """One part file: what ``part_file.write_part`` returns, and what its worker measured. A part
    file of an earlier run has no times and counts."""

    file: PartName  # from the folder of the run, with the folder of its partition if there is one
    rows: Count  # of all sources
    sha256: Hash  # of the file
    checksum: Checksum  # of its rows: the sum of those of its sources, modulo 2^64
    bytes: Count  # of the file
    # when work on the batch began and ended, in seconds since the epoch
    started: NotRequired[Seconds]
    ended: NotRequired[Seconds]
    # seconds per part, by which tasks are sized; parts that are written concurrently share them
    seconds: NotRequired[Seconds]
    phases: NotRequired[Phases]  # seconds by phase, see ``worker.phase_timer``
    worker: NotRequired[str]  # its name or its address
    stored: NotRequired[Stored]  # only if the part is in an object store


class PartEntry(PartSummary):
    """A part file in the manifest, with the ids of its sources."""

    sources: list[Id]  # those that have results, in the order of the run


class Estimate(TypedDict):
    """How many sources an estimate is made of, and which error it exceeds with which probability at
    most.
    """

    sources: Positive  # number of vertices in the sample
    epsilon: Annotated[float, Rule(gt=0)]  # bound of the error of all normalized values
    delta: Annotated[float, Rule(gt=0, lt=1)]  # largest probability that a value has a larger error
    bound: str  # name of the bound by which the error was computed


class Facts(TypedDict, total=False):
    """What a table of loads says of itself.

    ``lost``, of flows, has the number of the pairs without a path, and what they would have
    carried. ``estimate`` is of betweenness from a sample of the vertices. ``busiest`` has the ten
    rows that carry most, the greatest load first, and of equal loads the first row.
    """

    lost: dict[str, Count | Annotated[float, Rule(ge=0)]]
    estimate: Estimate
    busiest: list[dict[str, int | float | str]]


class TableEntry(Facts):
    """A table beside the parts: its vertices, or one that a finished run makes of its parts."""

    file: Annotated[str, Rule(pattern=r"^_[a-z]+\.pq$")]  # its name in the folder of the run
    bytes: Count  # of the file
    sha256: Hash  # of the file


# Name of the strategy, and number and seconds of the sources that were searched with it in groups,
# by which strategies are compared.
Measured = tuple[str, int, float]


class BatchOutcome(TypedDict):
    """The outcome of one batch, as a worker returns it."""

    part: int  # number of the part file
    summary: PartSummary | None  # None, and no file, if no source has a result
    failed: list[tuple[int, str]]  # vertex number of a source, and why it failed
    measured: NotRequired[Measured | None]  # None if no group was measured


class Failure(TypedDict):
    """Sources that failed."""

    file: PartName  # of the part that lacks them
    sources: list[Id]  # those that failed
    error: str  # class and message of the error, which is the same for all of these sources


class Retry(TypedDict):
    """A batch that was retried."""

    file: PartName  # of the part of the batch
    why: str  # what has happened to the task that had it


if TYPE_CHECKING:
    Identity = dict[str, Any]
else:
    Identity = TypedDict(
        "Identity",
        {
            name: NotRequired[Positive if int in (kind, *get_args(kind)) else kind]
            for name, (kind, _) in NAMED_OPTIONS.items()
        }
        | dict.fromkeys(FACTS, NotRequired[Hash])
        | {
            "direction": NotRequired[Literal["out", "in"]],
            "seed": NotRequired[Annotated[int, Rule(ge=0)]],  # of a sample
            "graph": Hash,
            "algorithm": Algorithm,
            "limit": Count | Annotated[float, Rule(ge=0)] | None,
            "targets": Hash | None,
            "result": ResultName,
            "certify": Literal["all", "sample", "none"],
            "sources": Hash,
            "batch_size": Positive,
            "partitions": NotRequired[dict[PartitionName, Positive]],
        },
    )
    Identity.__doc__ = "Everything that determines the content of the part files."


class Built(TypedDict, total=False):
    """What building the graph did: the fields of a ``BuildReport`` that are displayed by name."""

    # Names of columns are those of the edge list, "" for none.
    src_column: str  # of the vertices where edges begin
    dst_column: str  # of the vertices where edges end
    weight_column: str
    oneway_column: str  # says in which directions an edge may be used
    where: str  # the filter of rows, "" without one
    unused_columns: list[str]  # that were not read
    unused_numbers: list[str]  # those of them that hold numbers
    hints: list[str]  # sentences for the user on what may have been meant otherwise


class GraphFacts(TypedDict):
    """The graph of a run."""

    fingerprint: Hash  # of its arrays and ids
    vertices: Count  # number of vertices
    stored_edges: Count  # an undirected edge is stored twice, once per direction
    directed: bool  # whether edges have a direction
    built: NotRequired[Built]  # from which columns of the edge list it was built
    reused: NotRequired[bool]  # whether it was stored before, and was loaded


class Candidate(TypedDict):
    """A strategy that tasks may use; ``estimated`` seconds are those of all sources."""

    strategy: str  # its name
    estimated: Seconds  # of all sources of the run
    sources_at_once: Positive  # that are searched together
    bytes: Count  # that its plan takes in addition to the graph


class Measurement(TypedDict):
    """Measured and estimated time of the sources that a strategy computed."""

    strategy: str  # its name
    sources: Count  # that it was measured with
    seconds: Seconds  # that they took
    estimated: Seconds  # that they should have taken


class Switch(TypedDict):
    """A change of the strategy, after ``measured_sources`` sources."""

    strategy: str  # name of the new one
    measured_sources: Count  # sources with measured times, of all strategies, until then


class StrategyChoice(TypedDict):
    """The choice between strategies in a run, as ``scheduling.strategy_choice.StrategyChoice`` records it."""

    first: str  # the strategy that was chosen by estimates
    # The strategies that fit, with their estimates; the first is the one that was chosen.
    candidates: Annotated[list[Candidate], Rule(min_length=1, max_length=64)]
    measured: Annotated[list[Measurement], Rule(max_length=64)]  # one per strategy
    switches: list[Switch]  # in their order; the last one names the strategy of the next tasks


# Requests to object stores by kind, and the bytes ``sent`` and ``received``, without those of the
# parts.
Traffic = dict[Literal["get", "head", "put", "list", "delete", "sent", "received"], Count]


class Manifest(TypedDict):
    """``_manifest.json``."""

    format: Format  # of manifests and footers
    status: Status  # of the run, when this was written
    algorithm: Algorithm
    result: ResultName  # name of the result kind
    means: str  # what a row of the result says, for people
    direction: NotRequired[Literal["out", "in"]]  # distances from the sources, or to them
    distances: NotRequired[dict[str, str]]  # type of the distances, and how exact sums are
    settings: dict[str, Any]  # all fields of ``Settings``; the shard is None
    # Everything that determines the content of the part files.
    identity: Annotated[Identity, Rule(_check_question)]
    fingerprint: Hash  # of the identity, see ``run_folder.compute_fingerprint``
    graph: GraphFacts
    device: str  # of the searches: "cpu" or "cuda"
    strategy: str  # of the last tasks, if it was changed during the run
    # what was proved in place of a certificate of each search
    proved: NotRequired[Literal["labels"]]
    choice: NotRequired[StrategyChoice | None]  # between strategies; None if there was none
    workers: Count  # number of workers
    memory: dict[str, Count]  # bytes by item, with their ``total``; see ``memory_plan.Sizing``
    sources: Count  # distinct ones
    duplicate_sources: Count  # that were given more than once
    batches: Annotated[int, Rule(ge=0, le=MAX_PARTS)]  # one part each, of all shards
    versions: dict[str, str]  # of Python and of packages, by name
    seconds: dict[str, Seconds]  # by step; of a shared run the sums over its processes
    # The parts that are written, in the order of their numbers.
    parts: Annotated[list[Annotated[PartEntry, Rule(_check_times)]], Rule(max_length=MAX_PARTS)]
    tables: Annotated[list[TableEntry], Rule(max_length=8)]  # files beside the parts
    failed: list[Failure]  # sources without results
    retried: list[Retry]  # in the order in which that happened
    traffic: NotRequired[Traffic]  # only if the run has asked an object store for something
    # of all results, see ``run_folder.compute_digest``; None until the run is done
    digest: Annotated[str, Rule(pattern="^[0-9a-f]{16}-[0-9a-f]{16}$")] | None
    ended_by: NotRequired[str]  # the error by which the run has failed


class Commit(TypedDict):
    """A commit of a run: what one of its processes has done since its last commit, and whether the
    run ends with it.

    ``lost`` are parts of earlier commits that are not there any more. ``shards`` are those whose
    processes have committed. The other keys mean what they mean in a ``Manifest``, since the last
    commit.
    """

    # A random identifier of the process.
    writer: Annotated[str, Rule(pattern="^[0-9a-f]{32}$")]
    parts: Annotated[list[Annotated[PartEntry, Rule(_check_times)]], Rule(max_length=MAX_PARTS)]
    failed: list[Failure]
    retried: list[Retry]
    lost: NotRequired[list[PartName]]
    shards: NotRequired[Annotated[list[ShardName], Rule(max_length=MAX_PARTS)]]
    seconds: NotRequired[dict[str, Seconds]]
    traffic: NotRequired[Traffic]
    choice: NotRequired[StrategyChoice | None]
    tables: NotRequired[Annotated[list[TableEntry], Rule(max_length=8)]]
    closed: NotRequired[Literal[True]]  # only in the commit with which the run ends


class ShardRecord(TypedDict):
    """What a shard has recorded, in short: of its parts below ``until`` all but those in
    ``without``, in the commits below ``next``.
    """

    until: Count  # a part number
    without: Annotated[list[Count], Rule(max_length=MAX_PARTS)]  # part numbers
    next: Count  # number of the first commit that is not counted in
    choice: StrategyChoice | None  # between strategies, in this shard


class Footer(TypedDict):
    """The footer of a part file."""

    format: Format  # of manifests and footers
    run: str  # fingerprint of the run
    part: Annotated[int, Rule(ge=0, lt=MAX_PARTS)]  # its number
    result: ResultName  # name of the result kind
    rows: Count  # of all sources
    sources: list[Id]  # in the order of the run
    checksums: list[Checksum]  # of the rows of each source, in the order of the sources
    version: NotRequired[str]  # of this package


@functools.cache
def adapter(schema: Any) -> Any:
    """Return pydantic's ``TypeAdapter`` for one of the types above.

    It is strict: it converts no value to another type, and refuses infinity and NaN.
    """
    from pydantic import TypeAdapter

    # the attribute in which pydantic looks for the settings of a TypedDict
    schema.__pydantic_config__ = {"strict": True, "allow_inf_nan": False}
    return TypeAdapter(schema)


def checked(value: object, schema: type[T]) -> T:
    """Return ``value`` unchanged, if it fits ``schema``, one of the types above.

    ``value`` was read from JSON. Raises ValueError: it does not fit; the message says where and
    why.
    """
    from pydantic import ValidationError

    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    try:
        adapter(schema).validate_python(value)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    return value  # type: ignore[return-value]
