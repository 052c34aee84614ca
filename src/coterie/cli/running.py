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
    **more: Any,
) -> CoterieEstimator:
    """Return an estimator with the options of the command line, once they are known to be good.

    An option that is None has the library's default. While the ``task`` is not known, candidates may be
    regressors or classifiers.
    """
    if task == AUTO:
        options = {**more, "n_clusters": n_clusters, "landmarks": landmarks, "order": order}
        try:
            return make_model(candidates, **options)
        except CommandError as error:
            with suppress(CommandError):
                return make_model(candidates, **options, task=CLASSIFICATION)
            raise error
    names = None if candidates is None else split_names([candidates])
    made = CoterieClassifier if task == CLASSIFICATION else CoterieRegressor
    model: CoterieEstimator = made(
        candidates=names,
        n_clusters=parse_count(n_clusters),
        landmarks=None if landmarks is None else parse_count(landmarks),
        order=parse_order(order),
        **{name: value for name, value in more.items() if value is not None},
    )
    with one_sentence():
        make_candidates(ForClasses(names) if task == CLASSIFICATION else names)
        model.check_options()
    return model


@contextmanager
def _workers(scheduler: str | None, n_jobs: int | None) -> Iterator[Any]:
    """Yield who does the work: threads, or the workers of a Dask cluster."""
    if scheduler is None:
        yield ThreadEngine(n_jobs)
        return
    from coterie.engines.dask import DaskEngine, connect

    with connect(scheduler) as client:
        yield DaskEngine(client)


def _fit(
    model: CoterieEstimator, rows: PreparedRows | StreamedRows, place: Workplace, scheduler: str | None
) -> list[str]:
    """Fit, keeping every finished learner beside the results that are to come; return notes."""
    kept: list[Callable[[Any], Any]] = [choose_candidate, select_from_source]
    with one_sentence(), disk_errors(place.state), _workers(scheduler, model.n_jobs) as workers:
        engine = CheckpointEngine(
            workers, place.fits, kept, ResultCodec(), coterie.__version__, fresh=not place.resume
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
    """Write the tables, the summary, the model and, if requested, the page."""
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
    """Fit rows and write the results, all of them or none; return the summary."""
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
                counted = Steps("Write", 1)
                if table is not None:
                    write_bytes(folder / "learners.csv", write_csv(table))
                _write_results(model, summary, folder, report=report)
                counted.finish()
        except KeyboardInterrupt:
            raise Interrupted(
                f"Stopped. Finished learners are kept in {str(place.state)!r}: "
                "run the same command with --resume to go on."
            ) from None
        except CommandError as error:
            # Bad input is found before most of the work; what an earlier run or a full disk stopped stays.
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
