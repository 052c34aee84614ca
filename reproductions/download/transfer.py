"""Bring a file here whole, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from coterie._files import write_whole

_CHUNK = 1 << 16


class DatasetUnavailable(OSError):
    """A dataset is neither here nor to be had from its home."""


class DatasetCorrupted(ValueError):
    """A dataset's file is truncated or altered."""


class _Progress:
    """A bar on a terminal; silence everywhere else."""

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self.next_time = name, total, 0, 0.0
        self.stream = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None

    def advance(self, n_bytes: int) -> None:
        self.done += n_bytes
        if self.stream is not None and time.monotonic() >= self.next_time:
            self.next_time = time.monotonic() + 0.1
            self.draw()

    def draw(self) -> None:
        assert self.stream is not None
        text = f"{self.done / 1e6:.1f} MB"
        if self.total:
            share = min(1.0, self.done / self.total)
            text = f"[{'#' * int(30 * share):30s}] {share:4.0%} {text}"
        self.stream.write(f"\r{self.name} {text}")
        self.stream.flush()

    def close(self) -> None:
        if self.stream is not None:
            self.draw()
            self.stream.write("\n")


def _chunks(url: str, name: str, wanted: str, timeout: float) -> Iterator[bytes]:
    """Yield the body of `url`; what goes wrong on the way is one kind of error."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "coterie"})
        with urllib.request.urlopen(request, timeout=timeout) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
            progress = _Progress(name, total)
            try:
                while chunk := response.read(_CHUNK):
                    progress.advance(len(chunk))
                    yield chunk
            finally:
                progress.close()
            # http.client ends a body that was cut short as if it were complete.
            if total is not None and progress.done < total:
                raise ConnectionError(f"the connection broke after {progress.done} of {total} bytes")
        return
    except urllib.error.HTTPError as error:
        cause = f"the server answered {error.code} {error.reason}"
        error.close()
    except urllib.error.URLError as error:
        cause = str(getattr(error.reason, "strerror", None) or error.reason)
    except TimeoutError:
        cause = f"no answer within {timeout:g} seconds"
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise DatasetUnavailable(
        f"{url} could not be downloaded ({cause}): set COTERIE_DATA to a folder that has {wanted}, "
        "or connect to the internet and try again."
    )


def download_into(
    stream: IO[bytes], url: str, name: str, sha256: str | None = None, *, wanted: str, timeout: float = 30.0
) -> None:
    """Download into a file that is open.

    Parameters
    ----------
    stream : binary file
        Where to write.
    url : str
        Address of the file.
    name : str
        Its name in the progress bar.
    sha256 : str or None, default=None
        Expected SHA-256 in hexadecimal digits; None does not check.
    wanted : str
        What the error message asks the user to put into the folder named by COTERIE_DATA.
    timeout : float, default=30.0
        Seconds to wait for the server at each step.
    """
    digest = hashlib.sha256()
    for chunk in _chunks(url, name, wanted, timeout):
        digest.update(chunk)
        stream.write(chunk)
    if sha256 is not None and digest.hexdigest() != sha256.lower():
        raise DatasetCorrupted(
            f"The file downloaded from {url} has the SHA-256 {digest.hexdigest()} instead of "
            f"{sha256} and was deleted; try again, or set COTERIE_DATA to a folder that has "
            f"{wanted}."
        )


def download(
    url: str,
    destination: str | os.PathLike[str],
    sha256: str | None = None,
    *,
    wanted: str | None = None,
    timeout: float = 30.0,
) -> Path:
    """Download one file, whole or not at all.

    A progress bar is drawn on the standard error when that is a terminal.

    Parameters
    ----------
    url : str
        Address of the file.
    destination : path-like
        Where to put it; missing folders are made. An older file of that name is replaced only
        by a complete and correct one.
    sha256 : str or None, default=None
        Expected SHA-256 in hexadecimal digits; None does not check.
    wanted : str or None, default=None
        What the error message asks the user to put into the folder named by COTERIE_DATA; None
        means the last folder and the name of `destination`.
    timeout : float, default=30.0
        Seconds to wait for the server at each step.

    Returns
    -------
    Path
        The destination.

    Raises
    ------
    DatasetUnavailable
        When the file cannot be had.
    DatasetCorrupted
        When the checksum is not the expected one; the file is then deleted.
    """
    destination = Path(destination)
    wanted = wanted or f"{destination.parent.name}/{destination.name}"
    destination.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(destination) as stream:
        download_into(stream, url, destination.name, sha256, wanted=wanted, timeout=timeout)
    return destination
