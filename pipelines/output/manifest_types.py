"""Types of ``_manifest.json`` for type checkers; ``manifest_schema`` has the same fields with ranges, which it checks."""

# Annotations are evaluated here: as strings, they would not tell which keys may be missing.

from typing import Any, Literal, NotRequired, TypedDict

from .schemas import ResultName

Id = int | str  # the user's id of a vertex
Phases = dict[str, float]  # seconds by phase


class Histogram(TypedDict):
    """Distances of a part file, as ``part_stats.histogram_of`` returns them."""

    width: float
    first: int
    counts: list[int]


class PartCounts(TypedDict):
    """What ``part_stats.Tally`` counts."""

    edges: int
    rounds: int
    slowest: tuple[Any, float] | None
    distances: Histogram | None


class PartSummary(TypedDict):
    """One part file: what ``part_file.write_part`` returns, and what its worker measured. A part file of an earlier run
    has no times."""

    file: str
    rows: int
    sha256: str
    checksum: str
    bytes: int
    started: NotRequired[float]
    ended: NotRequired[float]
    seconds: NotRequired[float]
    phases: NotRequired[Phases]
    worker: NotRequired[str]
    edges: NotRequired[int]
    rounds: NotRequired[int]
    slowest: NotRequired[tuple[Any, float] | None]
    distances: NotRequired[Histogram | None]


class PartEntry(PartSummary):
    """A part file in the manifest, with the ids of its sources."""

    sources: list[Id]


class TableEntry(TypedDict):
    """A table beside the parts: its vertices, or one that a finished run makes of its parts."""

    file: str
    bytes: int
    sha256: str


Measured = tuple[str, int, float]  # strategy, sources and seconds of the groups by which strategies are compared


class BatchOutcome(TypedDict):
    """The outcome of one batch: ``summary`` is None if no source was computed; ``failed`` has sources and reasons."""

    part: int
    summary: PartSummary | None
    failed: list[tuple[int, str]]
    measured: NotRequired[Measured | None]


class Failure(TypedDict):
    """Sources that failed."""

    file: str
    sources: list[Id]
    error: str


class Retry(TypedDict):
    """A batch that was retried."""

    file: str
    why: str


class Identity(TypedDict):
    """Everything that determines the content of the part files."""

    graph: str
    algorithm: Literal["bfs", "sssp"]
    limit: float | None
    targets: str | None
    result: ResultName
    certify: Literal["all", "sample", "none"]
    sources: str
    batch_size: int
    direction: NotRequired[Literal["out", "in"]]
    pairs: NotRequired[str]
    reduction: NotRequired[str]
    k: NotRequired[int]
    groups: NotRequired[str]
    limits: NotRequired[str]
    along: NotRequired[str]
    unreached: NotRequired[Literal["omit", "null", "cugraph"]]
    unconnected: NotRequired[Literal["refuse", "largest"]]


class GraphFacts(TypedDict):
    """The graph of a run; ``built`` is a ``BuildReport``."""

    fingerprint: str
    vertices: int
    stored_edges: int
    directed: bool
    built: NotRequired[dict[str, Any]]
    reused: NotRequired[bool]


class Candidate(TypedDict):
    """A strategy that tasks may use; ``estimated`` seconds are those of all sources."""

    strategy: str
    estimated: float
    sources_at_once: int
    bytes: int


class Measurement(TypedDict):
    """Measured and estimated time of the sources that a strategy computed."""

    strategy: str
    sources: int
    seconds: float
    estimated: float


class Switch(TypedDict):
    """A change of the strategy, after ``measured_sources`` sources."""

    strategy: str
    measured_sources: int


class StrategyChoice(TypedDict):
    """The choice between strategies in a run."""

    first: str
    candidates: list[Candidate]
    measured: list[Measurement]
    switches: list[Switch]


Status = Literal["running", "done", "failed", "interrupted"]


class Manifest(TypedDict):
    """``_manifest.json``."""

    format: int
    status: Status
    algorithm: Literal["bfs", "sssp"]
    result: ResultName
    means: str
    direction: NotRequired[Literal["out", "in"]]
    distances: NotRequired[dict[str, str]]
    settings: dict[str, Any]
    identity: Identity
    fingerprint: str
    graph: GraphFacts
    device: str
    strategy: str
    choice: NotRequired[StrategyChoice | None]
    workers: int
    memory: dict[str, int]
    sources: int
    duplicate_sources: int
    batches: int
    versions: dict[str, str]
    seconds: dict[str, float]
    parts: list[PartEntry]
    tables: list[TableEntry]
    failed: list[Failure]
    retried: list[Retry]
    digest: str | None
    ended_by: NotRequired[str]


class Footer(TypedDict):
    """The footer of a part file."""

    format: int
    run: str
    part: int
    result: ResultName
    rows: int
    sources: list[Id]
    checksums: list[str]
    version: NotRequired[str]
