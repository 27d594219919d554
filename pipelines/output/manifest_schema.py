"""Schemas of the manifest and of the footer of a part file. Both are checked before anything in them is used.

They come from a folder that others may have written to. Unknown keys are ignored, because a later version may add some.
Known keys have the types and ranges that this job writes, so that no number in them causes an unbounded allocation or
loop.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from .part_stats import MAX_BINS
from .schemas import EXTREMES, OUTPUT_SCHEMAS, ResultName

MAX_PARTS = 10**6  # part names have six digits
_Format = Annotated[StrictInt, Field(ge=1, le=1)]  # Literal[1] would take true
_Count = Annotated[StrictInt, Field(ge=0, lt=2**63)]
_Hash = Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]
_Checksum = Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{16}$")]
_File = Annotated[StrictStr, Field(pattern=r"^part-[0-9]{6}\.(parquet|arrow)$")]
_Table = Annotated[StrictStr, Field(pattern=r"^_[a-z]+\.pq$")]
_Id = Annotated[StrictInt, Field(ge=-(2**63), lt=2**64)] | StrictStr
_Seconds = Annotated[StrictFloat | StrictInt, Field(ge=0, le=1e12)]
_Phase = Annotated[StrictStr, Field(pattern="^[a-z_]{1,32}$")]
_Algorithm = Literal["bfs", "sssp"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Histogram(_Model):
    """Distances of a part file, as ``part_stats.histogram_of`` returns them."""

    width: Annotated[StrictFloat, Field(gt=0)]
    first: StrictInt
    counts: Annotated[list[Annotated[StrictInt, Field(ge=0, le=2**53)]], Field(min_length=1, max_length=MAX_BINS)]

    @model_validator(mode="after")
    def _is_within_the_numbers(self) -> Any:
        """Refuse bins for which ``part_stats.merged``, which doubles their width until they fit, would not end."""
        half, exponent = math.frexp(self.width)
        if half != 0.5 or self.first.bit_length() + exponent > 1025:
            raise ValueError("its bins are not those of distances")
        return self


class PartEntry(_Model):
    """One part file in a manifest: what ``part_file.write_part`` returns, and the times that its worker measured."""

    file: _File
    rows: _Count
    sha256: _Hash
    checksum: _Checksum
    bytes: _Count
    sources: list[_Id]
    started: _Seconds = 0
    ended: _Seconds = 0
    seconds: _Seconds = 0
    phases: Annotated[dict[_Phase, _Seconds], Field(max_length=64)] = {}
    worker: StrictStr = ""
    edges: _Count = 0
    rounds: _Count = 0
    slowest: tuple[_Id, _Seconds] | None = None
    distances: Histogram | None = None

    @model_validator(mode="after")
    def _is_timed_whole_or_not_at_all(self) -> Any:
        """Refuse incomplete times: a part file of an earlier run has none, and the report needs all of them or none."""
        missing = {"started", "ended", "phases", "worker", "edges"} - self.model_fields_set
        if missing and {"started", "worker"} <= self.model_fields_set:
            raise ValueError(f"{sorted(missing)[0]!r} is missing, though the time of the part is there")
        return self


class TableEntry(_Model):
    """A table beside the parts."""

    file: _Table
    bytes: _Count
    sha256: _Hash


class Failure(_Model):
    file: _File
    sources: list[_Id]
    error: StrictStr


class Retry(_Model):
    file: _File
    why: StrictStr


class Identity(_Model):
    """Everything that determines the content of the part files."""

    graph: _Hash
    algorithm: _Algorithm
    limit: Annotated[StrictInt, Field(ge=0, lt=2**63)] | Annotated[StrictFloat, Field(ge=0)] | None
    targets: _Hash | None
    result: ResultName
    certify: Literal["all", "sample", "none"]
    sources: _Hash
    batch_size: Annotated[StrictInt, Field(ge=1, lt=2**63)]
    direction: Literal["out", "in"] = "out"
    pairs: _Hash | None = None
    reduction: _Hash | None = None
    k: Annotated[StrictInt, Field(ge=1, lt=2**63)] | None = None
    groups: _Hash | None = None
    limits: _Hash | None = None
    along: _Hash | None = None
    unreached: Literal["omit", "null", "cugraph"] = "omit"
    unconnected: Literal["refuse", "largest"] | None = None

    @model_validator(mode="after")
    def _is_of_one_run(self) -> Any:
        """Refuse combinations that ``settings`` refuses, because no run has them."""
        form = OUTPUT_SCHEMAS[self.result]
        if (self.targets is None) if form.needs_targets else (self.targets is not None and not form.limits_targets):
            raise ValueError(f"result {self.result!r} goes {'with' if self.targets is None else 'without'} targets")
        if (self.pairs is not None) != form.needs_pairs:
            raise ValueError(f"result {self.result!r} goes {'with' if self.pairs is None else 'without'} pairs")
        if self.algorithm == "bfs" and isinstance(self.limit, float):
            raise ValueError("a limit of hops is an integer")
        if (self.reduction is not None) != (form.takes_cutoffs or form.options_class is not None):
            raise ValueError(f"result {self.result!r} goes {'without' if self.reduction else 'with'} options of its own")
        if (self.k is not None) != (self.result == "k_nearest"):
            raise ValueError(f"result {self.result!r} goes {'with' if self.k is None else 'without'} k")
        if self.groups is not None and self.k is None:
            raise ValueError(f"result {self.result!r} goes without groups")
        if self.limits is not None and (self.limit is not None or not form.takes_limits):
            raise ValueError(f"result {self.result!r} goes without limits of its sources")
        if self.unreached != "omit" and not form.is_distances:
            raise ValueError(f"result {self.result!r} has no unreached vertices")
        if self.along is not None and "along" not in form.options:
            raise ValueError(f"result {self.result!r} sums nothing along paths")
        if (self.unconnected is not None) != (self.result == EXTREMES):
            raise ValueError(f"result {self.result!r} goes {'with' if self.unconnected is None else 'without'} unconnected")
        if self.algorithm not in form.algorithms:
            raise ValueError(f"{self.result} are those of {form.algorithms[0]}")
        return self


class Built(_Model):
    """What building the graph did, as in ``BuildReport``; only displayed."""

    src_column: StrictStr = ""
    dst_column: StrictStr = ""
    weight_column: StrictStr = ""
    oneway_column: StrictStr = ""
    where: StrictStr = ""
    unused_columns: list[StrictStr] = []
    unused_numbers: list[StrictStr] = []


class GraphFacts(_Model):
    fingerprint: _Hash
    vertices: _Count
    stored_edges: _Count
    directed: StrictBool
    built: Built = Built()


class Candidate(_Model):
    """A strategy that tasks may use; ``estimated`` seconds are those of all sources."""

    strategy: StrictStr
    estimated: _Seconds
    sources_at_once: Annotated[StrictInt, Field(ge=1, lt=2**63)]
    bytes: _Count


class Measurement(_Model):
    strategy: StrictStr
    sources: _Count
    seconds: _Seconds
    estimated: _Seconds


class Switch(_Model):
    """A change of the strategy, after ``measured_sources`` sources."""

    strategy: StrictStr
    measured_sources: _Count


class StrategyChoice(_Model):
    """The choice between strategies in a run, as ``strategy_choice.StrategyChoice`` records it."""

    first: StrictStr
    candidates: Annotated[list[Candidate], Field(min_length=1, max_length=64)]
    measured: Annotated[list[Measurement], Field(max_length=64)]
    switches: list[Switch]


class Manifest(_Model):
    """``_manifest.json``."""

    format: _Format
    status: Literal["running", "done", "failed", "interrupted"]
    algorithm: _Algorithm
    result: ResultName
    means: StrictStr
    direction: Literal["out", "in"] = "out"
    distances: dict[Literal["type", "sums"], StrictStr] = {}
    settings: dict[StrictStr, object]
    identity: Identity
    fingerprint: _Hash
    graph: GraphFacts
    device: StrictStr
    strategy: StrictStr
    choice: StrategyChoice | None = None
    workers: _Count
    memory: dict[StrictStr, _Count]
    sources: _Count
    duplicate_sources: _Count
    batches: Annotated[StrictInt, Field(ge=0, le=MAX_PARTS)]
    versions: dict[StrictStr, StrictStr]
    seconds: dict[StrictStr, _Seconds]
    parts: Annotated[list[PartEntry], Field(max_length=MAX_PARTS)]
    tables: Annotated[list[TableEntry], Field(max_length=8)]
    failed: list[Failure]
    retried: list[Retry]
    digest: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{16}-[0-9a-f]{16}$")] | None


class Footer(_Model):
    """The footer of a part file."""

    format: _Format
    run: StrictStr
    part: Annotated[StrictInt, Field(ge=0, lt=MAX_PARTS)]
    result: ResultName
    rows: _Count
    sources: list[_Id]
    checksums: list[_Checksum]


def checked(value: object, schema: type[BaseModel]) -> dict[str, Any]:
    """Return a value that was read from JSON unchanged, if it fits a schema.

    Raises
    ------
    ValueError
        It does not; the message says where and why.
    """
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    try:
        schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    return value
