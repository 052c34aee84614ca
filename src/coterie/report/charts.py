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
    """Return a chunk of a PNG file: length, four letters of its kind, data, checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_address(shades: Array) -> str:
    """Return an image as a data address: shades of one colour, from integers of shape (height, width).

    0 is the strongest shade, 254 transparent, 255 grey. The image is a PNG file with a palette, written
    here, so that no library for images is needed. Its chunks: header, palette, transparency, pixels, end.
    """
    height, width = shades.shape
    # PNG wants a byte before each row that names a filter; 0 is none.
    rows_with_filter_byte = np.hstack([np.zeros((height, 1), np.uint8), shades.astype(np.uint8)])
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", STRONGEST * UNKNOWN + GREY),
        _chunk(b"tRNS", bytes(254 - shade for shade in range(UNKNOWN)) + b"\xff"),
        _chunk(b"IDAT", zlib.compress(rows_with_filter_byte.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _shades(data: dict[str, Any]) -> Any:
    """Return the shades (0 to 254) of the cells on a log scale between the limits; not finite: `UNKNOWN`."""
    cells = np.array(data["cells"], dtype=float)
    low, high = data["limits"]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(np.clip(cells, low, high) / low) / math.log(high / low)
    return np.where(np.isfinite(cells), np.round(np.nan_to_num(share) * (UNKNOWN - 1)), UNKNOWN)


def _bands(clusters: list[int], left: float, size: float) -> list[str]:
    """Return SVG: a strip in the coteries' colours above the heat map, and lines between the coteries.

    ``clusters`` has the coterie of each row of cells; ``left`` is where the cells begin, ``size`` their
    width and height.
    """
    n, elements = len(clusters), []
    first_rows = [row for row in range(n) if row == 0 or clusters[row] != clusters[row - 1]]
    for start, end in pairwise([*first_rows, n]):
        band_left, band_width = left + start / n * size, (end - start) / n * size
        fill = colour(clusters[start])
        elements.append(element("rect", x=band_left, y=14, width=band_width, height=6, fill=fill))
        if start:
            line_y = 22 + start / n * size
            elements.append(element("line", x1=band_left, x2=band_left, y1=22, y2=22 + size, class_="cut"))
            elements.append(element("line", x1=left, x2=left + size, y1=line_y, y2=line_y, class_="cut"))
        if band_width > 12:
            name = f"coterie {clusters[start]}" if band_width > 60 else str(clusters[start])
            elements.append(text(name, x=band_left + band_width / 2, y=10, text_anchor="middle"))
    return elements


def heat_map(data: dict[str, Any]) -> str:
    """Draw the losses of every model (row) on every learner's rows (column) as SVG, with the colour scale.

    ``data`` is what `losses_picture` returned. Lengths are in the units of the drawing, which is scaled
    to the page.
    """
    # Cells begin 22 below the top, under the coteries' names and bands; all lengths are in units of the
    # drawing.
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
    letter_size = min(9.0, 0.85 * size / max(n, 1))
    row_names = [
        text(
            name,
            x=left - 4,
            y=22 + (row + 0.5) * size / n + letter_size / 3,
            text_anchor="end",
            size=letter_size,
        )
        for row, name in enumerate(names)
    ]
    below = 22 + size
    legend = [
        element("rect", x=left, y=below + 22, width=160, height=8, fill="url(#shades)"),
        text("model of", x=0, y=12),
        text("on the rows of (same order)", x=left + size, y=below + 12, text_anchor="end"),
    ]
    low, high = data["limits"]
    unit = HEAT_UNITS.get(data["unit"], data.get("error", "mean squared error"))
    for share, value in ((0.0, low), (0.5, math.sqrt(low * high)), (1.0, high)):
        legend.append(text(number(value), x=left + 160 * share, y=below + 42, text_anchor="middle"))
    legend.append(text(unit, x=left + 172, y=below + 30))
    stops = [element("stop", offset=share, class_=f"stop{share}") for share in (0, 1)]
    shades = element("defs", element("linearGradient", *stops, id="shades"))
    label = "Heat map of losses, learners ordered by coterie"
    contents = [shades, image, *_bands(data["clusters"], left, size), *row_names, *legend]
    return drawing(left + size + 6, below + 48, label, *contents, kind="wide")


def _names_on_map(names: list[str], left: list[float], top: list[float], width: float) -> list[str]:
    """Write names beside the points of a map, where they cover neither a point nor another name.

    ``left`` and ``top`` are the points' coordinates. Each name tries right, left, above and below its point;
    one without room is left out, and shown beside the pointer only. Boxes are (left, top, right, bottom), and
    widths are guessed from the number of letters, for nothing here knows the font.
    """
    occupied_boxes = [(x - 5, y - 5, x + 5, y + 5) for x, y in zip(left, top, strict=True)]
    texts = []
    for name, x, y in zip(names, left, top, strict=True):
        name_text = display_name(name, 18)
        text_width = 5.6 * len(name_text)
        for text_left, text_y in (
            (x + 7, y + 3),
            (x - 7 - text_width, y + 3),
            (x - text_width / 2, y - 8),
            (x - text_width / 2, y + 14),
        ):
            box = (text_left, text_y - 7, text_left + text_width, text_y + 1)
            if 0 <= text_left <= width - text_width and not any(
                a < box[2] and box[0] < c and b < box[3] and box[1] < d for a, b, c, d in occupied_boxes
            ):
                occupied_boxes.append(box)
                texts.append(text(name_text, x=text_left, y=text_y, size=9))
                break
    return texts


def learner_map(data: dict[str, Any]) -> str:
    """Draw the learners as points in their coteries' colours, from what `map_picture` returned.

    Both axes have one scale: distances on the map stand for those of the models (how badly they predict each
    other's rows).
    """
    across, up = data["places"]
    names, n_learners = data["learners"], len(data["learners"])
    width, height, margin = 460.0, 360.0, 26.0
    spread = max(max(across) - min(across), (max(up) - min(up)) * width / height, 1e-9)
    scale = (width - 2 * margin - 40) / spread
    centre = (max(across) + min(across)) / 2, (max(up) + min(up)) / 2
    left_of = [width / 2 + (x - centre[0]) * scale - 14 for x in across]
    top_of = [height / 2 - (y - centre[1]) * scale for y in up]
    elements = _names_on_map(names, left_of, top_of, width) if n_learners <= MOST_ON_MAP else []
    for name, cluster, left, top in zip(names, data["clusters"], left_of, top_of, strict=True):
        attributes = {"fill": colour(cluster), "class_": "point"}
        tooltip = titled(f"{name}, coterie {cluster}")
        elements.append(
            point(left, top, 5 if n_learners <= 200 else 3.2, marker(cluster), tooltip, **attributes)
        )
    return drawing(
        width, height, "Map of the learners, by the distance of their models", *elements, kind="wide"
    )


def curve(name: str, found: dict[str, Any]) -> str:
    """Draw a rule's criterion against the number of coteries, with error bars and its choice marked.

    ``found`` is the rule's curve as the summary has it: ``n_clusters``, ``values``, ``spread`` and
    ``chosen``. Without a value the drawing is an empty text.
    """
    known_points = [
        (float(k), value, spread or 0.0)
        for k, value, spread in zip(
            found["n_clusters"],
            found["values"],
            found["spread"] or [0.0] * len(found["values"]),
            strict=True,
        )
        if value is not None
    ]
    if not known_points:
        return ""
    log = on_log_scale(name, np.array([value for _, value, _ in known_points]))
    bar_ends = [
        bar_end
        for _, value, spread in known_points
        for bar_end in (value - spread, value + spread)
        if not log or bar_end > 0
    ]
    counts = [k for k, *_ in known_points]
    frame = PlotFrame([counts[0] - 0.4, counts[-1] + 0.4], bar_ends, log=log)
    elements = [frame.axes("number of coteries", counts[:: -(-len(counts) // 10)])]
    elements.append(frame.line([(k, value) for k, value, _ in known_points], class_="line quiet"))
    for k, value, spread in known_points:
        chosen = k == found["chosen"]
        if spread and (not log or value > spread):
            error_bar = [(k, value - spread), (k, value + spread)]
            elements.append(frame.line(error_bar, class_="line quiet"))
        attributes = {"class_": "chosen" if chosen else "quiet-point"}
        tooltip = titled(f"{k:g} coteries: {number(value)}")
        elements.append(point(frame.x(k), frame.y(value), 5 if chosen else 2.5, "o", tooltip, **attributes))
    label = f"Curve of the rule {name}, whose answer is {found['chosen']}"
    return drawing(frame.width, frame.height, label, *elements)


def difference(pair: dict[str, Any]) -> str:
    """Draw by how much two coteries' predictions differ along the predictor that separates them best.

    ``pair`` is one of those of `differences_picture`. The line is a step per bin of the predictor; the
    band is the noise of single rows, so that smaller differences do not matter.
    """
    profile, (first, second) = pair["profile"], pair["clusters"]
    bin_means = profile["values"]
    frame = PlotFrame([*profile["from"], *profile["to"]], [*bin_means, 0.0, pair["noise"], -pair["noise"]])
    name = display_name(pair["predictors"][0]["name"], 40)
    step_points = [
        step_point
        for low, high, value in zip(profile["from"], profile["to"], bin_means, strict=True)
        for step_point in ((low, value), (high, value))
    ]
    elements = [
        frame.band(-pair["noise"], pair["noise"]),
        frame.axes(name),
        frame.line([(frame.low, 0.0), (frame.high, 0.0)], class_="axis"),
        frame.line(step_points, class_="line"),
    ]
    quantity = "Prediction" if pair["label"] is None else f"Probability of {pair['label']!r}"
    label = f"{quantity} of coterie {first} minus that of coterie {second}, along {name}"
    return drawing(frame.width, frame.height, label, *elements)


def shape(data: dict[str, Any], found: dict[str, Any]) -> str:
    """Draw mean predictions along one predictor (partial dependence), a line or row of points per coterie.

    ``data`` is what `importance_picture` returned, ``found`` one of its ``shapes``. Entries that are not
    numbers stand at 0, 1, 2, ... and are named below the axis.
    """
    numeric, lines = found["numeric"], found["predictions"]
    positions = found["values"] if numeric else [float(index) for index in range(len(found["values"]))]
    margin = 0.0 if numeric else 0.5
    frame = PlotFrame(
        [positions[0] - margin, positions[-1] + margin],
        [prediction for line in lines for prediction in line if prediction is not None],
    )
    elements = [frame.axes(display_name(found["predictor"], 40), None if numeric else [])]
    if not numeric:
        entry_width = (frame.x(1.0) - frame.x(0.0)) if len(positions) > 1 else 100.0
        longest_name = max(2, int(entry_width / 5.2))
        names = (display_name(name, longest_name) for name in found["values"])
        names_y = frame.height - frame.BOTTOM + 13
        elements += [
            text(name, x=frame.x(x), y=names_y, text_anchor="middle", size=9)
            for x, name in zip(positions, names, strict=True)
        ]
    for cluster, line in zip(data["clusters"], lines, strict=True):
        line_points = [
            (x, prediction) for x, prediction in zip(positions, line, strict=True) if prediction is not None
        ]
        if numeric:
            elements.append(frame.line(line_points, class_="line", style=f"stroke: {colour(cluster)}"))
        for x, prediction in line_points:
            tooltip = titled(f"coterie {cluster}: {number(prediction)}")
            attributes = {"fill": colour(cluster), "class_": "point"}
            elements.append(
                point(frame.x(x), frame.y(prediction), 3.2, marker(cluster), tooltip, **attributes)
            )
    label = f"Mean prediction along {found['predictor']}, for each coterie"
    return drawing(frame.width, frame.height, label, *elements)


def charts_of(section: dict[str, Any]) -> list[dict[str, str]]:
    """Return the drawings of a section of the report: dicts of SVG, heading and caption; or none.

    ``section`` has an ``id`` and the ``data`` of its picture, None where they do not exist. Sections
    drawn as bars have none here; see `bars_of`.
    """
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
