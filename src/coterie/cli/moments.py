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
    """Return how private a message has to be; None: not at all."""
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
    """Return predictors and response of all rows; a response that is missing is NaN."""
    names = [column.name for column in schema.columns]
    check_columns([*names, schema.target.name] if with_target else names, frame.columns, "the schema")
    notes: list[str] = []
    X = schema.predictors(frame, notes)
    y = schema.response(frame, notes) if with_target else None
    say_notes(notes)
    return X, y


def _classes_of(message: Moments) -> tuple[str, ...]:
    """Return the classes of a site's response; none where it is a number."""
    return schema_from(message.schema).classes if message.schema else ()


def revealed(message: Moments) -> list[str]:
    """Return what a message of moments reveals, a line each."""
    size = len(message.columns) + 2
    if message.promise is None:
        numbers = (
            f"second moments of (1, x, y) over two halves of the rows: {size * (size + 1)} numbers, exact"
        )
    else:
        numbers = (
            f"second moments of (1, x, y) over two halves of the rows, each scaled to the length one: "
            f"{size * (size + 1)} numbers, each with noise of standard deviation "
            f"{noise_scale(message.promise):.3g} or {noise_scale(message.promise) / np.sqrt(2):.3g}; "
            f"epsilon {message.promise.epsilon:g}, delta {message.promise.delta:g}"
        )
    columns = ", ".join(message.columns[:12]) + (" and more" if len(message.columns) > 12 else "")
    return [
        f"site: {message.site}",
        f"number of rows: {message.n_rows}",
        f"columns: {columns}; target: {message.target}",
        numbers,
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
    """Put a site's private moments into the folder, or say what they would reveal."""
    with one_sentence():
        schema = read_schema(path)
        if target not in ("", schema.target.name):
            raise CommandError(f"The schema predicts {schema.target.name!r}, not {target!r}.")
        frame = read_tables(tables, decimal=schema.decimal, agreed=True, **text)
        X, y = _encoded(frame, schema, with_target=True)
        given: dict[str, Any] = {"site": name, "schema": schema, "promise": promise}
        if sealed is None or dry_run:
            tell("`coterie share` would reveal:")
            for line in revealed(moments_of(X, y, **given)):
                tell(f"  {line}")
            return
        lines = [repr(row) for row in frame.select(sorted(frame.columns)).iter_rows()]
        try:
            with cache_errors():
                message, account = send_once(X, y, lines=lines, again=replace, **given)
            written = sealed.put(message, signer, replace=replace)
        except ValueError as error:
            if "earlier private message" in str(error) or "other content" in str(error):
                raise CommandError(f"{error} Pass --replace if that is meant.") from None
            raise
    done = "shared" if written else "had shared already"
    tell(f"{name} {done}: noisy moments of {message.n_rows} rows.")
    old = (
        "the same message was sent before, and spends nothing anew" if account.again else "this one included"
    )
    if any(said.site == name for said in sealed.read().columns):
        say(f"Note: {name!r} has named columns and entries in this folder, which epsilon does not cover.")
    tell(f"Spent on these rows so far: epsilon {account.epsilon:g}, delta {account.delta:g} ({old}).")
    tell(NEXT)


def moments_of_site(site: Site) -> Moments:
    """Return a site's moments without noise."""
    rows = site.learners
    named: dict[str, Any] = {"site": site.name, "columns": site.columns, "target": site.target}
    return open_moments(rows.X, rows.scalar_y, seed=site.seed, **named)


def is_by_moments(contents: FolderContents) -> bool:
    """Tell whether most sites sent moments."""
    return len(contents.moments) > len(contents.shares)


def without_moments(conclusion: Conclusion, contents: FolderContents) -> Conclusion:
    """Say in a conclusion from models who sent moments only."""
    others = {
        message.site: NOT_A_MODEL for message in contents.moments if message.site not in conclusion.models
    }
    return changed(conclusion, left_out={**others, **conclusion.left_out})


def conclude_by_moments(
    sealed: SealedFolder,
    contents: FolderContents,
    settings: Settings,
    without: Mapping[str, str],
    signer: Signer | None,
) -> dict[str, Any]:
    """Conclude from moments; there is nobody to wait for."""
    result = conclude_moments(contents.moments, settings=settings, leave_out=without).conclusion
    sent = {message.site for message in contents.moments}
    others = {share.site: NOT_MOMENTS for share in contents.shares if share.site not in sent}
    result = changed(result, left_out={**result.left_out, **others})
    sealed.put(result, signer, replace=True)
    return {"state": "concluded", "conclusion": result}


def concluded_anew(contents: FolderContents) -> Pooled:
    """Return the conclusion of the folder, computed anew from the moments."""
    conclusion = contents.conclusion
    if conclusion is None:
        raise CommandError("The folder has no conclusion yet: run `coterie conclude` first.")
    if conclusion.mixtures:
        raise CommandError("Most sites shared a model, and the conclusion is about these.")
    messages = [message for message in contents.moments if message.site in conclusion.models]
    # Who was left out for too few rows is not asked again.
    settings = changed(Settings.from_text(conclusion.settings), min_rows=FEWEST_ROWS)
    result = conclude_moments(messages, settings=settings)
    if result.conclusion.models != dict(conclusion.models):
        raise CommandError("A site has sent other moments since: conclude again.")
    if result.conclusion.labels != conclusion.labels:
        raise CommandError("The conclusion does not follow from the moments in the folder: conclude again.")
    return result


def _rows_of(contents: FolderContents, message: Moments, frame: pl.DataFrame) -> tuple[Any, Any]:
    """Return predictors and response of a site's rows that have no gaps."""
    if message.schema:
        X, y = _encoded(frame, schema_from(message.schema), with_target=True)
    else:
        frame = encoded(frame, contents)
        check_columns([*message.columns, message.target], frame.columns, "the columns that were shared")
        X = frame.select(pl.col(name).cast(pl.Float64) for name in message.columns).to_numpy()
        y = target_values(frame, message.target).to_numpy()
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y.astype(float))
    return X[whole], y[whole]


def _site_model(
    contents: FolderContents, found: Pooled, message: Moments, frame: pl.DataFrame, order: str | None
) -> SiteModel:
    """Return what the site learns from its own rows."""
    X, y = _rows_of(contents, message, frame)
    with gathered_warnings([]):
        site = make_site(X, y, site=message.site, columns=message.columns, target=message.target, order=order)
    return site_model(site, found, message.schema)


def are_open(contents: FolderContents, name: str) -> bool:
    """Tell whether a site sent exact moments which no conclusion is about yet."""
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
    """Send a site's moments once more, above the knots that follow from everybody's."""
    message = contents.moments_of(name)
    assert message is not None
    knots = knots_for(contents.moments, message)
    if not knots:
        tell("No column bends: they are marks, or too many. Lines stay straight, and nothing is sent.")
        return
    X, y = _rows_of(contents, message, site_table(tables, contents, name, **text))
    named: dict[str, Any] = {"site": name, "columns": message.columns, "target": message.target}
    straight, bent = (open_moments(X, y, seed=0, knots=each, **named) for each in ((), knots))
    before, now = (unpacked(each).sum(axis=0) for each in (message, straight))
    if not np.allclose(before, now, rtol=SAME_TABLE):
        raise CommandError(f"The table is not the one that {name!r} shared: score with that one.")
    sent = message.knots == knots or not sealed.put(bent, signer, replace=True)
    tell(f"{name} {'has sent' if sent else 'sent'} its moments above {sum(map(len, knots))} knots.")
    tell(NEXT)


def with_site_model(
    contents: FolderContents, conclusion: Conclusion, name: str, frame: pl.DataFrame
) -> Conclusion:
    """Return the conclusion with what a site itself learns in its row: for its own page, never sent."""
    message = contents.moments_of(name)
    if message is None or conclusion.mixtures:
        raise CommandError("--own goes with a site that sent moments: name it with --name.")
    model = _site_model(contents, concluded_anew(contents), message, frame, "auto")
    numbers = ("error_alone", "error_with", "gain", "gain_low", "gain_high", "verdict")
    mine = {each: getattr(model, each) for each in numbers}
    mine["reason"] = f"{model.reason} {model.own:.0%} of a prediction is its own model's.".replace("%", " %")
    rows = tuple(changed(row, **mine) if row.learner == name else row for row in conclusion.gains)
    return changed(conclusion, gains=rows)


def tell_verdict(
    contents: FolderContents, name: str, tables: list[str], order: str | None, **text: Any
) -> None:
    """Say what others bring a site; nothing of it is written or sent."""
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
    """Return the rows that can be predicted, and their predictions.

    Without the site's own rows, by the line of its coterie; with them, as the site has learnt at home. Of
    classes these are probabilities of shape (n, 2).
    """
    message = contents.moments_of(name)
    assert message is not None
    result = concluded_anew(contents)
    if message.schema:
        X, _ = _encoded(frame, schema_from(message.schema), with_target=False)
    else:
        frame = encoded(frame, contents)
        check_columns(message.columns, frame.columns, "a predictor of the line")
        X = frame.select(pl.col(column).cast(pl.Float64) for column in message.columns).to_numpy()
    kept = np.flatnonzero(np.isfinite(X).all(axis=1))
    losses = len(X) - len(kept)
    notes = (f"{losses} of {len(X)} rows have gaps and were left out.",) if losses else ()
    if own is None:
        predicted = result.pool.units.predictions(result.line(name), X[kept])
    else:
        predicted = _site_model(contents, result, message, own, "auto").predict(X[kept])
    rows, second = PreparedRows(X[kept], None, None, kept, notes), np.clip(predicted, 0, 1)
    return rows, np.column_stack([1 - second, second]) if _classes_of(message) else predicted
