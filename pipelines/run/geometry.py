"""GeoParquet files, by ``--geometry``: ``_points.pq`` and ``_hulls.pq`` of isochrones, and
``_loads.pq``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kepler_traverse._arrays import to_host
from kepler_traverse.errors import InputError
from kepler_traverse.formats.geoparquet import (
    CRS84,
    HULLS,
    Coordinates,
    bounds_of_hulls,
    crs_entry,
    geo_metadata,
    make_hulls,
    make_shapes,
    shapely_module,
    to_numbers,
)
from kepler_traverse.graph import Graph

from ..cli.options import Settings
from ..output.part_reader import open_part
from ..output.schemas import ROWS_PER_GROUP
from .given_table import is_text, read_vertex_columns

_AXES = ("x", "y")  # columns of the table of vertices
_MAX_DEGREES = (180.0, 90.0)  # the largest longitude and latitude


class Places(NamedTuple):
    """Coordinates of the vertices, and their reference system."""

    coordinates: Coordinates  # by the ids of the vertices
    crs: dict[str, object]  # the reference system, as an entry of the metadata of GeoParquet


def check_geometry(graph: Graph, settings: Settings) -> None:
    """Raise InputError if ``--geometry`` asks for what the result does not have, for hulls without
    their package, or if a vertex of the graph has no coordinates. Do nothing without it.
    """
    geometry = settings.geometry
    if geometry is None:
        return
    allowed = ("shapes",) if settings.kind.adds_up else ("points", "hulls")
    if geometry not in allowed:
        raise InputError(
            f"--geometry {geometry}: --result {settings.result} takes {' or '.join(allowed)}"
        )
    if settings.of == "pairs":
        raise InputError(
            f"--geometry {geometry} draws edges or vertices, and --of "
            "pairs lists pairs; leave one of them out"
        )
    if geometry == "hulls":
        shapely_module()  # raises if it is not installed

    # A look-up of all vertices finds one without coordinates.
    ids = graph.ids if graph.has_string_ids else pa.array(to_host(graph.ids))
    places = read_places(settings, graph.has_string_ids)
    try:
        places.coordinates.look_up(ids)
    except InputError as error:
        text = str(error).replace("vertices of frame", "vertices of the graph")
        raise InputError(f"{settings.vertices}: --geometry {geometry}: {text}") from None


def read_places(settings: Settings, strings: bool) -> Places:
    """Return the coordinates in the table of ``--vertices``, by ids that are strings or integers,
    as ``strings`` says.

    Their reference system is longitude and latitude (CRS84) if all of them are within the range of
    degrees, and unknown otherwise.
    """
    assert settings.vertices is not None  # --geometry is refused without it
    ids, columns = read_vertex_columns(settings.vertices, list(_AXES))
    x, y = (to_numbers(f"{settings.vertices}: column {name!r}", columns[name]) for name in _AXES)
    are_degrees = all(
        np.abs(values).max(initial=0) <= most
        for values, most in zip((x, y), _MAX_DEGREES, strict=True)
    )
    try:
        coordinates = Coordinates(pa.array(ids.ids(strings)), x, y)
    except InputError as error:
        raise InputError(f"{settings.vertices}: {error}") from None
    return Places(coordinates, crs_entry(CRS84 if are_degrees else None))


def points_of_parts(settings: Settings, parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all parts with a column of points, the places of their vertices.

    The tables have ``ROWS_PER_GROUP`` rows, except the last, whatever the parts' row groups are.
    There is at least one table.
    """
    places: Places | None = None
    pending: list[pa.Table] = []  # tables whose rows are not yielded yet
    n_pending = 0  # number of rows in ``pending``
    for table in _read_tables(parts):
        places = places or _places_for(settings, table)
        pending.append(_add_shapes(table, places))
        n_pending += table.num_rows
        while n_pending >= ROWS_PER_GROUP:
            joined = pa.concat_tables(pending)
            yield joined.slice(0, ROWS_PER_GROUP)
            pending = [joined.slice(ROWS_PER_GROUP)]
            n_pending -= ROWS_PER_GROUP
    yield pa.concat_tables(pending)


def with_shapes(settings: Settings, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables of loads with a column of lines of edges, or of points of vertices."""
    for table in tables:
        has_string_ids = is_text(table.schema.field(0).type)  # of a vertex, or where an edge begins
        yield _add_shapes(table, read_places(settings, has_string_ids))


def _add_shapes(table: pa.Table, places: Places) -> pa.Table:
    """Return a table with a column of shapes, and the metadata of a GeoParquet file."""
    shapes, kinds = make_shapes(table, places.coordinates)
    facts = table.schema.metadata or {}
    return shapes.replace_schema_metadata({**facts, **geo_metadata(kinds, places.crs)})


def hulls_of_parts(settings: Settings, parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield one table with a hull (a polygon around the reached vertices) per source and band."""
    places: Places | None = None
    hulls_by_part: list[pa.Table] = []
    for part in parts:  # the rows of a source are in one part
        table = pa.concat_tables(_read_tables([part]))
        places = places or _places_for(settings, table)
        hulls_by_part.append(make_hulls(table, places.coordinates))
    assert places is not None  # a finished run has a part
    hulls = pa.concat_tables(hulls_by_part)
    metadata = geo_metadata(HULLS, places.crs, bounds_of_hulls(hulls))
    yield hulls.replace_schema_metadata(metadata | {"geos": shapely_module().geos_version_string})


def _places_for(settings: Settings, table: pa.Table) -> Places:
    """Return the coordinates of the vertices, by ids of the type that a table of results has."""
    return read_places(settings, is_text(table["vertex"].type))


def _read_tables(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the row groups of part files as tables, without metadata."""
    for part in parts:
        with open_part(part) as file:
            for table in file.tables():
                yield table.replace_schema_metadata(None)
