"""``coterie share``: a site's model and a few numbers, sealed for its peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from coterie.cli import options
from coterie.cli.errors import CommandError, one_sentence, require
from coterie.cli.files import find_files
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


def revealed(share: Share) -> list[str]:
    """Return, a line each, what a share tells others about a site's rows: names, numbers and sizes.

    A user reads these lines before anything is sent (``--dry-run``).
    """
    columns = ", ".join(share.columns[:12]) + (" and more" if len(share.columns) > 12 else "")
    response = f"mean and variance of the target: {share.response_mean:.6g}, {share.response_variance:.6g}"
    error = "mean squared error"
    if share.classes:
        class_and_share = zip(share.classes, share.class_shares, strict=True)
        response = "share of each class: " + ", ".join(
            f"{label} {part:.4g}" for label, part in class_and_share
        )
        error = "Brier score"
    return [
        f"site: {share.site}",
        f"number of rows: {share.n_rows}",
        f"columns: {columns}; target: {share.target}",
        response,
        f"{error} of the model on its own rows: {share.error:.6g}",
        "standard deviation of each predictor: "
        + ", ".join(f"{spread:.6g}" for spread in share.spreads[:12]),
        f"the model: {share.family}, {len(share.model)} bytes, sha256 {share.sha[:16]}",
        f"candidates: {', '.join(share.candidates)}; seed: {share.seed}",
        "versions: " + ", ".join(f"{name} {version}" for name, version in share.software.items()),
    ]


def share(
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="These files hold the rows of this site alone.")
    ],
    target: options.Target = "",
    name: Annotated[str, Option(help="This site has this name. No two sites may have the same.")] = "",
    folder: options.Folder = "",
    features: options.Features = None,
    drop: options.Drop = None,
    candidates: Annotated[
        str, Option(help="Choose among these models, separated by commas: default, linear, rf, lasso, ...")
    ] = "default",
    seed: Annotated[
        int, Option(min=0, help="Start all random numbers from this seed. It is the same at all sites.")
    ] = 0,
    order: options.Order = "auto",
    dry_run: Annotated[bool, Option("--dry-run", help="List what would be revealed.")] = False,
    replace: Annotated[bool, Option("--replace", help="Replace this site's earlier share.")] = False,
    sign: options.Sign = None,
    known_keys: options.KnownKeys = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    schema: options.SchemaFile = None,
    moments: Annotated[
        bool,
        Option("--moments", help="Send second moments of the rows instead of a model. No rounds follow."),
    ] = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Fit a model on this site's rows and put it, sealed, into the folder; no row leaves the site.

    With --epsilon, moments of the rows are sent, with noise, and no model; with --moments, without noise.
    """
    find_files(tables)
    from coterie.cli import moments as by_moments
    from coterie.cli import sites
    from coterie.cli.preparing import chosen_columns
    from coterie.federated import make_site
    from coterie.method.order import IN_ORDER

    promise = by_moments.make_promise(epsilon, delta, schema, moments=moments)
    require(name=name, **({} if promise else {"target": target}))
    rows_in_order = options.parse_order(order)
    # What would be revealed can be seen before there is a folder.
    sealed = None if dry_run and not Path(folder or " ").is_dir() else sites.open_folder(folder, known_keys)
    signer = sites.open_signer(sign, sealed)
    if sealed is not None and not dry_run:
        sites.check_signer(sealed, signer, name)
    text: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    if promise is not None:
        by_moments.share_privately(
            tables,
            str(schema),
            promise,
            sealed,
            signer,
            name=name,
            target=target,
            dry_run=dry_run,
            replace=replace,
            **text,
        )
        return
    with one_sentence():
        contents = None if sealed is None else sealed.read(answers_of=name)
        frame = sites.encoded(sites.site_table(tables, contents, **text), contents)
    columns = chosen_columns(
        frame.columns, target, None, options.split_names(features), options.split_names(drop)
    )
    earlier_shares = () if contents is None else contents.shares
    other_shares = tuple(earlier for earlier in earlier_shares if earlier.site != name)
    ordered_columns = columns if features else sites.in_their_order(columns, other_shares)
    classes = () if contents is None or contents.encoding is None else contents.encoding.classes
    rows = sites.site_rows(frame, target, ordered_columns, classes=classes)
    notes = list(rows.notes)
    if ordered_columns != columns:
        notes.append("The columns were put into the order that the other sites have.")
    site_options: dict[str, Any] = {"candidates": options.split_names([candidates]), "seed": seed}
    site_options |= {"target": target, "columns": tuple(ordered_columns), "classes": classes or None}
    with one_sentence(), gathered_warnings(notes):
        site = make_site(rows.X, rows.y, site=name, order=rows_in_order, **site_options)
        if site.selection.in_order:
            notes.append(IN_ORDER)
        if classes and moments:
            raise CommandError("--moments does not take classes: leave it out, or pass --epsilon.")
        message: Any = by_moments.moments_of_site(site) if moments else sites.make_share(site)
    say_notes(notes)
    if sealed is None or dry_run:
        tell("`coterie share` would reveal:")
        for line in by_moments.revealed(message) if moments else revealed(message):
            tell(f"  {line}")
        for line in () if moments else LATER:
            tell(line)
        return
    try:
        with one_sentence():
            is_new = sealed.put(message, signer, replace=replace)
    except CommandError as error:
        if "cannot be used" in str(error):
            raise CommandError(f"{error} With --replace, your share takes its place.") from None
        if "other content" not in str(error):
            raise
        raise CommandError(
            f"The folder has another share of {name!r}: if it is yours and your table or options have "
            "changed, pass --replace; otherwise take another name."
        ) from None
    what_happened = "shared" if is_new else "had shared already"
    if moments:
        tell(f"{name} {what_happened}: moments of {message.n_rows} rows.")
        tell(by_moments.NEXT)
        tell(by_moments.BENDS_FIRST)
        return
    tell(f"{name} {what_happened}: {message.family}, {message.n_rows} rows, {len(message.model)} bytes.")
    tell("When all sites have shared, run `coterie score` at each of them.")
