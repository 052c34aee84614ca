"""The drawings of the evidence: heat map, map of the learners, curves of the rules, differences.

The cells of the heat map are a small image as a data address, which needs neither a script nor a library.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._text import display_name, number
from coterie.displays._look import NEAR
from coterie.displays.cluster_count import on_log_scale
from coterie.report.svg import PlotFrame, drawing, element, point, text, titled
from coterie.report.themes import colour, marker
from coterie.report.words import region_words

# The fainter shades let the page shine through, so that one image suits light and dark.
STRONGEST = bytes.fromhex(NEAR.removeprefix("#"))
GREY = bytes((150, 150, 150))
UNKNOWN = 255
# Names beside the heat map, and beside the points of the map, as far as they have room.
MOST_NAMES = 40
MOST_ON_MAP = 120
HEAT_UNITS = {"dissimilarity": "dissimilarity", "noise": "error, in units of the learner's noise"}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_address(shades: Array) -> str:
    """Return an image of integers (h, w): from 0, which is strongest, to 254; 255 is grey."""
    height, width = shades.shape
    rows = np.hstack([np.zeros((height, 1), np.uint8), shades.astype(np.uint8)])
    parts = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", STRONGEST * UNKNOWN + GREY),
        _chunk(b"tRNS", bytes(254 - shade for shade in range(UNKNOWN)) + b"\xff"),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _shades(data: dict[str, Any]) -> Any:
    """Return the places of the cells on the colour scale: 0 is nearest."""
    cells = np.array(data["cells"], dtype=float)
    low, high = data["limits"]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(np.clip(cells, low, high) / low) / math.log(high / low)
    return np.where(np.isfinite(cells), np.round(np.nan_to_num(share) * (UNKNOWN - 1)), UNKNOWN)


def _bands(clusters: list[int], left: float, size: float) -> list[str]:
    """Return a strip in the coteries' colours above the cells, and lines between coteries."""
    n, parts = len(clusters), []
    starts = [p for p in range(n) if p == 0 or clusters[p] != clusters[p - 1]]
    for start, end in pairwise([*starts, n]):
        at, span = left + start / n * size, (end - start) / n * size
        fill = colour(clusters[start])
        parts.append(element("rect", x=at, y=14, width=span, height=6, fill=fill))
        if start:
            down = 22 + start / n * size
            parts.append(element("line", x1=at, x2=at, y1=22, y2=22 + size, class_="cut"))
            parts.append(element("line", x1=left, x2=left + size, y1=down, y2=down, class_="cut"))
        if span > 12:
            name = f"coterie {clusters[start]}" if span > 60 else str(clusters[start])
            parts.append(text(name, x=at + span / 2, y=10, text_anchor="middle"))
    return parts


def heat_map(data: dict[str, Any]) -> str:
    """Draw everybody's model on everybody's rows."""
    n, size = len(data["learners"]), 400.0
    names = [display_name(name) for name in data["learners"]] if n <= MOST_NAMES else []
    left = max(52.0, 8 + 5.2 * max(map(len, names), default=2))
    image = element(
        "image",
        href=data_address(_shades(data)),
        x=left,
        y=22,
        width=size,
        height=size,
        preserveAspectRatio="none",
        class_="cells",
        id="cells",
    )
    letters = min(9.0, 0.85 * size / max(n, 1))
    rows = [
        text(name, x=left - 4, y=22 + (p + 0.5) * size / n + letters / 3, text_anchor="end", size=letters)
        for p, name in enumerate(names)
    ]
    below = 22 + size
    scale = [
        element("rect", x=left, y=below + 22, width=160, height=8, fill="url(#shades)"),
        text("model of", x=0, y=12),
        text("on the rows of (same order)", x=left + size, y=below + 12, text_anchor="end"),
    ]
    low, high = data["limits"]
    unit = HEAT_UNITS.get(data["unit"], data.get("error", "mean squared error"))
    for share, value in ((0.0, low), (0.5, math.sqrt(low * high)), (1.0, high)):
        scale.append(text(number(value), x=left + 160 * share, y=below + 42, text_anchor="middle"))
    scale.append(text(unit, x=left + 172, y=below + 30))
    stops = [element("stop", offset=share, class_=f"stop{share}") for share in (0, 1)]
    shades = element("defs", element("linearGradient", *stops, id="shades"))
    label = "Heat map of losses, learners ordered by coterie"
    inside = [shades, image, *_bands(data["clusters"], left, size), *rows, *scale]
    return drawing(left + size + 6, below + 48, label, *inside, kind="wide")


def _names_on_map(names: list[str], left: list[float], top: list[float], width: float) -> list[str]:
    """Write names beside their points, inside the drawing; one without room is left to the pointer."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in zip(left, top, strict=True)]
    written = []
    for name, x, y in zip(names, left, top, strict=True):
        short = display_name(name, 18)
        wide = 5.6 * len(short)
        for at, down in (
            (x + 7, y + 3),
            (x - 7 - wide, y + 3),
            (x - wide / 2, y - 8),
            (x - wide / 2, y + 14),
        ):
            box = (at, down - 7, at + wide, down + 1)
            if 0 <= at <= width - wide and not any(
                a < box[2] and box[0] < c and b < box[3] and box[1] < d for a, b, c, d in taken
            ):
                taken.append(box)
                written.append(text(short, x=at, y=down, size=9))
                break
    return written


def learner_map(data: dict[str, Any]) -> str:
    """Draw the learners as points that have names."""
    across, up = data["places"]
    names, n = data["learners"], len(data["learners"])
    width, height, edge = 460.0, 360.0, 26.0
    spread = max(max(across) - min(across), (max(up) - min(up)) * width / height, 1e-9)
    scale = (width - 2 * edge - 40) / spread
    middle = (max(across) + min(across)) / 2, (max(up) + min(up)) / 2
    left_of = [width / 2 + (x - middle[0]) * scale - 14 for x in across]
    top_of = [height / 2 - (y - middle[1]) * scale for y in up]
    parts = _names_on_map(names, left_of, top_of, width) if n <= MOST_ON_MAP else []
    for name, cluster, left, top in zip(names, data["clusters"], left_of, top_of, strict=True):
        look = {"fill": colour(cluster), "class_": "point"}
        whose = titled(f"{name}, coterie {cluster}")
        parts.append(point(left, top, 5 if n <= 200 else 3.2, marker(cluster), whose, **look))
    return drawing(width, height, "Map of the learners, by the distance of their models", *parts, kind="wide")


def curve(name: str, found: dict[str, Any]) -> str:
    """Draw how a rule for the number of coteries came to its answer."""
    known = [
        (float(k), value, spread or 0.0)
        for k, value, spread in zip(
            found["n_clusters"],
            found["values"],
            found["spread"] or [0.0] * len(found["values"]),
            strict=True,
        )
        if value is not None
    ]
    if not known:
        return ""
    log = on_log_scale(name, np.array([value for _, value, _ in known]))
    ends = [
        end for _, value, spread in known for end in (value - spread, value + spread) if not log or end > 0
    ]
    counts = [k for k, *_ in known]
    frame = PlotFrame([counts[0] - 0.4, counts[-1] + 0.4], ends, log=log)
    parts = [frame.axes("number of coteries", counts[:: -(-len(counts) // 10)])]
    parts.append(frame.line([(k, value) for k, value, _ in known], class_="line quiet"))
    for k, value, spread in known:
        chosen = k == found["chosen"]
        if spread and (not log or value > spread):
            bar = [(k, value - spread), (k, value + spread)]
            parts.append(frame.line(bar, class_="line quiet"))
        look = {"class_": "chosen" if chosen else "quiet-point"}
        said = titled(f"{k:g} coteries: {number(value)}")
        parts.append(point(frame.x(k), frame.y(value), 5 if chosen else 2.5, "o", said, **look))
    label = f"Curve of the rule {name}, whose answer is {found['chosen']}"
    return drawing(frame.width, frame.height, label, *parts)


def difference(pair: dict[str, Any]) -> str:
    """Draw the difference of two coteries' predictions, along the predictor that tells them apart best."""
    profile, (first, second) = pair["profile"], pair["clusters"]
    values = profile["values"]
    # Differences inside the band are no larger than the noise of single rows.
    frame = PlotFrame([*profile["from"], *profile["to"]], [*values, 0.0, pair["noise"], -pair["noise"]])
    name = display_name(pair["predictors"][0]["name"], 40)
    steps = [
        index
        for low, high, value in zip(profile["from"], profile["to"], values, strict=True)
        for index in ((low, value), (high, value))
    ]
    parts = [
        frame.band(-pair["noise"], pair["noise"]),
        frame.axes(name),
        frame.line([(frame.low, 0.0), (frame.high, 0.0)], class_="axis"),
        frame.line(steps, class_="line"),
    ]
    what = "Prediction" if pair["label"] is None else f"Probability of {pair['label']!r}"
    label = f"{what} of coterie {first} minus that of coterie {second}, along {name}"
    return drawing(frame.width, frame.height, label, *parts)


def shape(data: dict[str, Any], found: dict[str, Any]) -> str:
    """Draw how predictions depend on a predictor, a line for each coterie."""
    numeric, lines = found["numeric"], found["predictions"]
    values = found["values"] if numeric else [float(index) for index in range(len(found["values"]))]
    room = 0.0 if numeric else 0.5
    frame = PlotFrame(
        [values[0] - room, values[-1] + room], [up for line in lines for up in line if up is not None]
    )
    parts = [frame.axes(display_name(found["predictor"], 40), None if numeric else [])]
    if not numeric:
        step = (frame.x(1.0) - frame.x(0.0)) if len(values) > 1 else 100.0
        longest = max(2, int(step / 5.2))
        names = (display_name(name, longest) for name in found["values"])
        floor = frame.height - frame.BOTTOM + 13
        parts += [
            text(name, x=frame.x(x), y=floor, text_anchor="middle", size=9)
            for x, name in zip(values, names, strict=True)
        ]
    for cluster, line in zip(data["clusters"], lines, strict=True):
        indices = [(x, up) for x, up in zip(values, line, strict=True) if up is not None]
        if numeric:
            parts.append(frame.line(indices, class_="line", style=f"stroke: {colour(cluster)}"))
        for x, up in indices:
            said = titled(f"coterie {cluster}: {number(up)}")
            look = {"fill": colour(cluster), "class_": "point"}
            parts.append(point(frame.x(x), frame.y(up), 3.2, marker(cluster), said, **look))
    label = f"Mean prediction along {found['predictor']}, for each coterie"
    return drawing(frame.width, frame.height, label, *parts)


def charts_of(section: dict[str, Any]) -> list[dict[str, str]]:
    """Draw a section of the evidence: drawings with a heading and small print."""
    data = section["data"]
    if data is None:
        return []
    match section["id"]:
        case "losses":
            return [{"drawn": heat_map(data), "heading": "", "caption": ""}]
        case "map":
            return [{"drawn": learner_map(data), "heading": "", "caption": ""}]
        case "importance":
            return [
                {"drawn": shape(data, result), "heading": result["predictor"], "caption": ""}
                for result in data["shapes"]
            ]
        case "why":
            return [
                {
                    "drawn": curve(name, result),
                    "heading": f"{name}: {result['chosen']}" + (" (decided)" if name == data["rule"] else ""),
                    "caption": result["criterion"],
                }
                for name, result in data["rules"].items()
            ]
        case "differences":
            return [
                {
                    "drawn": difference(pair),
                    "heading": "Coterie {} minus coterie {}".format(*pair["clusters"]),
                    "caption": ("" if pair["label"] is None else f"Probability of {pair['label']!r}. ")
                    + region_words(pair),
                }
                for pair in data["pairs"]
            ]
    return []
