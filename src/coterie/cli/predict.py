"""``coterie predict``: each row by the coterie of the learner who holds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.files import find_files, find_model
from coterie.cli.options import Concluder, Decimal, Delimiter, Encoding, ReplaceFile, Strict
from coterie.cli.printing import say_notes, tell

if TYPE_CHECKING:
    import polars

# What to do about learners that the fit has not seen: in Python, and here.
_REMEDY_OF_LIBRARY = "Use admit to place newcomers, or set unknown_learners='raise'."
_REMEDY = "Use `coterie admit` to place newcomers."


def _check_wishes(coverage: float | None, strict: bool, folder: bool) -> None:
    """Refuse a coverage outside (0, 1), and options that a sealed folder cannot serve."""
    if coverage is not None and not 0 < coverage < 1:
        raise CommandError(f"--interval takes a number between 0 and 1, such as .9. Got {coverage:g}.")
    if coverage is not None and folder:
        raise CommandError("--interval needs a model of `coterie fit`: a sealed folder has no residuals.")
    if strict and folder:
        raise CommandError("--strict needs a model of `coterie fit`: a sealed folder has no rows of a fit.")


def _column(name: str, n_rows: int, positions: Any, predicted: Any) -> polars.Series:
    """Return predictions as a column with a row for each of the table's, null where a row has none.

    ``positions`` are those in the table of the rows that were predicted, one for each entry of ``predicted``.
    """
    import numpy as np
    import polars as pl

    if predicted.dtype.kind != "f":
        labels = np.full(n_rows, None, dtype=object)
        labels[positions] = predicted.tolist()
        return pl.Series(name, labels.tolist())
    predictions = np.full(n_rows, np.nan)
    predictions[positions] = predicted
    return pl.Series(name, predictions, nan_to_null=True)


def _label_sets(labels: list[Any], inside: Any) -> Any:
    """Return the set of labels of each row as one text, as in ``no | yes``; ``inside`` is boolean (n, C)."""
    import numpy as np

    texts = [" | ".join(str(labels[index]) for index in np.flatnonzero(row)) for row in inside]
    return np.array(texts, dtype=object)


def _from_model(
    model: str, tables: list[str], coverage: float | None, strict: bool, **text: Any
) -> tuple[list[polars.Series], tuple[str, ...]]:
    """Return learners and predictions of a fitted model as columns, with intervals or sets, and notes.

    Of classes, the columns are the predicted label and the probability of each. ``coverage`` adds
    intervals, or conformal sets of labels (they hold the true label with that probability); None: neither.
    No column of predictions has the name of the learners' column. Returned are (columns, notes).
    """
    from coterie.classifier import CoterieClassifier
    from coterie.cli.models import open_with_rows
    from coterie.cli.progress import gathered_warnings

    fitted, frame, rows = open_with_rows(model, tables, with_target=False, **text)
    notes = list(rows.notes)
    with one_sentence(), gathered_warnings(notes, strict=strict):
        if isinstance(fitted, CoterieClassifier):
            probabilities = fitted.predict_proba(rows.X, groups=rows.groups)
            values_by_ending = {"": fitted.classes_[probabilities.argmax(axis=1)]}
            labels = fitted.classes_.tolist()
            values_by_ending |= {
                f"_{label}": column for label, column in zip(labels, probabilities.T, strict=True)
            }
            if coverage is not None:
                in_set = fitted.predict_set(rows.X, groups=rows.groups, coverage=coverage)
                ending = "_set"
                while ending in values_by_ending:
                    # A class is called so.
                    ending += "_"
                values_by_ending[ending] = _label_sets(labels, in_set)
        else:
            values_by_ending = {"": fitted.predict(rows.X, groups=rows.groups)}
            if coverage is not None:
                intervals = fitted.predict_interval(rows.X, groups=rows.groups, coverage=coverage)
                values_by_ending |= {"_low": intervals[:, 0], "_high": intervals[:, 1]}
    notes_for_command = [note.replace(_REMEDY_OF_LIBRARY, _REMEDY) for note in notes]
    group = fitted.table_.group
    # A column of the learner's own name is never hidden.
    prefix = "predicted" if group.startswith("prediction") else "prediction"
    columns = [
        _column(prefix + ending, frame.height, rows.kept, predictions)
        for ending, predictions in values_by_ending.items()
    ]
    return [frame[group], *columns], tuple(notes_for_command)


def _folder_columns(
    height: int, positions: Any, predicted: Any, classes: tuple[str, ...]
) -> list[polars.Series]:
    """Return predictions as columns; of classes the most probable label, and the probability of each.

    ``height`` is the number of rows of the table, ``positions`` are those that were predicted, and
    ``classes`` is empty for numbers.
    """
    import numpy as np

    values_by_ending = {"": predicted}
    if classes:
        values_by_ending = {"": np.array(classes)[predicted.argmax(axis=1)]}
        values_by_ending |= {
            f"_{label}": predictions for label, predictions in zip(classes, predicted.T, strict=True)
        }
    return [
        _column(f"prediction{ending}", height, positions, predictions)
        for ending, predictions in values_by_ending.items()
    ]


def _from_folder(
    folder: str,
    site: str,
    known_keys: str | None,
    concluder: str | None,
    tables: list[str],
    own: str | None,
    **text: Any,
) -> tuple[list[polars.Series], tuple[str, ...]]:
    """Return the predictions of a site's coterie from a concluded folder as columns, and notes.

    Unless a trusted ``concluder`` signed the conclusion, it is computed again from the sites' messages,
    for anybody may write into the folder. ``own`` is a table of the site's rows, for a conclusion from
    moments. Models that were shared again since are refused: the conclusion is about others.
    """
    from coterie.cli.concluded import read_conclusion
    from coterie.cli.moments import predict_by_moments
    from coterie.cli.sites import encoded, open_folder, site_rows, site_table
    from coterie.federated import predict as predict_federated
    from coterie.federated.recomputing import check_conclusion

    if not site:
        raise CommandError("--name is missing: say whose coterie predicts, as in --name SITE.")
    with one_sentence():
        sealed = open_folder(folder, known_keys)
        contents, conclusion = read_conclusion(sealed, concluder)
        by_moments = contents.moments_of(site) is not None and not conclusion.mixtures
        frame = site_table(tables, contents, site if by_moments else "", **text)
        if by_moments:
            own_rows = None if own is None else site_table([own], contents, site, **text)
            rows, predicted = predict_by_moments(contents, site, frame, own_rows)
            return _folder_columns(frame.height, rows.kept, predicted, conclusion.classes), rows.notes
        # Its own share says how many rows it has.
        weight_of = {site: 0.0, **conclusion.mixture(site).weights}
        if own is not None:
            raise CommandError("--own goes with sites that sent moments; here they shared models.")
        own_share = contents.share_of(site)
        members = [share for share in contents.shares if share.site in weight_of]
        for share in members:
            if share.sha != conclusion.models[share.site]:
                raise CommandError(f"{share.site!r} has shared another model since: conclude again.")
        if concluder is None:
            # Whoever concluded may have written anything.
            check_conclusion(conclusion, contents.shares, contents.scores, contents.answered)
        rows = site_rows(encoded(frame, contents), None, own_share.columns, what="a predictor of the model")
        predicted = predict_federated(rows.X, site, members, conclusion)
    return _folder_columns(frame.height, rows.kept, predicted, conclusion.classes), rows.notes


def predict(
    model: Annotated[
        str,
        Argument(
            metavar="MODEL",
            help="This is the folder of a fit, its file model.coterie, or a concluded sealed folder.",
        ),
    ],
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="These files have the columns of the fit.")
    ],
    out: Annotated[
        str | None, Option(help="Write the predictions to this CSV file. By default they are printed.")
    ] = None,
    interval: Annotated[
        float | None,
        Option(
            metavar="COVERAGE",
            help="Add the ends of intervals, or sets of labels, that hold "
            "this share of responses, such as .9.",
        ),
    ] = None,
    strict: Strict = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = "utf-8",
    force: ReplaceFile = False,
    name: Annotated[str, Option(help="With a sealed folder, the coterie of this site predicts.")] = "",
    known_keys: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="With a sealed folder, accept only files that are signed by the keys in this list.",
        ),
    ] = None,
    concluder: Concluder = None,
    own: Annotated[
        str | None,
        Option(metavar="TABLE", help="With moments, the site learns here from its rows in this file."),
    ] = None,
) -> None:
    """Predict the rows of a table, in its order; rows without a learner have no prediction."""
    result = find_model(model)
    # Anybody may put files into a sealed folder: who speaks of sites means the folder.
    model = model if name or known_keys or concluder or own else result
    find_files(tables)
    import polars as pl

    from coterie.cli.models import check_file, write_file
    from coterie.cli.spreadsheets import write_csv

    _check_wishes(interval, strict, Path(model).is_dir())
    if out is not None:
        check_file(Path(out), force=force)
    text: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    if Path(model).is_dir():
        answer, notes = _from_folder(model, name, known_keys, concluder, tables, own, **text)
    else:
        answer, notes = _from_model(model, tables, interval, strict, **text)
    say_notes(notes)
    content = write_csv(pl.DataFrame(answer))
    if out is not None:
        write_file(Path(out), content)
    elif sys.stdout.isatty():
        for line in content.decode().removesuffix("\n").split("\n"):
            tell(line)
    else:
        # Not by typer, which would take out what looks like a colour.
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
