"""The cache that downloads fill, and the checksums of what lies there."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

from coterie._files import write_whole
from coterie.datasets import data_home
from reproductions.download.transfer import DatasetCorrupted, DatasetUnavailable, download_into


def open_content(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed where it is compressed by gzip.

    Parameters
    ----------
    path : Path
        The file; its first bytes decide, not its name.

    Returns
    -------
    binary file
        The content.
    """
    with path.open("rb") as stream:
        is_gzip = stream.read(2) == b"\x1f\x8b"
    # GzipFile is a binary file in all but its declared type.
    return cast(IO[bytes], gzip.open(path, "rb")) if is_gzip else path.open("rb")


def file_checksum(path: Path) -> str:
    """Compute the SHA-256 of a file's content, which compression by gzip does not change.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        The checksum in hexadecimal digits.
    """
    digest = hashlib.sha256()
    with open_content(path) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def verify_checksum(path: Path, sha256: str) -> None:
    """Refuse a file whose bytes are not the expected ones.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str
        Expected SHA-256 in hexadecimal digits.
    """
    found = file_checksum(path)
    if found != sha256:
        raise DatasetCorrupted(
            f"The file {path} was altered (its SHA-256 is {found} instead of {sha256}); replace it "
            "with a fresh copy, or remove it to have it downloaded again."
        )


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def record_checksum(path: Path) -> None:
    """Write a file's checksum beside it, so that later corruption is noticed.

    Parameters
    ----------
    path : Path
        The file; the record has the same name with ".sha256" added.
    """
    with write_whole(_record_of(path)) as stream:
        stream.write(f"{file_checksum(path)}  {path.name}\n".encode())


def verify_record(path: Path) -> bool:
    """Compare a file with the checksum recorded beside it.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool
        True when there is a record and it agrees, False when there is no record.
    """
    record = _record_of(path)
    words = record.read_text(encoding="utf-8", errors="replace").split() if record.exists() else []
    if not words:
        return False
    verify_checksum(path, words[0])
    return True


def _extract(archive: IO[bytes], member: str, destination: Path, url: str, sha256: str | None) -> None:
    # One member is read by its exact name: no path inside an archive ever becomes a path here.
    try:
        with zipfile.ZipFile(archive) as box, write_whole(destination) as stream:
            with box.open(member) as body:
                shutil.copyfileobj(body, stream)
            stream.flush()
            if sha256 is not None and file_checksum(Path(stream.name)) != sha256:
                raise DatasetCorrupted(
                    f"The file {member} downloaded from {url} was altered (its SHA-256 is not "
                    f"{sha256}) and was deleted; try again, or set COTERIE_DATA to a folder that "
                    f"has {destination.parent.name}/{member}."
                )
    except KeyError:
        cause = f"it holds no file {member}"
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        cause = str(error) or type(error).__name__
    else:
        return
    raise DatasetCorrupted(
        f"The archive downloaded from {url} cannot be used ({cause}); try again, or set "
        f"COTERIE_DATA to a folder that has {destination.parent.name}/{member}."
    )


def fetch_member(url: str, folder: str, filename: str, sha256: str | None = None) -> Path:
    """Find a dataset's file in the cache, or download the archive that holds it.

    Parameters
    ----------
    url : str
        Address of a zip archive with `filename` in it.
    folder : str
        Sub-folder of the cache.
    filename : str
        Name of the file, in the archive and in the cache.
    sha256 : str or None, default=None
        Expected SHA-256 of the file, checked when it is extracted; None does not check.

    Returns
    -------
    Path
        The file in the cache.
    """
    path = data_home() / folder / filename
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file without a name, where the system has them: nobody else sees it, and a kill leaves nothing.
        scratch = tempfile.TemporaryFile(prefix=".fetch-", dir=path.parent)  # noqa: SIM115
    except OSError as error:
        raise DatasetUnavailable(
            f"The cache folder {path.parent} cannot be written ({error.strerror}); set "
            "COTERIE_CACHE to a folder that can."
        ) from None
    with scratch as archive:
        download_into(archive, url, f"{filename}.zip", wanted=f"{folder}/{filename}")
        # The record belonged to a file that is gone.
        _record_of(path).unlink(missing_ok=True)
        _extract(archive, filename, path, url, sha256)
    return path
