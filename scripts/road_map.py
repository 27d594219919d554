"""Draw a road network as SVG, with streets in colours: text alone, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.monitoring.svg import MARGIN, TOP, Plane, picture

GREY = "#c8ccd2"
# Sequential, from near to far; and distinct, for groups. People with any colour vision can distinguish them.
BANDS = ("#440154", "#31688e", "#35b779", "#d8b417")
GROUPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class Streets(NamedTuple):
    """Streets of one colour: ``ends`` is an array of shape (n, 4) with x and y of both ends."""

    label: str
    colour: str
    ends: np.ndarray
    width: float = 1.6


class Mark(NamedTuple):
    """A place with a name."""

    x: float
    y: float
    label: str = ""


def road_map(title: str, streets: Sequence[Streets], marks: Sequence[Mark] = (), width: int = 760) -> str:
    """Return an SVG image of streets in the order given, the last on top, with a legend of those that have a label."""
    every = np.concatenate([each.ends.reshape(-1, 2) for each in streets])
    (left, top), (right, bottom) = every.min(axis=0), every.max(axis=0)
    height = TOP + MARGIN + round((width - 2 * MARGIN) * (bottom - top) / (right - left))
    legend = [(each.label, each.colour) for each in streets if each.label]
    plane = Plane(title, (left, right), (bottom, top), width, height, MARGIN, MARGIN, legend)
    for each in streets:
        plane.strokes(each.ends.reshape(-1, 2, 2).tolist(), each.colour, each.width)
    for mark in marks:
        plane.mark(mark.x, mark.y, "#ffffff", "ring")
        plane.text(plane.at_x(mark.x) + 9, plane.at_y(mark.y) + 4, mark.label, "halo")
    return picture(plane, file=True)
