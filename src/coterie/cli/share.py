"""``coterie share``: a site's model and a few numbers, sealed for its peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from coterie.cli import options
from coterie.cli.errors import CommandError, one_sentence, require
from coterie.cli.printing import say_notes, tell
from coterie.cli.progress import gathered_warnings

if TYPE_CHECKING:
    from coterie.federated import Share

LATER = (
    "Later, `coterie score` reveals, as numbers: the mean squared error of every site's model on your rows;",
    "  your noise level; the sizes of two halves of your rows; in each further round the mean errors of",
    "  averages of models on both halves, how likely offsets and slopes of each size are, sums of products",
    "  of the residuals of a few averages, and in the end your own slopes and intercept beside them.",
)
LATER_BLURRED = (
    "Later, `coterie score --epsilon` reveals, as numbers: the mean squared error of every site's model on",
    "  your rows, clipped and blurred, which spends epsilon again, and the sizes of two halves of your rows.",
    "Sharing or scoring the same again sends the same numbers and spends nothing; other models, another",
    "  table, or another --epsilon or --clip do.",
)


def revealed(share: Share) -> list[str]:
    """Return what a share reveals, a line each: names, numbers and sizes."""
    columns = ", ".join(share.columns[:12]) + (" and more" if len(share.columns) > 12 else "")
    if share.privacy is not None:
        numbers = [
            "mean and variance of the target, and the error of the model: not revealed",
            f"the model: {share.family}, coefficients clipped to the norm {share.privacy.clip:g} and "
            f"blurred: epsilon {share.privacy.epsilon:g}, delta {share.privacy.delta:g}",
        ]
    else:
        numbers = [
            f"mean and variance of the target: {share.response_mean:.6g}, {share.response_variance:.6g}",
            f"mean squared error of the model on its own rows: {share.error:.6g}",
            "standard deviation of each predictor: "
            + ", ".join(f"{each:.6g}" for each in share.spreads[:12]),
            f"the model: {share.family}, {len(share.model)} bytes, sha256 {share.sha[:16]}",
        ]
    return [
        f"site: {share.site}",
        f"number of rows: {share.n_rows}",
        f"columns: {columns}; target: {share.target}",
        *numbers,
        f"candidates: {', '.join(share.candidates)}; seed: {share.seed}",
        "versions: " + ", ".join(f"{name} {version}" for name, version in share.software.items()),
    ]


def share(
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="Files with the rows of this site alone.")
    ],
    target: options.Target = "",
    name: Annotated[str, Option(help="Name of this site; no two may have the same.")] = "",
    folder: options.Folder = "",
    features: options.Features = None,
    drop: options.Drop = None,
    candidates: Annotated[
        str, Option(help="Presets (default, linear) and names (rf, lasso, ...), by commas.")
    ] = "default",
    seed: Annotated[int, Option(min=0, help="Of everything random; the same at all sites.")] = 0,
    order: options.Order = "auto",
    dry_run: Annotated[bool, Option("--dry-run", help="List what would be revealed.")] = False,
    replace: Annotated[bool, Option("--replace", help="Replace this site's earlier share.")] = False,
    sign: options.Sign = None,
    known_keys: options.KnownKeys = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    clip: Annotated[float | None, Option(help="With --epsilon: norm of the coefficients.")] = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Fit a model on this site's rows and put it, sealed, into the folder; no row leaves the site."""
    from coterie.cli import sites
    from coterie.cli.preparing import chosen_columns
    from coterie.cli.reading import read_tables
    from coterie.federated import make_party
    from coterie.method.order import IN_ORDER

    require(target=target, name=name)
    rows_in_order = options.parse_order(order)
    blur = sites.make_blur(epsilon, delta, clip)
    # What would be revealed can be seen before there is a folder.
    sealed = None if dry_run and not Path(folder or " ").is_dir() else sites.open_folder(folder, known_keys)
    signer = sites.open_signer(sign, sealed)
    if sealed is not None and not dry_run:
        sites.check_signer(sealed, signer, name)
    frame = read_tables(tables, delimiter=delimiter, encoding=encoding)
    columns = chosen_columns(
        frame.columns, target, None, options.split_names(features), options.split_names(drop)
    )
    with one_sentence():
        shares = () if sealed is None else sealed.read(answers_of=name).shares
    others = tuple(each for each in shares if each.site != name)
    ordered = columns if features else sites.in_their_order(columns, others)
    rows = sites.site_rows(frame, target, ordered)
    notes = list(rows.notes)
    if ordered != columns:
        notes.append("The columns were put into the order that the other sites have.")
    agreed: dict[str, Any] = {"candidates": options.split_names([candidates]), "seed": seed}
    agreed |= {"target": target, "columns": tuple(ordered)}
    with one_sentence(), gathered_warnings(notes):
        party = make_party(rows.X, rows.y, site=name, order=rows_in_order, **agreed)
        if party.selection.in_order:
            notes.append(IN_ORDER)
        message = sites.make_share(party, blur, dry_run=dry_run)
    say_notes(notes)
    if sealed is None or dry_run:
        tell("`coterie share` would reveal:")
        for line in revealed(message):
            tell(f"  {line}")
        for line in LATER if blur is None else LATER_BLURRED:
            tell(line)
        return
    try:
        with one_sentence():
            written = sealed.put(message, signer, replace=replace)
    except CommandError as error:
        if "cannot be used" in str(error):
            raise CommandError(f"{error} With --replace, your share takes its place.") from None
        if "other content" not in str(error):
            raise
        raise CommandError(
            f"The folder has another share of {name!r}: if it is yours and your table or options have "
            f"changed, pass --replace{', which spends epsilon again' if blur else ''}; otherwise take "
            "another name."
        ) from None
    done = "shared" if written else "had shared already"
    tell(f"{name} {done}: {message.family}, {message.n_rows} rows, {len(message.model)} bytes.")
    tell("When all sites have shared, run `coterie score` at each of them.")
