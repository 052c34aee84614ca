"""``coterie fit``: from a file to an answer."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import CommandError, Interrupted
from coterie.cli.folders import Workplace, disk_error
from coterie.cli.printing import tell

if TYPE_CHECKING:
    from coterie.cli.partitions import StreamedRows
    from coterie.cli.preparing import Rows
    from coterie.encoding import TableRecipe
    from coterie.regressor import CoterieRegressor


@dataclass(frozen=True)
class FitOptions:
    """How to fit, beside the table.

    Parameters
    ----------
    candidates : str, default="default"
        Presets and names, separated by commas.
    n_clusters : str, default="auto"
        A number or a rule.
    max_clusters : int or None, default=None
        The largest number that a rule looks at.
    collaboration : str or None, default=None
        The form of collaboration. None: the library's default.
    seed : int, default=0
        Of everything random.
    jobs : int, default=1
        Number of threads.
    landmarks : str or None, default=None
        A number of landmarks, or ``auto``.
    device : str, default="auto"
        Where the spectrum of very many learners is computed.
    scheduler : str or None, default=None
        Address of a Dask scheduler, whose workers do the work.
    order : str, default="auto"
        ``auto``, or ``none``: rows are taken as independent.
    """

    candidates: str = "default"
    n_clusters: str = "auto"
    max_clusters: int | None = None
    collaboration: str | None = None
    seed: int = 0
    jobs: int = 1
    landmarks: str | None = None
    device: str = "auto"
    scheduler: str | None = None
    order: str = "auto"


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return names that were given one by one or separated by commas."""
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]


def parse_count(text: str) -> int | str:
    """Return a number of clusters as a number, a rule as it is."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def parse_order(text: str) -> str | None:
    """Return what ``--order`` means to the library."""
    if text not in ("auto", "none"):
        raise CommandError(f"--order must be auto or none. Got {text!r}.")
    return None if text == "none" else text


def folder_of(out: str | None, default: str) -> Path:
    """Return the folder for the results."""
    path = Path(out or default)
    # The folder's neighbour needs its name. A link is followed: the folder that it names gets the results.
    return Path(os.path.realpath(path)) if path.name in ("", "..") or os.path.islink(path) else path


def make_model(options: FitOptions, engine: Any = None) -> CoterieRegressor:
    """Return an estimator with the options of the command line, once they are known to be good."""
    from coterie.candidates import make_candidates
    from coterie.regressor import CoterieRegressor

    candidates = split_names([options.candidates])
    further: dict[str, Any] = (
        {} if options.collaboration is None else {"collaboration": options.collaboration}
    )
    model = CoterieRegressor(
        candidates=candidates,
        n_clusters=parse_count(options.n_clusters),
        max_clusters=options.max_clusters,
        random_state=options.seed,
        n_jobs=options.jobs,
        engine=engine,
        landmarks=None if options.landmarks is None else parse_count(options.landmarks),
        device=options.device,
        order=parse_order(options.order),
        **further,
    )
    try:
        make_candidates(candidates)
        model.check_options()
    except ValueError as error:
        raise CommandError(str(error)) from None
    return model


@contextmanager
def _workers(options: FitOptions) -> Iterator[Any]:
    """Yield who does the work: threads, or the workers of a Dask cluster."""
    from coterie.engines import ThreadEngine

    if options.scheduler is None:
        yield ThreadEngine(options.jobs)
        return
    from coterie.engines.dask import DaskEngine, connect

    with connect(options.scheduler) as client:
        yield DaskEngine(client)


def fit_rows(
    rows: Rows | StreamedRows,
    recipe: TableRecipe,
    options: FitOptions,
    place: Workplace,
    notes: list[str],
    *,
    resume: bool,
) -> CoterieRegressor:
    """Fit, keeping every finished learner beside the results that are to come."""
    import coterie
    from coterie.cli.progress import say, shown_progress
    from coterie.engines.checkpoints import CheckpointEngine
    from coterie.fit.out_of_core import select_from_source
    from coterie.method.fitting import choose_candidate
    from coterie.persistence.results import ResultCodec

    try:
        with _workers(options) as workers:
            kept: list[Callable[[Any], Any]] = [choose_candidate, select_from_source]
            version, codec = coterie.__version__, ResultCodec()
            engine = CheckpointEngine(workers, place.fits, kept, codec, version, fresh=not resume)
            model = make_model(options, engine)
            try:
                with shown_progress():
                    notes += rows.fit(model)
            except KeyboardInterrupt:
                if engine.not_kept:
                    say(f"{engine.not_kept} finished fits cannot be kept: --resume fits them again.")
                raise
    except OSError as error:
        raise disk_error(error, place.state) from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    if engine.restored:
        say(f"{engine.restored} finished fits were taken from {str(place.fits)!r}.")
    model.table_ = recipe
    return model


def write_results(model: CoterieRegressor, summary: dict[str, Any], folder: Path, *, report: bool) -> None:
    """Write the files of a fit into a folder."""
    import polars as pl

    import coterie
    from coterie.cli.spreadsheets import write_csv
    from coterie.method.spectral import avoids_pairs

    gains = pl.DataFrame(dict(model.gains_), strict=False)
    exchange = model.exchange_
    names = [str(learner) for learner in exchange.learner_ids.tolist()]
    tables = {"labels.csv": gains.select("learner", "cluster"), "gains.csv": gains}
    if not avoids_pairs(exchange):
        losses = pl.DataFrame(exchange.losses, schema=names)
        tables["losses.csv"] = losses.insert_column(0, pl.Series("model of", names))
    for name, table in tables.items():
        (folder / name).write_bytes(write_csv(table))
    (folder / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    coterie.save(model, folder / "model.coterie")
    if report:
        coterie.Report(model).write_html(folder / "report.html")


def run_fit(
    rows: Rows | StreamedRows,
    recipe: TableRecipe,
    options: FitOptions,
    place: Workplace,
    *,
    report: bool = True,
    force: bool = False,
    resume: bool = False,
    extra_files: dict[str, bytes] | None = None,
) -> dict[str, Any]:
    """Fit rows and write the results, all of them or none; return the summary."""
    with place.held(force=force, resume=resume):
        return _run_held(rows, recipe, options, place, report=report, resume=resume, extra_files=extra_files)


def _run_held(
    rows: Rows | StreamedRows,
    recipe: TableRecipe,
    options: FitOptions,
    place: Workplace,
    *,
    report: bool,
    resume: bool,
    extra_files: dict[str, bytes] | None,
) -> dict[str, Any]:
    from coterie.cli.preparing import Rows
    from coterie.cli.progress import gathered_warnings
    from coterie.summary import summarize

    notes = list(rows.notes)
    had_fits = place.has_fits()
    try:
        with gathered_warnings(notes):
            model = fit_rows(rows, recipe, options, place, notes, resume=resume)
        summary = summarize(model.record_)
        # What was warned of may be among the model's own notes, too.
        summary["notes"] = list(dict.fromkeys([*notes, *summary["notes"]]))
        summary["columns"] = [asdict(plan) | {"features": list(plan.features)} for plan in recipe.columns]
        summary["out"] = str(place.out)
        with place.writing() as folder:
            for name, content in (extra_files or {}).items():
                (folder / name).write_bytes(content)
            write_results(model, summary, folder, report=report)
    except KeyboardInterrupt:
        raise Interrupted(
            f"Stopped. Finished learners are kept in {str(place.state)!r}: "
            "run the same command with --resume to go on."
        ) from None
    except CommandError as error:
        # Bad input is found before most of the work; what an earlier run or a full disk stopped stays.
        if isinstance(rows, Rows) and not had_fits and not isinstance(error.__cause__, OSError):
            place.forget_fits()
        raise
    place.forget_fits()
    return summary


def print_summary(summary: dict[str, Any], *, as_json: bool) -> None:
    """Print a summary for people, or as one JSON object."""
    from coterie.cli.summary import make_console, show_summary

    if as_json:
        typer.echo(json.dumps(summary))
        return
    show_summary(make_console(sys.stdout), summary)
    tell(f"Results are in {summary['out']}/")


def fit(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...",
            show_default=False,
            help="CSV, TSV, Parquet or Arrow files, text also with .gz; patterns such as 'sites/*.csv'.",
        ),
    ] = None,
    target: Annotated[str, typer.Option(help="Column to predict.")] = "",
    group: Annotated[
        str, typer.Option(help="Column that names the learner of each row; 'filename': a learner per file.")
    ] = "",
    features: Annotated[
        list[str] | None, typer.Option(help="Columns to predict from, by commas; default: all others.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out, by commas.")] = None,
    candidates: Annotated[
        str, typer.Option(help="Presets (default, linear, paper) and names (rf, lasso, ...), by commas.")
    ] = "default",
    n_clusters: Annotated[
        str, typer.Option(help="A number, or held-out (auto), eigengap, gap, gap-jump, penalty, cv.")
    ] = "auto",
    max_clusters: Annotated[int | None, typer.Option(help="Largest number that a rule looks at.")] = None,
    collaboration: Annotated[str | None, typer.Option(help="How a coterie predicts together.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for the results; default: coterie- and the table's name.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1: one per core.")] = 1,
    landmarks: Annotated[
        str | None, typer.Option(help="Exchange with so many learners only, or auto; default: with all.")
    ] = None,
    device: Annotated[str, typer.Option(help="Of very many learners' spectrum: auto, cpu or cuda.")] = "auto",
    scheduler: Annotated[
        str | None, typer.Option(help="Dask scheduler whose workers do the work: tcp://HOST:8786.")
    ] = None,
    order: Annotated[
        str, typer.Option(help="auto: hold out blocks if rows depend on each other in their order; none.")
    ] = "auto",
    memory: Annotated[
        str | None,
        typer.Option(help="Read learners one by one from Parquet files or folders, within so much: 2GiB."),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of text files; default: by suffix.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit that was stopped.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report page.")] = True,
    from_nvflare: Annotated[
        str | None, typer.Option(help="Cluster NVFlare's cross_val_results.json instead of a table.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="With --from-nvflare: which metric.")] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="With --from-nvflare: a score of at most 1, no loss.")
    ] = False,
) -> None:
    """Cluster the learners of a table and write who learns with whom, and whether it pays.

    Missing numbers become the column's median and are marked by a column of their own; text becomes a column
    per entry (rare ones joined); dates become year, month, weekday and hour. What was done to which column is
    listed in the output.
    """
    from coterie.cli.report import check_report

    options = FitOptions(
        candidates, n_clusters, max_clusters, collaboration, seed, jobs, landmarks, device, scheduler, order
    )
    if report:
        check_report()
    if from_nvflare is not None:
        from coterie.cli.nvflare import cluster_nvflare

        if tables:
            raise CommandError("--from-nvflare takes the place of a table: give one of them.")
        place = Workplace(folder_of(out, f"coterie-{Path(from_nvflare).stem}"))
        place.check(force=force, resume=resume)
        summary = cluster_nvflare(
            from_nvflare,
            place,
            options,
            metric=metric,
            higher_is_better=higher_is_better,
            report=report,
            force=force,
            resume=resume,
        )
        print_summary(summary, as_json=as_json)
        return
    if not tables:
        raise CommandError("There is no table to fit: name a file, or try `coterie demo`.")
    for value, option in ((target, "--target"), (group, "--group")):
        if not value:
            raise CommandError(f"{option} is missing: name the column, as in {option} NAME.")
    from coterie.cli.preparing import prepare
    from coterie.cli.reading import find_files, read_tables, stem_of, wants_filename

    make_model(options)
    columns: dict[str, Any] = {
        "target": target,
        "group": group,
        "features": split_names(features),
        "drop": split_names(drop),
    }
    if memory is not None:
        from coterie.cli.partitions import find_learners

        found, recipe, stem = find_learners(tables, memory=memory, **columns)
        place = Workplace(folder_of(out, f"coterie-{stem}"))
        place.check(force=force, resume=resume)
        summary = run_fit(found, recipe, options, place, report=report, force=force, resume=resume)
        print_summary(summary, as_json=as_json)
        return
    stem = stem_of(find_files(tables)[0]) if len(tables) == 1 and Path(tables[0]).exists() else "fit"
    place = Workplace(folder_of(out, f"coterie-{stem}"))
    place.check(force=force, resume=resume)
    by_file = wants_filename(group)
    frame = read_tables(tables, delimiter=delimiter, encoding=encoding, with_filename=by_file)
    rows, recipe = prepare(frame, by_file=by_file, **columns)
    del frame
    summary = run_fit(rows, recipe, options, place, report=report, force=force, resume=resume)
    print_summary(summary, as_json=as_json)
