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
    """Return the sites that have not answered the open question about the present models, with a reason.

    A question asks sites for errors of averages of models on their rows. Models are known by checksum.

    If sites were left out, the question was asked again of fewer members. So only questions with the
    fewest members are open.
    """
    checksums = {share.site: share.sha for share in contents.shares}
    current = [
        answered
        for answered in contents.answered
        if all(checksums.get(member.site) == member.sha for member in answered.question.members)
    ]
    not_answered_by = [
        [asked.site for asked in answered.question.members if asked.site not in answered.answers]
        for answered in current
    ]
    # Where some were left out, the question was asked again of fewer.
    fewest_members = min((len(answered.question.members) for answered in current), default=0)
    of_newest = [
        sites
        for sites, answered in zip(not_answered_by, current, strict=True)
        if len(answered.question.members) == fewest_members
    ]
    waiting = next((sites for sites in of_newest if sites), [])
    return dict.fromkeys(waiting, "It has not answered: run score there.")


def folder_status(contents: FolderContents) -> dict[str, Any]:
    """Return the state of a sealed folder as a dict: which sites shared, whom they wait for, who is left out.

    The state is agreeing (on columns), sharing (models), scoring (models of others), answering (questions
    about averages of models), concluding or concluded, in the order of use.
    """
    from coterie.cli.moments import NOT_MOMENTS, is_by_moments
    from coterie.cli.rounds import is_concluded
    from coterie.federated.columns import follows
    from coterie.federated.participants import find_participants

    by_moments = is_by_moments(contents)
    sites = [message.site for message in (contents.moments if by_moments else contents.shares)]
    status: dict[str, Any] = {"state": SHARING, "shared": sites, "waiting": {}, "left_out": {}}
    status["by_moments"] = by_moments
    if not sites:
        named_columns, encoding = contents.columns, contents.encoding
        not_agreed = bool(named_columns) and (encoding is None or not follows(encoding, named_columns))
        return {**status, "state": AGREEING} if not_agreed else status
    participants = find_participants(contents.shares, contents.scores)
    status["left_out"] = dict(participants.left_out)
    if by_moments:
        status["left_out"] = {share.site: NOT_MOMENTS for share in contents.shares if share.site not in sites}
    if is_concluded(contents, None):
        assert contents.conclusion is not None
        newer = [site for site in sites if site not in contents.conclusion.models]
        left_out = contents.conclusion.left_out
        later = [site for site in newer if site not in left_out]
        return {**status, "state": CONCLUDED, "left_out": dict(left_out), "later": later}
    if by_moments:
        return {**status, "state": CONCLUDING}
    if participants.waiting:
        return {**status, "state": SCORING, "waiting": dict(participants.waiting)}
    missing = _missing_answers(contents)
    return {**status, "state": ANSWERING if missing else CONCLUDING, "waiting": missing}


def status(folder: Folder = "", as_json: AsJson = False, known_keys: KnownKeys = None) -> None:
    """Say whose turn it is in a sealed folder, and what is missing; nothing is written."""
    from coterie.cli.sites import open_folder

    with one_sentence():
        contents = open_folder(folder, known_keys).read()
        status_of_folder = folder_status(contents)
    status_of_folder["troubles"] = dict(contents.troubles)
    if as_json:
        tell_json(status_of_folder)
        return
    for name, reason in contents.troubles.items():
        say(f"Note: {name!r} is not used. {reason}")
    shared, state = len(status_of_folder["shared"]), status_of_folder["state"]
    if state == AGREEING:
        names = ", ".join(message.site for message in contents.columns)
        tell(f"These sites have named their columns: {names}. When all have, run `coterie agree`.")
        return
    if state == SHARING:
        tell("Nobody has shared: run `coterie share` at every site.")
        return
    tell(f"{shared} site{'s have' if shared > 1 else ' has'} shared.")
    for site, reason in status_of_folder["waiting"].items():
        tell(f"Waiting for {site}. {reason}")
    for site, reason in status_of_folder["left_out"].items():
        tell(f"Left out: {site}. {reason}")
    if state == CONCLUDING:
        tell("Nobody is waited for: run `coterie conclude`.")
    if state == CONCLUDED:
        tell("Concluded: each site can predict with `coterie predict`.")
        for site in status_of_folder["later"]:
            first = "run" if status_of_folder["by_moments"] else "run `coterie score` at every site, then"
            tell(f"{site} shared later: {first} `coterie conclude`.")
