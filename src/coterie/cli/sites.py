"""What the commands of the sealed folder have in common: one site's table, keys, sentences."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import polars as pl

from coterie import federated
from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.preparing import PreparedRows, check_columns, target_values
from coterie.cli.printing import say, say_notes
from coterie.cli.reading import read_tables
from coterie.cli.tasks import AUTO, CLASSIFICATION, class_values, task_of
from coterie.encoding.agreed import encode_agreed, note_of, numbers_of, places_of, texts_of
from coterie.federated import Share, Site
from coterie.federated.columns import follows
from coterie.federated.folder import FolderContents, SealedFolder
from coterie.federated.labels import label_text
from coterie.federated.moments.schema import schema_from
from coterie.federated.signing import Signer, read_key, read_known_keys
from coterie.federated.tables import Encoding

# Seconds between looks at a folder that others write to.
PAUSE = 2.0


def _check_numbers(frame: pl.DataFrame, columns: Sequence[str], remedy: str) -> None:
    """Refuse columns that hold no numbers."""
    for name in columns:
        kind = frame.schema[name]
        if not kind.is_numeric() and kind != pl.Boolean:
            raise CommandError(
                f"The column {name!r} is {kind}, and sites that do not see each other's rows can agree on "
                f"numbers only: run `coterie columns` at every site, then `coterie agree`{remedy}."
            )


def _class_texts(frame: pl.DataFrame, target: str, classes: Sequence[str]) -> pl.Series:
    """Return the classes of rows as texts, null where the sites have not agreed on such a class."""
    labels = [None if label is None else label_text(label) for label in class_values(frame, target)]
    return pl.Series(target, [label if label in classes else None for label in labels], dtype=pl.String)


def _response(frame: pl.DataFrame, target: str, classes: Sequence[str]) -> pl.Series:
    """Return the response of a site's rows, null where there is none."""
    if classes:
        return _class_texts(frame, target, classes)
    if task_of(frame[target], AUTO) == CLASSIFICATION and not frame[target].dtype.is_numeric():
        raise CommandError(
            f"The target {target!r} holds classes, and the sites have not agreed on them: run `coterie "
            "columns` at every site, then `coterie agree`."
        )
    return target_values(frame, target)


def site_rows(
    frame: pl.DataFrame,
    target: str | None,
    columns: Sequence[str],
    *,
    classes: Sequence[str] = (),
    what: str = "--features",
) -> PreparedRows:
    """Turn a site's table into the rows of one learner; rows with gaps are left out and counted.

    Without a target there is no response; ``classes`` are those that the sites agreed on. `what` says in the
    error who asks for the columns.
    """
    check_columns(columns, frame.columns, what)
    # Where the columns are those that were shared, none can be dropped.
    _check_numbers(frame, columns, ", or --drop it" if what == "--features" else "")
    numbers = frame.select(pl.col(name).cast(pl.Float64) for name in columns)
    whole = numbers.select(pl.all_horizontal(pl.all().is_finite().fill_null(False))).to_series()
    y = None
    if target is not None:
        check_columns([target], frame.columns, "--target")
        y = _response(frame, target, classes)
        whole = whole & y.is_not_null()
    kept = whole.arg_true()
    if not len(kept):
        raise CommandError("No row is without gaps: fill them in the same way at all sites.")
    losses = frame.height - len(kept)
    notes = (f"{losses} of {frame.height} rows have gaps and were left out.",) if losses else ()
    response = None if y is None else y.gather(kept).to_numpy()
    return PreparedRows(numbers[kept].to_numpy(), response, None, kept.to_numpy(), notes)


def site_table(
    tables: list[str], contents: FolderContents | None, name: str = "", **text: Any
) -> pl.DataFrame:
    """Read a site's table; as texts where its columns were agreed on, by a schema or an encoding."""
    message = None if contents is None else contents.moments_of(name)
    if message is not None and message.schema:
        return read_tables(tables, **{**text, "decimal": schema_from(message.schema).decimal}, agreed=True)
    return read_tables(tables, **text, agreed=contents is not None and contents.encoding is not None)


def _decimal_of(frame: pl.DataFrame, agreed: Encoding) -> str:
    """Return the decimal sign by which more numbers of a table can be read."""
    names = [plan.name for plan in agreed.columns if plan.kind == "number"]
    names += [agreed.target] if agreed.target in frame.columns and not agreed.classes else []
    texts = [text for name in names for text in texts_of(nw.from_native(frame[name], series_only=True))]
    points, commas = (np.isfinite(numbers_of(texts, sign)).sum() for sign in ".,")
    return "," if commas > points else "."


def encoded(frame: pl.DataFrame, contents: FolderContents | None) -> pl.DataFrame:
    """Return a site's table as the sites agreed to encode it; as it is where they agreed on nothing.

    The entries of the table are texts then; see `site_table`.
    """
    if contents is None or contents.encoding is None:
        return frame
    agreed = contents.encoding
    if not follows(agreed, contents.columns):
        raise CommandError(
            "The encoding in the folder does not follow from what the sites said of their columns: run "
            "`coterie agree` again."
        )
    plans = [plan for plan in agreed.columns if plan.kind != "left out"]
    check_columns([plan.name for plan in plans], frame.columns, "the encoding that the sites agreed on")
    decimal, notes = _decimal_of(frame, agreed), list[str]()
    numbers = encode_agreed(frame, plans, decimal, notes)
    made = pl.DataFrame(numbers, schema=[name for plan in plans for name in plan.features])
    if agreed.target in frame.columns:
        texts = texts_of(nw.from_native(frame[agreed.target], series_only=True))
        if agreed.classes:
            labels = dict(enumerate(agreed.classes))
            result = [labels.get(index) for index in places_of(texts, agreed.classes, decimal)]
            target = pl.Series(agreed.target, result, dtype=pl.String)
        else:
            values = numbers_of(texts, decimal)
            notes += note_of(agreed.target, "number", texts, np.isnan(values))
            target = pl.Series(agreed.target, values).fill_nan(None)
        made = made.with_columns(target)
    say_notes(notes)
    return made


def open_folder(folder: str, known_keys: str | None) -> SealedFolder:
    """Open a sealed folder."""
    if not folder:
        raise CommandError("--folder is missing: name the folder that the sites pass on.")
    with one_sentence():
        return SealedFolder(folder, None if known_keys is None else read_known_keys(known_keys))


def open_signer(key: str | None, sealed: SealedFolder | None) -> Signer | None:
    """Return the signer of a key file, which must not lie in the folder that is passed on."""
    if key is None:
        return None
    if sealed is not None and sealed.path.resolve() in Path(key).resolve().parents:
        raise CommandError("The private key lies in the folder that is passed on: keep it elsewhere.")
    with one_sentence():
        if os.name == "posix" and os.stat(key).st_mode & 0o077:
            say(f"Note: others on this machine may open the private key: run `chmod 600 {key}`.")
        return read_key(key)


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


def in_their_order(columns: list[str], shares: tuple[Share, ...]) -> list[str]:
    """Return the columns in the order that most sites have, where they are the same columns."""
    orders = Counter(share.columns for share in shares)
    usual = max(orders, key=lambda order: orders[order]) if orders else ()
    return list(usual) if set(usual) == set(columns) else columns


def make_share(site: Site) -> Share:
    """Return the share of a site, after a check that its peers can read it."""
    message = federated.share(site)
    federated.decode(federated.encode(message), "share")
    return message


def check_wait(seconds: float) -> None:
    """Refuse a time that never ends because it compares with nothing."""
    if math.isnan(seconds):
        raise CommandError("--wait must be a number of seconds. Got nan.")


def looks(read: Callable[[], FolderContents], wait: float) -> Iterator[FolderContents]:
    """Yield what a folder holds, again and again until ``wait`` seconds after the first look are over.

    Files that cannot be used are named once.
    """
    ends = None
    seen: Mapping[str, str] = {}
    while True:
        contents = read()
        for name, reason in contents.troubles.items():
            if seen.get(name) != reason:
                say(f"Note: {name!r} is not used. {reason}")
        seen = contents.troubles
        yield contents
        ends = time.monotonic() + wait if ends is None else ends
        seconds_left = ends - time.monotonic()
        if seconds_left <= 0:
            return
        time.sleep(min(PAUSE, seconds_left))
