import base64
import struct
import zlib

import numpy as np

from coterie.report.png import UNKNOWN, data_address


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
