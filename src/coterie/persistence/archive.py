"""The file itself: a zip whose manifest names every other member with its checksum.

A file is written beside its target and takes its place in one step, so that whoever looks finds the old file
or the new one. A file that is read may be damaged or hostile: nothing in it is used before its names, sizes
and checksums have been looked at.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from coterie._codec import parse_json
from coterie._files import read_plain, write_whole
from coterie._options import listed

# 1 was that of 0.1, which kept the attributes of the estimator. From 2 on a file keeps the record of the fit;
# 3 has the second form of nested coteries; with 4 a model encodes tables as they come; 5 has other
# names of fields.
FORMAT = 5
MANIFEST = "manifest.json"

# A file that unpacks to more is refused: unpacked in all, and against its size on disk. Deflate alone could
# do 1000 to 1, but a true file also holds numbers that hardly shrink. A small file may unpack to SMALL.
LARGEST = 4 * 2**30
MAX_COMPRESSION_RATIO = 100
SMALL = 16 * 2**20
# Each value of JSON takes about a hundred bytes once it is parsed, and may take less than one in the file.
# The files that we write have at most 1.2 values per byte (a forest of 500 stumps).
FREE_VALUES = 200_000
VALUES_PER_BYTE = 4
BYTES_PER_VALUE = 100
MAX_EQUAL_HASHES = 100

_NOT_OURS = "it was not written by coterie.save"
_AGAIN = "save the model again"
_KNOWN = re.compile(r"manifest\.json|arrays\.npz|models/\d{1,9}\.skops", re.ASCII)


class PersistenceError(ValueError):
    """A model that cannot be saved, or a file that cannot be loaded."""


def clean(value: object, max_letters: int = 300) -> str:
    """Return text from a file as one short line of printable letters: nothing in it steers a terminal."""
    text = str(value)
    printable = "".join(letter if letter.isprintable() else " " for letter in text[:max_letters])
    return printable if len(text) <= max_letters else f"{printable}..."


def unfit(what: str) -> PersistenceError:
    """Make the error of a file whose parts were not written by us, or not for each other.

    ``what`` is the rest of a sentence that begins with "The file".
    """
    return PersistenceError(f"The file {clean(what)}: {_NOT_OURS}.")


def need(condition: object, what: str) -> None:
    """Refuse a file that fails a check, as `unfit` says."""
    if not condition:
        raise unfit(what)


def need_spread(keys: Iterable[Any]) -> None:
    """Refuse keys of which many have one hash, such as multiples of 2^61 - 1.

    A dict or set of such keys compares each with all others, which takes quadratic time.
    """
    n_equal_hashes = max(Counter(map(hash, keys)).values(), default=0)
    need(n_equal_hashes <= MAX_EQUAL_HASHES, "holds keys that are made to be slow")


class Budget:
    """How many values a file may be made into, all of its members together, by its size in bytes."""

    def __init__(self, on_disk: int) -> None:
        self._values_left = FREE_VALUES + VALUES_PER_BYTE * on_disk

    def spend(self, text: bytes) -> None:
        """Count the values of a JSON text before it is parsed, and refuse it where they are too many."""
        # Brackets may be escaped inside texts that are parsed once more.
        self._take(sum(map(text.count, (b"[", b"{", b",", b"\\u"))))

    def charge(self, n_bytes: int) -> None:
        """Count what a few values stand for, before it is made, by the bytes that it will take."""
        self._take(n_bytes // BYTES_PER_VALUE)

    def _take(self, n_values: int) -> None:
        self._values_left -= n_values
        need(self._values_left >= 0, "holds more lists and values than its size allows")


def _member(content: bytes, entry: zipfile.ZipInfo) -> bytes:
    """Return the content of a zip's member, which must have the declared size and checksum.

    Unpacking stops one byte after the declared size: a small file cannot fill the memory.
    """
    # zipfile would make all of it first, and then drop what lies beyond the size that is declared.
    content_start = (
        entry.header_offset + 30 + sum(struct.unpack_from("<HH", content, entry.header_offset + 26))
    )
    packed = memoryview(content)[content_start : content_start + entry.compress_size]
    if entry.compress_type == zipfile.ZIP_STORED:
        unpacked, is_complete = bytes(packed), True
    else:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        unpacked = inflate.decompress(packed, entry.file_size + 1)
        is_complete = inflate.eof and not inflate.unused_data
    if not is_complete or len(unpacked) != entry.file_size or zlib.crc32(unpacked) != entry.CRC:
        raise PersistenceError(
            f"The file is damaged or cut short: its member {clean(entry.filename, 100)!r} is not what the "
            "zip says of it; copy it or save the model again."
        )
    return unpacked


def read_stored(content: bytes) -> dict[str, bytes]:
    """Read the members of a zip inside the file, which coterie.save does not compress a second time.

    A zip that would unpack to more than its own size is refused: small hostile files must not fill the
    memory.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        entries = zipped.infolist()
        are_stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        do_not_grow = sum(entry.file_size for entry in entries) <= len(content)
        need(are_stored and do_not_grow, "holds an archive that grows when it is unpacked")
        return {entry.filename: _member(content, entry) for entry in entries}


def _max_unpacked(on_disk: int) -> int:
    """Return how many bytes a file of a size on disk may unpack to."""
    return min(LARGEST, max(SMALL, MAX_COMPRESSION_RATIO * on_disk))


def check_target(path: Path) -> Path:
    """Return the file to write, which is where a link points; refuse a folder, or a place in no folder."""
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(target.parent)!r} to save the model in: make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: give coterie.save the name of a file.")
    return target


def _write_members(file: BinaryIO, members: Mapping[str, bytes], compression: int) -> int:
    """Write a zip from the beginning of a file, and return its size."""
    file.seek(0)
    file.truncate()
    with zipfile.ZipFile(file, "w") as zipped:
        for name, content in members.items():
            # A ZipInfo of its own has a fixed date: the file does not tell when it was made.
            zipped.writestr(zipfile.ZipInfo(name), content, compression)
    return file.seek(0, os.SEEK_END)


def write_archive(target: Path, manifest: dict[str, Any], members: Mapping[str, bytes]) -> None:
    """Write a file beside ``target`` and put it there once it is whole; on any failure leave no trace.

    A file that is replaced hands on its permissions.
    """
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    complete = json.dumps({"format": FORMAT, **manifest, "checksums": checksums}, allow_nan=False)
    contents = {**members, MANIFEST: complete.encode()}
    unpacked = sum(map(len, contents.values()))
    if unpacked > LARGEST:
        raise PersistenceError(
            f"The model takes more than {LARGEST / 2**30:g} GiB, the most that coterie.load would unpack: "
            "save it with rows=False, or fit with smaller candidates."
        )
    with write_whole(target) as file:
        # Without compression if the file shrank so far that it would be refused.
        if unpacked > _max_unpacked(_write_members(file, contents, zipfile.ZIP_DEFLATED)):
            _write_members(file, contents, zipfile.ZIP_STORED)


def _need(condition: object, path: Path, why: str) -> None:
    """Refuse a file, and say why, unless a condition holds."""
    if not condition:
        raise PersistenceError(f"The file {str(path)!r} {clean(why)}.")


def _check_entries(path: Path, entries: list[zipfile.ZipInfo], on_disk: int) -> None:
    """Refuse a zip with repeated members, with too much to unpack, or in a form that is not coterie's.

    ``on_disk`` is the size of the file in bytes, which limits what it may unpack to.
    """
    counts_by_name = Counter(entry.filename for entry in entries)
    repeated = [name for name, count in counts_by_name.items() if count > 1]
    _need(not repeated, path, f"holds {listed(repeated)} more than once: {_NOT_OURS}")
    _need(MANIFEST in counts_by_name, path, f"has no {MANIFEST}: {_NOT_OURS}")
    unpacked = sum(entry.file_size for entry in entries)
    refusal_of_size = f"would unpack to {unpacked / 2**20:.0f} MiB, more than coterie.load takes"
    _need(unpacked <= _max_unpacked(on_disk), path, refusal_of_size)
    for entry in entries:
        is_known_form = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        refusal_of_form = f"holds {entry.filename!r} in a form that coterie.save does not write"
        _need(is_known_form and not entry.flag_bits & 1, path, refusal_of_form)


def _parse_manifest(path: Path, text: bytes, budget: Budget) -> dict[str, Any]:
    """Return the manifest as parsed JSON; refuse files of other formats, with what to do about them."""
    budget.spend(text)
    try:
        manifest: dict[str, Any] = parse_json(text)
    except ValueError:
        _need(False, path, f"has a {MANIFEST} that is not JSON: {_AGAIN}")
    _need(isinstance(manifest, dict), path, f"has a {MANIFEST} that is not a JSON object: {_AGAIN}")
    version: Any = manifest.get("format")
    has_version, written_by = type(version) is int and version >= 1, clean(manifest.get("coterie"), 20)
    _need(has_version, path, f"has a {MANIFEST} without a format version: {_AGAIN}")
    older = f"was written by coterie {written_by} in format {version}, and this one reads format {FORMAT}"
    _need(version >= FORMAT, path, f"{older}: fit the model again and save it")
    newer = f"was written by a newer coterie ({written_by}, format {version}; this one reads format {FORMAT})"
    _need(version <= FORMAT, path, f"{newer}: update coterie")
    _need(isinstance(manifest.get("checksums"), dict), path, f"has a {MANIFEST} without checksums: {_AGAIN}")
    return manifest


def _check_members(path: Path, present: set[str], named: set[str]) -> None:
    """Refuse a file whose members are not exactly those that its manifest names.

    ``present`` are the names in the zip, ``named`` those in the manifest. All must be names that coterie
    writes.
    """
    unknown = sorted(name for name in present | named if not _KNOWN.fullmatch(name))
    unknown = unknown or sorted(present - named - {MANIFEST})
    for name in unknown:
        _need(False, path, f"holds the unknown member {clean(name, 100)!r}: {_NOT_OURS}")
    for name in sorted(named - present):
        _need(False, path, f"lacks its member {clean(name, 100)!r}: copy it or save the model again")


def _unpack(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the members of a zip, once names, sizes and checksums are right.

    The manifest is the JSON that says what the members are; the checksums in it find damage, not forgery.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        entries = zipped.infolist()
        _check_entries(path, entries, len(content))
        # The manifest first: what else belongs into the file depends on its format.
        manifest = _parse_manifest(path, _member(content, zipped.getinfo(MANIFEST)), Budget(len(content)))
        checksums = manifest["checksums"]
        _check_members(path, {entry.filename for entry in entries}, set(checksums))
        members = {name: _member(content, zipped.getinfo(name)) for name in checksums}
    for name, member in members.items():
        refusal = f"is damaged: the checksum of {name!r} is wrong; copy it or save the model again"
        _need(hashlib.sha256(member).hexdigest() == checksums[name], path, refusal)
    return manifest, members


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read a file that may be damaged or hostile; return its manifest and all other members.

    Of the manifest, only the format version and the checksums have been checked.
    """
    try:
        content = read_plain(path, LARGEST)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {str(path)!r}: check the path.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{str(path)!r} is a folder: give coterie.load the name of a file.") from None
    except ValueError as error:
        raise PersistenceError(str(error)) from None
    _need(content.startswith(b"PK"), path, "is not a file that coterie.save wrote: it is not a zip")
    try:
        return _unpack(path, content)
    except PersistenceError:
        raise
    # A damaged zip makes zipfile raise almost anything: struct.error, zlib.error, NotImplementedError, ...
    except Exception as error:
        raise PersistenceError(
            f"The file {str(path)!r} is damaged or cut short ({clean(error)}): copy it or save the model "
            "again."
        ) from error
