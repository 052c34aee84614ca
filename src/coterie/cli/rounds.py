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
    own_share: Share, contents: FolderContents, tables: list[str], target: str, order: str | None, **text: Any
) -> Site:
    """Make the site again from its table, as when it was shared, and refuse another table.

    ``own_share`` is what the site has shared: the same columns, seed and candidates give the same model,
    whose number of rows and error must agree.
    """
    name = own_share.site
    if target and target != own_share.target:
        raise CommandError(
            f"{name!r} shared a model of {own_share.target!r}, not of {target!r}: score with the same."
        )
    frame = encoded(site_table(tables, contents, **text), contents)
    rows = site_rows(
        frame,
        own_share.target,
        own_share.columns,
        classes=own_share.classes,
        what="the columns that were shared",
    )
    same_options: dict[str, Any] = {
        "site": name,
        "columns": own_share.columns,
        "target": own_share.target,
        "seed": own_share.seed,
    }
    same_options["classes"] = own_share.classes or None
    with gathered_warnings([]):
        site = federated.make_site(
            rows.X, rows.y, candidates=list(own_share.candidates), order=order, **same_options
        )
    error = float(site.selection.errors[0])
    same_error = abs(error - own_share.error) <= SAME_TABLE * max(error, own_share.error)
    if len(site.learners.y) != own_share.n_rows or not same_error:
        raise CommandError(
            f"The table is not the one that {name!r} shared: score with that one and the same --order, or "
            "run `coterie share` again with --replace."
        )
    return site


def put_score(site: Site, sealed: SealedFolder, contents: FolderContents, signer: Signer | None) -> bool:
    """Write how well everybody's shared models predict this site's rows; tell whether that is new.

    A score is a site's errors of all models on its rows. One of the same models (by checksum) is not written
    again. Models that cannot be scored are named on stderr.
    """
    earlier_score = next((score for score in contents.scores if score.site == site.name), None)
    checksums = {share.site: share.sha for share in contents.shares}
    if (
        earlier_score is not None
        and {site_name: loss_entry.sha for site_name, loss_entry in earlier_score.losses.items()} == checksums
    ):
        return False
    for name, reason in evaluate_peers(site, contents.shares).troubles.items():
        say(f"Note: the model of {name!r} is not scored. {reason}")
    own_score = federated.score(site, contents.shares)
    return sealed.put(own_score, signer, replace=True)


def answer_questions(
    site: Site,
    sealed: SealedFolder,
    contents: FolderContents,
    signer: Signer | None,
    refusals_named: dict[str, str],
) -> int:
    """Answer the open questions about averages of models; return how many, and note refusals.

    ``refusals_named`` keeps refused questions by file name between calls, so that each is named once; it is
    added to. The number of answers about the same models is limited, for each tells something about the rows.
    """
    memory = memory_of(contents.share_of(site.name))
    open_questions = due_questions(contents, site.name, memory.read(), sealed.read)
    refused = {
        file_name(question): f"At most {MOST_QUESTIONS} are answered about the same models, and somebody "
        "asks for more than the method needs."
        for question in open_questions.surplus
    }
    answered = 0
    for question in open_questions.questions:
        name = file_name(question)
        if name in refusals_named:
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
        if name not in refusals_named:
            say(f"Note: {name!r} is not answered. {reason}")
    refusals_named |= refused
    return answered


def is_concluded(contents: FolderContents, before: Conclusion | None) -> bool:
    """Tell whether there is a new conclusion, about the models or moments that are shared now."""
    if contents.conclusion is None or contents.conclusion == before:
        return False
    messages = contents.moments if is_by_moments(contents) else contents.shares
    checksums = {message.site: message.sha for message in messages}
    return all(checksums.get(site) == sha for site, sha in contents.conclusion.models.items())


def _missing(question: Question, contents: FolderContents) -> list[str]:
    """Return the sites that have not answered a question."""
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
    """Conclude from the files in a folder, or ask the sites the next question; say which it was.

    The dict has the ``state``: waiting for scores, asking (with the sites that have to answer), or
    concluded (with the conclusion). ``without`` are sites to leave out, with reasons; ``now``: go on
    without sites that are missing. A question asks for the errors of averages of models, which nobody can
    compute without the rows; some rounds of them lead to the conclusion.
    """
    if is_by_moments(contents):
        return conclude_by_moments(sealed, contents, settings, without, signer)
    left_out = dict(without)
    participants = find_participants(
        contents.shares, contents.scores, min_rows=settings.min_rows, leave_out=without
    )
    if participants.waiting and not now:
        return {"state": "waiting for scores", "waiting": dict(participants.waiting)}
    left_out |= {site: f"{reason[:1].lower()}{reason[1:]}" for site, reason in participants.waiting.items()}
    while True:
        conclusion_or_question = federated.conclude(
            contents.shares, contents.scores, contents.answered, settings=settings, leave_out=left_out
        )
        if isinstance(conclusion_or_question, Conclusion):
            conclusion_or_question = without_moments(conclusion_or_question, contents)
            sealed.put(conclusion_or_question, signer, replace=True)
            return {"state": "concluded", "conclusion": conclusion_or_question}
        not_answered = _missing(conclusion_or_question, contents)
        is_new = sealed.put(conclusion_or_question, signer)
        n_members = len(conclusion_or_question.members)
        if is_new or not now or len(not_answered) == n_members:
            round_number = _round(contents, conclusion_or_question)
            return {
                "state": "asking",
                "round": round_number,
                # Rounds that were asked with other settings count, and have no bound in common.
                "of_at_most": settings.most_rounds if round_number <= settings.most_rounds else None,
                "waiting": dict.fromkeys(not_answered, "It has not answered."),
            }
        # The question stands already: ask or conclude once more, without those who did not answer it.
        left_out |= dict.fromkeys(not_answered, "it did not answer.")


def lacking(contents: FolderContents, without: Mapping[str, str]) -> str | None:
    """Say what has to be shared before anything can be concluded; None if nothing."""
    shared = {share.site for share in contents.shares} | {sent.site for sent in contents.moments}
    if not shared:
        return "The folder has no share: run `coterie share` at every site first."
    for site in without:
        if site not in shared:
            return f"The folder has no share of {site!r} to leave out: check the name."
    return None


def _round(contents: FolderContents, question: Question) -> int:
    """Return the number of a question, from one, among those asked about the same members."""
    questions = [
        answers.question for answers in contents.answered if answers.question.members == question.members
    ]
    return len([other for other in questions if other != question]) + 1
