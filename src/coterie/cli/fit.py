"""``coterie fit``: from a file to an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from coterie.cli import options
from coterie.cli.errors import CommandError, require
from coterie.cli.files import FILENAME, find_files, stem_of
from coterie.cli.folders import Workplace
from coterie.cli.report import check_report


def fit(
    tables: Annotated[
        list[str] | None,
        Argument(
            metavar="TABLE...",
            show_default=False,
            help="Read these CSV, TSV, Excel, Parquet or Arrow files. "
            "Patterns such as 'sites/*.csv' are allowed.",
        ),
    ] = None,
    target: options.Target = "",
    group: Annotated[
        str, Option(help="This column names the learner of each row. With 'filename' each file is a learner.")
    ] = "",
    unit: Annotated[str, Option(help="The target and its errors are in this unit, such as dollars.")] = "",
    task: Annotated[
        str,
        Option(
            help="The target is a class (classification) or a number "
            "(regression). With auto, text and two values are classes."
        ),
    ] = "auto",
    features: options.Features = None,
    drop: options.Drop = None,
    candidates: Annotated[
        str | None,
        Option(
            help="Learners choose among these models, separated by "
            "commas. Names are rf, lasso, logistic, ...; "
            "presets are default, linear and paper."
        ),
    ] = None,
    effort: Annotated[
        str,
        Option(
            help="With fast, there are fewer models and folds, and nothing "
            "is resampled. The other choice is full."
        ),
    ] = "full",
    n_clusters: Annotated[
        str,
        Option(
            help="Ask for this number of coteries, or for a rule: auto "
            "(held-out), eigengap, gap, gap-jump, penalty, cv."
        ),
    ] = "auto",
    max_clusters: options.MaxClusters = None,
    collaboration: Annotated[
        str | None, Option(help="A coterie predicts in this way: auto, pooled, average, local or global.")
    ] = None,
    out: Annotated[
        str | None,
        Option(
            help="Write the results into this folder. By default its name is coterie- and that of the table."
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Start all random numbers from this seed.")] = 0,
    jobs: Annotated[
        int | None,
        Option(
            help="Work in this many threads. By default one per core, or one "
            "with --memory. The results are the same."
        ),
    ] = None,
    landmarks: Annotated[
        str | None,
        Option(
            help="Everybody exchanges models with this many learners, or with auto many. By default with all."
        ),
    ] = None,
    device: Annotated[
        str, Option(help="Very many learners are clustered on this device: auto, cpu or cuda.")
    ] = "auto",
    scheduler: Annotated[
        str | None, Option(help="The workers of this Dask scheduler do the work, such as tcp://HOST:8786.")
    ] = None,
    order: options.Order = "auto",
    time: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="This column has the time of each row. Errors are then "
            "those of forecasts of the later rows.",
        ),
    ] = None,
    log_target: Annotated[
        bool,
        Option("--log-target", help="Fit the logarithm of the target. Predictions are in its own unit."),
    ] = False,
    memory: Annotated[
        str | None,
        Option(
            help="Read learners one by one from Parquet files or folders, "
            "within this much memory, such as 2GiB."
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    as_json: options.AsJson = False,
    verbose: Annotated[
        bool,
        Option("--verbose", "-v", help="Say also what became of each column, and more about the clusters."),
    ] = False,
    resume: Annotated[bool, Option("--resume", help="Go on with a fit that was stopped.")] = False,
    force: options.ReplaceResults = False,
    report: Annotated[bool, Option("--report/--no-report", help="Write the report page.")] = True,
    from_nvflare: Annotated[
        str | None, Option(help="Cluster this cross_val_results.json of NVFlare instead of a table.")
    ] = None,
    metric: Annotated[str | None, Option(help="With --from-nvflare, use this metric.")] = None,
    higher_is_better: Annotated[
        bool,
        Option(
            "--higher-is-better", help="With --from-nvflare, the metric is a score of at most 1, not a loss."
        ),
    ] = False,
) -> None:
    """Cluster the learners of a table and write who learns with whom, and whether it pays.

    Missing numbers become the column's median and are marked by a column of their own; text becomes a column
    per entry (rare ones joined); dates become year, month, weekday and hour. What was done to which column is
    listed in the output.
    """
    if tables and memory is None:
        find_files(tables)
    from coterie.cli.preparing import prepare
    from coterie.cli.reading import read_tables
    from coterie.cli.running import make_model, print_summary, run_fit
    from coterie.cli.tasks import CLASSIFICATION, REGRESSION, check_task

    def place_named(stem: str) -> Workplace:
        return Workplace.named(out or f"coterie-{stem}", force=force, resume=resume)

    if report:
        check_report()
    model_options: dict[str, Any] = {"max_clusters": max_clusters, "random_state": seed}
    if from_nvflare is not None:
        from coterie.cli.nvflare import cluster_nvflare

        if tables:
            raise CommandError("--from-nvflare takes the place of a table: give one of them.")
        metric_options: dict[str, Any] = {"metric": metric, "higher_is_better": higher_is_better}
        model_options["n_clusters"] = options.parse_count(n_clusters)
        place = place_named(Path(from_nvflare).stem)
        summary = cluster_nvflare(from_nvflare, place, **metric_options, **model_options, report=report)
        print_summary(summary, as_json=as_json, verbose=verbose)
        return
    if not tables:
        raise CommandError("There is no table to fit: name a file, or try `coterie demo`.")
    require("name the column", target=target, group=group)
    model_options |= {"n_clusters": n_clusters, "landmarks": landmarks, "collaboration": collaboration}
    model_options |= {
        "n_jobs": jobs or (-1 if memory is None else 1),
        "device": device,
        "order": order,
        "effort": effort,
        "time": time,
    }
    if log_target:
        if task == CLASSIFICATION:
            raise CommandError("--log-target is for numbers, not for classes: leave it out.")
        model_options["log_target"], task = True, REGRESSION
    model = make_model(candidates, **model_options, task=check_task(task))
    column_options: dict[str, Any] = {"target": target, "group": group, "by_file": group == FILENAME}
    column_options |= {"features": options.split_names(features), "drop": options.split_names(drop)}
    if memory is not None:
        from coterie.cli.partitions import find_learners

        if time is not None or log_target:
            raise CommandError("--memory does not take --time or --log-target yet: leave them out.")
        rows, recipe, stem = find_learners(tables, memory=memory, **column_options, task=task)
        place = place_named(stem)
    else:
        is_one_file = len(tables) == 1 and Path(tables[0]).exists()
        place = place_named(stem_of(find_files(tables)[0]) if is_one_file else "fit")
        by_file = column_options["by_file"]
        text_options: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
        frame = read_tables(tables, **text_options, ids=[group], with_filename=by_file)
        rows, recipe = prepare(frame, **column_options, task=task, time=time)
        if log_target and rows.y is not None and rows.y.min() <= 0:
            raise CommandError(
                f"--log-target needs a positive target, and {target!r} goes down to {rows.y.min():g}: "
                "leave it out."
            )
        del frame
    model = make_model(candidates, **model_options, task=CLASSIFICATION if rows.classes else REGRESSION)
    source = Path(tables[0]).name if len(tables) == 1 else f"{len(tables)} tables"
    recipe = replace(recipe, source=source, unit=unit)
    summary = run_fit(model, rows, recipe, place, scheduler=scheduler, report=report)
    print_summary(summary, as_json=as_json, verbose=verbose)
