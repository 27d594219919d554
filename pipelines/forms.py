"""The forms that results take on disk, one row for each name that ``--result`` takes. Nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ROWS_A_PART = 8_000_000  # about 50 to 100 MB of Parquet, a size that readers like
ROWS_A_GROUP = 1_000_000
SOURCES_A_PART = 4096  # keeps the footer of a part small where the graph is tiny

ResultName = Literal["distances", "predecessors", "summary", "levels", "targets", "reachable", "nearest"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """What the parts of a run hold.

    Attributes
    ----------
    name : str
        As ``--result`` takes it; the library's ``result=`` has the same names.
    columns : tuple of str
    means : str
        What a row is, for people: it stands in the manifest and in every part.
    numbers : int
        Columns of 8 bytes, beside ids and what is a distance.
    merged : bool
        One search from all sources together, so that no row is the answer of one source.
    limits_targets : bool
        Whether targets may be given, of which alone there are rows then.
    """

    name: ResultName
    columns: tuple[str, ...]
    means: str
    numbers: int = 0
    merged: bool = False
    limits_targets: bool = False

    @property
    def id_columns(self) -> int:
        return sum(name in ("source", "vertex", "target", "predecessor") for name in self.columns)

    @property
    def has_distance(self) -> bool:
        """Whether a column has the type of distances."""
        return "distance" in self.columns or "eccentricity" in self.columns

    @property
    def is_distances(self) -> bool:
        """Whether the rows of a source are its distances, which a certificate proves without another traversal."""
        return self.name in ("distances", "predecessors")


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form(
            name="distances",
            columns=("source", "vertex", "distance"),
            means="a row for each vertex that a source reaches: its distance from that source",
            limits_targets=True,
        ),
        Form(
            name="predecessors",
            columns=("source", "vertex", "distance", "predecessor"),
            means="a row for each vertex that a source reaches: its distance from that source, and the vertex before it",
            limits_targets=True,
        ),
        Form(
            name="summary",
            columns=("source", "reached", "eccentricity", "sum", "mean", "closeness", "harmonic"),
            means="a row for each source: figures over the distances to all vertices that it reaches, or "
            "with --direction in from all vertices that reach it",
            numbers=5,
        ),
        Form(
            name="levels",
            columns=("source", "distance", "vertices"),
            means="a row for each source and hop count: how many vertices lie there",
            numbers=1,
        ),
        Form(
            name="targets",
            columns=("source", "target", "distance"),
            means="a row for each pair of source and target: the distance, null where there is no way",
            limits_targets=True,
        ),
        Form(
            name="reachable",
            columns=("source", "vertex"),
            means="a row for each vertex that a source reaches, without distances",
        ),
        Form(
            name="nearest",
            columns=("vertex", "source", "distance"),
            means="one search from all sources together: a row for each vertex, with the nearest of the sources",
            merged=True,
        ),
    )
}
