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
    """Refuse columns that hold no numbers; the remedy is to agree on an encoding first."""
    for name in columns:
        kind = frame.schema[name]
        if not kind.is_numeric() and kind != pl.Boolean:
            raise CommandError(
                f"The column {name!r} is {kind}, and sites that do not see each other's rows can agree on "
                f"numbers only: run `coterie columns` at every site, then `coterie agree`{remedy}."
            )


def _class_texts(frame: pl.DataFrame, target: str, classes: Sequence[str]) -> pl.Series:
    """Return the classes of rows as texts, null where the entry is none of the agreed ``classes``."""
    labels = [None if label is None else label_text(label) for label in class_values(frame, target)]
    return pl.Series(target, [label if label in classes else None for label in labels], dtype=pl.String)


def _response(frame: pl.DataFrame, target: str, classes: Sequence[str]) -> pl.Series:
    """Return the response of a site's rows, null where it is missing: class texts, or numbers.

    ``classes`` are those that all sites agreed on; none: the target must be numeric, or the site is told
    to agree on classes first.
    """
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

    A site is one learner whose rows stay at home; it fills no gaps, for sites could fill them differently.
    Without a target there is no response; ``classes`` are those that the sites agreed on. ``what`` says
    in an error who asks for the columns.
    """
    check_columns(columns, frame.columns, what)
    # Where the columns are those that were shared, none can be dropped.
    _check_numbers(frame, columns, ", or --drop it" if what == "--features" else "")
    predictors = frame.select(pl.col(name).cast(pl.Float64) for name in columns)
    without_gaps = predictors.select(pl.all_horizontal(pl.all().is_finite().fill_null(False))).to_series()
    y = None
    if target is not None:
        check_columns([target], frame.columns, "--target")
        y = _response(frame, target, classes)
        without_gaps = without_gaps & y.is_not_null()
    positions = without_gaps.arg_true()
    if not len(positions):
        raise CommandError("No row is without gaps: fill them in the same way at all sites.")
    n_with_gaps = frame.height - len(positions)
    notes = (f"{n_with_gaps} of {frame.height} rows have gaps and were left out.",) if n_with_gaps else ()
    response = None if y is None else y.gather(positions).to_numpy()
    return PreparedRows(predictors[positions].to_numpy(), response, None, positions.to_numpy(), notes)


def site_table(
    tables: list[str], contents: FolderContents | None, name: str = "", **text: Any
) -> pl.DataFrame:
    """Read a site's table; where the columns were agreed on (schema or encoding), as a table of texts."""
    message = None if contents is None else contents.moments_of(name)
    if message is not None and message.schema:
        return read_tables(tables, **{**text, "decimal": schema_from(message.schema).decimal}, agreed=True)
    return read_tables(tables, **text, agreed=contents is not None and contents.encoding is not None)


def _decimal_of(frame: pl.DataFrame, agreed: Encoding) -> str:
    """Return the decimal sign, comma or point, by which more numbers of a table of texts can be read."""
    names = [plan.name for plan in agreed.columns if plan.kind == "number"]
    names += [agreed.target] if agreed.target in frame.columns and not agreed.classes else []
    texts = [text for name in names for text in texts_of(nw.from_native(frame[name], series_only=True))]
    points, commas = (np.isfinite(numbers_of(texts, sign)).sum() for sign in ".,")
    return "," if commas > points else "."


def encoded(frame: pl.DataFrame, contents: FolderContents | None) -> pl.DataFrame:
    """Return a site's table with numbers in place of texts, as the sites agreed; unchanged without agreement.

    An agreement (encoding) says what becomes of each column, so that all sites' models read the same numbers.

    The agreement must follow from what the sites said of their columns, for anybody may write into the
    folder. ``frame`` holds texts; see `site_table`.
    """
    if contents is None or contents.encoding is None:
        return frame
    agreement = contents.encoding
    if not follows(agreement, contents.columns):
        raise CommandError(
            "The encoding in the folder does not follow from what the sites said of their columns: run "
            "`coterie agree` again."
        )
    used_columns = [plan for plan in agreement.columns if plan.kind != "left out"]
    check_columns(
        [plan.name for plan in used_columns], frame.columns, "the encoding that the sites agreed on"
    )
    decimal, notes = _decimal_of(frame, agreement), list[str]()
    predictors = encode_agreed(frame, used_columns, decimal, notes)
    encoded_frame = pl.DataFrame(predictors, schema=[name for plan in used_columns for name in plan.features])
    if agreement.target in frame.columns:
        texts = texts_of(nw.from_native(frame[agreement.target], series_only=True))
        if agreement.classes:
            labels = dict(enumerate(agreement.classes))
            class_texts = [labels.get(index) for index in places_of(texts, agreement.classes, decimal)]
            target = pl.Series(agreement.target, class_texts, dtype=pl.String)
        else:
            responses = numbers_of(texts, decimal)
            notes += note_of(agreement.target, "number", texts, np.isnan(responses))
            target = pl.Series(agreement.target, responses).fill_nan(None)
        encoded_frame = encoded_frame.with_columns(target)
    say_notes(notes)
    return encoded_frame


def open_folder(folder: str, known_keys: str | None) -> SealedFolder:
    """Open a sealed folder, whose files must be signed by the keys of a list where one is given."""
    if not folder:
        raise CommandError("--folder is missing: name the folder that the sites pass on.")
    with one_sentence():
        return SealedFolder(folder, None if known_keys is None else read_known_keys(known_keys))


def open_signer(key: str | None, sealed: SealedFolder | None) -> Signer | None:
    """Return the signer of a private key file; refuse one in the folder that is passed on.

    None without a ``key``. Whoever has the private key can sign in the name of the site.
    """
    if key is None:
        return None
    if sealed is not None and sealed.path.resolve() in Path(key).resolve().parents:
        raise CommandError("The private key lies in the folder that is passed on: keep it elsewhere.")
    with one_sentence():
        if os.name == "posix" and os.stat(key).st_mode & 0o077:
            say(f"Note: others on this machine may open the private key: run `chmod 600 {key}`.")
        return read_key(key)


def check_signer(sealed: SealedFolder, signer: Signer | None, site: str | None = None) -> None:
    """Refuse to write what the list of known keys would refuse to others: unsigned, or another's key.

    ``sealed`` is the folder that sites pass on, with its list of known keys (None: no check), and ``signer``
    holds a private key. ``site`` is the one whose key is needed; None: any key of the list.
    """
    known = sealed.known_keys
    if known is None:
        return
    if signer is None:
        raise CommandError("--known-keys refuses what is not signed: sign what you write with --sign KEY.")
    if signer.public not in (known.values() if site is None else [known.get(site)]):
        whom = "of nobody" if site is None else f"not that of {site!r}"
        raise CommandError(f"The key of --sign is {whom} in the list of --known-keys: add its line there.")


def in_their_order(columns: list[str], shares: tuple[Share, ...]) -> list[str]:
    """Return the columns in the order that most shares have, if these are the same columns.

    Models of all sites read columns by position.
    """
    orders = Counter(share.columns for share in shares)
    usual = max(orders, key=lambda order: orders[order]) if orders else ()
    return list(usual) if set(usual) == set(columns) else columns


def make_share(site: Site) -> Share:
    """Return the share of a site, encoded and decoded once to be sure that its peers can read it."""
    message = federated.share(site)
    federated.decode(federated.encode(message), "share")
    return message


def check_wait(seconds: float) -> None:
    """Refuse a time that never ends because it compares with nothing."""
    if math.isnan(seconds):
        raise CommandError("--wait must be a number of seconds. Got nan.")


def looks(read: Callable[[], FolderContents], wait: float) -> Iterator[FolderContents]:
    """Yield what a folder holds, once and then every `PAUSE` seconds until ``wait`` seconds are over.

    The time begins after the first yield, when the caller's own work is done. Files that cannot be used
    are named once on stderr, and again only with another reason.
    """
    deadline = None
    reported_troubles: Mapping[str, str] = {}
    while True:
        contents = read()
        for name, reason in contents.troubles.items():
            if reported_troubles.get(name) != reason:
                say(f"Note: {name!r} is not used. {reason}")
        reported_troubles = contents.troubles
        yield contents
        deadline = time.monotonic() + wait if deadline is None else deadline
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            return
        time.sleep(min(PAUSE, seconds_left))
