"""Small drawings as SVG text: elements, scales with ticks, and a frame with axes to draw lines in.

Colours are variables of the page's style, so that a drawing follows its theme. Texts from the data are
escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from coterie._text import MINUS

Points = Sequence[tuple[float, float]]


def element(name: str, *inside: str, **attributes: Any) -> str:
    """Return an SVG element with its attributes, values escaped; ``inside`` is markup, taken as it is.

    In names an underscore stands for a hyphen, and one at the end is dropped (``class_``). Attributes
    that are None are left out.
    """
    attributes_text = ""
    for key, value in attributes.items():
        if value is not None:
            value_text = f"{value:.5g}" if isinstance(value, float) else escape(str(value))
            attributes_text += f' {key.rstrip("_").replace("_", "-")}="{value_text}"'
    content = "".join(inside)
    return f"<{name}{attributes_text}>{content}</{name}>" if content else f"<{name}{attributes_text}/>"


def text(words: object, **attributes: Any) -> str:
    """Return an SVG text of words, escaped; ``size`` is that of the letters, the rest as in `element`."""
    size = attributes.pop("size", None)
    # A style, for the style sheet has a size for all texts.
    style = None if size is None else f"font-size: {size:.3g}px"
    return element("text", escape(str(words), quote=False), style=style, **attributes)


def titled(words: object) -> str:
    """Return a tooltip: a title element for the element that it is put into."""
    return element("title", escape(str(words), quote=False))


def drawing(width: float, height: float, label: str, *inside: str, kind: str = "") -> str:
    """Return a whole SVG drawing of a size, in units that the page scales; ``inside`` is its markup.

    ``label`` says what it shows to whoever cannot see it; ``kind`` is a further class for the style
    sheet.
    """
    return element(
        "svg",
        *inside,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        class_=f"drawing {kind}".strip(),
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten) from low to high, at most ``most``.

    Without a range (``high`` not above ``low``) the one tick is ``low``.
    """
    if not high > low:
        return [low]
    for step in (10.0 ** math.floor(math.log10((high - low) / most)) * factor for factor in (1, 2, 5, 10)):
        first_multiple, last_multiple = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last_multiple - first_multiple < most:
            return [index * step for index in range(first_multiple, last_multiple + 1)]
    return [low]


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two positive ones for a log scale, at most ``most``.

    The densest of three grids that has few enough is taken: 1, 2, 5; then 1, 3; then powers of ten, some
    of which are skipped if they are still too many.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        candidates = [factor * 10.0**decade for decade in decades for factor in factors]
        candidates = [tick for tick in candidates if low <= tick <= high]
        if len(candidates) <= most:
            return candidates if len(candidates) > 1 else ticks(low, high, most)
    return candidates[:: -(-len(candidates) // most)]


def tick_text(value: float) -> str:
    """Return a tick as a short text: scientific if very large or small, with commas from 10,000 on."""
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("-", MINUS)
    # A year has no comma.
    return f"{round(value, 6):{',' if size >= 1e4 else ''}g}".replace("-", MINUS)


class PlotFrame:
    """A box with two axes, in which things are drawn by their values."""

    LEFT, RIGHT, TOP, BOTTOM = 54, 20, 8, 34

    def __init__(
        self,
        across: Sequence[float],
        up: Sequence[float],
        *,
        width: float = 320,
        height: float = 200,
        log: bool = False,
    ) -> None:
        """Choose the ranges of both axes from the values to draw, with room above and below.

        ``width`` and ``height`` are those of the drawing. ``log`` makes the vertical axis
        logarithmic; its values must be positive then.
        """
        self.width, self.height, self.log = width, height, log
        self.low, self.high = min(across), max(across)
        self.bottom, self.top = min(up), max(up)
        if not self.high > self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        if not log:
            room = 0.06 * (self.top - self.bottom) or max(abs(self.top) * 0.1, 0.5)
            self.bottom, self.top = self.bottom - room, self.top + room
        elif not self.top > self.bottom:
            self.bottom, self.top = self.bottom / 2, self.top * 2

    def x(self, value: float) -> float:
        """Return the horizontal coordinate of a value in the drawing."""
        share = (value - self.low) / (self.high - self.low)
        return self.LEFT + share * (self.width - self.LEFT - self.RIGHT)

    def y(self, value: float) -> float:
        """Return the vertical coordinate of a value in the drawing, which SVG counts from the top."""
        if self.log:
            share = math.log(value / self.bottom) / math.log(self.top / self.bottom)
        else:
            share = (value - self.bottom) / (self.top - self.bottom)
        return self.height - self.BOTTOM - share * (self.height - self.TOP - self.BOTTOM)

    def axes(self, title: str, marks: Sequence[float] | None = None) -> str:
        """Return both axes with ticks and grid, and the title of the horizontal one.

        ``marks`` are the ticks of the horizontal axis; None: round numbers.
        """
        across = ticks(self.low, self.high) if marks is None else marks
        up = (log_ticks if self.log else ticks)(self.bottom, self.top)
        floor, right = self.height - self.BOTTOM, self.width - self.RIGHT
        elements = [element("line", x1=self.LEFT, x2=right, y1=floor, y2=floor, class_="axis")]
        elements += [
            text(tick_text(tick_value), x=self.x(tick_value), y=floor + 13, text_anchor="middle")
            for tick_value in across
        ]
        for tick in up:
            elements.append(
                element("line", x1=self.LEFT, x2=right, y1=self.y(tick), y2=self.y(tick), class_="grid")
            )
            elements.append(text(tick_text(tick), x=self.LEFT - 5, y=self.y(tick) + 3.5, text_anchor="end"))
        elements.append(text(title, x=(self.LEFT + right) / 2, y=self.height - 5, text_anchor="middle"))
        return "".join(elements)

    def line(self, points: Points, **look: Any) -> str:
        """Return a line through points given by their values; ``look`` are its attributes."""
        coordinates = " ".join(f"{self.x(across):.1f},{self.y(up):.1f}" for across, up in points)
        return element("polyline", points=coordinates, fill="none", **look)

    def band(self, low: float, high: float) -> str:
        """Return a rectangle over the whole width between two values, cut at the frame."""
        top, bottom = self.y(min(high, self.top)), self.y(max(low, self.bottom))
        span = self.width - self.LEFT - self.RIGHT
        return element("rect", x=self.LEFT, y=top, width=span, height=max(bottom - top, 0.0), class_="band")


# The shapes of matplotlib's markers, around the origin, for a radius of one.
SHAPES = {
    "s": "M-.85-.85H.85V.85H-.85Z",
    "^": "M0-1.1L1 .8H-1Z",
    "D": "M0-1.15L1.15 0L0 1.15L-1.15 0Z",
    "v": "M0 1.1L1-.8H-1Z",
    "P": "M-.35-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "X": "M-.6-1L0-.4L.6-1L1-.6L.4 0L1 .6L.6 1L0 .4L-.6 1L-1 .6L-.4 0L-1-.6Z",
}


def point(x: float, y: float, radius: float, shape: str, *inside: str, **look: Any) -> str:
    """Return a point of a radius in the shape of matplotlib's marker ``shape``; not in `SHAPES`: a circle."""
    if shape not in SHAPES:
        return element("circle", *inside, cx=round(x, 1), cy=round(y, 1), r=radius, **look)
    placement = f"translate({x:.1f} {y:.1f}) scale({radius:g})"
    return element("path", *inside, d=SHAPES[shape], transform=placement, **look)
