"""Draw a road network as SVG, with streets in colours: text alone, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

GREY = "#c8ccd2"
# Sequential, from near to far; and distinct, for groups. People with any colour vision can distinguish them.
BANDS = ("#440154", "#31688e", "#35b779", "#d8b417")
GROUPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARGIN, _LEGEND_ROW, _FONT = 12, 20, 13


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
    low, high = every.min(axis=0), every.max(axis=0)
    scale = (width - 2 * _MARGIN) / (high[0] - low[0])
    labelled = [each for each in streets if each.label]
    top = 2 * _MARGIN + _FONT + (_LEGEND_ROW if labelled else 0)
    height = round(top + (high[1] - low[1]) * scale + _MARGIN)

    def placed(points: np.ndarray) -> np.ndarray:
        return (points - low) * scale + (_MARGIN, top)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="{_FONT}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN + _FONT}" font-weight="bold">{escape(title)}</text>',
    ]
    at = float(_MARGIN)
    for each in labelled:
        y = 2 * _MARGIN + _FONT + 6
        lines.append(f'<path d="M{at:.0f} {y - 4}h22" stroke="{each.colour}" stroke-width="4"/>')
        lines.append(f'<text x="{at + 28:.0f}" y="{y}">{escape(each.label)}</text>')
        at += 28 + 7.5 * len(each.label) + 18
    for each in streets:
        if len(each.ends):
            path = "".join(
                "M{:.0f} {:.0f}L{:.0f} {:.0f}".format(*ends) for ends in placed(each.ends.reshape(-1, 2, 2)).reshape(-1, 4)
            )
            lines.append(
                f'<path d="{path}" stroke="{each.colour}" stroke-width="{each.width}" stroke-linecap="round" fill="none"/>'
            )
    for mark in marks:
        x, y = placed(np.array([mark.x, mark.y]))
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#ffffff" stroke="#000000" stroke-width="2"/>')
        if mark.label:
            place, name = f'x="{x + 9:.1f}" y="{y + 4:.1f}"', escape(mark.label)
            lines.append(f'<text {place} stroke="#ffffff" stroke-width="4">{name}</text>')  # a halo
            lines.append(f"<text {place}>{name}</text>")
    return "\n".join([*lines, "</svg>", ""])
