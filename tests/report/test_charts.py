import base64
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

from coterie import Report
from coterie.displays._look import PALETTE
from coterie.report.charts import UNKNOWN, charts_of, curve, data_address, learner_map
from coterie.report.themes import THEMES, colour, grey, marker


def sections(report):
    return {section["id"]: section for section in report.summary["sections"]}


def test_every_drawing_is_well_formed_and_has_a_label(model, partition, losses):
    for report in (Report(model), Report(partition, losses=losses), Report(partition)):
        for section in sections(report).values():
            for chart in charts_of(section):
                assert ElementTree.fromstring(chart["drawn"]).get("aria-label")


def test_colours_are_those_of_both_themes(model):
    drawn = "".join(chart["drawn"] for part in sections(Report(model)).values() for chart in charts_of(part))
    named = set(re.findall(r"var\(--(\w+)\)", drawn))
    assert {"c0", "c1", "c2"} <= named <= set(THEMES["light"])
    assert set(THEMES["light"]) == set(THEMES["dark"])


def test_colours_return_with_another_shape():
    assert len({(colour(cluster), marker(cluster)) for cluster in range(40)}) == 40
    assert len({colour(cluster) for cluster in range(len(PALETTE))}) == len(PALETTE)
    assert colour(-1) == "var(--quiet)"
    assert [grey(place, 2) for place in (0, 1)] == ["var(--g0)", "var(--g6)"]


def test_points_of_the_map_have_names(model):
    (chart,) = charts_of(sections(Report(model))["map"])
    root = ElementTree.fromstring(chart["drawn"])
    titles = [title.text for title in root.iter("title")]
    assert len(titles) == 12
    assert any(title.startswith("<b>bold</b>") for title in titles)
    assert any(text.text == "{{ 7 * 7 }}" for text in root.iter("text"))


def test_names_on_the_map_stay_inside():
    names = [f"a long name {place}" for place in range(9)]
    places = [[0.0] * 8 + [1.0], [0.01 * place for place in range(8)] + [0.04]]
    data = {"learners": names, "clusters": [0] * 9, "places": places}
    root = ElementTree.fromstring(learner_map(data))
    starts = {text.text: float(text.get("x")) for text in root.iter("text")}
    assert len(starts) > 1
    assert all(0 <= x <= 460 - 5.6 * len(name) for name, x in starts.items())


@pytest.mark.parametrize("values", [[1.0, None, 3.0], [0.0, 0.0, 0.0], [None, None, None], [1e-3, 1.0, 1e6]])
def test_a_curve_leaves_out_what_is_not_known(values):
    drawn = curve("cv", {"n_clusters": [1, 2, 3], "values": values, "spread": None, "chosen": 1})
    assert drawn.count("<circle") == sum(value is not None for value in values)


def test_an_image_holds_its_shades():
    shades = np.array([[0, 100, 254], [UNKNOWN, 7, 1]])
    image = base64.b64decode(data_address(shades).partition(",")[2])
    assert image.startswith(b"\x89PNG")
    chunks, place = {}, 8
    while place < len(image):
        (size,) = struct.unpack(">I", image[place : place + 4])
        kind, data = image[place + 4 : place + 8], image[place + 8 : place + 8 + size]
        assert struct.unpack(">I", image[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + data)
        chunks[kind], place = data, place + 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (3, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(2, 4)
    assert rows[:, 1:].tolist() == shades.tolist()
    # The nearest is opaque, the furthest is the paper, the unknown is grey.
    assert (chunks[b"tRNS"][0], chunks[b"tRNS"][254], chunks[b"tRNS"][255]) == (254, 0, 255)
