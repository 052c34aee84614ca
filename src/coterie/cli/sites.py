"""What the commands of the sealed folder have in common: one site's table, keys, sentences."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.cli.errors import CommandError
from coterie.cli.preparing import check_columns, target_values

if TYPE_CHECKING:
    import numpy as np
    import polars
    from numpy.typing import NDArray

    from coterie.federated.folder import Contents, SealedFolder
    from coterie.federated.messages import Blur
    from coterie.federated.signing import Signer


# Of blurred numbers, unless another is given.
DELTA = 1e-6


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what the protocol, the wire or the disk refuse into a command's error."""
    try:
        yield
    # ProtocolError and WireError are ValueErrors, as are the library's own complaints about rows.
    except ValueError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        cause = error.strerror or str(error)
        what = "A file" if error.filename is None else repr(str(error.filename))
        raise CommandError(f"{what} cannot be used ({cause}): check the path and the disk.") from None


@dataclass(frozen=True)
class SiteRows:
    """The rows of one site.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Predictors.
    y : ndarray of shape (n,) or None
        Response, where it was asked for.
    columns : tuple of str
        Names of the predictors.
    kept : ndarray of shape (n,)
        Where each row stood in the table.
    notes : tuple of str
        What was done to the table.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64] | None
    columns: tuple[str, ...]
    kept: NDArray[np.int_]
    notes: tuple[str, ...]


def _check_numbers(frame: polars.DataFrame, columns: Sequence[str], remedy: str) -> None:
    import polars as pl

    for name in columns:
        kind = frame.schema[name]
        if not kind.is_numeric() and kind != pl.Boolean:
            raise CommandError(
                f"The column {name!r} is {kind}, and sites that do not see each other's rows can agree on "
                f"numbers only: turn it into numbers in the same way everywhere{remedy}."
            )


def site_rows(
    frame: polars.DataFrame, target: str | None, columns: Sequence[str], *, what: str = "--features"
) -> SiteRows:
    """Turn a site's table into rows; rows with gaps are left out and counted.

    Parameters
    ----------
    frame : polars.DataFrame
        The table.
    target : str or None
        The column of the response; None: it is not needed.
    columns : sequence of str
        The predictors, in their order.
    what : str, default="--features"
        Who asks for these columns, for the error.

    Returns
    -------
    SiteRows
        Numbers.
    """
    import polars as pl

    check_columns(columns, frame.columns, what)
    # Where the columns are those that were shared, none can be dropped.
    _check_numbers(frame, columns, ", or --drop it" if what == "--features" else "")
    numbers = frame.select(pl.col(name).cast(pl.Float64) for name in columns)
    whole = numbers.select(pl.all_horizontal(pl.all().is_finite().fill_null(False))).to_series()
    notes = []
    y = None
    if target is not None:
        check_columns([target], frame.columns, "--target")
        values = target_values(frame, target)
        whole = whole & values.is_not_null()
        y = values
    kept = whole.arg_true()
    lost = frame.height - len(kept)
    if lost:
        notes.append(f"{lost} of {frame.height} rows have gaps and were left out.")
    if not len(kept):
        raise CommandError("No row is without gaps: fill them in the same way at all sites.")
    return SiteRows(
        numbers[kept].to_numpy(),
        None if y is None else y.gather(kept).to_numpy(),
        tuple(columns),
        kept.to_numpy(),
        tuple(notes),
    )


def chosen_columns(
    frame: polars.DataFrame, target: str, features: Sequence[str], drop: Sequence[str]
) -> list[str]:
    """Return the predictors that were named, or all columns but the target."""
    check_columns([target], frame.columns, "--target")
    check_columns(features, frame.columns, "--features")
    check_columns(drop, frame.columns, "--drop")
    if target in features:
        raise CommandError(f"The column {target!r} cannot be a predictor, too: take it out of --features.")
    chosen = features or [name for name in frame.columns if name != target]
    chosen = [name for name in dict.fromkeys(chosen) if name not in drop]
    if not chosen:
        raise CommandError("No column is left to predict from: name some with --features, or --drop fewer.")
    return chosen


def open_folder(folder: str, known_keys: str | None) -> SealedFolder:
    """Open a sealed folder."""
    from coterie.federated.folder import SealedFolder
    from coterie.federated.signing import read_known_keys

    if not folder:
        raise CommandError("--folder is missing: name the folder that the sites pass on.")
    with one_sentence():
        return SealedFolder(folder, None if known_keys is None else read_known_keys(known_keys))


def open_signer(key: str | None) -> Signer | None:
    """Return the signer of a key file."""
    from coterie.cli.progress import say
    from coterie.federated.signing import read_key

    if key is None:
        return None
    with one_sentence():
        if os.name == "posix" and os.stat(key).st_mode & 0o077:
            say(f"Note: others on this machine may open the private key: run `chmod 600 {key}`.")
        return read_key(key)


def make_blur(epsilon: float | None, delta: float | None, clip: float | None) -> Blur | None:
    """Return how numbers are to be blurred; None: not at all."""
    from coterie.federated.messages import Blur
    from coterie.federated.privacy import check_blur

    if epsilon is None:
        for value, option in ((clip, "--clip"), (delta, "--delta")):
            if value is not None:
                raise CommandError(f"{option} blurs nothing without --epsilon: give --epsilon as well.")
        return None
    if clip is None:
        raise CommandError(
            "--epsilon needs --clip: say what the numbers are clipped to before they are blurred."
        )
    with one_sentence():
        return check_blur(Blur(epsilon, DELTA if delta is None else delta, clip))


def check_inside(folder: Path, key: str) -> None:
    """Refuse a private key in the folder that is passed on."""
    if folder.resolve() in Path(key).resolve().parents:
        raise CommandError("The private key lies in the folder that is passed on: keep it elsewhere.")


def check_signer(sealed: SealedFolder, signer: Signer | None, site: str | None = None) -> None:
    """Refuse to write, beside a list of known keys, what the list would refuse."""
    known = sealed.known_keys
    if known is None:
        return
    if signer is None:
        raise CommandError("--known-keys refuses what is not signed: sign what you write with --sign KEY.")
    if signer.public not in (known.values() if site is None else [known.get(site)]):
        whom = "of nobody" if site is None else f"not that of {site!r}"
        raise CommandError(f"The key of --sign is {whom} in the list of --known-keys: add its line there.")


def check_wait(seconds: float) -> None:
    """Refuse a time that never ends because it compares with nothing."""
    if math.isnan(seconds):
        raise CommandError("--wait must be a number of seconds. Got nan.")


def say_troubles(contents: Contents, already: Mapping[str, str] | None = None) -> None:
    """Name the files that cannot be used."""
    from coterie.cli.progress import say

    for name, why in contents.troubles.items():
        if already is None or already.get(name) != why:
            say(f"Note: {name!r} is not used. {why}")
