"""``coterie demo``: thirty learners of three truths, from a table to the report."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from coterie.cli.errors import CommandError
from coterie.cli.folders import Workplace
from coterie.cli.options import ReplaceResults
from coterie.cli.printing import tell
from coterie.cli.report import check_report


def _table() -> Any:
    """Return the demo's table: 30 learners of 60 rows, six predictors and y, without the true groups."""
    import polars as pl

    from coterie.datasets import make_linear_learners

    data = make_linear_learners(n_learners=30, n_truths=3, n_rows=60, n_features=6, random_state=0)
    names = [f"x{k}" for k in range(data.X.shape[1])]
    frame = pl.DataFrame(data.X, schema=names)
    return frame.with_columns(y=pl.Series(data.y)).insert_column(0, pl.Series("learner", data.groups))


def demo(
    out: Annotated[str, Option(help="Write the results into this folder.")] = "coterie-demo",
    force: ReplaceResults = False,
) -> None:
    """Fit an example, print what was found, and write the report page."""
    from coterie.cli.preparing import prepare
    from coterie.cli.running import make_model, print_summary, run_fit

    try:
        check_report()
    except CommandError:
        raise CommandError(
            "The demo ends in a report page: install coterie's extra 'report' first."
        ) from None
    place = Workplace.named(out or "coterie-demo", force=force)
    frame = _table()
    rows, recipe = prepare(frame, target="y", group="learner")
    model = make_model("linear", n_jobs=1)
    print_summary(run_fit(model, rows, recipe, place, table=frame), as_json=False)
    by_hand = f"coterie fit {place.out}/learners.csv --target y --group learner --candidates linear"
    tell(f"The same by hand: {by_hand}")
    tell(f"{place.out}/report.html")
