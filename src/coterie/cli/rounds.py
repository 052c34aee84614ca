"""What a site and whoever concludes do in each round, with the files that are in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie import federated
from coterie.cli.errors import CommandError, cache_errors
from coterie.cli.moments import conclude_by_moments, is_by_moments, without_moments
from coterie.cli.printing import say
from coterie.cli.progress import gathered_warnings
from coterie.cli.sites import encoded, site_rows, site_table
from coterie.federated import Conclusion, Question, Settings, Share, Site
from coterie.federated.folder import FolderContents, SealedFolder, file_name
from coterie.federated.participants import find_participants
from coterie.federated.peers import evaluate_peers
from coterie.federated.questions import MOST_QUESTIONS, due_questions, memory_of
from coterie.federated.signing import Signer

# The table is the one that was shared when its model makes the same error, up to rounding.
SAME_TABLE = 1e-6


def own_site(
    mine: Share, contents: FolderContents, tables: list[str], target: str, order: str | None, **text: Any
) -> Site:
    """Select again what was shared, and make sure that the table is the same."""
    name = mine.site
    if target and target != mine.target:
        raise CommandError(
            f"{name!r} shared a model of {mine.target!r}, not of {target!r}: score with the same."
        )
    frame = encoded(site_table(tables, contents, **text), contents)
    rows = site_rows(
        frame, mine.target, mine.columns, classes=mine.classes, what="the columns that were shared"
    )
    shared: dict[str, Any] = {"site": name, "columns": mine.columns, "target": mine.target, "seed": mine.seed}
    shared["classes"] = mine.classes or None
    with gathered_warnings([]):
        site = federated.make_site(rows.X, rows.y, candidates=list(mine.candidates), order=order, **shared)
    error = float(site.selection.errors[0])
    same = abs(error - mine.error) <= SAME_TABLE * max(error, mine.error)
    if len(site.learners.y) != mine.n_rows or not same:
        raise CommandError(
            f"The table is not the one that {name!r} shared: score with that one and the same --order, or "
            "run `coterie share` again with --replace."
        )
    return site


def put_score(site: Site, sealed: SealedFolder, contents: FolderContents, signer: Signer | None) -> bool:
    """Put the score of the shares that are there; tell whether it is new."""
    earlier = next((each for each in contents.scores if each.site == site.name), None)
    shas = {share.site: share.sha for share in contents.shares}
    if earlier is not None and {s: e.sha for s, e in earlier.losses.items()} == shas:
        return False
    for name, reason in evaluate_peers(site, contents.shares).troubles.items():
        say(f"Note: the model of {name!r} is not scored. {reason}")
    mine = federated.score(site, contents.shares)
    return sealed.put(mine, signer, replace=True)


def answer_questions(
    site: Site, sealed: SealedFolder, contents: FolderContents, signer: Signer | None, noted: dict[str, str]
) -> int:
    """Answer the open questions, each by itself; tell how many, and note those that are not answered."""
    memory = memory_of(contents.share_of(site.name))
    due = due_questions(contents, site.name, memory.read(), sealed.read)
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
            message = federated.answer(site, contents.shares, question)
        # One question that makes no sense must not keep the others from being answered.
        except (ValueError, ArithmeticError) as error:
            refused[name] = str(error)
            continue
        with cache_errors():
            memory.add(question)
        sealed.put(message, signer)
        answered += 1
    for name, reason in refused.items():
        if name not in noted:
            say(f"Note: {name!r} is not answered. {reason}")
    noted |= refused
    return answered


def is_concluded(contents: FolderContents, before: Conclusion | None) -> bool:
    """Tell whether there is a new conclusion, about the models or moments that are shared now."""
    if contents.conclusion is None or contents.conclusion == before:
        return False
    sent = contents.moments if is_by_moments(contents) else contents.shares
    shas = {message.site: message.sha for message in sent}
    return all(shas.get(site) == sha for site, sha in contents.conclusion.models.items())


def _missing(question: Question, contents: FolderContents) -> list[str]:
    """Return who has not answered a question."""
    answers = next((each.answers for each in contents.answered if each.question == question), {})
    return [member.site for member in question.members if member.site not in answers]


def go_on(
    sealed: SealedFolder,
    contents: FolderContents,
    settings: Settings,
    without: Mapping[str, str],
    signer: Signer | None,
    *,
    now: bool,
) -> dict[str, Any]:
    """Go as far as the files in the folder allow, and say where that is."""
    if is_by_moments(contents):
        return conclude_by_moments(sealed, contents, settings, without, signer)
    gone = dict(without)
    participants = find_participants(
        contents.shares, contents.scores, min_rows=settings.min_rows, leave_out=without
    )
    if participants.waiting and not now:
        return {"state": "waiting for scores", "waiting": dict(participants.waiting)}
    gone |= {site: f"{reason[:1].lower()}{reason[1:]}" for site, reason in participants.waiting.items()}
    while True:
        outcome = federated.conclude(
            contents.shares, contents.scores, contents.answered, settings=settings, leave_out=gone
        )
        if isinstance(outcome, Conclusion):
            outcome = without_moments(outcome, contents)
            sealed.put(outcome, signer, replace=True)
            return {"state": "concluded", "conclusion": outcome}
        missing = _missing(outcome, contents)
        new = sealed.put(outcome, signer)
        n_members = len(outcome.members)
        if new or not now or len(missing) == n_members:
            rounds = _round(contents, outcome)
            return {
                "state": "asking",
                "round": rounds,
                # Rounds that were asked with other settings count, and have no bound in common.
                "of_at_most": settings.most_rounds if rounds <= settings.most_rounds else None,
                "waiting": dict.fromkeys(missing, "It has not answered."),
            }
        gone |= dict.fromkeys(missing, "it did not answer.")


def lacking(contents: FolderContents, without: Mapping[str, str]) -> str | None:
    """Say what has to be shared before anything can be concluded."""
    shared = {share.site for share in contents.shares} | {sent.site for sent in contents.moments}
    if not shared:
        return "The folder has no share: run `coterie share` at every site first."
    for site in without:
        if site not in shared:
            return f"The folder has no share of {site!r} to leave out: check the name."
    return None


def _round(contents: FolderContents, question: Question) -> int:
    """Return the number of a question among those about the same members."""
    earlier = [e.question for e in contents.answered if e.question.members == question.members]
    return len([each for each in earlier if each != question]) + 1
