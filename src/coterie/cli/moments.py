"""The commands of the sealed folder where sites send moments: share, conclude, the verdict, predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any

import numpy as np
import polars as pl

from coterie.cli.errors import CommandError, cache_errors, one_sentence
from coterie.cli.preparing import PreparedRows, check_columns, target_values
from coterie.cli.printing import say, say_notes, tell
from coterie.cli.progress import gathered_warnings
from coterie.cli.reading import read_tables
from coterie.cli.sites import encoded, site_table
from coterie.federated import Settings, Site, make_site
from coterie.federated.conclusions import Conclusion
from coterie.federated.folder import FolderContents, SealedFolder
from coterie.federated.moments import (
    Pooled,
    Schema,
    SiteModel,
    conclude_moments,
    knots_for,
    moments_of,
    open_moments,
    read_schema,
    site_model,
)
from coterie.federated.moments.ledger import send_once
from coterie.federated.moments.noise import check_promise, noise_scale
from coterie.federated.moments.pool import unpacked
from coterie.federated.moments.schema import schema_from
from coterie.federated.signing import Signer
from coterie.federated.tables import Moments, Promise
from coterie.rows.threshold import FEWEST_ROWS

# Of a message, unless another is given.
DELTA = 1e-6
NEXT = "When all sites have sent theirs, anybody may run `coterie conclude`."
BENDS_FIRST = "Before that, run `coterie score` once at each site, so that curves count as well as lines."
# The table is the one that was shared when it has the same moments, up to rounding.
SAME_TABLE = 1e-6
NOT_MOMENTS = "It shared a model, and most sites sent moments."
NOT_A_MODEL = "It sent moments, and most sites shared a model."


def make_promise(
    epsilon: float | None, delta: float | None, schema: str | None, *, moments: bool
) -> Promise | None:
    """Return the differential privacy (epsilon, delta) that a message promises; None: no promise.

    A smaller epsilon hides single rows better, by more noise; delta is the chance that it fails. Options that
    contradict each other, or do nothing without each other, are refused.
    """
    if epsilon is None:
        for value, option in ((delta, "--delta"), (schema, "--schema")):
            if value is not None:
                raise CommandError(f"{option} does nothing without --epsilon: give --epsilon as well.")
        return None
    if moments:
        raise CommandError("--moments sends what --epsilon protects: take one of them.")
    if schema is None:
        raise CommandError(
            "--epsilon needs --schema: a file, the same at all sites, that says what the columns are."
        )
    with one_sentence():
        return check_promise(Promise(epsilon, DELTA if delta is None else delta))


def _encoded(frame: pl.DataFrame, schema: Schema, *, with_target: bool) -> tuple[Any, Any]:
    """Return predictors (n, p) and response (n,) of all rows by the schema; a missing response is NaN.

    The schema is what sites agreed on before they saw rows: columns and ranges. Without target, None stands
    for the response. Notes on unreadable entries are printed.
    """
    names = [column.name for column in schema.columns]
    check_columns([*names, schema.target.name] if with_target else names, frame.columns, "the schema")
    notes: list[str] = []
    X = schema.predictors(frame, notes)
    y = schema.response(frame, notes) if with_target else None
    say_notes(notes)
    return X, y


def _classes_of(message: Moments) -> tuple[str, ...]:
    """Return the classes of a site's response, from its schema; none where the response is a number."""
    return schema_from(message.schema).classes if message.schema else ()


def revealed(message: Moments) -> list[str]:
    """Return, a line each, what a message of moments tells others about a site's rows.

    Moments are sums of squares and products of (1, x, y), over two halves of the rows: one judges what the
    other chose. A user reads these lines before anything is sent (``--dry-run``).
    """
    n_variables = len(message.columns) + 2
    if message.promise is None:
        moments_line = (
            "second moments of (1, x, y) over two halves of the rows: "
            f"{n_variables * (n_variables + 1)} numbers, exact"
        )
    else:
        moments_line = (
            f"second moments of (1, x, y) over two halves of the rows, each scaled to the length one: "
            f"{n_variables * (n_variables + 1)} numbers, each with noise of standard deviation "
            f"{noise_scale(message.promise):.3g} or {noise_scale(message.promise) / np.sqrt(2):.3g}; "
            f"epsilon {message.promise.epsilon:g}, delta {message.promise.delta:g}"
        )
    columns = ", ".join(message.columns[:12]) + (" and more" if len(message.columns) > 12 else "")
    return [
        f"site: {message.site}",
        f"number of rows: {message.n_rows}",
        f"columns: {columns}; target: {message.target}",
        moments_line,
        "versions: " + ", ".join(f"{name} {version}" for name, version in message.software.items()),
        "Nothing else is sent later: clusters and lines follow from these numbers."
        if message.promise is not None
        else "Later, `coterie score` reveals the same with how far x is above four places in each column.",
    ]


def share_privately(
    tables: list[str],
    path: str,
    promise: Promise,
    sealed: SealedFolder | None,
    signer: Signer | None,
    *,
    name: str,
    target: str,
    dry_run: bool,
    replace: bool,
    **text: Any,
) -> None:
    """Put a site's moments with noise into the folder; in a dry run say what they would reveal.

    ``path`` is the schema's file: the columns and their ranges must not depend on the rows. The account
    in the user's cache adds up the epsilon that is spent on the same rows; a message that was sent before
    is sent again without spending any.
    """
    with one_sentence():
        schema = read_schema(path)
        if target not in ("", schema.target.name):
            raise CommandError(f"The schema predicts {schema.target.name!r}, not {target!r}.")
        frame = read_tables(tables, decimal=schema.decimal, agreed=True, **text)
        X, y = _encoded(frame, schema, with_target=True)
        options: dict[str, Any] = {"site": name, "schema": schema, "promise": promise}
        if sealed is None or dry_run:
            tell("`coterie share` would reveal:")
            for line in revealed(moments_of(X, y, **options)):
                tell(f"  {line}")
            return
        row_texts = [repr(row) for row in frame.select(sorted(frame.columns)).iter_rows()]
        try:
            with cache_errors():
                message, privacy_account = send_once(X, y, lines=row_texts, again=replace, **options)
            is_new = sealed.put(message, signer, replace=replace)
        except ValueError as error:
            if "earlier private message" in str(error) or "other content" in str(error):
                raise CommandError(f"{error} Pass --replace if that is meant.") from None
            raise
    what_happened = "shared" if is_new else "had shared already"
    tell(f"{name} {what_happened}: noisy moments of {message.n_rows} rows.")
    whether_spent = (
        "the same message was sent before, and spends nothing anew"
        if privacy_account.again
        else "this one included"
    )
    if any(named_columns.site == name for named_columns in sealed.read().columns):
        say(f"Note: {name!r} has named columns and entries in this folder, which epsilon does not cover.")
    tell(
        f"Spent on these rows so far: epsilon {privacy_account.epsilon:g}, delta {privacy_account.delta:g} "
        f"({whether_spent})."
    )
    tell(NEXT)


def moments_of_site(site: Site) -> Moments:
    """Return a site's moments (sums of squares and products of 1, x and y), exact, as a message."""
    rows = site.learners
    named: dict[str, Any] = {"site": site.name, "columns": site.columns, "target": site.target}
    return open_moments(rows.X, rows.scalar_y, seed=site.seed, **named)


def is_by_moments(contents: FolderContents) -> bool:
    """Tell whether more sites sent moments than models, so that the conclusion is from moments."""
    return len(contents.moments) > len(contents.shares)


def without_moments(conclusion: Conclusion, contents: FolderContents) -> Conclusion:
    """Return a conclusion from models that lists the sites which sent moments only as left out."""
    left_out_for_moments = {
        message.site: NOT_A_MODEL for message in contents.moments if message.site not in conclusion.models
    }
    return changed(conclusion, left_out={**left_out_for_moments, **conclusion.left_out})


def conclude_by_moments(
    sealed: SealedFolder,
    contents: FolderContents,
    settings: Settings,
    without: Mapping[str, str],
    signer: Signer | None,
) -> dict[str, Any]:
    """Conclude from the moments in a folder and write the conclusion into it; there is nobody to wait for.

    ``without`` names the sites to leave out, with the reason of each; sites that shared models are left
    out, too. Returned is a dict as of `coterie.cli.rounds.go_on`.
    """
    conclusion = conclude_moments(contents.moments, settings=settings, leave_out=without).conclusion
    sites_with_moments = {message.site for message in contents.moments}
    sites_with_models = {
        share.site: NOT_MOMENTS for share in contents.shares if share.site not in sites_with_moments
    }
    conclusion = changed(conclusion, left_out={**conclusion.left_out, **sites_with_models})
    sealed.put(conclusion, signer, replace=True)
    return {"state": "concluded", "conclusion": conclusion}


def concluded_anew(contents: FolderContents) -> Pooled:
    """Compute the conclusion of a folder again from its moments, and refuse one that does not follow.

    Whoever concluded may have written anything, so that nobody relies on the file. Returned is all that was
    pooled, of which the conclusion is a part.
    """
    conclusion = contents.conclusion
    if conclusion is None:
        raise CommandError("The folder has no conclusion yet: run `coterie conclude` first.")
    if conclusion.mixtures:
        raise CommandError("Most sites shared a model, and the conclusion is about these.")
    messages_used = [message for message in contents.moments if message.site in conclusion.models]
    # Who was left out for too few rows is not asked again.
    settings = changed(Settings.from_text(conclusion.settings), min_rows=FEWEST_ROWS)
    recomputed = conclude_moments(messages_used, settings=settings)
    if recomputed.conclusion.models != dict(conclusion.models):
        raise CommandError("A site has sent other moments since: conclude again.")
    if recomputed.conclusion.labels != conclusion.labels:
        raise CommandError("The conclusion does not follow from the moments in the folder: conclude again.")
    return recomputed


def _rows_of(contents: FolderContents, message: Moments, frame: pl.DataFrame) -> tuple[Any, Any]:
    """Return predictors (n, p) and response (n,) of a site's rows without gaps, encoded as in its message."""
    if message.schema:
        X, y = _encoded(frame, schema_from(message.schema), with_target=True)
    else:
        frame = encoded(frame, contents)
        check_columns([*message.columns, message.target], frame.columns, "the columns that were shared")
        X = frame.select(pl.col(name).cast(pl.Float64) for name in message.columns).to_numpy()
        y = target_values(frame, message.target).to_numpy()
    without_gaps = np.isfinite(X).all(axis=1) & np.isfinite(y.astype(float))
    return X[without_gaps], y[without_gaps]


def _site_model(
    contents: FolderContents, recomputed: Pooled, message: Moments, frame: pl.DataFrame, order: str | None
) -> SiteModel:
    """Return the model that a site makes at home, from its own rows and everybody's moments.

    ``recomputed`` is the conclusion as computed again, ``order`` whether neighbouring rows are held out
    together. Warnings of the fit are dropped.
    """
    X, y = _rows_of(contents, message, frame)
    with gathered_warnings([]):
        site = make_site(X, y, site=message.site, columns=message.columns, target=message.target, order=order)
    return site_model(site, recomputed, message.schema)


def are_open(contents: FolderContents, name: str) -> bool:
    """Tell whether a site sent exact moments that no conclusion uses yet, so that it may send knots."""
    message, conclusion = contents.moments_of(name), contents.conclusion
    if message is None or message.schema:
        return False
    return conclusion is None or conclusion.models.get(name) != message.sha


def send_bends(
    sealed: SealedFolder,
    contents: FolderContents,
    name: str,
    tables: list[str],
    signer: Signer | None,
    **text: Any,
) -> None:
    """Send a site's moments once more, with hinge functions of the columns, so that curves can be fitted.

    A hinge is how far a value is above a place, its knot. The knots follow from everybody's moments. The
    table is first compared with the one that was shared, for moments of two tables must not be mixed.
    """
    message = contents.moments_of(name)
    assert message is not None
    knots = knots_for(contents.moments, message)
    if not knots:
        tell("No column bends: they are marks, or too many. Lines stay straight, and nothing is sent.")
        return
    X, y = _rows_of(contents, message, site_table(tables, contents, name, **text))
    names: dict[str, Any] = {"site": name, "columns": message.columns, "target": message.target}
    linear_message, hinge_message = (open_moments(X, y, seed=0, knots=each, **names) for each in ((), knots))
    sums_shared, sums_of_table = (unpacked(each).sum(axis=0) for each in (message, linear_message))
    if not np.allclose(sums_shared, sums_of_table, rtol=SAME_TABLE):
        raise CommandError(f"The table is not the one that {name!r} shared: score with that one.")
    already_sent = message.knots == knots or not sealed.put(hinge_message, signer, replace=True)
    tell(f"{name} {'has sent' if already_sent else 'sent'} its moments above {sum(map(len, knots))} knots.")
    tell(NEXT)


def with_site_model(
    contents: FolderContents, conclusion: Conclusion, name: str, frame: pl.DataFrame
) -> Conclusion:
    """Return the conclusion with the errors and verdict that a site's own rows give, in its row.

    It is for the site's own page and never sent: these numbers are learnt at home.
    """
    message = contents.moments_of(name)
    if message is None or conclusion.mixtures:
        raise CommandError("--own goes with a site that sent moments: name it with --name.")
    model = _site_model(contents, concluded_anew(contents), message, frame, "auto")
    fields = ("error_alone", "error_with", "gain", "gain_low", "gain_high", "verdict")
    own_numbers = {field: getattr(model, field) for field in fields}
    own_numbers["reason"] = f"{model.reason} {model.own:.0%} of a prediction is its own model's.".replace(
        "%", " %"
    )
    gains = tuple(changed(row, **own_numbers) if row.learner == name else row for row in conclusion.gains)
    return changed(conclusion, gains=gains)


def tell_verdict(
    contents: FolderContents, name: str, tables: list[str], order: str | None, **text: Any
) -> None:
    """Print whether others help a site, from its own rows; nothing of it is written or sent.

    ``contents`` has everybody's moments, ``tables`` are the files of the site's rows. Only the site
    itself can compute this, for moments have no errors.
    """
    message = contents.moments_of(name)
    assert message is not None
    model = _site_model(
        contents, concluded_anew(contents), message, site_table(tables, contents, name, **text), order
    )
    tell(f"{name}: {model.verdict}. {model.reason}")
    error = "Brier score" if _classes_of(message) else "Mean squared error"
    tell(
        f"{error} on rows not seen: alone {model.error_alone:.4g}, "
        f"with others {model.error_with:.4g}. {model.own:.0%} of a prediction is its own model's."
    )
    tell("This was learnt here, and nothing of it is sent.")


def predict_by_moments(
    contents: FolderContents, name: str, frame: pl.DataFrame, own: pl.DataFrame | None
) -> tuple[PreparedRows, Any]:
    """Return the rows that can be predicted, and their predictions for a site.

    Without the site's own rows, the linear model of its coterie predicts; with them (``own``), the model
    that the site makes at home. Of classes these are probabilities of shape (n, 2). Rows with gaps have none.
    """
    message = contents.moments_of(name)
    assert message is not None
    recomputed = concluded_anew(contents)
    if message.schema:
        X, _ = _encoded(frame, schema_from(message.schema), with_target=False)
    else:
        frame = encoded(frame, contents)
        check_columns(message.columns, frame.columns, "a predictor of the line")
        X = frame.select(pl.col(column).cast(pl.Float64) for column in message.columns).to_numpy()
    positions = np.flatnonzero(np.isfinite(X).all(axis=1))
    n_with_gaps = len(X) - len(positions)
    notes = (f"{n_with_gaps} of {len(X)} rows have gaps and were left out.",) if n_with_gaps else ()
    if own is None:
        predicted = recomputed.pool.units.predictions(recomputed.line(name), X[positions])
    else:
        predicted = _site_model(contents, recomputed, message, own, "auto").predict(X[positions])
    rows, probability = PreparedRows(X[positions], None, None, positions, notes), np.clip(predicted, 0, 1)
    return rows, np.column_stack([1 - probability, probability]) if _classes_of(message) else predicted
