"""A fit of the command line: finished learners are kept, results appear whole, and a summary is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

import coterie
from coterie._files import write_bytes
from coterie.candidates import ForClasses, make_candidates
from coterie.classifier import CoterieClassifier
from coterie.cli.errors import CommandError, Interrupted, disk_errors, one_sentence
from coterie.cli.files import MODEL
from coterie.cli.folders import Workplace
from coterie.cli.options import parse_count, parse_order, split_names
from coterie.cli.preparing import PreparedRows, StreamedRows
from coterie.cli.printing import say, tell, tell_json
from coterie.cli.progress import gathered_warnings, progress_bars
from coterie.cli.spreadsheets import write_csv
from coterie.cli.summary import show_summary
from coterie.cli.tasks import AUTO, CLASSIFICATION, REGRESSION
from coterie.encoding import TableRecipe
from coterie.engines import Steps, ThreadEngine
from coterie.engines.checkpoints import CheckpointEngine
from coterie.estimator import CoterieEstimator
from coterie.fit.out_of_core import select_from_source
from coterie.method.fitting import choose_candidate
from coterie.method.spectral import avoids_pairs
from coterie.persistence.results import ResultCodec
from coterie.regressor import CoterieRegressor
from coterie.summary import summarize


def make_model(
    candidates: str | None,
    *,
    n_clusters: str = "auto",
    landmarks: str | None = None,
    order: str = "auto",
    task: str = REGRESSION,
    **other_options: Any,
) -> CoterieEstimator:
    """Return an estimator with the options of the command line, after they were checked.

    An option that is None has the library's default. While the ``task`` is ``"auto"``, candidates may be
    regressors or classifiers, so that both are tried. Candidates are the kinds of model that each learner
    chooses from.
    """
    if task == AUTO:
        all_options = {**other_options, "n_clusters": n_clusters, "landmarks": landmarks, "order": order}
        try:
            return make_model(candidates, **all_options)
        except CommandError as error:
            with suppress(CommandError):
                return make_model(candidates, **all_options, task=CLASSIFICATION)
            raise error
    names = None if candidates is None else split_names([candidates])
    estimator = CoterieClassifier if task == CLASSIFICATION else CoterieRegressor
    model: CoterieEstimator = estimator(
        candidates=names,
        n_clusters=parse_count(n_clusters),
        landmarks=None if landmarks is None else parse_count(landmarks),
        order=parse_order(order),
        **{name: value for name, value in other_options.items() if value is not None},
    )
    with one_sentence():
        make_candidates(ForClasses(names) if task == CLASSIFICATION else names)
        model.check_options()
    return model


@contextmanager
def _workers(scheduler: str | None, n_jobs: int | None) -> Iterator[Any]:
    """Yield the engine that runs the fits: threads, or the workers of a Dask cluster at ``scheduler``."""
    if scheduler is None:
        yield ThreadEngine(n_jobs)
        return
    from coterie.engines.dask import DaskEngine, connect

    with connect(scheduler) as client:
        yield DaskEngine(client)


def _fit(
    model: CoterieEstimator, rows: PreparedRows | StreamedRows, place: Workplace, scheduler: str | None
) -> list[str]:
    """Fit a model, keeping every finished learner on disk for ``--resume``; return notes for the user.

    ``place`` says where they are kept, ``scheduler`` which Dask cluster works; None: threads here. A
    checkpoint keeps the two functions that choose a learner's model, which take nearly all of the time.
    """
    functions_to_keep: list[Callable[[Any], Any]] = [choose_candidate, select_from_source]
    with one_sentence(), disk_errors(place.state), _workers(scheduler, model.n_jobs) as workers:
        engine = CheckpointEngine(
            workers, place.fits, functions_to_keep, ResultCodec(), coterie.__version__, fresh=not place.resume
        )
        model.set_params(engine=engine)
        try:
            with progress_bars():
                notes = rows.fit(model)
        except KeyboardInterrupt:
            if engine.not_kept:
                say(f"{engine.not_kept} finished fits cannot be kept: --resume fits them again.")
            raise
    if engine.restored:
        say(f"{engine.restored} finished fits were taken from {str(place.fits)!r}.")
    return notes


def losses_table(losses: Any, names: Sequence[str]) -> pl.DataFrame:
    """Return the losses with the learners' names: a row for each model, a column for each learner's data."""
    return pl.DataFrame(losses, schema=list(names)).insert_column(0, pl.Series("model of", names))


def write_tables(folder: Path, tables: Mapping[str, pl.DataFrame], summary: dict[str, Any]) -> None:
    """Write tables as CSV files, and the summary."""
    for name, table in tables.items():
        write_bytes(folder / name, write_csv(table))
    write_bytes(folder / "summary.json", json.dumps(summary, indent=1).encode())


def _write_results(model: CoterieEstimator, summary: dict[str, Any], folder: Path, *, report: bool) -> None:
    """Write the results of a fit into a folder: tables, summary, model and, if requested, the page.

    Losses are left out where there are so many learners that not all pairs were computed.
    """
    gains = pl.DataFrame(dict(model.gains_), strict=False)
    tables = {"labels.csv": gains.select("learner", "cluster"), "gains.csv": gains}
    exchange = model.exchange_
    if not avoids_pairs(exchange):
        names = [str(learner) for learner in exchange.learner_ids.tolist()]
        tables["losses.csv"] = losses_table(exchange.losses, names)
    write_tables(folder, tables, summary)
    coterie.save(model, folder / MODEL)
    if report:
        coterie.Report(model).write_html(folder / "report.html")


def run_fit(
    model: CoterieEstimator,
    rows: PreparedRows | StreamedRows,
    recipe: TableRecipe,
    place: Workplace,
    *,
    scheduler: str | None = None,
    report: bool = True,
    table: pl.DataFrame | None = None,
) -> dict[str, Any]:
    """Fit rows and write the results into the workplace, all of them or none; return the summary.

    Finished learners survive a stop, so that ``--resume`` can go on. After bad input they are removed,
    unless an earlier run or a full disk left them. ``table``: also write the rows, for the demo.
    """
    notes = list(rows.notes)
    with place.held():
        had_fits = place.has_fits()
        try:
            with gathered_warnings(notes):
                notes += _fit(model, rows, place, scheduler)
            model.keep_recipe(replace(recipe, day=date.today().isoformat()))
            summary = summarize(model.record_, target=recipe.target, unit=recipe.unit)
            # What was warned of may be among the model's own notes, too.
            summary["notes"] = list(dict.fromkeys([*notes, *summary["notes"]]))
            summary["columns"] = [asdict(plan) | {"features": list(plan.features)} for plan in recipe.columns]
            summary["out"] = str(place.out)
            with progress_bars(), place.writing() as folder:
                write_step = Steps("Write", 1)
                if table is not None:
                    write_bytes(folder / "learners.csv", write_csv(table))
                _write_results(model, summary, folder, report=report)
                write_step.finish()
        except KeyboardInterrupt:
            raise Interrupted(
                f"Stopped. Finished learners are kept in {str(place.state)!r}: "
                "run the same command with --resume to go on."
            ) from None
        except CommandError as error:
            # Bad input was found early, so that little is lost; an OSError is a full disk.
            if isinstance(rows, PreparedRows) and not had_fits and not isinstance(error.__cause__, OSError):
                place.forget_fits()
            raise
        place.forget_fits()
    return summary


def print_summary(summary: dict[str, Any], *, as_json: bool, verbose: bool = False) -> None:
    """Print a summary for people, or as one JSON object."""
    if as_json:
        tell_json(summary)
        return
    show_summary(summary, verbose=verbose)
    out = summary["out"]
    page = f"; look at {out}/report.html first" if Path(out, "report.html").exists() else ""
    tell(f"Results are in {out}/{page}.")
