"""``coterie status``: whose turn it is in a sealed folder, and what is missing. Nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.cli.errors import one_sentence
from coterie.cli.options import AsJson, Folder, KnownKeys
from coterie.cli.printing import say, tell, tell_json

if TYPE_CHECKING:
    from coterie.federated.folder import FolderContents

AGREEING, SHARING, SCORING, ANSWERING = "agreeing", "sharing", "scoring", "answering"
CONCLUDING, CONCLUDED = "concluding", "concluded"


def _missing_answers(contents: FolderContents) -> dict[str, str]:
    """Return who has not answered the question that is open about the present models."""
    shas = {share.site: share.sha for share in contents.shares}
    questions = [
        each
        for each in contents.answered
        if all(shas.get(member.site) == member.sha for member in each.question.members)
    ]
    missing = [[m.site for m in each.question.members if m.site not in each.answers] for each in questions]
    # Where some were left out, the question was asked again of fewer.
    fewest = min((len(each.question.members) for each in questions), default=0)
    open_now = [
        who for who, each in zip(missing, questions, strict=True) if len(each.question.members) == fewest
    ]
    waiting = next((who for who in open_now if who), [])
    return dict.fromkeys(waiting, "It has not answered: run score there.")


def folder_status(contents: FolderContents) -> dict[str, Any]:
    """Return how far the sites of a folder are, and whom they wait for."""
    from coterie.cli.moments import NOT_MOMENTS, is_by_moments
    from coterie.cli.rounds import is_concluded
    from coterie.federated.columns import follows
    from coterie.federated.participants import find_participants

    by_moments = is_by_moments(contents)
    sites = [message.site for message in (contents.moments if by_moments else contents.shares)]
    result: dict[str, Any] = {"state": SHARING, "shared": sites, "waiting": {}, "left_out": {}}
    result["by_moments"] = by_moments
    if not sites:
        said, agreed = contents.columns, contents.encoding
        open_now = bool(said) and (agreed is None or not follows(agreed, said))
        return {**result, "state": AGREEING} if open_now else result
    participants = find_participants(contents.shares, contents.scores)
    result["left_out"] = dict(participants.left_out)
    if by_moments:
        result["left_out"] = {each.site: NOT_MOMENTS for each in contents.shares if each.site not in sites}
    if is_concluded(contents, None):
        assert contents.conclusion is not None
        newer = [site for site in sites if site not in contents.conclusion.models]
        left_out = contents.conclusion.left_out
        later = [site for site in newer if site not in left_out]
        return {**result, "state": CONCLUDED, "left_out": dict(left_out), "later": later}
    if by_moments:
        return {**result, "state": CONCLUDING}
    if participants.waiting:
        return {**result, "state": SCORING, "waiting": dict(participants.waiting)}
    missing = _missing_answers(contents)
    return {**result, "state": ANSWERING if missing else CONCLUDING, "waiting": missing}


def status(folder: Folder = "", as_json: AsJson = False, known_keys: KnownKeys = None) -> None:
    """Say whose turn it is in a sealed folder, and what is missing; nothing is written."""
    from coterie.cli.sites import open_folder

    with one_sentence():
        contents = open_folder(folder, known_keys).read()
        result = folder_status(contents)
    result["troubles"] = dict(contents.troubles)
    if as_json:
        tell_json(result)
        return
    for name, reason in contents.troubles.items():
        say(f"Note: {name!r} is not used. {reason}")
    shared, state = len(result["shared"]), result["state"]
    if state == AGREEING:
        names = ", ".join(message.site for message in contents.columns)
        tell(f"These sites have named their columns: {names}. When all have, run `coterie agree`.")
        return
    if state == SHARING:
        tell("Nobody has shared: run `coterie share` at every site.")
        return
    tell(f"{shared} site{'s have' if shared > 1 else ' has'} shared.")
    for site, reason in result["waiting"].items():
        tell(f"Waiting for {site}. {reason}")
    for site, reason in result["left_out"].items():
        tell(f"Left out: {site}. {reason}")
    if state == CONCLUDING:
        tell("Nobody is waited for: run `coterie conclude`.")
    if state == CONCLUDED:
        tell("Concluded: each site can predict with `coterie predict`.")
        for site in result["later"]:
            first = "run" if result["by_moments"] else "run `coterie score` at every site, then"
            tell(f"{site} shared later: {first} `coterie conclude`.")
