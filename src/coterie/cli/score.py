"""``coterie score``: what everybody's models lose on a site's rows, and answers to further questions."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import CommandError, cache_errors, one_sentence, require
from coterie.cli.options import Delimiter, Delta, Encoding, Epsilon, Folder, KnownKeys, Sign, parse_order
from coterie.cli.printing import say, tell
from coterie.cli.progress import gathered_warnings
from coterie.cli.reading import read_tables
from coterie.cli.sites import check_signer, check_wait, looks, make_blur, open_folder, open_signer, site_rows

if TYPE_CHECKING:
    from coterie.federated import Conclusion, Party, Share
    from coterie.federated.folder import Contents, SealedFolder
    from coterie.federated.signing import Signer

# The table is the one that was shared when its model makes the same error, up to rounding.
SAME_TABLE = 1e-6


def _party(mine: Share, tables: list[str], target: str, order: str | None, **text: Any) -> Party:
    """Select again what was shared, and make sure that the table is the same."""
    from coterie.federated import make_party

    name = mine.site
    if target and target != mine.target:
        raise CommandError(
            f"{name!r} shared a model of {mine.target!r}, not of {target!r}: score with the same."
        )
    rows = site_rows(
        read_tables(tables, **text), mine.target, mine.columns, what="the columns that were shared"
    )
    with gathered_warnings([]):
        party = make_party(
            rows.X,
            rows.y,
            site=name,
            columns=mine.columns,
            target=mine.target,
            candidates=list(mine.candidates),
            seed=mine.seed,
            order=order,
        )
    error = float(party.selection.errors[0])
    same = abs(error - mine.error) <= SAME_TABLE * max(error, mine.error)
    if len(party.learners.y) != mine.n_rows or not (same or mine.privacy is not None):
        raise CommandError(
            f"The table is not the one that {name!r} shared: score with that one and the same --order, or "
            "run `coterie share` again with --replace."
        )
    return party


def _say_troubles(party: Party, contents: Contents, *, blurred: bool) -> None:
    from coterie.federated.peers import evaluate_peers, is_comparable

    # Where numbers are blurred, a model that fails is scored all the same: failing tells of rows.
    looked_at = [s for s in contents.shares if not (blurred and is_comparable(party, s))]
    for site, why in evaluate_peers(party, looked_at).troubles.items():
        say(f"Note: the model of {site!r} is not scored. {why}")


def _score(
    party: Party, sealed: SealedFolder, contents: Contents, signer: Signer | None, options: dict[str, Any]
) -> bool:
    """Put the score of the shares that are there; tell whether it is new."""
    from coterie.federated import score as make
    from coterie.federated.sent import blurred_score

    earlier = next((score for score in contents.scores if score.site == party.site), None)
    shas = {share.site: share.sha for share in contents.shares}
    # Scoring again with Gram matrices adds them; without, it does not take them back.
    complete = earlier is not None and (earlier.grams is not None or not options["reveal_gram"])
    if earlier is not None and complete and {s: e.sha for s, e in earlier.losses.items()} == shas:
        return False
    _say_troubles(party, contents, blurred=options["blur"] is not None)
    with cache_errors():
        if options["blur"] is not None:
            mine = blurred_score(party, contents.shares, options["blur"])
        else:
            mine = make(party, contents.shares, **options)
    return sealed.put(mine, signer, replace=True)


def _answer(
    party: Party, sealed: SealedFolder, contents: Contents, signer: Signer | None, noted: dict[str, str]
) -> int:
    """Answer the open questions, each by itself; tell how many, and note those that are not answered."""
    from coterie.federated import answer as make
    from coterie.federated.asked import MOST_QUESTIONS, due_questions, memory_of
    from coterie.federated.folder import file_name

    memory = memory_of(contents.share_of(party.site))
    due = due_questions(contents, party.site, memory.read(), sealed.read)
    refused = {
        file_name(question): f"At most {MOST_QUESTIONS} are answered about the same models, and somebody "
        "asks for more than the method needs."
        for question in due.surplus
    }
    answered = 0
    for question in due.questions:
        name = file_name(question)
        if name in noted:
            continue
        try:
            message = make(party, contents.shares, question)
        # One question that makes no sense must not keep the others from being answered.
        except (ValueError, ArithmeticError) as error:
            refused[name] = str(error)
            continue
        with cache_errors():
            memory.add(question)
        sealed.put(message, signer)
        answered += 1
    for name, why in refused.items():
        if name not in noted:
            say(f"Note: {name!r} is not answered. {why}")
    noted |= refused
    return answered


def _concluded(contents: Contents, before: Conclusion | None) -> bool:
    """Tell whether there is a new conclusion, about the models that are shared now."""
    if contents.conclusion is None or contents.conclusion == before:
        return False
    shas = {share.site: share.sha for share in contents.shares}
    return all(shas.get(site) == sha for site, sha in contents.conclusion.models.items())


def score(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="The files that were shared from.")],
    target: Annotated[str, typer.Option(help="Column to predict; default: as shared.")] = "",
    name: Annotated[str, typer.Option(help="Name of this site, as shared.")] = "",
    folder: Folder = "",
    order: Annotated[str, typer.Option(help="auto or none, as shared.")] = "auto",
    reveal_gram: Annotated[
        bool, typer.Option("--reveal-gram", help="Reveal more, and save the rounds if all sites do.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to go on answering, in a folder that is kept in step.")
    ] = 0.0,
    sign: Sign = None,
    known_keys: KnownKeys = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    clip: Annotated[float | None, typer.Option(help="With --epsilon: squared residuals.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Score everybody's models on this site's rows, or answer the next round; run it as often as asked."""
    from coterie.federated.sent import epsilon_spent

    require(name=name)
    if reveal_gram and epsilon is not None:
        raise CommandError("--reveal-gram would send what --epsilon blurs: take one of them.")
    if wait and epsilon is not None:
        raise CommandError(
            "--wait would spend --epsilon again whenever somebody shares another model: score once, when all "
            "have shared."
        )
    rows_in_order = parse_order(order)
    sealed = open_folder(folder, known_keys)
    check_wait(wait)
    signer = open_signer(sign, sealed)
    check_signer(sealed, signer, name)
    options = {"reveal_gram": reveal_gram, "blur": make_blur(epsilon, delta, clip)}
    text = {"delimiter": delimiter, "encoding": encoding}
    with one_sentence():
        seen = looks(partial(sealed.read, answers_of=name), wait)
        first = next(seen)
        party = _party(first.share_of(name), tables, target, rows_in_order, **text)
        noted: dict[str, str] = {}
        for contents in chain([first], seen):
            scored = _score(party, sealed, contents, signer, options)
            answers = _answer(party, sealed, contents, signer, noted)
            if scored:
                tell(f"{name} scored {len(contents.shares)} models.")
                if epsilon is not None:
                    tell(f"Epsilon spent on these rows so far: {epsilon_spent(party):g}.")
            if answers:
                tell(f"{name} answered {answers} question{'s' if answers > 1 else ''}.")
            if _concluded(contents, first.conclusion):
                break
    if not (wait or scored or answers):
        tell(f"{name} has nothing to score or to answer: all is done that was asked.")
